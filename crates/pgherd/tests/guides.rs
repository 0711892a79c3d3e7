//! The guides of `tests/guides` run as people type them, with psql and pgbench against the router; and, so that a guide
//! that fails is not itself wrong, against one plain PostgreSQL.
//!
//! Each can be run by hand: `PGHOST=… PGPORT=… PGUSER=… PGDATABASE=… tests/guides/pgbench.sh`.

#![allow(clippy::unwrap_used)]

use std::process::Command;

use pgherd_testkit::{Cluster, Plain, Side, pg_bin, workspace_file};

/// Runs one guide in a database of its own; what it prints is shown when it fails.
fn run(side: &Side, guide: &str, settings: &[(&str, &str)]) {
    let database = format!("guide_{guide}");
    let target = side.create_database(&database, "").unwrap();
    if !side.is_cluster {
        let stubs = std::fs::read_to_string(workspace_file("tests/guides/plain_stubs.sql")).unwrap();
        side.connect(&database).unwrap().run(&stubs).unwrap();
    }
    let mut command = Command::new("bash");
    command.arg(workspace_file(&format!("tests/guides/{guide}.sh")));
    command.envs(target.environment()).envs(settings.iter().copied());
    if !side.is_cluster {
        command.env("PGHERD_GUIDE_PLAIN", "1");
    }
    let output = command.output().unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{guide} on {}: {}\n{printed}", side.name, output.status);
    assert!(printed.contains("ok - ") || printed.contains("only on a cluster"), "{guide} checked nothing:\n{printed}");
}

fn on_the_cluster(guide: &str) {
    run(&Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side(), guide, &[]);
}

#[test]
fn pgbench_tables_are_distributed_and_balance() {
    on_the_cluster("pgbench");
}

#[test]
fn a_million_rows_are_filled_doubled_and_explained() {
    on_the_cluster("million");
}

#[test]
fn users_log_in_and_out() {
    on_the_cluster("login");
}

#[test]
fn the_sql_interface_of_distribution() {
    on_the_cluster("interface");
}

#[test]
fn the_guides_hold_on_one_plain_server() {
    let plain = Plain::start(&pg_bin().unwrap(), "postgres").unwrap();
    let side = plain.side("postgres");
    let small = [("GUIDE_SCALE", "1"), ("GUIDE_SECONDS", "1"), ("GUIDE_USERS", "20000")];
    for guide in ["pgbench", "million", "login", "interface"] {
        run(&side, guide, &small);
    }
}
