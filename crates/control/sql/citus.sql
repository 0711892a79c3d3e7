-- Citus's interface, as far as it is neither metadata (coordinator.sql) nor the router's to carry out. What has no meaning here
-- says so in a notice and breaks no script. Run behind coordinator.sql; repeating it is harmless.

CREATE OR REPLACE FUNCTION pgherd.citus_add_local_table_to_metadata(table_name regclass, cascade_via_foreign_keys bool DEFAULT false)
    RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    RAISE NOTICE USING MESSAGE = pg_catalog.format('table %s stays as it is', table_name),
        DETAIL = 'Local tables are used together with distributed ones without metadata.';
END
$$;

-- Routers settle what is left prepared by themselves.
CREATE OR REPLACE FUNCTION pgherd.recover_prepared_transactions() RETURNS int
LANGUAGE sql STABLE AS $$ SELECT 0 $$;

CREATE OR REPLACE FUNCTION pgherd.shard_name(object_name regclass, shard_id bigint, skip_qualify_public bool DEFAULT true) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.format('pgherd_%s.%I', shard_id, c.relname) FROM pg_catalog.pg_class c WHERE c.oid = object_name
$$;

-- The metadata have the distribution column by name.
CREATE OR REPLACE FUNCTION pgherd.column_to_column_name(table_name regclass, column_var_text text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT column_var_text $$;
CREATE OR REPLACE FUNCTION pgherd.column_name_to_column(table_name regclass, column_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT column_name $$;

-- A distributed table, or an index of one, whose rows are there. A table that the user has partitioned has none of its own.
CREATE OR REPLACE FUNCTION pgherd.is_on_workers(relation oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pgherd.pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
        WHERE p.partmethod = 'h' AND p.logicalrelid = coalesce((SELECT i.indrelid FROM pg_index i WHERE i.indexrelid = $1), $1)
            AND (c.relkind <> 'p' OR EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = c.oid)))
$$;

-- What the router reads in place of PostgreSQL's functions of these names: with what the workers have.
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT * FROM (VALUES ('pg_relation_size'), ('pg_table_size'), ('pg_indexes_size'), ('pg_total_relation_size')) AS x(name) LOOP
        EXECUTE format($f$CREATE OR REPLACE FUNCTION pgherd.%1$I(relation regclass) RETURNS bigint
            LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $b$
            BEGIN
                RETURN CASE WHEN pgherd.is_on_workers(relation) THEN pgherd.distributed_size(relation, %1$L, false)
                    ELSE pg_catalog.%1$I(relation) END;
            END
            $b$ $f$, f.name);
    END LOOP;
END
$$;
CREATE OR REPLACE FUNCTION pgherd.pg_relation_size(relation regclass, fork text) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN CASE WHEN pgherd.is_on_workers(relation) AND fork IN ('main', 'fsm', 'vm', 'init')
        THEN pgherd.distributed_size(relation, 'pg_relation_size', false, fork) ELSE pg_catalog.pg_relation_size(relation, fork) END;
END
$$;
CREATE OR REPLACE FUNCTION pgherd.pg_database_size(database name) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here bigint;
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    there numeric;
BEGIN
    -- PostgreSQL asks for one of these.
    IF NOT (has_database_privilege(caller, database, 'CONNECT') OR pg_has_role(caller, 'pg_read_all_stats', 'USAGE')) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('permission denied for database %s', database);
    END IF;
    here := pg_catalog.pg_database_size(database);
    EXECUTE format('SELECT sum(r.result::numeric) FROM pgherd.remote_command r WHERE r.command = %L AND r.success',
        format('SELECT pg_catalog.pg_database_size(oid) FROM pg_catalog.pg_database WHERE datname = %L', database)) INTO there;
    RETURN here + coalesce(there, 0);
END
$$;
CREATE OR REPLACE FUNCTION pgherd.pg_database_size(database oid) RETURNS bigint
LANGUAGE sql VOLATILE STRICT AS $$
    SELECT pgherd.pg_database_size(d.datname) FROM pg_catalog.pg_database d WHERE d.oid = database
$$;

-- Sessions of the router are known to their clients by numbers of its own.
CREATE FOREIGN TABLE IF NOT EXISTS pgherd.remote_session (command text, result text)
    SERVER pgherd_router OPTIONS (schema_name 'pgherd', table_name 'remote_session', updatable 'false', truncatable 'false');
-- What the router tells of its sessions. The statements of others are theirs to see, and for who may read statistics.
CREATE OR REPLACE FUNCTION pgherd.sessions(OUT pid int, OUT usename name, OUT datname name, OUT application_name text, OUT client_addr inet,
    OUT client_port int, OUT backend_start timestamptz, OUT xact_start timestamptz, OUT query_start timestamptz,
    OUT state_change timestamptz, OUT state text, OUT query text, OUT waits_for int[], OUT here int[]) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    told text;
    r record;
BEGIN
    SELECT s.result INTO told FROM pgherd.remote_session s WHERE s.command = 'all 0';
    FOR r IN SELECT * FROM jsonb_to_recordset(coalesce(told, '[]')::jsonb) x(pid int, usename name, datname name, application_name text,
        client_addr inet, client_port int, backend_start timestamptz, xact_start timestamptz, query_start timestamptz,
        state_change timestamptz, state text, query text, waits_for jsonb, here jsonb)
    LOOP
        SELECT r.pid, r.usename, r.datname, r.application_name INTO pid, usename, datname, application_name;
        IF pg_has_role(caller, 'pg_read_all_stats', 'USAGE')
                OR EXISTS (SELECT FROM pg_roles o WHERE o.rolname = r.usename AND pg_has_role(caller, o.oid, 'USAGE')) THEN
            SELECT r.client_addr, r.client_port, r.backend_start, r.xact_start, r.query_start, r.state_change, r.state, r.query
                INTO client_addr, client_port, backend_start, xact_start, query_start, state_change, state, query;
        ELSE
            SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, '<insufficient privilege>'
                INTO client_addr, client_port, backend_start, xact_start, query_start, state_change, state, query;
        END IF;
        waits_for := ARRAY(SELECT w::int FROM jsonb_array_elements_text(r.waits_for) w);
        here := ARRAY(SELECT h::int FROM jsonb_array_elements_text(r.here) h);
        RETURN NEXT;
    END LOOP;
END
$$;
CREATE OR REPLACE VIEW pgherd.pg_stat_activity AS
    SELECT a.datid, a.datname, a.pid, a.leader_pid, a.usesysid, a.usename, a.application_name, a.client_addr, a.client_hostname,
        a.client_port, a.backend_start, a.xact_start, a.query_start, a.state_change, a.wait_event_type, a.wait_event, a.state,
        a.backend_xid, a.backend_xmin, a.query_id, a.query, a.backend_type
    FROM pg_catalog.pg_stat_activity a WHERE a.backend_type <> 'client backend' AND a.leader_pid IS NULL
    UNION ALL
    SELECT d.oid, s.datname, s.pid, NULL, u.usesysid, s.usename, s.application_name, s.client_addr, NULL, s.client_port,
        s.backend_start, s.xact_start, s.query_start, s.state_change,
        CASE WHEN s.waits_for <> '{}' THEN 'Lock' WHEN s.state LIKE 'idle%' THEN 'Client' END,
        CASE WHEN s.waits_for <> '{}' THEN 'transactionid' WHEN s.state LIKE 'idle%' THEN 'ClientRead' END,
        s.state, NULL, NULL, NULL, s.query, 'client backend'
    FROM pgherd.sessions() s LEFT JOIN pg_catalog.pg_database d ON d.datname = s.datname
        LEFT JOIN pg_catalog.pg_user u ON u.usename = s.usename;
CREATE OR REPLACE VIEW pgherd.pg_locks AS
    SELECT l.locktype, l.database, l.relation, l.page, l.tuple, l.virtualxid, l.transactionid, l.classid, l.objid, l.objsubid,
        l.virtualtransaction, coalesce(s.pid, l.pid) AS pid, l.mode, l.granted, l.fastpath, l.waitstart
    FROM pg_catalog.pg_locks l LEFT JOIN pgherd.sessions() s ON l.pid = ANY (s.here)
    WHERE l.relation IS NULL OR l.relation NOT IN
        (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pgherd'::pg_catalog.regnamespace);
CREATE OR REPLACE FUNCTION pgherd.pg_blocking_pids(pid int) RETURNS int[]
LANGUAGE sql VOLATILE STRICT AS $$
    SELECT coalesce((SELECT s.waits_for FROM pgherd.sessions() s WHERE s.pid = $1), pg_catalog.pg_blocking_pids($1))
$$;
CREATE OR REPLACE VIEW pgherd.citus_stat_activity AS
    SELECT a.pid::bigint AS global_pid, 0 AS nodeid, false AS is_worker_query, a.* FROM pgherd.pg_stat_activity a
    WHERE a.backend_type = 'client backend';
CREATE OR REPLACE VIEW pgherd.citus_dist_stat_activity AS SELECT * FROM pgherd.citus_stat_activity;
CREATE OR REPLACE VIEW pgherd.citus_lock_waits AS
    WITH s AS MATERIALIZED (SELECT x.* FROM pgherd.sessions() x)
    SELECT w.pid::bigint AS waiting_gpid, b.pid::bigint AS blocking_gpid, w.query AS blocked_statement,
        b.query AS current_statement_in_blocking_process, 0 AS waiting_nodeid, 0 AS blocking_nodeid
    FROM s w JOIN s b ON b.pid = ANY (w.waits_for);
GRANT SELECT ON pgherd.pg_stat_activity, pgherd.pg_locks, pgherd.citus_stat_activity, pgherd.citus_dist_stat_activity,
    pgherd.citus_lock_waits TO PUBLIC;
CREATE OR REPLACE FUNCTION pgherd.signal_session(pid int, ends bool) RETURNS bool
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    caller name := coalesce(nullif(current_setting('role'), 'none'), session_user);
    target text;
    done text;
BEGIN
    EXECUTE format('SELECT r.result FROM pgherd.remote_session r WHERE r.command = %L', 'user ' || pid) INTO target;
    IF target IS NULL THEN
        RETURN NULL;
    END IF;
    IF NOT (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = caller) THEN
        IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = target) THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = CASE WHEN ends
                THEN 'must be a superuser to terminate superuser process' ELSE 'must be a superuser to cancel superuser query' END;
        ELSIF NOT (pg_has_role(caller, target, 'USAGE') OR pg_has_role(caller, 'pg_signal_backend', 'USAGE')) THEN
            RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = CASE WHEN ends
                THEN 'must be a member of the role whose process is being terminated or member of pg_signal_backend'
                ELSE 'must be a member of the role whose query is being canceled or member of pg_signal_backend' END;
        END IF;
    END IF;
    EXECUTE format('SELECT r.result FROM pgherd.remote_session r WHERE r.command = %L',
        CASE WHEN ends THEN 'terminate ' ELSE 'cancel ' END || pid) INTO done;
    RETURN done = 't';
END
$$;
CREATE OR REPLACE FUNCTION pgherd.pg_terminate_backend(pid int, timeout bigint DEFAULT 0) RETURNS bool
LANGUAGE sql VOLATILE STRICT AS $$
    SELECT coalesce(pgherd.signal_session($1, true), pg_catalog.pg_terminate_backend($1, $2))
$$;
CREATE OR REPLACE FUNCTION pgherd.pg_cancel_backend(pid int) RETURNS bool
LANGUAGE sql VOLATILE STRICT AS $$
    SELECT coalesce(pgherd.signal_session($1, false), pg_catalog.pg_cancel_backend($1))
$$;

-- postgres_fdw is ours as long as it is in our schema. Only routers call this, for who has made it or dropped it.
CREATE OR REPLACE FUNCTION pgherd.move_fdw(home name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
BEGIN
    EXECUTE format('ALTER EXTENSION postgres_fdw SET SCHEMA %I', home);
    PERFORM pgherd.note_change(0, 0);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.move_fdw(name) FROM PUBLIC;

-- Commands on nodes --------------------------------------------------------------------------------------------------

-- What a command gives: its first value, or how many rows it changed. An error is a result, too.
CREATE OR REPLACE FUNCTION pgherd.run_here(command text, OUT success bool, OUT result text)
LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
BEGIN
    success := true;
    IF command OPERATOR(pg_catalog.~*) E'^[\\s(]*(select|values|table|show|explain|with)\\M|\\mreturning\\M' THEN
        EXECUTE command INTO result;
    ELSE
        EXECUTE command;
        GET DIAGNOSTICS changed = ROW_COUNT;
        result := changed;
    END IF;
EXCEPTION WHEN OTHERS THEN
    success := false;
    result := 'ERROR:  ' OPERATOR(pg_catalog.||) SQLERRM;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.run_command_on_coordinator(command text, give_warning_for_connection_errors bool DEFAULT false,
    OUT nodename text, OUT nodeport int, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
DECLARE
    said pg_catalog.record;
BEGIN
    SELECT * INTO said FROM pgherd.run_here(command);
    RETURN QUERY SELECT coalesce((SELECT n.nodename FROM pgherd.pg_dist_node n WHERE n.groupid = 0 LIMIT 1), 'localhost'),
        pg_catalog.current_setting('port')::pg_catalog.int4, said.success, said.result;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.run_command_on_all_nodes(command text, parallel bool DEFAULT true,
    give_warning_for_connection_errors bool DEFAULT false, OUT nodename text, OUT nodeport int, OUT success bool, OUT result text)
    RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM pgherd.run_command_on_coordinator(command);
    RETURN QUERY SELECT * FROM pgherd.run_command_on_workers(command, parallel);
END
$$;

-- On one worker.
CREATE OR REPLACE FUNCTION pgherd.run_command_on_node(node text, port int, command text, OUT nodename text, OUT nodeport int,
    OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT r.* FROM pgherd.run_on_workers(current_user, command, node, port) r;
END
$$;

-- One row for each shard that a worker has. %s, and Citus's other placeholders, are the shard's name there.
CREATE OR REPLACE FUNCTION pgherd.run_command_on_placements(table_name regclass, command text, parallel bool DEFAULT true,
    OUT nodename text, OUT nodeport int, OUT shardid bigint, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
DECLARE
    placement pg_catalog.record;
    shard pg_catalog.text;
BEGIN
    FOR placement IN SELECT s.shardid, n.nodename, n.nodeport, p.partmethod, p.schemaname, p.tablename
        FROM pgherd.pg_dist_shard s JOIN pgherd.pg_dist_placement l USING (shardid) JOIN pgherd.pg_dist_node n USING (groupid)
            JOIN pgherd.pg_dist_partition p ON p.logicalrelid = s.logicalrelid
        WHERE s.logicalrelid = table_name AND n.groupid <> 0 ORDER BY s.shardid, n.nodeid
    LOOP
        shard := CASE placement.partmethod WHEN 'n' THEN pg_catalog.format('%I.%I', placement.schemaname, placement.tablename)
            ELSE pg_catalog.format('pgherd_%s.%I', placement.shardid, placement.tablename) END;
        RETURN QUERY SELECT w.nodename, w.nodeport, placement.shardid, w.success, w.result
            FROM pgherd.run_command_on_node(placement.nodename, placement.nodeport, pg_catalog.replace(command, '%s', shard)) w;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.run_command_on_shards(table_name regclass, command text, parallel bool DEFAULT true,
    OUT shardid bigint, OUT success bool, OUT result text) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT DISTINCT ON (p.shardid) p.shardid, p.success, p.result
        FROM pgherd.run_command_on_placements(table_name, command, parallel) p ORDER BY p.shardid, p.success;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.citus_check_connection_to_node(nodename text, nodeport int DEFAULT 5432) RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((SELECT n.groupid = 0 OR coalesce((SELECT w.success FROM pgherd.run_command_on_node($1, $2, 'SELECT 1') w), false)
        FROM pgherd.pg_dist_node n WHERE n.nodename = $1 AND n.nodeport = $2), false);
END
$$;

-- From the coordinator's side: no worker talks to another one.
CREATE OR REPLACE FUNCTION pgherd.citus_check_cluster_node_health(OUT from_nodename text, OUT from_nodeport int, OUT to_nodename text,
    OUT to_nodeport int, OUT result bool) RETURNS SETOF record
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT coalesce((SELECT n.nodename FROM pgherd.pg_dist_node n WHERE n.groupid = 0 LIMIT 1), 'localhost'),
        pg_catalog.current_setting('port')::pg_catalog.int4, w.nodename, w.nodeport, w.success
        FROM pgherd.run_command_on_workers('SELECT 1') w;
END
$$;

-- Partitions by time ---------------------------------------------------------------------------------------------------

CREATE OR REPLACE VIEW pgherd.time_partitions AS
    SELECT i.inhparent::pg_catalog.regclass AS parent_table, a.attname AS partition_column, c.oid::pg_catalog.regclass AS partition,
        b.bound[1] AS from_value, b.bound[2] AS to_value, m.amname AS access_method
    FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
        JOIN pg_catalog.pg_partitioned_table p ON p.partrelid = i.inhparent AND p.partstrat = 'r' AND p.partnatts = 1
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.inhparent AND a.attnum = p.partattrs[0]
        LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam
        CROSS JOIN LATERAL (SELECT pg_catalog.regexp_match(pg_catalog.pg_get_expr(c.relpartbound, c.oid),
            $r$FROM \('?(.*?)'?\) TO \('?(.*?)'?\)$r$) AS bound) b
    WHERE b.bound IS NOT NULL AND c.relnamespace <> 'pgherd'::pg_catalog.regnamespace
        AND a.atttypid IN ('date'::pg_catalog.regtype, 'timestamp'::pg_catalog.regtype, 'timestamptz'::pg_catalog.regtype);

-- Intervals between `from_date` and `to_date` for which there is no partition, in steps from where partitions are, or from a
-- round date.
CREATE OR REPLACE FUNCTION pgherd.get_missing_time_partition_ranges(table_name regclass, partition_interval interval,
    to_date timestamptz, from_date timestamptz DEFAULT now(), OUT partition_name text, OUT range_from_value text,
    OUT range_to_value text) RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $$
DECLARE
    type pg_catalog.text;
    base pg_catalog.timestamptz;
    unit pg_catalog.text;
    format pg_catalog.text;
    step pg_catalog.timestamptz;
    next pg_catalog.timestamptz;
    parent pg_catalog.text := (SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid = table_name);
BEGIN
    SELECT pg_catalog.format_type(a.atttypid, NULL) INTO type
        FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        WHERE p.partrelid = table_name AND p.partstrat = 'r' AND p.partnatts = 1
            AND a.atttypid IN ('date'::pg_catalog.regtype, 'timestamp'::pg_catalog.regtype, 'timestamptz'::pg_catalog.regtype);
    IF type IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42809',
            MESSAGE = pg_catalog.format('%s is not partitioned by range of one column of date or timestamp', table_name);
    END IF;
    IF partition_interval <= '0'::pg_catalog.interval THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'partition interval must be a positive value';
    END IF;
    IF type = 'date' AND partition_interval < '1 day'::pg_catalog.interval THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'partition interval of date partitioned table must be day or multiple days';
    END IF;
    unit := CASE WHEN partition_interval < '1 hour' THEN 'minute' WHEN partition_interval < '1 day' THEN 'hour'
        WHEN partition_interval < '1 week' THEN 'day' WHEN partition_interval < '1 month' THEN 'week'
        WHEN partition_interval < '3 months' THEN 'month' WHEN partition_interval < '1 year' THEN 'quarter' ELSE 'year' END;
    format := CASE WHEN partition_interval < '1 day' THEN 'YYYY_MM_DD_HH24MI' WHEN partition_interval < '1 month' OR unit = 'week'
        THEN 'YYYY_MM_DD' WHEN partition_interval < '1 year' THEN 'YYYY_MM' ELSE 'YYYY' END;
    SELECT pg_catalog.min(t.from_value::pg_catalog.timestamptz) INTO base FROM pgherd.time_partitions t
        WHERE t.parent_table = table_name AND t.from_value <> 'MINVALUE';
    step := coalesce(base, pg_catalog.date_trunc(unit, from_date));
    WHILE step > from_date LOOP
        step := step - partition_interval;
    END LOOP;
    WHILE step < to_date LOOP
        next := step + partition_interval;
        IF next > from_date AND NOT EXISTS (SELECT FROM pgherd.time_partitions t WHERE t.parent_table = table_name
                AND CASE t.from_value WHEN 'MINVALUE' THEN '-infinity' ELSE t.from_value END::pg_catalog.timestamptz < next
                AND CASE t.to_value WHEN 'MAXVALUE' THEN 'infinity' ELSE t.to_value END::pg_catalog.timestamptz > step) THEN
            partition_name := pg_catalog.left(parent, 62 - pg_catalog.length(format)) || '_p' || pg_catalog.to_char(step, format);
            range_from_value := CASE type WHEN 'date' THEN step::pg_catalog.date::text
                WHEN 'timestamp without time zone' THEN step::pg_catalog.timestamp::text ELSE step::text END;
            range_to_value := CASE type WHEN 'date' THEN next::pg_catalog.date::text
                WHEN 'timestamp without time zone' THEN next::pg_catalog.timestamp::text ELSE next::text END;
            RETURN NEXT;
        END IF;
        step := next;
    END LOOP;
END
$$;

-- In no schema of ours: what functions there define, the router takes for its own doing.
CREATE OR REPLACE FUNCTION pg_catalog.create_time_partitions(table_name regclass, partition_interval interval, end_at timestamptz,
    start_from timestamptz DEFAULT now()) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
    missing pg_catalog.record;
    made pg_catalog.bool := false;
    schema pg_catalog.text := (SELECT n.nspname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = table_name);
    parent pg_catalog.text := (SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid = table_name);
BEGIN
    IF start_from >= end_at THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = pg_catalog.format('start_from (%s) must be older than end_at (%s)', start_from, end_at);
    END IF;
    FOR missing IN SELECT * FROM pgherd.get_missing_time_partition_ranges(table_name, partition_interval, end_at, start_from) LOOP
        EXECUTE pg_catalog.format('CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%L) TO (%L)', schema, missing.partition_name,
            schema, parent, missing.range_from_value, missing.range_to_value);
        made := true;
    END LOOP;
    RETURN made;
END
$$;

CREATE OR REPLACE PROCEDURE pg_catalog.drop_old_time_partitions(table_name regclass, older_than timestamptz)
LANGUAGE plpgsql AS $$
DECLARE
    old pg_catalog.record;
BEGIN
    FOR old IN SELECT n.nspname, c.relname, t.from_value, t.to_value FROM pgherd.time_partitions t
            JOIN pg_catalog.pg_class c ON c.oid = t.partition JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE t.parent_table = table_name AND CASE t.to_value WHEN 'MAXVALUE' THEN 'infinity' ELSE t.to_value END::pg_catalog.timestamptz
            <= older_than ORDER BY t.to_value::pg_catalog.timestamptz
    LOOP
        RAISE NOTICE 'dropping % with start time % and end time %', pg_catalog.quote_ident(old.relname), old.from_value, old.to_value;
        EXECUTE pg_catalog.format('DROP TABLE %I.%I', old.nspname, old.relname);
    END LOOP;
END
$$;

-- Metadata of Citus's that has no rows here, or is made of ours --------------------------------------------------------

CREATE OR REPLACE VIEW pgherd.pg_dist_local_group AS SELECT 0 AS groupid;
CREATE OR REPLACE VIEW pgherd.pg_dist_shard_placement AS
    SELECT l.shardid, 1 AS shardstate, 0::bigint AS shardlength, n.nodename, n.nodeport, l.placementid
    FROM pgherd.pg_dist_placement l JOIN pgherd.pg_dist_node n USING (groupid);
CREATE OR REPLACE VIEW pgherd.pg_dist_object AS SELECT NULL::oid AS classid, NULL::oid AS objid, NULL::int AS objsubid, NULL::text AS type,
    NULL::text[] AS object_names, NULL::text[] AS object_args, NULL::int AS distribution_argument_index, NULL::int AS colocationid,
    NULL::bool AS force_delegation WHERE false;
CREATE OR REPLACE VIEW pgherd.pg_dist_transaction AS SELECT NULL::int AS groupid, NULL::text AS gid WHERE false;
CREATE OR REPLACE VIEW pgherd.pg_dist_schema AS SELECT NULL::oid AS schemaid, NULL::int AS colocationid WHERE false;
CREATE OR REPLACE VIEW pgherd.pg_dist_cleanup AS SELECT NULL::bigint AS record_id, NULL::bigint AS operation_id, NULL::int AS object_type,
    NULL::text AS object_name, NULL::int AS node_group_id, NULL::int AS policy_type WHERE false;
GRANT SELECT ON pgherd.time_partitions, pgherd.pg_dist_local_group, pgherd.pg_dist_shard_placement, pgherd.pg_dist_object,
    pgherd.pg_dist_transaction, pgherd.pg_dist_schema, pgherd.pg_dist_cleanup TO PUBLIC;

-- What CREATE EXTENSION citus makes: a line in the list of extensions, so that scripts that look for it find it. It has no
-- members; the interface is there without it. The version is the one whose interface this is.
CREATE OR REPLACE FUNCTION pgherd.show_citus() RETURNS bool
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
        SELECT pg_nextoid('pg_extension', 'oid', 'pg_extension_oid_index'), 'citus', 10, 'pg_catalog'::regnamespace, false, '12.1-1'
        WHERE NOT EXISTS (SELECT FROM pg_extension e WHERE e.extname = 'citus');
    RETURN FOUND;
END
$$;
CREATE OR REPLACE FUNCTION pgherd.hide_citus() RETURNS bool
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM pg_extension e WHERE e.extname = 'citus' AND NOT EXISTS (SELECT FROM pg_depend d
        WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e');
    RETURN FOUND;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.show_citus(), pgherd.hide_citus() FROM PUBLIC;

-- Citus's interface where it is in Citus: in pg_catalog, so that functions, DO blocks and views of users find it, whatever their
-- path. (Dumps leave pg_catalog out.) Names that the router meets in a statement it resolves itself.
DO $$
DECLARE
    f record;
BEGIN
    PERFORM set_config('allow_system_table_mods', 'on', true);
    FOR f IN SELECT p.oid, p.proname, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result,
            p.provolatile, p.pronargs, p.proretset, p.prorettype
        FROM pg_proc p WHERE p.pronamespace = 'pgherd'::regnamespace AND (p.proname ~ '^(citus_|master_)'
            OR p.proname = ANY (('{' ||
                'alter_distributed_table,column_name_to_column,column_to_column_name,create_distributed_table,' ||
                'create_distributed_table_concurrently,create_reference_table,create_time_partitions,' ||
                'drop_old_time_partitions,get_missing_time_partition_ranges,get_shard_id_for_distribution_column,' ||
                'recover_prepared_transactions,run_command_on_all_nodes,run_command_on_coordinator,' ||
                'run_command_on_placements,run_command_on_shards,run_command_on_workers,shard_name,' ||
                'truncate_local_data_after_distributing_table,undistribute_table' || '}')::name[]))
    LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION pg_catalog.%I(%s) RETURNS %s LANGUAGE sql %s AS %L', f.proname, f.arguments, f.result,
            CASE f.provolatile WHEN 'v' THEN 'VOLATILE' WHEN 's' THEN 'STABLE' ELSE 'IMMUTABLE PARALLEL SAFE' END,
            format(CASE WHEN f.proretset THEN 'SELECT * FROM pgherd.%I(%s)' ELSE 'SELECT pgherd.%I(%s)' END, f.proname,
                (SELECT string_agg('$' || n, ', ' ORDER BY n) FROM generate_series(1, f.pronargs) n)));
    END LOOP;
    FOR f IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'pgherd'::regnamespace AND c.relkind IN ('r', 'v')
        AND (c.relname ~ '^(pg_dist_|citus_)' OR c.relname IN ('pgherd_operations', 'pgherd_operation_steps', 'pgherd_distribution',
            'time_partitions'))
    LOOP
        EXECUTE format('CREATE OR REPLACE VIEW pg_catalog.%I AS SELECT * FROM pgherd.%I', f.relname, f.relname);
        EXECUTE format('GRANT SELECT ON pg_catalog.%I TO PUBLIC', f.relname);
    END LOOP;
    PERFORM set_config('allow_system_table_mods', 'off', true);
END
$$;
REVOKE ALL ON pgherd.remote_session FROM PUBLIC;
