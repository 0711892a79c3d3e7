//! EXPLAIN ANALYZE on a real cluster: the statement is run, once, and every server that takes part says what it did.
#![allow(clippy::unwrap_used)]

use pgherd_testkit::Cluster;
use pgherd_testkit::client::{Client, show_row};

/// The lines of a plan.
fn explain(client: &mut Client, sql: &str) -> Vec<String> {
    let reply = client.run(sql).unwrap();
    assert!(reply.error().is_none(), "{sql}: {:?}", reply.error());
    let rows = &reply.answers[0].rows;
    rows.iter().map(|row| String::from_utf8(row[0].clone().unwrap()).unwrap()).collect()
}

/// Rows that each server says it gave; every line has a time, too.
fn analyzed(lines: &[String]) -> Vec<usize> {
    let lines = lines.iter().filter_map(|line| line.trim().strip_prefix("Analyzed: host="));
    lines
        .map(|line| {
            assert!(line.contains(" time="), "{line}");
            let (_, rows) = line.split_once(" rows=").unwrap();
            rows.split(' ').next().unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn analyze_runs_the_statement_once_and_tells_each_servers_part() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 3).unwrap();
    let side = cluster.side();
    side.create_database("explained", "").unwrap();
    let mut client = side.connect("explained").unwrap();
    for sql in [
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "CREATE TABLE o (k int, t_v int)",
        "CREATE TABLE r (id int PRIMARY KEY, name text)",
        "CREATE TABLE plain (x int)",
        "SELECT create_distributed_table('t', 'k', shard_count => 6)",
        "SELECT create_distributed_table('o', 'k', shard_count => 6)",
        "SELECT create_reference_table('r')",
        "INSERT INTO t SELECT g, g % 10 FROM generate_series(1, 600) g",
        "INSERT INTO o SELECT g, g FROM generate_series(1, 20) g",
    ] {
        assert!(client.run(sql).unwrap().error().is_none(), "{sql}");
    }

    // One server, and all of them.
    let route = explain(&mut client, "EXPLAIN ANALYZE SELECT * FROM t WHERE k = 7");
    assert!(route[0].starts_with("pgherd Route"), "{route:?}");
    assert_eq!(analyzed(&route), [1]);
    let scatter = explain(&mut client, "EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM t WHERE v = 3");
    assert!(scatter[0].starts_with("pgherd Scatter"), "{scatter:?}");
    let rows = analyzed(&scatter);
    assert_eq!((rows.len(), rows.iter().sum::<usize>()), (3, 60), "{scatter:?}");
    assert!(scatter.iter().any(|line| line.contains("(actual rows=")), "{scatter:?}");
    assert!(!scatter.iter().any(|line| line.contains("Serialization")), "{scatter:?}");
    // Nothing is measured where nothing was run.
    assert!(analyzed(&explain(&mut client, "EXPLAIN (ANALYZE off) SELECT * FROM t")).is_empty());
    let stage = explain(&mut client, "EXPLAIN ANALYZE SELECT * FROM t JOIN o ON t.v = o.t_v WHERE o.k < 6");
    assert!(stage[0].starts_with("pgherd Stage"), "{stage:?}");
    assert!(stage.iter().any(|line| line.contains("Part 1") && line.contains("(rows=5 bytes=")), "{stage:?}");
    assert_eq!(analyzed(&stage).iter().sum::<usize>(), 300, "{stage:?}");

    // Other formats.
    for (format, found) in [("json", "\"Analyzed\": [\"host="), ("xml", "<Analyzed>host="), ("yaml", "Analyzed:")] {
        let text = explain(&mut client, &format!("EXPLAIN (ANALYZE, FORMAT {format}) SELECT * FROM t")).join("\n");
        assert!(text.contains(found) && text.contains("rows="), "{text}");
    }
    let json = explain(&mut client, "EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM t").join("\n");
    let json = json.replace('\'', "''");
    assert_eq!(client.value(&format!("SELECT json_array_length('{json}'::json)")).unwrap(), "1");

    // Writes of every kind are done, once.
    for (sql, title, rows) in [
        ("UPDATE t SET v = v + 100 WHERE k <= 10", "pgherd Scatter", None),
        ("UPDATE t SET v = v + 100 WHERE k = 11", "pgherd Route", None),
        ("INSERT INTO t VALUES (1001, 1), (1002, 2), (1003, 3), (1004, 4)", "pgherd Insert Rows", Some(4)),
        ("INSERT INTO t SELECT k + 2000, 0 FROM o RETURNING k", "pgherd Insert Select", Some(20)),
        ("INSERT INTO r VALUES (1, 'a'), (2, 'b')", "pgherd Replicate", Some(2)),
        ("UPDATE r SET name = name || '!'", "pgherd Replicate", Some(2)),
        ("DELETE FROM t USING plain WHERE t.k = plain.x", "pgherd Federate", None),
    ] {
        let lines = explain(&mut client, &format!("EXPLAIN ANALYZE {sql}"));
        assert!(lines[0].starts_with(title), "{sql}: {lines:?}");
        let measured = analyzed(&lines);
        assert!(!measured.is_empty(), "{sql}: {lines:?}");
        if let Some(rows) = rows {
            assert_eq!(measured, [rows], "{sql}: {lines:?}");
        }
    }
    assert_eq!(client.value("SELECT count(*) FROM t WHERE v >= 100").unwrap(), "11");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "624");
    assert_eq!(client.value("SELECT string_agg(name, ',' ORDER BY id) FROM r").unwrap(), "a!,b!");
    // In a block that is rolled back they are not.
    client.run("BEGIN").unwrap();
    explain(&mut client, "EXPLAIN ANALYZE INSERT INTO t VALUES (5001, 1), (5002, 2)");
    assert_eq!(client.value("SELECT count(*) FROM t WHERE k > 5000").unwrap(), "2");
    client.run("ROLLBACK").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t WHERE k > 5000").unwrap(), "0");
    // What fails says so.
    let reply = client.simple("EXPLAIN ANALYZE INSERT INTO t VALUES (5001, 1), (1, 2)", None).unwrap();
    assert_eq!(reply.error().unwrap().sqlstate(), "23505");
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "624");
    // What a table would be made of; EXPLAIN makes it only where it is ANALYZE.
    client.run("PREPARE of_some (int) AS SELECT * FROM t WHERE v < $1").unwrap();
    for create in ["CREATE TABLE made", "CREATE TEMP TABLE made_here"] {
        assert!(!explain(&mut client, &format!("EXPLAIN {create} AS EXECUTE of_some (3)")).is_empty());
        assert!(!explain(&mut client, &format!("EXPLAIN ANALYZE {create} AS EXECUTE of_some (3)")).is_empty());
    }
    let some = "SELECT count(*) > 0, count(*) = (SELECT count(*) FROM made), count(*) = (SELECT count(*) FROM made_here) \
                FROM t WHERE v < 3";
    assert_eq!(show_row(&client.simple(some, None).unwrap().answers[0].rows[0]), "(t, t, t)");
    let unknown = client.simple("EXPLAIN CREATE TABLE more AS EXECUTE of_none (3)", None).unwrap();
    assert_eq!(unknown.error().unwrap().sqlstate(), "26000");
}
