//! What every planning step shares: the statement, who is who in it, and the texts that are made of it.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use pgherd_catalog::{NameSet, Snapshot, Table, TableKind};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Overlap, Splice, Statement, own_names};

use crate::SessionView;
use crate::analysis::Analysis;
use crate::decorrelate::Joined;
use crate::given::{GivenValues, Replacement, asks_drawn, asks_session};
use crate::moments::{self, MovingLiteral};
use crate::plan::*;
use crate::safety::{self, Now};
use crate::stage::Staging;

pub(crate) struct Context<'a> {
    pub statement: &'a Statement,
    pub snapshot: &'a Snapshot,
    pub session: &'a SessionView<'a>,
    pub analysis: Analysis<'a>,
    /// Each table named once.
    pub tables: Vec<Arc<Table>>,
    /// Why no worker may run the statement.
    pub unsafe_reason: Option<String>,
    pub uses_now: bool,
    /// Literals like `'now'` for which the transaction's time stands.
    pub words: Vec<MovingLiteral>,
    pub writes: bool,
    /// What comes with the statement, in the way of staging that is being tried.
    pub staging: RefCell<Staging>,
    /// What is put around a value that is assigned to a distribution column which is to stay as it is.
    pub kept_key: RefCell<Option<(Span, [String; 2])>>,
    /// Parts whose number of rows would have helped to choose.
    pub questions: RefCell<BTreeSet<String>>,
    /// What has been found of occurrences (see reduce.rs).
    pub implied: RefCell<HashMap<usize, Rc<Implied>>>,
    /// Values that come as parameters, where this way is being tried.
    pub given: Option<GivenValues<'a>>,
}

/// Conditions on an occurrence, with the share of its rows that each lets through.
pub(crate) type Implied = Vec<(String, f64)>;

pub(crate) fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub(crate) fn quote_literal(text: &str) -> String {
    if text.contains('\\') {
        format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

pub(crate) fn qualified(table: &Table) -> String {
    format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name))
}

/// Puts values where a statement reads the transaction's time, once another server's has been taken for it, and where
/// it asks for the number of the session's process, which the coordinator does not know.
pub fn fix_session(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>, edits: &mut Edits) {
    if asks_session(statement) || asks_drawn(statement) || session.multi_statement_txn_now.is_some() {
        Context::new(statement, snapshot, session).fix_session(edits);
    }
}

/// Most views of activity, and functions that watch, know the numbers of the coordinator's processes.
pub(crate) fn asks_for_pid(statement: &Statement, snapshot: &Snapshot) -> bool {
    let of_sessions = |name: &str| matches!(name, "pg_locks" | "pg_stat_activity");
    let mut shown = statement.relations.iter().any(|r| r.name.starts_with("pg_") && !of_sessions(&r.name));
    shown |= snapshot.user_functions.contains(BACKEND_PID);
    let watches = |name: &str| {
        const WATCHING: &[&str] =
            &["pg_lock_status", "pg_log_backend_memory_contexts", "pg_safe_snapshot_blocking_pids"];
        name.starts_with("pg_stat_") || WATCHING.contains(&name)
    };
    shown |= statement.calls.iter().any(|(_, name)| watches(name));
    !shown && statement.calls.iter().any(|(_, name)| name == BACKEND_PID)
}

pub(crate) const BACKEND_PID: &str = "pg_backend_pid";

/// `of_session`: what stands for calls that only the session can answer.
fn replace_session_values(
    statement: &Statement,
    now: Option<Now<'_>>,
    of_session: Option<&Replacement<'_>>,
    edits: &mut Edits,
) {
    let text = &statement.text;
    let now = now.filter(|_| safety::uses_now(statement));
    if now.is_none() && of_session.is_none() {
        return;
    }
    let value_of = |expr: &Expr| {
        let own = of_session.and_then(|value| value(expr));
        own.or_else(|| safety::now_replacement(expr, text, now?))
    };
    statement.tree.walk_all(&mut |place, expr| {
        let is_own = |e: &Expr| of_session.is_some_and(|value| value(e).is_some());
        if place == Place::From && is_own(expr) {
            return;
        }
        if let Some(new) = value_of(expr) {
            edits.cover(expr.span, new);
        }
        if place == Place::Target && !matches!(expr.kind, ExprKind::Star(_)) {
            let mut changed = false;
            expr.walk(&mut |e| changed |= value_of(e).is_some());
            if changed {
                // The item keeps the name that it had.
                edits.insert_after(
                    with_brackets(text, expr.span),
                    format!(" AS {}", quote_ident(&crate::naming::column_name(expr))),
                );
            }
        }
    });
}

impl<'a> Context<'a> {
    pub fn new(statement: &'a Statement, snapshot: &'a Snapshot, session: &'a SessionView<'a>) -> Self {
        Context::new_with(statement, snapshot, session, None)
    }

    /// `given`: the router has these values for it.
    pub fn new_with(
        statement: &'a Statement,
        snapshot: &'a Snapshot,
        session: &'a SessionView<'a>,
        given: Option<GivenValues<'a>>,
    ) -> Self {
        let snapshot = match snapshot.among_built_in_types() {
            Some(other) if has_built_in_types(statement, snapshot, session) => other,
            _ => snapshot,
        };
        let analysis = Analysis::run(statement, snapshot, session);
        let mut tables: Vec<Arc<Table>> = Vec::new();
        let add = |tables: &mut Vec<Arc<Table>>, table: &Arc<Table>| {
            if !tables.iter().any(|t| t.oid == table.oid) {
                tables.push(table.clone());
            }
        };
        for instance in &analysis.instances {
            add(&mut tables, instance.table);
        }
        if analysis.has_parts_unknown {
            for relation in &statement.relations {
                if let Some(table) = crate::analysis::resolve(snapshot, session, relation) {
                    add(&mut tables, table);
                }
            }
        }
        let unsafe_reason = if analysis.has_parts_unknown {
            Some("a construct is not understood".to_owned())
        } else if analysis.instances.iter().any(|i| i.relation.only && i.table.is_partitioned) {
            // Workers' names of distributed tables are for partitioned tables, too, and there ONLY is taken away.
            Some("ONLY of a partitioned table has no rows".to_owned())
        } else if analysis.has_system_column && !session.callback {
            Some("a system column names physical rows".to_owned())
        } else if safety::has_outer_aggregate(&analysis) {
            Some("an aggregate in a subquery is one of the query around it".to_owned())
        } else {
            let names = safety::Names { given: given.is_some(), ..safety::Names::new(snapshot, session) };
            safety::statement_reason(statement, &names).or_else(|| dotted_call(statement, snapshot, &analysis))
        };
        let words = moments::literals_of_time(statement, &analysis);
        let uses_now = safety::uses_now(statement)
            || !moments::defaults_of_time(&statement.tree, &analysis).is_empty()
            || !words.is_empty();
        Context {
            statement,
            snapshot,
            session,
            analysis,
            tables,
            unsafe_reason,
            uses_now,
            words,
            writes: statement.has_modifying,
            staging: RefCell::default(),
            kept_key: RefCell::default(),
            questions: RefCell::default(),
            implied: RefCell::default(),
            given,
        }
    }

    pub fn names(&self) -> safety::Names<'a> {
        safety::Names { given: self.given.is_some(), ..safety::Names::new(self.snapshot, self.session) }
    }

    pub fn text(&self) -> &'a str {
        &self.statement.text
    }

    pub fn has_distributed(&self) -> bool {
        self.tables.iter().any(|t| !t.is_reference())
    }

    pub fn plan(&self, tier: Tier, reason: impl Into<String>) -> Plan {
        Plan {
            tier,
            reason: reason.into(),
            writes: self.writes,
            tables: self.tables.clone(),
            uses_now: self.uses_now,
            default_time: false,
            wants_sizes: false,
            questions: Vec::new(),
            lock_wait: None,
            locked_copies: self.locked_copies(),
            given: Vec::new(),
            parent_only: self.parent_only(),
            leaves_draws_only: false,
            one_row: false,
            copy: None,
            could_be_given: false,
        }
    }

    /// Reference tables whose rows the statement locks in order to change them, and waits for.
    fn locked_copies(&self) -> Vec<Arc<Table>> {
        let mut found: Vec<Arc<Table>> = Vec::new();
        for level in &self.analysis.levels {
            for lock in level.query.iter().flat_map(|q| &q.row_locks).filter(|l| l.to_change && l.wait.is_none()) {
                for instance in level.from.iter().flat_map(|node| self.analysis.joined(node)) {
                    let is_named =
                        lock.of.is_empty() || lock.of.iter().any(|n| n == instance.relation.reference_name());
                    if is_named && instance.table.is_reference() && !found.iter().any(|t| t.oid == instance.table.oid) {
                        found.push(instance.table.clone());
                    }
                }
            }
        }
        found
    }

    pub fn refuse(&self, message: impl Into<String>, detail: Option<String>, hint: Option<&str>) -> Plan {
        let message = message.into();
        let reason = message.clone();
        let refusal = Refusal { sqlstate: "0A000", message, detail, hint: hint.map(str::to_owned) };
        self.plan(Tier::Refuse(refusal), reason)
    }

    /// The text as the coordinator runs it: our own names qualified, ONLY taken from distributed tables (their rows
    /// are in a child there).
    pub fn coordinator_edits(&self) -> Edits {
        let mut edits = Edits::new();
        for (span, name) in own_names(self.statement) {
            edits.replace(span, name);
        }
        for instance in &self.analysis.instances {
            let relation = instance.relation;
            let has_child = !instance.table.is_reference() && !instance.table.is_partitioned;
            if relation.only && has_child && relation.full_span.is_known() {
                edits.replace(relation.full_span, relation.span.of(self.text()));
            }
        }
        self.analysis.name_tables(self.statement, 0, &mut edits);
        self.fix_session(&mut edits);
        edits
    }

    /// A plan with that text.
    pub fn with_coordinator_sql(&self, tier: impl FnOnce(Splice) -> Tier, reason: impl Into<String>) -> Plan {
        match self.coordinator_sql() {
            Ok(sql) => self.plan(tier(sql), reason),
            Err(overlap) => self.broken(overlap),
        }
    }

    /// A plan with the text for workers.
    pub fn with_worker_sql(&self, tier: impl FnOnce(Splice) -> Tier, reason: impl Into<String>) -> Plan {
        match self.worker_edits().apply(self.text()) {
            Ok(sql) => self.plan(tier(sql), reason),
            Err(overlap) => self.broken(overlap),
        }
    }

    /// The plan, if its texts could be written.
    pub fn unless_broken(&self, plan: Result<Plan, Overlap>) -> Plan {
        plan.unwrap_or_else(|overlap| self.broken(overlap))
    }

    fn broken(&self, overlap: Overlap) -> Plan {
        let refusal = Refusal { sqlstate: "XX000", message: overlap.to_string(), detail: None, hint: None };
        self.plan(Tier::Refuse(refusal), "its text cannot be written")
    }

    fn coordinator_sql(&self) -> Result<Splice, Overlap> {
        let mut edits = self.coordinator_edits();
        crate::unions::keep_apart(self.statement, self.snapshot, self.session, &mut edits);
        crate::early::early(&self.analysis, self.statement, &mut edits, (self.text(), 0));
        edits.apply(self.text())
    }

    /// The edits of a text for workers: each table's name marked, the transaction's time fixed where it is given.
    pub fn worker_edits(&self) -> Edits {
        let mut edits = Edits::new();
        let staging = self.staging.borrow();
        for (index, instance) in self.analysis.instances.iter().enumerate() {
            let relation = instance.relation;
            if staging.instance(index).is_some() {
                for condition in self.conditions_on(index) {
                    edits.cover(condition.span, " true ");
                }
            }
            if let (Some(clause), Some(_)) = (instance.sample, staging.instance(index)) {
                edits.cover(clause, "");
            }
            match staging.instance(index) {
                Some(staged) if relation.alias.is_some() => {
                    edits.replace(relation.full_span, staged.marker());
                }
                Some(staged) => {
                    edits
                        .replace(relation.full_span, format!("{} AS {}", staged.marker(), quote_ident(&relation.name)));
                }
                None => {
                    edits.table(relation.full_span, instance.table.oid, qualified(instance.table));
                }
            }
        }
        for (index, level) in self.analysis.levels.iter().enumerate() {
            let (Some(staged), Some(query)) = (staging.level(index), level.query) else { continue };
            let part = staged.part();
            match staging.joined(index) {
                None => {
                    edits.cover(query.span, staged.marker());
                }
                Some(joined) => {
                    edits.insert(joined.from, format!(" , {} AS {} ", staged.marker(), Joined::alias(part)));
                    edits.cover(joined.subquery, Joined::value(part));
                    edits.insert(joined.condition, joined.conditions(part));
                }
            }
        }
        if let Some((value, [before, after])) = &*self.kept_key.borrow() {
            edits.insert(value.start, before.as_str()).insert(value.end, after.as_str());
        }
        self.fix_session(&mut edits);
        edits
    }

    fn fix_session(&self, edits: &mut Edits) {
        let now = self.session.multi_statement_txn_now;
        let of_session = crate::given::replacements(self);
        replace_session_values(self.statement, now, of_session.as_deref(), edits);
        let Some(now) = now else { return };
        for (span, sql) in moments::defaults_of_time(&self.statement.tree, &self.analysis) {
            if let Some(value) = crate::insert::default_at(sql, now, self.snapshot).filter(|_| span.is_known()) {
                edits.replace(span, value);
            }
        }
        for (span, value) in self.moving_literals(now) {
            edits.replace(span, value);
        }
    }

    /// Literals like `'now'`, with what they stand for.
    pub fn moving_literals(&self, now: Now<'_>) -> Vec<(Span, String)> {
        let value =
            |(span, word, type_name): &MovingLiteral| Some((*span, safety::moving_value(word, type_name, &[], now)?));
        self.words.iter().filter_map(value).collect()
    }

    /// Every range of a table's name is known, so that it can be replaced.
    pub fn names_are_known(&self) -> bool {
        self.analysis.instances.iter().all(|i| i.relation.full_span.is_known())
    }

    pub fn parent_only(&self) -> bool {
        self.analysis.needs_parent_name || self.analysis.instances.iter().any(|i| i.table.parent_only)
    }

    /// The workers' own system columns are asked for, which only a statement by a partition's name can return of rows
    /// that it inserts.
    pub fn returns_versions(&self) -> bool {
        self.analysis.system_columns.iter().any(|c| self.analysis.is_version(c))
    }

    fn coordinator_tier(&self, sql: Splice) -> Tier {
        let rides = self.shows_all(&self.snapshot.shown_targets) && sql.as_written() == self.text();
        Tier::Coordinator { sql, in_block: self.needs_coordinator_block(), rides }
    }

    /// The plan in which the coordinator alone runs it.
    pub fn on_coordinator(&self, reason: &str) -> Plan {
        let plan = self.with_coordinator_sql(|sql| self.coordinator_tier(sql), reason);
        let leaves_draws_only = self.shows_all(&self.snapshot.drawing_targets);
        Plan { leaves_draws_only, ..plan }
    }

    /// The coordinator runs nothing for it but what it shows: built-in functions that depend on no session and leave
    /// nothing in one, over tables behind which nothing else stands.
    /// `targets`: what may be written.
    fn shows_all(&self, targets: &NameSet) -> bool {
        let is_shown = |relation: &Relation| match crate::analysis::resolve(self.snapshot, self.session, relation) {
            Some(table) => table.is_reference() && table.shows_reads(),
            None => shown_relation(self.statement, self.snapshot, self.session, relation),
        };
        let locks = self.analysis.levels.iter().filter_map(|level| level.query).any(|q| !q.row_locks.is_empty());
        let target = match &self.statement.tree {
            Tree::Query(_) => None,
            Tree::Insert(insert) => Some(&insert.target),
            Tree::Update(update) => Some(&update.target),
            Tree::Delete(delete) => Some(&delete.target),
            _ => return false,
        };
        let is_target = |relation: &Relation| {
            let name =
                self.snapshot.resolve_other(relation.schema.as_deref(), &relation.name, self.session.search_path);
            name.is_some_and(|name| targets.contains(name.as_str()))
        };
        !self.analysis.has_parts_unknown
            && dotted_call(self.statement, self.snapshot, &self.analysis).is_none()
            && safety::reason_here(self.statement, &self.names()).is_none()
            && !locks
            && self.statement.samples.is_empty()
            && (target.is_some() || !self.writes)
            && self.analysis.modifying.is_empty()
            && target.is_none_or(is_target)
            && self.statement.relations.iter().all(is_shown)
    }

    pub fn needs_coordinator_block(&self) -> bool {
        self.statement.has_modifying
            || self
                .statement
                .calls
                .iter()
                .any(|(_, name)| self.snapshot.user_functions.contains(name) || pgherd_sql::defines_by_itself(name))
            || self.statement.relations.iter().any(|r| self.snapshot.calling_views.contains(&r.name))
    }

    /// Why a statement on several servers would not see one time; none: it does.
    pub fn time_reason(&self, table: &Table) -> Option<String> {
        // The coordinator sends only what it may evaluate anywhere, with times and dates as values.
        if self.snapshot.groups_of(table).len() <= 1 || self.session.callback {
            return None;
        }
        if self.uses_now && self.session.multi_statement_txn_now.is_none() {
            return Some("the current time must be the same on every server".to_owned());
        }
        self.moving_reason()
    }

    /// What moves with time and cannot be fixed.
    pub fn moving_reason(&self) -> Option<String> {
        safety::moving_reason(self.statement, self.words.iter().map(|(span, ..)| *span).collect())
    }

    pub fn federate(&self, reason: impl Into<String>) -> Plan {
        let reason = reason.into();
        if self.session.callback {
            return self.refuse(
                "cannot run this statement inside a statement of the coordinator",
                Some(format!("It cannot be split over the workers: {reason}.")),
                None,
            );
        }
        // postgres_fdw has only the columns that users made.
        if let Some(column) = self.analysis.system_columns.iter().find(|c| self.analysis.is_version(c)) {
            let table = &self.analysis.instances[column.instance].table.name;
            return self.refuse(
                format!(
                    "cannot use system column \"{}\" of distributed table \"{table}\" in this statement",
                    column.name
                ),
                Some(format!("The coordinator runs it: {reason}.")),
                Some("Use it in a statement that workers can run."),
            );
        }
        // postgres_fdw locks rows without saying how, which the router adds where it is the same everywhere.
        let queries = self.analysis.levels.iter().filter_map(|l| l.query);
        let waits: Vec<Option<&str>> = queries.flat_map(|q| q.row_locks.iter().map(|lock| lock.wait)).collect();
        let lock_wait = waits.first().copied().flatten();
        if waits.iter().any(|wait| *wait != lock_wait) {
            return self.refuse(
                "cannot run this statement with NOWAIT or SKIP LOCKED",
                Some(format!("It cannot be split over the workers, and has other row locks as well: {reason}.")),
                Some("Give the value of the distribution column, or the same to all row locks."),
            );
        }
        let mut copies: Vec<Arc<Table>> = Vec::new();
        for instance in self.analysis.instances.iter().filter(|i| i.is_target && i.table.is_reference()) {
            if !copies.iter().any(|t| t.oid == instance.table.oid) {
                copies.push(instance.table.clone());
            }
        }
        let mut plan = self.with_coordinator_sql(|sql| Tier::Federate { sql, copies }, reason);
        plan.writes |= self.analysis.instances.iter().any(|i| i.is_target);
        plan.lock_wait = lock_wait;
        plan
    }

    /// The one value to which every distributed table is pinned, if they are colocated.
    pub fn route_key(&self) -> Result<(Arc<Table>, KeyValue), String> {
        let mut found: Option<(&Arc<Table>, &KeyValue)> = None;
        for index in self.analysis.distributed() {
            let table = self.analysis.instances[index].table;
            let Some(value) = self.analysis.pin_of(index) else {
                return Err(match table.key_column() {
                    Some(key) => format!("no single value is given for {}.{}", table.name, key.name),
                    None => format!("no key for {}", table.name),
                });
            };
            match found {
                None => found = Some((table, value)),
                Some((first, first_value)) => {
                    if !colocated(first, table) {
                        return Err(format!("{} and {} are not colocated", first.name, table.name));
                    }
                    if first_value != value {
                        return Err("the tables are pinned to different values".to_owned());
                    }
                }
            }
        }
        found.map(|(t, v)| (t.clone(), v.clone())).ok_or_else(|| "no distributed table".to_owned())
    }
}

/// An expression's range with the brackets that stand around it alone.
pub(crate) fn with_brackets(text: &str, span: Span) -> Span {
    let mut out = span;
    loop {
        let before = text[..out.start].trim_end();
        let after = text[out.end..].trim_start();
        if !before.ends_with('(') || !after.starts_with(')') {
            return out;
        }
        out = Span::new(before.len() - 1, text.len() - after.len() + 1);
    }
}

/// Equal keys of both tables are on one worker, in partitions of the same number.
pub(crate) fn colocated(a: &Table, b: &Table) -> bool {
    match (&a.kind, &b.kind) {
        (
            TableKind::Distributed { key_type: ta, shards: sa, .. },
            TableKind::Distributed { key_type: tb, shards: sb, .. },
        ) => {
            a.oid == b.oid
                || (a.colocation != 0
                    && a.colocation == b.colocation
                    && sa.len() == sb.len()
                    && (ta == tb || integers(ta, tb)))
        }
        _ => false,
    }
}

fn integers(a: &pgherd_catalog::hash::KeyType, b: &pgherd_catalog::hash::KeyType) -> bool {
    use pgherd_catalog::hash::KeyType::*;
    matches!(a, Int2 | Int4 | Int8) && matches!(b, Int2 | Int4 | Int8)
}

/// A constant count of LIMIT or OFFSET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Count {
    None,
    Constant(u64),
    Param(u16),
    Other,
}

pub(crate) fn count_of(expr: Option<&Expr>) -> Count {
    let Some(expr) = expr else { return Count::None };
    match &expr.kind {
        ExprKind::Const(Const::Null) => Count::None,
        ExprKind::Const(Const::Integer(i)) => u64::try_from(*i).map_or(Count::Other, Count::Constant),
        ExprKind::Const(Const::Number(n)) => n.parse().map_or(Count::Other, Count::Constant),
        ExprKind::Param(n) => Count::Param(*n),
        _ => Count::Other,
    }
}

/// Where none of its columns, parameters and casts is of a user's type, values of such types come only from functions
/// and operators that take others (`Snapshot::among_built_in_types`).
fn has_built_in_types(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>) -> bool {
    let names = safety::Names::new(snapshot, session);
    let own = |relation: &pgherd_sql::ast::Relation| match crate::analysis::resolve(snapshot, session, relation) {
        Some(table) => !table.has_user_types,
        None => shown_relation(statement, snapshot, session, relation),
    };
    (statement.params == 0 || session.built_in_parameters)
        && statement.relations.iter().all(own)
        // A cast may be written as a call.
        && !statement.types.iter().chain(&statement.calls).any(|(schema, name)| {
            schema.as_deref().is_some_and(|schema| schema != "pg_catalog")
                || names.is_users(&snapshot.user_types, schema.as_deref(), name)
        })
}

/// A CTE, or a local table with columns of built-in types and nothing behind it.
fn shown_relation(
    statement: &Statement,
    snapshot: &Snapshot,
    session: &SessionView<'_>,
    relation: &pgherd_sql::ast::Relation,
) -> bool {
    let (schema, name) = (relation.schema.as_deref(), relation.name.as_str());
    if schema.is_none() && session.temp_relations.contains(name) {
        return false;
    }
    match snapshot.resolve_other(schema, name, session.search_path) {
        Some(name) => snapshot.shown_relations.contains(name.as_str()),
        // Another relation of the name may be meant elsewhere.
        None => {
            schema.is_none()
                && statement.ctes.iter().any(|cte| cte == name)
                && !snapshot.other_names().any(|(_, other)| other == name)
        }
    }
}

/// `x.f` is another way to write `f(x)`, where x has no such column.
pub(crate) fn dotted_call(statement: &Statement, snapshot: &Snapshot, analysis: &Analysis<'_>) -> Option<String> {
    let is_column = |name: &str| analysis.instances.iter().any(|i| i.table.columns.iter().any(|c| c.name == name));
    let mut found = None;
    statement.tree.walk_all(&mut |_, e| {
        let name = match &e.kind {
            ExprKind::Column(path) if path.len() > 1 => path.last(),
            ExprKind::Indirection { last_field, .. } => last_field.as_ref(),
            _ => None,
        };
        if let Some(name) = name.filter(|n| snapshot.user_functions.contains(*n) && !is_column(n)) {
            found.get_or_insert_with(|| format!("the function {name} is not built in"));
        }
    });
    found
}
