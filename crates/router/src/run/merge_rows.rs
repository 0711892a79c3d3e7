//! MERGE whose actions the coordinator has told row by row: each is carried out on the worker that has the row, or is
//! to have it.

use std::collections::HashSet;

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, Column, ColumnDefault, GroupId, Table};
use pgherd_planner::{MergeRows, RowAction};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use super::request::{Errors, Request, Rows};
use super::{Call, Completion, fields_of};
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};

/// Settings under which values as text may not be what they were.
const LOSSY: &[&str] = &["extra_float_digits", "intervalstyle"];

type Values = [Option<Bytes>];

impl Session {
    pub(super) async fn run_merge_rows(&mut self, call: &Call<'_>, merge: &MergeRows) -> Result<Completion> {
        self.described(call.prepared).await?;
        if let Some(name) = LOSSY.iter().find(|name| self.settings.contains_key(**name)) {
            return Err(Failure::refused("cannot run this MERGE whose rows are changed one by one")
                .detail(format!("{name} is set, under which values may be written otherwise.")));
        }
        self.note_session_calls(call);
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        self.taint_coordinator(call);
        let types = self.param_types(call).await?;
        let bound = call.bound.map(|bound| Bound { result_formats: Vec::new(), ..bound.clone() });
        let request = Request { param_types: &types, bound: bound.as_ref(), ..Request::text(merge.select.as_str()) };
        let mut rows = Vec::new();
        self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut rows), Errors::default()).await?;
        let mut changed: HashSet<(GroupId, String)> = HashSet::new();
        let mut count = 0u64;
        for raw in rows {
            let mut fields = fields_of(&Frame { raw })?;
            let values = fields.split_off(2);
            let number = fields[0].as_deref().and_then(|n| std::str::from_utf8(n).ok()?.parse::<usize>().ok());
            let action = number.and_then(|n| merge.actions.get(n.checked_sub(1)?)).ok_or_else(not_understood)?;
            let place = fields[1].as_ref().and_then(|name| self.cursors.row(name));
            if let RowAction::Update(_) | RowAction::Delete = action {
                let (group, place) = place.ok_or_else(not_understood)?;
                if !changed.insert((group, place.clone())) {
                    return Err(Failure::new("21000", "MERGE command cannot affect row a second time")
                        .hint("Ensure that not more than one source row matches any one target row."));
                }
                match action {
                    RowAction::Update(set) => self.update_merged(&merge.table, group, &place, set, &values).await?,
                    _ => {
                        self.run_merged(
                            group,
                            &merge.table,
                            format!("DELETE FROM {}{}", full(&merge.table), at(&place)),
                        )
                        .await?
                    }
                }
                count += 1;
            } else if let RowAction::Insert(columns) = action {
                let given: Vec<(&str, Option<Bytes>)> = columns
                    .iter()
                    .filter_map(|(name, at)| Some((name.as_str(), values.get((*at)?).cloned()?)))
                    .collect();
                self.insert_merged(&merge.table, &given).await?;
                count += 1;
            }
        }
        Ok(Completion::Tag(format!("MERGE {count}")))
    }

    async fn update_merged(
        &mut self,
        table: &Table,
        group: GroupId,
        place: &str,
        set: &[(String, Option<usize>)],
        values: &Values,
    ) -> Result<()> {
        let value_of = |at: &Option<usize>| at.map(|at| values.get(at).cloned().flatten());
        let key = table.key_column().ok_or_else(not_understood)?;
        if let Some(value) = set.iter().find(|(name, _)| *name == key.name).and_then(|(_, at)| value_of(at)) {
            return self.move_merged(table, group, place, (set, values), value).await;
        }
        let list: Vec<String> = set
            .iter()
            .map(|(name, at)| {
                let value = value_of(at).map_or_else(|| "DEFAULT".to_owned(), |value| literal_of(value.as_ref()));
                format!("{} = {value}", quote_ident(name))
            })
            .collect();
        self.run_merged(group, table, format!("UPDATE {} SET {}{}", full(table), list.join(", "), at(place))).await
    }

    /// The distribution column is assigned: the row goes, and comes back where it belongs then.
    async fn move_merged(
        &mut self,
        table: &Table,
        group: GroupId,
        place: &str,
        (set, values): (&[(String, Option<usize>)], &Values),
        key: Option<Bytes>,
    ) -> Result<()> {
        if table.is_referenced {
            let name = table.key_column().map_or("", |k| k.name.as_str());
            return Err(Failure::refused(format!(
                "cannot modify the distribution column \"{name}\" of table \"{}\"",
                table.name
            ))
            .detail("There are foreign keys to it."));
        }
        let columns: Vec<&Column> = table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).collect();
        let texts: Vec<String> = columns.iter().map(|c| format!("{}::pg_catalog.text", quote_ident(&c.name))).collect();
        let sql = format!("DELETE FROM {}{} RETURNING {}", full(table), at(place), texts.join(", "));
        self.write_on(group, table).await?;
        let mut gone = Vec::new();
        self.run_request(group, &Request::text(sql), Rows::Keep(&mut gone), Errors::default()).await?;
        let raw = gone.pop().ok_or_else(changed_meanwhile)?;
        let mut row = fields_of(&Frame { raw })?;
        for (value, column) in row.iter_mut().zip(&columns) {
            match set.iter().find(|(name, _)| *name == column.name) {
                Some((name, _)) if table.key_column().is_some_and(|k| k.name == *name) => *value = key.clone(),
                Some((_, Some(at))) => *value = values.get(*at).cloned().flatten(),
                _ => {}
            }
        }
        let given: Vec<(&str, Option<Bytes>)> = columns.iter().map(|c| c.name.as_str()).zip(row).collect();
        self.insert_merged(table, &given).await
    }

    async fn insert_merged(&mut self, table: &Table, given: &[(&str, Option<Bytes>)]) -> Result<()> {
        let key = table.key_column().and_then(|k| given.iter().find(|(name, _)| *name == k.name));
        let remainder = self.remainder_of_stored_text(table, key.and_then(|(_, value)| value.as_deref())).await?;
        let group = table.shards().get(remainder).map(|s| s.group).ok_or_else(not_understood)?;
        let names: Vec<String> = given.iter().map(|(name, _)| quote_ident(name)).collect();
        let values: Vec<String> = given.iter().map(|(_, value)| literal_of(value.as_ref())).collect();
        let rest = match names.is_empty() {
            true => "DEFAULT VALUES".to_owned(),
            false => format!("({}) OVERRIDING SYSTEM VALUE VALUES ({})", names.join(", "), values.join(", ")),
        };
        self.run_merged(group, table, format!("INSERT INTO {} {rest}", full(table))).await
    }

    /// A statement that changes one row.
    async fn run_merged(&mut self, group: GroupId, table: &Table, sql: String) -> Result<()> {
        self.write_on(group, table).await?;
        let end = self.run_request(group, &Request::text(sql), Rows::Drop, Errors::default()).await?;
        match backend::command_tag_rows(&end.tag) {
            Some(1) => Ok(()),
            _ => Err(changed_meanwhile()),
        }
    }
}

fn full(table: &Table) -> String {
    format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name))
}

/// `place`: the partition's number and the row's place there.
fn at(place: &str) -> String {
    let (partition, ctid) = place.split_once(' ').unwrap_or_default();
    format!(" WHERE ctid = {} AND tableoid = {partition}", quote_literal(ctid))
}

fn literal_of(value: Option<&Bytes>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |v| quote_literal(&String::from_utf8_lossy(v)))
}

fn changed_meanwhile() -> Failure {
    Failure::new("40001", "could not serialize access due to concurrent update")
}

fn not_understood() -> Failure {
    Failure::new("XX000", "a row of a MERGE is not understood")
}
