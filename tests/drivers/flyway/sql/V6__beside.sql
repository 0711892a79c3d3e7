-- Flyway sees that these cannot run in a transaction.
CREATE INDEX CONCURRENTLY IF NOT EXISTS account_short_name ON account (tenant_id, lower(short_name));
DROP INDEX CONCURRENTLY orders_tags;
