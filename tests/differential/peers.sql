--@ include: schema.sql
-- What other sharding systems refuse, by family: joins and subqueries that are not on the key, changes of the key, time in writes,
-- DDL after reads in one transaction, definitions that do not reach every node, LIMIT and outer joins over reference tables.

CREATE TABLE t1 (k int PRIMARY KEY, v text, at timestamptz, n int DEFAULT 0);
CREATE TABLE t2 (k int, w text, n int);
--@ cluster: SELECT create_distributed_table('t1', 'k'), create_distributed_table('t2', 'k', colocate_with => 't1')
INSERT INTO t1 (k, v) SELECT g, 'v' || g % 5 FROM generate_series(1, 30) g;
INSERT INTO t2 SELECT g % 12, 'w' || g, g % 7 FROM generate_series(1, 40) g;

-- Joins that are not on the distribution column.
SELECT count(*) FROM t1 a JOIN t1 b ON a.n = b.n AND a.k < b.k;
SELECT a.k, b.w FROM t1 a LEFT JOIN t2 b ON b.n = a.k WHERE a.k < 9;
SELECT a.k, b.w FROM t1 a FULL JOIN t2 b ON b.n = a.k;
SELECT b.w, a.k FROM t2 b RIGHT JOIN t1 a ON a.n = b.k AND b.n > 3;
SELECT a.k FROM t1 a WHERE EXISTS (SELECT 1 FROM t2 b WHERE b.n = a.k);
SELECT a.k FROM t1 a WHERE NOT EXISTS (SELECT 1 FROM t2 b WHERE b.n = a.k) AND a.k < 12;
SELECT a.k, (SELECT count(*) FROM t2 b WHERE b.n = a.k) FROM t1 a WHERE a.k < 9;
SELECT a.k, (SELECT string_agg(b.w, ',' ORDER BY b.w) FROM t2 b WHERE b.n > a.k) FROM t1 a WHERE a.k BETWEEN 4 AND 8;
SELECT a.k, x.w FROM t1 a, LATERAL (SELECT w FROM t2 b WHERE b.n = a.k ORDER BY w LIMIT 1) x;
SELECT a.k, x.c FROM t1 a LEFT JOIN LATERAL (SELECT count(*) AS c FROM t2 b WHERE b.n < a.k) x ON x.c > 20 WHERE a.k < 9;
SELECT * FROM t1 NATURAL JOIN t2 WHERE n = 0;
SELECT count(*) FROM t1 CROSS JOIN t2;
SELECT k FROM t1 WHERE (k, n) IN (SELECT k, n FROM t2);
SELECT k FROM t1 WHERE n = ALL (SELECT n FROM t2 WHERE k > 100) AND k < 4;
SELECT k FROM t1 WHERE k > ANY (SELECT n FROM t2) AND k < 9;
SELECT DISTINCT a.v FROM t1 a JOIN t2 b ON b.n = a.k % 7;

-- Outer joins with a reference table, a VALUES list, a function or a CTE on the outer side.
SELECT p.id, a.k FROM products p LEFT JOIN t1 a ON a.k = p.id;
SELECT p.id, count(a.k) FROM products p LEFT JOIN t1 a ON a.n = p.id GROUP BY p.id;
SELECT p.id, a.k FROM t1 a RIGHT JOIN products p ON a.k = p.id AND a.k > 5;
SELECT p.id, a.k FROM products p FULL JOIN t1 a ON a.k = p.id;
SELECT v.x, a.v FROM (VALUES (1), (100), (NULL)) v (x) LEFT JOIN t1 a ON a.k = v.x;
SELECT g, a.v FROM generate_series(28, 33) g LEFT JOIN t1 a ON a.k = g;
WITH c AS (SELECT 1 AS x UNION ALL SELECT 500) SELECT c.x, a.v FROM c LEFT JOIN t1 a ON a.k = c.x;
SELECT p.id, a.k, b.w FROM products p LEFT JOIN (t1 a LEFT JOIN t2 b ON a.k = b.k) ON a.k = p.id WHERE p.id < 5;
SELECT p.id, a.k FROM products p LEFT JOIN t1 a ON a.k = p.id AND false;
SELECT p.id, a.k FROM products p LEFT JOIN t1 a ON a.k = 5;
SELECT p.id FROM products p WHERE NOT EXISTS (SELECT 1 FROM t1 a WHERE a.k = p.id + 20);
SELECT p.id, a.k FROM products p LEFT JOIN t1 a ON a.k = p.id UNION ALL SELECT NULL, k FROM t1 WHERE k > 28;
SELECT count(*) FROM products p LEFT JOIN t1 a ON true;
SELECT p.id, (SELECT max(a.k) FROM t1 a WHERE a.k < p.id) FROM products p;

-- The first key that is found must not route the whole.
SELECT k FROM t1 WHERE k = 5 UNION SELECT k FROM t1 WHERE k = 6 UNION ALL SELECT k FROM t2 WHERE k = 7;
SELECT count(*) FROM t1 WHERE k IN (SELECT k FROM t2 WHERE k = 5) OR v = 'v1';
SELECT k, CASE WHEN k = 5 THEN 1 END FROM t1 WHERE k < 8;
SELECT k FROM t1 WHERE k = 3 OR n > 100 OR v = 'v2';
SELECT count(*) FILTER (WHERE k = 5) FROM t1;
SELECT a.k, b.k FROM t1 a LEFT JOIN t2 b ON b.k = 5 AND a.k = 5;
SELECT k FROM t1 WHERE (k = 5) = false AND k < 8;
SELECT k FROM t1 WHERE k = 5 AND k = ANY ('{5,6}');
SELECT k FROM t1 WHERE k IN (5, 5) AND NOT k = 6;
DELETE FROM t1 WHERE k = 5 AND k = 6;
UPDATE t1 SET n = 1 WHERE k = 5 OR k = 6;
SELECT sum(n) FROM t1;
UPDATE t1 SET n = 2 WHERE k IN (SELECT k FROM t2 WHERE k = 5) OR k = 7;
SELECT k, n FROM t1 WHERE n > 0;

-- The distribution column changes.
UPDATE t1 SET k = k + 100 WHERE k = 9;
UPDATE t1 SET k = k + 1000 WHERE k IN (10, 11, 12);
UPDATE t2 SET k = k + 50 WHERE n = 3;
SELECT k FROM t1 WHERE k > 40;
SELECT v FROM t1 WHERE k = 109;
SELECT count(*), sum(k) FROM t2;
UPDATE t1 SET k = -k, v = 'negative' WHERE k > 1000 RETURNING k, v;
--@ error: 23505
UPDATE t1 SET k = 1 WHERE k = 2;
UPDATE t2 a SET k = b.k FROM t1 b WHERE b.k = 109 AND a.w = 'w1';
SELECT k, w FROM t2 WHERE k = 109;
BEGIN;
UPDATE t1 SET k = k + 5000;
SELECT count(*), min(k) FROM t1;
ROLLBACK;
SELECT count(*), max(k) FROM t1;

-- Time in writes.
UPDATE t1 SET at = now() WHERE k = 1 RETURNING at = now();
UPDATE t1 SET at = coalesce(at, now());
SELECT count(DISTINCT at), count(at) FROM t1 WHERE k <> 1;
INSERT INTO t1 (k, at) VALUES (1, now()), (2, now()), (201, now()) ON CONFLICT (k) DO UPDATE SET at = now(), n = t1.n + 1 RETURNING k, n;
INSERT INTO t1 (k, at) VALUES (3, DEFAULT), (4, CURRENT_TIMESTAMP) ON CONFLICT (k) DO UPDATE SET at = excluded.at;
SELECT count(*) FROM t1 WHERE at IS NULL;
BEGIN;
UPDATE t1 SET at = now();
INSERT INTO t1 (k, at) SELECT g, now() FROM generate_series(300, 310) g;
SELECT count(DISTINCT at), min(at) = now() FROM t1;
COMMIT;
UPDATE t1 SET at = clock_timestamp() WHERE k < 4;
UPDATE t1 SET n = (random() * 0)::int, v = upper(v);
SELECT v, count(*) FROM t1 GROUP BY v;
DELETE FROM t1 WHERE at > now() + interval '1 day';
DELETE FROM t1 WHERE at < now() - interval '1 day' RETURNING k;

-- Definitions after reads and writes of many shards in one transaction.
BEGIN;
SELECT count(*) FROM t1;
SELECT k FROM t1 WHERE k = 1;
CREATE INDEX t1_v ON t1 (v);
INSERT INTO t1 (k) VALUES (401), (402), (403);
ALTER TABLE t1 ADD COLUMN extra text DEFAULT 'x';
SELECT extra, count(*) FROM t1 GROUP BY extra;
TRUNCATE t2;
INSERT INTO t2 VALUES (1, 'only', 1);
SELECT a.k, b.w FROM t1 a JOIN t2 b USING (k);
DROP INDEX t1_v;
COMMIT;
SELECT count(*), min(extra) FROM t1;
BEGIN;
DELETE FROM t1 WHERE k > 400;
ALTER TABLE t1 DROP COLUMN extra;
ALTER TABLE t1 ADD CONSTRAINT small CHECK (k < 100000);
--@ error: 23514
INSERT INTO t1 (k) VALUES (200000);
ROLLBACK;
SELECT count(*), min(extra) FROM t1;
CREATE TABLE t3 (k int PRIMARY KEY, id serial);
--@ cluster: SELECT create_distributed_table('t3', 'k')
INSERT INTO t3 (k) SELECT generate_series(1, 10);
ALTER SEQUENCE t3_id_seq RESTART WITH 1000 INCREMENT BY 2;
--@ repeat: 1
INSERT INTO t3 (k) VALUES (11) RETURNING id;
ALTER TABLE t3 ALTER COLUMN id SET STATISTICS 300;
ALTER TABLE t3 RENAME COLUMN id TO number;
INSERT INTO t3 (k) VALUES (12), (13), (14);
SELECT count(*), count(DISTINCT number) FROM t3;

-- COPY with conditions.
COPY t2 (k, w) FROM STDIN WHERE k > 5;
1	no
6	yes
7	yes
\.
SELECT k, w FROM t2;
COPY (SELECT k, count(*) FROM t2 GROUP BY k) TO STDOUT;

-- Rows and groups over many shards.
SELECT v, array_agg(k ORDER BY k) FROM t1 WHERE k < 20 GROUP BY v;
SELECT k % 3 AS g, count(*) FROM t1 GROUP BY g HAVING count(*) > 5;
SELECT avg(c) FROM (SELECT count(*) AS c FROM t1 GROUP BY v) x;
SELECT max(k) - min(k), count(*) + 1, 1.0 * sum(k) / count(*) FROM t1;
SELECT count(*) FROM (SELECT k FROM t1 LIMIT 2) x;
--@ ordered
SELECT k FROM t1 ORDER BY k DESC LIMIT 2 OFFSET 3;
--@ ordered
SELECT v, sum(k) AS s FROM t1 GROUP BY v ORDER BY s DESC, v LIMIT 2;
SELECT k FROM t1 WHERE k < 9 EXCEPT SELECT k FROM t2;
SELECT k FROM t1 INTERSECT SELECT n FROM t2;
SELECT k, row_number() OVER (ORDER BY k) FROM t1 WHERE k < 9;
SELECT k, sum(k) OVER (PARTITION BY v ORDER BY k) FROM t1 WHERE k < 9;
SELECT DISTINCT ON (v) v, k FROM t1 ORDER BY v, k;
SELECT k FROM t1 WHERE k IN (SELECT k FROM t1 ORDER BY k DESC LIMIT 3);
WITH a AS (SELECT v, count(*) AS n FROM t1 GROUP BY v) SELECT sum(n), max(n), count(*) FROM a;
SELECT v FROM t1 GROUP BY v HAVING count(*) = (SELECT max(c) FROM (SELECT count(*) AS c FROM t1 GROUP BY v) x);
SELECT GREATEST(max(k), 5), count(DISTINCT v), count(DISTINCT k % 4) FROM t1;

-- Functions that read tables, called for rows.
CREATE FUNCTION of_k(int) RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM t2 WHERE k = $1';
CREATE FUNCTION t1_total() RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(k) FROM t1); END $$;
SELECT k, of_k(k) FROM t1 WHERE k < 9;
SELECT k FROM t1 WHERE of_k(k) > 0;
SELECT t1_total() > 0, count(*) FROM t1 WHERE k = 3;
UPDATE t1 SET n = of_k(k) WHERE k < 9;
SELECT sum(n) FROM t1;
SELECT count(*) FROM t1 WHERE k < t1_total();

-- One time for a transaction, whoever runs its statements.
CREATE TABLE times (what text, at timestamptz);
CREATE TABLE times_ref (what text PRIMARY KEY, at timestamptz);
--@ cluster: SELECT create_reference_table('times_ref')
BEGIN;
UPDATE t1 SET at = now();
INSERT INTO times VALUES ('local', now()), ('word', CURRENT_TIMESTAMP);
INSERT INTO times SELECT 'selected', transaction_timestamp() FROM t1 WHERE k = 1;
INSERT INTO times_ref VALUES ('ref', now());
INSERT INTO t1 (k, at) SELECT g, now() FROM generate_series(700, 705) g;
INSERT INTO t1 (k, at) VALUES (710, now());
INSERT INTO t1 (k, at) SELECT 800 + id, now() FROM local_notes WHERE id < 4;
INSERT INTO times SELECT 'federated', now() FROM local_notes n JOIN t1 ON t1.k = n.id LIMIT 1;
SELECT count(DISTINCT at) FROM (SELECT at FROM t1 UNION ALL SELECT at FROM times UNION ALL SELECT at FROM times_ref UNION ALL SELECT now()) x;
SELECT now() = max(at), now() = min(at), CURRENT_DATE = max(at)::date FROM times;
SELECT now() = (SELECT at FROM t1 WHERE k = 2), localtimestamp = (SELECT at FROM t1 WHERE k = 3)::timestamp;
SELECT now() = clock_timestamp(), now() IS NOT NULL AS there;
ROLLBACK;
BEGIN;
INSERT INTO times VALUES ('first', now());
UPDATE t1 SET at = now() WHERE k = 1;
UPDATE t1 SET at = now() WHERE k IN (2, 3, 4);
SELECT count(DISTINCT at) FROM (SELECT at FROM t1 WHERE k BETWEEN 1 AND 4 UNION ALL SELECT at FROM times) x;
ROLLBACK;
