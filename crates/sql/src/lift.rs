//! Literals lifted out of a text, so that statements that differ only in their values share one analysis and one
//! server-side statement: [`Lifter`] finds what looks like a literal and writes the text with `$n` in its place,
//! [`liftable`] says from the tree which of them may be parameters without a change of meaning.
//!
//! The scanner is for speed and knows a part of src/backend/parser/scan.l only: at anything beyond plain names, numbers
//! and quoted strings it gives up, and the text is handled as a whole. It decides nothing: each literal that it finds
//! must be a constant of the tree with exactly that range before it is used.

use std::fmt::Write;

use crate::ast::{Expr, ExprKind, InsertSource, OpKind, Span, Tree};
use crate::statement::Statement;

/// The type that PostgreSQL gives a literal before it knows where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    Int4,
    Int8,
    Numeric,
    /// A quoted string: its type follows from its place.
    Unknown,
}

impl LiteralKind {
    /// The parameter type that stands for it; 0: left to the server.
    pub fn type_oid(self) -> u32 {
        match self {
            LiteralKind::Int4 => 23,
            LiteralKind::Int8 => 20,
            LiteralKind::Numeric => 1700,
            LiteralKind::Unknown => 0,
        }
    }

    fn letter(self) -> char {
        match self {
            LiteralKind::Int4 => 'i',
            LiteralKind::Int8 => 'l',
            LiteralKind::Numeric => 'n',
            LiteralKind::Unknown => 'u',
        }
    }
}

/// A literal where it stands in the text, sign and quotes included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literal {
    pub span: Span,
    pub kind: LiteralKind,
}

/// Scans texts; its memory is used again.
#[derive(Debug, Default)]
pub struct Lifter {
    pub literals: Vec<Literal>,
    key: String,
}

/// More literals than this are not lifted.
const LITERALS_MAX: usize = 64;

impl Lifter {
    /// Finds the literals of a text. False: there is something in it that this scanner does not know.
    pub fn scan(&mut self, sql: &str) -> bool {
        self.literals.clear();
        let bytes = sql.as_bytes();
        let mut at = 0;
        // The last byte that was no white space, and whether white space came after it.
        let (mut last, mut spaced) = (b' ', true);
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    at += 1;
                    spaced = true;
                    continue;
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
                        at += 1;
                    }
                    // A prefix that changes what the quotes mean (E'', U&"", …), or a name with other characters.
                    if matches!(bytes.get(at), Some(b'\'' | b'"' | b'&' | b'$' | 128..)) {
                        return false;
                    }
                }
                b'"' => {
                    at += 1 + match bytes[at + 1..].iter().position(|b| *b == b'"') {
                        Some(length) => length + 1,
                        None => return false,
                    };
                }
                b'0'..=b'9' => match number(bytes, at, false) {
                    Some((end, kind)) if last != b'.' => {
                        self.literals.push(Literal { span: Span::new(at, end), kind });
                        at = end;
                    }
                    _ => return false,
                },
                b'\'' => {
                    at = match string(bytes, at) {
                        Some(end) if last != b'\'' => end,
                        _ => return false,
                    };
                    self.literals.push(Literal { span: Span::new(start, at), kind: LiteralKind::Unknown });
                }
                b'-' if bytes.get(at + 1) == Some(&b'-') => return false,
                b'-' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
                    && (spaced || matches!(last, b'(' | b','))
                    && matches!(last, b'=' | b'<' | b'>' | b'(' | b',' | b'+' | b'-' | b'*' | b'/') =>
                {
                    match number(bytes, at + 1, true) {
                        Some((end, kind)) => {
                            self.literals.push(Literal { span: Span::new(at, end), kind });
                            at = end;
                        }
                        None => return false,
                    }
                }
                b'/' if bytes.get(at + 1) == Some(&b'*') => return false,
                b';' => {
                    if !sql[at + 1..].bytes().all(|b| b.is_ascii_whitespace()) {
                        return false;
                    }
                    at += 1;
                }
                b'(' | b')' | b',' | b'.' | b'*' | b'=' | b'<' | b'>' | b'+' | b'-' | b'/' | b'%' | b'[' | b']'
                | b'|' | b'!' | b':' => at += 1,
                _ => return false,
            }
            if self.literals.len() > LITERALS_MAX {
                return false;
            }
            last = bytes[at - 1];
            spaced = false;
        }
        true
    }

    /// The text with `$1 … $n` for the literals that `chosen` says (by index; beyond its end: none), and behind it
    /// their kinds: equal for texts that differ in those values only.
    pub fn key(&mut self, sql: &str, chosen: impl Fn(usize) -> bool) -> &str {
        self.key.clear();
        let (mut from, mut number) = (0, 0);
        for (_, literal) in self.literals.iter().enumerate().filter(|(index, _)| chosen(*index)) {
            number += 1;
            self.key.push_str(&sql[from..literal.span.start]);
            let _ = write!(self.key, "${number}");
            from = literal.span.end;
        }
        self.key.push_str(&sql[from..]);
        self.key.push('\0');
        for (index, literal) in self.literals.iter().enumerate() {
            if chosen(index) {
                self.key.push(literal.kind.letter());
            }
        }
        &self.key
    }

    /// The statement of a key, without the kinds.
    pub fn text_of(key: &str) -> &str {
        key.split('\0').next().unwrap_or_default()
    }
}

/// A literal's value as its type's input function reads it, appended to `out`.
pub fn write_value(sql: &str, literal: Literal, out: &mut Vec<u8>) {
    let text = literal.span.of(sql);
    match literal.kind {
        LiteralKind::Unknown => {
            let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
            let mut rest = inner;
            while let Some(at) = rest.find("''") {
                out.extend_from_slice(&rest.as_bytes()[..=at]);
                rest = &rest[at + 2..];
            }
            out.extend_from_slice(rest.as_bytes());
        }
        _ => out.extend_from_slice(text.as_bytes()),
    }
}

/// Digits with at most one point between them. The smallest numbers have a type of their own only with their sign.
fn number(bytes: &[u8], start: usize, negative: bool) -> Option<(usize, LiteralKind)> {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = start + digits(start);
    let mut kind = match std::str::from_utf8(&bytes[start..end]).ok()?.parse::<u64>() {
        Ok(value) if value <= i32::MAX as u64 + u64::from(negative) => LiteralKind::Int4,
        Ok(value) if value <= i64::MAX as u64 + u64::from(negative) => LiteralKind::Int8,
        _ => LiteralKind::Numeric,
    };
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        if fraction == 0 {
            return None;
        }
        end += 1 + fraction;
        kind = LiteralKind::Numeric;
    }
    match bytes.get(end) {
        Some(b'.' | b'_' | b'$' | 128..) => None,
        Some(b) if b.is_ascii_alphanumeric() => None,
        _ => Some((end, kind)),
    }
}

/// The end of a string in plain quotes.
fn string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => return None,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// Operators whose choice depends on the types of both sides and nothing else, and that no index or planner trick needs
/// to see a constant with.
const OPERATORS: &[&str] = &["=", "<", ">", "<=", ">=", "<>", "+", "-"];

/// Which literals may be parameters: one side of a plain operator whose other side is a column, the value of SET, a
/// field of a single row of VALUES. `offset`: where the statement begins in the text that was scanned.
pub fn liftable(statement: &Statement, offset: usize, literals: &[Literal]) -> Vec<bool> {
    let mut good: Vec<Span> = Vec::new();
    let mut constant = |expr: &Expr| {
        if matches!(expr.kind, ExprKind::Const(_)) {
            good.push(Span::new(expr.span.start + offset, expr.span.end + offset));
        }
    };
    statement.tree.walk_all(&mut |_, expr| {
        let ExprKind::Op(op) = &expr.kind else { return };
        if op.kind != OpKind::Plain || op.schema.is_some() || !OPERATORS.contains(&op.name.as_str()) {
            return;
        }
        match (&op.left, &op.right) {
            (Some(Expr { kind: ExprKind::Column(_), .. }), Some(value))
            | (Some(value), Some(Expr { kind: ExprKind::Column(_), .. })) => constant(value),
            _ => {}
        }
    });
    match &statement.tree {
        Tree::Update(update) => {
            update.set.iter().filter(|a| !a.indirection && !a.multi).for_each(|a| constant(&a.value));
        }
        Tree::Insert(insert) => {
            if let InsertSource::Values(rows) = &insert.source
                && let [row] = rows.as_slice()
            {
                row.iter().for_each(constant);
            }
        }
        _ => {}
    }
    literals.iter().map(|literal| good.contains(&literal.span)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::split;

    /// The key under which a text's analysis is shared, with what the tree allows.
    fn lifted(sql: &str) -> String {
        let mut lifter = Lifter::default();
        if !lifter.scan(sql) {
            return "-".to_owned();
        }
        let statement = split(sql).unwrap().remove(0);
        let mask = liftable(&statement, statement.offset, &lifter.literals);
        let key = lifter.key(sql, |index| mask[index]).replace('\0', " | ");
        let mut values = Vec::new();
        for (literal, _) in lifter.literals.iter().zip(&mask).filter(|(_, lifted)| **lifted) {
            values.push(b' ');
            write_value(sql, *literal, &mut values);
        }
        format!("{key}{}", String::from_utf8(values).unwrap())
    }

    #[track_caller]
    fn check(sql: &str, expected: &str) {
        assert_eq!(lifted(sql), expected, "{sql}");
    }

    #[test]
    fn values_beside_columns_are_lifted() {
        check("SELECT a FROM t WHERE id = 42;", "SELECT a FROM t WHERE id = $1; | i 42");
        check("SELECT a FROM t WHERE 42=id AND b<>'x''y'", "SELECT a FROM t WHERE $1=id AND b<>$2 | iu 42 x'y");
        check("select * from t where k = 3000000000", "select * from t where k = $1 | l 3000000000");
        check(
            "select * from t where k = 99999999999999999999",
            "select * from t where k = $1 | n 99999999999999999999",
        );
        check("select * from t where k = 2147483648", "select * from t where k = $1 | l 2147483648");
        check("select * from t where k >= 1.50", "select * from t where k >= $1 | n 1.50");
        check("SELECT \"A b\" FROM \"T\" WHERE \"k\" = 'é'", "SELECT \"A b\" FROM \"T\" WHERE \"k\" = $1 | u é");
        check("select 1 from t where k = 007", "select 1 from t where k = $1 | i 007");
    }

    #[test]
    fn signs_belong_to_numbers_only_where_the_grammar_says_so() {
        check("UPDATE t SET a = a + -5 WHERE k = 1", "UPDATE t SET a = a + $1 WHERE k = $2 | ii -5 1");
        check("UPDATE t SET a = a - 5 WHERE k = -1", "UPDATE t SET a = a - $1 WHERE k = $2 | ii 5 -1");
        check("UPDATE t SET a = a -5 WHERE k = 1", "UPDATE t SET a = a -$1 WHERE k = $2 | ii 5 1");
        // `=-` is one token to our scanner; the literal found behind it is not the tree's constant.
        check("SELECT a FROM t WHERE k =-1", "SELECT a FROM t WHERE k =-1 | ");
        check("SELECT a FROM t WHERE k = -2147483648", "SELECT a FROM t WHERE k = $1 | i -2147483648");
        check("INSERT INTO t VALUES (-1, 2)", "INSERT INTO t VALUES ($1, $2) | ii -1 2");
        check(
            "SELECT CASE WHEN true THEN -5 END FROM t WHERE k = 1",
            "SELECT CASE WHEN true THEN -5 END FROM t WHERE k = $1 | i 1",
        );
    }

    #[test]
    fn what_means_something_else_as_a_parameter_stays() {
        check(
            "SELECT a FROM t WHERE k = 1 ORDER BY 1 LIMIT 5",
            "SELECT a FROM t WHERE k = $1 ORDER BY 1 LIMIT 5 | i 1",
        );
        check("SELECT 'x', 5 FROM t WHERE k = 1", "SELECT 'x', 5 FROM t WHERE k = $1 | i 1");
        check("SELECT f('x') FROM t WHERE k = 1", "SELECT f('x') FROM t WHERE k = $1 | i 1");
        check("SELECT a FROM t WHERE k = '1'::int", "SELECT a FROM t WHERE k = '1'::int | ");
        check("SELECT a FROM t WHERE d = date '2020-01-01'", "SELECT a FROM t WHERE d = date '2020-01-01' | ");
        check("SELECT a FROM t WHERE k IN (1, 2)", "SELECT a FROM t WHERE k IN (1, 2) | ");
        check("SELECT a FROM t WHERE a LIKE 'x%'", "SELECT a FROM t WHERE a LIKE 'x%' | ");
        check("SELECT a[1] FROM t WHERE k = 1 AND a[2] = 3", "SELECT a[1] FROM t WHERE k = $1 AND a[2] = 3 | i 1");
        check("INSERT INTO t VALUES (1, 2), (3, 4)", "INSERT INTO t VALUES (1, 2), (3, 4) | ");
        check("INSERT INTO t VALUES (1, 2 + 3, now())", "INSERT INTO t VALUES ($1, 2 + 3, now()) | i 1");
        check("INSERT INTO t SELECT 1, 'x'", "INSERT INTO t SELECT 1, 'x' | ");
        check("UPDATE t SET (a, b) = (1, 2) WHERE k = 3", "UPDATE t SET (a, b) = ($1, $2) WHERE k = $3 | iii 1 2 3");
        check(
            "UPDATE t SET (a, b) = (SELECT 1, 2) WHERE k = 3",
            "UPDATE t SET (a, b) = (SELECT 1, 2) WHERE k = $1 | i 3",
        );
        check("UPDATE t SET a[1] = 5 WHERE k = 3", "UPDATE t SET a[1] = 5 WHERE k = $1 | i 3");
        check(
            "SELECT a FROM t WHERE k = 1 AND j -> 'a' = '1'",
            "SELECT a FROM t WHERE k = $1 AND j -> 'a' = '1' | i 1",
        );
    }

    #[test]
    fn texts_with_anything_unusual_are_left_alone() {
        for sql in [
            "SELECT a FROM t WHERE k = $1",
            "SELECT a FROM t WHERE k = E'x'",
            "SELECT a FROM t WHERE k = 'a\\b'",
            "SELECT a FROM t WHERE k = $$x$$",
            "SELECT a FROM t WHERE k = 1 -- two",
            "SELECT a FROM t /* c */ WHERE k = 1",
            "SELECT a FROM t WHERE k = 1e5",
            "SELECT a FROM t WHERE k = 0x1F",
            "SELECT a FROM t WHERE k = 1_000",
            "SELECT a FROM t WHERE k = .5",
            "SELECT a FROM t WHERE k = 'a' 'b'",
            "SELECT 1; SELECT 2",
            "SELECT é FROM t",
            "SELECT 'open",
            "SELECT B'01'",
            "SELECT N'x'",
        ] {
            let mut lifter = Lifter::default();
            assert!(!lifter.scan(sql), "{sql}");
        }
    }
}
