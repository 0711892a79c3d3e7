-- What only a worker needs, after common.sql and describe.sql.

-- Tables that were distributed before there was pgherd_<shard>.as_owner().
DO $$
DECLARE
    shard record;
BEGIN
    FOR shard IN
        SELECT DISTINCT ON (h.inhparent) substr(n.nspname, 8)::bigint AS id, pg_catalog.pg_get_userbyid(n.nspowner)::text AS owner,
            bool_or(EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid AND p.proname = 'as_owner'))
                OVER (PARTITION BY h.inhparent) AS done
        FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p')
            JOIN pg_catalog.pg_inherits h ON h.inhrelid = c.oid
        WHERE n.nspname ~ '^pgherd_[0-9]+$'
        ORDER BY h.inhparent, id
    LOOP
        IF NOT shard.done THEN
            PERFORM pgherd.create_as_owner(shard.id, shard.owner);
        END IF;
    END LOOP;
END
$$;

GRANT EXECUTE ON FUNCTION pgherd.check_pass(text, text, text), pgherd.table_rights(text, text) TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA pgherd TO PUBLIC;
REVOKE SELECT ON pgherd.secret FROM PUBLIC;
INSERT INTO pgherd.schema_version (version) VALUES (4) ON CONFLICT DO NOTHING;

-- Cursors ------------------------------------------------------------------------------------------------------------

-- See create_as_owner.
CREATE OR REPLACE FUNCTION pgherd.guard_as_owner() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        AND EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
            JOIN pg_namespace n ON n.oid = p.pronamespace OR d.classid = 'pg_namespace'::regclass AND n.oid = d.objid
            WHERE n.nspname ~ '^pgherd_[0-9]+$' AND (p.proname = 'as_owner' OR p.oid IS NULL)) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'schemas of shards and what the router keeps in them cannot be changed';
    END IF;
END
$$;
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger WHERE evtname = 'pgherd_as_owner') THEN
        CREATE EVENT TRIGGER pgherd_as_owner ON ddl_command_end EXECUTE FUNCTION pgherd.guard_as_owner();
    END IF;
END
$$;

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
