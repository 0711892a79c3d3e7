//! Calls of our own functions and names of our own relations (Citus's SQL interface), wherever they stand.

use crate::ast::{Const, Expr, ExprKind, Place, Span};
use crate::splice::{Edits, Overlap, Splice};
use crate::statement::Statement;

/// The schema of our functions, relations and types on the coordinator.
pub const OWN_SCHEMA: &str = "pgherd";

/// Functions of the interface that do not begin with `citus_` or `master_`.
pub const OWN_FUNCTIONS: &[&str] = &[
    "alter_distributed_table",
    "alter_table_set_access_method",
    "column_to_column_name",
    "column_name_to_column",
    "create_distributed_function",
    "create_distributed_table",
    "create_distributed_table_concurrently",
    "create_reference_table",
    "create_time_partitions",
    "drop_old_time_partitions",
    "get_missing_time_partition_ranges",
    "get_rebalance_progress",
    "get_rebalance_table_shards_plan",
    "get_shard_id_for_distribution_column",
    "isolate_tenant_to_new_shard",
    "mark_tables_colocated",
    "rebalance_table_shards",
    "remove_local_tables_from_metadata",
    "replicate_table_shards",
    "run_command_on_all_nodes",
    "run_command_on_colocated_placements",
    "run_command_on_coordinator",
    "run_command_on_placements",
    "run_command_on_shards",
    "run_command_on_workers",
    "start_metadata_sync_to_all_nodes",
    "start_metadata_sync_to_node",
    "stop_metadata_sync_to_node",
    "truncate_local_data_after_distributing_table",
    "undistribute_table",
    "update_distributed_table_colocation",
];

/// Relations of the interface that do not begin with `pg_dist_`.
pub const OWN_RELATIONS: &[&str] = &[
    "citus_dist_stat_activity",
    "citus_lock_waits",
    "citus_locks",
    "citus_nodes",
    "citus_schemas",
    "citus_shard_indexes_on_worker",
    "citus_shards",
    "citus_shards_on_worker",
    "citus_stat_activity",
    "citus_stat_counters",
    "citus_stat_statements",
    "citus_stat_tenants",
    "citus_tables",
    "citus_worker_stat_activity",
    "pgherd_operation_steps",
    "pgherd_distribution",
    "pgherd_operations",
    "time_partitions",
];

/// True for the name of a function of the interface.
pub fn is_own_function(name: &str) -> bool {
    name.starts_with("citus_") || name.starts_with("master_") || OWN_FUNCTIONS.contains(&name)
}

/// A function of the interface that defines tables as one of the user's would.
pub fn defines_by_itself(name: &str) -> bool {
    name == "create_time_partitions"
}

/// True for the name of a relation of the interface.
pub fn is_own_relation(name: &str) -> bool {
    name.starts_with("pg_dist_") || OWN_RELATIONS.contains(&name)
}

fn is_own_qualifier(schema: Option<&str>) -> bool {
    matches!(schema, None | Some("pg_catalog" | "citus" | "pgherd"))
}

/// One call of a function of the interface.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnCall {
    pub name: String,
    /// Argument names (`name => value`) and values in the order written.
    pub args: Vec<(Option<String>, ArgValue)>,
    /// The whole call expression.
    pub span: Span,
    /// The function's name with its qualifier.
    pub name_span: Span,
    /// It is a function in FROM.
    pub in_from: bool,
    /// It is a whole item of a SELECT list.
    pub is_whole_select_target: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    /// A constant with the types it is cast to, innermost first (`'t'::regclass::oid`).
    Const { value: Const, casts: Vec<String> },
    /// `$n`, with casts.
    Param { number: u16, casts: Vec<String> },
    /// Anything else, as written.
    Sql(String),
}

impl ArgValue {
    /// A constant as text: what the type's input function would read. None for NULL and what is not constant.
    pub fn text(&self) -> Option<String> {
        match self {
            ArgValue::Const { value, .. } => match value {
                Const::Null => None,
                Const::Bool(b) => Some(b.to_string()),
                Const::Integer(i) => Some(i.to_string()),
                Const::Number(n) => Some(n.clone()),
                Const::String(s) | Const::BitString(s) => Some(s.clone()),
            },
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, ArgValue::Const { value: Const::Null, .. })
    }
}

fn arg_value(expr: &Expr, text: &str) -> ArgValue {
    let mut casts = Vec::new();
    let mut inner = expr;
    while let ExprKind::Cast { expr, to } = &inner.kind {
        casts.push(to.name.clone());
        inner = expr;
    }
    casts.reverse();
    match &inner.kind {
        ExprKind::Const(value) => ArgValue::Const { value: value.clone(), casts },
        ExprKind::Param(number) => ArgValue::Param { number: *number, casts },
        _ => ArgValue::Sql(expr.span.of(text).to_owned()),
    }
}

/// Every call of a function of the interface in a data statement.
pub fn own_calls(statement: &Statement) -> Vec<OwnCall> {
    let mut found = Vec::new();
    statement.tree.walk_all(&mut |place, expr| {
        let ExprKind::Call(call) = &expr.kind else { return };
        if !is_own_function(&call.name) || !is_own_qualifier(call.schema.as_deref()) {
            return;
        }
        let args = call
            .args
            .iter()
            .map(|arg| match &arg.kind {
                ExprKind::NamedArg { name, expr } => (Some(name.clone()), arg_value(expr, &statement.text)),
                _ => (None, arg_value(arg, &statement.text)),
            })
            .collect();
        let name_span = match statement.tokens.at(expr.span.start) {
            Some(at) => statement.tokens.span(at, statement.tokens.after_name(at)),
            None => Span::default(),
        };
        found.push(OwnCall {
            name: call.name.clone(),
            args,
            span: expr.span,
            name_span,
            in_from: place == Place::From,
            is_whole_select_target: matches!(place, Place::Target | Place::NamedTarget),
        });
    });
    found
}

/// Where names of our own functions and relations stand in Citus's schema, with the name to put there. Others are found
/// where they are.
pub fn own_names(statement: &Statement) -> Vec<(Span, String)> {
    let mut names: Vec<(Span, String)> = own_calls(statement)
        .into_iter()
        .filter(|call| call.name_span.is_known() && is_citus(statement, call.name_span))
        .map(|call| (call.name_span, format!("pg_catalog.{}", call.name)))
        .collect();
    for relation in &statement.relations {
        if is_own_relation(&relation.name) && relation.schema.as_deref() == Some("citus") && relation.span.is_known() {
            names.push((relation.span, format!("pg_catalog.{}", relation.name)));
        }
    }
    names.extend(stand_ins(statement));
    names
}

fn is_citus(statement: &Statement, name: Span) -> bool {
    name.of(&statement.text).to_ascii_lowercase().starts_with("citus.")
}

/// Calls of built-in functions that would show our own objects, or know only what the coordinator has, with the names
/// of those that stand in for them.
fn stand_ins(statement: &Statement) -> Vec<(Span, String)> {
    const NAMES: &[&str] = &[
        "pg_blocking_pids",
        "pg_cancel_backend",
        "pg_database_size",
        "pg_get_indexdef",
        "pg_indexes_size",
        "pg_partition_tree",
        "pg_relation_size",
        "pg_table_size",
        "pg_terminate_backend",
        "pg_total_relation_size",
    ];
    // With more arguments than one, too.
    const MORE: &[&str] = &["pg_get_indexdef", "pg_partition_tree", "pg_relation_size", "pg_terminate_backend"];
    let mut found = Vec::new();
    if !statement.calls.iter().any(|(_, name)| NAMES.contains(&name.as_str())) {
        return found;
    }
    statement.tree.walk_all(&mut |_, expr| {
        let ExprKind::Call(call) = &expr.kind else { return };
        let built_in = NAMES.contains(&call.name.as_str())
            && call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog")
            && (call.args.len() == 1 || MORE.contains(&call.name.as_str()));
        if let Some(at) = statement.tokens.at(expr.span.start).filter(|_| built_in) {
            let name = statement.tokens.span(at, statement.tokens.after_name(at));
            found.push((name, format!("{OWN_SCHEMA}.{}", call.name)));
        }
    });
    found
}

/// The statement as the coordinator runs it: our own names qualified with our schema.
pub fn qualify_own(statement: &Statement) -> Result<Splice, Overlap> {
    let mut edits = Edits::new();
    for (span, name) in own_names(statement) {
        edits.replace(span, name);
    }
    edits.apply(&statement.text)
}
