//! `INSERT … ON CONFLICT` inside the coordinator, row by row (`upsert_local_row` of crates/control/sql/inside.sql).
//! A worker runs the clause where it can. Else it says which row is there already, and keeps that locked; the
//! coordinator computes what becomes of it, under the statement's own settings and snapshot; and the worker is told.

use std::sync::Arc;

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, Column, ColumnDefault, GroupId, Snapshot, Table};
use pgherd_planner::{Tier, default_sql, evaluation_type};
use pgherd_sql::ast::{
    Body, Cte, Expr, ExprKind, FromItem, Insert, InsertSource, OnConflict, Overriding, Relation, SelectItem, Tree,
};
use pgherd_sql::{Edits, Span, Statement};
use pgherd_wire::backend::ErrorFields;
use pgherd_wire::frame::Frame;

use crate::error::{Failure, Result};
use crate::inside::{not_understood, row_of};
use crate::run::{Rows, fields_of, refuse};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};
use crate::text::fields_of_record;

/// A view's query is nothing but columns of one table under their own names.
fn shows_own_columns(query: &str) -> bool {
    let Some(statement) = pgherd_sql::split(query).ok().and_then(|mut list| list.pop()) else { return false };
    let Tree::Query(query) = &statement.tree else { return false };
    let Body::Select(select) = &query.body else { return false };
    let is_own = |item: &SelectItem| match &item.expr.kind {
        ExprKind::Column(path) => item.alias.is_none() || item.alias.as_ref() == path.last(),
        _ => false,
    };
    let names_columns = |relation: &Relation| relation.alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    matches!(select.from.as_slice(), [FromItem::Relation(relation)] if !relation.only && !names_columns(relation))
        && select.filter.is_none()
        && query.with.is_none()
        && query.limit.is_none()
        && query.offset.is_none()
        && select.items.iter().all(is_own)
}

/// What a trigger says of a row's statement.
#[derive(Clone, Copy)]
pub(crate) struct Upsert<'a> {
    /// The table, as SQL names it.
    pub relation: &'a str,
    /// The transaction's time.
    pub now: &'a str,
    /// It is no statement of the client's own: it may have values of a function's.
    pub is_inner: bool,
    /// Triggers that fire on the coordinator have to know whether the row was there already.
    pub tells: bool,
}

/// A row that is there already.
pub(crate) struct Found {
    /// Of its key.
    pub remainder: usize,
    pub group: GroupId,
    /// The partition's number on that worker, and the row's place there.
    pub partition: String,
    pub ctid: String,
}

/// The INSERT, as the trigger has found it.
struct Written {
    table: Arc<Table>,
    statement: Statement,
    /// Which common table expression it is; none: the statement itself.
    cte: Option<usize>,
}

impl Upsert<'_> {
    fn refused(&self, reason: &str) -> Failure {
        Failure::refused(format!(
            "cannot run this ON CONFLICT on distributed table {} inside a function",
            self.relation
        ))
        .detail(format!("It cannot be run row by row: {reason}."))
        .hint("Send the statement through the router by itself.")
    }
}

impl Written {
    fn insert(&self) -> Option<&Insert> {
        let tree = match self.cte {
            Some(at) => &ctes_of(&self.statement.tree).get(at)?.tree,
            None => &self.statement.tree,
        };
        match tree {
            Tree::Insert(insert) => Some(insert),
            _ => None,
        }
    }

    /// A function's variable that is assigned to the column into which the row has it already: `VALUES (a, b) ON
    /// CONFLICT … SET b = b`. The proposed row has its value.
    fn without_variables(self) -> Result<Written> {
        let insert = self.insert().ok_or_else(not_understood)?;
        let (Some(conflict), InsertSource::Values(rows)) = (&insert.on_conflict, &insert.source) else {
            return Ok(self);
        };
        let ([row], Overriding::No, false) =
            (rows.as_slice(), insert.overriding, self.table.has_triggers || self.table.fires_here)
        else {
            return Ok(self);
        };
        let given = |column: &str| {
            let at = match insert.columns.as_slice() {
                [] => self.table.columns.iter().position(|c| c.name == column),
                columns => columns.iter().position(|(name, part)| name == column && !part),
            };
            row.get(at?)
        };
        let is_variable = |path: &[String]| {
            let is_row = |name: &String| name == "excluded" || name == insert.target.reference_name();
            match path {
                [name] => !is_row(name) && self.table.column(name).is_none(),
                [first, _] => !is_row(first),
                _ => false,
            }
        };
        let mut edits = Edits::new();
        for assignment in conflict.set.iter().filter(|a| !a.indirection && !a.multi && a.value.span.is_known()) {
            let Some(inserted) = given(&assignment.column) else { continue };
            let same = match (&inserted.kind, &assignment.value.kind) {
                (ExprKind::Column(a), ExprKind::Column(b)) => a == b && is_variable(a),
                (ExprKind::Param(a), ExprKind::Param(b)) => a == b,
                _ => false,
            };
            if same {
                edits.replace(assignment.value.span, format!("excluded.{}", quote_ident(&assignment.column)));
            }
        }
        let text = edits.apply(&self.statement.text)?.as_written();
        let statement = pgherd_sql::split(&text).ok().and_then(|mut s| s.pop()).ok_or_else(not_understood)?;
        Ok(Written { statement, ..self })
    }
}

impl Session {
    /// One row, and the row that came of it, if one did. Or a query that tells what is to become of the row that is
    /// there. `row`: columns and values; `text`: the statement as the function has it.
    pub(crate) async fn upsert_row(&mut self, upsert: Upsert<'_>, row: &str, text: &str) -> Result<Vec<Bytes>> {
        let written = self.written(&upsert, text).await?;
        let (table, text) = (&written.table, written.statement.text.as_str());
        let insert = written.insert().ok_or_else(not_understood)?;
        let alias = quote_ident(insert.target.reference_name());
        let head = format!("INSERT INTO {} AS {alias} {row}", upsert.relation);
        let returning = returning(table, &alias);
        let change = self.cursors.changes.inserting(upsert.relation);
        self.cursors.changes.lend_anchor(&change, false);
        let Some(conflict) = insert.on_conflict.as_ref() else {
            self.cursors.changes.insert(change, table.oid, None);
            return self.run_on_shard(&upsert, table, &head, &returning).await;
        };
        if !conflict.span.is_known() {
            return Err(not_understood());
        }
        let sql = format!("{head} {}", conflict.span.of(text));
        let is_name = table.column("old").is_some() || insert.target.reference_name() == "old";
        if conflict.update && !is_name && pgherd_planner::names_old_rows(&insert.returning) {
            // What the coordinator inserts was not there before.
            return Err(upsert.refused("it returns rows as they were before"));
        }
        let names = names_rows_only(insert, conflict, table);
        let tells = conflict.update && upsert.tells;
        let mut is_plain = !tells && names.is_ok() && !moves(insert, conflict, table) && self.is_for_worker(&sql)?;
        if is_plain && conflict.update && may_meet_unseen(conflict, table) {
            let (_, remainder) = self.shard_of_row(&upsert, table, &head).await?;
            is_plain = !self.cursors.changes.has_written_shard(&change, remainder);
        }
        if is_plain || !conflict.update {
            names.map_err(|reason| upsert.refused(&reason))?;
            // One PostgreSQL would not see the row before the statement has ended.
            self.cursors.changes.insert(change, table.oid, None);
            return self.run_on_shard(&upsert, table, &sql, &returning).await;
        }
        let query = self.query_of(&upsert, &written, conflict)?;
        if self.cursors.moment.is_none() && reads_tables(conflict) && !self.cursors.changes.is_running(&change) {
            let groups = self.catalog().groups_of(table);
            let anchor = self.anchor_inside(groups, u64::MAX).await?;
            self.cursors.changes.insert(change.clone(), table.oid, Some(anchor));
        }
        self.cursors.changes.insert(change.clone(), table.oid, None);
        let (group, remainder) = self.shard_of_row(&upsert, table, &head).await?;
        // The condition is never true, and tells of the row for which it is asked.
        let told = format!(
            "pg_catalog.set_config('pgherd.found', ARRAY[{alias}.tableoid::pg_catalog.text, \
             {alias}.ctid::pg_catalog.text, {}, {}]::pg_catalog.text, true) IS NULL",
            row_text(table, &alias),
            row_text(table, "excluded")
        );
        let touched = conflict.set.first().ok_or_else(not_understood)?;
        let same = match table.column(&touched.column).map(|c| &c.default) {
            Some(ColumnDefault::Generated) => "DEFAULT".to_owned(),
            _ => format!("{alias}.{}", quote_ident(&touched.column)),
        };
        let sql = format!(
            "{head} {} DO UPDATE SET {} = {same} WHERE {told} {returning}",
            conflict.arbiter_span.of(text),
            quote_ident(&touched.column)
        );
        let mut kept = Vec::new();
        self.with_values(group, &sql, Rows::Keep(&mut kept)).await?;
        if !kept.is_empty() {
            return self.note_written(&upsert, group, remainder, kept);
        }
        let found = self.collect_on(group, FOUND).await?;
        let (Some(partition), Some(ctid), Some(existing), Some(excluded)) =
            (found.text(0, 0), found.text(0, 1), found.text(0, 2), found.text(0, 3))
        else {
            return Ok(Vec::new());
        };
        if self.cursors.changes.has_written(&change, group, &place_of(partition, ctid)) {
            return Err(Failure::new("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time").hint(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            ));
        }
        let direct = !calls_volatile(conflict, &self.catalog());
        self.cursors.changes.lend_anchor(&change, direct);
        let place = if upsert.is_inner { "inner" } else { "top" };
        let row_as = |row: &str, name: &str| {
            format!("pg_catalog.unnest(ARRAY[{}::{}]) AS {name}", quote_literal(row), upsert.relation)
        };
        self.cursors.changes.asked = Some(upsert.relation.to_owned());
        let answer = format!(
            "-- {} {place} {remainder} {group} {partition} {ctid}\nSELECT {}{} FROM {} CROSS JOIN {}{}",
            upsert.now,
            quote_literal(existing),
            query.values,
            row_as(existing, &alias),
            row_as(excluded, "excluded"),
            query.rest
        );
        Ok(vec![row_of(Some(answer.as_bytes()))])
    }

    /// The same as an UPDATE for the coordinator, which fires its triggers. The row is known by what the clause names.
    pub(crate) async fn write_change(&mut self, upsert: Upsert<'_>, values: &str, text: &str) -> Result<Vec<Bytes>> {
        let written = self.written(&upsert, text).await?;
        let table = &written.table;
        let insert = written.insert().ok_or_else(not_understood)?;
        let conflict = insert.on_conflict.as_ref().ok_or_else(not_understood)?;
        let alias = quote_ident(insert.target.reference_name());
        let mut computed = fields_of_record(values.as_bytes()).ok_or_else(not_understood)?.into_iter();
        let existing = computed.next().flatten().ok_or_else(not_understood)?;
        let existing = fields_of_record(&existing).ok_or_else(not_understood)?;
        if table.row_security {
            return Err(upsert.refused("the table has policies, and triggers that fire on the coordinator"));
        }
        let is_plain = conflict.constraint.is_none() && conflict.infer_filter.is_none();
        let arbiter = conflict.columns.as_ref().filter(|columns| is_plain && !columns.is_empty());
        let arbiter = arbiter.ok_or_else(|| upsert.refused("its conflict target is not a list of columns"))?;
        let key = table.key_column().ok_or_else(not_understood)?;
        let mut known: Vec<String> = Vec::new();
        for name in std::iter::once(&key.name).chain(arbiter.iter().filter(|name| **name != key.name)) {
            let at = table.columns.iter().position(|c| c.name == *name).ok_or_else(not_understood)?;
            let value = existing.get(at).cloned().flatten().ok_or_else(not_understood)?;
            known.push(format!("{alias}.{} = {}", quote_ident(name), literal_of(Some(&value))));
        }
        let mut set: Vec<String> = Vec::new();
        for assignment in &conflict.set {
            let column = table.column(&assignment.column).ok_or_else(not_understood)?;
            let value = match is_computed(&assignment.value, column) {
                true => literal_of(computed.next().flatten().as_ref()),
                false => "DEFAULT".to_owned(),
            };
            set.push(format!("{} = {value}", quote_ident(&column.name)));
        }
        let sql = format!(
            "UPDATE {} AS {alias} SET {} WHERE {} RETURNING {}",
            upsert.relation,
            set.join(", "),
            known.join(" AND "),
            row_text(table, &alias)
        );
        self.cursors.changes.own_update = Some(table.oid);
        Ok(vec![row_of(Some(sql.as_bytes()))])
    }

    /// What the coordinator has computed for a row that is there.
    pub(crate) async fn assign_row(
        &mut self,
        upsert: Upsert<'_>,
        found: &Found,
        values: &str,
        text: &str,
    ) -> Result<Vec<Bytes>> {
        let change = self.cursors.changes.inserting(upsert.relation);
        self.cursors.changes.lend_anchor(&change, false);
        let written = self.written(&upsert, text).await?;
        let table = &written.table;
        let insert = written.insert().ok_or_else(not_understood)?;
        let conflict = insert.on_conflict.as_ref().ok_or_else(not_understood)?;
        let alias = quote_ident(insert.target.reference_name());
        let mut computed = fields_of_record(values.as_bytes())
            .ok_or_else(|| Failure::new("XX000", "a row that is inserted is not understood"))?
            .into_iter()
            .skip(1);
        let mut set: Vec<(&str, Option<Option<Bytes>>)> = Vec::new();
        for assignment in &conflict.set {
            let column = table.column(&assignment.column).ok_or_else(not_understood)?;
            set.push((&column.name, is_computed(&assignment.value, column).then(|| computed.next().flatten())));
        }
        let key = table.key_column().ok_or_else(not_understood)?;
        if let Some((_, Some(value))) = set.iter().find(|(name, _)| *name == key.name) {
            let remainder = self.remainder_of_stored_text(table, value.as_deref()).await?;
            if remainder != found.remainder {
                return self.move_found(&upsert, table, found, &set, remainder).await;
            }
        }
        let assignments: Vec<String> = set
            .iter()
            .map(|(name, value)| {
                let value = value.as_ref().map_or_else(|| "DEFAULT".to_owned(), |v| literal_of(v.as_ref()));
                format!("{} = {value}", quote_ident(name))
            })
            .collect();
        let sql = format!(
            "UPDATE {} AS {alias} SET {} WHERE {alias}.ctid = {} AND {alias}.tableoid = {} {}",
            upsert.relation,
            assignments.join(", "),
            quote_literal(&found.ctid),
            found.partition,
            returning(table, &alias)
        );
        self.write_on(found.group, table).await?;
        let mut kept = Vec::new();
        self.with_values(found.group, &sql, Rows::Keep(&mut kept)).await?;
        if kept.is_empty() {
            return match (table.row_security, table.has_triggers) {
                (false, true) => Ok(kept),
                (false, false) => Err(Failure::new(
                    "27000",
                    "tuple to be updated was already modified by an operation triggered by the current command",
                )
                .hint(
                    "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.",
                )),
                (true, false) => Err(Failure::new(
                    "42501",
                    format!(
                        "new row violates row-level security policy (USING expression) for table \"{}\"",
                        table.name
                    ),
                )),
                (true, true) => Err(upsert.refused("a policy or a trigger of the table leaves the row as it is")),
            };
        }
        self.note_written(&upsert, found.group, found.remainder, kept)
    }

    /// The row gets another distribution column: it goes, and comes back where it belongs then.
    async fn move_found(
        &mut self,
        upsert: &Upsert<'_>,
        table: &Table,
        found: &Found,
        set: &[(&str, Option<Option<Bytes>>)],
        remainder: usize,
    ) -> Result<Vec<Bytes>> {
        if table.has_triggers || table.row_security || table.is_referenced || !table.local_keys.is_empty() {
            let key = table.key_column().map_or("", |k| k.name.as_str());
            return Err(Failure::refused(format!(
                "cannot modify the distribution column \"{key}\" of table \"{}\"",
                table.name
            ))
            .detail("The table has triggers, policies, or foreign keys to it."));
        }
        let columns: Vec<&Column> = table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).collect();
        let names: Vec<String> = columns.iter().map(|c| quote_ident(&c.name)).collect();
        let texts: Vec<String> = names.iter().map(|n| format!("{n}::pg_catalog.text")).collect();
        let delete = format!(
            "DELETE FROM {} WHERE ctid = {} AND tableoid = {} RETURNING {}",
            upsert.relation,
            quote_literal(&found.ctid),
            found.partition,
            texts.join(", ")
        );
        self.write_on(found.group, table).await?;
        let mut gone = Vec::new();
        self.with_values(found.group, &delete, Rows::Keep(&mut gone)).await?;
        let Some(raw) = gone.pop() else { return Ok(Vec::new()) };
        let values = fields_of(&Frame { raw })?;
        let list: Vec<String> = values
            .iter()
            .zip(&columns)
            .map(|(value, column)| match set.iter().find(|(name, _)| *name == column.name) {
                Some((_, Some(assigned))) => literal_of(assigned.as_ref()),
                Some((_, None)) => "DEFAULT".to_owned(),
                None => literal_of(value.as_ref()),
            })
            .collect();
        let sql = format!(
            "INSERT INTO {} AS moved ({}) OVERRIDING SYSTEM VALUE VALUES ({}) {}",
            upsert.relation,
            names.join(", "),
            list.join(", "),
            returning(table, "moved")
        );
        let group = table.shards().get(remainder).map(|s| s.group).ok_or_else(not_understood)?;
        self.write_on(group, table).await?;
        let mut kept = Vec::new();
        self.with_values(group, &sql, Rows::Keep(&mut kept)).await?;
        self.note_written(upsert, group, remainder, kept)
    }

    /// Rows as `returning` gives them, without their places: a row that is proposed later must not meet them.
    fn note_written(
        &mut self,
        upsert: &Upsert<'_>,
        group: GroupId,
        remainder: usize,
        rows: Vec<Bytes>,
    ) -> Result<Vec<Bytes>> {
        let change = self.cursors.changes.inserting(upsert.relation);
        let mut written = Vec::with_capacity(rows.len());
        for raw in rows {
            let fields = fields_of(&Frame { raw })?;
            let [row, Some(partition), Some(ctid)] = fields.as_slice() else { return Err(not_understood()) };
            let place = place_of(&String::from_utf8_lossy(partition), &String::from_utf8_lossy(ctid));
            self.cursors.changes.row_written(&change, remainder, group, place);
            written.push(row_of(row.as_deref()));
        }
        Ok(written)
    }

    /// An error of the query that tells what is to become of a row: a name in it is a variable of the function's.
    pub(crate) fn names_a_variable(&self, fields: &ErrorFields) -> Option<Failure> {
        let relation = self.cursors.changes.asked.as_deref()?;
        let is_name = matches!(fields.sqlstate(), "42703" | "42P01");
        let head = fields.get(b'q').and_then(|query| query.split_once('\n')).map_or("", |(head, _)| head);
        let is_asked = head.starts_with("-- ") && head.contains(" inner ");
        let upsert = Upsert { relation, now: "", is_inner: true, tells: false };
        (is_name && is_asked).then(|| upsert.refused(&format!("{} there", fields.message())))
    }

    /// The statement, with an INSERT into that table.
    async fn written(&mut self, upsert: &Upsert<'_>, text: &str) -> Result<Written> {
        let table = self.named_table(upsert.relation)?;
        // Without ON CONFLICT any text will do.
        let text =
            if text == "INSERT" { format!("INSERT INTO {} VALUES (1)", upsert.relation) } else { text.to_owned() };
        let statement = pgherd_sql::split(&text).ok().and_then(|mut s| (s.len() == 1).then(|| s.remove(0)));
        let statement = statement.ok_or_else(|| upsert.refused("it is part of another statement"))?;
        let ctes = ctes_of(&statement.tree);
        let trees = ctes.iter().map(|cte| &cte.tree).enumerate().map(|(at, tree)| (Some(at), tree));
        let inserts: Vec<(Option<usize>, &Relation)> = trees
            .chain([(None, &statement.tree)])
            .filter_map(|(at, tree)| match tree {
                Tree::Insert(insert) => Some((at, &insert.target)),
                _ => None,
            })
            .collect();
        // A name without a schema may be that of another table.
        let may_be = |target: &Relation| {
            target.name == table.name && target.schema.as_ref().is_none_or(|schema| *schema == table.schema)
        };
        let mut found: Vec<Option<usize>> =
            inserts.iter().filter(|(_, target)| may_be(target)).map(|(at, _)| *at).collect();
        if found.is_empty() {
            for (at, target) in inserts {
                if self.shows_columns_of(target, &table).await? {
                    found.push(at);
                }
            }
        }
        match found.as_slice() {
            [cte] => {
                let written = Written { table, cte: *cte, statement };
                Ok(if upsert.is_inner { written.without_variables()? } else { written })
            }
            [] => Err(upsert.refused("it is part of another statement")),
            _ => Err(upsert.refused("the statement inserts into tables of this name more than once")),
        }
    }

    /// Whether a name is a view that shows columns of a table, by their own names, and leaves out no row: what is said
    /// of the view's columns is then said of the table's.
    async fn shows_columns_of(&mut self, target: &Relation, table: &Table) -> Result<bool> {
        let known = (target.schema.clone(), target.name.clone(), table.oid);
        if let Some(shows) = self.cursors.views.get(&known) {
            return Ok(*shows);
        }
        let schema = target.schema.as_ref().map(|schema| format!(" AND n.nspname = {}", quote_literal(schema)));
        let sql = format!(
            "SELECT CASE WHEN c.relkind = 'v' AND c.reloptions IS NULL THEN pg_catalog.pg_get_viewdef(c.oid) END \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relname = {}{} AND EXISTS (SELECT FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_depend d \
                 ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid \
                 WHERE r.ev_class = c.oid AND d.refobjid = {})",
            quote_literal(&target.name),
            schema.unwrap_or_default(),
            table.oid
        );
        let found = self.lease_aside(COORDINATOR_GROUP).await?.query(&sql).await?;
        let shows = (0..found.rows.len()).all(|row| found.text(row, 0).is_some_and(shows_own_columns));
        let shows = shows && !found.rows.is_empty();
        self.cursors.views.insert(known, shows);
        Ok(shows)
    }

    /// What the coordinator is to compute, over the row that is there and the proposed one.
    fn query_of(&self, upsert: &Upsert<'_>, written: &Written, conflict: &OnConflict) -> Result<Computed> {
        let (table, statement) = (&written.table, &written.statement);
        let insert = written.insert().ok_or_else(not_understood)?;
        self.check_names(upsert, written, insert, conflict)?;
        let text = statement.text.as_str();
        let mut edits = Edits::new();
        let mut unknown = None;
        statement.tree.walk_all(&mut |_, e| match &e.kind {
            ExprKind::Param(number) => {
                let value = self.cursors.values.get(usize::from(*number).wrapping_sub(1)).filter(|_| !upsert.is_inner);
                match value {
                    Some(value) => drop(edits.replace(e.span, value.as_str())),
                    None => unknown = Some(e.span),
                }
            }
            ExprKind::Column(path) if path.len() == 3 && path[1] == insert.target.reference_name() => {
                let column = format!("{}.{}", quote_ident(&path[1]), quote_ident(&path[2]));
                edits.replace(e.span, column);
            }
            _ => {}
        });
        let taken = |span: Span| match unknown.filter(|at| span.contains(*at)) {
            Some(at) => Err(upsert.refused(&format!("{} is the function's", at.of(text)))),
            None => Ok(edits.apply_to(text, span)?.as_written()),
        };
        let mut values: Vec<String> = Vec::new();
        let mut subqueries = String::new();
        let mut rest = conflict.set.as_slice();
        while let Some(first) = rest.first() {
            let width = match (&first.value.kind, first.multi) {
                (ExprKind::Sublink(_), true) => {
                    rest.iter().take_while(|a| a.multi && a.value.span == first.value.span).count()
                }
                (_, true) => 0,
                (_, false) => 1,
            };
            let (same, others) = rest.split_at(width);
            if same.is_empty() || same.iter().any(|a| a.indirection) || !first.value.span.is_known() {
                return Err(upsert.refused("it assigns a part of a column"));
            }
            rest = others;
            let number = values.len() + 1;
            for (at, assignment) in (1..).zip(same) {
                let column = table.column(&assignment.column).ok_or_else(not_understood)?;
                let is_key = table.key_column().is_some_and(|k| k.name == column.name);
                if !is_computed(&assignment.value, column) {
                    continue;
                }
                let value = match (&assignment.value.kind, default_sql(column)) {
                    _ if assignment.multi => format!("pgherd_values_{number}.pgherd_c{at}"),
                    (ExprKind::Default, Some(sql)) => {
                        let now = self.txn.now.as_deref();
                        now.and_then(|now| {
                            pgherd_planner::default_at(&sql, pgherd_planner::Now::Text(now), &self.catalog())
                        })
                        .unwrap_or(sql)
                    }
                    _ => taken(assignment.value.span)?,
                };
                values.push(format!("({value}\n)::{}", evaluation_type(column, is_key)));
            }
            if let (ExprKind::Sublink(link), true) = (&first.value.kind, first.multi) {
                subqueries.push_str(&row_of_values(&taken(link.query.span)?, number, width));
            }
        }
        let filter = conflict.filter.as_ref().map(|filter| taken(filter.span)).transpose()?;
        let rest = match (subqueries.is_empty(), filter) {
            (true, None) => String::new(),
            (true, Some(filter)) => format!(" WHERE ({filter}\n)"),
            // Not asked where the condition does not hold.
            (false, filter) => format!(
                " CROSS JOIN LATERAL (SELECT ({}\n) OFFSET 0) AS pgherd_chosen (pgherd_holds){subqueries} \
                 WHERE pgherd_chosen.pgherd_holds",
                filter.as_deref().unwrap_or("true")
            ),
        };
        let values = values.iter().map(|value| format!(", {value}")).collect();
        Ok(Computed { values, rest })
    }

    /// Names in the clause must be the coordinator's to know: not those of a function's variables, or of the
    /// statement's CTEs.
    fn check_names(
        &self,
        upsert: &Upsert<'_>,
        written: &Written,
        insert: &Insert,
        conflict: &OnConflict,
    ) -> Result<()> {
        let (table, statement) = (&written.table, &written.statement);
        let target = insert.target.reference_name();
        let mut found = None;
        for expr in clause(conflict) {
            expr.walk(&mut |e| {
                let ExprKind::Column(path) = &e.kind else { return };
                let [first, rest @ ..] = path.as_slice() else { return };
                let is_row = first == "excluded" || first == target;
                let is_schema = *first == table.schema && rest.first().is_some_and(|n| n == target);
                if !(is_row || is_schema || rest.is_empty() && table.column(first).is_some()) {
                    found = Some(format!("\"{}\" is no column of the table", path.join(".")));
                }
                const SYSTEM: &[&str] = &["ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];
                if path.last().is_some_and(|name| SYSTEM.contains(&name.as_str())) {
                    found = Some(format!("\"{}\" is a system column", path.join(".")));
                }
            });
        }
        let ctes = insert.with.iter().flat_map(|with| &with.ctes).chain(ctes_of(&statement.tree));
        let ctes: Vec<&str> = ctes.map(|cte| cte.name.as_str()).collect();
        let reads_cte = |r: &Relation| {
            let is_in_clause = !r.full_span.is_known() || conflict.span.contains(r.full_span);
            r.schema.is_none() && ctes.contains(&r.name.as_str()) && is_in_clause
        };
        if statement.relations.iter().any(reads_cte) {
            found = Some("it reads a common table expression".to_owned());
        }
        found.map_or(Ok(()), |reason| Err(upsert.refused(&reason)))
    }

    /// A worker may run this INSERT of one row as it is.
    fn is_for_worker(&mut self, sql: &str) -> Result<bool> {
        let own = pgherd_sql::split(sql).ok().and_then(|mut s| s.pop()).ok_or_else(not_understood)?;
        let (catalog, path) = (self.catalog(), ["pg_catalog".to_owned()]);
        Ok(matches!(self.plan_statement(&own, &catalog, &path, true).tier, Tier::Route(_)))
    }

    /// The worker of a row, joined, and its key's remainder.
    async fn shard_of_row(&mut self, upsert: &Upsert<'_>, table: &Table, sql: &str) -> Result<(GroupId, usize)> {
        let own = pgherd_sql::split(sql).ok().and_then(|mut s| s.pop()).ok_or_else(not_understood)?;
        let (catalog, path) = (self.catalog(), ["pg_catalog".to_owned()]);
        let plan = self.plan_statement(&own, &catalog, &path, true);
        let Tier::Route(route) = &plan.tier else { return Err(upsert.refused(&plan.reason)) };
        let remainder = self.remainder_of_stored(&route.table, &route.key, None).await?;
        let group = table.shards().get(remainder).map(|s| s.group).ok_or_else(not_understood)?;
        self.write_on(group, table).await?;
        Ok((group, remainder))
    }

    pub(crate) async fn write_on(&mut self, group: GroupId, table: &Table) -> Result<()> {
        self.join(group).await?;
        if let Some(epoch) = self.catalog().placement_epoch(table.colocation) {
            self.fence(group, table.colocation, epoch);
        }
        self.mark_writer(group);
        Ok(())
    }

    /// An INSERT of one shard; the rows that it returns.
    async fn run_on_shard(
        &mut self,
        upsert: &Upsert<'_>,
        table: &Table,
        sql: &str,
        returning: &str,
    ) -> Result<Vec<Bytes>> {
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
        self.write_on(group, table).await?;
        let mut kept = Vec::new();
        let sql = format!("{}\n{returning}", route.sql.as_written());
        self.with_values(group, &sql, Rows::Keep(&mut kept)).await?;
        self.note_written(upsert, group, remainder, kept)
    }
}

/// SQL for the coordinator.
struct Computed {
    /// Each behind a comma.
    values: String,
    /// What stands behind the two rows: subqueries that give several values, and the condition.
    rest: String,
}

/// The row for which the condition of a worker's ON CONFLICT was asked: its partition and place, itself, and the
/// proposed one.
const FOUND: &str = "SELECT f[1], f[2], f[3], f[4], pg_catalog.set_config('pgherd.found', '', true) FROM (SELECT \
                     nullif(pg_catalog.current_setting('pgherd.found', true), '')::pg_catalog.text[] AS f OFFSET 0) s";

fn row_text(table: &Table, alias: &str) -> String {
    let list: Vec<String> = table.columns.iter().map(|c| format!("{alias}.{}", quote_ident(&c.name))).collect();
    format!("ROW({})::pg_catalog.text", list.join(", "))
}

/// `(a, b) = (SELECT …)`: a row at the most.
fn row_of_values(query: &str, number: usize, width: usize) -> String {
    let names: Vec<String> = (1..=width).map(|at| format!("pgherd_c{at}")).collect();
    format!(
        " LEFT JOIN LATERAL (SELECT *, CASE WHEN pgherd_count > 1 THEN \
         (SELECT pgherd_count UNION ALL SELECT pgherd_count) END AS pgherd_one \
         FROM (SELECT *, pg_catalog.count(*) OVER () AS pgherd_count FROM ({query}\n) AS pgherd_query ({}) \
         WHERE pgherd_chosen.pgherd_holds) AS pgherd_counted) AS pgherd_values_{number} \
         ON pgherd_values_{number}.pgherd_one IS NULL",
        names.join(", ")
    )
}

fn returning(table: &Table, alias: &str) -> String {
    format!("RETURNING {}, {alias}.tableoid, {alias}.ctid", row_text(table, alias))
}

fn place_of(partition: &str, ctid: &str) -> String {
    format!("{partition} {ctid}")
}

fn ctes_of(tree: &Tree) -> &[Cte] {
    let with = match tree {
        Tree::Query(query) => &query.with,
        Tree::Insert(insert) => &insert.with,
        Tree::Update(update) => &update.with,
        Tree::Delete(delete) => &delete.with,
        Tree::Merge(merge) => &merge.with,
        Tree::Utility => &None,
    };
    with.as_ref().map_or(&[], |with| &with.ctes)
}

/// A row that the statement has written may be met by one that it proposes later, without the coordinator seeing the
/// same: the condition may leave it out, or it may have been changed in what they have in common.
fn may_meet_unseen(conflict: &OnConflict, table: &Table) -> bool {
    let arbiter =
        conflict.columns.as_ref().filter(|_| conflict.constraint.is_none() && conflict.infer_filter.is_none());
    let stays = |columns: &Vec<String>| !conflict.set.iter().any(|a| columns.contains(&a.column));
    conflict.filter.is_some() || table.has_triggers || !arbiter.is_some_and(stays)
}

fn literal_of(value: Option<&Bytes>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |v| quote_literal(&String::from_utf8_lossy(v)))
}

/// False: the worker gives the column its default, which is not a matter of time or sequences.
fn is_computed(value: &Expr, column: &Column) -> bool {
    !matches!(value.kind, ExprKind::Default) || default_sql(column).is_some()
}

fn clause(conflict: &OnConflict) -> impl Iterator<Item = &Expr> {
    conflict.infer_filter.iter().chain(&conflict.filter).chain(conflict.set.iter().map(|a| &a.value))
}

/// The clause has a subquery.
fn reads_tables(conflict: &OnConflict) -> bool {
    let mut found = false;
    clause(conflict)
        .for_each(|e| e.walk(&mut |e| found |= matches!(e.kind, ExprKind::Sublink(_) | ExprKind::Unknown(_))));
    found
}

/// Something in the clause may be a user's volatile function: what that reads is not what the statement reads.
fn calls_volatile(conflict: &OnConflict, catalog: &Snapshot) -> bool {
    let mut found = false;
    let mut look = |e: &Expr| {
        found |= match &e.kind {
            ExprKind::Call(call) => {
                call.schema.as_deref() != Some("pg_catalog") && catalog.volatile_user_functions.contains(&call.name)
            }
            ExprKind::Op(op) => catalog.user_operators.contains(&op.name),
            ExprKind::Unknown(_) => !catalog.volatile_user_functions.is_empty(),
            _ => false,
        };
    };
    for expr in clause(conflict) {
        expr.walk_deep(&mut look);
    }
    found
}

/// The distribution column may get another value.
fn moves(insert: &Insert, conflict: &OnConflict, table: &Table) -> bool {
    let Some(key) = table.key_column() else { return false };
    let same = |value: &Expr| {
        matches!(&value.kind, ExprKind::Column(path) if matches!(path.as_slice(), [qualifier, column]
            if *column == key.name && (qualifier == "excluded" || qualifier == insert.target.reference_name())))
    };
    conflict.set.iter().any(|a| a.column == key.name && !same(&a.value))
}

/// The clause must mean the same outside of the function: it names columns of the table and of the proposed row.
fn names_rows_only(insert: &Insert, conflict: &OnConflict, table: &Table) -> std::result::Result<(), String> {
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
    clause(conflict).for_each(&mut check);
    found.map_or(Ok(()), Err)
}
