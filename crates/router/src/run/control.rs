//! BEGIN, COMMIT, ROLLBACK and savepoints.

use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_sql::StatementKind;
use pgherd_wire::backend::{self, ErrorFields};

use super::{Call, Completion, keeps_snapshot};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::transaction::{Block, Chained, LogItem};

impl Session {
    pub(super) async fn run_transaction_control(
        &mut self,
        call: &Call<'_>,
        kind: &StatementKind,
    ) -> Result<Completion> {
        match kind {
            StatementKind::Begin(modes) => {
                let starts = call.prepared.text().get(..5).is_some_and(|word| word.eq_ignore_ascii_case("start"));
                let tag = if starts { "START TRANSACTION" } else { "BEGIN" };
                let is_open = self.txn.block == Block::Explicit;
                if is_open {
                    self.warn("25001", "there is already a transaction in progress");
                }
                if self.txn.block != Block::None && !modes.text.is_empty() {
                    let sql = format!("SET TRANSACTION {}", modes.text);
                    self.set_modes(call, &sql, modes.isolation.as_deref()).await?;
                }
                if !is_open {
                    let space = if modes.text.is_empty() { "" } else { " " };
                    self.begin(&format!("BEGIN{space}{}", modes.text));
                }
                Ok(Completion::tag(tag))
            }
            StatementKind::Commit { chain } => self.end(true, *chain).await,
            StatementKind::Rollback { chain } => self.end(false, *chain).await,
            StatementKind::Savepoint(name) => {
                self.need_block("SAVEPOINT")?;
                self.savepoint(name);
                Ok(Completion::tag("SAVEPOINT"))
            }
            StatementKind::Release(name) => {
                self.need_block("RELEASE SAVEPOINT")?;
                let released = self.release_savepoint(name).await;
                released.map_err(|failure| match failure.sqlstate() {
                    "3B001" => failure.in_routine("ReleaseSavepoint"),
                    _ => failure,
                })?;
                Ok(Completion::tag("RELEASE"))
            }
            StatementKind::RollbackTo(name) => {
                self.need_block("ROLLBACK TO SAVEPOINT")?;
                self.check_all_present()?;
                self.rollback_to_savepoint(name).await?;
                if self.txn.block == Block::Failed {
                    self.txn.block = Block::Explicit;
                }
                Ok(Completion::tag("ROLLBACK"))
            }
            _ => Err(Failure::new("XX000", "not a transaction statement")),
        }
    }

    fn need_block(&self, command: &str) -> Result<()> {
        if matches!(self.txn.block, Block::Explicit | Block::Failed) {
            Ok(())
        } else {
            let failure = Failure::new("25P01", format!("{command} can only be used in transaction blocks"));
            Err(match (&self.txn.block, command.split(' ').next()) {
                // Several statements of one Query.
                (Block::Implicit, Some("SAVEPOINT")) => failure.in_routine("DefineSavepoint"),
                (Block::Implicit, Some("RELEASE")) => failure.in_routine("ReleaseSavepoint"),
                (Block::Implicit, _) => failure.in_routine("RollbackToSavepoint"),
                _ => failure,
            })
        }
    }

    async fn end(&mut self, commit: bool, chain: bool) -> Result<Completion> {
        match self.txn.block {
            Block::None | Block::Implicit if chain => {
                let word = if commit { "COMMIT" } else { "ROLLBACK" };
                return Err(Failure::new("25P01", format!("{word} AND CHAIN can only be used in transaction blocks")));
            }
            Block::None | Block::Implicit => {
                let routine = if commit { "EndTransactionBlock" } else { "UserAbortTransactionBlock" };
                self.warn_in("25P01", "there is no transaction in progress", Some(routine));
            }
            _ => {}
        }
        let failed = self.txn.block == Block::Failed;
        let commits = commit && !failed;
        let chained = if chain { Some(self.chained(commits).await?) } else { None };
        if commits {
            self.commit().await?;
        } else {
            self.rollback().await;
        }
        if let Some(chained) = chained {
            self.begin(&chained.0);
            if let Some(keeps) = chained.1.iter().rev().find_map(|sql| keeps_snapshot(sql)) {
                self.txn.keeps_snapshot = Some(keeps);
            }
            for sql in &chained.1 {
                self.log(LogItem::Modes(sql.clone()));
            }
            self.txn.inherited = Some(chained);
        }
        Ok(Completion::tag(if commits { "COMMIT" } else { "ROLLBACK" }))
    }

    /// Modes of the transaction that AND CHAIN starts. The coordinator knows them all, if it takes part.
    async fn chained(&mut self, commits: bool) -> Result<Chained> {
        let takes_part = self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(|p| p.in_block);
        if !commits || !takes_part {
            return Ok(self.txn.chained(commits));
        }
        self.join(COORDINATOR_GROUP).await?;
        let sql = "SELECT pg_catalog.current_setting('transaction_isolation'), \
                   CASE pg_catalog.current_setting('transaction_read_only') WHEN 'on' THEN 'ONLY' ELSE 'WRITE' END, \
                   CASE pg_catalog.current_setting('transaction_deferrable') WHEN 'on' THEN '' ELSE 'NOT' END";
        let modes = self.collect_on(COORDINATOR_GROUP, sql).await?;
        let word = |column| modes.text(0, column).unwrap_or_default();
        Ok((format!("BEGIN ISOLATION LEVEL {} READ {} {} DEFERRABLE", word(0), word(1), word(2)), Vec::new()))
    }

    /// Whether the client is to hear of what is less than an error (`client_min_messages`).
    pub fn hears(&self, severity: &str) -> bool {
        const LEVELS: [&str; 9] =
            ["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];
        let rank = |level: &str| LEVELS.iter().position(|known| level.trim().eq_ignore_ascii_case(known));
        let least = self.in_force("client_min_messages").and_then(rank);
        least.is_none_or(|least| rank(severity).is_none_or(|rank| rank >= least))
    }

    /// A WARNING to the client.
    pub fn warn(&mut self, sqlstate: &str, message: &str) {
        self.warn_in(sqlstate, message, None);
    }

    /// The same by a routine of PostgreSQL's for transactions that the message does not tell.
    fn warn_in(&mut self, sqlstate: &str, message: &str, routine: Option<&str>) {
        if !self.hears("warning") {
            return;
        }
        let mut fields = ErrorFields::new("WARNING", sqlstate, message);
        if let Some(routine) = routine {
            fields.set(b'F', "xact.c");
            fields.set(b'L', "4080");
            fields.set(b'R', routine);
        }
        backend::write_notice(&mut self.client.out, &fields);
    }

    /// A NOTICE to the client.
    pub fn notice(&mut self, message: &str) {
        if !self.hears("notice") {
            return;
        }
        backend::write_notice(&mut self.client.out, &ErrorFields::new("NOTICE", "00000", message));
    }

    pub fn notice_with_hint(&mut self, message: &str, hint: &str) {
        if self.hears("notice") {
            let fields = ErrorFields::new("NOTICE", "00000", message).with(b'H', hint);
            backend::write_notice(&mut self.client.out, &fields);
        }
    }

    /// Other routers, and other sessions of this one, load the catalog when they hear of it.
    pub async fn announce_catalog_change(&mut self) -> Result<()> {
        if self.txn.changed_catalog && self.txn.participants.contains_key(&COORDINATOR_GROUP) {
            let sql = format!("SELECT pgherd.bump_epoch('{}')", self.txn.reach.name());
            let epoch = self.call_own(COORDINATOR_GROUP, &sql).await?;
            self.txn.epoch = epoch.parse().ok();
            self.mark_writer(COORDINATOR_GROUP);
        }
        Ok(())
    }
}
