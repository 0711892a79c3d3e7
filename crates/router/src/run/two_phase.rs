//! PREPARE TRANSACTION by a client, for transactions that wrote on the coordinator alone: it keeps them under the
//! client's name, and COMMIT PREPARED is its own. Names that begin with ours belong to `recovery.rs`, which leaves all
//! others alone.

use pgherd_catalog::{COORDINATOR_GROUP, OWN_SCHEMA};
use pgherd_sql::StatementKind;

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;
use crate::transaction::Block;

impl Session {
    pub(super) async fn run_two_phase(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        match kind {
            StatementKind::PrepareTransaction(name) => self.prepare_transaction(name).await,
            StatementKind::CommitPrepared(name) | StatementKind::RollbackPrepared(name) => {
                check_name(name)?;
                let completion = self.run_on_coordinator(call, call.prepared.text(), true).await?;
                if matches!(kind, StatementKind::CommitPrepared(_)) {
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
        match &prepared {
            // Nothing is committed that anybody would have to hear of.
            Ok(_) => self.end_prepared_block().await,
            Err(_) => self.rollback().await,
        }
        prepared
    }

    async fn prepare_on_coordinator(&mut self, name: &str) -> Result<Completion> {
        check_name(name)?;
        let elsewhere = self.txn.participants.iter().find(|(group, p)| **group != COORDINATOR_GROUP && p.wrote);
        if let Some((group, _)) = elsewhere {
            return Err(Failure::refused("PREPARE TRANSACTION of what was written on workers is not supported")
                .detail(format!("The transaction has written on node group {group}."))
                .hint("Transactions over several servers are committed atomically by COMMIT."));
        }
        self.join(COORDINATOR_GROUP).await?;
        let sql = format!("PREPARE TRANSACTION {}", quote_literal(name));
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            // Also after an error: there is nothing left to be rolled back.
            participant.in_block &= participant.lease.status != b'I';
        }
        Ok(Completion::Tag(result?.tag))
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with(&format!("{OWN_SCHEMA}_")) {
        return Err(Failure::new("42939", format!("transaction identifier \"{name}\" is reserved"))
            .detail(format!("The prefix \"{OWN_SCHEMA}_\" is for transactions over several servers.")));
    }
    Ok(())
}
