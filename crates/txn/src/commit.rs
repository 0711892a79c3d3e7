//! Two-phase commit as a state machine. The router feeds it events and carries out the actions; it never acts itself.
//!
//! Order of things, which is what makes it safe: every PREPARE has answered before the decider commits; the decider's
//! commit has answered before any COMMIT PREPARED; a participant is rolled back only while no decision can exist.

use std::collections::BTreeSet;

use pgherd_catalog::GroupId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Participant {
    pub group: GroupId,
    /// It may have written. One that only read ends after the decision.
    pub wrote: bool,
    /// PostgreSQL would accept PREPARE TRANSACTION there (no temporary tables, NOTIFY, postgres_fdw, …).
    pub can_prepare: bool,
}

/// `citus.multi_shard_commit_protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    TwoPhase,
    /// Plain COMMITs one after another: faster, and not atomic when a server fails between them.
    OnePhase,
}

/// Two participants that PostgreSQL cannot prepare: refused before anything is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    pub first: GroupId,
    pub second: GroupId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// PREPARE TRANSACTION on each, in parallel.
    Prepare(Vec<GroupId>),
    /// On the decider, in one packet: record the commit, COMMIT.
    Decide(GroupId),
    /// Plain COMMIT, one at a time.
    Commit(GroupId),
    /// COMMIT PREPARED on each, in parallel; a failure is left to recovery.
    CommitPrepared(Vec<GroupId>),
    /// ROLLBACK PREPARED on each, in parallel; a failure is left to recovery.
    RollbackPrepared(Vec<GroupId>),
    /// ROLLBACK of a transaction that is not prepared.
    Rollback(Vec<GroupId>),
    /// COMMIT of those that only read; how it ends does not matter.
    EndReaders(Vec<GroupId>),
    Done(Outcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// PREPARE TRANSACTION, or plain COMMIT, succeeded.
    Succeeded(GroupId),
    /// It failed, and the server rolled back.
    Failed(GroupId),
    /// The connection was lost before the answer.
    Lost(GroupId),
    /// COMMIT PREPARED or ROLLBACK PREPARED, or the readers' end, was tried everywhere.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    RolledBack,
    /// The server that decides was lost while deciding (SQLSTATE 08007).
    Unknown,
    /// One-phase only: some participants committed and one failed.
    Partial,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// Waiting for these PREPAREs.
    Preparing(BTreeSet<GroupId>),
    Deciding,
    CommittingPrepared,
    RollingBackPrepared,
    RollingBack,
    /// One-phase: this one is being committed.
    Committing(GroupId),
    EndingReaders,
    Done,
}

/// One transaction's end.
#[derive(Debug, Clone)]
pub struct Commit {
    decider: Option<GroupId>,
    prepared: BTreeSet<GroupId>,
    /// PREPARE failed or was lost there.
    failed: BTreeSet<GroupId>,
    lost: BTreeSet<GroupId>,
    /// One-phase: still to be committed.
    queue: Vec<GroupId>,
    committed: BTreeSet<GroupId>,
    readers: Vec<GroupId>,
    stage: Stage,
    outcome: Outcome,
}

impl Commit {
    /// Chooses how to commit. The first action is returned with the machine.
    pub fn start(participants: &[Participant], protocol: Protocol) -> Result<(Commit, Action), Refused> {
        let writers: Vec<&Participant> = participants.iter().filter(|p| p.wrote).collect();
        let readers: Vec<GroupId> = participants.iter().filter(|p| !p.wrote).map(|p| p.group).collect();
        let mut machine = Commit {
            decider: None,
            prepared: BTreeSet::new(),
            failed: BTreeSet::new(),
            lost: BTreeSet::new(),
            queue: Vec::new(),
            committed: BTreeSet::new(),
            readers,
            stage: Stage::Done,
            outcome: Outcome::Committed,
        };
        if writers.len() <= 1 || protocol == Protocol::OnePhase {
            machine.queue = writers.iter().rev().map(|p| p.group).collect();
            let action = machine.next_commit();
            return Ok((machine, action));
        }
        let mut stubborn = writers.iter().filter(|p| !p.can_prepare);
        let decider = match (stubborn.next(), stubborn.next()) {
            (Some(first), Some(second)) => return Err(Refused { first: first.group, second: second.group }),
            (Some(one), None) => one.group,
            (None, _) => writers[0].group,
        };
        let prepare: Vec<GroupId> = writers.iter().map(|p| p.group).filter(|g| *g != decider).collect();
        machine.decider = Some(decider);
        machine.stage = Stage::Preparing(prepare.iter().copied().collect());
        Ok((machine, Action::Prepare(prepare)))
    }

    fn next_commit(&mut self) -> Action {
        match self.queue.pop() {
            Some(group) => {
                self.stage = Stage::Committing(group);
                Action::Commit(group)
            }
            None => self.end_readers(),
        }
    }

    fn end_readers(&mut self) -> Action {
        if self.readers.is_empty() {
            return self.done();
        }
        self.stage = Stage::EndingReaders;
        Action::EndReaders(std::mem::take(&mut self.readers))
    }

    fn done(&mut self) -> Action {
        self.stage = Stage::Done;
        Action::Done(self.outcome)
    }

    /// The legal moves. An event that does not belong to the stage is a defect of the caller and changes nothing.
    pub fn on(&mut self, event: Event) -> Option<Action> {
        match (self.stage.clone(), event) {
            (Stage::Preparing(waiting), Event::Succeeded(group) | Event::Failed(group) | Event::Lost(group))
                if waiting.contains(&group) =>
            {
                match event {
                    Event::Succeeded(_) => self.prepared.insert(group),
                    Event::Lost(_) => self.lost.insert(group),
                    _ => self.failed.insert(group),
                };
                let waiting: BTreeSet<GroupId> = waiting.into_iter().filter(|g| *g != group).collect();
                if !waiting.is_empty() {
                    self.stage = Stage::Preparing(waiting);
                    return None;
                }
                if self.failed.is_empty() && self.lost.is_empty() {
                    self.stage = Stage::Deciding;
                    return self.decider.map(Action::Decide);
                }
                Some(self.undo())
            }
            // The decider itself failed, before all had answered: nothing can be decided any more.
            (Stage::Preparing(_), Event::Failed(group) | Event::Lost(group)) if self.decider == Some(group) => {
                match event {
                    Event::Lost(_) => self.lost.insert(group),
                    _ => self.failed.insert(group),
                };
                None
            }
            (Stage::Deciding, Event::Succeeded(_)) => {
                self.stage = Stage::CommittingPrepared;
                Some(Action::CommitPrepared(self.prepared.iter().copied().collect()))
            }
            (Stage::Deciding, Event::Failed(group)) => {
                self.failed.insert(group);
                self.outcome = Outcome::RolledBack;
                self.stage = Stage::RollingBackPrepared;
                Some(Action::RollbackPrepared(self.prepared.iter().copied().collect()))
            }
            // Whether the record is there is for recovery to find out: the prepared ones stay as they are.
            (Stage::Deciding, Event::Lost(_)) => {
                self.outcome = Outcome::Unknown;
                Some(self.end_readers())
            }
            (Stage::CommittingPrepared, Event::Finished) => Some(self.end_readers()),
            (Stage::RollingBackPrepared, Event::Finished) => {
                // After a failed PREPARE the decider is still open; after a failed decision it is not.
                let open: Vec<GroupId> =
                    self.decider.into_iter().filter(|g| !self.failed.contains(g) && !self.lost.contains(g)).collect();
                if open.is_empty() {
                    return Some(self.end_readers());
                }
                self.stage = Stage::RollingBack;
                Some(Action::Rollback(open))
            }
            (Stage::RollingBack, Event::Finished) => Some(self.end_readers()),
            (Stage::Committing(group), Event::Succeeded(done)) if group == done => {
                self.committed.insert(group);
                Some(self.next_commit())
            }
            (Stage::Committing(group), Event::Failed(gone) | Event::Lost(gone)) if group == gone => {
                let unknown = matches!(event, Event::Lost(_));
                self.outcome = match (self.committed.is_empty(), unknown) {
                    (true, true) => Outcome::Unknown,
                    (true, false) => Outcome::RolledBack,
                    (false, _) => Outcome::Partial,
                };
                let rest: Vec<GroupId> = std::mem::take(&mut self.queue);
                if rest.is_empty() {
                    return Some(self.end_readers());
                }
                self.stage = Stage::RollingBack;
                Some(Action::Rollback(rest))
            }
            (Stage::EndingReaders, Event::Finished) => Some(self.done()),
            _ => None,
        }
    }

    /// Some PREPARE failed. One whose answer was lost may be prepared all the same: it is asked to roll back too, and
    /// recovery does it where that cannot be reached.
    fn undo(&mut self) -> Action {
        self.outcome = Outcome::RolledBack;
        self.stage = Stage::RollingBackPrepared;
        let asked = self.prepared.union(&self.lost).copied().filter(|group| Some(*group) != self.decider);
        Action::RollbackPrepared(asked.collect())
    }
}

#[cfg(test)]
mod tests;
