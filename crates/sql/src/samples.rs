//! TABLESAMPLE in texts that are no statements of their own: bodies of functions and DO blocks, and what they hand to
//! EXECUTE. They are read as tokens: PL/pgSQL has words around its statements that the parser does not know.

use pg_query::protobuf::Token;

use crate::alter::identifier;
use crate::ast::Span;
use crate::kind::Name;
use crate::tokens::Tokens;
use crate::walk::SYSTEM_COLUMNS;

/// A table of which a text takes a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// `ONLY name *`, whatever of it there is.
    pub relation: Span,
    /// The name as it is written.
    pub written: Span,
    pub name: Name,
    pub only: bool,
    pub aliased: bool,
    /// From the word to the end.
    pub clause: Span,
    /// SYSTEM or BERNOULLI.
    pub by_share: bool,
    /// The statement may name system columns, or columns with this table's schema.
    pub names_physical_rows: bool,
}

/// All of them in a text, and those in the brackets of a clause after the clause's own. `None`: the text is not
/// understood.
pub fn samplings(text: &str) -> Option<Vec<Sampling>> {
    let tokens = Tokens::scan(text)?;
    let words = (0..tokens.list.len()).filter(|at| tokens.kind(*at) == Token::Tablesample);
    words.filter(|at| is_clause(&tokens, *at)).map(|at| sampling(text, &tokens, at)).collect()
}

/// A table that a text reads or changes without those that inherit from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlyNamed {
    /// From the word to the end of the name.
    pub relation: Span,
    /// The name as it is written.
    pub written: Span,
    pub name: Name,
}

/// Where a text reads `ONLY t`, updates or deletes from it; not where it defines. `None`: the text is not understood.
pub fn only_named(text: &str) -> Option<Vec<OnlyNamed>> {
    let tokens = Tokens::scan(text)?;
    let mut found = Vec::new();
    for at in (1..tokens.list.len()).filter(|at| tokens.kind(*at) == Token::Only) {
        let reads = match tokens.before(at) {
            // ALTER TABLE ONLY, TRUNCATE TABLE ONLY, LOCK TABLE ONLY
            Token::Table => {
                let before = if at > 1 { tokens.kind(at - 2) } else { Token::Nul };
                !matches!(before, Token::Alter | Token::Truncate | Token::LockP)
            }
            Token::Update | Token::Into => true,
            _ => leads_in(&tokens, at - 1),
        };
        let in_brackets = tokens.kind(at + 1) == Token::Ascii40;
        let first = if in_brackets { at + 2 } else { at + 1 };
        if !reads || !tokens.is_word(first) {
            continue;
        }
        let last = tokens.after_name(first);
        if in_brackets && tokens.kind(last) != Token::Ascii41 {
            continue;
        }
        if tokens.kind(first) == Token::Uident {
            return None;
        }
        let part = |at: usize| identifier(tokens.span(at, at + 1).of(text));
        let name = Name { schema: (last > first + 1).then(|| part(last - 3)), name: part(last - 1) };
        found.push(OnlyNamed {
            relation: tokens.span(at, if in_brackets { last + 1 } else { last }),
            written: tokens.span(first, last),
            name,
        });
    }
    Some(found)
}

/// Some string of a text has a word in it.
pub fn strings_have_word(text: &str, word: &str) -> bool {
    let Some(tokens) = Tokens::scan(text) else { return true };
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let strings = (0..tokens.list.len()).filter(|at| matches!(tokens.kind(*at), Token::Sconst | Token::Usconst));
    strings
        .map(|at| tokens.span(at, at + 1))
        .any(|string| string.of(text).split(|c| !is_letter(c)).any(|found| found.eq_ignore_ascii_case(word)))
}

/// The word may be a name, too.
fn is_clause(tokens: &Tokens, at: usize) -> bool {
    tokens.is_word(at + 1) && tokens.kind(tokens.after_name(at + 1)) == Token::Ascii40
}

fn sampling(text: &str, tokens: &Tokens, at: usize) -> Option<Sampling> {
    let clause = tokens.sample_clause(tokens.start_of(at))?;
    let (relation_end, aliased) = alias_before(tokens, at)?;
    let (from, name_from, name_to) = relation_before(tokens, relation_end)?;
    let part = |at: usize| identifier(tokens.span(at, at + 1).of(text));
    let name = Name { schema: (name_to > name_from + 1).then(|| part(name_to - 3)), name: part(name_to - 1) };
    let method = tokens.span(at + 1, tokens.after_name(at + 1)).of(text);
    let method = method.rsplit('.').next().map(|m| identifier(m.trim())).unwrap_or_default();
    Some(Sampling {
        relation: tokens.span(from, relation_end),
        written: tokens.span(name_from, name_to),
        only: tokens.kind(from) == Token::Only,
        aliased,
        clause,
        by_share: matches!(method.as_str(), "system" | "bernoulli"),
        names_physical_rows: names_physical_rows(text, tokens, at, &name.name),
        name,
    })
}

/// Where the relation ends before which stand an alias and its columns, if there are any, and `at`.
fn alias_before(tokens: &Tokens, at: usize) -> Option<(usize, bool)> {
    let mut last = at.checked_sub(1)?;
    if tokens.kind(last) == Token::Ascii41 {
        let open = tokens.mate(last);
        if tokens.before(open) == Token::Only {
            return Some((at, false));
        }
        last = open.checked_sub(1)?;
        return Some((before_alias(tokens, last)?, true));
    }
    if tokens.kind(last) == Token::Ascii42 || !tokens.is_word(last) {
        return Some((at, false));
    }
    let is_alias = match tokens.before(last) {
        Token::As | Token::Ascii42 | Token::Ascii41 => true,
        Token::Ascii46 => false,
        _ => last > 0 && tokens.is_word(last - 1) && !leads_in(tokens, last - 1) && tokens.before(last) != Token::Only,
    };
    match is_alias {
        true => Some((before_alias(tokens, last)?, true)),
        false => Some((at, false)),
    }
}

fn before_alias(tokens: &Tokens, alias: usize) -> Option<usize> {
    if !tokens.is_word(alias) {
        return None;
    }
    match tokens.before(alias) {
        Token::As => alias.checked_sub(1),
        _ => Some(alias),
    }
}

/// Where a relation begins that ends before `end`, and where its name begins and ends.
fn relation_before(tokens: &Tokens, end: usize) -> Option<(usize, usize, usize)> {
    let mut last = end.checked_sub(1)?;
    if tokens.kind(last) == Token::Ascii42 {
        last = last.checked_sub(1)?;
    }
    let in_brackets = tokens.kind(last) == Token::Ascii41;
    if in_brackets {
        last = last.checked_sub(1)?;
    }
    let mut first = last;
    while tokens.before(first) == Token::Ascii46 {
        first = first.checked_sub(2)?;
    }
    let plain = |at: usize| tokens.is_word(at) && tokens.kind(at) != Token::Uident;
    if !(first..=last).step_by(2).all(plain) {
        return None;
    }
    let mut from = first;
    if in_brackets {
        from = from.checked_sub(1)?;
        if tokens.kind(from) != Token::Ascii40 || tokens.before(from) != Token::Only {
            return None;
        }
    }
    if tokens.before(from) == Token::Only {
        from = from.checked_sub(1)?;
    }
    leads_in(tokens, from.checked_sub(1)?).then_some((from, first, last + 1))
}

/// What stands before a relation in FROM.
fn leads_in(tokens: &Tokens, at: usize) -> bool {
    matches!(tokens.kind(at), Token::From | Token::Join | Token::Using | Token::Ascii44 | Token::Ascii40)
}

fn names_physical_rows(text: &str, tokens: &Tokens, at: usize, table: &str) -> bool {
    let ends = |at: &usize| tokens.kind(*at) == Token::Ascii59;
    let from = (0..at).rev().find(ends).map_or(0, |at| at + 1);
    let to = (at..tokens.list.len()).find(ends).unwrap_or(tokens.list.len());
    (from..to).any(|i| {
        let word = || identifier(tokens.span(i, i + 1).of(text));
        let is_qualified = || tokens.before(i) == Token::Ascii46 && tokens.kind(i + 1) == Token::Ascii46;
        tokens.is_word(i) && (SYSTEM_COLUMNS.contains(&word().as_str()) || is_qualified() && word() == table)
    })
}

/// The expressions in a PL/pgSQL body that give EXECUTE its text.
pub fn executed_texts(body: &str) -> Option<Vec<Span>> {
    let tokens = Tokens::scan(body)?;
    let word = |at: usize| tokens.span(at, at + 1).of(body).to_lowercase();
    let mut found = Vec::new();
    for at in (0..tokens.list.len()).filter(|at| tokens.kind(*at) == Token::Execute) {
        // GRANT and CREATE TRIGGER have the word, too.
        let begins = match at.checked_sub(1).map(word) {
            None => true,
            Some(before) => {
                ["begin", "then", "else", "loop", "in", "query", "for", ";", ">>"].contains(&before.as_str())
            }
        };
        if !begins || tokens.kind(at + 1) == Token::On {
            continue;
        }
        let mut end = at + 1;
        while end < tokens.list.len() && !["into", "using", "loop", ";"].contains(&word(end).as_str()) {
            end = tokens.next_flat(end);
        }
        if end > at + 1 {
            found.push(tokens.span(at + 1, end.min(tokens.list.len())));
        }
    }
    Some(found)
}

/// The literals of a DO statement, and what is in them; `None` in place of that: it is not known. Of other texts none.
pub fn do_literals(text: &str) -> Vec<(Span, Option<String>)> {
    let Some(tokens) = Tokens::scan(text) else { return Vec::new() };
    if tokens.kind(0) != Token::Do {
        return Vec::new();
    }
    let literals = (1..tokens.list.len()).filter(|at| matches!(tokens.kind(*at), Token::Sconst | Token::Usconst));
    let spans = literals.map(|at| tokens.span(at, at + 1));
    spans.map(|span| (span, within(span.of(text)))).collect()
}

fn within(literal: &str) -> Option<String> {
    if let Some(rest) = literal.strip_prefix('$') {
        let tag = &literal[..rest.find('$')? + 2];
        return literal.get(tag.len()..literal.len().checked_sub(tag.len())?).map(str::to_owned);
    }
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    // Pieces of one literal may stand on several lines.
    (!inner.replace("''", "").contains('\'')).then(|| inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String, bool, bool)> {
        let of = |s: &Sampling| {
            let schema = s.name.schema.as_ref().map_or(String::new(), |schema| format!("{schema}."));
            (s.relation.of(text).to_owned(), format!("{schema}{}", s.name.name), s.aliased, s.only)
        };
        samplings(text).unwrap_or_default().iter().map(of).collect()
    }

    #[test]
    fn tables_of_samples_are_found() {
        let one =
            |relation: &str, name: &str, aliased, only| vec![(relation.to_owned(), name.to_owned(), aliased, only)];
        for (text, expected) in [
            ("BEGIN n := (SELECT 1 FROM users TABLESAMPLE SYSTEM (1)); END", one("users", "users", false, false)),
            ("FROM a, users AS u (x, y) tablesample bernoulli (1)", one("users", "users", true, false)),
            ("FROM a JOIN public.\"Us\" u TABLESAMPLE s.m (f(1)) ON 1", one("public.\"Us\"", "public.Us", true, false)),
            ("FROM ONLY (users) u TABLESAMPLE SYSTEM (1)", one("ONLY (users)", "users", true, true)),
            ("FROM ONLY (users) TABLESAMPLE SYSTEM (1)", one("ONLY (users)", "users", false, true)),
            ("FROM ONLY USERS TABLESAMPLE SYSTEM (1)", one("ONLY USERS", "users", false, true)),
            ("FROM (users * TABLESAMPLE SYSTEM (1) JOIN b ON c)", one("users *", "users", false, false)),
            ("FROM users * u TABLESAMPLE SYSTEM (1)", one("users *", "users", true, false)),
            ("FROM users u (x) TABLESAMPLE SYSTEM (1)", one("users", "users", true, false)),
            ("FROM /* a */ users -- b\n TABLESAMPLE SYSTEM (1)", one("users", "users", false, false)),
            ("SELECT t.tablesample, 'users TABLESAMPLE SYSTEM (1)'", Vec::new()),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        for text in ["FROM U&\"users\" TABLESAMPLE SYSTEM (1)", "FROM f() TABLESAMPLE SYSTEM (1)", "x 'y"] {
            assert_eq!(samplings(text), None, "{text}");
        }
    }

    #[test]
    fn tables_without_children_are_found() {
        for (text, expected) in [
            ("SELECT 1 FROM ONLY t, ONLY (s.u) x JOIN ONLY v ON 1", &["t", "s.u", "v"][..]),
            ("BEGIN UPDATE ONLY t SET a = 1; DELETE FROM ONLY t; RETURN QUERY TABLE ONLY t; END", &["t", "t", "t"]),
            ("ALTER TABLE ONLY t ADD b int; TRUNCATE TABLE ONLY t; SELECT 1 FROM t FETCH FIRST ROW ONLY", &[]),
        ] {
            let found = only_named(text).unwrap_or_default();
            assert_eq!(found.iter().map(|o| o.written.of(text)).collect::<Vec<_>>(), expected, "{text}");
        }
        assert!(strings_have_word("EXECUTE 'FROM ONLY t'", "only"));
        assert!(!strings_have_word("FROM ONLY t; 'x'", "only"));
    }

    #[test]
    fn physical_rows_are_seen_in_the_same_statement() {
        let physical = |text: &str| samplings(text).unwrap_or_default().iter().map(|s| s.names_physical_rows).collect();
        let none: Vec<bool> = physical("SELECT ctid FROM a; SELECT x.users FROM users TABLESAMPLE SYSTEM (1);");
        assert_eq!(none, [false]);
        assert_eq!(physical("SELECT CTID FROM users TABLESAMPLE SYSTEM (1)"), [true]);
        assert_eq!(physical("SELECT public.users.id FROM users TABLESAMPLE SYSTEM (1)"), [true]);
    }

    #[test]
    fn texts_of_execute_are_found() {
        let body = "BEGIN EXECUTE 'a' || f(x INTO y) INTO n USING z; FOR r IN EXECUTE q LOOP RETURN QUERY EXECUTE (p); \
                    END LOOP; GRANT EXECUTE ON FUNCTION f TO u; OPEN c FOR EXECUTE w USING 1; END";
        let texts: Vec<&str> = executed_texts(body).unwrap_or_default().iter().map(|s| s.of(body)).collect();
        assert_eq!(texts, ["'a' || f(x INTO y)", "q", "(p)", "w"]);
    }

    #[test]
    fn literals_of_do_are_read() {
        let read = |text: &str| do_literals(text).into_iter().map(|(_, body)| body).collect::<Vec<_>>();
        assert_eq!(read("DO $a$ x $$ $a$ LANGUAGE 'plpgsql'"), [Some(" x $$ ".to_owned()), Some("plpgsql".to_owned())]);
        assert_eq!(read("DO 'it''s'"), [Some("it's".to_owned())]);
        assert_eq!(read("DO E'x'"), [None]);
        assert_eq!(read("SELECT 'x'"), []);
    }
}
