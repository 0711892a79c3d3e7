//! Which thread serves which session. Few busy threads are better than many half idle ones: their lanes are fuller, and
//! servers and router sleep and wake less. New clients go to the first thread that has room, and sessions move, between
//! two messages of their clients, when a thread has too much to do or two have little. Nobody is woken to move.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::WeakUnboundedSender;

use crate::session::Seed;

/// How often the threads' loads are looked at.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// A thread that is busy for a larger share of the time gets no new clients while another has room.
const FULL: f64 = 0.7;
/// One that is busy for more gives sessions away.
const TOO_MUCH: f64 = 0.9;
/// For so many intervals in a row.
const PATIENCE: u32 = 2;
/// A thread below this takes them.
const ROOM: f64 = 0.5;
/// Two threads that are busy for less together become one,
const LITTLE: f64 = 0.4;
/// after so many intervals.
const PATIENCE_LITTLE: u32 = 5;
/// After a decision nothing is decided for so many intervals: its effect is to be seen first.
const PAUSE: u32 = 3;

/// What comes to a thread.
pub enum Incoming {
    Connection(TcpStream),
    /// Over the socket that tells who calls.
    Callback(UnixStream),
    Session(Box<Seed>),
}

/// What is known of one thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Share of the last interval that it was on a processor.
    pub busy: f64,
    pub sessions: usize,
}

/// `count` sessions of `from`, those that are active first, go to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    pub from: usize,
    pub to: usize,
    pub count: usize,
}

/// Decides; it is told the loads once per interval.
#[derive(Debug, Default)]
pub struct Policy {
    too_much: BTreeMap<usize, u32>,
    little: u32,
    pause: u32,
}

/// Where a new client goes.
pub fn place(loads: &[Load]) -> usize {
    let first = loads.iter().position(|load| load.busy < FULL);
    let least = || {
        let busy = |index: &usize| (loads[*index].busy * 100.0) as u64;
        (0..loads.len()).min_by_key(|index| (busy(index), loads[*index].sessions)).unwrap_or(0)
    };
    first.unwrap_or_else(least)
}

impl Policy {
    pub fn decide(&mut self, loads: &[Load]) -> Option<Move> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let decided = self.relieve(loads).or_else(|| self.gather(loads));
        if decided.is_some() {
            *self = Policy { pause: PAUSE, ..Policy::default() };
        }
        decided
    }

    fn relieve(&mut self, loads: &[Load]) -> Option<Move> {
        for (index, load) in loads.iter().enumerate() {
            let count = self.too_much.entry(index).or_default();
            *count = if load.busy > TOO_MUCH && load.sessions > 1 { *count + 1 } else { 0 };
        }
        let (from, _) =
            self.too_much.iter().filter(|(_, count)| **count >= PATIENCE).max_by_key(|(_, count)| **count)?;
        let from = *from;
        let to = loads.iter().position(|load| load.busy < ROOM)?;
        // As if all its sessions were alike: both are to have the same then.
        let share = (loads[from].busy - loads[to].busy) / 2.0 / loads[from].busy;
        let count = (loads[from].sessions as f64 * share) as usize;
        (count > 0).then_some(Move { from, to, count })
    }

    fn gather(&mut self, loads: &[Load]) -> Option<Move> {
        let mut used = loads.iter().enumerate().filter(|(_, load)| load.sessions > 0 && load.busy > 0.01);
        let pair = (used.next(), used.next_back());
        let (Some((to, first)), Some((from, last))) = pair else {
            self.little = 0;
            return None;
        };
        self.little = if first.busy + last.busy < LITTLE { self.little + 1 } else { 0 };
        (self.little >= PATIENCE_LITTLE).then_some(Move { from, to, count: last.sessions })
    }
}

/// One thread, as the others see it.
#[derive(Default)]
struct Slot {
    sessions: AtomicUsize,
    /// How many sessions are still to go, and where: the count above, the thread below.
    leave: AtomicU64,
    /// The file that says how long it has been on a processor.
    clock: OnceLock<std::path::PathBuf>,
    sender: Mutex<Option<WeakUnboundedSender<Incoming>>>,
}

/// All threads.
pub struct Placement {
    slots: Vec<Slot>,
    /// For tests: every session goes to another thread whenever it can.
    restless: bool,
}

impl Placement {
    pub fn new(threads: usize, restless: bool) -> Placement {
        let slots: Vec<Slot> = (0..threads).map(|_| Slot::default()).collect();
        Placement { restless: restless && slots.len() > 1, slots }
    }

    pub fn set_sender(&self, thread: usize, sender: WeakUnboundedSender<Incoming>) {
        *self.slots[thread].sender.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    }

    /// Called on the thread itself.
    pub fn begin(&self, thread: usize) {
        if let Ok(task) = std::fs::read_link("/proc/thread-self") {
            let _ = self.slots[thread].clock.set(std::path::Path::new("/proc").join(task).join("schedstat"));
        }
    }

    pub fn enter(&self, thread: usize) {
        self.slots[thread].sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub fn exit(&self, thread: usize) {
        self.slots[thread].sessions.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a session of this thread is to go, if it can.
    pub fn is_leaving(&self, thread: usize) -> bool {
        self.restless || self.slots[thread].leave.load(Ordering::Relaxed) != 0
    }

    /// Where it goes, if it is still to.
    pub fn take_leave(&self, thread: usize) -> Option<usize> {
        if self.restless {
            return Some((thread + 1) % self.slots.len());
        }
        let taken = self.slots[thread].leave.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |leave| {
            match (leave >> 32, leave & 0xffff_ffff) {
                (0, _) => None,
                (1, _) => Some(0),
                (count, to) => Some((count - 1) << 32 | to),
            }
        });
        taken.ok().map(|leave| (leave & 0xffff_ffff) as usize)
    }

    pub fn order(&self, order: Move) {
        // What was ordered before is no longer what the load wants, least of all on the thread that they go to now.
        self.slots.iter().for_each(|slot| slot.leave.store(0, Ordering::Relaxed));
        let leave = (order.count as u64) << 32 | order.to as u64;
        self.slots[order.from].leave.store(leave, Ordering::Relaxed);
    }

    /// Gives it back where the thread is gone.
    pub fn send(&self, thread: usize, incoming: Incoming) -> Result<(), Incoming> {
        let sender = self.slots[thread].sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match sender.and_then(|sender| sender.upgrade()) {
            Some(sender) => sender.send(incoming).map_err(|refused| refused.0),
            None => Err(incoming),
        }
    }

    /// How long each thread has been on a processor; zero where the system does not say.
    pub fn clocks(&self) -> Vec<Duration> {
        let read = |slot: &Slot| {
            let text = std::fs::read_to_string(slot.clock.get()?).ok()?;
            Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
        };
        self.slots.iter().map(|slot| read(slot).unwrap_or_default()).collect()
    }

    pub fn loads(&self, before: &[Duration], now: &[Duration], elapsed: Duration) -> Vec<Load> {
        let busy = |index: usize| {
            let used = now[index].saturating_sub(before.get(index).copied().unwrap_or_default());
            used.as_secs_f64() / elapsed.as_secs_f64().max(0.001)
        };
        let load =
            |(index, slot): (usize, &Slot)| Load { busy: busy(index), sessions: slot.sessions.load(Ordering::Relaxed) };
        self.slots.iter().enumerate().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(list: &[(f64, usize)]) -> Vec<Load> {
        list.iter().map(|(busy, sessions)| Load { busy: *busy, sessions: *sessions }).collect()
    }

    #[test]
    fn new_clients_go_to_the_first_thread_that_has_room() {
        assert_eq!(place(&loads(&[(0.0, 0), (0.0, 0)])), 0);
        assert_eq!(place(&loads(&[(0.6, 500), (0.0, 0)])), 0);
        assert_eq!(place(&loads(&[(0.8, 500), (0.1, 3), (0.0, 0)])), 1);
        assert_eq!(place(&loads(&[(0.99, 9), (0.8, 4), (0.8, 3)])), 2);
    }

    #[test]
    fn a_thread_gives_away_only_what_it_has_too_much_of_for_long() {
        let mut policy = Policy::default();
        let (hot, cool) = (loads(&[(0.99, 100), (0.01, 0)]), loads(&[(0.8, 100), (0.01, 0)]));
        assert_eq!(policy.decide(&hot), None);
        assert_eq!(policy.decide(&cool), None);
        assert_eq!(policy.decide(&hot), None);
        let Some(Move { from: 0, to: 1, count }) = policy.decide(&hot) else { panic!("nothing moves") };
        assert!((40..=50).contains(&count), "{count}");
        // The effect is waited for.
        assert!((0..PAUSE).all(|_| policy.decide(&hot).is_none()));
        // One busy session stays where it is.
        let mut policy = Policy::default();
        assert!((0..20).all(|_| policy.decide(&loads(&[(1.0, 1), (0.0, 0)])).is_none()));
    }

    #[test]
    fn two_with_little_to_do_become_one() {
        let mut policy = Policy::default();
        let little = loads(&[(0.1, 10), (0.0, 3), (0.2, 20)]);
        assert!((1..PATIENCE_LITTLE).all(|_| policy.decide(&little).is_none()));
        assert_eq!(policy.decide(&little), Some(Move { from: 2, to: 0, count: 20 }));
        let mut policy = Policy::default();
        assert!((0..20).all(|_| policy.decide(&loads(&[(0.3, 10), (0.3, 10)])).is_none()));
    }

    /// Sessions with loads of their own on four threads: every load ends with few moves, on as few threads as it needs.
    #[test]
    fn it_settles() {
        for seed in 1..200u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut random = move |n: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) % n
            };
            let weight = 1.0 / (1 + random(60)) as f64;
            let sessions: Vec<f64> = (0..1 + random(80)).map(|_| weight * (random(100) as f64) / 100.0).collect();
            let mut at: Vec<usize> = sessions.iter().map(|_| random(4) as usize).collect();
            let mut policy = Policy::default();
            let mut last = 0;
            for round in 0..400 {
                let load = |thread: usize| Load {
                    busy: sessions.iter().zip(&at).filter(|(_, t)| **t == thread).map(|(w, _)| w).sum::<f64>().min(1.0),
                    sessions: at.iter().filter(|t| **t == thread).count(),
                };
                let loads: Vec<Load> = (0..4).map(load).collect();
                if let Some(Move { from, to, count }) = policy.decide(&loads) {
                    assert_ne!(from, to, "seed {seed}");
                    at.iter_mut().filter(|t| **t == from).take(count).for_each(|t| *t = to);
                    last = round;
                }
            }
            assert!(last < 300, "seed {seed}: still moving after {last} rounds");
        }
    }
}
