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
        let mut passes = 0;
        loop {
            let databases: Vec<Arc<Database>> = shared.databases.lock().await.values().cloned().collect();
            for database in databases {
                let age = if passes < 2 { AGE_AT_OPEN_SECONDS } else { AGE_MIN_SECONDS };
                if let Err(error) = recover(&shared, &database, age).await {
                    tracing::warn!("recovery in database {}: {error}", database.name);
                }
            }
            // What was prepared in the last moment before the start is old enough a little later.
            let pause = if passes == 0 { Duration::from_secs(AGE_AT_OPEN_SECONDS + 1) } else { INTERVAL };
            passes += 1;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
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
    let mut settled = true;
    for group in &groups {
        let group = *group;
        let mut connection = match open(shared, database, &snapshot, group).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::warn!("recovery: node group {group}: {error}");
                settled = false;
                continue;
            }
        };
        let found = connection
            .query(&format!(
                "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database() \
                 AND gid LIKE E'pgherd\\\\_%' \
                 AND prepared <= pg_catalog.now() - pg_catalog.make_interval(secs => {age_seconds})"
            ))
            .await?;
        for row in 0..found.rows.len() {
            let Some(name) = found.text(row, 0) else { continue };
            let Some(gid) = Gid::parse(name) else { continue };
            let answer = ask_decider(shared, database, &snapshot, &gid).await;
            let sql = match step(answer) {
                Step::CommitPrepared => format!("COMMIT PREPARED {}", quote_literal(name)),
                Step::RollbackPrepared => format!("ROLLBACK PREPARED {}", quote_literal(name)),
                Step::Wait => {
                    settled = false;
                    continue;
                }
            };
            match connection.query(&sql).await {
                Ok(_) => tracing::info!("recovery: {sql}"),
                Err(error) => {
                    settled = false;
                    tracing::warn!("recovery: {sql}: {error}");
                }
            }
        }
        connection.close().await;
    }
    if settled {
        forget_old_records(shared, database, &snapshot, &groups).await?;
    }
    Ok(())
}

/// Every node was asked and nothing is in doubt: decisions of long ago are not needed any more.
async fn forget_old_records(
    shared: &Shared,
    database: &Database,
    snapshot: &Snapshot,
    groups: &[GroupId],
) -> Result<(), BackendError> {
    for group in groups {
        let mut connection = open(shared, database, snapshot, *group).await?;
        connection
            .query(
                "DELETE FROM pgherd.commit_record WHERE decision = 'c' AND at < pg_catalog.now() - interval '1 hour'",
            )
            .await?;
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
