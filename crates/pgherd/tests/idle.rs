//! Sessions that are idle for longer than their settings allow end as on one PostgreSQL, and no others do.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use pgherd_testkit::client::{Client, Fields, bind, execute, parse, sync};
use pgherd_testkit::{Cluster, Plain, Side};

/// What a client is told that says nothing more.
fn last_words(client: &mut Client) -> String {
    let mut said = String::new();
    while let Ok(message) = client.receive() {
        if message.kind == b'E' {
            let fields = Fields::parse(&message.body);
            said = format!("{} {} {}", fields.get('S'), fields.sqlstate(), fields.message());
        }
    }
    said
}

fn prepared(side: &Side) {
    side.create_database("idle", "").unwrap();
    let mut client = side.connect("idle").unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE ROLE idler LOGIN; GRANT ALL ON t TO idler").unwrap();
    if side.is_cluster {
        client.run("SELECT create_distributed_table('t', 'k', shard_count => 6)").unwrap();
    }
    client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g").unwrap();
    client.run("ALTER ROLE idler SET idle_in_transaction_session_timeout = '150ms'").unwrap();
}

/// The settings and statements of a session that then says nothing.
const SESSIONS: &[&[&str]] = &[
    &["SET idle_in_transaction_session_timeout = '100ms'", "BEGIN"],
    &["SET idle_in_transaction_session_timeout = 100", "BEGIN; UPDATE t SET v = 1 WHERE k = 1"],
    &["SET idle_in_transaction_session_timeout = '0.1 s'", "BEGIN; UPDATE t SET v = 1"],
    &["BEGIN", "SET LOCAL idle_in_transaction_session_timeout = '100ms'"],
    &["SET idle_in_transaction_session_timeout = '100ms'", "BEGIN", "SELECT 1 / 0"],
    &["SET idle_in_transaction_session_timeout = '100ms'", "BEGIN", "SELECT v / 0 FROM t"],
    &["SET idle_session_timeout = '100ms'"],
    &["SET idle_session_timeout = '100ms'", "SELECT v FROM t WHERE k = 1"],
    &["SET idle_session_timeout = '100ms'", "BEGIN; UPDATE t SET v = 1; COMMIT"],
    &["SET idle_session_timeout = '100ms'", "CREATE TEMP TABLE mine (n int)"],
    &["SET idle_session_timeout = '100ms'; SET idle_in_transaction_session_timeout = '200ms'", "BEGIN"],
];

#[test]
fn idle_sessions_end_as_on_one_server() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let sides = [plain.side("postgres"), cluster.side()];
    let told = sides.each_ref().map(|side| {
        prepared(side);
        let mut told = Vec::new();
        for statements in SESSIONS {
            let mut client = side.connect("idle").unwrap();
            for statement in *statements {
                client.simple(statement, None).unwrap();
            }
            told.push(last_words(&mut client));
        }
        // By its role, and between the messages of a pipeline.
        let mut target = side.target.with_database("idle");
        target.user = "idler".into();
        let mut client = Client::connect(&target).unwrap();
        client.run("BEGIN; UPDATE t SET v = 2 WHERE k = 2").unwrap();
        told.push(last_words(&mut client));
        let mut client = side.connect("idle").unwrap();
        // (As long as a busy machine may need between two messages.)
        client.run("SET idle_session_timeout = '1s'").unwrap();
        let once = [parse("s", "SELECT v FROM t WHERE k = $1", &[23]), sync()].concat();
        client.send(&once).unwrap();
        client.receive_until_ready(1).unwrap();
        for key in 1..5 {
            let values = [Some(key.to_string().into_bytes())];
            client.send(&[bind("", "s", &[], &values, &[]), execute("", 0), sync()].concat()).unwrap();
            client.receive_until_ready(1).unwrap();
        }
        told.push(last_words(&mut client));
        let left = side.connect("idle").unwrap().value("SELECT sum(v) FROM t").unwrap();
        told.push(format!("sum {left}"));
        told
    });
    assert_eq!(told[0], told[1]);
    assert!(told[0].iter().take(SESSIONS.len()).all(|words| words.starts_with("FATAL")), "{:?}", told[0]);
}

#[test]
fn busy_sessions_do_not_end() {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database("busy", "").unwrap();
    let mut client = side.connect("busy").unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 6)").unwrap();
    client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g").unwrap();
    client.run("SET idle_in_transaction_session_timeout = '500ms'; SET idle_session_timeout = '500ms'").unwrap();
    // Each worker's part is idle for longer while the session is at work elsewhere.
    client.run("BEGIN; UPDATE t SET v = v + 1").unwrap();
    for _ in 0..4 {
        client.run("SELECT pg_sleep(0.2)").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    client.run("SELECT pg_sleep(0.7)").unwrap();
    client.run("UPDATE t SET v = v + 1; COMMIT").unwrap();
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(250));
        assert_eq!(client.value("SELECT sum(v) FROM t").unwrap(), "40");
    }
    assert_eq!(client.value("SHOW idle_session_timeout").unwrap(), "500ms");
}

/// What a session has set is so on the server connections that others take over after it: none is about to be ended by
/// its server when it is given to somebody.
#[test]
fn nobody_gets_a_connection_that_its_server_is_about_to_end() {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database("reused", "").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let side = &side;
            scope.spawn(move || {
                for round in 0..25 {
                    let mut client = side.connect("reused").unwrap();
                    client.run("SET idle_session_timeout = '100ms'").unwrap();
                    drop(client);
                    std::thread::sleep(Duration::from_millis(96 + (thread + round) % 8));
                }
            });
        }
    });
}
