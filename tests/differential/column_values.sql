-- Columns that come later, with defaults that give something else at another time: rows that are there have one value, on every
-- copy and every worker.

CREATE TABLE rates_of (id int PRIMARY KEY, v int);
CREATE TABLE sales (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_reference_table('rates_of'), create_distributed_table('sales', 'k')
INSERT INTO rates_of VALUES (1, 1), (2, 2);
INSERT INTO sales SELECT i, i FROM generate_series(1, 12) i;
ALTER TABLE rates_of ADD COLUMN at timestamptz NOT NULL DEFAULT now(), ADD COLUMN b timestamp DEFAULT current_timestamp, ADD COLUMN c date DEFAULT current_date, ADD COLUMN who text DEFAULT current_user, ADD COLUMN list text[] DEFAULT ARRAY['a,b', current_user::text];
ALTER TABLE sales ADD COLUMN at timestamptz NOT NULL DEFAULT now(), ADD COLUMN who name DEFAULT session_user;
SELECT count(DISTINCT at), count(DISTINCT who), count(*) FROM sales;
CREATE TABLE seen (k int PRIMARY KEY, at timestamptz, b timestamp);
--@ cluster: SELECT create_distributed_table('seen', 'k')
INSERT INTO seen SELECT i, (SELECT at FROM rates_of WHERE id = 1), (SELECT b FROM rates_of WHERE id = 2) FROM generate_series(1, 9) i;
SELECT count(*) FROM seen JOIN rates_of USING (at);
SELECT count(*) FROM seen JOIN rates_of USING (b);
SELECT count(DISTINCT (r.at, r.b, r.c, r.who, r.list)) FROM seen s JOIN rates_of r ON r.id = s.k % 2 + 1;
SELECT list[1], c = current_date, at <= now() FROM rates_of ORDER BY id;
-- What comes afterwards has the default.
INSERT INTO rates_of (id) VALUES (3);
INSERT INTO sales (k) VALUES (13), (14);
SELECT count(DISTINCT at) FROM rates_of;
SELECT count(DISTINCT at) FROM sales;
SELECT count(DISTINCT r.at) FROM seen s JOIN rates_of r ON r.id = 3;
BEGIN;
ALTER TABLE sales ADD COLUMN later timestamptz DEFAULT clock_timestamp();
SELECT count(*) FROM sales WHERE later IS NOT NULL;
ALTER TABLE rates_of ADD COLUMN later text DEFAULT upper(current_user::text);
UPDATE rates_of SET v = 5 WHERE later <> upper(current_user::text);
ROLLBACK;
--@ refused: 0A000
ALTER TABLE rates_of ADD COLUMN u uuid NOT NULL DEFAULT gen_random_uuid();
--@ refused: 0A000
ALTER TABLE rates_of ADD COLUMN r float8 DEFAULT random();
CREATE TABLE empty_of (id int PRIMARY KEY);
--@ cluster: SELECT create_reference_table('empty_of')
ALTER TABLE empty_of ADD COLUMN u uuid NOT NULL DEFAULT gen_random_uuid();
INSERT INTO empty_of VALUES (1), (2);
SELECT count(DISTINCT e.u) FROM empty_of e JOIN seen s ON e.id = s.k % 2 + 1;
DO $$ BEGIN ALTER TABLE sales ADD COLUMN inside timestamptz DEFAULT now(); END $$;
SELECT count(DISTINCT inside) FROM sales;
-- Rows of defaults alone.
CREATE TABLE queued (id bigserial PRIMARY KEY, state text DEFAULT 'new');
--@ cluster: SELECT create_distributed_table('queued', 'id')
INSERT INTO queued SELECT FROM generate_series(1, 9);
SELECT count(*), min(id), max(id), min(state) FROM queued;
DROP TABLE queued;
DROP TABLE rates_of, sales, seen, empty_of;
