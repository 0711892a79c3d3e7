-- What generated statements (`make fuzz`) found, each once wrong on a cluster, in its smallest form.

CREATE TABLE g1 (k int, a int, b text);
CREATE TABLE g2 (k int PRIMARY KEY, a int);
CREATE TABLE gr (k int PRIMARY KEY, a int);
CREATE TABLE gl (k int, a int);
--@ cluster: SELECT create_distributed_table('g1', 'k', shard_count => 5), create_distributed_table('g2', 'k')
--@ cluster: SELECT create_reference_table('gr')
INSERT INTO g1 SELECT i, i % 4, 'x' || i FROM generate_series(1, 12) i;
INSERT INTO g2 SELECT i, i % 3 FROM generate_series(1, 9) i;
INSERT INTO gr SELECT i, i FROM generate_series(1, 5) i;
CREATE FUNCTION g_count(x int) RETURNS int LANGUAGE plpgsql STABLE AS $$ DECLARE n int;
BEGIN SELECT count(*) INTO n FROM g1 WHERE a > x; RETURN n; END $$;

-- A text that is wrong, in a block that has read through the coordinator's foreign tables: it hung.
BEGIN;
SELECT g_count(1);
--@ error: 42883
SELECT k FROM g1 WHERE b > a;
ROLLBACK;
BEGIN;
SELECT g_count(1);
--@ error: 42601
SELECT k FROM g1 WHERE a = 1 = 2;
ROLLBACK;
BEGIN;
SELECT g_count(1);
SAVEPOINT s;
--@ error: 42703
INSERT INTO g1 (k, missing) SELECT 1, 2;
ROLLBACK TO s;
SELECT g_count(0);
COMMIT;
-- The same of COPY.
BEGIN;
SELECT g_count(1);
--@ error: 42703
COPY gr (k, missing) FROM STDIN;
\.
ROLLBACK;
BEGIN;
SELECT g_count(1);
--@ error: 23505
COPY gr FROM STDIN;
1	1
\.
ROLLBACK;
BEGIN;
SELECT g_count(1);
--@ error: 22P02
COPY gl FROM STDIN;
1	x
\.
ROLLBACK;
SELECT count(*) FROM gr;

-- A generated column in a row that the coordinator inserts.
CREATE TABLE gg (k numeric(12,2), a int, g int GENERATED ALWAYS AS (a + 1) STORED, b int);
--@ cluster: SELECT create_distributed_table('gg', 'k')
WITH w AS (INSERT INTO gg (k, a) VALUES (2.5, 1) RETURNING k, a) SELECT w.a, o.a FROM w JOIN g1 o ON o.a = w.a;
DO $$ BEGIN INSERT INTO gg VALUES (3.5, 7, DEFAULT, 8), (4.5, NULL, DEFAULT, 9); END $$;
SELECT * FROM gg;
