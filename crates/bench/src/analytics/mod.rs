//! `make analytics`: the shapes of TPC-H's and CH-benCHmark's queries on a cluster and on one plain PostgreSQL with the
//! same rows, the tables spread in two ways. Answers must be the same; times are compared. It is neither benchmark:
//! rows, sizes and wording are our own.

mod answer;
mod client;
mod layout;
mod results;

use crate::machine::{commit, machine};
use crate::report::median;
use crate::sides::{
    ClusterSide, PlainSide, Setup, beside, check_alike, checkpoint, delete_cluster, psql, psql_script, say,
    start_cluster, work_dir,
};
use answer::{Rows, difference};
use client::{Client, Outcome};
use layout::{BENCHMARKS, Benchmark, Layout, Query};
use results::{Compared, Part, Results, Sameness};
use std::path::PathBuf;
use std::time::Instant;

/// One that takes longer is not run again.
const REPEATED_MS_MAX: f64 = 5_000.0;

/// Run the shapes of TPC-H and CH-benCHmark on a cluster and one plain PostgreSQL, compare answers and times.
#[derive(Debug, clap::Args)]
pub struct Analytics {
    #[command(flatten)]
    setup: Setup,

    /// How many rows: 1 is more than 100 MB for each of the two
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,

    /// Which of the two
    #[arg(long, value_delimiter = ',', default_value = "tpch,ch")]
    benchmarks: Vec<String>,

    /// How tables are spread: mostly by the columns that they are joined by, or mostly not
    #[arg(long, value_delimiter = ',', default_value = "colocated,apart")]
    layouts: Vec<String>,

    /// Only these queries, comma-separated
    #[arg(long, value_delimiter = ',')]
    queries: Vec<u32>,

    /// Measurements of each query after a first one, of which the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seconds after which a query is given up
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,

    /// Where the report goes
    #[arg(long, default_value = "bench/results")]
    out: PathBuf,

    /// When all is measured, leave the servers and their tables to be looked at until Enter
    #[arg(long)]
    hold: bool,
}

/// Below this some queries would find nothing.
fn scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.2..=1000.0).contains(&scale) => Ok(scale),
        _ => Err("a number from 0.2 to 1000".to_owned()),
    }
}

/// The two, and a connection to each.
struct Pair<'a> {
    cluster: &'a ClusterSide,
    plain: &'a PlainSide,
    herd: Client,
    one: Client,
}

impl Analytics {
    pub fn run(self) -> Result<(), String> {
        let known = |names: &[String], all: &[&str]| match names.iter().find(|name| !all.contains(&name.as_str())) {
            Some(name) => Err(format!("\"{name}\" is none of: {}", all.join(", "))),
            None => Ok(()),
        };
        known(&self.benchmarks, &BENCHMARKS.each_ref().map(|benchmark| benchmark.name))?;
        known(&self.layouts, &["colocated", "apart"])?;
        let dir = match &self.setup.dir {
            Some(dir) => std::path::absolute(dir).map_err(|error| error.to_string())?,
            None => work_dir("analytics")?,
        };
        let cluster = start_cluster(&self.setup, &dir)?;
        // Whatever happens now, the cluster goes.
        let results = self.with_cluster(&cluster);
        let deleted = delete_cluster(&cluster.dir);
        let results = results?;
        deleted?;
        results.write(&self.out)?;
        results.judge()
    }

    fn with_cluster(&self, cluster: &ClusterSide) -> Result<Results, String> {
        let plain = PlainSide::start(&cluster.state, &beside(&cluster.dir, "-plain"))?;
        let shared_buffers = check_alike(cluster, &plain)?;
        let shard_count = psql(cluster.port, "SHOW citus.shard_count")?.trim().to_owned();
        let (processor, cores, memory_mib, kernel) = machine();
        let mut results = Results {
            commit: commit(),
            circumstances: format!(
                "Everything on one machine: {processor}, {cores} cores, {memory_mib} MiB, Linux {kernel}. PostgreSQL \
                 {} with the same settings on every server, shared_buffers {shared_buffers}. Scale {}, {} workers, \
                 {shard_count} shards. Medians of {} runs after a first one (a query of more than {} s: that one), \
                 given up after {} s.",
                plain.version,
                self.scale,
                self.setup.workers,
                self.rounds,
                REPEATED_MS_MAX / 1e3,
                self.timeout
            ),
            timeout_ms: f64::from(self.timeout) * 1e3,
            parts: Vec::new(),
            not_run: Vec::new(),
        };
        say(&results.circumstances);
        for benchmark in BENCHMARKS.iter().filter(|known| self.benchmarks.iter().any(|name| name == known.name)) {
            for layout in benchmark.layouts.iter().filter(|known| self.layouts.iter().any(|name| name == known.name)) {
                match self.part(cluster, &plain, benchmark, layout) {
                    Ok(part) => results.parts.push(part),
                    // The others may show something yet.
                    Err(error) => {
                        say(&error);
                        results.not_run.push(format!("{} {}: {}", benchmark.name, layout.name, error.trim()));
                    }
                }
            }
        }
        if self.hold {
            say(&format!("held: plain server on port {}, {}. Enter ends them.", plain.port, cluster.url));
            std::io::stdin().read_line(&mut String::new()).map_err(|error| error.to_string())?;
        }
        Ok(results)
    }

    /// One benchmark in one layout.
    fn part(
        &self,
        cluster: &ClusterSide,
        plain: &PlainSide,
        benchmark: &Benchmark,
        layout: &Layout,
    ) -> Result<Part, String> {
        let mut pair = Pair {
            cluster,
            plain,
            herd: Client::new("the router", cluster.port, benchmark.name, self.timeout)?,
            one: Client::new("the plain server", plain.port, benchmark.name, self.timeout)?,
        };
        say(&format!("{}, {}: {}", benchmark.title, layout.name, layout.line()));
        pair.load(benchmark, layout, self.scale)?;
        let size = |function: &str| -> Result<u64, String> {
            let answer = psql(
                pair.plain.port,
                &format!(
                    "SELECT sum({function}(oid)) / 1000000 FROM pg_class WHERE relkind = 'r' AND \
                     relnamespace = '{}'::regnamespace",
                    benchmark.name
                ),
            )?;
            Ok(answer.trim().parse::<f64>().unwrap_or(0.0) as u64)
        };
        let mut part = Part {
            benchmark: benchmark.name,
            layout: layout.name,
            title: format!("{}, {}", benchmark.title, layout.name),
            spread: layout.line(),
            tables_mb: size("pg_table_size")?,
            with_indexes_mb: size("pg_total_relation_size")?,
            queries: Vec::new(),
        };
        for query in benchmark.queries {
            let number: u32 = query.name.parse().unwrap_or(0);
            if !self.queries.is_empty() && !self.queries.contains(&number) {
                continue;
            }
            let compared = self.compare(&mut pair, query)?;
            say(&compared.line());
            part.queries.push(compared);
        }
        Ok(part)
    }

    fn compare(&self, pair: &mut Pair<'_>, query: &Query) -> Result<Compared, String> {
        let statement = query.statement();
        let is_float = pair.one.floats(&statement)?;
        let Explained { tier, reason, plan } = pair.explain(&statement)?;
        let one = pair.one.run(&statement)?;
        let herd = pair.herd.run(&statement)?;
        let mut compared = Compared {
            query: query.name,
            rows: None,
            plain_ms: None,
            herd_ms: None,
            tier,
            reason,
            plan,
            same: judge(&one, &herd, &is_float, &query.order()),
        };
        let first = |outcome: &Outcome| match outcome {
            Outcome::Answered { ms, .. } => Some(*ms),
            _ => None,
        };
        if let Outcome::Answered { rows, .. } = &one {
            compared.rows = Some(rows.rows.len());
        }
        (compared.plain_ms, compared.herd_ms) = (first(&one), first(&herd));
        let (mut plain_ms, mut herd_ms) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            if compared.plain_ms.is_some_and(|ms| ms <= REPEATED_MS_MAX) {
                plain_ms.extend(first(&pair.one.run(&statement)?));
            }
            if compared.herd_ms.is_some_and(|ms| ms <= REPEATED_MS_MAX) {
                herd_ms.extend(first(&pair.herd.run(&statement)?));
            }
        }
        for (ms, measured) in [(&mut compared.plain_ms, plain_ms), (&mut compared.herd_ms, herd_ms)] {
            if !measured.is_empty() {
                *ms = Some(median(&measured));
            }
        }
        Ok(compared)
    }
}

impl Pair<'_> {
    /// The same rows, keys and statistics on both, and on the cluster the tables spread.
    fn load(&mut self, benchmark: &Benchmark, layout: &Layout, scale: f64) -> Result<(), String> {
        let started = Instant::now();
        let statistics: Vec<String> =
            benchmark.tables.iter().map(|table| format!("VACUUM ANALYZE {}.{}", benchmark.name, table.name)).collect();
        let keys = benchmark.keys(layout);
        for (port, spread) in [(self.plain.port, Vec::new()), (self.cluster.port, benchmark.spread(layout))] {
            psql_script(port, benchmark.schema, &[])?;
            psql_script(port, benchmark.data, &[("scale", scale.to_string())])?;
            for statement in spread.iter().chain(&keys).chain(&statistics) {
                psql(port, statement)?;
            }
        }
        for table in benchmark.tables {
            let contents = format!(
                "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {}.{} AS t",
                benchmark.name, table.name
            );
            let (one, herd) = (psql(self.plain.port, &contents)?, psql(self.cluster.port, &contents)?);
            if one != herd || one.starts_with("0|") {
                return Err(format!(
                    "rows and their hash in {}: {} in the cluster, {} on the plain server",
                    table.name,
                    herd.trim(),
                    one.trim()
                ));
            }
        }
        checkpoint(self.cluster, self.plain)?;
        say(&format!("  loaded in {:.0} s, both with the same rows", started.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The way in which the router runs a statement, and why; the refusal if it does not.
    fn explain(&mut self, statement: &str) -> Result<Explained, String> {
        let no_plan = |tier: &str, reason: String| Explained { tier: tier.to_owned(), reason, plan: String::new() };
        match self.herd.run(&format!("EXPLAIN {statement}"))? {
            Outcome::Answered { rows, .. } => Ok(explained(&rows)),
            Outcome::TimedOut => Ok(no_plan("?", "EXPLAIN took too long".to_owned())),
            Outcome::Failed(error) => Ok(no_plan("refused", error)),
        }
    }
}

/// What EXPLAIN through the router said.
#[derive(Debug, PartialEq)]
struct Explained {
    tier: String,
    reason: String,
    /// All of it.
    plan: String,
}

/// The router's EXPLAIN begins with lines of its own, see `crates/router/src/run/explain.rs`; not where the coordinator
/// answers by itself.
fn explained(rows: &Rows) -> Explained {
    let lines: Vec<&str> = rows.rows.iter().filter_map(|row| row.first()?.as_deref()).collect();
    let line = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
    let merged = if line("  Merge: ").is_some() { ", merge" } else { "" };
    let tier = match lines.first().and_then(|line| line.strip_prefix("pgherd ")) {
        Some(title) => format!("{}{merged}", title.split("  (").next().unwrap_or(title)),
        None => "Coordinator".to_owned(),
    };
    Explained { tier, reason: line("  Reason: ").unwrap_or_default().to_owned(), plan: lines.join("\n") }
}

fn judge(one: &Outcome, herd: &Outcome, is_float: &[bool], order: &[usize]) -> Sameness {
    match (one, herd) {
        (Outcome::Failed(error), _) => Sameness::Failed(format!("plain PostgreSQL: {error}")),
        (_, Outcome::Failed(error)) => Sameness::Failed(error.clone()),
        (_, Outcome::TimedOut) => Sameness::TimedOut,
        (Outcome::TimedOut, _) => Sameness::Unknown,
        (Outcome::Answered { rows: one, .. }, Outcome::Answered { rows: herd, .. }) => {
            match difference(one, herd, is_float, order) {
                Some(difference) => Sameness::Different(difference),
                None if one.is_empty() => Sameness::Empty,
                None => Sameness::Identical,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lines: &[&str]) -> Rows {
        let rows = lines.iter().map(|line| vec![Some((*line).to_owned())]).collect();
        Rows { columns: vec!["QUERY PLAN".to_owned()], rows }
    }

    #[test]
    fn the_tier_is_read_from_explain() {
        let cases = [
            (
                vec!["pgherd Scatter  (cost=0.00..0.00 rows=0 width=0)", "  Reason: no key", "  Merge: SELECT 1"],
                ("Scatter, merge", "no key"),
            ),
            (
                vec![
                    "pgherd Federate  (cost=0.00..0.00 rows=0 width=0)",
                    "  Reason: join of a and b",
                    "  Task Count: 1",
                ],
                ("Federate", "join of a and b"),
            ),
            (vec!["Result  (cost=0.00..0.01 rows=1 width=4)"], ("Coordinator", "")),
        ];
        for (lines, (tier, reason)) in cases {
            let found = explained(&rows(&lines));
            assert_eq!((found.tier.as_str(), found.reason.as_str()), (tier, reason));
            assert_eq!(found.plan.lines().count(), lines.len());
        }
    }

    #[test]
    fn an_answer_that_finds_nothing_shows_nothing() {
        let answer = |text: &str| Outcome::Answered {
            rows: Rows { columns: vec!["a".to_owned()], rows: vec![vec![Some(text.to_owned())]] },
            ms: 1.0,
        };
        let judged = |one: &Outcome, herd: &Outcome| judge(one, herd, &[false], &[]);
        assert_eq!(judged(&answer("1"), &answer("1")), Sameness::Identical);
        assert_eq!(judged(&answer("0"), &answer("0")), Sameness::Empty);
        assert!(matches!(judged(&answer("1"), &answer("2")), Sameness::Different(_)));
        assert_eq!(judged(&answer("1"), &Outcome::TimedOut), Sameness::TimedOut);
        assert_eq!(judged(&Outcome::TimedOut, &answer("1")), Sameness::Unknown);
        assert_eq!(judged(&answer("1"), &Outcome::Failed("x".to_owned())), Sameness::Failed("x".to_owned()));
    }
}
