//! What the router knows of one database: its nodes, tables, shards and functions, as an immutable [`Snapshot`] at an
//! epoch, and PostgreSQL's partition hash ([`hash`]).
//!
//! Pure: no sockets, no clock. Who loads a snapshot is `pgherd-router` (`metadata`), who changes the tables behind it
//! is `pgherd-cluster`.

mod chunked;
pub mod hash;
mod names;
mod routine;
mod snapshot;

pub use chunked::Chunked;
pub use names::NameSet;
pub use routine::{Argument, ArgumentMode, Routine};
pub use snapshot::*;
