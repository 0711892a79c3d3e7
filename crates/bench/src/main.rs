//! Measures a cluster against one plain PostgreSQL on the same machine in the same run: `make demo` shows it, `make
//! bench` writes it down. The numbers are pgbench's; nothing is measured here.

mod demo;
mod pgbench;
mod report;
mod run;
mod sides;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// pgherd beside one plain PostgreSQL.
#[derive(Debug, Parser)]
#[command(name = "pgherd-bench", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a cluster, load pgbench's tables, measure, and leave the cluster running.
    Demo(demo::Demo),
    /// Measure all combinations of work, clients and protocol, and write a report.
    Run(run::Run),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(demo) => demo.run(),
        Command::Run(run) => run.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}
