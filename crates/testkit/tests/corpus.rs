//! The corpus must be right before it can judge: two plain PostgreSQL servers must answer every file alike, and every
//! failure in it must be one that the file announces.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::differential::{self, Runner};
use pgherd_testkit::{Plain, pg_bin};

#[test]
fn two_plain_servers_answer_the_corpus_alike() {
    let bin = pg_bin().unwrap();
    let (a, b) = (Plain::start(&bin, "postgres").unwrap(), Plain::start(&bin, "postgres").unwrap());
    let (a, b) = (a.side("postgres"), b.side("another postgres"));
    let mut runner = Runner::new(&a, &b);
    runner.restrict_modes_from_environment();
    let report = runner.run_files(&differential::corpus().unwrap(), 2);
    println!("{}", report.summary());
    assert!(report.different.is_empty(), "the corpus is not deterministic, or has failures that it does not announce");
}
