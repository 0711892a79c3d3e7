//! Measures a cluster against one plain PostgreSQL on the same machine in the same run: `make demo` shows it, `make
//! bench` compares it with what it should be and writes it down. Throughput and latency are pgbench's; the router's CPU
//! time, system calls and memory are read from outside it. `make analytics` runs the shapes of TPC-H and CH-benCHmark.

mod analytics;
mod bars;
mod bouncer;
mod compare;
mod definitions;
mod demo;
mod disk;
mod everyday;
mod machine;
mod matrix;
mod memory;
mod pgbench;
mod report;
mod router;
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
    /// Measure a cluster beside one plain PostgreSQL, judge it by the bars, and write a report.
    Run(run::Run),
    /// Measure the router's memory with many idle clients.
    Memory(memory::Memory),
    /// Run the shapes of TPC-H and CH-benCHmark on both, and compare answers and times.
    Analytics(Box<analytics::Analytics>),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Demo(demo) => demo.run(),
        Command::Run(run) => run.run(),
        Command::Memory(memory) => memory.run(),
        Command::Analytics(analytics) => analytics.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}
