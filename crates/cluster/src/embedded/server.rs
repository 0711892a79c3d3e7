//! One PostgreSQL server on loopback: made, started, adopted, stopped.
//!
//! The server is a process of its own that outlives us; what is known about it is in its directory, so that any later
//! process finds it again. Everything may be killed at any moment: initdb works in a temporary directory that gets its
//! name when it is complete, and whether a server runs is asked of the process table, not remembered.
//!
//! Follows PostgreSQL's `src/backend/utils/init/miscinit.c` (postmaster.pid) and `src/bin/pg_ctl/pg_ctl.c`. `pg_ctl`
//! itself is not used: it passes the log's path through a shell, and signals do all that we need.

use super::error::{EmbeddedError, ErrorKind, LogExcerpt, read_from};
use super::os::{
    FileLock, ProcessId, ServerUser, free_port, make_directories, port_is_free, random_bytes, working_directory,
    write_atomically,
};
use super::pg_bin::PgBin;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start; recovery after a crash can be slow, and is told about while it goes on.
const START_TIMEOUT: Duration = Duration::from_secs(600);
/// How long leftovers of a killed server may keep its shared memory before a start is given up.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(30);
/// How often another port is tried when somebody took ours between the look and the start.
const PORT_ATTEMPTS_MAX: u32 = 5;
/// How long a second process waits for the first that starts the same server.
const START_LOCK_TIMEOUT: Duration = Duration::from_secs(900);

pub(super) const REACHABLE_HINT: &str =
    "choose a directory below one that everyone may enter, such as /var/lib or /tmp, with --dir";

/// How clients and routers prove who they are to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Auth {
    /// Everyone who can reach the loopback port is believed.
    #[serde(rename = "trust")]
    Trust,
    #[serde(rename = "scram-sha-256")]
    ScramSha256,
}

impl Auth {
    /// The name in `pg_hba.conf`.
    pub fn method(self) -> &'static str {
        match self {
            Auth::Trust => "trust",
            Auth::ScramSha256 => "scram-sha-256",
        }
    }
}

/// A server as wanted.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Everything of this server is below it: `data`, `server.log`.
    pub dir: PathBuf,
    /// The port to listen on at 127.0.0.1; 0 takes a free one. Another is taken if it is in use and
    /// `port_may_change`.
    pub port: u16,
    pub port_may_change: bool,
    /// Ports that must not be chosen although they are free.
    pub ports_reserved: BTreeSet<u16>,
    /// Settings for `postgresql.conf`, rewritten at each start; `ALTER SYSTEM` overrides them.
    pub settings: Vec<(String, String)>,
    pub auth: Auth,
    pub superuser: String,
    /// The superuser's password, or its SCRAM verifier, which PostgreSQL then keeps as it is. Needed for
    /// [`Auth::ScramSha256`].
    pub password: Option<String>,
    /// The user to run as; see [`ServerUser::choose`].
    pub user: Option<ServerUser>,
}

impl ServerSpec {
    /// A server in `dir` on a free port, superuser `postgres`, trusting everyone on loopback, as an unprivileged user.
    pub fn new(dir: impl Into<PathBuf>) -> Result<ServerSpec, EmbeddedError> {
        Ok(ServerSpec {
            dir: dir.into(),
            port: 0,
            port_may_change: true,
            ports_reserved: BTreeSet::new(),
            settings: Vec::new(),
            auth: Auth::Trust,
            superuser: "postgres".to_owned(),
            password: None,
            user: ServerUser::choose(None)?,
        })
    }

    pub fn setting(mut self, name: &str, value: impl ToString) -> Self {
        self.settings.push((name.to_owned(), value.to_string()));
        self
    }
}

/// What every server of an embedded cluster is started with, before the settings of its [`ServerSpec`].
pub fn default_settings() -> Vec<(String, String)> {
    [
        ("listen_addresses", "127.0.0.1"),
        // The path of a socket may have 107 bytes, the cluster's directory may be deeper; loopback TCP always works.
        ("unix_socket_directories", ""),
        ("max_connections", "300"),
        ("max_prepared_transactions", "200"),
        ("shared_buffers", "128MB"),
        ("wal_level", "replica"),
        ("logging_collector", "off"),
        ("log_destination", "stderr"),
        ("log_line_prefix", "%m [%p] %q%u@%d "),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

/// How to stop a server; PostgreSQL's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Waits until all clients have left.
    Smart,
    /// Disconnects the clients, writes a checkpoint.
    Fast,
    /// No checkpoint; the next start recovers from the log. Nothing that was committed is lost.
    Immediate,
}

impl StopMode {
    fn signal(self) -> Signal {
        match self {
            StopMode::Smart => Signal::TERM,
            StopMode::Fast => Signal::INT,
            StopMode::Immediate => Signal::QUIT,
        }
    }
}

/// A running server. Dropping it leaves it running.
#[derive(Debug)]
pub struct Server {
    pub dir: PathBuf,
    pub port: u16,
    pub superuser: String,
    /// Whether it ran already when it was wanted.
    pub adopted: bool,
    process: ProcessId,
    /// Kept so that a server that ends while we live does not stay a zombie.
    child: Option<Child>,
}

impl Server {
    /// Makes the data directory if there is none, then starts the server unless it runs already, and waits until it
    /// takes connections. `progress` hears of what takes long.
    pub fn start(pg: &PgBin, spec: &ServerSpec, progress: &(dyn Fn(&str) + Sync)) -> Result<Server, EmbeddedError> {
        make_directories(&spec.dir, if spec.user.is_some() { 0o755 } else { 0o700 })?;
        let dir = spec.dir.canonicalize().map_err(|error| EmbeddedError::io("look at", &spec.dir, &error))?;
        if let Some(user) = &spec.user {
            user.check_can_reach(&dir, "the server's directory", REACHABLE_HINT)?;
            user.check_can_reach(
                &pg.bin_dir,
                "PostgreSQL's programs",
                "install PostgreSQL where everyone may read it, or set PGHERD_HOME to such a directory",
            )?;
        }
        let _lock = FileLock::take(&dir.join("lock"), START_LOCK_TIMEOUT, || {
            progress(&format!("another process is starting the server in {}; waiting for it", dir.display()));
        })?;
        make_data_directory(pg, spec, &dir, progress)?;
        if let Some(server) = Server::attach(&dir, &spec.superuser)? {
            let process = server.process;
            match wait_until_ready(server, progress) {
                // It was on its way down.
                Err(_) if !process.is_running() => {}
                other => return other,
            }
        }
        remove_stale_pid_file(&dir.join("data"))?;
        launch(pg, spec, &dir, progress)
    }

    /// The server in `dir`, if it runs. It may still be starting up, or be going down.
    pub fn attach(dir: &Path, superuser: &str) -> Result<Option<Server>, EmbeddedError> {
        let Ok(dir) = dir.canonicalize() else { return Ok(None) };
        let Some(pid_file) = PidFile::read(&dir.join("data")) else { return Ok(None) };
        let Some(process) = pid_file.running_server(&dir.join("data")) else { return Ok(None) };
        Ok(Some(Server {
            port: pid_file.port,
            dir,
            superuser: superuser.to_owned(),
            adopted: true,
            process,
            child: None,
        }))
    }

    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    pub fn is_running(&self) -> bool {
        self.process.is_running()
    }

    pub fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    pub fn log_file(&self) -> PathBuf {
        self.dir.join("server.log")
    }

    /// A connection URL, without a password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{}@127.0.0.1:{}/{database}", self.superuser, self.port)
    }

    /// Tells the server to stop and waits up to `timeout`; false if it still runs then.
    pub fn stop(&mut self, mode: StopMode, timeout: Duration) -> bool {
        self.process.signal(mode.signal());
        let gone = self.process.wait_gone(timeout);
        self.reap();
        gone
    }

    /// Stops in the way that loses least, in ever stronger words: smart, fast, immediate. The last is said: the server
    /// has to recover when it is started again.
    pub fn stop_surely(
        &mut self,
        smart: Duration,
        fast: Duration,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<(), EmbeddedError> {
        if self.stop(StopMode::Smart, smart) || self.stop(StopMode::Fast, fast) {
            return Ok(());
        }
        progress(&format!(
            "the server in {} has not stopped within {} s of a fast shutdown: shutting it down immediately",
            self.dir.display(),
            fast.as_secs()
        ));
        if self.stop(StopMode::Immediate, Duration::from_secs(30)) {
            return Ok(());
        }
        Err(EmbeddedError::new(
            ErrorKind::Server,
            format!("the server in \"{}\" (process {}) does not stop", self.dir.display(), self.pid()),
        )
        .log(LogExcerpt::read(&self.log_file(), 0)))
    }

    /// Ends the postmaster at once as `kill -9` does, for tests; its children notice and end by themselves.
    pub fn kill(&mut self) {
        self.process.signal(Signal::KILL);
        self.process.wait_gone(Duration::from_secs(30));
        self.reap();
    }

    fn reap(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.try_wait();
        }
    }
}

/// What `postmaster.pid` says (miscinit.c, "lock file").
#[derive(Debug, PartialEq, Eq)]
struct PidFile {
    pid: u32,
    port: u16,
    /// `starting`, `stopping`, `ready`, `standby`; empty until it is known.
    status: String,
}

impl PidFile {
    fn read(data_dir: &Path) -> Option<PidFile> {
        let text = std::fs::read_to_string(data_dir.join("postmaster.pid")).ok()?;
        let mut lines = text.lines();
        let pid = lines.next()?.trim().parse().ok()?;
        let port = lines.nth(2).and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        let status = lines.nth(3).map(|line| line.trim().to_owned()).unwrap_or_default();
        Some(PidFile { pid, port, status })
    }

    /// The process, if it really is the server of `data_dir`: a postmaster works in its data directory, so a stranger
    /// that got the same id later is told apart.
    fn running_server(&self, data_dir: &Path) -> Option<ProcessId> {
        let process = ProcessId::of(self.pid)?;
        let there = working_directory(self.pid)?;
        (there == data_dir.canonicalize().ok()?).then_some(process)
    }
}

/// Removes a `postmaster.pid` whose process is gone or somebody else's. PostgreSQL does so only if no process has the
/// number, and refuses to start if another one of the same user has got it. The shared memory, which PostgreSQL finds
/// by the data directory and not by this file, still protects against leftovers of a killed server.
fn remove_stale_pid_file(data_dir: &Path) -> Result<(), EmbeddedError> {
    let path = data_dir.join("postmaster.pid");
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(EmbeddedError::io("remove", &path, &error)),
        _ => Ok(()),
    }
}

fn make_data_directory(
    pg: &PgBin,
    spec: &ServerSpec,
    dir: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<(), EmbeddedError> {
    let data_dir = dir.join("data");
    remove_half_made(dir);
    if data_dir.is_dir() {
        return check_data_directory(pg, &data_dir);
    }
    progress(&format!("making the data directory {}", data_dir.display()));
    let temporary = dir.join(format!("{HALF_MADE_PREFIX}{:016x}", u64::from_le_bytes(random_bytes()?)));
    let password_file = dir.join(format!("{HALF_MADE_PREFIX}password"));
    let result = run_initdb(pg, spec, dir, &temporary, &password_file);
    let _ = std::fs::remove_file(&password_file);
    if let Err(error) = result {
        let _ = std::fs::remove_dir_all(&temporary);
        return Err(error);
    }
    std::fs::rename(&temporary, &data_dir).map_err(|error| EmbeddedError::io("rename directory to", &data_dir, &error))
}

/// A data directory has this before its name until it is complete.
const HALF_MADE_PREFIX: &str = ".half-made-";
/// For an initdb that nobody waits for any more. What it leaves after that the next start removes.
const HALF_MADE_WAIT: Duration = Duration::from_secs(10);

fn remove_half_made(dir: &Path) {
    // An initdb whose parent was killed may write while we remove; it ends when it misses its files.
    let deadline = Instant::now() + HALF_MADE_WAIT;
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(HALF_MADE_PREFIX) {
            let path = entry.path();
            while std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).is_err()
                && path.exists()
                && Instant::now() < deadline
            {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

fn check_data_directory(pg: &PgBin, data_dir: &Path) -> Result<(), EmbeddedError> {
    let Ok(version) = std::fs::read_to_string(data_dir.join("PG_VERSION")) else {
        return Err(EmbeddedError::usage(format!(
            "\"{}\" exists and is not a data directory of PostgreSQL",
            data_dir.display()
        ))
        .hint("move it away, or choose another directory with --dir"));
    };
    if version.trim() != pg.version.to_string() {
        return Err(EmbeddedError::usage(format!(
            "the data directory \"{}\" was made by PostgreSQL {} and cannot be used with {}",
            data_dir.display(),
            version.trim(),
            pg.full_version
        ))
        .hint(format!("use --pg {}, or the --pg-bin directory of that version", version.trim())));
    }
    Ok(())
}

fn run_initdb(
    pg: &PgBin,
    spec: &ServerSpec,
    dir: &Path,
    data_dir: &Path,
    password_file: &Path,
) -> Result<(), EmbeddedError> {
    std::fs::create_dir(data_dir).map_err(|error| EmbeddedError::io("create directory", data_dir, &error))?;
    own(data_dir, spec.user.as_ref())?;
    let mut command = server_command(&pg.program("initdb"), spec.user.as_ref(), dir);
    command
        .arg("--pgdata")
        .arg(data_dir)
        .args(["--username", &spec.superuser, "--encoding", "UTF8"])
        .arg(format!("--auth={}", spec.auth.method()));
    // The same order and the same bytes on every node and machine. Version 17 brought a provider that does not depend
    // on the C library.
    if pg.version >= 17 {
        command.args(["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C.UTF-8"]);
    } else {
        command.arg("--locale=C.UTF-8");
    }
    if let Some(password) = &spec.password {
        write_atomically(password_file, password.as_bytes(), 0o600)?;
        own(password_file, spec.user.as_ref())?;
        command.arg("--pwfile").arg(password_file);
    }
    let output = command.output().map_err(|error| EmbeddedError::io("run", &pg.program("initdb"), &error))?;
    if !output.status.success() {
        let log = dir.join("initdb.log");
        let mut text = output.stdout;
        text.extend_from_slice(&output.stderr);
        write_atomically(&log, &text, 0o644)?;
        return Err(EmbeddedError::new(
            ErrorKind::Server,
            format!("initdb could not make a data directory ({})", output.status),
        )
        .log(LogExcerpt::read(&log, 0)));
    }
    append_include(data_dir)
}

/// Ours come after what initdb wrote, and before what ALTER SYSTEM writes.
fn append_include(data_dir: &Path) -> Result<(), EmbeddedError> {
    use std::io::Write;
    let path = data_dir.join("postgresql.conf");
    OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| writeln!(file, "\n# rewritten at each start by pgherd\ninclude_if_exists = 'pgherd.conf'"))
        .map_err(|error| EmbeddedError::io("write", &path, &error))
}

fn write_settings(spec: &ServerSpec, data_dir: &Path, port: u16) -> Result<(), EmbeddedError> {
    let mut text = String::from("# Written by pgherd at each start. Change settings with ALTER SYSTEM.\n");
    let port = ("port".to_owned(), port.to_string());
    for (name, value) in default_settings().iter().chain(&spec.settings).chain([&port]) {
        text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
    }
    let path = data_dir.join("pgherd.conf");
    write_atomically(&path, text.as_bytes(), 0o600)?;
    own(&path, spec.user.as_ref())
}

/// Starts the server, on another port if ours is taken and may change.
fn launch(
    pg: &PgBin,
    spec: &ServerSpec,
    dir: &Path,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Server, EmbeddedError> {
    let mut taken = spec.ports_reserved.clone();
    let mut port = spec.port;
    let started = Instant::now();
    let mut attempts = 0;
    loop {
        if port == 0 || !port_is_free(port) {
            if port != 0 && !spec.port_may_change {
                return Err(EmbeddedError::new(ErrorKind::Busy, format!("port {port} is in use by another process")));
            }
            taken.insert(port);
            port = free_port(&taken)?;
        }
        let log = dir.join("server.log");
        let log_start = std::fs::metadata(&log).map(|meta| meta.len()).unwrap_or(0);
        let server = spawn(pg, spec, dir, port)?;
        let error = match wait_until_ready(server, progress) {
            Ok(server) => return Ok(server),
            Err(error) => error,
        };
        let said = read_from(&log, log_start);
        if said.contains("pre-existing shared memory block") && started.elapsed() < LEFTOVERS_TIMEOUT {
            // Backends of a killed postmaster end as soon as they notice.
            std::thread::sleep(Duration::from_millis(200));
        } else if said.contains("Address already in use") && spec.port_may_change && attempts < PORT_ATTEMPTS_MAX {
            attempts += 1;
            taken.insert(port);
            port = free_port(&taken)?;
        } else {
            return Err(error);
        }
    }
}

fn spawn(pg: &PgBin, spec: &ServerSpec, dir: &Path, port: u16) -> Result<Server, EmbeddedError> {
    let data_dir = dir.join("data");
    write_settings(spec, &data_dir, port)?;
    let log_path = dir.join("server.log");
    let log = open_log(&log_path)?;
    let postgres = pg.program("postgres");
    let output = log.try_clone().map_err(|error| EmbeddedError::io("open", &log_path, &error))?;
    let child = server_command(&postgres, spec.user.as_ref(), &data_dir)
        .arg("-D")
        .arg(&data_dir)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(log)
        .spawn()
        .map_err(|error| EmbeddedError::io("run", &postgres, &error))?;
    let process = ProcessId::of(child.id()).unwrap_or(ProcessId { pid: child.id(), start_ticks: 0 });
    Ok(Server {
        dir: dir.to_owned(),
        port,
        superuser: spec.superuser.clone(),
        adopted: false,
        process,
        child: Some(child),
    })
}

/// A log file to append to.
pub(crate) fn open_log(path: &Path) -> Result<File, EmbeddedError> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| EmbeddedError::io("open log file", path, &error))
}

fn wait_until_ready(mut server: Server, progress: &(dyn Fn(&str) + Sync)) -> Result<Server, EmbeddedError> {
    let started = Instant::now();
    let mut told = Instant::now();
    let data_dir = server.data_dir();
    loop {
        if let Some(pid_file) = PidFile::read(&data_dir)
            && pid_file.pid == server.pid()
            && matches!(pid_file.status.as_str(), "ready" | "standby")
        {
            server.port = pid_file.port;
            return Ok(server);
        }
        let failed = |what: &str| {
            Err(EmbeddedError::new(ErrorKind::Server, format!("the server in \"{}\" {what}", server.dir.display()))
                .log(LogExcerpt::read(&server.log_file(), 0)))
        };
        if !server.is_running() {
            let result = failed("did not start");
            server.reap();
            return result;
        }
        if started.elapsed() > START_TIMEOUT {
            return failed("runs and takes no connections yet");
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            let log = LogExcerpt::read(&server.log_file(), 0);
            progress(&format!("still starting: {}", log.lines.last().map_or("no message yet", String::as_str)));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Has a server look at settings before it is started with them: at names that it does not know, and values out of
/// their range.
pub(crate) fn check_settings(
    pg: &PgBin,
    user: Option<&ServerUser>,
    settings: &[(String, String)],
) -> Result<(), EmbeddedError> {
    if settings.is_empty() {
        return Ok(());
    }
    let dir = std::env::temp_dir();
    let postgres = pg.program("postgres");
    let mut command = server_command(&postgres, user, &dir);
    // Without data, which is the last thing that it looks for.
    let nowhere = dir.join(format!("pgherd-none-{}", std::process::id()));
    command.arg("--check").arg("-D").arg(&nowhere);
    for (name, value) in settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    let output = command.output().map_err(|error| EmbeddedError::io("run", &postgres, &error))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let refused = said.lines().filter_map(|line| line.split_once("FATAL:  ")).map(|(_, why)| why).find(|why| {
        ["unrecognized configuration parameter", "for parameter", "parameter \""].iter().any(|word| why.contains(word))
    });
    match refused {
        Some(why) => Err(EmbeddedError::usage(format!("the servers do not take --set: {why}"))),
        None => Ok(()),
    }
}

/// A command that runs as the servers' user, in a process group of its own (a Ctrl-C in our terminal is not for it),
/// and without the settings for clients that our environment may hold.
fn server_command(program: &Path, user: Option<&ServerUser>, cwd: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(cwd).process_group(0);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C");
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

fn own(path: &Path, user: Option<&ServerUser>) -> Result<(), EmbeddedError> {
    match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid))
            .map_err(|error| EmbeddedError::io("change the owner of", path, &error)),
        None => Ok(()),
    }
}
