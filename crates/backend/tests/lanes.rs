//! Lanes under a seeded simulation: many riders, errors, neighbours' cancels, large replies, notices, evicted
//! statements, changed columns, riders handed back and servers that die at any byte. Every rider hears exactly once,
//! and hears what its own request did. The seed of a failure is in the message; `PGHERD_SEED=n` runs one alone.
//! (Several lanes to a server with a socket are in `lanes_tcp.rs`.)
#![allow(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pgherd_backend::STATEMENTS_MAX;
use pgherd_backend::lane::{Again, LaneStatement, Outcome, Pipeline, REPLY_MAX, statement_name};
use pgherd_wire::backend::{self, ErrorFields, FieldDescription};
use pgherd_wire::frame::next_frame;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What a server does with the request of a rider; the rider's number travels as the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Rows(usize),
    Error,
    Large,
    /// One row that is larger than the limit by itself.
    LargeRow,
}

/// A server with PostgreSQL's rules for the extended protocol, as far as a lane may rely on them.
#[derive(Default)]
struct Server {
    input: BytesMut,
    output: BytesMut,
    statements: HashSet<String>,
    bound: Option<usize>,
    failed: bool,
    /// Riders whose statement was carried out and committed.
    done: Vec<usize>,
    fates: HashMap<usize, Fate>,
    /// Statements whose columns are not what was promised.
    changed: HashSet<String>,
    writes: HashSet<String>,
    portal_of: String,
}

impl Server {
    fn error(&mut self, sqlstate: &str) {
        backend::write_error(&mut self.output, &ErrorFields::new("ERROR", sqlstate, "no"));
        self.failed = true;
    }

    fn run(&mut self, random: &mut Random) {
        while let Some(frame) = next_frame(&mut self.input, 1 << 20).unwrap() {
            if random.one_in(40) {
                backend::write_parameter_status(&mut self.output, "TimeZone", "UTC");
            }
            let message = parse_frontend(&frame).unwrap();
            if let FrontendMessage::Sync = message {
                if !self.failed
                    && let Some(rider) = self.bound
                {
                    self.done.push(rider);
                }
                self.failed = false;
                self.bound = None;
                backend::write_ready_for_query(&mut self.output, b'I');
                continue;
            }
            if self.failed {
                continue;
            }
            match message {
                FrontendMessage::Parse { name, sql, .. } => {
                    if sql.contains("broken") {
                        self.error("42601");
                    } else if !self.statements.insert(name.to_owned()) {
                        self.error("42P05");
                    } else {
                        assert!(self.statements.len() <= STATEMENTS_MAX, "the server keeps too many statements");
                        backend::write_parse_complete(&mut self.output);
                    }
                }
                FrontendMessage::Close { name, .. } => {
                    self.statements.remove(name);
                    backend::write_close_complete(&mut self.output);
                }
                // A neighbour's cancel, or a lock that the server waits for too long.
                FrontendMessage::Describe { .. } if random.one_in(8) => self.error("55P03"),
                FrontendMessage::Describe { name, .. } => {
                    backend::write_parameter_description(&mut self.output, &[23]);
                    if self.writes.contains(name) {
                        backend::write_no_data(&mut self.output);
                    } else {
                        let mut field = FieldDescription::text("x");
                        field.type_oid = if self.changed.contains(name) { 23 } else { 25 };
                        backend::write_row_description(&mut self.output, &[field]);
                    }
                }
                FrontendMessage::Bind(bind) => {
                    if !self.statements.contains(bind.statement) {
                        self.error("26000");
                        continue;
                    }
                    let rider: usize = std::str::from_utf8(bind.params[0].unwrap()).unwrap().parse().unwrap();
                    self.bound = Some(rider);
                    self.portal_of = bind.statement.to_owned();
                    backend::write_bind_complete(&mut self.output);
                }
                FrontendMessage::Execute { .. } => {
                    let rider = self.bound.unwrap();
                    let row = |output: &mut BytesMut, text: &str| {
                        backend::write_data_row(output, &[Some(text.as_bytes())]);
                    };
                    let fate = self.fates[&rider];
                    match fate {
                        Fate::Error => {
                            // Some rows may be out before the error.
                            row(&mut self.output, "lost");
                            self.error("57014");
                            continue;
                        }
                        Fate::Rows(n) => (0..n).for_each(|_| row(&mut self.output, &rider.to_string())),
                        Fate::Large => {
                            let text = "y".repeat(1000);
                            (0..REPLY_MAX / 1000 + 2).for_each(|_| row(&mut self.output, &text));
                        }
                        Fate::LargeRow => row(&mut self.output, &"z".repeat(REPLY_MAX + 1)),
                    }
                    if random.one_in(10) {
                        backend::write_notice(&mut self.output, &ErrorFields::new("NOTICE", "00000", "hear"));
                    }
                    let tag = if self.writes.contains(&self.portal_of) { "UPDATE 1" } else { "SELECT 1" };
                    backend::write_command_complete(&mut self.output, tag);
                }
                other => panic!("a lane does not send {other:?}"),
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Heard {
    Complete(Vec<u8>),
    Again(Again),
    Lost,
}

fn values(rider: usize) -> Vec<u8> {
    let text = rider.to_string();
    let mut out = BytesMut::new();
    out.put_u16(0);
    out.put_u16(1);
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
    out.put_u16(0);
    out.to_vec()
}

fn rows_of(reply: &[u8]) -> (Vec<String>, String) {
    let mut buf = BytesMut::from(reply);
    let (mut rows, mut tag) = (Vec::new(), String::new());
    while let Some(frame) = next_frame(&mut buf, 1 << 30).unwrap() {
        match frame.tag() {
            b'D' => {
                let value = backend::parse_data_row(&frame).unwrap().next().unwrap().unwrap().unwrap();
                rows.push(String::from_utf8(value.to_vec()).unwrap());
            }
            b'C' => tag = backend::parse_command_complete(&frame).unwrap().to_owned(),
            b'Z' => assert!(buf.is_empty(), "a reply ends with ReadyForQuery"),
            b'N' => {}
            other => panic!("a rider is not to see {:?}", other as char),
        }
    }
    (rows, tag)
}

fn simulate(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let distinct = if random.one_in(4) { STATEMENTS_MAX as u64 + 100 } else { 12 };
    let mut server = Server::default();
    let statements: Vec<Rc<LaneStatement>> = (0..distinct)
        .map(|n| {
            let id = n + 1;
            let writes = random.one_in(3);
            let name = statement_name(id);
            if writes {
                server.writes.insert(name.clone());
            } else if random.one_in(10) {
                server.changed.insert(name.clone());
            }
            let sql = if random.one_in(15) { "broken" } else { "fine" };
            let columns = if writes { None } else { Some(vec![25]) };
            Rc::new(LaneStatement { id, name, sql: sql.into(), param_types: vec![23], columns, writes })
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
                let fate = match (statement.writes, random.below(12)) {
                    (_, 0) => Fate::Error,
                    (false, 1) if random.one_in(6) => Fate::Large,
                    (false, 2) if random.one_in(6) => Fate::LargeRow,
                    (false, n) => Fate::Rows(n as usize % 4),
                    (true, _) => Fate::Rows(0),
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
            pipeline.hand_back(|rider, statement, outcome| {
                assert!(!statement.writes, "seed {seed}: a write was handed back");
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
                assert_eq!(tag, if statement.writes { "UPDATE 1" } else { "SELECT 1" }, "{context}");
                assert!(!server.changed.contains(&statement.name), "{context}: not the promised columns");
            }
            Heard::Again(_) => assert!(!(statement.writes && ran), "{context}: a write would run twice"),
            Heard::Lost => assert!(dead && statement.writes, "{context}: lost for no reason"),
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
    });
    let mut pipeline: Pipeline<usize> = Pipeline::default();
    pipeline.push(0, &statement, &[0, 0, 0, 0, 0, 0]);
    let mut buf = BytesMut::from(&b"1\0\0\0\x042\0\0\0\x04C\0\0\0\nBEGIN\0Z\0\0\0\x05T"[..]);
    assert!(pipeline.receive(&mut buf, |_, _, _| panic!("this reply is nobody's")).is_err());
}
