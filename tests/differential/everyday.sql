-- What applications send all day: one row by its key, a page of a tenant's rows, a few keys, small aggregates, rows with keys
-- that the database makes, local and reference tables, short transactions.
CREATE TABLE tenant (id int PRIMARY KEY, name text, plan text DEFAULT 'free');
CREATE TABLE country (code int PRIMARY KEY, name text);
CREATE TABLE orders (tenant int NOT NULL, id bigserial, customer int, status text DEFAULT 'new', total numeric DEFAULT 0,
    data jsonb DEFAULT '{}', created timestamptz DEFAULT now(), PRIMARY KEY (tenant, id));
CREATE TABLE items (tenant int, order_id bigint, n int, sku text, price numeric, PRIMARY KEY (tenant, order_id, n));
CREATE TABLE audit (id bigserial PRIMARY KEY, what text, at timestamptz DEFAULT now());
--@ cluster: SELECT create_distributed_table('tenant', 'id'), create_distributed_table('orders', 'tenant', colocate_with => 'tenant'), create_distributed_table('items', 'tenant', colocate_with => 'tenant')
--@ cluster: SELECT create_reference_table('country')
INSERT INTO tenant SELECT g, 't' || g FROM generate_series(1, 60) g;
INSERT INTO country SELECT g, 'c' || g FROM generate_series(1, 20) g;
INSERT INTO audit (what) SELECT 'x' FROM generate_series(1, 50);
INSERT INTO orders (tenant, customer, total, data, created) SELECT g % 60 + 1, g % 20 + 1, g, jsonb_build_object('a', g % 10), timestamptz '2026-01-01 00:00Z' + g * interval '1 min' FROM generate_series(1, 600) g;
INSERT INTO items SELECT tenant, id, n, 's' || n, n FROM orders, generate_series(1, 2) n;
CREATE INDEX ON orders (tenant, created);
CREATE INDEX ON orders (customer);
--@ params: 7
--@ params: 61
SELECT * FROM tenant WHERE id = $1;
--@ ordered
--@ params: 7
SELECT * FROM orders WHERE tenant = $1 ORDER BY created DESC LIMIT 20;
--@ params: 7
SELECT exists(SELECT 1 FROM orders WHERE tenant = $1 AND customer = 5);
--@ params: 9
SELECT o.id, i.sku FROM orders o JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id WHERE o.tenant = $1;
--@ params: 9
SELECT * FROM tenant WHERE id = $1 FOR UPDATE;
--@ params: 9
SELECT data->>'a', count(*) FROM orders WHERE tenant = $1 GROUP BY 1;
--@ params: 3, 44
SELECT * FROM tenant WHERE id IN ($1, $2);
--@ params: 44
SELECT * FROM tenant WHERE id = ANY(array[1, 2, 3, 4, 5, 6, 7, 8, 9, $1]::int[]);
--@ types: 1007
--@ params: '{1,5,59,70}'
SELECT * FROM tenant WHERE id = ANY($1);
--@ params: 8
SELECT * FROM tenant WHERE id = $1 AND name <> current_user;
--@ ordered
SELECT * FROM orders ORDER BY created DESC LIMIT 10;
SELECT count(*) FROM tenant;
SELECT status, count(*), sum(total), avg(total), min(created), max(created) FROM orders GROUP BY status;
--@ params: 5
SELECT * FROM country WHERE code = $1;
--@ params: 5
SELECT id, what FROM audit WHERE id = $1;
SELECT 1;
SELECT now() = now();
--@ params: 4, 5
INSERT INTO items VALUES ($1, $2, 900, 'x', 1) ON CONFLICT DO NOTHING;
--@ params: 4, 5
INSERT INTO orders (tenant, customer) VALUES ($1, $2);
--@ params: 4, 5
INSERT INTO orders (tenant, customer) VALUES ($1, $2) RETURNING id;
--@ params: 4, 5
INSERT INTO orders (tenant, customer, total, data, created) VALUES ($1, $2, 5, '{"a":1}', '2026-02-02') RETURNING *;
--@ params: 6, 7
INSERT INTO items SELECT $1, $2, 901, 'y', 2 ON CONFLICT DO NOTHING;
INSERT INTO audit (what) VALUES ('z');
--@ params: 11
UPDATE tenant SET name = 'n' WHERE id = $1;
--@ params: 11
UPDATE orders SET created = '2026-03-03' WHERE tenant = $1 AND id = 10;
--@ params: 12
DELETE FROM items WHERE tenant = $1 AND order_id = 11;
BEGIN;
SELECT * FROM tenant WHERE id = 15;
--@ ordered
SELECT * FROM orders WHERE tenant = 15 ORDER BY id LIMIT 1;
COMMIT;
BEGIN;
SELECT * FROM tenant WHERE id = 15 FOR UPDATE;
UPDATE tenant SET name = 'b' WHERE id = 15;
COMMIT;
BEGIN;
UPDATE tenant SET name = 'd' WHERE id = 15;
UPDATE tenant SET name = 'd' WHERE id = 33;
COMMIT;
BEGIN;
SET LOCAL statement_timeout = '50s';
SELECT * FROM tenant WHERE id = 33;
COMMIT;
SELECT count(*), count(DISTINCT name), sum(id) FROM tenant;
SELECT count(*), max(id), sum(total), count(DISTINCT created) FROM orders;
SELECT count(*), sum(n) FROM items;
SELECT count(*), max(id) FROM audit;
