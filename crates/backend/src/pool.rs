//! Idle connections of one thread, by server, database and user. A lease takes one out; dropping it clean puts it back.
//!
//! A session that already holds a lease is never made to wait for another one: that is what makes transactions over
//! several servers deadlock on a pool. Only the first lease of a transaction queues at the limit.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Address, BackendError, Connection, Target, connect};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    pub address: Address,
    pub database: String,
    pub user: String,
}

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Leases to one server at a time before first leases queue.
    pub leases_per_server: usize,
    /// Idle connections kept per key.
    pub idle_per_key: usize,
    /// How long a first lease waits in the queue.
    pub wait: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits { leases_per_server: 100, idle_per_key: 100, wait: Duration::from_secs(120) }
    }
}

struct Inner {
    limits: PoolLimits,
    idle: RefCell<HashMap<PoolKey, Vec<Connection>>>,
    queues: RefCell<HashMap<Address, Arc<Semaphore>>>,
    /// Leases taken before the last [`Pool::forget_all`] are not put back.
    epoch: Cell<u64>,
}

#[derive(Clone)]
pub struct Pool {
    inner: Rc<Inner>,
}

impl Pool {
    pub fn new(limits: PoolLimits) -> Self {
        Pool {
            inner: Rc::new(Inner { limits, idle: RefCell::default(), queues: RefCell::default(), epoch: Cell::new(0) }),
        }
    }

    /// Takes an idle connection or opens one. `holds_another`: the caller has a lease already and must not wait.
    pub async fn lease(&self, target: &Target, holds_another: bool) -> Result<Lease, BackendError> {
        let queue = self
            .inner
            .queues
            .borrow_mut()
            .entry(target.address.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.inner.limits.leases_per_server)))
            .clone();
        let permit = match queue.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) if holds_another => None,
            Err(_) => match tokio::time::timeout(self.inner.limits.wait, queue.acquire_owned()).await {
                Ok(Ok(permit)) => Some(permit),
                _ => {
                    return Err(BackendError::Busy {
                        address: target.address.to_string(),
                        waited_ms: self.inner.limits.wait.as_millis() as u64,
                    });
                }
            },
        };
        let key =
            PoolKey { address: target.address.clone(), database: target.database.clone(), user: target.user.clone() };
        loop {
            let idle = self.inner.idle.borrow_mut().get_mut(&key).and_then(Vec::pop);
            match idle {
                Some(mut connection) => {
                    if connection.is_alive() {
                        return Ok(self.wrap(key, connection, permit));
                    }
                }
                None => break,
            }
        }
        let connection = connect(target).await?;
        Ok(self.wrap(key, connection, permit))
    }

    fn wrap(&self, key: PoolKey, connection: Connection, permit: Option<OwnedSemaphorePermit>) -> Lease {
        Lease { key, connection: Some(connection), pool: self.clone(), epoch: self.inner.epoch.get(), _permit: permit }
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
        let mut idle = self.inner.idle.borrow_mut();
        let list = idle.entry(key).or_default();
        if list.len() < self.inner.limits.idle_per_key {
            list.push(connection);
        }
    }
}

/// A connection that is ours until it is dropped. Dropped in any other state than idle and clean, it is closed.
pub struct Lease {
    key: PoolKey,
    connection: Option<Connection>,
    pool: Pool,
    epoch: u64,
    _permit: Option<OwnedSemaphorePermit>,
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
            && self.epoch == self.pool.inner.epoch.get()
        {
            self.pool.put_back(self.key.clone(), connection);
        }
    }
}
