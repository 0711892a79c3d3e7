-- What only the coordinator has, after common.sql and describe.sql: the metadata under Citus's names, the foreign server
-- that leads back to the router (DESIGN section 2), and the SQL functions and views that users call.

-- Metadata -----------------------------------------------------------------------------------------------------------

-- Whoever takes numbers of a sequence locks its row.
CREATE TABLE IF NOT EXISTS pgherd.number_lock (sequence text PRIMARY KEY);
INSERT INTO pgherd.number_lock SELECT 'pgherd.' || x FROM unnest('{pg_dist_groupid_seq,pg_dist_shardid_seq,pg_dist_node_nodeid_seq,
    pg_dist_colocation_colocationid_seq,pg_dist_placement_placementid_seq,operation_number}'::text[]) x ON CONFLICT DO NOTHING;

-- The first of so many next numbers of a sequence of ours; until the transaction ends nobody else takes any. What nextval() gives
-- is the session's lastval().
CREATE OR REPLACE FUNCTION pgherd.next_number(sequence regclass, count int DEFAULT 1) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first bigint;
BEGIN
    PERFORM FROM pgherd.number_lock l WHERE l.sequence = next_number.sequence::text FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42704', MESSAGE = format('sequence %s is not one of pgherd''s', sequence);
    END IF;
    EXECUTE format('SELECT last_value + is_called::int FROM %s', sequence) INTO first;
    PERFORM setval(sequence, first + count - 1);
    RETURN first;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.next_number(regclass, int) FROM PUBLIC;

CREATE SEQUENCE IF NOT EXISTS pgherd.pg_dist_groupid_seq AS int MINVALUE 1;
CREATE SEQUENCE IF NOT EXISTS pgherd.pg_dist_shardid_seq AS bigint MINVALUE 102008 START 102008;

CREATE TABLE IF NOT EXISTS pgherd.pg_dist_node (
    nodeid serial PRIMARY KEY,
    groupid int NOT NULL,
    nodename text NOT NULL,
    nodeport int NOT NULL DEFAULT 5432,
    noderack text NOT NULL DEFAULT 'default',
    hasmetadata bool NOT NULL DEFAULT false,
    isactive bool NOT NULL DEFAULT true,
    noderole text NOT NULL DEFAULT 'primary',
    nodecluster text NOT NULL DEFAULT 'default',
    metadatasynced bool NOT NULL DEFAULT false,
    shouldhaveshards bool NOT NULL DEFAULT true,
    UNIQUE (nodename, nodeport)
);

-- shardcount and key type make tables that ask for no particular partner colocated. replicationfactor -1: reference tables.
-- placementepoch is what the fence on the workers is compared with.
CREATE TABLE IF NOT EXISTS pgherd.pg_dist_colocation (
    colocationid serial PRIMARY KEY,
    shardcount int NOT NULL,
    replicationfactor int NOT NULL,
    distributioncolumntype oid NOT NULL,
    distributioncolumncollation oid NOT NULL,
    placementepoch bigint NOT NULL DEFAULT 1,
    isdefault bool NOT NULL DEFAULT true
);

-- partmethod: 'h' distributed, 'n' reference.
CREATE TABLE IF NOT EXISTS pgherd.pg_dist_partition (
    logicalrelid regclass PRIMARY KEY,
    partmethod "char" NOT NULL,
    partkey text,
    colocationid int NOT NULL DEFAULT 0,
    repmodel "char" NOT NULL DEFAULT 's',
    autoconverted bool NOT NULL DEFAULT false,
    -- The worker has the table under this name. Kept because a dropped table no longer has one here.
    schemaname name NOT NULL,
    tablename name NOT NULL
);

-- remainder under the modulus shardcount; NULL for a reference table.
CREATE TABLE IF NOT EXISTS pgherd.pg_dist_shard (
    logicalrelid regclass NOT NULL,
    shardid bigint PRIMARY KEY,
    shardstorage "char" NOT NULL DEFAULT 't',
    shardminvalue text,
    shardmaxvalue text,
    remainder int,
    UNIQUE (logicalrelid, remainder)
);

CREATE TABLE IF NOT EXISTS pgherd.pg_dist_placement (
    placementid bigserial PRIMARY KEY,
    shardid bigint NOT NULL,
    shardstate int NOT NULL DEFAULT 1,
    shardlength bigint NOT NULL DEFAULT 0,
    groupid int NOT NULL,
    UNIQUE (shardid, groupid)
);
CREATE INDEX IF NOT EXISTS pg_dist_placement_groupid_index ON pgherd.pg_dist_placement (groupid);

-- Sessions that wait for, and are waited for by, what their router does not know: the processes they use, for the others
-- (crates/router/src/deadlock).
CREATE UNLOGGED TABLE IF NOT EXISTS pgherd.waiting_session (
    router text NOT NULL,
    session int NOT NULL,
    repeats bool NOT NULL,
    processes text NOT NULL,
    seen timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

-- ALTER SYSTEM SET of citus.* and pgherd.* names, which PostgreSQL before 16 refuses.
CREATE TABLE IF NOT EXISTS pgherd.setting (name text PRIMARY KEY, value text NOT NULL);

-- Statements that PostgreSQL refuses in a transaction block, step by step (DESIGN section 6). relation 0: no single table.
-- known_indexes: those of the table before the statement; index: the one it made. pid: the backend here that runs it.
CREATE TABLE IF NOT EXISTS pgherd.operation (
    id bigint PRIMARY KEY,
    kind text NOT NULL,
    statement text NOT NULL,
    relation oid NOT NULL,
    index oid,
    known_indexes oid[] NOT NULL DEFAULT '{}',
    username name NOT NULL DEFAULT session_user,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'failed', 'done')),
    attempts int NOT NULL DEFAULT 1,
    error text,
    pid int NOT NULL DEFAULT pg_catalog.pg_backend_pid(),
    started timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    ended timestamptz
);
CREATE SEQUENCE IF NOT EXISTS pgherd.operation_number;
DO $$
DECLARE
    number record;
BEGIN
    -- Before version 17.
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'pgherd.operation'::regclass AND attname = 'id' AND attidentity <> '') THEN
        PERFORM setval('pgherd.operation_number', max(o.id)) FROM pgherd.operation o HAVING max(o.id) IS NOT NULL;
        ALTER TABLE pgherd.operation ALTER COLUMN id DROP IDENTITY;
    END IF;
    FOR number IN SELECT * FROM (VALUES ('pg_dist_node', 'nodeid', 'pg_dist_node_nodeid_seq'),
        ('pg_dist_colocation', 'colocationid', 'pg_dist_colocation_colocationid_seq'),
        ('pg_dist_placement', 'placementid', 'pg_dist_placement_placementid_seq'),
        ('operation', 'id', 'operation_number')) AS x(relation, field, sequence)
    LOOP
        EXECUTE format('ALTER TABLE pgherd.%I ALTER COLUMN %I SET DEFAULT pgherd.next_number(''pgherd.%I'')',
            number.relation, number.field, number.sequence);
    END LOOP;
END
$$;
CREATE TABLE IF NOT EXISTS pgherd.operation_step (
    operation bigint NOT NULL REFERENCES pgherd.operation ON DELETE CASCADE,
    number int NOT NULL,
    groupid int NOT NULL,
    action text NOT NULL,
    command text NOT NULL,
    state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'running', 'failed', 'done')),
    error text,
    started timestamptz,
    ended timestamptz,
    PRIMARY KEY (operation, number)
);

CREATE TABLE IF NOT EXISTS pgherd.epoch (epoch bigint NOT NULL);
-- A publication FOR ALL TABLES has it too, and it is updated.
DO $$
BEGIN
    IF (SELECT relreplident FROM pg_class WHERE oid = 'pgherd.epoch'::regclass) <> 'f' THEN
        ALTER TABLE pgherd.epoch REPLICA IDENTITY FULL;
    END IF;
END
$$;
CREATE UNIQUE INDEX IF NOT EXISTS epoch_single_row ON pgherd.epoch ((true));
INSERT INTO pgherd.epoch VALUES (1) ON CONFLICT DO NOTHING;
-- It has no primary key; without this it cannot change any more once there is a publication FOR ALL TABLES.
DO $$
BEGIN
    IF (SELECT relreplident <> 'f' FROM pg_class WHERE oid = 'pgherd.epoch'::regclass) THEN
        ALTER TABLE pgherd.epoch REPLICA IDENTITY FULL;
    END IF;
END
$$;

-- Every change of metadata moves the epoch and tells the routers, who LISTEN to "pgherd", which it is.
DROP FUNCTION IF EXISTS pgherd.bump_epoch();

-- Moves with every change of what is distributed, and how. PostgreSQL's definitions change what there is now; our metadata is what
-- the transaction's snapshot shows: whoever has a snapshot from before such a change may not define by it.
CREATE TABLE IF NOT EXISTS pgherd.shared_epoch (is_row bool PRIMARY KEY DEFAULT true CHECK (is_row), epoch bigint NOT NULL);
INSERT INTO pgherd.shared_epoch (epoch) VALUES (1) ON CONFLICT DO NOTHING;

-- A row for each object that a transaction has changed: the numbers of its catalog (of ours, too) and of itself. Zero: no one
-- knows what, all is read again. Whose change it is, is told by the transaction: a router that read under an older snapshot
-- has not seen it.
-- `at`: what a transaction changes later comes later. No sequence: its number would be the session's lastval().
CREATE TABLE IF NOT EXISTS pgherd.change (
    xid xid8 NOT NULL DEFAULT pg_catalog.pg_current_xact_id(),
    at pg_lsn NOT NULL DEFAULT pg_catalog.pg_current_wal_insert_lsn(),
    class oid NOT NULL,
    object oid NOT NULL
);
DO $$
BEGIN
    -- Before version 17.
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'pgherd.change'::regclass AND attname = 'number' AND NOT attisdropped) THEN
        -- What they call still writes numbers; changes.sql makes them again.
        DROP EVENT TRIGGER IF EXISTS pgherd_changes;
        DROP EVENT TRIGGER IF EXISTS pgherd_changes_drops;
        ALTER TABLE pgherd.change DROP COLUMN number,
            ADD COLUMN at pg_lsn NOT NULL DEFAULT pg_catalog.pg_current_wal_insert_lsn();
    END IF;
    IF (SELECT relreplident <> 'f' FROM pg_class WHERE oid = 'pgherd.change'::regclass) THEN
        ALTER TABLE pgherd.change REPLICA IDENTITY FULL;
    END IF;
END
$$;
CREATE INDEX IF NOT EXISTS change_xid ON pgherd.change (xid, at);
-- Changes of transactions before this one are no longer all there.
CREATE TABLE IF NOT EXISTS pgherd.change_horizon (is_row bool PRIMARY KEY DEFAULT true CHECK (is_row), xid xid8 NOT NULL);
INSERT INTO pgherd.change_horizon (xid) VALUES ('0') ON CONFLICT DO NOTHING;

CREATE OR REPLACE FUNCTION pgherd.note_change(class oid, object oid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO pgherd.change (class, object) VALUES ($1, $2)
$$;

-- Forgets what is old, now and then: with every 256th epoch.
CREATE OR REPLACE FUNCTION pgherd.forget_changes(epoch bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last xid8;
BEGIN
    -- Who waits for nobody, and repeats nothing for this.
    IF epoch % 256 <> 0 OR current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RETURN;
    END IF;
    PERFORM FROM pgherd.change_horizon FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT c.xid INTO last FROM pgherd.change c WHERE c.xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY c.xid DESC OFFSET 4096 LIMIT 1;
    IF FOUND THEN
        UPDATE pgherd.change_horizon h SET xid = last WHERE h.xid < last;
        DELETE FROM pgherd.change c WHERE c.xid < last;
    END IF;
END
$$;

-- NULL: somebody else has it, who moves it himself, and is not waited for.
CREATE OR REPLACE FUNCTION pgherd.move_epoch(waits bool) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    moved bigint;
BEGIN
    IF NOT waits THEN
        PERFORM FROM pgherd.epoch FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    UPDATE pgherd.epoch e SET epoch = e.epoch + 1 RETURNING e.epoch INTO moved;
    PERFORM pgherd.forget_changes(moved);
    RETURN moved;
END
$$;

-- reach: of definitions of what is new and local, of what is local, or of what is distributed. NULL: it has not been moved; a
-- transaction with a snapshot cannot move what others have moved since, one that is serializable does not try, and what is local
-- waits for nobody who distributes a table. Whoever hears of it reads in any case, and its session moves the epoch afterwards.
CREATE OR REPLACE FUNCTION pgherd.bump_epoch(reach text DEFAULT 'shared') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    isolation CONSTANT text := current_setting('transaction_isolation');
    moved bigint;
BEGIN
    IF reach = 'shared' THEN
        UPDATE pgherd.shared_epoch e SET epoch = e.epoch + 1;
    ELSIF reach = 'local' AND isolation IN ('repeatable read', 'serializable') THEN
        PERFORM FROM pgherd.shared_epoch FOR SHARE;
    END IF;
    IF isolation = 'repeatable read' THEN
        BEGIN
            moved := pgherd.move_epoch(reach = 'shared');
        EXCEPTION
            WHEN serialization_failure THEN
                NULL;
        END;
    ELSIF isolation <> 'serializable' THEN
        moved := pgherd.move_epoch(reach = 'shared');
    END IF;
    PERFORM pg_notify('pgherd', coalesce(moved::text, ''));
    RETURN moved;
END
$$;

-- After a commit that has not moved it.
CREATE OR REPLACE FUNCTION pgherd.follow_epoch() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_notify('pgherd', coalesce(pgherd.move_epoch(false)::text, ''))
$$;

CREATE OR REPLACE FUNCTION pgherd.metadata_changed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.bump_epoch();
    RETURN NULL;
END
$$;

DO $$
DECLARE
    relation text;
BEGIN
    FOREACH relation IN ARRAY '{pg_dist_node,pg_dist_colocation,pg_dist_partition,pg_dist_shard,pg_dist_placement}'::text[] LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER metadata_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON pgherd.%I '
            'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.metadata_changed()', relation);
    END LOOP;
END
$$;

-- The way back to the router -----------------------------------------------------------------------------------------

CREATE EXTENSION IF NOT EXISTS postgres_fdw SCHEMA pgherd;

-- Remote sorting and remote estimates are never wanted: what the router answers is filtered rows in any order. Host and
-- port are set by every router that starts (router_server_sql in schema.rs).
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_server WHERE srvname = 'pgherd_router') THEN
        EXECUTE format($s$CREATE SERVER pgherd_router FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '5432',
            dbname %L, sslmode 'disable', gssencmode 'disable', connect_timeout '10', application_name 'pgherd_callback',
            fetch_size '10000', fdw_startup_cost '100', fdw_tuple_cost '10', use_remote_estimate 'false',
            async_capable 'false', updatable 'true', truncatable 'true', batch_size '500')$s$, current_database());
    END IF;
    -- From 16 on ANALYZE asks for catalog entries of the far end, which is not one server.
    IF current_setting('server_version_num')::int >= 160000 AND NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_server
            WHERE srvname = 'pgherd_router' AND 'analyze_sampling=off' = ANY (srvoptions)) THEN
        EXECUTE 'ALTER SERVER pgherd_router OPTIONS (ADD analyze_sampling ''off'')';
    END IF;
    -- Users know the name that a callback brings, but not this: the router believes what postgres_fdw says.
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_user_mappings WHERE srvname = 'pgherd_router' AND umuser = 0
            AND (SELECT 'password=' || secret FROM pgherd.secret) = ANY (umoptions)) THEN
        DROP USER MAPPING IF EXISTS FOR PUBLIC SERVER pgherd_router;
        EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER pgherd_router OPTIONS (user ''pgherd_callback'', password %L, '
            'password_required ''false'')', (SELECT secret FROM pgherd.secret));
    END IF;
END
$$;

DO $$
DECLARE
    mapped record;
BEGIN
    FOR mapped IN SELECT m.usename FROM pg_catalog.pg_user_mappings m WHERE m.srvname = 'pgherd_router' AND m.umuser <> 0
        AND NOT EXISTS (SELECT FROM pgherd.secret s WHERE 'password=' || s.secret = ANY (m.umoptions))
    LOOP
        EXECUTE format('DROP USER MAPPING FOR %I SERVER pgherd_router', mapped.usename);
    END LOOP;
END
$$;

-- postgres_fdw has a connection for each user mapping, and takes the one of the role with whose rights it reads: a view's
-- or function's owner, perhaps. Owners of distributed tables, and of views, rules and SECURITY DEFINER functions where there
-- are any, have one of their own, so that the router can tell them from who asks; it goes with the last of these. So has the
-- first superuser, whom nobody can drop.
CREATE OR REPLACE FUNCTION pgherd.map_owners() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    changed record;
BEGIN
    FOR changed IN
        SELECT coalesce(o.role, m.umuser) AS role, o.role IS NULL AS is_gone
        FROM (WITH owner(role) AS (SELECT c.relowner FROM pgherd.pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
                WHERE p.partmethod = 'h')
            SELECT 10::oid AS role UNION SELECT role FROM owner
            UNION SELECT d.role FROM (
                SELECT c.relowner FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
                    WHERE r.oid >= 16384 AND c.relnamespace <> 'pgherd'::regnamespace AND c.relpersistence <> 't'
                UNION SELECT p.proowner FROM pg_proc p
                    WHERE p.prosecdef AND p.oid >= 16384 AND p.pronamespace <> 'pgherd'::regnamespace
                ) d(role) WHERE EXISTS (SELECT FROM owner)) o
            FULL JOIN (SELECT u.umuser FROM pg_user_mappings u WHERE u.srvname = 'pgherd_router' AND u.umuser <> 0) m
                ON m.umuser = o.role
        WHERE o.role IS NULL OR m.umuser IS NULL
    LOOP
        -- Two that find the same role wait for each other.
        LOCK TABLE pg_catalog.pg_user_mapping IN SHARE ROW EXCLUSIVE MODE;
        IF changed.is_gone THEN
            EXECUTE format('DROP FUNCTION IF EXISTS pgherd.forward_rows_%s()', changed.role);
            EXECUTE format('DROP USER MAPPING IF EXISTS FOR %I SERVER pgherd_router', pg_get_userbyid(changed.role));
        ELSE
            EXECUTE format('CREATE USER MAPPING IF NOT EXISTS FOR %I SERVER pgherd_router OPTIONS (user %L, '
                'password_required ''false'')', pg_get_userbyid(changed.role), 'pgherd_callback_' || changed.role);
            -- Not in a text of its own, which the context of an error would show to whoever runs this.
            UPDATE pg_user_mapping m SET umoptions = m.umoptions || ('password=' || s.secret)
                FROM pgherd.secret s, pg_foreign_server f
                WHERE m.umuser = changed.role AND f.oid = m.umserver AND f.srvname = 'pgherd_router'
                    AND NOT ('password=' || s.secret) = ANY (m.umoptions);
        END IF;
    END LOOP;
    -- Of keys.sql, which comes later.
    IF to_regprocedure('pgherd.own_keys()') IS NOT NULL THEN
        EXECUTE 'SELECT pgherd.own_keys()';
    END IF;
END
$$;
SELECT pgherd.map_owners();

-- Reading it with command = '…' makes the router run that command on every worker.
CREATE FOREIGN TABLE IF NOT EXISTS pgherd.remote_command (command text, nodename text, nodeport int, success bool, result text)
    SERVER pgherd_router OPTIONS (schema_name 'pgherd', table_name 'remote_command', updatable 'false', truncatable 'false');

-- On the foreign children: that there is a row trigger keeps postgres_fdw from changing rows by one statement of its own.
CREATE OR REPLACE FUNCTION pgherd.row_by_row() RETURNS trigger
LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;

-- Who may change a distributed table's metadata: its owner. Works for callers that are SECURITY DEFINER functions of ours. From
-- inside of anything else the session's role would lend its rights to whoever has written that: the router calls by itself,
-- or has pgherd.define_inside() call, which has a pass.
CREATE OR REPLACE FUNCTION pgherd.require_owner(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pass text := current_setting('pgherd.inside', true);
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF pass <> '' THEN
        PERFORM pgherd.check_pass(pass, 'definition ' || pg_current_xact_id(), current_setting('pgherd.definer', true));
    ELSIF context !~ E'\nPL/pgSQL function pgherd\\.by_router\\(text,text\\) line [0-9]+ at [A-Za-z ]+$'
        AND EXISTS (SELECT FROM regexp_split_to_table(context, E'\n') line WHERE line !~ E'^[^"]* pgherd\\.[a-z_]+\\('
            AND line !~ E'"SELECT pgherd\\.[a-z_]+\\([a-z_.]+\\)"$' AND line !~ '^[^"(]* inline_code_block [^(]*$') THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only the router may change what it knows of distributed tables';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = relation AND pg_has_role(pgherd.who_defines(), c.relowner, 'MEMBER')) THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = format('must be owner of table %s', (SELECT c.relname FROM pg_class c WHERE c.oid = relation));
    END IF;
END
$$;

-- A child is read through its parent, whose rights are asked. Of itself it is for the owner only, whatever default privileges
-- or a grant for the whole schema have said.
CREATE OR REPLACE FUNCTION pgherd.keep_child(child regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
        FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = child AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', child, grantee);
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.keep_child(regclass) FROM PUBLIC;

-- A new child has its table's constraints, and PostgreSQL takes them for proved: a child that is just made has no rows. The
-- workers' rows need not satisfy what is NOT VALID or NOT ENFORCED, and a scan of them must not be left out for it.
CREATE OR REPLACE FUNCTION pgherd.doubt_child(child regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pg_constraint c SET convalidated = false
        FROM pg_inherits h JOIN pg_constraint p ON p.conrelid = h.inhparent
        WHERE h.inhrelid = $1 AND c.conrelid = $1 AND c.conname = p.conname AND c.contype = p.contype
            AND c.convalidated AND NOT p.convalidated;
    IF FOUND THEN
        -- What backends have remembered of it is forgotten.
        UPDATE pg_class c SET relname = c.relname WHERE c.oid = $1;
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.doubt_child(regclass) FROM PUBLIC;

-- Gives a distributed table its foreign child and its guard. The child leads to the table that has its number, whatever that
-- is called. It is owned like the table, so that DDL that
-- recurses is allowed. A partitioned table of the user's has its children below its partitions. Repeating it is harmless.
CREATE OR REPLACE FUNCTION pgherd.attach_child(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    -- No event triggers, the user's least of all.
    SET session_replication_role = replica SET jit = off AS $$
DECLARE
    table_schema name;
    table_name name;
    owner name;
    child name := 'ft_' || relation::oid;
    is_partitioned bool;
    is_leaf bool;
    hidden_indexes oid[];
    hidden_keys oid[];
BEGIN
    PERFORM pgherd.require_owner(relation);
    SELECT n.nspname, c.relname, pg_get_userbyid(c.relowner), c.relkind = 'p', EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = c.oid)
        INTO STRICT table_schema, table_name, owner, is_partitioned, is_leaf
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
    IF NOT EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = relation AND p.partmethod = 'h') THEN
        RAISE EXCEPTION USING ERRCODE = '42809', MESSAGE = format('table %s is not distributed', relation);
    END IF;
    EXECUTE format('DROP FOREIGN TABLE IF EXISTS pgherd.%I', child);
    -- The guard first: once the child is there, pgherd.guard_definitions watches the table.
    PERFORM pgherd.unguard(relation);
    IF is_partitioned THEN
        PERFORM pgherd.guard_partitioned(relation);
    ELSE
        PERFORM pgherd.guard_heap(relation);
    END IF;
    PERFORM pgherd.guard_keys(relation);
    PERFORM pgherd.note_change('pg_class'::regclass, relation);
    IF is_partitioned AND NOT is_leaf THEN
        RETURN;
    END IF;
    IF is_leaf THEN
        -- PostgreSQL allows no foreign partition below unique indexes and foreign keys, which it could not enforce. The
        -- workers do, so they are out of its sight for a moment; the table is locked.
        WITH hidden AS (UPDATE pg_index i SET indisunique = false WHERE i.indrelid = relation AND i.indisunique RETURNING indexrelid)
            SELECT array_agg(indexrelid) INTO hidden_indexes FROM hidden;
        WITH hidden AS (UPDATE pg_constraint k SET contype = 'x' WHERE k.conrelid = relation AND k.contype = 'f' RETURNING oid)
            SELECT array_agg(oid) INTO hidden_keys FROM hidden;
        EXECUTE format('CREATE FOREIGN TABLE pgherd.%I PARTITION OF %I.%I FOR VALUES WITH (MODULUS 1, REMAINDER 0) '
            'SERVER pgherd_router', child, table_schema, table_name);
        UPDATE pg_constraint k SET contype = 'f' WHERE k.oid = ANY (hidden_keys);
        UPDATE pg_index i SET indisunique = true WHERE i.indexrelid = ANY (hidden_indexes);
        -- What the backend has remembered of the table meanwhile is forgotten.
        UPDATE pg_class c SET relname = c.relname WHERE c.oid = relation;
    ELSE
        EXECUTE format('CREATE FOREIGN TABLE pgherd.%I () INHERITS (%I.%I) SERVER pgherd_router', child, table_schema, table_name);
    END IF;
    PERFORM pgherd.doubt_child(format('pgherd.%I', child)::regclass);
    -- Row by row: so the router sees which statement changes rows, and where it would read what it has changed.
    EXECUTE format('CREATE TRIGGER pgherd_row_by_row AFTER UPDATE OR DELETE ON pgherd.%I '
        'FOR EACH ROW EXECUTE FUNCTION pgherd.row_by_row()', child);
    IF EXISTS (SELECT FROM pgherd.fires_here h WHERE h.relation = $1) THEN
        PERFORM pgherd.create_child_triggers(relation);
    END IF;
    EXECUTE format('ALTER FOREIGN TABLE pgherd.%I OWNER TO %I', child, owner);
    PERFORM pgherd.watch_samples(relation);
    PERFORM pgherd.keep_child(format('pgherd.%I', child)::regclass);
    PERFORM pgherd.follow_keys(relation);
    -- Its owner's; with the first of all also that of whoever else may be on the way to it.
    IF NOT EXISTS (SELECT FROM pg_user_mappings u JOIN pg_class c ON c.relowner = u.umuser WHERE u.srvname = 'pgherd_router' AND c.oid = relation)
        OR NOT EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.partmethod = 'h' AND p.logicalrelid <> $1) THEN
        PERFORM pgherd.map_owners();
    END IF;
END
$$;

-- A partitioned table that stands for one that is not, and has no rows: from PostgreSQL 18 on none is made UNLOGGED.
CREATE OR REPLACE FUNCTION pgherd.mark_unlogged(relation regclass, is_unlogged bool) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.require_owner(relation);
    UPDATE pg_class c SET relpersistence = CASE WHEN is_unlogged THEN 'u' ELSE 'p' END
        WHERE c.oid = relation AND c.relkind = 'p' AND c.relpersistence <> 't';
    PERFORM pgherd.note_change('pg_class'::regclass, relation);
END
$$;

-- Takes child and guard away: before DROP TABLE and other DDL that a child would refuse, and for undistribute_table.
CREATE OR REPLACE FUNCTION pgherd.detach_child(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    -- No event triggers, the user's least of all.
    SET session_replication_role = replica SET jit = off AS $$
DECLARE
    table_name text;
BEGIN
    PERFORM pgherd.require_owner(relation);
    SELECT pgherd.qualified(c.relnamespace, c.relname) INTO STRICT table_name FROM pg_class c WHERE c.oid = relation;
    EXECUTE format('DROP FOREIGN TABLE IF EXISTS pgherd.%I', 'ft_' || relation::oid);
    PERFORM pgherd.unguard(relation);
END
$$;

-- The router has the workers follow the next index of the table, which pgherd.guard_definitions lets pass.
CREATE OR REPLACE FUNCTION pgherd.let_index_be_made(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.require_owner(relation);
    PERFORM set_config('pgherd.makes_index',
        relation::oid || ' ' || pgherd.make_pass('index ' || relation::oid || ' ' || pg_current_xact_id(), ''), true);
END
$$;

-- Before a definition of distributed and reference tables: each is locked where the caller owns it, so that what is told is what
-- the statement changes, and two definitions of one table take turns, in one order everywhere. The lock is the one that the
-- statement, or taking the foreign child away, wants in any case. Then each is told of as it is, and its child, which stands in
-- the way of some forms, is taken away if it `detaches`; if not (NULL: that is asked for by itself), one index may be made beside
-- it. But for those that are not `wanted`. No rows: whoever waited finds the tables changed (gone, renamed, no longer
-- distributed), or the metadata at another epoch than expected.
CREATE OR REPLACE FUNCTION pgherd.begin_definition(tables oid[], modes text[], wanted bool[], detaches bool, expected bigint)
RETURNS TABLE (relation oid, description jsonb)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    names text[];
    owned bool[];
    name text;
    is_owner bool;
BEGIN
    IF array_to_string(modes, '') !~ '^[A-Z ]*$' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'no such lock mode';
    END IF;
    FOR at IN 1 .. cardinality(tables) LOOP
        SELECT pgherd.qualified(c.relnamespace, c.relname), pg_has_role(c.relowner, 'USAGE') INTO name, is_owner
            FROM pg_class c WHERE c.oid = tables[at];
        IF NOT FOUND THEN
            RETURN;
        END IF;
        names := names || name;
        owned := owned || is_owner;
        -- A statement of somebody who is not the owner is refused, or changes rights only.
        IF is_owner THEN
            BEGIN
                EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', name, modes[at]);
            EXCEPTION
                WHEN undefined_table OR invalid_schema_name OR wrong_object_type THEN
                    RETURN;
                WHEN insufficient_privilege THEN
                    -- An owner who took his own rights away.
                    NULL;
            END;
        END IF;
    END LOOP;
    IF (SELECT e.epoch FROM pgherd.epoch e) <> expected OR EXISTS (SELECT FROM unnest(tables, names, owned) t(oid, name, owns)
            WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.oid AND pgherd.qualified(c.relnamespace, c.relname) = t.name
                AND pg_has_role(c.relowner, 'USAGE') = t.owns)) THEN
        RETURN;
    END IF;
    FOR at IN 1 .. cardinality(tables) LOOP
        relation := tables[at];
        description := NULL;
        IF wanted[at] THEN
            description := pgherd.describe_table(relation);
            -- Of others' tables only what does not change them is taken: a view of them, a grant that comes to nothing.
            IF detaches AND owned[at] AND EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = relation AND p.partmethod = 'h') THEN
                PERFORM pgherd.detach_child(relation);
            END IF;
            IF NOT detaches AND owned[at] THEN
                PERFORM pgherd.let_index_be_made(relation);
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- The CHECK constraint that DETACH PARTITION … CONCURRENTLY leaves to a partition. NULL: none, since it has constraints
-- that imply it, or is one by hash. What PostgreSQL finds implied it does not scan the table for.
CREATE OR REPLACE FUNCTION pgherd.check_of_detached(relation regclass) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    level record;
    implied bool := current_setting('track_counts')::bool AND has_database_privilege(current_database(), 'TEMP');
BEGIN
    IF NOT EXISTS (SELECT FROM pg_inherits h JOIN pg_partitioned_table p ON p.partrelid = h.inhparent
            WHERE h.inhrelid = relation AND p.partstrat <> 'h') THEN
        RETURN NULL;
    END IF;
    FOR level IN
        SELECT pg_get_partkeydef(h.inhparent) AS key, pg_get_expr(c.relpartbound, c.oid) AS bound
        FROM pg_partition_ancestors(relation) a JOIN pg_inherits h ON h.inhrelid = a.relid JOIN pg_class c ON c.oid = h.inhrelid
    LOOP
        EXIT WHEN NOT implied;
        EXECUTE format('CREATE TEMPORARY TABLE pgherd_detached_from (LIKE %s) PARTITION BY %s', relation, level.key);
        EXECUTE format('CREATE TEMPORARY TABLE pgherd_detached (LIKE %s INCLUDING CONSTRAINTS)', relation);
        EXECUTE format('ALTER TABLE pg_temp.pgherd_detached_from ATTACH PARTITION pg_temp.pgherd_detached %s', level.bound);
        implied := pg_stat_get_xact_numscans('pg_temp.pgherd_detached'::regclass) = 0;
        DROP TABLE pg_temp.pgherd_detached_from;
    END LOOP;
    RETURN CASE WHEN NOT implied THEN pg_get_partition_constraintdef(relation) END;
END
$$;

-- So many values of an expression, as a query that gives them as text, for pgherd.keep_values() on a worker. Those of a
-- sequence are told in few words.
CREATE OR REPLACE FUNCTION pgherd.values_query(made text[], type text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    step bigint;
BEGIN
    IF type IN ('smallint', 'integer', 'bigint') THEN
        step := made[2]::bigint - made[1]::bigint;
        IF step <> 0 AND NOT EXISTS (SELECT FROM unnest(made) WITH ORDINALITY m(value, number)
                WHERE value::bigint IS DISTINCT FROM made[1]::bigint + (number - 1) * step) THEN
            RETURN format('SELECT v::text FROM pg_catalog.generate_series(%s::bigint, %s::bigint, %s::bigint) v',
                made[1], made[cardinality(made)], step);
        END IF;
    END IF;
    RETURN format('SELECT pg_catalog.unnest(%L::text[])', made);
END
$$;

-- With the user's search path, which functions in the expression may depend on.
CREATE OR REPLACE FUNCTION pgherd.values_of(expression text, type text, rows bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    made text[];
BEGIN
    EXECUTE pg_catalog.format('SELECT pg_catalog.array_agg(CAST(%s AS %s)::text) FROM pg_catalog.generate_series(1, %s)',
        expression, type, rows) INTO made;
    RETURN pgherd.values_query(made, type);
END
$$;

-- The names of indexes that are part of others in a tree of partitions, for pgherd.align_tree() on a worker.
CREATE OR REPLACE FUNCTION pgherd.tree_names(root regclass) RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object('table', pgherd.qualified(t.relnamespace, t.relname),
        'parent', pgherd.qualified(p.relnamespace, p.relname), 'name', c.relname) ORDER BY r.level, c.oid), '[]')
    FROM pg_partition_tree(root) r JOIN pg_class t ON t.oid = r.relid JOIN pg_index i ON i.indrelid = r.relid
        JOIN pg_inherits h ON h.inhrelid = i.indexrelid JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_class p ON p.oid = h.inhparent
    WHERE t.relnamespace <> 'pgherd'::regnamespace
$$;

-- What views read of a table that is set aside, as it is to be again.
CREATE TABLE IF NOT EXISTS pgherd.aside_view (aside oid, view oid, definition text, PRIMARY KEY (aside, view));

-- Views that read a relation, and whether each can be made to read another one of the name and columns. We do that, so nothing of
-- users' may run when its text is read: constants of their types would.
CREATE OR REPLACE FUNCTION pgherd.readers(relation regclass) RETURNS TABLE (view regclass, is_replaceable bool)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT v.oid::regclass, v.relkind = 'v' AND bool_and(r.rulename = '_RETURN') AND pg_get_viewdef(v.oid) !~ E'\\m(ONLY|TABLESAMPLE)\\M'
            AND NOT EXISTS (SELECT FROM pg_rewrite w JOIN pg_depend o ON o.classid = 'pg_rewrite'::regclass AND o.objid = w.oid
                WHERE w.ev_class = v.oid AND o.refobjid >= 16384 AND o.refclassid <> 'pg_class'::regclass)
        FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
        WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND v.oid <> relation
        GROUP BY v.oid ORDER BY v.oid
$$;

-- A table of another form takes the place of a partition of the user's: this takes the old one, with its rows, out of its tree
-- and into a schema of its own. Gives the sequences that it owned.
CREATE OR REPLACE FUNCTION pgherd.set_aside(relation regclass) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    parent text;
    view_name text;
    owned jsonb;
    sequence text;
BEGIN
    PERFORM pgherd.require_owner(relation);
    SELECT v.view INTO view_name FROM pgherd.readers(relation) v WHERE NOT v.is_replaceable LIMIT 1;
    IF view_name IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot distribute table "%s"', (SELECT c.relname FROM pg_class c WHERE c.oid = relation)),
            DETAIL = format('It is a partition, and view %s reads it.', view_name),
            HINT = 'Drop the view, and create it again afterwards.';
    END IF;
    DELETE FROM pgherd.aside_view a WHERE a.aside = relation;
    INSERT INTO pgherd.aside_view (aside, view, definition) SELECT relation, v.view, pg_get_viewdef(v.view) FROM pgherd.readers(relation) v;
    SELECT pgherd.qualified(c.relnamespace, c.relname) INTO parent
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent WHERE i.inhrelid = relation;
    IF parent IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', parent, relation);
    END IF;
    SELECT coalesce(jsonb_agg(jsonb_build_object('sequence', d.objid::regclass::text, 'column', a.attname)), '[]') INTO owned
        FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
            JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.deptype = 'a';
    FOR sequence IN SELECT x->>'sequence' FROM jsonb_array_elements(owned) x LOOP
        EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequence);
    END LOOP;
    EXECUTE format('CREATE SCHEMA %I', 'pgherd_aside_' || relation::oid);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', 'pgherd_aside_' || relation::oid);
    EXECUTE format('ALTER TABLE %s SET SCHEMA %I', relation, 'pgherd_aside_' || relation::oid);
    RETURN owned;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.require_aside(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = relation AND n.nspname = 'pgherd_aside_' || relation::oid) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('%s is not set aside', relation);
    END IF;
END
$$;

-- The new table is in its place: it gets the sequences and the metadata. leaf: it is partitioned further, for its child.
CREATE OR REPLACE FUNCTION pgherd.replace_aside(aside regclass, relation regclass, owned jsonb, leaf bool) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    entry jsonb;
    reader record;
BEGIN
    PERFORM pgherd.require_owner(aside);
    PERFORM pgherd.require_owner(relation);
    PERFORM pgherd.require_aside(aside);
    -- Views stay what they are, and who may read them, and read the new table.
    FOR reader IN SELECT v.view, c.reloptions, a.definition FROM pgherd.readers(aside) v JOIN pg_class c ON c.oid = v.view
        JOIN pgherd.aside_view a ON a.aside = $1 AND a.view = v.view WHERE v.is_replaceable
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW %s %s AS %s', reader.view, 'WITH (' || array_to_string(reader.reloptions, ', ') || ')',
            reader.definition);
    END LOOP;
    DELETE FROM pgherd.aside_view a WHERE a.aside = $1;
    FOR entry IN SELECT x FROM jsonb_array_elements(owned) x LOOP
        IF NOT EXISTS (SELECT FROM pg_class s JOIN pg_class t ON t.oid = aside AND t.relowner = s.relowner
                WHERE s.oid = (entry->>'sequence')::regclass AND s.relkind = 'S') THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('%s is no sequence of the table''s owner', entry->>'sequence');
        END IF;
        EXECUTE format('ALTER SEQUENCE %s OWNED BY %s.%I', (entry->>'sequence')::regclass, relation, entry->>'column');
    END LOOP;
    FOR entry IN
        SELECT jsonb_build_object('on', CASE WHEN c.oid = aside AND a.attname IS NULL THEN format('TABLE %s', relation)
                WHEN c.oid = aside THEN format('COLUMN %s.%I', relation, a.attname)
                ELSE format('INDEX %I.%I', (SELECT n.nspname FROM pg_namespace n JOIN pg_class r ON r.relnamespace = n.oid
                    WHERE r.oid = relation), c.relname) END, 'text', d.description)
        FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND (c.oid = aside
                OR EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = c.oid AND i.indrelid = aside
                    AND EXISTS (SELECT FROM pg_index n JOIN pg_class m ON m.oid = n.indexrelid
                        WHERE n.indrelid = relation AND m.relname = c.relname)))
            LEFT JOIN pg_attribute a ON a.attrelid = aside AND a.attnum = d.objsubid AND d.objsubid > 0
        WHERE d.classoid = 'pg_class'::regclass
        UNION ALL SELECT jsonb_build_object('on', format('CONSTRAINT %I ON %s', k.conname, relation), 'text', d.description)
        FROM pg_description d JOIN pg_constraint k ON d.classoid = 'pg_constraint'::regclass AND k.oid = d.objoid AND k.conrelid = aside
            JOIN pg_constraint n ON n.conrelid = relation AND n.conname = k.conname
    LOOP
        EXECUTE format('COMMENT ON %s IS %L', entry->>'on', entry->>'text');
    END LOOP;
    UPDATE pgherd.pg_dist_partition p SET logicalrelid = relation WHERE p.logicalrelid = aside;
    UPDATE pgherd.pg_dist_shard s SET logicalrelid = relation WHERE s.logicalrelid = aside;
    IF leaf THEN
        INSERT INTO pgherd.leaf (relation, options, toast_options)
            SELECT $2, coalesce(l.options, c.reloptions), coalesce(l.toast_options, t.reloptions) FROM pg_class c
                LEFT JOIN pg_class t ON t.oid = c.reltoastrelid LEFT JOIN pgherd.leaf l ON l.relation = c.oid
            WHERE c.oid = aside;
    END IF;
    DELETE FROM pgherd.leaf l WHERE l.relation = aside;
END
$$;

-- Nobody needs it any more.
CREATE OR REPLACE FUNCTION pgherd.drop_aside(aside regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    PERFORM pgherd.require_owner(aside);
    PERFORM pgherd.require_aside(aside);
    EXECUTE format('DROP TABLE %s', aside);
    EXECUTE format('DROP SCHEMA %I', 'pgherd_aside_' || aside::oid);
END
$$;

-- Definitions of distributed tables change through the router, which takes the foreign child away meanwhile. What comes any
-- other way (a DO block, a function, a client of the coordinator itself) would leave the workers behind.
CREATE OR REPLACE FUNCTION pgherd.has_child(relation oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE below(relation) AS (
        SELECT $1
        UNION ALL SELECT i.inhrelid FROM below b JOIN pg_inherits i ON i.inhparent = b.relation
    )
    SELECT EXISTS (SELECT FROM below b JOIN pg_inherits h ON h.inhparent = b.relation JOIN pg_class f ON f.oid = h.inhrelid
        WHERE f.relname = 'ft_' || b.relation AND f.relnamespace = 'pgherd'::regnamespace)
$$;

-- After ALTER SCHEMA … RENAME, whoever owns the tables: the metadata has the names that the catalog has.
CREATE OR REPLACE FUNCTION pgherd.follow_schemas() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pgherd.pg_dist_partition p SET schemaname = n.nspname
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = p.logicalrelid AND p.schemaname <> n.nspname
$$;

CREATE OR REPLACE FUNCTION pgherd.guard_definitions() RETURNS event_trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed record;
    pass text[];
BEGIN
    -- All functions are looked through: only where one, a view or a distributed table may have got another owner.
    IF (CASE
        WHEN TG_EVENT = 'sql_drop' THEN TG_TAG <> 'DROP USER MAPPING' AND EXISTS (SELECT FROM pg_event_trigger_dropped_objects() d
            WHERE d.object_type <> ALL ('{table,index,sequence,type,toast table,table constraint,table column,default value,trigger}'::text[])
                OR d.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = d.objid))
        WHEN TG_TAG ~ '^CREATE (FUNCTION|PROCEDURE)$' THEN EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d
            JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid WHERE p.prosecdef)
        WHEN TG_TAG = 'ALTER TABLE' THEN EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d
            JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
            WHERE c.relkind IN ('v', 'm') OR EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = c.oid))
        ELSE TG_TAG ~ '^(CREATE|ALTER) (VIEW|MATERIALIZED VIEW|RULE|FUNCTION|PROCEDURE|ROUTINE|SCHEMA|EXTENSION)$|^REASSIGN OWNED$'
    END) THEN
        PERFORM pgherd.map_owners();
    END IF;
    -- Local tables may have come to reference distributed ones.
    IF TG_EVENT = 'ddl_command_end' AND TG_TAG IN ('CREATE TABLE', 'ALTER TABLE', 'CREATE SCHEMA') THEN
        PERFORM pgherd.follow_keys(d.objid) FROM pg_event_trigger_ddl_commands() d
            WHERE d.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pgherd.local_keys l WHERE l.conrelid = d.objid);
    END IF;
    -- The child belongs to the table's owner, who must not have it lead to another's table, nor run anything of his.
    IF TG_EVENT = 'ddl_command_end' AND NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user)
        AND EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d JOIN pg_foreign_table f ON f.ftrelid = CASE d.classid
                WHEN 'pg_class'::regclass THEN d.objid
                WHEN 'pg_trigger'::regclass THEN (SELECT t.tgrelid FROM pg_trigger t WHERE t.oid = d.objid)
                WHEN 'pg_rewrite'::regclass THEN (SELECT r.ev_class FROM pg_rewrite r WHERE r.oid = d.objid)
                WHEN 'pg_constraint'::regclass THEN (SELECT n.conrelid FROM pg_constraint n WHERE n.oid = d.objid)
                WHEN 'pg_attrdef'::regclass THEN (SELECT a.adrelid FROM pg_attrdef a WHERE a.oid = d.objid)
                WHEN 'pg_policy'::regclass THEN (SELECT y.polrelid FROM pg_policy y WHERE y.oid = d.objid) END
            JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE s.srvname = 'pgherd_router') THEN
        RAISE EXCEPTION USING ERRCODE = 'PH001', MESSAGE = 'cannot change a foreign table that leads to the router',
            DETAIL = 'It belongs to a distributed table.';
    END IF;
    SELECT NULL::oid AS oid, NULL::name AS relname INTO changed;
    -- The router says, with a pass that nobody else has, that the workers will hear of a schema's new name.
    IF TG_EVENT = 'ddl_command_end' AND TG_TAG = 'ALTER SCHEMA' THEN
        IF coalesce(current_setting('pgherd.schema_follows', true), '') <> '' THEN
            PERFORM pgherd.check_pass(current_setting('pgherd.schema_follows', true), 'schema follows', '');
            PERFORM pgherd.follow_schemas();
        END IF;
        SELECT c.oid, c.relname INTO changed
        FROM pgherd.pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE p.schemaname <> n.nspname
        LIMIT 1;
    END IF;
    -- CONCURRENTLY cannot be nested in anything, so its text is the client's own.
    IF changed.oid IS NULL AND TG_EVENT = 'ddl_command_end'
        AND (TG_TAG IN ('COMMENT', 'SECURITY LABEL', 'REINDEX')
            OR TG_TAG = 'CREATE INDEX' AND current_query() ~* E'\\mconcurrently\\M') THEN
        RETURN;
    END IF;
    IF changed.oid IS NULL AND TG_EVENT = 'ddl_command_end' AND TG_TAG = 'CREATE INDEX'
        AND coalesce(current_setting('pgherd.makes_index', true), '') <> '' THEN
        -- It is for one index.
        pass := string_to_array(current_setting('pgherd.makes_index'), ' ');
        PERFORM set_config('pgherd.makes_index', '', true);
        IF (SELECT bool_and(i.indrelid::text = pass[1]) FROM pg_event_trigger_ddl_commands() d
                LEFT JOIN pg_index i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid) THEN
            PERFORM pgherd.check_pass(pass[2], 'index ' || pass[1] || ' ' || pg_current_xact_id(), '');
            RETURN;
        END IF;
    END IF;
    IF changed.oid IS NOT NULL THEN
        NULL;
    ELSIF TG_EVENT = 'ddl_command_end' THEN
        SELECT c.oid, c.relname INTO changed
        FROM pg_event_trigger_ddl_commands() d
            CROSS JOIN LATERAL (SELECT CASE d.classid
                WHEN 'pg_class'::regclass THEN coalesce((SELECT i.indrelid FROM pg_index i WHERE i.indexrelid = d.objid), d.objid)
                WHEN 'pg_trigger'::regclass THEN (SELECT t.tgrelid FROM pg_trigger t WHERE t.oid = d.objid)
                WHEN 'pg_policy'::regclass THEN (SELECT y.polrelid FROM pg_policy y WHERE y.oid = d.objid)
                WHEN 'pg_rewrite'::regclass THEN (SELECT r.ev_class FROM pg_rewrite r WHERE r.oid = d.objid)
                WHEN 'pg_statistic_ext'::regclass THEN (SELECT s.stxrelid FROM pg_statistic_ext s WHERE s.oid = d.objid)
                WHEN 'pg_constraint'::regclass THEN (SELECT n.conrelid FROM pg_constraint n WHERE n.oid = d.objid) END AS oid OFFSET 0) r
            JOIN pgherd.pg_dist_partition p ON p.partmethod = 'h' AND p.logicalrelid = r.oid
            JOIN pg_class c ON c.oid = r.oid
        -- Asked of these alone, and not of every distributed table there is.
        WHERE CASE WHEN p.logicalrelid = r.oid THEN pgherd.has_child(r.oid) END
        LIMIT 1;
        IF changed.oid IS NULL THEN
            -- A new partition of a distributed table.
            SELECT c.oid, c.relname INTO changed
            FROM pg_event_trigger_ddl_commands() d
                JOIN pg_inherits i ON d.classid = 'pg_class'::regclass AND i.inhrelid = d.objid
                JOIN pgherd.pg_dist_partition p ON p.partmethod = 'h' AND p.logicalrelid = i.inhparent
                JOIN pg_class c ON c.oid = i.inhparent AND c.relkind = 'p'
            WHERE d.schema_name <> 'pgherd' AND CASE WHEN i.inhrelid = d.objid THEN pgherd.has_child(c.oid) END
                AND NOT EXISTS (SELECT FROM pgherd.pg_dist_partition o WHERE o.logicalrelid::oid = d.objid)
            LIMIT 1;
        END IF;
    ELSE
        -- The table together with its child; or something of the table while the child is there.
        SELECT d.objid AS oid, d.object_name::name AS relname INTO changed
        FROM pg_event_trigger_dropped_objects() d
            JOIN pgherd.pg_dist_partition p ON p.partmethod = 'h' AND p.logicalrelid::oid = d.objid
                AND d.classid = 'pg_class'::regclass AND d.objsubid = 0
        WHERE EXISTS (SELECT FROM pg_event_trigger_dropped_objects() f
            WHERE f.schema_name = 'pgherd' AND f.object_name = 'ft_' || d.objid)
        LIMIT 1;
    END IF;
    IF changed.oid IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PH001',
            MESSAGE = format('cannot change the definition of distributed table "%s" from inside the coordinator', changed.relname),
            DETAIL = format('%s would not reach the workers.', TG_TAG),
            HINT = 'Send it as a statement of its own through the router.';
    END IF;
END
$$;

-- Children of early versions lead to their tables by name.
DO $$
DECLARE
    child record;
BEGIN
    FOR child IN SELECT f.ftrelid::regclass AS name FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_class c ON c.oid = f.ftrelid
        WHERE c.relnamespace = 'pgherd'::pg_catalog.regnamespace AND c.relname ~ '^ft_[0-9]+$' AND f.ftoptions::text LIKE '%table_name=%'
    LOOP
        EXECUTE format('ALTER FOREIGN TABLE %s OPTIONS (DROP schema_name, DROP table_name)', child.name);
    END LOOP;
END
$$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger WHERE evtname = 'pgherd_definitions') THEN
        CREATE EVENT TRIGGER pgherd_definitions ON ddl_command_end EXECUTE FUNCTION pgherd.guard_definitions();
    END IF;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger WHERE evtname = 'pgherd_drops') THEN
        CREATE EVENT TRIGGER pgherd_drops ON sql_drop EXECUTE FUNCTION pgherd.guard_definitions();
    END IF;
END
$$;

-- Definitions that SQL inside the coordinator makes (DO blocks, functions): the router is told of each before it is carried
-- out, and takes children away as for any other; and afterwards, and brings the workers up to date, in the same place of the
-- same transaction (docs/decisions/0014). Reading this table with command = '…' tells it, and gives what is to be done
-- here. Only pgherd.tell_router() may.
CREATE FOREIGN TABLE IF NOT EXISTS pgherd.remote_definition (command text, result text)
    SERVER pgherd_router OPTIONS (schema_name 'pgherd', table_name 'remote_definition', updatable 'false', truncatable 'false');

-- Roles and their like have no event triggers. What this transaction (or one just before it) has changed of them is counted.
CREATE OR REPLACE FUNCTION pgherd.changes_roles() RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT NOT current_setting('track_counts')::bool OR sum(pg_stat_get_xact_tuples_inserted(c.oid)
            + pg_stat_get_xact_tuples_updated(c.oid) + pg_stat_get_xact_tuples_deleted(c.oid)) > 0
        FROM unnest('{pg_authid,pg_auth_members,pg_db_role_setting,pg_database}'::regclass[]) c(oid)
$$;

-- What a session's own connection has that no statement tells of: names of temporary relations; NULL: roles have changed; '': so
-- may have owners. No index tells what is in a schema but that of what depends on it.
CREATE OR REPLACE FUNCTION pgherd.untold() RETURNS SETOF text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    here CONSTANT oid := pg_my_temp_schema();
BEGIN
    IF here <> 0 THEN
        RETURN QUERY
        WITH member AS MATERIALIZED (SELECT d.classid, d.objid FROM pg_depend d
            WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = here)
        SELECT c.relname::text FROM member m JOIN pg_class c ON c.oid = m.objid WHERE m.classid = 'pg_class'::regclass
        UNION ALL SELECT c.relname FROM member m, LATERAL (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = m.objid OFFSET 0) i
            JOIN pg_class c ON c.oid = i.indexrelid WHERE m.classid = 'pg_class'::regclass
        UNION ALL SELECT c.relname FROM member m JOIN pg_type t ON t.oid = m.objid JOIN pg_class c ON c.oid = t.typrelid
            WHERE m.classid = 'pg_type'::regclass;
    END IF;
    IF pgherd.changes_roles() THEN
        RETURN NEXT NULL;
    END IF;
    IF pg_stat_get_xact_tuples_updated('pg_shdepend'::regclass) > 0 THEN
        RETURN NEXT '';
    END IF;
END
$$;

-- Which definitions the router hears of. It runs as the schema's owner, and hands a key to pgherd.define_inside(), which comes
-- next and takes it at once: nobody else sees it. Text of the statement is in the context, or in an SQL function's body.
CREATE OR REPLACE FUNCTION pgherd.lend_key() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
    key text := '';
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    context := nullif(substr(context, strpos(context, E'\n') + 1), context);
    IF context ~ '^SQL (statement|function) "'
        -- Each statement of an extension's script has the context of the one that makes the extension; from PostgreSQL 18 on
        -- that of the script, too.
        AND (TG_TAG ~ ' EXTENSION$' OR context !~* E'^SQL statement "\\s*(create|alter)\\s+extension\\M')
        AND context !~ E'\\nextension script file "[^"\\n]+", near line [0-9]+(\\n|$)'
        -- What functions of ours do is known to the router.
        AND context !~ E'(^|\\n)PL/pgSQL function pgherd\\.'
        AND current_setting('pgherd.routed', true) = 'on'
        AND TG_TAG !~ '^(CREATE (VIEW|MATERIALIZED VIEW|TABLE AS|SEQUENCE)|REFRESH MATERIALIZED VIEW|SELECT INTO)$'
        AND NOT (TG_TAG = 'CREATE TABLE' AND context ~ '^SQL statement' AND context !~* 'partition|inherits|references')
    THEN
        key := pgherd.make_pass('definition ' || pg_current_xact_id(), '');
        -- Some definitions (ALTER DOMAIN … DROP CONSTRAINT) leave what PostgreSQL tells backends of them to the next command that
        -- changes anything, before which no subtransaction can begin. This counts as one.
        PERFORM FROM pgherd.schema_version v WHERE v.version < 0 FOR KEY SHARE;
    END IF;
    PERFORM set_config('pgherd.key', key, true);
END
$$;

-- What functions of ours believe while the router has whoever defines call them. It is for this role only, whoever may have
-- read it.
CREATE OR REPLACE FUNCTION pgherd.pass_of_definer(key text, definer text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.check_pass(key, 'definition ' || pg_current_xact_id(), '');
    RETURN pgherd.make_pass('definition ' || pg_current_xact_id(), definer);
END
$$;

CREATE OR REPLACE FUNCTION pgherd.tell_router(key text, said text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    answer text;
BEGIN
    PERFORM pgherd.check_pass(key, 'definition ' || pg_current_xact_id(), '');
    EXECUTE format('SELECT r.result FROM pgherd.remote_definition r WHERE r.command = %L', said) INTO STRICT answer;
    RETURN answer;
END
$$;

-- Tells the router something, and does what it asks for, with the rights and the search path of whoever defines:
-- "run …" a statement, "ask …" a query, whose rows it is told next, each behind its length, "see …" a query that means the same
-- under any path; until it says "done". Called with a path that has pg_catalog only. What it is compiled to under one user's
-- path serves others: no name is left to a path.
CREATE OR REPLACE FUNCTION pgherd.obey(key text, said text, path text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    command pg_catalog.text;
    used_path pg_catalog.text;
    used_key pg_catalog.text;
    is_ours pg_catalog.bool;
    is_query pg_catalog.bool;
    found pg_catalog.record;
    parts pg_catalog.text[];
    state pg_catalog.text;
    message pg_catalog.text;
    detail pg_catalog.text;
    hint pg_catalog.text;
BEGIN
    LOOP
        command := pgherd.tell_router(key, said);
        EXIT WHEN command = 'done';
        parts := '{rows}';
        is_query := left(command, 4) <> 'run ';
        used_path := CASE left(command, 4) WHEN 'see ' THEN 'pg_catalog, pg_temp' ELSE path END;
        -- Functions of ours only: whatever else is run might hand it on.
        is_ours := command ~ E'^(run|ask) SELECT pgherd\\.';
        used_key := CASE WHEN is_ours THEN pgherd.pass_of_definer(key, current_user) ELSE '' END;
        command := substr(command, 5);
        BEGIN
            PERFORM pg_catalog.set_config('pgherd.inside', used_key, true),
                pg_catalog.set_config('pgherd.definer', CASE WHEN is_ours THEN current_user::text ELSE '' END, true),
                pg_catalog.set_config('search_path', used_path, true);
            IF is_query THEN
                FOR found IN EXECUTE command LOOP
                    parts := pg_catalog.array_append(parts, found::pg_catalog.text);
                END LOOP;
            ELSE
                EXECUTE command;
            END IF;
            PERFORM pg_catalog.set_config('pgherd.inside', '', true), pg_catalog.set_config('pgherd.definer', '', true),
                pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
                hint = PG_EXCEPTION_HINT;
            parts := ARRAY['failed', state, message, detail, hint];
        END;
        SELECT string_agg(length(p.part) || ' ' || p.part, '' ORDER BY p.number) INTO said
            FROM unnest(parts) WITH ORDINALITY p(part, number);
    END LOOP;
END
$$;

-- Tells the router of a definition, and does what that makes necessary.
CREATE OR REPLACE FUNCTION pgherd.define_inside() RETURNS event_trigger
LANGUAGE plpgsql AS $$
DECLARE
    key pg_catalog.text := pg_catalog.current_setting('pgherd.key', true);
    path pg_catalog.text := pg_catalog.current_setting('search_path');
    context pg_catalog.text;
    said pg_catalog.text;
BEGIN
    IF key OPERATOR(pg_catalog.<>) '' THEN
        PERFORM pg_catalog.set_config('pgherd.key', '', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
        GET DIAGNOSTICS context = PG_CONTEXT;
        said := concat_ws(E'\n', TG_EVENT, TG_TAG, pgherd.changes_roles(), current_user, substr(context, strpos(context, E'\n') + 1));
        PERFORM pgherd.obey(key, said, path);
        PERFORM pg_catalog.set_config('search_path', path, true);
    END IF;
END
$$;

DO $$
DECLARE
    added record;
BEGIN
    -- Event triggers run in the order of their names: pgherd_definitions before pgherd_follow.
    FOR added IN SELECT * FROM (VALUES ('pgherd_start_1', 'ddl_command_start', 'lend_key'),
            ('pgherd_start_2', 'ddl_command_start', 'define_inside'), ('pgherd_follow_1', 'ddl_command_end', 'lend_key'),
            ('pgherd_follow_2', 'ddl_command_end', 'define_inside')) AS x(name, event, function)
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger t WHERE t.evtname = x.name)
    LOOP
        EXECUTE pg_catalog.format('CREATE EVENT TRIGGER %I ON %s EXECUTE FUNCTION pgherd.%I()', added.name, added.event, added.function);
    END LOOP;
END
$$;

-- Changing metadata --------------------------------------------------------------------------------------------------

-- method 'h': groups[i] gets the shard of remainder i - 1; colocation NULL makes a new group (is_default: one that
-- tables created with colocate_with 'default' may join). method 'n': groups are all that have a copy.
-- Returns {colocation, epoch, shards: [{id, remainder, group}]}.
CREATE OR REPLACE FUNCTION pgherd.register_table(relation regclass, method "char", key name, colocation int, is_default bool,
    groups int[]) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key_type oid := 0;
    key_collation oid := 0;
    placement_epoch bigint;
    shards jsonb := '[]';
    shard bigint;
    placement bigint;
BEGIN
    PERFORM pgherd.require_owner(relation);
    IF method = 'h' THEN
        SELECT pgherd.base_type(a.atttypid), a.attcollation INTO STRICT key_type, key_collation
            FROM pg_attribute a WHERE a.attrelid = relation AND a.attname = key AND a.attnum > 0 AND NOT a.attisdropped;
    ELSIF colocation IS NULL THEN
        SELECT c.colocationid INTO colocation FROM pgherd.pg_dist_colocation c WHERE c.replicationfactor = -1
            ORDER BY 1 LIMIT 1;
    END IF;
    IF colocation IS NULL THEN
        INSERT INTO pgherd.pg_dist_colocation
            (shardcount, replicationfactor, distributioncolumntype, distributioncolumncollation, isdefault)
            VALUES (CASE WHEN method = 'h' THEN cardinality(groups) ELSE 1 END, CASE WHEN method = 'h' THEN 1 ELSE -1 END,
                key_type, key_collation, is_default)
            RETURNING colocationid INTO colocation;
    END IF;
    SELECT c.placementepoch INTO STRICT placement_epoch FROM pgherd.pg_dist_colocation c WHERE c.colocationid = colocation;
    INSERT INTO pgherd.pg_dist_partition (logicalrelid, partmethod, partkey, colocationid, repmodel, schemaname, tablename)
        SELECT relation, method, key, colocation, CASE WHEN method = 'h' THEN 's' ELSE 't' END, n.nspname, c.relname
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = relation;
    IF method = 'h' THEN
        shard := pgherd.next_number('pgherd.pg_dist_shardid_seq', cardinality(groups));
        placement := pgherd.next_number('pgherd.pg_dist_placement_placementid_seq', cardinality(groups));
        WITH made AS (
            INSERT INTO pgherd.pg_dist_shard (logicalrelid, shardid, remainder)
            SELECT relation, shard + r.i, r.i FROM generate_series(0, cardinality(groups) - 1) r(i)
            RETURNING shardid, remainder
        ), placed AS (
            INSERT INTO pgherd.pg_dist_placement (placementid, shardid, groupid)
            SELECT placement + m.remainder, m.shardid, groups[m.remainder + 1] FROM made m
        )
        SELECT jsonb_agg(jsonb_build_object('id', m.shardid, 'remainder', m.remainder, 'group', groups[m.remainder + 1])
            ORDER BY m.remainder) INTO shards FROM made m;
    ELSE
        shard := pgherd.next_number('pgherd.pg_dist_shardid_seq');
        INSERT INTO pgherd.pg_dist_shard (logicalrelid, shardid) VALUES (relation, shard);
        INSERT INTO pgherd.pg_dist_placement (shardid, groupid) SELECT shard, g FROM unnest(groups) g;
        PERFORM pgherd.guard_reference(relation);
        SELECT jsonb_agg(jsonb_build_object('id', shard, 'remainder', NULL, 'group', g) ORDER BY g) INTO shards
            FROM unnest(groups) g;
    END IF;
    RETURN jsonb_build_object('colocation', colocation, 'epoch', placement_epoch, 'shards', shards);
END
$$;

-- Forgets a table that is no longer distributed, or no longer there. A colocation group goes with its last table.
CREATE OR REPLACE FUNCTION pgherd.unregister_table(relation oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_class c WHERE c.oid = relation) THEN
        PERFORM pgherd.require_owner(relation);
        -- A reference table's; a distributed table's went with its child.
        PERFORM pgherd.unguard(relation::regclass);
    END IF;
    DELETE FROM pgherd.pg_dist_placement p USING pgherd.pg_dist_shard s
        WHERE s.shardid = p.shardid AND s.logicalrelid = relation::regclass;
    DELETE FROM pgherd.pg_dist_shard s WHERE s.logicalrelid = relation::regclass;
    DELETE FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = relation::regclass;
    DELETE FROM pgherd.leaf l WHERE l.relation = $1;
    DELETE FROM pgherd.pg_dist_colocation c
        WHERE NOT EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.colocationid = c.colocationid);
    PERFORM pgherd.map_owners();
END
$$;

-- After RENAME, SET SCHEMA or a rename of the distribution column: the metadata follows the catalog, the child the table.
CREATE OR REPLACE FUNCTION pgherd.table_renamed(relation regclass, key name) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    method "char";
BEGIN
    PERFORM pgherd.require_owner(relation);
    UPDATE pgherd.pg_dist_partition p SET schemaname = n.nspname, tablename = c.relname, partkey = coalesce(key, p.partkey)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = relation AND p.logicalrelid = relation RETURNING p.partmethod INTO method;
    IF method = 'h' THEN
        PERFORM pgherd.attach_child(relation);
    END IF;
END
$$;

-- The distributed tables that SQL run on the coordinator has dropped (DROP SCHEMA … CASCADE, DROP OWNED, a function), with
-- what the workers still have of them.
CREATE OR REPLACE FUNCTION pgherd.dropped_tables() RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', p.logicalrelid::oid::bigint, 'schema', p.schemaname, 'name', p.tablename, 'method', p.partmethod,
        'shards', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                'id', s.shardid, 'remainder', s.remainder, 'group', l.groupid) ORDER BY s.remainder, l.groupid), '[]')
            FROM pgherd.pg_dist_shard s JOIN pgherd.pg_dist_placement l USING (shardid)
            WHERE s.logicalrelid = p.logicalrelid))), '[]')
    FROM pgherd.pg_dist_partition p
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = p.logicalrelid)
$$;

-- TRUNCATE of a table that is partitioned here: no rows are, but rights, locks and sequences.
CREATE OR REPLACE FUNCTION pgherd.begin_truncate(relation regclass, restart_identity bool) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence text;
BEGIN
    IF NOT has_table_privilege(relation, 'TRUNCATE') THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = format('permission denied for table %s', (SELECT relname FROM pg_class WHERE oid = relation));
    END IF;
    EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', relation);
    FOR sequence IN SELECT d.objid::regclass FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        WHERE restart_identity AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
            AND d.refobjid = relation AND d.deptype IN ('a', 'i')
    LOOP
        EXECUTE format('ALTER SEQUENCE %s RESTART', sequence);
    END LOOP;
END
$$;

-- An identity column's next value. PostgreSQL asks who inserts for no right on its sequence; nextval() by itself does.
-- For anyone who may write the column: the role that the session has set, since the current one is this function's owner.
-- A SECURITY DEFINER function in between does not count; who wrote it gets nothing that the session may not have.
CREATE OR REPLACE FUNCTION pgherd.draw_identity(sequence regclass) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    owner record;
BEGIN
    SELECT c.oid, c.relname, c.relnamespace, d.refobjsubid::smallint AS number INTO owner
        FROM pg_depend d JOIN pg_class c ON c.oid = d.refobjid
        WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.objsubid = 0
            AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype = 'i';
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('permission denied for sequence %s',
            coalesce((SELECT relname::text FROM pg_class WHERE oid = sequence), sequence::oid::text));
    END IF;
    IF NOT (has_schema_privilege(caller, owner.relnamespace, 'USAGE') AND (has_any_column_privilege(caller, owner.oid, 'INSERT')
        OR has_column_privilege(caller, owner.oid, owner.number, 'UPDATE'))) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('permission denied for table %s', owner.relname);
    END IF;
    RETURN nextval(sequence);
END
$$;

-- What INSERT calls. Inlined: who may use the sequence pays for no function.
CREATE OR REPLACE FUNCTION pgherd.next_identity(sequence regclass) RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN pg_catalog.has_sequence_privilege($1, 'USAGE, UPDATE') THEN pg_catalog.nextval($1)
        ELSE pgherd.draw_identity($1) END
$$;

-- Operations ---------------------------------------------------------------------------------------------------------

-- Whether somebody is at it: the router that ran it may be gone.
CREATE OR REPLACE FUNCTION pgherd.is_under_way(o pgherd.operation) RETURNS bool
LANGUAGE sql STABLE AS $$
    SELECT $1.state = 'running' AND EXISTS (SELECT FROM pg_catalog.pg_stat_activity a WHERE a.pid = $1.pid)
$$;

-- Forgets what is of no use any more: finished long ago or before many others, or about a table or index that is gone.
CREATE OR REPLACE FUNCTION pgherd.forget_operations() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM pgherd.operation o WHERE NOT pgherd.is_under_way(o) AND (
        (o.state = 'done' AND (o.ended < now() - interval '7 days' OR o.id <= (SELECT max(x.id) - 100 FROM pgherd.operation x)))
        OR (o.relation <> 0 AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = o.relation))
        OR (o.state <> 'done' AND o.index IS NOT NULL AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = o.index))
        OR (o.state <> 'done' AND o.kind <> 'create index' AND o.started < now() - interval '30 days'))
$$;

-- Begins an operation, or takes up again one of the same statement that has not come to its end. index_oid: the index that
-- it has made here already.
CREATE OR REPLACE FUNCTION pgherd.begin_operation(kind text, statement text, relation oid, index_name name,
    OUT id bigint, OUT index_oid oid, OUT resumed bool)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found pgherd.operation;
BEGIN
    PERFORM pgherd.forget_operations();
    SELECT o.* INTO found FROM pgherd.operation o
        WHERE o.kind = $1 AND o.statement = $2 AND o.relation = $3 AND o.state <> 'done' AND NOT pgherd.is_under_way(o)
            AND (o.username = session_user
                OR EXISTS (SELECT FROM pg_class c WHERE c.oid = $3 AND pg_has_role(session_user, c.relowner, 'MEMBER')))
        ORDER BY o.id DESC LIMIT 1 FOR UPDATE;
    resumed := found.id IS NOT NULL;
    IF resumed THEN
        id := found.id;
        -- Broken off before the index was written down: it is known by the name that the statement gives it.
        SELECT i.indexrelid INTO index_oid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = $3 AND CASE WHEN found.index IS NOT NULL THEN i.indexrelid = found.index
                ELSE c.relname = index_name AND i.indexrelid <> ALL (found.known_indexes) END;
        UPDATE pgherd.operation o SET state = 'running', username = session_user, attempts = o.attempts + 1, error = NULL,
                pid = pg_backend_pid(), ended = NULL, index = index_oid
            WHERE o.id = found.id;
    ELSE
        INSERT INTO pgherd.operation AS o (kind, statement, relation, known_indexes)
            SELECT $1, $2, $3, coalesce(array_agg(i.indexrelid), '{}') FROM pg_index i WHERE i.indrelid = $3
            RETURNING o.id INTO id;
    END IF;
END
$$;

-- Writes down the steps: [{group, action, command}]. Those of the same number and command that are done stay so, but for
-- `again`.
CREATE OR REPLACE FUNCTION pgherd.plan_operation(operation bigint, index_oid oid, steps jsonb, again bool) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE pgherd.operation o SET index = index_oid WHERE o.id = $1 AND o.username = session_user;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    DELETE FROM pgherd.operation_step s WHERE s.operation = $1 AND (again OR s.state <> 'done'
        OR s.command IS DISTINCT FROM steps->(s.number - 1)->>'command');
    INSERT INTO pgherd.operation_step (operation, number, groupid, action, command)
        SELECT $1, x.number, (x.step->>'group')::int, x.step->>'action', x.step->>'command'
        FROM jsonb_array_elements(steps) WITH ORDINALITY x(step, number)
        ON CONFLICT DO NOTHING;
END
$$;

-- A step begins ('running') or ends.
CREATE OR REPLACE FUNCTION pgherd.operation_step(operation bigint, number int, state text, error text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pgherd.operation_step s SET state = $3, error = $4,
            started = CASE WHEN $3 = 'running' THEN clock_timestamp() ELSE s.started END,
            ended = CASE WHEN $3 = 'running' THEN NULL ELSE clock_timestamp() END
        FROM pgherd.operation o
        WHERE o.id = $1 AND o.username = session_user AND s.operation = o.id AND s.number = $2
$$;

-- operation NULL: whatever this backend has begun and not ended.
CREATE OR REPLACE FUNCTION pgherd.end_operation(operation bigint, state text, error text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE pgherd.operation o SET state = $2, error = $3, ended = clock_timestamp()
        WHERE o.username = session_user AND (o.id = $1 OR ($1 IS NULL AND o.pid = pg_backend_pid() AND o.state = 'running'))
$$;

-- An operation that has changed nothing leaves no trace.
CREATE OR REPLACE FUNCTION pgherd.forget_operation(operation bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM pgherd.operation o WHERE o.id = $1 AND o.username = session_user
$$;

-- Another statement has changed the table's indexes: what was broken off before it was known which index it makes cannot be
-- told from that statement's any more.
CREATE OR REPLACE FUNCTION pgherd.indexes_changed(relation oid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pgherd.note_change('pg_class'::regclass, $1);
    DELETE FROM pgherd.operation o WHERE o.relation = $1 AND o.kind = 'create index' AND o.state <> 'done'
        AND (o.index IS NULL OR NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = o.index)) AND NOT pgherd.is_under_way(o)
$$;

-- What distributes the tables as they are, in an order in which it can be run: beside a dump, whose tables are local when it
-- is restored. What is referenced goes first.
CREATE OR REPLACE VIEW pgherd.pgherd_distribution AS
    WITH RECURSIVE refers(relation, to_relation) AS (
        SELECT DISTINCT k.conrelid, k.confrelid FROM pg_catalog.pg_constraint k
            JOIN pgherd.pg_dist_partition f ON f.logicalrelid = k.conrelid JOIN pgherd.pg_dist_partition r ON r.logicalrelid = k.confrelid
            WHERE k.contype = 'f' AND k.conrelid <> k.confrelid
    ), level(relation, level) AS (
        SELECT p.logicalrelid::pg_catalog.oid, 0 FROM pgherd.pg_dist_partition p
        UNION SELECT r.relation, l.level + 1 FROM level l JOIN refers r ON r.to_relation = l.relation WHERE l.level < 100
    ), sorted AS (
        SELECT p.logicalrelid, p.partmethod, p.partkey, p.colocationid, c.shardcount,
            pg_catalog.format('%I.%I', p.schemaname, p.tablename) AS name,
            pg_catalog.row_number() OVER (ORDER BY p.partmethod <> 'n', (SELECT pg_catalog.max(l.level) FROM level l
                WHERE l.relation = p.logicalrelid), p.logicalrelid::pg_catalog.oid) AS number
        FROM pgherd.pg_dist_partition p JOIN pgherd.pg_dist_colocation c USING (colocationid)
        -- Partitions follow their table.
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN pgherd.pg_dist_partition o ON o.logicalrelid = i.inhparent
            WHERE i.inhrelid = p.logicalrelid)
    )
    SELECT s.number, s.logicalrelid AS table_name, CASE s.partmethod
        WHEN 'n' THEN pg_catalog.format('SELECT create_reference_table(%L);', s.name)
        ELSE pg_catalog.format('SELECT create_distributed_table(%L, %L, %s);', s.name, s.partkey,
            CASE f.name WHEN s.name THEN pg_catalog.format('colocate_with => ''none'', shard_count => %s', s.shardcount)
                ELSE pg_catalog.format('colocate_with => %L', f.name) END) END AS command
    FROM sorted s JOIN (SELECT DISTINCT ON (o.colocationid) o.colocationid, o.name FROM sorted o ORDER BY o.colocationid, o.number) f
        USING (colocationid)
    ORDER BY 1;

CREATE OR REPLACE VIEW pgherd.pgherd_operations AS
    SELECT o.id AS operation, o.kind, CASE WHEN o.relation <> 0 THEN o.relation::regclass END AS table_name,
        CASE WHEN r.is_mine THEN o.statement END AS statement, o.username,
        CASE WHEN o.state = 'running' AND NOT pgherd.is_under_way(o) THEN 'interrupted' ELSE o.state END AS state,
        o.attempts, count(s.number) AS steps, count(s.number) FILTER (WHERE s.state = 'done') AS steps_done,
        CASE WHEN r.is_mine THEN o.error END AS error, o.started, o.ended
    FROM pgherd.operation o
        LEFT JOIN pgherd.operation_step s ON s.operation = o.id
        CROSS JOIN LATERAL (SELECT coalesce((SELECT pg_catalog.pg_has_role(a.oid, 'MEMBER') FROM pg_catalog.pg_roles a
            WHERE a.rolname = o.username), false)) r(is_mine)
    -- What was left half done and is gone since is not left any more.
    WHERE o.state = 'done' OR pgherd.is_under_way(o)
        OR ((o.relation = 0 OR EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = o.relation))
            AND (o.index IS NULL OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indexrelid = o.index)))
    GROUP BY o.id, r.is_mine;

CREATE OR REPLACE VIEW pgherd.pgherd_operation_steps AS
    SELECT s.operation, s.number, s.groupid, s.action, CASE WHEN r.is_mine THEN s.command END AS command, s.state,
        CASE WHEN r.is_mine THEN s.error END AS error, s.started, s.ended
    FROM pgherd.operation o
        JOIN pgherd.operation_step s ON s.operation = o.id
        CROSS JOIN LATERAL (SELECT coalesce((SELECT pg_catalog.pg_has_role(a.oid, 'MEMBER') FROM pg_catalog.pg_roles a
            WHERE a.rolname = o.username), false)) r(is_mine);

-- Nodes, colocation groups, tables and shards as crates/control reads them (ClusterState).
CREATE OR REPLACE FUNCTION pgherd.cluster_state() RETURNS jsonb
LANGUAGE plpgsql STABLE SET jit = off AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT pg_catalog.jsonb_build_object(
        'epoch', (SELECT epoch FROM pgherd.epoch),
        'nodes', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('id', n.nodeid, 'group', n.groupid,
                'host', n.nodename, 'port', n.nodeport, 'is_active', n.isactive, 'role', n.noderole,
                'should_have_shards', n.shouldhaveshards) ORDER BY n.groupid, n.nodeid), '[]') FROM pgherd.pg_dist_node n),
        'colocations', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('id', c.colocationid,
                'shard_count', c.shardcount, 'replication_factor', c.replicationfactor,
                'key_type', c.distributioncolumntype::bigint, 'key_collation', c.distributioncolumncollation::bigint,
                'epoch', c.placementepoch, 'is_default', c.isdefault) ORDER BY c.colocationid), '[]')
            FROM pgherd.pg_dist_colocation c),
        'tables', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('oid', p.logicalrelid::oid::bigint,
                'schema', n.nspname, 'name', c.relname, 'method', p.partmethod, 'key', p.partkey,
                'colocation', p.colocationid, 'shards', s.shards,
                'is_partitioned', c.relkind = 'p' AND NOT EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = c.oid),
                'parent', CASE WHEN c.relispartition THEN
                    (SELECT i.inhparent::bigint FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) END)
                ORDER BY p.logicalrelid), '[]')
            FROM pgherd.pg_dist_partition p
            JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN (SELECT s.logicalrelid, pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('id', s.shardid,
                    'remainder', s.remainder, 'group', l.groupid) ORDER BY s.remainder, l.groupid) AS shards
                FROM pgherd.pg_dist_shard s JOIN pgherd.pg_dist_placement l USING (shardid)
                GROUP BY s.logicalrelid) s ON s.logicalrelid = p.logicalrelid))
    );
END
$$;

-- Adds a node, or gives the id of the one that is there. Superusers and the owner of schema pgherd only (table rights).
CREATE OR REPLACE FUNCTION pgherd.register_node(nodename text, nodeport int, groupid int DEFAULT -1,
    noderole text DEFAULT 'primary', nodecluster text DEFAULT 'default') RETURNS int
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found int;
BEGIN
    LOCK TABLE pgherd.pg_dist_node IN SHARE ROW EXCLUSIVE MODE;
    SELECT n.nodeid INTO found FROM pgherd.pg_dist_node n WHERE n.nodename = $1 AND n.nodeport = $2;
    IF found IS NULL THEN
        IF groupid = -1 THEN
            groupid := pgherd.next_number('pgherd.pg_dist_groupid_seq');
        END IF;
        INSERT INTO pgherd.pg_dist_node AS n (groupid, nodename, nodeport, noderole, nodecluster, hasmetadata, metadatasynced,
                shouldhaveshards)
            VALUES ($3, $1, $2, $4, $5, $3 = 0, $3 = 0, $3 <> 0)
            RETURNING n.nodeid INTO found;
    END IF;
    RETURN found;
END
$$;

-- What users call ----------------------------------------------------------------------------------------------------

-- What the workers run, they run as the session's role: not for the code of another one, such as a SECURITY DEFINER function.
-- `caller` is whoever calls the one function that may call this; the context tells that it does.
CREATE OR REPLACE FUNCTION pgherd.run_on_workers(caller name, command text, node text DEFAULT NULL, port int DEFAULT NULL,
    OUT nodename text, OUT nodeport int, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF split_part(context, E'\n', 2) NOT IN ('SQL statement "SELECT r.* FROM pgherd.run_on_workers(current_user, command) r"',
            'SQL statement "SELECT r.* FROM pgherd.run_on_workers(current_user, command, node, port) r"') THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'permission denied for function run_on_workers';
    END IF;
    IF caller <> coalesce(nullif(current_setting('role'), 'none'), session_user) THEN
        RAISE EXCEPTION USING ERRCODE = '42501',
            MESSAGE = 'run_command_on_workers cannot be used with the rights of another role',
            DETAIL = format('It is called as "%s" in a session of "%s", as whom the workers would run it.', caller,
                coalesce(nullif(current_setting('role'), 'none'), session_user));
    END IF;
    -- A constant in the text, so that postgres_fdw always sends it along.
    RETURN QUERY EXECUTE format(
        'SELECT r.nodename, r.nodeport, r.success, r.result FROM pgherd.remote_command r WHERE r.command = %L%s', command,
        CASE WHEN node IS NOT NULL THEN format(' AND r.nodename = %L AND r.nodeport = %L::int4', node, port) END);
END
$$;
DROP FUNCTION IF EXISTS pgherd.run_on_workers(name, text);

CREATE OR REPLACE FUNCTION pgherd.run_command_on_workers(command text, parallel bool DEFAULT true,
    OUT nodename text, OUT nodeport int, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY SELECT r.* FROM pgherd.run_on_workers(current_user, command) r;
END
$$;

-- What a size function says of a table on each worker.
DROP FUNCTION IF EXISTS pgherd.sizes_on_workers(text, text);
CREATE OR REPLACE FUNCTION pgherd.sizes_on_workers(table_name text, size_function text, fork text,
    OUT nodename text, OUT nodeport int, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF size_function !~ '^pg_[a-z_]+_size$' OR fork !~ '^[a-z]+$' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format('%s is no function of sizes', size_function);
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT r.nodename, r.nodeport, r.success, r.result FROM pgherd.remote_command r WHERE r.command = %L',
        format('SELECT coalesce(sum(pg_catalog.%I(relid%s)), 0) FROM pg_catalog.pg_partition_tree(%L::pg_catalog.regclass) '
            'WHERE isleaf', size_function, coalesce(', ' || quote_literal(fork), ''), table_name));
END
$$;

-- STABLE, so that a view's size column costs nothing where it is not read. The sum over the workers of a size function of each table; over the coordinator too for reference tables.
-- Of an index it is that of the same name there.
DROP FUNCTION IF EXISTS pgherd.distributed_size(regclass, text, bool);
CREATE OR REPLACE FUNCTION pgherd.distributed_size(relation regclass, size_function text, fail_on_error bool, fork text DEFAULT NULL)
    RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dist record;
    total numeric := 0;
    node record;
BEGIN
    SELECT p.partmethod, pgherd.qualified(c.relnamespace, c.relname) AS name INTO dist
        FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
            JOIN pgherd.pg_dist_partition p ON p.logicalrelid = coalesce(i.indrelid, c.oid) WHERE c.oid = relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42P16',
            MESSAGE = format('cannot calculate the size because relation "%s" is not distributed',
                coalesce((SELECT c.relname FROM pg_class c WHERE c.oid = relation), relation::text));
    END IF;
    IF dist.partmethod = 'n' THEN
        EXECUTE format('SELECT pg_catalog.%I($1)', size_function) INTO total USING relation;
    END IF;
    FOR node IN SELECT * FROM pgherd.sizes_on_workers(dist.name, size_function, fork) LOOP
        IF node.success THEN
            total := total + node.result::numeric;
        ELSIF fail_on_error THEN
            RAISE EXCEPTION USING ERRCODE = '08006',
                MESSAGE = format('could not get the size of table %s from node %s:%s', dist.name, node.nodename, node.nodeport),
                DETAIL = node.result;
        END IF;
    END LOOP;
    RETURN total;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.citus_relation_size(logicalrelid regclass, fail_on_error bool DEFAULT true) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT pgherd.distributed_size($1, 'pg_relation_size', $2) $$;
CREATE OR REPLACE FUNCTION pgherd.citus_table_size(logicalrelid regclass, fail_on_error bool DEFAULT true) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT pgherd.distributed_size($1, 'pg_table_size', $2) $$;
CREATE OR REPLACE FUNCTION pgherd.citus_total_relation_size(logicalrelid regclass, fail_on_error bool DEFAULT true) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT pgherd.distributed_size($1, 'pg_total_relation_size', $2) $$;

-- (shardid, bytes) of every shard: one question to each worker.
CREATE OR REPLACE FUNCTION pgherd.shard_sizes(OUT shardid bigint, OUT size bigint) RETURNS SETOF record
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.shardid, x.size
    FROM pgherd.remote_command w,
        LATERAL (SELECT e.key::bigint, e.value::bigint FROM pg_catalog.jsonb_each_text(w.result::jsonb) e) x(shardid, size)
    WHERE w.command = $c$
        SELECT pg_catalog.jsonb_object_agg(pg_catalog.substr(n.nspname, 8), pg_catalog.pg_total_relation_size(c.oid))
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname ~ '^pgherd_[0-9]+$' AND c.relkind IN ('r', 'p')$c$
        AND w.success AND w.result IS NOT NULL
$$;

CREATE OR REPLACE FUNCTION pgherd.citus_get_active_worker_nodes(OUT node_name text, OUT node_port bigint) RETURNS SETOF record
LANGUAGE sql STABLE AS $$
    SELECT n.nodename, n.nodeport::bigint FROM pgherd.pg_dist_node n
    WHERE n.isactive AND n.noderole = 'primary' AND n.groupid <> 0 ORDER BY n.nodeid
$$;
CREATE OR REPLACE FUNCTION pgherd.master_get_active_worker_nodes(OUT node_name text, OUT node_port bigint) RETURNS SETOF record
LANGUAGE sql STABLE AS $$ SELECT * FROM pgherd.citus_get_active_worker_nodes() $$;

-- compute_partition_hash_value of one column (partbounds.c), as unsigned: hash_combine64(0, h) = h + 0x49a0f4dd15e5a8e3; NULL
-- gives 0. The seed is HASH_PARTITION_SEED.
CREATE OR REPLACE FUNCTION pgherd.partition_hash(relation regclass, value text) RETURNS numeric
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    col record;
    hash numeric;
BEGIN
    SELECT format_type(a.atttypid, a.atttypmod) AS type,
            (SELECT pgherd.qualified(c.collnamespace, c.collname) FROM pg_collation c WHERE c.oid = a.attcollation) AS collation
        INTO col
        FROM pgherd.pg_dist_partition p JOIN pg_attribute a ON a.attrelid = p.logicalrelid AND a.attname = p.partkey
            AND NOT a.attisdropped
        WHERE p.logicalrelid = relation AND p.partmethod = 'h';
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = '42P16', MESSAGE = format('relation "%s" is not hash distributed', relation);
    END IF;
    IF value IS NULL THEN
        RETURN 0;
    END IF;
    -- The hash of a record of one column is that column's; hash support functions themselves may be declared for another type.
    EXECUTE format('SELECT hash_record_extended(ROW(CAST($1 AS %s)%s), 8816678312871386365)::numeric', col.type,
        coalesce(' COLLATE ' || col.collation, '')) INTO STRICT hash USING value;
    RETURN mod(hash + 18446744073709551616 + 5305509591434766563, 18446744073709551616);
END
$$;

-- Two signatures in place of Citus's "any": an untyped literal is taken as text.
CREATE OR REPLACE FUNCTION pgherd.get_shard_id_for_distribution_column(table_name regclass, distribution_value text DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    found bigint;
BEGIN
    SELECT s.shardid INTO found FROM pgherd.pg_dist_shard s JOIN pgherd.pg_dist_partition p USING (logicalrelid)
        WHERE p.logicalrelid = $1 AND p.partmethod = 'n';
    IF found IS NULL THEN
        SELECT s.shardid INTO found
            FROM pgherd.pg_dist_partition p JOIN pgherd.pg_dist_colocation c USING (colocationid)
                JOIN pgherd.pg_dist_shard s USING (logicalrelid)
            WHERE p.logicalrelid = $1 AND s.remainder = pg_catalog.mod(pgherd.partition_hash($1, $2), c.shardcount::numeric);
    END IF;
    IF found IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42P16', MESSAGE = pg_catalog.format('relation "%s" is not distributed', $1);
    END IF;
    RETURN found;
END
$$;
CREATE OR REPLACE FUNCTION pgherd.get_shard_id_for_distribution_column(table_name regclass, distribution_value anyelement)
RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT pgherd.get_shard_id_for_distribution_column($1, $2::text) $$;

CREATE OR REPLACE FUNCTION pgherd.citus_version() RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT 'Citus 13.0.0 compatible, pgherd 0.1.0 on ' || pg_catalog.split_part(pg_catalog.version(), ',', 1)
$$;

-- What the router carries out itself: here only for their names and signatures. These run where a call reached the
-- coordinator, which means that the router could not see its arguments.
CREATE OR REPLACE FUNCTION pgherd.refuse_call(function_name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '0A000',
        MESSAGE = 'function must be called at the top level with constant arguments',
        DETAIL = pg_catalog.format('Function %s() is carried out by the router.', function_name),
        HINT = pg_catalog.format('Run SELECT %s(…) as a statement of its own.', function_name);
END
$$;

DO $stubs$
DECLARE
    f record;
BEGIN
    IF to_regtype('pgherd.distribution_type') IS NULL THEN
        CREATE TYPE pgherd.distribution_type AS ENUM ('hash', 'range', 'append');
    END IF;
    FOR f IN SELECT * FROM (VALUES
        ('create_distributed_table', 'table_name regclass, distribution_column text, distribution_type pgherd.distribution_type DEFAULT ''hash'', '
            'colocate_with text DEFAULT ''default'', shard_count int DEFAULT NULL', 'void'),
        ('create_distributed_table_concurrently', 'table_name regclass, distribution_column text, '
            'distribution_type pgherd.distribution_type DEFAULT ''hash'', colocate_with text DEFAULT ''default'', shard_count int DEFAULT NULL', 'void'),
        ('create_reference_table', 'table_name regclass', 'void'),
        ('undistribute_table', 'table_name regclass, cascade_via_foreign_keys bool DEFAULT false', 'void'),
        ('alter_distributed_table', 'table_name regclass, distribution_column text DEFAULT NULL, shard_count int DEFAULT NULL, '
            'colocate_with text DEFAULT NULL, cascade_to_colocated bool DEFAULT NULL', 'void'),
        ('truncate_local_data_after_distributing_table', 'function_name regclass', 'void'),
        ('citus_add_node', 'nodename text, nodeport int, groupid int DEFAULT -1, noderole text DEFAULT ''primary'', '
            'nodecluster text DEFAULT ''default''', 'int'),
        ('master_add_node', 'nodename text, nodeport int, groupid int DEFAULT -1, noderole text DEFAULT ''primary'', '
            'nodecluster text DEFAULT ''default''', 'int'),
        ('citus_remove_node', 'nodename text, nodeport int', 'void'),
        ('master_remove_node', 'nodename text, nodeport int', 'void'),
        ('citus_set_coordinator_host', 'host text, port int DEFAULT NULL, node_role text DEFAULT ''primary'', '
            'node_cluster text DEFAULT ''default''', 'void'),
        ('citus_activate_node', 'nodename text, nodeport int', 'int'),
        ('citus_disable_node', 'nodename text, nodeport int, synchronous bool DEFAULT false', 'void'),
        ('citus_set_node_property', 'nodename text, nodeport int, property text, value bool', 'void')
        ) AS v(name, arguments, result)
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION pgherd.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.name, f.arguments, f.result,
            CASE WHEN f.name ~ '^create_(distributed|reference)_table' THEN format('BEGIN PERFORM pgherd.call_inside(%L, ROW(%s)::pg_catalog.text); END',
                f.name, CASE WHEN f.name ~ 'reference' THEN 'table_name::pg_catalog.oid' ELSE 'table_name::pg_catalog.oid, '
                    'distribution_column, distribution_type, colocate_with, shard_count' END)
            ELSE format('BEGIN PERFORM pgherd.refuse_call(%L); END', f.name) END);
    END LOOP;
END
$stubs$;

-- The key with which the router is told. Only for the one function that calls it.
CREATE OR REPLACE FUNCTION pgherd.lend_own_key() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF split_part(context, E'\n', 2) !~ E'^PL/pgSQL function pgherd\\.call_inside\\(text,text\\) line [0-9]+ at [a-z ]+$' THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'permission denied for function lend_own_key';
    END IF;
    RETURN pgherd.make_pass('definition ' || pg_current_xact_id(), '');
END
$$;

-- A call of a function that the router carries out, from inside of something that runs here.
CREATE OR REPLACE FUNCTION pgherd.call_inside(function text, given text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    path pg_catalog.text := pg_catalog.current_setting('search_path');
    key pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    IF current_setting('pgherd.routed', true) IS DISTINCT FROM 'on' THEN
        PERFORM pgherd.refuse_call(function);
    END IF;
    key := pgherd.lend_own_key();
    PERFORM pgherd.obey(key, concat_ws(E'\n', 'own_call', function, pgherd.changes_roles(), current_user, given), path);
    PERFORM set_config('search_path', path, true);
END
$$;

-- Views that users read ----------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW pgherd.citus_tables AS
    SELECT p.logicalrelid AS table_name,
        CASE p.partmethod WHEN 'n' THEN 'reference' ELSE 'distributed' END AS citus_table_type,
        coalesce(p.partkey, '<none>') AS distribution_column,
        p.colocationid AS colocation_id,
        pg_catalog.pg_size_pretty(pgherd.citus_total_relation_size(p.logicalrelid, false)) AS table_size,
        (SELECT count(*) FROM pgherd.pg_dist_shard s WHERE s.logicalrelid = p.logicalrelid) AS shard_count,
        pg_catalog.pg_get_userbyid(c.relowner) AS table_owner,
        a.amname AS access_method
    FROM pgherd.pg_dist_partition p
    JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
    LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam;

-- The sizes are asked for only where shard_size is read: otherwise the outer join is removed.
CREATE OR REPLACE VIEW pgherd.citus_shards AS
    SELECT p.logicalrelid AS table_name,
        s.shardid,
        CASE p.partmethod WHEN 'n' THEN p.logicalrelid::text
            ELSE pg_catalog.format('pgherd_%s.%I', s.shardid, c.relname) END AS shard_name,
        CASE p.partmethod WHEN 'n' THEN 'reference' ELSE 'distributed' END AS citus_table_type,
        p.colocationid AS colocation_id,
        n.nodename,
        n.nodeport,
        z.size AS shard_size
    FROM pgherd.pg_dist_partition p
    JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
    JOIN pgherd.pg_dist_shard s ON s.logicalrelid = p.logicalrelid
    JOIN pgherd.pg_dist_placement l ON l.shardid = s.shardid
    JOIN pgherd.pg_dist_node n ON n.groupid = l.groupid AND n.noderole = 'primary'
    LEFT JOIN (SELECT shardid, sum(size)::bigint AS size FROM pgherd.shard_sizes() GROUP BY shardid) z ON z.shardid = s.shardid;

CREATE OR REPLACE VIEW pgherd.citus_nodes AS
    SELECT nodename, nodeport, CASE groupid WHEN 0 THEN 'coordinator' ELSE 'worker' END AS role, isactive AS active
    FROM pgherd.pg_dist_node;

-- Samples that functions take --------------------------------------------------------------------------------------

-- PostgreSQL takes no samples of foreign tables, and reads them whole where they are below a table that is sampled. So the
-- texts that the coordinator runs by itself are written anew, by the router, with rows chosen by pgherd.is_sampled(). So is ONLY
-- of a distributed table, which would have no rows.

-- A text with all samples that it takes of distributed tables written anew. "language": of a body; 'planned' where PostgreSQL
-- has understood it.
CREATE OR REPLACE FUNCTION pgherd.sampled_text(statement text, language text) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    written text := statement;
BEGIN
    IF statement ~* E'tablesample|\\monly\\M' THEN
        EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L',
            format(E'sample %s\n%s', language, statement)) INTO STRICT written;
    END IF;
    RETURN written;
END
$$;

-- What bodies hand to EXECUTE.
CREATE OR REPLACE FUNCTION pgherd.sampled_text(statement text) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT pgherd.sampled_text(statement, '')
$$;

-- A function's body. It stays the function that it is, of its owner and with his grants.
CREATE OR REPLACE FUNCTION pgherd.let_function_sample(function oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    defined record;
    written text;
BEGIN
    SELECT p.prosrc AS body, l.lanname AS language, CASE WHEN p.prosqlbody IS NOT NULL THEN pg_get_functiondef(p.oid) END AS parsed
        INTO defined FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.oid = function AND p.prokind <> 'a' AND p.pronamespace <> 'pgherd'::regnamespace AND l.lanname IN ('sql', 'plpgsql')
            AND (p.prosrc ~* E'tablesample|\\monly\\M' OR p.prosqlbody::text ~ ':tablesample [{]'
                OR pg_get_function_sqlbody(p.oid) ~ E'\\mONLY\\M');
    IF defined.parsed IS NOT NULL THEN
        written := pgherd.sampled_text(defined.parsed, 'sql');
        IF written <> defined.parsed THEN
            EXECUTE written;
        END IF;
    ELSIF FOUND THEN
        written := pgherd.sampled_text(defined.body, defined.language);
        UPDATE pg_proc p SET prosrc = written WHERE p.oid = function AND p.prosrc <> written;
        IF FOUND THEN
            PERFORM pgherd.note_change('pg_proc'::regclass, function);
        END IF;
    END IF;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.let_function_sample(oid) FROM PUBLIC;

-- All functions: a table has been distributed, or has a new name. What cannot be written anew stays as it is, and is refused
-- where it is planned (pgherd.unsampled): the statement at hand need not have to do with it.
CREATE OR REPLACE FUNCTION pgherd.let_functions_sample() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    function oid;
BEGIN
    FOR function IN SELECT p.oid FROM pg_proc p
        WHERE p.oid >= 16384 AND (p.prosrc ~* E'tablesample|\\monly\\M' OR p.prosqlbody::text ~ ':tablesample [{]'
            OR pg_get_function_sqlbody(p.oid) ~ E'\\mONLY\\M')
    LOOP
        BEGIN
            PERFORM pgherd.let_function_sample(function);
        EXCEPTION WHEN feature_not_supported THEN
            NULL;
        END;
    END LOOP;
END
$$;

-- Functions as they come into existence. What else is kept has been written anew by the router, or is refused.
CREATE OR REPLACE FUNCTION pgherd.follow_samples() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() d
        CROSS JOIN LATERAL (
            SELECT r.ev_action::text FROM pg_rewrite r WHERE d.classid = 'pg_class'::regclass AND r.ev_class = d.objid
            UNION ALL SELECT r.ev_action::text FROM pg_rewrite r WHERE d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
            UNION ALL SELECT concat(y.polqual::text, y.polwithcheck::text) FROM pg_policy y
                WHERE d.classid = 'pg_policy'::regclass AND y.oid = d.objid) kept(tree)
        CROSS JOIN LATERAL regexp_matches(kept.tree, E':relid ([0-9]+) (?::\\w+ \\w+ )*:tablesample [{]', 'g') AS m(parts)
        JOIN pgherd.pg_dist_partition p ON p.partmethod = 'h' AND p.logicalrelid = m.parts[1]::oid)
    THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'cannot take a sample of a distributed table in this statement',
            DETAIL = format('%s keeps it, and its text is not known to the router.', TG_TAG),
            HINT = 'Send the statement through the router by itself.';
    END IF;
    IF current_setting('pgherd.routed', true) = 'on' THEN
        PERFORM pgherd.let_function_sample(d.objid) FROM pg_event_trigger_ddl_commands() d WHERE d.classid = 'pg_proc'::regclass;
    END IF;
END
$$;

-- Whether what is planned now takes no sample of a distributed table: it is refused otherwise. A statistics object of each foreign
-- child calls it: the planner asks for the value of an expression that has no columns in it whenever a statement reads
-- the table. The text is in the context, or in an SQL function's body, or was prepared.
CREATE OR REPLACE FUNCTION pgherd.unsampled(relation oid) RETURNS bool
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
    planned text[];
    statement text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF context !~* E'tablesample|\\nSQL function "|\\mexecute\\M' THEN
        RETURN true;
    END IF;
    context := substr(context, strpos(context || E'\n', E'\n') + 1);
    planned := regexp_match(context, E'^(?:SQL statement|SQL expression|PL/pgSQL \\w+) "(.*?)"(?:\\n(?:PL/|SQL |COPY ).*)?$');
    IF planned IS NULL THEN
        planned := ARRAY(SELECT coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
            WHERE l.lanname = 'sql' AND p.proname = (regexp_match(context, '^SQL function "(.*?)" (?:statement|during) '))[1]);
    ELSIF planned[1] ~* E'\\mexecute\\M' THEN
        planned := planned || ARRAY(SELECT s.statement FROM pg_prepared_statements s);
    END IF;
    FOREACH statement IN ARRAY planned LOOP
        IF pgherd.sampled_text(statement, 'planned') <> statement THEN
            RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = 'cannot take a sample of a distributed table in this statement',
                DETAIL = 'A function runs it whose body does not have its text.', HINT = 'Take the sample with a SELECT of its own.';
        END IF;
    END LOOP;
    RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.watch_samples(relation oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE STATISTICS pgherd.%I ON (pgherd.unsampled(%s)) FROM pgherd.%I', 'unsampled_' || relation, relation,
        'ft_' || relation);
    -- ANALYZE has nothing to do for it.
    EXECUTE format('ALTER STATISTICS pgherd.%I SET STATISTICS 0', 'unsampled_' || relation);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.watch_samples(oid) FROM PUBLIC;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger WHERE evtname = 'pgherd_samples') THEN
        CREATE EVENT TRIGGER pgherd_samples ON ddl_command_end EXECUTE FUNCTION pgherd.follow_samples();
    END IF;
    -- Tables that were distributed before.
    PERFORM pgherd.watch_samples(pg_catalog.substr(c.relname, 4)::pg_catalog.oid) FROM pg_catalog.pg_class c
        WHERE c.relnamespace = 'pgherd'::pg_catalog.regnamespace AND c.relname ~ '^ft_[0-9]+$'
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = c.oid);
END
$$;

-- A value as text from which every server reads the same value, whatever the client's own styles are: abbreviations of
-- time zones mean another zone to the one that reads them, and digits are left out. Called where a client has set styles.
CREATE OR REPLACE FUNCTION pgherd.plain_text(anyelement) RETURNS text
LANGUAGE plpgsql STABLE STRICT SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET extra_float_digits = 3 AS $$
BEGIN
    RETURN $1;
END
$$;

-- The columns of pg_class, in which partitions of distributed tables look as users have made them.
CREATE OR REPLACE FUNCTION pgherd.class_columns() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $f$
    SELECT string_agg(CASE a.attname
        WHEN 'relkind' THEN $c$CASE WHEN relkind = 'p' AND EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = pg_class.oid) THEN 'r'
            WHEN relkind = 'I' AND EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pgherd.leaf l ON l.relation = i.indrelid
                WHERE i.indexrelid = pg_class.oid) THEN 'i' ELSE relkind END::pg_catalog."char" AS relkind$c$
        WHEN 'relam' THEN $c$CASE WHEN relkind = 'p' AND EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = pg_class.oid) THEN 2
            ELSE relam END::pg_catalog.oid AS relam$c$
        WHEN 'reloptions' THEN $c$CASE WHEN relkind = 'p' THEN (SELECT l.options FROM pgherd.leaf l
            WHERE l.relation = pg_class.oid) ELSE reloptions END AS reloptions$c$
        -- A foreign child is none of the user's.
        WHEN 'relhassubclass' THEN $c$relhassubclass AND NOT EXISTS (SELECT FROM pg_catalog.pg_class h
            WHERE h.relnamespace = 'pgherd'::pg_catalog.regnamespace AND h.relname = 'ft_' || pg_class.oid) AS relhassubclass$c$
        ELSE quote_ident(a.attname) END, ', ' ORDER BY a.attnum)
    FROM pg_attribute a WHERE a.attrelid = 'pg_class'::regclass AND a.attnum > 0
$f$;

-- What a table's rows say of themselves: that of the table, where they are read through its foreign child. The planner puts
-- it around the column, which keeps its name.
CREATE OR REPLACE FUNCTION pgherd.tableoid(oid) RETURNS oid
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT pg_catalog.substr(c.relname, 4)::pg_catalog.oid FROM pg_catalog.pg_class c
        WHERE c.oid = $1 AND c.relnamespace = 'pgherd'::pg_catalog.regnamespace AND c.relname ~ '^ft_[0-9]+$'), $1)
$$;

-- The same of a row that an UPDATE may have moved to another partition: that whose constraint it satisfies.
CREATE OR REPLACE FUNCTION pgherd.tableoid(oid, moved anyelement) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
DECLARE
    origin oid := pgherd.tableoid($1);
    leaf record;
    fits bool;
BEGIN
    FOR leaf IN SELECT t.relid::pg_catalog.oid AS oid, pg_catalog.pg_get_partition_constraintdef(t.relid) AS condition
        FROM pg_catalog.pg_partition_tree(pg_catalog.pg_partition_root(origin)) t JOIN pgherd.leaf l ON l.relation = t.relid
        ORDER BY t.relid <> origin
    LOOP
        EXECUTE pg_catalog.format('SELECT %s FROM (SELECT ($1).*) x', coalesce(leaf.condition, 'true')) INTO fits USING moved;
        IF fits THEN
            RETURN leaf.oid;
        END IF;
    END LOOP;
    RETURN origin;
END
$$;

-- What defines an index, without the word that says "of this level only": to users a distributed partition has no others.
CREATE OR REPLACE FUNCTION pgherd.without_only(definition text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT pg_catalog.regexp_replace(definition, '^(CREATE (?:UNIQUE )?INDEX (?:"(?:[^"]|"")*"|[^ "]+) ON )ONLY ', E'\\1')
$$;

CREATE OR REPLACE FUNCTION pgherd.pg_get_indexdef(oid, int, bool) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE STRICT AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pgherd.leaf l ON l.relation = i.indrelid WHERE i.indexrelid = $1)
        THEN pgherd.without_only(d) ELSE d END
    FROM pg_catalog.pg_get_indexdef($1, $2, $3) d
$$;

-- Not the same as with (…, 0, false), which leaves out the schema and what else is said of the index as a whole.
CREATE OR REPLACE FUNCTION pgherd.pg_get_indexdef(oid) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE STRICT AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pgherd.leaf l ON l.relation = i.indrelid WHERE i.indexrelid = $1)
        THEN pgherd.without_only(d) ELSE d END
    FROM pg_catalog.pg_get_indexdef($1) d
$$;

-- Partitions as users made them, without the child of each.
CREATE OR REPLACE FUNCTION pgherd.pg_partition_tree(rootrelid regclass, OUT relid regclass, OUT parentrelid regclass,
    OUT isleaf bool, OUT level int) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE STRICT AS $$
    SELECT t.relid, t.parentrelid, t.isleaf OR EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = t.relid), t.level
    FROM pg_catalog.pg_partition_tree($1) t JOIN pg_catalog.pg_class c ON c.oid = t.relid
    WHERE c.relnamespace <> 'pgherd'::pg_catalog.regnamespace
$$;

-- Catalogs without our objects ---------------------------------------------------------------------------------------

-- The router reads these in place of the catalogs when a client does (CATALOG_VIEWS in schema.rs), so that psql, ORMs and
-- pg_dump see the tables that users made.
DO $$
DECLARE
    v record;
BEGIN
    -- Early versions had columns more than the catalogs.
    IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('pgherd.pg_foreign_data_wrapper') AND attname = 'xmin') THEN
        DROP VIEW IF EXISTS pgherd.information_schema_foreign_data_wrappers, pgherd.information_schema_foreign_data_wrapper_options;
    END IF;
    FOR v IN SELECT c.oid::regclass AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'pgherd'::regnamespace AND c.relkind = 'v' AND a.attname = 'xmin'
    LOOP
        BEGIN
            EXECUTE format('DROP VIEW %s', v.name);
        EXCEPTION WHEN dependent_objects_still_exist THEN
            RAISE NOTICE '% stays as it is: others use it', v.name;
        END;
    END LOOP;
    FOR v IN SELECT * FROM (VALUES
        ('pg_namespace', 'oid <> ''pgherd''::pg_catalog.regnamespace'),
        ('pg_class', 'relnamespace <> ''pgherd''::pg_catalog.regnamespace AND NOT (relnamespace = 11 AND oid >= 16384)'),
        ('pg_type', 'typnamespace <> ''pgherd''::pg_catalog.regnamespace AND NOT (typnamespace = 11 AND oid >= 16384)'),
        ('pg_proc', 'pronamespace <> ''pgherd''::pg_catalog.regnamespace'),
        ('pg_inherits', 'inhrelid NOT IN (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = ''pgherd''::pg_catalog.regnamespace)'),
        ('pg_partitioned_table', 'partrelid NOT IN (SELECT relation FROM pgherd.leaf)'),
        ('pg_trigger', 'tgname !~* ''^[!~]?pgherd_guard'' AND tgrelid NOT IN '
            '(SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = ''pgherd''::pg_catalog.regnamespace)'),
        ('pg_constraint', 'connamespace <> ''pgherd''::pg_catalog.regnamespace'),
        ('pg_statistic_ext', 'stxnamespace <> ''pgherd''::pg_catalog.regnamespace'),
        ('pg_operator', 'oprnamespace <> ''pgherd''::pg_catalog.regnamespace'),
        ('pg_event_trigger', 'evtname !~ ''^pgherd_(changes|changes_drops|definitions|drops|samples|start_[12]|follow_[12])$'''),
        -- The extension is ours where it is in our schema, for as long as nobody else uses it.
        ('pg_enum', 'enumtypid NOT IN (SELECT oid FROM pg_catalog.pg_type WHERE typnamespace = ''pgherd''::pg_catalog.regnamespace)'),
        ('pg_extension', 'extnamespace <> ''pgherd''::pg_catalog.regnamespace OR EXISTS (SELECT FROM pg_catalog.pg_foreign_server s '
            'JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw WHERE w.fdwname = extname AND s.srvname <> ''pgherd_router'')'),
        ('pg_foreign_data_wrapper', 'fdwhandler NOT IN (SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = '
            '''pgherd''::pg_catalog.regnamespace) OR EXISTS (SELECT FROM pg_catalog.pg_foreign_server s '
            'WHERE s.srvfdw = pg_foreign_data_wrapper.oid AND s.srvname <> ''pgherd_router'')'),
        ('pg_foreign_server', 'srvname <> ''pgherd_router'''),
        ('pg_user_mapping', 'umserver <> (SELECT oid FROM pg_catalog.pg_foreign_server WHERE srvname = ''pgherd_router'')'),
        ('pg_foreign_table', 'ftserver <> (SELECT oid FROM pg_catalog.pg_foreign_server WHERE srvname = ''pgherd_router'')')
        ) AS x(name, condition)
    LOOP
        -- Replaced where it is: views that users made may read it.
        EXECUTE format('CREATE OR REPLACE VIEW pgherd.%I AS SELECT %s FROM pg_catalog.%I WHERE %s', v.name,
            CASE v.name WHEN 'pg_trigger' THEN (SELECT string_agg(CASE a.attname WHEN 'tgenabled' THEN 'coalesce((SELECT w.enabled '
                'FROM pgherd.worker_trigger w WHERE w.trigger = pg_trigger.oid), tgenabled) AS tgenabled' ELSE quote_ident(a.attname) END,
                ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = 'pg_trigger'::regclass AND a.attnum > 0)
            WHEN 'pg_class' THEN pgherd.class_columns()
            ELSE '*' END, v.name, v.condition);
    END LOOP;
    FOR v IN SELECT * FROM (VALUES
        ('pg_tables', 'schemaname <> ''pgherd'''),
        ('pg_views', 'schemaname <> ''pgherd'' AND NOT (schemaname = ''pg_catalog'' AND viewname ~ ''^(citus_|pg_dist_|pgherd_|time_partitions$)'')'),
        ('pg_indexes', 'schemaname <> ''pgherd'''),
        ('pg_sequences', 'schemaname <> ''pgherd'''),
        ('pg_stats_ext', 'statistics_schemaname <> ''pgherd'''),
        ('pg_stats_ext_exprs', 'statistics_schemaname <> ''pgherd'''),
        ('pg_user_mappings', 'srvname <> ''pgherd_router'''),
        ('pg_stat_all_tables', 'schemaname <> ''pgherd'''),
        ('pg_stat_user_tables', 'schemaname <> ''pgherd'''),
        ('pg_stat_xact_all_tables', 'schemaname <> ''pgherd'''),
        ('pg_stat_xact_user_tables', 'schemaname <> ''pgherd'''),
        ('pg_statio_all_tables', 'schemaname <> ''pgherd'''),
        ('pg_statio_user_tables', 'schemaname <> ''pgherd'''),
        ('pg_stat_all_indexes', 'schemaname <> ''pgherd'''),
        ('pg_stat_user_indexes', 'schemaname <> ''pgherd'''),
        ('pg_statio_all_indexes', 'schemaname <> ''pgherd'''),
        ('pg_statio_user_indexes', 'schemaname <> ''pgherd'''),
        ('pg_statio_all_sequences', 'schemaname <> ''pgherd'''),
        ('pg_statio_user_sequences', 'schemaname <> ''pgherd'''),
        ('pg_stat_user_functions', 'schemaname <> ''pgherd'''),
        ('pg_stat_xact_user_functions', 'schemaname <> ''pgherd''')
        ) AS x(name, condition)
    LOOP
        -- Columns of type anyarray are for the system's own relations.
        PERFORM set_config('allow_system_table_mods', CASE v.name WHEN 'pg_stats_ext_exprs' THEN 'on' ELSE 'off' END, true);
        EXECUTE format('CREATE OR REPLACE VIEW pgherd.%I AS SELECT %s FROM pg_catalog.%I WHERE %s', v.name,
            CASE v.name WHEN 'pg_indexes' THEN 'schemaname, tablename, indexname, tablespace, CASE WHEN indexdef ~ ''ON ONLY'' '
                    'AND (schemaname, tablename) IN (SELECT n.nspname, c.relname FROM pgherd.leaf l '
                    'JOIN pg_catalog.pg_class c ON c.oid = l.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace) '
                    'THEN pgherd.without_only(indexdef) ELSE indexdef END AS indexdef'
                ELSE '*' END, v.name, v.condition);
    END LOOP;
    PERFORM set_config('allow_system_table_mods', 'off', true);
    FOR v IN SELECT * FROM (VALUES
        ('schemata', 'schema_name <> ''pgherd'''),
        ('tables', 'table_schema <> ''pgherd'''),
        ('columns', 'table_schema <> ''pgherd'''),
        ('views', 'table_schema <> ''pgherd'''),
        ('sequences', 'sequence_schema <> ''pgherd'''),
        ('routines', 'routine_schema <> ''pgherd'''),
        ('triggers', 'trigger_name !~* ''^[!~]?pgherd_guard'' AND event_object_schema <> ''pgherd'''),
        ('table_constraints', 'table_schema <> ''pgherd'''),
        ('foreign_tables', 'foreign_table_schema <> ''pgherd'''),
        ('table_privileges', 'table_schema <> ''pgherd'''),
        ('column_privileges', 'table_schema <> ''pgherd'''),
        ('column_column_usage', 'table_schema <> ''pgherd'''),
        ('role_table_grants', 'table_schema <> ''pgherd'''),
        ('role_column_grants', 'table_schema <> ''pgherd'''),
        ('routine_privileges', 'routine_schema <> ''pgherd'''),
        ('role_routine_grants', 'routine_schema <> ''pgherd'''),
        ('parameters', 'specific_schema <> ''pgherd'''),
        ('key_column_usage', 'table_schema <> ''pgherd'''),
        ('constraint_column_usage', 'table_schema <> ''pgherd'''),
        ('referential_constraints', 'constraint_schema <> ''pgherd'''),
        ('check_constraints', 'constraint_schema <> ''pgherd'''),
        ('foreign_data_wrappers', 'foreign_data_wrapper_name IN (SELECT fdwname FROM pgherd.pg_foreign_data_wrapper)'),
        ('foreign_data_wrapper_options', 'foreign_data_wrapper_name IN (SELECT fdwname FROM pgherd.pg_foreign_data_wrapper)'),
        ('foreign_server_options', 'foreign_server_name <> ''pgherd_router'''),
        ('foreign_table_options', 'foreign_table_schema <> ''pgherd'''),
        ('user_mappings', 'foreign_server_name <> ''pgherd_router'''),
        ('user_mapping_options', 'foreign_server_name <> ''pgherd_router'''),
        ('foreign_servers', 'foreign_server_name <> ''pgherd_router'''),
        ('column_domain_usage', 'table_schema <> ''pgherd'''),
        ('column_udt_usage', 'table_schema <> ''pgherd'''),
        ('constraint_table_usage', 'table_schema <> ''pgherd'''),
        ('data_type_privileges', 'object_schema <> ''pgherd'''),
        ('element_types', 'object_schema <> ''pgherd'''),
        ('udt_privileges', 'udt_schema <> ''pgherd'''),
        ('role_udt_grants', 'udt_schema <> ''pgherd'''),
        ('usage_privileges', 'object_schema <> ''pgherd'' AND object_name <> ''pgherd_router'' '
            'AND (object_type <> ''FOREIGN DATA WRAPPER'' OR object_name IN (SELECT fdwname FROM pgherd.pg_foreign_data_wrapper))'),
        ('role_usage_grants', 'object_schema <> ''pgherd'' AND object_name <> ''pgherd_router'' '
            'AND (object_type <> ''FOREIGN DATA WRAPPER'' OR object_name IN (SELECT fdwname FROM pgherd.pg_foreign_data_wrapper))'),
        ('view_column_usage', 'table_schema <> ''pgherd'' AND view_schema <> ''pgherd'''),
        ('view_table_usage', 'table_schema <> ''pgherd'' AND view_schema <> ''pgherd'''),
        ('view_routine_usage', 'specific_schema <> ''pgherd'' AND table_schema <> ''pgherd'''),
        ('triggered_update_columns', 'trigger_name !~* ''^[!~]?pgherd_guard'' AND event_object_schema <> ''pgherd'''),
        ('attributes', 'udt_schema <> ''pgherd'''),
        ('routine_table_usage', 'specific_schema <> ''pgherd'''),
        ('routine_column_usage', 'specific_schema <> ''pgherd'''),
        ('routine_sequence_usage', 'specific_schema <> ''pgherd'''),
        ('routine_routine_usage', 'specific_schema <> ''pgherd''')
        ) AS x(name, condition)
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW pgherd.%I AS SELECT %s FROM information_schema.%I WHERE %s',
            'information_schema_' || v.name,
            -- Ours are not counted.
            CASE v.name WHEN 'triggers' THEN (SELECT string_agg(CASE a.attname WHEN 'action_order' THEN '(rank() OVER (PARTITION BY '
                    'event_object_schema, event_object_table, event_manipulation, action_orientation, action_timing '
                    'ORDER BY trigger_name))::information_schema.cardinal_number AS action_order' ELSE quote_ident(a.attname) END, ', ' ORDER BY a.attnum)
                FROM pg_attribute a WHERE a.attrelid = 'information_schema.triggers'::regclass AND a.attnum > 0)
            ELSE '*' END, v.name, v.condition);
    END LOOP;
END
$$;

-- The foreign child of a distributed partition stands for it.
CREATE OR REPLACE VIEW pgherd.pg_publication_tables AS
    SELECT p.pubname, coalesce(n.nspname, p.schemaname) AS schemaname, coalesce(c.relname, p.tablename) AS tablename,
        p.attnames, p.rowfilter
    FROM pg_catalog.pg_publication_tables p
        LEFT JOIN pg_catalog.pg_class f ON f.relnamespace = 'pgherd'::pg_catalog.regnamespace AND p.schemaname = 'pgherd'
            AND f.relname = p.tablename
        LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = f.oid
        LEFT JOIN pg_catalog.pg_class c ON c.oid = i.inhparent
        LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE p.schemaname <> 'pgherd' OR n.oid IS NOT NULL;

-- What only routers call, by pgherd.by_router() where they do it for others.
REVOKE EXECUTE ON FUNCTION pgherd.register_node(text, int, int, text, text), pgherd.bump_epoch(text),
    pgherd.move_epoch(bool), pgherd.follow_epoch(),
    pgherd.register_table(regclass, "char", name, int, bool, int[]), pgherd.unregister_table(oid),
    pgherd.table_renamed(regclass, name), pgherd.begin_operation(text, text, oid, name),
    pgherd.plan_operation(bigint, oid, jsonb, bool), pgherd.operation_step(bigint, int, text, text),
    pgherd.end_operation(bigint, text, text), pgherd.forget_operation(bigint), pgherd.indexes_changed(oid),
    pgherd.forget_operations() FROM PUBLIC;
-- What event triggers and routers call as whoever defines something.
GRANT EXECUTE ON FUNCTION pgherd.map_owners(), pgherd.follow_schemas(), pgherd.has_child(oid),
    pgherd.check_pass(text, text, text)
    TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA pgherd TO PUBLIC;
SELECT pgherd.keep_child(f.ftrelid), pgherd.doubt_child(f.ftrelid) FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_class c ON c.oid = f.ftrelid
    WHERE c.relnamespace = 'pgherd'::pg_catalog.regnamespace AND c.relname ~ '^ft_[0-9]+$';
-- What a password might one day be in.
REVOKE SELECT ON pgherd.pg_user_mapping FROM PUBLIC;
-- The router's.
REVOKE SELECT ON pgherd.secret, pgherd.remote_definition, pgherd.remote_command, pgherd.placement_epoch,
    pgherd.waiting_session FROM PUBLIC;
-- Other people's statements: the views show each his own.
REVOKE SELECT ON pgherd.operation, pgherd.operation_step FROM PUBLIC;
INSERT INTO pgherd.schema_version (version) VALUES (33) ON CONFLICT DO NOTHING;

-- A sequence by its name; NULL where there is none, or the role may not look for it.
CREATE OR REPLACE FUNCTION pgherd.sequence_named(name text) RETURNS regclass LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN pg_catalog.to_regclass(name);
EXCEPTION WHEN insufficient_privilege THEN
    RETURN NULL;
END
$$;

-- What currval gives: what the router has drawn for the session, unless the coordinator has drawn since: then it says something else
-- than `before`. NULL where there is neither. Who may not ask is told so, but where it is the router that asks.
DROP FUNCTION IF EXISTS pgherd.current_value(regclass, bigint, bool);
CREATE OR REPLACE FUNCTION pgherd.current_value(sequence regclass, drawn bigint, before bigint DEFAULT NULL, is_last bool DEFAULT false) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here bigint;
BEGIN
    BEGIN
        here := currval(sequence);
    EXCEPTION
        WHEN object_not_in_prerequisite_state THEN NULL;
        WHEN insufficient_privilege THEN
            IF drawn IS NOT NULL THEN
                RAISE;
            END IF;
    END;
    RETURN CASE WHEN is_last OR here IS NULL OR here = before THEN drawn ELSE here END;
END
$$;

-- What lastval gives here; NULL where there is nothing, or nothing that the role may know.
CREATE OR REPLACE FUNCTION pgherd.last_value_here() RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN lastval();
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    RETURN NULL;
END
$$;

-- What lastval gives where the router has drawn last, unless the coordinator has drawn since: then it says something else than `before`.
-- The rest is what current_value is given.
DROP FUNCTION IF EXISTS pgherd.last_value(regclass, bigint, bigint);
CREATE OR REPLACE FUNCTION pgherd.last_value(sequence regclass, drawn bigint, current_before bigint, is_last bool, before bigint) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here bigint := pgherd.last_value_here();
BEGIN
    RETURN CASE WHEN here IS NOT DISTINCT FROM before THEN pgherd.current_value(sequence, drawn, current_before, is_last) ELSE lastval() END;
END
$$;
