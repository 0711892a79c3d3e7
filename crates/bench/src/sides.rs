//! The two that are compared: a cluster, run by the `pgherd` program beside this one, and one plain PostgreSQL of the
//! same version and settings, with as much `shared_buffers` as all of the cluster together. Both get pgbench's tables.

use crate::pgbench;
use pgherd_cluster::embedded::{ClusterState, PgBin, Server, ServerSpec, ServerUser, StopMode, home_dir};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Tables and the columns by which they are distributed, as the guides do.
const DISTRIBUTED: [(&str, &str); 4] =
    [("pgbench_accounts", "aid"), ("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_history", "aid")];

/// How the cluster is made.
#[derive(Debug, Clone, clap::Args)]
pub struct Setup {
    #[arg(long, default_value_t = 3)]
    pub workers: u32,

    /// Shards of each table [default: the cluster's default]
    #[arg(long)]
    pub shard_count: Option<u32>,

    /// The directory for the cluster [default: below target, or where the servers' user can get at it]
    #[arg(long)]
    pub dir: Option<PathBuf>,

    /// Version of PostgreSQL to download; see "pgherd up"
    #[arg(long, conflicts_with = "pg_bin")]
    pub pg: Option<String>,

    /// Directory with the programs of an installed PostgreSQL
    #[arg(long)]
    pub pg_bin: Option<PathBuf>,
}

/// A cluster that runs.
#[derive(Debug)]
pub struct ClusterSide {
    pub dir: PathBuf,
    pub url: String,
    pub port: u16,
    pub state: ClusterState,
}

/// The plain server; stopped and removed when dropped, and when we are told to stop.
#[derive(Debug)]
pub struct PlainSide {
    pub port: u16,
    pub version: String,
    stopped: Arc<Mutex<Stopped>>,
}

/// What must not be left running.
#[derive(Debug, Default)]
struct Stopped {
    server: Option<Server>,
    /// Programs in front of it.
    others: Vec<Child>,
}

/// What decides how fast a server is and must be the same on all, but for `shared_buffers`, where the sum is.
const ALIKE: [&str; 9] = [
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "max_wal_size",
    "work_mem",
    "max_parallel_workers_per_gather",
];

pub fn say(line: &str) {
    println!("{line}");
}

/// A fresh cluster in `dir`; one that an earlier run left there is deleted first.
pub fn start_cluster(setup: &Setup, dir: &Path) -> Result<ClusterSide, String> {
    delete_cluster(dir)?;
    let mut command = pgherd("up", dir)?;
    command.args(["--workers", &setup.workers.to_string()]);
    if let Some(count) = setup.shard_count {
        command.args(["--shard-count", &count.to_string()]);
    }
    if let Some(version) = &setup.pg {
        command.args(["--pg", version]);
    }
    if let Some(bin) = &setup.pg_bin {
        command.arg("--pg-bin").arg(bin);
    }
    // Its progress is for the user as it comes; what it prints is the URL.
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("could not run {}: {error}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        return Err("pgherd up failed, see above".to_owned());
    }
    let url = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let state = ClusterState::read(dir)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("pgherd up left no cluster in \"{}\"", dir.display()))?;
    Ok(ClusterSide { dir: dir.to_owned(), port: state.router_port, url, state })
}

pub fn delete_cluster(dir: &Path) -> Result<(), String> {
    let mut command = pgherd("down", dir)?;
    command.args(["--delete", "--wait", "1"]);
    pgbench::run(command).map(|_| ())
}

/// The `pgherd` that was built with this program.
fn pgherd(verb: &str, dir: &Path) -> Result<Command, String> {
    let mut command = Command::new(pgherd_program()?);
    command.arg(verb).arg("--dir").arg(dir).env_remove("PGHERD_DIR");
    Ok(command)
}

pub fn pgherd_program() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| format!("could not find this program's file: {error}"))?;
    let program = here.with_file_name("pgherd");
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("there is no program \"{}\"; build it with \"make build\"", program.display()))
}

impl PlainSide {
    /// A fresh plain PostgreSQL like the cluster's servers, with the memory of all of them.
    pub fn start(state: &ClusterState, dir: &Path) -> Result<PlainSide, String> {
        let text = |error: pgherd_cluster::embedded::EmbeddedError| error.to_string();
        remove_plain(dir)?;
        let pg = PgBin::from_dir(&state.pg_bin_dir).map_err(text)?;
        let mut spec = ServerSpec::new(dir).map_err(text)?;
        spec.settings = state.settings.clone();
        let mut buffers_kib = 0;
        for node in &state.nodes {
            buffers_kib += shared_buffers_kib(node.port)?;
        }
        spec.settings.push(("shared_buffers".to_owned(), format!("{buffers_kib}kB")));
        let server = Server::start(&pg, &spec, &|_| ()).map_err(text)?;
        let port = server.port;
        let stopped = Stopped { server: Some(server), others: Vec::new() };
        let side = PlainSide { port, version: pg.full_version, stopped: Arc::new(Mutex::new(stopped)) };
        side.stop_with_us();
        Ok(side)
    }

    /// A program in front of the server that ends before it.
    pub fn stop_also(&self, child: Child) {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner).others.push(child);
    }

    /// Ctrl-C must not leave a server behind that nobody knows of.
    fn stop_with_us(&self) {
        let stopped = self.stopped.clone();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        std::thread::spawn(move || {
            runtime.block_on(async {
                use tokio::signal::unix::{SignalKind, signal};
                let (Ok(mut interrupt), Ok(mut terminate)) =
                    (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
                else {
                    return;
                };
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                stop(&stopped);
                std::process::exit(130);
            });
        });
    }
}

impl Drop for PlainSide {
    fn drop(&mut self) {
        stop(&self.stopped);
    }
}

fn stop(stopped: &Mutex<Stopped>) {
    let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    for mut child in stopped.others.drain(..) {
        let _ = child.kill();
        let _ = child.wait();
    }
    if let Some(mut server) = stopped.server.take() {
        server.stop(StopMode::Immediate, Duration::from_secs(30));
        let _ = std::fs::remove_dir_all(&server.dir);
    }
}

fn remove_plain(dir: &Path) -> Result<(), String> {
    if let Ok(Some(mut server)) = Server::attach(dir, "postgres") {
        server.stop(StopMode::Immediate, Duration::from_secs(30));
    }
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("could not remove \"{}\": {error}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// pgbench's tables on both, distributed on the cluster after they were loaded.
pub fn load(cluster: &ClusterSide, plain: &PlainSide, scale: u32) -> Result<(), String> {
    say(&format!("loading pgbench's tables at scale {scale} into the plain PostgreSQL"));
    pgbench::initialize(plain.port, scale)?;
    say("loading the same through the router");
    pgbench::initialize(cluster.port, scale)?;
    for (table, column) in DISTRIBUTED {
        let statement = format!("SELECT create_distributed_table('{table}', '{column}')");
        say(&format!("  {statement}"));
        psql(cluster.port, &statement)?;
    }
    for (table, _) in DISTRIBUTED {
        psql(plain.port, &format!("VACUUM ANALYZE {table}"))?;
        psql(cluster.port, &format!("VACUUM ANALYZE {table}"))?;
    }
    checkpoint(cluster, plain)
}

/// What was written before must not be flushed while somebody measures.
pub fn checkpoint(cluster: &ClusterSide, plain: &PlainSide) -> Result<(), String> {
    psql(plain.port, "CHECKPOINT")?;
    for node in &cluster.state.nodes {
        psql(node.port, "CHECKPOINT")?;
    }
    Ok(())
}

/// Whether the two may be compared: all servers durable and of the same settings, the plain one with the memory of all.
/// Returns how that memory is spread, for the report.
pub fn check_alike(cluster: &ClusterSide, plain: &PlainSide) -> Result<String, String> {
    let values = |port: u16| -> Result<Vec<String>, String> {
        ALIKE.iter().map(|name| psql(port, &format!("SHOW {name}")).map(|value| value.trim().to_owned())).collect()
    };
    let expected = values(plain.port)?;
    for (name, value) in ALIKE.iter().zip(&expected) {
        if ["fsync", "synchronous_commit"].contains(name) && value != "on" {
            return Err(format!("{name} is {value} on the plain server; commits must be durable to be compared"));
        }
    }
    let mut buffers_kib = Vec::new();
    for node in &cluster.state.nodes {
        for ((name, value), expected) in ALIKE.iter().zip(values(node.port)?).zip(&expected) {
            if value != *expected {
                return Err(format!("{name} is {value} on {} and {expected} on the plain server", node.name));
            }
        }
        buffers_kib.push(shared_buffers_kib(node.port)?);
    }
    let (sum, all) = (buffers_kib.iter().sum::<u64>(), shared_buffers_kib(plain.port)?);
    if sum != all {
        return Err(format!("shared_buffers are {sum} kB in the cluster and {all} kB on the plain server"));
    }
    let parts: Vec<String> = buffers_kib.iter().map(|kib| (kib / 1024).to_string()).collect();
    Ok(format!("{} MiB in the cluster, {} MiB on the plain server", parts.join(" + "), all / 1024))
}

fn shared_buffers_kib(port: u16) -> Result<u64, String> {
    let value = psql(port, "SELECT pg_size_bytes(current_setting('shared_buffers')) / 1024")?;
    value.trim().parse().map_err(|_| format!("shared_buffers is \"{}\"", value.trim()))
}

/// After read-write runs on tables whose names start with `prefix`: whether every transaction is there as a whole.
pub fn check_balances(port: u16, prefix: &str) -> Result<(), String> {
    let sums = psql(
        port,
        &format!(
            "SELECT (SELECT sum(abalance) FROM {prefix}_accounts), (SELECT sum(bbalance) FROM {prefix}_branches), \
             (SELECT sum(tbalance) FROM {prefix}_tellers), (SELECT coalesce(sum(delta), 0) FROM {prefix}_history)"
        ),
    )?;
    let values: Vec<&str> = sums.trim().split('|').collect();
    if values.len() == 4 && values.iter().all(|value| *value == values[0]) {
        return Ok(());
    }
    Err(format!("the sums of {prefix} accounts, branches, tellers and history differ: {}", values.join(", ")))
}

/// One statement; its rows as psql prints them with `-At`.
pub fn psql(port: u16, statement: &str) -> Result<String, String> {
    let mut command = psql_command(port);
    command.args(["-c", statement]);
    pgbench::run(command)
}

/// A script, with variables.
pub fn psql_script(port: u16, script: &str, variables: &[(&str, String)]) -> Result<String, String> {
    let mut command = psql_command(port);
    for (name, value) in variables {
        command.arg("-v").arg(format!("{name}={value}"));
    }
    pgbench::run_with_input(command, Some(script))
}

fn psql_command(port: u16) -> Command {
    let mut command = Command::new("psql");
    command
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"])
        .args(["-d", "postgres"]);
    command
}

/// Where servers that may run as another user can have their files: below `target`, if that user can get there.
pub fn work_dir(name: &str) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let near = std::path::absolute(target.join(name)).map_err(|error| error.to_string())?;
    let user = ServerUser::choose(None).map_err(|error| error.to_string())?;
    match user.and_then(|user| user.first_closed_directory(&near)) {
        None => Ok(near),
        Some(_) => Ok(home_dir().map_err(|error| error.to_string())?.join(name)),
    }
}

/// `dir` with something after its name.
pub fn beside(dir: &Path, suffix: &str) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    dir.with_file_name(name)
}
