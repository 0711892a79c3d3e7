-- System columns: versions of rows (xmin and its like) as workers have them, tableoid as the coordinator has it. Their values
-- differ between servers, so what is compared is what they are compared with.

CREATE TABLE docs (k int PRIMARY KEY, v text, version int DEFAULT 0);
CREATE TABLE years (k int, y int, v text, PRIMARY KEY (k, y)) PARTITION BY RANGE (y);
CREATE TABLE years_1 PARTITION OF years FOR VALUES FROM (0) TO (10);
CREATE TABLE years_2 PARTITION OF years FOR VALUES FROM (10) TO (20);
CREATE TABLE kinds (id int PRIMARY KEY, name text);
CREATE TABLE plain_notes (id int PRIMARY KEY, k int);
--@ cluster: SELECT create_distributed_table('docs', 'k'), create_distributed_table('years', 'k'), create_reference_table('kinds')
INSERT INTO docs SELECT i, 'v' || i FROM generate_series(1, 20) i;
INSERT INTO years SELECT i, i, 'v' || i FROM generate_series(1, 19) i;
INSERT INTO kinds VALUES (1, 'one'), (2, 'two');
INSERT INTO plain_notes SELECT i, i FROM generate_series(1, 5) i;

-- A row's version as a token: a change is made where nobody has made another.
UPDATE docs SET v = 'first' WHERE k = 5 AND xmin = (SELECT xmin FROM docs WHERE k = 5);
DO $$ DECLARE seen xid; n int; BEGIN
  SELECT xmin INTO seen FROM docs WHERE k = 6;
  UPDATE docs SET v = 'mine' WHERE k = 6 AND version = 0;
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE NOTICE '%', n;
END $$;
SELECT xmin = xmin, xmax = '0', cmin = cmin FROM docs WHERE k = 1;
SELECT xmin IS NOT NULL, k FROM docs ORDER BY k LIMIT 3;
SELECT count(*) FROM docs WHERE xmin IS NULL;
SELECT count(*) FROM docs WHERE xmin::text::bigint > 0;
SELECT d.xmin::text = d.xmin::text FROM docs d WHERE d.k = 3;
UPDATE docs SET version = version + 1 WHERE k = 3 RETURNING xmin IS NOT NULL, xmax = '0'::xid;
DELETE FROM docs WHERE k = 3 AND xmin = '1' RETURNING k;
UPDATE docs SET version = 9 WHERE xmin = '1';
INSERT INTO docs VALUES (30, 'thirty') RETURNING xmax = '0'::xid AS inserted;
INSERT INTO docs VALUES (30, 'again') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING xmax = '0'::xid AS inserted;
SELECT k, v FROM docs WHERE k >= 30 ORDER BY k;
-- Names of outputs and of subqueries' columns are no system columns.
SELECT min(version) AS xmin, max(k) AS xmax FROM docs;
SELECT k AS xmin FROM docs ORDER BY xmin LIMIT 3;
SELECT xmin + 1, s.xmax FROM (SELECT min(k) AS xmin, max(k) AS xmax FROM docs) s;
SELECT k AS xmin, row_number() OVER (ORDER BY random()) > 0 FROM docs ORDER BY xmin LIMIT 2;
WITH box(xmin, ctid, tableoid) AS (SELECT min(k), max(k), count(*) FROM docs) SELECT xmin, ctid, tableoid FROM box;
-- Reference and local tables beside them.
SELECT n.xmin = n.xmin, d.k FROM plain_notes n JOIN docs d ON d.k = n.k ORDER BY d.k;
SELECT xmax = '0'::xid FROM kinds ORDER BY id;
UPDATE kinds SET name = 'zwei' WHERE id = 2 AND xmin = (SELECT xmin FROM kinds WHERE id = 2) RETURNING name;
UPDATE kinds SET name = 'drei' WHERE id = 2 AND xmin = '1' RETURNING name;
SELECT name FROM kinds ORDER BY id;

-- tableoid
SELECT tableoid::regclass, count(*) FROM docs GROUP BY 1;
SELECT tableoid::regclass, count(*) FROM years GROUP BY 1 ORDER BY 1;
SELECT tableoid::regclass, count(*) FROM years GROUP BY tableoid ORDER BY count(*);
SELECT count(*) FROM years WHERE tableoid = 'years_1'::regclass;
SELECT count(*) FROM years WHERE years.tableoid <> 'years_1'::regclass;
SELECT y.tableoid::regclass, y.k FROM years y WHERE y.k IN (3, 13) ORDER BY y.k;
SELECT p.relname, count(*) FROM years y JOIN pg_class p ON p.oid = y.tableoid GROUP BY 1 ORDER BY 1;
SELECT c.relname, s.k FROM (SELECT tableoid, k FROM years WHERE y < 3) s JOIN pg_class c ON c.oid = s.tableoid ORDER BY s.k;
SELECT tableoid::regclass, k FROM years WHERE k = 7;
SELECT tableoid::regclass::text || ':' || k FROM years ORDER BY k LIMIT 2;
INSERT INTO years VALUES (21, 5, 'x'), (22, 15, 'y') RETURNING tableoid::regclass, k;
UPDATE years SET v = v || '!' WHERE k = 21 RETURNING tableoid::regclass, v;
UPDATE years SET v = v || '?' WHERE tableoid = 'years_2'::regclass AND k > 17 RETURNING tableoid::regclass, k;
DELETE FROM years WHERE tableoid = 'years_1'::regclass AND k < 3 RETURNING tableoid::regclass, k;
SELECT tableoid::regclass FROM years_1 WHERE k = 4;
SELECT tableoid = 'docs'::regclass AND tableoid <> 'years'::regclass FROM docs WHERE k = 4;
SELECT DISTINCT tableoid::regclass FROM kinds;
SELECT DISTINCT k.tableoid::regclass, d.tableoid::regclass FROM kinds k JOIN docs d ON d.k = k.id;
SELECT tableoid::regclass FROM plain_notes LIMIT 1;
WITH moved AS (DELETE FROM years WHERE k = 21 RETURNING tableoid::regclass AS was, k) SELECT * FROM moved;
SELECT (SELECT tableoid::regclass FROM years WHERE k = d.k LIMIT 1), k FROM docs d WHERE k IN (8, 12) ORDER BY k;
SELECT k FROM docs d WHERE EXISTS (SELECT FROM years y WHERE y.k = d.k AND y.tableoid = 'years_2'::regclass) ORDER BY k;
PREPARE by_table AS SELECT count(*) FROM years WHERE tableoid = $1;
EXECUTE by_table('years_1'::regclass);
EXECUTE by_table('years_2'::regclass);
DEALLOCATE by_table;
-- Locks of ours are nobody's business.
BEGIN;
LOCK TABLE plain_notes IN SHARE MODE;
SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation >= 16384 ORDER BY 1, 2;
ROLLBACK;
BEGIN;
DECLARE kept CURSOR WITH HOLD FOR SELECT * FROM plain_notes;
COMMIT;
--@ error: 24000
DELETE FROM plain_notes WHERE CURRENT OF kept;
CLOSE kept;
--@ error: 34000
DELETE FROM plain_notes WHERE CURRENT OF kept;
DROP TABLE docs, years, kinds, plain_notes;
