//! How a command that failed says so: one line, the end of the log that tells more, a hint.

use pgherd_cluster::embedded::{EmbeddedError, LogExcerpt};

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    log: Option<LogExcerpt>,
    hint: Option<String>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), log: None, hint: None }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn log(mut self, log: LogExcerpt) -> Failure {
        self.log = Some(log);
        self
    }

    /// What is printed, lines ended.
    pub fn text(&self) -> String {
        let mut text = format!("pgherd: error: {}", self.message);
        match &self.log {
            None => text.push('\n'),
            Some(log) if log.lines.is_empty() => {
                text.push_str(&format!(" (log file \"{}\" has nothing more)\n", log.path.display()));
            }
            Some(log) => {
                text.push_str(&format!("; the log file \"{}\" ends with\n", log.path.display()));
                for line in &log.lines {
                    text.push_str(&format!("    {line}\n"));
                }
            }
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("hint: {hint}\n"));
        }
        text
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Failure {
        Failure { message: error.message, log: error.log, hint: error.hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_line_the_end_of_the_log_and_a_hint() {
        let log = LogExcerpt { path: "/c/server.log".into(), lines: vec!["LOG:  one".into(), "FATAL:  two".into()] };
        let failure = Failure::new("the server did not start").log(log).hint("make room");
        assert_eq!(
            failure.text(),
            "pgherd: error: the server did not start; the log file \"/c/server.log\" ends with\n    LOG:  one\n    \
             FATAL:  two\nhint: make room\n"
        );
        assert_eq!(Failure::new("no").text(), "pgherd: error: no\n");
    }
}
