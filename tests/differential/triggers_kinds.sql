-- Triggers that the coordinator fires, further: odd names and types, settings of the client, exceptions and loops, views, statements that
-- were prepared before, blocks that define, row security, rights on columns, foreign keys, TRUNCATE.

CREATE SCHEMA "My S";
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN pos AS int CHECK (VALUE > 0);
CREATE TABLE "My S"."T t" ("K k" int PRIMARY KEY, m mood, p pair, d pos, ts timestamptz, i interval, n numeric(10,2), j jsonb, a text[], b bytea, f float8, da date, c char(5), x text COLLATE "C");
--@ cluster: SELECT create_distributed_table('"My S"."T t"', 'K k')
CREATE TABLE log1 (k int, what text, r jsonb);
--@ cluster: SELECT create_distributed_table('log1', 'k')
CREATE FUNCTION "My S"."F f"() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE s text := E'it\'s TG_TABLE_NAME'; d text := $q$a 'TG_RELID' $q$;
BEGIN
  /* don't 'TG_TABLE_NAME */ -- it's TG_TABLE_SCHEMA
  INSERT INTO log1 VALUES (coalesce(NEW."K k", OLD."K k"), format('%I.%I %s %s %s %s', TG_TABLE_SCHEMA, tg_table_name, "tg_op", s, d, array_to_string(TG_ARGV, '|')), CASE WHEN TG_OP = 'DELETE' THEN to_jsonb(OLD) ELSE to_jsonb(NEW) END);
  RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $f$;
CREATE TRIGGER "Tr %s 'x'" BEFORE INSERT OR UPDATE OR DELETE ON "My S"."T t" FOR EACH ROW EXECUTE FUNCTION "My S"."F f"('a''b', E'c\\d', '', '%s', 'ü');
CREATE TRIGGER "after" AFTER UPDATE OF "K k", m ON "My S"."T t" FOR EACH ROW WHEN (OLD.m IS DISTINCT FROM NEW.m AND NEW.x <> E'a''\\b') EXECUTE FUNCTION "My S"."F f"('after');
SET datestyle = 'German';
SET intervalstyle = 'iso_8601';
SET timezone = 'America/New_York';
SET extra_float_digits = 0;
SET bytea_output = 'escape';
INSERT INTO "My S"."T t" VALUES (1, 'sad', (1, 'x, "y"'), 5, '2020-05-06 07:08:09.123456+00', '1 day 2 hours', 1.25, '{"a": [1]}', '{a,"b c",NULL}', '\x00ff', 0.1, '2020-02-03', 'ab', 'x'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
UPDATE "My S"."T t" SET m = 'ok' WHERE "K k" = 1 RETURNING *;
UPDATE "My S"."T t" SET d = 7, i = '-3 days', n = 2.005, f = 1e-300, x = 'q' RETURNING *;
--@ error: 23514
UPDATE "My S"."T t" SET d = -1 WHERE "K k" = 1;
DELETE FROM "My S"."T t" WHERE "K k" = 2 RETURNING *;
RESET ALL;
SELECT * FROM log1;
SELECT * FROM "My S"."T t";
CREATE FUNCTION key_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW."K k" := NEW."K k" + (SELECT count(*) FROM log1 WHERE k = -5)::int; PERFORM 1 FROM log1; RETURN NEW; END $$;
CREATE TRIGGER key_up BEFORE UPDATE ON "My S"."T t" FOR EACH ROW EXECUTE FUNCTION key_up();
UPDATE "My S"."T t" SET x = 'r' WHERE "K k" = 1 RETURNING x;
INSERT INTO log1 VALUES (-5);
--@ refused: 0A000
UPDATE "My S"."T t" SET x = 's' WHERE "K k" = 1 RETURNING x;
DELETE FROM log1;
DROP SCHEMA "My S" CASCADE;

-- Exceptions, temp tables, dynamic SQL, loops.
CREATE TABLE w (k int PRIMARY KEY, v int);
CREATE TABLE uniq (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('w', 'k'), create_distributed_table('uniq', 'k')
CREATE FUNCTION once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    INSERT INTO uniq VALUES (NEW.v, 1);
  EXCEPTION WHEN unique_violation THEN
    EXECUTE 'UPDATE ' || TG_ARGV[0] || ' SET n = n + 1 WHERE k = $1' USING NEW.v;
    RAISE NOTICE 'again % in %', NEW.v, TG_TABLE_NAME;
  END;
  CREATE TEMP TABLE IF NOT EXISTS seen_here (k int);
  INSERT INTO seen_here VALUES (NEW.k);
  RETURN NEW;
END $$;
CREATE TRIGGER once BEFORE INSERT OR UPDATE ON w FOR EACH ROW EXECUTE FUNCTION once('uniq');
BEGIN;
INSERT INTO w VALUES (1, 1), (2, 2), (3, 1), (4, 1);
SELECT * FROM uniq;
SELECT * FROM seen_here;
UPDATE w SET v = 9 WHERE k = 1;
UPDATE w SET v = 9 WHERE k = 2;
SELECT * FROM uniq;
--@ error: 23505
INSERT INTO w VALUES (5, 5), (1, 1);
ROLLBACK;
SELECT count(*) FROM w;
INSERT INTO w VALUES (1, 1), (2, 2), (3, 1);
DO $$ DECLARE r record; s text := ''; BEGIN
  FOR r IN UPDATE w SET v = v + 10 WHERE k = 2 RETURNING k, v LOOP s := s || r.k || '/' || r.v || ' '; END LOOP;
  FOR r IN DELETE FROM w WHERE k = 3 RETURNING k, v LOOP s := s || r.k || '/' || r.v || ' '; END LOOP;
  FOR r IN INSERT INTO w VALUES (30, 30), (31, 31) RETURNING k, v LOOP s := s || r.k || '/' || r.v || ' '; END LOOP;
  RAISE NOTICE '%', s; END $$;
SELECT * FROM w;
SELECT * FROM uniq;
CREATE VIEW wv AS SELECT k, v FROM w WHERE v < 100;
INSERT INTO wv VALUES (40, 40);
UPDATE wv SET v = 41 WHERE k = 40;
DELETE FROM wv WHERE k = 40 RETURNING *;
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP = 'INSERT' THEN INSERT INTO w VALUES (NEW.k, NEW.v * 2); ELSE UPDATE w SET v = NEW.v * 3 WHERE k = OLD.k; END IF; RETURN NEW; END $$;
CREATE TRIGGER instead INSTEAD OF INSERT OR UPDATE ON wv FOR EACH ROW EXECUTE FUNCTION instead();
INSERT INTO wv VALUES (50, 5), (51, 6);
UPDATE wv SET v = 7 WHERE k = 50;
SELECT * FROM w WHERE k >= 50;
DROP TRIGGER once ON w;

-- Prepared before; made and dropped in a block.
PREPARE ins (int) AS INSERT INTO w VALUES ($1, $1);
EXECUTE ins (60);
EXECUTE ins (61);
PREPARE upd (int) AS UPDATE w SET v = v + 1 WHERE k = $1;
EXECUTE upd (60);
CREATE TRIGGER once BEFORE INSERT OR UPDATE ON w FOR EACH ROW EXECUTE FUNCTION once('uniq');
EXECUTE ins (62);
EXECUTE upd (60);
SELECT * FROM uniq WHERE k > 50;
ALTER TABLE w DISABLE TRIGGER once;
EXECUTE ins (63);
EXECUTE upd (61);
SELECT * FROM uniq WHERE k > 50;
ALTER TABLE w ENABLE TRIGGER once;
EXECUTE upd (61);
SELECT * FROM uniq WHERE k > 50;
DROP TRIGGER once ON w;
BEGIN;
INSERT INTO w VALUES (70, 70);
SAVEPOINT a;
CREATE TRIGGER once BEFORE INSERT OR UPDATE ON w FOR EACH ROW EXECUTE FUNCTION once('uniq');
INSERT INTO w VALUES (71, 71);
UPDATE w SET v = 72 WHERE k = 70;
SELECT * FROM uniq WHERE k > 69;
ROLLBACK TO a;
INSERT INTO w VALUES (72, 720);
SELECT * FROM uniq WHERE k > 69;
CREATE TRIGGER once BEFORE INSERT OR UPDATE ON w FOR EACH ROW EXECUTE FUNCTION once('uniq');
RESET ALL;
INSERT INTO w VALUES (73, 730);
COMMIT;
SELECT * FROM uniq WHERE k > 69;
DROP TRIGGER once ON w;

-- Row security.
DROP ROLE IF EXISTS trig_ann;
CREATE ROLE trig_ann;
CREATE TABLE sec (k int PRIMARY KEY, who text, v int);
CREATE TABLE sec_log (k int, who text);
--@ cluster: SELECT create_distributed_table('sec', 'k'), create_distributed_table('sec_log', 'k')
CREATE FUNCTION sec_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sec_log VALUES (coalesce(NEW.k, OLD.k), TG_OP || current_user || (SELECT count(*) FROM sec)); RETURN NULL; END $$;
CREATE TRIGGER sec_row AFTER INSERT OR UPDATE OR DELETE ON sec FOR EACH ROW EXECUTE FUNCTION sec_row();
INSERT INTO sec SELECT g, CASE WHEN g % 2 = 0 THEN 'trig_ann' ELSE 'other' END, g FROM generate_series(1, 6) g;
ALTER TABLE sec ENABLE ROW LEVEL SECURITY;
CREATE POLICY p ON sec USING (who = current_user);
GRANT ALL ON sec, sec_log TO trig_ann;
SET ROLE trig_ann;
UPDATE sec SET v = v + 100;
DELETE FROM sec WHERE k IN (1, 2);
INSERT INTO sec VALUES (8, 'trig_ann', 8);
--@ error: 42501
INSERT INTO sec VALUES (9, 'other', 8);
--@ error: 42501
UPDATE sec SET who = 'other' WHERE k = 8;
SELECT k, v FROM sec;
RESET ROLE;
SELECT k, v FROM sec;
ALTER TABLE sec FORCE ROW LEVEL SECURITY;
INSERT INTO sec VALUES (10, 'x', 1);
SELECT * FROM sec_log;
REVOKE ALL ON sec, sec_log FROM trig_ann;
-- Columns' rights.
CREATE TABLE cols (k int PRIMARY KEY, open int, secret text);
--@ cluster: SELECT create_distributed_table('cols', 'k')
CREATE FUNCTION cols_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO sec_log VALUES (OLD.k, OLD.secret || NEW.open); RETURN NEW; END $$;
CREATE TRIGGER cols_row AFTER UPDATE ON cols FOR EACH ROW EXECUTE FUNCTION cols_row();
INSERT INTO cols VALUES (1, 1, 'hidden'), (2, 2, 'hidden2');
GRANT SELECT (k, open), UPDATE (open) ON cols TO trig_ann;
SET ROLE trig_ann;
UPDATE cols SET open = 5 WHERE k = 1;
UPDATE cols SET open = open + 1 RETURNING k, open;
--@ error: 42501
UPDATE cols SET secret = 'x';
--@ error: 42501
SELECT * FROM sec_log;
RESET ROLE;
SELECT * FROM sec_log WHERE who LIKE 'hidden%';
REVOKE ALL ON cols FROM trig_ann;
REVOKE SELECT (k, open), UPDATE (open) ON cols FROM trig_ann;
DROP ROLE trig_ann;

-- Definitions on such a table; keys to it; TRUNCATE.
CREATE TABLE par (k int PRIMARY KEY, v int);
CREATE TABLE chi (k int, c int, PRIMARY KEY (k, c));
--@ cluster: SELECT create_distributed_table('par', 'k'), create_distributed_table('chi', 'k')
CREATE FUNCTION par_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sec_log SELECT coalesce(NEW.k, OLD.k), TG_TABLE_NAME || TG_OP || count(*) FROM chi; RETURN coalesce(NEW, OLD); END $$;
DELETE FROM sec_log;
CREATE TRIGGER par_row BEFORE INSERT OR UPDATE OR DELETE ON par FOR EACH ROW EXECUTE FUNCTION par_row();
CREATE TRIGGER par_row2 AFTER INSERT OR UPDATE OR DELETE ON par FOR EACH ROW EXECUTE FUNCTION par_row();
INSERT INTO par VALUES (1, 1), (2, 2), (3, 3);
ALTER TABLE chi ADD FOREIGN KEY (k) REFERENCES par ON DELETE CASCADE;
INSERT INTO chi SELECT k, g FROM par, generate_series(1, 2) g;
DELETE FROM par WHERE k = 1;
SELECT * FROM sec_log;
SELECT * FROM chi;
UPDATE par SET v = v + 1;
--@ error: 23503
INSERT INTO chi VALUES (9, 9);
ALTER TABLE par ADD COLUMN s serial;
SELECT count(*), count(DISTINCT s) FROM par;
UPDATE par SET v = 5 WHERE k = 2 RETURNING k, v;
ALTER TABLE par ALTER COLUMN v TYPE bigint;
UPDATE par SET v = 6 WHERE k = 2 RETURNING k, v;
CREATE FUNCTION tr_stmt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO sec_log SELECT count(*), TG_WHEN || TG_OP FROM par; RETURN NULL; END $$;
CREATE TRIGGER tr_b BEFORE TRUNCATE ON par EXECUTE FUNCTION tr_stmt();
CREATE TRIGGER tr_a AFTER TRUNCATE ON par EXECUTE FUNCTION tr_stmt();
DELETE FROM sec_log;
--@ error: 0A000
TRUNCATE par;
TRUNCATE par CASCADE;
SELECT * FROM sec_log;
SELECT count(*) FROM chi;
INSERT INTO par VALUES (1, 1);
TRUNCATE par, chi RESTART IDENTITY;
INSERT INTO par (k) VALUES (7) RETURNING s;
DO $$ BEGIN TRUNCATE par, chi; END $$;
SELECT count(*) FROM par;
SELECT * FROM sec_log;

-- Functions under other names, of other owners, in other schemas.
CREATE SCHEMA fns;
DELETE FROM sec_log;
INSERT INTO par (k, v) VALUES (20, 1);
ALTER FUNCTION par_row() RENAME TO par_row_anew;
UPDATE par SET v = 2 WHERE k = 20;
ALTER FUNCTION par_row_anew() SET SCHEMA fns;
UPDATE par SET v = 3 WHERE k = 20;
ALTER FUNCTION fns.par_row_anew() SECURITY DEFINER SET search_path = public;
UPDATE par SET v = 4 WHERE k = 20;
ALTER FUNCTION fns.par_row_anew() RESET ALL;
DELETE FROM par WHERE k = 20;
SELECT * FROM sec_log;
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'par'::regclass AND NOT tgisinternal;
DROP SCHEMA fns CASCADE;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'par'::regclass AND NOT tgisinternal;
INSERT INTO par (k, v) VALUES (21, 1);

-- What looks like a built-in word.
CREATE TABLE words (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('words', 'k')
CREATE FUNCTION query(int) RETURNS text LANGUAGE sql AS $$ SELECT count(*) || '!' FROM words $$;
CREATE FUNCTION word_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := query(1); RETURN NEW; END $$;
CREATE TRIGGER word_row BEFORE INSERT ON words FOR EACH ROW EXECUTE FUNCTION word_row();
INSERT INTO words VALUES (1), (2), (3) RETURNING v;
CREATE OR REPLACE FUNCTION word_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SELECT count(*) AS distinct FROM words INTO NEW.v; RETURN NEW; END $$;
INSERT INTO words VALUES (4), (5), (6) RETURNING v;
CREATE OR REPLACE FUNCTION word_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v IS NOT DISTINCT FROM 'a' THEN NEW.v := trim(both FROM ' b ') || extract(year FROM date '2020-01-01'); END IF; RETURN NEW; END $$;
INSERT INTO words VALUES (7, 'a'), (8, 'c') RETURNING v;

-- Deferred triggers of local tables, which write distributed and reference tables at COMMIT.
CREATE TABLE later (id int PRIMARY KEY, v int);
CREATE TABLE later_d (k int, v text);
CREATE TABLE later_r (k int, v text);
--@ cluster: SELECT create_distributed_table('later_d', 'k'), create_reference_table('later_r')
CREATE FUNCTION on_later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.v < 0 THEN RAISE EXCEPTION 'no % here', NEW.v; END IF;
  INSERT INTO later_d SELECT NEW.id * 10 + g, 'd' || count(*) OVER () FROM generate_series(1, NEW.v) g;
  INSERT INTO later_r SELECT NEW.id, 'r' || count(*) FROM later_d;
  IF NEW.v > 8 THEN RAISE EXCEPTION 'too many'; END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER on_later AFTER INSERT OR UPDATE ON later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION on_later();
INSERT INTO later VALUES (1, 3);
SELECT * FROM later_d;
SELECT * FROM later_r;
SELECT d.k, count(*) FROM later_d d JOIN later_r r ON r.k <= d.k GROUP BY 1;
BEGIN;
INSERT INTO later VALUES (2, 2), (3, 0);
SELECT count(*) FROM later_d;
SAVEPOINT a;
UPDATE later SET v = 1 WHERE id = 1;
ROLLBACK TO a;
INSERT INTO later_d VALUES (99, 'own');
COMMIT;
SELECT * FROM later_d;
SELECT * FROM later_r;
-- What it raises, before and after it has written.
BEGIN;
INSERT INTO later VALUES (4, -1);
--@ error: P0001
COMMIT;
BEGIN;
INSERT INTO later_d VALUES (100, 'gone');
INSERT INTO later VALUES (5, 9);
--@ error: P0001
COMMIT;
BEGIN;
INSERT INTO later VALUES (6, 1);
SET CONSTRAINTS ALL IMMEDIATE;
SELECT count(*) FROM later_d;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO later VALUES (7, 1);
COMMIT AND CHAIN;
INSERT INTO later VALUES (8, 1);
COMMIT;
SELECT * FROM later_d;
SELECT * FROM later_r;
SELECT * FROM later;
COPY later FROM STDIN;
20	1
21	2
\.
SELECT count(*) FROM later_d WHERE k >= 200;
DO $$ BEGIN INSERT INTO later VALUES (22, 1); END $$;
SELECT count(*) FROM later_d WHERE k >= 200;
-- In its trigger, a key that waits as well.
CREATE TABLE later_part (id int PRIMARY KEY, whole int);
CREATE TABLE later_whole (id int PRIMARY KEY);
ALTER TABLE later_part ADD FOREIGN KEY (whole) REFERENCES later_whole DEFERRABLE INITIALLY DEFERRED;
CREATE TABLE later_start (id int);
CREATE FUNCTION part_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO later_part VALUES (NEW.id, NEW.id); INSERT INTO later_whole VALUES (abs(NEW.id)); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER part_first AFTER INSERT ON later_start DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION part_first();
INSERT INTO later_start VALUES (1);
BEGIN;
INSERT INTO later_start VALUES (-2);
--@ error: 23503
COMMIT;
SELECT * FROM later_part;
