//! Runs pgbench and reads what it prints (PostgreSQL's `src/bin/pgbench/pgbench.c`, printResults).

use std::io::Write;
use std::process::{Command, Stdio};

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// `pgbench -S`: one row of pgbench_accounts by its key.
    ReadOnly,
    /// pgbench's own transaction: three updates, a select and an insert, which here may touch several workers.
    ReadWrite,
    /// A script of ours, from `crates/bench/scripts`.
    Script(Script),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    pub name: &'static str,
    pub text: &'static str,
    /// Statements that a server gets for one transaction.
    pub statements: u32,
}

impl Work {
    pub fn name(self) -> &'static str {
        match self {
            Work::ReadOnly => "read-only",
            Work::ReadWrite => "read-write",
            Work::Script(script) => script.name,
        }
    }

    /// Statements in one transaction, BEGIN and COMMIT counted.
    pub fn statements(self) -> u32 {
        match self {
            Work::ReadOnly => 1,
            Work::ReadWrite => 7,
            Work::Script(script) => script.statements,
        }
    }
}

/// How long the clients work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Seconds(u32),
    /// So many transactions of each client.
    Transactions(u32),
}

/// One run of pgbench.
#[derive(Debug, Clone)]
pub struct Load {
    pub work: Work,
    /// `simple`, `extended` or `prepared`.
    pub protocol: &'static str,
    pub clients: u32,
    pub length: Length,
    /// A connection for each transaction.
    pub reconnect: bool,
    /// Variables of the script.
    pub variables: Vec<(String, String)>,
    /// What the connections ask for at their start, as in PGOPTIONS.
    pub options: Option<&'static str>,
}

impl Load {
    pub fn new(work: Work, protocol: &'static str, clients: u32, length: Length) -> Load {
        Load { work, protocol, clients, length, reconnect: false, variables: Vec::new(), options: None }
    }
}

/// What came out.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Transactions a second, without the time to connect unless there is a connection for each.
    pub tps: f64,
    pub latency_ms: f64,
    pub failed: u64,
    /// Those that were done.
    pub transactions: f64,
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
    command.args(["-n", "-M", load.protocol, "-c", &load.clients.to_string(), "-j", &threads.to_string()]);
    match load.length {
        Length::Seconds(seconds) => command.args(["-T", &seconds.to_string()]),
        Length::Transactions(number) => command.args(["-t", &number.to_string()]),
    };
    if load.reconnect {
        command.arg("-C");
    }
    for (name, value) in &load.variables {
        command.arg("-D").arg(format!("{name}={value}"));
    }
    if let Some(options) = load.options {
        command.env("PGOPTIONS", options);
    }
    let mut script = None;
    match load.work {
        Work::ReadOnly => drop(command.arg("-S")),
        Work::ReadWrite => {}
        Work::Script(own) => {
            command.args(["-f", "-"]);
            script = Some(own.text);
        }
    }
    let printed = run_with_input(command, script)?;
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
pub fn run(command: Command) -> Result<String, String> {
    run_with_input(command, None)
}

/// The same with something to read on stdin.
pub fn run_with_input(mut command: Command, input: Option<&str>) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{name} is not installed; \"make deps\" installs it"),
        _ => format!("could not run {name}: {error}"),
    })?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // It says itself why it stopped reading, if it did. Our inputs fit into a pipe's buffer.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("could not wait for {name}: {error}"))?;
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
        // With a fixed number of transactions it is "processed: 12/12".
        rest.split([' ', '/', '(']).find(|word| !word.is_empty())?.parse().ok()
    };
    Some(Outcome {
        tps: number("tps = ")?,
        latency_ms: number("latency average = ")?,
        // Versions before 15 do not count them.
        failed: number("number of failed transactions: ").unwrap_or(0.0) as u64,
        transactions: number("number of transactions actually processed: ")?,
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
        let outcome = Outcome { tps: 68654.321098, latency_ms: 0.117, failed: 3, transactions: 68123.0 };
        assert_eq!(parse(printed), Some(outcome));
        assert_eq!(parse("nothing"), None);
    }

    #[test]
    fn a_fixed_number_of_transactions_is_read() {
        let printed = "number of transactions per client: 3
number of transactions actually processed: 6/6
number of failed transactions: 0 (0.000%)
latency average = 250.117 ms
average connection time = 1.2 ms
tps = 7.99 (including reconnection times)
";
        let outcome = Outcome { tps: 7.99, latency_ms: 250.117, failed: 0, transactions: 6.0 };
        assert_eq!(parse(printed), Some(outcome));
    }
}
