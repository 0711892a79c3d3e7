//! Which of the coordinator's processes calls back (docs/decisions/0021). Whatever a connection says of itself, SQL of
//! users can have it say: `postgres_fdw.application_name` is anybody's to set. So it is asked of others. Where router
//! and coordinator share a machine, callbacks come over a socket of which the kernel tells the process at the other
//! end: it is the one that serves the session, or nobody. Elsewhere they come over TCP under a name that the session's
//! connection was given, and the coordinator is asked whether that session's process is waiting for an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use pgherd_backend::{Address, BackendError, Connection, Lease};
use pgherd_wire::frame::{Frame, next_frontend_frame, next_startup};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::callback::CallbackSender;
use crate::client::Client;
use crate::error::{Failure, Result};
use crate::shared::Shared;

/// How long the coordinator may take to call back over the socket, to show that it can.
const TRIAL: Duration = Duration::from_secs(2);
/// A process that has just sent its question may not yet be seen waiting.
const LOOKS: u32 = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a callback is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Caller {
    /// The coordinator's process, as the kernel tells.
    Process(i32),
    /// The name that it brings, which may be a stolen one.
    Token(String),
}

/// A session that callbacks go to.
#[derive(Debug, Clone)]
pub struct Called {
    pub sender: CallbackSender,
    /// The password that a callback of its database brings.
    pub secret: Option<Arc<str>>,
    /// The coordinator's process that serves it.
    process: i32,
    claims: Arc<Claims>,
}

/// Connections that say they are of one session's process, and are not known to be.
#[derive(Debug, Default)]
struct Claims {
    open: AtomicUsize,
    made: AtomicU64,
    /// The process is waiting for the answer to a callback that is known to be its.
    is_served: AtomicBool,
}

/// The sessions that can be called back.
#[derive(Debug, Default)]
pub struct Callers {
    sessions: Mutex<HashMap<Caller, Called>>,
    /// Callbacks come over the socket that tells their process.
    is_local: AtomicBool,
}

impl Callers {
    pub fn is_local(&self) -> bool {
        self.is_local.load(Ordering::Relaxed)
    }

    pub fn set_local(&self) {
        self.is_local.store(true, Ordering::Relaxed);
    }

    /// What callbacks of a connection to the coordinator are known by.
    pub fn caller_of(&self, lease: &Lease) -> Option<Caller> {
        let token = lease.label.as_ref()?;
        match self.is_local() {
            true => Some(Caller::Process(lease.cancel_key.as_ref()?.pid)),
            false => Some(Caller::Token(token.clone())),
        }
    }

    /// From now on callbacks of this connection belong to the session behind `sender`.
    pub fn register(&self, lease: &Lease, sender: CallbackSender, secret: Option<Arc<str>>) -> Option<Caller> {
        let caller = self.caller_of(lease)?;
        let process = lease.cancel_key.as_ref().map_or(0, |key| key.pid);
        let called = Called { sender, secret, process, claims: Arc::default() };
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(caller.clone(), called);
        Some(caller)
    }

    pub fn unregister(&self, caller: &Caller) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(caller);
    }

    pub fn find(&self, caller: &Caller) -> Option<Called> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(caller).cloned()
    }
}

impl Called {
    pub fn served(&self, is_served: bool) {
        self.claims.is_served.store(is_served, Ordering::SeqCst);
    }

    /// Whether a connection that brings this session's token, and waits for an answer, is of its process. That process
    /// waits for one thing only: so it must be waiting, for nothing that is known, and nobody else may say the same.
    pub async fn is_proved(&self, shared: &Shared) -> bool {
        let claims = &self.claims;
        let mine = claims.made.fetch_add(1, Ordering::SeqCst) + 1;
        let is_only = claims.open.fetch_add(1, Ordering::SeqCst) == 0;
        let waits = is_only && !claims.is_served.load(Ordering::SeqCst) && self.process_waits(shared).await;
        claims.open.fetch_sub(1, Ordering::SeqCst);
        waits && claims.made.load(Ordering::SeqCst) == mine && !claims.is_served.load(Ordering::SeqCst)
    }

    async fn process_waits(&self, shared: &Shared) -> bool {
        let Ok(mut connection) = pgherd_backend::connect(&shared.own_target(&shared.config.coordinator.dbname)).await
        else {
            return false;
        };
        let sql = format!(
            "SELECT FROM pg_catalog.pg_stat_activity \
             WHERE pid = {} AND state = 'active' AND wait_event_type = 'Extension'",
            self.process
        );
        let mut waits = false;
        for _ in 0..LOOKS {
            waits = connection.query(&sql).await.is_ok_and(|found| !found.rows.is_empty());
            if waits {
                break;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        connection.close().await;
        waits
    }
}

/// What the coordinator's foreign tables talk over.
pub(crate) trait Line {
    async fn frame(&mut self) -> Result<Frame>;
    /// Of the next message, which stays.
    async fn first_byte(&mut self) -> Result<u8>;
    async fn flush(&mut self) -> Result<()>;
    fn out(&mut self) -> &mut BytesMut;
}

impl Line for Client {
    async fn frame(&mut self) -> Result<Frame> {
        Client::frame(self).await
    }

    async fn first_byte(&mut self) -> Result<u8> {
        while self.read.is_empty() {
            self.fill().await?;
        }
        Ok(self.read[0])
    }

    async fn flush(&mut self) -> Result<()> {
        Client::flush(self).await
    }

    fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }
}

/// A connection over the socket.
pub(crate) struct LocalLine {
    stream: UnixStream,
    read: BytesMut,
    out: BytesMut,
}

impl LocalLine {
    pub fn new(stream: UnixStream) -> Self {
        LocalLine { stream, read: BytesMut::new(), out: BytesMut::new() }
    }

    /// The process at the other end.
    pub fn process(&self) -> Option<i32> {
        self.stream.peer_cred().ok()?.pid()
    }

    pub async fn startup(&mut self) -> Result<pgherd_wire::frame::Startup> {
        loop {
            if let Some(packet) = next_startup(&mut self.read)? {
                return Ok(packet);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.read).await {
            Ok(0) | Err(_) => Err(Failure::ClientGone),
            Ok(_) => Ok(()),
        }
    }
}

impl Line for LocalLine {
    async fn frame(&mut self) -> Result<Frame> {
        loop {
            if let Some(frame) = next_frontend_frame(&mut self.read)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    async fn first_byte(&mut self) -> Result<u8> {
        while self.read.is_empty() {
            self.fill().await?;
        }
        Ok(self.read[0])
    }

    async fn flush(&mut self) -> Result<()> {
        while self.out.has_remaining() {
            self.stream.write_buf(&mut self.out).await.map_err(|_| Failure::ClientGone)?;
        }
        Ok(())
    }

    fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }
}

/// The socket, and the host by which libpq finds it. It has a name in no directory: whoever serves the coordinator, in
/// this network namespace, reaches it.
pub(crate) struct LocalSocket {
    listener: UnixListener,
    pub address: (String, u16),
}

impl LocalSocket {
    /// None where there can be none, or the coordinator is on another machine.
    pub fn open(coordinator: &Address, port: u16) -> Option<Self> {
        let host = coordinator.host.as_str();
        let is_here = host == "localhost"
            || host.starts_with('/')
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_here {
            return None;
        }
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).ok()?;
        let name = format!("pgherd-{:016x}", u64::from_ne_bytes(bytes));
        let listener = listen(&format!("{name}/.s.PGSQL.{port}")).ok()?;
        Some(LocalSocket { listener, address: (format!("@{name}"), port) })
    }

    pub async fn accept(&self) -> std::io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }

    /// Has the coordinator call back over this connection of ours: whether it finds the socket, and whether its
    /// processes have the numbers here that it gives them.
    pub async fn is_reached(&self, connection: &mut Connection) -> std::result::Result<bool, BackendError> {
        let Some(expected) = connection.cancel_key.as_ref().map(|key| key.pid) else { return Ok(false) };
        let asked =
            tokio::time::timeout(TRIAL, connection.query("SELECT FROM pgherd.remote_command WHERE command = ''"));
        let came = async {
            // Sessions of another router may come as well. Nobody is answered; the statement fails.
            while let Ok(stream) = self.accept().await {
                if LocalLine::new(stream).process() == Some(expected) {
                    return true;
                }
            }
            false
        };
        let (asked, came) = tokio::join!(asked, tokio::time::timeout(TRIAL, came));
        match asked {
            Ok(Err(BackendError::Server(_)) | Ok(_)) => Ok(came == Ok(true)),
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

#[cfg(target_os = "linux")]
fn listen(name: &str) -> std::io::Result<UnixListener> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    let listener = std::os::unix::net::UnixListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

#[cfg(not(target_os = "linux"))]
fn listen(_: &str) -> std::io::Result<UnixListener> {
    Err(std::io::ErrorKind::Unsupported.into())
}
