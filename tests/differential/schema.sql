-- The tables that most files of the corpus use. Rows come from formulas, so that they are the same everywhere; there
-- are NULLs, duplicates and rows without a partner on both sides of every join.

CREATE TABLE regions (code char(2) PRIMARY KEY, name text NOT NULL, tax numeric(4,2));
INSERT INTO regions VALUES ('de', 'Germany', 19), ('fr', 'France', 20), ('nl', 'Netherlands', 21), ('jp', 'Japan', 10), ('xx', 'Nowhere', NULL);

CREATE TABLE products (id int PRIMARY KEY, name varchar(40) NOT NULL, price numeric(10,2) NOT NULL CHECK (price >= 0), weight real, discontinued bool NOT NULL DEFAULT false);
INSERT INTO products SELECT i, 'product ' || i, (i * 7.35)::numeric(10,2), i / 4.0, i % 5 = 0 FROM generate_series(1, 14) i;

CREATE TABLE users (id bigint PRIMARY KEY, name text, country char(2), score numeric(10,2), active bool NOT NULL DEFAULT true, born date, tags text[], created timestamptz NOT NULL, meta jsonb);
INSERT INTO users
  SELECT i, CASE WHEN i % 11 = 0 THEN NULL ELSE 'user ' || (i % 25) END, (ARRAY['de','fr','nl','jp',NULL,'zz'])[1 + i % 6],
         CASE WHEN i % 7 = 0 THEN NULL ELSE (i * 37 % 1000) / 10.0 END, i % 4 <> 0, date '1960-01-01' + i * 211,
         CASE WHEN i % 3 = 0 THEN NULL ELSE ARRAY['t' || i % 5, 't' || i % 2] END,
         timestamptz '2020-01-01 00:00:00+00' + i * interval '37 hours', jsonb_build_object('level', i % 4, 'lang', CASE WHEN i % 2 = 0 THEN 'en' END)
  FROM generate_series(1, 60) i;

CREATE TABLE orders (user_id bigint NOT NULL, id int NOT NULL, placed date NOT NULL, status varchar(12) NOT NULL DEFAULT 'new', total numeric(12,2), note text, PRIMARY KEY (user_id, id));
INSERT INTO orders
  SELECT u, u * 10 + n, date '2021-01-01' + (u * 13 + n * 5) % 400, (ARRAY['new','paid','sent','back'])[1 + (u + n) % 4],
         CASE WHEN (u + n) % 9 = 0 THEN NULL ELSE ((u * 101 + n * 17) % 5000) / 4.0 END, CASE WHEN n = 2 THEN 'second of ' || u END
  FROM generate_series(1, 56) u, generate_series(1, 4) n WHERE n <= u % 5;

CREATE TABLE items (user_id bigint NOT NULL, order_id int NOT NULL, line smallint NOT NULL, product_id int, qty int NOT NULL, price numeric(10,2) NOT NULL, PRIMARY KEY (user_id, order_id, line));
INSERT INTO items
  SELECT o.user_id, o.id, l, CASE WHEN (o.id + l) % 13 = 0 THEN NULL ELSE 1 + (o.id * 3 + l) % 12 END, 1 + (o.id + l) % 4, (1 + (o.id * l) % 90) * 1.05
  FROM orders o, generate_series(1, 3) l WHERE l <= 1 + o.id % 3;

-- No primary key: duplicates and NULL keys.
CREATE TABLE clicks (user_id bigint, url text, ms int, at timestamp(0));
INSERT INTO clicks
  SELECT CASE WHEN i % 10 = 0 THEN NULL ELSE 1 + i * 7 % 70 END, '/p/' || i % 6, CASE WHEN i % 8 = 0 THEN NULL ELSE i * 31 % 500 END, timestamp '2022-03-01 12:00:00' + i * interval '1 minute'
  FROM generate_series(1, 150) i;
INSERT INTO clicks SELECT * FROM clicks WHERE ms < 40;

-- A text key; not colocated with the tables above.
CREATE TABLE events (kind text, id int NOT NULL, value float8, amount numeric, took interval, ip inet, payload jsonb);
INSERT INTO events
  SELECT CASE WHEN i % 17 = 0 THEN NULL ELSE 'kind-' || i % 13 END, i, i / 8.0, (i % 29) * 1.1, make_interval(mins => i % 90, days => i % 3), ('10.0.' || i % 4 || '.' || i)::inet, jsonb_build_object('n', i % 6)
  FROM generate_series(1, 200) i;

-- An int key of the same shard count: colocated with nothing by type, joined with users on another column.
CREATE TABLE friends (id int PRIMARY KEY, a bigint NOT NULL, b bigint NOT NULL, since date);
INSERT INTO friends SELECT i, 1 + i * 5 % 64, 1 + i * 11 % 64, date '2019-05-05' + i FROM generate_series(1, 80) i;

-- Local to the coordinator.
CREATE TABLE local_notes (id serial PRIMARY KEY, user_id bigint, body text, stars smallint);
INSERT INTO local_notes (user_id, body, stars) SELECT CASE WHEN i % 5 = 0 THEN NULL ELSE i * 3 END, 'note ' || i, i % 6 FROM generate_series(1, 24) i;

--@ cluster: SELECT create_reference_table('regions')
--@ cluster: SELECT create_reference_table('products')
--@ cluster: SELECT create_distributed_table('users', 'id')
--@ cluster: SELECT create_distributed_table('orders', 'user_id', colocate_with => 'users')
--@ cluster: SELECT create_distributed_table('items', 'user_id', colocate_with => 'users')
--@ cluster: SELECT create_distributed_table('clicks', 'user_id', colocate_with => 'users')
--@ cluster: SELECT create_distributed_table('events', 'kind')
--@ cluster: SELECT create_distributed_table('friends', 'id')

ALTER TABLE orders ADD CONSTRAINT orders_user_id_fkey FOREIGN KEY (user_id) REFERENCES users (id);
ALTER TABLE items ADD CONSTRAINT items_order_fkey FOREIGN KEY (user_id, order_id) REFERENCES orders (user_id, id) ON DELETE CASCADE;
ALTER TABLE items ADD CONSTRAINT items_product_id_fkey FOREIGN KEY (product_id) REFERENCES products (id);
CREATE INDEX orders_placed_idx ON orders (placed);
CREATE VIEW order_totals AS SELECT user_id, count(*) AS orders, sum(total) AS total FROM orders GROUP BY user_id;
