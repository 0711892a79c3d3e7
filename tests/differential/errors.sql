--@ include: schema.sql
-- Errors read as on one server, with every field, and leave nothing behind.

--@ error: 42601
SELEC 1;
--@ error: 42601
SELECT FROM WHERE;
--@ error: 42601
SELECT * FROM users WHERE id = ;
--@ error: 42601
INSERT INTO users VALUES;
SELECT 1;
--@ error: 42P01
SELECT * FROM nowhere;
--@ error: 42P01
SELECT u.id FROM users u JOIN nowhere n ON n.id = u.id;
--@ error: 42P01
SELECT nowhere.id FROM users;
--@ error: 42P01
SELECT users.id FROM users u;
--@ error: 3F000
CREATE TABLE noschema.t (a int);
--@ error: 42P01
SELECT * FROM noschema.users;
--@ error: 42703
SELECT nope FROM users;
--@ error: 42703
SELECT nope FROM users WHERE id = 5;
--@ error: 42703
SELECT id FROM users WHERE nope = 5;
--@ error: 42703
SELECT u.nope, id FROM users u WHERE id = 5 AND name = 'x';
--@ error: 42703
SELECT id FROM users ORDER BY nope;
--@ error: 42703
SELECT country, count(*) FROM users GROUP BY nope;
--@ error: 42703
SELECT scores FROM users;
--@ error: 42702
SELECT id FROM users u JOIN orders o ON o.user_id = u.id;
--@ error: 42883
SELECT nofunc(id) FROM users;
--@ error: 42883
SELECT length(id) FROM users WHERE id = 5;
--@ error: 42883
SELECT id + name FROM users;
--@ error: 42883
SELECT id FROM users WHERE name = 5;
--@ error: 42883
SELECT id FROM users WHERE born = 5;
--@ error: 42704
SELECT id::notype FROM users;
--@ error: 22P02
SELECT id FROM users WHERE id = 'abc';
--@ error: 22P02
SELECT id FROM users WHERE score > 'abc' AND id = 5;
--@ error: 22P02
SELECT name::int FROM users WHERE id = 5;
--@ error: 22P02
SELECT sum(name::int) FROM users WHERE id = 5;
--@ error: 22007
SELECT id FROM users WHERE born = 'not a date';
--@ error: 22012
SELECT 1 / 0;
--@ error: 22012
SELECT id / (id - 5) FROM users WHERE id = 5;
--@ error: 22012
SELECT sum(id / (id - id)) FROM users;
--@ error: 22012
SELECT count(*) / 0 FROM users;
--@ error: 22003
SELECT id * 9223372036854775807 FROM users WHERE id = 5;
--@ error: 22003
SELECT (id + 40000)::smallint FROM users WHERE id = 5;
--@ error: 22001
INSERT INTO orders (user_id, id, placed, status) VALUES (1, 9000, '2020-01-01', 'much longer than twelve');
--@ error: 42804
SELECT CASE WHEN active THEN 1 ELSE true END FROM users;
--@ error: 42804
SELECT id FROM users WHERE score;
--@ error: 42803
SELECT id, count(*) FROM users GROUP BY country;
--@ error: 42P20
SELECT id FROM users WHERE row_number() OVER () = 1;
--@ error: 0A000
SELECT id FROM users WHERE generate_series(1, 2) = 1;
--@ error: 42P19
WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT count(*)::int FROM t) SELECT * FROM t;
--@ error: 42712
SELECT 1 FROM users, users;
--@ error: 22004
SELECT array_agg(tags) FROM users WHERE id < 4;

-- Constraints, with their names and details.
--@ error: 23505
INSERT INTO users (id, created) VALUES (7, now());
--@ error: 23505
INSERT INTO orders (user_id, id, placed) VALUES (14, 141, '2020-01-01');
--@ error: 23505
INSERT INTO products VALUES (1, 'again', 1);
--@ error: 23505
INSERT INTO local_notes (id) VALUES (1);
--@ error: 23505
UPDATE orders SET id = 141 WHERE user_id = 14 AND id = 142;
--@ error: 23502
INSERT INTO users (id) VALUES (4000);
--@ error: 23502
UPDATE orders SET placed = NULL WHERE user_id = 14;
--@ error: 23514
INSERT INTO products VALUES (100, 'negative', -1);
--@ error: 23503
INSERT INTO orders (user_id, id, placed) VALUES (4000, 1, '2020-01-01');
--@ error: 23503
DELETE FROM products WHERE id = 2;
CREATE TABLE checked (k int, a int CHECK (a > 0), b int CONSTRAINT b_small CHECK (b < 100), UNIQUE (k, a));
--@ cluster: SELECT create_distributed_table('checked', 'k')
--@ error: 23514
INSERT INTO checked VALUES (1, 0, 1);
--@ error: 23514
INSERT INTO checked VALUES (1, 1, 100);
--@ error: 23514
INSERT INTO checked VALUES (1, 1, 1), (2, 2, 2), (3, 3, 300);
INSERT INTO checked VALUES (1, 1, 1), (NULL, 1, 1), (NULL, 1, 1);
--@ error: 23505
INSERT INTO checked VALUES (1, 1, 2);
--@ error: 23505
INSERT INTO checked VALUES (5, 5, 5), (6, 6, 6), (5, 5, 7);
SELECT * FROM checked;
--@ error: 22003
INSERT INTO checked VALUES (2147483648, 1, 1);
--@ error: 22003
INSERT INTO checked VALUES (2147483647 + 1, 1, 1);

-- Objects.
--@ error: 42P07
CREATE TABLE users (a int);
CREATE TABLE IF NOT EXISTS users (a int);
--@ error: 42P01
DROP TABLE nowhere;
DROP TABLE IF EXISTS nowhere;
--@ error: 42P01
ALTER TABLE nowhere ADD COLUMN a int;
--@ error: 42701
ALTER TABLE users ADD COLUMN name text;
--@ error: 42703
ALTER TABLE users DROP COLUMN nope;
--@ error: 2BP01
DROP TABLE orders;
--@ error: 42704
DROP INDEX nowhere_idx;
--@ error: 42P07
CREATE INDEX orders_placed_idx ON orders (id);
--@ error: 42704
ALTER TABLE orders DROP CONSTRAINT nope;
--@ error: 42883
DROP FUNCTION nofunc(int);
--@ error: 42809
DROP VIEW users;
--@ error: 55000
INSERT INTO order_totals VALUES (1, 1, 1);
--@ error: 25001
BEGIN\; VACUUM users\; COMMIT;
ROLLBACK;
--@ error: 42704
SET nosetting = 1;
--@ error: 22023
SET work_mem = 'much';
--@ error: 42704
SHOW nosetting;
--@ error: P0001
DO $$ BEGIN RAISE EXCEPTION 'from a block' USING DETAIL = 'a detail', HINT = 'a hint'; END $$;
DO $$ BEGIN RAISE NOTICE 'only a notice'; END $$;
--@ error: 22023
SELECT * FROM generate_series(1, 10, 0);
--@ error: 08P01
--@ mode: extended
--@ params: 1, 2
SELECT id FROM users WHERE id = $1;
--@ error: 42P02
--@ mode: simple
SELECT id FROM users WHERE id = $1;
--@ error: 42P18
--@ mode: prepared
--@ params: 1
SELECT $1 IS NULL FROM users WHERE id = 5;
--@ error: 22P02
--@ params: 'x', 5
UPDATE users SET score = $1 WHERE id = $2;
--@ error: 22021
--@ mode: extended prepared
SELECT id FROM users WHERE name = E'\xff';
-- The session goes on.
SELECT count(*) FROM users;
SELECT name FROM users WHERE id = 5;

-- What a statement that writes would return is described once it has been written.
CREATE TABLE returned (k int PRIMARY KEY, v int CHECK (v < 100), w text);
--@ cluster: SELECT create_distributed_table('returned', 'k')
INSERT INTO returned VALUES (1, 1, 'a'), (2, 2, 'b') RETURNING k, w;
--@ error: 23505
INSERT INTO returned VALUES (1, 1, 'a') RETURNING k, w;
--@ error: 23514
UPDATE returned SET v = 1000 WHERE k = 2 RETURNING *;
--@ error: 22012
UPDATE returned SET v = v / (v - v) WHERE k = 1 RETURNING v;
--@ error: 22012
DELETE FROM returned WHERE k = 1 RETURNING 1 / (v - v);
--@ error: 22P02
INSERT INTO returned VALUES (3, 1, 'x') RETURNING w::int;
DELETE FROM returned WHERE k = 7 RETURNING *;
UPDATE returned SET w = w || '!' WHERE k = 1 RETURNING w, v;
SELECT * FROM returned;
