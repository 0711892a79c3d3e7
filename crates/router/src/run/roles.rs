//! Roles, memberships and settings that SQL inside the coordinator makes (DO blocks, functions). They have no event
//! triggers; the coordinator counts what a transaction changes of them (`pgherd.changes_roles`), and workers are
//! brought from what was committed to what the transaction sees.

use std::collections::BTreeSet;

use pgherd_backend::connect;
use pgherd_catalog::COORDINATOR_GROUP;

use crate::error::{Failure, Result};
use crate::session::Session;

/// With passwords, asked by the router's own account.
const COMMITTED: &str = "SELECT pgherd.roles_now(pgherd.make_pass('roles', ''))";
const WITHOUT_PASSWORDS: &str = "SELECT pgherd.roles_now()";
const ISOLATION: &str = "SELECT pg_catalog.current_setting('transaction_isolation')";

impl Session {
    /// Has the workers' roles follow those that the coordinator has in this transaction.
    pub(super) async fn follow_roles(&mut self) -> Result<()> {
        if self.catalog().worker_groups().is_empty() {
            return Ok(());
        }
        // Passwords come when the statement has ended: what is asked inside may show in contexts of errors.
        let inside = self.definitions.is_asked();
        let before = self.ask_of_roles(if inside { WITHOUT_PASSWORDS } else { COMMITTED }).await?;
        let now = match inside {
            true => {
                let found = self.collect_on(COORDINATOR_GROUP, WITHOUT_PASSWORDS).await?;
                found.text(0, 0).unwrap_or_default().to_owned()
            }
            false => self.roles_with_passwords().await?,
        };
        if before == now && self.txn.roles_made.is_empty() {
            return Ok(());
        }
        // What others have committed since would look as if it were changed back.
        let isolation = self.collect_on(COORDINATOR_GROUP, ISOLATION).await?;
        if !isolation.text(0, 0).is_some_and(|level| level.starts_with("read ")) {
            return Err(Failure::refused("cannot change roles from inside the coordinator in this transaction")
                .detail("Its isolation level is not READ COMMITTED.")
                .hint("Send it as a statement of its own through the router."));
        }
        self.mark_writer(COORDINATOR_GROUP);
        self.bring_roles(&before, &now).await
    }

    /// The roles before a procedure that ends transactions itself.
    pub(super) async fn committed_roles(&mut self) -> Result<String> {
        self.ask_of_roles(COMMITTED).await
    }

    /// What such a procedure has committed of roles is followed when it has ended, in a transaction of its own.
    pub(super) async fn follow_committed_roles(&mut self, before: &str) -> Result<()> {
        let now = self.committed_roles().await?;
        if before == now {
            return Ok(());
        }
        self.open_implicit_block();
        self.bring_roles(before, &now).await
    }

    /// REASSIGN OWNED has no event triggers either: workers have not heard of it.
    pub(super) async fn check_owners(&mut self) -> Result<()> {
        let catalog = self.catalog();
        let known: Vec<String> = catalog.owners.iter().map(|(table, owner)| format!("({table}, {owner})")).collect();
        if known.is_empty() || !self.txn.participants.contains_key(&COORDINATOR_GROUP) {
            return Ok(());
        }
        let sql = format!(
            "SELECT c.relname FROM pg_catalog.pg_class c JOIN (VALUES {}) known (relation, owner) \
             ON c.oid = known.relation AND c.relowner <> known.owner ORDER BY c.oid LIMIT 1",
            known.join(", ")
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let Some(table) = found.text(0, 0) else { return Ok(()) };
        let what = "REASSIGN OWNED";
        Err(Failure::refused(format!("cannot carry out {what} from inside the coordinator"))
            .detail(format!("It concerns distributed table \"{table}\"."))
            .hint("Send it as a statement of its own through the router."))
    }

    async fn ask_of_roles(&self, sql: &str) -> Result<String> {
        let mut own = connect(&self.thread.shared.own_target(&self.db.name)).await?;
        let found = own.query(sql).await;
        own.close().await;
        Ok(found?.text(0, 0).unwrap_or_default().to_owned())
    }

    async fn bring_roles(&mut self, before: &str, now: &str) -> Result<()> {
        let made: Vec<String> = self.txn.roles_made.iter().map(|name| quote_element(name)).collect();
        let made = format!("{{{}}}", made.join(","));
        for group in self.catalog().worker_groups() {
            self.join(group).await?;
            self.mark_writer(group);
            let new = self.run_follow_roles(group, before, now, &made).await?;
            self.txn.roles_made.extend(new);
        }
        self.txn.changed_defaults = true;
        Ok(())
    }
}

/// What a statement's bodies may have changed on the coordinator without an event trigger's telling.
pub(crate) struct Untold {
    pub roles: bool,
    /// Of any objects.
    pub owners: bool,
}

/// Names of roles that a transaction has made on workers.
pub type RolesMade = BTreeSet<String>;

/// An element of an array as text.
fn quote_element(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}
