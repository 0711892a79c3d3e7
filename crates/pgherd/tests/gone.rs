//! What becomes of the statements of a client that has gone: what takes no time is done, whatever waits or takes long
//! is interrupted within two seconds, and a COMMIT commits everywhere or nowhere.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pgherd_testkit::client::{Client, bind, execute, parse, query, sync};
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
             $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$; \
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
        for (m, pause) in [0, 100, 200].into_iter().enumerate() {
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
    // Who asks for it does not wait.
    let mut client = side.connect("gone_sent").unwrap();
    client.run("SET client_connection_check_interval = '100ms'").unwrap();
    client.send(&query("UPDATE t SET v = v + 100 WHERE k = 1")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    drop(client);
    // Who only says nothing more is there for longer than anybody is waited for who has gone.
    std::thread::sleep(Duration::from_millis(2500));
    holder.run("COMMIT").unwrap();
    for mut client in finished {
        let messages = client.receive_until_ready(3).unwrap();
        assert_eq!(messages.iter().filter(|m| m.kind == b'C').count(), 3);
    }
    // Who is gone altogether gets his statement done where nothing holds it up.
    for (keys, goodbye) in [("1", true), ("1", false), ("1, 92, 93", true), ("1, 94", false)] {
        let mut client = side.connect("gone_sent").unwrap();
        client.send(&query(&format!("UPDATE t SET v = v + 1 WHERE k IN ({keys})"))).unwrap();
        if goodbye { drop(client) } else { client.vanish() }
    }
    let mut other = settle(&side, "gone_sent");
    let rows = "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM t";
    assert_eq!(other.value(rows).unwrap(), "1 6, 2 2, 3 0, 4 0, 5 0");
}

/// Statements that would go on for long, and one that waits for what `holder` has locked. All have the mark in their
/// texts.
const LONG: &[&str] = &[
    "SELECT pg_sleep(1000) /* long */",
    "SELECT pg_sleep(1000) FROM t /* long */",
    "SELECT pg_sleep(1000) FROM t WHERE k = 2 /* long */",
    "SELECT count(*) FROM t, LATERAL (SELECT pg_sleep(1000)) s, slow /* long */",
    "UPDATE t SET v = v + 10 WHERE k = 1 /* long */",
    "UPDATE t SET v = v + 10 /* long */",
    "INSERT INTO t VALUES (1, 1), (70, 1), (71, 1), (72, 1) ON CONFLICT (k) DO UPDATE SET v = 100 /* long */",
    "INSERT INTO t SELECT 1, 1 FROM slow ON CONFLICT (k) DO UPDATE SET v = 100 /* long */",
    "DO $$ BEGIN UPDATE t SET v = v + 10 WHERE k < 3; END $$ /* long */",
    "DELETE FROM t USING slow WHERE slow.n = t.v /* long */",
    "SELECT pg_advisory_lock(4711) /* long */",
    "SELECT * FROM t WHERE k = 1 FOR UPDATE /* long */",
    "ALTER TABLE t ADD COLUMN w int /* long */",
    "TRUNCATE t /* long */",
    "CREATE INDEX CONCURRENTLY ON t (v) /* long */",
    "COPY (SELECT pg_sleep(1000) FROM t) TO STDOUT /* long */",
    "EXPLAIN ANALYZE UPDATE t SET v = v + 10 /* long */",
    "VACUUM FULL t /* long */",
];

#[test]
fn what_would_go_on_is_interrupted() {
    let side = prepared("gone_long");
    let mut holder = side.connect("gone_long").unwrap();
    holder.run("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0); INSERT INTO slow VALUES (0)").unwrap();
    holder.run("SELECT pg_advisory_lock(4711); BEGIN; UPDATE t SET v = v WHERE k IN (1, 3)").unwrap();
    let mut clients = Vec::new();
    for (n, sql) in LONG.iter().enumerate() {
        let mut client = side.connect("gone_long").unwrap();
        let alone = sql.contains("CONCURRENTLY") || sql.starts_with("VACUUM");
        if n % 2 == 0 && !alone {
            client.run("BEGIN; INSERT INTO slow VALUES (1000)").unwrap();
        }
        if n % 3 == 0 {
            client.send(&[parse("", sql, &[]), bind("", "", &[], &[], &[]), execute("", 0), sync()].concat()).unwrap();
        } else {
            client.send(&query(sql)).unwrap();
        }
        // There is more to come, which is not to be done.
        client.send(&query("INSERT INTO t VALUES (1000, 0)")).unwrap();
        clients.push((n, client));
    }
    std::thread::sleep(Duration::from_millis(300));
    let left = Instant::now();
    for (n, client) in clients {
        match n % 3 {
            0 => drop(client),
            1 => client.vanish(),
            // What it sent last is never read.
            _ => {
                client.half_close().unwrap();
                drop(client);
            }
        }
    }
    let mut watcher = side.connect("gone_long").unwrap();
    let active = "SELECT (SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%long *%' AND query NOT LIKE '%like%' \
                  AND state <> 'idle' AND pid <> pg_backend_pid()) + (SELECT sum(result::int) FROM \
                  run_command_on_workers($$SELECT count(*) FROM pg_stat_activity WHERE datname = 'gone_long' AND \
                  backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()$$))";
    until(|| watcher.value(active).unwrap() == "0");
    assert!(left.elapsed() < Duration::from_secs(10), "it took {:?}", left.elapsed());
    assert_eq!(watcher.value("SELECT count(*) FROM slow").unwrap(), "1");
    holder.run("COMMIT").unwrap();
    let mut other = settle(&side, "gone_long");
    let rows = "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM t";
    assert_eq!(other.value(rows).unwrap(), "1 0, 2 0, 3 0");
}
