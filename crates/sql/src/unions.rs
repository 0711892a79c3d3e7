//! Arms of UNION ALL that read one relation and all its rows, wherever they stand: also in definitions, whose trees we
//! do not have.

use std::collections::HashSet;

use pg_query::protobuf::{KeywordKind, Token};

use crate::alter::identifier;
use crate::ast::Span;
use crate::splice::Edits;
use crate::statement::Statement;
use crate::tokens::Tokens;

/// The arms of a text's UNION ALLs to which PostgreSQL may give an order that is asked of all of them.
#[derive(Debug, Default)]
pub struct UnionArms {
    arms: Vec<Arm>,
    /// Some word of the text gives a collation of its own: COLLATE, or a name of the session's.
    pub collates: bool,
    names: Vec<String>,
    /// Every word of the text that may be a name.
    words: HashSet<String>,
    /// Columns may be read that are not named.
    renames: bool,
}

#[derive(Debug)]
struct Arm {
    /// The word of `TABLE t`.
    table: Option<Span>,
    /// Where its WHERE clause would begin.
    at: usize,
}

impl UnionArms {
    pub fn of(statement: &Statement) -> UnionArms {
        let mut found = UnionArms::default();
        let tokens = &*statement.tokens;
        found.add(tokens, &statement.text, 0, false);
        if !found.arms.is_empty() {
            found.read_words(tokens, statement);
        }
        if let Some((at, is_sql)) = body(tokens, &statement.text) {
            let literal = tokens.span(at, at + 1);
            let Some(body) = within(literal.of(&statement.text)) else { return found };
            let Some(tokens) = Tokens::scan(body) else { return found };
            let before = found.arms.len();
            found.add(&tokens, body, literal.start + (literal.end - literal.start - body.len()) / 2, !is_sql);
            if found.arms.len() > before {
                let names = (0..tokens.list.len()).filter(|at| tokens.is_word(*at));
                found.names.extend(names.map(|at| identifier(tokens.span(at, at + 1).of(body))));
            }
        }
        found
    }

    /// `procedural`: a body in PL/pgSQL.
    fn add(&mut self, tokens: &Tokens, text: &str, start: usize, procedural: bool) {
        let is_union = |at: usize| tokens.kind(at) == Token::Union && tokens.kind(at + 1) == Token::All;
        if !(0..tokens.list.len()).any(is_union) {
            return;
        }
        for arm in (0..tokens.list.len()).filter_map(|at| arm(tokens, at, text, procedural)) {
            let table = arm.table.map(|t| Span::new(start + t.start, start + t.end));
            self.arms.push(Arm { table, at: start + arm.at });
        }
        self.collates |= tokens.list.iter().any(|token| {
            matches!(
                token.kind,
                Token::Collate
                    | Token::User
                    | Token::CurrentUser
                    | Token::SessionUser
                    | Token::CurrentRole
                    | Token::CurrentCatalog
                    | Token::CurrentSchema
            )
        });
    }

    fn read_words(&mut self, tokens: &Tokens, statement: &Statement) {
        for at in (0..tokens.list.len()).filter(|at| tokens.is_word(*at)) {
            let written = tokens.span(at, at + 1).of(&statement.text);
            let word = identifier(written);
            let is_call = statement.calls.iter().any(|(_, name)| *name == word);
            let keyword = tokens.list.get(at).map(|token| token.keyword);
            let is_name = keyword == Some(KeywordKind::UnreservedKeyword) || tokens.kind(at) == Token::Ident;
            // Columns may have new names in brackets behind a table's.
            self.renames |= is_name && tokens.kind(at + 1) == Token::Ascii40 && !is_call;
            self.renames |= matches!(tokens.kind(at), Token::Uident | Token::Table);
            // Which other letters become small ones is the server's to say.
            self.words.extend([word, written.to_ascii_lowercase()]);
        }
        self.renames |= (0..tokens.list.len()).any(|at| tokens.kind(at) == Token::Ascii42);
    }

    /// Whether the text may read a column of this name, whatever table has it.
    pub fn may_read(&self, column: &str) -> bool {
        self.renames || !self.names.is_empty() || self.words.contains(column)
    }

    /// Names in bodies of functions, whatever they are names of.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// Gives each arm a condition, which is true.
    pub fn filter(&self, edits: &mut Edits) {
        for arm in &self.arms {
            if let Some(table) = arm.table {
                edits.replace(table, "SELECT * FROM");
            }
            edits.insert(arm.at, " WHERE true ");
        }
    }
}

/// The arm that begins at a token, if one does.
fn arm(tokens: &Tokens, first: usize, text: &str, procedural: bool) -> Option<Arm> {
    // A column's name, or the event of a rule. Behind AS a view's query begins as well.
    let is_name = match tokens.kind(first + 1) {
        Token::From | Token::Ascii44 | Token::Ascii41 | Token::Union | Token::Intersect | Token::Except => true,
        _ => tokens.before(first) == Token::Ascii46,
    };
    if tokens.is_label(first) && is_name || tokens.before(first) == Token::On {
        return None;
    }
    let (end, at) = match tokens.kind(first) {
        Token::Select => {
            let mut reads = false;
            let (mut i, mut at) = (first + 1, None);
            while i < tokens.list.len() && !ends_arm(tokens, i, text, procedural) {
                match tokens.kind(i) {
                    _ if tokens.is_label(i) => {}
                    Token::From => reads = true,
                    // PL/pgSQL's, behind FROM or behind everything else.
                    Token::Into if reads => at = at.or(Some(i)),
                    // PostgreSQL leaves such an arm apart.
                    Token::Where | Token::Having | Token::Join => return None,
                    Token::GroupP if tokens.before(i) != Token::Within => return None,
                    Token::Window => at = at.or(Some(i)),
                    _ => {}
                }
                i = tokens.next_flat(i);
            }
            if !reads {
                return None;
            }
            (i, at.unwrap_or(i))
        }
        Token::Table => {
            let name = if tokens.kind(first + 1) == Token::Only { first + 2 } else { first + 1 };
            let bracketed = tokens.kind(name) == Token::Ascii40;
            let mut end = if bracketed { tokens.next_flat(name) } else { tokens.after_name(name) };
            if tokens.kind(end) == Token::Ascii42 {
                end += 1;
            }
            (end, end)
        }
        _ => return None,
    };
    let (mut from, mut to) = (first, end);
    loop {
        let follows = tokens.before(from) == Token::All && from > 1 && tokens.kind(from - 2) == Token::Union;
        if follows || tokens.kind(to) == Token::Union && tokens.kind(to + 1) == Token::All {
            break;
        }
        if tokens.before(from) != Token::Ascii40 || tokens.mate(from - 1) != to {
            return None;
        }
        (from, to) = (from - 1, to + 1);
    }
    let table = (tokens.kind(first) == Token::Table).then(|| tokens.span(first, first + 1));
    let last = tokens.end_of(tokens.list.len().saturating_sub(1));
    Some(Arm { table, at: tokens.list.get(at).map_or(last, |token| token.start) })
}

/// What no longer belongs to a SELECT that is an arm, but to all of them or to the statement around.
fn ends_arm(tokens: &Tokens, at: usize, text: &str, procedural: bool) -> bool {
    let next = tokens.kind(at + 1);
    match tokens.kind(at) {
        _ if tokens.is_label(at) => false,
        Token::Union | Token::Intersect | Token::Except => true,
        Token::Order | Token::Limit | Token::Offset | Token::Fetch | Token::For => true,
        Token::Ascii41 | Token::Ascii59 | Token::Returning => true,
        // INSERT … ON CONFLICT, and how a table or view is made of a query.
        Token::On => next == Token::Conflict,
        Token::With | Token::WithLa => {
            matches!(next, Token::No | Token::DataP | Token::Check | Token::Cascaded | Token::Local)
        }
        // PL/pgSQL's FOR … IN … LOOP.
        Token::Ident if procedural => tokens.span(at, at + 1).of(text).eq_ignore_ascii_case("loop"),
        _ => false,
    }
}

/// The literal with the body of a function, a procedure or DO, where it is in SQL or PL/pgSQL; true: in SQL.
fn body(tokens: &Tokens, text: &str) -> Option<(usize, bool)> {
    let or_replace = if tokens.kind(1) == Token::Or { 2 } else { 0 };
    let does = tokens.kind(0) == Token::Do;
    let defines =
        tokens.kind(0) == Token::Create && matches!(tokens.kind(1 + or_replace), Token::Function | Token::Procedure);
    if !defines && !does {
        return None;
    }
    let (mut found, mut language) = (None, does.then(|| "plpgsql".to_owned()));
    let mut at = 1;
    while at < tokens.list.len() {
        match (tokens.kind(at), tokens.kind(at + 1)) {
            (Token::Language, next) => {
                let written = tokens.span(at + 1, at + 2).of(text);
                language = Some(match next {
                    Token::Sconst => written.trim_matches('\'').to_ascii_lowercase(),
                    _ => identifier(written),
                });
                at += 1;
            }
            (Token::As, Token::Sconst) if defines => found = Some(at + 1),
            (Token::Sconst, _) if does => found = Some(at),
            _ => {}
        }
        at = tokens.next_flat(at);
    }
    match language.as_deref() {
        Some("sql") => found.map(|at| (at, true)),
        Some("plpgsql") => found.map(|at| (at, false)),
        _ => None,
    }
}

/// What is in a literal, where it stands there as it means.
fn within(literal: &str) -> Option<&str> {
    if let Some(rest) = literal.strip_prefix('$') {
        let tag = rest.find('$')? + 2;
        return literal.get(tag..literal.len().checked_sub(tag)?);
    }
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains(['\'', '\\'])).then_some(inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn filtered(sql: &str) -> String {
        let statement = crate::split(sql).expect(sql).remove(0);
        let mut edits = Edits::new();
        UnionArms::of(&statement).filter(&mut edits);
        edits.apply(&statement.text).unwrap().as_written().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn arms_that_read_all_of_a_relation_have_a_condition() {
        for (sql, expected) in [
            ("SELECT a FROM t UNION SELECT b FROM u", None),
            ("SELECT a FROM t ORDER BY a", None),
            (
                "SELECT a FROM t UNION ALL SELECT b AS union FROM u ORDER BY 1",
                Some("SELECT a FROM t WHERE true UNION ALL SELECT b AS union FROM u WHERE true ORDER BY 1"),
            ),
            (
                "SELECT a FROM t WHERE a > 1 UNION ALL SELECT b FROM u LIMIT 3",
                Some("SELECT a FROM t WHERE a > 1 UNION ALL SELECT b FROM u WHERE true LIMIT 3"),
            ),
            (
                "((SELECT a FROM t)) UNION ALL (SELECT b FROM u ORDER BY 1 LIMIT 2) UNION ALL (TABLE ONLY v)",
                Some(
                    "((SELECT a FROM t WHERE true )) UNION ALL (SELECT b FROM u ORDER BY 1 LIMIT 2) \
                     UNION ALL (SELECT * FROM ONLY v WHERE true )",
                ),
            ),
            (
                "SELECT * FROM (TABLE t UNION ALL VALUES ('x')) s WHERE a IN (SELECT 1 UNION ALL SELECT c FROM v)",
                Some(
                    "SELECT * FROM (SELECT * FROM t WHERE true UNION ALL VALUES ('x')) s \
                     WHERE a IN (SELECT 1 UNION ALL SELECT c FROM v WHERE true )",
                ),
            ),
            (
                "SELECT a FROM t WINDOW w AS (ORDER BY a) UNION ALL SELECT count(*) FROM u GROUP BY b",
                Some(
                    "SELECT a FROM t WHERE true WINDOW w AS (ORDER BY a) \
                     UNION ALL SELECT count(*) FROM u GROUP BY b",
                ),
            ),
            (
                "WITH c AS (SELECT a FROM t UNION ALL SELECT b FROM u) SELECT a FROM c UNION SELECT 1",
                Some(
                    "WITH c AS (SELECT a FROM t WHERE true UNION ALL SELECT b FROM u WHERE true ) \
                     SELECT a FROM c UNION SELECT 1",
                ),
            ),
            (
                "CREATE TABLE x AS TABLE t UNION ALL SELECT b FROM u WITH NO DATA",
                Some("CREATE TABLE x AS SELECT * FROM t WHERE true UNION ALL SELECT b FROM u WHERE true WITH NO DATA"),
            ),
            (
                "CREATE VIEW v AS SELECT a FROM t UNION ALL SELECT b FROM u -- both",
                Some("CREATE VIEW v AS SELECT a FROM t WHERE true UNION ALL SELECT b FROM u WHERE true"),
            ),
            (
                "CREATE OR REPLACE FUNCTION f() RETURNS SETOF text LANGUAGE plpgsql AS $x$ BEGIN \
                 FOR r IN SELECT a FROM t \
                 UNION ALL SELECT b FROM u LOOP SELECT a FROM t UNION ALL TABLE u INTO x; END LOOP; END $x$",
                Some(
                    "CREATE OR REPLACE FUNCTION f() RETURNS SETOF text LANGUAGE plpgsql AS $x$ BEGIN FOR r IN \
                     SELECT a FROM t WHERE true UNION ALL SELECT b FROM u WHERE true LOOP SELECT a FROM t WHERE true \
                     UNION ALL SELECT * FROM u WHERE true INTO x; END LOOP; END $x$",
                ),
            ),
            (
                "CREATE FUNCTION f() RETURNS SETOF text LANGUAGE sql \
                 AS 'SELECT a FROM t UNION ALL SELECT b FROM u -- x'",
                Some(
                    "CREATE FUNCTION f() RETURNS SETOF text LANGUAGE sql AS 'SELECT a FROM t WHERE true \
                     UNION ALL SELECT b FROM u WHERE true -- x'",
                ),
            ),
            ("SELECT 'SELECT a FROM t UNION ALL SELECT b FROM u'", None),
            (
                "CREATE FUNCTION f(x text DEFAULT 'SELECT a FROM t UNION ALL TABLE u') RETURNS text LANGUAGE sql \
                 AS 'SELECT x'",
                None,
            ),
            (
                "CREATE FUNCTION f() RETURNS text LANGUAGE plperl AS $$ return 'SELECT a FROM t UNION ALL TABLE u'; $$",
                None,
            ),
            (
                "SELECT a AS select FROM t UNION ALL SELECT s.select FROM u loop ORDER BY 1",
                Some(
                    "SELECT a AS select FROM t WHERE true UNION ALL SELECT s.select FROM u loop WHERE true ORDER BY 1",
                ),
            ),
            (
                "CREATE OR REPLACE RULE \"_RETURN\" AS ON SELECT TO v DO INSTEAD SELECT a FROM t \
                 UNION ALL SELECT b FROM u",
                Some(
                    "CREATE OR REPLACE RULE \"_RETURN\" AS ON SELECT TO v DO INSTEAD SELECT a FROM t WHERE true \
                     UNION ALL SELECT b FROM u WHERE true",
                ),
            ),
            (
                "DO 'DECLARE x text; BEGIN SELECT a FROM t UNION ALL SELECT b FROM u INTO x WHERE b > 1; END'",
                Some(
                    "DO 'DECLARE x text; BEGIN SELECT a FROM t WHERE true UNION ALL SELECT b FROM u INTO x \
                     WHERE b > 1; END'",
                ),
            ),
        ] {
            assert_eq!(filtered(sql), expected.unwrap_or(sql));
            if expected.is_some() {
                crate::split(&filtered(sql)).expect(sql);
            }
        }
    }
}
