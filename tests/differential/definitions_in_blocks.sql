-- Definitions one after another in a transaction: what comes after them sees what they have changed, whether it needed it at once
-- or not.

CREATE TABLE spread (k int PRIMARY KEY, v text, n numeric DEFAULT 0);
--@ cluster: SELECT create_distributed_table('spread', 'k')
INSERT INTO spread SELECT g, 'v' || g, g FROM generate_series(1, 20) g;
CREATE TABLE everywhere (id int PRIMARY KEY, name text);
--@ cluster: SELECT create_reference_table('everywhere')
INSERT INTO everywhere VALUES (1, 'a'), (2, 'b');
CREATE SCHEMA first;
CREATE SCHEMA other;

-- Local tables alone, as migrations make them.
BEGIN;
CREATE TABLE mig_a (id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE mig_b (id bigserial PRIMARY KEY, a int REFERENCES mig_a, seen timestamptz DEFAULT now());
CREATE INDEX ON mig_b (a);
ALTER TABLE mig_b ADD COLUMN extra jsonb;
ALTER TABLE mig_b ADD CONSTRAINT positive CHECK (a > 0);
COMMENT ON TABLE mig_b IS 'made in a block';
CREATE SEQUENCE mig_s;
ALTER SEQUENCE mig_s OWNED BY mig_b.a;
ALTER TABLE mig_a ALTER COLUMN name SET DEFAULT 'x' || nextval('mig_s');
INSERT INTO mig_a DEFAULT VALUES RETURNING *;
INSERT INTO mig_b (a) VALUES (1) RETURNING id, a;
SELECT s.k, a.name FROM spread s JOIN mig_a a ON a.id = s.k ORDER BY 1;
SELECT count(*) FROM mig_b b JOIN everywhere e ON e.id = b.a;
UPDATE spread SET v = a.name FROM mig_a a WHERE a.id = spread.k;
SELECT k, v FROM spread WHERE k < 3 ORDER BY 1;
COMMIT;
SELECT k, v FROM spread WHERE k < 3 ORDER BY 1;
SELECT s.k, a.name FROM spread s JOIN mig_a a ON a.id = s.k ORDER BY 1;
DROP TABLE mig_b, mig_a;

-- A new table hides a distributed one of its name, and shows it again.
SET search_path = first, public;
BEGIN;
CREATE TABLE first.plain (a int);
CREATE TABLE first.spread (k int, w text);
CREATE INDEX first_idx ON spread (w);
ALTER TABLE spread ADD COLUMN x int;
INSERT INTO spread VALUES (1, 'hidden', 2);
SELECT * FROM spread;
SELECT count(*) FROM public.spread;
ALTER TABLE public.spread ADD COLUMN y int DEFAULT 3;
SELECT sum(y) FROM public.spread;
DROP TABLE first.spread;
SELECT count(*), sum(y) FROM spread;
ALTER TABLE spread DROP COLUMN y;
COMMIT;
SELECT count(*) FROM spread;
BEGIN;
CREATE TABLE plain_too (a int);
CREATE SEQUENCE first.everywhere;
--@ error: 42809
ALTER TABLE everywhere ADD COLUMN z int;
ROLLBACK;
BEGIN;
CREATE TABLE plain_too (a int);
ALTER TABLE public.everywhere RENAME TO nowhere;
CREATE TABLE everywhere (id int, local bool);
CREATE INDEX ON everywhere (local);
INSERT INTO everywhere VALUES (1, true);
SELECT e.*, n.name FROM everywhere e JOIN nowhere n USING (id);
ROLLBACK;
SELECT * FROM everywhere ORDER BY 1;
-- A sequence hides one, and goes with its column.
CREATE TABLE t_id_seq (k int PRIMARY KEY);
--@ cluster: SELECT create_reference_table('t_id_seq')
BEGIN;
CREATE TABLE first.t (id serial, a int);
ALTER TABLE t DROP COLUMN id;
ALTER TABLE t_id_seq ADD COLUMN w int DEFAULT 5;
INSERT INTO t_id_seq VALUES (1);
SELECT * FROM t_id_seq;
COMMIT;
SELECT * FROM t_id_seq JOIN spread USING (k);
DROP TABLE t, t_id_seq;
RESET search_path;

-- What another session defines between two definitions is followed.
CREATE TABLE late (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('late', 'k')
INSERT INTO late VALUES (1, 1), (2, 2);
BEGIN;
CREATE TABLE early_a (a int);
CREATE TABLE early_b (a int);
--@ on: b
ALTER TABLE late RENAME TO later;
CREATE TABLE early_c (a int);
ALTER TABLE later ADD COLUMN w int DEFAULT 7;
CREATE TABLE late (a int);
CREATE INDEX ON late (a);
--@ on: b
CREATE INDEX ON spread (v);
ALTER TABLE later ALTER COLUMN v TYPE bigint;
SELECT * FROM later ORDER BY k;
COMMIT;
SELECT l.k, l.w, s.v FROM later l JOIN spread s USING (k) ORDER BY 1;
DROP TABLE late, later, early_a, early_b, early_c;

-- Distributed in the same transaction as what they are made of, and altered between others.
BEGIN;
CREATE TABLE made (k int PRIMARY KEY, v int);
CREATE TABLE made_local (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('made', 'k')
CREATE INDEX made_v ON made (v);
CREATE TABLE made_too (k int REFERENCES made_local);
ALTER TABLE made ADD COLUMN w text DEFAULT 'w';
CREATE TABLE made_third (k int);
INSERT INTO made SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO made_local SELECT g FROM generate_series(1, 5) g;
CREATE INDEX ON made_third (k);
SELECT m.k, m.w FROM made m JOIN made_local l USING (k) ORDER BY 1;
ALTER TABLE made RENAME TO made_as;
CREATE TABLE made (k int);
CREATE INDEX ON made (k);
ALTER TABLE made_as ADD COLUMN z int DEFAULT 1;
SELECT count(*), sum(z) FROM made_as;
SELECT count(*) FROM made;
COMMIT;
SELECT count(*), sum(z) FROM made_as;
DROP TABLE made, made_as, made_too, made_local, made_third;

-- Savepoints.
BEGIN;
CREATE TABLE sp_a (a int);
SAVEPOINT s;
CREATE TABLE sp_b (a int);
CREATE TABLE first.spread (k int);
SET LOCAL search_path = first, public;
SELECT count(*) FROM spread;
ROLLBACK TO SAVEPOINT s;
SELECT count(*) FROM spread;
CREATE TABLE sp_b (b text);
INSERT INTO sp_b VALUES ('b');
SELECT * FROM sp_b;
SAVEPOINT t;
--@ error: 42P07
CREATE TABLE sp_b (c int);
ROLLBACK TO SAVEPOINT t;
CREATE TABLE sp_c (c int);
INSERT INTO sp_c SELECT k FROM spread WHERE k < 4;
SELECT * FROM sp_c ORDER BY 1;
RELEASE SAVEPOINT t;
ALTER TABLE spread ADD COLUMN d int DEFAULT 4;
SAVEPOINT u;
CREATE TABLE sp_d (d int);
ALTER TABLE spread DROP COLUMN d;
ROLLBACK TO SAVEPOINT u;
CREATE TABLE sp_e (d int);
SELECT sum(d) FROM spread;
ROLLBACK;
SELECT count(*) FROM spread;
--@ error: 42P01
SELECT * FROM sp_a;

-- Keys to and from, rules and triggers, functions between.
BEGIN;
CREATE TABLE key_of (id int PRIMARY KEY, e int REFERENCES everywhere);
CREATE TABLE key_of_that (id int REFERENCES key_of ON DELETE CASCADE);
INSERT INTO key_of VALUES (1, 1), (2, 2);
INSERT INTO key_of_that VALUES (1), (2);
CREATE TABLE logged (what text, at timestamptz DEFAULT now());
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO logged (what) VALUES (TG_OP || old.id); RETURN old; END $$;
CREATE TRIGGER noted BEFORE DELETE ON key_of FOR EACH ROW EXECUTE FUNCTION note();
CREATE TABLE between_them (a int);
DELETE FROM key_of WHERE id IN (SELECT k FROM spread WHERE k < 2);
SELECT what FROM logged;
SELECT * FROM key_of_that;
CREATE VIEW seen AS SELECT k, v FROM spread WHERE k IN (SELECT id FROM key_of);
CREATE TABLE after_it (a int);
SELECT * FROM seen;
CREATE RULE nothing AS ON INSERT TO after_it DO INSTEAD NOTHING;
CREATE INDEX ON between_them (a);
INSERT INTO after_it SELECT k FROM spread;
SELECT count(*) FROM after_it;
ROLLBACK;

-- Several in one message, and what fails there.
CREATE TABLE m1 (a int PRIMARY KEY)\; CREATE TABLE m2 (a int REFERENCES m1)\; INSERT INTO m1 SELECT k FROM spread\; INSERT INTO m2 SELECT a FROM m1\; SELECT count(*) FROM m2;
--@ error: 42P07
CREATE TABLE m3 (a int)\; CREATE INDEX ON m3 (a)\; CREATE TABLE m1 (a int)\; SELECT count(*) FROM m3;
--@ error: 42P01
SELECT * FROM m3;
DROP TABLE m2, m1;

-- Temporary ones, and ones in others' place.
BEGIN;
CREATE TABLE lasting (a int);
CREATE TEMP TABLE spread (k int, t text);
CREATE INDEX ON spread (t);
INSERT INTO spread VALUES (1, 'temp');
SELECT * FROM spread;
CREATE TABLE lasting_too (a int);
DROP TABLE pg_temp.spread;
SELECT count(*) FROM spread;
COMMIT;
DROP TABLE lasting, lasting_too;

-- Cursors and prepared statements over what comes between.
BEGIN;
CREATE TABLE cur (a int);
DECLARE c CURSOR FOR SELECT k FROM spread ORDER BY k;
CREATE TABLE cur_too (a int);
FETCH 2 FROM c;
PREPARE p AS SELECT count(*) FROM spread, cur;
CREATE TABLE cur_third (a int);
INSERT INTO cur VALUES (1);
CREATE INDEX ON cur (a);
EXECUTE p;
FETCH 1 FROM c;
COMMIT;
DEALLOCATE p;
DROP TABLE cur, cur_too, cur_third, spread, everywhere;
DROP SCHEMA first CASCADE;
DROP SCHEMA other CASCADE;
