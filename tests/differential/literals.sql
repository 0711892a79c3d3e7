-- Statements that differ in their literals only share one analysis, with parameters in place of the literals: each
-- stands here several times with other values, so that the later ones are run that way. Literals stand where the
-- grammar has them.
CREATE TABLE li (k int PRIMARY KEY, a int, b bigint, n numeric(8,2), t text, v varchar(5), c char(4), d date, ts timestamptz,
    f float8, s smallint, j jsonb, arr int[], i interval, boo bool, u uuid);
--@ cluster: SELECT create_distributed_table('li', 'k')
INSERT INTO li SELECT g, g % 7, g * 3000000000, g / 8.0, 't' || g, 'v' || g % 9, 'c' || g % 5, date '2020-01-01' + g,
    timestamptz '2020-01-01 00:00+00' + g * interval '1 hour', g / 3.0, g, jsonb_build_object('a', g), ARRAY[g, g + 1],
    g * interval '1 day', g % 2 = 0, ('00000000-0000-0000-0000-' || lpad(g::text, 12, '0'))::uuid
    FROM generate_series(1, 60) g;

-- One key, many values.
SELECT k, a, t FROM li WHERE k = 1;
SELECT k, a, t FROM li WHERE k = 2;
SELECT k, a, t FROM li WHERE k = 3;
SELECT k, a, t FROM li WHERE k = 40;
SELECT k, a, t FROM li WHERE k = 61;
SELECT k, a, t FROM li WHERE k = 3000000000;
SELECT k, a, t FROM li WHERE k = 3000000001;
SELECT k, a, t FROM li WHERE k = 3000000002;
SELECT k, a, t FROM li WHERE k = 5.0;
SELECT k, a, t FROM li WHERE k = 6.0;
SELECT k, a, t FROM li WHERE k = 6.5;
SELECT k, a, t FROM li WHERE k = 7.0;
SELECT k, a, t FROM li WHERE k = '8';
SELECT k, a, t FROM li WHERE k = ' 9 ';
SELECT k, a, t FROM li WHERE k = '10';
--@ error: 22P02
SELECT k, a, t FROM li WHERE k = 'eleven';
--@ error: 22P02
SELECT k, a, t FROM li WHERE k = '';
--@ error: 22003
SELECT k, a, t FROM li WHERE k = '99999999999';
SELECT k, a, t FROM li WHERE k = -1;
SELECT k, a, t FROM li WHERE k = -2;
SELECT k, a, t FROM li WHERE k = - 3;
SELECT k, a, t FROM li WHERE 12 = k;
SELECT k, a, t FROM li WHERE 13 = k;
SELECT k, a, t FROM li WHERE 14 = k;
SELECT k, a, t FROM li WHERE k = 007;
SELECT k, a, t FROM li WHERE k = 0012;

-- Other columns beside the key.
SELECT k FROM li WHERE k = 9 AND a = 2;
SELECT k FROM li WHERE k = 9 AND a = 3;
SELECT k FROM li WHERE k = 16 AND a = 2;
SELECT k FROM li WHERE k = 3 AND b = 9000000000;
SELECT k FROM li WHERE k = 3 AND b = 9;
SELECT k FROM li WHERE k = 3 AND b > 9.5;
SELECT k FROM li WHERE k = 4 AND b > 10.5;
SELECT k FROM li WHERE k = 5 AND b > 1e10;
SELECT k FROM li WHERE k = 8 AND n = 1;
SELECT k FROM li WHERE k = 8 AND n = 1.0;
SELECT k FROM li WHERE k = 8 AND n = 1.00;
SELECT k FROM li WHERE k = 8 AND n = '1';
SELECT k FROM li WHERE k = 8 AND n = '1.000';
SELECT k FROM li WHERE k = 8 AND t = 't8';
SELECT k FROM li WHERE k = 8 AND t = 't''8';
SELECT k FROM li WHERE k = 8 AND t <> 'é';
SELECT k FROM li WHERE k = 8 AND v = 'v8';
SELECT k FROM li WHERE k = 8 AND v = 'v8   ';
SELECT k FROM li WHERE k = 8 AND v = 'longer than five';
SELECT k FROM li WHERE k = 8 AND c = 'c3';
SELECT k FROM li WHERE k = 8 AND c = 'c3      ';
SELECT k FROM li WHERE k = 8 AND c = 'c4';
SELECT k FROM li WHERE k = 8 AND d = '2020-01-09';
SELECT k FROM li WHERE k = 8 AND d = 'January 9, 2020';
SELECT k FROM li WHERE k = 8 AND d > 'yesterday';
SELECT k FROM li WHERE k = 8 AND d < 'today';
--@ error: 22007
SELECT k FROM li WHERE k = 8 AND d < 'no day';
SELECT k FROM li WHERE k = 8 AND ts = '2020-01-01 08:00+00';
SELECT k FROM li WHERE k = 8 AND ts = '2020-01-01 09:00+01';
SELECT k FROM li WHERE k = 8 AND ts < 'now';
SELECT k FROM li WHERE k = 9 AND f = 3;
SELECT k FROM li WHERE k = 9 AND f = 3.0;
SELECT k FROM li WHERE k = 9 AND f = '3';
SELECT k FROM li WHERE k = 9 AND s = 9;
SELECT k FROM li WHERE k = 9 AND s = 99999;
SELECT k FROM li WHERE k = 9 AND s + 1 = 10;
SELECT k FROM li WHERE k = 9 AND s + 32767 > 0;
SELECT k FROM li WHERE k = 9 AND boo = 'f';
SELECT k FROM li WHERE k = 9 AND boo = 'no';
SELECT k FROM li WHERE k = 9 AND u = '00000000-0000-0000-0000-000000000009';
SELECT k FROM li WHERE k = 9 AND u = '00000000-0000-0000-0000-000000000010';
SELECT k FROM li WHERE k = 9 AND i = '9 days';
SELECT k FROM li WHERE k = 9 AND i = '216 hours';
SELECT k FROM li WHERE k = 9 AND i > '1 month';
SELECT k FROM li WHERE k = 9 AND j = '{"a": 9}';
SELECT k FROM li WHERE k = 9 AND j = '{"a":  9}';
SELECT k FROM li WHERE k = 9 AND arr = '{9,10}';
SELECT k FROM li WHERE k = 9 AND arr = '{9, 11}';
SELECT k FROM li WHERE k = 10 AND d + 1 = '2020-01-12';
SELECT k FROM li WHERE k = 10 AND d + 2 = '2020-01-12';
SELECT k FROM li WHERE k = 10 AND d - '2020-01-01' = 10;
SELECT k FROM li WHERE k = 10 AND d - '2020-01-02' = 10;
SELECT k FROM li WHERE k = 10 AND ts - '2020-01-01 00:00+00' = '10 hours';
SELECT k FROM li WHERE k = 10 AND ts - '2020-01-01 00:00+00' = '11 hours';
--@ error: 22007
SELECT k FROM li WHERE k = 10 AND ts - '1 hour' > '2020-01-01';

-- Places where a parameter would mean something else, or is not possible.
SELECT k, 'x', 5, 1.5, NULL FROM li WHERE k = 11;
SELECT k, 'y', 6, 2.5, NULL FROM li WHERE k = 12;
SELECT pg_typeof('x'), pg_typeof(5), pg_typeof(1.5) FROM li WHERE k = 12;
SELECT pg_typeof('y'), pg_typeof(6), pg_typeof(2.50) FROM li WHERE k = 13;
SELECT json_build_object('a', 1, 'b', 'x') FROM li WHERE k = 13;
SELECT json_build_object('c', 2, 'd', 'y') FROM li WHERE k = 14;
SELECT concat('a', 1, 2.50) FROM li WHERE k = 14;
SELECT concat('b', 2, 3.50) FROM li WHERE k = 15;
SELECT k, a FROM li WHERE k = 15 ORDER BY 2, 1 LIMIT 1;
SELECT k, a FROM li WHERE k = 16 ORDER BY 1, 2 LIMIT 2 OFFSET 0;
SELECT a, count(*) FROM li WHERE k = 16 GROUP BY 1;
SELECT a, count(*) FROM li WHERE k = 17 GROUP BY 1 HAVING count(*) > 0;
SELECT interval '1' day, date '2020-01-01', timestamp '2020-01-01 10:00', numeric '1.50' FROM li WHERE k = 17;
SELECT interval '2' day, date '2020-01-02', timestamp '2020-01-01 11:00', numeric '2.50' FROM li WHERE k = 18;
SELECT '5'::int, 5::text, cast('6' AS numeric(4,2)) FROM li WHERE k = 18;
SELECT '7'::int, 7::text, cast('8' AS numeric(3,1)) FROM li WHERE k = 19;
SELECT arr[1], arr[1:2], j -> 'a', j ->> 'a', j #> '{a}' FROM li WHERE k = 19;
SELECT arr[2], arr[2:2], j -> 'b', j ->> 'b', j #> '{b}' FROM li WHERE k = 20;
SELECT t LIKE 't2%', t ~ '^t', t SIMILAR TO 't%', t ILIKE 'T2%' FROM li WHERE k = 20;
SELECT t LIKE 't3%', t ~ '^x', t SIMILAR TO 'x%', t ILIKE 'X2%' FROM li WHERE k = 21;
SELECT k BETWEEN 1 AND 30, k IN (1, 2, 21), k = ANY ('{1,21}'), k IN (SELECT 21) FROM li WHERE k = 21;
SELECT k BETWEEN 2 AND 31, k IN (1, 2, 22), k = ANY ('{1,22}'), k IN (SELECT 22) FROM li WHERE k = 22;
SELECT CASE WHEN a = 1 THEN 'one' WHEN a = 2 THEN (-2)::text ELSE 'x' END FROM li WHERE k = 22;
SELECT CASE a WHEN 1 THEN -5 WHEN 2 THEN 6 ELSE 7 END FROM li WHERE k = 23;
SELECT coalesce(NULL, 'x'), nullif(a, 2), greatest(a, 3), substring(t FROM 1 FOR 2) FROM li WHERE k = 23;
SELECT coalesce(NULL, 'y'), nullif(a, 3), greatest(a, 4), substring(t FROM 2 FOR 1) FROM li WHERE k = 24;
SELECT extract('day' FROM ts AT TIME ZONE 'UTC'), date_trunc('hour', ts AT TIME ZONE 'UTC') FROM li WHERE k = 24;
SELECT extract('hour' FROM ts AT TIME ZONE 'UTC'), date_trunc('day', ts AT TIME ZONE 'UTC') FROM li WHERE k = 25;
SELECT a + 1, a - 1, a * 2, a / 2, a % 2, -a, a + -1, a - -1, 1 + a, 1 - a FROM li WHERE k = 25;
SELECT a + 2, a - 2, a * 3, a / 3, a % 3, -a, a + -2, a - -2, 2 + a, 2 - a FROM li WHERE k = 26;
SELECT a + 2.5, b + 3000000000, f + 1, n + 1, n - 0.005, s + 1, b - 1 FROM li WHERE k = 26;
SELECT a + 3.5, b + 3000000001, f + 2, n + 2, n - 0.015, s + 2, b - 2 FROM li WHERE k = 27;
SELECT d + 1, d - 1, ts + '1 day', i + '1 day', d + '1 day'::interval FROM li WHERE k = 27;
SELECT d + 2, d - 2, ts + '2 days', i + '2 days', d + '2 day'::interval FROM li WHERE k = 28;
SELECT t = 't28', t < 't3', t > 'a', t <> '' FROM li WHERE k = 28;
SELECT t = 't29', t < 't2', t > 'z', t <> 'x' FROM li WHERE k = 29;
SELECT a = 1.0, a = '1', a < 1.5, a > 3000000000, b = 1, b < '5' FROM li WHERE k = 29;
SELECT a = 2.0, a = '2', a < 2.5, a > 3000000001, b = 2, b < '6' FROM li WHERE k = 30;
SELECT count(*) FILTER (WHERE a = 2), sum(a + 1), string_agg(t, ',' ORDER BY t) FROM li WHERE k = 30;
SELECT count(*) FILTER (WHERE a = 3), sum(a + 2), string_agg(t, ';' ORDER BY t) FROM li WHERE k = 31;
SELECT x.t, y.t FROM li x JOIN li y ON x.k = y.k WHERE x.k = 31 AND y.a = 3;
SELECT x.t, y.t FROM li x JOIN li y ON x.k = y.k WHERE x.k = 32 AND y.a = 4;
SELECT "k", "t" AS "a 'quoted' 1" FROM li AS "x 'y'" WHERE "k" = 32;
SELECT "k", "t" AS "a 'quoted' 1" FROM li AS "x 'y'" WHERE "k" = 33;
WITH w AS (SELECT t FROM li WHERE k = 33) SELECT * FROM w WHERE t = 't33';
WITH w AS (SELECT t FROM li WHERE k = 34) SELECT * FROM w WHERE t = 't34';
SELECT (SELECT max(a) FROM li y WHERE y.k = 35 AND y.a > 0) FROM li x WHERE x.k = 35;
SELECT (SELECT max(a) FROM li y WHERE y.k = 36 AND y.a > 1) FROM li x WHERE x.k = 36;

-- The meaning of a literal follows the session's settings, also for texts that came before.
SET timezone = 'UTC';
SELECT ts = '2020-01-02 16:00', ts > '2020-01-02' FROM li WHERE k = 40;
SELECT ts = '2020-01-02 17:00', ts > '2020-01-03' FROM li WHERE k = 41;
SET timezone = 'Asia/Tokyo';
SELECT ts = '2020-01-03 01:00', ts > '2020-01-02' FROM li WHERE k = 40;
SELECT ts, ts = '2020-01-03 02:00', ts > '2020-01-03' FROM li WHERE k = 41;
SET datestyle = 'SQL, DMY';
SELECT d, d = '10/02/2020', ts FROM li WHERE k = 40;
SELECT d, d = '11/02/2020', ts FROM li WHERE k = 41;
SET datestyle = 'SQL, MDY';
SELECT d, d = '02/10/2020', ts FROM li WHERE k = 40;
SELECT d, d = '02/11/2020', ts FROM li WHERE k = 41;
RESET datestyle;
RESET timezone;
SET search_path = pg_catalog;
--@ error: 42P01
SELECT k FROM li WHERE k = 1;
RESET search_path;
SELECT k FROM li WHERE k = 1;

-- Writes.
INSERT INTO li (k, a, n, t, v, c, d) VALUES (101, 1, 1.005, 'x', 'abc', 'a', '2021-01-01');
INSERT INTO li (k, a, n, t, v, c, d) VALUES (102, 2, 2.005, 'y', 'abcde', 'b', '2021-01-02');
INSERT INTO li (k, a, n, t, v, c, d) VALUES (103, 3, 3, 'it''s', 'abcde  ', 'c', 'epoch');
INSERT INTO li (k, a, n, t, v, c, d) VALUES (104, -4, -4.5, '', '', '', '2021-01-04');
--@ error: 22001
INSERT INTO li (k, a, n, t, v, c, d) VALUES (105, 5, 5, 'z', 'abcdef', 'd', '2021-01-05');
--@ error: 23505
INSERT INTO li (k, a, n, t, v, c, d) VALUES (104, 5, 5, 'z', 'abc', 'd', '2021-01-05');
--@ error: 22008
INSERT INTO li (k, a, n, t, v, c, d) VALUES (106, 5, 5, 'z', 'abc', 'd', '2021-02-30');
--@ error: 22003
INSERT INTO li (k, a, n, t, v, c, d) VALUES (107, 3000000000, 5, 'z', 'abc', 'd', '2021-02-03');
--@ error: 22003
INSERT INTO li (k, a, n, t, v, c, d) VALUES (108, 1, 99999999, 'z', 'abc', 'd', '2021-02-03');
INSERT INTO li (k, s) VALUES (109, 3);
INSERT INTO li (k, s) VALUES (110, '4');
INSERT INTO li (k, s) VALUES (111, 4.6);
--@ error: 22003
INSERT INTO li (k, s) VALUES (112, 40000);
INSERT INTO li VALUES (113, 1);
INSERT INTO li VALUES (114, 1);
INSERT INTO li VALUES ('115', '1');
UPDATE li SET a = 5, t = 'five' WHERE k = 50;
UPDATE li SET a = 6, t = 'six' WHERE k = 51;
UPDATE li SET a = -7, t = 'it''s seven' WHERE k = 52;
UPDATE li SET a = a + 5, n = n - 1.5 WHERE k = 50;
UPDATE li SET a = a + -6, n = n - -2.5 WHERE k = 51;
UPDATE li SET a = a - 7, n = n + 3.505 WHERE k = 52;
UPDATE li SET a = a -8, n = n +4 WHERE k = 53;
--@ error: 22003
UPDATE li SET a = a + 2147483647 WHERE k = 50;
UPDATE li SET j = '{"b": 1}', arr = '{1,2}', i = '3 days', boo = 'yes' WHERE k = 54;
UPDATE li SET j = '{"b": 2}', arr = '{3,4}', i = '4 days', boo = 'off' WHERE k = 55;
UPDATE li SET j = '{"b": 3}', arr = '{5}', i = '5 hours', boo = '1' WHERE k = 56;
--@ error: 22P02
UPDATE li SET j = '{b: 3}', arr = '{5}', i = '5 hours', boo = '1' WHERE k = 56;
UPDATE li SET arr[1] = 9, (a, b) = (1, 2) WHERE k = 57;
UPDATE li SET arr[2] = 8, (a, b) = (3, 4) WHERE k = 58;
UPDATE li SET v = 'v' || a, t = t || 'x' WHERE k = 59 AND a > 1;
UPDATE li SET v = 'w' || a, t = t || 'y' WHERE k = 60 AND a > 1;
DELETE FROM li WHERE k = 109;
DELETE FROM li WHERE k = 110 AND s = 5;
DELETE FROM li WHERE k = 111 AND s = 5;
DELETE FROM li WHERE k = 112;
SELECT k, a, n, t, v, c, d, s, j, arr, i, boo FROM li WHERE k >= 50 ORDER BY k;

-- A table that changes under texts that came before.
SELECT * FROM li WHERE k = 1;
SELECT * FROM li WHERE k = 2;
SELECT * FROM li WHERE k = 3;
ALTER TABLE li DROP COLUMN u, ADD COLUMN w int DEFAULT 3;
SELECT * FROM li WHERE k = 1;
SELECT * FROM li WHERE k = 2;
ALTER TABLE li ALTER COLUMN a TYPE bigint;
SELECT a, a + 1, w FROM li WHERE k = 1;
SELECT a, a + 2, w FROM li WHERE k = 2;
SELECT * FROM li WHERE k = 3;
ALTER TABLE li RENAME TO li2;
--@ error: 42P01
SELECT k FROM li WHERE k = 1;
SELECT k FROM li2 WHERE k = 1;
SELECT k FROM li2 WHERE k = 2;

-- A constant in quotes takes the fields of an interval column, a parameter does not.
CREATE TABLE li_fields (k int PRIMARY KEY, h interval hour, ms interval minute to second, p interval(0));
--@ cluster: SELECT create_distributed_table('li_fields', 'k')
INSERT INTO li_fields VALUES (1, '5', '5:30', '1.6');
INSERT INTO li_fields VALUES (2, '6', '6:30', '2.6');
INSERT INTO li_fields VALUES (3, '7', '7:30', '3.6');
INSERT INTO li_fields VALUES (4, '8', '8:30', '4.6');
INSERT INTO li_fields VALUES (5, '9', '9:30', '5.6'), (6, '10', '10:30', '6.6'), (7, '11', '11:30', '7.6');
INSERT INTO li_fields VALUES (8, '9', '9:30', '5.6'), (9, '10', '10:30', '6.6'), (10, '11', '11:30', '7.6');
INSERT INTO li_fields VALUES (11, '9', '9:30', '5.6'), (12, '10', '10:30', '6.6'), (13, '11', '11:30', '7.6');
UPDATE li_fields SET h = '15' WHERE k = 1;
UPDATE li_fields SET h = '16' WHERE k = 2;
UPDATE li_fields SET h = '17' WHERE k = 3;
UPDATE li_fields SET h = '18' WHERE k = 4;
SELECT k, h FROM li_fields WHERE k = 1 AND h = '15:00';
SELECT k, h FROM li_fields WHERE k = 2 AND h = '16:00';
SELECT k, h FROM li_fields WHERE k = 3 AND h = '17:00';
SELECT * FROM li_fields;

-- The smallest numbers of a type.
CREATE TABLE li_edge (k int PRIMARY KEY, a int, b bigint);
--@ cluster: SELECT create_distributed_table('li_edge', 'k')
INSERT INTO li_edge VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3);
SELECT k, a + -2147483648, b - -9223372036854775806 FROM li_edge WHERE k = 1;
SELECT k, a + -2147483648, b - -9223372036854775805 FROM li_edge WHERE k = 2;
SELECT k, a + -2147483648, b - -9223372036854775804 FROM li_edge WHERE k = 3;
--@ error: 22003
SELECT a - -2147483648 FROM li_edge WHERE k = 1;
--@ error: 22003
SELECT a - -2147483648 FROM li_edge WHERE k = 2;
--@ error: 22003
SELECT a - -2147483648 FROM li_edge WHERE k = 3;
SELECT b + -9223372036854775808 FROM li_edge WHERE k = 1;
SELECT b + -9223372036854775808 FROM li_edge WHERE k = 2;
SELECT b + -9223372036854775808 FROM li_edge WHERE k = 3;
SELECT b + -9223372036854775809 FROM li_edge WHERE k = 3;

-- A text that comes again under other settings is another statement.
CREATE TABLE lit_again (k int PRIMARY KEY, d date, at timestamptz, v text);
--@ cluster: SELECT create_distributed_table('lit_again', 'k')
INSERT INTO lit_again SELECT g, '2024-01-02', '2024-01-01 03:00:00+00' FROM generate_series(1, 12) g;
SET datestyle = 'ISO, MDY';
UPDATE lit_again SET d = '01/02/2024' WHERE k = 1 RETURNING d - date '2024-01-01';
SELECT count(*) FROM lit_again WHERE d = '01/02/2024' AND k <> 5;
SELECT k FROM lit_again WHERE d = '01/02/2024' AND k = 3;
SELECT k % 2, count(*) FROM lit_again GROUP BY 1 HAVING max(d) = '01/02/2024' ORDER BY 1;
SET datestyle = 'ISO, DMY';
UPDATE lit_again SET d = '01/02/2024' WHERE k = 1 RETURNING d - date '2024-01-01';
SELECT count(*) FROM lit_again WHERE d = '01/02/2024' AND k <> 5;
SELECT k FROM lit_again WHERE d = '01/02/2024' AND k = 3;
SELECT k % 2, count(*) FROM lit_again GROUP BY 1 HAVING max(d) = '01/02/2024' ORDER BY 1;
RESET datestyle;
SET timezone = 'UTC';
SELECT count(*) FROM lit_again WHERE at < '2024-01-01 00:00' AND k <> 5;
SELECT k % 2, count(*) FROM lit_again GROUP BY 1 HAVING max(at) < '2024-01-01 00:00' ORDER BY 1;
BEGIN;
UPDATE lit_again SET v = 'early' WHERE k = 2 AND at < '2024-01-01 00:00';
SELECT v FROM lit_again WHERE k = 2;
ROLLBACK;
SET timezone = 'America/New_York';
SELECT count(*) FROM lit_again WHERE at < '2024-01-01 00:00' AND k <> 5;
SELECT k % 2, count(*) FROM lit_again GROUP BY 1 HAVING max(at) < '2024-01-01 00:00' ORDER BY 1;
BEGIN;
UPDATE lit_again SET v = 'early' WHERE k = 2 AND at < '2024-01-01 00:00';
SELECT v FROM lit_again WHERE k = 2;
ROLLBACK;
RESET timezone;
BEGIN;
SET LOCAL timezone = 'Asia/Tokyo';
SELECT count(*) FROM lit_again WHERE at < '2024-01-01 00:00' AND k <> 5;
COMMIT;
SELECT count(*) FROM lit_again WHERE at < '2024-01-01 00:00' AND k <> 5;
DROP TABLE lit_again;
