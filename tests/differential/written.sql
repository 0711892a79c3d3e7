--@ include: schema.sql
-- Every shape of plan inside a transaction that has already written on several workers: it sees the transaction's own
-- writes, and after ROLLBACK TO SAVEPOINT what was there before.

CREATE TABLE archive (user_id bigint, id int, total numeric(12,2), note text);
CREATE TABLE tally (k int PRIMARY KEY, n int, what text);
--@ cluster: SELECT create_distributed_table('archive', 'user_id', colocate_with => 'users'), create_distributed_table('tally', 'k')

BEGIN;
UPDATE users SET score = score + 1000, name = coalesce(name, 'nobody') WHERE active;
INSERT INTO clicks (user_id, url, ms) SELECT g, '/w/' || g % 3, g FROM generate_series(1, 40) g;
DELETE FROM orders o WHERE status = 'back' AND NOT EXISTS (SELECT 1 FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id AND i.line > 1);
-- Combined from partial results.
SELECT count(*), sum(score), avg(score), min(name), max(created) FROM users;
SELECT country, count(*), sum(score) FROM users GROUP BY country HAVING count(*) > 3;
SELECT count(DISTINCT url), count(*) FILTER (WHERE url LIKE '/w/%') FROM clicks;
-- One after another.
SELECT user_id, url, ms FROM clicks WHERE url LIKE '/w/%';
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.score > 1050;
SELECT id, name FROM users WHERE id = 11;
-- Top N.
--@ ordered
SELECT id, score FROM users ORDER BY score DESC NULLS LAST, id LIMIT 7;
--@ ordered
SELECT DISTINCT url FROM clicks ORDER BY url LIMIT 5 OFFSET 2;
-- The coordinator and its callbacks.
SELECT n.id, n.body, u.score FROM local_notes n JOIN users u ON u.id = n.user_id WHERE u.score > 1000;
SELECT count(*) FROM users a JOIN users b ON a.score = b.score AND a.id < b.id;
SELECT status, count(*) FROM orders GROUP BY ROLLUP (status);
SELECT id, rank() OVER (ORDER BY score DESC NULLS LAST, id) FROM users WHERE id < 20;
SELECT id FROM users WHERE score > 1000 EXCEPT SELECT user_id FROM orders;

SAVEPOINT written;

-- INSERT … SELECT on the workers, through the coordinator, and with RETURNING.
INSERT INTO archive SELECT user_id, id, total, note FROM orders WHERE status = 'new';
INSERT INTO archive (user_id, id, note) SELECT id::bigint + 1, 0, 'moved' FROM users WHERE score > 1000;
INSERT INTO tally SELECT (id % 100)::int, count(*), 'made' FROM users GROUP BY 1;
INSERT INTO tally AS t SELECT g, g, 'again' FROM generate_series(50, 70) g ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n RETURNING t.k, t.n;
INSERT INTO tally SELECT 200 + id, stars, body FROM local_notes;
SELECT count(*), sum(total), count(note) FROM archive;
SELECT what, count(*), sum(n) FROM tally GROUP BY what;
-- COPY in both directions.
COPY tally FROM STDIN;
301	1	copied
302	2	copied
303	\N	copied
304	4	\N
305	5	copied
\.
COPY tally TO STDOUT;
COPY (SELECT what, count(*), sum(n) FROM tally GROUP BY what) TO STDOUT (FORMAT csv);
COPY (SELECT t.k, n.body FROM tally t JOIN local_notes n ON n.id = t.n WHERE t.k > 300) TO STDOUT;
-- Rows found by the coordinator.
UPDATE users u SET score = -1, name = n.body FROM local_notes n WHERE n.user_id = u.id AND n.stars > 2;
SELECT id, score, name FROM users WHERE score = -1;
DELETE FROM clicks c USING local_notes n WHERE n.user_id = c.user_id AND n.stars = 1;
DELETE FROM tally WHERE n < (SELECT avg(n) FROM tally) RETURNING k;
UPDATE tally SET n = (SELECT count(*) FROM clicks) WHERE k = 70;
SELECT k, n FROM tally WHERE k >= 70;
SELECT count(*), sum(ms) FROM clicks;
-- Reference tables.
UPDATE regions SET tax = tax + 1 WHERE code IN ('de', 'fr');
INSERT INTO regions VALUES ('it', 'Italy', 22), ('es', 'Spain', 21);
DELETE FROM regions WHERE code = 'xx';
SELECT r.name, r.tax, count(u.id) FROM users u JOIN regions r ON r.code = u.country GROUP BY r.name, r.tax;
SELECT u.id, r.tax FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.id IN (1, 2, 3, 4);
SELECT count(*), sum(tax) FROM regions;
-- TRUNCATE, and rows after it.
TRUNCATE archive;
SELECT count(*) FROM archive;
INSERT INTO archive VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y'), (3, 3, 3, 'z');
SELECT user_id, sum(total) FROM archive GROUP BY user_id;
TRUNCATE items, tally;
SELECT count(*), (SELECT count(*) FROM tally) FROM items;

-- The same reads again see what was there at the savepoint.
ROLLBACK TO SAVEPOINT written;
SELECT count(*), sum(score), avg(score), min(name), max(created) FROM users;
SELECT country, count(*), sum(score) FROM users GROUP BY country HAVING count(*) > 3;
SELECT count(DISTINCT url), count(*) FILTER (WHERE url LIKE '/w/%') FROM clicks;
SELECT user_id, url, ms FROM clicks WHERE url LIKE '/w/%';
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.score > 1050;
SELECT id, name FROM users WHERE id = 11;
--@ ordered
SELECT id, score FROM users ORDER BY score DESC NULLS LAST, id LIMIT 7;
SELECT n.id, n.body, u.score FROM local_notes n JOIN users u ON u.id = n.user_id WHERE u.score > 1000;
SELECT count(*) FROM users a JOIN users b ON a.score = b.score AND a.id < b.id;
SELECT id FROM users WHERE score > 1000 EXCEPT SELECT user_id FROM orders;
SELECT count(*) FROM archive;
SELECT count(*) FROM tally;
SELECT count(*), sum(qty) FROM items;
SELECT count(*), sum(tax) FROM regions;
COPY (SELECT id, score FROM users WHERE score > 1000) TO STDOUT;
-- And the transaction goes on.
UPDATE tally SET n = n + 1;
INSERT INTO archive SELECT user_id, id, total, note FROM orders WHERE status = 'paid';
COPY archive FROM STDIN (FORMAT csv);
901,1,1.5,"late, but here"
902,2,2.5,
903,3,,x
\.
UPDATE regions SET tax = 0 WHERE code = 'jp';
SAVEPOINT second;
DELETE FROM archive;
--@ error: 23505
INSERT INTO users (id, created) VALUES (1, now()), (2, now()), (3, now()), (9999, now());
--@ error: 25P02
SELECT count(*) FROM archive;
ROLLBACK TO second;
SELECT count(*), sum(total) FROM archive;
RELEASE written;
COMMIT;

SELECT count(*), sum(score) FROM users;
SELECT count(*), sum(total), max(user_id) FROM archive;
SELECT count(*) FROM clicks WHERE url LIKE '/w/%';
SELECT count(*), sum(tax) FROM regions;
SELECT u.country, r.tax FROM users u JOIN regions r ON r.code = u.country WHERE u.country = 'jp' AND u.id = 4;
SELECT count(*) FROM tally;

-- In REPEATABLE READ, and all taken back.
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE archive SET total = 7;
INSERT INTO tally VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd');
SELECT sum(total), count(*) FROM archive;
SELECT a.user_id, t.what FROM archive a JOIN tally t ON t.k = a.id WHERE a.user_id > 900;
WITH gone AS (DELETE FROM archive WHERE user_id = 901 RETURNING *) SELECT count(*), min(note) FROM gone;
SELECT count(*) FROM archive;
ROLLBACK;
SELECT count(*), sum(total) FROM archive;
SELECT count(*) FROM tally;
