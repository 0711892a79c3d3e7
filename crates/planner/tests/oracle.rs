//! Plans carried out over one PostgreSQL server must answer as the statement itself does there: schema `public` has the
//! whole tables, schemas `w0` and `w1` the rows of two workers. Rows, column names and column types are compared; after
//! a change, the rows and the worker each is on.
//!
//! Cases are those of `tests/golden` (rows in any order) and of `tests/oracle/*.sql` (rows in the order given, one
//! statement per line).
#![allow(clippy::unwrap_used)]

mod fixture;

use std::collections::HashSet;

use pgherd_catalog::{Snapshot, Table};
use pgherd_planner::{Combine, KeyValue, Plan, SessionView, Tier, plan};
use pgherd_sql::Splice;
use pgherd_testkit::client::{Answer, Client, Row};
use pgherd_testkit::{Plain, pg_bin};

const NOW: &str = "2026-01-02 03:04:05+00";
const WORKERS: usize = 2;

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Which worker a key's text is on.
fn place(key: &str) -> String {
    format!("coalesce(abs(pg_catalog.hashtext(({key})::text)) % {WORKERS}, 0)")
}

fn create(client: &mut Client, snapshot: &Snapshot) {
    client
        .run("CREATE SCHEMA w0; CREATE SCHEMA w1; SET timezone = 'UTC'; CREATE SEQUENCE public.orders_id_seq")
        .unwrap();
    let mut tables: Vec<_> = snapshot.all_tables().filter(|t| !t.has_user_types).collect();
    tables.sort_by_key(|t| t.oid);
    for table in tables {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|c| {
                let collation = if matches!(c.collation, 950 | 12345) { " COLLATE \"C\"" } else { "" };
                format!("{} {}{collation}", quoted(&c.name), c.type_name)
            })
            .collect();
        let key = table.key_column().map(|c| quoted(&c.name));
        let values: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(i, c)| {
                let is_key = key.as_deref() == Some(&quoted(&c.name));
                let (step, modulus) = if is_key { (1, 40) } else { (3 + 2 * i, 7 + 4 * i) };
                let n = format!("((g * {step} + {i}) % {modulus})");
                let value = match c.type_oid {
                    20 | 21 | 23 => format!("{n}::{}", c.type_name),
                    25 | 1042 | 1043 => format!("(array['a','B','b','Z','ä','','x y','10'])[{n} % 8 + 1] || {n}"),
                    1700 => format!("{n} / 7.0 + {i}"),
                    700 | 701 => format!("{n} / 4.0"),
                    1114 | 1184 => format!("timestamp '2025-12-25 10:00' + {n} * interval '7 hours'"),
                    1186 => format!("{n} * interval '13 hours'"),
                    16 => format!("{n} % 2 = 0"),
                    3802 => format!("jsonb_build_object('n', {n})"),
                    other => panic!("no values for {other}"),
                };
                if is_key || key.is_none() { value } else { format!("CASE WHEN g % {} > 0 THEN {value} END", 9 + i) }
            })
            .collect();
        for schema in ["public", "w0", "w1"] {
            client.run(&format!("CREATE TABLE {schema}.{} ({})", table.name, columns.join(", "))).unwrap();
        }
        let rows = if key.is_some() { 173 } else { 12 };
        client
            .run(&format!(
                "INSERT INTO public.{} SELECT {} FROM generate_series(1, {rows}) g",
                table.name,
                values.join(", ")
            ))
            .unwrap();
        for worker in 0..WORKERS {
            let filter = key.as_ref().map_or(String::new(), |k| format!(" WHERE {} = {worker}", place(k)));
            client.run(&format!("INSERT INTO w{worker}.{0} SELECT * FROM public.{0}{filter}", table.name)).unwrap();
        }
    }
}

struct Setup {
    client: Client,
    snapshot: Snapshot,
}

impl Setup {
    fn worker_sql(&self, splice: &Splice, worker: usize) -> String {
        splice.render(|oid| self.snapshot.by_oid.get(&oid).map(|t| format!("w{worker}.{}", quoted(&t.name))))
    }

    fn ask(&mut self, sql: &str) -> Result<Answer, String> {
        self.client.run(sql).map(|mut reply| reply.answers.pop().unwrap()).map_err(|e| e.to_string())
    }

    fn worker_of(&mut self, key: &KeyValue) -> usize {
        match key {
            KeyValue::Null => 0,
            KeyValue::Literal(text) => {
                let text = format!("'{}'", text.replace('\'', "''"));
                self.client.value(&format!("SELECT {}", place(&text))).unwrap().parse().unwrap()
            }
            KeyValue::Param(_) => panic!("no parameters here"),
        }
    }

    /// What the plan answers; none where the plan leaves the statement to others.
    fn answer(&mut self, plan: &Plan) -> Result<Option<Answer>, String> {
        match &plan.tier {
            Tier::Route(route) => {
                let worker = self.worker_of(&route.key);
                let sql = self.worker_sql(&route.sql, worker);
                self.ask(&sql).map(Some)
            }
            Tier::Scatter(scatter) => {
                let workers: Vec<usize> = match &scatter.keys {
                    Some(keys) => {
                        let set: HashSet<usize> = keys.iter().map(|k| self.worker_of(k)).collect();
                        (0..WORKERS).filter(|w| set.contains(w)).collect()
                    }
                    None => (0..WORKERS).collect(),
                };
                let mut all: Option<Answer> = None;
                for worker in workers {
                    let sql = self.worker_sql(&scatter.sql, worker);
                    let part = self.ask(&sql).map_err(|e| format!("{e}\n  on w{worker}: {sql}"))?;
                    match &mut all {
                        None => all = Some(part),
                        Some(all) => all.rows.extend(part.rows),
                    }
                }
                let mut all = all.unwrap();
                match &scatter.combine {
                    Combine::Concatenate => {}
                    Combine::ConcatenateLimit(n) => all.rows.truncate(*n as usize),
                    Combine::Merge(merge) => {
                        let columns = all.columns.clone().unwrap();
                        assert_eq!(columns.len(), merge.columns, "{plan}");
                        let types: Vec<u32> = columns.iter().map(|c| c.type_oid).collect();
                        let names: Vec<String> = columns
                            .iter()
                            .map(|c| {
                                self.client.value(&format!("SELECT format_type({}, {})", c.type_oid, c.typmod)).unwrap()
                            })
                            .collect();
                        let partial = partial(&all.rows, &names);
                        let sql = merge.render(&partial, &types);
                        all = self.ask(&sql).map_err(|e| format!("{e}\n  merge: {}", merge.sql))?;
                    }
                }
                Ok(Some(all))
            }
            _ => Ok(None),
        }
    }
}

fn partial(rows: &[Row], types: &[String]) -> String {
    let casts: Vec<String> =
        types.iter().enumerate().map(|(i, name)| format!("v{0}::text::{name} AS c{0}", i + 1)).collect();
    let names: Vec<String> = (1..=types.len()).map(|i| format!("v{i}")).collect();
    let row = |row: &Row| {
        let fields: Vec<String> = row
            .iter()
            .map(|value| match value {
                Some(value) => format!("'{}'", String::from_utf8(value.clone()).unwrap().replace('\'', "''")),
                None => "NULL".to_owned(),
            })
            .collect();
        format!("({})", fields.join(", "))
    };
    let empty = vec![None; types.len()];
    let values: Vec<String> = std::iter::once(&empty).chain(rows).map(row).collect();
    let (casts, values, names) = (casts.join(", "), values.join(", "), names.join(", "));
    format!("(SELECT {casts} FROM (VALUES {values}) v({names}) OFFSET 1) AS partial")
}

fn shown(answer: &Answer, ordered: bool) -> Vec<String> {
    let mut rows: Vec<String> = answer
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|v| v.as_ref().map_or("NULL".to_owned(), |v| String::from_utf8_lossy(v).into_owned()))
                .collect::<Vec<_>>()
                .join("|")
        })
        .collect();
    if !ordered {
        rows.sort();
    }
    rows.insert(
        0,
        answer.columns.iter().flatten().map(|c| format!("{} {}", c.name, c.type_oid)).collect::<Vec<_>>().join("|"),
    );
    rows
}

/// SQL of the golden cases that need no parameters or session settings.
fn golden_cases() -> Vec<String> {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut cases = Vec::new();
    for topic in ["route", "no_route", "scatter", "aggregates", "federate"] {
        let text = std::fs::read_to_string(directory.join(format!("{topic}.txt"))).unwrap();
        for block in text.split("\n\n").map(str::trim) {
            let Some((sql, _)) = block.split_once("\n=>\n") else { continue };
            let sql: Vec<&str> = sql.lines().filter(|l| !l.starts_with("#")).collect();
            if sql.iter().any(|l| l.starts_with("-- callback") || l.starts_with("-- temp")) {
                continue;
            }
            let sql: Vec<&str> = sql.into_iter().filter(|l| !l.starts_with("--")).collect();
            let sql = sql.join("\n");
            let lower = sql.to_ascii_lowercase();
            // Which rows a bare LIMIT keeps, and what random() gives, is any server's choice.
            let open = ["$1", "random()", "limit", "distinct on", "array_agg", "now()", "local_t", "moods"];
            // These are sent by the parent's name, which is another table here.
            let open = [&open[..], &["select public.", "select pgbench_accounts from"]].concat();
            if !open.iter().any(|word| lower.contains(word)) {
                cases.push(sql);
            }
        }
    }
    cases
}

fn lines(name: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("--")).map(str::to_owned).collect()
}

fn planned(snapshot: &Snapshot, sql: &str) -> Plan {
    let (path, temp) = (["public".to_owned()], HashSet::new());
    let session =
        SessionView { search_path: &path, temp_relations: &temp, callback: false, multi_statement_txn_now: Some(NOW) };
    let statement = pgherd_sql::split(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).remove(0);
    plan(&statement, snapshot, &session)
}

fn contents(setup: &mut Setup, schema: &str, table: &Table) -> Vec<String> {
    let answer = setup.ask(&format!("SELECT * FROM {schema}.{}", table.name)).unwrap();
    shown(&answer, false).split_off(1)
}

#[test]
fn plans_answer_as_one_server_does() {
    let server = Plain::start(&pg_bin().unwrap(), "postgres").unwrap();
    let mut setup = Setup { client: Client::connect(&server.target).unwrap(), snapshot: fixture::snapshot() };
    create(&mut setup.client, &setup.snapshot);
    let mut wrong = Vec::new();
    let (mut compared, mut left) = (0, 0);

    setup.client.run("SET statement_timeout = '20s'").unwrap();
    let cases =
        golden_cases().into_iter().map(|c| (c, false)).chain(lines("select.sql").into_iter().map(|c| (c, true)));
    for (sql, from_file) in cases {
        let plan = planned(&setup.snapshot, &sql);
        let ours = setup.answer(&plan);
        if let Ok(None) = &ours {
            left += 1;
            if from_file {
                wrong.push(format!("{sql}\n  not planned: {plan}"));
            }
            continue;
        }
        let whole = setup.ask(&sql.replace("now()", &format!("'{NOW}'::timestamptz")));
        let ordered = from_file && sql.contains("order by");
        match (ours, whole) {
            (Ok(None), _) => {}
            (Ok(Some(ours)), Ok(whole)) => {
                compared += 1;
                let (ours, whole) = (shown(&ours, ordered), shown(&whole, ordered));
                if ours != whole {
                    let at = ours.iter().zip(&whole).position(|(a, b)| a != b).unwrap_or(ours.len().min(whole.len()));
                    wrong.push(format!(
                        "{sql}\n  {} rows, want {}; first difference at {at}: {:?}, want {:?}\n{plan}",
                        ours.len(),
                        whole.len(),
                        ours.get(at),
                        whole.get(at)
                    ));
                }
            }
            (Err(ours), Ok(_)) => wrong.push(format!("{sql}\n  {ours}\n{plan}")),
            (Ok(Some(_)), Err(whole)) => wrong.push(format!("{sql}\n  the plan answers, the server says {whole}")),
            (Err(_), Err(_)) => compared += 1,
        }
    }

    for sql in lines("modify.sql") {
        let plan = planned(&setup.snapshot, &sql);
        let table = plan.tables.first().unwrap().clone();
        setup.ask("BEGIN").unwrap();
        setup.ask(&sql.replace("now()", &format!("'{NOW}'::timestamptz"))).unwrap_or_else(|e| panic!("{e}"));
        let whole = contents(&mut setup, "public", &table);
        setup.ask("ROLLBACK; BEGIN").unwrap();
        let ours = match &plan.tier {
            Tier::InsertRows(insert) => {
                for row in &insert.rows {
                    let pgherd_planner::RowKey::Value(key) = &row.key else { panic!("{sql}: computed") };
                    let worker = setup.worker_of(key);
                    let fields: Vec<String> = row
                        .fields
                        .iter()
                        .map(|f| match f {
                            pgherd_planner::Field::Text(splice) => setup.worker_sql(splice, worker),
                            pgherd_planner::Field::Evaluate { sql, type_name } => format!("({sql})::{type_name}"),
                        })
                        .collect();
                    let head = setup.worker_sql(&insert.head, worker);
                    let tail = setup.worker_sql(&insert.tail, worker);
                    setup.ask(&format!("{head}({}) {tail}", fields.join(", "))).unwrap();
                }
                Ok(Some(()))
            }
            _ => setup.answer(&plan).map(|a| a.map(|_| ())),
        };
        match ours {
            Ok(Some(())) => {
                compared += 1;
                let mut parts = contents(&mut setup, "w0", &table);
                parts.extend(contents(&mut setup, "w1", &table));
                parts.sort();
                if parts != whole {
                    wrong.push(format!("{sql}\n  the rows differ: {} rows, want {}\n{plan}", parts.len(), whole.len()));
                }
                let key = quoted(&table.key_column().unwrap().name);
                for worker in 0..WORKERS {
                    let astray =
                        format!("SELECT count(*) FROM w{worker}.{} WHERE {} <> {worker}", table.name, place(&key));
                    let astray = setup.client.value(&astray).unwrap();
                    if astray != "0" {
                        wrong.push(format!("{sql}\n  {astray} rows are on the wrong worker\n{plan}"));
                    }
                }
            }
            Ok(None) => wrong.push(format!("{sql}\n  not planned: {plan}")),
            Err(error) => wrong.push(format!("{sql}\n  {error}\n{plan}")),
        }
        setup.ask("ROLLBACK").unwrap();
    }
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 100, "only {compared} compared, {left} left to the coordinator");
}
