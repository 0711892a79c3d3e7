//! What travels on a lane for writes, without the socket: the statements of several clients as **one transaction**, one
//! behind the other with a single Sync at the end, so that they share a commit, its flush and the server's wake-up.
//! Bytes go in and out; nothing here waits or reads a clock, so that a simulation can drive it.
//!
//! Each client sees what it would see alone: its statement took a snapshot of its own, and it hears of success once
//! all are committed. An error rolls all of them back; the one that failed is run again on a lease, which says what is
//! wrong with it, and the others are given back to be sent again. Which statements may share a transaction is the
//! router's decision ([`LaneStatement::shares`]).

use std::ops::Range;
use std::rc::Rc;

use bytes::{Buf, BytesMut};
use pgherd_wire::backend;
use pgherd_wire::frame::{Frame, HEADER_LEN};
use pgherd_wire::frontend;

use super::pipeline::{Again, Broken, LaneStatement, Outcome, promised, statement_name, write_execution};
use crate::Statements;

/// Statements in one transaction at most.
pub const BATCH_MAX: usize = 64;
/// Bytes of their values.
const BATCH_BYTES_MAX: usize = 64 * 1024;
const READY: &[u8] = b"Z\0\0\0\x05I";

/// A write that waits, or is under way.
#[derive(Debug)]
pub struct Write<R> {
    pub rider: R,
    pub statement: Rc<LaneStatement>,
    /// The rest of a Bind message behind the statement's name: formats, parameters, result formats.
    pub values: Vec<u8>,
}

struct Member<R> {
    write: Write<R>,
    /// This request carries the Parse, which the server has not done yet.
    parses: bool,
    /// Its columns are not those that its client was told of.
    changed: bool,
    /// Where its reply is in `replies`.
    reply: Range<usize>,
}

/// How a transaction ended.
#[derive(Debug)]
pub enum Ended<R> {
    /// Everyone has heard.
    Committed,
    /// Nothing of it has happened. One statement was found guilty, with this SQLSTATE, and has heard; these are to be
    /// sent again, in this order.
    RolledBack { sqlstate: [u8; 5], innocent: Vec<Write<R>> },
}

/// The statements that are on their way, and what the server is known to keep.
pub struct Batch<R> {
    members: Vec<Member<R>>,
    /// Statements that the server has, or will have by the time it reads the next batch.
    prepared: Statements,
    out: BytesMut,
    /// Messages in front of all others: Close of statements that make room. They cannot be skipped by an error.
    closes: BytesMut,
    /// The member whose reply is next.
    at: usize,
    /// Its BindComplete was seen.
    bound: bool,
    error: Option<[u8; 5]>,
    replies: Vec<u8>,
    /// What the server said of the commit itself: everyone's.
    notices: Vec<u8>,
}

impl<R> Default for Batch<R> {
    fn default() -> Self {
        Batch {
            members: Vec::new(),
            prepared: Statements::default(),
            out: BytesMut::new(),
            closes: BytesMut::new(),
            at: 0,
            bound: false,
            error: None,
            replies: Vec::new(),
            notices: Vec::new(),
        }
    }
}

impl<R> Batch<R> {
    /// Statements whose fate is open.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Bytes for the server.
    pub fn out(&self) -> &[u8] {
        &self.out
    }

    /// The first `n` bytes of [`out`](Self::out) have left.
    pub fn took(&mut self, n: usize) {
        self.out.advance(n);
    }

    /// Starts a transaction with what `next` gives, `most` statements at most. Only when the last one has ended.
    /// `next` is asked with a condition that the statement it gives must meet.
    pub fn start(&mut self, most: usize, mut next: impl FnMut(&dyn Fn(&LaneStatement) -> bool) -> Option<Write<R>>) {
        debug_assert!(self.members.is_empty() && self.out.is_empty());
        let (mut body, mut bytes) = (BytesMut::new(), 0);
        let mut making_room: Vec<u64> = Vec::new();
        while self.members.len() < most && bytes < BATCH_BYTES_MAX {
            let first = self.members.is_empty();
            let prepared = &self.prepared;
            // What makes room must not be in use by those in front.
            let joins = |statement: &LaneStatement| {
                first
                    || (statement.shares && (prepared.contains(statement.id) || prepared.has_room(statement.sql.len())))
            };
            let Some(write) = next(&joins) else { break };
            let parses = !self.prepared.touch(write.statement.id);
            if parses {
                while let Some(oldest) = self.prepared.make_room(write.statement.sql.len()) {
                    making_room.push(oldest);
                }
                self.prepared.insert(write.statement.id, write.statement.sql.len());
                // An earlier attempt may have come as far as Parse. Closing what is not there is no error.
                making_room.push(write.statement.id);
                frontend::write_parse(
                    &mut body,
                    &write.statement.name,
                    &write.statement.sql,
                    &write.statement.param_types,
                );
                if write.statement.columns.is_some() {
                    frontend::write_describe(&mut body, b'S', &write.statement.name);
                }
            }
            write_execution(&mut body, &write.statement.name, &write.values);
            bytes += write.values.len();
            let alone = !write.statement.shares;
            self.members.push(Member { write, parses, changed: false, reply: 0..0 });
            if alone {
                break;
            }
        }
        if self.members.is_empty() {
            return;
        }
        self.closes.clear();
        making_room.iter().for_each(|id| frontend::write_close(&mut self.closes, b'S', &statement_name(*id)));
        self.out.extend_from_slice(&self.closes);
        self.out.extend_from_slice(&body);
        frontend::write_sync(&mut self.out);
    }

    /// Takes replies off the front of `buf`. Once the last is here, everyone hears who is to hear.
    pub fn receive(
        &mut self,
        buf: &mut BytesMut,
        mut deliver: impl FnMut(R, &LaneStatement, Outcome<'_>),
    ) -> Result<Option<Ended<R>>, Broken> {
        loop {
            let Some(header) = buf.get(..HEADER_LEN) else { return Ok(None) };
            let tag = header[0];
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            if length < 4 {
                return Err(Broken);
            }
            if buf.len() < 1 + length {
                return Ok(None);
            }
            let message = buf.split_to(1 + length);
            match tag {
                b'S' | b'A' => {}
                _ if self.members.is_empty() => match tag {
                    // What a server says by itself.
                    b'N' => {}
                    _ => return Err(Broken),
                },
                b'3' | b't' => {}
                b'T' | b'n' => {
                    let member = self.members.get_mut(self.at).ok_or(Broken)?;
                    member.changed = !promised(&member.write.statement, &Frame { raw: message.freeze() });
                }
                b'D' if self.bound => self.replies.extend_from_slice(&message),
                b'1' => {
                    let member = self.members.get_mut(self.at).ok_or(Broken)?;
                    member.parses = false;
                }
                b'2' => {
                    let start = self.replies.len();
                    self.members.get_mut(self.at).ok_or(Broken)?.reply = start..start;
                    self.bound = true;
                }
                // A notice has no place in front of its client's reply.
                b'N' if self.bound => self.replies.extend_from_slice(&message),
                b'N' if self.at == self.members.len() => self.notices.extend_from_slice(&message),
                b'N' => {}
                b'C' | b'I' => {
                    let member = self.members.get_mut(self.at).filter(|_| self.bound).ok_or(Broken)?;
                    self.replies.extend_from_slice(&message);
                    self.replies.extend_from_slice(READY);
                    member.reply.end = self.replies.len();
                    self.at += 1;
                    self.bound = false;
                }
                b'E' => {
                    let frame = Frame { raw: message.freeze() };
                    let fields = backend::parse_error(&frame).map_err(|_| Broken)?;
                    self.error.get_or_insert(fields.sqlstate().as_bytes().try_into().unwrap_or(*b"XX000"));
                }
                b'Z' if message.last() == Some(&b'I') && self.out.is_empty() => {
                    return self.finish(&mut deliver).map(Some);
                }
                _ => return Err(Broken),
            }
        }
    }

    fn finish(&mut self, deliver: &mut impl FnMut(R, &LaneStatement, Outcome<'_>)) -> Result<Ended<R>, Broken> {
        let (at, replies) = (std::mem::take(&mut self.at), std::mem::take(&mut self.replies));
        let notices = std::mem::take(&mut self.notices);
        self.bound = false;
        let Some(sqlstate) = self.error.take() else {
            if at < self.members.len() {
                return Err(Broken);
            }
            for Member { write, reply, changed, .. } in self.members.drain(..) {
                let reply = &replies[reply];
                if changed {
                    // It has happened, and nobody can read what it says.
                    self.prepared.remove(write.statement.id);
                    deliver(write.rider, &write.statement, Outcome::Lost);
                } else if notices.is_empty() {
                    deliver(write.rider, &write.statement, Outcome::Complete(reply));
                } else {
                    let whole = [&reply[..reply.len() - READY.len()], &notices, READY].concat();
                    deliver(write.rider, &write.statement, Outcome::Complete(&whole));
                }
            }
            self.replies = replies;
            self.replies.clear();
            return Ok(Ended::Committed);
        };
        // Those behind the error were skipped, with their Parse.
        for member in self.members.iter().filter(|member| member.parses) {
            self.prepared.remove(member.write.statement.id);
        }
        if sqlstate == *b"26000"
            && let Some(member) = self.members.get(at)
        {
            self.prepared.remove(member.write.statement.id);
        }
        // An error of the commit itself is nobody's in particular: one at a time they will tell.
        let guilty = if at < self.members.len() || self.members.len() == 1 {
            Some(at.min(self.members.len() - 1))
        } else {
            None
        };
        let mut innocent = Vec::with_capacity(self.members.len());
        for (index, Member { write, .. }) in self.members.drain(..).enumerate() {
            if Some(index) == guilty {
                deliver(write.rider, &write.statement, Outcome::Again(Again::Error(sqlstate)));
            } else {
                innocent.push(write);
            }
        }
        Ok(Ended::RolledBack { sqlstate, innocent })
    }

    /// The connection is gone. Before the Sync had left nothing can have been committed.
    pub fn close(&mut self, mut deliver: impl FnMut(R, &LaneStatement, Outcome<'_>)) {
        let sent = self.out.is_empty();
        for Member { write, .. } in self.members.drain(..) {
            let outcome = if sent { Outcome::Lost } else { Outcome::Again(Again::NotSent) };
            deliver(write.rider, &write.statement, outcome);
        }
        self.out.clear();
        self.prepared.clear();
    }
}
