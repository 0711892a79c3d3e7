//! date, time, timetz, timestamp and timestamptz: src/backend/utils/adt/datetime.c, date.c, timestamp.c.
//!
//! Only the ISO forms, which mean the same under every DateStyle and TimeZone: year first with four digits or more,
//! 24-hour time, numeric zone or Z. Other words and orders are left to the server; so are 24:00:00, second 60 and
//! fractions that round to a whole second, which the server carries over, and those longer than nanoseconds.

use super::value::{Value, trim};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// 4714-11-24 BC, the first day of the Julian calendar, in days from 2000-01-01.
const DATE_MIN: i64 = -2_451_545;
/// 5874898-01-01, the day after the last.
const DATE_END: i64 = 2_145_031_949;
const TIMESTAMP_MIN: i64 = DATE_MIN * MICROS_PER_DAY;
/// 294277-01-01.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// True where rounding to `precision` fractional digits changes nothing.
pub(super) fn has_precision(micros: i64, precision: i32) -> bool {
    match u32::try_from(precision) {
        Ok(digits @ 0..=5) => micros % 10i64.pow(6 - digits) == 0,
        _ => true,
    }
}

/// The time and the zone of a longer spelling do not count for a date.
pub(super) fn read_date(text: &[u8]) -> Option<Value<'static>> {
    let text = trim(text);
    if let Some(infinity) = infinity(text) {
        return Some(Value::Integer(if infinity > 0 { i64::from(i32::MAX) } else { i64::from(i32::MIN) }));
    }
    Some(Value::Integer(Fields::read(text)?.days))
}

/// A zone is accepted and ignored by a timestamp without one.
pub(super) fn read_timestamp(text: &[u8]) -> Option<Value<'static>> {
    let text = trim(text);
    if let Some(infinity) = infinity(text) {
        return Some(Value::Integer(if infinity > 0 { i64::MAX } else { i64::MIN }));
    }
    Fields::read(text)?.timestamp(0)
}

/// Without a zone it would depend on TimeZone.
pub(super) fn read_timestamptz(text: &[u8]) -> Option<Value<'static>> {
    let text = trim(text);
    if let Some(infinity) = infinity(text) {
        return Some(Value::Integer(if infinity > 0 { i64::MAX } else { i64::MIN }));
    }
    let fields = Fields::read(text)?;
    fields.timestamp(fields.zone_east?)
}

/// A numeric zone is accepted and ignored by a time without one.
pub(super) fn read_time(text: &[u8]) -> Option<Value<'static>> {
    let (micros, _) = read_time_and_zone(text)?;
    Some(Value::Integer(micros))
}

/// Without a zone it would depend on TimeZone, and on the day it is read.
pub(super) fn read_timetz(text: &[u8]) -> Option<Value<'static>> {
    let (micros, zone_east) = read_time_and_zone(text)?;
    Some(Value::Timetz(micros, -zone_east?))
}

fn read_time_and_zone(text: &[u8]) -> Option<(i64, Option<i32>)> {
    let mut rest = Cursor(trim(text));
    let micros = rest.time()?;
    rest.spaces();
    let zone = if rest.0.is_empty() { None } else { Some(rest.zone()?) };
    rest.0.is_empty().then_some((micros, zone))
}

/// 1, −1, or none for something else (`+infinity` is an error before version 16).
fn infinity(text: &[u8]) -> Option<i32> {
    let (sign, word) = match text.split_first()? {
        (b'-', rest) => (-1, rest),
        _ => (1, text),
    };
    word.eq_ignore_ascii_case(b"infinity").then_some(sign)
}

struct Fields {
    /// From 2000-01-01.
    days: i64,
    micros: i64,
    /// Seconds east of Greenwich.
    zone_east: Option<i32>,
}

impl Fields {
    /// `Y-M-D[{ |T}h:mm[:ss[.f]]][ ][zone][ BC]`.
    fn read(text: &[u8]) -> Option<Fields> {
        let mut rest = Cursor(text);
        let year = rest.digits(4, 7)?;
        rest.byte(b'-')?;
        let month = rest.digits(1, 2)?;
        rest.byte(b'-')?;
        let day = rest.digits(1, 2)?;
        let mut time = None;
        let mut zone_east = None;
        if matches!(rest.0, [b'T' | b't', b'0'..=b'9', ..]) {
            rest.0 = &rest.0[1..];
            time = Some(rest.time()?);
        } else if rest.spaces() && rest.0.first().is_some_and(u8::is_ascii_digit) {
            time = Some(rest.time()?);
        }
        let spaced = rest.spaces() || text.get(text.len() - rest.0.len() - 1) == Some(&b' ');
        if let Some(sign @ (b'+' | b'-' | b'Z' | b'z')) = rest.0.first() {
            // A hyphen right after a date would be a fourth field of it, a letter part of a word.
            if time.is_none() && !spaced && *sign != b'+' {
                return None;
            }
            let letter = sign.is_ascii_alphabetic();
            zone_east = Some(rest.zone()?);
            if !rest.spaces() && letter && !rest.0.is_empty() {
                return None;
            }
        }
        let before_christ = rest.0.eq_ignore_ascii_case(b"bc");
        if !before_christ && !rest.0.is_empty() {
            return None;
        }
        let days = days_from_2000(if before_christ { 1 - year } else { year }, month, day)?;
        (year > 0 && (DATE_MIN..DATE_END).contains(&days)).then_some(Fields {
            days,
            micros: time.unwrap_or(0),
            zone_east,
        })
    }

    fn timestamp(&self, zone_east: i32) -> Option<Value<'static>> {
        let local = self.days.checked_mul(MICROS_PER_DAY)?.checked_add(self.micros)?;
        let stamp = local.checked_sub(i64::from(zone_east) * MICROS_PER_SECOND)?;
        let valid = TIMESTAMP_MIN..TIMESTAMP_END;
        (valid.contains(&local) && valid.contains(&stamp)).then_some(Value::Integer(stamp))
    }
}

/// What is left of the text.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// True where there were any.
    fn spaces(&mut self) -> bool {
        let before = self.0.len();
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
        self.0.len() < before
    }

    /// A number of `least` to `most` digits, and no digit after it.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let length = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if !(least..=most).contains(&length) {
            return None;
        }
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(digits.iter().fold(0, |value, b| value * 10 + i64::from(b - b'0')))
    }

    /// `h:mm[:ss[.fffffffff]]` in microseconds.
    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(1, 2)?;
        self.byte(b':')?;
        let minute = self.digits(2, 2)?;
        let mut second = 0;
        let mut fraction = 0;
        if self.byte(b':').is_some() {
            second = self.digits(2, 2)?;
            if self.byte(b'.').is_some() {
                fraction = self.fraction()?;
            }
        }
        (hour < 24 && minute < 60 && second < 60)
            .then_some(((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction)
    }

    /// Up to nine digits as microseconds. The server rounds by way of a double: sure for these, but for ties.
    fn fraction(&mut self) -> Option<i64> {
        let before = self.0.len();
        let digits = self.digits(1, 9)?;
        let nanos = digits * 10i64.pow(9 - (before - self.0.len()) as u32);
        let (micros, rest) = (nanos / 1000, nanos % 1000);
        let rounded = micros + i64::from(rest > 500);
        (rest != 500 && rounded < MICROS_PER_SECOND).then_some(rounded)
    }

    /// `Z`, `±h`, `±hh`, `±hhmm`, `±hh:mm`, `±hh:mm:ss`, in seconds east.
    fn zone(&mut self) -> Option<i32> {
        let (sign, rest) = match self.0.split_first()? {
            (b'Z' | b'z', rest) => {
                self.0 = rest;
                return Some(0);
            }
            (b'+', rest) => (1, rest),
            (b'-', rest) => (-1, rest),
            _ => return None,
        };
        self.0 = rest;
        let (hour, minute, second) = if rest.iter().take_while(|b| b.is_ascii_digit()).count() == 4 {
            let both = self.digits(4, 4)?;
            (both / 100, both % 100, 0)
        } else {
            let hour = self.digits(1, 2)?;
            let minute = if self.byte(b':').is_some() { Some(self.digits(2, 2)?) } else { None };
            let second = if minute.is_some() && self.byte(b':').is_some() { self.digits(2, 2)? } else { 0 };
            (hour, minute.unwrap_or(0), second)
        };
        // MAX_TZDISP_HOUR.
        (hour <= 15 && minute < 60 && second < 60).then_some((sign * ((hour * 60 + minute) * 60 + second)) as i32)
    }
}

/// Days from 2000-01-01 in the proleptic Gregorian calendar; year 0 is 1 BC. None for a day that does not exist.
fn days_from_2000(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days_in_month = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if !(1..=days_in_month).contains(&day) {
        return None;
    }
    // Years that begin in March, so that the leap day is the last.
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let century_cycle = march_year.div_euclid(400);
    let year_of_cycle = march_year.rem_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    // 2000-03-01 begins cycle 5, 60 days into the year.
    Some((century_cycle - 5) * 146_097 + day_of_cycle + 60)
}
