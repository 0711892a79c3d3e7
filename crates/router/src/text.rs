//! Text of SQL, and of rows as PostgreSQL writes them, read without a parser.

use bytes::{BufMut, Bytes, BytesMut};

/// What `replace` gives stands in place of what a text begins with, at each place outside of quotes and comments. It is
/// told the rest of the text and the character before it, and says how many bytes its answer stands for.
pub(crate) fn replace_unquoted(
    sql: &str,
    mut replace: impl FnMut(&str, Option<char>) -> Option<(usize, String)>,
) -> String {
    let mut out = String::with_capacity(sql.len() + 64);
    let mut at = 0;
    while let Some(c) = sql[at..].chars().next() {
        let (before, rest) = sql.split_at(at);
        let quoted = length_of_quoted(before, rest);
        if quoted > 0 {
            out.push_str(&rest[..quoted]);
            at += quoted;
        } else if let Some((length, with)) = replace(rest, before.chars().next_back()) {
            out.push_str(&with);
            at += length;
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    out
}

/// Letters, digits and their like, of which names consist.
pub(crate) fn is_in_name(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphanumeric()
}

/// How much of the text is a literal, a quoted name or a comment that begins here.
pub(crate) fn length_of_quoted(before: &str, rest: &str) -> usize {
    let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |found| from + found + end.len());
    match rest.as_bytes().first() {
        Some(b'\'') => {
            let mut prefix = before.chars().rev();
            let escapes = matches!(prefix.next(), Some('E' | 'e')) && !prefix.next().is_some_and(is_in_name);
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '\'' && !escaped;
                escaped = escapes && c == '\\' && !escaped;
                ends
            });
            // A doubled quote closes and opens again.
            let again = |length: usize| match rest[length..].starts_with('\'') {
                true => length + length_of_quoted(if escapes { "E" } else { "" }, &rest[length..]),
                false => length,
            };
            end.map_or(rest.len(), |end| again(end + 2))
        }
        Some(b'"') => until("\"", 1),
        Some(b'-') if rest.starts_with("--") => until("\n", 2),
        Some(b'/') if rest.starts_with("/*") => length_of_comment(rest),
        Some(b'$') if !before.chars().next_back().is_some_and(is_in_name) => {
            let tag = rest[1..]
                .find(|c| c == '$' || !is_in_name(c))
                .map_or(rest, |end| rest.get(..end + 2).unwrap_or_default());
            let is_tag = tag.len() >= 2 && tag.ends_with('$') && !tag[1..].starts_with(|c: char| c.is_ascii_digit());
            if is_tag { until(tag, tag.len()) } else { 0 }
        }
        _ => 0,
    }
}

/// Comments nest.
fn length_of_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(found) = rest[at..].find("/*").into_iter().chain(rest[at..].find("*/")).min() {
        depth += if rest[at + found..].starts_with("/*") { 1 } else { -1 };
        at += found + 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The fields of a row as `record_out` writes it: `(a,"b c",)`. None: it is none.
pub(crate) fn fields_of_record(record: &[u8]) -> Option<Vec<Option<Bytes>>> {
    let inner = record.strip_prefix(b"(")?.strip_suffix(b")")?;
    let mut fields = Vec::new();
    let (mut value, mut is_null, mut quoted) = (BytesMut::new(), true, false);
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if quoted && bytes.peek() == Some(&b'"') => value.put_u8(bytes.next()?),
            b'"' => (quoted, is_null) = (!quoted, false),
            b'\\' => {
                value.put_u8(bytes.next()?);
                is_null = false;
            }
            b',' if !quoted => {
                fields.push((!is_null).then(|| value.split().freeze()));
                is_null = true;
            }
            byte => {
                value.put_u8(byte);
                is_null = false;
            }
        }
    }
    fields.push((!is_null).then(|| value.freeze()));
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_quoted_is_replaced() {
        let shout = |sql: &str| {
            replace_unquoted(sql, |rest, before| {
                (rest.starts_with("x") && !before.is_some_and(is_in_name)).then(|| (1, "X".to_owned()))
            })
        };
        for (sql, expected) in [
            ("x ax x", "X ax X"),
            ("'x''x' x", "'x''x' X"),
            (r"E'x\'x' x", r"E'x\'x' X"),
            (r"e'x\\' x", r"e'x\\' X"),
            (r"date'x\' x", r"date'x\' X"),
            (r"E'x\''' x' x", r"E'x\''' x' X"),
            ("\"x\"\"x\" x", "\"x\"\"x\" X"),
            ("-- x'\nx /* x /* ' */ x */ x", "-- x'\nX /* x /* ' */ x */ X"),
            ("$$ x ' $$ x $a$ x $$ x $a$ x", "$$ x ' $$ X $a$ x $$ x $a$ X"),
            ("$1 x a$$ x", "$1 X a$$ X"),
            ("'x", "'x"),
            ("/* x", "/* x"),
            ("ä x", "ä X"),
            ("$1€x $€ x", "$1€X $€ X"),
        ] {
            assert_eq!(shout(sql), expected);
        }
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let read = |text: &str| -> Option<Vec<Option<String>>> {
            let fields = fields_of_record(text.as_bytes())?;
            Some(fields.into_iter().map(|f| f.map(|f| String::from_utf8_lossy(&f).into_owned())).collect())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("()"), Some(vec![None]));
        assert_eq!(read("(1,,\"\",x)"), Some(vec![some("1"), None, some(""), some("x")]));
        assert_eq!(read("(,\"\",)"), Some(vec![None, some(""), None]));
        assert_eq!(read(r#"("a ""b"", \\ c","(1,2)")"#), Some(vec![some(r#"a "b", \ c"#), some("(1,2)")]));
        assert_eq!(read("x"), None);
    }
}
