//! The embedded cluster: a coordinator and workers on this machine's loopback, made and kept by `pgherd up`.
//!
//! - [`PgBin`]: PostgreSQL's programs, downloaded or installed
//! - [`Server`]: one server, for tests and benchmarks too
//! - [`Cluster`]: coordinator and workers in a directory, with a state file, so that any later process goes on
//! - [`RouterSlot`] and [`RouterProcess`]: the router's place in that directory, seen from inside and outside
//!
//! It leaves to others what nodes mean: registering them is SQL through the router (the `pgherd` binary does it), and
//! servers that somebody else runs are none of its business. Everything here blocks; it may be killed at any moment.

mod cluster;
mod error;
mod os;
mod pg_bin;
mod router_process;
mod server;

pub use cluster::{COORDINATOR, Cluster, ClusterSpec, ClusterState, NodeState, NodeStatus};
pub use error::{EmbeddedError, ErrorKind, LogExcerpt};
pub use os::{FileLock, ProcessId, ServerUser, free_port, make_directories, port_is_free, write_atomically};
pub use pg_bin::{DEFAULT_VERSION, MAJOR_MAX_TESTED, MAJOR_MIN, PgBin, home_dir};
pub use router_process::{RouterProcess, RouterSlot};
pub use server::{Auth, Server, ServerSpec, StopMode, default_settings};
