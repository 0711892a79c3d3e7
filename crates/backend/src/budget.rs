//! How many connections a server takes from this router, shared by all its threads. What a server allows is divided
//! once, by use, so that nobody waits for somebody who may be waiting for him:
//!
//! - **lanes** never wait: without a place a statement is run on a lease;
//! - **single** leases (statements that are transactions of their own) and leases **aside** (a question beside a
//!   transaction) queue for a place at their server;
//! - a **block** takes one place for all servers, before its first lease. There are no more of these than the smallest
//!   server has room for, so that a transaction that has begun finds a connection everywhere, whatever locks it holds.
//!
//! A connection that is open and idle uses up room but no place: whoever needs the room has it closed, also by other
//! threads.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::Address;

/// Connections to a server that has not been asked yet: PostgreSQL's default less what is left to others.
pub const CONNECTIONS_DEFAULT: usize = 87;
/// The smallest number that can be divided.
pub const CONNECTIONS_MIN: usize = 8;

/// How many connections a server gets from a router where nobody says: what it has for ordinary users, less a tenth
/// for everybody else (operators, replication, the router's own questions).
pub fn connections_of(max_connections: usize, reserved: usize) -> usize {
    (max_connections.saturating_sub(reserved) * 9 / 10).max(CONNECTIONS_MIN)
}

/// The division of a server's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Places {
    open: usize,
    lanes: usize,
    single: usize,
    aside: usize,
    blocks: usize,
}

impl Places {
    fn of(connections: usize) -> Places {
        let open = connections.max(CONNECTIONS_MIN);
        let blocks = (open * 2 / 5).max(1);
        let lanes = (open * 3 / 10).max(1);
        let aside = (open / 10).max(1);
        Places { open, lanes, aside, blocks, single: open - blocks - lanes - aside }
    }
}

/// One server's share.
#[derive(Debug)]
pub struct ServerBudget {
    /// Connections that may be open.
    pub(crate) open: Arc<Semaphore>,
    pub(crate) lanes: Arc<Semaphore>,
    pub(crate) single: Arc<Semaphore>,
    pub(crate) aside: Arc<Semaphore>,
    places: Mutex<(Places, bool)>,
    /// Leases that wait for room: idle connections are closed, not kept.
    wanted: AtomicUsize,
    /// How many lanes have found no place.
    lanes_refused: AtomicUsize,
}

impl ServerBudget {
    fn new(places: Places) -> ServerBudget {
        let semaphore = |n| Arc::new(Semaphore::new(n));
        ServerBudget {
            open: semaphore(places.open),
            lanes: semaphore(places.lanes),
            single: semaphore(places.single),
            aside: semaphore(places.aside),
            places: Mutex::new((places, false)),
            wanted: AtomicUsize::new(0),
            lanes_refused: AtomicUsize::new(0),
        }
    }

    fn resize(&self, new: Places) {
        let mut known = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let old = known.0;
        let change = |semaphore: &Semaphore, old: usize, new: usize| {
            if new > old {
                semaphore.add_permits(new - old);
            } else {
                semaphore.forget_permits(old - new);
            }
        };
        change(&self.open, old.open, new.open);
        change(&self.lanes, old.lanes, new.lanes);
        change(&self.single, old.single, new.single);
        change(&self.aside, old.aside, new.aside);
        *known = (new, true);
    }

    /// A place for one lane, with the room for its connection.
    pub(crate) fn lane(&self) -> Option<LanePlace> {
        let Ok(place) = self.lanes.clone().try_acquire_owned() else {
            self.lanes_refused.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let room = self.open.clone().try_acquire_owned().ok()?;
        Some(LanePlace { _place: place, _room: room })
    }

    /// Grows when a lane finds no place: idle ones should make room.
    pub(crate) fn lanes_refused(&self) -> usize {
        self.lanes_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > 0
    }

    fn blocks(&self) -> (usize, bool) {
        let known = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        (known.0.blocks, known.1)
    }
}

#[derive(Debug)]
pub(crate) struct LanePlace {
    _place: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

/// A transaction's place among those that may hold leases to several servers.
#[derive(Debug)]
pub struct BlockPlace {
    _place: OwnedSemaphorePermit,
}

impl BlockPlace {
    pub(crate) fn new(place: OwnedSemaphorePermit) -> BlockPlace {
        BlockPlace { _place: place }
    }
}

/// The connections of one router to all its servers.
#[derive(Debug)]
pub struct Budget {
    /// What an operator chose for every server.
    chosen: Option<usize>,
    servers: Mutex<HashMap<Address, Arc<ServerBudget>>>,
    pub(crate) blocks: Arc<Semaphore>,
    blocks_now: Mutex<usize>,
    pressure: watch::Sender<u64>,
}

impl Budget {
    /// `chosen`: connections per server; none: each is asked, see [`learn`](Self::learn).
    pub fn new(chosen: Option<usize>) -> Budget {
        let blocks = Places::of(chosen.unwrap_or(CONNECTIONS_DEFAULT)).blocks;
        Budget {
            chosen,
            servers: Mutex::default(),
            blocks: Arc::new(Semaphore::new(blocks)),
            blocks_now: Mutex::new(blocks),
            pressure: watch::channel(0).0,
        }
    }

    pub fn server(&self, address: &Address) -> Arc<ServerBudget> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Arc::new(ServerBudget::new(Places::of(self.chosen.unwrap_or(CONNECTIONS_DEFAULT))));
        servers.entry(address.clone()).or_insert_with(make).clone()
    }

    /// Whether a server has been asked what it takes.
    pub fn is_known(&self, address: &Address) -> bool {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.get(address).is_some_and(|server| server.blocks().1)
    }

    /// A server takes this many connections.
    pub fn learn(&self, address: &Address, connections: usize) {
        self.server(address).resize(Places::of(self.chosen.unwrap_or(connections)));
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let least = servers.values().map(|s| s.blocks()).filter(|(_, known)| *known).map(|(n, _)| n).min();
        let mut now = self.blocks_now.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(least) = least else { return };
        if least > *now {
            self.blocks.add_permits(least - *now);
        } else {
            self.blocks.forget_permits(*now - least);
        }
        *now = least;
    }

    /// Changes when a lease waits for room that idle connections take.
    pub fn pressure(&self) -> watch::Receiver<u64> {
        self.pressure.subscribe()
    }

    pub(crate) fn want(&self, server: Arc<ServerBudget>) -> Wanted {
        server.wanted.fetch_add(1, Ordering::AcqRel);
        self.pressure.send_modify(|n| *n += 1);
        Wanted(server)
    }
}

/// A lease waits for room as long as this lives.
pub(crate) struct Wanted(Arc<ServerBudget>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.wanted.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_out_never_exceeds_what_there_is() {
        for connections in 0..600 {
            let places = Places::of(connections);
            let sum = places.lanes + places.single + places.aside + places.blocks;
            assert_eq!(sum, places.open, "{places:?}");
            assert!(places.lanes > 0 && places.single > 0 && places.aside > 0 && places.blocks > 0, "{places:?}");
            assert!(places.open <= connections.max(CONNECTIONS_MIN), "{places:?}");
        }
        assert_eq!(connections_of(100, 3), CONNECTIONS_DEFAULT);
    }

    #[test]
    fn the_smallest_server_says_how_many_blocks_there_are() {
        let address = |port| Address { host: "h".into(), port };
        let budget = Budget::new(None);
        budget.learn(&address(1), 1000);
        assert_eq!(budget.blocks.available_permits(), 400);
        budget.learn(&address(2), 20);
        assert_eq!(budget.blocks.available_permits(), 8);
        budget.learn(&address(2), 50);
        assert_eq!(budget.blocks.available_permits(), 20);
        assert_eq!(budget.server(&address(2)).lanes.available_permits(), 15);
        assert_eq!(Budget::new(Some(10)).blocks.available_permits(), 4);
    }
}
