-- What every node has, coordinator and worker alike: commit records (DESIGN section 5), the fence (section 1), shard
-- schemas, and the SQL side of table descriptions (describe.sql). Run as one batch (one implicit transaction) by the owner
-- of the database's objects, a superuser; safe to repeat; PostgreSQL 15 to 18.

DO $$
BEGIN
    -- Two programs that start at once run this one after the other; "already exists, skipping" is no news. Nobody else can
    -- hold a lock of this kind.
    LOCK TABLE pg_catalog.pg_event_trigger IN SHARE ROW EXCLUSIVE MODE;
    PERFORM pg_catalog.set_config('client_min_messages', 'warning', true);
END
$$;

CREATE SCHEMA IF NOT EXISTS pgherd;
GRANT USAGE ON SCHEMA pgherd TO PUBLIC;

CREATE TABLE IF NOT EXISTS pgherd.schema_version (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());

DO $$
DECLARE
    found int;
BEGIN
    SELECT max(version) INTO found FROM pgherd.schema_version;
    IF found > 33 THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('schema "pgherd" of this database has version %s, newer than this program''s version 33', found),
            HINT = 'Use the newer program.';
    END IF;
END
$$;

-- On the coordinator: triggers of distributed tables, which fire on the workers only, and their state as the user knows it
-- (pg_trigger.tgenabled).
CREATE TABLE IF NOT EXISTS pgherd.worker_trigger (trigger oid PRIMARY KEY, relation oid NOT NULL, enabled "char" NOT NULL);

-- On the coordinator: distributed tables whose triggers fire there (docs/decisions/0016).
CREATE TABLE IF NOT EXISTS pgherd.fires_here (relation oid PRIMARY KEY);

-- On the coordinator: partitions of users' distributed tables, which are partitioned further there so that they can have a
-- foreign child (docs/decisions/0012), and tables that were detached. Elsewhere empty, for describe.sql.
CREATE TABLE IF NOT EXISTS pgherd.leaf (relation oid PRIMARY KEY);
-- Storage parameters, of which what is partitioned can have none.
ALTER TABLE pgherd.leaf ADD COLUMN IF NOT EXISTS options text[], ADD COLUMN IF NOT EXISTS toast_options text[];

-- Commit records -----------------------------------------------------------------------------------------------------

-- decision: 'c' committed, 'a' aborted. The primary key arbitrates between a commit and whoever recovers its participants.
CREATE TABLE IF NOT EXISTS pgherd.commit_record (
    txid text PRIMARY KEY,
    decision "char" NOT NULL CHECK (decision IN ('c', 'a')),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    owner name NOT NULL DEFAULT session_user
);

-- Called by the decider in the transaction that is the decision. Fails where recovery has decided otherwise. The identifiers
-- of transactions are in everybody's sight (pg_prepared_xacts): the pass is the router's.
DROP FUNCTION IF EXISTS pgherd.record_commit(text);
CREATE OR REPLACE FUNCTION pgherd.record_commit(txid text, pass text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.check_pass(pass, 'commit ' || txid, '');
    -- The decision must be durable before anybody acts on it.
    PERFORM set_config('synchronous_commit', 'on', true);
    -- Waits for recovery's record in flight, as every insert of the same key does.
    INSERT INTO pgherd.commit_record (txid, decision) VALUES ($1, 'c')
        ON CONFLICT ON CONSTRAINT commit_record_pkey DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'PH003',
            MESSAGE = format('transaction %s was decided by recovery', $1),
            HINT = 'The transaction is rolled back on every node; run it again.';
    END IF;
END
$$;

-- True: the transaction is aborted for good. False: it has committed. Waits for a commit in flight.
CREATE OR REPLACE FUNCTION pgherd.record_abort(txid text) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found "char";
BEGIN
    INSERT INTO pgherd.commit_record (txid, decision) VALUES ($1, 'a')
        ON CONFLICT ON CONSTRAINT commit_record_pkey DO NOTHING;
    SELECT r.decision INTO STRICT found FROM pgherd.commit_record r WHERE r.txid = $1;
    RETURN found = 'a';
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.record_abort(text) FROM PUBLIC;

-- Called once every participant has heard of the decision. Only who wrote a record, or a superuser, forgets it.
CREATE OR REPLACE FUNCTION pgherd.forget_records(txids text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM pgherd.commit_record
    WHERE txid = ANY (txids)
        AND (owner = session_user OR (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user))
$$;

-- The fence ----------------------------------------------------------------------------------------------------------

CREATE TABLE IF NOT EXISTS pgherd.placement_epoch (colocationid int PRIMARY KEY, epoch bigint NOT NULL);

-- Sent in front of every scatter, in its transaction. A move locks the table of epochs exclusively while it changes one. (It
-- is no advisory lock, which any role can take, and on which no other role has rights.) Under REPEATABLE READ the row that the snapshot shows may be out of date; its xmax then names the mover
-- (which has ended, since the lock was granted), so that nothing has to be written to find out.
CREATE OR REPLACE FUNCTION pgherd.fence(colocation int, expected bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stored bigint;
    changed_by bigint;
    next_xid numeric;
    full_xid numeric;
BEGIN
    LOCK TABLE pgherd.placement_epoch IN ACCESS SHARE MODE;
    SELECT e.epoch, e.xmax::text::bigint INTO stored, changed_by
        FROM pgherd.placement_epoch e WHERE e.colocationid = colocation;
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        IF changed_by <> 0 THEN
            next_xid := pg_snapshot_xmax(pg_current_snapshot())::text::numeric;
            full_xid := div(next_xid, 4294967296) * 4294967296 + changed_by;
            -- The changer may be younger than the snapshot, but not by half the xid space.
            IF full_xid > next_xid + 2147483648 THEN
                full_xid := full_xid - 4294967296;
            ELSIF full_xid < next_xid - 2147483648 THEN
                full_xid := full_xid + 4294967296;
            END IF;
            IF pg_xact_status(full_xid::text::xid8) = 'aborted' THEN
                changed_by := 0;
            END IF;
        END IF;
        IF changed_by <> 0 OR stored IS NULL OR stored < expected THEN
            RAISE EXCEPTION USING ERRCODE = '40001',
                MESSAGE = 'could not serialize access due to concurrent move of shards',
                DETAIL = format('Placement of colocation group %s changed after the transaction''s snapshot was taken.', colocation),
                HINT = 'The transaction might succeed if retried.';
        END IF;
    END IF;
    IF stored IS DISTINCT FROM expected THEN
        RAISE EXCEPTION USING ERRCODE = 'PH002',
            MESSAGE = format('placement of colocation group %s changed', colocation),
            DETAIL = format('Expected epoch %s, found %s.', expected, coalesce(stored::text, 'none'));
    END IF;
END
$$;

-- Makes the group known here at the epoch every group starts with.
CREATE OR REPLACE FUNCTION pgherd.open_placement(colocation int) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO pgherd.placement_epoch VALUES (colocation, 1) ON CONFLICT (colocationid) DO NOTHING
$$;
REVOKE EXECUTE ON FUNCTION pgherd.open_placement(int) FROM PUBLIC;

-- For moves and for nodes that join: waits for every scatter in flight, then changes the epoch with its transaction.
CREATE OR REPLACE FUNCTION pgherd.change_placement(colocation int, new_epoch bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE pgherd.placement_epoch IN ACCESS EXCLUSIVE MODE;
    INSERT INTO pgherd.placement_epoch AS e VALUES (colocation, new_epoch)
        ON CONFLICT (colocationid) DO UPDATE SET epoch = excluded.epoch;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.change_placement(int, bigint) FROM PUBLIC;

-- Shard schemas ------------------------------------------------------------------------------------------------------

-- What the router knows of this server and no user does: it vouches with it for what pgherd_<shard>.as_owner() is given.
-- On the coordinator it is the password of callbacks.
CREATE TABLE IF NOT EXISTS pgherd.secret (secret text NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS secret_single_row ON pgherd.secret ((true));
REVOKE ALL ON pgherd.secret FROM PUBLIC;
-- Without a policy: not for pg_read_all_data either.
ALTER TABLE pgherd.secret ENABLE ROW LEVEL SECURITY;
INSERT INTO pgherd.secret VALUES (replace(pg_catalog.gen_random_uuid()::text || pg_catalog.gen_random_uuid()::text, '-', ''))
    ON CONFLICT DO NOTHING;

-- What vouches for a text in this very backend. Whoever does not know the secret cannot make it.
CREATE OR REPLACE FUNCTION pgherd.make_pass(query text, owner text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    known text;
    inner_hash text;
BEGIN
    SELECT s.secret INTO STRICT known FROM pgherd.secret s;
    inner_hash := encode(sha256(convert_to(concat_ws(E'\n', known, pg_backend_pid(), length(owner), owner, query), 'UTF8')), 'hex');
    RETURN encode(sha256(convert_to(concat_ws(E'\n', known, inner_hash), 'UTF8')), 'hex');
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.make_pass(text, text) FROM PUBLIC;

-- Fails unless the router has given this text for this role to this very backend. What a pass consists of is never told:
-- it goes to the server as a parameter, and nothing of the user's runs between.
CREATE OR REPLACE FUNCTION pgherd.check_pass(pass text, query text, owner text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pass IS DISTINCT FROM pgherd.make_pass(query, owner) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only the router may run this';
    END IF;
END
$$;

-- A call of one of our functions that only routers may call, which they make on the connection of whoever they serve. Gives
-- its value.
CREATE OR REPLACE FUNCTION pgherd.by_router(call text, pass text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    value text;
BEGIN
    PERFORM pgherd.check_pass(pass, E'by router\n' || call, '');
    EXECUTE call INTO value;
    RETURN value;
END
$$;

-- For whom the router defines something: the session's role, or the owner of a SECURITY DEFINER function whose definition the
-- workers follow. The pass is for this transaction and this role, whoever may have read it.
CREATE OR REPLACE FUNCTION pgherd.who_defines() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    definer text := current_setting('pgherd.definer', true);
BEGIN
    IF definer <> '' THEN
        PERFORM pgherd.check_pass(current_setting('pgherd.inside', true), 'definition ' || pg_current_xact_id(), definer);
        RETURN definer;
    END IF;
    RETURN session_user;
END
$$;

-- Roles with their memberships and settings, and rights on this database: shared objects, of whose changes no event trigger
-- tells. By number, '0' for all roles. Passwords only with a pass. Not how many sessions a role may have: the router sees to that,
-- and its connections to workers are others.
CREATE OR REPLACE FUNCTION pgherd.roles_now(pass text DEFAULT '') RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY' SET timezone = 'UTC' AS $$
DECLARE
    all_roles jsonb;
    settings jsonb;
BEGIN
    IF pass <> '' THEN
        PERFORM pgherd.check_pass(pass, 'roles', '');
    END IF;
    SELECT coalesce(jsonb_object_agg(x.setrole, x.settings), '{}') INTO settings
        FROM (SELECT s.setrole, jsonb_agg(jsonb_build_object('here', s.setdatabase <> 0, 'config', to_jsonb(s.setconfig))
                ORDER BY s.setdatabase <> 0) AS settings
            FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = s.setdatabase
            WHERE s.setdatabase = 0 OR d.datname = current_database() GROUP BY s.setrole) x;
    SELECT jsonb_object_agg(r.oid, jsonb_build_object('name', r.rolname, 'until', r.rolvaliduntil::text,
            'options', (SELECT string_agg(CASE WHEN o.has THEN '' ELSE 'NO' END || o.word, ' ' ORDER BY o.word)
                FROM (VALUES (r.rolsuper, 'SUPERUSER'), (r.rolinherit, 'INHERIT'), (r.rolcreaterole, 'CREATEROLE'),
                    (r.rolcreatedb, 'CREATEDB'), (r.rolcanlogin, 'LOGIN'), (r.rolreplication, 'REPLICATION'),
                    (r.rolbypassrls, 'BYPASSRLS')) o(has, word)),
            'of', (SELECT coalesce(jsonb_agg(to_jsonb(m) - '{oid,roleid,member,grantor}'::text[]
                    || jsonb_build_object('role', g.rolname) ORDER BY g.rolname, m.grantor), '[]')
                FROM pg_auth_members m JOIN pg_authid g ON g.oid = m.roleid WHERE m.member = r.oid),
            'settings', coalesce(settings->r.oid::text, '[]'))
            || CASE WHEN pass <> '' THEN jsonb_build_object('password', r.rolpassword) ELSE '{}' END) INTO all_roles
        FROM pg_authid r;
    RETURN all_roles || jsonb_build_object('0', jsonb_build_object('settings', coalesce(settings->'0', '[]'),
        'database', (SELECT jsonb_build_object('owner', pg_get_userbyid(d.datdba), 'acl', (SELECT jsonb_agg(jsonb_build_array(
                CASE a.grantee WHEN 0 THEN '' ELSE pg_get_userbyid(a.grantee) END, a.privilege_type, a.is_grantable)
                ORDER BY 1) FROM aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a))
            FROM pg_database d WHERE d.datname = current_database())));
END
$$;

-- What the session's role may do with a table here, whether policies hide rows of it from that role, and whether writing it
-- runs anything of the user's, which may be there without the coordinator's knowledge.
CREATE OR REPLACE FUNCTION pgherd.table_rights(table_schema text, table_name text, OUT me text, OUT owner text, OUT reads bool,
    OUT inserts bool, OUT updates bool, OUT deletes bool, OUT filtered bool, OUT forced bool, OUT runs bool)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT current_user::text, pg_get_userbyid(c.relowner)::text, u.ok AND has_table_privilege(c.oid, 'SELECT'),
        u.ok AND has_table_privilege(c.oid, 'INSERT'), u.ok AND has_table_privilege(c.oid, 'UPDATE'),
        u.ok AND has_table_privilege(c.oid, 'DELETE'), row_security_active(c.oid), c.relrowsecurity AND c.relforcerowsecurity,
        EXISTS (SELECT FROM pg_partition_tree(c.oid) t WHERE EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = t.relid)
            OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.relid AND NOT g.tgisinternal
                AND g.tgname <> 'pgherd_guard_stale')
            OR EXISTS (SELECT FROM pg_constraint k WHERE k.confrelid = t.relid AND k.contype = 'f'))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, LATERAL (SELECT has_schema_privilege(n.oid, 'USAGE') AS ok) u
    WHERE n.nspname = table_schema AND c.relname = table_name
$$;

-- The lock with which copies of a reference table are written in turns. LOCK TABLE asks for more rights than a write of
-- some columns, or an INSERT. Who may not write gets none, and hears so from the statement that follows.
CREATE OR REPLACE FUNCTION pgherd.lock_copy(table_schema text, table_name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    found_rows bigint;
BEGIN
    IF EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = table_schema AND c.relname = table_name AND c.relkind IN ('r', 'p')
            AND has_schema_privilege(caller, n.oid, 'USAGE') AND (has_table_privilege(caller, c.oid, 'DELETE, TRUNCATE')
                OR has_any_column_privilege(caller, c.oid, 'INSERT, UPDATE'))) THEN
        -- What is a reference table, the coordinator knows.
        IF to_regclass('pgherd.pg_dist_partition') IS NOT NULL THEN
            EXECUTE 'SELECT FROM pgherd.pg_dist_partition p WHERE p.partmethod = ''n'' AND p.logicalrelid = to_regclass($1)'
                USING format('%I.%I', table_schema, table_name);
            GET DIAGNOSTICS found_rows = ROW_COUNT;
            IF found_rows = 0 THEN
                RETURN;
            END IF;
        END IF;
        EXECUTE format('LOCK TABLE ONLY %I.%I IN SHARE ROW EXCLUSIVE MODE', table_schema, table_name);
    END IF;
END
$$;

-- What a view or function of another role reads of a table, the coordinator reads with that role's rights, which it has
-- checked. Here it is read by this function of the table's owner. It gives rows as text; it belongs to the owner, who could
-- do with it only what he can do anyway. He must not change it: it would run in the sessions of others.
CREATE OR REPLACE FUNCTION pgherd.create_as_owner(shard bigint, owner text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format($f$
        CREATE OR REPLACE FUNCTION pgherd_%s.as_owner(query text, pass text) RETURNS SETOF text
        LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY'
            SET intervalstyle = 'postgres' SET extra_float_digits = 3 AS $b$
        BEGIN
            PERFORM pgherd.check_pass(pass, query, current_user::text);
            RETURN QUERY EXECUTE query;
        END
        $b$ $f$, shard);
    EXECUTE format('ALTER FUNCTION pgherd_%s.as_owner(text, text) OWNER TO %I', shard, owner);
    EXECUTE format('GRANT EXECUTE ON FUNCTION pgherd_%s.as_owner(text, text) TO PUBLIC', shard);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.create_as_owner(bigint, text) FROM PUBLIC;

-- A table's owner need not have CREATE on the database, so this function makes the schemas in which partitions live. Only for
-- the router, which has seen on the coordinator that who defines may: names of shards to come are nobody's to take.
CREATE OR REPLACE FUNCTION pgherd.create_shard_schemas(shards bigint[], owner text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard bigint;
BEGIN
    FOREACH shard IN ARRAY shards LOOP
        EXECUTE format('CREATE SCHEMA %I AUTHORIZATION %I', 'pgherd_' || shard, owner);
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', 'pgherd_' || shard);
    END LOOP;
    -- One of a table is enough.
    IF cardinality(shards) > 0 THEN
        PERFORM pgherd.create_as_owner((SELECT min(s.id) FROM unnest(shards) s(id)), owner);
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.create_shard_schemas(bigint[], text) FROM PUBLIC;

-- ALTER TABLE … OWNER TO: the schemas follow (ALTER SCHEMA … OWNER TO would want CREATE on the database).
CREATE OR REPLACE FUNCTION pgherd.own_shard_schemas(shards bigint[], new_owner text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard bigint;
BEGIN
    FOREACH shard IN ARRAY shards LOOP
        IF NOT pg_has_role(pgherd.who_defines(), new_owner, 'MEMBER') OR NOT pg_has_role(pgherd.who_defines(),
            (SELECT nspowner FROM pg_namespace WHERE nspname = 'pgherd_' || shard), 'MEMBER') THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('must be owner of schema pgherd_%s', shard);
        END IF;
        EXECUTE format('ALTER SCHEMA %I OWNER TO %I', 'pgherd_' || shard, new_owner);
        IF to_regprocedure(format('pgherd_%s.as_owner(text, text)', shard)) IS NOT NULL THEN
            PERFORM pgherd.create_as_owner(shard, new_owner);
        END IF;
    END LOOP;
END
$$;

-- ALTER COLUMN … TYPE makes the indexes of partitions anew under names that PostgreSQL invents: gives them their parents'
-- names again. In two rounds, since one may have got another's name.
CREATE OR REPLACE FUNCTION pgherd.align_names(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    misnamed record;
BEGIN
    FOR misnamed IN
        SELECT n.nspname, c.relname, c.oid, p.relname AS wanted, round
        FROM (VALUES (1), (2)) r(round), pg_index i
            JOIN pg_class p ON p.oid = i.indexrelid
            JOIN pg_inherits h ON h.inhparent = p.oid
            JOIN pg_class c ON c.oid = h.inhrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE i.indrelid = relation AND c.relname <> p.relname
        ORDER BY round
    LOOP
        IF misnamed.round = 1 THEN
            EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', misnamed.nspname, misnamed.relname, 'pgherd_' || misnamed.oid);
        ELSE
            EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', misnamed.nspname, 'pgherd_' || misnamed.oid, misnamed.wanted);
        END IF;
    END LOOP;
END
$$;

-- The same for partitioned tables of users' and their partitions: these names, as [{table, parent, name}], from parents to
-- partitions. parent: the index that it is a part of.
CREATE OR REPLACE FUNCTION pgherd.align_tree(names jsonb) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    misnamed record;
    holder text;
BEGIN
    FOR misnamed IN
        SELECT x.number, x.entry->>'table' AS relation, x.entry->>'parent' AS parent, x.entry->>'name' AS wanted
        FROM jsonb_array_elements(names) WITH ORDINALITY x(entry, number) ORDER BY x.number
    LOOP
        SELECT n.nspname, c.relname, c.oid INTO misnamed.relation, misnamed.parent, misnamed.number
            FROM pg_index i JOIN pg_inherits h ON h.inhrelid = i.indexrelid JOIN pg_class c ON c.oid = i.indexrelid
                JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE i.indrelid = misnamed.relation::regclass AND h.inhparent = misnamed.parent::regclass
                AND c.relname <> misnamed.wanted;
        CONTINUE WHEN NOT FOUND;
        -- Another one that is misnamed, and comes later.
        holder := to_regclass(format('%I.%I', misnamed.relation, misnamed.wanted));
        IF holder IS NOT NULL THEN
            EXECUTE format('ALTER INDEX %s RENAME TO %I', holder, 'pgherd_' || holder::regclass::oid);
        END IF;
        EXECUTE format('ALTER INDEX %I.%I RENAME TO %I', misnamed.relation, misnamed.parent, misnamed.wanted);
    END LOOP;
END
$$;

-- A context in which functions of ours have their names as they are without quote_all_identifiers: PL/pgSQL keeps them as they
-- were when it has first met the function.
CREATE OR REPLACE FUNCTION pgherd.plain_context(context text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF strpos(context, '"pgherd"."') = 0 THEN
        RETURN context;
    END IF;
    RETURN (SELECT string_agg(CASE WHEN line ~ '^PL/pgSQL function "pgherd"[.]"[a-z_]+"[(]' THEN replace(line, '"', '') ELSE line END,
        E'\n' ORDER BY number) FROM regexp_split_to_table(context, E'\n') WITH ORDINALITY l(line, number));
END
$$;

-- ALTER TABLE … DISABLE TRIGGER ALL, and ENABLE, of what it does to foreign keys, with the rights that it needs.
CREATE OR REPLACE FUNCTION pgherd.fire_keys(relation regclass, fires bool) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name name;
BEGIN
    -- They are the system's: where others make the table, they fire.
    IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        RETURN;
    END IF;
    FOR name IN SELECT t.tgname FROM pg_trigger t JOIN pg_constraint k ON k.oid = t.tgconstraint
        WHERE t.tgrelid = relation AND t.tgisinternal AND k.contype = 'f' AND (t.tgenabled = 'D') = fires
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s %s TRIGGER %I', relation, CASE WHEN fires THEN 'ENABLE' ELSE 'DISABLE' END, name);
    END LOOP;
END
$$;

-- VALIDATE CONSTRAINT of a column's NOT NULL, whatever it is called here. (SET NOT NULL does not look at the rows where it is a parent's.)
CREATE OR REPLACE FUNCTION pgherd.validate_not_null(relation regclass, col name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name name;
BEGIN
    FOR name IN SELECT k.conname FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
        WHERE k.conrelid = relation AND k.contype = 'n' AND a.attname = col AND NOT k.convalidated
    LOOP
        EXECUTE format('ALTER TABLE %s VALIDATE CONSTRAINT %I', relation, name);
    END LOOP;
END
$$;

-- DROP INDEX of an index that CREATE INDEX CONCURRENTLY has not brought to its end: partitions have it, their parent does not.
CREATE OR REPLACE FUNCTION pgherd.drop_shard_indexes(shards bigint[], index_name name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    leftover record;
BEGIN
    FOR leftover IN
        SELECT n.nspname, c.relname
        FROM unnest(shards) s(id)
            JOIN pg_namespace n ON n.nspname = 'pgherd_' || s.id
            JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = index_name AND c.relkind = 'i'
        WHERE NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = c.oid)
    LOOP
        EXECUTE format('DROP INDEX %I.%I', leftover.nspname, leftover.relname);
    END LOOP;
END
$$;

-- A text as a value of the same type as another expression: what stands in for a cast where the role that runs a statement may
-- read a column, but not use the schema of its type.
CREATE OR REPLACE FUNCTION pgherd.read_as(value text, same anyelement) RETURNS anyelement
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF (SELECT t.typtype = 'c' FROM pg_catalog.pg_type t WHERE t.oid = pg_catalog.pg_typeof(same)) THEN
        -- PL/pgSQL makes no row of a text.
        RETURN pg_catalog.record_in(value::cstring, pg_catalog.pg_typeof(same)::oid, -1);
    END IF;
    RETURN value;
END
$$;

DO $$
BEGIN
    IF to_regoperator('pgherd.#@#(text, anyelement)') IS NULL THEN
        CREATE OPERATOR pgherd.#@# (LEFTARG = text, RIGHTARG = anyelement, FUNCTION = pgherd.read_as);
    END IF;
END
$$;

-- A value that is assigned to a distribution column, of a table whose rows cannot go to another server: it is the one it has.
CREATE OR REPLACE FUNCTION pgherd.same_key(was anyelement, value anyelement, table_name text, column_name text) RETURNS anyelement
LANGUAGE plpgsql PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- (Operators of types that users make need not be in the path.)
    IF record_image_ne(ROW(was), ROW(value)) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot modify the distribution column "%s" of table "%s"', column_name, table_name),
            DETAIL = 'The row may belong to another server then, and cannot be moved: the table has triggers, policies, or '
                'foreign keys to it.',
            HINT = 'Delete the row and insert it with the new value in one transaction.';
    END IF;
    RETURN value;
END
$$;

-- TRUNCATE, where there is anything: what it costs is new files for each partition and index, and test suites truncate all they
-- have. Tables with triggers for it or with keys to them from others are PostgreSQL's to judge. Who may was asked on the coordinator.
CREATE OR REPLACE FUNCTION pgherd.truncate(tables text[], cascade bool) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts regclass[];
BEGIN
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', array_to_string(tables, ', '));
    SELECT array_agg(coalesce(p.relid, t.oid)) INTO parts
        FROM (SELECT x::regclass AS oid FROM unnest(tables) x) t LEFT JOIN LATERAL pg_partition_tree(t.oid) p ON true;
    -- A snapshot that is kept does not show what has come since.
    IF current_setting('transaction_isolation') <> 'read committed' OR current_setting('transaction_read_only')::bool
        OR EXISTS (SELECT FROM unnest(parts) p(oid) LEFT JOIN pg_class c ON c.oid = p.oid
            WHERE c.relkind IS NULL OR c.relkind <> 'p' AND (c.relkind <> 'r' OR pg_relation_size(c.oid) > 0))
        OR EXISTS (SELECT FROM unnest(parts) p(oid) JOIN pg_trigger t ON t.tgrelid = p.oid
            LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint AND t.tgisinternal AND k.contype = 'f'
            WHERE CASE WHEN k.oid IS NULL THEN t.tgtype & 32 <> 0
                ELSE k.confrelid = t.tgrelid AND k.conrelid <> ALL (parts) END)
    THEN
        EXECUTE format('TRUNCATE %s%s', array_to_string(tables, ', '), CASE WHEN cascade THEN ' CASCADE' ELSE '' END);
    END IF;
END
$$;

-- ADD COLUMN with a default that only the coordinator evaluates. How many rows want a value here; they stay so many.
CREATE OR REPLACE FUNCTION pgherd.rows_to_fill(relation regclass) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    rows bigint;
    forced bool;
BEGIN
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', relation);
    SELECT c.relforcerowsecurity INTO forced FROM pg_class c WHERE c.oid = relation;
    IF forced THEN
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', relation);
    END IF;
    EXECUTE format('SELECT count(*) FROM %s', relation) INTO rows;
    IF forced THEN
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', relation);
    END IF;
    RETURN rows;
END
$$;

-- Keeps values that pgherd.values_of() has made until they are taken, one for each row.
CREATE OR REPLACE FUNCTION pgherd.keep_values(query text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    kept pg_catalog.refcursor := 'pgherd_values';
BEGIN
    OPEN kept FOR EXECUTE query;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.kept_value() RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    kept pg_catalog.refcursor := 'pgherd_values';
    value text;
BEGIN
    FETCH kept INTO value;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'could not serialize access due to concurrent update';
    END IF;
    RETURN value;
END
$$;

-- The same on a reference table: only where there are no rows that would need its values.
CREATE OR REPLACE FUNCTION pgherd.require_empty(relation regclass, column_name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET row_security = off AS $$
DECLARE
    found bool;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %s)', relation) INTO found;
    IF found THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot add column "%s" to reference table "%s"', column_name,
                (SELECT relname FROM pg_class WHERE oid = relation)),
            DETAIL = 'Each copy of the table would give the rows there are other values.',
            HINT = 'Add the column without a default, fill it with UPDATE, and set the default then.';
    END IF;
END
$$;

-- Renames a constraint of a table and its partitions, wherever it is: a foreign key that was added NOT VALID is on the
-- partitions only. CHECK constraints that a partition inherited follow their parent's.
CREATE OR REPLACE FUNCTION pgherd.rename_constraint(relation regclass, old_name name, new_name name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    holder regclass;
BEGIN
    FOR holder IN
        SELECT c.conrelid FROM pg_constraint c
        WHERE c.conname = old_name AND (c.contype <> 'c' OR c.coninhcount = 0)
            AND (c.conrelid = relation OR c.conrelid IN (SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = relation))
            -- A key to a partitioned table has further rows, one per partition there.
            AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid)
        ORDER BY c.conrelid <> relation
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', holder, old_name, new_name);
    END LOOP;
END
$$;

-- Samples ------------------------------------------------------------------------------------------------------------

-- Whether a row is in a sample of so many percent, where the coordinator takes it: its foreign tables give all rows. With a
-- seed the same row is each time. Workers have the functions that their triggers call.
CREATE OR REPLACE FUNCTION pgherd.is_sampled(percentage real, seed double precision, is_repeatable boolean, line text)
RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF percentage IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '2202H', MESSAGE = 'TABLESAMPLE parameter cannot be null';
  ELSIF is_repeatable AND seed IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '2202G', MESSAGE = 'TABLESAMPLE REPEATABLE parameter cannot be null';
  ELSIF NOT percentage BETWEEN 0 AND 100 THEN
    RAISE EXCEPTION USING ERRCODE = '2202H', MESSAGE = 'sample percentage must be between 0 and 100';
  ELSIF NOT is_repeatable THEN
    RETURN pg_catalog.random() * 100 < percentage;
  END IF;
  RETURN (pg_catalog.hashtextextended(seed || ' ' || line, 0) & 1048575) / 1048576.0 * 100 < percentage;
END $$;

-- Whether there is such a sample at all: asked once, also where there are no rows.
CREATE OR REPLACE FUNCTION pgherd.can_sample(percentage real, seed double precision, is_repeatable boolean)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF percentage IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '2202H', MESSAGE = 'TABLESAMPLE parameter cannot be null';
  ELSIF is_repeatable AND seed IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = '2202G', MESSAGE = 'TABLESAMPLE REPEATABLE parameter cannot be null';
  ELSIF NOT percentage BETWEEN 0 AND 100 THEN
    RAISE EXCEPTION USING ERRCODE = '2202H', MESSAGE = 'sample percentage must be between 0 and 100';
  END IF;
  RETURN true;
END $$;

-- What bodies hand to EXECUTE: the coordinator has one that writes it anew.
DO $$
BEGIN
    IF pg_catalog.to_regprocedure('pgherd.sampled_text(text)') IS NULL THEN
        CREATE FUNCTION pgherd.sampled_text(statement text) RETURNS text LANGUAGE sql STABLE STRICT AS 'SELECT statement';
    END IF;
END
$$;
