CREATE INDEX CONCURRENTLY account_lower ON account (tenant_id, lower(mail));
