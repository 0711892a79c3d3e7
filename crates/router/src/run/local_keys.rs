//! Foreign keys of local tables that have rows already, to distributed tables. PostgreSQL would look for what the rows
//! refer to in the coordinator's heap, which is always empty: it is told NOT VALID, and the rows are looked at by a join
//! of the session's role, before the constraint is called valid.

use std::sync::Arc;

use pgherd_catalog::{COORDINATOR_GROUP, Oid, Table};
use pgherd_sql::{DdlInfo, Span};

use super::own::without_position;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal, quote_name};

/// Keys that an ALTER TABLE adds to a local table.
pub struct AddedKeys {
    relation: Oid,
    /// What is written in the statement's text instead, so that PostgreSQL does not look at the rows.
    pub unchecked: Vec<(Span, String)>,
    /// Those to distributed tables that are not valid before.
    before: Vec<Oid>,
}

impl Session {
    /// The foreign keys for whose rows the statement looks, where they lead to distributed tables. What VALIDATE
    /// CONSTRAINT names is looked at here: PostgreSQL finds it valid then. `inside`: in a function or DO block.
    pub(super) async fn keys_to_check(
        &mut self,
        text: &str,
        info: &DdlInfo,
        affected: &[Arc<Table>],
        inside: bool,
    ) -> Result<Option<AddedKeys>> {
        let validates = info.subcommands.iter().any(|subcommand| subcommand == "validate_constraint");
        let refers = text.to_ascii_lowercase().contains("references");
        if info.tag != "ALTER TABLE" || !(validates || refers) || self.catalog().by_oid.is_empty() {
            return Ok(None);
        }
        let Some(altered) = info.relations.first().or(info.objects.first()).cloned() else { return Ok(None) };
        let referenced = affected.iter().find(|table| !table.is_reference());
        if !validates && referenced.is_none() || self.distributed(&altered).await?.is_some() {
            return Ok(None);
        }
        let name = quote_name(altered.schema.as_deref(), &altered.name);
        let sql = format!("SELECT pg_catalog.to_regclass({})::pg_catalog.oid", quote_literal(&name));
        let Some(relation) = self.oids(&sql).await?.first().copied() else { return Ok(None) };
        let keys = pgherd_sql::checked_keys(text);
        if let Some(table) = referenced {
            let has_rows = match keys.added.is_empty() && keys.filled.is_empty() {
                true => false,
                false => !self.ask_coordinator(&format!("SELECT FROM {name} LIMIT 1")).await?.rows.is_empty(),
            };
            let refused = |detail: &str| {
                Failure::refused(format!(
                    "cannot create foreign key constraint: table \"{}\" is distributed and \"{}\" is not",
                    table.name, altered.name
                ))
                .detail(detail)
                .hint("Distribute the table first, or add the constraint NOT VALID.")
            };
            if table.is_partitioned || table.is_leaf {
                return Err(refused("The referenced table is partitioned."));
            }
            if has_rows && inside {
                return Err(refused("The rows that there are cannot be checked."));
            }
            if !has_rows && keys.validated.is_empty() {
                return Ok(None);
            }
        }
        let of_relation = format!(
            "SELECT k.oid FROM pg_catalog.pg_constraint k JOIN pgherd.local_keys l ON l.oid = k.oid \
             WHERE k.conrelid = {relation} AND NOT k.convalidated"
        );
        if !keys.validated.is_empty() {
            let names: Vec<String> = keys.validated.iter().map(|name| quote_literal(name)).collect();
            let sql = format!("{of_relation} AND k.conname IN ({})", names.join(", "));
            let found = self.oids(&sql).await?;
            if inside && !found.is_empty() {
                return Err(Failure::refused(
                    "cannot validate foreign key constraints to distributed tables from inside the coordinator",
                ));
            }
            if !found.is_empty() {
                self.open_implicit_block();
                self.join(COORDINATOR_GROUP).await?;
                self.mark_writer(COORDINATOR_GROUP);
                self.check_keys(&found).await?;
            }
        }
        let mut unchecked = Vec::new();
        for (name, at) in keys.added {
            if self.distributed(&name).await?.is_some_and(|table| !table.is_reference()) {
                unchecked.push((Span { start: at, end: at }, " NOT VALID".to_owned()));
            }
        }
        for (name, span, end, alone) in keys.filled {
            if self.distributed(&name).await?.is_some_and(|table| !table.is_reference()) {
                unchecked.push((span, String::new()));
                unchecked.push((Span { start: end, end }, format!("{alone} NOT VALID")));
            }
        }
        if unchecked.is_empty() {
            return Ok(None);
        }
        let before = self.oids(&of_relation).await?;
        Ok(Some(AddedKeys { relation, unchecked, before }))
    }

    /// The statement has run: the rows of what it has added.
    pub(super) async fn check_added_keys(&mut self, added: AddedKeys) -> Result<()> {
        let sql = format!(
            "SELECT k.oid FROM pg_catalog.pg_constraint k JOIN pgherd.local_keys l ON l.oid = k.oid \
             WHERE k.conrelid = {} AND NOT k.convalidated",
            added.relation
        );
        let mut keys = self.oids(&sql).await?;
        keys.retain(|key| !added.before.contains(key));
        self.check_keys(&keys).await
    }

    async fn oids(&mut self, sql: &str) -> Result<Vec<Oid>> {
        let found = self.ask_coordinator(sql).await?;
        Ok((0..found.rows.len()).filter_map(|row| found.text(row, 0)?.parse().ok()).collect())
    }

    /// Nobody changes what is referred to meanwhile, where the role may keep them from it.
    async fn check_keys(&mut self, keys: &[Oid]) -> Result<()> {
        for key in keys {
            let sql = format!(
                "SELECT l.confrelid FROM pgherd.local_keys l WHERE l.oid = {key} \
                 AND pg_catalog.has_table_privilege(l.confrelid, 'UPDATE, DELETE, TRUNCATE')"
            );
            let referenced =
                self.oids(&sql).await?.into_iter().find_map(|oid| self.catalog().by_oid.get(&oid).cloned());
            if let Some(table) = referenced {
                let name = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
                self.run_everywhere(&format!("LOCK TABLE {name} IN SHARE ROW EXCLUSIVE MODE")).await?;
            }
            self.run_quiet(COORDINATOR_GROUP, &format!("SELECT pgherd.check_key({key})")).await.map_err(own_context)?;
            self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.key_is_valid({key})")).await?;
        }
        Ok(())
    }
}

/// The statement is ours, and so is the place in it.
fn own_context(failure: Failure) -> Failure {
    match without_position(failure) {
        Failure::Statement(mut fields) => {
            fields.remove(b'W');
            Failure::Statement(fields)
        }
        other => other,
    }
}
