--@ include: schema.sql
-- Objects around tables: comments, domains, enums, composite types, ranges, collations, sequences, generated and identity columns,
-- statistics, publications, casts and operators.

-- Comments.
COMMENT ON TABLE users IS 'who';
COMMENT ON COLUMN users.name IS 'how they are called';
COMMENT ON INDEX users_pkey IS 'the key';
COMMENT ON CONSTRAINT orders_user_id_fkey ON orders IS 'every order has a user';
COMMENT ON VIEW order_totals IS 'sums';
COMMENT ON SCHEMA public IS 'open to all';
COMMENT ON TABLE regions IS 'reference';
COMMENT ON TABLE local_notes IS 'local';
COMMENT ON SEQUENCE local_notes_id_seq IS 'numbers';
SELECT obj_description('users'::regclass), col_description('users'::regclass, 2), obj_description('users_pkey'::regclass), obj_description('order_totals'::regclass), obj_description('regions'::regclass), obj_description('local_notes'::regclass);
SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = 'orders_user_id_fkey' AND conrelid = 'orders'::regclass;
COMMENT ON TABLE users IS NULL;
SELECT obj_description('users'::regclass) IS NULL;
--@ error: 42P01
COMMENT ON TABLE nowhere IS 'x';

-- Domains.
CREATE DOMAIN percent AS numeric(5,2) DEFAULT 1 CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN short_name AS text NOT NULL CHECK (length(VALUE) < 9) CONSTRAINT no_x CHECK (VALUE !~ 'x');
CREATE DOMAIN key_domain AS bigint CHECK (VALUE > 0);
CREATE TABLE rated (k key_domain PRIMARY KEY, p percent, n short_name);
--@ cluster: SELECT create_distributed_table('rated', 'k')
INSERT INTO rated VALUES (1, 50, 'a'), (2, 99.999, 'b'), (3, NULL, 'c');
INSERT INTO rated (k, n) VALUES (4, 'd') RETURNING p;
SELECT * FROM rated;
SELECT n FROM rated WHERE k = 2;
SELECT n FROM rated WHERE k = 2::key_domain;
--@ params: 3
SELECT n FROM rated WHERE k = $1;
SELECT sum(p), avg(p), max(p) FROM rated;
--@ error: 23514
INSERT INTO rated VALUES (5, 101, 'e');
--@ error: 23514
INSERT INTO rated VALUES (-5, 1, 'e');
--@ error: 23514
INSERT INTO rated VALUES (5, 1, 'xyz');
--@ error: 23502
INSERT INTO rated VALUES (5, 1, NULL);
--@ error: 23514
UPDATE rated SET p = p + 60;
--@ error: 23514
SELECT 200::percent;
SELECT u.id FROM users u JOIN rated r ON r.k = u.id;
ALTER DOMAIN percent SET DEFAULT 7;
INSERT INTO rated (k, n) VALUES (6, 'f') RETURNING p;
ALTER DOMAIN percent DROP CONSTRAINT percent_check;
INSERT INTO rated VALUES (7, 700, 'g') RETURNING p;
--@ error: 23514
ALTER DOMAIN percent ADD CONSTRAINT again CHECK (VALUE < 500);
ALTER DOMAIN percent ADD CONSTRAINT again CHECK (VALUE < 800) NOT VALID;
ALTER DOMAIN percent VALIDATE CONSTRAINT again;
--@ error: 23514
UPDATE rated SET p = 900 WHERE k = 1;
ALTER DOMAIN short_name RENAME TO tiny_name;
ALTER DOMAIN tiny_name RENAME CONSTRAINT no_x TO without_x;
--@ error: 23514
INSERT INTO rated VALUES (8, 1, 'x');
--@ error: 2BP01
--@ loose: our foreign table is among the dependents
DROP DOMAIN percent;
DROP DOMAIN percent CASCADE;
SELECT * FROM rated;

-- Enums.
CREATE TYPE level AS ENUM ('low', 'mid', 'high');
CREATE TABLE alerts (k int PRIMARY KEY, l level DEFAULT 'low', ls level[]);
--@ cluster: SELECT create_distributed_table('alerts', 'k')
INSERT INTO alerts SELECT g, (enum_range(NULL::level))[1 + g % 3], ARRAY['low', 'high']::level[] FROM generate_series(1, 12) g;
INSERT INTO alerts (k) VALUES (13) RETURNING l;
SELECT l, count(*) FROM alerts GROUP BY l;
--@ ordered
SELECT l, count(*) FROM alerts GROUP BY l ORDER BY l DESC;
--@ ordered
SELECT k, l FROM alerts ORDER BY l, k LIMIT 6;
SELECT max(l), min(l) FROM alerts;
SELECT k FROM alerts WHERE l > 'low' AND k < 6;
SELECT k FROM alerts WHERE l = ANY (ARRAY['mid', 'high']::level[]);
SELECT a.k, b.k FROM alerts a JOIN alerts b ON a.l = b.l AND a.k < b.k WHERE a.k < 5;
SELECT DISTINCT l FROM alerts;
SELECT array_agg(l ORDER BY k), string_agg(l::text, ',' ORDER BY k) FROM alerts;
SELECT 'high' = ANY (ls), ls FROM alerts WHERE k = 1;
--@ params: mid
--@ params: high
SELECT count(*) FROM alerts WHERE l = $1;
ALTER TYPE level ADD VALUE 'urgent' AFTER 'high';
ALTER TYPE level ADD VALUE IF NOT EXISTS 'urgent';
ALTER TYPE level ADD VALUE 'none' BEFORE 'low';
UPDATE alerts SET l = 'urgent' WHERE k = 1;
INSERT INTO alerts VALUES (14, 'none');
--@ ordered
SELECT k, l FROM alerts ORDER BY l DESC, k LIMIT 3;
ALTER TABLE alerts ALTER COLUMN l SET DEFAULT 'mid';
ALTER TYPE level RENAME VALUE 'mid' TO 'middle';
INSERT INTO alerts (k) VALUES (150) RETURNING l;
DELETE FROM alerts WHERE k = 150;
SELECT count(*) FROM alerts WHERE l = 'middle';
--@ error: 22P02
SELECT count(*) FROM alerts WHERE l = 'mid';
ALTER TYPE level RENAME TO severity;
SELECT pg_typeof(l) FROM alerts WHERE k = 1;
ALTER TABLE alerts ALTER COLUMN l DROP DEFAULT, ALTER COLUMN l TYPE text;
SELECT count(*) FROM alerts WHERE l = 'urgent';

-- Composite types, ranges and arrays of them.
CREATE TYPE address AS (street text, zip int);
CREATE TYPE span AS RANGE (subtype = float8);
CREATE TABLE houses (k int PRIMARY KEY, a address, many address[], s span, d daterange, m int4multirange);
--@ cluster: SELECT create_distributed_table('houses', 'k')
INSERT INTO houses SELECT g, ROW('street ' || g, 1000 + g)::address, ARRAY[ROW('x', g)::address, ROW('y', NULL)::address], span(g, g + 1.5), daterange('2020-01-01', date '2020-01-01' + g), int4multirange(int4range(g, g + 2), int4range(g + 10, g + 12)) FROM generate_series(1, 10) g;
SELECT * FROM houses WHERE k = 3;
SELECT (a).street, (many[1]).zip, upper(s), lower(d), m @> 3 FROM houses;
SELECT k FROM houses WHERE (a).zip > 1007;
SELECT k FROM houses WHERE a = ROW('street 4', 1004)::address;
--@ ordered
SELECT k FROM houses ORDER BY a DESC LIMIT 3;
SELECT max((a).zip), count(DISTINCT a) FROM houses;
SELECT k FROM houses WHERE s && span(2.5, 4);
SELECT k FROM houses WHERE d @> date '2020-01-06';
SELECT range_agg(d), range_intersect_agg(d) FROM houses;
UPDATE houses SET a.zip = 7 WHERE k = 1 RETURNING a;
UPDATE houses SET a.street = 'all', many[3] = ROW('z', 1);
SELECT (a).street, many[3] FROM houses WHERE k < 3;
ALTER TYPE address ADD ATTRIBUTE country text;
SELECT (a).country IS NULL FROM houses WHERE k = 2;
UPDATE houses SET a = ROW('s', 2, 'de') WHERE k = 2 RETURNING (a).country;
ALTER TYPE address RENAME ATTRIBUTE zip TO code;
SELECT (a).code FROM houses WHERE k = 2;
ALTER TYPE address DROP ATTRIBUTE country;
SELECT a FROM houses WHERE k = 2;
--@ error: 2BP01
--@ loose: our foreign table is among the dependents
DROP TYPE address;
CREATE TABLE of_type OF address (PRIMARY KEY (code));
--@ cluster: SELECT create_distributed_table('of_type', 'code')
INSERT INTO of_type VALUES ('a', 1), ('b', 2);
SELECT * FROM of_type;

-- Collations.
CREATE TABLE words (k int PRIMARY KEY, w text COLLATE "C", v text COLLATE "POSIX");
--@ cluster: SELECT create_distributed_table('words', 'k')
INSERT INTO words SELECT g, (ARRAY['b', 'A', 'a', 'B', 'é', 'e', '_'])[1 + g % 7] || g % 3, 'v' || g % 5 FROM generate_series(1, 21) g;
--@ ordered
SELECT k, w FROM words ORDER BY w, k;
--@ ordered
SELECT k, w FROM words ORDER BY w COLLATE "POSIX" DESC, k LIMIT 5;
SELECT max(w), min(w), max(v COLLATE "C") FROM words;
SELECT w, count(*) FROM words GROUP BY w;
SELECT count(*) FROM words WHERE w < 'a';
SELECT a.k, b.k FROM words a JOIN words b ON a.w = b.w AND a.k < b.k;
SELECT collation for (w), collation for (v) FROM words WHERE k = 1;
--@ error: 42P21
SELECT w || v FROM words ORDER BY (w COLLATE "C") || (v COLLATE "POSIX");
--@ error: 42P22
SELECT k FROM words WHERE w < v;
CREATE COLLATION my_c FROM "C";
SELECT count(*) FROM words WHERE w COLLATE my_c < 'a';
ALTER TABLE words ALTER COLUMN w TYPE text COLLATE my_c;
SELECT count(*) FROM words WHERE w < 'b';
--@ error: 42704
SELECT w COLLATE nowhere FROM words;

-- Sequences.
CREATE SEQUENCE s1 INCREMENT 10 START 100 MINVALUE 100 MAXVALUE 130 CYCLE;
--@ repeat: 1
SELECT nextval('s1'), nextval('s1'), nextval('s1'), nextval('s1'), nextval('s1');
SELECT setval('s1', 120), setval('s1', 110, false);
--@ repeat: 1
SELECT nextval('s1'), currval('s1');
ALTER SEQUENCE s1 INCREMENT 5 NO CYCLE;
--@ repeat: 1
SELECT nextval('s1'), nextval('s1');
--@ repeat: 1
--@ error: 2200H
SELECT nextval('s1'), nextval('s1'), nextval('s1'), nextval('s1'), nextval('s1');
ALTER SEQUENCE s1 RESTART WITH 100;
ALTER SEQUENCE s1 RENAME TO s2;
SELECT last_value, is_called FROM s2;
CREATE TABLE tickets (k int, n bigint DEFAULT nextval('s2'), PRIMARY KEY (k, n));
--@ cluster: SELECT create_distributed_table('tickets', 'k')
ALTER SEQUENCE s2 MAXVALUE 100000;
INSERT INTO tickets (k) VALUES (1) RETURNING n;
INSERT INTO tickets (k) VALUES (1), (2), (3);
SELECT count(*), count(DISTINCT n) FROM tickets;
--@ error: 2BP01
--@ loose: our foreign table is among the dependents
DROP SEQUENCE s2;
ALTER SEQUENCE s2 OWNED BY tickets.n;
DROP TABLE tickets;
--@ error: 42P01
SELECT nextval('s2');

-- Generated and identity columns.
CREATE TABLE boxes (k int PRIMARY KEY, w int, h int, area int GENERATED ALWAYS AS (w * h) STORED, label text GENERATED ALWAYS AS ('box ' || k) STORED, id bigint GENERATED ALWAYS AS IDENTITY, tag int GENERATED BY DEFAULT AS IDENTITY (START WITH 5 INCREMENT BY 5));
--@ cluster: SELECT create_distributed_table('boxes', 'k')
INSERT INTO boxes (k, w, h) VALUES (1, 2, 3) RETURNING area, label, id, tag;
INSERT INTO boxes (k, w, h) VALUES (2, 1, 1), (3, 4, 5), (4, NULL, 1);
SELECT k, area, label FROM boxes;
SELECT count(DISTINCT id), count(DISTINCT tag), min(id) > 0 FROM boxes;
UPDATE boxes SET w = w + 1;
SELECT k, area FROM boxes WHERE area > 5;
UPDATE boxes SET h = DEFAULT, area = DEFAULT WHERE k = 1 RETURNING h, area;
SELECT sum(area), max(area) FROM boxes;
--@ error: 428C9
INSERT INTO boxes (k, area) VALUES (9, 1);
--@ error: 428C9
INSERT INTO boxes (k, id) VALUES (9, 1);
--@ error: 428C9
UPDATE boxes SET area = 5;
--@ error: 428C9
UPDATE boxes SET id = 5 WHERE k = 1;
--@ error: 428C9
UPDATE boxes SET (w, id) = (1, 5);
--@ error: 428C9
INSERT INTO boxes (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET id = 7;
UPDATE boxes SET tag = DEFAULT WHERE k = 2 RETURNING tag IS NOT NULL;
UPDATE boxes SET id = DEFAULT, tag = DEFAULT;
SELECT count(*), count(DISTINCT id), count(DISTINCT tag) FROM boxes;
INSERT INTO boxes (k, id, tag) OVERRIDING SYSTEM VALUE VALUES (10, 1000, 2000) RETURNING id, tag;
INSERT INTO boxes (k, tag) VALUES (11, 7) RETURNING tag;
INSERT INTO boxes (k, w, h) SELECT k + 100, w, h FROM boxes WHERE k < 4;
SELECT k, area FROM boxes WHERE k > 100;
INSERT INTO boxes (k, w, h) VALUES (1, 9, 9) ON CONFLICT (k) DO UPDATE SET w = excluded.w, h = excluded.h RETURNING area;
ALTER TABLE boxes ADD COLUMN half int GENERATED ALWAYS AS (w / 2) STORED;
SELECT k, half FROM boxes WHERE k < 4;
ALTER TABLE boxes ALTER COLUMN area DROP EXPRESSION;
UPDATE boxes SET area = -1 WHERE k = 2 RETURNING area;
ALTER TABLE boxes ALTER COLUMN tag DROP IDENTITY;
INSERT INTO boxes (k, tag) VALUES (20, 1) RETURNING tag;
ALTER TABLE boxes ALTER COLUMN id SET GENERATED BY DEFAULT;
INSERT INTO boxes (k, id, tag) VALUES (21, 5000, 1) RETURNING id;
CREATE INDEX boxes_area ON boxes (area);
SELECT attname, attgenerated, attidentity FROM pg_attribute WHERE attrelid = 'boxes'::regclass AND attnum > 0 AND NOT attisdropped;

-- Extended statistics and publications.
CREATE STATISTICS stat_users (ndistinct, dependencies, mcv) ON country, active FROM users;
CREATE STATISTICS stat_expr ON (id % 3) FROM users;
ANALYZE users;
SELECT stxname, stxkind FROM pg_statistic_ext WHERE stxrelid = 'users'::regclass;
ALTER STATISTICS stat_users RENAME TO stat_u;
ALTER STATISTICS stat_u SET STATISTICS 50;
COMMENT ON STATISTICS stat_u IS 'both';
DROP STATISTICS stat_u;
DROP STATISTICS IF EXISTS stat_u;
SELECT count(*) FROM users WHERE country = 'de' AND active;
CREATE PUBLICATION pub_some FOR TABLE users, regions;
SELECT pubname, tablename FROM pg_publication_tables WHERE pubname = 'pub_some';
ALTER PUBLICATION pub_some ADD TABLE orders;
ALTER PUBLICATION pub_some DROP TABLE regions;
SELECT pubname, tablename FROM pg_publication_tables WHERE pubname = 'pub_some';
ALTER PUBLICATION pub_some SET (publish = 'insert, update');
SELECT pubname, pubinsert, pubdelete, puballtables FROM pg_publication;
ALTER PUBLICATION pub_some RENAME TO pub_few;
DROP PUBLICATION pub_few;
CREATE PUBLICATION pub_all FOR ALL TABLES;
SELECT puballtables FROM pg_publication;
SELECT tablename FROM pg_publication_tables WHERE schemaname NOT IN ('public', 'pg_temp');
DROP PUBLICATION pub_all;
CREATE TABLE published (k int, day int, twice int GENERATED ALWAYS AS (day * 2) STORED) PARTITION BY RANGE (day);
CREATE TABLE published_1 PARTITION OF published FOR VALUES FROM (1) TO (10);
CREATE TABLE published_2 PARTITION OF published FOR VALUES FROM (10) TO (20);
--@ cluster: SELECT create_distributed_table('published', 'k')
CREATE PUBLICATION pub_parts FOR TABLE published, users;
CREATE PUBLICATION pub_part FOR TABLE published_2;
CREATE PUBLICATION pub_root FOR TABLE published WITH (publish_via_partition_root = true);
SELECT pubname, schemaname, tablename FROM pg_publication_tables;
DROP PUBLICATION pub_parts, pub_part, pub_root;
SELECT table_schema, table_name, column_name, dependent_column FROM information_schema.column_column_usage WHERE table_name !~ '^generated';
DROP TABLE published;

-- Casts, operators, and functions with defaults, names and variadic arguments.
CREATE FUNCTION plus_all(VARIADIC numeric[]) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT sum(x) FROM unnest($1) x';
SELECT id, plus_all(id, score, 1) FROM users WHERE id < 5;
CREATE FUNCTION scaled(x numeric, factor numeric DEFAULT 10, plus numeric DEFAULT 0) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT x * factor + plus';
SELECT id, scaled(score), scaled(score, plus => 5), scaled(factor => 2, x => id) FROM users WHERE id < 5;
SELECT sum(scaled(score, 2)) FROM users;
CREATE FUNCTION far(numeric, numeric) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT abs($1 - $2) > 90';
CREATE OPERATOR <#> (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = far, COMMUTATOR = <#>);
SELECT id FROM users WHERE score <#> 1;
SELECT count(*) FROM users a JOIN users b ON a.score <#> b.score AND a.id < b.id;
CREATE FUNCTION to_flag(int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN $1 > 2 THEN 'many' ELSE 'few' END $$;
SELECT to_flag(qty), count(*) FROM items GROUP BY 1;
CREATE OR REPLACE FUNCTION to_flag(int) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN $1 > 3 THEN 'very many' ELSE 'few' END $$;
SELECT to_flag(qty), count(*) FROM items GROUP BY 1;
ALTER FUNCTION to_flag(int) RENAME TO flag_of;
SELECT count(*) FROM items WHERE flag_of(qty) = 'few';
--@ error: 42883
SELECT to_flag(qty) FROM items;
CREATE INDEX items_flag ON items (flag_of(qty));
SELECT user_id FROM items WHERE flag_of(qty) = 'very many' AND user_id < 20;
--@ error: 2BP01
DROP FUNCTION flag_of(int);
DROP INDEX items_flag;
DROP FUNCTION flag_of(int);
CREATE TYPE pair AS (x int, y int);
CREATE FUNCTION make_pair(int, int) RETURNS pair IMMUTABLE LANGUAGE sql AS 'SELECT ROW($1, $2)::pair';
SELECT user_id, make_pair(id, 1), (make_pair(id, 2)).y FROM orders WHERE user_id = 14;
CREATE FUNCTION pairs(int) RETURNS SETOF pair IMMUTABLE LANGUAGE sql AS 'SELECT g, g * g FROM generate_series(1, $1) g';
SELECT u.id, p.* FROM users u, pairs((u.id % 3)::int) p WHERE u.id < 9;
CREATE FUNCTION table_of(int) RETURNS TABLE (n int, t text) STABLE LANGUAGE sql AS $$ SELECT g, 't' || g FROM generate_series(1, $1) g $$;
SELECT u.id, t.t FROM users u JOIN table_of(5) t ON t.n = u.id;
CREATE CAST (pair AS text) WITH INOUT AS ASSIGNMENT;
DROP CAST (pair AS text);

-- Operators of extensions, and operators made of functions that are built in.
CREATE EXTENSION IF NOT EXISTS intarray;
CREATE TABLE worded (k int PRIMARY KEY, v text, a int[]);
--@ cluster: SELECT create_distributed_table('worded', 'k')
INSERT INTO worded SELECT g, 'word ' || g, ARRAY[g, g % 3] FROM generate_series(1, 30) g;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
SELECT k FROM worded WHERE v % 'word 7';
SELECT k, v <-> 'word 12' FROM worded WHERE v % 'word 12' ORDER BY v <-> 'word 12', k LIMIT 3;
SELECT count(*) FROM worded w JOIN worded x ON w.v % x.v AND w.k <> x.k;
SELECT w.k FROM worded w WHERE w.k = 12 AND w.v %> 'word 12';
SELECT k FROM worded WHERE v OPERATOR(public.%) 'word 9';
SET pg_trgm.similarity_threshold = 0.9;
SELECT k FROM worded WHERE v % 'word 7';
RESET pg_trgm.similarity_threshold;
UPDATE worded SET v = v || '!' WHERE v % 'word 3' AND k % 2 = 1 RETURNING k, v;
SELECT k, a + 5, # a FROM worded WHERE a @@ '1 & 10';
SELECT k FROM worded WHERE a && ARRAY[4] ORDER BY a & ARRAY[4, 1], k;
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq, COMMUTATOR = ===);
SELECT k FROM worded WHERE k === 4;
SELECT w.k, x.v FROM worded w JOIN worded x ON w.k === x.k AND w.k < 3;
DELETE FROM worded WHERE a[2] === 0 AND k > 20 RETURNING k;
BEGIN;
UPDATE worded SET v = 'word' WHERE k = 1;
SELECT k FROM worded WHERE v % 'word' AND k < 3;
SELECT k FROM worded WHERE k === 1;
COMMIT;
DROP OPERATOR === (int, int);
--@ error: 42883
SELECT k FROM worded WHERE k === 4;
CREATE SCHEMA apart;
CREATE EXTENSION btree_gist SCHEMA apart;
--@ error: 42883
SELECT k FROM worded WHERE k <-> 4 < 2;
SELECT k FROM worded WHERE k OPERATOR(apart.<->) 4 < 2;
DROP EXTENSION btree_gist;
--@ error: 42883
SELECT k FROM worded WHERE k OPERATOR(apart.<->) 4 < 2;
DROP SCHEMA apart;
CREATE EXTENSION btree_gist;
SELECT k FROM worded WHERE k <-> 4 < 2;
DROP EXTENSION btree_gist;
DROP TABLE worded;
DROP EXTENSION intarray;

-- Objects of one name in several schemas, of which workers have the later one only.
CREATE SCHEMA objects_one;
CREATE SCHEMA objects_two;
CREATE TYPE objects_one.shade AS ENUM ('a', 'b');
CREATE TYPE objects_two.shade AS ENUM ('a', 'b');
CREATE DOMAIN objects_one.level AS int;
CREATE DOMAIN objects_two.level AS int;
CREATE TYPE objects_one.duo AS (x int);
CREATE TYPE objects_two.duo AS (x int);
CREATE FUNCTION objects_one.fine(v int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v > 0; END $$;
CREATE FUNCTION objects_one.fine(v text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v <> ''; END $$;
CREATE FUNCTION objects_two.fine(v int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v > 0; END $$;
CREATE TABLE objects_two.shaded (k int PRIMARY KEY, s objects_two.shade, l objects_two.level, p objects_two.duo, v int CHECK (objects_two.fine(v)));
--@ cluster: SELECT create_distributed_table('objects_two.shaded', 'k')
INSERT INTO objects_two.shaded VALUES (1, 'a', 1, ROW(1), 1), (2, 'b', 2, ROW(2), 2);
SET search_path = objects_one, objects_two, public;
ALTER TYPE shade RENAME VALUE 'a' TO 'z';
SELECT k, s FROM shaded WHERE s = 'a';
ALTER DOMAIN level ADD CHECK (VALUE < 0);
INSERT INTO shaded VALUES (3, 'a', 3, ROW(3), 3);
ALTER TYPE duo ADD ATTRIBUTE y int;
ALTER TYPE duo RENAME ATTRIBUTE x TO w;
SELECT k, (p).x FROM shaded;
ALTER FUNCTION fine(int) RENAME TO finer;
DROP FUNCTION fine(text);
DROP FUNCTION finer;
INSERT INTO shaded VALUES (4, 'b', 4, ROW(4), 4);
--@ error: 23514
INSERT INTO shaded VALUES (5, 'b', 5, ROW(5), -5);
DO $$ BEGIN DROP DOMAIN level CASCADE; ALTER TYPE duo RENAME TO duet; END $$;
DROP TYPE IF EXISTS shade, duet, never_made CASCADE;
SELECT * FROM shaded;
ALTER TYPE shade RENAME VALUE 'a' TO 'y';
ALTER DOMAIN level ADD CHECK (VALUE < 10);
--@ error: 23514
INSERT INTO shaded VALUES (6, 'y', 60, ROW(6), 6);
INSERT INTO shaded VALUES (6, 'y', 6, ROW(6), 6);
DROP TYPE shade CASCADE;
SELECT * FROM shaded;
RESET search_path;
DROP TABLE objects_two.shaded;
DROP SCHEMA objects_one, objects_two CASCADE;

-- Schemas named after their owners, with what only the coordinator has.
CREATE TABLE objects_local (k int);
CREATE ROLE objects_named;
CREATE SCHEMA AUTHORIZATION objects_named CREATE VIEW seen AS SELECT * FROM public.objects_local CREATE TABLE held (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('objects_named.held', 'k')
INSERT INTO objects_named.held VALUES (1), (2);
SELECT * FROM objects_named.held;
SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'objects_named';
DROP SCHEMA objects_named CASCADE;
GRANT CREATE ON SCHEMA public TO objects_named;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO objects_named', current_database()); END $$;
SET ROLE objects_named;
CREATE SCHEMA AUTHORIZATION CURRENT_USER CREATE VIEW seen AS SELECT * FROM public.objects_local CREATE TABLE held (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('objects_named.held', 'k')
INSERT INTO objects_named.held VALUES (1), (2);
SELECT * FROM objects_named.held;
RESET ROLE;
DROP SCHEMA objects_named CASCADE;
DROP OWNED BY objects_named;
DROP ROLE objects_named;
DROP TABLE objects_local;

-- What types on workers are made of newly.
CREATE COLLATION objects_mine (provider = icu, locale = 'und');
CREATE DOMAIN word AS text;
CREATE DOMAIN wide AS int;
CREATE TYPE sized AS (a int);
CREATE TABLE objects_words (k int PRIMARY KEY, w word, n wide, s sized);
--@ cluster: SELECT create_distributed_table('objects_words', 'k')
CREATE TYPE color AS ENUM ('red', 'green');
CREATE DOMAIN small AS int CHECK (VALUE < 10);
CREATE FUNCTION objects_odd(v int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v % 2 = 1; END $$;
INSERT INTO objects_words VALUES (1, 'a', 1, ROW(1)), (2, 'b', 3, ROW(2));
ALTER DOMAIN word ADD CONSTRAINT low CHECK (VALUE < 'm' COLLATE objects_mine);
--@ error: 23514
INSERT INTO objects_words VALUES (3, 'z', 1, ROW(3));
ALTER DOMAIN wide ADD CONSTRAINT odd CHECK (objects_odd(VALUE));
--@ error: 23514
INSERT INTO objects_words VALUES (3, 'c', 2, ROW(3));
ALTER TYPE sized ADD ATTRIBUTE col color, ADD ATTRIBUTE n small;
INSERT INTO objects_words VALUES (4, 'd', 5, ROW(4, 'red', 9));
--@ error: 22P02
INSERT INTO objects_words VALUES (5, 'e', 5, '(4,blue,1)');
SELECT k, w, n, (s).a, (s).col, (s).n FROM objects_words ORDER BY k;
DO $$ BEGIN CREATE TYPE taste AS ENUM ('sweet'); ALTER TYPE sized ADD ATTRIBUTE t taste; END $$;
INSERT INTO objects_words VALUES (6, 'f', 7, ROW(6, 'green', 8, 'sweet'));
SELECT k, (s).t FROM objects_words ORDER BY k;
ALTER DOMAIN word DROP CONSTRAINT low;
INSERT INTO objects_words VALUES (7, 'z', 9, NULL);
DROP TABLE objects_words;
DROP TYPE sized, color, taste;
DROP DOMAIN word, wide, small;
DROP FUNCTION objects_odd;
DROP COLLATION objects_mine;
