//! Elements of arrays of one dimension, as text or binary values have them.
//! Follows array_in and array_recv in src/backend/utils/adt/arrayfuncs.c.

use std::borrow::Cow;

/// NULL, or the element's own value.
pub type Element<'a> = Option<Cow<'a, [u8]>>;

/// The elements of a value, at most so many; none: there are more, or the value has another form, which a server reads.
pub fn elements(value: &[u8], binary: bool, most: usize) -> Option<Vec<Element<'_>>> {
    match binary {
        true => of_binary(value, most),
        false => of_text(value, most),
    }
}

fn of_binary(value: &[u8], most: usize) -> Option<Vec<Element<'_>>> {
    let mut rest = value;
    let mut number = || {
        let (front, back) = rest.split_first_chunk::<4>()?;
        rest = back;
        Some(i32::from_be_bytes(*front))
    };
    let (dimensions, _has_nulls, _type) = (number()?, number()?, number()?);
    if dimensions == 0 {
        return Some(Vec::new());
    }
    let (count, _first) = (usize::try_from(number()?).ok()?, number()?);
    if dimensions != 1 || count > most {
        return None;
    }
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, back) = rest.split_first_chunk::<4>()?;
        rest = back;
        found.push(match i32::from_be_bytes(*length) {
            -1 => None,
            length => {
                let (element, back) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                rest = back;
                Some(Cow::Borrowed(element))
            }
        });
    }
    rest.is_empty().then_some(found)
}

/// As PostgreSQL has it for arrays.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn trim_start(mut bytes: &[u8]) -> &[u8] {
    while let Some((_, rest)) = bytes.split_first().filter(|(first, _)| is_space(**first)) {
        bytes = rest;
    }
    bytes
}

fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let Some((_, rest)) = bytes.split_last().filter(|(last, _)| is_space(**last)) {
        bytes = rest;
    }
    bytes
}

fn of_text(value: &[u8], most: usize) -> Option<Vec<Element<'_>>> {
    let inner = trim_end(trim_start(value)).strip_prefix(b"{")?.strip_suffix(b"}")?;
    let mut found = Vec::new();
    if trim_start(inner).is_empty() {
        return Some(found);
    }
    let mut rest = inner;
    loop {
        if found.len() == most {
            return None;
        }
        rest = trim_start(rest);
        match rest.first()? {
            b'"' => {
                let mut element = Vec::new();
                let mut at = 1;
                loop {
                    match rest.get(at)? {
                        b'"' => break,
                        b'\\' => {
                            element.push(*rest.get(at + 1)?);
                            at += 2;
                        }
                        byte => {
                            element.push(*byte);
                            at += 1;
                        }
                    }
                }
                found.push(Some(Cow::Owned(element)));
                rest = trim_start(&rest[at + 1..]);
            }
            b'{' | b'}' | b',' => return None,
            _ => {
                let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
                let element = trim_end(&rest[..end]);
                if element.is_empty() || element.iter().any(|byte| matches!(byte, b'{' | b'}' | b'"' | b'\\')) {
                    return None;
                }
                let is_null = element.eq_ignore_ascii_case(b"null");
                found.push((!is_null).then_some(Cow::Borrowed(element)));
                rest = &rest[end..];
            }
        }
        match rest.split_first() {
            None => return Some(found),
            Some((b',', behind)) => rest = behind,
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Option<Vec<Option<String>>> {
        let own = |element: Element<'_>| element.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Some(elements(value.as_bytes(), false, 5)?.into_iter().map(own).collect())
    }

    #[test]
    fn texts_of_one_dimension_are_read() {
        let some = |list: &[Option<&str>]| Some(list.iter().map(|e| e.map(str::to_owned)).collect::<Vec<_>>());
        assert_eq!(text("{}"), some(&[]));
        assert_eq!(text(" {\u{b} 1, 2\u{c} ,NULL,\"NULL\" } "), some(&[Some("1"), Some("2"), None, Some("NULL")]));
        assert_eq!(text(r#"{"a\"b\\,{}",c d}"#), some(&[Some(r#"a"b\,{}"#), Some("c d")]));
        for other in
            ["", "{", "{1", "1,2", "{{1},{2}}", "[2:3]={1,2}", "{1,}", "{,1}", "{a\\b}", "{1 \"2\"}", "{1,2,3,4,5,6}"]
        {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn binary_values_of_one_dimension_are_read() {
        let number = |n: i32| n.to_be_bytes().to_vec();
        let head = |count: i32| [number(1), number(0), number(23), number(count), number(1)].concat();
        let value = [head(2), number(4), number(7), number(-1)].concat();
        let seven = 7i32.to_be_bytes();
        assert_eq!(elements(&value, true, 2), Some(vec![Some(Cow::Borrowed(&seven[..])), None]));
        assert_eq!(elements(&value, true, 1), None);
        assert_eq!(elements(&value[..value.len() - 1], true, 2), None);
        assert_eq!(elements(&[number(0), number(0), number(23)].concat(), true, 2), Some(Vec::new()));
        assert_eq!(elements(&[number(2), number(0), number(23), number(1), number(1)].concat(), true, 2), None);
    }
}
