//! Roles, memberships and settings that SQL inside the coordinator makes (DO blocks, functions). They have no event
//! triggers; the coordinator counts what a transaction changes of them (`pgherd.changes_roles`), and workers are
//! brought from what was committed to what the transaction sees.

use std::collections::BTreeSet;

use pgherd_backend::connect;
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_wire::scram::ScramVerifier;

use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_element, quote_ident, quote_literal};

/// With passwords, asked by the router's own account.
const COMMITTED: &str = "SELECT pgherd.roles_now(pgherd.make_pass('roles', ''))";
const WITHOUT_PASSWORDS: &str = "SELECT pgherd.roles_now()";
const PASSWORDS: &str = "SELECT rolname, rolpassword FROM pg_catalog.pg_authid WHERE rolname !~ '^pg_'";
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

    /// After a statement that gives a role a password: the workers have the coordinator's verifier of it, by which the
    /// router logs in for the role.
    pub(super) async fn follow_passwords(&mut self, text: &str) -> Result<()> {
        self.keep_sessions(text).await?;
        let groups = self.catalog().worker_groups();
        if groups.is_empty() {
            return Ok(());
        }
        let before = self.ask_of_roles(COMMITTED).await?;
        let now = self.roles_with_passwords().await?;
        // Of these alone: what others have done to roles meanwhile is theirs to follow.
        for group in groups {
            self.join(group).await?;
            self.mark_writer(group);
            self.run_follow_passwords(group, &before, &now).await?;
        }
        Ok(())
    }

    /// Sessions of the role that are open log in to servers with the new password from now on.
    async fn keep_sessions(&mut self, text: &str) -> Result<()> {
        let Some((role, password)) = pgherd_sql::role_password(text) else { return Ok(()) };
        let role = role.unwrap_or_else(|| self.user.clone());
        let verifier = format!("SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = {}", quote_literal(&role));
        let verifier = self.call_own(COORDINATOR_GROUP, &verifier).await?;
        if let Some(keys) = ScramVerifier::parse(&verifier).and_then(|verifier| verifier.keys_of(&password)) {
            self.thread.shared.remember_keys(&role, &keys);
        }
        Ok(())
    }

    /// A worker does not let the session's role in. Its roles are made as the coordinator's are, their passwords too.
    pub(crate) async fn mend_roles(&mut self, group: GroupId) -> Result<()> {
        let shared = &self.thread.shared;
        let mut own = connect(&shared.own_target(&self.db.name)).await?;
        let known = own.query(PASSWORDS).await;
        own.close().await;
        let known = known?;
        let target = shared.own_target_in(&self.catalog(), group, &self.db.name);
        let roles = self.roles_ddl().await?;
        let mut there = connect(&target).await?;
        let mut sql = String::from("BEGIN; SET LOCAL client_min_messages = warning;");
        for role in roles {
            sql.push_str(&role);
            sql.push(';');
        }
        for row in 0..known.rows.len() {
            let name = known.text(row, 0).unwrap_or_default();
            // The router's own may differ.
            if name != target.user {
                let password = known.text(row, 1).map_or_else(|| "NULL".to_owned(), quote_literal);
                let alter = format!("ALTER ROLE {} PASSWORD {password}", quote_ident(name));
                sql.push_str(&format!(
                    "DO $pgherd$ BEGIN IF (SELECT rolpassword IS DISTINCT FROM {password} FROM pg_catalog.pg_authid \
                     WHERE rolname = {}) THEN EXECUTE {}; END IF; END $pgherd$;",
                    quote_literal(name),
                    quote_literal(&alter)
                ));
            }
        }
        sql.push_str("COMMIT");
        let mended = there.query(&sql).await;
        there.close().await;
        Ok(mended.map(drop)?)
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
