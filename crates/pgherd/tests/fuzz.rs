//! Generated schemas and statements answer alike on a cluster and on one PostgreSQL: a few rounds of fixed seeds.
//! `make fuzz` goes on for as long as one likes; `PGHERD_FUZZ_SEED=7 PGHERD_FUZZ_ROUNDS=1` repeats a round here.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::fuzz::run::Runner;
use pgherd_testkit::{Cluster, Plain};

/// Seeds from here on.
const SEED: u64 = 1000;
const ROUNDS: u64 = 6;
/// Of each round, beside those that make its tables.
const STATEMENTS: usize = 60;

#[test]
fn generated_rounds_answer_as_one_server_does() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (seed, rounds) = (number("PGHERD_FUZZ_SEED", SEED), number("PGHERD_FUZZ_ROUNDS", ROUNDS));
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 2).unwrap();
    let plain = Plain::like(&cluster.target).unwrap();
    let (oracle, tested) = (plain.side("postgres"), cluster.side());
    let mut runner = Runner::new(&oracle, &tested);
    runner.statements = STATEMENTS;
    for seed in seed..seed + rounds {
        runner.round(seed).unwrap();
    }
    println!("{}", runner.report.summary());
    assert_eq!(runner.report.wrong(), 0, "see above");
    // The generator is of use only while most of what it makes is run.
    assert!(runner.report.failed * 3 < runner.report.statements, "{} fail on both sides", runner.report.failed);
    assert!(runner.report.statements as u64 > rounds * STATEMENTS as u64 / 2);
}
