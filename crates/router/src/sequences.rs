//! Values of sequences that the router has drawn before statements need them, and hands out in order.
//!
//! A lease is of one role and one default expression: who may not use the sequence draws nothing. It is forgotten with
//! every other catalog, and with every statement that may move the sequence or draw from it on the coordinator, so that
//! what is handed out later is never less than what was handed out before.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Sequences that are known at the most; beyond that all are forgotten.
const LEASES_MAX: usize = 10_000;

/// So many values of a sequence are drawn one by one: who draws seldom sees no gaps.
const SINGLES: u64 = 64;

/// Of one database.
#[derive(Debug, Default)]
pub struct Leases {
    known: Mutex<HashMap<(String, String), Arc<Lease>>>,
    /// Whether a role may insert into all columns of a local table, under a version of the catalog.
    inserters: Mutex<HashMap<(String, String), (u64, bool)>>,
}

/// Values of one sequence.
#[derive(Debug, Default)]
pub struct Lease {
    state: Mutex<State>,
    /// Whoever draws more: others wait, so that there is one order.
    drawing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Of the catalog under which they were drawn.
    version: u64,
    values: VecDeque<i64>,
    /// How many were drawn last, and since the router began.
    size: usize,
    total: u64,
    /// How often it was forgotten.
    forgotten: u64,
}

impl Leases {
    pub fn of(&self, role: &str, sql: &str) -> Arc<Lease> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (role.to_owned(), sql.to_owned());
        if known.len() >= LEASES_MAX && !known.contains_key(&key) {
            known.values().for_each(|lease| lease.forget());
            known.clear();
        }
        known.entry(key).or_default().clone()
    }

    /// None: nobody has asked.
    pub fn may_insert(&self, role: &str, table: &str, version: u64) -> Option<bool> {
        let inserters = self.inserters.lock().unwrap_or_else(PoisonError::into_inner);
        let known = inserters.get(&(role.to_owned(), table.to_owned()));
        known.filter(|(then, _)| *then == version).map(|(_, may)| *may)
    }

    pub fn note_may_insert(&self, role: &str, table: &str, version: u64, may: bool) {
        let mut inserters = self.inserters.lock().unwrap_or_else(PoisonError::into_inner);
        if inserters.len() >= LEASES_MAX {
            inserters.clear();
        }
        inserters.insert((role.to_owned(), table.to_owned()), (version, may));
    }

    /// Somebody may have moved any sequence, or have drawn from it elsewhere.
    pub fn forget(&self) {
        self.forget_those(|_| true);
    }

    /// The same of those whose default expressions are meant.
    pub fn forget_those(&self, is_meant: impl Fn(&str) -> bool) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|((_, sql), _)| is_meant(sql)).for_each(|(_, lease)| lease.forget());
    }

    /// Nobody has drawn, or is about to.
    pub fn is_empty(&self) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// A value, and since when it is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub value: i64,
    forgotten: u64,
}

/// How much is to be drawn, and since when it is good.
pub struct Wanted {
    pub count: usize,
    forgotten: u64,
}

impl Lease {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next value; none: more are to be drawn.
    pub fn take(&self, version: u64) -> Option<Taken> {
        let mut state = self.state();
        if state.version != version {
            state.values.clear();
            return None;
        }
        let value = state.values.pop_front()?;
        Some(Taken { value, forgotten: state.forgotten })
    }

    /// A value that was taken last and has not been used.
    pub fn give_back(&self, taken: Taken, version: u64) {
        let mut state = self.state();
        let is_good = state.version == version && state.forgotten == taken.forgotten;
        if is_good && state.values.front().is_none_or(|next| *next > taken.value) {
            state.values.push_front(taken.value);
        }
    }

    pub fn forget(&self) {
        let mut state = self.state();
        state.values.clear();
        state.size = 0;
        state.forgotten += 1;
    }

    pub async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.drawing.lock().await
    }

    /// After the first ones twice as many as the last time, up to `most`.
    pub fn wanted(&self, version: u64, most: usize) -> Wanted {
        let state = self.state();
        let before = if state.version == version && state.total >= SINGLES { state.size } else { 0 };
        Wanted { count: (before * 2).clamp(1, most.max(1)), forgotten: state.forgotten }
    }

    /// Puts what has been drawn there; gives the first of it.
    pub fn put(&self, wanted: &Wanted, version: u64, drawn: &[i64]) -> Option<i64> {
        let (first, rest) = drawn.split_first()?;
        let mut state = self.state();
        state.total += drawn.len() as u64;
        if state.forgotten == wanted.forgotten {
            state.version = version;
            state.values = rest.iter().copied().collect();
            state.size = wanted.count;
        }
        Some(*first)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Lease, Leases, SINGLES};

    fn draw(lease: &Lease, version: u64, from: i64, most: usize) -> (usize, Option<i64>) {
        let wanted = lease.wanted(version, most);
        let values: Vec<i64> = (from..from + wanted.count as i64).collect();
        (wanted.count, lease.put(&wanted, version, &values))
    }

    fn next(lease: &Lease, version: u64) -> Option<i64> {
        lease.take(version).map(|taken| taken.value)
    }

    #[test]
    fn values_are_handed_out_in_order_and_leases_grow() {
        let lease = Lease::default();
        for value in 1..=SINGLES as i64 {
            assert_eq!(lease.take(1), None);
            assert_eq!(draw(&lease, 1, value, 4), (1, Some(value)));
        }
        assert_eq!(draw(&lease, 1, 102, 4), (2, Some(102)));
        assert_eq!(next(&lease, 1), Some(103));
        assert_eq!(draw(&lease, 1, 104, 4), (4, Some(104)));
        let taken = lease.take(1).unwrap();
        lease.give_back(taken, 1);
        assert_eq!(lease.take(1), Some(taken));
        lease.forget();
        lease.give_back(taken, 1);
        assert_eq!(lease.take(1), None);
        assert_eq!(draw(&lease, 1, 106, 4), (1, Some(106)));
        // Another catalog: what is left of the old one is a gap.
        assert_eq!(lease.take(2), None);
        assert_eq!(draw(&lease, 2, 108, 4), (1, Some(108)));
        assert_eq!(draw(&lease, 2, 109, 4), (2, Some(109)));
    }

    #[test]
    fn only_what_is_meant_is_forgotten() {
        let leases = Leases::default();
        let (one, other) = (leases.of("a", "nextval('s'::regclass)"), leases.of("a", "nextval('t'::regclass)"));
        assert!(!leases.is_empty());
        for lease in [&one, &other] {
            assert!(lease.put(&lease.wanted(1, 8), 1, &[1, 2]).is_some());
        }
        leases.forget_those(|sql| sql.contains("'s'"));
        assert_eq!((next(&one, 1), next(&other, 1)), (None, Some(2)));
    }

    #[test]
    fn what_was_drawn_while_it_was_forgotten_is_not_kept() {
        let leases = Leases::default();
        let lease = leases.of("a", "nextval('s'::regclass)");
        draw(&lease, 1, 1, 1);
        let wanted = lease.wanted(1, 8);
        leases.forget();
        assert_eq!(lease.put(&wanted, 1, &[2, 3]), Some(2));
        assert_eq!(lease.take(1), None);
        assert!(std::sync::Arc::ptr_eq(&lease, &leases.of("a", "nextval('s'::regclass)")));
        assert!(!std::sync::Arc::ptr_eq(&lease, &leases.of("b", "nextval('s'::regclass)")));
    }
}
