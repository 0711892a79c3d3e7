//! Carries out the rows of `bars.rs`: each on both sides in turn, some rounds, with the router's CPU time and system
//! calls.

use crate::bars::{Bar, Compared, QUERY_REPEATS, Row, Tables, Task, Verdict};
use crate::bouncer::Bouncer;
use crate::pgbench::{self, Length, Load, Outcome, Work};
use crate::report::{Spread, count, cut};
use crate::router::{Router, has_strace};
use crate::sides::{ClusterSide, PlainSide, check_balances, checkpoint, psql, psql_script, say};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How long strace counts.
const TRACE_SECONDS: u32 = 1;
/// Less CPU time than this is mostly rounding: /proc counts in steps of 10 ms.
const CPU_US_MIN: f64 = 50_000.0;
/// Keys that are looked at for nine in different shards.
const KEYS_TRIED: u32 = 100;
const KEYS: usize = 9;

/// Both sides, and what is between them.
pub struct Comparison<'a> {
    pub plain: &'a PlainSide,
    pub cluster: &'a ClusterSide,
    pub bouncer: Option<&'a Bouncer>,
    pub router: Router,
    pub scale: u32,
    pub seconds: u32,
    pub rounds: u32,
    /// pgbench_accounts as COPY writes it; made when it is needed.
    pub copy_file: PathBuf,
}

/// One side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Plain,
    Herd,
    Bouncer,
}

/// The measurements of one row.
#[derive(Debug, Default)]
struct Rounds {
    plain: Vec<Outcome>,
    herd: Vec<Outcome>,
    bouncer: Vec<Outcome>,
    /// Of the router, over all rounds.
    cpu_us: f64,
    statements: f64,
}

impl Comparison<'_> {
    /// Measures the rows; what fails is in the row's `error` and stops no other.
    pub fn measure(&self, bars: &[Bar]) -> Result<Vec<Row>, String> {
        self.load(bars)?;
        if !has_strace() {
            say("strace is not installed: system calls are not counted");
        }
        let mut turns: Vec<usize> = (0..bars.len()).collect();
        turns.sort_by_key(|index| bars[*index].turn());
        let mut rows: Vec<(usize, Row)> = Vec::new();
        for (number, index) in turns.into_iter().enumerate() {
            let bar = &bars[index];
            let row = self.row(bar);
            say(&format!("{:>2}/{} {}", number + 1, bars.len(), progress(&row)));
            rows.push((index, row));
        }
        for (tables, prefix) in [(Tables::Pgbench, "pgbench"), (Tables::Keyed, "keyed")] {
            if bars.iter().any(|bar| bar.tables() == tables) {
                check_balances(self.cluster.port, prefix)?;
            }
        }
        rows.sort_by_key(|(index, _)| *index);
        Ok(rows.into_iter().map(|(_, row)| row).collect())
    }

    /// The tables beside pgbench's own.
    fn load(&self, bars: &[Bar]) -> Result<(), String> {
        let needs = |needed: fn(Tables) -> bool| bars.iter().any(|bar| needed(bar.tables()));
        let keyed = needs(|tables| tables == Tables::Keyed);
        if keyed || bars.iter().any(|bar| bar.task == Task::Copy) {
            say("writing pgbench_accounts to a file");
            let copy = format!("\\copy pgbench_accounts to {}", quoted(&self.copy_file)?);
            psql(self.plain.port, &copy)?;
        }
        if keyed {
            say("loading the tables that are distributed by one key");
            let keys = [("keyed_branches", "bid"), ("keyed_tellers", "bid"), ("keyed_accounts", "bid")];
            let scale = [("scale", self.scale.to_string())];
            self.make(
                include_str!("../scripts/keyed_tables.sql"),
                &scale,
                &[&keys[..], &[("keyed_history", "bid")]].concat(),
            )?;
            for port in [self.plain.port, self.cluster.port] {
                psql(port, &format!("\\copy keyed_accounts from {}", quoted(&self.copy_file)?))?;
                for table in ["keyed_branches", "keyed_tellers", "keyed_accounts"] {
                    psql(port, &format!("VACUUM ANALYZE {table}"))?;
                }
            }
        }
        if needs(|tables| matches!(tables, Tables::Insert(_))) {
            let keys = [("insert_row", "id"), ("insert_nine", "k"), ("copy_accounts", "aid")];
            self.make(include_str!("../scripts/insert_tables.sql"), &[], &keys)?;
        }
        checkpoint(self.cluster, self.plain)
    }

    fn make(&self, script: &str, variables: &[(&str, String)], distributed: &[(&str, &str)]) -> Result<(), String> {
        for port in [self.plain.port, self.cluster.port] {
            psql_script(port, script, variables)?;
        }
        for (table, column) in distributed {
            psql(self.cluster.port, &format!("SELECT create_distributed_table('{table}', '{column}')"))?;
        }
        Ok(())
    }

    fn row(&self, bar: &Bar) -> Row {
        let mut rounds = Rounds::default();
        let mut error = self.rounds(bar, &mut rounds).err();
        let value = |outcome: &Outcome| match bar.compared {
            Compared::Throughput => outcome.tps,
            Compared::Latency | Compared::Speed => outcome.latency_ms,
        };
        let values = |outcomes: &[Outcome]| Spread::of(&outcomes.iter().map(value).collect::<Vec<_>>());
        let ratios = |outcomes: &[Outcome]| {
            let ratio = |(outcome, plain): (&Outcome, &Outcome)| match bar.compared {
                Compared::Throughput | Compared::Latency => value(outcome) / value(plain),
                Compared::Speed => value(plain) / value(outcome),
            };
            Spread::of(&outcomes.iter().zip(&rounds.plain).map(ratio).collect::<Vec<_>>())
        };
        let ratio = ratios(&rounds.herd).unwrap_or_else(Spread::nothing);
        let mut system_calls_per_statement = None;
        if error.is_none()
            && has_strace()
            && let Task::Pgbench { .. } = bar.task
        {
            match self.load_of(bar).and_then(|load| {
                self.empty(bar, Side::Herd)?;
                self.router.system_calls(self.cluster.port, &load, TRACE_SECONDS)
            }) {
                Ok(calls) => system_calls_per_statement = Some(calls),
                Err(why) => say(&format!("system calls of {} are not counted: {}", bar.workload, why.trim())),
            }
        }
        let failed = [&rounds.plain, &rounds.herd].into_iter().flatten().map(|outcome| outcome.failed).sum();
        if failed > 0 && error.is_none() {
            error = Some(format!("{failed} transactions failed"));
        }
        Row {
            workload: bar.workload,
            clients: bar.clients,
            compared: bar.compared,
            floor: bar.floor,
            goal: bar.goal,
            plain: values(&rounds.plain).unwrap_or_else(Spread::nothing),
            pgherd: values(&rounds.herd).unwrap_or_else(Spread::nothing),
            ratio,
            verdict: if error.is_some() { Verdict::Failed } else { bar.judge(ratio.median) },
            pgbouncer: values(&rounds.bouncer),
            pgbouncer_ratio: ratios(&rounds.bouncer),
            router_cpu_us_per_statement: (rounds.cpu_us >= CPU_US_MIN).then(|| rounds.cpu_us / rounds.statements),
            system_calls_per_statement,
            failed_transactions: failed,
            error,
        }
    }

    fn rounds(&self, bar: &Bar, rounds: &mut Rounds) -> Result<(), String> {
        checkpoint(self.cluster, self.plain)?;
        let load = self.load_of(bar)?;
        let mut sides = vec![Side::Plain, Side::Herd];
        if self.bouncer_takes_part(bar) {
            sides.push(Side::Bouncer);
        }
        for _ in 0..self.rounds {
            for side in &sides {
                self.empty(bar, *side)?;
                let cpu_us = self.router.cpu_us()?;
                let (outcome, statements) = self.once(bar, *side, &load)?;
                match side {
                    Side::Plain => rounds.plain.push(outcome),
                    Side::Bouncer => rounds.bouncer.push(outcome),
                    Side::Herd => {
                        rounds.herd.push(outcome);
                        rounds.cpu_us += self.router.cpu_us()? - cpu_us;
                        rounds.statements += statements;
                    }
                }
            }
            // Who goes first alternates too.
            sides.reverse();
        }
        Ok(())
    }

    /// A transaction pool cannot carry COPY or a single statement faster; prepared statements only newer versions can.
    fn bouncer_takes_part(&self, bar: &Bar) -> bool {
        match (bar.task, self.bouncer) {
            (Task::Pgbench { protocol, .. }, Some(bouncer)) => protocol != "prepared" || bouncer.prepared,
            _ => false,
        }
    }

    fn port(&self, side: Side) -> u16 {
        match side {
            Side::Plain => self.plain.port,
            Side::Herd => self.cluster.port,
            Side::Bouncer => self.bouncer.map_or(self.plain.port, |bouncer| bouncer.port),
        }
    }

    fn empty(&self, bar: &Bar, side: Side) -> Result<(), String> {
        let Some(table) = bar.emptied() else { return Ok(()) };
        let port = if side == Side::Bouncer { self.plain.port } else { self.port(side) };
        psql(port, &format!("TRUNCATE {table}"))?;
        // So much WAL that the next one's checkpoint would fall into somebody's measurement.
        if bar.task == Task::Copy { checkpoint(self.cluster, self.plain) } else { Ok(()) }
    }

    /// One measurement, and how many statements it was; of COPY, rows.
    fn once(&self, bar: &Bar, side: Side, load: &Load) -> Result<(Outcome, f64), String> {
        match bar.task {
            Task::Pgbench { .. } | Task::Query(_) => {
                // The settings are the router's.
                let options = load.options.filter(|_| side == Side::Herd);
                let outcome = pgbench::measure(self.port(side), &Load { options, ..load.clone() })?;
                Ok((outcome, outcome.transactions * f64::from(load.work.statements())))
            }
            Task::Copy => {
                let copy = format!("\\copy copy_accounts from {}", quoted(&self.copy_file)?);
                let started = Instant::now();
                psql(self.port(side), &copy)?;
                let seconds = started.elapsed().as_secs_f64();
                let outcome =
                    Outcome { tps: 1.0 / seconds, latency_ms: seconds * 1000.0, failed: 0, transactions: 1.0 };
                Ok((outcome, f64::from(self.scale) * 100_000.0))
            }
        }
    }

    /// What pgbench does for a row; COPY is psql's.
    fn load_of(&self, bar: &Bar) -> Result<Load, String> {
        let mut load = match bar.task {
            Task::Pgbench { work, protocol, reconnect, options, .. } => {
                let length = Length::Seconds(self.seconds);
                Load { reconnect, options, ..Load::new(work, protocol, bar.clients, length) }
            }
            Task::Query(script) => {
                let length = Length::Transactions(QUERY_REPEATS);
                Load::new(Work::Script(script), "simple", bar.clients, length)
            }
            Task::Copy => Load::new(Work::ReadOnly, "simple", bar.clients, Length::Transactions(1)),
        };
        if matches!(load.work, Work::Script(_)) {
            load.variables.push(("scale".to_owned(), self.scale.to_string()));
        }
        if bar.tables() == Tables::Insert("insert_nine") {
            load.variables.extend(self.nine_keys()?);
        }
        Ok(load)
    }

    /// The variables k1 to k9: keys in nine shards.
    fn nine_keys(&self) -> Result<Vec<(String, String)>, String> {
        let script: String = (1..=KEYS_TRIED)
            .map(|key| format!("SELECT get_shard_id_for_distribution_column('insert_nine', {key});\n"))
            .collect();
        let shards = psql_script(self.cluster.port, &script, &[])?;
        let mut seen = BTreeSet::new();
        let keys: Vec<usize> =
            shards.lines().enumerate().filter(|(_, shard)| seen.insert(*shard)).map(|(index, _)| index + 1).collect();
        if keys.len() < KEYS {
            return Err(format!("{} shards are too few for nine rows in nine of them", keys.len()));
        }
        Ok(keys
            .iter()
            .take(KEYS)
            .enumerate()
            .map(|(index, key)| (format!("k{}", index + 1), key.to_string()))
            .collect())
    }
}

/// A file's name for `\copy`.
fn quoted(path: &Path) -> Result<String, String> {
    match path.to_str() {
        Some(text) if !text.contains('\'') => Ok(format!("'{text}'")),
        _ => Err(format!("\"{}\" cannot be named in a command of psql", path.display())),
    }
}

fn progress(row: &Row) -> String {
    let name = format!("{}, {} client{}", row.workload, row.clients, if row.clients == 1 { "" } else { "s" });
    if row.verdict == Verdict::Failed && row.ratio.median.is_nan() {
        return format!("{name}: failed");
    }
    let value = |spread: &Spread| match row.compared {
        Compared::Throughput => format!("{} tps", count(spread.median)),
        Compared::Latency | Compared::Speed => format!("{} ms", cut(spread.median)),
    };
    format!(
        "{name}: plain {}, pgherd {}, ratio {:.2} ({:.2}–{:.2}), floor {}, goal {}: {}",
        value(&row.plain),
        value(&row.pgherd),
        row.ratio.median,
        row.ratio.min,
        row.ratio.max,
        row.floor,
        row.goal,
        row.verdict.mark()
    )
}
