//! What the tree of ALTER TABLE does not keep as text: the expressions of `ALTER COLUMN … TYPE … USING …`, and where
//! `DETACH PARTITION … CONCURRENTLY` says so.

use pg_query::protobuf::Token;

use crate::ast::Span;
use crate::tokens::Tokens;

/// `(column, expression)` of each `ALTER [COLUMN] name [SET DATA] TYPE … USING expression` in a statement.
pub fn using_clauses(text: &str) -> Vec<(String, String)> {
    let Some(tokens) = Tokens::scan(text) else { return Vec::new() };
    let mut found = Vec::new();
    for (from, to) in tokens.split_commas(0, tokens.list.len()) {
        // The first subcommand has `ALTER TABLE name` before it: the last ALTER of the piece counts.
        let Some(alter) = (from..to).rev().find(|i| tokens.kind(*i) == Token::Alter) else { continue };
        let name_at = if tokens.kind(alter + 1) == Token::Column { alter + 2 } else { alter + 1 };
        let Some(using) = (alter..to).find(|i| tokens.kind(*i) == Token::Using) else { continue };
        let name = tokens.span(name_at, name_at + 1).of(text);
        let expression = tokens.span(using + 1, to).of(text).trim_end_matches(';').trim();
        if !expression.is_empty() {
            found.push((identifier(name), expression.to_owned()));
        }
    }
    found
}

/// The word CONCURRENTLY of DETACH PARTITION, CREATE INDEX or DROP INDEX: no name is written like it.
pub fn detached_concurrently(text: &str) -> Option<Span> {
    let tokens = Tokens::scan(text)?;
    let at = (0..tokens.list.len()).rev().find(|i| tokens.kind(*i) == Token::Concurrently)?;
    Some(tokens.span(at, at + 1))
}

/// The name that an identifier stands for.
pub(crate) fn identifier(written: &str) -> String {
    match written.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => written.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::{detached_concurrently, using_clauses};

    #[test]
    fn concurrently_is_found() {
        let text = "ALTER TABLE t DETACH PARTITION s.\"concurrently\" CONCURRENTLY ;";
        assert_eq!(detached_concurrently(text).map(|span| span.of(text)), Some("CONCURRENTLY"));
        assert_eq!(detached_concurrently("ALTER TABLE t DETACH PARTITION p"), None);
    }

    #[test]
    fn the_expression_of_each_column_is_found() {
        let text = "ALTER TABLE s.t ALTER COLUMN a TYPE int USING (a::int + f(1, 2)), \
                    ALTER \"B c\" SET DATA TYPE text USING upper(x);";
        assert_eq!(
            using_clauses(text),
            [("a".to_owned(), "(a::int + f(1, 2))".to_owned()), ("B c".to_owned(), "upper(x)".to_owned())]
        );
        assert_eq!(using_clauses("ALTER TABLE t ADD COLUMN x int"), []);
    }
}
