//! numeric: src/backend/utils/adt/numeric.c (`set_var_from_str`, `numeric_recv`, `hash_numeric_extended`).
//!
//! The hash is over the base-10000 digits without leading and trailing zero digits, and the weight of the first one;
//! scale and sign do not count.

use super::jenkins::hash_bytes;
use super::value::{Value, trim};

/// Longer numbers are left to the server: far below what it accepts, far above what a key is.
const TEXT_LENGTH_MAX: usize = 1000;
const EXPONENT_MAX: i64 = 1000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numeric {
    /// NaN and both infinities hash alike.
    Special,
    Zero,
    Finite {
        /// Base-10000 digits as the little-endian int16 that PostgreSQL keeps in memory; first and last are not zero.
        digits: Vec<u8>,
        /// Of the first digit: the value is the sum of digit\[i\] × 10000^(weight − i).
        weight: i16,
        /// Decimal digits after the point without trailing zeros; negative for trailing zeros before it.
        fraction_digits: i32,
    },
}

impl Numeric {
    pub(super) fn hash(&self, seed: u64) -> u64 {
        match self {
            Numeric::Special => seed,
            Numeric::Zero => seed.wrapping_sub(1),
            Numeric::Finite { digits, weight, .. } => hash_bytes(digits, seed) ^ (i64::from(*weight) as u64),
        }
    }

    /// None where no scale can change the value.
    pub(super) fn fraction_digits(&self) -> Option<i32> {
        match self {
            Numeric::Special | Numeric::Zero => None,
            Numeric::Finite { fraction_digits, .. } => Some(*fraction_digits),
        }
    }

    /// From base-10000 digits, the first of which has `weight`.
    fn from_digits(digits: impl DoubleEndedIterator<Item = i16> + Clone, mut weight: i32) -> Option<Numeric> {
        let mut packed = Vec::with_capacity(16);
        let mut last = None;
        let mut length = 0;
        for digit in digits {
            if last.is_none() && digit == 0 {
                weight -= 1;
                continue;
            }
            packed.extend_from_slice(&digit.to_le_bytes());
            if digit != 0 {
                last = Some(digit);
                length = packed.len();
            }
        }
        packed.truncate(length);
        let Some(last) = last else { return Some(Numeric::Zero) };
        let zeros = [10, 100, 1000].iter().filter(|power| last % **power == 0).count() as i32;
        let groups_after_point = (length / 2) as i32 - 1 - weight;
        Some(Numeric::Finite {
            digits: packed,
            weight: weight.try_into().ok()?,
            fraction_digits: 4 * groups_after_point - zeros,
        })
    }
}

/// `[sign] digits [. digits] [e exponent]`, NaN and the infinities, with surrounding white space. The forms that version
/// 16 added (0x, 0o, 0b, underscores) are left to the server.
pub(super) fn read_text(text: &[u8]) -> Option<Value<'static>> {
    let text = trim(text);
    if text.eq_ignore_ascii_case(b"nan") {
        return Some(Value::Numeric(Numeric::Special));
    }
    let text = match text.split_first()? {
        (b'-' | b'+', rest) => rest,
        _ => text,
    };
    if text.eq_ignore_ascii_case(b"infinity") || text.eq_ignore_ascii_case(b"inf") {
        return Some(Value::Numeric(Numeric::Special));
    }
    if text.len() > TEXT_LENGTH_MAX {
        return None;
    }
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&text[..at], read_exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    if whole.len() + fraction.len() == 0 || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    // Decimal digits, the first of which is worth 10^(point − 1).
    let point = whole.len() as i64 + exponent;
    // Pad on the left to a whole base-10000 digit.
    let weight = (point - 1).div_euclid(4);
    let padding = 3 - (point - 1).rem_euclid(4) as usize;
    let count = padding + whole.len() + fraction.len();
    let digits = (0..count.div_ceil(4)).map(|group| {
        (group * 4..group * 4 + 4).fold(0i16, |digit, at| {
            let decimal =
                at.checked_sub(padding).and_then(|at| whole.get(at).or_else(|| fraction.get(at - whole.len())));
            digit * 10 + decimal.map_or(0, |b| i16::from(b - b'0'))
        })
    });
    Some(Value::Numeric(Numeric::from_digits(digits, weight as i32)?))
}

fn read_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text.split_first()? {
        (b'-', rest) => (-1, rest),
        (b'+', rest) => (1, rest),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let exponent = digits.iter().try_fold(0i64, |value, b| {
        let value = value * 10 + i64::from(b - b'0');
        (value <= EXPONENT_MAX).then_some(value)
    })?;
    Some(sign * exponent)
}

/// int16 count, weight, sign and display scale, then the base-10000 digits.
pub(super) fn read_binary(binary: &[u8]) -> Option<Value<'static>> {
    let (words, rest) = binary.as_chunks::<2>();
    let ([count, weight, sign, scale], digits) = words.split_first_chunk::<4>()?;
    if !rest.is_empty() || digits.len() != usize::from(u16::from_be_bytes(*count)) {
        return None;
    }
    match u16::from_be_bytes(*sign) {
        0x0000 | 0x4000 => {}
        0xC000 | 0xD000 | 0xF000 => return Some(Value::Numeric(Numeric::Special)),
        _ => return None,
    }
    let digits = digits.iter().map(|digit| i16::from_be_bytes(*digit));
    if !digits.clone().all(|digit| (0..10_000).contains(&digit)) {
        return None;
    }
    let value = Numeric::from_digits(digits, i32::from(i16::from_be_bytes(*weight)))?;
    // Digits below the display scale are cut by the server.
    let scale = i32::from(u16::from_be_bytes(*scale));
    (value.fraction_digits().is_none_or(|digits| digits <= scale)).then_some(Value::Numeric(value))
}
