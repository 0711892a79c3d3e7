//! COPY data as rows. [`CopySplitter`] takes COPY FROM data in whatever pieces the client sends it, and gives each row
//! as the bytes it came in, with the value of one column (the distribution column) decoded, so that a row can be
//! forwarded to the server that owns it. All other columns are only skipped: whether they are right is for that server
//! to say. Back-pressure, and what becomes of a row, are the caller's.
//!
//! Follows src/backend/commands/copyfromparse.c of PostgreSQL 15 to 18, with its errors. Data is taken byte by byte, so
//! it must be in an encoding in which no byte of a longer character looks like ASCII (UTF-8 and all server encodings;
//! not BIG5, GBK, GB18030, JOHAB, SJIS, UHC).

mod binary;
mod error;
mod fields;
mod lines;

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

pub use binary::{
    BINARY_HEADER, BINARY_SIGNATURE, BINARY_TRAILER, append_binary_fields, decode_binary_row, write_binary_row,
};
pub use error::{CopyError, CopyErrorKind, HeaderMismatch};
pub use fields::{append_field, append_fields, decode_csv_row, decode_text_row, encode_text_row, write_text_row};

use binary::BinaryScan;
use lines::{Ending, LineScan};

/// PostgreSQL's limit for a line and for a field (`MaxAllocSize`).
pub const ROW_LEN_MAX: usize = 0x3fff_ffff;

/// What lies between the rows and their fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    Text,
    Csv,
    Binary,
}

/// What the first line is. No meaning in binary format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    None,
    /// A header line that is not looked at.
    Skip,
    /// A header line that must name the columns ([`CopyOptions::column_names`]).
    Match,
}

/// The options of COPY FROM, already checked against each other (`ProcessCopyOptions`): a server has accepted them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub delimiter: u8,
    pub null: String,
    /// CSV only.
    pub quote: u8,
    /// CSV only; the quote itself unless said otherwise.
    pub escape: u8,
    pub header: Header,
    /// The marker for a column's default (PostgreSQL 16 and later).
    pub default: Option<String>,
    /// CSV: FORCE_NULL holds for the key column.
    pub force_null: bool,
    /// CSV: FORCE_NOT_NULL holds for the key column.
    pub force_not_null: bool,
    /// Names of the copied columns, for [`Header::Match`] (which needs them) and for the text of errors.
    pub column_names: Vec<String>,
    /// Major version of the server whose rules hold. Up to 17, `\.` alone on a line ends CSV data too, and data may
    /// stand before `\.` in text; from 18 it does not, and may not.
    pub server_major: u32,
    /// The longest row that is kept; [`ROW_LEN_MAX`] unless set.
    pub row_len_max: usize,
}

impl CopyOptions {
    /// A format's defaults.
    pub fn new(format: CopyFormat, server_major: u32) -> Self {
        let csv = format == CopyFormat::Csv;
        Self {
            format,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            quote: b'"',
            escape: b'"',
            header: Header::None,
            default: None,
            force_null: false,
            force_not_null: false,
            column_names: Vec::new(),
            server_major,
            row_len_max: ROW_LEN_MAX,
        }
    }
}

/// The value of the key column in one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyField<'a> {
    Null,
    /// The DEFAULT marker, or the column is not among the copied ones.
    Default,
    /// Unescaped, as the type's input function reads it.
    Text(Cow<'a, [u8]>),
    /// As the type's receive function reads it.
    Binary(Cow<'a, [u8]>),
}

impl KeyField<'_> {
    pub fn into_owned(self) -> KeyField<'static> {
        match self {
            KeyField::Null => KeyField::Null,
            KeyField::Default => KeyField::Default,
            KeyField::Text(value) => KeyField::Text(Cow::Owned(value.into_owned())),
            KeyField::Binary(value) => KeyField::Binary(Cow::Owned(value.into_owned())),
        }
    }
}

/// One row of the data, where it lies in the splitter's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyRow<'a> {
    /// As received, with the line's ending (the last line may have none); in binary format the tuple with its field
    /// count.
    pub raw: &'a [u8],
    /// Bytes of it in front of the line's ending.
    pub content_len: usize,
    pub key: KeyField<'a>,
    /// What PostgreSQL's error context calls the row's line: the last one it covers, from 1. In binary format the
    /// number of the tuple.
    pub line: u64,
}

/// A key as ranges of the row.
#[derive(Debug)]
enum KeyAt {
    Null,
    Default,
    Text(Range<usize>),
    /// Its text is not in the row as it stands there.
    Unescaped(Vec<u8>),
    Binary(Range<usize>),
}

/// Splits COPY FROM data into rows.
///
/// [`push`](Self::push) each piece, then take [`next_row`](Self::next_row) until it has none; after the last piece
/// (CopyDone), take [`finish`](Self::finish) until it has none. After an error nothing more comes out. Rows are lent,
/// not copied: whoever needs the splitter beside the row goes by [`advance`](Self::advance) and [`row`](Self::row).
#[derive(Debug)]
pub struct CopySplitter {
    options: CopyOptions,
    key_column: usize,
    column_count: usize,
    buffer: BytesMut,
    /// The row at the front of the buffer that was found last: its own bytes, and all that go with it.
    raw_len: usize,
    content_len: usize,
    total_len: usize,
    key: KeyAt,
    state: State,
    finished: bool,
    lines: LineScan,
    binary: BinaryScan,
    header: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the header line, or the header of binary data.
    Header,
    Rows,
    /// Past the end marker, or after an error.
    Ended,
    /// Past the trailer of binary data, where nothing may follow.
    Trailer,
}

impl CopySplitter {
    /// `key_column_index`, from 0, counts the copied columns, of which there are `column_count`; a larger one means
    /// that the key is not copied, and every row's key is [`KeyField::Default`].
    pub fn new(options: CopyOptions, key_column_index: usize, column_count: usize) -> Self {
        let state = match (options.format, options.header) {
            (CopyFormat::Binary, _) | (_, Header::Skip | Header::Match) => State::Header,
            (_, Header::None) => State::Rows,
        };
        Self {
            lines: LineScan::new(&options),
            binary: BinaryScan::default(),
            options,
            key_column: key_column_index,
            column_count,
            buffer: BytesMut::new(),
            raw_len: 0,
            content_len: 0,
            total_len: 0,
            key: KeyAt::Default,
            state,
            finished: false,
            header: None,
        }
    }

    /// Takes the contents of one CopyData message. The caller takes the rows out before it pushes more, or the buffer
    /// grows without limit.
    pub fn push(&mut self, data: &[u8]) {
        // What follows the end marker is ignored, as PostgreSQL does.
        if self.state != State::Ended {
            self.buffer.extend_from_slice(data);
        }
    }

    /// The next whole row, or None if more data is needed for it (or no more will come).
    pub fn next_row(&mut self) -> Result<Option<CopyRow<'_>>, CopyError> {
        Ok(if self.advance()? { Some(self.row()) } else { None })
    }

    /// No more data comes: gives what remains as a row (a last line without a newline is one), or the error that
    /// PostgreSQL has for an incomplete one. None when all is done.
    pub fn finish(&mut self) -> Result<Option<CopyRow<'_>>, CopyError> {
        self.end();
        self.next_row()
    }

    /// No more data comes.
    pub fn end(&mut self) {
        self.finished = true;
    }

    /// Goes to the next row. False: there is none, as in [`next_row`](Self::next_row).
    pub fn advance(&mut self) -> Result<bool, CopyError> {
        self.buffer.advance(self.total_len);
        (self.raw_len, self.content_len, self.total_len) = (0, 0, 0);
        let found = match self.options.format {
            CopyFormat::Binary => self.next_tuple(),
            CopyFormat::Text | CopyFormat::Csv => self.next_line(),
        };
        if found.is_err() {
            self.state = State::Ended;
            self.buffer.clear();
        }
        found
    }

    /// The row that [`advance`](Self::advance) went to.
    pub fn row(&self) -> CopyRow<'_> {
        let raw = self.buffer.get(..self.raw_len).unwrap_or_default();
        let part = |range: &Range<usize>| Cow::Borrowed(raw.get(range.clone()).unwrap_or_default());
        let key = match &self.key {
            KeyAt::Null => KeyField::Null,
            KeyAt::Default => KeyField::Default,
            KeyAt::Text(range) => KeyField::Text(part(range)),
            KeyAt::Unescaped(text) => KeyField::Text(Cow::Borrowed(text)),
            KeyAt::Binary(range) => KeyField::Binary(part(range)),
        };
        CopyRow { raw, content_len: self.content_len, key, line: self.line_number() }
    }

    /// The header line as received, with its ending, once it was there; in binary format the signature, flags and
    /// length ([`BINARY_HEADER`] but for the flags; an extension area is left out).
    pub fn header(&self) -> Option<&Bytes> {
        self.header.as_ref()
    }

    /// The line under way, from 1, for error context.
    pub fn line_number(&self) -> u64 {
        match self.options.format {
            CopyFormat::Binary => self.binary.tuple_number,
            CopyFormat::Text | CopyFormat::Csv => self.lines.number,
        }
    }

    /// The end marker was seen: the rest of the data is ignored.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended | State::Trailer)
    }

    /// Bytes that wait for the rest of their row.
    pub fn buffered_len(&self) -> usize {
        self.buffer.len() - self.total_len
    }

    fn next_line(&mut self) -> Result<bool, CopyError> {
        while self.state != State::Ended {
            let limit = self.options.row_len_max;
            let found = self.lines.find(&self.buffer, self.finished).map_err(|kind| self.error(kind, None))?;
            if found.as_ref().map_or(self.buffer.len(), |line| line.content) > limit {
                return Err(self.error(CopyErrorKind::RowTooLong { limit }, None));
            }
            let Some(line) = found else { return Ok(false) };
            // The end marker belongs to no row.
            let raw_len = if line.ending == Ending::Marker { line.content } else { line.total };
            let is_last = line.ending != Ending::Newline;
            if self.state == State::Header {
                let raw = self.buffer.split_to(line.total).freeze();
                self.check_header(&raw.slice(..line.content))?;
                self.header = Some(raw.slice(..raw_len));
                self.state = if is_last { State::Ended } else { State::Rows };
                continue;
            }
            if is_last {
                self.state = State::Ended;
                if line.content == 0 {
                    break;
                }
            }
            let content = &self.buffer[..line.content];
            let find = if line.plain { fields::plain_key } else { fields::key_field };
            match find(content, &self.options, self.key_column, self.column_count) {
                Ok(key) => self.key = key,
                Err(kind) => return Err(self.error(kind, Some(content))),
            }
            (self.raw_len, self.content_len, self.total_len) = (raw_len, line.content, line.total);
            return Ok(true);
        }
        self.buffer.clear();
        Ok(false)
    }

    /// HEADER MATCH (`NextCopyFromRawFields`).
    fn check_header(&self, content: &[u8]) -> Result<(), CopyError> {
        if self.options.header != Header::Match {
            return Ok(());
        }
        let mismatch = |kind| self.error(kind, Some(content));
        let names = &self.options.column_names;
        if names.len() != self.column_count {
            return Err(mismatch(CopyErrorKind::ColumnNamesMissing));
        }
        let got = fields::split(content, &self.options).map_err(mismatch)?;
        // A table without columns has no fields, not one empty field.
        let got_count = if self.column_count == 0 && content.is_empty() { 0 } else { got.len() };
        if got_count != names.len() {
            return Err(mismatch(CopyErrorKind::HeaderFieldCount { got: got_count, expected: names.len() }));
        }
        for (index, (name, field)) in names.iter().zip(got).enumerate() {
            let field = field.map(|text| String::from_utf8_lossy(&text).into_owned());
            if field.as_deref() != Some(name.as_str()) {
                let null = self.options.null.clone();
                let header = HeaderMismatch { index, got: field, null, expected: name.clone() };
                return Err(mismatch(CopyErrorKind::HeaderName(Box::new(header))));
            }
        }
        Ok(())
    }

    fn next_tuple(&mut self) -> Result<bool, CopyError> {
        if self.state == State::Header {
            let header = self.binary.header(&mut self.buffer, self.finished).map_err(|kind| self.error(kind, None))?;
            let Some(header) = header else { return Ok(false) };
            self.header = Some(header);
            self.state = State::Rows;
        }
        if self.state == State::Rows {
            let (key_column, column_count, limit) = (self.key_column, self.column_count, self.options.row_len_max);
            let found = self.binary.tuple(&self.buffer, self.finished, key_column, column_count, limit);
            match found.map_err(|kind| self.error(kind, None))? {
                binary::Found::NeedMore => return Ok(false),
                binary::Found::Tuple { len, key } => {
                    self.key = match key {
                        None => KeyAt::Default,
                        Some(None) => KeyAt::Null,
                        Some(Some(range)) => KeyAt::Binary(range),
                    };
                    (self.raw_len, self.content_len, self.total_len) = (len, len, len);
                    return Ok(true);
                }
                binary::Found::Trailer => {
                    let _ = self.buffer.split_to(BINARY_TRAILER.len());
                    self.state = State::Trailer;
                }
                binary::Found::EndOfData => {
                    self.state = State::Ended;
                    self.buffer.clear();
                }
            }
        }
        if self.state == State::Trailer && !self.buffer.is_empty() {
            return Err(self.error(CopyErrorKind::DataAfterTrailer, None));
        }
        Ok(false)
    }

    fn error(&self, kind: CopyErrorKind, row: Option<&[u8]>) -> CopyError {
        let column = match &kind {
            CopyErrorKind::MissingColumn { index } => Some(*index),
            CopyErrorKind::BinaryEnd | CopyErrorKind::BinaryFieldSize => Some(self.binary.fields_passed),
            _ => None,
        };
        CopyError {
            csv: self.options.format == CopyFormat::Csv,
            kind,
            column_name: column.and_then(|index| self.options.column_names.get(index).cloned()),
            line: self.line_number(),
            row: row.map(Bytes::copy_from_slice),
        }
    }
}
