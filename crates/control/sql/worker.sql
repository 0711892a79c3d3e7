-- What only a worker needs, after common.sql and describe.sql.

GRANT SELECT ON ALL TABLES IN SCHEMA pgherd TO PUBLIC;
INSERT INTO pgherd.schema_version (version) VALUES (1) ON CONFLICT DO NOTHING;
