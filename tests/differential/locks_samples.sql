--@ include: schema.sql
-- Row locks, TABLESAMPLE, FETCH FIRST … WITH TIES, LIMIT and OFFSET by expressions.

-- Row locks.
SELECT id FROM users WHERE id = 5 FOR UPDATE;
SELECT id FROM users WHERE id < 9 FOR UPDATE;
SELECT id FROM users WHERE id < 9 FOR NO KEY UPDATE;
SELECT id FROM users WHERE id < 9 FOR SHARE;
SELECT id FROM users WHERE id < 9 FOR KEY SHARE;
SELECT id FROM users WHERE id < 9 FOR UPDATE NOWAIT;
SELECT id FROM users WHERE id < 9 FOR UPDATE SKIP LOCKED;
SELECT id FROM users ORDER BY id LIMIT 3 FOR UPDATE;
SELECT id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 3 FOR SHARE;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 8 FOR UPDATE OF u;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id = 14 FOR UPDATE OF o SKIP LOCKED;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 8 FOR UPDATE OF u FOR SHARE OF o;
SELECT u.id, r.name FROM users u JOIN regions r ON r.code = u.country WHERE u.id < 8 FOR UPDATE;
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.id < 8 FOR UPDATE OF u;
SELECT code FROM regions WHERE code = 'de' FOR UPDATE;
SELECT code FROM regions FOR SHARE;
SELECT id FROM local_notes WHERE id < 4 FOR UPDATE;
SELECT n.id, u.id FROM local_notes n JOIN users u ON u.id = n.user_id WHERE n.id < 9 FOR UPDATE OF n;
SELECT id FROM (SELECT * FROM users WHERE active FOR UPDATE) s WHERE id < 7;
WITH l AS (SELECT id FROM users WHERE id < 5 FOR UPDATE) SELECT count(*) FROM l;
WITH l AS (SELECT id FROM users WHERE id < 5 FOR UPDATE) UPDATE users SET score = 1 FROM l WHERE l.id = users.id;
UPDATE users SET score = 2 WHERE id IN (SELECT id FROM users WHERE id < 4 FOR UPDATE);
DELETE FROM clicks WHERE user_id = (SELECT id FROM users WHERE id = 8 FOR SHARE);
SELECT f.id FROM friends f JOIN users u ON u.id = f.b WHERE f.id < 9 FOR UPDATE OF f;
--@ error: 0A000
SELECT count(*) FROM users FOR UPDATE;
--@ error: 0A000
SELECT country FROM users GROUP BY country FOR UPDATE;
--@ error: 0A000
SELECT DISTINCT country FROM users FOR UPDATE;
--@ error: 0A000
SELECT id FROM users UNION SELECT id FROM orders FOR UPDATE;
--@ error: 0A000
SELECT id, rank() OVER (ORDER BY id) FROM users FOR UPDATE;
--@ error: 0A000
SELECT u.id FROM regions r LEFT JOIN users u ON r.code = u.country FOR UPDATE;
--@ error: 42P01
SELECT id FROM users FOR UPDATE OF orders;

-- Locks that another session holds.
BEGIN;
SELECT id FROM users WHERE id IN (3, 4, 5) FOR UPDATE;
SELECT id FROM users WHERE id = 6 FOR SHARE;
--@ on: b
SELECT id FROM users WHERE id BETWEEN 1 AND 9 FOR UPDATE SKIP LOCKED;
--@ on: b
SELECT id FROM users WHERE id BETWEEN 1 AND 9 ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED;
--@ on: b
SELECT id FROM users WHERE id = 6 FOR SHARE NOWAIT;
--@ on: b
SELECT id FROM users WHERE id = 4 FOR UPDATE SKIP LOCKED;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 4 FOR UPDATE NOWAIT;
--@ on: b
--@ error: 55P03
SELECT count(*) FROM (SELECT id FROM users WHERE id < 9 FOR UPDATE NOWAIT) t;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 3 OR id = 4 FOR UPDATE NOWAIT;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 6 FOR NO KEY UPDATE NOWAIT;
--@ on: b
SET lock_timeout = '100ms';
--@ on: b
--@ error: 55P03
UPDATE users SET score = 5 WHERE id = 3;
--@ on: b
UPDATE users SET score = 5 WHERE id = 30;
ROLLBACK;
--@ on: b
UPDATE users SET score = 5 WHERE id = 3;
SELECT score FROM users WHERE id = 3;
BEGIN;
LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE;
--@ on: b
SELECT count(*) FROM users;
--@ on: b
--@ error: 55P03
DELETE FROM users WHERE id = 60;
--@ on: b
--@ error: 25P01
LOCK TABLE users IN EXCLUSIVE MODE NOWAIT;
--@ on: b
BEGIN;
--@ on: b
--@ error: 55P03
LOCK TABLE users IN EXCLUSIVE MODE NOWAIT;
--@ on: b
ROLLBACK;
COMMIT;
BEGIN;
LOCK TABLE regions IN ACCESS EXCLUSIVE MODE;
--@ on: b
--@ error: 55P03
SELECT count(*) FROM regions;
ROLLBACK;
--@ on: b
SELECT count(*) FROM regions;
--@ error: 25P01
LOCK TABLE users;

-- TABLESAMPLE: of all rows, of none, and how many at most.
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (100);
SELECT count(*) FROM users TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM users TABLESAMPLE SYSTEM (0);
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (0) REPEATABLE (5);
SELECT count(*) <= 60 FROM users TABLESAMPLE BERNOULLI (50);
SELECT count(*) <= 60 FROM users TABLESAMPLE BERNOULLI (50) REPEATABLE (7);
SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6;
SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id = 6;
SELECT u.id, count(o.id) FROM users AS u TABLESAMPLE BERNOULLI (100) LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id;
SELECT r.code FROM regions r TABLESAMPLE BERNOULLI (100) REPEATABLE (1);
SELECT count(*) FROM local_notes TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM orders WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100));
SELECT n.id FROM local_notes n TABLESAMPLE BERNOULLI (0) JOIN users u ON u.id = n.user_id;
SELECT count(*) FROM users u JOIN regions r TABLESAMPLE SYSTEM (0) ON r.code = u.country;

-- Joined with what is elsewhere.
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f TABLESAMPLE BERNOULLI (100) ON f.b = u.id;
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0) JOIN friends f ON f.b = u.id;
SELECT u.id, f.id FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id WHERE u.active AND f.id < 20;
SELECT u.id, f.id FROM friends f TABLESAMPLE BERNOULLI (100) REPEATABLE (3) LEFT JOIN users u ON f.b = u.id AND u.score > 50;
SELECT u.id, count(f.id) FROM users AS u TABLESAMPLE SYSTEM (100) LEFT JOIN friends AS f TABLESAMPLE BERNOULLI (0) ON f.b = u.id GROUP BY u.id;
SELECT a.id, b.id FROM users a (id) TABLESAMPLE SYSTEM (100) JOIN users b ON a.id = b.score WHERE a.id < 50;
SELECT count(*) FROM users a TABLESAMPLE BERNOULLI (50) JOIN users b TABLESAMPLE BERNOULLI (50) ON a.score = b.score WHERE false;
SELECT count(*) FROM users u WHERE score > (SELECT avg(score) FROM users TABLESAMPLE SYSTEM (100));
SELECT count(*) FROM users u WHERE score > (SELECT avg(score) FROM users s TABLESAMPLE SYSTEM (100) WHERE s.country = u.country);
SELECT u.id FROM users u WHERE EXISTS (SELECT 1 FROM friends f TABLESAMPLE SYSTEM (100) WHERE f.b = u.id);
SELECT u.id FROM users u WHERE NOT EXISTS (SELECT 1 FROM friends f TABLESAMPLE BERNOULLI (0) WHERE f.b = u.id);
WITH s AS (SELECT id, score FROM users TABLESAMPLE BERNOULLI (50)) SELECT (SELECT count(*) FROM s) = (SELECT count(*) FROM s a JOIN s b USING (id));
WITH s AS MATERIALIZED (SELECT id FROM users TABLESAMPLE SYSTEM (100)) SELECT count(*) FROM s JOIN friends f ON f.b = s.id;
SELECT count(*) FROM (SELECT DISTINCT country FROM users TABLESAMPLE SYSTEM (100)) x JOIN regions r ON r.code = x.country JOIN friends f ON f.id = length(r.name);
SELECT id FROM users TABLESAMPLE SYSTEM (100) UNION SELECT b FROM friends TABLESAMPLE SYSTEM (0);
SELECT id FROM users TABLESAMPLE SYSTEM (100) EXCEPT SELECT b FROM friends TABLESAMPLE SYSTEM (100);

-- With local tables, and what only the coordinator computes.
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0) JOIN local_notes n ON n.user_id = u.id;
SELECT n.id, u.name, u.tags, u.meta FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
SELECT n.id, u.* FROM local_notes n LEFT JOIN users AS u TABLESAMPLE BERNOULLI (100) ON n.user_id = u.id WHERE n.id < 9;
SELECT n.id, users.name FROM local_notes n JOIN users TABLESAMPLE SYSTEM (100) ON users.id = n.user_id;
SELECT n.id, x.a, x.b FROM local_notes n JOIN users AS x (a, b) TABLESAMPLE SYSTEM (100) ON x.a = n.user_id;
SELECT count(*), count(u) FROM local_notes n, users u TABLESAMPLE BERNOULLI (100);
SELECT current_database() IS NULL, count(*) FROM users TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM local_notes n JOIN public.users TABLESAMPLE SYSTEM (100) USING (id);
SELECT n.id FROM local_notes n WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE active);
--@ params: 100, 3
--@ params: 0, 3
SELECT n.id, u.id FROM local_notes n JOIN users u TABLESAMPLE BERNOULLI ($1) ON u.id = n.user_id WHERE n.id > $2::int;
--@ params: 100, 20
--@ params: 0, 20
SELECT u.id, f.id FROM users u TABLESAMPLE SYSTEM ($1) JOIN friends f ON f.b = u.id WHERE f.id < $2::int;
--@ error: 2202H
SELECT count(*) FROM users u TABLESAMPLE SYSTEM (200) JOIN local_notes n ON n.user_id = u.id;
--@ error: 42703
SELECT u.nothing FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
SELECT u.id FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (100) ON u.id = n.user_id FOR UPDATE;
SELECT u.id FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (0) ON u.id = n.user_id FOR SHARE OF u;
BEGIN;
SELECT n.id, users.name FROM local_notes n LEFT JOIN users TABLESAMPLE BERNOULLI (100) REPEATABLE (3) ON users.id = n.user_id FOR UPDATE OF n;
ROLLBACK;
SELECT u.id FROM local_notes n, LATERAL (SELECT * FROM users TABLESAMPLE BERNOULLI (n.id * 0 + 100)) u;
--@ error: 42P01
SELECT n.id, u.id FROM local_notes n, users u TABLESAMPLE BERNOULLI (CASE WHEN n.id % 2 = 0 THEN 100 ELSE 0 END) WHERE n.id < 5;
SELECT n.id, (SELECT count(*) FROM users TABLESAMPLE SYSTEM (100 * (n.id % 2)) REPEATABLE (n.id)) FROM local_notes n;
SELECT f.id, (SELECT count(*) FROM users AS x (a, b) TABLESAMPLE SYSTEM (id % 2 * 100) WHERE x.a > f.b) FROM friends f WHERE f.id < 9;

-- Columns keep their collations.
CREATE TABLE sampled_words (k int, word text COLLATE "C");
--@ cluster: SELECT create_distributed_table('sampled_words', 'k')
INSERT INTO sampled_words SELECT g, (ARRAY['b', 'A', 'a', 'B'])[g % 4 + 1] || g FROM generate_series(1, 12) g;
--@ ordered
SELECT w.word FROM sampled_words w TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.id = w.k WHERE w.word < 'a' ORDER BY w.word;
DROP TABLE sampled_words;

-- Written.
CREATE TABLE sampled_kept (id bigint, name text, n int DEFAULT 5);
--@ cluster: SELECT create_distributed_table('sampled_kept', 'id')
INSERT INTO clicks (user_id, url) SELECT id, 'sample' FROM users TABLESAMPLE BERNOULLI (0);
INSERT INTO friends SELECT id + 1000, id, id FROM users TABLESAMPLE BERNOULLI (0);
INSERT INTO sampled_kept SELECT id + 1000, name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 30;
INSERT INTO sampled_kept SELECT f.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id RETURNING id, n;
INSERT INTO sampled_kept SELECT n.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id;
INSERT INTO sampled_kept VALUES (1, 'one', (SELECT count(*) FROM users TABLESAMPLE SYSTEM (100))), (2, (SELECT max(name) FROM users TABLESAMPLE SYSTEM (0)), 2);
--@ params: 100
INSERT INTO sampled_kept SELECT id + 2000, name FROM users TABLESAMPLE SYSTEM ($1) WHERE id < 5;
INSERT INTO local_notes (user_id, body) SELECT id, 'sampled' FROM users TABLESAMPLE SYSTEM (100) WHERE id BETWEEN 4 AND 9;
UPDATE local_notes n SET body = u.name FROM users u TABLESAMPLE SYSTEM (100) WHERE u.id = n.user_id AND n.body = 'sampled' RETURNING n.user_id, n.body;
DELETE FROM local_notes WHERE id > 1000 AND user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (100));
UPDATE sampled_kept k SET n = 6 FROM friends f TABLESAMPLE SYSTEM (100) WHERE f.b = k.id;
DELETE FROM clicks WHERE user_id IN (SELECT id FROM users TABLESAMPLE SYSTEM (0));
DELETE FROM sampled_kept WHERE id NOT IN (SELECT b FROM friends TABLESAMPLE SYSTEM (0)) AND id > 2000;
WITH gone AS (DELETE FROM sampled_kept k USING friends f TABLESAMPLE SYSTEM (100) WHERE f.b = k.id AND k.id < 5 RETURNING k.id) SELECT count(*) FROM gone;
SELECT id, name, n FROM sampled_kept;
MERGE INTO sampled_kept k USING (SELECT id, name FROM users TABLESAMPLE SYSTEM (100)) u ON u.id = k.id WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (u.id, u.name, 0);
MERGE INTO sampled_kept k USING (SELECT DISTINCT b FROM friends TABLESAMPLE SYSTEM (100)) f ON f.b = k.id AND k.n = 0 WHEN MATCHED THEN UPDATE SET n = 9;
SELECT id, name, n FROM sampled_kept;
UPDATE regions SET tax = tax WHERE code IN (SELECT country FROM users TABLESAMPLE SYSTEM (100));
INSERT INTO regions SELECT country, 'none', 0 FROM users TABLESAMPLE SYSTEM (0);
BEGIN;
UPDATE users SET name = 'in the block' WHERE id IN (3, 4);
SELECT n.user_id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN local_notes n ON n.user_id = u.id WHERE u.id < 6;
SELECT f.id, u.name FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f ON f.b = u.id WHERE u.id < 6;
CREATE TABLE sampled_in_block AS SELECT id, name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6;
SELECT * FROM sampled_in_block;
SAVEPOINT a;
--@ error: 2202H
CREATE TABLE sampled_twice AS SELECT id FROM users TABLESAMPLE SYSTEM (-5);
ROLLBACK TO a;
DECLARE c CURSOR FOR SELECT id + 0 AS id, name || '' AS name FROM users TABLESAMPLE SYSTEM (100) WHERE id < 6 ORDER BY id;
UPDATE users SET name = 'later' WHERE id = 3;
FETCH ALL FROM c;
CLOSE c;
ROLLBACK;
CREATE TABLE sampled_users AS SELECT * FROM users TABLESAMPLE BERNOULLI (0);
SELECT count(*) FROM sampled_users;
CREATE TABLE sampled_all AS SELECT u.*, f.id AS f FROM users u TABLESAMPLE BERNOULLI (100) JOIN friends f ON f.b = u.id;
SELECT * FROM sampled_all;
CREATE TEMPORARY TABLE sampled_temporary AS SELECT id, name FROM users TABLESAMPLE BERNOULLI (100) WHERE id < 9;
SELECT * FROM sampled_temporary;
DROP TABLE sampled_temporary;
SELECT id, tags INTO sampled_into FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_into;
COPY (SELECT * FROM users AS u TABLESAMPLE SYSTEM (0)) TO STDOUT;
COPY (SELECT id, name, tags, born FROM users AS u TABLESAMPLE SYSTEM (100) ORDER BY id) TO STDOUT (FORMAT csv, HEADER);
COPY (SELECT n.user_id, u.name FROM local_notes n JOIN users u TABLESAMPLE SYSTEM (100) ON u.id = n.user_id ORDER BY 1, 2) TO STDOUT;
CREATE VIEW sampled_view AS SELECT * FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_view;
SELECT v.id, n.user_id FROM sampled_view v JOIN local_notes n ON n.user_id = v.id;
CREATE OR REPLACE VIEW sampled_view AS SELECT u.*, f.id AS f FROM users u TABLESAMPLE BERNOULLI (100) REPEATABLE (1) JOIN friends f TABLESAMPLE SYSTEM (0) ON f.b = u.id;
SELECT count(*) FROM sampled_view;
DROP VIEW sampled_view;
CREATE MATERIALIZED VIEW sampled_rows AS SELECT * FROM users TABLESAMPLE SYSTEM (100);
SELECT * FROM sampled_rows;
DELETE FROM users WHERE id = 60;
REFRESH MATERIALIZED VIEW sampled_rows;
SELECT * FROM sampled_rows;
DROP MATERIALIZED VIEW sampled_rows;
CREATE TABLE sampled AS SELECT * FROM local_notes TABLESAMPLE BERNOULLI (0);
SELECT count(*) FROM sampled;
DROP TABLE sampled_kept, sampled_users, sampled_all, sampled_into;
--@ error: 2202H
SELECT count(*) FROM users TABLESAMPLE SYSTEM (101);
--@ error: 2202H
SELECT count(*) FROM users TABLESAMPLE BERNOULLI (-1);
--@ error: 42704
SELECT count(*) FROM users TABLESAMPLE nowhere (1);

-- TABLESAMPLE inside functions, procedures, triggers and DO blocks.
CREATE FUNCTION sampled_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM users u TABLESAMPLE SYSTEM (0)';
SELECT sampled_count();
SELECT n.id, sampled_count() FROM local_notes n WHERE n.id < 3;
DO $$ DECLARE c int; BEGIN SELECT count(*) INTO c FROM public.users TABLESAMPLE SYSTEM (0); RAISE NOTICE '%', c; END $$;
DO 'DECLARE c int; BEGIN SELECT count(*) INTO c FROM users TABLESAMPLE BERNOULLI (100) WHERE country <> ''x''; RAISE NOTICE ''%'', c; END';
CREATE FUNCTION sampled_share(p real) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    SELECT count(*) INTO n FROM users AS u -- all of them
        TABLESAMPLE BERNOULLI (p)
        WHERE u.id > 0;
    RETURN n;
END
$$;
SELECT sampled_share(0), sampled_share(100);
SELECT sampled_share(50) BETWEEN 0 AND 60;
--@ error: 2202H
SELECT sampled_share(101);
--@ error: 2202H
SELECT sampled_share(-1);
--@ error: 2202H
SELECT sampled_share(NULL);
SELECT n.id, sampled_share(100 * (n.id % 2)) FROM local_notes n WHERE n.id < 5;
BEGIN;
DELETE FROM users WHERE id > 57;
SELECT sampled_share(100), sampled_share(0);
ROLLBACK;

-- Through another function, a procedure, a trigger, a rule.
CREATE FUNCTION sampled_through() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN sampled_share(0) || ' ' || sampled_count(); END $$;
SELECT sampled_through();
CREATE PROCEDURE sampled_into_notes(p real) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO local_notes (user_id, body) SELECT id, 'sampled' FROM users TABLESAMPLE SYSTEM (p) WHERE id < 4;
    UPDATE local_notes n SET body = u.name FROM users u TABLESAMPLE BERNOULLI (p) WHERE u.id = n.user_id AND n.body = 'sampled';
    DELETE FROM local_notes USING users TABLESAMPLE SYSTEM (p) WHERE users.id = local_notes.user_id AND local_notes.user_id = 3;
END $$;
BEGIN;
CALL sampled_into_notes(0);
SELECT count(*) FROM local_notes;
CALL sampled_into_notes(100);
SELECT user_id, body FROM local_notes WHERE user_id < 4;
ROLLBACK;
CREATE FUNCTION sampled_by_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.body := concat_ws(' ', (SELECT count(*) FROM users TABLESAMPLE SYSTEM (0)), (SELECT count(*) FROM users u TABLESAMPLE SYSTEM (100) WHERE u.id = NEW.user_id));
    RETURN NEW;
END $$;
CREATE TRIGGER sampled_by_trigger BEFORE INSERT ON local_notes FOR EACH ROW EXECUTE FUNCTION sampled_by_trigger();
BEGIN;
INSERT INTO local_notes (user_id, body) VALUES (5, 'x'), (-5, 'y') RETURNING user_id, body;
DO $$ BEGIN INSERT INTO local_notes (user_id, body) SELECT id, 'z' FROM users TABLESAMPLE BERNOULLI (100) WHERE id = 7; END $$;
SELECT user_id, body FROM local_notes WHERE user_id = 7;
ROLLBACK;
DROP TRIGGER sampled_by_trigger ON local_notes;

-- Bodies that are parsed, sets, cursors, loops.
CREATE FUNCTION sampled_atomic(p real) RETURNS SETOF users STABLE BEGIN ATOMIC
    SELECT u.* FROM users u TABLESAMPLE BERNOULLI (p) WHERE u.id < 6;
END;
SELECT id, name FROM sampled_atomic(100);
SELECT count(*) FROM sampled_atomic(0);
SELECT n.user_id, a.name FROM local_notes n JOIN sampled_atomic(100) a ON a.id = n.user_id;
CREATE FUNCTION sampled_set(p real) RETURNS TABLE (id bigint, name text) LANGUAGE sql STABLE AS
    'SELECT id, name FROM users TABLESAMPLE SYSTEM (p) REPEATABLE (length(''ab'')) WHERE users.id < 9';
SELECT * FROM sampled_set(100);
SELECT count(*) FROM sampled_set(0);
SELECT count(*) FROM orders o WHERE user_id IN (SELECT id FROM sampled_set(100));
CREATE FUNCTION sampled_same() RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    a bigint[];
    b bigint[];
BEGIN
    a := ARRAY(SELECT id FROM users TABLESAMPLE BERNOULLI (50) REPEATABLE (7) ORDER BY 1);
    b := ARRAY(SELECT x.id FROM users x TABLESAMPLE BERNOULLI (50) REPEATABLE (7) ORDER BY 1);
    RETURN a = b AND cardinality(a) < 60;
END $$;
SELECT sampled_same(), sampled_same();
CREATE FUNCTION sampled_loop() RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    r record;
    c CURSOR (p real) FOR SELECT id FROM users TABLESAMPLE SYSTEM (p) WHERE id BETWEEN 10 AND 12;
BEGIN
    FOR r IN SELECT u.id, f.id AS f FROM users u TABLESAMPLE SYSTEM (100) JOIN friends f TABLESAMPLE BERNOULLI (100) ON f.b = u.id WHERE u.id < 9 LOOP
        RETURN NEXT r.id * 1000 + r.f;
    END LOOP;
    FOR r IN c (100) LOOP
        RETURN NEXT r.id;
    END LOOP;
    FOR r IN c (0) LOOP
        RETURN NEXT -r.id;
    END LOOP;
    RETURN QUERY SELECT v FROM (SELECT count(*) AS v FROM users TABLESAMPLE SYSTEM ((SELECT 100 * count(*) FROM friends TABLESAMPLE SYSTEM (0)))) x;
END $$;
SELECT * FROM sampled_loop();
CREATE FUNCTION sampled_cursor(p real) RETURNS refcursor LANGUAGE plpgsql AS $$
DECLARE
    c refcursor := 'sampled_c';
BEGIN
    OPEN c FOR SELECT id FROM users TABLESAMPLE SYSTEM (p) WHERE id < 5 ORDER BY id;
    RETURN c;
END $$;
BEGIN;
--@ repeat: 1
SELECT sampled_cursor(100);
--@ repeat: 1
FETCH ALL FROM sampled_c;
ROLLBACK;
CREATE FUNCTION sampled_locks() RETURNS bigint LANGUAGE sql AS
    'SELECT count(*) FROM (SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id < 5 FOR UPDATE) x';
SELECT sampled_locks();

-- Views that are read by functions, and made by them.
CREATE VIEW sampled_view AS SELECT * FROM users TABLESAMPLE SYSTEM (0);
CREATE FUNCTION sampled_of_view() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM sampled_view); END $$;
SELECT sampled_of_view();
DROP VIEW sampled_view;
DO $$
BEGIN
    CREATE VIEW sampled_view AS SELECT * FROM users TABLESAMPLE SYSTEM (0);
    EXECUTE 'CREATE MATERIALIZED VIEW sampled_rows AS SELECT id FROM users TABLESAMPLE SYSTEM (100) WHERE id < 4';
    EXECUTE 'CREATE FUNCTION sampled_made() RETURNS bigint LANGUAGE sql AS ''SELECT count(*) FROM users TABLESAMPLE BERNOULLI (0)''';
    EXECUTE 'CREATE FUNCTION sampled_made_atomic() RETURNS bigint BEGIN ATOMIC SELECT count(*) FROM users TABLESAMPLE BERNOULLI (0); END';
    RAISE NOTICE '% %', sampled_made(), sampled_made_atomic();
END $$;
SELECT sampled_of_view(), sampled_made(), sampled_made_atomic();
SELECT * FROM sampled_rows;
CREATE TABLE sampled_as AS SELECT sampled_made() AS n;
SELECT * FROM sampled_as;
DROP TABLE sampled_as;

-- Text that EXECUTE runs.
CREATE FUNCTION sampled_text(tab regclass, p text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
    m bigint := 0;
    r record;
BEGIN
    EXECUTE 'SELECT count(*) FROM ' || tab || ' AS t TABLESAMPLE SYSTEM (' || p || ')' INTO n;
    FOR r IN EXECUTE format('SELECT 1 FROM %s TABLESAMPLE BERNOULLI ($1)', tab) USING p::real LOOP
        m := m + 1;
    END LOOP;
    EXECUTE 'DO ''BEGIN PERFORM FROM users TABLESAMPLE SYSTEM (0); IF FOUND THEN RAISE EXCEPTION USING MESSAGE = ''''found''''; END IF; END''';
    RETURN n * 1000 + m;
END $$;
SELECT sampled_text('users', '0'), sampled_text('users', '100'), sampled_text('regions', '100'), sampled_text('local_notes', '0');
--@ error: 2202H
SELECT sampled_text('users', '101');
--@ error: 42704
DO $$ BEGIN EXECUTE 'SELECT FROM users TABLESAMPLE nowhere (1)'; END $$;
CREATE FUNCTION run_text(statement text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE statement INTO n; RETURN n; END $$;
SELECT run_text('SELECT count(*) FROM users');
SELECT run_text('SELECT count(*) FROM local_notes TABLESAMPLE SYSTEM (100) JOIN users ON users.id = user_id');
SELECT run_text('SELECT count(*) FROM regions r TABLESAMPLE SYSTEM (0)');
SELECT run_text('SELECT count(*) FROM users WHERE name = ''users TABLESAMPLE SYSTEM (0)''');
--@ refused: 0A000
SELECT run_text('SELECT count(*) FROM users TABLESAMPLE SYSTEM (0)');
--@ refused: 0A000
SELECT run_text('SELECT count(*) FROM regions JOIN users AS u TABLESAMPLE SYSTEM (0) ON country = code');
--@ refused: 0A000
SELECT query_to_xml('SELECT count(*) FROM users TABLESAMPLE SYSTEM (0)', true, true, '');
CREATE PROCEDURE run_command(statement text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; END $$;
BEGIN;
--@ refused: 0A000
CALL run_command('CREATE VIEW sampled_other AS SELECT * FROM users TABLESAMPLE SYSTEM (0)');
ROLLBACK;
BEGIN;
--@ refused: 0A000
CALL run_command('CREATE TABLE sampled_other AS SELECT * FROM users TABLESAMPLE SYSTEM (0)');
ROLLBACK;
BEGIN;
CALL run_command('PREPARE sampled_plan AS SELECT count(*) FROM users TABLESAMPLE SYSTEM (0)');
--@ refused: 0A000
--@ repeat: 1
SELECT run_text('EXECUTE sampled_plan');
ROLLBACK;
--@ refused: 0A000
DO $$ BEGIN PERFORM ctid FROM users TABLESAMPLE SYSTEM (0); END $$;
--@ refused: 0A000
CREATE FUNCTION sampled_places() RETURNS bigint LANGUAGE sql AS 'SELECT count(tableoid) FROM users TABLESAMPLE SYSTEM (0)';

-- Functions that come past the event triggers.
SET session_replication_role = replica;
CREATE FUNCTION sampled_past() RETURNS SETOF users LANGUAGE sql STABLE AS 'SELECT * FROM users TABLESAMPLE SYSTEM (0)';
RESET session_replication_role;
CREATE VIEW sampled_of_past AS SELECT id FROM sampled_past();
SELECT count(*) FROM sampled_of_past;
DROP VIEW sampled_of_past;
DROP FUNCTION sampled_past;

-- Functions that are older than their tables' distribution, or than their names.
CREATE TABLE sampled_late (k int);
INSERT INTO sampled_late SELECT generate_series(1, 20);
CREATE FUNCTION sampled_before() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM sampled_late TABLESAMPLE SYSTEM (0)';
CREATE FUNCTION sampled_before_set() RETURNS SETOF int STABLE BEGIN ATOMIC SELECT k FROM sampled_late TABLESAMPLE SYSTEM (0); END;
CREATE FUNCTION sampled_name() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM sampled_later TABLESAMPLE SYSTEM (0)); END $$;
-- One that names physical rows stays as it is, and is nothing to the others.
CREATE FUNCTION sampled_positions() RETURNS bigint LANGUAGE sql AS 'SELECT count(ctid) FROM sampled_late TABLESAMPLE SYSTEM (0)';
SELECT sampled_before(), (SELECT count(*) FROM sampled_before_set());
--@ cluster: SELECT create_distributed_table('sampled_late', 'k')
SELECT sampled_before(), (SELECT count(*) FROM sampled_before_set());
--@ refused: 0A000
SELECT sampled_positions();
SELECT count(*) FROM sampled_before_set();
ALTER TABLE sampled_late RENAME TO sampled_later;
SELECT sampled_name(), (SELECT count(*) FROM sampled_before_set());
--@ cluster: SELECT undistribute_table('sampled_later')
SELECT sampled_name(), (SELECT count(*) FROM sampled_before_set());
DROP FUNCTION sampled_before, sampled_before_set, sampled_name, sampled_positions;
DROP TABLE sampled_later;
DROP VIEW sampled_view;
DROP MATERIALIZED VIEW sampled_rows;
DROP FUNCTION sampled_count, sampled_share, sampled_through, sampled_by_trigger, sampled_atomic, sampled_set, sampled_same, sampled_loop,
    sampled_cursor, sampled_locks, sampled_of_view, sampled_made, sampled_made_atomic, sampled_text, run_text;
DROP PROCEDURE sampled_into_notes, run_command;

-- FETCH FIRST, WITH TIES.
--@ ordered
SELECT id FROM users ORDER BY id FETCH FIRST 3 ROWS ONLY;
--@ ordered
SELECT id FROM users ORDER BY id OFFSET 2 ROWS FETCH NEXT ROW ONLY;
SELECT country, id FROM users ORDER BY country FETCH FIRST 2 ROWS WITH TIES;
SELECT country, id FROM users ORDER BY country NULLS FIRST FETCH FIRST 1 ROW WITH TIES;
SELECT user_id, count(*) FROM orders GROUP BY user_id ORDER BY count(*) DESC FETCH FIRST 3 ROWS WITH TIES;
SELECT active FROM users ORDER BY active OFFSET 5 FETCH FIRST 5 ROWS WITH TIES;
SELECT status, id FROM orders ORDER BY status DESC FETCH FIRST (1 + 1) ROWS WITH TIES;
SELECT id FROM orders WHERE user_id = 14 ORDER BY status FETCH FIRST 1 ROWS WITH TIES;
SELECT score FROM users ORDER BY score DESC FETCH FIRST 5 ROWS WITH TIES;
SELECT DISTINCT status FROM orders ORDER BY status FETCH FIRST 2 ROWS WITH TIES;
SELECT count(*) FROM (SELECT id FROM users ORDER BY country FETCH FIRST 3 ROWS WITH TIES) t;
SELECT o.id FROM orders o WHERE o.user_id IN (SELECT id FROM users ORDER BY country FETCH FIRST 2 ROWS WITH TIES);
SELECT code FROM regions ORDER BY tax NULLS FIRST FETCH FIRST 1 ROWS WITH TIES;
SELECT country, id FROM users WHERE false ORDER BY country FETCH FIRST 2 ROWS WITH TIES;
SELECT url FROM clicks ORDER BY url FETCH FIRST 0 ROWS WITH TIES;
SELECT u.country, f.id FROM users u JOIN friends f ON f.b = u.id ORDER BY u.country FETCH FIRST 1 ROW WITH TIES;
(SELECT id FROM users ORDER BY active FETCH FIRST 1 ROW WITH TIES) INTERSECT SELECT user_id FROM orders;
-- One row, by what PostgreSQL computes as the first row of an order.
SELECT 'none' FROM users GROUP BY () HAVING max(score) IS NULL ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT 'some' FROM users GROUP BY () HAVING max(score) IS NOT NULL ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT max(score) FROM users GROUP BY () ORDER BY 1 FETCH FIRST 2 ROWS WITH TIES;
SELECT max(score), min(country) FROM users ORDER BY 1 OFFSET 1 FETCH FIRST 2 ROWS WITH TIES;
SELECT s.x, t.x FROM (SELECT min(score) AS x FROM users ORDER BY 1 FETCH FIRST ROW WITH TIES) s, (SELECT 1 AS x FROM orders GROUP BY ()) t;
SELECT max(score), generate_series(1, 2) FROM users GROUP BY () ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT min(score) + generate_series(1, 2) FROM users;
WITH m AS (SELECT max(score) AS x FROM users ORDER BY 1 FETCH FIRST ROW WITH TIES) SELECT a.x, b.x FROM m a, m b, (SELECT 1 FROM orders GROUP BY ()) t;
WITH m AS NOT MATERIALIZED (SELECT max(score) AS x FROM users ORDER BY 1 FETCH FIRST ROW WITH TIES) SELECT a.x, b.x FROM m a, m b, (SELECT 1 FROM orders GROUP BY ()) t;
SELECT (SELECT min(u.score) FROM users u WHERE u.country > o.status ORDER BY 1 FETCH FIRST ROW WITH TIES), count(*) FROM orders o GROUP BY ROLLUP (1);
SELECT max(score) FROM users GROUP BY GROUPING SETS ((), ()) ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT DISTINCT ON (max(score)) max(score), 1 FROM users GROUP BY () ORDER BY max(score) FETCH FIRST ROW WITH TIES;
BEGIN;
UPDATE users SET score = score WHERE id < 20;
SELECT 'some' FROM users GROUP BY () HAVING max(score) IS NOT NULL ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT s.x FROM (SELECT min(score) AS x FROM users ORDER BY 1 FETCH FIRST ROW WITH TIES) s, (SELECT 1 FROM orders GROUP BY ()) t;
ROLLBACK;
--@ error: 42601
SELECT id FROM users FETCH FIRST 2 ROWS WITH TIES;
--@ error: 42601
SELECT id FROM users ORDER BY id FETCH FIRST 2 ROWS WITH TIES FOR UPDATE SKIP LOCKED;

-- LIMIT and OFFSET by expressions and parameters.
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 2 + 1 OFFSET 4 - 1;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT ALL OFFSET 57;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT NULL OFFSET 57;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT (SELECT count(*) / 10 FROM users);
--@ ordered
SELECT id FROM users ORDER BY id OFFSET (SELECT max(user_id) FROM orders);
--@ params: 3, 2
--@ params: 0, 0
--@ params: NULL, 58
--@ ordered
SELECT id FROM users ORDER BY id LIMIT $1::bigint OFFSET $2::bigint;
--@ params: 2
--@ ordered
SELECT country, count(*) FROM users GROUP BY country ORDER BY country NULLS LAST LIMIT $1::int;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT '2'::int;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 1.5;
--@ error: 2201W
SELECT id FROM users ORDER BY id LIMIT -1;
--@ error: 2201X
SELECT id FROM users ORDER BY id OFFSET -1;
--@ error: 42P10
SELECT id FROM users ORDER BY id LIMIT id;
SELECT count(*) FROM (SELECT id FROM users LIMIT 7) t;
SELECT count(*) FROM (SELECT id FROM users OFFSET 7) t;
SELECT count(*) FROM (SELECT id FROM users LIMIT 0) t;
SELECT count(*) FROM (SELECT user_id FROM clicks LIMIT 11 OFFSET 140) t;
SELECT max(id) FROM (SELECT id FROM users ORDER BY id LIMIT 7) t;
--@ ordered
SELECT DISTINCT ON (country) country, id FROM users ORDER BY country, id LIMIT 3;
--@ ordered
SELECT DISTINCT ON (user_id) user_id, id, total FROM orders ORDER BY user_id, total DESC NULLS LAST, id LIMIT 6 OFFSET 1;
--@ ordered
SELECT id, score FROM users ORDER BY score * -1 NULLS FIRST, id LIMIT 9;
--@ ordered
SELECT id FROM users ORDER BY length(name) DESC NULLS LAST, name, id LIMIT 9;
--@ ordered
SELECT id AS x FROM users ORDER BY x DESC LIMIT 2;
--@ ordered
SELECT id, name COLLATE "C" FROM users ORDER BY 2, 1 LIMIT 8;
--@ ordered
SELECT u.id FROM users u ORDER BY (SELECT count(*) FROM orders o WHERE o.user_id = u.id) DESC, u.id LIMIT 4;
--@ ordered
SELECT id FROM users ORDER BY country USING >, id LIMIT 6;
