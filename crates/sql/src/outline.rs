//! Where the clauses of the top-level SELECT are. The grammar's clause words are reserved, so outside brackets they are
//! what they seem, except after `AS` or a dot and in `IS DISTINCT FROM` (gram.y, `simple_select`).

use pg_query::protobuf::Token;

use crate::ast::Span;
use crate::tokens::Tokens;

/// Byte ranges of the clauses' contents, without their words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// From the SELECT word to the end of the statement.
    pub whole: Span,
    /// The SELECT word with DISTINCT, ALL or DISTINCT ON (…).
    pub select: Span,
    /// Each item with its alias.
    pub items: Vec<Span>,
    /// From the FROM word up to GROUP BY, HAVING, WINDOW, ORDER BY, LIMIT … or the end: FROM and WHERE.
    pub from_where: Option<Span>,
    pub group_by: Vec<Span>,
    /// The GROUP BY clause with its words.
    pub group_clause: Option<Span>,
    /// With its word.
    pub having: Option<Span>,
    /// With its word.
    pub window: Option<Span>,
    pub order_by: Vec<Span>,
    /// With its words.
    pub order_clause: Option<Span>,
    /// From LIMIT, OFFSET or FETCH to the end of these clauses.
    pub limit_clause: Option<Span>,
    /// FOR UPDATE … (also where it is written before LIMIT).
    pub locking: Option<Span>,
}

/// ORDER BY, LIMIT, OFFSET and FETCH at the end of the top-level query, for set operations too: where they begin (or
/// the text's end), and the ORDER BY clause with its words. An arm of a set operation has such clauses in brackets
/// only.
pub(crate) fn tail(t: &Tokens) -> (usize, Option<Span>) {
    let end = t.list.len();
    let (mut begin, mut order, mut after) = (end, None, end);
    let mut i = 0;
    while i < end {
        let found = match t.kind(i) {
            _ if t.is_label(i) => false,
            Token::Order => t.kind(i + 1) == Token::By,
            Token::Limit | Token::Offset | Token::Fetch => true,
            _ => false,
        };
        if found {
            begin = begin.min(i);
            if t.kind(i) == Token::Order {
                order = Some(i);
            } else if order.is_some() {
                after = after.min(i);
            }
        }
        i = t.next_flat(i);
    }
    let start = if begin == end { t.end_of(end.saturating_sub(1)) } else { t.start_of(begin) };
    (start, order.map(|at| t.span(at, after)))
}

pub(crate) fn outline(t: &Tokens) -> Option<Outline> {
    // WITH … comes first: skip to the first SELECT outside brackets.
    let mut at = 0;
    while at < t.list.len() && t.kind(at) != Token::Select {
        if at == 0 && !matches!(t.kind(0), Token::With | Token::WithLa) {
            return None;
        }
        at = t.next_flat(at);
    }
    let begin = at;
    if t.kind(begin) != Token::Select {
        return None;
    }
    let mut items_from = begin + 1;
    match t.kind(items_from) {
        Token::All => items_from += 1,
        Token::Distinct => {
            items_from += 1;
            if t.kind(items_from) == Token::On && t.kind(items_from + 1) == Token::Ascii40 {
                items_from = t.mate(items_from + 1) + 1;
            }
        }
        _ => {}
    }
    let mut out = Outline { select: t.span(begin, items_from), ..Outline::default() };
    // Positions of the clause words, in order.
    let mut marks: Vec<(Token, usize)> = Vec::new();
    let mut i = items_from;
    while i < t.list.len() {
        let kind = t.kind(i);
        if !t.is_label(i) {
            match kind {
                Token::Union | Token::Intersect | Token::Except | Token::Into => return None,
                Token::From => {
                    let distinct_from = t.before(i) == Token::Distinct
                        && matches!(t.before(i - 1), Token::Is | Token::Not | Token::NotLa);
                    if !distinct_from && marks.is_empty() {
                        marks.push((kind, i));
                    }
                }
                Token::Where if marks.is_empty() => marks.push((Token::From, i)),
                Token::GroupP if t.kind(i + 1) == Token::By => marks.push((kind, i)),
                Token::Order if t.kind(i + 1) == Token::By => marks.push((kind, i)),
                Token::Having | Token::Window | Token::Limit | Token::Offset | Token::Fetch | Token::For => {
                    marks.push((kind, i))
                }
                _ => {}
            }
        }
        i = t.next_flat(i);
    }
    let first = marks.first().map_or(t.list.len(), |(_, at)| *at);
    out.whole = t.span(begin, t.list.len());
    out.items = t.split_commas(items_from, first).into_iter().map(|(a, b)| t.span(a, b)).collect();
    for (index, (kind, from)) in marks.iter().enumerate() {
        let to = marks.get(index + 1).map_or(t.list.len(), |(_, at)| *at);
        let span = t.span(*from, to);
        let list = || -> Vec<Span> { t.split_commas(from + 2, to).into_iter().map(|(a, b)| t.span(a, b)).collect() };
        match kind {
            Token::From => out.from_where = Some(span),
            Token::GroupP => {
                out.group_clause = Some(span);
                out.group_by = list();
            }
            Token::Having => out.having = Some(span),
            Token::Window => out.window = Some(span),
            Token::Order => {
                out.order_clause = Some(span);
                out.order_by = list();
            }
            Token::Limit | Token::Offset | Token::Fetch => {
                out.limit_clause = Some(out.limit_clause.map_or(span, |s| s.join(span)));
            }
            Token::For => out.locking = Some(out.locking.map_or(span, |s| s.join(span))),
            _ => {}
        }
    }
    Some(out)
}
