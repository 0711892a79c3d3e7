--@ include: schema.sql
-- MERGE into a distributed table from any source: local tables, joins, set operations, functions, common table
-- expressions. What is merged is taken back, so that each case begins with the same rows.

CREATE TABLE stock (k int PRIMARY KEY, n int, note text DEFAULT 'none');
CREATE TABLE delivery (k int, n int, kind text);
CREATE TABLE arrivals (id int PRIMARY KEY, k int, n int, big bigint, at timestamptz DEFAULT '2022-05-06 07:08:09+00', name varchar(20));
CREATE TABLE shelf (k int, n int, note text);
CREATE TABLE loose (k int, n int, note text);
CREATE TABLE labels (name text PRIMARY KEY, n int);
CREATE TABLE codes (code char(4) PRIMARY KEY, n int);
CREATE TABLE amounts (amount numeric(6,2) PRIMARY KEY, n int);
CREATE TABLE days (day date PRIMARY KEY, n int);
CREATE TABLE local_words (word text COLLATE "C", k int, at timestamptz, took interval, half float8);
--@ cluster: SELECT create_distributed_table('stock', 'k'), create_distributed_table('delivery', 'k', colocate_with => 'stock')
--@ cluster: SELECT create_distributed_table('arrivals', 'id', colocate_with => 'none'), create_distributed_table('loose', 'k', colocate_with => 'none')
--@ cluster: SELECT create_distributed_table('labels', 'name'), create_distributed_table('codes', 'code'), create_distributed_table('amounts', 'amount'), create_distributed_table('days', 'day')
INSERT INTO stock SELECT g, g * 10 FROM generate_series(1, 20) g;
INSERT INTO delivery SELECT g, g, CASE WHEN g % 4 = 0 THEN 'gone' WHEN g % 3 = 0 THEN 'skip' ELSE 'add' END FROM generate_series(11, 30) g;
INSERT INTO arrivals (id, k, n, big, name) SELECT g, nullif(g + 5, 12), g * 100, g, 'a' || g FROM generate_series(1, 40) g;
INSERT INTO shelf SELECT g, g * 2, 'shelf ' || g FROM generate_series(15, 25) g;
INSERT INTO loose SELECT g % 7, g, CASE WHEN g % 2 = 0 THEN 'even' END FROM generate_series(1, 9) g;
INSERT INTO labels SELECT 'a' || g, g FROM generate_series(1, 9) g;
INSERT INTO codes VALUES ('ab', 1), ('cd', 2);
INSERT INTO amounts SELECT g / 4.0, g FROM generate_series(1, 9) g;
INSERT INTO days SELECT date '2022-05-01' + g, g FROM generate_series(1, 9) g;
INSERT INTO local_words SELECT w, g, timestamptz '2022-05-06 07:08:09+00' + g * interval '1 hour', g * interval '90 minutes', g / 3.0 FROM unnest(ARRAY['b', 'A', 'a', 'B', 'ä']) WITH ORDINALITY u (w, g);

-- Local tables.
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = l.n, note = l.note WHEN NOT MATCHED THEN INSERT VALUES (l.k, l.n, l.note);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock USING shelf ON stock.k = shelf.k WHEN MATCHED AND shelf.n > 36 THEN DELETE WHEN NOT MATCHED AND shelf.k % 2 = 0 THEN INSERT (note, k) VALUES (shelf.note, shelf.k);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT user_id, count(*) AS c FROM local_notes GROUP BY user_id) l ON s.k = l.user_id WHEN MATCHED THEN UPDATE SET n = c WHEN NOT MATCHED AND user_id IS NOT NULL THEN INSERT VALUES (user_id, c);
SELECT * FROM stock;
ROLLBACK;
--@ error: 23502
MERGE INTO stock s USING (SELECT user_id, count(*) AS c FROM local_notes GROUP BY user_id) l ON s.k = l.user_id WHEN NOT MATCHED THEN INSERT VALUES (user_id, c);
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k + 100 WHEN NOT MATCHED THEN INSERT VALUES (l.k + 100, l.n);
SELECT * FROM stock;
ROLLBACK;
MERGE INTO stock s USING (SELECT * FROM shelf WHERE k < 0) l ON s.k = l.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (l.k);
SELECT count(*) FROM stock;

-- Joins, of which each item keeps its name.
BEGIN;
MERGE INTO stock s USING (shelf l JOIN arrivals a ON a.k = l.k) ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = a.n, note = l.note WHEN NOT MATCHED THEN INSERT VALUES (l.k, a.n, 'joined ' || a.id);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING shelf l LEFT JOIN arrivals a ON a.k = l.k AND a.id % 2 = 0 ON s.k = l.k WHEN MATCHED AND a.id IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET note = coalesce(a.name, s.note) || l.note WHEN NOT MATCHED THEN INSERT (k, n) VALUES (l.k, a.id);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING delivery d JOIN regions r ON r.tax = d.k ON s.k = d.k WHEN MATCHED THEN UPDATE SET note = r.name WHEN NOT MATCHED THEN INSERT VALUES (d.k, d.n, code);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING delivery d JOIN shelf USING (k) ON s.k = d.k WHEN MATCHED THEN UPDATE SET n = d.n + shelf.n WHEN NOT MATCHED THEN INSERT VALUES (d.k, ascii(kind) + shelf.n);
ROLLBACK;
BEGIN;
MERGE INTO stock s USING arrivals a CROSS JOIN (VALUES (1), (2)) v (i) ON s.k = a.k AND a.id % 2 + 1 = v.i WHEN MATCHED THEN UPDATE SET n = v.i * 1000 + a.id;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING loose a JOIN loose b ON a.n = b.n ON s.k = b.n WHEN MATCHED THEN UPDATE SET n = -a.n WHEN NOT MATCHED THEN INSERT VALUES (a.n, 1);
SELECT * FROM stock;
ROLLBACK;

-- Set operations, computed keys, VALUES, functions.
BEGIN;
MERGE INTO stock s USING (SELECT k FROM arrivals WHERE id < 10 UNION ALL SELECT k FROM delivery WHERE k > 20) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED AND k IS NOT NULL THEN INSERT (k) VALUES (k);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT id % 50 AS k FROM arrivals) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN INSERT VALUES (a.k, -1);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (VALUES (1, 'one'), (2, 'two'), (99, 'many')) v (k, t) ON s.k = v.k WHEN MATCHED THEN UPDATE SET note = t WHEN NOT MATCHED THEN INSERT VALUES (v.k, 0, v.t);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock USING generate_series(18, 24) AS g ON k = g WHEN MATCHED THEN UPDATE SET n = g WHEN NOT MATCHED THEN INSERT VALUES (g, g);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING generate_series(18, 24) ON k = generate_series WHEN NOT MATCHED THEN INSERT VALUES (generate_series, 7);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING unnest(ARRAY[3, 33], ARRAY['x', 'y']) WITH ORDINALITY u (k, t, o) ON s.k = u.k WHEN MATCHED THEN UPDATE SET note = t WHEN NOT MATCHED THEN INSERT VALUES (u.k, o, t);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING json_to_recordset('[{"k": 4, "n": 44}, {"k": 44, "n": 4}]') AS j (k int, n int) ON s.k = j.k WHEN MATCHED THEN UPDATE SET n = j.n WHEN NOT MATCHED THEN INSERT VALUES (j.k, j.n);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT 77 AS k) v ON s.k = v.k WHEN NOT MATCHED THEN INSERT VALUES (v.k, 1);
MERGE INTO stock s USING (SELECT 77 AS k, 78 AS other) v ON s.k = v.k WHEN MATCHED THEN UPDATE SET n = other;
SELECT * FROM stock WHERE k > 20;
ROLLBACK;

-- Whole rows and stars.
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN NOT MATCHED THEN INSERT VALUES (l.*);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT k, n, note FROM shelf) l ON s.k = l.k WHEN MATCHED THEN UPDATE SET note = l::text WHEN NOT MATCHED THEN INSERT VALUES (l.k, l.n, row_to_json(l)::text);
SELECT * FROM stock;
ROLLBACK;

-- No action inserts: any condition, any key.
BEGIN;
MERGE INTO stock s USING shelf l ON s.n = l.n * 5 + 50 WHEN MATCHED THEN UPDATE SET note = l.note WHEN NOT MATCHED THEN DO NOTHING;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT max(n) AS most FROM arrivals) a ON s.n * 10 > a.most - 3000 WHEN MATCHED THEN DELETE;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING arrivals a ON s.k = a.k * 1.0 WHEN MATCHED THEN UPDATE SET n = a.n;
MERGE INTO stock s USING (SELECT id / 2.0 AS half FROM arrivals) a ON s.k = a.half AND s.k < 5 WHEN MATCHED THEN UPDATE SET note = a.half::text;
MERGE INTO stock s USING (SELECT id::float8 AS x FROM arrivals) a ON s.k = a.x AND s.k > 15 WHEN MATCHED THEN DELETE;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET k = l.k, n = 5;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET k = s.k, n = s.n + 5;
SELECT * FROM stock;
ROLLBACK;

-- A row twice.
--@ error: 21000
MERGE INTO stock s USING (SELECT k FROM shelf UNION ALL SELECT k FROM shelf) l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 21000
MERGE INTO stock s USING loose l ON s.k = l.k WHEN MATCHED THEN DELETE;
--@ error: 21000
MERGE INTO stock s USING shelf l ON s.n > l.n WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 23505
--@ loose: which row comes first
MERGE INTO stock s USING (SELECT k + 10 AS k FROM shelf UNION ALL SELECT k + 10 FROM shelf) l ON s.k = l.k WHEN NOT MATCHED THEN INSERT VALUES (l.k, 1);
SELECT count(*), sum(n) FROM stock;
-- A table without a key takes NULL and duplicates.
BEGIN;
MERGE INTO loose t USING (SELECT nullif(k, 16) AS k, n FROM shelf UNION ALL SELECT nullif(k, 16), n FROM shelf) l ON t.k = l.k WHEN NOT MATCHED THEN INSERT VALUES (l.k, l.n, 'twice');
SELECT * FROM loose;
ROLLBACK;

-- Other types of keys.
BEGIN;
MERGE INTO labels t USING arrivals a ON t.name = a.name WHEN MATCHED THEN UPDATE SET n = -a.id WHEN NOT MATCHED THEN INSERT VALUES (a.name, a.id);
SELECT * FROM labels;
MERGE INTO labels t USING (SELECT 'b' || id AS name, id FROM arrivals WHERE id < 5) a ON t.name = a.name WHEN NOT MATCHED THEN INSERT VALUES (a.name, a.id);
MERGE INTO labels t USING local_words w ON t.name = lower(w.word) || w.k WHEN NOT MATCHED THEN INSERT VALUES (lower(w.word) || w.k, 0);
MERGE INTO labels t USING (SELECT 'ab'::char(4) AS c) a ON t.name = a.c WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE;
SELECT * FROM labels;
ROLLBACK;
BEGIN;
MERGE INTO codes t USING (VALUES ('ab'::char(4), 5), ('ef', 6)) v (c, n) ON t.code = v.c WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT VALUES (v.c, v.n);
SELECT * FROM codes;
MERGE INTO codes t USING (VALUES ('ab ', 7)) v (c, n) ON t.code = v.c WHEN MATCHED THEN UPDATE SET n = v.n;
SELECT * FROM codes;
ROLLBACK;
BEGIN;
MERGE INTO amounts t USING (SELECT id / 4.0 AS a, id FROM arrivals WHERE id < 13) v ON t.amount = v.a WHEN MATCHED THEN UPDATE SET n = -v.id WHEN NOT MATCHED THEN INSERT VALUES (v.a, v.id);
SELECT * FROM amounts;
ROLLBACK;
BEGIN;
MERGE INTO days t USING (SELECT date '2022-05-05' + id AS d, id FROM arrivals WHERE id < 9) v ON t.day = v.d WHEN MATCHED THEN UPDATE SET n = -v.id WHEN NOT MATCHED THEN INSERT VALUES (v.d, v.id);
SELECT * FROM days;
MERGE INTO days t USING (SELECT at FROM arrivals WHERE id = 1) v ON t.day = v.at::date WHEN MATCHED THEN UPDATE SET n = 1000;
SELECT * FROM days;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING arrivals a ON s.k = a.big WHEN MATCHED THEN UPDATE SET n = -a.big WHEN NOT MATCHED THEN INSERT VALUES (a.big, a.id);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT 5000000000 + id AS big FROM arrivals) a ON s.k = a.big WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND a.big < 0 THEN INSERT VALUES (a.big);
ROLLBACK;
--@ error: 22003
MERGE INTO stock s USING (SELECT 5000000000 + id AS big FROM arrivals) a ON s.k = a.big WHEN NOT MATCHED THEN INSERT VALUES (a.big);
BEGIN;
MERGE INTO users u USING (SELECT id FROM arrivals WHERE id > 38 UNION SELECT 61) a ON u.id = a.id WHEN MATCHED THEN UPDATE SET name = 'merged' WHEN NOT MATCHED THEN INSERT (id, name, created) VALUES (a.id, 'inserted', '2022-01-01 00:00:00+00');
SELECT id, name, active FROM users WHERE id > 36;
ROLLBACK;

-- Collations of a source's columns stay.
BEGIN;
MERGE INTO stock s USING local_words w ON s.k = w.k WHEN MATCHED AND w.word < 'a' THEN UPDATE SET note = w.word WHEN MATCHED THEN UPDATE SET note = 'not less';
SELECT k, note FROM stock WHERE k < 6;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT upper(word) AS u, k FROM local_words) w ON s.k = w.k WHEN MATCHED THEN UPDATE SET note = greatest(w.u, 'a');
SELECT k, note FROM stock WHERE k < 6;
ROLLBACK;

-- Common table expressions.
BEGIN;
WITH few AS (SELECT k, n FROM shelf WHERE k < 19), more (k, m) AS MATERIALIZED (SELECT k, n + 1 FROM few) MERGE INTO stock s USING more ON s.k = more.k WHEN MATCHED THEN UPDATE SET n = m WHEN NOT MATCHED THEN INSERT VALUES (more.k, m);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM arrivals WHERE id > 5 AND id < 20 RETURNING k, id) MERGE INTO stock s USING gone g ON s.k = g.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND g.k IS NOT NULL THEN INSERT VALUES (g.k, g.id, 'moved');
SELECT * FROM stock;
SELECT count(*) FROM arrivals;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM shelf WHERE k < 0 RETURNING *) MERGE INTO stock s USING gone g ON s.k = g.k WHEN MATCHED THEN UPDATE SET note = g.note WHEN NOT MATCHED THEN INSERT VALUES (g.k, g.n, g.note);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH put AS (INSERT INTO loose VALUES (1, 100, 'put'), (50, 101, 'put') RETURNING k, n) MERGE INTO stock s USING put ON s.k = put.k WHEN MATCHED THEN UPDATE SET n = put.n WHEN NOT MATCHED THEN INSERT VALUES (put.k, put.n);
SELECT * FROM stock;
SELECT count(*) FROM loose;
ROLLBACK;
--@ error: 22012
WITH gone AS (DELETE FROM arrivals RETURNING k) MERGE INTO stock s USING gone g ON s.k = g.k WHEN MATCHED THEN UPDATE SET n = 1 / (g.k - g.k);
SELECT count(*) FROM arrivals;

-- Subqueries in conditions and values.
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED AND s.n > (SELECT avg(n) FROM arrivals) / 20 THEN UPDATE SET note = (SELECT max(name) FROM arrivals) WHEN NOT MATCHED THEN INSERT VALUES (l.k, (SELECT count(*) FROM shelf), (SELECT name FROM regions WHERE tax = l.k));
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED AND s.k IN (SELECT tax FROM regions) THEN DELETE WHEN NOT MATCHED AND EXISTS (SELECT FROM local_notes WHERE id = 1) THEN INSERT VALUES (d.k, d.n);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH c AS (SELECT max(n) AS m FROM loose) MERGE INTO stock s USING shelf l ON s.k = l.k AND s.k > (SELECT m FROM c) WHEN MATCHED THEN UPDATE SET (n, note) = (SELECT m, 'pair' FROM c);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM arrivals WHERE id < 0 RETURNING k) MERGE INTO stock s USING gone ON s.k = gone.k WHEN MATCHED THEN UPDATE SET n = (SELECT count(*) FROM gone);
SELECT * FROM stock;
ROLLBACK;

-- Conditions and values that only the coordinator computes: it joins the rows, and the changes follow.
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED AND EXISTS (SELECT FROM local_notes n WHERE n.id = s.k % 7) THEN UPDATE SET note = (SELECT max(body) FROM local_notes WHERE id < l.k), n = DEFAULT WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND k IN (SELECT k FROM shelf WHERE k > 22) THEN INSERT (note, k) VALUES ('new', k) WHEN NOT MATCHED THEN INSERT VALUES (l.*);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM shelf WHERE k < 22 RETURNING *) MERGE INTO stock s USING gone g ON s.k = g.k WHEN MATCHED AND g.n > 35 THEN DELETE WHEN MATCHED THEN UPDATE SET note = g.note, n = s.n + g.n WHEN NOT MATCHED THEN INSERT VALUES (g.k, g.n, g.note);
SELECT * FROM stock;
SELECT * FROM shelf;
ROLLBACK;
BEGIN;
WITH moved AS (INSERT INTO shelf SELECT k, n, kind FROM delivery WHERE k > 18 RETURNING k, n, note AS t), counted AS (SELECT count(*) AS c FROM moved) MERGE INTO stock s USING moved m ON s.k = m.k WHEN MATCHED THEN UPDATE SET (n, note) = (SELECT c, m.t || s.k FROM counted) WHEN NOT MATCHED THEN INSERT (k, n) VALUES (m.k, (SELECT c FROM counted));
SELECT * FROM stock;
SELECT * FROM shelf;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET (note, n) = (SELECT body, id FROM local_notes WHERE id = l.k - 14);
SELECT * FROM stock;
ROLLBACK;
--@ error: 21000
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET (note, n) = (SELECT body, id FROM local_notes);
BEGIN;
MERGE INTO stock s USING shelf l ON s.n % 3 = l.k % 3 AND l.k = 15 + s.n % 5 AND random() >= 0 WHEN MATCHED AND s.n > 100 THEN DELETE WHEN MATCHED THEN UPDATE SET n = l.n, (note) = ROW(l.note || s.note) WHEN NOT MATCHED AND random() >= 0 THEN INSERT VALUES (l.k + 100, l.n + (random() * 0)::int, upper(note));
SELECT * FROM stock;
ROLLBACK;
--@ error: 21000
MERGE INTO stock s USING shelf l ON s.n > l.n AND random() < 2 WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 21000
MERGE INTO stock s USING (SELECT k FROM shelf UNION ALL SELECT k FROM shelf) l ON s.k = l.k AND random() < 2 WHEN MATCHED THEN DELETE;
BEGIN;
MERGE INTO stock s USING (SELECT k FROM shelf UNION ALL SELECT k FROM shelf) l ON s.k = l.k AND random() < 2 WHEN MATCHED AND s.k < 18 THEN DO NOTHING WHEN NOT MATCHED AND k > 100 THEN DO NOTHING;
ROLLBACK;
--@ error: 23505
--@ loose: which row comes first
MERGE INTO stock s USING (SELECT k FROM shelf UNION ALL SELECT k FROM shelf) l ON s.k = l.k AND random() < 2 WHEN NOT MATCHED THEN INSERT VALUES (l.k, 1);
--@ error: 22012
MERGE INTO stock s USING shelf l ON s.k = l.k AND random() < 2 WHEN MATCHED THEN UPDATE SET n = 1 / (l.n - l.n);
BEGIN;
MERGE INTO stock s USING (shelf l JOIN local_notes n ON n.id = l.k - 14) ON s.k = l.k AND random() < 2 WHEN MATCHED AND n.id IN (SELECT max(id) FROM local_notes WHERE id < 4) THEN UPDATE SET note = l.note || n.id WHEN MATCHED THEN UPDATE SET note = (SELECT count(*) FROM shelf x WHERE x.k < s.k)::text WHEN NOT MATCHED THEN INSERT VALUES (l.k, n.id, (SELECT l.note || body FROM local_notes o WHERE o.id = n.id));
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO loose t USING (SELECT k, n FROM shelf) l ON t.n = l.k - 14 AND random() < 2 WHEN MATCHED AND t.note IS NULL THEN UPDATE SET note = 'odd', n = -t.n WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (l.*, 'new');
SELECT * FROM loose;
ROLLBACK;
BEGIN;
MERGE INTO loose USING generate_series(5, 12) AS g ON loose.n = g AND random() < 2 WHEN MATCHED THEN UPDATE SET note = 'g' || g WHEN NOT MATCHED AND g IN (SELECT id FROM local_notes) THEN INSERT VALUES (g, g) WHEN NOT MATCHED THEN INSERT (n, k) VALUES (g * 10, NULL);
SELECT * FROM loose;
ROLLBACK;
BEGIN;
MERGE INTO days t USING (SELECT date '2022-05-05' + id AS d, id FROM arrivals WHERE id < 9) v ON t.day = v.d AND random() < 2 WHEN MATCHED AND t.n IN (SELECT id FROM local_notes) THEN UPDATE SET n = -v.id WHEN NOT MATCHED AND id < 8 THEN INSERT VALUES (v.d, v.id) WHEN NOT MATCHED AND EXISTS (SELECT FROM local_notes) THEN INSERT VALUES ('2030-01-01', '7');
SELECT * FROM days;
ROLLBACK;
BEGIN;
MERGE INTO users u USING (SELECT id FROM arrivals WHERE id > 36 UNION SELECT 61) a ON u.id = a.id AND random() < 2 WHEN MATCHED AND u.id IN (SELECT 38 FROM local_notes) THEN UPDATE SET tags = ARRAY['a', u.id::text], meta = jsonb_build_object('id', a.id), score = DEFAULT WHEN MATCHED THEN UPDATE SET name = u.name || 'merged' WHEN NOT MATCHED THEN INSERT (id, name, created) VALUES (a.id, 'inserted', '2022-01-01 00:00:00+00');
SELECT id, name, tags, meta, score, active FROM users WHERE id > 36;
ROLLBACK;
--@ params: 17, 'seventeen'
--@ params: 19, NULL
MERGE INTO stock s USING shelf l ON s.k = l.k AND l.k = $1::int WHEN MATCHED AND EXISTS (SELECT FROM local_notes WHERE id = 1) THEN UPDATE SET note = $2;
SELECT * FROM stock WHERE k IN (17, 19);
UPDATE stock SET note = 'none' WHERE k IN (17, 19);
BEGIN;
UPDATE stock SET n = n + 1 WHERE k < 17;
DELETE FROM stock WHERE k = 18;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED AND l.k IN (SELECT k FROM shelf) AND EXISTS (SELECT FROM local_notes n WHERE n.id <= l.k) THEN UPDATE SET note = s.n::text WHEN NOT MATCHED AND EXISTS (SELECT FROM local_notes n WHERE n.id <= l.k) THEN INSERT VALUES (l.*);
SELECT * FROM stock;
SAVEPOINT a;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED AND EXISTS (SELECT FROM local_notes n WHERE n.id <= l.k) THEN DELETE;
ROLLBACK TO a;
SELECT count(*) FROM stock;
ROLLBACK;
-- Rows get another distribution column.
BEGIN;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED AND l.k > 18 THEN DELETE WHEN MATCHED THEN UPDATE SET k = s.k + 1000, note = l.note WHEN NOT MATCHED THEN INSERT VALUES (l.k, 1);
SELECT * FROM stock;
MERGE INTO stock s USING shelf l ON s.k = l.k + 1000 WHEN MATCHED THEN UPDATE SET (n, k) = (s.n + l.n, (SELECT max(k) FROM stock) + l.k), note = DEFAULT;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO loose t USING (SELECT k, n FROM shelf) l ON t.n = l.k - 14 WHEN MATCHED THEN UPDATE SET k = l.k WHEN NOT MATCHED THEN INSERT VALUES (l.*, 'new');
SELECT * FROM loose;
ROLLBACK;
--@ error: 21000
MERGE INTO loose t USING shelf l ON t.n < l.k WHEN MATCHED THEN UPDATE SET k = l.k;
--@ error: 23505
--@ loose: which row comes first
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET k = 1;

--@ error: 42P01
MERGE INTO stock s USING shelf l ON s.k = l.k AND random() < 2 WHEN NOT MATCHED THEN INSERT VALUES (s.k);
--@ error: 42601
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN NOT MATCHED THEN INSERT VALUES (*);
--@ error: 42601
MERGE INTO stock s USING shelf l ON s.k = l.k AND random() < 2 WHEN NOT MATCHED THEN INSERT (k) VALUES (l.*);

-- Parameters, blocks, savepoints, errors.
--@ params: 17, 'seventeen'
--@ params: 23, NULL
MERGE INTO stock s USING (SELECT $1::int AS k, $2::text AS t UNION ALL SELECT k, note FROM shelf WHERE k > 100) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET note = a.t WHEN NOT MATCHED THEN INSERT VALUES (a.k, 0, a.t);
SELECT * FROM stock;
--@ params: 15, 2
--@ params: 20, 3
MERGE INTO stock s USING shelf l ON s.k = l.k + $2::int AND l.k < $1::int WHEN MATCHED THEN UPDATE SET n = l.n + $1;
SELECT * FROM stock;
DELETE FROM stock WHERE k = 23;
BEGIN;
DELETE FROM stock WHERE k % 2 = 0;
INSERT INTO shelf VALUES (1, 11, 'in the block'), (31, 12, 'in the block');
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = l.n WHEN NOT MATCHED THEN INSERT VALUES (l.k, l.n, 'block');
SELECT * FROM stock;
SAVEPOINT a;
--@ error: 22012
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = 1 / (l.n - l.n);
ROLLBACK TO a;
--@ error: 22012
MERGE INTO stock s USING (SELECT k, 1 / (n - n) AS n FROM shelf) l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = l.n;
ROLLBACK TO a;
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN DELETE;
SELECT * FROM stock;
ROLLBACK TO a;
SELECT count(*), sum(n) FROM stock;
ROLLBACK;
SELECT count(*), sum(n) FROM stock;
--@ error: 42703
MERGE INTO stock s USING shelf l ON s.k = l.nothing WHEN MATCHED THEN DELETE;
--@ error: 42702
MERGE INTO stock s USING shelf l ON s.k = l.k WHEN MATCHED THEN UPDATE SET n = n + 1;
--@ error: 42P01
MERGE INTO stock s USING nowhere l ON s.k = l.k WHEN MATCHED THEN DELETE;

-- Definitions and temporary tables of the session's own.
BEGIN;
CREATE TABLE fresh AS SELECT g AS k, 'fresh' AS t FROM generate_series(19, 22) g;
MERGE INTO stock s USING fresh f ON s.k = f.k WHEN MATCHED THEN UPDATE SET note = f.t WHEN NOT MATCHED THEN INSERT VALUES (f.k, 0, f.t);
SELECT * FROM stock;
ROLLBACK;
CREATE TEMPORARY TABLE passing AS SELECT g AS k, 'passing' AS t FROM generate_series(20, 21) g;
BEGIN;
MERGE INTO stock s USING passing f ON s.k = f.k WHEN MATCHED THEN UPDATE SET note = f.t WHEN NOT MATCHED THEN INSERT VALUES (f.k, 0, f.t);
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.n;
SELECT * FROM stock;
ROLLBACK;
MERGE INTO stock s USING passing f ON s.k = f.k WHEN MATCHED THEN UPDATE SET note = f.t;
SELECT * FROM stock;
UPDATE stock SET note = 'none';
DROP TABLE passing;

-- Styles of the session's own.
SET datestyle = 'German';
SET intervalstyle = 'sql_standard';
SET extra_float_digits = -3;
BEGIN;
MERGE INTO stock s USING local_words w ON s.k = w.k WHEN MATCHED THEN UPDATE SET note = w.at || ' ' || w.took || ' ' || w.half || ' ' || (w.half * 3 = w.k), n = extract(epoch FROM w.took);
SELECT k, n, note FROM stock WHERE k < 6;
MERGE INTO days t USING (SELECT date '2022-05-05' + id AS d, id FROM arrivals WHERE id < 9) v ON t.day = v.d WHEN MATCHED THEN UPDATE SET n = -v.id WHEN NOT MATCHED THEN INSERT VALUES (v.d, v.id);
SELECT * FROM days;
ROLLBACK;
RESET datestyle;
RESET intervalstyle;
RESET extra_float_digits;

-- The time of the transaction.
BEGIN;
MERGE INTO stock s USING (SELECT k, now() AS t FROM shelf) l ON s.k = l.k WHEN MATCHED AND l.t = now() THEN UPDATE SET note = 'moment' WHEN NOT MATCHED AND l.t = transaction_timestamp() THEN INSERT VALUES (l.k, 0, 'moment');
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (SELECT k, now() AS t FROM arrivals) l ON s.k = l.k WHEN MATCHED AND l.t <> now() THEN DELETE;
SELECT count(*) FROM stock;
ROLLBACK;

-- Reference and local tables.
BEGIN;
MERGE INTO regions r USING delivery d ON r.tax = d.k WHEN MATCHED THEN UPDATE SET name = d.kind WHEN NOT MATCHED AND d.k > 28 THEN INSERT VALUES ('n' || d.k % 10, d.kind, d.k);
SELECT * FROM regions;
SELECT u.id, r.name FROM users u JOIN regions r ON r.code = u.country WHERE u.id < 9;
ROLLBACK;
BEGIN;
MERGE INTO regions r USING (SELECT a.k, l.note FROM arrivals a JOIN shelf l ON a.k = l.k) d ON r.tax = d.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND d.k = 25 THEN INSERT VALUES ('zy', d.note, d.k);
SELECT * FROM regions;
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.id < 9;
ROLLBACK;
BEGIN;
MERGE INTO shelf s USING arrivals a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.n WHEN NOT MATCHED AND a.id > 38 THEN INSERT VALUES (a.k, a.n, a.name);
SELECT * FROM shelf;
ROLLBACK;
BEGIN;
MERGE INTO shelf s USING (SELECT d.k, count(*) AS c FROM delivery d JOIN arrivals a ON a.k = d.k JOIN stock t ON t.k = d.k GROUP BY d.k) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.c WHEN NOT MATCHED THEN INSERT VALUES (a.k, a.c);
SELECT * FROM shelf;
ROLLBACK;

-- A subquery in the condition of the source's join.
BEGIN;
MERGE INTO stock s USING (delivery d JOIN delivery e ON e.k = d.k AND e.n IN (SELECT k FROM arrivals WHERE id % 3 = 0)) ON s.k = d.k WHEN MATCHED THEN UPDATE SET note = 'x';
SELECT * FROM stock;
ROLLBACK;
-- A blank more is another value.
BEGIN;
MERGE INTO labels t USING shelf l ON t.name = l.note || '  x' WHEN NOT MATCHED THEN INSERT VALUES (l.note || ' x', 1);
SELECT * FROM labels;
ROLLBACK;

-- Neither what is joined nor what is inserted says where a row belongs: the actions are run in steps.
BEGIN;
MERGE INTO stock s USING shelf l ON s.n = l.n * 5 + 50 WHEN MATCHED THEN UPDATE SET note = l.note WHEN NOT MATCHED THEN INSERT VALUES (l.k + 100, l.n);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN NOT MATCHED AND a.id > 30 THEN INSERT (k, n) VALUES (-a.id, DEFAULT) WHEN NOT MATCHED AND a.id > 20 THEN DO NOTHING WHEN NOT MATCHED AND a.id IS NOT NULL THEN INSERT (note, k) VALUES (name, 1000 + id) WHEN MATCHED AND s.n > 100 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n + a.id;
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING shelf l ON false WHEN NOT MATCHED AND note IS NOT NULL THEN INSERT (k, n, note) VALUES (k + 50, CASE WHEN n > 40 THEN 1 ELSE n END, 'case');
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO stock s USING (shelf l JOIN arrivals a ON a.k = l.k) ON s.k = l.k AND a.id <> 13 WHEN MATCHED THEN UPDATE SET n = a.n WHEN NOT MATCHED THEN INSERT VALUES (a.id * 100, l.n, upper(l.note));
SELECT * FROM stock;
ROLLBACK;
BEGIN;
WITH c AS (SELECT k FROM shelf WHERE k > 18) MERGE INTO stock s USING c ON s.k = c.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (c.k * 2, 3);
SELECT * FROM stock;
ROLLBACK;
--@ error: 23505
--@ loose: which row comes first
MERGE INTO stock s USING shelf l ON s.k = l.k AND false WHEN NOT MATCHED THEN INSERT VALUES (l.k / 100, 1);
--@ error: 21000
MERGE INTO stock s USING (SELECT 1 AS k FROM shelf) l ON s.k = l.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (l.k + 1);
--@ params: 18, 'eighteen'
--@ params: 24, NULL
MERGE INTO stock s USING shelf l ON s.k = l.k AND l.k < $1::int WHEN NOT MATCHED THEN INSERT VALUES (l.k + $1::int * 10, 0, $2::text);
SELECT * FROM stock WHERE k > 100;
DELETE FROM stock WHERE k > 100;
-- The first condition that holds decides; those behind it are not computed.
BEGIN;
MERGE INTO stock s USING shelf l ON s.n = l.n WHEN NOT MATCHED AND l.k = 16 THEN DO NOTHING WHEN NOT MATCHED AND 100 / (l.k - 16) > 20 THEN INSERT VALUES (l.k + 200, 100 / (l.k - 16)) WHEN NOT MATCHED AND l.k < 20 THEN INSERT (k, note) VALUES (l.k + 300, l.note);
SELECT * FROM stock;
SAVEPOINT a;
--@ error: 22012
MERGE INTO stock s USING shelf l ON s.n = l.n WHEN NOT MATCHED AND 100 / (l.k - 16) > 20 THEN INSERT VALUES (l.k + 400, 1);
ROLLBACK TO a;
--@ error: 22012
MERGE INTO stock s USING shelf l ON s.n = l.n * 5 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (l.k + 400, 1 / (l.k - 18));
ROLLBACK TO a;
SELECT * FROM stock;
ROLLBACK;
-- NULL and duplicates; a function that gives another value for each row.
BEGIN;
MERGE INTO loose t USING arrivals a ON t.n = a.k WHEN MATCHED AND t.note IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET note = a.name WHEN NOT MATCHED THEN INSERT VALUES (a.k, a.n, a.name);
SELECT * FROM loose;
MERGE INTO loose t USING (SELECT k, n FROM loose WHERE k IS NULL OR k < 3 UNION ALL SELECT NULL, 5 FROM shelf WHERE k < 18) a ON t.note = a.k::text WHEN NOT MATCHED THEN INSERT (n, k) VALUES (a.k, a.n % 5);
SELECT * FROM loose;
MERGE INTO loose t USING (SELECT k, random() AS r FROM arrivals) a ON t.n = a.k + 5000 WHEN NOT MATCHED AND a.r < 2 THEN INSERT VALUES (a.k, a.r::int * 0, CASE WHEN a.r >= 0 AND random() < 2 THEN 'random' END);
SELECT * FROM loose WHERE note = 'random';
ROLLBACK;
BEGIN;
MERGE INTO loose t USING arrivals a ON t.n = a.k AND random() < 2 WHEN NOT MATCHED THEN INSERT VALUES (a.id, 1);
SELECT * FROM loose;
ROLLBACK;
-- Columns that take their values from sequences.
CREATE TABLE numbered (k int PRIMARY KEY, id serial, always int GENERATED ALWAYS AS IDENTITY, note text DEFAULT 'numbered', half float8 GENERATED ALWAYS AS (k / 2.0) STORED);
--@ cluster: SELECT create_distributed_table('numbered', 'k')
INSERT INTO numbered (k) VALUES (15), (16);
MERGE INTO numbered t USING (SELECT k, note FROM shelf WHERE k < 19) l ON t.k = l.k WHEN MATCHED THEN UPDATE SET note = l.note WHEN NOT MATCHED THEN INSERT (k, note) VALUES (l.k, l.note);
SELECT k, note, half FROM numbered;
SELECT id, always FROM numbered;
MERGE INTO numbered t USING delivery d ON t.k = d.k WHEN NOT MATCHED AND d.k > 28 THEN INSERT (k, id) VALUES (d.k, DEFAULT) WHEN MATCHED THEN DELETE;
SELECT k, note, half FROM numbered;
SELECT id, always FROM numbered;
--@ error: 428C9
MERGE INTO numbered t USING shelf l ON t.k = l.k WHEN NOT MATCHED THEN INSERT (k, always) VALUES (l.k, l.n);
CREATE TABLE own_key (k serial PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('own_key', 'k')
MERGE INTO own_key t USING shelf l ON t.n = l.n WHEN NOT MATCHED THEN INSERT (n) VALUES (l.n);
MERGE INTO own_key t USING shelf l ON t.n = l.n + 4 WHEN MATCHED THEN UPDATE SET n = -t.n WHEN NOT MATCHED THEN INSERT (n) VALUES (l.n);
SELECT k FROM own_key;
SELECT n FROM own_key;
CREATE TABLE listed (k int[], n int);
--@ cluster: SELECT create_distributed_table('listed', 'k')
INSERT INTO listed VALUES ('{15}', 1), ('{1}', 2);
MERGE INTO listed t USING shelf l ON t.k = ARRAY[l.k] WHEN MATCHED THEN UPDATE SET n = l.n WHEN NOT MATCHED THEN INSERT VALUES (ARRAY[l.k], l.n);
SELECT * FROM listed;
-- An inserted key of another type.
BEGIN;
MERGE INTO stock s USING (SELECT id * 1.0 AS k FROM arrivals WHERE id > 15 AND id < 25) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.k WHEN NOT MATCHED THEN INSERT VALUES (a.k, 7);
MERGE INTO stock s USING (SELECT id * 1.5 AS k FROM arrivals WHERE id > 20 AND id < 31) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.k WHEN NOT MATCHED THEN INSERT VALUES (a.k + 100, 8);
SELECT * FROM stock;
ROLLBACK;
BEGIN;
MERGE INTO codes t USING (VALUES ('ab', 5), ('ef ', 6)) v (c, n) ON t.code = v.c WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN INSERT VALUES (v.c, v.n);
SELECT * FROM codes;
ROLLBACK;
BEGIN;
MERGE INTO amounts t USING (SELECT id / 8.0 AS a, id FROM arrivals WHERE id > 10 AND id < 23) v ON t.amount = v.a WHEN MATCHED THEN UPDATE SET n = -v.id WHEN NOT MATCHED THEN INSERT VALUES (v.a, v.id);
SELECT * FROM amounts;
ROLLBACK;

-- DEFAULT, and what is left out, is the transaction's time on every server.
CREATE TABLE stamped (k int PRIMARY KEY, n int, at timestamptz DEFAULT now());
--@ cluster: SELECT create_distributed_table('stamped', 'k')
INSERT INTO stamped (k) SELECT generate_series(1, 7);
BEGIN;
UPDATE stamped SET at = now() WHERE k < 3;
MERGE INTO stamped t USING (SELECT g AS k FROM generate_series(3, 12) g) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET at = DEFAULT, n = 1 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k);
SELECT k, n, at = now() FROM stamped;
UPDATE stamped SET at = '2020-02-02 00:00:00+00';
MERGE INTO stamped t USING (SELECT 5 AS k) s ON t.k = 5 AND t.k = s.k WHEN MATCHED THEN UPDATE SET at = DEFAULT, n = 2 WHEN NOT MATCHED THEN INSERT (k) VALUES (5);
MERGE INTO stamped t USING (SELECT 50 AS k) s ON t.k = 50 AND t.k = s.k WHEN MATCHED THEN UPDATE SET at = DEFAULT, n = 2 WHEN NOT MATCHED THEN INSERT (k) VALUES (50);
MERGE INTO stamped t USING stamped s ON t.k = s.k AND s.k > 5 WHEN MATCHED THEN UPDATE SET at = DEFAULT, n = 3 WHEN NOT MATCHED AND s.k = 4 THEN INSERT (k) VALUES (s.k + 1000);
MERGE INTO stamped t USING shelf s ON t.k = s.k - 14 AND random() < 2 WHEN MATCHED AND t.k < 5 THEN UPDATE SET at = DEFAULT, n = s.n WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k * 100);
SELECT k, n, CASE at WHEN now() THEN 'now' WHEN '2020-02-02 00:00:00+00' THEN 'then' END FROM stamped;
ROLLBACK;
MERGE INTO stamped t USING (SELECT 5 AS k) s ON t.k = 5 WHEN MATCHED THEN UPDATE SET at = DEFAULT, n = 2 WHEN NOT MATCHED THEN INSERT (k) VALUES (5);

-- Identity columns.
CREATE TABLE tagged (k int PRIMARY KEY, always int GENERATED ALWAYS AS IDENTITY, i int GENERATED BY DEFAULT AS IDENTITY (START 100), note text DEFAULT 'tag');
--@ cluster: SELECT create_distributed_table('tagged', 'k')
INSERT INTO tagged (k) SELECT g FROM generate_series(15, 18) g;
UPDATE tagged SET i = k + 1000;
MERGE INTO tagged t USING shelf s ON t.k = s.k WHEN MATCHED AND t.k < 17 THEN UPDATE SET note = s.note WHEN NOT MATCHED THEN INSERT OVERRIDING SYSTEM VALUE VALUES (s.k, s.k * 2, s.k * 3);
SELECT k, CASE WHEN k > 18 THEN always END AS always, i, note FROM tagged;
MERGE INTO tagged t USING shelf s ON t.k = s.k + 100 AND random() < 2 WHEN NOT MATCHED AND s.k < 18 THEN INSERT (k, always, note) OVERRIDING SYSTEM VALUE VALUES (s.k + 100, s.n, 'overriding') WHEN NOT MATCHED THEN INSERT (i, k) OVERRIDING USER VALUE VALUES (s.n, s.k + 100);
SELECT k, always, note FROM tagged WHERE note = 'overriding';
SELECT count(DISTINCT i), bool_and(i BETWEEN 100 AND 130) FROM tagged WHERE k > 100;
--@ error: 428C9
MERGE INTO tagged t USING shelf s ON t.k = s.k + 200 AND random() < 2 WHEN NOT MATCHED THEN INSERT (k, always) VALUES (s.k + 200, s.n);
--@ error: 428C9
MERGE INTO tagged t USING shelf s ON t.k = s.k AND random() < 2 WHEN MATCHED THEN UPDATE SET always = s.n;
BEGIN;
MERGE INTO tagged t USING shelf s ON t.k = s.k AND random() < 2 WHEN MATCHED AND t.k > 17 THEN UPDATE SET k = t.k + 500, note = 'moved' WHEN MATCHED THEN UPDATE SET k = t.k + 600, i = DEFAULT;
SELECT k, CASE WHEN k BETWEEN 519 AND 530 THEN always END AS always, CASE WHEN k < 600 THEN i END AS i, note FROM tagged WHERE k > 500;
SELECT count(DISTINCT i), bool_and(i BETWEEN 100 AND 140) FROM tagged WHERE k > 600;
ROLLBACK;
MERGE INTO tagged t USING shelf s ON t.k = s.k AND random() < 2 WHEN MATCHED AND t.k > 17 THEN UPDATE SET i = DEFAULT, note = DEFAULT WHEN MATCHED THEN UPDATE SET (i, note) = (DEFAULT, 'row');
--@ refused: 0A000
MERGE INTO tagged t USING shelf s ON t.k = s.k AND random() < 2 WHEN MATCHED THEN UPDATE SET always = DEFAULT;
SELECT k, note FROM tagged WHERE k < 100;
SELECT count(DISTINCT i), bool_and(i BETWEEN 100 AND 150) FROM tagged WHERE k < 100;
-- A table without an alias: its name and the whole source are one range of the text.
CREATE TABLE bare_t (k int PRIMARY KEY, v int);
CREATE TABLE bare_s (k int PRIMARY KEY, v int);
CREATE TABLE bare_p (k int, v int, PRIMARY KEY (k, v)) PARTITION BY RANGE (v);
CREATE TABLE bare_p1 PARTITION OF bare_p FOR VALUES FROM (0) TO (30);
CREATE TABLE bare_p2 PARTITION OF bare_p DEFAULT;
CREATE TABLE bare_r (k int PRIMARY KEY, v int);
CREATE SCHEMA bare;
CREATE TABLE bare.s2 (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('bare_t', 'k'), create_distributed_table('bare_s', 'k'), create_distributed_table('bare_p', 'k'), create_distributed_table('bare.s2', 'k')
--@ cluster: SELECT create_reference_table('bare_r')
INSERT INTO bare_t SELECT i, i FROM generate_series(1, 60) i;
INSERT INTO bare_s SELECT i, 65 - i FROM generate_series(1, 64) i;
INSERT INTO bare_p SELECT * FROM bare_s;
INSERT INTO bare_r SELECT * FROM bare_s;
INSERT INTO bare.s2 SELECT * FROM bare_s;
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v WHEN MATCHED THEN UPDATE SET v = bare_s.k + 1000;
SELECT * FROM bare_t;
MERGE INTO bare_t USING ONLY bare_s ON bare_t.k = bare_s.v WHEN MATCHED THEN UPDATE SET v = bare_s.k + 2000;
MERGE INTO bare_t USING bare_s * ON bare_t.k = bare_s.v AND bare_s.k > 20 WHEN MATCHED THEN UPDATE SET v = bare_s.k + 3000;
SELECT * FROM bare_t;
MERGE INTO bare_t USING bare.s2 ON bare_t.k = s2.v WHEN MATCHED THEN UPDATE SET v = s2.k + 4000;
SELECT * FROM bare_t;
MERGE INTO bare_t USING bare_p ON bare_t.k = bare_p.v WHEN MATCHED AND bare_p.v < 40 THEN UPDATE SET v = bare_p.k + 5000;
SELECT * FROM bare_t;
MERGE INTO bare_t USING bare_s ON bare_t.k = 7 AND bare_s.k = 3 WHEN MATCHED THEN UPDATE SET v = bare_s.v;
SELECT * FROM bare_t WHERE k = 7;
MERGE INTO bare_t USING bare_r ON bare_t.k = bare_r.v WHEN MATCHED THEN UPDATE SET v = bare_r.k WHEN NOT MATCHED THEN INSERT VALUES (bare_r.v, bare_r.k);
SELECT * FROM bare_t;
BEGIN;
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v AND bare_s.k < 9 WHEN MATCHED THEN DELETE;
SELECT count(*), sum(v) FROM bare_t;
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v WHEN NOT MATCHED THEN INSERT (v, k) VALUES (bare_s.k, bare_s.v) WHEN MATCHED THEN DO NOTHING;
SELECT * FROM bare_t;
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v AND bare_t.v = bare_s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (bare_s.v + 500, bare_s.k);
SELECT * FROM bare_t;
ROLLBACK;
BEGIN;
--@ only: from 17
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v AND bare_s.k < 9 WHEN MATCHED THEN UPDATE SET v = 0 RETURNING bare_t.k, bare_s.v;
--@ only: from 17
MERGE INTO bare_t USING bare_s ON bare_t.k = bare_s.v AND bare_s.k < 9 WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1;
SELECT * FROM bare_t;
ROLLBACK;
DROP SCHEMA bare CASCADE;
DROP TABLE bare_t, bare_s, bare_p, bare_r;
