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

-- A foreign key to a distributed table from a local one cannot hold.
ALTER TABLE n1 ADD PRIMARY KEY (k);
--@ refused: 0A000
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
