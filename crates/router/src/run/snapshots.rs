//! What a cursor sees: the rows as they were when it was declared, whoever has changed them since. The coordinator's
//! scans of distributed tables begin when rows are first fetched, and those of a join later still. So DECLARE keeps its
//! moment on the workers: a cursor of ours, the *anchor*, over a function that opens other cursors under the snapshot
//! of its caller (`pgherd.open_cursor` in crates/control/sql/worker.sql). Nothing is read before it is fetched.

use std::collections::{HashMap, HashSet};

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, OWN_SCHEMA, Oid, Resolved, Snapshot, Table};
use pgherd_planner::Tier;
use pgherd_sql::ast::{Relation, Tree};
use pgherd_sql::{Statement, StatementKind};
use pgherd_wire::backend::FieldDescription;

use super::Call;
use super::request::{Errors, Request, Rows};
use crate::callback::{COUNT_SCANS, Early, locks_rows};
use crate::error::{Failure, Result};
use crate::rights::{FIRST_SUPERUSER, with_values};
use crate::session::{Bound, Session};
use crate::settings::{quote_literal, quote_name};
use crate::transaction::{Block, LogItem};

/// The moment of a DECLARE.
#[derive(Debug, Clone)]
pub struct Anchor {
    /// The client's cursor, or its portal by its name on the server; empty: a cursor of a function.
    cursor: String,
    /// Ours, on each of `groups`.
    name: String,
    groups: Vec<GroupId>,
    /// Scans of the coordinator that began before it have lower numbers.
    pub before: u64,
    is_open: bool,
    /// All that it reads is for the session's own role.
    pub own: bool,
    /// Queries of scans that the function may not open: those that lock rows have been opened already, those that have
    /// another's rights have been read.
    early: Vec<(String, Early)>,
}

impl PartialEq for Anchor {
    fn eq(&self, other: &Anchor) -> bool {
        self.name == other.name
    }
}

/// What functions see that rows call which are fetched: their scans begin no sooner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Within {
    /// What there is now: there are none, or volatile ones alone.
    Now,
    /// The moment of this anchor: none is volatile.
    Moment(String),
    /// It cannot be told.
    Unknown,
}

/// For whom the coordinator reads tables in one statement: the owners of views, or the session's own role.
#[derive(Debug, Default)]
pub struct Askers {
    /// For nobody but the session's role.
    pub own: bool,
    of: HashMap<Oid, HashSet<Oid>>,
    /// The session's own role, where it is one of them.
    me: Option<Oid>,
}

impl Askers {
    /// A role that asks for a table and is not the session's own: one from whom nothing is hidden, if there is one.
    /// What is read for one is the same for others; whether they may have it is known when they ask.
    pub fn role_for(&self, catalog: &Snapshot, table: &Table) -> Option<Oid> {
        let mut roles = HashSet::new();
        let mut next = Some(table.oid);
        while let Some(oid) = next {
            roles.extend(self.of.get(&oid).into_iter().flatten());
            next = catalog.by_oid.get(&oid).and_then(|table| table.parent);
        }
        let sees_all = |role: &Oid| *role == FIRST_SUPERUSER || catalog.owners.get(&table.oid) == Some(role);
        roles.retain(|role| catalog.told_apart.contains_key(role) && Some(*role) != self.me);
        roles.iter().find(|role| sees_all(role)).or_else(|| roles.iter().next()).copied()
    }
}

impl Session {
    /// After a DECLARE, or rows of a portal: scans that will begin later are to see what there is now. `sent`: what the
    /// coordinator got, without parameters.
    pub(super) async fn keep_moment(&mut self, cursor: &str, statement: &Statement, sent: Option<&str>) -> Result<()> {
        self.keep_moment_as(cursor, false, statement, sent).await
    }

    async fn keep_moment_as(
        &mut self,
        cursor: &str,
        is_portal: bool,
        statement: &Statement,
        sent: Option<&str>,
    ) -> Result<()> {
        // WITH HOLD, and its commit is next.
        self.cursors.within.remove(cursor);
        if self.txn.block == Block::None || (self.txn.block == Block::Implicit && self.last_of_query) {
            return Ok(());
        }
        let mut groups = self.scanned_groups(statement).await?;
        let within = self.within(statement).await?;
        if matches!(within, Within::Moment(_)) {
            groups = self.catalog().worker_groups();
        }
        if groups.is_empty() {
            self.cursors.within.insert(cursor.to_owned(), within);
            return Ok(());
        }
        // Of a portal some scans have begun, and hold the rows that they have locked.
        let locking = matches!(&statement.tree, Tree::Query(query) if query.locks_rows()) && !is_portal;
        let askers = self.askers_of(statement).await?;
        let told = sent.filter(|_| locking || !askers.own);
        let begun = if is_portal { self.cursors.begun() } else { Vec::new() };
        let name = self.anchor(cursor, groups, told, &askers, begun).await?;
        let within = if matches!(within, Within::Moment(_)) { Within::Moment(name) } else { within };
        self.cursors.within.insert(cursor.to_owned(), within);
        Ok(())
    }

    /// After some rows of a portal: what begins when the client asks for more sees what there is now.
    pub(super) async fn keep_moment_of_portal(&mut self, call: &Call<'_>, sent: Option<&str>) -> Result<()> {
        let Some(statement) = &call.prepared.statement else { return Ok(()) };
        let path = self.search_path().await?;
        let catalog = self.catalog();
        // One scan, which has begun.
        let is_single = |r: &Relation| match catalog.resolve(r.schema.as_deref(), &r.name, &path) {
            Resolved::Table(table) => !table.is_partitioned,
            Resolved::Other => !catalog.passing_on.contains(&r.name),
        };
        let single = statement.relations.len() < 2 && statement.relations.iter().all(is_single);
        let name = name_of_portal(call.portal);
        if single && !self.calls_user_function(call) {
            self.cursors.within.insert(name, Within::Now);
            return Ok(());
        }
        self.keep_moment_as(&name, true, statement, sent).await
    }

    /// What the functions that a cursor's statement calls see of distributed tables. (The name of the anchor is still
    /// to come.)
    async fn within(&mut self, statement: &Statement) -> Result<Within> {
        let path = self.search_path().await?;
        let catalog = self.catalog();
        if catalog.by_oid.is_empty() {
            return Ok(Within::Now);
        }
        let is_view = |r: &Relation| {
            matches!(catalog.resolve(r.schema.as_deref(), &r.name, &path), Resolved::Other)
                && catalog.passing_on.contains(&r.name)
        };
        let users = statement.calls.iter().filter(|(schema, _)| schema.as_deref() != Some("pg_catalog"));
        let users = users.filter(|(_, name)| catalog.user_functions.contains(name));
        let names: Vec<String> = users.map(|(_, name)| quote_literal(name)).collect();
        let views: Vec<String> = statement.relations.iter().filter(|r| is_view(r)).map(as_regclass).collect();
        if names.is_empty() && views.is_empty() {
            return Ok(Within::Now);
        }
        let (least, most, others) = self.volatility_of(&names, &views).await?;
        Ok(match (least.as_deref(), most.as_deref()) {
            (None, None) if names.is_empty() => Within::Now,
            (Some("v"), Some("v")) => Within::Now,
            (Some("i" | "s"), Some("i" | "s")) if !others => Within::Moment(String::new()),
            _ => Within::Unknown,
        })
    }

    /// While rows of a cursor are fetched, a scan begins that is not one of the cursor's own: the moment that it sees;
    /// none: now.
    pub fn moment_within(&self) -> Result<Option<Anchor>> {
        let Some(cursor) = &self.cursors.fetching else { return Ok(None) };
        match self.cursors.within.get(cursor) {
            Some(Within::Now) => return Ok(None),
            Some(Within::Moment(name)) => {
                let found = self.txn.log.iter().find_map(|item| match item {
                    LogItem::Anchor(anchor) if anchor.is_open && anchor.name == *name => Some(anchor),
                    _ => None,
                });
                if let Some(anchor) = found {
                    return Ok(Some(anchor.clone()));
                }
            }
            Some(Within::Unknown) | None => {}
        }
        // Where nothing was written since, it sees the same in both.
        if !self.txn.participants.iter().any(|(group, p)| *group != COORDINATOR_GROUP && p.wrote) {
            return Ok(None);
        }
        Err(Failure::refused("cannot read distributed tables as they were when the cursor was declared")
            .detail("They are read by a function of which it is not known whether it is to see what has changed since.")
            .hint("Fetch before you write, or call functions that are all volatile, or all stable, by their names."))
    }

    async fn askers_of(&mut self, statement: &Statement) -> Result<Askers> {
        let mut askers = Askers::default();
        let path = self.search_path().await?;
        let catalog = self.catalog();
        // One in SQL may become a part of the plan.
        let calls = statement
            .calls
            .iter()
            .any(|(schema, name)| schema.as_deref() != Some("pg_catalog") && catalog.user_functions.contains(name));
        let is_table =
            |r: &Relation| matches!(catalog.resolve(r.schema.as_deref(), &r.name, &path), Resolved::Table(_));
        askers.own = self.db.callback_secret.is_none()
            || catalog.definers.is_empty()
            || !calls && statement.relations.iter().all(is_table);
        if calls || askers.own {
            return Ok(askers);
        }
        let names: Vec<String> = statement.relations.iter().map(as_regclass).collect();
        // A view asks for its owner, wherever it stands, or for whoever runs the statement; a policy for whoever asks
        // for its table.
        let sql = format!(
            "WITH RECURSIVE me AS (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user), \
             seen (class, object, asker) AS ( \
                 SELECT {CLASS}, r::pg_catalog.oid, me.oid \
                 FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.regclass[]) r, me \
                 UNION SELECT d.refclassid, d.refobjid, CASE WHEN o.rule IS NULL THEN seen.asker ELSE o.asker END \
                 FROM seen CROSS JOIN LATERAL ( \
                     SELECT r.oid, r.oid AS rule, CASE WHEN (SELECT o.option_value::pg_catalog.bool \
                             FROM pg_catalog.pg_options_to_table(c.reloptions) o \
                             WHERE o.option_name = 'security_invoker') \
                         THEN (SELECT oid FROM me) ELSE c.relowner END AS asker \
                     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_rewrite r ON r.ev_class = c.oid \
                     WHERE c.oid = seen.object AND c.relkind = 'v' \
                     UNION ALL SELECT p.oid, NULL, NULL FROM pg_catalog.pg_policy p WHERE p.polrelid = seen.object) o \
                 JOIN pg_catalog.pg_depend d ON d.objid = o.oid AND d.refobjid <> seen.object AND d.classid = \
                     CASE WHEN o.rule IS NULL THEN 'pg_catalog.pg_policy'::pg_catalog.regclass \
                          ELSE 'pg_catalog.pg_rewrite'::pg_catalog.regclass END \
                 WHERE seen.class = {CLASS} \
                     AND d.refclassid IN ({CLASS}, 'pg_catalog.pg_proc'::pg_catalog.regclass)) \
             SELECT seen.class <> {CLASS}, seen.object, seen.asker, seen.asker = me.oid FROM seen, me \
             WHERE seen.class = {CLASS} OR seen.object >= 16384",
            names.join(", ")
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let number = |row, column| found.text(row, column).and_then(|text| text.parse::<Oid>().ok()).unwrap_or(0);
        askers.own = true;
        for row in 0..found.rows.len() {
            let object = number(row, 1);
            if found.text(row, 0) == Some("t") {
                return Ok(Askers::default());
            }
            if found.text(row, 3) == Some("t") {
                askers.me = Some(number(row, 2));
            }
            if catalog.by_oid.contains_key(&object) {
                askers.own &= found.text(row, 3) == Some("t");
                askers.of.entry(object).or_default().insert(number(row, 2));
            }
        }
        Ok(askers)
    }

    /// After a function that has returned a cursor, whose scans will begin when the client fetches from it.
    pub(super) async fn keep_moment_of_returned(&mut self, call: &Call<'_>) -> Result<()> {
        let told = std::mem::take(&mut self.cursors.returned);
        if self.txn.block != Block::Explicit || self.catalog().by_oid.is_empty() {
            return Ok(());
        }
        let is_call = call.prepared.statement.as_ref().is_some_and(|s| matches!(s.kind, StatementKind::Call));
        let described = match is_call && call.bound.is_some() {
            true => self.describe_utility(call.prepared).await?,
            false => call.prepared.last_described(),
        };
        let known = described.as_ref().and_then(|d| d.fields.as_ref());
        if !told && !known.is_some_and(|fields| has_cursor(fields)) {
            return Ok(());
        }
        match self.has_begun_scans().await? {
            true => {
                let groups = self.catalog().worker_groups();
                self.anchor("", groups, None, &Askers::default(), Vec::new()).await.map(drop)
            }
            false => Ok(()),
        }
    }

    /// False: the coordinator has begun no scan of a distributed table since they were counted last.
    async fn has_begun_scans(&mut self) -> Result<bool> {
        if self.catalog().by_oid.is_empty() {
            return Ok(false);
        }
        let last = self.cursors.scans;
        self.run_quiet(COORDINATOR_GROUP, &count_scans()).await?;
        Ok(self.cursors.scans != last + 1)
    }

    /// `told`: a statement of which some scans lock rows, or have another's rights. `begun`: those that have begun.
    async fn anchor(
        &mut self,
        cursor: &str,
        groups: Vec<GroupId>,
        told: Option<&str>,
        askers: &Askers,
        begun: Vec<String>,
    ) -> Result<String> {
        let name = self.declare_now(&groups).await?;
        let before = self.cursors.scans;
        let early = match told {
            Some(sent) => self.scan_early(sent, askers, begun).await?,
            None => Vec::new(),
        };
        let (cursor, own) = (cursor.to_owned(), askers.own);
        let anchor = Anchor { cursor, name: name.clone(), groups, before, is_open: true, own, early };
        self.log(LogItem::Anchor(anchor));
        Ok(name)
    }

    /// Cursors of one name that hold the workers' snapshots of now; the coordinator counts from here.
    async fn declare_now(&mut self, groups: &[GroupId]) -> Result<String> {
        for group in groups.iter().chain([&COORDINATOR_GROUP]) {
            self.join(*group).await?;
        }
        let name = format!("pgherd_anchor_{}", crate::session::next_id());
        let mut asked = vec![(COORDINATOR_GROUP, count_scans())];
        asked.extend(groups.iter().map(|group| (*group, declare_anchor(&name))));
        for (_, result) in self.run_parallel(asked).await {
            result?;
        }
        Ok(name)
    }

    /// While a statement of the coordinator is about to change rows: its scans, with numbers below `before`, go on
    /// reading what there is now.
    pub async fn anchor_inside(&mut self, groups: Vec<GroupId>, before: u64) -> Result<Anchor> {
        let name = format!("pgherd_anchor_{}", crate::session::next_id());
        for group in &groups {
            self.join(*group).await?;
            self.run_quiet(*group, &declare_anchor(&name)).await?;
        }
        Ok(Anchor { cursor: String::new(), name, groups, before, is_open: true, own: false, early: Vec::new() })
    }

    /// The scans of a statement, which are told by EXPLAIN, as far as they cannot be opened later under its snapshot.
    /// Those that lock rows are opened, and have locked nothing yet; those with another's rights are read, which locks
    /// their rows, too. `begun`: queries of scans that have begun.
    async fn scan_early(
        &mut self,
        sent: &str,
        askers: &Askers,
        mut begun: Vec<String>,
    ) -> Result<Vec<(String, Early)>> {
        let explained =
            self.collect_on(COORDINATOR_GROUP, &format!("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) {sent}")).await?;
        let mut early: Vec<(String, Early)> = Vec::new();
        for query in remote_queries(explained.text(0, 0).unwrap_or_default()) {
            let query = self.with_table_names(&query);
            if let Some(index) = begun.iter().position(|text| *text == query) {
                begun.swap_remove(index);
                continue;
            }
            // One that has parameters waits until they have values. What is read is read for all that ask for it.
            let has_parameters = with_values(&query, Some(&Bound::default())) != query;
            let is_read = early.iter().any(|(text, done)| *text == query && matches!(done, Early::Read(..)));
            if !has_parameters && !is_read && (locks_rows(&query) || !askers.own) {
                early.extend(self.do_early(&query, askers).await?.map(|done| (query, done)));
            }
        }
        Ok(early)
    }

    /// What was done for a scan before it began.
    pub fn done_early(&mut self, scan: u64, query: &str) -> Option<Early> {
        let anchors = self.txn.log.iter_mut().filter_map(|item| match item {
            LogItem::Anchor(anchor) if anchor.is_open && scan < anchor.before => Some(anchor),
            _ => None,
        });
        let of_statement = self.cursors.moment.as_mut().filter(|anchor| scan > anchor.before);
        let early = &mut anchors.min_by_key(|anchor| anchor.before).or(of_statement)?.early;
        let index = early.iter().position(|(text, _)| text == query)?;
        match &early[index].1 {
            Early::Read(..) => Some(early[index].1.clone()),
            Early::Open(_) => Some(early.swap_remove(index).1),
        }
    }

    /// The workers that a statement's scans on the coordinator may read.
    async fn scanned_groups(&mut self, statement: &Statement) -> Result<Vec<GroupId>> {
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let plan = self.plan_statement(statement, &catalog, &path, false);
        match &plan.tier {
            // An SQL function may have become a part of the plan.
            Tier::Coordinator { in_block: true, .. } => match self.has_begun_scans().await? {
                true => Ok(catalog.worker_groups()),
                false => Ok(Vec::new()),
            },
            Tier::Coordinator { .. } => {
                let others: Vec<String> = statement
                    .relations
                    .iter()
                    .filter(|r| matches!(catalog.resolve(r.schema.as_deref(), &r.name, &path), Resolved::Other))
                    .map(as_regclass)
                    .collect();
                if others.is_empty() {
                    return Ok(Vec::new());
                }
                // A view may read anything.
                let sql = format!(
                    "SELECT FROM pg_catalog.pg_class WHERE relkind = 'v' AND oid IN ({}) \
                     AND relnamespace NOT IN (SELECT oid FROM pg_catalog.pg_namespace \
                         WHERE nspname IN ('pg_catalog', 'information_schema', 'pgherd'))",
                    others.join(", ")
                );
                let views = self.collect_on(COORDINATOR_GROUP, &sql).await?;
                Ok(if views.rows.is_empty() { Vec::new() } else { catalog.worker_groups() })
            }
            Tier::Route(route) => {
                let remainder = self.remainder_of(&route.table, &route.key, None).await?;
                let shard = remainder.and_then(|r| route.table.shards().get(r));
                Ok(shard.map_or_else(|| catalog.groups_of(&route.table), |shard| vec![shard.group]))
            }
            Tier::Scatter(scatter) => Ok(catalog.groups_of(&scatter.table)),
            _ => Ok(catalog.worker_groups()),
        }
    }

    /// CLOSE of a cursor, or of all: nothing is kept for it any more.
    pub(super) fn forget_moment(&mut self, cursor: Option<&str>) {
        let mut closed = Vec::new();
        for item in &mut self.txn.log {
            let LogItem::Anchor(anchor) = item else { continue };
            if !anchor.is_open || cursor.is_some_and(|name| name != anchor.cursor) {
                continue;
            }
            anchor.is_open = false;
            closed.push(anchor.clone());
            anchor.early.clear();
        }
        closed.iter().for_each(|anchor| self.close_anchor(anchor));
    }

    /// The moment under which a scan of the coordinator has begun; none: it is of the statement that runs now.
    pub fn moment_of(&self, scan: u64) -> Option<Anchor> {
        let anchors = self.txn.log.iter().filter_map(|item| match item {
            LogItem::Anchor(anchor) if anchor.is_open && scan < anchor.before => Some(anchor),
            _ => None,
        });
        let of_statement = self.cursors.moment.as_ref().filter(|anchor| scan > anchor.before);
        anchors.min_by_key(|anchor| anchor.before).or(of_statement).cloned()
    }

    /// Before a statement of the coordinator that writes a table which it also reads or writes elsewhere: its parts are
    /// to see what there is now. Scans that lock rows are opened now; of a row that another part has changed by the
    /// time they come to it they know that it is gone, as one server does.
    pub(super) async fn begin_statement_moment(&mut self, call: &Call<'_>, sent: &str) -> Result<()> {
        let Some(statement) = &call.prepared.statement else { return Ok(()) };
        if !self.needs_moment(statement).await? {
            return Ok(());
        }
        self.open_implicit_block();
        let groups = self.catalog().worker_groups();
        let name = self.declare_now(&groups).await?;
        let before = self.cursors.scans;
        let askers = Askers::default();
        let told = with_values(sent, call.bound);
        // Values may have other types there; then nothing is opened now, and what would see a change is refused.
        self.collect_on(COORDINATOR_GROUP, "SAVEPOINT pgherd_moment").await?;
        let early = self.scan_early(&told, &askers, Vec::new()).await;
        let undo = if early.is_err() { "ROLLBACK TO pgherd_moment; " } else { "" };
        self.collect_on(COORDINATOR_GROUP, &format!("{undo}RELEASE pgherd_moment")).await?;
        let early = match early {
            Ok(early) => early,
            Err(Failure::Statement(fields)) if fields.sqlstate().starts_with("42") => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let cursor = String::new();
        self.cursors.moment = Some(Anchor { cursor, name, groups, before, is_open: true, own: false, early });
        Ok(())
    }

    /// After that statement has ended well.
    pub(super) fn end_statement_moment(&mut self) {
        let Some(anchor) = self.cursors.moment.take() else { return };
        self.close_anchor(&anchor);
    }

    /// A table is written, and stands in the statement once more, or one whose rows change with it; only tables and
    /// CTEs are named, and built-in functions: what others do is not a part of the statement.
    async fn needs_moment(&mut self, statement: &Statement) -> Result<bool> {
        if !statement.has_modifying {
            return Ok(false);
        }
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let user = |(schema, name): &(Option<String>, String)| {
            schema.as_deref() != Some("pg_catalog") && catalog.user_functions.contains(name)
        };
        if statement.calls.iter().any(user) {
            return Ok(false);
        }
        let mut written = Vec::new();
        find_written(&statement.tree, &mut written);
        let is_table =
            |r: &&Relation| matches!(catalog.resolve(r.schema.as_deref(), &r.name, &path), Resolved::Table(_));
        if !written.iter().any(is_table) {
            return Ok(false);
        }
        let ctes = cte_names(&statement.tree);
        let mut seen: HashSet<Oid> = HashSet::new();
        let mut twice = false;
        for relation in &statement.relations {
            match catalog.resolve(relation.schema.as_deref(), &relation.name, &path) {
                // What rules, triggers, defaults and constraints run is no part of the statement either.
                Resolved::Table(table) if table.has_triggers || table.changed_here || table.has_hidden_calls => {
                    return Ok(false);
                }
                Resolved::Table(table) => twice |= !seen.insert(table.oid) && !table.is_reference(),
                Resolved::Other if relation.schema.is_none() && ctes.contains(&relation.name.as_str()) => {}
                // It has its own rows.
                Resolved::Other
                    if !catalog.passing_on.contains(&relation.name) && !self.temp.contains(&relation.name) => {}
                Resolved::Other => return Ok(false),
            }
        }
        let with_others = |oid: &Oid| {
            let changed = [true, false].map(|deletes| catalog.changed_with(*oid, deletes));
            changed.iter().flatten().any(|other| other != oid && seen.contains(other))
        };
        Ok(twice || seen.iter().any(with_others))
    }

    /// With the cursors that were opened early.
    pub fn close_anchor(&mut self, anchor: &Anchor) {
        let opened = anchor.early.iter().filter_map(|(_, done)| match done {
            Early::Open(opened) => Some((opened.cursor.as_str(), opened.groups.as_slice())),
            Early::Read(..) => None,
        });
        for (name, groups) in opened.chain([(anchor.name.as_str(), anchor.groups.as_slice())]) {
            for group in groups {
                if let Some(participant) = self.txn.participants.get_mut(group) {
                    participant.lease.add_step(format!("CLOSE {name}"));
                }
            }
        }
    }

    /// Opens a cursor of ours on a worker, under the snapshot of now or of an anchor.
    pub async fn open_on(
        &mut self,
        group: GroupId,
        cursor: &str,
        sql: &str,
        bound: Option<&Bound>,
        anchor: Option<&Anchor>,
    ) -> Result<()> {
        let Some(anchor) = anchor.filter(|anchor| anchor.groups.contains(&group)) else {
            let request = Request { bound, ..Request::text(format!("DECLARE {cursor} CURSOR FOR {sql}")) };
            return self.run_request(group, &request, Rows::Drop, Errors::default()).await.map(drop);
        };
        let open = format!(
            "SELECT pg_catalog.set_config('pgherd.cursor_name', {}, true), \
             pg_catalog.set_config('pgherd.cursor_query', {}, true); FETCH FORWARD 1 FROM {}",
            quote_literal(cursor),
            quote_literal(&with_values(sql, bound)),
            anchor.name
        );
        self.run_quiet(group, &open).await.map_err(without_function)
    }
}

const CLASS: &str = "'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid";

/// A portal of the client's on the server that runs it.
pub(super) fn name_of_portal(portal: &str) -> String {
    format!("{OWN_SCHEMA}_p{portal}")
}

/// Without end, one row for each cursor that is opened.
fn declare_anchor(name: &str) -> String {
    format!(
        "DECLARE {name} NO SCROLL CURSOR FOR WITH RECURSIVE forever(n) AS \
         (SELECT 1 UNION ALL SELECT 1 FROM forever) SELECT pgherd.open_cursor() FROM forever"
    )
}

/// What a name stands for, as SQL; NULL for none.
fn as_regclass(relation: &Relation) -> String {
    let name = quote_name(relation.schema.as_deref(), &relation.name);
    format!("pg_catalog.to_regclass({})", quote_literal(&name))
}

/// The CTEs of a statement's own WITH.
fn cte_names(tree: &Tree) -> Vec<&str> {
    let with = match tree {
        Tree::Query(query) => &query.with,
        Tree::Insert(insert) => &insert.with,
        Tree::Update(update) => &update.with,
        Tree::Delete(delete) => &delete.with,
        Tree::Merge(_) | Tree::Utility => &None,
    };
    with.iter().flat_map(|with| &with.ctes).map(|cte| cte.name.as_str()).collect()
}

/// The relations that a statement and its CTEs change.
fn find_written<'a>(tree: &'a Tree, found: &mut Vec<&'a Relation>) {
    let (with, target) = match tree {
        Tree::Query(query) => (&query.with, None),
        Tree::Insert(insert) => (&insert.with, Some(&insert.target)),
        Tree::Update(update) => (&update.with, Some(&update.target)),
        Tree::Delete(delete) => (&delete.with, Some(&delete.target)),
        Tree::Merge(merge) => (&merge.with, Some(&merge.target)),
        Tree::Utility => return,
    };
    found.extend(target);
    with.iter().flat_map(|with| &with.ctes).for_each(|cte| find_written(&cte.tree, found));
}

/// Has a scan of the coordinator tell its number.
fn count_scans() -> String {
    format!("SELECT FROM pgherd.remote_statement WHERE command OPERATOR(pg_catalog.=) '{COUNT_SCANS}'")
}

/// A column is the name of a cursor.
pub fn has_cursor(fields: &[FieldDescription]) -> bool {
    const REFCURSOR_OID: u32 = 1790;
    fields.iter().any(|field| field.type_oid == REFCURSOR_OID)
}

/// The queries of our foreign tables in a plan of the coordinator, as EXPLAIN writes it in JSON.
fn remote_queries(plan: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Quotes inside values are escaped.
    for node in plan.split("\"Node Type\": ").skip(1) {
        let ours = node.contains("\"Relation Name\": \"ft_") && node.contains("\"Schema\": \"pgherd\"");
        let Some((_, rest)) = node.split_once("\"Remote SQL\": \"").filter(|_| ours) else { continue };
        let mut query = String::new();
        let mut characters = rest.chars();
        while let Some(c) = characters.next() {
            query.push(match c {
                '"' => break,
                '\\' => match characters.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('b') => '\u{8}',
                    Some('f') => '\u{c}',
                    Some('u') => {
                        let digits: String = characters.by_ref().take(4).collect();
                        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or(' ')
                    }
                    Some(other) => other,
                    None => break,
                },
                c => c,
            });
        }
        found.push(query);
    }
    found
}

/// The client knows of no function.
fn without_function(failure: Failure) -> Failure {
    match failure {
        Failure::Statement(mut fields) => {
            for field in [b'W', b'q', b'p'] {
                fields.remove(field);
            }
            Failure::Statement(fields)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn values_stand_where_parameters_stood() {
        let params = vec![Some(Bytes::from_static(b"it's")), None];
        let bound = Bound { params, ..Bound::default() };
        let text = r#"SELECT "a$1" FROM t WHERE ((b = $1::text)) AND ((c <> '$1''$2')) AND ((d = $2::int)) AND e = $3"#;
        let expected = r#"SELECT "a$1" FROM t WHERE ((b = 'it''s'::text)) AND ((c <> '$1''$2')) AND ((d = NULL::int)) AND e = NULL"#;
        assert_eq!(with_values(text, Some(&bound)), expected);
        assert_eq!(with_values(text, None), text);
    }

    #[test]
    fn queries_are_found_in_a_plan() {
        let plan = r#"[{"Plan": {"Node Type": "Foreign Scan", "Relation Name": "ft_1", "Schema": "pgherd",
            "Remote SQL": "SELECT \"A\" FROM t WHERE b = E'\\\\\n' FOR UPDATE", "Plans": [
            {"Node Type": "Foreign Scan", "Relation Name": "ft_1", "Schema": "other", "Remote SQL": "SELECT 2"},
            {"Node Type": "Foreign Scan", "Relation Name": "ft_2", "Schema": "pgherd", "Remote SQL": "SELECT 1"}]}}]"#;
        assert_eq!(remote_queries(plan), ["SELECT \"A\" FROM t WHERE b = E'\\\\\n' FOR UPDATE", "SELECT 1"]);
    }
}
