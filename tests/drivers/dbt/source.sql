-- What the application has.
CREATE SCHEMA shop;
CREATE TYPE shop.state AS ENUM ('new', 'paid', 'closed');
CREATE TABLE shop.tenant (
    id bigint PRIMARY KEY, name text NOT NULL, country char(2) NOT NULL, changed timestamp NOT NULL
);
CREATE TABLE shop.account (
    tenant_id bigint, id bigint, mail text NOT NULL, balance numeric(12, 2) NOT NULL, state shop.state NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE TABLE shop.event (
    tenant_id bigint, id bigint, account bigint NOT NULL, at timestamptz NOT NULL, body jsonb NOT NULL,
    tags text[] NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
INSERT INTO shop.tenant
SELECT n, 'tenant ' || n, CASE WHEN n % 2 = 0 THEN 'de' ELSE 'pe' END, '2025-03-04' FROM generate_series(1, 8) n;
INSERT INTO shop.account
SELECT t, n, n || '@' || t, n * t / 4.0, (enum_range(NULL::shop.state))[1 + n % 3]
FROM generate_series(1, 8) t, generate_series(1, 5) n;
INSERT INTO shop.event
SELECT t, n, 1 + n % 5, '2025-03-04 00:00Z'::timestamptz + n * interval '5 hours',
    jsonb_build_object('price', n * t, 'of', t), (ARRAY['a', 'é', 'b'])[1 : 1 + n % 3]
FROM generate_series(1, 8) t, generate_series(1, 30) n;
