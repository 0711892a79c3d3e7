//! `make fuzz`: random schemas and statements on a cluster and on one plain PostgreSQL. Options are words:
//! `program=target/release/pgherd seed=1 minutes=60 statements=120 workers=3 out=directory`; `rounds=1` for one seed;
//! `show=yes` only prints what it would run.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pgherd_testkit::fuzz::generate;
use pgherd_testkit::fuzz::run::Runner;
use pgherd_testkit::{Cluster, Plain, Result};

fn main() -> ExitCode {
    let options: BTreeMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|word| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())))
        .filter(|(_, value)| !value.is_empty())
        .collect();
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &BTreeMap<String, String>) -> Result<usize> {
    let number = |name: &str, default: u64| match options.get(name) {
        Some(text) => text.parse().map_err(|_| format!("{name}={text} is no number")),
        None => Ok(default),
    };
    // Whoever cleans up after this process does it from another directory.
    let program = options.get("program").map_or("target/release/pgherd", String::as_str);
    let program = std::fs::canonicalize(program).map_err(|e| format!("{program}: {e}"))?;
    let program = &*program.to_string_lossy();
    let (seed, rounds) = (number("seed", 1)?, number("rounds", u64::MAX)?);
    if options.contains_key("show") {
        for seed in (seed..).take(rounds.min(100) as usize) {
            print!("{}", generate(seed, number("statements", 120)? as usize));
        }
        return Ok(0);
    }
    let time = Duration::from_secs(60 * number("minutes", 60)?);
    let cluster = Cluster::start(program, number("workers", 3)? as u32)?;
    let plain = Plain::like(&cluster.target)?;
    let (oracle, tested) = (plain.side("postgres"), cluster.side());
    let mut runner = Runner::new(&oracle, &tested);
    runner.statements = number("statements", 120)? as usize;
    runner.out = options.get("out").map(Into::into);
    runner.shrink = options.get("shrink").is_none_or(|v| v != "no");
    runner.shrink_refused = options.get("shrink").is_some_and(|v| v == "all");
    let begun = Instant::now();
    for seed in (seed..).take(rounds as usize) {
        if begun.elapsed() > time {
            break;
        }
        if let Err(error) = runner.round(seed) {
            println!("=== seed {seed}: the round ended: {error}");
            runner.report.found.entry(format!("the round ended: {error}")).or_default().times += 1;
        }
    }
    println!("{}", runner.report.summary());
    Ok(runner.report.wrong())
}
