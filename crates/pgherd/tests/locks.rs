//! Sessions that wait for each other's locks: who waits for whom, and for how long, is as on one PostgreSQL, whichever
//! servers have the rows. Waits are found in `pg_locks` and `pg_stat_activity`, never by time.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use pgherd_testkit::client::{Client, Message, bind, execute, message, parse, query, sync};
use pgherd_testkit::{Cluster, Plain, Side};

/// Rows that the hash puts on all workers.
const ROWS: i32 = 20;

/// One PostgreSQL, which runs as long as it is kept, and the cluster, with a database of the test's own.
fn sides(database: &str) -> (Plain, [Side; 2]) {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let sides = [plain.side("postgres"), cluster.side()];
    for side in &sides {
        prepare(side, database);
    }
    (plain, sides)
}

/// A database of its own with a table over all workers, and a local one.
fn prepare(side: &Side, database: &str) {
    side.create_database(database, "").unwrap();
    let mut client = side.connect(database).unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL)").unwrap();
    if side.is_cluster {
        client.run("SELECT create_distributed_table('t', 'k', shard_count => 9)").unwrap();
    }
    client.run("CREATE TABLE local (n int PRIMARY KEY, v int NOT NULL)").unwrap();
    client.run("INSERT INTO local VALUES (1, 0), (2, 0)").unwrap();
    client.run(&format!("INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g")).unwrap();
}

fn outcome(client: &mut Client, sql: &str) -> String {
    let reply = client.simple(sql, None).unwrap();
    format!("{} {}", reply.error().map_or("", |e| e.sqlstate()), char::from(reply.status))
}

/// Which rows others may lock while `client` is where it is.
fn free(side: &Side, database: &str) -> Vec<String> {
    let mut other = side.connect(database).unwrap();
    let tables = [("t", "k", ROWS), ("local", "n", 2)];
    let rows = tables.iter().flat_map(|(table, key, rows)| (1..=*rows).map(move |row| (table, key, row)));
    let mut free = Vec::new();
    for (table, key, row) in rows {
        let sql = format!("SELECT {key} FROM {table} WHERE {key} = {row} FOR UPDATE NOWAIT");
        match outcome(&mut other, &sql).as_str() {
            " I" => free.push(format!("{table} {row}")),
            "55P03 I" => {}
            unexpected => panic!("{}: {sql}: {unexpected}", side.name),
        }
    }
    free
}

/// What a client does, and after which of it one looks at what is locked.
fn locks_after(side: &Side, database: &str, statements: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut client = side.connect(database).unwrap();
    statements.iter().map(|sql| (outcome(&mut client, sql), free(side, database))).collect()
}

#[test]
fn a_failed_block_holds_what_one_server_holds() {
    let failures = [
        // On a worker, on the coordinator, in the router, over all workers.
        "INSERT INTO t VALUES (3, 1)",
        "INSERT INTO local VALUES (1, 1)",
        "SELECT 1/0",
        "SELECT no_such_column FROM t",
        "SELECT 1 / (v - v) FROM t",
        "SELECT a.k, (SELECT max(1 / (b.v - b.v)) FROM t b WHERE b.v < a.k) FROM t a",
        "syntax error",
    ];
    let cases: Vec<Vec<&str>> = failures
        .iter()
        .flat_map(|failure| {
            [
                vec![
                    "BEGIN",
                    "UPDATE t SET v = 1 WHERE k <= 9",
                    "UPDATE local SET v = 1 WHERE n = 1",
                    failure,
                    "SELECT 1",
                    "COMMIT",
                ],
                vec![
                    "BEGIN",
                    "UPDATE t SET v = 1 WHERE k < 7",
                    "SAVEPOINT a",
                    "UPDATE t SET v = 2 WHERE k BETWEEN 5 AND 12",
                    "SAVEPOINT b",
                    "SET LOCAL work_mem = '1MB'",
                    "UPDATE t SET v = 3 WHERE k BETWEEN 11 AND 17",
                    "UPDATE local SET v = 1 WHERE n = 2",
                    failure,
                    "SELECT 1",
                    "ROLLBACK TO SAVEPOINT b",
                    "UPDATE local SET v = 1 WHERE n = 1",
                    failure,
                    "ROLLBACK TO SAVEPOINT a",
                    "UPDATE t SET v = 4 WHERE k = 20",
                    "ROLLBACK",
                ],
                vec![
                    "BEGIN",
                    "UPDATE t SET v = 1 WHERE k = 4",
                    "SAVEPOINT a",
                    failure,
                    "ROLLBACK TO SAVEPOINT a",
                    "COMMIT",
                ],
                vec![
                    "BEGIN",
                    "UPDATE t SET v = 1 WHERE k <= 9",
                    "SELECT a.k, (SELECT max(b.v) FROM t b WHERE b.v = a.k) FROM t a",
                    "SET TRANSACTION READ ONLY",
                    failure,
                    "ROLLBACK",
                ],
            ]
        })
        .collect();
    let database = "locks_failed";
    let (_plain, [plain, cluster]) = sides(database);
    let found: Vec<_> = [&plain, &cluster]
        .into_iter()
        .map(|side| {
            let found: Vec<_> = cases.iter().map(|case| locks_after(side, database, case)).collect();
            let sum = "SELECT (SELECT sum(v) FROM t) || ' ' || (SELECT sum(v) FROM local)";
            (found, side.connect(database).unwrap().value(sum).unwrap())
        })
        .collect();
    for (case, (expected, got)) in cases.iter().zip(found[0].0.iter().zip(&found[1].0)) {
        for (sql, (expected, got)) in case.iter().zip(expected.iter().zip(got)) {
            assert_eq!(expected, got, "after {sql} of {case:?}");
        }
    }
    assert_eq!(found[0].1, found[1].1);
}

/// Until somebody waits for a lock on some server.
fn until_waiting(side: &Side, database: &str) {
    let mut other = side.connect("postgres").unwrap();
    let here =
        format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}' AND wait_event_type = 'Lock'");
    let quoted = here.replace('\'', "''");
    let sql = match side.is_cluster {
        true => format!("SELECT ({here}) + (SELECT sum(result::int) FROM run_command_on_workers('{quoted}'))"),
        false => here,
    };
    let begun = Instant::now();
    while other.value(&sql).unwrap() == "0" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}: nobody waits", side.name);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_waits_goes_on_when_a_block_fails() {
    let database = "locks_waiting";
    let (_plain, sides) = sides(database);
    for side in sides {
        let mut holder = side.connect(database).unwrap();
        holder.run("BEGIN").unwrap();
        holder.run("UPDATE t SET v = 1").unwrap();
        let mut waiting = side.connect(database).unwrap();
        let waiter = std::thread::spawn(move || outcome(&mut waiting, "UPDATE t SET v = 2"));
        until_waiting(&side, database);
        assert_eq!(outcome(&mut holder, "INSERT INTO t VALUES (1, 1)"), "23505 E", "{}", side.name);
        assert_eq!(waiter.join().unwrap(), " I", "{}", side.name);
        assert_eq!(outcome(&mut holder, "SELECT 1"), "25P02 E");
        assert_eq!(outcome(&mut holder, "COMMIT"), " I");
        assert_eq!(holder.value("SELECT min(v) || ' ' || max(v) FROM t").unwrap(), "2 2", "{}", side.name);
    }
}

/// Parse, Bind and Execute of a statement without parameters.
fn extended(sql: &str) -> Vec<u8> {
    [parse("", sql, &[]), bind("", "", &[], &[], &[]), execute("", 0)].concat()
}

/// The transaction of a pipeline is over with its error, not with its Sync.
#[test]
fn a_failed_pipeline_holds_nothing() {
    let database = "locks_pipeline";
    let (_plain, sides) = sides(database);
    for side in sides {
        for begin in ["", "BEGIN"] {
            let mut client = side.connect(database).unwrap();
            let begin = if begin.is_empty() { Vec::new() } else { extended(begin) };
            let updates = [extended("UPDATE t SET v = 1"), extended("UPDATE local SET v = 1")].concat();
            client.send(&[begin, updates, extended("SELECT 1 / 0"), message(b'H', &[])].concat()).unwrap();
            while client.receive().unwrap().kind != b'E' {}
            let begun = Instant::now();
            while free(&side, database).len() < ROWS as usize + 2 {
                assert!(begun.elapsed() < Duration::from_secs(20), "{}: rows are held", side.name);
            }
            client.send(&sync()).unwrap();
            client.receive_until_ready(1).unwrap();
            client.run("ROLLBACK").unwrap();
            assert_eq!(client.value("SELECT sum(v) FROM t").unwrap(), "0", "{}", side.name);
        }
    }
}

/// Two rows, the later one on the first worker and the other one on the last: who locks all rows at once has the later
/// one and waits for the other one, which on one PostgreSQL comes first.
fn rows_apart(cluster: &Side, database: &str) -> (String, String) {
    let mut client = cluster.connect(database).unwrap();
    let places = format!(
        "WITH place AS (SELECT k, (SELECT groupid FROM pg_dist_placement p WHERE p.shardid = \
         get_shard_id_for_distribution_column('t', k)) AS g FROM generate_series(1, {ROWS}) k), \
         near AS (SELECT min(k) AS k FROM place WHERE g = (SELECT max(g) FROM place))"
    );
    let near = client.value(&format!("{places} SELECT k FROM near")).unwrap();
    let far = format!("{places} SELECT min(k) FROM place WHERE g = (SELECT min(g) FROM place) AND k > (TABLE near)");
    (near, client.value(&far).unwrap())
}

/// What a client was sent, without what differs between servers. Rows come in any order.
fn shown(messages: &[Message]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    for message in messages {
        let text = String::from_utf8_lossy(&message.body);
        let text = match message.kind {
            b'D' | b'C' | b'Z' => text.into_owned(),
            b'E' | b'N' => text.split('\0').find(|field| field.starts_with('C')).unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        let line = format!("{} {text}", char::from(message.kind));
        match message.kind {
            b'D' => rows.push(line),
            b'S' => {}
            _ => {
                rows.sort();
                shown.append(&mut rows);
                shown.push(line);
            }
        }
    }
    shown
}

/// A table whose rows are in the order of their keys, and who holds one of them.
fn holder(side: &Side, database: &str, near: &str) -> Client {
    let mut holder = side.connect(database).unwrap();
    holder.run("DROP TABLE IF EXISTS t").unwrap();
    holder.run("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL)").unwrap();
    if side.is_cluster {
        holder.run("SELECT create_distributed_table('t', 'k', shard_count => 9)").unwrap();
    }
    holder.run(&format!("INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g")).unwrap();
    holder.run("BEGIN").unwrap();
    holder.run(&format!("SELECT v FROM t WHERE k = {near} FOR UPDATE")).unwrap();
    holder
}

/// A deadlock that one PostgreSQL would not have: nobody hears of it where a transaction has only begun.
#[test]
fn a_first_statement_is_run_again() {
    let values: Vec<String> = (1..=ROWS).map(|k| format!("({k}, 1)")).collect();
    let upsert = format!("INSERT INTO t VALUES {} ON CONFLICT (k) DO UPDATE SET v = t.v + 1", values.join(", "));
    let update = "UPDATE t SET v = v + 1 RETURNING k, v";
    let locks = "SELECT k FROM t ORDER BY k FOR UPDATE";
    let queries = |texts: &[&str]| (texts.iter().map(|sql| query(sql)).collect::<Vec<_>>().concat(), texts.len());
    let begun = |first: &[&str]| {
        let texts = [first, &[update, "SELECT sum(v) FROM t", "COMMIT"]].concat();
        queries(&texts)
    };
    let cases: Vec<(&str, (Vec<u8>, usize))> = vec![
        ("one Query", queries(&[update])),
        ("two in one", queries(&["UPDATE t SET v = v + 1; SELECT sum(v) FROM t"])),
        ("another encoding", queries(&["SET client_encoding = latin1", "SELECT k, 'é' FROM t ORDER BY k FOR UPDATE"])),
        ("row locks", queries(&[locks])),
        ("upsert", queries(&[&upsert])),
        ("EXECUTE", queries(&["PREPARE p AS UPDATE t SET v = v + $1 RETURNING v", "EXECUTE p(2)"])),
        ("a notice", queries(&["SET client_min_messages = notice", "DROP TABLE IF EXISTS nobody, t"])),
        ("a block", begun(&["BEGIN"])),
        ("a savepoint", begun(&["BEGIN", "SAVEPOINT a", update, "ROLLBACK TO a"])),
        ("one snapshot", begun(&["BEGIN ISOLATION LEVEL REPEATABLE READ"])),
        ("LOCK", begun(&["BEGIN", "LOCK TABLE t"])),
        ("TRUNCATE", queries(&["TRUNCATE t"])),
        ("a definition", queries(&["ALTER TABLE t ADD COLUMN w int"])),
        ("extended", ([extended(update), sync()].concat(), 1)),
        ("a pipeline", ([extended(update), extended("SELECT sum(v) FROM t"), sync()].concat(), 1)),
        (
            "a portal",
            ([parse("", locks, &[]), bind("", "", &[], &[], &[]), execute("", 5), execute("", 0), sync()].concat(), 1),
        ),
    ];
    let database = "locks_again";
    let (_plain, [plain, cluster]) = sides(database);
    let (near, far) = rows_apart(&cluster, database);
    for (name, (packet, count)) in &cases {
        let found = [&plain, &cluster].map(|side| {
            let mut holder = holder(side, database, &near);
            let mut client = side.connect(database).unwrap();
            client.send(packet).unwrap();
            until_waiting(side, database);
            let ended = outcome(&mut holder, &format!("SELECT v FROM t WHERE k = {far} FOR UPDATE"));
            holder.run("COMMIT").unwrap();
            let messages = client.receive_until_ready(*count).unwrap();
            let left = "SELECT coalesce(string_agg(k || '=' || v, ' ' ORDER BY k), '') FROM t";
            let left = client.simple(left, None).unwrap().answers.first().map(|answer| answer.rows.clone());
            (ended, shown(&messages), left)
        });
        assert_eq!(found[0], found[1], "{name}");
        assert_eq!(found[0].0, " T", "{name}");
    }
}

#[test]
fn what_is_run_again_can_be_cancelled() {
    let database = "locks_cancelled";
    let (_plain, [plain, cluster]) = sides(database);
    let (near, far) = rows_apart(&cluster, database);
    for side in [&plain, &cluster] {
        let mut holder = holder(side, database, &near);
        let mut client = side.connect(database).unwrap();
        client.send(&query("UPDATE t SET v = 1")).unwrap();
        until_waiting(side, database);
        assert_eq!(outcome(&mut holder, &format!("SELECT v FROM t WHERE k = {far} FOR UPDATE")), " T", "{}", side.name);
        until_waiting(side, database);
        client.cancel().unwrap();
        assert_eq!(shown(&client.receive_until_ready(1).unwrap()), ["E C57014", "Z I"], "{}", side.name);
        holder.run("COMMIT").unwrap();
        assert_eq!(client.value("SELECT sum(v) FROM t").unwrap(), "0", "{}", side.name);
        client.run("UPDATE t SET v = 1").unwrap();
    }
}

/// Rows that have left cannot be taken back: their client hears of the deadlock.
#[test]
fn what_has_been_seen_is_not_run_again() {
    let database = "locks_seen";
    let (_plain, [_, side]) = sides(database);
    let (near, far) = rows_apart(&side, database);
    let mut holder = holder(&side, database, &near);
    let mut client = side.connect(database).unwrap();
    client.send(&query("SELECT k, repeat('x', 100000) FROM t FOR UPDATE")).unwrap();
    until_waiting(&side, database);
    assert_eq!(outcome(&mut holder, &format!("SELECT v FROM t WHERE k = {far} FOR UPDATE")), " T");
    holder.run("COMMIT").unwrap();
    let seen = shown(&client.receive_until_ready(1).unwrap());
    let rows = seen.iter().filter(|line| line.starts_with('D')).count();
    assert!((1..ROWS as usize).contains(&rows), "{rows} rows");
    assert_eq!(seen[rows + 1..], ["E C40P01", "Z I"]);
    client.run("UPDATE t SET v = 1").unwrap();
}

/// Each of `clients` sessions runs each statement so often, beginning together; how they ended.
fn together(side: &Side, database: &str, clients: usize, times: usize, statements: &[String]) -> Vec<String> {
    let barrier = Arc::new(Barrier::new(clients));
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (barrier, statements) = (barrier.clone(), statements.to_vec());
            let mut client = side.connect(database).unwrap();
            std::thread::spawn(move || {
                barrier.wait();
                let sequence = statements.iter().cycle().take(times * statements.len());
                sequence.map(|sql| outcome(&mut client, sql)).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut outcomes: Vec<String> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
    outcomes.sort();
    outcomes.dedup();
    outcomes
}

#[test]
fn statements_in_one_order_meet_no_deadlock() {
    const CLIENTS: usize = 8;
    const TIMES: usize = 25;
    let values: Vec<String> = (1..=ROWS).map(|k| format!("({k}, 1)")).collect();
    let upsert = format!("INSERT INTO t VALUES {} ON CONFLICT (k) DO UPDATE SET v = t.v + 1", values.join(", "));
    let select = format!(
        "INSERT INTO t SELECT g, 1 FROM generate_series(1, {ROWS}) g ON CONFLICT (k) DO UPDATE SET v = t.v + 1"
    );
    let database = "locks_order";
    let (_plain, sides) = sides(database);
    for side in sides {
        let mut expected = 0;
        for statements in [
            vec![upsert.clone()],
            vec![format!("{upsert} RETURNING k, v")],
            vec![select.clone()],
            vec!["BEGIN".to_owned(), upsert.clone(), "COMMIT".to_owned()],
            vec![upsert.clone(), select.clone()],
        ] {
            let outcomes = together(&side, database, CLIENTS, TIMES, &statements);
            assert!(
                outcomes.iter().all(|o| matches!(o.as_str(), " I" | " T")),
                "{}: {statements:?}: {outcomes:?}",
                side.name
            );
            let writes = statements.iter().filter(|sql| sql.len() > 10).count();
            expected += CLIENTS * TIMES * writes;
        }
        let mut client = side.connect(database).unwrap();
        let found = client.value("SELECT min(v) || ' ' || max(v) || ' ' || count(*) FROM t").unwrap();
        assert_eq!(found, format!("{expected} {expected} {ROWS}"), "{}", side.name);
    }
}

/// A transaction that goes on to other rows of a table while a definition of it waits for the transaction: nobody gets
/// an error. Each worker has one shard: between two of one worker PostgreSQL may be the first to find the deadlock.
#[test]
fn definitions_let_writers_go_on() {
    let database = "locks_definitions";
    let (_plain, sides) = sides(database);
    for side in sides {
        let mut client = side.connect(database).unwrap();
        client.run("CREATE TABLE d (k int PRIMARY KEY, v int NOT NULL)").unwrap();
        if side.is_cluster {
            let workers = client.value("SELECT count(*) FROM citus_get_active_worker_nodes()").unwrap();
            client.run(&format!("SELECT create_distributed_table('d', 'k', shard_count => {workers})")).unwrap();
        }
        client.run(&format!("INSERT INTO d SELECT g, 0 FROM generate_series(1, {ROWS}) g")).unwrap();
        let definitions = ["ALTER TABLE d ADD COLUMN w int", "CREATE INDEX ON d (v)", "ALTER TABLE d DROP COLUMN w"];
        for definition in definitions {
            let mut writer = side.connect(database).unwrap();
            writer.run("BEGIN").unwrap();
            writer.run("UPDATE d SET v = v WHERE k = 1").unwrap();
            let mut definer = side.connect(database).unwrap();
            let definer = std::thread::spawn(move || outcome(&mut definer, definition));
            until_waiting(&side, database);
            for k in 1..=ROWS {
                let ended = outcome(&mut writer, &format!("UPDATE d SET v = v WHERE k = {k}"));
                assert_eq!(ended, " T", "{} {definition} {k}", side.name);
            }
            assert_eq!(outcome(&mut writer, "COMMIT"), " I");
            assert_eq!(definer.join().unwrap(), " I", "{} {definition}", side.name);
        }
    }
}

/// What a transaction sees of a commit that came after its first statement, wherever that read.
#[test]
fn what_sets_and_locks_takes_no_snapshot() {
    let database = "locks_unread";
    let (_plain, sides) = sides(database);
    for side in sides {
        let mut writer = side.connect(database).unwrap();
        writer.run("CREATE TABLE apart (i int)").unwrap();
        for first in [
            "SET LOCAL work_mem = '1MB'",
            "SET LOCAL lock_timeout = '9s'; LOCK TABLE apart IN SHARE MODE",
            "SET TRANSACTION READ WRITE; LOCK TABLE apart",
            "SET LOCAL search_path = public, pg_catalog; SHOW work_mem",
            "SET LOCAL \"app.user\" = 'x, y'; SET LOCAL datestyle = 'SQL, DMY'; SET LOCAL role = none",
            "SAVEPOINT a; SET CONSTRAINTS ALL DEFERRED",
            "SET LOCAL work_mem = '1MB'; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        ] {
            writer.run("UPDATE t SET v = 0").unwrap();
            writer.run("UPDATE local SET v = 0").unwrap();
            let mut reader = side.connect(database).unwrap();
            reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
            first.split("; ").for_each(|sql| reader.run(sql).map(drop).unwrap());
            writer.run("BEGIN; UPDATE t SET v = 1; UPDATE local SET v = 1; COMMIT").unwrap();
            let sums = ["t", "local"].map(|table| reader.value(&format!("SELECT sum(v) FROM {table}")).unwrap());
            assert_eq!(sums.join(" "), "20 2", "{} {first}", side.name);
            reader.run("COMMIT").unwrap();
        }
    }
}

#[test]
fn a_snapshot_is_one_over_all_servers() {
    let database = "locks_snapshots";
    let (_plain, sides) = sides(database);
    for side in sides {
        let mut writer = side.connect(database).unwrap();
        let mut seen = Vec::new();
        for begin in [
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "BEGIN; SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ; BEGIN",
            "SET default_transaction_isolation = serializable; BEGIN; RESET default_transaction_isolation",
            "BEGIN; SET LOCAL transaction_isolation = 'repeatable read'",
            "SET default_transaction_isolation = serializable; BEGIN ISOLATION LEVEL READ COMMITTED",
            "BEGIN ISOLATION LEVEL READ COMMITTED",
        ] {
            for first in [
                "SELECT v FROM t WHERE k = 1",
                "SELECT 1",
                "SELECT v FROM local WHERE n = 1",
                "SAVEPOINT a; SELECT v FROM t WHERE k = 2; ROLLBACK TO SAVEPOINT a",
                "DECLARE c CURSOR FOR SELECT v FROM t WHERE k = 3",
                "DO 'BEGIN PERFORM 1;END'",
                "PREPARE p(int) AS SELECT v FROM t WHERE k = $1; EXECUTE p(4)",
                "PREPARE p AS SELECT v FROM local WHERE n = 1; EXECUTE p",
                "CREATE TABLE made (i int); DROP TABLE made",
                "SAVEPOINT a; SELECT 1 / v FROM t WHERE k = 5; ROLLBACK TO SAVEPOINT a",
            ] {
                writer.run("UPDATE t SET v = 0").unwrap();
                writer.run("UPDATE local SET v = 0").unwrap();
                let mut reader = side.connect(database).unwrap();
                begin.split("; ").for_each(|sql| reader.run(sql).map(drop).unwrap());
                first.split("; ").for_each(|sql| drop(reader.simple(sql, None).unwrap()));
                assert_eq!(outcome(&mut reader, "SHOW work_mem"), " T", "{} {begin} {first}", side.name);
                writer.run("BEGIN; UPDATE t SET v = 1; UPDATE local SET v = 1; COMMIT").unwrap();
                let rows = (1..=ROWS).map(|k| format!("SELECT v FROM t WHERE k = {k}"));
                let sums = ["t", "local"].map(|table| format!("SELECT sum(v) FROM {table}"));
                let rows: Vec<String> = rows.chain(sums).map(|sql| reader.value(&sql).unwrap()).collect();
                reader.run("COMMIT").unwrap();
                seen.push(format!("{begin} {first}: {}", rows.join(" ")));
            }
        }
        let old = vec!["0"; ROWS as usize + 2].join(" ");
        let new = [vec!["1"; ROWS as usize], vec!["20", "2"]].concat().join(" ");
        for line in &seen {
            let expected = if line.contains("READ COMMITTED") { &new } else { &old };
            assert!(line.ends_with(expected.as_str()), "{}: {line}", side.name);
        }
    }
}

/// What a transaction holds on the coordinator for others to wait for, and what it has to tell them, is theirs when all
/// of it is committed. COMMIT waits for a deferred foreign key here.
#[test]
fn others_go_on_when_all_is_committed() {
    let database = "locks_committed";
    let (_plain, sides) = sides(database);
    let kept = [
        "SELECT pg_advisory_xact_lock(77)",
        "SELECT pg_try_advisory_xact_lock_shared(77), count(*) FROM t",
        "SELECT v FROM local WHERE n = 1 FOR UPDATE",
        "DECLARE c CURSOR FOR SELECT v FROM local WHERE n = 1 FOR UPDATE; FETCH c",
        "PREPARE p AS SELECT v FROM local WHERE n = $1 FOR SHARE; EXECUTE p (1); DEALLOCATE p",
        "LOCK TABLE local IN SHARE ROW EXCLUSIVE MODE",
        "NOTIFY told, 'one'",
        "SELECT pg_notify('told', 'two')",
    ];
    let others = [
        "SELECT pg_try_advisory_xact_lock(77)",
        "SELECT v FROM local WHERE n = 1 FOR UPDATE NOWAIT",
        "BEGIN; LOCK TABLE local IN ROW EXCLUSIVE MODE NOWAIT",
        "ROLLBACK",
        "SELECT count(*) FROM child",
    ];
    let found = sides.map(|side| {
        let mut client = side.connect(database).unwrap();
        client.run("CREATE TABLE child (k int PRIMARY KEY, v int)").unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('child', 'k', colocate_with => 't')").unwrap();
        }
        client.run("ALTER TABLE child ADD FOREIGN KEY (k) REFERENCES t DEFERRABLE INITIALLY DEFERRED").unwrap();
        let mut holder = side.connect(database).unwrap();
        let mut other = side.connect(database).unwrap();
        other.run("LISTEN told").unwrap();
        let ask = |other: &mut Client, sql: &str| {
            other.send(&query(sql)).unwrap();
            shown(&other.receive_until_ready(1).unwrap())
        };
        let asked = |other: &mut Client| -> Vec<Vec<String>> { others.iter().map(|sql| ask(other, sql)).collect() };
        let mut found = Vec::new();
        let begins = [("BEGIN", 1), ("BEGIN", ROWS), ("BEGIN ISOLATION LEVEL REPEATABLE READ", 1)];
        for ((begin, rows), kept) in begins.iter().flat_map(|begin| kept.iter().map(move |kept| (*begin, kept))) {
            holder.run("BEGIN; SELECT v FROM t FOR UPDATE").unwrap();
            client.run(begin).unwrap();
            client.run(kept).unwrap();
            let values: Vec<String> = (1..=rows).map(|k| format!("({k}, 1)")).collect();
            client.run(&format!("INSERT INTO child VALUES {}", values.join(", "))).unwrap();
            client.send(&query("COMMIT")).unwrap();
            until_waiting(&side, database);
            let before = asked(&mut other);
            holder.run("COMMIT").unwrap();
            let committed = shown(&client.receive_until_ready(1).unwrap());
            let begun = Instant::now();
            let mut told = !kept.to_lowercase().contains("notify");
            while !told && begun.elapsed() < Duration::from_secs(60) {
                told = ask(&mut other, "SELECT 1").iter().any(|message| message.starts_with('A'));
            }
            found.push((kept, (begin, rows), before, committed, told, asked(&mut other)));
            client.run("DELETE FROM child").unwrap();
        }
        // What is rolled back at COMMIT is not told.
        for (begin, rows) in begins {
            client.run(begin).unwrap();
            client.run("NOTIFY told, 'never'").unwrap();
            client.run(&format!("INSERT INTO child SELECT generate_series(1001, 1000 + {rows})")).unwrap();
            client.run("INSERT INTO child VALUES (2000, 1)").unwrap();
            assert_eq!(outcome(&mut client, "COMMIT"), "23503 I", "{}", side.name);
        }
        client.run("NOTIFY told, 'last'").unwrap();
        other.send(&query("SELECT 1")).unwrap();
        let mut messages = other.receive_until_ready(1).unwrap();
        while !messages.iter().any(|message| message.kind == b'A') {
            other.send(&query("SELECT 1")).unwrap();
            messages.extend(other.receive_until_ready(1).unwrap());
        }
        let payloads: Vec<_> = messages.iter().filter(|m| m.kind == b'A').map(|m| m.body[4..].to_vec()).collect();
        assert_eq!(payloads, [b"told\0last\0"], "{}", side.name);
        found
    });
    for (plain, cluster) in found[0].iter().zip(&found[1]) {
        assert_eq!(plain, cluster);
        assert!(plain.4, "{}", plain.0);
    }
}
