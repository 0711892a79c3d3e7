//! Conversations in the protocol itself: what is sent byte for byte to one PostgreSQL and to a cluster must bring the
//! same messages back, in the same order. What SQL means is the business of `differential.rs`.

#![allow(clippy::unwrap_used)]

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pgherd_testkit::client::{
    Client, Fields, Message, bind, close, describe, execute, message, parse, query, show_message, startup, sync,
};
use pgherd_testkit::door::{self, packet};
use pgherd_testkit::{Cluster, Plain, Side, Target};

struct Sides {
    plain: Plain,
    oracle: Side,
    tested: Side,
}

/// Both servers, with a table `p` of ten rows in the database `protocol`.
fn sides() -> &'static Sides {
    static SIDES: OnceLock<Sides> = OnceLock::new();
    SIDES.get_or_init(|| {
        let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
        let plain = Plain::like(&cluster.target).unwrap();
        let sides = Sides { oracle: plain.side("postgres"), tested: cluster.side(), plain };
        for side in [&sides.oracle, &sides.tested] {
            side.create_database("protocol", "").unwrap();
            let mut client = side.connect("protocol").unwrap();
            client.run("CREATE TABLE p (k int PRIMARY KEY, v text, n numeric)").unwrap();
            client.run("CREATE TABLE local (k int PRIMARY KEY, v text)").unwrap();
            client.run("CREATE TABLE r (k int PRIMARY KEY, v text)").unwrap();
            client.run("CREATE TABLE pipes (k int PRIMARY KEY, v text)").unwrap();
            client.run("CREATE TYPE mood AS ENUM ('low', 'high')").unwrap();
            client.run("CREATE TABLE moods (k int PRIMARY KEY, a mood[]); CREATE TABLE counted_moods (LIKE moods INCLUDING ALL)").unwrap();
            if side.is_cluster {
                client.run("SELECT create_distributed_table('p', 'k'), create_distributed_table('pipes', 'k'), create_reference_table('r')").unwrap();
                client.run("SELECT create_distributed_table('moods', 'k'), create_distributed_table('counted_moods', 'k')").unwrap();
            }
            client.run("INSERT INTO p SELECT g, 'v' || g, g / 4.0 FROM generate_series(1, 10) g").unwrap();
            client.run("INSERT INTO pipes SELECT g, 'v' || g FROM generate_series(1, 10) g").unwrap();
        }
        sides
    })
}

enum Step {
    /// Sends, then reads up to so many ReadyForQuery.
    Ready(Vec<u8>, usize),
    /// Sends, then reads so many messages.
    Messages(Vec<u8>, usize),
    /// Sends, then reads up to the end of the connection.
    ToTheEnd(Vec<u8>),
    /// Sends nothing for so many milliseconds.
    Pause(u64),
}

use Step::{Messages, Pause, Ready, ToTheEnd};

fn conversation(target: &Target, steps: &[Step]) -> Vec<String> {
    let mut client = Client::connect(target).unwrap();
    let mut shown = Vec::new();
    for step in steps {
        let received: Result<Vec<Message>, _> = match step {
            Ready(bytes, n) => client.send(bytes).and_then(|()| client.receive_until_ready(*n)),
            Messages(bytes, n) => client.send(bytes).and_then(|()| (0..*n).map(|_| client.receive()).collect()),
            Pause(milliseconds) => {
                std::thread::sleep(std::time::Duration::from_millis(*milliseconds));
                Ok(Vec::new())
            }
            ToTheEnd(bytes) => client.send(bytes).map(|()| {
                let mut messages = Vec::new();
                while let Ok(message) = client.receive() {
                    messages.push(message);
                }
                messages
            }),
        };
        match received {
            Ok(messages) => shown.extend(messages.iter().map(show_message)),
            Err(error) => {
                shown.push(format!("broken: {error}"));
                break;
            }
        }
        shown.push("--".to_owned());
    }
    shown
}

/// Tests of one binary run at the same time; those that look at the rows of `p` take turns.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same steps on both sides bring the same messages.
fn check(steps: &[Step]) {
    let sides = sides();
    let _turn = alone();
    let talk = |side: &Side| {
        // What a conversation that broke off has left behind must not fail the next.
        side.connect("protocol").unwrap().run("DELETE FROM p WHERE k > 10; UPDATE p SET v = 'v' || k").unwrap();
        conversation(&side.target.with_database("protocol"), steps)
    };
    let (expected, found) = (talk(&sides.oracle), talk(&sides.tested));
    assert!(!expected.iter().any(|l| l.starts_with("broken")), "the conversation is no conversation: {expected:#?}");
    if expected != found {
        let at = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
        let part = |lines: &[String]| lines[at.min(lines.len())..(at + 5).min(lines.len())].join("\n    ");
        let before = expected[at.saturating_sub(8)..at].join("\n    ");
        panic!(
            "message {at} differs; both said before\n    {before}\n  postgres says\n    {}\n  cluster says\n    {}",
            part(&expected),
            part(&found)
        );
    }
}

fn text(values: &[&str]) -> Vec<Option<Vec<u8>>> {
    values.iter().map(|v| Some(v.as_bytes().to_vec())).collect()
}

fn int4(value: i32) -> Option<Vec<u8>> {
    Some(value.to_be_bytes().to_vec())
}

/// Parse, Bind and Execute of the unnamed statement with text parameters.
fn run(sql: &str, values: &[&str]) -> Vec<u8> {
    [parse("", sql, &[]), bind("", "", &[], &text(values), &[]), execute("", 0)].concat()
}

fn flush() -> Vec<u8> {
    message(b'H', &[])
}

#[test]
fn simple_queries() {
    check(&[
        Ready(query("SELECT v FROM p WHERE k = 3"), 1),
        Ready(query(""), 1),
        Ready(query(" ; ; "), 1),
        Ready(query("-- only a remark"), 1),
        Ready(query("SELECT 1; SELECT v FROM p WHERE k = 2; SELECT count(*) FROM p"), 1),
        Ready(query("SELECT 1; SELECT nope; SELECT 2"), 1),
        Ready(query("SELECT v FROM p ORDER BY k; SELECT 1/0"), 1),
        Ready([query("SELECT v FROM p WHERE k = 1"), query("SELECT v FROM p WHERE k = 2")].concat(), 2),
        Ready(query("BEGIN; UPDATE p SET v = 'x' WHERE k = 4"), 1),
        Ready(query("SELECT v FROM p WHERE k = 4; ROLLBACK"), 1),
        Ready(query("SELECT 1; BEGIN READ ONLY; SHOW transaction_read_only"), 1),
        Ready(query("DELETE FROM p; ROLLBACK"), 1),
        Ready(query("ROLLBACK; SELECT count(*) FROM p; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 2"), 1),
        Ready(query("SELECT v FROM p WHERE k = 1; BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 2"), 1),
        Ready(query("UPDATE p SET v = 'y' WHERE k = 1; BEGIN READ WRITE; ROLLBACK"), 1),
        Ready(query("DO $$ BEGIN RAISE NOTICE 'noted'; END $$"), 1),
        Ready(query("SELECT 'never ends"), 1),
        Ready(query("SELECT v FROM p WHERE k = 'x'"), 1),
    ]);
}

/// As deep as PostgreSQL takes them, and deeper: an overflow would end every session.
#[test]
fn deep_statements_are_run_as_on_one_server() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let mut steps = Vec::new();
    for times in [300, 1500, 20_000] {
        for sql in [
            format!("SELECT k{} FROM p WHERE k = 3", " + 1".repeat(times)),
            format!("SELECT v, k FROM p WHERE k = 2{}", " UNION ALL SELECT 'x', 1".repeat(times)),
            format!("SELECT {} FROM p WHERE k = 4", nested("abs(", "k", ")", times)),
            format!("SELECT sum({}) FROM p", nested("(", "k", ")", times)),
            format!("SELECT count(*) FROM p WHERE {}", nested("NOT (", "k = 4", ")", times)),
            format!("SELECT sum({}) FROM p", nested("CASE WHEN k = 1 THEN 1 ELSE ", "0", " END", times / 3)),
        ] {
            steps.push(Ready(query(&sql), 1));
        }
    }
    let sub = nested("(SELECT * FROM ", "p", ") s", 100);
    steps.push(Ready(query(&format!("SELECT count(*) FROM {sub}")), 1));
    let rows: Vec<String> = (11..3011).map(|k| format!("({k}, upper('x'), DEFAULT)")).collect();
    steps.push(Ready(query(&format!("INSERT INTO p VALUES {}", rows.join(", "))), 1));
    steps.push(Ready(
        run("SELECT count(*), sum(k) FROM p WHERE k > $1", &["10"]).into_iter().chain(sync()).collect(),
        1,
    ));
    check(&steps);
}

/// Values that the coordinator computes: of many rows at once, in some of which there is one more than in others.
#[test]
fn many_rows_have_values_of_the_coordinator() {
    let side = &sides().tested;
    let mut client = side.connect("protocol").unwrap();
    client.run("CREATE TABLE numbered (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, a int, v text)").unwrap();
    client.run("SELECT create_distributed_table('numbered', 'id')").unwrap();
    let rows = |row: &str| vec![row; 1500].join(", ");
    client.run(&format!("INSERT INTO numbered (a, v) VALUES {}", rows("(NULL, 'x')"))).unwrap();
    client.run(&format!("INSERT INTO numbered VALUES {}, (-1, 2, 'y')", rows("(DEFAULT, 1, 'z')"))).unwrap();
    let found =
        client.value("SELECT concat_ws(' ', count(*), count(a), sum(id), max(id), min(id)) FROM numbered").unwrap();
    assert_eq!(found, "3001 1501 4501499 3000 -1");
}

#[test]
fn statements_are_parsed_bound_described_and_executed() {
    check(&[
        Ready(
            [
                parse("s", "SELECT v, n FROM p WHERE k = $1", &[]),
                describe(b'S', "s"),
                bind("", "s", &[], &text(&["3"]), &[]),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ]
            .concat(),
            1,
        ),
        Ready([bind("", "s", &[], &text(&["4"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([bind("", "s", &[1], &[int4(5)], &[1]), describe(b'P', ""), execute("", 0), sync()].concat(), 1),
        Ready([bind("", "s", &[1], &[int4(5)], &[0, 1]), describe(b'P', ""), execute("", 0), sync()].concat(), 1),
        Ready([bind("", "s", &[], &[None], &[]), execute("", 0), sync()].concat(), 1),
        Ready([close(b'S', "s"), close(b'S', "s"), close(b'P', "none"), sync()].concat(), 1),
        Ready([bind("", "s", &[], &text(&["4"]), &[]), execute("", 0), sync()].concat(), 1),
    ]);
}

#[test]
fn many_kinds_of_statements_are_described() {
    for sql in [
        "SELECT k, v, n FROM p",
        "SELECT count(*), sum(n), max(v) FROM p GROUP BY k % 2",
        "INSERT INTO p VALUES ($1, $2, $3)",
        "INSERT INTO p VALUES ($1, $2, $3) RETURNING v, k",
        "UPDATE p SET v = $1 WHERE k = $2",
        "DELETE FROM p WHERE k = $1 RETURNING *",
        "BEGIN",
        "SET timezone = 'UTC'",
        "SHOW timezone",
        "CREATE TABLE never (a int)",
        "",
        "EXPLAIN SELECT 1",
        "TRUNCATE p",
        "VALUES (1, 'a')",
        "FETCH 1 FROM nothing",
    ] {
        check(&[Ready([parse("", sql, &[]), describe(b'S', ""), sync()].concat(), 1)]);
    }
}

#[test]
fn a_pipeline_answers_in_order() {
    let select = |k: &str| run("SELECT v FROM p WHERE k = $1", &[k]);
    check(&[
        Ready([select("1"), select("2"), select("3"), sync()].concat(), 1),
        Ready([select("1"), sync(), select("2"), sync(), select("3"), sync(), select("4"), sync()].concat(), 4),
        Ready([run("SELECT count(*) FROM p", &[]), select("9"), run("SELECT 1", &[]), sync()].concat(), 1),
        Ready([sync(), sync()].concat(), 2),
        Ready([select("5"), sync(), query("SELECT 2"), select("6"), sync()].concat(), 3),
    ]);
}

/// A function by its number, with arguments as text.
fn function_call(oid: u32, arguments: &[&str]) -> Vec<u8> {
    let mut body = oid.to_be_bytes().to_vec();
    body.extend([0, 1, 0, 0]);
    body.extend((arguments.len() as u16).to_be_bytes());
    for argument in arguments {
        body.extend((argument.len() as u32).to_be_bytes());
        body.extend(argument.as_bytes());
    }
    body.extend([0, 0]);
    message(b'F', &body)
}

#[test]
fn functions_are_called_without_sql() {
    // int4pl, numeric_div, lo_creat's neighbours lo_from_bytea and lo_get.
    let sum = || function_call(177, &["2", "3"]);
    check(&[
        Ready(sum(), 1),
        Ready(function_call(1727, &["1", "0"]), 1),
        Ready(function_call(0, &[]), 1),
        Ready(sum(), 1),
        Ready(query("BEGIN; SET LOCAL work_mem = '5MB'; INSERT INTO p VALUES (900, 'f', 1)"), 1),
        Ready(function_call(3457, &["70000001", "\\x0102"]), 1),
        Ready(query("SELECT lo_get(70000001), current_setting('work_mem')"), 1),
        Ready(query("SAVEPOINT s"), 1),
        Ready(function_call(1727, &["1", "0"]), 1),
        Ready(sum(), 1),
        Ready(query("ROLLBACK TO s"), 1),
        Ready(function_call(3458, &["70000001"]), 1),
        Ready([run("SELECT v FROM p WHERE k = 900", &[]), sum(), sync()].concat(), 2),
        Ready([parse("", "SELEC", &[]), sum(), sync()].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        Ready(function_call(3458, &["70000001"]), 1),
        Ready(query("SELECT count(*) FROM p WHERE k = 900"), 1),
    ]);
}

#[test]
fn what_called_functions_leave_is_the_sessions() {
    // set_config, pg_advisory_lock, pg_advisory_unlock.
    let locked =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objid = 4711";
    let settled = "SELECT current_setting('called.a', true), count(*) FROM p WHERE k < 5";
    check(&[
        Ready(function_call(2078, &["called.a", "one", "f"]), 1),
        Ready(query(settled), 1),
        Ready(query("SELECT count(*) FROM p"), 1),
        Ready(query(settled), 1),
        Ready(function_call(2880, &["4711"]), 1),
        Ready(query("SELECT v FROM p WHERE k = 1"), 1),
        Ready(query(locked), 1),
        Ready(function_call(2882, &["4711"]), 1),
        Ready(query(locked), 1),
    ]);
    // Another session has neither.
    check(&[Ready(query(settled), 1), Ready(query(locked), 1)]);
}

#[test]
fn a_called_function_ends_what_was_sent_before_it() {
    let insert = |k: &str| run("INSERT INTO p VALUES ($1, 'called', 1)", &[k]);
    check(&[
        Ready([insert("700"), insert("701"), function_call(177, &["2", "3"])].concat(), 1),
        Ready(query("SELECT k FROM p WHERE v = 'called' ORDER BY k"), 1),
        // It fails, and they go with it.
        Ready([insert("702"), insert("703"), function_call(1727, &["1", "0"])].concat(), 1),
        Ready(query("SELECT k FROM p WHERE v = 'called' ORDER BY k"), 1),
        // They fail, and it is not called.
        Ready([insert("704"), insert("700"), function_call(177, &["2", "3"]), sync()].concat(), 1),
        Ready(query("SELECT k FROM p WHERE v = 'called' ORDER BY k"), 1),
        Ready([query("BEGIN"), insert("705"), function_call(177, &["2", "3"])].concat(), 2),
        Ready(query("ROLLBACK"), 1),
        Ready(query("SELECT k FROM p WHERE v = 'called' ORDER BY k"), 1),
    ]);
}

#[test]
fn an_error_skips_to_the_next_sync() {
    let good = || run("SELECT v FROM p WHERE k = 1", &[]);
    check(&[
        Ready([parse("", "SELEC", &[]), good(), sync(), good(), sync()].concat(), 2),
        Ready(
            [good(), run("SELECT 1 / (k - 1) FROM p WHERE k = $1", &["1"]), good(), sync(), good(), sync()].concat(),
            2,
        ),
        Ready([good(), run("SELECT sum(1 / (k - 1)) FROM p", &[]), good(), sync()].concat(), 1),
        Ready([parse("", "SELECT nope FROM p", &[]), describe(b'S', ""), sync()].concat(), 1),
        Ready([bind("", "unknown", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready([execute("unknown", 0), sync()].concat(), 1),
        Ready([describe(b'S', "unknown"), sync()].concat(), 1),
        Ready([describe(b'P', "unknown"), sync()].concat(), 1),
        Ready(query("SELECT 1"), 1),
    ]);
}

#[test]
fn mistakes_of_parse_and_bind() {
    let select = || parse("", "SELECT v FROM p WHERE k = $1", &[]);
    check(&[
        Ready([parse("twice", "SELECT 1", &[]), parse("twice", "SELECT 2", &[]), sync()].concat(), 1),
        Ready([select(), bind("", "", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[], &text(&["1", "2"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[], &text(&["x"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[1], &[Some(vec![0, 0, 1])], &[]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[0, 0, 0], &text(&["1"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[], &text(&["1"]), &[0, 0, 0]), execute("", 0), sync()].concat(), 1),
        Ready([select(), bind("", "", &[7], &text(&["1"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([parse("", "SELECT 1; SELECT 2", &[]), sync()].concat(), 1),
        Ready([parse("", "SELECT v FROM p WHERE k = $1", &[25]), sync()].concat(), 1),
        Ready([parse("", "SELECT $1", &[]), describe(b'S', ""), sync()].concat(), 1),
        Ready([parse("", "SELECT $2::int", &[]), sync()].concat(), 1),
        Ready(
            [parse("b", "SELECT v FROM p WHERE k = $1", &[20]), bind("", "b", &[1], &[int4(1)], &[]), sync()].concat(),
            1,
        ),
    ]);
}

#[test]
fn everything_before_a_sync_is_one_transaction() {
    let insert = |k: &str| run("INSERT INTO p (k, v) VALUES ($1, 'implicit')", &[k]);
    check(&[
        Ready([insert("101"), insert("102"), insert("103"), sync()].concat(), 1),
        Ready(query("SELECT k FROM p WHERE v = 'implicit' ORDER BY k"), 1),
        Ready([insert("104"), insert("105"), insert("101"), insert("106"), sync()].concat(), 1),
        Ready(query("SELECT k FROM p WHERE v = 'implicit' ORDER BY k"), 1),
        Ready([run("BEGIN", &[]), insert("107"), insert("108"), run("COMMIT", &[]), sync()].concat(), 1),
        Ready([run("BEGIN", &[]), insert("109"), sync(), run("ROLLBACK", &[]), sync()].concat(), 2),
        Ready(
            [
                run("BEGIN", &[]),
                insert("109"),
                insert("101"),
                sync(),
                insert("110"),
                sync(),
                run("COMMIT", &[]),
                sync(),
            ]
            .concat(),
            3,
        ),
        Ready(query("SELECT k FROM p WHERE v = 'implicit' ORDER BY k"), 1),
        Ready([run("DELETE FROM p WHERE v = $1", &["implicit"]), sync()].concat(), 1),
    ]);
}

#[test]
fn execute_with_a_row_limit_suspends_the_portal() {
    for sql in [
        "SELECT k, v FROM p ORDER BY k",
        "SELECT k FROM p WHERE k IN (2, 3) ORDER BY k",
        "SELECT v FROM p WHERE k = 7",
        "SELECT g FROM generate_series(1, 7) g",
    ] {
        check(&[
            Ready(
                [
                    parse("", sql, &[]),
                    bind("", "", &[], &[], &[]),
                    execute("", 1),
                    execute("", 2),
                    execute("", 0),
                    sync(),
                ]
                .concat(),
                1,
            ),
            Ready(query("BEGIN"), 1),
            Ready([parse("q", sql, &[]), bind("c", "q", &[], &[], &[]), execute("c", 1), sync()].concat(), 1),
            Ready([execute("c", 2), sync()].concat(), 1),
            Ready([run("SELECT v FROM p WHERE k = 5", &[]), execute("c", 1), sync()].concat(), 1),
            Ready([describe(b'P', "c"), execute("c", 0), sync()].concat(), 1),
            Ready([execute("c", 3), close(b'P', "c"), sync()].concat(), 1),
            Ready([execute("c", 3), sync()].concat(), 1),
            Ready(query("ROLLBACK"), 1),
        ]);
    }
}

#[test]
fn a_suspended_portal_goes_on_with_what_there_was() {
    for sql in [
        "SELECT k, v FROM p ORDER BY k",
        "SELECT a.k, (SELECT b.v FROM p b WHERE b.k = 10 - a.k) FROM p a WHERE a.k < 6 ORDER BY a.k",
        "(SELECT v FROM p WHERE k = 1) UNION ALL (SELECT v FROM p WHERE k = 2) UNION ALL (SELECT v FROM p WHERE k = 3)",
    ] {
        check(&[
            Ready(query("BEGIN"), 1),
            Ready([parse("q", sql, &[]), bind("c", "q", &[], &[], &[]), execute("c", 1), sync()].concat(), 1),
            Ready(query("UPDATE p SET v = 'changed'"), 1),
            Ready([execute("c", 1), sync()].concat(), 1),
            Ready([execute("c", 0), sync()].concat(), 1),
            Ready(query("ROLLBACK"), 1),
        ]);
    }
}

/// Partitions, functions and views are read when their turn comes.
#[test]
fn a_suspended_portal_sees_no_later_changes() {
    let side = sides();
    for side in [&side.oracle, &side.tested] {
        let mut client = side.connect("protocol").unwrap();
        client.run("CREATE TABLE parts (k int, part int, v int) PARTITION BY LIST (part)").unwrap();
        for part in 1..=3 {
            client.run(&format!("CREATE TABLE part_{part} PARTITION OF parts FOR VALUES IN ({part})")).unwrap();
        }
        if side.is_cluster {
            client.run("SELECT create_distributed_table('parts', 'k')").unwrap();
        }
        client
            .run(
                "CREATE VIEW parts_view AS SELECT * FROM parts;
                 CREATE TABLE three AS SELECT generate_series(1, 3) AS k;
                 CREATE FUNCTION then_so(key int) RETURNS bigint STABLE LANGUAGE plpgsql AS
                     $$ BEGIN RETURN (SELECT sum(v) FROM parts WHERE k = key); END $$;
                 CREATE FUNCTION now_so(key int) RETURNS bigint LANGUAGE plpgsql AS
                     $$ BEGIN RETURN (SELECT sum(v) FROM parts WHERE k = key); END $$",
            )
            .unwrap();
    }
    for sql in [
        "SELECT k, v FROM parts",
        "SELECT k, v FROM parts_view",
        "SELECT k, then_so(k) FROM three",
        "SELECT k, now_so(k) FROM three",
        "SELECT t.k, (SELECT sum(v) FROM parts p WHERE p.k = t.k) FROM three t",
    ] {
        let first = [parse("", sql, &[]), bind("rows", "", &[], &[], &[]), execute("rows", 1), sync()];
        check(&[
            Ready(query("BEGIN; INSERT INTO parts SELECT g, g, g FROM generate_series(1, 3) g"), 1),
            Ready(first.concat(), 1),
            Ready(query("INSERT INTO parts SELECT g, g, 10 FROM generate_series(1, 3) g"), 1),
            Ready([execute("rows", 1), sync()].concat(), 1),
            Ready(query("DELETE FROM parts"), 1),
            Ready([execute("rows", 0), sync()].concat(), 1),
            Ready(query("ROLLBACK"), 1),
        ]);
    }
}

#[test]
fn portals_end_with_their_transaction() {
    check(&[
        Ready(
            [parse("q", "SELECT k FROM p ORDER BY k", &[]), bind("c", "q", &[], &[], &[]), execute("c", 1), sync()]
                .concat(),
            1,
        ),
        Ready([execute("c", 1), sync()].concat(), 1),
        Ready(query("BEGIN"), 1),
        Ready([bind("c", "q", &[], &[], &[]), bind("c", "q", &[], &[], &[]), sync()].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        Ready(
            [
                bind("c", "q", &[], &[], &[]),
                bind("d", "q", &[], &[], &[]),
                execute("c", 2),
                execute("d", 1),
                execute("c", 1),
                sync(),
            ]
            .concat(),
            1,
        ),
    ]);
}

#[test]
fn flush_brings_what_is_ready() {
    check(&[
        Messages([parse("f", "SELECT v FROM p WHERE k = $1", &[]), describe(b'S', "f"), flush()].concat(), 3),
        Messages([bind("", "f", &[], &text(&["2"]), &[]), execute("", 0), flush()].concat(), 3),
        Messages([bind("", "f", &[], &text(&["3"]), &[]), execute("", 0), flush()].concat(), 3),
        Messages([run("SELECT count(*) FROM p", &[]), flush()].concat(), 4),
        Messages([parse("", "SELEC", &[]), flush()].concat(), 1),
        Ready(sync(), 1),
    ]);
}

#[test]
fn the_unnamed_statement_is_replaced() {
    check(&[
        Ready(
            [
                parse("", "SELECT 1", &[]),
                parse("", "SELECT v FROM p WHERE k = 2", &[]),
                bind("", "", &[], &[], &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
            1,
        ),
        Ready([bind("", "", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready(query("SELECT 2"), 1),
        Ready([bind("", "", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready(
            [parse("", "", &[]), bind("", "", &[], &[], &[]), describe(b'P', ""), execute("", 0), sync()].concat(),
            1,
        ),
    ]);
}

#[test]
fn an_unnamed_statement_is_gone_with_the_next_parse() {
    check(&[
        Ready([parse("", "DELETE FROM p WHERE k = 1", &[]), sync()].concat(), 1),
        Ready([parse("", "SELEC", &[]), sync()].concat(), 1),
        Ready([bind("", "", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready(query("SELECT v FROM p WHERE k = 1"), 1),
    ]);
}

#[test]
fn a_query_in_a_pipeline_is_part_of_it() {
    let update = |k: &str| run("UPDATE p SET v = 'piped' WHERE k = $1", &[k]);
    check(&[
        // One transaction with what came before it.
        Ready([update("1"), update("2"), query("SELECT v FROM p WHERE k IN (1, 2) ORDER BY k")].concat(), 1),
        Ready(query("SELECT v FROM p WHERE k < 4 ORDER BY k"), 1),
        Ready([update("3"), update("4"), query("SELECT 1 / 0")].concat(), 1),
        Ready(query("SELECT v FROM p WHERE k IN (3, 4) ORDER BY k"), 1),
        Ready([update("5"), query("")].concat(), 1),
        Ready(query("SELECT v FROM p WHERE k = 5"), 1),
        Ready([update("6"), query("BEGIN")].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        Ready(query("SELECT v FROM p WHERE k = 6"), 1),
        // Behind an error it is skipped as all else is.
        Ready(
            [run("SELECT 1 / (k - k) FROM p WHERE k = $1", &["1"]), query("SELECT 5"), update("7"), sync()].concat(),
            1,
        ),
        Ready([update("x"), query("UPDATE p SET v = 'skipped' WHERE k = 8"), sync()].concat(), 1),
        Ready(query("SELECT v FROM p WHERE k IN (7, 8) ORDER BY k"), 1),
    ]);
}

/// What may not be in a transaction block, and what has to be: first, in the middle and last of a pipeline.
#[test]
fn a_pipeline_may_have_what_is_no_part_of_a_transaction() {
    let statements = [
        "VACUUM pipes",
        "ANALYZE pipes",
        "DISCARD ALL",
        "DISCARD TEMP",
        "CREATE INDEX CONCURRENTLY piped ON pipes (v)",
        "REINDEX INDEX CONCURRENTLY piped",
        "DROP INDEX CONCURRENTLY piped",
        "CREATE DATABASE piped_database",
        "DROP DATABASE IF EXISTS piped_database",
        "LOCK TABLE pipes IN SHARE MODE",
        "DECLARE piped CURSOR FOR SELECT v FROM pipes WHERE k = 1",
        "SAVEPOINT piped",
        "RELEASE piped",
        "ROLLBACK TO piped",
        "SET LOCAL statement_timeout = 0",
        "COMMIT PREPARED 'nothing'",
        "DO $$ BEGIN UPDATE pipes SET v = v WHERE k = 1; END $$",
        "CALL piped_stays()",
        "COMMIT",
        "ROLLBACK",
        "BEGIN",
    ];
    let update = |k: &str| run("UPDATE pipes SET v = v || '!' WHERE k = $1", &[k]);
    let values = "SELECT v FROM pipes WHERE k IN (1, 2, 3) ORDER BY k";
    let made = "CREATE PROCEDURE piped_stays() LANGUAGE plpgsql AS $$ BEGIN UPDATE pipes SET v = v WHERE k = 1; END $$";
    check(&[Ready(query(made), 1)]);
    for statement in statements {
        let mut steps = vec![Ready(query("UPDATE pipes SET v = 'v' || k"), 1)];
        let it = || run(statement, &[]);
        let pipelines = vec![
            vec![it(), run("SELECT 1", &[])],
            vec![it(), it()],
            vec![it(), update("1"), run("SELECT 1 / (k - k) FROM pipes WHERE k = 1", &[])],
            vec![run("BEGIN", &[]), it(), run("COMMIT", &[])],
            vec![update("1"), it()],
            vec![it(), update("2"), it(), update("3")],
        ];
        for pipeline in pipelines {
            steps.push(Ready([pipeline, vec![sync()]].concat().concat(), 1));
            steps.push(Ready(query("ROLLBACK"), 1));
            steps.push(Ready(query(values), 1));
        }
        steps.push(Ready(query(&[statement, "; SELECT 1"].concat()), 1));
        steps.push(Ready(query("ROLLBACK"), 1));
        steps.push(Ready(query("DROP INDEX IF EXISTS piped"), 1));
        steps.push(Ready(query("DROP DATABASE IF EXISTS piped_database"), 1));
        check(&steps);
    }
    check(&[Ready(query("DROP PROCEDURE piped_stays"), 1)]);
    // It holds until the pipeline's end, first in it or not.
    let (one, two) = (run("SET LOCAL statement_timeout = '1h'", &[]), run("SET LOCAL statement_timeout = '2h'", &[]));
    let show = || run("SHOW statement_timeout", &[]);
    let pipelines = [one, show(), sync(), show(), two, show(), sync(), show(), sync()];
    check(&[Ready(pipelines.concat(), 3)]);
    let ends = "BEGIN UPDATE pipes SET v = v || '?' WHERE k = 1; COMMIT; UPDATE pipes SET v = v || '?' WHERE k = 2; COMMIT; END";
    let fails =
        "BEGIN UPDATE pipes SET v = v || '?' WHERE k = 1; COMMIT; UPDATE pipes SET v = 1 / (k - k) WHERE k = 2; END";
    check(&[Ready(query(&format!("CREATE PROCEDURE piped_ends() LANGUAGE plpgsql AS $$ {ends} $$")), 1)]);
    for statement in [format!("DO $$ {ends} $$"), "CALL piped_ends()".to_owned(), format!("DO $$ {fails} $$")] {
        let mut steps = vec![Ready(query("UPDATE pipes SET v = 'v' || k"), 1)];
        let it = || run(&statement, &[]);
        for pipeline in [
            vec![it()],
            vec![it(), run("SELECT 1", &[])],
            vec![it(), update("1"), run("SELECT 1 / (k - k) FROM pipes WHERE k = 1", &[])],
            vec![it(), update("3"), run("SELECT v FROM pipes WHERE k = 3", &[])],
            vec![run("BEGIN", &[]), it(), run("COMMIT", &[])],
        ] {
            steps.push(Ready([pipeline, vec![sync()]].concat().concat(), 1));
            steps.push(Ready(query("ROLLBACK"), 1));
            steps.push(Ready(query(values), 1));
        }
        check(&steps);
    }
    check(&[Ready(query("DROP PROCEDURE piped_ends"), 1)]);
}

#[test]
fn a_row_limit_holds_for_writes() {
    let insert = "INSERT INTO p (k, v) VALUES (11, 'a'), (12, 'b'), (13, 'c'), (14, 'd') RETURNING k";
    check(&[
        Ready(query("BEGIN"), 1),
        Ready([parse("i", insert, &[]), bind("i", "i", &[], &[], &[]), execute("i", 2), sync()].concat(), 1),
        Ready([execute("i", 1), sync()].concat(), 1),
        Ready([execute("i", 0), sync()].concat(), 1),
        Ready([execute("i", 0), sync()].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        Ready(query("BEGIN"), 1),
        Ready([parse("u", "UPDATE p SET n = 1 WHERE k < 5 RETURNING 'all'", &[]), sync()].concat(), 1),
        Ready([bind("u", "u", &[], &[], &[]), execute("u", 3), sync()].concat(), 1),
        Ready([describe(b'P', "u"), execute("u", 3), sync()].concat(), 1),
        Ready(query("SELECT count(*) FROM p WHERE n = 1"), 1),
        Ready(query("ROLLBACK"), 1),
    ]);
}

/// JDBC's executeUpdate and executeBatch ask for one row of every write.
#[test]
fn a_row_limit_leaves_the_number_of_changed_rows() {
    for sql in [
        "UPDATE p SET v = $1",
        "UPDATE p SET v = $1 WHERE k = 3",
        "UPDATE p SET v = $1 WHERE k IN (3, 4, 5)",
        "UPDATE p SET v = $1 FROM local l WHERE l.k = p.k",
        "UPDATE p SET v = $1 WHERE k > 3 RETURNING 'one'",
        "INSERT INTO p (k, v) VALUES (11, $1)",
        "INSERT INTO p (k, v) VALUES (11, $1), (12, $1), (13, $1), (14, 'x')",
        "INSERT INTO p (k, v) SELECT k + 10, $1 FROM p",
        "INSERT INTO p (k, v) SELECT g, $1 FROM generate_series(11, 17) g",
        "INSERT INTO p (k, v) VALUES (3, $1), (4, $1), (11, $1) ON CONFLICT DO NOTHING",
        "INSERT INTO p (k, v) VALUES (3, $1), (4, $1) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
        "DELETE FROM p WHERE v <> $1 AND k > 4",
        "WITH w AS (UPDATE p SET v = $1 RETURNING k) DELETE FROM local WHERE k IN (SELECT k FROM w)",
        "WITH w AS (UPDATE p SET v = $1 RETURNING k) SELECT count(*) FROM w",
        "MERGE INTO p USING (VALUES (1), (2), (11)) s(i) ON p.k = s.i WHEN MATCHED THEN UPDATE SET v = $1
            WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.i, $1)",
        "INSERT INTO r VALUES (1, $1), (2, $1)",
        "INSERT INTO r SELECT k, $1 FROM p WHERE k < 6",
        "UPDATE r SET v = $1",
        "DELETE FROM r WHERE v = $1",
        "INSERT INTO local VALUES (1, $1), (2, $1)",
        "UPDATE local SET v = $1",
        "UPDATE counted_moods SET a = $1::text::mood[]",
    ] {
        let value = if sql.contains("mood") { "{low}" } else { "x" };
        let once = |rows| [bind("", "w", &[], &text(&[value]), &[]), execute("", rows), sync()].concat();
        check(&[
            Ready(query("BEGIN"), 1),
            Ready(query("INSERT INTO r VALUES (5, 'x'), (6, 'x'), (7, 'y'); INSERT INTO local VALUES (7), (8)"), 1),
            Ready(query("INSERT INTO counted_moods VALUES (1), (2), (3), (4); SAVEPOINT s"), 1),
            Ready([parse("w", sql, &[]), once(1)].concat(), 1),
            Ready([execute("", 1), sync()].concat(), 1),
            Ready(query("ROLLBACK TO s"), 1),
            Ready(once(2), 1),
            Ready(query("ROLLBACK TO s"), 1),
            Ready(once(0), 1),
            Ready([execute("", 0), sync()].concat(), 1),
            Ready(query("ROLLBACK"), 1),
        ]);
    }
    // By themselves, often enough to be sent the short ways.
    for sql in ["UPDATE p SET v = $1", "UPDATE p SET v = $1 WHERE k = 3", "UPDATE p SET v = $1 WHERE k = 3 RETURNING v"]
    {
        let once = [bind("", "w", &[], &text(&["x"]), &[]), describe(b'P', ""), execute("", 1), sync()].concat();
        let again = |_| Ready(once.clone(), 1);
        check(
            &std::iter::once(Ready([parse("w", sql, &[]), sync()].concat(), 1))
                .chain((0..5).map(again))
                .collect::<Vec<_>>(),
        );
    }
    // A batch.
    let each = |value: &str| [bind("", "w", &[], &text(&[value]), &[]), execute("", 1)].concat();
    check(&[Ready(
        [parse("w", "UPDATE p SET v = $1 WHERE k < 7", &[]), each("a"), each("b"), each("c"), sync()].concat(),
        1,
    )]);
}

#[test]
fn a_portal_that_gave_all_of_its_rows_has_none() {
    for sql in [
        "INSERT INTO p (k, v) VALUES (11, 'a') RETURNING k",
        "INSERT INTO p (k, v) VALUES (11, 'a'), (12, 'b') RETURNING k",
        "INSERT INTO p (k, v) VALUES (11, 'a')",
        "UPDATE p SET v = 'x' RETURNING k > 0",
        "UPDATE p SET v = 'x' WHERE k = 3 RETURNING k",
        "UPDATE p SET v = 'x'",
        "DELETE FROM p WHERE k = 3 RETURNING k",
        "WITH w AS (UPDATE p SET v = 'x' RETURNING 1) SELECT * FROM w",
        "UPDATE r SET v = 'x' RETURNING k",
        "INSERT INTO local VALUES (1, 'x') RETURNING k",
        "SELECT k FROM p WHERE k = 2",
        "SELECT count(*) FROM p",
        "SHOW search_path",
        "EXPLAIN (COSTS OFF) SELECT 1",
        "SET work_mem = '64kB'",
        "PREPARE x AS SELECT 1",
    ] {
        for rows in [0, 1, 100] {
            check(&[
                Ready(query("BEGIN"), 1),
                Ready([parse("", sql, &[]), bind("c", "", &[], &[], &[]), execute("c", rows), sync()].concat(), 1),
                Ready([execute("c", rows), sync()].concat(), 1),
                Ready([execute("c", rows), sync()].concat(), 1),
                Ready([execute("c", 0), sync()].concat(), 1),
                Ready([execute("c", 0), sync()].concat(), 1),
                Ready(query("ROLLBACK"), 1),
                Ready(query("DEALLOCATE ALL"), 1),
            ]);
        }
    }
}

#[test]
fn an_unnamed_portal_lives_as_long_as_its_transaction() {
    let one = |k: &str| [bind("", "s", &[], &text(&[k]), &[1]), execute("", 0), sync()].concat();
    check(&[
        Ready([parse("s", "SELECT v, k FROM p WHERE k = $1", &[]), sync()].concat(), 1),
        Ready(one("1"), 1),
        Ready(query("BEGIN"), 1),
        Ready(one("2"), 1),
        Ready(one("3"), 1),
        Ready([execute("", 0), sync()].concat(), 1),
        Ready(one("4"), 1),
        Ready([describe(b'P', ""), sync()].concat(), 1),
        Ready(one("5"), 1),
        Ready(query("COMMIT"), 1),
        Ready([execute("", 0), sync()].concat(), 1),
    ]);
}

#[test]
fn copy_says_what_is_wrong_before_it_asks_for_data() {
    let done = || message(b'c', &[]);
    check(&[
        Ready(query("COPY p FROM STDIN (DELIMITER 'ab')"), 1),
        Ready(query("COPY p (k, v) FROM STDIN (FORMAT csv, HEADER, FORCE_NULL (nope))"), 1),
        Ready(query("COPY r FROM STDIN (DELIMITER 'ab')"), 1),
        Ready(query("COPY r FROM STDIN (FORMAT csv, HEADER, FORCE_NULL (nope))"), 1),
        Ready([query("COPY r FROM STDIN (FORMAT csv, HEADER)"), message(b'd', b"k,v\n"), done()].concat(), 1),
        Ready([query("COPY r FROM STDIN (FORMAT csv, HEADER)"), message(b'd', b"k,v\n1,a\n2,b\n"), done()].concat(), 1),
        Ready([query("COPY p (k, v) FROM STDIN (FORMAT csv, HEADER)"), message(b'd', b"k,v\n"), done()].concat(), 1),
        Ready([query("COPY p (k, v) FROM STDIN (FORMAT csv, HEADER)"), done()].concat(), 1),
        Ready(
            [query("COPY p (k, v) FROM STDIN CSV HEADER"), message(b'd', b"k,v\n21,a\n22,b\n23,c\n"), done()].concat(),
            1,
        ),
        Ready(query("SELECT k, v FROM p WHERE k > 20 ORDER BY k"), 1),
        Ready(query("SELECT k, v FROM r ORDER BY k"), 1),
        Ready(query("TRUNCATE r"), 1),
    ]);
}

#[test]
fn errors_in_copy_name_the_lines_of_the_client() {
    let rows = |wrong: usize| -> String {
        (100..400).map(|k| if k == wrong { format!("{k}\ta\tno number\n") } else { format!("{k}\ta\t1\n") }).collect()
    };
    let quoted: String =
        (100..200).map(|k| format!("{k},\"two\nlines\",{}\n", if k == 180 { "x" } else { "1" })).collect();
    let data = [
        ("COPY p FROM STDIN", rows(371)),
        ("COPY p FROM STDIN", format!("{}7\ttwice\t1\n", rows(0))),
        ("COPY p FROM STDIN (FORMAT csv, HEADER)", format!("k,v,n\n{quoted}")),
        ("COPY p FROM STDIN", format!("{}400\ttoo few\n", rows(0))),
    ];
    let sides = sides();
    let _turn = alone();
    for (copy, data) in data {
        let context = |side: &Side| {
            side.connect("protocol").unwrap().run("DELETE FROM p WHERE k > 10").unwrap();
            let mut client = Client::connect(&side.target.with_database("protocol")).unwrap();
            client.send(&[query(copy), message(b'd', data.as_bytes()), message(b'c', &[])].concat()).unwrap();
            let messages = client.receive_until_ready(1).unwrap();
            let error = messages.iter().find(|m| m.kind == b'E').unwrap();
            Fields::parse(&error.body).0.get(&'W').cloned().unwrap()
        };
        assert_eq!(context(&sides.oracle), context(&sides.tested), "{copy}");
    }
}

#[test]
fn binary_values_of_own_types_are_read_and_written() {
    // An array: dimensions, whether NULLs are in it, the element's type, the length, the lower bound.
    let array = |oid: u32, labels: &[&str]| {
        let head = [1, 0, oid, labels.len() as u32, 1].into_iter().flat_map(|n| n.to_be_bytes());
        let body = labels.iter().flat_map(|l| [&(l.len() as u32).to_be_bytes(), l.as_bytes()].concat());
        Some(head.chain(body).collect::<Vec<u8>>())
    };
    let sides = sides();
    let mut shown = Vec::new();
    for side in [&sides.oracle, &sides.tested] {
        let mut client = side.connect("protocol").unwrap();
        let oid: u32 = client.value("SELECT 'mood'::regtype::oid").unwrap().parse().unwrap();
        let mut raw = Client::connect(&side.target.with_database("protocol")).unwrap();
        let mut said = Vec::new();
        let steps = [
            [
                parse("", "INSERT INTO moods VALUES ($1, $2), ($3, $2) RETURNING k", &[]),
                bind(
                    "",
                    "",
                    &[0, 1, 0],
                    &[Some(b"1".to_vec()), array(oid, &["low", "high"]), Some(b"2".to_vec())],
                    &[],
                ),
                execute("", 0),
                sync(),
            ]
            .concat(),
            [
                parse("", "SELECT k FROM moods WHERE k = $1 AND a = $2", &[]),
                bind("", "", &[0, 1], &[Some(b"1".to_vec()), array(oid, &["low", "high"])], &[]),
                execute("", 0),
                sync(),
            ]
            .concat(),
            [parse("", "SELECT a FROM moods ORDER BY k", &[]), bind("", "", &[], &[], &[1]), execute("", 0), sync()]
                .concat(),
            query("TRUNCATE moods"),
        ];
        for step in steps {
            raw.send(&step).unwrap();
            for mut message in raw.receive_until_ready(1).unwrap() {
                // The type's number is the server's own.
                let places: Vec<usize> = (0..message.body.len()).collect();
                for at in places.into_iter().filter(|_| message.kind == b'D') {
                    if message.body[at..].starts_with(&oid.to_be_bytes()) {
                        message.body[at..at + 4].copy_from_slice(b"TYPE");
                    }
                }
                said.extend((message.kind != b'T').then(|| show_message(&message)));
            }
        }
        shown.push(said);
    }
    assert_eq!(shown[0], shown[1]);
}

#[test]
fn copy_in_ends_as_the_client_says() {
    let data = |text: &str| message(b'd', text.as_bytes());
    let done = || message(b'c', &[]);
    let fail = |reason: &str| message(b'f', &[reason.as_bytes(), &[0]].concat());
    let copy = "COPY p (k, v) FROM STDIN";
    check(&[
        Ready([query(copy), data("201\ta\n202"), data("\tb\n"), data("203\tc\n"), done()].concat(), 1),
        Ready(query("SELECT k, v FROM p WHERE k > 200 ORDER BY k"), 1),
        Ready([query(copy), data("204\td\n"), fail("I changed my mind")].concat(), 1),
        Ready([query(copy), data("205\te\n1\tdup\n206\tf\n"), done()].concat(), 1),
        Ready([query(copy), data("205\te\nx\tbad\n"), done()].concat(), 1),
        Ready([query(copy), data("205\te")].concat().into_iter().chain(done()).collect(), 1),
        Ready([query(copy), done()].concat(), 1),
        Ready(query("SELECT k, v FROM p WHERE k > 200 ORDER BY k"), 1),
        Ready(
            [
                parse("", copy, &[]),
                bind("", "", &[], &[], &[]),
                describe(b'P', ""),
                execute("", 0),
                data("207\tg\n"),
                done(),
                sync(),
            ]
            .concat(),
            1,
        ),
        Ready(
            [parse("", copy, &[]), bind("", "", &[], &[], &[]), execute("", 0), data("208\tg\n"), fail("no"), sync()]
                .concat(),
            1,
        ),
        Ready(
            [parse("", "COPY p (nope) FROM STDIN", &[]), bind("", "", &[], &[], &[]), execute("", 0), flush(), sync()]
                .concat(),
            1,
        ),
        // Data that nobody asked for are ignored.
        Ready([data("1\t2\n"), done(), query("SELECT count(*) FROM p WHERE k > 200")].concat(), 1),
        Ready(
            query("COPY p (k, v) FROM STDIN; SELECT 1").into_iter().chain(data("209\th\n")).chain(done()).collect(),
            1,
        ),
        Ready(query("DELETE FROM p WHERE k > 200"), 1),
    ]);
}

/// A client that waits for an answer gets it, though it has not ended its data.
#[test]
fn copy_in_tells_of_an_error_while_the_client_waits() {
    let data = |text: &str| message(b'd', text.as_bytes());
    for table in ["p", "local"] {
        let copy = |columns: &str| query(&format!("COPY {table} ({columns}) FROM STDIN"));
        check(&[
            Messages(copy("k, v"), 1),
            Ready(data("201\ta\nx\tbad\n"), 1),
            Ready([data("202\tb\n"), message(b'c', &[]), query("SELECT count(*) FROM p WHERE k > 200")].concat(), 1),
            Messages(copy("v, k"), 1),
            Ready(data("a\t201\nb\t99999999999\n"), 1),
            Messages(copy("k, v"), 1),
            Ready(data("203\tc\td\n"), 1),
            Messages(
                [
                    parse("", &format!("COPY {table} FROM STDIN"), &[]),
                    bind("", "", &[], &[], &[]),
                    execute("", 0),
                    flush(),
                ]
                .concat(),
                3,
            ),
            Messages(data("x\n"), 1),
            Ready([data("204\te\n"), message(b'c', &[]), sync()].concat(), 1),
            Ready(query(&format!("SELECT count(*) FROM {table} WHERE k > 200")), 1),
        ]);
    }
}

#[test]
fn copy_freeze_is_for_new_tables() {
    let data = |text: &str| [message(b'd', text.as_bytes()), message(b'c', &[])].concat();
    let copy = "COPY frozen FROM STDIN (FREEZE)";
    for side in [&sides().oracle, &sides().tested] {
        let mut client = side.connect("protocol").unwrap();
        client.run("CREATE TABLE frozen (k int)").unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('frozen', 'k')").unwrap();
        }
    }
    check(&[
        Ready(query("BEGIN"), 1),
        Ready([query(copy), data("1\n")].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        Ready(query("BEGIN; TRUNCATE frozen"), 1),
        Ready([query(copy), data("1\n2\n")].concat(), 1),
        Ready(query("COMMIT; SELECT count(*) FROM frozen; DROP TABLE frozen"), 1),
    ]);
}

#[test]
fn a_statement_has_up_to_65535_parameters() {
    let values: Vec<String> = (1..=65535).map(|n| n.to_string()).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let list = |from: usize, to: usize| (from..=to).map(|n| format!("${n}")).collect::<Vec<_>>().join(",");
    let rows = (1..=32767).map(|n| format!("(${}::int + 1000, ${})", 2 * n - 1, 2 * n)).collect::<Vec<_>>().join(",");
    let reads = [
        format!("SELECT count(*), sum(n) FROM p WHERE k IN ({})", list(1, 65535)),
        format!("SELECT k, v FROM p WHERE k IN ({}) ORDER BY k LIMIT 3", list(1, 65535)),
        format!("SELECT max(k) FROM p WHERE k IN (SELECT k FROM local) OR k IN ({})", list(1, 65535)),
    ];
    for sql in reads {
        check(&[Ready([run(&sql, &values), sync()].concat(), 1)]);
    }
    let insert = format!("INSERT INTO p (k, v) VALUES {rows}");
    let upsert = format!("{insert} ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING 1");
    check(&[
        Ready(query("BEGIN"), 1),
        Ready([run(&insert, &values[..65534]), sync()].concat(), 1),
        Ready(
            [parse("", &upsert, &[]), bind("", "", &[], &text(&values[..65534]), &[]), execute("", 1), sync()].concat(),
            1,
        ),
        Ready(query("SELECT count(*), sum(k) FROM p; ROLLBACK"), 1),
    ]);
}

/// More than a Bind can have.
#[test]
fn a_statement_with_65536_parameters_is_prepared() {
    let list: Vec<String> = (1..=65536).map(|n| format!("(${n}::text)")).collect();
    let sql = format!("VALUES {}", list.join(", "));
    check(&[
        Ready([parse("many", &sql, &[]), describe(b'S', "many"), sync()].concat(), 1),
        Ready(query("SELECT name FROM pg_prepared_statements"), 1),
    ]);
}

/// A statement's time goes on while its client is between its messages, up to what is executed.
#[test]
fn time_goes_on_between_messages() {
    let late = || parse("", "SELECT k FROM p WHERE k = $1", &[]);
    let executed = || [bind("", "late", &[], &text(&["1"]), &[]), execute("", 0)].concat();
    check(&[
        Ready(query("SET statement_timeout = '800ms'"), 1),
        Messages([parse("late", "SELECT $1::int", &[]), flush()].concat(), 1),
        Pause(1200),
        Ready([describe(b'S', "late"), sync()].concat(), 1),
        Ready([executed(), sync()].concat(), 1),
        Messages([executed(), flush()].concat(), 3),
        Pause(1200),
        Ready([executed(), sync()].concat(), 1),
        Messages([late(), flush()].concat(), 1),
        Pause(1200),
        Ready(sync(), 1),
        Ready(query("BEGIN"), 1),
        Messages([late(), flush()].concat(), 1),
        Pause(1200),
        Ready([executed(), sync()].concat(), 1),
        Ready(query("ROLLBACK"), 1),
        // Each has its own.
        Messages([late(), flush()].concat(), 1),
        Ready([executed(), sync()].concat(), 1),
        Pause(1200),
        Ready([executed(), sync()].concat(), 1),
        Messages([late(), flush()].concat(), 1),
        Ready(query("SELECT 1"), 1),
        Pause(1200),
        Ready([executed(), sync()].concat(), 1),
        Ready(query("SET statement_timeout = 0"), 1),
        Messages([late(), flush()].concat(), 1),
        Pause(300),
        Ready([executed(), sync()].concat(), 1),
    ]);
}

#[test]
fn a_query_has_no_parameters() {
    for sql in [
        "EXPLAIN SELECT $1",
        "EXPLAIN SELECT * FROM p WHERE k = $1",
        "CREATE TABLE made AS SELECT $1",
        "DECLARE c CURSOR FOR SELECT $1",
        "CALL p($1)",
        "COPY (SELECT v FROM p WHERE k = $1) TO STDOUT",
        "SELECT v FROM p WHERE k = $1",
        "UPDATE p SET v = $1",
    ] {
        check(&[
            Ready(query(sql), 1),
            Ready(query(&format!("BEGIN; UPDATE p SET v = v; {sql}")), 1),
            Ready(query("ROLLBACK"), 1),
        ]);
    }
}

#[test]
fn copy_out() {
    check(&[
        Ready(query("COPY (SELECT k, v FROM p ORDER BY k) TO STDOUT"), 1),
        Ready(query("COPY (SELECT k, v FROM p WHERE k = 3) TO STDOUT (FORMAT csv)"), 1),
        Ready(query("COPY (SELECT k FROM p WHERE false) TO STDOUT; SELECT 1"), 1),
        Ready([run("COPY (SELECT k, v FROM p ORDER BY k LIMIT 2) TO STDOUT", &[]), sync()].concat(), 1),
        // (What is sorted by is computed before the first row is sent, whatever the plan.)
        Ready(query("COPY (SELECT 1 / (k - 3) AS x FROM p ORDER BY x) TO STDOUT"), 1),
        Ready(query("SELECT 1"), 1),
    ]);
}

#[test]
fn messages_out_of_place_end_the_connection() {
    check(&[ToTheEnd(message(b'!', &[]))]);
    check(&[ToTheEnd(message(b'X', &[]))]);
    check(&[ToTheEnd([query("SELECT v FROM p WHERE k = 1"), message(b'X', &[])].concat())]);
    // A Parse that ends early.
    check(&[ToTheEnd([message(b'P', b"name"), sync(), message(b'X', &[])].concat())]);
}

#[test]
fn startup_is_answered_as_a_server_does() {
    let sides = sides();
    let target = |side: &Side| side.target.with_database("protocol");
    let (oracle, tested) = (target(&sides.oracle), target(&sides.tested));
    assert!(Client::untyped_request(&tested, 80_877_103).is_ok_and(|b| b == b'N' || b == b'S'), "SSLRequest");
    assert_eq!(Client::untyped_request(&tested, 80_877_104).unwrap(), b'N', "GSSENCRequest");
    // What fails, fails with the same words.
    let user = oracle.user.as_str();
    let failing: [&[(&str, &str)]; 5] = [
        &[("user", user), ("database", "nowhere")],
        &[("user", "nobody"), ("database", "protocol")],
        &[("database", "protocol")],
        &[("user", user), ("database", "protocol"), ("work_mem", "much")],
        &[("user", user), ("database", "protocol"), ("no_such_setting", "1")],
    ];
    for parameters in failing {
        let shown = |target: &Target| -> Vec<String> {
            Client::start_up(target, &startup(196_608, parameters)).unwrap().iter().map(show_message).collect()
        };
        let expected = shown(&oracle);
        assert!(expected.last().unwrap().starts_with("ErrorResponse"), "{parameters:?} works: {expected:?}");
        assert_eq!(expected.last(), shown(&tested).last(), "{parameters:?}");
    }
    // A later minor version and an unknown protocol option are negotiated down or spoken.
    for protocol in [196_610, 199_999] {
        let parameters = [("user", user), ("database", "protocol"), ("_pq_.unknown", "1")];
        let messages = Client::start_up(&tested, &startup(protocol, &parameters)).unwrap();
        assert!(messages.iter().any(|m| m.kind == b'v'), "NegotiateProtocolVersion for {protocol}");
        let last = messages.last().unwrap();
        assert_eq!(last.kind, b'Z', "{protocol}: {}", show_message(last));
    }
    let messages = Client::start_up(&tested, &startup(131_072, &[("user", user)])).unwrap();
    assert!(show_message(messages.last().unwrap()).contains("unsupported frontend protocol 2.0"));
}

/// Bytes before anybody has logged in: what is no startup message ends the connection as on one server, without a crash
/// and without an answer that tells anything.
#[test]
fn bytes_before_login_are_answered_as_a_server_does() {
    let sides = sides();
    let user = sides.oracle.target.user.clone();
    let options = |text: &str| startup(196_608, &[("user", &user), ("database", "protocol"), ("options", text)]);
    let twice = [options(""), options("")].concat();
    let mut cases = vec![
        packet(0, 196_608, b""),
        packet(7, 196_608, b""),
        packet(8, 196_608, b""),
        packet(9, 196_608, b"\0"),
        packet(10_001, 196_608, &[b'a'; 9993]),
        packet(0x7fff_ffff, 196_608, b"user\0a\0\0"),
        packet(0x8000_0001, 196_608, b"user\0a\0\0"),
        packet(0xffff_ffff, 196_608, b""),
        packet(12, 196_608, b"user"),
        packet(14, 196_608, b"user\0\0"),
        packet(16, 80_877_102, b"\0\0\0\x01\0\0\0\x02"),
        packet(12, 80_877_102, b"\0\0\0\x01"),
        packet(8, 80_877_103, b"\0\0"),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![255; 64],
    ];
    cases.extend(
        [
            "-c=",
            "-c",
            "-c =",
            "-c a",
            "-cwork_mem",
            "-c work_mem=",
            "--=",
            "--x",
            "-c work_mem=4MB -c",
            "-z",
            "\\",
            "-c=-c=",
            "-c a..b=1",
            "-c .a=1",
            "-c a.1b=1",
            "-c a.b$1.c=1",
        ]
        .map(options),
    );
    cases.push(twice);
    let replicates =
        |value: &str| startup(196_608, &[("user", &user), ("database", "protocol"), ("replication", value)]);
    cases.extend(["fa\\se", "", "FAL", "o", "2"].map(replicates));
    // Each by itself, or one after the other when the first has been answered.
    // (Servers that are built with GSSAPI offer it: it is not asked for here.)
    let ssl = packet(8, 80_877_103, b"");
    let mut cases: Vec<Vec<Vec<u8>>> = cases.into_iter().map(|bytes| vec![bytes]).collect();
    cases.extend([&ssl, &options("")].map(|second| vec![ssl.clone(), second.clone()]));
    for packets in cases {
        let [expected, found] =
            [&sides.oracle, &sides.tested].map(|side| door::answer(&side.target, &packets).unwrap());
        let last = packets.last().unwrap();
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(&last[..last.len().min(200)]));
    }
    // Made up: `make fuzz` goes on.
    let differ = door::compare(&sides.oracle, &sides.tested, "protocol", 0..400).unwrap();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn startup_parameters_become_settings() {
    let sides = sides();
    let parameters = [
        ("application_name", "driver"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "German"),
        ("TimeZone", "Asia/Tokyo"),
        ("extra_float_digits", "3"),
        ("search_path", "pg_catalog"),
        // What comes as a parameter of its own counts for more.
        ("options", "-c statement_timeout=12s -c TimeZone=UTC -c datestyle=SQL -c work_mem=5MB --lock_timeout=7s"),
    ];
    let shown = |side: &Side| {
        let mut client = Client::connect_with(&side.target.with_database("protocol"), &parameters).unwrap();
        let mut values: Vec<String> = parameters[..6]
            .iter()
            .map(|(name, _)| *name)
            .chain(["statement_timeout", "work_mem", "lock_timeout"])
            .map(|name| format!("{name} = {}", client.value(&format!("SHOW {name}")).unwrap()))
            .collect();
        client.run("RESET ALL").unwrap();
        // What came at startup is what RESET goes back to.
        values.push(client.value("SHOW timezone").unwrap());
        values.push(client.value("SELECT max(n) / 3 FROM public.p").unwrap());
        // And SET … TO DEFAULT, in a block and outside of one.
        client.run("BEGIN; SET LOCAL timezone = 'UTC'; SET LOCAL extra_float_digits = 0").unwrap();
        client.run("SET LOCAL timezone TO DEFAULT; SET LOCAL extra_float_digits TO DEFAULT").unwrap();
        values.push(client.value("SELECT max(n)::float8 / 3 || current_setting('timezone') FROM public.p").unwrap());
        values.push(client.value("SELECT max(n)::float8 / 3 FROM public.p WHERE k = 10").unwrap());
        client.run("COMMIT; SET timezone = 'UTC'; SET timezone TO DEFAULT").unwrap();
        let again = client.simple("BEGIN; SET LOCAL search_path = public; SET LOCAL search_path TO DEFAULT", None);
        values.push(format!("{:?}", again.unwrap()));
        values.push(client.value("SHOW search_path").unwrap());
        values.push(format!("{:?}", client.extended("SET LOCAL search_path TO DEFAULT", &[], &[], None).unwrap()));
        client.run("ROLLBACK").unwrap();
        values.push(client.value("SHOW timezone").unwrap());
        client.settings.remove("in_hot_standby");
        (values, client.settings.clone())
    };
    assert_eq!(shown(&sides.oracle), shown(&sides.tested));
}

/// What the client is told of its encoding. What encodings do is in `encodings.rs`.
#[test]
fn client_encodings_are_told() {
    let sides = sides();
    for spelling in [
        "UTF8",
        "utf-8",
        "Unicode",
        "latin1",
        "ISO-8859-15",
        "WIN1252",
        "koi8-u",
        "sql_ascii",
        "ISO_8859_7",
        "Shift_JIS",
    ] {
        let told = |side: &Side| {
            let target = side.target.with_database("protocol");
            let mut client = Client::connect_with(&target, &[("client_encoding", spelling)]).unwrap();
            let first = client.settings.get("client_encoding").cloned();
            let shown = client.value("SHOW client_encoding").unwrap();
            client.run("SET client_encoding = 'win1251'").unwrap();
            let second = client.settings.get("client_encoding").cloned();
            client.run("RESET client_encoding").unwrap();
            (first, shown, second, client.settings.get("client_encoding").cloned())
        };
        assert_eq!(told(&sides.oracle), told(&sides.tested), "{spelling}");
    }
    let unknown = |side: &Side| {
        let target = side.target.with_database("protocol");
        let error = Client::connect_with(&target, &[("client_encoding", "nowhere")]).err().unwrap().to_string();
        error.split_once("FATAL").unwrap().1.to_owned()
    };
    assert_eq!(unknown(&sides.oracle), unknown(&sides.tested));
}

#[test]
fn cancel_stops_the_statement_of_its_own_client_only() {
    let _turn = alone();
    let tested = sides().tested.target.with_database("protocol");
    for sql in [
        "SELECT pg_sleep(60)",
        "SELECT pg_sleep(60) FROM p WHERE k = 3",
        "SELECT count(pg_sleep(20)) FROM p",
        "UPDATE p SET v = pg_sleep(20)::text",
    ] {
        let mut client = Client::connect(&tested).unwrap();
        let mut neighbour = Client::connect(&tested).unwrap();
        let begun = Instant::now();
        client.send(&query(sql)).unwrap();
        neighbour.send(&query("SELECT pg_sleep(2), v FROM p WHERE k = 4")).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        client.cancel().unwrap();
        let messages = client.receive_until_ready(1).unwrap();
        let shown: Vec<String> = messages.iter().map(show_message).collect();
        assert!(shown.iter().any(|m| m.contains("57014")), "{sql}: {shown:?}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{sql} was not stopped at once");
        let messages = neighbour.receive_until_ready(1).unwrap();
        assert!(messages.iter().any(|m| m.kind == b'D'), "the neighbour of {sql} was hit");
        assert_eq!(client.value("SELECT v FROM p WHERE k = 3").unwrap(), "v3", "after {sql}");
    }
    // A key that is nobody's is ignored, and so is one that comes when nothing runs.
    let mut client = Client::connect(&tested).unwrap();
    client.cancel().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    client.secret[0] ^= 1;
    client.cancel().unwrap();
    assert_eq!(client.value("SELECT count(*) FROM p WHERE k <= 10").unwrap(), "10");
}

#[test]
fn a_lost_client_leaves_nothing_behind() {
    let _turn = alone();
    let tested = sides().tested.target.with_database("protocol");
    let mut client = Client::connect(&tested).unwrap();
    client.run("BEGIN; UPDATE p SET v = 'lost' WHERE k IN (1, 2, 3)").unwrap();
    client.send(&query("SELECT pg_sleep(0.2)")).unwrap();
    drop(client);
    let mut other = Client::connect(&tested).unwrap();
    other.run("SET lock_timeout = '10s'").unwrap();
    other.run("UPDATE p SET n = n WHERE k IN (1, 2, 3)").unwrap();
    assert_eq!(other.value("SELECT count(*) FROM p WHERE v = 'lost'").unwrap(), "0");
}

#[test]
fn more_clients_than_connections_wait_for_each_other() {
    let _turn = alone();
    let tested = sides().tested.target.with_database("protocol");
    let clients: Vec<_> = (0..60)
        .map(|i| {
            let tested = tested.clone();
            std::thread::spawn(move || -> Result<(), String> {
                let mut client = Client::connect(&tested).map_err(|e| e.to_string())?;
                for round in 0..5 {
                    let k = 1 + (i + round) % 10;
                    client.run(&format!("BEGIN; SELECT v FROM p WHERE k = {k}")).map_err(|e| e.to_string())?;
                    let v = client.value(&format!("SELECT v FROM p WHERE k = {k}")).map_err(|e| e.to_string())?;
                    client.run("COMMIT").map_err(|e| e.to_string())?;
                    if v != format!("v{k}") {
                        return Err(format!("{v} for {k}"));
                    }
                }
                Ok(())
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap().unwrap();
    }
    assert!(sides().plain.directory.exists());
}

#[test]
fn names_of_parse_and_prepare_are_one_set() {
    let named = |name: &str, sql: &str| parse(name, sql, &[]);
    check(&[
        Ready([named("by_parse", "SELECT v FROM p WHERE k = $1"), sync()].concat(), 1),
        Ready(query("EXECUTE by_parse (3)"), 1),
        Ready(query("PREPARE by_parse AS SELECT 1"), 1),
        Ready(query("PREPARE by_sql (int) AS SELECT v, k FROM p WHERE k = $1;"), 1),
        Ready([named("by_sql", "SELECT 1"), sync()].concat(), 1),
        Ready([describe(b'S', "by_sql"), sync()].concat(), 1),
        Ready([bind("", "by_sql", &[], &text(&["4"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([named("utility", "SHOW TimeZone"), sync()].concat(), 1),
        Ready(query("EXECUTE utility"), 1),
        Ready([named("again", "EXECUTE utility"), describe(b'S', "again"), sync()].concat(), 1),
        Ready([bind("", "again", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready([named("bytes", "EXECUTE by_sql (5)"), describe(b'S', "bytes"), sync()].concat(), 1),
        Ready([bind("", "bytes", &[], &[], &[1]), execute("", 0), sync()].concat(), 1),
        Ready(query("SELECT name, statement, parameter_types, from_sql FROM pg_prepared_statements ORDER BY name"), 1),
        Ready(query("DEALLOCATE by_parse"), 1),
        Ready([bind("", "by_parse", &[], &text(&["3"]), &[]), sync()].concat(), 1),
        Ready([close(b'S', "by_sql"), sync()].concat(), 1),
        Ready(query("EXECUTE by_sql (4)"), 1),
        Ready(query("DEALLOCATE ALL; SELECT count(*) FROM pg_prepared_statements"), 1),
        Ready([bind("", "utility", &[], &[], &[]), sync()].concat(), 1),
    ]);
}

/// The coordinator has what PREPARE made under the client's name, until the name means something else.
#[test]
fn a_name_of_prepare_that_is_closed_means_the_next_statement() {
    let whole = |name: &str, sql: &str| [parse(name, sql, &[]), sync()].concat();
    check(&[
        Ready(query("PREPARE same (int) AS SELECT v FROM local WHERE k = $1"), 1),
        Ready(query("EXECUTE same (1)"), 1),
        Ready([bind("", "same", &[], &text(&["1"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([close(b'S', "same"), sync()].concat(), 1),
        Ready(query("EXECUTE same (1)"), 1),
        Ready(whole("same", "SELECT 'parsed'"), 1),
        Ready(query("EXECUTE same"), 1),
        Ready(query("SELECT name, from_sql FROM pg_prepared_statements WHERE name = 'same'"), 1),
        Ready([close(b'S', "same"), sync()].concat(), 1),
        Ready(query("PREPARE same AS SELECT count(*) FROM p"), 1),
        Ready(query("EXECUTE same"), 1),
        Ready(query("DEALLOCATE same"), 1),
        Ready(query("PREPARE same AS SELECT 'prepared'"), 1),
        Ready([run("EXECUTE same", &[]), sync()].concat(), 1),
        Ready(query("DEALLOCATE ALL; EXECUTE same"), 1),
        Ready(query("PREPARE same AS SELECT 1; DISCARD ALL"), 1),
        Ready(query("PREPARE same AS SELECT 1"), 1),
        Ready(query("DISCARD ALL"), 1),
        Ready(query("EXECUTE same"), 1),
    ]);
}

#[test]
fn the_unnamed_statement_is_not_deallocated() {
    check(&[
        Ready(
            [
                parse("all", "DEALLOCATE ALL", &[]),
                parse("", "SELECT v FROM p WHERE k = $1", &[]),
                bind("first", "all", &[], &[], &[]),
                execute("first", 0),
                bind("second", "", &[], &text(&["2"]), &[]),
                execute("second", 0),
                bind("third", "all", &[], &[], &[]),
                sync(),
            ]
            .concat(),
            1,
        ),
        Ready([parse("all", "DISCARD ALL", &[]), sync()].concat(), 1),
        Ready([parse("", "SELECT v FROM p WHERE k = $1", &[]), sync()].concat(), 1),
        Ready([bind("", "all", &[], &[], &[]), execute("", 0), sync()].concat(), 1),
        Ready([bind("", "", &[], &text(&["2"]), &[]), execute("", 0), sync()].concat(), 1),
        Ready([bind("", "all", &[], &[], &[]), sync()].concat(), 1),
    ]);
}

#[test]
fn utility_statements_fail_where_postgresql_fails() {
    check(&[
        Ready([parse("", "SHOW nosetting", &[]), describe(b'S', ""), sync()].concat(), 1),
        Ready([parse("", "EXECUTE nothing", &[]), describe(b'S', ""), sync()].concat(), 1),
        Ready([bind("", "", &[], &[], &[]), describe(b'P', ""), execute("", 0), sync()].concat(), 1),
        Ready([parse("", "FETCH nothing", &[]), describe(b'S', ""), sync()].concat(), 1),
        Ready(query("BEGIN; DECLARE c NO SCROLL CURSOR FOR SELECT k FROM p ORDER BY k; FETCH c"), 1),
        Ready(query("FETCH PRIOR c"), 1),
        Ready(query("ROLLBACK"), 1),
    ]);
}

#[test]
fn portals_are_cursors() {
    check(&[
        Ready(query("BEGIN"), 1),
        Ready(query("DECLARE declared SCROLL CURSOR FOR SELECT k FROM p ;"), 1),
        Ready(
            [
                parse("s", "SELECT k FROM p ORDER BY k -- all", &[]),
                bind("portal", "s", &[], &[], &[]),
                execute("portal", 2),
                sync(),
            ]
            .concat(),
            1,
        ),
        Ready(
            query(
                "SELECT name, statement, is_holdable, is_binary, is_scrollable FROM pg_cursors ORDER BY name; SELECT 1",
            ),
            1,
        ),
        Ready(run("SELECT name, statement FROM pg_cursors ORDER BY name", &[]), 0),
        Ready(sync(), 1),
        Ready([close(b'P', "portal"), sync()].concat(), 1),
        Ready(query("SELECT name, statement FROM pg_cursors ORDER BY name"), 1),
        Ready(query("ROLLBACK"), 1),
    ]);
}

#[test]
fn what_explain_explains_may_have_parameters() {
    let _alone = alone();
    let sides = sides();
    let results = [&sides.oracle, &sides.tested].map(|side| {
        let mut client = side.connect("protocol").unwrap();
        client.run("BEGIN").unwrap();
        let mut told = Vec::new();
        for (sql, types, values) in [
            ("EXPLAIN (COSTS off) SELECT * FROM p WHERE k = $1", vec![], vec!["7"]),
            ("EXPLAIN SELECT * FROM p WHERE n > $1 AND v <> $2", vec![0, 25], vec!["1.5", "x"]),
            ("EXPLAIN SELECT * FROM local WHERE k = $1", vec![20], vec!["7"]),
            ("EXPLAIN (FORMAT json) SELECT count(*), $1::text FROM r, p WHERE p.k = r.k", vec![], vec!["y"]),
            ("EXPLAIN ANALYZE UPDATE p SET v = $2 WHERE k = $1", vec![], vec!["7", "seven"]),
            ("EXPLAIN ANALYZE INSERT INTO p VALUES ($1, $2)", vec![23], vec!["70", "new"]),
            ("EXPLAIN ANALYZE UPDATE p SET n = $1 WHERE k < $2", vec![], vec!["0.25", "4"]),
            ("EXPLAIN SELECT $1::int + 1", vec![], vec!["1"]),
            ("EXPLAIN SELECT 1", vec![], vec![]),
        ] {
            let described = client.prepare("", sql, &types).unwrap();
            assert!(described.error().is_none(), "{sql}: {described:?}");
            let reply = client.execute("", &text(&values), 0, None).unwrap();
            assert!(reply.error().is_none() && !reply.answers[0].rows.is_empty(), "{}: {sql}: {reply:?}", side.name);
            told.push(format!("{sql}: {:?} {:?}", described.parameter_types, reply.answers[0].tag));
        }
        let wrong = client.prepare("", "EXPLAIN SELECT * FROM p WHERE k = $1", &[]).unwrap();
        assert!(wrong.error().is_none());
        let wrong = client.execute("", &[], 0, None).unwrap();
        told.push(wrong.error().unwrap().sqlstate().to_owned());
        client.run("ROLLBACK; BEGIN").unwrap();
        for (sql, values) in [
            ("EXPLAIN ANALYZE UPDATE p SET v = $2 WHERE k = $1", vec!["7", "seven"]),
            ("EXPLAIN ANALYZE DELETE FROM p WHERE k = $1", vec!["3"]),
            ("EXPLAIN ANALYZE UPDATE p SET n = $1 WHERE k < $2", vec!["0.25", "3"]),
        ] {
            client.prepare("", sql, &[]).unwrap();
            client.execute("", &text(&values), 0, None).unwrap();
        }
        told.push(client.value("SELECT string_agg(concat(k, v, n), ' ' ORDER BY k) FROM p").unwrap());
        client.run("ROLLBACK").unwrap();
        told
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn drivers_know_what_has_to_be_prepared_anew() {
    let _alone = alone();
    let sides = sides();
    let results = [&sides.oracle, &sides.tested].map(|side| {
        let mut client = side.connect("protocol").unwrap();
        client.run("CREATE TABLE changing (k int PRIMARY KEY)").unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('changing', 'k')").unwrap();
        }
        client.prepare("s", "SELECT * FROM changing WHERE k > $1", &[]).unwrap();
        client.execute("s", &text(&["1"]), 0, None).unwrap();
        client.run("ALTER TABLE changing ADD COLUMN more text").unwrap();
        let reply = client.execute("s", &text(&["1"]), 0, None).unwrap();
        let error = reply.error().unwrap();
        let told = ['C', 'M', 'F', 'R'].map(|field| error.get(field).to_owned());
        client.run("DROP TABLE changing").unwrap();
        told
    });
    assert_eq!(results[0], results[1]);
}

/// asyncpg's cursors do so.
#[test]
fn fetch_and_move_go_on_in_portals_that_bind_has_made() {
    for sql in [
        "SELECT k, v FROM p ORDER BY k",
        "SELECT k, v FROM p WHERE k = 3",
        "SELECT g, 'x' FROM generate_series(1, 10) g",
        "INSERT INTO local SELECT g, 'n' FROM generate_series(11, 20) g RETURNING k, v",
        "INSERT INTO p VALUES (11, 'n') RETURNING k, v",
        "SELECT p.k, local.v FROM p LEFT JOIN local USING (k) ORDER BY p.k",
    ] {
        let portal = [parse("", sql, &[]), bind("c", "", &[], &[], &[])].concat();
        let next = |rows| Ready([execute("c", rows), sync()].concat(), 1);
        let order = |sql: &str| Ready(query(sql), 1);
        check(&[
            order("BEGIN"),
            Ready([portal.clone(), sync()].concat(), 1),
            order("MOVE 0 c"),
            order("MOVE 2 c"),
            order("MOVE 0 c"),
            next(1),
            order("FETCH c"),
            order("FETCH FORWARD 2 FROM c"),
            order("MOVE FORWARD 1 c"),
            next(2),
            order("MOVE ALL c"),
            order("FETCH c"),
            next(0),
            order("SAVEPOINT s"),
            order("FETCH BACKWARD 1 FROM c"),
            order("ROLLBACK TO s"),
            order("CLOSE c"),
            order("FETCH c"),
            order("ROLLBACK"),
            // By the extended protocol, and without a row of Execute's before.
            order("BEGIN"),
            Ready([portal.clone(), run("MOVE 4 c", &[]), sync()].concat(), 1),
            Ready(
                [parse("", "FETCH 3 c", &[]), bind("", "", &[], &[], &[]), describe(b'P', ""), execute("", 0), sync()]
                    .concat(),
                1,
            ),
            order("CLOSE ALL"),
            next(1),
            order("ROLLBACK"),
            order("FETCH c"),
        ]);
    }
}
