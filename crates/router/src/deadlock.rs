//! Deadlocks that no single server can see: session A waits on one worker for B, which waits on another for A. The lock
//! waits of all servers are joined into one graph of this router's sessions; a cycle that is there twice in a row costs
//! one of them its statement, with PostgreSQL's own SQLSTATE, or none, where a statement can be run again without its
//! client's knowing. What is on one server only, PostgreSQL finds by itself.
//!
//! Sessions of other routers and prepared transactions are not in the graph.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use pgherd_backend::{Address, Connection, connect};
use tokio::sync::watch;

use crate::shared::Shared;

/// Shorter than PostgreSQL's own `deadlock_timeout`, by which a server picks one who cannot start again.
const INTERVAL: Duration = Duration::from_millis(400);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// The second look, where a mistake would cost nobody anything.
const AGAIN: Duration = Duration::from_millis(100);
/// Waiting backends with those they wait for.
const WAITS: &str = "SELECT a.pid, pg_catalog.array_to_string(pg_catalog.pg_blocking_pids(a.pid), ',') \
                     FROM pg_catalog.pg_stat_activity a WHERE a.wait_event_type = 'Lock'";

/// Who waits for whom, by session.
pub type Graph = BTreeMap<i32, BTreeSet<i32>>;

pub fn spawn(shared: Arc<Shared>, mut shutdown: watch::Receiver<bool>) {
    tokio::spawn(async move {
        let mut connections: HashMap<Address, Connection> = HashMap::new();
        let mut seen = None;
        let mut interval = INTERVAL;
        loop {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
            let repeatable = repeatable(&shared);
            let found = cycle(&graph(&shared, &mut connections, 2).await);
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
            } else if let Some(state) = shared.cancel_state(victim) {
                tracing::info!("deadlock between sessions {found:?}");
                state.break_deadlock(statement).await;
            }
        }
    });
}

/// Sessions that can run again what they run now, with the numbers of their statements.
fn repeatable(shared: &Shared) -> BTreeMap<i32, u64> {
    shared.cancel_states().iter().filter_map(|(session, state)| Some((*session, state.repeats()?))).collect()
}

/// Who of a cycle pays: one that runs its statement again, or else the youngest, which has the least to lose.
fn victim(repeatable: &BTreeMap<i32, u64>, cycle: &BTreeSet<i32>) -> Option<i32> {
    cycle.iter().rfind(|session| repeatable.contains_key(*session)).or(cycle.last()).copied()
}

/// The lock waits between sessions of this router, wherever they are.
pub async fn all_waits(shared: &Shared) -> Graph {
    graph(shared, &mut HashMap::new(), 1).await
}

/// The same. Servers are only asked while so many sessions are on several of them, or on one.
async fn graph(shared: &Shared, connections: &mut HashMap<Address, Connection>, least: usize) -> Graph {
    let sessions = shared.cancel_states();
    let mut owners: HashMap<(Address, i32), i32> = HashMap::new();
    let mut spread = 0;
    for (session, state) in &sessions {
        let targets = state.targets();
        spread += usize::from(targets.len() > usize::from(least > 1));
        for (address, key) in targets {
            owners.insert((address, key.pid), *session);
        }
    }
    let mut graph = Graph::new();
    if spread < least {
        return graph;
    }
    let addresses: BTreeSet<Address> = owners.keys().map(|(address, _)| address.clone()).collect();
    for address in addresses {
        let waits = match waits(shared, connections, &address).await {
            Ok(waits) => waits,
            Err(error) => {
                tracing::debug!("lock waits of {address}: {error}");
                connections.remove(&address);
                continue;
            }
        };
        for (waiting, blocking) in waits {
            let ends = (owners.get(&(address.clone(), waiting)), owners.get(&(address.clone(), blocking)));
            if let (Some(from), Some(to)) = ends
                && from != to
            {
                graph.entry(*from).or_default().insert(*to);
            }
        }
    }
    graph
}

async fn waits(
    shared: &Shared,
    connections: &mut HashMap<Address, Connection>,
    address: &Address,
) -> Result<Vec<(i32, i32)>, pgherd_backend::BackendError> {
    let mut connection = match connections.remove(address) {
        Some(connection) if connection.is_idle() => connection,
        _ => connect(&shared.own_target_at(address)).await?,
    };
    let result = connection.query(WAITS).await?;
    connections.insert(address.clone(), connection);
    let mut out = Vec::new();
    for row in 0..result.rows.len() {
        let Some(waiting) = result.text(row, 0).and_then(|t| t.parse().ok()) else { continue };
        let blocking = result.text(row, 1).unwrap_or_default();
        out.extend(blocking.split(',').filter_map(|pid| pid.parse().ok()).map(|pid: i32| (waiting, pid)));
    }
    Ok(out)
}

/// The sessions of one cycle, or none.
pub fn cycle(graph: &Graph) -> BTreeSet<i32> {
    for start in graph.keys() {
        // Everything that `start` waits for, directly or not; a cycle through it leads back.
        let mut reached: BTreeSet<i32> = BTreeSet::new();
        let mut open: Vec<i32> = graph.get(start).into_iter().flatten().copied().collect();
        while let Some(session) = open.pop() {
            if reached.insert(session) {
                open.extend(graph.get(&session).into_iter().flatten());
            }
        }
        if reached.contains(start) {
            // Of these, the ones that lead back to it.
            return reached.into_iter().filter(|s| leads_to(graph, *s, *start)).collect();
        }
    }
    BTreeSet::new()
}

fn leads_to(graph: &Graph, from: i32, to: i32) -> bool {
    let mut reached: BTreeSet<i32> = BTreeSet::new();
    let mut open = vec![from];
    while let Some(session) = open.pop() {
        if session == to {
            return true;
        }
        if reached.insert(session) {
            open.extend(graph.get(&session).into_iter().flatten());
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(edges: &[(i32, i32)], expected: &[i32]) {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(*from).or_default().insert(*to);
        }
        assert_eq!(cycle(&graph).into_iter().collect::<Vec<_>>(), expected, "{edges:?}");
    }

    #[test]
    fn who_can_repeat_pays() {
        let cycle = BTreeSet::from([3, 5, 8]);
        assert_eq!(victim(&BTreeMap::new(), &cycle), Some(8));
        assert_eq!(victim(&BTreeMap::from([(3, 1), (5, 7), (9, 1)]), &cycle), Some(5));
        assert_eq!(victim(&BTreeMap::from([(3, 1)]), &BTreeSet::new()), None);
    }

    #[test]
    fn a_cycle_is_found_and_a_queue_is_not() {
        check(&[], &[]);
        check(&[(1, 2), (2, 3)], &[]);
        check(&[(1, 2), (2, 1)], &[1, 2]);
        check(&[(1, 2), (2, 3), (3, 2)], &[2, 3]);
        check(&[(5, 4), (4, 6), (6, 5), (7, 5)], &[4, 5, 6]);
    }
}
