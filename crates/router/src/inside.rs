//! What triggers of ours on the coordinator's tables ask for (crates/control/sql/inside.sql): SQL that runs inside the
//! coordinator has written a reference table's copy there, or inserts into a distributed table ON CONFLICT. It is
//! done on the workers in the client's own transaction.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_catalog::{Column, ColumnDefault, GroupId, Resolved, Table};
use pgherd_planner::Tier;
use pgherd_sql::Statement;
use pgherd_sql::ast::{Assignment, Expr, ExprKind, Insert, InsertSource, OnConflict, Tree};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use crate::callback::{PLACE, command_of, ends_transactions};
use crate::error::{Failure, Result};
use crate::run::{Errors, Request, Rows, fields_of, refuse};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};

/// Begins the name of a statement whose rows go to the workers one by one; the table's follows.
pub(crate) const INSERTING: &str = "insert ";

impl Session {
    /// A query on `pgherd.remote_statement`: does what its command says, and gives the rows of the answer.
    pub(crate) async fn remote_statement(&mut self, query: &str, scan: u64, in_block: bool) -> Result<Vec<Bytes>> {
        if !in_block {
            return Err(ends_transactions());
        }
        let command = command_of(query).ok_or_else(not_understood)?;
        let (head, body) = command.split_once('\n').ok_or_else(not_understood)?;
        let mut words = head.splitn(2, ' ');
        match (words.next(), words.next()) {
            (Some("reference"), Some(rest)) => {
                let mut words = rest.splitn(3, ' ');
                let (Some(count), Some(length), Some(relation)) = (words.next(), words.next(), words.next()) else {
                    return Err(not_understood());
                };
                let count = count.parse().map_err(|_| not_understood())?;
                let (change, verified) = split_after(body, length)?;
                self.change_copies(relation, count, change, verified).await?;
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some("inserted"), Some(relation)) => {
                self.end_change(&format!("{INSERTING}{relation}"));
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some(word @ ("updating" | "updated")), Some(relation)) => {
                let table = self.named_table(relation)?;
                match word {
                    "updating" => self.begin_moving(table, scan),
                    _ => self.end_moving(table.oid),
                }
                Ok(vec![row_of(Some(b"done"))])
            }
            (Some("upsert"), Some(rest)) => {
                let mut words = rest.splitn(3, ' ');
                let (Some(length), Some(now), Some(relation)) = (words.next(), words.next(), words.next()) else {
                    return Err(not_understood());
                };
                let (row, statement) = split_after(body, length)?;
                self.upsert_row(relation, row, statement, now).await
            }
            _ => Err(not_understood()),
        }
    }

    /// A table as a trigger names it.
    fn named_table(&self, relation: &str) -> Result<Arc<Table>> {
        let bare = pgherd_sql::split(&format!("SELECT FROM {relation}")).ok().and_then(|mut s| s.pop());
        let named = bare.as_ref().and_then(|s| s.relations.first()).ok_or_else(not_understood)?;
        match self.catalog().resolve(named.schema.as_deref(), &named.name, &[]) {
            Resolved::Table(table) => Ok(table.clone()),
            Resolved::Other => Err(not_understood()),
        }
    }

    /// The coordinator's copy of a reference table has changed in so many rows: the others follow. `verified`: true
    /// where a foreign key of theirs has done so already.
    async fn change_copies(&mut self, relation: &str, rows: u64, sql: &str, verified: &str) -> Result<()> {
        for group in self.catalog().worker_groups() {
            self.join(group).await?;
            self.mark_writer(group);
            self.run_quiet(group, &format!("LOCK TABLE ONLY {relation} IN SHARE ROW EXCLUSIVE MODE")).await?;
            let tag = self.with_values(group, sql, Rows::Drop).await?;
            if backend::command_tag_rows(&tag) != Some(rows) {
                let mut answer = Vec::new();
                if !verified.is_empty() {
                    self.with_values(group, verified, Rows::Keep(&mut answer)).await?;
                }
                if answer.pop().is_some_and(|raw| raw.ends_with(b"t")) {
                    continue;
                }
                return Err(Failure::new("XX001", "copies of a reference table differ").detail(format!(
                    "Node group {group} answered \"{tag}\", {rows} rows of {relation} have changed on the coordinator."
                )));
            }
        }
        Ok(())
    }

    /// Runs a statement whose values, and answers, are written in the form that the coordinator's triggers use.
    async fn with_values(&mut self, group: GroupId, sql: &str, rows: Rows<'_>) -> Result<String> {
        let styled = self.with_plain_styles(group).await?;
        let result = self.run_request(group, &Request::text(sql), rows, Errors::default()).await;
        if styled && result.is_ok() {
            self.with_client_styles(group).await?;
        }
        Ok(result?.tag)
    }

    /// One row of `INSERT … ON CONFLICT`, and the row that came of it, if one did. `row`: columns and values; `text`:
    /// the statement as the function has it.
    async fn upsert_row(&mut self, relation: &str, row: &str, text: &str, now: &str) -> Result<Vec<Bytes>> {
        let refused = |reason: &str| {
            Failure::refused(format!("cannot run this ON CONFLICT on distributed table {relation} inside a function"))
                .detail(format!("A worker cannot evaluate it: {reason}."))
                .hint("Send the statement through the router by itself.")
        };
        let table = self.named_table(relation)?;
        // Without ON CONFLICT any text will do.
        let text = if text == "INSERT" { format!("INSERT INTO {relation} VALUES (1)") } else { text.to_owned() };
        let text = text.as_str();
        let statement = pgherd_sql::split(text).ok().and_then(|mut s| (s.len() == 1).then(|| s.remove(0)));
        let Some(Tree::Insert(insert)) = statement.as_ref().map(|s| &s.tree) else {
            return Err(refused("it is part of another statement"));
        };
        if insert.target.name != table.name {
            return Err(refused("it is part of another statement"));
        }
        names_rows_only(insert, &table).map_err(|reason| refused(&reason))?;
        let alias = quote_ident(insert.target.reference_name());
        let tail = insert.tail_span.map_or("", |span| span.of(text));
        let list: Vec<String> = table.columns.iter().map(|c| format!("{alias}.{}", quote_ident(&c.name))).collect();
        let returning = format!("RETURNING ROW({})::pg_catalog.text", list.join(", "));
        let upsert = Upsert { table: &table, relation, alias: &alias, row, now, returning: &returning };
        // One PostgreSQL would not see the row before the statement has ended.
        self.cursors.changes.insert(format!("{INSERTING}{relation}"), table.oid);
        match insert.on_conflict.as_ref().filter(|c| moves(insert, c, &table)) {
            Some(conflict) => self.upsert_and_move(&upsert, conflict, text).await,
            None => {
                let tail = without_returning(insert, tail);
                let sql = format!("INSERT INTO {relation} AS {alias} {row} {tail} {returning}");
                self.run_on_shard(&upsert, &sql).await
            }
        }
    }

    /// ON CONFLICT DO UPDATE of the distribution column: a row that is there goes, and comes back where it belongs
    /// then.
    async fn upsert_and_move(&mut self, upsert: &Upsert<'_>, conflict: &OnConflict, text: &str) -> Result<Vec<Bytes>> {
        let Upsert { table, relation, alias, row, returning, .. } = *upsert;
        let key = table.key_column().ok_or_else(not_understood)?;
        if table.has_triggers || table.row_security || table.is_referenced {
            return Err(Failure::refused(format!(
                "cannot modify the distribution column \"{}\" of table \"{}\"",
                key.name, table.name
            ))
            .detail("The table has triggers, policies, or foreign keys to it."));
        }
        let arbiters = conflict.columns.as_ref().ok_or_else(|| upsert.refused("it does not name the columns"))?;
        let arbiters_list = arbiters.iter().map(|c| quote_ident(c)).collect::<Vec<_>>().join(", ");
        let plain = |a: &Assignment| {
            let mut plain = !a.indirection && !a.multi && a.value.span.is_known();
            a.value.walk(&mut |e| plain &= !matches!(e.kind, ExprKind::Default | ExprKind::Sublink(_)));
            plain
        };
        if !conflict.set.iter().all(plain) || conflict.infer_filter.is_some() {
            return Err(upsert.refused("it assigns a default, a subquery or a part of a column"));
        }
        let sql =
            format!("INSERT INTO {relation} AS {alias} {row} ON CONFLICT ({arbiters_list}) DO NOTHING {returning}");
        let inserted = self.run_on_shard(upsert, &sql).await?;
        if !inserted.is_empty() {
            return Ok(inserted);
        }
        let own = pgherd_sql::split(&sql).ok().and_then(|mut s| s.pop()).ok_or_else(not_understood)?;
        let Tree::Insert(given) = &own.tree else { return Err(not_understood()) };
        let InsertSource::Values(rows) = &given.source else { return Err(not_understood()) };
        let fields = rows.first().ok_or_else(not_understood)?;
        let (mut excluded, mut conditions) = (Vec::new(), Vec::new());
        for ((name, _), field) in given.columns.iter().zip(fields) {
            let (column, value) = (table.column(name).ok_or_else(not_understood)?, field.span.of(&sql));
            let quoted = quote_ident(name);
            excluded.push(format!("({value})::{} AS {quoted}", column.base_type_name));
            if *name == key.name {
                conditions.push(format!("{alias}.{quoted} = {value}"));
            } else if arbiters.contains(name) {
                conditions.push(format!("{alias}.{quoted} = excluded.{quoted}"));
            }
        }
        conditions.extend(conflict.filter.iter().map(|f| format!("({})", f.span.of(text))));
        let columns: Vec<&Column> = table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).collect();
        let values = columns.iter().map(|column| {
            let assigned = conflict.set.iter().find(|a| a.column == column.name);
            let value = assigned.map_or_else(
                || format!("{alias}.{}", quote_ident(&column.name)),
                |a| format!("({})", a.value.span.of(text)),
            );
            format!("{value}::{}::pg_catalog.text", column.base_type_name)
        });
        let delete = format!(
            "DELETE FROM {relation} AS {alias} USING (SELECT {}) AS excluded WHERE {} RETURNING {}",
            excluded.join(", "),
            conditions.join(" AND "),
            values.collect::<Vec<_>>().join(", ")
        );
        let Some(raw) = self.run_on_shard(upsert, &delete).await?.pop() else { return Ok(Vec::new()) };
        let names: Vec<String> = columns.iter().map(|c| quote_ident(&c.name)).collect();
        let list: Vec<String> = fields_of(&Frame { raw })?
            .iter()
            .map(|v| v.as_ref().map_or_else(|| "NULL".to_owned(), |v| quote_literal(&String::from_utf8_lossy(v))))
            .collect();
        let sql = format!(
            "INSERT INTO {relation} AS {alias} ({}) OVERRIDING SYSTEM VALUE VALUES ({}) {returning}",
            names.join(", "),
            list.join(", ")
        );
        self.run_on_shard(upsert, &sql).await
    }

    /// A statement of one shard; the rows that it returns.
    async fn run_on_shard(&mut self, upsert: &Upsert<'_>, sql: &str) -> Result<Vec<Bytes>> {
        let own = pgherd_sql::split(sql).ok().and_then(|mut s| s.pop()).ok_or_else(not_understood)?;
        let (catalog, path) = (self.catalog(), ["pg_catalog".to_owned()]);
        let mut plan = self.plan_statement(&own, &catalog, &path, true);
        if plan.uses_now && self.txn.now.is_none() {
            self.txn.now = Some(upsert.now.to_owned());
            plan = self.plan_statement(&own, &catalog, &path, true);
        }
        let route = match &plan.tier {
            Tier::Route(route) => route,
            Tier::Refuse(refusal) => return Err(refuse(refusal)),
            _ => return Err(upsert.refused(&plan.reason)),
        };
        let remainder = self.remainder_of_stored(&route.table, &route.key, None).await?;
        let group = route.table.shards().get(remainder).map(|s| s.group).ok_or_else(not_understood)?;
        self.join(group).await?;
        if let Some(epoch) = catalog.placement_epochs.get(&upsert.table.colocation) {
            self.fence(group, upsert.table.colocation, *epoch);
        }
        self.mark_writer(group);
        let mut kept = Vec::new();
        self.with_values(group, &route.sql.as_written(), Rows::Keep(&mut kept)).await?;
        Ok(kept)
    }
}

/// One row of an INSERT that goes to its worker by itself.
struct Upsert<'a> {
    table: &'a Table,
    relation: &'a str,
    alias: &'a str,
    /// Columns and values.
    row: &'a str,
    /// The transaction's time.
    now: &'a str,
    returning: &'a str,
}

impl Upsert<'_> {
    fn refused(&self, reason: &str) -> Failure {
        Failure::refused(format!(
            "cannot run this ON CONFLICT on distributed table {} inside a function",
            self.relation
        ))
        .detail(format!("A worker cannot evaluate it: {reason}."))
        .hint("Send the statement through the router by itself.")
    }
}

/// The distribution column may get another value.
fn moves(insert: &Insert, conflict: &OnConflict, table: &Table) -> bool {
    let Some(key) = table.key_column() else { return false };
    let same = |a: &Assignment| {
        matches!(&a.value.kind, ExprKind::Column(path) if matches!(path.as_slice(), [qualifier, column]
            if *column == key.name && (qualifier == "excluded" || qualifier == insert.target.reference_name())))
    };
    conflict.set.iter().any(|a| a.column == key.name && !same(a))
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
        let parameter = |e: &Expr| match &e.kind {
            ExprKind::Param(n) => Some(usize::from(*n).saturating_sub(1)),
            _ => None,
        };
        let set = update.set.iter().map(|a| (a.column.clone(), parameter(&a.value))).collect();
        Some((table.clone(), set))
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
        if table.has_triggers || table.row_security || table.is_referenced {
            let key = table.key_column().map_or("", |k| k.name.as_str());
            return Err(Failure::refused(format!(
                "cannot modify the distribution column \"{key}\" from inside the coordinator"
            ))
            .detail("The table has triggers, policies, or foreign keys to it."));
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
        if let Some(epoch) = catalog.placement_epochs.get(&table.colocation) {
            self.fence(group, table.colocation, *epoch);
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

/// ON CONFLICT without RETURNING, whose list the coordinator computes.
fn without_returning<'t>(insert: &Insert, tail: &'t str) -> &'t str {
    if insert.returning.is_empty() {
        return tail;
    }
    // A reserved word: outside of quotes and brackets it is the clause.
    let (mut depth, mut quote) = (0, None);
    for (at, c) in tail.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth -= 1,
            (None, 'r' | 'R') if depth == 0 => {
                let word = tail.get(at..at + 9).unwrap_or_default();
                let apart = !tail[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
                let ends = !tail[at + word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
                if word.eq_ignore_ascii_case("returning") && apart && ends {
                    return &tail[..at];
                }
            }
            _ => {}
        }
    }
    tail
}

/// The clause must mean the same outside of the function: it names columns of the table and of the proposed row.
fn names_rows_only(insert: &Insert, table: &Table) -> std::result::Result<(), String> {
    let Some(conflict) = &insert.on_conflict else { return Ok(()) };
    let target = insert.target.reference_name();
    let mut found = None;
    let mut check = |expr: &Expr| {
        expr.walk(&mut |e| match &e.kind {
            ExprKind::Column(path) => {
                let known = match path.as_slice() {
                    [column] => table.column(column).is_some(),
                    [qualifier, column] => {
                        (qualifier == "excluded" || qualifier == target) && table.column(column).is_some()
                    }
                    _ => false,
                };
                if !known {
                    found = Some(format!("\"{}\" is no column of the table", path.join(".")));
                }
            }
            ExprKind::Param(n) => found = Some(format!("${n} is the function's")),
            _ => {}
        });
    };
    conflict.infer_filter.iter().chain(&conflict.filter).for_each(&mut check);
    conflict.set.iter().for_each(|a| check(&a.value));
    found.map_or(Ok(()), Err)
}

/// A text cut after so many characters.
fn split_after<'t>(text: &'t str, characters: &str) -> Result<(&'t str, &'t str)> {
    let count: usize = characters.parse().map_err(|_| not_understood())?;
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    Ok(text.split_at(end))
}

fn row_of(value: Option<&[u8]>) -> Bytes {
    let mut row = BytesMut::new();
    backend::write_data_row(&mut row, &[value]);
    row.freeze()
}

fn not_understood() -> Failure {
    Failure::new("XX000", "a trigger of schema pgherd asked for what is not understood")
}
