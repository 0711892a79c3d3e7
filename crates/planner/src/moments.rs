//! What of a statement is the transaction's time without saying so: defaults, and words like `'now'`.

use std::collections::BTreeMap;

use pgherd_catalog::{Column, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::*;

use crate::analysis::{Analysis, Found, Node};
use crate::safety;

/// The occurrence of the table that a statement writes. A common table expression may have a target of its own.
pub(crate) fn target_of(tree: &Tree, analysis: &Analysis<'_>) -> Option<usize> {
    let target = match tree {
        Tree::Update(update) => &update.target,
        Tree::Insert(insert) => &insert.target,
        Tree::Delete(delete) => &delete.target,
        Tree::Merge(merge) => &merge.target,
        Tree::Query(_) | Tree::Utility => return None,
    };
    analysis.instances.iter().position(|i| i.is_target && std::ptr::eq(i.relation, target))
}

fn target_table<'a>(tree: &Tree, analysis: &Analysis<'a>) -> Option<&'a Table> {
    let table: &'a Table = analysis.instances[target_of(tree, analysis)?].table;
    Some(table)
}

/// What the SET clauses of a statement assign to columns of its target.
fn assigned<'a, 't>(tree: &'t Tree, analysis: &Analysis<'a>) -> Vec<(&'t Expr, &'a Column)> {
    let updates = |clause: &'t MergeClause| match &clause.action {
        MergeAction::Update(set) => Some(set),
        _ => None,
    };
    let set: Vec<&Assignment> = match tree {
        Tree::Update(update) => update.set.iter().collect(),
        Tree::Insert(insert) => insert.on_conflict.iter().flat_map(|c| &c.set).collect(),
        Tree::Merge(merge) => merge.clauses.iter().filter_map(updates).flatten().collect(),
        Tree::Query(_) | Tree::Delete(_) | Tree::Utility => return Vec::new(),
    };
    let Some(table) = target_table(tree, analysis) else { return Vec::new() };
    let column = |a: &Assignment| table.columns.iter().find(|c| c.name == a.column);
    set.into_iter().filter_map(|a| Some((&a.value, column(a)?))).collect()
}

/// Where DEFAULT is assigned to a column that gets the transaction's time so, and that default.
pub(crate) fn defaults_of_time<'a>(tree: &Tree, analysis: &Analysis<'a>) -> Vec<(Span, &'a str)> {
    let assigned = assigned(tree, analysis).into_iter().filter(|(value, _)| matches!(value.kind, ExprKind::Default));
    assigned.filter_map(|(value, column)| Some((value.span, crate::insert::time_default(column)?))).collect()
}

/// Literals like `'now'` for which the transaction's time stands: those that are put into a column which reads them so,
/// or compared with one. Compared ones only where all that moves is known: an expression may stand in the statement
/// twice, and has to stay the same.
pub(crate) fn literals_of_time(statement: &Statement, analysis: &Analysis<'_>) -> Vec<MovingLiteral> {
    let put = put_into_time(&statement.tree, analysis);
    let compared = match !analysis.has_parts_unknown && safety::has_moving_words(statement) {
        true => compared_with_time(&statement.tree, analysis),
        false => Vec::new(),
    };
    if compared.is_empty() {
        return put;
    }
    // A common table expression that is read twice is looked at twice.
    let all: BTreeMap<usize, MovingLiteral> =
        put.iter().cloned().chain(compared).map(|literal| (literal.0.start, literal)).collect();
    match safety::moving_reason(statement, all.values().map(|(span, ..)| *span).collect()) {
        Some(_) => put,
        None => all.into_values().collect(),
    }
}

fn put_into_time(tree: &Tree, analysis: &Analysis<'_>) -> Vec<MovingLiteral> {
    let mut given = assigned(tree, analysis);
    if let (Tree::Insert(insert), Some(table)) = (tree, target_table(tree, analysis))
        && let InsertSource::Values(rows) = &insert.source
    {
        for (at, value) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            let column = match insert.columns.get(at) {
                Some((name, _)) => table.column(name),
                None => table.columns.get(at).filter(|_| insert.columns.is_empty()),
            };
            given.extend(column.map(|column| (value, column)));
        }
    }
    let moving = |(value, column): (&Expr, &Column)| match &value.kind {
        ExprKind::Const(Const::String(word)) if value.span.is_known() => {
            let type_name = crate::literal::time_type(column.type_oid)?;
            safety::moving_value(word, type_name, &[], safety::Now::ANY)?;
            Some((value.span, word.clone(), type_name))
        }
        _ => None,
    };
    given.into_iter().filter_map(moving).collect()
}

/// Where a literal stands, what it says, and the type that reads it.
pub(crate) type MovingLiteral = (Span, String, &'static str);

/// Operators of which PostgreSQL takes the one that reads a literal as a value of the other side's type.
const COMPARISONS: [&str; 7] = ["=", "<>", "!=", "<", "<=", ">", ">="];

/// The expressions of an UPDATE's or DELETE's own clauses.
fn for_each_expr_of_change<'t>(tree: &'t Tree, f: &mut dyn FnMut(&'t Expr)) {
    let (from, filter, returning) = match tree {
        Tree::Update(update) => {
            update.set.iter().for_each(|assignment| f(&assignment.value));
            (&update.from, &update.filter, &update.returning)
        }
        Tree::Delete(delete) => (&delete.using, &delete.filter, &delete.returning),
        Tree::Query(_) | Tree::Insert(_) | Tree::Merge(_) | Tree::Utility => return,
    };
    from.iter().for_each(|item| item.for_each_condition(f));
    filter.iter().chain(returning.iter().map(|item| &item.expr)).for_each(f);
}

/// Literals like `'now'` that are compared with a column.
fn compared_with_time(tree: &Tree, analysis: &Analysis<'_>) -> Vec<MovingLiteral> {
    let mut found = Vec::new();
    if COMPARISONS.iter().any(|name| analysis.snapshot.user_operators.contains(*name)) {
        return found;
    }
    let mut look = |expr: &Expr, scope: usize| {
        expr.walk(&mut |e| {
            let ExprKind::Op(op) = &e.kind else { return };
            let (Some(left), Some(right), None) = (&op.left, &op.right, &op.schema) else { return };
            let literals = match (op.kind, &right.kind) {
                (OpKind::In | OpKind::Between | OpKind::NotBetween, ExprKind::List(list)) => list.as_slice(),
                (OpKind::Plain, _) if COMPARISONS.contains(&op.name.as_str()) => std::slice::from_ref(right),
                _ => return,
            };
            let type_of = |side: &Expr| match analysis.resolve_expr(side, scope) {
                Found::Column(id, _) => crate::literal::time_type(analysis.column(id)?.type_oid),
                _ => None,
            };
            // Every other member of a list has to leave its type to the column as well.
            let is_literal = |side: &Expr| matches!(side.kind, ExprKind::Const(Const::String(_)));
            let (type_name, literals) = match (type_of(left), type_of(right)) {
                (Some(name), None) if literals.iter().all(is_literal) => (name, literals),
                (None, Some(name)) => (name, std::slice::from_ref(left)),
                _ => return,
            };
            for literal in literals {
                if let ExprKind::Const(Const::String(word)) = &literal.kind
                    && literal.span.is_known()
                    && safety::moving_value(word, type_name, &[], safety::Now::ANY).is_some()
                {
                    found.push((literal.span, word.clone(), type_name));
                }
            }
        });
    };
    let target = target_of(tree, analysis);
    for level in &analysis.levels {
        match level.query {
            Some(query) => query.for_each_own_expr(&mut |e| look(e, level.scope)),
            None if level.from.iter().any(|node| matches!(node, Node::Instance(i) if Some(*i) == target)) => {
                for_each_expr_of_change(tree, &mut |e| look(e, level.scope));
            }
            None => {}
        }
    }
    found
}
