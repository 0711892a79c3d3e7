//! INSERT of one row into a local table whose columns draw from sequences, and `SELECT nextval('s')` alone: the router
//! has drawn the values ahead, and the coordinator runs the rest like any statement that leaves nothing behind.

use pgherd_catalog::{Column, ColumnDefault};
use pgherd_sql::ast::*;
use pgherd_sql::{Splice, Statement};

use crate::context::{Context, quote_ident, quote_literal};
use crate::given::is_next_value;
use crate::insert::default_sql;
use crate::one_row::calls_set;
use crate::plan::*;

impl Context<'_> {
    /// The same plan with such values; none: they cannot be given.
    pub fn with_local_draws(&self, plan: &Plan) -> Option<Plan> {
        let Tree::Insert(insert) = &self.statement.tree else { return None };
        let Tier::Coordinator { in_block, rides: false, .. } = plan.tier else { return None };
        // Whoever asks there what was drawn would not hear of it.
        let given = self.given.as_ref().filter(|_| plan.leaves_draws_only && !self.snapshot.asks_drawn_inside)?;
        let target = &insert.target;
        let path = self.session.search_path;
        let name = self.snapshot.resolve_other(target.schema.as_deref(), &target.name, path)?;
        let draws = self.snapshot.local_draws.get(&name)?;
        let InsertSource::Values(rows) = &insert.source else { return None };
        let ([row], Some(list)) = (rows.as_slice(), insert.columns_span) else { return None };
        let sets_default =
            |conflict: &OnConflict| conflict.set.iter().any(|a| matches!(a.value.kind, ExprKind::Default));
        let plain = insert.with.is_none()
            && !insert.on_conflict.as_ref().is_some_and(sets_default)
            && insert.overriding == Overriding::No
            && insert.columns.len() == row.len()
            && insert.columns.iter().all(|(_, part)| !part)
            && row.iter().all(|field| field.span.is_known())
            && draws.iter().all(|draw| is_next_value(&draw.sql))
            && !calls_set(self.statement, self.snapshot);
        if !plain {
            return None;
        }
        let text = self.text();
        let mut sql = Splice::default();
        sql.push_text(Span::new(0, list.end - 1).of(text), Some(0));
        // With the places in the text of those that stand there.
        let mut fields: Vec<(String, Option<usize>)> =
            row.iter().map(|field| (field.span.of(text).to_owned(), Some(field.span.start))).collect();
        let mut always = false;
        for draw in draws.iter() {
            let at = insert.columns.iter().position(|(column, _)| *column == draw.column);
            match at.map(|at| &row[at].kind) {
                None | Some(ExprKind::Default) => {}
                // PostgreSQL refuses it, or takes it.
                Some(_) if draw.always => return None,
                Some(_) => continue,
            }
            let value = (format!("${}", given.draw(&draw.sql)?), None);
            always |= draw.always;
            match at {
                Some(at) => fields[at] = value,
                None => {
                    sql.push_text(&format!(", {}", quote_ident(&draw.column)), None);
                    fields.push(value);
                }
            }
        }
        sql.push_text(if always { ") OVERRIDING SYSTEM VALUE VALUES (" } else { ") VALUES (" }, None);
        for (at, (field, origin)) in fields.iter().enumerate() {
            sql.push_text(if at == 0 { "" } else { ", " }, None);
            sql.push_text(field, *origin);
        }
        sql.push_text(")", None);
        if let Some(tail) = insert.tail_span {
            sql.push_text(" ", None);
            sql.push_text(tail.of(text), Some(tail.start));
        }
        let tier = Tier::Coordinator { sql, in_block, rides: true };
        Some(Plan { tier, one_row: true, ..plan.clone() })
    }

    /// The same of a query that draws one value and does nothing else.
    pub fn with_value_drawn(&self, plan: &Plan) -> Option<Plan> {
        let Tier::Coordinator { in_block, .. } = plan.tier else { return None };
        let given = self.given.as_ref().filter(|_| !self.snapshot.asks_drawn_inside)?;
        let (item, sequence) = value_drawn(self.statement)?;
        let names = crate::safety::Names::new(self.snapshot, self.session);
        if names.is_users(&self.snapshot.user_functions, None, NEXT_VALUE) {
            return None;
        }
        let parts = name_parts(sequence)?;
        let (schema, name) = match parts.as_slice() {
            [name] if !self.session.temp_relations.contains(name) => (None, name),
            [schema, name] => (Some(schema.as_str()), name),
            _ => return None,
        };
        let found = self.snapshot.resolve_other(schema, name, self.session.search_path)?;
        let (schema, name) = found.split_once('\u{1}')?;
        // As column defaults have it: both draw the same values.
        let literal = quote_literal(&format!("{}.{}", written(schema), written(name)));
        let draw = format!("{NEXT_VALUE}({literal}::regclass)");
        // What draws the same values in another way has other ones ready.
        let elsewhere = |sql: &str| sql != draw && sql.contains(&literal);
        let identity = |c: &Column| matches!(&c.default, ColumnDefault::Identity { .. }) && default_sql(c).is_some_and(|sql| elsewhere(&sql));
        let mut local = self.snapshot.local_draws.values().flat_map(|draws| draws.iter());
        let mut columns = self.snapshot.all_tables().flat_map(|table| table.columns.iter());
        if local.any(|draw| elsewhere(&draw.sql)) || columns.any(identity) {
            return None;
        }
        let (text, span) = (self.text(), item.expr.span);
        // The column's name would stand inside of brackets.
        if text.get(..span.start)?.trim_end().ends_with('(') {
            return None;
        }
        let number = given.draw(&draw)?;
        let mut sql = Splice::default();
        sql.push_text(text.get(..span.start)?, Some(0));
        // Where nothing may be drawn, PostgreSQL says so.
        let call = span.of(text);
        sql.push_text("CASE WHEN pg_catalog.current_setting('transaction_read_only')::pg_catalog.bool THEN ", None);
        sql.push_text(call, Some(span.start));
        sql.push_text(&format!(" ELSE ${number} END"), None);
        if item.alias.is_none() {
            sql.push_text(&format!(" AS {NEXT_VALUE}"), None);
        }
        sql.push_text(text.get(span.end..)?, Some(span.end));
        Some(Plan { tier: Tier::Coordinator { sql, in_block, rides: true }, one_row: true, ..plan.clone() })
    }
}

const NEXT_VALUE: &str = "nextval";

/// The only item of a query that draws from a sequence named by a literal, and the name.
pub(crate) fn value_drawn(statement: &Statement) -> Option<(&SelectItem, &str)> {
    let Tree::Query(query) = &statement.tree else { return None };
    let Body::Select(select) = &query.body else { return None };
    let is_bare = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.row_locks.is_empty()
        && !query.into
        && matches!(select.distinct, Distinct::No)
        && select.from.is_empty()
        && select.filter.is_none()
        && select.group_by.is_empty()
        && select.having.is_none();
    let ([item], true) = (select.items.as_slice(), is_bare) else { return None };
    let ExprKind::Call(call) = &item.expr.kind else { return None };
    let is_it = call.name == NEXT_VALUE
        && call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
        && !(call.star || call.distinct || call.variadic || call.within_group || call.sql_syntax)
        && call.over.is_none()
        && call.filter.is_none()
        && call.order_by.is_empty()
        && item.expr.span.is_known();
    let [argument] = call.args.as_slice() else { return None };
    let literal = match &argument.kind {
        ExprKind::Cast { expr, to } if to.name == "regclass" && !to.is_array && to.may_be_built_in() => &expr.kind,
        other => other,
    };
    match literal {
        ExprKind::Const(Const::String(name)) if is_it => Some((item, name)),
        _ => None,
    }
}

/// The parts of a relation's name as regclass reads it, as far as they are easily read.
fn name_parts(name: &str) -> Option<Vec<String>> {
    let is_plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
    };
    name.split('.')
        .map(|part| match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
            Some(quoted) if !quoted.is_empty() && !quoted.contains('"') => Some(quoted.to_owned()),
            None if is_plain(part) => Some(part.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// A name as PostgreSQL prints it.
fn written(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if is_plain && !pgherd_sql::is_word_of_sql(name) { name.to_owned() } else { quote_ident(name) }
}
