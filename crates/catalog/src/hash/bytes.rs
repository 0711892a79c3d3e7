//! Types that hash as their bytes: text, varchar, char(n), name, bytea, uuid; and boolean.
//! src/backend/utils/adt/varlena.c, varchar.c, name.c, uuid.c, bool.c; access/hash/hashfunc.c.

use std::borrow::Cow;

use super::value::{Value, trim};

/// `NAMEDATALEN - 1`.
const NAME_LENGTH_MAX: usize = 63;

/// What is not valid UTF-8 is refused by a UTF8 server.
pub(super) fn read_string(text: &[u8]) -> Option<Value<'_>> {
    let valid = !text.contains(&0) && (text.is_ascii() || std::str::from_utf8(text).is_ok());
    valid.then_some(Value::Bytes(Cow::Borrowed(text)))
}

/// char(n): trailing spaces, and only spaces, are not part of the value.
pub(super) fn read_padded(text: &[u8]) -> Option<Value<'_>> {
    let length = text.iter().rposition(|b| *b != b' ').map_or(0, |last| last + 1);
    read_string(&text[..length])
}

/// A longer name is cut, at a character boundary of the server's encoding.
pub(super) fn read_name(text: &[u8]) -> Option<Value<'_>> {
    (text.len() <= NAME_LENGTH_MAX).then(|| read_string(text)).flatten()
}

/// The hex form, and the escape form where all is ASCII (other bytes are converted between encodings first).
pub(super) fn read_bytea_text(text: &[u8]) -> Option<Value<'_>> {
    if let Some(hex) = text.strip_prefix(b"\\x") {
        return read_hex(hex);
    }
    if !text.is_ascii() || text.contains(&0) {
        return None;
    }
    if !text.contains(&b'\\') {
        return Some(Value::Bytes(Cow::Borrowed(text)));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                after
            }
            (b'\\', _) => return None,
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    Some(Value::Bytes(Cow::Owned(bytes)))
}

/// White space is allowed between pairs, not inside one.
fn read_hex(hex: &[u8]) -> Option<Value<'static>> {
    let mut bytes = Vec::with_capacity(hex.len() / 2);
    let mut rest = hex;
    while let Some((first, after)) = rest.split_first() {
        if matches!(first, b' ' | b'\n' | b'\t' | b'\r') {
            rest = after;
            continue;
        }
        let (second, after) = after.split_first()?;
        bytes.push((hex_digit(*first)? << 4) | hex_digit(*second)?);
        rest = after;
    }
    Some(Value::Bytes(Cow::Owned(bytes)))
}

pub(super) fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// 32 hex digits of either case, a hyphen allowed after every group of four, in braces or not. No white space.
pub(super) fn read_uuid_text(text: &[u8]) -> Option<Value<'static>> {
    let mut rest = match text {
        [b'{', inner @ .., b'}'] => inner,
        other => other,
    };
    let mut uuid = [0u8; 16];
    for (i, byte) in uuid.iter_mut().enumerate() {
        let [high, low, after @ ..] = rest else { return None };
        *byte = (hex_digit(*high)? << 4) | hex_digit(*low)?;
        rest = match after {
            [b'-', after @ ..] if i % 2 == 1 && i < 15 => after,
            after => after,
        };
    }
    if !rest.is_empty() {
        return None;
    }
    Value::short(&uuid)
}

/// `parse_bool_with_len`: any prefix of true, false, yes, no; on, of, off; 1, 0.
pub(super) fn read_bool_text(text: &[u8]) -> Option<Value<'static>> {
    let word = trim(text);
    let is = |whole: &[u8], least: usize| {
        word.len() >= least && whole.get(..word.len()).is_some_and(|prefix| word.eq_ignore_ascii_case(prefix))
    };
    if is(b"true", 1) || is(b"yes", 1) || is(b"on", 2) || word == b"1" {
        Some(Value::Integer(1))
    } else if is(b"false", 1) || is(b"no", 1) || is(b"off", 2) || word == b"0" {
        Some(Value::Integer(0))
    } else {
        None
    }
}
