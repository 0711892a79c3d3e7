//! `docs/sql.md` says what the corpus in `tests/differential` covers and how a cluster runs it. `UPDATE_DOCS=1` (`make
//! sql-docs`) asks a cluster and writes it; without it, what the files say by themselves is compared.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::{Cluster, Shape, differential, survey, workspace_file};

#[test]
fn the_page_about_sql_is_up_to_date() {
    let files = differential::corpus().unwrap();
    let shape = format!("{} workers with tables of {} shards", Shape::FULL.workers, Shape::FULL.shards);
    let path = workspace_file("docs/sql.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), Shape::FULL.workers).unwrap();
        let topics = survey::survey(&cluster.side(), &files, &Shape::FULL.database_settings(), 2).unwrap();
        std::fs::write(&path, survey::page(&topics, &shape)).unwrap();
    }
    let written = survey::comparable(&std::fs::read_to_string(path).unwrap());
    let found = survey::comparable(&survey::page(&survey::outline(&files).unwrap(), &shape));
    let differing: Vec<_> = found.iter().filter(|l| !written.contains(l)).collect();
    assert!(written == found, "docs/sql.md is not what `make sql-docs` would write: {differing:#?}");
}
