//! Deadlocks that no single server can see: session A waits on one worker for B, which waits on another for A. The
//! lock waits of all servers are joined into one graph, of this router's sessions, of those of other routers where
//! they may be part of it, and of processes that nobody is known to use. A cycle that stays, of the same statements,
//! costs one of the sessions its statement, with PostgreSQL's own SQLSTATE, or none, where a statement can be run
//! again without its client's knowing. What is on one server only, PostgreSQL finds by itself.
//!
//! Prepared transactions are not in the graph. Routers hear of each other where they have the same database by default.

mod graph;
mod others;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgherd_backend::{Address, BackendError, Connection, connect};
use tokio::sync::watch;

use crate::shared::Shared;
use graph::{Graph, Waiter, between};
use others::{Others, Processes};

/// Shorter than PostgreSQL's own `deadlock_timeout`, by which a server picks one who cannot start again.
const INTERVAL: Duration = Duration::from_millis(400);
/// For how long a cycle is there before it costs somebody a statement.
const PATIENCE: Duration = Duration::from_secs(1);
/// The same where a mistake would cost nobody anything.
const HASTE: Duration = Duration::from_millis(100);
/// How long a server may take to say who waits there, from the first message of a new connection on.
const DEADLINE: Duration = Duration::from_secs(2);
/// How long one that took longer is not asked.
const LEFT_OUT: Duration = Duration::from_secs(10);
/// How long a connection is kept that nobody has asked anything.
const KEPT: Duration = Duration::from_secs(60);
/// Waiting backends with those they wait for, and since when their statements have run.
const WAITS: &str = "SELECT coalesce(a.leader_pid, a.pid), \
                         pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ','), a.query_start \
                     FROM pg_catalog.pg_stat_activity a WHERE a.wait_event_type = 'Lock'";

/// Which of this router's sessions wait for which.
pub type Waits = BTreeMap<i32, BTreeSet<i32>>;

pub fn spawn(shared: Arc<Shared>, mut shutdown: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let mut detector = Detector::new(&shared);
        let mut seen: BTreeMap<Cycle, Instant> = BTreeMap::new();
        let mut interval = INTERVAL;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
            let Found { cycles, repeatable } = detector.look(&shared).await;
            seen.retain(|cycle, _| cycles.contains(cycle));
            interval = INTERVAL;
            for cycle in cycles {
                let Some(victim) = victim(&repeatable, &cycle.members) else { continue };
                let Some(state) = detector.own(&victim).and_then(|pid| shared.cancel_state(pid)) else { continue };
                let statement = repeatable.get(&victim).copied();
                let patience = if statement.is_some() { HASTE } else { PATIENCE };
                let since = *seen.entry(cycle.clone()).or_insert_with(Instant::now);
                match patience.checked_sub(since.elapsed()).filter(|left| !left.is_zero()) {
                    Some(left) => interval = interval.min(left),
                    None => {
                        tracing::info!("deadlock between {:?}", cycle.members);
                        state.break_deadlock(statement).await;
                        seen.remove(&cycle);
                    }
                }
            }
        }
    });
}

/// What a look has found.
struct Found {
    cycles: Vec<Cycle>,
    /// Whose statements can be run again, with their numbers (0 for another router's).
    repeatable: BTreeMap<Waiter, u64>,
}

/// The same one as long as the same statements wait.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cycle {
    members: BTreeSet<Waiter>,
    waits: BTreeSet<Wait>,
    /// Of this router's statements that can be run again.
    numbers: Vec<u64>,
}

/// That one process waits for another, and when its statement began, as the server writes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    from: Process,
    to: Process,
    began: String,
}

/// Who of a cycle pays: one that runs its statement again, or else the youngest, which has the least to lose. All
/// routers choose the same.
fn victim(repeatable: &BTreeMap<Waiter, u64>, cycle: &BTreeSet<Waiter>) -> Option<Waiter> {
    let mut sessions = cycle.iter().filter(|waiter| matches!(waiter, Waiter::Session { .. }));
    sessions.clone().rfind(|session| repeatable.contains_key(*session)).or(sessions.next_back()).cloned()
}

/// The lock waits between sessions of this router, wherever they are, as of a moment ago: a statement may ask for each
/// row. Who asks at the same time waits for the same answer.
#[derive(Default)]
pub struct RecentWaits(tokio::sync::Mutex<Option<(Detector, Instant, Waits)>>);

impl RecentWaits {
    pub async fn of(&self, shared: &Shared) -> Waits {
        const RECENT: Duration = Duration::from_millis(100);
        let mut known = self.0.lock().await;
        if let Some((_, at, waits)) = &*known
            && at.elapsed() < RECENT
        {
            return waits.clone();
        }
        let mut detector = known.take().map_or_else(|| Detector::new(shared), |(detector, ..)| detector);
        let waits = detector.waits_here(shared).await;
        *known = Some((detector, Instant::now(), waits.clone()));
        waits
    }
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
fn ends(owners: &HashMap<Process, Waiter>, wait: &Wait) -> (Waiter, Waiter) {
    let known = |process: &Process| {
        owners.get(process).cloned().unwrap_or_else(|| Waiter::Process(process.0.clone(), process.1))
    };
    (known(&wait.from), known(&wait.to))
}

fn graph(owners: &HashMap<Process, Waiter>, waits: &[Wait]) -> Graph {
    let mut graph = Graph::new();
    for (from, to) in waits.iter().map(|wait| ends(owners, wait)) {
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
    /// With when they were asked last.
    connections: HashMap<Address, (Connection, Instant)>,
    /// Servers that did not answer in time, and when that was.
    silent: HashMap<Address, Instant>,
    others: Others,
}

impl Detector {
    fn new(shared: &Shared) -> Detector {
        Detector {
            router: shared.number,
            coordinator: shared.own_target("").address,
            connections: HashMap::new(),
            silent: HashMap::new(),
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

    /// Who of this router's sessions waits for whom.
    async fn waits_here(&mut self, shared: &Shared) -> Waits {
        let owners = self.owners(&processes(shared));
        let mut waits = Waits::new();
        for (from, to) in self.waits(shared, &addresses(&owners)).await.iter().map(|wait| ends(&owners, wait)) {
            if let (Some(from), Some(to)) = (self.own(&from), self.own(&to))
                && from != to
            {
                waits.entry(from).or_default().insert(to);
            }
        }
        waits
    }

    async fn look(&mut self, shared: &Shared) -> Found {
        let mut repeatable: BTreeMap<Waiter, u64> = BTreeMap::new();
        for (session, state) in shared.cancel_states() {
            if let Some(number) = state.repeats() {
                repeatable.insert(self.session(session), number);
            }
        }
        let sessions = processes(shared);
        let mut owners = self.owners(&sessions);
        // Nobody else's session closes a cycle over servers without one of ours that is on several.
        let asked = match sessions.values().any(|used| used.len() > 1) {
            true => addresses(&owners),
            false => BTreeSet::new(),
        };
        let mut waits = self.waits(shared, &asked).await;
        let alone = graph(&owners, &waits);
        // All routers see the same of whom they choose from.
        let ours: BTreeMap<i32, (bool, Processes)> = between(&alone)
            .into_iter()
            .filter_map(|waiter| {
                let pid = self.own(waiter)?;
                Some((pid, (repeatable.contains_key(waiter), self.told(&sessions[&pid]))))
            })
            .collect();
        let told = match self.exchange(shared, &ours).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!("other routers' sessions: {error}");
                Vec::new()
            }
        };
        if !told.is_empty() {
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
            let more = addresses(&owners).difference(&asked).cloned().collect();
            waits.extend(self.waits(shared, &more).await);
        }
        let cycles = graph::cycles(&graph(&owners, &waits)).into_iter().map(|members| {
            let is_inside = |wait: &&Wait| {
                let (from, to) = ends(&owners, wait);
                from != to && members.contains(&from) && members.contains(&to)
            };
            Cycle {
                waits: waits.iter().filter(is_inside).cloned().collect(),
                numbers: members.iter().filter_map(|member| repeatable.get(member).copied()).collect(),
                members,
            }
        });
        Found { cycles: cycles.collect(), repeatable }
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
        let kept = self.connections.remove(&address);
        let told = tokio::time::timeout(DEADLINE, async {
            let mut connection = connection(shared, &address, kept).await?;
            Ok((self.others.exchange(&mut connection, self.router, ours).await?, connection))
        });
        let (told, connection) = told.await.unwrap_or_else(|_| Err(too_late(&address)))?;
        self.connections.insert(address, (connection, Instant::now()));
        Ok(told)
    }

    /// The lock waits on these servers, which are asked side by side.
    async fn waits(&mut self, shared: &Shared, addresses: &BTreeSet<Address>) -> Vec<Wait> {
        self.connections.retain(|_, (_, asked)| asked.elapsed() < KEPT);
        self.silent.retain(|_, since| since.elapsed() < LEFT_OUT);
        let asked = addresses.iter().filter(|address| !self.silent.contains_key(*address));
        let asked: Vec<_> = asked.map(|address| (address.clone(), self.connections.remove(address))).collect();
        let answers = asked.into_iter().map(|(address, kept)| async move {
            (tokio::time::timeout(DEADLINE, waits_at(shared, &address, kept)).await, address)
        });
        let mut all = Vec::new();
        for (answer, address) in futures_util::future::join_all(answers).await {
            match answer {
                Ok(Ok((waits, connection))) => {
                    all.extend(waits);
                    self.connections.insert(address, (connection, Instant::now()));
                }
                Ok(Err(error)) => tracing::debug!("lock waits of {address}: {error}"),
                Err(_) => {
                    tracing::debug!("lock waits of {address}: no answer");
                    self.silent.insert(address, Instant::now());
                }
            }
        }
        all
    }
}

/// One that was kept, or a new one.
async fn connection(
    shared: &Shared,
    address: &Address,
    kept: Option<(Connection, Instant)>,
) -> Result<Connection, BackendError> {
    match kept {
        Some((connection, _)) if connection.is_idle() => Ok(connection),
        _ => connect(&shared.own_target_at(address)).await,
    }
}

async fn waits_at(
    shared: &Shared,
    address: &Address,
    kept: Option<(Connection, Instant)>,
) -> Result<(Vec<Wait>, Connection), BackendError> {
    let mut connection = connection(shared, address, kept).await?;
    let result = connection.query(WAITS).await?;
    let mut waits = Vec::new();
    for row in 0..result.rows.len() {
        let Some(waiting) = result.text(row, 0).and_then(|text| text.parse().ok()) else { continue };
        let began = result.text(row, 2).unwrap_or_default();
        let blocking = result.text(row, 1).unwrap_or_default();
        waits.extend(blocking.split(',').filter_map(|pid| pid.parse().ok()).map(|pid: i32| Wait {
            from: (address.clone(), waiting),
            to: (address.clone(), pid),
            began: began.to_owned(),
        }));
    }
    Ok((waits, connection))
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
