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
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

pub use pipeline::{Again, Broken, LaneStatement, Outcome, Pipeline, REPLY_MAX, statement_name};

use crate::budget::LanePlace;
use crate::{Connection, ServerBudget, Target, connect};

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

/// Reads behind a head that has been running for this long are handed back.
const HELD_UP: Duration = Duration::from_millis(50);
/// A lane that has carried nothing for this long is closed; sooner where another lane finds no place.
const IDLE: Duration = Duration::from_secs(60);
const IDLE_REFUSED: Duration = Duration::from_secs(1);

/// What a lane's connection is told when it opens, behind the clients' settings: timeouts of its own, where theirs are
/// not shorter. PostgreSQL counts both per Sync.
const TIMEOUTS: &str = "SELECT pg_catalog.set_config(name, CASE WHEN setting::int BETWEEN 1 AND most THEN setting \
                        ELSE most::text END, false) \
                        FROM pg_catalog.pg_settings JOIN (VALUES ('statement_timeout', 250), ('lock_timeout', 50)) \
                        AS lane (name, most) USING (name)";

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
    budget: Arc<ServerBudget>,
    /// What the budget had refused when these lanes were last tended.
    refused: Cell<usize>,
    reads: RefCell<Vec<Rc<Lane>>>,
    writes: RefCell<Vec<Rc<Lane>>>,
    /// Writes that found every lane busy, in the order they came.
    waiting: RefCell<VecDeque<Waiting>>,
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
            return self.write(rider, statement, values);
        }
        match self.read_lane() {
            Some(lane) => {
                lane.push(rider, statement, values);
                true
            }
            None => false,
        }
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

    /// False: there is no lane, and none to wait for.
    fn write(&self, rider: Boxed, statement: &Rc<LaneStatement>, values: &[u8]) -> bool {
        let mut lanes = self.writes.borrow_mut();
        lanes.retain(|lane| lane.is_open());
        let idle = lanes.iter().find(|lane| lane.depth() == 0).cloned();
        let lane = match idle {
            Some(lane) => lane,
            None => match (lanes.len() < WRITE_LANES_MAX).then(|| self.open()).flatten() {
                Some(lane) => {
                    lanes.push(lane.clone());
                    lane
                }
                None if lanes.is_empty() => return false,
                None => {
                    self.waiting.borrow_mut().push_back(Waiting {
                        rider,
                        statement: statement.clone(),
                        values: values.to_vec(),
                    });
                    return true;
                }
            },
        };
        lane.push(rider, statement, values);
        true
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

    /// A new lane, if the server has a place for it.
    fn open(&self) -> Option<Rc<Lane>> {
        let lane = Lane::new(self.budget.lane()?);
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
        Some(lane)
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
            lane.close();
        }
    }

    /// Closes lanes that have been idle for long. To be called now and then.
    pub fn tend(&self) {
        let refused = self.budget.lanes_refused();
        let limit = if self.refused.replace(refused) != refused { IDLE_REFUSED } else { IDLE };
        for lanes in [&self.reads, &self.writes] {
            lanes.borrow_mut().retain(|lane| {
                let idle = lane.depth() == 0 && lane.moved.get().elapsed() >= limit;
                if idle {
                    lane.close();
                }
                !idle && lane.is_open()
            });
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
    // Set only while something waits behind the head, and then not for each head.
    let mut alarm: Option<Pin<Box<tokio::time::Sleep>>> = None;
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
