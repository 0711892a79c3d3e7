//! What becomes of the statements of a client that has gone: they are carried out as by one PostgreSQL, which finishes
//! what it has received, and a COMMIT commits everywhere or nowhere.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use pgherd_testkit::client::{Client, query};
use pgherd_testkit::{Cluster, Side};

/// On a database with a distributed table and a local one: a write to the local one takes its time to COMMIT.
fn prepared(name: &str) -> Side {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 6)").unwrap();
    client.run("CREATE TABLE slow (n int)").unwrap();
    client
        .run(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION wait()",
        )
        .unwrap();
    side
}

/// Waits until nobody but us does anything in this database, and nothing is left prepared.
fn settle(side: &Side, name: &str) -> Client {
    let mut client = side.connect(name).unwrap();
    let busy = format!(
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid() \
         AND state <> 'idle') + (SELECT sum(result::int) FROM run_command_on_workers($$SELECT (SELECT count(*) FROM \
         pg_prepared_xacts WHERE database = '{name}') + (SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}' \
         AND pid <> pg_backend_pid() AND state <> 'idle' AND backend_type = 'client backend')$$))"
    );
    until(|| client.value(&busy).unwrap() == "0");
    client
}

#[track_caller]
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it does not come to an end");
}

#[test]
fn a_commit_is_whole_though_its_client_has_gone() {
    let side = prepared("gone_commit");
    for (n, protocol) in ["2pc", "1pc"].into_iter().enumerate() {
        for (m, pause) in [0, 300, 800].into_iter().enumerate() {
            let mark = 10 * n + m;
            let mut client = side.connect("gone_commit").unwrap();
            client.run(&format!("SET citus.multi_shard_commit_protocol = '{protocol}'")).unwrap();
            client.run(&format!("BEGIN; INSERT INTO slow VALUES ({mark})")).unwrap();
            let rows: Vec<String> = (0..20).map(|k| format!("({}, {mark})", mark * 100 + k)).collect();
            client.run(&format!("INSERT INTO t VALUES {}", rows.join(", "))).unwrap();
            client.send(&query("COMMIT")).unwrap();
            std::thread::sleep(Duration::from_millis(pause));
            drop(client);
            let mut other = settle(&side, "gone_commit");
            // PostgreSQL had the COMMIT: it is done.
            let found = format!(
                "SELECT (SELECT count(*) FROM slow WHERE n = {mark}) || ' ' || (SELECT count(*) FROM t WHERE v = {mark})"
            );
            assert_eq!(other.value(&found).unwrap(), "1 20", "{protocol}, gone after {pause} ms");
        }
    }
}

#[test]
fn what_was_received_is_done() {
    let side = prepared("gone_sent");
    let mut holder = side.connect("gone_sent").unwrap();
    holder.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)").unwrap();
    holder.run("BEGIN; UPDATE t SET v = v WHERE k = 1").unwrap();
    // Several statements behind one that waits for a lock, on one server and on several. Who has said all that he will
    // say gets every answer.
    let mut finished = Vec::new();
    for (n, first) in [(4, "k = 1"), (5, "k IN (1, 90, 91)")] {
        let mut client = side.connect("gone_sent").unwrap();
        let mut sent = query(&format!("UPDATE t SET v = v + 1 WHERE {first}"));
        sent.extend(query("UPDATE t SET v = v + 1 WHERE k = 2"));
        sent.extend(query(&format!("INSERT INTO t VALUES ({n}, 0)")));
        client.send(&sent).unwrap();
        client.half_close().unwrap();
        finished.push(client);
    }
    // Who is gone altogether gets his statement done.
    for (first, goodbye) in [("k = 1", true), ("k = 1", false), ("k IN (1, 92, 93)", true), ("k IN (1, 94)", false)] {
        let mut client = side.connect("gone_sent").unwrap();
        client.send(&query(&format!("UPDATE t SET v = v + 1 WHERE {first}"))).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        if goodbye { drop(client) } else { client.vanish() }
    }
    // Who asks for it does not wait.
    let mut client = side.connect("gone_sent").unwrap();
    client.run("SET client_connection_check_interval = '100ms'").unwrap();
    client.send(&query("UPDATE t SET v = v + 100 WHERE k = 1")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(client);
    std::thread::sleep(Duration::from_millis(600));
    holder.run("COMMIT").unwrap();
    for mut client in finished {
        let messages = client.receive_until_ready(3).unwrap();
        assert_eq!(messages.iter().filter(|m| m.kind == b'C').count(), 3);
    }
    let mut other = settle(&side, "gone_sent");
    let rows = "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM t";
    assert_eq!(other.value(rows).unwrap(), "1 6, 2 2, 3 0, 4 0, 5 0");
}
