//! Where lines of text and CSV end (`CopyReadLineText`). Progress inside a line is kept, so that a long line that comes
//! in many pieces is looked at once.

use super::{CopyErrorKind, CopyFormat, CopyOptions};

/// One line at the front of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    /// Bytes before the newline or end marker.
    pub content: usize,
    /// With them.
    pub total: usize,
    pub ending: Ending,
    /// No backslash (text) and no quote (CSV) is in it: each delimiter ends a field, each field is what it looks like.
    pub plain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Newline,
    /// `\.`: what follows is not data.
    Marker,
    EndOfData,
}

/// How lines end: settled by the first one, then the same for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Unknown,
    Lf,
    Cr,
    CrLf,
}

#[derive(Debug)]
pub(super) struct LineScan {
    csv: bool,
    quote: u8,
    /// None if it is the quote.
    escape: Option<u8>,
    /// PostgreSQL 18 and later: `\.` is nothing special in CSV, and must be alone on its line in text.
    strict_marker: bool,
    style: Style,
    /// Of the line under way.
    pub number: u64,
    /// The line under way has its number.
    begun: bool,
    /// Bytes of it that were looked at.
    scanned: usize,
    in_quote: bool,
    last_was_escape: bool,
    /// A backslash (text) or a quote (CSV) was seen in it.
    special: bool,
}

/// What `\.` turned out to be.
enum Marker {
    NeedMore,
    Data,
    /// And the end of it in the buffer.
    End(usize),
}

impl LineScan {
    pub fn new(options: &CopyOptions) -> Self {
        Self {
            csv: options.format == CopyFormat::Csv,
            quote: options.quote,
            escape: (options.escape != options.quote).then_some(options.escape),
            strict_marker: options.server_major >= 18,
            style: Style::Unknown,
            number: 0,
            begun: false,
            scanned: 0,
            in_quote: false,
            last_was_escape: false,
            special: false,
        }
    }

    /// The line at the front of `data`, or None if more data is needed. `finished`: no more will come. The caller takes
    /// the whole line off before it asks again.
    pub fn find(&mut self, data: &[u8], finished: bool) -> Result<Option<Line>, CopyErrorKind> {
        if !self.begun {
            if data.is_empty() && !finished {
                return Ok(None);
            }
            self.number += 1;
            self.begun = true;
        }
        let mut found = if self.csv { self.find_csv(data, finished) } else { self.find_text(data, finished) }?;
        if let Some(line) = &mut found {
            line.plain = !self.special;
            (self.begun, self.scanned, self.in_quote, self.last_was_escape) = (false, 0, false, false);
            self.special = false;
        }
        Ok(found)
    }

    fn find_text(&mut self, data: &[u8], finished: bool) -> Result<Option<Line>, CopyErrorKind> {
        while let Some(skip) = memchr::memchr3(b'\n', b'\r', b'\\', &data[self.scanned..]) {
            let at = self.scanned + skip;
            // Where the next byte must be known, the scan starts over from here when it is.
            self.scanned = at;
            self.special |= data[at] == b'\\';
            match data[at] {
                b'\\' => match data.get(at + 1) {
                    None if !finished => return Ok(None),
                    None => break,
                    Some(b'.') => match self.marker(data, at, finished)? {
                        Marker::NeedMore => return Ok(None),
                        Marker::End(total) => {
                            return Ok(Some(Line { content: at, total, ending: Ending::Marker, plain: false }));
                        }
                        // Only CSV takes it as data.
                        Marker::Data => self.scanned = at + 2,
                    },
                    // Whatever follows a backslash is data, a newline too.
                    Some(_) => self.scanned = at + 2,
                },
                newline => match self.newline(newline, data, at, finished)? {
                    None => return Ok(None),
                    found => return Ok(found),
                },
            }
        }
        Ok(self.rest(data, finished))
    }

    fn find_csv(&mut self, data: &[u8], finished: bool) -> Result<Option<Line>, CopyErrorKind> {
        if self.scanned == 0 && !self.strict_marker && data.first() == Some(&b'\\') {
            let marker = match data.get(1) {
                None if !finished => return Ok(None),
                Some(b'.') => self.marker(data, 0, finished)?,
                _ => Marker::Data,
            };
            match marker {
                Marker::NeedMore => return Ok(None),
                Marker::End(total) => {
                    return Ok(Some(Line { content: 0, total, ending: Ending::Marker, plain: false }));
                }
                Marker::Data => {}
            }
        }
        loop {
            let rest = &data[self.scanned..];
            let found = if self.in_quote {
                memchr::memchr3(self.quote, self.escape.unwrap_or(self.quote), self.counted_newline(), rest)
            } else {
                memchr::memchr3(self.quote, b'\n', b'\r', rest)
            };
            // An escape holds for the very next byte, also where that is none of those looked for.
            if found != Some(0) && !rest.is_empty() {
                self.last_was_escape = false;
            }
            let Some(skip) = found else { break };
            let at = self.scanned + skip;
            let byte = data[at];
            if byte == b'\r' && at + 1 == data.len() && !finished {
                // It may need the byte after it; nothing may have changed when this one is looked at again.
                self.scanned = at;
                return Ok(None);
            }
            let is_escape = self.escape == Some(byte);
            if self.in_quote && is_escape {
                self.last_was_escape = !self.last_was_escape;
            }
            self.special |= byte == self.quote;
            if byte == self.quote && !self.last_was_escape {
                self.in_quote = !self.in_quote;
            }
            if !is_escape {
                self.last_was_escape = false;
            }
            if self.in_quote {
                self.number += u64::from(byte == self.counted_newline());
            } else if matches!(byte, b'\n' | b'\r') {
                self.scanned = at;
                return self.newline(byte, data, at, finished);
            }
            self.scanned = at + 1;
        }
        Ok(self.rest(data, finished))
    }

    /// The byte that counts as a line inside quotes.
    fn counted_newline(&self) -> u8 {
        if self.style == Style::Lf { b'\n' } else { b'\r' }
    }

    /// A newline byte outside quotes. None: the byte after a carriage return must be known.
    fn newline(&mut self, byte: u8, data: &[u8], at: usize, finished: bool) -> Result<Option<Line>, CopyErrorKind> {
        let line = |total| Ok(Some(Line { content: at, total, ending: Ending::Newline, plain: false }));
        if byte == b'\n' {
            if matches!(self.style, Style::Cr | Style::CrLf) {
                return Err(CopyErrorKind::LiteralNewline);
            }
            self.style = Style::Lf;
            return line(at + 1);
        }
        match self.style {
            Style::Lf => Err(CopyErrorKind::LiteralCarriageReturn),
            Style::Cr => line(at + 1),
            Style::Unknown | Style::CrLf => match data.get(at + 1) {
                None if !finished => Ok(None),
                Some(b'\n') => {
                    self.style = Style::CrLf;
                    line(at + 2)
                }
                _ if self.style == Style::CrLf => Err(CopyErrorKind::LiteralCarriageReturn),
                _ => {
                    self.style = Style::Cr;
                    line(at + 1)
                }
            },
        }
    }

    /// `\.` at `at`: the end of the data if its line ends right behind it as the other lines do.
    fn marker(&self, data: &[u8], at: usize, finished: bool) -> Result<Marker, CopyErrorKind> {
        let corrupt = |csv| match (csv, self.strict_marker) {
            (true, _) => Ok(Marker::Data),
            (false, true) => Err(CopyErrorKind::MarkerNotAlone),
            (false, false) => Err(CopyErrorKind::MarkerCorrupt),
        };
        let mut next = at + 2;
        if self.style == Style::CrLf {
            match data.get(next) {
                None if !finished => return Ok(Marker::NeedMore),
                Some(b'\r') => next += 1,
                Some(b'\n') if !self.csv => return Err(CopyErrorKind::MarkerNewlineStyle),
                _ => return corrupt(self.csv),
            }
        }
        let newline = match data.get(next) {
            None if !finished => return Ok(Marker::NeedMore),
            Some(newline @ (b'\r' | b'\n')) => *newline,
            _ => return corrupt(self.csv),
        };
        let expected = match self.style {
            Style::Unknown => newline,
            Style::Lf | Style::CrLf => b'\n',
            Style::Cr => b'\r',
        };
        if newline != expected {
            return Err(CopyErrorKind::MarkerNewlineStyle);
        }
        if self.strict_marker && at > 0 {
            return Err(CopyErrorKind::MarkerNotAlone);
        }
        Ok(Marker::End(next + 1))
    }

    /// No newline is left in `data`.
    fn rest(&mut self, data: &[u8], finished: bool) -> Option<Line> {
        self.scanned = data.len();
        finished.then_some(Line { content: data.len(), total: data.len(), ending: Ending::EndOfData, plain: false })
    }
}
