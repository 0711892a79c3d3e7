//! What becomes of a transaction that loses one of its servers: it fails, it cannot go back to a savepoint as if
//! nothing were missing, all of it is undone, and the session goes on after ROLLBACK. One PostgreSQL has no such
//! case; what the rows must be afterwards is what they were before.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pgherd_testkit::client::{Client, Reply, message, query};
use pgherd_testkit::{Cluster, Side};

const ROWS: i32 = 24;

/// A database of its own with a table over all workers and a local one.
fn prepared(name: &str) -> Side {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 9)").unwrap();
    client.run("CREATE TABLE local (n int)").unwrap();
    client.run(&format!("INSERT INTO t SELECT g, 100 FROM generate_series(1, {ROWS}) g")).unwrap();
    side
}

/// Which of the workers, in the order of their ports.
#[derive(Debug, Clone, Copy)]
enum Worker {
    First,
    Last,
}

/// Ends every connection to the database on one worker.
fn cut(side: &Side, database: &str, worker: Worker) {
    assert_ne!(cut_now(side, database, worker), "0", "nothing was cut");
}

/// The same, if there are some. How many there were.
fn cut_now(side: &Side, database: &str, worker: Worker) -> String {
    let order = match worker {
        Worker::First => "min",
        Worker::Last => "max",
    };
    let mut client = side.connect("postgres").unwrap();
    let port = client.value(&format!("SELECT {order}(node_port) FROM citus_get_active_worker_nodes()")).unwrap();
    client
        .value(&format!(
            "SELECT sum(result::int) FROM run_command_on_workers($$SELECT count(pg_terminate_backend(pid, 5000)) \
             FROM pg_stat_activity WHERE datname = '{database}' AND current_setting('port') = '{port}'$$)"
        ))
        .unwrap()
}

fn sqlstate(reply: &Reply) -> String {
    reply.error().map_or("", |e| e.sqlstate()).to_owned()
}

/// The statement fails as it does when a connection is gone.
fn fails_as_lost(client: &mut Client, sql: &str) {
    let reply = client.simple(sql, None).unwrap();
    let state = sqlstate(&reply);
    assert!(state.starts_with("08") || state.starts_with("57P"), "{sql}: SQLSTATE {state:?}");
}

/// The transaction cannot go back; ROLLBACK ends it, nothing of it stays, and the session works.
fn is_undone(side: &Side, database: &str, client: &mut Client) {
    let back = client.simple("ROLLBACK TO SAVEPOINT s", None).unwrap();
    assert_eq!((sqlstate(&back).as_str(), back.status), ("08006", b'E'), "went back without what the server had done");
    let refused = client.simple("SELECT count(*) FROM t", None).unwrap();
    assert_eq!(sqlstate(&refused), "25P02");
    let rollback = client.simple("ROLLBACK", None).unwrap();
    assert_eq!((rollback.error().is_none(), rollback.status), (true, b'I'));
    nothing_stays(side, database, client);
}

fn nothing_stays(side: &Side, database: &str, client: &mut Client) {
    let mut other = side.connect(database).unwrap();
    for client in [client, &mut other] {
        let sums = "SELECT count(*) || ' ' || sum(v) || ' ' || (SELECT count(*) FROM local) FROM t";
        assert_eq!(client.value(sums).unwrap(), format!("{ROWS} {} 0", ROWS * 100));
        client.run("BEGIN; UPDATE t SET v = v + 1; SAVEPOINT s; UPDATE t SET v = v - 1; COMMIT").unwrap();
        assert_eq!(client.value(sums).unwrap(), format!("{ROWS} {} 0", ROWS * 100));
    }
}

/// A transaction that has written on every server, with a savepoint after it.
fn written(side: &Side, database: &str) -> Client {
    let mut client = side.connect(database).unwrap();
    client.run("BEGIN").unwrap();
    client.run("UPDATE t SET v = v + 1000").unwrap();
    client.run("INSERT INTO local VALUES (1)").unwrap();
    client.run("SAVEPOINT s").unwrap();
    client
}

#[test]
fn lost_in_the_middle_of_copy() {
    let side = prepared("lost_copy");
    for worker in [Worker::First, Worker::Last] {
        let mut client = written(&side, "lost_copy");
        let rows = |from: i32, to: i32| -> Vec<u8> {
            (from..to).flat_map(|k| message(b'd', format!("{k}\t{k}\n").as_bytes())).collect()
        };
        client.send(&query("COPY t FROM STDIN")).unwrap();
        assert_eq!(client.receive().unwrap().kind, b'G');
        client.send(&rows(1000, 3000)).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        cut(&side, "lost_copy", worker);
        client.send(&[rows(3000, 60000), message(b'c', &[])].concat()).unwrap();
        let messages = client.receive_until_ready(1).unwrap();
        assert_eq!(messages.last().unwrap().body, b"E", "the transaction is still in order");
        is_undone(&side, "lost_copy", &mut client);
    }
}

#[test]
fn lost_before_a_scatter() {
    let side = prepared("lost_scatter");
    for sql in [
        "SELECT count(*), sum(v) FROM t",
        "SELECT k, v FROM t",
        "SELECT k FROM t ORDER BY v, k LIMIT 3",
        "UPDATE t SET v = 0",
        "INSERT INTO t SELECT g, 1 FROM generate_series(101, 200) g",
        "INSERT INTO t SELECT k + 100, v FROM t",
        "SELECT count(*) FROM t a JOIN t b ON a.k = b.v",
        "UPDATE t SET v = n FROM local WHERE n = k",
        "COPY t TO STDOUT",
        "TRUNCATE t",
    ] {
        for worker in [Worker::First, Worker::Last] {
            let mut client = written(&side, "lost_scatter");
            cut(&side, "lost_scatter", worker);
            fails_as_lost(&mut client, sql);
            is_undone(&side, "lost_scatter", &mut client);
        }
    }
}

#[test]
fn lost_before_a_route() {
    let side = prepared("lost_route");
    for sql in ["SELECT v FROM t WHERE k = ", "UPDATE t SET v = 1 WHERE k = ", "DELETE FROM t WHERE k = "] {
        let mut client = written(&side, "lost_route");
        cut(&side, "lost_route", Worker::Last);
        // Some key is on that worker.
        let lost = (1..=ROWS).map(|k| client.simple(&format!("{sql}{k}"), None).unwrap()).find(|r| r.error().is_some());
        let state = sqlstate(&lost.expect("no key is on the lost worker"));
        assert!(state.starts_with("08") || state.starts_with("57P"), "{sql}: SQLSTATE {state:?}");
        is_undone(&side, "lost_route", &mut client);
    }
}

#[test]
fn lost_before_rollback_to_savepoint() {
    let side = prepared("lost_back");
    let mut client = written(&side, "lost_back");
    client.run("UPDATE t SET v = v + 1").unwrap();
    cut(&side, "lost_back", Worker::First);
    fails_as_lost(&mut client, "ROLLBACK TO SAVEPOINT s");
    is_undone(&side, "lost_back", &mut client);
    // Nothing was done since the savepoint: nobody need be told, but what came before it is lost.
    let mut client = written(&side, "lost_back");
    cut(&side, "lost_back", Worker::First);
    client.simple("ROLLBACK TO SAVEPOINT s", None).unwrap();
    let reply = client.simple("SELECT sum(v) FROM t", None).unwrap();
    assert!(reply.error().is_some(), "a transaction goes on without what a server had done");
    is_undone(&side, "lost_back", &mut client);
}

#[test]
fn lost_before_commit() {
    let side = prepared("lost_commit");
    for (worker, protocol) in [(Worker::First, "2pc"), (Worker::Last, "2pc"), (Worker::First, "1pc")] {
        for local in [true, false] {
            let mut client = side.connect("lost_commit").unwrap();
            client.run(&format!("SET citus.multi_shard_commit_protocol = '{protocol}'")).unwrap();
            client.run("BEGIN").unwrap();
            client.run("UPDATE t SET v = v + 1000").unwrap();
            if local {
                client.run("INSERT INTO local VALUES (1)").unwrap();
            }
            cut(&side, "lost_commit", worker);
            let reply = client.simple("COMMIT", None).unwrap();
            assert_eq!((reply.error().is_some(), reply.status), (true, b'I'), "{worker:?} {protocol}");
            if protocol == "1pc" {
                client.run("DELETE FROM local").unwrap();
                client.run("UPDATE t SET v = 100").unwrap();
                continue;
            }
            // What was prepared is taken back by the router or by its recovery.
            let begun = Instant::now();
            let prepared = "SELECT sum(result::int) FROM run_command_on_workers('SELECT count(*) FROM \
                            pg_prepared_xacts WHERE database = current_database()')";
            while client.value(prepared).unwrap() != "0" {
                assert!(begun.elapsed() < Duration::from_secs(60), "a transaction stays prepared");
                std::thread::sleep(Duration::from_millis(200));
            }
            nothing_stays(&side, "lost_commit", &mut client);
        }
    }
}

#[test]
fn idle_connections_that_are_gone_are_not_used() {
    let side = prepared("lost_idle");
    let mut client = side.connect("lost_idle").unwrap();
    for worker in [Worker::First, Worker::Last] {
        client.run("SELECT count(*) FROM t").unwrap();
        cut(&side, "lost_idle", worker);
        client.run("SELECT count(*) FROM t").unwrap();
        cut(&side, "lost_idle", worker);
        for k in 1..=ROWS {
            client.run(&format!("UPDATE t SET v = v WHERE k = {k}")).unwrap();
        }
    }
    nothing_stays(&side, "lost_idle", &mut client);
}

/// Ends the coordinator's part of everybody else.
fn cut_coordinator(side: &Side, database: &str) {
    assert_ne!(cut_coordinator_now(side, database), "0", "nothing was cut");
}

fn cut_coordinator_now(side: &Side, database: &str) -> String {
    let mut client = side.connect("postgres").unwrap();
    client
        .value(&format!(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_get_activity(NULL) \
             WHERE datid = (SELECT oid FROM pg_database WHERE datname = '{database}') \
             AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ))
        .unwrap()
}

/// Each transaction of a procedure writes the same on workers and on the coordinator.
#[test]
fn lost_in_a_procedure_that_commits() {
    let side = prepared("lost_procedure");
    let mut client = side.connect("lost_procedure").unwrap();
    let body =
        "BEGIN FOR i IN 1..100000 LOOP UPDATE t SET v = v + 1; INSERT INTO local VALUES (i); COMMIT; END LOOP; END";
    client.run(&format!("CREATE PROCEDURE goes_on() LANGUAGE plpgsql AS $$ {body} $$")).unwrap();
    for cut_at in 0..4 {
        let target = side.target.with_database("lost_procedure");
        let called = std::thread::spawn(move || Client::connect(&target).unwrap().simple("CALL goes_on()", None));
        // Something has committed before it is cut, however slow the machine.
        let begun = Instant::now();
        while client.value("SELECT count(*) FROM local").unwrap() == "0" {
            assert!(begun.elapsed() < Duration::from_secs(30) && !called.is_finished(), "nothing commits");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(100 + 37 * cut_at));
        // Between two transactions it loses nothing.
        while !called.is_finished() {
            match cut_at {
                0 => cut_now(&side, "lost_procedure", Worker::First),
                1 => cut_now(&side, "lost_procedure", Worker::Last),
                _ => cut_coordinator_now(&side, "lost_procedure"),
            };
            std::thread::sleep(Duration::from_millis(41));
        }
        let reply = called.join().unwrap();
        assert!(reply.is_err() || reply.unwrap().error().is_some(), "the procedure came to its end");
        let started = Instant::now();
        let unsettled = "SELECT sum(result::int) FROM run_command_on_workers($$SELECT count(*) FROM pg_prepared_xacts \
                         WHERE database = current_database()$$)";
        let mut client = side.connect("lost_procedure").unwrap();
        while client.value(unsettled).unwrap() != "0" {
            assert!(started.elapsed() < Duration::from_secs(30), "something stays prepared");
            std::thread::sleep(Duration::from_millis(50));
        }
        let sums = client.value("SELECT min(v) || ' ' || max(v) || ' ' || (SELECT 100 + count(*) FROM local) FROM t");
        let sums = sums.unwrap();
        let same: Vec<&str> = sums.split(' ').collect();
        assert!(same.iter().all(|sum| *sum == same[0]) && same[0] != "100", "not one transaction: {sums}");
        client.run("UPDATE t SET v = 100; TRUNCATE local").unwrap();
    }
}

#[test]
fn locks_that_are_lost_are_noticed() {
    let side = prepared("lost_locks");
    let mut client = side.connect("lost_locks").unwrap();
    let on = |side: &Side, worker: &str| -> i32 {
        let mut client = side.connect("lost_locks").unwrap();
        let sql = format!(
            "SELECT max(result) FROM run_command_on_workers($$SELECT CASE WHEN current_setting('port') = '{worker}' \
             THEN (SELECT min(k)::text FROM t) ELSE '' END$$)"
        );
        let found = client.value(&sql).unwrap();
        found.parse().unwrap_or_else(|_| panic!("{found}"))
    };
    let port = |order: &str| format!("SELECT {order}(node_port) FROM citus_get_active_worker_nodes()");
    let (first, last) = (client.value(&port("min")).unwrap(), client.value(&port("max")).unwrap());
    let (one, other) = (on(&side, &first), on(&side, &last));
    let locks = [
        format!("SELECT * FROM t WHERE k = {one} FOR UPDATE"),
        format!("SELECT v FROM t WHERE k = {one} FOR KEY SHARE"),
        "SELECT pg_advisory_xact_lock(77)".to_owned(),
        "LOCK TABLE local IN EXCLUSIVE MODE".to_owned(),
    ];
    for lock in &locks {
        for then_writes in [true, false] {
            let mut client = side.connect("lost_locks").unwrap();
            client.run(&format!("BEGIN; {lock}")).unwrap();
            if !then_writes {
                client.run(&format!("UPDATE t SET v = v + 1 WHERE k = {other}")).unwrap();
            }
            if lock.contains("FROM t") {
                cut(&side, "lost_locks", Worker::First)
            } else {
                cut_coordinator(&side, "lost_locks")
            }
            if then_writes {
                fails_as_lost(&mut client, &format!("UPDATE t SET v = v + 1 WHERE k = {other}"));
                let reply = client.simple("COMMIT", None).unwrap();
                assert_eq!((reply.error().is_none(), reply.status), (true, b'I'), "{lock}");
            } else {
                fails_as_lost(&mut client, "COMMIT");
            }
            nothing_stays(&side, "lost_locks", &mut client);
        }
    }
}
