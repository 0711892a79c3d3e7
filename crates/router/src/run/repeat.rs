//! Statements over several servers take their locks on all of them at the same time: two that one PostgreSQL would have
//! wait for each other in turn can each hold what the other one waits for. Nobody is told of such a deadlock where
//! the statement is the first of its transaction and the client has seen nothing of it: it is rolled back, and run
//! again. From then on and for a while, statements that lock rows of that table go from worker to worker, in one order.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pgherd_catalog::Oid;
use pgherd_sql::StatementKind;
use pgherd_sql::ast::Tree;

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::transaction::Block;

/// How long statements take a table's workers in turn after a deadlock.
const IN_TURN: Duration = Duration::from_secs(60);
/// A statement that meets this many deadlocks ends with the last.
const REPEATS_MAX: usize = 50;
/// Volatile built-in functions that leave nothing behind, or only what a rollback takes back.
const REPEATED: [&str; 7] = [
    "clock_timestamp",
    "gen_random_uuid",
    "nextval",
    "pg_advisory_xact_lock",
    "pg_advisory_xact_lock_shared",
    "random",
    "timeofday",
];
/// How built-in functions are called that write on the coordinator, or run what may.
const WRITING: [&str; 14] = [
    "lo_creat",
    "lo_from_bytea",
    "lo_import",
    "lo_put",
    "lo_truncate",
    "lo_unlink",
    "lowrite",
    "pg_import_system_collations",
    "pg_logical_emit_message",
    "pg_replication_origin",
    "pg_restore_",
    "pg_clear_",
    "query_to_xml",
    "ts_stat",
];
const DETAIL: &str = "Transactions on several servers wait for each other.";

/// Tables whose workers are locked one after another, by database: until when.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<(String, Oid), Instant>>);

impl Turns {
    fn take(&self, database: &str, table: Oid) {
        let now = Instant::now();
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, until| *until > now);
        turns.insert((database.to_owned(), table), now + IN_TURN);
    }

    fn are_taken(&self, database: &str, table: Oid) -> bool {
        let turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Most of the time there are none.
        !turns.is_empty() && turns.get(&(database.to_owned(), table)).is_some_and(|until| *until > Instant::now())
    }
}

/// Where a statement began that can be run again.
pub(super) struct Start {
    /// What the client had been sent.
    mark: (u64, usize),
    block: Block,
    /// The length of the transaction's log.
    log: usize,
    repeats: usize,
}

/// The price of a deadlock over several servers.
pub fn deadlock() -> Failure {
    Failure::new("40P01", "deadlock detected").detail(DETAIL).hint("Repeat the transaction.")
}

fn is_deadlock(failure: &Failure) -> bool {
    let Failure::Statement(fields) = failure else { return false };
    fields.sqlstate() == "40P01" && fields.get(b'D') == Some(DETAIL)
}

/// All that it does is done in its transaction: a rollback takes it back.
fn is_taken_back(kind: &StatementKind) -> bool {
    use StatementKind as K;
    match kind {
        K::Select | K::Insert | K::Update | K::Delete | K::Merge | K::Truncate { .. } | K::Lock { .. } => true,
        // CONCURRENTLY is several transactions.
        K::Ddl(info) => !info.concurrently && matches!(info.object, "table" | "index" | "trigger" | "policy" | "rule"),
        // EXECUTE runs a statement that begins by itself.
        _ => false,
    }
}

impl Session {
    /// Where a statement begins that can be run again: it is the first of its transaction.
    pub(super) fn start_of(&mut self, call: &Call<'_>, kind: &StatementKind) -> Option<Start> {
        let can = self.txn.is_untouched()
            && self.client.capture.is_none()
            // What the session's own connection says of other things (NOTIFY) is said once.
            && !self.pin
            && self.pinned.is_none()
            && is_taken_back(kind)
            && !self.calls_user_function(call)
            && !self.calls_what_stays(call)
            && call.prepared.statement.as_ref().is_some_and(|s| pgherd_sql::own_calls(s).is_empty());
        if !can {
            return None;
        }
        self.cancel.begin_repeatable();
        Some(Start { mark: self.client.mark(), block: self.txn.block, log: self.txn.log.len(), repeats: 0 })
    }

    /// A built-in function is called whose effect outlives a rollback, as that of `pg_advisory_lock` does.
    fn calls_what_stays(&self, call: &Call<'_>) -> bool {
        let catalog = self.catalog();
        calls(call, |name| catalog.volatile_functions.contains(name) && !REPEATED.contains(&name))
    }

    /// After a statement: whether it is run again, as if it had not been run.
    pub(super) async fn begins_again(&mut self, start: &mut Start, result: &Result<Completion>) -> bool {
        let unseen = self.client.mark().0 == start.mark.0;
        start.repeats += 1;
        if !result.as_ref().is_err_and(is_deadlock) || !unseen || start.repeats > REPEATS_MAX {
            return false;
        }
        self.cancel.end_repeatable().await;
        match (start.block, self.txn.block) {
            (Block::None, Block::Implicit) => self.rollback().await,
            (Block::None, Block::None) => self.release_autocommit().await,
            (before, now) if before == now => self.restart_block(start.log).await,
            _ => return false,
        }
        self.client.out.truncate(start.mark.1);
        self.cancel.begin_repeatable();
        true
    }

    /// Whether a statement that locks rows on several workers goes from one to the next.
    pub(super) fn goes_in_turn(&self, call: &Call<'_>, writes: bool, table: Oid) -> bool {
        let locks = |tree: &Tree| matches!(tree, Tree::Query(query) if query.locks_rows());
        (writes || call.prepared.statement.as_ref().is_some_and(|s| locks(&s.tree)))
            && self.thread.shared.turns.are_taken(&self.db.name, table)
    }

    /// After an error of a statement on several workers.
    pub(super) fn note_deadlock(&self, failure: &Failure, table: Oid) {
        if is_deadlock(failure) {
            self.thread.shared.turns.take(&self.db.name, table);
        }
    }
}

fn calls(call: &Call<'_>, which: impl Fn(&str) -> bool) -> bool {
    call.prepared.statement.as_ref().is_some_and(|s| s.calls.iter().any(|(_, name)| which(name)))
}

/// A built-in function is called that writes, as `lo_unlink` does.
pub(super) fn calls_what_writes(call: &Call<'_>) -> bool {
    calls(call, |name| WRITING.iter().any(|begin| name.starts_with(begin)))
}

/// On the coordinator others may have to wait for what a statement locks.
pub(super) fn locks(call: &Call<'_>) -> bool {
    call.prepared.statement.as_ref().is_some_and(|s| s.locks_rows)
        || calls(call, |name| name.starts_with("pg_advisory_") || name.starts_with("pg_try_advisory_"))
}

pub(super) fn announces(call: &Call<'_>) -> bool {
    calls(call, |name| name == "pg_notify")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_those_of_one_table_of_one_database() {
        let turns = Turns::default();
        assert!(!turns.are_taken("a", 1));
        turns.take("a", 1);
        assert!(turns.are_taken("a", 1) && !turns.are_taken("a", 2) && !turns.are_taken("b", 1));
    }

    #[test]
    fn what_a_rollback_does_not_take_back_is_not_repeated() {
        let is_taken_back = |sql: &str| is_taken_back(&pgherd_sql::split(sql).expect("it is SQL")[0].kind);
        for sql in ["SELECT 1", "DELETE FROM t", "CREATE INDEX ON t (v)", "TRUNCATE t", "LOCK TABLE t"] {
            assert!(is_taken_back(sql), "{sql}");
        }
        for sql in [
            "CREATE INDEX CONCURRENTLY ON t (v)",
            "ALTER TABLE t DETACH PARTITION u CONCURRENTLY",
            "CREATE ROLE r",
            "EXECUTE p",
            "COPY t FROM STDIN",
            "CALL p()",
            "VACUUM t",
        ] {
            assert!(!is_taken_back(sql), "{sql}");
        }
    }

    #[test]
    fn only_our_own_deadlocks_are_taken_for_such() {
        assert!(is_deadlock(&deadlock()));
        assert!(!is_deadlock(&Failure::new("40P01", "deadlock detected").detail("Process 1 waits for 2.")));
    }
}
