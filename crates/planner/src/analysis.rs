//! Who is who in a statement: every table occurrence at every query level, which columns are known to be equal, and
//! which distribution columns are pinned to one value.
//!
//! Facts come only from conjuncts that every row of the result has passed: WHERE of the level, ON of inner joins. A
//! fact from the ON of an outer join restricts its nullable side only; a fact from a sublink stays in the sublink; a
//! fact goes into a subquery in FROM only where a filter on its output could be pushed into it. Restricting *any* table
//! of a level by a strict equality of the level's WHERE is sound, also below outer joins: the rows that the restriction
//! adds or removes have a NULL or another value there and fail the filter.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use pgherd_catalog::{Column, Resolved, Snapshot, Table};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Statement, is_own_relation};

use crate::context::{qualified, quote_ident};
use crate::plan::KeyValue;
use crate::{SessionView, literal, safety};

/// A column of a table occurrence or of a derived relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ColumnId {
    pub rel: usize,
    pub col: usize,
}

/// One occurrence of a distributed or reference table.
#[derive(Debug)]
pub(crate) struct Instance<'a> {
    pub table: &'a Arc<Table>,
    pub relation: &'a Relation,
    pub env: usize,
    pub rel: usize,
    pub is_target: bool,
    /// TABLESAMPLE of a distributed table: the clause.
    pub sample: Option<Span>,
}

#[derive(Debug)]
pub(crate) enum RelInfo<'a> {
    Instance(usize),
    /// Output columns of a subquery that are constants or parameters.
    Constants(Vec<&'a Expr>),
    /// Output columns of a derived relation: the level and, per column, what it is there.
    Derived(Vec<Option<ColumnId>>),
}

/// What a FROM item is.
#[derive(Debug)]
pub(crate) enum Node {
    Instance(usize),
    /// A subquery whose columns are the outer level's own (a filter can be pushed into it).
    Inline {
        level: usize,
    },
    /// A subquery or CTE with rows of its own; `rel` has its outputs.
    Derived {
        level: usize,
        rel: usize,
    },
    /// A lateral subquery that no filter can be pushed into: evaluated for each row of what stands before it.
    Lateral {
        level: usize,
    },
    /// A function or VALUES without any relation in it.
    Constant {
        volatile: bool,
    },
    /// A local table, view, or something not looked into.
    Opaque(&'static str),
    Join {
        kind: JoinKind,
        left: Box<Node>,
        right: Box<Node>,
        env: usize,
    },
}

#[derive(Debug, Default)]
struct Env {
    parent: Option<usize>,
    facts: Vec<Fact>,
}

#[derive(Debug)]
enum Fact {
    Equal(ColumnId, ColumnId),
    Pinned(ColumnId, KeyValue),
    /// The outer column is pinned if the inner one is in its own environment.
    Lifted {
        outer: ColumnId,
        env: usize,
        inner: ColumnId,
    },
}

/// Equivalence classes with the constants they are pinned to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Facts {
    parent: HashMap<ColumnId, ColumnId>,
    pinned: HashMap<ColumnId, KeyValue>,
}

impl Facts {
    fn root(&self, mut id: ColumnId) -> ColumnId {
        while let Some(next) = self.parent.get(&id) {
            id = *next;
        }
        id
    }

    fn union(&mut self, a: ColumnId, b: ColumnId) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        self.parent.insert(b, a);
        if let Some(value) = self.pinned.remove(&b) {
            self.pinned.entry(a).or_insert(value);
        }
    }

    pub fn same(&self, a: ColumnId, b: ColumnId) -> bool {
        self.root(a) == self.root(b)
    }

    /// Every column that equals another.
    pub fn ids(&self) -> Vec<ColumnId> {
        let mut ids: Vec<ColumnId> = self.parent.iter().flat_map(|(a, b)| [*a, *b]).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    pub fn pinned(&self, id: ColumnId) -> Option<&KeyValue> {
        self.pinned.get(&self.root(id))
    }
}

/// A sublink of a level.
#[derive(Debug)]
pub(crate) struct SublinkUse {
    pub level: usize,
    pub kind: SublinkKind,
}

#[derive(Debug)]
pub(crate) struct Level<'a> {
    pub env: usize,
    pub from: Vec<Node>,
    pub query: Option<&'a Query>,
    pub scope: usize,
    pub sublinks: Vec<SublinkUse>,
    /// Arms of a set operation.
    pub arms: Option<(SetOp, bool, usize, usize)>,
    /// Output columns: name and what it is.
    pub outputs: Option<Vec<(String, Option<ColumnId>)>>,
}

/// Names at one level.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub parent: Option<usize>,
    pub entries: Vec<Entry>,
    /// A column list of ours cannot tell what `*` gives (USING, NATURAL).
    pub merged_columns: bool,
    /// What the columns merged by USING are equal to in every row.
    merged: Vec<(String, ColumnId)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub name: String,
    /// Schema of a table without an alias.
    pub schema: Option<String>,
    /// Column names with ids; none: not known.
    pub columns: Option<Vec<(String, Option<ColumnId>)>>,
    /// It may have more of them, behind those.
    pub has_more: bool,
    pub is_table: bool,
}

impl Entry {
    /// Of what is no table.
    fn new(name: String, columns: Option<Vec<(String, Option<ColumnId>)>>) -> Entry {
        Entry { name, schema: None, columns, has_more: false, is_table: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A column of a table or derived output; the flag tells whether it is of this level.
    Column(ColumnId, bool),
    /// Some column of a known relation that is nothing in particular (a computed output).
    Computed,
    /// A whole row.
    Row,
    Unknown,
}

pub(crate) struct Analysis<'a> {
    pub snapshot: &'a Snapshot,
    pub session: &'a SessionView<'a>,
    pub instances: Vec<Instance<'a>>,
    pub rels: Vec<RelInfo<'a>>,
    pub levels: Vec<Level<'a>>,
    pub scopes: Vec<Scope>,
    envs: Vec<Env>,
    facts: Vec<Option<Facts>>,
    no_facts: Facts,
    /// A relation that is no distributed or reference table is named.
    pub has_local: bool,
    /// A relation name of ours (`citus_tables`) is named.
    pub has_own: bool,
    /// Data-modifying CTEs.
    pub modifying: Vec<&'a Tree>,
    pub has_parts_unknown: bool,
    /// A full join whose condition PostgreSQL may have no join for, unless conditions around it leave out rows that it
    /// keeps: then it is a left or right join.
    pub has_bound_full_join: bool,
    /// A three-part column name or a whole-row reference: the partition's own name would show.
    pub needs_parent_name: bool,
    /// A system column is named, and not for sure one that says of a distributed table's row which version it is.
    pub has_system_column: bool,
    /// The system columns of our tables, as far as they were looked at where they stand.
    pub system_columns: Vec<SystemColumn<'a>>,
    /// What the conditions of joins see.
    join_scopes: Vec<(&'a Join, usize)>,
    /// Columns that were looked at where they stand, how many of them are whole rows, and the names not found.
    columns_seen: usize,
    whole_rows: usize,
    not_found: Vec<&'a str>,
    /// Subqueries seen under more than one name are analysed once for each.
    ctes: Vec<Vec<CteScope<'a>>>,
}

/// A system column that a statement names.
pub(crate) struct SystemColumn<'a> {
    pub name: &'a str,
    pub span: Span,
    /// Whose it is, by number of the occurrence.
    pub instance: usize,
    /// RETURNING has it as `old` or `new`: which table's, its statement says.
    pub version: Option<&'a str>,
}

#[derive(Clone)]
struct CteScope<'a> {
    name: &'a str,
    columns: &'a [String],
    level: Option<usize>,
}

pub(crate) const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];
/// Those that say where a row is: on each server they mean something else.
const PLACE_COLUMNS: [&str; 2] = ["tableoid", "ctid"];

impl<'a> Analysis<'a> {
    /// The tables that a FROM item is or joins, without those of subqueries.
    pub fn joined(&self, node: &Node) -> Vec<&Instance<'a>> {
        match node {
            Node::Instance(index) => vec![&self.instances[*index]],
            Node::Join { left, right, .. } => [left, right].into_iter().flat_map(|n| self.joined(n)).collect(),
            _ => Vec::new(),
        }
    }

    pub fn new(snapshot: &'a Snapshot, session: &'a SessionView<'a>) -> Self {
        Analysis {
            snapshot,
            session,
            instances: Vec::new(),
            rels: Vec::new(),
            levels: Vec::new(),
            scopes: Vec::new(),
            envs: Vec::new(),
            facts: Vec::new(),
            no_facts: Facts::default(),
            has_local: false,
            has_own: false,
            modifying: Vec::new(),
            has_parts_unknown: false,
            has_bound_full_join: false,
            needs_parent_name: false,
            has_system_column: false,
            system_columns: Vec::new(),
            join_scopes: Vec::new(),
            columns_seen: 0,
            whole_rows: 0,
            not_found: Vec::new(),
            ctes: Vec::new(),
        }
    }

    /// Analyses a whole statement and settles the facts. The first level is the statement's own.
    pub fn run(statement: &'a Statement, snapshot: &'a Snapshot, session: &'a SessionView<'a>) -> Self {
        let mut this = Analysis::new(snapshot, session);
        this.tree(&statement.tree, None, None);
        this.has_parts_unknown |= statement.has_unknown;
        for env in 0..this.envs.len() {
            this.settle(env);
        }
        this.scan_columns(statement);
        this
    }

    pub fn facts(&self, env: usize) -> &Facts {
        self.facts.get(env).and_then(Option::as_ref).unwrap_or(&self.no_facts)
    }

    fn settle(&mut self, env: usize) {
        if self.facts.len() < self.envs.len() {
            self.facts.resize_with(self.envs.len(), || None);
        }
        if self.facts[env].is_some() {
            return;
        }
        // Against a cycle: an environment under work counts as without facts.
        self.facts[env] = Some(Facts::default());
        let mut facts = match self.envs[env].parent {
            Some(parent) => {
                self.settle(parent);
                self.facts(parent).clone()
            }
            None => Facts::default(),
        };
        let list = std::mem::take(&mut self.envs[env].facts);
        for fact in &list {
            match fact {
                Fact::Equal(a, b) => {
                    if self.comparable(*a, *b) {
                        facts.union(*a, *b);
                    }
                }
                Fact::Pinned(id, value) => {
                    let root = facts.root(*id);
                    facts.pinned.entry(root).or_insert_with(|| value.clone());
                }
                Fact::Lifted { outer, env: inner_env, inner } => {
                    self.settle(*inner_env);
                    if let Some(value) = self.facts(*inner_env).pinned(*inner).cloned() {
                        let root = facts.root(*outer);
                        facts.pinned.entry(root).or_insert(value);
                    }
                }
            }
        }
        self.envs[env].facts = list;
        self.facts[env] = Some(facts);
    }

    fn new_env(&mut self, parent: Option<usize>) -> usize {
        self.envs.push(Env { parent, facts: Vec::new() });
        self.envs.len() - 1
    }

    /// Whether any of these, or of what they are made of, is like that.
    pub fn any_node(&self, nodes: &[Node], like: &dyn Fn(&Node) -> bool) -> bool {
        nodes.iter().any(|node| {
            like(node)
                || match node {
                    Node::Join { left, right, .. } => {
                        [left, right].into_iter().any(|side| self.any_node(std::slice::from_ref(side), like))
                    }
                    Node::Inline { level } | Node::Derived { level, .. } | Node::Lateral { level } => {
                        self.any_node(&self.levels[*level].from, like)
                    }
                    Node::Instance(_) | Node::Constant { .. } | Node::Opaque(_) => false,
                }
        })
    }

    /// The table column behind an id.
    pub fn column(&self, id: ColumnId) -> Option<&'a Column> {
        match self.rels.get(id.rel)? {
            RelInfo::Instance(instance) => self.instances.get(*instance)?.table.columns.get(id.col),
            RelInfo::Derived(columns) => self.column((*columns.get(id.col)?)?),
            RelInfo::Constants(_) => None,
        }
    }

    /// The constant behind an id.
    pub fn constant(&self, id: ColumnId) -> Option<&'a Expr> {
        match self.rels.get(id.rel)? {
            RelInfo::Instance(_) => None,
            RelInfo::Derived(columns) => self.constant((*columns.get(id.col)?)?),
            RelInfo::Constants(list) => list.get(id.col).copied(),
        }
    }

    /// The same type and collation: what is done with one may be done with the other.
    pub fn alike(&self, a: ColumnId, b: ColumnId) -> bool {
        match (self.column(a), self.column(b)) {
            (Some(a), Some(b)) => a.type_oid == b.type_oid && a.collation == b.collation,
            _ => false,
        }
    }

    /// Equality of two columns means equal hashes: same type, or both integers, or both text under one collation.
    pub fn comparable(&self, a: ColumnId, b: ColumnId) -> bool {
        match (self.column(a), self.column(b)) {
            (Some(a), Some(b)) => {
                a.collation == b.collation && (a.type_oid == b.type_oid || literal::same_family(a.type_oid, b.type_oid))
            }
            _ => false,
        }
    }

    pub fn key_of(&self, instance: usize) -> Option<ColumnId> {
        let instance = self.instances.get(instance)?;
        match &instance.table.kind {
            pgherd_catalog::TableKind::Distributed { key, .. } => Some(ColumnId { rel: instance.rel, col: *key }),
            pgherd_catalog::TableKind::Reference { .. } => None,
        }
    }

    /// The value that an occurrence's distribution column is pinned to.
    pub fn pin_of(&self, instance: usize) -> Option<&KeyValue> {
        let env = self.instances.get(instance)?.env;
        let key = self.key_of(instance)?;
        self.facts(env).pinned(key).filter(|value| self.column(key).is_none_or(|c| literal::fits(value, c.type_oid)))
    }

    pub fn distributed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.instances.len()).filter(|i| !self.instances[*i].table.is_reference())
    }

    // Statements.

    fn tree(&mut self, tree: &'a Tree, scope: Option<usize>, env: Option<usize>) -> Option<usize> {
        match tree {
            Tree::Query(q) => Some(self.query(q, scope, env)),
            Tree::Insert(i) => {
                self.enter_with(&i.with, scope);
                let env = self.new_env(None);
                let own = self.new_scope(scope);
                let level = self.new_level(env, own, None);
                self.target(&i.target, env, own, level);
                let mut source = None;
                if let InsertSource::Query(q) = &i.source {
                    source = Some(self.query(q, scope, None));
                }
                self.insert_facts(i, env, source);
                let mut exprs: Vec<&'a Expr> = Vec::new();
                if let InsertSource::Values(rows) = &i.source {
                    exprs.extend(rows.iter().flatten());
                }
                if let Some(c) = &i.on_conflict {
                    exprs.extend(c.infer_filter.iter().chain(c.filter.iter()));
                    exprs.extend(c.set.iter().map(|a| &a.value));
                }
                exprs.extend(i.returning.iter().map(|r| &r.expr));
                self.sublinks_of(&exprs, &[], level, own, env);
                self.ctes.pop();
                Some(level)
            }
            Tree::Update(u) => {
                self.enter_with(&u.with, scope);
                let env = self.new_env(None);
                let own = self.new_scope(scope);
                let level = self.new_level(env, own, None);
                self.target(&u.target, env, own, level);
                for item in &u.from {
                    let node = self.table_ref(item, own, env);
                    self.levels[level].from.push(node);
                }
                let mut exprs: Vec<&'a Expr> = u.set.iter().map(|a| &a.value).collect();
                exprs.extend(u.returning.iter().map(|r| &r.expr));
                exprs.extend(u.filter.iter());
                self.conditions(u.filter.as_ref(), own, env);
                let filters: Vec<&'a Expr> = u.filter.iter().collect();
                self.sublinks_of(&exprs, &filters, level, own, env);
                self.join_sublinks(&u.from, level, own, env);
                self.ctes.pop();
                Some(level)
            }
            Tree::Delete(d) => {
                self.enter_with(&d.with, scope);
                let env = self.new_env(None);
                let own = self.new_scope(scope);
                let level = self.new_level(env, own, None);
                self.target(&d.target, env, own, level);
                for item in &d.using {
                    let node = self.table_ref(item, own, env);
                    self.levels[level].from.push(node);
                }
                let mut exprs: Vec<&'a Expr> = d.returning.iter().map(|r| &r.expr).collect();
                exprs.extend(d.filter.iter());
                self.conditions(d.filter.as_ref(), own, env);
                let filters: Vec<&'a Expr> = d.filter.iter().collect();
                self.sublinks_of(&exprs, &filters, level, own, env);
                self.join_sublinks(&d.using, level, own, env);
                self.ctes.pop();
                Some(level)
            }
            Tree::Merge(m) => {
                self.enter_with(&m.with, scope);
                let env = self.new_env(None);
                // Facts of ON restrict the target, but not the source, whose unmatched rows are inserted.
                let target_env = self.new_env(Some(env));
                let own = self.new_scope(scope);
                let level = self.new_level(env, own, None);
                self.target(&m.target, target_env, own, level);
                let node = self.table_ref(&m.source, own, env);
                self.levels[level].from.push(node);
                self.collect(&m.on, own, target_env);
                let mut exprs: Vec<&'a Expr> = vec![&m.on];
                for c in &m.clauses {
                    exprs.extend(c.condition.iter());
                    match &c.action {
                        MergeAction::Update(set) => exprs.extend(set.iter().map(|a| &a.value)),
                        MergeAction::Insert { values, .. } => exprs.extend(values),
                        MergeAction::Nothing | MergeAction::Delete => {}
                    }
                }
                exprs.extend(m.returning.iter().map(|r| &r.expr));
                self.sublinks_of(&exprs, &[], level, own, env);
                self.ctes.pop();
                Some(level)
            }
            Tree::Utility => {
                self.has_parts_unknown = true;
                None
            }
        }
    }

    /// An INSERT whose rows all have one known key writes one shard.
    fn insert_facts(&mut self, insert: &'a Insert, env: usize, source: Option<usize>) {
        let Some(target) = self.instances.iter().position(|i| i.is_target && std::ptr::eq(i.relation, &insert.target))
        else {
            return;
        };
        let (Some(id), Some(key)) = (self.key_of(target), self.instances[target].table.key_column()) else { return };
        let at =
            if insert.columns.is_empty() { Some(id.col) } else { insert.columns.iter().position(|c| c.0 == key.name) };
        let Some(at) = at else { return };
        match (&insert.source, source) {
            (InsertSource::Values(rows), _) => {
                let mut values = rows
                    .iter()
                    .map(|row| row.get(at).and_then(|field| literal::stored_value(field, key, self.snapshot)));
                if let Some(Some(first)) = values.next()
                    && values.all(|v| v.as_ref() == Some(&first))
                {
                    self.envs[env].facts.push(Fact::Pinned(id, first));
                }
            }
            (InsertSource::Query(_), Some(level)) => {
                let output = self.levels[level].outputs.as_ref().and_then(|o| o.get(at)).and_then(|(_, id)| *id);
                // A value that is rounded or cut off where it is stored has another hash.
                let modifier = |id: ColumnId| self.column(id).map(|c| c.typmod);
                let is_stored_so = |o: &ColumnId| self.comparable(*o, id) && modifier(*o) == modifier(id);
                if let Some(inner) = output.filter(is_stored_so) {
                    let inner_env = self.levels[level].env;
                    self.envs[env].facts.push(Fact::Lifted { outer: id, env: inner_env, inner });
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, relation: &'a Relation, env: usize, scope: usize, level: usize) {
        let node = self.relation(relation, scope, env, true);
        self.levels[level].from.push(node);
    }

    fn new_scope(&mut self, parent: Option<usize>) -> usize {
        self.scopes.push(Scope { parent, ..Scope::default() });
        self.scopes.len() - 1
    }

    /// What the condition of a join sees: the items that it joins, and what the whole query does.
    fn scope_of_join(&mut self, scope: usize, items: Range<usize>) -> usize {
        let Scope { parent, entries, merged_columns, merged } = &self.scopes[scope];
        let joined = entries[items].to_vec();
        if joined.len() == entries.len() {
            return scope;
        }
        let is_joined = |id: &ColumnId| {
            joined.iter().flat_map(|e| e.columns.iter().flatten()).any(|(_, column)| column.as_ref() == Some(id))
        };
        let merged = merged.iter().filter(|(_, id)| is_joined(id)).cloned().collect();
        let inside = Scope { parent: *parent, merged_columns: *merged_columns, merged, entries: joined };
        self.scopes.push(inside);
        self.scopes.len() - 1
    }

    fn new_level(&mut self, env: usize, scope: usize, query: Option<&'a Query>) -> usize {
        self.levels.push(Level {
            env,
            from: Vec::new(),
            query,
            scope,
            sublinks: Vec::new(),
            arms: None,
            outputs: None,
        });
        self.levels.len() - 1
    }

    /// Puts the CTEs of a WITH clause in scope; the caller pops them.
    fn enter_with(&mut self, with: &'a Option<With>, scope: Option<usize>) {
        self.ctes.push(Vec::new());
        let Some(with) = with else { return };
        if with.recursive {
            for cte in &with.ctes {
                if let Some(top) = self.ctes.last_mut() {
                    top.push(CteScope { name: &cte.name, columns: &cte.columns, level: None });
                }
            }
        }
        for cte in &with.ctes {
            if !matches!(cte.tree, Tree::Query(_)) {
                self.modifying.push(&cte.tree);
            }
            if cte.search_or_cycle {
                self.has_parts_unknown = true;
            }
            let level = self.tree(&cte.tree, scope, None);
            let level = level.filter(|_| matches!(cte.tree, Tree::Query(_)) && !with.recursive);
            if let Some(top) = self.ctes.last_mut() {
                top.retain(|c| c.name != cte.name);
                top.push(CteScope { name: &cte.name, columns: &cte.columns, level });
            }
        }
    }

    /// `env`: the environment to share (a subquery that can be inlined), or to inherit from (a sublink).
    fn query(&mut self, query: &'a Query, scope: Option<usize>, env: Option<usize>) -> usize {
        let env = env.unwrap_or_else(|| self.new_env(None));
        self.enter_with(&query.with, scope);
        let own = self.new_scope(scope);
        let level = self.new_level(env, own, Some(query));
        match &query.body {
            Body::Select(select) => self.select(select, query, level, own, env),
            Body::Values(rows) => {
                let exprs: Vec<&'a Expr> = rows.iter().flatten().chain(tail_of(query)).collect();
                self.sublinks_of(&exprs, &[], level, own, env);
                let mut outputs: Vec<(String, Option<ColumnId>)> =
                    (1..=rows.first().map_or(0, Vec::len)).map(|i| (format!("column{i}"), None)).collect();
                if let [row] = rows.as_slice() {
                    self.constant_outputs(&row.iter().collect::<Vec<_>>(), &mut outputs);
                }
                self.levels[level].outputs = Some(outputs);
            }
            Body::SetOp { op, all, left, right } => {
                let left_env = self.new_env(Some(env));
                let right_env = self.new_env(Some(env));
                let left = self.query(left, scope, Some(left_env));
                let right = self.query(right, scope, Some(right_env));
                self.levels[level].arms = Some((*op, *all, left, right));
                self.levels[level].outputs = self.levels[left]
                    .outputs
                    .as_ref()
                    .map(|outputs| outputs.iter().map(|(name, _)| (name.clone(), None)).collect());
                let exprs: Vec<&'a Expr> = tail_of(query).collect();
                self.sublinks_of(&exprs, &[], level, own, env);
            }
        }
        self.ctes.pop();
        level
    }

    fn select(&mut self, select: &'a Select, query: &'a Query, level: usize, scope: usize, env: usize) {
        for item in &select.from {
            let node = self.table_ref(item, scope, env);
            self.levels[level].from.push(node);
        }
        self.conditions(select.filter.as_ref(), scope, env);
        let mut exprs: Vec<&'a Expr> = select.items.iter().map(|i| &i.expr).collect();
        if let Distinct::On(list) = &select.distinct {
            exprs.extend(list);
        }
        exprs.extend(select.filter.iter().chain(select.having.iter()));
        exprs.extend(&select.group_by);
        exprs.extend(query.order_by.iter().map(|s| &s.expr));
        exprs.extend(query.limit.iter().chain(query.offset.iter()));
        for window in &select.windows {
            window.for_each_expr(&mut |e| exprs.push(e));
        }
        let filters: Vec<&'a Expr> = select.filter.iter().chain(select.having.iter()).collect();
        self.sublinks_of(&exprs, &filters, level, scope, env);
        // ORDER BY takes names of outputs first.
        let is_output = |e: &Expr| {
            let named =
                |path: &[String]| select.items.iter().any(|i| path.len() == 1 && i.alias.as_ref() == path.first());
            matches!(&e.kind, ExprKind::Column(path) if named(path))
        };
        for sort in query.order_by.iter().filter(|s| is_output(&s.expr)) {
            self.system_columns.retain(|c| c.span != sort.expr.span);
        }
        self.join_sublinks(&select.from, level, scope, env);
        let mut outputs = self.outputs(select, scope);
        // A column is NULL in the sets that it is not grouped by.
        if let (Some(outputs), true) = (&mut outputs, select.grouping_sets) {
            outputs.iter_mut().for_each(|(_, id)| *id = None);
        }
        let plain = !select.grouping_sets && !select.items.iter().any(|i| matches!(i.expr.kind, ExprKind::Star(_)));
        if let (Some(outputs), true) = (&mut outputs, plain) {
            let exprs: Vec<&'a Expr> = select.items.iter().map(|i| &i.expr).collect();
            self.constant_outputs(&exprs, outputs);
        }
        self.levels[level].outputs = outputs;
    }

    /// Gives ids to outputs that are constants, so that an equality with one pins what it is compared with.
    fn constant_outputs(&mut self, exprs: &[&'a Expr], outputs: &mut [(String, Option<ColumnId>)]) {
        let rel = self.rels.len();
        let mut constants = Vec::new();
        for (expr, output) in exprs.iter().zip(outputs.iter_mut()) {
            if output.1.is_none() && literal::is_constant(expr) {
                output.1 = Some(ColumnId { rel, col: constants.len() });
                constants.push(*expr);
            }
        }
        if !constants.is_empty() {
            self.rels.push(RelInfo::Constants(constants));
        }
    }

    /// Output columns of a select list; none where `*` cannot be told.
    pub fn outputs(&self, select: &Select, scope: usize) -> Option<Vec<(String, Option<ColumnId>)>> {
        let mut outputs = Vec::new();
        for item in &select.items {
            match &item.expr.kind {
                ExprKind::Star(path) => outputs.extend(self.expand_star(path, scope)?),
                _ => {
                    let name = item.alias.clone().unwrap_or_else(|| crate::naming::column_name(&item.expr));
                    let id = match self.resolve_expr(&item.expr, scope) {
                        Found::Column(id, true) => Some(id),
                        _ => None,
                    };
                    outputs.push((name, id));
                }
            }
        }
        Some(outputs)
    }

    pub fn expand_star(&self, path: &[String], scope: usize) -> Option<Vec<(String, Option<ColumnId>)>> {
        let scope = self.scopes.get(scope)?;
        match path {
            [] if scope.merged_columns || scope.entries.iter().any(|e| e.has_more) => None,
            [] => {
                let mut all = Vec::new();
                for entry in &scope.entries {
                    all.extend(entry.columns.clone()?);
                }
                Some(all)
            }
            [name] | [_, name] => {
                let mut entries = scope.entries.iter().filter(|e| e.name == *name);
                let entry = entries.next()?;
                if entries.next().is_some() || entry.has_more {
                    return None;
                }
                entry.columns.clone()
            }
            _ => None,
        }
    }

    // FROM.

    fn table_ref(&mut self, item: &'a FromItem, scope: usize, env: usize) -> Node {
        match item {
            FromItem::Relation(relation) => self.relation(relation, scope, env, false),
            FromItem::Join(join) => {
                if join.alias.is_some() {
                    self.has_parts_unknown = true;
                }
                if join.natural || !join.using.is_empty() {
                    self.scopes[scope].merged_columns = true;
                }
                let from_left = self.scopes[scope].entries.len();
                let (left_env, right_env) = match join.kind {
                    JoinKind::Inner => (env, env),
                    JoinKind::Left => (env, self.new_env(Some(env))),
                    JoinKind::Right => (self.new_env(Some(env)), env),
                    JoinKind::Full => (self.new_env(Some(env)), self.new_env(Some(env))),
                };
                let left = self.table_ref(&join.left, scope, left_env);
                let from_right = self.scopes[scope].entries.len();
                let right = self.table_ref(&join.right, scope, right_env);
                let to = self.scopes[scope].entries.len();
                if join.kind == JoinKind::Full && !join.natural && join.using.is_empty() {
                    let equates = |on| self.equates_sides(on, scope, [from_left..from_right, from_right..to]);
                    self.has_bound_full_join |= !join.on.as_ref().is_some_and(equates);
                }
                // Where the join's own condition counts: both sides of an inner join, the nullable side of an outer.
                // Neither side of a full join: only pairs of rows meet it.
                let own_env = match join.kind {
                    JoinKind::Inner => env,
                    JoinKind::Left => right_env,
                    JoinKind::Right => left_env,
                    JoinKind::Full => self.new_env(Some(env)),
                };
                if let Some(on) = &join.on {
                    let inside = self.scope_of_join(scope, from_left..to);
                    self.join_scopes.push((join, inside));
                    self.collect(on, inside, own_env);
                }
                for name in &join.using {
                    let a = self.column_in(scope, from_left, from_right, name);
                    let b = self.column_in(scope, from_right, to, name);
                    // Of two types the column is of neither's side alone.
                    let alike = a.zip(b).is_some_and(|(a, b)| self.alike(a, b));
                    let merged = &mut self.scopes[scope].merged;
                    merged.retain(|(n, id)| n != name || (Some(*id) != a && Some(*id) != b));
                    if let (Some(a), Some(b)) = (a, b) {
                        if alike && join.kind != JoinKind::Full {
                            merged.push((name.clone(), if join.kind == JoinKind::Right { b } else { a }));
                        }
                        self.envs[own_env].facts.push(Fact::Equal(a, b));
                    }
                }
                Node::Join { kind: join.kind, left: Box::new(left), right: Box::new(right), env: own_env }
            }
            FromItem::Subquery { query, lateral, alias } => {
                let outer = if *lateral { Some(scope) } else { self.scopes[scope].parent };
                let inline = self.can_push_into(query);
                let name = alias.as_ref().map_or(String::new(), |a| a.name.clone());
                // A lateral subquery is evaluated for rows of its siblings: it knows what they know, as a sublink does.
                let own = if inline {
                    Some(env)
                } else if *lateral {
                    Some(self.new_env(Some(env)))
                } else {
                    None
                };
                let level = self.query(query, outer, own);
                let mut columns = self.levels[level].outputs.clone();
                rename(&mut columns, alias.as_ref());
                if inline {
                    self.scopes[scope].entries.push(Entry::new(name, columns));
                    Node::Inline { level }
                } else {
                    if *lateral {
                        // Its facts depend on ours: none are taken from it.
                        columns.iter_mut().flatten().for_each(|(_, id)| *id = None);
                        self.scopes[scope].entries.push(Entry::new(name, columns));
                        return Node::Lateral { level };
                    }
                    let rel = self.derived(level, env, &mut columns);
                    self.scopes[scope].entries.push(Entry::new(name, columns));
                    Node::Derived { level, rel }
                }
            }
            FromItem::Function { calls, alias, column_definitions, ordinality, .. } => {
                let mut volatile = *column_definitions;
                for call in calls {
                    call.walk(&mut |e| {
                        if let ExprKind::Call(c) = &e.kind {
                            volatile |= self.snapshot.volatile_functions.contains(&c.name);
                        }
                        volatile |= matches!(e.kind, ExprKind::Sublink(_));
                    });
                }
                let name = match (alias, calls.as_slice()) {
                    (Some(alias), _) => alias.name.clone(),
                    (None, [Expr { kind: ExprKind::Call(call), .. }]) => call.name.clone(),
                    _ => String::new(),
                };
                // One scalar column has the alias's name; what a function returns is not known here otherwise.
                let columns = match alias {
                    Some(alias) if !alias.columns.is_empty() => {
                        Some(alias.columns.iter().map(|c| (c.clone(), None)).collect())
                    }
                    _ if !ordinality && is_scalar_set(calls) => Some(vec![(name.clone(), None)]),
                    _ => None,
                };
                let has_more = *ordinality || !is_scalar_set(calls);
                self.scopes[scope].entries.push(Entry { has_more, ..Entry::new(name, columns) });
                Node::Constant { volatile }
            }
            FromItem::Sample { relation, clause, .. } => {
                let first = self.instances.len();
                let node = self.table_ref(relation, scope, env);
                match self.instances.get_mut(first) {
                    Some(instance) if !instance.table.is_reference() && clause.is_known() => {
                        instance.sample = Some(*clause);
                    }
                    // Every worker would draw its own from its copy.
                    _ => self.has_parts_unknown = true,
                }
                node
            }
            FromItem::Other(what) => {
                self.has_parts_unknown = true;
                self.scopes[scope].entries.push(Entry::new(String::new(), None));
                Node::Opaque(what)
            }
        }
    }

    /// A relation for the outputs of a level with an environment of its own.
    fn derived(&mut self, level: usize, env: usize, columns: &mut Option<Vec<(String, Option<ColumnId>)>>) -> usize {
        let rel = self.rels.len();
        let outputs: Vec<Option<ColumnId>> =
            self.levels[level].outputs.as_ref().map_or(Vec::new(), |o| o.iter().map(|(_, id)| *id).collect());
        let inner_env = self.levels[level].env;
        for (col, id) in outputs.iter().enumerate() {
            let outer = ColumnId { rel, col };
            if let Some(inner) = id {
                self.envs[env].facts.push(Fact::Lifted { outer, env: inner_env, inner: *inner });
            }
            if let Some(list) = columns
                && let Some(column) = list.get_mut(col)
            {
                column.1 = id.map(|_| outer);
            }
        }
        self.rels.push(RelInfo::Derived(outputs));
        rel
    }

    fn relation(&mut self, relation: &'a Relation, scope: usize, env: usize, is_target: bool) -> Node {
        let name = relation.reference_name().to_owned();
        if relation.schema.is_none() && !is_target {
            let cte = self.ctes.iter().rev().flat_map(|list| list.iter().rev()).find(|c| c.name == relation.name);
            if let Some(cte) = cte.cloned() {
                let Some(level) = cte.level else {
                    self.scopes[scope].entries.push(Entry::new(name, None));
                    return Node::Opaque("a recursive or data-modifying CTE");
                };
                let mut columns = self.levels[level].outputs.clone();
                if let Some(columns) = &mut columns {
                    for (column, new) in columns.iter_mut().zip(cte.columns) {
                        column.0 = new.clone();
                    }
                }
                let rel = self.derived(level, env, &mut columns);
                rename(&mut columns, relation.alias.as_ref());
                self.scopes[scope].entries.push(Entry::new(name, columns));
                return Node::Derived { level, rel };
            }
        }
        let Some(table) = resolve(self.snapshot, self.session, relation) else {
            if is_own_relation(&relation.name) {
                self.has_own = true;
            }
            self.has_local = true;
            self.scopes[scope].entries.push(Entry::new(name, None));
            return Node::Opaque("a local relation");
        };
        let rel = self.rels.len();
        let instance = self.instances.len();
        self.rels.push(RelInfo::Instance(instance));
        self.instances.push(Instance { table, relation, env, rel, is_target, sample: None });
        let mut columns: Option<Vec<(String, Option<ColumnId>)>> = Some(
            table.columns.iter().enumerate().map(|(col, c)| (c.name.clone(), Some(ColumnId { rel, col }))).collect(),
        );
        rename(&mut columns, relation.alias.as_ref());
        let schema = relation.alias.is_none().then(|| table.schema.clone());
        self.scopes[scope].entries.push(Entry { name, schema, columns, has_more: false, is_table: true });
        Node::Instance(instance)
    }

    /// A filter on the output of this subquery could as well be applied inside.
    fn can_push_into(&self, query: &Query) -> bool {
        if query.with.is_some() || query.limit.is_some() || query.offset.is_some() || query.locks_rows() {
            return false;
        }
        let Body::Select(select) = &query.body else { return false };
        if matches!(select.distinct, Distinct::On(_)) || select.grouping_sets || !select.windows.is_empty() {
            return false;
        }
        let mut aggregates = select.having.is_some();
        let mut ok = true;
        for item in &select.items {
            item.expr.walk(&mut |e| {
                if let ExprKind::Call(call) = &e.kind {
                    ok &= call.over.is_none()
                        && !self.snapshot.set_returning_functions.contains(&call.name)
                        && !self.snapshot.volatile_functions.contains(&call.name);
                    aggregates |= self.is_aggregate(call);
                }
            });
        }
        ok && (!aggregates || !select.group_by.is_empty())
    }

    pub fn is_aggregate(&self, call: &Call) -> bool {
        call.over.is_none()
            && (call.star
                || call.distinct
                || call.filter.is_some()
                || call.within_group
                || !call.order_by.is_empty()
                || self.snapshot.aggregates.contains(&call.name))
    }

    // Facts.

    fn conditions(&mut self, filter: Option<&'a Expr>, scope: usize, env: usize) {
        if let Some(filter) = filter {
            self.collect(filter, scope, env);
        }
    }

    /// Facts of a condition that holds.
    fn collect(&mut self, condition: &'a Expr, scope: usize, env: usize) {
        for conjunct in condition.conjuncts() {
            let ExprKind::Op(op) = &conjunct.kind else { continue };
            let (Some(left), Some(right)) = (&op.left, &op.right) else { continue };
            if op.name != "="
                || op.schema.as_deref().is_some_and(|s| s != "pg_catalog")
                || safety::Names::new(self.snapshot, self.session).is_users(&self.snapshot.user_operators, None, "=")
            {
                continue;
            }
            match op.kind {
                OpKind::Plain => self.equality(left, right, scope, env),
                OpKind::In => {
                    if let ExprKind::List(list) = &right.kind
                        && let [one] = list.as_slice()
                    {
                        self.equality(left, one, scope, env);
                    }
                }
                OpKind::Any => {
                    let column = match self.resolve_expr(left, scope) {
                        Found::Column(id, _) => self.column(id),
                        _ => None,
                    };
                    let one = match &right.kind {
                        ExprKind::Array(list) => list.as_slice(),
                        // What the cast makes of a column's value may be another one.
                        _ => column
                            .and_then(|c| literal::elements(right, c, self.snapshot))
                            .filter(|list| list.iter().all(literal::is_constant))
                            .unwrap_or_default(),
                    };
                    if let [one] = one {
                        self.equality(left, one, scope, env);
                    }
                }
                _ => {}
            }
        }
    }

    fn equality(&mut self, left: &'a Expr, right: &'a Expr, scope: usize, env: usize) {
        if let (ExprKind::Row(a), ExprKind::Row(b)) = (&left.kind, &right.kind) {
            if a.len() == b.len() {
                for (a, b) in a.iter().zip(b) {
                    self.equality(a, b, scope, env);
                }
            }
            return;
        }
        let ids = (self.resolve_expr(left, scope), self.resolve_expr(right, scope));
        match ids {
            (Found::Column(a, _), Found::Column(b, _)) => match (self.constant(a), self.constant(b)) {
                (None, None) => self.envs[env].facts.push(Fact::Equal(a, b)),
                (None, Some(value)) => self.pin_to_output(a, value, env),
                (Some(value), None) => self.pin_to_output(b, value, env),
                (Some(_), Some(_)) => {}
            },
            (Found::Column(id, _), _) => self.pin(id, right, env),
            (_, Found::Column(id, _)) => self.pin(id, left, env),
            _ => {}
        }
    }

    fn pin(&mut self, id: ColumnId, value: &Expr, env: usize) {
        let Some(column) = self.column(id) else { return };
        if let Some(value) = literal::key_value(value, column, self.snapshot) {
            self.envs[env].facts.push(Fact::Pinned(id, value));
        }
    }

    /// A subquery has settled the type of its constant: an untyped literal or parameter is text there.
    fn pin_to_output(&mut self, id: ColumnId, value: &Expr, env: usize) {
        let Some(column) = self.column(id) else { return };
        let untyped = matches!(value.kind, ExprKind::Param(_) | ExprKind::Const(Const::String(_)));
        if !untyped || literal::is_text(column.type_oid) {
            self.pin(id, value, env);
        }
    }

    /// The condition of a join compares what only one side has with what only the other has, so that it can be hashed;
    /// or it is a constant.
    fn equates_sides(&self, on: &Expr, scope: usize, sides: [Range<usize>; 2]) -> bool {
        let [left, right] = sides;
        let is_of = |expr: &Expr, side: &Range<usize>| {
            let entries = &self.scopes[scope].entries[side.clone()];
            let (mut own, mut columns) = (true, 0);
            expr.walk(&mut |e| match &e.kind {
                ExprKind::Column(path) => {
                    columns += 1;
                    own &= match path.as_slice() {
                        [name] => self.column_in(scope, side.start, side.end, name).is_some(),
                        [.., qualifier, _] => entries.iter().any(|e| e.name == *qualifier),
                        [] => false,
                    };
                }
                ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Cast { .. } | ExprKind::Op(_) => {}
                _ => own = false,
            });
            own && columns > 0
        };
        let conjuncts = on.conjuncts();
        let equates = |conjunct: &&Expr| match &conjunct.kind {
            ExprKind::Op(op) if op.name == "=" && op.kind == OpKind::Plain => match (&op.left, &op.right) {
                (Some(a), Some(b)) => is_of(a, &left) && is_of(b, &right) || is_of(a, &right) && is_of(b, &left),
                _ => false,
            },
            _ => false,
        };
        conjuncts.iter().any(equates) || conjuncts.iter().all(|c| matches!(c.kind, ExprKind::Const(_)))
    }

    pub fn column_in(&self, scope: usize, from: usize, to: usize, name: &str) -> Option<ColumnId> {
        let entries = self.scopes.get(scope)?.entries.get(from..to)?;
        // A column that a join in this range has merged already.
        let within = |id: &ColumnId| {
            entries.iter().flat_map(|e| e.columns.iter().flatten()).any(|(_, c)| c.as_ref() == Some(id))
        };
        if let Some((_, id)) = self.scopes.get(scope)?.merged.iter().find(|(n, id)| n == name && within(id)) {
            return Some(*id);
        }
        let mut found = None;
        for entry in entries {
            for (column, id) in entry.columns.as_ref()? {
                if column == name {
                    if found.is_some() {
                        return None;
                    }
                    found = Some((*id)?);
                }
            }
        }
        found
    }

    // Sublinks.

    fn join_sublinks(&mut self, from: &'a [FromItem], level: usize, scope: usize, env: usize) {
        fn conditions<'b>(item: &'b FromItem, out: &mut Vec<(Option<&'b Join>, &'b Expr)>) {
            match item {
                FromItem::Join(join) => {
                    conditions(&join.left, out);
                    conditions(&join.right, out);
                    out.extend(join.on.iter().map(|on| (Some(&**join), on)));
                }
                FromItem::Function { calls, .. } => out.extend(calls.iter().map(|call| (None, call))),
                FromItem::Sample { args, .. } => out.extend(args.iter().map(|arg| (None, arg))),
                _ => {}
            }
        }
        let mut exprs = Vec::new();
        from.iter().for_each(|item| conditions(item, &mut exprs));
        for (join, expr) in exprs {
            // A condition knows the two sides of its join, and nothing beside it.
            let of_join = |join: &'a Join| self.join_scopes.iter().find(|(of, _)| std::ptr::eq(*of, join));
            let inside = join.and_then(of_join).map_or(scope, |(_, inside)| *inside);
            self.sublinks_of(&[expr], &[expr], level, inside, env);
        }
    }

    /// `filters`: those of `exprs` whose rows count only where they are true (WHERE, ON, HAVING).
    fn sublinks_of(&mut self, exprs: &[&'a Expr], filters: &[&'a Expr], level: usize, scope: usize, env: usize) {
        for expr in exprs {
            let mut columns: Vec<(&'a [String], Span)> = Vec::new();
            expr.walk(&mut |e| {
                if let ExprKind::Column(path) = &e.kind {
                    columns.push((path, e.span));
                }
            });
            self.columns_seen += columns.len();
            for (path, span) in columns {
                if let Some(name) = path.last().filter(|name| SYSTEM_COLUMNS.contains(&name.as_str()))
                    && let Some((instance, version)) = self.owner_of_system_column(path, scope)
                {
                    self.system_columns.retain(|c| c.span != span);
                    self.system_columns.push(SystemColumn { name, span, instance, version });
                }
                let [name] = path else { continue };
                match self.resolve_column(path, scope) {
                    Found::Row => self.whole_rows += 1,
                    Found::Unknown => self.not_found.push(name),
                    Found::Column(..) | Found::Computed => {}
                }
            }
            let mut links: Vec<(&'a Sublink, bool)> = Vec::new();
            let is_filter = filters.iter().any(|f| std::ptr::eq(*f, *expr));
            let conjuncts = if is_filter { expr.conjuncts() } else { Vec::new() };
            expr.walk(&mut |e| {
                if let ExprKind::Sublink(link) = &e.kind {
                    links.push((link, conjuncts.iter().any(|c| std::ptr::eq(*c, e))));
                }
            });
            for (link, is_conjunct) in links {
                let own = self.new_env(Some(env));
                let inner = self.query(&link.query, Some(scope), Some(own));
                // `a IN (SELECT b …)` as a whole condition is EXISTS (… AND b = a), as far as true and not true go.
                let equals = link.op.as_deref().is_none_or(|op| op == "=");
                if is_conjunct && link.kind == SublinkKind::Any && equals && self.levels[inner].arms.is_none() {
                    let test = link.test.as_ref().map(|t| self.resolve_expr(t, scope));
                    let output = self.levels[inner].outputs.as_ref().and_then(|o| o.first()).and_then(|(_, id)| *id);
                    let pushable = self.can_push_into(&link.query);
                    if let (Some(Found::Column(a, _)), Some(b), true) = (test, output, pushable) {
                        self.envs[own].facts.push(Fact::Equal(a, b));
                    }
                }
                self.levels[level].sublinks.push(SublinkUse { level: inner, kind: link.kind });
            }
        }
    }

    // Names.

    pub fn resolve_expr(&self, expr: &Expr, scope: usize) -> Found {
        match &expr.kind {
            ExprKind::Column(path) => self.resolve_column(path, scope),
            _ => Found::Unknown,
        }
    }

    pub fn resolve_column(&self, path: &[String], scope: usize) -> Found {
        let own = self.scopes.get(scope).and_then(|own| lookup(own, path, true));
        let found = own.or_else(|| self.around(scope).find_map(|outer| lookup(outer, path, false)));
        found.unwrap_or(Found::Unknown)
    }

    /// Which of our tables a system column is one of, and as which version of a row RETURNING has it; none: it is
    /// another relation's, or an ordinary column.
    fn owner_of_system_column<'p>(&self, path: &'p [String], scope: usize) -> Option<(usize, Option<&'p str>)> {
        if matches!(self.resolve_column(path, scope), Found::Column(..) | Found::Computed) {
            return None;
        }
        let qualifier = path.len().checked_sub(2).and_then(|at| path.get(at));
        let fits = |entry: &&Entry| match qualifier {
            Some(qualifier) => entry.name == *qualifier,
            None => entry.is_table,
        };
        let own = self.scopes.get(scope).and_then(|own| own.entries.iter().find(fits));
        let Some(entry) = own.or_else(|| self.around(scope).find_map(|outer| outer.entries.iter().find(fits))) else {
            // What RETURNING calls the row before and after.
            let qualifier = qualifier.filter(|qualifier| matches!(qualifier.as_str(), "old" | "new"))?;
            let target = self.instances.iter().position(|instance| instance.is_target)?;
            return Some((target, Some(qualifier.as_str())));
        };
        let (_, id) = entry.columns.as_ref().filter(|_| entry.is_table)?.first()?;
        match self.rels.get((*id)?.rel)? {
            RelInfo::Instance(instance) => Some((*instance, None)),
            RelInfo::Constants(_) | RelInfo::Derived(_) => None,
        }
    }

    /// `tableoid` on the coordinator is the foreign child's: puts a function around it that tells the table. `start`:
    /// where the statement stands in the text that is edited.
    pub fn name_tables(&self, statement: &Statement, start: usize, edits: &mut Edits) {
        let text = &statement.text;
        // Of rows that have been updated the executor says where they came from; one that went to another partition
        // says so by its values.
        let trees = self.modifying.iter().copied().chain([&statement.tree]);
        let updates: Vec<(&Relation, Span)> = trees
            .filter_map(|tree| match tree {
                Tree::Update(update) => Some((&update.target, update.clauses?.returning?)),
                _ => None,
            })
            .collect();
        for column in self.system_columns.iter().filter(|c| c.name == "tableoid" && c.span.is_known()) {
            let named = &self.instances[column.instance];
            // What RETURNING calls old and new, its own UPDATE says. (What a common table expression returns may reach
            // to the end of the text.)
            let within = updates.iter().filter(|(_, returning)| returning.contains(column.span));
            let own = within.clone().max_by_key(|(_, returning)| returning.start);
            let target = own.and_then(|(target, _)| self.instances.iter().find(|i| std::ptr::eq(i.relation, *target)));
            let instance = if column.version.is_some() { target.unwrap_or(named) } else { named };
            let is_changed = within.clone().any(|(target, _)| std::ptr::eq(instance.relation, *target));
            if instance.table.is_reference() || self.session.callback {
                continue;
            }
            let written = column.span.of(text);
            let (qualifier, is_old) = match written.rsplit_once('.') {
                Some((qualifier, _)) => (qualifier.trim().to_owned(), column.version == Some("old")),
                None => (quote_ident(instance.relation.reference_name()), false),
            };
            let is_moved = !is_old && instance.table.is_partitioned && is_changed;
            let row = match is_moved {
                true => {
                    // (Its whole row would be the old one.)
                    let columns =
                        instance.table.columns.iter().map(|c| format!("{qualifier}.{}", quote_ident(&c.name)));
                    let columns = columns.collect::<Vec<_>>().join(", ");
                    format!(", ROW({columns})::{}", qualified(instance.table))
                }
                false => String::new(),
            };
            let there = Span::new(start + column.span.start, start + column.span.end);
            edits.replace(there, format!("pgherd.tableoid({written}{row})"));
        }
    }

    /// One that says which version of a distributed table's row this is: a worker's own is as good as any.
    pub fn is_version(&self, column: &SystemColumn<'_>) -> bool {
        !PLACE_COLUMNS.contains(&column.name) && !self.instances[column.instance].table.is_reference()
    }

    /// The scopes around one, from the inside.
    pub fn around(&self, scope: usize) -> impl Iterator<Item = &Scope> {
        let parent = |scope: &&Scope| self.scopes.get(scope.parent?);
        std::iter::successors(self.scopes.get(scope), parent).skip(1)
    }

    /// Looks for column names that show which physical table a row is in.
    fn scan_columns(&mut self, statement: &'a Statement) {
        let (mut parent, mut system) = (false, HashSet::new());
        let names: HashSet<&str> =
            self.scopes.iter().flat_map(|s| &s.entries).filter(|e| e.is_table).map(|e| e.name.as_str()).collect();
        let columns: HashSet<&str> =
            self.instances.iter().flat_map(|i| i.table.columns.iter()).map(|c| c.name.as_str()).collect();
        let may_be_row = |name: &str| names.contains(name) && !columns.contains(name);
        let (mut count, mut by_name) = (0, false);
        statement.tree.walk_all(&mut |_, expr| match &expr.kind {
            ExprKind::Column(path) => {
                count += 1;
                if path.len() > 2 {
                    parent = true;
                }
                if let [name] = path.as_slice() {
                    by_name |= may_be_row(name);
                }
                if path.last().is_some_and(|last| SYSTEM_COLUMNS.contains(&last.as_str())) {
                    system.insert(expr.span.start);
                }
            }
            ExprKind::Star(path) if path.len() > 1 => parent = true,
            ExprKind::Call(call) => {
                // `f(t.*)` is a whole row.
                parent |= call.args.iter().any(|a| matches!(a.kind, ExprKind::Star(_)));
            }
            _ => {}
        });
        // Where each was looked at in its place that is what counts.
        parent |= self.whole_rows > 0
            || match self.columns_seen == count {
                true => self.not_found.iter().any(|name| may_be_row(name)),
                false => by_name,
            };
        self.needs_parent_name = parent;
        for column in self.system_columns.iter().filter(|c| self.is_version(c)) {
            system.remove(&column.span.start);
        }
        self.has_system_column = !system.is_empty();
    }
}

/// What stands behind the body of a query.
fn tail_of(query: &Query) -> impl Iterator<Item = &Expr> {
    query.order_by.iter().map(|s| &s.expr).chain(&query.limit).chain(&query.offset)
}

/// A call of a built-in function that returns a set of one scalar column.
fn is_scalar_set(calls: &[Expr]) -> bool {
    match calls {
        [Expr { kind: ExprKind::Call(call), .. }] => {
            call.args.len() <= 4
                && matches!(
                    call.name.as_str(),
                    "generate_series" | "generate_subscripts" | "regexp_split_to_table" | "string_to_table"
                )
        }
        _ => false,
    }
}

pub(crate) fn lookup(scope: &Scope, path: &[String], own: bool) -> Option<Found> {
    let as_found = |id: &Option<ColumnId>| id.map_or(Found::Computed, |id| Found::Column(id, own));
    match path {
        [name] => {
            let mut merged = scope.merged.iter().filter(|(n, _)| n == name);
            match (merged.next(), merged.next()) {
                (Some((_, id)), None) => return Some(Found::Column(*id, own)),
                (Some(_), Some(_)) => return Some(Found::Unknown),
                _ => {}
            }
            let mut found = None;
            let mut opaque = false;
            for entry in &scope.entries {
                match &entry.columns {
                    None => opaque = true,
                    Some(columns) => {
                        for (column, id) in columns {
                            if column == name {
                                // Two of one name: ambiguous, or merged by USING.
                                if found.is_some() {
                                    return Some(Found::Unknown);
                                }
                                found = Some(as_found(id));
                            }
                        }
                    }
                }
            }
            if opaque || found.is_none() && scope.entries.iter().any(|e| e.has_more) {
                return Some(Found::Unknown);
            }
            if found.is_none() && scope.entries.iter().any(|e| e.name == *name) {
                return Some(Found::Row);
            }
            found
        }
        [qualifier, name] | [_, qualifier, name] => {
            let schema = if let [schema, _, _] = path { Some(schema) } else { None };
            let mut entries = scope
                .entries
                .iter()
                .filter(|e| e.name == *qualifier && schema.is_none_or(|s| e.schema.as_ref() == Some(s)));
            let entry = entries.next()?;
            if entries.next().is_some() {
                return Some(Found::Unknown);
            }
            let Some(columns) = &entry.columns else { return Some(Found::Unknown) };
            let mut matching = columns.iter().filter(|(column, _)| column == name);
            match (matching.next(), matching.next()) {
                (Some((_, id)), None) => Some(as_found(id)),
                _ => Some(Found::Unknown),
            }
        }
        _ => Some(Found::Unknown),
    }
}

fn rename(columns: &mut Option<Vec<(String, Option<ColumnId>)>>, alias: Option<&Alias>) {
    if let (Some(columns), Some(alias)) = (columns, alias) {
        for (column, new) in columns.iter_mut().zip(&alias.columns) {
            column.0 = new.clone();
        }
    }
}

/// The distributed or reference table that a name means, if it is one.
pub(crate) fn resolve<'a>(
    snapshot: &'a Snapshot,
    session: &SessionView<'_>,
    relation: &Relation,
) -> Option<&'a Arc<Table>> {
    resolve_name(snapshot, session, relation.schema.as_deref(), &relation.name)
}

pub(crate) fn resolve_name<'a>(
    snapshot: &'a Snapshot,
    session: &SessionView<'_>,
    schema: Option<&str>,
    name: &str,
) -> Option<&'a Arc<Table>> {
    if schema.is_none() && session.temp_relations.contains(name) {
        return None;
    }
    match snapshot.resolve(schema, name, session.search_path) {
        Resolved::Table(table) => Some(table),
        Resolved::Other => None,
    }
}
