//! REPEATABLE READ and SERIALIZABLE: one PostgreSQL takes a transaction's snapshot with its first statement, whatever
//! that reads. Here each server takes its own, so all are asked for theirs at that moment, and have answered before the
//! client hears of the statement. What commits on several servers between the first of them and the last may be seen on
//! some and not on others.

use std::collections::BTreeMap;

use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_planner::{Plan, Tier};
use pgherd_sql::{Name, Splice, Statement, StatementKind};

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;
use crate::shared::Exported;
use crate::transaction::{Block, LogItem};

const DEFAULT: &str = "default_transaction_isolation";

impl Session {
    /// The open block is the client's and keeps one snapshot, for which not every server has been asked yet.
    pub fn lacks_snapshots(&self) -> bool {
        self.txn.block == Block::Explicit && !self.txn.has_snapshots && self.keeps_one_snapshot() && {
            let catalog = self.catalog();
            let mut tables = catalog.all_tables();
            tables.any(|table| !table.is_reference())
        }
    }

    /// Whether the transaction is REPEATABLE READ or SERIALIZABLE.
    pub fn keeps_one_snapshot(&self) -> bool {
        self.txn.keeps_snapshot.unwrap_or_else(|| {
            // What SET changes of the default since is for the next one.
            let settings = self.txn.settings_before.as_ref().unwrap_or(&self.settings);
            let default = settings.get(DEFAULT);
            let kept = default.and_then(|value| keeps_snapshot(value));
            kept.unwrap_or_else(|| self.initial.get(DEFAULT).is_some_and(|level| !level.starts_with("read ")))
        })
    }

    /// Whether it may be SERIALIZABLE: COMMIT may fail then of who has only read.
    pub fn may_be_serializable(&self) -> bool {
        let settings = self.txn.settings_before.as_ref().unwrap_or(&self.settings);
        let default = settings.get(DEFAULT).map(String::as_str).or_else(|| self.initial.get(DEFAULT));
        let modes = self.txn.log.iter().filter_map(|item| match item {
            LogItem::Modes(sql) => Some(sql.as_str()),
            _ => None,
        });
        let mut texts = modes.chain([self.txn.begin.as_str()]).chain(default);
        self.keeps_one_snapshot() && texts.any(|text| text.to_ascii_lowercase().contains("serializable"))
    }

    /// Before a planned statement. One that writes copies of a reference table, or locks rows of them, locks the copies
    /// first: snapshots are taken after that, or the copies would differ. One that a single worker runs is sent while
    /// the others take theirs.
    pub(super) async fn take_snapshots_for(&mut self, plan: &Plan) -> Result<()> {
        match &plan.tier {
            _ if !plan.locked_copies.is_empty() => Ok(()),
            Tier::Refuse(_) | Tier::Route(_) => Ok(()),
            Tier::ReplicateWrite { .. } | Tier::ReplicateRows { .. } => Ok(()),
            Tier::Federate { copies, .. } if !copies.is_empty() => Ok(()),
            _ => self.take_snapshots().await,
        }
    }

    /// Before a statement of another kind, where it reads.
    pub(super) async fn take_snapshots_before(&mut self, kind: &StatementKind) -> Result<()> {
        use StatementKind as K;
        match kind {
            K::Call | K::Do { .. } | K::DeclareCursor { .. } | K::Explain { .. } => self.take_snapshots().await,
            K::CreateTableAs(_) | K::SelectInto | K::RefreshMatView { .. } => self.take_snapshots().await,
            K::Ddl(_) | K::CreateTable(_) => self.take_snapshots().await,
            // Of a reference table the copies are locked first.
            K::Copy(info) if info.from && self.is_reference_named(info.relation.as_ref()) => Ok(()),
            K::Copy(_) => self.take_snapshots().await,
            _ => Ok(()),
        }
    }

    fn is_reference_named(&self, name: Option<&Name>) -> bool {
        let catalog = self.catalog();
        let mut tables = catalog.all_tables();
        // In whatever schema.
        name.is_some_and(|name| tables.any(|table| table.is_reference() && table.name == name.name))
    }

    /// What moves rows between servers must see all that are there once it has its locks.
    pub(super) fn check_moves_rows(&mut self, function: &str) -> Result<()> {
        if self.txn.block == Block::Explicit {
            return match self.keeps_one_snapshot() {
                true => {
                    Err(Failure::refused(format!("cannot run {function}() in a transaction that keeps one snapshot"))
                        .detail("It would leave behind what others have committed since.")
                        .hint("Run it in READ COMMITTED."))
                }
                false => Ok(()),
            };
        }
        if self.txn.is_untouched() {
            self.txn.begin = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
        }
        Ok(())
    }

    pub(super) async fn take_snapshots(&mut self) -> Result<()> {
        self.ask_for_snapshots(None).await?;
        self.await_snapshots().await
    }

    /// Asks all servers but the one that is about to take its own with a statement. [`await_snapshots`] is to follow.
    ///
    /// [`await_snapshots`]: Self::await_snapshots
    pub(super) async fn ask_for_snapshots(&mut self, except: Option<GroupId>) -> Result<()> {
        if !self.lacks_snapshots() {
            return Ok(());
        }
        let mut groups: Vec<GroupId> = vec![COORDINATOR_GROUP];
        groups.extend(self.catalog().worker_groups());
        groups.retain(|group| Some(*group) != except);
        let mut asked = Vec::new();
        for group in groups {
            asked.push((group, !self.txn.participants.contains_key(&group)));
            self.join(group).await?;
        }
        for (group, is_new) in asked {
            let Some(participant) = self.txn.participants.get_mut(&group) else { continue };
            participant.lease.send_query("SELECT 1");
            // What could not be sent is found when the answer is read.
            let _ = participant.lease.flush().await;
            self.txn.snapshots_asked.push((group, is_new));
        }
        Ok(())
    }

    /// `SELECT pg_export_snapshot()`, by which pg_dump has other sessions see what this one sees.
    pub(super) fn exports_snapshot(&self, call: &Call<'_>) -> bool {
        const CALL: &str = "pg_export_snapshot()";
        let is_called = |statement: &Statement| {
            let text: String = statement.text.to_ascii_lowercase().split_whitespace().collect();
            let called = text.strip_prefix("select").map(|rest| rest.strip_prefix("pg_catalog.").unwrap_or(rest));
            called == Some(CALL)
        };
        let exports = |s: &Statement| s.calls.iter().any(|(_, name)| name == "pg_export_snapshot") && is_called(s);
        self.txn.block == Block::Explicit
            && call.prepared.statement.as_ref().is_some_and(exports)
            && !self.catalog().by_oid.is_empty()
    }

    /// Each server exports its own. They are known by the coordinator's, for as long as this transaction.
    pub(super) async fn export_snapshots(&mut self, call: &Call<'_>) -> Result<Completion> {
        self.take_snapshots().await?;
        let mut ids = BTreeMap::new();
        for group in std::iter::once(COORDINATOR_GROUP).chain(self.catalog().worker_groups()) {
            self.join(group).await?;
            let found = self.collect_on(group, "SELECT pg_catalog.pg_export_snapshot()").await?;
            ids.insert(group, found.text(0, 0).unwrap_or_default().to_owned());
        }
        let id = ids.get(&COORDINATOR_GROUP).cloned().unwrap_or_default();
        let exported = Exported::new(self.thread.shared.clone(), &id, ids);
        self.txn.exported.push(exported);
        let text = format!("SELECT {}::pg_catalog.text AS pg_export_snapshot", quote_literal(&id));
        self.run_coordinator_plan(call, &Splice::verbatim(&text, 0), false, false).await
    }

    /// Reads the answers of those who were asked.
    pub(super) async fn await_snapshots(&mut self) -> Result<()> {
        let asked = std::mem::take(&mut self.txn.snapshots_asked);
        if asked.is_empty() {
            return Ok(());
        }
        let mut outcome = Ok(());
        for (group, is_new) in asked {
            // What another statement has asked it before may be open there.
            let untouched = is_new && self.txn.participants.get(&group).is_some_and(|p| !p.wrote);
            let result = self.collect_started(group).await;
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                participant.only_snapshot = untouched && result.is_ok();
            }
            outcome = outcome.and(result.map(drop));
            if matches!(outcome, Err(Failure::ClientGone)) {
                break;
            }
        }
        self.txn.has_snapshots = outcome.is_ok();
        outcome
    }
}

/// Whether the level that a text names keeps one snapshot for a whole transaction; none: it names no level.
pub fn keeps_snapshot(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let keeps = text.contains("repeatable") || text.contains("serializable");
    (keeps || text.contains("committed")).then_some(keeps)
}

#[cfg(test)]
mod tests {
    use super::keeps_snapshot;

    #[test]
    fn levels_are_read_where_they_are_named() {
        assert_eq!(keeps_snapshot("BEGIN"), None);
        assert_eq!(keeps_snapshot("BEGIN READ ONLY"), None);
        assert_eq!(keeps_snapshot("BEGIN ISOLATION LEVEL\n  REPEATABLE  READ"), Some(true));
        assert_eq!(keeps_snapshot("BEGIN read only, isolation level serializable"), Some(true));
        assert_eq!(keeps_snapshot("BEGIN ISOLATION LEVEL READ COMMITTED"), Some(false));
        assert_eq!(keeps_snapshot("read uncommitted"), Some(false));
        assert_eq!(keeps_snapshot("'serializable'"), Some(true));
    }
}
