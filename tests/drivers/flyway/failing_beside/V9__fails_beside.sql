CREATE UNIQUE INDEX CONCURRENTLY account_first ON account (tenant_id) WHERE tenant_id = 1;
