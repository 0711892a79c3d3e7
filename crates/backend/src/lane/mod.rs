//! Lanes: few connections to a server that many clients share. Single-shard statements that are transactions of their
//! own ride on them one behind the other, so that a server finds its next request in its socket already and does not go
//! to sleep between two. [`Lanes`] are those of one server for clients of one user with the same settings.
//!
//! Reads ride deep, on few lanes; writes ride one deep, on many, so that their commits share a flush of the log. Every
//! lane has short timeouts of its own: what takes longer is rolled back by the server and run again on a lease. Which
//! statements may ride at all is the router's decision.

mod pipeline;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

pub use pipeline::{Again, Broken, LaneStatement, Outcome, Pipeline, REPLY_MAX, STATEMENTS_MAX, statement_name};

use crate::{Connection, Target, connect};

/// Read lanes to one server. One busy lane is better than two idle ones; the second takes over behind a slow head.
const READ_LANES: usize = 2;
/// More read lanes are opened while all others wait behind a slow head, up to this many.
const READ_LANES_MAX: usize = 8;
/// With fewer requests than this on it, the first lane is not full.
const FULL: usize = 12;
/// Write lanes to one server.
const WRITE_LANES_MAX: usize = 24;
/// A lane whose head has been running for this long is not given more.
const STUCK: Duration = Duration::from_millis(5);
/// After a lane could not be opened none is tried for this long.
const RETRY: Duration = Duration::from_secs(1);
const READ_CHUNK: usize = 32 * 1024;

/// What a lane's connection is told when it opens. PostgreSQL counts both per Sync.
const TIMEOUTS: &str = "SET statement_timeout = '250ms'; SET lock_timeout = '50ms'";

/// Whoever waits for a reply. Called once per request, on the lane's own task: it must not wait, nor push.
pub trait Rider {
    fn arrive(&self, outcome: Outcome<'_>);
}

type Boxed = Rc<dyn Rider>;

struct Lane {
    pipeline: RefCell<Pipeline<Boxed>>,
    /// Set while the lane's task sleeps.
    waker: Cell<Option<Waker>>,
    /// When the head of the queue last changed.
    moved: Cell<Instant>,
    closing: Cell<bool>,
}

impl Lane {
    fn new() -> Rc<Lane> {
        Rc::new(Lane {
            pipeline: RefCell::default(),
            waker: Cell::default(),
            moved: Cell::new(Instant::now()),
            closing: Cell::new(false),
        })
    }

    fn depth(&self) -> usize {
        self.pipeline.borrow().depth()
    }

    fn push(&self, rider: Boxed, statement: &Rc<LaneStatement>, values: &[u8]) {
        let mut pipeline = self.pipeline.borrow_mut();
        if pipeline.depth() == 0 {
            self.moved.set(Instant::now());
        }
        pipeline.push(rider, statement, values);
        drop(pipeline);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn fail(&self) {
        self.closing.set(true);
        self.pipeline.borrow_mut().close(|rider, _, outcome| rider.arrive(outcome));
    }
}

struct Waiting {
    rider: Boxed,
    statement: Rc<LaneStatement>,
    values: Vec<u8>,
}

/// The lanes to one server, for clients of one user with the same settings.
pub struct Lanes {
    me: Weak<Lanes>,
    target: Target,
    settings: String,
    reads: RefCell<Vec<Rc<Lane>>>,
    writes: RefCell<Vec<Rc<Lane>>>,
    /// Writes that found every lane busy, in the order they came.
    waiting: RefCell<VecDeque<Waiting>>,
    failed: Cell<Option<Instant>>,
    closed: Cell<bool>,
}

impl Lanes {
    /// `settings`: SQL that brings a fresh connection to the clients' settings. Nothing is opened yet.
    pub fn new(target: Target, settings: String) -> Rc<Lanes> {
        Rc::new_cyclic(|me| Lanes {
            me: me.clone(),
            target,
            settings,
            reads: RefCell::default(),
            writes: RefCell::default(),
            waiting: RefCell::default(),
            failed: Cell::new(None),
            closed: Cell::new(false),
        })
    }

    /// Takes a request; `values` as for [`Pipeline::push`]. False: there is no lane, and the rider hears nothing.
    pub fn ride(&self, rider: Boxed, statement: &Rc<LaneStatement>, values: &[u8]) -> bool {
        if self.closed.get() {
            return false;
        }
        if let Some(failed) = self.failed.get() {
            if failed.elapsed() < RETRY {
                return false;
            }
            self.failed.set(None);
        }
        if statement.writes {
            self.write(rider, statement, values);
            return true;
        }
        match self.read_lane(statement) {
            Some(lane) => {
                lane.push(rider, statement, values);
                true
            }
            None => false,
        }
    }

    /// The first lane that is neither full nor stuck; else the emptiest of the usual ones; a further one where all are
    /// stuck.
    fn read_lane(&self, statement: &LaneStatement) -> Option<Rc<Lane>> {
        let mut lanes = self.reads.borrow_mut();
        lanes.retain(|lane| !lane.closing.get());
        let _ = statement;
        let now = Instant::now();
        let mut best: Option<(usize, &Rc<Lane>)> = None;
        for lane in lanes.iter() {
            let depth = lane.depth();
            if depth > 0 && now.duration_since(lane.moved.get()) > STUCK {
                continue;
            }
            if depth < FULL {
                return Some(lane.clone());
            }
            if best.is_none_or(|(least, _)| depth < least) {
                best = Some((depth, lane));
            }
        }
        if let Some((_, lane)) = best
            && lanes.len() >= READ_LANES
        {
            return Some(lane.clone());
        }
        if lanes.len() >= READ_LANES_MAX {
            return None;
        }
        let lane = self.open();
        lanes.push(lane.clone());
        Some(lane)
    }

    fn write(&self, rider: Boxed, statement: &Rc<LaneStatement>, values: &[u8]) {
        let mut lanes = self.writes.borrow_mut();
        lanes.retain(|lane| !lane.closing.get());
        let idle = lanes.iter().find(|lane| lane.depth() == 0).cloned();
        let lane = match idle {
            Some(lane) => lane,
            None if lanes.len() < WRITE_LANES_MAX => {
                let lane = self.open();
                lanes.push(lane.clone());
                lane
            }
            None => {
                self.waiting.borrow_mut().push_back(Waiting {
                    rider,
                    statement: statement.clone(),
                    values: values.to_vec(),
                });
                return;
            }
        };
        lane.push(rider, statement, values);
    }

    /// Gives a write lane that has become idle its next request.
    fn next_write(&self, lane: &Lane) {
        if lane.depth() > 0 || lane.closing.get() {
            return;
        }
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            lane.push(next.rider, &next.statement, &next.values);
        }
    }

    fn open(&self) -> Rc<Lane> {
        let lane = Lane::new();
        let (target, settings) = (self.target.clone(), self.settings.clone());
        let (opened, lanes) = (lane.clone(), self.me.clone());
        tokio::task::spawn_local(async move {
            let connection = match connect(&target).await {
                Ok(mut connection) => match connection.query(&format!("{settings};{TIMEOUTS}")).await {
                    Ok(_) => Some(connection),
                    Err(error) => {
                        tracing::debug!("a lane to {} was refused: {error}", target.address);
                        None
                    }
                },
                Err(error) => {
                    tracing::debug!("a lane to {} could not be opened: {error}", target.address);
                    None
                }
            };
            match connection {
                Some(connection) => drive(&opened, &lanes, connection).await,
                None => {
                    if let Some(lanes) = lanes.upgrade() {
                        lanes.failed.set(Some(Instant::now()));
                    }
                }
            }
            opened.fail();
            if let Some(lanes) = lanes.upgrade() {
                lanes.abandon_waiting();
            }
        });
        lane
    }

    /// A write lane has gone: with none left nobody would come for those that wait.
    fn abandon_waiting(&self) {
        if self.writes.borrow().iter().any(|lane| !lane.closing.get()) {
            return;
        }
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for request in waiting {
            request.rider.arrive(Outcome::Again(Again::NotSent));
        }
    }

    /// Takes no more requests and closes each lane when its replies are in.
    pub fn close(&self) {
        self.closed.set(true);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for request in waiting {
            request.rider.arrive(Outcome::Again(Again::NotSent));
        }
        for lane in self.reads.borrow().iter().chain(self.writes.borrow().iter()) {
            lane.closing.set(true);
            lane.wake();
        }
    }

    /// Connections that are open or being opened.
    pub fn count(&self) -> usize {
        let open = |lanes: &RefCell<Vec<Rc<Lane>>>| lanes.borrow().iter().filter(|l| !l.closing.get()).count();
        open(&self.reads) + open(&self.writes)
    }
}

/// Runs one lane until it is closed or its server goes.
async fn drive(lane: &Rc<Lane>, lanes: &Weak<Lanes>, connection: Connection) {
    let (mut stream, mut buf) = connection.into_stream();
    poll_fn(|cx| {
        loop {
            match step(lane, &mut stream, &mut buf, cx) {
                Step::Progress => {
                    if let Some(lanes) = lanes.upgrade()
                        && !lanes.waiting.borrow().is_empty()
                        && lanes.writes.borrow().iter().any(|l| Rc::ptr_eq(l, lane))
                    {
                        lanes.next_write(lane);
                    }
                }
                Step::Wait => return Poll::Pending,
                Step::End => return Poll::Ready(()),
            }
        }
    })
    .await;
    let mut goodbye = BytesMut::new();
    frontend::write_terminate(&mut goodbye);
    let _ = stream.try_write(&goodbye);
}

enum Step {
    Progress,
    Wait,
    End,
}

/// Writes what there is to write, reads what there is to read.
fn step(lane: &Lane, stream: &mut TcpStream, buf: &mut BytesMut, cx: &mut Context<'_>) -> Step {
    let mut pipeline = lane.pipeline.borrow_mut();
    let mut blocked = false;
    while !pipeline.out().is_empty() && !blocked {
        match Pin::new(&mut *stream).poll_write(cx, pipeline.out()) {
            Poll::Ready(Ok(0) | Err(_)) => return Step::End,
            Poll::Ready(Ok(n)) => pipeline.took(n),
            Poll::Pending => blocked = true,
        }
    }
    if buf.capacity() - buf.len() < READ_CHUNK / 4 {
        buf.reserve(READ_CHUNK);
    }
    let read = pin!(stream.read_buf(buf)).poll(cx);
    match read {
        Poll::Ready(Ok(0) | Err(_)) => Step::End,
        Poll::Ready(Ok(_)) => {
            let received = pipeline.receive(buf, |rider, _, outcome| rider.arrive(outcome));
            lane.moved.set(Instant::now());
            if received.is_err() { Step::End } else { Step::Progress }
        }
        Poll::Pending => {
            if lane.closing.get() && pipeline.depth() == 0 {
                return Step::End;
            }
            lane.waker.set(Some(cx.waker().clone()));
            Step::Wait
        }
    }
}
