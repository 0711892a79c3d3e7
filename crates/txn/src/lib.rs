//! Ending a transaction that ran on several servers: what to do next as a pure state machine ([`Commit`]), the names
//! of prepared transactions ([`Gid`]) and what to do with an orphaned one ([`recovery`]).
//!
//! DESIGN.md section 5. The decider does not prepare: its own COMMIT, which inserts the commit record, is the decision.

mod commit;
mod gid;
pub mod recovery;

pub use commit::{Action, Commit, Event, Outcome, Participant, Protocol, Refused};
pub use gid::{Gid, number_of, of_number};
