//! Which lines of the client's data the lines are that one server was sent: its errors name its own.

use std::collections::VecDeque;

use crate::error::Failure;

/// Rows that are remembered of each server: it is never so far behind.
const KEPT_MAX: usize = 1 << 18;

#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Lines that the server was sent.
    sent: u64,
    /// Of each row the last line, there and in the client's data.
    kept: VecDeque<(u64, u64)>,
}

impl Lines {
    /// Lines that are no row's.
    pub(super) fn header(&mut self, lines: u64) {
        self.sent += lines;
    }

    /// A row of so many lines, the last of which has this number in the client's data.
    pub(super) fn row(&mut self, lines: u64, number: u64) {
        self.sent += lines;
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back((self.sent, number));
    }

    fn number_of(&self, line: u64) -> Option<u64> {
        let at = self.kept.partition_point(|(there, _)| *there < line);
        let (there, number) = self.kept.get(at)?;
        number.checked_sub(there - line)
    }

    /// The error of a COPY into `table` with the client's number in its context.
    pub(super) fn translate(&self, failure: Failure, table: &str) -> Failure {
        let Failure::Statement(mut fields) = failure else { return failure };
        let prefix = format!("COPY {table}, line ");
        let found = fields.get(b'W').and_then(|context| {
            let at = context.find(&prefix)? + prefix.len();
            let digits = context[at..].bytes().take_while(u8::is_ascii_digit).count();
            let number = self.number_of(context[at..at + digits].parse().ok()?)?;
            Some(format!("{}{number}{}", &context[..at], &context[at + digits..]))
        });
        if let Some(context) = found {
            fields.set(b'W', context);
        }
        Failure::Statement(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_client() {
        let mut lines = Lines::default();
        lines.header(1);
        lines.row(1, 3);
        lines.row(3, 9);
        lines.row(1, 12);
        assert_eq!([2, 3, 4, 5, 6].map(|line| lines.number_of(line)), [3, 7, 8, 9, 12].map(Some));
        assert_eq!(lines.number_of(7), None);
        let failure = Failure::new("22P02", "wrong").with(b'W', "COPY t, line 6, column v: \"COPY t, line 5\"");
        let Failure::Statement(fields) = lines.translate(failure, "t") else { panic!("no longer an error") };
        assert_eq!(fields.get(b'W'), Some("COPY t, line 12, column v: \"COPY t, line 5\""));
    }
}
