//! The name PostgreSQL gives an output column without an alias (src/backend/parser/parse_target.c, `FigureColname`).

use pgherd_sql::ast::*;

pub(crate) fn column_name(expr: &Expr) -> String {
    figure(expr).1.unwrap_or_else(|| "?column?".to_owned())
}

/// Strength (0 none, 1 weak, 2 strong) and name.
fn figure(expr: &Expr) -> (u8, Option<String>) {
    let strong = |name: &str| (2, Some(name.to_owned()));
    match &expr.kind {
        ExprKind::Column(path) => (2, path.last().cloned()),
        ExprKind::Indirection { expr, last_field, .. } => match last_field {
            Some(field) => strong(field),
            None => figure(expr),
        },
        ExprKind::Call(call) => strong(&call.name),
        ExprKind::Op(op) if op.kind == OpKind::NullIf => strong("nullif"),
        ExprKind::Cast { expr, to } => match figure(expr) {
            (2, name) => (2, name),
            _ => (1, Some(to.name.clone())),
        },
        ExprKind::Collate { expr, .. } => figure(expr),
        ExprKind::Grouping(_) => strong("grouping"),
        ExprKind::Sublink(link) => match link.kind {
            SublinkKind::Exists => strong("exists"),
            SublinkKind::Array => strong("array"),
            SublinkKind::Scalar => match &link.query.body {
                Body::Select(select) => match select.items.first() {
                    Some(SelectItem { alias: Some(alias), .. }) => strong(alias),
                    Some(item) => figure(&item.expr),
                    None => (0, None),
                },
                Body::Values(_) => strong("column1"),
                Body::SetOp { .. } => (0, None),
            },
            _ => (0, None),
        },
        ExprKind::Case { default, .. } => match default.as_ref().map(|d| figure(d)) {
            Some((2, name)) => (2, name),
            _ => (1, Some("case".to_owned())),
        },
        ExprKind::Array(_) => strong("array"),
        ExprKind::Row(_) => strong("row"),
        ExprKind::Coalesce(_) => strong("coalesce"),
        ExprKind::Greatest(_) => strong("greatest"),
        ExprKind::Least(_) => strong("least"),
        ExprKind::ValueFunction(name) => strong(name),
        _ => (0, None),
    }
}
