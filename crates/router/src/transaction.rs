//! The transaction a session is in: which servers take part, what a server that joins later must be told first, and how
//! it ends. One packet per server: settings, BEGIN, savepoints and the fence travel with the statement.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pgherd_backend::lane::{LaneStatement, statement_name};
use pgherd_backend::{BackendError, BlockPlace, Claim, Connection, Credentials, Lease, QueryResult};
use pgherd_catalog::{COORDINATOR_GROUP, ColocationId, GroupId, Snapshot};
use pgherd_txn::{Action, Commit, Event, Gid, Outcome, Protocol};
use pgherd_wire::frontend;

use crate::encoding::Moment;
use crate::error::{Failure, Result};
use crate::finish::{Awaited, Part, Process, Unfinished};
use crate::procedures::OwnTransactions;
use crate::rights::{NO_PASS, commit_pass};
use crate::run::{Anchor, Errors, RolesMade, Rows, keeps_snapshot};
use crate::session::{Session, next_id};
use crate::settings::{self, Settings};
use crate::shared::Exported;

/// What kind of transaction block is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Block {
    /// None: each statement is a transaction of its own on one server.
    None,
    /// Ours: around one statement on several servers, several statements of one Query, or a pipeline up to Sync.
    Implicit,
    /// The client's BEGIN.
    Explicit,
    /// The client's, after an error: only its end is accepted.
    Failed,
}

/// What every server that takes part must be told in this order, before its first statement.
#[derive(Debug, Clone)]
pub enum LogItem {
    Savepoint {
        name: String,
        settings: Settings,
        /// The transaction's own catalog then.
        catalog: Option<Arc<Snapshot>>,
        encoding: Moment,
        /// Cursors on workers that were opened later have higher numbers.
        cursors: u64,
    },
    /// SET (false) or SET LOCAL (true) of a setting.
    Set { name: String, value: String, local: bool },
    /// SET TRANSACTION and its like: what AND CHAIN keeps.
    Modes(String),
    /// SET TRANSACTION SNAPSHOT of one that a session of this router has exported: each server's own.
    Snapshots(Arc<BTreeMap<GroupId, String>>),
    /// Anything else that is the same everywhere (SET CONSTRAINTS, RESET ALL).
    Raw(String),
    /// The moment of a DECLARE, kept on some workers. In the log since savepoints take it back; a server that joins
    /// later has nothing of it.
    Anchor(Anchor),
}

/// How AND CHAIN begins: BEGIN, and the SET TRANSACTION of other modes.
pub type Chained = (String, Vec<String>);

pub struct Participant {
    pub lease: Lease,
    /// How much of the log it has been told.
    told: usize,
    /// It may have written in this transaction.
    pub wrote: bool,
    /// It is inside a transaction block (the coordinator may run single statements outside one).
    pub in_block: bool,
    /// Colocation groups whose fence was taken.
    fenced: HashSet<ColocationId>,
    /// It was asked for its snapshot, and for nothing since.
    pub only_snapshot: bool,
    /// It was asked what time it is, and for nothing else.
    only_clock: bool,
    /// It holds a lock for others to wait for, or has something to tell them: not before the writers have committed.
    pub ends_last: bool,
    /// NOTIFY.
    pub announces: bool,
}

/// What definitions are about, as far as others' changes of what is distributed matter to them (`pgherd.bump_epoch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// What was not there before, and is not distributed.
    New,
    Local,
    Shared,
}

impl Reach {
    pub fn name(self) -> &'static str {
        match self {
            Reach::New => "new",
            Reach::Local => "local",
            Reach::Shared => "shared",
        }
    }
}

pub struct Transaction {
    pub block: Block,
    /// `BEGIN …` as the client wrote its options.
    pub begin: String,
    /// What AND CHAIN gave it.
    pub inherited: Option<Chained>,
    pub log: Vec<LogItem>,
    pub participants: BTreeMap<GroupId, Participant>,
    /// Participants that were taken out and are not back: read right now, or lost with what they had done. With how
    /// much of the log they have been told, which gets shorter meanwhile where the coordinator ends subtransactions.
    out: BTreeMap<GroupId, usize>,
    /// The session's settings when the block began: a rollback puts them back.
    pub settings_before: Option<Settings>,
    /// Settings that bodies may have changed: what they are is asked for when the block is over.
    pub body_settings: BTreeSet<String>,
    /// After DDL inside the block: the catalog as this transaction sees it.
    pub catalog: Option<Arc<Snapshot>>,
    /// It lacks definitions of local tables, which are read before the next statement that may need them.
    pub catalog_lags: bool,
    /// Temporary relations that it has dropped: a rollback brings them back.
    dropped_temporary: HashSet<String>,
    /// Schema or metadata changed: the shared catalog is loaded again after commit.
    pub changed_catalog: bool,
    /// Of the definitions that have changed it.
    pub reach: Reach,
    /// The epoch that its commit brings.
    pub epoch: Option<i64>,
    /// Defaults of roles, databases or the system changed: idle connections are not reused after commit.
    pub changed_defaults: bool,
    /// Roles that have followed those of the coordinator to workers, and may be gone again.
    pub roles_made: RolesMade,
    /// The server whose now() is the transaction's, as long as no other has been asked for it.
    pub clock: Option<GroupId>,
    /// A value for now() and its like, once statements on several servers need one.
    pub now: Option<String>,
    /// COMMIT has begun: workers may be prepared already, and what the coordinator's foreign tables tidy up is no
    /// longer done there.
    pub ending: bool,
    /// A cursor WITH HOLD was declared, which reads at COMMIT.
    pub holds: bool,
    /// COMMIT has begun, and who takes part is settled: what the coordinator would write elsewhere is too late.
    pub settled: bool,
    /// COMMIT is on its way: what becomes of it is waited for, whoever else has gone.
    pub committing: bool,
    /// LISTEN, or UNLISTEN.
    pub listens: bool,
    /// Whether the level that was named for this transaction keeps a snapshot; none: the session's default has.
    pub keeps_snapshot: Option<bool>,
    /// All servers have been asked for their snapshots, where the transaction keeps them.
    pub has_snapshots: bool,
    /// Servers that were asked for their snapshots and have not answered yet; whether they take part for that alone.
    pub snapshots_asked: Vec<(GroupId, bool)>,
    /// Snapshots that it has exported.
    pub exported: Vec<Exported>,
    /// What the coordinator runs ends transactions itself.
    pub own: Option<OwnTransactions>,
    /// Statements of it have ridden on lanes: it has begun, though no server knows.
    pub read_aside: bool,
    /// Its place among the transactions that may hold leases to several servers.
    place: Option<BlockPlace>,
}

impl Transaction {
    /// Its commit changes the catalog, which others hear of.
    pub fn changes_catalog(&mut self, reach: Reach) {
        self.changed_catalog = true;
        self.reach = self.reach.max(reach);
    }

    pub fn new() -> Self {
        Transaction {
            block: Block::None,
            begin: String::new(),
            inherited: None,
            log: Vec::new(),
            participants: BTreeMap::new(),
            out: BTreeMap::new(),
            settings_before: None,
            body_settings: BTreeSet::new(),
            catalog: None,
            dropped_temporary: HashSet::new(),
            changed_catalog: false,
            reach: Reach::New,
            catalog_lags: false,
            epoch: None,
            changed_defaults: false,
            roles_made: RolesMade::new(),
            clock: None,
            now: None,
            holds: false,
            read_aside: false,
            ending: false,
            settled: false,
            committing: false,
            listens: false,
            keeps_snapshot: None,
            has_snapshots: false,
            snapshots_asked: Vec::new(),
            exported: Vec::new(),
            own: None,
            place: None,
        }
    }

    /// The BEGIN of the transaction that AND CHAIN starts, and what SET TRANSACTION has changed of it. What is not
    /// committed puts back what subtransactions have set, and an error without any all but what was inherited.
    pub fn chained(&self, commits: bool) -> Chained {
        let clients = |item: &LogItem| matches!(item, LogItem::Savepoint { .. }) && !item.is_ours();
        let kept = match self.log.iter().position(clients) {
            Some(savepoint) if !commits => savepoint,
            None if self.block == Block::Failed => {
                return self.inherited.clone().unwrap_or_else(|| ("BEGIN".to_owned(), Vec::new()));
            }
            _ => self.log.len(),
        };
        let modes = self.log[..kept].iter().filter_map(|item| match item {
            LogItem::Modes(sql) => Some(sql.clone()),
            _ => None,
        });
        (self.begin.clone(), modes.collect())
    }

    /// The status byte of ReadyForQuery.
    pub fn status(&self) -> u8 {
        match self.block {
            Block::None | Block::Implicit => b'I',
            Block::Explicit => b'T',
            Block::Failed => b'E',
        }
    }

    /// No server has been asked for anything in it.
    pub fn is_untouched(&self) -> bool {
        self.participants.is_empty() && self.out.is_empty() && self.catalog.is_none()
    }

    /// How much of the log each participant has been told, also of those that are being read.
    fn told_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        self.participants.values_mut().map(|participant| &mut participant.told).chain(self.out.values_mut())
    }
}

/// By what a transaction tells workers which tables it knows to be changed by the coordinator.
pub const KNOWN_CHANGES: &str = "pgherd.changes";

impl Session {
    /// Opens a block of ours if none is open.
    pub fn open_implicit_block(&mut self) {
        if self.txn.block == Block::None {
            self.txn.block = Block::Implicit;
            self.txn.begin = "BEGIN".to_owned();
            self.txn.settings_before = Some(self.settings.clone());
        }
    }

    /// The client's BEGIN; turns a block of ours into the client's.
    pub fn begin(&mut self, sql: &str) {
        if self.txn.block == Block::None {
            self.txn.settings_before = Some(self.settings.clone());
            self.txn.begin = sql.to_owned();
            self.txn.keeps_snapshot = keeps_snapshot(sql);
        }
        self.txn.block = Block::Explicit;
    }

    /// Makes `group` a participant that has been told everything the next statement relies on. Nothing is sent yet.
    pub async fn join(&mut self, group: GroupId) -> Result<()> {
        if group == COORDINATOR_GROUP && self.definitions.is_asked() {
            return Ok(());
        }
        if !self.txn.participants.contains_key(&group) {
            let participant = self.lease(group).await?;
            self.txn.participants.insert(group, participant);
        }
        if self.txn.block == Block::Failed {
            // What a failed transaction has been told is settled; it may be over on that server.
            return Ok(());
        }
        while let Err(failure) = self.bring_up_to_date(group).await {
            if !self.forget_reserved(&failure) {
                return Err(failure);
            }
        }
        let wants_block = self.txn.block != Block::None;
        let catalog = self.catalog();
        let known = Some(&catalog.changed_here).filter(|known| group != COORDINATOR_GROUP && !known.is_empty());
        let known = known.map(|known| format!("SET LOCAL {KNOWN_CHANGES} = '{known}'"));
        let (begin, log) = (&self.txn.begin, &self.txn.log);
        let Some(participant) = self.txn.participants.get_mut(&group) else {
            return Err(Failure::new("XX000", "participant is missing"));
        };
        if wants_block && !participant.in_block {
            participant.lease.add_step(begin.as_str());
            participant.in_block = true;
            if let Some(known) = &known {
                participant.lease.add_step(known.as_str());
            }
        }
        if participant.in_block {
            for item in &log[participant.told.min(log.len())..] {
                if group == COORDINATOR_GROUP && item.is_the_coordinators() {
                    continue;
                }
                if group != COORDINATOR_GROUP && item.is_for_coordinator() {
                    continue;
                }
                if let Some(sql) = item.to_sql(group) {
                    participant.lease.add_step(sql);
                }
                // RESET ALL resets that, too.
                if let (LogItem::Raw(_), Some(known)) = (item, &known) {
                    participant.lease.add_step(known.as_str());
                }
            }
            participant.told = log.len();
        }
        Ok(())
    }

    /// The coordinator's time, as that of the transaction; it has done nothing in it so far.
    pub async fn ask_clock(&mut self) -> Result<QueryResult> {
        self.join(COORDINATOR_GROUP).await?;
        if self.definitions.is_asked() {
            return self.collect_on(COORDINATOR_GROUP, CLOCK).await;
        }
        let kept = CLOCK_KEPT.with(Rc::clone);
        let mut result = self.collect_kept(COORDINATOR_GROUP, &kept).await;
        if let Err(Failure::Statement(fields)) = &result
            && fields.sqlstate() == "26000"
        {
            // A body has deallocated everything there.
            self.collect_on(COORDINATOR_GROUP, "ROLLBACK").await?;
            if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                participant.lease.prepared.clear();
                (participant.in_block, participant.told) = (false, 0);
            }
            self.join(COORDINATOR_GROUP).await?;
            result = self.collect_on(COORDINATOR_GROUP, CLOCK).await;
        }
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.only_clock = result.is_ok();
        }
        result
    }

    /// The coordinator takes part, for a statement that makes settings.
    pub async fn join_making(&mut self) -> Result<()> {
        let joined = self.join(COORDINATOR_GROUP).await;
        let making = std::mem::take(&mut self.making);
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            settings::note_made(&mut participant.lease, making.iter().map(String::as_str));
        }
        joined
    }

    /// The session's settings, before the block begins there.
    async fn bring_up_to_date(&mut self, group: GroupId) -> Result<()> {
        let settings_before = self.txn.settings_before.as_ref().unwrap_or(&self.settings);
        let Some(participant) = self.txn.participants.get_mut(&group) else {
            return Err(Failure::new("XX000", "participant is missing"));
        };
        if !participant.in_block {
            let difference =
                settings::difference(&participant.lease.applied, settings_before, group != COORDINATOR_GROUP);
            if !difference.is_empty() {
                // Awaited: a cancel that hit it would leave the statement behind it with other settings.
                participant.lease.query(&difference).await?;
                participant.lease.applied = settings_before.clone();
                // PL/pgSQL keeps the names of functions as they are under it, for whoever comes next.
                participant.lease.alone |= settings_before.get(QUOTES_NAMES).is_some_and(|value| value == "on");
            }
        }
        Ok(())
    }

    /// A library that a server has loaded takes settings away that only had its prefix, and refuses them from then on:
    /// the session has not got them any more either. True: there was such a setting.
    fn forget_reserved(&mut self, failure: &Failure) -> bool {
        let Failure::Statement(fields) = failure else { return false };
        let name = fields.message().split('"').nth(1).unwrap_or_default().to_owned();
        // A worker may have the library, whose setting is not empty, and the coordinator not.
        let is_empty = self.settings.get(&name).is_some_and(String::is_empty);
        let is_refused = fields.sqlstate() == "42602" || fields.sqlstate() == "22023" && is_empty;
        if !is_refused || !settings::may_be_users(&name) {
            return false;
        }
        let before = self.txn.settings_before.as_mut().is_some_and(|settings| settings.remove(&name).is_some());
        self.settings.remove(&name).is_some() || before
    }

    async fn lease(&mut self, group: GroupId) -> Result<Participant> {
        match self.try_lease(group).await {
            Err(failure) if is_refused_login(&failure) => {
                Box::pin(self.let_in(group, failure)).await?;
                self.try_lease(group).await.map_err(|failure| self.no_login(group, failure))
            }
            other => other,
        }
    }

    /// After a server has not let the session's role in, which the coordinator has let in: a worker may not have heard
    /// of it, where it was made behind the router's back or while the worker was away. Fails where nothing can be done.
    pub async fn let_in(&mut self, group: GroupId, failure: Failure) -> Result<()> {
        // The role's password has changed since this session began.
        if let Some(newest) = self.thread.shared.newest_keys(&self.user)
            && matches!(self.credentials, Credentials::ScramKeys { .. })
            && self.credentials != newest
        {
            self.credentials = newest;
            return Ok(());
        }
        if group == COORDINATOR_GROUP {
            return Err(self.no_login(group, failure));
        }
        if let Err(error) = self.mend_roles(group).await {
            tracing::warn!("could not bring the roles of node group {group} in line: {error:?}");
            return Err(self.no_login(group, failure));
        }
        Ok(())
    }

    /// The statement fails, not the session.
    pub fn no_login(&self, group: GroupId, failure: Failure) -> Failure {
        if !is_refused_login(&failure) {
            return failure;
        }
        let Failure::Statement(fields) = failure else { return failure };
        let node = match self.catalog().node_of_group(group) {
            Some(node) if group != COORDINATOR_GROUP => format!("worker {}:{}", node.host, node.port),
            _ => "the coordinator".to_owned(),
        };
        Failure::new(fields.sqlstate(), format!("could not log in to {node} as \"{}\"", self.user))
            .detail(fields.message())
            .hint(
                "Connect again if the role's password has changed since this session began. Otherwise the server's \
                 pg_hba.conf may keep the router out.",
            )
    }

    async fn try_lease(&mut self, group: GroupId) -> Result<Participant> {
        let lease = match self.pinned.take() {
            Some(lease) if group == COORDINATOR_GROUP => lease,
            pinned => {
                self.pinned = pinned;
                let target = self.target(group)?;
                let holds_another = !self.txn.participants.is_empty() || self.pinned.is_some();
                let pool = self.thread.pool().clone();
                let made: Vec<&str> = self.txn.log.iter().filter_map(LogItem::sets).collect();
                let making = &self.making;
                let wanted = self.txn.settings_before.as_ref().unwrap_or(&self.settings);
                let (block, place) = (self.txn.block, &mut self.txn.place);
                let leased = async {
                    let claim = match block {
                        Block::None if !holds_another => Claim::Single,
                        _ => Claim::Placed,
                    };
                    if block != Block::None && place.is_none() {
                        // Who holds a lease must not wait for the right to hold another.
                        *place = if holds_another { pool.try_block_place() } else { Some(pool.block_place().await?) };
                    }
                    pool.lease(&target, claim, |name| {
                        wanted.contains_key(name) || made.contains(&name) || making.iter().any(|making| making == name)
                    })
                    .await
                };
                let lease = tokio::select! {
                    biased;
                    () = self.cancel.cancelled() => return Err(cancelled()),
                    lease = leased => lease?,
                };
                if group == COORDINATOR_GROUP {
                    if let Some(key) = &lease.cancel_key {
                        self.thread.shared.serves(key.pid, self.pid());
                    }
                    let sender = self.callback_sender();
                    let secret = self.db.callback_secret.clone();
                    self.callers.extend(self.thread.shared.callers.register(&lease, sender, secret));
                }
                lease
            }
        };
        self.cancel.add(lease.address(), &lease.cancel_key);
        if self.cancel.take_cancelled() {
            self.cancel.remove(&lease.cancel_key);
            return Err(cancelled());
        }
        Ok(Participant {
            lease,
            told: 0,
            wrote: false,
            in_block: false,
            fenced: HashSet::new(),
            only_snapshot: false,
            only_clock: false,
            ends_last: false,
            announces: false,
        })
    }

    /// Takes the placement fence of a colocation group on a participant, once per transaction.
    pub fn fence(&mut self, group: GroupId, colocation: ColocationId, epoch: i64) {
        if let Some(participant) = self.txn.participants.get_mut(&group)
            && participant.in_block
            && participant.fenced.insert(colocation)
        {
            participant.lease.add_step(format!("SELECT pgherd.fence({colocation}, {epoch})"));
        }
    }

    /// A participant, out of the map while its replies are read; [`put_back`](Self::put_back) returns it.
    pub fn take(&mut self, group: GroupId) -> Result<Participant> {
        let mut participant =
            self.txn.participants.remove(&group).ok_or_else(|| Failure::new("XX000", "participant is missing"))?;
        participant.only_snapshot = false;
        participant.only_clock = false;
        self.txn.out.insert(group, participant.told);
        Ok(participant)
    }

    /// Fails where a server was lost in the middle of this transaction: going back to a savepoint would go on without
    /// what it had done. Only between statements, when no participant is being read.
    pub fn check_all_present(&self) -> Result<()> {
        match self.txn.out.keys().next() {
            None => Ok(()),
            Some(group) => {
                Err(Failure::new("08006", format!("connection to node group {group} was lost in this transaction"))
                    .hint("Roll back the whole transaction and repeat it."))
            }
        }
    }

    /// Fails where a server has ended its part of the transaction: locks that it held are free, and what it has done is
    /// undone, though nothing was asked of it since.
    pub fn check_none_ended(&mut self) -> Result<()> {
        let ended = |(group, p): (&GroupId, &mut Participant)| Some((*group, p.lease.ended()?));
        let Some((group, error)) = self.txn.participants.iter_mut().find_map(ended) else { return Ok(()) };
        if let Some(participant) = self.txn.participants.remove(&group) {
            self.cancel.remove(&participant.lease.cancel_key);
            self.txn.out.insert(group, participant.told);
        }
        Err(error.into())
    }

    /// A server has ended its part of the transaction.
    pub fn has_ended(&mut self) -> bool {
        self.txn.participants.values_mut().any(|participant| participant.lease.ended().is_some())
    }

    /// No participant is being read, or was lost.
    pub fn is_complete(&self) -> bool {
        self.txn.out.is_empty()
    }

    pub fn put_back(&mut self, group: GroupId, mut participant: Participant) {
        if let Some(told) = self.txn.out.remove(&group) {
            participant.told = told;
        }
        self.txn.participants.insert(group, participant);
    }

    /// After a statement outside any block: gives back what it used.
    pub async fn release_autocommit(&mut self) {
        if self.txn.block == Block::None {
            self.release_all().await;
        }
    }

    /// After a statement that failed, or is run again: nothing stays of it, nor of a block of the router's own.
    pub async fn undo_autocommit(&mut self) {
        match self.txn.block {
            Block::Implicit => self.rollback().await,
            _ => self.release_autocommit().await,
        }
    }

    async fn release_all(&mut self) {
        self.release_participants().await;
        self.txn.log.clear();
        self.txn.out.clear();
    }

    /// The transactions of a body that ends them itself: the next of them begins.
    pub async fn begin_next(&mut self) {
        self.release_participants().await;
        let failure = self.cursors.failure.take();
        self.cursors.clear();
        self.cursors.failure = failure;
        let before = std::mem::replace(&mut self.txn, Transaction::new());
        self.txn = Transaction {
            out: before.out.into_keys().map(|group| (group, 0)).collect(),
            body_settings: before.body_settings,
            dropped_temporary: before.dropped_temporary,
            changed_catalog: before.changed_catalog,
            epoch: before.epoch,
            changed_defaults: before.changed_defaults,
            own: before.own,
            ..Transaction::new()
        };
    }

    async fn release_participants(&mut self) {
        while let Some((group, participant)) = self.txn.participants.pop_first() {
            self.release(group, participant).await;
        }
    }

    async fn release(&mut self, group: GroupId, mut participant: Participant) {
        self.cancel.remove(&participant.lease.cancel_key);
        settings::note_made(&mut participant.lease, self.settings.keys().map(String::as_str));
        settings::note_made(&mut participant.lease, self.txn.log.iter().filter_map(LogItem::sets));
        if self.cancel.is_under_way() {
            self.cancel.settle().await;
        }
        if group == COORDINATOR_GROUP {
            if self.pin && participant.lease.is_idle() {
                self.pinned = Some(participant.lease);
                return;
            }
            self.unregister_caller(&participant.lease);
            participant.lease.idle_limit =
                self.in_force("idle_session_timeout").and_then(settings::time).filter(|limit| !limit.is_zero());
        }
        if participant.lease.tainted && participant.lease.is_idle() {
            recycle(&mut participant.lease).await;
        }
    }

    fn unregister_caller(&mut self, lease: &Lease) {
        let callers = &self.thread.shared.callers;
        if let Some(caller) = callers.caller_of(lease) {
            self.callers.retain(|known| *known != caller);
            callers.unregister(&caller);
        }
    }

    /// Those of connections that were lost, or dropped in the middle of a reply, when the session ends.
    pub fn unregister_callers(&mut self) {
        std::mem::take(&mut self.callers).iter().for_each(|caller| self.thread.shared.callers.unregister(caller));
    }

    /// Gives the pinned coordinator connection back, wiped.
    pub async fn unpin(&mut self) {
        self.pin = false;
        if let Some(mut lease) = self.pinned.take() {
            self.unregister_caller(&lease);
            recycle(&mut lease).await;
        }
    }

    /// Adds to the log; participants are told when they next take part (or now, by `tell_all`).
    pub fn log(&mut self, item: LogItem) {
        if self.txn.block != Block::None {
            self.txn.log.push(item);
        }
    }

    /// Marks the last log item as known to a participant that ran it as a statement of its own.
    pub fn told(&mut self, group: GroupId) {
        let len = self.txn.log.len();
        if let Some(participant) = self.txn.participants.get_mut(&group) {
            participant.told = len;
        }
    }

    /// SAVEPOINT: told to each server lazily.
    pub fn savepoint(&mut self, name: &str) {
        let (settings, catalog) = (self.settings.clone(), self.txn.catalog.clone());
        let (encoding, cursors) = (self.encoding.moment(), self.cursors.next);
        self.log(LogItem::Savepoint { name: name.to_owned(), settings, catalog, encoding, cursors });
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        self.txn
            .log
            .iter()
            .rposition(|item| matches!(item, LogItem::Savepoint { name: n, .. } if n == name))
            .ok_or_else(|| Failure::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    pub fn has_savepoints(&self) -> bool {
        self.txn.log.iter().any(|item| matches!(item, LogItem::Savepoint { .. }))
    }

    pub fn has_savepoint(&self, name: &str) -> bool {
        self.txn.log.iter().any(|item| matches!(item, LogItem::Savepoint { name: n, .. } if n == name))
    }

    /// RELEASE SAVEPOINT: what was set since stays, but for the transaction's modes; the savepoints go.
    pub async fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let index = self.find_savepoint(name)?;
        let sql = format!("RELEASE SAVEPOINT {}", settings::quote_ident(name));
        self.on_told(index, &sql).await?;
        self.forget_items(index, |item| matches!(item, LogItem::Savepoint { .. } | LogItem::Modes(_)));
        Ok(())
    }

    /// Items of the log from `position` on are over for whoever was told of them.
    fn forget_items(&mut self, mut position: usize, are_over: impl Fn(&LogItem) -> bool) {
        while position < self.txn.log.len() {
            if !are_over(&self.txn.log[position]) {
                position += 1;
                continue;
            }
            self.txn.log.remove(position);
            for told in self.txn.told_mut().filter(|told| **told > position) {
                *told -= 1;
            }
            for cursor in self.declared_cursors.values_mut().filter(|cursor| cursor.log > position) {
                cursor.log -= 1;
            }
        }
    }

    /// The latest savepoint of this name goes, where nothing but reading was done since. The coordinator may have told
    /// workers of savepoints of its own; other servers hear of it with what they are asked next.
    pub async fn drop_savepoint(&mut self, name: &str) -> Result<()> {
        let sql = format!("RELEASE SAVEPOINT {}", settings::quote_ident(name));
        let index = self.find_savepoint(name)?;
        let mut told: Vec<GroupId> =
            self.txn.participants.iter().filter(|(_, p)| p.told > index).map(|(group, _)| *group).collect();
        if told.first() == Some(&COORDINATOR_GROUP) {
            self.run_quiet(told.remove(0), &sql).await?;
        }
        for group in told {
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                participant.lease.add_step(&sql);
            }
        }
        // Those of callbacks behind it go with it.
        let index = self.find_savepoint(name)?;
        self.forget_items(index, |item| matches!(item, LogItem::Savepoint { .. }));
        Ok(())
    }

    /// ROLLBACK TO SAVEPOINT: on every server that knows it; the others never heard of what came after.
    pub async fn rollback_to_savepoint(&mut self, name: &str) -> Result<()> {
        let index = self.find_savepoint(name)?;
        let sql = format!("ROLLBACK TO SAVEPOINT {}", settings::quote_ident(name));
        // A server that joined after the savepoint and was lost since cannot be brought back.
        for group in self.forget_steps_since(index) {
            self.run_quiet(group, &sql).await?;
        }
        // The statement that failed has not said that it no longer changes rows.
        self.cursors.changes.clear();
        let mut known = None;
        if let LogItem::Savepoint { settings, catalog, encoding, cursors, .. } = &self.txn.log[index] {
            // The servers have closed them.
            self.cursors.forget_since(*cursors);
            self.settings = settings.clone();
            known = catalog.clone();
            self.encoding.go_back(encoding.clone());
        }
        self.follow_encoding();
        self.txn.log.truncate(index + 1);
        self.declared_cursors.retain(|_, cursor| cursor.kept || cursor.log <= index);
        self.forget_search_path();
        // Some may be there again; which, the coordinator says before the next statement.
        self.temp.extend(std::mem::take(&mut self.txn.dropped_temporary));
        for told in self.txn.told_mut() {
            *told = (*told).min(index + 1);
        }
        if self.txn.changed_catalog || self.txn.catalog.is_some() {
            // DDL may have been undone. Where the coordinator is busy it is a body that goes back.
            self.txn.catalog = known;
            self.txn.catalog_lags = self.txn.catalog.is_some();
            if self.txn.block == Block::Explicit && self.txn.participants.contains_key(&COORDINATOR_GROUP) {
                Box::pin(self.reload_catalog_in_block()).await?;
            }
        }
        Ok(())
    }

    /// Who has been told of the savepoint at `index` of the log, and is to go back to it. What nobody has been sent
    /// since is not to be done any more: it could wait for a lock.
    fn forget_steps_since(&mut self, index: usize) -> Vec<GroupId> {
        let savepoint = self.txn.log[index].to_sql(COORDINATOR_GROUP);
        let mut told = Vec::new();
        for (group, participant) in self.txn.participants.iter_mut().filter(|(_, p)| p.told > index) {
            // Those of the subtransaction are given back with it.
            participant.fenced.clear();
            let unsent = participant.lease.steps().iter().rposition(|step| Some(step) == savepoint.as_ref());
            participant.lease.forget_steps(unsent.map_or(0, |at| at + 1));
            // Of the coordinator's subtransactions behind it, which end meanwhile, it is told nothing more.
            participant.told = index + 1;
            if unsent.is_none() {
                told.push(*group);
            }
        }
        told
    }

    /// Runs a statement on every participant that was told log item `index`, the coordinator first (its callbacks may
    /// still speak to the workers while it ends subtransactions).
    async fn on_told(&mut self, index: usize, sql: &str) -> Result<()> {
        let groups: Vec<GroupId> =
            self.txn.participants.iter().filter(|(_, p)| p.told > index).map(|(group, _)| *group).collect();
        for group in groups {
            self.run_quiet(group, sql).await?;
        }
        Ok(())
    }

    /// Runs a statement on a participant and drops what it returns; callbacks are served meanwhile.
    pub async fn run_quiet(&mut self, group: GroupId, sql: &str) -> Result<()> {
        if group == COORDINATOR_GROUP && self.definitions.is_asked() {
            return self.ask_inside("run", sql).await.map(drop);
        }
        self.collect_on(group, sql).await.map(drop)
    }

    /// The client's block has failed on some server, which has given up its locks; the others do the same, and do not
    /// keep sessions waiting until the client says ROLLBACK. They go back to the savepoint to which the client can, or
    /// to the beginning. The coordinator reports the settings that end with it.
    pub async fn give_up_locks(&mut self) {
        if self.cancel.is_under_way() {
            // What it still hits may fail: that gives up the locks as well.
            self.cancel.settle().await;
        }
        let clients = |item: &LogItem| matches!(item, LogItem::Savepoint { .. }) && !item.is_ours();
        let savepoint = self.txn.log.iter().rposition(clients);
        // What failed behind a savepoint of ours has given up nothing from before it.
        let behind_ours = self.txn.log[savepoint.map_or(0, |at| at + 1)..].iter().any(LogItem::is_the_routers);
        let back = savepoint.and_then(|at| Some((at, self.txn.log.get(at)?.to_sql(COORDINATOR_GROUP)?)));
        let (groups, sql) = match back {
            Some((at, sql)) => (self.forget_steps_since(at), format!("ROLLBACK TO {sql}")),
            None => {
                self.txn.participants.values_mut().for_each(|p| p.lease.forget_steps(0));
                (self.txn.participants.keys().copied().collect(), "ROLLBACK".to_owned())
            }
        };
        let holds = |p: &Participant| {
            !p.lease.is_broken()
                && p.lease.in_flight == 0
                && (p.lease.status == b'T' || behind_ours && p.lease.status == b'E')
        };
        let mut workers = Vec::new();
        for group in groups {
            if !self.txn.participants.get(&group).is_some_and(holds) {
                continue;
            }
            match group {
                // Its callbacks may still speak to the workers. Where it cannot be reached it gives up by itself.
                COORDINATOR_GROUP => drop(self.run_quiet(group, &sql).await),
                _ => workers.push((group, sql.clone())),
            }
        }
        self.run_parallel(workers).await;
        if let Some(at) = savepoint {
            // What came after it is no more; the coordinator may still speak of its subtransactions there.
            self.txn.log.truncate(at + 1);
            self.txn.told_mut().for_each(|told| *told = (*told).min(at + 1));
        }
    }

    /// The transaction as it was before any server was asked, when its log had this length.
    pub async fn restart_block(&mut self, log: usize) {
        let groups: Vec<GroupId> = self.txn.participants.keys().copied().collect();
        for group in groups {
            self.rollback_participant(group).await;
        }
        self.release_participants().await;
        self.txn.log.truncate(log);
        let old = std::mem::replace(&mut self.txn, Transaction::new());
        self.txn = Transaction {
            block: old.block,
            begin: old.begin,
            inherited: old.inherited,
            keeps_snapshot: old.keeps_snapshot,
            log: old.log,
            settings_before: old.settings_before,
            place: old.place,
            ..Transaction::new()
        };
        self.cursors.clear();
        self.definitions.forget();
        self.forget_search_path();
    }

    /// COMMIT of whatever is open. On an error everything is rolled back. The block is over either way.
    pub async fn commit(&mut self) -> Result<()> {
        if self.txn.block == Block::Failed {
            self.rollback().await;
            return Ok(());
        }
        let ready = match self.check_none_ended() {
            Ok(()) => self.get_ready().await,
            Err(ended) => Err(ended),
        };
        if let Err(failure) = ready {
            self.rollback().await;
            return Err(failure);
        }
        let result = self.commit_participants().await;
        self.cancel.set_committing(false);
        match &result {
            Ok(()) => self.settle_settings(),
            Err(_) => {
                // Some have had their COMMIT or PREPARE TRANSACTION, and keep what was set: it is put back.
                self.settle_settings();
                self.restore_settings();
                self.set_back().await;
            }
        }
        // The schema of a shard is not the client's.
        let result = result.map_err(|failure| self.localise(failure));
        self.end_block(result.is_ok()).await;
        result
    }

    /// The coordinator's connection has the session's settings again, and says so.
    pub async fn set_back(&mut self) {
        let wanted = self.settings.clone();
        let idle = |p: &&mut Participant| p.lease.is_idle();
        let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP).filter(idle) else { return };
        let difference = settings::difference(&participant.lease.applied, &wanted, false);
        if difference.is_empty() {
            return;
        }
        participant.lease.applied = wanted;
        if self.collect_on(COORDINATOR_GROUP, &difference).await.is_err()
            && let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
        {
            participant.lease.poison();
        }
    }

    /// What is written before COMMIT.
    async fn get_ready(&mut self) -> Result<()> {
        if self.has_savepoint(READ_ONLY) {
            self.release_savepoint(READ_ONLY).await?;
        }
        self.run_deferred().await?;
        self.announce_catalog_change().await
    }

    /// Before COMMIT: triggers that wait for it on the coordinator run now, while others can still take part. What they
    /// do there only may have to wait for more than them: where that fails, COMMIT itself runs all of it.
    pub async fn run_deferred(&mut self) -> Result<()> {
        const NAME: &str = "pgherd_deferred";
        let may_wait = |p: &Participant| p.in_block && p.wrote;
        let waits = self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(may_wait);
        if !waits || !self.catalog().has_deferred_triggers {
            return Ok(());
        }
        self.join(COORDINATOR_GROUP).await?;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.add_step(format!("SAVEPOINT {NAME}"));
        }
        self.cursors.changes.end_firing();
        self.cursors.heard = false;
        let sql = format!("SET CONSTRAINTS ALL IMMEDIATE; RELEASE SAVEPOINT {NAME}");
        let Err(failure) = self.run_quiet(COORDINATOR_GROUP, &sql).await else { return Ok(()) };
        if self.cursors.heard || !breaks_constraint(&failure) {
            return Err(failure);
        }
        self.run_quiet(COORDINATOR_GROUP, &format!("ROLLBACK TO SAVEPOINT {NAME}")).await
    }

    /// ROLLBACK of whatever is open. Servers that cannot be reached roll back by themselves.
    pub async fn rollback(&mut self) {
        let groups: Vec<GroupId> = self.txn.participants.keys().copied().collect();
        for group in groups {
            self.rollback_participant(group).await;
        }
        self.restore_settings();
        self.end_block(false).await;
    }

    pub async fn rollback_participant(&mut self, group: GroupId) {
        let Some(participant) = self.txn.participants.get_mut(&group) else { return };
        if participant.lease.is_broken() {
            return;
        }
        // It is not to wait for a lock that a step would take.
        participant.lease.forget_steps(0);
        let began = participant.lease.status != b'I' || participant.lease.in_flight > 0;
        if participant.in_block && began {
            if self.run_quiet(group, "ROLLBACK").await.is_err()
                && let Some(participant) = self.txn.participants.get_mut(&group)
            {
                participant.lease.poison();
            }
        } else {
            self.drain(group).await;
        }
    }

    pub fn restore_settings(&mut self) {
        if let Some(before) = self.txn.settings_before.take() {
            self.settings = before;
        }
    }

    /// After COMMIT: what SET changed inside the block is now the connection's own.
    fn settle_settings(&mut self) {
        let groups: Vec<GroupId> = self.txn.participants.keys().copied().collect();
        groups.into_iter().for_each(|group| self.settle_settings_of(group));
    }

    /// The same on one server, which has ended its part.
    pub fn settle_settings_of(&mut self, group: GroupId) {
        if let Some(participant) = self.txn.participants.get_mut(&group) {
            for item in &self.txn.log[..participant.told.min(self.txn.log.len())] {
                match item {
                    LogItem::Set { name, value, local: false } => {
                        if name == "session_authorization" {
                            participant.lease.applied.remove("role");
                        }
                        participant.lease.applied.insert(name.clone(), value.clone());
                    }
                    item @ LogItem::Raw(_) => {
                        let user = item.resets("session_authorization");
                        participant.lease.applied.retain(|name| !(item.resets(name) || user && name == "role"));
                    }
                    _ => {}
                }
            }
        }
    }

    /// After the client's PREPARE TRANSACTION: the block is over, its settings stay, and what it changed is not there.
    pub async fn end_prepared_block(&mut self) {
        // Workers were only read; the coordinator is outside of the transaction already.
        let reads =
            |(group, p): (&GroupId, &Participant)| (*group != COORDINATOR_GROUP && p.in_block).then_some(*group);
        let readers: Vec<GroupId> = self.txn.participants.iter().filter_map(reads).collect();
        for group in readers {
            if self.run_quiet(group, "COMMIT").await.is_err()
                && let Some(participant) = self.txn.participants.get_mut(&group)
            {
                participant.lease.poison();
            }
        }
        self.settle_settings();
        self.settle_encoding(true);
        self.end_block(false).await;
    }

    /// The session has these temporary relations now, and no others.
    pub fn keep_temporary(&mut self, names: HashSet<String>) {
        let before = std::mem::replace(&mut self.temp, names);
        if self.txn.block != Block::None {
            let gone = before.into_iter().filter(|name| !self.temp.contains(name));
            self.txn.dropped_temporary.extend(gone);
        }
    }

    async fn end_block(&mut self, committed: bool) {
        let encoding = self.encoding_left().await;
        self.keep_settings_of_bodies().await;
        self.release_all().await;
        let (changed_catalog, epoch) = (self.txn.changed_catalog, self.txn.epoch);
        let changed_defaults = self.txn.changed_defaults;
        if !committed {
            self.temp.extend(std::mem::take(&mut self.txn.dropped_temporary));
        }
        self.txn = Transaction::new();
        self.settle_encoding(committed);
        if let Some(encoding) = encoding {
            self.set_client_encoding(encoding, false);
        }
        self.cursors.clear();
        self.definitions.forget();
        self.declared_cursors.retain(|_, cursor| {
            cursor.kept |= cursor.hold && committed;
            cursor.kept
        });
        self.forget_search_path();
        self.forget_transaction_portals();
        if committed && changed_defaults {
            self.thread.shared.forget_connections();
        }
        if committed && changed_catalog {
            let loaded = match epoch {
                Some(_) => Box::pin(self.db.reload_since(&self.thread.shared, epoch)).await,
                None => Box::pin(self.db.reload_announced(&self.thread.shared)).await,
            };
            if let Err(error) = loaded {
                tracing::warn!("could not load the catalog of database {} again: {error}", self.db.name);
            }
            self.forget_search_path();
        }
    }

    /// A coordinator that wrote nothing ends first: what it keeps beyond the transaction (WITH HOLD) it reads from the
    /// workers now, and its foreign tables tidy up there, while their transactions are still open. And one that has to
    /// be serializable says now whether it is.
    async fn end_reading_coordinator(&mut self) -> Result<()> {
        let first = self.txn.holds || self.may_be_serializable();
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
            && (participant.only_clock && participant.in_block && !participant.wrote && !first)
        {
            // Nothing depends on it: the others end meanwhile.
            participant.in_block = false;
            participant.lease.send_query("COMMIT");
            if participant.lease.flush().await.is_err() {
                participant.lease.poison();
            }
            return Ok(());
        }
        let others_wrote = self.txn.participants.values().any(|p| p.wrote);
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            // What it has to tell is told when it decides, or after that.
            participant.wrote |= first && others_wrote && participant.announces;
        }
        // Alone, it says itself whether it is committed.
        let last = !first && others_wrote;
        let reads = |p: &Participant| p.in_block && !(p.wrote || p.only_snapshot || last && p.ends_last);
        let reads = self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(reads);
        if !reads {
            return Ok(());
        }
        let result = self.collect_on(COORDINATOR_GROUP, "COMMIT").await.and_then(|end| was_done(&end.tag, "COMMIT"));
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.in_block = false;
        }
        if let Err(failure) = result {
            let groups: Vec<GroupId> = self.txn.participants.keys().copied().collect();
            for group in groups {
                self.rollback_participant(group).await;
            }
            return Err(failure);
        }
        Ok(())
    }

    pub async fn commit_participants(&mut self) -> Result<()> {
        self.txn.committing = true;
        self.cancel.set_committing(true);
        self.end_reading_coordinator().await?;
        let result = self.commit_others().await;
        self.await_clock().await;
        result
    }

    /// The answer of a coordinator that has only told the time.
    async fn await_clock(&mut self) {
        let is_awaited = |p: &Participant| p.only_clock && !p.lease.is_broken() && p.lease.in_flight > 0;
        if !self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(is_awaited) {
            return;
        }
        let awaited = self.awaited(COORDINATOR_GROUP);
        let ended = self.collect_started(COORDINATOR_GROUP);
        let ended = match awaited {
            Some(awaited) => awaited.answer(ended).await,
            None => Some(ended.await),
        };
        if ended.is_none() {
            self.lose(COORDINATOR_GROUP);
        }
    }

    async fn commit_others(&mut self) -> Result<()> {
        let participants: Vec<pgherd_txn::Participant> = self
            .txn
            .participants
            .iter()
            .filter(|(_, p)| p.in_block)
            .map(|(group, p)| pgherd_txn::Participant {
                group: *group,
                wrote: p.wrote,
                // Temporary tables, NOTIFY and postgres_fdw keep the coordinator from preparing; it decides instead.
                can_prepare: *group != COORDINATOR_GROUP,
            })
            .collect();
        self.txn.settled = true;
        let protocol = self.commit_protocol();
        let (mut machine, mut action) = Commit::start(&participants, protocol).map_err(|refused| {
            Failure::refused("cannot commit a transaction with two participants that cannot be prepared")
                .detail(format!("Node groups {} and {}.", refused.first, refused.second))
        })?;
        let decider = participants.iter().find(|p| p.wrote).map_or(COORDINATOR_GROUP, |p| p.group);
        let transaction = new_transaction_id()?;
        // The processes there, for those whose connections get lost.
        let processes: BTreeMap<GroupId, Process> =
            self.txn.participants.iter().filter_map(|(group, p)| Some((*group, Process::of(&p.lease)?))).collect();
        let mut lost: BTreeMap<GroupId, Process> = BTreeMap::new();
        let mut failure: Option<Failure> = None;
        // Cursors of a coordinator that ends later are closed with their transactions.
        let coordinator_reads = participants.iter().any(|p| p.group == COORDINATOR_GROUP && !p.wrote);
        self.txn.ending |= coordinator_reads;
        loop {
            let mut events = Vec::new();
            match &action {
                Action::Prepare(groups) => {
                    self.txn.ending = true;
                    let sql: Vec<(GroupId, String)> = groups
                        .iter()
                        .map(|group| {
                            let gid = Gid { decider, transaction: transaction.clone(), participant: *group };
                            (*group, format!("PREPARE TRANSACTION {}", settings::quote_literal(&gid.to_string())))
                        })
                        .collect();
                    for (group, result) in self.run_last(sql).await {
                        let result = result.and_then(|tag| was_done(&tag, "PREPARE TRANSACTION"));
                        let event = self.event(group, result, &mut failure);
                        if matches!(event, Event::Lost(_)) {
                            lost.extend(processes.get(&group).map(|process| (group, process.clone())));
                        }
                        events.push(event);
                    }
                }
                Action::Decide(group) => {
                    let awaited = self.awaited(*group);
                    let recorded = Box::pin(self.record_and_commit(*group, &transaction));
                    let result = match awaited {
                        Some(awaited) => awaited.answer(recorded).await,
                        None => Some(recorded.await),
                    };
                    let result = result.unwrap_or_else(|| Err(self.lose(*group)));
                    let result = result.and_then(|tag| was_done(&tag, "COMMIT"));
                    events.push(match self.event(*group, result, &mut failure) {
                        Event::Lost(group) => {
                            lost.extend(processes.get(&group).map(|process| (group, process.clone())));
                            let ending = Ending { transaction: &transaction, decider, lost: &lost };
                            let prepared = participants.iter().filter(|p| p.wrote && p.group != group);
                            let parts = prepared.map(|p| Part { group: p.group, lost: None }).collect();
                            match Box::pin(self.finish(&ending, None, parts)).await {
                                Some(true) => Event::Succeeded(group),
                                Some(false) => Event::Failed(group),
                                None => Event::Lost(group),
                            }
                        }
                        event => event,
                    });
                }
                Action::Commit(group) => {
                    let ended = self.run_last(vec![(*group, "COMMIT".to_owned())]).await.pop();
                    let result = ended.map_or_else(|| Err(self.lose(*group)), |(_, result)| result);
                    let result = result.and_then(|tag| was_done(&tag, "COMMIT"));
                    events.push(self.event(*group, result, &mut failure));
                }
                Action::CommitPrepared(groups) | Action::RollbackPrepared(groups) => {
                    let commits = matches!(action, Action::CommitPrepared(_));
                    let ending = Ending { transaction: &transaction, decider, lost: &lost };
                    Box::pin(self.end_prepared(&ending, &groups.clone(), commits)).await;
                    events.push(Event::Finished);
                }
                Action::Rollback(groups) => {
                    for group in groups.clone() {
                        self.rollback_participant(group).await;
                    }
                    events.push(Event::Finished);
                }
                Action::EndReaders(groups) => {
                    self.txn.ending = true;
                    let word = if failure.is_none() { "COMMIT" } else { "ROLLBACK" };
                    let sql = groups.iter().map(|g| (*g, word.to_owned())).collect();
                    for (group, ended) in self.run_last(sql).await {
                        let ended = ended.and_then(|tag| was_done(&tag, word));
                        if let (Err(error), COORDINATOR_GROUP) = (ended, group) {
                            self.end_failed_reader(error, failure.is_none());
                        }
                    }
                    events.push(Event::Finished);
                }
                Action::Done(outcome) => {
                    return match outcome {
                        Outcome::Committed => Ok(()),
                        Outcome::RolledBack => {
                            Err(failure.unwrap_or_else(|| Failure::new("40000", "transaction was rolled back")))
                        }
                        Outcome::Unknown => Err(Failure::new(
                            "08007",
                            "connection to the deciding server was lost during COMMIT: the outcome is not known",
                        )),
                        Outcome::Partial => {
                            Err(Failure::new("08007", "COMMIT failed on some servers after others had committed")
                                .hint("Use citus.multi_shard_commit_protocol = '2pc' for atomic commits."))
                        }
                    };
                }
            }
            let mut next = None;
            for event in events {
                next = machine.on(event).or(next);
            }
            action = next.ok_or_else(|| Failure::new("XX000", "commit did not come to an end"))?;
        }
    }

    /// The coordinator had only locks or something to tell, and all others have ended by now.
    fn end_failed_reader(&mut self, error: Failure, commits: bool) {
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.poison();
            tracing::warn!("the coordinator failed at the end of a transaction: {error:?}");
            if commits && participant.announces {
                self.warn("01000", "notifications of this transaction were lost: the coordinator failed at COMMIT");
            }
        }
    }

    /// On the decider, in one packet.
    async fn record_and_commit(&mut self, group: GroupId, transaction: &str) -> Result<String> {
        let secret = self.secret_of_group(group).await?;
        let mut participant = self.take(group)?;
        let lease = &mut participant.lease;
        let values = record_values(lease, &secret, transaction);
        RECORD.with(|record| lease.send_kept(record, &values));
        let kept = RECORD.with(|record| (record.id, record.sql.len()));
        frontend::write_parse(lease.buffer(), "", "COMMIT", &[]);
        frontend::write_bind::<&[u8]>(lease.buffer(), "", "", &[], &[], &[]);
        frontend::write_execute(lease.buffer(), "", 0);
        lease.send_sync();
        let result = self.read_reply(group, &mut participant, Some(kept), Rows::Drop, Errors::default()).await;
        self.put_back(group, participant);
        if let Err(Failure::Statement(fields)) = &result
            && fields.message() == NO_PASS
        {
            self.forget_worker_secret(group);
        }
        result.map(|end| end.tag)
    }

    /// On each participant's connection, or on another where that has gone, again and again. The client's answer waits
    /// for it, so that what it reads next is what it has written.
    async fn end_prepared(&mut self, ending: &Ending<'_>, groups: &[GroupId], committed: bool) {
        let sql = groups.iter().map(|group| (*group, crate::finish::sql_of(&ending.gid(*group), committed))).collect();
        let mut parts = Vec::new();
        for (group, result) in self.run_last(sql).await {
            let lost = result.as_ref().err().and_then(|_| ending.lost.get(&group).cloned());
            match result {
                Ok(_) => {}
                // Somebody else has ended it already.
                Err(failure) if failure.sqlstate() == "42704" && lost.is_none() => {}
                Err(_) => parts.push(Part { group, lost }),
            }
        }
        let done: Vec<GroupId> = groups.iter().copied().filter(|g| self.txn.participants.contains_key(g)).collect();
        // One that was lost is no participant any more.
        let gone = groups.iter().filter(|group| !done.contains(group));
        parts.extend(gone.map(|group| Part { group: *group, lost: ending.lost.get(group).cloned() }));
        self.finish(ending, Some(committed), parts).await;
    }

    /// What is not done yet goes on without us. Whether the transaction was committed, as far as that is known.
    async fn finish(&mut self, ending: &Ending<'_>, committed: Option<bool>, parts: Vec<Part>) -> Option<bool> {
        if parts.is_empty() && committed.is_some() {
            return committed;
        }
        let nodes: Vec<String> = parts.iter().map(|part| part.group.to_string()).collect();
        let unfinished = Unfinished {
            database: self.db.clone(),
            transaction: ending.transaction.to_owned(),
            decider: ending.decider,
            committed,
            deciding: ending.lost.get(&ending.decider).cloned(),
            parts,
        };
        // Who is told of an error need not wait for a server that is away.
        let at_most = if committed == Some(false) { ROLLBACK_WAIT } else { self.commit_wait() };
        let reached = unfinished.finish(&self.thread.shared, at_most).await;
        if reached.committed == Some(true) && !reached.finished {
            let message = format!(
                "the transaction is committed, but node group {} has not carried it out yet: until it has, what was \
                 written there cannot be seen, and its rows stay locked",
                nodes.join(", ")
            );
            self.warn("01000", &message);
        }
        reached.committed
    }

    /// How long COMMIT waits for servers that are out of reach.
    pub fn commit_wait(&self) -> Duration {
        let name = "pgherd.commit_wait";
        let value = self.in_force(name).or(settings::default_of(name)).unwrap_or_default();
        settings::time(value).unwrap_or_default()
    }

    /// The end of a transaction, on its connection to a server.
    fn awaited(&self, group: GroupId) -> Option<Awaited> {
        let participant = self.txn.participants.get(&group)?;
        Some(Awaited {
            shared: self.thread.shared.clone(),
            database: self.db.clone(),
            group,
            process: Process::of(&participant.lease),
            at_most: self.commit_wait(),
        })
    }

    /// A participant's answer will not come.
    fn lose(&mut self, group: GroupId) -> Failure {
        if let Some(participant) = self.txn.participants.get_mut(&group) {
            participant.lease.poison();
        }
        no_answer(group)
    }

    /// As [`run_parallel`](Self::run_parallel), for what ends the transaction: no server that says nothing holds it up.
    pub async fn run_last(&mut self, sql: Vec<(GroupId, String)>) -> Vec<(GroupId, Result<String>)> {
        let mut results = Vec::with_capacity(sql.len());
        let mut started = BTreeMap::new();
        for (group, text) in sql {
            let Some(awaited) = self.awaited(group) else { continue };
            let Some(participant) = self.txn.participants.get_mut(&group) else { continue };
            participant.lease.send_query(&text);
            match participant.lease.flush().await {
                Ok(()) => drop(started.insert(group, awaited)),
                Err(error) => results.push((group, Err(error.into()))),
            }
        }
        let coordinator = started.remove(&COORDINATOR_GROUP);
        let workers = self.txn.participants.iter_mut().filter_map(|(group, participant)| {
            let awaited = started.remove(group)?;
            let lease = &mut participant.lease;
            Some(async move {
                let answer = awaited.answer(lease.collect()).await;
                if answer.is_none() {
                    lease.poison();
                }
                let answer = answer.map_or_else(|| Err(no_answer(*group)), |answer| answer.map_err(Failure::from));
                (*group, answer.map(|end| end.tag))
            })
        });
        results.extend(futures_util::future::join_all(workers).await);
        if let Some(awaited) = coordinator {
            let answer = awaited.answer(self.collect_started(COORDINATOR_GROUP)).await;
            let answer = answer.unwrap_or_else(|| Err(self.lose(COORDINATOR_GROUP)));
            results.push((COORDINATOR_GROUP, answer.map(|end| end.tag)));
        }
        results
    }

    pub fn event(&self, group: GroupId, result: Result<()>, failure: &mut Option<Failure>) -> Event {
        match result {
            Ok(()) => Event::Succeeded(group),
            Err(error) => {
                // Failed is what the server has said itself, to the end.
                let open = |p: &Participant| p.lease.is_broken() || p.lease.in_flight > 0;
                let lost = self.txn.participants.get(&group).is_none_or(open);
                failure.get_or_insert(error);
                if lost { Event::Lost(group) } else { Event::Failed(group) }
            }
        }
    }

    /// Runs one statement on each of several participants at the same time. Returns the tags of the commands.
    pub async fn run_parallel(&mut self, sql: Vec<(GroupId, String)>) -> Vec<(GroupId, Result<String>)> {
        let mut started = Vec::new();
        for (group, text) in sql {
            let Some(participant) = self.txn.participants.get_mut(&group) else { continue };
            participant.lease.send_query(&text);
            let sent = participant.lease.flush().await;
            started.push((group, sent));
        }
        let mut results = Vec::new();
        for (group, sent) in started {
            let result = match sent {
                Ok(()) if group == COORDINATOR_GROUP => self.collect_started(group).await.map(|end| end.tag),
                Ok(()) => match self.txn.participants.get_mut(&group) {
                    Some(participant) => participant.lease.collect().await.map(|end| end.tag).map_err(Failure::from),
                    None => continue,
                },
                Err(error) => Err(error.into()),
            };
            results.push((group, result));
        }
        results
    }

    pub fn commit_protocol(&self) -> Protocol {
        match self.in_force("citus.multi_shard_commit_protocol") {
            Some(value) if value.eq_ignore_ascii_case("1pc") => Protocol::OnePhase,
            _ => Protocol::TwoPhase,
        }
    }
}

impl LogItem {
    fn to_sql(&self, group: GroupId) -> Option<String> {
        match self {
            LogItem::Savepoint { name, .. } => Some(format!("SAVEPOINT {}", settings::quote_ident(name))),
            LogItem::Set { name, value, local } => Some(settings::assignment(name, value, *local)),
            LogItem::Modes(sql) | LogItem::Raw(sql) => Some(sql.clone()),
            LogItem::Snapshots(ids) => {
                ids.get(&group).map(|id| format!("SET TRANSACTION SNAPSHOT {}", settings::quote_literal(id)))
            }
            LogItem::Anchor(_) => None,
        }
    }

    /// Stands for a subtransaction of the coordinator's own, which only workers are told of.
    fn is_the_coordinators(&self) -> bool {
        matches!(self, LogItem::Savepoint { name, .. } if name.starts_with(crate::callback::SAVEPOINT_PREFIX))
    }

    /// A savepoint that the client has not made.
    pub fn is_ours(&self) -> bool {
        self.is_the_coordinators() || self.is_the_routers()
    }

    fn is_the_routers(&self) -> bool {
        matches!(self, LogItem::Savepoint { name, .. } if name == READ_ONLY || name == PARTS)
    }

    /// A setting that workers are not told of.
    fn is_for_coordinator(&self) -> bool {
        matches!(self, LogItem::Set { name, .. } if !settings::is_for_workers(name))
    }

    /// RESET of a setting.
    pub fn resets(&self, name: &str) -> bool {
        let LogItem::Raw(sql) = self else { return false };
        sql == "RESET ALL" && !settings::outlives_reset_all(name)
            || *sql == format!("RESET {}", settings::quote_setting(name))
    }

    /// The setting that it sets.
    fn sets(&self) -> Option<&str> {
        if let LogItem::Set { name, .. } = self { Some(name) } else { None }
    }

    /// It may change what a statement means.
    pub fn is_setting(&self) -> bool {
        matches!(self, LogItem::Set { .. } | LogItem::Modes(_) | LogItem::Raw(_))
    }

    /// A limit of time that lanes stay below by theirs: what reaches those runs again, under this one.
    pub fn is_long_limit(&self) -> bool {
        let LogItem::Set { name, value, .. } = self else { return false };
        matches!(name.as_str(), "statement_timeout" | "lock_timeout")
            && settings::time(value.trim_matches('\'')).is_some_and(|time| time.is_zero() || time >= LONG_LIMIT)
    }

    /// The same, but for limits and costs: how a statement is run, not what it is.
    pub fn changes_meaning(&self) -> bool {
        self.is_setting() && !matches!(self, LogItem::Set { name, .. } if settings::is_quiet(name))
    }
}

/// Much longer than any limit of a lane's own.
const LONG_LIMIT: Duration = Duration::from_secs(1);

/// For servers that have not heard yet that a transaction is rolled back.
pub const ROLLBACK_WAIT: Duration = Duration::from_secs(1);

/// A transaction that is being committed on several servers.
struct Ending<'a> {
    transaction: &'a str,
    decider: GroupId,
    /// Processes whose answers were lost.
    lost: &'a BTreeMap<GroupId, Process>,
}

impl Ending<'_> {
    fn gid(&self, participant: GroupId) -> Gid {
        Gid { decider: self.decider, transaction: self.transaction.to_owned(), participant }
    }
}

/// A server does not let a role in.
pub fn is_refused_login(failure: &Failure) -> bool {
    matches!(failure, Failure::Statement(fields) if matches!(fields.sqlstate(), "28P01" | "28000"))
}

fn no_answer(group: GroupId) -> Failure {
    Failure::new("08006", format!("node group {group} has not answered"))
}

/// Where a transaction that has written becomes one that only reads: its end writes too.
pub const READ_ONLY: &str = "pgherd_read_only";

/// What a transaction goes back to where parts of a statement fail.
pub const PARTS: &str = "pgherd_parts";

/// The end of a failed transaction answers with the tag ROLLBACK and is no error: the tag is what counts.
pub fn was_done(tag: &str, expected: &str) -> Result<()> {
    match tag == expected {
        true => Ok(()),
        false => Err(Failure::new("25P02", "transaction was aborted on the server")),
    }
}

/// What a constraint says, or a trigger of the user's that stands for one.
fn breaks_constraint(failure: &Failure) -> bool {
    let Failure::Statement(fields) = failure else { return false };
    fields.sqlstate().starts_with("23") || fields.sqlstate() == "P0001"
}

/// The client's cancel request found its statement on its way to a server.
fn cancelled() -> Failure {
    Failure::new("57014", "canceling statement due to user request")
}

/// DISCARD ALL, but for the plans of functions: those of ours are not to be made anew by each session.
const DISCARD: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; DEALLOCATE ALL; UNLISTEN *; \
    SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES";

/// See [`Session::bring_up_to_date`].
pub const QUOTES_NAMES: &str = "quote_all_identifiers";

/// Wipes a connection of everything a session may have left on it.
async fn recycle(connection: &mut Connection) {
    if connection.alone {
        return connection.poison();
    }
    let wiped: std::result::Result<_, BackendError> = connection.query(DISCARD).await;
    match wiped {
        Ok(_) => {
            connection.applied.clear();
            connection.prepared.clear();
            connection.tainted = false;
        }
        Err(_) => connection.poison(),
    }
}

/// The transaction's time, whatever the session's settings are.
pub const CLOCK: &str =
    "SELECT pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.now()), 'YYYY-MM-DD HH24:MI:SS.US') || '+00'";

thread_local! {
    static CLOCK_KEPT: Rc<LaneStatement> = {
        let id = next_id() * 65_536;
        Rc::new(LaneStatement {
            id,
            name: statement_name(id),
            sql: CLOCK.to_owned(),
            param_types: Vec::new(),
            columns: None,
            writes: false,
            shares: false,
        })
    };

    /// Writes the commit record. It makes this commit synchronous, whatever the client chose for its own.
    pub static RECORD: Rc<LaneStatement> = {
        let id = next_id() * 65_536;
        Rc::new(LaneStatement {
            id,
            name: statement_name(id),
            sql: "SELECT pgherd.record_commit($1, $2)".to_owned(),
            param_types: vec![25, 25],
            columns: None,
            writes: true,
            shares: false,
        })
    };
}

/// The rest of a Bind for [`RECORD`] on this connection.
pub fn record_values(lease: &Lease, secret: &str, transaction: &str) -> Vec<u8> {
    let pid = lease.cancel_key.as_ref().map_or(0, |key| key.pid);
    let pass = commit_pass(secret, pid, transaction);
    let mut values = vec![0, 0, 0, 2];
    for value in [transaction, &pass] {
        values.extend_from_slice(&(value.len() as u32).to_be_bytes());
        values.extend_from_slice(value.as_bytes());
    }
    values.extend_from_slice(&[0, 0]);
    values
}

/// 128 random bits in hexadecimal.
pub fn new_transaction_id() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| Failure::new("XX000", format!("no random bytes: {e}")))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
