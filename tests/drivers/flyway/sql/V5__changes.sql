ALTER TABLE account ADD COLUMN nick text, ADD COLUMN seen date;
UPDATE account SET nick = split_part(mail, '@', 1);
ALTER TABLE account ALTER COLUMN nick SET NOT NULL, ALTER COLUMN nick SET DEFAULT '${note}';
ALTER TABLE account RENAME COLUMN nick TO short_name;
ALTER TABLE account ADD CONSTRAINT account_name CHECK (short_name <> '') NOT VALID;
ALTER TABLE account VALIDATE CONSTRAINT account_name;
ALTER TABLE tenant ALTER COLUMN name TYPE varchar(120);
ALTER INDEX orders_open RENAME TO orders_not_sent;
ALTER TABLE tenant DROP COLUMN settings;

CREATE TABLE invoice (
    tenant_id bigint NOT NULL REFERENCES tenant,
    number int GENERATED ALWAYS AS IDENTITY,
    order_id bigint,
    total numeric(12, 2) NOT NULL,
    PRIMARY KEY (tenant_id, number),
    FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id)
);
DO $$
BEGIN
    IF to_regproc('create_distributed_table') IS NOT NULL THEN
        PERFORM create_distributed_table('invoice', 'tenant_id');
    END IF;
END;
$$;
INSERT INTO invoice (tenant_id, order_id, total)
    SELECT tenant_id, id, worth(total, tags) FROM orders WHERE state = 'paid' ORDER BY tenant_id, id;
