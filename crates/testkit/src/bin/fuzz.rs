//! `make fuzz`: random schemas and statements on a cluster and on one plain PostgreSQL. Options are words:
//! `program=target/release/pgherd seed=1 minutes=60 statements=120 workers=3 out=directory`; `rounds=1` for one seed;
//! `show=yes` only prints what it would run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use pgherd_testkit::door;
use pgherd_testkit::fuzz::generate;
use pgherd_testkit::fuzz::run::Runner;
use pgherd_testkit::words::Words;
use pgherd_testkit::{Cluster, Plain, Result};

fn main() -> ExitCode {
    match run(&Words::from_arguments()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &Words) -> Result<usize> {
    let program = words.program();
    let (seed, rounds) = (words.number("seed", 1)?, words.number("rounds", u64::MAX)?);
    if words.get("show").is_some() {
        for seed in (seed..).take(rounds.min(100) as usize) {
            print!("{}", generate(seed, words.number("statements", 120)? as usize));
        }
        return Ok(0);
    }
    let time = Duration::from_secs(60 * words.number("minutes", 60)?);
    let cluster = Cluster::start(&program, words.number("workers", 3)? as u32)?;
    let plain = Plain::like(&cluster.target)?;
    let (oracle, tested) = (plain.side("postgres"), cluster.side());
    let mut runner = Runner::new(&oracle, &tested);
    runner.statements = words.number("statements", 120)? as usize;
    runner.out = words.get("out").map(Into::into);
    runner.shrink = words.get("shrink").is_none_or(|v| v != "no");
    runner.shrink_refused = words.get("shrink").is_some_and(|v| v == "all");
    let begun = Instant::now();
    // Before login first.
    let (door, mut wrong) = (Duration::from_secs(60 * words.number("door", 10)?).min(time / 6), 0);
    for first in (seed * 1_000_000..).step_by(100) {
        if begun.elapsed() >= door {
            println!("before login: {} packets, {wrong} are answered otherwise", first - seed * 1_000_000);
            break;
        }
        let differ = door::compare(&oracle, &tested, "postgres", first..first + 100)?;
        wrong += differ.len();
        differ.iter().for_each(|differ| println!("{differ}"));
    }
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
    Ok(runner.report.wrong() + wrong)
}
