//! SELECT over tables that the workers cannot join where they are: some parts are run first, and their rows go to the
//! workers with the rest of the statement (whole to each, or split by the column on which they meet the key of what
//! stays), or everything that is distributed goes to the coordinator, which runs the rest.
//!
//! A part is an occurrence of a table, with the columns that the statement names and the conditions that concern it
//! alone, or a whole subquery that refers to nothing outside of itself. What is left must pass the same proofs as any
//! scatter, with a part counted as a table that every worker has, or that is distributed by the column it is split by.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use pgherd_catalog::{Table, TableKind};
use pgherd_sql::ast::*;

use crate::analysis::{Analysis, ColumnId, Node};
use crate::context::{Context, colocated, qualified, quote_ident};
use crate::plan::*;
use crate::safety;
use crate::spread::Spread;

/// What a table holds where nobody has counted: rows.
const ROWS_UNKNOWN: f64 = 10_000.0;
/// What one server may be sent for one statement, by estimate: bytes.
const BYTES_MAX: f64 = 256e6;
/// How many ways of staging are tried, cheapest first.
const TRIES_MAX: usize = 24;
/// How many ways are thought through at all.
const CANDIDATES_MAX: usize = 64;

type Result<T> = std::result::Result<T, String>;

/// One occurrence or subquery that comes with the statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staged {
    /// Its number among the parts, from 0.
    part: usize,
    /// Each worker has the rows whose value here is its own; none: all rows.
    pub split: Option<ColumnId>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Staging {
    instances: HashMap<usize, Staged>,
    levels: HashMap<usize, Staged>,
    /// Occurrences inside of staged subqueries.
    covered: HashSet<usize>,
    parts: Vec<StagePart>,
    /// What it takes, in rows sent.
    cost: f64,
    bytes: f64,
}

impl Staging {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn instance(&self, instance: usize) -> Option<Staged> {
        self.instances.get(&instance).copied()
    }

    pub fn level(&self, level: usize) -> Option<Staged> {
        self.levels.get(&level).copied()
    }

    /// Not where its table is: it comes with the statement.
    pub fn has(&self, instance: usize) -> bool {
        self.instances.contains_key(&instance) || self.covered.contains(&instance)
    }

    /// A table whose placements say which workers take part, where every occurrence is staged.
    pub fn placement(&self) -> Option<Arc<Table>> {
        self.parts.iter().find_map(|part| match &part.ship {
            Ship::Split { table, .. } => Some(table.clone()),
            Ship::Everywhere => None,
        })
    }
}

impl Staged {
    /// What stands for its rows in the text.
    pub fn marker(self) -> String {
        format!("{{{{stage {}}}}}", self.part + 1)
    }
}

/// What stays where it is: the tables that are colocated with `like`, on the column that all of them are joined by.
struct Anchor {
    column: ColumnId,
    like: Arc<Table>,
}

impl Context<'_> {
    /// `why`: what keeps the statement from being scattered as it is.
    pub fn stage_select(&self, why: &str) -> Result<Plan> {
        if self.session.callback || self.analysis.has_own {
            return Err("it comes from the coordinator".to_owned());
        }
        if self.analysis.needs_parent_name || self.text().contains("{{") {
            return Err("a whole row or a qualified table name".to_owned());
        }
        let top = self.top_level().ok_or("the statement is no query")?;
        let Tree::Query(query) = &self.statement.tree else { return Err("the statement is no query".to_owned()) };
        if query.locking || query.into {
            return Err("row locks".to_owned());
        }
        let mut ways: Vec<Staging> = Vec::new();
        for anchor in self.anchors(top) {
            *self.staging.borrow_mut() = Staging::default();
            if self.assign(top, Some(&anchor)).is_ok() {
                ways.push(self.staging.take());
            }
        }
        ways.retain(|way| way.bytes <= BYTES_MAX && !way.is_empty());
        ways.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        self.staging.take();
        if self.assign(top, None).is_ok() {
            let gathered = self.staging.take();
            if gathered.bytes <= BYTES_MAX && !gathered.is_empty() {
                let before = ways.partition_point(|way| way.cost <= gathered.cost);
                for way in ways.iter().take(before.min(TRIES_MAX)) {
                    if let Some(plan) = self.try_scatter(way, why) {
                        return Ok(plan);
                    }
                }
                ways.drain(..before);
                // A little dearer is still better than one server for all of it.
                let near = ways.iter().take_while(|way| way.cost <= gathered.cost * 2.0).count();
                for way in ways.iter().take(near.min(TRIES_MAX)) {
                    if let Some(plan) = self.try_scatter(way, why) {
                        return Ok(plan);
                    }
                }
                return Ok(self.gather(gathered, why));
            }
        }
        for way in ways.iter().take(TRIES_MAX) {
            if let Some(plan) = self.try_scatter(way, why) {
                return Ok(plan);
            }
        }
        Err("its parts cannot be brought together".to_owned())
    }

    fn try_scatter(&self, way: &Staging, why: &str) -> Option<Plan> {
        *self.staging.borrow_mut() = way.clone();
        let scattered = self.scatter_select();
        self.staging.take();
        let plan = scattered.ok()?;
        let Tier::Scatter(scatter) = plan.tier else { return None };
        let stage = Stage { parts: way.parts.clone(), rest: Rest::Scatter(scatter) };
        Some(self.plan(Tier::Stage(stage), format!("{why}; {}", plan.reason)))
    }

    fn gather(&self, way: Staging, why: &str) -> Plan {
        *self.staging.borrow_mut() = way;
        let sql = self.worker_edits().apply(self.text());
        let way = self.staging.take();
        let stage = Stage { parts: way.parts, rest: Rest::Coordinator(sql) };
        self.plan(Tier::Stage(stage), format!("{why}; the coordinator runs the rest"))
    }

    /// Columns by which what stays may be joined, each with a table that stays or says where rows belong.
    fn anchors(&self, top: usize) -> Vec<Anchor> {
        let facts = self.analysis.facts(self.analysis.levels[top].env);
        let mut columns: Vec<ColumnId> = Vec::new();
        let mut add = |id: ColumnId| {
            if !columns.iter().any(|c| facts.same(*c, id)) {
                columns.push(id);
            }
        };
        self.analysis.distributed().filter_map(|i| self.analysis.key_of(i)).for_each(&mut add);
        facts.ids().into_iter().for_each(&mut add);
        let mut tables: Vec<Arc<Table>> = Vec::new();
        for index in self.analysis.distributed() {
            let table = self.analysis.instances[index].table;
            if !tables.iter().any(|t| colocated(t, table)) {
                tables.push(table.clone());
            }
        }
        let mut anchors = Vec::new();
        for column in columns {
            for like in &tables {
                if self.hashes_like(column, like) {
                    anchors.push(Anchor { column, like: like.clone() });
                }
            }
        }
        anchors.truncate(CANDIDATES_MAX);
        anchors
    }

    /// Equal values of the column and of the table's key are in one place.
    fn hashes_like(&self, column: ColumnId, like: &Table) -> bool {
        let (Some(column), Some(key)) = (self.analysis.column(column), like.key_column()) else { return false };
        let integers = |oid: u32| matches!(oid, 20 | 21 | 23);
        column.collation == key.collation
            && (column.type_oid == key.type_oid || integers(column.type_oid) && integers(key.type_oid))
    }

    /// Decides for everything at a level and below what stays, what is split and what goes everywhere. Without an
    /// anchor nothing stays.
    fn assign(&self, level: usize, anchor: Option<&Anchor>) -> Result<()> {
        let this = &self.analysis.levels[level];
        for node in &this.from {
            self.assign_node(node, anchor)?;
        }
        if let Some((_, _, left, right)) = this.arms {
            self.assign_arm(left, anchor)?;
            self.assign_arm(right, anchor)?;
        }
        for link in &this.sublinks {
            self.assign_sublink(link.level, anchor)?;
        }
        Ok(())
    }

    fn assign_node(&self, node: &Node, anchor: Option<&Anchor>) -> Result<()> {
        match node {
            Node::Instance(index) => self.assign_instance(*index, anchor),
            Node::Join { left, right, .. } => {
                self.assign_node(left, anchor)?;
                self.assign_node(right, anchor)
            }
            Node::Inline { level } => {
                if !self.has_distributed_in(*level) {
                    return Ok(());
                }
                if anchor.is_none() {
                    return self.assign_gathered(*level);
                }
                let before = self.staging.borrow().clone();
                if self.assign(*level, anchor).is_ok() && self.spread_of_level(*level).is_ok() {
                    return Ok(());
                }
                *self.staging.borrow_mut() = before;
                let split = anchor.and_then(|a| self.output_like(*level, None, a));
                self.stage_level(*level, split, anchor)
            }
            Node::Derived { level, rel } => {
                if !self.has_distributed_in(*level) || self.staging.borrow().level(*level).is_some() {
                    return Ok(());
                }
                if anchor.is_none() {
                    return self.assign_gathered(*level);
                }
                if let Some(anchor) = anchor
                    && let Ok(Spread::Partitioned(keys)) = self.spread_of_level(*level)
                    && self.is_like(*level, anchor)
                {
                    let outputs = self.analysis.levels[*level].outputs.as_deref().unwrap_or(&[]);
                    let facts = self.analysis.facts(self.analysis.levels[*level].env);
                    let outer = |col: usize| {
                        let id = ColumnId { rel: *rel, col };
                        self.top_facts_same(id, anchor.column)
                    };
                    let stays = outputs.iter().enumerate().any(|(col, (_, id))| {
                        id.is_some_and(|id| keys.iter().any(|k| facts.same(id, *k))) && outer(col)
                    });
                    if stays {
                        return Ok(());
                    }
                }
                let split = anchor.and_then(|a| self.output_like(*level, Some(*rel), a));
                self.stage_level(*level, split, anchor)
            }
            Node::Lateral { level } => self.assign_sublink(*level, anchor),
            Node::Constant { .. } => Ok(()),
            Node::Opaque(what) => match anchor {
                Some(_) => Err(format!("{what} is in FROM")),
                None if *what == "a local relation" => Ok(()),
                None => Err(format!("{what} is in FROM")),
            },
        }
    }

    /// An arm of a set operation: as it is where it can stay, else whole.
    fn assign_arm(&self, level: usize, anchor: Option<&Anchor>) -> Result<()> {
        if !self.has_distributed_in(level) {
            return Ok(());
        }
        match anchor {
            Some(anchor) => self.assign(level, Some(anchor)),
            None => self.assign_gathered(level),
        }
    }

    /// A subquery that the coordinator is to see: its result where that is less than what it is made of.
    fn assign_gathered(&self, level: usize) -> Result<()> {
        if self.staging.borrow().level(level).is_some() {
            return Ok(());
        }
        if self.is_plain(level) {
            return self.assign(level, None);
        }
        self.stage_level(level, None, None).or_else(|_| self.assign(level, None))
    }

    fn assign_sublink(&self, level: usize, anchor: Option<&Anchor>) -> Result<()> {
        if !self.has_distributed_in(level) || self.staging.borrow().level(level).is_some() {
            return Ok(());
        }
        if let Some(anchor) = anchor
            && self.check_sublink(level, &Spread::Partitioned(vec![anchor.column])).is_ok()
            && self.is_like(level, anchor)
        {
            return Ok(());
        }
        let before = self.staging.borrow().clone();
        if self.stage_level(level, None, anchor).is_ok() {
            return Ok(());
        }
        *self.staging.borrow_mut() = before;
        self.assign(level, anchor)
    }

    /// All that is distributed in a level and stays there is where the anchor's rows are.
    fn is_like(&self, level: usize, anchor: &Anchor) -> bool {
        let staging = self.staging.borrow();
        let mut inside = self.instances_in(level).into_iter().filter(|i| !staging.has(*i));
        inside.all(|i| {
            let table = self.analysis.instances[i].table;
            table.is_reference() || colocated(table, &anchor.like)
        })
    }

    fn top_facts_same(&self, a: ColumnId, b: ColumnId) -> bool {
        self.top_level().is_some_and(|top| self.analysis.facts(self.analysis.levels[top].env).same(a, b))
    }

    /// The output column of a subquery that equals the anchor, as it is called outside, and its place.
    fn output_like(&self, level: usize, rel: Option<usize>, anchor: &Anchor) -> Option<(ColumnId, usize)> {
        let outputs = self.analysis.levels[level].outputs.as_deref()?;
        outputs.iter().enumerate().find_map(|(col, (_, id))| {
            let id = (*id)?;
            let outer = rel.map_or(id, |rel| ColumnId { rel, col });
            (self.top_facts_same(outer, anchor.column) && self.hashes_like(id, &anchor.like)).then_some((outer, col))
        })
    }

    fn assign_instance(&self, index: usize, anchor: Option<&Anchor>) -> Result<()> {
        let instance = &self.analysis.instances[index];
        if instance.table.is_reference() || self.staging.borrow().has(index) {
            return Ok(());
        }
        let facts = self.analysis.facts(instance.env);
        let mut split = None;
        if let Some(anchor) = anchor {
            if let Some(key) = self.analysis.key_of(index)
                && facts.same(key, anchor.column)
                && colocated(instance.table, &anchor.like)
            {
                return Ok(());
            }
            split = (0..instance.table.columns.len())
                .map(|col| ColumnId { rel: instance.rel, col })
                .find(|id| facts.same(*id, anchor.column) && self.hashes_like(*id, &anchor.like));
        }
        let (sql, columns, share) = self.instance_text(index)?;
        let split_name = split.map(|id| {
            let entry = self.entry_names(index);
            entry.get(id.col).cloned().unwrap_or_default()
        });
        let at = split_name.as_ref().and_then(|name| columns.iter().position(|c| c == name));
        let ship = match (split, at, anchor) {
            (Some(_), Some(column), Some(anchor)) => Ship::Split { column, table: anchor.like.clone() },
            _ => Ship::Everywhere,
        };
        let split = split.filter(|_| matches!(ship, Ship::Split { .. }));
        let rows = self.rows_of(instance.table) * share;
        let width: f64 = columns
            .iter()
            .map(|name| {
                let at = self.entry_names(index).iter().position(|n| n == name);
                at.and_then(|at| instance.table.columns.get(at)).map_or(8.0, |c| width_of(c.type_oid))
            })
            .sum();
        self.add_part(StagePart { sql, ship }, rows, width, anchor.is_some(), |staging, part| {
            staging.instances.insert(index, Staged { part, split });
        });
        Ok(())
    }

    fn add_part(
        &self,
        part: StagePart,
        rows: f64,
        width: f64,
        on_workers: bool,
        place: impl FnOnce(&mut Staging, usize),
    ) {
        let mut staging = self.staging.borrow_mut();
        let copies = match &part.ship {
            Ship::Everywhere if on_workers => self.snapshot.worker_groups().len().max(1) as f64,
            _ => 1.0,
        };
        // Reading them, and writing each copy.
        staging.cost += rows * (1.0 + copies) * (1.0 + width / 32.0);
        staging.bytes += rows * (width + 8.0);
        let number = staging.parts.len();
        staging.parts.push(part);
        place(&mut staging, number);
    }

    /// The subquery's rows come with the statement.
    fn stage_level(&self, level: usize, split: Option<(ColumnId, usize)>, anchor: Option<&Anchor>) -> Result<()> {
        let sql = self.closed_text(level)?;
        let inside = self.instances_in(level);
        let this = &self.analysis.levels[level];
        let mut rows = 0f64;
        for index in &inside {
            let table = self.analysis.instances[*index].table;
            if !table.is_reference() {
                let share = self.instance_text(*index).map_or(1.0, |(_, _, share)| share);
                rows = rows.max(self.rows_of(table) * share);
            }
        }
        let (mut grouped, mut single) = (false, false);
        if let Some(Query { body: Body::Select(select), limit, .. }) = this.query {
            let mut calls = crate::spread::Calls::default();
            select.items.iter().for_each(|i| self.calls_of(&i.expr, &mut calls));
            grouped = !select.group_by.is_empty() || matches!(select.distinct, Distinct::All);
            single = calls.aggregate && select.group_by.is_empty() || limit.is_some();
        }
        rows = if single {
            1.0
        } else if grouped {
            rows / 10.0
        } else {
            rows
        };
        let width = 12.0 * this.outputs.as_ref().map_or(4, Vec::len) as f64;
        let ship = match (split, anchor) {
            (Some((_, column)), Some(anchor)) => Ship::Split { column, table: anchor.like.clone() },
            _ => Ship::Everywhere,
        };
        let split = split.map(|(id, _)| id).filter(|_| matches!(ship, Ship::Split { .. }));
        self.add_part(StagePart { sql, ship }, rows, width, anchor.is_some(), |staging, part| {
            staging.levels.insert(level, Staged { part, split });
            staging.instances.retain(|index, _| !inside.contains(index));
            staging.covered.extend(inside);
        });
        Ok(())
    }

    /// Occurrences in the text of a level's query.
    fn instances_in(&self, level: usize) -> Vec<usize> {
        let Some(query) = self.analysis.levels[level].query else { return Vec::new() };
        if self.top_level() == Some(level) {
            return (0..self.analysis.instances.len()).collect();
        }
        let inside = |i: &usize| query.span.contains(self.analysis.instances[*i].relation.full_span);
        (0..self.analysis.instances.len()).filter(inside).collect()
    }

    /// A distributed table is read there. Through a CTE as well: its query is elsewhere in the text.
    fn has_distributed_in(&self, level: usize) -> bool {
        fn node(context: &Context<'_>, n: &Node) -> bool {
            match n {
                Node::Instance(index) => !context.analysis.instances[*index].table.is_reference(),
                Node::Inline { level } | Node::Derived { level, .. } | Node::Lateral { level } => {
                    context.has_distributed_in(*level)
                }
                Node::Constant { .. } => false,
                Node::Opaque(_) => true,
                Node::Join { left, right, .. } => node(context, left) || node(context, right),
            }
        }
        let this = &self.analysis.levels[level];
        this.from.iter().any(|n| node(self, n))
            || this.sublinks.iter().any(|l| self.has_distributed_in(l.level))
            || this.arms.is_some_and(|(_, _, l, r)| self.has_distributed_in(l) || self.has_distributed_in(r))
    }

    /// Neither grouped nor cut off: as many rows as its tables have.
    fn is_plain(&self, level: usize) -> bool {
        match self.analysis.levels[level].query {
            Some(Query { body: Body::Select(select), limit: None, offset: None, .. }) => {
                let mut calls = crate::spread::Calls::default();
                select.items.iter().for_each(|i| self.calls_of(&i.expr, &mut calls));
                select.group_by.is_empty() && !calls.aggregate && matches!(select.distinct, Distinct::No)
            }
            _ => false,
        }
    }

    /// The text of a subquery that refers to nothing outside of itself but CTEs, which are put in front of it. Names are
    /// looked at roughly: where one is taken for its own wrongly, the coordinator does not find it and says so before
    /// anything is run.
    fn closed_text(&self, level: usize) -> Result<String> {
        let this = &self.analysis.levels[level];
        let query = this.query.ok_or("a data-modifying CTE")?;
        if !query.span.is_known() || query.locking || query.into {
            return Err("a subquery is not found in the text".to_owned());
        }
        let text = query.span.of(self.text());
        let parsed = pgherd_sql::split(text).ok().and_then(|mut list| list.pop()).ok_or("a subquery does not parse")?;
        match &parsed.tree {
            Tree::Query(alone) if alone.is_same_as(query) && !parsed.has_modifying => {}
            _ => return Err("a subquery is not found in the text".to_owned()),
        }
        let prefix = self.ctes_for(&parsed, query)?;
        let alone = Analysis::run(&parsed, self.snapshot, self.session);
        let inner: Vec<_> = alone.scopes.iter().flat_map(|s| &s.entries).collect();
        let mut outer = Vec::new();
        let mut scope = self.analysis.scopes[this.scope].parent;
        while let Some(at) = scope {
            outer.extend(&self.analysis.scopes[at].entries);
            scope = self.analysis.scopes[at].parent;
        }
        let mut correlated = None;
        parsed.tree.walk_all(&mut |_, expr| {
            let ExprKind::Column(path) = &expr.kind else { return };
            let own = match path.as_slice() {
                [name] => {
                    let has = |e: &crate::analysis::Entry| {
                        e.columns.as_ref().is_none_or(|list| list.iter().any(|(column, _)| column == name))
                    };
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
            None => Ok(format!("{prefix}{text}")),
        }
    }

    /// `WITH …` for the statement's own CTEs that a subquery reads.
    fn ctes_for(&self, parsed: &pgherd_sql::Statement, query: &Query) -> Result<String> {
        let with = match &self.statement.tree {
            Tree::Query(top) => top.with.as_ref(),
            _ => None,
        };
        let Some(with) = with else { return Ok(String::new()) };
        let names = |name: &str| parsed.relations.iter().any(|r| r.schema.is_none() && r.name == name);
        let read = with.ctes.iter().rposition(|cte| names(&cte.name));
        // A CTE sees those before it.
        let own = |cte: &Cte| matches!(&cte.tree, Tree::Query(q) if std::ptr::eq(&**q, query));
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
            let mut volatile = false;
            q.walk_all(&mut |_, e| {
                volatile |= matches!(&e.kind, ExprKind::Call(c) if self.snapshot.volatile_functions.contains(&c.name));
            });
            let alone = pgherd_sql::split(q.span.of(self.text())).ok().and_then(|mut list| list.pop());
            let same = alone.is_some_and(|s| matches!(&s.tree, Tree::Query(alone) if alone.is_same_as(q)));
            if volatile || !same {
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

    /// The columns of an occurrence as the statement calls them.
    fn entry_names(&self, index: usize) -> Vec<String> {
        let instance = &self.analysis.instances[index];
        let mut names: Vec<String> = instance.table.columns.iter().map(|c| c.name.clone()).collect();
        if let Some(alias) = &instance.relation.alias {
            for (name, new) in names.iter_mut().zip(&alias.columns) {
                *name = new.clone();
            }
        }
        names
    }

    /// The rows of one occurrence: its text, the names of its columns, and which share of the table they are by estimate.
    fn instance_text(&self, index: usize) -> Result<(String, Vec<String>, f64)> {
        let instance = &self.analysis.instances[index];
        let relation = instance.relation;
        let names = self.entry_names(index);
        let all = relation.alias.as_ref().is_some_and(|a| !a.columns.is_empty());
        let columns = if all { names.clone() } else { self.columns_named(index, names) };
        let alias = quote_ident(relation.reference_name());
        let list: Vec<String> = columns.iter().map(|c| format!("{alias}.{}", quote_ident(c))).collect();
        let renamed = match &relation.alias {
            Some(a) if !a.columns.is_empty() => {
                let list: Vec<String> = a.columns.iter().map(|c| quote_ident(c)).collect();
                format!("({})", list.join(", "))
            }
            _ => String::new(),
        };
        let mut sql = format!("SELECT {} FROM {} AS {alias}{renamed}", list.join(", "), qualified(instance.table));
        let mut share = 1.0;
        for (number, condition) in self.conditions_on(index).into_iter().enumerate() {
            let word = if number == 0 { "WHERE" } else { "AND" };
            let _ = write!(sql, " {word} ({})", condition.span.of(self.text()));
            share *= share_of(condition);
        }
        Ok((sql, columns, share))
    }

    /// Those columns of an occurrence that the statement may mean: every name that is written anywhere counts.
    fn columns_named(&self, index: usize, names: Vec<String>) -> Vec<String> {
        let reference = self.analysis.instances[index].relation.reference_name();
        let mut named: HashSet<&str> = HashSet::new();
        let mut all = false;
        self.statement.tree.walk_all(&mut |_, e| match &e.kind {
            ExprKind::Column(path) => {
                named.extend(path.last().map(String::as_str));
                all |= path.len() == 1 && path.first().is_some_and(|n| n == reference);
            }
            ExprKind::Star(path) => all |= path.last().is_none_or(|n| n == reference),
            _ => {}
        });
        all |= joins(&self.statement.tree, &mut named);
        if all {
            return names;
        }
        let first = names.first().cloned();
        let some: Vec<String> = names.into_iter().filter(|n| named.contains(n.as_str())).collect();
        if some.is_empty() { first.into_iter().collect() } else { some }
    }

    /// Conditions that every row of an occurrence must pass for the level's result, and that concern it alone: those
    /// of WHERE and of inner joins, where no outer join can give its columns as NULL.
    fn conditions_on(&self, index: usize) -> Vec<&Expr> {
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

    fn is_about(&self, condition: &Expr, index: usize, scope: usize) -> bool {
        let rel = self.analysis.instances[index].rel;
        let mut columns = 0;
        let mut fits = condition.span.is_known();
        condition.walk(&mut |e| match &e.kind {
            ExprKind::Column(_) => match self.analysis.resolve_expr(e, scope) {
                crate::analysis::Found::Column(id, true) if id.rel == rel => columns += 1,
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
        fits && columns > 0 && safety::field_reason(condition, self.snapshot).is_none()
    }

    fn rows_of(&self, table: &Table) -> f64 {
        self.session.sizes.get(&table.oid).copied().unwrap_or(ROWS_UNKNOWN).max(1.0)
    }

    /// Tables whose size would say which way is the cheapest.
    pub fn unknown_sizes(&self) -> bool {
        self.tables
            .iter()
            .any(|t| matches!(t.kind, TableKind::Distributed { .. }) && !self.session.sizes.contains_key(&t.oid))
    }
}

/// An occurrence stands in FROM with nothing but inner joins around it.
fn is_inner(node: &Node, index: usize) -> bool {
    match node {
        Node::Instance(found) => *found == index,
        Node::Join { kind: JoinKind::Inner, left, right, .. } => is_inner(left, index) || is_inner(right, index),
        Node::Join { kind: JoinKind::Left, left, .. } => is_inner(left, index),
        Node::Join { kind: JoinKind::Right, right, .. } => is_inner(right, index),
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
        let mut all = this.with.iter().flat_map(|w| &w.ctes).fold(false, |all, cte| joins(&cte.tree, named) || all);
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
fn width_of(type_oid: u32) -> f64 {
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
fn share_of(condition: &Expr) -> f64 {
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
