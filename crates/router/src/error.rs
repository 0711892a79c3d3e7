//! How a statement, or a session, ends badly.

use pgherd_backend::BackendError;
use pgherd_sql::Overlap;
use pgherd_wire::backend::ErrorFields;
use pgherd_wire::frame::ProtocolError;

/// Why something could not be done for a client.
#[derive(Debug)]
pub enum Failure {
    /// The statement failed; the session goes on. What the client may read is inside.
    Statement(Box<ErrorFields>),
    /// The session ends with this message.
    Fatal(Box<ErrorFields>),
    /// The client is gone; nobody is left to be told.
    ClientGone,
}

pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    #[track_caller]
    pub fn new(sqlstate: &str, message: impl AsRef<str>) -> Self {
        Failure::Statement(Box::new(raised("ERROR", sqlstate, message.as_ref())))
    }

    #[track_caller]
    pub fn fatal(sqlstate: &str, message: impl AsRef<str>) -> Self {
        Failure::Fatal(Box::new(raised("FATAL", sqlstate, message.as_ref())))
    }

    /// In another of PostgreSQL's functions than the one that usually raises this error.
    pub fn in_routine(self, name: &str) -> Self {
        self.with(b'R', name)
    }

    /// What is not supported is refused by name.
    #[track_caller]
    pub fn refused(message: impl AsRef<str>) -> Self {
        Failure::new("0A000", message)
    }

    pub fn detail(self, text: impl AsRef<str>) -> Self {
        self.with(b'D', text.as_ref())
    }

    pub fn hint(self, text: impl AsRef<str>) -> Self {
        self.with(b'H', text.as_ref())
    }

    pub fn with(self, code: u8, text: &str) -> Self {
        match self {
            Failure::Statement(fields) => Failure::Statement(Box::new(fields.with(code, text))),
            other => other,
        }
    }

    pub fn without(self, code: u8) -> Self {
        match self {
            Failure::Statement(mut fields) => {
                fields.remove(code);
                Failure::Statement(fields)
            }
            other => other,
        }
    }

    pub fn sqlstate(&self) -> &str {
        match self {
            Failure::Statement(fields) | Failure::Fatal(fields) => fields.sqlstate(),
            Failure::ClientGone => "",
        }
    }
}

/// An error with the place that raises it: PostgreSQL's, where it is one of its own errors.
#[track_caller]
fn raised(severity: &str, sqlstate: &str, message: &str) -> ErrorFields {
    let caller = std::panic::Location::caller();
    ErrorFields::new(severity, sqlstate, message).at(caller.file(), caller.line())
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Failure::Statement(Box::new(error.to_fields()))
    }
}

impl From<ErrorFields> for Failure {
    fn from(fields: ErrorFields) -> Self {
        Failure::Statement(Box::new(fields))
    }
}

/// A malformed message from the client: an error, or the end of the session where its bytes cannot be told apart.
impl From<Overlap> for Failure {
    fn from(overlap: Overlap) -> Self {
        Failure::new("XX000", overlap.to_string())
    }
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Self {
        if error.log_only {
            tracing::info!("{error}");
            return Failure::ClientGone;
        }
        let fields = Box::new(error.to_fields());
        if fields.is_fatal() { Failure::Fatal(fields) } else { Failure::Statement(fields) }
    }
}
