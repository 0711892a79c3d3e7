//! A key value as its type's hash function sees it: read from text or binary, then hashed, or checked against the
//! column's type modifier.

use std::borrow::Cow;

use super::jenkins::{hash_bytes, hash_i64, hash_u32};
use super::numeric::Numeric;
use super::{KeyType, bytes, datetime, float, integer, interval, network, numeric};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    /// Everything that hashes as an int8: integers, booleans (0, 1), days since 2000-01-01, microseconds, and the low
    /// 64 bits of an interval's span in microseconds.
    Integer(i64),
    Double(f64),
    Bytes(Cow<'a, [u8]>),
    /// Bytes of a type of small fixed size, so that reading one does not allocate.
    Short([u8; 18], u8),
    Numeric(Numeric),
    /// Microseconds of the day, and the zone in seconds west of Greenwich.
    Timetz(i64, i32),
}

impl<'a> Value<'a> {
    pub(super) fn short(bytes: &[u8]) -> Option<Value<'static>> {
        let mut short = [0; 18];
        short.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Value::Short(short, bytes.len() as u8))
    }

    /// None: not certain, or not valid.
    pub(super) fn read_text(key: KeyType, text: &'a [u8]) -> Option<Value<'a>> {
        match key {
            KeyType::Int2 => integer::read_text(text, i64::from(i16::MIN), i64::from(i16::MAX)),
            KeyType::Int4 => integer::read_text(text, i64::from(i32::MIN), i64::from(i32::MAX)),
            KeyType::Int8 => integer::read_text(text, i64::MIN, i64::MAX),
            KeyType::Text => bytes::read_string(text),
            KeyType::Bpchar => bytes::read_padded(text),
            KeyType::Name => bytes::read_name(text),
            KeyType::Bytea => bytes::read_bytea_text(text),
            KeyType::Bool => bytes::read_bool_text(text),
            KeyType::Uuid => bytes::read_uuid_text(text),
            KeyType::Date => datetime::read_date(text),
            KeyType::Time => datetime::read_time(text),
            KeyType::Timetz => datetime::read_timetz(text),
            KeyType::Timestamp => datetime::read_timestamp(text),
            KeyType::Timestamptz => datetime::read_timestamptz(text),
            KeyType::Interval => interval::read_text(text),
            KeyType::Numeric => numeric::read_text(text),
            KeyType::Float4 => float::read_text_f32(text),
            KeyType::Float8 => float::read_text_f64(text),
            KeyType::Inet => network::read_inet_text(text),
            KeyType::Macaddr => network::read_macaddr_text(text),
            KeyType::AskServer => None,
        }
    }

    /// None: not valid.
    pub(super) fn read_binary(key: KeyType, binary: &'a [u8]) -> Option<Value<'a>> {
        match key {
            KeyType::Int2 | KeyType::Int4 | KeyType::Int8 => integer::read_binary(binary),
            KeyType::Text => bytes::read_string(binary),
            KeyType::Bpchar => bytes::read_padded(binary),
            KeyType::Name => bytes::read_name(binary),
            KeyType::Bytea => Some(Value::Bytes(Cow::Borrowed(binary))),
            KeyType::Bool => <[u8; 1]>::try_from(binary).ok().map(|b| Value::Integer(i64::from(b != [0]))),
            KeyType::Uuid => (binary.len() == 16).then(|| Value::short(binary)).flatten(),
            KeyType::Date => Some(Value::Integer(i64::from(i32::from_be_bytes(binary.try_into().ok()?)))),
            KeyType::Time | KeyType::Timestamp | KeyType::Timestamptz => {
                Some(Value::Integer(i64::from_be_bytes(binary.try_into().ok()?)))
            }
            KeyType::Timetz => {
                let (micros, zone) = binary.split_first_chunk::<8>()?;
                Some(Value::Timetz(i64::from_be_bytes(*micros), i32::from_be_bytes(zone.try_into().ok()?)))
            }
            KeyType::Interval => interval::read_binary(binary),
            KeyType::Numeric => numeric::read_binary(binary),
            KeyType::Float4 | KeyType::Float8 => float::read_binary(binary),
            KeyType::Inet => network::read_inet_binary(binary),
            KeyType::Macaddr => (binary.len() == 6).then(|| Value::short(binary)).flatten(),
            KeyType::AskServer => None,
        }
    }

    /// What the type's `…_extended` hash function gives.
    pub(super) fn hash(&self, seed: u64) -> u64 {
        match self {
            Value::Integer(value) => hash_i64(*value, seed),
            Value::Double(value) => float::hash(*value, seed),
            Value::Bytes(bytes) => hash_bytes(bytes, seed),
            Value::Short(bytes, length) => hash_bytes(&bytes[..usize::from(*length)], seed),
            Value::Numeric(value) => value.hash(seed),
            Value::Timetz(micros, zone) => hash_i64(*micros, seed) ^ hash_u32(*zone as u32, seed),
        }
    }

    /// True where storing the value in a column with this type modifier leaves it as it is, or is an error.
    pub(super) fn is_kept_by(&self, key: KeyType, typmod: i32) -> bool {
        if typmod < 0 {
            return true;
        }
        match (key, self) {
            // varchar(n), char(n): too many characters is an error, but too many trailing spaces are cut.
            (KeyType::Text | KeyType::Bpchar, Value::Bytes(bytes)) => {
                let characters = bytes.iter().filter(|b| (**b & 0xc0) != 0x80).count();
                usize::try_from(typmod - 4).is_ok_and(|limit| characters <= limit)
            }
            (KeyType::Numeric, Value::Numeric(value)) => {
                // numeric_typmod_scale: 11 bits, signed.
                let scale = (((typmod - 4) & 0x7ff) ^ 1024) - 1024;
                value.fraction_digits().is_none_or(|digits| digits <= scale)
            }
            (KeyType::Time | KeyType::Timestamp | KeyType::Timestamptz, Value::Integer(micros)) => {
                *micros == i64::MAX || *micros == i64::MIN || datetime::has_precision(*micros, typmod)
            }
            (KeyType::Timetz, Value::Timetz(micros, _)) => datetime::has_precision(*micros, typmod),
            // interval fields and precision; no other type of ours has a modifier.
            _ => false,
        }
    }
}

/// The characters that `isspace` accepts in the C locale, trimmed from both ends as most input functions do.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let Some(start) = text.iter().position(|b| !is_space(b)) else { return &[] };
    let end = text.iter().rposition(|b| !is_space(b)).map_or(0, |last| last + 1);
    &text[start..end]
}
