//! What parts of a staged statement are made of: the text of a subquery that stands alone, or of one occurrence of a
//! table with the columns that the statement names and the conditions that concern it alone; and how many rows that
//! may be.

use std::collections::HashSet;
use std::fmt::Write;

use pgherd_sql::ast::*;

use crate::analysis::{Analysis, Entry, Found, Node};
use crate::context::{Context, qualified, quote_ident};
use crate::reduce::{Reducing, looks_alike};
use crate::safety;

/// From this many rows on, a table is reduced by what it is joined with,
pub(crate) const REDUCED_FROM: f64 = 5_000.0;
/// or from so many, by a table that every worker has,
const REDUCED_BESIDE_FROM: f64 = 100.0;
/// where that keeps at most this share.
pub(crate) const REDUCED_TO: f64 = 0.5;
/// A part of more rows, by estimate, does not reduce others.
pub(crate) const REDUCER_MAX: f64 = 50_000.0;
/// A worker is asked for its estimate of what seems to be more rows than this.
const ASKED_FROM: f64 = 2_000.0;

/// Of more columns than this there are hardly two rows alike.
const DISTINCT_COLUMNS_MAX: usize = 2;

type Result<T> = std::result::Result<T, String>;

/// The rows of one occurrence.
#[derive(Debug, Clone)]
pub(crate) struct InstanceText {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// How many there are by estimate,
    pub rows: f64,
    /// and before they are reduced by what they are joined with.
    pub whole_rows: f64,
    /// Which share of its rows tables have left that the rest is joined with once more.
    pub kept: f64,
    /// Another occurrence has the same rows where this is the same.
    everything: Option<String>,
    whole: String,
    reduced: Option<String>,
    /// The subquery that has reduced it.
    level: Option<usize>,
    /// Tables that every worker has have reduced it, and others may go on.
    beside: bool,
    /// How another condition is added.
    and: &'static str,
}

impl InstanceText {
    pub fn sql(&self) -> &str {
        self.reduced.as_ref().unwrap_or(&self.whole)
    }

    /// What is said of all rows of the table, whatever it is called.
    pub fn everything(&self) -> Option<&str> {
        self.everything.as_deref().filter(|_| self.reduced.is_none())
    }

    fn with(&self, condition: &str) -> String {
        format!("{}{}{condition}", self.whole, self.and)
    }

    /// How many rows another part would reduce.
    pub fn rows_to_reduce(&self) -> f64 {
        if self.beside { self.rows } else { self.whole_rows }
    }

    /// It is reduced by this subquery, which is a part itself: its rows do as well.
    pub fn asks(&self, source: &Source) -> bool {
        matches!((source, self.level), (Source::Level(part), Some(level)) if *part == level)
    }

    /// The rows that another part, which is run before, leaves.
    pub fn reduce(&mut self, alias: &str, reducing: &Reducing, part: usize, rows: f64) {
        let condition = reducing.condition(alias, part);
        let reduced = self.reduced.take().filter(|_| self.beside);
        if reduced.is_none() {
            self.kept = 1.0;
        }
        self.reduced = Some(reduced.map_or_else(|| self.with(&condition), |sql| format!("{sql} AND {condition}")));
        (self.rows, self.level) = (rows, None);
    }
}

/// What a part is made of.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Instance { index: usize, columns: Vec<String> },
    Level(usize),
}

impl Context<'_> {
    /// The text of a subquery that refers to nothing outside of itself but CTEs, which are put in front of it. Names
    /// are looked at roughly: where one is taken for its own wrongly, the coordinator does not find it and says so
    /// before anything is run.
    pub fn closed_text(&self, level: usize) -> Result<String> {
        let (prefix, text, _) = self.closed(level)?;
        Ok(format!("{prefix}{text}"))
    }

    /// The same of a SELECT with one more condition.
    pub fn closed_text_with(&self, level: usize, condition: &str) -> Result<String> {
        let (prefix, text, parsed) = self.closed(level)?;
        let lost = "a subquery's clauses are not found in the text";
        let Tree::Query(query) = &parsed.tree else { return Err(lost.to_owned()) };
        let Body::Select(select) = &query.body else { return Err(lost.to_owned()) };
        let end = parsed.outline().and_then(|o| o.from_where).ok_or(lost)?.end;
        let (before, behind) = text.split_at(end);
        match (&select.filter, select.filter_word) {
            (None, _) => Ok(format!("{prefix}{before} WHERE {condition}{behind}")),
            (Some(_), word) if word.is_known() => {
                let (before, filter) = before.split_at(word.end);
                Ok(format!("{prefix}{before} ({}) AND {condition}{behind}", filter.trim()))
            }
            _ => Err(lost.to_owned()),
        }
    }

    /// The CTEs in front of it, the text, and what it says.
    fn closed(&self, level: usize) -> Result<(String, &str, pgherd_sql::Statement)> {
        let this = &self.analysis.levels[level];
        let query = this.query.ok_or("a data-modifying CTE")?;
        if !query.span.is_known() || query.locks_rows() || query.into {
            return Err("a subquery is not found in the text".to_owned());
        }
        let text = query.span.of(self.text());
        let parsed = pgherd_sql::split(text).ok().and_then(|mut list| list.pop()).ok_or("a subquery does not parse")?;
        match &parsed.tree {
            Tree::Query(alone) if alone.is_same_as(query) && !parsed.has_modifying => {}
            _ => return Err("a subquery is not found in the text".to_owned()),
        }
        // Of a WITH that is not the statement's own nothing is put in front of it.
        let is_cte = |name: &str| {
            let others = self.analysis.levels.iter().filter_map(|l| l.query);
            let others = others.filter(|q| q.span.is_known() && !query.span.contains(q.span));
            others.flat_map(|q| q.with.iter().flat_map(|w| &w.ctes)).any(|cte| cte.name == name)
        };
        if parsed.relations.iter().any(|r| r.schema.is_none() && is_cte(&r.name)) {
            return Err("a CTE of another subquery".to_owned());
        }
        let prefix = self.ctes_for(&parsed, query)?;
        let alone = Analysis::run(&parsed, self.snapshot, self.session);
        if alone.has_bound_full_join || !prefix.is_empty() && self.analysis.has_bound_full_join {
            return Err("a full join that conditions outside of the subquery may be needed for".to_owned());
        }
        let inner: Vec<_> = alone.scopes.iter().flat_map(|s| &s.entries).collect();
        let outer: Vec<_> = self.analysis.around(this.scope).flat_map(|s| &s.entries).collect();
        let mut correlated = None;
        parsed.tree.walk_all(&mut |_, expr| {
            let ExprKind::Column(path) = &expr.kind else { return };
            let own = match path.as_slice() {
                [name] => {
                    let has =
                        |e: &Entry| e.columns.as_ref().is_none_or(|list| list.iter().any(|(column, _)| column == name));
                    inner.iter().any(|e| e.columns.is_some() && has(e)) || !outer.iter().any(|e| has(e))
                }
                [.., qualifier, _] => {
                    inner.iter().any(|e| e.name == *qualifier) || !outer.iter().any(|e| e.name == *qualifier)
                }
                [] => false,
            };
            if !own {
                correlated = Some(path.join("."));
            }
        });
        match correlated {
            Some(name) => Err(format!("a subquery refers to {name} outside of it")),
            None => Ok((prefix, text, parsed)),
        }
    }

    /// `WITH …` for the statement's own CTEs that a subquery reads.
    fn ctes_for(&self, parsed: &pgherd_sql::Statement, query: &Query) -> Result<String> {
        let with = match &self.statement.tree {
            Tree::Query(top) => top.with.as_ref(),
            Tree::Merge(merge) => merge.with.as_ref(),
            _ => None,
        };
        let Some(with) = with else { return Ok(String::new()) };
        let names = |name: &str| parsed.relations.iter().any(|r| r.schema.is_none() && r.name == name);
        let read = with.ctes.iter().rposition(|cte| names(&cte.name));
        // A CTE sees those before it.
        let own = |cte: &Cte| match &cte.tree {
            Tree::Query(q) => std::ptr::eq(&**q, query) || q.span.contains(query.span),
            _ => false,
        };
        let Some(last) = read else { return Ok(String::new()) };
        if query.with.is_some() || with.recursive {
            return Err("a CTE in a subquery that has its own".to_owned());
        }
        let before = with.ctes.iter().position(own).unwrap_or(with.ctes.len());
        let mut text = String::new();
        for cte in with.ctes.iter().take(before.min(last + 1)) {
            let Tree::Query(q) = &cte.tree else { return Err("a data-modifying CTE".to_owned()) };
            if !q.span.is_known() || cte.search_or_cycle {
                return Err("a CTE is not found in the text".to_owned());
            }
            let alone = pgherd_sql::split(q.span.of(self.text())).ok().and_then(|mut list| list.pop());
            let same = alone.is_some_and(|s| matches!(&s.tree, Tree::Query(alone) if alone.is_same_as(q)));
            if !self.is_repeatable(q) || !same {
                return Err("a CTE that is not the same twice".to_owned());
            }
            let columns: Vec<String> = cte.columns.iter().map(|c| quote_ident(c)).collect();
            let list = if columns.is_empty() { String::new() } else { format!("({})", columns.join(", ")) };
            let word = match cte.materialized {
                None => "",
                Some(true) => "MATERIALIZED ",
                Some(false) => "NOT MATERIALIZED ",
            };
            let separator = if text.is_empty() { "WITH " } else { ", " };
            let _ = write!(text, "{separator}{}{list} AS {word}({})", quote_ident(&cte.name), q.span.of(self.text()));
        }
        if !text.is_empty() {
            text.push(' ');
        }
        Ok(text)
    }

    /// The query gives the same rows each time: nothing in it is volatile or cut off.
    pub fn is_repeatable(&self, query: &Query) -> bool {
        let mut volatile = false;
        query.walk_all(&mut |_, e| {
            volatile |= matches!(&e.kind, ExprKind::Call(c) if self.snapshot.volatile_functions.contains(&c.name));
        });
        let cut = |q: &Query| {
            let on = matches!(&q.body, Body::Select(s) if matches!(s.distinct, Distinct::On(_)));
            q.limit.is_some() || q.offset.is_some() || on
        };
        let inside = |q: &Query| std::ptr::eq(q, query) || (q.span.is_known() && query.span.contains(q.span));
        let sampled = |i: &crate::analysis::Instance<'_>| {
            i.sample.is_some() && (!query.span.is_known() || query.span.contains(i.relation.full_span))
        };
        !volatile
            && !self.analysis.instances.iter().any(sampled)
            && !self.analysis.levels.iter().filter_map(|l| l.query).any(|q| inside(q) && cut(q))
    }

    /// The columns of an occurrence as the statement calls them.
    pub fn entry_names(&self, index: usize) -> Vec<String> {
        let instance = &self.analysis.instances[index];
        let mut names: Vec<String> = instance.table.columns.iter().map(|c| c.name.clone()).collect();
        if let Some(alias) = &instance.relation.alias {
            for (name, new) in names.iter_mut().zip(&alias.columns) {
                *name = new.clone();
            }
        }
        names
    }

    /// An occurrence as an item of FROM, under the names that the statement has for it.
    pub fn named(&self, index: usize) -> String {
        let instance = &self.analysis.instances[index];
        let renamed = match &instance.relation.alias {
            Some(a) if !a.columns.is_empty() => {
                let list: Vec<String> = a.columns.iter().map(|c| quote_ident(c)).collect();
                format!("({})", list.join(", "))
            }
            _ => String::new(),
        };
        format!("{} AS {}{renamed}", qualified(instance.table), quote_ident(instance.relation.reference_name()))
    }

    /// The same with its TABLESAMPLE: other rows each time.
    fn sampled(&self, index: usize) -> String {
        match self.analysis.instances[index].sample {
            Some(clause) => format!("{} {}", self.named(index), clause.of(self.text())),
            None => self.named(index),
        }
    }

    /// The rows of one occurrence.
    pub fn instance_text(&self, index: usize) -> Result<InstanceText> {
        let names = self.entry_names(index);
        let relation = self.analysis.instances[index].relation;
        let all = relation.alias.as_ref().is_some_and(|a| !a.columns.is_empty());
        let columns = if all { names } else { self.columns_named(index, names) };
        self.instance_text_of(index, columns, all)
    }

    /// Only these columns of them. `alone`: no other occurrence's rows are looked for that are the same.
    pub fn instance_text_of(&self, index: usize, columns: Vec<String>, alone: bool) -> Result<InstanceText> {
        let instance = &self.analysis.instances[index];
        let relation = instance.relation;
        let alias = quote_ident(relation.reference_name());
        let list: Vec<String> = columns.iter().map(|c| format!("{alias}.{}", quote_ident(c))).collect();
        let word = if self.only_exists(index, &columns) { "SELECT DISTINCT" } else { "SELECT" };
        // Only how many rows there are: whoever may read any column may know that.
        let list = if list.is_empty() { "1 AS pgherd_row".to_owned() } else { list.join(", ") };
        let mut whole = format!("{word} {list} FROM {}", self.sampled(index));
        let mut rows = self.rows_of(instance.table);
        let conditions = self.implied_on(index);
        for (number, (condition, share)) in conditions.iter().enumerate() {
            let word = if number == 0 { "WHERE" } else { "AND" };
            let _ = write!(whole, " {word} {condition}");
            rows *= share;
        }
        rows = self.estimate(&whole, rows);
        let and = if conditions.is_empty() { " WHERE " } else { " AND " };
        let everything = (conditions.is_empty() && !alone && instance.sample.is_none())
            .then(|| format!("{word} {columns:?} FROM {}", qualified(instance.table)));
        let mut text = InstanceText {
            columns,
            whole_rows: rows,
            rows,
            kept: 1.0,
            everything,
            whole,
            reduced: None,
            level: None,
            beside: false,
            and,
        };
        if rows > REDUCED_BESIDE_FROM
            && let Some(reduction) = self.reduction_of(index, rows <= REDUCED_FROM)
        {
            let reduced = text.with(&reduction.sql);
            let guess = rows * reduction.share;
            let fewer = if reduction.is_known { guess } else { self.estimate(&reduced, guess) };
            if fewer < rows * REDUCED_TO {
                (text.reduced, text.rows, text.kept) = (Some(reduced), fewer, reduction.kept);
                (text.level, text.beside) = (reduction.level, reduction.beside);
            }
        }
        Ok(text)
    }

    /// How many rows a part gives: as a worker has said, else the guess.
    pub fn estimate(&self, sql: &str, guess: f64) -> f64 {
        let matters = guess > ASKED_FROM || self.session.estimates.contains_key(sql);
        matters.then(|| self.asked(sql)).flatten().unwrap_or(guess)
    }

    /// Of an occurrence in EXISTS or IN it only matters which values there are, not how often. Values that are equal
    /// must look alike.
    fn only_exists(&self, index: usize, columns: &[String]) -> bool {
        let is_alone = |l: &crate::analysis::Level<'_>| matches!(l.from.as_slice(), [Node::Instance(i)] if *i == index);
        let Some(level) = self.analysis.levels.iter().position(is_alone) else { return false };
        let tested = self
            .analysis
            .levels
            .iter()
            .flat_map(|l| &l.sublinks)
            .any(|s| s.level == level && matches!(s.kind, SublinkKind::Exists | SublinkKind::Any));
        let table = self.analysis.instances[index].table;
        let names = self.entry_names(index);
        let alike = |name: &String| {
            let at = names.iter().position(|n| n == name);
            let column = at.and_then(|at| table.columns.get(at));
            column.is_some_and(looks_alike)
        };
        tested && self.is_plain(level) && columns.len() <= DISTINCT_COLUMNS_MAX && columns.iter().all(alike)
    }

    /// Those columns of an occurrence that the rest of a statement may mean, whose part has met its conditions.
    pub fn columns_named(&self, index: usize, names: Vec<String>) -> Vec<String> {
        let mut met: HashSet<*const Expr> = HashSet::new();
        for condition in self.conditions_on(index) {
            condition.walk(&mut |e| {
                met.insert(std::ptr::from_ref(e));
            });
        }
        self.columns_but(index, names, &met)
    }

    /// Those columns of an occurrence that the statement may mean: every name that is written anywhere counts.
    pub fn columns_written(&self, index: usize, names: Vec<String>) -> Vec<String> {
        self.columns_but(index, names, &HashSet::new())
    }

    fn columns_but(&self, index: usize, names: Vec<String>, met: &HashSet<*const Expr>) -> Vec<String> {
        let reference = self.analysis.instances[index].relation.reference_name();
        let mut named: HashSet<&str> = HashSet::new();
        let mut all = false;
        self.statement.tree.walk_all(&mut |_, e| match &e.kind {
            ExprKind::Column(_) if met.contains(&std::ptr::from_ref(e)) => {}
            ExprKind::Column(path) => match path.as_slice() {
                [name] => {
                    named.insert(name);
                    all |= name == reference;
                }
                [.., qualifier, name] if qualifier == reference => {
                    named.insert(name);
                }
                _ => {}
            },
            ExprKind::Star(path) => all |= path.last().is_some_and(|n| n == reference),
            _ => {}
        });
        // `*` is all columns of what its own level reads; of EXISTS nobody sees them.
        for (number, level) in self.analysis.levels.iter().enumerate() {
            let Some(Query { body: Body::Select(select), .. }) = level.query else { continue };
            let bare = |i: &SelectItem| matches!(&i.expr.kind, ExprKind::Star(path) if path.is_empty());
            let exists = || {
                let mut links = self.analysis.levels.iter().flat_map(|l| &l.sublinks);
                links.any(|s| s.level == number && s.kind == SublinkKind::Exists) && self.is_plain(number)
            };
            all |= select.items.iter().any(bare) && level.from.iter().any(|n| reads(n, index)) && !exists();
        }
        all |= joins(&self.statement.tree, &mut named);
        if all {
            return names;
        }
        let some: Vec<String> = names.into_iter().filter(|n| named.contains(n.as_str())).collect();
        some
    }

    /// Conditions that every row of an occurrence must pass for the level's result, and that concern it alone: those
    /// of WHERE and of inner joins, where no outer join can give its columns as NULL.
    pub fn conditions_on(&self, index: usize) -> Vec<&Expr> {
        let mut found = Vec::new();
        for level in &self.analysis.levels {
            let Some(Query { body: Body::Select(select), .. }) = level.query else { continue };
            let direct = level.from.iter().any(|node| is_inner(node, index));
            if !direct {
                continue;
            }
            for conjunct in select.filter.iter().flat_map(|f| f.conjuncts()) {
                if self.is_about(conjunct, index, level.scope) {
                    found.push(conjunct);
                }
            }
        }
        found
    }

    pub fn is_about(&self, condition: &Expr, index: usize, scope: usize) -> bool {
        let rel = self.analysis.instances[index].rel;
        let mut columns = 0;
        let mut fits = condition.span.is_known();
        condition.walk(&mut |e| match &e.kind {
            ExprKind::Column(_) => match self.analysis.resolve_expr(e, scope) {
                Found::Column(id, true) if id.rel == rel => columns += 1,
                _ => fits = false,
            },
            ExprKind::Call(call) => {
                fits &= !self.snapshot.volatile_functions.contains(&call.name)
                    && !self.analysis.is_aggregate(call)
                    && call.over.is_none();
            }
            ExprKind::Sublink(_) | ExprKind::Star(_) | ExprKind::Unknown(_) | ExprKind::Grouping(_) => fits = false,
            _ => {}
        });
        fits && columns > 0 && safety::field_reason(condition, &self.names()).is_none()
    }
}

/// An occurrence stands in FROM with nothing but inner joins around it.
pub(crate) fn is_inner(node: &Node, index: usize) -> bool {
    match node {
        Node::Instance(found) => *found == index,
        Node::Join { kind: JoinKind::Inner, left, right, .. } => is_inner(left, index) || is_inner(right, index),
        Node::Join { kind: JoinKind::Left, left, .. } => is_inner(left, index),
        Node::Join { kind: JoinKind::Right, right, .. } => is_inner(right, index),
        _ => false,
    }
}

/// An occurrence stands somewhere in FROM.
fn reads(node: &Node, index: usize) -> bool {
    match node {
        Node::Instance(found) => *found == index,
        Node::Join { left, right, .. } => reads(left, index) || reads(right, index),
        _ => false,
    }
}

/// Columns by which tables are joined under one name. True: NATURAL, any name counts.
fn joins<'a>(tree: &'a Tree, named: &mut HashSet<&'a str>) -> bool {
    fn item<'a>(from: &'a FromItem, named: &mut HashSet<&'a str>) -> bool {
        match from {
            FromItem::Join(join) => {
                named.extend(join.using.iter().map(String::as_str));
                let (left, right) = (item(&join.left, named), item(&join.right, named));
                join.natural || left || right
            }
            FromItem::Subquery { query: inner, .. } => query(inner, named),
            FromItem::Sample { relation, .. } => item(relation, named),
            FromItem::Relation(_) | FromItem::Function { .. } | FromItem::Other(_) => false,
        }
    }
    fn query<'a>(this: &'a Query, named: &mut HashSet<&'a str>) -> bool {
        let mut all = false;
        for cte in this.with.iter().flat_map(|w| &w.ctes) {
            all |= joins(&cte.tree, named);
        }
        match &this.body {
            Body::Select(select) => {
                for from in &select.from {
                    all |= item(from, named);
                }
            }
            Body::SetOp { left, right, .. } => {
                all |= query(left, named);
                all |= query(right, named);
            }
            Body::Values(_) => {}
        }
        all
    }
    let Tree::Query(top) = tree else { return true };
    let mut all = query(top, named);
    let mut links: Vec<&'a Query> = Vec::new();
    tree.walk_all(&mut |_, e| {
        if let ExprKind::Sublink(link) = &e.kind {
            links.push(&link.query);
        }
    });
    for link in links {
        all |= query(link, named);
    }
    all
}

/// Bytes of a value as text, roughly.
pub(crate) fn width_of(type_oid: u32) -> f64 {
    match type_oid {
        16 | 18 => 2.0,
        20 | 21 | 23 | 700 | 701 | 1700 => 8.0,
        1082 => 11.0,
        1114 | 1184 => 28.0,
        2950 => 37.0,
        _ => 24.0,
    }
}

/// Which share of the rows a condition lets through, as a rule of thumb.
pub(crate) fn share_of(condition: &Expr) -> f64 {
    match &condition.kind {
        ExprKind::Op(op) => match (op.kind, op.name.as_str()) {
            (OpKind::Plain, "=") => 0.02,
            (OpKind::Plain, "<>") => 0.98,
            (OpKind::Plain, _) => 0.33,
            (OpKind::In | OpKind::Any, _) => match op.right.as_ref().map(|r| &r.kind) {
                Some(ExprKind::List(list) | ExprKind::Array(list)) => (0.02 * list.len() as f64).min(0.5),
                _ => 0.2,
            },
            (OpKind::Between, _) => 0.2,
            (OpKind::Like | OpKind::Ilike | OpKind::Similar, _) => 0.1,
            _ => 0.5,
        },
        ExprKind::Or(list) => list.iter().map(share_of).sum::<f64>().min(1.0),
        ExprKind::And(list) => list.iter().map(share_of).product(),
        _ => 0.5,
    }
}
