//! Rows of tables with foreign keys that the coordinator changes one by one. One PostgreSQL checks keys, and lets them
//! change other rows, when the statement has ended. So these changes wait here, and each worker makes its own in one
//! statement when the coordinator's has ended, which is when postgres_fdw deallocates what it has prepared for it.
//!
//! Until then the workers show what there was, as one PostgreSQL shows it to the other parts of the statement. What is
//! not one of its parts (an INSERT that is passed on, a subtransaction) has the changes made before it: then rows that
//! a key has changed by the time the statement comes to them are refused, as `is_cascaded` finds.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_catalog::{ColumnDefault, GroupId, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::{ExprKind, SelectItem, Tree};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use crate::callback::changed_by_key;
use crate::changes::Sight;
use crate::error::{Failure, Result};
use crate::inside::{Assigned, assigned};
use crate::run::{Rows, fields_of};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};

/// What waits is made when it is as large as this.
const BYTES_MAX: usize = 64 << 20;
/// What a row takes here and in the worker that reads it, and each of its values besides itself.
const ROW_BYTES: usize = 600;
const VALUE_BYTES: usize = 300;
/// A row is where it was found.
const FOUND: &str = "WHERE pgherd_target.tableoid OPERATOR(pg_catalog.=) pgherd_row.part \
                     AND pgherd_target.ctid OPERATOR(pg_catalog.=) pgherd_row.place";

#[derive(Default)]
pub struct Waiting {
    /// In the order of their first rows.
    changes: Vec<WaitingChange>,
    /// Worker group, partition and ctid of all of them.
    rows: HashSet<(GroupId, String)>,
    bytes: usize,
}

/// Rows that one statement of postgres_fdw changes.
struct WaitingChange {
    text: String,
    table: Arc<Table>,
    /// None: they are deleted.
    set: Option<Assigned>,
    rows: BTreeMap<GroupId, Vec<WaitingRow>>,
}

struct WaitingRow {
    /// Partition and ctid.
    place: String,
    /// Of the assigned columns that get one.
    values: Vec<Option<Bytes>>,
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Rows that come to a table before these changes are made are found by the foreign keys of the changed rows, and
    /// no key changes them.
    pub fn only_refers(&self, to: &Table) -> bool {
        let keeps_keys = |change: &WaitingChange| match &change.set {
            Some(set) => !set.iter().any(|(name, _)| change.table.unique_keys.iter().any(|key| key.contains(name))),
            None => false,
        };
        self.changes.iter().all(|change| change.table.oid != to.oid && keeps_keys(change))
    }

    pub fn has_row(&self, group: GroupId, place: &str) -> bool {
        !self.rows.is_empty() && self.rows.contains(&(group, place.to_owned()))
    }

    /// One statement for a worker, whose row tells how many rows each change has found there.
    fn sql_on(&self, group: GroupId) -> (String, Vec<usize>) {
        let (mut changes, mut counts, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for change in &self.changes {
            let Some(rows) = change.rows.get(&group).filter(|rows| !rows.is_empty()) else { continue };
            let number = expected.len() + 1;
            changes.push(format!("pgherd_{number} AS ({})", change.sql(rows)));
            // They are carried out as they are counted.
            counts.push(format!("(SELECT pg_catalog.count(*) FROM pgherd_{number})"));
            expected.push(rows.len());
        }
        (format!("WITH {} SELECT {}", changes.join(", "), counts.join(", ")), expected)
    }
}

impl WaitingChange {
    fn sql(&self, rows: &[WaitingRow]) -> String {
        let set = self.set.as_deref();
        let assigned = || set.unwrap_or_default().iter();
        let columns: Vec<&str> =
            assigned().filter(|(_, value)| value.is_some()).map(|(name, _)| name.as_str()).collect();
        let types: Vec<&str> =
            columns.iter().map(|name| self.table.column(name).map_or("", |c| &c.type_name)).collect();
        let values = rows.iter().map(|row| {
            let (partition, ctid) = row.place.split_once(' ').unwrap_or_default();
            let mut fields = vec![format!("{partition}::pg_catalog.oid"), format!("'{ctid}'::pg_catalog.tid")];
            for (value, type_name) in row.values.iter().zip(&types) {
                let value = match value {
                    Some(value) => quote_literal(&String::from_utf8_lossy(value)),
                    None => "NULL".to_owned(),
                };
                fields.push(format!("{value}::{type_name}"));
            }
            format!("({})", fields.join(", "))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let names: Vec<String> = (1..=columns.len()).map(|number| format!(", c{number}")).collect();
        let relation = format!("{}.{}", quote_ident(&self.table.schema), quote_ident(&self.table.name));
        let rows = format!("(VALUES {values}) AS pgherd_row (part, place{}) {FOUND} RETURNING 1", names.concat());
        if set.is_none() {
            return format!("DELETE FROM {relation} AS pgherd_target USING {rows}");
        }
        let mut number = 0;
        let assignments = assigned().map(|(name, value)| {
            number += usize::from(value.is_some());
            let value = if value.is_some() { format!("pgherd_row.c{number}") } else { "DEFAULT".to_owned() };
            format!("{} = {value}", quote_ident(name))
        });
        let assignments = assignments.collect::<Vec<_>>().join(", ");
        format!("UPDATE {relation} AS pgherd_target SET {assignments} FROM {rows}")
    }
}

/// What a statement of postgres_fdw returns of a row: columns, and NULL for none. None: something else.
fn returned(items: &[SelectItem], text: &str) -> Option<Vec<Option<String>>> {
    let column = |item: &SelectItem| match &item.expr.kind {
        ExprKind::Column(path) => path.last().map(|name| Some(name.clone())),
        _ => (item.expr.span.of(text) == "NULL").then_some(None),
    };
    items.iter().map(column).collect()
}

impl Session {
    /// A change of one row that is to wait. None: it is to be made now. `at`: the row's worker group, and its place
    /// there.
    pub(crate) async fn wait_with_row(
        &mut self,
        at: (GroupId, &str),
        table: &Arc<Table>,
        statement: &Statement,
        bound: Option<&Bound>,
        out: &mut BytesMut,
    ) -> Result<Option<String>> {
        let (group, place) = at;
        if !self.is_keyed(table) {
            return Ok(None);
        }
        let (word, set, items) = match &statement.tree {
            Tree::Update(update) => ("UPDATE", Some(assigned(update)), &update.returning),
            Tree::Delete(delete) => ("DELETE", None, &delete.returning),
            _ => return Ok(None),
        };
        let changed = |name: &str| set.iter().flatten().find(|(column, _)| column == name);
        let Some(columns) = returned(items, &statement.text) else { return Ok(None) };
        let is_computed =
            |name: &String| set.is_some() && table.column(name).is_none_or(|c| c.default == ColumnDefault::Generated);
        let is_default = |(name, value): &(String, Option<usize>)| {
            value.is_none() && table.column(name).is_none_or(|c| c.default != ColumnDefault::Generated)
        };
        let may_wait =
            self.may_wait(table) && !columns.iter().flatten().any(is_computed) && !set.iter().flatten().any(is_default);
        if !may_wait {
            return Ok(None);
        }
        // It may be a statement of a function that another one calls: its keys are checked before those of the other
        // act.
        let assigns_key = set
            .iter()
            .flatten()
            .any(|(name, _)| self.catalog().key_columns.get(&table.oid).is_some_and(|columns| columns.contains(name)));
        if assigns_key && self.cursors.moment.is_none() && self.cursors.changes.waits_to_change(table.oid) {
            return Err(changed_by_key(table));
        }
        let params = bound.map(|b| b.params.as_slice()).unwrap_or_default();
        let value_of = |index: usize| params.get(index).cloned().flatten();
        if !columns.is_empty() {
            let (partition, ctid) = place.split_once(' ').unwrap_or_default();
            let list: Vec<String> =
                columns.iter().map(|c| c.as_ref().map_or_else(|| "NULL".to_owned(), |c| quote_ident(c))).collect();
            let sql = format!(
                "SELECT {} FROM {}.{} WHERE ctid = {} AND tableoid = {partition}",
                list.join(", "),
                quote_ident(&table.schema),
                quote_ident(&table.name),
                quote_literal(ctid)
            );
            let mut kept = Vec::new();
            self.with_values(group, &sql, Rows::Keep(&mut kept)).await?;
            let Some(raw) = kept.pop() else { return Err(changed_by_key(table)) };
            let mut fields = fields_of(&Frame { raw })?;
            for (field, column) in fields.iter_mut().zip(&columns) {
                if let Some((_, Some(index))) = column.as_ref().and_then(|name| changed(name)) {
                    *field = value_of(*index);
                }
            }
            backend::write_data_row(out, &fields);
        }
        let values: Vec<Option<Bytes>> = set.iter().flatten().filter_map(|(_, index)| index.map(value_of)).collect();
        let waiting = &mut self.cursors.changes.later;
        let sizes = values.iter().map(|value| VALUE_BYTES + value.as_ref().map_or(0, |value| value.len()));
        waiting.bytes += ROW_BYTES + sizes.sum::<usize>();
        let row = WaitingRow { place: place.to_owned(), values };
        let known = waiting.changes.iter_mut().find(|change| change.text == statement.text);
        match known {
            Some(change) => change.rows.entry(group).or_default().push(row),
            None => waiting.changes.push(WaitingChange {
                text: statement.text.clone(),
                table: table.clone(),
                set,
                rows: BTreeMap::from([(group, vec![row])]),
            }),
        }
        waiting.rows.insert((group, place.to_owned()));
        if waiting.bytes > BYTES_MAX {
            self.make_waiting().await?;
        }
        Ok(Some(format!("{word} 1")))
    }

    /// A foreign key leads from or to it, on the workers.
    pub(crate) fn is_keyed(&self, table: &Table) -> bool {
        self.catalog().key_columns.contains_key(&table.oid)
    }

    /// A change finds the rows that a scan has found, and changes nothing but what it says.
    fn may_wait(&self, table: &Table) -> bool {
        let catalog = self.catalog();
        !(catalog.changing_triggers.contains(&table.oid)
            || table.row_security
            || table.is_leaf
            || table.is_partitioned
            // Functions are to see what has changed so far.
            || self.cursors.changes.sight == Sight::Changes(table.oid))
    }

    /// The workers make the changes that wait.
    pub(crate) async fn make_waiting(&mut self) -> Result<()> {
        if self.cursors.changes.later.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.cursors.changes.later);
        self.cursors.changes.are_made(None);
        let groups: HashSet<GroupId> = waiting.changes.iter().flat_map(|c| c.rows.keys()).copied().collect();
        let mut groups: Vec<GroupId> = groups.into_iter().collect();
        groups.sort_unstable();
        for group in groups {
            let (sql, expected) = waiting.sql_on(group);
            self.join(group).await?;
            self.mark_writer(group);
            let mut kept = Vec::new();
            self.with_values(group, &sql, Rows::Keep(&mut kept)).await?;
            let raw =
                kept.pop().ok_or_else(|| Failure::new("XX000", "a worker has not counted what it has changed"))?;
            let found = fields_of(&Frame { raw })?;
            let as_expected = |field: &Option<Bytes>, expected: usize| {
                field.as_ref().is_some_and(|f| f.as_ref() == expected.to_string().as_bytes())
            };
            let changes = waiting.changes.iter().filter(|c| c.rows.contains_key(&group));
            for ((change, field), expected) in changes.zip(&found).zip(expected) {
                if !as_expected(field, expected) {
                    return Err(changed_by_key(&change.table));
                }
            }
        }
        self.cursors.changes.touched_all(waiting.rows);
        Ok(())
    }
}
