//! COPY binary format: header, tuples and trailer (`ReceiveCopyBinaryHeader`, `NextCopyFrom`,
//! `CopyReadBinaryAttribute`; <https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4>).

use std::ops::Range;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::CopyErrorKind;

/// What every binary COPY begins with.
pub const BINARY_SIGNATURE: [u8; 11] = *b"PGCOPY\n\xff\r\n\0";
/// The signature with no flags and no extension: what to send to a server before tuples.
pub const BINARY_HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What to send after the last tuple.
pub const BINARY_TRAILER: [u8; 2] = [0xff, 0xff];

/// Progress in binary data.
#[derive(Debug, Default)]
pub(super) struct BinaryScan {
    /// Of the extension area of the header, still to be skipped; None before the header was read.
    extension_left: Option<usize>,
    header: Option<Bytes>,
    /// Of the tuple under way, from 1.
    pub tuple_number: u64,
    /// The tuple under way has its number.
    begun: bool,
    /// Whole fields of it that were passed.
    pub fields_passed: usize,
    /// Bytes of them, with the field count; 0 before the count was read.
    scanned: usize,
    key: Option<Option<Range<usize>>>,
}

pub(super) enum Found {
    NeedMore,
    /// `len` bytes at the front of the buffer. `key`: none if there is no such column, inside that none for NULL.
    Tuple {
        len: usize,
        key: Option<Option<Range<usize>>>,
    },
    /// The end marker is at the front of the buffer.
    Trailer,
    /// The data ended without it, which is as good.
    EndOfData,
}

impl BinaryScan {
    /// Takes the header off the buffer; gives its first 19 bytes.
    pub fn header(&mut self, buffer: &mut BytesMut, finished: bool) -> Result<Option<Bytes>, CopyErrorKind> {
        let left = match self.extension_left {
            Some(left) => left,
            None => {
                // What is there is checked at once, so that nobody waits for more of a file that is none.
                let (signature, rest) = buffer.split_at(BINARY_SIGNATURE.len().min(buffer.len()));
                if !BINARY_SIGNATURE.starts_with(signature) || (finished && signature.len() < BINARY_SIGNATURE.len()) {
                    return Err(CopyErrorKind::BinarySignature);
                }
                let Some(flags) = int32_at(rest, 0) else {
                    return if finished { Err(CopyErrorKind::BinaryFlagsMissing) } else { Ok(None) };
                };
                if flags & (1 << 16) != 0 {
                    return Err(CopyErrorKind::BinaryWithOids);
                }
                if flags >> 16 != 0 {
                    return Err(CopyErrorKind::BinaryCriticalFlags);
                }
                let extension = match int32_at(rest, 4) {
                    None if !finished => return Ok(None),
                    len => len.and_then(|len| usize::try_from(len).ok()).ok_or(CopyErrorKind::BinaryLengthMissing)?,
                };
                self.header = Some(buffer.split_to(BINARY_HEADER.len()).freeze());
                extension
            }
        };
        let skipped = left.min(buffer.len());
        buffer.advance(skipped);
        self.extension_left = Some(left - skipped);
        if left > skipped {
            return if finished { Err(CopyErrorKind::BinaryLengthWrong) } else { Ok(None) };
        }
        Ok(self.header.take())
    }

    /// The tuple at the front of `data`. The caller takes it off before it asks again.
    pub fn tuple(
        &mut self,
        data: &[u8],
        finished: bool,
        key_column: usize,
        column_count: usize,
        limit: usize,
    ) -> Result<Found, CopyErrorKind> {
        if !self.begun && (finished || !data.is_empty()) {
            self.tuple_number += 1;
            self.begun = true;
        }
        if self.scanned == 0 {
            // A single byte at the end is no field count, and no error either.
            let Some(count) = data.first_chunk::<2>() else {
                return Ok(if finished { Found::EndOfData } else { Found::NeedMore });
            };
            let count = i16::from_be_bytes(*count);
            if count == -1 {
                return Ok(Found::Trailer);
            }
            if usize::try_from(count) != Ok(column_count) {
                return Err(CopyErrorKind::BinaryFieldCount { got: count, expected: column_count });
            }
            self.scanned = 2;
        }
        while self.fields_passed < column_count {
            let Some(len) = int32_at(data, self.scanned) else { return incomplete(finished) };
            let start = self.scanned + 4;
            let end = match len {
                -1 => start,
                len => start + usize::try_from(len).map_err(|_| CopyErrorKind::BinaryFieldSize)?,
            };
            if end > limit {
                return Err(CopyErrorKind::RowTooLong { limit });
            }
            if data.len() < end {
                return incomplete(finished);
            }
            if self.fields_passed == key_column {
                self.key = Some((len != -1).then_some(start..end));
            }
            self.fields_passed += 1;
            self.scanned = end;
        }
        let found = Found::Tuple { len: self.scanned, key: self.key.take() };
        (self.begun, self.fields_passed, self.scanned) = (false, 0, 0);
        Ok(found)
    }
}

fn incomplete(finished: bool) -> Result<Found, CopyErrorKind> {
    if finished { Err(CopyErrorKind::BinaryEnd) } else { Ok(Found::NeedMore) }
}

fn int32_at(data: &[u8], at: usize) -> Option<i32> {
    data.get(at..)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

/// The values of one tuple (with its field count): a CopyData message of COPY TO, once header and trailer are apart.
/// None: it is not one whole tuple.
pub fn decode_binary_row(tuple: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let count = usize::try_from(i16::from_be_bytes(*tuple.first_chunk()?)).ok()?;
    let mut values = Vec::with_capacity(count.min(tuple.len() / 4));
    let mut at = 2;
    for _ in 0..count {
        let len = int32_at(tuple, at)?;
        at += 4;
        if len == -1 {
            values.push(None);
            continue;
        }
        let end = at.checked_add(usize::try_from(len).ok()?)?;
        values.push(Some(tuple.get(at..end)?));
        at = end;
    }
    (at == tuple.len()).then_some(values)
}

/// A tuple with so many more fields, which are given as they stand in one.
pub fn append_binary_fields(tuple: &[u8], count: usize, fields: &[u8]) -> Vec<u8> {
    let (before, rest) = tuple.split_at(2.min(tuple.len()));
    let number = before.iter().fold(0u16, |number, byte| number << 8 | u16::from(*byte));
    [&(number + count as u16).to_be_bytes()[..], rest, fields].concat()
}

/// Appends one tuple with its field count. None is NULL.
pub fn write_binary_row<V: AsRef<[u8]>>(buf: &mut BytesMut, row: &[Option<V>]) {
    buf.put_u16(row.len() as u16);
    for value in row {
        match value {
            None => buf.put_i32(-1),
            Some(value) => {
                buf.put_u32(value.as_ref().len() as u32);
                buf.put_slice(value.as_ref());
            }
        }
    }
}
