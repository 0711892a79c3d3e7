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
SELECT name, is_holdable, is_scrollable FROM pg_cursors WHERE name IN ('one_shard', 'local_one');
CLOSE ALL;
COMMIT;
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
--@ refused: 0A000
UPDATE users SET name = 'current' WHERE CURRENT OF u RETURNING id, name;
ROLLBACK TO before;
--@ refused: 0A000
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
