//! COMMIT and ROLLBACK inside procedures and DO blocks. The coordinator runs such a body outside any block of ours and
//! ends its transactions itself. postgres_fdw tells of each end right before it comes: what was written on workers is
//! then committed, where the coordinator has written nothing; otherwise it is prepared, and whether the coordinator's
//! own transaction was committed is asked of it by the transaction's number.

use pgherd_backend::{Connection, connect};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use tokio::sync::watch;

use crate::error::{Failure, Result};
use crate::finish::{DEADLINE, FLUSH, Progress, within};
use crate::session::Session;
use crate::settings::quote_literal;
use crate::transaction::Block;

/// Transactions that a body ends itself.
pub struct OwnTransactions {
    /// The coordinator's process that runs it.
    pid: i32,
    /// A connection to the coordinator on which is asked for it.
    asks: Option<Connection>,
    /// The workers' part of the last one is prepared, and ends as the coordinator's has ended.
    ending: Option<watch::Receiver<Progress>>,
}

impl Session {
    /// A body is run next that ends transactions itself. Where each would keep a snapshot it may not write on workers.
    pub(crate) async fn begin_own_transactions(&mut self) -> Result<()> {
        if self.txn.block != Block::None || self.keeps_one_snapshot() {
            return Ok(());
        }
        self.join(COORDINATOR_GROUP).await?;
        let key = self.txn.participants.get(&COORDINATOR_GROUP).and_then(|p| p.lease.cancel_key.as_ref());
        self.txn.own = key.map(|key| OwnTransactions { pid: key.pid, asks: None, ending: None });
        Ok(())
    }

    /// The body has ended, and the last of its transactions with it.
    pub(crate) async fn end_own_transactions(&mut self) {
        self.await_inner_end().await;
        if let Some(asks) = self.txn.own.take().and_then(|own| own.asks) {
            asks.close().await;
        }
    }

    /// The coordinator is about to commit: the workers' part.
    pub(crate) async fn commit_inside(&mut self) -> Result<()> {
        let Some(own) = &self.txn.own else { return Ok(()) };
        let pid = own.pid;
        if self.workers_taking_part().is_empty() {
            return Ok(());
        }
        let result = self.commit_workers(pid).await;
        self.cancel.set_committing(false);
        if result.is_err() {
            self.rollback_workers().await;
        }
        self.begin_next().await;
        result
    }

    /// The coordinator has rolled back.
    pub(crate) async fn rollback_inside(&mut self) {
        if self.txn.own.is_some() {
            self.rollback_workers().await;
            self.begin_next().await;
        }
    }

    fn workers_taking_part(&self) -> Vec<GroupId> {
        self.txn.participants.keys().copied().filter(|group| *group != COORDINATOR_GROUP).collect()
    }

    async fn rollback_workers(&mut self) {
        for group in self.workers_taking_part() {
            self.rollback_participant(group).await;
        }
    }

    async fn commit_workers(&mut self, pid: i32) -> Result<()> {
        self.check_none_ended()?;
        self.make_waiting().await?;
        let number = match self.txn.participants.values().any(|participant| participant.wrote) {
            true => self.number_of_transaction(pid).await?,
            false => None,
        };
        match number {
            Some(number) => self.prepare_workers(number).await,
            None => self.commit_participants().await,
        }
    }

    /// The number of the transaction that a process of the coordinator's is in, if it has written something. It waits
    /// for us; one that has been ended meanwhile is an error.
    async fn number_of_transaction(&mut self, pid: i32) -> Result<Option<u64>> {
        let kept = self.txn.own.as_mut().and_then(|own| own.asks.take()).filter(|asks| !asks.is_broken());
        let target = self.thread.shared.own_target_in(&self.db.snapshot(), COORDINATOR_GROUP, &self.db.name);
        let mut asks = match kept {
            Some(asks) => asks,
            None => within(DEADLINE, &target, connect(&target)).await?,
        };
        let sql = format!(
            "SELECT pg_catalog.string_agg(l.transactionid::pg_catalog.text, ' '), \
                 max(l.virtualtransaction) FILTER (WHERE l.locktype = 'virtualxid'), \
                 pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) \
             FROM pg_catalog.pg_locks l WHERE l.pid = {pid} AND l.granted AND l.mode = 'ExclusiveLock' \
                 AND (l.locktype = 'transactionid' OR l.virtualxid = l.virtualtransaction)"
        );
        let found = within(DEADLINE, &target, asks.query(&sql)).await?;
        let ended = || Failure::new("57P01", "the coordinator has ended the transaction");
        let transaction = found.text(0, 1).ok_or_else(ended)?.to_owned();
        let next: u64 = found.text(0, 2).and_then(|text| text.parse().ok()).ok_or_else(ended)?;
        let numbers = found.text(0, 0).unwrap_or_default().split(' ').filter_map(|text| text.parse().ok());
        // Those of subtransactions are higher.
        let number = numbers.map(|number| whole_number(number, next)).min();
        if number.is_none() {
            // A transaction that ends gives up its virtual number first: where that is still there, there was no other.
            let sql = format!(
                "SELECT FROM pg_catalog.pg_locks l WHERE l.pid = {pid} AND l.granted AND l.virtualxid = {}",
                quote_literal(&transaction)
            );
            if within(DEADLINE, &target, asks.query(&sql)).await?.rows.is_empty() {
                return Err(ended());
            }
        }
        if number.is_some() {
            // A server that fails before it has written of the number gives it to another transaction.
            within(DEADLINE, &target, asks.query(FLUSH)).await?;
        }
        if let Some(own) = &mut self.txn.own {
            own.asks = Some(asks);
        }
        Ok(number)
    }

    /// What was written on workers ends as the coordinator's transaction does.
    async fn prepare_workers(&mut self, number: u64) -> Result<()> {
        let (unfinished, failure) = self.prepare_parts(number).await;
        let progress = unfinished.start(&self.thread.shared);
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.end_readers().await;
        if let Some(own) = &mut self.txn.own {
            own.ending = Some(progress);
        }
        Ok(())
    }

    /// What comes next sees what the last transaction has written on workers.
    pub(crate) async fn await_inner_end(&mut self) {
        let Some(mut progress) = self.txn.own.as_mut().and_then(|own| own.ending.take()) else { return };
        let _ = tokio::time::timeout(self.commit_wait(), progress.wait_for(|progress| progress.finished)).await;
        let reached = *progress.borrow();
        if !reached.finished {
            let message = "a transaction of this procedure is not carried out on all servers yet: until it is, what was \
                           written there cannot be seen, and its rows stay locked";
            self.warn("01000", message);
        }
    }
}

/// A transaction's number with its upper half, which is that of one that comes next, or nearly.
pub(crate) fn whole_number(number: u32, next: u64) -> u64 {
    const HALF: u64 = 1 << 31;
    let near = next & !u64::from(u32::MAX) | u64::from(number);
    if near > next + HALF {
        near.saturating_sub(1 << 32)
    } else if near + HALF < next {
        near + (1 << 32)
    } else {
        near
    }
}

#[cfg(test)]
mod tests {
    use super::whole_number;

    #[test]
    fn numbers_are_near_the_next() {
        assert_eq!(whole_number(1000, 1003), 1000);
        assert_eq!(whole_number(1005, 1003), 1005);
        assert_eq!(whole_number(u32::MAX - 1, (7 << 32) + 5), (7 << 32) - 2);
        assert_eq!(whole_number(4, (7 << 32) - 3), (7 << 32) + 4);
    }
}
