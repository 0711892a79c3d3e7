-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS account_short_name ON account (tenant_id, lower(short_name));
CREATE UNIQUE INDEX CONCURRENTLY invoice_order ON invoice (tenant_id, order_id);
ALTER TYPE order_state ADD VALUE IF NOT EXISTS 'lost' AFTER 'sent';
ALTER TABLE orders ADD CONSTRAINT orders_total CHECK (total >= 0) NOT VALID;
ALTER TABLE orders VALIDATE CONSTRAINT orders_total;
VACUUM (ANALYZE) account;

-- +goose Down
ALTER TABLE orders DROP CONSTRAINT orders_total;
DROP INDEX CONCURRENTLY invoice_order;
DROP INDEX CONCURRENTLY IF EXISTS account_short_name;
