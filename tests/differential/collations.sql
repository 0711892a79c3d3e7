-- Columns with collations of their own: sorted, grouped, compared, made distinct, alone and inside expressions.

CREATE TABLE sayings (id int PRIMARY KEY, w text COLLATE "C", u text COLLATE "en-x-icu", p text, n int);
--@ cluster: SELECT create_distributed_table('sayings', 'id')
CREATE TABLE hints (w text COLLATE "en-x-icu" PRIMARY KEY, t text COLLATE "C");
--@ cluster: SELECT create_reference_table('hints')
CREATE TABLE notebook (id int PRIMARY KEY, w text COLLATE "en-x-icu", p text);
INSERT INTO sayings SELECT i, x, x, x, i % 4 FROM generate_series(1, 48) i, LATERAL (SELECT (ARRAY['a', 'B', 'c', 'A', 'b', 'C', 'ä', 'Z', '_x', 'é', 'E', NULL])[1 + i % 12] || CASE WHEN i % 3 = 0 THEN 'n' ELSE 'N' END) v(x);
INSERT INTO hints SELECT DISTINCT w, w FROM sayings WHERE w IS NOT NULL;
INSERT INTO notebook SELECT id, u, p FROM sayings WHERE id % 2 = 0;

--@ ordered
SELECT w, id FROM sayings ORDER BY w, id;
--@ ordered
SELECT u, id FROM sayings ORDER BY u, id;
--@ ordered
SELECT id FROM sayings ORDER BY u DESC, id LIMIT 7;
--@ ordered
SELECT id FROM sayings ORDER BY lower(w), id;
--@ ordered
SELECT id FROM sayings ORDER BY upper(u) DESC NULLS LAST, id LIMIT 9 OFFSET 3;
--@ ordered
SELECT id, w || 'x' FROM sayings ORDER BY w || 'x', id;
--@ ordered
SELECT id FROM sayings ORDER BY CASE WHEN w < 'b' THEN p ELSE '-' END, id;
--@ ordered
SELECT id FROM sayings ORDER BY CASE WHEN id % 2 = 0 THEN u ELSE 'm' END, id;
--@ ordered
SELECT id FROM sayings ORDER BY length(w), id;
--@ ordered
SELECT id FROM sayings ORDER BY p || length(u), id;
--@ ordered
SELECT id FROM sayings ORDER BY coalesce(u, 'zz'), id;
--@ ordered
SELECT * FROM sayings ORDER BY u || w COLLATE "C", id LIMIT 5;
--@ ordered
SELECT id FROM sayings ORDER BY u || p, id;
--@ ordered
--@ params: 1
--@ params: 2
SELECT id FROM sayings ORDER BY substr(u, $1), id LIMIT 12;
--@ error: 42P21
SELECT id FROM sayings ORDER BY u || w, id;
--@ error: 42P22
SELECT id FROM sayings WHERE u < w;
SELECT u < 'b', w < 'b', p < 'b', id FROM sayings;
SELECT id FROM sayings WHERE lower(u) < 'c' AND upper(w) > 'B';

SELECT max(u), min(u), max(w), min(w), max(p), min(p) FROM sayings;
SELECT max(lower(u)), min(upper(w)), max(u || '!'), min(coalesce(w, 'a')) FROM sayings;
SELECT n, max(u), min(w || 'b') FROM sayings GROUP BY n;
SELECT n, max(u) FROM sayings GROUP BY n HAVING max(u) > 'C' AND min(lower(w)) < 'b';
--@ ordered
SELECT max(u) AS m FROM sayings GROUP BY n ORDER BY max(u), n;
--@ ordered
SELECT u, count(*) FROM sayings GROUP BY u ORDER BY u;
--@ ordered
SELECT lower(w), count(*), sum(n) FROM sayings GROUP BY lower(w) ORDER BY lower(w) DESC;
--@ ordered
SELECT lower(u) AS l, count(*) FROM sayings GROUP BY 1 HAVING lower(u) > 'b' ORDER BY 1;
--@ ordered
SELECT upper(u) || 'x', count(DISTINCT w), count(DISTINCT u) FROM sayings GROUP BY upper(u) ORDER BY upper(u) || 'x';
SELECT count(DISTINCT u), count(DISTINCT lower(w)) FROM sayings;
SELECT string_agg(u, ',' ORDER BY u, id), array_agg(w ORDER BY w, id) FROM sayings;
SELECT n, string_agg(DISTINCT u, ',' ORDER BY u) FROM sayings GROUP BY n;
--@ ordered
SELECT DISTINCT u FROM sayings ORDER BY u;
--@ ordered
SELECT DISTINCT w FROM sayings ORDER BY w DESC;
--@ ordered
SELECT DISTINCT lower(u) FROM sayings ORDER BY lower(u);
--@ ordered
SELECT DISTINCT lower(u), w FROM sayings ORDER BY 1, 2;
--@ ordered
SELECT DISTINCT ON (lower(u)) lower(u), id FROM sayings ORDER BY lower(u), id;
--@ error: 42P21
SELECT DISTINCT u || w FROM sayings;
--@ error: 42P21
SELECT DISTINCT u || w AS uw FROM sayings ORDER BY uw;

--@ ordered
SELECT u FROM sayings UNION SELECT u FROM sayings WHERE n = 1 ORDER BY u;
--@ ordered
SELECT u FROM sayings UNION SELECT w FROM hints ORDER BY 1;
--@ ordered
SELECT w, id FROM sayings UNION ALL SELECT w, id FROM sayings ORDER BY w, id LIMIT 9;
--@ error: 42P21
SELECT u FROM sayings UNION SELECT w FROM sayings;
SELECT u FROM sayings UNION ALL SELECT w FROM sayings;
--@ error: 42P22
SELECT max(x.u) FROM (SELECT u FROM sayings UNION ALL SELECT w FROM sayings) x;
--@ ordered
SELECT u FROM sayings UNION SELECT p FROM sayings ORDER BY 1;
--@ ordered
SELECT u FROM sayings EXCEPT SELECT u FROM sayings WHERE n = 1 ORDER BY u;

--@ ordered
SELECT s.id, h.t FROM sayings s JOIN hints h ON h.w = s.u ORDER BY h.w, h.t || 'b', s.id;
--@ ordered
SELECT s.id, h.w FROM sayings s LEFT JOIN hints h ON h.t = s.w ORDER BY lower(h.w), s.id LIMIT 10;
--@ ordered
SELECT s.id FROM sayings s JOIN notebook n ON n.id = s.id ORDER BY lower(n.w), s.id;
--@ ordered
SELECT s.id FROM sayings s JOIN notebook n ON n.p = s.p AND n.id = s.id ORDER BY lower(s.w), s.id;
--@ ordered
SELECT a.id, b.id FROM sayings a JOIN sayings b ON a.n = b.id ORDER BY lower(a.u), b.w || 'x', a.id LIMIT 20;
--@ ordered
SELECT x.l, count(*) FROM (SELECT lower(u) AS l FROM sayings) x GROUP BY x.l ORDER BY x.l;
--@ ordered
SELECT * FROM (SELECT id, lower(u) AS l, w || '' AS c FROM sayings) x ORDER BY c, l, id;
--@ ordered
WITH s AS MATERIALIZED (SELECT id, lower(u) AS l, w FROM sayings) SELECT id FROM s ORDER BY l, w || 'b', id;
--@ ordered
SELECT id, row_number() OVER (ORDER BY lower(u), id), rank() OVER (PARTITION BY id ORDER BY w) FROM sayings ORDER BY lower(u), id;
--@ ordered
SELECT id FROM sayings WHERE lower(u) IN (SELECT lower(w) FROM notebook) ORDER BY lower(u), id;
--@ ordered
SELECT id, (SELECT max(lower(u)) FROM sayings i WHERE i.n = o.n) FROM sayings o ORDER BY lower(w), id;
--@ ordered
SELECT id, (SELECT max(w) FROM notebook) FROM sayings ORDER BY CASE WHEN w > 'b' THEN w ELSE u END COLLATE "C", id;
--@ error: 42P21
SELECT id FROM sayings ORDER BY CASE WHEN w > 'b' THEN w ELSE u END;

BEGIN;
UPDATE sayings SET u = 'ÄB', w = 'aB' WHERE id IN (3, 4, 5);
--@ ordered
SELECT id, u FROM sayings ORDER BY lower(u), id;
--@ ordered
SELECT lower(u), count(*) FROM sayings GROUP BY 1 ORDER BY 1;
DECLARE c SCROLL CURSOR FOR SELECT id, u FROM sayings ORDER BY lower(u), id;
--@ ordered
FETCH 5 FROM c;
--@ ordered
FETCH BACKWARD 2 FROM c;
--@ ordered
SELECT s.id FROM sayings s JOIN notebook n ON n.id = s.id ORDER BY lower(s.u), s.id FOR UPDATE OF s;
COMMIT;

-- The same for a login that reads by row security, and through a view.
CREATE VIEW loud AS SELECT id, upper(u) AS u, w || '!' AS w FROM sayings;
--@ ordered
SELECT id FROM loud ORDER BY u, w, id;
--@ ordered
SELECT u, min(w) FROM loud GROUP BY u ORDER BY u;
--@ ordered
SELECT l.id FROM loud l JOIN notebook n USING (id) ORDER BY l.u, l.id;
CREATE FUNCTION by_sound() RETURNS SETOF int LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY SELECT id FROM sayings ORDER BY lower(u), w || 'x', id; END $$;
--@ ordered
SELECT * FROM by_sound();
DROP ROLE IF EXISTS collations_reader;
CREATE ROLE collations_reader;
GRANT SELECT ON loud, notebook TO collations_reader;
SET ROLE collations_reader;
--@ ordered
SELECT id FROM loud ORDER BY u, w, id LIMIT 20;
--@ ordered
SELECT u, max(w || 'b') FROM loud GROUP BY u ORDER BY u;
--@ ordered
SELECT l.id FROM loud l JOIN notebook n USING (id) ORDER BY l.u, lower(l.w), l.id;
--@ error: 42501
SELECT id FROM sayings ORDER BY lower(u);
RESET ROLE;
ALTER TABLE sayings ENABLE ROW LEVEL SECURITY;
CREATE POLICY half ON sayings USING (id % 2 = 0);
GRANT SELECT ON sayings TO collations_reader;
SET ROLE collations_reader;
--@ ordered
SELECT id, u FROM sayings ORDER BY lower(u), id;
--@ ordered
SELECT lower(u), min(w || 'b') FROM sayings GROUP BY 1 ORDER BY 1;
--@ ordered
SELECT s.id FROM sayings s JOIN notebook n ON n.p = s.p AND n.id <> s.id ORDER BY lower(s.u), s.id, n.id LIMIT 20;
RESET ROLE;
ALTER TABLE sayings DISABLE ROW LEVEL SECURITY;
REVOKE ALL ON sayings, loud, notebook FROM collations_reader;
DROP ROLE collations_reader;

-- More than the router keeps in its own memory.
CREATE TABLE lengthy (id int PRIMARY KEY, w text COLLATE "en-x-icu", n text);
--@ cluster: SELECT create_distributed_table('lengthy', 'id')
INSERT INTO lengthy SELECT i, v || repeat('x', 900), v FROM generate_series(1, 12000) i, LATERAL (SELECT (ARRAY['a', 'B', 'b', 'A'])[1 + i % 4] || i % 3000) x(v);
SELECT count(*), min(left(w, 6)), max(left(w, 6)) FROM (SELECT DISTINCT w FROM lengthy) x;
--@ ordered
SELECT left(w, 6), id FROM lengthy ORDER BY w, id OFFSET 11990;
--@ ordered
SELECT left(w, 6), id FROM lengthy ORDER BY w || n, id OFFSET 11990;
--@ ordered
SELECT left(max(w), 6), count(*) FROM lengthy GROUP BY w || '' ORDER BY w || '' OFFSET 2990;
DROP TABLE lengthy;

-- A collation of the users', by which different texts are equal.
CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE moods (id int PRIMARY KEY, m text COLLATE any_case, n int);
--@ cluster: SELECT create_distributed_table('moods', 'id')
INSERT INTO moods SELECT i, (ARRAY['sad', 'SAD', 'Glad', 'glad', 'odd'])[1 + i % 5], i % 2 FROM generate_series(1, 40) i;
SELECT count(*), lower(max(m)) FROM moods WHERE m = 'SAd';
--@ ordered
SELECT lower(m COLLATE "C"), id FROM moods ORDER BY m, id;
SELECT count(*), lower(min(m) COLLATE "C") FROM moods GROUP BY m;
SELECT count(DISTINCT m) FROM moods;
SELECT count(*) FROM (SELECT DISTINCT m FROM moods) x;
SELECT count(*) FROM (SELECT m FROM moods UNION SELECT m FROM moods) x;
SELECT n, count(DISTINCT m), lower(max(m || 'x') COLLATE "C") FROM moods GROUP BY n;
--@ ordered
SELECT id FROM moods ORDER BY m || 'x', id LIMIT 8;
DROP TABLE moods;
DROP COLLATION any_case;

-- What takes its collation from elsewhere: fields of composite values, names, types and arrays of users'.
CREATE TYPE spoken AS (a text COLLATE "C", b text COLLATE "en-x-icu");
CREATE DOMAIN said AS text COLLATE "en-x-icu";
CREATE TYPE tone AS ENUM ('low', 'high');
CREATE TABLE voices (id int PRIMARY KEY, s spoken, d said, ds said[], ar text[] COLLATE "C", t tone, w text COLLATE "C", u text COLLATE "en-x-icu");
--@ cluster: SELECT create_distributed_table('voices', 'id')
INSERT INTO voices SELECT i, ROW(x, x)::spoken, x, ARRAY[x]::said[], ARRAY[x], CASE WHEN i % 2 = 0 THEN 'low'::tone ELSE 'high' END, x, x FROM generate_series(1, 30) i, LATERAL (SELECT (ARRAY['a', 'B', 'c', 'A', 'b', 'C', 'ä', 'Z', '_x', 'é', 'E'])[1 + i % 11]) v(x);
--@ ordered
SELECT id FROM voices ORDER BY (s).a, id;
--@ ordered
SELECT id FROM voices ORDER BY (s).b DESC, id;
--@ ordered
SELECT (s).a, count(*) FROM voices GROUP BY (s).a ORDER BY (s).a;
--@ ordered
SELECT id FROM voices ORDER BY d, id;
--@ ordered
SELECT d, count(*) FROM voices GROUP BY d ORDER BY d;
--@ ordered
SELECT id FROM voices ORDER BY ds, id;
--@ ordered
SELECT id FROM voices ORDER BY ds[1], id;
--@ ordered
SELECT id FROM voices ORDER BY ar, id;
--@ ordered
SELECT id FROM voices ORDER BY ar[1], id;
--@ ordered
SELECT id FROM voices ORDER BY u::name, id;
--@ ordered
SELECT lower(u)::name, count(*) FROM voices GROUP BY 1 ORDER BY 1;
--@ ordered
SELECT t, id FROM voices ORDER BY t, lower(u), id;
--@ ordered
SELECT t, max(u), min(d) FROM voices GROUP BY t ORDER BY t;
--@ ordered
SELECT s, id FROM voices ORDER BY u, id;
--@ error: 42P22
SELECT min(w) < min(u) FROM voices;
--@ error: 42P22
SELECT w < u, count(*) FROM voices GROUP BY w, u;
--@ error: 42P22
SELECT t FROM voices GROUP BY t HAVING max(w) < max(u);
--@ error: 42P22
SELECT upper(max(w) || max(u)) FROM voices;
--@ error: 42P22
SELECT greatest(max(w), max(u)) FROM voices;
SELECT min(w) < min(w || ''), max(u) > 'B' FROM voices;
--@ ordered
SELECT u FROM voices UNION SELECT u FROM voices -- all of them
ORDER BY 1;
--@ ordered
(SELECT u FROM voices) UNION (SELECT u FROM voices) ORDER BY u -- some
LIMIT 2 OFFSET 4;
--@ ordered
--@ params: 1
--@ params: NULL
SELECT id FROM voices ORDER BY u || coalesce($1, 2), id LIMIT 3;
--@ params: 1
SELECT max(u || left('abc', 1 / coalesce($1, 0))) FROM voices;
DROP TABLE voices;
DROP TYPE spoken, tone;
DROP DOMAIN said;

-- Arms of UNION ALL with other collations than all of them have.
CREATE TABLE proverbs (id int PRIMARY KEY, w text COLLATE "C", u text COLLATE "en-x-icu", p text, n int);
--@ cluster: SELECT create_distributed_table('proverbs', 'id')
CREATE TABLE rhymes (id int PRIMARY KEY, p text, n int);
--@ cluster: SELECT create_distributed_table('rhymes', 'id', colocate_with => 'none')
CREATE TABLE own_rhymes (id int PRIMARY KEY, w text COLLATE "C");
INSERT INTO proverbs SELECT i, x, x, x, i % 4 FROM generate_series(1, 60) i, LATERAL (SELECT (ARRAY['a', 'B', 'c', 'A', 'b', 'C', 'ä', 'Z', '_x', 'é', 'E', NULL])[1 + i % 12] || CASE WHEN i % 5 = 0 THEN 'n' ELSE 'N' || i % 7 END) v(x);
INSERT INTO rhymes SELECT id + 100, p, n FROM proverbs;
INSERT INTO own_rhymes SELECT id, w FROM proverbs WHERE n = 1;
CREATE VIEW both_ways AS SELECT id, w AS q FROM proverbs UNION ALL SELECT id, p FROM rhymes;
CREATE VIEW both_ways_sorted AS SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
CREATE VIEW one_way AS SELECT id, p AS q FROM proverbs UNION ALL SELECT id, p FROM rhymes;
CREATE FUNCTION both_ways_of(int) RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes $$;
CREATE FUNCTION first_both_ways() RETURNS SETOF text LANGUAGE sql AS 'SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 7';
CREATE FUNCTION last_both_ways() RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE r text; BEGIN FOR r IN SELECT p COLLATE "C" AS q FROM rhymes UNION ALL SELECT p FROM proverbs ORDER BY q DESC LIMIT 8 LOOP RETURN NEXT r; END LOOP; END $$;
CREATE FUNCTION kept_both_ways() RETURNS SETOF text LANGUAGE sql STABLE BEGIN ATOMIC SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 6; END;
-- Names that are words of the language as well; texts that are no queries; words that begin and end no arm.
CREATE TABLE content (id int PRIMARY KEY, w text COLLATE "en-x-icu");
--@ cluster: SELECT create_distributed_table('content', 'id')
INSERT INTO content SELECT id, w FROM proverbs;
CREATE FUNCTION first_contents() RETURNS SETOF text LANGUAGE sql AS $$ SELECT w FROM content UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 10 $$;
CREATE FUNCTION first_proverbs() RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT u FROM proverbs';
CREATE FUNCTION one_of_both() RETURNS text LANGUAGE plpgsql AS $$ DECLARE x text; BEGIN SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes INTO x WHERE id > 150 ORDER BY 1 LIMIT 1; RETURN x; END $$;
CREATE FUNCTION said(x text DEFAULT 'SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes') RETURNS text LANGUAGE sql AS 'SELECT x';
--@ ordered
SELECT * FROM first_contents();
SELECT one_of_both();
SELECT said();
--@ ordered
SELECT * FROM first_proverbs() UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 6;
--@ ordered
SELECT w AS select FROM proverbs AS x UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
--@ ordered
SELECT s.select FROM (SELECT w AS select FROM proverbs) s UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
--@ ordered
SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes loop ORDER BY 1 LIMIT 3;
DROP FUNCTION first_contents(), first_proverbs(), one_of_both(), said(text);
DROP TABLE content;
--@ ordered
SELECT p COLLATE "C" AS q FROM rhymes UNION ALL SELECT p FROM rhymes ORDER BY q;
--@ ordered
SELECT p COLLATE "C" AS q FROM rhymes UNION ALL SELECT p FROM rhymes ORDER BY q LIMIT 7;
--@ ordered
SELECT p AS q FROM rhymes UNION ALL SELECT p COLLATE "en-x-icu" FROM proverbs ORDER BY q DESC NULLS LAST LIMIT 11 OFFSET 2;
--@ ordered
SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1;
--@ ordered
SELECT p FROM proverbs UNION ALL SELECT u FROM proverbs ORDER BY 1 LIMIT 9;
--@ ordered
(SELECT w FROM proverbs) UNION ALL ((SELECT p FROM rhymes)) ORDER BY 1 LIMIT 9;
--@ ordered
SELECT w FROM own_rhymes UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
--@ ordered
SELECT w FROM own_rhymes UNION ALL (SELECT p FROM rhymes UNION ALL SELECT p FROM proverbs) ORDER BY w LIMIT 13;
--@ ordered
SELECT current_user::text AS q FROM own_rhymes UNION ALL SELECT p FROM rhymes ORDER BY q LIMIT 13;
--@ ordered
SELECT q FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s ORDER BY q LIMIT 9;
--@ ordered
SELECT DISTINCT q FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s ORDER BY q;
SELECT DISTINCT q FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s;
--@ ordered
SELECT q, count(*), sum(n) FROM (SELECT w AS q, n FROM proverbs UNION ALL SELECT p, n FROM rhymes) s GROUP BY q ORDER BY q;
SELECT q, count(*) FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s GROUP BY q HAVING count(*) > 1;
SELECT id, q, rank() OVER (ORDER BY q) FROM (SELECT id, w AS q FROM proverbs UNION ALL SELECT id, p FROM rhymes) s;
SELECT id, first_value(q) OVER (PARTITION BY n ORDER BY q) FROM (SELECT id, n, w AS q FROM proverbs UNION ALL SELECT id, n, p FROM rhymes) s;
SELECT max(q), min(q), string_agg(q, ',' ORDER BY q) FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s;
SELECT a.id, b.id FROM (SELECT id, w AS q FROM proverbs UNION ALL SELECT id, p FROM rhymes) a JOIN (SELECT id, p AS q FROM rhymes UNION ALL SELECT id, w FROM proverbs) b ON a.q = b.q;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET enable_hashagg = off;
SELECT a.id, b.id FROM (SELECT id, w AS q FROM proverbs UNION ALL SELECT id, p FROM rhymes) a JOIN (SELECT id, p AS q FROM rhymes UNION ALL SELECT id, w FROM proverbs) b ON a.q = b.q;
SELECT a.id, b.id FROM both_ways a FULL JOIN both_ways b ON a.q = b.q AND a.id = b.id - 100;
SELECT q, count(*) FROM both_ways GROUP BY q;
SELECT DISTINCT q FROM both_ways;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_hashagg;
--@ ordered
WITH c AS (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) SELECT q FROM c WHERE q > 'C' ORDER BY q LIMIT 6;
--@ ordered
WITH c AS NOT MATERIALIZED (SELECT * FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s UNION ALL SELECT p FROM rhymes) SELECT q FROM c ORDER BY q DESC LIMIT 6;
--@ ordered
--@ params: 'C', 5
--@ params: 'a', 3
SELECT q FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes) s WHERE q > $1 ORDER BY q LIMIT $2;
--@ ordered
SELECT q, id FROM both_ways ORDER BY q, id;
--@ ordered
SELECT q FROM both_ways WHERE q > 'B' ORDER BY q LIMIT 8;
--@ ordered
SELECT q FROM both_ways_sorted ORDER BY q;
--@ ordered
SELECT q, rank() OVER (ORDER BY q) AS r FROM both_ways ORDER BY r, id LIMIT 9;
--@ ordered
SELECT q FROM both_ways UNION ALL SELECT p FROM rhymes ORDER BY q LIMIT 9;
--@ ordered
SELECT q FROM one_way ORDER BY q LIMIT 9;
SELECT pg_get_viewdef('one_way'::regclass);
--@ ordered
SELECT * FROM both_ways_of(1) f(q) ORDER BY q LIMIT 9;
SELECT * FROM first_both_ways();
SELECT * FROM last_both_ways();
SELECT * FROM kept_both_ways();
DO $$ DECLARE r text; BEGIN FOR r IN SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 5 LOOP INSERT INTO own_rhymes SELECT 500 + count(*), r FROM own_rhymes; END LOOP; END $$;
SELECT w FROM own_rhymes WHERE id > 500;
SELECT min(q), (SELECT array_agg(x) FROM (SELECT w AS x FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 4) y) FROM both_ways;
BEGIN;
UPDATE proverbs SET w = 'Äz', u = 'Äz', p = 'Äz' WHERE n = 2;
DELETE FROM rhymes WHERE id = 103;
--@ ordered
SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 20;
--@ ordered
TABLE rhymes UNION ALL SELECT id, w, n FROM proverbs ORDER BY p, id LIMIT 20;
--@ ordered
SELECT q FROM both_ways ORDER BY q LIMIT 20;
DECLARE ways CURSOR FOR SELECT w FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1;
--@ ordered
FETCH 7 FROM ways;
ROLLBACK;
CREATE TABLE kept_ways AS SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
SELECT * FROM kept_ways;
CREATE MATERIALIZED VIEW seen_ways AS SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9;
SELECT * FROM seen_ways;
INSERT INTO own_rhymes SELECT 1000 + row_number() OVER (), q FROM (SELECT w AS q FROM proverbs UNION ALL SELECT p FROM rhymes ORDER BY 1 LIMIT 9) s;
SELECT w FROM own_rhymes WHERE id > 1000;
--@ mode: simple
--@ error: 42P21
EXPLAIN SELECT id FROM proverbs ORDER BY u || w, id LIMIT 3;
--@ mode: simple
--@ error: 42P21
EXPLAIN SELECT DISTINCT u || w FROM proverbs;
--@ ordered
SELECT x.b FROM proverbs x (a, b) UNION ALL SELECT p FROM rhymes ORDER BY b LIMIT 9;
CREATE SCHEMA tongue;
CREATE COLLATION tongue.english (provider = icu, locale = 'en');
CREATE TABLE mouths (id int PRIMARY KEY, s text COLLATE tongue.english, n int);
--@ cluster: SELECT create_distributed_table('mouths', 'id')
INSERT INTO mouths SELECT id, w, n FROM proverbs;
DROP ROLE IF EXISTS collations_hearer;
CREATE ROLE collations_hearer;
GRANT SELECT ON mouths TO collations_hearer;
SET ROLE collations_hearer;
--@ refused: 0A000
SELECT max(s), min(s) FROM mouths;
SELECT n, max(s) FROM mouths GROUP BY n;
-- Sorted first from 16 on, which the role cannot have done on workers.
--@ refused: 0A000 from 16
SELECT count(DISTINCT s) FROM mouths;
--@ error: 42501
SELECT max(n::text COLLATE tongue.english) FROM mouths;
RESET ROLE;
REVOKE ALL ON mouths FROM collations_hearer;
DROP ROLE collations_hearer;
