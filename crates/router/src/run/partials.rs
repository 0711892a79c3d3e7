//! Partial rows of a scatter's workers on their way to a merge: by column while they are few; when they are many, row
//! by row into a temporary table of the coordinator, which takes them at its own speed.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_wire::backend::{self, FieldDescription};
use pgherd_wire::copy::write_text_row;
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend;

use super::combine::{STUCK_MEMORY_MAX, UNNAMED, with_collations};
use super::request::{Errors, fields_of};
use crate::error::Result;
use crate::session::Session;

/// Where the coordinator has them.
pub const PARTIAL_TABLE: &str = "pg_temp.pgherd_partial";
const TEXT_OID: u32 = 25;
/// What stands in front of the elements of an array in binary form.
const ARRAY_HEADER: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Memory,
    /// On the coordinator, whose COPY is open.
    Table,
    /// They were too many, and the coordinator may not have them. The rest is not kept.
    Dropped,
}

/// Partial rows by column.
pub struct Partials {
    pub fields: Vec<FieldDescription>,
    pub columns: Vec<TextArray>,
    pub place: Place,
    /// Whose numbers the types are.
    described_by: GroupId,
    bytes: usize,
    bytes_max: usize,
    /// More than that may go to the coordinator.
    may_leave: bool,
    /// Of its columns, where they are not those of their types.
    pub collations: Vec<Option<String>>,
    /// The statement's own columns, to be sent to the client once.
    announce: Option<Vec<FieldDescription>>,
}

impl Partials {
    pub fn new(bytes_max: usize, may_leave: bool, announce: Option<Vec<FieldDescription>>) -> Partials {
        Partials {
            fields: Vec::new(),
            columns: Vec::new(),
            place: Place::Memory,
            described_by: COORDINATOR_GROUP,
            bytes: 0,
            bytes_max,
            may_leave,
            collations: Vec::new(),
            announce,
        }
    }

    pub fn types(&self) -> Vec<u32> {
        self.fields.iter().map(|f| f.type_oid).collect()
    }

    pub(super) fn describe(&mut self, group: GroupId, fields: Vec<FieldDescription>) {
        if self.columns.is_empty() {
            self.columns = fields.iter().map(|_| TextArray::default()).collect();
            self.fields = fields;
            self.described_by = group;
        }
    }

    fn push(&mut self, frame: &Frame) -> Result<()> {
        self.bytes += frame.raw.len();
        for (column, value) in self.columns.iter_mut().zip(backend::parse_data_row(frame)?) {
            column.push(value?);
        }
        Ok(())
    }
}

impl Session {
    /// One worker's reply. With an error its rest may be unread.
    pub(super) async fn read_partials(
        &mut self,
        group: GroupId,
        kept: Option<(u64, usize)>,
        partials: &mut Partials,
        errors: Errors<'_>,
    ) -> Result<()> {
        let mut participant = self.take(group)?;
        let mut failure = None;
        let result = loop {
            let frame = match self.next_frame(group, &mut participant).await {
                Ok(frame) => frame,
                Err(failure) => break Err(failure),
            };
            match frame.tag() {
                b'T' => {
                    partials.describe(group, backend::parse_row_description(&frame)?);
                    if let Some(fields) = partials.announce.take() {
                        backend::write_row_description(&mut self.client.out, &fields);
                    }
                }
                b'1' => {
                    if let Some((id, bytes)) = kept {
                        participant.lease.prepared.insert(id, bytes);
                    }
                }
                b'D' => {
                    if let Err(failure) = self.keep_partial(partials, &frame).await {
                        break Err(failure);
                    }
                }
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

    pub(super) async fn keep_partial(&mut self, partials: &mut Partials, frame: &Frame) -> Result<()> {
        match partials.place {
            Place::Memory => {
                partials.push(frame)?;
                if partials.bytes <= partials.bytes_max {
                    return Ok(());
                }
                if !partials.may_leave {
                    partials.place = Place::Dropped;
                    partials.columns.iter_mut().for_each(|column| *column = TextArray::default());
                } else if self.start_partial_table(partials).await? {
                    partials.place = Place::Table;
                    let columns = partials.columns.iter_mut().map(std::mem::take).collect();
                    self.copy_columns(columns).await?;
                } else {
                    partials.may_leave = false;
                    partials.bytes_max = STUCK_MEMORY_MAX;
                }
                Ok(())
            }
            Place::Table => self.copy_partial(&fields_of(frame)?, &mut BytesMut::new()).await,
            Place::Dropped => Ok(()),
        }
    }

    /// False: the types cannot be named, or the user may not have a temporary table now.
    async fn start_partial_table(&mut self, partials: &Partials) -> Result<bool> {
        let Some(types) = self.casts(partials.described_by, &partials.fields).await? else { return Ok(false) };
        if types.iter().any(|name| name.starts_with(UNNAMED)) {
            return Ok(false);
        }
        let types = with_collations(types, &partials.collations);
        self.join(COORDINATOR_GROUP).await?;
        let may = self
            .collect_on(
                COORDINATOR_GROUP,
                "SELECT pg_catalog.current_setting('transaction_read_only') = 'off' \
                 AND pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')",
            )
            .await?;
        if may.text(0, 0) != Some("t") {
            return Ok(false);
        }
        let columns: Vec<String> = (1..).zip(&types).map(|(number, name)| format!("c{number} {name}")).collect();
        let create = format!("CREATE TEMPORARY TABLE {PARTIAL_TABLE} ({}) ON COMMIT DROP", columns.join(", "));
        self.run_quiet(COORDINATOR_GROUP, &create).await?;
        self.begin_copy(COORDINATOR_GROUP, &format!("COPY {PARTIAL_TABLE} FROM STDIN")).await?;
        Ok(true)
    }

    async fn copy_columns(&mut self, columns: Vec<TextArray>) -> Result<()> {
        let mut line = BytesMut::new();
        for row in rows_of(columns.into_iter().map(TextArray::finish).collect()) {
            self.copy_partial(&row, &mut line).await?;
        }
        Ok(())
    }

    async fn copy_partial(&mut self, row: &[Option<Bytes>], line: &mut BytesMut) -> Result<()> {
        line.clear();
        write_text_row(line, row);
        if self.copy_bytes(COORDINATOR_GROUP, line).await? {
            // It has stopped, and says why.
            self.collect_started(COORDINATOR_GROUP).await?;
        }
        Ok(())
    }

    /// After an error in the middle: the coordinator must not be left waiting for rows.
    pub(super) async fn abort_partial_table(&mut self) {
        if let Some(coordinator) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
            && coordinator.lease.in_flight > 0
        {
            frontend::write_copy_fail(coordinator.lease.buffer(), "not wanted any more");
            let _ = self.collect_started(COORDINATOR_GROUP).await;
        }
    }

    pub(super) async fn end_partial_table(&mut self) -> Result<()> {
        if let Some(coordinator) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            frontend::write_copy_done(coordinator.lease.buffer());
        }
        self.collect_started(COORDINATOR_GROUP).await.map(drop)
    }
}

/// A one-dimensional text array in binary form (array_recv in src/backend/utils/adt/arrayfuncs.c), as it grows.
#[derive(Default)]
pub struct TextArray {
    /// Room for the header, then the elements.
    buf: BytesMut,
    len: i32,
    has_null: bool,
}

impl TextArray {
    pub fn push(&mut self, value: Option<&[u8]>) {
        if self.buf.is_empty() {
            self.buf.put_bytes(0, ARRAY_HEADER);
        }
        self.len += 1;
        match value {
            None => {
                self.has_null = true;
                self.buf.put_i32(-1);
            }
            Some(value) => {
                self.buf.put_i32(value.len() as i32);
                self.buf.put_slice(value);
            }
        }
    }

    pub fn finish(mut self) -> Bytes {
        if self.len == 0 {
            return super::combine::text_array(&[]);
        }
        let mut header = &mut self.buf[..ARRAY_HEADER];
        header.put_i32(1);
        header.put_i32(i32::from(self.has_null));
        header.put_u32(TEXT_OID);
        header.put_i32(self.len);
        header.put_i32(1);
        self.buf.freeze()
    }
}

/// The rows of columns that are arrays in binary form.
pub(super) fn rows_of(columns: Vec<Bytes>) -> impl Iterator<Item = Vec<Option<Bytes>>> {
    // That of an empty array is shorter.
    let elements = |array: Bytes| if array.len() < ARRAY_HEADER { Bytes::new() } else { array.slice(ARRAY_HEADER..) };
    let mut columns: Vec<Bytes> = columns.into_iter().map(elements).collect();
    std::iter::from_fn(move || {
        let more = columns.first().is_some_and(|first| !first.is_empty());
        more.then(|| columns.iter_mut().map(next_element).collect())
    })
}

fn next_element(elements: &mut Bytes) -> Option<Bytes> {
    let len = elements.try_get_i32().ok()?;
    usize::try_from(len).ok().map(|len| elements.split_to(len.min(elements.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_that_grew_is_the_one_made_at_once() {
        let values = [Some(Bytes::from_static(b"a")), None, Some(Bytes::new()), Some(Bytes::from_static(b"bc"))];
        for len in 0..=values.len() {
            let mut array = TextArray::default();
            values[..len].iter().for_each(|value| array.push(value.as_deref()));
            assert_eq!(array.finish(), super::super::combine::text_array(&values[..len]));
        }
        let mut array = TextArray::default();
        values.iter().for_each(|value| array.push(value.as_deref()));
        let array = array.finish();
        let rows: Vec<_> = rows_of(vec![array.clone(), array]).collect();
        let expected: Vec<_> = values.into_iter().map(|value| vec![value.clone(), value]).collect();
        assert_eq!(rows, expected);
        assert_eq!(rows_of(vec![TextArray::default().finish()]).count(), 0);
    }
}
