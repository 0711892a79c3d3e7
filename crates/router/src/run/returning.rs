//! RETURNING of an INSERT that is taken apart: the rows come back in the order in which they were given. Where a
//! server returns fewer than it was sent (ON CONFLICT, triggers) they are recognised by the columns that decide.

use std::fmt::Write;

use bytes::{Bytes, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, ColumnDefault, Table};
use pgherd_sql::ast::{OnConflict, Tree};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use super::Call;
use super::request::fields_of;
use crate::error::Result;
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};

/// What one server was sent, and what it returned.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// Where the rows that were sent stood in the statement's source.
    pub sent: Vec<usize>,
    pub rows: Vec<Bytes>,
    /// What the sent rows would be recognised by; empty where all came back, or nothing tells.
    pub marks: Vec<Bytes>,
}

impl Returned {
    pub fn is_short(&self) -> bool {
        self.rows.len() != self.sent.len()
    }
}

/// The columns that tell rows apart, and their mark as the last column of RETURNING.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Marked {
    pub columns: Vec<String>,
}

impl Marked {
    pub fn is_used(&self) -> bool {
        !self.columns.is_empty()
    }

    /// What follows the list of RETURNING. `target`: what the table is called there.
    pub fn appended(&self, target: &str) -> String {
        let columns = self.columns.iter().map(|c| format!("{}.{}", quote_ident(target), quote_ident(c)));
        match self.is_used() {
            true => format!(", {}", row_text(columns)),
            false => String::new(),
        }
    }

    /// The mark of a row that is sent: `value_of` gives the value of a column.
    pub fn of(&self, table: &Table, value_of: impl Fn(&str) -> Option<String>) -> Option<String> {
        let values = self.columns.iter().map(|name| {
            let column = table.column(name)?;
            Some(format!("({})::{}", value_of(name)?, column.type_name))
        });
        values.collect::<Option<Vec<_>>>().map(|values| row_text(values.into_iter()))
    }

    /// The formats that a client asked for, with one for the mark.
    pub fn bound(&self, bound: Option<&Bound>) -> Option<Bound> {
        let mut bound = bound?.clone();
        if self.is_used() && bound.result_formats.len() > 1 {
            bound.result_formats.push(0);
        }
        Some(bound)
    }
}

/// As a number: rows may be long.
fn row_text(values: impl Iterator<Item = String>) -> String {
    let mut text = String::from("pg_catalog.hashtextextended(ROW(");
    for (at, value) in values.enumerate() {
        let _ = write!(text, "{}{value}", if at == 0 { "" } else { ", " });
    }
    text.push_str(")::pg_catalog.text, 0)::pg_catalog.text");
    text
}

impl Session {
    /// By what rows are recognised where not all of them may come back. `columns`: those that they have values for.
    pub(super) async fn marked_by(&mut self, call: &Call<'_>, table: &Table, columns: &[String]) -> Result<Marked> {
        let Some(Tree::Insert(insert)) = call.prepared.statement.as_ref().map(|s| &s.tree) else {
            return Ok(Marked::default());
        };
        let conflict = insert.on_conflict.as_ref();
        let may_skip = table.has_triggers || conflict.is_some_and(|c| !c.update || c.filter.is_some());
        if insert.returning.is_empty() || !may_skip {
            return Ok(Marked::default());
        }
        let deciding = match conflict {
            // Whoever names them for ON CONFLICT may read them.
            Some(OnConflict { columns: Some(named), infer_filter: None, .. }) if !named.is_empty() => named.clone(),
            Some(OnConflict { constraint: Some(name), update: true, .. }) => self.columns_of(table, name).await?,
            Some(OnConflict { update: true, .. }) => Vec::new(),
            _ if !self.copy_right(table).await?.reads => Vec::new(),
            _ => {
                let plain =
                    |name: &&String| table.column(name).is_some_and(|c| !matches!(c.default, ColumnDefault::Generated));
                columns.iter().filter(plain).cloned().collect()
            }
        };
        let is_set = |name: &String| conflict.is_some_and(|c| c.set.iter().any(|a| a.column == *name));
        let is_told = deciding.iter().all(|name| columns.contains(name) && !is_set(name));
        Ok(Marked { columns: if is_told { deciding } else { Vec::new() } })
    }

    async fn columns_of(&mut self, table: &Table, constraint: &str) -> Result<Vec<String>> {
        let sql = format!(
            "SELECT a.attname FROM pg_catalog.pg_constraint c, unnest(c.conkey) WITH ORDINALITY k(attnum, number), \
             pg_catalog.pg_attribute a WHERE c.conrelid = {} AND c.conname = {} AND a.attrelid = c.conrelid \
             AND a.attnum = k.attnum ORDER BY k.number",
            table.oid,
            quote_literal(constraint)
        );
        self.join(COORDINATOR_GROUP).await?;
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        Ok((0..found.rows.len()).filter_map(|row| found.text(row, 0).map(str::to_owned)).collect())
    }

    /// Gives the rows to the client.
    pub(super) async fn forward_in_order(&mut self, returned: Vec<Returned>, marked: &Marked) -> Result<()> {
        for row in in_order(returned, marked)? {
            self.client.forward(&Frame { raw: row });
            self.client.flush_if_full().await?;
        }
        Ok(())
    }
}

/// The rows of all servers in the order of the source, without their marks. What cannot be told stays behind the row
/// that it came after.
fn in_order(returned: Vec<Returned>, marked: &Marked) -> Result<Vec<Bytes>> {
    let mut all: Vec<(usize, Bytes)> = Vec::new();
    for Returned { sent, rows, marks } in returned {
        let whole = sent.len() == rows.len();
        let mut next = 0;
        for (number, raw) in rows.into_iter().enumerate() {
            let (mark, row) = if marked.is_used() { without_mark(raw)? } else { (None, raw) };
            let at = match whole {
                true => Some(number),
                false => marks.iter().enumerate().skip(next).find(|(_, m)| Some(*m) == mark.as_ref()).map(|(at, _)| at),
            };
            if let Some(at) = at {
                next = at + 1;
            }
            let place = sent.get(next.saturating_sub(1)).copied().unwrap_or_default();
            all.push((place, row));
        }
    }
    all.sort_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, row)| row).collect())
}

fn without_mark(raw: Bytes) -> Result<(Option<Bytes>, Bytes)> {
    let mut fields = fields_of(&Frame { raw })?;
    let mark = fields.pop().flatten();
    let mut row = BytesMut::new();
    backend::write_data_row(&mut row, &fields);
    Ok((mark, row.freeze()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn row(values: &[&str]) -> Bytes {
        let mut out = BytesMut::new();
        backend::write_data_row(&mut out, &values.iter().map(|v| Some(v.as_bytes())).collect::<Vec<_>>());
        out.freeze()
    }

    fn marks(values: &[&str]) -> Vec<Bytes> {
        values.iter().map(|v| Bytes::copy_from_slice(v.as_bytes())).collect()
    }

    #[test]
    fn rows_come_back_as_they_were_given() {
        let marked = Marked { columns: vec!["k".into()] };
        let returned = vec![
            Returned { sent: vec![1, 3], rows: vec![row(&["b", "(2)"]), row(&["d", "(4)"])], marks: Vec::new() },
            // The second of three was there already.
            Returned {
                sent: vec![0, 2, 4],
                rows: vec![row(&["a", "(1)"]), row(&["e", "(5)"])],
                marks: marks(&["(1)", "(3)", "(5)"]),
            },
        ];
        let rows = in_order(returned, &marked).unwrap();
        assert_eq!(rows, ["a", "b", "d", "e"].map(|v| row(&[v])));
    }

    #[test]
    fn of_equal_rows_the_first_is_meant() {
        let marked = Marked { columns: vec!["k".into()] };
        let returned = vec![
            Returned {
                sent: vec![0, 2, 3],
                rows: vec![row(&["a", "(1)"]), row(&["c", "(2)"])],
                marks: marks(&["(1)", "(1)", "(2)"]),
            },
            Returned { sent: vec![1], rows: vec![row(&["b", "(9)"])], marks: Vec::new() },
        ];
        assert_eq!(in_order(returned, &marked).unwrap(), ["a", "b", "c"].map(|v| row(&[v])));
    }

    #[test]
    fn rows_without_marks_stay_with_their_server() {
        let returned = vec![
            Returned { sent: vec![1, 2], rows: vec![row(&["b"])], marks: Vec::new() },
            Returned { sent: vec![0], rows: vec![row(&["a"])], marks: Vec::new() },
        ];
        assert_eq!(in_order(returned, &Marked::default()).unwrap(), ["a", "b"].map(|v| row(&[v])));
    }
}
