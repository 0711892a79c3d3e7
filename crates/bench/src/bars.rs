//! What is measured beside one plain PostgreSQL and what it should reach: the floor below which the router costs too
//! much, and the goal. Rows of data, and how a row is judged; `compare.rs` measures them.

use crate::pgbench::{Script, Work};
use crate::report::{Spread, count, cut};

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Bar {
    pub workload: &'static str,
    pub clients: u32,
    pub task: Task,
    pub compared: Compared,
    pub floor: f64,
    pub goal: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Clients that work for some seconds.
    Pgbench {
        work: Work,
        protocol: &'static str,
        reconnect: bool,
        /// What connections to the router ask for at their start.
        options: Option<&'static str>,
        tables: Tables,
    },
    /// COPY of pgbench_accounts' rows into an empty table like it.
    Copy,
    /// A statement, some times one after another.
    Query(Script),
}

/// The tables that a row needs, so that a part of the rows does not load what it has no use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    Pgbench,
    /// Those of `scripts/keyed_tables.sql`.
    Keyed,
    /// Those of `scripts/insert_tables.sql`; the one that is named is emptied before each measurement.
    Insert(&'static str),
}

/// What the ratio is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compared {
    /// Transactions a second, the router's divided by the plain server's.
    Throughput,
    /// Milliseconds, the router's divided by the plain server's: small is good.
    Latency,
    /// Milliseconds, the plain server's divided by the router's.
    Speed,
}

/// How a row did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Goal,
    Floor,
    /// Not even the floor.
    Below,
    Failed,
}

impl Verdict {
    pub fn mark(self) -> &'static str {
        match self {
            Verdict::Goal => "goal",
            Verdict::Floor => "floor",
            Verdict::Below => "NO",
            Verdict::Failed => "FAILED",
        }
    }
}

impl Bar {
    pub fn tables(&self) -> Tables {
        match self.task {
            Task::Pgbench { tables, .. } => tables,
            Task::Copy => Tables::Insert("copy_accounts"),
            Task::Query(_) => Tables::Pgbench,
        }
    }

    /// The table that is emptied before each measurement.
    pub fn emptied(&self) -> Option<&'static str> {
        match self.tables() {
            Tables::Insert(table) => Some(table),
            _ => None,
        }
    }

    /// Reads come before what makes dead rows; the table is printed in the order of [`bars`].
    pub fn turn(&self) -> u32 {
        match self.task {
            Task::Pgbench { work: Work::ReadOnly, .. } => 0,
            Task::Query(_) => 1,
            Task::Copy => 2,
            Task::Pgbench { .. } => 3,
        }
    }

    pub fn judge(&self, ratio: f64) -> Verdict {
        let holds = |bar: f64| match self.compared {
            Compared::Latency => ratio <= bar,
            Compared::Throughput | Compared::Speed => ratio >= bar,
        };
        // A ratio that is no number holds nothing.
        match () {
            () if holds(self.goal) => Verdict::Goal,
            () if holds(self.floor) => Verdict::Floor,
            () => Verdict::Below,
        }
    }
}

pub const COUNT: Script =
    Script { name: "select count(*)", text: include_str!("../scripts/select_count.sql"), statements: 1 };
pub const GROUP: Script =
    Script {
        name: "GROUP BY … ORDER BY … LIMIT", text: include_str!("../scripts/select_group.sql"), statements: 1
    };
pub const KEYED: Script =
    Script { name: "TPC-B by one key", text: include_str!("../scripts/keyed_tpcb.sql"), statements: 7 };
pub const ROW: Script =
    Script { name: "insert of one row", text: include_str!("../scripts/insert_row.sql"), statements: 1 };
pub const NINE: Script =
    Script { name: "insert of nine rows", text: include_str!("../scripts/insert_nine.sql"), statements: 1 };
/// How often a [`Task::Query`] runs in one measurement.
pub const QUERY_REPEATS: u32 = 3;

/// All rows.
pub fn bars() -> Vec<Bar> {
    let select = |protocol| Task::Pgbench {
        work: Work::ReadOnly,
        protocol,
        reconnect: false,
        options: None,
        tables: Tables::Pgbench,
    };
    let prepared =
        |work, tables, options| Task::Pgbench { work, protocol: "prepared", reconnect: false, options, tables };
    let nine = Tables::Insert("insert_nine");
    let two_phase = Some("-c citus.multi_shard_commit_protocol=2pc");
    let one_phase = Some("-c citus.multi_shard_commit_protocol=1pc");
    let reconnecting = Task::Pgbench {
        work: Work::ReadOnly,
        protocol: "simple",
        reconnect: true,
        options: None,
        tables: Tables::Pgbench,
    };
    let bar = |workload, clients, task, compared, floor, goal| Bar { workload, clients, task, compared, floor, goal };
    use Compared::{Latency, Speed, Throughput};
    vec![
        bar("pgbench -S prepared", 128, select("prepared"), Throughput, 1.3, 1.5),
        bar("pgbench -S prepared", 32, select("prepared"), Throughput, 0.85, 1.1),
        bar("pgbench -S prepared", 8, select("prepared"), Throughput, 0.5, 0.8),
        bar("pgbench -S prepared, latency", 1, select("prepared"), Latency, 2.0, 1.6),
        bar("pgbench -S simple", 128, select("simple"), Throughput, 1.4, 1.7),
        bar("pgbench -S extended", 128, select("extended"), Throughput, 1.4, 1.7),
        bar("pgbench -S -C", 32, reconnecting, Throughput, 3.0, 6.0),
        bar("TPC-B prepared, 2pc", 32, prepared(Work::ReadWrite, Tables::Pgbench, two_phase), Throughput, 0.4, 0.6),
        bar("TPC-B prepared by one key", 32, prepared(Work::Script(KEYED), Tables::Keyed, None), Throughput, 0.9, 1.1),
        bar(
            "insert of one row",
            32,
            prepared(Work::Script(ROW), Tables::Insert("insert_row"), None),
            Throughput,
            0.9,
            1.2,
        ),
        bar("insert of nine rows, 2pc", 32, prepared(Work::Script(NINE), nine, two_phase), Throughput, 0.2, 0.35),
        bar("insert of nine rows, 1pc", 32, prepared(Work::Script(NINE), nine, one_phase), Throughput, 0.4, 0.7),
        bar("COPY pgbench_accounts", 1, Task::Copy, Speed, 0.8, 1.0),
        bar(COUNT.name, 1, Task::Query(COUNT), Speed, 0.9, 1.2),
        bar(GROUP.name, 1, Task::Query(GROUP), Speed, 0.9, 1.2),
    ]
}

/// A row as it was measured.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Row {
    pub workload: &'static str,
    pub clients: u32,
    pub compared: Compared,
    pub floor: f64,
    pub goal: f64,
    /// Transactions a second, or milliseconds where the ratio is one of times.
    pub plain: Spread,
    pub pgherd: Spread,
    /// Of each round's two measurements, which are neighbours in time.
    pub ratio: Spread,
    pub verdict: Verdict,
    pub pgbouncer: Option<Spread>,
    pub pgbouncer_ratio: Option<Spread>,
    /// The router's CPU time; for COPY, per row.
    pub router_cpu_us_per_statement: Option<f64>,
    pub system_calls_per_statement: Option<f64>,
    pub failed_transactions: u64,
    pub error: Option<String>,
}

/// The rows as a table, the first the heading.
pub fn table(rows: &[Row]) -> Vec<Vec<String>> {
    let heading = [
        "workload",
        "clients",
        "plain",
        "pgherd",
        "ratio",
        "min–max",
        "floor",
        "goal",
        "holds",
        "CPU µs",
        "syscalls",
        "pgbouncer",
        "ratio",
        "min–max",
    ];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        let value = |spread: &Spread| match row.compared {
            Compared::Throughput => format!("{}/s", count(spread.median)),
            Compared::Latency | Compared::Speed => format!("{} ms", cut(spread.median)),
        };
        let maybe = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let bar = |bar: f64| match row.compared {
            Compared::Latency => format!("≤ {bar}"),
            Compared::Throughput | Compared::Speed => bar.to_string(),
        };
        vec![
            row.workload.to_owned(),
            row.clients.to_string(),
            value(&row.plain),
            value(&row.pgherd),
            format!("{:.2}", row.ratio.median),
            format!("{:.2}–{:.2}", row.ratio.min, row.ratio.max),
            bar(row.floor),
            bar(row.goal),
            row.verdict.mark().to_owned(),
            maybe(row.router_cpu_us_per_statement.map(cut)),
            maybe(row.system_calls_per_statement.map(|calls| format!("{calls:.2}"))),
            maybe(row.pgbouncer.as_ref().map(value)),
            maybe(row.pgbouncer_ratio.map(|ratio| format!("{:.2}", ratio.median))),
            maybe(row.pgbouncer_ratio.map(|ratio| format!("{:.2}–{:.2}", ratio.min, ratio.max))),
        ]
    }));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(workload: &str) -> Bar {
        bars().into_iter().find(|bar| bar.workload == workload).expect("a bar of that name")
    }

    #[test]
    fn a_ratio_of_speed_must_reach_the_bar_and_one_of_latency_must_not_exceed_it() {
        let (throughput, latency) = (named("pgbench -S simple"), named("pgbench -S prepared, latency"));
        for (bar, ratio, verdict) in [
            (throughput, 1.7, Verdict::Goal),
            (throughput, 1.69, Verdict::Floor),
            (throughput, 1.39, Verdict::Below),
            (latency, 1.6, Verdict::Goal),
            (latency, 1.61, Verdict::Floor),
            (latency, 2.01, Verdict::Below),
            (latency, f64::NAN, Verdict::Below),
        ] {
            assert_eq!(bar.judge(ratio), verdict, "{} with {ratio}", bar.workload);
        }
    }

    #[test]
    fn a_goal_is_beyond_its_floor() {
        for bar in bars() {
            assert_eq!(bar.judge(bar.goal), Verdict::Goal, "{}", bar.workload);
            assert_eq!(bar.judge(bar.floor), Verdict::Floor, "{}", bar.workload);
        }
    }

    #[test]
    fn scripts_have_as_many_statements_as_they_say() {
        for script in [COUNT, GROUP, KEYED, ROW, NINE] {
            let lines = script.text.lines().filter(|line| !line.starts_with("--") && !line.starts_with('\\'));
            assert_eq!(lines.filter(|line| line.ends_with(';')).count(), script.statements as usize, "{}", script.name);
        }
    }

    #[test]
    fn a_row_shows_what_was_measured_and_a_dash_for_what_was_not() {
        let spread = |values: &[f64]| Spread::of(values).expect("values");
        let mut row = Row {
            workload: "pgbench -S prepared",
            clients: 32,
            compared: Compared::Throughput,
            floor: 0.85,
            goal: 1.1,
            plain: spread(&[50_000.0, 60_000.0, 55_000.0]),
            pgherd: spread(&[55_000.0, 57_000.0, 60_500.0]),
            ratio: spread(&[1.1, 0.95, 1.1]),
            verdict: Verdict::Goal,
            pgbouncer: None,
            pgbouncer_ratio: None,
            router_cpu_us_per_statement: Some(6.25),
            system_calls_per_statement: None,
            failed_transactions: 0,
            error: None,
        };
        let first = table(std::slice::from_ref(&row));
        row.compared = Compared::Latency;
        row.pgbouncer = Some(spread(&[0.0625]));
        row.pgbouncer_ratio = Some(spread(&[1.5]));
        let shown: Vec<String> =
            [&first[1..], &table(&[row])[1..]].concat().iter().map(|row| row[2..].join(" ")).collect();
        assert_eq!(
            shown,
            [
                "55,000/s 57,000/s 1.10 0.95–1.10 0.85 1.1 goal 6.25 – – – –",
                "55,000 ms 57,000 ms 1.10 0.95–1.10 ≤ 0.85 ≤ 1.1 goal 6.25 – 0.0625 ms 1.50 1.50–1.50",
            ]
        );
    }
}
