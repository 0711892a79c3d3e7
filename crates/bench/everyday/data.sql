INSERT INTO tenant SELECT g, 't' || g FROM generate_series(1, 2000) g;
INSERT INTO country SELECT g, 'c' || g FROM generate_series(1, 200) g;
INSERT INTO audit (what) SELECT 'x' FROM generate_series(1, 10000);
INSERT INTO job SELECT g FROM generate_series(1, 10000) g;
INSERT INTO setting SELECT 's' || g, g::text FROM generate_series(1, 200) g;
INSERT INTO orders (tenant, customer, total, data)
    SELECT g % 2000 + 1, g % 200 + 1, g, jsonb_build_object('a', g % 10) FROM generate_series(1, 100000) g;
INSERT INTO items SELECT tenant, id, n, 's' || n, n FROM orders, generate_series(1, 2) n;
INSERT INTO userinfo SELECT g, 'u' || g, 'u' || g || '@example.org' FROM generate_series(1, 2000) g;
INSERT INTO session SELECT g FROM generate_series(1, 2000) g;
CREATE INDEX ON orders (tenant, created);
CREATE INDEX ON orders (customer);
CREATE INDEX ON login_log (userid);
