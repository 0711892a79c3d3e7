//! `make bench`: every combination of work, protocol and clients on both sides, alternating so that a slow minute of
//! the machine hits both, and the medians written to `bench/results/<commit>.md` and `.json`.

use crate::pgbench::{Load, Outcome, Work, measure, version};
use crate::report::{count, markdown_table, median, plain_table};
use crate::sides::{
    ClusterSide, PlainSide, Setup, beside, check_balances, delete_cluster, load, psql, say, start_cluster, work_dir,
};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measure all combinations of work, clients and protocol, and write a report.
#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    setup: Setup,

    #[arg(long, value_delimiter = ',', default_value = "1,8,32,128")]
    clients: Vec<u32>,

    #[arg(long, value_delimiter = ',', default_value = "simple,extended,prepared")]
    protocols: Vec<String>,

    /// How long each measurement takes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,

    /// Measurements of each combination, of which the median counts
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Where the report goes
    #[arg(long, default_value = "bench/results")]
    out: PathBuf,
}

/// The medians of one combination.
#[derive(Debug, serde::Serialize)]
struct Measured {
    work: Work,
    protocol: String,
    clients: u32,
    plain: Outcome,
    pgherd: Outcome,
    /// The router's transactions a second divided by the plain server's.
    ratio: f64,
}

/// What the numbers depend on.
#[derive(Debug, serde::Serialize)]
struct Circumstances {
    commit: String,
    postgresql: String,
    pgbench: String,
    processor: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
    scale: u32,
    workers: u32,
    shard_count: String,
    seconds: u32,
    rounds: u32,
}

impl Run {
    pub fn run(self) -> Result<(), String> {
        if let Some(wrong) =
            self.protocols.iter().find(|name| !["simple", "extended", "prepared"].contains(&name.as_str()))
        {
            return Err(format!("\"{wrong}\" is not a protocol of pgbench: simple, extended or prepared"));
        }
        let pgbench = version()?;
        let dir = match &self.setup.dir {
            Some(dir) => std::path::absolute(dir).map_err(|error| error.to_string())?,
            None => work_dir("bench")?,
        };
        let cluster = start_cluster(&self.setup, &dir)?;
        // Whatever happens now, the cluster goes.
        let result = self.with_cluster(&cluster, pgbench);
        let deleted = delete_cluster(&cluster.dir);
        result.and(deleted)
    }

    fn with_cluster(&self, cluster: &ClusterSide, pgbench: String) -> Result<(), String> {
        let plain = PlainSide::start(&cluster.state, &beside(&cluster.dir, "-plain"))?;
        load(cluster, &plain, self.setup.scale)?;
        let loads = self.loads();
        let runs = loads.len() as u32 * self.rounds * 2;
        say(&format!(
            "{runs} measurements of {} s: about {} minutes",
            self.seconds,
            runs * (self.seconds + 1) / 60 + 1
        ));
        let mut measured = Vec::new();
        for (number, load) in loads.iter().enumerate() {
            let one = self.measure_both(load, &plain, cluster)?;
            say(&format!(
                "{:>2}/{} {:<10} {:<8} {:>3} clients: plain {:>8} tps, pgherd {:>8} tps, ratio {:.2}",
                number + 1,
                loads.len(),
                load.work.name(),
                load.protocol,
                load.clients,
                count(one.plain.tps),
                count(one.pgherd.tps),
                one.ratio
            ));
            measured.push(one);
        }
        check_balances(cluster.port)?;
        check_balances(plain.port)?;
        let circumstances = self.circumstances(&plain, pgbench, psql(cluster.port, "SHOW citus.shard_count")?);
        drop(plain);
        write_report(&self.out, &circumstances, &measured)
    }

    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for work in [Work::ReadOnly, Work::ReadWrite] {
            for protocol in &self.protocols {
                for clients in &self.clients {
                    loads.push(Load { work, protocol: protocol.clone(), clients: *clients, seconds: self.seconds });
                }
            }
        }
        loads
    }

    fn measure_both(&self, load: &Load, plain: &PlainSide, cluster: &ClusterSide) -> Result<Measured, String> {
        let (mut one, mut herd) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            // Who goes first alternates too.
            if round % 2 == 0 {
                one.push(measure(plain.port, load)?);
                herd.push(measure(cluster.port, load)?);
            } else {
                herd.push(measure(cluster.port, load)?);
                one.push(measure(plain.port, load)?);
            }
        }
        let (plain, pgherd) = (medians(&one), medians(&herd));
        Ok(Measured {
            work: load.work,
            protocol: load.protocol.clone(),
            clients: load.clients,
            ratio: pgherd.tps / plain.tps,
            plain,
            pgherd,
        })
    }

    fn circumstances(&self, plain: &PlainSide, pgbench: String, shard_count: String) -> Circumstances {
        let proc_value = |file: &str, name: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        };
        let memory = proc_value("/proc/meminfo", "MemTotal").unwrap_or_default();
        Circumstances {
            commit: commit(),
            postgresql: plain.version.clone(),
            pgbench,
            processor: proc_value("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024,
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
            scale: self.setup.scale,
            workers: self.setup.workers,
            shard_count: shard_count.trim().to_owned(),
            seconds: self.seconds,
            rounds: self.rounds,
        }
    }
}

fn medians(outcomes: &[Outcome]) -> Outcome {
    let of = |value: fn(&Outcome) -> f64| median(&outcomes.iter().map(value).collect::<Vec<_>>());
    Outcome {
        tps: of(|outcome| outcome.tps),
        latency_ms: of(|outcome| outcome.latency_ms),
        failed: outcomes.iter().map(|outcome| outcome.failed).sum(),
    }
}

/// The commit that was measured, with a mark if files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}-changed"),
    }
}

fn write_report(out: &Path, circumstances: &Circumstances, measured: &[Measured]) -> Result<(), String> {
    let mut rows = vec![
        ["work", "protocol", "clients", "plain tps", "pgherd tps", "ratio", "plain ms", "pgherd ms", "failed"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(measured.iter().map(|one| {
        vec![
            one.work.name().to_owned(),
            one.protocol.clone(),
            one.clients.to_string(),
            count(one.plain.tps),
            count(one.pgherd.tps),
            format!("{:.2}", one.ratio),
            format!("{:.3}", one.plain.latency_ms),
            format!("{:.3}", one.pgherd.latency_ms),
            (one.plain.failed + one.pgherd.failed).to_string(),
        ]
    }));
    let markdown = format!(
        "# pgherd beside one plain PostgreSQL\n\nCommit {}. Medians of {} runs of {} s, the two sides alternating, \
         everything on one machine: {}, {} cores, {} MiB, Linux {}. PostgreSQL {} with the same settings on every \
         server, {}, scale {}, {} workers, {} shards.\n\n{}",
        circumstances.commit,
        circumstances.rounds,
        circumstances.seconds,
        circumstances.processor,
        circumstances.cores,
        circumstances.memory_mib,
        circumstances.kernel,
        circumstances.postgresql,
        circumstances.pgbench,
        circumstances.scale,
        circumstances.workers,
        circumstances.shard_count,
        markdown_table(&rows),
    );
    let json = serde_json::json!({ "circumstances": circumstances, "measured": measured });
    let json = serde_json::to_string_pretty(&json).map_err(|error| error.to_string())?;
    std::fs::create_dir_all(out).map_err(|error| format!("could not make \"{}\": {error}", out.display()))?;
    for (extension, text) in [("md", &markdown), ("json", &format!("{json}\n"))] {
        let path = out.join(format!("{}.{extension}", circumstances.commit));
        std::fs::write(&path, text).map_err(|error| format!("could not write \"{}\": {error}", path.display()))?;
        say(&format!("wrote {}", path.display()));
    }
    say("");
    print!("{}", plain_table(&rows));
    Ok(())
}
