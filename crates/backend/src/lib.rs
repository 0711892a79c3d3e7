//! Connections to PostgreSQL servers: connect and authenticate ([`connect`]), one connection's frames in order
//! ([`Connection`]), pooling per thread ([`Pool`]), connections that many clients share ([`lane`]) and cancelling
//! ([`cancel`]).
//!
//! Lives on one thread: nothing here is shared between threads. What is sent and what replies mean is the router's business.

mod budget;
mod cancel;
mod connect;
mod connection;
mod error;
pub mod lane;
pub mod liveness;
mod pool;
mod settings;
mod statements;

pub use budget::{BlockPlace, Budget, CONNECTIONS_DEFAULT, CONNECTIONS_MIN, ServerBudget, connections_of};
pub use cancel::{CancelKey, cancel};
pub use connect::{Address, Credentials, Target, connect};
pub use connection::{Connection, QueryResult};
pub use error::BackendError;
pub use pool::{Claim, Lease, Pool, PoolKey, PoolLimits};
pub use settings::Settings;
pub use statements::{STATEMENT_BYTES_MAX, STATEMENTS_MAX, Statements};
