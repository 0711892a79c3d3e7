//! Functions that are about one key: a body is read to its end, and each query in it is planned like a statement of
//! its own. Where all of them are routes by the same argument, and whatever else it has may run on a worker, the call
//! is one statement of that worker. A copy of the function does it there, in the shard's own schema: its body names the
//! shard's partitions, and where the shard has gone the copy has gone, too.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use pgherd_catalog::{Argument, ArgumentMode, Routine, Snapshot, Table};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Piece, RoutineBody, Splice, Statement, read_routine};

use crate::analysis::resolve;
use crate::context::{Context, colocated, dotted_call, quote_ident};
use crate::given::{Given, Gives, given_by_call, may_be_given};
use crate::plan::*;
use crate::{SessionView, literal, safety};

/// In front of the names of such copies.
pub const COPY_PREFIX: &str = "pgherd_body_";
/// A body is not read that is longer.
const BODY_MAX: usize = 64 * 1024;

type Proved<T> = Result<T, String>;

/// A body that is about one key.
struct Proof {
    /// Of the first query with a key.
    table: Arc<Table>,
    /// Which argument is the key, from 1.
    argument: usize,
    tables: Vec<Arc<Table>>,
    writes: bool,
    uses_now: bool,
    given: Vec<Given>,
    /// The body with the shard's names.
    body: Splice,
    /// Tables of declared types, too.
    named: Vec<Arc<Table>>,
    reads_settings: bool,
    catches_waiting: bool,
}

/// The call in a statement that does nothing else with tables.
struct Called<'a> {
    call: &'a Call,
    /// What is put behind it keeps its name.
    named: Option<Span>,
}

impl Context<'_> {
    /// One worker runs the statement, which calls a function that is about one key. `None`: there is no such call.
    pub fn by_routine(&self) -> Option<Plan> {
        let session = self.session;
        if session.callback || session.routines.is_empty() {
            return None;
        }
        let called = self.called()?;
        let routine = session.routines.iter().find(|routine| self.means(called.call, routine))?;
        match self.route_call(&called, routine) {
            Ok(plan) => Some(plan),
            Err(reason) => {
                let reason =
                    format!("no distributed table is named, and {} is not about one key: {reason}", routine.name);
                let plan = self.on_coordinator(&reason);
                // What the router gives may have been missing.
                Some(Plan { could_be_given: session.gives.is_none(), ..plan })
            }
        }
    }

    fn means(&self, call: &Call, routine: &Routine) -> bool {
        let in_path = || self.session.search_path.contains(&routine.schema);
        call.name == routine.name && call.schema.as_ref().map_or_else(in_path, |schema| *schema == routine.schema)
    }

    fn called(&self) -> Option<Called<'_>> {
        let Tree::Query(query) = &self.statement.tree else { return None };
        let Body::Select(select) = &query.body else { return None };
        let statement = self.statement;
        let is_plain = query.with.is_none()
            && !query.into
            && query.row_locks.is_empty()
            && !statement.has_sublink
            && statement.relations.is_empty()
            && statement.samples.is_empty();
        let found = match (select.from.as_slice(), select.items.as_slice()) {
            ([], [SelectItem { expr: Expr { kind: ExprKind::Call(call), .. }, alias }]) => {
                Called { call, named: alias.is_none().then_some(call.call_span) }
            }
            (
                [FromItem::Function { calls, lateral: false, alias, column_definitions: false, ordinality: false }],
                _,
            ) => {
                let [Expr { kind: ExprKind::Call(call), .. }] = calls.as_slice() else { return None };
                Called { call, named: alias.is_none().then_some(call.call_span) }
            }
            _ => return None,
        };
        (is_plain && found.call.call_span.is_known()).then_some(found)
    }

    fn route_call(&self, called: &Called<'_>, routine: &Routine) -> Proved<Plan> {
        let call = called.call;
        let gives = self.session.gives.filter(|gives| gives.parameters < 60_000).ok_or("nothing can be given to it")?;
        let inputs = routine.arguments.iter().filter(|argument| argument.mode.is_given()).count();
        let is_named = |arg: &Expr| matches!(arg.kind, ExprKind::NamedArg { .. });
        let is_plain = !call.star
            && !call.distinct
            && !call.variadic
            && !call.within_group
            && !call.sql_syntax
            && call.order_by.is_empty()
            && call.filter.is_none()
            && call.over.is_none()
            && !call.args.iter().any(is_named)
            && call.args.len() == inputs;
        if !is_plain {
            return Err("it is not called with a value for each argument".to_owned());
        }
        let mut calls = 0;
        self.statement.tree.walk_all(&mut |_, expr| {
            calls += usize::from(matches!(&expr.kind, ExprKind::Call(call) if call.name == routine.name));
        });
        if calls != 1 {
            return Err("it is called more than once".to_owned());
        }
        if let Some(reason) = safety::reason_beside(self.statement, &self.names(), &routine.name) {
            return Err(reason);
        }
        if let Some(reason) = dotted_call(self.statement, self.snapshot, &self.analysis) {
            return Err(reason);
        }
        if !self.words.is_empty() {
            return Err("a literal is the current time".to_owned());
        }
        let proof = prove(routine, self.snapshot, self.session)?;
        let uses_now = self.uses_now || proof.uses_now;
        if uses_now && self.session.multi_statement_txn_now.is_some() {
            return Err("its time would be another one than the transaction's".to_owned());
        }
        let column = proof.table.key_column().ok_or("there is no key")?;
        let position = routine.arguments[..proof.argument].iter().filter(|a| a.mode.is_given()).count() - 1;
        let key = literal::key_value(&call.args[position], column, self.snapshot).ok_or("its key is no constant")?;
        let copy = copy_of(routine, &proof, self.session);
        let text = self.text();
        let paren =
            call.call_span.of(text).find('(').filter(|_| !routine.name.contains('(')).ok_or("its name is odd")?;
        let mut edits = Edits::new();
        let name = Span::new(call.call_span.start, call.call_span.start + paren);
        edits.beside(name, proof.table.oid, &copy.name);
        for (at, given) in proof.given.iter().enumerate() {
            let number = usize::from(gives.parameters) + 1 + at;
            edits.insert(call.call_span.end - 1, format!(", (${number}::{})", given.type_name()));
        }
        if let Some(span) = called.named {
            edits.insert_after(span, format!(" AS {}", quote_ident(&routine.name)));
        }
        let sql = edits.apply(text).map_err(String::from)?;
        let reason =
            format!("all that {} does is about one value of {}.{}", routine.name, proof.table.name, column.name);
        let route = Route { table: proof.table.clone(), key, sql, parent_only: false };
        let plan = self.plan(Tier::Route(route), reason);
        Ok(Plan {
            writes: proof.writes,
            tables: proof.tables,
            uses_now,
            given: proof.given,
            parent_only: false,
            copy: Some(Arc::new(copy)),
            one_row: !routine.returns_set && matches!(&self.statement.tree, Tree::Query(q) if is_bare(q)),
            ..plan
        })
    }
}

/// `SELECT f(…)`
fn is_bare(query: &Query) -> bool {
    matches!(&query.body, Body::Select(select) if select.from.is_empty())
}

fn prove(routine: &Routine, snapshot: &Snapshot, session: &SessionView<'_>) -> Proved<Proof> {
    if routine.body.len() > BODY_MAX {
        return Err("its body is too long".to_owned());
    }
    let body = read_routine(&routine.body, &routine.language)?;
    let is_sql = routine.language == "sql";
    let shown = |argument: &&Argument| !is_sql || argument.mode.is_given();
    let mut names: Vec<&str> = routine.arguments.iter().filter(shown).map(|a| a.name.as_str()).collect();
    let arguments = names.len();
    names.extend(body.variables.iter().map(|variable| variable.name.as_str()));
    if !is_sql {
        names.extend(["found", "sqlstate", "sqlerrm"]);
    }
    let is_hidden = |(at, name): (usize, &&str)| !name.is_empty() && names[at + 1..].contains(name);
    if names[..arguments].iter().enumerate().any(is_hidden) {
        return Err("a variable has the name of an argument".to_owned());
    }
    let is_declared = |name: &String| body.variables.iter().any(|variable| variable.name == *name);
    for target in body.assigned.iter().filter(|target| target.len() > 1) {
        // Anything else that a name may be qualified by is not there in the copy, or not a variable.
        if !is_declared(&target[0]) || target[0] == routine.name || body.labels.contains(&target[0]) {
            return Err(format!("it is not known what {} is", target.join(".")));
        }
    }
    if body.labels.contains(&routine.name) {
        return Err("a block has the name of the function".to_owned());
    }
    let mut named = Vec::new();
    for variable in &body.variables {
        if let Some(type_name) = &variable.type_name {
            named.extend(declared_type(type_name, snapshot, session)?);
        }
    }
    let columns_of_result = routine.arguments.iter().filter(|a| a.mode == ArgumentMode::Table).count();
    let prover = Prover {
        routine,
        body: &body,
        snapshot,
        session: SessionView {
            gives: Some(Gives { parameters: names.len() as u16, settings: &[], draws: false, time: false }),
            routines: &[],
            may_stage: false,
            built_in_parameters: false,
            ..*session
        },
        names,
        arguments,
        // SQL's parameters are those that it is given.
        numbered: if is_sql { arguments } else { arguments - columns_of_result },
        is_sql,
        found: RefCell::default(),
    };
    for piece in &body.pieces {
        pgherd_sql::with_stack(piece.statement.depth, || prover.piece(piece))?;
    }
    let Found { key, tables, writes, uses_now, given, edits } = prover.found.into_inner();
    let (table, number) = key.ok_or("no query in it has a key")?;
    // Numbers of SQL's parameters are those of what it is given.
    let mut numbered = routine.arguments.iter().enumerate().filter(|(_, argument)| shown(argument));
    let Some((at, argument)) = numbered.nth(usize::from(number) - 1).filter(|(_, a)| a.mode.is_given()) else {
        return Err("a key is no argument".to_owned());
    };
    if body.assigned.iter().any(|target| target[0] == argument.name) && !argument.name.is_empty() {
        return Err(format!("{} gets another value in it", argument.name));
    }
    let column = table.key_column().ok_or("there is no key")?;
    // A longer text is cut when it becomes a name.
    if !literal::same_family(argument.type_oid, column.type_oid) || column.typmod >= 0 || argument.type_name == "name" {
        return Err(format!("{} is of another type than the key", argument.name));
    }
    if routine.is_strict && !given.is_empty() {
        return Err("it is not called with NULL, and what it is given may be NULL".to_owned());
    }
    let reads_settings = body.pieces.iter().any(|piece| safety::literals_read_settings(&piece.statement));
    let catches_waiting = body.catches_waiting;
    let body = edits.apply(&routine.body).map_err(String::from)?;
    named.extend(tables.iter().cloned());
    let argument = at + 1;
    Ok(Proof { argument, table, tables, writes, uses_now, given, body, named, reads_settings, catches_waiting })
}

/// A variable's type is the same on workers: that of a table, perhaps.
fn declared_type(written: &str, snapshot: &Snapshot, session: &SessionView<'_>) -> Proved<Option<Arc<Table>>> {
    let lower = written.to_ascii_lowercase();
    let of_relation = match (lower.strip_suffix("%rowtype"), lower.strip_suffix("%type")) {
        (Some(rest), _) => Some(rest.len()),
        (_, Some(rest)) => Some(rest.rfind('.').unwrap_or(0)),
        _ => None,
    };
    let text = match of_relation {
        // A variable's own type.
        Some(0) => return Ok(None),
        Some(length) => format!("SELECT FROM {}", written[..length].trim_end()),
        None => format!("SELECT NULL::{written}"),
    };
    let statement = one_statement(&text)?;
    if of_relation.is_some() {
        let [relation] = statement.relations.as_slice() else { return Err(format!("the type {written} is not known")) };
        let is_same = |table: &&Arc<Table>| !table.has_user_types;
        return match resolve(snapshot, session, relation).filter(is_same) {
            Some(table) => Ok(Some(table.clone())),
            None => Err(format!("the type {written} is not the same on workers")),
        };
    }
    match safety::statement_reason(&statement, &safety::Names::new(snapshot, session)) {
        Some(reason) => Err(reason),
        None => Ok(None),
    }
}

fn one_statement(text: &str) -> Proved<Statement> {
    let mut statements = pgherd_sql::split(text).map_err(|error| error.message)?;
    statements.pop().filter(|_| statements.is_empty()).ok_or_else(|| "a part of it is no statement".to_owned())
}

#[derive(Default)]
struct Found {
    key: Option<(Arc<Table>, u16)>,
    tables: Vec<Arc<Table>>,
    writes: bool,
    uses_now: bool,
    given: Vec<Given>,
    /// Of the whole body.
    edits: Edits,
}

struct Prover<'a> {
    routine: &'a Routine,
    body: &'a RoutineBody,
    snapshot: &'a Snapshot,
    session: SessionView<'a>,
    /// Arguments, and the variables behind them: a variable stands for the parameter of its number.
    names: Vec<&'a str>,
    /// How many of them are arguments, and how many of those keep their numbers in a copy.
    arguments: usize,
    numbered: usize,
    is_sql: bool,
    found: RefCell<Found>,
}

impl Prover<'_> {
    fn piece(&self, piece: &Piece) -> Proved<()> {
        if matches!(piece.statement.tree, Tree::Utility) {
            return Err(format!("it has a statement that is no query: {}", first_words(&piece.statement.text)));
        }
        let text = self.with_parameters(&piece.statement)?;
        let statement = one_statement(&text)?;
        let plan = crate::plan_statement(&statement, self.snapshot, &self.session);
        let context = Context::new(&statement, self.snapshot, &self.session);
        let key = match &plan.tier {
            Tier::Route(route) if !route.parent_only => Some((&route.table, &route.key)),
            Tier::InsertRows(InsertRows { table, rows, needs_coordinator: false, by_shard: false, .. }) => {
                match rows.as_slice() {
                    [InsertRow { key: RowKey::Value(key), .. }] => Some((table, key)),
                    _ => return Err(format!("it inserts many rows: {}", first_words(&text))),
                }
            }
            Tier::Coordinator { .. } if !statement.has_modifying => None,
            _ => return Err(format!("{} ({})", plan.reason, first_words(&piece.statement.text))),
        };
        let mut edits = Edits::new();
        for relation in &piece.statement.relations {
            let is_cte = relation.schema.is_none() && piece.statement.ctes.contains(&relation.name);
            match (resolve(self.snapshot, &self.session, relation), is_cte) {
                (Some(table), false) if relation.full_span.is_known() => {
                    edits.table(relation.full_span, table.oid, relation.full_span.of(&piece.statement.text));
                }
                (None, true) => {}
                (None, false) => return Err(format!("{} is no distributed table", relation.name)),
                (Some(_), _) => return Err(format!("{} has the name of something else", relation.name)),
            }
        }
        let calls_given = self.given_calls(piece)?;
        if key.is_none() {
            let names = safety::Names { given: true, ..context.names() };
            let reason = safety::statement_reason(&statement, &names)
                .or_else(|| dotted_call(&statement, self.snapshot, &context.analysis));
            if let Some(reason) = reason {
                return Err(reason);
            }
        } else if plan.given.iter().any(|given| !calls_given.iter().any(|(_, called)| called == given)) {
            return Err("it needs a value of the coordinator's".to_owned());
        }
        let shows_rows = !context.analysis.system_columns.is_empty();
        if context.analysis.has_parts_unknown
            || shows_rows
            || !plan.locked_copies.is_empty()
            || !context.words.is_empty()
        {
            return Err(format!("it is not certain what it reads: {}", first_words(&text)));
        }
        for table in &plan.tables {
            let is_plain = match table.is_reference() {
                true => !plan.writes && table.shows_reads(),
                false => table.shows_writes() && !table.fires_here && !table.changed_here,
            };
            if !is_plain {
                return Err(format!("{} does more than its columns show", table.name));
            }
        }
        let mut found = self.found.borrow_mut();
        if let Some((table, key)) = key {
            let KeyValue::Param(number) = key else { return Err(format!("{} has another key", table.name)) };
            match &found.key {
                None => found.key = Some((table.clone(), *number)),
                Some((first, same)) if same == number && colocated(first, table) => {}
                Some((first, _)) => return Err(format!("{} and {} have different keys", first.name, table.name)),
            }
        }
        for table in &plan.tables {
            if !found.tables.iter().any(|known| known.oid == table.oid) {
                found.tables.push(table.clone());
            }
        }
        found.writes |= plan.writes || statement.locks_rows;
        found.uses_now |= plan.reads_time() || context.uses_now;
        for (span, number) in self.arguments_by_function(piece)? {
            edits.cover(span, format!("${number}"));
        }
        for (span, given) in calls_given {
            edits.cover(span, given_name(&given));
            if !found.given.contains(&given) {
                found.given.push(given);
            }
        }
        found.edits.extend_at(edits, piece.start);
        Ok(())
    }

    /// The statement with a parameter in place of each variable.
    fn with_parameters(&self, statement: &Statement) -> Proved<String> {
        let mut edits = Edits::new();
        let mut failed = None;
        statement.tree.walk_all(&mut |_, expr| {
            let number = match &expr.kind {
                ExprKind::Column(path) => self.variable(path, statement),
                ExprKind::Star(path) if path.first().is_some_and(|first| self.number(first).is_some()) => {
                    Err("all fields of a variable are asked for".to_owned())
                }
                ExprKind::Param(number) if usize::from(*number) > self.numbered => {
                    Err(format!("there is no parameter ${number}"))
                }
                _ => Ok(None),
            };
            match number {
                Ok(Some(number)) if expr.span.is_known() => {
                    edits.replace(expr.span, format!("${number}"));
                }
                Ok(Some(_)) => failed = Some("a variable is not found in the text".to_owned()),
                Ok(None) => {}
                Err(reason) => failed = Some(reason),
            }
        });
        match failed {
            Some(reason) => Err(reason),
            None => Ok(edits.apply(&statement.text).map_err(String::from)?.as_written()),
        }
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name).map(|at| at + 1)
    }

    /// The variable that a name means, where it means one.
    fn variable(&self, path: &[String], statement: &Statement) -> Proved<Option<usize>> {
        let [first, rest @ ..] = path else { return Ok(None) };
        let unknown = || Err(format!("it is not known what {} is", path.join(".")));
        let is_around = *first == self.routine.name || self.body.labels.contains(first);
        if let [field, ..] = rest {
            let known = self.number(first);
            if known.is_none() && !is_around {
                return Ok(None);
            }
            // It may be what a table or a subquery is called there.
            if statement.names_alone(first) {
                return unknown();
            }
            return match (known, is_around) {
                (Some(number), false) if number > self.arguments => Ok(Some(number)),
                (None, true) if rest.len() == 1 => self.number(field).map_or_else(unknown, |number| Ok(Some(number))),
                _ => unknown(),
            };
        }
        let Some(number) = self.number(first) else { return Ok(None) };
        // SQL takes a column of the name, where there is one.
        if self.is_sql && (!statement.ctes.is_empty() || statement.has_sublink || !has_plain_tables(&statement.tree)) {
            return Err(format!("it is not certain what {first} is"));
        }
        let is_column = |relation: &Relation| {
            let table = resolve(self.snapshot, &self.session, relation);
            table.is_some_and(|table| table.column(first).is_some())
        };
        match self.is_sql && statement.relations.iter().any(is_column) {
            true => Ok(None),
            false => Ok(Some(number)),
        }
    }

    /// Arguments that are qualified by the function's name, which the copy does not have.
    fn arguments_by_function(&self, piece: &Piece) -> Proved<Vec<(Span, usize)>> {
        let is_query = self.is_sql || piece.is_query;
        let mut found = Vec::new();
        let mut failed = None;
        piece.statement.tree.walk_all(&mut |place, expr| {
            let ExprKind::Column(path) = &expr.kind else { return };
            if path.len() < 2 || path[0] != self.routine.name || self.body.labels.contains(&path[0]) {
                return;
            }
            match self.variable(path, &piece.statement) {
                Ok(Some(number)) if number <= self.numbered && expr.span.is_known() => {
                    if place == Place::Target && is_query {
                        failed = Some("an argument gives a column its name".to_owned());
                    }
                    found.push((expr.span, number));
                }
                Ok(None) => {}
                _ => failed = Some(format!("it is not known what {} is", path.join("."))),
            }
        });
        failed.map_or(Ok(found), Err)
    }

    /// Calls whose values the router gives.
    fn given_calls(&self, piece: &Piece) -> Proved<Vec<(Span, Given)>> {
        let names = safety::Names::new(self.snapshot, &self.session);
        let is_query = self.is_sql || piece.is_query;
        let mut found = Vec::new();
        let mut failed = None;
        piece.statement.tree.walk_all(&mut |place, expr| {
            let Some(given) = given_by_call(expr, &names) else {
                let asks = matches!(&expr.kind, ExprKind::Call(call) if may_be_given(&call.name));
                if asks {
                    failed = Some("it asks for the session's settings".to_owned());
                }
                return;
            };
            // A column would have another name.
            let keeps_name = !matches!(place, Place::From) && (place != Place::Target || !is_query);
            if !keeps_name || !expr.span.is_known() {
                failed = Some("a value of the session gives a column its name".to_owned());
            }
            found.push((expr.span, given));
        });
        failed.map_or(Ok(found), Err)
    }
}

/// All of these names.
pub const GIVEN_NAMES: [&str; 3] = ["pgherd_inet_client_addr", "pgherd_inet_client_port", "pgherd_pg_backend_pid"];

/// The name in a copy's body for what the router gives.
fn given_name(given: &Given) -> &'static str {
    match given {
        Given::ClientPort => GIVEN_NAMES[1],
        Given::ProcessId => GIVEN_NAMES[2],
        _ => GIVEN_NAMES[0],
    }
}

fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    words.join(" ")
}

/// FROM has nothing but tables.
fn has_plain_tables(tree: &Tree) -> bool {
    fn is_plain(item: &FromItem) -> bool {
        match item {
            FromItem::Relation(_) => true,
            FromItem::Join(join) => is_plain(&join.left) && is_plain(&join.right),
            _ => false,
        }
    }
    match tree {
        Tree::Query(query) => match &query.body {
            Body::Select(select) => select.from.iter().all(is_plain),
            _ => false,
        },
        Tree::Insert(insert) => matches!(insert.source, InsertSource::Values(_)),
        Tree::Update(update) => update.from.iter().all(is_plain),
        Tree::Delete(delete) => delete.using.iter().all(is_plain),
        _ => false,
    }
}

/// The function that a worker runs in its place.
fn copy_of(routine: &Routine, proof: &Proof, session: &SessionView<'_>) -> RoutineCopy {
    let mut arguments = Vec::new();
    let mut columns = Vec::new();
    let mut gives_back = false;
    for argument in &routine.arguments {
        let name = if argument.name.is_empty() { String::new() } else { quote_ident(&argument.name) };
        let mode = match argument.mode {
            ArgumentMode::In => "",
            ArgumentMode::Out => "OUT ",
            ArgumentMode::InOut => "INOUT ",
            ArgumentMode::Table => {
                columns.push(format!("{name} {}", argument.type_name));
                continue;
            }
        };
        gives_back |= !mode.is_empty();
        arguments.push(format!("{mode}{name} {}", argument.type_name));
    }
    let given = proof.given.iter().map(|given| format!("{} {}", given_name(given), given.type_name()));
    arguments.extend(given);
    let returns = match (columns.is_empty(), gives_back, routine.returns_set) {
        (false, ..) => format!(" RETURNS TABLE ({})", columns.join(", ")),
        (true, true, false) => String::new(),
        (true, _, is_set) => format!(" RETURNS {}{}", if is_set { "SETOF " } else { "" }, routine.result),
    };
    let head = format!(
        " ({}){returns} LANGUAGE {}{} {} AS ",
        arguments.join(", "),
        quote_ident(&routine.language),
        if routine.is_strict { " STRICT" } else { "" },
        routine.options
    );
    let styles = if proof.reads_settings { session.styles } else { "" };
    let schema = match session.search_path.contains(&routine.schema) {
        true => String::new(),
        false => format!("{}.", quote_ident(&routine.schema)),
    };
    // What names mean is a part of it, and of which types the columns are.
    let number = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, styles, &head, proof.body.as_written()).hash(&mut hasher);
        for table in &proof.named {
            (table.oid, &table.schema, &table.name).hash(&mut hasher);
            table.shards().iter().for_each(|shard| shard.id.hash(&mut hasher));
            table.columns.iter().for_each(|column| (&column.name, column.type_oid, column.typmod).hash(&mut hasher));
        }
        hasher.finish()
    };
    RoutineCopy {
        name: format!("{COPY_PREFIX}{:016x}{:016x}", number(0), number(1)),
        head,
        body: proof.body.clone(),
        rides: !proof.catches_waiting,
        of: routine.name.clone(),
        signature: format!("{schema}{}", routine.signature),
    }
}
