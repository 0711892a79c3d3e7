//! From a query string to statements.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::Token;

use crate::ast::{Relation, Span, Tree};
use crate::kind::{Kinds, StatementKind};
use crate::lower::Lower;
use crate::outline::Outline;
use crate::tokens::Tokens;
use crate::walk::walk;

/// Deepest nesting that is parsed: parsing, lowering and planning recurse, and a text must not be able to overflow the
/// stack. A server comes about as far with its `max_stack_depth` of 2 MB.
pub const NESTING_MAX: usize = 6000;

/// Stack that all of these need for each level at most, in bytes.
const LEVEL_STACK: usize = 40 << 10;
/// What they need for a statement that is not nested at all.
const LEAST_STACK: usize = 256 << 10;

/// Stack for threads that work on statements, whatever is nested in these. It is taken as it is used.
pub const STATEMENT_STACK: usize = LEAST_STACK + NESTING_MAX * LEVEL_STACK;

/// Runs what recurses over a statement with nesting up to `depth`, on another stack if there is not enough left here.
pub fn with_stack<R>(depth: usize, run: impl FnOnce() -> R) -> R {
    let needed = LEAST_STACK + depth.min(NESTING_MAX) * LEVEL_STACK;
    stacker::maybe_grow(needed, needed, run)
}

/// Why a text was not parsed. The server's own message is the better one, so a caller sends the text there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    pub message: String,
    /// In characters from 1, as PostgreSQL counts, where it is known.
    pub position: Option<usize>,
    /// `42601` (syntax error), or `54001` where the text is nested too deeply for this parser although a server may
    /// be able to run it.
    pub sqlstate: &'static str,
}

/// One statement of a query string.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Without the semicolon and surrounding space.
    pub text: String,
    /// Byte offset of `text` in the query string.
    pub offset: usize,
    pub kind: StatementKind,
    /// The tree of a data statement. For EXPLAIN, PREPARE, DECLARE, …: `Utility`; split the inner text.
    pub tree: Tree,
    /// Some part of `tree` was not understood; `relations` and `calls` are complete all the same.
    pub has_unknown: bool,
    /// Every relation name anywhere in the statement, CTE names included, in tree order.
    pub relations: Vec<Relation>,
    /// Names of WITH queries, at any level.
    pub ctes: Vec<String>,
    /// Every function called, `(schema, name)`, whatever the syntax; sorted, each once.
    pub calls: Vec<(Option<String>, String)>,
    /// Every type named.
    pub types: Vec<(Option<String>, String)>,
    /// Highest `$n`, 0 where there is none.
    pub params: u16,
    pub has_sublink: bool,
    /// INSERT, UPDATE, DELETE or MERGE, at any level.
    pub has_modifying: bool,
    pub samples: Vec<Sample>,
    /// System columns, or columns qualified by a schema: no rows that stand for a table's have them.
    pub names_physical_rows: bool,
    /// FOR UPDATE and its like.
    pub locks_rows: bool,
    /// How deep its tree may nest at most.
    pub depth: usize,
    pub(crate) tokens: Arc<Tokens>,
}

impl Statement {
    /// The name stands somewhere without a dot behind it: it may be what something is called there.
    pub fn names_alone(&self, name: &str) -> bool {
        (0..self.tokens.list.len()).any(|at| {
            self.tokens.is_word(at)
                && self.tokens.kind(at + 1) != pg_query::protobuf::Token::Ascii46
                && crate::alter::identifier(self.tokens.span(at, at + 1).of(&self.text)) == name
        })
    }
}

/// A TABLESAMPLE clause.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Which of the statement's relations it is of.
    pub relation: usize,
    /// From the word to the end; unknown where it was not found.
    pub clause: Span,
    /// SYSTEM or BERNOULLI, which take each row or page by itself.
    pub by_share: bool,
    /// Its arguments are values of other rows.
    pub reads_columns: bool,
}

/// Splits a simple Query's text into statements and parses each. An empty or comment-only text has none.
pub fn split(sql: &str) -> Result<Vec<Statement>, ParseError> {
    let Some(tokens) = Tokens::scan(sql) else { return Err(syntax("syntax error".to_owned())) };
    if tokens.list.is_empty() {
        return Ok(Vec::new());
    }
    match tokens.depth_bound() {
        depth if depth <= NESTING_MAX => with_stack(depth, || parse(sql, &tokens, depth)),
        _ => Err(too_deep()),
    }
}

fn syntax(message: String) -> ParseError {
    ParseError { message, position: None, sqlstate: "42601" }
}

fn too_deep() -> ParseError {
    ParseError { message: "statement is nested too deeply".to_owned(), position: None, sqlstate: "54001" }
}

fn parse(sql: &str, tokens: &Tokens, depth: usize) -> Result<Vec<Statement>, ParseError> {
    let parsed = match pg_query::parse(sql, 0) {
        Ok(parsed) => parsed,
        Err(pg_query::Error::Decode(_)) => return Err(too_deep()),
        Err(error) => {
            let message = error.to_string();
            return Err(syntax(message.trim_start_matches("Invalid statement: ").to_owned()));
        }
    };
    let mut statements = Vec::with_capacity(parsed.protobuf.stmts.len());
    for raw in &parsed.protobuf.stmts {
        let Some(node) = raw.stmt.as_ref().and_then(|n| n.node.as_ref()) else { continue };
        let from = usize::try_from(raw.stmt_location).unwrap_or(0);
        let to = match usize::try_from(raw.stmt_len) {
            Ok(len) if len > 0 => from + len,
            _ => sql.len(),
        };
        // The statement's own range runs from its first token to its last one before the semicolon.
        let first = tokens.from(from);
        let mut last = tokens.list.partition_point(|t| t.end <= to);
        while last > first && tokens.kind(last - 1) == Token::Ascii59 {
            last -= 1;
        }
        let span = tokens.span(first, last);
        statements.push(statement(span.of(sql), span, tokens.slice(span), node, depth));
    }
    Ok(statements)
}

fn statement(text: &str, span: Span, tokens: Tokens, node: &NodeEnum, depth: usize) -> Statement {
    let found = walk(node);
    let kind = Kinds { text, tokens: &tokens, base: span.start, relations: &found.relations }.kind(node);
    let mut lower = Lower::new(text, &tokens, span.start);
    let tree = lower.statement(node);
    let relations = found
        .relations
        .iter()
        .map(|r| {
            lower.relation(&pg_query::protobuf::RangeVar {
                catalogname: r.catalog.clone(),
                schemaname: r.schema.clone(),
                relname: r.name.clone(),
                inh: r.inh,
                relpersistence: r.persistence.clone(),
                alias: None,
                location: r.location as i32,
            })
        })
        .collect();
    let has_unknown = lower.unknown;
    let samples = found.samples.iter().map(|s| Sample {
        relation: s.relation,
        clause: lower.position(s.location as i32).and_then(|at| tokens.sample_clause(at)).unwrap_or_default(),
        by_share: matches!(s.method.as_deref(), Some("system" | "bernoulli")),
        reads_columns: s.reads_columns,
    });
    let samples = samples.collect();
    let sorted = |mut list: Vec<(Option<String>, String)>| {
        list.sort();
        list.dedup();
        list
    };
    Statement {
        text: text.to_owned(),
        offset: span.start,
        kind,
        tree,
        has_unknown,
        relations,
        ctes: found.ctes,
        calls: sorted(found.calls),
        types: sorted(found.types),
        params: found.params.iter().copied().max().and_then(|n| u16::try_from(n).ok()).unwrap_or(0),
        has_sublink: found.has_sublink,
        has_modifying: found.has_modifying,
        samples,
        names_physical_rows: found.names_physical_rows,
        locks_rows: found.locks_rows,
        depth,
        tokens: Arc::new(tokens),
    }
}

impl Statement {
    /// Whether this may be the statement of a command tag, as event triggers tell it (`CREATE INDEX`): its first words
    /// are the tag's, with others between (`CREATE UNIQUE INDEX`).
    pub fn may_have_tag(&self, tag: &str) -> bool {
        const WORDS_MAX: usize = 6;
        match self.kind {
            crate::StatementKind::CreateTableAs(_) => return tag == "CREATE TABLE AS",
            crate::StatementKind::SelectInto => return tag == "SELECT INTO",
            _ => {}
        }
        let mut wanted = tag.split(' ').peekable();
        for (at, token) in self.tokens.list.iter().take(WORDS_MAX).enumerate() {
            let word = self.text.get(token.start..token.end).unwrap_or_default();
            if wanted.peek().is_some_and(|wanted| wanted.eq_ignore_ascii_case(word)) {
                wanted.next();
            } else if at == 0 {
                return false;
            }
        }
        wanted.peek().is_none()
    }

    /// The clauses of the top-level SELECT, where it is a plain one (no set operation, no brackets around it).
    pub fn outline(&self) -> Option<Outline> {
        crate::outline::outline(&self.tokens)
    }

    /// Where ORDER BY, LIMIT … of the top-level query begin, and its ORDER BY clause; for set operations too.
    pub fn query_tail(&self) -> (usize, Option<Span>) {
        crate::outline::tail(&self.tokens)
    }

    /// What stands between the quotes of each string literal, as it is written.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        let strings = self.tokens.list.iter().filter(|token| matches!(token.kind, Token::Sconst | Token::Usconst));
        strings.filter_map(|token| {
            let written = self.text.get(token.start..token.end)?;
            match written.strip_prefix('$') {
                Some(tagged) => tagged.split_once('$').map(|(_, rest)| rest),
                None => written.split_once('\'').map(|(_, rest)| rest),
            }
        })
    }

    /// The text of a range.
    pub fn slice(&self, span: Span) -> &str {
        span.of(&self.text)
    }
}
