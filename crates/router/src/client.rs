//! The client's side of a session: frames in, bytes out. Replies gather in `out` and leave when the protocol says so or
//! when enough has gathered, so that a client that does not read stalls its own session and nothing else. A reply that
//! arrives on a lane goes to the client's socket straight from the lane's task, through [`Link`].

use std::cell::{Cell, RefCell, RefMut};
use std::future::Future;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, BytesMut};
use pgherd_backend::lane::{Again, Outcome, Rider};
use pgherd_backend::liveness::{CLIENTS, keep_alive};
use pgherd_wire::backend;
use pgherd_wire::frame::{Frame, has_frontend_frame, next_frontend_frame};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::encoding::Coding;
use crate::error::{Failure, Result};
use crate::run::Capture;

const OUT_CHUNK: usize = 64 * 1024;
/// Room for what one read brings: starts small, since most clients are idle, and grows with those that send much.
const READ_MIN: usize = 512;
const READ_MAX: usize = 64 * 1024;
/// While a statement runs no more than this is read ahead: enough to see the client go.
const AHEAD_MAX: usize = 64 * 1024;
/// Buffers larger than this are given back when they are empty.
const KEEP_MAX: usize = 4 * 1024;

/// Where a statement is that this client has on a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ride {
    None,
    Away,
    /// The reply is here, but the client has not taken all of it.
    Leaving,
    Back(Again),
    Lost,
    /// The session is over; nobody wants the reply.
    Over,
}

/// What a lane's task needs of a client.
pub struct Link {
    socket: OwnedWriteHalf,
    ride: Cell<Ride>,
    /// What goes in front of the reply, and what of it the socket did not take.
    reply: RefCell<BytesMut>,
    /// The session waits for the reply itself, not only for the client's next message.
    eager: Cell<bool>,
    /// The client is in a block, of which the server that answers knows nothing.
    in_block: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// A part of what was to be sent is still here: nothing else may be sent.
    is_sending: Cell<bool>,
    /// What could not be sent of what was said in between.
    unsent: RefCell<BytesMut>,
    said_something: Cell<bool>,
    gone_since: Cell<Option<Instant>>,
}

impl Link {
    pub fn stream(&self) -> &TcpStream {
        self.socket.as_ref()
    }

    /// When it was first seen that the client has gone.
    pub fn gone_since(&self) -> Instant {
        let since = self.gone_since.get().unwrap_or_else(Instant::now);
        self.gone_since.set(Some(since));
        since
    }

    /// Sends what every client may be sent at any time and knows already, once: where nobody is left to take it, the
    /// socket says so.
    pub fn say_something(&self) {
        if self.said_something.get() || self.is_sending.get() || !self.reply.borrow().is_empty() {
            return;
        }
        self.said_something.set(true);
        let mut message = BytesMut::new();
        backend::write_parameter_status(&mut message, "integer_datetimes", "on");
        if let Ok(sent) = self.socket.try_write(&message) {
            *self.unsent.borrow_mut() = message.split_off(sent);
        }
    }

    /// Has the session look around.
    pub fn wake(&self) {
        if let Some(waker) = self.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }

    fn wake_with(&self, waker: &Waker) {
        let mut kept = self.waker.borrow_mut();
        match kept.as_ref() {
            Some(known) if known.will_wake(waker) => {}
            _ => *kept = Some(waker.clone()),
        }
    }

    /// The client is told that it is in a block, or in none.
    pub fn set_in_block(&self, in_block: bool) {
        self.in_block.set(in_block);
    }

    /// Gets ready for a ride. What is written here goes in front of the reply.
    pub fn begin(&self) -> RefMut<'_, BytesMut> {
        self.ride.set(Ride::Away);
        self.eager.set(true);
        let mut reply = self.reply.borrow_mut();
        reply.clear();
        reply
    }

    /// The lane did not take it.
    pub fn stay(&self) {
        self.ride.set(Ride::None);
    }

    /// The rest of what was said in between comes first.
    fn precede(&self, out: &mut BytesMut) {
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.is_empty() {
            let behind = std::mem::replace(out, std::mem::take(&mut unsent));
            out.extend_from_slice(&behind);
        }
    }

    /// Sends what can be sent at once.
    fn push_out(&self) -> std::io::Result<()> {
        let mut reply = self.reply.borrow_mut();
        self.precede(&mut reply);
        while !reply.is_empty() {
            match self.socket.try_write(&reply) {
                Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
                Ok(n) => reply.advance(n),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if reply.capacity() > KEEP_MAX {
            *reply = BytesMut::new();
        }
        Ok(())
    }
}

impl Rider for Link {
    fn arrive(&self, outcome: Outcome<'_>) {
        if self.ride.get() == Ride::Over {
            return;
        }
        let next = match outcome {
            Outcome::Complete(bytes) => {
                let mut reply = self.reply.borrow_mut();
                reply.extend_from_slice(bytes);
                // ReadyForQuery is the last message.
                if self.in_block.get()
                    && let Some(status) = reply.last_mut()
                {
                    *status = b'T';
                }
                drop(reply);
                match self.push_out() {
                    Ok(()) if self.reply.borrow().is_empty() => Ride::None,
                    // An error shows again when the session writes.
                    _ => Ride::Leaving,
                }
            }
            Outcome::Again(again) => Ride::Back(again),
            Outcome::Lost => Ride::Lost,
        };
        self.ride.set(next);
        if next != Ride::None || self.eager.get() {
            self.wake();
        }
    }
}

/// What an idle session is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// At least one whole message is here.
    Message,
    /// The statement on the lane is to be run elsewhere: its messages are the next ones again.
    Back(Again),
    /// Nobody knows what became of it.
    Lost,
}

pub struct Client {
    socket: OwnedReadHalf,
    pub link: Rc<Link>,
    pub read: BytesMut,
    room: usize,
    /// Bytes at the front of `read` that are on a lane.
    held: usize,
    /// The client has closed its side, seen while a statement was on a lane.
    ended: bool,
    pub out: BytesMut,
    /// How often bytes have left: what was written before can no longer be taken back.
    pub flushes: u64,
    /// Rows are not for the client now, but for a statement of ours.
    pub capture: Option<Box<Capture>>,
    /// Its encoding is not UTF-8.
    pub coding: Option<Box<Coding>>,
    _over: Over,
}

/// Tells a lane that nobody wants the reply any more.
struct Over(Weak<Link>);

impl Drop for Over {
    fn drop(&mut self) {
        if let Some(link) = self.0.upgrade() {
            link.ride.set(Ride::Over);
            // The session's task is over; its waker keeps it in memory.
            link.waker.borrow_mut().take();
        }
    }
}

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        keep_alive(&stream, CLIENTS);
        let (socket, write) = stream.into_split();
        let link = Rc::new(Link {
            socket: write,
            ride: Cell::new(Ride::None),
            reply: RefCell::default(),
            eager: Cell::new(false),
            in_block: Cell::new(false),
            waker: RefCell::default(),
            is_sending: Cell::new(false),
            unsent: RefCell::default(),
            said_something: Cell::new(false),
            gone_since: Cell::new(None),
        });
        let _over = Over(Rc::downgrade(&link));
        Client {
            socket,
            link,
            read: BytesMut::new(),
            room: READ_MIN,
            held: 0,
            ended: false,
            out: BytesMut::new(),
            flushes: 0,
            capture: None,
            coding: None,
            _over,
        }
    }

    /// The socket and what was read from it, for another thread. None, and the client is lost, where a lane still has
    /// to do with it.
    pub fn into_parts(self) -> Option<(std::net::TcpStream, Vec<u8>)> {
        let Client { socket, link, read, .. } = self;
        let link = Rc::into_inner(link)?;
        let stream = socket.reunite(link.socket).ok()?.into_std().ok()?;
        Some((stream, read.to_vec()))
    }

    /// [`into_parts`](Self::into_parts) would succeed, and nothing would be forgotten.
    pub fn can_move(&self) -> bool {
        self.link.ride.get() == Ride::None
            && self.held == 0
            && self.coding.is_none()
            && self.out.is_empty()
            && self.link.reply.borrow().is_empty()
            && Rc::strong_count(&self.link) == 1
    }

    /// The next message, as the client sent it. Cancel safe.
    pub async fn frame(&mut self) -> Result<Frame> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// The next message if it is here as a whole.
    pub fn take_frame(&mut self) -> Result<Option<Frame>> {
        Ok(next_frontend_frame(&mut self.read)?)
    }

    /// A message as it is in UTF-8, once what came before it has been done.
    pub fn decoded(&mut self, frame: &Frame) -> Result<Frame> {
        match &mut self.coding {
            Some(coding) => coding.received(frame),
            None => Ok(frame.clone()),
        }
    }

    /// Returns when the client has closed its side. Reads ahead a little meanwhile. Cancel safe.
    pub async fn gone(&mut self) {
        while self.read.len() < AHEAD_MAX {
            if self.fill().await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Reads some more bytes; an end of the stream is [`Failure::ClientGone`]. Cancel safe.
    pub async fn fill(&mut self) -> Result<()> {
        std::future::poll_fn(|cx| self.poll_fill(cx)).await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.read.reserve(self.room);
        match pin!(self.socket.read_buf(&mut self.read)).poll(cx) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Err(Failure::ClientGone)),
            Poll::Ready(Ok(n)) => {
                if n >= self.room {
                    self.room = (self.room * 4).min(READ_MAX);
                }
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// What comes next: a message, or the news of a statement on a lane. Cancel safe.
    pub fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<Arrival>> {
        self.link.wake_with(cx.waker());
        loop {
            match self.link.ride.get() {
                Ride::Away => {
                    if self.read.len() < AHEAD_MAX && !self.ended {
                        match self.poll_fill(cx) {
                            Poll::Ready(Ok(())) => continue,
                            // What it has sent before is served.
                            Poll::Ready(Err(_)) => self.ended = true,
                            Poll::Pending => {}
                        }
                    }
                    self.link.eager.set(self.read.len() > self.held);
                    return Poll::Pending;
                }
                Ride::Leaving => {
                    if self.link.push_out().is_err() {
                        return Poll::Ready(Err(Failure::ClientGone));
                    }
                    if self.link.reply.borrow().is_empty() {
                        self.link.ride.set(Ride::None);
                        continue;
                    }
                    match self.link.socket.as_ref().poll_write_ready(cx) {
                        Poll::Ready(Ok(())) => continue,
                        Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::ClientGone)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Ride::Back(again) => {
                    self.held = 0;
                    self.link.ride.set(Ride::None);
                    return Poll::Ready(Ok(Arrival::Back(again)));
                }
                Ride::Lost => {
                    self.read.advance(self.held);
                    self.held = 0;
                    self.link.ride.set(Ride::None);
                    return Poll::Ready(Ok(Arrival::Lost));
                }
                Ride::None | Ride::Over => {
                    if self.held > 0 {
                        self.read.advance(self.held);
                        self.held = 0;
                    }
                    if has_frontend_frame(&self.read) {
                        return Poll::Ready(Ok(Arrival::Message));
                    }
                    if self.read.is_empty() && self.read.capacity() > KEEP_MAX && self.room < READ_MAX {
                        self.read = BytesMut::new();
                    }
                    match self.poll_fill(cx) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(gone)) => return Poll::Ready(Err(gone)),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            }
        }
    }

    /// The first `held` bytes of `read` are on a lane. [`Link`] is the rider, and [`poll_arrival`](Self::poll_arrival)
    /// says how it ended.
    pub fn depart(&mut self, held: usize) {
        self.held = held;
        self.flushes += 1;
    }

    /// A statement of this client is on a lane.
    pub fn is_away(&self) -> bool {
        !matches!(self.link.ride.get(), Ride::None | Ride::Over)
    }

    pub async fn flush(&mut self) -> Result<()> {
        self.convert();
        self.flushes += u64::from(!self.out.is_empty());
        self.link.precede(&mut self.out);
        while !self.out.is_empty() {
            match self.link.socket.try_write(&self.out) {
                Ok(0) => return Err(Failure::ClientGone),
                Ok(n) => {
                    self.out.advance(n);
                    self.converted_left(n);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.link.is_sending.set(true);
                    self.link.socket.writable().await.map_err(|_| Failure::ClientGone)?;
                }
                Err(_) => return Err(Failure::ClientGone),
            }
        }
        self.link.is_sending.set(false);
        if self.out.capacity() > OUT_CHUNK {
            self.out = BytesMut::new();
        }
        Ok(())
    }

    /// Where the reply is: the same as before as long as nothing was written.
    pub fn mark(&self) -> (u64, usize) {
        (self.flushes, self.out.len())
    }

    /// Takes back what was written since, unless it has gone out.
    pub fn rewind(&mut self, (flushes, length): (u64, usize)) {
        if self.flushes == flushes {
            self.out.truncate(length);
        }
    }

    /// Flushes once enough has gathered: called for every row.
    pub async fn flush_if_full(&mut self) -> Result<()> {
        if self.out.len() >= OUT_CHUNK { self.flush().await } else { Ok(()) }
    }

    /// Appends a server's message as it is.
    pub fn forward(&mut self, frame: &Frame) {
        if frame.tag() == b'D'
            && let Some(capture) = &mut self.capture
        {
            return capture.push(frame);
        }
        self.out.extend_from_slice(&frame.raw);
    }
}
