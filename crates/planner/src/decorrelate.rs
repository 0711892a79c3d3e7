//! A subquery in a condition that computes one aggregate for each outer row, as a join. In
//! `x < (SELECT avg(y) FROM … WHERE a = outer.b)` the averages of all groups are computed first (a part, grouped by
//! `a`), and the condition's level gets them as one more table.
//!
//! It is the same only where the condition is not true for NULL, which an outer row without a group gives: comparisons
//! of what arithmetic makes of sum, avg, min or max.

use pgherd_sql::ast::*;

use crate::analysis::{Found, Node};
use crate::context::Context;

type Result<T> = std::result::Result<T, String>;

/// How a subquery's place in the text becomes a join.
#[derive(Debug, Clone)]
pub(crate) struct Joined {
    /// Before this position of the text the table is added to FROM.
    pub from: usize,
    /// The subquery with its brackets.
    pub subquery: Span,
    /// Behind this position the join's conditions are added.
    pub condition: usize,
    /// What must equal the group's columns, in order.
    pub outer: Vec<String>,
}

/// The part for such a subquery.
pub(crate) struct Grouped {
    pub sql: String,
    pub joined: Joined,
    pub columns: usize,
    /// The same by a part that is run before it.
    pub asked: Option<Asked>,
}

/// Only the groups that some outer row asks for.
pub(crate) struct Asked {
    /// What the outer rows that pass all other conditions ask for.
    pub keys: String,
    /// The groups of these; [`KEYS`] stands for their rows.
    pub sql: String,
}

/// Stands for a part's rows until its number is known.
pub(crate) const KEYS: &str = "{{keys}}";

impl Joined {
    /// The name of the table that is added.
    pub fn alias(part: usize) -> String {
        format!("pgherd_d{}", part + 1)
    }

    pub fn value(part: usize) -> String {
        format!(" ({}.pgherd_v) ", Joined::alias(part))
    }

    pub fn conditions(&self, part: usize) -> String {
        let alias = Joined::alias(part);
        (1..).zip(&self.outer).map(|(n, outer)| format!(" AND {alias}.pgherd_k{n} = ({outer}) ")).collect()
    }
}

impl Context<'_> {
    pub fn grouped(&self, level: usize) -> Result<Grouped> {
        let not = |what: &str| Err::<Grouped, String>(format!("a subquery that is no join: {what}"));
        let this = &self.analysis.levels[level];
        let Some(query) = this.query else { return not("no query") };
        let Body::Select(select) = &query.body else { return not("no SELECT") };
        let plain = query.with.is_none()
            && query.order_by.is_empty()
            && query.limit.is_none()
            && query.offset.is_none()
            && !query.locks_rows()
            && matches!(select.distinct, Distinct::No)
            && select.group_by.is_empty()
            && select.having.is_none()
            && select.windows.is_empty()
            && !select.grouping_sets
            && this.sublinks.is_empty();
        let ([item], Some(filter), true) = (select.items.as_slice(), &select.filter, plain) else {
            return not("its clauses");
        };
        // Conditions of joins would have to be looked at as well.
        if !this.from.iter().all(|n| matches!(n, Node::Instance(_))) || !self.gives_null(&item.expr, this.scope) {
            return not("its value");
        }
        let Some(parent) = self.parent_of(level) else { return not("its place") };
        let (place, conjunct) = self.place_of(parent, query)?;

        let (mut keys, mut outer, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        let mut reductions = Vec::new();
        for conjunct in filter.conjuncts() {
            if self.is_own(conjunct, this.scope) {
                conditions.push(format!("({})", conjunct.span.of(self.text())));
                continue;
            }
            let ExprKind::Op(op) = &conjunct.kind else { return not("a condition on outer columns") };
            let (Some(left), Some(right)) = (&op.left, &op.right) else { return not("a condition on outer columns") };
            if op.name != "=" || op.kind != OpKind::Plain || op.schema.is_some() {
                return not("a condition on outer columns");
            }
            let (own, other) = if self.is_own(left, this.scope) { (left, right) } else { (right, left) };
            let ids = (self.analysis.resolve_expr(own, this.scope), self.analysis.resolve_expr(other, this.scope));
            // Values that are equal there are one group here.
            let (Found::Column(inner, true), Found::Column(outside, false)) = ids else {
                return not("a condition on outer columns");
            };
            if !self.analysis.comparable(inner, outside) {
                return not("columns of different types");
            }
            keys.push(own.span.of(self.text()));
            outer.push(other.span.of(self.text()).to_owned());
            reductions.extend(self.reduced(parent, other, own.span.of(self.text())));
        }
        if keys.is_empty() {
            return not("no outer columns");
        }
        // FROM as it stands, up to WHERE.
        let text = query.span.of(self.text());
        let parsed = pgherd_sql::split(text).ok().and_then(|mut list| list.pop()).ok_or("a subquery does not parse")?;
        let from = match &parsed.tree {
            Tree::Query(alone) if alone.is_same_as(query) => {
                let Body::Select(alone) = &alone.body else { return not("no SELECT") };
                let outline = parsed.outline().and_then(|o| o.from_where).filter(|_| alone.filter_word.is_known());
                outline.map(|span| Span::new(span.start, alone.filter_word.start).of(text).trim().to_owned())
            }
            _ => None,
        };
        let Some(from) = from else { return not("not found in the text") };
        let list: Vec<String> = (1..).zip(&keys).map(|(n, key)| format!("{key} AS pgherd_k{n}")).collect();
        let numbers: Vec<String> = (1..=keys.len()).map(|n| n.to_string()).collect();
        let sql = |conditions: &[String]| {
            let filter = match conditions {
                [] => String::new(),
                all => format!(" WHERE {}", all.join(" AND ")),
            };
            let (list, numbers) = (list.join(", "), numbers.join(", "));
            let value = item.expr.span.of(self.text());
            format!("SELECT {list}, {value} AS pgherd_v {from}{filter} GROUP BY {numbers}")
        };
        // One key with the values that it can have is asked for as well as can be.
        let known = keys.len() == 1 && !reductions.is_empty();
        let asked = self.asked_by(parent, conjunct, &outer).filter(|_| !known).map(|asked| {
            let names: Vec<String> = (1..=keys.len()).map(|n| format!("pgherd_k{n}")).collect();
            let (keys, names) = (keys.join(", "), names.join(", "));
            let own = conditions.iter().cloned();
            let all: Vec<String> =
                own.chain([format!("({keys}) IN (SELECT {names} FROM {KEYS} AS pgherd_s)")]).collect();
            Asked { keys: asked, sql: sql(&all) }
        });
        conditions.extend(reductions);
        let columns = keys.len() + 1;
        Ok(Grouped { sql: sql(&conditions), joined: Joined { outer, ..place }, columns, asked })
    }

    /// The different values of what outer rows ask for, in the statement without the condition that asks.
    fn asked_by(&self, parent: usize, conjunct: Span, outer: &[String]) -> Option<String> {
        let Tree::Query(query) = &self.statement.tree else { return None };
        let Body::Select(select) = &query.body else { return None };
        // Nor may a full join need the condition.
        let alone = self.top_level() == Some(parent)
            && query.with.is_none()
            && self.is_repeatable(query)
            && !self.analysis.has_bound_full_join;
        let from_where = self.statement.outline()?.from_where.filter(|_| alone && select.filter_word.is_known())?;
        if !from_where.contains(conjunct) {
            return None;
        }
        let part = |from: usize, to: usize| Span::new(from, to).of(self.text());
        let (before, behind) = (part(from_where.start, conjunct.start), part(conjunct.end, from_where.end));
        let list: Vec<String> = (1..).zip(outer).map(|(n, key)| format!("{key} AS pgherd_k{n}")).collect();
        let sql = format!("SELECT DISTINCT {} {before}true{behind}", list.join(", "));
        let parsed = pgherd_sql::split(&sql).ok().and_then(|mut list| list.pop())?;
        let conditions = |select: &Select| select.filter.as_ref().map_or(0, |f| f.conjuncts().len());
        let found = match &parsed.tree {
            Tree::Query(query) => matches!(&query.body, Body::Select(s) if conditions(s) == conditions(select)),
            _ => false,
        };
        found.then_some(sql)
    }

    /// Where the join can be added for a subquery, and the condition that this stands in.
    fn place_of(&self, parent: usize, query: &Query) -> Result<(Joined, Span)> {
        let not = |what: &str| Err(format!("a subquery that is no join: {what}"));
        let Some(outer) = self.analysis.levels[parent].query else { return not("its place") };
        let Body::Select(select) = &outer.body else { return not("its place") };
        let star = select.items.iter().any(|i| matches!(&i.expr.kind, ExprKind::Star(path) if path.is_empty()));
        let Some(filter) = &select.filter else { return not("its place") };
        if star || !select.filter_word.is_known() || outer.locks_rows() || select.from.is_empty() {
            return not("its place");
        }
        for conjunct in filter.conjuncts() {
            if let Some(found) = self.strictly_in(conjunct, query)
                && conjunct.span.is_known()
                && found.span.is_known()
                && is_comparison(conjunct)
            {
                let joined = Joined {
                    from: select.filter_word.start,
                    subquery: found.span,
                    condition: conjunct.span.end,
                    outer: Vec::new(),
                };
                return Ok((joined, conjunct.span));
            }
        }
        not("its place")
    }

    /// The subquery as it stands in an expression that is NULL where the subquery is.
    fn strictly_in<'e>(&self, expr: &'e Expr, query: &Query) -> Option<&'e Expr> {
        match &expr.kind {
            ExprKind::Sublink(link) => {
                (link.kind == SublinkKind::Scalar && std::ptr::eq(&link.query, query)).then_some(expr)
            }
            ExprKind::Op(op) if self.is_strict(op) => {
                let (left, right) = (op.left.as_ref()?, op.right.as_ref()?);
                self.strictly_in(left, query).or_else(|| self.strictly_in(right, query))
            }
            _ => None,
        }
    }

    fn is_strict(&self, op: &Op) -> bool {
        op.kind == OpKind::Plain
            && op.schema.is_none()
            && matches!(op.name.as_str(), "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "+" | "-" | "*" | "/")
            && !self.snapshot.user_operators.contains(op.name.as_str())
    }

    /// NULL where there are no rows: arithmetic of aggregates that are.
    fn gives_null(&self, expr: &Expr, scope: usize) -> bool {
        match &expr.kind {
            ExprKind::Call(call) => {
                self.analysis.is_aggregate(call)
                    && call.schema.is_none()
                    && !self.snapshot.user_functions.contains(&call.name)
                    && matches!(call.name.as_str(), "sum" | "avg" | "min" | "max")
                    && self.is_own(expr, scope)
            }
            ExprKind::Op(op) if self.is_strict(op) => {
                let (Some(left), Some(right)) = (&op.left, &op.right) else { return false };
                let constant = |e: &Expr| matches!(&e.kind, ExprKind::Const(c) if *c != Const::Null);
                (self.gives_null(left, scope) || constant(left))
                    && (self.gives_null(right, scope) || constant(right))
                    && !(constant(left) && constant(right))
            }
            _ => false,
        }
    }

    /// Only columns of this level, and nothing that is another each time.
    fn is_own(&self, expr: &Expr, scope: usize) -> bool {
        let mut fits = expr.span.is_known();
        expr.walk(&mut |e| match &e.kind {
            ExprKind::Column(_) => {
                fits &= matches!(self.analysis.resolve_expr(e, scope), Found::Column(_, true));
            }
            ExprKind::Call(call) => fits &= !self.snapshot.volatile_functions.contains(&call.name),
            ExprKind::Sublink(_) | ExprKind::Star(_) | ExprKind::Unknown(_) => fits = false,
            _ => {}
        });
        fits
    }

    /// `key IN (SELECT column FROM …)` for the outer column that it must equal: groups that no outer row asks for need
    /// not be computed.
    fn reduced(&self, parent: usize, outer: &Expr, key: &str) -> Option<String> {
        let level = &self.analysis.levels[parent];
        let Found::Column(outer, true) = self.analysis.resolve_expr(outer, level.scope) else { return None };
        self.reduction(parent, self.analysis.facts(level.env), outer, None, false)
            .map(|found| format!("{key} IN ({})", found.sql))
    }
}

fn is_comparison(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Op(op) if matches!(op.name.as_str(), "=" | "<" | ">" | "<=" | ">=" | "<>" | "!="))
}
