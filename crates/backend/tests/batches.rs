//! Lanes for writes under a seeded simulation: many clients' statements in one transaction, errors in the middle and at
//! the commit, statements that must be alone, evicted statements, and servers that die at any byte. Every rider hears
//! exactly once, nothing happens twice, and who is told of success has it. `PGHERD_SEED=n` runs one seed alone.
#![allow(clippy::unwrap_used)]

mod simulation;

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use bytes::{Buf, BytesMut};
use pgherd_backend::STATEMENTS_MAX;
use pgherd_backend::lane::{Again, BATCH_MAX, Batch, Ended, LaneStatement, Outcome, Write, statement_name};
use simulation::{Fate, Heard, Random, Server, rows_of, values};

fn heard_of(outcome: Outcome<'_>) -> Heard {
    match outcome {
        Outcome::Complete(bytes) => Heard::Complete(bytes.to_vec()),
        Outcome::Again(again) => Heard::Again(again),
        Outcome::Lost => Heard::Lost,
    }
}

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let distinct = if random.one_in(4) { STATEMENTS_MAX as u64 + 100 } else { 12 };
    let mut server = Server::default();
    let statements: Vec<Rc<LaneStatement>> = (1..=distinct)
        .map(|id| {
            let name = statement_name(id);
            server.writes.insert(name.clone());
            let sql = if random.one_in(40) { "broken" } else { "fine" };
            let shares = !random.one_in(10);
            let param_types = vec![23];
            Rc::new(LaneStatement { id, name, sql: sql.into(), param_types, columns: None, writes: true, shares })
        })
        .collect();
    let riders = 30 + random.below(600) as usize;
    let dies_after = if random.one_in(2) { Some(random.below(20_000) as usize) } else { None };
    let bad = 5 + random.below(200);
    let mut heard: Vec<Vec<Heard>> = vec![Vec::new(); riders];
    let mut ridden: Vec<Rc<LaneStatement>> = Vec::new();
    let mut waiting: VecDeque<Write<usize>> = VecDeque::new();
    let mut batch: Batch<usize> = Batch::default();
    let (mut buf, mut delivered, mut dead, mut most, mut largest) = (BytesMut::new(), 0usize, false, BATCH_MAX, 0);
    while !dead && (ridden.len() < riders || !waiting.is_empty() || !batch.is_empty()) {
        for _ in 0..random.below(20) {
            if ridden.len() == riders {
                break;
            }
            let statement = statements[random.below(distinct) as usize].clone();
            let fate = match random.below(bad) {
                0 => Fate::Error,
                1 => Fate::CommitError,
                _ => Fate::Rows(0),
            };
            let rider = ridden.len();
            server.fates.insert(rider, fate);
            waiting.push_back(Write { rider, statement: statement.clone(), values: values(rider) });
            ridden.push(statement);
        }
        if batch.is_empty() {
            batch.start(most, |joins| {
                if waiting.front().is_some_and(|write| joins(&write.statement)) { waiting.pop_front() } else { None }
            });
            largest = largest.max(batch.len());
        }
        let leaves = (random.below(3000) as usize).min(batch.out().len());
        server.input.extend_from_slice(&batch.out()[..leaves]);
        batch.took(leaves);
        server.run(&mut random);
        let arrives = random.below(3000).min(server.output.len() as u64) as usize;
        buf.extend_from_slice(&server.output[..arrives]);
        server.output.advance(arrives);
        delivered += arrives;
        let size = batch.len();
        let ended = batch.receive(&mut buf, |rider, _, outcome| heard[rider].push(heard_of(outcome)));
        match ended.unwrap_or_else(|_| panic!("seed {seed}: the stream makes no sense")) {
            None => {}
            Some(Ended::Committed) => most = (most * 2).min(BATCH_MAX),
            Some(Ended::RolledBack { innocent, .. }) => {
                assert!(innocent.len() < size || size > 1, "seed {seed}: this would never end");
                most = (size / 2).max(1);
                innocent.into_iter().rev().for_each(|write| waiting.push_front(write));
            }
        }
        dead = dies_after.is_some_and(|limit| delivered > limit);
    }
    batch.close(|rider, _, outcome| heard[rider].push(heard_of(outcome)));
    waiting.into_iter().for_each(|write| heard[write.rider].push(Heard::Again(Again::NotSent)));
    assert!(dead || riders < 200 || largest > 1, "seed {seed}: nobody shared a transaction");
    let mut once = HashSet::new();
    assert!(server.done.iter().all(|rider| once.insert(*rider)), "seed {seed}: something happened twice");
    for (rider, statement) in ridden.iter().enumerate() {
        let fate = server.fates[&rider];
        let ran = once.contains(&rider);
        let context = format!("seed {seed}, rider {rider}, {fate:?}, {statement:?}");
        let [outcome] = heard[rider].as_slice() else { panic!("{context}: heard {} times", heard[rider].len()) };
        match outcome {
            Heard::Complete(reply) => {
                assert!(ran, "{context}: a reply to what did not happen");
                assert_eq!(rows_of(reply), (Vec::new(), "UPDATE 1".to_owned()), "{context}");
            }
            Heard::Again(_) => assert!(!ran, "{context}: it would run twice"),
            Heard::Lost => assert!(dead, "{context}: lost for no reason"),
        }
        if !dead && fate == Fate::Rows(0) && statement.sql == "fine" {
            assert!(matches!(outcome, Heard::Complete(_)), "{context}: {outcome:?}, a neighbour's error");
        }
    }
}

#[test]
fn every_rider_hears_once_and_nothing_happens_twice() {
    if let Some(seed) = std::env::var("PGHERD_SEED").ok().and_then(|s| s.parse().ok()) {
        return simulate(seed);
    }
    (0..400).for_each(simulate);
}
