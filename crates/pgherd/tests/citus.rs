//! Citus's interface wherever SQL stands: in functions, DO blocks and views, by whatever path; what its scripts begin
//! with; and what means nothing here and says so.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::Cluster;
use pgherd_testkit::client::Client;

fn database(name: &str) -> Client {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    side.connect(name).unwrap()
}

fn state_of(client: &mut Client, sql: &str) -> String {
    let reply = client.simple(sql, None).unwrap();
    reply.error().map_or_else(|| "none".to_owned(), |error| format!("{} {}", error.sqlstate(), error.message()))
}

#[test]
fn functions_do_blocks_and_views_find_the_interface() {
    let mut client = database("citus_inside");
    client
        .run("CREATE TABLE t (k int PRIMARY KEY, v int); SELECT create_distributed_table('t', 'k', shard_count => 4)")
        .unwrap();
    client.run("INSERT INTO t SELECT g, g FROM generate_series(1, 20) g").unwrap();
    client.run("CREATE TABLE r (k int PRIMARY KEY)").unwrap();
    client.run("SELECT create_reference_table('r')").unwrap();
    for path in ["\"$user\", public", "other", "public, other", ""] {
        client
            .run(&format!(
                "CREATE SCHEMA IF NOT EXISTS other; SET search_path = {}",
                if path.is_empty() { "''" } else { path }
            ))
            .unwrap();
        for (body, expected) in [
            ("count(*) FROM run_command_on_workers('SELECT 1') WHERE success", "3"),
            ("get_shard_id_for_distribution_column('public.t', 7) > 0", "t"),
            ("citus_total_relation_size('public.t') > 0", "t"),
            ("count(*) FROM citus_tables", "2"),
            ("count(*) FROM citus_shards WHERE table_name = 'public.t'::regclass", "4"),
            ("count(*) FROM pg_dist_node WHERE isactive AND groupid > 0", "3"),
            ("count(*) FROM pg_dist_shard WHERE logicalrelid = 'public.t'::regclass", "4"),
            ("citus_version() LIKE 'pgherd%' OR true", "t"),
        ] {
            let top = client.value(&format!("SELECT {body}")).unwrap();
            assert_eq!(top, expected, "{body}");
            client
                .run(&format!(
                    "CREATE OR REPLACE FUNCTION public.in_plpgsql() RETURNS text LANGUAGE plpgsql AS \
                     $f$ BEGIN RETURN (SELECT {body}); END $f$; \
                     CREATE OR REPLACE FUNCTION public.in_sql() RETURNS text LANGUAGE sql \
                     AS $f$ SELECT ({body2})::text $f$; \
                     DO $d$ DECLARE x text; BEGIN SELECT {body} INTO x; \
                     IF x NOT IN ('{expected}', 'true') THEN RAISE '%', x; END IF; END $d$; \
                     DROP VIEW IF EXISTS public.in_view; CREATE VIEW public.in_view AS SELECT ({body2}) AS x",
                    body2 = format_args!("SELECT {body}")
                ))
                .unwrap_or_else(|error| panic!("{body}: {error}"));
            let is_same = |found: &str| found == expected || found == "true" && expected == "t";
            for sql in ["SELECT public.in_plpgsql()", "SELECT public.in_sql()", "SELECT x FROM public.in_view"] {
                let found = client.value(sql).unwrap();
                assert!(is_same(&found), "{body}: {sql}: {found}");
            }
        }
    }
    // Nothing of it is to be seen among what users have.
    for sql in [
        "SELECT count(*) FROM pg_views WHERE viewname LIKE 'citus%'",
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'pg_dist%'",
        "SELECT count(*) FROM pg_type WHERE typname LIKE 'pg_dist%'",
    ] {
        assert_eq!(client.value(sql).unwrap(), "0", "{sql}");
    }
}

#[test]
fn tables_are_distributed_from_inside() {
    let mut client = database("citus_distributes");
    client
        .run(
            "CREATE FUNCTION make(name text, reference bool DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
             EXECUTE format('CREATE TABLE %I (k int PRIMARY KEY, v int)', name); \
             IF reference THEN PERFORM create_reference_table(name); \
             ELSE PERFORM create_distributed_table(name::regclass, 'k', colocate_with => 'none', \
             shard_count => 3); END IF; \
             EXECUTE format('INSERT INTO %I SELECT g, g FROM generate_series(1, 9) g', name); END $$",
        )
        .unwrap();
    client.run("SELECT make('a'), make('b', true)").unwrap();
    client
        .run(
            "DO $$ BEGIN PERFORM make('c'); CREATE TABLE d (k int); PERFORM create_distributed_table('d', 'k', \
         colocate_with => 'c'); END $$",
        )
        .unwrap();
    let tables = "SELECT string_agg(table_name::text || citus_table_type || shard_count, ',' ORDER BY \
         table_name::text) FROM citus_tables";
    assert_eq!(client.value(tables).unwrap(), "adistributed3,breference1,cdistributed3,ddistributed3");
    assert_eq!(client.value("SELECT sum(a.k) FROM a JOIN b USING (k) JOIN c USING (k)").unwrap(), "45");
    // In a block that goes back.
    client.run("BEGIN; SELECT make('e'); SELECT count(*) FROM e; ROLLBACK").unwrap();
    assert!(state_of(&mut client, "SELECT * FROM e").starts_with("42P01"));
    assert_eq!(client.value(tables).unwrap(), "adistributed3,breference1,cdistributed3,ddistributed3");
    // An error there can be caught.
    client
        .run(
            "DO $$ BEGIN PERFORM create_distributed_table('a', 'k'); RAISE 'distributed twice'; \
             EXCEPTION WHEN invalid_table_definition THEN NULL; END $$",
        )
        .unwrap();
    // Of a role without rights, and with those of the owner of a function.
    client.run("CREATE ROLE citus_maker; GRANT CREATE ON SCHEMA public TO citus_maker; SET ROLE citus_maker").unwrap();
    assert!(state_of(&mut client, "DO $$ BEGIN PERFORM undistribute_table('a'); END $$").starts_with("0A000"));
    client.run("SELECT make('f')").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM f").unwrap(), "9");
    client.run("RESET ROLE").unwrap();
    client.run("CREATE TABLE g (k int); CREATE TABLE h (k int)").unwrap();
    client.run("SET ROLE citus_maker").unwrap();
    assert!(
        state_of(&mut client, "DO $$ BEGIN PERFORM create_distributed_table('g', 'k'); END $$").starts_with("42501")
    );
    assert!(state_of(&mut client, "SELECT pgherd.lend_own_key()").starts_with("42501"));
    assert!(
        state_of(&mut client, "DO $$ DECLARE x text := pgherd.lend_own_key(); BEGIN RAISE '%', x; END $$")
            .starts_with("42501")
    );
    client.run("RESET ROLE").unwrap();
    client.run("INSERT INTO g VALUES (1)").unwrap();
    assert!(
        state_of(&mut client, "DO $$ BEGIN PERFORM create_distributed_table('g', 'k'); END $$").starts_with("0A000")
    );
    // Names of both kinds in one statement.
    assert_eq!(
        client
            .value(
                "SELECT count(*) FROM citus_tables, (SELECT create_distributed_table('h', 'k')) x WHERE \
             table_name = 'h'::regclass"
            )
            .unwrap(),
        "1"
    );
}

#[test]
fn scripts_may_begin_with_the_extension() {
    let mut client = database("citus_extension");
    let shown = "SELECT count(*) FROM pg_extension WHERE extname = 'citus'";
    assert_eq!(client.value(shown).unwrap(), "0");
    client.run("CREATE EXTENSION IF NOT EXISTS citus").unwrap();
    assert_eq!(client.value(shown).unwrap(), "1");
    client.run("CREATE EXTENSION IF NOT EXISTS citus CASCADE").unwrap();
    client.run("ALTER EXTENSION citus UPDATE").unwrap();
    assert!(state_of(&mut client, "CREATE EXTENSION citus").starts_with("42710"));
    client.run("CREATE TABLE t (k text PRIMARY KEY); SELECT create_distributed_table('t', 'k')").unwrap();
    client.run("DROP EXTENSION citus CASCADE").unwrap();
    assert_eq!(client.value(shown).unwrap(), "0");
    assert!(state_of(&mut client, "DROP EXTENSION citus").starts_with("42704"));
    assert_eq!(client.value("SELECT count(*) FROM citus_tables").unwrap(), "1");
    // In a transaction that goes back.
    client.run("BEGIN; CREATE EXTENSION citus; ROLLBACK").unwrap();
    assert_eq!(client.value(shown).unwrap(), "0");
    // Ours is not in the way of users', and is not theirs to drop.
    for sql in [
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw",
        "DO $$ BEGIN EXECUTE format('CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host %L, port \
             %L, dbname %L)', \
         '127.0.0.1', current_setting('port'), current_database()); END $$",
        "CREATE USER MAPPING FOR CURRENT_USER SERVER back OPTIONS (user 'postgres', password_required 'false')",
        "CREATE FOREIGN TABLE far (k text) SERVER back OPTIONS (table_name 'pg_am', schema_name 'pg_catalog')",
    ] {
        client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    assert_eq!(client.value("SELECT count(*) FROM pg_extension WHERE extname = 'postgres_fdw'").unwrap(), "1");
    assert!(state_of(&mut client, "DROP EXTENSION postgres_fdw").starts_with("2BP01"));
    assert!(state_of(&mut client, "CREATE EXTENSION postgres_fdw").starts_with("42710"));
    client.run("DROP EXTENSION postgres_fdw CASCADE").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM pg_extension WHERE extname = 'postgres_fdw'").unwrap(), "0");
    assert!(state_of(&mut client, "DROP EXTENSION postgres_fdw").starts_with("42704"));
    // It is where the user wants it, with its functions, and goes with its schema.
    client.run("CREATE SCHEMA ext; CREATE EXTENSION postgres_fdw WITH SCHEMA ext").unwrap();
    let home =
        "SELECT coalesce(min(extnamespace::regnamespace::text), '') FROM pg_extension WHERE extname = 'postgres_fdw'";
    assert_eq!(client.value(home).unwrap(), "ext");
    client.run("SELECT * FROM ext.postgres_fdw_get_connections()").unwrap();
    client.run("CREATE SERVER back FOREIGN DATA WRAPPER postgres_fdw").unwrap();
    assert!(state_of(&mut client, "DROP SCHEMA ext").starts_with("2BP01"));
    assert!(state_of(&mut client, "DO $$ BEGIN DROP SCHEMA ext CASCADE; END $$").starts_with("PH001"));
    client.run("BEGIN; DROP SCHEMA ext CASCADE; ROLLBACK").unwrap();
    assert_eq!(client.value(home).unwrap(), "ext");
    client.run("DROP SCHEMA ext CASCADE").unwrap();
    assert_eq!(client.value(home).unwrap(), "");
    assert_eq!(client.value("SELECT count(*) FROM pg_foreign_server").unwrap(), "0");
    client.run("CREATE ROLE citus_plain; SET ROLE citus_plain").unwrap();
    assert!(state_of(&mut client, "CREATE EXTENSION postgres_fdw").starts_with("42501"));
    client.run("RESET ROLE").unwrap();
    client.run("DO $$ BEGIN PERFORM count(*) FROM t; END $$").unwrap();
}

#[test]
fn a_users_foreign_server_leads_to_the_router() {
    let mut client = database("citus_server");
    let target = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).target.clone();
    client
        .run(
            "CREATE TABLE t (k int PRIMARY KEY); SELECT create_distributed_table('t', 'k'); INSERT INTO t VALUES \
         (1), (2)",
        )
        .unwrap();
    client
        .run(&format!(
            "CREATE SERVER router FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{}', dbname \
                 'citus_server'); \
             CREATE USER MAPPING FOR CURRENT_USER SERVER router OPTIONS (user '{}', password_required 'false'); \
             CREATE FOREIGN TABLE far (k int) SERVER router OPTIONS (table_name 't')",
            target.port, target.user
        ))
        .unwrap();
    assert_eq!(client.value("SELECT sum(k) FROM far").unwrap(), "3");
    client.run("INSERT INTO far VALUES (3)").unwrap();
    assert_eq!(client.value("SELECT sum(t.k) FROM far JOIN t USING (k)").unwrap(), "6");
}

#[test]
fn the_rest_of_the_interface_answers() {
    let mut client = database("citus_rest");
    client
        .run(
            "CREATE TABLE t (k int PRIMARY KEY, v int); SELECT create_distributed_table('t', 'k', shard_count => 4); \
             INSERT INTO t SELECT g, 0 FROM generate_series(1, 40) g; \
             CREATE TABLE r (k int); SELECT create_reference_table('r'); \
             INSERT INTO r VALUES (1), (2); CREATE TABLE l (k int)",
        )
        .unwrap();
    for (sql, expected) in [
        ("SELECT count(*) FROM run_command_on_all_nodes('SELECT 1') WHERE success AND result = '1'", "4"),
        ("SELECT result FROM run_command_on_coordinator('SELECT 7')", "7"),
        (
            "SELECT count(*) FROM run_command_on_coordinator('SELECT 1 / 0') WHERE NOT success AND result LIKE \
                 'ERROR:  division%'",
            "1",
        ),
        ("SELECT sum(result::int) FROM run_command_on_shards('t', 'SELECT count(*) FROM %s')", "40"),
        ("SELECT count(*) FROM run_command_on_shards('t', 'UPDATE %s SET v = 1') WHERE success", "4"),
        ("SELECT sum(v) FROM t", "40"),
        (
            "SELECT count(*) FROM run_command_on_placements('r', 'SELECT count(*) FROM %s') WHERE success AND \
                 result = '2'",
            "3",
        ),
        ("SELECT count(*) FROM run_command_on_shards('t', 'SELECT * FROM nowhere') WHERE NOT success", "4"),
        ("SELECT recover_prepared_transactions()", "0"),
        ("SELECT bool_and(citus_check_connection_to_node(nodename, nodeport)) FROM pg_dist_node", "t"),
        ("SELECT citus_check_connection_to_node('nowhere', 1)", "f"),
        ("SELECT count(*) FROM citus_check_cluster_node_health() WHERE result", "3"),
        (
            "SELECT column_to_column_name(logicalrelid, partkey) FROM pg_dist_partition WHERE logicalrelid = \
                 't'::regclass",
            "k",
        ),
        (
            "SELECT shard_name('t', min(shardid)) ~ '^pgherd_[0-9]+\\.t$' FROM pg_dist_shard WHERE logicalrelid = \
                 't'::regclass",
            "t",
        ),
        ("SELECT groupid FROM pg_dist_local_group", "0"),
        (
            "SELECT count(*) FROM pg_dist_shard_placement p JOIN pg_dist_shard s USING (shardid) WHERE logicalrelid \
                 = 't'::regclass",
            "4",
        ),
        (
            "SELECT (SELECT count(*) FROM pg_dist_object) + (SELECT count(*) FROM pg_dist_transaction) + (SELECT \
                 count(*) FROM pg_dist_cleanup)",
            "0",
        ),
        ("SELECT (SELECT count(*) FROM citus_stat_statements) + (SELECT count(*) FROM citus_stat_counters)", "0"),
        (
            "SELECT string_agg(event, '; ') FROM master_get_table_ddl_events('t') event",
            "CREATE TABLE public.t (k integer NOT NULL, v integer); ALTER TABLE public.t OWNER TO postgres; \
             ALTER TABLE public.t ADD CONSTRAINT t_pkey PRIMARY KEY (k)",
        ),
    ] {
        assert_eq!(client.value(sql).unwrap_or_else(|error| panic!("{sql}: {error}")), expected, "{sql}");
    }
    client.run("SELECT citus_add_local_table_to_metadata('l')").unwrap();
    client.run("SET citus.shard_replication_factor = 2").unwrap();
    assert!(state_of(&mut client, "SELECT citus_no_such_thing()").starts_with("42883 function citus_no_such_thing()"));
    assert!(state_of(&mut client, "SELECT * FROM citus_lock_waitz").starts_with(
        "42P01 relation \
         \"citus_lock_waitz\""
    ));
    // Partitions by time, of a distributed table.
    client
        .run(
            "CREATE TABLE events (at timestamptz, k int) PARTITION BY RANGE (at); \
             SELECT create_distributed_table('events', 'k', shard_count => 2)",
        )
        .unwrap();
    let make = "SELECT create_time_partitions('events', '1 month', '2024-04-10', '2024-01-15')";
    assert_eq!(client.value(make).unwrap(), "t");
    assert_eq!(client.value(make).unwrap(), "f");
    client
        .run(
            "INSERT INTO events SELECT timestamptz '2024-01-02' + g * interval '1 day', g FROM \
         generate_series(1, 100) g",
        )
        .unwrap();
    let names = "SELECT string_agg(partition::text, ' ' ORDER BY from_value::timestamptz) FROM time_partitions \
         WHERE parent_table = 'events'::regclass";
    assert_eq!(client.value(names).unwrap(), "events_p2024_01 events_p2024_02 events_p2024_03 events_p2024_04");
    assert_eq!(client.value("SELECT count(*) FROM events").unwrap(), "100");
    client.run("CALL drop_old_time_partitions('events', '2024-03-15')").unwrap();
    assert_eq!(client.value(names).unwrap(), "events_p2024_03 events_p2024_04");
    assert_eq!(client.value("SELECT min(at) >= '2024-03-01' FROM events").unwrap(), "t");
    let missing =
        "SELECT count(*) FROM get_missing_time_partition_ranges('events', '1 month', '2024-06-10', '2024-03-15')";
    assert_eq!(client.value(missing).unwrap(), "2");
}

/// undistribute_table with what foreign keys lead to: rows, keys and what they do are as on one server.
#[test]
fn tables_are_undistributed_with_those_of_their_keys() {
    let mut client = database("citus_undistribute");
    client
        .run(
            "CREATE TABLE currencies (c text PRIMARY KEY); CREATE TABLE shops (s int PRIMARY KEY, c text REFERENCES currencies); \
             CREATE TABLE orders (s int REFERENCES shops ON DELETE CASCADE, o int, c text REFERENCES currencies (c) ON UPDATE CASCADE, \
                 PRIMARY KEY (s, o)); CREATE TABLE lines (s int, o int, n int, FOREIGN KEY (s, o) REFERENCES orders); \
             CREATE TABLE notes (s int REFERENCES shops, n text); CREATE TABLE apart (k int PRIMARY KEY); \
             SELECT create_reference_table('currencies'), create_distributed_table('shops', 's'), \
                 create_distributed_table('orders', 's'), create_distributed_table('lines', 's'), \
                 create_distributed_table('apart', 'k'); \
             INSERT INTO currencies VALUES ('EUR'), ('USD'); INSERT INTO shops SELECT i, 'EUR' FROM generate_series(1, 9) i; \
             INSERT INTO orders SELECT i % 9 + 1, i, 'USD' FROM generate_series(1, 30) i; \
             INSERT INTO lines SELECT i % 9 + 1, i, 1 FROM generate_series(1, 20) i; INSERT INTO notes VALUES (1, 'one')",
        )
        .unwrap();
    let error = state_of(&mut client, "SELECT undistribute_table('shops')");
    assert!(error.starts_with("0A000 cannot undistribute table"), "{error}");
    client.run("SELECT undistribute_table('orders', cascade_via_foreign_keys => true)").unwrap();
    let kinds = "SELECT string_agg(table_name::text, ' ' ORDER BY 1) FROM citus_tables";
    assert_eq!(client.value(kinds).unwrap(), "apart");
    let keys = "SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), '; ' ORDER BY conname) FROM pg_constraint \
                WHERE contype = 'f'";
    assert_eq!(
        client.value(keys).unwrap(),
        "lines_s_o_fkey FOREIGN KEY (s, o) REFERENCES orders(s, o); notes_s_fkey FOREIGN KEY (s) REFERENCES shops(s); \
         orders_c_fkey FOREIGN KEY (c) REFERENCES currencies(c) ON UPDATE CASCADE; \
         orders_s_fkey FOREIGN KEY (s) REFERENCES shops(s) ON DELETE CASCADE; \
         shops_c_fkey FOREIGN KEY (c) REFERENCES currencies(c)"
    );
    assert_eq!(
        client.value("SELECT (SELECT count(*) FROM shops) || ' ' || (SELECT count(*) FROM orders) || ' ' || count(*) FROM lines").unwrap(),
        "9 30 20"
    );
    assert!(state_of(&mut client, "DELETE FROM shops WHERE s = 2").starts_with("23503"));
    client.run("DELETE FROM lines WHERE s = 2; DELETE FROM shops WHERE s = 2").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM orders WHERE s = 2").unwrap(), "0");
    client.run("UPDATE currencies SET c = 'YEN' WHERE c = 'USD'").unwrap();
    assert_eq!(client.value("SELECT count(DISTINCT c) || min(c) FROM orders").unwrap(), "1YEN");
    // In a block, and back.
    client.run("SELECT create_distributed_table('shops', 's')").unwrap_err();
    client
        .run(
            "BEGIN; ALTER TABLE notes DROP CONSTRAINT notes_s_fkey; ALTER TABLE orders DROP CONSTRAINT orders_s_fkey; \
              SELECT create_reference_table('currencies'), create_distributed_table('shops', 's'); \
              SELECT undistribute_table('shops', true); COMMIT",
        )
        .unwrap();
    assert_eq!(client.value(kinds).unwrap(), "apart");
}
