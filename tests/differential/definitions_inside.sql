--@ include: schema.sql
-- Definitions of distributed tables from inside: DO blocks, functions, procedures, triggers. Workers follow at once.

CREATE FUNCTION shape(regclass) RETURNS TABLE (name text, type text, must bool, by_default text) LANGUAGE sql AS $$
  SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
  FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum $$;
CREATE TABLE m (k int PRIMARY KEY, v int, note text);
CREATE TABLE m2 (k int, at date, v int);
CREATE TABLE code (id int PRIMARY KEY, label text);
--@ cluster: SELECT create_distributed_table('m', 'k'), create_distributed_table('m2', 'k'), create_reference_table('code')
INSERT INTO m SELECT g, g % 7, 'note ' || g FROM generate_series(1, 40) g;
INSERT INTO m2 SELECT g % 13, '2024-01-01'::date + g, g FROM generate_series(1, 40) g;
INSERT INTO code VALUES (1, 'one'), (2, 'two');

-- What migration tools write.
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM information_schema.columns WHERE table_name = 'm' AND column_name = 'extra') THEN
    ALTER TABLE m ADD COLUMN extra int;
  END IF;
END $$;
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM information_schema.columns WHERE table_name = 'm' AND column_name = 'extra') THEN
    ALTER TABLE m ADD COLUMN extra int;
  END IF;
END $$;
SELECT * FROM shape('m');
SELECT count(*), count(extra) FROM m;
-- Rows that are there get their values in the same block.
DO $$ BEGIN
  ALTER TABLE m ADD COLUMN doubled int;
  UPDATE m SET doubled = v * 2;
  ALTER TABLE m ALTER COLUMN doubled SET NOT NULL, ALTER COLUMN doubled SET DEFAULT 5;
  INSERT INTO m (k, v) VALUES (100, 3);
END $$;
SELECT count(*), sum(doubled) FROM m;
SELECT k, v, doubled FROM m WHERE k IN (3, 100);
SELECT * FROM shape('m');
--@ error: 23502
DO $$ BEGIN ALTER TABLE m ALTER COLUMN extra SET NOT NULL; END $$;
DO $$ DECLARE n bigint; BEGIN
  ALTER TABLE m ADD COLUMN a int DEFAULT 1;
  ALTER TABLE m2 ADD COLUMN a int DEFAULT 2;
  SELECT sum(m.a + m2.a) INTO n FROM m JOIN m2 USING (k);
  RAISE NOTICE 'sum %', n;
  ALTER TABLE m RENAME COLUMN a TO b;
  ALTER TABLE m2 DROP COLUMN a;
END $$;
SELECT sum(b) FROM m;
SELECT * FROM m2 WHERE k = 5 ORDER BY v;
SELECT * FROM shape('m2');

-- Indexes and constraints.
DO $$ BEGIN CREATE INDEX m_v ON m (v); CREATE UNIQUE INDEX m_kn ON m (k, note); END $$;
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'm' ORDER BY 1;
DO $$ BEGIN DROP INDEX m_v; ALTER INDEX m_kn RENAME TO m_key_note; END $$;
SELECT indexname FROM pg_indexes WHERE tablename = 'm' ORDER BY 1;
DO $$ BEGIN ALTER TABLE m ADD CONSTRAINT v_small CHECK (v < 100); END $$;
--@ error: 23514
INSERT INTO m (k, v) VALUES (101, 100);
--@ error: 23514
DO $$ BEGIN ALTER TABLE m ADD CONSTRAINT v_smaller CHECK (v < 3); END $$;
DO $$ BEGIN
  INSERT INTO m2 VALUES (1, NULL, 1), (1, NULL, 1);
  CREATE UNIQUE INDEX m2_u ON m2 (k, v);
EXCEPTION WHEN unique_violation THEN
  RAISE NOTICE 'not unique';
END $$;
SELECT count(*) FROM m2;
SELECT count(*) FROM pg_indexes WHERE tablename = 'm2';
DO $$ BEGIN ALTER TABLE m DROP CONSTRAINT v_small; END $$;
INSERT INTO m (k, v) VALUES (101, 100);
DO $$ BEGIN ALTER TABLE m2 ADD FOREIGN KEY (k) REFERENCES m (k) NOT VALID; END $$;
--@ error: 23503
INSERT INTO m2 VALUES (555, NULL, 1);
DO $$ BEGIN ALTER TABLE m2 DROP CONSTRAINT m2_k_fkey; END $$;
INSERT INTO m2 VALUES (555, NULL, 1);

-- Types.
DO $$ BEGIN ALTER TABLE m ALTER COLUMN v TYPE bigint USING v * 10; END $$;
SELECT sum(v), pg_typeof(min(v)) FROM m;
DO $$ BEGIN EXECUTE 'ALTER TABLE m ALTER COLUMN v TYPE numeric(8,2)'; END $$;
SELECT v FROM m WHERE k = 3;
DO $$ BEGIN EXECUTE format('ALTER TABLE %I ADD COLUMN %I text DEFAULT %L', 'm', 'odd "name"', E'it''s\n"\\'); END $$;
SELECT "odd ""name""" FROM m WHERE k = 1;
DO $$ BEGIN ALTER TABLE m DROP COLUMN "odd ""name"""; END $$;

-- What is taken back on the way.
DO $$ BEGIN
  ALTER TABLE m ADD COLUMN kept int DEFAULT 1;
  BEGIN
    ALTER TABLE m ADD COLUMN gone int DEFAULT 2;
    UPDATE m SET gone = 3 WHERE k = 1;
    RAISE EXCEPTION 'back';
  EXCEPTION WHEN raise_exception THEN
    RAISE NOTICE 'caught';
  END;
  UPDATE m SET kept = 7 WHERE k = 2;
  BEGIN
    ALTER TABLE m ADD COLUMN kept int;
  EXCEPTION WHEN duplicate_column THEN
    RAISE NOTICE 'there';
  END;
  BEGIN
    ALTER TABLE m ALTER COLUMN extra SET NOT NULL;
  EXCEPTION WHEN not_null_violation THEN
    RAISE NOTICE 'nulls';
  END;
  ALTER TABLE m ADD COLUMN more int DEFAULT 4;
END $$;
SELECT sum(kept), sum(more), count(*) FROM m;
SELECT * FROM shape('m');
--@ error: P0001
DO $$ BEGIN ALTER TABLE m ADD COLUMN never int; RAISE EXCEPTION 'no'; END $$;
SELECT * FROM m WHERE k = 1;
DO $$ BEGIN
  FOR i IN 1 .. 3 LOOP
    BEGIN
      EXECUTE 'ALTER TABLE m2 ADD COLUMN c' || i || ' int DEFAULT ' || i;
      IF i = 2 THEN RAISE EXCEPTION 'not this one'; END IF;
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
END $$;
SELECT sum(c1), sum(c3) FROM m2;
--@ error: 42703
SELECT c2 FROM m2;

-- In blocks.
BEGIN;
INSERT INTO m (k, v) VALUES (200, 1);
DO $$ BEGIN ALTER TABLE m ADD COLUMN inblock int DEFAULT 9; END $$;
SELECT inblock FROM m WHERE k = 200;
UPDATE m SET inblock = 1 WHERE k = 200;
SAVEPOINT a;
DO $$ BEGIN ALTER TABLE m DROP COLUMN inblock; DELETE FROM m WHERE k = 200; END $$;
SELECT count(*) FROM m;
ROLLBACK TO a;
SELECT inblock FROM m WHERE k = 200;
COMMIT;
SELECT k, v, inblock FROM m WHERE k IN (1, 200);
BEGIN;
DO $$ BEGIN ALTER TABLE m DROP COLUMN inblock; END $$;
ROLLBACK;
SELECT count(inblock) FROM m;
BEGIN;
DO $$ BEGIN ALTER TABLE m DROP COLUMN inblock; END $$;
--@ error: 42703
SELECT count(inblock) FROM m;
ROLLBACK;

-- Functions, procedures, triggers.
CREATE FUNCTION add_column(t text, c text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS %I int DEFAULT 11', t, c);
  RETURN t || '.' || c;
END $$;
SELECT add_column('m', 'byfun');
SELECT add_column('m', 'byfun');
SELECT sum(byfun) FROM m;
SELECT add_column(t, 'twin') FROM unnest(ARRAY['m', 'm2', 'local_notes']) t;
SELECT sum(m.twin), sum(m2.twin) FROM m JOIN m2 USING (k);
CREATE PROCEDURE drop_twin() LANGUAGE plpgsql AS $$ BEGIN ALTER TABLE m DROP COLUMN twin; ALTER TABLE m2 DROP COLUMN twin; END $$;
CALL drop_twin();
SELECT * FROM m2 WHERE k = 3 ORDER BY v;
CREATE FUNCTION in_sql() RETURNS void LANGUAGE sql AS $$ ALTER TABLE m2 ADD COLUMN IF NOT EXISTS s1 int DEFAULT 1; ALTER TABLE m2 ADD COLUMN IF NOT EXISTS s2 int DEFAULT 2; $$;
SELECT in_sql();
SELECT sum(s1), sum(s2) FROM m2;
CREATE FUNCTION on_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('COMMENT ON TABLE m2 IS %L', NEW.body); ALTER TABLE m2 ALTER COLUMN s1 SET DEFAULT 6; RETURN NEW; END $$;
CREATE TRIGGER on_note BEFORE INSERT ON local_notes FOR EACH ROW EXECUTE FUNCTION on_note();
INSERT INTO local_notes (user_id, body) VALUES (1, 'said by a trigger');
SELECT obj_description('m2'::regclass);
INSERT INTO m2 (k, v) VALUES (777, 0) RETURNING s1;
DROP TRIGGER on_note ON local_notes;

-- Names, schemas, other objects.
DO $$ BEGIN CREATE SCHEMA IF NOT EXISTS room; ALTER TABLE m2 SET SCHEMA room; ALTER TABLE room.m2 RENAME TO chair; INSERT INTO room.chair (k, v) VALUES (778, 1); END $$;
SELECT count(*) FROM room.chair;
DO $$ BEGIN ALTER SCHEMA room RENAME TO hall; END $$;
SELECT count(*) FROM hall.chair;
DO $$ BEGIN ALTER TABLE hall.chair SET SCHEMA public; ALTER TABLE chair RENAME TO m2; DROP SCHEMA hall; END $$;
SELECT count(*), max(k) FROM m2;
CREATE FUNCTION elsewhere() RETURNS void LANGUAGE plpgsql SET search_path = aside AS $$ BEGIN ALTER TABLE t ADD COLUMN IF NOT EXISTS b int DEFAULT 3; END $$;
DO $$ BEGIN CREATE SCHEMA aside; CREATE TABLE aside.t (k int PRIMARY KEY); CREATE TABLE t (k int); END $$;
--@ cluster: SELECT create_distributed_table('aside.t', 'k'), create_distributed_table('t', 'k')
INSERT INTO aside.t VALUES (1), (2);
SELECT elsewhere();
SELECT * FROM aside.t;
SELECT * FROM shape('t');
DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE FUNCTION half(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 / 2'; END $$;
CREATE TABLE moods (k int, m mood DEFAULT 'ok', h int GENERATED ALWAYS AS (half(8)) STORED);
--@ cluster: SELECT create_distributed_table('moods', 'k')
INSERT INTO moods VALUES (1, 'sad'), (2, DEFAULT);
DO $$ BEGIN ALTER TYPE mood ADD VALUE 'glad'; END $$;
INSERT INTO moods VALUES (3, 'glad');
SELECT m, count(*), max(h) FROM moods GROUP BY m;
DO $$ BEGIN CREATE TYPE size AS ENUM ('s', 'l'); ALTER TABLE moods ADD COLUMN size size DEFAULT 'l'; UPDATE moods SET size = 's' WHERE k = 1; ALTER TYPE size RENAME VALUE 'l' TO 'xl'; END $$;
SELECT k, size FROM moods;
DO $$ BEGIN DROP TYPE mood CASCADE; END $$;
SELECT * FROM moods;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := 'stamped'; RETURN NEW; END $$;
DO $$ BEGIN CREATE TRIGGER stamp BEFORE INSERT ON m FOR EACH ROW EXECUTE FUNCTION stamp(); END $$;
INSERT INTO m (k, v) VALUES (300, 1) RETURNING note;
DO $$ BEGIN CREATE OR REPLACE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $b$ BEGIN NEW.note := 'again'; RETURN NEW; END $b$; END $$;
INSERT INTO m (k, v) VALUES (301, 1) RETURNING note;
DO $$ BEGIN DROP TRIGGER stamp ON m; END $$;
INSERT INTO m (k, v) VALUES (302, 1) RETURNING note;

-- Reference tables, identity, tables that come and go.
DO $$ BEGIN ALTER TABLE code ADD COLUMN w int DEFAULT 4; UPDATE code SET w = 5 WHERE id = 2; CREATE INDEX ON code (label); END $$;
SELECT c.label, c.w, count(*) FROM m JOIN code c ON c.id = m.k % 3 GROUP BY 1, 2;
DO $$ BEGIN ALTER TABLE m2 ALTER COLUMN v SET NOT NULL; ALTER TABLE m2 ALTER COLUMN v ADD GENERATED BY DEFAULT AS IDENTITY (START 5000); INSERT INTO m2 (k) VALUES (900); END $$;
SELECT v FROM m2 WHERE k = 900;
DO $$ BEGIN DROP TABLE t; CREATE TABLE t (k text); INSERT INTO t VALUES ('local'); END $$;
SELECT * FROM t;
DO $$ BEGIN BEGIN DROP TABLE m; RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN NULL; END; END $$;
SELECT count(*) FROM m;
DO $$ BEGIN TRUNCATE m2; ALTER TABLE m2 ADD COLUMN tail int; INSERT INTO m2 (k, tail) VALUES (1, 1); END $$;
SELECT k, tail FROM m2;
--@ error: 55006
--@ loose: the foreign child is in use
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM m LOOP ALTER TABLE m ADD COLUMN z int; END LOOP; END $$;
--@ error: 42P01
DO $$ BEGIN ALTER TABLE nowhere ADD COLUMN z int; END $$;
DO $$ BEGIN EXECUTE 'CREATE TABLE two_at_once (k int); ALTER TABLE two_at_once ADD COLUMN b int'; END $$;
SELECT * FROM shape('two_at_once');
DROP TABLE two_at_once;
--@ error: 42601
DO $$ BEGIN EXECUTE 'ALTER TABLE m ADD COLUMN'; END $$;
DO $$ BEGIN CREATE TEMP TABLE scratch (k int) ON COMMIT DROP; ALTER TABLE scratch ADD COLUMN b int; INSERT INTO scratch VALUES (1, 2); ALTER TABLE m ADD COLUMN fromtemp int; END $$;
SELECT count(fromtemp) FROM m;

-- Partitioned tables.
CREATE TABLE ev (k int NOT NULL, at date NOT NULL, n int) PARTITION BY RANGE (at);
CREATE TABLE ev_1 PARTITION OF ev FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
--@ cluster: SELECT create_distributed_table('ev', 'k')
INSERT INTO ev SELECT g, '2024-01-01'::date + g, g FROM generate_series(1, 20) g;
DO $$ BEGIN
  FOR i IN 2 .. 4 LOOP
    EXECUTE format('CREATE TABLE ev_%s PARTITION OF ev FOR VALUES FROM (%L) TO (%L)', i, make_date(2024, i, 1), make_date(2024, i + 1, 1));
  END LOOP;
END $$;
INSERT INTO ev SELECT g, '2024-02-01'::date + g, g FROM generate_series(1, 80) g;
SELECT (SELECT count(*) FROM ev_2), (SELECT count(*) FROM ev_3), (SELECT count(*) FROM ev_4), count(*) FROM ev;
DO $$ BEGIN ALTER TABLE ev ADD COLUMN z int DEFAULT 8; CREATE INDEX ON ev (n); UPDATE ev SET z = 9 WHERE at < '2024-01-05'; END $$;
SELECT z, count(*) FROM ev GROUP BY 1;
SELECT tablename, count(*) FROM pg_indexes WHERE tablename LIKE 'ev%' GROUP BY 1;
DO $$ BEGIN ALTER TABLE ev DETACH PARTITION ev_2; END $$;
SELECT (SELECT count(*) FROM ev), (SELECT count(*) FROM ev_2);
DO $$ BEGIN ALTER TABLE ev ATTACH PARTITION ev_2 FOR VALUES FROM ('2024-02-01') TO ('2024-03-01'); DROP TABLE ev_1; END $$;
SELECT count(*) FROM ev;
DO $$ BEGIN CREATE TABLE ev_5 (k int NOT NULL, at date NOT NULL, n int, z int DEFAULT 8); ALTER TABLE ev ATTACH PARTITION ev_5 FOR VALUES FROM ('2024-05-01') TO ('2024-06-01'); INSERT INTO ev VALUES (5, '2024-05-05', 5); END $$;
SELECT * FROM ev WHERE k = 5;
DO $$ BEGIN DROP TABLE ev; END $$;
--@ error: 42P01
SELECT count(*) FROM ev_3;

-- Rights.
CREATE ROLE inside_owner;
CREATE ROLE inside_reader;
GRANT CREATE ON SCHEMA public TO inside_owner;
ALTER TABLE m OWNER TO inside_owner;
DO $$ BEGIN GRANT SELECT (k) ON m TO inside_reader; END $$;
SET ROLE inside_reader;
SELECT count(k) FROM m;
--@ error: 42501
SELECT count(v) FROM m;
--@ error: 42501
DO $$ BEGIN ALTER TABLE m ADD COLUMN theirs int; END $$;
SET ROLE inside_owner;
DO $$ BEGIN ALTER TABLE m ADD COLUMN mine int DEFAULT 2; GRANT SELECT ON m TO inside_reader; END $$;
SELECT sum(mine) FROM m;
SET ROLE inside_reader;
SELECT sum(mine) FROM m;
RESET ROLE;
DO $$ BEGIN REVOKE ALL ON m FROM inside_reader; ALTER TABLE m ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON m USING (k < 10); GRANT SELECT ON m TO inside_reader; END $$;
SET ROLE inside_reader;
SELECT count(*) FROM m;
RESET ROLE;
DO $$ BEGIN DROP POLICY few ON m; ALTER TABLE m DISABLE ROW LEVEL SECURITY; END $$;
GRANT inside_owner TO inside_reader;
CREATE FUNCTION as_a_reader() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER TABLE m ADD COLUMN nobodys int; END $$;
CREATE ROLE inside_other;
ALTER FUNCTION as_a_reader() OWNER TO inside_other;
--@ error: 42501
SELECT as_a_reader();
GRANT USAGE, CREATE ON SCHEMA public TO inside_other;
SET ROLE inside_other;
DO $$ BEGIN CREATE TABLE own (k int); CREATE VIEW own_v AS SELECT * FROM own; DROP TABLE own CASCADE; END $$;
CREATE TABLE own (k int);
CREATE TYPE own_type AS ENUM ('x');
GRANT USAGE ON TYPE own_type TO PUBLIC;
DROP TABLE own CASCADE;
RESET ROLE;
CREATE FUNCTION as_its_owner() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN ALTER TABLE m ADD COLUMN IF NOT EXISTS lent int; END $$;
ALTER FUNCTION as_its_owner() OWNER TO inside_owner;
SELECT as_its_owner();
SELECT as_its_owner();
SELECT count(lent) FROM m;
SET ROLE inside_owner;
SELECT as_its_owner();
RESET ROLE;
-- As whoever has written it, with his path.
CREATE SCHEMA lent AUTHORIZATION inside_owner;
CREATE TABLE lent.d (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('lent.d', 'k')
ALTER TABLE lent.d OWNER TO inside_owner;
INSERT INTO lent.d SELECT g, 'v' || g FROM generate_series(1, 20) g;
CREATE FUNCTION lends() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = lent AS $$ BEGIN
  ALTER TABLE d ADD COLUMN who text DEFAULT CURRENT_USER, ADD COLUMN s serial;
  ALTER TABLE d ALTER COLUMN v TYPE varchar(60) USING upper(v) || current_user;
  CREATE INDEX d_v ON d (v);
  CREATE TYPE kind AS ENUM ('a', 'b');
  ALTER TABLE d ADD COLUMN kind kind DEFAULT 'b';
  ALTER TYPE kind ADD VALUE 'c';
  COMMENT ON TABLE d IS 'lent';
  GRANT SELECT ON d TO inside_reader;
END $$;
ALTER FUNCTION lends() OWNER TO inside_owner;
SET ROLE inside_other;
DO $$ BEGIN PERFORM lends(); END $$;
--@ error: 42501
SELECT count(*) FROM lent.d;
--@ error: 42501
ALTER TABLE lent.d ADD COLUMN x int;
RESET ROLE;
SELECT v, who, kind FROM lent.d WHERE k < 4;
SELECT count(DISTINCT s) FROM lent.d;
SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relname IN ('d', 'd_v') AND relnamespace = 'lent'::regnamespace;
INSERT INTO lent.d (k, v, kind) VALUES (100, 'x', 'c') RETURNING who;
CREATE FUNCTION lends_more() RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = lent AS $$ BEGIN
  BEGIN
    ALTER TABLE d ADD COLUMN gone int;
    CREATE UNIQUE INDEX ON d (who, k);
    ALTER TABLE d ALTER COLUMN gone SET NOT NULL;
  EXCEPTION WHEN not_null_violation THEN NULL;
  END;
  RETURN (SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'd'::regclass AND attnum > 0);
END $$;
ALTER FUNCTION lends_more() OWNER TO inside_owner;
SET ROLE inside_other;
SELECT lends_more();
RESET ROLE;
-- Partitions that a function of the owner's makes.
CREATE TABLE lent.ev (k int NOT NULL, at date NOT NULL) PARTITION BY RANGE (at);
--@ cluster: SELECT create_distributed_table('lent.ev', 'k')
ALTER TABLE lent.ev OWNER TO inside_owner;
CREATE FUNCTION lent.month(n int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  EXECUTE format('CREATE TABLE lent.ev_%s PARTITION OF lent.ev FOR VALUES FROM (%L) TO (%L)', n, make_date(2024, n, 1), make_date(2024, n + 1, 1));
END $$;
ALTER FUNCTION lent.month(int) OWNER TO inside_owner;
GRANT USAGE ON SCHEMA lent TO inside_other;
SET ROLE inside_other;
DO $$ BEGIN PERFORM lent.month(1); PERFORM lent.month(2); END $$;
RESET ROLE;
INSERT INTO lent.ev SELECT g, '2024-01-01'::date + g FROM generate_series(1, 40) g;
SELECT count(*) FROM lent.ev_2;
SELECT relname, relowner::regrole FROM pg_class WHERE relname LIKE 'ev\__' AND relnamespace = 'lent'::regnamespace ORDER BY 1;
SET ROLE inside_owner;
ALTER TABLE lent.ev DETACH PARTITION lent.ev_1;
DROP TABLE lent.ev, lent.ev_1;
RESET ROLE;
DROP FUNCTION lends, lends_more;
DROP SCHEMA lent CASCADE;
DO $$ BEGIN DROP OWNED BY inside_reader; END $$;
DO $$ BEGIN DROP TABLE m, m2, moods, t, aside.t CASCADE; END $$;
DROP OWNED BY inside_owner, inside_reader, inside_other;
DROP ROLE inside_owner, inside_reader, inside_other;
--@ error: 42P01
SELECT * FROM m;
