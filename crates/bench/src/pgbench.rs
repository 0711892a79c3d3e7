//! Runs pgbench and reads what it prints (PostgreSQL's `src/bin/pgbench/pgbench.c`, printResults).

use std::process::Command;

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// `pgbench -S`: one row of pgbench_accounts by its key.
    ReadOnly,
    /// pgbench's own transaction: three updates, a select and an insert, which here may touch several workers.
    ReadWrite,
}

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::ReadOnly => "read-only",
            Work::ReadWrite => "read-write",
        }
    }
}

/// One run of pgbench.
#[derive(Debug, Clone)]
pub struct Load {
    pub work: Work,
    /// `simple`, `extended` or `prepared`.
    pub protocol: String,
    pub clients: u32,
    pub seconds: u32,
}

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Transactions a second, without the time to connect.
    pub tps: f64,
    pub latency_ms: f64,
    pub failed: u64,
}

/// Fills pgbench's tables at `scale`.
pub fn initialize(port: u16, scale: u32) -> Result<(), String> {
    let mut command = pgbench(port);
    command.args(["-i", "-q", "-s", &scale.to_string()]);
    run(command).map(|_| ())
}

pub fn measure(port: u16, load: &Load) -> Result<Outcome, String> {
    let mut command = pgbench(port);
    let threads = load.clients.min(2);
    command.args(["-n", "-M", &load.protocol]).args([
        "-c",
        &load.clients.to_string(),
        "-j",
        &threads.to_string(),
        "-T",
        &load.seconds.to_string(),
    ]);
    if load.work == Work::ReadOnly {
        command.arg("-S");
    }
    let printed = run(command)?;
    parse(&printed).ok_or_else(|| format!("pgbench printed what nobody here understands:\n{printed}"))
}

/// `pgbench (PostgreSQL) 15.18 …`
pub fn version() -> Result<String, String> {
    let mut command = Command::new("pgbench");
    command.arg("--version");
    run(command).map(|text| text.trim().to_owned())
}

fn pgbench(port: u16) -> Command {
    let mut command = Command::new("pgbench");
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-U", "postgres"]).env("PGDATABASE", "postgres");
    command
}

/// Runs to the end; stdout, or an error that holds the end of stderr.
pub fn run(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("{} is not installed; \"make deps\" installs it", command.get_program().to_string_lossy())
        }
        _ => format!("could not run {}: {error}", command.get_program().to_string_lossy()),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(10)..].join("\n    ");
    Err(format!("{command:?} failed ({}):\n    {end}", output.status))
}

fn parse(printed: &str) -> Option<Outcome> {
    let number = |start: &str| -> Option<f64> {
        let rest = printed.lines().find_map(|line| line.strip_prefix(start))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some(Outcome {
        tps: number("tps = ")?,
        latency_ms: number("latency average = ")?,
        // Versions before 15 do not count them.
        failed: number("number of failed transactions: ").unwrap_or(0.0) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_pgbench_15_is_read() {
        let printed = "pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: <builtin: select only>
scaling factor: 1
query mode: prepared
number of clients: 8
number of threads: 2
maximum number of tries: 1
duration: 1 s
number of transactions actually processed: 68123
number of failed transactions: 3 (0.004%)
latency average = 0.117 ms
initial connection time = 9.171 ms
tps = 68654.321098 (without initial connection time)
";
        assert_eq!(parse(printed), Some(Outcome { tps: 68654.321098, latency_ms: 0.117, failed: 3 }));
        assert_eq!(parse("nothing"), None);
    }
}
