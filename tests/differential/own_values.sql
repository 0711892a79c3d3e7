--@ include: schema.sql
-- What a session has of its own, and what shows things of ours.

CREATE SEQUENCE ov_seq;
CREATE TABLE ov (k int PRIMARY KEY, v text, n int DEFAULT 0);
CREATE TABLE ov_own (k int PRIMARY KEY, pid int DEFAULT pg_backend_pid(), x text DEFAULT pg_current_xact_id()::text);
CREATE TABLE ov_pids (pid int);
CREATE FUNCTION ov_one() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE TABLE ov_needs (k int PRIMARY KEY, n int, CONSTRAINT ov_check CHECK (n >= ov_one()));
CREATE TABLE ov_view_of (k int PRIMARY KEY, n int DEFAULT ov_one());
CREATE TABLE ov_tree (k int, day date) PARTITION BY RANGE (day);
CREATE TABLE ov_tree_1 PARTITION OF ov_tree FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE ov_tree_2 PARTITION OF ov_tree FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY LIST (k);
CREATE TABLE ov_tree_3 PARTITION OF ov_tree_2 DEFAULT;
--@ cluster: SELECT create_distributed_table('ov', 'k'), create_distributed_table('ov_own', 'k'), create_distributed_table('ov_needs', 'k'), create_distributed_table('ov_view_of', 'k'), create_distributed_table('ov_tree', 'k')

-- Which rows of an upsert are new, for several rows.
INSERT INTO ov VALUES (1, 'a'), (2, 'b'), (3, 'c') ON CONFLICT (k) DO UPDATE SET v = 'again' RETURNING k, xmax = 0 AS inserted;
INSERT INTO ov VALUES (2, 'x'), (4, 'y'), (11, 'z') ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v, n = ov.n + 1 RETURNING k, v, n > 0, (xmax = 0) AS inserted;
DELETE FROM ov WHERE k > 3;
INSERT INTO ov AS o (v, k) VALUES ('p', 3), ('q', 5), ('r', 6), ('s', 7) ON CONFLICT (k) DO UPDATE SET v = o.v || EXCLUDED.v WHERE o.k > 0 RETURNING o.k, (o.xmax = 0) AS inserted;
DELETE FROM ov WHERE k > 3;
INSERT INTO ov SELECT g, 's' || g FROM generate_series(2, 6) g ON CONFLICT (k) DO UPDATE SET n = ov.n + 1 RETURNING k, xmax = 0 AS inserted;
DELETE FROM ov WHERE k > 3;
INSERT INTO ov (k, v) SELECT * FROM unnest(ARRAY[3, 4, 5], ARRAY['i', 'j', 'k']) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v RETURNING k, v, xmax <> 0;
DELETE FROM ov WHERE k > 3;
INSERT INTO ov (k, v) SELECT k + 2, v FROM ov ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v RETURNING k, xmax = 0;
DELETE FROM ov WHERE k > 3;
INSERT INTO ov (k, v) VALUES (8, 'a'), (9, 'b') ON CONFLICT (k) DO NOTHING RETURNING k, xmin IS NULL, cmin IS NULL, xmax;
INSERT INTO ov (k, v) VALUES (8, 'a'), (9, 'b'), (10, 'c') ON CONFLICT (k) DO NOTHING RETURNING xmax, *;
DELETE FROM ov WHERE k > 3;
--@ params: 3, 4, 'p'
INSERT INTO ov (k, v) VALUES ($1, $3), ($2, $3) ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v RETURNING k, v, xmin IS NULL;

-- What a function has drawn from a sequence.
CREATE FUNCTION ov_next() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('ov_seq'); END $$;
CREATE FUNCTION ov_outer() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN ov_next() + 0; END $$;
CREATE PROCEDURE ov_call() LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('ov_seq'); END $$;
SELECT ov_next() = currval('ov_seq');
SELECT currval('ov_seq') > 0, lastval() = currval('ov_seq');
SELECT ov_outer() > 0;
SELECT currval('ov_seq') > 0, lastval() > 0;
DO $$ BEGIN PERFORM nextval('ov_seq'); END $$;
SELECT currval('ov_seq') = lastval();
CALL ov_call();
SELECT currval('ov_seq') = lastval();
CREATE FUNCTION ov_lock(i int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN pg_try_advisory_lock(77, i); END $$;
SELECT ov_lock(5);
SELECT 1 FROM ov WHERE k = 1;
SELECT pg_advisory_unlock(77, 5);

-- The session's process.
SELECT pg_backend_pid() = pg_backend_pid(), pg_backend_pid() > 0;
INSERT INTO ov_own (k) VALUES (1);
INSERT INTO ov_own (k) VALUES (2), (3), (4);
INSERT INTO ov_own (k, pid) VALUES (5, pg_backend_pid()), (6, DEFAULT);
INSERT INTO ov_own (k) SELECT g FROM generate_series(7, 9) g;
SELECT k, pid = pg_backend_pid() FROM ov_own ORDER BY k;
SELECT count(*) FROM ov_own WHERE pid = pg_backend_pid();
INSERT INTO ov_pids VALUES (pg_backend_pid());
SELECT DISTINCT pid = pg_backend_pid() FROM ov_pids;
--@ on: b
INSERT INTO ov_pids VALUES (pg_backend_pid());
--@ on: b
SELECT count(DISTINCT pid), count(DISTINCT pid) FILTER (WHERE pid = pg_backend_pid()) FROM ov_pids;
SELECT count(*) FROM pg_stat_activity WHERE pid = pg_backend_pid();
SELECT count(*) > 0 FROM pg_locks WHERE pid = pg_backend_pid();
DELETE FROM ov_own;
BEGIN;
INSERT INTO ov_own (k) VALUES (1);
INSERT INTO ov_own (k) VALUES (2), (3);
INSERT INTO ov_own (k) SELECT g FROM generate_series(7, 9) g;
SELECT count(DISTINCT x) FROM ov_own;
ROLLBACK;

-- Objects of ours.
--@ error: 2BP01
DROP FUNCTION ov_one();
SELECT relid, parentrelid, isleaf, level FROM pg_partition_tree('ov_tree') ORDER BY level, relid::text;
SELECT count(*) FROM pg_catalog.pg_partition_tree('ov_tree_2') AS t WHERE t.isleaf;
SELECT p.relid FROM pg_partition_tree('ov_tree') p JOIN pg_class c ON c.oid = p.relid WHERE p.level = 1 ORDER BY 1;
SELECT pg_partition_tree('ov_tree_1');
SELECT pg_partition_root('ov_tree_3'), count(*) FROM pg_partition_ancestors('ov_tree_3');
SELECT count(*) FROM pg_stat_user_tables WHERE schemaname ~ 'pgherd';
SELECT count(*) FROM pg_statio_user_tables WHERE schemaname ~ 'pgherd';
SELECT count(*) FROM pg_stat_user_indexes WHERE schemaname ~ 'pgherd';
SELECT count(*) FROM pg_stat_all_tables s JOIN pg_class c ON c.oid = s.relid WHERE s.relname = 'ov_own';
SELECT relname FROM pg_stat_user_tables WHERE relname ~ '^ov_p' ORDER BY 1;
SELECT count(*) FROM pg_stat_user_functions WHERE schemaname ~ 'pgherd';
-- The session's process in a subquery that is computed first: its value, name and place are edits of one text.
CREATE TABLE pids (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('pids', 'k')
INSERT INTO pids SELECT g, g FROM generate_series(1, 5) g;
--@ ordered
SELECT k, pg_backend_pid() = (SELECT pg_backend_pid()) FROM pids ORDER BY k;
--@ ordered
SELECT k, 1 = (SELECT pg_backend_pid()) FROM pids ORDER BY k LIMIT 2;
SELECT k, (SELECT pg_backend_pid()) IS NULL FROM pids;
SELECT (SELECT now()) = now(), k FROM pids WHERE k = 3 OR (SELECT now()) < now();
SELECT count(*), pg_backend_pid() = (SELECT pg_backend_pid()), max(v) FROM pids GROUP BY k, v HAVING max(v) > 2 ORDER BY max(v) FETCH FIRST 2 ROWS WITH TIES;
BEGIN;
UPDATE pids SET v = v + 1;
SELECT k, pg_backend_pid() = (SELECT pg_backend_pid()), v FROM pids WHERE (SELECT pg_backend_pid()) = pg_backend_pid();
ROLLBACK;
-- The time is a group, and assigned with another value.
BEGIN;
UPDATE pids SET v = v;
SELECT current_date = now()::date, count(*) FROM pids GROUP BY current_date;
SELECT count(*) FROM pids GROUP BY now(), 'today'::date;
ALTER TABLE pids ADD COLUMN ts timestamptz;
UPDATE pids SET (ts, v) = (SELECT now(), 1);
SELECT count(*) FROM pids WHERE ts = now() AND v = 1;
ROLLBACK;
DROP TABLE pids;
