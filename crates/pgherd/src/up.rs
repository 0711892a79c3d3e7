//! `pgherd up`: a whole cluster on this machine, started or resumed. Every step may be repeated, so that a process that
//! was killed between two of them is made good by the next one.

use crate::connect::runtime;
use crate::failure::Failure;
use crate::place::{Place, progress};
use crate::register;
use crate::serve::AuthName;
use pgherd_cluster::embedded::{
    Cluster, ClusterSpec, ClusterState, EmbeddedError, ErrorKind, PgBin, RouterProcess, port_is_free,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The router's port when nobody names one: the first free from here. Not 5432, where the system's PostgreSQL is.
const ROUTER_PORT_FIRST: u16 = 5433;
const ROUTER_PORT_LAST: u16 = 5532;
const ROUTER_START_TIMEOUT: Duration = Duration::from_secs(120);

/// Start a cluster on this machine, or go on with one: coordinator, workers, router.
///
/// Prints the URL to connect to. Run it as often as you like: what runs already stays, data stays, and the settings of
/// the first time are remembered.
#[derive(Debug, clap::Args)]
pub struct Up {
    #[command(flatten)]
    place: Place,

    /// Workers; more than before adds some [default: 3]
    #[arg(long, value_name = "N")]
    workers: Option<usize>,

    /// The router's port on 127.0.0.1 [default: the one of last time, or the first free from 5433]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// The coordinator's port on 127.0.0.1; each worker's is one higher than the one before, from each server's next
    /// start on [default: ports that are free]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    server_port: Option<u16>,

    /// Version of PostgreSQL to download, such as 18 or 17.2 [default: 18.6]
    #[arg(long, value_name = "VERSION", conflicts_with = "pg_bin")]
    pg: Option<String>,

    /// Directory with the programs of an installed PostgreSQL (15 to 18)
    #[arg(long, value_name = "DIR")]
    pg_bin: Option<PathBuf>,

    /// Shards of a new distributed table, unless citus.shard_count says otherwise
    #[arg(long, value_name = "N")]
    shard_count: Option<u32>,

    /// A setting of every server, such as shared_buffers=2GB, from its next start on; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,

    /// Take back a setting of --set, from each server's next start on; may be given several times
    #[arg(long, value_name = "NAME")]
    unset: Vec<String>,

    /// How clients prove who they are [default: trust]
    #[arg(long, value_enum)]
    auth: Option<AuthName>,
}

/// A name as in `postgresql.conf`, and a value without quotes.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    match name {
        "" => Err("the name is missing".to_owned()),
        "port" => Err("each server has its own port".to_owned()),
        _ if !name.chars().all(is_name) => Err(format!("\"{name}\" is no name of a setting")),
        _ => Ok((name.to_owned(), value.to_owned())),
    }
}

impl Up {
    pub fn run(self) -> Result<(), Failure> {
        let spec = ClusterSpec {
            dir: self.place.dir()?,
            workers: self.workers,
            auth: self.auth.map(Into::into),
            shard_count: self.shard_count,
            settings: self.settings.clone(),
            unset: self.unset.clone(),
            server_port: self.server_port,
        };
        let (mut cluster, pg) =
            Cluster::open_or_create(&spec, |existing| self.choose_pg(existing), &progress).map_err(Failure::from)?;
        let mut router = RouterProcess::find(&cluster.dir)?;
        self.check_port(router.as_ref())?;

        let workers = cluster.state.workers().len();
        progress(&format!(
            "PostgreSQL {}, one coordinator and {workers} worker{} in {}",
            pg.full_version,
            if workers == 1 { "" } else { "s" },
            cluster.dir.display()
        ));
        cluster.start_servers(&pg, &progress)?;
        if let Some(moved) = register::moved_nodes(&cluster.state) {
            // It holds the old ports, and the coordinator's address cannot be changed while it runs.
            if let Some(router) = router.take() {
                progress("stopping the router: servers have other ports than it knows");
                router.stop(Duration::from_secs(2), Duration::from_secs(2));
            }
            progress(&format!("telling the metadata about other ports: {moved}"));
            register::move_nodes(&mut cluster)?;
        }
        let router = match router {
            Some(router) => {
                let router = wait_for_port(&cluster.dir, router)?;
                progress(&format!("router: runs already on 127.0.0.1:{}", router.ports[0]));
                router
            }
            None => self.start_router(&mut cluster)?,
        };
        register::register_nodes(&mut cluster, &router, &progress)?;

        let url = cluster.state.url(router.ports[0], true);
        let dir = dir_option(&self.place, &cluster.dir);
        progress(&format!(
            "ready; connect with \"psql {url}\" or \"pgherd psql{dir}\", stop with \"pgherd down{dir}\""
        ));
        println!("{url}");
        Ok(())
    }

    /// An existing cluster goes on with its PostgreSQL; a new one gets what was asked for, or a downloaded one, or,
    /// where nothing can be downloaded, the installed one.
    fn choose_pg(&self, existing: Option<&ClusterState>) -> Result<PgBin, EmbeddedError> {
        let download = |version: Option<&str>| {
            let runtime = runtime().map_err(|failure| EmbeddedError::new(ErrorKind::System, failure.text()))?;
            runtime.block_on(PgBin::obtain_with_progress(version, &progress))
        };
        if let Some(dir) = &self.pg_bin {
            return PgBin::from_dir(dir);
        }
        if let Some(version) = &self.pg {
            return download(Some(version));
        }
        if let Some(state) = existing {
            return PgBin::from_dir(&state.pg_bin_dir).or_else(|gone| {
                progress(&format!("{gone}; looking for PostgreSQL {}", state.pg_major));
                PgBin::installed()
                    .filter(|pg| pg.version == state.pg_major)
                    .map_or_else(|| download(Some(&state.pg_major.to_string())), Ok)
            });
        }
        download(None).or_else(|error| match PgBin::installed() {
            Some(pg) if error.kind == ErrorKind::Binaries => {
                progress(&format!("{error}; using the installed PostgreSQL {}", pg.full_version));
                Ok(pg)
            }
            _ => Err(error),
        })
    }

    fn check_port(&self, router: Option<&RouterProcess>) -> Result<(), Failure> {
        match (self.port, router) {
            (Some(port), Some(router)) if !router.ports.is_empty() && !router.ports.contains(&port) => {
                Err(Failure::new(format!("the cluster's router runs on port {}, not {port}", router.ports[0]))
                    .hint("stop it with \"pgherd down\" first"))
            }
            (Some(port), None) if !port_is_free(port) => {
                Err(Failure::new(format!("port {port} is in use by another process"))
                    .hint("without --port a free one is taken"))
            }
            _ => Ok(()),
        }
    }

    fn start_router(&self, cluster: &mut Cluster) -> Result<RouterProcess, Failure> {
        let remembered = cluster.state.router_port;
        let servers = cluster.reserved_ports();
        let candidates: Vec<u16> = match self.port {
            Some(port) => vec![port],
            None => Some(remembered)
                .filter(|port| *port != 0)
                .into_iter()
                .chain((ROUTER_PORT_FIRST..=ROUTER_PORT_LAST).filter(|port| !servers.contains(port)))
                .collect(),
        };
        for port in candidates {
            if !port_is_free(port) {
                continue;
            }
            if self.port.is_none() && remembered != 0 && port != remembered {
                progress(&format!("router: port {remembered} is in use by another process, taking {port}"));
            }
            cluster.state.router_port = port;
            cluster.save()?;
            match RouterProcess::start(&cluster.dir, router_command(&cluster.dir)?, ROUTER_START_TIMEOUT) {
                Ok(router) => {
                    progress(&format!("router: started on 127.0.0.1:{}", router.ports[0]));
                    return Ok(router);
                }
                // Somebody took the port between the look and the start.
                Err(_) if self.port.is_none() && !port_is_free(port) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(match self.port {
            Some(port) => Failure::new(format!("port {port} is in use by another process")),
            None => {
                Failure::new(format!("no port from {ROUTER_PORT_FIRST} to {ROUTER_PORT_LAST} is free for the router"))
            }
        }
        .hint("name a free one with --port"))
    }
}

fn router_command(dir: &Path) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("could not find the program file of pgherd: {error}")))?;
    let mut command = Command::new(program);
    command.arg("serve").arg("--cluster").arg(dir);
    // The user's own choices for `pgherd serve` are not for this one.
    for name in ["PGHERD_COORDINATOR", "PGHERD_WORKER_PASSWORD", "PGHERD_DIR"] {
        command.env_remove(name);
    }
    Ok(command)
}

/// A router that an `up` started which was killed right after may still be on its way.
fn wait_for_port(dir: &Path, router: RouterProcess) -> Result<RouterProcess, Failure> {
    let mut router = router;
    for _ in 0..ROUTER_START_TIMEOUT.as_millis() / 50 {
        if !router.ports.is_empty() {
            return Ok(router);
        }
        std::thread::sleep(Duration::from_millis(50));
        router = match RouterProcess::find(dir)? {
            Some(router) => router,
            None => break,
        };
    }
    Err(Failure::new("the router does not come up")
        .hint("run \"pgherd up\" again")
        .log(pgherd_cluster::embedded::LogExcerpt::read(&router.log_file, 0)))
}

/// What the other commands need to find this cluster.
fn dir_option(place: &Place, dir: &Path) -> String {
    if place.is_default() { String::new() } else { format!(" --dir {}", dir.display()) }
}
