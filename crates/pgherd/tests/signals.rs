//! Sessions by the numbers that their clients know: `pg_cancel_backend`, `pg_terminate_backend`, and who notifies, as
//! on one PostgreSQL.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::{Client, query};
use pgherd_testkit::{Cluster, Plain, Side};

fn said(client: &mut Client, sql: &str) -> String {
    let reply = client.simple(sql, None).unwrap();
    reply.error().map_or_else(|| "none".to_owned(), |e| format!("{} {}", e.sqlstate(), e.message()))
}

fn told(side: &Side) -> Vec<String> {
    let target = side.create_database("signals", "").unwrap();
    let mut admin = Client::connect(&target).unwrap();
    admin.run("DROP ROLE IF EXISTS signal_low, signal_other").unwrap();
    admin.run("CREATE ROLE signal_low LOGIN; CREATE ROLE signal_other LOGIN").unwrap();
    let connect = |user: &str| {
        let mut target = target.clone();
        user.clone_into(&mut target.user);
        target.password = None;
        let mut client = Client::connect(&target).unwrap();
        let pid = client.value("SELECT pg_backend_pid()").unwrap();
        (client, pid)
    };
    let mut told = Vec::new();
    let (mut low, low_pid) = connect("signal_low");
    let (mut mine, _) = connect("signal_low");
    let (mut other, _) = connect("signal_other");
    let own = admin.value("SELECT pg_backend_pid()").unwrap();
    // Whoever may not.
    for (client, pid) in [(&mut other, &low_pid), (&mut low, &own)] {
        for function in ["pg_cancel_backend", "pg_terminate_backend"] {
            told.push(said(client, &format!("SELECT {function}({pid})")));
        }
    }
    for cancels in [&mut mine, &mut admin] {
        low.send(&query("SELECT pg_sleep(20)")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        told.push(cancels.value(&format!("SELECT pg_cancel_backend({low_pid})")).unwrap());
        let reply = low.receive_until_ready(1).unwrap();
        told.push(reply.iter().map(|message| char::from(message.kind)).collect());
    }
    told.push(admin.value("SELECT pg_cancel_backend(2000000000)").unwrap());
    // Its own notification, and one of another session.
    low.run("LISTEN here").unwrap();
    for (sender, name) in [(&mut mine, "other"), (&mut admin, "admin")] {
        let pid = sender.value("SELECT pg_backend_pid()").unwrap();
        sender.run("NOTIFY here, 'x'").unwrap();
        let message = std::iter::from_fn(|| low.receive().ok()).find(|message| message.kind == b'A').unwrap();
        let from = i32::from_be_bytes(*message.body.first_chunk().unwrap());
        told.push(format!("{name} {}", from.to_string() == pid));
    }
    low.run("BEGIN; SELECT 1").unwrap();
    told.push(mine.value(&format!("SELECT pg_terminate_backend({low_pid})")).unwrap());
    let last = std::iter::from_fn(|| low.receive().ok()).last().unwrap();
    told.push(String::from_utf8_lossy(&last.body).contains("57P01").to_string());
    // Itself.
    mine.send(&query("SELECT pg_terminate_backend(pg_backend_pid())")).unwrap();
    let last = std::iter::from_fn(|| mine.receive().ok()).last().unwrap();
    told.push(String::from_utf8_lossy(&last.body).contains("57P01").to_string());
    told
}

#[test]
fn sessions_are_known_by_the_numbers_that_their_clients_have() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let (plain, cluster) = (told(&plain.side("postgres")), told(&cluster.side()));
    assert_eq!(plain, cluster);
    assert!(plain.iter().filter(|said| said.starts_with("42501")).count() >= 2, "{plain:?}");
}

/// What others see of sessions: theirs, by the numbers that clients know, and who waits for whom.
fn seen(side: &Side) -> Vec<String> {
    let target = side.create_database("activity", "").unwrap();
    let mut admin = Client::connect(&target).unwrap();
    admin.run("CREATE TABLE held (k int PRIMARY KEY, v int); INSERT INTO held VALUES (1, 1), (2, 2)").unwrap();
    if side.is_cluster {
        admin.run("SELECT create_distributed_table('held', 'k')").unwrap();
    }
    let mut clients: Vec<(Client, String)> = (0..2)
        .map(|_| {
            let mut client = Client::connect(&target).unwrap();
            let pid = client.value("SELECT pg_backend_pid()").unwrap();
            (client, pid)
        })
        .collect();
    let mut told = Vec::new();
    // Each of these sessions waits, for its client or for a lock; a server says so a moment after the rest.
    let shown = |admin: &mut Client, pid: &str| {
        let waits = format!("SELECT count(wait_event_type) FROM pg_stat_activity WHERE pid = {pid}");
        while admin.value(&waits).unwrap() != "1" {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let sql = format!(
            "SELECT concat_ws('|', datname, usename, application_name, state, xact_start IS NULL, backend_type, \
             client_addr IS NULL, wait_event_type, query) FROM pg_stat_activity WHERE pid = {pid}"
        );
        admin.value(&sql).unwrap()
    };
    clients[0].0.run("SET application_name = 'first'").unwrap();
    clients[0].0.run("SELECT 1 AS here").unwrap();
    told.push(shown(&mut admin, &clients[0].1));
    clients[0].0.run("BEGIN; UPDATE held SET v = 3 WHERE k = 1").unwrap();
    told.push(shown(&mut admin, &clients[0].1));
    clients[1].0.send(&query("UPDATE held SET v = 4 WHERE k = 1")).unwrap();
    let waits = format!("SELECT pg_blocking_pids({})::text", clients[1].1);
    while admin.value(&waits).unwrap() == "{}" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    told.push((admin.value(&waits).unwrap() == format!("{{{}}}", clients[0].1)).to_string());
    told.push(shown(&mut admin, &clients[1].1));
    told.push(said(&mut clients[0].0, "SELECT 1/0"));
    told.push(shown(&mut admin, &clients[0].1));
    clients[1].0.receive_until_ready(1).unwrap();
    clients[1].0.run("BEGIN; LOCK TABLE held").unwrap();
    let lock = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.relation = 'held'::regclass \
                AND l.granted AND l.mode = 'AccessExclusiveLock' AND a.pid";
    told.push(admin.value(&format!("{lock} = {}", clients[1].1)).unwrap());
    told.push(clients[1].0.value(&format!("{lock} = pg_backend_pid()")).unwrap());
    // What people type before they drop a database.
    let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    told.push(admin.value(&format!("SELECT count(pg_terminate_backend(pid)) {others}")).unwrap());
    while admin.value(&format!("SELECT count(*) {others}")).unwrap() != "0" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    told
}

#[test]
fn who_runs_what_and_who_waits_is_seen() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    let (plain, cluster) = (seen(&plain.side("postgres")), seen(&cluster.side()));
    assert_eq!(plain, cluster);
    assert!(plain.iter().any(|said| said.contains("|Lock|")), "{plain:?}");
}
