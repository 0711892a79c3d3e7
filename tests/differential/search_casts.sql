-- Text search in columns that are computed, and casts of the user's: workers have what they need for both.

CREATE TABLE articles (id int PRIMARY KEY, title text, body text,
    words tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', coalesce(title, '')), 'A') || to_tsvector('english', coalesce(body, ''))) STORED);
CREATE INDEX articles_words ON articles USING gin (words);
CREATE INDEX articles_simple ON articles USING gin (to_tsvector('simple', body));
--@ cluster: SELECT create_distributed_table('articles', 'id')
INSERT INTO articles (id, title, body) SELECT i, 'Running number ' || i, 'The quick foxes jumped over lazy dogs ' || CASE WHEN i % 3 = 0 THEN 'and cats' ELSE '' END FROM generate_series(1, 30) i;
SELECT id, title FROM articles WHERE words @@ to_tsquery('english', 'run & cat') ORDER BY id;
SELECT count(*) FROM articles WHERE words @@ websearch_to_tsquery('english', '"lazy dog" -cat');
--@ float: 1e-6
SELECT id, ts_rank(words, q) FROM articles, plainto_tsquery('english', 'jumping cats') q WHERE words @@ q ORDER BY 2 DESC, id LIMIT 4;
SELECT ts_headline('english', body, to_tsquery('english', 'fox'), 'StartSel=<, StopSel=>') FROM articles WHERE id = 6;
SELECT words FROM articles WHERE id = 3;
UPDATE articles SET body = 'nothing' WHERE id = 3 RETURNING words;
SELECT count(*) FROM articles WHERE to_tsvector('simple', body) @@ to_tsquery('simple', 'foxes');
ALTER TABLE articles ADD COLUMN more tsvector GENERATED ALWAYS AS (to_tsvector('german', title)) STORED;
SELECT more FROM articles WHERE id = 5;
CREATE TABLE notes_ref (id int PRIMARY KEY, body text, words tsvector GENERATED ALWAYS AS (to_tsvector('english', body)) STORED);
--@ cluster: SELECT create_reference_table('notes_ref')
INSERT INTO notes_ref (id, body) VALUES (1, 'cats running'), (2, 'dogs');
SELECT n.id, count(*) FROM notes_ref n JOIN articles a ON a.words @@ plainto_tsquery('english', n.body) GROUP BY 1 ORDER BY 1;

-- Casts that are there before the table is distributed.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE CAST (varchar AS mood) WITH INOUT AS IMPLICIT;
CREATE TYPE money_of AS (amount numeric, unit text);
CREATE FUNCTION to_money_of(int) RETURNS money_of LANGUAGE sql IMMUTABLE AS $$ SELECT ROW($1, 'EUR')::money_of $$;
CREATE CAST (int AS money_of) WITH FUNCTION to_money_of(int) AS ASSIGNMENT;
CREATE FUNCTION from_money_of(money_of) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT ($1).amount::int $$;
CREATE CAST (money_of AS int) WITH FUNCTION from_money_of(money_of);
CREATE TABLE people (id int PRIMARY KEY, feels mood, has money_of);
--@ cluster: SELECT create_distributed_table('people', 'id')
INSERT INTO people VALUES (1, 'ok'::varchar, 5), (2, 'sad'::varchar, 7);
INSERT INTO people VALUES (3, 'happy'::varchar, 9);
INSERT INTO people SELECT i, 'ok'::varchar, i FROM generate_series(4, 8) i;
UPDATE people SET feels = 'happy'::varchar, has = 10 WHERE id = 1;
UPDATE people SET has = 11 WHERE id IN (2, 3) RETURNING id, has;
SELECT id, feels, has, has::int FROM people ORDER BY id;
SELECT sum(has::int), min(feels) FROM people WHERE feels = 'ok'::varchar::mood;
SELECT id FROM people WHERE feels > 'ok'::varchar::mood ORDER BY id;
-- And those that come later.
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TABLE cars (id int PRIMARY KEY, c colour, p money_of);
--@ cluster: SELECT create_distributed_table('cars', 'id')
--@ error: 42804
INSERT INTO cars VALUES (1, 'red'::varchar);
CREATE CAST (varchar AS colour) WITH INOUT AS ASSIGNMENT;
INSERT INTO cars VALUES (1, 'red'::varchar, 4);
CREATE FUNCTION to_colour(bool) RETURNS colour LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN $1 THEN 'red'::colour ELSE 'green'::colour END $$;
CREATE CAST (bool AS colour) WITH FUNCTION to_colour(bool) AS ASSIGNMENT;
INSERT INTO cars VALUES (2, false), (3, true);
UPDATE cars SET c = true WHERE id = 2;
SELECT * FROM cars ORDER BY id;
DROP CAST (bool AS colour);
--@ error: 42804
INSERT INTO cars VALUES (14, false);
BEGIN;
CREATE CAST (bool AS colour) WITH FUNCTION to_colour(bool) AS ASSIGNMENT;
INSERT INTO cars VALUES (4, false);
ROLLBACK;
SELECT * FROM cars ORDER BY id;
DROP TABLE articles, notes_ref, people, cars;
DROP TYPE mood, money_of, colour CASCADE;

-- Functions that functions call in their bodies are where those are.
CREATE FUNCTION inner_check(a int) RETURNS bool LANGUAGE sql IMMUTABLE AS $$ SELECT a < 100 $$;
CREATE FUNCTION "Middle check"(a int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ DECLARE x bool; BEGIN x := public.inner_check(a); RETURN x; END $$;
CREATE FUNCTION outer_check(a int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN "Middle check" (a); END $$;
CREATE TABLE checked (k int PRIMARY KEY, a int CHECK (outer_check(a)), big bool GENERATED ALWAYS AS (NOT inner_check(a * 2)) STORED);
--@ cluster: SELECT create_distributed_table('checked', 'k')
INSERT INTO checked VALUES (1, 1), (2, 60);
--@ error: 23514
INSERT INTO checked VALUES (3, 101);
SELECT * FROM checked ORDER BY k;
CREATE FUNCTION shorter(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT left(t, 2) $$;
-- From 17 on what computes an index has a path of its own.
--@ only: before 17
CREATE FUNCTION short_name(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(shorter(t)) $$;
--@ only: from 17
CREATE FUNCTION short_name(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT upper(public.shorter(t)) $$;
CREATE TABLE named (k int PRIMARY KEY, t text);
--@ cluster: SELECT create_distributed_table('named', 'k')
CREATE INDEX ON named (short_name(t));
INSERT INTO named SELECT i, 'name ' || i FROM generate_series(1, 10) i;
SELECT count(*) FROM named WHERE short_name(t) = 'NA';
ALTER TABLE named ADD CHECK (short_name(t) <> 'XX');
--@ error: 23514
INSERT INTO named VALUES (11, 'xx');

-- Operators and functions of the user's that are called like built-in ones.
CREATE SCHEMA other_names;
CREATE TYPE other_names.pair AS (a int, b int);
CREATE FUNCTION other_names.added(other_names.pair, other_names.pair) RETURNS other_names.pair LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION other_names.same(other_names.pair, other_names.pair) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR other_names.+ (LEFTARG = other_names.pair, RIGHTARG = other_names.pair, FUNCTION = other_names.added);
CREATE OPERATOR other_names.= (LEFTARG = other_names.pair, RIGHTARG = other_names.pair, FUNCTION = other_names.same);
CREATE FUNCTION other_names.lower(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1';
SELECT k + 1 FROM named ORDER BY 1;
SELECT * FROM named WHERE k = 1;
SELECT lower(t) FROM named WHERE k = 2;
SELECT lower(t), count(*) FROM named GROUP BY 1 ORDER BY 1;
SELECT max(k + 1), max(lower(t)) FROM named;
DELETE FROM named WHERE k + 1 = 2;
UPDATE named SET t = t || '!' WHERE lower(t) = 'name 3' RETURNING *;
SELECT n.k FROM named n JOIN checked c ON n.k + 1 = c.k + 2 ORDER BY 1;
WITH gone AS (DELETE FROM named WHERE k = 5 RETURNING k) SELECT k + 1 FROM gone;
INSERT INTO named VALUES (20, 'twenty') RETURNING k + 1, lower(t);
DROP SCHEMA other_names CASCADE;
DROP TABLE checked, named;
