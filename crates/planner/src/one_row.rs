//! Statements of one shard that write or lock rows, and can give one row at most.

use pgherd_catalog::Snapshot;
use pgherd_sql::Statement;
use pgherd_sql::ast::*;

use crate::analysis::resolve;
use crate::plan::{Plan, Tier};
use crate::{SessionView, literal};

pub(crate) fn gives_one_row(
    plan: &Plan,
    statement: &Statement,
    snapshot: &Snapshot,
    session: &SessionView<'_>,
) -> bool {
    if plan.one_row {
        return true;
    }
    if !matches!(plan.tier, Tier::Route(_) | Tier::Coordinator { rides: true, .. }) {
        return false;
    }
    match &statement.tree {
        Tree::Insert(insert) if insert.with.is_none() => match &insert.source {
            InsertSource::DefaultValues => true,
            InsertSource::Values(rows) => rows.len() == 1 && !calls_set(statement, snapshot),
            InsertSource::Query(query) => {
                let is_bare = matches!(&query.body, Body::Select(select) if select.from.is_empty());
                is_bare && query.with.is_none() && !calls_set(statement, snapshot)
            }
        },
        Tree::Update(update) if update.with.is_none() && update.from.is_empty() => {
            has_unique_key(&update.target, update.filter.as_ref(), snapshot, session)
        }
        Tree::Delete(delete) if delete.with.is_none() && delete.using.is_empty() => {
            has_unique_key(&delete.target, delete.filter.as_ref(), snapshot, session)
        }
        Tree::Query(query) if !query.row_locks.is_empty() && query.with.is_none() => {
            let Body::Select(select) = &query.body else { return false };
            let [FromItem::Relation(relation)] = select.from.as_slice() else { return false };
            let is_one = has_unique_key(relation, select.filter.as_ref(), snapshot, session);
            is_one && !statement.has_sublink && !calls_set(statement, snapshot)
        }
        _ => false,
    }
}

pub(crate) fn calls_set(statement: &Statement, snapshot: &Snapshot) -> bool {
    statement.calls.iter().any(|(_, name)| snapshot.set_returning_functions.contains(name))
}

/// All columns of a unique key have to equal constants.
fn has_unique_key(target: &Relation, filter: Option<&Expr>, snapshot: &Snapshot, session: &SessionView<'_>) -> bool {
    let (Some(table), Some(filter)) = (resolve(snapshot, session, target), filter) else { return false };
    let mut pinned: Vec<&str> = Vec::new();
    let conditions = match &filter.kind {
        ExprKind::And(list) => list.as_slice(),
        _ => std::slice::from_ref(filter),
    };
    for condition in conditions {
        if let ExprKind::Op(op) = &condition.kind
            && op.name == "="
            && op.schema.is_none()
            && let (Some(left), Some(right)) = (&op.left, &op.right)
        {
            for (column, value) in [(left, right), (right, left)] {
                if let (ExprKind::Column(path), true) = (&column.kind, literal::is_constant(value)) {
                    pinned.extend(path.last().map(String::as_str));
                }
            }
        }
    }
    table.unique_keys.iter().any(|key| key.iter().all(|column| pinned.contains(&column.as_str())))
}
