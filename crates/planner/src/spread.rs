//! Whether the workers' answers to a query, each over its own shards, make up the answer: rows are either the same on
//! every worker (reference tables, constants) or each in exactly one place, known by a distribution column.

use pgherd_sql::ast::*;

use crate::analysis::{ColumnId, Found, Node, lookup};
use crate::context::{Context, colocated};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Spread {
    /// Every worker has all the rows.
    Replicated,
    /// Each row is on one worker. The columns (equal ones are all listed) are never nullable distribution columns: they
    /// say which. None: the rows' place cannot be told from their columns.
    Partitioned(Vec<ColumnId>),
}

type Result<T> = std::result::Result<T, String>;

impl Context<'_> {
    /// All distributed tables are colocated and no part is out of reach of the workers.
    pub fn scatterable_tables(&self) -> Result<()> {
        let mut first = self.staging.borrow().placement();
        for index in self.in_place() {
            let table = self.analysis.instances[index].table;
            match &first {
                None => first = Some(table.clone()),
                Some(first) if colocated(first, table) => {}
                Some(first) => return Err(format!("{} and {} are not colocated", first.name, table.name)),
            }
        }
        Ok(())
    }

    /// Occurrences of distributed tables that are read where they are.
    pub fn in_place(&self) -> impl Iterator<Item = usize> + '_ {
        self.analysis.distributed().filter(|i| !self.staging.borrow().has(*i))
    }

    /// The distribution column of an occurrence; none: every worker has its rows.
    fn key_in_place(&self, index: usize) -> Option<ColumnId> {
        match self.staging.borrow().instance(index) {
            Some(staged) => staged.split,
            None => self.analysis.key_of(index),
        }
    }

    /// The rows of a subquery that comes with the statement.
    fn staged_level(&self, level: usize) -> Option<Spread> {
        let staged = self.staging.borrow().level(level)?;
        Some(staged.split.map_or(Spread::Replicated, |id| Spread::Partitioned(vec![id])))
    }

    /// FROM, WHERE and the sublinks of a level.
    pub fn spread_of_from(&self, level: usize) -> Result<Spread> {
        let this = &self.analysis.levels[level];
        let mut spread: Option<Spread> = None;
        for node in &this.from {
            let next = self.spread_of_node(node, spread.as_ref())?;
            spread = Some(match spread {
                None => next,
                Some(before) => self.inner(before, next, this.env)?,
            });
        }
        let spread = spread.unwrap_or(Spread::Replicated);
        for link in &this.sublinks {
            self.check_sublink(link.level, &spread)?;
        }
        Ok(spread)
    }

    /// The source of a MERGE: what follows the target. Sublinks are not looked into.
    pub fn spread_of_source(&self, level: usize) -> Result<Spread> {
        let this = &self.analysis.levels[level];
        if !this.sublinks.is_empty() {
            return Err("a subquery in a condition or value".to_owned());
        }
        match this.from.get(1) {
            Some(node) => self.spread_of_node(node, None),
            None => Err("no source".to_owned()),
        }
    }

    fn inner(&self, a: Spread, b: Spread, env: usize) -> Result<Spread> {
        Ok(match (a, b) {
            (Spread::Replicated, other) | (other, Spread::Replicated) => other,
            (Spread::Partitioned(mut a), Spread::Partitioned(b)) => {
                self.joined(&a, &b, env)?;
                a.extend(b);
                Spread::Partitioned(a)
            }
        })
    }

    fn joined(&self, a: &[ColumnId], b: &[ColumnId], env: usize) -> Result<()> {
        let facts = self.analysis.facts(env);
        if a.iter().any(|a| b.iter().any(|b| facts.same(*a, *b))) {
            Ok(())
        } else {
            Err("distributed tables are not joined on their distribution columns".to_owned())
        }
    }

    /// `before`: what stands to the left, which a lateral item may refer to.
    fn spread_of_node(&self, node: &Node, before: Option<&Spread>) -> Result<Spread> {
        match node {
            Node::Inline { level } | Node::Lateral { level } if self.staging.borrow().level(*level).is_some() => {
                Ok(self.staged_level(*level).unwrap_or(Spread::Replicated))
            }
            Node::Derived { level, rel } if self.staging.borrow().level(*level).is_some() => {
                let column = self.staging.borrow().level(*level).and_then(|staged| staged.column);
                let here = |col| Spread::Partitioned(vec![ColumnId { rel: *rel, col }]);
                Ok(column.map_or(Spread::Replicated, here))
            }
            Node::Instance(index) => Ok(match self.key_in_place(*index) {
                Some(key) => Spread::Partitioned(vec![key]),
                None => Spread::Replicated,
            }),
            Node::Inline { level } => self.spread_of_level(*level),
            Node::Derived { level, rel } => Ok(match self.spread_of_level(*level)? {
                Spread::Replicated => Spread::Replicated,
                Spread::Partitioned(keys) => {
                    let inner = &self.analysis.levels[*level];
                    let facts = self.analysis.facts(inner.env);
                    let outputs = inner.outputs.as_deref().unwrap_or(&[]);
                    let is_key =
                        |id: &Option<ColumnId>| id.is_some_and(|id| keys.iter().any(|key| facts.same(id, *key)));
                    Spread::Partitioned(
                        outputs
                            .iter()
                            .enumerate()
                            .filter(|(_, (_, id))| is_key(id))
                            .map(|(col, _)| ColumnId { rel: *rel, col })
                            .collect(),
                    )
                }
            }),
            // As a sublink: all that it needs for a row of the left side is where that row is.
            Node::Lateral { level } => {
                self.check_sublink(*level, before.unwrap_or(&Spread::Replicated))?;
                Ok(Spread::Replicated)
            }
            Node::Constant { volatile: true } => Err("a function in FROM is volatile".to_owned()),
            Node::Constant { volatile: false } => Ok(Spread::Replicated),
            Node::Opaque(what) => Err(format!("{what} is in FROM")),
            Node::Join { kind, left, right, env } => {
                let left = self.spread_of_node(left, before)?;
                // The condition of a full join says nothing of what stands to its left.
                let seen = match before.filter(|_| *kind != JoinKind::Full) {
                    None => left.clone(),
                    Some(before) => self.inner(before.clone(), left.clone(), *env).unwrap_or(left.clone()),
                };
                let right = self.spread_of_node(right, Some(&seen))?;
                match kind {
                    JoinKind::Inner => self.inner(left, right, *env),
                    JoinKind::Left => self.outer(left, right, *env),
                    JoinKind::Right => self.outer(right, left, *env),
                    JoinKind::Full => match (left, right) {
                        (Spread::Replicated, Spread::Replicated) => Ok(Spread::Replicated),
                        // Either side's column may be NULL, wherever the row is.
                        (Spread::Partitioned(left), Spread::Partitioned(right)) => {
                            self.joined(&left, &right, *env).map_err(|_| "a full join".to_owned())?;
                            Ok(Spread::Partitioned(Vec::new()))
                        }
                        _ => Err("a full join".to_owned()),
                    },
                }
            }
        }
    }

    fn outer(&self, kept: Spread, nullable: Spread, env: usize) -> Result<Spread> {
        match (kept, nullable) {
            (Spread::Partitioned(kept), Spread::Replicated) => Ok(Spread::Partitioned(kept)),
            (Spread::Replicated, Spread::Replicated) => Ok(Spread::Replicated),
            (Spread::Partitioned(kept), Spread::Partitioned(nullable)) => {
                self.joined(&kept, &nullable, env)?;
                Ok(Spread::Partitioned(kept))
            }
            (Spread::Replicated, Spread::Partitioned(_)) => {
                Err("an outer join keeps rows that every worker has".to_owned())
            }
        }
    }

    /// An outer join that keeps rows which every worker has, and aggregates over the others: `reference LEFT JOIN
    /// distributed … GROUP BY` columns of the reference table. Each worker has all the groups, and the rows for which
    /// only it finds no partner are null in what is aggregated, which leaves them out.
    pub fn aggregates_of_nullable(&self, query: &Query, select: &Select, level: usize) -> bool {
        let this = &self.analysis.levels[level];
        let [Node::Join { kind, left, right, .. }] = this.from.as_slice() else { return false };
        let (kept, nullable) = match kind {
            JoinKind::Left => (left, right),
            JoinKind::Right => (right, left),
            JoinKind::Inner | JoinKind::Full => return false,
        };
        if !matches!(self.spread_of_node(kept, None), Ok(Spread::Replicated))
            || !matches!(self.spread_of_node(nullable, None), Ok(Spread::Partitioned(_)))
            || !this.sublinks.is_empty()
            || select.grouping_sets
            || query.locks_rows()
        {
            return false;
        }
        let (mut kept_rels, mut nullable_rels) = (Vec::new(), Vec::new());
        if !self.rels_of(kept, &mut kept_rels) || !self.rels_of(nullable, &mut nullable_rels) {
            return false;
        }
        let is_of = |e: &Expr, rels: &[usize]| match self.analysis.resolve_expr(e, this.scope) {
            Found::Column(id, true) => rels.contains(&id.rel),
            _ => false,
        };
        let only_kept = |e: &Expr| {
            let mut all = true;
            e.walk(&mut |e| all &= !matches!(e.kind, ExprKind::Column(_) | ExprKind::Star(_)) || is_of(e, &kept_rels));
            all
        };
        let mut groups = select.group_by.iter().map(|e| self.group_expr(e, select, this.scope));
        if !groups.all(only_kept) || !select.filter.iter().all(only_kept) {
            return false;
        }
        let outputs = select.items.iter().map(|i| &i.expr);
        let mut ignores_nulls = true;
        let mut aggregate = false;
        for expr in outputs.chain(&select.having).chain(query.order_by.iter().map(|s| &s.expr)) {
            expr.walk(&mut |e| {
                let ExprKind::Call(call) = &e.kind else { return };
                ignores_nulls &= call.over.is_none();
                if self.analysis.is_aggregate(call) {
                    aggregate = true;
                    // Those that combine (`merge`) all leave nulls out.
                    ignores_nulls &= matches!(call.args.as_slice(), [one] if is_of(one, &nullable_rels));
                }
            });
        }
        aggregate && ignores_nulls
    }

    /// The relations of a FROM item; false: not all are known.
    fn rels_of(&self, node: &Node, rels: &mut Vec<usize>) -> bool {
        match node {
            Node::Instance(index) => rels.push(self.analysis.instances[*index].rel),
            Node::Derived { rel, .. } => rels.push(*rel),
            Node::Inline { level } => return self.analysis.levels[*level].from.iter().all(|n| self.rels_of(n, rels)),
            Node::Join { left, right, .. } => return self.rels_of(left, rels) && self.rels_of(right, rels),
            Node::Lateral { .. } | Node::Constant { .. } | Node::Opaque(_) => return false,
        }
        true
    }

    /// A subquery's or CTE's rows.
    pub fn spread_of_level(&self, level: usize) -> Result<Spread> {
        if let Some(spread) = self.staged_level(level) {
            return Ok(spread);
        }
        let this = &self.analysis.levels[level];
        let Some(query) = this.query else { return Err("a data-modifying CTE".to_owned()) };
        if query.limit.is_some() || query.offset.is_some() {
            return Err("LIMIT in a subquery".to_owned());
        }
        if query.locks_rows() {
            return Err("row locks in a subquery".to_owned());
        }
        if let Some((op, all, left, right)) = this.arms {
            return match (self.spread_of_level(left)?, self.spread_of_level(right)?) {
                (Spread::Replicated, Spread::Replicated) => Ok(Spread::Replicated),
                (Spread::Partitioned(_), Spread::Partitioned(_)) if op == SetOp::Union && all => {
                    Ok(Spread::Partitioned(Vec::new()))
                }
                _ => Err("a set operation over distributed rows".to_owned()),
            };
        }
        let spread = self.spread_of_from(level)?;
        match (&spread, &query.body) {
            (Spread::Partitioned(keys), Body::Select(select)) => self.whole_groups(select, keys, level)?,
            (Spread::Replicated, _) if self.is_volatile(level) => {
                return Err("a volatile function in a subquery over rows that every worker has".to_owned());
            }
            (Spread::Replicated, Body::Select(select))
                if self.takes_any_order(query, select)
                    && self.analysis.any_node(&this.from, &|node| matches!(node, Node::Instance(_))) =>
            {
                return Err("what a subquery over rows that every worker has gives depends on their order".to_owned());
            }
            _ => {}
        }
        Ok(spread)
    }

    /// Something of it depends on the order of rows, and nothing says which: each worker has its own.
    fn takes_any_order(&self, query: &Query, select: &Select) -> bool {
        if matches!(select.distinct, Distinct::On(_)) && query.order_by.is_empty() {
            return true;
        }
        let is_ordered = |window: &Window| {
            let named = select.windows.iter().find(|w| w.name.is_some() && w.name == window.reference);
            !window.order_by.is_empty() || named.is_some_and(|w| !w.order_by.is_empty())
        };
        let mut found = false;
        let exprs = select.items.iter().map(|i| &i.expr).chain(&select.having);
        for expr in exprs.chain(query.order_by.iter().map(|s| &s.expr)) {
            expr.walk(&mut |e| {
                if let ExprKind::Sublink(link) = &e.kind {
                    found |= link.kind == SublinkKind::Array && link.query.order_by.is_empty();
                }
                let ExprKind::Call(call) = &e.kind else { return };
                found |= match &call.over {
                    Some(window) => BY_PLACE.contains(&call.name.as_str()) && !is_ordered(window),
                    None => {
                        let gathers = GATHERING.iter().any(|word| call.name.contains(word));
                        gathers && call.order_by.is_empty() && self.analysis.is_aggregate(call)
                    }
                };
            });
        }
        found
    }

    /// Groups, distinct rows and windows lie on one worker each (or there are none).
    pub fn whole_groups(&self, select: &Select, keys: &[ColumnId], level: usize) -> Result<()> {
        if select.grouping_sets || select.group_distinct {
            return Err("grouping sets".to_owned());
        }
        let this = &self.analysis.levels[level];
        let facts = self.analysis.facts(this.env);
        let is_key = |expr: &Expr| match self.analysis.resolve_expr(expr, this.scope) {
            Found::Column(id, true) => keys.iter().any(|key| facts.same(id, *key)),
            _ => false,
        };
        let mut calls = Calls::default();
        for expr in select.items.iter().map(|i| &i.expr).chain(select.having.iter()) {
            self.calls_of(expr, &mut calls);
        }
        if let Some(query) = this.query {
            query.order_by.iter().for_each(|s| self.calls_of(&s.expr, &mut calls));
        }
        if let Distinct::On(list) = &select.distinct {
            list.iter().for_each(|e| self.calls_of(e, &mut calls));
        }
        select.windows.iter().for_each(|w| w.for_each_expr(&mut |e| self.calls_of(e, &mut calls)));
        if select.group_by.is_empty() {
            if calls.aggregate || select.having.is_some() {
                return Err("an aggregate over all rows".to_owned());
            }
        } else if !select.group_by.iter().any(|e| is_key(self.group_expr(e, select, this.scope))) {
            return Err("GROUP BY without the distribution column".to_owned());
        }
        match &select.distinct {
            Distinct::No => {}
            Distinct::All => {
                let star = |e: &Expr| match &e.kind {
                    ExprKind::Star(path) => self.analysis.expand_star(path, this.scope).is_some_and(|all| {
                        all.iter().any(|(_, id)| id.is_some_and(|id| keys.iter().any(|k| facts.same(id, *k))))
                    }),
                    _ => false,
                };
                if !select.items.iter().any(|i| is_key(&i.expr) || star(&i.expr)) {
                    return Err("DISTINCT without the distribution column".to_owned());
                }
            }
            Distinct::On(list) => {
                let is_own = |e: &Expr| !self.is_of_star(e, select, this.scope);
                if !list.iter().any(|e| is_own(e) && is_key(self.distinct_expr(e, select, this.scope))) {
                    return Err("DISTINCT ON without the distribution column".to_owned());
                }
            }
        }
        for window in &calls.windows {
            let mut partition = window.partition_by.iter().collect::<Vec<_>>();
            if let Some(reference) = &window.reference {
                match select.windows.iter().find(|w| w.name.as_ref() == Some(reference)) {
                    Some(named) if named.reference.is_none() => partition.extend(&named.partition_by),
                    _ => return Err("a window of a window".to_owned()),
                }
            }
            if !partition.iter().any(|e| is_key(e)) {
                return Err("a window that is not partitioned by the distribution column".to_owned());
            }
        }
        Ok(())
    }

    /// What a GROUP BY item stands for: a number or an output name is the select item.
    pub fn group_expr<'e>(&self, expr: &'e Expr, select: &'e Select, scope: usize) -> &'e Expr {
        match &expr.kind {
            ExprKind::Const(Const::Integer(n)) => {
                let at = usize::try_from(*n).ok().and_then(|n| n.checked_sub(1));
                let plain = !select.items.iter().any(|i| matches!(i.expr.kind, ExprKind::Star(_)));
                match at.filter(|_| plain).and_then(|at| select.items.get(at)) {
                    Some(item) => &item.expr,
                    None => expr,
                }
            }
            ExprKind::Column(path) if path.len() == 1 => {
                // An input column of that name wins in GROUP BY; the caller resolves it.
                let alias = select.items.iter().find(|i| i.alias.as_ref() == path.first());
                match alias {
                    Some(item) if lookup(&self.analysis.scopes[scope], path, true).is_none() => &item.expr,
                    _ => expr,
                }
            }
            _ => expr,
        }
    }

    /// What [`Self::group_expr`] gives may be an output name or an input column.
    pub fn is_unclear(&self, expr: &Expr, select: &Select, scope: usize) -> bool {
        let ExprKind::Column(path) = &expr.kind else { return false };
        let [name] = path.as_slice() else { return false };
        select.items.iter().any(|i| i.alias.as_ref() == Some(name))
            && matches!(lookup(&self.analysis.scopes[scope], path, true), Some(Found::Unknown))
    }

    /// A name may be that of another column, which `*` in the list gives.
    fn is_of_star(&self, expr: &Expr, select: &Select, scope: usize) -> bool {
        let ExprKind::Column(path) = &expr.kind else { return false };
        let [name] = path.as_slice() else { return false };
        let own = match self.analysis.resolve_expr(expr, scope) {
            Found::Column(id, true) => Some(id),
            _ => None,
        };
        select.items.iter().any(|item| match &item.expr.kind {
            ExprKind::Star(path) => match self.analysis.expand_star(path, scope) {
                Some(list) => list.iter().any(|(column, id)| column == name && (id.is_none() || *id != own)),
                None => true,
            },
            _ => false,
        })
    }

    /// What a DISTINCT ON item stands for: an output name wins there.
    fn distinct_expr<'e>(&self, expr: &'e Expr, select: &'e Select, scope: usize) -> &'e Expr {
        let name = match &expr.kind {
            ExprKind::Column(path) => path.first().filter(|_| path.len() == 1),
            _ => return self.group_expr(expr, select, scope),
        };
        let Some(name) = name else { return expr };
        let is_named = |item: &&SelectItem| match &item.alias {
            Some(alias) => alias == name,
            None => !matches!(item.expr.kind, ExprKind::Star(_)) && crate::naming::column_name(&item.expr) == *name,
        };
        select.items.iter().find(is_named).map_or(expr, |item| &item.expr)
    }

    /// A sublink gives each worker the same answer as it would have over all rows.
    pub fn check_sublink(&self, level: usize, outer: &Spread) -> Result<()> {
        if self.staging.borrow().level(level).is_none() && self.is_volatile(level) {
            return Err("a volatile function in a subquery".to_owned());
        }
        let keys = match outer {
            Spread::Replicated => &[][..],
            Spread::Partitioned(keys) => keys,
        };
        self.check_sublink_level(level, keys).map(|_| ())
    }

    /// True where a distributed table is in it.
    fn check_sublink_level(&self, level: usize, keys: &[ColumnId]) -> Result<bool> {
        if let Some(staged) = self.staging.borrow().level(level) {
            return match staged.split {
                None => Ok(false),
                Some(_) => Err("a split subquery in a subquery".to_owned()),
            };
        }
        let this = &self.analysis.levels[level];
        let Some(query) = this.query else { return Err("a data-modifying CTE".to_owned()) };
        let mut distributed = false;
        if let Some((_, _, left, right)) = this.arms {
            distributed |= self.check_sublink_level(left, keys)?;
            distributed |= self.check_sublink_level(right, keys)?;
        }
        for node in &this.from {
            distributed |= self.check_sublink_node(node, keys)?;
        }
        if !distributed && (query.limit.is_some() || query.offset.is_some()) {
            return Err("LIMIT in a subquery".to_owned());
        }
        for link in &this.sublinks {
            self.check_sublink_level(link.level, keys)?;
        }
        Ok(distributed)
    }

    /// True where a distributed table is in it.
    fn check_sublink_node(&self, node: &Node, keys: &[ColumnId]) -> Result<bool> {
        match node {
            Node::Instance(index) => {
                let Some(key) = self.key_in_place(*index) else { return Ok(false) };
                let instance = &self.analysis.instances[*index];
                let facts = self.analysis.facts(instance.env);
                if keys.iter().any(|outer| facts.same(*outer, key)) {
                    Ok(true)
                } else {
                    Err("a subquery is not joined to the outer rows on the distribution column".to_owned())
                }
            }
            Node::Inline { level } => self.check_sublink_level(*level, keys),
            Node::Derived { level, .. } => match self.spread_of_level(*level)? {
                Spread::Replicated => Ok(false),
                Spread::Partitioned(_) => Err("a CTE or subquery over distributed rows in a subquery".to_owned()),
            },
            Node::Lateral { level } => self.check_sublink_level(*level, keys),
            Node::Constant { volatile: false } => Ok(false),
            Node::Constant { volatile: true } => Err("a function in FROM is volatile".to_owned()),
            Node::Opaque(what) => Err(format!("{what} is in FROM")),
            Node::Join { left, right, .. } => {
                let left = self.check_sublink_node(left, keys)?;
                Ok(self.check_sublink_node(right, keys)? || left)
            }
        }
    }

    /// Some function below gives another value at each call.
    fn is_volatile(&self, level: usize) -> bool {
        let mut found = false;
        if let Some(query) = self.analysis.levels[level].query {
            query.walk_all(&mut |_, e| {
                found |= matches!(&e.kind, ExprKind::Call(c) if self.snapshot.volatile_functions.contains(&c.name));
            });
        }
        found
    }

    pub fn calls_of<'e>(&self, expr: &'e Expr, out: &mut Calls<'e>) {
        expr.walk(&mut |e| {
            if let ExprKind::Call(call) = &e.kind {
                if let Some(window) = &call.over {
                    out.windows.push(window);
                } else if self.analysis.is_aggregate(call) {
                    out.aggregate = true;
                }
            }
        });
    }
}

/// Window functions that give a row something of its place among the others.
const BY_PLACE: &[&str] = &["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"];

/// In the names of aggregates that put values one behind another.
const GATHERING: &[&str] = &["array_agg", "string_agg", "json_agg", "jsonb_agg", "xmlagg", "objectagg", "object_agg"];

#[derive(Default)]
pub(crate) struct Calls<'e> {
    pub aggregate: bool,
    pub windows: Vec<&'e Window>,
}
