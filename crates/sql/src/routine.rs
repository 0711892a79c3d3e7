//! What a function's body is made of: each query and expression in it, as a statement with its place. Of PL/pgSQL
//! whatever is not read here to its end makes the whole body unknown, so that nothing in it is overlooked.
//! Follows src/pl/plpgsql/src/pl_gram.y.

use pg_query::protobuf::Token;

use crate::alter::identifier;
use crate::ast::Span;
use crate::statement::{Statement, split};
use crate::tokens::Tokens;

/// Blocks and loops inside one another.
const DEPTH_MAX: usize = 64;

/// A body that was read to its end.
#[derive(Debug, Clone, Default)]
pub struct RoutineBody {
    pub pieces: Vec<Piece>,
    pub variables: Vec<Variable>,
    /// Variables that get values, arguments among them, with what qualifies them and fields.
    pub assigned: Vec<Vec<String>>,
    /// Labels of blocks and loops, by which variables may be qualified.
    pub labels: Vec<String>,
    /// A handler may catch what only comes of waiting for others.
    pub catches_waiting: bool,
}

/// A query or an expression of a body; expressions with SELECT in front.
#[derive(Debug, Clone)]
pub struct Piece {
    pub statement: Statement,
    /// Where the statement's text would begin in the body.
    pub start: usize,
    /// A whole query, not an expression.
    pub is_query: bool,
}

/// What DECLARE or a loop makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// As written; none: a loop's number.
    pub type_name: Option<String>,
}

/// The calls of a built-in function in a body, as they are written and with what stands between the brackets.
pub fn calls_in_body(body: &str, function: &str) -> Vec<(Span, Span)> {
    let Some(tokens) = Tokens::scan(body) else { return Vec::new() };
    let list = &tokens.list;
    let text = |at: usize| list.get(at).map_or("", |tok| &body[tok.start..tok.end]);
    let is_call = |at: usize| text(at).eq_ignore_ascii_case(function) && text(at + 1) == "(";
    let calls = (0..list.len()).filter(|at| is_call(*at)).filter_map(|at| {
        let first = match at.checked_sub(1).map(text) {
            Some(".") if at > 1 && text(at - 2).eq_ignore_ascii_case("pg_catalog") => at - 2,
            Some(".") => return None,
            _ => at,
        };
        let (open, close) = (list.get(at + 1)?, list.get(list.get(at + 1)?.mate as usize)?);
        (close.start >= open.end).then(|| (Span::new(list[first].start, close.end), Span::new(open.end, close.start)))
    });
    calls.collect()
}

/// Reads a body; the reason where it is not known what it does.
pub fn read_routine(body: &str, language: &str) -> Result<RoutineBody, String> {
    match language {
        "sql" => {
            let statements = split(body).map_err(|error| error.message)?;
            if statements.is_empty() {
                return Err("the body is empty".to_owned());
            }
            let piece = |statement: Statement| Piece { start: statement.offset, statement, is_query: true };
            Ok(RoutineBody { pieces: statements.into_iter().map(piece).collect(), ..RoutineBody::default() })
        }
        "plpgsql" => {
            let tokens = Tokens::scan(body).ok_or("the body cannot be scanned")?;
            let mut reader = Reader { body, tokens, at: 0, depth: 0, found: RoutineBody::default() };
            reader.body()?;
            Ok(reader.found)
        }
        other => Err(format!("the language is {other}")),
    }
}

struct Reader<'a> {
    body: &'a str,
    tokens: Tokens,
    at: usize,
    depth: usize,
    found: RoutineBody,
}

type Read<T = ()> = Result<T, String>;

/// Conditions of errors that come of locks, limits of time and cancels, and those of which these are a part.
const WAITING: [&str; 14] = [
    "others",
    "transaction_rollback",
    "serialization_failure",
    "deadlock_detected",
    "transaction_integrity_constraint_violation",
    "statement_completion_unknown",
    "object_not_in_prerequisite_state",
    "object_in_use",
    "lock_not_available",
    "operator_intervention",
    "query_canceled",
    "admin_shutdown",
    "crash_shutdown",
    "cannot_connect_now",
];

impl Reader<'_> {
    fn kind(&self) -> Token {
        self.tokens.kind(self.at)
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.span(at, at + 1).of(self.body)
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        self.text(at).eq_ignore_ascii_case(word)
    }

    fn is(&self, word: &str) -> bool {
        self.is_word(self.at, word)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Passes the word, if it is there.
    fn pass(&mut self, word: &str) -> bool {
        let is_there = self.is(word);
        self.at += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, word: &str) -> Read {
        match self.pass(word) {
            true => Ok(()),
            false => Err(self.unknown()),
        }
    }

    fn unknown(&self) -> String {
        match self.text(self.at) {
            "" => "the body ends too early".to_owned(),
            word => format!("its part at \"{word}\" is not understood"),
        }
    }

    fn name(&mut self) -> Read<String> {
        if !self.tokens.is_word(self.at) || self.kind() == Token::Uident {
            return Err(self.unknown());
        }
        self.at += 1;
        Ok(identifier(self.text(self.at - 1)))
    }

    fn body(&mut self) -> Read {
        self.label()?;
        self.block()?;
        self.pass(";");
        match self.at == self.tokens.list.len() {
            true => Ok(()),
            false => Err(self.unknown()),
        }
    }

    /// `<<name>>`
    fn label(&mut self) -> Read {
        if self.pass("<<") {
            let name = self.name()?;
            self.found.labels.push(name);
            self.expect(">>")?;
        }
        Ok(())
    }

    fn block(&mut self) -> Read {
        if self.pass("declare") {
            while !self.is("begin") {
                if !self.pass("declare") {
                    self.declaration()?;
                }
            }
        }
        self.expect("begin")?;
        self.statements(&["exception", "end"])?;
        if self.pass("exception") {
            while self.pass("when") {
                while !self.is("then") {
                    let passes = self.tokens.is_word(self.at) || self.kind() == Token::Sconst;
                    if !passes {
                        return Err(self.unknown());
                    }
                    let code = self.text(self.at).trim_start_matches(['E', 'e']).trim_matches('\'');
                    let is_code =
                        self.kind() == Token::Sconst && ["40", "55", "57"].iter().any(|c| code.starts_with(c));
                    self.found.catches_waiting |= is_code || self.is_any(&WAITING);
                    self.at += 1;
                }
                self.expect("then")?;
                self.statements(&["when", "end"])?;
            }
        }
        self.expect("end")?;
        self.end_label()
    }

    fn end_label(&mut self) -> Read {
        if self.tokens.is_word(self.at) {
            self.name()?;
        }
        Ok(())
    }

    fn declaration(&mut self) -> Read {
        let name = self.name()?;
        self.pass("constant");
        if self.is_any(&["alias", "cursor", "scroll", "no"]) {
            return Err(format!("\"{name}\" is no plain variable"));
        }
        let from = self.at;
        while !self.is_any(&[";", ":=", "=", "default", "not", "collate", ""]) {
            self.at = self.tokens.next_flat(self.at);
        }
        let type_name = self.tokens.span(from, self.at).of(self.body).to_owned();
        if self.pass("not") {
            self.expect("null")?;
        }
        if self.pass(":=") || self.pass("=") || self.pass("default") {
            self.expression(&[";"])?;
        }
        self.expect(";")?;
        self.found.variables.push(Variable { name, type_name: Some(type_name) });
        Ok(())
    }

    /// Statements up to one of the words, which may not begin one.
    fn statements(&mut self, ends: &[&str]) -> Read {
        if self.depth == DEPTH_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        self.depth += 1;
        while !self.is_any(ends) {
            self.statement()?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn statement(&mut self) -> Read {
        if self.is_assignment() {
            return self.assignment();
        }
        self.label()?;
        let word = self.text(self.at).to_ascii_lowercase();
        match word.as_str() {
            "declare" | "begin" => self.block()?,
            "if" => return self.conditional(),
            "case" => return self.case(),
            "loop" | "while" | "for" | "foreach" => return self.repetition(),
            "exit" | "continue" => {
                self.at += 1;
                if !self.is_any(&["when", ";"]) {
                    self.name()?;
                }
                if self.pass("when") {
                    self.expression(&[";"])?;
                }
            }
            "return" => self.returned()?,
            "raise" => self.raise()?,
            "assert" => {
                self.at += 1;
                self.expressions(&[";"])?;
            }
            "null" => self.at += 1,
            "get" => self.diagnostics()?,
            "perform" => {
                let from = self.at;
                self.to(&[";"]);
                // As long as the word that it stands for.
                let span = self.tokens.span(from, self.at);
                let text = format!("SELECT {}", &span.of(self.body)["perform".len()..]);
                self.piece(text, span.start, true)?;
            }
            "select" | "insert" | "update" | "delete" | "with" | "merge" => self.query(&[";"])?,
            _ => return Err(self.unknown()),
        }
        self.expect(";")
    }

    /// `name := …`, `name[1].field = …`
    fn is_assignment(&self) -> bool {
        if !self.tokens.is_word(self.at) {
            return false;
        }
        let mut at = self.tokens.after_name(self.at);
        while self.tokens.kind(at) == Token::Ascii91 {
            at = self.tokens.next_flat(at);
            if self.tokens.kind(at) == Token::Ascii46 {
                at = self.tokens.after_name(at + 1);
            }
        }
        matches!(self.tokens.kind(at), Token::ColonEquals | Token::Ascii61)
    }

    fn assignment(&mut self) -> Read {
        let mut target = vec![self.name()?];
        while !self.is_any(&[":=", "="]) {
            if self.tokens.is_word(self.at) {
                target.push(identifier(self.text(self.at)));
            }
            if self.kind() == Token::Ascii91 {
                let (from, to) = (self.at + 1, self.tokens.mate(self.at));
                // A slice has two.
                if (from..to).any(|at| self.tokens.kind(at) == Token::Ascii58) {
                    return Err("a slice of an array is assigned".to_owned());
                }
                self.expression_in(self.tokens.span(from, to))?;
            }
            self.at = self.tokens.next_flat(self.at);
        }
        self.found.assigned.push(target);
        self.at += 1;
        self.expression(&[";"])?;
        self.expect(";")
    }

    fn conditional(&mut self) -> Read {
        self.at += 1;
        self.expression(&["then"])?;
        self.expect("then")?;
        const ENDS: &[&str] = &["elsif", "elseif", "else", "end"];
        self.statements(ENDS)?;
        while self.pass("elsif") || self.pass("elseif") {
            self.expression(&["then"])?;
            self.expect("then")?;
            self.statements(ENDS)?;
        }
        if self.pass("else") {
            self.statements(&["end"])?;
        }
        ["end", "if", ";"].iter().try_for_each(|word| self.expect(word))
    }

    fn case(&mut self) -> Read {
        self.at += 1;
        if !self.is("when") {
            self.expression(&["when"])?;
        }
        while self.pass("when") {
            self.expression(&["then"])?;
            self.expect("then")?;
            self.statements(&["when", "else", "end"])?;
        }
        if self.pass("else") {
            self.statements(&["end"])?;
        }
        ["end", "case", ";"].iter().try_for_each(|word| self.expect(word))
    }

    fn repetition(&mut self) -> Read {
        match self.text(self.at).to_ascii_lowercase().as_str() {
            "while" => {
                self.at += 1;
                self.expression(&["loop"])?;
            }
            "for" => {
                self.at += 1;
                self.loop_head()?;
            }
            "foreach" => {
                self.at += 1;
                let mut targets = self.targets()?;
                self.found.assigned.append(&mut targets);
                if self.pass("slice") {
                    self.at += 1;
                }
                self.expect("in")?;
                self.expect("array")?;
                self.expression(&["loop"])?;
            }
            _ => {}
        }
        self.expect("loop")?;
        self.statements(&["end"])?;
        self.expect("end")?;
        self.expect("loop")?;
        self.end_label()?;
        self.expect(";")
    }

    fn loop_head(&mut self) -> Read {
        let targets = self.targets()?;
        self.expect("in")?;
        let begin = self.at;
        self.to(&["loop"]);
        let end = self.at;
        self.at = begin;
        let mut at = begin;
        while at < end && self.tokens.kind(at) != Token::DotDot {
            at = self.tokens.next_flat(at);
        }
        if at < end {
            let [[name]] = targets.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] else {
                return Err(self.unknown());
            };
            self.found.variables.push(Variable { name: name.clone(), type_name: None });
            self.pass("reverse");
            self.expression(&[".."])?;
            self.expect("..")?;
            self.expression(&["by", "loop"])?;
            if self.pass("by") {
                self.expression(&["loop"])?;
            }
            return Ok(());
        }
        self.found.assigned.extend(targets);
        match self.is_any(&["select", "with", "insert", "update", "delete", "merge", "values"]) {
            true => self.query(&["loop"]),
            false => Err(self.unknown()),
        }
    }

    /// Variables that get values.
    fn targets(&mut self) -> Read<Vec<Vec<String>>> {
        let mut targets = Vec::new();
        loop {
            let mut target = vec![self.name()?];
            while self.pass(".") {
                target.push(self.name()?);
            }
            targets.push(target);
            if !self.pass(",") {
                return Ok(targets);
            }
        }
    }

    fn returned(&mut self) -> Read {
        self.at += 1;
        if self.is(";") {
            return Ok(());
        }
        if self.pass("query") {
            return match self.is_any(&["select", "with", "insert", "update", "delete", "values"]) {
                true => self.query(&[";"]),
                false => Err(self.unknown()),
            };
        }
        if self.pass("next") && self.is(";") {
            return Ok(());
        }
        self.expression(&[";"])
    }

    /// An error. What is less is told the client with the function's name.
    fn raise(&mut self) -> Read {
        self.at += 1;
        if self.is_any(&["debug", "log", "info", "notice", "warning"]) {
            return Err("it tells the client something".to_owned());
        }
        self.pass("exception");
        if self.kind() == Token::Sconst {
            self.at += 1;
            if self.pass(",") {
                self.expressions(&["using", ";"])?;
            }
        } else if self.pass("sqlstate") {
            self.at += 1;
        } else if !self.is_any(&["using", ";"]) {
            self.name()?;
        }
        if self.pass("using") {
            loop {
                self.name()?;
                if !self.pass("=") {
                    self.expect(":=")?;
                }
                self.expression(&[",", ";"])?;
                if !self.pass(",") {
                    break;
                }
            }
        }
        Ok(())
    }

    fn diagnostics(&mut self) -> Read {
        self.at += 1;
        let stacked = self.pass("stacked");
        self.pass("current");
        self.expect("diagnostics")?;
        loop {
            let mut targets = self.targets()?;
            self.found.assigned.append(&mut targets);
            if !self.pass("=") {
                self.expect(":=")?;
            }
            let known: &[&str] = if stacked { &["returned_sqlstate", "message_text"] } else { &["row_count"] };
            if !self.is_any(known) {
                return Err("it asks where it is".to_owned());
            }
            self.at += 1;
            if !self.pass(",") {
                return Ok(());
            }
        }
    }

    /// Goes on to one of the words outside brackets.
    fn to(&mut self, ends: &[&str]) {
        while !self.is_any(ends) && self.at < self.tokens.list.len() {
            self.at = self.tokens.next_flat(self.at);
        }
    }

    /// Up to one of the words.
    fn expression(&mut self, ends: &[&str]) -> Read {
        let from = self.at;
        self.to(ends);
        self.expression_in(self.tokens.span(from, self.at))
    }

    fn expression_in(&mut self, span: Span) -> Read {
        const SELECT: &str = "SELECT ";
        if !span.is_known() {
            return Err(self.unknown());
        }
        let start = span.start.checked_sub(SELECT.len()).ok_or("no room")?;
        self.piece(format!("{SELECT}{}", span.of(self.body)), start, false)
    }

    fn expressions(&mut self, ends: &[&str]) -> Read {
        let ends: Vec<&str> = ends.iter().copied().chain([","]).collect();
        self.expression(&ends)?;
        while self.pass(",") {
            self.expression(&ends)?;
        }
        Ok(())
    }

    /// With INTO and the variables behind it left out.
    fn query(&mut self, ends: &[&str]) -> Read {
        let from = self.at;
        let mut into: Option<Span> = None;
        while !self.is_any(ends) && self.at < self.tokens.list.len() {
            let is_target = !matches!(self.tokens.before(self.at), Token::Insert | Token::Merge);
            if self.kind() == Token::Into && is_target {
                let first = self.at;
                self.at += 1;
                self.pass("strict");
                let mut targets = self.targets()?;
                self.found.assigned.append(&mut targets);
                if into.replace(self.tokens.span(first, self.at)).is_some() {
                    return Err(self.unknown());
                }
                continue;
            }
            self.at = self.tokens.next_flat(self.at);
        }
        let span = self.tokens.span(from, self.at);
        let mut text = span.of(self.body).to_owned();
        if let Some(into) = into {
            let range = into.start - span.start..into.end - span.start;
            text.replace_range(range.clone(), &" ".repeat(range.len()));
        }
        self.piece(text, span.start, true)
    }

    fn piece(&mut self, text: String, start: usize, is_query: bool) -> Read {
        let mut statements = split(&text).map_err(|error| error.message)?;
        let Some(statement) = statements.pop().filter(|_| statements.is_empty()) else { return Err(self.unknown()) };
        let start = start + statement.offset;
        self.found.pieces.push(Piece { statement, start, is_query });
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pieces(body: &str) -> Vec<String> {
        let routine = read_routine(body, "plpgsql").unwrap_or_else(|reason| panic!("{body}: {reason}"));
        let in_body = |piece: &Piece| {
            // What an edit of the piece would reach.
            let text = &piece.statement.text;
            for span in piece.statement.relations.iter().map(|relation| relation.span) {
                assert_eq!(span.of(text), &body[piece.start + span.start..piece.start + span.end]);
            }
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        routine.pieces.iter().map(in_body).collect()
    }

    #[test]
    fn every_query_and_expression_is_found() {
        let body = "<<outer>> DECLARE r record; x t.c%TYPE := a + 1; n numeric(10, 2)[]; BEGIN
            SELECT * INTO STRICT r FROM userinfo WHERE userid = $1;
            a := 5; r.name := 'a'; n[x + 1] := 2;
            IF NOT FOUND THEN RETURN; ELSIF x > 1 THEN RAISE EXCEPTION 'x % y', x, lower(r.a)
                USING ERRCODE = 'P0002', HINT = r.h;
            ELSE RAISE no_data_found; END IF;
            FOR i IN REVERSE 10..x + 1 BY 2 LOOP UPDATE t SET v = i WHERE id = a RETURNING v INTO x; END LOOP;
            <<l>> FOR r IN SELECT * FROM t WHERE id = a LOOP CONTINUE l WHEN r.x > 1; EXIT; END LOOP l;
            WHILE x < 3 LOOP x = x + 1; END LOOP; LOOP EXIT WHEN FOUND; END LOOP;
            FOREACH x IN ARRAY n LOOP NULL; END LOOP;
            CASE x WHEN 1, 2 THEN PERFORM f(x); ELSE NULL; END CASE;
            GET DIAGNOSTICS x = ROW_COUNT;
            BEGIN WITH c AS (INSERT INTO t VALUES (a)) INSERT INTO u VALUES (1);
            EXCEPTION WHEN unique_violation OR SQLSTATE '22012' THEN x := SQLERRM; END;
            RETURN QUERY SELECT * FROM t WHERE id = a; RETURN NEXT; ASSERT x > 1, 'no';
            RETURN x; END outer;";
        let expected = [
            "SELECT a + 1",
            "SELECT * FROM userinfo WHERE userid = $1",
            "SELECT 5",
            "SELECT 'a'",
            "SELECT x + 1",
            "SELECT 2",
            "SELECT NOT FOUND",
            "SELECT x > 1",
            "SELECT x",
            "SELECT lower(r.a)",
            "SELECT 'P0002'",
            "SELECT r.h",
            "SELECT 10",
            "SELECT x + 1",
            "SELECT 2",
            "UPDATE t SET v = i WHERE id = a RETURNING v",
            "SELECT * FROM t WHERE id = a",
            "SELECT r.x > 1",
            "SELECT x < 3",
            "SELECT x + 1",
            "SELECT FOUND",
            "SELECT n",
            "SELECT x",
            "SELECT 1, 2",
            "SELECT f(x)",
            "WITH c AS (INSERT INTO t VALUES (a)) INSERT INTO u VALUES (1)",
            "SELECT SQLERRM",
            "SELECT * FROM t WHERE id = a",
            "SELECT x > 1",
            "SELECT 'no'",
            "SELECT x",
        ];
        assert_eq!(pieces(body), expected);
        let routine = read_routine(body, "plpgsql").unwrap();
        let assigned: Vec<String> = routine.assigned.iter().map(|path| path.join(".")).collect();
        assert_eq!(assigned, ["r", "a", "r.name", "n", "x", "r", "x", "x", "x", "x"]);
        assert!(!routine.catches_waiting);
        assert_eq!(routine.labels, ["outer", "l"]);
        let variables: Vec<_> = routine.variables.iter().map(|v| (v.name.as_str(), v.type_name.as_deref())).collect();
        let declared = [("r", Some("record")), ("x", Some("t.c%TYPE")), ("n", Some("numeric(10, 2)[]")), ("i", None)];
        assert_eq!(variables, declared);
    }

    #[test]
    fn what_may_do_anything_is_not_read() {
        for body in [
            "BEGIN EXECUTE x; END",
            "BEGIN RETURN QUERY EXECUTE x; END",
            "BEGIN FOR r IN EXECUTE x LOOP END LOOP; END",
            "BEGIN FOR r IN c LOOP END LOOP; END",
            "DECLARE c CURSOR FOR SELECT 1; BEGIN OPEN c; END",
            "DECLARE x ALIAS FOR $1; BEGIN NULL; END",
            "BEGIN COMMIT; END",
            "BEGIN CALL p(); END",
            "BEGIN SET a.b = 1; END",
            "BEGIN CREATE TEMP TABLE x (a int); END",
            "BEGIN TRUNCATE t; END",
            "BEGIN LOCK t; END",
            "BEGIN NOTIFY x; END",
            "BEGIN RAISE NOTICE 'x'; END",
            "BEGIN GET STACKED DIAGNOSTICS x = PG_EXCEPTION_CONTEXT; END",
            "BEGIN GET DIAGNOSTICS x = PG_CONTEXT; END",
            "#variable_conflict use_column\nBEGIN NULL; END",
            "BEGIN NULL; END; BEGIN NULL; END",
            "BEGIN IF a THEN NULL; END; END",
            "BEGIN NULL",
            "BEGIN a[1:2] := b; END",
            "",
        ] {
            assert!(read_routine(body, "plpgsql").is_err(), "{body}");
        }
        assert!(read_routine("return 1", "plpython3u").is_err());
        assert!(read_routine("", "sql").is_err());
        assert_eq!(read_routine("SELECT 1; DELETE FROM t WHERE id = $1", "sql").unwrap().pieces.len(), 2);
    }

    #[test]
    fn handlers_that_catch_what_comes_of_waiting_are_known() {
        for (conditions, catches) in [
            ("unique_violation", false),
            ("unique_violation OR foreign_key_violation", false),
            ("SQLSTATE '23505'", false),
            ("OTHERS", true),
            ("unique_violation OR lock_not_available", true),
            ("SQLSTATE '55P03'", true),
            ("SQLSTATE E'57014'", true),
        ] {
            let body = format!("BEGIN NULL; EXCEPTION WHEN {conditions} THEN NULL; END");
            assert_eq!(read_routine(&body, "plpgsql").unwrap().catches_waiting, catches, "{conditions}");
        }
    }

    #[test]
    fn bodies_nested_deeply_are_no_danger() {
        let body = format!("{}NULL;{}", "BEGIN ".repeat(100_000), " END;".repeat(100_000));
        assert!(read_routine(&body, "plpgsql").is_err());
    }
}
