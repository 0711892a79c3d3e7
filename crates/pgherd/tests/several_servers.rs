//! Transactions of several clients over several workers: what no single server can see. A plain PostgreSQL says what
//! must come out.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use pgherd_testkit::{Cluster, Plain, Router, Side, Target};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

/// Accounts that the hash puts on different workers of three.
const ACCOUNTS: i32 = 8;

async fn connect(target: &Target) -> Client {
    let config = format!("host={} port={} user={} dbname={}", target.host, target.port, target.user, target.database);
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn prepare(side: &Side) {
    side.create_database("several", "").unwrap();
    let mut client = side.connect("several").unwrap();
    client.run("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)").unwrap();
    if side.is_cluster {
        client.run("SELECT create_distributed_table('account', 'id', shard_count => 8)").unwrap();
    }
    client.run(&format!("INSERT INTO account SELECT g, 100 FROM generate_series(1, {ACCOUNTS}) g")).unwrap();
}

/// Two transactions lock rows in opposite order: one gets 40P01, the other commits.
fn opposite_orders(side: &Side, first: i32, second: i32) -> Vec<Option<SqlState>> {
    in_a_ring(&[&side.target, &side.target], &[first, second])
}

/// As many transactions as rows lock one row each, and then each the next one's. A transaction is sent to its target.
fn in_a_ring(targets: &[&Target], rows: &[i32]) -> Vec<Option<SqlState>> {
    let barrier = Arc::new(Barrier::new(rows.len()));
    let threads: Vec<_> = targets
        .iter()
        .enumerate()
        .map(|(n, target)| {
            let (one, other) = (rows[n], rows[(n + 1) % rows.len()]);
            let (barrier, target) = (barrier.clone(), target.with_database("several"));
            std::thread::spawn(move || {
                runtime().block_on(async {
                    let mut client = connect(&target).await;
                    let transaction = client.transaction().await.unwrap();
                    let sql = "UPDATE account SET balance = balance + 1 WHERE id = $1";
                    transaction.execute(sql, &[&one]).await.unwrap();
                    barrier.wait();
                    let waited =
                        tokio::time::timeout(Duration::from_secs(60), transaction.execute(sql, &[&other])).await;
                    match waited.expect("a deadlock was not broken") {
                        Ok(_) => transaction.commit().await.err().and_then(|e| e.code().cloned()),
                        Err(error) => error.code().cloned(),
                    }
                })
            })
        })
        .collect();
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

#[test]
fn deadlocks_across_servers_end_as_on_one() {
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let plain = Plain::like(&cluster.target).unwrap();
    for side in [plain.side("postgres"), cluster.side()] {
        prepare(&side);
        for second in 2..=4 {
            let mut outcome = opposite_orders(&side, 1, second);
            outcome.sort_by_key(|code| code.as_ref().map(|c| c.code().to_owned()));
            assert_eq!(outcome, [None, Some(SqlState::T_R_DEADLOCK_DETECTED)], "{} 1 and {second}", side.name);
        }
        let total = side.connect("several").unwrap().value("SELECT sum(balance) FROM account").unwrap();
        // Each round one transaction added 1 to two accounts.
        assert_eq!(total, (ACCOUNTS * 100 + 3 * 2).to_string(), "{}", side.name);
    }
}

/// One that lasts does not hide the others.
#[test]
fn deadlocks_that_have_nothing_to_do_with_each_other_all_end() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 2).unwrap();
    let side = cluster.side();
    prepare(&side);
    let began = std::time::Instant::now();
    let pairs: Vec<_> = (0..4)
        .map(|n| {
            let target = side.target.clone();
            std::thread::spawn(move || in_a_ring(&[&target, &target], &[2 * n + 1, 2 * n + 2]))
        })
        .collect();
    for pair in pairs {
        let outcome = pair.join().unwrap();
        assert_eq!(outcome.iter().filter(|code| code.is_some()).count(), 1, "{outcome:?}");
    }
    eprintln!("ended after {:?}", began.elapsed());
}

/// Each router sees what its own sessions wait for; who waits for whom, none sees alone.
#[test]
fn deadlocks_of_several_routers_end_as_on_one() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 3).unwrap();
    let side = cluster.side();
    prepare(&side);
    let port = side.connect("postgres").unwrap().value("SHOW port").unwrap();
    let coordinator = Target { port: port.parse().unwrap(), database: "postgres".into(), ..cluster.target.clone() };
    let further = || Router::start(env!("CARGO_BIN_EXE_pgherd"), &coordinator, &[]).unwrap();
    let routers = [further(), further()];
    let (first, second, third) = (&cluster.target, &routers[0].target, &routers[1].target);
    let mut account = side.connect("several").unwrap();
    let refused = Some(SqlState::T_R_DEADLOCK_DETECTED);
    let mut rounds = 0;
    for (targets, rows) in [
        (&[first, second][..], &[1, 2][..]),
        (&[second, first], &[1, 3]),
        (&[second, third], &[1, 4]),
        // Some of these have two rows of one server, and wait in a queue behind another router's.
        (&[first, second, third], &[1, 2, 3]),
        (&[first, first, second, third], &[4, 3, 2, 1]),
        (&[first, second, third, second, first], &[1, 5, 2, 6, 3]),
    ] {
        let outcome = in_a_ring(targets, rows);
        let lost = outcome.iter().filter(|code| **code == refused).count();
        let won = outcome.iter().filter(|code| code.is_none()).count();
        assert_eq!((lost, won), (1, rows.len() - 1), "{rows:?}: {outcome:?}");
        rounds += won * 2;
    }
    // Nobody has anything to say any more.
    for _ in 0..100 {
        if side.connect("postgres").unwrap().value("SELECT count(*) FROM pgherd.waiting_session").unwrap() == "0" {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(side.connect("postgres").unwrap().value("SELECT count(*) FROM pgherd.waiting_session").unwrap(), "0");
    let total = account.value("SELECT sum(balance) FROM account").unwrap();
    assert_eq!(total, (ACCOUNTS as usize * 100 + rounds).to_string());
}
