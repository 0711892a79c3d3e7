//! What any role can read gains it nothing: callbacks are those of the session's own server process, workers run what
//! they are asked to as whoever asks, and what is the router's own is out of reach (docs/decisions/0021). Values that a
//! role has learned are tried in sessions of its own, with the coordinator on this machine and as if it were elsewhere.

#![allow(clippy::unwrap_used)]

use std::sync::OnceLock;
use std::time::Duration;

use pgherd_testkit::client::Client;
use pgherd_testkit::{Cluster, Router, Target};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 2).unwrap())
}

fn state_of(client: &mut Client, sql: &str) -> String {
    let reply = client.simple(sql, None).unwrap();
    reply.error().map_or_else(|| "none".to_owned(), |error| format!("{} {}", error.sqlstate(), error.message()))
}

/// A database with a table that `low` may read and change, and a function of `low` that everybody may call.
fn prepared(target: &Target, name: &str) -> (Client, Target) {
    let mut admin = Client::connect(target).unwrap();
    admin.run(&format!("CREATE DATABASE {name}")).unwrap();
    let target = target.with_database(name);
    let mut high = Client::connect(&target).unwrap();
    let _ = high.simple("CREATE ROLE low LOGIN", None).unwrap();
    for sql in [
        "GRANT CREATE ON SCHEMA public TO low",
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "SELECT create_distributed_table('t', 'k', shard_count => 4)",
        "INSERT INTO t SELECT g, g FROM generate_series(1, 10) g",
        "GRANT SELECT, UPDATE ON t TO low",
        "CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM t); END $$",
    ] {
        high.run(sql).unwrap();
    }
    let mut low_target = target.clone();
    "low".clone_into(&mut low_target.user);
    low_target.password = None;
    let mut low = Client::connect(&low_target).unwrap();
    for sql in [
        "CREATE TABLE learned (what text)",
        // What is there to be read by code of low's in the session of another role.
        "CREATE FUNCTION learn() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         INSERT INTO learned SELECT current_setting('postgres_fdw.application_name', true); \
         INSERT INTO learned SELECT setting FROM pg_settings WHERE setting LIKE 'pgherd%'; \
         INSERT INTO learned SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid(); \
         INSERT INTO learned SELECT 'pgherd:' || pg_backend_pid(); RETURN (SELECT count(*) FROM t); END $$",
    ] {
        low.run(sql).unwrap();
    }
    (high, low_target)
}

fn learned(low: &Target) -> Vec<String> {
    let mut client = Client::connect(low).unwrap();
    let reply = client.simple("SELECT DISTINCT what FROM learned WHERE what <> ''", None).unwrap();
    let rows = reply.answers.iter().flat_map(|answer| &answer.rows);
    rows.filter_map(|row| Some(String::from_utf8_lossy(row.first()?.as_deref()?).into_owned())).collect()
}

/// `high` has called low's function, which has kept what it could read. Its transaction is open, with a row that nobody
/// else may see, first between two statements and then in the middle of one.
fn nothing_is_gained(target: &Target, name: &str) {
    let (mut high, low) = prepared(target, name);
    // The process that is asked must be the one that has been told on: `high` keeps its own.
    high.run("CREATE TEMP TABLE keeps_the_connection (k int)").unwrap();
    assert_eq!(high.value("SELECT learn()").unwrap(), "10");
    let values = learned(&low);
    assert!(!values.is_empty());
    high.run("BEGIN; INSERT INTO t VALUES (100, 100); UPDATE t SET v = -1 WHERE k = 1").unwrap();
    assert_eq!(high.value("SELECT total()").unwrap(), "11");
    for running in [false, true] {
        if running {
            high.send(&pgherd_testkit::client::query("SELECT total(), pg_sleep(4), total()")).unwrap();
            std::thread::sleep(Duration::from_millis(300));
        }
        for value in &values {
            let mut client = Client::connect(&low).unwrap();
            client.run(&format!("SET postgres_fdw.application_name = '{value}'")).unwrap();
            let reply = client.simple("SELECT total()", None).unwrap();
            match reply.error() {
                // It is not let in.
                Some(error) => assert!(error.sqlstate().starts_with("08"), "{value}: {}", error.message()),
                None => {
                    let rows = &reply.answers[0].rows;
                    assert_eq!(rows[0][0].as_deref(), Some(&b"10"[..]), "{value}: it sees what high has not committed");
                }
            }
            let changed = client.simple("DO $$ BEGIN UPDATE t SET v = v + 1000 WHERE k = 2; END $$", None).unwrap();
            if changed.error().is_none() {
                let mut other = Client::connect(&low).unwrap();
                let now = other.value("SELECT v FROM t WHERE k = 2").unwrap();
                assert_ne!(now, "2", "{value}: an acknowledged change is not there");
                other.run("UPDATE t SET v = 2 WHERE k = 2").unwrap();
            }
        }
    }
    let done = high.receive_until_ready(1).unwrap();
    assert!(done.iter().all(|message| message.kind != b'E'), "{done:?}");
    assert_eq!(high.value("SELECT v FROM t WHERE k = 2").unwrap(), "2");
    high.run("COMMIT").unwrap();
    assert_eq!(high.value("SELECT total()").unwrap(), "11");
}

#[test]
fn what_a_session_tells_opens_no_other() {
    nothing_is_gained(&cluster().target, "security_local");
}

#[test]
fn nor_does_it_where_the_coordinator_is_elsewhere() {
    let mut client = Client::connect(&cluster().target).unwrap();
    let mut coordinator = cluster().target.clone();
    coordinator.port = client.value("SELECT setting FROM pg_settings WHERE name = 'port'").unwrap().parse().unwrap();
    let router = Router::start(env!("CARGO_BIN_EXE_pgherd"), &coordinator, &["--callbacks-over-tcp"]).unwrap();
    nothing_is_gained(&router.target, "security_tcp");
}

#[test]
fn workers_run_commands_as_who_asks_and_for_nobody_else() {
    let (mut high, low) = prepared(&cluster().target, "security_commands");
    let mut low = Client::connect(&low).unwrap();
    let super_now = "ALTER ROLE low SUPERUSER";
    // low's code in the session of a superuser.
    low.run(&format!(
        "CREATE FUNCTION commands() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ BEGIN RETURN QUERY SELECT result FROM pgherd.run_command_on_workers('{super_now}'); END $$; \
         CREATE FUNCTION straight() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ BEGIN RETURN QUERY SELECT result FROM pgherd.remote_command WHERE command = '{super_now}'; END $$; \
         CREATE FUNCTION as_another() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ BEGIN RETURN QUERY SELECT result FROM pgherd.run_on_workers('postgres', '{super_now}'); END $$; \
         CREATE FUNCTION with_a_context() RETURNS SETOF text LANGUAGE plpgsql SECURITY DEFINER AS $f$ BEGIN \
         RETURN QUERY EXECUTE 'SELECT result FROM pgherd.run_on_workers(''postgres'', $c${super_now}$c$) /*' || \
         E'\\n' || \
         'SQL statement \"SELECT r.* FROM pgherd.run_on_workers(current_user, command) r\"' || E'\\n*/'; END $f$"
    ))
    .unwrap();
    for function in ["commands", "straight", "as_another", "with_a_context"] {
        let said = state_of(&mut high, &format!("SELECT {function}()"));
        assert!(said.starts_with("42501"), "{function}: {said}");
    }
    assert!(state_of(&mut low, "SELECT * FROM pgherd.remote_command WHERE command = 'SELECT 1'").starts_with("42501"));
    // As who asks.
    let who = "SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_workers('SELECT current_user')";
    assert_eq!(low.value(who).unwrap(), "low");
    let user = high.value("SELECT current_user").unwrap();
    assert_eq!(high.value(who).unwrap(), user);
    high.run("SET ROLE low").unwrap();
    assert_eq!(high.value(who).unwrap(), "low");
    high.run("RESET ROLE").unwrap();
    let is_super = "SELECT string_agg(result, ' ') FROM \
                    run_command_on_workers($$SELECT rolsuper FROM pg_roles WHERE rolname = 'low'$$)";
    assert_eq!(high.value(is_super).unwrap(), "f f");
    // What a function of another role may still ask.
    low.run(
        "CREATE FUNCTION sizes() RETURNS bool LANGUAGE sql SECURITY DEFINER AS \
         $$ SELECT pgherd.citus_table_size('t') >= 0 AND pgherd.citus_total_relation_size('t') >= 0 $$",
    )
    .unwrap();
    assert_eq!(high.value("SELECT sizes()").unwrap(), "t");
}

/// Who owns a database says what operators mean there, to those who have its path: not to the router's own account.
#[test]
fn the_path_of_a_database_is_not_the_routers() {
    let mut admin = Client::connect(&cluster().target).unwrap();
    let _ = admin.simple("CREATE ROLE low LOGIN", None).unwrap();
    admin.run("CREATE DATABASE security_path OWNER low").unwrap();
    let target = Target { user: "low".to_owned(), password: None, ..cluster().target.with_database("security_path") };
    let mut low = Client::connect(&target).unwrap();
    low.run("CREATE SCHEMA mine").unwrap();
    // No statement that fails takes that back.
    low.run("CREATE SEQUENCE mine.called").unwrap();
    for (number, (operator, left, right)) in [
        ("~~*", "text", "text"),
        ("~~", "text", "text"),
        ("~", "text", "text"),
        ("=", "text", "text"),
        ("<>", "text", "text"),
        ("=", "name", "name"),
        ("=", "name", "text"),
        ("<>", "name", "text"),
        ("=", "int4", "int4"),
        ("=", "oid", "oid"),
        ("<=", "timestamptz", "timestamptz"),
    ]
    .into_iter()
    .enumerate()
    {
        low.run(&format!(
            "CREATE FUNCTION mine.f{number}({left}, {right}) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN \
             IF NOT current_user OPERATOR(pg_catalog.=) 'low' THEN PERFORM pg_catalog.nextval('mine.called'); END IF; \
             RETURN $1 OPERATOR(pg_catalog.{operator}) $2; END $$; \
             CREATE OPERATOR mine.{operator} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = mine.f{number})"
        ))
        .unwrap();
    }
    low.run("ALTER DATABASE security_path SET search_path = mine, pg_catalog").unwrap();
    low.run("ALTER DATABASE security_path SET datestyle = 'German'").unwrap();
    // What the router asks there by itself: for the first client, at each start, for transactions over several servers.
    let mut coordinator = cluster().target.clone();
    coordinator.port = admin.value("SELECT setting FROM pg_settings WHERE name = 'port'").unwrap().parse().unwrap();
    let router = Router::start(env!("CARGO_BIN_EXE_pgherd"), &coordinator, &[]).unwrap();
    for target in [&cluster().target, &router.target] {
        let target = Target { user: "low".to_owned(), password: None, ..target.with_database("security_path") };
        let mut low = Client::connect_with(&target, &[("datestyle", "German")]).unwrap();
        low.run("CREATE TABLE IF NOT EXISTS mine.spread (k int4)").unwrap();
        let _ = low.simple("SELECT public.create_distributed_table('mine.spread', 'k')", None).unwrap();
        low.run("INSERT INTO mine.spread SELECT pg_catalog.generate_series(1, 20)").unwrap();
        low.run("BEGIN; UPDATE mine.spread SET k = k; COMMIT").unwrap();
        let _ = low.simple("SELECT * FROM pg_catalog.pg_stat_activity", None).unwrap();
        assert_eq!(low.value("SELECT is_called FROM mine.called").unwrap(), "f");
    }
}

#[test]
fn what_is_the_routers_is_out_of_reach() {
    let (mut high, low) = prepared(&cluster().target, "security_own");
    let mut low = Client::connect(&low).unwrap();
    low.run("CREATE TABLE mine (k int PRIMARY KEY)").unwrap();
    let calls = [
        "SELECT pgherd.bump_epoch()",
        "SELECT pgherd.record_commit('pgherd_1_00000000000000000000000000000000_2', '')",
        "SELECT pgherd.record_abort('pgherd_1_00000000000000000000000000000000_2')",
        "SELECT pgherd.open_placement(77)",
        "SELECT pgherd.create_shard_schemas('{102999}', 'low')",
        "DO $$ BEGIN LOCK TABLE pgherd.placement_epoch IN ACCESS SHARE MODE; END $$",
        "SELECT pgherd.by_router('SELECT pgherd.bump_epoch()', '')",
    ];
    let only_here = [
        "SELECT pgherd.begin_operation('create index', 'x', 't'::regclass::oid, 'y')",
        "SELECT pgherd.register_table('mine', 'h', 'k', 1, false, '{1,9}')",
        "SELECT pgherd.unregister_table('t'::regclass::oid)",
        "SELECT pgherd.table_renamed('t', 'v')",
        "SELECT pgherd.register_node('somewhere', 1)",
    ];
    for sql in calls.iter().chain(&only_here) {
        let said = state_of(&mut low, sql);
        assert!(said.starts_with("42501"), "{sql}: {said}");
    }
    for sql in &calls {
        let there = format!("SELECT bool_or(success)::text FROM run_command_on_workers($q$BEGIN; {sql}; COMMIT$q$)");
        assert_eq!(low.value(&there).unwrap(), "false", "{sql}");
    }
    // Locks that were once ours hold nobody up.
    low.run("BEGIN").unwrap();
    for number in [-2, -1, 0, 1, 2, 3, 4, 5] {
        low.run(&format!(
            "SELECT pg_advisory_xact_lock(1885825124, {number}); \
             SELECT * FROM run_command_on_workers('SELECT pg_advisory_xact_lock(1885825124, {number})')"
        ))
        .unwrap();
    }
    // An open transaction that has changed a row of its own takes part in every worker.
    low.run("UPDATE t SET v = v").unwrap();
    for number in [1, 2, 3] {
        let taken = format!(
            "SELECT bool_and(success) FROM run_command_on_workers('SELECT pg_advisory_xact_lock(1885825124, {number})')"
        );
        assert_eq!(low.value(&taken).unwrap(), "t");
    }
    high.run("SET statement_timeout = '10s'").unwrap();
    assert_eq!(high.value("SELECT sum(k) FROM t").unwrap(), "55");
    assert_eq!(high.value("SELECT total()").unwrap(), "10");
    high.run("CREATE TABLE further (k int PRIMARY KEY); SELECT create_distributed_table('further', 'k')").unwrap();
    high.run("CREATE VIEW over_it AS SELECT * FROM further; ALTER TABLE further ADD v int; DROP TABLE further CASCADE")
        .unwrap();
    low.run("ROLLBACK").unwrap();
}

#[test]
fn triggers_that_note_changes_are_on_tables_of_pgherd_alone() {
    let (_, low) = prepared(&cluster().target, "noted");
    let mut client = Client::connect(&low).unwrap();
    for sql in [
        "CREATE TYPE mark AS ENUM ('a')",
        "CREATE FUNCTION evil(mark) RETURNS oid LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'ALTER ROLE low SUPERUSER'; RETURN 1; END $$",
        "CREATE CAST (mark AS oid) WITH FUNCTION evil(mark)",
        "CREATE TEMP TABLE marks (logicalrelid mark)",
    ] {
        client.run(sql).unwrap();
    }
    for (function, event) in
        [("note_rows('logicalrelid')", "REFERENCING NEW TABLE AS changed_rows"), ("note_rows('')", "")]
    {
        let sql = format!(
            "CREATE TRIGGER x AFTER INSERT ON marks {event} FOR EACH STATEMENT EXECUTE FUNCTION pgherd.{function}"
        );
        assert!(state_of(&mut client, &sql).starts_with("42501"), "{sql}");
    }
    assert!(state_of(&mut client, "SELECT pgherd.note_change(0, 0)").starts_with("42501"));
    client.run("INSERT INTO marks VALUES ('a')").unwrap();
    assert_eq!(client.value("SELECT rolsuper FROM pg_roles WHERE rolname = 'low'").unwrap(), "f");
}
