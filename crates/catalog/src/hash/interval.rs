//! interval: src/backend/utils/adt/timestamp.c (`interval_cmp_value`, `interval_hash_extended`), datetime.c
//! (`DecodeInterval`).
//!
//! Equal intervals hash alike (`1 day` = `24 hours`, `1 month` = `30 days`): the hash is over the low 64 bits of the
//! span in microseconds.

use super::value::{Value, trim};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// Amounts of more digits are left to the server, which tells those that overflow.
const AMOUNT_DIGITS_MAX: usize = 8;

/// Which field of an interval a unit fills; each may be given once.
const YEAR: u8 = 1;
const MONTH: u8 = 2;
const WEEK: u8 = 4;
const DAY: u8 = 8;
const HOUR: u8 = 16;
const MINUTE: u8 = 32;
const SECOND: u8 = 64;
const TIME: u8 = HOUR | MINUTE | SECOND;

#[derive(Default)]
struct Interval {
    months: i64,
    days: i64,
    micros: i64,
}

impl Interval {
    fn value(&self) -> Value<'static> {
        let days = self.months * 30 + self.days;
        // The low 64 bits are what wrapping arithmetic gives.
        Value::Integer(days.wrapping_mul(MICROS_PER_DAY).wrapping_add(self.micros))
    }
}

/// int64 microseconds, int32 days, int32 months.
pub(super) fn read_binary(binary: &[u8]) -> Option<Value<'static>> {
    let (micros, rest) = binary.split_first_chunk::<8>()?;
    let (days, months) = rest.split_first_chunk::<4>()?;
    let interval = Interval {
        micros: i64::from_be_bytes(*micros),
        days: i64::from(i32::from_be_bytes(*days)),
        months: i64::from(i32::from_be_bytes(months.try_into().ok()?)),
    };
    Some(interval.value())
}

/// `[±]n unit …`, whole numbers and whole words, then at most one `[±]h:mm:ss[.f]`.
///
/// In IntervalStyle sql_standard a leading minus spreads to all fields unless another has a sign, so such a spelling
/// is left to the server; so is everything else that `interval_in` knows (ISO 8601, `@`, ago, fractions, infinity).
pub(super) fn read_text(text: &[u8]) -> Option<Value<'static>> {
    let text = std::str::from_utf8(trim(text)).ok()?;
    let mut words = text.split(' ').filter(|word| !word.is_empty());
    let mut interval = Interval::default();
    let mut seen = 0u8;
    let mut fields = 0;
    let mut first_is_negative = false;
    let mut other_signs = false;
    while let Some(word) = words.next() {
        let (sign, number) = match word.as_bytes().first()? {
            b'-' => (-1, &word[1..]),
            b'+' => (1, &word[1..]),
            _ => (1, word),
        };
        let signed = number.len() < word.len();
        if fields == 0 {
            first_is_negative = sign < 0;
        } else {
            other_signs |= signed;
        }
        fields += 1;
        let field = if number.contains(':') {
            interval.micros += sign * read_clock(number)?;
            TIME
        } else {
            if number.len() > AMOUNT_DIGITS_MAX || number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            let amount = sign * number.parse::<i64>().ok()?;
            let unit = unit(words.next()?)?;
            match unit {
                YEAR => interval.months += amount * 12,
                MONTH => interval.months += amount,
                WEEK => interval.days += amount * 7,
                DAY => interval.days += amount,
                HOUR => interval.micros += amount * 3600 * MICROS_PER_SECOND,
                MINUTE => interval.micros += amount * 60 * MICROS_PER_SECOND,
                _ => interval.micros += amount * MICROS_PER_SECOND,
            }
            unit
        };
        if seen & field != 0 {
            return None;
        }
        seen |= field;
    }
    let spreads = first_is_negative && fields > 1 && !other_signs;
    let in_range = i32::try_from(interval.months).is_ok() && i32::try_from(interval.days).is_ok();
    (fields > 0 && !spreads && in_range).then(|| interval.value())
}

fn unit(word: &str) -> Option<u8> {
    const UNITS: &[(&str, u8)] = &[
        ("year", YEAR),
        ("years", YEAR),
        ("mon", MONTH),
        ("mons", MONTH),
        ("month", MONTH),
        ("months", MONTH),
        ("week", WEEK),
        ("weeks", WEEK),
        ("day", DAY),
        ("days", DAY),
        ("hour", HOUR),
        ("hours", HOUR),
        ("minute", MINUTE),
        ("minutes", MINUTE),
        ("min", MINUTE),
        ("mins", MINUTE),
        ("second", SECOND),
        ("seconds", SECOND),
        ("sec", SECOND),
        ("secs", SECOND),
    ];
    UNITS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
}

/// `h:mm:ss[.ffffff]`: without seconds, two numbers could be minutes and seconds.
fn read_clock(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |part: &str, least: usize, most: usize| {
        let valid = (least..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        if valid { part.parse::<i64>().ok() } else { None }
    };
    let (hour, minute, second) = (digits(hour, 1, AMOUNT_DIGITS_MAX)?, digits(minute, 2, 2)?, digits(second, 2, 2)?);
    let micros = digits(fraction, 1, 6)? * 10i64.pow(6 - fraction.len() as u32);
    (parts.next().is_none() && minute < 60 && second < 60)
        .then_some(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros)
}
