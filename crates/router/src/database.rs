//! The catalog of each database as the threads share it: loaded from the coordinator, replaced as a whole when metadata
//! or schema change, and told of other routers' changes by LISTEN.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pgherd_backend::{Address, BackendError, Connection, QueryResult, connect};
use pgherd_catalog::hash::KeyType;
use pgherd_catalog::{COORDINATOR_GROUP, Cascade, Column, ColumnDefault, Node, Oid, Shard, Snapshot, Table, TableKind};
use pgherd_control::schema::{NOTIFY_CHANNEL, SCHEMA_VERSION};
use pgherd_wire::backend::parse_notification;

use crate::callers::LocalSocket;
use crate::error::{Failure, Result};
use crate::listen::{CoordinatorUrl, ServeError};
use crate::settings::quote_literal;
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
    /// What the catalog was loaded over last, for the next definition: a new connection costs as much as the load.
    kept: Mutex<Option<Kept>>,
}

struct Kept {
    connection: Connection,
    since: Instant,
    /// It has the statements of a load prepared: half of one is planning.
    is_prepared: bool,
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
            kept: Mutex::default(),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a newer catalog in place. An older one than what is there (two loads that overtook each other) is dropped;
    /// but where it is older than `before`, the epoch that was here when its load began, the coordinator has gone back
    /// (restored, or failed over to a server that lacked commits).
    fn replace(&self, before: i64, snapshot: Snapshot) {
        let mut current = self.snapshot.write().unwrap_or_else(PoisonError::into_inner);
        if snapshot.epoch >= current.epoch || snapshot.epoch < before && current.epoch == before {
            *current = Arc::new(snapshot);
            self.version.fetch_add(1, Ordering::AcqRel);
        }
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
        self.reload_from(shared, Some(self.snapshot())).await
    }

    /// Loads the catalog afresh through the router's own account.
    pub async fn reload(self: &Arc<Self>, shared: &Arc<Shared>) -> std::result::Result<(), BackendError> {
        self.reload_from(shared, None).await
    }

    async fn reload_from(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        base: Option<Arc<Snapshot>>,
    ) -> std::result::Result<(), BackendError> {
        match self.reload_over_kept(base.as_deref()).await {
            Some(connection) => self.keep(connection, true),
            None => {
                let mut connection = connect(&shared.own_target(&self.name)).await?;
                connection.add_step(OWN_BLOCK);
                self.load_over(&mut connection, base.as_deref()).await?;
                self.keep(connection, false);
            }
        }
        if self.snapshot().nodes.iter().any(|n| !shared.budget.is_known(&shared.address_of(n))) {
            let (shared, snapshot) = (shared.clone(), self.snapshot());
            tokio::spawn(async move { shared.learn_servers(&snapshot).await });
        }
        Ok(())
    }

    /// None where there is no such connection, or its server has ended it or gone silent.
    async fn reload_over_kept(&self, base: Option<&Snapshot>) -> Option<Connection> {
        let Kept { mut connection, is_prepared, .. } = self.take_kept(Instant::now())?;
        let loading = async {
            if !is_prepared {
                connection.query(&prepare_loads()).await?;
            }
            connection.add_step(OWN_BLOCK);
            self.load_over(&mut Prepared(&mut connection), base).await
        };
        let loaded = tokio::time::timeout(LOAD_TIMEOUT, loading).await;
        matches!(loaded, Ok(Ok(()))).then_some(connection)
    }

    /// The connection that has been idle since `before` at the latest.
    fn take_kept(&self, before: Instant) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|kept| kept.since <= before)
    }

    fn keep(self: &Arc<Self>, connection: Connection, is_prepared: bool) {
        let since = Instant::now();
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { connection, since, is_prepared });
        let database = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            if let Some(Kept { connection, .. }) = database.upgrade().and_then(|database| database.take_kept(since)) {
                connection.close().await;
            }
        });
    }

    /// In a block of its own, which has been opened.
    async fn load_over<S: Source<Error = BackendError>>(
        &self,
        source: &mut S,
        base: Option<&Snapshot>,
    ) -> std::result::Result<(), BackendError> {
        let before = self.snapshot().epoch;
        let snapshot = load_from(source, true, base).await?;
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
    let snapshot = load(&mut connection, None).await?;
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
    // What changed while nobody listened.
    connection.add_step(OWN_BLOCK);
    database.load_over(&mut connection, None).await?;
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
}

impl Source for Connection {
    type Error = BackendError;
    async fn query(&mut self, sql: &str) -> std::result::Result<QueryResult, BackendError> {
        Connection::query(self, sql).await
    }
}

/// The texts of a load that do not change.
const LOADS: [&str; 9] = [
    EPOCH,
    TABLES,
    COLUMNS,
    SHARDS,
    UNIQUE_KEYS,
    CASCADES,
    crate::names::BUILTINS,
    crate::names::FUNCTIONS,
    crate::names::RELATIONS,
];

fn prepare_loads() -> String {
    let prepare = |(number, sql): (usize, &&str)| format!("PREPARE pgherd_load_{number} AS {sql};");
    LOADS.iter().enumerate().map(prepare).collect()
}

/// A connection that has [`LOADS`] prepared.
struct Prepared<'a>(&'a mut Connection);

impl Source for Prepared<'_> {
    type Error = BackendError;
    async fn query(&mut self, sql: &str) -> std::result::Result<QueryResult, BackendError> {
        match LOADS.iter().position(|load| *load == sql) {
            Some(number) => self.0.query(&format!("EXECUTE pgherd_load_{number}")).await,
            None => self.0.query(sql).await,
        }
    }
}

const OWN_BLOCK: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Loads the catalog in one snapshot of the coordinator. Inside a transaction it sees that transaction's changes. What is
/// the same in `base`, an earlier one, is taken over.
pub async fn load(connection: &mut Connection, base: Option<&Snapshot>) -> std::result::Result<Snapshot, BackendError> {
    let own_block = connection.status == b'I';
    if own_block {
        connection.add_step(OWN_BLOCK);
    }
    load_from(connection, own_block, base).await
}

/// And what tells whether functions are the same: each version of a row has its own transaction, or place.
const EPOCH: &str = "
SELECT e.epoch, (SELECT pg_catalog.count(*) || ' ' || pg_catalog.sum(pg_catalog.hashtextextended(
           p.oid || ' ' || p.xmin::pg_catalog.text || p.ctid::pg_catalog.text, 0))
         FROM pg_catalog.pg_proc p WHERE p.oid >= 16384) || ' ' ||
       (SELECT pg_catalog.sum(pg_catalog.hashtextextended(l.oid || ' ' || l.xmin::pg_catalog.text || l.ctid::pg_catalog.text, 0))
         FROM pg_catalog.pg_language l)
FROM pgherd.epoch e";

/// The same through whatever answers; `own_block`: it was opened for this.
pub async fn load_from<S: Source>(
    connection: &mut S,
    own_block: bool,
    base: Option<&Snapshot>,
) -> std::result::Result<Snapshot, S::Error> {
    // Type names must print qualified, whatever the user's search path is. Where there are many tables PostgreSQL
    // believes its catalog worth compiling for, and takes seconds. Both are put back at the end.
    let before = "SELECT pg_catalog.current_setting('search_path'), pg_catalog.current_setting('jit')";
    let before = connection.query(before).await?;
    connection.query(&set_local("pg_catalog, pg_temp", "off")).await?;
    let mut snapshot = Snapshot::default();
    let result = connection.query(EPOCH).await?;
    snapshot.epoch = number(&result, 0, 0);
    snapshot.functions_are = string(&result, 0, 1);
    load_nodes(connection, &mut snapshot).await?;
    load_tables(connection, &mut snapshot).await?;
    load_relations(connection, &mut snapshot).await?;
    crate::names::load(connection, &mut snapshot, base).await?;
    if own_block {
        connection.query("COMMIT").await?;
    } else {
        connection.query(&set_local(&string(&before, 0, 0), &string(&before, 0, 1))).await?;
    }
    Ok(snapshot)
}

fn set_local(search_path: &str, jit: &str) -> String {
    format!(
        "SELECT pg_catalog.set_config('search_path', {}, true), pg_catalog.set_config('jit', {}, true)",
        quote_literal(search_path),
        quote_literal(jit)
    )
}

fn number<T: std::str::FromStr + Default>(result: &QueryResult, row: usize, column: usize) -> T {
    result.text(row, column).and_then(|t| t.parse().ok()).unwrap_or_default()
}

pub fn string(result: &QueryResult, row: usize, column: usize) -> String {
    result.text(row, column).unwrap_or_default().to_owned()
}

fn truth(result: &QueryResult, row: usize, column: usize) -> bool {
    result.text(row, column) == Some("t")
}

async fn load_nodes<S: Source>(connection: &mut S, snapshot: &mut Snapshot) -> std::result::Result<(), S::Error> {
    let result = connection
        .query(
            "SELECT nodeid, groupid, nodename, nodeport, isactive, shouldhaveshards FROM pgherd.pg_dist_node \
             WHERE noderole = 'primary' ORDER BY groupid, nodeid",
        )
        .await?;
    for row in 0..result.rows.len() {
        snapshot.nodes.push(Node {
            id: number(&result, row, 0),
            group: number(&result, row, 1),
            host: string(&result, row, 2),
            port: number(&result, row, 3),
            is_active: truth(&result, row, 4),
            should_have_shards: truth(&result, row, 5),
        });
    }
    let colocations = connection.query("SELECT colocationid, placementepoch FROM pgherd.pg_dist_colocation").await?;
    for row in 0..colocations.rows.len() {
        snapshot.placement_epochs.insert(number(&colocations, row, 0), number(&colocations, row, 1));
    }
    Ok(())
}

const TABLES: &str = "
SELECT p.logicalrelid::oid, n.nspname, c.relname, p.partmethod, p.partkey, p.colocationid,
       c.relrowsecurity,
       EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard'),
       EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND t.tgtype & 1 = 0)
         OR c.relkind = 'p'
         OR EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class k ON k.oid = i.inhrelid
                    JOIN pg_catalog.pg_namespace kn ON kn.oid = k.relnamespace
                    WHERE i.inhparent = c.oid AND kn.nspname <> 'pgherd')
         OR EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid),
       (SELECT pg_catalog.getdatabaseencoding()),
       c.oid IN (SELECT x.relation
                 FROM (SELECT 'pg_catalog.pg_constraint'::pg_catalog.regclass, k.oid, k.conrelid
                       FROM pg_catalog.pg_constraint k
                       UNION ALL
                       SELECT 'pg_catalog.pg_attrdef'::pg_catalog.regclass, f.oid, f.adrelid
                       FROM pg_catalog.pg_attrdef f
                       UNION ALL
                       SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, i.indexrelid, i.indrelid
                       FROM pg_catalog.pg_index i) x (class, oid, relation)
                 JOIN pg_catalog.pg_depend d ON d.classid = x.class AND d.objid = x.oid
                 WHERE d.refobjid >= 16384
                   AND d.refclassid IN ('pg_catalog.pg_proc'::pg_catalog.regclass,
                                        'pg_catalog.pg_operator'::pg_catalog.regclass)),
       EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND t.tginitdeferred),
       EXISTS (SELECT FROM pg_catalog.pg_constraint k WHERE k.confrelid = c.oid AND k.contype = 'f'),
       EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = c.oid), c.relkind = 'p',
       CASE WHEN c.relispartition THEN (SELECT i.inhparent::oid FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) END,
       c.relowner::oid,
       EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
       EXISTS (SELECT FROM pgherd.fires_here h WHERE h.relation = c.oid),
       (SELECT pg_catalog.string_agg(DISTINCT x.number::pg_catalog.text, ',')
        FROM pgherd.local_keys k, pg_catalog.unnest(k.confkey) x(number) WHERE k.confrelid = c.oid)
FROM pgherd.pg_dist_partition p
JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY 1";

// pg_get_expr without the table takes no lock on it (defaults name no columns): a definition in an open block holds up
// nobody who loads the catalog.
const COLUMNS: &str = "
SELECT a.attrelid::oid, a.attnum, a.attname, a.atttypid::oid, a.atttypmod,
       pg_catalog.format_type(a.atttypid, a.atttypmod),
       pg_catalog.format_type(CASE WHEN t.typtype = 'd' THEN pgherd.base_type(t.oid) ELSE t.oid END, -1),
       a.attcollation::oid, a.attnotnull, a.attidentity, a.attgenerated,
       CASE WHEN a.attgenerated = '' THEN
         coalesce(pg_catalog.pg_get_expr(d.adbin, 0), pg_catalog.pg_get_expr(t.typdefaultbin, 0)) END,
       CASE WHEN d.oid IS NULL AND t.typdefaultbin IS NOT NULL THEN
         -- A domain's: what it is made of is not looked into.
         pg_catalog.pg_get_expr(t.typdefaultbin, 0) ~ E'\\\\m(nextval|currval|lastval|setval|pg_backend_pid)\\\\M'
         OR EXISTS (SELECT FROM pg_catalog.pg_depend s
                    WHERE s.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND s.objid = t.oid
                      AND s.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND s.refobjid >= 16384)
       ELSE d.oid IS NOT NULL AND (
         EXISTS (SELECT FROM pg_catalog.pg_depend s JOIN pg_catalog.pg_class q ON q.oid = s.refobjid AND q.relkind = 'S'
                 WHERE s.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND s.objid = d.oid
                   AND s.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass)
         OR coalesce(pgherd.default_on_coordinator(d.oid,
             CASE WHEN a.attgenerated = '' THEN pg_catalog.pg_get_expr(d.adbin, 0) END), false)) END,
       CASE WHEN a.attidentity <> '' THEN coalesce(
         pg_catalog.pg_get_serial_sequence(pg_catalog.format('%I.%I', n.nspname, c.relname), a.attname),
         (SELECT pg_catalog.pg_get_serial_sequence(pg_catalog.format('%I.%I', rn.nspname, r.relname), a.attname)
          FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace
          WHERE r.oid = pg_catalog.pg_partition_root(c.oid) AND r.oid <> c.oid)) END,
       coalesce(o.collisdeterministic, true), t.oid >= 16384
FROM pgherd.pg_dist_partition p
JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_catalog.pg_collation o ON o.oid = a.attcollation
ORDER BY 1, 2";

const SHARDS: &str = "
SELECT s.logicalrelid::oid, s.shardid, s.remainder, l.groupid
FROM pgherd.pg_dist_shard s JOIN pgherd.pg_dist_placement l USING (shardid)
ORDER BY 1, 3, 4";

const UNIQUE_KEYS: &str = "
SELECT i.indrelid::oid, pg_catalog.array_to_string(ARRAY(
         SELECT a.attname FROM pg_catalog.unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(num, pos)
         JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.pos), E'\\x01')
FROM pgherd.pg_dist_partition p JOIN pg_catalog.pg_index i ON i.indrelid = p.logicalrelid::oid
WHERE i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL
ORDER BY i.indexrelid";

/// What a write to the second table may do to the first without naming it.
const CASCADES: &str = "
SELECT DISTINCT k.conrelid::oid, k.confrelid::oid
FROM pg_catalog.pg_constraint k JOIN pgherd.pg_dist_partition p ON p.logicalrelid = k.conrelid
WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))";

async fn load_tables<S: Source>(connection: &mut S, snapshot: &mut Snapshot) -> std::result::Result<(), S::Error> {
    let tables = connection.query(TABLES).await?;
    if tables.rows.is_empty() {
        return Ok(());
    }
    let columns = connection.query(COLUMNS).await?;
    let shards = connection.query(SHARDS).await?;
    let keys = connection.query(UNIQUE_KEYS).await?;
    let cascades = connection.query(CASCADES).await?;
    let mut columns_of: HashMap<Oid, Vec<(Column, bool, bool)>> = HashMap::new();
    for row in 0..columns.rows.len() {
        let column = column(&columns, row);
        let (deterministic, user_type) = (truth(&columns, row, 14), truth(&columns, row, 15));
        columns_of.entry(number(&columns, row, 0)).or_default().push((column, deterministic, user_type));
    }
    let mut shards_of: HashMap<Oid, Vec<Shard>> = HashMap::new();
    for row in 0..shards.rows.len() {
        let list = shards_of.entry(number(&shards, row, 0)).or_default();
        let shard =
            Shard { id: number(&shards, row, 1), remainder: number(&shards, row, 2), group: number(&shards, row, 3) };
        // A reference table's one shard has a placement on every node; the first says its id.
        if list.last().is_none_or(|last| last.id != shard.id) {
            list.push(shard);
        }
    }
    let mut keys_of: HashMap<Oid, Vec<Vec<String>>> = HashMap::new();
    for row in 0..keys.rows.len() {
        let names = string(&keys, row, 1).split('\u{1}').map(str::to_owned).collect();
        keys_of.entry(number(&keys, row, 0)).or_default().push(names);
    }
    // Triggers, functions, defaults and deferred constraints of a table are also run by writes to those it follows.
    let mut hidden: HashSet<Oid> = HashSet::new();
    for row in 0..tables.rows.len() {
        let oid = number(&tables, row, 0);
        let defaults = columns_of.get(&oid).into_iter().flatten();
        let computed = |default: &ColumnDefault| {
            !matches!(default, ColumnDefault::None | ColumnDefault::Expression { immutable: true, .. })
        };
        if [6, 7, 10, 11].into_iter().any(|flag| truth(&tables, row, flag))
            || defaults.into_iter().any(|(column, _, _)| computed(&column.default))
        {
            hidden.insert(oid);
        }
    }
    let follows: Vec<(Oid, Oid)> =
        (0..cascades.rows.len()).map(|row| (number(&cascades, row, 0), number(&cascades, row, 1))).collect();
    let mut followed: HashSet<Oid> = HashSet::new();
    loop {
        let before = followed.len();
        let of = |table: &Oid| hidden.contains(table) || followed.contains(table);
        let more: Vec<Oid> = follows.iter().filter(|(table, _)| of(table)).map(|(_, parent)| *parent).collect();
        followed.extend(more);
        if followed.len() == before {
            break;
        }
    }
    for row in 0..tables.rows.len() {
        let oid: Oid = number(&tables, row, 0);
        let described = columns_of.remove(&oid).unwrap_or_default();
        let encoding = string(&tables, row, 9);
        let list = shards_of.remove(&oid).unwrap_or_default();
        let kind = if tables.text(row, 3) == Some("h") {
            let key_name = string(&tables, row, 4);
            let Some(key) = described.iter().position(|(c, _, _)| c.name == key_name) else { continue };
            let (column, deterministic, _) = &described[key];
            let key_type = KeyType::of(column.type_oid, column.collation, *deterministic, &encoding);
            TableKind::Distributed { key, key_type, shards: list }
        } else {
            TableKind::Reference { shard: list.first().map_or(0, |s| s.id) }
        };
        snapshot.owners.insert(oid, number(&tables, row, 16));
        let has_user_types = described.iter().any(|(_, _, user)| *user);
        let columns: Vec<Column> = described.into_iter().map(|(column, _, _)| column).collect();
        let local_keys: Vec<i16> =
            tables.text(row, 19).unwrap_or_default().split(',').filter_map(|number| number.parse().ok()).collect();
        let local_keys = columns.iter().filter(|column| local_keys.contains(&column.attnum));
        snapshot.insert_table(Table {
            oid,
            schema: string(&tables, row, 1),
            name: string(&tables, row, 2),
            kind,
            colocation: number(&tables, row, 5),
            has_user_types,
            local_keys: local_keys.map(|column| column.name.clone()).collect(),
            columns,
            row_security: truth(&tables, row, 6),
            has_triggers: truth(&tables, row, 7) && !truth(&tables, row, 18),
            fires_here: truth(&tables, row, 18),
            changed_here: truth(&tables, row, 17) || truth(&tables, row, 18),
            has_hidden_calls: truth(&tables, row, 10) || followed.contains(&oid),
            has_deferred: truth(&tables, row, 11),
            is_referenced: truth(&tables, row, 12),
            is_partitioned: truth(&tables, row, 14) && !truth(&tables, row, 13),
            is_leaf: truth(&tables, row, 13),
            parent: tables.text(row, 15).and_then(|oid| oid.parse().ok()),
            parent_only: truth(&tables, row, 8) || truth(&tables, row, 6),
            unique_keys: keys_of.remove(&oid).unwrap_or_default(),
        });
    }
    Ok(())
}

fn column(result: &QueryResult, row: usize) -> Column {
    let expression = result.text(row, 11).map(str::to_owned);
    let default = if result.text(row, 10).is_some_and(|g| !g.is_empty()) {
        ColumnDefault::Generated
    } else if let Some(identity) = result.text(row, 9).filter(|i| !i.is_empty()) {
        ColumnDefault::Identity { always: identity == "a", sequence: string(result, row, 13) }
    } else {
        match expression {
            None => ColumnDefault::None,
            Some(sql) if truth(result, row, 12) => ColumnDefault::Sequence { sql },
            Some(sql) => {
                let immutable = is_literal(&sql);
                ColumnDefault::Expression { sql, immutable }
            }
        }
    };
    Column {
        attnum: number(result, row, 1),
        name: string(result, row, 2),
        type_oid: number(result, row, 3),
        typmod: number(result, row, 4),
        type_name: string(result, row, 5),
        base_type_name: string(result, row, 6),
        collation: number(result, row, 7),
        not_null: truth(result, row, 8),
        default,
    }
}

/// A default that is a plain literal with casts, as PostgreSQL prints it: the same value whoever evaluates it.
fn is_literal(sql: &str) -> bool {
    let first = sql.bytes().next().unwrap_or(b' ');
    let plain = first == b'\'' || first.is_ascii_digit() || first == b'-' || matches!(sql, "true" | "false");
    // A string cast to a date or time may mean 'now'; those are printed folded, but text casts are not evaluated.
    plain && !sql.contains('(') && !sql.contains("::date") && !sql.contains("::time")
}

async fn load_relations<S: Source>(connection: &mut S, snapshot: &mut Snapshot) -> std::result::Result<(), S::Error> {
    let here = snapshot.by_oid.values().filter(|t| t.changed_here && !t.is_reference());
    let mut here: Vec<String> = here.map(|t| t.oid.to_string()).collect();
    if !here.is_empty() {
        here.sort_unstable();
        snapshot.changed_here = format!(",{},", here.join(","));
    }
    if snapshot.by_oid.values().any(|t| t.is_leaf) {
        snapshot.class_columns = string(&connection.query("SELECT pgherd.class_columns()").await?, 0, 0);
    }
    let relations = connection
        .query(
            "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pgherd.pg_dist_partition p ON p.logicalrelid = c.oid \
             WHERE c.relkind IN ('r','v','m','f','p','S') AND p.logicalrelid IS NULL AND c.oid >= 16384 \
               AND n.nspname <> 'pgherd' AND n.nspname !~ '^pg_toast|^pg_temp'",
        )
        .await?;
    for row in 0..relations.rows.len() {
        snapshot.other_relations.insert((string(&relations, row, 0), string(&relations, row, 1)));
    }
    let keys = connection
        .query(
            "SELECT confrelid, conrelid, confdeltype IN ('c', 'n', 'd'), confupdtype IN ('c', 'n', 'd'), \
               (SELECT pg_catalog.string_agg(a.attname, pg_catalog.chr(1)) FROM pg_catalog.pg_attribute a \
                WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)), \
               (SELECT pg_catalog.string_agg(a.attname, pg_catalog.chr(1)) FROM pg_catalog.pg_attribute a \
                WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)) \
             FROM pg_catalog.pg_constraint k WHERE contype = 'f'",
        )
        .await?;
    for row in 0..keys.rows.len() {
        let oid = |column| keys.text(row, column).and_then(|text| text.parse().ok()).unwrap_or_default();
        let cascade = Cascade { to: oid(1), on_delete: truth(&keys, row, 2), on_update: truth(&keys, row, 3) };
        let is_distributed = |oid| snapshot.by_oid.get(&oid).is_some_and(|table| !table.is_reference());
        if is_distributed(oid(0)) && is_distributed(oid(1)) {
            for (table, column) in [(oid(0), 4), (oid(1), 5)] {
                let columns = string(&keys, row, column);
                snapshot.key_columns.entry(table).or_default().extend(columns.split('\u{1}').map(str::to_owned));
            }
        }
        if cascade.on_delete || cascade.on_update {
            snapshot.cascades.entry(oid(0)).or_default().push(cascade);
        }
    }
    Ok(())
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
}
