//! The router: client sessions in front, servers behind. Speaks PostgreSQL's protocol to clients, asks `pgherd-planner`
//! what to do with each statement and does it on leased connections. The only place where an internal error becomes an
//! ErrorResponse.
//!
//! Entry points: [`serve`] (threads, accepting), `session` (one client), `run` (one plan per file).

mod activity;
mod callback;
mod callers;
mod cancel;
mod changes;
mod client;
mod conversions;
mod database;
mod deadlock;
mod departed;
mod describe;
mod encoding;
mod error;
mod finish;
mod group;
mod inside;
mod listen;
mod load;
mod login;
mod names;
mod placement;
mod procedures;
mod recovery;
mod rights;
mod row_names;
mod run;
mod sequences;
mod session;
mod settings;
mod shared;
mod sizes;
mod startup;
mod text;
mod transaction;
mod upsert;
mod waiting;

pub use database::init;
pub use listen::{AuthMode, CoordinatorUrl, ServeConfig, ServeError, serve};
