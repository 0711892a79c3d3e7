//! The corpus of `tests/differential` gives the same answers on a cluster as on one PostgreSQL.
//!
//! `PGHERD_DIFF_FILES=joins,copy` and `PGHERD_DIFF_MODES=simple` run a part. Failures listed in `tests/KNOWN` are
//! printed and do not fail the test; `PGHERD_WRITE_KNOWN=1` writes the list anew.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::differential::{self, Runner};
use pgherd_testkit::{Cluster, Plain, workspace_file};

#[test]
fn a_cluster_answers_as_one_server() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 3).unwrap();
    let plain = Plain::like(&cluster.target).unwrap();
    let (oracle, tested) = (plain.side("postgres"), cluster.side());
    let mut runner = Runner::new(&oracle, &tested);
    runner.restrict_modes_from_environment();
    let known = workspace_file("tests/KNOWN");
    let write_known = std::env::var_os("PGHERD_WRITE_KNOWN").is_some();
    if !write_known {
        runner.read_known(&known).unwrap();
    }
    let report = runner.run_files(&differential::corpus().unwrap(), 2);
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
