//! String literals under `standard_conforming_strings = off`, where a backslash in a plain literal escapes. Our parser
//! reads literals as the setting's default has them: such ones are written as `E'…'`, which means the same under both.
//! Follows src/backend/parser/scan.l.

use std::borrow::Cow;

/// The text with an `E` in front of each plain literal that has a backslash in it.
pub fn escape_plain_strings(sql: &str) -> Cow<'_, str> {
    if !sql.contains('\\') {
        return Cow::Borrowed(sql);
    }
    let bytes = sql.as_bytes();
    let mut marks = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at = match bytes[at] {
            b'-' if bytes[at..].starts_with(b"--") => line_end(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => closing(bytes, at + 1, b'"', false),
            b'$' if !continues_word(bytes, at) => dollar_end(sql, at),
            b'\'' => {
                let prefix = prefix_of(bytes, at);
                let escapes = matches!(prefix, None | Some(b'e' | b'E' | b'n' | b'N'));
                let end = literal_end(bytes, at, escapes);
                if prefix.is_none() && bytes[at..end].contains(&b'\\') {
                    marks.push(at);
                }
                end
            }
            _ => at + 1,
        };
    }
    let mut text = String::with_capacity(sql.len() + marks.len());
    let mut from = 0;
    for mark in marks {
        text.push_str(&sql[from..mark]);
        text.push_str(if continues_word(bytes, mark) { " E" } else { "E" });
        from = mark;
    }
    text.push_str(&sql[from..]);
    Cow::Owned(text)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

fn continues_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

/// The letter that makes a literal another kind: E, B, X, N, or the `&` of U&.
fn prefix_of(bytes: &[u8], quote: usize) -> Option<u8> {
    let letter = *bytes.get(quote.checked_sub(1)?)?;
    let begins = |at: usize| at == 0 || !is_word(bytes[at - 1]);
    match letter {
        b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if begins(quote - 1) => Some(letter),
        b'&' if quote >= 2 && matches!(bytes[quote - 2], b'u' | b'U') && begins(quote - 2) => Some(letter),
        _ => None,
    }
}

/// Behind the closing quote; a doubled one is none.
fn closing(bytes: &[u8], mut at: usize, quote: u8, escapes: bool) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if escapes => at += 2,
            b if b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Behind a literal with its continuations: space with a newline in it, and another quote.
fn literal_end(bytes: &[u8], quote: usize, escapes: bool) -> usize {
    let mut end = closing(bytes, quote + 1, b'\'', escapes);
    loop {
        let (mut at, mut newline) = (end, false);
        while at < bytes.len() {
            if bytes[at].is_ascii_whitespace() || bytes[at] == 0x0b {
                newline |= matches!(bytes[at], b'\n' | b'\r');
                at += 1;
            } else if bytes[at..].starts_with(b"--") {
                at = line_end(bytes, at);
            } else {
                break;
            }
        }
        if !newline || bytes.get(at) != Some(&b'\'') {
            return end;
        }
        end = closing(bytes, at + 1, b'\'', escapes);
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| matches!(b, b'\n' | b'\r')).map_or(bytes.len(), |n| at + n)
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let (mut at, mut depth) = (at + 2, 1);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if bytes[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Behind a dollar-quoted literal, or behind a dollar that begins none.
fn dollar_end(sql: &str, at: usize) -> usize {
    let rest = &sql[at + 1..];
    let word = rest.bytes().take_while(|b| is_word(*b) && *b != b'$').count();
    let is_tag = rest.as_bytes().get(word) == Some(&b'$') && !rest.as_bytes()[0].is_ascii_digit();
    if !is_tag {
        return at + 1;
    }
    let tag = &sql[at..at + word + 2];
    let body = at + tag.len();
    sql[body..].find(tag).map_or(sql.len(), |n| body + n + tag.len())
}

#[cfg(test)]
mod tests {
    use super::escape_plain_strings as escape;

    #[test]
    fn plain_literals_with_backslashes_get_an_e() {
        assert_eq!(escape(r"select 'a\\b\'c', 'd'"), r"select E'a\\b\'c', 'd'");
        assert_eq!(escape(r"'\'''x' = 'y\\'"), r"E'\'''x' = E'y\\'");
        assert_eq!(escape(r"select like'a\\b'"), r"select like E'a\\b'");
    }

    #[test]
    fn what_is_no_plain_literal_stays() {
        for sql in [
            r"select E'a\\b', e'\'', B'\'",
            r#"select "a\b" from t"#,
            r"select $$ '\' $$, $x$ '\' $$ $x$, $1",
            "select 1 -- it's \\\n",
            r"select /* it's /* \ */ ' */ 1",
            r"select 1",
        ] {
            assert_eq!(escape(sql), sql);
        }
    }

    #[test]
    fn a_literal_and_its_continuations_are_one() {
        assert_eq!(escape("select 'a'\n  'b\\n', 'c'"), "select E'a'\n  'b\\n', 'c'");
        assert_eq!(escape("select 'a' -- so\n  '\\b'"), "select E'a' -- so\n  '\\b'");
        assert_eq!(escape("select 'a'\n -- yes \\\n  '\\n'"), "select E'a'\n -- yes \\\n  '\\n'");
    }
}
