//! What can be wrong with COPY data before any value is looked at, in PostgreSQL's words.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use crate::backend::{ErrorFields, field};

/// How much of a line PostgreSQL shows in the context of an error (`MAX_COPY_DATA_DISPLAY`).
const DISPLAY_LEN_MAX: usize = 100;

/// COPY data that PostgreSQL would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyError {
    pub kind: CopyErrorKind,
    /// The column that is missing, or that binary data broke off in, where its name is known.
    pub column_name: Option<String>,
    /// As PostgreSQL counts, from 1.
    pub line: u64,
    /// The line, where it was read whole.
    pub row: Option<Bytes>,
    /// CSV has texts of its own.
    pub csv: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyErrorKind {
    LiteralCarriageReturn,
    LiteralNewline,
    MarkerNewlineStyle,
    /// Up to PostgreSQL 17.
    MarkerCorrupt,
    /// PostgreSQL 18 and later.
    MarkerNotAlone,
    /// `index`, from 0, among the copied columns.
    MissingColumn {
        index: usize,
    },
    ExtraData,
    UnterminatedQuote,
    HeaderFieldCount {
        got: usize,
        expected: usize,
    },
    HeaderName(Box<HeaderMismatch>),
    /// HEADER MATCH was asked for without [`super::CopyOptions::column_names`]: our own mistake.
    ColumnNamesMissing,
    RowTooLong {
        limit: usize,
    },
    BinarySignature,
    BinaryFlagsMissing,
    BinaryWithOids,
    BinaryCriticalFlags,
    BinaryLengthMissing,
    BinaryLengthWrong,
    BinaryFieldCount {
        got: i16,
        expected: usize,
    },
    BinaryFieldSize,
    BinaryEnd,
    DataAfterTrailer,
}

impl CopyErrorKind {
    fn is_in_binary_header(&self) -> bool {
        matches!(
            self,
            CopyErrorKind::BinarySignature
                | CopyErrorKind::BinaryFlagsMissing
                | CopyErrorKind::BinaryWithOids
                | CopyErrorKind::BinaryCriticalFlags
                | CopyErrorKind::BinaryLengthMissing
                | CopyErrorKind::BinaryLengthWrong
        )
    }
}

/// A field of the header line that is not the column's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderMismatch {
    /// From 0.
    pub index: usize,
    /// None: it is the null string.
    pub got: Option<String>,
    pub null: String,
    pub expected: String,
}

impl CopyError {
    /// `bad_copy_file_format`, but for a row that is too long and for a mistake of our own.
    pub fn sqlstate(&self) -> &'static str {
        match self.kind {
            CopyErrorKind::RowTooLong { .. } => "54000",
            CopyErrorKind::ColumnNamesMissing => "XX000",
            _ => "22P04",
        }
    }

    pub fn message(&self) -> Cow<'static, str> {
        match &self.kind {
            CopyErrorKind::LiteralCarriageReturn if self.csv => "unquoted carriage return found in data".into(),
            CopyErrorKind::LiteralCarriageReturn => "literal carriage return found in data".into(),
            CopyErrorKind::LiteralNewline if self.csv => "unquoted newline found in data".into(),
            CopyErrorKind::LiteralNewline => "literal newline found in data".into(),
            CopyErrorKind::MarkerNewlineStyle => "end-of-copy marker does not match previous newline style".into(),
            CopyErrorKind::MarkerCorrupt => "end-of-copy marker corrupt".into(),
            CopyErrorKind::MarkerNotAlone => "end-of-copy marker is not alone on its line".into(),
            CopyErrorKind::MissingColumn { index } => match &self.column_name {
                Some(name) => format!("missing data for column \"{name}\"").into(),
                None => format!("missing data for column {}", index + 1).into(),
            },
            CopyErrorKind::ExtraData => "extra data after last expected column".into(),
            CopyErrorKind::UnterminatedQuote => "unterminated CSV quoted field".into(),
            CopyErrorKind::HeaderFieldCount { got, expected } => {
                format!("wrong number of fields in header line: got {got}, expected {expected}").into()
            }
            CopyErrorKind::HeaderName(mismatch) => {
                let HeaderMismatch { index, got, null, expected } = mismatch.as_ref();
                let got = match got {
                    None => format!("null value (\"{null}\")"),
                    Some(got) => format!("\"{got}\""),
                };
                format!("column name mismatch in header line field {}: got {got}, expected \"{expected}\"", index + 1)
                    .into()
            }
            CopyErrorKind::ColumnNamesMissing => "column names are needed to match the header line".into(),
            CopyErrorKind::RowTooLong { .. } => "out of memory".into(),
            CopyErrorKind::BinarySignature => "COPY file signature not recognized".into(),
            CopyErrorKind::BinaryFlagsMissing => "invalid COPY file header (missing flags)".into(),
            CopyErrorKind::BinaryWithOids => "invalid COPY file header (WITH OIDS)".into(),
            CopyErrorKind::BinaryCriticalFlags => "unrecognized critical flags in COPY file header".into(),
            CopyErrorKind::BinaryLengthMissing => "invalid COPY file header (missing length)".into(),
            CopyErrorKind::BinaryLengthWrong => "invalid COPY file header (wrong length)".into(),
            CopyErrorKind::BinaryFieldCount { got, expected } => {
                format!("row field count is {got}, expected {expected}").into()
            }
            CopyErrorKind::BinaryFieldSize => "invalid field size".into(),
            CopyErrorKind::BinaryEnd => "unexpected EOF in COPY data".into(),
            CopyErrorKind::DataAfterTrailer => "received copy data after EOF marker".into(),
        }
    }

    pub fn detail(&self) -> Option<String> {
        match self.kind {
            CopyErrorKind::RowTooLong { limit } => Some(format!("Cannot enlarge string buffer beyond {limit} bytes.")),
            _ => None,
        }
    }

    pub fn hint(&self) -> Option<&'static str> {
        match self.kind {
            CopyErrorKind::LiteralCarriageReturn if self.csv => {
                Some("Use quoted CSV field to represent carriage return.")
            }
            CopyErrorKind::LiteralCarriageReturn => Some("Use \"\\r\" to represent carriage return."),
            CopyErrorKind::LiteralNewline if self.csv => Some("Use quoted CSV field to represent newline."),
            CopyErrorKind::LiteralNewline => Some("Use \"\\n\" to represent newline."),
            _ => None,
        }
    }

    /// The context of the error (`CopyFromErrorCallback`); PostgreSQL gives none for the header of binary data. `table`
    /// is its name without a schema.
    pub fn context(&self, table: &str) -> Option<String> {
        let line = self.line;
        match (&self.row, &self.column_name) {
            _ if self.kind.is_in_binary_header() => None,
            (Some(row), _) => Some(format!("COPY {table}, line {line}: \"{}\"", shown(row))),
            (None, Some(column)) => Some(format!("COPY {table}, line {line}, column {column}")),
            (None, None) => Some(format!("COPY {table}, line {line}")),
        }
    }

    /// All of it as an error for the client.
    pub fn to_fields(&self, table: &str) -> ErrorFields {
        let mut fields = ErrorFields::new("ERROR", self.sqlstate(), self.message());
        if let Some(detail) = self.detail() {
            fields.set(field::DETAIL, detail);
        }
        if let Some(hint) = self.hint() {
            fields.set(field::HINT, hint);
        }
        if let Some(context) = self.context(table) {
            fields.set(field::WHERE, context);
        }
        fields
    }
}

/// As much of a line as PostgreSQL shows, cut between characters.
fn shown(row: &[u8]) -> String {
    let text = String::from_utf8_lossy(row);
    if row.len() <= DISPLAY_LEN_MAX {
        return text.into_owned();
    }
    let mut end = DISPLAY_LEN_MAX.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {})", self.message(), self.line)
    }
}

impl std::error::Error for CopyError {}
