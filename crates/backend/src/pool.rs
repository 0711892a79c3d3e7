//! Idle connections of one thread, by server, database and user. A lease takes one out; dropping it clean puts it back.
//! How many connections there may be is the [`Budget`]'s, which all threads share: at its limits leases queue, each
//! kind where it waits for nobody who may be waiting for it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::budget::{BlockPlace, Budget, ServerBudget};
use crate::{Address, BackendError, Connection, Target, connect};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    pub address: Address,
    pub database: String,
    pub user: String,
    /// Opened with a label: what has one is not exchanged for what has none, though the user is the same.
    pub labelled: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Idle connections kept per key.
    pub idle_per_key: usize,
    /// How long one is kept.
    pub idle_for: Duration,
    /// How long a lease waits in a queue.
    pub wait: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits { idle_per_key: 100, idle_for: Duration::from_secs(300), wait: Duration::from_secs(120) }
    }
}

/// What a lease is for, which says where it queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A statement that is a transaction of its own, by a session that holds nothing else.
    Single,
    /// A question beside whatever the session holds; answered, and given back.
    Aside,
    /// Part of a transaction that has its [`BlockPlace`], or of one that holds a lease already: queues for no place.
    Placed,
}

/// After a server that had no room (for reasons that are not ours) it is asked again this much later.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

struct Inner {
    limits: PoolLimits,
    budget: Arc<Budget>,
    idle: RefCell<HashMap<PoolKey, Vec<(Connection, Instant)>>>,
    servers: RefCell<HashMap<Address, Arc<ServerBudget>>>,
    /// Leases taken before the last [`Pool::forget_all`] are not put back.
    epoch: Cell<u64>,
}

#[derive(Clone)]
pub struct Pool {
    inner: Rc<Inner>,
}

impl Pool {
    pub fn new(limits: PoolLimits, budget: Arc<Budget>) -> Self {
        Pool {
            inner: Rc::new(Inner {
                limits,
                budget,
                idle: RefCell::default(),
                servers: RefCell::default(),
                epoch: Cell::new(0),
            }),
        }
    }

    fn server(&self, address: &Address) -> Arc<ServerBudget> {
        if let Some(server) = self.inner.servers.borrow().get(address) {
            return server.clone();
        }
        let server = self.inner.budget.server(address);
        self.inner.servers.borrow_mut().insert(address.clone(), server.clone());
        server
    }

    /// A place for a transaction that may go to several servers, before its first lease.
    pub async fn block_place(&self) -> Result<BlockPlace, BackendError> {
        let place = self.queue(&self.inner.budget.blocks, "any server").await?;
        Ok(BlockPlace::new(place))
    }

    /// The same without waiting, for a session that holds a lease already.
    pub fn try_block_place(&self) -> Option<BlockPlace> {
        self.inner.budget.blocks.clone().try_acquire_owned().ok().map(BlockPlace::new)
    }

    async fn queue(&self, places: &Arc<Semaphore>, what: &str) -> Result<OwnedSemaphorePermit, BackendError> {
        match tokio::time::timeout(self.inner.limits.wait, places.clone().acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(BackendError::Busy {
                address: what.to_owned(),
                waited_ms: self.inner.limits.wait.as_millis() as u64,
            }),
        }
    }

    /// Takes an idle connection or opens one. `made`: whether it may be one where this was ever set.
    pub async fn lease(
        &self,
        target: &Target,
        claim: Claim,
        made: impl Fn(&str) -> bool,
    ) -> Result<Lease, BackendError> {
        let server = self.server(&target.address);
        let shown = target.address.to_string();
        let place = match claim {
            Claim::Single => Some(self.queue(&server.single, &shown).await?),
            Claim::Aside => Some(self.queue(&server.aside, &shown).await?),
            Claim::Placed => None,
        };
        let key = PoolKey {
            address: target.address.clone(),
            database: target.database.clone(),
            user: target.user.clone(),
            labelled: target.label.is_some(),
        };
        loop {
            let fits = |(connection, _): &(Connection, Instant)| connection.made.iter().all(|name| made(name));
            // Who has set more leaves the others to those who have set less.
            let nearest = |list: &mut Vec<(Connection, Instant)>| {
                let fitting = list.iter().enumerate().filter(|(_, idle)| fits(idle));
                let (at, _) = fitting.max_by_key(|(at, (connection, _))| (connection.made.len(), *at))?;
                Some(list.remove(at))
            };
            let idle = self.inner.idle.borrow_mut().get_mut(&key).and_then(nearest);
            match idle {
                Some((mut connection, since)) => {
                    // A server that is about to end it would not take the statement any more, and nobody would know.
                    let is_safe = connection.idle_limit.is_none_or(|limit| since.elapsed() < limit / 2);
                    if is_safe && connection.is_alive() {
                        return Ok(self.wrap(key, connection, place));
                    }
                }
                None => break,
            }
        }
        let deadline = Instant::now() + self.inner.limits.wait;
        loop {
            let room = self.room(&server, &target.address).await?;
            match Box::pin(connect(target)).await {
                Ok(mut connection) => {
                    connection.room = Some(room);
                    return Ok(self.wrap(key, connection, place));
                }
                // Others have taken what is not ours to count.
                Err(BackendError::Server(fields)) if fields.sqlstate() == "53300" && Instant::now() < deadline => {
                    drop(room);
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Room for one more connection. Idle ones, here and in other threads, are closed for it.
    async fn room(&self, server: &Arc<ServerBudget>, address: &Address) -> Result<OwnedSemaphorePermit, BackendError> {
        loop {
            if let Ok(room) = server.open.clone().try_acquire_owned() {
                return Ok(room);
            }
            if !self.close_one_idle(address) {
                break;
            }
        }
        let _wanted = self.inner.budget.want(server.clone());
        self.queue(&server.open, &address.to_string()).await
    }

    fn close_one_idle(&self, address: &Address) -> bool {
        let mut idle = self.inner.idle.borrow_mut();
        let oldest = idle
            .iter_mut()
            .filter(|(key, list)| key.address == *address && !list.is_empty())
            .min_by_key(|(_, list)| list.first().map(|(_, since)| *since));
        match oldest {
            Some((_, list)) => {
                list.remove(0);
                true
            }
            None => false,
        }
    }

    /// Closes idle connections to servers where somebody waits for room.
    pub fn yield_room(&self) {
        self.inner.idle.borrow_mut().retain(|key, _| !self.server(&key.address).is_wanted());
    }

    /// Closes what has been idle for long.
    pub fn close_old(&self) {
        let limit = self.inner.limits.idle_for;
        self.inner.idle.borrow_mut().retain(|_, list| {
            list.retain(|(_, since)| since.elapsed() < limit);
            !list.is_empty()
        });
    }

    fn wrap(&self, key: PoolKey, connection: Connection, place: Option<OwnedSemaphorePermit>) -> Lease {
        Lease { key, connection: Some(connection), pool: self.clone(), epoch: self.inner.epoch.get(), _place: place }
    }

    /// Closes every idle connection to a database on a server (before DROP DATABASE).
    pub fn forget_database(&self, database: &str) {
        self.inner.idle.borrow_mut().retain(|key, _| key.database != database);
    }

    /// Closes every idle connection.
    pub fn forget_all(&self) {
        self.inner.idle.borrow_mut().clear();
        self.inner.epoch.set(self.inner.epoch.get() + 1);
    }

    /// Closes every idle connection to a server.
    pub fn forget_server(&self, address: &Address) {
        self.inner.idle.borrow_mut().retain(|key, _| key.address != *address);
    }

    fn put_back(&self, key: PoolKey, connection: Connection) {
        if self.server(&key.address).is_wanted() {
            return;
        }
        let mut idle = self.inner.idle.borrow_mut();
        let list = idle.entry(key).or_default();
        if list.len() >= self.inner.limits.idle_per_key && !list.is_empty() {
            // It may be one that fits nobody any more.
            list.remove(0);
        }
        if list.len() < self.inner.limits.idle_per_key {
            list.push((connection, Instant::now()));
        }
    }
}

/// A connection that is ours until it is dropped. Dropped in any other state than idle and clean, it is closed.
pub struct Lease {
    key: PoolKey,
    connection: Option<Connection>,
    pool: Pool,
    epoch: u64,
    _place: Option<OwnedSemaphorePermit>,
}

impl Lease {
    pub fn address(&self) -> &Address {
        &self.key.address
    }
}

impl Deref for Lease {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a lease has its connection until it is dropped"),
        }
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Connection {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a lease has its connection until it is dropped"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && connection.is_idle()
            && !connection.tainted
            && !connection.alone
            // A trigger may have set another.
            && connection.parameters.get("client_encoding").is_none_or(|encoding| encoding == "UTF8")
            && self.epoch == self.pool.inner.epoch.get()
        {
            self.pool.put_back(self.key.clone(), connection);
        }
    }
}
