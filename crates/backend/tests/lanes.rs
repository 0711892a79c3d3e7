//! Lanes for reads under a seeded simulation: many riders, errors, neighbours' cancels, large replies, notices, evicted
//! statements, changed columns, riders handed back and servers that die at any byte. Every rider hears exactly once,
//! and hears what its own request did. The seed of a failure is in the message; `PGHERD_SEED=n` runs one alone.
//! (Writes are in `batches.rs`, several lanes to a server with a socket in `lanes_tcp.rs`.)
#![allow(clippy::unwrap_used)]

mod simulation;

use std::rc::Rc;

use bytes::{Buf, Bytes, BytesMut};
use pgherd_backend::STATEMENTS_MAX;
use pgherd_backend::lane::{Again, LaneStatement, Outcome, Pipeline, REPLY_MAX, statement_name};
use pgherd_wire::backend;
use simulation::{Fate, Heard, Random, Server, rows_of, values};

fn simulate(seed: u64) {
    let mut random = Random::new(seed);
    let distinct = if random.one_in(4) { STATEMENTS_MAX as u64 + 100 } else { 12 };
    let mut server = Server::default();
    let statements: Vec<Rc<LaneStatement>> = (0..distinct)
        .map(|n| {
            let id = n + 1;
            let name = statement_name(id);
            if random.one_in(10) {
                server.changed.insert(name.clone());
            }
            let sql = if random.one_in(15) { "broken" } else { "fine" };
            Rc::new(LaneStatement {
                id,
                name,
                sql: sql.into(),
                param_types: vec![23],
                columns: Some(vec![25]),
                writes: false,
                shares: false,
            })
        })
        .collect();
    let riders = 30 + random.below(400) as usize;
    let dies_after = if random.one_in(2) { Some(random.below(60_000) as usize) } else { None };
    let mut heard: Vec<Vec<Heard>> = vec![Vec::new(); riders];
    let mut ridden: Vec<Rc<LaneStatement>> = Vec::new();
    let mut pipeline: Pipeline<usize> = Pipeline::default();
    let (mut buf, mut delivered, mut dead) = (BytesMut::new(), 0usize, false);
    let mut order = Vec::new();
    while !dead && (ridden.len() < riders || pipeline.depth() > 0) {
        if ridden.len() < riders && random.one_in(2) {
            for _ in 0..=random.below(6) {
                if ridden.len() == riders {
                    break;
                }
                let statement = statements[random.below(distinct) as usize].clone();
                let fate = match random.below(12) {
                    0 => Fate::Error,
                    1 if random.one_in(6) => Fate::Large,
                    2 if random.one_in(6) => Fate::LargeRow,
                    n => Fate::Rows(n as usize % 4),
                };
                server.fates.insert(ridden.len(), fate);
                pipeline.push(ridden.len(), &statement, &values(ridden.len()));
                ridden.push(statement);
            }
        }
        let leaves = (random.below(400) as usize).min(pipeline.out().len());
        server.input.extend_from_slice(&pipeline.out()[..leaves]);
        pipeline.took(leaves);
        if random.one_in(20) {
            pipeline.hand_back(|rider, _, outcome| {
                assert_eq!(outcome, Outcome::Again(Again::HeldUp));
                heard[rider].push(Heard::Again(Again::HeldUp));
            });
        }
        server.run(&mut random);
        let arrives = (random.below(3) * random.below(40_000)).min(server.output.len() as u64) as usize;
        buf.extend_from_slice(&server.output[..arrives]);
        server.output.advance(arrives);
        delivered += arrives;
        let result = pipeline.receive(&mut buf, |rider, _, outcome| {
            order.push(rider);
            heard[rider].push(match outcome {
                Outcome::Complete(bytes) => Heard::Complete(bytes.to_vec()),
                Outcome::Again(again) => Heard::Again(again),
                Outcome::Lost => Heard::Lost,
            });
        });
        assert_eq!(result, Ok(()), "seed {seed}");
        assert!(buf.len() <= REPLY_MAX + 80_000, "seed {seed}: the buffer grew to {}", buf.len());
        dead = dies_after.is_some_and(|limit| delivered > limit);
    }
    pipeline.close(|rider, _, outcome| {
        order.push(rider);
        heard[rider].push(match outcome {
            Outcome::Complete(_) => panic!("seed {seed}: a dead server completes nothing"),
            Outcome::Again(again) => Heard::Again(again),
            Outcome::Lost => Heard::Lost,
        });
    });
    assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "seed {seed}: replies out of order");
    for (rider, statement) in ridden.iter().enumerate() {
        let fate = server.fates[&rider];
        let ran = server.done.contains(&rider);
        let context = format!("seed {seed}, rider {rider}, {fate:?}, {statement:?}");
        let [outcome] = heard[rider].as_slice() else { panic!("{context}: heard {} times", heard[rider].len()) };
        match outcome {
            Heard::Complete(reply) => {
                assert!(ran, "{context}: a reply to what did not happen");
                let (rows, tag) = rows_of(reply);
                let Fate::Rows(n) = fate else { panic!("{context}: this cannot be complete") };
                assert_eq!(rows, vec![rider.to_string(); n], "{context}");
                assert_eq!(tag, "SELECT 1", "{context}");
                assert!(!server.changed.contains(&statement.name), "{context}: not the promised columns");
            }
            Heard::Again(_) => {}
            Heard::Lost => panic!("{context}: a read can be run again"),
        }
    }
}

#[test]
fn every_rider_hears_once_what_its_own_request_did() {
    if let Some(seed) = std::env::var("PGHERD_SEED").ok().and_then(|s| s.parse().ok()) {
        return simulate(seed);
    }
    (0..400).for_each(simulate);
}

#[test]
fn what_a_server_says_between_replies_is_nobodys() {
    let mut pipeline: Pipeline<usize> = Pipeline::default();
    let mut buf = BytesMut::new();
    backend::write_parameter_status(&mut buf, "TimeZone", "UTC");
    assert_eq!(pipeline.receive(&mut buf, |_, _, _| panic!("nobody rides")), Ok(()));
    assert!(buf.is_empty());
    buf.extend_from_slice(&Bytes::from_static(b"Z\0\0\0\x05I"));
    assert!(pipeline.receive(&mut buf, |_, _, _| panic!("nobody rides")).is_err());
}

#[test]
fn a_block_that_stays_open_breaks_the_lane() {
    let statement = Rc::new(LaneStatement {
        id: 1,
        name: statement_name(1),
        sql: "BEGIN".into(),
        param_types: Vec::new(),
        columns: None,
        writes: false,
        shares: false,
    });
    let mut pipeline: Pipeline<usize> = Pipeline::default();
    pipeline.push(0, &statement, &[0, 0, 0, 0, 0, 0]);
    let mut buf = BytesMut::from(&b"1\0\0\0\x042\0\0\0\x04C\0\0\0\nBEGIN\0Z\0\0\0\x05T"[..]);
    assert!(pipeline.receive(&mut buf, |_, _, _| panic!("this reply is nobody's")).is_err());
}
