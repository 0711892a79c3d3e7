//! What can go wrong between us and a server, by whose fault it is.

use pgherd_wire::backend::ErrorFields;
use pgherd_wire::frame::ProtocolError;

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The server could not be reached. Nothing was sent.
    #[error("could not connect to server at {address}: {source}")]
    Connect { address: String, source: std::io::Error },
    /// The server answered with an error of its own.
    #[error("{}", .0.message())]
    Server(Box<ErrorFields>),
    /// The connection ended while something was under way; whether it took effect is unknown.
    #[error("connection to server at {address} was lost: {reason}")]
    Lost {
        address: String,
        reason: String,
        /// The server's last word.
        said: Option<Box<ErrorFields>>,
    },
    /// The server said something that the protocol does not allow here.
    #[error("unexpected message from server at {address}: {reason}")]
    Protocol { address: String, reason: String },
    /// Every connection is in use and none came free in time.
    #[error("no connection to server at {address} came free within {waited_ms} ms")]
    Busy { address: String, waited_ms: u64 },
}

impl BackendError {
    pub(crate) fn protocol(address: &str, error: &ProtocolError) -> Self {
        BackendError::Protocol { address: address.to_owned(), reason: error.to_string() }
    }

    /// The error as a client may read it.
    pub fn to_fields(&self) -> ErrorFields {
        match self {
            BackendError::Server(fields) => (**fields).clone(),
            BackendError::Connect { .. } => ErrorFields::new("ERROR", "08001", self.to_string()),
            BackendError::Lost { .. } => ErrorFields::new("ERROR", "08006", self.to_string()),
            BackendError::Protocol { .. } => ErrorFields::new("ERROR", "08P01", self.to_string()),
            BackendError::Busy { .. } => ErrorFields::new("ERROR", "53300", self.to_string()),
        }
    }
}
