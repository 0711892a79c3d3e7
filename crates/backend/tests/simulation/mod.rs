//! What the simulations of lanes share: seeded chance, and a server with PostgreSQL's rules for the extended protocol.
#![allow(dead_code)]

use std::collections::{HashMap, HashSet};

use bytes::{BufMut, BytesMut};
use pgherd_backend::STATEMENTS_MAX;
use pgherd_backend::lane::{Again, REPLY_MAX};
use pgherd_wire::backend::{self, ErrorFields, FieldDescription};
use pgherd_wire::frame::next_frame;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What a server does with the request of a rider; the rider's number travels as the parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Rows(usize),
    Error,
    /// When the transaction commits.
    CommitError,
    Large,
    /// One row that is larger than the limit by itself.
    LargeRow,
}

/// A server with PostgreSQL's rules for the extended protocol, as far as a lane may rely on them.
#[derive(Default)]
pub struct Server {
    pub input: BytesMut,
    pub output: BytesMut,
    statements: HashSet<String>,
    bound: Option<usize>,
    /// Riders whose statement ran in the transaction that is open.
    open: Vec<usize>,
    failed: bool,
    /// Riders whose statement was carried out and committed.
    pub done: Vec<usize>,
    pub fates: HashMap<usize, Fate>,
    /// Statements whose columns are not what was promised.
    pub changed: HashSet<String>,
    pub writes: HashSet<String>,
    portal_of: String,
}

impl Server {
    fn error(&mut self, sqlstate: &str) {
        backend::write_error(&mut self.output, &ErrorFields::new("ERROR", sqlstate, "no"));
        self.failed = true;
    }

    pub fn run(&mut self, random: &mut Random) {
        while let Some(frame) = next_frame(&mut self.input, 1 << 20).unwrap() {
            if random.one_in(40) {
                backend::write_parameter_status(&mut self.output, "TimeZone", "UTC");
            }
            let message = parse_frontend(&frame).unwrap();
            if let FrontendMessage::Sync = message {
                let open = std::mem::take(&mut self.open);
                if !self.failed && open.iter().any(|rider| self.fates[rider] == Fate::CommitError) {
                    self.error("23503");
                }
                if !self.failed {
                    self.done.extend(open);
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
                        Fate::CommitError => {}
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
                    self.open.push(rider);
                }
                other => panic!("a lane does not send {other:?}"),
            }
        }
    }
}

pub fn values(rider: usize) -> Vec<u8> {
    let text = rider.to_string();
    let mut out = BytesMut::new();
    out.put_u16(0);
    out.put_u16(1);
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
    out.put_u16(0);
    out.to_vec()
}

pub fn rows_of(reply: &[u8]) -> (Vec<String>, String) {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Complete(Vec<u8>),
    Again(Again),
    Lost,
}
