//! PostgreSQL's regression suite as it lies in its source tree, and one run of it against one server.
//!
//! Follows `src/test/regress/pg_regress.c` and `pg_regress_main.c`: the database, psql's options and the environment
//! are theirs. The files run one after another, as `make installcheck` runs them, so that a difference shows again.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::{Error, Result, Target};

/// The database that the suite runs in; files name it.
pub const DATABASE: &str = "regression";
/// A file that hangs is ended and differs. The slowest takes seconds on one server, a minute through the router, and
/// some minutes where its tables are distributed and the machine is busy.
const FILE_LIMIT: Duration = Duration::from_secs(600);
/// What the suite makes first and every file may read.
const SETUP: &str = "test_setup";

/// What `scripts/regress_suite.sh` made.
#[derive(Debug, Clone)]
pub struct Suite {
    /// `src/test/regress` of the source tree: `sql/`, `expected/`, `data/`, `parallel_schedule`.
    pub sources: PathBuf,
    /// The directory of `regress.so`, `refint.so` and `autoinc.so`.
    pub libraries: PathBuf,
}

/// What one file printed, and how long it ran.
#[derive(Debug, Clone)]
pub struct Printed {
    pub text: String,
    pub took: Duration,
}

impl Printed {
    /// What a run in `directory` left of a file. Leniently: some files print bytes of other encodings.
    pub fn read(directory: &Path, file: &str) -> Result<Printed> {
        let path = directory.join("results").join(format!("{file}.out"));
        let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes).replace(&*directory.to_string_lossy(), "DIRECTORY");
        Ok(Printed { text, took: Duration::ZERO })
    }
}

impl Suite {
    /// The files of the schedule in their order. `only` leaves those, and what they need at least.
    pub fn schedule(&self, only: &[String]) -> Result<Vec<String>> {
        let path = self.sources.join("parallel_schedule");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let all = text.lines().filter_map(|l| l.strip_prefix("test:")).flat_map(str::split_whitespace);
        let wanted = |file: &&str| only.is_empty() || *file == SETUP || only.iter().any(|o| o == file);
        let files: Vec<String> = all.filter(wanted).map(str::to_owned).collect();
        match only.iter().find(|o| !files.contains(o)) {
            Some(unknown) => Err(Error::from(format!("the schedule has no file \"{unknown}\""))),
            None if files.is_empty() => Err(Error::from(format!("{} names no file", path.display()))),
            None => Ok(files),
        }
    }

    pub fn script(&self, file: &str) -> PathBuf {
        self.sources.join("sql").join(format!("{file}.sql"))
    }

    /// Whether a server of one machine should have printed this, by the suite's own files.
    pub fn is_expected(&self, file: &str, printed: &str) -> bool {
        let alternatives = ["", "_0", "_1", "_2", "_3", "_4", "_5", "_6", "_7", "_8", "_9"];
        alternatives.iter().any(|suffix| {
            let path = self.sources.join("expected").join(format!("{file}{suffix}.out"));
            fs::read(path).is_ok_and(|expected| String::from_utf8_lossy(&expected) == printed)
        })
    }
}

/// One server, and the directory that it and psql write to.
#[derive(Debug)]
pub struct Place<'a> {
    pub suite: &'a Suite,
    pub target: Target,
    /// Of the servers, and of `psql`, which may be in PATH instead: not older than they are.
    pub programs: &'a Path,
    pub directory: PathBuf,
    /// ISO dates and intervals in place of pg_regress's.
    pub iso: bool,
    /// Settings of its sessions besides.
    pub further: &'static str,
}

impl Place<'_> {
    /// An empty directory and a new database, with pg_regress's settings.
    pub fn prepare(&self) -> Result<()> {
        let results = self.directory.join("results");
        let _ = fs::remove_dir_all(&self.directory);
        fs::create_dir_all(&results)?;
        // The server, which is another user when we are root, writes there as well.
        for directory in [&self.directory, &results] {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
        }
        let mut client = Client::connect(&self.target)?;
        client.run(&format!("CREATE DATABASE {DATABASE} TEMPLATE template0"))?;
        for (name, value) in [
            ("lc_messages", "C"),
            ("lc_monetary", "C"),
            ("lc_numeric", "C"),
            ("lc_time", "C"),
            ("bytea_output", "hex"),
            ("timezone_abbreviations", "Default"),
        ] {
            client.run(&format!("ALTER DATABASE {DATABASE} SET {name} TO '{value}'"))?;
        }
        Ok(())
    }

    /// Gives one file to psql.
    pub fn run(&self, file: &str, script: &Path) -> Result<Printed> {
        let out_path = self.directory.join("results").join(format!("{file}.out"));
        let out = File::create(&out_path)?;
        let started = Instant::now();
        let mut child = self.psql(file).stdin(File::open(script)?).stdout(out.try_clone()?).stderr(out).spawn()?;
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if started.elapsed() > FILE_LIMIT {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let said = match ended {
            // 2 is a lost connection, 3 a script that asked to end at an error.
            Some(status) if status.success() => String::new(),
            Some(status) => format!("regress: psql ended: {status}\n"),
            None => format!("regress: ended after {} seconds\n", FILE_LIMIT.as_secs()),
        };
        fs::OpenOptions::new().append(true).open(&out_path)?.write_all(said.as_bytes())?;
        Ok(Printed { took: started.elapsed(), ..Printed::read(&self.directory, file)? })
    }

    fn psql(&self, file: &str) -> Command {
        // Downloaded servers come without.
        let beside = self.programs.join("psql");
        let mut command = Command::new(if beside.exists() { beside } else { PathBuf::from("psql") });
        command.args(["-X", "-a", "-q", "-d", DATABASE, "-v", "HIDE_TABLEAM=on", "-v", "HIDE_TOAST_COMPRESSION=on"]);
        // Nothing of the caller's settings: LANG and PG… would change what is printed.
        command.env_clear();
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(self.target.with_database(DATABASE).environment());
        let intervals = if self.iso { "postgres" } else { "postgres_verbose" };
        command
            .env("PGAPPNAME", format!("pg_regress/{file}"))
            .env("PGTZ", "America/Los_Angeles")
            .env("PGDATESTYLE", if self.iso { "ISO, MDY" } else { "Postgres, MDY" })
            .env("PGOPTIONS", format!("-c intervalstyle={intervals}{}", self.further))
            .env("LANG", "C")
            .env("LC_MESSAGES", "C")
            .env("PG_ABS_SRCDIR", &self.suite.sources)
            .env("PG_ABS_BUILDDIR", &self.directory)
            .env("PG_LIBDIR", &self.suite.libraries)
            .env("PG_DLSUFFIX", ".so")
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }
}
