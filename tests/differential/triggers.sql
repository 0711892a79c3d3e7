-- Triggers of distributed tables that read and write other tables, tell the table's name, or fire for a statement: as on one
-- PostgreSQL, once, with all rows. Rows are changed in no certain order, so what is written down is compared without one.

CREATE TABLE acc (k int PRIMARY KEY, owner text, n int DEFAULT 0, note text, twice int GENERATED ALWAYS AS (n * 2) STORED, changed int DEFAULT 0);
CREATE TABLE audit (tab text, op text, level text, k int, old jsonb, new jsonb, name text);
CREATE TABLE total (owner text PRIMARY KEY, rows int, n bigint);
CREATE TABLE seen (id serial, what text, c bigint, depth int);
CREATE TABLE limits (owner text PRIMARY KEY, most int);
CREATE TABLE third (k int, v text);
--@ cluster: SELECT create_distributed_table('acc', 'k'), create_distributed_table('audit', 'k'), create_distributed_table('total', 'owner'), create_distributed_table('third', 'k')
--@ cluster: SELECT create_reference_table('limits')
INSERT INTO limits VALUES ('ann', 1000), ('ben', 500);

-- An audit of all operations into a distributed table.
CREATE FUNCTION audit_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- TG_TABLE_NAME in a comment, and in a string: 'TG_TABLE_NAME'.
  INSERT INTO audit VALUES (TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME || (TG_RELID = 'acc'::regclass) || TG_RELNAME, TG_OP, TG_LEVEL || ' ' || TG_WHEN,
    coalesce(CASE WHEN TG_OP = 'DELETE' THEN OLD.k ELSE NEW.k END, -1),
    CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END, CASE WHEN TG_OP <> 'DELETE' THEN row_to_json(NEW)::jsonb END,
    TG_NAME || coalesce(TG_ARGV[0], '') || TG_NARGS || ' TG_TABLE_NAME');
  RETURN NULL;
END $$;
CREATE TRIGGER audit_row AFTER INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION audit_row('it''s', '');
INSERT INTO acc (k, owner, n) VALUES (1, 'ann', 10);
SELECT * FROM audit;
INSERT INTO acc (k, owner, n) VALUES (2, 'ann', 20), (3, 'ben', 30), (4, NULL, NULL);
INSERT INTO acc (k, owner, n) SELECT g, CASE WHEN g % 2 = 0 THEN 'ann' ELSE 'ben' END, g * 10 FROM generate_series(5, 12) g;
INSERT INTO acc (k, owner) SELECT k + 100, owner FROM acc WHERE k < 4 RETURNING k, n, twice;
COPY acc (k, owner, n) FROM STDIN;
20	ann	200
21	ben	\N
22	\N	220
\.
COPY acc (k, n) FROM STDIN (FORMAT csv, HEADER) WHERE n > 5;
k,n
23,230
24,4
\.
SELECT * FROM audit;
DELETE FROM audit;
UPDATE acc SET n = n + 1 WHERE k = 1;
UPDATE acc SET n = n + 1 WHERE k IN (2, 3) RETURNING k, n, twice;
UPDATE acc SET owner = 'cid' WHERE n > 190;
UPDATE acc SET n = most FROM limits l WHERE l.owner = acc.owner AND k BETWEEN 5 AND 7 RETURNING k, n, l.owner;
UPDATE acc SET note = 'none' WHERE false;
UPDATE acc SET k = k WHERE k = 9;
SELECT op, level, k, old, new, name FROM audit;
SELECT DISTINCT tab FROM audit;
DELETE FROM audit;
DELETE FROM acc WHERE k = 101;
DELETE FROM acc WHERE k > 101 RETURNING k, owner, twice;
DELETE FROM acc USING limits l WHERE l.owner = acc.owner AND k IN (11, 12) RETURNING k, most;
WITH gone AS (DELETE FROM acc WHERE k IN (20, 21) RETURNING *) SELECT k, owner, n, twice FROM gone;
WITH made AS (INSERT INTO acc (k, n) VALUES (30, 300), (31, 310) RETURNING k, n) INSERT INTO third SELECT k, 'made' FROM made RETURNING *;
WITH up AS (UPDATE acc SET n = -1 WHERE k IN (30, 31) RETURNING k) SELECT count(*) FROM up;
SELECT op, level, k, old, new, name FROM audit;
DELETE FROM audit;

-- Conflicts.
INSERT INTO acc (k, n) VALUES (1, 1), (40, 400) ON CONFLICT DO NOTHING RETURNING k;
INSERT INTO acc (k, n) VALUES (1, 1) ON CONFLICT (k) DO NOTHING;
INSERT INTO acc (k, n) VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET n = excluded.n;
--@ error: 23505
INSERT INTO acc (k, n) VALUES (41, 1), (1, 1);
--@ refused: 0A000
MERGE INTO acc USING (VALUES (1, 2)) v (k, n) ON acc.k = v.k WHEN MATCHED THEN UPDATE SET n = v.n;
--@ refused: 0A000
UPDATE acc SET k = k + 1000 WHERE k = 40;
SELECT op, k, new FROM audit;
DELETE FROM audit;

-- Prepared, in blocks, with savepoints.
PREPARE put (int, int) AS INSERT INTO acc (k, n) VALUES ($1, $2);
EXECUTE put (50, 1);
EXECUTE put (51, 2);
PREPARE up (int, int) AS UPDATE acc SET n = $2 WHERE k = $1;
EXECUTE up (50, 11);
BEGIN;
INSERT INTO acc (k, n) VALUES (52, 3);
SAVEPOINT s;
UPDATE acc SET n = 33 WHERE k = 52;
DELETE FROM acc WHERE k = 51;
SELECT op, k, old, new FROM audit WHERE k IN (51, 52);
ROLLBACK TO s;
SELECT op, k, old, new FROM audit WHERE k IN (51, 52);
COMMIT;
BEGIN;
DELETE FROM acc WHERE k = 52;
ROLLBACK;
SELECT op, k, old, new FROM audit;
--@ params: 60, 6
--@ params: 61, 7
INSERT INTO acc (k, n) VALUES ($1::int, $2::int);
--@ params: 60
--@ params: 61
DELETE FROM acc WHERE k = $1::int RETURNING n;
SELECT op, k FROM audit WHERE k IN (60, 61);
DELETE FROM audit;

-- Counters in a distributed table, kept by a trigger that reads and writes it.
DROP TRIGGER audit_row ON acc;
CREATE FUNCTION count_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP IN ('UPDATE', 'DELETE') THEN
    UPDATE total SET rows = rows - 1, n = n - coalesce(OLD.n, 0) WHERE owner = coalesce(OLD.owner, '-');
  END IF;
  IF TG_OP IN ('UPDATE', 'INSERT') THEN
    UPDATE total SET rows = rows + 1, n = n + coalesce(NEW.n, 0) WHERE owner = coalesce(NEW.owner, '-');
    IF NOT FOUND THEN
      INSERT INTO total VALUES (coalesce(NEW.owner, '-'), 1, coalesce(NEW.n, 0));
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_up AFTER INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION count_up();
DELETE FROM acc;
SELECT * FROM total;
INSERT INTO acc (k, owner, n) SELECT g, (ARRAY['ann', 'ben', NULL])[1 + g % 3], g FROM generate_series(1, 30) g;
SELECT * FROM total;
UPDATE acc SET n = n * 2 WHERE k % 2 = 0;
UPDATE acc SET owner = 'cid' WHERE owner = 'ann' AND k < 10;
SELECT * FROM total;
DELETE FROM acc WHERE k > 20;
SELECT * FROM total;
SELECT coalesce(owner, '-') AS owner, count(*), sum(n) FROM acc GROUP BY 1;

-- Cascaded: acc -> total -> third.
CREATE FUNCTION tell_third() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO third VALUES (NEW.rows, NEW.owner || ' ' || pg_trigger_depth());
  RETURN NEW;
END $$;
CREATE TRIGGER tell_third AFTER UPDATE OF rows ON total FOR EACH ROW WHEN (NEW.rows <> OLD.rows) EXECUTE FUNCTION tell_third();
DELETE FROM third;
INSERT INTO acc (k, owner, n) VALUES (40, 'ann', 1), (41, 'ben', 2);
SELECT * FROM third;
UPDATE total SET n = 0 WHERE owner = 'ann';
UPDATE total SET rows = 0 WHERE owner = 'ann';
SELECT * FROM third;
DROP TRIGGER tell_third ON total;
DROP TRIGGER count_up ON acc;

-- A trigger that reads and writes its own table.
CREATE FUNCTION first_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE acc SET changed = changed + 1, note = 'by ' || NEW.k WHERE k = 1; RETURN NULL; END $$;
CREATE TRIGGER first_row AFTER INSERT ON acc FOR EACH ROW EXECUTE FUNCTION first_row();
INSERT INTO acc (k, n) VALUES (200, 1);
SELECT k, note, changed FROM acc WHERE k IN (1, 200);
INSERT INTO acc (k, n) VALUES (201, 1), (202, 2), (203, 3);
SELECT k, note, changed FROM acc WHERE k IN (1, 203);
DROP TRIGGER first_row ON acc;
CREATE TRIGGER first_row AFTER UPDATE ON acc FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION first_row();
UPDATE acc SET n = n + 1 WHERE k IN (202, 203);
SELECT k, changed FROM acc WHERE k IN (1, 202, 203);
DROP TRIGGER first_row ON acc;
CREATE FUNCTION sum_before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := (SELECT count(*) || ' ' || coalesce(sum(n), 0) FROM acc); RETURN NEW; END $$;
CREATE TRIGGER sum_before BEFORE INSERT OR UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION sum_before();
INSERT INTO acc (k, n) VALUES (210, 1), (211, 10), (212, 100) RETURNING k, note;
UPDATE acc SET n = 1000 WHERE k = 210 RETURNING note;
UPDATE acc SET n = 0 WHERE k = 210 RETURNING n, note;
COPY acc (k, n) FROM STDIN;
213	1
214	2
\.
SELECT k, note FROM acc WHERE k BETWEEN 210 AND 214;
DO $$ BEGIN INSERT INTO acc (k, n) VALUES (215, 5), (216, 6); UPDATE acc SET n = 7 WHERE k = 216; END $$;
SELECT k, n, note FROM acc WHERE k IN (215, 216);
DROP TRIGGER sum_before ON acc;
-- Each row sees one more that has changed; which, nobody knows.
CREATE FUNCTION so_far() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed := (SELECT count(*) FROM acc WHERE n = -5); RETURN NEW; END $$;
CREATE TRIGGER so_far BEFORE UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION so_far();
UPDATE acc SET n = -5 WHERE k BETWEEN 1 AND 10;
SELECT changed FROM acc WHERE n = -5;
UPDATE acc SET n = k WHERE n = -5;
SELECT changed FROM acc WHERE k BETWEEN 1 AND 10;
DROP TRIGGER so_far ON acc;
CREATE FUNCTION after_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen (what, c, depth) SELECT TG_OP || ' ' || TG_LEVEL, count(*), pg_trigger_depth() FROM acc WHERE n = -7; RETURN NULL; END $$;
CREATE TRIGGER after_all AFTER UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION after_all();
UPDATE acc SET n = -7 WHERE k BETWEEN 1 AND 5;
DELETE FROM acc WHERE k IN (1, 2);
SELECT what, c, depth FROM seen;
TRUNCATE seen;
DROP TRIGGER after_all ON acc;

-- Recursion: each row makes the next.
CREATE FUNCTION next_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n > 0 THEN INSERT INTO acc (k, n, note) VALUES (NEW.k + 1, NEW.n - 1, 'depth ' || pg_trigger_depth()); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER next_row AFTER INSERT ON acc FOR EACH ROW EXECUTE FUNCTION next_row();
INSERT INTO acc (k, n) VALUES (300, 3), (310, 2);
SELECT k, n, note FROM acc WHERE k BETWEEN 300 AND 320;
DROP TRIGGER next_row ON acc;
CREATE FUNCTION row_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.n > 0 THEN INSERT INTO acc (k, n) VALUES (NEW.k + 500, 0); END IF;
  NEW.note := (SELECT count(*) FROM acc WHERE k >= 330);
  RETURN NEW;
END $$;
CREATE TRIGGER row_before BEFORE INSERT ON acc FOR EACH ROW EXECUTE FUNCTION row_before();
INSERT INTO acc (k, n) VALUES (330, 1), (331, 0), (332, 2);
SELECT k, n, note FROM acc WHERE k >= 330;
DROP TRIGGER row_before ON acc;

-- BEFORE triggers that leave a row out or change it, by what other tables say.
CREATE FUNCTION within_limit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE m int;
BEGIN
  SELECT most INTO m FROM limits WHERE owner = NEW.owner;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF NEW.n > m * 2 THEN RAISE EXCEPTION 'too much: %', NEW.n USING ERRCODE = 'check_violation', TABLE = TG_TABLE_NAME; END IF;
  IF NEW.n > m THEN NEW.n := m; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER within_limit BEFORE INSERT OR UPDATE OF n, owner ON acc FOR EACH ROW EXECUTE FUNCTION within_limit();
INSERT INTO acc (k, owner, n) VALUES (400, 'ann', 1), (401, 'nobody', 1), (402, 'ben', 600) RETURNING k, n, twice;
--@ error: 23514
INSERT INTO acc (k, owner, n) VALUES (403, 'ben', 2000);
UPDATE acc SET n = 999 WHERE k IN (400, 402) RETURNING k, n, twice;
UPDATE acc SET owner = 'nobody' WHERE k = 400;
UPDATE acc SET note = 'any' WHERE k = 400;
SELECT k, owner, n, note FROM acc WHERE k BETWEEN 400 AND 403;
--@ error: 23514
UPDATE acc SET n = 5000 WHERE k = 400;
DO $$ BEGIN UPDATE acc SET n = 5000 WHERE k = 400; EXCEPTION WHEN check_violation THEN UPDATE acc SET n = 5 WHERE k = 400; END $$;
SELECT n FROM acc WHERE k = 400;
DROP TRIGGER within_limit ON acc;
CREATE FUNCTION other_key() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.k := (SELECT max(k) + 1 FROM acc); RETURN NEW; END $$;
CREATE TRIGGER other_key BEFORE INSERT ON acc FOR EACH ROW EXECUTE FUNCTION other_key();
INSERT INTO acc (k, n) VALUES (1, 77), (1, 78) RETURNING k - (SELECT max(k) FROM acc) AS more, n;
SELECT n FROM acc WHERE n IN (77, 78);
DROP TRIGGER other_key ON acc;
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS (SELECT FROM limits WHERE owner = OLD.owner) THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER keep BEFORE DELETE ON acc FOR EACH ROW EXECUTE FUNCTION keep();
DELETE FROM acc WHERE k IN (400, 402, 330, 331) RETURNING k;
SELECT k FROM acc WHERE k IN (400, 402, 330, 331);
DROP TRIGGER keep ON acc;
-- What a BEFORE trigger changes cannot be changed by the statement.
CREATE FUNCTION itself() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE acc SET note = 'itself' WHERE k = OLD.k; RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER itself BEFORE UPDATE OF n OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION itself();
--@ error: 27000
UPDATE acc SET n = 1 WHERE k = 332;
--@ error: 27000
DELETE FROM acc WHERE k = 332;
SELECT n, note FROM acc WHERE k = 332;
DROP TRIGGER itself ON acc;

-- Statement triggers: once, with transition tables for INSERT.
CREATE FUNCTION tell_statement() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO seen (what, c, depth) SELECT TG_WHEN || ' ' || TG_OP || ' ' || TG_TABLE_NAME || ' ' || TG_LEVEL, count(*), pg_trigger_depth() FROM acc;
  RETURN NULL;
END $$;
CREATE TRIGGER before_statement BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON acc EXECUTE FUNCTION tell_statement();
CREATE TRIGGER after_statement AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON acc EXECUTE FUNCTION tell_statement();
CREATE FUNCTION tell_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO seen (what, c) SELECT 'new ' || TG_NAME, count(*) FROM fresh;
  INSERT INTO third SELECT k, 'fresh' FROM fresh;
  RETURN NULL;
END $$;
CREATE TRIGGER all_rows AFTER INSERT ON acc REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION tell_rows();
DELETE FROM third;
INSERT INTO acc (k, n) VALUES (500, 1);
INSERT INTO acc (k, n) SELECT g, g FROM generate_series(501, 520) g;
INSERT INTO acc (k, n) SELECT 1, 1 WHERE false;
INSERT INTO acc (k, n) VALUES (500, 1), (521, 1) ON CONFLICT DO NOTHING;
COPY acc (k, n) FROM STDIN;
522	1
523	1
\.
UPDATE acc SET n = 0 WHERE k BETWEEN 500 AND 510;
UPDATE acc SET n = 0 WHERE false;
DELETE FROM acc WHERE k = 500;
DELETE FROM acc WHERE k BETWEEN 501 AND 505;
WITH a AS (INSERT INTO acc (k) VALUES (530), (531) RETURNING k), b AS (DELETE FROM acc WHERE k IN (510, 511) RETURNING k) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b);
SELECT what, c, depth FROM seen;
SELECT k FROM third;
TRUNCATE seen;
BEGIN;
TRUNCATE acc;
SELECT what, c FROM seen ORDER BY id;
ROLLBACK;
TRUNCATE acc, third;
--@ ordered
SELECT what, c FROM seen ORDER BY id;
SELECT count(*) FROM acc;
DROP TRIGGER before_statement ON acc;
DROP TRIGGER after_statement ON acc;
DROP TRIGGER all_rows ON acc;
CREATE CONSTRAINT TRIGGER at_once AFTER INSERT ON acc FOR EACH ROW EXECUTE FUNCTION tell_statement();
TRUNCATE seen;
INSERT INTO acc (k, n) VALUES (1, 1), (2, 2);
SELECT what, c FROM seen;
DROP TRIGGER at_once ON acc;

-- States, names, order of firing.
CREATE FUNCTION say() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % % % on %', TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_TABLE_NAME; IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$;
CREATE TRIGGER z_first BEFORE INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION say();
CREATE TRIGGER a_first BEFORE INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION say();
CREATE TRIGGER z_last AFTER INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION say();
CREATE TRIGGER "A last" AFTER INSERT OR UPDATE OR DELETE ON acc FOR EACH ROW EXECUTE FUNCTION say();
CREATE TRIGGER stmt AFTER INSERT OR UPDATE OR DELETE ON acc FOR EACH STATEMENT EXECUTE FUNCTION say();
CREATE TRIGGER b_stmt BEFORE INSERT OR UPDATE OR DELETE ON acc FOR EACH STATEMENT EXECUTE FUNCTION say();
INSERT INTO acc (k, n) VALUES (10, 1), (11, 2);
UPDATE acc SET n = 5 WHERE k = 10;
DELETE FROM acc WHERE k = 11;
ALTER TABLE acc DISABLE TRIGGER z_first;
UPDATE acc SET n = 6 WHERE k = 10;
--@ refused: 0A000
ALTER TABLE acc ENABLE ALWAYS TRIGGER z_last;
DROP TRIGGER a_first ON acc;
DROP TRIGGER z_last ON acc;
CREATE TRIGGER a_first BEFORE INSERT OR UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION say();
CREATE TRIGGER z_last AFTER INSERT OR UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION say();
ALTER TABLE acc ENABLE REPLICA TRIGGER a_first;
ALTER TABLE acc ENABLE ALWAYS TRIGGER z_last;
UPDATE acc SET n = 7 WHERE k = 10;
SET session_replication_role = replica;
UPDATE acc SET n = 8 WHERE k = 10;
INSERT INTO acc (k, n) VALUES (12, 1);
RESET session_replication_role;
ALTER TRIGGER z_last ON acc RENAME TO "Z last";
UPDATE acc SET n = 9 WHERE k = 10;
ALTER TABLE acc DISABLE TRIGGER USER;
UPDATE acc SET n = 10 WHERE k = 10;
INSERT INTO acc (k, n) VALUES (13, 1);
ALTER TABLE acc ENABLE TRIGGER ALL;
UPDATE acc SET n = 11 WHERE k = 10;
COMMENT ON TRIGGER stmt ON acc IS 'told';
--@ ordered
SELECT tgname, tgenabled, obj_description(oid, 'pg_trigger') FROM pg_trigger WHERE tgrelid = 'acc'::regclass AND NOT tgisinternal ORDER BY 1;
--@ ordered
SELECT trigger_name, event_manipulation, event_object_table, action_orientation, action_timing FROM information_schema.triggers WHERE event_object_table = 'acc' ORDER BY 1, 2;
--@ ordered
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = 'acc'::regclass AND NOT tgisinternal ORDER BY tgname;
ALTER TABLE acc RENAME TO account;
UPDATE account SET n = 12 WHERE k = 10;
ALTER TABLE account RENAME TO acc;
CREATE SCHEMA elsewhere;
ALTER TABLE acc SET SCHEMA elsewhere;
UPDATE elsewhere.acc SET n = 13 WHERE k = 10;
ALTER TABLE elsewhere.acc SET SCHEMA public;
ALTER TABLE acc ADD COLUMN more text DEFAULT 'm';
UPDATE acc SET n = 14 WHERE k = 10 RETURNING k, n, more;
ALTER TABLE acc DROP COLUMN more;
--@ error: 2BP01
DROP FUNCTION say();
DROP FUNCTION say() CASCADE;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'acc'::regclass AND NOT tgisinternal;
UPDATE acc SET n = 15 WHERE k = 10;

-- A function that is replaced: on the workers, on the coordinator, and back.
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'row ' || upper(coalesce(NEW.owner, '-')); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION stamp();
INSERT INTO acc (k, owner) VALUES (600, 'ann') RETURNING note;
UPDATE acc SET owner = 'ben' WHERE k = 600 RETURNING note;
CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'most ' || (SELECT max(most) FROM limits); RETURN NEW; END $$;
INSERT INTO acc (k, owner) VALUES (601, 'ann') RETURNING note;
UPDATE acc SET owner = 'cid' WHERE k = 600 RETURNING note;
CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'again'; RETURN NEW; END $$;
INSERT INTO acc (k, owner) VALUES (602, 'ann'), (603, 'ben') RETURNING note;
UPDATE acc SET owner = 'dan' WHERE k >= 600 RETURNING note;
DO $$ BEGIN
  CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN NEW.note := 'inside ' || (SELECT count(*) FROM limits); RETURN NEW; END $f$;
  INSERT INTO acc (k) VALUES (604);
END $$;
SELECT k, note FROM acc WHERE k >= 600;
BEGIN;
CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'block'; RETURN NEW; END $$;
INSERT INTO acc (k) VALUES (605) RETURNING note;
ROLLBACK;
INSERT INTO acc (k) VALUES (605) RETURNING note;
CREATE FUNCTION upper(int) RETURNS text LANGUAGE sql AS $$ SELECT 'user''s' $$;
CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := upper(NEW.k); RETURN NEW; END $$;
INSERT INTO acc (k) VALUES (606) RETURNING note;
DROP TRIGGER stamp ON acc;
DROP FUNCTION upper(int);

-- Functions and sequences, a condition that calls one, a function of another's rights.
CREATE SEQUENCE numbers;
CREATE FUNCTION next_number() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('numbers') $$;
CREATE FUNCTION numbered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed := next_number(); RETURN NEW; END $$;
CREATE FUNCTION is_wanted(int) RETURNS bool LANGUAGE sql AS $$ SELECT $1 > 1 $$;
CREATE TRIGGER numbered BEFORE INSERT OR UPDATE ON acc FOR EACH ROW WHEN (is_wanted(NEW.n)) EXECUTE FUNCTION numbered();
INSERT INTO acc (k, n) VALUES (700, 1), (701, 2), (702, 3) RETURNING k, changed;
UPDATE acc SET n = 9 WHERE k = 700 RETURNING changed;
DROP TRIGGER numbered ON acc;
DROP ROLE IF EXISTS trig_user, trig_boss;
CREATE ROLE trig_user;
CREATE ROLE trig_boss;
GRANT SELECT, INSERT, UPDATE, DELETE ON acc TO trig_user;
CREATE FUNCTION who() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen (what) VALUES (current_user || ' ' || TG_TABLE_NAME); RETURN NULL; END $$;
CREATE TRIGGER who AFTER INSERT OR UPDATE ON acc FOR EACH ROW EXECUTE FUNCTION who();
TRUNCATE seen;
SET ROLE trig_user;
--@ error: 42501
INSERT INTO acc (k) VALUES (710);
--@ error: 42501
UPDATE acc SET n = 0 WHERE k = 700;
RESET ROLE;
ALTER FUNCTION who() SECURITY DEFINER;
SET ROLE trig_user;
INSERT INTO acc (k) VALUES (710);
UPDATE acc SET n = 0 WHERE k = 700;
RESET ROLE;
SELECT what LIKE '%trig_user%', what LIKE '% acc' FROM seen;
REVOKE ALL ON acc FROM trig_user;
DROP ROLE trig_user, trig_boss;
DROP TRIGGER who ON acc;

-- Tables that had triggers before they were distributed; and afterwards.
CREATE TABLE early (k int, v text);
CREATE FUNCTION early_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO third VALUES (coalesce(NEW.k, OLD.k), TG_OP || ' ' || TG_TABLE_NAME); RETURN NULL; END $$;
CREATE TRIGGER early_row AFTER INSERT OR UPDATE OR DELETE ON early FOR EACH ROW EXECUTE FUNCTION early_row();
DELETE FROM third;
INSERT INTO early VALUES (1, 'a'), (2, 'b');
--@ cluster: SELECT create_distributed_table('early', 'k')
UPDATE early SET v = 'c' WHERE k = 1;
DELETE FROM early WHERE k = 2;
INSERT INTO early SELECT k + 10, v FROM early;
SELECT * FROM third;
--@ cluster: SELECT undistribute_table('early')
UPDATE early SET v = 'd';
SELECT * FROM third;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'early'::regclass;
DROP TABLE early;

-- Foreign keys.
CREATE TABLE parents (k int PRIMARY KEY, v text);
CREATE TABLE children (k int REFERENCES parents, c int, PRIMARY KEY (k, c));
--@ cluster: SELECT create_distributed_table('parents', 'k'), create_distributed_table('children', 'k')
CREATE TRIGGER rows AFTER INSERT OR UPDATE OR DELETE ON parents FOR EACH ROW EXECUTE FUNCTION early_row();
CREATE TRIGGER rows AFTER INSERT OR UPDATE OR DELETE ON children FOR EACH ROW EXECUTE FUNCTION early_row();
DELETE FROM third;
INSERT INTO parents VALUES (1, 'a'), (2, 'b');
INSERT INTO children VALUES (1, 1), (2, 1), (2, 2);
--@ error: 23503
INSERT INTO children VALUES (3, 1);
--@ error: 23503
DELETE FROM parents WHERE k = 1;
WITH c AS (DELETE FROM children WHERE k = 1) DELETE FROM parents WHERE k = 1;
UPDATE children SET c = c + 10;
SELECT * FROM third;
--@ refused: 0A000
ALTER TABLE children DROP CONSTRAINT children_k_fkey, ADD FOREIGN KEY (k) REFERENCES parents ON DELETE CASCADE;
CREATE TABLE people (k int PRIMARY KEY, boss int);
--@ cluster: SELECT create_distributed_table('people', 'k')
CREATE TRIGGER rows AFTER DELETE ON people FOR EACH ROW EXECUTE FUNCTION early_row();
INSERT INTO people VALUES (1, NULL), (2, 1);
DELETE FROM people;
SELECT * FROM third WHERE v LIKE '%people';

-- From inside: functions, loops, exceptions, other triggers' tables.
CREATE TABLE here (k int, v text);
CREATE TRIGGER rows AFTER INSERT OR UPDATE OR DELETE ON here FOR EACH ROW EXECUTE FUNCTION early_row();
CREATE FUNCTION into_parents() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO parents VALUES (NEW.k, NEW.v); UPDATE parents SET v = v || '!' WHERE k = NEW.k; RETURN NEW; END $$;
CREATE TRIGGER into_parents BEFORE INSERT ON here FOR EACH ROW EXECUTE FUNCTION into_parents();
DELETE FROM third;
INSERT INTO here VALUES (10, 'x'), (11, 'y');
SELECT * FROM third;
SELECT * FROM parents;
DO $$
DECLARE r record;
BEGIN
  FOR r IN SELECT k FROM parents ORDER BY k LOOP
    BEGIN
      UPDATE parents SET v = 'loop' WHERE k = r.k;
      IF r.k = 10 THEN RAISE EXCEPTION 'no'; END IF;
    EXCEPTION WHEN raise_exception THEN
      INSERT INTO third VALUES (r.k, 'caught');
    END;
  END LOOP;
END $$;
SELECT * FROM third;
SELECT * FROM parents;
--@ error: 23505
INSERT INTO here VALUES (12, 'z'), (11, 'again');
SELECT count(*) FROM parents WHERE k = 12;

-- What the statement itself reads shows rows as they were, whatever it has changed so far; what triggers read shows them as they are.
CREATE TABLE pts (k int PRIMARY KEY, g int, v int, note text);
--@ cluster: SELECT create_distributed_table('pts', 'k')
INSERT INTO pts SELECT g, g % 3, g FROM generate_series(1, 30) g;
CREATE TRIGGER rows AFTER INSERT OR UPDATE OR DELETE ON pts FOR EACH ROW EXECUTE FUNCTION early_row();
CREATE FUNCTION look_around() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM count(*) FROM pts WHERE v > 0; PERFORM 1 FROM third LIMIT 1; RETURN NEW; END $$;
CREATE TRIGGER looks BEFORE INSERT OR UPDATE ON pts FOR EACH ROW EXECUTE FUNCTION look_around();
UPDATE pts SET v = v + (SELECT max(v) FROM pts) RETURNING k, v;
UPDATE pts a SET v = b.v FROM pts b WHERE b.k = a.k + 1 RETURNING a.k, a.v;
UPDATE pts a SET v = (SELECT sum(v) FROM pts b WHERE b.g = a.g) WHERE a.k < 8 RETURNING k, v;
UPDATE pts a SET note = x.v FROM (SELECT k, 'one ' || v AS v FROM pts WHERE g = 1 UNION ALL SELECT k, 'two ' || v FROM pts WHERE g = 2) x WHERE x.k = a.k RETURNING a.k, a.note;
UPDATE pts SET v = 0 WHERE v = (SELECT max(v) FROM pts);
DELETE FROM pts WHERE v > (SELECT avg(v) FROM pts) RETURNING k;
INSERT INTO pts (k, g, v) SELECT k + 100, g, (SELECT count(*) FROM pts) FROM pts RETURNING k, v;
INSERT INTO pts (k, g, v) SELECT k + 1000, g, v FROM pts WHERE g = 0 UNION ALL SELECT k + 2000, g, v FROM pts WHERE g = 1;
SELECT count(*), sum(v) FROM pts;
WITH a AS (UPDATE pts SET v = 1 WHERE k = 1 RETURNING k), b AS (UPDATE pts SET v = 2 WHERE k = 2 RETURNING k) SELECT * FROM a UNION ALL SELECT * FROM b;
WITH a AS (UPDATE pts SET v = v + 1 WHERE g = 1 RETURNING k, v) SELECT count(*), (SELECT sum(v) FROM pts WHERE g = 1) = sum(v) - count(*) FROM a;
SELECT v, count(*) FROM third GROUP BY v;
-- Rows that are found twice are changed once, and BEFORE triggers fire once for them, or the statement is refused.
INSERT INTO pts VALUES (7001, 1, 1), (7002, 2, 2), (7003, 0, 3), (7004, 1, 4), (7005, 2, 5);
--@ refused: 0A000
UPDATE pts SET v = 5 FROM generate_series(1, 2) s WHERE k = 7001;
DROP TRIGGER looks ON pts;
DELETE FROM third;
UPDATE pts SET v = 5 FROM generate_series(1, 2) s WHERE k = 7001;
DELETE FROM pts USING generate_series(1, 2) s WHERE k = 7002;
SELECT * FROM third;
CREATE FUNCTION stable_sum() RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(v) FROM pts); END $$;
CREATE FUNCTION sum_of() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen (what, c) VALUES ('sum', stable_sum()); RETURN NULL; END $$;
TRUNCATE seen;
INSERT INTO pts VALUES (5000, 1, 10000);
CREATE TRIGGER sums AFTER INSERT ON pts FOR EACH ROW EXECUTE FUNCTION sum_of();
INSERT INTO pts VALUES (5001, 1, 10000);
SELECT c = (SELECT sum(v) FROM pts) FROM seen;
DROP TRIGGER sums ON pts;
DROP FUNCTION stable_sum();

-- Many rows.
CREATE TABLE many (k int PRIMARY KEY, v int);
CREATE TABLE many_log (k int, op text);
--@ cluster: SELECT create_distributed_table('many', 'k'), create_distributed_table('many_log', 'k')
CREATE FUNCTION log_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO many_log VALUES (coalesce(NEW.k, OLD.k), TG_OP); RETURN NULL; END $$;
CREATE TRIGGER log_many AFTER INSERT OR UPDATE OR DELETE ON many FOR EACH ROW EXECUTE FUNCTION log_many();
CREATE FUNCTION all_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO many_log SELECT -count(*), TG_OP FROM fresh; RETURN NULL; END $$;
CREATE TRIGGER all_many AFTER INSERT ON many REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION all_many();
INSERT INTO many SELECT g, g FROM generate_series(1, 400) g;
UPDATE many SET v = v + 1 WHERE k % 2 = 0;
DELETE FROM many WHERE k % 4 = 0;
SELECT op, count(*), sum(k) FROM many_log GROUP BY op;
SELECT count(*), sum(v) FROM many;

-- Row types, whole rows, functions that take them.
CREATE FUNCTION of_row(r pts) RETURNS text LANGUAGE sql AS $$ SELECT r.k || '/' || r.v $$;
CREATE FUNCTION whole() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r pts; o pts%ROWTYPE; n pts.v%TYPE;
BEGIN
  r := NEW; r.note := of_row(NEW) || ' ' || (NEW IS DISTINCT FROM OLD)::text; o := OLD; n := r.v + 1;
  INSERT INTO seen (what, c) SELECT of_row(o) || ' ' || (NEW).note, n;
  r.v := n;
  RETURN r;
END $$;
CREATE TRIGGER whole BEFORE UPDATE ON pts FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION whole();
TRUNCATE seen;
UPDATE pts SET v = 7, note = 'w' WHERE k = 7003 RETURNING *;
UPDATE pts SET v = v WHERE k = 7003;
SELECT what, c FROM seen;
ALTER TABLE pts ADD COLUMN late int DEFAULT 3, DROP COLUMN g;
UPDATE pts SET v = 9 WHERE k = 7003 RETURNING *;
DELETE FROM pts WHERE k = 7003 RETURNING *;
DROP TRIGGER whole ON pts;
CREATE FUNCTION copy_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('INSERT INTO %I SELECT ($1).*', TG_ARGV[0]) USING OLD; RETURN OLD; END $$;
CREATE TABLE pts_gone (k int, v int, note text, late int);
--@ cluster: SELECT create_distributed_table('pts_gone', 'k')
CREATE TRIGGER copy_all BEFORE DELETE ON pts FOR EACH ROW EXECUTE FUNCTION copy_all('pts_gone');
DELETE FROM pts WHERE k IN (7004, 7005);
SELECT * FROM pts_gone;
DROP TRIGGER copy_all ON pts;

-- Identity, defaults, generated columns, keys of text; triggers on both sides of a write.
CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY, name text PRIMARY KEY, at timestamptz DEFAULT now(), low text GENERATED ALWAYS AS (lower(name)) STORED);
--@ cluster: SELECT create_distributed_table('made', 'name')
CREATE FUNCTION on_made() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO third VALUES (NEW.id, TG_OP || NEW.name || coalesce(NEW.low, '-')); RETURN NEW; END $$;
CREATE TRIGGER before_made BEFORE INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION on_made();
CREATE TRIGGER on_made AFTER INSERT OR UPDATE ON made FOR EACH ROW EXECUTE FUNCTION on_made();
DELETE FROM third;
INSERT INTO made (name) VALUES ('One'), ('TWO') RETURNING id, name, low;
UPDATE made SET at = now() WHERE name = 'One' RETURNING id, low;
UPDATE made SET at = NULL RETURNING id, low;
--@ error: 428C9
UPDATE made SET id = 5;
SELECT * FROM third;
SELECT id, name, low, at IS NULL FROM made;

-- What a BEFORE trigger writes the statement that fires it does not read.
CREATE TABLE src (k int PRIMARY KEY, v int);
CREATE TABLE dst (k int PRIMARY KEY, v int, note text);
--@ cluster: SELECT create_distributed_table('src', 'k'), create_distributed_table('dst', 'k')
INSERT INTO src SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO dst SELECT g, g FROM generate_series(1, 10) g;
CREATE FUNCTION bump_src() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE src SET v = v + 100; INSERT INTO src VALUES (NEW.k + 1000, 0) ON CONFLICT DO NOTHING; NEW.note := (SELECT max(v) FROM src); RETURN NEW; END $$;
CREATE TRIGGER bump BEFORE INSERT OR UPDATE ON dst FOR EACH ROW EXECUTE FUNCTION bump_src();
UPDATE dst SET v = s.v FROM src s WHERE s.k = dst.k AND dst.k < 4 RETURNING dst.k, dst.v;
INSERT INTO dst SELECT k + 100, v FROM src WHERE k < 4 RETURNING k, v % 100;
INSERT INTO dst VALUES (200, 1), (201, 2) RETURNING k, note;
SELECT count(*), min(v) FROM src WHERE k <= 10;
DROP TRIGGER bump ON dst;
-- A counter by ON CONFLICT.
CREATE FUNCTION count_by() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO total AS t VALUES ('v' || NEW.v % 2, 1, NEW.v) ON CONFLICT (owner) DO UPDATE SET rows = t.rows + 1, n = t.n + excluded.n;
  RETURN NULL;
END $$;
CREATE TRIGGER count_by AFTER INSERT ON dst FOR EACH ROW EXECUTE FUNCTION count_by();
INSERT INTO dst SELECT g, g FROM generate_series(300, 309) g;
INSERT INTO dst VALUES (310, 310), (311, 311);
COPY dst (k, v) FROM STDIN;
312	1
313	2
\.
SELECT * FROM total WHERE owner LIKE 'v%';
DROP TRIGGER count_by ON dst;

-- Triggers that give new rows another distribution column.
CREATE TABLE mails (email text PRIMARY KEY, n int, note text);
CREATE TABLE mails_late (id int, email text, n int);
CREATE TABLE mails_same (email text PRIMARY KEY, n int);
CREATE FUNCTION lower_mail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- NEW.n is none of these: "new.email := 1;"
    NEW.email := lower(trim(NEW.email));
    RETURN NEW;
END $$;
CREATE FUNCTION lower_into() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SELECT lower(NEW.email), NEW.n + 1 INTO NEW.email, NEW.n; RETURN NEW; END $$;
CREATE FUNCTION note_mail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.email = 'none' THEN NEW.n := 0; END IF; RETURN NEW; END $$;
CREATE TRIGGER lower_mail BEFORE INSERT ON mails FOR EACH ROW EXECUTE FUNCTION lower_mail();
--@ cluster: SELECT create_distributed_table('mails', 'email'), create_distributed_table('mails_late', 'email'), create_distributed_table('mails_same', 'email')
CREATE TRIGGER lower_into BEFORE INSERT ON mails_late FOR EACH ROW EXECUTE FUNCTION lower_into();
CREATE TRIGGER note_mail BEFORE INSERT OR UPDATE ON mails_same FOR EACH ROW EXECUTE FUNCTION note_mail();
--@ params: 'Ann@Example.org', 1
--@ params: 'ben@example.org', 2
INSERT INTO mails (email, n) VALUES ($1, $2);
INSERT INTO mails (email, n) VALUES (' CAL@example.org', 3), ('Dan@example.org', 4) RETURNING *;
INSERT INTO mails_late SELECT g, 'User' || g, g FROM generate_series(1, 20) g;
COPY mails (email, n) FROM STDIN;
EVE@example.org	5
fay@example.org	6
\.
--@ error: 23505
INSERT INTO mails VALUES ('ANN@example.org', 7);
INSERT INTO mails VALUES ('ANN@example.org', 7), ('GUS@example.org', 8) ON CONFLICT DO NOTHING;
INSERT INTO mails AS m VALUES ('BEN@example.org', 9) ON CONFLICT (email) DO UPDATE SET n = m.n + excluded.n RETURNING *;
SELECT n FROM mails WHERE email = 'ann@example.org';
SELECT n FROM mails WHERE email = 'ben@example.org';
UPDATE mails SET note = 'seen' WHERE email = 'eve@example.org';
DELETE FROM mails WHERE email = 'fay@example.org';
SELECT * FROM mails;
SELECT * FROM mails_late WHERE email = 'user7';
SELECT count(*), sum(n), min(email) FROM mails_late;
INSERT INTO mails_same VALUES ('none', 1), ('some', 2);
MERGE INTO mails_same m USING (VALUES ('none', 5), ('more', 6)) v(email, n) ON m.email = v.email
WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT VALUES (v.email, v.n);
SELECT * FROM mails_same;
CREATE OR REPLACE FUNCTION lower_into() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.mail := upper(NEW.mail); RETURN NEW; END $$;
ALTER TABLE mails_late RENAME email TO mail;
INSERT INTO mails_late VALUES (21, 'new', 21), (22, 'newer', 22);
SELECT * FROM mails_late WHERE mail = 'NEW';
CREATE OR REPLACE FUNCTION lower_into() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := NEW.n * 2; RETURN NEW; END $$;
INSERT INTO mails_late VALUES (23, 'newest', 23) RETURNING *;
SELECT * FROM mails_late WHERE id > 20;
DROP TABLE mails, mails_late, mails_same;
DROP FUNCTION lower_mail, lower_into, note_mail;
