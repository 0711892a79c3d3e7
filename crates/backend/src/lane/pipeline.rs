//! What travels on a lane for reads, without the socket: requests of many clients one behind the other, each with a
//! Sync of its own, and the replies in the same order. Bytes go in and out; nothing here waits or reads a clock, so
//! that a simulation can drive it. Opening, reading and writing are `super`'s; who may ride is the router's decision.
//!
//! A request is a transaction of its own on a statement that the server keeps under a name. A reply with an error in it
//! was rolled back, so it can be run again elsewhere: this side never passes one on.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use bytes::{Buf, BufMut, BytesMut};
use pgherd_wire::backend;
use pgherd_wire::frame::{Frame, HEADER_LEN};
use pgherd_wire::frontend;

use crate::{STATEMENTS_MAX, Statements};

/// A reply that grows beyond this is dropped and run again on a lease, where it streams.
pub const REPLY_MAX: usize = 256 * 1024;

/// A statement that lanes may carry, as one shard runs it.
#[derive(Debug)]
pub struct LaneStatement {
    /// Unique in this process; never used again for another text.
    pub id: u64,
    /// The name on the server.
    pub name: String,
    pub sql: String,
    pub param_types: Vec<u32>,
    /// Types of the result columns as clients were told; none: no rows.
    pub columns: Option<Vec<u32>>,
    /// Never run a second time where the first may have happened. Such a statement returns one row at most.
    pub writes: bool,
    /// A write that may be one transaction with those of other clients: nothing in it, in defaults of its table or in
    /// deferred constraints can tell.
    pub shares: bool,
}

/// Why a request is to be run elsewhere. Nothing of it has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The server answered with this SQLSTATE and rolled back.
    Error([u8; 5]),
    /// The reply is too large to wait for in memory.
    TooLarge,
    /// The columns are not those that clients were told of.
    Changed,
    /// It never left, or was a read whose server connection died.
    NotSent,
    /// A read behind one that takes long: another lane may have it.
    HeldUp,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// Everything behind BindComplete, up to and with ReadyForQuery.
    Complete(&'a [u8]),
    Again(Again),
    /// A write whose server connection died before the reply: it may have happened.
    Lost,
}

/// The stream from the server makes no sense; the connection is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

struct InFlight<R> {
    /// None: nobody waits for this reply any more.
    rider: Option<R>,
    statement: Rc<LaneStatement>,
    /// This request carries the Parse.
    parses: bool,
}

/// The reply that is being read: of the request at the front of the queue.
#[derive(Default)]
struct Reply {
    /// Bytes of the buffer that were looked at.
    seen: usize,
    /// Where the client's part begins, behind BindComplete.
    start: Option<usize>,
    /// Bytes still to come of a message that is dropped.
    skip: usize,
    /// The columns were told, and compared.
    described: bool,
    error: Option<[u8; 5]>,
    changed: bool,
    too_large: bool,
    /// Messages in the middle that are not the client's.
    aside: Vec<(usize, usize)>,
}

pub struct Pipeline<R> {
    queue: VecDeque<InFlight<R>>,
    /// Statements that the server has, or will have by the time it reads the next request.
    prepared: Statements,
    /// Statements whose columns are not what clients were told: requests for them may be under way already.
    changed: HashSet<u64>,
    /// Statements that were parsed, but an error came before their columns were told: likewise.
    unseen: HashSet<u64>,
    out: BytesMut,
    reply: Reply,
}

impl<R> Default for Pipeline<R> {
    fn default() -> Self {
        Pipeline {
            queue: VecDeque::new(),
            prepared: Statements::default(),
            changed: HashSet::new(),
            unseen: HashSet::new(),
            out: BytesMut::new(),
            reply: Reply::default(),
        }
    }
}

impl<R> Pipeline<R> {
    /// Requests whose replies are not complete.
    pub fn depth(&self) -> usize {
        self.queue.len()
    }

    /// Bytes for the server.
    pub fn out(&self) -> &[u8] {
        &self.out
    }

    /// The first `n` bytes of [`out`](Self::out) have left.
    pub fn took(&mut self, n: usize) {
        self.out.advance(n);
    }

    /// Whether the server has this statement already.
    pub fn knows(&self, statement: &LaneStatement) -> bool {
        self.prepared.contains(statement.id)
    }

    /// Adds a request. `values` is the rest of a Bind message behind the statement's name: formats, parameters, result
    /// formats.
    pub fn push(&mut self, rider: R, statement: &Rc<LaneStatement>, values: &[u8]) {
        let parses = !self.prepared.touch(statement.id);
        if parses {
            // Requests for a statement that makes room, where they are under way, come before its Close.
            while let Some(oldest) = self.prepared.make_room(statement.sql.len()) {
                frontend::write_close(&mut self.out, b'S', &statement_name(oldest));
            }
            self.prepared.insert(statement.id, statement.sql.len());
            // An earlier attempt may have come as far as Parse. Closing what is not there is no error.
            frontend::write_close(&mut self.out, b'S', &statement.name);
            frontend::write_parse(&mut self.out, &statement.name, &statement.sql, &statement.param_types);
            frontend::write_describe(&mut self.out, b'S', &statement.name);
        }
        write_execution(&mut self.out, &statement.name, values);
        frontend::write_sync(&mut self.out);
        self.queue.push_back(InFlight { rider: Some(rider), statement: statement.clone(), parses });
    }

    /// Hands back those behind the one that is running: they run elsewhere, and their replies here are nobody's. (A
    /// read that runs twice does nothing twice.)
    pub fn hand_back(&mut self, mut deliver: impl FnMut(R, &LaneStatement, Outcome<'_>)) {
        for request in self.queue.iter_mut().skip(1) {
            if let Some(rider) = request.rider.take() {
                deliver(rider, &request.statement, Outcome::Again(Again::HeldUp));
            }
        }
    }

    /// Takes replies off the front of `buf` and hands each complete one over.
    pub fn receive(
        &mut self,
        buf: &mut BytesMut,
        mut deliver: impl FnMut(R, &LaneStatement, Outcome<'_>),
    ) -> Result<(), Broken> {
        loop {
            if self.reply.skip > 0 {
                let n = self.reply.skip.min(buf.len());
                buf.advance(n);
                self.reply.skip -= n;
                if self.reply.skip > 0 {
                    return Ok(());
                }
            }
            let Some(header) = buf.get(self.reply.seen..self.reply.seen + HEADER_LEN) else { break };
            let tag = header[0];
            let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            if length < 4 {
                return Err(Broken);
            }
            let end = self.reply.seen + 1 + length;
            let Some(front) = self.queue.front() else {
                // Between replies only what a server says by itself.
                if buf.len() < end {
                    break;
                }
                match tag {
                    b'S' | b'N' | b'A' => buf.advance(end),
                    _ => return Err(Broken),
                }
                continue;
            };
            if buf.len() < end {
                let from = self.reply.start.unwrap_or(self.reply.seen);
                if end - from > REPLY_MAX {
                    self.reply.too_large = true;
                    self.reply.start = None;
                    if tag == b'D' {
                        self.reply.skip = end - buf.len();
                        buf.clear();
                        self.reply.seen = 0;
                        self.reply.aside.clear();
                    }
                }
                break;
            }
            match tag {
                b'D' | b'C' | b'I' => {}
                b'2' => self.reply.start = Some(end).filter(|_| !self.reply.too_large),
                b'Z' => {
                    if buf.get(end - 1) != Some(&b'I') {
                        return Err(Broken);
                    }
                    let Some(done) = self.queue.pop_front() else { return Err(Broken) };
                    self.finish(done, buf, end, &mut deliver);
                    continue;
                }
                b'1' | b'3' | b't' => {}
                b'T' | b'n' => {
                    let frame = Frame { raw: bytes::Bytes::copy_from_slice(&buf[self.reply.seen..end]) };
                    self.reply.described = true;
                    self.reply.changed |= !promised(&front.statement, &frame);
                }
                b'E' => {
                    let frame = Frame { raw: bytes::Bytes::copy_from_slice(&buf[self.reply.seen..end]) };
                    let fields = backend::parse_error(&frame).map_err(|_| Broken)?;
                    self.reply.error = Some(fields.sqlstate().as_bytes().try_into().unwrap_or(*b"XX000"));
                }
                // A notice is the client's, but has no place in front of its reply.
                b'N' if self.reply.start.is_some() => {}
                b'N' | b'S' | b'A' => {
                    if self.reply.start.is_some() {
                        self.reply.aside.push((self.reply.seen, end));
                    }
                }
                _ => return Err(Broken),
            }
            self.reply.seen = end;
            match self.reply.start {
                Some(start) if end - start > REPLY_MAX => {
                    self.reply.too_large = true;
                    self.reply.start = None;
                    self.reply.aside.clear();
                }
                _ => {}
            }
            if self.reply.start.is_none() {
                buf.advance(self.reply.seen);
                self.reply.seen = 0;
            }
        }
        Ok(())
    }

    fn finish(
        &mut self,
        done: InFlight<R>,
        buf: &mut BytesMut,
        end: usize,
        deliver: &mut impl FnMut(R, &LaneStatement, Outcome<'_>),
    ) {
        let reply = std::mem::take(&mut self.reply);
        let id = done.statement.id;
        if done.parses {
            if reply.described {
                self.unseen.remove(&id);
            } else {
                self.prepared.remove(id);
                self.unseen.insert(id);
            }
        } else if reply.error == Some(*b"26000") {
            self.prepared.remove(id);
        }
        if reply.changed {
            self.changed.insert(id);
        }
        if self.changed.len() + self.unseen.len() > STATEMENTS_MAX && self.queue.is_empty() {
            // Whatever is parsed again is described again.
            self.changed.retain(|id| self.prepared.contains(*id));
            self.unseen.retain(|id| self.prepared.contains(*id));
        }
        let again = match reply.error {
            Some(sqlstate) => Some(Again::Error(sqlstate)),
            None if self.changed.contains(&id) => Some(Again::Changed),
            None if self.unseen.contains(&id) => Some(Again::NotSent),
            None => (reply.too_large || reply.start.is_none()).then_some(Again::TooLarge),
        };
        let Some(rider) = done.rider else {
            buf.advance(end);
            return;
        };
        match (again, reply.start) {
            (None, Some(start)) if reply.aside.is_empty() => {
                deliver(rider, &done.statement, Outcome::Complete(&buf[start..end]));
            }
            (None, Some(start)) => {
                let mut whole = Vec::with_capacity(end - start);
                let mut from = start;
                for (begin, after) in reply.aside {
                    whole.extend_from_slice(&buf[from..begin]);
                    from = after;
                }
                whole.extend_from_slice(&buf[from..end]);
                deliver(rider, &done.statement, Outcome::Complete(&whole));
            }
            (Some(again), _) => deliver(rider, &done.statement, Outcome::Again(again)),
            (None, None) => deliver(rider, &done.statement, Outcome::Again(Again::TooLarge)),
        }
        buf.advance(end);
    }

    /// The connection is gone.
    pub fn close(&mut self, mut deliver: impl FnMut(R, &LaneStatement, Outcome<'_>)) {
        for request in self.queue.drain(..) {
            if let Some(rider) = request.rider {
                deliver(rider, &request.statement, Outcome::Again(Again::NotSent));
            }
        }
        self.out.clear();
        self.prepared.clear();
    }
}

/// Bind of the unnamed portal to a statement, and Execute without a limit.
pub fn write_execution(out: &mut BytesMut, name: &str, values: &[u8]) {
    out.reserve(values.len() + name.len() + 32);
    out.put_u8(b'B');
    out.put_u32((4 + 1 + name.len() + 1 + values.len()) as u32);
    out.put_u8(0);
    out.put_slice(name.as_bytes());
    out.put_u8(0);
    out.put_slice(values);
    out.put_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

/// The name under which a server keeps a statement.
pub fn statement_name(id: u64) -> String {
    format!("pgherd_{id}")
}

/// Whether the server's columns are those that clients were told of. Types outside the built-in range have other
/// numbers on other servers: there only their being so is compared.
pub(super) fn promised(statement: &LaneStatement, frame: &Frame) -> bool {
    let Some(promised) = &statement.columns else { return frame.tag() == b'n' };
    if frame.tag() == b'n' {
        return false;
    }
    let Ok(fields) = backend::parse_row_description(frame) else { return false };
    let same = |(field, promised): (&backend::FieldDescription, &u32)| {
        field.type_oid == *promised || (field.type_oid >= 16384 && *promised >= 16384)
    };
    fields.len() == promised.len() && fields.iter().zip(promised).all(same)
}
