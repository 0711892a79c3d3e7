//! CancelRequest: which server connections a session is using right now, so that exactly these are interrupted.
//!
//! A connection is taken off the list before it goes back to a pool, and its release waits for cancels under way, so
//! that a cancel never hits somebody else's statement.
//!
//! A statement on a lane, or one that still waits for a connection, is on no connection of its own: nothing is sent for
//! it. The request is remembered, and meets the statement when it asks for a lease (lanes send what takes long back
//! within a moment). If it ends before, the request came too late and is forgotten.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pgherd_backend::{Address, CancelKey, cancel};
use tokio::sync::Notify;

use crate::activity::Activity;

#[derive(Default)]
struct State {
    targets: Vec<(Address, CancelKey)>,
    under_way: usize,
    /// The statement under way can be run again without its client's knowing: its number.
    repeats: Option<u64>,
    /// Such statements so far.
    numbered: u64,
}

/// Nothing of the client's is under way.
const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// The statement under way is not to go on.
const CANCELLED: u8 = 2;

/// The cancel state of one session.
#[derive(Default)]
pub struct CancelState {
    state: Mutex<State>,
    settled: Notify,
    phase: AtomicU8,
    requested: Notify,
    /// The statement under way was interrupted since it and others wait for each other. More than one of its
    /// connections may say so.
    deadlock: AtomicBool,
    /// A COMMIT is under way, which is not left half done.
    committing: AtomicBool,
    abandoned: Notify,
    /// It is ended by a statement of somebody's, and its client is told.
    terminated: AtomicBool,
    user: OnceLock<String>,
    /// What others are shown of it.
    pub activity: Activity,
}

impl CancelState {
    pub fn add(&self, address: &Address, key: &Option<CancelKey>) {
        if let Some(key) = key {
            self.lock().targets.push((address.clone(), key.clone()));
        }
    }

    pub fn remove(&self, key: &Option<CancelKey>) {
        if let Some(key) = key {
            self.lock().targets.retain(|(_, k)| k != key);
        }
    }

    /// The connections in use.
    pub fn targets(&self) -> Vec<(Address, CancelKey)> {
        self.lock().targets.clone()
    }

    /// Interrupts the session because it and others wait for each other, if it is where it was: in the statement of
    /// this number, which can be run again, or in one that cannot.
    pub async fn break_deadlock(&self, statement: Option<u64>) {
        let targets = {
            let mut state = self.lock();
            if state.repeats != statement || self.phase.load(Ordering::Acquire) == IDLE {
                return;
            }
            self.deadlock.store(true, Ordering::Release);
            state.under_way += 1;
            state.targets.clone()
        };
        // What waits for no server is in no deadlock: it is not remembered.
        self.interrupt(targets).await;
    }

    /// A statement begins that can be run again.
    pub fn begin_repeatable(&self) {
        let mut state = self.lock();
        state.numbered += 1;
        state.repeats = Some(state.numbered);
        // One that an earlier statement was too quick for.
        self.deadlock.store(false, Ordering::Release);
    }

    /// What comes now is not repeated, and not hit by what was meant for the statement.
    pub async fn end_repeatable(&self) {
        self.lock().repeats = None;
        self.settle().await;
        self.deadlock.store(false, Ordering::Release);
    }

    /// The number of the statement under way, if it can be run again.
    pub fn repeats(&self) -> Option<u64> {
        self.lock().repeats
    }

    /// Whether a statement that was cancelled was the price of a deadlock.
    pub fn breaks_deadlock(&self) -> bool {
        self.deadlock.load(Ordering::Acquire)
    }

    /// A statement is about to leave on a lane, or a message to be dealt with; it may have been under way already.
    pub fn begin(&self) {
        if self.phase.compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            // One that an earlier statement was too quick for.
            self.deadlock.store(false, Ordering::Release);
        }
    }

    /// The client has its answer.
    pub fn finish(&self) {
        self.phase.store(IDLE, Ordering::Release);
        self.deadlock.store(false, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.phase.load(Ordering::Acquire) == CANCELLED
    }

    /// Whether the statement under way is not to go on. Says so once.
    pub fn take_cancelled(&self) -> bool {
        self.phase.compare_exchange(CANCELLED, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns when the statement under way is not to go on; says so once. Cancel safe.
    pub async fn cancelled(&self) {
        loop {
            let requested = self.requested.notified();
            tokio::pin!(requested);
            requested.as_mut().enable();
            if self.take_cancelled() {
                return;
            }
            requested.await;
        }
    }

    /// Something of the client's is under way.
    pub fn is_busy(&self) -> bool {
        self.phase.load(Ordering::Acquire) != IDLE
    }

    pub fn set_committing(&self, committing: bool) {
        self.committing.store(committing, Ordering::Release);
    }

    /// The session is to end where it stands, unless that is in a COMMIT.
    pub fn abandon(&self) {
        if !self.committing.load(Ordering::Acquire) {
            self.abandoned.notify_one();
        }
    }

    /// `pg_terminate_backend`.
    pub fn terminate(&self) {
        self.terminated.store(true, Ordering::Release);
        self.abandon();
    }

    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Acquire)
    }

    /// Whose session it is.
    pub fn is_of(&self, user: &str) {
        let _ = self.user.set(user.to_owned());
    }

    pub fn user(&self) -> Option<&str> {
        self.user.get().map(String::as_str)
    }

    /// Returns when the session is to end where it stands.
    pub async fn abandoned(&self) {
        self.abandoned.notified().await;
    }

    /// Interrupts everything this session runs.
    pub async fn cancel_all(&self) {
        if self.phase.compare_exchange(BUSY, CANCELLED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.requested.notify_waiters();
        }
        let targets = {
            let mut state = self.lock();
            state.under_way += 1;
            state.targets.clone()
        };
        self.interrupt(targets).await;
    }

    async fn interrupt(&self, targets: Vec<(Address, CancelKey)>) {
        for (address, key) in &targets {
            cancel(address, key).await;
        }
        self.lock().under_way -= 1;
        self.settled.notify_waiters();
    }

    pub fn is_under_way(&self) -> bool {
        self.lock().under_way > 0
    }

    /// Returns once no cancel is under way.
    pub async fn settle(&self) {
        loop {
            let notified = self.settled.notified();
            if !self.is_under_way() {
                return;
            }
            notified.await;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
