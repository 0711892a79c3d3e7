//! real and double precision: src/backend/utils/adt/float.c (input), access/hash/hashfunc.c (`hashfloat8extended`; a
//! real hashes as the double of the same value).

use super::jenkins::hash_bytes;
use super::value::{Value, trim};

pub(super) fn read_text_f64(text: &[u8]) -> Option<Value<'static>> {
    let text = decimal_or_special(trim(text))?;
    match special(text) {
        Some(value) => Some(Value::Double(value)),
        None => in_range(text, text.parse::<f64>().ok()?),
    }
}

/// Rounded to a real at once, as `strtof` does: by way of a double it could be rounded twice.
pub(super) fn read_text_f32(text: &[u8]) -> Option<Value<'static>> {
    let text = decimal_or_special(trim(text))?;
    match special(text) {
        Some(value) => Some(Value::Double(value)),
        None => in_range(text, f64::from(text.parse::<f32>().ok()?)),
    }
}

pub(super) fn read_binary(binary: &[u8]) -> Option<Value<'static>> {
    let value = match binary.len() {
        4 => f64::from(f32::from_be_bytes(binary.try_into().ok()?)),
        8 => f64::from_be_bytes(binary.try_into().ok()?),
        _ => return None,
    };
    Some(Value::Double(value))
}

/// Both zeros are equal, and so are all NaNs.
pub(super) fn hash(value: f64, seed: u64) -> u64 {
    if value == 0.0 {
        return seed;
    }
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
    hash_bytes(&bits.to_le_bytes(), seed)
}

/// Only the letters of these words and of decimal numbers: hexadecimal and `nan(…)` depend on the server's `strtod`.
fn decimal_or_special(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let decimal = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'))
        && text.bytes().any(|b| b.is_ascii_digit());
    (decimal || special(text).is_some()).then_some(text)
}

fn special(text: &str) -> Option<f64> {
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    let (sign, word) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    (word.eq_ignore_ascii_case("infinity") || word.eq_ignore_ascii_case("inf")).then_some(sign * f64::INFINITY)
}

/// What overflows, or underflows to zero, is an error on the server.
fn in_range(text: &str, value: f64) -> Option<Value<'static>> {
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let is_zero = !mantissa.bytes().any(|b| matches!(b, b'1'..=b'9'));
    (value.is_finite() && (value != 0.0 || is_zero)).then_some(Value::Double(value))
}
