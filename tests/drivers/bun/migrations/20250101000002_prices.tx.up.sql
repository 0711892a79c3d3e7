ALTER TABLE orders ADD COLUMN note text NOT NULL DEFAULT 'none', ADD CHECK (cents >= 0);

--bun:split

ALTER TABLE orders RENAME COLUMN note TO remark;

--bun:split

CREATE FUNCTION discount(cents bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT cents / 10; $$;
ALTER TABLE orders ADD COLUMN discount bigint GENERATED ALWAYS AS (cents / 10) STORED;
CREATE VIEW spent AS
    SELECT t.plan_name, count(*) AS orders, sum(discount(o.cents)) AS discounts
    FROM orders o JOIN tenant t ON t.id = o.tenant_id GROUP BY 1;
