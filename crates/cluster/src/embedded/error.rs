//! The one error type of the embedded cluster: a line that says what is wrong, the end of the log that tells more, and
//! a hint that says what to do. The command line prints these three as they are; nothing here decides how.

use std::fmt;
use std::path::{Path, PathBuf};

/// How many lines of a log file an error shows.
const LOG_LINES_MAX: usize = 12;

/// What went wrong, by whose fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What the user asked for cannot be: a wrong version, fewer workers than there are, a directory of something else.
    Usage,
    /// A port, or the cluster's lock, is in use by somebody else.
    Busy,
    /// PostgreSQL's programs could not be had.
    Binaries,
    /// A server did not do what it was told; see the log.
    Server,
    /// The operating system refused something: files, users, permissions.
    System,
}

/// The end of a log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogExcerpt {
    pub path: PathBuf,
    /// The last lines, oldest first; empty if the file could not be read or has none.
    pub lines: Vec<String>,
}

impl LogExcerpt {
    /// Reads the end of `path`, at most [`LOG_LINES_MAX`] lines that were written after byte `from`.
    pub fn read(path: &Path, from: u64) -> LogExcerpt {
        let text = read_from(path, from);
        let mut lines: Vec<String> = text.lines().rev().take(LOG_LINES_MAX).map(str::to_owned).collect();
        lines.reverse();
        LogExcerpt { path: path.to_owned(), lines }
    }
}

/// How much of the end of a log is looked at; logs may be large.
const LOG_BYTES_MAX: u64 = 64 * 1024;

/// What `path` holds after byte `from`, or its last [`LOG_BYTES_MAX`] bytes if that is less; empty if it cannot be
/// read.
pub(crate) fn read_from(path: &Path, from: u64) -> String {
    use std::io::{Read, Seek, SeekFrom};
    let mut bytes = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let length = file.metadata().map(|meta| meta.len()).unwrap_or(0);
        let start = from.max(length.saturating_sub(LOG_BYTES_MAX));
        let _ = file.seek(SeekFrom::Start(start)).and_then(|_| file.take(LOG_BYTES_MAX).read_to_end(&mut bytes));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An error of the embedded cluster. `Display` gives the one line; the rest is in the fields.
#[derive(Debug)]
pub struct EmbeddedError {
    pub kind: ErrorKind,
    pub message: String,
    pub log: Option<LogExcerpt>,
    pub hint: Option<String>,
}

impl EmbeddedError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        EmbeddedError { kind, message: message.into(), log: None, hint: None }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// `could not <doing> "<path>": <what the system said>`.
    pub fn io(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(ErrorKind::System, format!("could not {doing} \"{}\": {error}", path.display()))
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn log(mut self, log: LogExcerpt) -> Self {
        self.log = Some(log);
        self
    }
}

impl fmt::Display for EmbeddedError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)?;
        if let Some(log) = &self.log {
            write!(out, " (log file \"{}\")", log.path.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for EmbeddedError {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_log_is_read() {
        let path = std::env::temp_dir().join(format!("pgherd-log-{}", std::process::id()));
        let text: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&path, &text).unwrap();
        let excerpt = LogExcerpt::read(&path, 0);
        assert_eq!(excerpt.lines.len(), LOG_LINES_MAX);
        assert_eq!(excerpt.lines.last().map(String::as_str), Some("line 99999"));
        let from = text.len() as u64 - "line 99999\n".len() as u64;
        assert_eq!(LogExcerpt::read(&path, from).lines, ["line 99999"]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(LogExcerpt::read(&path, 0).lines, [""; 0]);
    }
}
