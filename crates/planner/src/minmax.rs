//! MIN and MAX beside what PostgreSQL does not think of, in what the coordinator runs.
//!
//! PostgreSQL may compute `min(a)` as the first row in the order of `a`, and takes what the query around has for that
//! (src/backend/optimizer/plan/planagg.c). With FETCH FIRST … WITH TIES every row is a tie then, and more than one
//! comes of a subquery that may give one (21000); set-returning functions of the target list stand where none may
//! (0A000). On one server it needs an index on `a`; a foreign table gives any order. An aggregate with a filter is
//! always aggregated.

use std::collections::BTreeSet;

use pgherd_catalog::Snapshot;
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Statement};

use crate::analysis::Analysis;

/// Whether a statement may have such a query: told without an analysis of it.
pub(crate) fn may_be_first(statement: &Statement, snapshot: &Snapshot) -> bool {
    let calls = |f: &dyn Fn(&str) -> bool| statement.calls.iter().any(|(_, name)| f(name));
    calls(&|name| matches!(name, "min" | "max"))
        && (calls(&|name| snapshot.set_returning_functions.contains(name))
            || statement.text.to_ascii_lowercase().contains("ties"))
}

/// Gives the aggregates of such queries a filter that is true. `start`: where the statement stands in what is edited.
pub(crate) fn aggregate_all(analysis: &Analysis<'_>, edits: &mut Edits, start: usize) {
    // A common table expression that is read twice is looked at twice.
    let mut calls = BTreeSet::new();
    for query in analysis.levels.iter().filter_map(|level| level.query) {
        let Body::Select(select) = &query.body else { continue };
        // With groups of its own it is never a first row.
        if !select.group_by.is_empty() && !select.grouping_sets {
            continue;
        }
        let mut exprs = Vec::new();
        query.for_each_own_expr(&mut |e| exprs.push(e));
        if !query.with_ties && !exprs.iter().any(|e| gives_sets(analysis, e)) {
            continue;
        }
        for expr in exprs {
            expr.walk(&mut |e| {
                if let ExprKind::Call(call) = &e.kind
                    && is_first(analysis, call)
                    && call.call_span.is_known()
                {
                    calls.insert((start + call.call_span.start, start + call.call_span.end));
                }
            });
        }
    }
    for (from, to) in calls {
        edits.append_to(Span::new(from, to), " FILTER (WHERE true)");
    }
}

fn gives_sets(analysis: &Analysis<'_>, expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        found |=
            matches!(&e.kind, ExprKind::Call(call) if analysis.snapshot.set_returning_functions.contains(&call.name));
    });
    found
}

/// Certainly PostgreSQL's own aggregate, of one argument.
fn is_first(analysis: &Analysis<'_>, call: &Call) -> bool {
    matches!(call.name.as_str(), "min" | "max")
        && call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
        && (call.schema.is_some() || !analysis.snapshot.user_functions.contains(&call.name))
        && call.args.len() == 1
        && call.over.is_none()
        && call.filter.is_none()
}
