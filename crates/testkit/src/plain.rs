//! One plain PostgreSQL server that a test starts and that is gone when the test is.
//!
//! It is started with the server's own programs and not with `pgherd-cluster`, so that the oracle has nothing to do
//! with what is tested.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::client::Client;
use crate::keeper::Keeper;
use crate::{Error, Result, Side, Target};

/// Whether somebody says which PostgreSQL tests run on.
pub fn pg_is_given() -> bool {
    let given = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    given("PGHERD_TEST_PG_BIN") || given("PGHERD_TEST_PG")
}

/// The directory of the PostgreSQL programs that tests use: `PGHERD_TEST_PG_BIN`; else of the major version
/// `PGHERD_TEST_PG`, installed or downloaded by `pgherd download`; else the newest installed one of versions 15 to 18.
pub fn pg_bin() -> Result<PathBuf> {
    if let Some(directory) = std::env::var_os("PGHERD_TEST_PG_BIN").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(directory));
    }
    if let Some(major) = std::env::var("PGHERD_TEST_PG").ok().filter(|value| !value.is_empty()) {
        let installed = Path::new("/usr/lib/postgresql").join(&major).join("bin");
        let found = if installed.join("postgres").exists() { Some(installed) } else { downloaded(&major) };
        return found.ok_or_else(|| format!("there is no PostgreSQL {major}: run pgherd download --pg {major}").into());
    }
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let bin = entry.path().join("bin");
        if let (Ok(version @ 15..=18), true) =
            (entry.file_name().to_string_lossy().parse(), bin.join("postgres").exists())
        {
            found.push((version, bin));
        }
    }
    found.sort();
    match found.pop() {
        Some((_, bin)) => Ok(bin),
        None => Err("no PostgreSQL server is installed: install Debian's postgresql package, or set \
                     PGHERD_TEST_PG_BIN to the directory of initdb and postgres"
            .into()),
    }
}

/// The newest release of a major version where `pgherd` keeps them.
fn downloaded(major: &str) -> Option<PathBuf> {
    let home = match std::env::var_os("PGHERD_HOME").filter(|home| !home.is_empty()) {
        Some(home) => PathBuf::from(home),
        None if is_root() => PathBuf::from("/var/lib/pgherd"),
        None => std::env::home_dir()?.join(".pgherd"),
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir(home.join("postgresql")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let numbers: Option<Vec<u32>> = name.split('.').map(|n| n.parse().ok()).collect();
        if let Some(numbers) = numbers.filter(|_| name.split('.').next() == Some(major)) {
            found.push((numbers, entry.path().join("bin")));
        }
    }
    found.sort();
    found.pop().map(|(_, bin)| bin).filter(|bin| bin.join("postgres").exists())
}

/// The program, run as an unprivileged user when we are root, because PostgreSQL refuses to run as root.
pub fn run_as_owner(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// A running server. Dropping it stops it and deletes its data; so does the end of this process.
#[derive(Debug)]
pub struct Plain {
    pub target: Target,
    pub directory: PathBuf,
    _keeper: Keeper,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Plain {
    /// `bin` is the directory of the server's programs, `user` the superuser. Encoding and locale are those that
    /// `pgherd up` gives its servers. Durability is off: the data do not outlive the test.
    pub fn start(bin: &Path, user: &str) -> Result<Plain> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("pgherd-plain-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        if is_root() {
            check(Command::new("chown").arg("postgres").arg(&directory))?;
        }
        let keeper = Keeper::new(
            // pg_ctl also waits for the postmaster; a data directory without one is simply deleted.
            "cd /; if [ \"$(id -u)\" = 0 ]; \
             then runuser -u postgres -- \"$1/pg_ctl\" -D \"$2/data\" -m immediate stop; \
             else \"$1/pg_ctl\" -D \"$2/data\" -m immediate stop; fi; rm -rf \"$2\"",
            &[&bin.to_string_lossy(), &directory.to_string_lossy()],
        )?;
        let data = directory.join("data");
        let version = Command::new(bin.join("postgres")).arg("--version").output()?;
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        let major: u32 = version.split(|c: char| !c.is_ascii_digit()).find_map(|w| w.parse().ok()).unwrap_or(0);
        let provider: &[&str] =
            if major >= 17 { &["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] } else { &[] };
        check(
            run_as_owner(&bin.join("initdb"))
                .current_dir("/")
                .arg("-D")
                .arg(&data)
                .args(["-U", user, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8"])
                .args(provider),
        )?;
        let port = free_port()?;
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off \
             -c synchronous_commit=off -c full_page_writes=off -c jit=off -c max_prepared_transactions=100 \
             -c max_connections=200"
        );
        check(
            run_as_owner(&bin.join("pg_ctl"))
                .current_dir("/")
                .arg("-D")
                .arg(&data)
                .arg("-l")
                .arg(directory.join("data").join("server.log"))
                .args(["-w", "-t", "60", "-o", &options, "start"]),
        )?;
        crate::logs::keep_an_eye_on(&directory);
        let target =
            Target { host: "127.0.0.1".into(), port, user: user.into(), password: None, database: "postgres".into() };
        Ok(Plain { target, directory, _keeper: keeper })
    }

    /// A server of the same programs and with the same superuser as the one behind `target`.
    pub fn like(target: &Target) -> Result<Plain> {
        let bin = Client::connect(target)?.value("SELECT setting FROM pg_config WHERE name = 'BINDIR'")?;
        Plain::start(Path::new(&bin), &target.user)
    }

    pub fn side(&self, name: &str) -> Side {
        Side::new(name, self.target.clone(), false)
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Runs a command; its output is in the error when it fails.
fn check(command: &mut Command) -> Result<()> {
    // Files, not pipes: a server started in the background would keep a pipe open for ever.
    let log = std::env::temp_dir().join(format!(
        "pgherd-testkit-{}-{}.log",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let file = std::fs::File::create(&log)?;
    let status = command.stdin(std::process::Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
    let output = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::from(format!("{command:?}: {status}\n{output}"))),
        Err(error) => Err(Error::from(format!("{command:?}: {error}"))),
    }
}
