//! A client's own PREPARE TRANSACTION, our own names, which are not for clients, and databases, which keep their names
//! on every node. What concerns the coordinator alone is compared with PostgreSQL in tests/differential/local.sql.
#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::Client;
use pgherd_testkit::ways::{Ways, compare};
use pgherd_testkit::{Cluster, Side, beside};

fn side(name: &str) -> Side {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    side
}

/// What a statement fails with.
fn said(client: &mut Client, sql: &str) -> String {
    client.run(sql).err().unwrap().to_string()
}

/// What a distributed transaction manager does: both sides say the same at each step.
#[test]
fn what_workers_wrote_is_prepared() {
    const STEPS: &[&str] = &[
        "a BEGIN",
        "a INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i",
        "a INSERT INTO r VALUES (1)",
        "a PREPARE TRANSACTION '{}_one'",
        "a SELECT count(*) FROM t",
        "b SELECT gid = '{}_one', owner = current_user FROM pg_prepared_xacts WHERE database = current_database()",
        "b SET lock_timeout = '100ms'",
        "b INSERT INTO t VALUES (1, 5)",
        "b COMMIT PREPARED '{}_one'",
        "b SELECT count(*), sum(k) FROM t",
        "a SELECT * FROM r",
        "a COMMIT PREPARED '{}_one'",
        // Rolled back, by another session.
        "a BEGIN",
        "a UPDATE t SET n = n + 1",
        "a SAVEPOINT s",
        "a DELETE FROM t WHERE k < 5",
        "a ROLLBACK TO s",
        "a SELECT count(*) FROM here, t",
        "a PREPARE TRANSACTION '{}_two'",
        "b UPDATE t SET n = 9 WHERE k = 3",
        "b ROLLBACK PREPARED '{}_two'",
        "b UPDATE t SET n = 9 WHERE k = 3",
        "a SELECT sum(n) FROM t",
        // One row, and a local one with it.
        "a BEGIN",
        "a INSERT INTO here VALUES (1)",
        "a UPDATE t SET n = 100 WHERE k = 4",
        "a PREPARE TRANSACTION '{}_three'",
        "a SELECT count(*) FROM here",
        "a BEGIN",
        "a COMMIT PREPARED '{}_three'",
        "a ROLLBACK",
        "a COMMIT PREPARED '{}_three'",
        "b SELECT (SELECT count(*) FROM here), n FROM t WHERE k = 4",
        // A name that is taken, and what is wrong with the transaction itself.
        "a BEGIN",
        "a UPDATE t SET n = 7 WHERE k = 5",
        "a PREPARE TRANSACTION '{}_four'",
        "b BEGIN",
        "b UPDATE t SET n = 8 WHERE k = 6",
        "b PREPARE TRANSACTION '{}_four'",
        "b SELECT n FROM t WHERE k = 6",
        "b ROLLBACK PREPARED '{}_four'",
        "a BEGIN",
        "a UPDATE t SET n = 8 WHERE k = 6",
        "a INSERT INTO t VALUES (1, 1)",
        "a PREPARE TRANSACTION '{}_five'",
        "a SELECT n FROM t WHERE k IN (5, 6) ORDER BY k",
        // Checked when it is prepared.
        "a BEGIN",
        "a INSERT INTO child VALUES (1, 1000)",
        "a PREPARE TRANSACTION '{}_six'",
        "a BEGIN",
        "a INSERT INTO child VALUES (1, 1)",
        "a PREPARE TRANSACTION '{}_six'",
        "b COMMIT PREPARED '{}_six'",
        "a SELECT * FROM child",
        "a BEGIN ISOLATION LEVEL SERIALIZABLE",
        "a SELECT sum(n) >= 0 FROM t",
        "a UPDATE t SET n = 1 WHERE k = 7",
        "a PREPARE TRANSACTION '{}_seven'",
        "a COMMIT PREPARED '{}_seven'",
        "a SELECT n FROM t WHERE k = 7",
        // Rows that were only read are no hindrance.
        "a BEGIN",
        "a SELECT k FROM t WHERE k = 1",
        "a INSERT INTO here VALUES (2)",
        "a PREPARE TRANSACTION '{}_eight'",
        "a COMMIT PREPARED '{}_eight'",
        "a SELECT count(*) FROM here",
        "a BEGIN",
        "a UPDATE t SET n = 3 WHERE k = 8",
        "a NOTIFY told",
        "a PREPARE TRANSACTION '{}_nine'",
        "a BEGIN",
        "a LISTEN told",
        "a UPDATE t SET n = 3 WHERE k = 8",
        "a PREPARE TRANSACTION '{}_ten'",
        "a SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()",
        // A name that is taken, with settings: they are what they were.
        "a BEGIN",
        "a INSERT INTO t VALUES (50, 1)",
        "a PREPARE TRANSACTION '{}_taken'",
        "b BEGIN",
        "b SET search_path = pg_catalog",
        "b SELECT count(*) FROM public.t, public.here",
        "b UPDATE public.t SET n = 2",
        "b PREPARE TRANSACTION '{}_taken'",
        "b SHOW search_path",
        "b SELECT n FROM t WHERE k = 9",
        "a SELECT n FROM t WHERE k = 9",
        "a COMMIT PREPARED '{}_taken'",
        "b BEGIN",
        "b SET search_path = pg_catalog",
        "b UPDATE public.t SET n = 2 WHERE k = 9",
        "b PREPARE TRANSACTION '{}_set'",
        "b SHOW search_path",
        "b SELECT n FROM public.t WHERE k = 9",
        "b ROLLBACK PREPARED '{}_set'",
        "b RESET search_path",
        "b SELECT n FROM t WHERE k = 9",
        "a SELECT n FROM t WHERE k = 9",
    ];
    let (_plain, sides) = beside::sides(env!("CARGO_BIN_EXE_pgherd"));
    let ways = Ways { ordered: true, ..Ways::default() };
    let mut said: Vec<Vec<String>> = Vec::new();
    for side in &sides {
        side.create_database("two_phase_workers", "").unwrap();
        let connect = || side.connect("two_phase_workers").unwrap();
        let (mut a, mut b) = (connect(), connect());
        a.run("CREATE TABLE t (k int PRIMARY KEY, n int); CREATE TABLE r (a int); CREATE TABLE here (a int)").unwrap();
        a.run("CREATE TABLE child (k int, t int)").unwrap();
        if side.is_cluster {
            a.run("SELECT create_distributed_table('t', 'k', shard_count => 8)").unwrap();
            a.run("SELECT create_reference_table('r')").unwrap();
            a.run("SELECT create_distributed_table('child', 't', colocate_with => 't')").unwrap();
        }
        a.run("ALTER TABLE child ADD FOREIGN KEY (t) REFERENCES t DEFERRABLE INITIALLY DEFERRED").unwrap();
        let steps = STEPS.iter().map(|step| {
            let (who, statement) = step.split_once(' ').unwrap();
            let who = if who == "a" { &mut a } else { &mut b };
            // Names are the whole server's, and the test's runs may be beside each other.
            let name = format!("two_phase_{}", std::process::id());
            let reply = who.simple(&statement.replace("{}", &name), None).unwrap();
            format!("{step}: {}", ways.told(&reply).replace(&name, "{}"))
        });
        said.push(steps.collect());
    }
    compare("two-phase commit", &said[0], &said[1]);
}

/// Nobody decides for the client, nor does recovery.
#[test]
fn what_is_prepared_waits_for_its_client() {
    let side = side("two_phase_waits");
    let connect = || side.connect("two_phase_waits").unwrap();
    let mut client = connect();
    client.run("CREATE TABLE t (k int PRIMARY KEY, n int)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 4)").unwrap();
    for (name, end) in [("stays", "COMMIT"), ("goes", "ROLLBACK")] {
        client.run("BEGIN").unwrap();
        client.run("INSERT INTO t SELECT i + (SELECT count(*) FROM t), 1 FROM generate_series(1, 20) i").unwrap();
        client.run(&format!("PREPARE TRANSACTION 'waits_{name}'")).unwrap();
        drop(client);
        client = connect();
        for _ in 0..2 {
            client.run("SELECT recover_prepared_transactions()").unwrap();
        }
        let prepared = "SELECT sum(result::int) FROM run_command_on_workers($$SELECT count(*) FROM pg_prepared_xacts \
             WHERE database = current_database()$$)";
        assert!(client.value(prepared).unwrap().parse::<i32>().unwrap() > 0);
        let before = client.value("SELECT count(*) FROM t").unwrap();
        client.run(&format!("{end} PREPARED 'waits_{name}'")).unwrap();
        assert_eq!(client.value(prepared).unwrap(), "0");
        let after: i32 = client.value("SELECT count(*) FROM t").unwrap().parse().unwrap();
        assert_eq!(after - before.parse::<i32>().unwrap(), if end == "COMMIT" { 20 } else { 0 });
    }
}

#[test]
fn our_names_are_not_for_clients() {
    let mut client = side("two_phase_names").connect("two_phase_names").unwrap();
    client.run("BEGIN").unwrap();
    client.run("CREATE TABLE l (a int)").unwrap();
    let name = "pgherd_1_00112233445566778899aabbccddeeff_2";
    assert!(said(&mut client, &format!("PREPARE TRANSACTION '{name}'")).contains("42939"));
    assert!(said(&mut client, &format!("COMMIT PREPARED '{name}'")).contains("42939"));
    assert!(said(&mut client, &format!("ROLLBACK PREPARED '{name}'")).contains("42939"));
    assert!(said(&mut client, "ROLLBACK PREPARED 'nobody'").contains("42704"));
}

#[test]
fn a_database_is_renamed_on_every_node() {
    let side = side("two_phase_renamer");
    let mut client = side.connect("two_phase_renamer").unwrap();
    client.run("DROP DATABASE IF EXISTS two_phase_new").unwrap();
    client.run("CREATE DATABASE two_phase_old").unwrap();
    let mut other = side.connect("two_phase_old").unwrap();
    other.run("CREATE TABLE t (k int)").unwrap();
    other.run("SELECT create_distributed_table('t', 'k', shard_count => 4)").unwrap();
    other.run("INSERT INTO t SELECT generate_series(1, 20)").unwrap();
    let refused = said(&mut client, "ALTER DATABASE two_phase_old RENAME TO two_phase_new");
    assert!(refused.contains("is being accessed by other users"), "{refused}");
    drop(other);
    // The session ends a moment after its client.
    let renamed = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        client.run("ALTER DATABASE two_phase_old RENAME TO two_phase_new").is_ok()
    });
    assert!(renamed);
    let mut other = side.connect("two_phase_new").unwrap();
    assert_eq!(other.value("SELECT count(*) FROM t").unwrap(), "20");
    drop(other);
}
