//! Tests of the whole product: throw-away servers and clusters, a raw protocol client, and a runner that gives the
//! same SQL to PostgreSQL and to a cluster and compares all that a client can see.
//!
//! The tests that need the `pgherd` binary live in `crates/pgherd/tests`, their data in `tests/` at the workspace root.
//! Nothing here uses another crate of ours: the protocol is read a second time, so that a mistake in `pgherd-wire`
//! does not hide itself.

pub mod client;
mod cluster;
pub mod differential;
pub mod fuzz;
mod keeper;
mod plain;
pub mod regress;
pub mod script;
mod target;

pub use cluster::Cluster;
pub use plain::{Plain, pg_bin, run_as_owner};
pub use target::{Side, Target, workspace_file, workspace_root};

/// What a test helper fails with: a sentence for the person who reads the test's output.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T, E = Error> = std::result::Result<T, E>;
