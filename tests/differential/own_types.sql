-- Types that users make, as parameters of PREPARE and in the transaction that makes them.

CREATE TYPE prio AS ENUM ('low', 'medium', 'high');
CREATE TYPE pt AS (x int, y int);
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TABLE tk (id int PRIMARY KEY, p prio, tags prio[]);
CREATE TABLE m (k int PRIMARY KEY, p pt);
--@ cluster: SELECT create_distributed_table('tk', 'id'), create_distributed_table('m', 'k')
INSERT INTO tk VALUES (1, 'low', '{low}'), (2, NULL, NULL), (3, 'high', '{medium,high}');
INSERT INTO m VALUES (1, '(1,2)'), (2, '(2,1)'), (3, NULL);
PREPARE q1 (prio) AS SELECT id FROM tk WHERE $1 > 'medium' ORDER BY id;
--@ ordered
EXECUTE q1 ('high');
EXECUTE q1 ('low');
--@ error: 22P02
EXECUTE q1 ('nope');
BEGIN;
PREPARE q2 (prio) AS DELETE FROM tk WHERE $1 > 'medium' AND id = 2 RETURNING id;
EXECUTE q2 ('high');
ROLLBACK;
PREPARE q5 (prio) AS SELECT id FROM tk WHERE $1 IS NULL OR p = $1;
EXECUTE q5 ('low');
EXECUTE q5 (NULL);
PREPARE q6 (prio, prio) AS SELECT id FROM tk WHERE p = ANY (ARRAY[$1, $2]);
EXECUTE q6 ('low', 'high');
PREPARE q7 (prio) AS SELECT id, tags || $1, $1 || tags, array_agg($1) OVER () FROM tk;
EXECUTE q7 ('low');
PREPARE q8 (pt) AS SELECT * FROM m WHERE p = $1;
EXECUTE q8 ('(1,2)');
EXECUTE q8 (NULL);
EXECUTE q8 (ROW(2, 1));
PREPARE q9 (pt) AS SELECT k, ($1).x FROM m;
EXECUTE q9 ('(1,2)');
PREPARE q10 (pt, pt[]) AS SELECT k FROM m WHERE p < $1 OR p = ANY ($2) OR ($2)[1].y = k;
EXECUTE q10 ('(1,3)', '{"(2,1)"}');
PREPARE q11 (int, posint) AS UPDATE tk SET p = CASE WHEN id = $2 THEN 'medium' ELSE p END WHERE id = $1 RETURNING id, p, $2;
EXECUTE q11 (2, 2);
--@ error: 23514
EXECUTE q11 (2, -2);
SELECT * FROM tk;

-- A key of such a type.
CREATE TABLE by_prio (p prio, n int);
CREATE TABLE by_pos (p posint PRIMARY KEY, n int);
CREATE TABLE by_pt (p pt, n int);
--@ cluster: SELECT create_distributed_table('by_prio', 'n'), create_distributed_table('by_pos', 'p'), create_distributed_table('by_pt', 'n')
PREPARE i1 (prio, int) AS INSERT INTO by_prio VALUES ($1, $2), ('high', $2) RETURNING *;
EXECUTE i1 ('low', 1);
EXECUTE i1 ('medium', 2);
PREPARE i2 (posint, int) AS INSERT INTO by_pos VALUES ($1, $2);
EXECUTE i2 (1, 1);
EXECUTE i2 (2, 2);
--@ error: 23514
EXECUTE i2 (0, 1);
PREPARE i3 (pt, int) AS INSERT INTO by_pt VALUES ($1, $2), (ROW(5, 5), $2);
EXECUTE i3 ('(1,1)', 1);
EXECUTE i3 ('(1,2)', 2);
PREPARE s1 (prio) AS SELECT * FROM by_prio WHERE p = $1;
EXECUTE s1 ('high');
EXECUTE s1 ('low');
PREPARE s2 (posint) AS SELECT * FROM by_pos WHERE p = $1;
EXECUTE s2 (1);
PREPARE s3 (pt) AS SELECT * FROM by_pt WHERE p = $1;
EXECUTE s3 ('(1,2)');
EXECUTE s3 (ROW(5, 5));
PREPARE u1 (prio, prio) AS UPDATE by_prio SET p = p WHERE p IN ($1, $2) RETURNING p, n;
EXECUTE u1 ('low', 'medium');
PREPARE d3 (pt) AS DELETE FROM by_pt WHERE p = $1 OR p > $1;
EXECUTE d3 ('(1,2)');
SELECT * FROM by_pt;
PREPARE j1 (prio) AS SELECT a.n, b.id FROM by_prio a JOIN tk b ON a.p = b.p AND b.p <> $1;
EXECUTE j1 ('medium');

-- What is prepared goes on with a type that changes its name, its labels, its schema.
ALTER TYPE prio ADD VALUE 'top';
EXECUTE s1 ('top');
EXECUTE i1 ('top', 7);
EXECUTE s1 ('top');
ALTER TYPE prio RENAME TO importance;
EXECUTE s1 ('top');
EXECUTE u1 ('top', 'high');
CREATE SCHEMA elsewhere;
ALTER TYPE importance SET SCHEMA elsewhere;
EXECUTE s1 ('top');
EXECUTE u1 ('top', 'low');
PREPARE s4 (elsewhere.importance, elsewhere.importance[]) AS SELECT n FROM by_prio WHERE p > $1 AND p = ANY ($2);
EXECUTE s4 ('medium', '{high,low}');
DEALLOCATE ALL;

-- Made in the transaction that uses it, or before.
BEGIN;
CREATE TABLE t (k int PRIMARY KEY, v elsewhere.importance);
--@ cluster: SELECT create_distributed_table('t', 'k')
INSERT INTO t VALUES (1, 'low'), (2, 'top');
SELECT * FROM t;
SELECT v FROM t WHERE k = 2;
SELECT k, ROW(k, v) FROM t WHERE k = 1;
PREPARE a (elsewhere.importance) AS SELECT k, v, $1 FROM t WHERE v = $1;
EXECUTE a ('top');
ROLLBACK;
BEGIN;
CREATE TYPE made AS (a int, b elsewhere.importance);
CREATE DOMAIN made_int AS int CHECK (VALUE > 0);
CREATE TABLE t (k int PRIMARY KEY, v made, w made_int, e made[]);
--@ cluster: SELECT create_distributed_table('t', 'k')
INSERT INTO t VALUES (1, '(1,low)', 4, '{}'), (2, '(2,high)', 3, '{"(1,low)"}') RETURNING *;
SELECT * FROM t;
SELECT v FROM t WHERE k = 1;
SELECT (v).b, count(*) FROM t GROUP BY 1;
PREPARE b (made, made[]) AS SELECT k FROM t WHERE v = $1 OR e = $2;
EXECUTE b ('(2,high)', '{}');
UPDATE t SET w = w + 1 RETURNING v, w;
CREATE TABLE r (k int PRIMARY KEY, v made);
--@ cluster: SELECT create_reference_table('r')
INSERT INTO r VALUES (1, '(1,high)') RETURNING *;
SELECT r.v, t.v FROM r RIGHT JOIN t USING (k);
COMMIT;
EXECUTE b ('(2,high)', '{}');
SELECT * FROM t;
DROP TABLE t, r;
DROP DOMAIN made_int;
DROP TYPE made;
BEGIN;
CREATE TYPE made AS ENUM ('a', 'b');
SELECT 'a'::made;
CREATE TABLE t (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('t', 'k')
INSERT INTO t VALUES (1, 'a');
SELECT v::made FROM t;
PREPARE c (made) AS SELECT k, $1 FROM t WHERE v::made = $1;
EXECUTE c ('a');
EXECUTE c ('b');
ROLLBACK;
