-- Parts of tables that are large enough for one part to say which rows of another matter.

CREATE TABLE parcels (id int PRIMARY KEY, box int, shelf int, weight int, label text);
--@ cluster: SELECT create_distributed_table('parcels', 'id')
CREATE TABLE moves (parcel int, step int, box int, shelf int, at date);
--@ cluster: SELECT create_distributed_table('moves', 'box', colocate_with => 'none')
CREATE TABLE boxes (id bigint, shelf int, owner text, size numeric);
--@ cluster: SELECT create_distributed_table('boxes', 'owner', colocate_with => 'none')
CREATE TABLE colours (code int PRIMARY KEY, name text);
--@ cluster: SELECT create_reference_table('colours')
INSERT INTO parcels SELECT g, nullif(g % 700, 3), g % 11, g % 97, 'parcel ' || g FROM generate_series(1, 6000) g;
INSERT INTO moves SELECT g % 6000 + 1, g, g % 500, g % 13, date '2024-01-01' + g % 300 FROM generate_series(1, 7000) g;
INSERT INTO boxes SELECT g % 900, g % 12, 'owner ' || g % 40, g % 7 + 0.5 FROM generate_series(1, 5600) g;
INSERT INTO colours SELECT g, CASE g % 3 WHEN 0 THEN 'red' WHEN 1 THEN 'blue' ELSE NULL END FROM generate_series(0, 12) g;
ANALYZE parcels;
ANALYZE moves;
ANALYZE boxes;
ANALYZE colours;

-- A few values, many values, several columns.
SELECT count(*), sum(m.step) FROM moves m JOIN boxes b ON b.id = m.box WHERE b.owner = 'owner 7' AND b.size = 4.5;
SELECT count(*), sum(m.step) FROM moves m JOIN parcels p ON p.id = m.parcel WHERE p.weight < 20;
SELECT count(*), sum(p.weight) FROM parcels p, moves m, boxes b WHERE m.parcel = p.id AND b.id = p.box AND b.shelf = p.shelf AND m.at = date '2024-02-03';
SELECT p.id, m.step FROM parcels p JOIN moves m ON m.box = p.box AND m.shelf = p.shelf JOIN boxes b ON b.id = p.box AND b.shelf = m.shelf WHERE b.size = 0.5 AND p.weight = 5 ORDER BY 1, 2 LIMIT 20;
SELECT c.name, count(*) FROM boxes b JOIN colours c ON c.code = b.shelf JOIN moves m ON m.box = b.id WHERE c.name = 'red' AND m.at > date '2024-10-01' GROUP BY c.name;
SELECT b.owner, count(*) FROM boxes b, moves m, parcels p WHERE m.box = b.id AND p.id = m.parcel AND p.label = 'parcel 77' GROUP BY b.owner ORDER BY 2 DESC, 1 LIMIT 5;

-- What a subquery gives.
SELECT count(*) FROM parcels p JOIN moves m ON m.parcel = p.id WHERE m.box IN (SELECT id FROM boxes GROUP BY id, shelf HAVING count(*) > 9 AND max(size) > 5);
SELECT count(*) FROM parcels p JOIN moves m ON m.parcel = p.id WHERE p.box IN (SELECT m2.box FROM moves m2 WHERE m2.at = date '2024-03-03' GROUP BY m2.box) AND m.at < date '2024-02-01';
SELECT count(*) FROM boxes b WHERE b.size = 1.5 AND NOT EXISTS (SELECT FROM moves m WHERE m.box = b.id AND m.shelf = b.shelf);
SELECT count(*) FROM boxes b WHERE b.size = 1.5 AND EXISTS (SELECT FROM moves m JOIN parcels p ON p.id = m.parcel WHERE m.box = b.id AND p.shelf = b.shelf AND p.weight > 90);
SELECT count(*) FROM parcels p WHERE p.weight = 7 AND p.box NOT IN (SELECT m.box FROM moves m WHERE m.shelf = 3);
SELECT b.owner, (SELECT count(*) FROM moves m WHERE m.box = b.id) FROM boxes b WHERE b.shelf = 2 AND b.size = 2.5 ORDER BY b.owner, 2 LIMIT 10;
-- Of a subquery only values matter that a column can have which is looked for in it.
SELECT c.code FROM colours c WHERE c.name = 'red' AND c.code IN (SELECT p.shelf FROM parcels p WHERE p.weight > (SELECT avg(m.step) / 60 FROM moves m WHERE m.parcel = p.id AND m.shelf = p.shelf));
SELECT c.code FROM colours c JOIN colours d ON d.code = c.code WHERE d.name = 'blue' AND c.code IN (SELECT shelf FROM moves WHERE at < date '2024-01-05' OR step = 7000 -- the last
) ORDER BY c.code;
SELECT c.code, c.name FROM colours c WHERE c.name IS NULL AND c.code IN (SELECT m.shelf FROM moves m LEFT JOIN parcels p ON p.id = m.box WHERE p.id IS NULL OR p.weight = 3) ORDER BY c.code;
SELECT c.code FROM colours c WHERE c.name = 'red' AND c.code NOT IN (SELECT p.box FROM parcels p WHERE p.weight = 7 AND p.box IS NOT NULL) ORDER BY 1;
SELECT c.code FROM colours c WHERE c.name = 'red' AND (c.code IN (SELECT m.shelf FROM moves m WHERE m.step < 9) OR c.code = 12) ORDER BY 1;
SELECT c.code FROM colours c WHERE c.name = 'red' AND c.code IN (SELECT m.shelf FROM moves m ORDER BY m.step DESC LIMIT 4) ORDER BY 1;
SELECT c.code FROM colours c WHERE c.name = 'red' AND c.code IN (SELECT DISTINCT m.shelf FROM moves m JOIN parcels p ON p.id = m.parcel AND p.shelf <> m.shelf) ORDER BY 1;
SELECT c.code FROM colours c LEFT JOIN colours d ON d.code = c.code AND d.name = 'red' WHERE c.code IN (SELECT m.shelf FROM moves m) ORDER BY 1;
SELECT count(*) FROM parcels p JOIN colours c ON c.code = p.shelf WHERE c.name = 'blue' AND c.code IN (SELECT m.shelf FROM moves m WHERE m.at > date '2024-10-20' AND m.box < 50);
-- The groups of a large table are those that outer rows ask for.
CREATE TABLE sales (id int PRIMARY KEY, parcel int, shelf int, amount numeric(8,2), day date);
--@ cluster: SELECT create_distributed_table('sales', 'id', colocate_with => 'none')
INSERT INTO sales SELECT g, nullif(g % 6100, 11), nullif(g % 11, 4), g % 1000 / 7.0, date '2024-01-01' + g % 366 FROM generate_series(1, 24000) g;
CREATE INDEX ON sales (parcel, shelf);
ANALYZE sales;
SELECT p.id FROM parcels p JOIN colours c ON c.code = p.shelf WHERE c.name = 'red' AND p.weight = 7 AND p.box > (SELECT 0.5 * sum(s.amount) FROM sales s WHERE s.parcel = p.id AND s.shelf = p.shelf AND s.day < date '2024-09-01') ORDER BY p.id;
SELECT count(*), sum(p.weight) FROM parcels p WHERE p.label IN ('parcel 11', 'parcel 12', 'parcel 13', 'parcel 3000') AND (SELECT max(s.amount) FROM sales s WHERE s.parcel = p.id) >= p.shelf;
SELECT p.id, p.box FROM parcels p LEFT JOIN moves m ON m.box = p.box AND m.step < 40 WHERE p.weight = 3 AND p.box <> (SELECT avg(s.amount) FROM sales s WHERE s.shelf = m.shelf AND s.parcel = p.id) ORDER BY 1, 2;
SELECT c.code FROM colours c WHERE c.name = 'blue' AND c.code IN (SELECT p.shelf FROM parcels p WHERE p.weight > 90 AND p.box > (SELECT min(s.amount) FROM sales s WHERE s.parcel = p.id AND s.shelf = p.shelf)) ORDER BY 1;
SELECT b.owner, count(*) FROM boxes b WHERE b.size = 0.5 AND b.owner LIKE '%7' AND (b.id < (SELECT sum(s.amount) FROM sales s WHERE s.parcel = b.id AND s.shelf = b.shelf)) AND b.id IN (SELECT m.box FROM moves m WHERE m.shelf < 6) GROUP BY b.owner ORDER BY 1;
SELECT p.id FROM parcels p WHERE p.weight = 5 AND p.shelf = 4 AND p.box > (SELECT sum(s.amount) FROM sales s WHERE s.shelf = p.shelf AND s.parcel = p.id) ORDER BY 1;
SELECT p.id FROM parcels p WHERE p.weight = 5 AND (SELECT sum(s.amount) FROM sales s WHERE s.shelf = p.shelf AND s.parcel = p.id) < 100 AND (SELECT max(m.step) FROM moves m WHERE m.parcel = p.id AND m.shelf = p.shelf) > 9 ORDER BY 1;
BEGIN;
UPDATE sales SET amount = 900 WHERE parcel = 200;
SELECT p.id FROM parcels p WHERE p.id BETWEEN 198 AND 202 AND p.id * 3 < (SELECT max(s.amount) FROM sales s WHERE s.parcel = p.id AND s.id > p.weight) ORDER BY 1;
ROLLBACK;
-- One subquery under two names gives columns of different rows.
WITH s AS (SELECT box AS k, shelf AS v FROM moves WHERE at = date '2024-01-05' GROUP BY box, shelf) SELECT count(*) FROM boxes e, parcels c, s s1, s s2 WHERE e.id = c.weight AND e.size = 0.5 AND c.box = s1.k AND c.shelf = s2.v;
WITH s AS (SELECT box AS k, shelf AS v FROM moves WHERE at = date '2024-01-05' GROUP BY box, shelf) SELECT count(*) FROM boxes e, s s1 WHERE e.size = 0.5 AND e.id = s1.k AND EXISTS (SELECT FROM parcels c, s s2 WHERE c.box = s1.k AND c.shelf = s2.v);
-- Values that are equal and not alike.
SELECT count(*) FROM parcels JOIN boxes USING (shelf) WHERE shelf = 4 AND parcels.id = 15;
SELECT count(*) FROM (SELECT id AS n FROM parcels) p JOIN (SELECT size AS n FROM boxes) b USING (n) WHERE n / 2 = 1.25;
SELECT count(*) FROM boxes b JOIN moves m ON m.box = b.id WHERE EXISTS (SELECT DISTINCT * FROM parcels p WHERE p.box = m.shelf AND p.weight = 11 OFFSET 1) AND b.size = 3.5;
-- What an OR says of one table in each of its arms.
SELECT count(*) FROM parcels p, moves m WHERE m.parcel = p.id AND (p.weight = 3 AND m.shelf = 4 OR p.weight = 5 AND m.shelf = 6 AND m.at > date '2024-05-05');
SELECT count(*) FROM parcels p, moves m WHERE m.parcel = p.id AND p.weight = 3 AND m.shelf = 4 OR m.parcel = p.id AND p.box IS NULL AND m.shelf IS NOT NULL;
SELECT count(*) FROM parcels p LEFT JOIN moves m ON m.parcel = p.id WHERE p.weight = 3 AND m.shelf = 4 OR p.weight = 5 AND m.shelf IS NULL;
-- Outer joins keep what has nothing to be joined with.
SELECT count(*), count(m.step), count(b.id) FROM parcels p LEFT JOIN moves m ON m.parcel = p.id AND m.at < date '2024-01-20' LEFT JOIN boxes b ON b.id = m.box AND b.shelf = m.shelf WHERE p.weight = 50;
SELECT count(*), count(p.id) FROM parcels p RIGHT JOIN boxes b ON b.id = p.box AND p.weight = 2 WHERE b.owner = 'owner 3';
SELECT count(*), count(p.id), count(b.id) FROM (SELECT * FROM parcels WHERE weight = 1) p FULL JOIN (SELECT * FROM boxes WHERE size = 6.5) b ON b.id = p.box;
-- The same table twice, whole.
SELECT count(*) FROM parcels a JOIN parcels b ON b.box = a.weight WHERE a.shelf = b.shelf;
SELECT count(*), count(b.id) FROM boxes a FULL JOIN boxes b ON b.id = a.shelf AND b.shelf = a.id;

-- With parameters, and in a transaction that has written.
--@ params: 3
--@ params: 90
SELECT count(*) FROM parcels p JOIN moves m ON m.parcel = p.id JOIN boxes b ON b.id = m.box WHERE p.weight = $1::int AND b.shelf < 5;
BEGIN;
UPDATE parcels SET weight = 1000 WHERE id % 50 = 0;
INSERT INTO boxes VALUES (20000, 1, 'owner 1', 1), (20001, 2, 'owner 2', 1);
UPDATE moves SET parcel = parcel + 1 WHERE shelf = 5;
SELECT count(*), sum(m.step) FROM moves m JOIN parcels p ON p.id = m.parcel WHERE p.weight = 1000;
SELECT count(*), sum(p.weight) FROM parcels p, moves m, boxes b WHERE m.parcel = p.id AND b.id = p.box AND b.shelf = p.shelf AND p.weight = 1000;
WITH s AS (SELECT box AS k, shelf AS v FROM moves WHERE at = date '2024-01-05' GROUP BY box, shelf) SELECT count(*) FROM boxes e, parcels c, s s1, s s2 WHERE e.id = c.weight AND c.box = s1.k AND c.shelf = s2.v;
SELECT count(*) FROM boxes b WHERE b.size = 1 AND NOT EXISTS (SELECT FROM moves m WHERE m.box = b.id AND m.shelf = b.shelf);
ROLLBACK;
SELECT count(*) FROM parcels WHERE weight = 1000;
-- Where workers cannot have tables of large parts.
SET default_transaction_read_only = on;
SELECT count(*), sum(m.step), sum(p.weight), count(DISTINCT b.owner) FROM parcels p, moves m, boxes b WHERE m.parcel = p.id AND b.id = p.box AND b.shelf = p.shelf;
RESET default_transaction_read_only;
SELECT count(*), sum(m.step), sum(p.weight), count(DISTINCT b.owner) FROM parcels p, moves m, boxes b WHERE m.parcel = p.id AND b.id = p.box AND b.shelf = p.shelf;
SELECT m.shelf, count(*), sum(p.weight) FROM moves m JOIN parcels p ON p.id = m.parcel GROUP BY m.shelf ORDER BY 1;
SELECT count(*) FROM moves m WHERE NOT EXISTS (SELECT FROM parcels p WHERE p.id = m.parcel AND p.box = m.box);
SELECT p.label FROM parcels p JOIN moves m ON m.parcel = p.id JOIN boxes b ON b.id = m.box WHERE b.owner LIKE 'owner 3%' ORDER BY p.id, m.step LIMIT 7;

-- What is computed equals a varchar without its blanks, and a text with them.
CREATE TABLE zones (code int, tag varchar(8));
--@ cluster: SELECT create_reference_table('zones')
CREATE TABLE lands (tag text, land text);
--@ cluster: SELECT create_reference_table('lands')
INSERT INTO zones VALUES (0, 'tag0'), (1, 'tag1'), (2, 'tag2'), (3, 'tag1 '), (4, NULL);
INSERT INTO lands VALUES ('tag1 ', 'north'), ('tag2', 'north'), ('tag0', 'south'), (NULL, 'north');
SELECT count(*), count(l.tag) FROM parcels p, moves m, zones z, lands l WHERE m.parcel = p.id AND ('tag' || m.step % 3)::char(6) = z.tag AND z.tag = l.tag AND l.land = 'north';
SELECT z.tag || '|', count(*) FROM parcels p, moves m, zones z, lands l WHERE m.box = p.box AND ('tag' || p.weight % 300)::char(6) = z.tag AND z.tag = l.tag AND l.land = 'north' AND m.step < 500 GROUP BY 1;
-- A name in a subquery is one of the row around it, though something deeper in it has the same.
SELECT count(*) FROM parcels p WHERE p.shelf IN (SELECT c.code FROM colours c WHERE weight < 5 AND c.code < (SELECT max(y.weight) FROM (SELECT code + 20 AS weight FROM colours) y)) AND EXISTS (SELECT FROM moves q(parcel, weight, box) WHERE q.shelf = p.shelf);
SELECT count(*) FROM parcels p WHERE p.shelf IN (SELECT c.code FROM colours c WHERE weight < 5 AND c.code < (SELECT max(y.weight) FROM (SELECT code + 20 AS weight FROM colours) y)) AND EXISTS (SELECT FROM moves q(parcel, weight, box) WHERE q.shelf = p.shelf AND q.box > p.box);
SELECT count(*) FROM parcels p WHERE p.shelf IN (SELECT c.code FROM colours c WHERE weight < 5 AND EXISTS (SELECT FROM colours weight(a, weight) WHERE weight.a = c.code)) AND p.id NOT IN (SELECT q.parcel FROM moves q(parcel, weight, box) WHERE q.shelf = p.shelf);
