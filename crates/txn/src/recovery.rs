//! What becomes of a prepared transaction whose router is gone.
//!
//! Whoever finds it asks the decider to record an abort under the transaction's id. The unique index arbitrates: the
//! insert waits for a decision in flight, and loses to one that was made.

/// What the decider answered when asked to record an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeciderSays {
    /// A commit record is there: the transaction was committed.
    Committed,
    /// The abort is on record now (or was before): it can never be committed.
    Aborted,
    /// It has not been decided, and may yet be: a client has prepared it.
    InProgress,
    /// The decider did not answer.
    Unreachable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    CommitPrepared,
    RollbackPrepared,
    /// Leave it as it is: in doubt, and safe that way.
    Wait,
}

pub fn step(answer: DeciderSays) -> Step {
    match answer {
        DeciderSays::Committed => Step::CommitPrepared,
        DeciderSays::Aborted => Step::RollbackPrepared,
        DeciderSays::InProgress | DeciderSays::Unreachable => Step::Wait,
    }
}
