//! A part of `make drivers`: tools of each language, two where they are quick. What languages and registries do not
//! give here is passed over, and said; Python, which other tests need as well, is not.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use pgherd_testkit::drivers::{Options, run};

const SUITES: [&str; 6] = ["flyway", "graphile_worker", "peewee", "pg_boss", "procrastinate", "river"];

#[test]
fn tools_do_the_same_as_on_one_server() {
    let report = run(&Options {
        program: env!("CARGO_BIN_EXE_pgherd").to_owned(),
        // What is prepared stays there.
        out: Path::new(env!("CARGO_TARGET_TMPDIR")).join("drivers"),
        workers: 2,
        only: SUITES.map(str::to_owned).to_vec(),
        may_lack: true,
        write_known: false,
    })
    .unwrap();
    let line = report.lines().find(|line| line.starts_with("peewee")).unwrap_or_default();
    assert!(line.split_whitespace().nth(2).is_some_and(|passed| passed.parse().is_ok_and(|n: u32| n > 30)), "{report}");
}
