--@ include: schema.sql
-- Views and functions of other roles: what they read and write is a matter between PostgreSQL and their owner, whoever asks.

CREATE TABLE pay (k int PRIMARY KEY, owner text NOT NULL, amount int, note char(4), at timestamptz DEFAULT '2020-02-03 04:05:06+00');
CREATE TABLE pay_lines (k int, line int, cents numeric(8, 2), words text[], PRIMARY KEY (k, line));
CREATE TABLE plain_local (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('pay', 'k'), create_distributed_table('pay_lines', 'k', colocate_with => 'pay')
DROP ROLE IF EXISTS rights_ann, rights_ben, rights_own, rights_other;
CREATE ROLE rights_ann;
CREATE ROLE rights_ben;
CREATE ROLE rights_own;
CREATE ROLE rights_other;
GRANT CREATE ON SCHEMA public TO rights_own, rights_other;
INSERT INTO pay SELECT g, (ARRAY['rights_ann', 'rights_ben', 'nobody'])[1 + g % 3], nullif(g * 10, 70), 'n' || g FROM generate_series(1, 24) g;
INSERT INTO pay_lines SELECT g, l, g * l / 7.0, ARRAY['a "b"', NULL, 'c,d\' || l] FROM generate_series(1, 12) g, generate_series(1, 2) l;
INSERT INTO plain_local SELECT g, 'v' || g FROM generate_series(1, 8) g;
ALTER TABLE pay OWNER TO rights_own;
ALTER TABLE pay_lines OWNER TO rights_own;

-- Reading.
SET ROLE rights_own;
CREATE VIEW pay_all AS SELECT * FROM pay;
CREATE VIEW pay_sums AS SELECT owner, count(*) AS n, sum(amount) AS total, min(note) AS first FROM pay GROUP BY owner;
CREATE VIEW pay_mine WITH (security_barrier) AS SELECT k, owner, amount FROM pay WHERE owner = current_user;
CREATE VIEW pay_both AS SELECT p.k, p.owner, l.line, l.cents, l.words FROM pay p JOIN pay_lines l USING (k);
CREATE VIEW pay_asks WITH (security_invoker) AS SELECT k, amount FROM pay;
GRANT SELECT ON pay_all, pay_sums, pay_mine, pay_both, pay_asks TO rights_ann, rights_other;
RESET ROLE;
GRANT SELECT ON plain_local TO rights_ann;
SET ROLE rights_ann;
--@ error: 42501
SELECT count(*) FROM pay;
SELECT * FROM pay_all;
SELECT * FROM pay_all ORDER BY k DESC LIMIT 5;
SELECT * FROM pay_all WHERE k = 7;
SELECT note, at FROM pay_all WHERE k IN (3, 4, 5) ORDER BY note;
SELECT * FROM pay_sums;
SELECT * FROM pay_mine;
SELECT sum(amount) FROM pay_mine WHERE amount > 50;
SELECT * FROM pay_both;
SELECT l.v, p.amount FROM plain_local l JOIN pay_all p USING (k);
SELECT words FROM pay_both WHERE cents > 1.5 ORDER BY k, line;
--@ error: 42501
SELECT * FROM pay_asks;
--@ error: 42501
SELECT a.k FROM pay_all a JOIN pay b USING (k);
SELECT EXISTS (SELECT 1 FROM pay_all WHERE amount IS NULL), (SELECT count(*) FROM pay_both);
--@ error: 22012
SELECT count(1 / (amount - 100)) FROM pay_all;
--@ error: 42501
SELECT k FROM pay_all FOR UPDATE;
SET datestyle = 'German, DMY';
SELECT k, at FROM pay_all WHERE k < 4;
RESET datestyle;
-- Rows are merged as they are stored, whatever the client wants to see.
RESET ROLE;
SET ROLE rights_own;
CREATE TYPE pay_mood AS ENUM ('sad', 'ok', 'glad');
CREATE DOMAIN pay_part AS float8 CHECK (VALUE > 0);
ALTER TABLE pay_lines ADD part pay_part, ADD share float8, ADD mood pay_mood, ADD day date, ADD said text;
UPDATE pay_lines SET part = k / 3.0 + line, share = k / 7.0 + line, mood = (ARRAY['sad', 'ok', 'glad'])[1 + (k + line) % 3]::pay_mood, day = date '2020-03-01' + k, said = CASE WHEN k % 4 > 0 THEN E'it''s "' || k || E'" \\ {,}$1\nx' END;
CREATE VIEW pay_parts AS SELECT * FROM pay_lines;
GRANT SELECT ON pay_parts TO rights_ann;
RESET ROLE;
SET ROLE rights_ann;
SET extra_float_digits = -10;
SET datestyle = 'SQL, DMY';
--@ ordered
SELECT k, line, part = k / 3.0 + line, part::float8 = round(part::numeric, 4)::float8 FROM pay_parts ORDER BY part, k, line;
--@ ordered
SELECT k, line, share = (k / 7.0 + line)::float8, share FROM pay_parts ORDER BY share, k, line;
--@ ordered
SELECT mood, k, line, words, cents FROM pay_parts ORDER BY mood, k, line LIMIT 7;
--@ ordered
SELECT day, said, line FROM pay_parts ORDER BY day DESC, line;
--@ ordered
SELECT said, k, line FROM pay_parts ORDER BY said NULLS FIRST, k, line;
SELECT * FROM pay_parts WHERE k = 999 ORDER BY part;
RESET extra_float_digits;
RESET datestyle;
PREPARE by_key (int) AS SELECT owner, amount FROM pay_all WHERE k = $1;
EXECUTE by_key (3);
EXECUTE by_key (4);
DEALLOCATE by_key;
BEGIN;
DECLARE c CURSOR FOR SELECT k, note FROM pay_all ORDER BY k;
FETCH 3 FROM c;
FETCH 2 FROM c;
COMMIT;
-- What was written after DECLARE is not in the cursor.
RESET ROLE;
GRANT SELECT, UPDATE, DELETE ON pay_all TO rights_ann;
GRANT SELECT, UPDATE ON pay_parts TO rights_ann;
SET ROLE rights_ann;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT p.k, p.note, l.line FROM pay_all p JOIN pay_parts l USING (k) ORDER BY p.k, l.line;
DECLARE d CURSOR FOR SELECT k, note FROM pay_all WHERE amount > 30 ORDER BY note;
UPDATE pay_all SET note = 'no', amount = 0 WHERE k < 10;
DELETE FROM pay_all WHERE k > 20;
FETCH 3 FROM c;
FETCH ALL FROM d;
MOVE BACKWARD ALL IN c;
FETCH ALL FROM c;
SELECT count(*), min(amount) FROM pay_all;
ROLLBACK;
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM pay_all WHERE k < 4 FOR UPDATE;
FETCH 1 FROM c;
UPDATE pay_all SET note = 'at' WHERE k = 20;
FETCH ALL FROM c;
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c CURSOR FOR SELECT a.k, x.line FROM pay_all a, LATERAL (SELECT line FROM pay_parts b WHERE b.k = a.k ORDER BY cents LIMIT 1) x WHERE a.k < 5;
FETCH ALL FROM c;
COMMIT;
RESET ROLE;
REVOKE UPDATE, DELETE ON pay_all FROM rights_ann;
SET ROLE rights_ann;
--@ error: 42501
SELECT count(*) FROM pay;

-- A view upon a view, each with its own owner.
RESET ROLE;
SET ROLE rights_other;
CREATE VIEW pay_outer AS SELECT owner, total FROM pay_sums WHERE n > 3;
CREATE VIEW pay_denied AS SELECT k FROM pay;
GRANT SELECT ON pay_outer, pay_denied TO rights_ben;
RESET ROLE;
SET ROLE rights_ben;
SELECT * FROM pay_outer;
--@ error: 42501
SELECT * FROM pay_sums;
--@ error: 42501
SELECT * FROM pay_denied;
RESET ROLE;

-- A view with security_barrier, and conditions that can tell nothing.
SET ROLE rights_own;
CREATE VIEW pay_few WITH (security_barrier = 'yes') AS SELECT * FROM pay WHERE amount < 100;
GRANT SELECT, UPDATE, DELETE ON pay_few TO rights_ben;
RESET ROLE;
SET ROLE rights_ben;
BEGIN;
UPDATE pay_few SET note = 'few', at = at + interval '1 day' WHERE k > 4 RETURNING k, note, at;
UPDATE pay_few SET amount = amount + 1 WHERE owner = 'nobody' OR owner IS NULL;
DELETE FROM pay_few WHERE k = 3;
SELECT * FROM pay_few WHERE length(note) > 2;
ROLLBACK;
RESET ROLE;
DROP VIEW pay_few;
ALTER VIEW pay_mine RESET (security_barrier);

-- A materialized view is filled with its owner's rights.
CREATE ROLE rights_fills;
GRANT CREATE ON SCHEMA public TO rights_fills;
GRANT SELECT ON pay_all TO rights_fills;
SET ROLE rights_fills;
CREATE MATERIALIZED VIEW pay_kept AS SELECT k, amount FROM pay_all WHERE k < 10 WITH NO DATA;
RESET ROLE;
REFRESH MATERIALIZED VIEW pay_kept;
SELECT * FROM pay_kept;
DROP MATERIALIZED VIEW pay_kept;
DROP OWNED BY rights_fills;
DROP ROLE rights_fills;

-- Functions: with the owner's rights, or the caller's; in views always the caller's.
SET ROLE rights_own;
CREATE FUNCTION pay_of(int) RETURNS int STABLE LANGUAGE sql SECURITY DEFINER AS 'SELECT amount FROM public.pay WHERE k = $1';
CREATE FUNCTION pay_as(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT amount FROM public.pay WHERE k = $1';
CREATE FUNCTION pay_rows() RETURNS SETOF pay LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN QUERY SELECT * FROM public.pay WHERE k % 5 = 0; END $$;
CREATE FUNCTION pay_more(int) RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n int; who text := current_user;
BEGIN
    UPDATE public.pay SET amount = coalesce(amount, 0) + 1, note = 'up' WHERE k % $1 = 0;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN who || ' ' || n;
END $$;
CREATE FUNCTION pay_new(int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.pay SELECT g, 'new''s \', g, NULL, '2021-01-01 00:00:00+02' FROM generate_series($1, $1 + 4) g;
    RETURN (SELECT count(*) FROM public.pay);
END $$;
CREATE FUNCTION pay_less(int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE n int;
BEGIN
    DELETE FROM public.pay WHERE k >= $1;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
END $$;
CREATE VIEW pay_calls AS SELECT k, pay_of(k) AS definer FROM pay;
CREATE VIEW pay_calls_as AS SELECT k, pay_as(k) AS invoker FROM pay;
GRANT SELECT ON pay_calls, pay_calls_as TO rights_ann;
RESET ROLE;
SET ROLE rights_ann;
SELECT pay_of(3), pay_of(7), pay_of(99);
--@ error: 42501
SELECT pay_as(3);
SELECT k, amount, note FROM pay_rows();
SELECT pay_of(k), v FROM plain_local;
SELECT * FROM pay_calls WHERE k < 5;
--@ error: 42501
SELECT * FROM pay_calls_as;
--@ repeat: 1
SELECT pay_more(4);
SELECT k, amount, note FROM pay_all WHERE note = 'up';
--@ repeat: 1
SELECT pay_new(100);
SELECT * FROM pay_all WHERE k >= 100;
BEGIN;
--@ repeat: 1
SELECT pay_less(23);
SELECT count(*) FROM pay_all;
SAVEPOINT a;
--@ repeat: 1
SELECT pay_new(200);
ROLLBACK TO a;
SELECT count(*) FROM pay_all;
DO $$ BEGIN PERFORM public.pay_new(300); RAISE EXCEPTION 'no'; EXCEPTION WHEN OTHERS THEN RAISE NOTICE '%', (SELECT count(*) FROM public.pay_all); END $$;
SELECT count(*) FROM pay_all;
ROLLBACK;
SELECT count(*) FROM pay_all;
--@ repeat: 1
SELECT pay_less(100);
--@ repeat: 1
--@ error: 23505
SELECT pay_new(1);
--@ error: 42501
UPDATE pay SET amount = 0;
RESET ROLE;

-- Writing through views.
GRANT INSERT, UPDATE, DELETE ON pay_all TO rights_ann;
SET ROLE rights_own;
CREATE VIEW pay_small AS SELECT * FROM pay WHERE amount < 150 WITH CHECK OPTION;
GRANT SELECT, INSERT, UPDATE, DELETE ON pay_small TO rights_ann;
RESET ROLE;
SET ROLE rights_ann;
INSERT INTO pay_all VALUES (50, 'ann', 5, 'x');
INSERT INTO pay_all (k, owner, amount) VALUES (51, 'ann', 6), (52, 'ann', 7) RETURNING k, amount, note, at;
UPDATE pay_all SET amount = amount + 1, note = 'w' WHERE owner = 'ann';
UPDATE pay_all SET amount = amount + 1 WHERE k = 50 RETURNING *;
SELECT * FROM pay_all WHERE k >= 50;
UPDATE pay_small SET amount = 1 WHERE k > 50;
--@ error: 44000
UPDATE pay_small SET amount = 1000 WHERE k > 50;
DELETE FROM pay_small WHERE k = 52 RETURNING k, amount;
DELETE FROM pay_all WHERE k = 51;
SELECT k FROM pay_all WHERE k = 50 FOR UPDATE;
BEGIN;
DELETE FROM pay_all;
SELECT count(*) FROM pay_all;
ROLLBACK;
SELECT count(*) FROM pay_all;
DELETE FROM pay_all WHERE k >= 50;
--@ error: 42501
DELETE FROM pay WHERE k >= 50;
RESET ROLE;

-- Row security: who asks is not who reads.
SET ROLE rights_own;
ALTER TABLE pay ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON pay USING (owner = current_user);
GRANT SELECT, UPDATE ON pay TO rights_ann, rights_ben, rights_other;
GRANT SELECT ON pay_all, pay_sums, pay_mine TO rights_ben;
RESET ROLE;
SET ROLE rights_other;
GRANT SELECT ON pay_denied TO rights_ann, rights_ben;
RESET ROLE;
SET ROLE rights_ann;
SELECT k FROM pay;
SELECT count(*), sum(amount) FROM pay_all;
SELECT k, amount FROM pay_all WHERE k < 6 ORDER BY k;
SELECT * FROM pay_sums;
SELECT * FROM pay_mine;
SELECT pay_of(3), pay_of(4), pay_as(3), pay_as(4);
SELECT a.k, b.k FROM pay_all a LEFT JOIN pay b ON b.k = a.k WHERE a.k < 8;
SELECT count(*) FROM pay_rows();
SELECT l.v, p.owner FROM plain_local l JOIN pay p USING (k);
-- Policies of the view's owner, for whom they say that who asks must own the row.
SELECT * FROM pay_denied;
SELECT k FROM pay_denied WHERE k < 10;
BEGIN;
DECLARE c CURSOR FOR SELECT k, note FROM pay_all WHERE k % 2 = 0 ORDER BY note;
DECLARE d CURSOR FOR SELECT k FROM pay ORDER BY k DESC;
DECLARE e CURSOR FOR SELECT p.k, a.amount FROM pay p RIGHT JOIN pay_all a USING (k) WHERE a.k < 9;
DECLARE f CURSOR FOR SELECT k FROM pay_denied;
UPDATE pay SET note = 'now';
FETCH ALL FROM c;
FETCH ALL FROM d;
FETCH ALL FROM e;
FETCH ALL FROM f;
ROLLBACK;
UPDATE pay SET note = 'mine' WHERE k < 8;
-- A role that owns no table, but to whom a policy shows all rows; its view is made inside of a function.
RESET ROLE;
DROP ROLE IF EXISTS rights_auditor;
CREATE ROLE rights_auditor;
GRANT CREATE ON SCHEMA public TO rights_auditor;
SET ROLE rights_own;
GRANT SELECT ON pay TO rights_auditor;
CREATE POLICY audited ON pay FOR SELECT TO rights_auditor USING (true);
RESET ROLE;
SET ROLE rights_auditor;
DO $$ BEGIN CREATE VIEW pay_audit AS SELECT k, owner FROM pay; GRANT SELECT ON pay_audit TO rights_ann; END $$;
RESET ROLE;
SET ROLE rights_ann;
SELECT count(*) FROM pay_audit;
SELECT owner, count(*) FROM pay_audit GROUP BY owner;
SELECT k FROM pay_audit WHERE k < 5;
RESET ROLE;
DROP OWNED BY rights_auditor CASCADE;
DROP ROLE rights_auditor;
SET ROLE rights_ann;
--@ repeat: 1
SELECT pay_more(9);
SELECT k, note FROM pay_all WHERE note IN ('mine', 'up');
UPDATE pay_all SET note = 'view' WHERE k IN (3, 4);
SELECT k, note FROM pay_all WHERE k IN (3, 4);
RESET ROLE;
SET ROLE rights_ben;
SELECT k FROM pay;
SELECT count(*) FROM pay_all;
SELECT * FROM pay_mine;
RESET ROLE;
SET ROLE rights_own;
SELECT count(*) FROM pay;
SELECT count(*) FROM pay_mine;
RESET ROLE;

-- Who owns what may change, and roles go when nothing of theirs is left.
ALTER TABLE pay OWNER TO rights_other;
SET ROLE rights_ann;
--@ error: 42501
SELECT count(*) FROM pay_sums;
RESET ROLE;
GRANT SELECT ON pay TO rights_own;
ALTER TABLE pay DISABLE ROW LEVEL SECURITY;
SET ROLE rights_ann;
SELECT * FROM pay_sums;
SELECT count(*) FROM pay_both;
RESET ROLE;
-- Rows inserted inside the coordinator go on with the rights of whoever inserts them.
CREATE TABLE pay_forced (k int PRIMARY KEY, owner text, n int DEFAULT 1);
--@ cluster: SELECT create_distributed_table('pay_forced', 'k')
ALTER TABLE pay_forced OWNER TO rights_own;
ALTER TABLE pay_forced ENABLE ROW LEVEL SECURITY;
ALTER TABLE pay_forced FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON pay_forced USING (owner = current_user) WITH CHECK (owner = current_user);
GRANT SELECT, INSERT, UPDATE ON pay_forced TO rights_ann;
SET ROLE rights_ann;
DO $$ BEGIN INSERT INTO pay_forced SELECT g, 'rights_ann' FROM generate_series(1, 6) g; END $$;
DO $$ BEGIN UPDATE pay_forced SET n = n + 1 WHERE k < 3; END $$;
--@ error: 42501
DO $$ BEGIN INSERT INTO pay_forced VALUES (7, 'nobody'); END $$;
SELECT * FROM pay_forced;
SET ROLE rights_own;
DO $$ BEGIN INSERT INTO pay_forced VALUES (8, 'rights_own'); END $$;
SELECT * FROM pay_forced;
RESET ROLE;
DO $$ BEGIN INSERT INTO pay_forced VALUES (9, 'nobody'); END $$;
SELECT * FROM pay_forced;
CREATE FUNCTION pay_noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.n := NEW.n + 100; RETURN NEW; END $$;
CREATE TRIGGER noted BEFORE INSERT ON pay_forced FOR EACH ROW EXECUTE FUNCTION pay_noted();
SET ROLE rights_ann;
DO $$ BEGIN INSERT INTO pay_forced VALUES (10, 'rights_ann'); END $$;
SELECT * FROM pay_forced;
RESET ROLE;
DROP TABLE pay_forced;
DROP FUNCTION pay_noted;
CREATE ROLE rights_brief;
ALTER TABLE pay_lines OWNER TO rights_brief;
ALTER TABLE pay_lines OWNER TO CURRENT_USER;
DROP ROLE rights_brief;
CREATE ROLE rights_brief;
GRANT CREATE ON SCHEMA public TO rights_brief;
SET ROLE rights_brief;
CREATE TABLE brief (k int PRIMARY KEY);
RESET ROLE;
--@ cluster: SELECT create_distributed_table('brief', 'k')
DROP TABLE brief;
REVOKE CREATE ON SCHEMA public FROM rights_brief;
DROP ROLE rights_brief;
CREATE ROLE rights_brief;
GRANT CREATE ON SCHEMA public TO rights_brief;
SET ROLE rights_brief;
CREATE TABLE brief (k int PRIMARY KEY);
RESET ROLE;
--@ cluster: SELECT create_distributed_table('brief', 'k')
REASSIGN OWNED BY rights_brief TO rights_other;
REVOKE CREATE ON SCHEMA public FROM rights_brief;
DROP ROLE rights_brief;

-- A session of somebody who owns none of the tables: what changes nothing of them is its own affair.
CREATE ROLE rights_reader;
GRANT SELECT ON pay, plain_local TO rights_reader;
GRANT CREATE ON SCHEMA public TO rights_reader;
SET SESSION AUTHORIZATION rights_reader;
CREATE VIEW reader_pay AS SELECT k, amount FROM pay;
CREATE OR REPLACE VIEW reader_pay AS SELECT k, amount, note FROM pay JOIN plain_local USING (k);
CREATE MATERIALIZED VIEW reader_sums AS SELECT count(*) AS n, sum(amount) AS total FROM pay;
CREATE FUNCTION reader_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM pay';
SELECT count(*), sum(amount) FROM reader_pay;
SELECT n, total FROM reader_sums;
SELECT reader_count();
GRANT SELECT ON pay TO PUBLIC;
GRANT ALL ON pay TO PUBLIC;
GRANT INSERT ON pay TO rights_other;
--@ error: 42501
ALTER TABLE pay ADD COLUMN more int;
--@ error: 42501
ALTER TABLE pay RENAME TO paid;
--@ error: 42501
CREATE INDEX ON pay (amount);
--@ error: 42501
CREATE POLICY reader_all ON pay USING (true);
--@ error: 42501
CREATE TRIGGER reader_fires AFTER INSERT ON pay FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
--@ error: 42501
COMMENT ON TABLE pay IS 'mine';
--@ error: 42501
TRUNCATE pay;
--@ error: 42501
DROP TABLE pay;
CREATE VIEW reader_lines AS SELECT * FROM pay_lines;
--@ error: 42501
SELECT * FROM reader_lines;
DO $$ BEGIN CREATE VIEW reader_more AS SELECT k FROM pay; END $$;
SELECT count(*) FROM reader_more;
DROP VIEW reader_pay, reader_more, reader_lines;
DROP MATERIALIZED VIEW reader_sums;
RESET SESSION AUTHORIZATION;
SELECT count(*) FROM pay;
ALTER TABLE pay ADD COLUMN later int;
DROP OWNED BY rights_reader;
DROP ROLE rights_reader;
DROP TYPE pay_mood CASCADE;
DROP DOMAIN pay_part CASCADE;
-- Reference tables, for roles that may not do everything with them.
RESET ROLE;
CREATE TABLE kinds_ref (k int PRIMARY KEY, v text DEFAULT 'none', w int, made int GENERATED ALWAYS AS IDENTITY);
--@ cluster: SELECT create_reference_table('kinds_ref')
INSERT INTO kinds_ref (k, v, w) SELECT g, 'kind ' || g, g FROM generate_series(1, 6) g;
GRANT INSERT ON kinds_ref TO rights_ann;
GRANT SELECT, UPDATE (v) ON kinds_ref TO rights_ben;
GRANT SELECT (k), INSERT (k, v), DELETE ON kinds_ref TO rights_other;
SET ROLE rights_ann;
INSERT INTO kinds_ref (k, v) VALUES (10, 'ten'), (11, DEFAULT);
--@ params: 12, 'twelve'
INSERT INTO kinds_ref (k, v) VALUES ($1, $2);
--@ error: 42501
INSERT INTO kinds_ref (k, v) VALUES (13, 'thirteen') RETURNING k;
--@ error: 42501
UPDATE kinds_ref SET v = 'no';
--@ error: 23505
INSERT INTO kinds_ref (k) VALUES (12);
INSERT INTO kinds_ref (k) SELECT g FROM generate_series(20, 22) g;
BEGIN;
INSERT INTO kinds_ref (k, v) VALUES (23, 'first');
SAVEPOINT s;
--@ error: 42501
SELECT * FROM kinds_ref;
ROLLBACK TO s;
INSERT INTO kinds_ref (k, v) VALUES (24, 'second');
COMMIT;
SET ROLE rights_ben;
UPDATE kinds_ref SET v = upper(v) WHERE k < 3 RETURNING k, v;
--@ params: 'given', 3
UPDATE kinds_ref SET v = $1 WHERE k = $2;
--@ error: 42501
UPDATE kinds_ref SET w = 0;
--@ error: 42501
INSERT INTO kinds_ref (k) VALUES (30);
BEGIN;
SELECT k, v FROM kinds_ref WHERE k = 4 FOR UPDATE;
UPDATE kinds_ref SET v = 'locked' WHERE k = 4;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE kinds_ref SET v = 'repeated' WHERE k = 5;
COMMIT;
SET ROLE rights_other;
INSERT INTO kinds_ref (k, v) VALUES (31, 'other') RETURNING k;
--@ error: 42501
INSERT INTO kinds_ref (k, v) VALUES (32, 'other') RETURNING v;
DELETE FROM kinds_ref WHERE k IN (6, 31) RETURNING k;
--@ error: 42501
DELETE FROM kinds_ref WHERE v = 'ten';
BEGIN;
SET LOCAL ROLE NONE;
UPDATE kinds_ref SET w = -1 WHERE k = 10;
COMMIT;
RESET ROLE;
SELECT k, v, w FROM kinds_ref ORDER BY k;
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM kinds_ref x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM kinds_ref x) u)
REVOKE INSERT ON kinds_ref FROM rights_ann;
SET ROLE rights_ann;
--@ error: 42501
INSERT INTO kinds_ref (k) VALUES (40);
RESET ROLE;
GRANT UPDATE, SELECT ON kinds_ref TO rights_ann;
SET ROLE rights_ann;
UPDATE kinds_ref SET w = 7 WHERE k = 1 RETURNING w;
RESET ROLE;
-- What writes through functions and triggers writes the copies with the owner's rights.
CREATE FUNCTION kinds_add(int, text) RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  INSERT INTO kinds_ref (k, v) VALUES ($1, $2);
  UPDATE kinds_ref SET w = $1 WHERE k = $1;
  RETURN (SELECT made FROM kinds_ref WHERE k = $1);
END $$;
CREATE FUNCTION kinds_stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.w := coalesce(NEW.w, 0) + 1; RETURN NEW; END $$;
SET ROLE rights_own;
--@ repeat: 1
SELECT kinds_add(50, 'it''s') > 0;
--@ repeat: 1
--@ params: 51, 'by parameter'
SELECT kinds_add($1, $2) > 0;
--@ error: 23505
SELECT kinds_add(50, 'again');
--@ error: 42501
SELECT count(*) FROM kinds_ref;
--@ error: 42501
TRUNCATE kinds_ref;
RESET ROLE;
CREATE TRIGGER kinds_stamp BEFORE INSERT OR UPDATE ON kinds_ref FOR EACH ROW EXECUTE FUNCTION kinds_stamp();
SET ROLE rights_ben;
UPDATE kinds_ref SET v = v || '?' WHERE k < 3 RETURNING k, v, w;
BEGIN;
UPDATE kinds_ref SET v = NULL WHERE k = 3;
--@ repeat: 1
SELECT kinds_add(52, NULL) > 0;
SAVEPOINT s;
--@ error: 23505
SELECT kinds_add(52, NULL) > 0;
ROLLBACK TO s;
COMMIT;
SET ROLE rights_other;
INSERT INTO kinds_ref (k) VALUES (53);
WITH gone AS (DELETE FROM kinds_ref WHERE k = 53 RETURNING k) SELECT k FROM gone;
RESET ROLE;
DROP TRIGGER kinds_stamp ON kinds_ref;
SET array_nulls = off;
CREATE FUNCTION kinds_nulls() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  INSERT INTO kinds_ref (k, v, w) VALUES (60, NULL, 1), (61, 'NULL', NULL);
END $$;
--@ repeat: 1
SELECT kinds_nulls();
RESET array_nulls;
DROP FUNCTION kinds_nulls;
BEGIN;
CREATE TABLE made_here (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_reference_table('made_here')
GRANT INSERT ON made_here TO rights_ann;
INSERT INTO made_here VALUES (1, 'one');
SET LOCAL ROLE rights_ann;
INSERT INTO made_here VALUES (2, 'two');
SET LOCAL ROLE NONE;
SELECT * FROM made_here ORDER BY k;
ROLLBACK;
CREATE SCHEMA rights_shut;
CREATE TABLE rights_shut.inside (k int PRIMARY KEY);
--@ cluster: SELECT create_reference_table('rights_shut.inside')
GRANT ALL ON rights_shut.inside TO rights_ann;
CREATE FUNCTION fill_inside(int) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ INSERT INTO rights_shut.inside VALUES ($1) $$;
SET ROLE rights_ann;
--@ error: 42501
INSERT INTO rights_shut.inside VALUES (1);
--@ repeat: 1
SELECT fill_inside(2);
RESET ROLE;
SELECT * FROM rights_shut.inside;
DROP FUNCTION fill_inside;
DROP SCHEMA rights_shut CASCADE;
ALTER TABLE kinds_ref ENABLE ROW LEVEL SECURITY;
CREATE POLICY low ON kinds_ref USING (k < 52) WITH CHECK (k < 100);
SET ROLE rights_ben;
SELECT k FROM kinds_ref WHERE k > 50;
UPDATE kinds_ref SET v = 'low' WHERE k > 50 RETURNING k;
--@ repeat: 1
SELECT kinds_add(54, 'more') > 0;
--@ error: 42501
INSERT INTO kinds_ref (k) VALUES (101);
RESET ROLE;
SELECT k, v, w FROM kinds_ref ORDER BY k;
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM kinds_ref x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM kinds_ref x) u)
DROP FUNCTION kinds_add;
DROP TABLE kinds_ref;
DROP FUNCTION kinds_stamp;
DROP OWNED BY rights_ann, rights_ben, rights_own, rights_other CASCADE;
DROP ROLE rights_ann, rights_ben, rights_own, rights_other;

-- Who writes, as triggers are told: inside a SECURITY DEFINER function its owner.
CREATE ROLE stamp_boss;
CREATE ROLE stamp_clerk;
CREATE TABLE stamped (k int PRIMARY KEY, who text, role text, usr text, v int);
--@ cluster: SELECT create_distributed_table('stamped', 'k')
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.who := current_user; NEW.role := current_role; NEW.usr := (SELECT user); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION stamp();
GRANT SELECT, INSERT, UPDATE ON stamped TO stamp_boss, stamp_clerk;
CREATE FUNCTION stamp_for(n int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO stamped (k) VALUES (n), (n + 1); UPDATE stamped SET v = n WHERE k = 1; END $$;
ALTER FUNCTION stamp_for(int) OWNER TO stamp_boss;
SET ROLE stamp_clerk;
INSERT INTO stamped (k) VALUES (1), (2);
--@ repeat: 1
SELECT stamp_for(3);
INSERT INTO stamped (k) SELECT 5;
SELECT k, who, role, usr, v FROM stamped;
UPDATE stamped SET v = 5 WHERE k < 4 RETURNING k, who;
RESET ROLE;
DROP TABLE stamped;
DROP FUNCTION stamp;
DROP OWNED BY stamp_boss, stamp_clerk CASCADE;
DROP ROLE stamp_boss, stamp_clerk;
