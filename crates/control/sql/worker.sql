-- What only a worker needs, after common.sql and describe.sql.

GRANT SELECT ON ALL TABLES IN SCHEMA pgherd TO PUBLIC;
INSERT INTO pgherd.schema_version (version) VALUES (1) ON CONFLICT DO NOTHING;

-- Cursors ------------------------------------------------------------------------------------------------------------

-- A cursor over this function keeps the moment at which it was declared: being STABLE, the function opens others under
-- the snapshot of the statement that calls it. See snapshots.rs of the router.
CREATE OR REPLACE FUNCTION pgherd.open_cursor() RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    opened pg_catalog.refcursor := pg_catalog.current_setting('pgherd.cursor_name');
BEGIN
    OPEN opened FOR EXECUTE pg_catalog.current_setting('pgherd.cursor_query');
END
$$;
