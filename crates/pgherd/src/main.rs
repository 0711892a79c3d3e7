//! The binary: commands and settings. Each command is one file; what they do to servers is in `pgherd_cluster`, what
//! clients get is in `pgherd_router`. Progress goes to stderr, results to stdout.

mod connect;
mod down;
mod download;
mod failure;
mod place;
mod psql;
mod register;
mod serve;
mod status;
mod up;

use clap::{Parser, Subcommand};
use failure::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;

/// One database on many stock PostgreSQL servers.
#[derive(Debug, Parser)]
#[command(name = "pgherd", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a cluster on this machine, or go on with one: coordinator, workers, router.
    Up(up::Up),
    /// Show the processes of a cluster on this machine.
    Status(status::Status),
    /// Run psql on a cluster on this machine.
    Psql(psql::Psql),
    /// Stop a cluster on this machine; its data stays.
    Down(down::Down),
    /// Run a router in front of servers that exist already.
    Serve(serve::Serve),
    /// Create the metadata of a cluster on its coordinator.
    Init(serve::Init),
    /// Download PostgreSQL's programs before a cluster needs them.
    Download(download::Download),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = start_logging(&arguments.command).and_then(|()| match arguments.command {
        Command::Up(up) => up.run(),
        Command::Status(status) => status.run(),
        Command::Psql(psql) => psql.run(),
        Command::Down(down) => down.run(),
        Command::Serve(serve) => serve.run(),
        Command::Init(init) => init.run(),
        Command::Download(download) => download.run(),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{}", failure.text());
            ExitCode::FAILURE
        }
    }
}

/// Logs to stderr; `PGHERD_LOG` says how much, such as `debug` or `pgherd_router=debug,info`.
fn start_logging(command: &Command) -> Result<(), Failure> {
    use tracing_subscriber::EnvFilter;
    let default = if matches!(command, Command::Serve(_)) { "info" } else { "warn" };
    let wanted = std::env::var("PGHERD_LOG").unwrap_or_else(|_| default.to_owned());
    let filter = EnvFilter::try_new(&wanted)
        .map_err(|error| Failure::new(format!("PGHERD_LOG=\"{wanted}\" is not a log filter: {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}
