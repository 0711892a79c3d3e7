//! What streams through the router: COPY in both directions and scatters whose rows are many, with a server or a client
//! that is slow. The router keeps little of them, nobody waits for nobody in a circle, and the answer is whole. The
//! bounds are of memory and of bytes; no test asserts a time.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use pgherd_testkit::client::{Client, Message, message, query};
use pgherd_testkit::{Cluster, Side};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgherd");
/// What the router's memory may grow by in a test that moves a multiple of it.
const GROWTH_MAX: u64 = 40 << 20;
const BIG_ROWS: usize = 2400;
const BIG_LEN: usize = 50_000;

/// Tests that look at the router's memory do not run at the same time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn side() -> Side {
    Cluster::shared(PROGRAM).side()
}

/// A database with `big`: 120 MB of rows that the servers keep compressed.
fn big() -> Client {
    static MADE: OnceLock<()> = OnceLock::new();
    let side = side();
    MADE.get_or_init(|| {
        side.create_database("streams_big", "").unwrap();
        let mut client = side.connect("streams_big").unwrap();
        client.run("CREATE TABLE big (k int PRIMARY KEY, v text NOT NULL)").unwrap();
        client.run("SELECT create_distributed_table('big', 'k', shard_count => 6)").unwrap();
        client
            .run(&format!("INSERT INTO big SELECT g, repeat('x', {BIG_LEN}) FROM generate_series(1, {BIG_ROWS}) g"))
            .unwrap();
    });
    side.connect("streams_big").unwrap()
}

fn table(name: &str, columns: &str) -> Client {
    let side = side();
    side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    client.run(&format!("CREATE TABLE t ({columns})")).unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 6)").unwrap();
    client
}

/// Bytes of memory of the cluster's router.
fn memory() -> u64 {
    let directory = Cluster::shared(PROGRAM).directory.to_string_lossy().into_owned();
    let mut found = None;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        if words.contains(&b"serve".as_slice()) && words.contains(&directory.as_bytes()) {
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
            found = line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok());
        }
    }
    found.unwrap() * 1024
}

/// Waits for a while in which nothing moves; what moves for ever is not waited for.
fn settled(value: impl Fn() -> u64) -> u64 {
    let (mut last, mut same) = (value(), 0);
    for _ in 0..400 {
        thread::sleep(Duration::from_millis(50));
        let now = value();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        if same == 20 {
            break;
        }
    }
    last
}

fn begin_copy(client: &mut Client, sql: &str) -> TcpStream {
    client.send(&query(sql)).unwrap();
    while client.receive().unwrap().kind != b'G' {}
    client.sender().unwrap()
}

fn tag(messages: &[Message]) -> String {
    let complete = messages.iter().find(|m| m.kind == b'C');
    complete.map_or(String::new(), |m| String::from_utf8_lossy(&m.body[..m.body.len() - 1]).into_owned())
}

fn errors(messages: &[Message]) -> usize {
    messages.iter().filter(|m| m.kind == b'E').count()
}

#[test]
fn a_worker_that_does_not_take_rows_holds_the_client_up_and_fills_no_memory() {
    let _alone = alone();
    const ROWS: u64 = 24_000;
    let mut client = table("streams_slow", "k int PRIMARY KEY, v text");
    let mut other = side().connect("streams_slow").unwrap();
    other.run("BEGIN; INSERT INTO t VALUES (1, 'in the way')").unwrap();
    let before = memory();
    let sent = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut sender = begin_copy(&mut client, "COPY t FROM STDIN");
        let sent = &sent;
        let sending = scope.spawn(move || {
            for k in 1..=ROWS {
                let row = format!("{k}\t{}\n", "y".repeat(4000));
                sender.write_all(&message(b'd', row.as_bytes())).unwrap();
                sent.fetch_add(1, Ordering::Relaxed);
            }
            sender.write_all(&message(b'c', &[])).unwrap();
        });
        let rows = settled(|| sent.load(Ordering::Relaxed));
        let grown = memory().saturating_sub(before);
        // Whatever comes of it, the thread ends.
        other.run("ROLLBACK").unwrap();
        let reply = client.receive_until_ready(1).unwrap();
        sending.join().unwrap();
        assert!(rows < ROWS, "all {ROWS} rows were taken from the client");
        assert!(grown < GROWTH_MAX, "the router keeps {grown} bytes for a worker that does not take them");
        assert_eq!(tag(&reply), format!("COPY {ROWS}"));
    });
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), ROWS.to_string());
}

#[test]
fn notices_pass_while_rows_are_on_their_way() {
    let _alone = alone();
    const ROWS: usize = 12_000;
    let mut client = table("streams_notices", "k int PRIMARY KEY, v text");
    client
        .run(
            "CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE NOTICE '%', repeat('n', 4000); RETURN new; END $$",
        )
        .unwrap();
    client.run("CREATE TRIGGER loud BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION loud()").unwrap();
    thread::scope(|scope| {
        let mut sender = begin_copy(&mut client, "COPY t FROM STDIN");
        let sending = scope.spawn(move || {
            for k in 1..=ROWS {
                let row = format!("{k}\t{}\n", "y".repeat(4000));
                sender.write_all(&message(b'd', row.as_bytes())).unwrap();
            }
            sender.write_all(&message(b'c', &[])).unwrap();
        });
        let reply = client.receive_until_ready(1).unwrap();
        sending.join().unwrap();
        assert_eq!(reply.iter().filter(|m| m.kind == b'N').count(), ROWS);
        assert_eq!(tag(&reply), format!("COPY {ROWS}"));
    });
}

#[test]
fn an_error_of_a_worker_is_told_before_the_data_end() {
    let mut client = table("streams_error", "k int PRIMARY KEY, v int");
    let told = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut sender = begin_copy(&mut client, "COPY t FROM STDIN");
        let told = &told;
        let sending = scope.spawn(move || {
            sender.write_all(&message(b'd', b"1\tno number\n")).unwrap();
            let mut k = 1;
            while !told.load(Ordering::Relaxed) {
                k += 1;
                sender.write_all(&message(b'd', format!("{k}\t{k}\n").as_bytes())).unwrap();
            }
            sender.write_all(&message(b'c', &[])).unwrap();
        });
        let reply = client.receive_until_ready(1);
        told.store(true, Ordering::Relaxed);
        sending.join().unwrap();
        let reply = reply.unwrap();
        assert_eq!(errors(&reply), 1);
        let error = reply.iter().find(|m| m.kind == b'E').unwrap();
        assert!(String::from_utf8_lossy(&error.body).contains("C22P02"), "{error:?}");
    });
    // What was still under way is dropped, and the session goes on.
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "0");
    client.simple("COPY t FROM STDIN", Some(b"1\t1\n2\t2\n")).unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "2");
}

/// Sends a statement and reads nothing until nothing moves any more, then all of it.
fn read_late(client: &mut Client, sql: &str) -> Vec<Message> {
    let before = memory();
    client.send(&query(sql)).unwrap();
    let grown = settled(memory).saturating_sub(before);
    let reply = client.receive_until_ready(1).unwrap();
    let grown = grown.max(memory().saturating_sub(before));
    assert!(grown < GROWTH_MAX, "the router keeps {grown} bytes of {sql}");
    assert_eq!(errors(&reply), 0, "{sql}: {:?}", reply.iter().find(|m| m.kind == b'E'));
    reply
}

/// The first column of each row, an int.
fn keys(reply: &[Message]) -> Vec<usize> {
    let first = |body: &[u8]| {
        let len = u32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
        std::str::from_utf8(&body[6..6 + len]).unwrap().parse().unwrap()
    };
    reply.iter().filter(|m| m.kind == b'D').map(|m| first(&m.body)).collect()
}

fn ascending() -> Vec<usize> {
    (1..=BIG_ROWS).collect()
}

#[test]
fn rows_of_a_scatter_wait_on_the_workers_for_a_client_that_does_not_read() {
    let _alone = alone();
    let mut client = big();
    let mut found = keys(&read_late(&mut client, "SELECT k, v FROM big"));
    found.sort_unstable();
    assert_eq!(found, ascending());
}

#[test]
fn rows_of_copy_to_wait_on_the_workers_for_a_client_that_does_not_read() {
    let _alone = alone();
    let mut client = big();
    let reply = read_late(&mut client, "COPY big TO STDOUT");
    let lines = reply.iter().filter(|m| m.kind == b'd').map(|m| m.body.len());
    assert_eq!(lines.clone().count(), BIG_ROWS);
    assert!(lines.sum::<usize>() > BIG_ROWS * BIG_LEN);
    assert_eq!(tag(&reply), format!("COPY {BIG_ROWS}"));
}

#[test]
fn many_partial_rows_are_merged_without_being_kept() {
    let _alone = alone();
    let mut client = big();
    assert_eq!(keys(&read_late(&mut client, "SELECT k, v FROM big ORDER BY k")), ascending());
    // More than once in a block, under savepoints, and beside a write.
    client.run("BEGIN; UPDATE big SET v = v WHERE k = 7; SAVEPOINT s").unwrap();
    for _ in 0..2 {
        let rows = client.run("SELECT k, left(v, 10000) FROM big ORDER BY k DESC").unwrap().answers.remove(0).rows;
        assert_eq!(rows.len(), BIG_ROWS);
        assert_eq!(rows[0][0].as_deref(), Some(BIG_ROWS.to_string().as_bytes()));
        assert!(rows.iter().all(|row| row[1].as_ref().is_some_and(|v| v.len() == 10_000)));
    }
    client.run("ROLLBACK TO s").unwrap();
    let again = client.run("SELECT v || k % 500, count(*) FROM big GROUP BY 1 ORDER BY 2 DESC, 1").unwrap();
    assert_eq!(again.answers[0].rows.len(), 500);
    client.run("COMMIT").unwrap();
    // Nothing is left behind.
    assert_eq!(client.value("SELECT count(*) FROM pg_class WHERE relname = 'pgherd_partial'").unwrap(), "0");
}

#[test]
fn many_partial_rows_are_merged_where_the_coordinator_may_not_have_them() {
    let _alone = alone();
    let mut client = big();
    client.run("BEGIN READ ONLY").unwrap();
    let rows = client.run("SELECT k, left(v, 10000) FROM big ORDER BY k").unwrap().answers.remove(0).rows;
    let found: Vec<usize> =
        rows.iter().map(|row| String::from_utf8_lossy(row[0].as_ref().unwrap()).parse().unwrap()).collect();
    assert_eq!(found, ascending());
    client.run("COMMIT").unwrap();
}

#[test]
fn an_error_among_many_partial_rows_ends_the_statement_and_not_the_session() {
    let _alone = alone();
    let mut client = big();
    let failing = format!("SELECT k, v, 1 / (k - {BIG_ROWS}) FROM big ORDER BY k");
    let reply = client.simple(&failing, None).unwrap();
    assert_eq!(reply.error().unwrap().sqlstate(), "22012");
    assert_eq!(client.value("SELECT count(*) FROM big").unwrap(), BIG_ROWS.to_string());
    client.run("BEGIN; SAVEPOINT s").unwrap();
    let reply = client.simple(&failing, None).unwrap();
    assert_eq!(reply.error().unwrap().sqlstate(), "22012");
    client.run("ROLLBACK TO s").unwrap();
    let rows = client.run("SELECT k, left(v, 10000) FROM big ORDER BY k").unwrap().answers.remove(0).rows;
    assert_eq!(rows.len(), BIG_ROWS);
    client.run("COMMIT").unwrap();
}

#[test]
fn merges_that_are_kept_follow_the_tables_definition() {
    let mut client = table("streams_merges", "k int PRIMARY KEY, v int");
    client.run("INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 100) g").unwrap();
    let sql = "SELECT v, count(*) FROM t WHERE k > $1 GROUP BY v ORDER BY v DESC LIMIT 1";
    let first = |client: &mut Client, name: &str| {
        let reply = client.execute(name, &[Some(b"0".to_vec())], 0, None).unwrap();
        assert!(reply.error().is_none(), "{reply:?}");
        let row = &reply.answers.last().unwrap().rows[0];
        row.iter().map(|v| String::from_utf8(v.clone().unwrap()).unwrap()).collect::<Vec<_>>().join(" ")
    };
    client.prepare("a", sql, &[23]).unwrap();
    for _ in 0..8 {
        assert_eq!(first(&mut client, "a"), "9 10");
        assert_eq!(client.value("SELECT max(v) FROM t").unwrap(), "9");
    }
    client.run("ALTER TABLE t ALTER COLUMN v TYPE text USING chr(75 - v)").unwrap();
    client.prepare("b", sql, &[23]).unwrap();
    for _ in 0..8 {
        assert_eq!(first(&mut client, "b"), "K 10");
        assert_eq!(client.value("SELECT max(v) FROM t").unwrap(), "K");
    }
    client.run("SET search_path = pg_catalog, public; DISCARD PLANS").unwrap();
    assert_eq!(first(&mut client, "b"), "K 10");
}
