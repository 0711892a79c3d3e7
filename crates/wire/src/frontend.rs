//! What clients send: parsing for the router, writing for connections to servers. Parsing is as strict as PostgreSQL's
//! (src/backend/tcop/postgres.c, `PostgresMain`, `exec_bind_message`) and gives its errors; texts must be UTF-8, since
//! the router keeps client_encoding there. What a message means in the session's state is left to the router.

use bytes::{BufMut, BytesMut};

use crate::codec::{Reader, message, put_count, put_cstr, put_value, untagged};
use crate::error::ProtocolError;
use crate::frame::{CANCEL_REQUEST_CODE, Frame, GSSENC_REQUEST_CODE, SSL_REQUEST_CODE, invalid_frontend_type};

/// Tags of client messages.
pub mod tag {
    pub const BIND: u8 = b'B';
    pub const CLOSE: u8 = b'C';
    pub const COPY_DATA: u8 = b'd';
    pub const COPY_DONE: u8 = b'c';
    pub const COPY_FAIL: u8 = b'f';
    pub const DESCRIBE: u8 = b'D';
    pub const EXECUTE: u8 = b'E';
    pub const FLUSH: u8 = b'H';
    pub const FUNCTION_CALL: u8 = b'F';
    pub const PARSE: u8 = b'P';
    /// PasswordMessage, SASLInitialResponse, SASLResponse, GSSResponse.
    pub const PASSWORD: u8 = b'p';
    pub const QUERY: u8 = b'Q';
    pub const SYNC: u8 = b'S';
    pub const TERMINATE: u8 = b'X';
}

/// One message of a client, borrowed from its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrontendMessage<'a> {
    Query {
        sql: &'a str,
    },
    Parse {
        /// Empty: the unnamed statement.
        name: &'a str,
        sql: &'a str,
        /// 0: the server decides. May be shorter than the list of parameters.
        param_types: Vec<u32>,
    },
    Bind(BindMessage<'a>),
    Describe {
        /// `S` for a statement, `P` for a portal.
        kind: u8,
        name: &'a str,
    },
    Execute {
        portal: &'a str,
        /// 0 or less: no limit.
        max_rows: i32,
    },
    Close {
        /// `S` for a statement, `P` for a portal.
        kind: u8,
        name: &'a str,
    },
    Sync,
    Flush,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail {
        message: &'a str,
    },
    /// Which of the messages with tag `p` it is depends on the authentication under way: see [`parse_password`] and
    /// [`parse_sasl_initial`]; a SASLResponse is the bytes as they are.
    Password(&'a [u8]),
    Terminate,
    FunctionCall(&'a [u8]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindMessage<'a> {
    pub portal: &'a str,
    pub statement: &'a str,
    /// 0 text, 1 binary. None: all text; one: for all; otherwise one for each parameter (checked).
    pub param_formats: Vec<i16>,
    /// None is NULL.
    pub params: Vec<Option<&'a [u8]>>,
    /// None: all text; one: for all; otherwise one for each result column (the server checks).
    pub result_formats: Vec<i16>,
}

impl BindMessage<'_> {
    /// The format of parameter `index`, from 0.
    pub fn param_format(&self, index: usize) -> i16 {
        format_of(&self.param_formats, index)
    }

    /// The format of result column `index`, from 0.
    pub fn result_format(&self, index: usize) -> i16 {
        format_of(&self.result_formats, index)
    }
}

/// How a list of format codes is read: none means text for all, one is for all.
pub fn format_of(formats: &[i16], index: usize) -> i16 {
    match formats {
        [] => 0,
        [all] => *all,
        each => each.get(index).copied().unwrap_or_default(),
    }
}

/// Parses a whole frame. An unknown tag is a fatal error; all others leave the session usable.
pub fn parse_frontend(frame: &Frame) -> Result<FrontendMessage<'_>, ProtocolError> {
    let body = frame.body();
    let mut reader = Reader::new(body);
    let parsed = match frame.tag() {
        tag::QUERY => FrontendMessage::Query { sql: reader.cstr()? },
        tag::PARSE => {
            FrontendMessage::Parse { name: reader.cstr()?, sql: reader.cstr()?, param_types: reader.u32_list()? }
        }
        tag::BIND => FrontendMessage::Bind(bind(&mut reader)?),
        tag::DESCRIBE => FrontendMessage::Describe { kind: kind(&mut reader, "DESCRIBE")?, name: reader.cstr()? },
        tag::CLOSE => FrontendMessage::Close { kind: kind(&mut reader, "CLOSE")?, name: reader.cstr()? },
        tag::EXECUTE => FrontendMessage::Execute { portal: reader.cstr()?, max_rows: reader.i32()? },
        tag::SYNC => FrontendMessage::Sync,
        tag::FLUSH => FrontendMessage::Flush,
        tag::COPY_FAIL => FrontendMessage::CopyFail { message: reader.cstr()? },
        // PostgreSQL does not look at what is left in these.
        tag::COPY_DATA => return Ok(FrontendMessage::CopyData(body)),
        tag::COPY_DONE => return Ok(FrontendMessage::CopyDone),
        tag::PASSWORD => return Ok(FrontendMessage::Password(body)),
        tag::TERMINATE => return Ok(FrontendMessage::Terminate),
        tag::FUNCTION_CALL => return Ok(FrontendMessage::FunctionCall(body)),
        unknown => return Err(invalid_frontend_type(unknown)),
    };
    reader.end()?;
    Ok(parsed)
}

fn bind<'a>(reader: &mut Reader<'a>) -> Result<BindMessage<'a>, ProtocolError> {
    let portal = reader.cstr()?;
    let statement = reader.cstr()?;
    let param_formats = reader.i16_list()?;
    let count = usize::from(reader.u16()?);
    if param_formats.len() > 1 && param_formats.len() != count {
        return Err(ProtocolError::new(format!(
            "bind message has {} parameter formats but {count} parameters",
            param_formats.len()
        )));
    }
    let params = (0..count).map(|_| reader.value()).collect::<Result<_, _>>()?;
    let result_formats = reader.i16_list()?;
    Ok(BindMessage { portal, statement, param_formats, params, result_formats })
}

fn kind(reader: &mut Reader<'_>, verb: &str) -> Result<u8, ProtocolError> {
    match reader.byte()? {
        kind @ (b'S' | b'P') => Ok(kind),
        other => Err(ProtocolError::new(format!("invalid {verb} message subtype {other}"))),
    }
}

/// The body of a PasswordMessage (`recv_password_packet` in src/backend/libpq/auth.c). An empty password is an error
/// there, with SQLSTATE 28P01.
pub fn parse_password(body: &[u8]) -> Result<&str, ProtocolError> {
    let mut reader = Reader::new(body);
    let password = reader.cstr();
    match password {
        Ok(_) if !reader.is_empty() => Err(ProtocolError::fatal("invalid password packet size")),
        Ok("") => Err(ProtocolError { sqlstate: "28P01", ..ProtocolError::fatal("empty password returned by client") }),
        Ok(password) => Ok(password),
        Err(_) if memchr::memchr(0, body).is_none() => Err(ProtocolError::fatal("invalid password packet size")),
        Err(error) => Err(ProtocolError { fatal: true, ..error }),
    }
}

/// The first message of a client in a SASL exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaslInitial<'a> {
    pub mechanism: &'a str,
    /// None: the client waits for an empty challenge before it sends this.
    pub data: Option<&'a [u8]>,
}

/// The body of a SASLInitialResponse.
pub fn parse_sasl_initial(body: &[u8]) -> Result<SaslInitial<'_>, ProtocolError> {
    let mut reader = Reader::new(body);
    let parsed = reader.cstr().and_then(|mechanism| Ok(SaslInitial { mechanism, data: reader.value()? }));
    parsed.and_then(|parsed| reader.end().map(|()| parsed)).map_err(|error| ProtocolError { fatal: true, ..error })
}

pub fn write_query(buf: &mut BytesMut, sql: &str) {
    message(buf, tag::QUERY, |buf| put_cstr(buf, sql));
}

pub fn write_parse(buf: &mut BytesMut, name: &str, sql: &str, param_types: &[u32]) {
    message(buf, tag::PARSE, |buf| {
        put_cstr(buf, name);
        put_cstr(buf, sql);
        put_count(buf, param_types.len());
        param_types.iter().for_each(|oid| buf.put_u32(*oid));
    });
}

/// At most 65535 parameters.
pub fn write_bind<P: AsRef<[u8]>>(
    buf: &mut BytesMut,
    portal: &str,
    statement: &str,
    param_formats: &[i16],
    params: &[Option<P>],
    result_formats: &[i16],
) {
    message(buf, tag::BIND, |buf| {
        put_cstr(buf, portal);
        put_cstr(buf, statement);
        put_formats(buf, param_formats);
        put_count(buf, params.len());
        params.iter().for_each(|param| put_value(buf, param.as_ref().map(AsRef::as_ref)));
        put_formats(buf, result_formats);
    });
}

/// `kind`: `S` for a statement, `P` for a portal.
pub fn write_describe(buf: &mut BytesMut, kind: u8, name: &str) {
    message(buf, tag::DESCRIBE, |buf| {
        buf.put_u8(kind);
        put_cstr(buf, name);
    });
}

/// `max_rows` 0: no limit.
pub fn write_execute(buf: &mut BytesMut, portal: &str, max_rows: i32) {
    message(buf, tag::EXECUTE, |buf| {
        put_cstr(buf, portal);
        buf.put_i32(max_rows);
    });
}

/// `kind`: `S` for a statement, `P` for a portal.
pub fn write_close(buf: &mut BytesMut, kind: u8, name: &str) {
    message(buf, tag::CLOSE, |buf| {
        buf.put_u8(kind);
        put_cstr(buf, name);
    });
}

pub fn write_sync(buf: &mut BytesMut) {
    message(buf, tag::SYNC, |_| {});
}

pub fn write_flush(buf: &mut BytesMut) {
    message(buf, tag::FLUSH, |_| {});
}

/// The same in both directions.
pub fn write_copy_data(buf: &mut BytesMut, data: &[u8]) {
    message(buf, tag::COPY_DATA, |buf| buf.put_slice(data));
}

/// The same in both directions.
pub fn write_copy_done(buf: &mut BytesMut) {
    message(buf, tag::COPY_DONE, |_| {});
}

pub fn write_copy_fail(buf: &mut BytesMut, text: &str) {
    message(buf, tag::COPY_FAIL, |buf| put_cstr(buf, text));
}

/// `body` as [`FrontendMessage::Password`] holds it: for a cleartext password, the password and a NUL.
pub fn write_password(buf: &mut BytesMut, body: &[u8]) {
    message(buf, tag::PASSWORD, |buf| buf.put_slice(body));
}

pub fn write_sasl_initial(buf: &mut BytesMut, mechanism: &str, data: &[u8]) {
    message(buf, tag::PASSWORD, |buf| {
        put_cstr(buf, mechanism);
        put_value(buf, Some(data));
    });
}

pub fn write_sasl_response(buf: &mut BytesMut, data: &[u8]) {
    message(buf, tag::PASSWORD, |buf| buf.put_slice(data));
}

pub fn write_terminate(buf: &mut BytesMut) {
    message(buf, tag::TERMINATE, |_| {});
}

/// `body` as [`FrontendMessage::FunctionCall`] holds it.
pub fn write_function_call(buf: &mut BytesMut, body: &[u8]) {
    message(buf, tag::FUNCTION_CALL, |buf| buf.put_slice(body));
}

pub fn write_startup<N: AsRef<str>, V: AsRef<str>>(buf: &mut BytesMut, version: (u16, u16), params: &[(N, V)]) {
    untagged(buf, |buf| {
        buf.put_u16(version.0);
        buf.put_u16(version.1);
        for (name, value) in params {
            put_cstr(buf, name.as_ref());
            put_cstr(buf, value.as_ref());
        }
        buf.put_u8(0);
    });
}

pub fn write_cancel(buf: &mut BytesMut, pid: i32, key: &[u8]) {
    untagged(buf, |buf| {
        buf.put_u32(CANCEL_REQUEST_CODE);
        buf.put_i32(pid);
        buf.put_slice(key);
    });
}

pub fn write_ssl_request(buf: &mut BytesMut) {
    untagged(buf, |buf| buf.put_u32(SSL_REQUEST_CODE));
}

pub fn write_gssenc_request(buf: &mut BytesMut) {
    untagged(buf, |buf| buf.put_u32(GSSENC_REQUEST_CODE));
}

pub(crate) fn put_formats(buf: &mut BytesMut, formats: &[i16]) {
    put_count(buf, formats.len());
    formats.iter().for_each(|format| buf.put_i16(*format));
}
