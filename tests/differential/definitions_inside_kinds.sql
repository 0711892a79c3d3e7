--@ include: schema.sql
-- Definitions of every kind from inside: several statements in one text, roles, event triggers, what is taken back.

CREATE FUNCTION shape(regclass) RETURNS TABLE (name text, type text, must bool, by_default text) LANGUAGE sql AS $$
  SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum $$;
CREATE TABLE m (k int PRIMARY KEY, v int, note text);
CREATE TABLE m2 (k int, v int);
CREATE TABLE code (id int PRIMARY KEY, label text);
CREATE TABLE plain (k int, v int);
--@ cluster: SELECT create_distributed_table('m', 'k'), create_distributed_table('m2', 'k'), create_reference_table('code')
INSERT INTO m SELECT g, g % 7, 'note ' || g FROM generate_series(1, 40) g;
INSERT INTO m2 SELECT g % 13, g FROM generate_series(1, 40) g;
INSERT INTO code VALUES (1, 'one'), (2, 'two');

-- Several statements in one text.
DO $$ BEGIN EXECUTE 'CREATE SCHEMA one; CREATE SCHEMA two; ALTER TABLE m ADD COLUMN a int DEFAULT 1; ALTER TABLE m2 ADD COLUMN a int DEFAULT 2; CREATE INDEX ON m (a); ALTER SCHEMA two RENAME TO three'; END $$;
CREATE TABLE one.t (k int PRIMARY KEY);
CREATE TABLE three.t (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('one.t', 'k'), create_distributed_table('three.t', 'k')
SELECT sum(m.a), sum(m2.a) FROM m JOIN m2 USING (k);
DO $$ BEGIN EXECUTE 'UPDATE m SET a = 5 WHERE k = 1; ALTER TABLE m ALTER COLUMN a TYPE text USING ''x'' || a; ALTER TABLE m2 ALTER COLUMN a TYPE text USING ''y'' || a; INSERT INTO m (k, a) VALUES (41, ''new'')'; END $$;
SELECT a, count(*) FROM m GROUP BY a;
SELECT a, count(*) FROM m2 GROUP BY a;
DO $$ BEGIN
  FOR i IN 1 .. 3 LOOP
    BEGIN
      EXECUTE 'ALTER TABLE m ADD COLUMN one int; ALTER TABLE m ADD COLUMN two int DEFAULT 2; ALTER TABLE plain ADD COLUMN x int';
      IF i < 3 THEN EXECUTE 'ALTER TABLE m DROP COLUMN one; ALTER TABLE m DROP COLUMN two; ALTER TABLE nowhere DROP COLUMN three'; END IF;
    EXCEPTION WHEN undefined_table THEN RAISE NOTICE 'round %', i;
    END;
  END LOOP;
END $$;
SELECT count(one), sum(two) FROM m;
CREATE FUNCTION fails_inside() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  BEGIN ALTER TABLE m2 ADD COLUMN z int; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN 1; END $$;
DO $$ BEGIN EXECUTE 'ALTER TABLE m DROP COLUMN one; SELECT fails_inside(); ALTER TABLE m DROP COLUMN two; SELECT fails_inside(); ALTER TABLE m ADD COLUMN four int DEFAULT 4'; END $$;
SELECT * FROM shape('m');
SELECT sum(four) FROM m;
--@ error: 42703
SELECT two FROM m;
DO $$ BEGIN
  BEGIN EXECUTE 'ALTER TABLE m ADD COLUMN p int; ALTER TABLE m ADD COLUMN p int'; EXCEPTION WHEN duplicate_column THEN NULL; END;
  EXECUTE 'ALTER TABLE m ADD COLUMN p int DEFAULT 6; ALTER TABLE m ADD COLUMN q int DEFAULT 7';
END $$;
SELECT sum(p), sum(q) FROM m;
-- SQL functions of one name.
CREATE FUNCTION several(int) RETURNS void LANGUAGE sql AS 'ALTER TABLE m2 ADD COLUMN IF NOT EXISTS s1 int DEFAULT 1';
CREATE FUNCTION several(text) RETURNS void LANGUAGE sql AS 'CREATE INDEX IF NOT EXISTS m2_several ON m2 (v)';
SELECT several(1);
SELECT several('x');
SELECT sum(s1) FROM m2;
SELECT indexname FROM pg_indexes WHERE tablename = 'm2';

-- Types, domains, collations, functions, operators.
DO $$ BEGIN
  CREATE DOMAIN small AS int CHECK (VALUE < 1000);
  CREATE TYPE pair AS (a int, b text);
  CREATE TYPE mood AS ENUM ('sad', 'ok');
  CREATE COLLATION mine FROM "C";
END $$;
DO $$ BEGIN ALTER TABLE m ADD COLUMN sm small DEFAULT 3, ADD COLUMN pr pair DEFAULT '(1,x)', ADD COLUMN mo mood DEFAULT 'ok', ADD COLUMN co text COLLATE mine DEFAULT 'c'; END $$;
SELECT sm, pr, mo, co, count(*) FROM m GROUP BY 1, 2, 3, 4;
DO $$ BEGIN ALTER DOMAIN small ADD CONSTRAINT positive CHECK (VALUE > 0); END $$;
--@ error: 23514
UPDATE m SET sm = -1 WHERE k = 3;
--@ error: 23514
DO $$ BEGIN ALTER DOMAIN small ADD CONSTRAINT big CHECK (VALUE > 10); END $$;
DO $$ BEGIN ALTER DOMAIN small DROP CONSTRAINT positive; ALTER DOMAIN small SET DEFAULT 8; ALTER DOMAIN small RENAME TO smaller; END $$;
UPDATE m SET sm = -1 WHERE k = 3;
SELECT sm FROM m WHERE k = 3;
DO $$ BEGIN ALTER TYPE pair ADD ATTRIBUTE c int; END $$;
DO $$ BEGIN ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'; ALTER TYPE mood RENAME TO feeling; ALTER TYPE pair RENAME ATTRIBUTE a TO aa; END $$;
SELECT DISTINCT mo, (pr).aa FROM m;
INSERT INTO m (k) VALUES (50) RETURNING mo;
DO $$ BEGIN CREATE SCHEMA types; ALTER TYPE feeling SET SCHEMA types; ALTER COLLATION mine RENAME TO ours; END $$;
SELECT pg_typeof(mo), pg_collation_for(co) FROM m WHERE k = 50;
INSERT INTO m (k, mo) VALUES (51, 'sad') RETURNING mo;

-- Tables: all sorts of forms.
DO $$ BEGIN
  ALTER TABLE m ALTER COLUMN v SET STATISTICS 50, ALTER COLUMN note SET STORAGE EXTERNAL, ALTER COLUMN v SET (n_distinct = 5);
  ALTER TABLE m SET (fillfactor = 70);
  ALTER TABLE m ADD CONSTRAINT v_ok CHECK (v >= 0) NOT VALID;
  ALTER TABLE m VALIDATE CONSTRAINT v_ok;
  ALTER TABLE m RENAME CONSTRAINT v_ok TO v_fine;
  ALTER TABLE m REPLICA IDENTITY FULL;
  CREATE STATISTICS m_stats ON k, v FROM m;
  ALTER STATISTICS m_stats SET STATISTICS 20;
  CREATE INDEX m_note ON m (lower(note)) WHERE v > 2;
  ALTER INDEX m_note SET (fillfactor = 60);
  ALTER INDEX m_note RENAME TO m_lower;
  ALTER TABLE m CLUSTER ON m_pkey;
  COMMENT ON COLUMN m.v IS 'the value';
  COMMENT ON INDEX m_lower IS 'an index';
  COMMENT ON CONSTRAINT v_fine ON m IS 'a check';
END $$;
SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint WHERE conrelid = 'm'::regclass ORDER BY 1;
SELECT reloptions, relreplident FROM pg_class WHERE relname = 'm';
--@ error: 23514
UPDATE m SET v = -3 WHERE k = 3;
DO $$ BEGIN ALTER TABLE m ADD COLUMN ident int GENERATED ALWAYS AS IDENTITY, ADD COLUMN twice int GENERATED ALWAYS AS (k * 2) STORED; END $$;
SELECT count(DISTINCT ident), sum(twice) FROM m;
DO $$ BEGIN ALTER TABLE m ALTER COLUMN twice DROP EXPRESSION; ALTER TABLE m ALTER COLUMN ident DROP IDENTITY; ALTER TABLE m DROP COLUMN IF EXISTS ident, DROP COLUMN nothere; EXCEPTION WHEN undefined_column THEN RAISE NOTICE 'no'; END $$;
SELECT * FROM shape('m');
DO $$ BEGIN ALTER TABLE m ALTER COLUMN twice DROP EXPRESSION; ALTER TABLE m DROP COLUMN ident; END $$;
UPDATE m SET twice = 1;
SELECT sum(twice) FROM m;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := TG_NAME || ' ' || TG_OP; RETURN NEW; END $$;
DO $$ BEGIN
  CREATE TRIGGER noted BEFORE INSERT OR UPDATE ON m FOR EACH ROW EXECUTE FUNCTION noted();
  ALTER TRIGGER noted ON m RENAME TO renoted;
  UPDATE m SET v = 1 WHERE k = 3;
  ALTER TABLE m DISABLE TRIGGER renoted;
  UPDATE m SET v = 1 WHERE k = 4;
END $$;
SELECT k, note FROM m WHERE k IN (3, 4);
DO $$ BEGIN ALTER TABLE m ENABLE TRIGGER renoted; ALTER FUNCTION noted() RENAME TO noted2; END $$;
UPDATE m SET v = 2 WHERE k = 4 RETURNING note;
DO $$ BEGIN DROP FUNCTION noted2() CASCADE; END $$;
UPDATE m SET note = 'plain' WHERE k = 4 RETURNING note;
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'm'::regclass AND tgname LIKE '%noted';
DO $$ BEGIN CREATE TABLE copied AS SELECT k, v FROM m WHERE k < 5; CREATE TEMP TABLE tmp AS SELECT * FROM m2 WHERE v < 4; CREATE VIEW seen AS SELECT k FROM m; CREATE MATERIALIZED VIEW mat AS SELECT v, count(*) AS n FROM m GROUP BY v; END $$;
SELECT count(*) FROM copied;
SELECT count(*) FROM tmp;
SELECT count(*) FROM seen;
SELECT sum(n) FROM mat;
--@ error: 2BP01
DO $$ BEGIN ALTER TABLE m DROP COLUMN v; END $$;
DO $$ BEGIN ALTER TABLE m DROP COLUMN v CASCADE; END $$;
SELECT count(*) FROM pg_class WHERE relname = 'mat';
SELECT count(*) FROM pg_constraint WHERE conname = 'v_fine';
INSERT INTO m (k) VALUES (60);
DO $$ BEGIN ALTER TABLE m ADD COLUMN v int; CREATE RULE nope AS ON DELETE TO plain DO INSTEAD NOTHING; LOCK TABLE m IN SHARE MODE; END $$;
-- Keys.
CREATE TABLE child (k int, id int PRIMARY KEY);
--@ cluster: SELECT create_reference_table('child')
DO $$ BEGIN ALTER TABLE m2 ADD COLUMN code int DEFAULT 1; ALTER TABLE m2 ADD CONSTRAINT to_code FOREIGN KEY (code) REFERENCES code ON DELETE CASCADE; ALTER TABLE m2 ALTER CONSTRAINT to_code DEFERRABLE; END $$;
--@ error: 23503
UPDATE m2 SET code = 9 WHERE k = 1;
DELETE FROM code WHERE id = 1;
SELECT count(*) FROM m2;
DO $$ BEGIN DROP TABLE code CASCADE; END $$;
SELECT count(*) FROM pg_constraint WHERE conname = 'to_code';
INSERT INTO m2 (k, v) SELECT g, g FROM generate_series(1, 10) g;

-- What is taken back leaves nothing.
DO $$ BEGIN
  BEGIN
    CREATE SCHEMA gone; CREATE TYPE gone_type AS ENUM ('a'); ALTER TABLE m2 ADD COLUMN g gone_type DEFAULT 'a';
    ALTER TABLE m2 SET SCHEMA gone; ALTER TABLE gone.m2 RENAME TO m3; CREATE INDEX gone_index ON gone.m3 (v);
    UPDATE gone.m3 SET v = 100; DROP TABLE m CASCADE;
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  CREATE SCHEMA gone; CREATE TYPE gone_type AS ENUM ('b'); ALTER TABLE m2 ADD COLUMN g gone_type DEFAULT 'b';
END $$;
SELECT max(v), min(g), count(*) FROM m2;
SELECT count(*) FROM m;
BEGIN;
SAVEPOINT a;
DO $$ BEGIN ALTER TABLE m2 ADD COLUMN sp int; CREATE SCHEMA sp; ALTER TYPE gone_type RENAME TO sp_type; END $$;
ROLLBACK TO a;
DO $$ BEGIN ALTER TABLE m2 ADD COLUMN sp int DEFAULT 3; CREATE SCHEMA sp; ALTER TYPE gone_type RENAME TO sp_type2; END $$;
RELEASE a;
COMMIT;
SELECT sum(sp), min(g) FROM m2;
CREATE TABLE sp.t (k int);
--@ cluster: SELECT create_distributed_table('sp.t', 'k')
INSERT INTO sp.t VALUES (1), (2);
DO $$ BEGIN DROP SCHEMA sp CASCADE; DROP TYPE sp_type2 CASCADE; DROP SCHEMA one, three, types, gone CASCADE; END $$;
SELECT * FROM shape('m2');
SELECT * FROM shape('m');

-- Procedures, nested functions.
CREATE PROCEDURE outermost(n int) LANGUAGE plpgsql AS $$ BEGIN
  EXECUTE format('ALTER TABLE m ADD COLUMN n%s int DEFAULT %s', n, n);
  IF n < 3 THEN CALL outermost(n + 1); END IF;
  EXECUTE format('UPDATE m SET n%s = n%s + 1', n, n);
END $$;
CALL outermost(1);
SELECT sum(n1), sum(n2), sum(n3) FROM m;
CREATE PROCEDURE with_commit() LANGUAGE plpgsql AS $$ BEGIN CREATE TABLE made (k int); COMMIT; ALTER TABLE made ADD COLUMN v int; COMMIT; DROP TABLE made; END $$;
CALL with_commit();
--@ refused: PH001
DO $$ BEGIN ALTER TABLE m ADD COLUMN wc int; COMMIT; END $$;
--@ refused: 0A000
DO $$ BEGIN CREATE SCHEMA wc; COMMIT; END $$;
--@ refused: 0A000
DO $$ BEGIN COMMENT ON TABLE m IS 'wc'; COMMIT; END $$;

-- Defaults of rights, owners.
CREATE ROLE kinds_owner;
CREATE ROLE kinds_reader;
GRANT CREATE, USAGE ON SCHEMA public TO kinds_owner;
DO $$ BEGIN
  ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO kinds_reader;
  CREATE TABLE later (k int, v int);
  ALTER TABLE m OWNER TO kinds_owner;
END $$;
--@ cluster: SELECT create_distributed_table('later', 'k')
INSERT INTO later VALUES (1, 1), (2, 2);
DO $$ BEGIN ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM kinds_reader; GRANT SELECT ON ALL TABLES IN SCHEMA public TO kinds_reader; REVOKE SELECT ON m2 FROM kinds_reader; END $$;
SET ROLE kinds_reader;
SELECT count(*) FROM later;
SELECT count(*) FROM m;
--@ error: 42501
SELECT count(*) FROM m2;
RESET ROLE;
--@ refused: 0A000
DO $$ BEGIN REASSIGN OWNED BY kinds_owner TO kinds_reader; END $$;
DO $$ BEGIN ALTER TABLE m OWNER TO kinds_reader; END $$;
SELECT relowner::regrole FROM pg_class WHERE relname = 'm';
SET ROLE kinds_reader;
DO $$ BEGIN ALTER TABLE m ADD COLUMN byreader int DEFAULT 1; CREATE POLICY p ON m FOR SELECT USING (k < 5); ALTER POLICY p ON m USING (k < 4); ALTER POLICY p ON m RENAME TO pp; ALTER TABLE m ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; END $$;
SELECT sum(byreader) FROM m;
RESET ROLE;
DO $$ BEGIN ALTER TABLE m OWNER TO CURRENT_USER; END $$;
DROP OWNED BY kinds_owner, kinds_reader;
DROP ROLE kinds_owner, kinds_reader;

-- Roles.
DO $$ BEGIN CREATE ROLE kinds_a; CREATE ROLE kinds_b NOINHERIT CONNECTION LIMIT 3; GRANT kinds_a TO kinds_b; GRANT SELECT ON m2 TO kinds_a; ALTER ROLE kinds_b SET work_mem = '7MB'; END $$;
GRANT SELECT ON later TO kinds_b;
SET ROLE kinds_a;
SELECT count(*) FROM m2;
RESET ROLE;
SET ROLE kinds_b;
SELECT count(*) FROM later;
--@ error: 42501
SELECT count(*) FROM m2;
SET ROLE kinds_a;
RESET ROLE;
CREATE FUNCTION make_role(name text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN EXECUTE format('CREATE ROLE %I; GRANT kinds_a TO %I WITH ADMIN OPTION', name, name); END $$;
BEGIN;
DO $$ BEGIN PERFORM make_role('kinds_c'); END $$;
SET LOCAL ROLE kinds_c;
SELECT count(*) FROM m2;
COMMIT;
BEGIN;
SAVEPOINT a;
DO $$ BEGIN PERFORM make_role('kinds_d'); END $$;
ROLLBACK TO a;
DO $$ BEGIN PERFORM make_role('kinds_d'); END $$;
DO $$ BEGIN ALTER ROLE kinds_d RENAME TO kinds_e; DROP ROLE kinds_c; BEGIN DROP ROLE kinds_e; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; END $$;
GRANT SELECT ON later TO kinds_e;
SET LOCAL ROLE kinds_e;
SELECT count(*) FROM later;
COMMIT;
--@ error: 42704
GRANT SELECT ON later TO kinds_c;
--@ error: 42710
DO $$ BEGIN CREATE ROLE kinds_a; END $$;
DO $$ BEGIN REVOKE kinds_a FROM kinds_b; CREATE ROLE kinds_f; COMMIT; CREATE ROLE kinds_g; ROLLBACK; END $$;
GRANT SELECT ON later TO kinds_f;
--@ error: 42704
GRANT SELECT ON later TO kinds_g;
CREATE TABLE people (name name);
CREATE FUNCTION on_people() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('CREATE ROLE %I', NEW.name); RETURN NEW; END $$;
CREATE TRIGGER on_people AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION on_people();
INSERT INTO people VALUES ('kinds_h'), ('kinds "i"');
GRANT SELECT ON later TO kinds_h, "kinds ""i""";
SELECT rolname, rolinherit, rolconnlimit, rolconfig FROM pg_roles WHERE rolname LIKE 'kinds%' ORDER BY 1;
BEGIN ISOLATION LEVEL REPEATABLE READ;
--@ refused: 0A000
DO $$ BEGIN CREATE ROLE kinds_z; END $$;
ROLLBACK;
DROP TABLE m, m2, later, people CASCADE;
DO $$ BEGIN DROP ROLE kinds_a, kinds_b, kinds_e, kinds_f, kinds_h, "kinds ""i"""; END $$;
CREATE ROLE kinds_a;
DROP ROLE kinds_a;

-- Event triggers of the user's that define.
CREATE TABLE audited (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('audited', 'k')
INSERT INTO audited SELECT g, g FROM generate_series(1, 20) g;
CREATE FUNCTION audit() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
  IF current_setting('audit.active', true) = 'yes' AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'audited'::regclass AND attname = 'changed_by') THEN
    ALTER TABLE audited ADD COLUMN changed_by text DEFAULT 'me';
    COMMENT ON TABLE audited IS 'changed';
  END IF;
END $$;
CREATE EVENT TRIGGER audit ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION audit();
SET audit.active = 'yes';
ALTER TABLE audited ADD COLUMN w int DEFAULT 3;
SELECT * FROM audited WHERE k = 4;
SELECT obj_description('audited'::regclass);
ALTER TABLE audited DROP COLUMN changed_by;
DO $$ BEGIN ALTER TABLE audited ADD COLUMN x int DEFAULT 5; UPDATE audited SET x = 6 WHERE k = 1; END $$;
SELECT sum(x), min(changed_by) FROM audited;
DROP EVENT TRIGGER audit;
CREATE EVENT TRIGGER zzz_audit ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION audit();
ALTER TABLE audited DROP COLUMN changed_by;
DO $$ BEGIN ALTER TABLE audited ADD COLUMN y int DEFAULT 5; UPDATE audited SET y = 6 WHERE k = 1; END $$;
SELECT sum(y), min(changed_by) FROM audited;
DROP EVENT TRIGGER zzz_audit;
CREATE EVENT TRIGGER audit_start ON ddl_command_start WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION audit();
ALTER TABLE audited DROP COLUMN y;
SELECT * FROM shape('audited');
DROP EVENT TRIGGER audit_start;
DROP TABLE audited;
