//! smallint, integer and bigint: src/backend/utils/adt/numutils.c (`pg_strtoint64`), access/hash/hashfunc.c.

use super::value::{Value, trim};

/// Decimal digits with a sign and surrounding white space. The forms that version 16 added (0x, 0o, 0b, underscores)
/// are errors before it, so they are left to the server.
pub(super) fn read_text(text: &[u8], least: i64, most: i64) -> Option<Value<'static>> {
    let text = trim(text);
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    // Downwards, because the range reaches further there.
    let mut value = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    let value = if negative { value } else { value.checked_neg()? };
    (least..=most).contains(&value).then_some(Value::Integer(value))
}

/// Any of the three widths: a parameter's declared type may be wider or narrower than the column.
pub(super) fn read_binary(binary: &[u8]) -> Option<Value<'static>> {
    let value = match binary.len() {
        2 => i64::from(i16::from_be_bytes(binary.try_into().ok()?)),
        4 => i64::from(i32::from_be_bytes(binary.try_into().ok()?)),
        8 => i64::from_be_bytes(binary.try_into().ok()?),
        _ => return None,
    };
    Some(Value::Integer(value))
}
