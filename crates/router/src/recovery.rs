//! Settling prepared transactions whose router is gone: at start and from time to time, in every database that is open.
//! What to do is decided in `pgherd_txn::recovery`; the decider's unique index arbitrates, so that a commit in flight
//! is waited for and one that was decided is finished.

use std::sync::Arc;
use std::time::Duration;

use pgherd_backend::{BackendError, Connection, connect};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Snapshot};
use pgherd_txn::Gid;
use pgherd_txn::recovery::{DeciderSays, Step, step};
use tokio::sync::watch;

use crate::database::Database;
use crate::settings::quote_literal;
use crate::shared::Shared;

const INTERVAL: Duration = Duration::from_secs(30);
/// Transactions younger than this may well be under way.
const AGE_MIN_SECONDS: u64 = 20;
/// The same when a database is used for the first time: another router may be at work in it.
pub const AGE_AT_OPEN_SECONDS: u64 = 2;

pub fn spawn(shared: Arc<Shared>, mut shutdown: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let mut first = true;
        loop {
            let databases: Vec<Arc<Database>> = shared.databases.lock().await.values().cloned().collect();
            for database in databases {
                let age = if first { 0 } else { AGE_MIN_SECONDS };
                if let Err(error) = recover(&shared, &database, age).await {
                    tracing::warn!("recovery in database {}: {error}", database.name);
                }
            }
            first = false;
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
        }
    });
}

/// One pass over the nodes of one database.
pub async fn recover(shared: &Shared, database: &Database, age_seconds: u64) -> Result<(), BackendError> {
    let snapshot = database.snapshot();
    let mut groups = snapshot.worker_groups();
    groups.push(COORDINATOR_GROUP);
    for group in groups {
        let mut connection = match open(shared, database, &snapshot, group).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!("recovery: node group {group}: {error}");
                continue;
            }
        };
        let found = connection
            .query(&format!(
                "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database() \
                 AND gid LIKE 'pgherd\\_%' AND prepared <= pg_catalog.now() - pg_catalog.make_interval(secs => {age_seconds})"
            ))
            .await?;
        for row in 0..found.rows.len() {
            let Some(name) = found.text(row, 0) else { continue };
            let Some(gid) = Gid::parse(name) else { continue };
            let answer = ask_decider(shared, database, &snapshot, &gid).await;
            let sql = match step(answer) {
                Step::CommitPrepared => format!("COMMIT PREPARED {}", quote_literal(name)),
                Step::RollbackPrepared => format!("ROLLBACK PREPARED {}", quote_literal(name)),
                Step::Wait => continue,
            };
            match connection.query(&sql).await {
                Ok(_) => tracing::info!("recovery: {sql}"),
                Err(error) => tracing::warn!("recovery: {sql}: {error}"),
            }
        }
        connection.close().await;
    }
    Ok(())
}

async fn open(
    shared: &Shared,
    database: &Database,
    snapshot: &Snapshot,
    group: GroupId,
) -> Result<Connection, BackendError> {
    let target = match snapshot.node_of_group(group) {
        Some(node) if group != COORDINATOR_GROUP => shared.own_target_on(node, &database.name),
        _ => shared.own_target(&database.name),
    };
    connect(&target).await
}

async fn ask_decider(shared: &Shared, database: &Database, snapshot: &Snapshot, gid: &Gid) -> DeciderSays {
    let asked = async {
        let mut connection = open(shared, database, snapshot, gid.decider).await?;
        let result =
            connection.query(&format!("SELECT pgherd.record_abort({})", quote_literal(&gid.transaction))).await;
        connection.close().await;
        result
    };
    match asked.await {
        Ok(result) if result.text(0, 0) == Some("t") => DeciderSays::Aborted,
        Ok(_) => DeciderSays::Committed,
        Err(error) => {
            tracing::warn!("recovery: the decider of {gid} does not answer: {error}");
            DeciderSays::Unreachable
        }
    }
}
