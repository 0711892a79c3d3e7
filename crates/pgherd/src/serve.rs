//! `pgherd serve` and `pgherd init`: the router in front of servers that exist already. `pgherd up` runs the same
//! `serve` in the background, told which cluster by `--cluster`.

use crate::connect::{parse_coordinator, runtime};
use crate::failure::Failure;
use crate::place::no_cluster;
use pgherd_cluster::embedded::{Auth, ClusterState, RouterSlot};
use pgherd_router::{AuthMode, CoordinatorUrl, ServeConfig};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Run a router in front of servers that exist already.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The coordinator: postgres://user[:password]@host[:port]/database; the password may be in PGPASSWORD
    #[arg(long, value_name = "URL", env = "PGHERD_COORDINATOR", required_unless_present = "cluster")]
    coordinator: Option<String>,

    /// Where clients connect, comma-separated
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', default_value = "127.0.0.1:5432")]
    listen: Vec<String>,

    /// How clients prove who they are
    #[arg(long, value_enum, default_value_t = AuthName::ScramSha256)]
    auth: AuthName,

    /// Threads at most; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    /// Clients at a time; more are refused with "sorry, too many clients already"
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    max_clients: usize,

    /// Connections to each server at most; without it nine tenths of what the server has for ordinary users
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(8..))]
    connections: Option<u32>,

    /// For tests: every session goes to another thread whenever it can.
    #[arg(long, env = "PGHERD_RESTLESS", hide = true)]
    restless: bool,

    /// For tests: the coordinator calls back over TCP, as it does from another machine.
    #[arg(long, env = "PGHERD_CALLBACKS_OVER_TCP", hide = true)]
    callbacks_over_tcp: bool,

    /// The password of the coordinator's user on the workers, if it is another one there
    #[arg(long, value_name = "PASSWORD", env = "PGHERD_WORKER_PASSWORD", hide_env_values = true)]
    worker_password: Option<String>,

    /// Be the router of the cluster in this directory; what `pgherd up` runs.
    #[arg(long, value_name = "DIR", hide = true)]
    cluster: Option<PathBuf>,
}

/// Create the metadata of a cluster on its coordinator; harmless if it is there.
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The coordinator: postgres://user[:password]@host[:port]/database; the password may be in PGPASSWORD
    #[arg(long, value_name = "URL", env = "PGHERD_COORDINATOR")]
    coordinator: String,
}

/// PostgreSQL's names of the two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AuthName {
    Trust,
    #[value(name = "scram-sha-256")]
    ScramSha256,
}

impl From<AuthName> for Auth {
    fn from(name: AuthName) -> Auth {
        match name {
            AuthName::Trust => Auth::Trust,
            AuthName::ScramSha256 => Auth::ScramSha256,
        }
    }
}

impl Serve {
    pub fn run(self) -> Result<(), Failure> {
        allow_many_files();
        if let Some(dir) = &self.cluster {
            return serve_cluster(dir, &self);
        }
        let config = ServeConfig {
            coordinator: parse_coordinator(self.coordinator.as_deref().unwrap_or_default())?,
            listen: listen_addresses(&self.listen)?,
            auth: mode(self.auth.into()),
            threads: self.threads,
            restless: self.restless,
            callbacks_over_tcp: self.callbacks_over_tcp,
            max_clients: self.max_clients,
            worker_password: self.worker_password,
            connections: self.connections.map(|n| n as usize),
        };
        serve(config, |addresses| {
            for address in addresses {
                tracing::info!("listening on {address}");
            }
        })
    }
}

impl Init {
    pub fn run(self) -> Result<(), Failure> {
        let coordinator = parse_coordinator(&self.coordinator)?;
        pgherd_router::init(&coordinator).map_err(|error| Failure::new(error.to_string()))?;
        eprintln!(
            "pgherd: {}:{}, database \"{}\", is ready to be a coordinator",
            coordinator.host, coordinator.port, coordinator.dbname
        );
        Ok(())
    }
}

/// Each client and each server connection is an open file, and the soft limit is often 1024. The hard one is what the
/// administrator allows; the soft one only protects programs that use select(2), which we are not.
fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != raised.current
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!("could not raise the limit of open files above {:?}: {error}", limit.current);
    }
}

fn serve_cluster(dir: &Path, options: &Serve) -> Result<(), Failure> {
    // The terminal that `up` was run in may go.
    let _ = rustix::process::setsid();
    let state = ClusterState::read(dir)?.ok_or_else(|| no_cluster(dir))?;
    // Held until this process ends, which is how others see that it runs.
    let slot = Arc::new(Mutex::new(RouterSlot::take(dir)?));
    let config = ServeConfig {
        coordinator: CoordinatorUrl {
            host: Ipv4Addr::LOCALHOST.to_string(),
            port: state.coordinator().port,
            user: state.superuser.clone(),
            password: state.password.clone(),
            dbname: "postgres".to_owned(),
        },
        listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, state.router_port))],
        auth: mode(state.auth),
        threads: options.threads,
        restless: options.restless,
        callbacks_over_tcp: options.callbacks_over_tcp,
        max_clients: options.max_clients,
        worker_password: state.password.clone(),
        connections: options.connections.map(|n| n as usize),
    };
    let ready = slot.clone();
    serve(config, move |addresses| {
        let ports = addresses.iter().map(SocketAddr::port).collect();
        if let Err(error) = ready.lock().unwrap_or_else(PoisonError::into_inner).listening_on(ports) {
            tracing::error!("{error}");
        }
    })
}

fn serve(config: ServeConfig, ready: impl FnOnce(Vec<SocketAddr>) + Send) -> Result<(), Failure> {
    if let Some(limit) = rustix::process::getrlimit(rustix::process::Resource::Nofile).current
        && limit < config.max_clients as u64
    {
        let clients = config.max_clients;
        tracing::warn!("only {limit} files may be open at a time, fewer than --max-clients {clients} (see ulimit -n)");
    }
    let (shutdown, wait) = watch::channel(false);
    let signals = runtime()?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || signals.block_on(obey_signals(shutdown)))
        .map_err(|error| Failure::new(format!("could not start: {error}")))?;
    pgherd_router::serve(config, ready, wait).map_err(|error| Failure::new(error.to_string()))
}

/// The first SIGTERM or SIGINT lets clients finish; the second one, whichever it is, ends the process: then servers roll
/// back what was open, as when any client is gone.
async fn obey_signals(shutdown: watch::Sender<bool>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!("could not listen for signals: {error}");
            return;
        }
    };
    let mut told = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        if told {
            tracing::info!("shutting down at once");
            std::process::exit(0);
        }
        told = true;
        tracing::info!("shutting down when the clients have left; another signal does it at once");
        let _ = shutdown.send(true);
    }
}

fn mode(auth: Auth) -> AuthMode {
    match auth {
        Auth::Trust => AuthMode::Trust,
        Auth::ScramSha256 => AuthMode::ScramSha256,
    }
}

/// `127.0.0.1:5432`, `[::1]:5432`, `localhost:5432` (each address of it).
fn listen_addresses(wanted: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    let mut addresses = Vec::new();
    for text in wanted {
        let found = text.to_socket_addrs().map_err(|error| {
            Failure::new(format!("--listen \"{text}\" is not an address: {error}"))
                .hint("it looks like 127.0.0.1:5432, [::1]:5432 or 0.0.0.0:5432")
        })?;
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    Ok(addresses)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_taken_once_each_and_wrong_ones_are_named() {
        let listen =
            |wanted: &[&str]| listen_addresses(&wanted.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let found = listen(&["127.0.0.1:5432", "[::1]:5432", "127.0.0.1:5432"]).unwrap();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:5432", "[::1]:5432"]);
        let failure = listen(&["127.0.0.1"]).unwrap_err();
        assert!(failure.text().starts_with("pgherd: error: --listen \"127.0.0.1\" is not an address: "));
    }
}
