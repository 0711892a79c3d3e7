//! Partial rows of the workers, combined by PostgreSQL: they go to one server as arrays of text, are cast back to the
//! types in which the workers gave them, and the planner's merge statement runs over that.

use std::borrow::Cow;
use std::fmt::Write;

use bytes::{BufMut, Bytes, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_planner::{Merge, Plan, Scatter};
use pgherd_wire::backend::{self, FieldDescription};
use pgherd_wire::frame::Frame;

use super::request::{Announce, Errors, Request, Rows, fields_of};
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};

/// Partial rows kept in memory at the most; beyond it the coordinator answers the statement by itself.
const PARTIAL_BYTES_MAX: usize = 256 << 20;
const TEXT_OID: u32 = 25;
const TEXT_ARRAY_OID: u32 = 1009;

/// Partial rows by column.
#[derive(Default)]
pub struct Partials {
    fields: Vec<FieldDescription>,
    columns: Vec<Vec<Option<Bytes>>>,
    bytes: usize,
    /// The statement's own columns, to be sent to the client once.
    announce: Option<Vec<FieldDescription>>,
}

impl Session {
    pub(super) async fn run_merge(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        scatter: &Scatter,
        merge: &Merge,
        groups: &[GroupId],
        types: &[u32],
    ) -> Result<Completion> {
        let described = self.described(call.prepared).await?;
        let text_formats = call.bound.map(|b| Bound { result_formats: Vec::new(), ..b.clone() });
        let request = Request {
            sql: scatter.sql.as_written().into(),
            id: None,
            param_types: types,
            bound: text_formats.as_ref(),
            describe: true,
            portal: "",
            max_rows: 0,
        };
        self.start_scatter(plan, groups, &request).await?;
        let errors = Errors { splice: Some(&scatter.sql), text: call.prepared.text(), renamed: None };
        // The client learns the columns when a worker has begun: after its rights were checked, before any row.
        let announce = described.fields.clone().filter(|_| call.describes());
        let mut partials = Partials { announce, ..Partials::default() };
        for (index, group) in groups.iter().enumerate() {
            if let Err(failure) = self.read_partials(*group, &mut partials, errors).await {
                self.abandon(&groups[index + 1..]).await;
                return Err(failure);
            }
        }
        let fits = partials.bytes <= PARTIAL_BYTES_MAX;
        let casts = if fits { self.casts(groups[0], &partials.fields).await? } else { None };
        let Some(casts) = casts else { return self.federate_instead(call).await };
        let first = call.bound.map_or(0, |b| b.params.len());
        let partial_types: Vec<u32> = partials.fields.iter().map(|f| f.type_oid).collect();
        let sql = merge.render(&source(&casts, first), &partial_types);
        let mut param_types = types.to_vec();
        param_types.resize(first, 0);
        let mut bound = call.bound.cloned().unwrap_or_default();
        bound.param_formats = (0..first).map(|i| i16::from(bound.is_binary(i))).collect();
        for column in &partials.columns {
            param_types.push(TEXT_ARRAY_OID);
            bound.param_formats.push(1);
            bound.params.push(Some(text_array(column)));
        }
        drop(partials);
        self.join(COORDINATOR_GROUP).await?;
        // The columns are checked against what the coordinator says of the statement itself: a merge that would give
        // other types is a defect, and the general way answers instead.
        let merged = self.describe_on_coordinator(&sql, &param_types).await?;
        let same = match (&merged.fields, &described.fields) {
            (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.type_oid == b.type_oid),
            _ => false,
        };
        if !same {
            tracing::warn!("the merge of \"{}\" has other columns than the statement", call.prepared.text());
            return self.federate_instead(call).await;
        }
        let request = Request {
            sql: Cow::Owned(sql),
            id: None,
            param_types: &param_types,
            bound: Some(&bound),
            describe: false,
            portal: "",
            max_rows: 0,
        };
        let rows = Rows::Client { announce: Announce::Nothing, limit: None };
        let end = self.run_request(COORDINATOR_GROUP, &request, rows, Errors::default()).await?;
        Ok(Completion::Tag(end.tag))
    }

    /// Sorted rows for a foreign table of the coordinator, which is busy with the statement that reads them: a worker
    /// merges. Whole DataRow messages.
    pub async fn merge_for_callback(
        &mut self,
        groups: &[GroupId],
        sql: &str,
        merge: &Merge,
        bound: Option<&Bound>,
    ) -> Result<Vec<Bytes>> {
        let mut partials = Partials::default();
        for group in groups {
            let request = Request { bound, describe: true, ..Request::text(sql) };
            if let Some(participant) = self.txn.participants.get_mut(group) {
                super::request::send(&mut participant.lease, &request, false);
            }
            self.read_partials(*group, &mut partials, Errors::default()).await?;
        }
        if partials.bytes > PARTIAL_BYTES_MAX {
            return Err(Failure::new(
                "53200",
                "the rows of a distributed table that must be sorted do not fit in memory",
            )
            .detail(format!("The limit is {PARTIAL_BYTES_MAX} bytes.")));
        }
        let casts = self
            .casts(groups[0], &partials.fields)
            .await?
            .ok_or_else(|| Failure::refused("rows of this type cannot be sorted for the coordinator"))?;
        let types: Vec<u32> = partials.fields.iter().map(|f| f.type_oid).collect();
        let first = bound.map_or(0, |b| b.params.len());
        let text = merge.render(&source(&casts, first), &types);
        let mut bound = bound.cloned().unwrap_or_default();
        bound.param_formats = (0..first).map(|i| i16::from(bound.is_binary(i))).collect();
        // Text, as postgres_fdw sends them; the merge itself does not use them.
        let mut param_types = vec![TEXT_OID; first];
        for column in &partials.columns {
            param_types.push(TEXT_ARRAY_OID);
            bound.param_formats.push(1);
            bound.params.push(Some(text_array(column)));
        }
        let request = Request { param_types: &param_types, bound: Some(&bound), ..Request::text(text) };
        let mut kept = Vec::new();
        self.run_request(groups[0], &request, Rows::Keep(&mut kept), Errors::default()).await?;
        Ok(kept)
    }

    /// The general way, inside the block that is open.
    async fn federate_instead(&mut self, call: &Call<'_>) -> Result<Completion> {
        let sql = self.coordinator_text(call).await?;
        let call = Call { described: true, ..*call };
        self.run_coordinator_plan(&call, &sql, false, true).await
    }

    async fn read_partials(&mut self, group: GroupId, partials: &mut Partials, errors: Errors<'_>) -> Result<()> {
        let mut participant = self.take(group)?;
        let mut failure = None;
        let result = loop {
            let frame = match self.next_frame(group, &mut participant).await {
                Ok(frame) => frame,
                Err(failure) => break Err(failure),
            };
            match frame.tag() {
                b'T' => {
                    partials.describe(backend::parse_row_description(&frame)?);
                    if let Some(fields) = partials.announce.take() {
                        backend::write_row_description(&mut self.client.out, &fields);
                    }
                }
                b'D' => partials.push(&frame)?,
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'N' => self.client.forward(&frame),
                b'Z' => {
                    break match failure {
                        Some(fields) => Err(self.translate(fields, errors)),
                        None => Ok(()),
                    };
                }
                _ => {}
            }
        };
        self.put_back(group, participant);
        result
    }

    /// The type of each partial column as SQL; none where a type cannot be named or read back from text.
    async fn casts(&mut self, group: GroupId, fields: &[FieldDescription]) -> Result<Option<Vec<String>>> {
        let mut list = String::new();
        for field in fields {
            // record, unknown and other pseudo-types have no cast.
            if matches!(field.type_oid, 2249 | 2287 | 705) {
                return Ok(None);
            }
            let separator = if list.is_empty() { "" } else { ", " };
            let _ = write!(list, "{separator}({}::oid, {})", field.type_oid, field.type_modifier);
        }
        if list.is_empty() {
            return Ok(None);
        }
        // The worker's numbers mean something on that worker only.
        let sql = format!(
            "SELECT CASE WHEN n.nspname = 'pg_catalog' THEN pg_catalog.format_type(t.oid, v.m) \
             ELSE pg_catalog.format('%I.%I', n.nspname, t.typname) END \
             FROM (VALUES {list}) v(o, m) JOIN pg_catalog.pg_type t ON t.oid = v.o \
             JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
        );
        let key: Vec<(u32, i32)> = fields.iter().map(|f| (f.type_oid, f.type_modifier)).collect();
        let builtin = key.iter().all(|(oid, _)| *oid < 16384);
        if builtin && let Some(known) = self.thread.type_names.borrow().get(&key) {
            return Ok(Some(known.clone()));
        }
        let result = self.collect_on(group, &format!("{sql} ORDER BY v.o, v.m")).await?;
        // One name per distinct (type, modifier), in the order of the sorted list.
        let mut sorted = key.clone();
        sorted.sort_unstable();
        if result.rows.len() != sorted.len() {
            return Ok(None);
        }
        let names: Vec<String> = key
            .iter()
            .map(|k| {
                let row = sorted.iter().position(|s| s == k).unwrap_or(0);
                result.text(row, 0).unwrap_or("text").to_owned()
            })
            .collect();
        if builtin {
            self.thread.type_names.borrow_mut().insert(key, names.clone());
        }
        Ok(Some(names))
    }
}

impl Partials {
    fn describe(&mut self, fields: Vec<FieldDescription>) {
        if self.columns.is_empty() {
            self.columns = fields.iter().map(|_| Vec::new()).collect();
            self.fields = fields;
        }
    }

    fn push(&mut self, frame: &Frame) -> Result<()> {
        self.bytes += frame.raw.len();
        if self.bytes > PARTIAL_BYTES_MAX {
            // Too much already: counted, not kept.
            self.columns.iter_mut().for_each(Vec::clear);
            return Ok(());
        }
        for (column, value) in self.columns.iter_mut().zip(fields_of(frame)?) {
            column.push(value);
        }
        Ok(())
    }
}

/// The FROM item: one text array per column, each element cast to its type.
fn source(casts: &[String], first_param: usize) -> String {
    let mut select = String::new();
    let mut arrays = String::new();
    let mut names = String::new();
    for (index, cast) in casts.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let number = index + 1;
        let _ = write!(select, "{separator}(pgherd_u.c{number})::{cast} AS c{number}");
        let _ = write!(arrays, "{separator}${}::pg_catalog.text[]", first_param + number);
        let _ = write!(names, "{separator}c{number}");
    }
    format!("(SELECT {select} FROM unnest({arrays}) AS pgherd_u({names})) AS pgherd_partial")
}

/// A one-dimensional text array in binary form (array_recv in src/backend/utils/adt/arrayfuncs.c).
pub fn text_array(values: &[Option<Bytes>]) -> Bytes {
    let mut out =
        BytesMut::with_capacity(20 + values.iter().map(|v| 4 + v.as_ref().map_or(0, Bytes::len)).sum::<usize>());
    if values.is_empty() {
        out.put_i32(0);
        out.put_i32(0);
        out.put_u32(TEXT_OID);
        return out.freeze();
    }
    out.put_i32(1);
    out.put_i32(i32::from(values.iter().any(Option::is_none)));
    out.put_u32(TEXT_OID);
    out.put_i32(values.len() as i32);
    out.put_i32(1);
    for value in values {
        match value {
            None => out.put_i32(-1),
            Some(value) => {
                out.put_i32(value.len() as i32);
                out.put_slice(value);
            }
        }
    }
    out.freeze()
}
