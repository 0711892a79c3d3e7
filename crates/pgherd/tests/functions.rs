//! Routers know of functions, however these were made and by whom: how a statement is carried out goes by what they say.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pgherd_testkit::client::Client;
use pgherd_testkit::{Cluster, Router};

/// For a router to hear of what another has done.
const WAIT: Duration = Duration::from_secs(20);

fn function(name: &str) -> String {
    format!("CREATE FUNCTION {name}(int) RETURNS int LANGUAGE sql AS 'INSERT INTO calls VALUES ($1) RETURNING a + 1'")
}

#[test]
fn another_router_knows_functions_however_they_were_made() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let target = cluster.side().create_database("functions", "").unwrap();
    let mut one = Client::connect(&target).unwrap();
    let mut coordinator = target.clone();
    coordinator.port = one.value("SELECT setting FROM pg_settings WHERE name = 'port'").unwrap().parse().unwrap();
    let router = Router::start(env!("CARGO_BIN_EXE_pgherd"), &coordinator, &["--callbacks-over-tcp"]).unwrap();
    let mut two = Client::connect(&router.target).unwrap();
    one.run("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE calls (a int)").unwrap();
    one.run("SELECT create_distributed_table('t', 'k', shard_count => 4)").unwrap();
    one.run("INSERT INTO t SELECT generate_series(1, 9)").unwrap();
    assert_eq!(two.value("SELECT count(*) FROM t").unwrap(), "9");
    let mut direct = Client::connect(&coordinator).unwrap();
    let ended = "CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN COMMIT; EXECUTE $f$";
    let ways: [(&str, Vec<String>); 7] = [
        ("f_plain", vec![function("f_plain")]),
        ("f_block", vec!["BEGIN; CREATE TABLE b (a int)".into(), function("f_block"), "COMMIT".into()]),
        ("f_undone", vec![
            format!("BEGIN; SAVEPOINT s; {}; ROLLBACK TO s", function("f_undone")),
            format!("{}; COMMIT", function("f_undone")),
        ]),
        ("f_prepared", vec![
            format!("BEGIN; {}; PREPARE TRANSACTION 'functions'", function("f_prepared")),
            "COMMIT PREPARED 'functions'".into(),
        ]),
        ("f_inside", vec![format!("DO $$ BEGIN EXECUTE $f${}$f$; END $$", function("f_inside"))]),
        ("f_ended", vec![format!("{ended}{}$f$; END $$", function("f_ended")), "CALL p()".into()]),
        ("f_direct", Vec::new()),
    ];
    for (number, (name, statements)) in ways.iter().enumerate() {
        for statement in statements {
            one.run(statement).unwrap();
        }
        if statements.is_empty() {
            direct.run(&function(name)).unwrap();
        }
        // What moves the epoch changes no function.
        one.run(&format!("CREATE TABLE l{number} (a int)")).unwrap();
        let sql = format!("SELECT {name}(k) FROM t WHERE k = 3");
        assert_eq!(one.value(&sql).unwrap(), "4", "{name}");
        let started = Instant::now();
        // Whoever has not heard of the table has not heard of the function.
        while two.value(&format!("SELECT count(*) FROM l{number}")).is_err() && started.elapsed() < WAIT {}
        let found = loop {
            match two.value(&sql) {
                Err(_) if started.elapsed() < WAIT => std::thread::sleep(Duration::from_millis(50)),
                found => break found,
            }
        };
        assert_eq!(found.unwrap(), "4", "{name}");
    }
    assert_eq!(one.value("SELECT count(*) FROM calls").unwrap(), "14");
}
