//! The router's place in a cluster's directory. The router itself holds a lock on `router/pid` as long as it lives, so
//! there is one router per directory, and whether it runs needs no guess about process ids.

use super::error::{EmbeddedError, ErrorKind, LogExcerpt};
use super::os::{FileLock, ProcessId, make_directories};
use super::server::open_log;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a router tries to get its place.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);

/// What the router writes into its pid file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct PidFile {
    process: ProcessId,
    /// The ports it listens on; empty until it takes connections.
    ports: Vec<u16>,
}

/// The router's side: holding it makes this process the router of the cluster.
#[derive(Debug)]
pub struct RouterSlot {
    lock: FileLock,
}

impl RouterSlot {
    /// Becomes the router of the cluster in `dir`; an error if another process is.
    pub fn take(dir: &Path) -> Result<RouterSlot, EmbeddedError> {
        let router_dir = dir.join("router");
        make_directories(&router_dir, 0o700)?;
        let path = pid_path(dir);
        // Those who look whether a router runs hold the lock for a moment, so one failure says nothing.
        let deadline = Instant::now() + SLOT_TIMEOUT;
        loop {
            if let Some(lock) = FileLock::try_take(&path)? {
                let mut slot = RouterSlot { lock };
                slot.listening_on(Vec::new())?;
                return Ok(slot);
            }
            if Instant::now() > deadline {
                return Err(EmbeddedError::new(
                    ErrorKind::Busy,
                    format!("a router of the cluster in \"{}\" runs already", dir.display()),
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Tells those who wait that the router takes connections.
    pub fn listening_on(&mut self, ports: Vec<u16>) -> Result<(), EmbeddedError> {
        let process = ProcessId::of(std::process::id()).ok_or_else(|| {
            EmbeddedError::new(ErrorKind::System, "could not find this process in /proc")
                .hint("the embedded cluster needs Linux with /proc mounted")
        })?;
        let text = serde_json::to_string(&PidFile { process, ports })
            .map_err(|error| EmbeddedError::new(ErrorKind::System, format!("could not write the pid file: {error}")))?;
        self.lock
            .write(&format!("{text}\n"))
            .map_err(|error| EmbeddedError::new(ErrorKind::System, format!("could not write the pid file: {error}")))
    }
}

/// The router seen from another process.
#[derive(Debug)]
pub struct RouterProcess {
    pub process: ProcessId,
    /// The ports it listens on; empty while it starts.
    pub ports: Vec<u16>,
    pub log_file: PathBuf,
}

impl RouterProcess {
    /// The router of the cluster in `dir`, if one runs.
    pub fn find(dir: &Path) -> Result<Option<RouterProcess>, EmbeddedError> {
        let path = pid_path(dir);
        if !path.exists() || FileLock::try_take(&path)?.is_some() {
            return Ok(None);
        }
        // It writes the file right after it took the lock, so a short wait is enough; an unreadable file means that it
        // has just ended or is about to write.
        for _ in 0..100 {
            if let Ok(text) = std::fs::read(&path)
                && let Ok(pid_file) = serde_json::from_slice::<PidFile>(&text)
                && pid_file.process.is_running()
            {
                return Ok(Some(RouterProcess {
                    process: pid_file.process,
                    ports: pid_file.ports,
                    log_file: log_path(dir),
                }));
            }
            if FileLock::try_take(&path)?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(EmbeddedError::new(
            ErrorKind::System,
            format!("a process holds \"{}\" and does not say which it is", path.display()),
        ))
    }

    /// Starts `command`, which must take the [`RouterSlot`] of `dir` and leave our session, in the background, and
    /// waits until it listens. Whatever it prints goes to its log file.
    pub fn start(dir: &Path, mut command: Command, timeout: Duration) -> Result<RouterProcess, EmbeddedError> {
        make_directories(&dir.join("router"), 0o700)?;
        let log_file = log_path(dir);
        let log_start = std::fs::metadata(&log_file).map(|meta| meta.len()).unwrap_or(0);
        let log = open_log(&log_file)?;
        let output = log.try_clone().map_err(|error| EmbeddedError::io("open", &log_file, &error))?;
        let mut child =
            command.current_dir("/").stdin(Stdio::null()).stdout(output).stderr(log).spawn().map_err(|error| {
                EmbeddedError::new(ErrorKind::System, format!("could not start the router: {error}"))
            })?;
        let started = Instant::now();
        loop {
            let failed = |what: String| {
                Err(EmbeddedError::new(ErrorKind::Server, what).log(LogExcerpt::read(&log_file, log_start)))
            };
            if let Some(router) = RouterProcess::find(dir)?
                && !router.ports.is_empty()
            {
                return Ok(router);
            }
            if let Some(status) = exit_status(&mut child) {
                return failed(format!("the router did not start ({status})"));
            }
            if started.elapsed() > timeout {
                let _ = child.kill();
                let _ = child.wait();
                return failed(format!("the router takes no connections after {} seconds", timeout.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks the router to stop: when its clients have left, within `smart`; else with them, within `fast`; else it is
    /// killed. Sessions that are cut off are rolled back by their servers.
    pub fn stop(&self, smart: Duration, fast: Duration) -> bool {
        for (signal, patience) in [(Signal::TERM, smart), (Signal::INT, fast), (Signal::KILL, Duration::from_secs(10))]
        {
            self.process.signal(signal);
            if self.process.wait_gone(patience) {
                return true;
            }
        }
        false
    }
}

fn exit_status(child: &mut Child) -> Option<String> {
    match child.try_wait() {
        Ok(Some(status)) => Some(status.to_string()),
        _ => None,
    }
}

fn pid_path(dir: &Path) -> PathBuf {
    dir.join("router/pid")
}

fn log_path(dir: &Path) -> PathBuf {
    dir.join("router/router.log")
}
