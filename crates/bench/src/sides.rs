//! The two that are compared: a cluster, run by the `pgherd` program beside this one, and one plain PostgreSQL of the
//! same version and settings. Both get pgbench's tables.

use crate::pgbench;
use pgherd_cluster::embedded::{ClusterState, PgBin, Server, ServerSpec, ServerUser, StopMode, home_dir};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Tables and the columns by which they are distributed, as the guides do.
const DISTRIBUTED: [(&str, &str); 4] =
    [("pgbench_accounts", "aid"), ("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_history", "aid")];

/// How the cluster is made.
#[derive(Debug, Clone, clap::Args)]
pub struct Setup {
    /// pgbench's scale: 100,000 accounts each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub scale: u32,

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
    server: Arc<Mutex<Option<Server>>>,
}

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
    /// A fresh plain PostgreSQL like the cluster's servers.
    pub fn start(state: &ClusterState, dir: &Path) -> Result<PlainSide, String> {
        let text = |error: pgherd_cluster::embedded::EmbeddedError| error.to_string();
        remove_plain(dir)?;
        let pg = PgBin::from_dir(&state.pg_bin_dir).map_err(text)?;
        let mut spec = ServerSpec::new(dir).map_err(text)?;
        spec.settings = state.settings.clone();
        let server = Server::start(&pg, &spec, &|_| ()).map_err(text)?;
        let side =
            PlainSide { port: server.port, version: pg.full_version, server: Arc::new(Mutex::new(Some(server))) };
        side.stop_with_us();
        Ok(side)
    }

    /// Ctrl-C must not leave a server behind that nobody knows of.
    fn stop_with_us(&self) {
        let server = self.server.clone();
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
                stop_plain(&server);
                std::process::exit(130);
            });
        });
    }
}

impl Drop for PlainSide {
    fn drop(&mut self) {
        stop_plain(&self.server);
    }
}

fn stop_plain(server: &Mutex<Option<Server>>) {
    if let Some(mut server) = server.lock().unwrap_or_else(PoisonError::into_inner).take() {
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
    // What loading left to write must not be written while somebody measures.
    psql(plain.port, "CHECKPOINT")?;
    for node in &cluster.state.nodes {
        psql(node.port, "CHECKPOINT")?;
    }
    Ok(())
}

/// After read-write runs: whether every transaction is there as a whole.
pub fn check_balances(port: u16) -> Result<(), String> {
    let sums = psql(
        port,
        "SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(bbalance) FROM pgbench_branches), \
         (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT coalesce(sum(delta), 0) FROM pgbench_history)",
    )?;
    let values: Vec<&str> = sums.trim().split('|').collect();
    if values.len() == 4 && values.iter().all(|value| *value == values[0]) {
        return Ok(());
    }
    Err(format!("the sums of accounts, branches, tellers and history differ: {}", values.join(", ")))
}

/// One statement; its rows as psql prints them with `-At`.
pub fn psql(port: u16, statement: &str) -> Result<String, String> {
    let mut command = Command::new("psql");
    command
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"])
        .args(["-d", "postgres", "-c", statement]);
    pgbench::run(command)
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
