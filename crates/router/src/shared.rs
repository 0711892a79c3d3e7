//! What the threads of one router share ([`Shared`]) and what each has for itself ([`Thread`]).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use pgherd_backend::{Address, Budget, Credentials, Pool, PoolLimits, Target, connections_of};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Node, Snapshot, SnapshotId};
use pgherd_wire::scram::ScramKeys;
use tokio::sync::Semaphore;

use crate::callers::Callers;
use crate::cancel::CancelState;
use crate::client::Link;
use crate::conversions::Conversions;
use crate::database::Database;
use crate::deadlock::RecentWaits;
use crate::describe::{Described, StatementCache};
use crate::error::{Failure, Result};
use crate::finish;
use crate::listen::ServeConfig;
use crate::login::{Greeting, Login};
use crate::placement::Placement;
use crate::run::{OwnType, TableOrigin, Turns};
use crate::session::LaneContext;

/// A session's cancel key and what it interrupts.
type Cancellable = (Vec<u8>, Arc<CancelState>);
/// Schemas in the order they are searched, at a catalog generation.
/// Numbers of sessions begin where those of servers' processes have ended.
const SESSIONS_FROM: i32 = 1 << 30;

type SearchPath = (u64, Rc<Vec<String>>);
/// An object of a database on one server: the database, the server's group, its number there.
type OnServer = (String, GroupId, u32);
/// What is known under a catalog.
type UnderCatalog<T> = (SnapshotId, Rc<T>);
/// A client, and what is done for it.
type Served = (Weak<Link>, Arc<CancelState>);
/// Types of a list of columns by (oid, modifier).
type ColumnTypes = Vec<(u32, i32)>;

pub struct Shared {
    pub config: ServeConfig,
    /// One entry per database that a client asked for, loaded on first use.
    pub databases: tokio::sync::Mutex<HashMap<String, Arc<Database>>>,
    cancels: RwLock<HashMap<i32, Cancellable>>,
    /// Who waits for whom, for those who ask.
    pub waits: RecentWaits,
    /// Snapshots that sessions have exported, by the coordinator's name for them.
    exported: Mutex<HashMap<String, Arc<BTreeMap<GroupId, String>>>>,
    pub(crate) callers: Callers,
    /// Clients that are connected, and how many of them are sessions of each role.
    clients: AtomicUsize,
    roles: Mutex<HashMap<String, Arc<AtomicUsize>>>,
    /// Of each role, by the password with which somebody has last logged in, or that it was last given: sessions that
    /// began with another one go on with these.
    keys: Mutex<HashMap<String, Credentials>>,
    /// Which session each of the coordinator's processes has served last: who sends a notification.
    served: Mutex<HashMap<i32, i32>>,
    next_pid: AtomicI32,
    attempts: Mutex<HashMap<Address, Arc<Semaphore>>>,
    /// Grows when defaults of roles or databases change: connections made before are not reused.
    generation: AtomicU64,
    /// Where the coordinator's callbacks connect to.
    callback_address: RwLock<Option<(String, u16)>>,
    pub conversions: Conversions,
    pub turns: Turns,
    /// How many connections servers take from us, whichever thread has them.
    pub budget: Arc<Budget>,
    /// Of this machine.
    pub cores: usize,
    /// What other routers know this one by.
    pub number: u64,
    /// Secret of this process, for the SCRAM exchange with users that do not exist.
    pub mock_secret: [u8; 32],
}

/// Snapshots that a transaction has exported; they end with it.
pub struct Exported {
    shared: Arc<Shared>,
    id: String,
}

impl Exported {
    pub fn new(shared: Arc<Shared>, id: &str, ids: BTreeMap<GroupId, String>) -> Exported {
        shared.exported.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), Arc::new(ids));
        Exported { shared, id: id.to_owned() }
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        self.shared.exported.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Shared {
    pub fn new(config: ServeConfig) -> std::result::Result<Self, getrandom::Error> {
        let mut mock_secret = [0; 32];
        getrandom::fill(&mut mock_secret)?;
        let mut number = [0; 8];
        getrandom::fill(&mut number)?;
        Ok(Shared {
            databases: tokio::sync::Mutex::default(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cancels: RwLock::default(),
            waits: RecentWaits::default(),
            number: u64::from_ne_bytes(number),
            exported: Mutex::default(),
            callers: Callers::default(),
            clients: AtomicUsize::new(0),
            roles: Mutex::default(),
            keys: Mutex::default(),
            served: Mutex::default(),
            next_pid: AtomicI32::new(1),
            attempts: Mutex::default(),
            generation: AtomicU64::new(0),
            callback_address: RwLock::default(),
            conversions: Conversions::default(),
            turns: Turns::default(),
            budget: Arc::new(Budget::new(config.connections)),
            config,
            mock_secret,
        })
    }

    pub fn remember_keys(&self, user: &str, keys: &ScramKeys) {
        let keys = Credentials::ScramKeys { client_key: keys.client_key, server_key: keys.server_key };
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned(), keys);
    }

    pub fn newest_keys(&self, user: &str) -> Option<Credentials> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).get(user).cloned()
    }

    /// A process of the coordinator serves a session from now on.
    pub fn serves(&self, process: i32, session: i32) {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).insert(process, session);
    }

    pub fn served_by(&self, process: i32) -> Option<i32> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).get(&process).copied()
    }

    /// A process id for a new session, unique in this router.
    pub fn new_pid(&self) -> i32 {
        let cancels = self.cancels.read().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Wraps after a thousand million sessions, when old ones may still have theirs.
            let pid = SESSIONS_FROM | self.next_pid.fetch_add(1, Ordering::Relaxed) & (SESSIONS_FROM - 1);
            if !cancels.contains_key(&pid) {
                return pid;
            }
        }
    }

    pub fn register_cancel(&self, pid: i32, key: Vec<u8>, state: Arc<CancelState>) {
        self.cancels.write().unwrap_or_else(PoisonError::into_inner).insert(pid, (key, state));
    }

    pub fn unregister_cancel(&self, pid: i32) {
        self.cancels.write().unwrap_or_else(PoisonError::into_inner).remove(&pid);
    }

    pub fn find_cancel(&self, pid: i32, key: &[u8]) -> Option<Arc<CancelState>> {
        let cancels = self.cancels.read().unwrap_or_else(PoisonError::into_inner);
        cancels.get(&pid).filter(|(k, _)| k == key).map(|(_, state)| state.clone())
    }

    /// Every session with what it uses right now.
    pub fn cancel_states(&self) -> Vec<(i32, Arc<CancelState>)> {
        let cancels = self.cancels.read().unwrap_or_else(PoisonError::into_inner);
        cancels.iter().map(|(pid, (_, state))| (*pid, state.clone())).collect()
    }

    pub fn cancel_state(&self, pid: i32) -> Option<Arc<CancelState>> {
        let cancels = self.cancels.read().unwrap_or_else(PoisonError::into_inner);
        cancels.get(&pid).map(|(_, state)| state.clone())
    }

    /// Each server's name for a snapshot that some session has exported.
    pub fn exported(&self, id: &str) -> Option<Arc<BTreeMap<GroupId, String>>> {
        self.exported.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub fn set_callback_address(&self, address: (String, u16)) {
        *self.callback_address.write().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    pub fn callback_address(&self) -> Option<(String, u16)> {
        self.callback_address.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Makes every thread forget its idle connections before it leases again.
    pub fn forget_connections(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The router's own account on the coordinator.
    pub fn own_target(&self, database: &str) -> Target {
        let url = &self.config.coordinator;
        Target {
            address: Address { host: url.host.clone(), port: url.port },
            user: url.user.clone(),
            database: database.to_owned(),
            credentials: url.credentials(),
            // Whatever the database or the role has by default. Who owns a database chooses the path there.
            parameters: [
                ("application_name", "pgherd router"),
                ("search_path", "pg_catalog, pg_temp"),
                ("default_transaction_isolation", "read committed"),
                ("default_transaction_read_only", "off"),
                ("statement_timeout", "0"),
                ("lock_timeout", "0"),
                ("idle_session_timeout", "0"),
                ("idle_in_transaction_session_timeout", "0"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
            label: None,
        }
    }

    /// Asks servers that have not been asked how many connections they take. One that does not answer is asked when the
    /// catalog is next loaded.
    pub async fn learn_servers(&self, snapshot: &Snapshot) {
        let coordinator = self.own_target(&self.config.coordinator.dbname).address;
        let mut unknown = vec![coordinator.clone()];
        for node in snapshot.nodes.iter().filter(|node| node.group != COORDINATOR_GROUP && node.is_active) {
            let address = self.address_of(node);
            if address != coordinator {
                unknown.push(address);
            }
        }
        for address in unknown {
            if self.budget.is_known(&address) {
                continue;
            }
            match self.ask_connections(&address).await {
                Ok(connections) => {
                    tracing::debug!("{address} takes {connections} connections");
                    self.budget.learn(&address, connections);
                }
                Err(error) => tracing::debug!("could not ask {address} how many connections it takes: {error}"),
            }
        }
    }

    pub fn address_of(&self, node: &Node) -> Address {
        Address { host: node.host.clone(), port: node.port }
    }

    async fn ask_connections(&self, address: &Address) -> std::result::Result<usize, pgherd_backend::BackendError> {
        let mut connection = pgherd_backend::connect(&self.own_target_at(address)).await?;
        // reserved_connections came with PostgreSQL 16.
        let asked = connection
            .query(
                "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'max_connections' UNION ALL \
                 SELECT sum(setting::int)::text FROM pg_catalog.pg_settings \
                 WHERE name IN ('superuser_reserved_connections', 'reserved_connections')",
            )
            .await?;
        connection.close().await;
        let number = |row| asked.text(row, 0).and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(connections_of(number(0), number(1)))
    }

    /// The router's own account on whatever server listens there.
    pub fn own_target_at(&self, address: &Address) -> Target {
        let own = self.own_target(&self.config.coordinator.dbname);
        let credentials = match &self.config.worker_password {
            Some(password) if *address != own.address => Credentials::Password(password.clone()),
            _ => own.credentials.clone(),
        };
        Target { address: address.clone(), credentials, ..own }
    }

    /// The router's own account on the server of a group.
    pub fn own_target_in(&self, snapshot: &Snapshot, group: GroupId, database: &str) -> Target {
        match snapshot.node_of_group(group) {
            Some(node) if group != COORDINATOR_GROUP => self.own_target_on(node, database),
            _ => self.own_target(database),
        }
    }

    /// Turns at asking a server how transactions have ended.
    pub fn attempts_at(&self, address: &Address) -> Arc<Semaphore> {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Semaphore::new(finish::ATTEMPTS_MAX));
        attempts.entry(address.clone()).or_insert_with(made).clone()
    }

    /// The router's own account on a worker.
    pub fn own_target_on(&self, node: &Node, database: &str) -> Target {
        let credentials = match &self.config.worker_password {
            Some(password) => Credentials::Password(password.clone()),
            None => self.config.coordinator.credentials(),
        };
        Target {
            address: Address { host: node.host.clone(), port: node.port },
            credentials,
            ..self.own_target(database)
        }
    }
}

/// A client's place among those that `--max-clients` allows, given back when it is dropped.
pub struct Seat {
    shared: Arc<Shared>,
    role: Option<Arc<AtomicUsize>>,
}

impl Seat {
    pub fn take(shared: &Arc<Shared>) -> Result<Seat> {
        let seat = Seat { shared: shared.clone(), role: None };
        if shared.clients.fetch_add(1, Ordering::AcqRel) >= shared.config.max_clients {
            return Err(Failure::fatal("53300", "sorry, too many clients already"));
        }
        Ok(seat)
    }

    /// The client is one of this role's. How many there are, with it.
    pub fn of_role(&mut self, user: &str) -> usize {
        let mut roles = self.shared.roles.lock().unwrap_or_else(PoisonError::into_inner);
        let role = match roles.get(user) {
            Some(role) => role.clone(),
            None => roles.entry(user.to_owned()).or_default().clone(),
        };
        drop(roles);
        let count = role.fetch_add(1, Ordering::AcqRel) + 1;
        self.role = Some(role);
        count
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.clients.fetch_sub(1, Ordering::AcqRel);
        if let Some(role) = &self.role {
            role.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// One thread's own things; nothing in here is ever seen by another thread.
pub struct Thread {
    pub shared: Arc<Shared>,
    pool: Pool,
    pool_generation: RefCell<u64>,
    pub statements: RefCell<StatementCache>,
    pub logins: RefCell<Vec<Rc<Login>>>,
    pub greetings: RefCell<Vec<Rc<Greeting>>>,
    /// Effective search path by (database, user, setting), as the coordinator resolved it, at a catalog generation.
    pub search_paths: RefCell<HashMap<(String, String, String), SearchPath>>,
    /// Merge statements that the coordinator has described: their numbers on its connections.
    pub merges: RefCell<StatementCache<(u64, Rc<Described>)>>,
    /// Collations of the columns that statements give, where they are not those of their types.
    pub collations: RefCell<StatementCache<Rc<[Option<String>]>>>,
    /// Names of built-in types by (oid, modifier), per list of columns.
    pub type_names: RefCell<HashMap<ColumnTypes, Vec<String>>>,
    /// The coordinator's numbers of workers' types, by (database, group, oid there), under a catalog.
    pub type_oids: RefCell<HashMap<OnServer, (SnapshotId, u32)>>,
    /// Users' types by (database, the coordinator's number), under a catalog.
    pub own_types: RefCell<HashMap<(String, u32), UnderCatalog<OwnType>>>,
    /// Lanes, by those who share them.
    pub contexts: RefCell<Vec<Rc<LaneContext>>>,
    /// Memory for looking at texts.
    pub lifter: RefCell<pgherd_sql::Lifter>,
    pub values: RefCell<Vec<u8>>,
    /// Which of the router's threads it is.
    pub index: usize,
    pub placement: Arc<Placement>,
    /// The clients of this thread's sessions, by session.
    links: RefCell<HashMap<i32, Served>>,
    stopping: Cell<bool>,
    /// Rows of distributed tables.
    pub sizes: RefCell<crate::sizes::Known>,
    /// What SHOW has said after SET, by role, name and value: of settings that the coordinator takes without a word.
    pub values_set: RefCell<HashMap<(String, String, String), String>>,
    /// What workers' tables are to the coordinator, likewise.
    pub table_oids: RefCell<HashMap<OnServer, Rc<TableOrigin>>>,
}

impl Thread {
    pub fn new(shared: Arc<Shared>, index: usize, placement: Arc<Placement>) -> Self {
        let generation = shared.generation();
        Thread {
            index,
            placement,
            pool: Pool::new(PoolLimits::default(), shared.budget.clone()),
            shared,
            pool_generation: RefCell::new(generation),
            statements: RefCell::default(),
            logins: RefCell::default(),
            greetings: RefCell::default(),
            search_paths: RefCell::default(),
            merges: RefCell::default(),
            collations: RefCell::default(),
            type_names: RefCell::default(),
            type_oids: RefCell::default(),
            own_types: RefCell::default(),
            contexts: RefCell::default(),
            lifter: RefCell::default(),
            values: RefCell::default(),
            links: RefCell::default(),
            stopping: Cell::new(false),
            sizes: RefCell::default(),
            values_set: RefCell::default(),
            table_oids: RefCell::default(),
        }
    }

    pub fn add_link(&self, pid: i32, link: &Rc<Link>, cancel: &Arc<CancelState>) {
        self.links.borrow_mut().insert(pid, (Rc::downgrade(link), cancel.clone()));
    }

    /// The clients for whom something is under way.
    pub fn busy_links(&self) -> Vec<(Rc<Link>, Arc<CancelState>)> {
        let links = self.links.borrow();
        let busy = links.values().filter(|(_, cancel)| cancel.is_busy());
        busy.filter_map(|(link, cancel)| Some((link.upgrade()?, cancel.clone()))).collect()
    }

    pub fn remove_link(&self, pid: i32) {
        self.links.borrow_mut().remove(&pid);
    }

    /// Sessions end at their next idle moment.
    pub fn stop(&self) {
        self.stopping.set(true);
        for link in self.links.borrow().values().filter_map(|(link, _)| link.upgrade()) {
            link.wake();
        }
    }

    /// Closes what nobody has used for a while.
    pub fn tend(&self) {
        self.pool().close_old();
        LaneContext::tend(&mut self.contexts.borrow_mut(), self.shared.generation());
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    pub fn pool(&self) -> &Pool {
        let generation = self.shared.generation();
        let mut seen = self.pool_generation.borrow_mut();
        if *seen != generation {
            *seen = generation;
            self.pool.forget_all();
        }
        &self.pool
    }
}
