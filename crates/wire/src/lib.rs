//! PostgreSQL's frontend/backend protocol, version 3, as pure data: bytes to frames and messages and back, SCRAM, and
//! the rows of COPY.
//!
//! | module | what it is for |
//! |---|---|
//! | [`frame`] | where one message ends and the next begins; startup packets |
//! | [`frontend`] | what clients send |
//! | [`backend`] | what servers send |
//! | [`scram`] | SCRAM-SHA-256, both sides, and verifiers |
//! | [`copy`] | rows of COPY FROM data in all formats, and their distribution column |
//! | [`encoding`] | encodings of clients that are not UTF-8 |
//! | [`array`] | elements of arrays |
//! | [`forms`] | where the text is in values in binary format |
//! | [`multibyte`] | those of them that are learned from a server |
//! | [`error`] | what is wrong with bytes that break the protocol |
//! | [`places`] | where PostgreSQL raises the errors that others raise in its place |
//!
//! No sockets, no async, no clock and no random source: whoever reads the socket hands in a buffer and gets frames or
//! "need more"; nonces and salts are arguments. Follows <https://www.postgresql.org/docs/current/protocol.html>.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod array;
pub mod backend;
mod codec;
pub mod copy;
pub mod encoding;
pub mod error;
pub mod forms;
pub mod frame;
pub mod frontend;
pub mod multibyte;
pub mod places;
pub mod scram;

pub use backend::{ErrorFields, FieldDescription, TransactionStatus};
pub use error::ProtocolError;
pub use frame::{Frame, Startup, next_frame, next_startup, peek_frame};
pub use frontend::{BindMessage, FrontendMessage, parse_frontend};
