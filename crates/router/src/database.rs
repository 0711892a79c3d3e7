//! The catalog of each database as the threads share it: loaded from the coordinator, replaced as a whole when metadata
//! or schema change, and told of other routers' changes by LISTEN.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pgherd_backend::{Address, BackendError, Connection, QueryResult, connect};
use pgherd_catalog::{COORDINATOR_GROUP, Node, Snapshot};
use pgherd_control::schema::{NOTIFY_CHANNEL, SCHEMA_VERSION};
use pgherd_wire::backend::parse_notification;

use crate::callers::LocalSocket;
use crate::error::{Failure, Result};
use crate::listen::{CoordinatorUrl, ServeError};
use crate::run::routines::Routines;
use crate::sequences::Leases;
use crate::shared::Shared;

pub struct Database {
    pub name: String,
    snapshot: RwLock<Arc<Snapshot>>,
    /// Grows with every catalog that is put in place.
    version: AtomicU64,
    /// What callbacks of this database prove themselves with; none where its schema is an older one.
    pub callback_secret: Option<Arc<str>>,
    /// What this database's workers know and no user does, likewise.
    pub worker_secrets: Mutex<HashMap<Address, Option<Arc<str>>>>,
    /// Told when the database goes: nothing of ours must keep it alive.
    stopped: tokio::sync::watch::Sender<bool>,
    sessions: AtomicUsize,
    /// Whoever loads what others will ask for as well.
    loading: tokio::sync::Mutex<()>,
    /// Values of sequences, drawn in advance.
    pub leases: Leases,
    /// Functions of users', and the copies of them that workers have.
    pub routines: Routines,
    /// What the catalog was loaded over last, for the next definition: a new connection costs as much as the load.
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    connection: Connection,
    since: Instant,
}

/// How long an idle connection for loads is kept.
const KEPT_FOR: Duration = Duration::from_secs(10);

impl Database {
    fn new(name: &str, snapshot: Snapshot, callback_secret: Option<Arc<str>>) -> Database {
        Database {
            name: name.to_owned(),
            snapshot: RwLock::new(Arc::new(snapshot)),
            version: AtomicU64::new(1),
            callback_secret,
            worker_secrets: Mutex::default(),
            stopped: tokio::sync::watch::channel(false).0,
            sessions: AtomicUsize::new(0),
            loading: tokio::sync::Mutex::default(),
            leases: Leases::default(),
            routines: Routines::default(),
            kept: Mutex::default(),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a newer catalog in place. An older one than what is there (two loads that overtook each other) is dropped;
    /// but where its epoch is before `before`, the one that was here when its load began, the coordinator has gone back
    /// (restored, or failed over to a server that lacked commits).
    fn replace(&self, before: i64, snapshot: Snapshot) {
        let mut current = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let is_newer = snapshot.epoch > current.epoch
            || snapshot.held.server != current.held.server
            || snapshot.epoch == current.epoch && crate::load::shows_all_of(&snapshot.held.known, &current.held.known);
        if is_newer || snapshot.epoch < before && current.epoch == before {
            *current = Arc::new(snapshot);
            self.version.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// In place of this very one, whatever that is. False: another has come meanwhile.
    fn replace_this(&self, this: &Arc<Snapshot>, snapshot: Snapshot) -> bool {
        let mut current = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        let is_there = Arc::ptr_eq(&current, this);
        if is_there {
            *current = Arc::new(snapshot);
            self.version.fetch_add(1, Ordering::AcqRel);
        }
        is_there
    }

    /// What was worked out under this version of the catalog is good while it stays the same.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A session of this router begins, or ends, in this database.
    pub fn enter(&self) {
        self.sessions.fetch_add(1, Ordering::AcqRel);
    }

    pub fn leave(&self) {
        self.sessions.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Acquire)
    }

    /// Ends the connection that listens for changes.
    pub fn stop(&self) {
        let _ = self.stopped.send(true);
    }

    /// Loads the catalog unless it is at least as new as `epoch`: a definition's session and who listens both hear of
    /// it, and one of them loads. Not from within a transaction: others may wait for this one.
    pub async fn reload_since(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        epoch: Option<i64>,
    ) -> std::result::Result<(), BackendError> {
        let is_here = || epoch.is_some_and(|epoch| self.snapshot().epoch >= epoch);
        if is_here() {
            return Ok(());
        }
        // Where the other's server has gone silent, this one sees for itself.
        let _turn = tokio::time::timeout(LOAD_TIMEOUT, self.loading.lock()).await;
        if is_here() {
            return Ok(());
        }
        self.reload(shared).await
    }

    /// Loads what has changed through the router's own account.
    pub async fn reload(self: &Arc<Self>, shared: &Arc<Shared>) -> std::result::Result<(), BackendError> {
        self.reload_after(shared, None).await
    }

    /// Loads what a transaction has changed that could not move the epoch itself, and moves it unless somebody else is about to.
    pub async fn reload_announced(self: &Arc<Self>, shared: &Arc<Shared>) -> std::result::Result<(), BackendError> {
        self.reload_after(shared, Some("SELECT pgherd.follow_epoch()")).await
    }

    async fn reload_after(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        first: Option<&str>,
    ) -> std::result::Result<(), BackendError> {
        let base = self.snapshot();
        let connection = match self.reload_over_kept(&base, first).await {
            Some(connection) => connection,
            None => {
                let mut connection = connect(&shared.own_target(&self.name)).await?;
                self.load_over(&mut connection, &base, first).await?;
                connection
            }
        };
        self.keep(connection);
        if self.snapshot().nodes.iter().any(|n| !shared.budget.is_known(&shared.address_of(n))) {
            let (shared, snapshot) = (shared.clone(), self.snapshot());
            tokio::spawn(async move { shared.learn_servers(&snapshot).await });
        }
        Ok(())
    }

    /// None where there is no such connection, or its server has ended it or gone silent.
    async fn reload_over_kept(&self, base: &Snapshot, first: Option<&str>) -> Option<Connection> {
        let Kept { mut connection, .. } = self.take_kept(Instant::now())?;
        let loaded = tokio::time::timeout(LOAD_TIMEOUT, self.load_over(&mut connection, base, first)).await;
        matches!(loaded, Ok(Ok(()))).then_some(connection)
    }

    /// The connection that has been idle since `before` at the latest.
    fn take_kept(&self, before: Instant) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|kept| kept.since <= before)
    }

    fn keep(self: &Arc<Self>, connection: Connection) {
        let since = Instant::now();
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { connection, since });
        let database = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            if let Some(Kept { connection, .. }) = database.upgrade().and_then(|database| database.take_kept(since)) {
                connection.close().await;
            }
        });
    }

    async fn load_over(
        &self,
        connection: &mut Connection,
        base: &Snapshot,
        first: Option<&str>,
    ) -> std::result::Result<(), BackendError> {
        let before = self.snapshot().epoch;
        if let Some(first) = first {
            connection.query(first).await?;
        }
        let snapshot = crate::load::load(connection, Some(base)).await?;
        self.replace(before, snapshot);
        Ok(())
    }
}

/// How long whoever wants the catalog waits for somebody else's load of it, or for an old connection.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a worker may take to have its schema brought up to date.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(3);

/// Creates or updates our schema in the coordinator's database (`pgherd init`).
pub fn init(coordinator: &CoordinatorUrl) -> std::result::Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| ServeError::Start(e.to_string()))?;
    runtime.block_on(async {
        let target = pgherd_backend::Target {
            address: pgherd_backend::Address { host: coordinator.host.clone(), port: coordinator.port },
            user: coordinator.user.clone(),
            database: coordinator.dbname.clone(),
            credentials: coordinator.credentials(),
            parameters: Vec::new(),
            label: None,
        };
        let mut connection = connect(&target).await?;
        connection.query(&pgherd_control::schema::coordinator_schema_sql()).await?;
        connection.close().await;
        Ok(())
    })
}

/// Before the first client: the coordinator answers, its default database has our schema, and its callback server
/// points at us. Gives the socket that callbacks come over, where they do.
pub async fn prepare(
    shared: &Arc<Shared>,
    bound: &[SocketAddr],
) -> std::result::Result<Option<LocalSocket>, ServeError> {
    let Some(first) = bound.first() else { return Err(ServeError::Start("there is no address to listen on".into())) };
    let target = shared.own_target(&shared.config.coordinator.dbname);
    let local = match shared.config.callbacks_over_tcp {
        true => None,
        false => LocalSocket::open(&target.address, first.port()),
    };
    let over_tcp = callback_address(shared, first);
    shared.set_callback_address(local.as_ref().map_or_else(|| over_tcp.clone(), |local| local.address.clone()));
    open(shared, &target.database).await.map_err(|failure| match failure {
        Failure::Statement(fields) | Failure::Fatal(fields) => ServeError::Start(fields.message().to_owned()),
        Failure::ClientGone => ServeError::Start("interrupted".into()),
    })?;
    let Some(local) = local else { return Ok(None) };
    let mut connection = connect(&target).await?;
    let is_reached = local.is_reached(&mut connection).await?;
    connection.close().await;
    if is_reached {
        shared.callers.set_local();
        return Ok(Some(local));
    }
    tracing::warn!("the coordinator is not in this machine's process namespace: it calls back over TCP");
    let mut connection = connect(&target).await?;
    connection.query(&pgherd_control::schema::callback_server_sql(&over_tcp.0, over_tcp.1)).await?;
    connection.close().await;
    shared.set_callback_address(over_tcp);
    Ok(None)
}

/// Where the coordinator finds us: loopback where it is on this machine, else the address we listen on.
fn callback_address(shared: &Shared, bound: &SocketAddr) -> (String, u16) {
    let host = match (bound.ip().is_unspecified(), shared.config.coordinator.host.as_str()) {
        (false, _) => bound.ip().to_string(),
        (true, "localhost" | "127.0.0.1" | "::1") => "127.0.0.1".to_owned(),
        (true, _) => hostname(),
    };
    (host, bound.port())
}

fn hostname() -> String {
    std::fs::read_to_string("/etc/hostname").map_or_else(|_| "127.0.0.1".to_owned(), |name| name.trim().to_owned())
}

/// The database's catalog, loaded on first use; creates our schema in it where that is missing.
pub async fn open(shared: &Arc<Shared>, name: &str) -> Result<Arc<Database>> {
    let mut databases = shared.databases.lock().await;
    if let Some(database) = databases.get(name) {
        return Ok(database.clone());
    }
    let mut connection = connect(&shared.own_target(name)).await?;
    let version = version_of(&mut connection).await?;
    if version.is_none_or(|version| version < SCHEMA_VERSION) {
        connection.query(&pgherd_control::schema::coordinator_schema_sql()).await?;
    }
    if version.is_none() {
        inherit_nodes(shared, name, &mut connection).await?;
    }
    if let Some((host, port)) = shared.callback_address() {
        connection.query(&pgherd_control::schema::callback_server_sql(&host, port)).await?;
    }
    let callback_secret = secret_of(&mut connection).await?.map(Arc::from);
    let snapshot = crate::load::load(&mut connection, None).await?;
    let mut updates = tokio::task::JoinSet::new();
    for node in snapshot.nodes.iter().filter(|n| n.is_active && n.group != COORDINATOR_GROUP) {
        let (shared, node, name) = (shared.clone(), node.clone(), name.to_owned());
        updates.spawn(async move {
            let why = match tokio::time::timeout(UPDATE_TIMEOUT, update_worker(&shared, &node, &name)).await {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "it does not answer".to_owned(),
            };
            tracing::warn!("schema pgherd on {}:{}: {why}", node.host, node.port);
        });
    }
    while updates.join_next().await.is_some() {}
    let database = Arc::new(Database::new(name, snapshot, callback_secret));
    databases.insert(name.to_owned(), database.clone());
    let (learning, snapshot) = (shared.clone(), database.snapshot());
    tokio::spawn(async move { learning.learn_servers(&snapshot).await });
    tokio::spawn(follow(shared.clone(), database.clone()));
    // What a router that died left prepared in this database holds locks until it is settled.
    let (recovering, opened) = (shared.clone(), database.clone());
    tokio::spawn(async move {
        if let Err(error) = crate::recovery::recover(&recovering, &opened, crate::recovery::AGE_AT_OPEN_SECONDS).await {
            tracing::warn!("recovery in database {}: {error}", opened.name);
        }
    });
    connection.close().await;
    Ok(database)
}

/// The version of our schema in a database; none: it has none.
async fn version_of(connection: &mut Connection) -> std::result::Result<Option<i32>, BackendError> {
    let known = connection.query("SELECT pg_catalog.to_regclass('pgherd.schema_version') IS NOT NULL").await?;
    if known.text(0, 0) != Some("t") {
        return Ok(None);
    }
    let found = connection.query(pgherd_control::schema::FOUND_VERSION).await?;
    Ok(found.text(0, 0).and_then(|version| version.parse().ok()))
}

/// A worker whose schema an older router has made.
async fn update_worker(shared: &Shared, node: &Node, database: &str) -> std::result::Result<(), BackendError> {
    let mut connection = connect(&shared.own_target_on(node, database)).await?;
    if version_of(&mut connection).await?.is_some_and(|version| version < SCHEMA_VERSION) {
        connection.query(&pgherd_control::schema::worker_schema_sql()).await?;
    }
    connection.close().await;
    Ok(())
}

/// What a server and the router know, read with the router's own rights. None: its schema is older than this program.
pub async fn secret_of(connection: &mut Connection) -> std::result::Result<Option<String>, BackendError> {
    let known = connection.query("SELECT pg_catalog.to_regclass('pgherd.secret') IS NOT NULL").await?;
    if known.text(0, 0) != Some("t") {
        return Ok(None);
    }
    Ok(connection.query("SELECT secret FROM pgherd.secret").await?.text(0, 0).map(str::to_owned))
}

/// A copy of a database that has no distributed tables knows the nodes of the router's default database, whatever its
/// template knew.
pub async fn renew_nodes(shared: &Arc<Shared>, name: &str) -> Result<()> {
    let mut connection = connect(&shared.own_target(name)).await?;
    let renewed = async {
        let has_none = version_of(&mut connection).await?.is_some()
            && connection.query("SELECT FROM pgherd.pg_dist_partition LIMIT 1").await?.rows.is_empty();
        if has_none {
            connection.query("DELETE FROM pgherd.pg_dist_node").await?;
            inherit_nodes(shared, name, &mut connection).await?;
        }
        Ok(())
    }
    .await;
    connection.close().await;
    renewed
}

/// A database that was made outside the router knows the nodes of the router's default database.
async fn inherit_nodes(shared: &Arc<Shared>, name: &str, connection: &mut Connection) -> Result<()> {
    let default = &shared.config.coordinator.dbname;
    if name == default {
        return Ok(());
    }
    let mut source = connect(&shared.own_target(default)).await?;
    let nodes = source.query(pgherd_control::schema::COPY_NODES_SOURCE).await;
    source.close().await;
    if let Some(sql) = nodes.ok().as_ref().and_then(|n| n.text(0, 0))
        && !sql.is_empty()
    {
        connection.query(sql).await?;
    }
    Ok(())
}

/// Reloads when another router, or somebody on the coordinator, says that something changed. Runs as long as the
/// router.
async fn follow(shared: Arc<Shared>, database: Arc<Database>) {
    let mut stopped = database.stopped.subscribe();
    loop {
        let listened = tokio::select! {
            listened = listen_once(&shared, &database) => listened,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        if let Err(error) = listened {
            tracing::debug!("listening for changes of database {}: {error}", database.name);
            if error.to_fields().sqlstate() == "3D000" {
                shared.databases.lock().await.remove(&database.name);
                return;
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        if !shared.databases.lock().await.contains_key(&database.name) {
            return;
        }
    }
}

async fn listen_once(shared: &Arc<Shared>, database: &Arc<Database>) -> std::result::Result<(), BackendError> {
    let mut connection = connect(&shared.own_target(&database.name)).await?;
    connection.query(&format!("LISTEN {NOTIFY_CHANNEL}")).await?;
    // What changed while nobody listened, and all else: this may be another server than the last one, whose transactions
    // have the same numbers.
    loop {
        let this = database.snapshot();
        let snapshot = crate::load::load(&mut connection, None).await?;
        if database.replace_this(&this, snapshot) {
            break;
        }
    }
    loop {
        let frame = connection.frame().await?;
        if frame.tag() == b'A' {
            // Somebody who tells us by hand says nothing of an epoch.
            let epoch = parse_notification(&frame).ok().and_then(|told| told.payload.parse().ok());
            database.reload_since(shared, epoch).await?;
        }
    }
}

/// What answers queries on the coordinator's catalogs.
pub trait Source {
    type Error;
    async fn query(&mut self, sql: &str) -> std::result::Result<QueryResult, Self::Error>;
    /// What it said is not understood.
    fn unreadable(why: String) -> Self::Error;
}

impl Source for Connection {
    type Error = BackendError;
    async fn query(&mut self, sql: &str) -> std::result::Result<QueryResult, BackendError> {
        Connection::query(self, sql).await
    }

    fn unreadable(reason: String) -> BackendError {
        BackendError::Protocol { address: "the coordinator".to_owned(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(epoch: i64) -> Snapshot {
        Snapshot { epoch, ..Snapshot::default() }
    }

    #[test]
    fn an_older_catalog_is_put_in_place_only_where_the_coordinator_has_gone_back() {
        let database = Database::new("d", at(5), None);
        let after = |before: i64, loaded: i64| {
            database.replace(before, at(loaded));
            (database.snapshot().epoch, database.version())
        };
        assert_eq!(after(5, 7), (7, 2));
        // Begun before 7 was here, and overtaken.
        assert_eq!(after(5, 6), (7, 2));
        assert_eq!(after(5, 4), (7, 2));
        // What belongs to no epoch may have changed.
        assert_eq!(after(7, 7), (7, 3));
        // 7 was there when this load began, and is no more.
        assert_eq!(after(7, 6), (6, 4));
    }

    #[test]
    fn of_two_catalogs_of_one_epoch_the_one_that_lacks_nothing_stays() {
        let known = |known: &str| {
            let mut snapshot = at(5);
            snapshot.held.known = known.to_owned();
            snapshot
        };
        let database = Database::new("d", known("7:9:7"), None);
        database.replace(5, known("7:8:7"));
        assert_eq!(database.version(), 1);
        database.replace(5, known("9:9:"));
        assert_eq!((database.snapshot().held.known.as_str(), database.version()), ("9:9:", 2));
        let this = database.snapshot();
        assert!(database.replace_this(&this, known("3:3:")) && !database.replace_this(&this, known("4:4:")));
        assert_eq!(database.snapshot().held.known, "3:3:");
    }
}
