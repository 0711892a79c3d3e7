CREATE INDEX CONCURRENTLY orders_tags ON orders USING gin (tags)

--bun:split

DROP INDEX CONCURRENTLY account_short_name
