--@ include: schema.sql
-- What foreign keys do to other rows, where one statement changes several tables, or one table row by row: cascades over levels, to the table itself, SET NULL, SET DEFAULT, updates of keys; in CTEs, functions, loops, with savepoints, triggers, ON CONFLICT and MERGE.

CREATE TABLE a (k int, id int, n int, PRIMARY KEY (k, id));
CREATE TABLE b (k int, id int, a int, n int DEFAULT 0, PRIMARY KEY (k, id), CONSTRAINT b_a FOREIGN KEY (k, a) REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE c (k int, id int, b int DEFAULT 1, n int, note text, PRIMARY KEY (k, id), CONSTRAINT c_b FOREIGN KEY (k, b) REFERENCES b ON DELETE SET NULL (b) ON UPDATE CASCADE);
CREATE TABLE d (k int, id int, b int DEFAULT 1, PRIMARY KEY (k, id), CONSTRAINT d_b FOREIGN KEY (k, b) REFERENCES b ON DELETE SET DEFAULT (b));
CREATE TABLE loc (x int PRIMARY KEY, y int);
CREATE TABLE seen (what text, n int);
CREATE TABLE ref (id int PRIMARY KEY, word text);
CREATE TABLE words (k int, id int, w int DEFAULT 1 REFERENCES ref ON DELETE SET DEFAULT ON UPDATE CASCADE, PRIMARY KEY (k, id));
--@ cluster: SELECT create_reference_table('ref')
--@ cluster: SELECT create_distributed_table('a', 'k'), create_distributed_table('b', 'k'), create_distributed_table('c', 'k'), create_distributed_table('d', 'k'), create_distributed_table('words', 'k')
INSERT INTO a SELECT k, i, k * 10 + i FROM generate_series(1, 6) k, generate_series(1, 4) i;
INSERT INTO b SELECT k, i, (i + 1) / 2, i FROM generate_series(1, 6) k, generate_series(1, 8) i;
INSERT INTO c SELECT k, i, (i + 1) / 2, i, 'c' || i FROM generate_series(1, 6) k, generate_series(1, 16) i;
INSERT INTO d SELECT k, i, 1 + i % 4 FROM generate_series(1, 6) k, generate_series(1, 6) i;
INSERT INTO loc SELECT i, i * i FROM generate_series(1, 5) i;
INSERT INTO ref SELECT i, 'w' || i FROM generate_series(1, 5) i;
INSERT INTO words SELECT k, i, i FROM generate_series(1, 6) k, generate_series(1, 5) i;

-- Rows that are found with a local table.
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2;
SELECT count(*), sum(n) FROM a;
SELECT count(*), sum(n) FROM b;
SELECT count(*), count(b), sum(n) FROM c;
ROLLBACK;
--@ error: 23503
--@ loose: which row comes first
DELETE FROM a USING loc WHERE a.id = x AND x = 1 RETURNING a.*;
BEGIN;
DELETE FROM d;
DELETE FROM a USING loc WHERE a.id = x AND x < 3 RETURNING a.*, y;
SELECT k, id, a FROM b ORDER BY 1, 2;
SELECT k, id, b, note FROM c ORDER BY 1, 2;
ROLLBACK;
BEGIN;
DELETE FROM b USING loc WHERE b.id = x + 1 RETURNING b.*;
SELECT * FROM d ORDER BY 1, 2;
SELECT k, id, b FROM c ORDER BY 1, 2;
ROLLBACK;
BEGIN;
UPDATE a SET id = a.id + 10, n = y FROM loc WHERE a.id = x AND x IN (2, 3) RETURNING a.*, x;
SELECT * FROM a ORDER BY 1, 2;
SELECT k, id, a FROM b ORDER BY 1, 2;
ROLLBACK;
--@ error: 23503
--@ loose: which row comes first
UPDATE b SET id = b.id + 100 FROM loc WHERE b.id = x AND x = 2;
BEGIN;
DELETE FROM d;
UPDATE b SET id = b.id + 100 FROM loc WHERE b.id = x RETURNING b.*;
SELECT k, id, b FROM c ORDER BY 1, 2;
UPDATE b SET id = id + 500 WHERE id > 50 AND k = 1;
SELECT k, id, b FROM c WHERE k = 1 ORDER BY 1, 2;
ROLLBACK;
-- A row that is found twice is changed once.
BEGIN;
DELETE FROM a USING loc l, loc m WHERE a.id = l.x AND l.x > 2 AND m.x < 3;
SELECT count(*) FROM b;
ROLLBACK;

-- Both sides of a key in one statement.
BEGIN;
WITH gone AS (DELETE FROM a WHERE id IN (SELECT x FROM loc WHERE x > 2) RETURNING k, id) UPDATE b SET n = b.n + 100 FROM gone WHERE b.k = gone.k AND b.a = gone.id RETURNING b.*;
SELECT k, id, a, n FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a WHERE id IN (SELECT x FROM loc WHERE x > 2) RETURNING k, id) UPDATE c SET n = c.n + 100, note = note || '!' FROM gone, loc WHERE c.k = gone.k AND c.id = gone.id + x * 2 RETURNING c.k, c.id, c.b, c.n, c.note;
SELECT * FROM c ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM b WHERE id IN (SELECT x FROM loc WHERE x > 2) RETURNING k, id) DELETE FROM a USING gone WHERE a.k = gone.k AND a.id = gone.id RETURNING a.*;
SELECT * FROM b ORDER BY 1, 2;
SELECT k, id, b FROM c ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a WHERE id = 3 RETURNING k, id) UPDATE c SET n = c.n + 100 FROM gone, loc WHERE c.k = gone.k AND c.id = gone.id + x * 2 RETURNING c.k, c.id, c.b, c.n;
SELECT * FROM c ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a WHERE id > 2 RETURNING k, id), x AS (UPDATE b SET n = -1 FROM loc WHERE b.id = x RETURNING b.k, b.id, b.a, b.n) SELECT * FROM x JOIN gone USING (k);
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH moved AS (UPDATE a SET id = id + 20 WHERE id IN (SELECT x FROM loc) RETURNING k, id) SELECT m.k, m.id, (SELECT count(*) FROM b WHERE b.k = m.k AND b.a = m.id), (SELECT count(*) FROM b WHERE b.k = m.k AND b.a = m.id - 20) FROM moved m;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH moved AS (UPDATE a SET id = id + 20 WHERE id IN (SELECT x FROM loc) RETURNING k, id) UPDATE b SET n = b.n * 2 FROM moved WHERE b.k = moved.k AND b.a = moved.id - 20 RETURNING b.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
-- A child goes over to a parent that changes in the same statement.
BEGIN;
WITH moved AS (UPDATE a SET id = 30 WHERE id = 4 AND EXISTS (SELECT FROM loc WHERE x = id) RETURNING k, id) UPDATE b SET a = moved.id FROM moved WHERE b.k = moved.k AND b.id < 3 RETURNING b.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
-- NO ACTION looks when the statement has ended.
ALTER TABLE b DROP CONSTRAINT b_a;
ALTER TABLE b ADD CONSTRAINT b_a FOREIGN KEY (k, a) REFERENCES a;
BEGIN;
DELETE FROM d;
WITH gone AS (DELETE FROM a WHERE id IN (SELECT x FROM loc WHERE x > 2) RETURNING k, id) DELETE FROM b USING gone WHERE b.k = gone.k AND b.a = gone.id RETURNING b.*;
SELECT count(*) FROM a;
SELECT count(*) FROM b;
ROLLBACK;
--@ error: 23503
--@ loose: which row comes first
WITH gone AS (DELETE FROM a WHERE id IN (SELECT x FROM loc WHERE x > 2) RETURNING k, id) DELETE FROM b USING gone WHERE b.k = gone.k AND b.a = gone.id AND b.id <> 7 RETURNING b.*;
BEGIN;
WITH moved AS (UPDATE a SET id = a.id + 50 FROM loc WHERE x = a.id RETURNING k, a.id) UPDATE b SET a = b.a + 50 FROM moved WHERE b.k = moved.k AND b.a = moved.id - 50;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
ALTER TABLE b DROP CONSTRAINT b_a;
ALTER TABLE b ADD CONSTRAINT b_a FOREIGN KEY (k, a) REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED;
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 RETURNING a.k, a.id;
SELECT count(*) FROM b;
UPDATE b SET a = 77 FROM loc WHERE b.id = x AND x = 1;
INSERT INTO a SELECT k, 77 FROM generate_series(1, 6) k;
COMMIT;
SELECT count(*) FROM b WHERE a = 77;
UPDATE b SET a = 1 WHERE a = 77;
DELETE FROM a WHERE id = 77;
BEGIN;
UPDATE b SET a = 78 FROM loc WHERE b.id = x AND x = 1;
--@ error: 23503
--@ loose: which row comes first
COMMIT;
INSERT INTO a SELECT k, i, k * 10 + i FROM generate_series(1, 6) k, generate_series(3, 4) i;
INSERT INTO b SELECT k, i, (i + 1) / 2, i FROM generate_series(1, 6) k, generate_series(5, 8) i;

-- A table that refers to itself.
CREATE TABLE tree (k int, id int, up int, n int DEFAULT 0, PRIMARY KEY (k, id), CONSTRAINT up FOREIGN KEY (k, up) REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE);
--@ cluster: SELECT create_distributed_table('tree', 'k')
INSERT INTO tree SELECT k, i, nullif(i / 2, 0), i FROM generate_series(1, 4) k, generate_series(1, 15) i;
BEGIN;
DELETE FROM tree USING loc WHERE tree.id = x AND x > 1;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
DELETE FROM tree t USING loc WHERE t.id >= x AND x = 2 RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
UPDATE tree t SET id = t.id + 100, n = x FROM loc WHERE t.id = x RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
UPDATE tree t SET id = t.id + 100, up = t.up + 100 FROM loc WHERE x = 1;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM tree WHERE id IN (SELECT x FROM loc WHERE x > 3) RETURNING k, id) UPDATE tree t SET n = -t.n FROM gone g WHERE t.k = g.k AND t.up = g.id RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM tree WHERE id IN (SELECT x FROM loc WHERE x > 3) RETURNING k, id) DELETE FROM tree t USING gone g WHERE t.k = g.k AND t.up = g.id RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM tree WHERE id IN (SELECT x FROM loc WHERE x > 3) RETURNING k, id) DELETE FROM tree t USING gone g WHERE t.k = g.k AND t.id = g.id RETURNING t.*;
SELECT count(*) FROM tree;
ROLLBACK;
INSERT INTO tree SELECT k, i, i / 2, i FROM generate_series(1, 4) k, generate_series(16, 400) i;
BEGIN;
DELETE FROM tree USING loc WHERE tree.id >= x AND x = 2;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
UPDATE tree SET n = tree.n + x FROM loc WHERE x = 3;
SELECT count(*), sum(n) FROM tree;
ROLLBACK;
ALTER TABLE tree DROP CONSTRAINT up;
ALTER TABLE tree ADD CONSTRAINT up FOREIGN KEY (k, up) REFERENCES tree;
BEGIN;
DELETE FROM tree USING loc WHERE tree.id >= x AND x = 2;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
--@ error: 23503
--@ loose: which row comes first
DELETE FROM tree USING loc WHERE tree.id = x AND x = 2;
DELETE FROM tree WHERE id > 15;
ALTER TABLE tree DROP CONSTRAINT up;
ALTER TABLE tree ADD CONSTRAINT up FOREIGN KEY (k, up) REFERENCES tree ON DELETE SET NULL (up) ON UPDATE CASCADE;
BEGIN;
DELETE FROM tree t USING loc WHERE t.id = x RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM tree USING loc WHERE id = x AND x > 2 RETURNING k, id) UPDATE tree t SET n = t.n * 10 FROM gone WHERE t.k = gone.k AND t.up = gone.id RETURNING t.*;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;

-- In functions and blocks.
BEGIN;
DO $$ BEGIN DELETE FROM a WHERE id IN (SELECT x FROM loc WHERE x > 2); END $$;
SELECT count(*) FROM b;
SELECT count(*), count(b) FROM c;
ROLLBACK;
BEGIN;
DO $$
DECLARE m int; r record;
BEGIN
    DELETE FROM a USING loc WHERE a.id = x AND x > 2;
    GET DIAGNOSTICS m = ROW_COUNT;
    RAISE NOTICE '% rows', m;
    SELECT count(*) INTO m FROM b;
    RAISE NOTICE '% left', m;
    FOR r IN DELETE FROM a USING loc WHERE a.id = x AND x = 2 RETURNING a.k, a.id LOOP
        SELECT count(*) INTO m FROM b WHERE k = r.k;
        IF r.k = 1 THEN RAISE NOTICE 'now %', m; END IF;
    END LOOP;
    BEGIN
        UPDATE a SET id = a.id + 50 FROM loc WHERE x = a.id;
        SELECT count(*) INTO m FROM b WHERE a > 50;
        RAISE NOTICE 'moved %', m;
        RAISE EXCEPTION 'back';
    EXCEPTION WHEN raise_exception THEN
        SELECT count(*) INTO m FROM b WHERE a > 50;
        RAISE NOTICE 'moved %', m;
    END;
END $$;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
--@ refused: 0A000
DO $$
BEGIN
    UPDATE b SET a = 99 FROM loc WHERE x = b.a;
    SET CONSTRAINTS ALL IMMEDIATE;
EXCEPTION WHEN foreign_key_violation THEN
    RAISE NOTICE 'refused %', SQLERRM LIKE '%b_a%';
END $$;
ROLLBACK;
ALTER TABLE b DROP CONSTRAINT b_a;
ALTER TABLE b ADD CONSTRAINT b_a FOREIGN KEY (k, a) REFERENCES a ON DELETE CASCADE ON UPDATE CASCADE;
BEGIN;
DO $$
DECLARE m int; total int;
BEGIN
    WITH gone AS (DELETE FROM a WHERE id = 4 RETURNING k, id) SELECT count(*), sum((SELECT count(*) FROM b JOIN loc ON b.id = x + 3 WHERE b.k = gone.k)) INTO m, total FROM gone;
    RAISE NOTICE '% %', m, total;
    SELECT count(*) INTO m FROM b;
    RAISE NOTICE '%', m;
END $$;
ROLLBACK;
BEGIN;
DO $$
DECLARE m int; total int;
BEGIN
    WITH gone AS (DELETE FROM a WHERE id = 4 RETURNING k, id), more AS (UPDATE b SET n = 1000 FROM gone WHERE gone.k = b.k AND b.a = gone.id RETURNING b.n) SELECT count(*), sum(n) INTO m, total FROM more;
    RAISE NOTICE '% %', m, total;
    SELECT count(*) INTO m FROM b;
    RAISE NOTICE '%', m;
END $$;
ROLLBACK;
BEGIN;
--@ refused: 0A000
DO $$ BEGIN WITH gone AS (DELETE FROM a WHERE id = 4 RETURNING k, id) UPDATE b SET a = 1 FROM gone WHERE gone.k = b.k AND b.a = gone.id; END $$;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a WHERE id = 4 RETURNING k, id) UPDATE b SET a = 1 FROM gone, loc WHERE gone.k = b.k AND b.a = gone.id AND x = 1 RETURNING b.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
CREATE FUNCTION drop_a(v int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE m int; BEGIN DELETE FROM a WHERE id = v; GET DIAGNOSTICS m = ROW_COUNT; RETURN m; END $$;
BEGIN;
SELECT x, drop_a(x) FROM loc WHERE x IN (3, 4) ORDER BY x;
SELECT count(*) FROM b;
ROLLBACK;
CREATE FUNCTION drop_sql(v int) RETURNS SETOF int LANGUAGE sql AS $$ DELETE FROM a USING loc WHERE a.id = x AND x >= v RETURNING a.k * 100 + a.id $$;
BEGIN;
SELECT * FROM drop_sql(3) ORDER BY 1;
SELECT count(*) FROM b;
SAVEPOINT s;
DELETE FROM d;
SELECT sum(drop_sql) FROM drop_sql(1);
SELECT count(*) FROM b;
ROLLBACK TO s;
SELECT count(*) FROM b;
ROLLBACK;

-- Inserted in the same statement.
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 RETURNING a.*) INSERT INTO seen SELECT 'a' || k, id FROM gone;
SELECT what, n FROM seen ORDER BY 1, 2;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 RETURNING a.*) INSERT INTO a SELECT k, id + 60, n FROM gone RETURNING *;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 RETURNING a.*) INSERT INTO b (k, id, a) SELECT k, id + 60, 1 FROM gone RETURNING *;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
INSERT INTO a SELECT 1, x + 1, y FROM loc ON CONFLICT (k, id) DO UPDATE SET id = a.id + 40;
SELECT * FROM a WHERE k = 1 ORDER BY 1, 2;
SELECT * FROM b WHERE k = 1 ORDER BY 1, 2;
ROLLBACK;
BEGIN;
MERGE INTO a USING loc ON a.id = x AND x > 2 WHEN MATCHED AND x = 3 THEN UPDATE SET id = a.id + 70 WHEN MATCHED THEN DELETE;
SELECT * FROM a ORDER BY 1, 2;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
MERGE INTO tree t USING loc ON t.id = x + (SELECT 0 FROM loc WHERE x = 1) WHEN MATCHED AND x < 3 THEN DELETE WHEN MATCHED THEN UPDATE SET id = t.id + 70, n = y;
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;

-- With triggers.
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', TG_WHEN, TG_OP, TG_TABLE_NAME; RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE TRIGGER note_c AFTER UPDATE ON c FOR EACH ROW WHEN (NEW.k = 1 AND NEW.b IS NULL) EXECUTE FUNCTION note_row();
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x = 4;
SELECT count(b) FROM c;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM b USING loc WHERE b.id = x + 4 RETURNING k, id) UPDATE c SET n = -c.n FROM gone WHERE c.k = gone.k AND c.b = gone.id;
SELECT * FROM c ORDER BY 1, 2;
ROLLBACK;
DROP TRIGGER note_c ON c;
CREATE TRIGGER note_b BEFORE DELETE ON b FOR EACH ROW WHEN (OLD.k = 1) EXECUTE FUNCTION note_row();
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x = 4;
SELECT count(*) FROM b;
ROLLBACK;
CREATE FUNCTION keep_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.id = 8 THEN RETURN NULL; END IF; RETURN OLD; END $$;
CREATE TRIGGER keep_b BEFORE DELETE ON b FOR EACH ROW EXECUTE FUNCTION keep_row();
BEGIN;
DELETE FROM b USING loc WHERE b.id = x + 4;
SELECT count(*) FROM b;
ROLLBACK;
DROP TRIGGER note_b ON b;
DROP TRIGGER keep_b ON b;

-- To and from reference tables.
BEGIN;
DELETE FROM ref USING loc WHERE ref.id = x AND x > 3;
SELECT w, count(*) FROM words GROUP BY w ORDER BY w;
ROLLBACK;
BEGIN;
UPDATE ref SET id = id + 10 WHERE id > 2;
SELECT w, count(*) FROM words GROUP BY w ORDER BY w;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM ref USING loc WHERE ref.id = x AND x > 3 RETURNING id) UPDATE words SET w = w - 3 FROM gone WHERE w = gone.id RETURNING words.*;
SELECT w, count(*) FROM words GROUP BY w ORDER BY w;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM ref WHERE id = 5 RETURNING id) SELECT (SELECT count(*) FROM gone), count(*) FROM words WHERE w = 5;
SELECT w, count(*) FROM words GROUP BY w ORDER BY w;
ROLLBACK;
BEGIN;
DO $$ BEGIN UPDATE ref SET id = id + 10 WHERE id IN (SELECT x FROM loc WHERE x > 3); UPDATE words SET w = 1 FROM loc WHERE w = x + 10; END $$;
SELECT w, count(*) FROM words GROUP BY w ORDER BY w;
ROLLBACK;

-- Types of all kinds in what waits for the end.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE kinds_of (k int, id int, v varchar(4), c char(5), num numeric(8, 2), f float8, t timestamptz, i interval, b bytea, j jsonb, arr int[], m mood, bits bit(3), x text, g int GENERATED ALWAYS AS (id * 2) STORED, up int, PRIMARY KEY (k, id), FOREIGN KEY (k, up) REFERENCES kinds_of ON DELETE CASCADE);
--@ cluster: SELECT create_distributed_table('kinds_of', 'k')
INSERT INTO kinds_of (k, id, v, c, num, f, t, i, b, j, arr, m, bits, x, up) SELECT k, i, 'v' || i, 'c', i / 3.0, i / 7.0, '2024-02-03 04:05:06+00'::timestamptz + i * interval '1 hour', i * interval '1 day 2 hours', decode('00ff', 'hex'), '{"a": 1}', ARRAY[i, NULL], 'ok', B'101', E'it''s \\ ' || i, nullif(i - 1, 0) FROM generate_series(1, 3) k, generate_series(1, 5) i;
BEGIN;
SET LOCAL datestyle = 'German, DMY';
SET LOCAL intervalstyle = 'iso_8601';
UPDATE kinds_of SET v = 'w' || x.x, c = 'd', num = num * 2, f = f * 3, t = t + interval '1 day', i = i * 2, b = decode('aa', 'hex'), j = '[1, {"b": null}]', arr = ARRAY[[1, 2], [x.x, 4]], m = 'sad', bits = B'010', x = kinds_of.x || '''\', up = NULL FROM loc x WHERE id = x.x RETURNING kinds_of.*;
SELECT * FROM kinds_of ORDER BY 1, 2;
UPDATE kinds_of SET v = NULL, c = NULL, num = NULL, f = 'NaN', t = 'infinity', i = NULL, b = NULL, j = 'null', arr = '{}', m = NULL, bits = NULL, x = NULL FROM loc x WHERE id = x.x;
SELECT * FROM kinds_of ORDER BY 1, 2;
DELETE FROM kinds_of USING loc x WHERE id = x.x AND x.x = 2 RETURNING kinds_of.*;
ROLLBACK;
BEGIN;
DELETE FROM kinds_of USING loc x WHERE id = x.x AND x.x > 1 RETURNING 1;
SELECT count(*) FROM kinds_of;
ROLLBACK;
BEGIN;
DELETE FROM kinds_of USING loc x WHERE id = x.x AND x.x > 1 RETURNING kinds_of.g, kinds_of.t;
UPDATE kinds_of SET up = 1 FROM loc x WHERE id = x.x RETURNING kinds_of.g, kinds_of.up;
ROLLBACK;
--@ error: 22P02
--@ loose: which row comes first
UPDATE kinds_of SET m = x.y::text::mood FROM loc x WHERE id = x.x;
-- What stands around such a statement.
CREATE FUNCTION seen_it(v int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES ('seen', v); RETURN true; END $$;
CREATE FUNCTION fails(v int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO c (k, id, b) VALUES (v, 99, NULL); RAISE EXCEPTION 'no'; EXCEPTION WHEN raise_exception THEN RETURN true; END $$;
CREATE FUNCTION adds(v int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN INSERT INTO c (k, id, b) VALUES (v, 99, NULL) ON CONFLICT DO NOTHING; RETURN true; END $$;
CREATE FUNCTION count_b() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM b $$;
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 AND seen_it(a.k);
SELECT count(*) FROM seen;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 AND fails(a.k);
SELECT count(*) FROM a;
SELECT count(*) FROM b;
SELECT count(*) FROM c WHERE id = 99;
ROLLBACK;
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 AND adds(a.k);
SELECT count(*) FROM a;
SELECT count(*) FROM b;
SELECT count(*) FROM c WHERE id = 99;
ROLLBACK;
BEGIN;
--@ refused: 0A000
DELETE FROM tree t USING loc WHERE t.id >= x AND x = 2 AND fails(t.k) RETURNING t.*;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x > 3 RETURNING a.k) SELECT k, count_b() FROM gone;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
--@ refused: 0A000
DELETE FROM a USING loc WHERE a.id = x AND x > 3 RETURNING a.k, count_b();
ROLLBACK;
CREATE VIEW va AS SELECT a.k, a.id, a.n FROM a WHERE n > 11 WITH CHECK OPTION;
BEGIN;
DELETE FROM d;
DELETE FROM va USING loc WHERE va.id = x RETURNING va.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
UPDATE va SET n = va.n + x, id = va.id + 40 FROM loc WHERE va.id = x RETURNING va.*;
SELECT * FROM b ORDER BY 1, 2;
--@ error: 44000
--@ loose: which row comes first
UPDATE va SET n = x FROM loc WHERE x = 1;
ROLLBACK;
DROP VIEW va;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 RETURNING a.k, a.id;
SAVEPOINT s;
UPDATE a SET id = a.id + 20 FROM loc WHERE a.id = x RETURNING a.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK TO s;
SELECT * FROM b ORDER BY 1, 2;
COMMIT;
SELECT count(*) FROM c;
INSERT INTO a SELECT k, i, k * 10 + i FROM generate_series(1, 6) k, generate_series(3, 4) i;
INSERT INTO b SELECT k, i, (i + 1) / 2, i FROM generate_series(1, 6) k, generate_series(5, 8) i;
UPDATE c SET b = (id + 1) / 2;
BEGIN;
DO $$
DECLARE r record; m int := 0; rows int;
BEGIN
    FOR r IN SELECT a.k, a.id FROM a JOIN loc ON a.id = x ORDER BY 1, 2 LOOP
        DELETE FROM a WHERE k = r.k AND id = r.id AND EXISTS (SELECT FROM loc WHERE x = r.id AND x > 2);
        GET DIAGNOSTICS rows = ROW_COUNT;
        m := m + rows;
        UPDATE b SET n = n + 1 FROM loc WHERE b.k = r.k AND b.a = x;
    END LOOP;
    SELECT count(*), sum(b.n) INTO r FROM b;
    RAISE NOTICE '% %', m, r;
END $$;
ROLLBACK;
BEGIN;
DECLARE walk CURSOR FOR SELECT * FROM a WHERE id > 2 ORDER BY k, id;
FETCH 1 FROM walk;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x > 2 RETURNING a.*) SELECT count(*) FROM gone;
FETCH 3 FROM walk;
SELECT count(*) FROM b;
ROLLBACK;
-- Rows that come with those that change.
BEGIN;
WITH x AS (INSERT INTO a SELECT k, 70 + x, 0 FROM loc, generate_series(1, 3) k RETURNING *) INSERT INTO b (k, id, a) SELECT k, id, id FROM x RETURNING *;
SELECT count(*) FROM b;
ROLLBACK;
BEGIN;
WITH x AS (INSERT INTO a SELECT k, 70 + x, 0 FROM loc, generate_series(1, 3) k RETURNING *) UPDATE b SET a = x.id FROM x WHERE b.k = x.k AND b.id + 70 = x.id RETURNING b.*;
SELECT * FROM b ORDER BY 1, 2;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 RETURNING a.*), new AS (INSERT INTO a SELECT k, id, -n FROM gone RETURNING *) SELECT count(*) FROM new;
SELECT count(*) FROM b;
SELECT count(*), sum(n) FROM a;
ROLLBACK;
BEGIN;
MERGE INTO tree t USING loc ON t.k = x AND t.id = 4 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x, 4, NULL, 7);
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
-- A trigger of a local table that looks when the statement has ended.
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% b', (SELECT count(*) FROM b); RETURN NULL; END $$;
CREATE TRIGGER look AFTER INSERT ON seen EXECUTE FUNCTION look();
BEGIN;
--@ refused: 0A000
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 RETURNING a.*) INSERT INTO seen SELECT 'a' || k, id FROM gone;
ROLLBACK;
DROP TRIGGER look ON seen;
-- Triggers that see rows when they have changed.
CREATE FUNCTION saw() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % %', TG_OP, OLD.k, OLD.id; RETURN NULL; END $$;
CREATE TRIGGER saw_tree AFTER UPDATE OR DELETE ON tree FOR EACH ROW EXECUTE FUNCTION saw();
CREATE TRIGGER saw_b AFTER UPDATE OR DELETE ON b FOR EACH ROW EXECUTE FUNCTION saw();
BEGIN;
DELETE FROM tree t USING loc WHERE t.id = x AND x IN (1, 2) RETURNING t.*;
ROLLBACK;
ALTER TABLE tree DROP CONSTRAINT up;
ALTER TABLE tree ADD CONSTRAINT up FOREIGN KEY (k, up) REFERENCES tree;
BEGIN;
DELETE FROM tree t USING loc WHERE t.id >= x AND x = 4;
ROLLBACK;
ALTER TABLE tree DROP CONSTRAINT up;
ALTER TABLE tree ADD CONSTRAINT up FOREIGN KEY (k, up) REFERENCES tree ON DELETE CASCADE;
BEGIN;
DELETE FROM tree t USING loc WHERE t.id >= x AND x = 4 AND t.k < 3;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM a USING loc WHERE a.id = x AND x = 4 AND a.k = 1 RETURNING a.*) UPDATE b SET n = 50 FROM gone WHERE b.k = gone.k AND b.a = gone.id RETURNING b.*;
SELECT * FROM b WHERE k = 1 ORDER BY 1, 2;
ROLLBACK;
DROP TRIGGER saw_tree ON tree;
-- Of another owner.
CREATE ROLE fka_reader;
GRANT SELECT, UPDATE (n, id), DELETE ON a TO fka_reader;
GRANT SELECT ON loc TO fka_reader;
SET ROLE fka_reader;
BEGIN;
DELETE FROM a USING loc WHERE a.id = x AND x > 2 RETURNING a.*;
ROLLBACK;
BEGIN;
UPDATE a SET id = a.id + 30 FROM loc WHERE a.id = x AND x > 2 RETURNING a.*;
ROLLBACK;
RESET ROLE;
CREATE FUNCTION sweep() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ DECLARE m int; BEGIN DELETE FROM tree t USING loc WHERE t.id = x AND x < 4; GET DIAGNOSTICS m = ROW_COUNT; RETURN m; END $$;
BEGIN;
SELECT sweep();
SELECT * FROM tree ORDER BY 1, 2;
ROLLBACK;
REVOKE ALL ON a, loc FROM fka_reader;
DROP FUNCTION sweep();
DROP ROLE fka_reader;
-- Tables that were distributed before a key led to them.
CREATE TABLE elder (k int PRIMARY KEY, n int);
CREATE TABLE other (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('elder', 'k'), create_distributed_table('other', 'k')
CREATE TABLE younger (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('younger', 'k')
ALTER TABLE younger ADD FOREIGN KEY (k) REFERENCES elder ON DELETE CASCADE;
BEGIN;
WITH made AS (INSERT INTO elder SELECT x, y FROM loc RETURNING k) INSERT INTO younger SELECT k, k * 2 FROM made RETURNING *;
SELECT * FROM elder ORDER BY 1;
SELECT * FROM younger ORDER BY 1;
ROLLBACK;
--@ error: 23503
--@ loose: which row comes first
WITH made AS (INSERT INTO elder SELECT x, y FROM loc RETURNING k) INSERT INTO younger SELECT k + 10, k FROM made;
ALTER TABLE other ADD FOREIGN KEY (k) REFERENCES younger;
INSERT INTO elder VALUES (50, 1);
BEGIN;
WITH made AS (INSERT INTO younger SELECT 50, x FROM loc WHERE x = 1 RETURNING k) INSERT INTO other SELECT k, k FROM made RETURNING *;
ROLLBACK;
BEGIN;
WITH made AS (INSERT INTO elder SELECT x, y FROM loc RETURNING k), more AS (INSERT INTO younger SELECT k, k FROM made RETURNING k) INSERT INTO other SELECT k, k FROM more RETURNING *;
SELECT * FROM younger ORDER BY 1;
ROLLBACK;
DROP TABLE other, younger, elder;
DROP TABLE kinds_of, tree, d, c, b, a, words, ref, loc, seen;
DROP TYPE mood;
DROP FUNCTION note_row, keep_row, drop_a, drop_sql, seen_it, fails, adds, count_b, look, saw;
-- What a key does to a local table's rows fires its triggers, which find names as the statement does.
CREATE SCHEMA "in here";
SET search_path = "in here", public;
CREATE TABLE invoice (id int PRIMARY KEY, total int DEFAULT 0);
INSERT INTO invoice SELECT g, g FROM generate_series(1, 6) g;
CREATE TABLE line (invoice int REFERENCES invoice ON DELETE CASCADE ON UPDATE SET NULL, amount int);
CREATE TABLE heard (what text);
CREATE FUNCTION total() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO heard VALUES (TG_OP || ' ' || coalesce(OLD.invoice, 0) || ' in ' || current_setting('search_path'));
    RETURN NULL;
END $$;
CREATE TRIGGER total AFTER DELETE OR UPDATE ON line FOR EACH ROW EXECUTE FUNCTION total();
--@ cluster: SELECT create_distributed_table('invoice', 'id')
INSERT INTO line SELECT g % 3 + 1, g FROM generate_series(1, 9) g;
DELETE FROM invoice WHERE id = 1;
SELECT * FROM invoice;
SELECT * FROM line;
BEGIN;
UPDATE invoice SET total = 7 WHERE id = 5;
SAVEPOINT s;
DELETE FROM invoice WHERE id IN (2, 5);
SELECT * FROM invoice;
ROLLBACK TO s;
DELETE FROM invoice WHERE id = 3;
COMMIT;
SELECT * FROM invoice;
SELECT * FROM heard;
RESET search_path;
DELETE FROM "in here".invoice WHERE id = 6;
--@ error: 42P01
DELETE FROM "in here".invoice WHERE id = 2;
ALTER FUNCTION "in here".total() SET search_path = "in here";
DELETE FROM "in here".invoice WHERE id = 2;
SELECT * FROM "in here".heard;
SELECT * FROM "in here".line;
-- A prepared statement is what a table is made of, explained or not.
PREPARE of_one (int) AS SELECT id, total FROM "in here".invoice WHERE id = $1;
DO $$ BEGIN PERFORM 1; END $$;
CREATE TABLE "in here".one AS EXECUTE of_one (3);
CREATE TABLE "in here".four AS EXECUTE of_one (4);
SELECT * FROM "in here".four;
DEALLOCATE of_one;
-- What is written otherwise may be the same key.
CREATE COLLATION any_case_of_key (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE word (x text COLLATE any_case_of_key PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('word', 'x')
CREATE TABLE said (a int, b text COLLATE any_case_of_key REFERENCES word (x));
INSERT INTO word VALUES ('abc', 1), ('def', 2), ('ghi', 3);
INSERT INTO said VALUES (1, 'abc'), (2, 'ABC'), (3, 'def');
UPDATE word SET x = 'ABC' WHERE x = 'abc';
--@ error: 23503
UPDATE word SET x = 'ABCD' WHERE x = 'abc';
UPDATE word SET x = upper(x);
SELECT * FROM word ORDER BY n;
DROP TABLE said, word;
CREATE TABLE step (i int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('step', 'i')
INSERT INTO step VALUES (1, 1), (2, 2), (3, 3);
CREATE TABLE computed (a int PRIMARY KEY, b int GENERATED ALWAYS AS (a * 2) STORED REFERENCES step);
INSERT INTO computed (a) VALUES (1);
--@ only: from 17
ALTER TABLE computed ALTER b SET EXPRESSION AS (a * 3);
--@ only: from 17
--@ error: 23503
ALTER TABLE computed ALTER b SET EXPRESSION AS (a * 30);
SELECT a FROM computed;
DROP TABLE computed, step;
