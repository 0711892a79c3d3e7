//! Statements that PostgreSQL refuses in a transaction block (VACUUM, CLUSTER, REINDEX, the CONCURRENTLY forms) on
//! distributed and reference tables: node by node, each step in a transaction of its own, written down on the
//! coordinator as it begins and ends. Which steps there are, and what each does in view of what it finds, is decided in
//! `pgherd_control::operation`. The same statement repeated after a failure goes on where it stopped.

use std::sync::Arc;

use pgherd_backend::Lease;
use pgherd_catalog::{COORDINATOR_GROUP, Table};
use pgherd_control::ddl;
use pgherd_control::describe::{self, Index, Prerequisite, TableDescription};
use pgherd_control::distribute;
use pgherd_control::operation::{self, Found, Step};
use pgherd_sql::DdlInfo;

use super::ddl::{LOCK_ROUNDS_MAX, evaluates_otherwise, first_words};
use super::distribute::{parse_table, refusal};
use super::own::without_position;
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};
use crate::text::fields_of_record;
use crate::transaction::Block;

/// An operation as `pgherd.begin_operation` gives it.
struct Begun {
    id: i64,
    /// The index that an earlier attempt has made on the coordinator.
    index: Option<u32>,
    resumed: bool,
    /// What the user can do when it fails.
    advice: String,
}

impl Session {
    /// CREATE and DROP INDEX CONCURRENTLY on a distributed or reference table.
    pub(super) async fn run_concurrently(
        &mut self,
        call: &Call<'_>,
        info: &DdlInfo,
        affected: &[Arc<Table>],
    ) -> Result<Completion> {
        let text = call.prepared.text();
        if self.txn.block != Block::None {
            return Err(Failure::new(
                "25001",
                format!("{} CONCURRENTLY cannot run inside a transaction block", first_words(text)),
            ));
        }
        self.join(COORDINATOR_GROUP).await?;
        let drops = info.tag.starts_with("DROP");
        // What PostgreSQL does not take: it says so before anything is done.
        let refused = (drops && (info.objects.len() != 1 || info.cascade)) || affected.len() != 1;
        if refused {
            return self.run_on_coordinator(call, text, true).await;
        }
        let mut affected = affected.to_vec();
        for _ in 0..LOCK_ROUNDS_MAX {
            let Some(table) = affected.first().cloned() else { break };
            let described = self.describe_table(table.oid).await;
            if described.as_ref().is_ok_and(|t| !t.caller_owns) {
                break;
            }
            if let Ok(description) = described {
                let mut hold = None;
                let result = if drops {
                    self.drop_index_concurrently(call, info, &table, &description, &mut hold).await
                } else {
                    self.create_index_concurrently(call, info, table, &description, &mut hold).await
                };
                self.let_go(&mut hold).await;
                match &result {
                    Err(failure) => self.end_unfinished(failure).await,
                    // Other routers hear of it, too.
                    Ok(_) => drop(self.call_own(COORDINATOR_GROUP, "SELECT pgherd.bump_epoch()").await?),
                }
                self.reload_after_plain_ddl().await;
                if let Some(completion) = result? {
                    return Ok(completion);
                }
            }
            // Gone, and perhaps there is another of its name.
            self.reload_after_plain_ddl().await;
            affected = self.affected_tables(info).await?;
            self.join(COORDINATOR_GROUP).await?;
        }
        // In PostgreSQL's own words.
        self.run_on_coordinator(call, text, true).await
    }

    /// None: the table was dropped before anything was done.
    async fn create_index_concurrently(
        &mut self,
        call: &Call<'_>,
        info: &DdlInfo,
        mut table: Arc<Table>,
        description: &TableDescription,
        hold: &mut Option<Lease>,
    ) -> Result<Option<Completion>> {
        let text = statement_of(call);
        match self.hold_table(description).await {
            Err(failure) if failure.sqlstate() == "42P01" => return Ok(None),
            held => *hold = held?,
        }
        let name = info.objects.first().map_or("", |n| n.name.as_str());
        let mut begun = self.begin_operation("create index", &text, table.oid, name).await?;
        let mut before = match self.describe_held(hold, table.oid).await {
            // Gone before it was held, or while it was looked at.
            Err(failure) if matches!(failure.sqlstate(), "42P01" | "XX000") => {
                self.forget_operation(&begun).await?;
                return Ok(None);
            }
            described => described?,
        };
        let made = |t: &TableDescription, oid: Option<u32>| t.indexes.iter().find(|i| Some(i.oid) == oid).cloned();
        let mut completion = Completion::tag("CREATE INDEX");
        let (index, after) = match made(&before, begun.index) {
            Some(index) if index.valid => {
                self.notice(&format!("resuming operation {} of an earlier attempt", begun.id));
                (index, before.clone())
            }
            invalid => {
                // The coordinator's own CREATE INDEX CONCURRENTLY locks the table itself.
                self.let_go(hold).await;
                if let Some(index) = invalid {
                    let name = format!("{}.{}", quote_ident(&before.schema), quote_ident(&index.name));
                    self.run_quiet(COORDINATOR_GROUP, &format!("DROP INDEX CONCURRENTLY {name}")).await?;
                    let Some(again) = unless_gone(self.describe_table(table.oid).await)? else {
                        self.forget_operation(&begun).await?;
                        return Ok(None);
                    };
                    before = again;
                }
                begun.resumed = false;
                let first = [operation::on_coordinator(&text)];
                self.plan_operation(&begun, None, &first, true).await?;
                let result = self.run_steps(call, &begun, &first, 0..1).await;
                match result {
                    Err(failure @ (Failure::ClientGone | Failure::Fatal(_))) => return Err(failure),
                    Err(failure) if failure.sqlstate() == "42P07" => {
                        // It has made nothing.
                        self.forget_operation(&begun).await?;
                        return Err(failure);
                    }
                    Err(failure) => {
                        // What it has left behind is not known: the record stays, and the statement can be repeated.
                        let Ok(after) = unless_gone(self.describe_table(table.oid).await) else { return Err(failure) };
                        let index = match after {
                            Some(after) => made_since(&before, &after, name),
                            // It may have begun with another table of that name.
                            None => {
                                self.forget_operation(&begun).await?;
                                let left = match name {
                                    "" => None,
                                    _ => self.made_elsewhere(info, name).await?.filter(|(_, _, index)| !index.valid),
                                };
                                let Some((other, _, index)) = left else { return Err(failure) };
                                begun = self.begin_operation("create index", &text, other.oid, name).await?;
                                Some(index)
                            }
                        };
                        let Some(index) = index else {
                            self.forget_operation(&begun).await?;
                            return Err(failure);
                        };
                        self.plan_operation(&begun, Some(index.oid), &first, false).await?;
                        self.write_step(&begun, 1, "failed", Some(&said(&failure))).await?;
                        self.end_operation(&begun, Some(&failure)).await;
                        begun.advice = undo(&index.name);
                        return Err(half_done(failure, &begun, &first, 0));
                    }
                    Ok(done) => completion = done.unwrap_or(completion),
                }
                let mut after = unless_gone(self.describe_table(table.oid).await)?;
                let mut index = after.as_ref().and_then(|after| made_since(&before, after, name));
                if after.is_none() {
                    // Dropped before the index was made: it belongs to another table of that name.
                    self.forget_operation(&begun).await?;
                    let Some((other, described, made)) = self.made_elsewhere(info, name).await? else {
                        return Ok(Some(completion));
                    };
                    (table, after, index) = (other, Some(described), Some(made));
                    before.indexes.clear();
                    begun = self.begin_operation("create index", &text, table.oid, name).await?;
                    begun.resumed = true;
                }
                let (Some(after), Some(index)) = (after, index) else {
                    // IF NOT EXISTS, and it does.
                    self.forget_operation(&begun).await?;
                    return Ok(Some(completion));
                };
                // Somebody may have dropped it again.
                let held = match self.hold_table(&after).await {
                    Err(failure) if failure.sqlstate() == "42P01" => None,
                    held => {
                        *hold = held?;
                        unless_gone(self.describe_held(hold, table.oid).await)?
                    }
                };
                match held.and_then(|after| Some((made(&after, Some(index.oid))?, after))) {
                    Some(there) => there,
                    None => {
                        self.forget_operation(&begun).await?;
                        return Ok(Some(completion));
                    }
                }
            }
        };
        let state = self.cluster_state().await?;
        let checked = if table.is_reference() {
            ddl::check_altered_reference(&after, &state)
        } else {
            let key = table.key_column().map_or("", |c| c.name.as_str());
            ddl::check_altered(&before, &after, key, &state).map(drop)
        };
        let checked = match checked.map_err(refusal) {
            Ok(()) if evaluates_otherwise(&before, &after) => self.check_expressions(table.oid, &state).await,
            checked => checked,
        };
        if let Err(refused) = checked {
            // The coordinator has made what cannot be: it is taken back there.
            self.let_go(hold).await;
            let name = format!("{}.{}", quote_ident(&after.schema), quote_ident(&index.name));
            self.run_quiet(COORDINATOR_GROUP, &format!("DROP INDEX {name}")).await?;
            self.forget_operation(&begun).await?;
            return Err(refused);
        }
        let shards = state.table(table.oid).map(|t| t.shards().to_vec()).unwrap_or_default();
        let shards = (!table.is_reference()).then_some(shards.as_slice());
        let mut steps = vec![operation::on_coordinator(&text)];
        // What expressions of the index call.
        let is_new = |p: &&Prerequisite| {
            begun.resumed || !before.prerequisites.iter().any(|b| b.kind == p.kind && b.name == p.name)
        };
        let needed: Vec<Prerequisite> = after.prerequisites.iter().filter(is_new).cloned().collect();
        let needed = distribute::prerequisite_ddl(&needed).join("; ");
        steps.extend(state.worker_groups().into_iter().filter(|_| !needed.is_empty()).map(|group| operation::Step {
            group,
            action: "make what the index needs".to_owned(),
            command: needed.clone(),
            work: operation::Work::Command,
        }));
        steps.extend(operation::create_index_steps(&after, &index, shards, &state.worker_groups()));
        self.plan_operation(&begun, Some(index.oid), &steps, false).await?;
        self.write_step(&begun, 1, "done", None).await?;
        begun.advice = undo(&index.name);
        self.run_steps(call, &begun, &steps, 1..steps.len()).await?;
        self.end_operation(&begun, None).await;
        Ok(Some(completion))
    }

    /// The table that has the name now, where it has an index of that name.
    async fn made_elsewhere(
        &mut self,
        info: &DdlInfo,
        name: &str,
    ) -> Result<Option<(Arc<Table>, TableDescription, Index)>> {
        self.reload_after_plain_ddl().await;
        let affected = self.affected_tables(info).await?;
        self.join(COORDINATOR_GROUP).await?;
        let [other] = affected.as_slice() else { return Ok(None) };
        let Some(described) = unless_gone(self.describe_table(other.oid).await)? else { return Ok(None) };
        let named = |i: &&Index| name.is_empty() || i.name == name;
        let index = described.indexes.iter().filter(named).max_by_key(|i| i.oid).cloned();
        Ok(index.map(|index| (other.clone(), described, index)))
    }

    /// The workers first: as long as the coordinator has the index, the statement can be repeated.
    async fn drop_index_concurrently(
        &mut self,
        call: &Call<'_>,
        info: &DdlInfo,
        table: &Arc<Table>,
        description: &TableDescription,
        hold: &mut Option<Lease>,
    ) -> Result<Option<Completion>> {
        let text = statement_of(call);
        let name = info.objects.first().map_or("", |n| n.name.as_str());
        if !description.indexes.iter().any(|i| i.name == name) {
            // A constraint's, or gone meanwhile.
            return self.run_on_coordinator(call, call.prepared.text(), true).await.map(Some);
        }
        match self.hold_table(description).await {
            Err(failure) if failure.sqlstate() == "42P01" => return Ok(None),
            held => *hold = held?,
        }
        let state = self.cluster_state().await?;
        let shards = state.table(table.oid).map(|t| t.shards().to_vec()).unwrap_or_default();
        let shards = (!table.is_reference()).then_some(shards.as_slice());
        let begun = self.begin_operation("drop index", &text, table.oid, "").await?;
        let mut steps = operation::drop_index_steps(&description.schema, name, shards, &state.worker_groups());
        let last = steps.len();
        steps.push(operation::on_coordinator(&text));
        self.plan_operation(&begun, None, &steps, true).await?;
        self.run_steps(call, &begun, &steps, 0..last).await?;
        self.let_go(hold).await;
        let completion = self.run_steps(call, &begun, &steps, last..last + 1).await?;
        self.end_operation(&begun, None).await;
        Ok(Some(completion.unwrap_or(Completion::tag("DROP INDEX"))))
    }

    /// VACUUM, REINDEX and CLUSTER: every node, from the first one on each time. `relation` 0: several tables, or all.
    pub(super) async fn run_recorded(
        &mut self,
        call: &Call<'_>,
        kind: &str,
        relation: u32,
        steps: Vec<Step>,
    ) -> Result<Option<Completion>> {
        self.join(COORDINATOR_GROUP).await?;
        let begun = self.begin_operation(kind, &statement_of(call), relation, "").await?;
        self.plan_operation(&begun, None, &steps, true).await?;
        let result = self.run_steps(call, &begun, &steps, 0..steps.len()).await;
        match &result {
            Ok(_) => self.end_operation(&begun, None).await,
            Err(failure) => self.end_unfinished(failure).await,
        }
        result
    }

    /// Runs some of an operation's steps, one after another. A failure ends the operation, and its hint says how far it
    /// has come.
    async fn run_steps(
        &mut self,
        call: &Call<'_>,
        begun: &Begun,
        steps: &[Step],
        range: std::ops::Range<usize>,
    ) -> Result<Option<Completion>> {
        let mut completion = None;
        for index in range {
            let Some(step) = steps.get(index) else { continue };
            self.write_step(begun, index + 1, "running", None).await?;
            match self.run_step(call, step, begun.resumed).await {
                Ok(answer) => completion = answer.or(completion),
                Err(failure) => {
                    let said = said(&failure);
                    if let Err(unwritten) = self.write_step_aside(begun, index + 1, "failed", Some(&said)).await {
                        tracing::warn!("operation {}: {unwritten}", begun.id);
                    }
                    // The coordinator says no, and nothing is done.
                    if index == 0 && step.group == COORDINATOR_GROUP && step.work == operation::Work::Command {
                        return Err(failure);
                    }
                    self.end_operation(begun, Some(&failure)).await;
                    return Err(half_done(failure, begun, steps, index));
                }
            }
            self.write_step(begun, index + 1, "done", None).await?;
        }
        Ok(completion)
    }

    async fn run_step(&mut self, call: &Call<'_>, step: &Step, resumed: bool) -> Result<Option<Completion>> {
        let group = step.group;
        self.join(group).await?;
        if group == COORDINATOR_GROUP && step.work == operation::Work::Command {
            let completion = self.run_on_coordinator(call, call.prepared.text(), true).await?;
            if self.txn.block == Block::Implicit {
                // ANALYZE has read the workers in a block of ours.
                self.commit().await?;
                self.join(COORDINATOR_GROUP).await?;
            }
            return Ok(Some(completion));
        }
        let mut found = Vec::new();
        if let Some(sql) = operation::inspection(&step.work) {
            found = self.inspect(group, &sql).await?;
            if let Some(wait) = operation::settle(&step.work)
                && found.iter().any(|f| !f.valid)
            {
                self.run_quiet(group, &wait).await.map_err(without_position)?;
                found = self.inspect(group, &sql).await?;
            }
        }
        for sql in operation::statements(step, &found, resumed) {
            if group == COORDINATOR_GROUP && sql == step.command {
                return self.run_on_coordinator(call, call.prepared.text(), true).await.map(Some);
            }
            self.run_quiet(group, &sql).await.map_err(without_position)?;
        }
        Ok(None)
    }

    async fn inspect(&mut self, group: i32, sql: &str) -> Result<Vec<Found>> {
        let result = self.collect_on(group, sql).await?;
        let truth = |row, column| result.text(row, column) == Some("t");
        let rows = 0..result.rows.len();
        Ok(rows
            .map(|row| Found {
                name: result.text(row, 0).unwrap_or_default().to_owned(),
                valid: truth(row, 1),
                attached: truth(row, 2),
            })
            .collect())
    }

    /// A lock on the coordinator's table, as PostgreSQL's own would be while an index is built: in a transaction of its
    /// own that has no snapshot, so that nobody who waits for snapshots waits for it. None: the owner may not lock his
    /// own table.
    async fn hold_table(&mut self, table: &TableDescription) -> Result<Option<Lease>> {
        let mut lease = self.coordinator_lease().await?;
        let sql = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 0; \
             LOCK TABLE ONLY {} IN SHARE UPDATE EXCLUSIVE MODE",
            table.qualified_name()
        );
        self.cancel.add(lease.address(), &lease.cancel_key);
        let watched = self.watches_client();
        let locked = tokio::select! {
            locked = lease.query(&sql) => locked.map_err(Failure::from),
            () = self.client.gone(), if watched => Err(Failure::ClientGone),
        };
        let mut held = Some(lease);
        match locked {
            Ok(_) => Ok(held),
            Err(failure) => {
                if matches!(failure, Failure::ClientGone) {
                    // Whoever waits is interrupted with the session.
                    self.cancel.cancel_all().await;
                }
                self.let_go(&mut held).await;
                if failure.sqlstate() == "42501" { Ok(None) } else { Err(self.localise(failure)) }
            }
        }
    }

    /// Describes a table that is held, on the connection that holds it: any other would wait behind those who wait for
    /// it.
    async fn describe_held(&mut self, hold: &mut Option<Lease>, oid: u32) -> Result<TableDescription> {
        let Some(lease) = hold else { return self.describe_table(oid).await };
        let result = lease.query(&describe::describe_query(oid)).await?;
        parse_table(oid, result.text(0, 0))
    }

    async fn let_go(&mut self, hold: &mut Option<Lease>) {
        let Some(mut lease) = hold.take() else { return };
        self.cancel.remove(&lease.cancel_key);
        if self.cancel.is_under_way() {
            self.cancel.settle().await;
        }
        if lease.in_flight > 0 || lease.query("ROLLBACK").await.is_err() {
            lease.poison();
        }
    }

    async fn begin_operation(&mut self, kind: &str, statement: &str, relation: u32, index: &str) -> Result<Begun> {
        let sql = format!(
            "SELECT ROW(o.*)::pg_catalog.text FROM pgherd.begin_operation({}, {}, {relation}, {}) o",
            quote_literal(kind),
            quote_literal(statement),
            quote_literal(index)
        );
        let begun = self.call_own(COORDINATOR_GROUP, &sql).await?;
        let begun = fields_of_record(begun.as_bytes()).unwrap_or_default();
        let text = |at: usize| String::from_utf8(begun.get(at)?.as_ref()?.to_vec()).ok();
        Ok(Begun {
            id: text(0)
                .and_then(|id| id.parse().ok())
                .ok_or_else(|| Failure::new("XX000", "the operation could not be written down"))?,
            index: text(1).and_then(|oid| oid.parse().ok()),
            resumed: text(2).as_deref() == Some("t"),
            advice: "Repeat the statement to finish it.".to_owned(),
        })
    }

    /// `again`: steps that an earlier attempt has done are done once more.
    async fn plan_operation(&mut self, begun: &Begun, index: Option<u32>, steps: &[Step], again: bool) -> Result<()> {
        let index = index.map_or("NULL".to_owned(), |oid| oid.to_string());
        let steps = quote_literal(&operation::to_json(steps));
        let sql = format!("SELECT pgherd.plan_operation({}, {index}, {steps}, {again})", begun.id);
        self.call_own(COORDINATOR_GROUP, &sql).await.map(drop)
    }

    async fn write_step(&mut self, begun: &Begun, number: usize, state: &str, error: Option<&str>) -> Result<()> {
        self.call_own(COORDINATOR_GROUP, &step_sql(begun, number, state, error)).await.map(drop)
    }

    /// The same when something has failed: whether the client is still there does not matter.
    async fn write_step_aside(
        &mut self,
        begun: &Begun,
        number: usize,
        state: &str,
        error: Option<&str>,
    ) -> std::result::Result<(), String> {
        self.write_aside(&step_sql(begun, number, state, error)).await
    }

    async fn end_operation(&mut self, begun: &Begun, failure: Option<&Failure>) {
        let state = if failure.is_some() { "failed" } else { "done" };
        let error = failure.map_or("NULL".to_owned(), |f| quote_literal(&said(f)));
        let sql = format!("SELECT pgherd.end_operation({}, '{state}', {error})", begun.id);
        if let Err(unwritten) = self.write_aside(&sql).await {
            tracing::warn!("operation {}: {unwritten}", begun.id);
        }
    }

    /// Whatever went wrong, no operation stays under way that nobody runs.
    async fn end_unfinished(&mut self, failure: &Failure) {
        let sql = format!("SELECT pgherd.end_operation(NULL, 'failed', {})", quote_literal(&said(failure)));
        if let Err(unwritten) = self.write_aside(&sql).await {
            tracing::warn!("{unwritten}");
        }
    }

    async fn forget_operation(&mut self, begun: &Begun) -> Result<()> {
        self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.forget_operation({})", begun.id)).await.map(drop)
    }

    /// On the coordinator's connection where it is free. Where it is not, the record stays as it was: under way, by a
    /// backend that is no more.
    async fn write_aside(&mut self, call: &str) -> std::result::Result<(), String> {
        let lease = self.txn.participants.get(&COORDINATOR_GROUP).map(|participant| &participant.lease);
        let sql = lease.map(|lease| self.own_call_sql(lease, call)).unwrap_or_default();
        match self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            Some(participant) if participant.lease.is_idle() => {
                participant.lease.query(&sql).await.map(drop).map_err(|e| e.to_string())
            }
            _ => Err("its end could not be written down".to_owned()),
        }
    }
}

fn step_sql(begun: &Begun, number: usize, state: &str, error: Option<&str>) -> String {
    let error = error.map_or("NULL".to_owned(), quote_literal);
    format!("SELECT pgherd.operation_step({}, {number}, '{state}', {error})", begun.id)
}

/// The statement as it is compared with earlier ones.
fn statement_of(call: &Call<'_>) -> String {
    call.prepared.text().trim().trim_end_matches(';').trim_end().to_owned()
}

/// None: the table was dropped, perhaps while it was looked at.
fn unless_gone(described: Result<TableDescription>) -> Result<Option<TableDescription>> {
    match described {
        Err(gone) if matches!(gone.sqlstate(), "42P01" | "XX000") => Ok(None),
        described => described.map(Some),
    }
}

/// The index that a statement has made; `name` is empty where PostgreSQL chose it.
fn made_since(before: &TableDescription, after: &TableDescription, name: &str) -> Option<Index> {
    let is_new = |i: &&Index| before.indexes.iter().all(|o| o.oid != i.oid) && (name.is_empty() || i.name == name);
    after.indexes.iter().filter(is_new).max_by_key(|i| i.oid).cloned()
}

fn undo(index: &str) -> String {
    format!("Repeat the statement to resume it, or use DROP INDEX {} to undo it.", quote_ident(index))
}

fn said(failure: &Failure) -> String {
    match failure {
        Failure::Statement(fields) | Failure::Fatal(fields) => format!("{}: {}", fields.sqlstate(), fields.message()),
        Failure::ClientGone => "the client is gone".to_owned(),
    }
}

fn half_done(failure: Failure, begun: &Begun, steps: &[Step], done: usize) -> Failure {
    let progress = operation::progress(steps, done);
    failure.hint(format!("Operation {} is half done: {progress} {}", begun.id, begun.advice))
}
