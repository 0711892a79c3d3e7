//! How a statement refers to relations outside of FROM. Read from its tokens, so that it is complete where the tree is
//! not.

use pg_query::protobuf::Token;

use crate::alter::identifier;
use crate::ast::Span;
use crate::statement::Statement;

/// What stands before a column in `schema.table.column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qualifier {
    pub schema: String,
    pub table: String,
    /// Schema and table as they are written, with the database before them where it is.
    pub span: Span,
}

impl Statement {
    /// Every `schema.table` before a column or a star.
    pub fn qualifiers(&self) -> Vec<Qualifier> {
        let t = &self.tokens;
        let mut found = Vec::new();
        let mut at = 0;
        while at < t.list.len() {
            if !t.is_word(at) {
                at += 1;
                continue;
            }
            let mut parts = vec![at];
            let mut next = at + 1;
            while t.kind(next) == Token::Ascii46 && (t.is_word(next + 1) || t.kind(next + 1) == Token::Ascii42) {
                parts.push(next + 1);
                next += 2;
            }
            if let [.., schema, table, _] = parts.as_slice() {
                found.push(Qualifier {
                    schema: identifier(t.span(*schema, schema + 1).of(&self.text)),
                    table: identifier(t.span(*table, table + 1).of(&self.text)),
                    span: t.span(at, table + 1),
                });
            }
            at = next;
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::split;

    #[test]
    fn columns_may_have_schema_and_table_before_them() {
        let check = |sql: &str, expected: &[&str]| {
            let statement = split(sql).unwrap().pop().unwrap();
            let found: Vec<String> = statement
                .qualifiers()
                .iter()
                .map(|q| format!("{}.{}: {}", q.schema, q.table, q.span.of(&statement.text)))
                .collect();
            assert_eq!(found, expected, "{sql}");
        };
        check("SELECT a.b, pg_catalog.f(1) FROM s.t", &[]);
        check("SELECT S.T.x, s . \"T\" .* FROM s.t", &["s.t: S.T", "s.T: s . \"T\""]);
        check("SELECT (s.t.x)[1], f(s.t.y), d.s.t.z", &["s.t: s.t", "s.t: s.t", "s.t: d.s.t"]);
        check("SELECT 's.t.x', /* s.t.x */ \"s.t.x\" FROM t", &[]);
    }
}
