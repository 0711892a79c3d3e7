//! Parse, scan, inspect and splice SQL. The only crate that names the parser (`pg_query`, PostgreSQL 18's grammar).
//!
//! [`split`] gives the statements of a text: each with its kind, its tree ([`ast`]) and every relation it names. Text
//! is never printed from a tree: [`Splice`] keeps what the user wrote and replaces ranges of it.

mod alter;
pub mod ast;
mod bodies;
mod kind;
mod lift;
mod lower;
mod outline;
mod own;
mod references;
mod routine;
mod samples;
mod splice;
mod statement;
mod strings;
mod tokens;
mod unions;
mod walk;

pub use alter::{CheckedKeys, NewColumnKey, checked_keys, detached_concurrently, schema_of_extension, using_clauses};
pub use ast::Span;
pub use bodies::{Body, procedures_called, read_body};
pub use kind::*;
pub use lift::{Lifter, Literal, LiteralKind, liftable, write_value};
pub use outline::Outline;
pub use own::*;
pub use references::Qualifier;
pub use routine::{Piece, RoutineBody, Variable, calls_in_body, read_routine};
pub use samples::{OnlyNamed, Sampling, do_literals, executed_texts, only_named, samplings, strings_have_word};
pub use splice::*;
pub use statement::*;
pub use strings::escape_plain_strings;
pub use unions::UnionArms;
