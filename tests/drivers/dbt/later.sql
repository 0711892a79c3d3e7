-- What has come since the first run.
BEGIN;
INSERT INTO shop.event
SELECT t, n, 1 + n % 5, '2025-03-04 00:00Z'::timestamptz + n * interval '5 hours',
    jsonb_build_object('price', n, 'of', t), '{}'
FROM generate_series(1, 8) t, generate_series(31, 40) n;
UPDATE shop.account SET state = 'closed', balance = balance + 1 WHERE id = 3;
INSERT INTO shop.account VALUES (1, 6, 'new@1', 0, 'new'), (9, 1, 'new@9', 0, 'new');
DELETE FROM shop.account WHERE tenant_id = 8 AND id = 5;
UPDATE shop.tenant SET name = name || '!', changed = '2025-04-05' WHERE id < 3;
INSERT INTO shop.tenant VALUES (9, 'tenant 9', 'tv', '2025-04-05');
COMMIT;
