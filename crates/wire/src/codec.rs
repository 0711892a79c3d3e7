//! Reading and writing the fields inside one message body (src/backend/libpq/pqformat.c). The errors of the reader are
//! PostgreSQL's.

use bytes::{BufMut, BytesMut};

use crate::error::{ProtocolError, invalid_utf8};

/// The fields of one message body, front to back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ProtocolError> {
        let (&first, rest) = self.rest.split_first().ok_or_else(|| ProtocolError::new("no data left in message"))?;
        self.rest = rest;
        Ok(first)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], ProtocolError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*taken))
    }

    pub(crate) fn i16(&mut self) -> Result<i16, ProtocolError> {
        Ok(self.u16()?.cast_signed())
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ProtocolError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(insufficient)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*taken))
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ProtocolError> {
        Ok(self.u32()?.cast_signed())
    }

    /// A counted value: an int32 length, -1 for NULL, then the bytes.
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>, ProtocolError> {
        match self.i32()? {
            -1 => Ok(None),
            len => self.bytes(usize::try_from(len).map_err(|_| insufficient())?).map(Some),
        }
    }

    /// A string that ends with NUL, as bytes without it.
    pub(crate) fn cstr_bytes(&mut self) -> Result<&'a [u8], ProtocolError> {
        let len = memchr::memchr(0, self.rest).ok_or_else(|| ProtocolError::new("invalid string in message"))?;
        let taken = &self.rest[..len];
        self.rest = &self.rest[len + 1..];
        Ok(taken)
    }

    /// A string that ends with NUL, in UTF-8.
    pub(crate) fn cstr(&mut self) -> Result<&'a str, ProtocolError> {
        utf8(self.cstr_bytes()?)
    }

    /// As many int16 as an int16 count says.
    pub(crate) fn i16_list(&mut self) -> Result<Vec<i16>, ProtocolError> {
        let count = self.u16()?;
        let mut fields = Reader::new(self.bytes(usize::from(count) * 2)?);
        (0..count).map(|_| fields.i16()).collect()
    }

    /// As many uint32 as an int16 count says.
    pub(crate) fn u32_list(&mut self) -> Result<Vec<u32>, ProtocolError> {
        let count = self.u16()?;
        let mut fields = Reader::new(self.bytes(usize::from(count) * 4)?);
        (0..count).map(|_| fields.u32()).collect()
    }

    /// All that is left, as one field.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Nothing may be left.
    pub(crate) fn end(self) -> Result<(), ProtocolError> {
        if self.rest.is_empty() { Ok(()) } else { Err(ProtocolError::new("invalid message format")) }
    }
}

pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, ProtocolError> {
    std::str::from_utf8(bytes).map_err(|error| invalid_utf8(bytes, error.valid_up_to()))
}

fn insufficient() -> ProtocolError {
    ProtocolError::new("insufficient data left in message")
}

/// Appends one message: the tag, the length of what `body` appends, and that.
pub(crate) fn message(buf: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    buf.put_u8(tag);
    untagged(buf, body);
}

/// Appends a message without a tag (startup packets).
pub(crate) fn untagged(buf: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
    let start = buf.len();
    buf.put_u32(0);
    body(buf);
    let len = buf.len() - start;
    debug_assert!(i32::try_from(len).is_ok(), "message longer than the protocol can say");
    buf[start..start + 4].copy_from_slice(&(len as u32).to_be_bytes());
}

/// A string with its NUL. What follows a NUL inside `text` is left out: the reader would take it for the next field.
pub(crate) fn put_cstr(buf: &mut BytesMut, text: &str) {
    let end = memchr::memchr(0, text.as_bytes()).unwrap_or(text.len());
    buf.put_slice(&text.as_bytes()[..end]);
    buf.put_u8(0);
}

/// A count in front of a list. The protocol has 16 bits for it; PostgreSQL refuses longer lists before they get here.
pub(crate) fn put_count(buf: &mut BytesMut, count: usize) {
    debug_assert!(u16::try_from(count).is_ok(), "list longer than the protocol can say");
    buf.put_u16(count as u16);
}

pub(crate) fn put_value(buf: &mut BytesMut, value: Option<&[u8]>) {
    match value {
        None => buf.put_i32(-1),
        Some(bytes) => {
            buf.put_u32(bytes.len() as u32);
            buf.put_slice(bytes);
        }
    }
}
