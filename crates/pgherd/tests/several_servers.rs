//! Transactions of several clients over several workers: what no single server can see. A plain PostgreSQL says what
//! must come out.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Barrier};
use std::time::Duration;

use pgherd_testkit::{Cluster, Plain, Side, Target};
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
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = [(first, second), (second, first)]
        .into_iter()
        .map(|(one, other)| {
            let (barrier, target) = (barrier.clone(), side.target.with_database("several"));
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
