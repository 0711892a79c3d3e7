-- What concerns the coordinator alone is as on one server: prepared statements, two-phase commit, objects that workers
-- have not got, rules, settings of libraries, and catalogs.

-- Prepared statements of the coordinator's: plans, casts, errors, and the SQL that may name them.
CREATE TABLE plain_table (a int PRIMARY KEY, b float8);
INSERT INTO plain_table SELECT i, i / 2.0 FROM generate_series(1, 100) i;
ANALYZE plain_table;
PREPARE find (int) AS SELECT b FROM plain_table WHERE a = $1;
EXECUTE find (7);
EXECUTE find (7.4);
--@ error: 42804
EXECUTE find (true);
SET plan_cache_mode = force_generic_plan;
--@ ordered
EXPLAIN (COSTS OFF) EXECUTE find (7);
RESET plan_cache_mode;
--@ ordered
EXPLAIN (COSTS OFF) EXECUTE find (7);
SELECT name, generic_plans, custom_plans, parameter_types FROM pg_prepared_statements WHERE name = 'find';
--@ ordered
EXPLAIN (COSTS OFF) CREATE TABLE made AS EXECUTE find (7);
CREATE TABLE made AS EXECUTE find (7);
SELECT * FROM made;
DO $$ DECLARE v float8; BEGIN EXECUTE 'EXECUTE find (8)' INTO v; RAISE NOTICE '%', v; END $$;
--@ error: 42704
PREPARE broken (nosuchtype) AS SELECT $1;
--@ error: 42P01
PREPARE broken AS SELECT * FROM no_such_table;
BEGIN;
PREPARE kept AS UPDATE plain_table SET b = b + 1 WHERE a = 1 RETURNING b;
EXECUTE kept;
ROLLBACK;
EXECUTE kept;
SELECT b FROM plain_table WHERE a = 1;
DEALLOCATE kept;
--@ error: 26000
EXECUTE kept;
PREPARE kept AS SELECT 1;
EXECUTE kept;
-- The table becomes distributed below it.
--@ cluster: SELECT create_distributed_table('plain_table', 'a')
EXECUTE find (7);
EXECUTE find (100);
DEALLOCATE find;
DROP TABLE plain_table;

-- Two-phase commit by the client.
CREATE TABLE two (a int);
BEGIN;
INSERT INTO two VALUES (1);
CREATE TABLE two_more (b int);
PREPARE TRANSACTION 'differential_one';
SELECT * FROM two;
SELECT gid FROM pg_prepared_xacts WHERE database = current_database();
--@ error: 42P01
SELECT * FROM two_more;
-- Definitions go on meanwhile.
CREATE TABLE two_meanwhile (c int);
COMMIT PREPARED 'differential_one';
SELECT * FROM two, two_more;
SELECT * FROM two;
INSERT INTO two_more VALUES (1);
BEGIN;
INSERT INTO two VALUES (2);
PREPARE TRANSACTION 'differential_two';
--@ error: 42704
COMMIT PREPARED 'differential_one';
ROLLBACK PREPARED 'differential_two';
SELECT * FROM two;
BEGIN;
CREATE TEMP TABLE two_temp (a int);
--@ error: 0A000
PREPARE TRANSACTION 'differential_three';
-- The transaction has ended with its error.
SELECT 1;
BEGIN;
--@ error: 22012
SELECT 1 / 0;
PREPARE TRANSACTION 'differential_four';
SELECT gid FROM pg_prepared_xacts WHERE database = current_database();
BEGIN;
--@ error: 25001
COMMIT PREPARED 'differential_five';
ROLLBACK;
CREATE TABLE spread (k int, v int);
--@ cluster: SELECT create_distributed_table('spread', 'k')

-- Functions, types and temporary objects.
CREATE TYPE hull;
CREATE FUNCTION hull_in(cstring) RETURNS hull AS 'textin' LANGUAGE internal STRICT IMMUTABLE;
CREATE FUNCTION hull_out(hull) RETURNS cstring AS 'textout' LANGUAGE internal STRICT IMMUTABLE;
CREATE TYPE hull (internallength = variable, input = hull_in, output = hull_out, alignment = int4);
CREATE FUNCTION of_hull(hull) RETURNS int LANGUAGE sql AS 'SELECT 1';
SELECT of_hull('x'::hull);
DROP TYPE hull CASCADE;
CREATE FUNCTION names_local() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM two';
CREATE OR REPLACE FUNCTION names_local() RETURNS bigint LANGUAGE sql AS 'SELECT 1 + count(*) FROM two';
SELECT names_local();
CREATE FUNCTION pg_temp.passing(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1';
SELECT pg_temp.passing(1);
CREATE OR REPLACE FUNCTION pg_temp.passing(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 2';
SELECT pg_temp.passing(1);
DROP FUNCTION pg_temp.passing(int);
-- A function that the workers do have is replaced there as well.
CREATE FUNCTION marked() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v + 100; RETURN NEW; END $$;
CREATE TRIGGER marked BEFORE INSERT ON spread FOR EACH ROW EXECUTE FUNCTION marked();
INSERT INTO spread VALUES (10, 1);
CREATE OR REPLACE FUNCTION marked() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v + 200; RETURN NEW; END $$;
INSERT INTO spread VALUES (10, 1);
SELECT v FROM spread WHERE k = 10;
ALTER FUNCTION marked() RENAME TO marked_anew;
INSERT INTO spread VALUES (11, 1);
SELECT v FROM spread WHERE k = 11;
--@ error: 2BP01
DROP FUNCTION marked_anew();
DROP FUNCTION marked_anew() CASCADE;
INSERT INTO spread VALUES (12, 1);
SELECT v FROM spread WHERE k = 12;

-- Rows of rules.
CREATE TABLE ruled (a int, b int);
INSERT INTO ruled VALUES (1, 2), (11, 12);
CREATE RULE looks AS ON UPDATE TO ruled DO INSTEAD SELECT * FROM ruled WHERE a = 1;
--@ mode: simple
UPDATE ruled SET b = 0;
SELECT * FROM ruled;
--@ error: 22P02
--@ mode: simple
UPDATE ruled SET b = 'x';
DROP RULE looks ON ruled;
UPDATE ruled SET b = 0;

-- Publications have the table that counts the catalog's changes as well.
--@ loose: a warning of wal_level
CREATE PUBLICATION everything FOR ALL TABLES;
CREATE TABLE published (a int PRIMARY KEY);
DROP PUBLICATION everything;

-- Partitions that leave while others look.
CREATE TABLE ranges (a int) PARTITION BY RANGE (a);
CREATE TABLE ranges_low PARTITION OF ranges FOR VALUES FROM (0) TO (10);
INSERT INTO ranges VALUES (5);
ALTER TABLE ranges DETACH PARTITION ranges_low CONCURRENTLY;
SELECT count(*) FROM ranges;
SELECT count(*) FROM ranges_low;
BEGIN;
--@ error: 25001
ALTER TABLE ranges DETACH PARTITION ranges_low CONCURRENTLY;
ROLLBACK;
--@ mode: simple
--@ error: 22023
CREATE TABLE magical (a int) PARTITION BY magic (a);

-- Catalogs in whole rows, and with the number of their table.
--@ text
SELECT * FROM pg_namespace WHERE nspname = 'public';
--@ text
SELECT n.*, 1 AS one FROM pg_namespace n WHERE nspname = 'public';
SELECT tableoid::regclass, nspname FROM pg_namespace WHERE nspname = 'public';
SELECT f.fdwname, d.description FROM pg_foreign_data_wrapper f LEFT JOIN pg_description d ON d.classoid = f.tableoid;
SELECT enumlabel FROM pg_enum;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT 1;
COMMIT;
--@ error: 22012
SELECT 1 / 0;
SELECT name, is_holdable FROM pg_cursors WHERE name = 'held';
CLOSE held;

-- Plain literals whose backslashes escape: the router reads them as the servers do.
CREATE TABLE slashes (k text, v int);
--@ cluster: SELECT create_distributed_table('slashes', 'k')
SET standard_conforming_strings = off;
SET escape_string_warning = off;
INSERT INTO slashes VALUES ('a\\b', 1), ('c\'d', 2), ('e\'f', 3), ('\\', 4), ('f\\
g', 5);
SELECT * FROM slashes WHERE k = 'a\\b';
SELECT * FROM slashes WHERE k = E'a\\b';
SELECT v FROM slashes WHERE k = 'c\'d' OR k = '\\' OR k = 'e\'f';
--@ params: 'x'
SELECT v, 'it\'s ' || $1 || '\'' FROM slashes WHERE k = 'a\\b';
SELECT 'a\\b' AS one, 'it''s', '\\'
  'n' AS two, $$\$$ AS three;
RESET standard_conforming_strings;
SELECT * FROM slashes WHERE k = 'a\b';
SELECT v FROM slashes WHERE k = '\' OR k = 'c''d';
BEGIN;
SET LOCAL standard_conforming_strings = off;
SELECT * FROM slashes WHERE k = 'a\\b';
COMMIT;
SELECT * FROM slashes WHERE k = 'a\\b';
RESET escape_string_warning;

-- Rows that pass the router are the same whatever the client's styles are.
CREATE TABLE moments (k int, at timestamptz, f float8, s interval, r tstzrange);
INSERT INTO moments VALUES (1, '2020-01-02 03:04:05+05:30', 0.1::float8 + 0.2::float8, '-1 day 2 hours',
    '[2020-01-02 03:04:05+05:30, infinity)'), (2, '0097-02-16 17:32:01+00 BC', 1e-7 / 3, '1 mon -3 days', NULL);
CREATE TABLE few (k int PRIMARY KEY, at timestamptz, f float8);
SET timezone = 'Asia/Kolkata';
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'sql_standard';
SET extra_float_digits = -5;
--@ cluster: SELECT create_distributed_table('moments', 'k')
--@ cluster: SELECT create_reference_table('few')
INSERT INTO moments SELECT k + 10, at + interval '1 hour', f * 3, s * 2, r FROM moments ORDER BY k LIMIT 2;
INSERT INTO moments (k, at, f) VALUES (21, (SELECT at FROM moments WHERE k = 1), (SELECT f / 7 FROM moments WHERE k = 1)),
    (22, (SELECT max(at) FROM moments), NULL);
INSERT INTO few SELECT k, at, f FROM moments WHERE k < 10;
INSERT INTO few VALUES (50, (SELECT at FROM moments WHERE k = 1), (SELECT f FROM moments WHERE k = 1)) RETURNING k, at;
UPDATE moments SET k = k + 100 WHERE k > 20;
SELECT at, f, s, r FROM moments WHERE k = 1;
RESET datestyle;
RESET intervalstyle;
RESET extra_float_digits;
SET timezone = 'UTC';
SELECT * FROM moments;
SELECT m.k, w.at = m.at, w.f = m.f FROM moments m JOIN few w ON w.k = m.k;
SELECT * FROM few;
BEGIN;
SET LOCAL timezone = 'Asia/Kolkata';
SET LOCAL datestyle = 'Postgres';
SET LOCAL extra_float_digits = 0;
INSERT INTO moments SELECT k + 1000, at, f FROM few ORDER BY k LIMIT 2;
COMMIT;
SELECT * FROM moments WHERE k > 1000;
RESET timezone;

-- Parts of columns.
CREATE TYPE pair AS (x int, y text[]);
CREATE TABLE parted (k int, a int[], p pair);
--@ cluster: SELECT create_distributed_table('parted', 'k')
INSERT INTO parted (k, a[1], a[2]) VALUES (1, 1, 2), (2, 3, 4);
INSERT INTO parted (k, a[1], a[2]) SELECT k + 10, 7, 8 FROM few ORDER BY k LIMIT 1;
INSERT INTO parted (k, p.x, p.y) SELECT 3, 4, '{b}';
SELECT * FROM parted;
