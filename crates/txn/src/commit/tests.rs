//! Every path of the machine, and a seeded simulation that checks atomicity whatever fails.

use std::collections::BTreeMap;

use super::*;

fn writer(group: GroupId) -> Participant {
    Participant { group, wrote: true, can_prepare: true }
}

fn reader(group: GroupId) -> Participant {
    Participant { group, wrote: false, can_prepare: true }
}

fn start(participants: &[Participant], protocol: Protocol) -> (Commit, Action) {
    match Commit::start(participants, protocol) {
        Ok(started) => started,
        Err(refused) => panic!("refused: {refused:?}"),
    }
}

#[test]
fn one_writer_commits_plainly_and_readers_end_after_it() {
    let (mut commit, first) = start(&[reader(1), writer(2), reader(3)], Protocol::TwoPhase);
    assert_eq!(first, Action::Commit(2));
    assert_eq!(commit.on(Event::Succeeded(2)), Some(Action::EndReaders(vec![1, 3])));
    assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::Committed)));
}

#[test]
fn readers_alone_need_no_decision() {
    let (mut commit, first) = start(&[reader(1), reader(3)], Protocol::TwoPhase);
    assert_eq!(first, Action::EndReaders(vec![1, 3]));
    assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::Committed)));
}

#[test]
fn the_decision_waits_for_every_prepare() {
    let (mut commit, first) = start(&[writer(0), writer(1), writer(2)], Protocol::TwoPhase);
    assert_eq!(first, Action::Prepare(vec![1, 2]));
    assert_eq!(commit.on(Event::Succeeded(2)), None);
    assert_eq!(commit.on(Event::Succeeded(1)), Some(Action::Decide(0)));
    assert_eq!(commit.on(Event::Succeeded(0)), Some(Action::CommitPrepared(vec![1, 2])));
    assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::Committed)));
}

#[test]
fn a_failed_prepare_rolls_back_the_prepared_and_the_decider() {
    let (mut commit, _) = start(&[writer(0), writer(1), writer(2)], Protocol::TwoPhase);
    assert_eq!(commit.on(Event::Failed(1)), None);
    assert_eq!(commit.on(Event::Succeeded(2)), Some(Action::RollbackPrepared(vec![2])));
    assert_eq!(commit.on(Event::Finished), Some(Action::Rollback(vec![0])));
    assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::RolledBack)));
}

#[test]
fn a_lost_decision_leaves_the_prepared_for_recovery() {
    let (mut commit, _) = start(&[writer(0), writer(1)], Protocol::TwoPhase);
    assert_eq!(commit.on(Event::Succeeded(1)), Some(Action::Decide(0)));
    assert_eq!(commit.on(Event::Lost(0)), Some(Action::Done(Outcome::Unknown)));
}

#[test]
fn one_that_cannot_prepare_decides() {
    let stubborn = Participant { group: 2, wrote: true, can_prepare: false };
    let (_, first) = start(&[writer(1), stubborn, writer(3)], Protocol::TwoPhase);
    assert_eq!(first, Action::Prepare(vec![1, 3]));
}

#[test]
fn two_that_cannot_prepare_are_refused_before_any_prepare() {
    let stubborn = |group| Participant { group, wrote: true, can_prepare: false };
    let refused = Commit::start(&[stubborn(0), stubborn(1)], Protocol::TwoPhase).map(|_| ());
    assert_eq!(refused, Err(Refused { first: 0, second: 1 }));
}

#[test]
fn one_phase_says_so_when_it_ended_half_way() {
    let (mut commit, first) = start(&[writer(1), writer(2), writer(3)], Protocol::OnePhase);
    assert_eq!(first, Action::Commit(1));
    assert_eq!(commit.on(Event::Succeeded(1)), Some(Action::Commit(2)));
    assert_eq!(commit.on(Event::Failed(2)), Some(Action::Rollback(vec![3])));
    assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::Partial)));
}

/// What one simulated server holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Prepared,
    Committed,
    RolledBack,
}

/// A small generator: the seed is all there is to repeat a run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Runs one transaction with failures and a crash of the router at any action, then recovery; all writers must agree.
fn simulate(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let count = 2 + random.below(4) as i32;
    let participants: Vec<Participant> = (0..count)
        .map(|group| Participant { group, wrote: group < 2 || random.below(4) > 0, can_prepare: true })
        .collect();
    let mut servers: BTreeMap<GroupId, State> =
        participants.iter().filter(|p| p.wrote).map(|p| (p.group, State::Open)).collect();
    let decider = 0;
    let mut recorded = false;
    let (mut commit, mut action) = start(&participants, Protocol::TwoPhase);
    let mut told = None;
    'run: loop {
        if random.below(12) == 0 {
            break 'run; // The router dies here.
        }
        let mut next = None;
        match action.clone() {
            Action::Prepare(groups) => {
                for group in groups {
                    let event = match random.below(10) {
                        0 => {
                            servers.insert(group, State::RolledBack);
                            Event::Failed(group)
                        }
                        1 => {
                            let state = if random.below(2) == 0 { State::Prepared } else { State::RolledBack };
                            servers.insert(group, state);
                            Event::Lost(group)
                        }
                        _ => {
                            servers.insert(group, State::Prepared);
                            Event::Succeeded(group)
                        }
                    };
                    next = commit.on(event).or(next);
                }
            }
            Action::Decide(group) => {
                assert!(
                    servers.iter().all(|(g, s)| *g == decider || *s == State::Prepared),
                    "seed {seed}: {servers:?}"
                );
                let event = match random.below(6) {
                    0 => {
                        servers.insert(group, State::RolledBack);
                        Event::Failed(group)
                    }
                    1 => {
                        let committed = random.below(2) == 0;
                        recorded = committed;
                        servers.insert(group, if committed { State::Committed } else { State::RolledBack });
                        Event::Lost(group)
                    }
                    _ => {
                        recorded = true;
                        servers.insert(group, State::Committed);
                        Event::Succeeded(group)
                    }
                };
                next = commit.on(event);
            }
            Action::CommitPrepared(groups) => {
                assert!(recorded, "seed {seed}: committed before the decision");
                for group in groups {
                    if random.below(5) > 0 {
                        servers.insert(group, State::Committed);
                    }
                }
                next = commit.on(Event::Finished);
            }
            Action::RollbackPrepared(groups) => {
                assert!(!recorded, "seed {seed}: rolled back after the decision");
                for group in groups {
                    if random.below(5) > 0 {
                        servers.insert(group, State::RolledBack);
                    }
                }
                next = commit.on(Event::Finished);
            }
            Action::Rollback(groups) => {
                for group in groups {
                    servers.insert(group, State::RolledBack);
                }
                next = commit.on(Event::Finished);
            }
            Action::EndReaders(_) => next = commit.on(Event::Finished),
            Action::Commit(_) => panic!("seed {seed}: plain commit among several writers"),
            Action::Done(outcome) => {
                told = Some(outcome);
                break 'run;
            }
        }
        match next {
            Some(following) => action = following,
            None => panic!("seed {seed}: stuck after {action:?}"),
        }
    }
    // Servers drop what a dead connection left open; recovery settles what is prepared.
    for state in servers.values_mut() {
        *state = match *state {
            State::Open => State::RolledBack,
            State::Prepared if recorded => State::Committed,
            State::Prepared => State::RolledBack,
            settled => settled,
        };
    }
    let expected = if recorded { State::Committed } else { State::RolledBack };
    assert!(servers.values().all(|s| *s == expected), "seed {seed}: {servers:?}");
    match told {
        Some(Outcome::Committed) => assert!(recorded, "seed {seed}: told committed"),
        Some(Outcome::RolledBack) => assert!(!recorded, "seed {seed}: told rolled back"),
        _ => {}
    }
}

#[test]
fn all_writers_agree_whatever_fails() {
    for seed in 1..20_000 {
        simulate(seed);
    }
}

#[test]
fn a_decider_that_fails_while_others_prepare_rolls_all_back() {
    for lost in [false, true] {
        let (mut commit, first) = start(&[writer(1), writer(2), writer(3)], Protocol::TwoPhase);
        assert_eq!(first, Action::Prepare(vec![2, 3]));
        assert_eq!(commit.on(if lost { Event::Lost(1) } else { Event::Failed(1) }), None);
        assert_eq!(commit.on(Event::Succeeded(2)), None);
        assert_eq!(commit.on(Event::Succeeded(3)), Some(Action::RollbackPrepared(vec![2, 3])));
        assert_eq!(commit.on(Event::Finished), Some(Action::Done(Outcome::RolledBack)));
    }
}
