--@ include: schema.sql
-- Writes to reference tables that must be computed once: the coordinator's copy is written, the others get its rows.

CREATE TABLE rates (code text PRIMARY KEY, rate numeric(12, 4), note text, changed timestamptz DEFAULT now(), n int DEFAULT 0, twice int GENERATED ALWAYS AS (n * 2) STORED);
CREATE TABLE bag (a int, b text, c jsonb, d float8[]);
CREATE TABLE kinds (id int GENERATED ALWAYS AS IDENTITY, kind varchar(8), flags bit(4), pad char(6), PRIMARY KEY (id));
CREATE TABLE uses (k int, code text REFERENCES rates ON UPDATE CASCADE ON DELETE CASCADE, PRIMARY KEY (k));
CREATE TABLE follows (code text REFERENCES rates ON UPDATE CASCADE ON DELETE SET NULL, v int);
CREATE TABLE local_log (what text, old text, new text);
--@ cluster: SELECT create_reference_table('rates'), create_reference_table('bag'), create_reference_table('kinds')
--@ cluster: SELECT create_reference_table('follows'), create_distributed_table('uses', 'k')
INSERT INTO rates (code, rate) VALUES ('a', 1), ('b', 2.5), ('c', NULL), ('d', 4);
INSERT INTO bag VALUES (1, 'x', '{"a": 1}', '{1.5,NULL}'), (1, 'x', '{"a": 1}', '{1.5,NULL}'), (2, NULL, NULL, NULL), (2, NULL, NULL, NULL), (3, E'q\\\'"{},', '[]', '{}');
INSERT INTO kinds (kind, flags, pad) VALUES ('one', '0101', 'p'), ('two', '1111', NULL) RETURNING id, kind;
INSERT INTO uses SELECT g, (ARRAY['a', 'b', 'c', 'd'])[1 + g % 4] FROM generate_series(1, 20) g;
INSERT INTO follows VALUES ('a', 1), ('b', 2), (NULL, 3);

-- ON CONFLICT.
INSERT INTO rates (code, rate) VALUES ('a', 10), ('e', 5) ON CONFLICT (code) DO UPDATE SET rate = excluded.rate + rates.rate, changed = now() RETURNING code, rate, n, twice;
INSERT INTO rates (code, note) VALUES ('b', 'random') ON CONFLICT (code) DO UPDATE SET note = 'r' || (random() * 0)::int, n = rates.n + 1 RETURNING code, note, n, twice;
INSERT INTO rates (code, n) SELECT 'new' || id, id FROM users WHERE id < 4 ON CONFLICT DO NOTHING RETURNING code, twice;
INSERT INTO rates (code, n) SELECT 'new' || id, id FROM users WHERE id < 6 ON CONFLICT (code) DO UPDATE SET n = rates.n * 10 WHERE rates.n > 1 RETURNING code, n;
INSERT INTO rates AS r (code, n) VALUES ('a', 1) ON CONFLICT (code) DO UPDATE SET n = (SELECT count(*) FROM users), note = DEFAULT RETURNING r.code, r.n, r.changed > now() - interval '1 hour';
--@ error: 21000
INSERT INTO rates (code) VALUES ('zz'), ('zz') ON CONFLICT (code) DO UPDATE SET changed = clock_timestamp();
SELECT code, rate, note, n, twice FROM rates;

-- UPDATE and DELETE.
UPDATE rates r SET n = t.n FROM (SELECT country, count(*) AS n FROM users GROUP BY country) t WHERE r.code = left(t.country, 1);
UPDATE rates SET rate = rate + random() * 0 WHERE code IN ('a', 'b') RETURNING code, rate;
UPDATE rates SET n = (SELECT count(*) FROM orders o WHERE o.user_id = rates.n) RETURNING code, n;
UPDATE rates SET changed = DEFAULT, note = NULL WHERE code = 'c' RETURNING note, changed IS NOT NULL;
UPDATE rates SET code = 'A' || (random() * 0)::int WHERE code = 'a' RETURNING code;
SELECT * FROM uses WHERE k < 9;
SELECT * FROM follows;
UPDATE rates SET n = n WHERE (SELECT count(*) FROM users) > 0;
UPDATE bag SET b = 'new ' || (random() * 0)::int WHERE a = 1 RETURNING *;
UPDATE bag SET a = a + (SELECT count(*) FROM users WHERE id = 1), d = '{Infinity,-0,1e-300}' WHERE b IS NULL RETURNING *;
UPDATE bag SET c = '{"n": null}' WHERE ctid = (SELECT min(ctid) FROM bag WHERE a = 1);
DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag WHERE b IS NULL) RETURNING *;
SELECT * FROM bag;
UPDATE kinds SET kind = 'k' || (SELECT min(id) FROM users), pad = left(pad, 1) || (random() * 0)::int, flags = ~flags RETURNING *;
DELETE FROM rates WHERE code IN (SELECT 'new' || id FROM users WHERE id < 3) RETURNING code, n;
DELETE FROM rates USING users u WHERE rates.code = 'd' AND u.id = 1 AND random() >= 0;
SELECT count(*), count(code) FROM uses;
--@ error: 23503
INSERT INTO follows SELECT 'none ' || (random() * 0)::int, 5;
--@ error: 23514
INSERT INTO products SELECT 999, 'x', -1 - random() * 0;
--@ error: 23505
INSERT INTO rates SELECT 'b', random() ON CONFLICT (code) DO UPDATE SET code = 'c';
--@ error: 23505
UPDATE rates SET code = 'b' || left((random() * 0)::text, 0) WHERE code = 'c';

-- In common table expressions.
WITH gone AS (DELETE FROM rates WHERE code LIKE 'new%' RETURNING *) SELECT code, n FROM gone;
WITH up AS (UPDATE rates SET n = 7 WHERE code = 'b' RETURNING code, n), ins AS (INSERT INTO rates (code, n) SELECT code || '2', n FROM up RETURNING code) SELECT code FROM ins UNION ALL SELECT code FROM up;
WITH moved AS (DELETE FROM follows WHERE v = 3 RETURNING *) INSERT INTO bag (a, b) SELECT v, code FROM moved RETURNING a, b;
WITH n AS (INSERT INTO uses VALUES (100, 'b') RETURNING code) UPDATE rates SET n = n + 100 WHERE code IN (SELECT code FROM n) RETURNING code, n;
SELECT r.code, u.k FROM rates r JOIN uses u ON u.code = r.code AND r.n > 90;

-- Triggers run once.
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changed := clock_timestamp(); NEW.note := coalesce(NEW.note, '') || '!'; RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON rates FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO local_log VALUES (TG_OP, OLD.code, NEW.code); RETURN NULL; END $$;
CREATE TRIGGER logs AFTER INSERT OR UPDATE OR DELETE ON rates FOR EACH ROW EXECUTE FUNCTION logs();
INSERT INTO rates (code, n) VALUES ('t1', 1), ('t2', 2) RETURNING code, note;
UPDATE rates SET n = n + 1 WHERE code LIKE 't%' RETURNING code, n, note;
DELETE FROM rates WHERE code = 't2' RETURNING note;
COPY rates (code, n) FROM STDIN;
t3	3
t4	4
\.
SELECT * FROM local_log;
SELECT code, n, note FROM rates WHERE code LIKE 't%';
SELECT r.code, r.note FROM rates r, users u WHERE u.id = r.n AND r.code LIKE 't%';
ALTER TABLE rates DISABLE TRIGGER stamp;
UPDATE rates SET n = 5 WHERE code = 't1' RETURNING note;
ALTER TABLE rates DISABLE TRIGGER USER;
UPDATE rates SET n = n + (random() * 0)::int WHERE code = 't1' RETURNING note;
UPDATE rates SET n = n + 1 + (random() * 0)::int WHERE code = 't1' RETURNING note, n;
DROP TRIGGER logs ON rates;
DROP TRIGGER stamp ON rates;

-- Functions, procedures, DO blocks.
CREATE FUNCTION set_rate(c text, r numeric) RETURNS text LANGUAGE plpgsql AS $$
DECLARE x rates;
BEGIN
  INSERT INTO rates (code, rate) VALUES (c, r) ON CONFLICT (code) DO UPDATE SET rate = excluded.rate, n = rates.n + 1 RETURNING * INTO x;
  UPDATE rates SET note = 'set' WHERE code = c;
  RETURN x.code || x.rate || x.n || FOUND;
END $$;
--@ repeat: 1
SELECT set_rate('f1', 1.25);
--@ repeat: 1
SELECT set_rate('f1', 2.25), set_rate('f2', 3);
--@ repeat: 1
DO $$ BEGIN DELETE FROM rates WHERE code = 'f2'; INSERT INTO bag (a) SELECT g FROM generate_series(50, 55) g; UPDATE bag SET b = 'do' WHERE a > 53; END $$;
--@ repeat: 1
DO $$ BEGIN
  BEGIN
    DELETE FROM rates WHERE code = 'f1';
    RAISE EXCEPTION 'back';
  EXCEPTION WHEN OTHERS THEN UPDATE rates SET n = -1 WHERE code = 'f1';
  END;
END $$;
CREATE FUNCTION sql_rate(c text) RETURNS SETOF text LANGUAGE sql AS $$ UPDATE rates SET n = n + 1000 WHERE code = c RETURNING code || n $$;
--@ repeat: 1
SELECT sql_rate('b');
SELECT code, rate, n, note FROM rates;
SELECT r.code, r.n, u.k FROM rates r JOIN uses u USING (code);
SELECT a, b FROM bag WHERE a >= 50;

-- In transactions.
BEGIN;
INSERT INTO uses VALUES (200, 'b');
UPDATE rates SET n = (SELECT count(*) FROM uses WHERE code = 'b') WHERE code = 'b' RETURNING n;
SAVEPOINT s;
UPDATE rates SET n = (SELECT count(*) FROM uses) * 2 WHERE code = 'b' RETURNING n;
ROLLBACK TO s;
SELECT r.n, u.k FROM rates r JOIN uses u USING (code) WHERE code = 'b';
INSERT INTO rates (code, n) SELECT 'tx', count(*) FROM uses RETURNING n;
SELECT code FROM rates WHERE code = 'tx';
COMMIT;
BEGIN;
UPDATE rates SET changed = now(), n = 0;
ROLLBACK;
SELECT r.n, u.k FROM rates r JOIN uses u USING (code) WHERE code = 'b';
--@ params: 'p1', 4
--@ params: 'p1', 5
--@ params: 'b', NULL
INSERT INTO rates (code, n) VALUES ($1, $2) ON CONFLICT (code) DO UPDATE SET n = excluded.n, changed = now() RETURNING code, n, twice;
--@ params: 'p1', 3
--@ params: 'zzz', 3
UPDATE rates SET n = (SELECT count(*) FROM users WHERE id < $2) WHERE code = $1 RETURNING code, n;

-- MERGE.
MERGE INTO rates r USING (SELECT DISTINCT left(country, 1) AS c FROM users WHERE country < 'g') s ON r.code = s.c WHEN MATCHED THEN UPDATE SET n = 77 WHEN NOT MATCHED THEN INSERT (code, n) VALUES (s.c, 78);
SELECT code, n FROM rates;

-- All copies have the same rows.
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM rates x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM rates x) u)
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM bag x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM bag x) u)
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM kinds x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM kinds x) u)
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM follows x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM follows x) u)
SELECT count(*) FROM rates;

-- Through views and rules, EXPLAIN ANALYZE, COPY and TRUNCATE.
CREATE VIEW seen AS SELECT code, n FROM rates WHERE n < 50 WITH CHECK OPTION;
UPDATE seen SET n = 49 WHERE code = 'p1' RETURNING *;
INSERT INTO seen VALUES ('view', 1) RETURNING *;
--@ error: 44000
--@ loose: the detail has a time
UPDATE seen SET n = 51 WHERE code = 'view';
CREATE TABLE writes_through (a int);
CREATE RULE through AS ON INSERT TO writes_through DO ALSO INSERT INTO bag (a, b) VALUES (NEW.a, 'rule');
INSERT INTO writes_through VALUES (700), (701);
SELECT a, b FROM bag WHERE b = 'rule';
COPY (UPDATE bag SET b = 'copied' WHERE a = 700 RETURNING a, b) TO STDOUT;
CREATE TABLE emptied (a int, b int);
--@ cluster: SELECT create_reference_table('emptied')
INSERT INTO emptied VALUES (1, 1);
TRUNCATE emptied;
INSERT INTO emptied SELECT count(*), 1 FROM users RETURNING *;
SELECT e.a, u.id FROM emptied e, users u WHERE u.id = 1;
CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE ON UPDATE CASCADE);
--@ cluster: SELECT create_reference_table('tree')
INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, 1), (5, NULL), (6, 5);
UPDATE tree SET id = id + 10 + (random() * 0)::int WHERE id IN (1, 5) RETURNING *;
DELETE FROM tree WHERE id = 11 AND random() >= 0 RETURNING *;
SELECT * FROM tree;
SELECT t.* FROM tree t JOIN users u ON u.id = t.id;
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM bag x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM bag x) u)
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM rates x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM rates x) u)
--@ cluster: SELECT 1 / (SELECT (count(DISTINCT h) = 1 AND count(*) > 1)::int FROM (SELECT result AS h FROM run_command_on_workers('SELECT md5(string_agg(x::text, '','' ORDER BY x::text)) FROM tree x') UNION ALL SELECT md5(string_agg(x::text, ',' ORDER BY x::text)) FROM tree x) u)
SELECT count(*) FROM tree;

-- In a block that keeps one snapshot, what a write reads is read by the coordinator for all copies.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM rates;
UPDATE rates SET n = (SELECT count(*) FROM kinds), note = 'kept' WHERE code < 'c' RETURNING code, n, twice, note;
INSERT INTO rates (code, n) SELECT 'kind' || id, id FROM kinds ON CONFLICT (code) DO NOTHING RETURNING code, twice;
DELETE FROM rates WHERE code = 'kind1' RETURNING code, n, twice;
INSERT INTO kinds (kind) VALUES ('late') RETURNING kind;
UPDATE kinds SET kind = 'later', pad = 'x' WHERE kind = 'late' RETURNING kind, flags, pad;
--@ error: 23505
INSERT INTO rates (code) VALUES ('b');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE rates SET n = (SELECT count(*) FROM kinds), note = 'kept' WHERE code < 'c';
DELETE FROM bag WHERE a = 3;
UPDATE bag SET b = 'kept' WHERE a = 2 AND d IS NULL;
COMMIT;
SELECT u.k, r.code, r.n, r.note FROM uses u JOIN rates r USING (code);
SELECT u.k, b.a, b.b FROM uses u LEFT JOIN bag b ON b.a = u.k;

-- Triggers of users do not fire as on a replica; the copies are kept.
SET session_replication_role = replica;
UPDATE rates SET n = n + 100 + (random() * 0)::int WHERE code < 'c';
INSERT INTO kinds (kind) SELECT 'many ' || id FROM users WHERE id < 4;
DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag);
BEGIN ISOLATION LEVEL REPEATABLE READ;
UPDATE rates SET note = 'replica' WHERE code = 'b';
UPDATE rates SET note = (SELECT count(*) FROM kinds) WHERE code = 'e';
COMMIT;
RESET session_replication_role;
SELECT u.k, r.code, r.n, r.note FROM uses u LEFT JOIN rates r ON r.code = u.code;
SELECT u.k, count(b.a) FROM uses u LEFT JOIN bag b ON b.a < 9 GROUP BY u.k;
SELECT u.k, count(i.kind) FROM uses u LEFT JOIN kinds i ON i.kind LIKE 'many%' GROUP BY u.k;
