//! What statements inside the coordinator change row by row, and what may be read meanwhile: one PostgreSQL shows a
//! statement all rows as they were before it. postgres_fdw numbers scans as their statement begins: numbers lower
//! than that of the first change belong to the statement that makes it, or to one around it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Oid, Resolved, Snapshot, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::Tree;

use crate::error::{Failure, Result};
use crate::inside::INSERTING;
use crate::run::Anchor;
use crate::session::Session;
use crate::settings::quote_literal;
use crate::transaction::LogItem;
use crate::waiting::Waiting;

/// So many scans are remembered that have not begun to read.
const WAITING_MAX: u64 = 100_000;

#[derive(Default)]
pub struct Changes {
    /// By the prepared statement of postgres_fdw that makes them, or a name of ours.
    running: HashMap<String, Change>,
    /// UPDATEs that may take rows to other partitions, the innermost last.
    moving: Vec<Moving>,
    /// The table of an UPDATE of ours, of a row that an INSERT has met and that is locked for it.
    pub own_update: Option<Oid>,
    /// Rows that came to another partition by one of them: worker group, partition and ctid.
    moved: HashSet<(GroupId, String)>,
    /// Rows of tables with foreign keys that were changed one by one: worker group, partition and ctid.
    touched: HashSet<(GroupId, String)>,
    /// What statements of the coordinator have changed that no worker has changed yet.
    pub later: Waiting,
    /// Trees of partitions in which rows have moved while scans with numbers below this had yet to begin.
    left: Vec<(Vec<Oid>, u64)>,
    /// The highest number of a scan that has begun to read, and lower ones that have not.
    highest: u64,
    waiting: BTreeSet<u64>,
    /// Tables of scans with parameters, which begin anew for other values.
    by_value: HashSet<Oid>,
    /// What functions see that the client's statement calls.
    pub sight: Sight,
    /// The name of the prepared statement of postgres_fdw that runs.
    pub executed: String,
    /// Where the client's statement fires triggers on the coordinator: the lowest number of a scan that is not its own,
    /// and the tables that triggers and functions have changed since.
    fired: Option<u64>,
    written: HashSet<Oid>,
    /// Functions that are not volatile may be called, and read tables.
    has_stable_readers: bool,
    /// The same for the client's statement, where that has been asked.
    pub calls_stable_readers: Option<bool>,
    /// The table of the row that was there already when the coordinator was asked last what becomes of it.
    pub asked: Option<String>,
    /// How deep the coordinator's subtransactions are nested, as far as postgres_fdw has told; which it does before it
    /// sends anything from inside one.
    pub depth: u32,
}

/// What functions see of a table that the statement which calls them is changing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sight {
    #[default]
    Unknown,
    /// Volatile ones: its changes so far.
    Changes(Oid),
    /// Others: what the statement itself sees.
    Statement(Oid),
}

/// A table whose rows a statement of the coordinator is changing.
struct Change {
    table: Oid,
    /// Others whose rows foreign keys change with it.
    others: HashSet<Oid>,
    /// Scans that have begun before have numbers up to this one.
    scans: u64,
    depth: u32,
    /// What they read is as it was.
    anchor: Option<Anchor>,
    /// Rows that an INSERT … ON CONFLICT has inserted or updated: worker group, partition and ctid; and their shards.
    rows: HashSet<(GroupId, String)>,
    shards: HashSet<usize>,
    /// The workers have made none of it yet.
    waits: bool,
    /// Triggers fire on the coordinator for its rows: scans with higher numbers are theirs, or those of functions.
    fires: bool,
}

impl Change {
    fn new(table: Oid, others: HashSet<Oid>, scans: u64, depth: u32, anchor: Option<Anchor>) -> Change {
        Change {
            table,
            others,
            scans,
            depth,
            anchor,
            rows: HashSet::new(),
            shards: HashSet::new(),
            waits: false,
            fires: false,
        }
    }
}

/// An UPDATE of a column that says in which partition a row belongs.
struct Moving {
    /// As the statement names it, and all tables of its tree.
    table: Arc<Table>,
    tree: Vec<Oid>,
    /// Scans of the statement have lower numbers.
    before: u64,
    depth: u32,
    anchor: Option<Anchor>,
    has_moved: bool,
    /// It returns tableoid, of which the coordinator knows only what it was.
    tells_partition: bool,
}

impl Changes {
    /// A scan has begun to read.
    pub fn scan_begins(&mut self, scan: u64) {
        if scan == u64::MAX {
            return;
        }
        if scan > self.highest {
            // Who talks like postgres_fdw may give any number.
            self.waiting.extend((self.highest + 1).max(scan.saturating_sub(WAITING_MAX))..scan);
            while self.waiting.len() as u64 > WAITING_MAX {
                self.waiting.pop_first();
            }
            self.highest = scan;
        } else {
            self.waiting.remove(&scan);
        }
    }

    pub fn scan_has_parameters(&mut self, table: Oid) {
        self.by_value.insert(table);
    }

    /// Rows of one table, one by one: no scan may read it meanwhile, but through the anchor while that is lent.
    pub fn insert(&mut self, name: String, table: Oid, anchor: Option<Anchor>) {
        let depth = self.depth;
        self.running.entry(name).or_insert_with(|| Change::new(table, HashSet::new(), 0, depth, anchor));
    }

    /// The name of an INSERT whose rows come one by one. Its triggers speak at its own depth, whatever subtransactions
    /// there are in the functions that it calls: one in there that inserts into the same table has another name.
    pub fn inserting(&self, relation: &str) -> String {
        format!("{INSERTING}{} {relation}", self.depth)
    }

    /// A row of an INSERT … ON CONFLICT is there now, where `place` says.
    pub fn row_written(&mut self, name: &str, remainder: usize, group: GroupId, place: String) {
        if let Some(change) = self.running.get_mut(name) {
            change.shards.insert(remainder);
            change.rows.insert((group, place));
        }
    }

    pub fn has_written(&self, name: &str, group: GroupId, place: &str) -> bool {
        self.running.get(name).is_some_and(|change| change.rows.contains(&(group, place.to_owned())))
    }

    pub fn has_written_shard(&self, name: &str, remainder: usize) -> bool {
        self.running.get(name).is_some_and(|change| change.shards.contains(&remainder))
    }

    pub fn is_running(&self, name: &str) -> bool {
        self.running.contains_key(name)
    }

    /// From here on scans are those of an expression of the statement itself, or are not.
    pub fn lend_anchor(&mut self, name: &str, lent: bool) {
        if let Some(change) = self.running.get_mut(name) {
            change.scans = if lent { u64::MAX } else { 0 };
        }
    }

    /// No statement of the coordinator runs.
    pub fn clear(&mut self) {
        self.running.clear();
        self.touched.clear();
        self.later = Waiting::default();
        self.moving.clear();
        self.moved.clear();
        self.left.clear();
        self.end_firing();
    }

    /// A statement that fires triggers on the coordinator has begun: what begins to read from now on is not its own.
    pub fn begin_firing(&mut self, scan: u64) {
        self.fired.get_or_insert(scan);
    }

    /// The client's statement has ended, or another begins.
    pub fn end_firing(&mut self) {
        self.fired = None;
        self.own_update = None;
        self.written.clear();
    }

    /// A trigger or a function has changed rows of a table, or the statement itself.
    pub fn table_written(&mut self, table: Oid) {
        if self.fired.is_some() {
            self.written.insert(table);
        }
    }

    /// The scan of the UPDATE that the router has written, once.
    pub fn begins_own_update(&mut self, tables: &[Arc<Table>]) -> bool {
        match tables {
            [table] if self.own_update == Some(table.oid) => self.own_update.take().is_some(),
            _ => false,
        }
    }

    /// Whether a scan of these tables sees what it should: rows as they are (None), or as they were. Err: name of the
    /// table that is half changed. `locks`: it finds rows to change, of a statement that may have changed others.
    /// `has_triggers`: some may read tables at the end of the statement, where keys may have acted or not.
    pub fn view_of(
        &self,
        tables: &[Arc<Table>],
        scan: Option<u64>,
        locks: bool,
        has_triggers: bool,
    ) -> std::result::Result<Option<Anchor>, String> {
        let mut earliest: Option<&Anchor> = None;
        for table in tables {
            // Of the statement itself, which would see what a trigger has done meanwhile.
            if self.written.contains(&table.oid) && self.fired.is_some_and(|first| scan.is_some_and(|n| n < first)) {
                return Err(table.name.clone());
            }
            // A loop's, say. What it locks would be a row's latest version.
            let is_left =
                |(tree, before): &(Vec<Oid>, u64)| tree.contains(&table.oid) && scan.is_some_and(|n| n < *before);
            if locks && self.left.iter().any(is_left) {
                return Err(table.name.clone());
            }
            // Until the statement has ended keys have changed nothing, whoever looks.
            let is_changed =
                |c: &&Change| c.table == table.oid || c.others.contains(&table.oid) && (has_triggers || !c.waits);
            let changes = self.running.values().filter(is_changed);
            let changes = changes.filter(|c| !(c.fires && self.shows_changes() && scan.is_some_and(|n| n > c.scans)));
            let changes = changes.map(|c| (c.scans, c.anchor.as_ref().filter(|_| !locks)));
            // Rows that have come to the table are left out of a scan for rows to change.
            let moves = self.moving.iter().filter(|m| m.has_moved && m.tree.contains(&table.oid));
            let moves = moves
                .filter(|m| !(locks && scan.is_some_and(|scan| scan < m.before)))
                .map(|m| (m.before.saturating_sub(1), m.anchor.as_ref().filter(|_| !locks)));
            let sees_changes = self.sight == Sight::Changes(table.oid)
                && self.running.values().filter(|c| c.table == table.oid).count() == 1
                && self.moving.is_empty();
            for (scans, anchor) in changes.chain(moves) {
                if sees_changes && !locks && scan.is_some_and(|scan| scan > scans) {
                    continue;
                }
                let anchor = anchor.filter(|_| scan.is_some_and(|scan| scan <= scans));
                let anchor = anchor.ok_or_else(|| table.name.clone())?;
                if earliest.is_none_or(|known| anchor.before < known.before) {
                    earliest = Some(anchor);
                }
            }
        }
        Ok(earliest.cloned())
    }

    /// A scan of a trigger that a statement fires which changes rows, or of a function that it calls.
    pub fn is_fired(&self, scan: u64) -> bool {
        scan != u64::MAX && self.running.values().any(|c| c.fires && scan > c.scans)
    }

    /// What reads in the middle of a change is volatile, as triggers are.
    fn shows_changes(&self) -> bool {
        !self.has_stable_readers || matches!(self.sight, Sight::Changes(_))
    }

    /// A prepared change has changed the row at a place before.
    pub fn row_changed(&mut self, name: &str, group: GroupId, place: &str) -> bool {
        self.running.get_mut(name).is_some_and(|change| !change.rows.insert((group, place.to_owned())))
    }

    /// Tables whose rows change with those that are being changed now.
    pub fn is_other(&self, table: Oid) -> bool {
        self.running.values().any(|c| c.others.contains(&table))
    }

    /// A row of a table with foreign keys is changed, and was found or not. True: a key has changed it before with
    /// another row of this statement or one around it, as one PostgreSQL would do later.
    pub fn is_cascaded(&mut self, group: GroupId, place: &str, found: bool) -> bool {
        self.touched.insert((group, place.to_owned())) && !found
    }

    /// Keys that act when a statement has ended may change rows of this table.
    pub fn waits_to_change(&self, table: Oid) -> bool {
        self.running.values().any(|c| c.waits && c.table != table && c.others.contains(&table))
    }

    /// The workers have changed rows of this table, or of all that were to change.
    pub fn are_made(&mut self, table: Option<Oid>) {
        let made = self.running.values_mut().filter(|c| table.is_none_or(|oid| c.table == oid));
        made.for_each(|change| change.waits = false);
    }

    /// Where rows were is of no interest once no statement changes any.
    fn forget_touched(&mut self) {
        if self.running.is_empty() {
            self.touched.clear();
        }
    }

    /// Rows that have been changed together.
    pub fn touched_all(&mut self, rows: HashSet<(GroupId, String)>) {
        self.touched.extend(rows);
    }

    /// A row that a statement has moved to another partition, where it is not to find it again.
    pub fn has_moved(&self, group: GroupId, place: &str) -> bool {
        !self.moved.is_empty() && self.moved.contains(&(group, place.to_owned()))
    }

    /// The table that an UPDATE names which changes rows of this partition: rows may go to any partition of that.
    pub fn moves_in(&self, table: &Table) -> Result<Option<Arc<Table>>> {
        let mut found: Option<&Arc<Table>> = None;
        for moving in self.moving.iter().filter(|m| m.tree.contains(&table.oid)) {
            if found.is_some_and(|known| known.oid != moving.table.oid) {
                return Err(Failure::refused("cannot move rows to another partition from inside the coordinator")
                    .detail("Several statements move rows of the same table.")
                    .hint("Run one after the other."));
            }
            found = Some(&moving.table);
        }
        Ok(found.cloned())
    }

    /// The row is in another partition now.
    pub fn row_moved(&mut self, table: &Table, group: GroupId, place: String) -> Result<()> {
        for moving in self.moving.iter_mut().filter(|m| m.tree.contains(&table.oid)) {
            if moving.tells_partition {
                return Err(Failure::refused(format!(
                    "cannot return tableoid of rows of distributed table \"{}\" that go to another partition",
                    moving.table.name
                ))
                .detail("The statement is run inside the coordinator.")
                .hint("Leave out tableoid, or send the UPDATE through the router by itself."));
            }
            moving.has_moved = true;
        }
        self.moved.insert((group, place));
        Ok(())
    }
}

/// Which functions may read what their own statement has changed so far, by the statement's target.
#[derive(Default)]
pub struct Readers {
    /// What was asked when the catalog was this one.
    catalog: Option<Arc<Snapshot>>,
    known: HashMap<(Oid, Vec<String>), bool>,
    /// Functions that are not volatile and may read tables, and whether anything that is stored may call one.
    stable: Option<(Vec<String>, bool)>,
}

/// How many answers a session keeps.
const READERS_MAX: usize = 200;

impl Readers {
    fn is_of(&self, catalog: &Arc<Snapshot>) -> bool {
        self.catalog.as_ref().is_some_and(|known| Arc::ptr_eq(known, catalog))
    }

    fn known(&self, catalog: &Arc<Snapshot>, target: Oid, called: &[String]) -> Option<bool> {
        self.is_of(catalog).then(|| self.known.get(&(target, called.to_vec())).copied()).flatten()
    }

    fn learn(&mut self, catalog: &Arc<Snapshot>, target: Oid, called: Vec<String>, may_read: bool) {
        if !self.is_of(catalog) || self.known.len() >= READERS_MAX {
            *self = Readers { catalog: Some(catalog.clone()), ..Readers::default() };
        }
        self.known.insert((target, called), may_read);
    }
}

impl Session {
    /// From its first row to its DEALLOCATE, a prepared change belongs to one statement of the coordinator.
    /// `others`: tables whose rows change with its rows.
    pub(crate) async fn begin_change(
        &mut self,
        name: &str,
        table: &Table,
        others: HashSet<Oid>,
        keeps: bool,
    ) -> Result<()> {
        let changes = &self.cursors.changes;
        let moving = changes.moving.iter().rposition(|m| m.tree.contains(&table.oid));
        let (depth, highest) = (changes.depth, changes.highest);
        // Subqueries have lower numbers than the scan that finds the rows to change.
        let by_value = |oid| changes.by_value.contains(oid);
        let rereads = !changes.waiting.is_empty() || by_value(&table.oid) || others.iter().any(by_value);
        let groups = self.catalog().groups_of(table);
        let (scans, anchor) = match moving {
            Some(at) => {
                let before = self.cursors.changes.moving[at].before;
                let anchor = match self.cursors.changes.moving[at].anchor.clone() {
                    Some(anchor) => anchor,
                    None => self.anchor_inside(groups, before).await?,
                };
                self.cursors.changes.moving[at].anchor = Some(anchor.clone());
                (before.saturating_sub(1), Some(anchor))
            }
            None if keeps && self.cursors.changes.sight == Sight::Statement(table.oid) => {
                (u64::MAX, Some(self.anchor_inside(groups, u64::MAX).await?))
            }
            None if keeps && rereads => (highest, Some(self.anchor_inside(groups, highest + 1).await?)),
            None => (highest, None),
        };
        let fires = table.fires_here;
        let asked = self.cursors.changes.calls_stable_readers;
        self.cursors.changes.has_stable_readers = asked.unwrap_or(self.catalog().has_stable_readers);
        let change = Change { waits: true, fires, ..Change::new(table.oid, others, scans, depth, anchor) };
        self.cursors.changes.running.insert(name.to_owned(), change);
        Ok(())
    }

    pub(crate) fn is_changing(&self, name: &str) -> bool {
        self.cursors.changes.is_running(name)
    }

    pub(crate) fn end_change(&mut self, name: &str) {
        let Some(change) = self.cursors.changes.running.remove(name) else { return };
        self.cursors.changes.table_written(change.table);
        self.cursors.changes.forget_touched();
        let shared = |anchor: &Anchor| {
            let kept = self.txn.log.iter().any(|item| matches!(item, LogItem::Anchor(known) if known == anchor));
            let moving = self.cursors.changes.moving.iter().filter_map(|m| m.anchor.as_ref());
            moving.chain(self.cursors.changes.running.values().filter_map(|c| c.anchor.as_ref())).any(|a| a == anchor)
                || kept
        };
        if let Some(anchor) = change.anchor.filter(|anchor| !shared(anchor)) {
            self.close_anchor(&anchor);
        }
    }

    pub(crate) fn end_changes(&mut self) {
        let names: Vec<String> = self.cursors.changes.running.keys().cloned().collect();
        names.iter().for_each(|name| self.end_change(name));
    }

    /// What functions see of the table that an UPDATE or DELETE of the client's is about to change, where all that it
    /// calls see the same.
    pub(crate) async fn sight_of(&mut self, statement: &Statement) -> Result<Sight> {
        let target = match &statement.tree {
            Tree::Update(update) => &update.target,
            Tree::Delete(delete) => &delete.target,
            _ => return Ok(Sight::Unknown),
        };
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let Resolved::Table(table) = catalog.resolve(target.schema.as_deref(), &target.name, &path) else {
            return Ok(Sight::Unknown);
        };
        let users = statement.calls.iter().map(|(_, name)| name).filter(|name| catalog.user_functions.contains(*name));
        let names: Vec<String> = users.map(|name| quote_literal(name)).collect();
        if names.is_empty() || table.has_triggers || table.is_partitioned {
            return Ok(Sight::Unknown);
        }
        let (least, most, others) = self.volatility_of(&names, &[]).await?;
        Ok(match (least.as_deref(), most.as_deref()) {
            (Some("v"), Some("v")) if !others => Sight::Changes(table.oid),
            // Its triggers see what it has changed.
            (Some("i" | "s"), Some("i" | "s")) if !others && !table.fires_here => Sight::Statement(table.oid),
            _ => Sight::Unknown,
        })
    }

    /// The least and the most volatile of functions of users, and whether one of them calls another, or writes itself:
    /// those are not looked into. `names`: as literals of SQL; `views`: expressions for relations behind which there
    /// may be more.
    pub(crate) async fn volatility_of(
        &mut self,
        names: &[String],
        views: &[String],
    ) -> Result<(Option<String>, Option<String>, bool)> {
        let sql = format!(
            "WITH RECURSIVE seen (class, object) AS ( \
                 SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, r::pg_catalog.oid \
                 FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.regclass[]) r \
                 UNION SELECT d.refclassid, d.refobjid \
                 FROM seen JOIN pg_catalog.pg_rewrite r ON r.ev_class = seen.object \
                     AND seen.class = 'pg_catalog.pg_class'::pg_catalog.regclass \
                 JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
                     AND d.objid = r.oid AND d.refobjid <> seen.object), \
             called AS (SELECT p.*, coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) AS body \
                 FROM pg_catalog.pg_proc p WHERE p.oid >= 16384 \
                     AND (p.proname = ANY (ARRAY[{}]::pg_catalog.name[]) OR p.oid IN (SELECT object FROM seen \
                         WHERE class = 'pg_catalog.pg_proc'::pg_catalog.regclass))) \
             SELECT pg_catalog.min(provolatile), pg_catalog.max(provolatile), pg_catalog.bool_or( \
                 body ~* E'\\\\m(insert|update|delete|merge|truncate|execute|call)\\\\M' \
                 OR EXISTS (SELECT FROM pg_catalog.pg_proc o \
                     WHERE o.oid >= 16384 AND o.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace) \
                         AND pg_catalog.strpos(pg_catalog.lower(called.body), pg_catalog.lower(o.proname)) > 0)) \
             FROM called",
            views.join(", "),
            names.join(", ")
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let text = |column| found.text(0, column).map(str::to_owned);
        Ok((text(0), text(1), found.text(0, 2) != Some("f")))
    }

    /// A volatile function of users' among those that a statement calls may read its target, where one PostgreSQL would
    /// show it what the statement has changed so far. The target is in its text, in that of a function that it calls,
    /// or behind a view that one names.
    pub(crate) async fn may_read_changes(&mut self, called: &[&String], target: &Arc<Table>) -> Result<bool> {
        let catalog = self.catalog();
        let mut called: Vec<String> = called
            .iter()
            .filter(|name| catalog.volatile_user_functions.contains(**name))
            .map(|n| n.to_string())
            .collect();
        called.sort_unstable();
        called.dedup();
        if called.is_empty() {
            return Ok(false);
        }
        if let Some(known) = self.readers.known(&catalog, target.oid, &called) {
            return Ok(known);
        }
        let list = |names: &[String]| names.iter().map(|n| quote_literal(n)).collect::<Vec<_>>().join(", ");
        let tree: Vec<String> = catalog.partition_tree(target).iter().map(|t| t.name.to_lowercase()).collect();
        let sql = format!(
            "WITH RECURSIVE bodies AS MATERIALIZED (SELECT p.oid, pg_catalog.lower(p.proname) AS name, \
                     p.proname = ANY (ARRAY[{}]::pg_catalog.name[]) AND p.provolatile = 'v' AS is_called, \
                     pg_catalog.lower(coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)) AS body \
                 FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
                 WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal') \
                     AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)), \
             called (oid, body) AS (SELECT oid, body FROM bodies WHERE is_called \
                 UNION SELECT b.oid, b.body FROM called c JOIN bodies b ON pg_catalog.strpos(c.body, b.name) > 0), \
             read (name) AS (SELECT pg_catalog.unnest(ARRAY[{}]::pg_catalog.text[]) \
                 UNION ALL SELECT pg_catalog.lower(v.relname) FROM pg_catalog.pg_class v \
                     WHERE v.oid >= 16384 AND v.relkind IN ('v', 'm') \
                         AND v.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)) \
             SELECT EXISTS (SELECT FROM called WHERE body ~ E'\\\\m(execute|call|[a-z]+_to_xml\\\\w*)\\\\M') \
                 OR EXISTS (SELECT FROM called c JOIN read r ON pg_catalog.strpos(c.body, r.name) > 0 \
                     AND (r.name !~ E'^\\\\w+$' OR c.body ~ (E'\\\\m' || r.name || E'\\\\M')))",
            list(&called),
            list(&tree)
        );
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let may_read = found.text(0, 0) != Some("f");
        self.readers.learn(&catalog, target.oid, called, may_read);
        Ok(may_read)
    }

    /// A function that is not volatile, and reads tables, may be called by the client's statement or by what is stored:
    /// while rows are changed one by one it sees what the statement that calls it sees. What runs a text may call any.
    pub(crate) async fn may_call_stable_readers(&mut self, text: &str) -> Result<bool> {
        // Names in lower case as ASCII has it, here and there.
        const SQL: &str = "WITH bodies AS MATERIALIZED (SELECT p.oid, \
                 pg_catalog.lower(p.proname COLLATE \"C\") AS name, \
                 p.prorettype = 'pg_catalog.trigger'::pg_catalog.regtype AS is_trigger, \
                 p.provolatile <> 'v' AS is_stable, \
                 pg_catalog.lower(coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) COLLATE \"C\") AS body \
             FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
             WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal') \
                 AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)), \
             readers AS MATERIALIZED (SELECT * FROM bodies \
                 WHERE is_stable AND body ~ E'\\\\m(from|execute|table)\\\\M'), \
             size (pairs) AS (SELECT (SELECT pg_catalog.count(*) FROM readers) * pg_catalog.count(*) FROM bodies) \
             SELECT pg_catalog.string_agg(DISTINCT name, E'\\n'), \
                 CASE WHEN (SELECT pairs FROM size) > 100000 THEN true \
                 ELSE pg_catalog.bool_or(is_trigger OR name !~ '^[a-z_][a-z0-9_]*$') \
                     OR EXISTS (SELECT FROM readers r JOIN pg_catalog.pg_depend d \
                         ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND d.refobjid = r.oid) \
                     OR EXISTS (SELECT FROM bodies b \
                         WHERE b.body ~ 'execute|spi_|ts_stat|ts_rewrite|crosstab|_to_xml|u&\"' \
                         OR EXISTS (SELECT FROM readers r WHERE r.oid <> b.oid \
                             AND pg_catalog.strpos(b.body, r.name) > 0)) END \
             FROM readers";
        const RUN_TEXTS: &[&str] = &["execute", "_to_xml", "ts_stat", "ts_rewrite", "crosstab", "u&\""];
        let catalog = self.catalog();
        if !self.readers.is_of(&catalog) {
            self.readers = Readers { catalog: Some(catalog.clone()), ..Readers::default() };
        }
        if self.readers.stable.is_none() {
            self.open_implicit_block();
            self.join(COORDINATOR_GROUP).await?;
            let found = self.collect_on(COORDINATOR_GROUP, SQL).await?;
            let names = found.text(0, 0).unwrap_or_default().lines().map(str::to_owned).collect();
            self.readers.stable = Some((names, found.text(0, 1) != Some("f")));
        }
        let Some((names, is_called)) = &self.readers.stable else { return Ok(true) };
        let text = text.to_ascii_lowercase();
        let has = |word: &str| text.contains(word);
        Ok(*is_called || RUN_TEXTS.iter().any(|word| has(word)) || names.iter().any(|name| has(name)))
    }

    /// A statement of the coordinator begins to update a table whose partitions rows may leave.
    pub(crate) fn begin_moving(&mut self, table: Arc<Table>, before: u64, tells_partition: bool) {
        let catalog = self.catalog();
        let mut tree = vec![table.oid];
        let mut at = 0;
        while let Some(parent) = tree.get(at).copied() {
            tree.extend(catalog.all_tables().filter(|t| t.parent == Some(parent)).map(|t| t.oid));
            at += 1;
        }
        let depth = self.cursors.changes.depth;
        let moving = Moving { table, tree, before, depth, anchor: None, has_moved: false, tells_partition };
        self.cursors.changes.moving.push(moving);
    }

    pub(crate) fn end_moving(&mut self, table: Oid) {
        let changes = &mut self.cursors.changes;
        if let Some(at) = changes.moving.iter().rposition(|m| m.table.oid == table) {
            let ended = changes.moving.remove(at);
            if changes.moving.is_empty() {
                changes.moved.clear();
            }
            let is_used = changes.running.values().any(|c| c.anchor.is_some() && c.anchor == ended.anchor);
            // Scans of a statement around it that begin later are to see what there was.
            let known = changes
                .left
                .iter()
                .any(|(tree, before)| *tree == ended.tree && changes.waiting.iter().all(|n| n < before));
            if ended.has_moved && !changes.waiting.is_empty() && !known {
                changes.left.push((ended.tree, ended.before));
                if let Some(anchor) = ended.anchor {
                    self.log(LogItem::Anchor(anchor));
                }
                return;
            }
            if let Some(anchor) = ended.anchor.filter(|_| !is_used) {
                self.close_anchor(&anchor);
            }
        }
    }

    /// A subtransaction of the coordinator has failed, and statements in it are never closed. Its cursors are gone.
    pub(crate) fn forget_changes(&mut self, depth: u32) {
        let changes = &mut self.cursors.changes;
        // What waited before it has been changed before it.
        changes.later = Waiting::default();
        changes.running.retain(|_, c| c.depth < depth);
        changes.own_update = None;
        changes.moving.retain(|m| m.depth < depth);
        changes.forget_touched();
        if changes.moving.is_empty() {
            changes.moved.clear();
        }
    }
}
