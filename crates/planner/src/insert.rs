//! INSERT into distributed and reference tables: which row goes where, and what the coordinator must compute first
//! (sequences, and expressions that decide the place or that a worker must not evaluate).

use std::sync::Arc;

use pgherd_catalog::{Column, ColumnDefault, Snapshot, Table};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Overlap, Splice};

use crate::analysis::Node;
use crate::context::{Context, qualified, quote_ident, quote_literal};
use crate::given::may_be_given;
use crate::modify::{is_same_column, names_old_rows, sets_to_sequence};
use crate::plan::*;
use crate::safety::Now;
use crate::spread::Spread;
use crate::{literal, moments, safety};

/// How a column gets its value in this statement when the row gives none.
enum Source {
    /// The worker's own default, or NULL.
    Worker,
    /// Evaluated on the coordinator.
    Coordinator(String),
}

/// The SQL of a column's default; none: it has none, or is computed from other columns.
pub fn default_sql(column: &Column) -> Option<String> {
    match &column.default {
        ColumnDefault::Expression { sql, .. } => Some(sql.clone()),
        _ => match default_of(column, false) {
            Source::Coordinator(sql) => Some(sql),
            Source::Worker => None,
        },
    }
}

fn default_of(column: &Column, is_key: bool) -> Source {
    match &column.default {
        ColumnDefault::Sequence { sql } => Source::Coordinator(sql.clone()),
        ColumnDefault::Identity { sequence, .. } => {
            Source::Coordinator(format!("pgherd.next_identity({}::pg_catalog.regclass)", quote_literal(sequence)))
        }
        ColumnDefault::Expression { sql, .. } if is_key => Source::Coordinator(sql.clone()),
        _ => Source::Worker,
    }
}

/// The type in which the coordinator evaluates a field: without the column's modifier, which the INSERT itself applies
/// (an explicit cast would cut a string where an assignment is an error), except where it rounds a key.
pub fn evaluation_type(column: &Column, is_key: bool) -> String {
    match column.type_oid {
        1042 => "pg_catalog.bpchar".to_owned(),
        1560 => "pg_catalog.bit".to_owned(),
        1562 | 1043 => column.base_type_name.clone(),
        // Of a domain.
        _ if matches!(column.base_type_name.as_str(), "character varying" | "bpchar" | "bit varying" | "\"bit\"") => {
            column.base_type_name.clone()
        }
        _ if is_key => column.type_name.clone(),
        _ => column.base_type_name.clone(),
    }
}

impl Context<'_> {
    pub fn insert(&self, insert: &Insert) -> Plan {
        let Some(table) = self.target() else { return self.federate("a local table is written") };
        if let Some(plan) = self.check_insert(insert, &table) {
            return plan;
        }
        if table.is_reference() {
            return self.insert_reference(insert, &table);
        }
        if insert.with.is_some() || !self.analysis.modifying.is_empty() {
            return self.insert_with(insert, &table);
        }
        match &insert.source {
            InsertSource::Query(query) => {
                let row = self.row_of(query).map(|row| self.insert_rows(insert, &[row], &table));
                match row.filter(|plan| matches!(plan.tier, Tier::Route(_))) {
                    Some(plan) => plan,
                    None => self.insert_query(insert, query, &table),
                }
            }
            InsertSource::Values(rows) => self.insert_rows(insert, rows, &table),
            InsertSource::DefaultValues => self.insert_rows(insert, &[Vec::new()], &table),
        }
    }

    /// The one row of a SELECT without tables and conditions.
    fn row_of(&self, query: &Query) -> Option<Vec<Expr>> {
        let Body::Select(select) = &query.body else { return None };
        let in_brackets = self.text().get(..query.span.start).is_none_or(|before| before.trim_end().ends_with('('));
        let plain = !in_brackets
            && query.with.is_none()
            && query.order_by.is_empty()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.row_locks.is_empty()
            && !query.into
            && matches!(select.distinct, Distinct::No)
            && select.from.is_empty()
            && select.filter.is_none()
            && select.group_by.is_empty()
            && select.having.is_none()
            && select.windows.is_empty();
        let is_value = |expr: &Expr| {
            let mut found = !matches!(expr.kind, ExprKind::Star(_));
            expr.walk(&mut |e| match &e.kind {
                ExprKind::Call(call) => found &= !self.analysis.is_aggregate(call) && call.over.is_none(),
                ExprKind::Sublink(_) | ExprKind::Grouping(_) | ExprKind::Unknown(_) => found = false,
                _ => {}
            });
            found
        };
        (plain && select.items.iter().all(|item| is_value(&item.expr)))
            .then(|| select.items.iter().map(|item| item.expr.clone()).collect())
    }

    /// The coordinator reports the statement's error.
    fn let_coordinator_report(&self) -> Plan {
        let tier = |sql| Tier::Coordinator { sql, in_block: false, rides: false };
        self.with_coordinator_sql(tier, "the coordinator reports the error")
    }

    /// Target columns in the order of the values. None: a name is unknown or there are too many values.
    fn target_columns<'t>(&self, insert: &Insert, table: &'t Table, width: Option<usize>) -> Option<Vec<&'t Column>> {
        if insert.columns.is_empty() {
            let width = width.unwrap_or(table.columns.len());
            return table.columns.get(..width).map(|list| list.iter().collect());
        }
        let columns: Vec<&Column> =
            insert.columns.iter().map(|(name, _)| table.column(name)).collect::<Option<Vec<_>>>()?;
        if width.is_some_and(|w| w > columns.len()) {
            return None;
        }
        Some(columns)
    }

    /// What is wrong whatever the source is.
    fn check_insert(&self, insert: &Insert, table: &Arc<Table>) -> Option<Plan> {
        let returns = |column: &str| {
            let is_it = |e: &Expr| match &e.kind {
                ExprKind::Column(path) => path.last().is_some_and(|c| c == column),
                _ => false,
            };
            let mut found = false;
            insert.returning.iter().for_each(|item| item.expr.walk(&mut |e| found |= is_it(e)));
            found
        };
        if !table.is_reference() && returns("ctid") {
            return Some(self.refuse(
                format!("cannot return ctid of rows that are inserted into the distributed table \"{}\"", table.name),
                None,
                Some("Select it afterwards."),
            ));
        }
        // Only the coordinator knows by which number a table goes there.
        if !table.is_reference() && returns("tableoid") {
            // It would know of no row that is there already.
            if names_old_rows(&insert.returning) && insert.on_conflict.as_ref().is_some_and(|conflict| conflict.update)
            {
                return Some(self.refuse(
                    format!(
                        "cannot return tableoid and old rows of ON CONFLICT on distributed table \"{}\"",
                        table.name
                    ),
                    None,
                    Some("Leave out tableoid, or select it afterwards."),
                ));
            }
            return Some(self.insert_from_coordinator(table, "RETURNING tableoid"));
        }
        if let Some(key) = table.key_column() {
            if insert.columns.iter().any(|(name, part)| *part && *name == key.name) {
                return Some(self.refuse(
                    format!("cannot insert a part of the distribution column \"{}\"", key.name),
                    None,
                    None,
                ));
            }
            if let Some(conflict) = insert.on_conflict.as_ref().filter(|c| c.update) {
                if let Some(plan) = self.identity_is_set(&conflict.set, table) {
                    return Some(plan);
                }
                if sets_to_sequence(&conflict.set, table) {
                    let reason = "ON CONFLICT sets a column to a default that needs the coordinator";
                    return Some(self.insert_from_coordinator(table, reason));
                }
                for assignment in conflict.set.iter().filter(|a| a.column == key.name) {
                    if !is_same_column(&assignment.value, &key.name, &self.statement.tree) {
                        return Some(self.insert_from_coordinator(table, "the distribution column is modified"));
                    }
                }
            }
        }
        None
    }

    /// The coordinator runs the statement, and its triggers pass the rows on.
    fn insert_from_coordinator(&self, table: &Table, reason: &str) -> Plan {
        if self.session.callback {
            return self.refuse(
                format!("cannot run this INSERT into the distributed table \"{}\"", table.name),
                Some(format!("A worker cannot evaluate it: {reason}.")),
                None,
            );
        }
        self.federate(reason)
    }

    pub(crate) fn generated_always(&self, column: &Column, detail: String, hint: Option<&str>) -> Plan {
        let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
        let refusal = Refusal {
            sqlstate: "428C9",
            message: message.clone(),
            detail: Some(detail),
            hint: hint.map(str::to_owned),
        };
        self.plan(Tier::Refuse(refusal), message)
    }

    /// The key of a row that the coordinator has made: it is as it will be stored.
    fn as_stored(&self, expr: &Expr) -> Option<KeyValue> {
        match &expr.kind {
            ExprKind::Const(Const::String(text)) if self.session.callback => Some(KeyValue::Literal(text.clone())),
            _ => None,
        }
    }

    fn insert_rows(&self, insert: &Insert, rows: &[Vec<Expr>], table: &Arc<Table>) -> Plan {
        self.unless_broken(self.try_insert_rows(insert, rows, table))
    }

    fn try_insert_rows(&self, insert: &Insert, rows: &[Vec<Expr>], table: &Arc<Table>) -> Result<Plan, Overlap> {
        let width = rows.first().map_or(0, Vec::len);
        let is_default_values = matches!(insert.source, InsertSource::DefaultValues);
        let Some(mut columns) = self.target_columns(insert, table, Some(width)) else {
            return Ok(self.let_coordinator_report());
        };
        if columns.len() != width && !is_default_values || rows.iter().any(|r| r.len() != width) {
            return Ok(self.let_coordinator_report());
        }
        if is_default_values {
            columns.clear();
        }
        let Some(key) = table.key_column() else { return Ok(self.federate("no distribution column")) };
        if self.analysis.has_parts_unknown || !self.names_are_known() {
            return Ok(self.insert_from_coordinator(table, "a construct in it is not understood"));
        }
        if rows.iter().flatten().any(|value| self.returns_set(value)) {
            return Ok(self.insert_from_coordinator(table, "a set-returning function makes rows of the values"));
        }
        // Columns that the statement leaves out but that need a value from the coordinator.
        let given = columns.len();
        let mut appended = Vec::new();
        // The parameter that the key is.
        let mut appended_key = None;
        for column in &table.columns {
            if columns.iter().any(|c| c.name == column.name) {
                continue;
            }
            let is_key = column.name == key.name;
            let sql = match (default_of(column, is_key), &column.default) {
                (Source::Coordinator(sql), _) => sql,
                // One time for all rows, whichever worker they go to.
                (Source::Worker, ColumnDefault::Expression { sql, immutable: false })
                    if (rows.len() > 1 || self.session.multi_statement_txn_now.is_some()) && default_reads_now(sql) =>
                {
                    sql.clone()
                }
                _ => continue,
            };
            columns.push(column);
            let fixed = match self.given.as_ref().and_then(|given| given.drawn(column)) {
                Some(number) => {
                    appended_key = appended_key.or(is_key.then_some(number));
                    Some(format!("${number}"))
                }
                None => self.fixed_default(&sql).filter(|_| !is_key),
            };
            appended.push(match fixed {
                Some(text) => {
                    let mut splice = Splice::default();
                    splice.push_text(&text, None);
                    Field::Text(splice)
                }
                None => Field::Evaluate { sql, type_name: evaluation_type(column, is_key) },
            });
        }
        let key_at = columns.iter().position(|c| c.name == key.name);
        // RETURNING and ON CONFLICT run on the workers as they stand.
        if let Some(reason) = self.tail_reason(insert) {
            return Ok(self.insert_from_coordinator(table, &format!("ON CONFLICT or RETURNING: {reason}")));
        }
        let many = rows.len() > 1;
        // One time for all rows, and the transaction's.
        let fixed = many || self.session.multi_statement_txn_now.is_some();
        let default_of_time = |column: &Column| time_default(column).filter(|_| fixed).map(str::to_owned);
        let worker = self.worker_edits();
        let coordinator = self.coordinator_edits();
        let text = self.text();
        let mut needs_coordinator = false;
        // A value stands where the text says DEFAULT.
        let mut is_replaced = false;
        let (mut computes, mut computes_part) = (false, false);
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let mut fields = Vec::with_capacity(columns.len());
            let mut row_key = match (key_at, appended_key) {
                (None, _) => Some(RowKey::Value(KeyValue::Null)),
                (Some(_), Some(number)) => Some(RowKey::Value(KeyValue::Param(number))),
                (Some(_), None) => None,
            };
            for (at, (expr, column)) in row.iter().zip(&columns).enumerate() {
                let is_key = Some(at) == key_at;
                let ignored =
                    insert.overriding == Overriding::User && matches!(column.default, ColumnDefault::Identity { .. });
                let is_default = matches!(expr.kind, ExprKind::Default) || ignored;
                if !is_default
                    && insert.overriding != Overriding::System
                    && let ColumnDefault::Identity { always: true, .. } = column.default
                {
                    return Ok(self.generated_always(
                        column,
                        format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name),
                        Some("Use OVERRIDING SYSTEM VALUE to override."),
                    ));
                }
                if !is_default && matches!(column.default, ColumnDefault::Generated) {
                    return Ok(self.generated_always(
                        column,
                        format!("Column \"{}\" is a generated column.", column.name),
                        None,
                    ));
                }
                let evaluate = |sql: String| Field::Evaluate { sql, type_name: evaluation_type(column, is_key) };
                let field = if is_default {
                    let drawn = self.given.as_ref().and_then(|given| given.drawn(column));
                    match default_of(column, is_key) {
                        Source::Coordinator(_) if let Some(number) = drawn => {
                            if is_key {
                                row_key = Some(RowKey::Value(KeyValue::Param(number)));
                            }
                            is_replaced = true;
                            let mut splice = Splice::default();
                            splice.push_text(&format!("${number}"), None);
                            Field::Text(splice)
                        }
                        Source::Coordinator(sql) => evaluate(sql),
                        Source::Worker => {
                            if is_key {
                                row_key = Some(RowKey::Value(KeyValue::Null));
                            }
                            let mut splice = Splice::default();
                            match default_of_time(column) {
                                Some(sql) => match self.fixed_default(&sql) {
                                    Some(text) => {
                                        is_replaced = true;
                                        splice.push_text(&text, None);
                                        Field::Text(splice)
                                    }
                                    None => evaluate(sql),
                                },
                                None => {
                                    splice.push_text("DEFAULT", Some(expr.span.start));
                                    Field::Text(splice)
                                }
                            }
                        }
                    }
                } else {
                    let stored = match is_key {
                        true => literal::stored_value(expr, column, self.snapshot).or_else(|| self.as_stored(expr)),
                        false => None,
                    };
                    let local = match (is_key, &stored) {
                        (true, None) => false,
                        (true, Some(_)) => true,
                        (false, _) => {
                            safety::field_reason(expr, &self.names()).is_none()
                                && (!many || !reads_now(expr, text) || self.session.multi_statement_txn_now.is_some())
                        }
                    };
                    if let Some(value) = stored {
                        row_key = Some(RowKey::Value(value));
                    }
                    if local {
                        Field::Text(worker.apply_to(text, expr.span)?)
                    } else {
                        computes = true;
                        computes_part |= insert.columns.get(at).is_some_and(|(_, part)| *part);
                        evaluate(coordinator.apply_to(text, expr.span)?.as_written())
                    }
                };
                needs_coordinator |= matches!(field, Field::Evaluate { .. });
                fields.push(field);
            }
            needs_coordinator |= appended.iter().any(|f| matches!(f, Field::Evaluate { .. }));
            fields.extend(appended.iter().cloned());
            let key = row_key.unwrap_or(RowKey::Computed { field: key_at.unwrap_or(0) });
            out.push(InsertRow { key, fields });
        }
        if computes_part {
            return Ok(self.insert_parts(insert, table));
        }
        // A row's default gives the time, unless that is fixed and stands there by now.
        let is_given = |c: &Column, row: &[Expr]| {
            let at = columns[..given].iter().position(|given| given.name == c.name);
            at.and_then(|at| row.get(at)).is_some_and(|value| !matches!(value.kind, ExprKind::Default))
        };
        let mut times = table.columns.iter().filter(|c| time_default(c).is_some());
        let by_default = times.any(|c| rows.iter().any(|row| !is_given(c, row)));
        if let ([InsertRow { key: RowKey::Value(value), .. }], false) =
            (out.as_slice(), needs_coordinator || is_replaced)
            && appended.is_empty()
        {
            let mut plan = self.route(table.clone(), value.clone());
            plan.reason = format!("one row with a known {}", key.name);
            // In a transaction over several servers the default's time is the transaction's.
            plan.uses_now |= by_default;
            return Ok(plan);
        }
        // Text up to VALUES with an explicit column list.
        let mut edits = Edits::new();
        edits.table(insert.target.full_span, table.oid, qualified(table));
        let names: Vec<String> = if insert.columns.is_empty() {
            columns.iter().map(|c| quote_ident(&c.name)).collect()
        } else {
            let list = insert.columns_span.map_or("", |s| s.of(text));
            let inner = list.trim_start_matches('(').trim_end_matches(')').to_owned();
            std::iter::once(inner).chain(columns.iter().skip(given).map(|c| quote_ident(&c.name))).collect()
        };
        let head_end = insert.columns_span.map_or_else(|| self.before_source(insert), |s| s.start);
        let mut head = edits.apply_to(text, Span::new(0, text[..head_end].trim_end().len()))?;
        if !names.is_empty() {
            head.push_text(&format!(" ({})", names.join(", ")), None);
        }
        if insert.overriding != Overriding::No
            || columns.iter().any(|c| matches!(c.default, ColumnDefault::Identity { .. }))
        {
            head.push_text(" OVERRIDING SYSTEM VALUE", None);
        }
        head.push_text(" VALUES ", None);
        let tail = insert.tail_span.map(|span| worker.apply_to(text, span)).transpose()?.unwrap_or_default();
        // What stands for a call in a select list has its name behind it.
        let renames = matches!(insert.source, InsertSource::Query(_))
            && (self.uses_now || self.statement.calls.iter().any(|(_, name)| may_be_given(name)));
        if let ([InsertRow { key: RowKey::Value(key), fields }], Some(_)) = (out.as_slice(), &self.given)
            && !needs_coordinator
            && !renames
        {
            let mut sql = head;
            for (at, field) in fields.iter().enumerate() {
                sql.push_text(if at == 0 { "(" } else { ", " }, None);
                if let Field::Text(text) = field {
                    sql.append(text.clone());
                }
            }
            sql.push_text(")", None);
            if !tail.as_written().is_empty() {
                sql.push_text(" ", None);
                sql.append(tail);
            }
            let route = Route { table: table.clone(), key: key.clone(), sql, parent_only: self.parent_only() };
            let mut plan = self.plan(Tier::Route(route), "one row with values of the router");
            plan.uses_now |= by_default;
            return Ok(plan);
        }
        let reason = match (out.len(), needs_coordinator) {
            (_, true) => "the coordinator computes a value of each row first",
            _ => "each row goes to its shard",
        };
        let rows = InsertRows {
            table: table.clone(),
            head,
            columns: match insert.columns.iter().any(|(_, part)| *part) {
                true => Vec::new(),
                false => columns.iter().map(|c| c.name.clone()).collect(),
            },
            rows: out,
            tail,
            returning: !insert.returning.is_empty(),
            needs_coordinator,
            computes,
            by_shard: self.returns_versions() && !self.parent_only(),
        };
        let mut plan = self.plan(Tier::InsertRows(rows), reason);
        // A time that has been put into it belongs to one transaction.
        plan.uses_now |= by_default && fixed;
        plan.default_time = by_default && !fixed;
        Ok(plan)
    }

    /// Where the alias ends, or the table's name.
    fn before_source(&self, insert: &Insert) -> usize {
        let text = self.text();
        let before = &text[..insert.source_span.start.min(text.len())];
        // OVERRIDING … VALUE stands between: it is written anew.
        let upper = before.to_ascii_uppercase();
        let end = match (insert.overriding, upper.rfind("OVERRIDING")) {
            (Overriding::System | Overriding::User, Some(at)) => at,
            _ => before.len(),
        };
        before[..end].trim_end().len()
    }

    fn tail_reason(&self, insert: &Insert) -> Option<String> {
        let mut exprs: Vec<&Expr> = insert.returning.iter().map(|r| &r.expr).collect();
        if let Some(conflict) = &insert.on_conflict {
            exprs.extend(conflict.infer_filter.iter().chain(conflict.filter.iter()));
            exprs.extend(conflict.set.iter().map(|a| &a.value));
        }
        exprs.into_iter().find_map(|e| safety::field_reason(e, &self.names()))
    }

    /// One row of VALUES stands for as many as its set-returning functions return.
    fn returns_set(&self, value: &Expr) -> bool {
        let mut found = false;
        value.walk(&mut |e| {
            if let ExprKind::Call(call) = &e.kind {
                found |= self.snapshot.set_returning_functions.contains(&call.name);
            }
        });
        found
    }

    /// WITH … INSERT: one shard or nothing.
    fn insert_with(&self, insert: &Insert, table: &Arc<Table>) -> Plan {
        let reason = if self.analysis.has_local {
            Some("it names a relation that is not distributed".to_owned())
        } else {
            self.unsafe_reason.clone().or_else(|| self.ctes_need_coordinator())
        };
        match (reason, self.route_key()) {
            (None, Ok((pinned, key))) if self.worker_defaults(insert, table) => {
                let mut plan = self.route(pinned, key);
                plan.uses_now |= self.leaves_time(insert, table);
                plan
            }
            (None, _) if self.analysis.modifying.is_empty() && matches!(insert.source, InsertSource::Query(_)) => {
                match &insert.source {
                    InsertSource::Query(query) => self.insert_query(insert, query, table),
                    _ => self.federate("no query"),
                }
            }
            (reason, route) => {
                let reason = reason.or(route.err());
                self.insert_from_coordinator(
                    table,
                    reason.as_deref().unwrap_or("a column's default needs the coordinator"),
                )
            }
        }
    }

    /// How many columns the source's rows have, where that is known.
    fn width_of_source(&self, insert: &Insert) -> Option<usize> {
        match &insert.source {
            InsertSource::Values(rows) => rows.first().map(Vec::len),
            InsertSource::DefaultValues => Some(0),
            InsertSource::Query(_) => self.source_outputs().map(Vec::len),
        }
    }

    /// A column that the statement leaves out gets the current time.
    fn leaves_time(&self, insert: &Insert, table: &Table) -> bool {
        let columns = self.target_columns(insert, table, self.width_of_source(insert)).unwrap_or_default();
        table.columns.iter().any(|c| !columns.iter().any(|given| given.name == c.name) && time_default(c).is_some())
    }

    /// An INSERT inside WITH may give its rows the current time.
    pub(crate) fn inserts_time_within(&self) -> bool {
        let gives_time =
            |index: usize| self.analysis.instances[index].table.columns.iter().any(|c| time_default(c).is_some());
        let target = |tree: &Tree| moments::target_of(tree, &self.analysis).filter(|_| matches!(tree, Tree::Insert(_)));
        self.analysis.modifying.iter().filter_map(|tree| target(tree)).any(gives_time)
    }

    /// No column that the statement leaves out needs the coordinator, or has to get a time that is fixed.
    fn worker_defaults(&self, insert: &Insert, table: &Table) -> bool {
        let Some(columns) = self.target_columns(insert, table, self.width_of_source(insert)) else { return false };
        let key = table.key_column().map(|c| c.name.as_str());
        let identity = |c: &&Column| matches!(c.default, ColumnDefault::Identity { .. });
        let values_have_default = match &insert.source {
            InsertSource::Values(rows) => rows.iter().flatten().any(|e| matches!(e.kind, ExprKind::Default)),
            _ => false,
        };
        let lacks_time = self.session.multi_statement_txn_now.is_some() && self.leaves_time(insert, table);
        !values_have_default
            && !lacks_time
            && !columns.iter().any(identity)
            && table.columns.iter().all(|c| {
                columns.iter().any(|given| given.name == c.name)
                    || matches!(default_of(c, Some(c.name.as_str()) == key), Source::Worker)
            })
    }

    /// A CTE's INSERT leaves nothing to the coordinator.
    pub(crate) fn cte_has_defaults(&self, insert: &Insert, table: &Table) -> bool {
        let width = match &insert.source {
            InsertSource::Values(rows) => rows.first().map(Vec::len),
            InsertSource::DefaultValues => Some(0),
            InsertSource::Query(_) if insert.columns.is_empty() => Some(0),
            InsertSource::Query(_) => None,
        };
        let Some(columns) = self.target_columns(insert, table, width) else { return false };
        let key = table.key_column().map(|c| c.name.as_str());
        let values_have_default = match &insert.source {
            InsertSource::Values(rows) => rows.iter().flatten().any(|e| matches!(e.kind, ExprKind::Default)),
            _ => false,
        };
        let fixed = self.session.multi_statement_txn_now.is_some() || self.uses_now;
        table.columns.iter().all(|column| {
            let from_worker = matches!(default_of(column, Some(column.name.as_str()) == key), Source::Worker)
                && !(fixed && time_default(column).is_some());
            let given = columns.iter().any(|given| given.name == column.name) && !values_have_default;
            match column.default {
                ColumnDefault::Identity { .. } => false,
                _ => given || from_worker,
            }
        })
    }

    /// Level of the INSERT's own query.
    fn source_level(&self) -> Option<usize> {
        let Tree::Insert(insert) = &self.statement.tree else { return None };
        let InsertSource::Query(query) = &insert.source else { return None };
        self.analysis.levels.iter().position(|l| l.query.is_some_and(|q| std::ptr::eq(q, &**query)))
    }

    fn source_outputs(&self) -> Option<&Vec<(String, Option<crate::analysis::ColumnId>)>> {
        self.analysis.levels.get(self.source_level()?)?.outputs.as_ref()
    }

    /// `INSERT INTO t (a[1], b.c)` of what the coordinator computes: it makes the rows, a trigger there passes them on.
    fn insert_parts(&self, insert: &Insert, table: &Table) -> Plan {
        if insert.tail_span.is_some() {
            return self.refuse(
                format!("cannot run this INSERT into the distributed table \"{}\"", table.name),
                Some(
                    "It has parts of columns, ON CONFLICT or RETURNING, and values that no worker computes.".to_owned(),
                ),
                None,
            );
        }
        self.federate("parts of columns are given values that the coordinator computes")
    }

    fn insert_query(&self, insert: &Insert, query: &Query, table: &Arc<Table>) -> Plan {
        self.unless_broken(self.try_insert_query(insert, query, table))
    }

    fn try_insert_query(&self, insert: &Insert, query: &Query, table: &Arc<Table>) -> Result<Plan, Overlap> {
        let width = self.source_outputs().map(Vec::len);
        if width == Some(0) {
            return Ok(self.insert_from_coordinator(table, "the query gives rows without columns"));
        }
        let Some(columns) = self.target_columns(insert, table, width) else { return Ok(self.let_coordinator_report()) };
        for column in &columns {
            let written = width.is_some() || !insert.columns.is_empty();
            if matches!(column.default, ColumnDefault::Generated) && written {
                return Ok(self.generated_always(
                    column,
                    format!("Column \"{}\" is a generated column.", column.name),
                    None,
                ));
            }
            if let (ColumnDefault::Identity { always: true, .. }, Overriding::No) = (&column.default, insert.overriding)
            {
                // An error unless the select list ends before this column.
                if written {
                    return Ok(self.generated_always(
                        column,
                        format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name),
                        Some("Use OVERRIDING SYSTEM VALUE to override."),
                    ));
                }
            }
        }
        if let Some(reason) = self.tail_reason(insert) {
            return Ok(self.insert_from_coordinator(table, &format!("ON CONFLICT or RETURNING: {reason}")));
        }
        match self.insert_on_workers(insert, query, table, &columns) {
            Ok(plan) => Ok(plan),
            // Whole columns pass the router; a part of one has a type that is not known here.
            Err(_) if insert.columns.iter().any(|(_, part)| *part) => Ok(self.insert_parts(insert, table)),
            Err(reason) => {
                let text = self.text();
                let select = self.coordinator_edits().apply_to(text, insert.source_span)?;
                let with = match &insert.with {
                    Some(_) => {
                        let start = self.before_insert_word();
                        format!("{} ", self.coordinator_edits().apply_to(text, Span::new(0, start))?.as_written())
                    }
                    None => String::new(),
                };
                let key = table.key_column().map(|c| c.name.as_str());
                // OVERRIDING USER VALUE: what the rows have for an identity column is not looked at.
                let ignored = |c: &Column| {
                    insert.overriding == Overriding::User && matches!(c.default, ColumnDefault::Identity { .. })
                };
                let given = |c: &Column| {
                    (width.is_some() || !insert.columns.is_empty())
                        && columns.iter().any(|g| g.name == c.name)
                        && !ignored(c)
                };
                let defaults = table
                    .columns
                    .iter()
                    .filter(|c| !given(c))
                    .filter_map(|c| match (default_of(c, Some(c.name.as_str()) == key), &c.default) {
                        (Source::Coordinator(sql), _) => Some((c.name.clone(), sql)),
                        (_, ColumnDefault::Expression { sql, immutable: false }) if default_reads_now(sql) => {
                            Some((c.name.clone(), self.fixed_default(sql).unwrap_or_else(|| sql.clone())))
                        }
                        _ => None,
                    })
                    .collect::<Vec<_>>();
                let reads_now = defaults.iter().any(|(name, _)| {
                    matches!(table.column(name).map(|c| &c.default), Some(ColumnDefault::Expression { .. }))
                });
                let tail = insert.tail_span.map(|span| self.worker_edits().apply_to(text, span)).transpose()?;
                // COPY is not for tables with policies.
                let tail = tail.or_else(|| table.row_security.then(Splice::default));
                let plan = InsertSelect {
                    table: table.clone(),
                    columns: columns.iter().map(|c| c.name.clone()).collect(),
                    width_known: width.is_some() || !insert.columns.is_empty(),
                    // Two WITH do not follow each other.
                    select: match insert.with.is_some() && query.with.is_some() {
                        true => format!("{with}SELECT * FROM ({}) AS pgherd_w", select.as_written()),
                        false => format!("{with}{}", select.as_written()),
                    },
                    moves: false,
                    defaults,
                    identity_is_own: insert.overriding == Overriding::User,
                    tail,
                    alias: insert.target.alias.as_ref().map(|a| a.name.clone()),
                    returning: !insert.returning.is_empty(),
                    by_shard: self.returns_versions() && !self.parent_only(),
                };
                let mut plan = self.plan(Tier::InsertSelect(plan), format!("the rows pass the router: {reason}"));
                plan.uses_now |= reads_now;
                Ok(plan)
            }
        }
    }

    fn before_insert_word(&self) -> usize {
        // The WITH clause ends where the word INSERT begins, outside brackets: the last one before the target's name.
        let Tree::Insert(insert) = &self.statement.tree else { return 0 };
        self.text()[..insert.target.full_span.start].to_ascii_uppercase().rfind("INSERT").unwrap_or(0)
    }

    /// The workers run the whole statement: every row that they select stays where it is.
    fn insert_on_workers(
        &self,
        insert: &Insert,
        query: &Query,
        table: &Arc<Table>,
        columns: &[&Column],
    ) -> std::result::Result<Plan, String> {
        if self.analysis.has_local {
            return Err("it reads a relation that is not distributed".to_owned());
        }
        if let Some(reason) = &self.unsafe_reason {
            return Err(reason.clone());
        }
        if !self.names_are_known() {
            return Err("a table's name is not found in the text".to_owned());
        }
        if !self.worker_defaults(insert, table) || insert.overriding != Overriding::No {
            return Err("a column's default needs the coordinator".to_owned());
        }
        let key = table.key_column().ok_or("no distribution column")?;
        let at = columns.iter().position(|c| c.name == key.name).ok_or("the distribution column gets its default")?;
        let level = self.source_level().ok_or("no query")?;
        let outputs = self.source_outputs().ok_or("the columns of * are not known here")?;
        let Some((_, Some(output))) = outputs.get(at) else {
            return Err("the distribution column gets a computed value".to_owned());
        };
        let source = self.analysis.column(*output).ok_or("no such column")?;
        if source.type_oid != key.type_oid || source.typmod != key.typmod || source.collation != key.collation {
            return Err("the distribution column gets another type".to_owned());
        }
        let default_time = self.leaves_time(insert, table);
        if let Ok((table, value)) = self.route_key_of_source(table, level, *output) {
            let mut plan = self.route(table, value);
            plan.uses_now |= default_time;
            return Ok(plan);
        }
        if self.returns_versions() {
            return Err("RETURNING has a system column, which only a partition gives".to_owned());
        }
        // A part of a column is the workers' to assign.
        if !insert.returning.is_empty() && self.is_sorted(level) && !insert.columns.iter().any(|(_, part)| *part) {
            return Err("RETURNING gives the rows in the order of the query".to_owned());
        }
        self.scatterable_tables()?;
        if let Some(reason) = self.time_reason(table) {
            return Err(reason);
        }
        if query.limit.is_some() || query.offset.is_some() || query.locks_rows() {
            return Err("LIMIT or row locks".to_owned());
        }
        let Body::Select(select) = &query.body else { return Err("a set operation or VALUES".to_owned()) };
        let Spread::Partitioned(anchors) = self.spread_of_from(level)? else {
            return Err("no distributed table is in FROM".to_owned());
        };
        self.whole_groups(select, &anchors, level)?;
        let facts = self.analysis.facts(self.analysis.levels[level].env);
        if !anchors.iter().any(|a| facts.same(*a, *output)) {
            return Err("the distribution column gets another column".to_owned());
        }
        if table.has_triggers {
            return Err("the table has triggers".to_owned());
        }
        if default_time && self.snapshot.groups_of(table).len() > 1 {
            return Err("a column's default is the current time, which must be the same on every server".to_owned());
        }
        let keys = self.keys_of(&anchors, level, select.filter.as_ref());
        let sql = self.worker_edits().apply(self.text())?;
        let scatter = Scatter { table: table.clone(), keys, sql, combine: Combine::Concatenate };
        let mut plan = self.plan(Tier::Scatter(scatter), "the rows stay on their workers");
        plan.default_time = default_time;
        Ok(plan)
    }

    /// Its rows, or those of a query in its FROM, have an order.
    fn is_sorted(&self, level: usize) -> bool {
        let level = &self.analysis.levels[level];
        level.query.is_some_and(|query| !query.order_by.is_empty()) || level.from.iter().any(|n| self.gives_sorted(n))
    }

    fn gives_sorted(&self, node: &Node) -> bool {
        match node {
            Node::Inline { level } | Node::Derived { level, .. } | Node::Lateral { level } => self.is_sorted(*level),
            Node::Join { left, right, .. } => self.gives_sorted(left) || self.gives_sorted(right),
            Node::Instance(_) | Node::Constant { .. } | Node::Opaque(_) => false,
        }
    }

    /// Everything that is read is pinned, and the key that is written is pinned to the same value.
    fn route_key_of_source(
        &self,
        table: &Arc<Table>,
        level: usize,
        output: crate::analysis::ColumnId,
    ) -> std::result::Result<(Arc<Table>, KeyValue), String> {
        let facts = self.analysis.facts(self.analysis.levels[level].env);
        let value = facts.pinned(output).ok_or("the key is not pinned")?;
        for index in self.analysis.distributed() {
            let instance = &self.analysis.instances[index];
            if instance.is_target {
                continue;
            }
            if !crate::context::colocated(table, instance.table) || self.analysis.pin_of(index) != Some(value) {
                return Err("not one shard".to_owned());
            }
        }
        Ok((table.clone(), value.clone()))
    }

    fn insert_reference(&self, insert: &Insert, table: &Arc<Table>) -> Plan {
        let returning = !insert.returning.is_empty();
        let width = self.width_of_source(insert);
        let Some(columns) = self.target_columns(insert, table, width) else { return self.let_coordinator_report() };
        // Columns whose value the nodes would compute by themselves.
        let given = |c: &Column| columns.iter().any(|g| g.name == c.name);
        let has_default = match &insert.source {
            InsertSource::Values(rows) => rows.iter().flatten().any(|e| matches!(e.kind, ExprKind::Default)),
            _ => false,
        };
        let same_defaults = width.is_some()
            && table.columns.iter().all(|c| {
                let stable = matches!(
                    c.default,
                    ColumnDefault::None | ColumnDefault::Generated | ColumnDefault::Expression { immutable: true, .. }
                );
                stable
                    || (given(c)
                        && !has_default
                        && !(matches!(c.default, ColumnDefault::Identity { .. })
                            && (insert.overriding != Overriding::System)))
            });
        let reason = match self.replicable() {
            Ok(()) if same_defaults => {
                return self.with_worker_sql(
                    |sql| Tier::ReplicateWrite { sql, reads: self.reads_tables() },
                    "the same rows are inserted on every node",
                );
            }
            Ok(()) => "a column's default is computed once".to_owned(),
            Err(reason) => reason,
        };
        if !self.analysis.modifying.is_empty() {
            return self.federate("a common table expression modifies a table");
        }
        let sampled = self.analysis.instances.iter().any(|i| i.sample.is_some());
        if table.has_triggers || sampled || insert.on_conflict.as_ref().is_some_and(|c| c.update) {
            return self.federate(reason);
        }
        let tier = |sql| Tier::ReplicateRows { table: table.clone(), sql, returning };
        self.with_coordinator_sql(tier, format!("the coordinator computes the rows: {reason}"))
    }
}

impl Context<'_> {
    /// A default that gives the transaction's time, with the time written into it.
    fn fixed_default(&self, sql: &str) -> Option<String> {
        default_at(sql, self.session.multi_statement_txn_now?, self.snapshot)
    }
}

/// A column's default with a value for the transaction's time, which servers would not agree on. None: it does not read
/// the time, or something else that differs.
pub fn default_at(sql: &str, now: Now<'_>, snapshot: &Snapshot) -> Option<String> {
    let statement = pgherd_sql::split(&format!("SELECT {sql}")).ok()?.pop()?;
    if !safety::uses_now(&statement)
        || safety::statement_reason(&statement, &safety::Names::written(snapshot)).is_some()
    {
        return None;
    }
    written_at(&statement, now)
}

/// A default gives each row another value, or may.
pub fn differs_by_row(sql: &str, snapshot: &Snapshot) -> bool {
    match pgherd_sql::split(&format!("SELECT {sql}")) {
        Ok(statements) => {
            statements.iter().flat_map(|s| &s.calls).any(|(_, name)| snapshot.volatile_functions.contains(name))
        }
        Err(_) => true,
    }
}

/// An expression with a value for the transaction's time, whatever else it has.
pub fn expression_at(sql: &str, now: Now<'_>) -> Option<String> {
    written_at(&pgherd_sql::split(&format!("SELECT {sql}")).ok()?.pop()?, now)
}

fn written_at(statement: &pgherd_sql::Statement, now: Now<'_>) -> Option<String> {
    let mut edits = Edits::new();
    statement.tree.walk_all(&mut |_, e| {
        if let Some(new) = safety::now_replacement(e, &statement.text, now) {
            edits.cover(e.span, new);
        }
    });
    let text = edits.apply(&statement.text).ok()?.as_written();
    text.strip_prefix("SELECT ").map(str::to_owned)
}

/// A column default, as the catalog prints it, gives the transaction's time.
pub fn default_reads_now(sql: &str) -> bool {
    match pgherd_sql::split(&format!("SELECT {sql}")) {
        Ok(statements) => statements.iter().any(safety::uses_now),
        Err(_) => true,
    }
}

/// A column's default, where that gives the transaction's time.
pub fn time_default(column: &Column) -> Option<&str> {
    match &column.default {
        ColumnDefault::Expression { sql, immutable: false } if default_reads_now(sql) => Some(sql),
        _ => None,
    }
}

fn reads_now(expr: &Expr, text: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= safety::gives_time(e, text));
    found
}
