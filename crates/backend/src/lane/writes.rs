//! The lanes for writes to one server. A write that finds a lane idle leaves at once; what comes meanwhile leaves
//! together when that lane is free again, as one transaction ([`Batch`]): the more clients there are, the more share a
//! commit. Where one transaction is not possible (statements that must not share one, or that wait for locks) there are
//! more lanes instead, so that their commits share the flush of the log.

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

use super::batch::{BATCH_MAX, Batch, Ended, Write};
use super::pipeline::{Again, Outcome};
use super::{Boxed, Lanes, READ_CHUNK, STUCK};
use crate::Connection;
use crate::budget::LanePlace;

/// Lanes that are kept busy while writes may share a transaction.
const LANES: usize = 1;
/// Lanes at most.
const LANES_MAX: usize = 24;
/// After a statement waited for a lock, or for longer than a lane allows, each goes by itself for this long.
const APART: Duration = Duration::from_secs(1);

pub(super) struct WriteLane {
    batch: RefCell<Batch<Boxed>>,
    /// Set while the lane's task sleeps.
    waker: Cell<Option<Waker>>,
    /// When its batch was started, or it became idle.
    moved: Cell<Instant>,
    /// It is connected.
    ready: Cell<bool>,
    closing: Cell<bool>,
    /// Its part of what the server takes, until it has gone.
    place: RefCell<Option<LanePlace>>,
}

impl WriteLane {
    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn close(&self) {
        self.closing.set(true);
        self.wake();
    }

    fn is_idle(&self) -> bool {
        self.ready.get() && !self.closing.get() && self.batch.borrow().is_empty()
    }
}

/// What waits, and where it goes.
pub(super) struct Writes {
    lanes: RefCell<Vec<Rc<WriteLane>>>,
    /// In the order they came.
    waiting: RefCell<VecDeque<Write<Boxed>>>,
    /// Statements in one transaction at most: falls with each that is rolled back, and grows again.
    most: Cell<usize>,
    apart_until: Cell<Option<Instant>>,
}

impl Default for Writes {
    fn default() -> Self {
        Writes {
            lanes: RefCell::default(),
            waiting: RefCell::default(),
            most: Cell::new(BATCH_MAX),
            apart_until: Cell::new(None),
        }
    }
}

impl Writes {
    /// False: there is no lane, and none to wait for; the rider hears nothing.
    pub(super) fn push(&self, owner: &Lanes, write: Write<Boxed>) -> bool {
        self.lanes.borrow_mut().retain(|lane| !lane.closing.get());
        let shares = write.statement.shares;
        self.waiting.borrow_mut().push_back(write);
        let wanted = if shares && self.limit() > 1 { 1 } else { self.waiting.borrow().len() };
        let mut woken = 0;
        for lane in self.lanes.borrow().iter().filter(|lane| lane.is_idle()).take(wanted) {
            lane.wake();
            woken += 1;
        }
        if woken < wanted && self.wants_another(shares) {
            self.open(owner);
        }
        if self.lanes.borrow().is_empty() {
            self.waiting.borrow_mut().pop_back();
            return false;
        }
        true
    }

    /// Whether one more lane would help what finds all of them busy.
    fn wants_another(&self, shares: bool) -> bool {
        let lanes = self.lanes.borrow();
        lanes.len() < LANES
            || (lanes.len() < LANES_MAX
                && (!shares || self.limit() == 1 || lanes.iter().all(|lane| lane.moved.get().elapsed() > STUCK)))
    }

    fn limit(&self) -> usize {
        match self.apart_until.get() {
            Some(until) if Instant::now() < until => 1,
            Some(_) => {
                self.apart_until.set(None);
                self.most.get()
            }
            None => self.most.get(),
        }
    }

    /// Gives an idle lane what waits, as far as it may be one transaction.
    fn fill(&self, lane: &WriteLane) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let limit = self.limit();
        lane.batch.borrow_mut().start(limit, |joins| {
            let mut waiting = self.waiting.borrow_mut();
            if waiting.front().is_some_and(|write| joins(&write.statement)) { waiting.pop_front() } else { None }
        });
        lane.moved.set(Instant::now());
    }

    fn ended(&self, lane: &WriteLane, size: usize, ended: Ended<Boxed>) {
        lane.moved.set(Instant::now());
        match ended {
            Ended::Committed => {
                if size >= self.most.get() {
                    self.most.set((size * 2).min(BATCH_MAX));
                }
            }
            Ended::RolledBack { sqlstate, innocent } => {
                if size > 1 {
                    self.most.set((size / 2).max(1));
                    if matches!(&sqlstate, b"57014" | b"55P03" | b"40P01") {
                        self.apart_until.set(Some(Instant::now() + APART));
                    }
                }
                let mut waiting = self.waiting.borrow_mut();
                innocent.into_iter().rev().for_each(|write| waiting.push_front(write));
            }
        }
    }

    fn open(&self, owner: &Lanes) {
        let Some(place) = owner.budget.lane() else { return };
        let lane = Rc::new(WriteLane {
            batch: RefCell::default(),
            waker: Cell::default(),
            moved: Cell::new(Instant::now()),
            ready: Cell::new(false),
            closing: Cell::new(false),
            place: RefCell::new(Some(place)),
        });
        self.lanes.borrow_mut().push(lane.clone());
        let (connecting, owner) = (owner.connect(), owner.me.clone());
        tokio::task::spawn_local(async move {
            match connecting.await {
                Some(connection) => {
                    lane.ready.set(true);
                    drive(&lane, &owner, connection).await;
                }
                None => {
                    if let Some(owner) = owner.upgrade() {
                        owner.failed.set(Some(Instant::now()));
                    }
                }
            }
            lane.closing.set(true);
            lane.place.borrow_mut().take();
            lane.batch.borrow_mut().close(|rider, _, outcome| rider.arrive(outcome));
            if let Some(owner) = owner.upgrade() {
                owner.writes.gone(&owner);
            }
        });
    }

    /// A lane has gone. Those that wait, perhaps for it, go to the others; where there is none left, another comes for
    /// them, or nobody.
    fn gone(&self, owner: &Lanes) {
        self.lanes.borrow_mut().retain(|lane| !lane.closing.get());
        if !self.waiting.borrow().is_empty() {
            self.lanes.borrow().iter().filter(|lane| lane.is_idle()).for_each(|lane| lane.wake());
        }
        if self.lanes.borrow().is_empty() {
            if !self.waiting.borrow().is_empty() && owner.may_open() {
                self.open(owner);
            }
            if self.lanes.borrow().is_empty() {
                self.abandon();
            }
        }
    }

    /// Those that wait go elsewhere.
    pub(super) fn abandon(&self) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for write in waiting {
            write.rider.arrive(Outcome::Again(Again::NotSent));
        }
    }

    pub(super) fn close(&self) {
        self.abandon();
        self.lanes.borrow().iter().for_each(|lane| lane.close());
    }

    /// Closes lanes that have been idle for this long.
    pub(super) fn tend(&self, limit: Duration) {
        self.lanes.borrow_mut().retain(|lane| {
            let idle = lane.is_idle() && lane.moved.get().elapsed() >= limit;
            if idle {
                lane.close();
            }
            !lane.closing.get()
        });
    }

    /// Connections that are open or being opened.
    pub(super) fn count(&self) -> usize {
        self.lanes.borrow().iter().filter(|lane| !lane.closing.get()).count()
    }
}

/// Runs one lane until it is closed or its server goes.
async fn drive(lane: &Rc<WriteLane>, owner: &Weak<Lanes>, connection: Connection) {
    let (mut stream, mut buf) = connection.into_stream();
    // Set only while something waits behind a batch, and then not for each batch.
    let mut alarm: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        loop {
            let Some(owner) = owner.upgrade() else { return Poll::Ready(()) };
            if lane.batch.borrow().is_empty() && !lane.closing.get() {
                owner.writes.fill(lane);
            }
            match step(lane, &owner.writes, &mut stream, &mut buf, cx) {
                Step::Progress => {}
                Step::End => return Poll::Ready(()),
                Step::Wait => {
                    if lane.batch.borrow().is_empty() || owner.writes.waiting.borrow().is_empty() {
                        return Poll::Pending;
                    }
                    let running = lane.moved.get().elapsed();
                    let sleep =
                        alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(STUCK.saturating_sub(running))));
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    alarm = None;
                    if running >= STUCK {
                        if owner.may_open() && owner.writes.wants_another(true) {
                            owner.writes.open(&owner);
                        }
                        return Poll::Pending;
                    }
                }
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
fn step(lane: &WriteLane, writes: &Writes, stream: &mut TcpStream, buf: &mut BytesMut, cx: &mut Context<'_>) -> Step {
    let mut batch = lane.batch.borrow_mut();
    let mut blocked = false;
    while !batch.out().is_empty() && !blocked {
        match Pin::new(&mut *stream).poll_write(cx, batch.out()) {
            Poll::Ready(Ok(0) | Err(_)) => return Step::End,
            Poll::Ready(Ok(n)) => batch.took(n),
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
            let size = batch.len();
            match batch.receive(buf, |rider, _, outcome| rider.arrive(outcome)) {
                Ok(ended) => {
                    drop(batch);
                    if let Some(ended) = ended {
                        writes.ended(lane, size, ended);
                    }
                    Step::Progress
                }
                Err(_) => Step::End,
            }
        }
        Poll::Pending => {
            if lane.closing.get() && batch.is_empty() {
                return Step::End;
            }
            lane.waker.set(Some(cx.waker().clone()));
            Step::Wait
        }
    }
}
