--@ include: schema.sql
-- SQL PREPARE and EXECUTE, cursors of every kind.

PREPARE one (bigint) AS SELECT id, name FROM users WHERE id = $1;
EXECUTE one (7);
EXECUTE one (8);
EXECUTE one (3 + 4);
EXECUTE one (NULL);
--@ error: 0A000
EXECUTE one ((SELECT max(id) FROM products));
PREPARE untyped AS SELECT id FROM users WHERE id = $1 OR name = $2;
EXECUTE untyped (1, 'user 2');
PREPARE many AS SELECT country, count(*) FROM users GROUP BY country HAVING count(*) > $1;
EXECUTE many (9);
EXECUTE many (0);
PREPARE ins (bigint, text) AS INSERT INTO clicks (user_id, url) VALUES ($1, $2) RETURNING user_id, url;
EXECUTE ins (1001, 'prepared');
EXECUTE ins (1002, 'prepared');
EXECUTE ins (1003, 'prepared');
SELECT user_id FROM clicks WHERE url = 'prepared';
PREPARE upd AS UPDATE clicks SET ms = $2 WHERE user_id = $1;
EXECUTE upd (1002, 5);
PREPARE del AS DELETE FROM clicks WHERE url = $1;
EXECUTE del ('prepared');
SELECT count(*) FROM clicks WHERE url = 'prepared';
SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements WHERE from_sql AND name = 'one';
CREATE TABLE from_execute AS EXECUTE one (9);
SELECT * FROM from_execute;
CREATE TABLE from_execute_empty (user_id, user_name) AS EXECUTE one (9) WITH NO DATA;
SELECT * FROM from_execute_empty;
CREATE TEMP TABLE from_execute_temp AS EXECUTE many (9);
SELECT count(*) FROM from_execute_temp;
DROP TABLE from_execute_temp;
--@ error: 42601
CREATE TABLE from_execute_failed AS EXECUTE one;
--@ error: 22P02
CREATE TABLE from_execute_failed AS EXECUTE one ('x');
--@ error: 42809
CREATE TABLE from_execute_failed AS EXECUTE upd (1, 2);
--@ error: 42P07
CREATE TABLE from_execute AS EXECUTE one (10);
BEGIN;
CREATE TABLE from_execute_block AS EXECUTE many (0);
SELECT country, count FROM from_execute_block;
SELECT u.id, b.count FROM users u JOIN from_execute_block b ON b.country = u.country WHERE u.id = 2;
ROLLBACK;
SELECT name, statement, parameter_types FROM pg_catalog.pg_prepared_statements p WHERE p.from_sql;
SELECT to_jsonb(p) - '{prepare_time,generic_plans,custom_plans}'::text[] FROM pg_prepared_statements p WHERE from_sql;
SELECT count(*) FROM pg_prepared_statements JOIN users ON users.name = pg_prepared_statements.name;
PREPARE of_local AS SELECT body FROM local_notes WHERE id = $1;
EXPLAIN (COSTS OFF) EXECUTE of_local (1);
--@ error: 42601
EXPLAIN EXECUTE of_local;
--@ error: 26000
EXPLAIN EXECUTE nothing;
--@ error: 42P05
PREPARE one AS SELECT 1;
--@ error: 42601
EXECUTE one;
--@ error: 22P02
EXECUTE one ('x');
--@ error: 26000
EXECUTE nothing;
DEALLOCATE one;
--@ error: 26000
EXECUTE one (7);
--@ error: 26000
DEALLOCATE one;
BEGIN;
PREPARE in_tx AS SELECT count(*) FROM users;
ROLLBACK;
EXECUTE in_tx;
--@ mode: simple
DEALLOCATE ALL;
--@ error: 26000
--@ mode: simple
EXECUTE in_tx;
-- A table that changes below a prepared statement.
CREATE TABLE changing (k int, a int);
--@ cluster: SELECT create_distributed_table('changing', 'k')
INSERT INTO changing VALUES (1, 1), (2, 2);
PREPARE star AS SELECT a FROM changing WHERE k = $1;
EXECUTE star (1);
ALTER TABLE changing ADD COLUMN b int DEFAULT 9;
EXECUTE star (2);
PREPARE star2 AS SELECT * FROM changing WHERE k = $1;
EXECUTE star2 (1);
ALTER TABLE changing ADD COLUMN c int DEFAULT 10;
--@ error: 0A000
EXECUTE star2 (2);

-- Cursors.
--@ error: 25P01
DECLARE c CURSOR FOR SELECT 1;
BEGIN;
DECLARE c CURSOR FOR SELECT id FROM users ORDER BY id;
--@ ordered
FETCH 3 FROM c;
FETCH c;
FETCH NEXT FROM c;
--@ ordered
FETCH FORWARD 2 FROM c;
MOVE 5 IN c;
FETCH c;
MOVE FORWARD ALL IN c;
FETCH c;
CLOSE c;
--@ error: 34000
FETCH c;
ROLLBACK;
BEGIN;
DECLARE s SCROLL CURSOR FOR SELECT id, name FROM users WHERE id < 20 ORDER BY id;
FETCH LAST FROM s;
FETCH PRIOR FROM s;
FETCH FIRST FROM s;
FETCH ABSOLUTE 5 FROM s;
FETCH RELATIVE 2 FROM s;
FETCH RELATIVE -3 FROM s;
--@ ordered
FETCH BACKWARD 2 FROM s;
MOVE ABSOLUTE 0 IN s;
--@ ordered
FETCH ALL FROM s;
--@ ordered
FETCH BACKWARD ALL FROM s;
COMMIT;
BEGIN;
DECLARE g CURSOR FOR SELECT country, count(*) FROM users GROUP BY country ORDER BY country NULLS FIRST;
--@ ordered
FETCH 2 FROM g;
SELECT count(*) FROM orders;
UPDATE users SET score = 5 WHERE id = 50;
--@ ordered
FETCH ALL FROM g;
COMMIT;
BEGIN;
DECLARE one_shard CURSOR FOR SELECT id FROM orders WHERE user_id = 14 ORDER BY id;
--@ ordered
FETCH 2 FROM one_shard;
DECLARE local_one CURSOR FOR SELECT body FROM local_notes ORDER BY id;
FETCH local_one;
FETCH one_shard;
-- Whether a cursor may go back that was declared with neither SCROLL nor NO SCROLL depends on the plan.
SELECT name, statement, is_holdable, is_binary FROM pg_cursors WHERE name IN ('one_shard', 'local_one');
DECLARE scrolls SCROLL CURSOR FOR SELECT id FROM orders;
DECLARE never BINARY NO SCROLL CURSOR FOR SELECT relname FROM pg_class;
DECLARE stays INSENSITIVE SCROLL CURSOR WITH HOLD FOR SELECT id FROM orders WHERE user_id = 14;
SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_catalog.pg_cursors c WHERE c.name IN ('scrolls', 'never', 'stays');
SELECT to_jsonb(c) - 'creation_time' FROM pg_cursors c WHERE name = 'scrolls';
CLOSE never;
SELECT count(*) FROM pg_cursors WHERE name = 'never';
COMMIT;
SELECT name, is_holdable, is_scrollable FROM pg_cursors WHERE name <> '';
CLOSE ALL;
SELECT count(*) FROM pg_cursors WHERE name <> '';
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM users ORDER BY id DESC;
--@ ordered
FETCH 2 FROM h;
COMMIT;
--@ ordered
FETCH 3 FROM h;
CLOSE h;
DECLARE h2 CURSOR WITH HOLD FOR SELECT id, total FROM orders WHERE user_id = 14 ORDER BY id;
--@ ordered
FETCH ALL FROM h2;
CLOSE h2;
BEGIN;
DECLARE sp CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH sp;
SAVEPOINT x;
FETCH sp;
--@ error: 22012
SELECT 1 / 0;
ROLLBACK TO x;
FETCH sp;
COMMIT;
BEGIN;
DECLARE u CURSOR FOR SELECT id FROM users WHERE id = 10 FOR UPDATE;
FETCH u;
SAVEPOINT before;
UPDATE users SET name = 'current' WHERE CURRENT OF u RETURNING id, name;
ROLLBACK TO before;
DELETE FROM users WHERE CURRENT OF u;
ROLLBACK;
BEGIN;
DECLARE ns NO SCROLL CURSOR FOR SELECT id FROM users ORDER BY id;
--@ ordered
FETCH 2 FROM ns;
--@ error: 55000
FETCH PRIOR FROM ns;
ROLLBACK;
BEGIN;
DECLARE param CURSOR FOR SELECT id FROM users WHERE score > 50 ORDER BY id;
--@ error: 42P03
DECLARE param CURSOR FOR SELECT 1;
ROLLBACK;
-- A prepared statement means what its text means under the search path that it is run with.
CREATE SCHEMA path_a;
CREATE SCHEMA path_b;
CREATE SCHEMA path_c;
CREATE TABLE path_a.pt (k int PRIMARY KEY, v int);
CREATE TABLE path_b.pt (k int PRIMARY KEY, v text, more int);
CREATE TABLE path_c.pt (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('path_a.pt', 'k')
--@ cluster: SELECT create_distributed_table('path_b.pt', 'k')
--@ cluster: SELECT create_distributed_table('path_c.pt', 'k')
INSERT INTO path_a.pt VALUES (1, 10), (2, 20);
INSERT INTO path_b.pt VALUES (1, 'ten', 0), (2, 'twenty', 0);
INSERT INTO path_c.pt VALUES (1, 100), (2, 200);
SET search_path = path_a, public;
PREPARE pp AS SELECT * FROM pt WHERE k = 1;
PREPARE pq (int) AS SELECT v FROM pt WHERE k = $1;
PREPARE ps AS SELECT * FROM pt ORDER BY k;
EXECUTE pp;
EXECUTE pq (2);
EXECUTE ps;
SET search_path = path_b, public;
--@ error: 0A000
EXECUTE pp;
--@ error: 0A000
EXECUTE pq (2);
--@ error: 0A000
EXECUTE ps;
SET search_path = path_c, public;
EXECUTE pp;
EXECUTE pq (2);
EXECUTE ps;
SET search_path = path_a, public;
EXECUTE pp;
EXECUTE pq (2);
ALTER TABLE path_a.pt ADD COLUMN more int;
--@ error: 0A000
EXECUTE pp;
EXECUTE pq (2);
DEALLOCATE pp;
DEALLOCATE pq;
DEALLOCATE ps;
RESET search_path;
DROP SCHEMA path_a, path_b, path_c CASCADE;

-- The arguments of EXECUTE are computed in the transaction.
CREATE SEQUENCE numbers_given;
CREATE TABLE given (n int, at timestamptz);
CREATE FUNCTION give() RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN INSERT INTO given VALUES (1, now()) RETURNING n INTO r; RETURN r; END $$;
CREATE FUNCTION click(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO clicks (user_id, url) VALUES ($1, 'argument'); RETURN $1; END $$;
PREPARE takes (bigint) AS SELECT id FROM users WHERE id = $1;
BEGIN;
EXECUTE takes (give());
EXECUTE takes (click(5));
SELECT count(*) FROM given;
SELECT user_id FROM clicks WHERE url = 'argument';
ROLLBACK;
SELECT count(*) FROM given;
SELECT user_id FROM clicks WHERE url = 'argument';
EXECUTE takes (click(6));
SELECT user_id FROM clicks WHERE url = 'argument';
EXECUTE takes (nextval('numbers_given'));
SELECT currval('numbers_given');
PREPARE times (timestamptz) AS SELECT $1 = now(), count(*) FROM users WHERE $1 = now();
BEGIN;
SELECT 1 FROM (SELECT pg_sleep(0.01)) p;
EXECUTE times (now());
EXECUTE times ('now');
EXECUTE times (CURRENT_TIMESTAMP);
COMMIT;
EXECUTE times (now());
BEGIN;
INSERT INTO clicks (user_id, url) VALUES (9, 'seen');
CREATE FUNCTION seen() RETURNS bigint LANGUAGE sql AS $$ SELECT user_id FROM clicks WHERE url = 'seen' $$;
EXECUTE takes (seen());
ROLLBACK;
--@ error: 0A000
EXECUTE takes (1 / (SELECT 0));
--@ error: 22012
EXECUTE takes (abs(1) / 0);
DEALLOCATE takes;
DEALLOCATE times;
