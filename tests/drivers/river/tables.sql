CREATE TABLE plan (name text PRIMARY KEY, price bigint NOT NULL);
INSERT INTO plan VALUES ('free', 0), ('größer', 4950);
CREATE TABLE tenant (id bigint PRIMARY KEY, plan text NOT NULL REFERENCES plan);
INSERT INTO tenant SELECT n, CASE n % 2 WHEN 0 THEN 'free' ELSE 'größer' END FROM generate_series(1, 4) n;
CREATE TABLE account (
    tenant_id bigint NOT NULL REFERENCES tenant,
    id bigint NOT NULL,
    balance bigint NOT NULL DEFAULT 0 CHECK (balance > -100000),
    PRIMARY KEY (tenant_id, id)
);
INSERT INTO account (tenant_id, id) SELECT t.id, n FROM tenant t, generate_series(1, 3) n;
CREATE TABLE entry (
    tenant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    job bigint NOT NULL,
    amount bigint NOT NULL,
    PRIMARY KEY (tenant_id, job),
    FOREIGN KEY (tenant_id, account_id) REFERENCES account (tenant_id, id)
);
