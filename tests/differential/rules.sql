-- Rules of distributed and reference tables: what they make of a statement is run as a whole, once.

CREATE TABLE goods (k int PRIMARY KEY, name text, n int DEFAULT 0, made text GENERATED ALWAYS AS (name || '!') STORED);
CREATE TABLE journal (id bigserial, k int, op text, before int, after int);
CREATE TABLE old_goods (k int, name text, n int);
CREATE TABLE shelf (k int, place text);
CREATE TABLE log_here (k int, what text);
CREATE TABLE kinds (id int PRIMARY KEY, name text);
--@ cluster: SELECT create_distributed_table('goods', 'k'), create_distributed_table('journal', 'k'), create_distributed_table('old_goods', 'k'), create_distributed_table('shelf', 'place')
--@ cluster: SELECT create_reference_table('kinds')
INSERT INTO goods (k, name, n) SELECT g, 'g' || g, g * 10 FROM generate_series(1, 20) g;
INSERT INTO shelf SELECT g % 5, 'p' || g FROM generate_series(1, 10) g;
INSERT INTO kinds SELECT g, 'kind' || g FROM generate_series(1, 5) g;

-- DO ALSO: a journal.
CREATE RULE journal_insert AS ON INSERT TO goods DO ALSO INSERT INTO journal (k, op, after) VALUES (NEW.k, 'insert', NEW.n);
CREATE RULE journal_update AS ON UPDATE TO goods WHERE NEW.n <> OLD.n DO ALSO INSERT INTO journal (k, op, before, after) VALUES (OLD.k, 'update', OLD.n, NEW.n);
CREATE RULE journal_delete AS ON DELETE TO goods DO ALSO INSERT INTO journal (k, op, before) VALUES (OLD.k, 'delete', OLD.n);
INSERT INTO goods (k, name, n) VALUES (21, 'new', 1);
INSERT INTO goods (k, name, n) VALUES (22, 'new', 1), (23, 'new', 2), (24, NULL, 3);
INSERT INTO goods (k, name, n) SELECT k + 100, name, n FROM goods WHERE k <= 5;
INSERT INTO goods (k, name) VALUES (30, 'default') RETURNING k, n, made;
--@ error: 23505
INSERT INTO goods (k, name) VALUES (30, 'again');
UPDATE goods SET n = n + 1 WHERE k = 3;
UPDATE goods SET n = n + 1 WHERE k BETWEEN 4 AND 8;
UPDATE goods SET name = 'same' WHERE k < 4;
UPDATE goods SET n = s.k FROM shelf s WHERE s.k = goods.k AND s.place = 'p2' RETURNING goods.k, n, place;
DELETE FROM goods WHERE k = 9;
DELETE FROM goods WHERE k > 100 AND n > 20;
DELETE FROM goods USING shelf s WHERE goods.k = s.k + 10 AND s.place IN ('p1', 'p3') RETURNING goods.k, name;
SELECT k, op, before, after FROM journal;
SELECT * FROM goods;
SELECT count(DISTINCT id), count(*) FROM journal;

-- Inside functions and blocks.
CREATE FUNCTION sell(what int, number int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE c int;
BEGIN
  UPDATE goods SET n = n - number WHERE k = what;
  GET DIAGNOSTICS c = ROW_COUNT;
  RETURN c;
END $$;
SELECT sell(5, 2), sell(500, 1);
BEGIN;
UPDATE goods SET n = 0 WHERE k = 6;
SAVEPOINT s;
DELETE FROM goods WHERE k = 6;
SELECT op, before, after FROM journal WHERE k = 6 ORDER BY id;
ROLLBACK TO s;
SELECT op, before, after FROM journal WHERE k = 6 ORDER BY id;
COMMIT;
DO $$ BEGIN INSERT INTO goods (k, name, n) VALUES (40, 'block', 4); DELETE FROM goods WHERE k = 40; END $$;
SELECT op, before, after FROM journal WHERE k = 40 ORDER BY id;
PREPARE up (int, int) AS UPDATE goods SET n = $2 WHERE k = $1;
EXECUTE up (7, 700);
EXECUTE up (8, 800);
SELECT op, before, after FROM journal WHERE k IN (7, 8) ORDER BY id;
--@ error: 0A000
WITH changed AS (UPDATE goods SET name = 'cte' WHERE k = 1 RETURNING k) SELECT * FROM changed;
--@ error: 0A000
INSERT INTO goods (k, name) VALUES (1, 'x') ON CONFLICT (k) DO UPDATE SET name = 'y';
--@ error: 0A000
INSERT INTO goods (k, name) VALUES (1, 'x') ON CONFLICT DO NOTHING;
--@ error: 0A000
MERGE INTO goods g USING (VALUES (1, 'm')) v (k, name) ON g.k = v.k WHEN MATCHED THEN UPDATE SET name = v.name;

-- COPY knows no rules.
COPY goods (k, name, n) FROM STDIN;
50	copied	5
51	copied	6
\.
SELECT count(*) FROM journal WHERE k IN (50, 51);

-- Disabled and enabled, renamed and dropped.
ALTER TABLE goods DISABLE RULE journal_update;
UPDATE goods SET n = n + 1 WHERE k = 10;
SELECT count(*) FROM journal WHERE k = 10;
ALTER TABLE goods ENABLE RULE journal_update;
UPDATE goods SET n = n + 1 WHERE k = 10;
SELECT op, before, after FROM journal WHERE k = 10;
ALTER TABLE goods ENABLE REPLICA RULE journal_update;
UPDATE goods SET n = n + 1 WHERE k = 10;
SET session_replication_role = replica;
UPDATE goods SET n = n + 1 WHERE k = 10;
RESET session_replication_role;
SELECT op, before, after FROM journal WHERE k = 10 ORDER BY id;
ALTER RULE journal_insert ON goods RENAME TO journal_new;
INSERT INTO goods (k, name) VALUES (60, 'renamed');
SELECT op, after FROM journal WHERE k = 60;
SELECT rulename FROM pg_rules WHERE tablename = 'goods';
DROP RULE journal_new ON goods;
DROP RULE journal_update ON goods;
DROP RULE journal_delete ON goods;
INSERT INTO goods (k, name) VALUES (61, 'none');
DELETE FROM goods WHERE k = 60;
SELECT count(*) FROM journal WHERE k IN (60, 61) AND op <> 'insert';
INSERT INTO goods (k, name) VALUES (61, 'merged') ON CONFLICT (k) DO UPDATE SET name = excluded.name;
SELECT name FROM goods WHERE k = 61;

-- DO INSTEAD: something else, and nothing.
CREATE RULE keep AS ON DELETE TO goods DO INSTEAD (INSERT INTO old_goods VALUES (OLD.k, OLD.name, OLD.n); UPDATE goods SET n = -1 WHERE k = OLD.k);
DELETE FROM goods WHERE k BETWEEN 14 AND 17;
SELECT * FROM old_goods;
SELECT k, n FROM goods WHERE k BETWEEN 13 AND 18;
DROP RULE keep ON goods;
CREATE RULE nothing AS ON DELETE TO goods WHERE OLD.n < 0 DO INSTEAD NOTHING;
DELETE FROM goods WHERE k BETWEEN 13 AND 18;
SELECT k, n FROM goods WHERE k BETWEEN 13 AND 18;
DELETE FROM goods WHERE k = 14;
DROP RULE nothing ON goods;
CREATE RULE moved AS ON INSERT TO shelf WHERE NEW.k > 100 DO INSTEAD INSERT INTO log_here VALUES (NEW.k, NEW.place);
INSERT INTO shelf VALUES (1, 'here'), (101, 'there'), (102, 'there');
INSERT INTO shelf SELECT k + 100, place FROM shelf WHERE k = 1;
SELECT k, place FROM shelf WHERE place IN ('here', 'there', 'p1', 'p6');
SELECT * FROM log_here;
CREATE RULE looks AS ON UPDATE TO shelf DO INSTEAD SELECT k, place, OLD.k + 1 AS more FROM shelf WHERE place = OLD.place;
--@ mode: simple
UPDATE shelf SET k = 0 WHERE place = 'p2';
--@ mode: simple
UPDATE shelf SET k = 0;
SELECT count(*) FROM shelf WHERE k = 0;
CREATE RULE returned AS ON DELETE TO shelf DO INSTEAD UPDATE shelf SET k = -1 WHERE place = OLD.place RETURNING *;
DROP RULE looks ON shelf;
DELETE FROM shelf WHERE place = 'p3' RETURNING place, k;
SELECT k, place FROM shelf WHERE place = 'p3';
DROP RULE returned ON shelf;
DROP RULE moved ON shelf;

-- The distribution column; many rows; a view above.
CREATE RULE key_changes AS ON UPDATE TO goods WHERE NEW.k <> OLD.k DO ALSO INSERT INTO log_here VALUES (NEW.k, 'from ' || OLD.k);
UPDATE goods SET k = k + 1000 WHERE k = 2;
SELECT k, name FROM goods WHERE k IN (2, 1002);
SELECT * FROM log_here WHERE what LIKE 'from%';
DROP RULE key_changes ON goods;
CREATE VIEW goods_view AS SELECT k, name, n FROM goods WHERE n >= 0;
CREATE RULE journal_update AS ON UPDATE TO goods DO ALSO INSERT INTO journal (k, op, after) VALUES (NEW.k, 'view', NEW.n);
UPDATE goods_view SET n = 77 WHERE k IN (4, 5);
SELECT k, after FROM journal WHERE op = 'view';
DELETE FROM goods_view WHERE k = 4;
SELECT count(*) FROM goods WHERE k = 4;
DROP RULE journal_update ON goods;

-- Reference tables, with actions on tables of all sorts.
CREATE RULE kinds_insert AS ON INSERT TO kinds DO ALSO (INSERT INTO log_here VALUES (NEW.id, 'kind'); INSERT INTO journal (k, op) VALUES (NEW.id, NEW.name));
CREATE RULE kinds_update AS ON UPDATE TO kinds DO ALSO UPDATE goods SET name = NEW.name WHERE k = NEW.id;
CREATE RULE kinds_delete AS ON DELETE TO kinds DO INSTEAD UPDATE kinds SET name = 'gone' WHERE id = OLD.id;
INSERT INTO kinds VALUES (6, 'six');
INSERT INTO kinds VALUES (7, 'seven'), (8, 'eight');
UPDATE kinds SET name = name || '*' WHERE id IN (5, 6, 7);
DELETE FROM kinds WHERE id = 1;
SELECT * FROM kinds;
SELECT k, name FROM goods WHERE k BETWEEN 5 AND 7;
SELECT k, op FROM journal WHERE op IN ('six', 'seven', 'eight');
SELECT * FROM log_here WHERE what = 'kind';
SELECT g.k, i.name FROM goods g JOIN kinds i ON i.id = g.k;
--@ error: 23505
INSERT INTO kinds VALUES (8, 'eight');
DROP RULE kinds_insert ON kinds;
DROP RULE kinds_update ON kinds;
DROP RULE kinds_delete ON kinds;
INSERT INTO kinds VALUES (9, 'nine');
SELECT count(*) FROM log_here WHERE k = 9;

-- Rules that were there before the table was distributed.
CREATE TABLE later (k int, v text);
CREATE RULE later_insert AS ON INSERT TO later DO ALSO INSERT INTO log_here VALUES (NEW.k, 'later');
INSERT INTO later VALUES (1, 'a');
--@ cluster: SELECT create_distributed_table('later', 'k')
INSERT INTO later VALUES (2, 'b');
INSERT INTO later SELECT k + 2, v FROM later;
SELECT * FROM later;
SELECT * FROM log_here WHERE what = 'later';
--@ cluster: SELECT undistribute_table('later')
INSERT INTO later VALUES (9, 'i');
SELECT * FROM log_here WHERE what = 'later';
SELECT definition FROM pg_rules WHERE tablename = 'later';

-- Who may: a rule's actions are done with the rights of the table's owner.
DROP ROLE IF EXISTS rule_user;
CREATE ROLE rule_user;
GRANT INSERT ON later TO rule_user;
SET ROLE rule_user;
INSERT INTO later VALUES (10, 'j');
--@ error: 42501
INSERT INTO log_here VALUES (1, 'no');
RESET ROLE;
SELECT * FROM log_here WHERE k = 10;
CREATE RULE goods_also AS ON INSERT TO goods DO ALSO INSERT INTO journal (k, op) VALUES (NEW.k, 'owner');
GRANT INSERT ON goods TO rule_user;
SET ROLE rule_user;
--@ error: 42501
INSERT INTO goods (k, name) VALUES (70, 'u');
RESET ROLE;
GRANT USAGE ON SEQUENCE journal_id_seq TO rule_user;
SET ROLE rule_user;
INSERT INTO goods (k, name) VALUES (70, 'u');
--@ error: 42501
SELECT * FROM journal;
RESET ROLE;
SELECT k, op FROM journal WHERE op = 'owner';
REVOKE ALL ON SEQUENCE journal_id_seq FROM rule_user;
REVOKE ALL ON goods, later FROM rule_user;
DROP ROLE rule_user;

-- What a rule's action says of conflicts nobody can tell.
CREATE UNIQUE INDEX ON old_goods (k);
CREATE RULE upserts AS ON INSERT TO log_here DO ALSO INSERT INTO old_goods VALUES (NEW.k, NEW.what) ON CONFLICT DO NOTHING;
--@ refused: PH001
INSERT INTO log_here VALUES (16, 'again');
DROP RULE upserts ON log_here;
INSERT INTO log_here VALUES (16, 'again');
SELECT count(*) FROM old_goods WHERE k = 16;
