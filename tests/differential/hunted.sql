-- What a hunt for wrong answers found, each once wrong on a cluster.

-- Lengths of char(n) and bit(n) are kept where rows pass the router.
CREATE TABLE ch (k int, c char(5), b bit(3));
--@ cluster: SELECT create_distributed_table('ch', 'k')
INSERT INTO ch (k, c) SELECT 1, 'abc';
INSERT INTO ch (k, c) SELECT g, 'q' || g FROM generate_series(2, 9) g;
INSERT INTO ch (k, c) SELECT a.k + 10, b.c FROM ch a JOIN ch b ON a.k = b.k + 1;
INSERT INTO ch (k, b) SELECT 50, B'101';
--@ error: 22001
INSERT INTO ch (k, c) SELECT 7, 'abcdefg';
SELECT k, c, b, length(c) FROM ch;
CREATE TABLE chk (c char(4), n int);
--@ cluster: SELECT create_distributed_table('chk', 'c')
INSERT INTO chk SELECT 'x' || i, i FROM generate_series(1, 20) i;
SELECT n FROM chk WHERE c = 'x1';
SELECT count(*), count(DISTINCT c) FROM chk;

-- IN as a value is NULL where it is not known.
CREATE TABLE n1 (k int, a int);
CREATE TABLE n2 (k int, a int);
--@ cluster: SELECT create_distributed_table('n1', 'k'), create_distributed_table('n2', 'k')
INSERT INTO n1 SELECT g, g FROM generate_series(1, 8) g;
INSERT INTO n2 VALUES (NULL, 1), (1, 1), (2, 2);
SELECT k, k IN (SELECT k FROM n2) FROM n1;
SELECT k, k NOT IN (SELECT k FROM n2) FROM n1;
SELECT k FROM n1 WHERE k IN (SELECT k FROM n2);
SELECT k FROM n1 WHERE k NOT IN (SELECT k FROM n2);
SELECT DISTINCT k IN (SELECT k FROM n2) FROM n1;

-- Temporary tables hide others however they were made.
SELECT 9 AS k INTO TEMP n3;
SELECT count(*) FROM n3;
DO $$ BEGIN CREATE TEMP TABLE n2 (k int); INSERT INTO n2 VALUES (77); END $$;
SELECT * FROM n2;
INSERT INTO n2 VALUES (78);
SELECT count(*) FROM n2;
DROP TABLE pg_temp.n2;
SELECT count(*) FROM n2;

-- COMMIT with what the coordinator's foreign tables have open.
CREATE TABLE beside (k int);
BEGIN;
SAVEPOINT s;
INSERT INTO beside VALUES (1);
UPDATE n1 SET a = a + 1;
SELECT count(*) FROM n1 x JOIN n1 y ON x.a = y.k;
COMMIT;
SELECT count(*), sum(a) FROM n1;
SELECT count(*) FROM beside;

-- A foreign key to a distributed table from a local one cannot hold.
ALTER TABLE n1 ADD PRIMARY KEY (k);
--@ refused: 0A000
ALTER TABLE beside ADD FOREIGN KEY (k) REFERENCES n1 (k);

-- The sum of LIMIT and OFFSET is no number any more.
SELECT k FROM n1 ORDER BY k LIMIT 9223372036854775807 OFFSET 5;
