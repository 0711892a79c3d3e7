//! The fields of one line of text or CSV (`CopyReadAttributesText`, `CopyReadAttributesCSV`), and lines of text made
//! from values (`CopyAttributeOutText` in src/backend/commands/copyto.c).

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};

use super::{CopyErrorKind, CopyFormat, CopyOptions, KeyAt};

/// One field as it stands in the line.
struct RawField<'a> {
    /// Where it begins in the line.
    start: usize,
    /// With quotes and escapes: what markers are compared with.
    raw: &'a [u8],
    /// CSV: some part of it was quoted.
    quoted: bool,
    /// Where the next field begins, if there is one.
    next: Option<usize>,
}

/// The key column's value, after the number of fields was checked.
pub(super) fn key_field(
    line: &[u8],
    options: &CopyOptions,
    key_column: usize,
    column_count: usize,
) -> Result<KeyAt, CopyErrorKind> {
    if column_count == 0 {
        return if line.is_empty() { Ok(KeyAt::Default) } else { Err(CopyErrorKind::ExtraData) };
    }
    let mut key = KeyAt::Default;
    let mut start = 0;
    for index in 0.. {
        let field = field_at(line, start, options)?;
        if index == key_column && key_column < column_count {
            key = decode_key(&field, options);
        }
        match field.next {
            Some(next) => start = next,
            // A broken quote further on is reported before a wrong number of fields, as PostgreSQL reads all first.
            None if index + 1 > column_count => return Err(CopyErrorKind::ExtraData),
            None if index + 1 < column_count => return Err(CopyErrorKind::MissingColumn { index: index + 1 }),
            None => break,
        }
    }
    Ok(key)
}

/// The same for a line without backslashes (text) or quotes (CSV): fields end at every delimiter.
pub(super) fn plain_key(
    line: &[u8],
    options: &CopyOptions,
    key_column: usize,
    column_count: usize,
) -> Result<KeyAt, CopyErrorKind> {
    let count = memchr::memchr_iter(options.delimiter, line).count() + 1;
    if column_count == 0 || count != column_count {
        return key_field(line, options, key_column, column_count);
    }
    if key_column >= column_count {
        return Ok(KeyAt::Default);
    }
    let (mut start, mut rest) = (0, line);
    for _ in 0..key_column {
        start += memchr::memchr(options.delimiter, rest).map_or(rest.len(), |at| at + 1);
        rest = &line[start..];
    }
    let raw = memchr::memchr(options.delimiter, rest).map_or(rest, |len| &rest[..len]);
    Ok(decode_key(&RawField { start, raw, quoted: false, next: None }, options))
}

/// All fields, unescaped; None is NULL.
pub(super) fn split(line: &[u8], options: &CopyOptions) -> Result<Vec<Option<Vec<u8>>>, CopyErrorKind> {
    let mut fields = Vec::new();
    let mut start = Some(0);
    while let Some(at) = start {
        let field = field_at(line, at, options)?;
        let is_null = !field.quoted && field.raw == options.null.as_bytes();
        fields.push((!is_null).then(|| unescape(&field, options).into_owned()));
        start = field.next;
    }
    Ok(fields)
}

fn decode_key(field: &RawField<'_>, options: &CopyOptions) -> KeyAt {
    let null = options.null.as_bytes();
    let csv = options.format == CopyFormat::Csv;
    if !field.quoted && field.raw == null {
        return if csv && options.force_not_null { KeyAt::Unescaped(null.to_vec()) } else { KeyAt::Null };
    }
    if options.default.as_ref().is_some_and(|marker| field.raw == marker.as_bytes()) {
        return KeyAt::Default;
    }
    let text = unescape(field, options);
    if csv && options.force_null && *text == *null {
        return KeyAt::Null;
    }
    match text {
        Cow::Borrowed(text) => KeyAt::Text(field.start..field.start + text.len()),
        Cow::Owned(text) => KeyAt::Unescaped(text),
    }
}

fn field_at<'a>(line: &'a [u8], start: usize, options: &CopyOptions) -> Result<RawField<'a>, CopyErrorKind> {
    match options.format {
        CopyFormat::Csv => csv_field_at(line, start, options),
        _ => Ok(text_field_at(line, start, options.delimiter)),
    }
}

fn unescape<'a>(field: &RawField<'a>, options: &CopyOptions) -> Cow<'a, [u8]> {
    match options.format {
        CopyFormat::Csv if field.quoted => Cow::Owned(unescape_csv(field.raw, options)),
        CopyFormat::Csv => Cow::Borrowed(field.raw),
        _ => unescape_text(field.raw),
    }
}

fn text_field_at(line: &[u8], start: usize, delimiter: u8) -> RawField<'_> {
    let mut at = start;
    while let Some(skip) = memchr::memchr2(delimiter, b'\\', &line[at..]) {
        at += skip;
        if line[at] == delimiter {
            return RawField { start, raw: &line[start..at], quoted: false, next: Some(at + 1) };
        }
        if at + 1 == line.len() {
            // A backslash at the end of the line is dropped before the field is compared with anything.
            return RawField { start, raw: &line[start..at], quoted: false, next: None };
        }
        at += escape_at(&line[at + 1..]).1 + 1;
    }
    RawField { start, raw: &line[start..], quoted: false, next: None }
}

/// What the characters behind a backslash stand for, and how many they are. `text` is not empty.
fn escape_at(text: &[u8]) -> (u8, usize) {
    match text[0] {
        b'0'..=b'7' => number(text, 3, 8),
        b'x' => match number(&text[1..], 2, 16) {
            (_, 0) => (b'x', 1),
            (meant, len) => (meant, len + 1),
        },
        b'b' => (8, 1),
        b'f' => (12, 1),
        b'n' => (b'\n', 1),
        b'r' => (b'\r', 1),
        b't' => (b'\t', 1),
        b'v' => (11, 1),
        other => (other, 1),
    }
}

/// The number that at most `len_max` digits at the front of `text` make, cut to a byte, and how many they are.
fn number(text: &[u8], len_max: usize, radix: u32) -> (u8, usize) {
    let digits = text.iter().take(len_max).map_while(|byte| char::from(*byte).to_digit(radix));
    let (value, len) = digits.fold((0, 0), |(value, len), digit| (value * radix + digit, len + 1));
    (value as u8, len)
}

fn unescape_text(raw: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', raw) else { return Cow::Borrowed(raw) };
    let mut text = raw[..first].to_vec();
    let mut at = first;
    while let Some(&byte) = raw.get(at) {
        at += 1;
        match raw.get(at..) {
            Some(behind) if byte == b'\\' && !behind.is_empty() => {
                let (meant, len) = escape_at(behind);
                text.push(meant);
                at += len;
            }
            _ => text.push(byte),
        }
    }
    Cow::Owned(text)
}

fn csv_field_at<'a>(line: &'a [u8], start: usize, options: &CopyOptions) -> Result<RawField<'a>, CopyErrorKind> {
    let (quote, escape) = (options.quote, options.escape);
    let mut at = start;
    let mut quoted = false;
    loop {
        // Outside quotes.
        match memchr::memchr2(options.delimiter, quote, &line[at..]) {
            None => return Ok(RawField { start, raw: &line[start..], quoted, next: None }),
            Some(skip) => at += skip,
        }
        if line[at] == options.delimiter {
            return Ok(RawField { start, raw: &line[start..at], quoted, next: Some(at + 1) });
        }
        quoted = true;
        at += 1;
        // Inside quotes.
        loop {
            at += memchr::memchr2(quote, escape, &line[at..]).ok_or(CopyErrorKind::UnterminatedQuote)?;
            if is_escaped(line, at, options) {
                at += 2;
                continue;
            }
            at += 1;
            if line[at - 1] == quote {
                break;
            }
        }
    }
}

/// Inside quotes: an escape with a quote or an escape behind it.
fn is_escaped(text: &[u8], at: usize, options: &CopyOptions) -> bool {
    text[at] == options.escape && text.get(at + 1).is_some_and(|next| [options.escape, options.quote].contains(next))
}

/// A field that [`csv_field_at`] has found whole.
fn unescape_csv(raw: &[u8], options: &CopyOptions) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut in_quote = false;
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        if in_quote && is_escaped(raw, at, options) {
            text.push(raw[at + 1]);
            at += 2;
            continue;
        }
        if byte == options.quote {
            in_quote = !in_quote;
        } else {
            text.push(byte);
        }
        at += 1;
    }
    text
}

/// One line of COPY text with the default options, with its newline. None is NULL.
pub fn encode_text_row<V: AsRef<[u8]>>(row: &[Option<V>]) -> Vec<u8> {
    let mut buf = BytesMut::new();
    write_text_row(&mut buf, row);
    buf.to_vec()
}

/// Appends what [`encode_text_row`] gives.
pub fn write_text_row<V: AsRef<[u8]>>(buf: &mut BytesMut, row: &[Option<V>]) {
    for (index, field) in row.iter().enumerate() {
        if index > 0 {
            buf.put_u8(b'\t');
        }
        match field {
            None => buf.put_slice(b"\\N"),
            Some(text) => put_escaped(buf, text.as_ref(), b'\t'),
        }
    }
    buf.put_u8(b'\n');
}

/// A line of text or CSV with more fields ([`append_field`]) behind its content, in front of its ending.
pub fn append_fields(line: &[u8], content_len: usize, fields: &[u8], options: &CopyOptions) -> Vec<u8> {
    let (mut content, ending) = line.split_at(content_len.min(line.len()));
    // A backslash behind which the data ends stands for nothing.
    let backslashes = content.iter().rev().take_while(|byte| **byte == b'\\').count();
    if options.format == CopyFormat::Text && backslashes % 2 == 1 {
        content = &content[..content.len() - 1];
    }
    [content, fields, ending].concat()
}

/// Appends one more field to a line of text or CSV that has some. None is NULL.
pub fn append_field(line: &mut BytesMut, field: Option<&[u8]>, options: &CopyOptions) {
    line.put_u8(options.delimiter);
    match (field, options.format) {
        (None, _) => line.put_slice(options.null.as_bytes()),
        (Some(text), CopyFormat::Csv) => {
            line.put_u8(options.quote);
            for byte in text {
                if [options.quote, options.escape].contains(byte) {
                    line.put_u8(options.escape);
                }
                line.put_u8(*byte);
            }
            line.put_u8(options.quote);
        }
        (Some(text), _) => put_escaped(line, text, options.delimiter),
    }
}

fn put_escaped(buf: &mut BytesMut, text: &[u8], delimiter: u8) {
    let mut start = 0;
    for (at, byte) in text.iter().enumerate() {
        let letter = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            other if *other == delimiter => delimiter,
            _ => continue,
        };
        buf.put_slice(&text[start..at]);
        buf.put_slice(&[b'\\', letter]);
        start = at + 1;
    }
    buf.put_slice(&text[start..]);
}

/// The values of one line of COPY text with the default options (a CopyData message of COPY TO), with or without its
/// newline. None is NULL.
pub fn decode_text_row(line: &[u8]) -> Vec<Option<Vec<u8>>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    // Text has no errors: a field is what it is.
    split(line, &CopyOptions::new(CopyFormat::Text, 18)).unwrap_or_default()
}

/// The values of one line of text or CSV under other options, without its line ending. None is NULL; DEFAULT markers,
/// FORCE_NULL and FORCE_NOT_NULL are not looked at.
pub fn decode_csv_row(line: &[u8], options: &CopyOptions) -> Result<Vec<Option<Vec<u8>>>, CopyErrorKind> {
    split(line, options)
}
