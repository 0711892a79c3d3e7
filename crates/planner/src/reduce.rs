//! Which rows of an occurrence matter: what the statement's other conditions, and joins, leave of them.

use std::rc::Rc;

use pgherd_sql::ast::*;

use crate::analysis::{ColumnId, Entry, Facts, Found, Node};
use crate::context::{Context, Implied, qualified, quote_ident};
use crate::parts::{REDUCER_MAX, Source, is_inner, share_of};

/// What a subquery that a column is compared with leaves.
const SHARE_OF_SUBQUERY: f64 = 0.1;
/// Tables through whose joins conditions are followed.
const LINKS_MAX: usize = 4;

/// A condition, or a query of the values that it leaves.
#[derive(Debug, Clone)]
pub(crate) struct Reduction {
    pub sql: String,
    /// Which share of the rows that leaves.
    pub share: f64,
    /// So many tables are read for it.
    tables: usize,
    /// Which share of the rows tables leave that the rest of the statement is joined with once more.
    pub kept: f64,
    /// No worker knows better: it has no statistics of what is computed, and a part of the other table's rows alone.
    pub is_known: bool,
    /// Every worker has the tables that are read for it.
    pub beside: bool,
    /// The subquery of the statement that it is.
    pub level: Option<usize>,
    /// How many values it leaves, where that says more of the share than a rule of thumb.
    values: Option<f64>,
}

impl Reduction {
    fn is_sharper(&self, other: &Reduction) -> bool {
        self.share < other.share || self.share == other.share && self.tables < other.tables
    }
}

/// Columns of an occurrence and those of a part that they equal.
#[derive(Default)]
pub(crate) struct Reducing {
    columns: Vec<ReducingColumn>,
}

struct ReducingColumn {
    own: Own,
    /// The part's column, and its place there.
    of: String,
    position: usize,
    /// Servers look an array of such values up by hash.
    by_array: bool,
}

/// What an occurrence has that a part's column equals.
#[derive(PartialEq)]
enum Own {
    Column(String),
    /// Computed of its columns, as the statement has it.
    Computed(String),
}

impl Reducing {
    pub fn condition(&self, alias: &str, part: usize) -> String {
        let own = |column: &ReducingColumn| match &column.own {
            Own::Column(name) => format!("{alias}.{}", quote_ident(name)),
            Own::Computed(text) => format!("({text})"),
        };
        let own: Vec<String> = self.columns.iter().map(own).collect();
        match self.columns.as_slice() {
            [one] if one.by_array => format!("{} = ANY ({{{{stage {}.{}}}}})", own[0], part + 1, one.position + 1),
            all => {
                let of: Vec<String> = all.iter().map(|c| quote_ident(&c.of)).collect();
                let (own, of) = (own.join(", "), of.join(", "));
                format!("({own}) IN (SELECT {of} FROM {{{{stage {}}}}} AS pgherd_s)", part + 1)
            }
        }
    }
}

impl Context<'_> {
    /// Which values of another part's rows an occurrence is joined with, or tested against, and the share of its own
    /// rows that this leaves by a rule of thumb: other rows change nothing. `rows`: of that part.
    pub fn reduced_by(&self, index: usize, part: &Source, rows: f64) -> Option<(Reducing, f64)> {
        let instance = &self.analysis.instances[index];
        let level = self.level_with(index)?;
        let facts = self.analysis.facts(instance.env);
        let names = self.entry_names(index);
        let found =
            |id: ColumnId| (0..names.len()).find(|col| facts.same(ColumnId { rel: instance.rel, col: *col }, id));
        // The columns of one row of the part: under each name that it has in FROM it is another row.
        let joined = |columns: Vec<(Option<ColumnId>, &String)>| {
            let mut reducing = Reducing::default();
            for (position, (id, name)) in columns.into_iter().enumerate() {
                let Some((id, col)) = id.and_then(|id| Some((id, found(id)?))) else { continue };
                let type_oid = instance.table.columns[col].type_oid;
                let own = Own::Column(names[col].clone());
                if reducing.columns.iter().all(|c| c.own != own) {
                    let alike = self.analysis.column(id).is_some_and(|c| c.type_oid == type_oid);
                    let by_array = alike && matches!(type_oid, 20 | 21 | 23 | 25 | 2950);
                    reducing.columns.push(ReducingColumn { own, of: name.clone(), position, by_array });
                }
            }
            reducing
        };
        let mut ways: Vec<Reducing> = Vec::new();
        let mut share = rows / self.rows_in_table(index);
        let own_level = level;
        for level in [Some(level), self.parent_of(level)].into_iter().flatten() {
            let this = &self.analysis.levels[level];
            match part {
                Source::Instance { index: other, columns } => {
                    if *other == index || !this.from.iter().any(|node| is_inner(node, *other)) {
                        continue;
                    }
                    let rel = self.analysis.instances[*other].rel;
                    let theirs = self.entry_names(*other);
                    let id = |name: &String| theirs.iter().position(|n| n == name).map(|col| ColumnId { rel, col });
                    ways.push(joined(columns.iter().map(|name| (id(name), name)).collect()));
                    // That column and no other: one that equals it may be of another type, and not equal this.
                    let computed = if level == own_level { self.computed_equals(level, index) } else { Vec::new() };
                    for (expr, equal) in computed {
                        let Some(position) = columns.iter().position(|name| id(name) == Some(equal)) else { continue };
                        let own = Own::Computed(expr.span.of(self.text()).to_owned());
                        let of = columns[position].clone();
                        let columns = vec![ReducingColumn { own, of, position, by_array: false }];
                        ways.push(Reducing { columns });
                    }
                    share = rows / self.rows_in_table(*other);
                }
                Source::Level(other) => {
                    let Some(outputs) = &self.analysis.levels[*other].outputs else { continue };
                    for node in &this.from {
                        if let Node::Derived { level, rel } = node
                            && level == other
                        {
                            let id = |col| Some(ColumnId { rel: *rel, col });
                            ways.push(joined(
                                outputs.iter().enumerate().map(|(col, (name, _))| (id(col), name)).collect(),
                            ));
                        }
                    }
                    let Some(Query { body: Body::Select(select), .. }) = this.query else { continue };
                    for conjunct in select.filter.iter().flat_map(|f| f.conjuncts()) {
                        let ([(name, _)], Some((test, query))) = (outputs.as_slice(), in_subquery(conjunct)) else {
                            continue;
                        };
                        if self.level_of(query) == Some(*other)
                            && let Found::Column(id, true) = self.analysis.resolve_expr(test, this.scope)
                            && self.gives_like(*other, id)
                        {
                            ways.push(joined(vec![(Some(id), name)]));
                            share = share.min(SHARE_OF_SUBQUERY);
                        }
                    }
                }
            }
        }
        let columns = |way: &Reducing| way.columns.iter().filter(|c| matches!(c.own, Own::Column(_))).count();
        let best = ways.into_iter().max_by_key(|way| (way.columns.len(), columns(way)));
        let best = best.filter(|way| !way.columns.is_empty());
        best.map(|way| {
            let at = |c: &ReducingColumn| match &c.own {
                Own::Column(own) => names.iter().position(|name| name == own),
                Own::Computed(_) => None,
            };
            let own: Vec<usize> = way.columns.iter().filter_map(at).collect();
            let share = if own.is_empty() { share } else { share.max(self.share_of_values(index, &own, rows)) };
            (way, share)
        })
    }

    /// A subquery's one column is of the type of what is tested against it: what equals that equals one of its values.
    fn gives_like(&self, level: usize, tested: ColumnId) -> bool {
        matches!(self.analysis.levels[level].outputs.as_deref(), Some([(_, Some(id))]) if self.analysis.alike(*id, tested))
    }

    /// The level in whose FROM an occurrence stands with inner joins around it.
    fn level_with(&self, index: usize) -> Option<usize> {
        self.analysis.levels.iter().position(|level| level.from.iter().any(|node| is_inner(node, index)))
    }

    pub fn rows_in_table(&self, index: usize) -> f64 {
        self.rows_of(self.analysis.instances[index].table)
    }

    /// A condition on an occurrence that follows from what it is joined with, or, in a subquery of an expression, from
    /// the outer rows that it is evaluated for.
    /// `beside`: only by tables that every worker has.
    pub fn reduction_of(&self, index: usize, beside: bool) -> Option<Reduction> {
        let instance = &self.analysis.instances[index];
        let level = self.level_with(index)?;
        let outer = self.parent_of(level);
        let facts = self.analysis.facts(instance.env);
        let alias = quote_ident(instance.relation.reference_name());
        let mut best: Option<Reduction> = None;
        let mut keep = |of: &str, found: Reduction| {
            if best.as_ref().is_none_or(|best| found.is_sharper(best)) {
                best = Some(Reduction { sql: format!("{of} IN ({})", found.sql), ..found });
            }
        };
        for (col, name) in self.entry_names(index).iter().enumerate() {
            let id = ColumnId { rel: instance.rel, col };
            let found = self.reduction(level, facts, id, Some(index), beside);
            let found = found.or_else(|| self.reduction(outer?, facts, id, None, beside));
            if let Some(mut found) = found {
                if let Some(values) = found.values {
                    found.share = found.share.max(self.share_of_values(index, &[col], values));
                }
                keep(&format!("{alias}.{}", quote_ident(name)), found);
            }
        }
        for (expr, id) in self.computed_equals(level, index) {
            if let Some(found) = self.reduction_beside(level, facts, id, index) {
                keep(&format!("({})", expr.span.of(self.text())), Reduction { is_known: true, ..found });
            }
        }
        best
    }

    /// The values that a column can have in a level's rows, and which share that leaves by a rule of thumb: a subquery
    /// that the level's condition compares it with, or the tables with the sharpest conditions of their own that have
    /// the same column by a join.
    pub fn reduction(
        &self,
        level: usize,
        facts: &Facts,
        column: ColumnId,
        except: Option<usize>,
        beside: bool,
    ) -> Option<Reduction> {
        let this = &self.analysis.levels[level];
        if let Some(Query { body: Body::Select(select), .. }) = this.query.filter(|_| !beside) {
            for conjunct in select.filter.iter().flat_map(|f| f.conjuncts()) {
                if let Some((test, query)) = in_subquery(conjunct)
                    && let Found::Column(id, true) = self.analysis.resolve_expr(test, this.scope)
                    && facts.same(id, column)
                    && self.is_repeatable(query)
                    && let Some(inner) = self.level_of(query)
                    && self.gives_like(inner, id)
                    && let Ok(sql) = self.closed_text(inner)
                    // Without CTEs: those may be another each time.
                    && sql == query.span.of(self.text())
                    && self.is_surely_closed(inner, query)
                {
                    return Some(Reduction {
                        sql,
                        share: SHARE_OF_SUBQUERY,
                        tables: 0,
                        kept: 1.0,
                        is_known: false,
                        beside: false,
                        level: Some(inner),
                        values: None,
                    });
                }
            }
        }
        let mut best: Option<Reduction> = None;
        for (index, col) in self.inner_with(level, facts, column, except) {
            let table = self.analysis.instances[index].table;
            if !table.is_reference() {
                let share: f64 = self.implied_on(index).iter().map(|(_, share)| share).product();
                // It would be a part of the part.
                if beside || self.rows_of(table) * share > REDUCER_MAX {
                    continue;
                }
            }
            if let Some(found) = self.values_left(level, facts, index, col, except)
                && best.as_ref().is_none_or(|best| found.is_sharper(best))
            {
                best = Some(found);
            }
        }
        best
    }

    /// A condition on the one column of a subquery in which the outer level looks for a column (`IN`): which values
    /// that one can have at all, by tables that every worker has, and the share that this leaves.
    pub fn tested_with(&self, level: usize) -> Option<(String, f64)> {
        let query = self.analysis.levels[level].query?;
        let Body::Select(select) = &query.body else { return None };
        let [item] = select.items.as_slice() else { return None };
        let outer = self.parent_of(level)?;
        let around = &self.analysis.levels[outer];
        let Body::Select(around_select) = &around.query?.body else { return None };
        let mut conjuncts = around_select.filter.iter().flat_map(|f| f.conjuncts());
        let tested = conjuncts.find_map(|conjunct| {
            let (test, of) = in_subquery(conjunct)?;
            std::ptr::eq(of, query).then_some(test)
        })?;
        let Found::Column(id, true) = self.analysis.resolve_expr(tested, around.scope) else { return None };
        let fits = self.is_plain(level) && self.is_repeatable(query) && self.gives_like(level, id);
        if !fits || !item.expr.span.is_known() || !matches!(item.expr.kind, ExprKind::Column(_)) {
            return None;
        }
        let found = self.reduction(outer, self.analysis.facts(around.env), id, None, true)?;
        Some((format!("{} IN ({})", item.expr.span.of(self.text()), found.sql), found.share))
    }

    /// Beside an occurrence whose columns have names of their own, nothing in the subquery may mean these: each name is
    /// one of its own FROM, or of nothing around it.
    fn is_surely_closed(&self, level: usize, query: &Query) -> bool {
        let at = self.analysis.levels[level].scope;
        let scope = &self.analysis.scopes[at];
        let around: Vec<_> = self.analysis.around(at).flat_map(|s| &s.entries).collect();
        let mut closed = true;
        query.walk_all(&mut |_, expr| {
            let ExprKind::Column(path) = &expr.kind else { return };
            let has = |e: &Entry, unknown: bool| match path.as_slice() {
                [.., qualifier, _] => e.name == *qualifier,
                names => e.columns.as_ref().map_or(unknown, |list| list.iter().any(|(name, _)| names.contains(name))),
            };
            let own = scope.entries.iter().any(|e| has(e, false));
            closed &= own || !around.iter().any(|e| has(e, true));
        });
        closed
    }

    /// The same for what is computed, by tables that every worker has alone. It may equal one column and not another
    /// that equals that one, of another type: `c = v` of char and varchar leaves blanks out, `c = t` of char and text
    /// does not.
    fn reduction_beside(&self, level: usize, facts: &Facts, column: ColumnId, except: usize) -> Option<Reduction> {
        let all = self.inner_with(level, facts, column, Some(except)).into_iter();
        let beside = all.filter(|(index, col)| {
            let instance = &self.analysis.instances[*index];
            instance.table.is_reference() && self.analysis.alike(ColumnId { rel: instance.rel, col: *col }, column)
        });
        let found = beside.filter_map(|(index, col)| self.values_left(level, facts, index, col, Some(except)));
        found.reduce(|best, found| if found.is_sharper(&best) { found } else { best })
    }

    /// Occurrences in a level with inner joins around them that have a column like this one.
    fn inner_with(&self, level: usize, facts: &Facts, column: ColumnId, except: Option<usize>) -> Vec<(usize, usize)> {
        let from = &self.analysis.levels[level].from;
        let mut found = Vec::new();
        for (index, instance) in self.analysis.instances.iter().enumerate() {
            let same = |col: &usize| facts.same(ColumnId { rel: instance.rel, col: *col }, column);
            if Some(index) != except
                && from.iter().any(|node| is_inner(node, index))
                && let Some(col) = (0..instance.table.columns.len()).find(same)
            {
                found.push((index, col));
            }
        }
        found
    }

    /// The values of a column in the rows that the level's conditions leave: those on its own table, and, where every
    /// worker has it, those on other such tables through joins. None: all values.
    fn values_left(
        &self,
        level: usize,
        facts: &Facts,
        first: usize,
        col: usize,
        except: Option<usize>,
    ) -> Option<Reduction> {
        /// A table, its conditions, and the one before it with what joins them.
        struct Link {
            index: usize,
            conditions: Rc<Implied>,
            before: Option<(usize, String)>,
            needed: bool,
        }
        let instances = &self.analysis.instances;
        let name = |index: usize, col: usize| {
            let column = quote_ident(self.entry_names(index).get(col)?);
            Some(format!("{}.{column}", quote_ident(instances[index].relation.reference_name())))
        };
        let mut links = vec![Link { index: first, conditions: self.implied_on(first), before: None, needed: false }];
        let beside = instances[first].table.is_reference();
        let mut at = 0;
        while beside && at < links.len() {
            let own = &instances[links[at].index];
            for own_col in 0..own.table.columns.len() {
                let id = ColumnId { rel: own.rel, col: own_col };
                for (index, its_col) in self.inner_with(level, facts, id, except) {
                    let known = links.iter().any(|link| link.index == index);
                    if known || links.len() >= LINKS_MAX || !instances[index].table.is_reference() {
                        continue;
                    }
                    let on = format!("{} = {}", name(links[at].index, own_col)?, name(index, its_col)?);
                    let conditions = self.implied_on(index);
                    links.push(Link { index, conditions, before: Some((at, on)), needed: false });
                }
            }
            at += 1;
        }
        for at in (0..links.len()).rev() {
            links[at].needed |= !links[at].conditions.is_empty();
            if let (true, Some((before, _))) = (links[at].needed, &links[at].before) {
                let before = *before;
                links[before].needed = true;
            }
        }
        links.retain(|link| link.needed);
        if links.is_empty() {
            return None;
        }
        // Of a sample all rows of the table: which they are is known where it is drawn.
        let tables: Vec<String> = links.iter().map(|link| self.named(link.index)).collect();
        let joins = links.iter().filter_map(|link| link.before.as_ref().map(|(_, on)| on.clone()));
        let own = links.iter().flat_map(|link| link.conditions.iter().map(|(condition, _)| condition.clone()));
        let conditions: Vec<String> = joins.chain(own).collect();
        let every = format!("SELECT {} FROM {}", name(first, col)?, self.named(first));
        let sql = format!("SELECT {} FROM {} WHERE {}", name(first, col)?, tables.join(", "), conditions.join(" AND "));
        let mut share: f64 = links.iter().flat_map(|link| link.conditions.iter()).map(|(_, share)| share).product();
        if beside {
            share = self.share_left(&sql, &every).unwrap_or(share);
        }
        let values = (!beside).then(|| self.estimate(&sql, self.rows_in_table(first) * share));
        let kept = if beside { share } else { 1.0 };
        Some(Reduction { sql, share, tables: links.len(), kept, is_known: !beside, beside, level: None, values })
    }

    /// Which share of an occurrence's rows so many values of some of its columns can leave at the most.
    fn share_of_values(&self, index: usize, columns: &[usize], values: f64) -> f64 {
        let rows = self.rows_in_table(index);
        let different: f64 = columns.iter().map(|col| self.distinct_in(index, *col).max(1.0)).product();
        (values / different.min(rows)).min(1.0)
    }

    /// How many different values a column has, as a worker has said: it sees almost all of them, but for a distribution
    /// column.
    fn distinct_in(&self, index: usize, col: usize) -> f64 {
        self.known_distinct_in(index, col).unwrap_or_else(|| self.rows_in_table(index))
    }

    pub fn known_distinct_in(&self, index: usize, col: usize) -> Option<f64> {
        let table = self.analysis.instances[index].table;
        let rows = self.rows_of(table);
        let column = table.columns.get(col)?;
        let sql = format!("SELECT DISTINCT {} FROM {}", quote_ident(&column.name), qualified(table));
        let is_key = table.key_column().is_some_and(|key| key.name == column.name);
        let workers = self.snapshot.worker_groups().len().max(1) as f64;
        let different = self.asked(&sql)?;
        Some(if is_key { different } else { different / workers }.min(rows))
    }

    /// Which share of a query's rows another leaves, as a worker has said.
    fn share_left(&self, some: &str, all: &str) -> Option<f64> {
        let (some, all) = (self.asked(some), self.asked(all));
        Some((some?.max(1.0) / all?.max(1.0)).min(1.0))
    }

    /// How many rows a query gives, as a worker has said; asked for the next time.
    pub fn asked(&self, sql: &str) -> Option<f64> {
        let known = self.session.estimates.get(sql).copied();
        if known.is_none() {
            self.questions.borrow_mut().insert(sql.to_owned());
        }
        known.filter(|rows| rows.is_finite())
    }

    /// What is computed of one occurrence's columns alone and equals a column of others in every row of the level.
    fn computed_equals(&self, level: usize, index: usize) -> Vec<(&Expr, ColumnId)> {
        let this = &self.analysis.levels[level];
        let Some(Query { body: Body::Select(select), .. }) = this.query else { return Vec::new() };
        let own = self.analysis.instances[index].rel;
        let mut found = Vec::new();
        for conjunct in select.filter.iter().flat_map(|f| f.conjuncts()) {
            let Some((left, right)) = equation(conjunct) else { continue };
            for (computed, column) in [(left, right), (right, left)] {
                if let Found::Column(id, true) = self.analysis.resolve_expr(column, this.scope)
                    && id.rel != own
                    && !matches!(computed.kind, ExprKind::Column(_))
                    && self.is_about(computed, index, this.scope)
                {
                    found.push((computed, id));
                }
            }
        }
        found
    }

    /// What conditions on one column say of those of an occurrence that equal it: `a.k < 10` says `b.k < 10`.
    fn said_of_equals(&self, index: usize) -> Implied {
        let Some(level) = self.level_with(index) else { return Vec::new() };
        let (this, instance) = (&self.analysis.levels[level], &self.analysis.instances[index]);
        let facts = self.analysis.facts(instance.env);
        let names = self.entry_names(index);
        let alias = quote_ident(instance.relation.reference_name());
        let mut found = Vec::new();
        for other in (0..self.analysis.instances.len()).filter(|other| *other != index) {
            let rel = self.analysis.instances[other].rel;
            if !this.from.iter().any(|node| is_inner(node, other)) {
                continue;
            }
            for condition in self.conditions_on(other) {
                let Some(column) = compared(condition) else { continue };
                let Found::Column(theirs, true) = self.analysis.resolve_expr(column, this.scope) else { continue };
                // Where equal values look alike, what is true of one is true of the other.
                let own = (0..names.len()).find(|col| {
                    let own = ColumnId { rel: instance.rel, col: *col };
                    theirs.rel == rel && facts.same(own, theirs) && self.analysis.alike(own, theirs)
                });
                let Some(own) = own.filter(|col| looks_alike(&instance.table.columns[*col])) else { continue };
                let (whole, inner) = (condition.span, column.span);
                if !inner.is_known() || !whole.contains(inner) {
                    continue;
                }
                let text = self.text();
                let (before, after) = (&text[whole.start..inner.start], &text[inner.end..whole.end]);
                let said = format!("({before}{alias}.{}{after})", quote_ident(&names[own]));
                if found.iter().all(|(known, _)| *known != said) {
                    found.push((said, share_of(condition)));
                }
            }
        }
        found
    }

    /// Those conditions, and what an OR says of an occurrence in each of its arms; with the share of the rows that each
    /// lets through.
    pub fn implied_on(&self, index: usize) -> Rc<Implied> {
        if let Some(known) = self.implied.borrow().get(&index) {
            return known.clone();
        }
        let found = Rc::new(self.find_implied(index));
        self.implied.borrow_mut().insert(index, found.clone());
        found
    }

    fn find_implied(&self, index: usize) -> Implied {
        let text = |e: &Expr| format!("({})", e.span.of(self.text()));
        let mut found: Vec<_> = self.conditions_on(index).into_iter().map(|c| (text(c), share_of(c))).collect();
        for level in &self.analysis.levels {
            let Some(Query { body: Body::Select(select), .. }) = level.query else { continue };
            if !level.from.iter().any(|node| is_inner(node, index)) {
                continue;
            }
            for conjunct in select.filter.iter().flat_map(|f| f.conjuncts()) {
                let ExprKind::Or(arms) = &conjunct.kind else { continue };
                if self.is_about(conjunct, index, level.scope) {
                    continue;
                }
                let arms = arms.iter().map(|arm| {
                    let about = arm.conjuncts().into_iter().filter(|c| self.is_about(c, index, level.scope));
                    about.map(|c| (text(c), share_of(c))).collect::<Vec<_>>()
                });
                let arms: Vec<_> = arms.collect();
                if arms.iter().any(Vec::is_empty) {
                    continue;
                }
                let share = |arm: &Vec<(String, f64)>| arm.iter().map(|(_, share)| share).product::<f64>();
                let all: f64 = arms.iter().map(share).sum();
                let list =
                    |arm: &Vec<(String, f64)>| arm.iter().map(|(c, _)| c.as_str()).collect::<Vec<_>>().join(" AND ");
                let texts: Vec<String> = arms.iter().map(list).collect();
                found.push((format!("({})", texts.join(" OR ")), all.min(1.0)));
            }
        }
        found.extend(self.said_of_equals(index));
        found
    }
}

/// `left = right`.
fn equation(conjunct: &Expr) -> Option<(&Expr, &Expr)> {
    let ExprKind::Op(op) = &conjunct.kind else { return None };
    let equals = op.kind == OpKind::Plain && op.name == "=";
    Some((op.left.as_ref()?, op.right.as_ref()?)).filter(|_| equals)
}

/// The column that a condition compares with constants, where it is the only one and stands on the left.
fn compared(condition: &Expr) -> Option<&Expr> {
    let ExprKind::Op(op) = &condition.kind else { return None };
    let column = op.left.as_ref().filter(|left| matches!(left.kind, ExprKind::Column(_)))?;
    let known = match op.kind {
        OpKind::Plain => matches!(op.name.as_str(), "=" | "<" | ">" | "<=" | ">="),
        OpKind::In | OpKind::Between | OpKind::Like => true,
        _ => false,
    };
    let mut constant = true;
    op.right.as_ref()?.walk(&mut |e| {
        constant &=
            matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::List(_) | ExprKind::Cast { .. });
    });
    (known && constant).then_some(column)
}

/// Values of the column that are equal are the same.
pub(crate) fn looks_alike(column: &pgherd_catalog::Column) -> bool {
    matches!(column.type_oid, 16 | 20 | 21 | 23 | 25 | 1043 | 1082 | 1114 | 1184 | 2950)
        && matches!(column.collation, 0 | 100 | 950 | 951)
}

/// `test IN (query)`.
fn in_subquery(conjunct: &Expr) -> Option<(&Expr, &Query)> {
    let ExprKind::Sublink(link) = &conjunct.kind else { return None };
    let equals = link.kind == SublinkKind::Any && link.op.as_deref().is_none_or(|op| op == "=");
    link.test.as_ref().filter(|_| equals).map(|test| (test, &link.query))
}
