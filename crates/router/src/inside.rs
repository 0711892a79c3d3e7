//! What triggers of ours on the coordinator's tables ask for (crates/control/sql/inside.sql): SQL that runs inside the
//! coordinator has written a reference table's copy there, or inserts into a distributed table ON CONFLICT. It is
//! done on the workers in the client's own transaction. And texts that take samples are written anew
//! (`run/samples.rs`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_backend::QueryResult;
use pgherd_catalog::{Column, ColumnDefault, GroupId, Resolved, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::{Expr, ExprKind, Tree, Update};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use crate::callback::{PLACE, command_of, ends_transactions};
use crate::error::{Failure, Result};
use crate::run::{Definer, Errors, Request, Rows, fields_of, lock_copy, refuse, written_anew};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};
use crate::upsert::{Found, Upsert};

/// Begins the name of a statement whose rows go to the workers one by one; its depth and the table's name follow.
pub(crate) const INSERTING: &str = "insert ";

impl Session {
    /// A query on `pgherd.remote_statement`: does what its command says, and gives the rows of the answer.
    /// `of_copies`: a trigger of ours asks, on a reference table.
    pub(crate) async fn remote_statement(
        &mut self,
        query: &str,
        of_copies: bool,
        scan: u64,
        in_block: bool,
    ) -> Result<Vec<Bytes>> {
        let command = command_of(query).ok_or_else(not_understood)?;
        let (head, body) = command.split_once('\n').ok_or_else(not_understood)?;
        if let Some(language) = head.strip_prefix("sample ") {
            let written = written_anew(body, language, &self.catalog())?;
            return Ok(vec![row_of(Some(written.as_deref().unwrap_or(body).as_bytes()))]);
        }
        if !in_block {
            return Err(ends_transactions());
        }
        let mut words = head.splitn(2, ' ');
        match (words.next(), words.next()) {
            (Some("reference"), Some(rest)) if of_copies => {
                let [count, name_length, length, relation] = words_of(rest)?;
                let count = count.parse().map_err(|_| not_understood())?;
                let (owner, body) = split_after(body, name_length)?;
                let (change, verified) = split_after(body, length)?;
                let table = self.named_table(relation)?;
                if !table.is_reference() {
                    return Err(not_understood());
                }
                self.change_copies(&table, owner, count, change, verified).await?;
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some("changing"), Some(_)) => {
                self.cursors.changes.begin_firing(scan);
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some("inserted"), Some(relation)) => {
                let name = self.cursors.changes.inserting(relation);
                self.end_change(&name);
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some(word @ ("updating" | "updated")), Some(relation)) => {
                let table = self.named_table(relation)?;
                match word {
                    "updating" => self.begin_moving(table, scan, body == "tableoid"),
                    _ => self.end_moving(table.oid),
                }
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some("upsert"), Some(rest)) => {
                let [length, now, place, relation] = words_of(rest)?;
                let (row, statement) = split_after(body, length)?;
                let (is_inner, tells) = (place.starts_with("inner"), place.ends_with("-fires"));
                self.upsert_row(Upsert { relation, now, is_inner, tells }, row, statement).await
            }
            (Some(word @ ("assign" | "change")), Some(rest)) => {
                let [now, place, remainder, group, partition, ctid, length, relation] = words_of(rest)?;
                let found = Found {
                    remainder: remainder.parse().map_err(|_| not_understood())?,
                    group: group.parse().map_err(|_| not_understood())?,
                    partition: partition.to_owned(),
                    ctid: ctid.to_owned(),
                };
                let (values, statement) = split_after(body, length)?;
                let upsert = Upsert { relation, now, is_inner: place == "inner", tells: true };
                match word {
                    "assign" => self.assign_row(upsert, &found, values, statement).await,
                    _ => self.write_change(upsert, values, statement).await,
                }
            }
            _ => Err(not_understood()),
        }
    }

    /// A table as a trigger names it.
    pub(crate) fn named_table(&self, relation: &str) -> Result<Arc<Table>> {
        let bare = pgherd_sql::split(&format!("SELECT FROM {relation}")).ok().and_then(|mut s| s.pop());
        let named = bare.as_ref().and_then(|s| s.relations.first()).ok_or_else(not_understood)?;
        match self.catalog().resolve(named.schema.as_deref(), &named.name, &[]) {
            Resolved::Table(table) => Ok(table.clone()),
            Resolved::Other => Err(not_understood()),
        }
    }

    /// What the planner refuses of statements that clients send.
    pub(crate) fn check_deletes(&self, table: &Table) -> Result<()> {
        match pgherd_planner::refuse_unheard(table, &self.catalog()) {
            None => Ok(()),
            Some(refusal) => Err(refuse(&refusal)),
        }
    }

    /// The coordinator's copy of a reference table has changed in so many rows: the others follow. `verified`: true
    /// where a foreign key of theirs has done so already. `owner`: of the table, whose rights the change has where the
    /// session's role may not do everything with it, and nothing of other users' would run with them.
    async fn change_copies(
        &mut self,
        table: &Arc<Table>,
        owner: &str,
        rows: u64,
        sql: &str,
        verified: &str,
    ) -> Result<()> {
        if sql.trim_start().starts_with("DELETE") {
            self.check_deletes(table)?;
        }
        let right = self.copy_right(table).await?;
        let path = "pg_catalog, pg_temp".to_owned();
        let runs_nothing = !(table.has_hidden_calls || table.has_user_types || table.reads_by_modifier());
        let is_for_owner = !right.is_full && !owner.is_empty() && runs_nothing;
        let owner = is_for_owner.then(|| Definer { role: owner.to_owned(), path });
        for group in self.catalog().worker_groups() {
            self.join(group).await?;
            self.mark_writer(group);
            match owner.as_ref().filter(|_| !right.locks) {
                Some(owner) => drop(self.run_as_definer(group, owner, &lock_copy(table, true), false).await?),
                None => self.run_quiet(group, &lock_copy(table, right.locks)).await?,
            }
            let changed = match &owner {
                Some(owner) => self.change_as_owner(group, owner, sql).await?,
                None => backend::command_tag_rows(&self.with_values(group, sql, Rows::Drop).await?),
            };
            if changed == Some(rows)
                || !verified.is_empty() && self.is_true_there(group, owner.as_ref(), verified).await?
            {
                continue;
            }
            return Err(Failure::new("XX001", "copies of a reference table differ").detail(format!(
                "Node group {group} has changed {} rows of \"{}\", and the coordinator {rows}.",
                changed.unwrap_or(0),
                table.name
            )));
        }
        Ok(())
    }

    async fn change_as_owner(&mut self, group: GroupId, owner: &Definer, sql: &str) -> Result<Option<u64>> {
        if sql.starts_with("TRUNCATE ") {
            self.run_as_definer(group, owner, sql, false).await?;
            return Ok(None);
        }
        let sql = format!("WITH changed AS ({sql} RETURNING 1) SELECT pg_catalog.count(*) FROM changed");
        let counted = self.values_as_owner(group, owner, &sql).await?;
        Ok(counted.text(0, 0).and_then(|count| count.parse().ok()))
    }

    async fn is_true_there(&mut self, group: GroupId, owner: Option<&Definer>, sql: &str) -> Result<bool> {
        if let Some(owner) = owner {
            return Ok(self.values_as_owner(group, owner, sql).await?.text(0, 0) == Some("t"));
        }
        let mut answer = Vec::new();
        self.with_values(group, sql, Rows::Keep(&mut answer)).await?;
        Ok(answer.pop().is_some_and(|raw| raw.ends_with(b"t")))
    }

    /// As [`Session::with_values`].
    async fn values_as_owner(&mut self, group: GroupId, owner: &Definer, sql: &str) -> Result<QueryResult> {
        let styled = self.with_plain_styles(group).await?;
        let result = self.run_as_definer(group, owner, sql, true).await;
        if styled && result.is_ok() {
            self.with_client_styles(group).await?;
        }
        result
    }

    /// Runs a statement whose values, and answers, are written in the form that the coordinator's triggers use.
    pub(crate) async fn with_values(&mut self, group: GroupId, sql: &str, rows: Rows<'_>) -> Result<String> {
        let styled = self.with_plain_styles(group).await?;
        let result = self.run_request(group, &Request::text(sql), rows, Errors::default()).await;
        if styled && result.is_ok() {
            self.with_client_styles(group).await?;
        }
        Ok(result?.tag)
    }
}

/// A row whose distribution column is changed from inside the coordinator.
pub(crate) struct MovedRow<'a> {
    pub group: GroupId,
    /// The partition's number and the row's place there.
    pub partition: &'a str,
    pub ctid: &'a str,
    pub table: &'a Arc<Table>,
    /// What the user's statement names, where it may put the row into another partition of that.
    pub whole: Option<&'a Arc<Table>>,
    pub set: &'a Assigned,
}

pub(crate) fn keeps_its_key(table: &Table) -> Failure {
    let key = table.key_column().map_or("", |k| k.name.as_str());
    Failure::refused(format!("cannot modify the distribution column \"{key}\" from inside the coordinator"))
        .detail("The table has triggers, policies, or foreign keys to it.")
}

/// Columns that are assigned, and the parameters with their values.
pub(crate) type Assigned = Vec<(String, Option<usize>)>;

impl Session {
    /// The table of an `UPDATE … WHERE ctid = $1` of postgres_fdw that assigns its distribution column, and what it
    /// assigns.
    pub(crate) fn moved_key(&self, statement: &Statement) -> Option<(Arc<Table>, Assigned)> {
        let Tree::Update(update) = &statement.tree else { return None };
        let catalog = self.catalog();
        let Resolved::Table(table) = catalog.resolve(update.target.schema.as_deref(), &update.target.name, &[]) else {
            return None;
        };
        let key = table.key_column()?;
        if !update.set.iter().any(|a| a.column == key.name) {
            return None;
        }
        Some((table.clone(), assigned(update)))
    }

    /// Takes the row from where it is and puts it, changed, where it belongs.
    pub(crate) async fn move_row(
        &mut self,
        row: MovedRow<'_>,
        statement: &Statement,
        bound: Option<&Bound>,
        out: &mut BytesMut,
    ) -> Result<String> {
        let table = row.table;
        if pgherd_planner::fires(table) {
            return Err(keeps_its_key(table));
        }
        let columns: Vec<&Column> = table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).collect();
        let names: Vec<String> = columns.iter().map(|c| quote_ident(&c.name)).collect();
        let texts: Vec<String> = names.iter().map(|n| format!("{n}::pg_catalog.text")).collect();
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        let delete = format!(
            "DELETE FROM {relation} WHERE ctid = {} AND tableoid = {} RETURNING {}",
            quote_literal(row.ctid),
            row.partition,
            texts.join(", ")
        );
        self.join(row.group).await?;
        self.mark_writer(row.group);
        let mut gone = Vec::new();
        self.with_values(row.group, &delete, Rows::Keep(&mut gone)).await?;
        let Some(raw) = gone.pop() else { return Ok("UPDATE 0".to_owned()) };
        let mut values = fields_of(&Frame { raw })?;
        let params = bound.map(|b| b.params.as_slice()).unwrap_or_default();
        for (value, column) in values.iter_mut().zip(&columns) {
            if let Some((_, Some(index))) = row.set.iter().find(|(name, _)| *name == column.name) {
                *value = params.get(*index).cloned().flatten();
            }
        }
        let at = table.key_column().and_then(|key| columns.iter().position(|c| c.name == key.name));
        let key = at.and_then(|at| values.get(at).cloned().flatten());
        let remainder = self.remainder_of_stored_text(table, key.as_deref()).await?;
        let group = table.shards().get(remainder).map(|s| s.group).ok_or_else(not_understood)?;
        let list: Vec<String> = values
            .iter()
            .map(|v| v.as_ref().map_or_else(|| "NULL".to_owned(), |v| quote_literal(&String::from_utf8_lossy(v))))
            .collect();
        let returning = statement.text.rsplit_once(" RETURNING ").map_or("NULL", |(_, list)| list);
        let place = row.whole.map_or(String::new(), |_| format!(", {PLACE}"));
        let into = row.whole.unwrap_or(table);
        let insert = format!(
            "INSERT INTO {}.{} ({}) OVERRIDING SYSTEM VALUE VALUES ({}) RETURNING {returning}{place}",
            quote_ident(&into.schema),
            quote_ident(&into.name),
            names.join(", "),
            list.join(", ")
        );
        self.join(group).await?;
        let catalog = self.catalog();
        if let Some(epoch) = catalog.placement_epoch(table.colocation) {
            self.fence(group, table.colocation, epoch);
        }
        self.mark_writer(group);
        let mut kept = Vec::new();
        self.with_values(group, &insert, Rows::Keep(&mut kept)).await?;
        for returned in kept {
            let returned = match row.whole {
                // Object ids of another server's partitions say nothing here.
                Some(whole) => self.note_place(whole, group, "", &returned)?,
                None => returned,
            };
            if statement.text.contains(" RETURNING ") {
                out.extend_from_slice(&returned);
            }
        }
        Ok("UPDATE 1".to_owned())
    }
}

pub(crate) fn assigned(update: &Update) -> Assigned {
    let parameter = |e: &Expr| match &e.kind {
        ExprKind::Param(n) => Some(usize::from(*n).saturating_sub(1)),
        _ => None,
    };
    update.set.iter().map(|a| (a.column.clone(), parameter(&a.value))).collect()
}

/// So many words, of which the last may have spaces in it.
fn words_of<const N: usize>(text: &str) -> Result<[&str; N]> {
    let words: Vec<&str> = text.splitn(N, ' ').collect();
    words.try_into().map_err(|_| not_understood())
}

/// A text cut after so many characters.
fn split_after<'t>(text: &'t str, characters: &str) -> Result<(&'t str, &'t str)> {
    let count: usize = characters.parse().map_err(|_| not_understood())?;
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    Ok(text.split_at(end))
}

pub(crate) fn row_of(value: Option<&[u8]>) -> Bytes {
    let mut row = BytesMut::new();
    backend::write_data_row(&mut row, &[value]);
    row.freeze()
}

pub(crate) fn not_understood() -> Failure {
    Failure::new("XX000", "a trigger of schema pgherd asked for what is not understood")
}
