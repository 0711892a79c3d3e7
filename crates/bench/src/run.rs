//! `make bench`: a cluster beside one plain PostgreSQL; the router's memory with idle clients, the bars, and every
//! combination of work, protocol and clients, written to `bench/results/<commit>.md` and `.json`.

use crate::bars::{self, Bar, Row, Verdict, bars};
use crate::bouncer::Bouncer;
use crate::compare::Comparison;
use crate::definitions;
use crate::disk::sync_us;
use crate::everyday::{self, Everyday};
use crate::machine::{Circumstances, commit, machine};
use crate::matrix::{self, Matrix, Measured};
use crate::memory::{self, IdleClients};
use crate::pgbench::version;
use crate::report::{markdown_table, plain_table};
use crate::router::Router;
use crate::sides::{
    ClusterSide, PlainSide, Setup, beside, check_alike, check_balances, checkpoint, delete_cluster, load, psql, say,
    start_cluster, work_dir,
};
use std::path::{Path, PathBuf};

const PROTOCOLS: [&str; 3] = ["simple", "extended", "prepared"];

/// A part of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Memory of idle clients
    Memory,
    /// What the router should reach
    Bars,
    /// All combinations of work, protocol and clients
    Matrix,
    /// What definitions cost
    Definitions,
    /// What applications send all day
    Everyday,
}

/// Measure a cluster beside one plain PostgreSQL, judge it by the bars, and write a report.
#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    setup: Setup,

    /// pgbench's scale: 100,000 accounts each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,

    #[arg(long, value_delimiter = ',', value_enum, default_value = "memory,definitions,everyday,bars,matrix")]
    parts: Vec<Part>,

    /// Only bars and everyday statements with this in their name, comma-separated
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,

    /// How long each measurement of a bar takes
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,

    /// Measurements of each bar, of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Clients of the combinations
    #[arg(long, value_delimiter = ',', default_value = "1,8,32,128")]
    clients: Vec<u32>,

    /// Protocols of the combinations
    #[arg(long, value_delimiter = ',', default_value = "simple,extended,prepared")]
    protocols: Vec<String>,

    /// How long each measurement of a combination takes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    matrix_seconds: u32,

    /// Measurements of each combination, of which the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    matrix_rounds: u32,

    /// Clients that send everyday statements
    #[arg(long, value_delimiter = ',', default_value = "8,64")]
    everyday_clients: Vec<u32>,

    /// By which protocols
    #[arg(long, value_delimiter = ',', default_value = "prepared")]
    everyday_protocols: Vec<String>,

    /// How long each measurement of an everyday statement takes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    everyday_seconds: u32,

    /// Measurements of each everyday statement, of which the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    everyday_rounds: u32,

    /// Idle clients whose memory is measured
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    idle_clients: u32,

    /// Measurements of each definition, of which the median counts
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    definition_rounds: u32,

    /// Tables and functions that definitions are measured beside
    #[arg(long, default_value_t = 5000)]
    other_tables: u32,

    /// Where the report goes
    #[arg(long, default_value = "bench/results")]
    out: PathBuf,
}

/// What was measured.
#[derive(Debug, serde::Serialize)]
struct Results {
    circumstances: Circumstances,
    idle_clients: Option<IdleClients>,
    definitions: Vec<definitions::Row>,
    everyday: Vec<everyday::Row>,
    bars: Vec<Row>,
    /// The combinations.
    measured: Vec<Measured>,
}

impl Run {
    pub fn run(self) -> Result<(), String> {
        let protocols = known_protocols(&self.protocols)?;
        let bars = self.bars()?;
        let pgbench = version()?;
        let dir = match &self.setup.dir {
            Some(dir) => std::path::absolute(dir).map_err(|error| error.to_string())?,
            None => work_dir("bench")?,
        };
        let files = beside(&dir, "-files");
        std::fs::create_dir_all(&files).map_err(|error| format!("could not make \"{}\": {error}", files.display()))?;
        let cluster = start_cluster(&self.setup, &dir)?;
        // Whatever happens now, the cluster goes.
        let result = self.with_cluster(&cluster, &files, protocols, &bars, pgbench);
        let deleted = delete_cluster(&cluster.dir);
        let _ = std::fs::remove_dir_all(&files);
        result.and(deleted)
    }

    fn bars(&self) -> Result<Vec<Bar>, String> {
        let mut bars = bars();
        let only: Vec<&String> = self.only.iter().filter(|name| !name.is_empty()).collect();
        if !only.is_empty() {
            bars.retain(|bar| only.iter().any(|name| bar.workload.contains(name.as_str())));
        }
        if bars.is_empty() && self.parts.contains(&Part::Bars) {
            return Err(format!("no bar has one of these in its name: {}", self.only.join(", ")));
        }
        Ok(bars)
    }

    fn with_cluster(
        &self,
        cluster: &ClusterSide,
        files: &Path,
        protocols: Vec<&'static str>,
        bars: &[Bar],
        pgbench: String,
    ) -> Result<(), String> {
        let has = |part| self.parts.contains(&part);
        let mut idle_clients = None;
        if has(Part::Memory) {
            say(&format!("connecting {} idle clients", self.idle_clients));
            let measured = memory::measure(cluster, self.idle_clients)?;
            say(&measured.line());
            idle_clients = Some(measured);
        }
        let plain = PlainSide::start(&cluster.state, &beside(&cluster.dir, "-plain"))?;
        let shared_buffers = check_alike(cluster, &plain)?;
        let bouncer = match has(Part::Bars) || has(Part::Everyday) {
            true => Bouncer::start(&plain, files)?,
            false => None,
        };
        let shard_count = psql(cluster.port, "SHOW citus.shard_count")?.trim().to_owned();
        let circumstances =
            self.circumstances(&plain, bouncer.as_ref(), files, pgbench, shard_count, shared_buffers)?;
        say(&circumstances.line());
        let mut defined = Vec::new();
        if has(Part::Definitions) {
            defined = definitions::measure(&plain, cluster, self.definition_rounds, self.other_tables)?;
        }
        let mut sent = Vec::new();
        if has(Part::Everyday) {
            everyday::load(cluster, &plain)?;
            let all = Everyday {
                clients: self.everyday_clients.clone(),
                protocols: known_protocols(&self.everyday_protocols)?,
                seconds: self.everyday_seconds,
                rounds: self.everyday_rounds,
                only: self.only.clone(),
            };
            sent = all.measure(&plain, cluster, bouncer.as_ref())?;
        }
        if has(Part::Bars) || has(Part::Matrix) {
            load(cluster, &plain, self.scale)?;
        }

        let mut rows = Vec::new();
        if has(Part::Bars) {
            let comparison = Comparison {
                plain: &plain,
                cluster,
                bouncer: bouncer.as_ref(),
                router: Router::find(&cluster.dir)?,
                scale: self.scale,
                seconds: self.seconds,
                rounds: self.rounds,
                copy_file: files.join("accounts.copy"),
            };
            say(&format!("{} bars, {} rounds of {} s on each side", bars.len(), self.rounds, self.seconds));
            rows = comparison.measure(bars)?;
        }
        let mut measured = Vec::new();
        if has(Part::Matrix) {
            let matrix = Matrix {
                clients: self.clients.clone(),
                protocols,
                seconds: self.matrix_seconds,
                rounds: self.matrix_rounds,
            };
            checkpoint(cluster, &plain)?;
            measured = matrix.measure(&plain, cluster)?;
            check_balances(cluster.port, "pgbench")?;
        }
        drop(plain);
        let results =
            Results { circumstances, idle_clients, definitions: defined, everyday: sent, bars: rows, measured };
        write_report(&self.out, &results)
    }

    fn circumstances(
        &self,
        plain: &PlainSide,
        bouncer: Option<&Bouncer>,
        files: &Path,
        pgbench: String,
        shard_count: String,
        shared_buffers: String,
    ) -> Result<Circumstances, String> {
        let (processor, cores, memory_mib, kernel) = machine();
        Ok(Circumstances {
            commit: commit(),
            postgresql: plain.version.clone(),
            pgbench,
            pgbouncer: bouncer.map(|bouncer| bouncer.version.clone()),
            processor,
            cores,
            memory_mib,
            kernel,
            sync_us: sync_us(files)?,
            shared_buffers,
            scale: self.scale,
            workers: self.setup.workers,
            shard_count,
            seconds: self.seconds,
            rounds: self.rounds,
            matrix_seconds: self.matrix_seconds,
            matrix_rounds: self.matrix_rounds,
        })
    }
}

fn known_protocols(names: &[String]) -> Result<Vec<&'static str>, String> {
    let known = |name: &String| {
        PROTOCOLS
            .into_iter()
            .find(|known| known == name)
            .ok_or_else(|| format!("\"{name}\" is not a protocol of pgbench: simple, extended or prepared"))
    };
    names.iter().map(known).collect()
}

fn write_report(out: &Path, results: &Results) -> Result<(), String> {
    let json = serde_json::to_string_pretty(results).map_err(|error| error.to_string())?;
    std::fs::create_dir_all(out).map_err(|error| format!("could not make \"{}\": {error}", out.display()))?;
    for (extension, text) in [("md", report(results, markdown_table)), ("json", format!("{json}\n"))] {
        let path = out.join(format!("{}.{extension}", results.circumstances.commit));
        std::fs::write(&path, text).map_err(|error| format!("could not write \"{}\": {error}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    say("");
    print!("{}", report(results, plain_table));
    Ok(())
}

/// The whole as text, with tables drawn by `draw`.
fn report(results: &Results, draw: fn(&[Vec<String>]) -> String) -> String {
    let circumstances = &results.circumstances;
    let mut text =
        format!("# pgherd beside one plain PostgreSQL\n\nCommit {}. {}\n", circumstances.commit, circumstances.line());
    if !results.bars.is_empty() {
        text.push_str(&format!(
            "\n## Bars\n\nMedians of {} rounds of {} s, the sides taking turns. The ratio is the median of each \
             round's, router to plain server, with the smallest and the largest; times are compared as direct/router, \
             but for the latency. CPU µs: the router's own, per statement (COPY: per row). Under \"holds\" is what is \
             reached.\n\n{}",
            circumstances.rounds,
            circumstances.seconds,
            draw(&bars::table(&results.bars))
        ));
        let held = |verdict| results.bars.iter().filter(|row| row.verdict == verdict).count();
        let goals = held(Verdict::Goal);
        text.push_str(&format!(
            "\n{} of {} floors hold, {goals} goals.\n",
            goals + held(Verdict::Floor),
            results.bars.len()
        ));
        for row in &results.bars {
            if let Some(error) = &row.error {
                text.push_str(&format!("\n{}: {}\n", row.workload, error.trim_end()));
            }
        }
        if results.bars.iter().all(|row| row.system_calls_per_statement.is_none()) {
            text.push_str("\nSystem calls were not counted: strace is not installed or may not attach.\n");
        }
    }
    if !results.definitions.is_empty() {
        text.push_str(&format!(
            "\n## Definitions\n\nMedians, the sides taking turns, one client; tables of 32 shards. The ratio is the \
             router's time to the plain server's.\n\n{}",
            draw(&definitions::table(&results.definitions))
        ));
        for row in &results.definitions {
            if let Some(error) = &row.error {
                text.push_str(&format!("\n{}: {}\n", row.name, error.trim_end()));
            }
        }
    }
    if !results.everyday.is_empty() {
        text.push_str(&format!(
            "\n## Everyday statements\n\nMedians, the sides taking turns. The ratio is the router's throughput to the \
             plain server's; PgBouncer's, in front of the plain server, beside it.\n\n{}\n{}\n",
            draw(&everyday::table(&results.everyday)),
            everyday::means(&results.everyday).join("\n\n")
        ));
        for row in &results.everyday {
            if let Some(error) = row.error() {
                text.push_str(&format!("\n{error}\n"));
            }
        }
    }
    if let Some(idle) = &results.idle_clients {
        text.push_str(&format!("\n{}.\n", idle.line()));
    }
    if !results.measured.is_empty() {
        text.push_str(&format!(
            "\n## All combinations\n\nMedians of {} runs of {} s, the two sides alternating.\n\n{}",
            circumstances.matrix_rounds,
            circumstances.matrix_seconds,
            draw(&matrix::table(&results.measured))
        ));
    }
    text
}
