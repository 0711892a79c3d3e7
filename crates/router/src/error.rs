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
    pub fn new(sqlstate: &str, message: impl AsRef<str>) -> Self {
        Failure::Statement(Box::new(ErrorFields::new("ERROR", sqlstate, message.as_ref())))
    }

    pub fn fatal(sqlstate: &str, message: impl AsRef<str>) -> Self {
        Failure::Fatal(Box::new(ErrorFields::new("FATAL", sqlstate, message.as_ref())))
    }

    /// What is not supported is refused by name.
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
        let fields = Box::new(error.to_fields());
        if fields.is_fatal() { Failure::Fatal(fields) } else { Failure::Statement(fields) }
    }
}
