//! A coordinator and workers in one directory.
//!
//! ```text
//! <dir>/cluster.json        what the cluster is; written whole or not at all
//! <dir>/lock                held by the `up` or `down` that is at work
//! <dir>/coordinator/        data, server.log
//! <dir>/worker-1/ …         the same
//! <dir>/router/             pid, router.log
//! ```
//!
//! The state file says what was decided (ports, version, password); what runs is asked of the system each time. So
//! every step may be repeated, and a process that is killed between two of them leaves nothing to clean up by hand.

use super::error::{EmbeddedError, ErrorKind};
use super::os::{FileLock, ServerUser, make_directories, random_bytes, write_atomically};
use super::pg_bin::PgBin;
use super::server::{Auth, Server, ServerSpec};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// The name of the node that holds the metadata.
pub const COORDINATOR: &str = "coordinator";
/// More servers than this on one machine is a typing error.
const WORKERS_MAX: usize = 64;
const WORKERS_DEFAULT: usize = 3;
const STATE_FORMAT: u32 = 1;
/// How long one `up` or `down` waits for another.
const LOCK_TIMEOUT: Duration = Duration::from_secs(300);

/// What `pgherd up` was asked for. `None` keeps what an existing cluster has, or takes the default for a new one.
#[derive(Debug, Clone, Default)]
pub struct ClusterSpec {
    pub dir: PathBuf,
    pub workers: Option<usize>,
    pub auth: Option<Auth>,
    pub shard_count: Option<u32>,
    /// Settings for every server, such as `fsync` for tests.
    pub settings: Vec<(String, String)>,
    /// Names of settings that servers are no longer given.
    pub unset: Vec<String>,
    /// The coordinator's port; each worker's is one higher than the one before.
    pub server_port: Option<u16>,
}

/// The state file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterState {
    pub format: u32,
    pub pg_bin_dir: PathBuf,
    pub pg_version: String,
    pub pg_major: u32,
    pub auth: Auth,
    pub superuser: String,
    /// Present with SCRAM only.
    pub password: Option<String>,
    /// The same password as every server keeps it. One verifier for all, so that a router that knows a client's key can
    /// log in everywhere.
    pub password_verifier: Option<String>,
    /// The user that owns the servers' files, if root made them.
    pub os_user: Option<String>,
    pub shard_count: Option<u32>,
    /// Whether the metadata knows `shard_count`.
    pub shard_count_applied: bool,
    pub settings: Vec<(String, String)>,
    /// The coordinator's port, which the workers' follow; none: each has the one that was free.
    pub server_port: Option<u16>,
    /// 0 until a port was chosen.
    pub router_port: u16,
    /// The coordinator first, then the workers in the order of their numbers.
    pub nodes: Vec<NodeState>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeState {
    /// `coordinator`, `worker-1`, …; also the name of its directory.
    pub name: String,
    /// 0 until a port was chosen.
    pub port: u16,
    /// The port under which the metadata knows the node.
    pub registered_port: Option<u16>,
    /// Whether its data directory was made. If it is gone after that, data is gone, and nobody makes an empty one in
    /// its place.
    pub made: bool,
}

/// One line of `pgherd status`.
#[derive(Debug, Clone)]
pub struct NodeStatus {
    pub name: String,
    pub port: u16,
    pub pid: Option<u32>,
    pub data_dir: PathBuf,
    pub log_file: PathBuf,
}

/// Settings of the servers, and their first port.
type Chosen = (Vec<(String, String)>, Option<u16>);

/// A cluster whose lock we hold.
#[derive(Debug)]
pub struct Cluster {
    pub dir: PathBuf,
    pub state: ClusterState,
    /// Settings and first port that it had, where `up` was given others that no server has started with yet.
    settings_before: Option<Chosen>,
    _lock: FileLock,
}

impl ClusterState {
    /// Reads the state file of the cluster in `dir`; `None` if there is no cluster.
    pub fn read(dir: &Path) -> Result<Option<ClusterState>, EmbeddedError> {
        let path = state_path(dir);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(EmbeddedError::io("read", &path, &error)),
        };
        let damaged = |why: String| {
            EmbeddedError::new(ErrorKind::System, format!("could not understand \"{}\": {why}", path.display()))
        };
        let state: ClusterState = serde_json::from_slice(&text).map_err(|error| {
            damaged(error.to_string()).hint("it was written by another version of pgherd, or changed by hand")
        })?;
        if state.format != STATE_FORMAT {
            return Err(damaged(format!("format {} instead of {STATE_FORMAT}", state.format)));
        }
        Ok(Some(state))
    }

    pub fn coordinator(&self) -> &NodeState {
        &self.nodes[0]
    }

    pub fn workers(&self) -> &[NodeState] {
        &self.nodes[1..]
    }

    /// A URL of the superuser on this port. The password is in it only if `with_password`.
    pub fn url(&self, port: u16, with_password: bool) -> String {
        let password = match &self.password {
            Some(password) if with_password => format!(":{password}"),
            _ => String::new(),
        };
        format!("postgres://{}{password}@127.0.0.1:{port}/postgres", self.superuser)
    }

    /// The directory of the node's server in the cluster's.
    pub fn node_dir(dir: &Path, node: &NodeState) -> PathBuf {
        dir.join(&node.name)
    }

    /// What runs now.
    pub fn status(&self, dir: &Path) -> Result<Vec<NodeStatus>, EmbeddedError> {
        self.nodes
            .iter()
            .map(|node| {
                let node_dir = ClusterState::node_dir(dir, node);
                let server = Server::attach(&node_dir, &self.superuser)?;
                Ok(NodeStatus {
                    name: node.name.clone(),
                    port: server.as_ref().map(|server| server.port).filter(|port| *port != 0).unwrap_or(node.port),
                    pid: server.map(|server| server.pid()),
                    data_dir: node_dir.join("data"),
                    log_file: node_dir.join("server.log"),
                })
            })
            .collect()
    }
}

impl Cluster {
    /// Takes the lock of the cluster in `dir`; `None` if there is none.
    pub fn open(dir: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<Option<Cluster>, EmbeddedError> {
        let Ok(dir) = dir.canonicalize() else { return Ok(None) };
        if !state_path(&dir).exists() && !deletion_mark(&dir).exists() {
            return Ok(None);
        }
        let lock = take_lock(&dir, progress)?;
        finish_deletion(&dir)?;
        Ok(ClusterState::read(&dir)?.map(|state| Cluster { dir, state, settings_before: None, _lock: lock }))
    }

    /// The cluster in `spec.dir`, made if there is none (`choose_pg` is asked for PostgreSQL, with the state of an
    /// existing cluster) and changed to what `spec` wants. No server is started yet.
    pub fn open_or_create(
        spec: &ClusterSpec,
        choose_pg: impl FnOnce(Option<&ClusterState>) -> Result<PgBin, EmbeddedError>,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<(Cluster, PgBin), EmbeddedError> {
        check_spec(spec)?;
        let user = ServerUser::choose(None)?;
        if let Some(user) = &user {
            user.check_can_reach(&spec.dir, "the cluster's directory", super::server::REACHABLE_HINT)?;
        }
        make_directories(&spec.dir, if user.is_some() { 0o755 } else { 0o700 })?;
        let dir = spec.dir.canonicalize().map_err(|error| EmbeddedError::io("look at", &spec.dir, &error))?;
        if !state_path(&dir).exists() && !deletion_mark(&dir).exists() {
            refuse_foreign_directory(&dir)?;
        }
        let lock = take_lock(&dir, progress)?;
        finish_deletion(&dir)?;
        let existing = ClusterState::read(&dir)?;
        let pg = choose_pg(existing.as_ref())?;
        // What a server does not take is not kept: it would take it at no later start either.
        super::server::check_settings(&pg, user.as_ref(), &spec.settings)?;
        let (state, settings_before) = match existing {
            Some(state) => {
                let before = (state.settings.clone(), state.server_port);
                (changed_state(state, spec, &pg)?, before)
            }
            None => (new_state(spec, &pg)?, (Vec::new(), None)),
        };
        check_ports(&state)?;
        let settings_before =
            (settings_before != (state.settings.clone(), state.server_port)).then_some(settings_before);
        let cluster = Cluster { dir, state, settings_before, _lock: lock };
        cluster.save()?;
        Ok((cluster, pg))
    }

    /// Writes the state file.
    pub fn save(&self) -> Result<(), EmbeddedError> {
        save_state(&self.dir, &self.state)
    }

    /// Starts, or finds running, every server; all at once. Ports that were taken by others are replaced, which
    /// `registered_port` then differs from.
    pub fn start_servers(
        &mut self,
        pg: &PgBin,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Vec<Server>, EmbeddedError> {
        let user = ServerUser::choose(self.state.os_user.as_deref())?;
        let ports = self.reserved_ports();
        let state = Mutex::new(self.state.clone());
        let chosen = Mutex::new(ports);
        let dir = &self.dir;
        let results: Vec<Result<Server, EmbeddedError>> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..self.state.nodes.len())
                .map(|index| {
                    let (state, chosen, user) = (&state, &chosen, &user);
                    scope.spawn(move || start_node(pg, dir, index, state, chosen, user.clone(), progress))
                })
                .collect();
            starts
                .into_iter()
                .map(|start| {
                    start.join().unwrap_or_else(|_| {
                        Err(EmbeddedError::new(ErrorKind::System, "a thread that started a server panicked"))
                    })
                })
                .collect()
        });
        self.state = state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let started: Result<Vec<Server>, EmbeddedError> = results.into_iter().collect();
        match (started, self.settings_before.take()) {
            (Err(error), Some(before)) => {
                // No later start would go better.
                (self.state.settings, self.state.server_port) = before;
                self.save()?;
                Err(error.hint("what --set, --unset and --server-port said is not kept; it may be the reason"))
            }
            (started, _) => started,
        }
    }

    /// Stops every server that runs, all at once; returns how many there were.
    pub fn stop_servers(
        &self,
        smart: Duration,
        fast: Duration,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<usize, EmbeddedError> {
        let servers = self
            .state
            .nodes
            .iter()
            .filter_map(|node| {
                Server::attach(&ClusterState::node_dir(&self.dir, node), &self.state.superuser).transpose()
            })
            .collect::<Result<Vec<_>, _>>()?;
        let count = servers.len();
        let results: Vec<Result<(), EmbeddedError>> = std::thread::scope(|scope| {
            let stops: Vec<_> = servers
                .into_iter()
                .map(|mut server| scope.spawn(move || server.stop_surely(smart, fast, progress)))
                .collect();
            stops
                .into_iter()
                .map(|stop| {
                    stop.join().unwrap_or_else(|_| {
                        Err(EmbeddedError::new(ErrorKind::System, "a thread that stopped a server panicked"))
                    })
                })
                .collect()
        });
        results.into_iter().collect::<Result<(), _>>().map(|()| count)
    }

    /// Removes everything that the cluster has in its directory, and the directory if nothing else is in it. The
    /// servers must have been stopped. If it is killed midway, the next one that opens the cluster goes on with it.
    pub fn delete(self) -> Result<(), EmbeddedError> {
        if let Some(running) = self.state.status(&self.dir)?.into_iter().find(|node| node.pid.is_some()) {
            return Err(EmbeddedError::new(
                ErrorKind::Server,
                format!("{} still runs, so nothing is deleted", running.name),
            ));
        }
        let mark = deletion_mark(&self.dir);
        std::fs::rename(state_path(&self.dir), &mark)
            .map_err(|error| EmbeddedError::io("rename the state file to", &mark, &error))?;
        finish_deletion(&self.dir)?;
        let _ = std::fs::remove_file(lock_path(&self.dir));
        // Fails if somebody put something else there, which then stays.
        let _ = std::fs::remove_dir(&self.dir);
        Ok(())
    }

    /// Ports that are spoken for: now, or in the metadata, where two nodes must never swap theirs.
    pub fn reserved_ports(&self) -> BTreeSet<u16> {
        let mut ports: BTreeSet<u16> =
            self.state.nodes.iter().flat_map(|node| [Some(node.port), node.registered_port]).flatten().collect();
        ports.insert(self.state.router_port);
        ports.remove(&0);
        ports
    }
}

fn start_node(
    pg: &PgBin,
    dir: &Path,
    index: usize,
    state: &Mutex<ClusterState>,
    chosen: &Mutex<BTreeSet<u16>>,
    user: Option<ServerUser>,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Server, EmbeddedError> {
    let locked = |lock: &Mutex<BTreeSet<u16>>| lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let known = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let node = &known.nodes[index];
    let node_dir = ClusterState::node_dir(dir, node);
    if node.made && !node_dir.join("data").is_dir() {
        return Err(EmbeddedError::new(
            ErrorKind::System,
            format!("the data directory \"{}\" of {} is gone", node_dir.join("data").display(), node.name),
        )
        .hint("put it back, or remove the whole cluster with \"pgherd down --delete\""));
    }
    let say = |line: &str| progress(&format!("{}: {line}", node.name));
    let spec = ServerSpec {
        dir: node_dir,
        port: port_of(&known, index),
        port_may_change: known.server_port.is_none(),
        ports_reserved: locked(chosen).into_iter().filter(|port| *port != port_of(&known, index)).collect(),
        settings: known.settings.clone(),
        auth: known.auth,
        superuser: known.superuser.clone(),
        password: known.password_verifier.clone(),
        user,
    };
    let server = Server::start(pg, &spec, &say).map_err(|mut error| {
        error.message = format!("{}: {}", node.name, error.message);
        error
    })?;
    chosen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(server.port);
    let verb = if server.adopted { "runs already" } else { "started" };
    say(&format!("{verb} on 127.0.0.1:{}", server.port));
    // One file for all nodes: whoever comes later writes what the earlier ones put in.
    let mut state = state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    state.nodes[index].port = server.port;
    state.nodes[index].made = true;
    save_state(dir, &state)?;
    Ok(server)
}

/// 0: any that is free.
fn port_of(state: &ClusterState, index: usize) -> u16 {
    let chosen = state.server_port.zip(u16::try_from(index).ok());
    chosen.map_or(state.nodes[index].port, |(first, index)| first.saturating_add(index))
}

fn check_ports(state: &ClusterState) -> Result<(), EmbeddedError> {
    let Some(first) = state.server_port else { return Ok(()) };
    let last = usize::from(first) + state.nodes.len() - 1;
    if last > usize::from(u16::MAX) {
        return Err(EmbeddedError::usage(format!(
            "the servers' ports from {first} on would end at {last}, above 65535"
        )));
    }
    if (usize::from(first)..=last).contains(&usize::from(state.router_port)) {
        return Err(EmbeddedError::usage(format!(
            "the servers' ports {first} to {last} contain the router's, {}",
            state.router_port
        )));
    }
    Ok(())
}

fn check_spec(spec: &ClusterSpec) -> Result<(), EmbeddedError> {
    if spec.workers == Some(0) {
        return Err(EmbeddedError::usage("a cluster needs at least one worker"));
    }
    if let Some(workers) = spec.workers.filter(|workers| *workers > WORKERS_MAX) {
        return Err(EmbeddedError::usage(format!(
            "{workers} workers on one machine are too many: at most {WORKERS_MAX}"
        )));
    }
    // The limits of citus.shard_count.
    if let Some(count) = spec.shard_count.filter(|count| !(1..=64000).contains(count)) {
        return Err(EmbeddedError::usage(format!("{count} is not a number of shards: 1 to 64000")));
    }
    Ok(())
}

fn new_state(spec: &ClusterSpec, pg: &PgBin) -> Result<ClusterState, EmbeddedError> {
    let auth = spec.auth.unwrap_or(Auth::Trust);
    let password = match auth {
        Auth::Trust => None,
        Auth::ScramSha256 => Some(hex(&random_bytes::<16>()?)),
    };
    let password_verifier = match &password {
        Some(password) => Some(scram_verifier(password, &random_bytes::<16>()?)),
        None => None,
    };
    let mut nodes = vec![new_node(COORDINATOR.to_owned())];
    nodes.extend((1..=spec.workers.unwrap_or(WORKERS_DEFAULT)).map(|number| new_node(format!("worker-{number}"))));
    Ok(ClusterState {
        format: STATE_FORMAT,
        pg_bin_dir: pg.bin_dir.clone(),
        pg_version: pg.full_version.clone(),
        pg_major: pg.version,
        auth,
        superuser: "postgres".to_owned(),
        password,
        password_verifier,
        os_user: ServerUser::choose(None)?.map(|user| user.name),
        shard_count: spec.shard_count,
        shard_count_applied: false,
        settings: spec.settings.clone(),
        server_port: spec.server_port,
        router_port: 0,
        nodes,
    })
}

fn new_node(name: String) -> NodeState {
    NodeState { name, port: 0, registered_port: None, made: false }
}

/// An existing cluster grows by workers, takes another minor version and another shard count; what cannot change is
/// refused.
fn changed_state(mut state: ClusterState, spec: &ClusterSpec, pg: &PgBin) -> Result<ClusterState, EmbeddedError> {
    if pg.version != state.pg_major {
        return Err(EmbeddedError::usage(format!(
            "the cluster's data was made by PostgreSQL {} and cannot be used with {}",
            state.pg_version, pg.full_version
        ))
        .hint("start it without --pg and --pg-bin, or make another cluster in another --dir"));
    }
    if let Some(auth) = spec.auth.filter(|auth| *auth != state.auth) {
        return Err(EmbeddedError::usage(format!(
            "the cluster was made with --auth {} and cannot be started with {}",
            state.auth.method(),
            auth.method()
        )));
    }
    let workers = state.workers().len();
    if let Some(wanted) = spec.workers {
        if wanted < workers {
            return Err(EmbeddedError::usage(format!("the cluster has {workers} workers, more than {wanted}")).hint(
                "take a worker out with \"SELECT citus_remove_node(…)\" when its shards were moved; starting with \
                 fewer would leave out data",
            ));
        }
        state.nodes.extend((workers + 1..=wanted).map(|number| new_node(format!("worker-{number}"))));
    }
    if let Some(count) = spec.shard_count
        && state.shard_count != Some(count)
    {
        state.shard_count = Some(count);
        state.shard_count_applied = false;
    }
    state.settings.retain(|(known, _)| !spec.unset.contains(known));
    for (name, value) in &spec.settings {
        state.settings.retain(|(known, _)| known != name);
        state.settings.push((name.clone(), value.clone()));
    }
    state.server_port = spec.server_port.or(state.server_port);
    state.pg_bin_dir = pg.bin_dir.clone();
    state.pg_version = pg.full_version.clone();
    Ok(state)
}

fn refuse_foreign_directory(dir: &Path) -> Result<(), EmbeddedError> {
    let foreign = std::fs::read_dir(dir)
        .map_err(|error| EmbeddedError::io("look at directory", dir, &error))?
        .flatten()
        .find(|entry| entry.file_name() != "lock" && !entry.file_name().to_string_lossy().starts_with("cluster.tmp"));
    match foreign {
        None => Ok(()),
        Some(entry) => Err(EmbeddedError::usage(format!(
            "\"{}\" is not empty and not a cluster (it has \"{}\")",
            dir.display(),
            entry.file_name().to_string_lossy()
        ))
        .hint("choose another directory with --dir")),
    }
}

fn finish_deletion(dir: &Path) -> Result<(), EmbeddedError> {
    let mark = deletion_mark(dir);
    if !mark.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir).map_err(|error| EmbeddedError::io("look at directory", dir, &error))?.flatten()
    {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == COORDINATOR || name == "router" || name.starts_with("worker-") {
            let path = entry.path();
            std::fs::remove_dir_all(&path).map_err(|error| EmbeddedError::io("remove directory", &path, &error))?;
        }
    }
    std::fs::remove_file(&mark).map_err(|error| EmbeddedError::io("remove", &mark, &error))
}

fn take_lock(dir: &Path, progress: &(dyn Fn(&str) + Sync)) -> Result<FileLock, EmbeddedError> {
    let mut lock = FileLock::take(&lock_path(dir), LOCK_TIMEOUT, || {
        let holder = std::fs::read_to_string(lock_path(dir)).unwrap_or_default();
        progress(&format!("waiting for another pgherd that is at work here (process {})", holder.trim()));
    })?;
    let _ = lock.write(&format!("{}\n", std::process::id()));
    Ok(lock)
}

fn save_state(dir: &Path, state: &ClusterState) -> Result<(), EmbeddedError> {
    let mut text = serde_json::to_vec_pretty(state)
        .map_err(|error| EmbeddedError::new(ErrorKind::System, format!("could not write the state file: {error}")))?;
    text.push(b'\n');
    write_atomically(&state_path(dir), &text, 0o600)
}

fn state_path(dir: &Path) -> PathBuf {
    dir.join("cluster.json")
}

fn deletion_mark(dir: &Path) -> PathBuf {
    dir.join("cluster.json.deleting")
}

fn lock_path(dir: &Path) -> PathBuf {
    dir.join("lock")
}

/// What PostgreSQL keeps instead of a password (`src/common/scram-common.c`, scram_build_secret). The password must be
/// ASCII, which SASLprep leaves as it is.
fn scram_verifier(password: &str, salt: &[u8; 16]) -> String {
    const ITERATIONS: u32 = 4096;
    let salted = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), salt, ITERATIONS);
    let client_key = hmac_sha256(&salted, b"Client Key");
    let server_key = hmac_sha256(&salted, b"Server Key");
    format!(
        "SCRAM-SHA-256${ITERATIONS}:{}${}:{}",
        BASE64.encode(salt),
        BASE64.encode(Sha256::digest(client_key)),
        BASE64.encode(server_key)
    )
}

fn hmac_sha256(key: &[u8; 32], text: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length, so the error of `new_from_slice` cannot come; a key of no bytes would be no
    // secret.
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mut mac) => {
            mac.update(text);
            mac.finalize().into_bytes().into()
        }
        Err(_) => unreachable!("HMAC-SHA-256 takes a key of 32 bytes"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pg(major: u32) -> PgBin {
        PgBin { bin_dir: "/usr/lib/postgresql/bin".into(), version: major, full_version: format!("{major}.1") }
    }

    fn spec() -> ClusterSpec {
        ClusterSpec { dir: "/nonexistent".into(), ..ClusterSpec::default() }
    }

    fn names(state: &ClusterState) -> Vec<&str> {
        state.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    #[test]
    fn a_new_cluster_has_three_workers_and_trusts() {
        let state = new_state(&spec(), &pg(18)).unwrap();
        assert_eq!(names(&state), ["coordinator", "worker-1", "worker-2", "worker-3"]);
        assert_eq!((state.auth, state.password), (Auth::Trust, None));
    }

    #[test]
    fn an_existing_cluster_grows_and_never_shrinks() {
        let state = new_state(&ClusterSpec { workers: Some(1), ..spec() }, &pg(18)).unwrap();
        let state = changed_state(state, &ClusterSpec { workers: Some(2), ..spec() }, &pg(18)).unwrap();
        assert_eq!(names(&state), ["coordinator", "worker-1", "worker-2"]);
        let same = changed_state(state.clone(), &spec(), &pg(18)).unwrap();
        assert_eq!(same, state);
        let error = changed_state(state, &ClusterSpec { workers: Some(1), ..spec() }, &pg(18)).unwrap_err();
        assert_eq!(error.message, "the cluster has 2 workers, more than 1");
    }

    #[test]
    fn another_minor_version_is_taken_and_another_major_refused() {
        let state = new_state(&spec(), &pg(18)).unwrap();
        let newer = PgBin { full_version: "18.2".to_owned(), ..pg(18) };
        assert_eq!(changed_state(state.clone(), &spec(), &newer).unwrap().pg_version, "18.2");
        let error = changed_state(state, &spec(), &pg(17)).unwrap_err();
        assert_eq!(error.message, "the cluster's data was made by PostgreSQL 18.1 and cannot be used with 17.1");
    }

    #[test]
    fn authentication_stays_what_it_was() {
        let scram = ClusterSpec { auth: Some(Auth::ScramSha256), ..spec() };
        let state = new_state(&scram, &pg(18)).unwrap();
        assert!(state.password.is_some() && state.password_verifier.is_some());
        changed_state(state.clone(), &scram, &pg(18)).unwrap();
        let error = changed_state(state, &ClusterSpec { auth: Some(Auth::Trust), ..spec() }, &pg(18)).unwrap_err();
        assert_eq!(error.message, "the cluster was made with --auth scram-sha-256 and cannot be started with trust");
    }

    #[test]
    fn impossible_numbers_are_refused() {
        for (spec, message) in [
            (ClusterSpec { workers: Some(0), ..spec() }, "a cluster needs at least one worker"),
            (ClusterSpec { workers: Some(65), ..spec() }, "65 workers on one machine are too many: at most 64"),
            (ClusterSpec { shard_count: Some(0), ..spec() }, "0 is not a number of shards: 1 to 64000"),
        ] {
            assert_eq!(check_spec(&spec).unwrap_err().message, message);
        }
    }

    #[test]
    fn the_state_survives_being_written_and_read() {
        let dir = std::env::temp_dir().join(format!("pgherd-state-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(ClusterState::read(&dir).unwrap(), None);
        let state = new_state(&ClusterSpec { shard_count: Some(8), ..spec() }, &pg(18)).unwrap();
        save_state(&dir, &state).unwrap();
        assert_eq!(ClusterState::read(&dir).unwrap(), Some(state));
        std::fs::write(state_path(&dir), "{\"format\": 1").unwrap();
        let error = ClusterState::read(&dir).unwrap_err();
        assert!(error.message.starts_with("could not understand \""), "{}", error.message);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_directory_of_something_else_is_refused() {
        let dir = std::env::temp_dir().join(format!("pgherd-foreign-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        refuse_foreign_directory(&dir).unwrap();
        std::fs::write(dir.join("letters.txt"), "").unwrap();
        let error = refuse_foreign_directory(&dir).unwrap_err();
        assert!(
            error.message.ends_with("is not empty and not a cluster (it has \"letters.txt\")"),
            "{}",
            error.message
        );
        std::fs::remove_dir_all(dir).unwrap();
    }
}
