--@ include: schema.sql
-- Definitions that change: what follows must be true of every shard.

ALTER TABLE clicks ADD COLUMN note text;
UPDATE clicks SET note = 'noted' WHERE user_id = 8;
SELECT count(*) FROM clicks WHERE note IS NOT NULL;
ALTER TABLE clicks ADD COLUMN rank int NOT NULL DEFAULT 7, ADD COLUMN made timestamptz DEFAULT '2020-01-01';
SELECT count(*), sum(rank), count(DISTINCT made) FROM clicks;
INSERT INTO clicks (user_id) VALUES (950) RETURNING rank, note;
ALTER TABLE clicks RENAME COLUMN note TO remark;
SELECT remark FROM clicks WHERE remark IS NOT NULL LIMIT 1;
--@ error: 42703
SELECT note FROM clicks;
ALTER TABLE clicks ALTER COLUMN rank TYPE bigint USING rank * 2;
SELECT sum(rank) FROM clicks;
ALTER TABLE clicks ALTER COLUMN rank SET DEFAULT 1, ALTER COLUMN rank DROP NOT NULL;
INSERT INTO clicks (user_id) VALUES (951) RETURNING rank;
INSERT INTO clicks (user_id, rank) VALUES (951, NULL) RETURNING rank;
ALTER TABLE clicks DROP COLUMN remark;
--@ error: 42703
SELECT remark FROM clicks WHERE user_id = 8;
SELECT * FROM clicks WHERE user_id = 951;
ALTER TABLE clicks ADD CONSTRAINT rank_small CHECK (rank < 1000);
--@ error: 23514
INSERT INTO clicks (user_id, rank) VALUES (952, 5000);
--@ error: 23514
ALTER TABLE clicks ADD CONSTRAINT impossible CHECK (rank > 13);
ALTER TABLE clicks ADD CONSTRAINT later CHECK (ms >= 0) NOT VALID;
ALTER TABLE clicks VALIDATE CONSTRAINT later;
ALTER TABLE clicks DROP CONSTRAINT rank_small;
INSERT INTO clicks (user_id, rank) VALUES (952, 5000);
--@ error: 23502
ALTER TABLE clicks ALTER COLUMN ms SET NOT NULL;
ALTER TABLE clicks ALTER COLUMN ms SET STATISTICS 200;
COMMENT ON TABLE clicks IS 'what was clicked';
COMMENT ON COLUMN clicks.ms IS 'milliseconds';
SELECT obj_description('clicks'::regclass), col_description('clicks'::regclass, 3);

-- Indexes.
CREATE INDEX clicks_url ON clicks (url, ms DESC);
CREATE INDEX ON clicks (lower(url));
CREATE INDEX CONCURRENTLY clicks_at ON clicks (at);
CREATE UNIQUE INDEX clicks_u ON clicks (user_id, ms, url) WHERE rank = 999;
CREATE INDEX IF NOT EXISTS clicks_url ON clicks (url);
INSERT INTO clicks (user_id, url, ms, rank) VALUES (960, 'u', 1, 999);
--@ error: 23505
INSERT INTO clicks (user_id, url, ms, rank) VALUES (960, 'u', 1, 999);
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'clicks';
ALTER INDEX clicks_url RENAME TO clicks_url2;
DROP INDEX clicks_url2;
DROP INDEX CONCURRENTLY clicks_at;
REINDEX TABLE clicks;
SELECT indexname FROM pg_indexes WHERE tablename IN ('clicks', 'orders');
ALTER TABLE friends ADD CONSTRAINT friends_pair UNIQUE (id, a);
--@ error: 23505
INSERT INTO friends VALUES (1, 6, 5, NULL);

-- Names and schemas.
ALTER TABLE friends RENAME TO pals;
SELECT count(*) FROM pals;
SELECT a FROM pals WHERE id = 5;
--@ error: 42P01
SELECT count(*) FROM friends;
CREATE SCHEMA attic;
ALTER TABLE pals SET SCHEMA attic;
SELECT count(*) FROM attic.pals;
SELECT a FROM attic.pals WHERE id = 5;
INSERT INTO attic.pals VALUES (1000, 1, 2, NULL), (1001, 1, 2, NULL);
ALTER SCHEMA attic RENAME TO cellar;
SELECT count(*) FROM cellar.pals;
-- By way of the coordinator.
SELECT count(*) FROM cellar.pals WHERE id IN (SELECT g FROM generate_series(1, 5) g WHERE random() < 2);
CREATE FUNCTION pals_of(text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM %I.pals', $1) INTO n; RETURN n; END $$;
SELECT pals_of('cellar');
BEGIN;
ALTER SCHEMA cellar RENAME TO loft;
SELECT pals_of('loft');
INSERT INTO loft.pals VALUES (1002, 1, 2, NULL);
ROLLBACK;
SELECT pals_of('cellar');
DROP FUNCTION pals_of;
DROP SCHEMA cellar CASCADE;
--@ error: 42P01
SELECT count(*) FROM cellar.pals;
CREATE TABLE "Odd ""name""" ("Key" int PRIMARY KEY, "select" text, "ünïcode" int);
--@ cluster: SELECT create_distributed_table('"Odd ""name"""', 'Key')
INSERT INTO "Odd ""name""" VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3);
SELECT "Key", "select" FROM "Odd ""name""" WHERE "Key" = 2;
SELECT sum("ünïcode") FROM "Odd ""name""";
UPDATE "Odd ""name""" SET "select" = 'z' WHERE "Key" = 3 RETURNING *;
DROP TABLE "Odd ""name""";

-- Reference tables.
ALTER TABLE regions ADD COLUMN capital text DEFAULT 'unknown';
UPDATE regions SET capital = 'Berlin' WHERE code = 'de';
SELECT u.id, r.capital FROM users u JOIN regions r ON r.code = u.country WHERE u.id < 13;
ALTER TABLE products DROP COLUMN weight;
SELECT * FROM products WHERE id = 2;
ALTER TABLE regions RENAME COLUMN capital TO seat;
SELECT seat, count(*) FROM users u JOIN regions r ON r.code = u.country GROUP BY seat;

-- Tables that come and go.
CREATE TABLE a (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('a', 'k')
INSERT INTO a VALUES (1, 'x'), (2, 'y');
CREATE TABLE b (LIKE a INCLUDING ALL);
--@ cluster: SELECT create_distributed_table('b', 'k')
INSERT INTO b SELECT * FROM a;
SELECT a.k, b.v FROM a JOIN b USING (k);
ALTER TABLE b ADD CONSTRAINT b_fk FOREIGN KEY (k) REFERENCES a (k) ON DELETE CASCADE;
DELETE FROM a WHERE k = 1;
SELECT * FROM b;
--@ error: 2BP01
DROP TABLE a;
DROP TABLE a, b;
--@ error: 42P01
SELECT * FROM b;
CREATE TABLE a (k text, n int);
INSERT INTO a VALUES ('again', 1);
--@ cluster: SELECT create_distributed_table('a', 'k')
SELECT * FROM a WHERE k = 'again';
--@ cluster: SELECT undistribute_table('a')
SELECT * FROM a;
INSERT INTO a VALUES ('local', 2);
--@ cluster: SELECT create_distributed_table('a', 'n')
SELECT * FROM a WHERE n = 2;
SELECT count(*) FROM a;
DROP TABLE a CASCADE;
CREATE TABLE by_month (k int, at date NOT NULL, v int) PARTITION BY RANGE (at);
CREATE TABLE by_month_1 PARTITION OF by_month FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE by_month_2 PARTITION OF by_month FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
--@ cluster: SELECT create_distributed_table('by_month', 'k')
INSERT INTO by_month SELECT g, date '2020-01-01' + g, g * 2 FROM generate_series(0, 50) g;
SELECT count(*), sum(v) FROM by_month;
SELECT count(*) FROM by_month_2;
SELECT * FROM by_month WHERE k = 40;
CREATE TABLE by_month_3 PARTITION OF by_month FOR VALUES FROM ('2020-03-01') TO ('2020-04-01');
INSERT INTO by_month VALUES (77, '2020-03-05', 1);
SELECT count(*) FROM by_month_3;
--@ error: 23514
INSERT INTO by_month VALUES (78, '2021-03-05', 1);
DROP TABLE by_month_1;
SELECT count(*) FROM by_month;
ALTER TABLE by_month DETACH PARTITION by_month_2;
SELECT count(*) FROM by_month;
SELECT count(*) FROM by_month_2;

-- Upkeep.
ANALYZE users;
VACUUM orders;
VACUUM (ANALYZE) clicks;
VACUUM;
VACUUM ANALYZE;
VACUUM (ANALYZE, VERBOSE false);
ANALYZE;
ANALYZE;
CLUSTER orders USING orders_pkey;
ALTER TABLE users SET (fillfactor = 80);
ALTER TABLE users RESET (fillfactor);
ALTER TABLE clicks SET UNLOGGED;
ALTER TABLE clicks SET LOGGED;
CREATE STATISTICS corr (dependencies) ON country, active FROM users;
CREATE SEQUENCE numbers START 5;
SELECT nextval('numbers'), currval('numbers');
ALTER TABLE clicks ALTER COLUMN rank SET DEFAULT nextval('numbers');
INSERT INTO clicks (user_id) VALUES (970), (971) RETURNING rank > 5;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
SELECT similarity(name, 'user 5') > 0.5 FROM users WHERE id IN (5, 6);
CREATE TABLE trg (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('trg', 'k')
CREATE INDEX ON trg USING gin (v gin_trgm_ops);
INSERT INTO trg SELECT g, 'value ' || g FROM generate_series(1, 30) g;
SELECT k FROM trg WHERE v ILIKE '%ue 2%';
GRANT SELECT ON trg TO PUBLIC;
REVOKE ALL ON trg FROM PUBLIC;
ALTER TABLE trg OWNER TO CURRENT_USER;
ALTER TABLE trg REPLICA IDENTITY FULL;
DROP TABLE IF EXISTS trg, nowhere;

-- Which table's column a column is, where workers count columns in another way.
CREATE TABLE origin_a (gone int, k int, x text, also_gone int, y int);
ALTER TABLE origin_a DROP COLUMN gone;
--@ cluster: SELECT create_distributed_table('origin_a', 'k')
CREATE TABLE origin_b (k int, z text);
--@ cluster: SELECT create_distributed_table('origin_b', 'k', colocate_with => 'origin_a')
CREATE TABLE origin_r (k int, name text);
--@ cluster: SELECT create_reference_table('origin_r')
INSERT INTO origin_a (k, x, y) VALUES (1, 'a', 10), (2, 'b', 20);
INSERT INTO origin_b VALUES (1, 'z'), (2, 'zz');
INSERT INTO origin_r VALUES (1, 'one'), (2, 'two');
SELECT y, x, k FROM origin_a;
SELECT y AS renamed, k + 1 AS computed, x FROM origin_a WHERE k = 1;
SELECT a.y AS renamed, b.z, a.k + 1, r.name FROM origin_a a JOIN origin_b b USING (k) JOIN origin_r r USING (k) WHERE a.k = 1;
SELECT a.*, b.*, r.* FROM origin_a a JOIN origin_b b USING (k) JOIN origin_r r USING (k);
ALTER TABLE origin_a DROP COLUMN also_gone, ADD COLUMN w int DEFAULT 4;
ALTER TABLE origin_b RENAME COLUMN z TO zet;
SELECT a.*, b.*, r.* FROM origin_a a JOIN origin_b b USING (k) JOIN origin_r r USING (k) WHERE a.k = 2;
SELECT w, y FROM origin_a WHERE k = 2;
UPDATE origin_a SET w = 5 WHERE k = 2 RETURNING w, y, w + y, x;
UPDATE origin_r SET name = 'deux' WHERE k = 2 RETURNING name, k;
DELETE FROM origin_a WHERE k = 3 RETURNING *;
INSERT INTO origin_a (k, x, y) VALUES (4, 'd', 40), (5, 'e', 50) RETURNING w, y, k;
SELECT w, count(*) FROM origin_a GROUP BY w;
SELECT y, x FROM origin_a ORDER BY y LIMIT 2;
BEGIN;
ALTER TABLE origin_a DROP COLUMN x, ADD COLUMN v int DEFAULT 6;
CREATE TABLE origin_new (k int, n int);
--@ cluster: SELECT create_distributed_table('origin_new', 'k', colocate_with => 'origin_a')
INSERT INTO origin_new VALUES (1, 100);
SELECT n, k FROM origin_new WHERE k = 1;
SELECT a.*, n.* FROM origin_a a JOIN origin_new n USING (k);
SELECT a.v, n.n FROM origin_a a JOIN origin_new n USING (k) WHERE a.k = 1;
ROLLBACK;
SELECT a.*, b.* FROM origin_a a JOIN origin_b b USING (k) WHERE a.k = 1;
DROP TABLE origin_a, origin_b, origin_r;
