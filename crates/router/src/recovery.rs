//! Settling prepared transactions whose router is gone: at start and from time to time, in every database that is open.
//! What to do is decided in `pgherd_txn::recovery`; the decider's unique index arbitrates, so that a commit in flight
//! is waited for and one that was decided is finished.

use std::sync::Arc;
use std::time::Duration;

use pgherd_backend::BackendError;
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_txn::Gid;
use pgherd_txn::recovery::{DeciderSays, Step, step};
use tokio::sync::watch;

use crate::database::Database;
use crate::finish::{ask_decider, ask_on, sql_of};
use crate::shared::Shared;

const INTERVAL: Duration = Duration::from_secs(10);
/// Transactions younger than this may well be under way.
const AGE_MIN_SECONDS: u64 = 20;
/// The same when a database is used for the first time: another router may be at work in it.
pub const AGE_AT_OPEN_SECONDS: u64 = 2;
/// Every node was asked and nothing is in doubt: decisions of long ago are not needed any more. A node that has
/// nothing of a new database yet has decided nothing.
const FORGET: &str = "DO $$ BEGIN IF pg_catalog.to_regclass('pgherd.commit_record') IS NOT NULL THEN \
     DELETE FROM pgherd.commit_record WHERE decision = 'c' AND at < pg_catalog.now() - interval '1 hour'; \
     END IF; END $$";

pub fn spawn(shared: Arc<Shared>, mut shutdown: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let mut passes = 0;
        loop {
            let databases: Vec<Arc<Database>> = shared.databases.lock().await.values().cloned().collect();
            let age = if passes < 2 { AGE_AT_OPEN_SECONDS } else { AGE_MIN_SECONDS };
            let passes_over = databases.iter().map(|database| async {
                if let Err(error) = recover(&shared, database, age).await {
                    tracing::warn!("recovery in database {}: {error}", database.name);
                }
            });
            futures_util::future::join_all(passes_over).await;
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

/// One pass over the nodes of one database, all at the same time: none waits for another.
pub async fn recover(shared: &Shared, database: &Database, age_seconds: u64) -> Result<(), BackendError> {
    let snapshot = database.snapshot();
    let mut groups = snapshot.worker_groups();
    groups.push(COORDINATOR_GROUP);
    let nodes = groups.iter().map(|group| async move {
        let settled = settle_node(shared, database, *group, age_seconds).await;
        settled.unwrap_or_else(|error| {
            tracing::warn!("recovery: node group {group}: {error}");
            false
        })
    });
    if futures_util::future::join_all(nodes).await.into_iter().all(|settled| settled) {
        let forgotten = groups.iter().map(|group| ask_on(shared, database, *group, FORGET));
        futures_util::future::try_join_all(forgotten).await?;
    }
    Ok(())
}

/// False: something there is in doubt.
async fn settle_node(
    shared: &Shared,
    database: &Database,
    group: GroupId,
    age_seconds: u64,
) -> Result<bool, BackendError> {
    let sql = format!(
        "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database() \
         AND gid LIKE E'pgherd\\\\_%' \
         AND prepared <= pg_catalog.now() - pg_catalog.make_interval(secs => {age_seconds})"
    );
    let found = ask_on(shared, database, group, &sql).await?;
    let names = (0..found.rows.len()).filter_map(|row| found.text(row, 0));
    let mut settled = true;
    for gid in names.filter_map(Gid::parse) {
        let answer = ask_decider(shared, database, gid.decider, &gid.transaction).await;
        if answer == DeciderSays::InProgress {
            continue;
        }
        let sql = match step(answer) {
            Step::CommitPrepared => sql_of(&gid, true),
            Step::RollbackPrepared => sql_of(&gid, false),
            Step::Wait => {
                tracing::warn!("recovery: the decider of {gid} does not answer");
                settled = false;
                continue;
            }
        };
        match ask_on(shared, database, group, &sql).await {
            Ok(_) => tracing::info!("recovery: {sql}"),
            Err(error) => {
                settled = false;
                tracing::warn!("recovery: {sql}: {error}");
            }
        }
    }
    Ok(settled)
}
