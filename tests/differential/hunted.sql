-- What a hunt for wrong answers found, each once wrong on a cluster.

-- Lengths of char(n) and bit(n) are kept where rows pass the router.
CREATE TABLE ch (k int, c char(5), b bit(3));
--@ cluster: SELECT create_distributed_table('ch', 'k')
INSERT INTO ch (k, c) SELECT 1, 'abc';
INSERT INTO ch (k, c) SELECT g, 'q' || g FROM generate_series(2, 9) g;
INSERT INTO ch (k, c) SELECT a.k + 10, b.c FROM ch a JOIN ch b ON a.k = b.k + 1;
INSERT INTO ch (k, b) SELECT 50, B'101';
--@ error: 22001
INSERT INTO ch (k, c) SELECT 7, 'abcdefg';
SELECT k, c, b, length(c) FROM ch;
CREATE TABLE chk (c char(4), n int);
--@ cluster: SELECT create_distributed_table('chk', 'c')
INSERT INTO chk SELECT 'x' || i, i FROM generate_series(1, 20) i;
SELECT n FROM chk WHERE c = 'x1';
SELECT count(*), count(DISTINCT c) FROM chk;

-- IN as a value is NULL where it is not known.
CREATE TABLE n1 (k int, a int);
CREATE TABLE n2 (k int, a int);
--@ cluster: SELECT create_distributed_table('n1', 'k'), create_distributed_table('n2', 'k')
INSERT INTO n1 SELECT g, g FROM generate_series(1, 8) g;
INSERT INTO n2 VALUES (NULL, 1), (1, 1), (2, 2);
SELECT k, k IN (SELECT k FROM n2) FROM n1;
SELECT k, k NOT IN (SELECT k FROM n2) FROM n1;
SELECT k FROM n1 WHERE k IN (SELECT k FROM n2);
SELECT k FROM n1 WHERE k NOT IN (SELECT k FROM n2);
SELECT DISTINCT k IN (SELECT k FROM n2) FROM n1;

-- Temporary tables hide others however they were made.
SELECT 9 AS k INTO TEMP n3;
SELECT count(*) FROM n3;
DO $$ BEGIN CREATE TEMP TABLE n2 (k int); INSERT INTO n2 VALUES (77); END $$;
SELECT * FROM n2;
INSERT INTO n2 VALUES (78);
SELECT count(*) FROM n2;
DROP TABLE pg_temp.n2;
SELECT count(*) FROM n2;

-- COMMIT with what the coordinator's foreign tables have open.
CREATE TABLE beside (k int);
BEGIN;
SAVEPOINT s;
INSERT INTO beside VALUES (1);
UPDATE n1 SET a = a + 1;
SELECT count(*) FROM n1 x JOIN n1 y ON x.a = y.k;
COMMIT;
SELECT count(*), sum(a) FROM n1;
SELECT count(*) FROM beside;

-- A foreign key to a distributed table from a local one that has rows.
ALTER TABLE n1 ADD PRIMARY KEY (k);
ALTER TABLE beside ADD FOREIGN KEY (k) REFERENCES n1 (k);

-- The sum of LIMIT and OFFSET is no number any more.
SELECT k FROM n1 ORDER BY k LIMIT 9223372036854775807 OFFSET 5;

-- RETURNING of rows that pass the router names the target by its alias.
CREATE TABLE al (k int, v text);
CREATE TABLE al_ref (a int, n int, v text);
--@ cluster: SELECT create_distributed_table('al', 'k'), create_reference_table('al_ref')
INSERT INTO al AS me (k, v) SELECT count(*) OVER (), 'a' FROM generate_series(1, 3) RETURNING me.k + 1, (me.v);
INSERT INTO al AS "My al" SELECT g, 'b' FROM generate_series(4, 6) g RETURNING "My al".k, "My al".*;
INSERT INTO al_ref AS me SELECT count(*), max(k) FROM al RETURNING (me.a + me.n), ((n)), *;
INSERT INTO al_ref SELECT count(*), 1 FROM al -- a remark at the end
;
SELECT * FROM al_ref;

-- Rows of VALUES with different numbers of values that the coordinator computes, one of them with UNION ALL in it.
INSERT INTO al VALUES ((SELECT 7 UNION ALL SELECT 8 LIMIT 1), 'c'), ((SELECT 9), (SELECT 'x' UNION ALL SELECT 'y' LIMIT 1)), (10, 'd');
SELECT * FROM al WHERE k BETWEEN 7 AND 10;

-- What views, defaults, triggers, checks and functions set stays on no connection that another client gets. (There are
-- several sessions because each thread of the router has its own connections. A setting that was wiped is '' there.)
CREATE VIEW sets_view AS SELECT set_config('my.leak', 'view', false) AS a, set_config('timezone', 'Asia/Tokyo', false) AS b, set_config('search_path', 'nowhere', false) AS c;
CREATE VIEW sets_scattered AS SELECT k, set_config('my.leak', 'scattered', false) AS said FROM al;
CREATE TABLE sets_default (k int, v text DEFAULT set_config('my.leak', 'default', false));
CREATE TABLE sets_key_default (k int, v text DEFAULT set_config('my.leak', 'worker', false));
CREATE TABLE sets_check (k int, CHECK (set_config('my.leak', 'check', false) IS NOT NULL));
CREATE DOMAIN sets_domain AS int CHECK (set_config('my.leak', 'domain', false) IS NOT NULL);
CREATE FUNCTION sets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('my.leak', 'trigger', false); SET TIME ZONE 'Asia/Tokyo'; RETURN new; END $$;
CREATE TABLE sets_trigger (k int PRIMARY KEY, v text);
CREATE TABLE sets_trigger_local (k int);
CREATE TRIGGER sets BEFORE INSERT ON sets_trigger_local FOR EACH ROW EXECUTE FUNCTION sets();
--@ cluster: SELECT create_distributed_table('sets_key_default', 'k'), create_distributed_table('sets_trigger', 'k')
CREATE TRIGGER sets BEFORE INSERT OR UPDATE ON sets_trigger FOR EACH ROW EXECUTE FUNCTION sets();
--@ on: setter
SELECT * FROM public.sets_view;
--@ on: b
SELECT nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo', count(*) FROM al;
--@ on: c
SELECT nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo';
--@ on: setter2
SELECT count(said) FROM sets_scattered;
--@ on: b
SELECT nullif(current_setting('my.leak', true), ''), count(*) FROM al;
--@ on: c
SELECT k, nullif(current_setting('my.leak', true), '') FROM al;
--@ on: setter2
INSERT INTO sets_default (k) VALUES (1);
--@ on: b
SELECT nullif(current_setting('my.leak', true), '');
--@ on: c
SELECT nullif(current_setting('my.leak', true), '');
--@ on: setter2
INSERT INTO sets_key_default (k) VALUES (1), (2), (3), (4), (5);
--@ on: setter2
INSERT INTO sets_key_default (k) VALUES (6);
--@ on: b
SELECT k, nullif(current_setting('my.leak', true), '') FROM sets_key_default;
--@ on: c
SELECT k, nullif(current_setting('my.leak', true), '') FROM sets_key_default WHERE k = 6;
--@ on: setter2
INSERT INTO sets_check VALUES (1);
--@ on: setter2
SELECT 1::sets_domain;
--@ on: setter2
SELECT k::sets_domain FROM al;
--@ on: setter
INSERT INTO public.sets_trigger_local VALUES (1);
--@ on: setter
COPY public.sets_trigger_local FROM STDIN;
2
\.
--@ on: b
SELECT nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo', count(*) FROM al;
--@ on: c
SELECT nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo';
--@ on: setter
INSERT INTO public.sets_trigger VALUES (1), (2), (3), (4);
--@ on: setter
UPDATE public.sets_trigger SET v = 'x' WHERE k = 2;
--@ on: setter
COPY public.sets_trigger FROM STDIN;
5	a
6	b
7	c
\.
--@ on: b
SELECT k, nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo' FROM sets_trigger;
--@ on: c
SELECT k, nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo' FROM sets_trigger WHERE k = 2;
--@ on: c
SELECT k, nullif(current_setting('my.leak', true), ''), timestamptz '2020-01-01 00:00+00' FROM sets_trigger;
--@ on: b
SELECT nullif(current_setting('my.leak', true), ''), current_setting('timezone') = 'Asia/Tokyo', count(*) FROM al;

-- OVERRIDING USER VALUE: the rows of a SELECT do not count for an identity column.
CREATE TABLE own_id (id int GENERATED ALWAYS AS IDENTITY, k int, v text DEFAULT 'dflt', PRIMARY KEY (k, id));
CREATE TABLE own_key (k int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('own_id', 'k'), create_distributed_table('own_key', 'k')
INSERT INTO own_id (id, k) OVERRIDING USER VALUE SELECT 100, g FROM generate_series(6, 8) g RETURNING id;
INSERT INTO own_id (id, k) OVERRIDING USER VALUE SELECT 100, g FROM generate_series(9, 10) g;
INSERT INTO own_id (id, k) OVERRIDING SYSTEM VALUE SELECT 100 + g, g FROM generate_series(11, 12) g RETURNING id;
INSERT INTO own_key OVERRIDING USER VALUE SELECT 100, 'v' || g FROM generate_series(1, 4) g;
INSERT INTO own_key OVERRIDING USER VALUE SELECT * FROM own_key WHERE k = 2 RETURNING k, v;
SELECT count(*), count(DISTINCT id), min(id), max(id) FROM own_id;
SELECT k, v FROM own_key;
--@ error: 428C9
INSERT INTO own_id (id, k) SELECT 100, 1;
CREATE TABLE made_of (k int, a int, twice int GENERATED ALWAYS AS (a * 2) STORED);
--@ cluster: SELECT create_distributed_table('made_of', 'k')
INSERT INTO made_of (a, k) SELECT g, g FROM generate_series(1, 5) g RETURNING k, twice;
INSERT INTO made_of SELECT k, a FROM made_of;
--@ error: 428C9
INSERT INTO made_of (k, a, twice) SELECT 1, 2, 3;
--@ error: 428C9
INSERT INTO made_of SELECT * FROM made_of;
SELECT k, twice FROM made_of;

-- Parameters of the user's own types, in statements of which a part has not all of them.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE moods (k int PRIMARY KEY, m mood, all_of mood[]);
--@ cluster: SELECT create_distributed_table('moods', 'k')
--@ params: 'ok', 'sad'
INSERT INTO moods VALUES (1, $1, ARRAY[$1, $2::mood]), (2, $2, NULL), (3, NULL, '{}'), (4, 'happy', NULL);
--@ params: 'happy', 'ok'
INSERT INTO moods AS t SELECT g, $1::mood FROM generate_series(4, 7) g ON CONFLICT (k) DO UPDATE SET m = $2 RETURNING k, m;
--@ params: '{ok,sad}'
SELECT count(*) FROM moods WHERE m = ANY ($1);
--@ params: 'ok'
SELECT count(*), max(m) FROM moods WHERE $1 = ANY (all_of) OR m > $1;
--@ params: 'ok', 'happy'
SELECT m, count(*) FROM moods WHERE m >= $1 GROUP BY m HAVING max(m) <= $2 ORDER BY m;
--@ params: 'ok'
SELECT k FROM moods WHERE m <> $1 ORDER BY m, k LIMIT 2;
--@ params: 'sad', 2
UPDATE moods SET m = $1 WHERE k > $2;
SELECT k, m FROM moods;

-- Defaults of domains are defaults of columns.
CREATE DOMAIN token AS uuid DEFAULT gen_random_uuid();
CREATE DOMAIN moment AS timestamptz DEFAULT now();
CREATE DOMAIN seven AS int DEFAULT 7;
CREATE TABLE tokens (id int, t token, at moment);
CREATE TABLE moments (k int, x moment, s seven);
CREATE TABLE sevens (k seven, v int);
--@ cluster: SELECT create_reference_table('tokens'), create_distributed_table('moments', 'k'), create_distributed_table('sevens', 'k')
INSERT INTO tokens (id) VALUES (1), (2);
INSERT INTO tokens (id) SELECT k FROM generate_series(3, 5) k;
SELECT count(*), count(DISTINCT t), count(DISTINCT at) FROM tokens;
INSERT INTO moments (k) VALUES (1), (2), (3), (4), (5), (6);
INSERT INTO moments (k, s) VALUES (7, DEFAULT), (8, NULL);
INSERT INTO moments (k) SELECT g FROM generate_series(11, 20) g;
COPY moments (k) FROM STDIN;
21
22
23
\.
SELECT k, s, count(*) OVER (PARTITION BY x) FROM moments;
SELECT count(DISTINCT (t.t, k)) = count(*) FROM tokens t, moments;
INSERT INTO sevens (v) VALUES (1);
INSERT INTO sevens (v) VALUES (2), (3);
INSERT INTO sevens (v) SELECT 4;
INSERT INTO sevens VALUES (DEFAULT, 5), (NULL, 6);
SELECT k, v FROM sevens;
SELECT v FROM sevens WHERE k = 7;

-- Keys that are changed, or inserted, inside WITH.
CREATE TABLE inside_with (k int PRIMARY KEY, v int);
CREATE SEQUENCE inside_numbers;
CREATE TABLE numbered_inside (k int, id int DEFAULT nextval('inside_numbers'));
--@ cluster: SELECT create_distributed_table('inside_with', 'k'), create_distributed_table('numbered_inside', 'k')
INSERT INTO inside_with SELECT g, g FROM generate_series(1, 9) g;
WITH u AS (UPDATE inside_with SET k = 60 WHERE k = 6 RETURNING *) SELECT * FROM u;
WITH u AS (UPDATE inside_with SET k = 5, v = 55 WHERE k = 5 RETURNING *) SELECT * FROM u;
WITH u AS (UPDATE inside_with SET k = k, v = 44 WHERE k = 4 RETURNING *) SELECT * FROM u;
SELECT * FROM inside_with;
SELECT * FROM inside_with;

-- Grouping sets give keys that are NULL.
CREATE TABLE sets_of (k int, n bigint);
--@ cluster: SELECT create_distributed_table('sets_of', 'k', colocate_with => 'inside_with')
INSERT INTO sets_of SELECT k, count(*) FROM inside_with WHERE k = 5 GROUP BY ROLLUP (k);
SELECT * FROM sets_of;
SELECT s.k, i.v FROM (SELECT k, count(*) FROM inside_with GROUP BY ROLLUP (k)) s LEFT JOIN inside_with i ON i.k = s.k;
WITH a AS (SELECT k FROM inside_with) INSERT INTO sets_of (k) WITH b AS (SELECT k + 1 AS k FROM a) SELECT k FROM b;
SELECT count(*), sum(k) FROM sets_of;

-- A key that is rounded where it is stored.
CREATE TABLE fine (k numeric(10,3));
CREATE TABLE coarse (k numeric(10,1));
--@ cluster: SELECT create_distributed_table('fine', 'k'), create_distributed_table('coarse', 'k', colocate_with => 'fine')
INSERT INTO fine VALUES (1.234), (2.345), (3.456);
WITH c AS (SELECT k FROM fine WHERE k = 1.234) INSERT INTO coarse (k) SELECT k FROM c;
INSERT INTO coarse (k) SELECT k FROM fine WHERE k = 2.345;
MERGE INTO coarse t USING (SELECT k FROM fine WHERE k = 3.456) s ON t.k = s.k AND t.k = 3.456 WHEN NOT MATCHED THEN INSERT VALUES (s.k);
SELECT k FROM coarse;
SELECT k FROM coarse WHERE k = 2.3;

-- Values are assigned, not cast.
CREATE TABLE assigned (k int, n int, a int[]);
CREATE SEQUENCE assigned_numbers;
--@ cluster: SELECT create_distributed_table('assigned', 'k')
--@ error: 42804
INSERT INTO assigned (k, n) VALUES (1, nextval('assigned_numbers')::text);
INSERT INTO assigned (k, a[1]) VALUES (1, nextval('assigned_numbers'));
INSERT INTO assigned (k, a[1], a[2]) VALUES (2, nextval('assigned_numbers'), 9), (3, 1, 2);
SELECT k, n, a IS NULL FROM assigned;

-- What a row of a reference table gets from rows that have no order.
CREATE TABLE unordered (g int, v int);
CREATE TABLE from_unordered (g int PRIMARY KEY, v int);
--@ cluster: SELECT create_reference_table('unordered'), create_reference_table('from_unordered')
INSERT INTO unordered VALUES (1, 10), (1, 20), (2, 30);
INSERT INTO from_unordered VALUES (1, 0), (2, 0);
UPDATE from_unordered SET v = s.v FROM unordered s WHERE s.g = from_unordered.g AND s.v > 10;
SELECT * FROM from_unordered;
INSERT INTO from_unordered SELECT g, v FROM unordered ON CONFLICT DO NOTHING;
INSERT INTO from_unordered SELECT DISTINCT ON (g) g + 10, v FROM unordered ORDER BY g, v;
INSERT INTO from_unordered SELECT 100 + row_number() OVER (ORDER BY v), v FROM unordered;
INSERT INTO from_unordered SELECT 200 + g, sum(v) FROM unordered GROUP BY g;
SELECT * FROM from_unordered;

-- Windows and aggregates that only ORDER BY has.
CREATE TABLE thousand (k int, g int, v int);
--@ cluster: SELECT create_distributed_table('thousand', 'k')
INSERT INTO thousand SELECT i, i % 3, 1000 - i FROM generate_series(1, 1000) i;
--@ ordered
SELECT k, v FROM thousand ORDER BY row_number() OVER (ORDER BY v) LIMIT 3;
--@ ordered
SELECT k FROM thousand WHERE k < 20 ORDER BY sum(v) OVER (ORDER BY k DESC), k;
SELECT 'x' FROM thousand ORDER BY count(*);
SELECT 'x' FROM thousand GROUP BY g ORDER BY count(*), g;
SELECT (SELECT 'x' FROM thousand ORDER BY count(*));

-- DISTINCT ON takes an output name before a column's.
--@ ordered
SELECT DISTINCT ON (k) g AS k, v FROM thousand ORDER BY k, v;
SELECT count(*) FROM (SELECT DISTINCT ON (k) g AS k, v FROM thousand ORDER BY k, v) s;
--@ ordered
SELECT DISTINCT ON (1) g AS k, v FROM thousand ORDER BY 1, v;
--@ ordered
SELECT DISTINCT ON (k) k, g FROM thousand WHERE k < 9 ORDER BY k;

SELECT 'x' FROM thousand WINDOW w AS (ORDER BY count(*));
CREATE TABLE some_keys (id int, k int);
--@ cluster: SELECT create_reference_table('some_keys')
INSERT INTO some_keys VALUES (1, 5);
SELECT DISTINCT ON (k) r.* FROM thousand t LEFT JOIN some_keys r USING (k);
--@ ordered
SELECT DISTINCT ON (k) * FROM thousand WHERE k < 9 ORDER BY k;

-- A condition of a join sees the join.
CREATE TABLE seen_x (k int);
CREATE TABLE seen_z (k int);
CREATE TABLE seen_r (id int, k int);
CREATE TABLE seen_s (id int, j int);
--@ cluster: SELECT create_distributed_table('seen_x', 'k'), create_distributed_table('seen_z', 'k'), create_reference_table('seen_r'), create_reference_table('seen_s')
INSERT INTO seen_x SELECT generate_series(1, 100);
INSERT INTO seen_z SELECT generate_series(1, 100);
INSERT INTO seen_r VALUES (1, 5), (2, 6);
INSERT INTO seen_s VALUES (1, 5), (2, 7);
SELECT count(*) FROM seen_x JOIN seen_z USING (k), seen_r r JOIN seen_s s ON r.id = s.id AND k = 5;
SELECT count(*) FROM seen_x JOIN seen_z USING (k), seen_r r JOIN thousand b ON r.k = b.g;
SELECT count(*) FROM seen_x JOIN seen_z USING (k), (SELECT id, k FROM seen_r) r JOIN (SELECT g, v FROM thousand) b ON k = g + 4;
SELECT count(*) FROM seen_x x JOIN seen_z z USING (k), seen_r r JOIN seen_s s ON r.id = j - 4 AND r.k = 5;
SELECT count(*) FROM seen_x, seen_r r LEFT JOIN seen_s s ON k = j WHERE false;

-- A function's alias may name less than its columns.
SELECT count(*) FROM (SELECT * FROM unnest(ARRAY[10, 20]) WITH ORDINALITY AS u (x), thousand) c (x, n, k, g, v) JOIN seen_x t2 ON c.n = t2.k;
SELECT count(*) FROM (SELECT u.*, t.k FROM jsonb_each('{"a": 1, "b": 2}') AS u (x), thousand t) c (x, n, k) JOIN seen_x t2 ON c.k = t2.k;
SELECT count(*) FROM (SELECT u.*, t.k FROM jsonb_each_text('{"a": 1, "b": 2}') AS u (x), thousand t) c (x, n, k) JOIN seen_x t2 ON c.n::int = t2.k;

CREATE TABLE ordinals (ordinality bigint);
--@ cluster: SELECT create_distributed_table('ordinals', 'ordinality')
INSERT INTO ordinals SELECT generate_series(1, 100);
SELECT count(*) FROM ordinals WHERE EXISTS (SELECT FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS u (c) JOIN seen_x e ON e.k = ordinality);
SELECT 7 AS ordinality, count(*) FROM thousand, unnest(ARRAY['a', 'b']) WITH ORDINALITY u (c) GROUP BY ordinality;

-- Columns without equality, names that are columns elsewhere.
CREATE TABLE documents (id int PRIMARY KEY, doc json);
CREATE TABLE documented (k int, v int, j jsonb);
--@ cluster: SELECT create_reference_table('documents'), create_distributed_table('documented', 'k')
INSERT INTO documents VALUES (0, '{}'), (1, '{}'), (2, '{}');
INSERT INTO documented SELECT i, i, '[1,2]' FROM generate_series(1, 20) i;
SELECT d.id, d.doc::text, count(*) FROM thousand t JOIN documents d ON d.id = t.g GROUP BY d.id;
SELECT d.id, d.doc, count(*) FROM thousand t JOIN documents d ON d.id = t.g GROUP BY d.id;
SELECT v, v % 10 AS bucket, count(*) FROM documented, jsonb_array_elements(j) e GROUP BY v, bucket;
SELECT v % 2 AS doc, count(*) FROM documented WHERE v IN (SELECT 1 FROM documents) OR v > 2 GROUP BY doc;

-- Values that a narrower key cannot have.
CREATE TABLE wide (b bigint);
--@ cluster: SELECT create_reference_table('wide')
INSERT INTO wide VALUES (5000000000), (5);
SELECT * FROM thousand t JOIN wide ON t.k = wide.b WHERE wide.b = 5000000000;
SELECT * FROM thousand t JOIN wide ON t.k = wide.b WHERE wide.b IN (5, 5000000000);
SELECT * FROM thousand t JOIN wide ON t.k = wide.b WHERE wide.b IN (6000000000, 5000000000);
PREPARE most (bigint, bigint) AS SELECT k FROM thousand WHERE k > 990 ORDER BY k LIMIT $1 OFFSET $2;
--@ ordered
EXECUTE most (9223372036854775807, 1);
--@ ordered
EXECUTE most (2, 3);
--@ ordered
EXECUTE most (NULL, 7);
DEALLOCATE most;

-- ON DELETE SET DEFAULT, where workers have the default.
CREATE TABLE given_up (id int PRIMARY KEY);
CREATE TABLE gives_up (k int, w int DEFAULT 1 REFERENCES given_up ON DELETE SET DEFAULT);
CREATE FUNCTION one_of_them() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
--@ cluster: SELECT create_reference_table('given_up'), create_distributed_table('gives_up', 'k')
INSERT INTO given_up VALUES (1), (2);
INSERT INTO gives_up VALUES (5, 2);
DELETE FROM given_up WHERE id = 2;
SELECT * FROM gives_up;
--@ refused: 0A000
ALTER TABLE gives_up ALTER w SET DEFAULT one_of_them();

-- A subquery in ON sees the two sides of its join, not what else FROM has.
CREATE TABLE on_x (k int, v int);
CREATE TABLE on_z (k int, w int);
CREATE TABLE on_r (a int);
CREATE TABLE on_s (k int, b int);
CREATE TABLE on_d (key int, c int);
--@ cluster: SELECT create_distributed_table('on_x', 'k'), create_distributed_table('on_z', 'k'), create_reference_table('on_r'), create_reference_table('on_s'), create_distributed_table('on_d', 'key')
INSERT INTO on_x SELECT i, i FROM generate_series(1, 12) i;
INSERT INTO on_z SELECT i, i FROM generate_series(1, 12) i;
INSERT INTO on_r VALUES (1), (2);
INSERT INTO on_s SELECT i, i FROM generate_series(1, 12) i;
INSERT INTO on_d SELECT i, i FROM generate_series(1, 12, 2) i;
SELECT count(*) FROM on_x JOIN on_z USING (k), on_r JOIN on_s ON EXISTS (SELECT FROM on_d WHERE on_d.key = k);
SELECT count(*) FROM on_x JOIN on_z USING (k), on_r LEFT JOIN on_s ON EXISTS (SELECT FROM on_d WHERE on_d.key = k);
SELECT count(*) FROM on_x JOIN on_z ON EXISTS (SELECT FROM on_d WHERE on_d.key = on_x.k) AND on_x.k = on_z.k;

-- A literal that is grouped by, and the same literal elsewhere.
SELECT '1' AS n, max(v) + '1' AS m FROM on_x GROUP BY n;
SELECT 'a '::char(3) AS n, max(v) || 'a ' FROM on_x GROUP BY n;
SELECT '1' AS n, count(*) FILTER (WHERE v > 3) FROM on_x GROUP BY n HAVING max(v) > '1';

-- Outputs that are called as columns which only ORDER BY names.
--@ ordered
SELECT -v AS v, k FROM on_x ORDER BY v, on_x.v LIMIT 3;
--@ ordered
SELECT v % 3 AS k, v FROM on_x ORDER BY k, on_x.k DESC LIMIT 5;

-- Rows are sorted before a function makes several of each.
--@ ordered
SELECT k, generate_series(1, 3) FROM on_x ORDER BY v DESC LIMIT 5;
--@ ordered
SELECT k, generate_series(3, 1, -1) FROM on_x ORDER BY k;
--@ ordered
SELECT k, generate_series(1, 3) AS g FROM on_x ORDER BY g DESC, k LIMIT 5;
--@ ordered
SELECT unnest(ARRAY[k, v]) FROM on_x ORDER BY v DESC LIMIT 3 OFFSET 1;

-- A key that MERGE inserts, out of a source that an outer join makes NULL.
CREATE TABLE merged (k int, v int);
--@ cluster: SELECT create_distributed_table('merged', 'k')
MERGE INTO merged t USING (SELECT r.a, c.five FROM on_r r LEFT JOIN (SELECT 5 AS five, 2 AS a) c ON c.a = r.a) s ON t.k = 5 AND t.v = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.five, s.a);
SELECT * FROM merged ORDER BY v;
SELECT v FROM merged WHERE k = 5;
SELECT v FROM merged WHERE k IS NULL;

-- What depends on the order of rows that every worker has.
SELECT count(DISTINCT p) FROM (SELECT k, (SELECT string_agg(b::text, ',') FROM on_s) AS p FROM on_x) q;
SELECT count(*), sum(n) FROM on_x JOIN (SELECT k, row_number() OVER () AS n FROM on_s) s USING (k);
SELECT count(*) FROM on_x JOIN (SELECT DISTINCT ON (b % 2) k, b FROM on_s) s ON s.b % 2 = on_x.v % 2;

-- HAVING without GROUP BY: every row counts.
CREATE TABLE kept_t (k int, a int);
CREATE TABLE kept_u (k int, a int);
--@ cluster: SELECT create_distributed_table('kept_t', 'k'), create_distributed_table('kept_u', 'k')
INSERT INTO kept_t VALUES (1, 7), (2, 8);
INSERT INTO kept_u VALUES (1, 7), (2, 7), (3, 8);
SELECT kept_t.k FROM kept_t WHERE EXISTS (SELECT 1 FROM kept_u WHERE kept_u.a = kept_t.a HAVING count(*) > 1);
SELECT kept_t.k FROM kept_t WHERE 2 IN (SELECT 2 FROM kept_u WHERE kept_u.a = kept_t.a HAVING count(*) = 2);
SELECT kept_t.k FROM kept_t WHERE EXISTS (SELECT 1 FROM kept_u WHERE kept_u.a = kept_t.a HAVING count(*) = 1);
SELECT kept_t.k FROM kept_t WHERE EXISTS (SELECT 1 FROM kept_u WHERE kept_u.a = kept_t.a ORDER BY count(*));

-- Subqueries in RETURNING of rows that move.
CREATE TABLE moving (k int, v int);
CREATE TABLE beside_moving (n int);
--@ cluster: SELECT create_distributed_table('moving', 'k')
INSERT INTO moving SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO beside_moving VALUES (5);
UPDATE moving SET k = k + 100 WHERE v = 3 RETURNING k, (SELECT count(*) FROM kept_u);
UPDATE moving SET k = k + 100 WHERE v = 4 RETURNING k, (SELECT count(*) FROM moving x);
UPDATE moving SET k = k + 100 WHERE v = 5 RETURNING k, (SELECT n FROM beside_moving);
SELECT * FROM moving ORDER BY v;

-- Subqueries behind set operations and VALUES.
SELECT count(*) FROM (SELECT v FROM moving WHERE k = 1 UNION ALL SELECT a FROM kept_u WHERE k = 1 LIMIT (SELECT count(*) - 2 FROM kept_u)) s;
SELECT count(*) FROM (SELECT v FROM moving WHERE k = 1 UNION ALL SELECT v FROM moving WHERE k = 1 LIMIT (SELECT n - 4 FROM beside_moving)) s;
SELECT v FROM moving WHERE k = 1 AND v IN (VALUES (1), (2), (3) LIMIT (SELECT n FROM beside_moving));
SELECT v FROM moving WHERE k = 1 AND v IN (VALUES (1), (2), (3) OFFSET (SELECT count(*) - 3 FROM kept_u));

-- The same in transactions that have written.
BEGIN;
INSERT INTO on_x SELECT i, 100 - i FROM generate_series(13, 20) i;
DELETE FROM on_z WHERE k IN (2, 3);
INSERT INTO on_d SELECT i, i FROM generate_series(14, 18, 2) i;
INSERT INTO on_s VALUES (13, 40), (14, 41);
INSERT INTO kept_t SELECT i, i % 3 + 7 FROM generate_series(3, 12) i;
DELETE FROM kept_u WHERE k = 3;
INSERT INTO kept_u SELECT i, i % 2 + 8 FROM generate_series(4, 9) i;
UPDATE moving SET k = k + 1000 WHERE v IN (6, 7);
INSERT INTO moving SELECT 1, i FROM generate_series(30, 35) i;
SELECT count(*) FROM on_x JOIN on_z USING (k), on_r JOIN on_s ON EXISTS (SELECT FROM on_d WHERE on_d.key = k);
SELECT count(*) FROM on_x JOIN on_z USING (k), on_r LEFT JOIN on_s ON EXISTS (SELECT FROM on_d WHERE on_d.key = k);
SELECT count(*) FROM on_x LEFT JOIN on_z ON EXISTS (SELECT FROM on_d WHERE on_d.key = on_x.k) AND on_x.k = on_z.k;
SELECT '1' AS n, max(v) + '1' AS m FROM on_x GROUP BY n;
SELECT '1' AS n, count(*) FILTER (WHERE v > 3) FROM on_x GROUP BY n HAVING max(v) > '1';
--@ ordered
SELECT -v AS v, k FROM on_x ORDER BY v, on_x.v LIMIT 3;
--@ ordered
SELECT v % 3 AS k, v FROM on_x ORDER BY k, on_x.k DESC LIMIT 9;
--@ ordered
SELECT k, generate_series(1, 3) FROM on_x ORDER BY v DESC LIMIT 5;
--@ ordered
SELECT k, generate_series(1, 3) AS g FROM on_x ORDER BY g DESC, k LIMIT 25;
SELECT count(DISTINCT p) FROM (SELECT k, (SELECT string_agg(b::text, ',') FROM on_s) AS p FROM on_x) q;
SELECT count(*), sum(n) FROM on_x JOIN (SELECT k, row_number() OVER () AS n FROM on_s) s USING (k);
SELECT kept_t.k FROM kept_t WHERE EXISTS (SELECT 1 FROM kept_u WHERE kept_u.a = kept_t.a HAVING count(*) > 1);
SELECT kept_t.k FROM kept_t WHERE 3 IN (SELECT 3 FROM kept_u WHERE kept_u.a = kept_t.a HAVING count(*) = 3);
SELECT kept_t.k FROM kept_t WHERE EXISTS (SELECT 1 FROM kept_u WHERE kept_u.a = kept_t.a ORDER BY count(*));
SELECT count(*) FROM (SELECT v FROM moving WHERE k = 1 UNION ALL SELECT a FROM kept_u WHERE k = 1 LIMIT (SELECT count(*) - 5 FROM kept_u)) s;
SELECT v FROM moving WHERE k = 1 AND v IN (VALUES (1), (31), (33) LIMIT (SELECT n FROM beside_moving));
SELECT v FROM moving WHERE k = 1 AND v IN (VALUES (1), (31), (33) OFFSET (SELECT count(*) - 6 FROM kept_u));
SELECT a FROM kept_u UNION SELECT v FROM moving WHERE k = 1 EXCEPT SELECT a FROM kept_t ORDER BY 1;
SELECT v FROM moving INTERSECT ALL SELECT k FROM on_x ORDER BY 1;
MERGE INTO merged t USING (SELECT r.a, c.five FROM on_r r LEFT JOIN (SELECT 6 AS five, 2 AS a) c ON c.a = r.a) s ON t.k = 6 AND t.v = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.five, s.a);
SELECT * FROM merged ORDER BY k, v;
ROLLBACK;
