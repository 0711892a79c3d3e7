//! What definitions cost: each some times on both sides in turns, one client. Once in a database that has little else,
//! and once beside thousands of tables and functions.

use crate::bars::Verdict;
use crate::report::{Spread, cut, median};
use crate::sides::{ClusterSide, PlainSide, say};
use std::time::Instant;
use tokio::runtime::Runtime;
use tokio_postgres::{Config, NoTls};

const DATABASE: &str = "pgherd_bench_definitions";

/// Definitions in one transaction.
const IN_ONE: u32 = 1000;

/// One row. `{n}` in its statements is another number each time.
struct Definition {
    name: &'static str,
    /// Not timed.
    before: &'static str,
    statement: &'static str,
    /// Only a cluster knows it.
    is_ours: bool,
    /// What may be reached: the floor and the goal.
    bar: Bar,
}

enum Bar {
    /// So many times as long as on the plain server.
    Ratio {
        floor: f64,
        goal: f64,
    },
    Milliseconds {
        floor: f64,
        goal: f64,
    },
}

const DEFINITIONS: [Definition; 8] = [
    plain_bar("CREATE TABLE, local", "", "CREATE TABLE made_{n} (a int PRIMARY KEY, b text)"),
    plain_bar("CREATE TEMPORARY TABLE", "", "CREATE TEMPORARY TABLE held_{n} (a int PRIMARY KEY, b text)"),
    plain_bar("CREATE FUNCTION", "", "CREATE FUNCTION made_{n}(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'"),
    plain_bar("GRANT", "", "GRANT SELECT ON local_table TO PUBLIC"),
    Definition {
        name: "ALTER TABLE ADD COLUMN, distributed",
        before: "",
        statement: "ALTER TABLE spread ADD COLUMN c_{n} int",
        is_ours: false,
        bar: Bar::Milliseconds { floor: 50.0, goal: 25.0 },
    },
    Definition {
        name: "CREATE INDEX, distributed",
        before: "",
        statement: "CREATE INDEX ON indexed (b)",
        is_ours: false,
        bar: Bar::Milliseconds { floor: 50.0, goal: 25.0 },
    },
    Definition {
        name: "TRUNCATE, distributed",
        before: "",
        statement: "TRUNCATE emptied",
        is_ours: false,
        bar: Bar::Milliseconds { floor: 50.0, goal: 25.0 },
    },
    Definition {
        name: "create_distributed_table",
        before: "CREATE TABLE apart_{n} (a int PRIMARY KEY, b text)",
        statement: "SELECT create_distributed_table('apart_{n}', 'a', colocate_with => 'none')",
        is_ours: true,
        bar: Bar::Milliseconds { floor: 120.0, goal: 60.0 },
    },
];

const fn plain_bar(name: &'static str, before: &'static str, statement: &'static str) -> Definition {
    Definition { name, before, statement, is_ours: false, bar: Bar::Ratio { floor: 10.0, goal: 5.0 } }
}

/// What was measured.
#[derive(Debug, serde::Serialize)]
pub struct Row {
    pub name: String,
    /// How many other tables, and functions, there are.
    pub beside: u32,
    pub plain_ms: Option<Spread>,
    pub router_ms: Option<Spread>,
    /// Of the medians.
    pub ratio: Option<f64>,
    pub goal: String,
    pub floor: String,
    pub verdict: Verdict,
    pub error: Option<String>,
}

/// One connection to one of the two.
struct Side {
    name: &'static str,
    runtime: Runtime,
    client: tokio_postgres::Client,
}

impl Side {
    fn new(name: &'static str, port: u16, database: &str) -> Result<Side, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
        let mut config = Config::new();
        config.host("127.0.0.1").port(port).user("postgres").dbname(database);
        let connected = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            tokio::spawn(connection);
            Ok(client)
        });
        let client = connected.map_err(|e: tokio_postgres::Error| format!("could not connect to {name}: {e}"))?;
        Ok(Side { name, runtime, client })
    }

    /// Milliseconds.
    fn run(&self, statement: &str) -> Result<f64, String> {
        let started = Instant::now();
        let ran = self.runtime.block_on(self.client.batch_execute(statement));
        let ms = started.elapsed().as_secs_f64() * 1e3;
        let said = |error: tokio_postgres::Error| match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => error.to_string(),
        };
        ran.map(|()| ms).map_err(|error| format!("{}: {statement}: {}", self.name, said(error)))
    }
}

/// `beside`: how many tables and functions there are in the second pass.
pub fn measure(plain: &PlainSide, cluster: &ClusterSide, rounds: u32, beside: u32) -> Result<Vec<Row>, String> {
    let connect = |database: &str| -> Result<[Side; 2], String> {
        Ok([Side::new("the plain server", plain.port, database)?, Side::new("the router", cluster.port, database)?])
    };
    let mut rows = Vec::new();
    for beside in [0, beside] {
        say(&format!("definitions beside {beside} tables and functions, {rounds} rounds"));
        // A database of its own: so many tables are more than one transaction can drop.
        for side in &connect("postgres")? {
            side.run(&format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
            side.run(&format!("CREATE DATABASE {DATABASE}"))?;
        }
        let sides = connect(DATABASE)?;
        prepare(&sides, beside)?;
        for definition in &DEFINITIONS {
            rows.push(measure_one(definition, &sides, rounds, beside));
        }
        rows.push(measure_many(&sides, beside));
    }
    for side in &connect("postgres")? {
        side.run(&format!("DROP DATABASE {DATABASE}"))?;
    }
    Ok(rows)
}

fn prepare(sides: &[Side; 2], beside: u32) -> Result<(), String> {
    for side in sides {
        side.run("CREATE TABLE local_table (a int)")?;
        for table in ["spread", "indexed", "emptied"] {
            side.run(&format!("CREATE TABLE {table} (a int PRIMARY KEY, b text)"))?;
        }
    }
    let [_, router] = sides;
    router.run("SET citus.shard_count = 32")?;
    for table in ["spread", "indexed", "emptied"] {
        router.run(&format!("SELECT create_distributed_table('{table}', 'a')"))?;
    }
    for side in sides {
        for first in (0..beside).step_by(500) {
            let of = |n: u32| {
                format!(
                    "CREATE TABLE other_{n} (a int PRIMARY KEY, b text, c numeric DEFAULT 0); \
                     CREATE FUNCTION other_{n}(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN $1 + {n}; END';"
                )
            };
            let all: String = (first..beside.min(first + 500)).map(of).collect();
            side.run(&all)?;
        }
        for catalog in ["class", "attribute", "depend", "proc", "type"] {
            side.run(&format!("ANALYZE pg_catalog.pg_{catalog}"))?;
        }
    }
    Ok(())
}

fn measure_one(definition: &Definition, sides: &[Side; 2], rounds: u32, beside: u32) -> Row {
    let mut times = [Vec::new(), Vec::new()];
    let mut error = None;
    'rounds: for n in 0..rounds {
        for (at, side) in sides.iter().enumerate() {
            if definition.is_ours && at == 0 {
                continue;
            }
            let filled = |text: &str| text.replace("{n}", &n.to_string());
            let before = if definition.before.is_empty() { Ok(0.0) } else { side.run(&filled(definition.before)) };
            match before.and_then(|_| side.run(&filled(definition.statement))) {
                Ok(ms) => times[at].push(ms),
                Err(failed) => {
                    error = Some(failed);
                    break 'rounds;
                }
            }
        }
    }
    judged(definition.name.to_owned(), beside, &times, &definition.bar, error)
}

/// Each in a message of its own, as migration tools send them.
fn measure_many(sides: &[Side; 2], beside: u32) -> Row {
    let mut times = [Vec::new(), Vec::new()];
    let mut error = None;
    for (at, side) in sides.iter().enumerate() {
        let all = || -> Result<f64, String> {
            let mut ms = side.run("BEGIN")?;
            for n in 0..IN_ONE {
                ms += side.run(&format!("CREATE TABLE inside_{n} (a int PRIMARY KEY, b text)"))?;
            }
            Ok(ms + side.run("COMMIT")?)
        };
        match all() {
            Ok(ms) => times[at].push(ms / f64::from(IN_ONE)),
            Err(failed) => {
                error = Some(failed);
                break;
            }
        }
    }
    let bar = Bar::Ratio { floor: 6.0, goal: 3.0 };
    judged(format!("CREATE TABLE, {IN_ONE} in one transaction, each"), beside, &times, &bar, error)
}

fn judged(name: String, beside: u32, times: &[Vec<f64>; 2], bar: &Bar, error: Option<String>) -> Row {
    let (plain, router) = (median(&times[0]), median(&times[1]));
    let (value, floor, goal, unit) = match bar {
        Bar::Ratio { floor, goal } => (router / plain, floor, goal, "×"),
        Bar::Milliseconds { floor, goal } => (router, floor, goal, " ms"),
    };
    let verdict = match () {
        () if error.is_some() => Verdict::Failed,
        () if value <= *goal => Verdict::Goal,
        () if value <= *floor => Verdict::Floor,
        () => Verdict::Below,
    };
    let ratio = router / plain;
    Row {
        name,
        beside,
        plain_ms: Spread::of(&times[0]),
        router_ms: Spread::of(&times[1]),
        ratio: ratio.is_finite().then_some(ratio),
        goal: format!("{goal}{unit}"),
        floor: format!("{floor}{unit}"),
        verdict,
        error,
    }
}

/// For the report.
pub fn table(rows: &[Row]) -> Vec<Vec<String>> {
    let head = ["definition", "other tables", "plain ms", "router ms", "ratio", "floor", "goal", "holds"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    let ms = |spread: &Option<Spread>| spread.map_or(String::new(), |spread| cut(spread.median));
    for row in rows {
        table.push(vec![
            row.name.clone(),
            row.beside.to_string(),
            ms(&row.plain_ms),
            ms(&row.router_ms),
            row.ratio.map_or(String::new(), |ratio| format!("{}×", cut(ratio))),
            row.floor.clone(),
            row.goal.clone(),
            row.verdict.mark().to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_judged_by_its_bar() {
        let of = |plain: f64, router: f64, bar: &Bar| {
            judged(String::new(), 0, &[vec![plain], vec![router]], bar, None).verdict
        };
        let ratio = Bar::Ratio { floor: 10.0, goal: 5.0 };
        assert_eq!([4.0, 9.0, 11.0].map(|ms| of(1.0, ms, &ratio)), [Verdict::Goal, Verdict::Floor, Verdict::Below]);
        let ms = Bar::Milliseconds { floor: 50.0, goal: 25.0 };
        assert_eq!([25.0, 50.0, 51.0].map(|ms_| of(1.0, ms_, &ms)), [Verdict::Goal, Verdict::Floor, Verdict::Below]);
        // Nothing was measured.
        let nothing = judged(String::new(), 0, &[vec![], vec![]], &ratio, None);
        assert_eq!((nothing.verdict, nothing.ratio), (Verdict::Below, None));
    }
}
