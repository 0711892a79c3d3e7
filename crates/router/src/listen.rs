//! Threads and accepting: one acceptor hands each connection to a thread. Which one, and when a session moves to
//! another, is decided in [`placement`].

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pgherd_backend::Credentials;
use tokio::sync::{mpsc, watch};

use crate::placement::{self, Incoming, Placement, Policy};
use crate::session::Session;
use crate::shared::{Shared, Thread};
use crate::{deadlock, departed, recovery, startup};

/// How clients prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// Anyone who can connect is who they say.
    Trust,
    /// SCRAM-SHA-256 against the coordinator's verifiers.
    ScramSha256,
}

/// Where the coordinator is and who the router is there.
#[derive(Debug, Clone)]
pub struct CoordinatorUrl {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub dbname: String,
}

impl CoordinatorUrl {
    pub fn credentials(&self) -> Credentials {
        self.password.clone().map_or(Credentials::None, Credentials::Password)
    }

    /// What a trusted client of this name logs in with: the router's own password if it is the router's own account.
    pub fn credentials_if(&self, user: &str) -> Credentials {
        if user == self.user { self.credentials() } else { Credentials::None }
    }
}

#[derive(Debug, Clone)]
pub struct ServeConfig {
    pub coordinator: CoordinatorUrl,
    pub listen: Vec<SocketAddr>,
    pub auth: AuthMode,
    /// At most; 0: one per core.
    pub threads: usize,
    /// For tests: every session goes to another thread whenever it can.
    pub restless: bool,
    /// Callbacks come over TCP, though the coordinator may be on this machine.
    pub callbacks_over_tcp: bool,
    /// Clients beyond this are refused.
    pub max_clients: usize,
    /// The password of the router's own account on the workers, where it differs from the coordinator's.
    pub worker_password: Option<String>,
    /// Connections that the router opens to each server at most; none: what the server takes, less a tenth.
    pub connections: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("could not listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("could not start: {0}")]
    Start(String),
    #[error(transparent)]
    Coordinator(#[from] pgherd_backend::BackendError),
}

/// Runs the router until `shutdown` turns true. Blocks. `listener_ready` is called with the bound addresses once
/// clients can connect.
pub fn serve(
    config: ServeConfig,
    listener_ready: impl FnOnce(Vec<SocketAddr>) + Send,
    shutdown: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    let start = |e: std::io::Error| ServeError::Start(e.to_string());
    let threads = match config.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(start)?;
    runtime.block_on(async {
        let mut listeners = Vec::new();
        for address in &config.listen {
            let listener = tokio::net::TcpListener::bind(address)
                .await
                .map_err(|source| ServeError::Listen { address: *address, source })?;
            listeners.push(listener);
        }
        let bound: Vec<SocketAddr> = listeners.iter().filter_map(|l| l.local_addr().ok()).collect();
        let restless = config.restless;
        let shared = Arc::new(Shared::new(config).map_err(|e| ServeError::Start(e.to_string()))?);
        let local = crate::database::prepare(&shared, &bound).await?;
        let placement = Arc::new(Placement::new(threads, restless));
        let mut workers = Vec::new();
        let mut senders = Vec::new();
        for number in 0..threads {
            let (sender, receiver) = mpsc::unbounded_channel();
            placement.set_sender(number, sender.downgrade());
            senders.push(sender);
            let (shared, placement) = (shared.clone(), placement.clone());
            let shutdown = shutdown.clone();
            let worker = std::thread::Builder::new()
                .name(format!("router-{number}"))
                .stack_size(pgherd_sql::STATEMENT_STACK)
                .spawn(move || run_thread(shared, (number, placement), receiver, shutdown))
                .map_err(start)?;
            workers.push(worker);
        }
        recovery::spawn(shared.clone(), shutdown.clone());
        deadlock::spawn(shared.clone(), shutdown.clone());
        listener_ready(bound);
        // Where the next client goes.
        let next = Arc::new(AtomicUsize::new(0));
        tokio::spawn(watch_loads(placement, next.clone()));
        let accepting = listeners.into_iter().map(|listener| {
            let (senders, next) = (&senders, &next);
            Box::pin(async move {
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => {
                            let Ok(stream) = stream.into_std() else { continue };
                            let _ = senders[next.load(Ordering::Relaxed)].send(Incoming::Connection(stream));
                        }
                        Err(error) => {
                            tracing::warn!("could not accept a connection: {error}");
                            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        }
                    }
                }
            })
        });
        let calling = async {
            let Some(local) = local else { return std::future::pending().await };
            loop {
                match local.accept().await.and_then(tokio::net::UnixStream::into_std) {
                    Ok(stream) => {
                        let _ = senders[next.load(Ordering::Relaxed)].send(Incoming::Callback(stream));
                    }
                    Err(error) => {
                        tracing::warn!("could not accept a callback: {error}");
                        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    }
                }
            }
        };
        let mut stopping = shutdown.clone();
        tokio::select! {
            _ = futures_util::future::select_all(accepting) => {}
            () = calling => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
        drop(senders);
        tokio::task::spawn_blocking(move || {
            for worker in workers {
                let _ = worker.join();
            }
        })
        .await
        .map_err(|e| ServeError::Start(e.to_string()))?;
        Ok(())
    })
}

/// Looks at what the threads have to do, and decides who serves whom.
async fn watch_loads(placement: Arc<Placement>, next: Arc<AtomicUsize>) {
    let mut policy = Policy::default();
    let (mut before, mut then) = (placement.clocks(), Instant::now());
    loop {
        tokio::time::sleep(placement::INTERVAL).await;
        let (now, at) = (placement.clocks(), Instant::now());
        let loads = placement.loads(&before, &now, at - then);
        (before, then) = (now, at);
        next.store(placement::place(&loads), Ordering::Relaxed);
        if let Some(order) = policy.decide(&loads) {
            tracing::debug!("of thread {}, {} sessions go to {}: {loads:?}", order.from, order.count, order.to);
            placement.order(order);
        }
    }
}

/// How often a thread looks for what nobody uses any more.
const TEND: std::time::Duration = std::time::Duration::from_secs(10);

/// Closes what is idle: now and then, and at once where another thread needs the room.
async fn tend(thread: std::rc::Weak<Thread>) {
    let Some(mut pressure) = thread.upgrade().map(|thread| thread.shared.budget.pressure()) else { return };
    let mut often = tokio::time::interval(TEND);
    loop {
        tokio::select! {
            _ = often.tick() => match thread.upgrade() {
                Some(thread) => thread.tend(),
                None => return,
            },
            changed = pressure.changed() => match thread.upgrade() {
                Some(thread) if changed.is_ok() => thread.pool().yield_room(),
                _ => return,
            },
        }
    }
}

/// One thread: sessions as tasks of a single-threaded runtime.
fn run_thread(
    shared: Arc<Shared>,
    (index, placement): (usize, Arc<Placement>),
    mut connections: mpsc::UnboundedReceiver<Incoming>,
    mut shutdown: watch::Receiver<bool>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!("could not start a thread: {error}");
            return;
        }
    };
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async move {
        placement.begin(index);
        let thread = Rc::new(Thread::new(shared, index, placement));
        let stopped = Rc::downgrade(&thread);
        tokio::task::spawn_local(async move {
            let _ = shutdown.wait_for(|stop| *stop).await;
            if let Some(thread) = stopped.upgrade() {
                thread.stop();
            }
        });
        tokio::task::spawn_local(tend(Rc::downgrade(&thread)));
        tokio::task::spawn_local(departed::watch(Rc::downgrade(&thread)));
        while let Some(incoming) = connections.recv().await {
            let thread = thread.clone();
            thread.placement.enter(index);
            tokio::task::spawn_local(async move {
                let placement = thread.placement.clone();
                match incoming {
                    Incoming::Connection(stream) => {
                        if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                            startup::accept(thread, stream).await;
                        }
                    }
                    Incoming::Callback(stream) => {
                        if let Ok(stream) = tokio::net::UnixStream::from_std(stream) {
                            startup::accept_local(thread, stream).await;
                        }
                    }
                    Incoming::Session(seed) => {
                        if let Some(session) = Session::grow(thread, *seed) {
                            startup::serve(session).await;
                        }
                    }
                }
                placement.exit(index);
            });
        }
        // Smart shutdown: sessions see the signal at their next idle moment; they get a while for it.
        let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while Rc::strong_count(&thread) > 1 && tokio::time::Instant::now() < limit {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    });
}
