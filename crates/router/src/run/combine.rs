//! Partial rows of the workers, combined by PostgreSQL: they go to one server as arrays of text (many, as a temporary
//! table), have there the types in which the workers gave them, and the planner's merge statement runs over that.

use std::borrow::Cow;
use std::fmt::Write;
use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Table};
use pgherd_planner::{Merge, Plan, Scatter};
use pgherd_wire::backend::FieldDescription;
use pgherd_wire::frame::Frame;

use super::partials::{PARTIAL_TABLE, Partials, Place};
use super::request::{Announce, Errors, Request, Rows, fields_of};
use super::stage::{collation_question, collations_of};
use super::{Call, Completion};
use crate::describe::Described;
use crate::error::{Failure, Result};
use crate::session::{Bound, Session, next_id};

/// Partial rows kept in memory at the most; more go on to the coordinator as they come.
const MEMORY_MAX: usize = 8 << 20;
/// The same where they cannot go there: the transaction is read only, or the coordinator waits for these very rows.
pub(super) const STUCK_MEMORY_MAX: usize = 256 << 20;
/// Lists of column types whose names are kept per thread.
const TYPE_NAMES_MAX: usize = 1_000;
const TEXT_OID: u32 = 25;
pub const TEXT_ARRAY_OID: u32 = 1009;

impl Session {
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn run_merge(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        scatter: &Scatter,
        merge: &Merge,
        groups: &[GroupId],
        types: &[u32],
        id: Option<u64>,
    ) -> Result<Completion> {
        let described = self.described(call.prepared).await?;
        let text_formats = call.bound.map(Bound::for_text);
        let sql = scatter.sql.as_written();
        let collations = match merge.collated {
            true => match self.collations_beside(&sql, types, call.bound).await? {
                Some(collations) => collations,
                None => return self.federate(call).await,
            },
            false => Vec::new(),
        };
        let request = Request {
            sql: sql.into(),
            id,
            param_types: types,
            bound: text_formats.as_ref(),
            describe: true,
            portal: "",
            max_rows: 0,
        };
        let kept = id.map(|id| (id, request.sql.len()));
        self.start_scatter(plan, groups, &request, call.staged).await?;
        let errors = Errors::of(&scatter.sql, call.prepared.text());
        // The client learns the columns when a worker has begun: after its rights were checked, before any row.
        let announce = described.fields.clone().filter(|_| call.describes());
        let mut partials = Partials::new(MEMORY_MAX, true, announce);
        partials.collations = collations;
        for (index, group) in groups.iter().enumerate() {
            if let Err(failure) = self.read_partials(*group, kept, &mut partials, errors).await {
                self.abandon(&groups[index..]).await;
                if partials.place == Place::Table {
                    self.abort_partial_table().await;
                }
                return Err(failure);
            }
        }
        let mut bound = call.bound_on(COORDINATOR_GROUP).map(|b| b.into_owned()).unwrap_or_default();
        let first = bound.params.len();
        let partial_types = partials.types();
        let mut param_types = types.to_vec();
        param_types.resize(first, 0);
        bound.param_formats = (0..first).map(|i| i16::from(bound.is_binary(i))).collect();
        let in_table = partials.place == Place::Table;
        let source = match partials.place {
            Place::Dropped => return self.federate_instead(call).await,
            Place::Table => {
                self.end_partial_table().await?;
                format!("{PARTIAL_TABLE} AS pgherd_partial")
            }
            Place::Memory => {
                let casts = self.casts(groups[0], &partials.fields).await?;
                let Some(casts) = casts else { return self.federate_instead(call).await };
                let casts = with_collations(casts, &partials.collations);
                for column in partials.columns {
                    param_types.push(TEXT_ARRAY_OID);
                    bound.param_formats.push(1);
                    bound.params.push(Some(column.finish()));
                }
                source(&casts, first)
            }
        };
        let sql = merge.render(&source, &partial_types);
        self.join(COORDINATOR_GROUP).await?;
        // The columns are checked against what the coordinator says of the statement itself: a merge that would give
        // other types is a defect, and the general way answers instead.
        let (id, merged) = match in_table {
            // The table is another one each time.
            true => (None, Rc::new(self.describe_on_coordinator(&sql, &param_types).await?)),
            false => self.described_merge(&sql, &param_types).await?,
        };
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
            id,
            param_types: &param_types,
            bound: Some(&bound),
            describe: false,
            portal: "",
            max_rows: 0,
        };
        let rows = Rows::Client { announce: Announce::Nothing, limit: None };
        let end = self.run_request(COORDINATOR_GROUP, &request, rows, Errors::default()).await?;
        if in_table {
            self.run_quiet(COORDINATOR_GROUP, &format!("DROP TABLE {PARTIAL_TABLE}")).await?;
        }
        Ok(Completion::Tag(end.tag))
    }

    /// What the coordinator says of a merge statement, and the number under which it keeps it: asked once per text.
    pub(super) async fn described_merge(&mut self, sql: &str, types: &[u32]) -> Result<(Option<u64>, Rc<Described>)> {
        let key = self.statement_key(sql, types).await?;
        // A literal is read when the text is parsed, under settings that others do not have, or as that moment's time.
        let has_literal =
            sql.contains('\'') || sql.split('$').skip(1).any(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()));
        if let Some(key) = &key
            && let Some((id, described)) = self.thread.merges.borrow_mut().get(key)
        {
            return Ok(((!has_literal).then_some(id), described));
        }
        let described = Rc::new(self.describe_on_coordinator(sql, types).await?);
        let Some(key) = key else { return Ok((None, described)) };
        // Of another statement than any shard's.
        let id = next_id() * 65_536;
        self.thread.merges.borrow_mut().insert(key, (id, described.clone()));
        Ok(((!has_literal).then_some(id), described))
    }

    /// Sorted rows for a foreign table of the coordinator, which is busy with the statement that reads them: a worker
    /// merges. Whole DataRow messages.
    /// `sql`: what the worker of a group runs; `text`: the query of its rows, where that is not it.
    pub async fn merge_for_callback(
        &mut self,
        groups: &[GroupId],
        sql: &dyn Fn(GroupId) -> String,
        text: Option<&str>,
        merge: &Merge,
        bound: Option<&Bound>,
        owner: Option<(&Table, &str)>,
    ) -> Result<Vec<Bytes>> {
        if let Some((table, owner)) = owner {
            return self.merge_as_owner(groups, sql, merge, bound, table, owner).await;
        }
        let mut partials = Partials::new(STUCK_MEMORY_MAX, false, None);
        // Partial rows, and what is made of them, pass as text.
        let mut styled = false;
        for group in groups {
            styled |= self.with_plain_styles(*group).await?;
            let request = Request { bound, describe: true, ..Request::text(sql(*group)) };
            if let Some(participant) = self.txn.participants.get_mut(group) {
                super::request::send(&mut participant.lease, &request, false);
            }
            self.read_partials(*group, None, &mut partials, Errors::default()).await?;
        }
        if partials.place != Place::Memory {
            return Err(too_large_to_sort());
        }
        let casts = self.casts(groups[0], &partials.fields).await?.ok_or_else(cannot_sort)?;
        let types = partials.types();
        let first = bound.map_or(0, |b| b.params.len());
        let collations = match merge.collated {
            true if self.have_own_collations(groups[0], &partials.fields).await? => return Err(cannot_sort()),
            true => {
                let text = text.map_or_else(|| sql(groups[0]), str::to_owned);
                let types = vec![TEXT_OID; first];
                self.collations(groups[0], &text, &types, bound, &partials.fields).await?.ok_or_else(cannot_sort)?
            }
            false => Vec::new(),
        };
        let casts = with_collations(casts, &collations);
        let text = merge.render(&source(&casts, first), &types);
        let mut bound = bound.cloned().unwrap_or_default();
        bound.param_formats = (0..first).map(|i| i16::from(bound.is_binary(i))).collect();
        // Text, as postgres_fdw sends them; the merge itself does not use them.
        let mut param_types = vec![TEXT_OID; first];
        for column in partials.columns {
            param_types.push(TEXT_ARRAY_OID);
            bound.param_formats.push(1);
            bound.params.push(Some(column.finish()));
        }
        let request = Request { param_types: &param_types, bound: Some(&bound), ..Request::text(text) };
        let mut kept = Vec::new();
        self.run_request(groups[0], &request, Rows::Keep(&mut kept), Errors::default()).await?;
        for group in groups.iter().filter(|_| styled) {
            self.with_client_styles(*group).await?;
        }
        Ok(kept)
    }

    /// The same with the rights of the table's owner, the merge as well: by the session's own settings PostgreSQL would
    /// tell of its parameters, which are rows that nobody has chosen among yet.
    async fn merge_as_owner(
        &mut self,
        groups: &[GroupId],
        sql: &dyn Fn(GroupId) -> String,
        merge: &Merge,
        bound: Option<&Bound>,
        table: &Table,
        owner: &str,
    ) -> Result<Vec<Bytes>> {
        let mut arrays: Vec<BytesMut> = Vec::new();
        let mut bytes = 0;
        for group in groups {
            for raw in self.run_as_owner(*group, table, owner, &sql(*group), bound).await? {
                bytes += raw.len();
                if bytes > STUCK_MEMORY_MAX {
                    return Err(too_large_to_sort());
                }
                let fields = fields_of(&Frame { raw })?;
                arrays.resize_with(fields.len(), BytesMut::new);
                arrays.iter_mut().zip(&fields).for_each(|(array, field)| push_element(array, field.as_deref()));
            }
        }
        let Some(first) = groups.first().filter(|_| !arrays.is_empty()) else { return Ok(Vec::new()) };
        // Types have the numbers of the server that merges.
        let fields = self.types_as_owner(*first, table, owner, &sql(*first), bound, arrays.len()).await?;
        let mut casts = self.casts(*first, &fields).await?.ok_or_else(cannot_sort)?;
        if merge.collated && self.have_own_collations(*first, &fields).await? {
            return Err(cannot_sort());
        }
        if let Some(question) = collation_question(&sql(*first), &fields).filter(|_| merge.collated) {
            let raw = self.run_as_owner(*first, table, owner, &question, bound).await?.pop().unwrap_or_default();
            let collations = collations_of(&fields, &fields_of(&Frame { raw })?).ok_or_else(cannot_sort)?;
            casts = with_collations(casts, &collations);
        }
        let types: Vec<u32> = fields.iter().map(|f| f.type_oid).collect();
        let text = merge.render(&source(&casts, 0), &types);
        let close = |mut array: BytesMut| {
            array.put_u8(b'}');
            Some(array.freeze())
        };
        let arrays = Bound { params: arrays.into_iter().map(close).collect(), ..Bound::default() };
        self.run_as_owner(*first, table, owner, &text, Some(&arrays)).await
    }

    /// What columns a query has that is run as a table's owner. Of a domain the type below, as queries describe it.
    async fn types_as_owner(
        &mut self,
        group: GroupId,
        table: &Table,
        owner: &str,
        sql: &str,
        bound: Option<&Bound>,
        count: usize,
    ) -> Result<Vec<FieldDescription>> {
        let names: Vec<String> = (1..=count).map(|i| format!("c{i}")).collect();
        let types: Vec<String> =
            names.iter().map(|n| format!("pg_catalog.pg_typeof(coalesce(q.{n}, NULL))::pg_catalog.oid")).collect();
        let question = format!(
            "SELECT {} FROM (SELECT 1) AS one LEFT JOIN ({sql}\n) AS q({}) ON false",
            types.join(", "),
            names.join(", ")
        );
        let raw = self.run_as_owner(group, table, owner, &question, bound).await?.pop().unwrap_or_default();
        let numbers = fields_of(&Frame { raw })?;
        let number = |text: &Option<Bytes>| String::from_utf8_lossy(text.as_deref()?).parse().ok();
        let field = |(name, oid): (&String, &Option<Bytes>)| {
            let mut field = FieldDescription::text(name);
            field.type_oid = number(oid).unwrap_or_default();
            field
        };
        Ok(names.iter().zip(&numbers).map(field).collect())
    }

    /// The general way, inside the block that is open.
    async fn federate_instead(&mut self, call: &Call<'_>) -> Result<Completion> {
        self.federate(&Call { described: true, staged: None, ..*call }).await
    }

    /// The type of each partial column as SQL; none where a type cannot be named or read back from text.
    pub(super) async fn casts(&mut self, group: GroupId, fields: &[FieldDescription]) -> Result<Option<Vec<String>>> {
        let mut list = String::new();
        for field in fields {
            // record, unknown and other pseudo-types have no cast.
            if matches!(field.type_oid, 2249 | 2287 | 705 | 2278) {
                return Ok(None);
            }
            let separator = if list.is_empty() { "" } else { ", " };
            let _ = write!(list, "{separator}({}::oid, {})", field.type_oid, field.type_modifier);
        }
        if list.is_empty() {
            return Ok(None);
        }
        // What the coordinator names workers are to have, too.
        let everywhere = match group {
            COORDINATOR_GROUP => {
                " AND EXISTS (SELECT FROM pgherd.pg_dist_partition y WHERE y.logicalrelid OPERATOR(pg_catalog.=) c.oid)"
            }
            _ => "",
        };
        // The worker's numbers mean something on that worker only.
        let sql = format!(
            "SELECT CASE WHEN n.nspname = 'pg_catalog' AND pg_catalog.format_type(t.oid, v.m) ~ '{KEYWORD_TYPES}' \
             THEN pg_catalog.format_type(t.oid, v.m) \
             WHEN pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
             THEN pg_catalog.format('%I.%I', n.nspname, t.typname) \
             ELSE coalesce((SELECT pg_catalog.format('{UNNAMED} (NULL::%I.%I).%I', s.nspname, c.relname, a.attname) \
                 FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class c ON c.oid = d.objid \
                 JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid \
                 WHERE d.refclassid = 'pg_catalog.pg_type'::pg_catalog.regclass AND d.refobjid = t.oid \
                 AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND c.relkind IN ('r', 'p') \
                 AND a.attnum > 0 AND NOT a.attisdropped AND s.nspname !~ '^pgherd' \
                 AND pg_catalog.has_schema_privilege(s.oid, 'USAGE'){everywhere} LIMIT 1), \
                 pg_catalog.format('%I.%I', n.nspname, t.typname)) END \
             FROM (VALUES {list}) v(o, m) JOIN pg_catalog.pg_type t ON t.oid = v.o \
             JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
        );
        let key: Vec<(u32, i32)> = fields.iter().map(|f| (f.type_oid, f.type_modifier)).collect();
        let builtin = key.iter().all(|(oid, _)| *oid < FIRST_USER_OID);
        if builtin && let Some(known) = self.thread.type_names.borrow().get(&key) {
            return Ok(Some(known.clone()));
        }
        let sql = format!("{sql} ORDER BY v.o, v.m");
        let result = match self.txn.participants.contains_key(&group) {
            true => self.collect_on(group, &sql).await?,
            // It is in the middle of a reply.
            false => self.lease_aside(group).await?.query(&sql).await?,
        };
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
            let mut known = self.thread.type_names.borrow_mut();
            if known.len() >= TYPE_NAMES_MAX {
                known.clear();
            }
            known.insert(key, names.clone());
        }
        Ok(Some(names))
    }
}

/// Types that the grammar knows, and that alone have modifiers: nothing of the user's can have their names.
const KEYWORD_TYPES: &str = "^(bigint|bit|boolean|character|double precision|integer|interval|numeric|real|smallint\
                             |time|timestamp)($|[^a-z0-9_])";

/// What a value is cast to whose type has a name that the role may not use: text, which is read as the type of a
/// column that it may use. (See `pgherd.read_as` of crates/control/sql/common.sql.)
pub(super) const UNNAMED: &str = "pg_catalog.text OPERATOR(pgherd.#@#)";

/// Types with the collations that are not theirs.
pub(super) fn with_collations(mut casts: Vec<String>, collations: &[Option<String>]) -> Vec<String> {
    for (cast, collation) in casts.iter_mut().zip(collations) {
        if let Some(collation) = collation {
            let _ = write!(cast, " COLLATE {collation}");
        }
    }
    casts
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
        let _ = write!(arrays, "{separator}pg_catalog.unnest(${}::pg_catalog.text[])", first_param + number);
        let _ = write!(names, "{separator}c{number}");
    }
    format!("(SELECT {select} FROM ROWS FROM ({arrays}) AS pgherd_u({names})) AS pgherd_partial")
}

fn too_large_to_sort() -> Failure {
    Failure::new("53200", "the rows of a distributed table that must be sorted do not fit in memory")
        .detail(format!("The limit is {STUCK_MEMORY_MAX} bytes."))
}

fn cannot_sort() -> Failure {
    Failure::refused("rows of this type cannot be sorted for the coordinator")
}

/// One more value of a text array's literal, whose end is still open.
fn push_element(array: &mut BytesMut, value: Option<&[u8]>) {
    array.put_u8(if array.is_empty() { b'{' } else { b',' });
    let Some(value) = value else { return array.put_slice(b"NULL") };
    array.put_u8(b'"');
    for byte in value {
        if matches!(byte, b'"' | b'\\') {
            array.put_u8(b'\\');
        }
        array.put_u8(*byte);
    }
    array.put_u8(b'"');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_literals_are_as_postgresql_reads_them() {
        let mut array = BytesMut::new();
        for value in [Some("a"), None, Some(""), Some(r#"b"\,{}"#), Some("NULL")] {
            push_element(&mut array, value.map(str::as_bytes));
        }
        assert_eq!(array, r#"{"a",NULL,"","b\"\\,{}","NULL""#);
    }
}
