//! Values that the router has for a statement: of the client's session, which no server knows, and of sequences. They
//! are parameters behind the client's own, so that the statement stays the same text for every session.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use pgherd_catalog::{Column, ColumnDefault, NameSet};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Statement};

use crate::context::{BACKEND_PID, Context, asks_for_pid, quote_literal};
use crate::plan::{Plan, Tier};
use crate::safety::{Names, Now};
use crate::{SessionView, insert, safety};

/// One such value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// `inet_client_addr()`.
    ClientAddress,
    /// `inet_client_port()`.
    ClientPort,
    /// `pg_backend_pid()`.
    ProcessId,
    /// `current_setting(…)` of a setting whose text is kept as it was set.
    Setting(String),
    /// The next value of a sequence: what the coordinator evaluates to draw one.
    Drawn(String),
    /// The transaction's time.
    Time,
}

impl Given {
    pub fn type_oid(&self) -> u32 {
        match self {
            Given::ClientAddress => 869,
            Given::ClientPort | Given::ProcessId => 23,
            Given::Setting(_) => 25,
            Given::Drawn(_) => 20,
            Given::Time => 1184,
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Given::ClientAddress => "pg_catalog.inet",
            Given::ClientPort | Given::ProcessId => "pg_catalog.int4",
            Given::Setting(_) => "pg_catalog.text",
            Given::Drawn(_) => "pg_catalog.int8",
            Given::Time => "pg_catalog.timestamptz",
        }
    }
}

/// The value of a sequence that was drawn last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastDrawn {
    /// The sequence's name, as a literal.
    pub name: Arc<str>,
    pub value: i64,
    /// The coordinator may have drawn since, for the same session: what its `currval` was before, if there was any.
    pub doubt: Option<Option<i64>>,
}

/// The sequence from which the router has drawn last of all: one of those of [`LastDrawn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastOne {
    /// The sequence's name, as a literal.
    pub name: Arc<str>,
    /// The coordinator may have drawn since: what its `lastval` was before, if there was any.
    pub doubt: Option<Option<i64>>,
}

/// What the router can give a statement.
#[derive(Debug, Clone, Copy)]
pub struct Gives<'a> {
    /// How many parameters the client has: values follow them.
    pub parameters: u16,
    /// Settings of which it knows the text.
    pub settings: &'a [&'a str],
    /// It may draw from sequences.
    pub draws: bool,
    /// It knows the transaction's time.
    pub time: bool,
}

/// Where the session's client is; none: behind a socket of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientEnd(pub Option<SocketAddr>);

const CLIENT_ADDRESS: &str = "inet_client_addr";
const CLIENT_PORT: &str = "inet_client_port";
const SETTING: &str = "current_setting";
const CURRENT_VALUE: &str = "currval";
const LAST_VALUE: &str = "lastval";

/// The statement asks for what only its session can tell, and a plan of it may have that as a value.
pub fn asks_session(statement: &Statement) -> bool {
    statement.calls.iter().any(|(_, name)| matches!(name.as_str(), BACKEND_PID | CLIENT_ADDRESS | CLIENT_PORT))
}

/// The statement asks what was drawn from a sequence last, which nobody but the router may know.
pub fn asks_drawn(statement: &Statement) -> bool {
    statement.calls.iter().any(|(_, name)| matches!(name.as_str(), CURRENT_VALUE | LAST_VALUE))
}

/// The statement draws from a sequence, or moves it.
pub fn moves_sequences(statement: &Statement) -> bool {
    statement.calls.iter().any(|(_, name)| moves_sequence(name))
}

fn moves_sequence(function: &str) -> bool {
    matches!(function, "nextval" | "setval")
}

/// The last parts of the names of the sequences that a statement draws from or moves; none: it computes them.
pub fn sequences_moved(statement: &Statement) -> Option<Vec<String>> {
    let mut names = Vec::new();
    statement.tree.walk_all(&mut |_, expr| {
        if let ExprKind::Call(call) = &expr.kind
            && moves_sequence(&call.name)
        {
            names.extend(call.args.first().and_then(|arg| match &arg.kind {
                ExprKind::Cast { expr, .. } => constant_text(expr),
                _ => constant_text(arg),
            }));
        }
    });
    let calls = statement.calls.iter().filter(|(_, name)| moves_sequence(name)).count();
    (names.len() == calls).then(|| names.into_iter().map(last_part).collect())
}

fn constant_text(expr: &Expr) -> Option<&str> {
    match &expr.kind {
        ExprKind::Const(Const::String(text)) => Some(text),
        _ => None,
    }
}

/// The last part of a name, or of a literal of one, in lower case and without quotes, as `pgherd.sequences_asked` has
/// it: more than one name may.
pub fn last_part(name: &str) -> String {
    let name = name.trim_matches('\'').replace('"', "").to_lowercase();
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// What a text for one session has in place of calls that only the session can answer.
pub(crate) fn session_literals<'a>(
    statement: &'a Statement,
    names: &Names<'_>,
    session: &'a SessionView<'a>,
) -> Option<impl Fn(&Expr) -> Option<String> + use<'a>> {
    let pid = session.pid.filter(|_| asks_for_pid(statement, names.snapshot));
    let is_called = |name: &str| {
        let mut calls = statement.calls.iter().filter(|(_, called)| called == name).peekable();
        calls.peek().is_some()
            && calls.all(|(schema, _)| !names.is_users(&names.snapshot.user_functions, schema.as_deref(), name))
    };
    let address = session.client.filter(|_| is_called(CLIENT_ADDRESS));
    let port = session.client.filter(|_| is_called(CLIENT_PORT));
    let drawn: &[LastDrawn] = if is_called(CURRENT_VALUE) { session.drawn } else { &[] };
    let last_drawn = session.last_drawn.filter(|_| is_called(LAST_VALUE));
    let last_value = last_drawn.and_then(|last| last_value(last, session.drawn));
    // It may draw itself before it asks.
    let draws = matches!(statement.tree, Tree::Insert(_)) || statement.calls.iter().any(|(_, name)| name == "nextval");
    let text = statement.text.as_str();
    let any = pid.is_some() || address.is_some() || port.is_some() || last_value.is_some() || !drawn.is_empty();
    let value = move |expr: &Expr| {
        if let ExprKind::Call(call) = &expr.kind
            && call.name == CURRENT_VALUE
            && let [sequence] = call.args.as_slice()
            && !drawn.is_empty()
        {
            return Some(current_value(sequence.span.of(text), drawn, draws));
        }
        let call = argumentless(expr)?;
        let literal = |text: Option<String>| text.map_or_else(|| "NULL".to_owned(), |text| quote_literal(&text));
        match call.name.as_str() {
            LAST_VALUE => last_value.clone(),
            BACKEND_PID => pid.map(|pid| format!("({pid}::pg_catalog.int4)")),
            CLIENT_ADDRESS => {
                address.map(|end| format!("({}::pg_catalog.inet)", literal(end.0.map(|a| address_text(&a)))))
            }
            CLIENT_PORT => {
                port.map(|end| format!("({}::pg_catalog.int4)", literal(end.0.map(|a| a.port().to_string()))))
            }
            _ => None,
        }
    };
    any.then_some(value)
}

/// What stands for `currval(sequence)`. `draws`: the statement may do so before it asks.
fn current_value(sequence: &str, drawn: &[LastDrawn], draws: bool) -> String {
    let mut sql = format!("(CASE ({sequence})::pg_catalog.regclass");
    for LastDrawn { name, value, doubt } in drawn {
        let (before, is_last) = (number(doubt.flatten()), doubt.is_none() && !draws);
        sql.push_str(&format!(
            " WHEN pgherd.sequence_named({name}) THEN pgherd.current_value(({sequence}), {value}, {before}, {is_last})"
        ));
    }
    format!("{sql} ELSE pg_catalog.currval(({sequence})) END)")
}

/// What stands for `lastval()`: what `currval` gives of the sequence drawn from last.
fn last_value(last: &LastOne, drawn: &[LastDrawn]) -> Option<String> {
    let LastDrawn { name, value, doubt } = drawn.iter().find(|known| known.name == last.name)?;
    let current = format!("pgherd.sequence_named({name}), {value}, {}, {}", number(doubt.flatten()), doubt.is_none());
    Some(match last.doubt {
        None => format!("pgherd.current_value({current})"),
        Some(before) => format!("pgherd.last_value({current}, {})", number(before)),
    })
}

fn number(value: Option<i64>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

/// A body that asks for what the router has drawn, with what stands for that; none: it does not ask.
pub fn body_with_drawn(body: &str, drawn: &[LastDrawn], last_drawn: Option<&LastOne>) -> Option<String> {
    let lower = body.to_ascii_lowercase();
    let mut edits = Edits::new();
    if !drawn.is_empty() && lower.contains(CURRENT_VALUE) {
        for (call, sequence) in pgherd_sql::calls_in_body(body, CURRENT_VALUE) {
            edits.replace(call, current_value(sequence.of(body), drawn, true));
        }
    }
    if let Some(value) = last_drawn.filter(|_| lower.contains(LAST_VALUE)).and_then(|last| last_value(last, drawn)) {
        for (call, between) in pgherd_sql::calls_in_body(body, LAST_VALUE) {
            if between.of(body).trim().is_empty() {
                edits.replace(call, value.clone());
            }
        }
    }
    if edits.is_empty() { None } else { edits.apply(body).ok().map(|text| text.as_written()) }
}

/// A client's address as `inet_client_addr()` has it.
pub fn address_text(address: &SocketAddr) -> String {
    address.ip().to_canonical().to_string()
}

fn argumentless(expr: &Expr) -> Option<&Call> {
    match &expr.kind {
        ExprKind::Call(call) if call.args.is_empty() && !call.star && call.over.is_none() && call.filter.is_none() => {
            Some(call)
        }
        _ => None,
    }
}

/// What of the session a call asks for; none: nothing, or a setting.
pub(crate) fn given_by_call(expr: &Expr, names: &Names<'_>) -> Option<Given> {
    let call = argumentless(expr)?;
    let is_users = names.is_users(&names.snapshot.user_functions, call.schema.as_deref(), &call.name);
    of_session(&call.name).filter(|_| !is_users)
}

fn of_session(function: &str) -> Option<Given> {
    match function {
        BACKEND_PID => Some(Given::ProcessId),
        CLIENT_ADDRESS => Some(Given::ClientAddress),
        CLIENT_PORT => Some(Given::ClientPort),
        _ => None,
    }
}

/// Whether a call's name is one of those that may be given.
pub(crate) fn may_be_given(name: &str) -> bool {
    matches!(name, BACKEND_PID | CLIENT_ADDRESS | CLIENT_PORT | SETTING)
}

/// The values that a plan has been given so far.
#[derive(Debug)]
pub(crate) struct GivenValues<'a> {
    gives: Gives<'a>,
    asked_inside: NameSet,
    values: RefCell<Vec<Given>>,
}

impl<'a> GivenValues<'a> {
    /// None: there is something that cannot be given, or nothing to give.
    fn of(
        statement: &Statement,
        names: &Names<'_>,
        gives: Gives<'a>,
        session: &SessionView<'_>,
    ) -> Option<GivenValues<'a>> {
        let given =
            GivenValues { gives, asked_inside: names.snapshot.asked_inside.clone(), values: RefCell::default() };
        let own = |schema: &Option<String>, name: &str| {
            names.is_users(&names.snapshot.user_functions, schema.as_deref(), name)
        };
        if statement.calls.iter().any(|(schema, name)| may_be_given(name) && own(schema, name)) {
            return None;
        }
        let asks_for_pid = asks_for_pid(statement, names.snapshot);
        let mut all = true;
        statement.tree.walk_all(&mut |place, expr| {
            if let ExprKind::Call(call) = &expr.kind
                && may_be_given(&call.name)
            {
                let is_it = given.what(expr).is_some_and(|what| what != Given::ProcessId || asks_for_pid);
                all &= is_it && place != Place::From;
            }
        });
        // The planner writes its number: it is the first.
        if matches!(session.multi_statement_txn_now, Some(Now::Parameter(_))) {
            given.number(Given::Time);
        }
        all.then_some(given)
    }

    /// What an expression asks for.
    fn what(&self, expr: &Expr) -> Option<Given> {
        let ExprKind::Call(call) = &expr.kind else { return None };
        if call.name != SETTING {
            return of_session(&argumentless(expr)?.name);
        }
        let plain = !call.star && !call.distinct && !call.variadic && call.over.is_none() && call.filter.is_none();
        let name = match call.args.as_slice() {
            [name] => name,
            [name, missing_ok] if matches!(missing_ok.kind, ExprKind::Const(Const::Bool(_))) => name,
            _ => return None,
        };
        let ExprKind::Const(Const::String(name)) = &name.kind else { return None };
        let name = name.to_ascii_lowercase();
        (plain && self.gives.settings.contains(&name.as_str())).then_some(Given::Setting(name))
    }

    /// The parameter that stands for an expression.
    pub fn value_of(&self, expr: &Expr) -> Option<String> {
        let what = self.what(expr)?;
        let type_name = what.type_name();
        Some(format!("(${}::{type_name})", self.number(what)))
    }

    fn number(&self, what: Given) -> u16 {
        let mut values = self.values.borrow_mut();
        // Each row and column draws a value of its own.
        let known = values.iter().position(|v| *v == what && !matches!(v, Given::Drawn(_)));
        let index = known.unwrap_or_else(|| {
            values.push(what);
            values.len() - 1
        });
        self.gives.parameters + 1 + index as u16
    }

    /// Whoever asks inside of something what was drawn would not hear of it.
    fn may_draw(&self, sql: &str) -> bool {
        self.gives.draws && !is_asked_inside(&self.asked_inside, sql)
    }

    /// The parameter for the next value of a sequence.
    pub fn draw(&self, sql: &str) -> Option<u16> {
        self.may_draw(sql).then(|| self.number(Given::Drawn(sql.to_owned())))
    }

    /// The parameter for a column that gets the next value of a sequence; none: its default is more than that.
    pub fn drawn(&self, column: &Column) -> Option<u16> {
        let sql = insert::default_sql(column).filter(|sql| self.may_draw(sql))?;
        let has_sequence = matches!(column.default, ColumnDefault::Identity { .. } | ColumnDefault::Sequence { .. });
        (has_sequence && is_next_value(&sql)).then(|| self.number(Given::Drawn(sql)))
    }
}

/// Whether a body, a view or a default may ask for what was drawn from the sequence that an expression names.
pub fn is_asked_inside(asked: &NameSet, sql: &str) -> bool {
    if asked.is_empty() || asked.contains("") {
        return !asked.is_empty();
    }
    asked.contains(&last_part(&name_of_sequence(sql)))
}

/// The name of the sequence that an expression draws from, as a literal: all that is in quotes.
pub fn name_of_sequence(sql: &str) -> Arc<str> {
    let quotes = sql.find('\'').zip(sql.rfind('\''));
    Arc::from(quotes.and_then(|(first, last)| sql.get(first..=last)).unwrap_or("NULL"))
}

/// The names of those that a default draws from.
pub fn sequences_of_default(sql: &str) -> Vec<Arc<str>> {
    // Most draw from none, and are not parsed.
    if !["nextval", "next_identity"].iter().any(|function| sql.contains(function)) {
        return Vec::new();
    }
    if is_next_value(sql) {
        return vec![name_of_sequence(sql)];
    }
    let calls = pgherd_sql::calls_in_body(sql, "nextval");
    calls.into_iter().map(|(_, argument)| name_of_sequence(argument.of(sql))).filter(|name| **name != *"NULL").collect()
}

/// `nextval('s'::regclass)`, or the same of an identity column, and nothing else.
pub fn is_next_value(sql: &str) -> bool {
    let Ok(statements) = pgherd_sql::split(&format!("SELECT {sql}")) else { return false };
    let [Statement { tree: Tree::Query(query), .. }] = statements.as_slice() else { return false };
    let Body::Select(select) = &query.body else { return false };
    let [item] = select.items.as_slice() else { return false };
    let ExprKind::Call(call) = &item.expr.kind else { return false };
    let of_constant = matches!(call.args.as_slice(), [Expr { kind: ExprKind::Cast { expr, to }, .. }]
        if to.name == "regclass" && matches!(expr.kind, ExprKind::Const(Const::String(_))));
    let is_it = match call.name.as_str() {
        "nextval" => call.schema.as_deref().is_none_or(|schema| schema == "pg_catalog"),
        "next_identity" => call.schema.as_deref() == Some("pgherd"),
        _ => false,
    };
    is_it && of_constant
}

/// One worker could run the statement, if it were given such values.
pub(crate) fn may_help(plan: &Plan, statement: &Statement) -> bool {
    let needs_row = match &plan.tier {
        Tier::Route(_) | Tier::Refuse(_) => return false,
        Tier::InsertRows(insert) => insert.rows.len() == 1 && insert.needs_coordinator,
        _ => false,
    };
    !plan.tables.is_empty() && (needs_row || statement.calls.iter().any(|(_, name)| may_be_given(name)))
}

/// The coordinator could run it on a connection that it shares, if values of sequences came with it.
pub(crate) fn may_draw(plan: &Plan, statement: &Statement) -> bool {
    let is_insert = matches!(statement.tree, Tree::Insert(_));
    is_insert && plan.leaves_draws_only && matches!(plan.tier, Tier::Coordinator { rides: false, .. })
}

/// The plan in which one worker runs the statement with such values, if there is one.
pub(crate) fn plan_with_values<'a>(
    statement: &'a Statement,
    snapshot: &'a pgherd_catalog::Snapshot,
    session: &'a SessionView<'a>,
) -> Option<Plan> {
    plan_given(statement, snapshot, session, |_, plan| matches!(plan.tier, Tier::Route(_)).then_some(plan))
}

/// The same where the transaction's time is a value, of a statement that reads it.
pub(crate) fn plan_with_time<'a>(
    plan: &Plan,
    statement: &'a Statement,
    snapshot: &'a pgherd_catalog::Snapshot,
    session: &SessionView<'a>,
) -> Option<Plan> {
    let may_be = match &plan.tier {
        Tier::Route(_) => true,
        Tier::InsertRows(insert) => insert.rows.len() == 1,
        _ => false,
    };
    let gives = session.gives.filter(|gives| gives.time && may_be && plan.reads_time())?;
    let now = Some(Now::Parameter(gives.parameters.checked_add(1)?));
    let session = SessionView { multi_statement_txn_now: now, ..*session };
    let plan = plan_with_values(statement, snapshot, &session)?;
    Some(Plan { uses_now: false, default_time: false, could_be_given: true, ..plan })
}

/// The plan in which the coordinator alone runs the statement with values of sequences that the router has drawn.
pub(crate) fn plan_with_draws<'a>(
    statement: &'a Statement,
    snapshot: &'a pgherd_catalog::Snapshot,
    session: &'a SessionView<'a>,
) -> Option<Plan> {
    plan_given(statement, snapshot, session, |context, plan| context.with_local_draws(&plan))
}

/// `fits`: gives the plan, or what becomes of it, where it is what is wanted.
fn plan_given<'a>(
    statement: &'a Statement,
    snapshot: &'a pgherd_catalog::Snapshot,
    session: &'a SessionView<'a>,
    fits: impl FnOnce(&Context<'a>, Plan) -> Option<Plan>,
) -> Option<Plan> {
    // There is room for some more.
    let gives = session.gives.filter(|gives| !session.callback && gives.parameters < 60_000)?;
    let names = Names::new(snapshot, session);
    let given = GivenValues::of(statement, &names, gives, session)?;
    let context = Context::new_with(statement, snapshot, session, Some(given));
    let plan = fits(&context, crate::plan_in(&context))?;
    let values = context.given.map(|given| given.values.into_inner()).unwrap_or_default();
    (!values.is_empty()).then_some(Plan { given: values, ..plan })
}

/// What stands for an expression, if something does.
pub(crate) type Replacement<'e> = dyn Fn(&Expr) -> Option<String> + 'e;

/// Puts the session's values where a statement asks for them.
pub(crate) fn replacements<'e>(context: &'e Context<'_>) -> Option<Box<Replacement<'e>>> {
    match &context.given {
        Some(given) => Some(Box::new(|expr| given.value_of(expr))),
        None => {
            let names = safety::Names::new(context.snapshot, context.session);
            let literals = session_literals(context.statement, &names, context.session)?;
            Some(Box::new(literals))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_the_catalog_has_them() {
        for (text, expected) in
            [("'s'", "s"), ("public.\"Odd\"", "odd"), ("'public.\"a\"\"b\"'", "ab"), ("'\"x.y\"'", "y")]
        {
            assert_eq!(last_part(text), expected, "{text}");
        }
        let asked: NameSet = ["ab".to_owned()].into_iter().collect();
        assert!(is_asked_inside(&asked, "nextval('public.\"a\"\"b\"'::regclass)"));
        assert!(!is_asked_inside(&asked, "nextval('a'::regclass)"));
    }
}
