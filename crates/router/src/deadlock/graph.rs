//! Who waits for whom.

use std::collections::{BTreeMap, BTreeSet};

use pgherd_backend::Address;

/// Who waits, or is waited for. The order is the same for every router.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiter {
    /// A server's process that no session is known to use.
    Process(Address, i32),
    /// A session of a router, wherever it is.
    Session { router: u64, pid: i32 },
}

pub type Graph = BTreeMap<Waiter, BTreeSet<Waiter>>;

/// The members of each cycle; those that meet are one.
pub fn cycles(graph: &Graph) -> Vec<BTreeSet<Waiter>> {
    let mut found: Vec<BTreeSet<Waiter>> = Vec::new();
    for start in graph.keys() {
        if found.iter().any(|members| members.contains(start)) {
            continue;
        }
        // Everything that `start` waits for, directly or not; a cycle through it leads back.
        let reached = reached(graph, start);
        if reached.contains(start) {
            // Of these, the ones that lead back to it.
            let leads_back = |from: &&Waiter| self::reached(graph, from).contains(start);
            found.push(reached.into_iter().filter(leads_back).cloned().collect());
        }
    }
    found
}

/// What `from` waits for, directly or not.
fn reached<'a>(graph: &'a Graph, from: &Waiter) -> BTreeSet<&'a Waiter> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Waiter> = graph.get(from).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}

/// Who is waited for and waits too, as all in a cycle do, while a process that nobody is known to use is near.
pub fn between(graph: &Graph) -> BTreeSet<&Waiter> {
    let is_process = |waiter: &Waiter| matches!(waiter, Waiter::Process(..));
    if !graph.iter().any(|(from, to)| is_process(from) || to.iter().any(is_process)) {
        return BTreeSet::new();
    }
    let awaited: BTreeSet<&Waiter> = graph.values().flatten().collect();
    graph.keys().filter(|waiter| awaited.contains(waiter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i32) -> Waiter {
        Waiter::Session { router: 1, pid }
    }

    fn process(pid: i32) -> Waiter {
        Waiter::Process(Address { host: "w".to_owned(), port: 1 }, pid)
    }

    fn graph(edges: &[(Waiter, Waiter)]) -> Graph {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(from.clone()).or_default().insert(to.clone());
        }
        graph
    }

    fn check(edges: &[(i32, i32)], expected: &[&[i32]]) {
        let edges: Vec<_> = edges.iter().map(|(from, to)| (session(*from), session(*to))).collect();
        let expected: Vec<BTreeSet<Waiter>> =
            expected.iter().map(|members| members.iter().copied().map(session).collect()).collect();
        assert_eq!(cycles(&graph(&edges)), expected, "{edges:?}");
    }

    #[test]
    fn cycles_are_found_and_queues_are_not() {
        check(&[], &[]);
        check(&[(1, 2), (2, 3)], &[]);
        check(&[(1, 2), (2, 1)], &[&[1, 2]]);
        check(&[(1, 2), (2, 3), (3, 2)], &[&[2, 3]]);
        check(&[(5, 4), (4, 6), (6, 5), (7, 5)], &[&[4, 5, 6]]);
        check(&[(1, 2), (2, 1), (3, 1), (4, 5), (5, 4), (8, 4), (8, 9), (9, 8)], &[&[1, 2], &[4, 5], &[8, 9]]);
        check(&[(1, 2), (2, 1), (2, 3), (3, 2)], &[&[1, 2, 3]]);
    }

    #[test]
    fn who_may_be_in_a_cycle_with_others_is_told() {
        assert!(between(&graph(&[(session(1), session(2)), (session(2), session(1))])).is_empty());
        let with_others = graph(&[(session(1), process(7)), (process(8), session(1)), (session(2), session(1))]);
        assert_eq!(between(&with_others), BTreeSet::from([&session(1)]));
        assert!(between(&graph(&[(session(1), process(7)), (session(2), process(7))])).is_empty());
    }
}
