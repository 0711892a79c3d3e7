//! REPEATABLE READ and SERIALIZABLE: one PostgreSQL takes a transaction's snapshot with its first statement, whatever
//! that reads. Here each server takes its own, so all are asked for theirs at that moment, before the statement runs.
//! What commits on several servers between the first of them and the last may be seen on some and not on others.

use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_planner::Tier;
use pgherd_sql::StatementKind;

use crate::error::Result;
use crate::session::Session;
use crate::transaction::{Block, LogItem};

impl Session {
    /// The open block is the client's and keeps one snapshot, for which not every server has been asked yet.
    pub fn lacks_snapshots(&self) -> bool {
        self.txn.block == Block::Explicit && !self.txn.has_snapshots && self.is_repeatable_read() && {
            let catalog = self.catalog();
            let mut tables = catalog.all_tables();
            tables.any(|table| !table.is_reference())
        }
    }

    /// Whether the transaction is REPEATABLE READ or SERIALIZABLE: what was said last counts.
    fn is_repeatable_read(&self) -> bool {
        let said = self.txn.log.iter().rev().find_map(|item| match item {
            LogItem::Set { name, value, .. } if name == "transaction_isolation" => keeps(value, true),
            // One that is given belongs to one server: others are not asked.
            LogItem::Raw(sql) if sql.to_ascii_lowercase().contains("snapshot") => Some(false),
            LogItem::Raw(sql) => keeps(sql, false),
            _ => None,
        });
        let default = || self.settings.get("default_transaction_isolation").and_then(|value| keeps(value, true));
        said.or_else(|| keeps(&self.txn.begin, false)).or_else(default).unwrap_or(self.keeps_snapshots)
    }

    /// Before a planned statement. One that writes copies of a reference table locks them first, on every server: their
    /// snapshots are taken after that, or the copies would differ.
    pub(super) async fn take_snapshots_for(&mut self, tier: &Tier) -> Result<()> {
        match tier {
            Tier::Refuse(_) => Ok(()),
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
            K::Copy(info) if !info.from => self.take_snapshots().await,
            _ => Ok(()),
        }
    }

    async fn take_snapshots(&mut self) -> Result<()> {
        if !self.lacks_snapshots() {
            return Ok(());
        }
        let mut groups: Vec<GroupId> = vec![COORDINATOR_GROUP];
        groups.extend(self.catalog().worker_groups());
        for group in &groups {
            self.join(*group).await?;
        }
        let asked = groups.into_iter().map(|group| (group, "SELECT 1".to_owned())).collect();
        let mut outcome = Ok(());
        for (_, result) in self.run_parallel(asked).await {
            outcome = outcome.and(result.map(drop));
        }
        self.txn.has_snapshots = outcome.is_ok();
        outcome
    }
}

/// Whether a text names a level that keeps a snapshot. `alone`: it is the level's name; else it may name none.
fn keeps(text: &str, alone: bool) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    (alone || text.contains("isolation")).then(|| text.contains("repeatable") || text.contains("serializable"))
}

#[cfg(test)]
mod tests {
    use super::keeps;

    #[test]
    fn levels_are_read_where_they_are_named() {
        assert_eq!(keeps("BEGIN", false), None);
        assert_eq!(keeps("SET TRANSACTION READ ONLY", false), None);
        assert_eq!(keeps("BEGIN ISOLATION LEVEL\n  REPEATABLE  READ", false), Some(true));
        assert_eq!(keeps("start transaction read only, isolation level serializable", false), Some(true));
        assert_eq!(keeps("BEGIN ISOLATION LEVEL READ COMMITTED", false), Some(false));
        assert_eq!(keeps("'read committed'", true), Some(false));
        assert_eq!(keeps("serializable", true), Some(true));
    }
}
