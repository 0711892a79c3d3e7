//! Lanes: few connections to a server that many clients share. Single-shard statements that are transactions of their
//! own ride on them one behind the other, so that a server finds its next request in its socket already and does not go
//! to sleep between two. [`Lanes`] are those of one server for clients of one user with the same settings.
//!
//! Reads ride deep, on few lanes, each in a transaction of its own; writes that wait for a lane share one ([`batch`]).
//! Every lane has short timeouts of its own: what takes longer is rolled back by the server and run again on a lease.
//! Which statements may ride at all is the router's decision.

mod batch;
mod pipeline;
mod writes;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

pub use batch::{BATCH_MAX, Batch, Ended, Write};
pub use pipeline::{Again, Broken, LaneStatement, Outcome, Pipeline, REPLY_MAX, statement_name, write_execution};

use crate::budget::LanePlace;
use crate::{Connection, ServerBudget, Target, connect};

use writes::Writes;

/// Read lanes to one server. One busy lane is better than two idle ones; the second takes over behind a slow head.
const READ_LANES: usize = 2;
/// More read lanes are opened while all others wait behind a slow head, up to this many.
const READ_LANES_MAX: usize = 8;
/// With fewer requests than this on it, the first lane is not full.
const FULL: usize = 12;
/// A lane whose head has been running for this long is not given more.
const STUCK: Duration = Duration::from_millis(5);
/// After a lane could not be opened none is tried for this long.
const RETRY: Duration = Duration::from_secs(1);
const READ_CHUNK: usize = 32 * 1024;

/// Reads behind a head that has been running for this long are handed back.
const HELD_UP: Duration = Duration::from_millis(50);
/// A lane that has carried nothing for this long is closed; sooner where another lane finds no place.
const IDLE: Duration = Duration::from_secs(60);
const IDLE_REFUSED: Duration = Duration::from_secs(1);

/// What a lane's connection is told when it opens, behind the clients' settings: timeouts of its own, where theirs are
/// not shorter. That of a transaction would count what others send with it, and end the connection.
const TIMEOUTS: &str = "SELECT pg_catalog.set_config(name, CASE WHEN setting::int BETWEEN 1 AND most THEN setting \
                        ELSE most::text END, false) \
                        FROM pg_catalog.pg_settings JOIN (VALUES ('lock_timeout', 50), \
                        ('statement_timeout', least(250, (SELECT nullif(setting::int, 0) \
                        FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout')))) \
                        AS lane (name, most) USING (name); \
                        SELECT pg_catalog.set_config(name, '0', false) \
                        FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'";

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
    /// Its part of what the server takes, until it has gone.
    place: RefCell<Option<LanePlace>>,
}

impl Lane {
    fn new(place: LanePlace) -> Rc<Lane> {
        Rc::new(Lane {
            pipeline: RefCell::default(),
            waker: Cell::default(),
            moved: Cell::new(Instant::now()),
            closing: Cell::new(false),
            place: RefCell::new(Some(place)),
        })
    }

    fn is_open(&self) -> bool {
        !self.closing.get()
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

    fn close(&self) {
        self.closing.set(true);
        self.wake();
    }

    fn fail(&self) {
        self.closing.set(true);
        self.place.borrow_mut().take();
        self.pipeline.borrow_mut().close(|rider, _, outcome| rider.arrive(outcome));
    }
}

/// The lanes to one server, for clients of one user with the same settings.
pub struct Lanes {
    me: Weak<Lanes>,
    target: Target,
    settings: String,
    budget: Arc<ServerBudget>,
    /// What the budget had refused when these lanes were last tended.
    refused: Cell<usize>,
    reads: RefCell<Vec<Rc<Lane>>>,
    writes: Writes,
    failed: Cell<Option<Instant>>,
    closed: Cell<bool>,
}

impl Lanes {
    /// `settings`: SQL that brings a fresh connection to the clients' settings. Nothing is opened yet.
    pub fn new(target: Target, settings: String, budget: Arc<ServerBudget>) -> Rc<Lanes> {
        Rc::new_cyclic(|me| Lanes {
            me: me.clone(),
            target,
            settings,
            refused: Cell::new(budget.lanes_refused()),
            budget,
            reads: RefCell::default(),
            writes: Writes::default(),
            failed: Cell::new(None),
            closed: Cell::new(false),
        })
    }

    /// Takes a request; `values` as for [`Pipeline::push`]. False: there is no lane, and the rider hears nothing.
    pub fn ride(&self, rider: Boxed, statement: &Rc<LaneStatement>, values: &[u8]) -> bool {
        if !self.may_open() {
            return false;
        }
        if statement.writes {
            return self.writes.push(self, Write { rider, statement: statement.clone(), values: values.to_vec() });
        }
        match self.read_lane() {
            Some(lane) => {
                lane.push(rider, statement, values);
                true
            }
            None => false,
        }
    }

    /// Not closed, and no lane has failed to open just now.
    fn may_open(&self) -> bool {
        if self.closed.get() {
            return false;
        }
        if let Some(failed) = self.failed.get() {
            if failed.elapsed() < RETRY {
                return false;
            }
            self.failed.set(None);
        }
        true
    }

    /// The first lane that is neither full nor stuck; else the emptiest of the usual ones; a further one where all are
    /// stuck.
    fn read_lane(&self) -> Option<Rc<Lane>> {
        let mut lanes = self.reads.borrow_mut();
        lanes.retain(|lane| lane.is_open());
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
        let best = best.map(|(_, lane)| lane.clone());
        if best.is_some() && lanes.len() >= READ_LANES {
            return best;
        }
        if lanes.len() >= READ_LANES_MAX {
            return None;
        }
        match self.open() {
            Some(lane) => {
                lanes.push(lane.clone());
                Some(lane)
            }
            None => best,
        }
    }

    /// A new lane, if the server has a place for it.
    fn open(&self) -> Option<Rc<Lane>> {
        let lane = Lane::new(self.budget.lane()?);
        let (connecting, opened, lanes) = (self.connect(), lane.clone(), self.me.clone());
        tokio::task::spawn_local(async move {
            match connecting.await {
                Some(connection) => drive(&opened, connection).await,
                None => {
                    if let Some(lanes) = lanes.upgrade() {
                        lanes.failed.set(Some(Instant::now()));
                    }
                }
            }
            opened.fail();
        });
        Some(lane)
    }

    /// A connection with the clients' settings and a lane's timeouts.
    fn connect(&self) -> impl Future<Output = Option<Connection>> + 'static {
        let (target, settings) = (self.target.clone(), self.settings.clone());
        async move {
            match connect(&target).await {
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
            }
        }
    }

    /// Takes no more requests and closes each lane when its replies are in.
    pub fn close(&self) {
        self.closed.set(true);
        self.writes.close();
        self.reads.borrow().iter().for_each(|lane| lane.close());
    }

    /// Closes lanes that have been idle for long. To be called now and then.
    pub fn tend(&self) {
        let refused = self.budget.lanes_refused();
        let limit = if self.refused.replace(refused) != refused { IDLE_REFUSED } else { IDLE };
        self.reads.borrow_mut().retain(|lane| {
            let idle = lane.depth() == 0 && lane.moved.get().elapsed() >= limit;
            if idle {
                lane.close();
            }
            !idle && lane.is_open()
        });
        self.writes.tend(limit);
    }

    /// Connections that are open or being opened.
    pub fn count(&self) -> usize {
        self.reads.borrow().iter().filter(|lane| lane.is_open()).count() + self.writes.count()
    }
}

/// Runs one lane until it is closed or its server goes.
async fn drive(lane: &Rc<Lane>, connection: Connection) {
    let (mut stream, mut buf) = connection.into_stream();
    // Set only while something waits behind the head, and then not for each head.
    let mut alarm: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        loop {
            match step(lane, &mut stream, &mut buf, cx) {
                Step::Progress => {}
                Step::Wait => {
                    if lane.depth() < 2 {
                        return Poll::Pending;
                    }
                    let running = lane.moved.get().elapsed();
                    let sleep =
                        alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(HELD_UP.saturating_sub(running))));
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    alarm = None;
                    if running >= HELD_UP {
                        lane.pipeline.borrow_mut().hand_back(|rider, _, outcome| rider.arrive(outcome));
                        // Those that come later find the lane stuck.
                        return Poll::Pending;
                    }
                }
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
