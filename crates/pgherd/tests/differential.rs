//! The corpus of `tests/differential` gives the same answers on clusters as on one PostgreSQL: on 1, 2 and 3 workers,
//! with tables of 1, 4 and 32 shards.
//!
//! Every file is run on one shape as prepared statements, on the PostgreSQL that `pgherd up` starts, and each third on one
//! of the eight others in another mode, in short, on the installed one, where routers compare each catalog that they have
//! changed with the whole one. `PGHERD_TEST_PG=16` runs all on that.
//! `PGHERD_DIFF_SHAPES=all` (`make differential`) or `PGHERD_DIFF_SHAPES=1x4,3x32` run everything on these.
//! `PGHERD_DIFF_FILES=joins,copy` and `PGHERD_DIFF_MODES=simple` run a part. Failures listed in `tests/KNOWN` are
//! printed and do not fail the test; `PGHERD_WRITE_KNOWN=1` writes the list anew.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::differential::{self, Report, Runner};
use pgherd_testkit::script::Mode;
use pgherd_testkit::{Cluster, Coverage, Plain, Shape, workspace_file};

/// This is the longest of all test programs: it gets more than its share of the processors.
const FILES_AT_ONCE: usize = 3;

#[test]
fn clusters_answer_as_one_server() {
    let known = workspace_file("tests/KNOWN");
    let write_known = std::env::var_os("PGHERD_WRITE_KNOWN").is_some();
    let coverage = Coverage::from_environment().unwrap();
    let files = differential::corpus().unwrap();
    let mut report = Report::default();
    let mut running: Option<((u32, bool), Cluster, Plain)> = None;
    let mut turn = 0;
    for &shape in &coverage.shapes {
        let as_users_do = shape == Shape::FULL && !coverage.everything;
        let wanted = (shape.workers, as_users_do);
        if running.as_ref().is_none_or(|(is, ..)| *is != wanted) {
            drop(running.take());
            let program = env!("CARGO_BIN_EXE_pgherd");
            let cluster = match as_users_do {
                true => Cluster::start_as_users_do(program, shape.workers).unwrap(),
                false => Cluster::start_comparing(program, shape.workers).unwrap(),
            };
            let plain = Plain::like(&cluster.target).unwrap();
            running = Some((wanted, cluster, plain));
        }
        let (_, cluster, plain) = running.as_ref().unwrap();
        let (oracle, tested) = (plain.side("postgres"), cluster.side());
        let mut runner = Runner::new(&oracle, &tested);
        runner.database_settings = shape.database_settings();
        runner.restrict_modes_from_environment();
        if !coverage.everything {
            let prepared = shape == Shape::FULL;
            runner.modes.retain(|mode| (*mode == Mode::Prepared) == prepared);
            if !prepared {
                runner.turn = Some(turn);
                turn += 1;
            }
        }
        if !write_known {
            runner.read_known(&known).unwrap();
        }
        println!("=== {shape}: workers x shards, PostgreSQL {}", oracle.version().unwrap());
        let of_shape = runner.run_files(&files, FILES_AT_ONCE);
        println!("=== {shape}: {}", of_shape.summary());
        report.add(of_shape);
    }
    println!("{}", report.summary());
    if write_known {
        let mut text = "# Statements of tests/differential that the cluster does not answer as PostgreSQL does, by file and mode.\n\
                        # Written by: PGHERD_WRITE_KNOWN=1 cargo test -p pgherd --test differential\n"
            .to_owned();
        for line in Runner::known_lines(&report) {
            text.push_str(&line);
            text.push('\n');
        }
        std::fs::write(known, text).unwrap();
        return;
    }
    assert!(report.different.is_empty(), "{} statements answer otherwise, see above", report.different.len());
    assert!(report.fixed.is_empty(), "tests/KNOWN names statements that answer alike now, see above");
}
