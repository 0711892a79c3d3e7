CREATE OR REPLACE VIEW spent AS
    SELECT t.plan, o.state, count(*) AS orders, sum(worth(o.total, o.tags)) AS total
    FROM orders o JOIN tenant t ON t.id = o.tenant_id GROUP BY 1, 2;

DROP MATERIALIZED VIEW IF EXISTS per_plan;
CREATE MATERIALIZED VIEW per_plan AS
    SELECT p.name, count(t.id) AS tenants FROM plan p LEFT JOIN tenant t ON t.plan = p.name GROUP BY 1;
CREATE UNIQUE INDEX per_plan_name ON per_plan (name);
