-- Reads and writes of an application beside its migrations.
BEGIN;
INSERT INTO tenant (name, plan, settings) SELECT 'used', max(name), '{"city": "Cusco"}' FROM plan
    RETURNING id AS tenant \gset
INSERT INTO account (tenant_id, id, mail) SELECT :tenant, n, n || '@used' FROM generate_series(1, 4) n;
INSERT INTO account (tenant_id, id, mail, balance) VALUES (:tenant, 2, 'x', 5), (:tenant, 9, 'y', 6)
    ON CONFLICT (tenant_id, id) DO UPDATE SET balance = account.balance + excluded.balance
    RETURNING id, mail, round(balance, 2);
INSERT INTO orders (tenant_id, account_id, total, tags)
    SELECT a.tenant_id, a.id, n, CASE n % 3 WHEN 0 THEN ARRAY['gift'] ELSE '{}' END
    FROM account a, generate_series(1, 10) n WHERE a.tenant_id = :tenant;
COMMIT;
WITH paid AS (UPDATE orders SET state = 'paid' WHERE total > 7 AND state = 'new' RETURNING total)
    SELECT count(*), sum(total) FROM paid;
SELECT p.name, count(DISTINCT t.id), sum(worth(o.total, o.tags)) FROM plan p LEFT JOIN tenant t ON t.plan = p.name
    LEFT JOIN orders o ON o.tenant_id = t.id GROUP BY 1 ORDER BY 1;
SELECT a.mail, o.state, count(*) FROM account a JOIN orders o ON o.tenant_id = a.tenant_id AND o.account_id = a.id
    GROUP BY 1, 2 ORDER BY 1, 2;
BEGIN;
DELETE FROM account WHERE id < 3;
SELECT count(*) FROM orders WHERE account_id < 3;
ROLLBACK;
DELETE FROM account WHERE tenant_id = :tenant AND id = 9;
SELECT count(*), sum(total) FROM orders;
INSERT INTO account (tenant_id, id, mail) VALUES (:tenant, 77, '1@used');
INSERT INTO tenant (name, plan) VALUES ('x', 'nothing');
INSERT INTO orders (tenant_id, account_id, total) VALUES (:tenant, -1, 1);
UPDATE account SET mail = NULL WHERE tenant_id = :tenant;
DELETE FROM plan WHERE name = 'free';
