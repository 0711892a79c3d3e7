//! CancelRequest: which server connections a session is using right now, so that exactly these are interrupted.
//!
//! A connection is taken off the list before it goes back to a pool, and its release waits for cancels under way, so
//! that a cancel never hits somebody else's statement.

use std::sync::{Mutex, PoisonError};

use pgherd_backend::{Address, CancelKey, cancel};
use tokio::sync::Notify;

#[derive(Default)]
struct State {
    targets: Vec<(Address, CancelKey)>,
    under_way: usize,
    /// The cancel under way breaks a deadlock.
    deadlock: bool,
}

/// The cancel state of one session.
#[derive(Default)]
pub struct CancelState {
    state: Mutex<State>,
    settled: Notify,
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

    /// Interrupts the session because it and others wait for each other.
    pub async fn break_deadlock(&self) {
        self.lock().deadlock = true;
        self.cancel_all().await;
    }

    /// Whether the statement that was just cancelled was the price of a deadlock.
    pub fn take_deadlock(&self) -> bool {
        std::mem::take(&mut self.lock().deadlock)
    }

    /// Interrupts everything this session runs.
    pub async fn cancel_all(&self) {
        let targets = {
            let mut state = self.lock();
            state.under_way += 1;
            state.targets.clone()
        };
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
