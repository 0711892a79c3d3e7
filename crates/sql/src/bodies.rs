//! What a function's body may read: for what runs on a worker and must find the same there.

use pg_query::protobuf::{KeywordKind, Token};

use crate::alter::identifier;
use crate::kind::StatementKind;
use crate::statement::split;
use crate::tokens::Tokens;

/// What a body names. Where something is a name only sometimes, it counts as one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Functions, `(schema, name)`.
    pub calls: Vec<(Option<String>, String)>,
    /// Relations, CTEs among them.
    pub relations: Vec<(Option<String>, String)>,
    /// Words behind a dot: `x.f` may be the call `f(x)`.
    pub attributes: Vec<String>,
    /// Words that may be types, or anything else.
    pub words: Vec<String>,
    pub operators: Vec<String>,
}

/// Reads a body that writes nothing: queries in SQL, or PL/pgSQL without any statement that may read or write.
/// `None`: it may do anything.
pub fn read_body(body: &str, language: &str) -> Option<Body> {
    let tokens = Tokens::scan(body)?;
    let mut found = Body::default();
    match language {
        "sql" => {
            for statement in split(body).ok()? {
                let reads = matches!(statement.kind, StatementKind::Select);
                if !reads || statement.has_modifying || statement.locks_rows {
                    return None;
                }
                found.calls.extend(statement.calls);
                found.relations.extend(statement.relations.into_iter().map(|r| (r.schema, r.name)));
            }
        }
        "plpgsql" => {
            if (0..tokens.list.len()).any(|at| may_read(&tokens, at, body)) {
                return None;
            }
            for at in (0..tokens.list.len()).filter(|at| is_called(&tokens, *at)) {
                let name = |at: usize| identifier(tokens.span(at, at + 1).of(body));
                let schema = (tokens.before(at) == Token::Ascii46 && at > 1).then(|| name(at - 2));
                found.calls.push((schema, name(at)));
            }
        }
        _ => return None,
    }
    for at in 0..tokens.list.len() {
        let written = tokens.span(at, at + 1).of(body);
        if matches!(tokens.kind(at), Token::Uident | Token::Uescape) {
            return None;
        }
        if tokens.is_word(at) {
            if tokens.before(at) == Token::Ascii46 {
                found.attributes.push(identifier(written));
            }
            found.words.push(identifier(written));
        } else if written.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c)) {
            found.operators.push(written.to_owned());
        }
    }
    Some(found)
}

/// A word of PL/pgSQL with which something begins that is no expression.
fn may_read(tokens: &Tokens, at: usize, body: &str) -> bool {
    match tokens.kind(at) {
        // EXTRACT (… FROM …), IS DISTINCT FROM
        Token::From => {
            let opener = tokens.around(at).map(|(open, _)| tokens.before(open));
            let in_call = matches!(opener, Some(Token::Extract | Token::Substring | Token::Trim | Token::Overlay));
            !in_call && tokens.before(at) != Token::Distinct
        }
        Token::Execute | Token::Insert | Token::Update | Token::DeleteP | Token::Merge | Token::Table => true,
        Token::Truncate | Token::Copy | Token::Call | Token::Create | Token::Alter | Token::Drop | Token::LockP => true,
        Token::Refresh | Token::Notify | Token::Listen | Token::Do | Token::Commit | Token::Rollback => true,
        // table%ROWTYPE, column%TYPE
        _ if tokens.before(at) == Token::Ascii37 => {
            let word = tokens.span(at, at + 1).of(body).to_ascii_lowercase();
            matches!(word.as_str(), "rowtype" | "type")
        }
        _ => false,
    }
}

fn is_called(tokens: &Tokens, at: usize) -> bool {
    let can_be_function = tokens.list.get(at).is_some_and(|token| {
        token.kind == Token::Ident
            || matches!(token.keyword, KeywordKind::UnreservedKeyword | KeywordKind::TypeFuncNameKeyword)
    });
    can_be_function && tokens.kind(at + 1) == Token::Ascii40
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(body: &str, language: &str) -> Option<Vec<String>> {
        let named = |(schema, name): (Option<String>, String)| match schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name,
        };
        Some(read_body(body, language)?.calls.into_iter().map(named).collect())
    }

    #[test]
    fn what_may_read_is_not_read() {
        let some = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        for (body, expected) in [
            ("SELECT lower(current_setting('a.b'))", some(&["current_setting", "lower"])),
            ("SELECT s.f(1) FROM public.t", some(&["s.f"])),
            ("INSERT INTO t VALUES (1)", None),
            ("SELECT 1 FROM t FOR UPDATE", None),
            ("not sql", None),
        ] {
            assert_eq!(calls(body, "sql"), expected, "{body}");
        }
        for (body, expected) in [
            ("BEGIN RETURN s.f(x) AND y = upper('a'); END", some(&["s.f", "upper"])),
            ("BEGIN RETURN extract(year FROM x) IS DISTINCT FROM 1; END", some(&[])),
            ("BEGIN RETURN (SELECT 1 FROM t); END", None),
            ("BEGIN EXECUTE x; END", None),
            ("DECLARE r public.t%ROWTYPE; BEGIN RETURN 1; END", None),
            ("BEGIN RETURN QUERY TABLE t; END", None),
            ("BEGIN PERFORM f(); END", some(&["f"])),
            ("BEGIN PERFORM 1 FROM t; END", None),
            ("BEGIN UPDATE t SET a = 1; END", None),
        ] {
            assert_eq!(calls(body, "plpgsql"), expected, "{body}");
        }
        assert_eq!(calls("return 1", "plpython3u"), None);
    }
}
