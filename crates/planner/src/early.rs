//! Subqueries that PostgreSQL computes once, when the first row asks for the value (its InitPlans), in what the
//! coordinator runs. Where a foreign scan is sent the value, postgres_fdw asks for it first, and has settings of its
//! own meanwhile: `search_path = pg_catalog`, `DateStyle = ISO`, `IntervalStyle = postgres`. A function in the subquery
//! would not find its tables, and a date would become another text.
//!
//! Two things keep such a subquery out of there; everything else about it stays PostgreSQL's. What a condition compares
//! a column with becomes a common table expression, which EXISTS beside the condition has filled before any scan begins
//! (PostgreSQL checks what has no columns first of all): the scan is sent its value as before. Any other subquery gets
//! COALESCE around it, which postgres_fdw leaves on the coordinator with the condition that it stands in; there it is
//! computed where PostgreSQL would, or not at all.

use std::collections::{HashMap, HashSet};

use pgherd_catalog::Snapshot;
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Splice, Statement};

use crate::SessionView;
use crate::analysis::{Analysis, Entry, Found, Level, resolve};
use crate::context::{quote_ident, with_brackets};
use crate::naming::column_name;
use crate::safety::{self, Now};

/// Names of the common table expressions begin so.
const FIRST: &str = "pgherd_first_";
/// Types whose values are the same text, and read the same, under any settings.
const PLAIN_TYPES: &[&str] = &[
    "bit",
    "bool",
    "bytea",
    "date",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "numeric",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "uuid",
    "varbit",
];
/// Functions whose name is a type that anything becomes by its text.
const TEXT_TYPES: &[&str] = &["bpchar", "char", "json", "jsonb", "name", "text", "varchar", "xml"];

/// Adds what the coordinator's own plans need in a text to `edits`, which has all else that is replaced in it.
pub fn compute_first(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>, edits: &mut Edits) {
    use pgherd_sql::StatementKind as K;
    // First: what stands in subqueries goes where they do.
    crate::unions::keep_apart(statement, snapshot, session, edits);
    let is_asked = |text: &str| text.to_ascii_lowercase().contains("tableoid");
    let may_be_first = || crate::minmax::may_be_first(statement, snapshot);
    if !statement.has_sublink && !is_asked(&statement.text) && !may_be_first() {
        return;
    }
    let mut add = |statement: &Statement, place: (&str, usize)| {
        let analysis = Analysis::run(statement, snapshot, session);
        analysis.name_tables(statement, place.1, edits);
        early(&analysis, statement, edits, place);
    };
    let inner = match &statement.kind {
        K::DeclareCursor { query, .. } => Some(*query),
        K::CreateTableAs(create) if !create.materialized_view && !create.is_execute => Some(create.query),
        _ => None,
    };
    let Some(query) = inner.filter(|span| span.is_known()) else {
        return add(statement, (&statement.text, 0));
    };
    if let Ok([inner]) = pgherd_sql::split(query.of(&statement.text)).as_deref() {
        add(inner, (statement.text.as_str(), query.start + inner.offset));
    }
}

/// The same where the statement has been analysed. `place`: the text in which it stands, and where.
pub(crate) fn early(analysis: &Analysis<'_>, statement: &Statement, edits: &mut Edits, place: (&str, usize)) {
    let (snapshot, session) = (analysis.snapshot, analysis.session);
    // A view may read a distributed table.
    let passes_on = |r: &Relation| snapshot.passing_on.contains(&r.name) && resolve(snapshot, session, r).is_none();
    let reads_foreign = analysis.distributed().next().is_some() || statement.relations.iter().any(passes_on);
    if !reads_foreign || session.callback {
        return;
    }
    crate::minmax::aggregate_all(analysis, edits, place.1);
    if !statement.has_sublink || statement.text.contains(FIRST) {
        return;
    }
    let own = std::iter::once(&statement.tree).chain(analysis.modifying.iter().copied()).map(|tree| match tree {
        Tree::Insert(insert) => insert.with.as_ref(),
        Tree::Update(update) => update.with.as_ref(),
        Tree::Delete(delete) => delete.with.as_ref(),
        Tree::Merge(merge) => merge.with.as_ref(),
        Tree::Query(_) | Tree::Utility => None,
    });
    let mut ctes: HashMap<&str, Vec<&Tree>> = HashMap::new();
    for cte in own.chain(analysis.levels.iter().map(|l| l.query?.with.as_ref())).flatten().flat_map(|w| &w.ctes) {
        ctes.entry(&cte.name).or_default().push(&cte.tree);
    }
    let mut early = Early {
        analysis,
        statement,
        ctes,
        local: HashMap::new(),
        homes: Vec::new(),
        outside: String::new(),
        text: place.0,
        start: place.1,
        edits,
        number: 0,
    };
    early.tree(&statement.tree, true);
}

/// Where common table expressions are put, and those that are.
struct Home {
    at: usize,
    /// Others stand before.
    follows: bool,
    first: Vec<Splice>,
}

impl Home {
    fn new(at: usize, with: Option<&With>) -> Home {
        Home { at, follows: with.is_some(), first: Vec::new() }
    }
}

/// Where what has a common table expression filled goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// In front of the condition itself.
    Here,
    /// In front of the EXISTS that PostgreSQL makes a join of, with the conditions in it.
    Outside,
    /// It would come too late.
    Nowhere,
}

struct Early<'c, 'a> {
    analysis: &'c Analysis<'a>,
    statement: &'c Statement,
    /// Every common table expression by its name.
    ctes: HashMap<&'c str, Vec<&'c Tree>>,
    /// Names in FROM, so far: true where they are the coordinator's own tables alone.
    local: HashMap<&'c str, bool>,
    /// Those of the queries around what is looked at; none: what stands outside has other names in scope.
    homes: Vec<Option<Home>>,
    /// What goes in front of the EXISTS around what is looked at.
    outside: String,
    /// What is edited, and where the statement stands in it.
    text: &'c str,
    start: usize,
    edits: &'c mut Edits,
    number: usize,
}

impl<'c> Early<'c, '_> {
    fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.edits.insert(self.start + at, text);
    }

    /// A range of the statement in what is edited.
    fn there(&self, span: Span) -> Span {
        Span::new(self.start + span.start, self.start + span.end)
    }

    fn with(&mut self, with: Option<&'c With>) {
        self.apart(|this| with.into_iter().flat_map(|w| &w.ctes).for_each(|cte| this.tree(&cte.tree, false)));
    }

    fn tree(&mut self, tree: &'c Tree, is_top: bool) {
        match tree {
            Tree::Query(query) => self.query(query, Gate::Here, is_top),
            Tree::Insert(insert) => {
                self.with(insert.with.as_ref());
                if let InsertSource::Query(query) = &insert.source {
                    self.query(query, Gate::Here, false);
                }
            }
            Tree::Update(update) => {
                self.with(update.with.as_ref());
                self.named(&update.target);
                self.homes.push(update.clauses.map(|clauses| Home::new(clauses.word.start, update.with.as_ref())));
                self.from(&update.from, Gate::Here);
                // `(a, b) = (SELECT …)` has its subquery for each column.
                let repeated = |at: usize, a: &Assignment| {
                    a.multi && at > 0 && update.set[at - 1].multi && update.set[at - 1].value.span == a.value.span
                };
                for (_, assigned) in update.set.iter().enumerate().filter(|(at, a)| !repeated(*at, a)) {
                    self.inside(&assigned.value);
                }
                self.filter(update.filter.as_ref(), Gate::Here);
                self.settle();
            }
            Tree::Delete(delete) => {
                self.with(delete.with.as_ref());
                self.named(&delete.target);
                self.homes.push((is_top && delete.with.is_none()).then(|| Home::new(0, None)));
                self.from(&delete.using, Gate::Here);
                self.filter(delete.filter.as_ref(), Gate::Here);
                self.settle();
            }
            Tree::Merge(merge) => {
                self.with(merge.with.as_ref());
                self.source(&merge.source, Gate::Nowhere);
                self.filter(Some(&merge.on), Gate::Nowhere);
            }
            Tree::Utility => {}
        }
    }

    /// `is_top`: its rows are the statement's.
    fn query(&mut self, query: &'c Query, gate: Gate, is_top: bool) {
        self.with(query.with.as_ref());
        // PostgreSQL makes less of a subquery that has such expressions itself.
        let has_home = query.with.is_none() && matches!(self.homes.last(), Some(Some(_)));
        if !has_home {
            let word = match &query.body {
                Body::Select(select) => select.word,
                Body::Values(_) | Body::SetOp { .. } => Span::default(),
            };
            self.homes.push(word.is_known().then(|| Home::new(word.start, query.with.as_ref())));
        }
        // With such expressions of its own it stays what it is.
        let gate = if has_home { gate } else { Gate::Here };
        match &query.body {
            Body::SetOp { left, right, .. } => {
                self.arm(left);
                self.arm(right);
            }
            Body::Values(rows) => rows.iter().flatten().for_each(|e| self.wrap_all(e)),
            Body::Select(select) => self.select(query, select, gate, is_top),
        }
        query.order_by.iter().for_each(|s| self.wrap_all(&s.expr));
        query.limit.iter().chain(&query.offset).for_each(|e| self.inside(e));
        if !has_home {
            self.settle();
        }
    }

    /// One of a set operation's: a WITH clause in front of it would be for all of them.
    fn arm(&mut self, query: &'c Query) {
        match &query.body {
            Body::Select(select) if query.with.is_none() => {
                self.select(query, select, Gate::Here, false);
                query.order_by.iter().for_each(|s| self.wrap_all(&s.expr));
                query.limit.iter().chain(&query.offset).for_each(|e| self.inside(e));
            }
            Body::SetOp { left, right, .. } if query.with.is_none() => {
                self.arm(left);
                self.arm(right);
            }
            _ => self.query(query, Gate::Here, false),
        }
    }

    fn select(&mut self, query: &'c Query, select: &'c Select, gate: Gate, is_top: bool) {
        self.from(&select.from, gate);
        self.filter(select.filter.as_ref(), gate);
        select.having.iter().for_each(|e| self.wrap_all(e));
        // Values of rows are sent to nobody, but a subquery's columns may stand in conditions outside, and what is
        // grouped or sorted by must stay the same in both places.
        let plain = select.group_by.is_empty() && matches!(select.distinct, Distinct::No);
        match is_top && plain && query.order_by.is_empty() {
            true => select.items.iter().for_each(|item| self.inside(&item.expr)),
            false => select.items.iter().for_each(|item| self.item(item)),
        }
        if let Distinct::On(list) = &select.distinct {
            list.iter().for_each(|e| self.wrap_all(e));
        }
        select.group_by.iter().for_each(|e| self.wrap_all(e));
        select.windows.iter().for_each(|w| w.for_each_expr(&mut |e| self.wrap_all(e)));
    }

    fn from(&mut self, items: &'c [FromItem], gate: Gate) {
        items.iter().for_each(|item| self.source(item, gate));
    }

    fn source(&mut self, item: &'c FromItem, gate: Gate) {
        match item {
            FromItem::Join(join) => {
                let sides = match join.kind {
                    JoinKind::Inner => [gate, gate, gate],
                    JoinKind::Left => [gate, Gate::Nowhere, Gate::Nowhere],
                    JoinKind::Right => [Gate::Nowhere, gate, Gate::Nowhere],
                    JoinKind::Full => [Gate::Nowhere; 3],
                };
                self.source(&join.left, sides[0]);
                self.source(&join.right, sides[1]);
                self.filter(join.on.as_ref(), sides[2]);
            }
            FromItem::Subquery { query, .. } if gate == Gate::Nowhere => self.apart(|this| {
                this.query(query, Gate::Here, false);
            }),
            FromItem::Subquery { query, .. } => self.query(query, gate, false),
            FromItem::Function { calls, .. } => calls.iter().for_each(|e| self.inside(e)),
            FromItem::Sample { relation, .. } => self.source(relation, gate),
            FromItem::Relation(relation) => self.named(relation),
            FromItem::Other(_) => {}
        }
    }

    /// Puts the common table expressions where they belong.
    fn settle(&mut self) {
        let Some(home) = self.homes.pop().flatten().filter(|home| !home.first.is_empty()) else { return };
        let mut all = Splice::default();
        for (number, first) in home.first.into_iter().enumerate() {
            all.push_text(if number == 0 && !home.follows { "WITH " } else { ", " }, None);
            all.append(first);
        }
        all.push_text(" ", None);
        self.edits.insert_splice(self.start + home.at, all);
    }

    /// Only what is in subqueries.
    fn inside(&mut self, expr: &'c Expr) {
        expr.walk(&mut |e| {
            if let ExprKind::Sublink(link) = &e.kind {
                self.query(&link.query, Gate::Here, false);
            }
        });
    }

    fn filter(&mut self, filter: Option<&'c Expr>, gate: Gate) {
        for condition in filter.into_iter().flat_map(Expr::conjuncts) {
            let alone = match &condition.kind {
                ExprKind::Not(of) => of,
                _ => condition,
            };
            match &alone.kind {
                // By itself it has no columns: it is checked before any scan begins.
                ExprKind::Sublink(link) if link.kind == SublinkKind::Exists => {
                    self.exists(condition, &link.query, gate);
                }
                _ if gate != Gate::Nowhere && self.may_be_sent(condition) => self.condition(condition, gate),
                _ if gate == Gate::Nowhere => self.apart(|this| this.wrap_all(condition)),
                _ => self.wrap_all(condition),
            }
        }
    }

    /// Subqueries in there have their own common table expressions, so that PostgreSQL leaves them apart.
    fn apart(&mut self, look: impl FnOnce(&mut Self)) {
        self.homes.push(None);
        look(self);
        self.homes.pop();
    }

    /// PostgreSQL may make a join of it, whose conditions are those in it.
    fn exists(&mut self, condition: &'c Expr, query: &'c Query, gate: Gate) {
        let before = std::mem::take(&mut self.outside);
        let inner = if condition.span.is_known() { gate } else { Gate::Nowhere };
        self.query(query, if inner == Gate::Here { Gate::Outside } else { inner }, false);
        let gates = std::mem::replace(&mut self.outside, before);
        match gate {
            Gate::Outside => self.outside.push_str(&gates),
            _ if gates.is_empty() => {}
            _ => {
                self.insert(condition.span.start, gates);
            }
        }
    }

    /// What postgres_fdw may send of a distributed table, or of a view: it is always computed.
    fn may_be_sent(&self, condition: &Expr) -> bool {
        let (mut columns, mut local, mut plain) = (0, 0, condition.span.is_known());
        condition.walk(&mut |e| match &e.kind {
            ExprKind::Column(path) => {
                columns += 1;
                local += usize::from(path.len() > 1 && self.local.get(path[path.len() - 2].as_str()) == Some(&true));
            }
            ExprKind::Sublink(_) => {}
            _ => plain &= !self.depends(e),
        });
        plain && columns > local
    }

    /// Notes whether columns of this name may be a distributed table's.
    fn named(&mut self, relation: &'c Relation) {
        let (snapshot, session) = (self.analysis.snapshot, self.analysis.session);
        let is_local = match resolve(snapshot, session, relation) {
            _ if relation.schema.is_none() && self.ctes.contains_key(relation.name.as_str()) => false,
            Some(table) => table.is_reference(),
            None => !snapshot.passing_on.contains(&relation.name),
        };
        *self.local.entry(relation.reference_name()).or_insert(true) &= is_local;
    }

    fn condition(&mut self, condition: &'c Expr, gate: Gate) {
        let mut computed: Vec<&'c Expr> = Vec::new();
        always_computed(condition, &mut computed);
        let (mut gates, mut values) = (String::new(), Vec::new());
        let by_rows = compared_as_rows(condition);
        self.inside(condition);
        let has_home = matches!(self.homes.last(), Some(Some(_)));
        computed.retain(|e| {
            let ExprKind::Sublink(link) = &e.kind else { return false };
            let fits = matches!(link.kind, SublinkKind::Scalar | SublinkKind::Array) && e.span.is_known() && has_home;
            fits && !by_rows.iter().any(|(link, _)| std::ptr::eq(*link, *e))
                && self.is_early(link)
                && self.is_closed(&link.query)
        });
        for expr in &computed {
            self.number += 1;
            let name = format!("{FIRST}{}", self.number);
            let mut first = Splice::made(&format!("{name} AS MATERIALIZED (SELECT "));
            match self.edits.apply_to(self.text, self.there(expr.span)) {
                Ok(text) => first.append(text),
                Err(overlap) => self.edits.fail(overlap),
            }
            first.push_text(" AS value)", None);
            if let Some(Some(home)) = self.homes.last_mut() {
                home.first.push(first);
            }
            gates.push_str(&format!("EXISTS (SELECT FROM {name}) AND "));
            // Behind ANY a subquery in brackets is one for its rows.
            let is_array = matches!(&expr.kind, ExprKind::Sublink(link) if link.kind == SublinkKind::Array);
            let whole = if is_array { "[:]" } else { "" };
            values.push((expr.span, format!("(SELECT value FROM {name}){whole}")));
        }
        if gate == Gate::Outside {
            self.outside.push_str(&std::mem::take(&mut gates));
        }
        let starts = |span: &Span| span.start == condition.span.start;
        if !gates.is_empty() && !values.iter().any(|(span, _)| starts(span)) {
            self.insert(condition.span.start, gates.clone());
        }
        for (span, value) in values {
            let before = if starts(&span) { gates.as_str() } else { "" };
            self.edits.cover(self.there(span), format!("{before}{value}"));
        }
        self.wrap(condition, &computed);
    }

    fn item(&mut self, item: &'c SelectItem) {
        let (expr, mut now) = (&item.expr, false);
        self.inside(expr);
        // An item of the transaction's time gets its name where that is put in.
        expr.walk(&mut |e| now |= safety::now_replacement(e, &self.statement.text, Now::ANY).is_some());
        let name = column_name(expr);
        if item.alias.is_some() || !named_by_subquery(expr) {
            self.wrap(expr, &[]);
        } else if !now && name != "?column?" && self.wrap(expr, &[]) {
            let item = with_brackets(&self.statement.text, expr.span);
            self.edits.insert_after(self.there(item), format!(" AS {}", quote_ident(&name)));
        }
    }

    fn wrap_all(&mut self, expr: &'c Expr) {
        self.inside(expr);
        self.wrap(expr, &[]);
    }

    /// True: something was wrapped.
    fn wrap(&mut self, expr: &'c Expr, but: &[&'c Expr]) -> bool {
        let by_rows = compared_as_rows(expr);
        let mut found: Vec<&'c Expr> = Vec::new();
        expr.walk(&mut |e| {
            let ExprKind::Sublink(link) = &e.kind else { return };
            let once = matches!(link.kind, SublinkKind::Scalar | SublinkKind::Array | SublinkKind::Exists);
            if once && e.span.is_known() && !but.iter().any(|b| std::ptr::eq(*b, e)) && self.is_early(link) {
                match by_rows.iter().find(|(link, _)| std::ptr::eq(*link, e)) {
                    // It gives several values. Its row may as well be what is not sent.
                    Some((_, row)) if row.iter().all(|e| matches!(e.kind, ExprKind::Column(_))) => found.extend(*row),
                    Some(_) => {}
                    None => found.push(e),
                }
            }
        });
        for e in found.iter().filter(|e| e.span.is_known()) {
            self.insert(e.span.start, "(COALESCE(");
            self.edits.append_to(self.there(e.span), "))");
        }
        !found.is_empty()
    }

    /// The settings may matter to what is computed in a subquery.
    fn is_early(&self, link: &Sublink) -> bool {
        self.analysis.has_parts_unknown || self.matters(&link.query, &mut HashSet::new())
    }

    fn matters(&self, query: &Query, seen: &mut HashSet<String>) -> bool {
        let mut found = false;
        query.walk_all(&mut |_, e| found |= self.depends(e));
        let inside = |r: &&Relation| !query.span.is_known() || query.span.contains(r.full_span);
        found
            || self.statement.relations.iter().filter(inside).any(|r| {
                let trees =
                    self.ctes.get(r.name.as_str()).filter(|_| r.schema.is_none() && seen.insert(r.name.clone()));
                let (snapshot, session) = (self.analysis.snapshot, self.analysis.session);
                snapshot.passing_on.contains(&r.name) && resolve(snapshot, session, r).is_none()
                    || trees.into_iter().flatten().any(|tree| match tree {
                        Tree::Query(query) => self.matters(query, seen),
                        // It is run when the first of its rows is asked for.
                        _ => true,
                    })
            })
    }

    /// What an expression node itself gives may depend on the settings.
    fn depends(&self, expr: &Expr) -> bool {
        let snapshot = self.analysis.snapshot;
        match &expr.kind {
            ExprKind::Call(call) => {
                let name = call.name.as_str();
                call.schema.as_deref().is_some_and(|s| s != "pg_catalog")
                    || snapshot.user_functions.contains(name)
                    || TEXT_TYPES.contains(&name)
                    || !snapshot.immutable_functions.contains(name) && !safety::NOW_CALLS.contains(&name)
            }
            ExprKind::Cast { expr, to } => {
                let is_plain = PLAIN_TYPES.contains(&to.name.as_str()) || matches!(expr.kind, ExprKind::Const(_));
                !is_plain || !to.may_be_built_in() || snapshot.user_types.contains(&to.name)
            }
            ExprKind::ValueFunction(word) => !safety::NOW_WORDS.contains(word),
            ExprKind::Op(op) if op.name == "||" => true,
            ExprKind::Op(_) | ExprKind::Sublink(_) => {
                safety::operator_reason(&safety::Names::written(snapshot), expr).is_some()
            }
            ExprKind::Unknown(_) => true,
            _ => false,
        }
    }

    /// Nothing in a subquery means a column of what is around it, as far as columns are known.
    fn is_closed(&self, query: &Query) -> bool {
        let analysis = self.analysis;
        let is_it = |l: &Level<'_>| l.query.is_some_and(|q| std::ptr::eq(q, query));
        let Some(level) = analysis.levels.iter().find(|l| is_it(l)) else { return false };
        let is_within =
            |l: &&Level<'_>| is_it(l) || l.query.is_some_and(|q| q.span.is_known() && query.span.contains(q.span));
        let levels: Vec<_> = analysis.levels.iter().filter(is_within).collect();
        let single = level.arms.is_none() && levels.len() == 1;
        let within: Vec<_> =
            levels.iter().filter_map(|l| analysis.scopes.get(l.scope)).flat_map(|s| &s.entries).collect();
        let around: Vec<_> = analysis.around(level.scope).flat_map(|s| &s.entries).collect();
        let may_mean = |path: &[String], entries: &[&Entry]| match path {
            [name] => entries.iter().any(|e| {
                e.name == *name || e.columns.as_ref().is_none_or(|columns| columns.iter().any(|(c, _)| c == name))
            }),
            [.., qualifier, _] => entries.iter().any(|e| e.name == *qualifier || e.name.is_empty()),
            [] => false,
        };
        let mut closed = query.span.is_known() && !analysis.has_parts_unknown;
        query.walk_all(&mut |_, e| match &e.kind {
            ExprKind::Column(path) if may_mean(path, &around) => {
                closed &= single && matches!(analysis.resolve_column(path, level.scope), Found::Column(_, true));
            }
            // What PostgreSQL says of a name that is wrong may name columns around it.
            ExprKind::Column(path) => closed &= may_mean(path, &within),
            ExprKind::Star(path) => {
                closed &= path.last().is_none_or(|name| !around.iter().any(|e| e.name == *name || e.name.is_empty()));
            }
            _ => {}
        });
        closed
    }
}

/// Subqueries of a condition that are computed whenever it is.
fn always_computed<'c>(expr: &'c Expr, out: &mut Vec<&'c Expr>) {
    match &expr.kind {
        ExprKind::Sublink(_) => out.push(expr),
        ExprKind::Op(op) => op.left.iter().chain(&op.right).for_each(|e| always_computed(e, out)),
        ExprKind::Cast { expr, .. }
        | ExprKind::Collate { expr, .. }
        | ExprKind::NullTest { expr, .. }
        | ExprKind::Indirection { expr, .. }
        | ExprKind::Not(expr) => always_computed(expr, out),
        ExprKind::Array(list) | ExprKind::List(list) | ExprKind::Row(list) => {
            list.iter().for_each(|e| always_computed(e, out));
        }
        _ => {}
    }
}

/// `(a, b) = (SELECT …)`, at any depth: the subquery and the row.
fn compared_as_rows(expr: &Expr) -> Vec<(&Expr, &[Expr])> {
    let mut found = Vec::new();
    expr.walk(&mut |e| {
        if let ExprKind::Op(op) = &e.kind
            && let (Some(Expr { kind: ExprKind::Row(row), .. }), Some(right)) = (&op.left, &op.right)
            && matches!(right.kind, ExprKind::Sublink(_))
        {
            found.push((right, row.as_slice()));
        }
    });
    found
}

/// The name of an item is that of its subquery's column.
fn named_by_subquery(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Sublink(_) => true,
        ExprKind::Cast { expr, .. }
        | ExprKind::Collate { expr, .. }
        | ExprKind::Indirection { expr, last_field: None, .. } => named_by_subquery(expr),
        ExprKind::Case { default, .. } => default.as_ref().is_some_and(|e| named_by_subquery(e)),
        _ => false,
    }
}
