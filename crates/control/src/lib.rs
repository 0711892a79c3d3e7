//! What cluster operations do, as SQL text: which statements run on which node to make a table distributed, to change
//! it and to drop it, and the schema of our own that every node carries.
//!
//! Pure: text in, text out. Facts come in as JSON that the functions of `sql/describe.sql` return ([`describe`],
//! [`cluster_state`]); the router runs what comes out inside the client's transaction, on its own connections.

pub mod cluster_state;
pub mod ddl;
pub mod describe;
pub mod distribute;
pub mod encoding;
pub mod operation;
mod options;
pub mod quote;
pub mod schema;

pub use schema::{COORDINATOR_SCHEMA, COPY_NODES_SOURCE, WORKER_SCHEMA, callback_server_sql};

/// An operation that cannot be done, in PostgreSQL's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub sqlstate: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(sqlstate: &'static str, message: impl Into<String>) -> Self {
        Refusal { sqlstate, message: message.into(), detail: None, hint: None }
    }

    /// `0A000 feature_not_supported`.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Refusal::new("0A000", message)
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.sqlstate, self.message)?;
        if let Some(detail) = &self.detail {
            write!(f, "\nDETAIL: {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nHINT: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}
