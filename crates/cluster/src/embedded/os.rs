//! What the embedded cluster asks of the operating system: processes that are surely the ones we mean, files that are
//! whole or absent, locks that die with their holder, free ports, and the user that servers run as when we are root.
//!
//! Linux only where `/proc` is read. Nothing here knows PostgreSQL.

use super::error::{EmbeddedError, ErrorKind};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A process by its id and the moment it started, so that a later process with the same id is not taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// Clock ticks between the machine's start and the process's (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has this id now, unless it is dead and only waits to be reaped.
    pub fn of(pid: u32) -> Option<ProcessId> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The command name is in parentheses and may itself hold spaces and parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        if matches!(state, "Z" | "X" | "x") {
            return None;
        }
        let start_ticks = fields.nth(18)?.parse().ok()?;
        Some(ProcessId { pid, start_ticks })
    }

    pub fn is_running(&self) -> bool {
        ProcessId::of(self.pid).as_ref() == Some(self)
    }

    /// Sends a signal if the process is still this one; false if it is gone.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        self.is_running() && kill_process(pid, signal).is_ok()
    }

    /// Waits until the process is gone; false if it is still there after `timeout`.
    pub fn wait_gone(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while self.is_running() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }
}

/// The working directory of a process, if we may know it.
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// An exclusive lock on a file, held until dropped or until the process ends, however it ends.
#[derive(Debug)]
pub struct FileLock {
    pub file: File,
}

impl FileLock {
    /// Takes the lock, or returns `None` if somebody else has it.
    pub fn try_take(path: &Path) -> Result<Option<FileLock>, EmbeddedError> {
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)
                .map_err(|error| EmbeddedError::io("open lock file", path, &error))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(EmbeddedError::io("lock", path, &error.into())),
            }
            // `down --delete` may have removed the file between our open and our lock: then we hold a lock that the
            // next one would not see.
            let ours = file.metadata().map_err(|error| EmbeddedError::io("look at", path, &error))?;
            match std::fs::metadata(path) {
                Ok(there) if there.ino() == ours.ino() && there.dev() == ours.dev() => {
                    return Ok(Some(FileLock { file }));
                }
                _ => continue,
            }
        }
    }

    /// Takes the lock, waiting up to `timeout`; `waiting` is called once if there is something to wait for.
    pub fn take(path: &Path, timeout: Duration, waiting: impl FnOnce()) -> Result<FileLock, EmbeddedError> {
        let deadline = Instant::now() + timeout;
        let mut waiting = Some(waiting);
        loop {
            if let Some(lock) = FileLock::try_take(path)? {
                return Ok(lock);
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            if Instant::now() >= deadline {
                return Err(EmbeddedError::new(
                    ErrorKind::Busy,
                    format!("another process holds \"{}\" since {} seconds or more", path.display(), timeout.as_secs()),
                )
                .hint("wait until it has finished, or end it; the lock goes with it"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Replaces what the lock file says (for people; the lock itself is what counts).
    pub fn write(&mut self, text: &str) -> std::io::Result<()> {
        use std::io::{Seek, SeekFrom};
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }
}

/// Writes a file so that a reader, or a crash, meets the old content or the new one, never a part.
pub fn write_atomically(path: &Path, content: &[u8], mode: u32) -> Result<(), EmbeddedError> {
    let temporary = path.with_extension(format!("tmp{}", std::process::id()));
    let attempt = || -> std::io::Result<()> {
        let _ = std::fs::remove_file(&temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        if let Some(parent) = path.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(())
    };
    attempt().map_err(|error| {
        let _ = std::fs::remove_file(&temporary);
        EmbeddedError::io("write", path, &error)
    })
}

/// Makes a directory and those above it; the ones that it makes get `mode` whatever the umask is.
pub fn make_directories(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent()
        && !parent.as_os_str().is_empty()
    {
        make_directories(parent, mode)?;
    }
    match std::fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(|error| EmbeddedError::io("set permissions of", path, &error)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(EmbeddedError::io("create directory", path, &error)),
    }
}

/// Whether a server could listen on this loopback port now.
pub fn port_is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Ports for servers: below Linux's default range for outgoing connections (32768 and up), where a port that is free
/// now may be taken by any client program before the server starts.
const SERVER_PORT_FIRST: u16 = 16384;
const SERVER_PORT_COUNT: u16 = 16384;

/// A loopback port that is free now and not in `not_these`. The search starts at a random place, so that clusters
/// started at the same time rarely meet; the caller tries again if they do.
pub fn free_port(not_these: &BTreeSet<u16>) -> Result<u16, EmbeddedError> {
    let start = u16::from_le_bytes(random_bytes()?) % SERVER_PORT_COUNT;
    (0..SERVER_PORT_COUNT)
        .map(|step| SERVER_PORT_FIRST + (start + step) % SERVER_PORT_COUNT)
        .find(|port| !not_these.contains(port) && port_is_free(*port))
        .ok_or_else(|| {
            EmbeddedError::new(
                ErrorKind::Busy,
                format!(
                    "no free loopback port between {SERVER_PORT_FIRST} and {}",
                    SERVER_PORT_FIRST + (SERVER_PORT_COUNT - 1)
                ),
            )
        })
}

pub fn random_bytes<const N: usize>() -> Result<[u8; N], EmbeddedError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| EmbeddedError::new(ErrorKind::System, format!("could not get random bytes: {error}")))?;
    Ok(bytes)
}

/// The unprivileged user that servers run as when we are root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUser {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// Users that are tried in this order; the last is created if none is there.
const SERVER_USERS: [&str; 2] = ["postgres", "pgherd"];

impl ServerUser {
    /// `None` if we are not root: then servers run as whoever runs us. `wanted` is the user that earlier runs used.
    pub fn choose(wanted: Option<&str>) -> Result<Option<ServerUser>, EmbeddedError> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        if let Some(name) = wanted {
            return ServerUser::find(name).map(Some).ok_or_else(|| {
                EmbeddedError::new(ErrorKind::System, format!("user \"{name}\", who owns the servers' files, is gone"))
            });
        }
        if let Some(user) = SERVER_USERS.iter().find_map(|name| ServerUser::find(name)) {
            return Ok(Some(user));
        }
        let created = Command::new("useradd")
            .args(["--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", "pgherd"])
            .output();
        if let Some(user) = ServerUser::find("pgherd") {
            return Ok(Some(user));
        }
        let reason = match created {
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Err(EmbeddedError::new(
            ErrorKind::System,
            format!("PostgreSQL refuses to run as root and there is no user to run it as (useradd: {reason})"),
        )
        .hint("create one with \"useradd --system pgherd\", or run pgherd as an ordinary user"))
    }

    fn find(name: &str) -> Option<ServerUser> {
        let id = |flag: &str| -> Option<u32> {
            let output = Command::new("id").args([flag, name]).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().parse().ok()).flatten()
        };
        Some(ServerUser { name: name.to_owned(), uid: id("-u")?, gid: id("-g")? })
    }

    /// The directory on the way to `path` that this user may not pass, if there is one.
    pub fn first_closed_directory(&self, path: &Path) -> Option<PathBuf> {
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        above
            .into_iter()
            .find(|directory| match std::fs::metadata(directory) {
                Ok(meta) if meta.uid() == self.uid => meta.mode() & 0o100 == 0,
                Ok(meta) if meta.gid() == self.gid => meta.mode() & 0o010 == 0,
                Ok(meta) => meta.mode() & 0o001 == 0,
                Err(_) => false,
            })
            .map(Path::to_owned)
    }

    /// Fails, naming the directory, if this user could not get at `path`.
    pub fn check_can_reach(&self, path: &Path, what: &str, hint: &str) -> Result<(), EmbeddedError> {
        match self.first_closed_directory(path) {
            None => Ok(()),
            Some(closed) => {
                let mode = std::fs::metadata(&closed).map(|meta| meta.mode() & 0o7777).unwrap_or(0);
                Err(EmbeddedError::new(
                    ErrorKind::System,
                    format!(
                        "servers run as user \"{}\", who may not enter \"{}\" (mode {mode:04o}) on the way to \
                         {what} \"{}\"",
                        self.name,
                        closed.display(),
                        path.display(),
                    ),
                )
                .hint(hint))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("pgherd-os-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let me = ProcessId::of(std::process::id()).unwrap();
        assert!(me.is_running());
        assert!(!ProcessId { start_ticks: me.start_ticks + 1, ..me }.is_running());
    }

    #[test]
    fn a_dead_child_that_nobody_reaped_is_not_running() {
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        assert!(id.signal(Signal::KILL));
        assert!(id.wait_gone(Duration::from_secs(10)));
        assert!(!id.signal(Signal::KILL));
        child.wait().unwrap();
    }

    #[test]
    fn a_lock_is_held_once_and_freed_when_dropped() {
        let dir = scratch("lock");
        let path = dir.join("lock");
        let held = FileLock::try_take(&path).unwrap().unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_none());
        drop(held);
        assert!(FileLock::try_take(&path).unwrap().is_some());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_lock_on_a_removed_file_does_not_count() {
        let dir = scratch("lock-removed");
        let path = dir.join("lock");
        let _held = FileLock::try_take(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(FileLock::try_take(&path).unwrap().is_some());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_mode() {
        let dir = scratch("atomic");
        let path = dir.join("cluster.json");
        write_atomically(&path, b"one", 0o600).unwrap();
        write_atomically(&path, b"two", 0o600).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_free_port_is_free_and_not_an_excluded_one() {
        let mut not_these = BTreeSet::new();
        for _ in 0..5 {
            let port = free_port(&not_these).unwrap();
            assert!(port_is_free(port));
            assert!(not_these.insert(port));
        }
    }

    #[test]
    fn the_closed_directory_on_the_way_is_named() {
        let dir = scratch("closed");
        let inner = dir.join("closed/inner");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(dir.join("closed"), std::fs::Permissions::from_mode(0o700)).unwrap();
        let stranger = ServerUser { name: "stranger".to_owned(), uid: 54321, gid: 54321 };
        assert_eq!(stranger.first_closed_directory(&inner), Some(dir.join("closed")));
        let error = stranger.check_can_reach(&inner, "the data directory", "use --dir").unwrap_err();
        assert!(error.message.contains("\"stranger\", who may not enter"), "{}", error.message);
        assert!(error.message.contains("(mode 0700)"), "{}", error.message);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
