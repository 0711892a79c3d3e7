//! What servers send: parsing for connections to servers, writing for the router's clients. Each `parse_` function
//! takes a frame of its own kind (the caller has looked at the tag) and each `write_` function appends one whole
//! message. Order and meaning of the messages are left to the caller.
//!
//! Follows <https://www.postgresql.org/docs/current/protocol-message-formats.html>.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Reader, message, put_count, put_cstr, put_value};
use crate::error::ProtocolError;
use crate::frame::Frame;
use crate::frontend::put_formats;
pub use crate::frontend::{write_copy_data, write_copy_done};

/// Tags of server messages.
pub mod tag {
    pub const AUTHENTICATION: u8 = b'R';
    pub const BACKEND_KEY_DATA: u8 = b'K';
    pub const BIND_COMPLETE: u8 = b'2';
    pub const CLOSE_COMPLETE: u8 = b'3';
    pub const COMMAND_COMPLETE: u8 = b'C';
    pub const COPY_BOTH_RESPONSE: u8 = b'W';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_IN_RESPONSE: u8 = b'G';
    pub const COPY_OUT_RESPONSE: u8 = b'H';
    pub const DATA_ROW: u8 = b'D';
    pub const EMPTY_QUERY_RESPONSE: u8 = b'I';
    pub const ERROR_RESPONSE: u8 = b'E';
    pub const FUNCTION_CALL_RESPONSE: u8 = b'V';
    pub const NEGOTIATE_PROTOCOL_VERSION: u8 = b'v';
    pub const NO_DATA: u8 = b'n';
    pub const NOTICE_RESPONSE: u8 = b'N';
    pub const NOTIFICATION_RESPONSE: u8 = b'A';
    pub const PARAMETER_DESCRIPTION: u8 = b't';
    pub const PARAMETER_STATUS: u8 = b'S';
    pub const PARSE_COMPLETE: u8 = b'1';
    pub const PORTAL_SUSPENDED: u8 = b's';
    pub const READY_FOR_QUERY: u8 = b'Z';
    pub const ROW_DESCRIPTION: u8 = b'T';
}

/// Codes of the fields of errors and notices
/// (<https://www.postgresql.org/docs/current/protocol-error-fields.html>).
pub mod field {
    /// May be translated.
    pub const SEVERITY: u8 = b'S';
    /// Never translated.
    pub const SEVERITY_NONLOCALIZED: u8 = b'V';
    pub const SQLSTATE: u8 = b'C';
    pub const MESSAGE: u8 = b'M';
    pub const DETAIL: u8 = b'D';
    pub const HINT: u8 = b'H';
    /// In characters of the client's statement, from 1.
    pub const POSITION: u8 = b'P';
    /// In characters of the internal query, from 1.
    pub const INTERNAL_POSITION: u8 = b'p';
    pub const INTERNAL_QUERY: u8 = b'q';
    pub const WHERE: u8 = b'W';
    pub const SCHEMA: u8 = b's';
    pub const TABLE: u8 = b't';
    pub const COLUMN: u8 = b'c';
    pub const DATA_TYPE: u8 = b'd';
    pub const CONSTRAINT: u8 = b'n';
    pub const FILE: u8 = b'F';
    pub const LINE: u8 = b'L';
    pub const ROUTINE: u8 = b'R';
}

/// The fields of an ErrorResponse or NoticeResponse, in the order in which they are sent; each code at most once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorFields {
    pub fields: Vec<(u8, String)>,
}

impl ErrorFields {
    /// `severity` as PostgreSQL names it: ERROR, FATAL, PANIC, WARNING, NOTICE, DEBUG, INFO, LOG.
    pub fn new(severity: impl Into<String>, sqlstate: impl Into<String>, message: impl Into<String>) -> Self {
        let severity = severity.into();
        Self {
            fields: vec![
                (field::SEVERITY, severity.clone()),
                (field::SEVERITY_NONLOCALIZED, severity),
                (field::SQLSTATE, sqlstate.into()),
                (field::MESSAGE, message.into()),
            ],
        }
    }

    /// With one more field.
    pub fn with(mut self, code: u8, text: impl Into<String>) -> Self {
        self.set(code, text);
        self
    }

    pub fn get(&self, code: u8) -> Option<&str> {
        self.fields.iter().find(|(each, _)| *each == code).map(|(_, text)| text.as_str())
    }

    /// Replaces the field, or adds it where PostgreSQL would send it.
    pub fn set(&mut self, code: u8, text: impl Into<String>) {
        let text = text.into();
        if let Some(field) = self.fields.iter_mut().find(|(each, _)| *each == code) {
            field.1 = text;
            return;
        }
        let place = self.fields.iter().position(|(each, _)| rank(*each) > rank(code)).unwrap_or(self.fields.len());
        self.fields.insert(place, (code, text));
    }

    /// Takes the field out.
    pub fn remove(&mut self, code: u8) -> Option<String> {
        let place = self.fields.iter().position(|(each, _)| *each == code)?;
        Some(self.fields.remove(place).1)
    }

    /// Not translated where the server says so (all since 9.6 do).
    pub fn severity(&self) -> &str {
        self.get(field::SEVERITY_NONLOCALIZED).or_else(|| self.get(field::SEVERITY)).unwrap_or_default()
    }

    /// Five characters; empty if the sender left it out.
    pub fn sqlstate(&self) -> &str {
        self.get(field::SQLSTATE).unwrap_or_default()
    }

    pub fn message(&self) -> &str {
        self.get(field::MESSAGE).unwrap_or_default()
    }

    /// The session ends with this error.
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity(), "FATAL" | "PANIC")
    }
}

/// PostgreSQL's order of fields (`send_message_to_frontend` in src/backend/utils/error/elog.c).
fn rank(code: u8) -> usize {
    const ORDER: &[u8] = b"SVCMDHWstcdnPpqFLR";
    ORDER.iter().position(|each| *each == code).unwrap_or(ORDER.len())
}

/// One column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDescription {
    pub name: String,
    /// 0 if the column is not simply a table's.
    pub table_oid: u32,
    /// Attribute number, or 0.
    pub column_id: i16,
    pub type_oid: u32,
    /// `pg_type.typlen`: negative for variable width.
    pub type_len: i16,
    pub type_modifier: i32,
    /// 0 text, 1 binary; always 0 in the answer to Describe of a statement.
    pub format: i16,
}

impl FieldDescription {
    /// A computed column of type text in text format.
    pub fn text(name: &str) -> Self {
        FieldDescription {
            name: name.to_owned(),
            table_oid: 0,
            column_id: 0,
            type_oid: 25,
            type_len: -1,
            type_modifier: -1,
            format: 0,
        }
    }
}

/// Where a session stands, as ReadyForQuery says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    Idle,
    InBlock,
    /// In a transaction block that failed: everything but its end is refused.
    Failed,
}

impl From<TransactionStatus> for u8 {
    fn from(status: TransactionStatus) -> u8 {
        match status {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InBlock => b'T',
            TransactionStatus::Failed => b'E',
        }
    }
}

/// What a server wants next while a connection is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    Ok,
    KerberosV5,
    CleartextPassword,
    Md5Password {
        salt: [u8; 4],
    },
    Gss,
    GssContinue {
        data: Bytes,
    },
    Sspi,
    Sasl {
        mechanisms: Vec<String>,
    },
    SaslContinue {
        data: Bytes,
    },
    SaslFinal {
        data: Bytes,
    },
    /// A method unknown here, by its number.
    Other(i32),
}

/// The start of COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyResponse {
    /// 0 text (CSV too), 1 binary.
    pub format: u8,
    pub column_formats: Vec<i16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    pub pid: i32,
    pub channel: String,
    pub payload: String,
}

/// The server speaks an older minor version than asked for, or does not know some `_pq_.` parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NegotiateProtocolVersion {
    /// What the server will speak. Servers before 18 give only the minor number on the wire; both forms come out the
    /// same here.
    pub version: (u16, u16),
    pub unrecognized: Vec<String>,
}

/// The fields of an ErrorResponse or NoticeResponse. Text that is not UTF-8 (errors from before client_encoding is in
/// force) is kept as far as it can be read: losing the error would be worse.
pub fn parse_error(frame: &Frame) -> Result<ErrorFields, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let mut fields = Vec::with_capacity(8);
    loop {
        match reader.byte()? {
            0 => break,
            code => fields.push((code, String::from_utf8_lossy(reader.cstr_bytes()?).into_owned())),
        }
    }
    reader.end()?;
    Ok(ErrorFields { fields })
}

/// The same as [`parse_error`].
pub fn parse_notice(frame: &Frame) -> Result<ErrorFields, ProtocolError> {
    parse_error(frame)
}

pub fn parse_row_description(frame: &Frame) -> Result<Vec<FieldDescription>, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let count = reader.u16()?;
    let mut fields = Vec::with_capacity(usize::from(count).min(frame.body().len() / 19));
    for _ in 0..count {
        fields.push(FieldDescription {
            name: reader.cstr()?.to_owned(),
            table_oid: reader.u32()?,
            column_id: reader.i16()?,
            type_oid: reader.u32()?,
            type_len: reader.i16()?,
            type_modifier: reader.i32()?,
            format: reader.i16()?,
        });
    }
    reader.end()?;
    Ok(fields)
}

/// The values of one DataRow; None is NULL. Ends after the first error.
#[derive(Debug, Clone)]
pub struct DataRow<'a> {
    reader: Reader<'a>,
    left: u16,
}

pub fn parse_data_row(frame: &Frame) -> Result<DataRow<'_>, ProtocolError> {
    DataRow::of(frame.body())
}

impl<'a> Iterator for DataRow<'a> {
    type Item = Result<Option<&'a [u8]>, ProtocolError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let value = self.reader.value().and_then(|value| {
            // What follows the last value is noticed with it.
            if self.left == 0 { self.reader.end().map(|()| value) } else { Ok(value) }
        });
        if value.is_err() {
            self.left = 0;
        }
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(usize::from(self.left)))
    }
}

impl<'a> DataRow<'a> {
    /// `body`: of the message, behind its length.
    pub fn of(body: &'a [u8]) -> Result<DataRow<'a>, ProtocolError> {
        let mut reader = Reader::new(body);
        let left = reader.u16()?;
        Ok(DataRow { reader, left })
    }

    /// How many values are still to come.
    pub fn columns_left(&self) -> usize {
        usize::from(self.left)
    }
}

/// The command tag.
pub fn parse_command_complete(frame: &Frame) -> Result<&str, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let tag = reader.cstr()?;
    reader.end()?;
    Ok(tag)
}

/// The number of rows that a command tag counts: `INSERT 0 3`, `SELECT 3`, `COPY 3`; none for `BEGIN` and its like.
pub fn command_tag_rows(tag: &str) -> Option<u64> {
    let (verb, rest) = tag.split_once(' ')?;
    let count = match verb {
        "INSERT" => rest.split_once(' ')?.1,
        "SELECT" | "UPDATE" | "DELETE" | "MERGE" | "FETCH" | "MOVE" | "COPY" => rest,
        _ => return None,
    };
    count.parse().ok()
}

/// Name and value.
pub fn parse_parameter_status(frame: &Frame) -> Result<(&str, &str), ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let pair = (reader.cstr()?, reader.cstr()?);
    reader.end()?;
    Ok(pair)
}

/// Process id and cancel key (4 bytes in protocol 3.0, up to 256 in 3.2).
pub fn parse_backend_key_data(frame: &Frame) -> Result<(i32, &[u8]), ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let pid = reader.i32()?;
    match reader.rest() {
        key if (4..=crate::frame::CANCEL_KEY_LEN_MAX).contains(&key.len()) => Ok((pid, key)),
        key => Err(ProtocolError::new(format!("invalid cancel key length {} in message", key.len()))),
    }
}

pub fn parse_ready_for_query(frame: &Frame) -> Result<TransactionStatus, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let status = match reader.byte()? {
        b'I' => TransactionStatus::Idle,
        b'T' => TransactionStatus::InBlock,
        b'E' => TransactionStatus::Failed,
        other => return Err(ProtocolError::new(format!("invalid transaction status 0x{other:02x}"))),
    };
    reader.end()?;
    Ok(status)
}

/// Type ids of a statement's parameters.
pub fn parse_parameter_description(frame: &Frame) -> Result<Vec<u32>, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let count = reader.u16()?;
    // PostgreSQL describes more than can be counted.
    let mut fields = Reader::new(reader.take_rest());
    let mut types = Vec::with_capacity(usize::from(count));
    while !fields.is_empty() {
        types.push(fields.u32()?);
    }
    match types.len() % (usize::from(u16::MAX) + 1) == usize::from(count) {
        true => Ok(types),
        false => Err(ProtocolError::new("invalid count of parameters in message")),
    }
}

/// CopyInResponse, CopyOutResponse or CopyBothResponse.
pub fn parse_copy_response(frame: &Frame) -> Result<CopyResponse, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let response = CopyResponse { format: reader.byte()?, column_formats: reader.i16_list()? };
    reader.end()?;
    Ok(response)
}

pub fn parse_authentication(frame: &Frame) -> Result<Authentication, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let kind = reader.i32()?;
    let data = |reader: &mut Reader<'_>| frame.body_bytes().slice(frame.body().len() - reader.take_rest().len()..);
    let authentication = match kind {
        0 => Authentication::Ok,
        2 => Authentication::KerberosV5,
        3 => Authentication::CleartextPassword,
        5 => Authentication::Md5Password { salt: reader.u32()?.to_be_bytes() },
        7 => Authentication::Gss,
        8 => Authentication::GssContinue { data: data(&mut reader) },
        9 => Authentication::Sspi,
        10 => {
            let mut mechanisms = Vec::new();
            loop {
                match reader.cstr()? {
                    "" => break,
                    mechanism => mechanisms.push(mechanism.to_owned()),
                }
            }
            Authentication::Sasl { mechanisms }
        }
        11 => Authentication::SaslContinue { data: data(&mut reader) },
        12 => Authentication::SaslFinal { data: data(&mut reader) },
        other => return Ok(Authentication::Other(other)),
    };
    reader.end()?;
    Ok(authentication)
}

pub fn parse_notification(frame: &Frame) -> Result<Notification, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let notification =
        Notification { pid: reader.i32()?, channel: reader.cstr()?.to_owned(), payload: reader.cstr()?.to_owned() };
    reader.end()?;
    Ok(notification)
}

pub fn parse_negotiate_protocol_version(frame: &Frame) -> Result<NegotiateProtocolVersion, ProtocolError> {
    let mut reader = Reader::new(frame.body());
    let version = match reader.u32()? {
        minor if minor >> 16 == 0 => (3, minor as u16),
        both => ((both >> 16) as u16, both as u16),
    };
    let count = reader.u32()?;
    let mut unrecognized = Vec::new();
    // Each takes at least a byte, so a false count ends in an error and not in memory.
    for _ in 0..count {
        unrecognized.push(reader.cstr()?.to_owned());
    }
    reader.end()?;
    Ok(NegotiateProtocolVersion { version, unrecognized })
}

/// Fields F, L and R are added where they are missing: PostgreSQL always sends them.
pub fn write_error(buf: &mut BytesMut, fields: &ErrorFields) {
    message(buf, tag::ERROR_RESPONSE, |buf| put_fields(buf, fields));
}

/// As [`write_error`].
pub fn write_notice(buf: &mut BytesMut, fields: &ErrorFields) {
    message(buf, tag::NOTICE_RESPONSE, |buf| put_fields(buf, fields));
}

fn put_fields(buf: &mut BytesMut, fields: &ErrorFields) {
    let fields = match fields.get(field::ROUTINE) {
        Some(_) => Cow::Borrowed(fields),
        None => Cow::Owned(fields.clone().at("pgherd", 0)),
    };
    for (code, text) in fields.fields.iter().filter(|(code, _)| *code != 0) {
        buf.put_u8(*code);
        put_cstr(buf, text);
    }
    buf.put_u8(0);
}

pub fn write_row_description(buf: &mut BytesMut, fields: &[FieldDescription]) {
    message(buf, tag::ROW_DESCRIPTION, |buf| {
        put_count(buf, fields.len());
        for field in fields {
            put_cstr(buf, &field.name);
            buf.put_u32(field.table_oid);
            buf.put_i16(field.column_id);
            buf.put_u32(field.type_oid);
            buf.put_i16(field.type_len);
            buf.put_i32(field.type_modifier);
            buf.put_i16(field.format);
        }
    });
}

pub fn write_data_row<V: AsRef<[u8]>>(buf: &mut BytesMut, values: &[Option<V>]) {
    message(buf, tag::DATA_ROW, |buf| {
        put_count(buf, values.len());
        values.iter().for_each(|value| put_value(buf, value.as_ref().map(AsRef::as_ref)));
    });
}

pub fn write_command_complete(buf: &mut BytesMut, command_tag: &str) {
    message(buf, tag::COMMAND_COMPLETE, |buf| put_cstr(buf, command_tag));
}

pub fn write_parameter_status(buf: &mut BytesMut, name: &str, value: &str) {
    message(buf, tag::PARAMETER_STATUS, |buf| {
        put_cstr(buf, name);
        put_cstr(buf, value);
    });
}

/// `key`: 4 bytes unless the client speaks protocol 3.2.
pub fn write_backend_key_data(buf: &mut BytesMut, pid: i32, key: &[u8]) {
    message(buf, tag::BACKEND_KEY_DATA, |buf| {
        buf.put_i32(pid);
        buf.put_slice(key);
    });
}

/// `status`: a [`TransactionStatus`], or `I`, `T`, `E`.
pub fn write_ready_for_query(buf: &mut BytesMut, status: impl Into<u8>) {
    message(buf, tag::READY_FOR_QUERY, |buf| buf.put_u8(status.into()));
}

pub fn write_parse_complete(buf: &mut BytesMut) {
    message(buf, tag::PARSE_COMPLETE, |_| {});
}

pub fn write_bind_complete(buf: &mut BytesMut) {
    message(buf, tag::BIND_COMPLETE, |_| {});
}

pub fn write_close_complete(buf: &mut BytesMut) {
    message(buf, tag::CLOSE_COMPLETE, |_| {});
}

pub fn write_no_data(buf: &mut BytesMut) {
    message(buf, tag::NO_DATA, |_| {});
}

pub fn write_portal_suspended(buf: &mut BytesMut) {
    message(buf, tag::PORTAL_SUSPENDED, |_| {});
}

pub fn write_empty_query_response(buf: &mut BytesMut) {
    message(buf, tag::EMPTY_QUERY_RESPONSE, |_| {});
}

pub fn write_parameter_description(buf: &mut BytesMut, types: &[u32]) {
    message(buf, tag::PARAMETER_DESCRIPTION, |buf| {
        // What is more than can be counted is there all the same, as from PostgreSQL.
        buf.put_u16(types.len() as u16);
        types.iter().for_each(|oid| buf.put_u32(*oid));
    });
}

/// `format`: 0 text (CSV too), 1 binary; the same in every element of `column_formats`.
pub fn write_copy_in_response(buf: &mut BytesMut, format: u8, column_formats: &[i16]) {
    write_copy_response(buf, tag::COPY_IN_RESPONSE, format, column_formats);
}

/// As [`write_copy_in_response`].
pub fn write_copy_out_response(buf: &mut BytesMut, format: u8, column_formats: &[i16]) {
    write_copy_response(buf, tag::COPY_OUT_RESPONSE, format, column_formats);
}

fn write_copy_response(buf: &mut BytesMut, tag: u8, format: u8, column_formats: &[i16]) {
    message(buf, tag, |buf| {
        buf.put_u8(format);
        put_formats(buf, column_formats);
    });
}

pub fn write_authentication_ok(buf: &mut BytesMut) {
    write_authentication(buf, 0, |_| {});
}

pub fn write_authentication_cleartext(buf: &mut BytesMut) {
    write_authentication(buf, 3, |_| {});
}

/// Mechanisms in the order of preference.
pub fn write_authentication_sasl<M: AsRef<str>>(buf: &mut BytesMut, mechanisms: &[M]) {
    write_authentication(buf, 10, |buf| {
        mechanisms.iter().for_each(|mechanism| put_cstr(buf, mechanism.as_ref()));
        buf.put_u8(0);
    });
}

pub fn write_authentication_sasl_continue(buf: &mut BytesMut, data: &[u8]) {
    write_authentication(buf, 11, |buf| buf.put_slice(data));
}

pub fn write_authentication_sasl_final(buf: &mut BytesMut, data: &[u8]) {
    write_authentication(buf, 12, |buf| buf.put_slice(data));
}

fn write_authentication(buf: &mut BytesMut, kind: i32, body: impl FnOnce(&mut BytesMut)) {
    message(buf, tag::AUTHENTICATION, |buf| {
        buf.put_i32(kind);
        body(buf);
    });
}

/// `version`: the newest one that is spoken here; sent whole, as PostgreSQL does.
pub fn write_negotiate_protocol_version<N: AsRef<str>>(buf: &mut BytesMut, version: (u16, u16), unrecognized: &[N]) {
    message(buf, tag::NEGOTIATE_PROTOCOL_VERSION, |buf| {
        buf.put_u16(version.0);
        buf.put_u16(version.1);
        buf.put_u32(unrecognized.len() as u32);
        unrecognized.iter().for_each(|name| put_cstr(buf, name.as_ref()));
    });
}

pub fn write_notification(buf: &mut BytesMut, pid: i32, channel: &str, payload: &str) {
    message(buf, tag::NOTIFICATION_RESPONSE, |buf| {
        buf.put_i32(pid);
        put_cstr(buf, channel);
        put_cstr(buf, payload);
    });
}
