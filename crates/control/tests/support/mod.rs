//! A throw-away PostgreSQL for tests that must ask one: in a directory of its own, reached by a Unix socket there,
//! stopped when dropped. SQL goes in through psql, so that what is tested is the text that the crate hands out.

#![allow(dead_code)]

pub mod pair;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Server {
    directory: PathBuf,
    binaries: PathBuf,
    postmaster: Child,
}

/// `PGHERD_TEST_PG_BIN`, else the newest of Debian's, else what pg_config names.
fn binaries() -> PathBuf {
    if let Some(given) = std::env::var_os("PGHERD_TEST_PG_BIN") {
        return given.into();
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path().join("bin"))
        .filter(|p| p.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| {
        let out = Command::new("pg_config").arg("--bindir").output().expect("a PostgreSQL server must be installed");
        PathBuf::from(String::from_utf8_lossy(&out.stdout).trim())
    })
}

/// A command that runs as `postgres` where we are root, which PostgreSQL refuses to be.
fn unprivileged(program: &Path) -> Command {
    let id = Command::new("id").arg("-u").output().expect("id");
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

impl Server {
    pub fn start(name: &str) -> Server {
        let directory = std::env::temp_dir().join(format!("pgherd-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).expect("create directory");
        let _ = Command::new("chown").arg("postgres").arg(&directory).output();
        let binaries = binaries();
        let data = directory.join("data");
        let made = unprivileged(&binaries.join("initdb"))
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .expect("initdb");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let log = std::fs::File::create(directory.join("log")).expect("log");
        let postmaster = unprivileged(&binaries.join("postgres"))
            .args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_prepared_transactions=20", "-c"])
            .arg(format!("unix_socket_directories={}", directory.display()))
            .arg("-D")
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("postgres");
        let server = Server { directory, binaries, postmaster };
        let deadline = Instant::now() + Duration::from_secs(30);
        while server.try_run("postgres", "SELECT 1").is_err() {
            assert!(Instant::now() < deadline, "server did not start: {}", server.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Server packages for embedding have no psql; any psql will do.
    fn psql_path(&self) -> PathBuf {
        let own = self.binaries.join("psql");
        if own.exists() { own } else { PathBuf::from("psql") }
    }

    fn psql(&self, database: &str) -> Command {
        let mut command = Command::new(self.psql_path());
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-U",
            "postgres",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=verbose",
            "-h",
        ]);
        command.arg(&self.directory).args(["-d", database]);
        command
    }

    /// Runs a text as one simple query (so as one transaction); its output without the last newline, or what psql said.
    pub fn try_run(&self, database: &str, sql: &str) -> Result<String, String> {
        // An argument has a limit.
        const ARGUMENT_BYTES_MAX: usize = 100_000;
        let out = match sql.len() > ARGUMENT_BYTES_MAX {
            false => self.psql(database).args(["-c", sql]).output().expect("psql"),
            true => {
                let file = self.directory.join(format!("text-{database}.sql"));
                std::fs::write(&file, sql).expect("a text for psql");
                self.psql(database).args(["-1", "-f"]).arg(&file).output().expect("psql")
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
    }

    pub fn run(&self, database: &str, sql: &str) -> String {
        match self.try_run(database, sql) {
            Ok(out) => out,
            Err(error) => panic!("{error}\nin: {sql}"),
        }
    }

    /// Runs statements one by one in one transaction.
    pub fn try_apply(&self, database: &str, statements: &[String]) -> Result<String, String> {
        let mut child = self
            .psql(database)
            .args(["-1", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("psql");
        let text: String = statements.iter().map(|s| format!("{s}\n;\n")).collect();
        // psql may end at an error before it has read everything.
        let _ = child.stdin.take().expect("stdin").write_all(text.as_bytes());
        let out = child.wait_with_output().expect("psql");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
    }

    pub fn apply(&self, database: &str, statements: &[String]) -> String {
        match self.try_apply(database, statements) {
            Ok(out) => out,
            Err(error) => panic!("{error}\nin:\n{}", statements.join(";\n")),
        }
    }
}

/// One psql that stays connected, for tests with several sessions. Goes on after errors.
pub struct Session {
    psql: Child,
    output: BufReader<ChildStdout>,
}

impl Server {
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub fn session(&self, database: &str) -> Session {
        let mut psql = Command::new("sh")
            .args(["-c", "exec \"$0\" -X -q -A -t -U postgres -v VERBOSITY=sqlstate -h \"$1\" -d \"$2\" 2>&1"])
            .arg(self.psql_path())
            .arg(&self.directory)
            .arg(database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql");
        let output = BufReader::new(psql.stdout.take().expect("stdout"));
        Session { psql, output }
    }
}

impl Session {
    pub fn send(&mut self, sql: &str) {
        let stdin = self.psql.stdin.as_mut().expect("stdin");
        writeln!(stdin, "{sql};\n\\echo --done--").expect("psql reads");
    }

    /// What the last `send` printed; errors as `ERROR:  sqlstate`.
    pub fn answer(&mut self) -> String {
        let mut out = Vec::new();
        for line in (&mut self.output).lines() {
            let line = line.expect("psql writes");
            if line == "--done--" {
                break;
            }
            out.push(line);
        }
        out.join("\n")
    }

    pub fn run(&mut self, sql: &str) -> String {
        self.send(sql);
        self.answer()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.psql.stdin.take());
        let _ = self.psql.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Immediate shutdown: there is nothing to keep.
        let _ = Command::new("kill").args(["-QUIT", &self.postmaster.id().to_string()]).output();
        let _ = self.postmaster.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
