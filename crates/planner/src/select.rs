//! SELECT: route, scatter, or leave it to the coordinator.

use pgherd_sql::Splice;
use pgherd_sql::ast::*;

use crate::context::{Context, Count, count_of};
use crate::plan::*;
use crate::spread::{Calls, Spread};
use crate::{literal, merge};

type Result<T> = std::result::Result<T, String>;

/// Values in the order written, each once.
#[derive(Default)]
struct KeyList {
    list: Vec<KeyValue>,
    seen: std::collections::HashSet<KeyValue>,
}

impl Context<'_> {
    pub fn select(&self) -> Plan {
        let modifies = self.statement.has_modifying;
        if modifies && self.analysis.instances.iter().any(|i| i.is_target) {
            return self.modifying_ctes();
        }
        if self.analysis.has_local {
            return self.federate("a relation is not distributed");
        }
        if let Some(reason) = &self.unsafe_reason {
            return self.federate(reason.clone());
        }
        if modifies {
            return self.federate("a CTE modifies a local table");
        }
        if !self.names_are_known() {
            return self.federate("a table's name is not found in the text");
        }
        match self.route_key() {
            Ok((table, key)) => self.route(table, key),
            Err(no_route) => match self.scatter_select() {
                Ok(plan) => plan,
                Err(reason) => {
                    let mut plan = match self.stage_select(&reason) {
                        Ok(plan) => plan,
                        Err(_) => self.federate(format!("{no_route}, and {reason}")),
                    };
                    plan.wants_sizes = self.unknown_sizes();
                    plan.questions = self.questions.take().into_iter().collect();
                    plan
                }
            },
        }
    }

    pub fn route(&self, table: std::sync::Arc<pgherd_catalog::Table>, key: KeyValue) -> Plan {
        let reason = match table.key_column() {
            Some(column) => format!("{}.{} is pinned to one value", table.name, column.name),
            None => "one shard".to_owned(),
        };
        let tier = |sql| Tier::Route(Route { table, key, sql, parent_only: self.parent_only() });
        let mut plan = self.with_worker_sql(tier, reason);
        plan.uses_now |= self.inserts_time_within();
        plan
    }

    /// A SELECT whose CTEs write distributed or reference tables.
    fn modifying_ctes(&self) -> Plan {
        let hint = Some("Run the statements one after another in a transaction.");
        if self.analysis.instances.iter().any(|i| i.is_target && i.table.is_reference()) {
            return self.federate("a common table expression modifies a reference table");
        }
        let reason = if self.analysis.has_local {
            Some("a relation is not distributed".to_owned())
        } else {
            self.unsafe_reason.clone().or_else(|| self.ctes_need_coordinator())
        };
        match (reason, self.route_key()) {
            (None, Ok((table, key))) => self.route(table, key),
            (reason, route) => {
                let why = reason.or(route.err()).unwrap_or_default();
                if self.session.callback {
                    return self.refuse(
                        "cannot modify a distributed table in a common table expression over several shards",
                        Some(format!("The statement cannot be sent to one shard: {why}.")),
                        hint,
                    );
                }
                let mut plan = self.federate(why);
                plan.writes = true;
                plan
            }
        }
    }

    /// The level of the statement's own query.
    pub fn top_level(&self) -> Option<usize> {
        self.level_of(match &self.statement.tree {
            Tree::Query(query) => query,
            _ => return None,
        })
    }

    /// The level in whose expressions a subquery stands.
    pub fn parent_of(&self, level: usize) -> Option<usize> {
        self.analysis.levels.iter().position(|l| l.sublinks.iter().any(|s| s.level == level))
    }

    pub fn level_of(&self, query: &Query) -> Option<usize> {
        self.analysis.levels.iter().position(|l| l.query.is_some_and(|l| std::ptr::eq(l, query)))
    }

    pub fn scatter_select(&self) -> Result<Plan> {
        self.scatterable_tables()?;
        let (Some(level), Tree::Query(query)) = (self.top_level(), &self.statement.tree) else {
            return Err("the statement is no query".to_owned());
        };
        let first = self.in_place().next().map(|i| self.analysis.instances[i].table.clone());
        let Some(table) = first.or_else(|| self.staging.borrow().placement()) else {
            return Err("no distributed table".to_owned());
        };
        if let Some(reason) = self.time_reason(&table) {
            return Err(reason);
        }
        if query.with_ties {
            return Err("FETCH … WITH TIES".to_owned());
        }
        let scatter = |sql: Splice, combine: Combine, keys| Scatter { table: table.clone(), keys, sql, combine };
        let (limit, offset) = (count_of(query.limit.as_ref()), count_of(query.offset.as_ref()));
        if limit == Count::Other || offset == Count::Other {
            return Err("LIMIT or OFFSET is no constant".to_owned());
        }
        if let Body::SetOp { .. } = &query.body {
            let plain = query.order_by.is_empty() && limit == Count::None && offset == Count::None;
            let Some((op, all, ..)) = self.analysis.levels[level].arms else {
                return Err("a set operation".to_owned());
            };
            if op != SetOp::Union {
                return Err("INTERSECT or EXCEPT over distributed rows".to_owned());
            }
            // Rows that every worker has are one row again when all are made distinct.
            if !self.union_arms(level, all)? {
                return Err("no distributed table is in FROM".to_owned());
            }
            if all && plain {
                let sql = self.worker_edits().apply(self.text())?;
                let scatter = scatter(sql, Combine::Concatenate, None);
                return Ok(self.plan(Tier::Scatter(scatter), "each row of UNION ALL is on one worker"));
            }
            let (sql, merge) = merge::set_operation(self, query, level, !all)?;
            let reason =
                if all { "each row of UNION ALL is on one worker" } else { "UNION is made distinct at the end" };
            return Ok(self.plan(Tier::Scatter(scatter(sql, Combine::Merge(merge), None)), reason));
        }
        let Body::Select(select) = &query.body else { return Err("VALUES".to_owned()) };
        let anchors = match self.spread_of_from(level) {
            Ok(Spread::Partitioned(anchors)) => anchors,
            Ok(Spread::Replicated) => return Err("no distributed table is in FROM".to_owned()),
            Err(_) if self.aggregates_of_nullable(query, select, level) => Vec::new(),
            Err(reason) => return Err(reason),
        };
        // Columns that rows are split by may be wider than the key of the table whose placement counts.
        let split = self.staging.borrow().placement().is_some();
        let keys = if split { None } else { self.keys_of(&anchors, level, select.filter.as_ref()) };
        let whole = self.whole_groups(select, &anchors, level);
        if whole.is_ok() && query.order_by.is_empty() && offset == Count::None {
            let sql = self.worker_edits().apply(self.text())?;
            match limit {
                Count::None => {
                    let reason = "each worker answers for its rows";
                    return Ok(self.plan(Tier::Scatter(scatter(sql, Combine::Concatenate, keys)), reason));
                }
                Count::Constant(n) if !query.locks_rows() => {
                    let reason = "each worker answers for its rows, with the limit";
                    return Ok(self.plan(Tier::Scatter(scatter(sql, Combine::ConcatenateLimit(n), keys)), reason));
                }
                _ => {}
            }
        }
        // Each worker locks what it returns. With a limit that may be more than is wanted in the end, but not more than
        // the coordinator would lock, which sees foreign rows.
        if query.locks_rows() && (whole.is_err() || !matches!(select.distinct, Distinct::No)) {
            return Err("row locks with rows that are combined".to_owned());
        }
        let mut calls = Calls::default();
        let sorted = query.order_by.iter().map(|s| &s.expr);
        select.items.iter().map(|i| &i.expr).chain(sorted).for_each(|e| self.calls_of(e, &mut calls));
        let mut inside = Calls::default();
        select.windows.iter().for_each(|w| w.for_each_expr(&mut |e| self.calls_of(e, &mut inside)));
        if inside.aggregate && whole.is_err() {
            return Err("an aggregate in WINDOW".to_owned());
        }
        let (sql, merge, reason) = match whole {
            Ok(()) => {
                let (sql, merge) = merge::rows(self, query, select, level)?;
                (sql, merge, "each worker answers for its rows, which are then ordered")
            }
            Err(why) => {
                let aggregated = !select.group_by.is_empty() || calls.aggregate || select.having.is_some();
                if !calls.windows.is_empty() || matches!(select.distinct, Distinct::On(_)) || select.grouping_sets {
                    return Err(why);
                }
                if aggregated {
                    let (sql, merge) = merge::aggregates(self, query, select, level)?;
                    (sql, merge, "the workers' partial aggregates are combined")
                } else {
                    let (sql, merge) = merge::rows(self, query, select, level)?;
                    (sql, merge, "the workers' distinct rows are combined")
                }
            }
        };
        Ok(self.plan(Tier::Scatter(scatter(sql, Combine::Merge(merge), keys)), reason))
    }

    /// Checks the arms of a UNION; true where one is over distributed tables. Below UNION ALL every row must be on one
    /// worker; below UNION, which makes rows distinct, any arm and both kinds of union will do.
    fn union_arms(&self, level: usize, all: bool) -> Result<bool> {
        let Some((_, _, left, right)) = self.analysis.levels[level].arms else { return Ok(false) };
        let mut distributed = false;
        for arm in [left, right] {
            let this = &self.analysis.levels[arm];
            let nested = this.query.is_some_and(|q| q.limit.is_none() && q.offset.is_none() && q.with.is_none());
            match this.arms {
                Some((SetOp::Union, inner_all, ..)) if nested && (inner_all || !all) => {
                    distributed |= self.union_arms(arm, all)?;
                }
                _ => match self.spread_of_level(arm)? {
                    Spread::Partitioned(_) => distributed = true,
                    Spread::Replicated if !all => {}
                    Spread::Replicated => return Err("UNION ALL with rows that every worker has".to_owned()),
                },
            }
        }
        Ok(distributed)
    }

    /// `key IN (…)`: the only keys whose workers need to be asked.
    pub fn keys_of(&self, anchors: &[crate::analysis::ColumnId], level: usize, filter: Option<&Expr>) -> Option<Keys> {
        let this = &self.analysis.levels[level];
        let facts = self.analysis.facts(this.env);
        for conjunct in filter?.conjuncts() {
            let mut values = KeyList::default();
            if self.key_list(conjunct, anchors, this.scope, facts, &mut values).is_some() && !values.list.is_empty() {
                // Of a wider type than the distribution column: no row has those.
                let fits = |value: &KeyValue| {
                    let mut types = anchors.iter().filter_map(|a| self.analysis.column(*a)).map(|c| c.type_oid);
                    types.all(|oid| crate::literal::fits(value, oid))
                };
                values.list.retain(fits);
                if values.list.is_empty() {
                    return None;
                }
                return Some(Keys { values: values.list, listed: self.listed(conjunct, this.scope) });
            }
        }
        None
    }

    /// Where the keys stand, if that is one list behind a column.
    fn listed(&self, condition: &Expr, scope: usize) -> Option<Listed> {
        let ExprKind::Op(op) = &condition.kind else { return None };
        if !matches!(op.kind, OpKind::In | OpKind::Any) {
            return None;
        }
        let (left, right) = (op.left.as_ref()?, op.right.as_ref()?);
        let crate::analysis::Found::Column(id, true) = self.analysis.resolve_expr(left, scope) else { return None };
        let type_oid = self.analysis.column(id)?.type_oid;
        // A cast may fail, or change the value.
        let (array, is_cast) = match &right.kind {
            ExprKind::Cast { expr, to } => {
                (expr.as_ref(), literal::is_array_of(to, type_oid, self.snapshot).then_some(true)?)
            }
            _ => (right, false),
        };
        let is_bare = |e: &Expr| matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_));
        let all_bare = match &array.kind {
            ExprKind::List(list) | ExprKind::Array(list) => list.iter().all(is_bare),
            _ => is_bare(array),
        };
        if !all_bare {
            return None;
        }
        let span = Span::new(left.span.end, condition.span.end);
        // The column may stand in brackets of its own.
        let text = span.of(self.text());
        let count = |bracket| text.matches(bracket).count();
        let is_whole = text.starts_with(|c: char| c.is_whitespace() || c == '=') && text.ends_with(')');
        (is_whole && count('(') == count(')')).then(|| Listed { span, written: text.to_owned(), type_oid, is_cast })
    }

    fn key_list(
        &self,
        condition: &Expr,
        anchors: &[crate::analysis::ColumnId],
        scope: usize,
        facts: &crate::analysis::Facts,
        out: &mut KeyList,
    ) -> Option<()> {
        if let ExprKind::Or(list) = &condition.kind {
            return list.iter().try_for_each(|e| self.key_list(e, anchors, scope, facts, out));
        }
        let ExprKind::Op(op) = &condition.kind else { return None };
        if op.name != "=" || op.schema.is_some() {
            return None;
        }
        let (left, right) = (op.left.as_ref()?, op.right.as_ref()?);
        let column = |e: &Expr| match self.analysis.resolve_expr(e, scope) {
            crate::analysis::Found::Column(id, true) if anchors.iter().any(|a| facts.same(id, *a)) => {
                self.analysis.column(id)
            }
            _ => None,
        };
        let mut add = |e: &Expr, column| {
            let value = literal::key_value(e, column, self.snapshot)?;
            if out.seen.insert(value.clone()) {
                out.list.push(value);
            }
            Some(())
        };
        match (op.kind, &right.kind) {
            (OpKind::Plain, _) => match (column(left), column(right)) {
                (Some(c), None) => add(right, c),
                (None, Some(c)) => add(left, c),
                _ => None,
            },
            (OpKind::In, ExprKind::List(list)) => {
                let column = column(left)?;
                list.iter().try_for_each(|e| add(e, column))
            }
            (OpKind::Any, _) => {
                let column = column(left)?;
                if let Some(number) = literal::array_parameter(right, column, self.snapshot) {
                    let each = KeyValue::Each(number);
                    if out.seen.insert(each.clone()) {
                        out.list.push(each);
                    }
                    return Some(());
                }
                literal::elements(right, column, self.snapshot)?.iter().try_for_each(|e| add(e, column))
            }
            _ => None,
        }
    }
}
