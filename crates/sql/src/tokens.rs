//! The tokens of a statement with matching brackets, to find where a construct ends: the parser's tree says where most
//! nodes begin, never where they end. Follows src/backend/parser/scan.l as `pg_query` scans it.

use pg_query::protobuf::{KeywordKind, Token};

use crate::ast::Span;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tok {
    pub start: usize,
    pub end: usize,
    pub kind: Token,
    pub keyword: KeywordKind,
    /// Index of the matching bracket, or own index.
    pub mate: u32,
}

/// Tokens of a text without comments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens {
    pub list: Vec<Tok>,
}

impl Tokens {
    /// Scans a text; `None` where the scanner reports an error.
    pub fn scan(text: &str) -> Option<Tokens> {
        let scanned = pg_query::scan(text).ok()?;
        let mut list: Vec<Tok> = Vec::with_capacity(scanned.tokens.len());
        let mut open: Vec<usize> = Vec::new();
        for token in scanned.tokens {
            let kind = Token::try_from(token.token).unwrap_or(Token::Nul);
            if matches!(kind, Token::SqlComment | Token::CComment) {
                continue;
            }
            let at = list.len();
            let mut mate = at;
            match kind {
                Token::Ascii40 | Token::Ascii91 => open.push(at),
                Token::Ascii41 | Token::Ascii93 => {
                    if let Some(opener) = open.pop() {
                        mate = opener;
                        if let Some(opener) = list.get_mut(opener) {
                            opener.mate = at as u32;
                        }
                    }
                }
                _ => {}
            }
            list.push(Tok {
                start: token.start as usize,
                end: token.end as usize,
                kind,
                keyword: KeywordKind::try_from(token.keyword_kind).unwrap_or(KeywordKind::NoKeyword),
                mate: mate as u32,
            });
        }
        Some(Tokens { list })
    }

    /// How deep the tree of this text may nest at most: operators and brackets since the last comma at each level, and
    /// its set operations, which bind less than commas do. What the recursion of parsing and lowering is limited by.
    pub fn depth_bound(&self) -> usize {
        let (mut levels, mut here, mut sets, mut below, mut max) = (Vec::new(), 0usize, 0usize, 0usize, 0usize);
        for tok in &self.list {
            match tok.kind {
                Token::Ascii40 | Token::Ascii91 | Token::Case => {
                    levels.push((here, sets));
                    below += here + sets + 1;
                    (here, sets) = (0, 0);
                }
                Token::Ascii41 | Token::Ascii93 | Token::EndP => {
                    if let Some(outer) = levels.pop() {
                        below = below.saturating_sub(outer.0 + outer.1 + 1);
                        (here, sets) = (outer.0 + 1, outer.1);
                    }
                }
                Token::Union | Token::Intersect | Token::Except => (here, sets) = (0, sets + 1),
                Token::Ascii59 => (here, sets) = (0, 0),
                // Members of lists are side by side; the parser flattens AND and OR.
                Token::Ascii44 | Token::And | Token::Or | Token::When | Token::Then | Token::Else => here = 0,
                Token::Ident | Token::Iconst | Token::Fconst | Token::Sconst | Token::Param | Token::Ascii46 => {}
                // Once for each query or join, or as leaves.
                Token::Select | Token::All | Token::From | Token::Where | Token::As | Token::On => {}
                Token::NullP | Token::TrueP | Token::FalseP => {}
                _ => here += 1,
            }
            max = max.max(below + here + sets);
        }
        max
    }

    /// The tokens whose range lies in `span`, positions made relative to its start.
    pub fn slice(&self, span: Span) -> Tokens {
        let from = self.list.partition_point(|t| t.start < span.start);
        let to = self.list.partition_point(|t| t.end <= span.end);
        let list = self.list.get(from..to.max(from)).unwrap_or(&[]);
        Tokens {
            list: list
                .iter()
                .enumerate()
                .map(|(at, t)| Tok {
                    start: t.start - span.start,
                    end: t.end - span.start,
                    mate: (t.mate as usize).checked_sub(from).filter(|m| *m < list.len()).unwrap_or(at) as u32,
                    ..*t
                })
                .collect(),
        }
    }

    pub fn kind(&self, at: usize) -> Token {
        self.list.get(at).map_or(Token::Nul, |t| t.kind)
    }

    pub fn before(&self, at: usize) -> Token {
        at.checked_sub(1).map_or(Token::Nul, |i| self.kind(i))
    }

    /// Index of the token that starts at a byte position.
    pub fn at(&self, position: usize) -> Option<usize> {
        self.list.binary_search_by_key(&position, |t| t.start).ok()
    }

    /// Index of the first token that starts at or after a byte position.
    pub fn from(&self, position: usize) -> usize {
        self.list.partition_point(|t| t.start < position)
    }

    pub fn end_of(&self, at: usize) -> usize {
        self.list.get(at).map_or(0, |t| t.end)
    }

    pub fn start_of(&self, at: usize) -> usize {
        self.list.get(at).map_or(0, |t| t.start)
    }

    /// The round brackets that a token stands in directly: where they open and close.
    pub fn around(&self, at: usize) -> Option<(usize, usize)> {
        let mut i = at;
        while let Some(before) = i.checked_sub(1) {
            i = before;
            match self.kind(i) {
                Token::Ascii41 | Token::Ascii93 => i = self.mate(i),
                Token::Ascii40 => return (self.mate(i) > i).then(|| (i, self.mate(i))),
                Token::Ascii91 => return None,
                _ => {}
            }
        }
        None
    }

    /// Index of the bracket that closes the one at `at`.
    pub fn mate(&self, at: usize) -> usize {
        self.list.get(at).map_or(at, |t| t.mate as usize)
    }

    /// The next token after `at`, skipping what is inside a bracket that opens at `at`.
    pub fn next_flat(&self, at: usize) -> usize {
        match self.kind(at) {
            Token::Ascii40 | Token::Ascii91 => self.mate(at).max(at) + 1,
            _ => at + 1,
        }
    }

    /// True where the token is a name or a word that may be one after a dot.
    pub fn is_word(&self, at: usize) -> bool {
        self.list
            .get(at)
            .is_some_and(|t| matches!(t.kind, Token::Ident | Token::Uident) || t.keyword != KeywordKind::NoKeyword)
    }

    /// True where the keyword at `at` is used as a label (`AS limit`, `t.limit`), not as the keyword.
    pub fn is_label(&self, at: usize) -> bool {
        matches!(self.before(at), Token::As | Token::Ascii46)
    }

    /// Index after a dotted name that starts at `at`.
    pub fn after_name(&self, at: usize) -> usize {
        let mut i = at + 1;
        if self.kind(i) == Token::Uescape {
            i += 2;
        }
        while self.kind(i) == Token::Ascii46 && (self.is_word(i + 1) || self.kind(i + 1) == Token::Ascii42) {
            i += 2;
            if self.kind(i) == Token::Uescape {
                i += 2;
            }
        }
        i
    }

    /// The TABLESAMPLE clause whose method's name is at a position, up to the end of REPEATABLE.
    pub fn sample_clause(&self, position: usize) -> Option<Span> {
        let at = self.at(position)?;
        let first = if self.kind(at) == Token::Tablesample { at } else { at.checked_sub(1)? };
        if self.kind(first) != Token::Tablesample {
            return None;
        }
        let open = self.after_name(first + 1);
        let mut end = self.mate(open) + 1;
        if self.kind(end) == Token::Repeatable {
            end = self.mate(end + 1) + 1;
        }
        (self.kind(open) == Token::Ascii40 && self.kind(end - 1) == Token::Ascii41).then(|| self.span(first, end))
    }

    /// Where what begins at a position of the text ends: before a comma beside it, or the statement's end.
    pub fn end_of_piece(&self, position: usize) -> Option<usize> {
        let mut at = self.at(position)?;
        let mut end = None;
        while let Some(token) = self.list.get(at) {
            if matches!(token.kind, Token::Ascii44 | Token::Ascii59) {
                break;
            }
            end = self.list.get(self.mate(at).max(at)).map(|last| last.end);
            at = self.next_flat(at);
        }
        end
    }

    /// Splits the tokens in `from..to` at commas outside brackets: index ranges.
    pub fn split_commas(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        let (mut begin, mut i) = (from, from);
        while i < to {
            if self.kind(i) == Token::Ascii44 {
                parts.push((begin, i));
                begin = i + 1;
            }
            i = self.next_flat(i);
        }
        if begin < to || !parts.is_empty() {
            parts.push((begin, to));
        }
        parts
    }

    /// The byte range of the tokens `from..to`.
    pub fn span(&self, from: usize, to: usize) -> Span {
        match to.checked_sub(1) {
            Some(last) if last >= from => Span::new(self.start_of(from), self.end_of(last)),
            _ => Span::default(),
        }
    }

    /// Widens a range until the brackets in it are balanced.
    pub fn balance(&self, span: Span) -> Span {
        if !span.is_known() {
            return span;
        }
        let (mut from, mut to) = (self.from(span.start), self.list.partition_point(|t| t.end <= span.end));
        let mut i = from;
        while i < to {
            let mate = self.mate(i);
            match self.kind(i) {
                Token::Ascii41 | Token::Ascii93 if mate < from => from = mate,
                Token::Ascii40 | Token::Ascii91 if mate >= to => to = mate + 1,
                _ => {}
            }
            i += 1;
        }
        self.span(from, to)
    }
}
