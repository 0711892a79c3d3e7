--@ include: schema.sql
-- Functions that compute values of rows and read the table that the rows come into. A volatile one sees the rows before it,
-- others what there was.

CREATE TABLE numbered (k int, v int);
--@ cluster: SELECT create_distributed_table('numbered', 'k')
CREATE FUNCTION next_v() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT coalesce(max(v), 0) + 1 FROM numbered); END $$;
CREATE FUNCTION next_sql(x int DEFAULT 0) RETURNS int LANGUAGE sql AS $$ SELECT coalesce(max(v), 0) + 1 + x FROM public.numbered $$;
CREATE FUNCTION next_by() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN next_v(); END $$;
CREATE FUNCTION next_text() RETURNS int LANGUAGE plpgsql AS $$ DECLARE n int; BEGIN EXECUTE 'SELECT coalesce(max(v), 0) + 1 FROM numbered' INTO n; RETURN n; END $$;
CREATE FUNCTION stable_v() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT coalesce(max(v), 0) + 1 FROM numbered); END $$;
CREATE FUNCTION fixed_v() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN (SELECT coalesce(max(v), 0) + 1 FROM numbered); END $$;
CREATE VIEW numbers AS SELECT v FROM numbered;
CREATE FUNCTION next_view() RETURNS int LANGUAGE sql AS $$ SELECT coalesce(max(v), 0) + 1 FROM numbers $$;

ALTER TABLE numbered ALTER v SET DEFAULT next_v();
INSERT INTO numbered (k) VALUES (1), (2), (3);
INSERT INTO numbered VALUES (4, DEFAULT), (5, 10), (6, DEFAULT) RETURNING k, v;
INSERT INTO numbered (k) SELECT g FROM generate_series(7, 10) g;
INSERT INTO numbered (k) SELECT k + 10 FROM numbered WHERE v < 3 RETURNING v;
INSERT INTO numbered (k) SELECT count(*) FROM numbered;
COPY numbered (k) FROM STDIN;
20
21
22
\.
SELECT v, k FROM numbered ORDER BY v, k;
TRUNCATE numbered;
ALTER TABLE numbered ALTER v SET DEFAULT next_by();
INSERT INTO numbered (k) VALUES (1), (2);
INSERT INTO numbered (k) VALUES (3);
ALTER TABLE numbered ALTER v SET DEFAULT next_text();
INSERT INTO numbered (k) VALUES (4), (5);
ALTER TABLE numbered ALTER v SET DEFAULT next_view();
INSERT INTO numbered (k) VALUES (6), (7);
ALTER TABLE numbered ALTER v SET DEFAULT stable_v();
INSERT INTO numbered (k) VALUES (8), (9);
INSERT INTO numbered (k) SELECT g FROM generate_series(10, 12) g;
INSERT INTO numbered (k) VALUES (13);
ALTER TABLE numbered ALTER v SET DEFAULT fixed_v();
INSERT INTO numbered (k) VALUES (14), (15);
INSERT INTO numbered (k) VALUES (16);
INSERT INTO numbered (k) SELECT g FROM generate_series(17, 19) g;
ALTER TABLE numbered ADD COLUMN w int DEFAULT fixed_v();
SELECT * FROM numbered ORDER BY k, v;
-- In the values themselves.
TRUNCATE numbered;
ALTER TABLE numbered ALTER v SET DEFAULT NULL, DROP COLUMN w;
INSERT INTO numbered VALUES (1, next_v()), (2, next_sql(5)), (3, next_by()), (4, 1), (5, next_sql());
INSERT INTO numbered SELECT g, next_v() FROM generate_series(6, 9) g;
INSERT INTO numbered VALUES (next_v(), next_v()), (next_v(), next_v());
INSERT INTO numbered VALUES (30, stable_v()), (31, stable_v());
SELECT v, k FROM numbered ORDER BY v, k;
BEGIN;
INSERT INTO numbered VALUES (40, 100);
INSERT INTO numbered (k, v) VALUES (41, next_v()), (42, next_v());
SELECT v, k FROM numbered WHERE k >= 40 ORDER BY v, k;
ROLLBACK;

-- What reads something else goes its way.
CREATE TABLE counters (name text PRIMARY KEY, n int);
INSERT INTO counters VALUES ('a', 0);
CREATE FUNCTION draw() RETURNS int LANGUAGE plpgsql AS $$ DECLARE drawn int; BEGIN UPDATE counters SET n = n + 1 WHERE name = 'a' RETURNING n INTO drawn; RETURN drawn; END $$;
ALTER TABLE numbered ALTER v SET DEFAULT draw();
INSERT INTO numbered (k) VALUES (50), (51), (52);
SELECT v FROM numbered WHERE k >= 50 ORDER BY v;
SELECT * FROM counters;

-- How volatile a default's function is, and what it reads, may change.
CREATE FUNCTION fives() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 5; END $$;
CREATE TABLE fived (k int PRIMARY KEY, v int DEFAULT fives());
--@ cluster: SELECT create_distributed_table('fived', 'k')
INSERT INTO fived (k) VALUES (1);
ALTER FUNCTION fives() IMMUTABLE;
INSERT INTO fived (k) VALUES (2), (3);
INSERT INTO fived (k) VALUES (4);
CREATE OR REPLACE FUNCTION fives() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN (SELECT count(*) FROM fived); END $$;
INSERT INTO fived (k) VALUES (5);
INSERT INTO fived (k) VALUES (6), (7);
--@ error: 23502
INSERT INTO fived DEFAULT VALUES;
SELECT * FROM fived ORDER BY k;
DROP VIEW numbers;
DROP TABLE numbered, counters, fived;
DROP FUNCTION next_v, next_sql, next_by, next_text, stable_v, fixed_v, next_view, draw, fives;
