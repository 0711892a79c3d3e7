//! A SELECT in parts: the rows of each part are kept in the router and go with the rest of the statement to the servers
//! that run it, as arrays of text that have there the types that the coordinator says the part has.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use pgherd_catalog::hash::{Hashed, KeyType};
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Resolved, Snapshot, Table, TableKind};
use pgherd_planner::{Combine, Merge, Plan, Rest, Scatter, Ship, Stage, Step};
use pgherd_sql::{Part, Splice, Statement};
use pgherd_wire::backend::{self, FieldDescription};
use pgherd_wire::frame::Frame;

use super::combine::{TEXT_ARRAY_OID, UNNAMED, with_collations};
use super::partials::TextArray;
use super::request::{Errors, Request, Rows};
use super::{Call, Completion, fields_of};
use crate::describe::{Described, same_columns};
use crate::error::{Failure, Result};
use crate::session::{Bound, Prepared, Session, next_id};
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::{Block, PARTS};

/// Rows of one statement's parts kept in memory at the most; more of them go through the coordinator's foreign tables.
const MEMORY_MAX: usize = 128 << 20;
/// The same for all statements of the router.
const ALL_MEMORY_MAX: usize = 1 << 30;
/// With more rows in parts than this servers join by hash.
const AVOIDED_FROM: usize = 2_000;
/// So many values go as an array that a server looks up; it estimates each of them by itself.
const LOOKED_UP_MAX: usize = 1_000;
/// In such steps it is counted.
const MEMORY_STEP: usize = 1 << 20;
/// What a server takes as one parameter is less than this.
const ARRAY_MAX: usize = 64 << 20;

/// Bytes of all statements' parts.
static ALL_MEMORY: AtomicUsize = AtomicUsize::new(0);

/// A share of the memory for parts, given back when it is dropped.
#[derive(Default)]
struct Share(usize);

impl Share {
    /// False: there is no more.
    fn grow(&mut self) -> bool {
        self.0 += MEMORY_STEP;
        ALL_MEMORY.fetch_add(MEMORY_STEP, Ordering::Relaxed) + MEMORY_STEP <= ALL_MEMORY_MAX
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        ALL_MEMORY.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Rows that are not for the client: [`crate::client::Client`] hands them here.
pub struct Capture {
    /// One set of columns for everybody, or one for each group of servers.
    sets: Vec<Vec<TextArray>>,
    split: Option<Split>,
    rows: usize,
    bytes: usize,
    bytes_max: usize,
    share: Share,
    counts_only: bool,
    /// As they came, where their sets are found later.
    raw: Option<Vec<Bytes>>,
    /// They were too many, or cannot be split here. The rest is not kept.
    pub lost: bool,
}

struct Split {
    column: usize,
    table: Arc<Table>,
    /// The column's type, where it is not the key's.
    type_oid: u32,
    /// The value becomes a key, which must not change it.
    stored: bool,
    groups: Vec<GroupId>,
}

impl Split {
    /// Which set a row belongs to; none where only a server could tell.
    fn set_of(&self, value: Option<&[u8]>) -> Option<usize> {
        let TableKind::Distributed { key_type, .. } = &self.table.kind else { return None };
        let remainder = match value {
            None => 0,
            Some(value) => match self.hash(key_type, value)? {
                Hashed::Value(hash) => {
                    pgherd_catalog::hash::remainder(hash, self.table.shards().len().max(1) as u32) as usize
                }
                Hashed::AskServer => return None,
            },
        };
        let group = self.table.shards().get(remainder)?.group;
        self.groups.iter().position(|g| *g == group)
    }

    fn hash(&self, key_type: &KeyType, value: &[u8]) -> Option<Hashed> {
        let read_as = key_type.for_parameter(self.type_oid)?;
        if !self.stored {
            return Some(read_as.hash_text(value));
        }
        let typmod = self.table.key_column()?.typmod;
        Some(read_as.hash_text_stored(value, typmod))
    }

    /// Values of this type are hashed as keys are; none of them is another key once it is stored.
    fn is_hashed(table: &Table, type_oid: u32, stored: bool) -> bool {
        let TableKind::Distributed { key_type, .. } = &table.kind else { return false };
        let same = || {
            let read_as = key_type.for_parameter(type_oid);
            read_as == Some(*key_type) || matches!(read_as, Some(KeyType::Int2 | KeyType::Int4 | KeyType::Int8))
        };
        // What is stored as cidr loses its host bits.
        let cut = || *key_type == KeyType::Inet && table.key_column().is_none_or(|key| key.type_oid != type_oid);
        key_type.for_parameter(type_oid).is_some() && (!stored || same() && !cut())
    }
}

impl Capture {
    fn new(columns: usize, split: Option<Split>, bytes_max: usize) -> Capture {
        let sets = split.as_ref().map_or(1, |s| s.groups.len());
        let set = || (0..columns).map(|_| TextArray::default()).collect();
        Capture {
            sets: (0..sets).map(|_| set()).collect(),
            split,
            rows: 0,
            bytes: 0,
            bytes_max,
            share: Share::default(),
            counts_only: false,
            raw: None,
            lost: false,
        }
    }

    /// All rows for everybody.
    pub fn rows(columns: usize, bytes_max: usize) -> Capture {
        Capture::new(columns, None, bytes_max)
    }

    /// The columns of all rows; none where they were too many.
    pub fn into_arrays(mut self) -> Option<Vec<Bytes>> {
        if self.lost {
            return None;
        }
        Some(self.sets.pop()?.into_iter().map(TextArray::finish).collect())
    }

    /// Rows as they come.
    pub fn raw() -> Capture {
        Capture { raw: Some(Vec::new()), ..Capture::new(0, None, usize::MAX) }
    }

    pub fn into_rows(mut self) -> Vec<Bytes> {
        self.raw.take().unwrap_or_default()
    }

    pub fn into_row(mut self) -> Result<Vec<Option<Bytes>>> {
        match self.raw.take().and_then(|rows| rows.into_iter().next()) {
            Some(raw) => fields_of(&Frame { raw }),
            None => Ok(Vec::new()),
        }
    }

    /// Only counts.
    pub fn count() -> Capture {
        Capture { counts_only: true, ..Capture::new(0, None, usize::MAX) }
    }

    /// Rows and their bytes.
    pub fn size(&self) -> (usize, usize) {
        (self.rows, self.bytes)
    }

    /// Takes a DataRow.
    pub fn push(&mut self, frame: &Frame) {
        if self.lost {
            return;
        }
        self.rows += 1;
        self.bytes += frame.raw.len();
        if self.counts_only {
            return;
        }
        let has_room = self.bytes <= self.share.0 || self.share.grow();
        if self.bytes > self.bytes_max || !has_room || self.keep(frame).is_none() {
            self.lost = true;
            self.sets.clear();
            self.raw = None;
        }
    }

    fn keep(&mut self, frame: &Frame) -> Option<()> {
        if let Some(raw) = &mut self.raw {
            raw.push(frame.raw.clone());
            return Some(());
        }
        let set = match &self.split {
            None => 0,
            Some(split) => {
                let value = backend::parse_data_row(frame).ok()?.nth(split.column)?.ok()?;
                split.set_of(value)?
            }
        };
        for (column, value) in self.sets.get_mut(set)?.iter_mut().zip(backend::parse_data_row(frame).ok()?) {
            column.push(value.ok()?);
        }
        Some(())
    }
}

/// The rows of a statement's parts as parameters of the rest.
#[derive(Default)]
pub struct Staged {
    /// How many values the client has given, which come first.
    own: usize,
    pub(super) sources: Vec<PartSource>,
    /// Values behind the client's own: for everybody, or one for each group in the order of `groups`.
    pub(super) values: Vec<Vec<Bytes>>,
    pub(super) groups: Vec<GroupId>,
    /// Rows and bytes of each part.
    sizes: Vec<(usize, usize)>,
    /// Rows that are to be changed where they are.
    placed: u64,
    /// Those that the workers have as tables, which are named so.
    pub(super) tables: Vec<Option<String>>,
    /// Those whose rows the rest does not read on the workers,
    unread_on_workers: Vec<usize>,
    /// and those it does not read on the coordinator.
    unread_on_coordinator: Vec<usize>,
    shares: Vec<Share>,
}

/// How a part's rows are read from its arrays.
pub(super) struct PartSource {
    described: Rc<Described>,
    /// Of the columns that the rest has: a last one may be missing.
    pub(super) casts: Vec<String>,
    /// Of its columns in `Staged::values`.
    pub(super) first: usize,
}

impl PartSource {
    pub(super) fn fields(&self) -> &[FieldDescription] {
        let fields = self.described.fields.as_deref().unwrap_or_default();
        fields.get(..self.casts.len()).unwrap_or_default()
    }
}

impl Staged {
    /// Types of the parameters behind the client's own.
    pub fn types(&self) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().map(|_| TEXT_ARRAY_OID)
    }

    /// Rows of a part and their bytes.
    pub fn size_of(&self, part: usize) -> Option<(usize, usize)> {
        self.sizes.get(part).copied()
    }

    pub fn fill(&self, text: &str) -> String {
        fill_markers(text, |part, _| {
            let source = self.sources.get(part)?;
            Some(format!("({})", select_of(source.fields(), &source.casts, self.own + source.first)))
        })
    }

    /// The same for the workers.
    pub fn fill_on_workers(&self, text: &str) -> String {
        let with_tables = fill_markers(text, |part, _| match self.tables.get(part) {
            Some(Some(table)) => Some(format!("(SELECT * FROM pg_temp.{table})")),
            _ => Some(format!("{{{{stage {}}}}}", part + 1)),
        });
        self.fill(&with_tables)
    }

    /// What is split is for workers only: a server that is none of them has no rows of it.
    pub(super) fn value_of(&self, values: &[Bytes], at: Option<usize>) -> Bytes {
        let value = if values.len() == 1 { values.first() } else { at.and_then(|at| values.get(at)) };
        value.cloned().unwrap_or_else(|| super::combine::text_array(&[]))
    }

    /// The text of a part that reads those before it, and their arrays for it behind the client's values. They are all
    /// there is of them, wherever their rows go.
    fn fill_part(&self, text: &str) -> (String, Vec<Bytes>) {
        let mut arrays: Vec<Bytes> = Vec::new();
        let text = fill_markers(&self.fill_names(text), |part, column| {
            let source = self.sources.get(part)?;
            let values = self.values.get(source.first..source.first + source.fields().len())?;
            let sets = values.first().map_or(0, Vec::len);
            let mut param = |column: usize, set: usize| {
                arrays.push(values[column][set].clone());
                self.own + arrays.len()
            };
            let few = self.sizes.get(part).is_none_or(|(rows, _)| *rows <= LOOKED_UP_MAX);
            if let Some(column) = column
                && few
                && let cast = source.casts.get(column)?
                && !cast.starts_with(UNNAMED)
            {
                let params: Vec<String> =
                    (0..sets).map(|set| format!("${}::pg_catalog.text[]", param(column, set))).collect();
                return Some(format!("({})::{cast}[]", params.join(" || ")));
            }
            let columns = column.map_or(0..values.len(), |column| column..column + 1);
            let (fields, casts) = (source.fields().get(columns.clone())?, source.casts.get(columns.clone())?);
            let mut selects = Vec::new();
            for set in 0..sets {
                let first = columns.clone().map(|column| param(column, set)).min().unwrap_or(1);
                selects.push(select_of(fields, casts, first - 1));
            }
            let all = selects.join(" UNION ALL ");
            // Behind ANY the brackets are there.
            Some(if column.is_some() { all } else { format!("({all})") })
        });
        (text, arrays)
    }

    /// Puts names of columns in place of `{{stage 1 from 5}}`.
    fn fill_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (number, source) in (1..).zip(&self.sources) {
            let names: Vec<String> = source.fields().iter().map(|f| quote_ident(&f.name)).collect();
            for first in 1..=names.len() {
                let marker = format!("{{{{stage {number} from {first}}}}}");
                if text.contains(&marker) {
                    text = text.replace(&marker, &names[first - 1..].join(", "));
                }
            }
        }
        text
    }

    /// What servers do not join by. Parts' rows have no index, and those that came as parameters no statistics: with
    /// many of them a nested loop or a merge that seems cheap can take for ever, a hash join cannot. Of those in tables
    /// they take hash joins by several columns for much worse than they are: as full of duplicates as one column.
    pub fn avoided(&self) -> &'static [&'static str] {
        let read = |part: &usize| !self.unread_on_workers.contains(part);
        let rows: usize = (0..self.sizes.len()).filter(read).map(|part| self.sizes[part].0).sum();
        if rows > AVOIDED_FROM { &["enable_nestloop", "enable_mergejoin"] } else { &[] }
    }

    fn fill_splice(&self, splice: &Splice, fill: impl Fn(&str) -> String) -> Splice {
        let mut filled = Splice::default();
        for part in &splice.parts {
            match part {
                // Only made text has parts in it.
                Part::Text { text, origin: None } => filled.push_text(&fill(text), None),
                other => filled.parts.push(other.clone()),
            }
        }
        filled
    }

    /// The client's values and those of the parts, for one server.
    pub fn bound(&self, own: Option<&Bound>, group: GroupId) -> Bound {
        let at = self.groups.iter().position(|g| *g == group);
        let mut arrays: Vec<Bytes> = self.values.iter().map(|values| self.value_of(values, at)).collect();
        let is_table = |part: &usize| self.tables.get(*part).is_some_and(Option::is_some);
        let spared: Vec<usize> = match at {
            // It has tables already.
            Some(_) => (0..self.sources.len()).filter(|p| is_table(p) || self.unread_on_workers.contains(p)).collect(),
            None => self.unread_on_coordinator.clone(),
        };
        for source in spared.into_iter().map(|part| &self.sources[part]) {
            arrays[source.first..source.first + source.fields().len()].fill(super::combine::text_array(&[]));
        }
        with_arrays(own, arrays)
    }

    /// Looks which parts the texts of the rest name.
    fn look_what_is_read(&mut self, rest: &Rest) {
        let unread = |text: &str| (0..self.sources.len()).filter(|part| !names_part(text, *part)).collect();
        let (on_workers, on_coordinator) = match rest {
            Rest::Scatter(scatter) => {
                let merge = match &scatter.combine {
                    Combine::Merge(merge) => merge.sql.as_str(),
                    _ => "",
                };
                (unread(&scatter.sql.as_written()), unread(merge))
            }
            Rest::Coordinator(_) | Rest::Steps(_) => (Vec::new(), Vec::new()),
        };
        (self.unread_on_workers, self.unread_on_coordinator) = (on_workers, on_coordinator);
    }
}

impl Session {
    /// `fresh`: nothing else is in this transaction, so that it can be begun again.
    pub(super) async fn run_stage(
        &mut self,
        call: &Call<'_>,
        plan: &Rc<Plan>,
        stage: &Stage,
        fresh: bool,
    ) -> Result<Completion> {
        self.stage_with(call, plan, stage, fresh, true).await
    }

    /// `tables`: the workers may have temporary ones.
    async fn stage_with(
        &mut self,
        call: &Call<'_>,
        plan: &Rc<Plan>,
        stage: &Stage,
        fresh: bool,
        tables: bool,
    ) -> Result<Completion> {
        // Values pass as text: settings that shorten or reorder it would change the result.
        if !plan.writes && (self.has_styles() || call.max_rows > 0) {
            return self.not_in_parts(call, plan).await;
        }
        if plan.writes {
            // What PostgreSQL finds wrong with it comes first.
            if call.bound.is_none() {
                self.described(call.prepared).await?;
            }
            // What only this session has can be described in its transaction alone.
            if self.has_own_definitions() {
                self.open_implicit_block();
            }
        }
        if !self.check_stage(call, plan, stage).await? {
            return match &stage.otherwise {
                Some(otherwise) => Box::pin(self.stage_with(call, plan, otherwise, fresh, tables)).await,
                None => self.not_in_parts(call, plan).await,
            };
        }
        self.open_implicit_block();
        if let (Rest::Steps(_), Some(statement)) = (&stage.rest, &call.prepared.statement) {
            self.check_functions_of_merge(statement).await?;
        }
        // What stands in a pipeline, or in one Query with others, is in a block of ours by now.
        let own = fresh
            // Who writes waits for others, and goes on with what they have written.
            && !plan.writes
            && self.txn.participants.is_empty()
            && !self.settings.contains_key("default_transaction_isolation");
        if own {
            // All parts and the rest see one snapshot of each server.
            self.txn.begin = "BEGIN ISOLATION LEVEL REPEATABLE READ".to_owned();
        }
        let mark = self.client.mark();
        let catalog = self.catalog();
        // What was done before in this transaction stays, whatever parts say.
        // Behind a savepoint, postgres_fdw opens that one's on the workers inside of ours, and would miss it later.
        let goes_back =
            !fresh && !plan.writes && self.parts_within == 0 && self.is_complete() && !self.has_savepoints();
        if goes_back {
            self.savepoint(PARTS);
        }
        let parts = self.run_parts(call, stage).await;
        if goes_back && parts.is_ok() {
            self.drop_savepoint(PARTS).await?;
        }
        let mut staged = match parts {
            // Shards that have moved meanwhile are elsewhere than the plan has them.
            Ok(Some(_)) if plan.writes && !same_places(plan, &catalog, &self.catalog()) => {
                if stage.parts.iter().any(|part| self.acts(&part.sql)) {
                    return Err(Failure::new("40001", "shards have moved while the statement was run")
                        .hint("Run the transaction again."));
                }
                return Box::pin(self.run_plan_once(call)).await;
            }
            Ok(Some(staged)) if same_places(plan, &catalog, &self.catalog()) => staged,
            Ok(_) => {
                return match &stage.otherwise {
                    Some(otherwise) if !stage.parts.iter().any(|part| self.acts(&part.sql)) => {
                        Box::pin(self.stage_with(call, plan, otherwise, fresh, tables)).await
                    }
                    _ => self.not_in_parts(call, plan).await,
                };
            }
            // A part may fail where the statement does not need its rows, and its positions are its own.
            Err(failure) if fresh && !plan.writes && is_the_parts_own(&failure) && self.client.mark() == mark => {
                self.rollback().await;
                return self.federate(call).await;
            }
            Err(failure) if goes_back && is_the_parts_own(&failure) && self.client.mark() == mark => {
                self.rollback_to_savepoint(PARTS).await?;
                self.drop_savepoint(PARTS).await?;
                return self.federate(call).await;
            }
            Err(failure) => {
                // PostgreSQL has described the rows when it finds what is wrong with a value.
                if call.describes() && matches!(failure.sqlstate().get(..2), Some("21" | "22")) {
                    let described = self.described(call.prepared).await?;
                    if let Some(fields) = &described.fields {
                        backend::write_row_description(&mut self.client.out, fields);
                    }
                }
                // A position would count in the part's text.
                return Err(failure.without(b'P'));
            }
        };
        if own && tables && self.parts_within == 0 {
            match self.keep_in_tables(call, stage, &mut staged).await {
                Ok(()) => {}
                // It may not make tables, or not here. What the parts have read is of the snapshot that is gone.
                Err(Failure::Statement(fields)) if fields.sqlstate() != "57014" => {
                    tracing::debug!("no tables for parts: {}", fields.message());
                    self.rollback().await;
                    return Box::pin(self.stage_with(call, plan, stage, fresh, false)).await;
                }
                Err(failure) => return Err(failure),
            }
        }
        staged.look_what_is_read(&stage.rest);
        let call = Call { staged: Some(&staged), ..*call };
        match &stage.rest {
            Rest::Scatter(scatter) => {
                let combine = match &scatter.combine {
                    Combine::Merge(merge) => Combine::Merge(Merge { sql: staged.fill(&merge.sql), ..merge.clone() }),
                    other => other.clone(),
                };
                let filled = Scatter {
                    sql: staged.fill_splice(&scatter.sql, |text| staged.fill_on_workers(text)),
                    combine,
                    ..scatter.clone()
                };
                self.run_scatter(&call, plan, &filled, 0).await
            }
            Rest::Coordinator(sql) => {
                let sql = staged.fill_splice(sql, |text| staged.fill(text));
                self.run_coordinator_plan(&call, &sql, false, true).await
            }
            Rest::Steps(steps) => self.run_actions(&call, plan, &staged, steps).await,
        }
    }

    /// Its functions must not miss what it has changed so far.
    async fn check_functions_of_merge(&mut self, statement: &Statement) -> Result<()> {
        let pgherd_sql::ast::Tree::Merge(merge) = &statement.tree else { return Ok(()) };
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let Resolved::Table(table) = catalog.resolve(merge.target.schema.as_deref(), &merge.target.name, &path) else {
            return Ok(());
        };
        // Of the rows that it inserts, too.
        let defaults = table.columns.iter().filter_map(pgherd_planner::default_sql);
        if self.may_see_changes(statement, table, defaults).await? {
            return Err(Failure::refused(format!("cannot run MERGE into the distributed table \"{}\"", table.name))
                .detail("A volatile function that it calls may read what the statement has changed so far.")
                .hint("Declare the function STABLE, or run it in steps."));
        }
        Ok(())
    }

    /// A MERGE's actions, each kind by a statement of its own.
    async fn run_actions(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        staged: &Staged,
        steps: &[Step],
    ) -> Result<Completion> {
        let own = self.param_types(call).await?;
        let mut rows = 0;
        for step in steps {
            let (step, counts) = match step {
                Step::Planned(step) => (step, true),
                Step::Moved(step) => (step, false),
                Step::Workers(scatter) => {
                    rows += self.change_rows(call, plan, staged, scatter).await?;
                    continue;
                }
            };
            let (sql, arrays) = staged.fill_part(step);
            let types: Vec<u32> = own.iter().copied().chain(arrays.iter().map(|_| TEXT_ARRAY_OID)).collect();
            let Some(statement) = pgherd_sql::split(&sql).ok().and_then(|mut s| s.pop()) else {
                return Err(Failure::new("XX000", "a step of a MERGE does not parse"));
            };
            let bound = with_arrays(call.bound, arrays);
            let call = Call { bound: Some(&bound), staged: None, ..*call };
            self.parts_within += 1;
            let result = self.run_captured(&call, statement, types, Capture::count()).await;
            self.parts_within -= 1;
            // A position would count in the step's text.
            let (completion, _) = result.map_err(|failure| failure.without(b'P'))?;
            rows += if counts { count_of(&completion) } else { 0 };
        }
        Ok(Completion::Tag(format!("MERGE {rows}")))
    }

    /// The changes of rows that a part names by their places.
    async fn change_rows(&mut self, call: &Call<'_>, plan: &Plan, staged: &Staged, scatter: &Scatter) -> Result<u64> {
        if staged.placed == 0 {
            return Ok(0);
        }
        let sql = staged.fill_splice(&scatter.sql, |text| staged.fill(text));
        let filled = Scatter { sql, ..scatter.clone() };
        let rows = count_of(&self.run_scatter(call, plan, &filled, 0).await?);
        // Another transaction has changed a row since. A trigger or policy may leave one out.
        let table = &scatter.table;
        if rows < staged.placed && !table.has_triggers && !table.row_security {
            return Err(Failure::new("40001", "could not serialize access due to concurrent update"));
        }
        Ok(rows)
    }

    /// Rows that name others by what the coordinator was told of their places: each goes to where that one is.
    fn bring_to_places(
        &mut self,
        mut capture: Capture,
        columns: usize,
        place: usize,
        table: &Arc<Table>,
    ) -> Result<(Capture, u64)> {
        let catalog = self.catalog();
        let groups = self.catalog().worker_groups();
        let mut sets: Vec<Vec<TextArray>> =
            groups.iter().map(|_| (0..columns).map(|_| TextArray::default()).collect()).collect();
        let mut placed = 0;
        for raw in capture.raw.take().unwrap_or_default() {
            let mut fields = fields_of(&Frame { raw })?;
            let mut set = 0;
            if let Some(Some(name)) = fields.get(place) {
                let unknown = || Failure::new("XX000", "a row of a distributed table is not known by this name");
                let (group, row) = self.cursors.row(&catalog, table, name).ok_or_else(unknown)?;
                set = groups.iter().position(|g| *g == group).ok_or_else(unknown)?;
                fields[place] = Some(Bytes::from(row));
                placed += 1;
            }
            for (column, value) in sets[set].iter_mut().zip(&fields) {
                column.push(value.as_deref());
            }
        }
        capture.sets = sets;
        Ok((capture, placed))
    }

    /// The general way of a statement that cannot be run in parts after all. A MERGE has none.
    async fn not_in_parts(&mut self, call: &Call<'_>, plan: &Plan) -> Result<Completion> {
        match plan.writes {
            false => self.federate(call).await,
            true => Err(Failure::refused("cannot run this MERGE with its source sent to the workers")
                .detail("The source has too many rows, or values whose place or type cannot be told here.")
                .hint("Join on the distribution columns of colocated tables, or use INSERT … ON CONFLICT or UPDATE.")),
        }
    }

    /// The texts of parts and rest are the user's with some of it replaced: before anything is run the coordinator says
    /// whether they still are statements, and give the same columns. (A table that is replaced has no primary key any
    /// more that others of its columns would depend on; a literal in a subquery of its own has another type.)
    async fn check_stage(&mut self, call: &Call<'_>, plan: &Plan, stage: &Stage) -> Result<bool> {
        if !plan.writes && self.has_own_definitions() {
            return Ok(false);
        }
        let types = self.param_types(call).await?;
        let Some(staged) = self.without_rows(call, stage).await? else { return Ok(false) };
        let filled = Call { staged: Some(&staged), ..*call };
        let (sql, whole) = match &stage.rest {
            Rest::Steps(steps) => {
                for step in steps {
                    let (sql, arrays) = staged.fill_part(&step.text());
                    let types: Vec<u32> = types.iter().copied().chain(arrays.iter().map(|_| TEXT_ARRAY_OID)).collect();
                    if self.described_beside(&sql, &types).await?.is_none() {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Rest::Scatter(scatter) => (&scatter.sql, !matches!(scatter.combine, Combine::Merge(_))),
            Rest::Coordinator(sql) => (sql, true),
        };
        let rest = filled.fill(&sql.as_written());
        let Some(rest) = self.described_beside(&rest, &filled.with_staged(&types)).await? else { return Ok(false) };
        let described = self.described(call.prepared).await?;
        if !whole {
            return Ok(true);
        }
        Ok(same_columns(&rest.fields, &described.fields))
    }

    /// Definitions or temporary tables that nobody else sees.
    fn has_own_definitions(&self) -> bool {
        self.txn.catalog.is_some() || !self.temp.is_empty()
    }

    /// What the coordinator says of a text, asked once; the text may be wrong. None: it is. Where the coordinator takes
    /// part in the transaction it is asked there, under a savepoint: beside it one would wait for the transaction's own
    /// locks.
    async fn described_beside(&mut self, sql: &str, types: &[u32]) -> Result<Option<Rc<Described>>> {
        let key = self.statement_key(sql, types).await?;
        if let Some(key) = &key
            && let Some((_, described)) = self.thread.merges.borrow_mut().get(key)
        {
            return Ok(Some(described));
        }
        let takes_part = self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(|p| p.in_block)
            || self.has_own_definitions() && self.txn.block != Block::None;
        let described = match takes_part {
            false => self.describe_text_aside(sql, types).await,
            true => {
                self.join(COORDINATOR_GROUP).await?;
                self.collect_on(COORDINATOR_GROUP, "SAVEPOINT pgherd_stage").await?;
                let described = self.describe_on_coordinator(sql, types).await;
                let undo = if described.is_err() { "ROLLBACK TO pgherd_stage; " } else { "" };
                self.collect_on(COORDINATOR_GROUP, &format!("{undo}RELEASE pgherd_stage")).await?;
                described
            }
        };
        let described = match described {
            Ok(described) => Rc::new(described),
            Err(Failure::Statement(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        if let Some(key) = key {
            self.thread.merges.borrow_mut().insert(key, (next_id(), described.clone()));
        }
        Ok(Some(described))
    }

    /// Runs the parts one after another. None: they cannot be sent with the rest.
    pub(super) async fn run_parts(&mut self, call: &Call<'_>, stage: &Stage) -> Result<Option<Staged>> {
        self.stage_parts(call, stage, true).await
    }

    /// Stands for the parts where the rest is only explained.
    pub(super) async fn without_rows(&mut self, call: &Call<'_>, stage: &Stage) -> Result<Option<Staged>> {
        self.stage_parts(call, stage, false).await
    }

    async fn stage_parts(&mut self, call: &Call<'_>, stage: &Stage, run: bool) -> Result<Option<Staged>> {
        let types = self.param_types(call).await?;
        let own = call.bound.map_or(0, |b| b.params.len());
        let mut staged = Staged { own, groups: self.catalog().worker_groups(), ..Staged::default() };
        let mut room = MEMORY_MAX;
        let plainly = self.has_styles();
        for part in &stage.parts {
            let (sql, arrays) = staged.fill_part(&part.sql);
            let types: Vec<u32> = types.iter().copied().chain(arrays.iter().map(|_| TEXT_ARRAY_OID)).collect();
            let Some(described) = self.described_beside(&sql, &types).await? else { return Ok(None) };
            let Some(fields) = &described.fields else { return Ok(None) };
            if fields.iter().any(|f| f.name.contains("{{")) {
                return Ok(None);
            }
            let Some(mut casts) = self.casts(COORDINATOR_GROUP, fields).await? else { return Ok(None) };
            let collations = match stage.collated {
                true => self.collations(COORDINATOR_GROUP, &sql, &types, call.bound, fields).await?,
                false => Some(vec![None; fields.len()]),
            };
            let Some(collations) = collations else { return Ok(None) };
            let Some(ship) = ship_of(&part.ship, fields, &collations) else { return Ok(None) };
            casts = with_collations(casts, &collations);
            match part.ship {
                Ship::SplitByLast { .. } => {
                    casts.pop();
                }
                Ship::ByPlace { column, .. } => casts[column] = "pg_catalog.text".to_owned(),
                Ship::Everywhere | Ship::Split { .. } => {}
            }
            let sql = match plainly && run {
                true if modifies(&sql) => return Ok(None),
                true => with_plain_text(&sql, fields),
                false => sql,
            };
            let capture = match run {
                true => {
                    let reads = !arrays.is_empty();
                    let bound = reads.then(|| with_arrays(call.bound, arrays));
                    let call = Call { bound: bound.as_ref().or(call.bound), ..*call };
                    let avoided = if reads { staged.avoided() } else { &[] };
                    let before = std::mem::replace(&mut self.part_avoids, avoided);
                    let mut empty = Capture::new(casts.len(), self.split_of(&ship), room);
                    empty.raw = matches!(part.ship, Ship::ByPlace { .. }).then(Vec::new);
                    let captured = self.capture_part(&call, &sql, &types, empty).await;
                    self.part_avoids = before;
                    captured?
                }
                false => Some(Capture::new(casts.len(), None, 0)),
            };
            let Some(mut capture) = capture else { return Ok(None) };
            if let Ship::ByPlace { column, table } = &part.ship {
                (capture, staged.placed) = self.bring_to_places(capture, casts.len(), *column, table)?;
            }
            room = room.saturating_sub(capture.bytes);
            staged.sizes.push(capture.size());
            staged.shares.push(capture.share);
            let mut columns: Vec<Vec<Bytes>> = casts.iter().map(|_| Vec::new()).collect();
            let first = staged.values.len();
            staged.sources.push(PartSource { described, casts, first });
            for set in capture.sets {
                for (values, array) in columns.iter_mut().zip(set) {
                    let array = array.finish();
                    if array.len() > ARRAY_MAX {
                        return Ok(None);
                    }
                    values.push(array);
                }
            }
            staged.values.extend(columns);
        }
        Ok(Some(staged))
    }

    fn split_of(&self, ship: &Shipping) -> Option<Split> {
        let (column, table, type_oid, stored) = ship.as_ref()?;
        let groups = self.catalog().worker_groups();
        Some(Split { column: *column, table: table.clone(), type_oid: *type_oid, stored: *stored, groups })
    }

    /// A part that must not be run twice: it modifies rows, or calls functions of users.
    fn acts(&self, sql: &str) -> bool {
        let catalog = self.catalog();
        let calls = |s: &Statement| s.calls.iter().any(|(_, name)| catalog.user_functions.contains(name));
        pgherd_sql::split(sql).map_or(true, |list| list.iter().any(|s| s.has_modifying || calls(s)))
    }

    /// The collations of the columns that a text gives, asked before anything is run.
    pub(super) async fn collations_beside(
        &mut self,
        sql: &str,
        types: &[u32],
        bound: Option<&Bound>,
    ) -> Result<Option<Vec<Option<String>>>> {
        let Some(described) = self.described_beside(sql, types).await? else { return Ok(None) };
        let Some(fields) = &described.fields else { return Ok(None) };
        self.join(COORDINATOR_GROUP).await?;
        if self.have_own_collations(COORDINATOR_GROUP, fields).await? {
            return Ok(None);
        }
        self.collations(COORDINATOR_GROUP, sql, types, bound, fields).await
    }

    /// Some of these columns are of users' types that sort by a collation.
    pub(super) async fn have_own_collations(&mut self, group: GroupId, fields: &[FieldDescription]) -> Result<bool> {
        let own = fields.iter().filter(|field| field.type_oid >= FIRST_USER_OID);
        let own: Vec<String> = own.map(|field| field.type_oid.to_string()).collect();
        if own.is_empty() {
            return Ok(false);
        }
        let sql = format!(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_type WHERE oid IN ({}) AND typcollation <> 0)",
            own.join(", ")
        );
        Ok(self.collect_on(group, &sql).await?.text(0, 0) == Some("t"))
    }

    /// The collations of a query's columns, as names in SQL; none for those of their types. The text is planned and not
    /// run. None: they cannot be told.
    pub(super) async fn collations(
        &mut self,
        group: GroupId,
        sql: &str,
        types: &[u32],
        bound: Option<&Bound>,
        fields: &[FieldDescription],
    ) -> Result<Option<Vec<Option<String>>>> {
        let collatable = collatable(fields);
        if collatable.is_empty() {
            return Ok(Some(vec![None; fields.len()]));
        }
        let modifies = modifies(sql);
        if modifies && collatable.iter().any(|at| fields[*at].table_oid == 0) {
            return Ok(None);
        }
        let key = self.statement_key(sql, types).await?;
        if let Some(key) = &key
            && let Some(known) = self.thread.collations.borrow_mut().get(key)
        {
            return Ok(Some(known.to_vec()));
        }
        let asked = |at: &usize| {
            // It is nothing that can stand in FROM; what it gives is of tables.
            format!(
                "(SELECT attcollation::pg_catalog.regcollation FROM pg_catalog.pg_attribute \
                 WHERE attrelid = {} AND attnum = {})",
                fields[*at].table_oid, fields[*at].column_id
            )
        };
        let question = match modifies {
            true => Some(format!("SELECT {}", collatable.iter().map(asked).collect::<Vec<_>>().join(", "))),
            false => collation_question(sql, fields),
        };
        let Some(question) = question else { return Ok(None) };
        let nulls = Bound { params: vec![None; types.len()], ..Bound::default() };
        // The planner computes with values what is constant then.
        let bound = bound.filter(|bound| bound.params.len() == types.len()).cloned().unwrap_or(nulls);
        let bound = Bound { result_formats: Vec::new(), ..bound };
        let request = Request { param_types: types, bound: Some(&bound), ..Request::text(question) };
        self.open_implicit_block();
        self.join(group).await?;
        let mut kept = Vec::new();
        self.run_request(group, &request, Rows::Keep(&mut kept), Errors::default()).await?;
        let Some(raw) = kept.pop() else { return Ok(None) };
        let Some(found) = collations_of(fields, &fields_of(&Frame { raw })?) else { return Ok(None) };
        if !self.may_name(group, &found).await? {
            return Ok(None);
        }
        if let Some(key) = key {
            self.thread.collations.borrow_mut().insert(key, found.clone().into());
        }
        Ok(Some(found))
    }

    /// Whether the role may name these collations, which a column's may have without that.
    async fn may_name(&mut self, group: GroupId, collations: &[Option<String>]) -> Result<bool> {
        let qualified = collations.iter().flatten().filter(|name| name.contains('.'));
        let names: Vec<String> = qualified.map(|name| quote_literal(name)).collect();
        if names.is_empty() {
            return Ok(true);
        }
        let sql = format!(
            "SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_collation c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace \
             WHERE pg_catalog.format('%I.%I', n.nspname, c.collname) IN ({}) \
               AND NOT pg_catalog.has_schema_privilege(n.oid, 'USAGE'))",
            names.join(", ")
        );
        Ok(self.collect_on(group, &sql).await?.text(0, 0) == Some("t"))
    }

    /// Runs one part like any statement; its rows are kept.
    async fn capture_part(
        &mut self,
        call: &Call<'_>,
        sql: &str,
        types: &[u32],
        capture: Capture,
    ) -> Result<Option<Capture>> {
        let Some(statement) = pgherd_sql::split(sql).ok().and_then(|mut s| s.pop()) else { return Ok(None) };
        self.parts_within += 1;
        let result = self.run_captured(call, statement, types.to_vec(), capture).await;
        self.parts_within -= 1;
        Ok(result?.1.filter(|c| !c.lost))
    }

    /// Runs a statement with the client's own values; its rows are captured. One that is captured may capture itself.
    pub(super) async fn run_captured(
        &mut self,
        call: &Call<'_>,
        statement: Statement,
        types: Vec<u32>,
        capture: Capture,
    ) -> Result<(Completion, Option<Capture>)> {
        let text = statement.text.clone();
        let prepared = Prepared::new(Some(statement), &text, types);
        let bound = call.bound.map_or_else(Bound::default, Bound::for_text);
        let inner = Call { once: true, ..Call::extended(&prepared, &bound, 0, "") };
        let outer = self.client.capture.replace(Box::new(capture));
        let result = Box::pin(self.run_plan_once(&inner)).await;
        let capture = std::mem::replace(&mut self.client.capture, outer);
        Ok((result?, capture.map(|c| *c)))
    }
}

/// The columns of types that have collations.
fn collatable(fields: &[FieldDescription]) -> Vec<usize> {
    (0..fields.len()).filter(|at| is_text(fields[*at].type_oid)).collect()
}

/// A query that tells the collations of another's columns, of those that have any, without running it.
pub(super) fn collation_question(sql: &str, fields: &[FieldDescription]) -> Option<String> {
    let asked: Vec<String> =
        collatable(fields).iter().map(|at| format!("pg_catalog.pg_collation_for(pgherd_p.c{})", at + 1)).collect();
    let names: Vec<String> = (1..=fields.len()).map(|i| format!("c{i}")).collect();
    let (items, names) = (asked.join(", "), names.join(", "));
    // It may end in a comment.
    let question =
        format!("SELECT {items} FROM (SELECT) AS pgherd_o LEFT JOIN ({sql}\n) AS pgherd_p({names}) ON false");
    (!asked.is_empty()).then_some(question)
}

/// Its answer, by column: names in SQL where they are not those of the types. None: it is not determined, and whoever
/// compares values of the column gets an error.
pub(super) fn collations_of(fields: &[FieldDescription], answer: &[Option<Bytes>]) -> Option<Vec<Option<String>>> {
    let mut found = vec![None; fields.len()];
    for (at, name) in collatable(fields).into_iter().zip(answer) {
        let name = String::from_utf8_lossy(name.as_ref()?).into_owned();
        found[at] = Some(name).filter(|name| name != "\"default\"");
    }
    Some(found)
}

/// The rows in a command tag.
fn count_of(completion: &Completion) -> u64 {
    let Completion::Tag(tag) = completion else { return 0 };
    tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// By which column rows are split, like which table, the column's type, and whether it is stored; none: they go
/// everywhere.
type Shipping = Option<(usize, Arc<Table>, u32, bool)>;

/// None: rows cannot be split so.
fn ship_of(ship: &Ship, fields: &[FieldDescription], collations: &[Option<String>]) -> Option<Shipping> {
    let type_of = |column: usize| fields.get(column).map_or(0, |f| f.type_oid);
    match ship {
        Ship::Everywhere | Ship::ByPlace { .. } => Some(None),
        Ship::Split { column, table } => Some(Some((*column, table.clone(), type_of(*column), false))),
        Ship::SplitByLast { table, stored } => {
            let column = fields.len().checked_sub(1)?;
            // Under another collation values that differ may be equal.
            let bytewise = collations.get(column)?.as_deref().is_none_or(|name| matches!(name, "\"C\"" | "\"POSIX\""));
            match bytewise && Split::is_hashed(table, type_of(column), *stored) {
                true => Some(Some((column, table.clone(), type_of(column), *stored))),
                false => (!stored).then_some(None),
            }
        }
    }
}

/// A part has a data-modifying WITH.
fn modifies(sql: &str) -> bool {
    pgherd_sql::split(sql).is_ok_and(|list| list.iter().any(|s| s.has_modifying))
}

/// A part whose values come in a form that the client's styles do not change.
fn with_plain_text(sql: &str, fields: &[FieldDescription]) -> String {
    let list = |item: &dyn Fn(usize) -> String| (1..=fields.len()).map(item).collect::<Vec<_>>().join(", ");
    let values = list(&|i| format!("pgherd.plain_text(pgherd_p.c{i})"));
    format!("SELECT {values} FROM ({sql}) AS pgherd_p({})", list(&|i| format!("c{i}")))
}

/// The plan's tables are where they were. Other definitions may have come meanwhile.
fn same_places(plan: &Plan, before: &Arc<Snapshot>, now: &Arc<Snapshot>) -> bool {
    let same = |table: &Arc<Table>| match (before.by_oid.get(&table.oid), now.by_oid.get(&table.oid)) {
        (Some(before), Some(now)) => before.shards() == now.shards(),
        _ => false,
    };
    Arc::ptr_eq(before, now) || before.worker_groups() == now.worker_groups() && plan.tables.iter().all(same)
}

/// An error that says something of a part's text or values, not of the transaction or a server.
fn is_the_parts_own(failure: &Failure) -> bool {
    matches!(failure.sqlstate().get(..2), Some("21" | "22" | "42"))
}

/// text, varchar, char and arrays of them.
fn is_text(type_oid: u32) -> bool {
    matches!(type_oid, 19 | 25 | 1042 | 1043 | 1003 | 1009 | 1014 | 1015)
}

/// The client's values with arrays behind them.
fn with_arrays(own: Option<&Bound>, arrays: impl IntoIterator<Item = Bytes>) -> Bound {
    let mut bound = own.cloned().unwrap_or_default();
    bound.param_formats = (0..bound.params.len()).map(|i| i16::from(bound.is_binary(i))).collect();
    for array in arrays {
        bound.param_formats.push(1);
        bound.params.push(Some(array));
    }
    bound
}

/// The text has a part's rows in it, or the values of one of its columns.
fn names_part(text: &str, part: usize) -> bool {
    let name = format!("{{{{stage {}", part + 1);
    text.match_indices(&name).any(|(at, _)| !text[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// Replaces `{{stage 1}}`, the rows of the first part, and `{{stage 1.2}}`, the array of its second column.
fn fill_markers(text: &str, mut with: impl FnMut(usize, Option<usize>) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{stage ") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find("}}").map_or(rest.len(), |end| at + end + 2);
        let inner = rest[at..end].trim_start_matches("{{stage ").trim_end_matches("}}");
        let (part, column) = inner.split_once('.').map_or((inner, None), |(part, column)| (part, Some(column)));
        let index = |text: &str| text.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        if let Some(part) = index(part) {
            out.push_str(&with(part, column.and_then(index)).unwrap_or_default());
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// A SELECT that gives a part's rows under their names.
fn select_of(fields: &[FieldDescription], casts: &[String], first_param: usize) -> String {
    let list = |item: &dyn Fn(usize) -> String| (0..fields.len()).map(item).collect::<Vec<_>>().join(", ");
    let items = list(&|i| format!("(pgherd_u.c{})::{} AS {}", i + 1, casts[i], quote_ident(&fields[i].name)));
    let arrays = list(&|i| format!("${}::pg_catalog.text[]", first_param + i + 1));
    let names = list(&|i| format!("c{}", i + 1));
    format!("SELECT {items} FROM unnest({arrays}) AS pgherd_u({names})")
}
