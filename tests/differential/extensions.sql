-- The extensions that come with PostgreSQL, each made, used by a distributed table in a column, an index, an operator and a
-- function, moved to another schema, updated, and dropped.
CREATE SCHEMA ext;
CREATE EXTENSION hstore;
CREATE EXTENSION citext;
CREATE EXTENSION pg_trgm SCHEMA ext;
CREATE EXTENSION IF NOT EXISTS "uuid-ossp";
CREATE EXTENSION pgcrypto;
CREATE EXTENSION ltree;
CREATE EXTENSION intarray;
CREATE EXTENSION btree_gin;
CREATE EXTENSION btree_gist;
CREATE EXTENSION cube;
CREATE EXTENSION earthdistance;
CREATE EXTENSION fuzzystrmatch;
CREATE EXTENSION isn;
CREATE EXTENSION seg;
CREATE EXTENSION unaccent;
CREATE EXTENSION tablefunc;
CREATE EXTENSION lo;
CREATE EXTENSION bloom;
CREATE EXTENSION dict_int;
CREATE EXTENSION dict_xsyn;
CREATE EXTENSION intagg;
CREATE EXTENSION moddatetime;
CREATE EXTENSION insert_username;
CREATE EXTENSION refint;
CREATE EXTENSION autoinc;
CREATE EXTENSION tcn;
CREATE EXTENSION tsm_system_rows;
CREATE EXTENSION tsm_system_time;
CREATE EXTENSION xml2;
CREATE EXTENSION amcheck;
CREATE EXTENSION pageinspect;
CREATE EXTENSION pg_buffercache;
CREATE EXTENSION pg_freespacemap;
CREATE EXTENSION pg_prewarm;
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION pg_visibility;
CREATE EXTENSION pg_walinspect;
CREATE EXTENSION pgrowlocks;
CREATE EXTENSION pgstattuple;
CREATE EXTENSION pg_surgery;
CREATE EXTENSION sslinfo;
CREATE EXTENSION file_fdw;
CREATE EXTENSION dblink;
--@ error: 42710
CREATE EXTENSION hstore;
--@ only: from 18
CREATE EXTENSION pg_logicalinspect;
--@ error: 55000
SELECT count(*) FROM pg_stat_statements;

CREATE TABLE ext_all (
    id int PRIMARY KEY, attrs hstore, mail citext, path ltree, tags int[], spot cube, seg seg, isbn isbn, pw text, u uuid, name text,
    mod timestamptz, w int, lower_mail citext GENERATED ALWAYS AS (lower(mail)) STORED, CHECK (mail <> 'forbidden'::citext));
CREATE INDEX ext_attrs ON ext_all USING gin (attrs);
CREATE INDEX ext_path ON ext_all USING gist (path);
CREATE INDEX ext_tags ON ext_all USING gin (tags gin__int_ops);
CREATE INDEX ext_name ON ext_all USING gin (name ext.gin_trgm_ops);
--@ cluster: SELECT create_distributed_table('ext_all', 'id')
CREATE INDEX ext_spot ON ext_all USING gist (spot);
CREATE INDEX ext_seg ON ext_all USING gist (seg);
CREATE INDEX ext_bloom ON ext_all USING bloom (w, id) WITH (length = 80, col1 = 2);
CREATE INDEX ext_w ON ext_all USING gist (w, name ext.gist_trgm_ops (siglen = 32));
CREATE INDEX ext_mail ON ext_all (mail);
CREATE INDEX ext_gin ON ext_all USING gin (w, attrs);
INSERT INTO ext_all (id, attrs, mail, path, tags, spot, seg, isbn, name, w)
SELECT g, hstore('k' || g % 5, g::text), 'User' || g || '@Example.org', ('top.n' || g % 4 || '.m' || g)::ltree, ARRAY[g % 7, g % 3], cube(ARRAY[g, g % 10]::float8[]),
    (g || ' .. ' || g + 5)::seg, '978-0-393-04002-9', 'name number ' || g, g % 6
FROM generate_series(1, 60) g;
SELECT id, attrs -> 'k1', attrs ? 'k2' FROM ext_all WHERE attrs ? 'k1' ORDER BY id;
SELECT id FROM ext_all WHERE attrs @> 'k3=>13';
SELECT id, mail FROM ext_all WHERE mail = 'uSER7@eXAMPLE.ORG';
SELECT id FROM ext_all WHERE id = 9 AND mail LIKE 'user9%';
SELECT max(mail), min(lower_mail), count(DISTINCT mail) FROM ext_all;
SELECT id FROM ext_all WHERE path <@ 'top.n2' AND nlevel(path) = 3;
SELECT subpath(path, 0, 2) AS p, count(*) FROM ext_all GROUP BY 1;
SELECT id FROM ext_all WHERE tags @@ '3&1'::query_int;
SELECT id, icount(tags), sort(tags) FROM ext_all WHERE tags @> ARRAY[2] AND id < 30;
--@ ordered
SELECT id FROM ext_all ORDER BY spot <-> cube(ARRAY[7, 7]::float8[]), id LIMIT 5;
SELECT id FROM ext_all WHERE spot <@ cube(ARRAY[1, 1]::float8[], ARRAY[9, 9]::float8[]);
SELECT id FROM ext_all WHERE seg && '12 .. 13'::seg;
SELECT id, isbn FROM ext_all WHERE id = 4;
SELECT id FROM ext_all WHERE name OPERATOR(ext.%) 'name number 33' ORDER BY ext.similarity(name, 'name number 33') DESC, id LIMIT 3;
SELECT count(*) FROM ext_all WHERE name ILIKE '%ber 5%';
SELECT id, levenshtein(name, 'name number 1'), soundex(name), unaccent('Hôtel') FROM ext_all WHERE id IN (1, 22);
SELECT id FROM ext_all WHERE w = 3 AND id < 20;
SELECT id, digest(name, 'sha256'), crypt('pw', '$1$abcdefgh$') FROM ext_all WHERE id = 5;
SELECT uuid_generate_v5(uuid_ns_url(), name) FROM ext_all WHERE id < 4;
SELECT earth_distance(ll_to_earth(48, 11), ll_to_earth(48, 11)) FROM ext_all WHERE id = 1;
SELECT * FROM crosstab('SELECT w, id % 2, count(*)::int FROM ext_all GROUP BY 1, 2 ORDER BY 1, 2') AS c(w int, a int, b int);
UPDATE ext_all SET attrs = attrs || 'new=>1', pw = encode(digest(mail::text, 'md5'), 'hex'), u = uuid_generate_v3(uuid_ns_dns(), name) WHERE id % 10 = 0 RETURNING id, attrs, pw, u;
--@ error: 23514
INSERT INTO ext_all (id, mail) VALUES (100, 'FORBIDDEN');
--@ error: 22P02
INSERT INTO ext_all (id, isbn) VALUES (100, '978-0-393-04002-1');
--@ refused: 0A000
CREATE TRIGGER moddate BEFORE UPDATE ON ext_all FOR EACH ROW EXECUTE FUNCTION moddatetime(mod);
BEGIN;
UPDATE ext_all SET mail = 'x' || mail WHERE id < 5;
SELECT id, mail FROM ext_all WHERE mail LIKE 'XU%';
ROLLBACK;
-- Made inside of a body, in a transaction that goes back, with others that it needs.
BEGIN;
DROP EXTENSION earthdistance, cube CASCADE;
CREATE EXTENSION earthdistance CASCADE;
ROLLBACK;
DO $$ BEGIN DROP EXTENSION dict_int; CREATE EXTENSION dict_int; END $$;
-- Moved, updated, dropped.
ALTER EXTENSION hstore SET SCHEMA ext;
SELECT id, attrs OPERATOR(ext.->) 'k1' FROM ext_all WHERE attrs OPERATOR(ext.?) 'k1' ORDER BY id;
ALTER EXTENSION citext UPDATE;
--@ error: 22023
ALTER EXTENSION citext UPDATE TO '99';
-- With an index whose operator class has options, DROP EXTENSION fails in PostgreSQL unless its session has used that index
-- ("operator class has no options": the class's support function goes before the index).
DROP INDEX ext_w;
DROP EXTENSION pg_trgm CASCADE;
CREATE EXTENSION pg_trgm VERSION '1.3';
CREATE INDEX ext_name ON ext_all USING gin (name gin_trgm_ops);
--@ error: 42883
SELECT strict_word_similarity('a', 'b'), strict_word_similarity_commutator_op('a', 'b') FROM ext_all WHERE id = 1;
ALTER EXTENSION pg_trgm UPDATE TO '1.4';
ALTER EXTENSION pg_trgm UPDATE;
SELECT id, strict_word_similarity(name, 'number 3') > 0.4 FROM ext_all WHERE name %> 'number 33' ORDER BY id;
SELECT extversion FROM pg_extension WHERE extname = 'pg_trgm';
DO $$ BEGIN ALTER EXTENSION pg_trgm SET SCHEMA ext; END $$;
ALTER EXTENSION pg_trgm SET SCHEMA public;
SELECT id FROM ext_all WHERE name % 'name number 44' ORDER BY similarity(name, 'name number 44') DESC, id LIMIT 2;
--@ error: 2BP01
DROP EXTENSION hstore;
SELECT extname, nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace;
-- The same of ltree's ("cache lookup failed for function", now and then).
DROP INDEX ext_path;
DROP EXTENSION hstore, ltree CASCADE;
SELECT attname FROM pg_attribute WHERE attrelid = 'ext_all'::regclass AND attnum > 0 AND NOT attisdropped;
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'ext_all'::regclass;
CREATE EXTENSION hstore;
ALTER TABLE ext_all ADD COLUMN attrs hstore DEFAULT 'a=>1';
SELECT id, attrs -> 'a' FROM ext_all WHERE id < 3;
DROP TABLE ext_all;
DROP EXTENSION citext, hstore, cube, earthdistance, seg, isn, bloom, intarray;
CREATE EXTENSION citext;
CREATE TABLE ext_key (mail citext PRIMARY KEY, n int);
INSERT INTO ext_key VALUES ('A@b', 1), ('c@D', 2);
SELECT * FROM ext_key WHERE mail = 'a@B';
DROP TABLE ext_key;
