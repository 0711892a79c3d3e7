//! Deadlocks that no single server can see: session A waits on one worker for B, which waits on another for A. The lock
//! waits of all servers are joined into one graph, of this router's sessions, of those of other routers where they may
//! be part of it, and of processes that nobody is known to use. A cycle that is there twice in a row costs one of the
//! sessions its statement, with PostgreSQL's own SQLSTATE, or none, where a statement can be run again without its
//! client's knowing. What is on one server only, PostgreSQL finds by itself.
//!
//! Prepared transactions are not in the graph.

mod graph;
mod others;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pgherd_backend::{Address, BackendError, Connection, connect};
use tokio::sync::watch;

use crate::shared::Shared;
use graph::{Graph, Waiter, between, cycle};
use others::{Others, Processes};

/// Shorter than PostgreSQL's own `deadlock_timeout`, by which a server picks one who cannot start again.
const INTERVAL: Duration = Duration::from_millis(400);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// The second look, where a mistake would cost nobody anything.
const AGAIN: Duration = Duration::from_millis(100);
/// How long a server may take to say who waits there.
const DEADLINE: Duration = Duration::from_secs(5);
/// Waiting backends with those they wait for.
const WAITS: &str = "SELECT a.pid, pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ',') \
                     FROM pg_catalog.pg_stat_activity a WHERE a.wait_event_type = 'Lock'";

/// Which of this router's sessions wait for which.
pub type Waits = BTreeMap<i32, BTreeSet<i32>>;

pub fn spawn(shared: Arc<Shared>, mut shutdown: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let mut detector = Detector::new(&shared);
        let mut seen = None;
        let mut interval = INTERVAL;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
            let (found, repeatable) = detector.look(&shared).await;
            let Some(victim) = victim(&repeatable, &found) else {
                (seen, interval) = (None, INTERVAL);
                continue;
            };
            let statement = repeatable.get(&victim).copied();
            let again = seen.take() == Some((found.clone(), statement));
            interval = match statement {
                _ if again => INTERVAL,
                Some(_) => AGAIN,
                None => SECOND_LOOK,
            };
            if !again {
                seen = Some((found, statement));
            } else if let Some(state) = detector.own(&victim).and_then(|pid| shared.cancel_state(pid)) {
                tracing::info!("deadlock between {found:?}");
                state.break_deadlock(statement).await;
            }
        }
    });
}

/// Who of a cycle pays: one that runs its statement again, or else the youngest, which has the least to lose. All
/// routers choose the same.
fn victim(repeatable: &BTreeMap<Waiter, u64>, cycle: &BTreeSet<Waiter>) -> Option<Waiter> {
    let mut sessions = cycle.iter().filter(|waiter| matches!(waiter, Waiter::Session { .. }));
    sessions.clone().rfind(|session| repeatable.contains_key(*session)).or(sessions.next_back()).cloned()
}

/// The lock waits between sessions of this router, wherever they are.
pub async fn all_waits(shared: &Shared) -> Waits {
    let mut detector = Detector::new(shared);
    let owners = detector.owners(&processes(shared));
    let edges = detector.edges(shared, &addresses(&owners)).await;
    let mut waits = Waits::new();
    for (from, to) in edges.iter().map(|edge| ends(&owners, edge)) {
        if let (Some(from), Some(to)) = (detector.own(&from), detector.own(&to))
            && from != to
        {
            waits.entry(from).or_default().insert(to);
        }
    }
    waits
}

/// A server's process.
type Process = (Address, i32);

/// What each session uses.
fn processes(shared: &Shared) -> BTreeMap<i32, Vec<Process>> {
    let used = |targets: Vec<(Address, pgherd_backend::CancelKey)>| {
        targets.into_iter().map(|(address, key)| (address, key.pid)).collect()
    };
    shared.cancel_states().into_iter().map(|(session, state)| (session, used(state.targets()))).collect()
}

fn addresses(owners: &HashMap<Process, Waiter>) -> BTreeSet<Address> {
    owners.keys().map(|(address, _)| address.clone()).collect()
}

/// Both ends of a lock wait, as whom they are known to serve.
fn ends(owners: &HashMap<Process, Waiter>, (from, to): &(Process, Process)) -> (Waiter, Waiter) {
    let known = |process: &Process| {
        owners.get(process).cloned().unwrap_or_else(|| Waiter::Process(process.0.clone(), process.1))
    };
    (known(from), known(to))
}

fn graph(owners: &HashMap<Process, Waiter>, edges: &[(Process, Process)]) -> Graph {
    let mut graph = Graph::new();
    for (from, to) in edges.iter().map(|edge| ends(owners, edge)) {
        if from != to {
            graph.entry(from).or_default().insert(to);
        }
    }
    graph
}

struct Detector {
    /// Which router this is, among several.
    router: u64,
    coordinator: Address,
    connections: HashMap<Address, Connection>,
    others: Others,
}

impl Detector {
    fn new(shared: &Shared) -> Detector {
        let mut router = [0; 8];
        router.copy_from_slice(&shared.mock_secret[..8]);
        Detector {
            router: u64::from_ne_bytes(router),
            coordinator: shared.own_target("").address,
            connections: HashMap::new(),
            others: Others::default(),
        }
    }

    fn session(&self, pid: i32) -> Waiter {
        Waiter::Session { router: self.router, pid }
    }

    fn own(&self, waiter: &Waiter) -> Option<i32> {
        match waiter {
            Waiter::Session { router, pid } if *router == self.router => Some(*pid),
            _ => None,
        }
    }

    fn owners(&self, sessions: &BTreeMap<i32, Vec<Process>>) -> HashMap<Process, Waiter> {
        let of = |(session, used): (&i32, &Vec<Process>)| {
            let session = self.session(*session);
            used.clone().into_iter().map(move |process| (process, session.clone()))
        };
        sessions.iter().flat_map(of).collect()
    }

    /// A cycle, if there is one, and whose statements can be run again, with their numbers (0 for another router's).
    async fn look(&mut self, shared: &Shared) -> (BTreeSet<Waiter>, BTreeMap<Waiter, u64>) {
        let mut repeatable: BTreeMap<Waiter, u64> = BTreeMap::new();
        for (session, state) in shared.cancel_states() {
            if let Some(number) = state.repeats() {
                repeatable.insert(self.session(session), number);
            }
        }
        let sessions = processes(shared);
        let spread: BTreeSet<i32> =
            sessions.iter().filter(|(_, used)| used.len() > 1).map(|(session, _)| *session).collect();
        let mut owners = self.owners(&sessions);
        // Nobody else's session closes a cycle over servers without one of ours that is on several.
        let asked = match spread.is_empty() {
            true => BTreeSet::new(),
            false => addresses(&owners),
        };
        let mut edges = self.edges(shared, &asked).await;
        let alone = graph(&owners, &edges);
        let suspects = between(&alone);
        let suspects = spread.iter().filter(|pid| suspects.contains(&self.session(**pid)));
        let ours: BTreeMap<i32, (bool, Processes)> = suspects
            .map(|pid| (*pid, (repeatable.contains_key(&self.session(*pid)), self.told(&sessions[pid]))))
            .collect();
        let told = match self.exchange(shared, &ours).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!("other routers' sessions: {error}");
                Vec::new()
            }
        };
        if told.is_empty() {
            return (cycle(&alone), repeatable);
        }
        for session in told {
            let waiter = Waiter::Session { router: session.router, pid: session.pid };
            for (address, pid) in session.processes {
                owners.insert((address.unwrap_or_else(|| self.coordinator.clone()), pid), waiter.clone());
            }
            if session.repeats {
                repeatable.insert(waiter, 0);
            }
        }
        // None of ours may be on a server where others wait for each other.
        edges.extend(self.edges(shared, &addresses(&owners).difference(&asked).cloned().collect()).await);
        (cycle(&graph(&owners, &edges)), repeatable)
    }

    fn told(&self, used: &[Process]) -> Processes {
        used.iter().map(|(address, pid)| ((*address != self.coordinator).then(|| address.clone()), *pid)).collect()
    }

    async fn exchange(
        &mut self,
        shared: &Shared,
        ours: &BTreeMap<i32, (bool, Processes)>,
    ) -> Result<Vec<others::Told>, BackendError> {
        if self.others.is_silent(ours) {
            return Ok(Vec::new());
        }
        let address = self.coordinator.clone();
        let mut connection = self.connection(shared, &address).await?;
        let told = tokio::time::timeout(DEADLINE, self.others.exchange(&mut connection, self.router, ours));
        let told = told.await.unwrap_or_else(|_| Err(too_late(&address)))?;
        self.connections.insert(address, connection);
        Ok(told)
    }

    /// The lock waits on these servers.
    async fn edges(&mut self, shared: &Shared, addresses: &BTreeSet<Address>) -> Vec<(Process, Process)> {
        let mut edges = Vec::new();
        for address in addresses {
            match self.waits(shared, address).await {
                Ok(waits) => {
                    edges.extend(waits.into_iter().map(|(from, to)| ((address.clone(), from), (address.clone(), to))))
                }
                Err(error) => tracing::debug!("lock waits of {address}: {error}"),
            }
        }
        edges
    }

    async fn connection(&mut self, shared: &Shared, address: &Address) -> Result<Connection, BackendError> {
        match self.connections.remove(address) {
            Some(connection) if connection.is_idle() => Ok(connection),
            _ => connect(&shared.own_target_at(address)).await,
        }
    }

    async fn waits(&mut self, shared: &Shared, address: &Address) -> Result<Vec<(i32, i32)>, BackendError> {
        let mut connection = self.connection(shared, address).await?;
        let result = tokio::time::timeout(DEADLINE, connection.query(WAITS)).await;
        let result = result.unwrap_or_else(|_| Err(too_late(address)))?;
        self.connections.insert(address.clone(), connection);
        let mut out = Vec::new();
        for row in 0..result.rows.len() {
            let Some(waiting) = result.text(row, 0).and_then(|t| t.parse().ok()) else { continue };
            let blocking = result.text(row, 1).unwrap_or_default();
            out.extend(blocking.split(',').filter_map(|pid| pid.parse().ok()).map(|pid: i32| (waiting, pid)));
        }
        Ok(out)
    }
}

fn too_late(address: &Address) -> BackendError {
    BackendError::Lost { address: address.to_string(), reason: "no answer".to_owned(), said: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_repeat_pays() {
        let one = |pid| Waiter::Session { router: 1, pid };
        let other = |pid| Waiter::Session { router: 2, pid };
        let process = Waiter::Process(Address { host: "w".to_owned(), port: 1 }, 9);
        let cycle = BTreeSet::from([one(3), one(5), one(8), process.clone()]);
        assert_eq!(victim(&BTreeMap::new(), &cycle), Some(one(8)));
        assert_eq!(victim(&BTreeMap::from([(one(3), 1), (one(5), 7), (one(9), 1)]), &cycle), Some(one(5)));
        assert_eq!(victim(&BTreeMap::from([(one(3), 1)]), &BTreeSet::new()), None);
        assert_eq!(victim(&BTreeMap::new(), &BTreeSet::from([process])), None);
        let over_two = BTreeSet::from([one(3), other(2)]);
        assert_eq!(victim(&BTreeMap::new(), &over_two), Some(other(2)));
        assert_eq!(victim(&BTreeMap::from([(one(3), 1)]), &over_two), Some(one(3)));
    }
}
