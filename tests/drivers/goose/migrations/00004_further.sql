-- +goose Up
ALTER TABLE account ADD COLUMN nick text, ADD COLUMN seen timestamptz;
UPDATE account SET nick = split_part(mail, '@', 1);
ALTER TABLE account ALTER COLUMN nick SET NOT NULL;
ALTER TABLE account RENAME COLUMN nick TO short_name;
ALTER TABLE account ALTER COLUMN balance TYPE numeric(20, 4), ADD CONSTRAINT account_balance CHECK (balance > -100);
DROP VIEW spent;
ALTER TABLE orders ADD COLUMN total_cents bigint GENERATED ALWAYS AS ((total * 100)::bigint) STORED;
CREATE OR REPLACE VIEW spent AS
    SELECT t.plan, o.state, count(*) AS orders, sum(o.total_cents) AS cents
    FROM orders o JOIN tenant t ON t.id = o.tenant_id GROUP BY 1, 2;
CREATE TABLE event_2030 PARTITION OF event FOR VALUES FROM ('2030-01-01') TO ('2031-01-01');
CREATE INDEX event_body ON event USING gin (body jsonb_path_ops);
CREATE TABLE invoice (
    tenant_id bigint NOT NULL,
    number int NOT NULL,
    order_id bigint,
    due daterange NOT NULL,
    PRIMARY KEY (tenant_id, number)
);
INSERT INTO plan (name, price) VALUES ('huge', 500) ON CONFLICT (name) DO UPDATE SET price = excluded.price;
ALTER TABLE tenant DROP CONSTRAINT tenant_plan_fkey,
    ADD FOREIGN KEY (plan) REFERENCES plan ON UPDATE CASCADE;
ALTER TABLE account DROP CONSTRAINT account_tenant_id_fkey,
    ADD CONSTRAINT account_tenant FOREIGN KEY (tenant_id) REFERENCES tenant ON DELETE CASCADE;
UPDATE plan SET name = 'none' WHERE name = 'free';
ALTER TABLE tenant ALTER COLUMN plan SET DEFAULT 'none';

-- +goose StatementBegin
DO $$
DECLARE
    t record;
BEGIN
    IF to_regproc('create_distributed_table') IS NOT NULL THEN
        PERFORM create_distributed_table('invoice', 'tenant_id');
    END IF;
    FOR t IN SELECT tenant_id, count(*) AS orders FROM orders GROUP BY 1 LOOP
        UPDATE tenant SET settings = settings || jsonb_build_object('orders', t.orders) WHERE id = t.tenant_id;
    END LOOP;
END;
$$;
-- +goose StatementEnd
ALTER TABLE invoice ADD FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id);

-- +goose Down
DROP TABLE invoice, event_2030;
DROP INDEX event_body;
DROP VIEW spent;
ALTER TABLE orders DROP COLUMN total_cents;
CREATE VIEW spent AS
    SELECT t.plan, o.tenant_id, o.state, count(*) AS orders, sum(o.total) AS total
    FROM orders o JOIN tenant t ON t.id = o.tenant_id GROUP BY 1, 2, 3;
ALTER TABLE account DROP CONSTRAINT account_tenant, ADD FOREIGN KEY (tenant_id) REFERENCES tenant;
ALTER TABLE account DROP CONSTRAINT account_balance, ALTER COLUMN balance TYPE numeric(12, 2);
ALTER TABLE account DROP COLUMN short_name, DROP COLUMN seen;
UPDATE plan SET name = 'free' WHERE name = 'none';
DELETE FROM plan WHERE name = 'huge';
ALTER TABLE tenant DROP CONSTRAINT tenant_plan_fkey, ADD FOREIGN KEY (plan) REFERENCES plan;
ALTER TABLE tenant ALTER COLUMN plan SET DEFAULT 'free';
