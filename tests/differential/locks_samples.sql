--@ include: schema.sql
-- Row locks, TABLESAMPLE, FETCH FIRST … WITH TIES, LIMIT and OFFSET by expressions.

-- Row locks.
SELECT id FROM users WHERE id = 5 FOR UPDATE;
SELECT id FROM users WHERE id < 9 FOR UPDATE;
SELECT id FROM users WHERE id < 9 FOR NO KEY UPDATE;
SELECT id FROM users WHERE id < 9 FOR SHARE;
SELECT id FROM users WHERE id < 9 FOR KEY SHARE;
SELECT id FROM users WHERE id < 9 FOR UPDATE NOWAIT;
SELECT id FROM users WHERE id < 9 FOR UPDATE SKIP LOCKED;
SELECT id FROM users ORDER BY id LIMIT 3 FOR UPDATE;
SELECT id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 3 FOR SHARE;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 8 FOR UPDATE OF u;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id = 14 FOR UPDATE OF o SKIP LOCKED;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 8 FOR UPDATE OF u FOR SHARE OF o;
SELECT u.id, r.name FROM users u JOIN regions r ON r.code = u.country WHERE u.id < 8 FOR UPDATE;
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.id < 8 FOR UPDATE OF u;
SELECT code FROM regions WHERE code = 'de' FOR UPDATE;
SELECT code FROM regions FOR SHARE;
SELECT id FROM local_notes WHERE id < 4 FOR UPDATE;
SELECT n.id, u.id FROM local_notes n JOIN users u ON u.id = n.user_id WHERE n.id < 9 FOR UPDATE OF n;
SELECT id FROM (SELECT * FROM users WHERE active FOR UPDATE) s WHERE id < 7;
WITH l AS (SELECT id FROM users WHERE id < 5 FOR UPDATE) SELECT count(*) FROM l;
WITH l AS (SELECT id FROM users WHERE id < 5 FOR UPDATE) UPDATE users SET score = 1 FROM l WHERE l.id = users.id;
UPDATE users SET score = 2 WHERE id IN (SELECT id FROM users WHERE id < 4 FOR UPDATE);
DELETE FROM clicks WHERE user_id = (SELECT id FROM users WHERE id = 8 FOR SHARE);
SELECT f.id FROM friends f JOIN users u ON u.id = f.b WHERE f.id < 9 FOR UPDATE OF f;
--@ error: 0A000
SELECT count(*) FROM users FOR UPDATE;
--@ error: 0A000
SELECT country FROM users GROUP BY country FOR UPDATE;
--@ error: 0A000
SELECT DISTINCT country FROM users FOR UPDATE;
--@ error: 0A000
SELECT id FROM users UNION SELECT id FROM orders FOR UPDATE;
--@ error: 0A000
SELECT id, rank() OVER (ORDER BY id) FROM users FOR UPDATE;
--@ error: 0A000
SELECT u.id FROM regions r LEFT JOIN users u ON r.code = u.country FOR UPDATE;
--@ error: 42P01
SELECT id FROM users FOR UPDATE OF orders;

-- Locks that another session holds.
BEGIN;
SELECT id FROM users WHERE id IN (3, 4, 5) FOR UPDATE;
SELECT id FROM users WHERE id = 6 FOR SHARE;
--@ on: b
SELECT id FROM users WHERE id BETWEEN 1 AND 9 FOR UPDATE SKIP LOCKED;
--@ on: b
SELECT id FROM users WHERE id BETWEEN 1 AND 9 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED;
--@ on: b
SELECT id FROM users WHERE id = 6 FOR SHARE NOWAIT;
--@ on: b
SELECT id FROM users WHERE id = 4 FOR UPDATE SKIP LOCKED;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 4 FOR UPDATE NOWAIT;
--@ on: b
--@ error: 55P03
SELECT count(*) FROM (SELECT id FROM users WHERE id < 9 FOR UPDATE NOWAIT) t;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 3 OR id = 4 FOR UPDATE NOWAIT;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 6 FOR NO KEY UPDATE NOWAIT;
--@ on: b
SET lock_timeout = '100ms';
--@ on: b
--@ error: 55P03
UPDATE users SET score = 5 WHERE id = 3;
--@ on: b
UPDATE users SET score = 5 WHERE id = 30;
ROLLBACK;
--@ on: b
UPDATE users SET score = 5 WHERE id = 3;
SELECT score FROM users WHERE id = 3;
BEGIN;
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
--@ on: b
SELECT count(*) FROM users;
--@ on: b
--@ error: 55P03
DELETE FROM users WHERE id = 60;
--@ on: b
--@ error: 25P01
LOCK TABLE users IN EXCLUSIVE MODE NOWAIT;
--@ on: b
BEGIN;
--@ on: b
--@ error: 55P03
LOCK TABLE users IN EXCLUSIVE MODE NOWAIT;
--@ on: b
ROLLBACK;
COMMIT;
BEGIN;
LOCK TABLE regions IN ACCESS EXCLUSIVE MODE;
--@ on: b
--@ error: 55P03
SELECT count(*) FROM regions;
ROLLBACK;
--@ on: b
SELECT count(*) FROM regions;
--@ error: 25P01
LOCK TABLE users;

-- TABLESAMPLE: of all rows, of none, and how many at most.
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (100);
SELECT count(*) FROM users TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM users TABLESAMPLE SYSTEM (0);
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (0) REPEATABLE (5);
SELECT count(*) <= 60 FROM users TABLESAMPLE BERNOULLI (50);
SELECT count(*) <= 60 FROM users TABLESAMPLE BERNOULLI (50) REPEATABLE (7);
SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6;
SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id = 6;
SELECT u.id, count(o.id) FROM users AS u TABLESAMPLE BERNOULLI (100) LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id;
SELECT r.code FROM regions r TABLESAMPLE BERNOULLI (100) REPEATABLE (1);
SELECT count(*) FROM local_notes TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM orders WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100));
SELECT n.id FROM local_notes n TABLESAMPLE BERNOULLI (0) JOIN users u ON u.id = n.user_id;
SELECT count(*) FROM users u JOIN regions r TABLESAMPLE SYSTEM (0) ON r.code = u.country;

-- Joined with what is elsewhere.
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f TABLESAMPLE BERNOULLI (100) ON f.b = u.id;
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0) JOIN friends f ON f.b = u.id;
SELECT u.id, f.id FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id WHERE u.active AND f.id < 20;
SELECT u.id, f.id FROM friends f TABLESAMPLE BERNOULLI (100) REPEATABLE (3) LEFT JOIN users u ON f.b = u.id AND u.score > 50;
SELECT u.id, count(f.id) FROM users AS u TABLESAMPLE SYSTEM (100) LEFT JOIN friends AS f TABLESAMPLE BERNOULLI (0) ON f.b = u.id GROUP BY u.id;
SELECT a.id, b.id FROM users a (id) TABLESAMPLE SYSTEM (100) JOIN users b ON a.id = b.score WHERE a.id < 50;
SELECT count(*) FROM users a TABLESAMPLE BERNOULLI (50) JOIN users b TABLESAMPLE BERNOULLI (50) ON a.score = b.score WHERE false;
SELECT count(*) FROM users u WHERE score > (SELECT avg(score) FROM users TABLESAMPLE SYSTEM (100));
SELECT count(*) FROM users u WHERE score > (SELECT avg(score) FROM users s TABLESAMPLE SYSTEM (100) WHERE s.country = u.country);
SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM friends f TABLESAMPLE SYSTEM (100) WHERE f.b = u.id);
SELECT u.id FROM users u WHERE NOT EXISTS (SELECT 1 FROM friends f TABLESAMPLE BERNOULLI (0) WHERE f.b = u.id);
WITH s AS (SELECT id, score FROM users TABLESAMPLE BERNOULLI (50)) SELECT (SELECT count(*) FROM s) = (SELECT count(*) FROM s a JOIN s b USING (id));
WITH s AS MATERIALIZED (SELECT id FROM users TABLESAMPLE SYSTEM (100)) SELECT count(*) FROM s JOIN friends f ON f.b = s.id;
SELECT count(*) FROM (SELECT DISTINCT country FROM users TABLESAMPLE SYSTEM (100)) x JOIN regions r ON r.code = x.country JOIN friends f ON f.id = length(r.name);
SELECT id FROM users TABLESAMPLE SYSTEM (100) UNION SELECT b FROM friends TABLESAMPLE SYSTEM (0);
SELECT id FROM users TABLESAMPLE SYSTEM (100) EXCEPT SELECT b FROM friends TABLESAMPLE SYSTEM (100);

-- With local tables, and what only the coordinator computes.
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0) JOIN local_notes n ON n.user_id = u.id;
SELECT n.id, u.name, u.tags, u.meta FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
SELECT n.id, u.* FROM local_notes n LEFT JOIN users AS u TABLESAMPLE BERNOULLI (100) ON n.user_id = u.id WHERE n.id < 9;
SELECT n.id, users.name FROM local_notes n JOIN users TABLESAMPLE SYSTEM (100) ON users.id = n.user_id;
SELECT n.id, x.a, x.b FROM local_notes n JOIN users AS x (a, b) TABLESAMPLE SYSTEM (100) ON x.a = n.user_id;
SELECT count(*), count(u) FROM local_notes n, users u TABLESAMPLE BERNOULLI (100);
SELECT current_database() IS NULL, count(*) FROM users TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM local_notes n JOIN public.users TABLESAMPLE SYSTEM (100) USING (id);
SELECT n.id FROM local_notes n WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE active);
--@ params: 100, 3
--@ params: 0, 3
SELECT n.id, u.id FROM local_notes n JOIN users u TABLESAMPLE BERNOULLI ($1) ON u.id = n.user_id WHERE n.id > $2::int;
--@ params: 100, 20
--@ params: 0, 20
SELECT u.id, f.id FROM users u TABLESAMPLE SYSTEM ($1) JOIN friends f ON f.b = u.id WHERE f.id < $2::int;
--@ error: 2202H
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (200) JOIN local_notes n ON n.user_id = u.id;
--@ error: 42703
SELECT u.nothing FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
SELECT u.id FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (100) ON u.id = n.user_id FOR UPDATE;
SELECT u.id FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (0) ON u.id = n.user_id FOR SHARE OF u;
BEGIN;
SELECT n.id, users.name FROM local_notes n LEFT JOIN users TABLESAMPLE BERNOULLI (100) REPEATABLE (3) ON users.id = n.user_id FOR UPDATE OF n;
ROLLBACK;
SELECT u.id FROM local_notes n, LATERAL (SELECT * FROM users TABLESAMPLE BERNOULLI (n.id * 0 + 100)) u;
--@ error: 42P01
SELECT n.id, u.id FROM local_notes n, users u TABLESAMPLE BERNOULLI (CASE WHEN n.id % 2 = 0 THEN 100 ELSE 0 END) WHERE n.id < 5;
SELECT n.id, (SELECT count(*) FROM users TABLESAMPLE SYSTEM (100 * (n.id % 2)) REPEATABLE (n.id)) FROM local_notes n;
SELECT f.id, (SELECT count(*) FROM users AS x (a, b) TABLESAMPLE SYSTEM (id % 2 * 100) WHERE x.a > f.b) FROM friends f WHERE f.id < 9;

-- Columns keep their collations.
CREATE TABLE sampled_words (k int, word text COLLATE "C");
--@ cluster: SELECT create_distributed_table('sampled_words', 'k')
INSERT INTO sampled_words SELECT g, (ARRAY['b', 'A', 'a', 'B'])[g % 4 + 1] || g FROM generate_series(1, 12) g;
--@ ordered
SELECT w.word FROM sampled_words w TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.id = w.k WHERE w.word < 'a' ORDER BY w.word;
DROP TABLE sampled_words;

-- Written.
CREATE TABLE sampled_kept (id bigint, name text, n int DEFAULT 5);
--@ cluster: SELECT create_distributed_table('sampled_kept', 'id')
INSERT INTO clicks (user_id, url) SELECT id, 'sample' FROM users TABLESAMPLE BERNOULLI (0);
INSERT INTO friends SELECT id + 1000, id, id FROM users TABLESAMPLE BERNOULLI (0);
INSERT INTO sampled_kept SELECT id + 1000, name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 30;
INSERT INTO sampled_kept SELECT f.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id RETURNING id, n;
INSERT INTO sampled_kept SELECT n.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
INSERT INTO sampled_kept VALUES (1, 'one', (SELECT count(*) FROM users TABLESAMPLE SYSTEM (100))), (2, (SELECT max(name) FROM users TABLESAMPLE SYSTEM (0)), 2);
--@ params: 100
INSERT INTO sampled_kept SELECT id + 2000, name FROM users TABLESAMPLE SYSTEM ($1) WHERE id < 5;
INSERT INTO local_notes (user_id, body) SELECT id, 'sampled' FROM users TABLESAMPLE SYSTEM (100) WHERE id BETWEEN 4 AND 9;
UPDATE local_notes n SET body = u.name FROM users u TABLESAMPLE SYSTEM (100) WHERE u.id = n.user_id AND n.body = 'sampled' RETURNING n.user_id, n.body;
DELETE FROM local_notes WHERE id > 1000 AND user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100));
UPDATE sampled_kept k SET n = 6 FROM friends f TABLESAMPLE SYSTEM (100) WHERE f.b = k.id;
DELETE FROM clicks WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (0));
DELETE FROM sampled_kept WHERE id NOT IN (SELECT b FROM friends TABLESAMPLE SYSTEM (0)) AND id > 2000;
WITH gone AS (DELETE FROM sampled_kept k USING friends f TABLESAMPLE SYSTEM (100) WHERE f.b = k.id AND k.id < 5 RETURNING k.id) SELECT count(*) FROM gone;
SELECT id, name, n FROM sampled_kept;
MERGE INTO sampled_kept k USING (SELECT id, name FROM users TABLESAMPLE SYSTEM (100)) u ON u.id = k.id WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, 0);
MERGE INTO sampled_kept k USING (SELECT DISTINCT b FROM friends TABLESAMPLE SYSTEM (100)) f ON f.b = k.id AND k.n = 0 WHEN MATCHED THEN UPDATE SET n = 9;
SELECT id, name, n FROM sampled_kept;
UPDATE regions SET tax = tax WHERE code IN (SELECT country FROM users TABLESAMPLE SYSTEM (100));
INSERT INTO regions SELECT country, 'none', 0 FROM users TABLESAMPLE SYSTEM (0);
BEGIN;
UPDATE users SET name = 'in the block' WHERE id IN (3, 4);
SELECT n.user_id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id WHERE u.id < 6;
SELECT f.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id WHERE u.id < 6;
CREATE TABLE sampled_in_block AS SELECT id, name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6;
SELECT * FROM sampled_in_block;
SAVEPOINT a;
--@ error: 2202H
CREATE TABLE sampled_twice AS SELECT id FROM users TABLESAMPLE SYSTEM (-5);
ROLLBACK TO a;
DECLARE c CURSOR FOR SELECT id + 0 AS id, name || '' AS name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6 ORDER BY id;
UPDATE users SET name = 'later' WHERE id = 3;
FETCH ALL FROM c;
CLOSE c;
ROLLBACK;
CREATE TABLE sampled_users AS SELECT * FROM users TABLESAMPLE BERNOULLI (0);
SELECT count(*) FROM sampled_users;
CREATE TABLE sampled_all AS SELECT u.*, f.id AS f FROM users u TABLESAMPLE BERNOULLI (100) JOIN friends f ON f.b = u.id;
SELECT * FROM sampled_all;
CREATE TEMPORARY TABLE sampled_temporary AS SELECT id, name FROM users TABLESAMPLE BERNOULLI (100) WHERE id < 9;
SELECT * FROM sampled_temporary;
DROP TABLE sampled_temporary;
SELECT id, tags INTO sampled_into FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_into;
COPY (SELECT * FROM users AS u TABLESAMPLE SYSTEM (0)) TO STDOUT;
COPY (SELECT id, name, tags, born FROM users AS u TABLESAMPLE SYSTEM (100) ORDER BY id) TO STDOUT (FORMAT csv, HEADER);
COPY (SELECT n.user_id, u.name FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (100) ON u.id = n.user_id ORDER BY 1, 2) TO STDOUT;
CREATE VIEW sampled_view AS SELECT * FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_view;
SELECT v.id, n.user_id FROM sampled_view v JOIN local_notes n ON n.user_id = v.id;
CREATE OR REPLACE VIEW sampled_view AS SELECT u.*, f.id AS f FROM users u TABLESAMPLE BERNOULLI (100) REPEATABLE (1) JOIN friends f TABLESAMPLE SYSTEM (0) ON f.b = u.id;
SELECT count(*) FROM sampled_view;
DROP VIEW sampled_view;
CREATE MATERIALIZED VIEW sampled_rows AS SELECT * FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_rows;
DELETE FROM users WHERE id = 60;
REFRESH MATERIALIZED VIEW sampled_rows;
SELECT * FROM sampled_rows;
DROP MATERIALIZED VIEW sampled_rows;
CREATE FUNCTION sampled_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0)';
--@ refused: 0A000
SELECT sampled_count();
DROP FUNCTION sampled_count();
--@ refused: 0A000
DO $$ DECLARE c int; BEGIN SELECT count(*) INTO c FROM public.users TABLESAMPLE SYSTEM (0); RAISE NOTICE '%', c; END $$;
CREATE TABLE sampled AS SELECT * FROM local_notes TABLESAMPLE BERNOULLI (0);
SELECT count(*) FROM sampled;
DROP TABLE sampled_kept, sampled_users, sampled_all, sampled_into;
--@ error: 2202H
SELECT count(*) FROM users TABLESAMPLE SYSTEM (101);
--@ error: 2202H
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (-1);
--@ error: 42704
SELECT count(*) FROM users TABLESAMPLE nowhere (1);

-- FETCH FIRST, WITH TIES.
--@ ordered
SELECT id FROM users ORDER BY id FETCH FIRST 3 ROWS ONLY;
--@ ordered
SELECT id FROM users ORDER BY id OFFSET 2 ROWS FETCH NEXT ROW ONLY;
SELECT country, id FROM users ORDER BY country FETCH FIRST 2 ROWS WITH TIES;
SELECT country, id FROM users ORDER BY country NULLS FIRST FETCH FIRST 1 ROW WITH TIES;
SELECT user_id, count(*) FROM orders GROUP BY user_id ORDER BY count(*) DESC FETCH FIRST 3 ROWS WITH TIES;
SELECT active FROM users ORDER BY active OFFSET 5 FETCH FIRST 5 ROWS WITH TIES;
SELECT status, id FROM orders ORDER BY status DESC FETCH FIRST (1 + 1) ROWS WITH TIES;
SELECT id FROM orders WHERE user_id = 14 ORDER BY status FETCH FIRST 1 ROWS WITH TIES;
SELECT score FROM users ORDER BY score DESC FETCH FIRST 5 ROWS WITH TIES;
SELECT DISTINCT status FROM orders ORDER BY status FETCH FIRST 2 ROWS WITH TIES;
SELECT count(*) FROM (SELECT id FROM users ORDER BY country FETCH FIRST 3 ROWS WITH TIES) t;
SELECT o.id FROM orders o WHERE o.user_id IN (SELECT id FROM users ORDER BY country FETCH FIRST 2 ROWS WITH TIES);
SELECT code FROM regions ORDER BY tax NULLS FIRST FETCH FIRST 1 ROWS WITH TIES;
SELECT country, id FROM users WHERE false ORDER BY country FETCH FIRST 2 ROWS WITH TIES;
SELECT url FROM clicks ORDER BY url FETCH FIRST 0 ROWS WITH TIES;
SELECT u.country, f.id FROM users u JOIN friends f ON f.b = u.id ORDER BY u.country FETCH FIRST 1 ROW WITH TIES;
(SELECT id FROM users ORDER BY active FETCH FIRST 1 ROW WITH TIES) INTERSECT SELECT user_id FROM orders;
--@ error: 42601
SELECT id FROM users FETCH FIRST 2 ROWS WITH TIES;
--@ error: 42601
SELECT id FROM users ORDER BY id FETCH FIRST 2 ROWS WITH TIES FOR UPDATE SKIP LOCKED;

-- LIMIT and OFFSET by expressions and parameters.
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 2 + 1 OFFSET 4 - 1;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT ALL OFFSET 57;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT NULL OFFSET 57;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT (SELECT count(*) / 10 FROM users);
--@ ordered
SELECT id FROM users ORDER BY id OFFSET (SELECT max(user_id) FROM orders);
--@ params: 3, 2
--@ params: 0, 0
--@ params: NULL, 58
--@ ordered
SELECT id FROM users ORDER BY id LIMIT $1::bigint OFFSET $2::bigint;
--@ params: 2
--@ ordered
SELECT country, count(*) FROM users GROUP BY country ORDER BY country NULLS LAST LIMIT $1::int;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT '2'::int;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 1.5;
--@ error: 2201W
SELECT id FROM users ORDER BY id LIMIT -1;
--@ error: 2201X
SELECT id FROM users ORDER BY id OFFSET -1;
--@ error: 42P10
SELECT id FROM users ORDER BY id LIMIT id;
SELECT count(*) FROM (SELECT id FROM users LIMIT 7) t;
SELECT count(*) FROM (SELECT id FROM users OFFSET 7) t;
SELECT count(*) FROM (SELECT id FROM users LIMIT 0) t;
SELECT count(*) FROM (SELECT user_id FROM clicks LIMIT 11 OFFSET 140) t;
SELECT max(id) FROM (SELECT id FROM users ORDER BY id LIMIT 7) t;
--@ ordered
SELECT DISTINCT ON (country) country, id FROM users ORDER BY country, id LIMIT 3;
--@ ordered
SELECT DISTINCT ON (user_id) user_id, id, total FROM orders ORDER BY user_id, total DESC NULLS LAST, id LIMIT 6 OFFSET 1;
--@ ordered
SELECT id, score FROM users ORDER BY score * -1 NULLS FIRST, id LIMIT 9;
--@ ordered
SELECT id FROM users ORDER BY length(name) DESC NULLS LAST, name, id LIMIT 9;
--@ ordered
SELECT id AS x FROM users ORDER BY x DESC LIMIT 2;
--@ ordered
SELECT id, name COLLATE "C" FROM users ORDER BY 2, 1 LIMIT 8;
--@ ordered
SELECT u.id FROM users u ORDER BY (SELECT count(*) FROM orders o WHERE o.user_id = u.id) DESC, u.id LIMIT 4;
--@ ordered
SELECT id FROM users ORDER BY country USING >, id LIMIT 6;
