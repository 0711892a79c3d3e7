//! A client's own PREPARE TRANSACTION where the cluster is not one server: what was written on workers cannot be
//! prepared, our own names are not for clients, and databases keep their names on every node. What concerns the
//! coordinator alone is compared with PostgreSQL in tests/differential/local.sql.
#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::Client;
use pgherd_testkit::{Cluster, Side};

fn side(name: &str) -> Side {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    side
}

/// What a statement fails with.
fn said(client: &mut Client, sql: &str) -> String {
    client.run(sql).err().unwrap().to_string()
}

#[test]
fn what_workers_wrote_is_not_prepared() {
    let mut client = side("two_phase_workers").connect("two_phase_workers").unwrap();
    client.run("CREATE TABLE t (k int PRIMARY KEY)").unwrap();
    client.run("SELECT create_distributed_table('t', 'k', shard_count => 4)").unwrap();
    client.run("BEGIN").unwrap();
    client.run("INSERT INTO t SELECT generate_series(1, 20)").unwrap();
    assert!(said(&mut client, "PREPARE TRANSACTION 'of_workers'").contains("0A000"));
    // The transaction is over, as after any failed PREPARE.
    client.run("BEGIN").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM t").unwrap(), "0");
    client.run("COMMIT").unwrap();
    // Rows that were only read are no hindrance.
    client.run("CREATE TABLE l (a int)").unwrap();
    client.run("BEGIN").unwrap();
    client.run("SELECT k FROM t WHERE k = 1").unwrap();
    client.run("INSERT INTO l VALUES (1)").unwrap();
    client.run("PREPARE TRANSACTION 'of_workers'").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM l").unwrap(), "0");
    client.run("COMMIT PREPARED 'of_workers'").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM l").unwrap(), "1");
}

#[test]
fn our_names_are_not_for_clients() {
    let mut client = side("two_phase_names").connect("two_phase_names").unwrap();
    client.run("BEGIN").unwrap();
    client.run("CREATE TABLE l (a int)").unwrap();
    let name = "pgherd_1_00112233445566778899aabbccddeeff_2";
    assert!(said(&mut client, &format!("PREPARE TRANSACTION '{name}'")).contains("42939"));
    assert!(said(&mut client, &format!("COMMIT PREPARED '{name}'")).contains("42939"));
    assert!(said(&mut client, &format!("ROLLBACK PREPARED '{name}'")).contains("42939"));
    assert!(said(&mut client, "ROLLBACK PREPARED 'nobody'").contains("42704"));
}

#[test]
fn a_database_is_renamed_on_every_node() {
    let side = side("two_phase_renamer");
    let mut client = side.connect("two_phase_renamer").unwrap();
    client.run("DROP DATABASE IF EXISTS two_phase_new").unwrap();
    client.run("CREATE DATABASE two_phase_old").unwrap();
    let mut other = side.connect("two_phase_old").unwrap();
    other.run("CREATE TABLE t (k int)").unwrap();
    other.run("SELECT create_distributed_table('t', 'k', shard_count => 4)").unwrap();
    other.run("INSERT INTO t SELECT generate_series(1, 20)").unwrap();
    let refused = said(&mut client, "ALTER DATABASE two_phase_old RENAME TO two_phase_new");
    assert!(refused.contains("is being accessed by other users"), "{refused}");
    drop(other);
    // The session ends a moment after its client.
    let renamed = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        client.run("ALTER DATABASE two_phase_old RENAME TO two_phase_new").is_ok()
    });
    assert!(renamed);
    let mut other = side.connect("two_phase_new").unwrap();
    assert_eq!(other.value("SELECT count(*) FROM t").unwrap(), "20");
    drop(other);
}
