//! A throw-away cluster: `pgherd up` as a person would type it, and `pgherd down --delete` whatever happens.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::keeper::Keeper;
use crate::{Error, Result, Side, Target, pg_bin, pg_is_given};

/// A running cluster. Dropping it deletes it; so does the end of this process.
#[derive(Debug)]
pub struct Cluster {
    pub target: Target,
    pub directory: PathBuf,
    /// The `pgherd` program.
    pub program: PathBuf,
    _keeper: Keeper,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Cluster {
    /// Of the router's process.
    pub fn router_pid(&self) -> Result<u32> {
        let text = std::fs::read_to_string(self.directory.join("router/pid"))?;
        let pid = text.split("\"pid\":").nth(1).unwrap_or_default();
        Ok(pid.split(|c: char| !c.is_ascii_digit()).find(|w| !w.is_empty()).unwrap_or_default().parse()?)
    }

    /// `program` is `env!("CARGO_BIN_EXE_pgherd")`, which only tests of the package `pgherd` have.
    pub fn start(program: &str, workers: u32) -> Result<Cluster> {
        Cluster::start_with(program, workers, &[])
    }

    /// On the PostgreSQL that `pgherd up` takes by itself, unless another is given. Where there is no network it is the
    /// installed one, and that is said.
    pub fn start_as_users_do(program: &str, workers: u32) -> Result<Cluster> {
        if pg_is_given() {
            return Cluster::start(program, workers);
        }
        let downloaded = Command::new(program).arg("download").stdin(Stdio::null()).output()?;
        if downloaded.status.success() {
            return Cluster::start_on(program, workers, &[], None, &[]);
        }
        println!("not on the PostgreSQL of users: {}", String::from_utf8_lossy(&downloaded.stderr).trim_end());
        Cluster::start(program, workers)
    }

    /// The same with further options of `pgherd up`.
    pub fn start_with(program: &str, workers: u32, further: &[&str]) -> Result<Cluster> {
        Cluster::start_on(program, workers, further, installed()?, &[])
    }

    /// Its router compares each catalog that it has changed with the whole one, and answers with an error where they
    /// differ.
    pub fn start_comparing(program: &str, workers: u32) -> Result<Cluster> {
        Cluster::start_on(program, workers, &[], installed()?, &[("PGHERD_VERIFY_CATALOG", "1")])
    }

    fn start_on(
        program: &str,
        workers: u32,
        further: &[&str],
        bin: Option<PathBuf>,
        environment: &[(&str, &str)],
    ) -> Result<Cluster> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("pgherd-cluster-{}-{number}", std::process::id()));
        let shown = directory.to_string_lossy();
        // Whoever cleans up after this process does it from another directory.
        let path = std::fs::canonicalize(program).map_err(|e| format!("{program}: {e}"))?;
        let program = &*path.to_string_lossy();
        let keeper = Keeper::new("cd /; \"$1\" down --dir \"$2\" --delete; rm -rf \"$2\"", &[program, &shown])?;
        let mut command = Command::new(program);
        for name in ["PGHERD_DIR", "PGHERD_COORDINATOR", "PGHERD_LOG"] {
            command.env_remove(name);
        }
        command.arg("up").arg("--dir").arg(&directory).arg("--workers").arg(workers.to_string());
        // Its data do not outlive the test: DROP DATABASE would wait for thousands of files.
        command.args(["--set", "fsync=off"]);
        // What is run once is not worth a compiler's time, an eighth of all.
        command.args(["--set", "jit=off"]);
        command.args(further).envs(environment.iter().copied());
        if let Some(bin) = bin {
            command.arg("--pg-bin").arg(bin);
        }
        let printed =
            run(&mut command, &std::env::temp_dir().join(format!("pgherd-up-{}-{number}.log", std::process::id())))?;
        crate::logs::keep_an_eye_on(&directory);
        Ok(Cluster { target: Target::from_url(printed.trim())?, directory, program: program.into(), _keeper: keeper })
    }

    /// The one cluster that all tests of a binary share. It is deleted when the process ends.
    ///
    /// # Panics
    /// When it cannot be started: no test can go on.
    pub fn shared(program: &str) -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| match Cluster::start(program, 3) {
            Ok(cluster) => cluster,
            Err(error) => panic!("cannot start a cluster: {error}"),
        })
    }

    pub fn side(&self) -> Side {
        Side::new("cluster", self.target.clone(), true)
    }
}

/// Without an installed server, `pgherd up` obtains its own default.
fn installed() -> Result<Option<PathBuf>> {
    match pg_bin() {
        Err(error) if pg_is_given() => Err(error),
        found => Ok(found.ok()),
    }
}

/// Runs `command` and gives back what it wrote to standard output. The output goes through files: what runs on in the
/// background keeps the descriptors, and a pipe would never end.
fn run(command: &mut Command, log: &Path) -> Result<String> {
    let (out, err) = (log.with_extension("out"), log.with_extension("err"));
    let started = command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?).status();
    let (printed, said) = (read_and_remove(&out), read_and_remove(&err));
    match started {
        Ok(status) if status.success() => Ok(printed),
        Ok(status) => Err(Error::from(format!("{command:?}: {status}\n{said}{printed}"))),
        Err(error) => Err(Error::from(format!("{command:?}: {error}"))),
    }
}

fn read_and_remove(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let _ = std::fs::remove_file(file);
    text
}
