--@ include: schema.sql
-- Functions in checks, domains, generated columns and indexes, which workers evaluate: they may compute, and checks may read
-- reference tables. Others are refused.

CREATE TABLE codes (code text PRIMARY KEY, rate int);
CREATE TABLE elsewhere (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_reference_table('codes'), create_distributed_table('elsewhere', 'k')
INSERT INTO codes VALUES ('a', 1), ('b', 2);
INSERT INTO elsewhere SELECT g, g FROM generate_series(1, 20) g;

-- What computes: loops, queries over values, other functions of users', domains, WITH.
CREATE FUNCTION checksum(x text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE found record; total numeric := 0; comment text;
BEGIN
    IF x !~ '^[A-Z]{2}[0-9]+$' THEN RETURN -1; END IF;
    IF x IS NULL THEN RETURN 0; END IF;
    FOR found IN SELECT c, n FROM regexp_split_to_table(substr(x, 3) || substr(x, 1, 2), '') WITH ORDINALITY AS s(c, n) LOOP
        total := total * 10 + ascii(found.c) + extract(year FROM date '2000-01-01');
    END LOOP;
    SELECT string_agg(w.a, ',') INTO comment FROM (WITH v (a) AS (VALUES ('p'), ('q')) SELECT a FROM v) w, LATERAL unnest(ARRAY[1]) u;
    RETURN (total % 97)::int + length(comment);
END $$;
-- From 17 on what computes an index has a path of its own.
--@ only: before 17
CREATE FUNCTION is_valid(x text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN checksum(x) >= 0; END $$;
--@ only: from 17
CREATE FUNCTION is_valid(x text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN public.checksum(x) >= 0; END $$;
CREATE FUNCTION slug(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ WITH parts AS (SELECT lower(x) AS p) SELECT regexp_replace(p, '\W+', '-', 'g') FROM parts $$;
CREATE FUNCTION longest_of(a text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT u FROM unnest(a) u ORDER BY length(u) DESC, u LIMIT 1 $$;
CREATE FUNCTION is_known(x text) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT x IS NULL OR EXISTS (SELECT FROM public.codes c WHERE c.code = x) $$;
CREATE FUNCTION known_rate(x text) RETURNS int LANGUAGE plpgsql STABLE AS $$ DECLARE found int; BEGIN SELECT rate INTO found FROM public.codes WHERE code = x; RETURN found; END $$;
CREATE DOMAIN iban AS text CHECK (is_valid(VALUE));
CREATE DOMAIN known AS text CHECK (is_known(VALUE));
CREATE TABLE computed (k int PRIMARY KEY, number iban, code known, words text[], rate int CHECK (rate = known_rate('a') OR rate > 5),
    slugged text GENERATED ALWAYS AS (slug(longest_of(words))) STORED, CHECK (is_known(code) AND (is_valid(words[1]) OR k < 100)));
CREATE UNIQUE INDEX computed_slug ON computed (k, slug(number::text)) WHERE is_valid(number::text);
INSERT INTO computed VALUES (1, 'AB12', 'a', '{x,"Y y"}', 1);
--@ cluster: SELECT create_distributed_table('computed', 'k')
INSERT INTO computed VALUES (2, 'CD34', 'b', '{"One Two",y}', 6), (3, 'EF56', NULL, NULL, NULL), (4, NULL, 'a', '{}', 1);
INSERT INTO computed SELECT g, 'XY' || g, 'a', ARRAY['AA' || g], 7 FROM generate_series(5, 30) g;
--@ error: 23514
INSERT INTO computed VALUES (50, 'nothing', 'a', '{}', 1);
--@ error: 23514
INSERT INTO computed VALUES (50, 'AB12', 'c', '{}', 1);
--@ error: 23514
INSERT INTO computed VALUES (500, 'AB12', 'a', '{x}', 1);
--@ error: 23514
UPDATE computed SET rate = 3 WHERE k = 7;
INSERT INTO codes VALUES ('c', 3);
UPDATE computed SET code = 'c' WHERE k < 4;
SELECT * FROM computed ORDER BY k;
SELECT k, slug(number::text) FROM computed WHERE slug(number::text) = 'xy7' AND is_valid(number::text);
ALTER TABLE computed ADD COLUMN upper_slug text GENERATED ALWAYS AS (upper(slug(number::text))) STORED;
ALTER TABLE computed ADD CONSTRAINT more CHECK (checksum(number::text) < 1000);
CREATE INDEX computed_sum ON computed (checksum(number::text));
ALTER DOMAIN iban ADD CONSTRAINT longer CHECK (length(slug(VALUE)) < 10);
--@ error: 23514
INSERT INTO computed VALUES (51, 'AB123456789', 'a', '{}', 1);
-- What a function calls since it was replaced is brought to the workers.
CREATE FUNCTION added(x text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x || '!'; END $$;
--@ only: before 17
CREATE OR REPLACE FUNCTION slug(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT added(lower(x)) $$;
--@ only: from 17
CREATE OR REPLACE FUNCTION slug(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT public.added(lower(x)) $$;
INSERT INTO computed VALUES (60, 'AB12', 'a', '{x}', 1), (61, 'AB13', 'b', '{x,yy}', 1);
SELECT k, slugged, upper_slug FROM computed WHERE k >= 60 ORDER BY k;

-- Extensions, whose functions are compiled, or call such.
CREATE EXTENSION IF NOT EXISTS citext;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS earthdistance;
CREATE FUNCTION plain(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT public.unaccent('public.unaccent', x) $$;
CREATE TABLE extended (k int PRIMARY KEY, mail citext CHECK (mail ~ '@' AND mail <> 'x@'), lat float8, lon float8,
    plain_mail text GENERATED ALWAYS AS (plain(mail::text)) STORED);
CREATE INDEX extended_place ON extended USING gist (ll_to_earth(lat, lon));
CREATE UNIQUE INDEX extended_mail ON extended (k, plain(mail::text));
--@ cluster: SELECT create_distributed_table('extended', 'k')
INSERT INTO extended VALUES (1, 'É@X', 1, 2), (2, 'b@x', 3, 4);
--@ error: 23514
INSERT INTO extended VALUES (3, 'X@', 1, 2);
SELECT * FROM extended ORDER BY k;

-- Others.
CREATE FUNCTION counts(x int) RETURNS bool LANGUAGE sql AS $$ SELECT count(*) >= 0 FROM public.elsewhere $$;
CREATE FUNCTION counts_by(x int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN counts(x); END $$;
CREATE FUNCTION counts_text(x int) RETURNS bool LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN EXECUTE 'SELECT count(*) FROM elsewhere' INTO n; RETURN n >= 0; END $$;
CREATE FUNCTION counted(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x + (SELECT count(*) FROM public.elsewhere); END $$;
CREATE FUNCTION rated(x text) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT rate FROM public.codes WHERE code = x $$;
CREATE FUNCTION of_tenant() RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce(current_setting('app.tenant', true), '1')::int $$;
CREATE DOMAIN counting AS int CHECK (counts(VALUE));
CREATE TABLE partitioned (k int, v int) PARTITION BY LIST (v);
--@ cluster: SELECT create_distributed_table('partitioned', 'k')
ALTER TABLE computed ADD COLUMN other int;
CREATE DOMAIN quiet AS int CHECK (VALUE <> 13);
ALTER TABLE computed ADD COLUMN calm quiet;
--@ refused: 0A000
ALTER TABLE computed ADD CONSTRAINT refused_5 CHECK (counts(other));
--@ refused: 0A000
ALTER TABLE computed ADD CONSTRAINT refused_6 CHECK (counts_by(other));
--@ refused: 0A000
ALTER TABLE computed ADD COLUMN refused_7 int CHECK (counts_text(refused_7));
--@ refused: 0A000
ALTER TABLE computed ADD COLUMN refused_8 counting;
--@ refused: 0A000
ALTER TABLE computed ADD COLUMN refused_9 int GENERATED ALWAYS AS (rated(code::text)) STORED;
--@ refused: 0A000
ALTER TABLE computed ADD COLUMN refused_10 int GENERATED ALWAYS AS (of_tenant() + k) STORED;
--@ refused: 0A000
CREATE UNIQUE INDEX refused_11 ON computed (k, counted(k));
--@ refused: 0A000
CREATE INDEX CONCURRENTLY refused_12 ON computed (rated(slugged));
--@ refused: 0A000
CREATE INDEX refused_13 ON computed (k) WHERE of_tenant() = 1;
--@ refused: 0A000
ALTER DOMAIN quiet ADD CONSTRAINT refused_14 CHECK (counts(VALUE));
--@ refused: 0A000
CREATE TABLE refused_15 PARTITION OF partitioned (CHECK (counts(k))) FOR VALUES IN (1);
--@ refused: 0A000
ALTER TABLE codes ADD CONSTRAINT refused_16 CHECK (counts(rate));
--@ refused: 0A000
DO $$ BEGIN ALTER TABLE computed ADD CONSTRAINT refused_17 CHECK (counts(other)); END $$;
--@ refused: 0A000
CREATE OR REPLACE FUNCTION added(x text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT x || count(*) FROM public.elsewhere $$;
--@ refused: 0A000
CREATE OR REPLACE FUNCTION is_known(x text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN EXISTS (SELECT FROM codes); END $$;
DROP TABLE computed, extended, codes, elsewhere, partitioned;
DROP DOMAIN iban, known, counting, quiet;
DROP FUNCTION checksum, is_valid, slug, longest_of, is_known, known_rate, added, plain, counts, counts_by, counts_text, counted, rated, of_tenant;
