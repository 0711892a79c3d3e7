//! A statement's text with some ranges replaced, so that everything the user wrote stays as it was written, and error
//! positions can be mapped back.

use std::cmp::Reverse;

use crate::ast::Span;

/// SQL text made of pieces of the user's statement, replacements, and table names that depend on the shard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Splice {
    pub parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Verbatim text. `origin`: byte offset of its first byte in the user's statement, if it was taken from there.
    Text { text: String, origin: Option<usize> },
    /// A distributed table's name: the parent (`schema.name`, quoted) for a scatter, the partition (same name in the
    /// shard's schema) for a routed statement. `origin`: where the user's spelling begins. `table` is the coordinator's
    /// oid.
    Table { table: u32, as_written: String, origin: Option<usize> },
    /// Something of ours in the schema where the table's partition is.
    Beside { table: u32, name: String, origin: Option<usize> },
}

impl Splice {
    /// A statement that is sent as it stands.
    pub fn verbatim(text: &str, origin: usize) -> Self {
        Splice { parts: vec![Part::Text { text: text.to_owned(), origin: Some(origin) }] }
    }

    /// A text that nobody wrote.
    pub fn made(text: &str) -> Self {
        Splice { parts: vec![Part::Text { text: text.to_owned(), origin: None }] }
    }

    /// The text with every table under the name that the user wrote.
    pub fn as_written(&self) -> String {
        self.render(|_| None)
    }

    /// The text with each table named as `name_of(oid)` says, or as written where that gives none.
    pub fn render(&self, name_of: impl Fn(u32) -> Option<String>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => out.push_str(text),
                Part::Table { table, as_written, .. } => match name_of(*table) {
                    Some(name) => out.push_str(&name),
                    None => out.push_str(as_written),
                },
                Part::Beside { table, name, .. } => out.push_str(&beside(name_of(*table), name)),
            }
        }
        out
    }

    /// The same with another text for a range of what the user wrote; none: it does not stand there once, as it was
    /// written.
    pub fn replaced(&self, span: Span, written: &str, new: &str) -> Option<Splice> {
        let holds = |part: &Part| match part {
            Part::Text { text, origin: Some(origin) } => {
                Span::new(*origin, origin + text.len()).contains(span).then_some(*origin)
            }
            _ => None,
        };
        let mut found = self.parts.iter().enumerate().filter_map(|(at, part)| Some((at, holds(part)?)));
        let (at, origin) = found.next()?;
        if found.next().is_some() {
            return None;
        }
        let Part::Text { text, .. } = &self.parts[at] else { return None };
        if text.get(span.start - origin..span.end - origin) != Some(written) {
            return None;
        }
        let mut splice = Splice { parts: self.parts[..at].to_vec() };
        splice.push_text(text.get(..span.start - origin)?, Some(origin));
        splice.push_text(new, None);
        splice.push_text(text.get(span.end - origin..)?, Some(span.end));
        splice.parts.extend_from_slice(&self.parts[at + 1..]);
        Some(splice)
    }

    /// Maps a byte offset in the rendered text back to one in the user's statement.
    pub fn origin_of(&self, rendered: usize, name_of: impl Fn(u32) -> Option<String>) -> Option<usize> {
        let mut at = 0;
        for part in &self.parts {
            let (len, origin, exact) = match part {
                Part::Text { text, origin } => (text.len(), *origin, true),
                Part::Table { table, as_written, origin } => {
                    (name_of(*table).map_or(as_written.len(), |n| n.len()), *origin, false)
                }
                Part::Beside { table, name, origin } => (beside(name_of(*table), name).len(), *origin, false),
            };
            if rendered < at + len {
                return origin.map(|o| if exact { o + (rendered - at) } else { o });
            }
            at += len;
        }
        None
    }
}

/// A name in the schema of a table's partition, whose name needs no quotes.
fn beside(partition: Option<String>, name: &str) -> String {
    match partition.as_deref().and_then(|partition| partition.split_once('.')) {
        Some((schema, _)) => format!("{schema}.{name}"),
        None => name.to_owned(),
    }
}

/// What takes the place of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    Text(String),
    Table {
        table: u32,
        as_written: String,
    },
    /// Made of other ranges of the text.
    Splice(Splice),
    Beside {
        table: u32,
        name: String,
    },
}

/// Two edits of one text that meet, of which only one could be made. It is a mistake of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    pub one: Span,
    pub other: Span,
}

impl std::fmt::Display for Overlap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Overlap { one, other } = self;
        write!(
            f,
            "internal error: edits of the statement meet at bytes {} to {} and {} to {}",
            one.start, one.end, other.start, other.end
        )
    }
}

impl std::error::Error for Overlap {}

impl From<Overlap> for String {
    fn from(overlap: Overlap) -> String {
        overlap.to_string()
    }
}

#[derive(Debug, Clone)]
struct Edit {
    span: Span,
    /// What an inserted text belongs to; else the span.
    of: Span,
    replacement: Replacement,
    /// Takes the place of all edits inside it.
    covers: bool,
    /// An inserted text that becomes the end of what it belongs to.
    ends: bool,
}

impl Edit {
    fn text(span: Span, text: impl Into<String>) -> Edit {
        Edit { span, of: span, replacement: Replacement::Text(text.into()), covers: false, ends: false }
    }

    fn behind(of: Span, text: impl Into<String>, ends: bool) -> Edit {
        Edit { of, ends, ..Edit::text(Span::new(of.end, of.end), text) }
    }

    /// In the order of the text. At one place: what is inserted behind something, the innermost first; what is inserted
    /// before something; what is replaced, the outermost first.
    fn order(&self) -> impl Ord {
        let insert = match (self.is_insert(), self.of != self.span) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => 2,
        };
        (self.span.start, insert, Reverse(self.of.start), !self.ends, Reverse(self.span.end), !self.covers)
    }

    fn is_insert(&self) -> bool {
        self.span.start == self.span.end
    }

    /// It goes with the range that `self` covers.
    fn takes(&self, other: &Edit) -> bool {
        let inside = match other.is_insert() && other.of == other.span {
            true => self.span.start < other.span.start && other.span.start < self.span.end,
            false => self.span.contains(other.of) && (!other.is_insert() || self.span != other.of),
        };
        let twice = other.covers && other.span == self.span && other.replacement != self.replacement;
        let same = self.span == other.span && self.replacement == other.replacement && !other.is_insert();
        same || self.covers && inside && !twice
    }

    /// The same behind the same range, which is said once.
    fn repeats(&self, other: &Edit) -> bool {
        let behind = self.is_insert() && self.of != self.span && !self.ends && !other.ends;
        behind && self.of == other.of && self.replacement == other.replacement
    }

    /// Only one of both could be made. An insertion at the edge of a range is beside it.
    fn meets(&self, other: &Edit) -> bool {
        let (a, b) = (self.span, other.span);
        match self.is_insert() || other.is_insert() {
            true => a.start < b.end && b.start < a.end && a != b,
            false => a.start < b.end && b.start < a.end,
        }
    }
}

/// Collects replacements of ranges of one text, in any order, and writes the [`Splice`]. Of two that overlap neither is
/// dropped: writing the text fails, unless the outer one was meant to [`cover`](Edits::cover) what is inside it.
#[derive(Debug, Clone, Default)]
pub struct Edits {
    list: Vec<Edit>,
    /// How far the edits up to each one reach.
    reach: Vec<usize>,
    failed: Option<Overlap>,
}

impl Edits {
    pub fn new() -> Self {
        Edits::default()
    }

    pub fn replace(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.add(Edit::text(span, text))
    }

    /// Replaces a range with all that is in it, edited or not.
    pub fn cover(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.add(Edit { covers: true, ..Edit::text(span, text) })
    }

    /// Writing the text fails: what one edit is made of could not be written.
    pub fn fail(&mut self, overlap: Overlap) {
        self.failed.get_or_insert(overlap);
    }

    /// Edits mostly come in the order of the text.
    fn add(&mut self, edit: Edit) -> &mut Self {
        let at = self.list.partition_point(|e| e.order() <= edit.order());
        self.list.insert(at, edit);
        self.reach.truncate(at);
        for edit in &self.list[at..] {
            self.reach.push(self.reach.last().map_or(edit.span.end, |reach| edit.span.end.max(*reach)));
        }
        self
    }

    /// Takes the replacements of another over.
    pub fn extend(&mut self, other: Edits) -> &mut Self {
        self.extend_at(other, 0)
    }

    /// The same where what they are of stands in a longer text. Splices keep the positions that they have.
    pub fn extend_at(&mut self, other: Edits, start: usize) -> &mut Self {
        let there = |span: Span| Span::new(start + span.start, start + span.end);
        self.failed = self.failed.or(other.failed);
        for edit in other.list {
            self.add(Edit { span: there(edit.span), of: there(edit.of), ..edit });
        }
        self
    }

    /// Inserts text before a byte position.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) -> &mut Self {
        self.replace(Span::new(at, at), text)
    }

    /// Inserts text behind a range, with which it comes and goes.
    pub fn insert_after(&mut self, of: Span, text: impl Into<String>) -> &mut Self {
        self.add(Edit::behind(of, text, false))
    }

    /// The same as the range's own end, before what stands behind it.
    pub fn append_to(&mut self, of: Span, text: impl Into<String>) -> &mut Self {
        self.add(Edit::behind(of, text, true))
    }

    pub fn table(&mut self, span: Span, table: u32, as_written: impl Into<String>) -> &mut Self {
        let replacement = Replacement::Table { table, as_written: as_written.into() };
        self.add(Edit { replacement, ..Edit::text(span, "") })
    }

    /// Replaces a name by that of something of ours in the schema of a table's partition.
    pub fn beside(&mut self, span: Span, table: u32, name: &str) -> &mut Self {
        let replacement = Replacement::Beside { table, name: name.to_owned() };
        self.add(Edit { replacement, ..Edit::text(span, "") })
    }

    /// Inserts what is made of other ranges of the text.
    pub fn insert_splice(&mut self, at: usize, splice: Splice) -> &mut Self {
        self.add(Edit { replacement: Replacement::Splice(splice), ..Edit::text(Span::new(at, at), "") })
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What stands there goes with what covers it.
    pub fn is_covered(&self, span: Span) -> bool {
        self.list.iter().any(|edit| edit.covers && edit.span.contains(span))
    }

    /// The whole text with the replacements made.
    pub fn apply(&self, text: &str) -> Result<Splice, Overlap> {
        self.apply_to(text, Span::new(0, text.len()))
    }

    /// A range of the text with the replacements that lie in it made.
    pub fn apply_to(&self, text: &str, range: Span) -> Result<Splice, Overlap> {
        if let Some(overlap) = self.failed {
            return Err(overlap);
        }
        let mut splice = Splice::default();
        let mut at = range.start;
        let from = self.list.partition_point(|e| e.span.start < range.start);
        if from > 0 && self.reach[from - 1] > range.start {
            let before = self.list[..from].iter().rfind(|e| e.span.end > range.start);
            return Err(Overlap { one: before.map_or(range, |e| e.span), other: range });
        }
        let (mut last, mut previous): (Option<&Edit>, Option<&Edit>) = (None, None);
        for edit in self.list[from..].iter().take_while(|e| e.span.start <= range.end) {
            // What begins where the range ends, or belongs to more than it, is not in it.
            let beyond = if edit.is_insert() { !range.contains(edit.of) } else { edit.span.start == range.end };
            let repeats = previous.replace(edit).is_some_and(|previous| previous.repeats(edit));
            if beyond || repeats || last.is_some_and(|last| last.takes(edit)) {
                continue;
            }
            if let Some(last) = last.filter(|last| last.meets(edit)) {
                return Err(Overlap { one: last.span, other: edit.span });
            }
            if edit.span.end > range.end {
                return Err(Overlap { one: range, other: edit.span });
            }
            splice.push_text(Span::new(at, edit.span.start).of(text), Some(at));
            match &edit.replacement {
                Replacement::Text(new) => splice.push_text(new, None),
                Replacement::Splice(new) => splice.append(new.clone()),
                Replacement::Table { table, as_written } => splice.parts.push(Part::Table {
                    table: *table,
                    as_written: as_written.clone(),
                    origin: Some(edit.span.start),
                }),
                Replacement::Beside { table, name } => {
                    splice.parts.push(Part::Beside { table: *table, name: name.clone(), origin: Some(edit.span.start) })
                }
            }
            at = edit.span.end;
            if !edit.is_insert() {
                last = Some(edit);
            }
        }
        splice.push_text(Span::new(at, range.end).of(text), Some(at));
        Ok(splice)
    }
}

impl Splice {
    /// Appends text that the user wrote (`origin`: where) or that was made.
    pub fn push_text(&mut self, text: &str, origin: Option<usize>) {
        if !text.is_empty() {
            self.parts.push(Part::Text { text: text.to_owned(), origin });
        }
    }

    pub fn append(&mut self, other: Splice) {
        self.parts.extend(other.parts);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "select f(a), b from t";

    fn span(of: &str) -> Span {
        let start = TEXT.find(of).unwrap();
        Span::new(start, start + of.len())
    }

    fn written(edits: &Edits) -> Result<String, Overlap> {
        edits.apply(TEXT).map(|s| s.as_written())
    }

    #[test]
    fn edits_come_in_any_order() {
        let mut edits = Edits::new();
        edits.replace(span("b"), "c").insert(0, "/* */ ").insert_after(span("f(a)"), " as f").replace(span("a"), "1");
        assert_eq!(written(&edits).unwrap(), "/* */ select f(1) as f, c from t");
    }

    #[test]
    fn a_range_that_stands_there_once_is_replaced() {
        let mut edits = Edits::new();
        edits.table(span("t"), 1, "t").replace(span("a"), "c");
        let splice = edits.apply(TEXT).unwrap();
        assert_eq!(splice.replaced(span(", b"), ", b", "").unwrap().as_written(), "select f(c) from t");
        for other in ["a", "f(a)", "select"] {
            assert_eq!(splice.replaced(span(other), other, "x"), None, "{other}");
        }
        assert_eq!(splice.replaced(span(", b"), ", c", ""), None);
        let mut twice = splice.clone();
        twice.append(splice);
        assert_eq!(twice.replaced(span(", b"), ", b", ""), None);
    }

    #[test]
    fn edits_that_meet_are_an_error() {
        for [one, other] in [["f(a)", "a"], ["a", "f(a)"], ["b from", "from t"], ["from t", "b from"], ["f(a)", "f(a)"]]
        {
            let mut edits = Edits::new();
            edits.replace(span(one), "x").replace(span(other), "y");
            assert!(written(&edits).is_err(), "{one} and {other}");
            edits = Edits::new();
            edits.table(span(one), 1, "x").replace(span(other), "x");
            assert!(written(&edits).is_err(), "{one} and {other}");
        }
        let mut edits = Edits::new();
        edits.replace(span("f(a)"), "x").insert(span("a").start, "y");
        assert!(written(&edits).is_err());
        // What says the same twice says it once.
        edits = Edits::new();
        edits.insert_after(span("b"), " as c").insert_after(span("b"), " as c");
        assert_eq!(written(&edits).unwrap(), "select f(a), b as c from t");
        edits = Edits::new();
        edits.replace(span("f(a)"), "x").replace(span("f(a)"), "x");
        assert_eq!(written(&edits).unwrap(), "select x, b from t");
        // Two that cover one range say different things of it.
        edits = Edits::new();
        edits.cover(span("f(a)"), "x").cover(span("f(a)"), "y");
        assert!(written(&edits).is_err());
    }

    #[test]
    fn what_is_covered_goes_with_what_covers_it() {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let mut edits = Edits::new();
            for which in order {
                match which {
                    0 => edits.cover(span("f(a)"), "x"),
                    1 => edits.replace(span("a"), "1"),
                    2 => edits.table(span("f(a)"), 1, "t"),
                    _ => edits.insert_after(span("(a)"), " as gone"),
                };
            }
            assert_eq!(written(&edits).unwrap(), "select x, b from t");
        }
        let mut edits = Edits::new();
        edits.cover(span("f(a)"), "x").insert(span("f(a)").start, "y ").insert_after(span("select f(a)"), " as z");
        assert_eq!(written(&edits).unwrap(), "select y x as z, b from t");
    }

    #[test]
    fn a_range_has_its_edits_only() {
        let mut edits = Edits::new();
        edits.replace(span("a"), "1").replace(span("b"), "2").insert(span("b").end, " as c");
        assert_eq!(edits.apply_to(TEXT, span("f(a)")).unwrap().as_written(), "f(1)");
        assert_eq!(edits.apply_to(TEXT, span("b")).unwrap().as_written(), "2 as c");
        // What is behind a longer range that ends there is not.
        edits.insert_after(span("f(a), b"), " as d").append_to(span("b"), "::int");
        assert_eq!(edits.apply_to(TEXT, span("b")).unwrap().as_written(), "2::int as c");
        assert_eq!(written(&edits).unwrap(), "select f(1), 2::int as d as c from t");
        let mut edits = Edits::new();
        edits.replace(span("f(a)"), "1");
        assert!(edits.apply_to(TEXT, span("a")).is_err());
        assert!(edits.apply_to(TEXT, span("select f(")).is_err());
    }
}
