//! What is wrong with bytes that break the protocol: PostgreSQL's message and SQLSTATE. Whether and how a peer is told
//! is left to the caller.

use std::borrow::Cow;
use std::fmt;

use crate::backend::ErrorFields;

/// SQLSTATE `protocol_violation`.
pub const PROTOCOL_VIOLATION: &str = "08P01";
/// SQLSTATE `character_not_in_repertoire`.
pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
/// SQLSTATE `feature_not_supported`.
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";

/// A peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    pub sqlstate: &'static str,
    /// As PostgreSQL words it.
    pub message: Cow<'static, str>,
    pub detail: Option<Cow<'static, str>>,
    /// The stream can no longer be read, or PostgreSQL ends the session here: report FATAL and close. Otherwise the
    /// frame was whole and the session goes on after an ERROR.
    pub fatal: bool,
    /// PostgreSQL writes it into its log and closes the connection without a word (COMMERROR): what speaks so is no
    /// client of its.
    pub log_only: bool,
}

impl ProtocolError {
    /// An error in the contents of a whole frame, SQLSTATE 08P01.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { sqlstate: PROTOCOL_VIOLATION, message: message.into(), detail: None, fatal: false, log_only: false }
    }

    /// An error after which the stream cannot be trusted, SQLSTATE 08P01.
    pub fn fatal(message: impl Into<Cow<'static, str>>) -> Self {
        Self { fatal: true, ..Self::new(message) }
    }

    /// An error that the peer is not told of.
    pub(crate) fn log_only(message: impl Into<Cow<'static, str>>) -> Self {
        Self { log_only: true, ..Self::fatal(message) }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// As the fields of an ErrorResponse.
    pub fn to_fields(&self) -> ErrorFields {
        let severity = if self.fatal { "FATAL" } else { "ERROR" };
        let fields = ErrorFields::new(severity, self.sqlstate, self.message.as_ref());
        match &self.detail {
            Some(detail) => fields.with(crate::backend::field::DETAIL, detail.as_ref()),
            None => fields,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// PostgreSQL's error for bytes that are not UTF-8 (`report_invalid_encoding` in src/backend/utils/mb/mbutils.c).
/// `at` is the first byte of the bad sequence.
pub(crate) fn invalid_utf8(bytes: &[u8], at: usize) -> ProtocolError {
    let rest = bytes.get(at..).unwrap_or_default();
    // pg_utf_mblen: what the first byte promises.
    let promised = match rest.first().copied().unwrap_or_default() {
        byte if byte & 0xe0 == 0xc0 => 2,
        byte if byte & 0xf0 == 0xe0 => 3,
        byte if byte & 0xf8 == 0xf0 => 4,
        _ => 1,
    };
    let shown: Vec<String> = rest.iter().take(promised).map(|byte| format!("0x{byte:02x}")).collect();
    ProtocolError {
        sqlstate: CHARACTER_NOT_IN_REPERTOIRE,
        message: format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")).into(),
        detail: None,
        fatal: false,
        log_only: false,
    }
}
