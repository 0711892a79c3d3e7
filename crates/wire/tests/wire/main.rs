//! Tests of the protocol crate: recorded bytes, split at every offset; what PostgreSQL answers; arbitrary bytes.

#![allow(clippy::unwrap_used)]

mod copy;
mod frames;
mod fuzz;
mod messages;
mod postgres;
mod random;
mod scram;
