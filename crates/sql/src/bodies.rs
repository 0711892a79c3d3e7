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
    /// Names that WITH gives to queries somewhere in it.
    pub ctes: Vec<String>,
    /// Words behind a dot: `x.f` may be the call `f(x)`.
    pub attributes: Vec<String>,
    /// Words that may be types, or anything else.
    pub words: Vec<String>,
    pub operators: Vec<String>,
}

/// Reads a body that writes nothing: queries in SQL, or PL/pgSQL without EXECUTE and the like.
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
        "plpgsql" => read_plpgsql(&tokens, body, &mut found)?,
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
            } else if is_cte(&tokens, at) {
                found.ctes.push(identifier(written));
            }
            found.words.push(identifier(written));
        } else if written.chars().all(|c| "+-*/<>=~!@#%^&|`?".contains(c)) {
            found.operators.push(written.to_owned());
        }
    }
    Some(found)
}

/// PL/pgSQL by its tokens: the parser takes its expressions and queries only once they are found.
fn read_plpgsql(tokens: &Tokens, body: &str, found: &mut Body) -> Option<()> {
    for at in 0..tokens.list.len() {
        if may_do_anything(tokens, at, body) {
            return None;
        }
        if tokens.kind(at) == Token::From && !is_part_of_expression(tokens, at) {
            read_from(tokens, at + 1, body, found)?;
        }
        if tokens.before(at) == Token::Ascii37 {
            read_type_of(tokens, at, body, found)?;
        }
        if is_called(tokens, at) {
            found.calls.push(name_ending(tokens, at, body));
        }
    }
    Some(())
}

/// A word of PL/pgSQL with which something begins that is neither an expression nor a query.
fn may_do_anything(tokens: &Tokens, at: usize, body: &str) -> bool {
    match tokens.kind(at) {
        Token::Execute | Token::Insert | Token::Update | Token::DeleteP | Token::Merge | Token::Table => true,
        Token::Create | Token::Do => true,
        // The others have UPDATE.
        Token::Share => matches!(tokens.before(at), Token::For | Token::Key),
        Token::Truncate | Token::Copy | Token::Call | Token::Alter | Token::Drop | Token::LockP | Token::Refresh => {
            begins_statement(tokens, at, body)
        }
        Token::Notify | Token::Listen | Token::Unlisten | Token::Set | Token::Reset | Token::Discard | Token::Load => {
            begins_statement(tokens, at, body)
        }
        Token::Commit | Token::Rollback | Token::Grant | Token::Revoke | Token::Comment | Token::ImportP => {
            begins_statement(tokens, at, body)
        }
        Token::Vacuum | Token::Analyze | Token::Analyse | Token::Cluster | Token::Reindex | Token::Checkpoint => {
            begins_statement(tokens, at, body)
        }
        Token::Prepare | Token::Deallocate | Token::Security | Token::Reassign => begins_statement(tokens, at, body),
        _ => false,
    }
}

/// Procedures that a body calls by statements of its own; the last parts of their names. `None`: it may end
/// transactions by itself.
pub fn procedures_called(body: &str, language: &str) -> Option<Vec<String>> {
    match language {
        // It can neither end transactions nor let others do it.
        "sql" => return Some(Vec::new()),
        "plpgsql" => {}
        _ => return (!names_an_end(body)).then(Vec::new),
    }
    let Some(tokens) = Tokens::scan(body) else { return (!names_an_end(body)).then(Vec::new) };
    let mut called = Vec::new();
    for at in (0..tokens.list.len()).filter(|at| begins_statement(&tokens, *at, body)) {
        match tokens.kind(at) {
            Token::Commit | Token::Rollback => return None,
            Token::Call => called.push(name_ending(&tokens, tokens.after_name(at + 1) - 1, body).1),
            Token::Do => {
                let end = (at..tokens.list.len()).find(|at| tokens.kind(*at) == Token::Ascii59);
                let inner = split(tokens.span(at, end.unwrap_or(tokens.list.len())).of(body)).ok()?.pop()?;
                let StatementKind::Do { body, language } = inner.kind else { return None };
                called.extend(procedures_called(&body, language.as_deref().unwrap_or("plpgsql"))?);
            }
            _ => {}
        }
    }
    Some(called)
}

/// Whether a text names a word that ends transactions. ON COMMIT is a clause of temporary tables.
fn names_an_end(body: &str) -> bool {
    let lower = body.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut before = "";
    for word in words {
        if word == "rollback" || word == "commit" && before != "on" {
            return true;
        }
        before = word;
    }
    false
}

/// Elsewhere such a word may be a name: of a variable where it is declared or assigned, or in an expression.
fn begins_statement(tokens: &Tokens, at: usize, body: &str) -> bool {
    let is_assigned =
        matches!(tokens.kind(at + 1), Token::ColonEquals | Token::Ascii61 | Token::Ascii46 | Token::Ascii91);
    let section = (0..at).rev().map(|i| tokens.kind(i)).find(|kind| matches!(kind, Token::Declare | Token::BeginP));
    if is_assigned || section == Some(Token::Declare) {
        return false;
    }
    match tokens.before(at) {
        // A label ends with an operator.
        Token::Nul | Token::Ascii59 | Token::BeginP | Token::Then | Token::Else | Token::Op => true,
        _ => at.checked_sub(1).is_some_and(|before| tokens.span(before, at).of(body).eq_ignore_ascii_case("loop")),
    }
}

/// EXTRACT (… FROM …), IS DISTINCT FROM
fn is_part_of_expression(tokens: &Tokens, from: usize) -> bool {
    let opener = tokens.around(from).map(|(open, _)| tokens.before(open));
    let in_call = matches!(opener, Some(Token::Extract | Token::Substring | Token::Trim | Token::Overlay));
    in_call || tokens.before(from) == Token::Distinct
}

/// The relations of a FROM clause whose first item is at `at`. Where it ends is not certain: what follows a comma there
/// counts as a relation. `None`: its form is not known.
fn read_from(tokens: &Tokens, mut at: usize, body: &str, found: &mut Body) -> Option<()> {
    let mut expects_item = true;
    while at < tokens.list.len() {
        let kind = tokens.kind(at);
        match kind {
            Token::Ascii41 | Token::Ascii93 | Token::Ascii59 => return Some(()),
            Token::LateralP | Token::Only if expects_item => {}
            Token::Ascii40 if expects_item => {
                // A query reads by itself. Joins in brackets do not begin with FROM.
                if !matches!(tokens.kind(at + 1), Token::Select | Token::Values | Token::With) {
                    return None;
                }
                expects_item = false;
                at = tokens.mate(at);
            }
            _ if expects_item && tokens.is_word(at) => {
                let end = tokens.after_name(at);
                if tokens.kind(end) != Token::Ascii40 {
                    found.relations.push(name_ending(tokens, end - 1, body));
                }
                expects_item = false;
                at = end - 1;
            }
            _ if expects_item => return None,
            Token::Ascii40 | Token::Ascii91 => at = tokens.mate(at).max(at),
            Token::Ascii44 | Token::Join => expects_item = true,
            Token::Where | Token::GroupP | Token::Order | Token::Having | Token::Limit | Token::Offset => {
                return Some(());
            }
            Token::Window
            | Token::Into
            | Token::Union
            | Token::Except
            | Token::Intersect
            | Token::Fetch
            | Token::Then => {
                return Some(());
            }
            _ if tokens.span(at, at + 1).of(body).eq_ignore_ascii_case("loop") => return Some(()),
            _ => {}
        }
        at += 1;
    }
    Some(())
}

/// `variable%TYPE` is nothing; `table.column%TYPE` and `table%ROWTYPE` need the table.
fn read_type_of(tokens: &Tokens, at: usize, body: &str, found: &mut Body) -> Option<()> {
    let word = tokens.span(at, at + 1).of(body).to_ascii_lowercase();
    let last = at.checked_sub(2)?;
    match word.as_str() {
        "rowtype" => found.relations.push(name_ending(tokens, last, body)),
        "type" if tokens.before(last) == Token::Ascii46 => {
            found.relations.push(name_ending(tokens, last.checked_sub(2)?, body));
        }
        _ => {}
    }
    Some(())
}

/// The name whose last word is at `at`, with the word before that.
fn name_ending(tokens: &Tokens, at: usize, body: &str) -> (Option<String>, String) {
    let word = |at: usize| identifier(tokens.span(at, at + 1).of(body));
    ((tokens.before(at) == Token::Ascii46 && at > 1).then(|| word(at - 2)), word(at))
}

fn is_called(tokens: &Tokens, at: usize) -> bool {
    let can_be_function = tokens.list.get(at).is_some_and(|token| {
        token.kind == Token::Ident
            || matches!(token.keyword, KeywordKind::UnreservedKeyword | KeywordKind::TypeFuncNameKeyword)
    });
    can_be_function && tokens.kind(at + 1) == Token::Ascii40
}

/// `name AS (SELECT`, `name (columns) AS MATERIALIZED (SELECT`
fn is_cte(tokens: &Tokens, at: usize) -> bool {
    let mut next = at + 1;
    if tokens.kind(next) == Token::Ascii40 {
        next = tokens.mate(next).max(next) + 1;
    }
    if tokens.kind(next) != Token::As {
        return false;
    }
    next += 1;
    while matches!(tokens.kind(next), Token::Not | Token::Materialized) {
        next += 1;
    }
    tokens.kind(next) == Token::Ascii40
        && matches!(tokens.kind(next + 1), Token::Select | Token::Values | Token::With | Token::Ascii40)
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
            ("BEGIN EXECUTE x; END", None),
            ("BEGIN FOR x IN EXECUTE 'SELECT 1' LOOP END LOOP; END", None),
            ("BEGIN SELECT 1 FROM t FOR SHARE; END", None),
            ("BEGIN RETURN (SELECT 1 FROM (t JOIN u ON true)); END", None),
            ("BEGIN RETURN QUERY TABLE t; END", None),
            ("BEGIN PERFORM f(); END", some(&["f"])),
            ("BEGIN <<l>> LOOP SET x.y = 1; END LOOP; END", None),
            ("DECLARE comment text; BEGIN comment := 'a'; RETURN coalesce(comment, copy); END", some(&[])),
            ("BEGIN ANALYZE; END", None),
            ("BEGIN LOOP COMMIT; END LOOP; END", None),
            ("BEGIN UPDATE t SET a = 1; END", None),
        ] {
            assert_eq!(calls(body, "plpgsql"), expected, "{body}");
        }
        assert_eq!(calls("return 1", "plpython3u"), None);
    }

    #[test]
    fn what_ends_transactions_is_told_from_its_words() {
        let some = |names: &[&str]| Some(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        for (body, expected) in [
            ("BEGIN COMMIT; END", None),
            ("BEGIN IF a THEN ROLLBACK; END IF; END", None),
            ("<<o>> BEGIN LOOP <<i>> COMMIT AND CHAIN; END LOOP; END", None),
            ("BEGIN -- commit\n PERFORM 1; /* rollback; */ commit /* x */; END", None),
            ("BEGIN -- commit\n INSERT INTO t VALUES ('; rollback;'); END", some(&[])),
            ("DECLARE a int; rollback int := 1; BEGIN SELECT commit, t.rollback INTO rollback FROM t; END", some(&[])),
            ("BEGIN CREATE TEMP TABLE x (a int) ON COMMIT DROP; commit := 1; END", some(&[])),
            ("BEGIN CALL s.\"P\"(1); IF a THEN CALL q; END IF; END", some(&["P", "q"])),
            ("BEGIN DO $x$ BEGIN CALL p(); END $x$ LANGUAGE plpgsql; DO 'BEGIN PERFORM 1; END'; END", some(&["p"])),
            ("BEGIN DO $x$ BEGIN COMMIT; END $x$; END", None),
        ] {
            assert_eq!(procedures_called(body, "plpgsql"), expected, "{body}");
        }
        assert_eq!(procedures_called("plpy.commit()", "plpython3u"), None);
        assert_eq!(procedures_called("SELECT commit FROM t", "sql"), some(&[]));
    }

    #[test]
    fn from_names_relations_and_not_functions() {
        let relations = |body: &str| {
            let named = |(schema, name): (Option<String>, String)| match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name,
            };
            Some(read_body(body, "plpgsql")?.relations.into_iter().map(named).collect::<Vec<_>>())
        };
        for (body, expected) in [
            ("BEGIN RETURN (SELECT 1 FROM t); END", &["t"][..]),
            ("BEGIN PERFORM 1 FROM s.t; END", &["s.t"]),
            ("BEGIN x := count(*) FROM t, s.u a JOIN LATERAL v ON true WHERE a, b; END", &["t", "s.u", "v"]),
            ("BEGIN SELECT sum(x) INTO s FROM unnest(a) x, generate_series(1, 2) g; RETURN s; END", &[]),
            ("BEGIN FOR r IN SELECT * FROM regexp_split_to_table(a, ',') LOOP RAISE NOTICE 'x', y; END LOOP; END", &[]),
            ("BEGIN RETURN (SELECT 1 FROM (SELECT 2 FROM t) x, (VALUES (1)) y); END", &["t"]),
            ("BEGIN RETURN (WITH c AS (SELECT 1) SELECT * FROM c); END", &["c"]),
            ("DECLARE a t.c%TYPE; b s.t%ROWTYPE; d a%TYPE; BEGIN RETURN a % b; END", &["t", "s.t"]),
            ("BEGIN RETURN substring(a FROM 2) IS DISTINCT FROM trim(both 'x' FROM b); END", &[]),
        ] {
            assert_eq!(relations(body), Some(expected.iter().map(|r| (*r).to_owned()).collect()), "{body}");
        }
        let ctes = |body: &str| read_body(body, "sql").unwrap_or_default().ctes;
        assert_eq!(
            ctes("WITH c AS (SELECT 1), d (x) AS NOT MATERIALIZED (VALUES (1)) SELECT 1 FROM f() AS (a int)"),
            ["c", "d"]
        );
    }
}
