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
use crate::transaction::Block;

/// Keys of a local table that an ALTER TABLE adds, or makes anew with a column's type.
pub struct AddedKeys {
    relation: Oid,
    /// What is written in the statement's text instead, so that PostgreSQL does not look at the rows.
    pub unchecked: Vec<(Span, String)>,
    /// Those to distributed tables that are not valid before, by name, and are not to be called so.
    before: Vec<String>,
}

/// PostgreSQL would have the key of each partition, and foreign children have no indexes.
pub(super) fn key_to_partitioned(table: &Table) -> Failure {
    Failure::refused(format!(
        "cannot create foreign key constraint to partitioned distributed table \"{}\"",
        table.name
    ))
    .hint("Reference a table that is not partitioned.")
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
        let does = |what: &str| info.subcommands.iter().any(|subcommand| subcommand == what);
        let validates = does("validate_constraint");
        let retypes = does("alter_column_type") || does("set_expression");
        let refers = text.to_ascii_lowercase().contains("references");
        if info.tag != "ALTER TABLE" || !(validates || retypes || refers) || self.catalog().by_oid.is_empty() {
            return Ok(None);
        }
        let Some(altered) = info.relations.first().or(info.objects.first()).cloned() else { return Ok(None) };
        let referenced = affected.iter().find(|table| !table.is_reference());
        let may_add = refers && referenced.is_some();
        let is_split = |table: &&Arc<Table>| !table.is_reference() && (table.is_partitioned || table.is_leaf);
        if refers && affected.iter().any(|table| is_split(&table)) {
            let keys = pgherd_sql::checked_keys(text);
            let filled = keys.filled.into_iter().map(|key| key.referenced);
            for name in keys.added.into_iter().map(|(name, _)| name).chain(filled) {
                if let Some(table) = self.distributed(&name).await?.filter(|table| is_split(&table)) {
                    return Err(key_to_partitioned(&table));
                }
            }
        }
        if !(validates || retypes || may_add) || self.distributed(&altered).await?.is_some() {
            return Ok(None);
        }
        let name = quote_name(altered.schema.as_deref(), &altered.name);
        let sql = format!(
            "SELECT c.oid, c.relkind FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass({}) \
             AND c.relkind IN ('r', 'p')",
            quote_literal(&name)
        );
        let found = self.ask_coordinator(&sql).await?;
        let Some(relation) = found.text(0, 0).and_then(|oid| oid.parse::<Oid>().ok()) else { return Ok(None) };
        let is_partitioned = found.text(0, 1) == Some("p");
        let keys = pgherd_sql::checked_keys(text);
        let has_rows = !self.ask_coordinator(&format!("SELECT FROM {name} LIMIT 1")).await?.rows.is_empty();
        if let Some(table) = referenced.filter(|_| !keys.added.is_empty() || !keys.filled.is_empty()) {
            let refused = |detail: &str| {
                Failure::refused(format!(
                    "cannot create foreign key constraint: table \"{}\" is distributed and \"{}\" is not",
                    table.name, altered.name
                ))
                .detail(detail)
                .hint("Distribute the table first, or add the constraint NOT VALID.")
            };
            if has_rows && is_partitioned {
                return Err(refused("The referencing table is partitioned."));
            }
            if has_rows && inside {
                return Err(refused("The rows that there are cannot be checked."));
            }
        }
        let invalid = self.keys_of(relation, false, &[]).await?;
        let named = |(_, name): &&(Oid, String)| keys.validated.contains(name);
        let validated: Vec<Oid> = invalid.iter().filter(named).map(|(oid, _)| *oid).collect();
        if !validated.is_empty() {
            if inside {
                return Err(Failure::refused(
                    "cannot validate foreign key constraints to distributed tables from inside the coordinator",
                ));
            }
            self.begin_checks().await?;
            self.check_keys(&validated).await?;
        }
        if !has_rows {
            return Ok(None);
        }
        let mut unchecked = Vec::new();
        for (name, at) in keys.added {
            if self.distributed(&name).await?.is_some_and(|table| !table.is_reference()) {
                unchecked.push((Span { start: at, end: at }, " NOT VALID".to_owned()));
            }
        }
        for key in keys.filled {
            let leads_away = self.distributed(&key.referenced).await?.is_some_and(|table| !table.is_reference());
            if leads_away && !(key.if_not_exists && self.has_column(relation, &key.column).await?) {
                unchecked.push((key.written, String::new()));
                unchecked.push((Span { start: key.end, end: key.end }, format!("{} NOT VALID", key.alone)));
            }
        }
        // PostgreSQL makes the keys of a column of another type anew, valid as they were.
        let valid = match inside || keys.retyped.is_empty() {
            true => Vec::new(),
            false => self.keys_of(relation, true, &keys.retyped).await?,
        };
        if unchecked.is_empty() && valid.is_empty() {
            return Ok(None);
        }
        self.begin_checks().await?;
        for (key, _) in valid {
            self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.key_is_valid({key}, false)")).await?;
        }
        let stay = invalid.into_iter().filter(|(oid, _)| !validated.contains(oid)).map(|(_, name)| name);
        Ok(Some(AddedKeys { relation, unchecked, before: stay.collect() }))
    }

    /// The statement has run: the rows of what it has added.
    pub(super) async fn check_added_keys(&mut self, added: AddedKeys) -> Result<()> {
        let mut keys = self.keys_of(added.relation, false, &[]).await?;
        keys.retain(|(_, name)| !added.before.contains(name));
        let keys: Vec<Oid> = keys.into_iter().map(|(oid, _)| oid).collect();
        self.check_keys(&keys).await
    }

    /// Rows that others have committed since the snapshot count, too.
    async fn begin_checks(&mut self) -> Result<()> {
        if self.txn.block == Block::Explicit && self.keeps_one_snapshot() {
            return Err(Failure::refused(
                "cannot check foreign keys to distributed tables in a transaction that keeps one snapshot",
            )
            .hint("Run it in READ COMMITTED."));
        }
        if self.txn.is_untouched() && self.keeps_one_snapshot() {
            self.txn.begin = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
        }
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        Ok(())
    }

    async fn has_column(&mut self, relation: Oid, column: &str) -> Result<bool> {
        let sql = format!(
            "SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = {relation} AND a.attnum > 0 AND a.attname = {}",
            quote_literal(column)
        );
        Ok(!self.ask_coordinator(&sql).await?.rows.is_empty())
    }

    /// The keys of a local table to distributed ones, valid or not: oid and name. Those that have one of the columns,
    /// where some are named.
    async fn keys_of(&mut self, relation: Oid, valid: bool, columns: &[String]) -> Result<Vec<(Oid, String)>> {
        let names: Vec<String> = columns.iter().map(|column| quote_literal(column)).collect();
        let have_columns = match names.is_empty() {
            true => String::new(),
            false => format!(
                " AND EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid \
                 AND a.attnum = ANY (k.conkey) AND a.attname IN ({}))",
                names.join(", ")
            ),
        };
        let sql = format!(
            "SELECT k.oid, k.conname FROM pg_catalog.pg_constraint k JOIN pgherd.local_keys l ON l.oid = k.oid \
             WHERE k.conrelid = {relation} AND k.convalidated = {valid}{have_columns}"
        );
        let found = self.ask_coordinator(&sql).await?;
        let key = |row| Some((found.text(row, 0)?.parse().ok()?, found.text(row, 1)?.to_owned()));
        Ok((0..found.rows.len()).filter_map(key).collect())
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
            self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.key_is_valid({key}, true)")).await?;
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
