--@ include: schema.sql
-- INSERT … SELECT in every direction: from and to distributed tables (colocated, by another key, the same table), reference and
-- local tables; with aggregates, joins, limits, ON CONFLICT, RETURNING, defaults and sequences, in transactions.

CREATE TABLE dst (user_id bigint, id int, n numeric, t text DEFAULT 'dflt', PRIMARY KEY (user_id, id));
CREATE TABLE bag (user_id bigint, id int, n numeric, t text);
CREATE TABLE by_text (t text, n bigint, sum numeric);
CREATE TABLE by_int (k int PRIMARY KEY, v text, seq serial);
CREATE TABLE refs (code int PRIMARY KEY, t text, n numeric);
CREATE TABLE loc (id int, t text, n numeric);
CREATE TABLE self (k int, v int);
--@ cluster: SELECT create_distributed_table('dst', 'user_id', colocate_with => 'users'), create_distributed_table('bag', 'user_id', colocate_with => 'users')
--@ cluster: SELECT create_distributed_table('by_text', 't', colocate_with => 'none'), create_distributed_table('by_int', 'k'), create_distributed_table('self', 'k')
--@ cluster: SELECT create_reference_table('refs')

-- Colocated, key to key.
INSERT INTO dst (user_id, id, n) SELECT user_id, id, total FROM orders;
SELECT count(*), sum(n), count(DISTINCT t) FROM dst;
SELECT * FROM dst WHERE user_id = 14;
INSERT INTO bag SELECT user_id, id, total, status FROM orders WHERE status IN ('new', 'paid');
INSERT INTO bag (t, user_id, id) SELECT o.status, u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.active;
INSERT INTO bag (user_id, n) SELECT user_id, sum(total) FROM orders GROUP BY user_id;
INSERT INTO bag (user_id, n) SELECT user_id, count(*) FROM orders GROUP BY user_id HAVING count(*) > 2;
INSERT INTO bag (user_id, id) SELECT DISTINCT user_id, 1 FROM clicks;
INSERT INTO bag (user_id, t) SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country;
INSERT INTO bag SELECT user_id, id, rank() OVER (PARTITION BY user_id ORDER BY total DESC NULLS LAST, id), 'rank' FROM orders;
INSERT INTO bag SELECT user_id, id, total, 'exists' FROM orders o WHERE EXISTS (SELECT 1 FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id AND i.qty > 3);
SELECT t, count(*), sum(n), sum(user_id), sum(id) FROM bag GROUP BY t;
INSERT INTO bag SELECT user_id, id, total, 'one' FROM orders WHERE user_id = 14;
INSERT INTO bag SELECT 14, id, total, 'fixed' FROM orders WHERE user_id = 14;
INSERT INTO bag SELECT * FROM bag WHERE t = 'one';
SELECT t, count(*) FROM bag WHERE user_id = 14 GROUP BY t;
TRUNCATE bag;

-- By another column, so that rows move between workers.
INSERT INTO bag (user_id, id, t) SELECT id, user_id, 'swapped' FROM orders;
SELECT count(*), sum(user_id), sum(id) FROM bag;
SELECT * FROM bag WHERE user_id = 142;
INSERT INTO bag SELECT b, id, a, 'friend' FROM friends;
INSERT INTO bag SELECT a + b, id, NULL, 'sum' FROM friends WHERE id < 30;
INSERT INTO bag SELECT NULL, id, NULL, 'null' FROM friends WHERE id < 5;
INSERT INTO bag SELECT nullif(user_id % 4, 0), 0, ms, 'mod' FROM clicks;
INSERT INTO bag SELECT user_id + 1, id, total, 'plus' FROM orders;
INSERT INTO bag SELECT -user_id, id, total, 'minus' FROM orders WHERE user_id < 10;
INSERT INTO bag SELECT max(user_id), max(id), sum(total), 'max' FROM orders;
INSERT INTO bag SELECT max(user_id), count(*), NULL, status FROM orders GROUP BY status;
INSERT INTO bag SELECT product_id, count(*), sum(qty), 'product' FROM items GROUP BY product_id;
INSERT INTO bag SELECT f.b, u.id, u.score, 'apart' FROM friends f JOIN users u ON u.id = f.a;
INSERT INTO bag SELECT row_number() OVER (ORDER BY total DESC NULLS LAST, user_id, id), id, total, 'window' FROM orders;
INSERT INTO bag SELECT user_id, id, total, 'top' FROM orders ORDER BY total DESC NULLS LAST, id LIMIT 5;
INSERT INTO bag SELECT user_id, id, total, 'offset' FROM orders ORDER BY id OFFSET 100;
--@ error: 42804
INSERT INTO bag SELECT user_id, 1, NULL, 'union' FROM orders UNION SELECT id, 2, NULL, 'union' FROM users;
INSERT INTO bag SELECT user_id, 1, NULL::numeric, 'union' FROM orders UNION SELECT id, 2, NULL, 'union' FROM users;
--@ error: 42804
INSERT INTO bag SELECT id, 1, NULL, 'except' FROM users EXCEPT SELECT user_id, 1, NULL, 'except' FROM orders;
INSERT INTO bag SELECT id, 1, NULL::numeric, 'except' FROM users EXCEPT SELECT user_id, 1, NULL, 'except' FROM orders;
INSERT INTO bag SELECT g, g, g * 1.5, 'series' FROM generate_series(1, 50) g;
INSERT INTO bag SELECT * FROM (VALUES (1, 2, 3.0, 'values'), (NULL, 5, 6, 'values')) v;
INSERT INTO bag VALUES (1, 1, 1, 'rows'), ((SELECT max(id) FROM users), 2, 2, 'rows'), (NULL, 3, 3, 'rows');
SELECT t, count(*), sum(user_id), sum(id), sum(n) FROM bag GROUP BY t;
SELECT count(*) FROM bag WHERE user_id IS NULL;
SELECT t, count(*) FROM bag WHERE user_id = 7 GROUP BY t;
INSERT INTO by_text (t, n) SELECT status, id FROM orders;
INSERT INTO by_text SELECT t, count(*), sum(n) FROM bag GROUP BY t;
INSERT INTO by_text (t) SELECT name FROM users;
INSERT INTO by_text (t, n) SELECT id::text, id FROM users WHERE id < 6;
INSERT INTO by_text (t, n) SELECT kind, id FROM events;
SELECT t, count(*), sum(n), sum(sum) FROM by_text GROUP BY t;
SELECT count(*) FROM by_text WHERE t = 'kind-3';
INSERT INTO by_int (k, v) SELECT id, name FROM users WHERE id < 40;
SELECT count(*), count(DISTINCT seq), sum(k) FROM by_int;
--@ error: 22003
INSERT INTO by_int (k) SELECT id * 1000000000 FROM users;
INSERT INTO self SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO self SELECT k, v + 100 FROM self;
INSERT INTO self SELECT k + 10, v FROM self;
INSERT INTO self SELECT v, k FROM self WHERE v > 100;
SELECT count(*), sum(k), sum(v) FROM self;
SELECT * FROM self WHERE k = 5;

-- ON CONFLICT and RETURNING.
INSERT INTO dst (user_id, id, n) SELECT user_id, id, 1 FROM orders ON CONFLICT DO NOTHING;
INSERT INTO dst (user_id, id, n) SELECT user_id, id, 1 FROM orders WHERE user_id < 12 ON CONFLICT (user_id, id) DO UPDATE SET n = coalesce(dst.n, 0) + excluded.n, t = 'hit';
INSERT INTO dst (user_id, id) SELECT user_id, id + 1 FROM orders WHERE user_id < 12 ON CONFLICT (user_id, id) DO UPDATE SET t = 'shifted' WHERE dst.n > 100;
SELECT t, count(*), sum(n) FROM dst GROUP BY t;
--@ error: 23505
--@ loose: which row comes first
INSERT INTO dst (user_id, id, n) SELECT user_id, id, 1 FROM orders;
--@ error: 21000
INSERT INTO dst (user_id, id) SELECT 1, 1 FROM friends ON CONFLICT (user_id, id) DO UPDATE SET n = 1;
INSERT INTO dst (user_id, id, n) SELECT id, 1, score FROM users WHERE id < 5 ON CONFLICT DO NOTHING RETURNING user_id, n;
INSERT INTO dst (user_id, id) SELECT a, id + 5000 FROM friends WHERE id < 8 RETURNING *;
INSERT INTO by_int (k, v) SELECT id, 'again' FROM users WHERE id BETWEEN 35 AND 45 ON CONFLICT (k) DO UPDATE SET v = excluded.v || by_int.k RETURNING k, v;
INSERT INTO bag (user_id) SELECT id FROM users WHERE id < 4 RETURNING user_id * 2 AS d, t;
INSERT INTO bag (user_id) SELECT 5 FROM users WHERE id < 4 RETURNING user_id;

-- Reference tables.
INSERT INTO refs SELECT id, name, score FROM users WHERE id < 6;
INSERT INTO refs SELECT user_id + 100, max(status), sum(total) FROM orders WHERE user_id < 20 GROUP BY user_id;
INSERT INTO refs SELECT id + 1000, name, price FROM products;
INSERT INTO refs (code, t) SELECT id + 2000, body FROM local_notes;
INSERT INTO refs SELECT g, 'g', g FROM generate_series(3000, 3004) g RETURNING code;
INSERT INTO refs SELECT code + 10000, t, n FROM refs;
SELECT count(*), sum(code), sum(n), count(t) FROM refs;
SELECT r.code, u.name FROM refs r JOIN users u ON u.id = r.code;
INSERT INTO bag SELECT code, 1, n, 'from refs' FROM refs;
INSERT INTO bag SELECT u.id, p.id, p.price, 'cross' FROM users u, products p WHERE p.id < 3;
INSERT INTO bag SELECT p.id, u.id, p.price, 'cross back' FROM users u, products p WHERE p.id < 3;
SELECT t, count(*), sum(user_id), sum(n) FROM bag WHERE t IN ('from refs', 'cross', 'cross back') GROUP BY t;
INSERT INTO refs SELECT code, 'x', 1 FROM refs WHERE code < 5 ON CONFLICT DO NOTHING;
--@ error: 23505
--@ loose: which row comes first
INSERT INTO refs SELECT id, 'x', 1 FROM users;

-- Local tables.
INSERT INTO loc SELECT id, name, score FROM users WHERE active;
INSERT INTO loc SELECT count(*), country, sum(score) FROM users GROUP BY country;
INSERT INTO loc SELECT u.id, o.status, o.total FROM users u JOIN orders o ON o.user_id = u.id WHERE o.total > 900;
INSERT INTO loc SELECT n.id, u.name, n.stars FROM local_notes n JOIN users u ON u.id = n.user_id;
INSERT INTO loc SELECT id, name, price FROM products RETURNING id;
INSERT INTO loc SELECT code, t, n FROM refs WHERE code < 200;
INSERT INTO loc SELECT id + 1, t, n FROM loc WHERE id < 5;
SELECT count(*), sum(id), sum(n), count(t) FROM loc;
INSERT INTO bag SELECT id, 1, n, 'from loc' FROM loc;
INSERT INTO bag SELECT u.id, l.id, l.n, 'mixed' FROM loc l JOIN users u ON u.id = l.id;
INSERT INTO bag SELECT user_id, id, stars, body FROM local_notes RETURNING user_id, t;
SELECT count(*), sum(user_id), sum(n) FROM bag WHERE t IN ('from loc', 'mixed');

-- Casts, defaults, and columns in another order.
INSERT INTO dst (id, user_id) SELECT 9000, '77';
INSERT INTO dst (user_id, id, n) SELECT 78.4, 9000.6, 5;
SELECT * FROM dst WHERE id > 8999;
--@ error: 42804
INSERT INTO dst (user_id, id) SELECT name, id FROM users;
--@ error: 42601
INSERT INTO dst (user_id, id) SELECT id FROM users;
--@ error: 42601
INSERT INTO dst (user_id) SELECT id, id FROM users;
--@ error: 23502
INSERT INTO dst (user_id, id) SELECT user_id, NULL FROM orders WHERE user_id = 14;
--@ error: 22012
INSERT INTO bag (user_id, id) SELECT id, 1 / (id - 7)::int FROM users;
SELECT count(*) FROM bag WHERE id = 1 AND t IS NULL;
--@ params: 5, 'p1'
--@ params: 50, 'p2'
INSERT INTO bag (user_id, id, t) SELECT id, 0, $2 FROM users WHERE id > $1::bigint;
SELECT t, count(*) FROM bag WHERE t IN ('p1', 'p2') GROUP BY t;
INSERT INTO bag (user_id, t) SELECT id, 'sub' FROM users WHERE score > (SELECT avg(score) FROM users);
INSERT INTO bag (user_id, t) SELECT u.id, 'lateral' FROM users u, LATERAL (SELECT 1 FROM friends f WHERE f.a = u.id LIMIT 1) x;
WITH w AS (SELECT country, count(*) AS n FROM users GROUP BY country) INSERT INTO by_text (t, n) SELECT country, n FROM w;
WITH w AS (SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id) INSERT INTO bag (user_id, n, t) SELECT user_id, s, 'with' FROM w;
SELECT t, count(*), sum(user_id), sum(n) FROM bag WHERE t IN ('sub', 'lateral', 'with') GROUP BY t;

-- In a transaction that has written.
BEGIN;
UPDATE users SET score = 0 WHERE id < 10;
INSERT INTO bag (user_id, n, t) SELECT id, score, 'tx' FROM users WHERE score = 0;
INSERT INTO bag (user_id, n, t) SELECT b, a, 'tx2' FROM friends WHERE a IN (SELECT id FROM users WHERE score = 0);
INSERT INTO refs SELECT id + 50000, name, score FROM users WHERE score = 0;
INSERT INTO loc SELECT id, name, score FROM users WHERE score = 0;
SELECT t, count(*), sum(user_id) FROM bag WHERE t LIKE 'tx%' GROUP BY t;
SELECT (SELECT count(*) FROM refs WHERE code > 50000), (SELECT count(*) FROM loc WHERE n = 0);
SAVEPOINT a;
--@ error: 23505
INSERT INTO by_int (k) SELECT id FROM users WHERE id IN (1, 100, 101);
ROLLBACK TO a;
INSERT INTO by_int (k) SELECT id + 500 FROM users;
SELECT count(*) FROM by_int;
ROLLBACK;
SELECT (SELECT count(*) FROM bag WHERE t LIKE 'tx%'), (SELECT count(*) FROM by_int), (SELECT count(*) FROM refs WHERE code > 50000);

-- Rows of one key are not updated twice, however many others stand between them.
CREATE TABLE upserted (k int PRIMARY KEY, n int, s bigserial);
--@ cluster: SELECT create_distributed_table('upserted', 'k')
--@ error: 21000
INSERT INTO upserted (k, n) SELECT g % 35000, g FROM generate_series(1, 40000) g ON CONFLICT (k) DO UPDATE SET n = excluded.n;
INSERT INTO upserted (k, n) SELECT g % 35000, g FROM generate_series(1, 40000) g ON CONFLICT (k) DO NOTHING;
INSERT INTO upserted (k, n) SELECT g, 1 FROM generate_series(1, 40000) g ON CONFLICT (k) DO UPDATE SET n = upserted.n + excluded.n;
SELECT count(*), sum(n) FROM upserted;

-- What the coordinator computes may read distributed tables behind a view, a function or a policy, while the first rows are
-- on their way to the workers.
CREATE TABLE many (k int, n int);
--@ cluster: SELECT create_distributed_table('many', 'k')
INSERT INTO many SELECT i, i FROM generate_series(1, 700) i;
CREATE TABLE taken (k int, n int);
--@ cluster: SELECT create_distributed_table('taken', 'k')
CREATE TABLE taken_refs (k int, n int);
--@ cluster: SELECT create_reference_table('taken_refs')
CREATE VIEW seen AS SELECT * FROM many;
CREATE VIEW seen_again AS SELECT k, n FROM seen WHERE n > 100;
CREATE FUNCTION many_rows() RETURNS SETOF many LANGUAGE sql AS 'SELECT * FROM many';
CREATE FUNCTION found_in_many(int) RETURNS int LANGUAGE sql AS 'SELECT n FROM many WHERE k = $1';
CREATE TABLE behind_policy (k int, n int);
INSERT INTO behind_policy SELECT i, i FROM generate_series(1, 1500) i;
INSERT INTO taken SELECT * FROM seen;
INSERT INTO taken (n, k) SELECT n, k FROM seen_again;
INSERT INTO taken SELECT * FROM many_rows();
INSERT INTO taken SELECT i, found_in_many(i) FROM generate_series(1, 1000) i;
INSERT INTO taken SELECT k, n FROM behind_policy WHERE n IN (SELECT n FROM seen);
INSERT INTO taken_refs SELECT * FROM seen_again;
SELECT count(*), sum(k), sum(n), count(n) FROM taken;
SELECT count(*), sum(k), sum(n) FROM taken_refs;
BEGIN;
INSERT INTO many VALUES (1000, 1000);
INSERT INTO taken SELECT * FROM seen;
INSERT INTO taken SELECT t.* FROM taken t JOIN seen s USING (k) WHERE s.k = 1000;
SELECT count(*), sum(k), sum(n) FROM taken;
ROLLBACK;
ALTER TABLE behind_policy ENABLE ROW LEVEL SECURITY;
CREATE POLICY even_or_many ON behind_policy USING (n % 2 = 0 OR EXISTS (SELECT FROM many WHERE many.k = behind_policy.k));
GRANT SELECT ON behind_policy, many TO PUBLIC;
GRANT SELECT, INSERT ON taken TO PUBLIC;
SET ROLE pg_monitor;
INSERT INTO taken SELECT * FROM behind_policy;
SELECT count(*), sum(k), sum(n), count(n) FROM taken;
RESET ROLE;
