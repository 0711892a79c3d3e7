//! What a worker may evaluate in place of the coordinator: built-in functions, operators and types whose result does
//! not depend on which server or session computes it (src/include/catalog/pg_proc.dat).

use pgherd_catalog::{NameSet, Snapshot};
use pgherd_sql::ast::*;
use pgherd_sql::{Span, Statement};

use crate::analysis::{Analysis, Found, lookup};

/// Volatile built-in functions that are as good on a worker as anywhere. All other volatile ones are not.
const VOLATILE_ANYWHERE: &[&str] = &[
    "clock_timestamp",
    "gen_random_uuid",
    "pg_sleep",
    "pg_sleep_for",
    "pg_sleep_until",
    "random",
    "random_normal",
    "timeofday",
    "uuidv4",
    "uuidv7",
];

/// Built-in functions that read the session, the catalog, other relations by name, or the server they run on.
const COORDINATOR_ONLY: &[&str] = &[
    "col_description",
    "currtid2",
    "current_database",
    "current_query",
    "current_schema",
    "current_schemas",
    "current_setting",
    "currval",
    "cursor_to_xml",
    "cursor_to_xmlschema",
    "database_to_xml",
    "database_to_xml_and_xmlschema",
    "database_to_xmlschema",
    "format_type",
    "getdatabaseencoding",
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "lastval",
    "loread",
    "lowrite",
    "nextval",
    "obj_description",
    "query_to_xml",
    "query_to_xml_and_xmlschema",
    "query_to_xmlschema",
    "row_security_active",
    "satisfies_hash_partition",
    "schema_to_xml",
    "schema_to_xml_and_xmlschema",
    "schema_to_xmlschema",
    "set_config",
    "setseed",
    "setval",
    "shobj_description",
    "table_to_xml",
    "table_to_xml_and_xmlschema",
    "table_to_xmlschema",
    "ts_rewrite",
    "ts_stat",
    "txid_current",
    "version",
];

/// Their families.
const COORDINATOR_ONLY_PREFIXES: &[&str] =
    &["binary_upgrade_", "brin_", "gin_", "has_", "lo_", "pg_", "row_to_xml", "to_reg", "ts_token_", "txid_", "reg"];

/// `pg_…` functions that depend on their arguments only.
const PLAIN_PG: &[&str] = &[
    "pg_column_compression",
    "pg_column_size",
    "pg_input_is_valid",
    "pg_size_bytes",
    "pg_size_pretty",
    "pg_sleep",
    "pg_sleep_for",
    "pg_sleep_until",
];

/// Types whose values name objects of one server.
const LOCAL_TYPES: &[&str] = &[
    "oid",
    "refcursor",
    "regclass",
    "regcollation",
    "regconfig",
    "regdictionary",
    "regnamespace",
    "regoper",
    "regoperator",
    "regproc",
    "regprocedure",
    "regrole",
    "regtype",
    "tid",
];

/// Functions and words that give the time of the transaction.
pub(crate) const NOW_CALLS: &[&str] = &["now", "transaction_timestamp", "statement_timestamp"];
pub(crate) const NOW_WORDS: &[&str] =
    &["current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"];

/// Which names a text may mean.
pub(crate) struct Names<'a> {
    pub snapshot: &'a Snapshot,
    /// It is postgres_fdw's, which names with a schema what is not in pg_catalog.
    pub callback: bool,
    /// What only the session can tell comes as a value.
    pub given: bool,
}

impl<'a> Names<'a> {
    pub fn new(snapshot: &'a Snapshot, session: &crate::SessionView<'_>) -> Names<'a> {
        Names { snapshot, callback: session.built_in_names, given: false }
    }

    /// Of a text that users have written, a default's say.
    pub fn written(snapshot: &'a Snapshot) -> Names<'a> {
        Names { snapshot, callback: false, given: false }
    }

    /// Whether what a text calls so may be something of the user's. `names`: of such things.
    pub fn is_users(&self, names: &NameSet, schema: Option<&str>, name: &str) -> bool {
        match schema {
            Some(schema) => schema != "pg_catalog",
            None => !self.callback && names.contains(name),
        }
    }
}

/// Why a worker must not evaluate a call; none: it may.
pub(crate) fn call_reason(names: &Names<'_>, schema: Option<&str>, name: &str) -> Option<String> {
    let snapshot = names.snapshot;
    if names.is_users(&snapshot.user_functions, schema, name) {
        return Some(format!("the function {name} is not built in"));
    }
    if names.given && crate::given::may_be_given(name) {
        return None;
    }
    if pgherd_sql::is_own_function(name) {
        return Some(format!("the function {name} runs on the coordinator"));
    }
    if snapshot.volatile_functions.contains(name) && !VOLATILE_ANYWHERE.contains(&name) {
        return Some(format!("the function {name} is volatile"));
    }
    is_coordinators(name).then(|| format!("the function {name} depends on the server it runs on"))
}

fn is_coordinators(name: &str) -> bool {
    COORDINATOR_ONLY.contains(&name)
        || (COORDINATOR_ONLY_PREFIXES.iter().any(|p| name.starts_with(p))
            && !PLAIN_PG.contains(&name)
            && !name.starts_with("regexp_")
            && !name.starts_with("regr_"))
}

/// Whether a built-in function gives a policy on a worker what it gives one on the coordinator: settings and the rights
/// of roles are the same there.
pub fn is_same_in_policies(name: &str) -> bool {
    const SAME: &[&str] =
        &["current_database", "current_schema", "current_schemas", "current_setting", "pg_has_role", "set_config"];
    !is_coordinators(name) || SAME.contains(&name) || name.starts_with("has_") || name == "pg_typeof"
}

/// Whether a built-in function that is not volatile depends on its arguments only, and at most on styles and the time
/// zone otherwise.
pub fn is_same_for_arguments(name: &str) -> bool {
    (!is_coordinators(name) || name == "pg_typeof") && !NOW_CALLS.contains(&name)
}

pub(crate) fn type_reason(names: &Names<'_>, schema: Option<&str>, name: &str) -> Option<String> {
    if names.is_users(&names.snapshot.user_types, schema, name) {
        return Some(format!("the type {name} is not built in"));
    }
    // The router gives the coordinator names of its own for rows, and takes them back.
    // Of a distributed table's columns numbers of objects are numbers.
    let is_known = names.callback && matches!(name, "tid" | "oid");
    (!is_known && LOCAL_TYPES.contains(&name)).then(|| format!("values of type {name} differ between servers"))
}

pub(crate) fn operator_reason(names: &Names<'_>, expr: &Expr) -> Option<String> {
    let (schema, name) = match &expr.kind {
        ExprKind::Op(op) => (op.schema.as_deref(), op.name.as_str()),
        ExprKind::Sublink(link) => (None, link.op.as_deref().unwrap_or("=")),
        _ => return None,
    };
    if names.is_users(&names.snapshot.user_operators, schema, name) {
        return Some(format!("the operator {name} is not built in"));
    }
    None
}

/// Why no worker may run this statement; none: one may.
pub(crate) fn statement_reason(statement: &Statement, names: &Names<'_>) -> Option<String> {
    let call = |schema: Option<&str>, name: &str| call_reason(names, schema, name);
    let type_name = |schema: Option<&str>, name: &str| type_reason(names, schema, name);
    reason_by(statement, names, call, type_name, |_| false)
}

/// The same of a statement but for one function that it calls.
pub(crate) fn reason_beside(statement: &Statement, names: &Names<'_>, own: &str) -> Option<String> {
    let call = |schema: Option<&str>, name: &str| if name == own { None } else { call_reason(names, schema, name) };
    let type_name = |schema: Option<&str>, name: &str| type_reason(names, schema, name);
    reason_by(statement, names, call, type_name, |_| false)
}

/// What is the same for all clients of one role and search path that share a connection to the coordinator.
const SAME_HERE: &[&str] = &[
    "col_description",
    "current_database",
    "current_schema",
    "format_type",
    "getdatabaseencoding",
    "obj_description",
    "pg_char_to_encoding",
    "pg_encoding_to_char",
    "pg_get_expr",
    "pg_get_userbyid",
    "pg_typeof",
    "shobj_description",
    "to_regclass",
    "to_regnamespace",
    "to_regproc",
    "to_regrole",
    "to_regtype",
    "version",
];

/// Why a shared connection to the coordinator may not run this statement, as far as functions and types go; none: it
/// may.
pub(crate) fn reason_here(statement: &Statement, names: &Names<'_>) -> Option<String> {
    let is_users = |schema: Option<&str>, name: &str| names.is_users(&names.snapshot.user_functions, schema, name);
    let call = |schema: Option<&str>, name: &str| match SAME_HERE.contains(&name) && !is_users(schema, name) {
        true => None,
        false => call_reason(names, schema, name),
    };
    let type_name = |schema: Option<&str>, name: &str| {
        let is_users = names.is_users(&names.snapshot.user_types, schema, name);
        is_users.then(|| format!("the type {name} is not built in"))
    };
    reason_by(statement, names, call, type_name, |e| {
        matches!(e.kind, ExprKind::ValueFunction(_) | ExprKind::Collate { .. })
    })
}

fn reason_by(
    statement: &Statement,
    names: &Names<'_>,
    call: impl Fn(Option<&str>, &str) -> Option<String>,
    type_name: impl Fn(Option<&str>, &str) -> Option<String>,
    passes: impl Fn(&Expr) -> bool,
) -> Option<String> {
    let called = statement.calls.iter().find_map(|(schema, name)| call(schema.as_deref(), name));
    let typed = || statement.types.iter().find_map(|(schema, name)| type_name(schema.as_deref(), name));
    let mut found = called.or_else(typed);
    statement.tree.walk_all(&mut |_, expr| {
        if found.is_none() && !passes(expr) {
            found = expression_reason(expr, names);
        }
    });
    found
}

/// As far as one node itself goes.
fn expression_reason(expr: &Expr, names: &Names<'_>) -> Option<String> {
    match &expr.kind {
        ExprKind::Op(_) | ExprKind::Sublink(_) => operator_reason(names, expr),
        ExprKind::ValueFunction("current_schema" | "current_catalog") => {
            Some("the current schema or database is the session's".to_owned())
        }
        ExprKind::CurrentOf(_) => Some("a cursor belongs to the session".to_owned()),
        ExprKind::Collate { collation, .. } => {
            let built_in = match collation.as_slice() {
                [name] => matches!(name.as_str(), "C" | "POSIX" | "default" | "ucs_basic"),
                [schema, name] => schema == "pg_catalog" && matches!(name.as_str(), "C" | "POSIX" | "default"),
                _ => false,
            };
            (!built_in).then(|| "the collation may differ between servers".to_owned())
        }
        ExprKind::Unknown(_) => Some("a construct is not understood".to_owned()),
        _ => None,
    }
}

/// Why a worker must not evaluate this expression (sublinks count as not evaluable); none: it may.
pub(crate) fn field_reason(expr: &Expr, names: &Names<'_>) -> Option<String> {
    let mut found = None;
    expr.walk(&mut |e| {
        if found.is_some() {
            return;
        }
        found = match &e.kind {
            ExprKind::Sublink(_) => Some("a subquery".to_owned()),
            ExprKind::Call(call) => call_reason(names, call.schema.as_deref(), &call.name),
            ExprKind::Cast { to, .. } => type_reason(names, to.schema.as_deref(), &to.name),
            _ => expression_reason(e, names),
        };
    });
    found
}

/// A literal that means another moment later, where it is one of a type of [`TIME_TYPES`], or has such in it: a range,
/// an array, a row.
pub(crate) fn is_moving_literal(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let is_moving = |word: &str| MOVING_WORDS.iter().any(|w| word.eq_ignore_ascii_case(w));
    match text.contains(|c: char| c.is_ascii_digit() || matches!(c, '[' | '{' | '(')) {
        true => words.any(is_moving),
        false => words.next().is_some_and(is_moving),
    }
}

/// The words that stand for the transaction's time, or for a day counted from it.
const MOVING_WORDS: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];

/// A value in text form is one of those words.
pub fn is_moving_word(value: &[u8]) -> bool {
    MOVING_WORDS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
}

/// Literals of the text may be read by DateStyle, TimeZone and their like, when a server parses it.
pub fn literals_read_settings(statement: &Statement) -> bool {
    let may_read =
        |literal: &str| literal.contains(|c: char| c.is_ascii_digit() || matches!(c, '{' | '(' | '\\' | '<'));
    statement.literals().any(may_read)
}

/// PostgreSQL may read a literal of the statement as the current time, and does when it parses the text: one that a
/// server keeps goes on with the moment at which it was sent first.
pub fn has_moving_words(statement: &Statement) -> bool {
    let mut found = statement.literals().any(is_moving_literal);
    statement.tree.walk_all(&mut |_, e| {
        found |= matches!(&e.kind, ExprKind::Const(Const::String(text)) if is_moving_literal(text));
    });
    found
}

/// Types that read `now` and its like (src/backend/utils/adt/datetime.c).
const TIME_TYPES: &[&str] = &["date", "time", "timestamp", "timestamptz", "timetz"];

/// The transaction's time, as plans have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now<'a> {
    /// Text that timestamptz reads.
    Text(&'a str),
    /// The number of a parameter.
    Parameter(u16),
}

impl Now<'_> {
    /// Where only whether a time is read matters.
    pub const ANY: Now<'static> = Now::Text("");

    fn literal(self) -> String {
        match self {
            Now::Text(text) => format!("'{}'::pg_catalog.timestamptz", text.replace('\'', "''")),
            Now::Parameter(number) => format!("${number}::pg_catalog.timestamptz"),
        }
    }
}

/// What a literal of a type with the name `to` and its modifiers stands for at a moment; none: for what it says.
pub(crate) fn moving_value(word: &str, to: &str, modifiers: &[String], now: Now<'_>) -> Option<String> {
    if !TIME_TYPES.contains(&to) {
        return None;
    }
    let (literal, has_day) = (now.literal(), !to.starts_with("time") || to.starts_with("timestamp"));
    let value = match word.trim().to_ascii_lowercase().as_str() {
        "now" => literal,
        "today" if has_day => format!("({literal}::pg_catalog.date)"),
        "tomorrow" if has_day => format!("({literal}::pg_catalog.date + 1)"),
        "yesterday" if has_day => format!("({literal}::pg_catalog.date - 1)"),
        _ => return None,
    };
    let precision = if modifiers.is_empty() { String::new() } else { format!("({})", modifiers.join(", ")) };
    Some(format!("({value}::pg_catalog.{to}{precision})"))
}

/// What of the transaction's time an expression node gives, as SQL over a timestamptz literal.
pub(crate) fn now_replacement(expr: &Expr, text: &str, now: Now<'_>) -> Option<String> {
    let literal = now.literal();
    match &expr.kind {
        ExprKind::Cast { expr: inner, to } if !to.is_array && !to.is_setof && to.may_be_built_in() => {
            match &inner.kind {
                ExprKind::Const(Const::String(word)) => moving_value(word, &to.name, &to.modifiers, now),
                _ => None,
            }
        }
        ExprKind::Call(call) if NOW_CALLS.contains(&call.name.as_str()) && call.args.is_empty() => {
            Some(format!("({literal})"))
        }
        ExprKind::ValueFunction(word) => {
            let (name, rest) = (expr.span.of(text), "");
            let precision = name.find('(').map_or(rest, |at| &name[at..]);
            Some(match *word {
                "current_date" => format!("({literal}::pg_catalog.date)"),
                "current_timestamp" => format!("({literal}::pg_catalog.timestamptz{precision})"),
                "current_time" => format!("({literal}::pg_catalog.timetz{precision})"),
                "localtime" => format!("({literal}::pg_catalog.time{precision})"),
                "localtimestamp" => format!("({literal}::pg_catalog.timestamp{precision})"),
                _ => return None,
            })
        }
        _ => None,
    }
}

/// The statement reads the transaction's time somewhere.
pub fn uses_now(statement: &Statement) -> bool {
    if statement.calls.iter().any(|(_, name)| NOW_CALLS.contains(&name.as_str())) {
        return true;
    }
    let mut found = false;
    statement.tree.walk_all(&mut |_, e| found |= gives_time(e, &statement.text));
    found
}

/// One node gives the transaction's time.
pub(crate) fn gives_time(expr: &Expr, text: &str) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => NOW_CALLS.contains(&call.name.as_str()),
        ExprKind::ValueFunction(word) => NOW_WORDS.contains(word),
        ExprKind::Cast { .. } => now_replacement(expr, text, Now::ANY).is_some(),
        _ => false,
    }
}

/// The statement has something else that moves with time and cannot be fixed: several servers might disagree. `fixed`:
/// ranges for which a value of the transaction's time stands.
pub(crate) fn moving_reason(statement: &Statement, mut fixed: Vec<Span>) -> Option<String> {
    let mut found = None;
    statement.tree.walk_all(&mut |_, e| {
        if matches!(e.kind, ExprKind::Cast { .. }) && gives_time(e, &statement.text) {
            fixed.push(e.span);
        }
    });
    let is_fixed = |span: Span| fixed.iter().any(|f| f.start <= span.start && span.end <= f.end);
    statement.tree.walk_all(&mut |_, e| match &e.kind {
        ExprKind::Const(Const::String(text)) if is_moving_literal(text) && !is_fixed(e.span) => {
            found = Some("a literal stands for the current time".to_owned());
        }
        ExprKind::Call(call) if call.name == "age" && call.args.len() == 1 => {
            found = Some("age() of one argument reads the current date".to_owned());
        }
        _ => {}
    });
    found
}

/// A subquery has an aggregate without a column of its own: it is over the rows of the query around it, which has one
/// row then. What may be either counts as one.
pub(crate) fn has_outer_aggregate(analysis: &Analysis<'_>) -> bool {
    analysis.levels.iter().any(|level| {
        let inside = analysis.scopes.get(level.scope).is_some_and(|scope| scope.parent.is_some());
        let Some(Query { body: Body::Select(select), order_by, .. }) = level.query.filter(|_| inside) else {
            return false;
        };
        let mut found = false;
        let mut look = |expr: &Expr| {
            expr.walk(&mut |e| match &e.kind {
                ExprKind::Call(call) if analysis.is_aggregate(call) => {
                    let ordered = call.order_by.iter().map(|s| &s.expr);
                    found |= is_outer(analysis, call.args.iter().chain(ordered).chain(&call.filter), level.scope);
                }
                ExprKind::Grouping(list) => found |= is_outer(analysis, list.iter(), level.scope),
                _ => {}
            });
        };
        select.items.iter().for_each(|item| look(&item.expr));
        if let Distinct::On(list) = &select.distinct {
            list.iter().for_each(&mut look);
        }
        select.from.iter().for_each(|item| conditions(item, &mut look));
        select.filter.iter().chain(&select.group_by).chain(&select.having).for_each(&mut look);
        select.windows.iter().for_each(|window| window.for_each_expr(&mut look));
        order_by.iter().for_each(|s| look(&s.expr));
        found
    })
}

/// What stands in FROM beside subqueries, whose levels are their own.
fn conditions<'a>(item: &'a FromItem, look: &mut dyn FnMut(&'a Expr)) {
    match item {
        FromItem::Join(join) => {
            conditions(&join.left, look);
            conditions(&join.right, look);
            join.on.iter().for_each(look);
        }
        FromItem::Function { calls, .. } => calls.iter().for_each(look),
        FromItem::Sample { relation, args, .. } => {
            conditions(relation, look);
            args.iter().for_each(look);
        }
        FromItem::Relation(_) | FromItem::Subquery { .. } | FromItem::Other(_) => {}
    }
}

/// The arguments of an aggregate have no column of the query that they stand in, but one of those around it.
fn is_outer<'a>(analysis: &Analysis<'_>, arguments: impl Iterator<Item = &'a Expr>, scope: usize) -> bool {
    let around = |path: &[String]| analysis.around(scope).any(|outer| lookup(outer, path, false).is_some());
    let (mut own, mut outer) = (false, false);
    let mut column = |path: &[String], nested: bool| {
        match analysis.scopes.get(scope).and_then(|s| lookup(s, path, true)).filter(|_| !nested) {
            // Of a table whose columns nobody knows, or of one around it.
            Some(Found::Unknown) if around(path) => outer = true,
            Some(_) => own = true,
            None => outer |= around(path),
        }
    };
    for argument in arguments {
        argument.walk(&mut |e| match &e.kind {
            ExprKind::Column(path) | ExprKind::Star(path) => column(path, false),
            // Which of its columns are its own does not matter: it is no wrong answer to take some for those around.
            ExprKind::Sublink(link) => link.query.walk_all(&mut |_, e| {
                if let ExprKind::Column(path) | ExprKind::Star(path) = &e.kind {
                    column(path, true);
                }
            }),
            _ => {}
        });
    }
    outer && !own
}
