--@ include: schema.sql
-- Writes to distributed tables by statements that the coordinator runs: functions, DO blocks, and what no worker may compute.

CREATE TABLE stock (item int, place text DEFAULT 'here', n int CHECK (n >= 0), note text, changed timestamptz DEFAULT now(), PRIMARY KEY (item));
CREATE TABLE parts (item int REFERENCES stock ON DELETE CASCADE, part int, n numeric(6, 2), twice numeric GENERATED ALWAYS AS (n * 2) STORED, PRIMARY KEY (item, part));
CREATE TABLE counted (id bigserial, k int, v text, UNIQUE (k, v));
CREATE TABLE audit (at int, what text);
--@ cluster: SELECT create_distributed_table('stock', 'item'), create_distributed_table('parts', 'item'), create_distributed_table('counted', 'k'), create_distributed_table('audit', 'at')
INSERT INTO stock (item, n) SELECT g, g FROM generate_series(1, 30) g;

-- INSERT with what no worker may compute.
INSERT INTO stock (item, n) VALUES (100, 1) RETURNING (SELECT count(*) FROM stock), item, place;
INSERT INTO stock (item, n) VALUES (101, 1), (102, 2) RETURNING item, (SELECT count(*) FROM users u WHERE u.id <= stock.n), changed IS NOT NULL;
INSERT INTO stock (item, n) SELECT 110 + id, 5 FROM users WHERE id < 4 RETURNING item, (SELECT max(n) FROM stock s WHERE s.item < stock.item);
INSERT INTO parts (item, part, n) VALUES (100, 1, 1.005), (101, 1, NULL) RETURNING *, (SELECT name FROM users WHERE id = part);
INSERT INTO counted (k, v) VALUES (1, 'a') RETURNING id, (SELECT count(*) FROM counted);
--@ error: 23505
INSERT INTO stock (item, n) VALUES (100, 1) RETURNING (SELECT count(*) FROM stock);
--@ error: 23503
INSERT INTO parts (item, part) VALUES (5000, 1) RETURNING (SELECT count(*) FROM stock);
--@ error: 23514
--@ loose: the detail has a time
INSERT INTO stock (item, n) VALUES (120, -1) RETURNING (SELECT count(*) FROM stock);
WITH gone AS (DELETE FROM parts WHERE item = 101 RETURNING *) INSERT INTO audit SELECT item, 'gone ' || part FROM gone RETURNING *;
WITH gone AS (DELETE FROM stock WHERE item BETWEEN 110 AND 113 RETURNING item) INSERT INTO audit SELECT item, 'stock' FROM gone;
WITH a AS (INSERT INTO audit VALUES (1, 'a'), (2, 'b') RETURNING at) INSERT INTO stock (item, n) SELECT at + 200, at FROM a RETURNING item, n;
WITH up AS (UPDATE stock SET n = n + 1 WHERE item < 4 RETURNING item, n) INSERT INTO parts (item, part, n) SELECT item, 9, n FROM up RETURNING item, part, n, twice;
WITH up AS (UPDATE stock SET n = n + 1 WHERE item IN (5, 6) RETURNING item, n) UPDATE counted SET v = v || up.n FROM up WHERE counted.k = up.item - 4 RETURNING counted.k, v;
WITH moved AS (DELETE FROM counted WHERE k = 1 RETURNING k, v) DELETE FROM audit USING moved WHERE at = k RETURNING at, what, v;
SELECT * FROM audit;
SELECT item, n, place FROM stock;

-- Functions that insert.
CREATE FUNCTION add_part(i int, p int, x numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r parts; c int;
BEGIN
  INSERT INTO parts (item, part, n) VALUES (i, p, x) RETURNING * INTO r;
  GET DIAGNOSTICS c = ROW_COUNT;
  RETURN r.item || '/' || r.part || '/' || coalesce(r.twice::text, '-') || '/' || c || (SELECT count(*) FROM parts WHERE item = i);
END $$;
--@ repeat: 1
SELECT add_part(7, 1, 2.5);
--@ repeat: 1
SELECT add_part(item, 3, n) FROM stock WHERE item IN (8, 9);
--@ repeat: 1
--@ error: 23503
SELECT add_part(7000, 1, 1);
--@ repeat: 1
--@ error: 23505
SELECT add_part(7, 1, 1);
--@ repeat: 1
--@ error: 22003
SELECT add_part(7, 2, 100000);
--@ repeat: 1
DO $$ BEGIN
  FOR i IN 10..14 LOOP INSERT INTO parts (item, part, n) VALUES (i, 1, i), (i, 2, i); END LOOP;
  BEGIN
    INSERT INTO parts (item, part) VALUES (15, 1);
    INSERT INTO parts (item, part) VALUES (15000, 1);
  EXCEPTION WHEN foreign_key_violation THEN INSERT INTO parts (item, part) VALUES (16, 77);
  END;
END $$;
CREATE FUNCTION sql_add(i int) RETURNS SETOF int LANGUAGE sql AS $$ INSERT INTO stock (item, n) VALUES (i, 0), (i + 1, 0); INSERT INTO parts (item, part) VALUES (i, 1) RETURNING item; $$;
--@ repeat: 1
SELECT sql_add(300);
CREATE FUNCTION loops() RETURNS SETOF int LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN FOR r IN INSERT INTO audit SELECT g, 'loop' FROM generate_series(400, 403) g RETURNING at LOOP RETURN NEXT r.at; END LOOP; RETURN QUERY INSERT INTO audit VALUES (410, 'q') RETURNING at; END $$;
--@ repeat: 1
SELECT loops();
SELECT item, part, n FROM parts;
SELECT * FROM audit WHERE at >= 400;

-- ON CONFLICT in functions.
CREATE FUNCTION take(i int, x int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r stock; found_row bool; c int;
BEGIN
  INSERT INTO stock AS s (item, n) VALUES (i, x) ON CONFLICT (item) DO UPDATE SET n = s.n + excluded.n, note = 'again' RETURNING * INTO r;
  found_row := FOUND;
  INSERT INTO stock (item, n) VALUES (i, 99) ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS c = ROW_COUNT;
  RETURN concat_ws(',', r.item, r.n, r.note, r.place, found_row, c, FOUND);
END $$;
--@ repeat: 1
SELECT take(1, 10), take(2, 20), take(500, 5);
--@ repeat: 1
SELECT take(500, 6);
--@ repeat: 1
DO $$ BEGIN INSERT INTO stock (item, n, changed) VALUES (501, 1, NULL), (502, 2, NULL), (1, 3, NULL) ON CONFLICT (item) DO UPDATE SET n = excluded.n, changed = now() WHERE stock.n > 5; END $$;
--@ repeat: 1
--@ error: 21000
DO $$ BEGIN INSERT INTO stock (item, n) VALUES (600, 1), (600, 2) ON CONFLICT (item) DO UPDATE SET n = excluded.n; END $$;
--@ repeat: 1
--@ error: 23514
--@ loose: the detail has a time
DO $$ BEGIN INSERT INTO stock (item, n) VALUES (1, -5) ON CONFLICT (item) DO NOTHING; END $$;
--@ repeat: 1
DO $$ BEGIN INSERT INTO parts (item, part, n) SELECT item, 1, 1 FROM stock WHERE item < 12 ON CONFLICT (item, part) DO UPDATE SET n = parts.n + 100; END $$;
--@ repeat: 1
DO $$ BEGIN INSERT INTO counted (k, v) VALUES (70, 'x'), (70, 'x'), (71, 'y') ON CONFLICT (k, v) DO NOTHING; END $$;
SELECT item, n, note, changed IS NULL FROM stock;
SELECT item, part, n, twice FROM parts WHERE item < 20;
SELECT k, v FROM counted;

CREATE FUNCTION said() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM stock WHERE note = 'a RETURNING b'); END $$;
SELECT said();

-- The distribution column is changed.
UPDATE counted SET k = (SELECT count(*) FROM users) WHERE k = 71 RETURNING id > 0, k, v;
UPDATE counted SET (k, v) = (SELECT 5, 'multi') WHERE k = 70 RETURNING k, v;
UPDATE audit a SET at = u.id FROM users u WHERE a.at = u.id + 400 RETURNING a.at, a.what, u.name;
WITH m AS (SELECT max(at) AS m FROM audit) UPDATE audit SET at = m + 1 FROM m WHERE at = m RETURNING at, what;
SELECT * FROM audit;
SELECT k, v FROM counted;
BEGIN;
UPDATE audit SET at = (SELECT 7000);
SELECT count(*) FROM audit WHERE at = 7000;
SAVEPOINT s;
UPDATE audit SET at = (SELECT NULL::int) WHERE what = 'loop' RETURNING *;
ROLLBACK TO s;
SELECT count(*), count(at) FROM audit;
ROLLBACK;
--@ params: 3, 'x'
--@ params: 4, 'x'
UPDATE counted SET k = (SELECT $1::int + count(*) FROM users WHERE id < 3), v = $2 WHERE k = 5 OR k = (SELECT $1::int + 1) RETURNING k, v;

-- Triggers of the table fire once.
CREATE TABLE fired (k int PRIMARY KEY, v text, n int DEFAULT 1);
CREATE TABLE quiet (k int PRIMARY KEY, v text);
CREATE FUNCTION marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v = 'skip' THEN RETURN NULL; END IF; NEW.v := NEW.v || '+' || TG_OP; NEW.n := NEW.n + 1; RETURN NEW; END $$;
CREATE TRIGGER marks BEFORE INSERT OR UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION marks();
--@ cluster: SELECT create_distributed_table('fired', 'k'), create_distributed_table('quiet', 'k')
CREATE TRIGGER marks2 BEFORE INSERT ON fired FOR EACH ROW WHEN (NEW.k > 100) EXECUTE FUNCTION marks();
INSERT INTO fired VALUES (1, 'a'), (2, 'b') RETURNING *;
INSERT INTO fired VALUES (3, 'c'), (103, 'd'), (4, 'skip') RETURNING *, (SELECT count(*) FROM quiet);
CREATE FUNCTION fire(i int, t text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r fired; c int; BEGIN INSERT INTO fired VALUES (i, t) RETURNING * INTO r; GET DIAGNOSTICS c = ROW_COUNT; INSERT INTO fired (k, v) VALUES (i, t) ON CONFLICT (k) DO UPDATE SET v = excluded.v || fired.v; RETURN r::text || c; END $$;
--@ repeat: 1
SELECT fire(5, 'five'), fire(105, 'more'), fire(6, 'skip');
--@ repeat: 1
--@ error: 23505
DO $$ BEGIN INSERT INTO fired VALUES (7, 'x'), (7, 'y'); END $$;
WITH q AS (INSERT INTO quiet VALUES (1, 'q'), (2, 'skip') RETURNING *) INSERT INTO fired SELECT k + 20, v FROM q RETURNING *;
SELECT * FROM fired;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'fired'::regclass ORDER BY 1;
ALTER TABLE fired DISABLE TRIGGER marks2;
ALTER TABLE fired ENABLE ALWAYS TRIGGER marks;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'fired'::regclass ORDER BY 1;
--@ repeat: 1
SELECT fire(107, 'off');
ALTER TABLE fired ENABLE TRIGGER marks2;
ALTER TRIGGER marks2 ON fired RENAME TO again;
--@ repeat: 1
SELECT fire(108, 'on');
DROP TRIGGER marks ON fired;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'fired'::regclass ORDER BY 1;
DROP TRIGGER again ON fired;
--@ repeat: 1
SELECT fire(109, 'none');
SELECT * FROM fired;

-- TRUNCATE.
CREATE TABLE full_one (k int PRIMARY KEY);
CREATE TABLE full_two (k int REFERENCES full_one);
CREATE TABLE full_ref (k int);
--@ cluster: SELECT create_distributed_table('full_one', 'k'), create_distributed_table('full_two', 'k'), create_reference_table('full_ref')
INSERT INTO full_one SELECT generate_series(1, 20);
INSERT INTO full_two SELECT generate_series(1, 20);
INSERT INTO full_ref SELECT generate_series(1, 3);
--@ repeat: 1
DO $$ BEGIN TRUNCATE full_two; TRUNCATE full_ref; INSERT INTO full_two VALUES (1); INSERT INTO full_ref VALUES (1); END $$;
SELECT count(*) FROM full_two;
SELECT r.k, o.k FROM full_ref r, full_one o WHERE o.k < 3;
--@ repeat: 1
--@ error: 0A000
DO $$ BEGIN TRUNCATE full_one; END $$;
--@ repeat: 1
DO $$ BEGIN TRUNCATE full_one RESTART IDENTITY CASCADE; END $$;
SELECT (SELECT count(*) FROM full_one), (SELECT count(*) FROM full_two);

-- Fields of errors that come through the coordinator are of their own statement.
BEGIN;
--@ repeat: 1
DO $$ BEGIN INSERT INTO stock (item, n) VALUES (2, 1); EXCEPTION WHEN unique_violation THEN NULL; END $$;
SAVEPOINT s;
--@ error: 23505
INSERT INTO stock (item, n) VALUES (3, 1);
ROLLBACK TO s;
--@ error: 23505
INSERT INTO stock (item, n) SELECT id, 1 FROM users WHERE id = 4 RETURNING (SELECT count(*) FROM users);
ROLLBACK;

-- Keys whose type has a modifier.
CREATE TABLE prices (k numeric(6,2), a int, b text, PRIMARY KEY (k, a));
CREATE TABLE codes (k char(4), b varchar(5), PRIMARY KEY (k));
--@ cluster: SELECT create_distributed_table('prices', 'k'), create_distributed_table('codes', 'k')
CREATE FUNCTION one_more(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT $1 + 1';
INSERT INTO prices VALUES (3.001, 1, 'x') ON CONFLICT (k, a) DO UPDATE SET b = excluded.b RETURNING k, one_more(a);
INSERT INTO prices VALUES (2.999, 1, 'y') ON CONFLICT (k, a) DO UPDATE SET b = prices.b || excluded.b RETURNING k, b, one_more(a);
INSERT INTO codes VALUES ('a', 'x'), ('b', 'y') ON CONFLICT (k) DO UPDATE SET b = excluded.b RETURNING k, b, one_more(1);
INSERT INTO codes VALUES ('a  ', 'z') ON CONFLICT (k) DO UPDATE SET b = codes.b || excluded.b RETURNING k, b, one_more(1);
DO $$ BEGIN INSERT INTO prices SELECT g / 3.0, g, 'p' || g FROM generate_series(1, 9) g ON CONFLICT (k, a) DO UPDATE SET b = 'again'; END $$;
DO $$ BEGIN INSERT INTO prices SELECT g / 3.0, g, 'p' || g FROM generate_series(5, 12) g ON CONFLICT (k, a) DO UPDATE SET b = 'again'; END $$;
SELECT * FROM prices;
SELECT b FROM prices WHERE k = 3.00;
SELECT * FROM codes WHERE k = 'a';

-- Each row sees the rows as they were before the statement.
CREATE TABLE ranks (k int PRIMARY KEY, n int, m int);
--@ cluster: SELECT create_distributed_table('ranks', 'k')
INSERT INTO ranks SELECT g, (g * 7) % 23, NULL FROM generate_series(1, 40) g;
INSERT INTO ranks VALUES (50, NULL, NULL);
UPDATE ranks SET n = (SELECT count(*) FROM ranks x WHERE x.n < ranks.n);
SELECT * FROM ranks;
UPDATE ranks SET m = n, n = (SELECT max(x.n) FROM ranks x WHERE x.n < ranks.n) WHERE k % 2 = 0 RETURNING k, n, m;
UPDATE ranks SET n = CASE WHEN k > 10 THEN (SELECT sum(x.n) FROM ranks x WHERE x.k < ranks.k) ELSE k END;
SELECT * FROM ranks;
DELETE FROM ranks WHERE 3 < (SELECT count(*) FROM ranks x WHERE x.n % 5 = ranks.n % 5 AND x.k < ranks.k) RETURNING k;
SELECT * FROM ranks;
UPDATE ranks SET n = x.n FROM ranks x WHERE x.k = ranks.k + 1 AND EXISTS (SELECT FROM ranks y WHERE y.n < x.n) RETURNING ranks.k, ranks.n;
UPDATE ranks SET n = (SELECT count(*) FROM ranks x WHERE x.n < ranks.n), m = (SELECT min(u.id) FROM users u WHERE u.id > ranks.k);
SELECT * FROM ranks;
--@ repeat: 1
DO $$
BEGIN
  FOR i IN 1..3 LOOP
    BEGIN
      UPDATE ranks SET n = (SELECT count(*) + i FROM ranks x WHERE x.n < ranks.n);
      IF i = 2 THEN INSERT INTO ranks SELECT k FROM ranks; END IF;
    EXCEPTION WHEN unique_violation THEN
      UPDATE ranks SET m = (SELECT sum(x.n) FROM ranks x WHERE x.n <= ranks.n);
    END;
  END LOOP;
END $$;
SELECT * FROM ranks;
BEGIN;
INSERT INTO ranks SELECT g, g FROM generate_series(60, 70) g;
UPDATE ranks SET m = (SELECT count(*) FROM ranks x WHERE x.m IS NULL AND x.k < ranks.k);
SAVEPOINT s;
DELETE FROM ranks WHERE n > (SELECT avg(x.n) FROM ranks x WHERE x.k <> ranks.k);
SELECT count(*) FROM ranks;
ROLLBACK TO s;
SELECT * FROM ranks;
COMMIT;
--@ params: 4
--@ params: 2
UPDATE ranks SET n = (SELECT count(*) + $1::int FROM ranks x WHERE x.n < ranks.n) WHERE k < 10 RETURNING k, n;
-- A function sees the rows as the statement does, or, where it is volatile, what the statement has changed so far.
CREATE FUNCTION others(i int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM ranks WHERE n < i); END $$;
UPDATE ranks SET n = others(n);
SELECT * FROM ranks;
UPDATE ranks SET n = others(n), m = (SELECT count(*) FROM ranks x WHERE x.n > ranks.n) WHERE others(k) > 2 RETURNING k, n, m;
CREATE FUNCTION below(i int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM ranks WHERE k < i); END $$;
UPDATE ranks SET n = below(k) RETURNING k, n;
CREATE FUNCTION changed_so_far() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM ranks WHERE m = -1); END $$;
UPDATE ranks SET m = -1, n = changed_so_far() RETURNING n;
SELECT n, m FROM ranks;
UPDATE ranks SET m = k, n = k;
CREATE FUNCTION left_so_far() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM ranks $$;
DELETE FROM ranks WHERE k > 0 AND left_so_far() > 20;
SELECT count(*) FROM ranks;
DELETE FROM ranks;
INSERT INTO ranks SELECT g, g FROM generate_series(1, 30) g;
--@ params: 3
UPDATE ranks SET n = others(n) + $1 WHERE k < 30 RETURNING k, n;

-- ON CONFLICT with what no worker may compute: a user's function, subqueries, defaults from sequences.
CREATE TABLE tally (k int PRIMARY KEY, n int, v varchar(6) DEFAULT 'new', w numeric(6, 2), at timestamptz DEFAULT now(), s bigserial);
CREATE TABLE tally_two (k int, a int, n int, UNIQUE (k, a));
CREATE FUNCTION doubled(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i * 2; END $$;
CREATE FUNCTION of_row(anyelement) RETURNS text LANGUAGE sql AS $$ SELECT left(($1).v, 3) $$;
--@ cluster: SELECT create_distributed_table('tally', 'k'), create_distributed_table('tally_two', 'k')
INSERT INTO tally (k, n) SELECT g, g FROM generate_series(1, 12) g;
INSERT INTO tally_two SELECT g, g % 3, NULL FROM generate_series(1, 12) g;
INSERT INTO tally (k, n) VALUES (1, 10), (2, 20), (100, 30) ON CONFLICT (k) DO UPDATE SET n = doubled(tally.n + excluded.n);
INSERT INTO tally AS t (k, n) VALUES (3, 1), (101, 2), (4, 3) ON CONFLICT (k) DO UPDATE SET n = doubled(t.n), v = 'again' WHERE doubled(t.n) > 6 RETURNING k, n, v;
INSERT INTO tally (k, n) VALUES (5, 1), (102, 1), (6, 1) ON CONFLICT (k) DO UPDATE SET n = (SELECT count(*) FROM tally) RETURNING k, n;
INSERT INTO tally (k, n) VALUES (5, 1) ON CONFLICT (k) DO UPDATE SET n = (SELECT max(a) FROM tally_two o WHERE o.k = excluded.k), v = (SELECT name FROM users WHERE id = tally.k);
INSERT INTO tally SELECT k, a FROM tally_two WHERE k < 9 ON CONFLICT (k) DO UPDATE SET n = excluded.n + (SELECT sum(x.n) FROM tally x WHERE x.k < tally.k) WHERE EXISTS (SELECT FROM tally y WHERE y.k = excluded.k + 1) RETURNING k, n;
SELECT k, n, v FROM tally;
INSERT INTO tally (k, n) VALUES (7, 1), (103, 1) ON CONFLICT (k) DO UPDATE SET s = DEFAULT, v = DEFAULT, w = DEFAULT RETURNING k, v, w, s;
INSERT INTO tally (k, w) VALUES (7, 1) ON CONFLICT (k) DO UPDATE SET w = doubled(1) + 0.125, n = doubled(3) / 4.0, at = DEFAULT RETURNING k, w, n, at = now();
INSERT INTO tally (k, v) VALUES (7, 'x') ON CONFLICT (k) DO UPDATE SET v = of_row(tally) || of_row(excluded) || public.tally.k RETURNING k, v;
INSERT INTO tally (k, v) VALUES (8, 'x') ON CONFLICT ON CONSTRAINT tally_pkey DO UPDATE SET v = of_row(excluded.*), n = NULL RETURNING k, v, n;
INSERT INTO tally_two VALUES (1, 1, 1), (1, 2, 2), (2, 2, 3), (3, NULL, 4) ON CONFLICT (k, a) DO UPDATE SET n = doubled(excluded.n) RETURNING *;
--@ error: 21000
INSERT INTO tally (k, n) VALUES (9, 1), (9, 2) ON CONFLICT (k) DO UPDATE SET n = doubled(1);
--@ error: 21000
INSERT INTO tally (k, n) VALUES (900, 1), (900, 2) ON CONFLICT (k) DO UPDATE SET n = doubled(1);
INSERT INTO tally (k, n) VALUES (9, 1), (9, 2) ON CONFLICT (k) DO UPDATE SET n = doubled(1) WHERE excluded.n = doubled(1);
--@ error: 22012
INSERT INTO tally (k, n) VALUES (9, 1) ON CONFLICT (k) DO UPDATE SET n = doubled(1) / (excluded.n - 1);
--@ error: 22001
INSERT INTO tally (k, n) VALUES (9, 1) ON CONFLICT (k) DO UPDATE SET v = doubled(1) || 'far too long';
--@ error: 21000
INSERT INTO tally (k, n) VALUES (9, 1) ON CONFLICT (k) DO UPDATE SET n = (SELECT a FROM tally_two);
--@ error: 42702
INSERT INTO tally (k, n) VALUES (9, 1) ON CONFLICT (k) DO UPDATE SET n = doubled(n);
INSERT INTO tally (k, n) VALUES (10, 1), (11, 2) ON CONFLICT (k) DO UPDATE SET k = doubled(tally.k) + 200 RETURNING k, n, v;
INSERT INTO tally (k, n) VALUES (12, 1) ON CONFLICT (k) DO UPDATE SET k = excluded.k, n = doubled(excluded.n) RETURNING k, n, v;
SELECT k, n, v, w, s FROM tally;
--@ params: 1, 5, 'one'
--@ params: 2, NULL, 'two'
--@ params: 400, 3, 'three'
INSERT INTO tally (k, n) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET n = doubled($2) + (SELECT count(*) FROM tally_two WHERE k < $1), v = $3 || (SELECT 1) WHERE tally.k <> $1 + 1 RETURNING k, n, v;
--@ params: 1, '2020-02-03 04:05:06+00'
INSERT INTO tally (k) VALUES ($1) ON CONFLICT (k) DO UPDATE SET at = $2::timestamptz + (SELECT interval '1 day'), v = substr(doubled(1)::text || $2::timestamptz::text, 1, 6) RETURNING k, v, at;
SET datestyle = 'German';
INSERT INTO tally (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET at = tally.at + (SELECT interval '1 month'), v = (SELECT left(tally.at::text, 5)) RETURNING k, v, at;
RESET datestyle;
PREPARE upserts (int, int) AS INSERT INTO tally (k, n) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET n = doubled(tally.n) + $2 RETURNING k, n;
EXECUTE upserts (1, 1);
EXECUTE upserts (500, 2);
EXECUTE upserts (500, 2);
DEALLOCATE upserts;
-- In functions.
CREATE FUNCTION tallies(i int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; c int;
BEGIN
  INSERT INTO tally (k, n) VALUES (i, 1), (i + 1, 2), (i + 600, 3) ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n) + (SELECT count(*) FROM tally) WHERE doubled(tally.k) > 2;
  GET DIAGNOSTICS c = ROW_COUNT;
  INSERT INTO tally AS t (k, n) VALUES (i, 5) ON CONFLICT (k) DO UPDATE SET v = (SELECT left(u.name, 6) FROM users u WHERE u.id = excluded.k) RETURNING * INTO r;
  RETURN concat_ws(',', c, r.k, r.n, r.v, FOUND, (SELECT sum(n) FROM tally));
END $$;
--@ repeat: 1
SELECT tallies(1);
--@ repeat: 1
SELECT tallies(3) FROM users WHERE id < 3;
--@ repeat: 1
DO $$ BEGIN
  INSERT INTO tally (k, n) SELECT g, 7 FROM generate_series(1, 3) g ON CONFLICT (k) DO UPDATE SET n = doubled(tally.n) + (SELECT count(*) FROM tally WHERE n IS NULL);
  BEGIN
    INSERT INTO tally (k, n) VALUES (1, 1), (2, 2) ON CONFLICT (k) DO UPDATE SET n = doubled(1) / (tally.k - 2);
  EXCEPTION WHEN division_by_zero THEN INSERT INTO tally (k, v) VALUES (2, 'x') ON CONFLICT (k) DO UPDATE SET v = (SELECT 'caught');
  END;
  EXECUTE 'INSERT INTO tally (k, n) VALUES (1, 1), (1, 2) ON CONFLICT (k) DO UPDATE SET s = DEFAULT WHERE tally.k = doubled(1)';
END $$;
SELECT k, n, v, s FROM tally;
BEGIN;
INSERT INTO tally (k, n) VALUES (1, 1), (700, 1) ON CONFLICT (k) DO UPDATE SET n = doubled(5000);
SAVEPOINT s;
INSERT INTO tally (k, n) VALUES (1, 1), (700, 1), (701, 2) ON CONFLICT (k) DO UPDATE SET n = (SELECT max(n) + 1 FROM tally);
SELECT k, n FROM tally WHERE n > 100;
ROLLBACK TO s;
SELECT k, n FROM tally WHERE n > 100;
ROLLBACK;
-- A row that the statement itself has written is not updated, whatever the condition says, and whatever became of it.
CREATE TABLE met (k int, a int, n int, b text, live bool DEFAULT true, p int GENERATED ALWAYS AS (n * 2) STORED, PRIMARY KEY (k, a));
CREATE TABLE other_met (k int PRIMARY KEY, n int);
CREATE SCHEMA met_two;
CREATE TABLE met_two.met (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('met', 'k'), create_distributed_table('other_met', 'k'), create_distributed_table('met_two.met', 'k')
CREATE UNIQUE INDEX met_live ON met (k, n) WHERE live;
CREATE UNIQUE INDEX met_lower ON met (k, lower(b));
INSERT INTO met (k, a, n, b) SELECT g, 1, g, 'B' || g FROM generate_series(1, 9) g;
INSERT INTO other_met SELECT g, g FROM generate_series(1, 5) g;
INSERT INTO met_two.met SELECT g, g FROM generate_series(1, 5) g;
INSERT INTO met (k, a, b, n) VALUES (1, 2, 'new', 1), (2, 2, 'new', 22) ON CONFLICT (k, n) WHERE live DO UPDATE SET b = met.b || '/' || excluded.b || doubled(1) RETURNING k, a, b, n;
INSERT INTO met (k, a, b, n) VALUES (1, 3, 'b1/NEW2', 100), (3, 2, 'b3', 101) ON CONFLICT (k, lower(b)) DO UPDATE SET n = doubled(excluded.n) + excluded.p WHERE met.a < doubled(5) RETURNING k, a, b, n, p;
--@ error: 23505
INSERT INTO met (k, a, b, n) VALUES (5, 1, 'x', 77) ON CONFLICT (k, n) WHERE live DO UPDATE SET n = doubled(7);
--@ error: 21000
INSERT INTO met (k, a, b, n) VALUES (50, 1, 'x', 99), (50, 1, 'y', 100) ON CONFLICT (k, a) DO UPDATE SET n = doubled(11) WHERE excluded.b = 'zzz';
--@ error: 21000
INSERT INTO met (k, a, b, n) VALUES (5, 1, 'x', 99), (5, 1, 'y', 100) ON CONFLICT (k, a) DO UPDATE SET n = doubled(11) WHERE excluded.b = 'x';
INSERT INTO met (k, a, b, n) VALUES (5, 1, 'x', 99), (5, 1, 'y', 100) ON CONFLICT (k, a) DO UPDATE SET n = doubled(11) WHERE excluded.b = 'y' RETURNING n;
--@ error: 21000
DO $$ BEGIN INSERT INTO met (k, a, b, n) VALUES (51, 1, 'x', 99), (51, 1, 'y', 100) ON CONFLICT (k, a) DO UPDATE SET n = 5 WHERE false; END $$;
--@ error: 21000
DO $$ BEGIN INSERT INTO met (k, a, b, n) VALUES (51, 1, 'x', 99), (51, 1, 'y', 100) ON CONFLICT (k, a) DO UPDATE SET a = met.a + 1; END $$;
--@ error: 21000
DO $$ BEGIN INSERT INTO met (k, a, b, n) VALUES (51, 1, 'x', 99), (51, 1, 'y', 100) ON CONFLICT ON CONSTRAINT met_pkey DO UPDATE SET n = excluded.n; END $$;
--@ error: 21000
INSERT INTO tally (k, n) VALUES (950, 1), (950, 2) ON CONFLICT (k) DO UPDATE SET k = doubled(tally.k) + 1000;
--@ repeat: 1
DO $$ BEGIN
  INSERT INTO met (k, a, b, n) VALUES (52, 1, 'x', 99);
  INSERT INTO met (k, a, b, n) VALUES (52, 1, 'x', 99), (52, 2, 'y', 200), (52, 3, 'z', 300) ON CONFLICT (k, a) DO UPDATE SET n = met.n + 1 WHERE met.a > 0;
  INSERT INTO met (k, a, b, n) VALUES (52, 2, 'y', 99), (52, 3, 'z', 100) ON CONFLICT (k, a) DO UPDATE SET n = met.n + 50 WHERE excluded.n < 100;
END $$;
SELECT * FROM met;
-- Several columns at once, comments and quotes in the clause.
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET n = doubled(4) /* don't ( */, b = E'it\'s (' -- returning '
  WHERE met.b <> $$ returning ' $$ RETURNING k, n, b;
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET (n, b) = ((doubled(4) + met.n) * (2 + 1), 'x' || (met.b)) RETURNING k, n, b;
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET n = (doubled(4) + met.n) * (2 + 1), (b) = ROW (('y' || met.b)) RETURNING k, n, b;
INSERT INTO met (k, a) VALUES (6, 1), (7, 1), (60, 1) ON CONFLICT (k, a) DO UPDATE SET (n, b) = (SELECT doubled(4) + excluded.k, 'z' || met.b), live = DEFAULT RETURNING k, n, b;
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET live = false, (n, b) = (SELECT n, 'none' FROM other_met o WHERE o.k = 12345) RETURNING k, n, b, live;
--@ error: 21000
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET (n, b) = (SELECT n, 'many' FROM other_met);
INSERT INTO met (k, a) VALUES (6, 1) ON CONFLICT (k, a) DO UPDATE SET (n, b) = (SELECT n, 'many' FROM other_met) WHERE doubled(met.k) > 100;
INSERT INTO met (k, a, b) VALUES (7, 1, 'x') ON CONFLICT (k, a) DO UPDATE SET b = DEFAULT WHERE doubled(met.k) = 14 RETURNING k, n, b;
INSERT INTO met (k, a, b) VALUES (8, 1, 'x') ON CONFLICT (k, a) DO UPDATE SET (b, k) = (DEFAULT, doubled(met.k) + 60) RETURNING k, a, n, b;
INSERT INTO met (k, a, b) VALUES (76, 1, 'x') ON CONFLICT (k, a) DO UPDATE SET (n, k) = (SELECT max(n), 77 FROM other_met WHERE other_met.k < excluded.k) RETURNING k, a, n, b;
--@ params: 3, 'three'
--@ params: 4, NULL
INSERT INTO met (k, a) VALUES ($1, 1) ON CONFLICT (k, a) DO UPDATE SET (n, b) = (SELECT max(o.n) + $1, $2::text FROM other_met o WHERE o.k <= $1) RETURNING k, n, b;
-- In common table expressions.
WITH i AS (INSERT INTO met (k, a, n) VALUES (9, 1, 70), (90, 1, 80) ON CONFLICT (k, a) DO UPDATE SET n = doubled(excluded.n) RETURNING k, n) SELECT * FROM i;
WITH i AS (INSERT INTO met (k, a, n) VALUES (9, 1, 71), (91, 1, 90) ON CONFLICT (k, a) DO UPDATE SET n = excluded.n RETURNING *) SELECT i.k, i.n, o.n FROM i LEFT JOIN other_met o ON i.k = o.k + 4;
WITH i AS (INSERT INTO other_met VALUES (5, 71), (10, 90) ON CONFLICT DO NOTHING RETURNING *) SELECT * FROM i;
WITH i AS (INSERT INTO other_met VALUES (1, 1), (11, 7) ON CONFLICT (k) DO UPDATE SET n = 77 RETURNING *) INSERT INTO met (k, a, n) SELECT k, 1, n FROM i ON CONFLICT (k, a) DO UPDATE SET n = excluded.n + met.n RETURNING k, a, n;
WITH i AS (INSERT INTO met (k, a, n) VALUES (1, 1, 178), (92, 1, 7) ON CONFLICT (k, a) DO UPDATE SET n = excluded.n RETURNING *), u AS (UPDATE other_met SET n = i.n FROM i WHERE i.k = other_met.k RETURNING other_met.*) SELECT i.k, u.n FROM i LEFT JOIN u USING (k);
WITH i AS (INSERT INTO other_met VALUES (2, 1), (12, 7) ON CONFLICT (k) DO UPDATE SET n = 79 WHERE other_met.n < 0 RETURNING k) SELECT * FROM i;
WITH r AS (SELECT max(n) AS m FROM met_two.met), i AS (INSERT INTO other_met SELECT 2, m FROM r ON CONFLICT (k) DO UPDATE SET n = (SELECT count(*) FROM met_two.met o WHERE o.k < excluded.n) RETURNING *) SELECT * FROM i;
--@ error: 23505
WITH i AS (INSERT INTO other_met VALUES (1, 1) RETURNING *) INSERT INTO met (k, a, n) SELECT k, 1, n FROM i ON CONFLICT (k, a) DO UPDATE SET n = 0;
--@ refused: 0A000
WITH r AS (SELECT 5 AS n) INSERT INTO other_met SELECT 2, n FROM r ON CONFLICT (k) DO UPDATE SET n = (SELECT count(*) FROM r);
CREATE FUNCTION met_cte(i int, x int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE r int; BEGIN WITH w AS (INSERT INTO other_met (k, n) VALUES (i, x) ON CONFLICT (k) DO UPDATE SET n = other_met.n + excluded.n RETURNING n) SELECT n INTO r FROM w; RETURN r; END $$;
--@ repeat: 1
SELECT met_cte(1, 5), met_cte(200, 6);
-- A function's variables: as the values of the columns that they were inserted into, and refused elsewhere.
CREATE FUNCTION met_put(i int, x numeric, t text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r record; BEGIN
  INSERT INTO met (k, a, n, b) VALUES (i, 1, x, t) ON CONFLICT (k, a) DO UPDATE SET n = x, b = t, live = NOT met.live RETURNING * INTO r;
  RETURN concat_ws(',', r.k, r.n, r.b, r.live); END $$;
--@ repeat: 1
SELECT met_put(1, 300.6, 'put'), met_put(301, 301.4, NULL), met_put(2, NULL, 'null');
CREATE FUNCTION met_record(r other_met) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c int; BEGIN
  INSERT INTO other_met VALUES (r.k, r.n) ON CONFLICT (k) DO UPDATE SET n = r.n;
  EXECUTE 'INSERT INTO other_met AS o VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET n = $2 WHERE o.n IS DISTINCT FROM excluded.n' USING r.k, r.n + 1;
  GET DIAGNOSTICS c = ROW_COUNT; RETURN c; END $$;
--@ repeat: 1
SELECT met_record((3, 1000)), met_record((303, 2000));
CREATE FUNCTION met_variable(x int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO other_met VALUES (3, 1) ON CONFLICT (k) DO UPDATE SET n = other_met.n + x; END $$;
--@ refused: 0A000
SELECT met_variable(4);
CREATE FUNCTION met_subquery(x int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO other_met VALUES (3, 1) ON CONFLICT (k) DO UPDATE SET n = (SELECT max(m.n) FROM met m WHERE m.k < x); END $$;
--@ refused: 0A000
SELECT met_subquery(4);
SELECT * FROM met;
SELECT * FROM other_met;
-- Functions that it calls for each row have subtransactions which fail.
CREATE TABLE caught (k int PRIMARY KEY, n int);
CREATE FUNCTION caught_read(i int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE c int; BEGIN
  BEGIN c := (SELECT count(*) FROM other_met WHERE k = i); RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN RETURN i; END; END $$;
--@ cluster: SELECT create_distributed_table('caught', 'k')
INSERT INTO caught SELECT g, g FROM generate_series(1, 6) g;
DO $$ BEGIN INSERT INTO caught SELECT g, caught_read(g) FROM generate_series(1, 4) g ON CONFLICT (k) DO UPDATE SET n = excluded.n + (SELECT sum(n) FROM caught); END $$;
SELECT * FROM caught;
BEGIN;
SAVEPOINT s;
DO $$ BEGIN INSERT INTO caught SELECT g, CASE WHEN g > 1 THEN caught_read(g) ELSE 1 END FROM generate_series(1, 4) g ON CONFLICT (k) DO UPDATE SET n = excluded.n + (SELECT sum(n) FROM caught); END $$;
COMMIT;
DO $$ BEGIN INSERT INTO caught SELECT g, CASE WHEN g > 1 THEN caught_read(g) ELSE 1 END FROM generate_series(1, 4) g ON CONFLICT (k) DO UPDATE SET n = excluded.n + (SELECT sum(n) FROM caught); END $$;
SELECT * FROM caught;
--@ error: 21000
DO $$ BEGIN INSERT INTO caught SELECT 1, caught_read(g) FROM generate_series(1, 2) g ON CONFLICT (k) DO UPDATE SET n = excluded.n + (SELECT sum(n) FROM caught); END $$;
--@ error: 21000
DO $$ BEGIN INSERT INTO caught SELECT 50, caught_read(g) FROM generate_series(1, 2) g ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n); END $$;
SELECT * FROM caught;
-- Others insert into the same table.
CREATE FUNCTION caught_more(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO caught SELECT i + 100, 0; INSERT INTO caught VALUES (i + 100, 7) ON CONFLICT (k) DO UPDATE SET n = excluded.n + caught.n; RETURN i; END $$;
DO $$ BEGIN INSERT INTO caught SELECT caught_more(g), g FROM generate_series(11, 13) g; END $$;
SELECT * FROM caught;
INSERT INTO caught SELECT caught_more(g), g FROM generate_series(21, 23) g;
SELECT * FROM caught;
CREATE FUNCTION caught_deep(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO caught SELECT caught_more(i + 200), 5; RETURN i; EXCEPTION WHEN unique_violation THEN RETURN i + 1000; END $$;
DO $$ BEGIN INSERT INTO caught SELECT caught_deep(g % 3) + 5000, g FROM generate_series(1, 3) g; INSERT INTO caught SELECT caught_deep(g % 3 + 2) + 6000, g FROM generate_series(1, 3) g; END $$;
SELECT * FROM caught;
--@ refused: PH001
DO $$ BEGIN INSERT INTO caught SELECT caught_more(g), g FROM generate_series(31, 33) g ON CONFLICT (k) DO UPDATE SET n = 1; END $$;
SELECT * FROM caught;
-- With triggers.
CREATE FUNCTION tally_trigger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v = 'skip' THEN RETURN NULL; END IF; NEW.v := left(TG_OP || NEW.v, 6); RETURN NEW; END $$;
CREATE TRIGGER tally_trigger BEFORE INSERT OR UPDATE ON tally FOR EACH ROW EXECUTE FUNCTION tally_trigger();
INSERT INTO tally (k, v) VALUES (1, 'a'), (800, 'b'), (2, 'skip') ON CONFLICT (k) DO UPDATE SET n = doubled(21), v = excluded.v RETURNING k, n, v;
INSERT INTO tally (k, v) VALUES (1, 'a'), (2, 'c') ON CONFLICT (k) DO UPDATE SET v = (SELECT CASE tally.k WHEN 1 THEN 'skip' ELSE 'c' END) RETURNING k, n, v;
SELECT k, n, v FROM tally WHERE k IN (1, 2, 800);
DROP TRIGGER tally_trigger ON tally;

-- MERGE with what no worker may compute.
CREATE VIEW once AS SELECT k, min(a) AS a FROM tally_two GROUP BY k;
MERGE INTO tally t USING once o ON t.k = o.k
  WHEN MATCHED AND doubled(t.k) > 8 THEN UPDATE SET n = doubled(t.k) + o.k, v = 'merged', w = doubled(1) / 3.0
  WHEN MATCHED AND doubled(t.k) = 2 THEN DELETE
  WHEN NOT MATCHED AND doubled(o.k) > 0 THEN INSERT (k, n, v) VALUES (o.k, doubled(o.k), 'fresh');
SELECT k, n, v, w, s IS NULL FROM tally;
SELECT count(DISTINCT s) FROM tally;
MERGE INTO tally USING users u ON doubled(u.id::int) = tally.k WHEN MATCHED THEN UPDATE SET n = u.id, s = DEFAULT, at = DEFAULT WHEN NOT MATCHED AND u.id < 5 THEN INSERT (k) VALUES (doubled(u.id::int) + 9000);
SELECT k, n, v, w, s > 0, at = now() FROM tally;
MERGE INTO tally AS t USING (VALUES (4, 'a'), (9002, 'b'), (9991, 'c')) x(i, txt) ON t.k = x.i WHEN MATCHED AND doubled(x.i) > 10 THEN DO NOTHING WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (x.i, doubled(x.i), x.txt, NULL, now());
SELECT k, n, v FROM tally;
--@ error: 21000
MERGE INTO tally t USING (VALUES (3), (3)) x(i) ON t.k = x.i WHEN MATCHED THEN UPDATE SET n = doubled(1);
--@ error: 21000
MERGE INTO tally t USING (VALUES (3), (3)) x(i) ON t.k = x.i WHEN MATCHED AND doubled(t.k) > 0 THEN DELETE;
--@ error: 23505
MERGE INTO tally t USING (VALUES (3), (7777), (7777)) x(i) ON t.k = x.i WHEN NOT MATCHED THEN INSERT (k, n) VALUES (x.i, doubled(1));
--@ error: 22012
MERGE INTO tally t USING (VALUES (3)) x(i) ON t.k = x.i WHEN MATCHED THEN UPDATE SET n = doubled(1) / (x.i - 3);
--@ error: 42883
MERGE INTO tally t USING (VALUES (3)) x(i) ON t.k = x.i WHEN MATCHED THEN UPDATE SET n = doubled('a'::bytea);
MERGE INTO tally t USING (VALUES (3), (9001)) x(i) ON t.k = x.i WHEN MATCHED THEN UPDATE SET k = doubled(t.k) + 100000, n = NULL;
SELECT k, n, v FROM tally;
--@ params: 5, 'five'
--@ params: 12345, NULL
MERGE INTO tally t USING (SELECT $1::int AS i) x ON t.k = x.i WHEN MATCHED THEN UPDATE SET n = doubled($1), v = left($2, 6) WHEN NOT MATCHED THEN INSERT (k, v) VALUES (doubled(x.i), $2);
SELECT k, n, v FROM tally;
BEGIN;
MERGE INTO tally t USING once o ON t.k = o.k WHEN MATCHED THEN UPDATE SET n = (SELECT count(*) FROM tally x WHERE doubled(x.k) < t.k);
SELECT k, n, v FROM tally;
ROLLBACK;

-- A volatile function would see what the statement has changed so far.
CREATE FUNCTION said_so_far() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM tally WHERE v = 'hit'); END $$;
CREATE FUNCTION said_before() RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM tally WHERE v = 'hit'); END $$;
CREATE FUNCTION said_by_another() RETURNS bigint LANGUAGE sql AS $$ SELECT said_so_far() $$;
CREATE FUNCTION said_of_others() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM audit $$;
--@ refused: 0A000
MERGE INTO tally t USING once o ON t.k = o.k WHEN MATCHED THEN UPDATE SET v = 'hit', n = said_so_far();
--@ refused: 0A000
MERGE INTO tally t USING once o ON t.k = o.k + 20000 WHEN NOT MATCHED THEN INSERT (k, v, n) VALUES (o.k + 20000, 'hit', said_so_far());
--@ refused: 0A000
MERGE INTO tally t USING once o ON t.k = o.k WHEN MATCHED AND said_by_another() < 2 THEN DELETE;
BEGIN;
MERGE INTO tally t USING once o ON t.k = o.k WHEN MATCHED THEN UPDATE SET v = 'hit', n = said_before() WHEN NOT MATCHED THEN INSERT (k, n) VALUES (o.k, said_of_others());
SELECT k, n, v FROM tally;
ROLLBACK;

-- Loops over the rows of an INSERT.
CREATE FUNCTION looped(a int, b int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; l text := '';
BEGIN
  FOR r IN INSERT INTO ranks (k, n) SELECT g, g FROM generate_series(a, b) g ON CONFLICT DO NOTHING RETURNING k, n LOOP
    l := l || r.k || ' ';
  END LOOP;
  FOR r IN
    INSERT INTO ranks AS x (k, n) SELECT g, g FROM generate_series(a, b) g
    ON CONFLICT (k) DO UPDATE SET n = x.n + excluded.n, m = 5 RETURNING k, n
  LOOP
    l := l || r.k || ':' || r.n || ' ';
  END LOOP;
  RETURN l || FOUND;
END $$;
--@ repeat: 1
SELECT looped(300, 303);
--@ repeat: 1
SELECT looped(302, 305);
SELECT * FROM ranks WHERE k >= 300;
--@ repeat: 1
DO $$ DECLARE r record; BEGIN FOR r IN INSERT INTO ranks (k, n) VALUES (300, 1), (310, 2), (310, 3) ON CONFLICT DO NOTHING RETURNING k LOOP UPDATE ranks SET m = 77 WHERE k = r.k; END LOOP; END $$;
SELECT * FROM ranks WHERE k >= 300;
CREATE FUNCTION keep(i int, x int) RETURNS SETOF int LANGUAGE sql AS $$ INSERT INTO ranks (k, n) VALUES (i, x), (i + 1, x) ON CONFLICT DO NOTHING RETURNING k $$;
--@ repeat: 1
SELECT keep(320, 1);
--@ repeat: 1
SELECT keep(321, 2);
SELECT * FROM ranks WHERE k >= 320;
