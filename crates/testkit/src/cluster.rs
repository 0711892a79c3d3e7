//! A throw-away cluster: `pgherd up` as a person would type it, and `pgherd down --delete` whatever happens.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::keeper::Keeper;
use crate::{Error, Result, Side, Target, pg_bin};

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
    /// `program` is `env!("CARGO_BIN_EXE_pgherd")`, which only tests of the package `pgherd` have.
    pub fn start(program: &str, workers: u32) -> Result<Cluster> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("pgherd-cluster-{}-{number}", std::process::id()));
        let shown = directory.to_string_lossy();
        let keeper = Keeper::new("cd /; \"$1\" down --dir \"$2\" --delete; rm -rf \"$2\"", &[program, &shown])?;
        let mut command = Command::new(program);
        command.arg("up").arg("--dir").arg(&directory).arg("--workers").arg(workers.to_string());
        // Without an installed server, `pgherd up` obtains its own default.
        if let Ok(bin) = pg_bin() {
            command.arg("--pg-bin").arg(bin);
        }
        let printed =
            run(&mut command, &std::env::temp_dir().join(format!("pgherd-up-{}-{number}.log", std::process::id())))?;
        let url = printed
            .split_whitespace()
            .find(|word| word.starts_with("postgres://") || word.starts_with("postgresql://"))
            .ok_or_else(|| Error::from(format!("`pgherd up` printed no postgres:// URL:\n{printed}")))?;
        Ok(Cluster { target: Target::from_url(url)?, directory, program: program.into(), _keeper: keeper })
    }

    pub fn side(&self) -> Side {
        Side::new("cluster", self.target.clone(), true)
    }
}

/// Runs `command` and gives back what it printed. The output goes through a file: what runs on in the background
/// keeps the descriptor, and a pipe would never end.
fn run(command: &mut Command, log: &Path) -> Result<String> {
    let file = std::fs::File::create(log)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .map_err(|error| Error::from(format!("{command:?}: {error}")));
    let printed = std::fs::read_to_string(log).unwrap_or_default();
    let _ = std::fs::remove_file(log);
    let status = status?;
    if status.success() { Ok(printed) } else { Err(Error::from(format!("{command:?}: {status}\n{printed}"))) }
}
