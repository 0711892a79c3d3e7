DROP VIEW spent;
DROP FUNCTION discount;
ALTER TABLE orders DROP COLUMN discount, DROP COLUMN remark, DROP CONSTRAINT orders_cents_check;
