//! A statement's text with some ranges replaced, so that everything the user wrote stays as it was written, and error
//! positions can be mapped back.

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
            }
        }
        out
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
            };
            if rendered < at + len {
                return origin.map(|o| if exact { o + (rendered - at) } else { o });
            }
            at += len;
        }
        None
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
}

/// Collects replacements of ranges of one text and writes the [`Splice`]. Ranges may come in any order; one that
/// overlaps an earlier-starting one is dropped with it (the outer replacement wins).
#[derive(Debug, Clone, Default)]
pub struct Edits {
    list: Vec<(Span, Replacement)>,
}

impl Edits {
    pub fn new() -> Self {
        Edits::default()
    }

    pub fn replace(&mut self, span: Span, text: impl Into<String>) -> &mut Self {
        self.add(span, Replacement::Text(text.into()));
        self
    }

    /// Keeps the list in the order of the text, outer ranges first; edits mostly come in that order.
    fn add(&mut self, span: Span, replacement: Replacement) {
        let order = |s: &Span| (s.start, std::cmp::Reverse(s.end));
        let at = self.list.partition_point(|(s, _)| order(s) <= order(&span));
        self.list.insert(at, (span, replacement));
    }

    /// Takes the replacements of another over.
    pub fn extend(&mut self, other: Edits) -> &mut Self {
        other.list.into_iter().for_each(|(span, replacement)| self.add(span, replacement));
        self
    }

    /// The same where what they are of stands in a longer text. Splices keep the positions that they have.
    pub fn extend_at(&mut self, other: Edits, start: usize) -> &mut Self {
        let there = |span: Span| Span::new(start + span.start, start + span.end);
        other.list.into_iter().for_each(|(span, replacement)| self.add(there(span), replacement));
        self
    }

    /// Inserts text before a byte position.
    pub fn insert(&mut self, at: usize, text: impl Into<String>) -> &mut Self {
        self.replace(Span::new(at, at), text)
    }

    pub fn table(&mut self, span: Span, table: u32, as_written: impl Into<String>) -> &mut Self {
        self.add(span, Replacement::Table { table, as_written: as_written.into() });
        self
    }

    /// Inserts what is made of other ranges of the text.
    pub fn insert_splice(&mut self, at: usize, splice: Splice) -> &mut Self {
        self.add(Span::new(at, at), Replacement::Splice(splice));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The whole text with the replacements made.
    pub fn apply(&self, text: &str) -> Splice {
        self.apply_to(text, Span::new(0, text.len()))
    }

    /// A range of the text with the replacements that lie in it made.
    pub fn apply_to(&self, text: &str, range: Span) -> Splice {
        let mut splice = Splice::default();
        let mut at = range.start;
        let from = self.list.partition_point(|(s, _)| s.start < range.start);
        for (span, replacement) in self.list.iter().skip(from).take_while(|(s, _)| s.start <= range.end) {
            if span.start < at || span.end > range.end {
                continue;
            }
            splice.push_text(Span::new(at, span.start).of(text), Some(at));
            match replacement {
                Replacement::Text(new) => splice.push_text(new, None),
                Replacement::Splice(new) => splice.append(new.clone()),
                Replacement::Table { table, as_written } => splice.parts.push(Part::Table {
                    table: *table,
                    as_written: as_written.clone(),
                    origin: Some(span.start),
                }),
            }
            at = span.end;
        }
        splice.push_text(Span::new(at, range.end).of(text), Some(at));
        splice
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
