--@ include: schema.sql
-- NULL keys, keys of other types and beside their range, and prepared statements with generic and custom plans.

CREATE TABLE nk (k int, v text, n int);
CREATE TABLE nk2 (k int, w text);
CREATE TABLE tk (k text, n int);
--@ cluster: SELECT create_distributed_table('nk', 'k'), create_distributed_table('nk2', 'k', colocate_with => 'nk'), create_distributed_table('tk', 'k')
INSERT INTO nk VALUES (NULL, 'null', 1), (1, 'one', 1), (2, 'two', 2), (NULL, 'null', 2), (3, NULL, 3), (0, 'zero', NULL), (-1, 'minus', 7), (2147483647, 'max', 8), (-2147483648, 'min', 9);
INSERT INTO nk2 VALUES (NULL, 'n'), (1, 'a'), (1, 'b'), (3, NULL), (4, 'd');
INSERT INTO tk VALUES (NULL, 1), ('', 2), (' ', 3), ('a', 4), ('A', 5), ('null', 6), ('ä', 7), (repeat('x', 5000), 8);

-- Reads.
SELECT * FROM nk;
SELECT v FROM nk WHERE k IS NULL;
SELECT v FROM nk WHERE k IS NOT NULL;
SELECT v FROM nk WHERE k = NULL;
SELECT v FROM nk WHERE NOT (k = NULL);
SELECT v FROM nk WHERE k <> 1;
SELECT v FROM nk WHERE k IS DISTINCT FROM 1;
SELECT v FROM nk WHERE k IS NOT DISTINCT FROM NULL;
SELECT v FROM nk WHERE k IS NOT DISTINCT FROM 2;
SELECT v FROM nk WHERE k IN (1, NULL);
SELECT v FROM nk WHERE k NOT IN (1, NULL);
SELECT v FROM nk WHERE k NOT IN (1, 2);
SELECT v FROM nk WHERE k = ANY ('{1,NULL,3}');
SELECT v FROM nk WHERE k <> ALL ('{1,2}');
SELECT v FROM nk WHERE coalesce(k, 1) = 1;
SELECT v FROM nk WHERE nullif(k, 2) = 1;
SELECT v FROM nk WHERE k = 1 OR k IS NULL;
SELECT v FROM nk WHERE k = 1 AND k IS NULL;
SELECT v FROM nk WHERE k IS NULL AND n = 2;
SELECT v FROM nk WHERE (k, n) = (1, 1);
SELECT v FROM nk WHERE (k, n) IN ((1, 1), (2, 2), (NULL, 1));
SELECT v FROM nk WHERE ROW(k, n) IS NULL;
SELECT v FROM nk WHERE (k = 1) IS UNKNOWN;
SELECT v FROM nk WHERE k = 1 AND NULL;
SELECT k, count(*) FROM nk GROUP BY k;
SELECT count(k), count(*), count(DISTINCT k), max(k), min(k), sum(k::bigint) FROM nk;
SELECT DISTINCT k FROM nk;
--@ ordered
SELECT k, n FROM nk ORDER BY k, n;
--@ ordered
SELECT k, n FROM nk ORDER BY k DESC, n LIMIT 3;
--@ ordered
SELECT k, n FROM nk ORDER BY k NULLS FIRST, n LIMIT 3;
SELECT k, rank() OVER (PARTITION BY k ORDER BY n) FROM nk;
SELECT k, lag(n) OVER (ORDER BY k, n) FROM nk;

-- Joins.
SELECT a.v, b.w FROM nk a JOIN nk2 b ON a.k = b.k;
SELECT a.v, b.w FROM nk a LEFT JOIN nk2 b ON a.k = b.k;
SELECT a.v, b.w FROM nk a RIGHT JOIN nk2 b ON a.k = b.k;
SELECT a.v, b.w FROM nk a FULL JOIN nk2 b ON a.k = b.k;
SELECT a.v, b.w FROM nk a FULL JOIN nk2 b USING (k) WHERE k IS NULL;
SELECT a.v, b.w FROM nk a JOIN nk2 b ON a.k IS NOT DISTINCT FROM b.k;
SELECT a.v, b.w FROM nk a LEFT JOIN nk2 b ON a.k = b.k AND b.w IS NOT NULL WHERE a.k IS NULL;
SELECT a.v FROM nk a WHERE NOT EXISTS (SELECT 1 FROM nk2 b WHERE b.k = a.k);
SELECT a.v FROM nk a WHERE a.k IN (SELECT k FROM nk2);
SELECT a.v FROM nk a WHERE a.k NOT IN (SELECT k FROM nk2);
SELECT a.v FROM nk a WHERE a.k NOT IN (SELECT k FROM nk2 WHERE k IS NOT NULL);
SELECT a.v FROM nk a WHERE (a.k NOT IN (SELECT b.n FROM nk b WHERE b.n > 1)) IS NULL;
SELECT a.n, b.w FROM nk a JOIN nk2 b ON a.n = b.k;
SELECT a.n, b.w FROM nk a LEFT JOIN nk2 b ON a.n = b.k;
SELECT k FROM nk UNION SELECT k FROM nk2;
SELECT k FROM nk INTERSECT SELECT k FROM nk2;
SELECT k FROM nk EXCEPT SELECT k FROM nk2;
SELECT k FROM nk EXCEPT ALL SELECT k FROM nk2;
SELECT a.v, u.name FROM nk a LEFT JOIN users u ON u.id = a.k;
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.country IS NULL AND u.id < 20;
SELECT count(*) FROM clicks c LEFT JOIN users u ON u.id = c.user_id WHERE u.id IS NULL;
SELECT count(*) FROM clicks c FULL JOIN users u ON u.id = c.user_id WHERE c.user_id IS NULL;

-- Writes.
UPDATE nk SET v = 'changed' WHERE k IS NULL RETURNING *;
UPDATE nk SET n = n + 1 WHERE k IS DISTINCT FROM 1;
UPDATE nk SET n = 5 WHERE k = NULL;
DELETE FROM nk WHERE k IS NULL AND n = 3 RETURNING v;
INSERT INTO nk (v) VALUES ('default null') RETURNING k;
INSERT INTO nk SELECT k, w, 0 FROM nk2 WHERE k IS NULL;
SELECT v, n FROM nk WHERE k IS NULL;
UPDATE nk a SET v = b.w FROM nk2 b WHERE a.k = b.k AND b.w IS NOT NULL AND b.w <> 'b' RETURNING a.k, a.v;
DELETE FROM nk a USING nk2 b WHERE a.k = b.k AND b.w IS NULL;
SELECT * FROM nk;
--@ params: NULL, 'p null'
--@ params: 5, 'p five'
INSERT INTO nk (k, v) VALUES ($1, $2);
--@ params: NULL
--@ params: 5
--@ params: 1
SELECT v FROM nk WHERE k = $1;
--@ params: NULL
--@ params: 5
SELECT v FROM nk WHERE k IS NOT DISTINCT FROM $1;
--@ params: NULL
--@ params: 1
SELECT v FROM nk WHERE k = $1 OR $1 IS NULL;
--@ params: NULL, 1
--@ params: 5, NULL
SELECT v FROM nk WHERE k IN ($1, $2);
--@ params: '{NULL,1,5}'
--@ params: NULL
--@ params: '{}'
SELECT v FROM nk WHERE k = ANY ($1);
COPY nk TO STDOUT;
COPY nk FROM STDIN;
\N	copied null	1
7	copied	2
\.
COPY nk FROM STDIN (FORMAT csv, NULL 'none');
none,csv null,1
8,none,3
\.
SELECT k, v FROM nk WHERE v LIKE 'c%' OR v IS NULL;

-- Keys of text.
SELECT n FROM tk WHERE k = '';
SELECT n FROM tk WHERE k = 'a ';
SELECT n FROM tk WHERE k = 'a'::char(5);
SELECT n FROM tk WHERE k = 'A'::name;
SELECT n FROM tk WHERE k = U&'\00E4';
SELECT n FROM tk WHERE k = E'\u00e4';
SELECT n FROM tk WHERE k = repeat('x', 5000);
SELECT n FROM tk WHERE k = 'null' OR k IS NULL;
SELECT n FROM tk WHERE k LIKE 'a%' OR lower(k) = 'a';
SELECT n FROM tk WHERE k COLLATE "C" = 'A';
SELECT n FROM tk WHERE k > 'Z' AND length(k) < 10;
SELECT n FROM tk WHERE k IN ('a', '', 'ä');
--@ params: ''
--@ params: ä
--@ params: NULL
SELECT n FROM tk WHERE k = $1;

-- Keys beside the range of their type, and of other types.
SELECT v FROM nk WHERE k = 2147483647;
SELECT v FROM nk WHERE k = 2147483648;
SELECT v FROM nk WHERE k = -2147483648;
SELECT v FROM nk WHERE k = 99999999999999999999;
SELECT v FROM nk WHERE k = 1.0;
SELECT v FROM nk WHERE k = 1.5;
SELECT v FROM nk WHERE k = '1';
SELECT v FROM nk WHERE k = 1::smallint;
SELECT v FROM nk WHERE k = 1::bigint;
SELECT v FROM nk WHERE k = 1::numeric;
SELECT v FROM nk WHERE k = 1::float8;
SELECT v FROM nk WHERE k = 1::oid::int;
SELECT v FROM nk WHERE k = +1;
SELECT v FROM nk WHERE k = 1 + 0;
SELECT v FROM nk WHERE 1 = k;
SELECT v FROM nk WHERE k + 0 = 1;
SELECT v FROM nk WHERE k::text = '1';
SELECT v FROM nk WHERE k = (SELECT 1);
SELECT v FROM nk WHERE k = (SELECT max(k) FROM nk2);
SELECT v FROM nk WHERE k = (SELECT k FROM nk2 WHERE w = 'nothing');
SELECT v FROM nk WHERE k BETWEEN 1 AND 1;
SELECT v FROM nk WHERE k >= 1 AND k <= 1;
SELECT v FROM nk WHERE k = 1 AND k = 1;
SELECT v FROM nk WHERE k = 1 AND k = 2;
SELECT v FROM nk WHERE k = 1 AND k IN (1, 2);
SELECT v FROM nk WHERE k IN (1, 1, 1);
SELECT v FROM nk WHERE k = length('x');
SELECT v FROM nk WHERE k = CASE WHEN true THEN 1 END;
SELECT v FROM nk WHERE k = abs(-1);
SELECT v FROM nk WHERE k = 1 LIMIT 0;
--@ error: 22P02
SELECT v FROM nk WHERE k = 'one';
--@ error: 22003
SELECT v FROM nk WHERE k = '99999999999';
--@ error: 42883
SELECT v FROM nk WHERE k = 'x'::text;
--@ error: 21000
SELECT v FROM nk WHERE k = (SELECT k FROM nk2);

-- Generic and custom plans.
SET plan_cache_mode = force_generic_plan;
--@ params: 1
--@ params: NULL
--@ params: 7
SELECT v FROM nk WHERE k = $1;
--@ params: 1, 3
--@ params: 7, 8
SELECT count(*) FROM nk WHERE k BETWEEN $1 AND $2;
--@ params: 5
--@ params: 30
SELECT u.id, count(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id < $1 GROUP BY u.id;
--@ params: 14
--@ params: 15
SELECT u.name, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id = $1;
--@ params: 20
SELECT count(*) FROM friends f JOIN users u ON u.id = f.b WHERE f.a < $1;
--@ params: de
--@ params: NULL
SELECT count(*) FROM users WHERE country = $1;
SET plan_cache_mode = force_custom_plan;
--@ params: 1
--@ params: NULL
SELECT v FROM nk WHERE k = $1;
--@ params: 20
--@ params: 2
SELECT count(*) FROM friends f JOIN users u ON u.id = f.b WHERE f.a < $1;
--@ params: 14, 1
--@ params: 15, 100
UPDATE users SET score = score + $2 WHERE id = $1 RETURNING id, score;
RESET plan_cache_mode;
PREPARE q (int) AS SELECT v FROM nk WHERE k = $1;
EXECUTE q (1);
EXECUTE q (NULL);
EXECUTE q (7);
EXECUTE q (1 + 0);
EXECUTE q (1);
EXECUTE q (1);
EXECUTE q (1);
EXECUTE q ('8');
--@ error: 42601
EXECUTE q (1, 2);
PREPARE q2 (text, int) AS SELECT $1 || v, $2 FROM nk WHERE n >= $2;
EXECUTE q2 ('p', 2);
EXECUTE q2 (NULL, 8);
PREPARE q3 AS INSERT INTO nk VALUES ($1, $2, $3) RETURNING *;
EXECUTE q3 (500, 'five hundred', NULL);
EXECUTE q3 (NULL, 'nothing', 1);
PREPARE q4 AS WITH w AS (SELECT * FROM nk WHERE k = $1) SELECT w.v, b.w FROM w LEFT JOIN nk2 b ON b.k = w.k;
EXECUTE q4 (1);
EXECUTE q4 (NULL);
DEALLOCATE q;
--@ error: 26000
EXECUTE q (1);
DEALLOCATE ALL;
