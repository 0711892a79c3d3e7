--@ include: schema.sql
-- Parts of a statement run first (Stage) in a transaction that has written: joins split by another column, decorrelated aggregates,
-- CTEs, full joins, subqueries; after each kind of write, and after ROLLBACK TO SAVEPOINT.

CREATE TABLE a (k int PRIMARY KEY, b int, v int);
CREATE TABLE b (k int PRIMARY KEY, a int, w text);
CREATE TABLE c (k text PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('a', 'k', colocate_with => 'none'), create_distributed_table('b', 'k', colocate_with => 'none'), create_distributed_table('c', 'k')
INSERT INTO a SELECT g, g * 7 % 50, g % 9 FROM generate_series(1, 300) g;
INSERT INTO b SELECT g, g * 3 % 300, 'w' || g % 12 FROM generate_series(1, 200) g;
INSERT INTO c SELECT 'w' || g, g FROM generate_series(0, 15) g;
ANALYZE a;
ANALYZE b;
ANALYZE c;

BEGIN;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
UPDATE a SET v = v + 100 WHERE k % 3 = 0;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
SELECT b.w, sum(a.v) FROM a JOIN b ON a.b = b.k GROUP BY b.w;
SELECT a.k, b.k FROM a JOIN b ON a.v = b.k + 90 WHERE a.k < 60;
INSERT INTO b SELECT g, g % 20, 'new' FROM generate_series(300, 330) g;
SELECT a.k, count(*) FROM a JOIN b ON b.a = a.k GROUP BY a.k HAVING count(*) > 1;
SELECT b.w, c.n, count(*) FROM b LEFT JOIN c ON c.k = b.w GROUP BY b.w, c.n;
SELECT count(*), count(c.k), count(b.k) FROM b FULL JOIN c ON c.k = b.w;
SELECT c.k, b.k FROM b FULL JOIN c ON c.k = b.w AND b.k > 310 WHERE b.k IS NULL OR b.k > 300;
SELECT count(*), count(a.k), count(b.k) FROM a FULL JOIN b ON a.k = b.a;
SELECT count(*), count(x.k), count(y.k), sum(y.v) FROM a x FULL JOIN a y ON x.k = y.k AND x.v > 99;
SELECT y.k, count(*), count(x.k) FROM a x FULL JOIN a y ON x.k = y.k AND x.v > 99 AND y.v < 105 WHERE x.k < 40 OR y.k < 40 GROUP BY y.k;
SELECT a.k, a.v FROM a WHERE a.v > (SELECT avg(x.v) FROM a x WHERE x.b = a.b);
SELECT a.k FROM a WHERE a.v = (SELECT max(x.v) FROM a x WHERE x.b = a.b) AND a.k < 80;
SELECT b.k FROM b WHERE (SELECT count(*) FROM a WHERE a.b = b.a) > 6;
SELECT b.k FROM b WHERE b.a < (SELECT sum(a.v) / 200 FROM a WHERE a.b = b.k);
SELECT c.k, (SELECT count(*) FROM b WHERE b.w = c.k) FROM c;
SELECT c.k, (SELECT max(a.v) FROM a JOIN b ON a.b = b.a WHERE b.w = c.k) FROM c;
DELETE FROM c WHERE n > 10;
SELECT c.k, (SELECT count(*) FROM b WHERE b.w = c.k) FROM c;
SELECT b.k FROM b WHERE b.w NOT IN (SELECT k FROM c);
SELECT count(*) FROM a WHERE a.b IN (SELECT b.a FROM b WHERE b.w IN (SELECT k FROM c WHERE n < 4));
SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.a = a.b AND b.w = 'new');
SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON c.k = b.w WHERE b.a = a.b AND c.n < a.v);
WITH s AS (SELECT b, sum(v) AS v FROM a GROUP BY b) SELECT b.k, s.v FROM b JOIN s ON s.b = b.a WHERE b.k < 30;
WITH s AS (SELECT b, sum(v) AS v FROM a GROUP BY b), t AS (SELECT a, count(*) AS n FROM b GROUP BY a) SELECT count(*), sum(s.v * t.n) FROM s JOIN t ON s.b = t.a;
WITH s AS (SELECT * FROM a WHERE v > 100) SELECT x.k, y.k FROM s x JOIN s y ON x.b = y.b AND x.k < y.k;
SELECT count(*) FROM a JOIN b ON a.b = b.a JOIN c ON c.k = b.w;
SELECT a.b, rank() OVER (ORDER BY sum(a.v) DESC, a.b) FROM a JOIN b ON a.b = b.a GROUP BY a.b;
--@ ordered
SELECT a.k, b.k, a.v FROM a JOIN b ON a.b = b.a ORDER BY a.v DESC, a.k, b.k LIMIT 9;
--@ ordered
SELECT DISTINCT b.w FROM a JOIN b ON a.b = b.a ORDER BY b.w;
SELECT w, count(*) FROM (SELECT b.w, a.v FROM a JOIN b ON a.b = b.a UNION ALL SELECT c.k, c.n FROM c) u GROUP BY w;
SELECT u.id, a.v FROM users u JOIN a ON a.b = u.id WHERE a.v > 104;
SELECT u.country, count(*) FROM users u JOIN a ON a.b = u.id JOIN b ON b.a = a.k GROUP BY u.country;
SELECT n.id, a.k FROM local_notes n JOIN a ON a.b = n.user_id WHERE a.v > 100;
SELECT r.name, count(a.k) FROM regions r LEFT JOIN a ON a.v = r.tax::int GROUP BY r.name;
SELECT count(*) FROM a x, b y, c z WHERE x.b = y.a AND y.w = z.k AND x.v < z.n;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a.v) FROM a JOIN b ON a.b = b.a;
SELECT b.w, count(DISTINCT a.v) FROM a JOIN b ON a.b = b.a GROUP BY ROLLUP (b.w);
SELECT x.k FROM a x, LATERAL (SELECT count(*) AS n FROM b WHERE b.a = x.b) y WHERE y.n > 6 AND x.k < 50;
INSERT INTO a SELECT 1000 + b.k, min(a.k), 0 FROM a JOIN b ON a.b = b.a GROUP BY b.k;
SELECT count(*), sum(b) FROM a WHERE k > 1000;
UPDATE a SET v = -1 WHERE b IN (SELECT b.a FROM b JOIN c ON c.k = b.w WHERE c.n = 2);
SELECT count(*) FROM a WHERE v = -1;
UPDATE b SET w = 'upd' FROM a WHERE a.b = b.a AND a.v = -1;
SELECT w, count(*) FROM b GROUP BY w;
DELETE FROM b WHERE a IN (SELECT a.b FROM a WHERE a.v > 105);
SELECT count(*), count(a.k) FROM b LEFT JOIN a ON a.b = b.a AND a.v = -1;
SAVEPOINT s;
TRUNCATE c;
SELECT b.w, c.n FROM b LEFT JOIN c ON c.k = b.w WHERE b.k < 12;
INSERT INTO c VALUES ('w1', 100), ('w2', 200);
SELECT c.n, count(*) FROM b JOIN c ON c.k = b.w GROUP BY c.n;
ALTER TABLE c ADD COLUMN z int DEFAULT 5;
SELECT c.z, count(*) FROM b JOIN c ON c.k = b.w GROUP BY c.z;
--@ error: 22012
SELECT count(*) FROM b JOIN c ON c.k = b.w WHERE 1 / (c.z - 5) > 0;
ROLLBACK TO s;
SELECT c.n, count(*) FROM b JOIN c ON c.k = b.w GROUP BY c.n;
COPY (SELECT b.w, count(*) FROM a JOIN b ON a.b = b.a GROUP BY b.w) TO STDOUT;
COPY c FROM STDIN;
upd	77
\.
SELECT c.n, count(*) FROM b JOIN c ON c.k = b.w GROUP BY c.n;
DECLARE cur CURSOR FOR SELECT a.k, b.k FROM a JOIN b ON a.b = b.a ORDER BY 1, 2;
FETCH 3 FROM cur;
DELETE FROM a;
FETCH 2 FROM cur;
SELECT count(*) FROM a JOIN b ON a.b = b.a;
SELECT count(*), count(a.k) FROM a FULL JOIN b ON a.b = b.a;
ROLLBACK;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;

BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE a SET b = b + 1;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
SELECT a.k FROM a WHERE a.v > (SELECT avg(x.v) + 3 FROM a x WHERE x.b = a.b);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
INSERT INTO b VALUES (5000, 5, 'w1');
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
COMMIT;
BEGIN READ ONLY;
SELECT count(*), sum(a.v) FROM a JOIN b ON a.b = b.a;
SELECT count(*), count(a.k), count(b.k) FROM a FULL JOIN b ON a.k = b.a;
COMMIT;

-- Parts that fail where the statement does not ask for their rows: what the transaction has written is still there.
BEGIN;
UPDATE a SET v = v + 1000 WHERE k < 10;
SELECT k, CASE WHEN v < 0 THEN (SELECT max(1 / (x.v - x.v)) FROM a x WHERE x.b = a.b) END FROM a WHERE k < 5;
SELECT k, CASE WHEN k < 0 THEN (SELECT sum(10 / (n - n)) FROM c) END FROM b WHERE k < 4;
SELECT count(*) FROM c WHERE n < 0 AND k IN (SELECT (1 / (b.a - b.a))::text FROM b);
SELECT k, (SELECT sum(1 / (x.v - 7)) FROM a x WHERE x.b = b.k) FROM b WHERE k BETWEEN 1000 AND 2000;
SELECT count(*) FROM a WHERE k < 10 AND v > 1000;
INSERT INTO a VALUES (9001, 1, 1);
SELECT k, CASE WHEN v < 0 THEN (SELECT max(1 / (x.v - x.v)) FROM a x WHERE x.b = a.b) END FROM a WHERE k > 9000;
DELETE FROM a WHERE k > 9000;
SELECT k FROM a WHERE k > 9000;
DECLARE c CURSOR FOR SELECT k FROM a ORDER BY k;
FETCH 2 FROM c;
SELECT k, CASE WHEN v < 0 THEN (SELECT max(1 / (x.v - x.v)) FROM a x WHERE x.b = a.b) END FROM a WHERE k < 5;
FETCH 2 FROM c;
SELECT a.k, b.k FROM a JOIN b ON a.v = b.k + 90 WHERE a.k < 60;
FETCH 2 FROM c;
CLOSE c;
SAVEPOINT s;
--@ error: 22012
SELECT k, (SELECT max(1 / (x.v - x.v)) FROM a x WHERE x.b = a.b) FROM a WHERE k < 5;
ROLLBACK TO s;
SELECT count(*) FROM a WHERE k < 10 AND v > 1000;
COMMIT;
SELECT count(*) FROM a WHERE k < 10 AND v > 1000;
BEGIN;
CREATE TABLE beside (n int);
INSERT INTO beside SELECT generate_series(1, 8);
UPDATE a SET v = v + 1;
SAVEPOINT s;
SELECT count(*) FROM a WHERE v > (SELECT avg(x.v) FROM a x JOIN beside l ON x.v = l.n);
SELECT count(*) FROM a JOIN b ON b.a = a.b JOIN (SELECT n FROM beside, a WHERE a.k = n) l ON l.n = b.k;
RELEASE s;
SAVEPOINT s;
SELECT count(*) FROM a WHERE v > (SELECT avg(x.v) FROM a x JOIN beside l ON x.v = l.n);
UPDATE a SET v = 0;
ROLLBACK TO s;
SELECT count(*) FROM a WHERE v > (SELECT avg(x.v) FROM a x JOIN beside l ON x.v = l.n);
SET TRANSACTION READ ONLY;
SELECT count(*) FROM a WHERE v > (SELECT avg(x.v) FROM a x JOIN beside l ON x.v = l.n);
COMMIT;
SELECT count(*) FROM a WHERE v > (SELECT avg(x.v) FROM a x JOIN beside l ON x.v = l.n);
