//! Sweeps: what is tried with everything that PostgreSQL has of a kind, beside one server. Here a part of it; with
//! PGHERD_SWEEPS=whole (`make sweeps`) all.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::Side;
use pgherd_testkit::beside::{sides, told};
use pgherd_testkit::client::Client;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgherd");
/// Of so many cases one is tried where the sweep is not whole.
const PART: usize = 30;

fn is_whole() -> bool {
    std::env::var("PGHERD_SWEEPS").is_ok_and(|sweeps| sweeps == "whole")
}

// Settings ------------------------------------------------------------------------------------------------------------

/// One statement of every way of running, under a setting. What they change they put back.
const UNDER: &[&str] = &[
    "INSERT INTO d VALUES (1001, 'x', 1, '01/02/2026', '1 day 02:00', 0.1, '\\x00ff') RETURNING *",
    "SELECT * FROM d WHERE k = 3",
    "SELECT count(*), sum(v), min(at), max(t), sum(f), max(i) FROM d",
    "SELECT v % 3, count(*), array_agg(k ORDER BY k) FROM d WHERE k < 20 GROUP BY 1 ORDER BY 1",
    "SELECT d.k, l.t, d.at FROM d JOIN l ON l.k = d.v WHERE d.k < 4 ORDER BY 1",
    "SELECT a.k, b.k FROM d a JOIN d b ON b.v = a.k WHERE a.k < 4 ORDER BY 1, 2",
    "UPDATE d SET t = l.t FROM l WHERE l.k = d.v AND d.k < 3 RETURNING d.k, d.t",
    "WITH m AS (UPDATE d SET v = v + 1 WHERE k = 5 RETURNING v) SELECT v FROM m",
    "UPDATE d SET v = v - 1, t = 'name 5' WHERE k = 5 RETURNING t, xmin::text = '0'",
    "INSERT INTO e SELECT * FROM d WHERE k < 9; SELECT count(*), max(at) FROM e; DELETE FROM e WHERE k > 0",
    "INSERT INTO l SELECT k + 2000, t FROM d WHERE k < 3; DELETE FROM l WHERE k > 2000",
    "SELECT doubled(7), (SELECT max(at) FROM d WHERE k < 9), to_tsvector(t) FROM d WHERE k = 6",
    "DO $$ DECLARE n int; BEGIN UPDATE d SET v = v WHERE k < 4; SELECT count(*) INTO n FROM d JOIN l ON l.k = d.v; \
     IF n = 0 THEN RAISE EXCEPTION 'nothing'; END IF; END $$",
    "CREATE TABLE made (k int, v text DEFAULT 'x'); ALTER TABLE made ADD w int; INSERT INTO made (k) VALUES (1) \
     RETURNING *; DROP TABLE made",
    "CREATE TEMP TABLE temporary AS SELECT count(*) FROM d; SELECT * FROM temporary; DROP TABLE temporary",
    "ALTER TABLE d ADD COLUMN w int DEFAULT 3; SELECT w FROM d WHERE k = 3; ALTER TABLE d DROP COLUMN w",
    "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT v FROM d WHERE k = 8'; SELECT made(); DROP FUNCTION made()",
    "COPY (SELECT * FROM d WHERE k < 3 ORDER BY k) TO STDOUT",
    "SELECT 1 / (k - 3) FROM d WHERE k = 3",
    "SELECT '1 mon 3 days'::interval, '2026-02-01 10:00+00'::timestamptz, 1e-7::float8, '\\x41'::bytea, xml '<a/>', i, b \
     FROM d WHERE k = 4",
    "DELETE FROM d WHERE k = 1001 RETURNING k, at",
];

const TABLES: &str = "
    CREATE TABLE d (k int PRIMARY KEY, t text, v int, at date, i interval, f float8, b bytea);
    CREATE TABLE e (LIKE d); CREATE TABLE l (k int, t text);
    INSERT INTO d SELECT g, 'name ' || g, g % 9, date '2026-01-01' + g, g * interval '1 hour', g / 8.0, ('\\x0' || g % 9)::bytea
        FROM generate_series(1, 60) g;
    INSERT INTO l SELECT g, 'local ' || g FROM generate_series(1, 9) g;
    CREATE FUNCTION doubled(n int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT v * 2 FROM d WHERE k = n); END';
    GRANT ALL ON d, e, l TO PUBLIC; GRANT ALL ON SCHEMA public TO PUBLIC";

/// Their values are something else than what a statement means: what a server does by the clock, its files or its log.
const OTHER: &[&str] = &[
    "role",
    "session_authorization",
    "seed",
    // By one millisecond something ends.
    "statement_timeout",
    "transaction_timeout",
    "idle_session_timeout",
    "idle_in_transaction_session_timeout",
    "lock_timeout",
    "deadlock_timeout",
    "post_auth_delay",
    "pre_auth_delay",
    // What a superuser breaks.
    "allow_system_table_mods",
    "ignore_system_indexes",
    "zero_damaged_pages",
    "ignore_invalid_pages",
    "ignore_checksum_failure",
    "wal_consistency_checking",
    "dynamic_library_path",
    "extension_control_path",
    "session_preload_libraries",
    "local_preload_libraries",
    "jit_provider",
    "max_stack_depth",
    "event_source",
    "backtrace_functions",
    // Both are taken, and decide what is written to the log.
    "log_statement_stats",
    "log_parser_stats",
    "log_planner_stats",
    "log_executor_stats",
];

/// Values of texts, and odd ones of others.
fn values(name: &str, kind: &str, enumerated: &str, min: &str, max: &str) -> Vec<String> {
    let list = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    match (name, kind) {
        ("DateStyle", _) => list(&["SQL, DMY", "German", "Postgres, MDY", "ISO, YMD", "nonsense"]),
        ("TimeZone", _) => list(&["America/St_Johns", "-13:30", "nowhere"]),
        ("search_path", _) => list(&["", "nowhere, public", "pg_catalog, public", "public, pg_catalog"]),
        ("client_encoding", _) => list(&["LATIN1", "SJIS", "SQL_ASCII", "nonsense"]),
        ("default_text_search_config", _) => list(&["pg_catalog.german", "nowhere"]),
        ("restrict_nonsystem_relation_kind", _) => list(&["view", "foreign-table", "view, foreign-table"]),
        ("default_table_access_method", _) => list(&["heap", "nothing"]),
        ("timezone_abbreviations", _) => list(&["India", "Australia"]),
        // So much memory is asked for at once.
        ("temp_buffers" | "debug_discard_caches", _) => list(&[min]),
        (_, "bool") => list(&["on", "off"]),
        (_, "enum") => enumerated.trim_matches(['{', '}']).split(',').map(|v| v.trim_matches('"').to_owned()).collect(),
        (_, "integer" | "real") => list(&[min, max]),
        _ => list(&["", "nowhere"]),
    }
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Set,
    SetLocal,
    Startup,
    OfRole,
    OfDatabase,
}

/// What a client hears under a setting that has come by some way.
fn heard(side: &Side, database: &str, role: &str, (name, value): (&str, &str), way: Way) -> Vec<String> {
    let quoted = format!("'{}'", value.replace('\'', "''"));
    let target = side.target.with_database(database);
    let mut admin = Client::connect(&target).unwrap();
    let set = match way {
        Way::OfRole => format!("ALTER ROLE {role} SET {name} = {quoted}"),
        Way::OfDatabase => format!("ALTER DATABASE {database} SET {name} = {quoted}"),
        Way::Set => format!("SET {name} = {quoted}"),
        Way::SetLocal => format!("BEGIN; SET LOCAL {name} = {quoted}"),
        Way::Startup => String::new(),
    };
    let mut said = Vec::new();
    let mut given = Vec::new();
    let options = format!("-c {name}={}", value.replace('\\', "\\\\").replace(' ', "\\ "));
    match way {
        Way::OfRole | Way::OfDatabase => said.push(told(&mut admin, &set)),
        Way::Startup => given.push(("options", options.as_str())),
        Way::Set | Way::SetLocal => {}
    }
    if matches!(way, Way::OfRole) {
        given.push(("user", role));
    }
    match Client::connect_with(&target, &given) {
        Ok(mut client) => {
            if matches!(way, Way::Set | Way::SetLocal) {
                said.push(told(&mut client, &set));
            }
            said.push(told(&mut client, &format!("SHOW {name}")));
            let source = "SELECT setting, source FROM pg_settings WHERE name =";
            said.push(told(&mut client, &format!("{source} '{name}'")));
            for sql in UNDER {
                let in_block = matches!(way, Way::SetLocal);
                if in_block {
                    told(&mut client, "SAVEPOINT s");
                }
                said.push(told(&mut client, sql));
                if in_block {
                    told(&mut client, "ROLLBACK TO s");
                }
            }
        }
        Err(error) => said.push(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
    // Whatever way it is put back, under what it has set.
    let mut admin = Client::connect_with(&target, &[("options", "-c default_transaction_read_only=off")]).unwrap();
    admin.run(&format!("ALTER ROLE {role} RESET ALL; ALTER DATABASE {database} RESET ALL")).unwrap();
    said
}

#[test]
fn settings() {
    let (_plain, sides) = sides(PROGRAM);
    let (database, role) = ("sweep_settings", "sweep_settings");
    for side in &sides {
        side.create_database(database, "").unwrap();
        let mut client = side.connect(database).unwrap();
        client.run(&format!("CREATE ROLE {role} LOGIN SUPERUSER; {TABLES}")).unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('d', 'k'), create_distributed_table('e', 'k')").unwrap();
        }
    }
    let listed = "SELECT name, vartype, coalesce(enumvals::text, ''), coalesce(min_val, ''), coalesce(max_val, '') \
                  FROM pg_settings WHERE context IN ('user', 'superuser') AND name NOT LIKE '%.%' ORDER BY name";
    let reply = sides[0].connect(database).unwrap().run(listed).unwrap();
    let mut cases = Vec::new();
    for row in &reply.answers[0].rows {
        let text = |column: usize| String::from_utf8_lossy(row[column].as_deref().unwrap_or_default()).into_owned();
        if !OTHER.contains(&text(0).as_str()) {
            let values = values(&text(0), &text(1), &text(2), &text(3), &text(4));
            cases.extend(values.into_iter().map(|value| (text(0), value)));
        }
    }
    let ways = [Way::Set, Way::Startup, Way::OfRole, Way::OfDatabase, Way::SetLocal];
    let only = std::env::var("PGHERD_SWEEPS_ONLY").unwrap_or_default();
    let mut different = Vec::new();
    for (at, (name, value)) in cases.iter().enumerate() {
        if !only.is_empty() && *name != only || only.is_empty() && !is_whole() && at % PART != 0 {
            continue;
        }
        let turn = at / if is_whole() { 1 } else { PART };
        let ways = if is_whole() && !only.is_empty() { &ways[..] } else { &ways[turn % ways.len()..][..1] };
        for way in ways {
            let [plain, cluster] = [0, 1].map(|side| heard(&sides[side], database, role, (name, value), *way));
            let said_before = plain.len().saturating_sub(UNDER.len());
            for (index, (one, other)) in plain.iter().zip(&cluster).enumerate() {
                if one != other {
                    let sql = index.checked_sub(said_before).and_then(|at| UNDER.get(at));
                    different.push(format!("{name} = {value:?} by {way:?}, {index} {sql:?}\n  {one}\n  {other}"));
                }
            }
            if plain.len() != cluster.len() {
                different.push(format!("{name} = {value:?} by {way:?}\n  {plain:?}\n  {cluster:?}"));
            }
        }
    }
    assert!(different.is_empty(), "{} differ\n{}", different.len(), different.join("\n"));
}

// Objects -------------------------------------------------------------------------------------------------------------

/// A kind of object: `{o}` is its name.
struct Kind {
    name: &'static str,
    make: &'static str,
    /// Parts of CREATE TABLE t (k int PRIMARY KEY, v int, s text).
    parts: &'static [&'static str],
    /// The same of a table that is there, and what else is made of it.
    added: &'static [&'static str],
    queries: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "function",
        make: "CREATE FUNCTION {o}(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'",
        parts: &["x int DEFAULT {o}(3)", "CHECK ({o}(v) > 0)", "x int GENERATED ALWAYS AS ({o}(v)) STORED"],
        added: &[
            "ALTER TABLE t ADD x int DEFAULT {o}(4)",
            "ALTER TABLE t ADD CHECK ({o}(v) > 0)",
            "ALTER TABLE t ADD x int GENERATED ALWAYS AS ({o}(v)) STORED",
            "CREATE INDEX made ON t ({o}(v))",
            "CREATE POLICY made ON t USING ({o}(v) > 2); ALTER TABLE t ENABLE ROW LEVEL SECURITY",
            "CREATE VIEW made AS SELECT k, {o}(v) AS x FROM t",
            "ALTER TABLE t ALTER v SET DEFAULT {o}(7)",
        ],
        queries: &[
            "SELECT k, {o}(v) FROM t WHERE k = 3",
            "SELECT sum({o}(v)) FROM t",
            "UPDATE t SET v = {o}(v) WHERE k < 3",
        ],
    },
    Kind {
        name: "enum",
        make: "CREATE TYPE {o} AS ENUM ('low', 'high')",
        parts: &["x {o}", "x {o}[] DEFAULT '{low}'", "x {o} DEFAULT 'high', CHECK (x > 'low')"],
        added: &[
            "ALTER TABLE t ADD x {o} DEFAULT 'low'",
            "ALTER TABLE t ADD CHECK ((CASE WHEN v > 0 THEN 'high' ELSE 'low' END)::{o} > 'low')",
            "CREATE VIEW made AS SELECT k, 'low'::{o} AS x FROM t",
            "ALTER TABLE t ADD x {o}; CREATE INDEX made ON t (x); UPDATE t SET x = 'low'; ALTER TABLE t ALTER x TYPE text",
        ],
        queries: &["SELECT k, 'high'::{o} FROM t WHERE k = 3", "SELECT count(*) FROM t WHERE 'high'::{o} > 'low'"],
    },
    Kind {
        name: "composite type",
        make: "CREATE TYPE {o} AS (a int, b text)",
        parts: &["x {o}", "x {o}[]", "x {o} DEFAULT ROW(1, 'a')"],
        added: &[
            "ALTER TABLE t ADD x {o} DEFAULT ROW(1, 'a')",
            "ALTER TABLE t ADD CHECK ((ROW(v, s)::{o}).a > 0)",
            "CREATE INDEX made ON t (((ROW(v, s)::{o}).b))",
            "CREATE VIEW made AS SELECT k, ROW(v, s)::{o} AS x FROM t",
        ],
        queries: &["SELECT (ROW(v, s)::{o}).b FROM t WHERE k = 3", "SELECT count(DISTINCT ROW(v, s)::{o}) FROM t"],
    },
    Kind {
        name: "domain",
        make: "CREATE DOMAIN {o} AS int CHECK (VALUE > 0)",
        parts: &["x {o}", "x {o}[]", "x {o} DEFAULT 3"],
        added: &[
            "ALTER TABLE t ADD x {o} DEFAULT 3",
            "ALTER TABLE t ALTER v TYPE {o}",
            "CREATE INDEX made ON t ((v::{o}))",
            "CREATE VIEW made AS SELECT k, v::{o} AS x FROM t",
        ],
        queries: &["SELECT v::{o} FROM t WHERE k = 3", "SELECT (0 * v)::{o} FROM t WHERE k = 3"],
    },
    Kind {
        name: "range type",
        make: "CREATE TYPE {o} AS RANGE (SUBTYPE = int4)",
        parts: &["x {o}", "x {o} DEFAULT '[1,2)', EXCLUDE USING gist (x WITH &&, k WITH =)", "x {o}[]"],
        added: &["ALTER TABLE t ADD x {o} DEFAULT '[1,5)'", "CREATE VIEW made AS SELECT k, {o}(v, v + 1) AS x FROM t"],
        queries: &["SELECT {o}(v, v + 2) FROM t WHERE k = 3", "SELECT count(*) FROM t WHERE {o}(v, v + 2) @> 3"],
    },
    Kind {
        name: "collation",
        make: "CREATE COLLATION {o} (PROVIDER = icu, LOCALE = 'de-DE')",
        parts: &["x text COLLATE {o}", "UNIQUE (k, s), CHECK (s COLLATE {o} > '')"],
        added: &[
            "ALTER TABLE t ADD x text COLLATE {o} DEFAULT 'x'",
            "CREATE INDEX made ON t (s COLLATE {o})",
            "ALTER TABLE t ALTER s TYPE text COLLATE {o}",
            "CREATE VIEW made AS SELECT k, s COLLATE {o} AS x FROM t",
        ],
        queries: &["SELECT k, s FROM t ORDER BY s COLLATE {o}, k LIMIT 5", "SELECT max(s COLLATE {o}) FROM t"],
    },
    Kind {
        name: "aggregate",
        make: "CREATE AGGREGATE {o}(int) (SFUNC = int4pl, STYPE = int, INITCOND = '0')",
        parts: &[],
        added: &[
            "CREATE VIEW made AS SELECT {o}(v) AS x FROM t",
            "CREATE MATERIALIZED VIEW made AS SELECT {o}(v) AS x FROM t",
        ],
        queries: &[
            "SELECT {o}(v) FROM t",
            "SELECT v % 2, {o}(v) FROM t GROUP BY 1 ORDER BY 1",
            "SELECT {o}(v) FROM t WHERE k = 3",
        ],
    },
    Kind {
        name: "sequence",
        make: "CREATE SEQUENCE {o} START 5",
        parts: &["x bigint DEFAULT nextval('{o}')"],
        added: &[
            "ALTER TABLE t ADD x bigint DEFAULT nextval('{o}')",
            "ALTER TABLE t ALTER v SET DEFAULT nextval('{o}')",
        ],
        queries: &[
            "SELECT nextval('{o}') FROM t WHERE k = 3",
            "UPDATE t SET v = nextval('{o}') WHERE k = 3 RETURNING v",
        ],
    },
    Kind {
        name: "text search configuration",
        make: "CREATE TEXT SEARCH CONFIGURATION {o} (COPY = german)",
        parts: &[
            "x tsvector GENERATED ALWAYS AS (to_tsvector('{o}', s)) STORED",
            "x tsvector DEFAULT to_tsvector('{o}', 'Haus')",
        ],
        added: &[
            "ALTER TABLE t ADD x tsvector GENERATED ALWAYS AS (to_tsvector('{o}', s)) STORED",
            "CREATE INDEX made ON t USING gin (to_tsvector('{o}', s))",
            "CREATE VIEW made AS SELECT k, to_tsvector('{o}', s) AS x FROM t",
            "ALTER TABLE t ADD CHECK (to_tsvector('{o}', s) IS NOT NULL)",
        ],
        queries: &[
            "SELECT to_tsvector('{o}', s) FROM t WHERE k = 3",
            "SELECT count(*) FROM t WHERE to_tsvector('{o}', s) @@ 'nam'",
        ],
    },
    Kind {
        name: "view",
        make: "CREATE VIEW {o} AS SELECT g AS n, 'n' || g AS w FROM generate_series(1, 9) g",
        parts: &[],
        added: &["CREATE VIEW made AS SELECT k, w FROM t JOIN {o} ON n = v"],
        queries: &[
            "SELECT k, w FROM t JOIN {o} ON n = v WHERE k < 4 ORDER BY k",
            "INSERT INTO t SELECT 100 + n, n, w FROM {o} WHERE n < 3",
        ],
    },
    Kind {
        name: "table",
        make: "CREATE TABLE {o} AS SELECT g AS n, 'n' || g AS w FROM generate_series(1, 9) g",
        parts: &["x {o}"],
        added: &["CREATE VIEW made AS SELECT k, w FROM t JOIN {o} ON n = v", "ALTER TABLE t ADD x {o}"],
        queries: &[
            "SELECT k, w FROM t JOIN {o} ON n = v WHERE k < 4 ORDER BY k",
            "UPDATE t SET s = w FROM {o} WHERE n = v AND k < 4 RETURNING k, s",
            "DELETE FROM {o} USING t WHERE n = v AND k = 3 RETURNING n",
        ],
    },
];

const OWNER: &str = "sweep_owner";
const READER: &str = "sweep_reader";

/// What both say of statements; after a refusal by the cluster nothing more is compared. Some: what differs.
fn compared(clients: &mut [Client; 2], statements: &[String], refused: &mut Vec<String>) -> Option<String> {
    for sql in statements {
        let sides = [sql.strip_prefix("only: ").unwrap_or(sql), sql.strip_prefix("only: ").map_or(sql, |_| "SELECT 1")];
        let [plain, cluster] = [(0, sides[1]), (1, sides[0])].map(|(side, sql)| told(&mut clients[side], sql));
        if cluster.contains("|0A000|") && !plain.contains("|0A000|") {
            refused.push(format!("{sql}: {}", cluster.lines().last().unwrap_or_default()));
            return None;
        }
        if plain != cluster && !sql.starts_with("only: ") || sql.starts_with("only: ") && cluster.starts_with("ERROR") {
            return Some(format!("{sql}\n  {plain}\n  {cluster}"));
        }
    }
    None
}

#[test]
fn objects() {
    let (_plain, sides) = sides(PROGRAM);
    let database = "sweep_objects";
    for side in &sides {
        side.create_database(database, "").unwrap();
        let mut client = side.connect(database).unwrap();
        let roles = format!(
            "CREATE ROLE {OWNER} LOGIN; CREATE ROLE {READER} LOGIN; GRANT CREATE ON DATABASE {database} TO {OWNER}"
        );
        client.run(&format!("{roles}; CREATE EXTENSION btree_gist; GRANT ALL ON SCHEMA public TO {OWNER}")).unwrap();
    }
    let columns = "k int PRIMARY KEY, v int, s text";
    let rows = "INSERT INTO t (k, v, s) SELECT g, g % 9, 'name ' || g FROM generate_series(1, 30) g WHERE g % 9 > 0";
    let all = "SELECT to_jsonb(t) FROM t ORDER BY k LIMIT 4";
    let distribute = "only: SELECT create_distributed_table('t', 'k')";
    // In a schema that nobody else may use, and with the longest name.
    let names = ["public.made_object", &format!("hidden.\"A {}\"", "long name ".repeat(6))];
    let mut cases: Vec<(String, Vec<String>)> = Vec::new();
    for kind in KINDS {
        for name in &names {
            let of = |sql: &str| sql.replace("{o}", name);
            let quoted =
                |sql: &str| if sql.contains("'{o}'") { sql.replace("'{o}'", &format!("'{name}'")) } else { of(sql) };
            let mut add = |what: &str, statements: Vec<String>| {
                let mut whole = vec![
                    format!(
                        "SET ROLE {OWNER}; DROP VIEW IF EXISTS made; DROP TABLE IF EXISTS t; DROP SCHEMA IF EXISTS hidden CASCADE"
                    ),
                    "CREATE SCHEMA hidden".to_owned(),
                ];
                whole.extend(statements);
                whole.push(format!("GRANT ALL ON t TO {READER}; SET ROLE {READER}"));
                whole.extend([all.to_owned(), "UPDATE t SET v = v + 1 WHERE k = 3 RETURNING v".to_owned()]);
                whole.push("DELETE FROM t WHERE k = 5; INSERT INTO t (k, v, s) VALUES (5, 3, 'new')".to_owned());
                whole.push("SELECT to_jsonb(t) FROM t WHERE k = 5".to_owned());
                whole.push(format!("RESET ROLE; SET ROLE {OWNER}"));
                whole.push(format!("DROP TABLE IF EXISTS t CASCADE; {}", drop_of(kind, name)));
                cases.push((format!("{} {name}: {what}", kind.name), whole));
            };
            for part in kind.parts {
                let create = format!("CREATE TABLE t ({columns}, {})", quoted(part));
                add(part, vec![of(kind.make), create.clone(), distribute.to_owned(), rows.to_owned(), all.to_owned()]);
                add(part, vec![of(kind.make), create, rows.to_owned(), distribute.to_owned(), all.to_owned()]);
            }
            for added in kind.added {
                let table = format!("CREATE TABLE t ({columns})");
                let look = if added.contains("VIEW made") {
                    "SELECT to_jsonb(made) FROM made ORDER BY 1 LIMIT 4"
                } else {
                    all
                };
                let (make, added) = (of(kind.make), quoted(added));
                let after = vec![
                    table.clone(),
                    distribute.to_owned(),
                    rows.to_owned(),
                    make.clone(),
                    added.clone(),
                    look.to_owned(),
                ];
                add(&added, after);
                add(&added, vec![make, table, rows.to_owned(), added.clone(), distribute.to_owned(), look.to_owned()]);
            }
            let queries = kind.queries.iter().map(|sql| quoted(sql));
            let table = format!("CREATE TABLE t ({columns})");
            add(
                "queries",
                [table, distribute.to_owned(), rows.to_owned(), of(kind.make)].into_iter().chain(queries).collect(),
            );
        }
    }
    let mut clients = [0, 1].map(|side: usize| sides[side].connect(database).unwrap());
    let (mut different, mut refused) = (Vec::new(), Vec::new());
    for (at, (what, statements)) in cases.iter().enumerate() {
        if !is_whole() && at % PART != 0 {
            continue;
        }
        different.extend(compared(&mut clients, statements, &mut refused).map(|differs| format!("{what}: {differs}")));
        for client in &mut clients {
            client.run("RESET ROLE; DROP OWNED BY sweep_owner CASCADE; DROP SCHEMA IF EXISTS hidden CASCADE").unwrap();
            client
                .run(&format!("GRANT CREATE ON DATABASE {database} TO {OWNER}; GRANT ALL ON SCHEMA public TO {OWNER}"))
                .unwrap();
        }
    }
    println!("{} of {} refused\n{}", refused.len(), cases.len(), refused.join("\n"));
    assert!(different.is_empty(), "{} of {} differ\n{}", different.len(), cases.len(), different.join("\n"));
}

/// What takes an object away again, by its name.
fn drop_of(kind: &Kind, name: &str) -> String {
    match kind.name {
        "function" => format!("DROP FUNCTION {name}(int)"),
        "aggregate" => format!("DROP AGGREGATE {name}(int)"),
        "enum" | "composite type" | "range type" => format!("DROP TYPE {name}"),
        kind => format!("DROP {} {name}", kind.to_uppercase()),
    }
}
