--@ include: schema.sql
-- ALTER TABLE in all its forms, on distributed and reference tables, in and outside of transactions; renames, schema changes,
-- CREATE INDEX, CREATE TABLE AS and SELECT INTO.

CREATE TABLE main (k int NOT NULL, a int, b text, c numeric(8,2) DEFAULT 1.5, d date);
CREATE TABLE side (k int PRIMARY KEY, m int, t text);
CREATE TABLE word (code int PRIMARY KEY, t text);
--@ cluster: SELECT create_distributed_table('main', 'k'), create_distributed_table('side', 'k', colocate_with => 'main')
--@ cluster: SELECT create_reference_table('word')
INSERT INTO main SELECT g, g % 4, 'b' || g, g / 2.0, date '2020-01-01' + g FROM generate_series(1, 40) g;
INSERT INTO side SELECT g, g * 2, 't' || g FROM generate_series(1, 30) g;
INSERT INTO word SELECT g, 'w' || g FROM generate_series(0, 3) g;

-- Columns.
ALTER TABLE main ADD e int;
ALTER TABLE main ADD COLUMN IF NOT EXISTS e int;
ALTER TABLE main ADD COLUMN f text DEFAULT 'eff' NOT NULL, ADD COLUMN g int DEFAULT 3 CHECK (g < 100), DROP COLUMN e;
SELECT count(*), count(f), sum(g) FROM main;
SELECT * FROM main WHERE k = 3;
ALTER TABLE main ADD COLUMN h timestamptz DEFAULT now();
SELECT count(DISTINCT h) FROM main;
INSERT INTO main (k) VALUES (57) RETURNING h = now();
ALTER TABLE main ADD COLUMN r float8 DEFAULT random();
SELECT count(*) FROM main WHERE r BETWEEN 0 AND 1;
ALTER TABLE main DROP COLUMN r, DROP COLUMN h;
ALTER TABLE main DROP COLUMN IF EXISTS nothing;
--@ error: 42703
ALTER TABLE main DROP COLUMN nothing;
--@ error: 42701
ALTER TABLE main ADD COLUMN a int;
--@ error: 23502
ALTER TABLE main ADD COLUMN z int NOT NULL;
--@ error: 23514
INSERT INTO main (k, g) VALUES (50, 100);
ALTER TABLE main ALTER COLUMN a SET DEFAULT 9;
INSERT INTO main (k) VALUES (51) RETURNING a, c, f;
INSERT INTO main (k) VALUES (52), (53), (54) RETURNING a, c, f;
ALTER TABLE main ALTER a DROP DEFAULT, ALTER c SET DEFAULT 7;
INSERT INTO main (k) VALUES (55) RETURNING a, c;
ALTER TABLE main ALTER COLUMN b TYPE varchar(10);
ALTER TABLE main ALTER COLUMN c TYPE int USING c::int + 1, ALTER COLUMN c SET DEFAULT 2;
SELECT sum(c), pg_typeof(max(c)) FROM main;
--@ error: 22001
UPDATE main SET b = 'much longer than ten' WHERE k = 1;
--@ error: 42804
ALTER TABLE main ALTER COLUMN b TYPE int;
--@ error: 22P02
--@ loose: which row comes first
ALTER TABLE main ALTER COLUMN b TYPE int USING b::int;
ALTER TABLE main ALTER COLUMN d TYPE timestamp;
SELECT max(d) FROM main;
ALTER TABLE main ALTER COLUMN d TYPE date USING d::date;
UPDATE main SET a = 0 WHERE a IS NULL;
ALTER TABLE main ALTER COLUMN a SET NOT NULL;
--@ error: 23502
UPDATE main SET a = NULL WHERE k = 1;
ALTER TABLE main ALTER COLUMN a DROP NOT NULL;
ALTER TABLE main RENAME COLUMN b TO bee;
ALTER TABLE main RENAME a TO "A a";
SELECT "A a", count(*) FROM main GROUP BY "A a";
UPDATE main SET "A a" = 5 WHERE k = 2 RETURNING "A a", bee;
ALTER TABLE main RENAME "A a" TO a;
ALTER TABLE main RENAME COLUMN k TO key;
SELECT bee FROM main WHERE key = 7;
INSERT INTO main (key) VALUES (60);
SELECT count(*) FROM main m JOIN side s ON s.k = m.key;
--@ error: 42703
SELECT bee FROM main WHERE k = 7;
ALTER TABLE main RENAME COLUMN key TO k;
SELECT bee FROM main WHERE k = 7;
ALTER TABLE main ALTER COLUMN bee SET STORAGE EXTERNAL;
ALTER TABLE main ALTER COLUMN bee SET STATISTICS 500;
ALTER TABLE main ALTER COLUMN bee SET COMPRESSION pglz;
ALTER TABLE main ALTER COLUMN a SET (n_distinct = 4);
ALTER TABLE main ALTER COLUMN a RESET (n_distinct);
SELECT attname, attstorage, attstattarget FROM pg_attribute WHERE attrelid = 'main'::regclass AND attname = 'bee';
--@ error: 42P16
ALTER TABLE main ADD PRIMARY KEY (k), ADD PRIMARY KEY (k, a);

-- Constraints.
ALTER TABLE main ADD CONSTRAINT positive CHECK (c > 0), ADD CONSTRAINT a_or_b CHECK (a IS NOT NULL OR bee IS NOT NULL OR k > 49) NOT VALID;
--@ error: 23514
INSERT INTO main (k, c) VALUES (70, -1);
--@ error: 23514
--@ loose: which row comes first
UPDATE main SET c = -c;
ALTER TABLE main VALIDATE CONSTRAINT a_or_b;
--@ error: 23514
UPDATE main SET a = NULL, bee = NULL WHERE k = 1;
ALTER TABLE main RENAME CONSTRAINT positive TO above_zero;
--@ error: 23514
INSERT INTO main (k, c) VALUES (70, -1);
ALTER TABLE main DROP CONSTRAINT above_zero;
ALTER TABLE main DROP CONSTRAINT IF EXISTS above_zero;
--@ error: 42704
ALTER TABLE main DROP CONSTRAINT above_zero;
INSERT INTO main (k, c) VALUES (70, -1);
ALTER TABLE main ADD CONSTRAINT main_pk PRIMARY KEY (k);
--@ error: 23505
INSERT INTO main (k) VALUES (70);
INSERT INTO main (k, c) VALUES (70, 5) ON CONFLICT ON CONSTRAINT main_pk DO UPDATE SET c = excluded.c RETURNING c;
ALTER TABLE main ADD UNIQUE (k, bee), ADD CONSTRAINT by_name UNIQUE (bee, k);
ALTER TABLE main DROP CONSTRAINT by_name;
CREATE UNIQUE INDEX main_later ON main (k, a);
ALTER TABLE main ADD CONSTRAINT main_ka UNIQUE USING INDEX main_later;
SELECT conname, contype FROM pg_constraint WHERE conrelid = 'main'::regclass AND contype <> 'n';
ALTER TABLE main DROP CONSTRAINT main_ka;
--@ error: 23505
INSERT INTO main (k, bee) VALUES (1, 'x');
ALTER TABLE side ADD CONSTRAINT to_main FOREIGN KEY (k) REFERENCES main (k) ON DELETE CASCADE;
--@ error: 23503
INSERT INTO side VALUES (1000, 1);
DELETE FROM main WHERE k = 30;
SELECT count(*) FROM side WHERE k = 30;
ALTER TABLE side ALTER CONSTRAINT to_main DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO side VALUES (2000, 1);
INSERT INTO main (k) VALUES (2000);
COMMIT;
SELECT count(*) FROM side WHERE k = 2000;
ALTER TABLE side DROP CONSTRAINT to_main;
ALTER TABLE main ADD CONSTRAINT to_word FOREIGN KEY (a) REFERENCES word NOT VALID;
--@ error: 23503
UPDATE main SET a = 77 WHERE k = 3;
--@ error: 23503
--@ loose: which row is met first
ALTER TABLE main VALIDATE CONSTRAINT to_word;
ALTER TABLE main DROP CONSTRAINT to_word;

-- Storage, owner, triggers and what else a table has.
ALTER TABLE main SET (fillfactor = 70, autovacuum_enabled = off);
SELECT reloptions FROM pg_class WHERE relname = 'main';
ALTER TABLE main RESET (fillfactor, autovacuum_enabled);
ALTER TABLE main SET UNLOGGED;
SELECT count(*) FROM main;
ALTER TABLE main SET LOGGED;
ALTER TABLE main CLUSTER ON main_pk;
ALTER TABLE main SET WITHOUT CLUSTER;
ALTER TABLE main REPLICA IDENTITY FULL;
ALTER TABLE main REPLICA IDENTITY DEFAULT;
ALTER TABLE main OWNER TO CURRENT_USER;
ALTER TABLE main DISABLE TRIGGER USER;
ALTER TABLE main ENABLE TRIGGER USER;
ALTER TABLE main SET ACCESS METHOD heap;
ALTER TABLE IF EXISTS nowhere ADD COLUMN x int;
--@ error: 42P01
ALTER TABLE nowhere ADD COLUMN x int;
--@ error: 42704
ALTER TABLE main SET TABLESPACE nowhere;
--@ error: 22023
ALTER TABLE main SET (nothing = 1);

-- In a transaction, taken back and kept.
BEGIN;
ALTER TABLE main ADD COLUMN tx int DEFAULT 4;
UPDATE main SET tx = 5 WHERE k < 10;
SELECT tx, count(*) FROM main GROUP BY tx;
SAVEPOINT a;
ALTER TABLE main DROP COLUMN bee;
SELECT * FROM main WHERE k = 2;
ROLLBACK TO a;
SELECT * FROM main WHERE k = 2;
ALTER TABLE main RENAME TO main2;
SELECT count(*) FROM main2 WHERE tx = 5;
SELECT m.k, s.t FROM main2 m JOIN side s USING (k) WHERE m.k < 5;
CREATE INDEX in_tx ON main2 (tx);
INSERT INTO main2 (k, tx) VALUES (3000, 6);
SELECT tx FROM main2 WHERE k = 3000;
ROLLBACK;
SELECT * FROM main WHERE k = 2;
BEGIN;
SELECT sum(c) FROM main;
ALTER TABLE main ADD COLUMN kept int DEFAULT 1;
SELECT sum(kept) FROM main;
COMMIT;
SELECT sum(kept) FROM main;
BEGIN;
UPDATE main SET kept = 2;
ALTER TABLE main DROP COLUMN kept;
TRUNCATE side;
INSERT INTO side VALUES (1, 1, 'only');
ROLLBACK;
SELECT sum(kept), (SELECT count(*) FROM side) FROM main;
ALTER TABLE main ADD COLUMN x1 int\; ALTER TABLE main ADD COLUMN x2 int DEFAULT 5\; SELECT sum(x2) FROM main;

-- Reference tables.
ALTER TABLE word ADD COLUMN n int DEFAULT 5, ADD COLUMN gone int;
ALTER TABLE word DROP COLUMN gone, ALTER COLUMN t SET DEFAULT 'deflt', ALTER COLUMN n TYPE bigint;
INSERT INTO word (code) VALUES (10) RETURNING *;
SELECT m.k, w.t, w.n FROM main m JOIN word w ON w.code = m.a WHERE m.k < 6;
ALTER TABLE word ADD CONSTRAINT short CHECK (length(t) < 9);
--@ error: 23514
UPDATE word SET t = 'much too long';
ALTER TABLE word RENAME COLUMN t TO text;
ALTER TABLE word RENAME TO words;
CREATE INDEX ON words (text);
SELECT text, count(*) FROM main m JOIN words w ON w.code = m.a GROUP BY text;
ALTER TABLE words RENAME TO word;
--@ error: 23505
ALTER TABLE word ADD UNIQUE (n);
BEGIN;
ALTER TABLE word ADD COLUMN tx int DEFAULT 1;
UPDATE word SET tx = code;
SELECT sum(w.tx) FROM main m JOIN word w ON w.code = m.a;
ROLLBACK;

-- Names and schemas.
CREATE SCHEMA attic;
ALTER TABLE side SET SCHEMA attic;
SELECT count(*) FROM attic.side;
SELECT s.t FROM attic.side s JOIN main m USING (k) WHERE k = 9;
--@ error: 42P01
SELECT count(*) FROM side;
SET search_path = attic, public;
SELECT count(*) FROM side JOIN main USING (k);
SELECT t FROM side WHERE k = 4;
ALTER TABLE side RENAME TO main;
SELECT count(*), sum(m) FROM main;
SELECT m FROM main WHERE k = 4;
SELECT count(*) FROM main JOIN public.main p USING (k);
RESET search_path;
SELECT c FROM main WHERE k = 4;
ALTER TABLE attic.main RENAME TO side;
ALTER TABLE attic.side SET SCHEMA public;
DROP SCHEMA attic;
--@ error: 42P07
ALTER TABLE side RENAME TO main;
CREATE SCHEMA "Odd Schema" CREATE TABLE inside (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('"Odd Schema".inside', 'k')
INSERT INTO "Odd Schema".inside VALUES (1, 'a'), (2, 'b');
SELECT i.v FROM "Odd Schema".inside i WHERE k = 2;
ALTER SCHEMA "Odd Schema" RENAME TO even;
SELECT v FROM even.inside WHERE k = 1;
SELECT count(*) FROM even.inside;
DROP SCHEMA even CASCADE;
ALTER INDEX main_pk RENAME TO main_pkey;
SELECT conname FROM pg_constraint WHERE conrelid = 'main'::regclass AND contype = 'p';
--@ error: 23505
INSERT INTO main (k, bee) VALUES (1, 'x');

-- Indexes.
CREATE INDEX ON main (a, c DESC NULLS LAST) INCLUDE (d);
CREATE INDEX main_expr ON main ((c + a), lower(bee)) WHERE a > 0;
CREATE INDEX main_hash ON main USING hash (bee);
CREATE INDEX main_brin ON main USING brin (d);
CREATE INDEX main_opc ON main (bee text_pattern_ops) WITH (fillfactor = 60);
CREATE UNIQUE INDEX main_part ON main (k, c) WHERE a = 1;
CREATE INDEX CONCURRENTLY main_con ON main (c);
CREATE INDEX CONCURRENTLY IF NOT EXISTS main_con ON main (c);
CREATE UNIQUE INDEX CONCURRENTLY main_ucon ON main (k, d);
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'main';
SELECT indexrelid::regclass, indisvalid, indisunique FROM pg_index WHERE indrelid = 'main'::regclass;
SELECT k FROM main WHERE bee LIKE 'b1%' AND k < 15;
ALTER INDEX main_opc SET (fillfactor = 70);
ALTER INDEX main_opc RESET (fillfactor);
ALTER INDEX main_expr ALTER COLUMN 1 SET STATISTICS 200;
REINDEX INDEX main_hash;
REINDEX INDEX CONCURRENTLY main_brin;
REINDEX TABLE CONCURRENTLY main;
DROP INDEX main_hash, main_brin;
DROP INDEX CONCURRENTLY main_con;
DROP INDEX IF EXISTS main_con;
--@ error: 42704
DROP INDEX main_con;
--@ error: 42P07
CREATE INDEX main_opc ON main (a);
--@ error: 42703
CREATE INDEX ON main (nothing);
--@ error: 25001
BEGIN\; CREATE INDEX CONCURRENTLY main_never ON main (a);
ROLLBACK;
--@ error: 23505
CREATE UNIQUE INDEX ON word (n);
CREATE INDEX CONCURRENTLY word_con ON word (n);
DROP INDEX CONCURRENTLY word_con;

-- CREATE TABLE AS, SELECT INTO, LIKE.
CREATE TABLE copy1 AS SELECT * FROM main;
SELECT count(*), sum(c) FROM copy1;
CREATE TABLE copy2 (x, y) AS SELECT a, count(*) FROM main GROUP BY a WITH DATA;
SELECT * FROM copy2;
CREATE TABLE copy3 AS SELECT m.k, s.t FROM main m LEFT JOIN side s USING (k) WITH NO DATA;
SELECT count(*) FROM copy3;
INSERT INTO copy3 SELECT m.k, s.t FROM main m LEFT JOIN side s USING (k);
SELECT count(*), count(t) FROM copy3;
CREATE TABLE IF NOT EXISTS copy3 AS SELECT 1 AS z;
CREATE TEMP TABLE copy4 AS SELECT * FROM main WHERE k < 10;
SELECT count(*) FROM copy4 JOIN main USING (k);
CREATE UNLOGGED TABLE copy5 AS WITH w AS (SELECT a, sum(c) AS s FROM main GROUP BY a) SELECT * FROM w WHERE s > 10;
SELECT count(*) FROM copy5;
CREATE TABLE copy6 AS TABLE word;
CREATE TABLE copy7 AS VALUES (1, 'a'), (2, 'b');
SELECT w.code, c.column2 FROM word w JOIN copy7 c ON c.column1 = w.code;
SELECT k, c INTO copy8 FROM main WHERE a = 1;
SELECT count(*) FROM copy8;
SELECT s.k, m.c INTO TEMP copy9 FROM main m, side s WHERE m.k = s.m;
SELECT count(*), sum(c) FROM copy9;
--@ cluster: SELECT create_distributed_table('copy1', 'k'), create_distributed_table('copy3', 'k')
SELECT count(*) FROM copy1 a JOIN copy3 b USING (k) WHERE b.t IS NOT NULL;
CREATE TABLE liked (LIKE main INCLUDING ALL, extra int);
--@ cluster: SELECT create_distributed_table('liked', 'k')
INSERT INTO liked (k, bee, extra) SELECT k, bee, 1 FROM main;
SELECT count(*), sum(extra), max(f) FROM liked;
SELECT indexname FROM pg_indexes WHERE tablename = 'liked';
--@ error: 42P07
CREATE TABLE copy1 AS SELECT 1;
-- In the extended protocol PostgreSQL says so at Parse, the router at Execute.
--@ error: 42P01
--@ mode: simple
CREATE TABLE copy99 AS SELECT * FROM nowhere;
--@ error: 22012
CREATE TABLE copy99 AS SELECT 1 / (k - k) FROM main;
--@ error: 42P01
SELECT * FROM copy99;

-- TRUNCATE and DROP.
TRUNCATE copy1;
SELECT count(*) FROM copy1;
INSERT INTO liked (k) VALUES (5000);
TRUNCATE liked, copy3, copy2, word RESTART IDENTITY CASCADE;
SELECT (SELECT count(*) FROM liked), (SELECT count(*) FROM copy3), (SELECT count(*) FROM copy2), (SELECT count(*) FROM word);
BEGIN;
TRUNCATE main;
SELECT count(*) FROM main;
INSERT INTO main (k, bee) VALUES (1, 'x');
ROLLBACK;
SELECT count(*) FROM main;
BEGIN;
DROP TABLE main;
--@ error: 42P01
SELECT 1 FROM main;
ROLLBACK;
SELECT count(*) FROM main;
CREATE VIEW of_main AS SELECT k FROM main;
--@ error: 2BP01
DROP TABLE main;
--@ error: 0A000
ALTER TABLE main ALTER COLUMN k TYPE bigint;
DROP TABLE main CASCADE;
--@ error: 42P01
SELECT * FROM of_main;
DROP TABLE IF EXISTS main, side, copy1;

-- Columns that only the coordinator can fill, on tables that have rows.
CREATE TABLE filled (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('filled', 'k')
INSERT INTO filled SELECT g, 'v' || g FROM generate_series(1, 20) g;
ALTER TABLE filled ADD COLUMN a serial;
SELECT count(*), count(DISTINCT a), min(a), max(a) FROM filled;
ALTER TABLE filled ADD COLUMN b bigserial, ADD COLUMN c smallint GENERATED BY DEFAULT AS IDENTITY CHECK (c < 100);
SELECT count(*), count(DISTINCT b), min(b), max(b), count(DISTINCT c), min(c), max(c) FROM filled;
ALTER TABLE filled ADD COLUMN d int GENERATED ALWAYS AS IDENTITY (START WITH 100 INCREMENT BY 10),
    ADD COLUMN twice int GENERATED ALWAYS AS (k * 2) STORED;
SELECT count(DISTINCT d), min(d), max(d), sum(twice) FROM filled;
INSERT INTO filled (k, v) VALUES (100, 'x') RETURNING *;
CREATE SEQUENCE numbers START 500;
BEGIN;
ALTER TABLE filled ADD COLUMN e bigint DEFAULT nextval('numbers') NOT NULL;
SELECT count(DISTINCT e), min(e), max(e) FROM filled;
ROLLBACK;
BEGIN;
ALTER TABLE filled ADD COLUMN e bigint DEFAULT nextval('numbers') NOT NULL, ADD COLUMN same int DEFAULT 5;
SELECT count(DISTINCT e), min(e), max(e), sum(same) FROM filled;
COMMIT;
CREATE FUNCTION tag_of() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'n' || nextval('numbers'); END $$;
ALTER TABLE filled ADD COLUMN f varchar(5) COLLATE "C" DEFAULT tag_of();
SELECT count(DISTINCT f), min(f), max(f) FROM filled;
--@ error: 22001
ALTER TABLE filled ADD COLUMN g varchar(3) DEFAULT tag_of();
ALTER SEQUENCE numbers RESTART 600;
CREATE SEQUENCE far START 100000000000;
--@ error: 22003
ALTER TABLE filled ADD COLUMN g int DEFAULT nextval('far');
--@ error: 23514
ALTER TABLE filled ADD COLUMN g serial CHECK (g < 10);
DO $$ BEGIN ALTER TABLE filled ADD COLUMN g serial; END $$;
SELECT count(DISTINCT g), min(g), max(g) FROM filled;
ALTER TABLE filled ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE filled ADD COLUMN h serial;
SELECT count(DISTINCT h), min(h), max(h) FROM filled;
CREATE SEQUENCE turns MAXVALUE 3 CYCLE;
ALTER TABLE filled ADD COLUMN turn int DEFAULT nextval('turns');
SELECT turn, count(*) FROM filled GROUP BY turn;
INSERT INTO filled (k) VALUES (101) RETURNING *;
SELECT column_name, column_default, is_nullable, is_identity FROM information_schema.columns
WHERE table_name = 'filled' ORDER BY ordinal_position;
DROP TABLE filled;

-- What tables have from elsewhere: the index that they are clustered on, the attributes of their type.
CREATE TABLE clustered (k int PRIMARY KEY, n int);
CREATE TYPE pair AS (k int, n int);
CREATE TABLE typed OF pair (PRIMARY KEY (k));
--@ cluster: SELECT create_distributed_table('clustered', 'k'), create_distributed_table('typed', 'k')
INSERT INTO clustered SELECT g, -g FROM generate_series(1, 20) g;
INSERT INTO typed VALUES (1, 2), (3, 4);
--@ error: 42704
CLUSTER clustered;
ALTER TABLE clustered CLUSTER ON clustered_pkey;
CLUSTER clustered;
CREATE INDEX "By n" ON clustered (n);
CLUSTER clustered USING "By n";
CLUSTER clustered;
SELECT indexrelid::regclass, indisclustered FROM pg_index WHERE indrelid = 'clustered'::regclass ORDER BY 1::text;
ALTER TYPE pair ADD ATTRIBUTE z text CASCADE;
INSERT INTO typed VALUES (5, 6, 'seven');
SELECT * FROM typed;
ALTER TYPE pair RENAME ATTRIBUTE z TO y CASCADE;
SELECT k, y FROM typed;
ALTER TYPE pair ALTER ATTRIBUTE n TYPE bigint CASCADE;
SELECT sum(n) FROM typed;
ALTER TYPE pair DROP ATTRIBUTE y CASCADE;
SELECT * FROM typed;
DROP TABLE clustered, typed;
