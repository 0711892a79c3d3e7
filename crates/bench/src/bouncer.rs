//! PgBouncer in front of the plain server, where it is installed: what a pooler without sharding costs or gains.

use crate::sides::PlainSide;
use pgherd_cluster::embedded::{ServerUser, free_port};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first version whose transaction pool understands prepared statements.
const PREPARED_SINCE: (u32, u32) = (1, 21);
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Debian has it where only root's PATH leads.
const PROGRAMS: [&str; 2] = ["pgbouncer", "/usr/sbin/pgbouncer"];

/// A PgBouncer that runs; it stops with the plain server.
#[derive(Debug)]
pub struct Bouncer {
    pub port: u16,
    pub version: String,
    /// Whether it can carry `pgbench -M prepared`.
    pub prepared: bool,
}

impl Bouncer {
    /// `None` where it is not installed.
    pub fn start(plain: &PlainSide, dir: &Path) -> Result<Option<Bouncer>, String> {
        let Some((program, version)) = PROGRAMS.iter().find_map(|program| Some((*program, version(program)?))) else {
            return Ok(None);
        };
        let prepared = number(&version).is_some_and(|number| number >= PREPARED_SINCE);
        let port = free_port(&BTreeSet::new()).map_err(|error| error.to_string())?;
        let text = |error: std::io::Error| format!("could not prepare \"{}\": {error}", dir.display());
        std::fs::create_dir_all(dir).map_err(text)?;
        let (settings, users, log) = (dir.join("pgbouncer.ini"), dir.join("users.txt"), dir.join("pgbouncer.log"));
        std::fs::write(&users, "\"postgres\" \"\"\n").map_err(text)?;
        std::fs::write(&settings, configuration(plain.port, port, &users, prepared)).map_err(text)?;
        let output = std::fs::File::create(&log).map_err(text)?;
        let mut command = Command::new(program);
        command.arg(&settings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        if let Some(user) = ServerUser::choose(None).map_err(|error| error.to_string())? {
            // Like PostgreSQL it refuses to be root.
            command.uid(user.uid).gid(user.gid);
        }
        let child = command.spawn().map_err(|error| format!("could not run {program}: {error}"))?;
        plain.stop_also(child);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if started.elapsed() > START_TIMEOUT {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{program} takes no connections; it said:\n{}", said.trim_end()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(Bouncer { port, version, prepared }))
    }
}

/// `PgBouncer 1.18.0`
fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().next().filter(|line| line.starts_with("PgBouncer")).map(|line| line.trim().to_owned())
}

fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix("PgBouncer ")?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Its defaults, but for the pool mode and what 128 clients need.
fn configuration(server: u16, port: u16, users: &Path, prepared: bool) -> String {
    let statements = if prepared { "max_prepared_statements = 200\n" } else { "" };
    format!(
        "[databases]\n* = host=127.0.0.1 port={server}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\nmax_client_conn = 1000\n\
         {statements}",
        users.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_statements_come_with_1_21() {
        for (version, prepared) in [("PgBouncer 1.18.0", false), ("PgBouncer 1.21.0", true), ("PgBouncer 2.0", true)] {
            assert_eq!(number(version).map(|number| number >= PREPARED_SINCE), Some(prepared), "{version}");
        }
        assert_eq!(number("pgcat 1.2"), None);
        let with = |prepared| configuration(5432, 6432, Path::new("users.txt"), prepared);
        assert!(with(true).contains("max_prepared_statements") && !with(false).contains("max_prepared_statements"));
    }
}
