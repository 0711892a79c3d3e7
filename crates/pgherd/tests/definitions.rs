//! Definitions that fail half way, that run at the same time, and what they do to statements that others have prepared.
//! A plain PostgreSQL says what a client may see; the catalogs of all nodes say what came of it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pgherd_testkit::client::{Client, Fields, Message, bind, describe, execute, parse, query, show_message, sync};
use pgherd_testkit::{Cluster, Plain, Side, Target};

const WAIT: Duration = Duration::from_secs(60);

struct Herd {
    cluster: &'static Cluster,
    plain: Plain,
}

/// One cluster and one plain server. Tests take turns: some of them kill servers.
fn herd() -> (&'static Herd, MutexGuard<'static, ()>) {
    static HERD: OnceLock<Herd> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let herd = HERD.get_or_init(|| {
        let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
        Herd { plain: Plain::like(&cluster.target).unwrap(), cluster }
    });
    (herd, turn)
}

impl Herd {
    fn sides(&self, database: &str) -> [Side; 2] {
        let sides = [self.plain.side("postgres"), self.cluster.side()];
        for side in &sides {
            side.create_database(database, "").unwrap();
        }
        sides
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.cluster.program);
        command.arg(verb).arg("--dir").arg(&self.cluster.directory).args(arguments);
        for name in ["PGHERD_DIR", "PGHERD_COORDINATOR", "PGHERD_LOG"] {
            command.env_remove(name);
        }
        // Files would be kept open by what is started; this waits for the command only.
        let file = std::env::temp_dir().join(format!("pgherd-definitions-{}.log", std::process::id()));
        let log = std::fs::File::create(&file).unwrap();
        let status = command.stdout(log.try_clone().unwrap()).stderr(log).status().unwrap();
        let said = std::fs::read_to_string(&file).unwrap();
        assert!(status.success() || verb == "status", "{verb}: {said}");
        said
    }

    fn kill(&self, role: &str) {
        let said = self.command("status", &[]);
        let line = said.lines().find(|l| l.starts_with(role)).unwrap();
        let pid: i32 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    /// Starts again what was killed.
    fn up(&self, database: &str) -> Client {
        self.command("up", &[]);
        let started = Instant::now();
        loop {
            match Client::connect(&self.cluster.target.with_database(database)) {
                Ok(client) => return client,
                Err(error) => assert!(started.elapsed() < WAIT, "the router does not come back: {error}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A worker itself.
    fn worker(&self, client: &mut Client, number: usize, database: &str) -> Client {
        let sql =
            format!("SELECT nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid LIMIT 1 OFFSET {number}");
        let port = client.value(&sql).unwrap().parse().unwrap();
        Client::connect(&Target { port, ..self.cluster.target.with_database(database) }).unwrap()
    }
}

/// What each worker says, one after another.
fn on_workers(client: &mut Client, sql: &str) -> Vec<String> {
    let reply = client.run(&format!("SELECT result FROM run_command_on_workers($q${sql}$q$)")).unwrap();
    let text = |v: &Option<Vec<u8>>| v.as_ref().map_or("NULL".into(), |v| String::from_utf8_lossy(v).into_owned());
    reply.answers[0].rows.iter().map(|row| text(&row[0])).collect()
}

/// How many indexes of this name, and how many that are not valid, all nodes have on the table and its partitions. With
/// what failed attempts name their own.
fn indexes(client: &mut Client, index: &str) -> Vec<String> {
    let count = "SELECT count(*) || ' there, ' || \
                     count(*) FILTER (WHERE NOT (i.indisvalid AND i.indisready)) || ' invalid' \
                 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid";
    let sql = format!("{count} WHERE c.relname ~ '^{index}(_cc(new|old)[0-9]*)?$'");
    let mut all = vec![client.value(&sql).unwrap()];
    all.extend(on_workers(client, &sql));
    all
}

fn hint(fields: &Fields) -> &str {
    fields.get('H')
}

fn fails(client: &mut Client, sql: &str) -> Fields {
    client.simple(sql, None).unwrap().error().cloned().unwrap_or_else(|| panic!("should fail: {sql}"))
}

fn states(client: &mut Client) -> String {
    client
        .value(
            "SELECT coalesce(string_agg(concat_ws(' ', kind, state, attempts), ', ' ORDER BY operation), 'none') \
             FROM pgherd_operations",
        )
        .unwrap()
}

const TABLE: &str = "CREATE TABLE t (id int, v int)";
const ROWS: &str = "INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 200) g; INSERT INTO t VALUES (77, 27)";
const DISTRIBUTE: &str = "SELECT create_distributed_table('t', 'id', shard_count => 6)";
/// 6 partitions on 3 workers, and a parent on each.
const WHOLE: [&str; 4] = ["1 there, 0 invalid", "3 there, 0 invalid", "3 there, 0 invalid", "3 there, 0 invalid"];
const NOTHING: [&str; 4] = ["0 there, 0 invalid"; 4];

#[test]
fn a_unique_index_that_one_shard_refuses_is_resumed_by_the_same_statement() {
    let (herd, _turn) = herd();
    let [plain, cluster] = herd.sides("half_done");
    let create = "CREATE UNIQUE INDEX CONCURRENTLY u ON t (id, v)";
    let refused = |side: &Side| {
        let mut client = side.connect("half_done").unwrap();
        client.run(TABLE).unwrap();
        if side.is_cluster {
            client.run(DISTRIBUTE).unwrap();
        }
        client.run(ROWS).unwrap();
        let error = fails(&mut client, create);
        (client, error)
    };
    let ((_, expected), (mut client, found)) = (refused(&plain), refused(&cluster));
    for field in ['C', 'M', 'D', 'n', 't', 's'] {
        assert_eq!(found.get(field), expected.get(field), "field {field}");
    }
    assert!(hint(&found).contains("is half done: ") && hint(&found).contains("Repeat the statement"), "{found:?}");
    assert_eq!(states(&mut client), "create index failed 1");
    assert_ne!(indexes(&mut client, "u"), WHOLE);

    // Another statement with the same index is not the one that was broken off.
    assert_eq!(fails(&mut client, "CREATE UNIQUE INDEX CONCURRENTLY u ON t (v, id)").sqlstate(), "42P07");
    // Repeated with the reason still there, it fails again.
    assert_eq!(fails(&mut client, create).sqlstate(), expected.sqlstate());
    assert_eq!(states(&mut client), "create index failed 2");
    client.run("DELETE FROM t WHERE id = 77").unwrap();
    let done_before = client.value("SELECT steps_done FROM pgherd_operations").unwrap();
    assert_ne!(done_before, "0");
    client.run(create).unwrap();
    assert_eq!(indexes(&mut client, "u"), WHOLE);
    assert_eq!(states(&mut client), "create index done 3");
    // Now that it is done, the same statement is what it is everywhere.
    assert_eq!(fails(&mut client, create).sqlstate(), "42P07");
    assert_eq!(fails(&mut client, "INSERT INTO t VALUES (78, 28)").sqlstate(), "23505");

    // What is half done can be undone in both ways.
    for drop in ["DROP INDEX u2", "DROP INDEX CONCURRENTLY u2"] {
        client.run("INSERT INTO t VALUES (12, 900), (13, 901), (14, 902), (15, 903), (16, 904)").unwrap();
        let create = "CREATE UNIQUE INDEX CONCURRENTLY u2 ON t (id) WHERE v IS NOT NULL";
        assert_eq!(fails(&mut client, create).sqlstate(), "23505");
        assert_ne!(indexes(&mut client, "u2"), NOTHING);
        client.run(drop).unwrap();
        assert_eq!(indexes(&mut client, "u2"), NOTHING, "{drop}");
        client.run("DELETE FROM t WHERE v >= 900").unwrap();
        // A new statement under the same name is not the old one resumed.
        client.run("CREATE INDEX CONCURRENTLY u2 ON t (v)").unwrap();
        assert_eq!(indexes(&mut client, "u2"), WHOLE);
        client.run("DROP INDEX u2").unwrap();
    }
    assert!(!states(&mut client).contains("failed"), "{}", states(&mut client));
    assert_eq!(fails(&mut client, "BEGIN; CREATE INDEX CONCURRENTLY x ON t (v)").sqlstate(), "25001");
}

#[test]
fn a_reference_table_s_index_is_resumed_on_the_coordinator_too() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("half_done_reference");
    let mut client = cluster.connect("half_done_reference").unwrap();
    client.run("CREATE TABLE t (id int, v int)").unwrap();
    client.run("SELECT create_reference_table('t')").unwrap();
    client.run("INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)").unwrap();
    // Without a name, so that only what is written down tells which index it was.
    let create = "CREATE UNIQUE INDEX CONCURRENTLY ON t (id, v)";
    let error = fails(&mut client, create);
    assert_eq!(error.sqlstate(), "23505");
    assert!(hint(&error).contains("t_id_v_idx"), "{error:?}");
    client.run("DELETE FROM t WHERE id = 1").unwrap();
    client.run(create).unwrap();
    assert_eq!(indexes(&mut client, "t_id_v_idx"), ["1 there, 0 invalid"; 4]);
    assert_eq!(indexes(&mut client, "t_id_v_idx1"), NOTHING);
    client.run("DROP INDEX CONCURRENTLY t_id_v_idx").unwrap();
    assert_eq!(indexes(&mut client, "t_id_v_idx"), NOTHING);
    // Done, so the same statement makes another.
    client.run("CREATE INDEX CONCURRENTLY ON t (v)").unwrap();
    client.run("CREATE INDEX CONCURRENTLY ON t (v)").unwrap();
    assert_eq!(indexes(&mut client, "t_v_idx1"), ["1 there, 0 invalid"; 4]);
}

#[test]
fn a_worker_that_dies_leaves_operations_that_can_be_repeated() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("dead_worker");
    let mut client = cluster.connect("dead_worker").unwrap();
    client.run(TABLE).unwrap();
    client.run(DISTRIBUTE).unwrap();
    client.run(ROWS).unwrap();
    client.run("CREATE INDEX there ON t (v)").unwrap();
    herd.kill("worker-2");
    let statements =
        ["CREATE INDEX CONCURRENTLY made ON t (v)", "VACUUM t", "REINDEX INDEX CONCURRENTLY there", "REINDEX TABLE t"];
    for sql in statements {
        let error = fails(&mut client, sql);
        assert!(error.sqlstate().starts_with("08") || error.sqlstate().starts_with("57"), "{sql}: {error:?}");
        assert!(hint(&error).contains("Repeat the statement"), "{sql}: {error:?}");
    }
    assert_eq!(states(&mut client), "create index failed 1, vacuum failed 1, reindex failed 1, reindex failed 1");
    let mut client = herd.up("dead_worker");
    for sql in statements {
        client.run(sql).unwrap();
    }
    assert_eq!(states(&mut client), "create index done 2, vacuum done 2, reindex done 2, reindex done 2");
    assert_eq!(indexes(&mut client, "made"), WHOLE);
    assert_eq!(indexes(&mut client, "there"), WHOLE);

    // Dropped on the first worker only: the coordinator still has it, so the statement can be repeated.
    herd.kill("worker-2");
    let drop = "DROP INDEX CONCURRENTLY made";
    let error = fails(&mut client, drop);
    assert!(hint(&error).contains("Repeat the statement"), "{error:?}");
    let mut client = herd.up("dead_worker");
    assert_ne!(indexes(&mut client, "made"), NOTHING);
    client.run(drop).unwrap();
    assert_eq!(indexes(&mut client, "made"), NOTHING);
}

#[test]
fn a_router_that_is_killed_leaves_nothing_that_the_same_statement_does_not_finish() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("dead_router");
    let mut client = cluster.connect("dead_router").unwrap();
    client.run(TABLE).unwrap();
    client.run(DISTRIBUTE).unwrap();
    client.run(ROWS).unwrap();
    for (sql, drop) in
        [("CREATE INDEX CONCURRENTLY k ON t (v)", None), ("CREATE INDEX CONCURRENTLY ON t (v)", Some("t_v_idx"))]
    {
        let name = drop.unwrap_or("k");
        // A writer on the second worker holds the build up.
        let mut writer = herd.worker(&mut client, 1, "dead_router");
        writer.run("BEGIN; INSERT INTO t SELECT * FROM t LIMIT 1").unwrap();
        let mut builder = cluster.connect("dead_router").unwrap();
        builder.send(&query(sql)).unwrap();
        let started = Instant::now();
        let running = "SELECT count(*) FROM pgherd_operation_steps WHERE state = 'running' AND groupid = \
                       (SELECT groupid FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid LIMIT 1 OFFSET 1)";
        while client.value(running).unwrap() != "1" {
            assert!(started.elapsed() < WAIT, "the build does not come to the second worker");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(200));
        herd.kill("router");
        client = herd.up("dead_router");
        assert_eq!(
            client.value("SELECT state FROM pgherd_operations ORDER BY operation DESC LIMIT 1").unwrap(),
            "interrupted"
        );
        assert_ne!(indexes(&mut client, name), WHOLE);
        writer.run("ROLLBACK").unwrap();
        match drop {
            None => {
                client.run(sql).unwrap();
                assert_eq!(indexes(&mut client, name), WHOLE);
                assert_eq!(states(&mut client), "create index done 2");
            }
            Some(name) => {
                client.run(&format!("DROP INDEX {name}")).unwrap();
                assert_eq!(indexes(&mut client, name), NOTHING);
            }
        }
    }
}

/// What a procedure has prepared when its router dies ends as its transaction on the coordinator has.
#[test]
fn a_router_that_is_killed_in_a_procedure_that_commits_leaves_whole_transactions() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("dead_procedure");
    let mut client = cluster.connect("dead_procedure").unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE here (n int)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k')").unwrap();
    client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 40) g").unwrap();
    let body =
        "BEGIN FOR i IN 1..100000 LOOP UPDATE t SET v = v + 1; INSERT INTO here VALUES (i); COMMIT; END LOOP; END";
    client.run(&format!("CREATE PROCEDURE goes_on() LANGUAGE plpgsql AS $$ {body} $$")).unwrap();
    for round in 0..3 {
        let mut caller = cluster.connect("dead_procedure").unwrap();
        caller.send(&query("CALL goes_on()")).unwrap();
        std::thread::sleep(Duration::from_millis(400 + 53 * round));
        herd.kill("router");
        client = herd.up("dead_procedure");
        let started = Instant::now();
        let prepared = "SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()";
        while on_workers(&mut client, prepared).iter().any(|count| count != "0") {
            assert!(started.elapsed() < WAIT, "something stays prepared");
            std::thread::sleep(Duration::from_millis(50));
        }
        let sums = client.value("SELECT min(v) || ' ' || max(v) || ' ' || (SELECT count(*) FROM here) FROM t").unwrap();
        let same: Vec<&str> = sums.split(' ').collect();
        assert!(same.iter().all(|sum| *sum == same[0]), "not one transaction: {sums}");
    }
}

/// A row of pseudo-random numbers: the same seed gives the same statements.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// One random definition of one of `tables` tables.
fn definition(random: &mut Random, tables: u64, is_cluster: bool) -> String {
    let table = format!("r{}", random.below(tables));
    let n = random.below(3);
    match random.below(14) {
        0 | 1 => format!("ALTER TABLE {table} ADD COLUMN c{n} int"),
        2 => format!("ALTER TABLE {table} DROP COLUMN c{n}"),
        3 => format!("ALTER TABLE {table} DROP COLUMN IF EXISTS c{n} CASCADE"),
        4 | 5 => format!("CREATE INDEX i{n}_{table} ON {table} (v)"),
        6 => format!("DROP INDEX i{n}_{table}"),
        7 => format!("CREATE INDEX CONCURRENTLY i{n}_{table} ON {table} (v)"),
        8 => format!("ALTER TABLE {table} ALTER COLUMN v SET DEFAULT {n}"),
        9 => format!("ALTER TABLE {table} ADD CONSTRAINT k{n} CHECK (v > -{n})"),
        10 => format!("ALTER TABLE {table} DROP CONSTRAINT k{n}"),
        11 => format!("ALTER TABLE {table} RENAME COLUMN c{n} TO c{}", random.below(3)),
        12 => {
            let other = format!("r{}", random.below(tables));
            format!("BEGIN; ALTER TABLE {table} ADD COLUMN c{n} int; CREATE INDEX i{n}_{other} ON {other} (id); COMMIT")
        }
        _ => format!("BEGIN; DROP TABLE {table}; {}; COMMIT", make(&table, is_cluster)),
    }
}

fn make(table: &str, is_cluster: bool) -> String {
    let distribute = format!("; SELECT create_distributed_table('{table}', 'id', shard_count => 4)");
    let tail = if is_cluster { distribute } else { String::new() };
    format!("CREATE TABLE {table} (id int PRIMARY KEY, v int){tail}")
}

/// A table as one line: columns with types and defaults, constraints, indexes.
const DESCRIPTION: &str = "(SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || \
        coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), ''), ', ' ORDER BY a.attname) \
        FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
        WHERE a.attrelid = x.oid AND a.attnum > 0 AND NOT a.attisdropped) || ' | ' || \
    coalesce((SELECT string_agg(k.conname || ' ' || pg_get_constraintdef(k.oid), ', ' ORDER BY k.conname) \
        FROM pg_constraint k WHERE k.conrelid = x.oid AND k.contype <> 'n'), '') || ' | ' || \
    coalesce((SELECT string_agg(c.relname || ' ' || i.indisvalid, ', ' ORDER BY c.relname) \
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = x.oid), '')";

#[test]
fn definitions_at_the_same_time_end_as_on_one_server() {
    const SESSIONS: u64 = 6;
    const STATEMENTS: u64 = 25;
    let seed = std::env::var("PGHERD_TEST_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
    let (herd, _turn) = herd();
    let sides = herd.sides("crowd");
    for side in &sides {
        // There are many, and each is waited for.
        side.connect("crowd").unwrap().run("ALTER DATABASE crowd SET deadlock_timeout = '100ms'").unwrap();
    }
    for tables in [1, 3] {
        let mut seen: Vec<BTreeSet<String>> = Vec::new();
        for side in &sides {
            let mut client = side.connect("crowd").unwrap();
            for table in 0..tables {
                client.run(&format!("DROP TABLE IF EXISTS r{table}")).unwrap();
                client.run(&make(&format!("r{table}"), side.is_cluster)).unwrap();
            }
            // The plain server is fast, and must have said everything that can be said.
            let rounds = if side.is_cluster { 1 } else { 4 };
            let threads: Vec<_> = (0..SESSIONS)
                .map(|session| {
                    let (target, is_cluster) = (side.target.with_database("crowd"), side.is_cluster);
                    std::thread::spawn(move || {
                        let mut random = Random(seed + session * 1000 + tables);
                        let mut client = Client::connect(&target).unwrap();
                        let mut codes = Vec::new();
                        for _ in 0..STATEMENTS * rounds {
                            let sql = definition(&mut random, tables, is_cluster);
                            let reply = client.simple(&sql, None).unwrap();
                            if let Some(error) = reply.error() {
                                codes.push((error.sqlstate().to_owned(), format!("{}: {sql}", error.message())));
                            }
                            if reply.status != b'I' {
                                client.run("ROLLBACK").unwrap();
                            }
                        }
                        codes
                    })
                })
                .collect();
            let mut codes: Vec<(String, String)> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
            if let Some(expected) = seen.first() {
                codes.retain(|(code, _)| !expected.contains(code) && code != "40P01");
                assert!(codes.is_empty(), "seed {seed}: PostgreSQL does not say {codes:#?}, but {expected:?}");
            } else {
                seen.push(codes.into_iter().map(|(code, _)| code).collect());
            }
        }
        let mut client = sides[1].connect("crowd").unwrap();
        let under_way = "SELECT count(*) FROM pgherd_operations WHERE state NOT IN ('done', 'failed')";
        assert_eq!(client.value(under_way).unwrap(), "0", "seed {seed}");
        // As on one server, a deadlock may leave an index half made; its user repeats the statement.
        let failed = "SELECT statement FROM pgherd_operations WHERE state = 'failed'";
        for row in &client.run(failed).unwrap().answers[0].rows {
            // Another session may have made an index of that name since.
            let repeated = client.simple(&String::from_utf8_lossy(row[0].as_ref().unwrap()), None).unwrap();
            let code = repeated.error().map(|error| error.sqlstate().to_owned());
            assert!(matches!(code.as_deref(), None | Some("42P07")), "seed {seed}: {:?}", repeated.error());
        }
        assert_eq!(client.value(&format!("SELECT count(*) FROM ({failed}) f")).unwrap(), "0", "seed {seed}");
        for table in 0..tables {
            let here = client
                .value(&format!("SELECT {DESCRIPTION} FROM (SELECT to_regclass('public.r{table}')::oid) x(oid)"))
                .unwrap();
            // The coordinator's own trigger is not described; parents and partitions must all be the same.
            let there = on_workers(
                &mut client,
                &format!(
                    "SELECT string_agg(DISTINCT {DESCRIPTION}, ' AND ') \
                     FROM (SELECT relid::oid FROM pg_partition_tree('public.r{table}')) x(oid)"
                ),
            );
            assert_eq!(there, vec![here; 3], "seed {seed}: table r{table}");
        }
    }
}

#[test]
fn an_index_is_dropped_concurrently_everywhere_though_its_table_is_distributed_meanwhile() {
    let (herd, _turn) = herd();
    let side = herd.cluster.side();
    side.create_database("late", "").unwrap();
    let (mut one, mut other) = (side.connect("late").unwrap(), side.connect("late").unwrap());
    one.run("CREATE TABLE late (id int PRIMARY KEY, v int); CREATE INDEX late_v ON late (v)").unwrap();
    // Nobody has it: as PostgreSQL says it, with the word or without.
    let missing = other.simple("DROP INDEX CONCURRENTLY nowhere", None).unwrap();
    assert_eq!(missing.error().map(|e| e.sqlstate().to_owned()).as_deref(), Some("42704"));
    other.run("DROP INDEX CONCURRENTLY IF EXISTS nowhere").unwrap();
    one.run("BEGIN; SELECT create_distributed_table('late', 'id')").unwrap();
    let dropping = std::thread::spawn(move || other.run("DROP INDEX CONCURRENTLY late_v").map(drop));
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'late'::regclass";
    let mut third = side.connect("late").unwrap();
    let started = Instant::now();
    while third.value(waits).unwrap() == "0" {
        assert!(started.elapsed() < WAIT, "nobody waits for the table");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(indexes(&mut one, "late_v")[0], "1 there, 0 invalid");
    one.run("COMMIT").unwrap();
    dropping.join().unwrap().unwrap();
    assert_eq!(indexes(&mut one, "late_v"), vec!["0 there, 0 invalid"; 4]);
}

/// Two clients in turn: one prepares and runs statements, the other changes the tables, the one runs them again.
/// What the first one is told, each message with the statement it is about.
fn in_turn(side: &Side, setup: &str, statements: &[&str], definition: &str) -> Vec<(usize, String)> {
    let mut one = side.connect("prepared_ddl").unwrap();
    let mut other = side.connect("prepared_ddl").unwrap();
    other.run("DROP TABLE IF EXISTS d, l, r").unwrap();
    other.run(setup).unwrap();
    if side.is_cluster {
        other.run("SELECT create_distributed_table('d', 'k', shard_count => 4)").unwrap();
        other.run("SELECT create_reference_table('r')").unwrap();
    }
    other.run("INSERT INTO d SELECT g, g * 10, 'x' || g FROM generate_series(1, 5) g").unwrap();
    let parameters = vec![Some(b"3".to_vec())];
    let run = |n: usize| {
        let name = format!("s{n}");
        [bind("", &name, &[], &parameters, &[]), describe(b'P', ""), execute("", 0), sync()].concat()
    };
    let prepare = |name: String, text: &str| [parse(&name, text, &[]), describe(b'S', &name), sync()].concat();
    let mut shown = Vec::new();
    let mut say = |client: &mut Client, n: usize, bytes: &[u8]| {
        client.send(bytes).unwrap();
        let messages: Vec<Message> = client.receive_until_ready(1).unwrap();
        let mut lines: Vec<String> = messages.iter().map(show_message).collect();
        // Workers answer in any order.
        let rows = |l: &String| l.starts_with("DataRow");
        if let (Some(first), Some(last)) = (lines.iter().position(rows), lines.iter().rposition(rows)) {
            lines[first..=last].sort();
        }
        shown.extend(lines.into_iter().map(|line| (n, line)));
    };
    for (n, text) in statements.iter().enumerate() {
        say(&mut one, n, &prepare(format!("s{n}"), text));
        say(&mut one, n, &run(n));
        say(&mut one, n, &run(n));
    }
    other.run(definition).unwrap();
    for (n, text) in statements.iter().enumerate() {
        say(&mut one, n, &run(n));
        say(&mut one, n, &run(n));
        // The same text prepared anew is what it means now.
        say(&mut one, n, &prepare(format!("n{n}"), text));
        say(&mut one, n, &query("BEGIN"));
        say(&mut one, n, &run(n));
        say(&mut one, n, &query("ROLLBACK"));
    }
    shown
}

#[test]
fn prepared_statements_meet_the_definitions_of_others() {
    let (herd, _turn) = herd();
    let sides = herd.sides("prepared_ddl");
    let setup = "CREATE TABLE d (k int PRIMARY KEY, v int, t text); CREATE TABLE l (k int, w int); \
                 CREATE TABLE r (k int, x int); INSERT INTO l VALUES (3, 33); INSERT INTO r VALUES (3, 333)";
    let statements = [
        // Route.
        "SELECT * FROM d WHERE k = $1",
        "SELECT v FROM d WHERE k = $1",
        "SELECT * FROM d JOIN r USING (k) WHERE d.k = $1",
        // Concatenate, limited and not.
        "SELECT * FROM d WHERE v > $1",
        "SELECT t FROM d WHERE v >= $1",
        // Merge.
        "SELECT * FROM d WHERE k > $1 ORDER BY k",
        "SELECT v, count(*) FROM d WHERE k > $1 GROUP BY v ORDER BY v",
        "SELECT count(*), max(v) FROM d WHERE k <> $1",
        // Federate.
        "SELECT * FROM d JOIN l USING (k) WHERE l.k = $1",
        "SELECT d.*, row_number() OVER (ORDER BY v) FROM d WHERE k >= $1 ORDER BY k",
        // Local, and a reference table.
        "SELECT * FROM l WHERE k = $1",
        "SELECT * FROM r WHERE k = $1",
        // Writes.
        "INSERT INTO d SELECT $1::int + 1000, 1, 'n' ON CONFLICT DO NOTHING RETURNING *",
        "UPDATE d SET v = v WHERE k = $1 RETURNING *",
        "UPDATE d SET v = v + 1 WHERE k > $1",
        "DELETE FROM d WHERE k = $1 RETURNING t",
    ];
    let definitions = [
        "ALTER TABLE d ADD COLUMN n int DEFAULT 4",
        "ALTER TABLE d DROP COLUMN t",
        "ALTER TABLE d ALTER COLUMN v TYPE bigint",
        "ALTER TABLE d RENAME COLUMN v TO w2",
        "ALTER TABLE d ALTER COLUMN t TYPE varchar(9)",
        "CREATE INDEX ON d (v)",
        "ALTER TABLE l ADD COLUMN z int; ALTER TABLE r DROP COLUMN x",
        "ALTER TABLE d RENAME TO d2; ALTER TABLE d2 RENAME TO d",
        "DROP TABLE d",
    ];
    let mut wrong = Vec::new();
    for definition in definitions {
        let expected = in_turn(&sides[0], setup, &statements, definition);
        let found = in_turn(&sides[1], setup, &statements, definition);
        for (n, prepared) in statements.iter().enumerate() {
            let of = |all: &[(usize, String)]| -> Vec<String> {
                all.iter().filter(|(about, _)| *about == n).map(|(_, line)| line.clone()).collect()
            };
            let (expected, found) = (of(&expected), of(&found));
            if expected != found {
                let at = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
                let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
                let (e, f) = (line(&expected), line(&found));
                wrong.push(format!("{prepared} after {definition}\n  message {at}\n  postgres: {e}\n  cluster:  {f}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// On a worker a row's table is a partition: the constraint would accept what PostgreSQL refuses.
#[test]
fn a_check_that_names_the_rows_table_keeps_it_local() {
    let (herd, _turn) = herd();
    let database = "definitions_tableoid";
    let [_, side] = herd.sides(database);
    let mut client = side.connect(database).unwrap();
    client.run("CREATE TABLE t (k int, CHECK (k > 0 OR tableoid::regclass::text <> 't'))").unwrap();
    let refused = client.run("SELECT create_distributed_table('t', 'k')").err().unwrap().to_string();
    assert!(refused.contains("0A000") && refused.contains("names tableoid"), "{refused}");
    client.run("CREATE TABLE d (k int)").unwrap();
    client.run("SELECT create_distributed_table('d', 'k')").unwrap();
    let refused = client.run("ALTER TABLE d ADD CHECK (tableoid > 0)").err().unwrap().to_string();
    assert!(refused.contains("0A000") && refused.contains("names tableoid"), "{refused}");
}

/// A subtransaction of a body on the coordinator is no end of what the transaction has defined.
#[test]
fn a_body_that_goes_back_still_knows_the_transactions_tables() {
    let (herd, _turn) = herd();
    let database = "definitions_body";
    let [_, side] = herd.sides(database);
    let mut client = side.connect(database).unwrap();
    client.run("BEGIN").unwrap();
    client.run("CREATE TABLE t (k int)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k')").unwrap();
    client
        .run(
            "DO $$ BEGIN FOR i IN 1..3 LOOP BEGIN INSERT INTO t VALUES (i); \
             IF EXISTS (SELECT FROM t WHERE k > 0) THEN RAISE EXCEPTION 'back'; END IF; \
             EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; INSERT INTO t VALUES (7); END $$",
        )
        .unwrap();
    assert_eq!(client.value("SELECT string_agg(k::text, ',') FROM t").unwrap(), "7");
    client.run("COMMIT").unwrap();
}

/// A MERGE whose source is sent to the workers reads it first: what others define meanwhile does not concern it.
#[test]
fn definitions_of_others_do_not_stop_a_merge_between_its_parts() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("merge_meanwhile");
    let mut client = cluster.connect("merge_meanwhile").unwrap();
    client.run("CREATE TABLE target (k int, n int); CREATE TABLE source (id int, k int)").unwrap();
    for (table, key) in [("target", "k"), ("source", "id")] {
        client.run(&format!("SELECT create_distributed_table('{table}', '{key}', colocate_with => 'none')")).unwrap();
    }
    client.run("INSERT INTO target SELECT g, 0 FROM generate_series(1, 100) g").unwrap();
    client.run("INSERT INTO source SELECT -g, g FROM generate_series(1, 100) g").unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = cluster.connect("merge_meanwhile").unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                other.run("CREATE TABLE beside (k int)").unwrap();
                other.run("SELECT create_distributed_table('beside', 'k')").unwrap();
                other.run("DROP TABLE beside").unwrap();
            }
        });
        let merge = "MERGE INTO target t USING source s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = t.n + 1";
        let mut failed = Vec::new();
        for _ in 0..60 {
            failed.extend(client.simple(merge, None).unwrap().error().cloned());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(failed.is_empty(), "{} of 60: {:?}", failed.len(), failed[0]);
    });
    assert_eq!(client.value("SELECT count(*) || ' ' || min(n) || ' ' || max(n) FROM target").unwrap(), "100 60 60");
}

/// What a table has besides [`DESCRIPTION`] and partitions do not: who owns it, rights, policies.
const RIGHTS: &str = "(SELECT concat_ws(' ', pg_get_userbyid(c.relowner), c.relacl, \
        c.relrowsecurity, (SELECT string_agg(p.polname || pg_get_expr(p.polqual, p.polrelid), ', ' ORDER BY p.polname) \
            FROM pg_policy p WHERE p.polrelid = c.oid)) FROM pg_class c WHERE c.oid = x.oid)";
const ROLES: &str = "SELECT string_agg(concat_ws(' ', r.rolname, r.rolinherit, r.rolcanlogin, r.rolvaliduntil, \
        (SELECT sha256(a.rolpassword::bytea) FROM pg_authid a WHERE a.oid = r.oid), r.rolconfig, \
        (SELECT string_agg(g.rolname || m.admin_option, ',' ORDER BY g.rolname) FROM pg_auth_members m \
            JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid), \
        has_database_privilege(r.oid, current_database(), 'CREATE')), '; ' ORDER BY r.rolname) \
    FROM pg_roles r WHERE r.rolname LIKE 'herd\\_in\\_%'";

#[test]
fn what_functions_define_is_the_same_on_every_node() {
    let (herd, _turn) = herd();
    let [_, cluster] = herd.sides("inside_nodes");
    let mut client = cluster.connect("inside_nodes").unwrap();
    for setup in [
        TABLE,
        DISTRIBUTE,
        ROWS,
        "DELETE FROM t WHERE id = 77",
        "CREATE ROLE herd_in_owner",
        "GRANT CREATE ON SCHEMA public TO herd_in_owner",
        "ALTER TABLE t OWNER TO herd_in_owner",
        "CREATE FUNCTION lent(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN EXECUTE $1; END'",
        "ALTER FUNCTION lent(text) OWNER TO herd_in_owner",
    ] {
        client.run(setup).unwrap();
    }
    let bodies = [
        "ALTER TABLE t ADD COLUMN a text DEFAULT CURRENT_USER, ADD COLUMN b int DEFAULT 3",
        "CREATE UNIQUE INDEX u ON t (id, v)",
        "COMMENT ON TABLE t IS 'said'; ALTER TABLE t ADD CHECK (v >= 0); CREATE INDEX ON t (v)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id < 50); GRANT SELECT ON t TO PUBLIC",
        "ALTER POLICY p ON t RENAME TO q; ALTER TABLE t RENAME COLUMN a TO aa; ALTER INDEX u RENAME TO uu",
        "ALTER TABLE t ALTER COLUMN v TYPE bigint; ALTER TABLE t ALTER COLUMN aa SET DEFAULT 'x'",
        "CREATE STATISTICS s ON id, v FROM t; DROP STATISTICS s; DROP INDEX uu",
        "DROP POLICY q ON t; ALTER TABLE t DISABLE ROW LEVEL SECURITY; REVOKE SELECT ON t FROM PUBLIC",
    ];
    let roles = [
        "CREATE ROLE herd_in_a NOINHERIT LOGIN PASSWORD 'secret'; CREATE ROLE herd_in_b VALID UNTIL '2030-01-01'",
        "GRANT herd_in_a TO herd_in_b WITH ADMIN OPTION; ALTER ROLE herd_in_b SET search_path = a, \"B c\"",
        "ALTER ROLE herd_in_a PASSWORD 'other' CONNECTION LIMIT 4; ALTER ROLE herd_in_b RENAME TO herd_in_c",
        "REVOKE ADMIN OPTION FOR herd_in_a FROM herd_in_c; ALTER ROLE herd_in_c RESET ALL; \
         GRANT CREATE ON DATABASE inside_nodes TO herd_in_c",
        "REVOKE CREATE ON DATABASE inside_nodes FROM herd_in_c; DROP ROLE herd_in_c; ALTER ROLE herd_in_a PASSWORD NULL",
        "DROP ROLE herd_in_a",
    ];
    let mut seen = BTreeSet::new();
    for body in bodies.into_iter().chain(roles) {
        let is_of_roles = roles.contains(&body);
        let run = match is_of_roles {
            true => format!("DO $$ BEGIN EXECUTE $q${body}$q$; END $$"),
            false => format!("SELECT lent($q${body}$q$)"),
        };
        // Taken back, it leaves nothing.
        for back in [
            format!("BEGIN; SAVEPOINT a; {run}; ROLLBACK TO a; COMMIT"),
            format!(
                "DO $do$ BEGIN EXECUTE {}; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $do$",
                literal(&run)
            ),
            run,
        ] {
            client.run(&back).unwrap_or_else(|error| panic!("{back}: {error}"));
            let table = format!("SELECT {DESCRIPTION} || {RIGHTS} FROM (SELECT 'public.t'::regclass::oid) x(oid)");
            let here = client.value(&table).unwrap();
            assert_eq!(on_workers(&mut client, &table), vec![here.clone(); 3], "{back}");
            let parts = format!(
                "SELECT string_agg(DISTINCT {DESCRIPTION}, ' AND ') \
                 FROM (SELECT relid::oid FROM pg_partition_tree('public.t')) x(oid)"
            );
            let whole = format!("SELECT {DESCRIPTION} FROM (SELECT 'public.t'::regclass::oid) x(oid)");
            let whole = client.value(&whole).unwrap();
            assert_eq!(on_workers(&mut client, &parts), vec![whole; 3], "{back}");
            let named = client.value(ROLES).unwrap();
            assert_eq!(on_workers(&mut client, ROLES), vec![named.clone(); 3], "{back}");
            seen.insert(format!("{here} {named}"));
        }
    }
    assert!(seen.len() >= bodies.len() + roles.len() - 1, "{seen:#?}");
    let left = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'lent\\_%'";
    assert_eq!(on_workers(&mut client, left), ["0"; 3]);
    client.run("DROP FUNCTION lent; DROP OWNED BY herd_in_owner; DROP ROLE herd_in_owner").unwrap();
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Two sessions that define in transactions with a snapshot, and another beside them: what each is told.
fn isolated(side: &Side, level: &str, ends: [&str; 2]) -> Vec<String> {
    let mut clients: Vec<Client> = (0..3).map(|_| side.connect("isolated").unwrap()).collect();
    for table in ["da", "db"] {
        let sql = format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (k int PRIMARY KEY, v int)");
        clients[0].run(&sql).unwrap();
        if side.is_cluster {
            clients[0].run(&format!("SELECT create_distributed_table('{table}', 'k', shard_count => 4)")).unwrap();
        }
    }
    clients[0].run("DROP TABLE IF EXISTS la, lb, lc, ld; DROP FUNCTION IF EXISTS fa(), fb()").unwrap();
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    let steps = [
        (0, begin.as_str()),
        (0, "CREATE TABLE la (k int)"),
        (1, begin.as_str()),
        (1, "CREATE TABLE lb (k int)"),
        (2, "CREATE TABLE lc (k int)"),
        (0, "CREATE FUNCTION fa() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM la'"),
        (1, "CREATE FUNCTION fb() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM lb'"),
        (0, "ALTER TABLE da ADD COLUMN w int DEFAULT 1"),
        (0, "INSERT INTO da (k, v, w) SELECT g, g, 2 FROM generate_series(1, 9) g"),
        (1, "INSERT INTO db (k, v) SELECT g, g FROM generate_series(1, 9) g"),
        (0, "SELECT fa(), count(*), sum(w) FROM da"),
        (1, "SELECT fb(), count(*), sum(v) FROM db"),
        (0, ends[0]),
        (2, "CREATE TABLE ld (k int)"),
        (1, ends[1]),
    ];
    let looks = [
        "SELECT count(*), sum(w) FROM da",
        "SELECT count(*), sum(v) FROM db",
        "SELECT count(*) FROM lc, ld",
        "SELECT fa(), fb()",
        "SELECT lastval()",
    ];
    let looks = (0..3).flat_map(|client| looks.map(|sql| (client, sql)));
    let mut told = Vec::new();
    for (client, sql) in steps.into_iter().chain(looks) {
        let reply = clients[client].simple(sql, None).unwrap();
        let said = match reply.error() {
            Some(error) => error.sqlstate().to_owned(),
            None => format!("{:?}", reply.answers.iter().map(|a| &a.rows).collect::<Vec<_>>()),
        };
        told.push(format!("{client}: {sql}: {said}"));
    }
    told
}

/// Noting what they change is nothing that one of them could have read of the other.
#[test]
fn definitions_in_transactions_with_a_snapshot_fail_no_more_than_on_one_server() {
    let (herd, _turn) = herd();
    let sides = herd.sides("isolated");
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (one, other) in [("COMMIT", "COMMIT"), ("ROLLBACK", "COMMIT"), ("COMMIT", "ROLLBACK")] {
            let expected = isolated(&sides[0], level, [one, other]);
            assert_eq!(isolated(&sides[1], level, [one, other]), expected, "{level}, {one}, {other}");
        }
    }
}

/// PostgreSQL's definitions see what there is now, and our metadata is what the snapshot shows.
#[test]
fn a_snapshot_from_before_a_table_was_distributed_defines_nothing_by_it() {
    let (herd, _turn) = herd();
    let sides = herd.sides("outdated");
    let [mut one, mut other] = [0, 1].map(|_| sides[1].connect("outdated").unwrap());
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        for (table, definition) in [
            ("za", "CREATE TABLE before_it (k int); ALTER TABLE za ADD COLUMN w int DEFAULT 7"),
            ("zb", "ALTER TABLE zb RENAME TO zb2"),
            ("zc", "CREATE INDEX ON zc (v)"),
            ("zd", "DROP TABLE zbase"),
        ] {
            other.run(&format!("DROP TABLE IF EXISTS zbase, {table}; CREATE TABLE zbase (k int PRIMARY KEY)")).unwrap();
            other.run(&format!("CREATE TABLE {table} (k int PRIMARY KEY, v int)")).unwrap();
            other.run("SELECT create_distributed_table('zbase', 'k', colocate_with => 'none')").unwrap();
            one.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1")).unwrap();
            let distribute = format!("SELECT create_distributed_table('{table}', 'k', colocate_with => 'zbase')");
            other.run(&distribute).unwrap();
            let steps = definition.split("; ").chain(["COMMIT"]);
            let codes: Vec<String> =
                steps.filter_map(|sql| Some(one.simple(sql, None).unwrap().error()?.sqlstate().to_owned())).collect();
            assert_eq!(codes.first().map(String::as_str), Some("40001"), "{level}: {definition}: {codes:?}");
            let _ = one.simple("ROLLBACK", None);
            other.run(&format!("INSERT INTO {table} VALUES (1, 2), (2, 3)")).unwrap();
            let found = other.value(&format!("SELECT string_agg(t::text, ',' ORDER BY k) FROM {table} t"));
            assert_eq!(found.unwrap(), "(1,2),(2,3)", "{level}: {definition}");
            other.run("CREATE TABLE zbase2 (k int PRIMARY KEY)").unwrap();
            let beside = format!("SELECT create_distributed_table('zbase2', 'k', colocate_with => '{table}')");
            other.run(&beside).unwrap();
            other.run("DROP TABLE zbase2").unwrap();
        }
    }
}

/// Somebody who distributes a table holds the epoch until he is done.
#[test]
fn a_commit_waits_for_nobody_who_defines() {
    let (herd, _turn) = herd();
    let sides = herd.sides("unmoved");
    let [mut one, mut other, mut third] = [0, 1, 2].map(|_| sides[1].connect("unmoved").unwrap());
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        one.run(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1")).unwrap();
        other.run("CREATE TABLE l1 (k int)").unwrap();
        third.run("BEGIN; CREATE TABLE vv (k int); SELECT create_distributed_table('vv', 'k')").unwrap();
        other.run("SET lock_timeout = '20s'; CREATE TABLE l3 (k int); CREATE FUNCTION l3() RETURNS int LANGUAGE sql AS 'SELECT 3'").unwrap();
        other
            .run("BEGIN; ALTER TABLE l3 ADD w int; CREATE INDEX ON l3 (w); COMMIT; DROP TABLE l3; DROP FUNCTION l3()")
            .unwrap();
        one.run("SET LOCAL lock_timeout = '20s'; CREATE TABLE l2 (k int)").unwrap();
        let committed = one.simple("COMMIT", None).unwrap();
        third.run("ROLLBACK").unwrap();
        let failed = committed.error().map(|e| e.sqlstate().to_owned());
        assert_eq!(failed, None, "{level}");
        assert_eq!(other.value("SELECT count(*) FROM l2").unwrap(), "0");
        other.run("DROP TABLE l1, l2").unwrap();
    }
}

#[test]
fn local_and_distributed_tables_are_maintained_in_one_statement() {
    let (herd, _turn) = herd();
    let told = herd.sides("maintained").map(|side| {
        let mut client = side.connect("maintained").unwrap();
        client.run("CREATE TABLE d (k int PRIMARY KEY, v int); CREATE TABLE l (k int, v int)").unwrap();
        client.run("CREATE TABLE r (k int PRIMARY KEY)").unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('d', 'k', shard_count => 4)").unwrap();
            client.run("SELECT create_reference_table('r')").unwrap();
        }
        client.run("INSERT INTO d SELECT g, g FROM generate_series(1, 50) g; INSERT INTO l SELECT * FROM d").unwrap();
        [
            "VACUUM d, l, r",
            "VACUUM (ANALYZE) l (v, k), d",
            "SELECT reltuples FROM pg_class WHERE relname = 'l'",
            "VACUUM FULL VERBOSE l, d",
            "ANALYZE d (v), l (v)",
            "SELECT attname, n_distinct FROM pg_stats WHERE tablename = 'l' ORDER BY 1",
            "VACUUM d, nowhere",
            "ANALYZE l, d (nothing)",
            "BEGIN",
            "INSERT INTO l VALUES (1, 2)",
            "ANALYZE l, d",
            "VACUUM d, l",
            "ROLLBACK",
            "SELECT count(*) FROM l",
        ]
        .map(|sql| {
            let reply = client.simple(sql, None).unwrap();
            let error = reply.error().map(|e| format!("{} {}", e.sqlstate(), e.message()));
            let rows: Vec<_> = reply.answers.iter().map(|a| (a.rows.clone(), a.tag.clone())).collect();
            format!("{sql}: {error:?} {rows:?}")
        })
    });
    assert_eq!(told[0], told[1]);
}
