//! SELECT over tables that the workers cannot join where they are: some parts are run first, and their rows go to the
//! workers with the rest of the statement (whole to each, or split by the column on which they meet the key of what
//! stays), or everything that is distributed goes to the coordinator, which runs the rest.
//!
//! A part is an occurrence of a table, with the columns that the statement names and the conditions that concern it
//! alone, or a whole subquery that refers to nothing outside of itself. What is left must pass the same proofs as any
//! scatter, with a part counted as a table that every worker has, or that is distributed by the column it is split by.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pgherd_catalog::{Table, TableKind};
use pgherd_sql::ast::*;

use crate::analysis::{ColumnId, Node};
use crate::context::{Context, colocated, quote_ident};
use crate::decorrelate::{Asked, Joined, KEYS};
use crate::parts::{InstanceText, REDUCED_FROM, REDUCED_TO, REDUCER_MAX, Source, is_inner, width_of};
use crate::plan::*;
use crate::reduce::Reducing;
use crate::spread::Spread;

/// What a table holds where nobody has counted: rows.
const ROWS_UNKNOWN: f64 = 10_000.0;
/// What one server may be sent for one statement, by estimate: bytes.
const BYTES_MAX: f64 = 256e6;
/// An occurrence that stays is asked for its keys before, where parts have at least so many rows,
const PROBED_FROM: f64 = 100_000.0;
/// and that spares as many of them, beside its own.
const PROBED_FOR: f64 = 50_000.0;
/// Where a subquery in a condition reads so many rows, the groups of it that outer rows ask for are found out before,
const ASKED_FROM: f64 = 20_000.0;
/// if they are at most this share of those.
const ASKED_TO: f64 = 0.01;
/// What it takes to run a part at all before the rest, in rows sent.
const PART_COST: f64 = 10_000.0;
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
    /// Which of a subquery's columns that is: under each name that it has in FROM it is another one.
    pub column: Option<usize>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Staging {
    instances: HashMap<usize, Staged>,
    levels: HashMap<usize, Staged>,
    /// Those of the subqueries that are joined instead.
    joined: HashMap<usize, Joined>,
    /// Occurrences inside of staged subqueries.
    covered: HashSet<usize>,
    parts: Vec<StagePart>,
    pieces: Vec<Piece>,
    /// What it takes, in rows sent.
    cost: f64,
    bytes: f64,
}

/// What is known of a part beside its text.
#[derive(Debug, Clone)]
struct Piece {
    source: Source,
    /// An occurrence's text, which other parts may reduce.
    text: Option<InstanceText>,
    rows: f64,
    /// Bytes of one.
    width: f64,
    /// What one takes.
    cost: f64,
    /// The rest does not read it: it only says which rows of others matter.
    probe: bool,
    /// A part that is run before this one, which reads it alone ([`KEYS`]): its text, rows and bytes of one.
    keys: Option<Box<(String, f64, f64)>>,
}

impl Piece {
    fn new(source: Source, rows: f64, width: f64) -> Piece {
        Piece { source, text: None, rows, width: width + 8.0, cost: 1.0 + width / 32.0, probe: false, keys: None }
    }
}

impl Staging {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn len(&self) -> usize {
        self.parts.len()
    }

    pub fn into_parts(self) -> Vec<StagePart> {
        self.parts
    }

    pub fn instance(&self, instance: usize) -> Option<Staged> {
        self.instances.get(&instance).copied()
    }

    pub fn level(&self, level: usize) -> Option<Staged> {
        self.levels.get(&level).copied()
    }

    /// How a subquery is joined; none: its rows stand in its place.
    pub fn joined(&self, level: usize) -> Option<&Joined> {
        self.joined.get(&level)
    }

    /// Not where its table is: it comes with the statement.
    pub fn has(&self, instance: usize) -> bool {
        self.instances.contains_key(&instance) || self.covered.contains(&instance)
    }

    /// A table whose placements say which workers take part, where every occurrence is staged.
    pub fn placement(&self) -> Option<Arc<Table>> {
        self.parts.iter().find_map(|part| match &part.ship {
            Ship::Split { table, .. } | Ship::SplitByLast { table, .. } => Some(table.clone()),
            Ship::Everywhere | Ship::ByPlace { .. } => None,
        })
    }
}

impl Staged {
    /// What stands for its rows in the text.
    pub fn marker(self) -> String {
        format!("{{{{stage {}}}}}", self.part + 1)
    }

    pub fn part(self) -> usize {
        self.part
    }
}

/// What stays where it is: the tables that are colocated with `like`, on the column that all of them are joined by.
struct Anchor {
    column: ColumnId,
    like: Arc<Table>,
}

/// The largest of some estimates.
fn most(rows: impl Iterator<Item = f64>) -> f64 {
    rows.fold(0.0, f64::max)
}

impl Context<'_> {
    /// `why`: what keeps the statement from being scattered as it is.
    pub fn stage_select(&self, why: &str) -> Result<Plan> {
        if self.session.callback || !self.session.may_stage || self.analysis.has_own {
            return Err("it comes from the coordinator".to_owned());
        }
        if self.analysis.needs_parent_name || self.text().contains("{{") {
            return Err("a whole row or a qualified table name".to_owned());
        }
        let top = self.top_level().ok_or("the statement is no query")?;
        let Tree::Query(query) = &self.statement.tree else { return Err("the statement is no query".to_owned()) };
        if query.into || self.analysis.levels.iter().any(|l| l.query.is_some_and(|q| q.locks_rows())) {
            return Err("row locks".to_owned());
        }
        // Parts and rest are run at different times, but by one clock; a part of one table would be the same again.
        for table in self.tables.iter().filter(|t| !t.is_reference()) {
            if let Some(reason) = self.time_reason(table) {
                return Err(reason);
            }
        }
        self.check_collations()?;
        let mut ways: Vec<Staging> = Vec::new();
        for anchor in self.anchors(top) {
            *self.staging.borrow_mut() = Staging::default();
            if self.assign(top, Some(&anchor)).is_ok() {
                self.sharpen();
                ways.push(self.staging.take());
            }
        }
        // A part that is the statement again would be staged for ever.
        let is_less = |way: &Staging| way.parts.iter().all(|part| part.sql.trim() != self.text().trim());
        ways.retain(|way| way.bytes <= BYTES_MAX && !way.is_empty() && is_less(way));
        ways.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        self.staging.take();
        if self.assign(top, None).is_ok() {
            self.sharpen();
            let gathered = self.staging.take();
            if gathered.bytes <= BYTES_MAX && !gathered.is_empty() && is_less(&gathered) {
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

    /// Values that came with the statement have their types' collations.
    pub fn check_collations(&self) -> Result<()> {
        let mut explicit = false;
        self.statement.tree.walk_all(&mut |_, e| explicit |= matches!(e.kind, ExprKind::Collate { .. }));
        let plain = |index: usize| {
            let (table, names) = (self.analysis.instances[index].table, self.entry_names(index));
            let named = self.columns_named(index, names.clone());
            table.columns.iter().zip(&names).all(|(c, name)| matches!(c.collation, 0 | 100) || !named.contains(name))
        };
        match explicit || !(0..self.analysis.instances.len()).all(plain) {
            true => Err("a collation of its own".to_owned()),
            false => Ok(()),
        }
    }

    fn try_scatter(&self, way: &Staging, why: &str) -> Option<Plan> {
        *self.staging.borrow_mut() = way.clone();
        let scattered = self.scatter_select();
        self.staging.take();
        let plan = scattered.ok()?;
        let Tier::Scatter(scatter) = plan.tier else { return None };
        let stage = Stage { parts: way.parts.clone(), rest: Rest::Scatter(scatter), collated: false, otherwise: None };
        Some(self.plan(Tier::Stage(stage), format!("{why}; {}", plan.reason)))
    }

    fn gather(&self, way: Staging, why: &str) -> Plan {
        *self.staging.borrow_mut() = way;
        let sql = self.worker_edits().apply(self.text());
        let parts = self.staging.take().parts;
        let stage = |sql| Stage { parts, rest: Rest::Coordinator(sql), collated: false, otherwise: None };
        self.unless_broken(
            sql.map(|sql| self.plan(Tier::Stage(stage(sql)), format!("{why}; the coordinator runs the rest"))),
        )
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
                let split = anchor.and_then(|a| self.output_like(*level, None, a));
                if self.assign(*level, anchor).is_ok()
                    && let Ok(spread) = self.spread_of_level(*level)
                {
                    // Where nothing stays in it, its result is less than what it is made of.
                    if spread != Spread::Replicated || self.is_plain(*level) {
                        return Ok(());
                    }
                    let inside = self.staging.replace(before);
                    if self.stage_level(*level, split, anchor).is_err() {
                        self.staging.replace(inside);
                    }
                    return Ok(());
                }
                *self.staging.borrow_mut() = before;
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
        if self.join_level(level, anchor).is_ok() {
            return Ok(());
        }
        self.assign(level, anchor)
    }

    /// The subquery's groups come with the statement, which is joined with them.
    fn join_level(&self, level: usize, anchor: Option<&Anchor>) -> Result<()> {
        let mut grouped = self.grouped(level)?;
        let inside = self.instances_in(level);
        let rows = most(inside.iter().map(|i| self.rows_in(*i))) / 10.0;
        let mut rows = self.estimate(&grouped.sql, rows);
        let width = 12.0 * grouped.columns as f64;
        let mut keys = None;
        if let Some(asked) = grouped.asked.take()
            && let Some(number) = self.keys_asked(&inside, &asked)
        {
            (grouped.sql, rows) = (asked.sql, rows.min(number));
            keys = Some(Box::new((asked.keys, number, width)));
        }
        let part = StagePart::new(grouped.sql, Ship::Everywhere);
        // Its columns are not those of the subquery.
        let piece = Piece { keys, ..Piece::new(Source::Level(level), rows, width) };
        self.add_part(part, piece, anchor.is_some(), |staging, part| {
            staging.levels.insert(level, Staged { part, split: None, column: None });
            staging.joined.insert(level, grouped.joined);
            staging.instances.retain(|index, _| !inside.contains(index));
            staging.covered.extend(inside);
        });
        Ok(())
    }

    /// How many groups of a subquery the outer rows ask for, where that is far fewer rows than it reads and no dearer.
    fn keys_asked(&self, inside: &[usize], asked: &Asked) -> Option<f64> {
        let read = most(inside.iter().map(|i| self.rows_in_table(*i)));
        let others = (0..self.analysis.instances.len()).filter(|index| !inside.contains(index));
        let outer = most(others.map(|i| self.rows_in_table(i)));
        if read < ASKED_FROM || outer > read {
            return None;
        }
        Some(self.estimate(&asked.keys, outer)).filter(|rows| *rows < read * ASKED_TO)
    }

    /// Rows of an occurrence that pass its own conditions, by estimate.
    fn rows_in(&self, index: usize) -> f64 {
        let table = self.analysis.instances[index].table;
        if table.is_reference() {
            return 0.0;
        }
        self.instance_text(index).map_or_else(|_| self.rows_of(table), |text| text.rows)
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
        let text = self.instance_text(index)?;
        let (columns, names) = (text.columns.clone(), self.entry_names(index));
        let split_name = split.map(|id| names.get(id.col).cloned().unwrap_or_default());
        let at = split_name.as_ref().and_then(|name| columns.iter().position(|c| c == name));
        let ship = match (split, at, anchor) {
            (Some(_), Some(column), Some(anchor)) => Ship::Split { column, table: anchor.like.clone() },
            _ => Ship::Everywhere,
        };
        let split = split.filter(|_| matches!(ship, Ship::Split { .. }));
        let width: f64 = columns
            .iter()
            .map(|name| {
                let at = names.iter().position(|n| n == name);
                at.and_then(|at| instance.table.columns.get(at)).map_or(8.0, |c| width_of(c.type_oid))
            })
            .sum();
        let ids = columns.iter().map(|name| {
            let col = names.iter().position(|n| n == name)?;
            Some(ColumnId { rel: instance.rel, col })
        });
        let joins = self.joins_of(instance.env, &ids.collect::<Vec<_>>());
        let part = StagePart { kept: text.kept, joins, ..StagePart::new(text.sql().to_owned(), ship) };
        let piece = Piece::new(Source::Instance { index, columns }, text.rows, width);
        self.add_part(part, Piece { text: Some(text), ..piece }, anchor.is_some(), |staging, part| {
            staging.instances.insert(index, Staged { part, split, column: None });
        });
        Ok(())
    }

    /// Which of these columns of an occurrence equal columns of another one, for each of those.
    fn joins_of(&self, env: usize, columns: &[Option<ColumnId>]) -> Vec<Vec<usize>> {
        let facts = self.analysis.facts(env);
        let mut by_other: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, column) in columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let others = facts.ids().into_iter().filter(|id| id.rel != column.rel && facts.same(*id, *column));
            for other in others.map(|id| id.rel).collect::<BTreeSet<_>>() {
                by_other.entry(other).or_default().push(at);
            }
        }
        by_other.into_values().collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn add_part(&self, part: StagePart, mut piece: Piece, on_workers: bool, place: impl FnOnce(&mut Staging, usize)) {
        let mut staging = self.staging.borrow_mut();
        let copies = match &part.ship {
            Ship::Everywhere if on_workers => self.snapshot.worker_groups().len().max(1) as f64,
            _ => 1.0,
        };
        // Reading them, and writing each copy.
        piece.cost *= 1.0 + copies;
        staging.cost += PART_COST + piece.rows * piece.cost;
        staging.bytes += piece.rows * piece.width;
        let number = staging.parts.len();
        staging.parts.push(part);
        staging.pieces.push(piece);
        place(&mut staging, number);
    }

    /// Parts that are run first say which rows of later ones matter: subqueries first, then the smallest.
    fn sharpen(&self) {
        let probes = self.probes();
        let mut staging = self.staging.take();
        // A part inside of a subquery that was staged after it is no more.
        let mut used: BTreeSet<usize> =
            staging.instances.values().chain(staging.levels.values()).map(|s| s.part).collect();
        for (part, piece) in probes {
            used.insert(staging.parts.len());
            staging.parts.push(part);
            staging.pieces.push(piece);
        }
        let mut order: Vec<usize> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let of_level = |piece: &Piece| matches!(piece.source, Source::Level(_));
        while let Some(next) = used.iter().copied().min_by(|a, b| {
            let (x, y) = (&staging.pieces[*a], &staging.pieces[*b]);
            of_level(y).cmp(&of_level(x)).then(x.rows.total_cmp(&y.rows)).then(a.cmp(b))
        }) {
            used.remove(&next);
            if let Some(keys) = staging.pieces[next].keys.take() {
                let (sql, rows, width) = *keys;
                order.push(staging.parts.len());
                let marker = format!("{{{{stage {}}}}}", order.len());
                staging.parts[next].sql = staging.parts[next].sql.replace(KEYS, &marker);
                let (source, part) = (staging.pieces[next].source.clone(), StagePart::new(sql, Ship::Everywhere));
                let piece = Piece::new(source, rows, width);
                (staging.cost, staging.bytes) =
                    (staging.cost + PART_COST + rows * piece.cost, staging.bytes + rows * piece.width);
                staging.parts.push(part);
                staging.pieces.push(piece);
            }
            // Two occurrences of a whole table are one part.
            let everything = |part: usize| staging.pieces[part].text.as_ref().and_then(InstanceText::everything);
            let alike = |part: &usize| {
                everything(next).is_some_and(|text| everything(*part) == Some(text))
                    && staging.parts[next].ship == staging.parts[*part].ship
            };
            let known = order.iter().position(alike);
            let number = known.unwrap_or(order.len());
            places.insert(next, number);
            if known.is_some() {
                let piece = &staging.pieces[next];
                (staging.cost, staging.bytes) =
                    (staging.cost - PART_COST - piece.rows * piece.cost, staging.bytes - piece.rows * piece.width);
            } else {
                order.push(next);
            }
            let mut reduced = self.reduced_beside(&staging, next, &used);
            let spared = |(other, _, fewer): &(usize, Reducing, f64)| match &staging.pieces[*other] {
                piece if piece.probe => 0.0,
                piece => (piece.rows - fewer) * piece.cost,
            };
            let piece = &staging.pieces[next];
            if piece.probe {
                let taken = piece.rows * piece.cost;
                if reduced.iter().map(spared).sum::<f64>() < PROBED_FOR + taken {
                    order.pop();
                    reduced.clear();
                } else {
                    staging.cost += PART_COST + taken;
                    staging.bytes += piece.rows * piece.width;
                }
            }
            for (other, reducing, fewer) in reduced {
                let piece = &mut staging.pieces[other];
                let (Source::Instance { index, .. }, Some(text)) = (&piece.source, &mut piece.text) else { continue };
                let alias = quote_ident(self.analysis.instances[*index].relation.reference_name());
                text.reduce(&alias, &reducing, number, fewer);
                staging.parts[other].sql = text.sql().to_owned();
                staging.parts[other].kept = text.kept;
                if !piece.probe {
                    staging.cost += (fewer - piece.rows) * piece.cost;
                    staging.bytes += (fewer - piece.rows) * piece.width;
                }
                piece.rows = fewer;
            }
        }
        for staged in staging.instances.values_mut().chain(staging.levels.values_mut()) {
            staged.part = places[&staged.part];
        }
        staging.parts = order.iter().map(|at| staging.parts[*at].clone()).collect();
        staging.pieces = order.iter().map(|at| staging.pieces[*at].clone()).collect();
        for (part, piece) in staging.parts.iter_mut().zip(&staging.pieces).filter(|(part, _)| part.kept < 1.0) {
            part.different = self.different_in(piece, &part.joins);
        }
        *self.staging.borrow_mut() = staging;
    }

    /// Which of these parts have rows that a part says do not matter, how, and how many are left.
    fn reduced_beside(&self, staging: &Staging, part: usize, others: &BTreeSet<usize>) -> Vec<(usize, Reducing, f64)> {
        let (source, rows) = (&staging.pieces[part].source, staging.pieces[part].rows);
        if matches!(source, Source::Level(level) if staging.joined.contains_key(level)) {
            return Vec::new();
        }
        let reduced = others.iter().filter_map(|other| {
            let piece = &staging.pieces[*other];
            let Source::Instance { index, .. } = piece.source else { return None };
            let text = piece.text.as_ref().filter(|text| text.whole_rows > REDUCED_FROM)?;
            let asks = text.asks(source);
            if rows > REDUCER_MAX && !asks {
                return None;
            }
            let (reducing, share) = self.reduced_by(index, source, rows)?;
            let fewer = if asks { text.rows } else { text.rows_to_reduce() * share };
            let less = asks || fewer < text.rows_to_reduce() * REDUCED_TO && fewer <= text.rows;
            less.then_some((*other, reducing, fewer))
        });
        reduced.collect()
    }

    /// Occurrences that stay and that large parts are joined with: what is left of them by their own conditions, and by
    /// smaller parts, may say which rows of those matter.
    fn probes(&self) -> Vec<(StagePart, Piece)> {
        let staging = self.staging.borrow();
        if !staging.pieces.iter().any(|piece| piece.rows >= PROBED_FROM) {
            return Vec::new();
        }
        let Some(top) = self.top_level() else { return Vec::new() };
        let mut probes = Vec::new();
        for (index, instance) in self.analysis.instances.iter().enumerate() {
            let stays = !instance.table.is_reference() && !staging.has(index) && instance.sample.is_none();
            if !stays || !self.analysis.levels[top].from.iter().any(|node| is_inner(node, index)) {
                continue;
            }
            let facts = self.analysis.facts(instance.env);
            let parts: HashSet<usize> =
                staging.instances.keys().map(|staged| self.analysis.instances[*staged].rel).collect();
            let joined = |col: &usize| {
                let own = ColumnId { rel: instance.rel, col: *col };
                facts.ids().into_iter().any(|id| parts.contains(&id.rel) && facts.same(id, own))
            };
            let names = self.entry_names(index);
            let columns: Vec<usize> = (0..names.len()).filter(joined).collect();
            let width = columns.iter().filter_map(|col| instance.table.columns.get(*col));
            let width: f64 = width.map(|c| width_of(c.type_oid)).sum();
            let columns: Vec<String> = columns.into_iter().map(|col| names[col].clone()).collect();
            if columns.is_empty() {
                continue;
            }
            let Ok(text) = self.instance_text_of(index, columns.clone(), true) else { continue };
            let part = StagePart::new(text.sql().to_owned(), Ship::Everywhere);
            let piece = Piece::new(Source::Instance { index, columns }, text.rows, width);
            probes.push((part, Piece { text: Some(text), probe: true, ..piece }));
        }
        probes
    }

    /// How many different values the columns that a part is joined by have in its whole table.
    fn different_in(&self, piece: &Piece, joins: &[Vec<usize>]) -> Vec<(usize, f64)> {
        let Source::Instance { index, columns } = &piece.source else { return Vec::new() };
        let names = self.entry_names(*index);
        let joined: BTreeSet<usize> = joins.iter().flatten().copied().collect();
        let known = joined.into_iter().filter_map(|at| {
            let col = names.iter().position(|name| *name == columns[at])?;
            Some((at, self.known_distinct_in(*index, col)?))
        });
        known.collect()
    }

    /// The subquery's rows go to every server that runs the rest.
    pub fn stage_everywhere(&self, level: usize) -> Result<()> {
        self.stage_level(level, None, None)
    }

    /// The subquery's rows come with the statement.
    fn stage_level(&self, level: usize, split: Option<(ColumnId, usize)>, anchor: Option<&Anchor>) -> Result<()> {
        let mut sql = self.closed_text(level)?;
        let inside = self.instances_in(level);
        let this = &self.analysis.levels[level];
        let mut rows = most(inside.iter().map(|i| self.rows_in(*i)));
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
        let whole = most(inside.iter().map(|i| self.rows_in_table(*i)));
        if whole > REDUCED_FROM
            && let Some((condition, share)) = self.tested_with(level)
            && share < REDUCED_TO
            && let Ok(less) = self.closed_text_with(level, &condition)
        {
            (sql, rows) = (less, rows.min(whole * share));
        }
        rows = self.estimate(&sql, rows);
        let width = 12.0 * this.outputs.as_ref().map_or(4, Vec::len) as f64;
        let ship = match (split, anchor) {
            (Some((_, column)), Some(anchor)) => Ship::Split { column, table: anchor.like.clone() },
            _ => Ship::Everywhere,
        };
        let (split, column) = match (&ship, split) {
            (Ship::Split { .. }, Some((id, column))) => (Some(id), Some(column)),
            _ => (None, None),
        };
        let part = StagePart::new(sql, ship);
        let piece = Piece::new(Source::Level(level), rows, width);
        self.add_part(part, piece, anchor.is_some(), |staging, part| {
            staging.levels.insert(level, Staged { part, split, column });
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
    pub fn has_distributed_in(&self, level: usize) -> bool {
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
    pub fn is_plain(&self, level: usize) -> bool {
        match self.analysis.levels[level].query {
            Some(Query { body: Body::Select(select), limit: None, offset: None, order_by, .. }) => {
                let mut calls = crate::spread::Calls::default();
                let sorts = order_by.iter().map(|s| &s.expr);
                select.items.iter().map(|i| &i.expr).chain(sorts).for_each(|e| self.calls_of(e, &mut calls));
                select.group_by.is_empty()
                    && select.having.is_none()
                    && !calls.aggregate
                    && calls.windows.is_empty()
                    && matches!(select.distinct, Distinct::No)
            }
            _ => false,
        }
    }

    pub fn rows_of(&self, table: &Table) -> f64 {
        self.session.sizes.get(&table.oid).copied().unwrap_or(ROWS_UNKNOWN).max(1.0)
    }

    /// Tables whose size would say which way is the cheapest.
    pub fn unknown_sizes(&self) -> bool {
        self.tables
            .iter()
            .any(|t| matches!(t.kind, TableKind::Distributed { .. }) && !self.session.sizes.contains_key(&t.oid))
    }
}
