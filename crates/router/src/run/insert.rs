//! INSERT whose rows must be taken apart: VALUES rows for several shards, SELECTs whose rows pass the router, and rows
//! of reference tables that are computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, Column, ColumnDefault, GroupId, Snapshot, Table};
use pgherd_planner::{Field, InsertRow, InsertRows, InsertSelect, Plan, RowKey, Tier, default_sql};
use pgherd_sql::ast::Tree;
use pgherd_sql::{Splice, Statement};
use pgherd_wire::backend::{self, FieldDescription};
use pgherd_wire::copy::write_text_row;
use pgherd_wire::frame::Frame;

use super::combine::text_array;
use super::copy_in::CopyIn;
use super::give::{computed_for, draws_of};
use super::request::{Announce, Errors, Heard, Request, Rows, fields_of};
use super::returning::{Marked, Returned};
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};

/// Rows sent in one statement where an INSERT … SELECT cannot be a COPY.
const BATCH_ROWS: usize = 10_000;

/// The server that gets rows, and the one shard of theirs where it is named.
type Place = (GroupId, Option<usize>);

/// Whether a statement that names no distributed table may read one all the same: by a view, or a function.
fn asks_back(statement: &Statement, catalog: &Snapshot) -> bool {
    statement.relations.iter().any(|relation| catalog.passing_on.contains(&relation.name))
        || statement.calls.iter().any(|(_, name)| catalog.user_functions.contains(name))
}

/// A row of the source: where it stood, the remainder of its key, and its fields.
struct PlacedRow {
    index: usize,
    remainder: usize,
    fields: Vec<Option<Bytes>>,
}

impl Session {
    pub(super) async fn run_insert_rows(
        &mut self,
        call: &Call<'_>,
        plan: &Rc<Plan>,
        insert: &InsertRows,
    ) -> Result<Completion> {
        let evaluated = |column: &&Column| {
            let sql = default_sql(column);
            let is_it =
                |field: &Field| matches!((field, &sql), (Field::Evaluate { sql: f, .. }, Some(sql)) if f == sql);
            insert.rows.iter().any(|row| row.fields.iter().any(is_it))
        };
        if insert.needs_coordinator && insert.rows.len() > 1 {
            let defaults = insert.table.columns.iter().filter(evaluated).filter_map(default_sql);
            if self.rows_see_earlier(call, &insert.table, defaults).await? {
                return self.run_federated(call, plan, &[]).await;
            }
        }
        let computed = if insert.needs_coordinator { self.evaluate_rows(call, insert).await? } else { Vec::new() };
        let types = self.param_types(call).await?;
        let mut by_place: BTreeMap<Place, Vec<usize>> = BTreeMap::new();
        for (index, row) in insert.rows.iter().enumerate() {
            let remainder = match &row.key {
                RowKey::Value(key) => {
                    let parameters = super::planned::parameters(call, &types);
                    match self.remainder_of_stored(&insert.table, key, parameters).await {
                        Ok(remainder) => remainder,
                        Err(failure) => return Err(self.explain_key(call, failure).await),
                    }
                }
                RowKey::Computed { field } => {
                    let value = computed.get(index).and_then(|r| r.get(field)).cloned().flatten();
                    self.remainder_of_stored_text(&insert.table, value.as_deref()).await?
                }
            };
            let shard = insert.table.shards().get(remainder).ok_or_else(|| {
                Failure::new("XX000", format!("table \"{}\" has no shard {remainder}", insert.table.name))
            })?;
            let place = (shard.group, insert.by_shard.then_some(remainder));
            by_place.entry(place).or_default().push(index);
        }
        self.open_implicit_block();
        let catalog = self.catalog();
        let groups: BTreeSet<GroupId> = by_place.keys().map(|(group, _)| *group).collect();
        for group in groups {
            self.join(group).await?;
            self.fence_tables(group, plan, &catalog);
            self.mark_writer(group);
        }
        // Only ON CONFLICT locks rows that are there.
        let in_turn = !insert.tail.as_written().is_empty() && self.goes_in_turn(call, true, insert.table.oid);
        let mut total = 0;
        let mut returned: Vec<Returned> = Vec::new();
        let all: Vec<(Place, Vec<usize>)> = by_place.into_iter().collect();
        let marked = match insert.returning && all.len() > 1 {
            true => self.marked_by(call, &insert.table, &insert.columns).await?,
            false => Marked::default(),
        };
        // A server is asked for one shard after another.
        for places in all.chunks(if insert.by_shard || in_turn { 1 } else { all.len().max(1) }) {
            total += self.insert_at(call, insert, places, (&computed, &types), &marked, &mut returned).await?;
        }
        if insert.returning {
            if call.describes()
                && let Some(fields) = &self.described(call.prepared).await?.fields
            {
                backend::write_row_description(&mut self.client.out, fields);
            }
            self.forward_in_order(returned, &marked).await?;
        }
        if call.bound.is_some() {
            self.compile_rows(call.prepared, plan, insert, &types);
        }
        Ok(Completion::Tag(format!("INSERT 0 {total}")))
    }

    /// A function that computes something of each row may read the rows before it, which the coordinator then has to
    /// make one after another. `defaults`: of columns that are left out.
    async fn rows_see_earlier(
        &mut self,
        call: &Call<'_>,
        table: &Arc<Table>,
        defaults: impl Iterator<Item = String>,
    ) -> Result<bool> {
        match &call.prepared.statement {
            Some(statement) => self.may_see_changes(statement, table, defaults).await,
            None => Ok(false),
        }
    }

    /// Whether a function that the statement, or a default of the table, calls may see what it has changed so far.
    pub(super) async fn may_see_changes(
        &mut self,
        statement: &Statement,
        table: &Arc<Table>,
        defaults: impl Iterator<Item = String>,
    ) -> Result<bool> {
        if self.catalog().volatile_user_functions.is_empty() {
            return Ok(false);
        }
        let defaults: Vec<Statement> =
            defaults.filter_map(|sql| pgherd_sql::split(&format!("SELECT {sql}")).ok()?.pop()).collect();
        let called =
            defaults.iter().chain([statement]).flat_map(|s| s.calls.iter().map(|(_, name)| name)).collect::<Vec<_>>();
        self.may_read_changes(&called, table).await
    }

    /// Rows of several servers at the same time; how many they were.
    async fn insert_at(
        &mut self,
        call: &Call<'_>,
        insert: &InsertRows,
        places: &[(Place, Vec<usize>)],
        (computed, types): (&[BTreeMap<usize, Option<Bytes>>], &[u32]),
        marked: &Marked,
        returned: &mut Vec<Returned>,
    ) -> Result<u64> {
        let target = match call.prepared.statement.as_ref().map(|s| &s.tree) {
            Some(Tree::Insert(insert)) => insert.target.reference_name(),
            _ => &insert.table.name,
        };
        let bound = marked.bound(call.bound);
        for ((group, remainder), rows) in places {
            let mut sql = statement_for(insert, *remainder, rows, computed);
            sql.push_str(&marked.appended(target));
            let types = self.types_on(*group, types);
            let request = Request { param_types: &types, bound: bound.as_ref(), ..Request::text(sql) };
            if let Some(participant) = self.txn.participants.get_mut(group) {
                super::request::send(&mut participant.lease, &request, false);
                participant.lease.flush().await?;
            }
        }
        // Positions in the text that was sent mean nothing to the client.
        let empty = Splice::default();
        let errors = Errors::of(&empty, call.prepared.text());
        let mut total = 0;
        for (position, ((group, _), indexes)) in places.iter().enumerate() {
            let mut participant = self.take(*group)?;
            let mut rows = Vec::new();
            let result = self.read_reply(*group, &mut participant, None, Rows::Keep(&mut rows), errors).await;
            self.put_back(*group, participant);
            match result {
                Ok(end) => total += pgherd_wire::backend::command_tag_rows(&end.tag).unwrap_or(0),
                Err(failure) => {
                    self.note_deadlock(&failure, insert.table.oid);
                    let rest: Vec<GroupId> = places[position + 1..].iter().map(|((group, _), _)| *group).collect();
                    self.abandon(&rest).await;
                    return Err(self.explain_key(call, failure).await);
                }
            }
            returned.push(Returned { sent: indexes.clone(), rows, marks: Vec::new() });
        }
        let first = returned.len() - places.len();
        for (((group, _), indexes), returned) in places.iter().zip(&mut returned[first..]) {
            if !marked.is_used() || !returned.is_short() {
                continue;
            }
            let value_of = |index: usize, name: &str| {
                let at = insert.columns.iter().position(|c| c == name)?;
                let value = value_text(insert.rows.get(index)?.fields.get(at)?, computed, index, at);
                (!value.trim().eq_ignore_ascii_case("default")).then_some(value)
            };
            let marks = indexes.iter().map(|index| marked.of(&insert.table, |name| value_of(*index, name)));
            let Some(marks) = marks.collect::<Option<Vec<_>>>() else { continue };
            returned.marks = self.marks(*group, &format!("VALUES ({})", marks.join("), (")), call.bound, types).await?;
        }
        Ok(total)
    }

    /// What rows that were sent to a server are recognised by, computed there.
    async fn marks(&mut self, group: GroupId, sql: &str, bound: Option<&Bound>, types: &[u32]) -> Result<Vec<Bytes>> {
        let bound = bound.map(Bound::for_text);
        let request = Request { param_types: types, bound: bound.as_ref(), ..Request::text(sql) };
        let empty = Splice::default();
        let mut kept = Vec::new();
        let errors = Errors::of(&empty, "");
        self.run_request(group, &request, Rows::Keep(&mut kept), errors).await?;
        kept.into_iter().map(|raw| Ok(fields_of(&Frame { raw })?.pop().flatten().unwrap_or_default())).collect()
    }

    /// Values that only the coordinator can compute: sequences, subqueries, key expressions. One query for all rows.
    async fn evaluate_rows(
        &mut self,
        call: &Call<'_>,
        insert: &InsertRows,
    ) -> Result<Vec<BTreeMap<usize, Option<Bytes>>>> {
        let mut lists = Vec::new();
        let mut positions = Vec::new();
        for (index, row) in insert.rows.iter().enumerate() {
            let mut list = String::new();
            let mut fields = Vec::new();
            // In the order of the table's columns: one may ask what another has drawn.
            let mut in_order: Vec<(usize, &Field)> = row.fields.iter().enumerate().collect();
            in_order.sort_by_key(|(position, _)| {
                let name = insert.columns.get(*position);
                name.and_then(|name| insert.table.columns.iter().position(|c| c.name == *name))
            });
            for (position, field) in in_order {
                if let Field::Evaluate { sql, type_name } = field {
                    let _ = match self.has_styles() {
                        true => write!(list, ", {}", self.plainly(&format!("({sql})::{type_name}"))),
                        false => write!(list, ", (({sql})::{type_name})::pg_catalog.text"),
                    };
                    fields.push(position);
                }
            }
            if !list.is_empty() {
                lists.push((format!("{index}{list}"), fields.len()));
            }
            positions.push(fields);
        }
        let mut computed = vec![BTreeMap::new(); insert.rows.len()];
        // Rows may have different numbers of computed fields, and those of VALUES cannot.
        let width = lists.iter().map(|(_, width)| *width).max().unwrap_or(0);
        let padded = |(list, has): &(String, usize)| format!("{list}{}", ", NULL".repeat(width - has));
        if insert.computes && call.bound.is_none() && !lists.is_empty() {
            // As for a SELECT: the casts take more than an assignment does.
            self.described(call.prepared).await?;
        }
        let mut query = match lists.as_slice() {
            [] => return Ok(computed),
            [(list, _)] => format!("SELECT {list}"),
            lists => format!("VALUES ({})", lists.iter().map(padded).collect::<Vec<_>>().join("), (")),
        };
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.forget_draws_of_others();
        self.mark_writer(COORDINATOR_GROUP);
        let (next_values, others) = computed_for(insert);
        let hides_draws = others.iter().any(|sql| sql.contains("nextval"));
        if !others.is_empty() {
            self.taint_coordinator(call);
        }
        let types = self.param_types(call).await?;
        // A subquery may take a sample, a default ask for the session's process.
        let samples = call.prepared.statement.as_ref().is_some_and(|s| !s.samples.is_empty());
        if samples || query.contains("pg_backend_pid") {
            let parsed = pgherd_sql::split(&query).ok().and_then(|mut s| s.pop());
            if let Some(statement) = parsed {
                query = self.coordinator_text_with(&statement, Some(call), &[]).await?.as_written();
            }
        }
        let mut kept = Vec::new();
        let text_only = call.bound.map(Bound::for_text);
        let request = Request { param_types: &types, bound: text_only.as_ref(), ..Request::text(query) };
        let empty = Splice::default();
        let errors = Errors::of(&empty, "");
        if let Err(failure) = self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), errors).await {
            return Err(self.explain_key(call, failure).await);
        }
        for raw in kept {
            let mut fields = fields_of(&pgherd_wire::frame::Frame { raw })?.into_iter();
            let index = fields.next().flatten().and_then(|f| std::str::from_utf8(&f).ok()?.parse::<usize>().ok());
            let Some(index) = index.filter(|i| *i < computed.len()) else { continue };
            let row: BTreeMap<usize, Option<Bytes>> = positions[index].iter().copied().zip(fields).collect();
            for position in &positions[index] {
                if let Some(Field::Evaluate { sql, .. }) = insert.rows[index].fields.get(*position)
                    && !hides_draws
                    && next_values.contains(sql.as_str())
                {
                    self.note_evaluated(sql, row.get(position).and_then(Option::as_deref));
                }
            }
            computed[index] = row;
        }
        if hides_draws {
            Box::pin(self.note_inserted(&draws_of(&insert.table))).await?;
        }
        if !self.catalog().body_settings.is_empty() {
            // Values and defaults may call what sets some.
            Box::pin(self.notice_temporary_tables()).await?;
        }
        Ok(computed)
    }

    /// A value that passes the router as text, in a form that the client's styles do not change.
    pub(super) fn plainly(&self, value: &str) -> String {
        if self.has_styles() { format!("pgherd.plain_text({value})") } else { value.to_owned() }
    }

    /// Rows of a SELECT pass the router to their shards.
    pub(super) async fn run_insert_select(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        insert: &InsertSelect,
    ) -> Result<Completion> {
        let defaults = insert.defaults.iter().map(|(_, sql)| sql.clone());
        if !insert.moves && self.rows_see_earlier(call, &insert.table, defaults).await? {
            return self.run_federated(call, plan, &[]).await;
        }
        self.open_implicit_block();
        let selected = self.selected_columns(insert).await?;
        let mut columns = insert.columns[..selected.min(insert.columns.len())].to_vec();
        let (mut list, mut names) = (String::new(), String::new());
        let base_type = |name: &str| {
            insert
                .table
                .column(name)
                .map(|c| c.base_type_name.clone())
                .ok_or_else(|| Failure::new("42703", format!("column \"{name}\" does not exist")))
        };
        for (index, name) in columns.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let is_identity =
                insert.table.column(name).is_some_and(|c| matches!(c.default, ColumnDefault::Identity { .. }));
            let own = insert.identity_is_own && is_identity;
            let value = match insert.defaults.iter().find(|(column, _)| own && column == name) {
                Some((_, default)) => default.clone(),
                None => format!("pgherd_s.c{index}"),
            };
            let _ = write!(list, "{separator}{}", self.plainly(&format!("({value})::{}", base_type(name)?)));
            let _ = write!(names, "{separator}c{index}");
        }
        let left_out: Vec<&(String, String)> =
            insert.defaults.iter().filter(|(name, _)| !columns.contains(name)).collect();
        for (name, default) in left_out {
            let _ = write!(list, ", {}", self.plainly(&format!("({default})::{}", base_type(name)?)));
            columns.push(name.clone());
        }
        let columns = columns;
        if call.bound.is_none() {
            // Its own words for what is wrong with the statement: the values are cast to the columns' types below,
            // which takes more than an assignment does.
            self.described(call.prepared).await?;
        }
        let sql = match insert.moves {
            false => format!("SELECT {list} FROM ({}) AS pgherd_s({names})", insert.select),
            true => format!("WITH pgherd_s({names}) AS ({}) SELECT {list} FROM pgherd_s", insert.select),
        };
        // The coordinator reads; where it reads distributed tables, itself or by what it calls, the workers are busy
        // with that until it is done, and the rows of before are what it is to see.
        let inner = pgherd_sql::split(&sql).ok().and_then(|mut s| s.pop());
        let reads_workers = match &inner {
            Some(statement) => {
                let (catalog, path) = (self.catalog(), self.search_path().await?);
                asks_back(statement, &catalog)
                    || !matches!(self.plan_statement(statement, &catalog, &path, false).tier, Tier::Coordinator { .. })
            }
            None => true,
        };
        self.join(COORDINATOR_GROUP).await?;
        self.forget_draws_of_others();
        self.mark_writer(COORDINATOR_GROUP);
        self.taint_coordinator(call);
        let sql = match &inner {
            Some(statement) => self.coordinator_text_with(statement, Some(call), &[]).await?.as_written(),
            None => sql,
        };
        let types = self.param_types(call).await?;
        let text_only = call.bound.map(Bound::for_text);
        let request = Request { param_types: &types, bound: text_only.as_ref(), ..Request::text(sql) };
        let empty = Splice::default();
        let errors = Errors::of(&empty, call.prepared.text());
        if !reads_workers && insert.tail.is_none() {
            return self.stream_rows(insert, &columns, &request, errors).await;
        }
        let mut kept = Vec::new();
        self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), errors).await?;
        let rows = match &insert.tail {
            None => {
                let mut copy = self.start_rows(&insert.table, &columns);
                let key = self.key_position(&insert.table, &columns);
                for raw in kept {
                    self.copy_data_row(&mut copy, key, &pgherd_wire::frame::Frame { raw }).await?;
                }
                self.finish_copy_in(copy).await?
            }
            Some(tail) => self.insert_batches(call, plan, insert, &columns, tail, kept).await?,
        };
        let verb = if insert.moves { "UPDATE" } else { "INSERT 0" };
        Ok(Completion::Tag(format!("{verb} {rows}")))
    }

    /// How many columns the SELECT gives.
    async fn selected_columns(&mut self, insert: &InsertSelect) -> Result<usize> {
        if insert.width_known {
            return Ok(insert.columns.len());
        }
        let described = self.describe_on_coordinator(&insert.select, &[]).await?;
        let width = described.fields.map_or(0, |f| f.len());
        if width > insert.columns.len() {
            return Err(Failure::new("42601", "INSERT has more expressions than target columns"));
        }
        Ok(width)
    }

    fn key_position(&self, table: &Table, columns: &[String]) -> Option<usize> {
        let key = table.key_column()?;
        columns.iter().position(|c| *c == key.name)
    }

    /// The coordinator computes rows while the workers take them.
    async fn stream_rows(
        &mut self,
        insert: &InsertSelect,
        columns: &[String],
        request: &Request<'_>,
        errors: Errors<'_>,
    ) -> Result<Completion> {
        let mut copy = self.start_rows(&insert.table, columns);
        let key = self.key_position(&insert.table, columns);
        let mut participant = self.take(COORDINATOR_GROUP)?;
        super::request::send(&mut participant.lease, request, true);
        let mut failure: Option<Failure> = None;
        let mut taken = 0;
        loop {
            let frame = match self.hear(COORDINATOR_GROUP, &mut participant).await {
                Ok(Heard::Frame(frame)) => frame,
                // Not foreseen, by a policy perhaps: workers in the middle of a COPY answer nothing.
                Ok(Heard::Asked(batch)) => {
                    match self.end_copies(&mut copy).await {
                        Ok(rows) => taken += rows,
                        Err(error) => drop(failure.get_or_insert(error)),
                    }
                    self.answer(batch, &mut participant).await;
                    continue;
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    break;
                }
            };
            match frame.tag() {
                b'D' if failure.is_none() => {
                    if let Err(error) = self.copy_data_row(&mut copy, key, &frame).await {
                        // The rest is not wanted any more.
                        if let Some(cancel_key) = participant.lease.cancel_key.clone() {
                            let address = participant.lease.address().clone();
                            pgherd_backend::cancel(&address, &cancel_key).await;
                        }
                        failure = Some(error);
                    }
                }
                b'E' => {
                    let fields = backend::parse_error(&frame)?;
                    failure.get_or_insert(self.translate(fields, errors));
                }
                b'N' => self.client.forward(&frame),
                b'Z' => break,
                _ => {}
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        match failure {
            Some(failure) => {
                // What a worker found wrong explains more than our having stopped.
                let explained = self.abort_copy_in(copy).await;
                Err(explained.unwrap_or(failure))
            }
            None => {
                let rows = taken + self.finish_copy_in(copy).await?;
                Ok(Completion::Tag(format!("INSERT 0 {rows}")))
            }
        }
    }

    /// One row of the coordinator's answer goes to the worker that owns its key.
    async fn copy_data_row(
        &mut self,
        copy: &mut CopyIn,
        key: Option<usize>,
        frame: &pgherd_wire::frame::Frame,
    ) -> Result<()> {
        let fields = fields_of(frame)?;
        let value = key.and_then(|k| fields.get(k).cloned().flatten());
        let remainder = self.remainder_of_stored_text(&copy.table.clone(), value.as_deref()).await?;
        let mut line = bytes::BytesMut::with_capacity(frame.raw.len() + 16);
        write_text_row(&mut line, &fields);
        self.copy_line(copy, remainder, &line).await
    }

    /// ON CONFLICT and RETURNING: rows go as parameters of an INSERT.
    async fn insert_batches(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        insert: &InsertSelect,
        columns: &[String],
        tail: &Splice,
        kept: Vec<Bytes>,
    ) -> Result<u64> {
        let key = self.key_position(&insert.table, columns);
        let mut by_place: BTreeMap<Place, Vec<PlacedRow>> = BTreeMap::new();
        for (index, raw) in kept.into_iter().enumerate() {
            let fields = fields_of(&pgherd_wire::frame::Frame { raw })?;
            let value = key.and_then(|k| fields.get(k).cloned().flatten());
            let remainder = self.remainder_of_stored_text(&insert.table, value.as_deref()).await?;
            let group = insert.table.shards().get(remainder).map_or(0, |s| s.group);
            let place = (group, insert.by_shard.then_some(remainder));
            by_place.entry(place).or_default().push(PlacedRow { index, remainder, fields });
        }
        // One command must not update a row twice, and rows of one key are to be in one. Where it is one, rows are
        // locked in the order in which they come, as by others.
        let updates = matches!(call.prepared.statement.as_ref().map(|s| &s.tree),
            Some(Tree::Insert(insert)) if insert.on_conflict.as_ref().is_some_and(|c| c.update));
        if updates {
            let long = by_place.values_mut().filter(|rows| rows.len() > BATCH_ROWS);
            long.for_each(|rows| rows.sort_by_key(|row| row.remainder));
        }
        let fields = if insert.returning && call.describes() {
            self.described(call.prepared).await?.fields.clone()
        } else {
            None
        };
        if let Some(fields) = &fields {
            backend::write_row_description(&mut self.client.out, fields);
        }
        let catalog = self.catalog();
        let first = call.bound.map_or(0, |b| b.params.len());
        let quoted: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        let value_of = |index: usize, name: &str| {
            let base = insert.table.column(name).map_or("text", |c| c.base_type_name.as_str());
            format!("(pgherd_u.c{index})::{base}")
        };
        let (mut select, mut arrays, mut names) = (String::new(), String::new(), String::new());
        for (index, name) in columns.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let _ = write!(select, "{separator}{}", value_of(index, name));
            let _ = write!(arrays, "{separator}${}::pg_catalog.text[]", first + index + 1);
            let _ = write!(names, "{separator}c{index}");
        }
        let from = format!("FROM unnest({arrays}) AS pgherd_u({names})");
        // The rows of one statement come back in their order.
        let several = by_place.len() > 1 || by_place.values().any(|rows| rows.len() > BATCH_ROWS);
        let marked = match insert.returning && several {
            true => self.marked_by(call, &insert.table, columns).await?,
            false => Marked::default(),
        };
        let target = insert.alias.as_deref().unwrap_or(&insert.table.name);
        let alias = insert.alias.as_ref().map_or_else(String::new, |alias| format!(" AS {}", quote_ident(alias)));
        let sql_at = |remainder: Option<usize>| {
            format!(
                "INSERT INTO {}{alias} ({}) SELECT {select} {from} {}{}",
                name_at(&insert.table, remainder),
                quoted.join(", "),
                tail.render(|oid| (oid == insert.table.oid).then(|| name_at(&insert.table, remainder))),
                marked.appended(target)
            )
        };
        let mut types = self.param_types(call).await?;
        types.resize(first, 0);
        types.extend(std::iter::repeat_n(1009, columns.len()));
        let empty = Splice::default();
        let errors = Errors::of(&empty, call.prepared.text());
        let mut total = 0;
        let mut returned = Vec::new();
        for ((group, remainder), rows) in by_place {
            let sql = sql_at(remainder);
            self.join(group).await?;
            self.fence_tables(group, plan, &catalog);
            self.mark_writer(group);
            let mut rest = rows.as_slice();
            while !rest.is_empty() {
                let mut length = rest.len().min(BATCH_ROWS);
                while updates && rest.get(length).is_some_and(|row| row.remainder == rest[length - 1].remainder) {
                    length += 1;
                }
                let (batch, others) = rest.split_at(length);
                rest = others;
                let mut bound = marked.bound(call.bound).unwrap_or_default();
                bound.param_formats = (0..first).map(|i| i16::from(bound.is_binary(i))).collect();
                for index in 0..columns.len() {
                    let column: Vec<Option<Bytes>> =
                        batch.iter().map(|row| row.fields.get(index).cloned().flatten()).collect();
                    bound.param_formats.push(1);
                    bound.params.push(Some(text_array(&column)));
                }
                let request = Request { param_types: &types, bound: Some(&bound), ..Request::text(sql.as_str()) };
                let mut found = Returned { sent: batch.iter().map(|row| row.index).collect(), ..Returned::default() };
                let rows = match several {
                    true => Rows::Keep(&mut found.rows),
                    false => Rows::Client { announce: Announce::Nothing, limit: None },
                };
                let end = self.run_request(group, &request, rows, errors).await?;
                total += backend::command_tag_rows(&end.tag).unwrap_or(0);
                if marked.is_used() && found.is_short() {
                    let at = |name: &str| columns.iter().position(|c| c == name);
                    let mark = marked.of(&insert.table, |name| Some(value_of(at(name)?, name)));
                    if let Some(mark) = mark {
                        found.marks = self.marks(group, &format!("SELECT {mark} {from}"), Some(&bound), &types).await?;
                    }
                }
                returned.push(found);
            }
        }
        self.forward_in_order(returned, &marked).await?;
        Ok(total)
    }

    /// INSERT into a reference table: the coordinator computes the rows once, every worker gets them as they are.
    pub(super) async fn run_replicate_rows(
        &mut self,
        call: &Call<'_>,
        table: &Arc<Table>,
        sql: &Splice,
        returning: bool,
        text: &str,
    ) -> Result<Completion> {
        // The rows come back by RETURNING, whatever the client may read; and COPY takes none under row security.
        let right = self.copy_right(table).await?;
        if returning && call.bound.is_some_and(|b| b.result_formats.contains(&1)) || !right.reads || right.is_bound {
            return self.run_and_forward(call, std::slice::from_ref(table), sql).await;
        }
        self.open_implicit_block();
        let groups = self.lock_all_copies(std::slice::from_ref(table)).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let types = self.param_types(call).await?;
        let row = |target: &str| match self.has_styles() {
            true => table.columns.iter().fold(String::new(), |list, column| {
                let separator = if list.is_empty() { "" } else { ", " };
                format!("{list}{separator}pgherd.plain_text({target}.{})", quote_ident(&column.name))
            }),
            false => format!("{target}.*"),
        };
        let sql = &returning_all(sql, call.prepared.statement.as_ref(), returning, row);
        let text_only = call.bound.map(Bound::for_text);
        let request = Request { param_types: &types, bound: text_only.as_ref(), ..Request::text(sql.as_written()) };
        let errors = Errors::of(sql, text);
        let mut kept = Vec::new();
        self.forward_copies(false);
        let end = self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), errors).await?;
        self.forward_copies(true);
        let columns: Vec<String> = table
            .columns
            .iter()
            .filter(|c| c.default != pgherd_catalog::ColumnDefault::Generated)
            .map(|c| c.name.clone())
            .collect();
        let all: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        // What the client's own RETURNING list asks for comes before the table's columns in each row.
        let fields = match returning {
            true => self.described(call.prepared).await?.fields.clone().unwrap_or_default(),
            false => Vec::new(),
        };
        let own = fields.len();
        let mut lines = bytes::BytesMut::new();
        for raw in &kept {
            let fields = fields_of(&pgherd_wire::frame::Frame { raw: raw.clone() })?;
            let row: Vec<Option<Bytes>> = all
                .iter()
                .zip(fields.into_iter().skip(own))
                .filter(|(name, _)| columns.iter().any(|c| c == *name))
                .map(|(_, value)| value)
                .collect();
            write_text_row(&mut lines, &row);
        }
        for group in groups.into_iter().filter(|g| *g != COORDINATOR_GROUP) {
            self.mark_writer(group);
            self.copy_lines_to(group, table, &columns, &lines).await?;
        }
        if returning {
            self.return_rows(call, &fields, kept).await?;
        }
        Ok(Completion::Tag(end.tag))
    }

    /// The fields of each row that the client's own RETURNING list asked for.
    async fn return_rows(&mut self, call: &Call<'_>, fields: &[FieldDescription], kept: Vec<Bytes>) -> Result<()> {
        if call.describes() {
            backend::write_row_description(&mut self.client.out, fields);
        }
        for raw in kept {
            let row = fields_of(&pgherd_wire::frame::Frame { raw })?;
            backend::write_data_row(&mut self.client.out, &row[..fields.len().min(row.len())]);
            self.client.flush_if_full().await?;
        }
        Ok(())
    }
}

/// The statement with the whole row, under the target's name, behind what it returns.
fn returning_all(sql: &Splice, statement: Option<&Statement>, returning: bool, row: impl Fn(&str) -> String) -> Splice {
    let mut sql = sql.clone();
    let Some(Tree::Insert(insert)) = statement.map(|s| &s.tree) else { return sql };
    let word = if returning { "," } else { "RETURNING" };
    sql.push_text(&format!("\n{word} {}", row(&quote_ident(insert.target.reference_name()))), None);
    sql
}

/// `INSERT … VALUES` with some of the rows, computed fields in place.
fn statement_for(
    insert: &InsertRows,
    remainder: Option<usize>,
    rows: &[usize],
    computed: &[BTreeMap<usize, Option<Bytes>>],
) -> String {
    let name_of = |oid| (oid == insert.table.oid).then(|| name_at(&insert.table, remainder));
    let mut sql = insert.head.render(name_of);
    for (position, index) in rows.iter().enumerate() {
        let row: &InsertRow = &insert.rows[*index];
        sql.push_str(if position == 0 { "(" } else { ", (" });
        for (number, field) in row.fields.iter().enumerate() {
            if number > 0 {
                sql.push_str(", ");
            }
            sql.push_str(&value_text(field, computed, *index, number));
        }
        sql.push(')');
    }
    let tail = insert.tail.render(name_of);
    if !tail.is_empty() {
        sql.push(' ');
        sql.push_str(&tail);
    }
    sql
}

/// The value of a field as it is sent.
fn value_text(field: &Field, computed: &[BTreeMap<usize, Option<Bytes>>], index: usize, number: usize) -> String {
    match field {
        Field::Text(text) => text.as_written(),
        Field::Evaluate { type_name, .. } => {
            match computed.get(index).and_then(|r| r.get(&number)).cloned().flatten() {
                None => "NULL".to_owned(),
                Some(value) => format!("{}::{type_name}", quote_literal(&String::from_utf8_lossy(&value))),
            }
        }
    }
}

/// A table's name on a worker, or that of one of its partitions.
fn name_at(table: &Table, remainder: Option<usize>) -> String {
    match remainder.and_then(|at| table.shards().get(at)) {
        Some(shard) => format!("{}.{}", shard.schema(), quote_ident(&table.name)),
        None => format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name)),
    }
}
