//! The corpus must be right before it can judge: two plain PostgreSQL servers must answer every file alike, and every
//! failure in it must be one that the file announces.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::differential::Runner;
use pgherd_testkit::{Plain, workspace_file};

fn corpus() -> Vec<std::path::PathBuf> {
    let only = std::env::var("PGHERD_DIFF_FILES").unwrap_or_default();
    let mut files: Vec<_> = std::fs::read_dir(workspace_file("tests/differential"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "sql"))
        .filter(|path| only.split(',').any(|word| path.to_string_lossy().contains(word)))
        .collect();
    files.sort();
    files
}

#[test]
fn two_plain_servers_answer_the_corpus_alike() {
    let (a, b) = (Plain::start("C.UTF-8", "postgres").unwrap(), Plain::start("C.UTF-8", "postgres").unwrap());
    let (a, b) = (a.side("postgres"), b.side("another postgres"));
    let mut runner = Runner::new(&a, &b);
    runner.restrict_modes_from_environment();
    let report = runner.run_files(&corpus(), 2);
    println!("{}", report.summary());
    assert!(report.different.is_empty(), "the corpus is not deterministic, or has failures that it does not announce");
}
