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

-- Early versions had the rules of distributed and reference tables here; the coordinator runs what they make of a statement.
DO $$
DECLARE
    early record;
BEGIN
    IF (SELECT max(version) FROM pgherd.schema_version) < 8 AND pg_catalog.to_regclass('pgherd.pg_dist_partition') IS NULL THEN
        FOR early IN SELECT r.rulename, c.oid::pg_catalog.regclass AS relation
            FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
            WHERE c.relkind IN ('r', 'p') AND r.oid >= 16384
        LOOP
            EXECUTE pg_catalog.format('DROP RULE %I ON %s', early.rulename, early.relation);
        END LOOP;
    END IF;
END
$$;

-- A router changes rows of a table whose rules and triggers the coordinator has, and does not know of them yet.
CREATE OR REPLACE FUNCTION pgherd.refuse_stale() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'PH002', MESSAGE = format('definitions of table "%s" have changed', TG_TABLE_NAME),
        HINT = 'Repeat the transaction.';
END
$$;

-- What a SECURITY DEFINER function of another role has defined on the coordinator is followed as that role, under the path that
-- the function had. SET ROLE would ask for the session's own rights; so it is a function of the definer's, for as long as
-- this one runs. Nobody else may call that.
CREATE OR REPLACE FUNCTION pgherd.as_definer(definer text, path text, query text, returns_rows bool, pass text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET pgherd.definer = '' SET pgherd.inside = '' AS $$
DECLARE
    lent text := format('pgherd.lent_%s', pg_backend_pid());
BEGIN
    PERFORM pgherd.check_pass(pass, concat_ws(E'\n', 'as definer', path, returns_rows, query), definer);
    EXECUTE format($f$
        CREATE OR REPLACE FUNCTION %s(path text, query text, returns_rows bool) RETURNS SETOF text
        LANGUAGE plpgsql SECURITY DEFINER AS $b$
        DECLARE
            found pg_catalog.record;
        BEGIN
            PERFORM pg_catalog.set_config('search_path', path, true);
            IF returns_rows THEN
                FOR found IN EXECUTE query LOOP
                    RETURN NEXT found::pg_catalog.text;
                END LOOP;
            ELSE
                EXECUTE query;
            END IF;
        END
        $b$ $f$, lent);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s(text, text, bool) FROM PUBLIC', lent);
    EXECUTE format('ALTER FUNCTION %s(text, text, bool) OWNER TO %I', lent, definer);
    PERFORM set_config('pgherd.inside', pgherd.make_pass('definition ' || pg_current_xact_id(), definer), true),
        set_config('pgherd.definer', definer, true);
    RETURN QUERY EXECUTE format('SELECT %s($1, $2, $3)', lent) USING path, query, returns_rows;
    EXECUTE format('DROP FUNCTION %s(text, text, bool)', lent);
END
$$;

-- Roles that differ between two answers of pgherd.roles_now() on the coordinator, and those made before (seen) that may be gone
-- again: they become what they are now. Gives the names of roles that were made. Of no others is anything changed.
CREATE OR REPLACE FUNCTION pgherd.follow_roles(before text, now text, seen text, pass text) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    old_roles jsonb := before;
    new_roles jsonb := now;
    changed record;
    part record;
    me oid;
    there jsonb;
BEGIN
    PERFORM pgherd.check_pass(pass, concat_ws(E'\n', 'follow roles', before, now, seen), '');
    FOR changed IN
        SELECT o.value->>'name' AS old_name, n.value->>'name' AS new_name
        FROM jsonb_each(old_roles) o JOIN jsonb_each(new_roles) n USING (key) WHERE o.value->>'name' <> n.value->>'name'
    LOOP
        IF EXISTS (SELECT FROM pg_authid r WHERE r.rolname = changed.old_name)
            AND NOT EXISTS (SELECT FROM pg_authid r WHERE r.rolname = changed.new_name) THEN
            EXECUTE format('ALTER ROLE %I RENAME TO %I', changed.old_name, changed.new_name);
        END IF;
    END LOOP;
    FOR changed IN
        SELECT r.rolname FROM pg_authid r
        WHERE r.rolname IN (SELECT o.value->>'name' FROM jsonb_each(old_roles) o UNION SELECT unnest(seen::text[]))
            AND r.rolname NOT IN (SELECT n.value->>'name' FROM jsonb_each(new_roles) n WHERE n.key <> '0')
    LOOP
        -- It has none left on the coordinator.
        EXECUTE format('REVOKE ALL ON DATABASE %I FROM %I CASCADE', current_database(), changed.rolname);
        EXECUTE format('DROP ROLE %I', changed.rolname);
    END LOOP;
    FOR changed IN
        SELECT n.key, n.value->>'name' AS name, n.value AS role FROM jsonb_each(new_roles) n LEFT JOIN jsonb_each(old_roles) o USING (key)
        WHERE n.key <> '0' AND (n.value IS DISTINCT FROM o.value OR n.value->>'name' = ANY (seen::text[])) AND n.value->>'name' !~ '^pg_'
    LOOP
        IF NOT EXISTS (SELECT FROM pg_authid r WHERE r.rolname = changed.name) THEN
            EXECUTE format('CREATE ROLE %I', changed.name);
            RETURN NEXT changed.name;
        END IF;
        EXECUTE format('ALTER ROLE %I %s', changed.name, changed.role->>'options');
        IF changed.role ? 'password' THEN
            UPDATE pg_authid r SET rolpassword = changed.role->>'password'
                WHERE r.rolname = changed.name AND r.rolpassword IS DISTINCT FROM changed.role->>'password';
        END IF;
        UPDATE pg_authid r SET rolvaliduntil = (changed.role->>'until')::timestamptz
            WHERE r.rolname = changed.name AND r.rolvaliduntil IS DISTINCT FROM (changed.role->>'until')::timestamptz;
    END LOOP;
    FOR changed IN
        SELECT n.value->>'name' AS name, n.key, n.value AS role FROM jsonb_each(new_roles) n LEFT JOIN jsonb_each(old_roles) o USING (key)
        WHERE n.value IS DISTINCT FROM o.value OR n.value->>'name' = ANY (seen::text[])
    LOOP
        SELECT coalesce((SELECT r.oid FROM pg_authid r WHERE r.rolname = changed.name), 0) INTO me;
        FOR part IN
            SELECT g.rolname FROM pg_auth_members m JOIN pg_authid g ON g.oid = m.roleid WHERE m.member = me
                AND NOT EXISTS (SELECT FROM jsonb_array_elements(changed.role->'of') w WHERE w->>'role' = g.rolname)
        LOOP
            EXECUTE format('REVOKE %I FROM %I', part.rolname, changed.name);
        END LOOP;
        FOR part IN
            SELECT w->>'role' AS role, bool_or((w->>'admin_option')::bool) AS admin, bool_or((w->>'inherit_option')::bool) AS inherit,
                bool_or((w->>'set_option')::bool) AS set
            FROM jsonb_array_elements(changed.role->'of') w GROUP BY 1
        LOOP
            IF NOT part.admin AND EXISTS (SELECT FROM pg_auth_members m JOIN pg_authid g ON g.oid = m.roleid
                    WHERE m.member = me AND g.rolname = part.role AND m.admin_option) THEN
                EXECUTE format('REVOKE ADMIN OPTION FOR %I FROM %I', part.role, changed.name);
            END IF;
            EXECUTE format('GRANT %I TO %I', part.role, changed.name) || CASE
                WHEN part.inherit IS NOT NULL THEN format(' WITH ADMIN %s, INHERIT %s, SET %s', part.admin::text, part.inherit::text,
                    part.set::text)
                WHEN part.admin THEN ' WITH ADMIN OPTION' ELSE '' END;
        END LOOP;
        SELECT coalesce(jsonb_agg(jsonb_build_object('here', s.setdatabase <> 0, 'config', to_jsonb(s.setconfig))
                ORDER BY s.setdatabase <> 0), '[]') INTO there
            FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase
            WHERE s.setrole = me AND (s.setdatabase = 0 OR d.datname = current_database());
        IF there <> changed.role->'settings' THEN
            DELETE FROM pg_db_role_setting s USING pg_database d
                WHERE s.setrole = me AND d.datname = current_database() AND s.setdatabase IN (0, d.oid);
            INSERT INTO pg_db_role_setting (setdatabase, setrole, setconfig)
                SELECT CASE WHEN (w->>'here')::bool THEN d.oid ELSE 0 END, me, ARRAY(SELECT jsonb_array_elements_text(w->'config'))
                FROM jsonb_array_elements(changed.role->'settings') w, pg_database d WHERE d.datname = current_database();
        END IF;
        IF changed.key = '0' AND changed.role->'database' IS DISTINCT FROM old_roles->'0'->'database' THEN
            EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), changed.role->'database'->>'owner');
            FOR part IN
                SELECT CASE x.e->>0 WHEN '' THEN 'PUBLIC' ELSE quote_ident(x.e->>0) END AS grantee, x.e->>1 AS privilege,
                    (x.e->>2)::bool AS grantable, x.given
                FROM (SELECT e, false AS given FROM jsonb_array_elements(old_roles->'0'->'database'->'acl') e
                    UNION ALL SELECT e, true FROM jsonb_array_elements(changed.role->'database'->'acl') e) x
                GROUP BY x.e, x.given HAVING NOT (CASE WHEN x.given THEN old_roles->'0' ELSE changed.role END->'database'->'acl')
                    @> jsonb_build_array(x.e)
                ORDER BY x.given
            LOOP
                CONTINUE WHEN NOT part.given AND part.grantee <> 'PUBLIC'
                    AND NOT EXISTS (SELECT FROM pg_authid r WHERE quote_ident(r.rolname) = part.grantee);
                EXECUTE CASE WHEN part.given THEN format('GRANT %s ON DATABASE %I TO %s%s', part.privilege, current_database(),
                        part.grantee, CASE WHEN part.grantable THEN ' WITH GRANT OPTION' ELSE '' END)
                    ELSE format('REVOKE %s ON DATABASE %I FROM %s CASCADE', part.privilege, current_database(), part.grantee) END;
            END LOOP;
        END IF;
    END LOOP;
END
$$;

-- Roles have the verifiers of the coordinator, where those differ between two answers of pgherd.roles_now() there.
CREATE OR REPLACE FUNCTION pgherd.follow_passwords(before text, now text, pass text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.check_pass(pass, concat_ws(E'\n', 'follow passwords', before, now), '');
    UPDATE pg_authid r SET rolpassword = n.value->>'password'
        FROM jsonb_each(now::jsonb) n LEFT JOIN jsonb_each(before::jsonb) o USING (key)
        WHERE n.key <> '0' AND r.rolname = n.value->>'name' AND r.rolname !~ '^pg_'
            AND n.value->'password' IS DISTINCT FROM o.value->'password';
END
$$;

GRANT EXECUTE ON FUNCTION pgherd.check_pass(text, text, text), pgherd.table_rights(text, text) TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA pgherd TO PUBLIC;
REVOKE SELECT ON pgherd.secret, pgherd.placement_epoch FROM PUBLIC;
INSERT INTO pgherd.schema_version (version) VALUES (33) ON CONFLICT DO NOTHING;

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
