//! MERGE into a distributed table from any source: the source is a part that is run first, by any way, and its rows go
//! to where the target's are. What is left for the workers is the statement with those rows in the source's place.
//!
//! A row goes to the one worker that has the key that ON compares it with, so that it is judged "not matched" once in
//! the cluster, and is inserted where it was judged. Where nothing is inserted it may as well go to every worker: each
//! row of the target then sees all rows that it may match.
//!
//! Where neither is right (a key is inserted that is not what ON compares, or ON compares none, or a default needs the
//! coordinator), the part tells of each row whether it is matched, and the actions are run in steps: first those on the
//! target's rows, then an INSERT for each clause that inserts.

use std::collections::HashSet;
use std::sync::Arc;

use pgherd_catalog::hash::KeyType;
use pgherd_catalog::{Table, TableKind};
use pgherd_sql::Edits;
use pgherd_sql::ast::*;

use crate::analysis::{ColumnId, Found, SYSTEM_COLUMNS};
use crate::context::{Context, quote_ident, with_brackets};
use crate::modify::inserts_time;
use crate::naming::column_name;
use crate::plan::*;
use crate::safety;
use crate::spread::Spread;

type Result<T> = std::result::Result<T, String>;

/// The part's column by which its rows are split.
const KEY: &str = "pgherd_key";
/// The part's column that tells whether a row is matched.
const MATCHED: &str = "pgherd_matched";
/// What a source without a name of its own is called.
pub(crate) const SOURCE: &str = "pgherd_source";

/// Whose column a name in ON, WHEN or RETURNING is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Target(Option<ColumnId>),
    Source,
    /// A whole row, or not to be told.
    Other,
}

/// A MERGE's own names.
pub(crate) struct Names<'m> {
    pub merge: &'m pgherd_sql::ast::Merge,
    /// The target's occurrence, and where target and source stand.
    target: usize,
    level: usize,
    scope: usize,
}

/// What the part selects, and what the rest has in its place.
struct Selected {
    list: String,
    edits: Edits,
    source: String,
}

impl Context<'_> {
    /// `why`: what keeps the workers from reading the source themselves.
    pub fn stage_merge(&self, merge: &pgherd_sql::ast::Merge, table: &Arc<Table>, why: &str) -> Result<Plan> {
        if self.session.callback || !self.session.may_stage {
            return Err("it comes from the coordinator".to_owned());
        }
        if !merge.source_span.is_known() || self.text().contains("{{") {
            return Err("its source is not found in the text".to_owned());
        }
        // Part and rest are run at different times, but by one clock.
        if self.uses_now && self.session.multi_statement_txn_now.is_none() {
            return Err("the current time must be the same on every server".to_owned());
        }
        let target =
            self.analysis.instances.iter().position(|i| i.is_target && std::ptr::eq(i.relation, &merge.target));
        let target = target.ok_or("no target")?;
        let level = self.merge_level(target).ok_or("no target")?;
        let names = Names { merge, target, level, scope: self.analysis.levels[level].scope };
        let collated = self.check_collations().is_err() || !self.is_all_tables(&merge.source);
        self.staging.take();
        let staged = self.stage_merge_sublinks(&names);
        let way = staged.and_then(|()| self.split_merge(&names, table));
        let mut parts = self.staging.take().into_parts();
        let by_rows = self.merge_by_rows(&names, table);
        let in_steps = self.merge_in_steps(&names, table).map(|(source, steps)| {
            let rest = Rest::Steps(steps.into_iter().map(Step::Planned).collect());
            Stage { parts: vec![source], rest, collated, otherwise: None }
        });
        let (mut stage, reason) = match (way, in_steps) {
            (Ok((sql, source)), in_steps) => {
                // Of what type the inserted keys are is found when the part is described.
                let stored = matches!(source.ship, Ship::SplitByLast { stored: true, .. });
                let otherwise = in_steps.ok().filter(|_| stored).map(Box::new);
                parts.push(source);
                let scatter = Scatter { table: table.clone(), keys: None, sql, combine: Combine::Concatenate };
                let stage = Stage { parts, rest: Rest::Scatter(scatter), collated, otherwise };
                (stage, "the source's rows go to where the target's are".to_owned())
            }
            (Err(reason), Ok(stage)) => (stage, format!("{reason}; its actions are run one after another")),
            (Err(reason), Err(other)) => {
                let reason = if other == reason { other } else { format!("{reason}; {other}") };
                let stage = by_rows.clone().map_err(|last| match reason.contains(&last) {
                    true => reason.clone(),
                    false => format!("{reason}; {last}"),
                })?;
                (stage, format!("{reason}; the coordinator finds the rows"))
            }
        };
        let last = match &mut stage.otherwise {
            Some(otherwise) => &mut otherwise.otherwise,
            none => none,
        };
        let is_last = stage.parts.iter().any(|p| matches!(p.ship, Ship::ByPlace { .. }));
        *last = by_rows.ok().filter(|_| !is_last).map(Box::new);
        let reason = if reason.starts_with(why) { reason } else { format!("{why}; {reason}") };
        let mut plan = self.plan(Tier::Stage(stage), reason);
        plan.writes = true;
        Ok(plan)
    }

    /// The source with what is matched, and the statements that follow.
    fn merge_in_steps(&self, names: &Names<'_>, table: &Arc<Table>) -> Result<(StagePart, Vec<String>)> {
        let merge = names.merge;
        if !merge.returning.is_empty() {
            return Err("RETURNING of actions that are run one after another".to_owned());
        }
        if !self.analysis.modifying.is_empty() || self.analysis.has_parts_unknown {
            return Err("a data-modifying common table expression".to_owned());
        }
        if !self.analysis.levels[names.level].sublinks.is_empty() {
            return Err("a subquery in a condition or value".to_owned());
        }
        let is_target = |cte: &Cte| merge.target.schema.is_none() && cte.name == merge.target.name;
        if merge.with.iter().flat_map(|w| &w.ctes).any(is_target) {
            return Err("a common table expression has the target's name".to_owned());
        }
        // What another transaction commits between the steps would be taken for a row without a source.
        if merge.clauses.iter().any(|c| c.matched == MergeMatch::NotMatchedBySource) {
            return Err("WHEN NOT MATCHED BY SOURCE with actions that are run one after another".to_owned());
        }
        let volatile = |e: &Expr| {
            let mut found = false;
            e.walk(&mut |e| {
                found |= match &e.kind {
                    ExprKind::Call(c) => {
                        self.snapshot.volatile_functions.contains(&c.name)
                            || self.snapshot.user_functions.contains(&c.name)
                    }
                    ExprKind::Op(op) => self.snapshot.user_operators.contains(&op.name),
                    _ => false,
                }
            });
            found
        };
        if volatile(&merge.on) || merge.clauses.iter().filter_map(|c| c.condition.as_ref()).any(volatile) {
            return Err("a function in a condition may give another value each time".to_owned());
        }
        if let Some(reason) = safety::moving_reason(self.statement, Vec::new()) {
            return Err(reason);
        }
        let Selected { list, mut edits, .. } = self.selected(names, true)?;
        let text = self.text();
        let target = merge.target.full_span.of(text);
        let name = quote_ident(merge.target.reference_name());
        let part = format!(
            "{} SELECT {list}, EXISTS (SELECT FROM {target} AS {name} WHERE {}) AS {MATCHED} FROM {}",
            merge.with_span.of(text),
            merge.on.span.of(text),
            merge.source_span.of(text)
        );
        let mut steps = Vec::new();
        // What is false already is not computed: the first condition that holds decides.
        let mut cases = format!("CASE WHEN {SOURCE}.{MATCHED} THEN false");
        for clause in merge.clauses.iter().filter(|c| c.matched == MergeMatch::NotMatchedByTarget) {
            let condition = clause.condition.as_ref().map(|c| edits.apply_to(text, c.span)).transpose()?;
            let condition = condition.map_or_else(|| "true".to_owned(), |c| c.as_written());
            if let MergeAction::Insert { columns, overriding, values } = &clause.action {
                let insert = self.insert_step(names, (columns, values), *overriding, &edits, table)?;
                steps.push(format!("{insert} FROM {{{{stage 1}}}} AS {SOURCE} WHERE {cases} ELSE {condition} END"));
            }
            cases.push_str(&format!(" WHEN {condition} THEN false"));
        }
        for clause in &merge.clauses {
            if !clause.span.is_known() {
                return Err("its clauses are not found in the text".to_owned());
            }
            if clause.matched == MergeMatch::NotMatchedByTarget {
                edits.cover(clause.span, "");
            }
        }
        if merge.clauses.iter().any(|c| c.matched != MergeMatch::NotMatchedByTarget) {
            if merge.with_span.is_known() {
                edits.cover(merge.with_span, "");
            }
            let mut alone = edits.clone();
            alone.cover(merge.source_span, format!("(SELECT 0) AS {SOURCE}"));
            let alone = alone.apply(text)?.as_written();
            let alone =
                pgherd_sql::split(&alone).ok().and_then(|mut list| list.pop()).ok_or("a step does not parse")?;
            let Tree::Merge(step) = &alone.tree else { return Err("a step does not parse".to_owned()) };
            Context::new(&alone, self.snapshot, self.session).merge_on_workers(step, table)?;
            // A row that another transaction gives a match to meanwhile is inserted, not changed as well.
            let matched = format!("(SELECT * FROM {{{{stage 1}}}} AS {SOURCE} WHERE {MATCHED}) AS {SOURCE}");
            edits.cover(merge.source_span, matched);
            steps.insert(0, edits.apply(text)?.as_written());
        }
        Ok((StagePart::new(part.trim_start().to_owned(), Ship::Everywhere), steps))
    }

    /// `INSERT INTO … SELECT …` of a clause that inserts.
    fn insert_step(
        &self,
        names: &Names<'_>,
        (columns, values): (&[String], &[Expr]),
        overriding: Overriding,
        edits: &Edits,
        table: &Table,
    ) -> Result<String> {
        let text = self.text();
        let all: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        if values.is_empty() || values.len() > columns.len() || values.iter().any(|v| !v.span.is_known()) {
            return Err("DEFAULT VALUES".to_owned());
        }
        let given = columns.iter().zip(values).filter(|(_, value)| !matches!(value.kind, ExprKind::Default));
        let (mut list, mut select) = (Vec::new(), Vec::new());
        for (column, value) in given {
            list.push(quote_ident(column));
            select.push(edits.apply_to(text, value.span)?.as_written());
        }
        if list.is_empty() {
            return Err("DEFAULT VALUES".to_owned());
        }
        let target = names.merge.target.span.of(text);
        let overriding = overriding.clause();
        Ok(format!("INSERT INTO {target} ({}){overriding} SELECT {}", list.join(", "), select.join(", ")))
    }

    /// Subqueries in conditions and values that workers cannot read come with the statement.
    fn stage_merge_sublinks(&self, names: &Names<'_>) -> Result<()> {
        let ctes: HashSet<&str> = names.merge.with.iter().flat_map(|w| &w.ctes).map(|cte| cte.name.as_str()).collect();
        for link in &self.analysis.levels[names.level].sublinks {
            let Some(query) = self.analysis.levels[link.level].query else { continue };
            let reads_cte = self
                .statement
                .relations
                .iter()
                .any(|r| r.schema.is_none() && ctes.contains(r.name.as_str()) && query.span.contains(r.full_span));
            let stays = !reads_cte
                && !self.has_distributed_in(link.level)
                && self.check_sublink(link.level, &Spread::Replicated).is_ok();
            if !stays && !self.analysis.modifying.is_empty() {
                return Err(
                    "a subquery in a condition or value beside a data-modifying common table expression".to_owned()
                );
            }
            // The source reads it, too, and it may be another one each time.
            if reads_cte && (self.analysis.has_local || self.unsafe_reason.is_some()) {
                return Err("a common table expression is read by the source and by a condition or value".to_owned());
            }
            if !stays {
                self.stage_everywhere(link.level)?;
            }
        }
        Ok(())
    }

    /// The rest for the workers, and the source's part.
    fn split_merge(&self, names: &Names<'_>, table: &Arc<Table>) -> Result<(pgherd_sql::Splice, StagePart)> {
        let merge = names.merge;
        let joined = self.joined_keys(names);
        let keys = |e: &Expr| match self.side(e, names, false) {
            Side::Target(id) => id == self.analysis.key_of(names.target),
            _ => joined.iter().any(|j| self.is_same_value(e, j, names)),
        };
        let inserted = self.inserted_keys(merge, table, &keys)?;
        let key = table.key_column().map_or("", |c| &c.name);
        let is_assigned =
            |a: &Assignment| a.column == key && !matches!(self.side(&a.value, names, false), Side::Target(_));
        let assigns =
            merge.clauses.iter().any(|c| matches!(&c.action, MergeAction::Update(set) if set.iter().any(is_assigned)));
        let by = joined.iter().find(|j| inserted.iter().all(|i| self.is_same_value(i, j, names)));
        let ship = match (by, inserted.is_empty()) {
            (Some(_), empty) => Ship::SplitByLast { table: table.clone(), stored: !empty || assigns },
            (None, true) => Ship::Everywhere,
            (None, false) if joined.is_empty() => {
                return Err("it does not join on the distribution column, and inserts".to_owned());
            }
            (None, false) => return Err("an inserted row's key is not what the key is joined with".to_owned()),
        };
        if inserts_time(merge, table) {
            return Err("a column's default is the current time, which must be the same on every server".to_owned());
        }
        let asks = matches!(table.kind, TableKind::Distributed { key_type: KeyType::AskServer, .. });
        if asks && !inserted.is_empty() {
            return Err("only a server knows where the inserted keys belong".to_owned());
        }
        let selected = self.selected(names, false)?;
        self.check_rest(names)?;
        let number = self.staging.borrow().len() + 1;
        let text = self.text();
        let with = merge.with_span.of(text);
        let key = by.map_or(String::new(), |by| format!(", ({}) AS {KEY}", by.span.of(text)));
        let sql = format!("{with} SELECT {}{key} FROM {}", selected.list, merge.source_span.of(text));
        let mut edits = self.worker_edits();
        edits.extend(selected.edits);
        edits.cover(merge.source_span, format!("{{{{stage {number}}}}} AS {}", quote_ident(&selected.source)));
        if merge.with_span.is_known() {
            edits.cover(merge.with_span, "");
        }
        Ok((edits.apply(text)?, StagePart::new(sql.trim_start().to_owned(), ship)))
    }

    /// What is left after the source, WITH and staged subqueries are gone can be run by each worker for its rows.
    fn check_rest(&self, names: &Names<'_>) -> Result<()> {
        let merge = names.merge;
        let mut edits = Edits::new();
        edits.cover(merge.source_span, format!("(SELECT 0) AS {}", quote_ident(&self.source_name(merge))));
        if merge.with_span.is_known() {
            edits.cover(merge.with_span, "");
        }
        for link in &self.analysis.levels[names.level].sublinks {
            if let (Some(_), Some(query)) =
                (self.staging.borrow().level(link.level), self.analysis.levels[link.level].query)
            {
                edits.cover(query.span, "SELECT 0");
            }
        }
        let text = edits.apply(self.text())?.as_written();
        let rest = pgherd_sql::split(&text).ok().and_then(|mut list| list.pop()).ok_or("the rest does not parse")?;
        let rest = Context::new(&rest, self.snapshot, self.session);
        if rest.analysis.has_local || rest.analysis.has_own {
            return Err("a condition or value names a relation that is not distributed".to_owned());
        }
        if let Some(reason) = &rest.unsafe_reason {
            return Err(reason.clone());
        }
        if !rest.names_are_known() {
            return Err("a table's name is not found in the text".to_owned());
        }
        if rest.analysis.distributed().count() != 1 {
            return Err("a condition or value names another distributed table".to_owned());
        }
        if let Some(reason) = safety::moving_reason(rest.statement, Vec::new()) {
            return Err(reason);
        }
        self.check_modifying(&rest.tables)
    }

    /// What the source's common table expressions change is changed before the rest runs, which must not see it.
    pub(crate) fn check_modifying(&self, read_later: &[Arc<Table>]) -> Result<()> {
        for tree in &self.analysis.modifying {
            let relation = match tree {
                Tree::Insert(i) => &i.target,
                Tree::Update(u) => &u.target,
                Tree::Delete(d) => &d.target,
                Tree::Merge(m) => &m.target,
                Tree::Query(_) | Tree::Utility => return Err("a common table expression".to_owned()),
            };
            let name = &relation.name;
            match crate::analysis::resolve(self.snapshot, self.session, relation) {
                Some(table) => {
                    if table.has_triggers || table.is_referenced || table.has_hidden_calls {
                        return Err(format!(
                            "a common table expression modifies {name}, which may change other tables"
                        ));
                    }
                    let tree_of = |table: &Arc<Table>| {
                        let mut top = table.clone();
                        while let Some(parent) = top.parent.and_then(|oid| self.snapshot.by_oid.get(&oid)) {
                            top = parent.clone();
                        }
                        top.oid
                    };
                    if read_later.iter().any(|t| tree_of(t) == tree_of(table)) {
                        return Err(format!("a common table expression modifies {name}"));
                    }
                }
                None if self.snapshot.passing_on.contains(name) || self.session.temp_relations.contains(name) => {
                    return Err(format!("a common table expression modifies {name}, which may change other tables"));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// It is the distribution column of the row that is changed.
    pub(crate) fn is_target_key(&self, value: &Expr, names: &Names<'_>) -> bool {
        let key = self.analysis.key_of(names.target);
        matches!(self.side(value, names, false), Side::Target(id) if id.is_some() && id == key)
    }

    /// Nothing but distributed and reference tables, and what is computed from them by built-in functions.
    fn is_all_tables(&self, source: &FromItem) -> bool {
        let mut functions = false;
        source.walk_all(&mut |place, _| functions |= place == Place::From);
        !self.analysis.has_local && !self.analysis.has_parts_unknown && !functions && self.unsafe_reason.is_none()
    }

    /// Expressions of the source that ON equates with the target's key.
    fn joined_keys<'m>(&self, names: &Names<'m>) -> Vec<&'m Expr> {
        let mut found = Vec::new();
        if self.snapshot.user_operators.contains("=") {
            return found;
        }
        let key = self.analysis.key_of(names.target);
        let is_key = |e: &Expr| matches!(self.side(e, names, false), Side::Target(id) if id.is_some() && id == key);
        let mut pair = |a: &'m Expr, b: &'m Expr| {
            if is_key(a) && self.is_of_source(b, names) {
                found.push(b);
            } else if is_key(b) && self.is_of_source(a, names) {
                found.push(a);
            }
        };
        for conjunct in names.merge.on.conjuncts() {
            let ExprKind::Op(op) = &conjunct.kind else { continue };
            let (Some(left), Some(right)) = (&op.left, &op.right) else { continue };
            if op.kind != OpKind::Plain || op.name != "=" || op.schema.as_deref().is_some_and(|s| s != "pg_catalog") {
                continue;
            }
            match (&left.kind, &right.kind) {
                (ExprKind::Row(a), ExprKind::Row(b)) if a.len() == b.len() => {
                    a.iter().zip(b).for_each(|(a, b)| pair(a, b));
                }
                _ => pair(left, right),
            }
        }
        found
    }

    /// It is computed from the source alone, and is the same each time.
    fn is_of_source(&self, expr: &Expr, names: &Names<'_>) -> bool {
        // A literal has the type of what it is compared with.
        let literal = matches!(&expr.kind, ExprKind::Const(Const::String(_) | Const::Null));
        let mut plain = expr.span.is_known() && !literal;
        expr.walk(&mut |e| match &e.kind {
            ExprKind::Column(_) => plain &= self.side(e, names, false) == Side::Source,
            ExprKind::Sublink(_) | ExprKind::Star(_) | ExprKind::Unknown(_) | ExprKind::Collate { .. } => plain = false,
            _ => {}
        });
        let mut volatile = false;
        expr.walk(&mut |e| {
            volatile |= matches!(&e.kind, ExprKind::Call(c) if self.snapshot.volatile_functions.contains(&c.name));
        });
        plain && !volatile && safety::field_reason(expr, &self.names()).is_none()
    }

    /// `inserted`: it stands in an INSERT, where the target's columns are not seen.
    fn side(&self, expr: &Expr, names: &Names<'_>, inserted: bool) -> Side {
        let ExprKind::Column(path) = &expr.kind else { return Side::Other };
        let target = &self.analysis.instances[names.target];
        let of_target = |name: &String| {
            let col = target.table.columns.iter().position(|c| c.name == *name);
            Side::Target(col.map(|col| ColumnId { rel: target.rel, col }))
        };
        match path.as_slice() {
            [name] => {
                let entries = &self.analysis.scopes[names.scope].entries;
                let own = target.table.columns.iter().any(|c| c.name == *name);
                match self.analysis.resolve_expr(expr, names.scope) {
                    _ if inserted && own => Side::Source,
                    Found::Column(id, true) if id.rel == target.rel => of_target(name),
                    Found::Column(..) | Found::Computed => Side::Source,
                    Found::Row => Side::Other,
                    Found::Unknown if own || SYSTEM_COLUMNS.contains(&name.as_str()) => of_target(name),
                    // A column may have the name of its own function.
                    Found::Unknown if entries.iter().any(|e| e.name == *name && e.columns.is_none() && e.is_table) => {
                        Side::Other
                    }
                    Found::Unknown => Side::Source,
                }
            }
            [qualifier, name] if *qualifier == target.relation.reference_name() => of_target(name),
            // What RETURNING calls the target's row before and after.
            [qualifier, _]
                if matches!(qualifier.as_str(), "old" | "new")
                    && !self.analysis.scopes[names.scope].entries.iter().any(|e| e.name == *qualifier) =>
            {
                Side::Target(None)
            }
            [_, _] => Side::Source,
            _ => Side::Other,
        }
    }

    /// A value that is inserted is the one that the key is compared with.
    fn is_same_value(&self, inserted: &Expr, joined: &Expr, names: &Names<'_>) -> bool {
        let text = |e: &Expr| e.span.of(self.text());
        if self.side(inserted, names, true) == Side::Source && self.side(joined, names, false) == Side::Source {
            let (ExprKind::Column(a), ExprKind::Column(b)) = (&inserted.kind, &joined.kind) else { return false };
            let alone = self.analysis.scopes[names.scope].entries.len() == 2;
            if a == b || alone && a.last() == b.last() {
                return true;
            }
            let entries = self.analysis.scopes[names.scope].entries.len();
            let id = |e: &Expr| match &e.kind {
                ExprKind::Column(path) if path.len() == 1 => self.analysis.column_in(names.scope, 1, entries, &path[0]),
                _ => match self.analysis.resolve_expr(e, names.scope) {
                    Found::Column(id, true) => Some(id),
                    _ => None,
                },
            };
            let facts = self.analysis.facts(self.analysis.levels[names.level].env);
            return match (id(inserted), id(joined)) {
                (Some(a), Some(b)) => facts.same(a, b) && self.analysis.alike(a, b),
                _ => false,
            };
        }
        inserted.span.is_known() && text(inserted) == text(joined) && self.is_of_source(joined, names)
    }

    /// What the source is called; made up where it is a join or has no name.
    fn source_name(&self, merge: &pgherd_sql::ast::Merge) -> String {
        single_name(&merge.source).unwrap_or(SOURCE).to_owned()
    }

    /// The columns that the part gives. A single item keeps its name and theirs; those of a join are `renamed`.
    fn selected(&self, names: &Names<'_>, renamed: bool) -> Result<Selected> {
        let merge = names.merge;
        let source = self.source_name(merge);
        if !renamed && single_name(&merge.source).is_some() {
            return Ok(Selected { list: self.columns_of_source(names), edits: Edits::new(), source });
        }
        let mut columns: Vec<String> = Vec::new();
        let mut edits = Edits::new();
        let mut plain = true;
        let mut rename = |expr: &Expr, inserted: bool| {
            let mut renamed = false;
            expr.walk(&mut |e| match &e.kind {
                ExprKind::Column(_) => match self.side(e, names, inserted) {
                    Side::Target(_) => {}
                    Side::Source if e.span.is_known() => {
                        let text = e.span.of(self.text()).to_owned();
                        let at = columns.iter().position(|c| *c == text).unwrap_or_else(|| {
                            columns.push(text);
                            columns.len() - 1
                        });
                        edits.replace(e.span, format!("{SOURCE}.pgherd_{}", at + 1));
                        renamed = true;
                    }
                    _ => plain = false,
                },
                ExprKind::Star(_) => plain = false,
                // What is not staged may name the source's columns.
                ExprKind::Sublink(_) => plain &= self.is_staged_sublink(e, names),
                _ => {}
            });
            renamed
        };
        rename(&merge.on, false);
        for clause in &merge.clauses {
            let inserted = clause.matched == MergeMatch::NotMatchedByTarget;
            clause.condition.iter().for_each(|c| {
                rename(c, inserted);
            });
            match &clause.action {
                MergeAction::Update(set) => set.iter().for_each(|a| {
                    rename(&a.value, false);
                }),
                MergeAction::Insert { values, .. } => values.iter().for_each(|v| {
                    rename(v, true);
                }),
                MergeAction::Nothing | MergeAction::Delete => {}
            }
        }
        let mut unnamed = Vec::new();
        for item in &merge.returning {
            if rename(&item.expr, false) && item.alias.is_none() {
                unnamed.push(&item.expr);
            }
        }
        if !plain {
            return Err("a whole row of the source, or a subquery beside one that is joined".to_owned());
        }
        for expr in unnamed {
            edits.insert_after(
                with_brackets(self.text(), expr.span),
                format!(" AS {}", quote_ident(&column_name(expr))),
            );
        }
        let list: Vec<String> =
            columns.iter().enumerate().map(|(at, text)| format!("{text} AS pgherd_{}", at + 1)).collect();
        let list = if list.is_empty() { "1 AS pgherd_row".to_owned() } else { list.join(", ") };
        Ok(Selected { list, edits, source })
    }

    fn is_staged_sublink(&self, expr: &Expr, names: &Names<'_>) -> bool {
        let ExprKind::Sublink(link) = &expr.kind else { return false };
        let staging = self.staging.borrow();
        let mut levels = self.analysis.levels[names.level].sublinks.iter().map(|s| s.level);
        levels.any(|level| {
            staging.level(level).is_some()
                && self.analysis.levels[level].query.is_some_and(|q| std::ptr::eq(q, &link.query))
        })
    }

    /// Of a table only those that the statement names: whoever runs it may have no right to others.
    fn columns_of_source(&self, names: &Names<'_>) -> String {
        let everything = "*".to_owned();
        if let FromItem::Subquery { query, .. } = &names.merge.source
            && matches!(&query.body, Body::Select(select) if select.items.is_empty())
        {
            return "1 AS pgherd_row".to_owned();
        }
        let FromItem::Relation(relation) = &names.merge.source else { return everything };
        let Some(index) = self.analysis.instances.iter().position(|i| std::ptr::eq(i.relation, relation)) else {
            return everything;
        };
        let reference = relation.reference_name();
        let (mut all, mut named) = (false, HashSet::new());
        self.statement.tree.walk_all(&mut |_, e| match &e.kind {
            ExprKind::Column(path) => {
                all |= matches!(path.as_slice(), [name] if name == reference);
                named.extend(path.last().map(String::as_str));
            }
            ExprKind::Star(path) => all |= path.is_empty() || path.last().is_some_and(|n| n == reference),
            _ => {}
        });
        let alias = quote_ident(reference);
        let columns: Vec<String> = self
            .entry_names(index)
            .iter()
            .filter(|name| named.contains(name.as_str()))
            .map(|name| format!("{alias}.{}", quote_ident(name)))
            .collect();
        match (all, columns.is_empty()) {
            (true, _) => everything,
            (false, true) => "1 AS pgherd_row".to_owned(),
            (false, false) => columns.join(", "),
        }
    }
}

/// The name of a source that is one item of FROM.
pub(crate) fn single_name(source: &FromItem) -> Option<&str> {
    match source {
        FromItem::Relation(relation) => Some(relation.reference_name()),
        FromItem::Subquery { alias, .. } => Some(alias.as_ref().map_or(SOURCE, |a| &a.name)),
        FromItem::Function { alias: Some(alias), .. } => Some(&alias.name),
        FromItem::Function { calls, .. } => match calls.as_slice() {
            [Expr { kind: ExprKind::Call(call), .. }] => Some(&call.name),
            _ => None,
        },
        FromItem::Sample { relation, .. } => single_name(relation),
        FromItem::Join(_) | FromItem::Other(_) => None,
    }
}
