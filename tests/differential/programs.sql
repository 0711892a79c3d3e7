--@ include: schema.sql
-- Triggers, procedures, DO blocks and functions in PL/pgSQL that read and write distributed, reference and local tables.

CREATE TABLE jobs (k int PRIMARY KEY, state text DEFAULT 'new', n int DEFAULT 0, at timestamptz);
CREATE TABLE job_log (k int, what text, n int);
CREATE TABLE totals (name text PRIMARY KEY, n bigint);
CREATE TABLE local_log (id serial, what text, k int);
CREATE TABLE ref_words (code int PRIMARY KEY, word text);
--@ cluster: SELECT create_distributed_table('jobs', 'k'), create_distributed_table('job_log', 'k', colocate_with => 'jobs')
--@ cluster: SELECT create_reference_table('ref_words')
INSERT INTO jobs SELECT g, 'new', g % 5 FROM generate_series(1, 20) g;
INSERT INTO ref_words SELECT g, 'word ' || g FROM generate_series(0, 4) g;
INSERT INTO totals VALUES ('jobs', 20);

-- Row triggers.
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.at := '2022-02-02 00:00+00'; NEW.state := upper(NEW.state); RETURN NEW; END $$;
CREATE TRIGGER jobs_stamp BEFORE INSERT OR UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION stamp();
INSERT INTO jobs (k, state) VALUES (21, 'one') RETURNING state, at IS NOT NULL;
INSERT INTO jobs (k, state) VALUES (22, 'two'), (23, 'three'), (24, 'four');
SELECT k, state FROM jobs WHERE k > 20;
UPDATE jobs SET state = 'moved' WHERE k = 1 RETURNING state;
UPDATE jobs SET state = state || '!' WHERE k < 6;
SELECT k, state, at IS NULL FROM jobs;
COPY jobs (k, state) FROM STDIN;
31	copied
32	copied
33	copied
\.
SELECT k, state FROM jobs WHERE k > 30;
INSERT INTO jobs (k, state) SELECT g, 'selected' FROM generate_series(41, 44) g;
SELECT k, state FROM jobs WHERE k > 40;
INSERT INTO jobs (k, state) VALUES (41, 'again') ON CONFLICT (k) DO UPDATE SET state = excluded.state RETURNING state;
CREATE FUNCTION veto() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.n = 3 THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER jobs_veto BEFORE DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION veto();
DELETE FROM jobs WHERE k BETWEEN 2 AND 4;
SELECT k FROM jobs WHERE k < 6;
DELETE FROM jobs WHERE k = 3;
DELETE FROM jobs WHERE k = 6 RETURNING k;
CREATE FUNCTION refuse_big() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.n > 100 THEN RAISE EXCEPTION 'too big: %', NEW.n USING ERRCODE = '22003', HINT = 'smaller'; END IF; RETURN NEW; END $$;
CREATE TRIGGER jobs_big BEFORE INSERT OR UPDATE OF n ON jobs FOR EACH ROW WHEN (NEW.n IS NOT NULL) EXECUTE FUNCTION refuse_big();
--@ error: 22003
INSERT INTO jobs (k, n) VALUES (50, 500);
--@ error: 22003
UPDATE jobs SET n = 500 WHERE k = 7;
--@ error: 22003
UPDATE jobs SET n = 500;
--@ error: 22003
INSERT INTO jobs (k, n) VALUES (51, 1), (52, 2), (53, 500), (54, 4);
SELECT count(*), max(n) FROM jobs;
ALTER TABLE jobs DISABLE TRIGGER jobs_big;
UPDATE jobs SET n = 500 WHERE k = 7 RETURNING n;
ALTER TABLE jobs ENABLE TRIGGER jobs_big;
ALTER TRIGGER jobs_big ON jobs RENAME TO jobs_large;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'jobs'::regclass AND NOT tgisinternal;
ALTER TABLE jobs DISABLE TRIGGER ALL;
INSERT INTO jobs (k, state) VALUES (60, 'quiet') RETURNING state;
ALTER TABLE jobs ENABLE TRIGGER USER;
CREATE TRIGGER items_of_n BEFORE UPDATE OF n ON jobs FOR EACH ROW WHEN (OLD.n IS DISTINCT FROM NEW.n) EXECUTE FUNCTION stamp();
UPDATE jobs SET n = 1 WHERE k = 60 RETURNING state;
DROP TRIGGER items_of_n ON jobs;
CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.state := lower(NEW.state); RETURN NEW; END $$;
UPDATE jobs SET state = 'LOWER' WHERE k IN (60, 61, 7) RETURNING k, state;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', TG_OP, TG_NAME, coalesce(NEW.k, OLD.k); RETURN NULL; END $$;
CREATE TRIGGER jobs_noted AFTER INSERT OR UPDATE OR DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION noted();
INSERT INTO jobs (k) VALUES (70);
UPDATE jobs SET n = 2 WHERE k = 70;
DELETE FROM jobs WHERE k = 70;
DROP TRIGGER jobs_noted ON jobs;
DROP FUNCTION noted;
--@ error: 2BP01
DROP FUNCTION stamp;
DROP TRIGGER jobs_stamp ON jobs;
DROP TRIGGER IF EXISTS jobs_stamp ON jobs;
DROP TRIGGER jobs_veto ON jobs;
DROP TRIGGER jobs_large ON jobs;

-- Statement triggers.
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE 'statement % on %', TG_OP, TG_TABLE_NAME; RETURN NULL; END $$;
CREATE TRIGGER local_say AFTER INSERT OR UPDATE ON local_notes FOR EACH STATEMENT EXECUTE FUNCTION say();
INSERT INTO local_notes (user_id, body) VALUES (1, 'x'), (2, 'y');
UPDATE local_notes SET stars = 1 WHERE id = 1;
DROP TRIGGER local_say ON local_notes;

-- Triggers of local tables that read distributed ones, and write them.
CREATE FUNCTION fill_body() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.body := (SELECT name FROM users WHERE id = NEW.user_id); RETURN NEW; END $$;
CREATE TRIGGER local_fill BEFORE INSERT ON local_notes FOR EACH ROW EXECUTE FUNCTION fill_body();
INSERT INTO local_notes (user_id) VALUES (5) RETURNING body;
INSERT INTO local_notes (user_id) SELECT g FROM generate_series(6, 9) g;
SELECT user_id, body FROM local_notes WHERE id > 26;
DROP TRIGGER local_fill ON local_notes;
CREATE FUNCTION count_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE jobs SET n = n + 1 WHERE k = NEW.stars; RETURN NULL; END $$;
CREATE TRIGGER local_count AFTER INSERT ON local_notes FOR EACH ROW EXECUTE FUNCTION count_note();
INSERT INTO local_notes (user_id, stars) VALUES (5, 8), (5, 8), (5, 9);
SELECT k, n FROM jobs WHERE k IN (8, 9);
DROP TRIGGER local_count ON local_notes;

-- Functions that read.
CREATE FUNCTION job_count(s text) RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM jobs WHERE state = s); END $$;
SELECT job_count('new'), job_count('nothing');
CREATE FUNCTION describe_job(i int, OUT s text, OUT w text) STABLE LANGUAGE plpgsql AS $$ BEGIN SELECT j.state, r.word INTO s, w FROM jobs j LEFT JOIN ref_words r ON r.code = j.n WHERE j.k = i; END $$;
SELECT * FROM describe_job(8);
SELECT g, (describe_job(g)).w FROM generate_series(9, 12) g;
CREATE FUNCTION jobs_of(m int) RETURNS SETOF jobs STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT * FROM jobs WHERE n = m ORDER BY k; RETURN; END $$;
SELECT k, n FROM jobs_of(2);
SELECT r.word, j.k FROM ref_words r, jobs_of(r.code) j;
CREATE FUNCTION sum_loop() RETURNS numeric STABLE LANGUAGE plpgsql AS $$ DECLARE r record; s numeric := 0; BEGIN FOR r IN SELECT o.total, i.qty FROM orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id LOOP s := s + coalesce(r.total, 0) * r.qty; END LOOP; RETURN s; END $$;
SELECT sum_loop();
CREATE FUNCTION dyn(t text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %I', t) INTO n; RETURN n; END $$;
SELECT dyn('users'), dyn('regions'), dyn('local_notes') > 0, dyn('friends');
CREATE FUNCTION exists_user(i bigint) RETURNS boolean STABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 FROM users WHERE id = i; RETURN FOUND; END $$;
SELECT exists_user(5), exists_user(500);
SELECT id FROM friends WHERE NOT exists_user(a);
SELECT count(*) FROM friends WHERE exists_user(b);
CREATE FUNCTION walk() RETURNS text LANGUAGE plpgsql AS $$ DECLARE c CURSOR FOR SELECT id FROM users WHERE id < 6 ORDER BY id; r record; t text := ''; BEGIN OPEN c; LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; t := t || r.id || ' '; END LOOP; CLOSE c; RETURN t; END $$;
SELECT walk();
CREATE FUNCTION strict_one(i bigint) RETURNS text LANGUAGE plpgsql AS $$ DECLARE t text; BEGIN SELECT name INTO STRICT t FROM users WHERE id > i AND id < 8; RETURN t; END $$;
SELECT strict_one(6);
--@ error: P0002
SELECT strict_one(7);
--@ error: P0003
SELECT strict_one(1);
CREATE FUNCTION caught() RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / (id - id) FROM users; RETURN 'no'; EXCEPTION WHEN division_by_zero THEN RETURN (SELECT 'caught ' || count(*) FROM users); END $$;
SELECT caught();

-- Functions and procedures that write.
CREATE FUNCTION bump(i int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN UPDATE jobs SET n = n + 1 WHERE k = i RETURNING n INTO r; RETURN r; END $$;
--@ repeat: 1
SELECT bump(8);
SELECT n FROM jobs WHERE k = 8;
CREATE FUNCTION add_job(i int, s text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO jobs (k, state) VALUES (i, s); INSERT INTO local_log (what, k) VALUES ('add', i); END $$;
--@ repeat: 1
SELECT add_job(80, 'by function');
--@ error: 23505
--@ loose: postgres_fdw passes no names of constraints
--@ repeat: 1
SELECT add_job(80, 'twice');
SELECT * FROM jobs WHERE k = 80;
SELECT what, k FROM local_log;
CREATE PROCEDURE shift(a int, b int, m int) LANGUAGE plpgsql AS $$ BEGIN UPDATE jobs SET n = n - m WHERE k = a; UPDATE jobs SET n = n + m WHERE k = b; INSERT INTO local_log (what, k) VALUES ('shift', m); END $$;
CALL shift(8, 9, 1);
SELECT k, n FROM jobs WHERE k IN (8, 9);
BEGIN;
CALL shift(8, 9, 100);
SELECT k, n FROM jobs WHERE k IN (8, 9);
ROLLBACK;
SELECT k, n FROM jobs WHERE k IN (8, 9);
CREATE PROCEDURE shift_out(a int, INOUT total bigint) LANGUAGE plpgsql AS $$ BEGIN DELETE FROM jobs WHERE n = a; SELECT count(*) INTO total FROM jobs; END $$;
CALL shift_out(4, 0);
SELECT count(*) FROM jobs;
CREATE PROCEDURE sql_proc(i int) LANGUAGE sql AS 'UPDATE jobs SET state = ''sql'' WHERE k = i; DELETE FROM jobs WHERE k = i + 1';
CALL sql_proc(10);
SELECT k, state FROM jobs WHERE k IN (10, 11);
CREATE PROCEDURE fails() LANGUAGE plpgsql AS $$ BEGIN UPDATE jobs SET n = -1; RAISE EXCEPTION 'no' USING ERRCODE = 'XX999'; END $$;
--@ error: XX999
CALL fails();
SELECT count(*) FROM jobs WHERE n = -1;
CREATE PROCEDURE local_steps() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO local_log (what, k) VALUES ('step', i); COMMIT; END LOOP; END $$;
CALL local_steps();
SELECT count(*) FROM local_log WHERE what = 'step';

-- DO.
DO $$ BEGIN UPDATE jobs SET n = 0 WHERE k = 8; END $$;
DO $$ DECLARE i int; BEGIN FOR i IN 90..94 LOOP INSERT INTO jobs (k, state, n) VALUES (i, 'do', i); END LOOP; END $$;
SELECT count(*), sum(n) FROM jobs WHERE state = 'do';
DO $$ BEGIN DELETE FROM jobs USING ref_words r WHERE r.code = 0 AND jobs.state = 'do' AND jobs.k = 90 + r.code; END $$;
SELECT count(*) FROM jobs WHERE state = 'do';
DO $$ BEGIN BEGIN INSERT INTO jobs (k) VALUES (91); EXCEPTION WHEN unique_violation THEN UPDATE jobs SET state = 'caught' WHERE k = 91; END; UPDATE totals SET n = (SELECT count(*) FROM jobs) WHERE name = 'jobs'; END $$;
SELECT k, state FROM jobs WHERE k = 91;
SELECT n = (SELECT count(*) FROM jobs) FROM totals;
DO $$ DECLARE r record; BEGIN FOR r IN SELECT k FROM jobs WHERE n > 90 ORDER BY k LOOP UPDATE jobs SET state = 'loop' WHERE k = r.k; END LOOP; END $$;
SELECT count(*) FROM jobs WHERE state = 'loop';
DO $$ BEGIN INSERT INTO job_log SELECT k, state, n FROM jobs WHERE k < 15; END $$;
SELECT count(*), sum(n) FROM job_log;
DO $$ BEGIN RAISE NOTICE 'there are % jobs', (SELECT count(*) FROM jobs WHERE k < 10); RAISE WARNING 'warned'; END $$;
DO $$ BEGIN EXECUTE 'UPDATE jobs SET state = $1 WHERE k = $2' USING 'dynamic', 12; END $$;
SELECT state FROM jobs WHERE k = 12;
DO LANGUAGE plpgsql $$ DECLARE n int; BEGIN WITH d AS (DELETE FROM job_log WHERE k < 10 RETURNING k) SELECT count(*) INTO n FROM d; RAISE NOTICE 'gone %', n > 0; END $$;
--@ error: 23505
--@ loose: postgres_fdw passes no names of constraints
DO $$ BEGIN INSERT INTO jobs (k) VALUES (100); INSERT INTO jobs (k) VALUES (100); END $$;
SELECT count(*) FROM jobs WHERE k = 100;
BEGIN;
DO $$ BEGIN UPDATE jobs SET n = 77; END $$;
SELECT count(*), sum(n) FROM jobs WHERE n = 77 AND k < 5;
SAVEPOINT a;
DO $$ BEGIN DELETE FROM jobs; END $$;
SELECT count(*) FROM jobs;
ROLLBACK TO a;
SELECT count(*) > 0 FROM jobs;
ROLLBACK;
SELECT count(*) FROM jobs WHERE n = 77;
--@ error: 42601
DO $$ BEGIN this is no SQL; END $$;
--@ error: 42704
DO LANGUAGE nowhere $$ $$;

-- Rules.
CREATE VIEW new_jobs AS SELECT k, state, n FROM jobs WHERE state = 'new';
CREATE RULE insert_new AS ON INSERT TO new_jobs DO INSTEAD INSERT INTO jobs (k, state, n) VALUES (NEW.k, 'new', NEW.n);
INSERT INTO new_jobs VALUES (120, 'ignored', 1);
SELECT * FROM jobs WHERE k = 120;
CREATE RULE no_delete AS ON DELETE TO local_log DO INSTEAD NOTHING;
DELETE FROM local_log;
SELECT count(*) > 0 FROM local_log;
DROP RULE no_delete ON local_log;
CREATE FUNCTION route_view() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE jobs SET n = NEW.n WHERE k = OLD.k; RETURN NEW; END $$;
CREATE VIEW old_jobs AS SELECT k, n FROM jobs WHERE k < 20;
CREATE TRIGGER instead INSTEAD OF UPDATE ON old_jobs FOR EACH ROW EXECUTE FUNCTION route_view();
UPDATE old_jobs SET n = 55 WHERE k = 14;
SELECT n FROM jobs WHERE k = 14;

-- Procedures that end transactions in those that they call, and bodies that only have the words.
CREATE TABLE ended (k int PRIMARY KEY, commit int DEFAULT 0);
CREATE TABLE ended_here (k int);
--@ cluster: SELECT create_distributed_table('ended', 'k')
INSERT INTO ended SELECT g FROM generate_series(1, 4) g;
CREATE PROCEDURE inner_end(n int) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ended_here VALUES (n); COMMIT; INSERT INTO ended_here VALUES (n + 1); ROLLBACK; END $$;
CREATE PROCEDURE outer_end(n int) LANGUAGE plpgsql AS $$ DECLARE c int; BEGIN SELECT count(*) INTO c FROM ended; IF c > 0 THEN CALL inner_end(n + c); END IF; END $$;
CREATE PROCEDURE outermost_end(n int) LANGUAGE plpgsql AS $$ BEGIN DO $x$ BEGIN CALL outer_end(300); END $x$; CALL public.outer_end(n); END $$;
CALL outer_end(100);
CALL outermost_end(200);
DO $$ BEGIN CALL outer_end(400); END $$;
SELECT * FROM ended_here;
BEGIN;
--@ error: 2D000
CALL outer_end(500);
ROLLBACK;
CREATE PROCEDURE only_says(n int) LANGUAGE plpgsql AS $$
DECLARE rollback int := n;
BEGIN
  -- No commit; nor a rollback;
  UPDATE ended SET commit = commit + rollback WHERE k < 3;
  RAISE NOTICE '; commit; %', rollback;
  INSERT INTO ended (k, commit) VALUES (rollback + 100, 1);
END $$;
CALL only_says(1);
CREATE PROCEDURE calls_it(n int) LANGUAGE plpgsql AS $$ BEGIN CALL only_says(n); END $$;
CALL calls_it(2);
DO $$ /* commit; */ BEGIN CALL calls_it(3); UPDATE ended SET commit = 7 WHERE k = 4; END $$;
CREATE PROCEDURE in_sql(n int) LANGUAGE sql AS $$ UPDATE ended SET commit = commit + n $$;
CALL in_sql(1);
SELECT * FROM ended;
