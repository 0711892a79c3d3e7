//! Where one message ends and the next begins: tagged messages, and the startup packets that come before them.
//! What the bytes of a message mean is left to [`crate::frontend`] and [`crate::backend`].
//!
//! Follows "Message Formats" of the protocol documentation, `pq_getmessage` (src/backend/libpq/pqcomm.c) and
//! `ProcessStartupPacket` (src/backend/tcop/backend_startup.c).

use bytes::{Buf, Bytes, BytesMut};

use crate::codec::{Reader, utf8};
use crate::error::FEATURE_NOT_SUPPORTED;
pub use crate::error::ProtocolError;

/// Tag and length.
pub const HEADER_LEN: usize = 5;
/// PostgreSQL's limit for the length of messages that carry data or SQL text (`PQ_LARGE_MESSAGE_LIMIT`).
pub const LARGE_MESSAGE_LEN_MAX: usize = 0x3fff_fffe;
/// PostgreSQL's limit for the length of other messages (`PQ_SMALL_MESSAGE_LIMIT`).
pub const SMALL_MESSAGE_LEN_MAX: usize = 10_000;
/// PostgreSQL's limit for a startup packet without its length field (`MAX_STARTUP_PACKET_LENGTH`).
pub const STARTUP_LEN_MAX: usize = 10_000;
/// The longest cancel key of protocol 3.2.
pub const CANCEL_KEY_LEN_MAX: usize = 256;

/// The newest protocol version known here.
pub const PROTOCOL_LATEST: (u16, u16) = (3, 2);
/// The oldest minor version that exists; there never was a 3.1 (poolers used it for something else).
pub const PROTOCOL_3_0: (u16, u16) = (3, 0);

pub(crate) const CANCEL_REQUEST_CODE: u32 = (1234 << 16) | 5678;
pub(crate) const SSL_REQUEST_CODE: u32 = (1234 << 16) | 5679;
pub(crate) const GSSENC_REQUEST_CODE: u32 = (1234 << 16) | 5680;

/// One whole message with its tag and length. Cheap to clone: the bytes are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub raw: Bytes,
}

impl Frame {
    /// The message's type; 0 if `raw` was made empty by hand.
    pub fn tag(&self) -> u8 {
        self.raw.first().copied().unwrap_or_default()
    }

    /// What follows tag and length.
    pub fn body(&self) -> &[u8] {
        self.raw.get(HEADER_LEN..).unwrap_or_default()
    }

    /// The body, sharing the frame's memory.
    pub fn body_bytes(&self) -> Bytes {
        self.raw.slice(HEADER_LEN.min(self.raw.len())..)
    }
}

/// Takes the next whole message off the front of `buf`, without copying. None: more bytes are needed, `buf` is as it
/// was. `max_len` bounds the message's length field (which counts itself but not the tag); it is checked as soon as the
/// length is there, so a peer cannot make the buffer grow beyond it.
pub fn next_frame(buf: &mut BytesMut, max_len: usize) -> Result<Option<Frame>, ProtocolError> {
    let Some(len) = length_field(buf) else { return Ok(None) };
    if len < 4 || len > max_len {
        return Err(ProtocolError::fatal("invalid message length"));
    }
    if buf.len() < len + 1 {
        return Ok(None);
    }
    Ok(Some(Frame { raw: buf.split_to(len + 1).freeze() }))
}

/// The same for what a client sends: its tag says how long it may be, and an unknown one is an error at once.
pub fn next_frontend_frame(buf: &mut BytesMut) -> Result<Option<Frame>, ProtocolError> {
    match buf.first() {
        Some(&tag) => next_frame(buf, frontend_len_max(tag)?),
        None => Ok(None),
    }
}

/// A client's message is at the front of `buf` as a whole, or the beginning of one that is an error.
pub fn has_frontend_frame(buf: &[u8]) -> bool {
    let Some(max) = buf.first().map(|tag| frontend_len_max(*tag)) else { return false };
    match (max, length_field(buf)) {
        (Err(_), _) => true,
        (Ok(max), Some(len)) => len < 4 || len > max || buf.len() > len,
        (Ok(_), None) => false,
    }
}

/// Tag and total length of the message at the front of `buf`, if it is there as a whole.
pub fn peek_frame(buf: &[u8]) -> Option<(u8, usize)> {
    let len = length_field(buf)?;
    let total = len.checked_add(1)?;
    (len >= 4 && buf.len() >= total).then(|| (buf[0], total))
}

/// The length field of the message at the front of `buf`. A negative one comes out larger than any limit.
fn length_field(buf: &[u8]) -> Option<usize> {
    let header: &[u8; HEADER_LEN] = buf.first_chunk()?;
    let [_, len @ ..] = *header;
    usize::try_from(u32::from_be_bytes(len)).ok()
}

/// The limit that PostgreSQL sets for the length of a client's message, by tag (`SocketBackend` in
/// src/backend/tcop/postgres.c); an unknown tag is an error, since what follows cannot be trusted.
pub fn frontend_len_max(tag: u8) -> Result<usize, ProtocolError> {
    match tag {
        b'Q' | b'F' | b'B' | b'P' | b'd' => Ok(LARGE_MESSAGE_LEN_MAX),
        b'X' | b'C' | b'D' | b'E' | b'H' | b'S' | b'c' | b'f' => Ok(SMALL_MESSAGE_LEN_MAX),
        // Passwords and SASL answers: PG_MAX_AUTH_TOKEN_LENGTH.
        b'p' => Ok(65_535),
        _ => Err(invalid_frontend_type(tag)),
    }
}

pub(crate) fn invalid_frontend_type(tag: u8) -> ProtocolError {
    ProtocolError::fatal(format!("invalid frontend message type {tag}"))
}

/// What a client may send first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Startup {
    /// Major version 3 always; the minor one may be newer than [`PROTOCOL_LATEST`], which is answered with
    /// NegotiateProtocolVersion. Parameters in the client's order.
    Startup {
        version: (u16, u16),
        params: Vec<(String, String)>,
    },
    /// Answered by one byte. What the client sent behind it in the clear must be refused, not read as if it had come
    /// through TLS (CVE-2021-23214): check that the buffer is empty.
    SslRequest,
    GssEncRequest,
    /// Four bytes of key in protocol 3.0, up to 256 in 3.2.
    Cancel {
        pid: i32,
        key: Bytes,
    },
}

/// Takes the next startup packet off the front of `buf`. None: more bytes are needed. Every error is FATAL.
pub fn next_startup(buf: &mut BytesMut) -> Result<Option<Startup>, ProtocolError> {
    let Some(&len) = buf.first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_be_bytes(len);
    let total = usize::try_from(len).unwrap_or(usize::MAX);
    if !(8..=STARTUP_LEN_MAX + 4).contains(&total) {
        return Err(ProtocolError::log_only("invalid length of startup packet"));
    }
    if buf.len() < total {
        return Ok(None);
    }
    let mut packet = buf.split_to(total).freeze();
    packet.advance(4);
    parse_startup(&packet).map(Some).map_err(|error| ProtocolError { fatal: true, ..error })
}

/// A startup packet without its length field.
fn parse_startup(packet: &Bytes) -> Result<Startup, ProtocolError> {
    let mut reader = Reader::new(packet);
    let code = reader.u32()?;
    match code {
        SSL_REQUEST_CODE => Ok(Startup::SslRequest),
        GSSENC_REQUEST_CODE => Ok(Startup::GssEncRequest),
        CANCEL_REQUEST_CODE => {
            let pid = reader.i32().map_err(|_| ProtocolError::log_only("invalid length of cancel request packet"))?;
            let key = reader.rest();
            if key.is_empty() || key.len() > CANCEL_KEY_LEN_MAX {
                return Err(ProtocolError::log_only("invalid length of cancel key in cancel request packet"));
            }
            Ok(Startup::Cancel { pid, key: packet.slice_ref(key) })
        }
        _ => {
            let version = ((code >> 16) as u16, (code & 0xffff) as u16);
            if version.0 != PROTOCOL_LATEST.0 {
                return Err(unsupported_version(version));
            }
            Ok(Startup::Startup { version, params: startup_params(reader.rest())? })
        }
    }
}

/// Names and values, as PostgreSQL reads them: a last name without a value is one byte of the packet's end.
fn startup_params(packet: &[u8]) -> Result<Vec<(String, String)>, ProtocolError> {
    let text = |from: usize| packet.get(from..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
    let mut params = Vec::new();
    let mut at = 0;
    while at < packet.len() {
        let name = text(at);
        let value_at = at + name.len() + 1;
        if name.is_empty() || value_at >= packet.len() {
            break;
        }
        let value = text(value_at);
        params.push((utf8(name)?.to_owned(), utf8(value)?.to_owned()));
        at = value_at + value.len() + 1;
    }
    match at + 1 == packet.len() {
        true => Ok(params),
        false => Err(ProtocolError::fatal("invalid startup packet layout: expected terminator as last byte")),
    }
}

fn unsupported_version((major, minor): (u16, u16)) -> ProtocolError {
    ProtocolError {
        sqlstate: FEATURE_NOT_SUPPORTED,
        ..ProtocolError::fatal(format!(
            "unsupported frontend protocol {major}.{minor}: server supports {}.{} to {}.{}",
            PROTOCOL_3_0.0, PROTOCOL_3_0.1, PROTOCOL_LATEST.0, PROTOCOL_LATEST.1
        ))
    }
}
