//! PREPARE TRANSACTION by a client: the coordinator keeps the transaction under the client's name, and COMMIT PREPARED
//! is its own. What was written on workers is prepared there under the number that the coordinator's transaction has,
//! and ends as that does: `recovery.rs` asks for it by this number, and waits while it is only prepared. Names that
//! begin with ours are its; it leaves all others alone.

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, OWN_SCHEMA};
use pgherd_sql::StatementKind;
use pgherd_txn::{Gid, of_number};

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::finish::{FLUSH, Part, Process, Unfinished, ask_on};
use crate::procedures::whole_number;
use crate::session::Session;
use crate::settings::quote_literal;
use crate::transaction::{Block, LogItem, Participant, ROLLBACK_WAIT, was_done};

/// The first number of advisory locks by which a prepared transaction of the coordinator's says where else it has
/// written; the second one is the node group. Where somebody else has one, recovery finds the part.
const PREPARED_KEY: i32 = 1_885_825_126;

/// postgres_fdw's own words.
const THROUGH_FOREIGN_TABLES: &str = "cannot PREPARE a transaction that has operated on postgres_fdw foreign tables";

/// A transaction has written rows, or has locks that others would wait for.
const KEEPS_SOMETHING: &str = "SELECT pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL OR EXISTS ( \
     SELECT FROM pg_catalog.pg_locks WHERE pid = pg_catalog.pg_backend_pid() AND (locktype = 'advisory' \
     OR locktype = 'relation' AND mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')))";

impl Session {
    pub(super) async fn run_two_phase(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        match kind {
            StatementKind::PrepareTransaction(name) => self.prepare_transaction(name).await,
            StatementKind::CommitPrepared(name) | StatementKind::RollbackPrepared(name) => {
                check_name(name)?;
                let commits = matches!(kind, StatementKind::CommitPrepared(_));
                // In a block the coordinator refuses it.
                let ending = match self.txn.block {
                    Block::None => self.prepared_elsewhere(name).await?,
                    _ => None,
                };
                let completion = self.run_on_coordinator(call, call.prepared.text(), true).await;
                if let Some(ending) = ending {
                    match &completion {
                        Ok(_) => self.await_end(ending, commits).await,
                        // It may have been done.
                        Err(failure)
                            if failure.sqlstate().starts_with("08") || failure.sqlstate().starts_with("57P") =>
                        {
                            ending.start(&self.thread.shared);
                        }
                        Err(_) => {}
                    }
                }
                let completion = completion?;
                if commits {
                    // PREPARE cannot tell the routers of definitions: a transaction that notifies cannot be prepared.
                    self.call_own(COORDINATOR_GROUP, "SELECT pgherd.bump_epoch()").await?;
                    self.reload_after_plain_ddl().await;
                }
                Ok(completion)
            }
            _ => Err(Failure::new("XX000", "not a statement of two-phase commit")),
        }
    }

    async fn prepare_transaction(&mut self, name: &str) -> Result<Completion> {
        match self.txn.block {
            Block::Explicit => {}
            Block::Failed => {
                self.rollback().await;
                return Ok(Completion::tag("ROLLBACK"));
            }
            Block::None | Block::Implicit => {
                self.warn("25P01", "there is no transaction in progress");
                self.rollback().await;
                return Ok(Completion::tag("ROLLBACK"));
            }
        }
        let prepared = self.prepare_on_coordinator(name).await;
        self.cancel.set_committing(false);
        match &prepared {
            // Nothing is committed that anybody would have to hear of.
            Ok(_) => self.end_prepared_block().await,
            Err(_) => {
                // Those that have ended their part keep what was set; the coordinator's connection stays the session's.
                if self.txn.log.iter().any(LogItem::is_setting) {
                    let ended = self
                        .txn
                        .participants
                        .iter_mut()
                        .filter(|(group, p)| **group != COORDINATOR_GROUP && !p.in_block);
                    ended.for_each(|(_, participant)| participant.lease.poison());
                }
                self.rollback_participant(COORDINATOR_GROUP).await;
                self.restore_settings();
                self.set_back().await;
                self.rollback().await;
            }
        }
        prepared
    }

    async fn prepare_on_coordinator(&mut self, name: &str) -> Result<Completion> {
        check_name(name)?;
        self.check_none_ended()?;
        self.run_deferred().await?;
        let is_written = |(group, p): (&GroupId, &Participant)| *group != COORDINATOR_GROUP && p.wrote;
        let unfinished = match self.txn.participants.iter().any(is_written) {
            true => Some(self.prepare_workers_for(name).await?),
            false => None,
        };
        self.join(COORDINATOR_GROUP).await?;
        let deciding = self.txn.participants.get(&COORDINATOR_GROUP).and_then(|p| Process::of(&p.lease));
        let sql = format!("PREPARE TRANSACTION {}", quote_literal(name));
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await;
        let result = result.and_then(|end| was_done(&end.tag, "PREPARE TRANSACTION").map(|()| end.tag));
        let result = result.map_err(|failure| match &failure {
            Failure::Statement(fields) if fields.message() == THROUGH_FOREIGN_TABLES => Failure::refused(
                THROUGH_FOREIGN_TABLES,
            )
            .detail("The transaction has written rows of the coordinator's, and it has read distributed tables there.")
            .hint("Transactions over several servers are committed atomically by COMMIT."),
            _ => failure,
        });
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            // Also after an error: there is nothing left to be rolled back.
            participant.in_block &= participant.lease.status != b'I';
        }
        let mut failure = None;
        let event = match result {
            Ok(tag) => return Ok(Completion::Tag(tag)),
            Err(error) => self.event(COORDINATOR_GROUP, Err(error), &mut failure),
        };
        if let Some(unfinished) = unfinished {
            // Where its answer was lost it may be prepared: whoever ends it ends the rest, and it is asked until then.
            let committed = matches!(event, pgherd_txn::Event::Failed(_)).then_some(false);
            Unfinished { committed, deciding, ..unfinished }.finish(&self.thread.shared, ROLLBACK_WAIT).await;
        }
        Err(failure.unwrap_or_else(|| Failure::new("XX000", "PREPARE TRANSACTION failed")))
    }

    /// What was written on workers is prepared there, to end as the coordinator's transaction does, which notes where.
    async fn prepare_workers_for(&mut self, name: &str) -> Result<Unfinished> {
        if self.txn.holds {
            return Err(Failure::new("0A000", "cannot PREPARE a transaction that has created a cursor WITH HOLD"));
        }
        self.end_what_wrote_nothing().await?;
        self.join(COORDINATOR_GROUP).await?;
        let is_written =
            |(group, p): (&GroupId, &Participant)| (*group != COORDINATOR_GROUP && p.wrote).then_some(*group);
        let groups: Vec<GroupId> = self.txn.participants.iter().filter_map(is_written).collect();
        let notes = groups
            .iter()
            .map(|group| format!(", pg_catalog.pg_try_advisory_xact_lock_shared({PREPARED_KEY}, {group})"));
        let sql = format!("SELECT pg_catalog.pg_current_xact_id(){}", notes.collect::<String>());
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let number: u64 = found
            .text(0, 0)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Failure::new("XX000", "the coordinator's transaction has no number"))?;
        // A server that fails before it has written of the number gives it to another transaction.
        ask_on(&self.thread.shared, &self.db, COORDINATOR_GROUP, FLUSH).await?;
        let (unfinished, failure) = self.prepare_parts(number).await;
        match failure {
            None => {
                tracing::debug!("prepared on node groups {groups:?} as {name}");
                Ok(unfinished)
            }
            Some(failure) => {
                unfinished.finish(&self.thread.shared, ROLLBACK_WAIT).await;
                Err(failure)
            }
        }
    }

    /// The coordinator may have read and written through foreign tables, which PREPARE does not like: where it has no
    /// rows of its own to commit, that transaction ends, and another one is prepared.
    async fn end_what_wrote_nothing(&mut self) -> Result<()> {
        let may_end = |p: &Participant| p.in_block && !p.announces && !p.ends_last;
        let keeps = self.txn.listens || self.may_be_serializable() || !self.temp.is_empty();
        if keeps || !self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(may_end) {
            return Ok(());
        }
        let found = self.collect_on(COORDINATOR_GROUP, KEEPS_SOMETHING).await?;
        if found.text(0, 0) != Some("f") {
            return Ok(());
        }
        let end = self.collect_on(COORDINATOR_GROUP, "COMMIT").await?;
        was_done(&end.tag, "COMMIT")?;
        self.settle_settings_of(COORDINATOR_GROUP);
        let begin = self.txn.begin.as_str();
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.add_step(begin);
        }
        Ok(())
    }

    /// PREPARE TRANSACTION wherever workers have written, to end as the coordinator's transaction with this number
    /// does; what went wrong first, and then it is to be rolled back.
    pub(crate) async fn prepare_parts(&mut self, number: u64) -> (Unfinished, Option<Failure>) {
        let transaction = of_number(number);
        self.txn.settled = true;
        self.cancel.set_committing(true);
        let name = |group| Gid { decider: COORDINATOR_GROUP, transaction: transaction.clone(), participant: group };
        let processes: Vec<(GroupId, Option<Process>)> =
            self.txn.participants.iter().map(|(group, p)| (*group, Process::of(&p.lease))).collect();
        let writers =
            self.txn.participants.iter().filter(|(group, p)| **group != COORDINATOR_GROUP && p.in_block && p.wrote);
        let prepare = writers
            .map(|(group, _)| (*group, format!("PREPARE TRANSACTION {}", quote_literal(&name(*group).to_string()))))
            .collect();
        let (mut parts, mut failure) = (Vec::new(), None);
        for (group, result) in self.run_last(prepare).await {
            let result = result.and_then(|tag| was_done(&tag, "PREPARE TRANSACTION"));
            let process = processes.iter().find(|(of, _)| *of == group).and_then(|(_, process)| process.clone());
            match self.event(group, result, &mut failure) {
                pgherd_txn::Event::Failed(_) => {}
                pgherd_txn::Event::Lost(_) => parts.push(Part { group, lost: process }),
                _ => {
                    parts.push(Part { group, lost: None });
                    if let Some(participant) = self.txn.participants.get_mut(&group) {
                        participant.in_block = false;
                    }
                }
            }
        }
        let unfinished = Unfinished {
            database: self.db.clone(),
            transaction,
            decider: COORDINATOR_GROUP,
            committed: failure.is_some().then_some(false),
            deciding: None,
            parts,
        };
        (unfinished, failure)
    }

    /// COMMIT on workers that have only read.
    pub(crate) async fn end_readers(&mut self) {
        let readers =
            self.txn.participants.iter().filter(|(group, p)| **group != COORDINATOR_GROUP && p.in_block && !p.wrote);
        let end = readers.map(|(group, _)| (*group, "COMMIT".to_owned())).collect();
        self.run_last(end).await;
    }

    /// What workers have of a prepared transaction, to be ended once the coordinator has ended its own.
    async fn prepared_elsewhere(&mut self, name: &str) -> Result<Option<Unfinished>> {
        let sql = format!(
            "SELECT p.transaction, pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()), \
                 pg_catalog.string_agg(l.objid::pg_catalog.text, ' ') \
             FROM pg_catalog.pg_prepared_xacts p \
                 JOIN pg_catalog.pg_locks own ON own.locktype = 'transactionid' AND own.transactionid = p.transaction \
                     AND own.pid IS NULL AND own.granted \
                 JOIN pg_catalog.pg_locks l ON l.virtualtransaction = own.virtualtransaction AND l.pid IS NULL \
                     AND l.locktype = 'advisory' AND l.classid = {PREPARED_KEY} AND l.objsubid = 2 \
             WHERE p.gid = {} AND p.database = pg_catalog.current_database() GROUP BY 1",
            quote_literal(name)
        );
        let found = ask_on(&self.thread.shared, &self.db, COORDINATOR_GROUP, &sql).await?;
        let number = found.text(0, 0).and_then(|text| text.parse().ok());
        let next = found.text(0, 1).and_then(|text| text.parse().ok());
        let (Some(number), Some(next)) = (number, next) else { return Ok(None) };
        let groups = found.text(0, 2).unwrap_or_default().split(' ').filter_map(|group| group.parse().ok());
        Ok(Some(Unfinished {
            database: self.db.clone(),
            transaction: of_number(whole_number(number, next)),
            decider: COORDINATOR_GROUP,
            // The coordinator tells it by the number: the name may be another transaction's by then.
            committed: None,
            deciding: None,
            parts: groups.map(|group| Part { group, lost: None }).collect(),
        }))
    }

    /// What comes next sees what was written on workers.
    async fn await_end(&mut self, unfinished: Unfinished, commits: bool) {
        let reached = unfinished.finish(&self.thread.shared, self.commit_wait()).await;
        if commits && !reached.finished {
            let message = "the transaction is committed, but not carried out on all servers yet: until it is, what was \
                           written there cannot be seen, and its rows stay locked";
            self.warn("01000", message);
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with(&format!("{OWN_SCHEMA}_")) {
        return Err(Failure::new("42939", format!("transaction identifier \"{name}\" is reserved"))
            .detail(format!("The prefix \"{OWN_SCHEMA}_\" is for transactions over several servers.")));
    }
    Ok(())
}
