//! INSERT of many rows over several workers, by clients that share distributed transactions, on a real cluster: each
//! statement is all there or not at all, also while the servers' backends are interrupted and ended. No test asserts a
//! time.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pgherd_testkit::client::{Client, Reply, query, show_message};
use pgherd_testkit::{Cluster, Side, Target};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgherd");
/// Rows of one statement.
const ROWS: i32 = 5;
const INSERT: &str = "INSERT INTO log (k, n) VALUES ($1, $2), ($3, $2), ($4, $2), ($5, $2), ($6, $2)";

/// A database with a table whose key is taken at every multiple of 1000.
fn with_log(side: &Side, name: &str) -> Target {
    let target = side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    client.run("CREATE TABLE log (k int PRIMARY KEY, n int)").unwrap();
    client.run("SELECT create_distributed_table('log', 'k', shard_count => 6)").unwrap();
    client.run("INSERT INTO log SELECT g * 1000, -1 FROM generate_series(0, 6000) g").unwrap();
    target
}

fn sqlstate(reply: &Reply) -> String {
    reply.error().map_or("", |e| e.sqlstate()).to_owned()
}

/// Statement `n` of client `w`; every ninth has a key that is taken.
fn insert(client: &mut Client, w: i32, n: i32) -> Reply {
    let first = w * 1_000_000 + n * 10 + 1;
    let mut keys: Vec<i32> = (0..ROWS).map(|i| first + i).collect();
    if n % 9 == 4 {
        keys[n as usize % ROWS as usize] = w * 1_000_000;
    }
    let mut values: Vec<i32> = vec![keys[0], w * 1_000_000 + n];
    values.extend(&keys[1..]);
    let values: Vec<_> = values.iter().map(|v| Some(v.to_string().into_bytes())).collect();
    client.execute("w", &values, 0, None).unwrap()
}

/// What every statement was told, by its number.
fn load(target: &Target, protocol: &str, count: i32, begun: &AtomicUsize) -> HashMap<i32, String> {
    thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|w| {
                scope.spawn(move || {
                    let mut client = Client::connect(target).unwrap();
                    client.run(&format!("SET citus.multi_shard_commit_protocol = '{protocol}'")).unwrap();
                    assert_eq!(sqlstate(&client.prepare("w", INSERT, &[23; 6]).unwrap()), "");
                    let mut told = HashMap::new();
                    for n in 0..count {
                        let reply = insert(&mut client, w, n);
                        if reply.error().is_none() {
                            assert_eq!(reply.answers[0].tag.as_deref(), Some("INSERT 0 5"));
                        }
                        told.insert(w * 1_000_000 + n, sqlstate(&reply));
                        begun.fetch_add(1, Ordering::SeqCst);
                    }
                    told
                })
            })
            .collect();
        writers.into_iter().flat_map(|w| w.join().unwrap()).collect()
    })
}

/// The rows of each statement that are there.
fn rows_of_statements(target: &Target) -> HashMap<i32, i32> {
    let mut client = Client::connect(target).unwrap();
    let reply = client.run("SELECT n, count(*) FROM log WHERE n >= 0 GROUP BY n").unwrap();
    let number = |field: &Option<Vec<u8>>| String::from_utf8(field.clone().unwrap()).unwrap().parse().unwrap();
    reply.answers[0].rows.iter().map(|row| (number(&row[0]), number(&row[1]))).collect()
}

/// What the workers say, summed.
fn on_workers(client: &mut Client, sql: &str) -> i64 {
    let asked = format!("SELECT sum(result::int) FROM run_command_on_workers($${sql}$$)");
    client.value(&asked).unwrap().parse().unwrap()
}

#[test]
fn a_statement_of_many_rows_is_all_there_or_not_at_all() {
    let side = Cluster::shared(PROGRAM).side();
    for protocol in ["2pc", "1pc"] {
        let name = format!("shared_{protocol}");
        let target = with_log(&side, &name);
        let told = load(&target, protocol, 150, &AtomicUsize::new(0));
        let found = rows_of_statements(&target);
        for (n, state) in &told {
            let expected = if n % 1_000_000 % 9 == 4 { "23505" } else { "" };
            assert_eq!(state, expected, "{protocol}: statement {n}");
            let rows = found.get(n).copied().unwrap_or(0);
            assert_eq!(rows, if state.is_empty() { ROWS } else { 0 }, "{protocol}: statement {n}, {state:?}");
        }
        // A transaction that wrote rows of several statements has one number on a worker.
        let mut client = side.connect(&name).unwrap();
        let alone = on_workers(&mut client, "SELECT count(DISTINCT (xmin::text, n)) FROM log WHERE n >= 0");
        let transactions = on_workers(&mut client, "SELECT count(DISTINCT xmin::text) FROM log WHERE n >= 0");
        assert!(transactions < alone, "{protocol}: nobody shared a transaction");
    }
}

/// What a connection keeps prepared is known also after transactions of one server, which need no commit record.
#[test]
fn statements_of_one_server_and_of_several_take_turns() {
    let side = Cluster::shared(PROGRAM).side();
    let target = with_log(&side, "shared_turns");
    let mut client = Client::connect(&target).unwrap();
    let placed = "SELECT k::text, groupid::text FROM generate_series(7000001, 7000400) k \
                  JOIN pg_dist_placement ON shardid = get_shard_id_for_distribution_column('log', k)";
    let mut keys: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for row in &client.run(placed).unwrap().answers[0].rows {
        let text = |i: usize| String::from_utf8(row[i].clone().unwrap()).unwrap();
        keys.entry(text(1)).or_default().push(text(0).parse().unwrap());
    }
    let mut keys: Vec<Vec<i32>> = keys.into_values().collect();
    assert!(keys.len() > 1);
    let mut prepared = Client::connect(&target).unwrap();
    let sql = "INSERT INTO log (k, n) VALUES ($1, $2), ($3, $2)";
    assert_eq!(sqlstate(&prepared.prepare("w", sql, &[23; 3]).unwrap()), "");
    let turns = [(0, 0), (0, 0), (1, 1), (1, 1), (0, 1), (0, 0), (0, 1), (1, 0)];
    for (n, (one, other)) in turns.into_iter().enumerate() {
        let values = [keys[one].pop().unwrap(), n as i32, keys[other].pop().unwrap()];
        let values: Vec<_> = values.iter().map(|v| Some(v.to_string().into_bytes())).collect();
        assert_eq!(sqlstate(&prepared.execute("w", &values, 0, None).unwrap()), "", "statement {n}");
    }
    assert_eq!(client.value("SELECT count(*) FROM log WHERE k > 7000000").unwrap(), "16");
}

#[test]
fn what_waits_for_a_lock_holds_up_nobody() {
    let side = Cluster::shared(PROGRAM).side();
    let target = with_log(&side, "shared_locked");
    let mut locker = Client::connect(&target).unwrap();
    locker.run("BEGIN; INSERT INTO log VALUES (9000000, -2)").unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut client = Client::connect(&target).unwrap();
            assert_eq!(sqlstate(&client.prepare("w", INSERT, &[23; 6]).unwrap()), "");
            // Once the long way, then the short one, into the lock.
            assert_eq!(sqlstate(&insert(&mut client, 5, 200)), "");
            let values: Vec<_> = [9000001, 8000000, 9000000, 9000002, 9000003, 9000004]
                .iter()
                .map(|v: &i32| Some(v.to_string().into_bytes()))
                .collect();
            sqlstate(&client.execute("w", &values, 0, None).unwrap())
        });
        let told = load(&target, "2pc", 60, &AtomicUsize::new(0));
        assert!(told.iter().all(|(n, state)| state.is_empty() || n % 1_000_000 % 9 == 4), "{told:?}");
        assert!(!waits.is_finished(), "the key is still locked");
        locker.run("COMMIT").unwrap();
        assert_eq!(waits.join().unwrap(), "23505");
    });
    assert_eq!(rows_of_statements(&target).get(&8000000), None);
}

#[test]
fn a_transaction_cancelled_while_it_waits_for_a_lock_is_rolled_back_without_waiting() {
    let side = Cluster::shared(PROGRAM).side();
    let target = side.create_database("shared_cancelled", "").unwrap();
    let mut locker = Client::connect(&target).unwrap();
    locker.run("CREATE TABLE kinds (k int PRIMARY KEY); SELECT create_reference_table('kinds')").unwrap();
    locker.run("CREATE TABLE sorts (k int PRIMARY KEY); SELECT create_reference_table('sorts')").unwrap();
    locker.run("BEGIN; INSERT INTO kinds VALUES (1)").unwrap();
    let mut client = Client::connect(&target).unwrap();
    let mut other = Client::connect(&target).unwrap();
    // The first copy is still locked when it goes back, and the others are.
    let mut wait = |client: &mut Client, back: &str| {
        client.send(&query("INSERT INTO kinds VALUES (2)")).unwrap();
        while other.value("SELECT count(*) FROM pg_locks WHERE NOT granted").unwrap() != "1" {
            thread::sleep(Duration::from_millis(5));
        }
        client.cancel().unwrap();
        let told = client.receive_until_ready(1).unwrap();
        assert!(told.iter().map(show_message).any(|m| m.contains("57014")), "it was not cancelled");
        client.run(back).unwrap();
    };
    client.run("BEGIN").unwrap();
    wait(&mut client, "ROLLBACK");
    // The workers know of the savepoint or do not.
    client.run("BEGIN; INSERT INTO sorts VALUES (1); SAVEPOINT s").unwrap();
    wait(&mut client, "ROLLBACK TO s");
    client.run("INSERT INTO sorts VALUES (2); SAVEPOINT t; INSERT INTO sorts VALUES (3)").unwrap();
    wait(&mut client, "ROLLBACK TO t");
    wait(&mut client, "ROLLBACK TO s");
    client.run("INSERT INTO sorts VALUES (4); COMMIT").unwrap();
    assert_eq!(client.value("SELECT string_agg(k::text, ' ' ORDER BY k) FROM sorts").unwrap(), "1 4");
    let workers = on_workers(&mut client, "SELECT 1");
    assert_eq!(on_workers(&mut client, "SELECT sum(k) FROM sorts"), 5 * workers);
    assert_eq!(client.value("SELECT count(*) FROM kinds").unwrap(), "0");
    locker.run("COMMIT").unwrap();
    client.run("INSERT INTO kinds VALUES (2)").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM kinds").unwrap(), "2");
}

#[test]
fn a_row_of_a_reference_table_that_was_locked_can_be_changed_while_others_wait_for_it() {
    let side = Cluster::shared(PROGRAM).side();
    let target = side.create_database("shared_row_locks", "").unwrap();
    let mut client = Client::connect(&target).unwrap();
    let mut other = Client::connect(&target).unwrap();
    client.run("CREATE TABLE kinds (k int PRIMARY KEY, n int); SELECT create_reference_table('kinds')").unwrap();
    client.run("INSERT INTO kinds SELECT g, 0 FROM generate_series(1, 3) g").unwrap();
    for lock in ["FOR UPDATE", "FOR NO KEY UPDATE OF t", "FOR UPDATE OF u"] {
        client.run(&format!("BEGIN; SELECT t.n FROM kinds t JOIN kinds u USING (k) WHERE k = 1 {lock}")).unwrap();
        let told = thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut client = Client::connect(&target).unwrap();
                client.run("UPDATE kinds SET n = n + 1 WHERE k = 1").map(drop).map_err(|e| e.to_string())
            });
            while other.value("SELECT count(*) FROM pg_locks WHERE NOT granted").unwrap() == "0" {
                assert!(!waits.is_finished(), "the row is still locked");
                thread::sleep(Duration::from_millis(5));
            }
            client.run("UPDATE kinds SET n = n + 10 WHERE k = 1; COMMIT").unwrap();
            waits.join().unwrap()
        });
        assert_eq!(told, Ok(()), "{lock}");
    }
    assert_eq!(client.value("SELECT n FROM kinds WHERE k = 1").unwrap(), "33");
    let workers = on_workers(&mut client, "SELECT 1");
    assert_eq!(on_workers(&mut client, "SELECT n FROM kinds WHERE k = 1"), 33 * workers);
}

#[test]
fn a_merge_in_steps_judges_again_what_others_have_changed() {
    let side = Cluster::shared(PROGRAM).side();
    let target = with_log(&side, "shared_merged");
    let mut locker = Client::connect(&target).unwrap();
    let mut other = side.connect("shared_merged").unwrap();
    locker.run("BEGIN; UPDATE log SET n = 7 WHERE k = 1000; DELETE FROM log WHERE k = 3000").unwrap();
    let merged = thread::scope(|scope| {
        let waits = scope.spawn(|| {
            // What is inserted is not what is joined.
            let merge = "MERGE INTO log t USING (VALUES (1000, 5), (2000, 6), (3000, 4), (71, 8)) v (a, b) \
                         ON t.k = v.a AND t.n = -1 WHEN MATCHED AND t.n < 0 THEN UPDATE SET n = v.b \
                         WHEN NOT MATCHED THEN INSERT VALUES (v.a + 1, v.b)";
            let mut client = Client::connect(&target).unwrap();
            client.run(merge).map(|reply| reply.answers[0].tag.clone().unwrap()).map_err(|e| e.to_string())
        });
        let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted";
        while on_workers(&mut other, blocked) == 0 && !waits.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        assert!(!waits.is_finished(), "a row is still locked");
        locker.run("COMMIT").unwrap();
        waits.join().unwrap()
    });
    assert_eq!(merged, Ok("MERGE 2".to_owned()));
    let rows = "SELECT string_agg(k || ':' || n, ' ' ORDER BY k) FROM log WHERE n <> -1";
    assert_eq!(other.value(rows).unwrap(), "72:8 1000:7 2000:6");
}

#[test]
fn backends_that_are_interrupted_or_ended_under_load() {
    let side = Cluster::shared(PROGRAM).side();
    let target = with_log(&side, "shared_killed");
    let (begun, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let told = thread::scope(|scope| {
        let loaded = scope.spawn(|| {
            let told = load(&target, "2pc", 250, &begun);
            over.store(true, Ordering::SeqCst);
            told
        });
        let mut other = side.connect("postgres").unwrap();
        let mut hit = 0;
        while !over.load(Ordering::SeqCst) && !loaded.is_finished() {
            for what in ["pg_cancel_backend", "pg_terminate_backend"] {
                hit += on_workers(
                    &mut other,
                    &format!(
                        "SELECT count({what}(pid)) FROM pg_stat_activity WHERE datname = 'shared_killed' \
                         AND backend_type = 'client backend' AND application_name <> 'pgherd router' AND pid % 3 = 0"
                    ),
                );
            }
            thread::sleep(Duration::from_millis(20));
        }
        assert_ne!(hit, 0, "nothing was hit");
        loaded.join().unwrap()
    });
    // What was prepared when its connection went is decided by recovery.
    let mut client = side.connect("shared_killed").unwrap();
    while on_workers(&mut client, "SELECT count(*) FROM pg_prepared_xacts WHERE database = 'shared_killed'") > 0 {
        thread::sleep(Duration::from_millis(200));
    }
    let found = rows_of_statements(&target);
    let mut well = 0;
    for (n, state) in &told {
        let rows = found.get(n).copied().unwrap_or(0);
        match state.as_str() {
            "" => assert_eq!(rows, ROWS, "statement {n} was answered well"),
            // Nobody knows; all or nothing all the same.
            "08007" => assert!(rows == 0 || rows == ROWS, "statement {n}: {rows} rows"),
            state => assert_eq!(rows, 0, "statement {n} failed with {state}"),
        }
        well += usize::from(state.is_empty());
    }
    assert!(found.keys().all(|n| told.contains_key(n)), "rows that nobody wrote");
    assert_ne!(well, 0);
}
