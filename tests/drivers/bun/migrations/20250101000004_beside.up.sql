CREATE INDEX CONCURRENTLY IF NOT EXISTS account_short_name ON account (tenant_id, lower(short_name))

--bun:split

ALTER TYPE state ADD VALUE IF NOT EXISTS 'lost'

--bun:split

DROP INDEX CONCURRENTLY orders_tags
