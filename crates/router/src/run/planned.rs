//! SELECT, INSERT, UPDATE, DELETE and MERGE: plan, then carry the plan out.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Snapshot, Table};
use pgherd_planner::{Combine, Now, Plan, Refusal, Route, Scatter, Tier};
use pgherd_sql::ast::Tree;
use pgherd_sql::{Splice, Statement, StatementKind};
use pgherd_wire::frame::Frame;

use super::give::{Draws, draws_of, hides_draws};
use super::request::{Announce, End, Errors, Request, Rows, tells_origin};
use super::routines::lacks_copy;
use super::shard_key::Parameters;
use super::snapshots::name_of_portal;
use super::{Call, Capture, Completion, Staged, fields_of};
use crate::changes::Sight;
use crate::error::{Failure, Result};
use crate::session::{Bound, Progress, Session};
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::Block;

/// Parameters of a statement, and columns of a result.
const PARAMETERS_MAX: usize = 65535;
const COLUMNS_MAX: usize = 1664;
/// PostgreSQL's own `max_parallel_workers_per_gather`.
const PARALLEL_DEFAULT: usize = 2;
/// With more partitions on each server tables are not joined partition by partition: each join has memory of its own.
const PARTITIONWISE_MAX: usize = 16;

impl Session {
    pub(super) async fn run_planned(&mut self, call: &Call<'_>) -> Result<Completion> {
        if call.bound.is_none() && call.prepared.statement.as_ref().is_some_and(|s| s.params > 0) {
            return Box::pin(self.refuse_parameters(call)).await;
        }
        if self.exports_snapshot(call) {
            return Box::pin(self.export_snapshots(call)).await;
        }
        if let Some(statement) = &call.prepared.statement
            && !pgherd_sql::own_calls(statement).is_empty()
            && let Some(completion) = Box::pin(self.run_own(call)).await?
        {
            return Ok(completion);
        }
        if call.prepared.statement.as_ref().is_some_and(|statement| super::current_row::current_of(statement).is_some())
            && let Some(completion) = Box::pin(self.run_current_of(call)).await?
        {
            return Ok(completion);
        }
        let read = self.without_numbers(call).await?;
        // Where no rows come, none are too many: PostgreSQL runs such a statement to its end. JDBC asks for one.
        let limited = call.max_rows > 0 && call.bound.is_some();
        let is_unlimited = limited && self.described(call.prepared).await?.fields.is_none();
        let max_rows = if is_unlimited { 0 } else { call.max_rows };
        let call = &Call { bound: read.as_ref().or(call.bound), max_rows, ..*call };
        if let Some(bound) = self.moments_of(call).await? {
            return self.run_again_if_stale(&Call { bound: Some(&bound), ..*call }).await;
        }
        self.run_again_if_stale(call).await
    }

    /// Parameters that stand for the current time, as one value for all who read them; none: there are none.
    async fn moments_of(&mut self, call: &Call<'_>) -> Result<Option<Bound>> {
        let Some(bound) = call.bound else { return Ok(None) };
        let is_moving = |value: &Option<Bytes>| value.as_deref().is_some_and(pgherd_planner::is_moving_word);
        if !bound.params.iter().any(is_moving) {
            return Ok(None);
        }
        let types = self.param_types(call).await?;
        let mut fixed: Option<Bound> = None;
        for (index, type_oid) in types.iter().enumerate().filter(|(index, _)| !bound.is_binary(*index)) {
            let Some(word) = bound.params.get(index).cloned().flatten() else { continue };
            if pgherd_planner::moving_parameter(&word, *type_oid, Now::ANY).is_none() {
                continue;
            }
            self.open_implicit_block();
            self.join(COORDINATOR_GROUP).await?;
            let now = self.transaction_time().await?;
            let Some(value) = pgherd_planner::moving_parameter(&word, *type_oid, Now::Text(&now)) else { continue };
            let found = self.collect_on(COORDINATOR_GROUP, &format!("SELECT {value}::pg_catalog.text")).await?;
            let value = found.text(0, 0).map(|text| Bytes::copy_from_slice(text.as_bytes()));
            fixed.get_or_insert_with(|| bound.clone()).params[index] = value;
        }
        Ok(fixed)
    }

    async fn run_again_if_stale(&mut self, call: &Call<'_>) -> Result<Completion> {
        let fresh = self.txn.block == Block::None;
        let mark = self.client.mark();
        let result = self.run_plan_once(call).await;
        match result {
            // The catalog was stale: nothing has happened yet, so it is run again with a newer one.
            Err(failure) if fresh && (is_stale(&failure) || lacks_copy(&failure)) && self.client.mark() == mark => {
                self.undo_autocommit().await;
                Box::pin(self.db.reload(&self.thread.shared)).await?;
                self.forget_search_path();
                Box::pin(self.run_plan_once(call)).await
            }
            other => other,
        }
    }

    pub(super) async fn run_plan_once(&mut self, call: &Call<'_>) -> Result<Completion> {
        let fresh = self.txn.block == Block::None;
        let (plan, id) = self.plan(call.prepared).await?;
        if self.in_force("pgherd.fanout").is_some_and(|fanout| fanout == "single")
            && matches!(plan.tier, Tier::Scatter(_) | Tier::Stage(_) | Tier::Federate { .. } | Tier::InsertSelect(_))
        {
            return Err(Failure::new("0A000", "statement needs more than one shard and pgherd.fanout is \"single\"")
                .detail(format!("Reason: {}.", plan.reason)));
        }
        if self.txn.block == Block::Explicit && !plan.locked_copies.is_empty() {
            // As the changes that follow will: who waits for these rows would have the table's lock.
            Box::pin(self.lock_reference_copies(&plan.locked_copies, &[COORDINATOR_GROUP])).await?;
        }
        let given = match plan.given.as_slice() {
            [] => None,
            given => match Box::pin(self.give(call, given)).await? {
                Some(values) => Some(values),
                None => return Box::pin(self.run_without_gifts(call)).await,
            },
        };
        let call = &Call { given: given.as_ref(), ..*call };
        let text = call.prepared.text();
        let is_coordinators = matches!(plan.tier, Tier::Coordinator { .. } | Tier::Federate { .. } | Tier::Refuse(_));
        let lacks_types = !is_coordinators && !self.workers_have_types(call).await?;
        self.take_snapshots_for(&plan).await?;
        let may_draw_there = |statement: &Statement| match &plan.tier {
            _ if lacks_types => self.may_draw_there(statement),
            Tier::Route(_) | Tier::Scatter(_) | Tier::Refuse(_) => false,
            Tier::InsertRows(insert) => {
                insert.needs_coordinator && (self.calls_what_draws(statement) || hides_draws(insert))
            }
            Tier::ReplicateWrite { .. } | Tier::Stage(_) => self.calls_what_draws(statement),
            _ => self.may_draw_there(statement),
        };
        if (self.last_drawn.is_some() || !self.drawn.is_empty())
            && plan.given.is_empty()
            && call.prepared.statement.as_ref().is_some_and(may_draw_there)
        {
            Box::pin(self.doubt_last_drawn()).await?;
        }
        if lacks_types || leaves_no_room(call, &plan) {
            return Box::pin(self.run_federated(&Call { given: None, ..*call }, &plan, &copies_written(&plan))).await;
        }
        let is_whole =
            matches!(plan.tier, Tier::Route(_) | Tier::Coordinator { .. } | Tier::Federate { .. } | Tier::Refuse(_));
        if call.max_rows > 0 && plan.writes && !is_whole {
            return self.run_and_keep(call).await;
        }
        let is_spread = matches!(plan.tier, Tier::Route(_) | Tier::Scatter(_) | Tier::Stage(_));
        if is_spread && !plan.writes && self.gives_numbers(call).await? {
            self.take_snapshots().await?;
            return Box::pin(self.federate(call)).await;
        }
        match &plan.tier {
            Tier::Refuse(refusal) => {
                // What PostgreSQL finds wrong with it comes first.
                if call.bound.is_none() {
                    self.described(call.prepared).await?;
                }
                Err(refuse(refusal))
            }
            Tier::Coordinator { in_block, rides, .. } => {
                if !self.agree_on_time(&plan, COORDINATOR_GROUP).await? {
                    return Box::pin(self.run_plan_once(call)).await;
                }
                self.note_session_calls(call);
                let is_given = !plan.given.is_empty();
                if let Some(statement) = call.prepared.statement.as_ref().filter(|_| !is_given) {
                    self.keep_draws_there(statement);
                }
                let sql = match &plan.tier {
                    Tier::Coordinator { sql, .. } if is_given => sql.clone(),
                    _ => Box::pin(self.coordinator_text(call)).await?,
                };
                let writes = plan.writes || *in_block;
                if writes {
                    self.look_at_readers(call).await?;
                }
                let is_plain =
                    is_given || (*rides || plan.leaves_draws_only) && sql.as_written() == call.prepared.text();
                self.kept_there = (is_plain && call.keeps_on_leases()).then_some(id * 65_536);
                let completion = Box::pin(self.run_coordinator_plan(call, &sql, writes, *in_block)).await;
                self.kept_there = None;
                self.cursors.changes.calls_stable_readers = None;
                if *rides {
                    // It has been proved to draw from nothing.
                } else if !is_given {
                    Box::pin(self.note_run_there(call, &plan, &completion)).await?;
                } else if fresh && matches!(&completion, Err(failure) if failure.sqlstate() == "42501") {
                    // A right to the columns that are named now: the statement itself may need none.
                    self.undo_autocommit().await;
                    return Box::pin(self.run_without_gifts(call)).await;
                }
                if *rides && completion.is_ok() && call.keeps() && is_plain {
                    self.compile(call.prepared, &plan, id);
                }
                completion
            }
            Tier::Federate { copies, .. } => {
                let result = Box::pin(self.run_federated(call, &plan, copies)).await;
                Box::pin(self.note_run_there(call, &plan, &result)).await?;
                result
            }
            Tier::Route(route) => {
                let result = self.run_route(call, &plan, route, id).await;
                // Where an error came before the statement was sent.
                self.await_snapshots().await.and(result)
            }
            Tier::Scatter(scatter) => {
                let result = Box::pin(self.run_scatter(call, &plan, scatter, id)).await;
                if result.is_ok() && call.keeps() {
                    self.compile(call.prepared, &plan, id);
                }
                result
            }
            Tier::Stage(stage) => {
                let result = Box::pin(self.run_stage(call, &plan, stage, fresh)).await;
                if plan.writes {
                    Box::pin(self.note_run_there(call, &plan, &result)).await?;
                }
                result
            }
            Tier::InsertRows(insert) => {
                if insert.needs_coordinator {
                    self.note_session_calls(call);
                }
                let result = Box::pin(self.run_insert_rows(call, &plan, insert)).await;
                let own = if insert.needs_coordinator { draws_of(&insert.table) } else { Vec::new() };
                self.forget_leases_after(call, Draws::Of(&own));
                result
            }
            Tier::InsertSelect(insert) => {
                self.note_session_calls(call);
                let result = Box::pin(self.run_insert_select(call, &plan, insert)).await;
                self.forget_leases_after(call, Draws::Any);
                // What was drawn stays drawn, whatever the workers have found wrong with the rows.
                let noted = Box::pin(self.note_inserted(&draws_of(&insert.table))).await;
                result.and_then(|completion| noted.map(|()| completion))
            }
            Tier::ReplicateWrite { sql, reads } => Box::pin(self.run_replicate(call, &plan, sql, *reads)).await,
            Tier::ReplicateRows { table, sql, returning } => {
                Box::pin(self.run_replicate_rows(call, table, sql, *returning, text)).await
            }
        }
    }

    /// By the plan that needs nothing of the router.
    async fn run_without_gifts(&mut self, call: &Call<'_>) -> Result<Completion> {
        self.gives_nothing = true;
        let result = Box::pin(self.run_plan_once(&Call { given: None, ..*call })).await;
        self.gives_nothing = false;
        result
    }

    /// A write is run to its end, however few of the rows that it returns are wanted now: the others wait in the
    /// portal.
    async fn run_and_keep(&mut self, call: &Call<'_>) -> Result<Completion> {
        let outer = self.client.capture.replace(Box::new(Capture::raw()));
        let result = Box::pin(self.run_plan_once(&Call { max_rows: 0, ..*call })).await;
        let kept = std::mem::replace(&mut self.client.capture, outer);
        match result? {
            Completion::Tag(tag) => {
                let rows = kept.map_or_else(Vec::new, |capture| capture.into_rows());
                self.serve_rows(call.portal, rows.into(), tag, call.max_rows).await
            }
            other => Ok(other),
        }
    }

    pub(super) async fn run_federated(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        copies: &[Arc<Table>],
    ) -> Result<Completion> {
        self.note_session_calls(call);
        let sql = self.coordinator_text(call).await?;
        if !copies.is_empty() {
            // Before anything takes a snapshot.
            self.open_implicit_block();
            self.lock_all_copies(copies).await?;
        }
        // Rows that are changed are waited for, and their scans look like those of row locks.
        self.lock_wait = plan.lock_wait.filter(|_| !plan.writes);
        self.cursors.changes.end_firing();
        if plan.writes {
            self.begin_statement_moment(call, &sql.as_written()).await?;
            self.keep_values(call).await?;
            self.look_at_functions(call).await?;
        }
        let completion = match copies.is_empty() {
            true => self.run_coordinator_plan(call, &sql, plan.writes, true).await,
            false => self.run_coordinator_plan(call, &sql, true, true).await,
        };
        self.lock_wait = None;
        self.cursors.changes.sight = Sight::Unknown;
        self.cursors.changes.calls_stable_readers = None;
        match &completion {
            Ok(_) => self.end_statement_moment(),
            Err(_) => self.cursors.moment = None,
        }
        completion
    }

    /// Before the coordinator changes rows one by one and calls functions for them.
    async fn look_at_functions(&mut self, call: &Call<'_>) -> Result<()> {
        self.cursors.changes.sight = Sight::Unknown;
        self.look_at_readers(call).await?;
        if let Some(statement) = call.prepared.statement.as_ref().filter(|_| self.calls_user_function(call)) {
            self.open_implicit_block();
            self.join(COORDINATOR_GROUP).await?;
            self.cursors.changes.sight = self.sight_of(statement).await?;
        }
        Ok(())
    }

    /// Before the coordinator changes rows for which triggers fire there.
    async fn look_at_readers(&mut self, call: &Call<'_>) -> Result<()> {
        self.cursors.changes.calls_stable_readers = None;
        let catalog = self.catalog();
        if catalog.has_stable_readers
            && let Some(statement) = &call.prepared.statement
            && catalog.all_tables().any(|table| table.fires_here)
        {
            self.cursors.changes.calls_stable_readers = Some(self.may_call_stable_readers(&statement.text).await?);
        }
        Ok(())
    }

    /// Of an INSERT whose ON CONFLICT the coordinator may have to compute row by row: what its parameters are.
    async fn keep_values(&mut self, call: &Call<'_>) -> Result<()> {
        self.cursors.values.clear();
        let Some(Tree::Insert(insert)) = call.prepared.statement.as_ref().map(|s| &s.tree) else { return Ok(()) };
        let Some(bound) = call.bound.filter(|b| !b.params.is_empty()) else { return Ok(()) };
        if !insert.on_conflict.as_ref().is_some_and(|c| c.update) {
            return Ok(());
        }
        let types = self.param_types(call).await?;
        let list: Vec<String> = (1..=bound.params.len())
            .map(|n| {
                format!("pg_catalog.concat('(', pg_catalog.quote_nullable(${n}), ')::', pg_catalog.pg_typeof(${n}))")
            })
            .collect();
        let bound = bound.for_text();
        let sql = format!("SELECT {}", list.join(", "));
        let request = Request { param_types: &types, bound: Some(&bound), ..Request::text(sql) };
        let mut kept = Vec::new();
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), Errors::default()).await?;
        let Some(raw) = kept.pop() else { return Ok(()) };
        let text = |field: Option<bytes::Bytes>| String::from_utf8_lossy(&field.unwrap_or_default()).into_owned();
        self.cursors.values = fields_of(&Frame { raw })?.into_iter().map(text).collect();
        Ok(())
    }

    /// One shard group answers: its reply is the client's.
    async fn run_route(&mut self, call: &Call<'_>, plan: &Rc<Plan>, route: &Route, plan_id: u64) -> Result<Completion> {
        let catalog = self.catalog();
        let types = self.param_types(call).await?;
        let stored = call.prepared.statement.as_ref().is_some_and(|s| matches!(s.kind, StatementKind::Insert));
        let whole = call.given.map(|given| (given.bound(call.bound), call.with_staged(&types)));
        let values = match &whole {
            Some((bound, types)) => Some(Parameters { bound, types }),
            None => parameters(call, &types),
        };
        let found = if stored {
            self.remainder_of_stored(&route.table, &route.key, values).await.map(Some)
        } else {
            self.remainder_of(&route.table, &route.key, values).await
        };
        let pinned = match found {
            // A literal that its type does not accept: the coordinator says so with the position.
            Err(failure) => return Err(self.explain_key(call, failure).await),
            Ok(pinned) => pinned,
        };
        let Some(remainder) = pinned else {
            let call = &Call { given: None, ..*call };
            self.take_snapshots().await?;
            let sql = Box::pin(self.coordinator_text(call)).await?;
            return Box::pin(self.run_coordinator_plan(call, &sql, plan.writes, true)).await;
        };
        let shard =
            route.table.shards().get(remainder).ok_or_else(|| {
                Failure::new("XX000", format!("table \"{}\" has no shard {remainder}", route.table.name))
            })?;
        let group = shard.group;
        if let Some(copy) = &plan.copy {
            if call.bound.is_none() {
                // PostgreSQL's opinion of the call comes first.
                self.described(call.prepared).await?;
            }
            if !Box::pin(self.make_copy(copy, plan, &route.table, remainder)).await? {
                return Box::pin(self.run_without_gifts(call)).await;
            }
        }
        if !self.agree_on_time(plan, group).await? {
            return Box::pin(self.run_plan_once(call)).await;
        }
        // It may be described anew, by a connection that is given back with whatever has joined.
        let announce = self.announce(call, &plan.tables).await?;
        if call.max_rows > 0 {
            // The portal stays open on that server, which needs a block.
            self.open_implicit_block();
        }
        // A name of a partition fails where the shard has gone; the parent's name needs the fence to tell.
        let by_partition = !route.parent_only
            && plan.tables.iter().all(|t| !t.parent_only)
            && plan
                .tables
                .iter()
                .all(|t| t.is_reference() || t.shards().get(remainder).is_some_and(|s| s.group == group));
        if !by_partition {
            self.open_implicit_block();
        }
        self.join(group).await?;
        if !by_partition {
            self.fence_tables(group, plan, &catalog);
        }
        if plan.writes {
            self.mark_writer(group);
        }
        let tables = &plan.tables;
        let name_of = move |oid: u32| -> Option<String> {
            let table = tables.iter().find(|t| t.oid == oid)?;
            if !by_partition || table.is_reference() {
                return Some(format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name)));
            }
            let shard = table.shards().get(remainder)?;
            Some(format!("{}.{}", shard.schema(), quote_ident(&table.name)))
        };
        let sql = route.sql.render(name_of);
        // One text per shard: the server-side statement's number tells them apart.
        let id = call.keeps_on_leases().then(|| plan_id * 65_536 + remainder as u64);
        let copy = plan.copy.as_deref();
        let errors = Errors { splice: Some(&route.sql), text: call.prepared.text(), renamed: Some(&name_of), copy };
        // From here on nothing is sent to another server before its answer is read.
        if plan.locked_copies.is_empty() {
            self.ask_for_snapshots(Some(group)).await?;
        }
        let completion = self.run_single(call, group, sql, id, &types, announce, errors).await?;
        if by_partition && call.keeps() {
            self.compile(call.prepared, plan, plan_id);
        }
        Ok(completion)
    }

    /// A key that could not be read: the coordinator says it with the position in the statement.
    pub(super) async fn explain_key(&mut self, call: &Call<'_>, failure: Failure) -> Failure {
        if call.bound.is_some() || matches!(failure, Failure::ClientGone) {
            return failure;
        }
        if failure.sqlstate() == "42P02"
            && let Failure::Statement(fields) = &failure
            && let Some(parameter) = fields.message().rsplit(' ').next()
            && let Some(at) = call.prepared.text().find(parameter)
        {
            let position = call.prepared.text()[..at].chars().count() + 1;
            return failure.with(b'P', &position.to_string());
        }
        // Beside the transaction, which may have failed with this very error.
        match self.describe_aside(call.prepared).await {
            Err(better) if better.sqlstate() == failure.sqlstate() => better,
            _ => failure,
        }
    }

    /// What a planned call's client is told of the columns.
    async fn announce<'a>(&mut self, call: &Call<'_>, tables: &'a [Arc<Table>]) -> Result<Announce<'a>> {
        if !call.describes() {
            return Ok(Announce::Nothing);
        }
        if call.staged.is_some() {
            // Rows that came with the statement are of no table.
            return Ok(Announce::Known(self.described(call.prepared).await?));
        }
        let is_own = |table: &Arc<Table>| table.columns.iter().any(|column| column.type_oid >= FIRST_USER_OID);
        if self.txn.catalog.is_some() && (!tells_origin(tables) || tables.iter().any(is_own)) {
            // Tables and types of this transaction's own cannot be looked up beside it; it has the coordinator with it
            // already.
            return Ok(Announce::Known(self.described(call.prepared).await?));
        }
        // A statement that was described before is described again where that may have changed, or it is an error.
        let announce = match call.prepared.last_described() {
            Some(_) => Announce::Known(self.described(call.prepared).await?),
            None => Announce::Columns(tables),
        };
        let kind = call.prepared.statement.as_ref().map(|s| &s.kind);
        Ok(match kind {
            Some(StatementKind::Insert | StatementKind::Update | StatementKind::Delete) => {
                Announce::Written(Box::new(announce))
            }
            _ => announce,
        })
    }

    /// Sends a statement to one server, whose reply is the client's.
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn run_single(
        &mut self,
        call: &Call<'_>,
        group: GroupId,
        sql: String,
        id: Option<u64>,
        types: &[u32],
        announce: Announce<'_>,
        errors: Errors<'_>,
    ) -> Result<Completion> {
        let portal = if call.max_rows > 0 { name_of_portal(call.portal) } else { String::new() };
        self.tell_step(group, call.staged);
        let (types, bound) = (call.with_staged(types), call.bound_on(group));
        let request = Request {
            sql: sql.into(),
            id,
            param_types: &types,
            bound: bound.as_deref(),
            describe: announce.is_needed(),
            portal: &portal,
            max_rows: call.max_rows,
        };
        let rows = Rows::Client { announce, limit: None };
        let end = self.run_request(group, &request, rows, errors).await?;
        if !portal.is_empty() {
            self.keep_portal(call.portal, group, portal, end.suspended);
        }
        Ok(completion_of(end))
    }

    /// A portal on a server has given some of its rows, or all.
    fn keep_portal(&mut self, portal: &str, group: GroupId, name: String, suspended: bool) {
        let kept = self.portals.get_mut(portal).filter(|_| suspended);
        let progress = Progress::OnServer { group, name };
        match kept {
            Some(portal) => portal.progress = progress,
            None => self.end_progress(&progress),
        }
    }

    /// A portal of the client's is gone, or has given all of its rows: so is what there is of it on a server.
    pub fn end_progress(&mut self, progress: &Progress) {
        let Progress::OnServer { group, name } = progress else { return };
        if matches!(self.txn.block, Block::None | Block::Failed) {
            return;
        }
        if let Some(participant) = self.txn.participants.get_mut(group) {
            participant.lease.close_portal(name);
        }
        self.forget_moment(Some(name));
    }

    /// The next rows of a portal that is open on a server.
    pub async fn continue_portal(
        &mut self,
        portal: &str,
        group: GroupId,
        name: String,
        max_rows: i32,
    ) -> Result<Completion> {
        // With savepoints made since: its error is undone there as on the others.
        if self.txn.participants.contains_key(&group) {
            self.join(group).await?;
        }
        let mut participant = self.take(group)?;
        pgherd_wire::frontend::write_execute(participant.lease.buffer(), &name, max_rows);
        participant.lease.send_sync();
        let rows = Rows::Client { announce: Announce::Nothing, limit: None };
        self.cursors.fetching = Some(name.clone());
        let end = self.read_reply(group, &mut participant, None, rows, Errors::default()).await;
        self.cursors.fetching = None;
        self.put_back(group, participant);
        let end = end?;
        self.keep_portal(portal, group, name, end.suspended);
        Ok(completion_of(end))
    }

    /// One statement per worker.
    pub(super) async fn run_scatter(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        scatter: &Scatter,
        id: u64,
    ) -> Result<Completion> {
        // Partial values pass as text: settings that shorten or reorder it would change the result.
        let lossy = matches!(scatter.combine, Combine::Merge(_)) && self.has_styles();
        if (call.max_rows > 0 || lossy) && !plan.writes {
            // Row by row over several servers: the coordinator's portal does it.
            return self.federate(call).await;
        }
        let groups = self.scatter_groups(call, scatter).await?;
        let types = call.with_staged(&self.param_types(call).await?);
        // No shard of a route has this number.
        let id = call.keeps_on_leases().then_some(id * 65_536 + 65_535);
        match &scatter.combine {
            Combine::Merge(merge) => self.run_merge(call, plan, scatter, merge, &groups, &types, id).await,
            Combine::Concatenate => self.run_concatenate(call, plan, scatter, &groups, &types, id, None).await,
            Combine::ConcatenateLimit(limit) => {
                self.run_concatenate(call, plan, scatter, &groups, &types, id, Some(*limit)).await
            }
        }
    }

    /// The workers that take part: those that own the keys, or all that have shards.
    pub(super) async fn scatter_groups(&mut self, call: &Call<'_>, scatter: &Scatter) -> Result<Vec<GroupId>> {
        let catalog = self.catalog();
        let Some(keys) = &scatter.keys else { return Ok(catalog.groups_of(&scatter.table)) };
        let types = self.param_types(call).await?;
        let mut groups = Vec::new();
        for key in &keys.values {
            let Some(found) = self.remainders_of(&scatter.table, key, parameters(call, &types)).await? else {
                return Ok(catalog.groups_of(&scatter.table));
            };
            let shards = scatter.table.shards();
            groups.extend(found.into_iter().filter_map(|at| Some(shards.get(at)?.group)));
        }
        groups.sort_unstable();
        groups.dedup();
        // No key can match: one worker still says so, with the right columns.
        if groups.is_empty() {
            groups.extend(catalog.groups_of(&scatter.table).first());
        }
        Ok(groups)
    }

    /// Starts a scatter on every group: all servers work at the same time.
    pub(super) async fn start_scatter(
        &mut self,
        plan: &Plan,
        groups: &[GroupId],
        request: &Request<'_>,
        staged: Option<&Staged>,
    ) -> Result<()> {
        self.open_implicit_block();
        let catalog = self.catalog();
        let degree = if plan.writes { None } else { self.parallel_degree(groups) };
        let partitionwise = self.joins_partitionwise(plan, groups);
        for group in groups {
            self.join(*group).await?;
            if partitionwise && let Some(participant) = self.txn.participants.get_mut(group) {
                participant.lease.add_step("SET LOCAL enable_partitionwise_join = on");
            }
            if let Some(degree) = degree
                && let Some(participant) = self.txn.participants.get_mut(group)
            {
                participant.lease.add_step(lowered(degree));
            }
            self.tell_step(*group, staged);
            self.fence_tables(*group, plan, &catalog);
            if plan.writes {
                self.mark_writer(*group);
            }
        }
        for group in groups {
            let types = self.types_on(*group, request.param_types);
            if let Some(participant) = self.txn.participants.get_mut(group) {
                let bound = staged.map(|staged| staged.bound(request.bound, *group));
                let own = Request {
                    sql: request.sql.as_ref().into(),
                    param_types: &types,
                    bound: bound.as_ref().or(request.bound),
                    ..*request
                };
                super::request::send(&mut participant.lease, &own, false);
                participant.lease.flush().await?;
            }
        }
        Ok(())
    }

    /// In a transaction that is this statement's alone; in the client's it would outlive the statement.
    fn tell_step(&mut self, group: GroupId, staged: Option<&Staged>) {
        if self.txn.block != Block::Implicit {
            return;
        }
        let avoided = staged.map(Staged::avoided).filter(|list| !list.is_empty()).unwrap_or(self.part_avoids);
        for setting in avoided.iter().filter(|setting| !self.settings.contains_key(**setting)) {
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                participant.lease.add_step(format!("SET LOCAL {setting} = off"));
            }
        }
    }

    /// Servers do not look for such joins of themselves: planning would take longer, and they may take more memory. In a
    /// transaction that is this statement's alone.
    fn joins_partitionwise(&self, plan: &Plan, groups: &[GroupId]) -> bool {
        let distributed: Vec<_> = plan.tables.iter().filter(|table| !table.is_reference()).collect();
        let joined = |at: usize| {
            let own = distributed[at].colocation;
            distributed[at + 1..].iter().any(|other| other.colocation == own)
        };
        self.txn.block == Block::Implicit
            && !plan.writes
            && !self.settings.contains_key("enable_partitionwise_join")
            && distributed.iter().all(|table| table.shards().len() <= PARTITIONWISE_MAX * groups.len())
            && (0..distributed.len()).any(joined)
    }

    /// How many parallel workers each server of a scatter may use beside itself, where they are all on this machine and
    /// share its cores: a parallel plan on each would only have them compete. None: each as it is set.
    fn parallel_degree(&self, groups: &[GroupId]) -> Option<usize> {
        if groups.len() < 2 || self.settings.contains_key("max_parallel_workers_per_gather") {
            return None;
        }
        let catalog = self.catalog();
        let is_here = |group: &GroupId| {
            let node = catalog.node_of_group(*group);
            node.is_some_and(|node| matches!(node.host.as_str(), "127.0.0.1" | "::1" | "localhost"))
        };
        if !groups.iter().all(is_here) {
            return None;
        }
        let degree = (self.thread.shared.cores / groups.len()).saturating_sub(1);
        (degree < PARALLEL_DEFAULT).then_some(degree)
    }

    /// After an error on one server of a scatter: the others are interrupted and their replies dropped.
    pub(super) async fn abandon(&mut self, groups: &[GroupId]) {
        for group in groups {
            let Some(participant) = self.txn.participants.get_mut(group) else { continue };
            if participant.lease.in_flight > 0
                && let Some(key) = participant.lease.cancel_key.clone()
            {
                let address = participant.lease.address().clone();
                pgherd_backend::cancel(&address, &key).await;
                if !self.drain(*group).await
                    && let Some(participant) = self.txn.participants.get_mut(group)
                {
                    participant.lease.poison();
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    async fn run_concatenate(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        scatter: &Scatter,
        groups: &[GroupId],
        types: &[u32],
        id: Option<u64>,
        limit: Option<u64>,
    ) -> Result<Completion> {
        let announce = self.announce(call, &plan.tables).await?;
        let request = Request {
            sql: scatter.sql.as_written().into(),
            id,
            param_types: types,
            bound: call.bound,
            describe: call.describes(),
            portal: "",
            max_rows: 0,
        };
        let kept = id.map(|id| (id, request.sql.len()));
        let errors = Errors::of(&scatter.sql, call.prepared.text());
        let mut total = End::default();
        let at_once = if self.goes_in_turn(call, plan.writes, scatter.table.oid) { 1 } else { groups.len().max(1) };
        for (turn, begun) in groups.chunks(at_once).enumerate() {
            self.start_scatter(plan, begun, &request, call.staged).await?;
            for (index, group) in begun.iter().enumerate() {
                let mut participant = self.take(*group)?;
                let rest = limit.map(|l| l.saturating_sub(total.rows));
                let announce = if turn + index == 0 { announce.clone() } else { Announce::Nothing };
                let rows = Rows::Client { announce, limit: rest };
                let end = self.read_reply(*group, &mut participant, kept, rows, errors).await;
                self.put_back(*group, participant);
                match end {
                    Ok(end) => {
                        total.rows += rest.map_or(end.rows, |r| end.rows.min(r));
                        total.tag = if total.tag.is_empty() { end.tag } else { add_tags(&total.tag, &end.tag) };
                    }
                    Err(failure) => {
                        self.note_deadlock(&failure, scatter.table.oid);
                        self.abandon(&begun[index + 1..]).await;
                        return Err(failure);
                    }
                }
            }
        }
        if limit.is_some() {
            total.tag = format!("SELECT {}", total.rows);
        }
        Ok(Completion::Tag(total.tag))
    }

    /// The placement fence of every colocation group a statement reads, on one worker.
    pub(super) fn fence_tables(&mut self, group: GroupId, plan: &Plan, catalog: &Snapshot) {
        for table in &plan.tables {
            self.fence_table(group, table, catalog);
        }
    }

    pub(super) fn fence_table(&mut self, group: GroupId, table: &Table, catalog: &Snapshot) {
        if group != COORDINATOR_GROUP
            && let Some(epoch) = catalog.placement_epoch(table.colocation)
        {
            self.fence(group, table.colocation, epoch);
        }
    }

    pub fn mark_writer(&mut self, group: GroupId) {
        if let Some(participant) = self.txn.participants.get_mut(&group) {
            participant.wrote = true;
            if group == COORDINATOR_GROUP {
                self.note_may_draw();
            }
        }
    }

    /// The session may draw from sequences on the coordinator now.
    pub(super) fn note_may_draw(&mut self) {
        static MARKS: AtomicU64 = AtomicU64::new(1);
        let own = self.draws_mark;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
            && participant.lease.drew != Some(own)
        {
            self.draws_mark = MARKS.fetch_add(1, Ordering::Relaxed);
            // Of two sessions nobody's, as long as it has not been forgotten in between.
            participant.lease.drew = Some(if participant.lease.drew.is_some() { 0 } else { self.draws_mark });
        }
    }

    /// Before a statement that may draw from sequences on the coordinator, or asks what was drawn: what other sessions
    /// have drawn over this connection is none of its business, nor what itself has before it came to another one.
    pub(super) fn forget_draws_of_others(&mut self) {
        let own = self.draws_mark;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
            && participant.lease.drew.is_some_and(|of| of != own)
        {
            participant.lease.add_step("DISCARD SEQUENCES");
            participant.lease.drew = None;
        }
    }

    /// Parameter types as the coordinator inferred them; none in the simple protocol.
    pub(super) async fn param_types(&mut self, call: &Call<'_>) -> Result<Vec<u32>> {
        match call.bound {
            Some(bound) if !bound.params.is_empty() => Ok(self.described(call.prepared).await?.param_types.clone()),
            _ => Ok(Vec::new()),
        }
    }

    /// A write to a reference table: the same statement everywhere, the coordinator's reply is the client's.
    async fn run_replicate(&mut self, call: &Call<'_>, plan: &Plan, sql: &Splice, reads: bool) -> Result<Completion> {
        if reads && self.txn.block == Block::Explicit && self.keeps_one_snapshot() {
            // Snapshots of two servers may see different sides of a commit over both: what one reads is for all copies.
            return self.run_federated(call, plan, &plan.tables).await;
        }
        self.open_implicit_block();
        let groups = self.lock_all_copies(&plan.tables).await?;
        let types = self.param_types(call).await?;
        let text = sql.as_written();
        let errors = Errors::of(sql, call.prepared.text());
        let mut completion = None;
        let mut counts: Option<String> = None;
        self.forward_copies(false);
        for group in groups {
            self.join(group).await?;
            self.mark_writer(group);
            let request = Request {
                sql: text.as_str().into(),
                id: None,
                param_types: &types,
                bound: call.bound,
                describe: group == COORDINATOR_GROUP && call.describes(),
                portal: "",
                max_rows: 0,
            };
            let rows = if group == COORDINATOR_GROUP {
                let announce = if call.describes() { Announce::Columns(&[]) } else { Announce::Nothing };
                Rows::Client { announce, limit: None }
            } else {
                Rows::Drop
            };
            let end = self.run_request(group, &request, rows, errors).await?;
            // Copies that do not agree must not be written on as if they did.
            if let Some(tag) = &counts
                && *tag != end.tag
            {
                return Err(Failure::new("XX001", "copies of a reference table differ")
                    .detail(format!("Node group {group} answered \"{}\", the coordinator \"{tag}\".", end.tag)));
            }
            counts.get_or_insert(end.tag.clone());
            completion.get_or_insert(completion_of(end));
        }
        self.forward_copies(true);
        Ok(completion.unwrap_or(Completion::Empty))
    }

    /// A write to a reference table that the coordinator's copy alone can run: its triggers have the rows written to the
    /// other copies.
    pub(super) async fn run_and_forward(
        &mut self,
        call: &Call<'_>,
        copies: &[Arc<Table>],
        sql: &Splice,
    ) -> Result<Completion> {
        self.open_implicit_block();
        self.lock_all_copies(copies).await?;
        self.run_coordinator_plan(call, sql, true, true).await
    }

    /// Where they are: on all servers.
    pub(super) async fn lock_all_copies(&mut self, tables: &[Arc<Table>]) -> Result<Vec<GroupId>> {
        let mut groups = vec![COORDINATOR_GROUP];
        groups.extend(self.catalog().worker_groups());
        self.lock_reference_copies(tables, &groups).await?;
        Ok(groups)
    }

    /// Whether the coordinator's triggers forward to the other copies of a reference table what a top-level statement
    /// writes: not where the router runs that on every node. Nested statements are always forwarded.
    pub(super) fn forward_copies(&mut self, forward: bool) {
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            let value = if forward { "on" } else { "off" };
            participant.lease.add_step(format!("SET LOCAL pgherd.forward = '{value}'"));
        }
    }

    /// Writers of a reference table exclude each other on every copy, in a fixed order: without it two-phase commit
    /// lets copies diverge.
    async fn lock_reference_copies(&mut self, tables: &[Arc<Table>], groups: &[GroupId]) -> Result<()> {
        let mut locks = Vec::new();
        for table in tables.iter().filter(|t| t.is_reference()) {
            locks.push(lock_copy(table, self.copy_right(table).await?.locks));
        }
        for group in groups {
            self.join(*group).await?;
            for sql in locks.iter().cloned() {
                if let Some(participant) = self.txn.participants.get_mut(group) {
                    participant.lease.add_step(sql);
                }
            }
        }
        Ok(())
    }
}

/// What the statement is run with besides are parameters behind the client's, and there is none left.
fn leaves_no_room(call: &Call<'_>, plan: &Plan) -> bool {
    let adds = match &plan.tier {
        Tier::Scatter(scatter) => matches!(scatter.combine, Combine::Merge(_)),
        Tier::Stage(_) | Tier::InsertSelect(_) => true,
        _ => false,
    };
    adds && call.bound.is_some_and(|bound| bound.params.len() > PARAMETERS_MAX - COLUMNS_MAX)
}

/// The reference tables whose copies a write changes.
fn copies_written(plan: &Plan) -> Vec<Arc<Table>> {
    match plan.tier {
        Tier::ReplicateWrite { .. } | Tier::ReplicateRows { .. } => plan.tables.clone(),
        _ => Vec::new(),
    }
}

/// Locks a copy of a reference table. LOCK takes no snapshot before it waits, as anything else would: copies would
/// differ under REPEATABLE READ.
pub(crate) fn lock_copy(table: &Table, may_lock: bool) -> String {
    match may_lock {
        true => format!(
            "LOCK TABLE ONLY {}.{} IN SHARE ROW EXCLUSIVE MODE",
            quote_ident(&table.schema),
            quote_ident(&table.name)
        ),
        false => {
            format!("SELECT pgherd.lock_copy({}, {})", quote_literal(&table.schema), quote_literal(&table.name))
        }
    }
}

/// A statement that lets a plan have no more parallel workers than these, until the transaction ends.
fn lowered(degree: usize) -> String {
    const NAME: &str = "max_parallel_workers_per_gather";
    match degree {
        0 => format!("SET LOCAL {NAME} = 0"),
        // It may be lower already.
        _ => format!(
            "SELECT pg_catalog.set_config('{NAME}', least(pg_catalog.current_setting('{NAME}')::int, {degree})::text, \
             true)"
        ),
    }
}

/// The values of a call with their types.
pub fn parameters<'a>(call: &Call<'a>, types: &'a [u32]) -> Option<Parameters<'a>> {
    call.bound.map(|bound| Parameters { bound, types })
}

/// Metadata moved on under a statement: the fence said so, or a shard's schema is gone.
fn is_stale(failure: &Failure) -> bool {
    match failure {
        Failure::Statement(fields) => {
            fields.sqlstate() == "PH002"
                // The same where we have asked for one snapshot.
                || (fields.sqlstate() == "40001" && fields.message().contains("concurrent move of shards"))
                || (matches!(fields.sqlstate(), "42P01" | "3F000") && fields.message().contains("\"pgherd_"))
                || (fields.sqlstate() == "42P01" && fields.message().contains("pgherd_"))
        }
        _ => false,
    }
}

pub fn refuse(refusal: &Refusal) -> Failure {
    let mut failure = Failure::new(refusal.sqlstate, &refusal.message);
    if let Some(detail) = &refusal.detail {
        failure = failure.detail(detail);
    }
    if let Some(hint) = &refusal.hint {
        failure = failure.hint(hint);
    }
    failure
}

pub fn completion_of(end: End) -> Completion {
    if end.suspended {
        Completion::Suspended
    } else if end.empty {
        Completion::Empty
    } else {
        Completion::Tag(end.tag)
    }
}

/// `UPDATE 2` and `UPDATE 3` make `UPDATE 5`; `INSERT 0 n` likewise.
pub fn add_tags(first: &str, second: &str) -> String {
    let split = |tag: &str| -> Option<(String, u64)> {
        let (word, count) = tag.rsplit_once(' ')?;
        Some((word.to_owned(), count.parse().ok()?))
    };
    match (split(first), split(second)) {
        (Some((word, a)), Some((_, b))) => format!("{word} {}", a + b),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::add_tags;

    #[test]
    fn command_tags_are_summed() {
        assert_eq!(add_tags("SELECT 2", "SELECT 3"), "SELECT 5");
        assert_eq!(add_tags("INSERT 0 2", "INSERT 0 3"), "INSERT 0 5");
        assert_eq!(add_tags("TRUNCATE TABLE", "TRUNCATE TABLE"), "TRUNCATE TABLE");
    }
}
