//! Parameters and results of every kind of type, in every kind of statement and by every way that it can go, against
//! one PostgreSQL. Types that users make have other numbers on every server, in Parse and inside binary values.
//!
//! `PGHERD_PARAMETERS=all` runs each case by each way of sending it; otherwise they take turns.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use pgherd_testkit::client::{Client, Fields, Row, bind, execute, show_row, sync};
use pgherd_testkit::{Cluster, Plain, Side};

const FIRST_USER_OID: u32 = 16_384;

/// A type, three of its values in order, and one that it does not accept.
struct Kind {
    column: &'static str,
    name: &'static str,
    values: [&'static str; 3],
    wrong: &'static str,
}

const fn kind(column: &'static str, name: &'static str, values: [&'static str; 3], wrong: &'static str) -> Kind {
    Kind { column, name, values, wrong }
}

const TYPES: &str = "
    CREATE TYPE prio AS ENUM ('low', 'medium', 'high');
    CREATE TYPE pt AS (x int, y text);
    CREATE TYPE nest AS (p pt, e prio, n int);
    CREATE DOMAIN posint AS int CHECK (VALUE > 0);
    CREATE DOMAIN code AS text CHECK (VALUE <> '');
    CREATE DOMAIN dprio AS prio CHECK (VALUE <> 'medium');
    CREATE DOMAIN dpt AS pt CHECK ((VALUE).x > 0);
    CREATE DOMAIN dints AS int[];
    CREATE DOMAIN dcode AS code CHECK (length(VALUE) < 4);
    CREATE TYPE frange AS RANGE (subtype = float8);
    CREATE TYPE prange AS RANGE (subtype = prio);
    CREATE SCHEMA apart;
    CREATE TYPE apart.\"Odd Name\" AS ENUM ('z', 'y', 'x');";

const KINDS: &[Kind] = &[
    kind("b_int", "int", ["1", "2", "3"], "x"),
    kind("b_num", "numeric", ["1.5", "2.5", "3.5"], "x"),
    kind("b_time", "timestamptz", ["2020-01-01 00:00+00", "2021-01-01 00:00+00", "2022-01-01 00:00+00"], "x"),
    kind("b_ints", "int[]", ["{1}", "{2}", "{3}"], "x"),
    kind("b_range", "int4range", ["[1,2)", "[2,3)", "[3,4)"], "x"),
    kind("enum", "prio", ["low", "medium", "high"], "nope"),
    kind("odd", "apart.\"Odd Name\"", ["z", "y", "x"], "nope"),
    kind("comp", "pt", ["(1,low)", "(2,medium)", "(3,high)"], "(a,b)"),
    kind("nest", "nest", ["(\"(1,a)\",low,1)", "(\"(1,a)\",medium,2)", "(\"(2,a)\",low,1)"], "(1,2)"),
    kind("d_int", "posint", ["1", "2", "3"], "-1"),
    kind("d_text", "code", ["a", "b", "c"], ""),
    kind("d_dom", "dcode", ["a", "b", "c"], "long"),
    kind("d_enum", "dprio", ["low", "high", "high"], "medium"),
    kind("d_comp", "dpt", ["(1,a)", "(2,b)", "(3,c)"], "(0,a)"),
    kind("d_arr", "dints", ["{1}", "{2}", "{3}"], "x"),
    kind("range", "frange", ["[1,2]", "[2,3]", "[3,4]"], "[2,1]"),
    kind("e_range", "prange", ["[low,low]", "[low,high]", "[medium,high]"], "[a,b]"),
    kind("multi", "fmultirange", ["{[1,2]}", "{[2,3],[4,5]}", "{[3,4]}"], "x"),
    kind("a_enum", "prio[]", ["{low}", "{medium,NULL}", "{high}"], "{nope}"),
    kind("a_comp", "pt[]", ["{\"(1,a)\"}", "{\"(2,b)\",NULL}", "{\"(3,c)\"}"], "{x}"),
    kind("a_nest", "nest[]", ["{}", "{\"(\\\"(1,a)\\\",low,1)\"}", "{\"(\\\"(2,a)\\\",low,1)\"}"], "{x}"),
    kind("a_dom", "posint[]", ["{1}", "{2}", "{3}"], "{-1}"),
    kind("a_range", "frange[]", ["{\"[1,2]\"}", "{\"[2,3]\"}", "{\"[3,4]\"}"], "{x}"),
    kind("a_multi", "fmultirange[]", ["{\"{[1,2]}\"}", "{\"{[2,3]}\"}", "{\"{[3,4]}\"}"], "{x}"),
];

/// `t`: the table, `c`: the column. Rows are compared in any order.
const STATEMENTS: &[&str] = &[
    "SELECT k FROM {t} WHERE {c} = $1",
    "SELECT k FROM {t} WHERE $1 < {c}",
    "SELECT k FROM {t} WHERE $1 > $2 OR $1 = $2",
    "SELECT k FROM {t} WHERE $1 IS NULL OR {c} = $1",
    "SELECT k FROM {t} WHERE {c} = ANY (ARRAY[$1, $2])",
    "SELECT k FROM {t} WHERE {c} IN ($1, $2)",
    "SELECT k FROM {t} WHERE {c} IS DISTINCT FROM $1",
    "SELECT k FROM {t} WHERE {c} BETWEEN $1 AND $2",
    "SELECT k, {c} FROM {t} WHERE k = 3 AND {c} >= $1",
    "SELECT k, $1 FROM {t} WHERE k = 2",
    "SELECT k, $1, {c} FROM {t}",
    "SELECT k, pg_typeof($1), pg_typeof({c}) FROM {t}",
    "SELECT array_agg($1) FROM {t}",
    "SELECT array_agg({c} ORDER BY k) FROM {t} WHERE {c} <> $1",
    "SELECT to_jsonb($1), count(*) FROM {t}",
    "SELECT k, CASE WHEN k > 2 THEN $1 ELSE {c} END FROM {t}",
    "SELECT k, x FROM {t} JOIN (VALUES (1, $1), (2, $2)) v(i, x) ON i = k",
    "SELECT unnest(ARRAY[$1, $2]) FROM {t} WHERE k = 1",
    "SELECT {c} FROM {t} UNION SELECT $1",
    "SELECT {c} FROM {t} EXCEPT SELECT $1",
    "SELECT coalesce({c}, $1), count(*) FROM {t} GROUP BY 1",
    "SELECT count(*) FILTER (WHERE {c} = $1), max(k) FROM {t}",
    "SELECT greatest({c}, $1), nullif({c}, $2) FROM {t}",
    "SELECT k, ROW($1, k), ARRAY[$1, {c}] FROM {t}",
    "SELECT k, rank() OVER (ORDER BY {c}), lag({c}, 1, $1) OVER (ORDER BY k) FROM {t}",
    "SELECT k FROM {t} WHERE EXISTS (SELECT FROM {t} s WHERE s.k = {t}.k AND s.{c} = $1)",
    "SELECT k FROM {t} WHERE {c} >= (SELECT min(s.{c}) FROM {t} s WHERE s.{c} > $1)",
    "SELECT k FROM {t} ORDER BY {c} = $1, k LIMIT 2",
    "SELECT {t}.k, o.{c} FROM {t} JOIN other o ON o.{c} = {t}.{c} WHERE {t}.{c} <> $1",
    "SELECT {t}.k FROM {t} LEFT JOIN other o ON o.{c} = $1 WHERE o.k = {t}.k OR {t}.{c} = $2",
    "SELECT k, {c} = $1 FROM {t}, pass({t}.k) p",
    "WITH s AS (SELECT $1 AS x) SELECT k FROM {t}, s WHERE {c} = x",
    "INSERT INTO {t} (k, {c}) VALUES (11, $1)",
    "INSERT INTO {t} (k, {c}) VALUES (11, $1), (12, $2), (13, DEFAULT) RETURNING k, {c}",
    "INSERT INTO {t} (k, {c}) SELECT k + 20, $1 FROM {t} RETURNING {c}",
    "INSERT INTO {t} (k, {c}) SELECT g, CASE WHEN g > 31 THEN $1 ELSE $2 END FROM generate_series(31, 33) g",
    "INSERT INTO {t} (k, {c}) VALUES (1, $1), (40, $2) ON CONFLICT (k) DO UPDATE SET {c} = excluded.{c} RETURNING {c}",
    "INSERT INTO {t} AS o (k, {c}) VALUES (1, $1) ON CONFLICT (k) DO UPDATE SET {c} = $2 WHERE o.{c} <> $2",
    "UPDATE {t} SET {c} = $1",
    "UPDATE {t} SET {c} = $1 WHERE {c} <> $2 RETURNING k, {c}, $1",
    "UPDATE {t} SET {c} = $1 WHERE k = 2",
    "UPDATE {t} SET {c} = $1 FROM other o WHERE o.k = {t}.k AND o.{c} = $2",
    "DELETE FROM {t} WHERE {c} >= $1 RETURNING k",
    "DELETE FROM {t} WHERE k = 1 AND {c} = $1",
    "MERGE INTO {t} USING (VALUES (1, $1), (30, $2)) s(i, x) ON k = i WHEN MATCHED THEN UPDATE SET {c} = x
        WHEN NOT MATCHED THEN INSERT (k, {c}) VALUES (i, x)",
    "WITH w AS (UPDATE {t} SET {c} = $1 WHERE k < 3 RETURNING k, {c}) SELECT * FROM w",
];

const WITHOUT_TABLE: &[&str] = &[
    "SELECT $1",
    "SELECT $1, $2",
    "SELECT pg_typeof($1)",
    "SELECT $1 < $2, $1 = $2, $1 IS DISTINCT FROM $2",
    "SELECT $1 UNION SELECT $2",
    "SELECT ARRAY[$1, $2], ROW($1, $2)",
    "SELECT to_jsonb($1), array_agg($2), format('%s', $1)",
    "VALUES ($1), ($2)",
    "SELECT * FROM (VALUES (1, $1), (2, $2)) v",
    "SELECT unnest(ARRAY[$1, $2])",
    "SELECT coalesce($1, $2), greatest($1, $2), CASE WHEN $1 < $2 THEN $1 END",
    "SELECT pass(1), $1",
];

/// What only some kinds have.
const PARTICULAR: &[(&[&str], &str)] = &[
    (&["comp", "d_comp"], "SELECT k, ($1).x, ($1).y FROM {t}"),
    (&["comp", "d_comp"], "SELECT k FROM {t} WHERE ({c}).x = ($1).x"),
    (&["comp", "d_comp"], "UPDATE {t} SET {c}.x = ($1).x + 5 RETURNING {c}"),
    (&["comp"], "SELECT ($1).*"),
    (&["nest"], "SELECT k, (($1).p).y, ($1).e, ($2).p FROM {t}"),
    (&["nest"], "SELECT k FROM {t} WHERE ({c}).e = ($1).e AND ({c}).p <> ($2).p"),
    (&["a_enum", "a_comp", "a_nest", "a_dom", "a_range", "a_multi", "b_ints", "d_arr"], "SELECT k, {c} || $1 FROM {t}"),
    (&["a_enum", "a_comp", "a_dom", "a_range", "a_multi", "b_ints", "d_arr"], "SELECT k FROM {t} WHERE {c}[1] = $1[1]"),
    (&["a_enum", "a_comp", "a_dom", "b_ints"], "SELECT k, unnest($1) FROM {t}"),
    (&["a_enum", "a_comp", "a_dom", "b_ints"], "SELECT k FROM {t} WHERE {c} && $1 OR {c} @> $2"),
    (&["range", "e_range", "b_range", "multi"], "SELECT k, {c} * $1 FROM {t} WHERE {c} && $1 AND NOT isempty($2)"),
    (&["range", "e_range", "b_range", "multi"], "SELECT k, lower($1), upper({c}) FROM {t}"),
    (&["enum", "odd"], "SELECT enum_range($1), enum_last($2), max({c}) FROM {t}"),
    (&["d_int"], "SELECT k, $1 + 1, {c} * $2 FROM {t} WHERE {c} % $1 = 0"),
    (&["d_text", "d_dom"], "SELECT k, $1 || {c}, upper($2) FROM {t}"),
    (&["d_int", "b_int"], "SELECT {c} FROM {t} WHERE k = $1"),
    (&["d_int", "b_int"], "SELECT {c} FROM {t} WHERE k IN ($1, $2)"),
    (&["d_int", "b_int"], "INSERT INTO {t} (k) VALUES ($1 + 50), ($2 + 60)"),
];

/// How a statement and its values are sent.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    /// Types declared in Parse, values and rows as text.
    Text,
    /// The same, values and rows binary.
    Binary,
    /// Types left to the server.
    Inferred,
    /// PREPARE and EXECUTE.
    Prepare,
}

const WAYS: [Way; 4] = [Way::Text, Way::Binary, Way::Inferred, Way::Prepare];

struct Peer {
    client: Client,
    names: HashMap<u32, String>,
    numbers: HashMap<String, u32>,
}

#[derive(Debug, PartialEq, Default, Clone)]
struct Outcome {
    parameters: Vec<String>,
    columns: Vec<String>,
    rows: Vec<String>,
    tag: String,
    error: String,
}

impl Peer {
    fn new(side: &Side, database: &str) -> Peer {
        let mut client = side.connect(database).unwrap();
        let reply = client.run("SELECT oid, pg_catalog.format_type(oid, NULL) FROM pg_type").unwrap();
        let text = |value: &Option<Vec<u8>>| String::from_utf8(value.clone().unwrap()).unwrap();
        let rows = &reply.answers[0].rows;
        let names: HashMap<u32, String> = rows.iter().map(|r| (text(&r[0]).parse().unwrap(), text(&r[1]))).collect();
        let numbers = names.iter().map(|(oid, name)| (name.clone(), *oid)).collect();
        Peer { client, names, numbers }
    }

    fn number(&mut self, name: &str) -> u32 {
        match self.numbers.get(name) {
            Some(oid) => *oid,
            None => self.client.value(&format!("SELECT '{name}'::regtype::oid")).unwrap().parse().unwrap(),
        }
    }

    /// Bind and Execute of the unnamed statement.
    fn run_unnamed(&mut self, values: &[Option<Vec<u8>>], format: i16) -> Result<(Vec<Row>, String), Fields> {
        let packet = [bind("", "", &[format], values, &[format]), execute("", 0), sync()].concat();
        self.client.send(&packet).unwrap();
        let (mut rows, mut tag, mut error) = (Vec::new(), String::new(), None);
        for message in self.client.receive_until_ready(1).unwrap() {
            match message.kind {
                b'D' => rows.push(row_of(&message.body)),
                b'C' => tag = String::from_utf8_lossy(message.body.split_last().unwrap().1).into_owned(),
                b'E' => error = Some(Fields::parse(&message.body)),
                _ => {}
            }
        }
        error.map_or(Ok((rows, tag)), Err)
    }

    /// A value of a type, as binary.
    fn binary(&mut self, oid: u32, text: &str) -> Option<Vec<u8>> {
        self.client.prepare("", "SELECT $1", &[oid]).unwrap();
        let packet = [bind("", "", &[0], &[Some(text.as_bytes().to_vec())], &[1]), execute("", 0), sync()].concat();
        self.client.send(&packet).unwrap();
        let messages = self.client.receive_until_ready(1).unwrap();
        messages.iter().find(|m| m.kind == b'D').and_then(|m| row_of(&m.body).pop().unwrap())
    }

    /// A binary value as text: numbers of types in it are the server's own.
    fn shown(&mut self, oid: u32, value: Option<Vec<u8>>) -> String {
        let Some(value) = value else { return "NULL".to_owned() };
        match oid {
            // Records cannot be read back.
            2249 | 2287 => format!("{} bytes", value.len()),
            // Numbers of types.
            2206 => self.names.get(&u32::from_be_bytes(value.try_into().unwrap())).cloned().unwrap_or_default(),
            oid if oid < FIRST_USER_OID => format!("{value:?}"),
            oid => {
                self.client.prepare("", "SELECT $1::text", &[oid]).unwrap();
                let packet = [bind("", "", &[1], &[Some(value)], &[0]), execute("", 0), sync()].concat();
                self.client.send(&packet).unwrap();
                let messages = self.client.receive_until_ready(1).unwrap();
                let row = messages.iter().find(|m| m.kind == b'D').map(|m| row_of(&m.body));
                row.map_or("cannot be read".to_owned(), |row| show(&row))
            }
        }
    }

    fn ask(&mut self, sql: &str, kind: &Kind, values: &[Option<&str>], way: Way) -> Outcome {
        let used = (1..=values.len()).rev().find(|n| sql.contains(&format!("${n}"))).unwrap_or(0);
        let values = &values[..used];
        let failed = |fields: &Fields| Outcome {
            error: format!("{} {} {}", fields.sqlstate(), fields.message(), fields.get('P')),
            ..Outcome::default()
        };
        if way == Way::Prepare {
            let types = vec![kind.name; used].join(", ");
            let prepare = format!("PREPARE q({types}) AS {sql}");
            if let Some(fields) = self.client.simple(&prepare, None).unwrap().error() {
                return failed(fields);
            }
            let quoted = |v: &Option<&str>| v.map_or("NULL".to_owned(), |v| format!("'{}'", v.replace('\'', "''")));
            let list = values.iter().map(quoted).collect::<Vec<_>>().join(", ");
            let reply = self.client.simple(&format!("EXECUTE q({list})"), None).unwrap();
            let outcome = match reply.error() {
                Some(fields) => failed(fields),
                None => {
                    let answer = &reply.answers[0];
                    let mut rows: Vec<String> = answer.rows.iter().map(show).collect();
                    rows.sort();
                    Outcome {
                        columns: self.columns(answer.columns.as_deref().unwrap_or_default()),
                        rows,
                        tag: answer.tag.clone().unwrap_or_default(),
                        ..Outcome::default()
                    }
                }
            };
            return outcome;
        }
        let oid = self.number(kind.name);
        let types = if way == Way::Inferred { Vec::new() } else { vec![oid; used] };
        let bytes: Vec<Option<Vec<u8>>> = values
            .iter()
            .map(|value| match (value, way) {
                (Some(text), Way::Binary) => self.binary(oid, text),
                (value, _) => value.map(|v| v.as_bytes().to_vec()),
            })
            .collect();
        let described = self.client.prepare("", sql, &types).unwrap();
        if let Some(fields) = described.error() {
            return failed(fields);
        }
        let parameters = described.parameter_types.unwrap_or_default();
        let parameters = parameters.iter().map(|oid| self.names[oid].clone()).collect();
        let columns = described.answers.into_iter().find_map(|a| a.columns).unwrap_or_default();
        let format = i16::from(way == Way::Binary);
        match self.run_unnamed(&bytes, format) {
            Err(fields) => failed(&fields),
            Ok((rows, tag)) => {
                let mut shown = Vec::new();
                for row in rows {
                    shown.push(match way {
                        Way::Binary => {
                            let fields = row.into_iter().zip(&columns);
                            fields.map(|(v, c)| self.shown(c.type_oid, v)).collect::<Vec<_>>().join("|")
                        }
                        _ => show(&row),
                    });
                }
                shown.sort();
                Outcome { parameters, columns: self.columns(&columns), rows: shown, tag, error: String::new() }
            }
        }
    }

    fn columns(&self, columns: &[pgherd_testkit::client::Column]) -> Vec<String> {
        let name = |oid: &u32| self.names.get(oid).map_or("?", String::as_str);
        columns.iter().map(|c| format!("{} {}", c.name, name(&c.type_oid))).collect()
    }
}

fn row_of(body: &[u8]) -> Row {
    let mut at = 2;
    (0..u16::from_be_bytes([body[0], body[1]]))
        .map(|_| {
            let length = i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            at += 4;
            let length = usize::try_from(length).ok()?;
            at += length;
            Some(body[at - length..at].to_vec())
        })
        .collect()
}

fn show(row: &Row) -> String {
    let field = |v: &Option<Vec<u8>>| v.as_ref().map_or("NULL".into(), |v| String::from_utf8_lossy(v).into_owned());
    row.iter().map(field).collect::<Vec<_>>().join("|")
}

/// Tables `d`, `l`, `r` and `other` with a column of every kind, on both sides.
fn peers(database: &str, types: &str, kinds: &[Kind]) -> (Plain, [Peer; 2]) {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let peers = [plain.side("postgres"), cluster.side()].map(|side| {
        side.create_database(database, "").unwrap();
        let mut client = side.connect(database).unwrap();
        client.run(types).unwrap();
        client.run("CREATE FUNCTION pass(k int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN k; END'").unwrap();
        let columns: Vec<String> = kinds.iter().map(|k| format!("\"{}\" {}", k.column, k.name)).collect();
        for table in ["d", "l", "r", "other"] {
            client.run(&format!("CREATE TABLE {table} (k int PRIMARY KEY, {})", columns.join(", "))).unwrap();
            if side.is_cluster && table == "d" {
                client.run("SELECT create_distributed_table('d', 'k')").unwrap();
            }
            if side.is_cluster && table == "r" {
                client.run("SELECT create_reference_table('r')").unwrap();
            }
            for row in 0..6 {
                let value = |k: &Kind| match row {
                    0..3 => format!("'{}'", k.values[row]),
                    _ => "NULL".to_owned(),
                };
                let values: Vec<String> = kinds.iter().map(value).collect();
                client.run(&format!("INSERT INTO {table} VALUES ({}, {})", row + 1, values.join(", "))).unwrap();
            }
        }
        Peer::new(&side, database)
    });
    (plain, peers)
}

fn check_all(database: &str, types: &str, kinds: &[Kind]) {
    let (_plain, mut peers) = peers(database, types, kinds);
    let all = std::env::var("PGHERD_PARAMETERS").is_ok_and(|v| v == "all");
    let mut wrong = Vec::new();
    let (mut cases, mut answered) = (0, 0);
    let mut turn = 0;
    for kind in kinds {
        let with_tables = STATEMENTS.iter().copied().chain(
            PARTICULAR.iter().filter(|(columns, _)| columns.contains(&kind.column)).map(|(_, statement)| *statement),
        );
        let mut statements: Vec<(String, bool)> = Vec::new();
        for template in with_tables {
            for table in ["d", "l", "r"] {
                let sql = template.replace("{t}", table).replace("{c}", &format!("\"{}\"", kind.column));
                let writes = !sql.starts_with("SELECT");
                statements.push((sql, writes));
            }
        }
        statements.extend(WITHOUT_TABLE.iter().map(|sql| ((*sql).to_owned(), false)));
        let [low, middle, high] = kind.values;
        let sets: [[Option<&str>; 2]; 3] =
            [[Some(middle), Some(low)], [Some(high), None], [Some(kind.wrong), Some(low)]];
        for (sql, writes) in &statements {
            for way in WAYS {
                turn += 1;
                if !all && turn % WAYS.len() != (turn / 7) % WAYS.len() {
                    continue;
                }
                let values = &sets[if turn % 11 == 0 { 2 } else { (turn / 3) % 2 }];
                if way == Way::Binary && values[0] == Some(kind.wrong) {
                    continue;
                }
                // Some in a block, some by themselves.
                let table = sql.split_whitespace().find(|word| matches!(*word, "d" | "l" | "r")).unwrap_or("d");
                let found = [0, 1].map(|side| {
                    let peer: &mut Peer = &mut peers[side];
                    if *writes || turn % 5 == 0 {
                        peer.client.run("BEGIN").unwrap();
                    }
                    let outcome = peer.ask(sql, kind, values, way);
                    let mut after = String::new();
                    if *writes && outcome.error.is_empty() {
                        let rows = peer.client.run(&format!("SELECT k, \"{}\" FROM {table}", kind.column)).unwrap();
                        let mut rows: Vec<String> = rows.answers[0].rows.iter().map(show).collect();
                        rows.sort();
                        after = rows.join("\n");
                    }
                    if *writes || turn % 5 == 0 {
                        peer.client.run("ROLLBACK").unwrap();
                    }
                    if way == Way::Prepare {
                        peer.client.run("DEALLOCATE ALL").unwrap();
                    }
                    (outcome, after)
                });
                cases += 1;
                answered += usize::from(found[0].0.error.is_empty());
                if found[0] != found[1] {
                    wrong.push(format!(
                        "{} {way:?} {values:?} {sql}\n  postgres: {:?}\n  cluster:  {:?}",
                        kind.name, found[0], found[1]
                    ));
                }
            }
        }
    }
    assert!(answered * 3 > cases, "only {answered} of {cases} cases have an answer");
    assert!(wrong.is_empty(), "{} of {cases} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn parameters_of_every_kind_of_type() {
    check_all("parameters", TYPES, KINDS);
}

/// Extensions have operators of their own, for which no statement is a worker's.
#[test]
fn parameters_of_types_of_extensions() {
    let kinds = [
        kind("e_citext", "citext", ["a", "B", "c"], ""),
        kind("e_hstore", "hstore", ["a=>1", "a=>2", "a=>3"], "x"),
        kind("e_enum", "prio", ["low", "medium", "high"], "nope"),
        kind("a_citext", "citext[]", ["{a}", "{B}", "{c}"], "x"),
        kind("d_hstore", "dhstore", ["a=>1", "a=>2", "a=>3"], "b=>1"),
    ];
    let types = "CREATE EXTENSION citext; CREATE EXTENSION hstore; CREATE TYPE prio AS ENUM ('low', 'medium', 'high');
        CREATE DOMAIN dhstore AS hstore CHECK (VALUE ? 'a')";
    check_all("parameters_ext", types, &kinds);
}

/// Functions and operators for a user's type, and what statements without the type mean by the same names.
#[test]
fn names_of_own_types_are_their_own() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let told = [plain.side("postgres"), cluster.side()].map(|side| {
        let target = side.create_database("own_names", "").unwrap();
        let mut client = Client::connect(&target).unwrap();
        client
            .run(
                "CREATE EXTENSION citext; CREATE TYPE mark AS ENUM ('x', 'y'); \
                 CREATE FUNCTION always(mark, mark) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'; \
                 CREATE OPERATOR = (LEFTARG = mark, RIGHTARG = mark, PROCEDURE = always); \
                 CREATE FUNCTION first(mark, mark) RETURNS mark LANGUAGE sql IMMUTABLE AS 'SELECT $1'; \
                 CREATE AGGREGATE max (mark) (SFUNC = first, STYPE = mark); \
                 CREATE FUNCTION lower(mark) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT ''own''::text'; \
                 CREATE TABLE things (k int PRIMARY KEY, v text, n int); \
                 CREATE TABLE marked (k int PRIMARY KEY, m mark, c citext)",
            )
            .unwrap();
        if side.is_cluster {
            client.run("SELECT create_distributed_table('things', 'k'), create_distributed_table('marked', 'k')").unwrap();
        }
        client.run("INSERT INTO things SELECT g, 'A' || g, g % 7 FROM generate_series(1, 50) g").unwrap();
        client.run("INSERT INTO marked SELECT g, CASE WHEN g % 2 = 0 THEN 'x' ELSE 'y' END::mark, 'C' || g FROM generate_series(1, 9) g").unwrap();
        let mut told = Vec::new();
        let plainly = [
            "SELECT max(n)::text || lower(min(v)) FROM things WHERE v = 'A5' OR n = 3",
            "WITH a AS (SELECT * FROM things WHERE n = 5) SELECT count(*) FROM a WHERE lower(v) = 'a5'",
            "SELECT count(*) FROM things a JOIN things b USING (k) WHERE a.n = b.n AND lower(a.v) <> 'a1'",
        ];
        let by_type = [
            "SELECT string_agg(k::text, ' ' ORDER BY k) FROM marked WHERE m = 'y'",
            "SELECT max(m)::text IS NULL FROM marked",
            "SELECT max(lower(m)) FROM marked",
            "SELECT count(*) FROM marked WHERE c = 'c5'",
            "SELECT count(*) FROM things WHERE 'x'::mark = 'y' AND lower(v) = 'a7'",
            "SELECT max(n) FROM things WHERE lower('y'::mark) = 'own'",
        ];
        for sql in plainly.iter().chain(&by_type) {
            told.push(client.value(sql).unwrap());
        }
        if side.is_cluster {
            for sql in plainly {
                let reply = client.simple(&format!("EXPLAIN {sql}"), None).unwrap();
                let plan = show_row(&reply.answers[0].rows[0]);
                assert!(plan.contains("Scatter") || plan.contains("Stage"), "{sql}: {plan}");
            }
        }
        // For values of built-in types; and then as before.
        let counted = "SELECT count(*) FROM things WHERE n = 5";
        client.run("CREATE FUNCTION never(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT false'").unwrap();
        client.run("CREATE SCHEMA odd; CREATE OPERATOR odd.= (LEFTARG = int, RIGHTARG = int, PROCEDURE = never)").unwrap();
        told.push(client.value(counted).unwrap());
        client.run("SET search_path = odd, pg_catalog, public").unwrap();
        told.push(client.value(counted).unwrap());
        client.run("RESET search_path; DROP OPERATOR odd.= (int, int)").unwrap();
        client.run("CREATE CAST (int AS mark) WITH INOUT AS IMPLICIT").unwrap();
        told.push(client.value(counted).unwrap());
        client.run("PREPARE p (mark) AS SELECT count(*) FROM things WHERE 'y' = $1").unwrap();
        told.push(client.value("EXECUTE p ('x')").unwrap());
        told
    });
    assert_eq!(told[0], told[1]);
}
