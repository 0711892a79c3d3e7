//! What becomes a node and what does not, and messages that a client wants to hear or not.

#![allow(clippy::unwrap_used)]

use std::sync::{Mutex, PoisonError};

use pgherd_testkit::client::{Client, Fields, query};
use pgherd_testkit::{Cluster, Side};

/// Held by who makes databases, or is in the one that they are copies of: PostgreSQL refuses while others are.
static DATABASES: Mutex<()> = Mutex::new(());

fn cluster() -> &'static Cluster {
    Cluster::shared(env!("CARGO_BIN_EXE_pgherd"))
}

/// The severities of what is said beside the answer.
fn said(client: &mut Client, sql: &str) -> Vec<String> {
    client.send(&query(sql)).unwrap();
    let messages = client.receive_until_ready(1).unwrap();
    let notices = messages.iter().filter(|m| matches!(m.kind, b'N' | b'E'));
    notices.map(|m| Fields::parse(&m.body).get('S').to_owned()).collect()
}

#[test]
fn the_coordinator_does_not_become_a_worker() {
    let _alone = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    let side = cluster().side();
    let mut client = side.connect("postgres").unwrap();
    let port = client.value("SHOW port").unwrap();
    for host in ["127.0.0.1", "localhost"] {
        let reply = client.simple(&format!("SELECT citus_add_node('{host}', {port})"), None).unwrap();
        let error = reply.error().unwrap();
        assert_eq!(error.sqlstate(), "22023");
        assert!(error.message().ends_with("is the coordinator"), "{}", error.message());
    }
    side.create_database("no_node", "").unwrap();
    let mut client = side.connect("no_node").unwrap();
    client.run("CREATE TABLE t (k int); SELECT create_distributed_table('t', 'k')").unwrap();
}

/// What a database says of its tables, on every way that a statement can go.
fn told(side: &Side, database: &str) -> String {
    let mut client = side.connect(database).unwrap();
    let mut told = Vec::new();
    for sql in [
        "SELECT count(*) FROM t",
        "SELECT v FROM t WHERE k = 7",
        "SELECT count(*) FROM seen JOIN here USING (k)",
        "SELECT datname FROM pg_stat_activity WHERE pid = pg_backend_pid()",
    ] {
        told.push(client.value(sql).unwrap());
    }
    told.join(" ")
}

#[test]
fn a_database_that_clients_have_been_in_is_copied() {
    let _alone = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    let side = cluster().side();
    side.connect("template1").unwrap().value("SELECT 1").unwrap();
    let mut client = side.connect("postgres").unwrap();
    client.run("CREATE DATABASE copied").unwrap();
    {
        let mut client = side.connect("copied").unwrap();
        client
            .run(
                "CREATE TABLE t (k int PRIMARY KEY, v int); SELECT create_distributed_table('t', 'k'); \
                 INSERT INTO t SELECT i, i * 2 FROM generate_series(1, 50) i; CREATE VIEW seen AS SELECT * FROM t WHERE v > 20; \
                 CREATE TABLE here AS SELECT generate_series(1, 50) AS k",
            )
            .unwrap();
        // PostgreSQL lets a session copy the database that it is in.
        client.run("CREATE DATABASE copied_inside TEMPLATE copied").unwrap();
        let refused = client.simple("CREATE DATABASE no_copy TEMPLATE postgres", None).unwrap();
        assert_eq!(refused.error().unwrap().sqlstate(), "55006");
    }
    client.run("CREATE DATABASE copied_again TEMPLATE = copied_inside").unwrap();
    // Outside of blocks, and with nobody in it, likewise.
    client.run("ALTER DATABASE copied_again SET TABLESPACE pg_default").unwrap();
    client.run("BEGIN").unwrap();
    let refused = client.simple("ALTER DATABASE copied_again SET TABLESPACE pg_default", None).unwrap();
    assert_eq!(refused.error().unwrap().sqlstate(), "25001");
    client.run("ROLLBACK").unwrap();
    assert_eq!(told(&side, "copied_inside"), "50 14 40 copied_inside");
    side.connect("copied_inside").unwrap().run("DO $$ BEGIN DELETE FROM t WHERE v > 60; END $$").unwrap();
    assert_eq!(told(&side, "copied_inside"), "30 14 20 copied_inside");
    assert_eq!(told(&side, "copied_again"), "50 14 40 copied_again");
    client.run("ALTER DATABASE copied_again RENAME TO copied_once_more").unwrap();
    assert_eq!(told(&side, "copied_once_more"), "50 14 40 copied_once_more");
    assert_eq!(told(&side, "copied"), "50 14 40 copied");
    for name in ["copied", "copied_inside", "copied_once_more"] {
        client.run(&format!("DROP DATABASE {name}")).unwrap();
    }
}

#[test]
fn clients_hear_what_they_want_to_hear() {
    let _alone = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    let side = cluster().side();
    side.create_database("heard", "").unwrap();
    let mut client = side.connect("heard").unwrap();
    let make = |client: &mut Client, name: &str| {
        client.run(&format!("CREATE TABLE {name} AS SELECT g AS k FROM generate_series(1, 10) g")).unwrap();
        said(client, &format!("SELECT create_distributed_table('{name}', 'k')"))
    };
    assert_eq!(make(&mut client, "one"), ["NOTICE", "NOTICE"]);
    client.run("SET client_min_messages = warning").unwrap();
    assert!(make(&mut client, "two").is_empty());
    assert_eq!(said(&mut client, "COMMIT"), ["WARNING"]);
    client.run("SET client_min_messages = 'ERROR'").unwrap();
    assert!(said(&mut client, "COMMIT").is_empty());
    client.run("BEGIN; SET LOCAL client_min_messages = debug1").unwrap();
    assert_eq!(said(&mut client, "BEGIN"), ["WARNING"]);
    client.run("ROLLBACK; RESET client_min_messages").unwrap();
    assert_eq!(make(&mut client, "three"), ["NOTICE", "NOTICE"]);
}
