--@ include: schema.sql
-- MERGE: into distributed, reference and local tables, from each of them, with every kind of action.

CREATE TABLE stock (k int PRIMARY KEY, n int, note text DEFAULT 'none');
CREATE TABLE delivery (k int, n int, kind text);
CREATE TABLE shelf (k int PRIMARY KEY, n int, note text);
CREATE TABLE codes (code char(2) PRIMARY KEY, seen int DEFAULT 0);
--@ cluster: SELECT create_distributed_table('stock', 'k'), create_distributed_table('delivery', 'k', colocate_with => 'stock')
--@ cluster: SELECT create_reference_table('codes')
INSERT INTO stock SELECT g, g * 10 FROM generate_series(1, 20) g;
INSERT INTO delivery SELECT g, g, CASE WHEN g % 4 = 0 THEN 'gone' WHEN g % 3 = 0 THEN 'skip' ELSE 'add' END FROM generate_series(11, 30) g;
INSERT INTO shelf SELECT g, 0, 'shelf' FROM generate_series(1, 5) g;

-- By the key, colocated.
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED THEN UPDATE SET n = s.n + d.n, note = d.kind;
SELECT * FROM stock;
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN NOT MATCHED THEN INSERT (k, n) VALUES (d.k, d.n);
SELECT count(*), sum(n), sum(k) FROM stock;
MERGE INTO stock AS s USING delivery AS d ON s.k = d.k AND d.kind <> 'skip'
  WHEN MATCHED AND d.kind = 'gone' THEN DELETE
  WHEN MATCHED THEN UPDATE SET n = 0
  WHEN NOT MATCHED AND d.kind = 'nowhere' THEN INSERT VALUES (d.k, d.n, d.kind);
SELECT * FROM stock;
MERGE INTO stock s USING delivery d ON s.k = d.k AND d.kind <> 'skip' WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED AND d.k > 100 THEN INSERT VALUES (d.k, d.n);
MERGE INTO stock s USING (SELECT k, sum(n) AS n FROM delivery GROUP BY k) d ON s.k = d.k WHEN MATCHED AND s.n < 100 THEN UPDATE SET n = d.n WHEN NOT MATCHED THEN INSERT VALUES (d.k, d.n, 'sum');
SELECT count(*), sum(n), count(*) FILTER (WHERE note = 'sum') FROM stock;
MERGE INTO stock s USING (SELECT * FROM delivery WHERE kind = 'add') d ON d.k = s.k WHEN MATCHED THEN UPDATE SET note = DEFAULT WHEN NOT MATCHED THEN INSERT (n, k) VALUES (d.n, d.k);
SELECT note, count(*) FROM stock GROUP BY note;
WITH few AS (SELECT * FROM delivery WHERE k < 20) MERGE INTO stock s USING few d ON s.k = d.k WHEN MATCHED THEN UPDATE SET n = s.n - 1;
SELECT sum(n) FROM stock;
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED AND s.n > 15 THEN UPDATE SET (n, note) = (d.n, 'pair');
SELECT count(*) FROM stock WHERE note = 'pair';

-- One key.
MERGE INTO stock s USING (VALUES (7, 70)) v (k, n) ON s.k = v.k AND s.k = 7 WHEN MATCHED THEN UPDATE SET n = v.n WHEN NOT MATCHED THEN DO NOTHING;
SELECT * FROM stock WHERE k = 7;
MERGE INTO stock s USING delivery d ON s.k = d.k AND s.k = 12 AND d.k = 12 WHEN MATCHED THEN UPDATE SET note = 'twelve';
SELECT * FROM stock WHERE k = 12;
MERGE INTO stock s USING (SELECT * FROM delivery WHERE k = 13) d ON s.k = d.k WHEN MATCHED THEN UPDATE SET note = 'thirteen' WHEN NOT MATCHED THEN INSERT VALUES (d.k, d.n, 'thirteen');
SELECT * FROM stock WHERE k = 13;

-- Conditions that no row meets, and sources without rows.
MERGE INTO stock s USING delivery d ON s.k = d.k AND false WHEN MATCHED THEN DELETE;
MERGE INTO stock s USING (SELECT * FROM delivery WHERE k < 0) d ON s.k = d.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (d.k);
SELECT count(*) FROM stock;

-- With reference tables.
MERGE INTO clicks c USING regions r ON false WHEN MATCHED THEN DELETE;
MERGE INTO users u USING regions r ON u.country = r.code WHEN MATCHED AND r.tax IS NULL THEN UPDATE SET name = 'nowhere' WHEN MATCHED THEN UPDATE SET score = r.tax;
SELECT country, count(*), sum(score) FROM users GROUP BY country;
MERGE INTO codes c USING (VALUES ('de'), ('aa')) v (code) ON c.code = v.code WHEN MATCHED THEN UPDATE SET seen = seen + 1 WHEN NOT MATCHED THEN INSERT VALUES (v.code, 1);
SELECT * FROM codes;
MERGE INTO codes c USING regions r ON c.code = r.code WHEN MATCHED THEN UPDATE SET seen = 9 WHEN NOT MATCHED THEN INSERT (code) VALUES (r.code);
SELECT * FROM codes;
SELECT u.id, c.seen FROM users u JOIN codes c ON c.code = u.country WHERE u.id < 9;

-- Local tables.
MERGE INTO shelf s USING (VALUES (1, 'one'), (9, 'nine')) v (k, t) ON s.k = v.k WHEN MATCHED THEN UPDATE SET note = v.t WHEN NOT MATCHED THEN INSERT VALUES (v.k, 0, v.t);
SELECT * FROM shelf;
MERGE INTO shelf s USING local_notes n ON s.k = n.id WHEN MATCHED AND n.stars > 2 THEN DELETE WHEN MATCHED THEN UPDATE SET note = n.body;
SELECT * FROM shelf;
MERGE INTO shelf s USING regions r ON r.tax = s.k + 18 WHEN MATCHED THEN UPDATE SET note = r.name;
SELECT * FROM shelf;

-- Errors.
--@ error: 21000
MERGE INTO stock s USING (SELECT d.k FROM delivery d JOIN delivery e ON e.k = d.k CROSS JOIN regions) d ON s.k = d.k WHEN MATCHED THEN UPDATE SET n = 1;
--@ error: 42703
MERGE INTO stock s USING delivery d ON s.k = d.nothing WHEN MATCHED THEN DELETE;
--@ error: 42P01
MERGE INTO nothing s USING delivery d ON s.k = d.k WHEN MATCHED THEN DELETE;
--@ error: 42601
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED THEN INSERT VALUES (1);
--@ error: 42601
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1;
--@ error: 22012
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED THEN UPDATE SET n = 1 / (d.n - d.n);
--@ error: 23505
--@ loose: which row comes first
MERGE INTO stock s USING delivery d ON s.k = d.k AND s.n < -1000 WHEN NOT MATCHED THEN INSERT VALUES (d.k, 1);
SELECT count(*), sum(n) FROM stock;

-- With parameters, in a transaction, and taken back.
--@ params: 5, 'five'
--@ params: 6, 'six'
MERGE INTO stock s USING delivery d ON s.k = d.k AND d.n > $1::int WHEN MATCHED THEN UPDATE SET note = $2::text;
SELECT note, count(*) FROM stock GROUP BY note;
BEGIN;
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN MATCHED THEN DELETE;
SELECT count(*) FROM stock;
SAVEPOINT a;
MERGE INTO stock s USING delivery d ON s.k = d.k WHEN NOT MATCHED THEN INSERT VALUES (d.k, -d.n, 'back');
SELECT count(*), sum(n) FROM stock;
ROLLBACK TO a;
SELECT count(*) FROM stock;
ROLLBACK;
SELECT count(*) FROM stock;

-- From sources that are elsewhere: their rows go to where the target's are.
CREATE TABLE arrivals (id int PRIMARY KEY, k int, n int, big bigint, at timestamptz DEFAULT '2022-05-06 07:08:09+00');
--@ cluster: SELECT create_distributed_table('arrivals', 'id', colocate_with => 'none')
INSERT INTO arrivals SELECT g, nullif(g + 5, 12), g * 100, g FROM generate_series(1, 40) g;
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.n, note = 'arrived';
SELECT * FROM stock;
MERGE INTO stock s USING arrivals a ON s.k = a.k AND a.n > 1000
  WHEN MATCHED AND a.id % 2 = 0 THEN DELETE
  WHEN NOT MATCHED AND a.k IS NOT NULL AND a.k > 30 THEN INSERT (k, n, note) VALUES (a.k, a.n, 'new ' || a.id);
SELECT * FROM stock;
MERGE INTO stock s USING (SELECT k, sum(n) AS n, count(*) FROM arrivals WHERE k < 60 GROUP BY k) a ON a.k = s.k
  WHEN MATCHED THEN UPDATE SET n = s.n + a.n, note = DEFAULT
  WHEN NOT MATCHED THEN INSERT VALUES (a.k, a.n);
SELECT count(*), sum(n), sum(k) FROM stock;
MERGE INTO stock s USING (SELECT a.k, u.name FROM arrivals a JOIN users u ON u.id = a.id) a ON a.k = s.k WHEN MATCHED THEN UPDATE SET note = a.name WHEN NOT MATCHED THEN DO NOTHING;
SELECT k, note FROM stock;
MERGE INTO stock s USING arrivals a ON s.k = a.big WHEN MATCHED THEN UPDATE SET n = -a.big;
SELECT sum(n) FROM stock;
MERGE INTO stock s USING (SELECT k FROM arrivals WHERE id < 3 UNION ALL SELECT k FROM arrivals WHERE id > 38) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 21000
MERGE INTO stock s USING (SELECT k FROM arrivals UNION ALL SELECT k FROM arrivals) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 21000
MERGE INTO stock s USING (SELECT id % 10 AS k FROM arrivals) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 0;
--@ error: 23502
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (a.k, 1);
BEGIN;
DELETE FROM stock WHERE k % 2 = 0;
UPDATE arrivals SET n = 7 WHERE id < 20;
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = a.n WHEN NOT MATCHED AND a.k IS NOT NULL THEN INSERT VALUES (a.k, a.n, 'in a block');
SELECT count(*), sum(n), count(*) FILTER (WHERE note = 'in a block') FROM stock;
SAVEPOINT s;
--@ error: 22012
MERGE INTO stock s USING arrivals a ON s.k = a.k WHEN MATCHED THEN UPDATE SET n = 1 / (a.n - a.n);
ROLLBACK TO s;
SELECT count(*), sum(n) FROM stock;
ROLLBACK;
SELECT count(*), sum(n) FROM stock;
--@ params: 7, 'seven'
--@ params: 3, 'three'
MERGE INTO stock s USING (SELECT * FROM arrivals WHERE id > $1::int) a ON s.k = a.k WHEN MATCHED THEN UPDATE SET note = $2::text;
SELECT note, count(*) FROM stock GROUP BY note;
MERGE INTO stock s USING regions r ON s.k = r.tax::int WHEN MATCHED THEN UPDATE SET note = r.name;
WITH few AS (SELECT k, n FROM delivery WHERE k < 20), more AS MATERIALIZED (SELECT k, n + 1 AS n FROM few) MERGE INTO stock s USING more m ON s.k = m.k WHEN MATCHED THEN UPDATE SET n = m.n WHEN NOT MATCHED THEN INSERT VALUES (m.k, m.n);
SELECT count(*), sum(n) FROM stock;
WITH gone AS (DELETE FROM arrivals RETURNING k) MERGE INTO stock s USING gone g ON s.k = g.k WHEN MATCHED THEN DELETE;
SELECT count(*), sum(n) FROM stock;
SELECT count(*) FROM arrivals;
