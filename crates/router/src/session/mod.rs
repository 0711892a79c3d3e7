//! One client's session: its state, its main loop and the end of it. What a message does is in [`simple`] and
//! [`extended`]; what a statement does is in `run`.

mod context;
mod extended;
mod fetch;
mod in_block;
mod lists;
mod moving;
mod prepared;
mod ride;
mod rows;
mod simple;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use pgherd_backend::{Address, BackendError, Claim, Credentials, Lease, Target};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Snapshot};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;
use tokio::sync::mpsc;
use tokio::time::{Sleep, sleep};

pub use context::LaneContext;
pub use extended::{Bound, Portal, Progress, aborted, ends_block, is_planned};
pub use moving::Seed;
pub use prepared::{Named, Planning, Prepared, next_id, time_text};
pub(crate) use ride::name_there;

use ride::Attempt;

use crate::callback::{CallbackReceiver, CallbackSender, Cursors};
use crate::callers::Caller;
use crate::cancel::CancelState;
use crate::changes::Readers;
use crate::client::{Arrival, Client};
use crate::database::Database;
use crate::encoding::ClientEncoding;
use crate::error::{Failure, Result};
use crate::rights::CopyRights;
use crate::run::Definitions;
use crate::settings::{Initial, Settings};
use crate::shared::{Seat, Thread};
use crate::transaction::{Block, KNOWN_CHANGES, LogItem, Transaction, is_refused_login};

/// Batches of one callback connection that may wait: it sends one and waits for the answer.
const CALLBACK_QUEUE: usize = 16;

/// For the ROLLBACK of a client that has gone.
const ROLLBACK_WAIT: Duration = Duration::from_secs(5);

/// Resolved search paths that a thread keeps.
const SEARCH_PATHS_MAX: usize = 2000;

/// What startup found out about a client.
pub struct NewSession {
    pub user: String,
    pub database: Arc<Database>,
    pub credentials: Credentials,
    pub settings: Settings,
    /// The client's, by PostgreSQL's name.
    pub encoding: ClientEncoding,
    /// Protocol 3.2: a cancel key of 32 bytes in place of 4.
    pub long_cancel_key: bool,
    pub seat: Seat,
}

pub struct Session {
    pub client: Client,
    pub thread: Rc<Thread>,
    pub db: Arc<Database>,
    pub user: String,
    pub(crate) credentials: Credentials,
    /// What the client has set, at session level or inside the open block.
    pub settings: Settings,
    /// What it gave when it connected: RESET goes back to this.
    pub startup_settings: Settings,
    pub search_path: Option<Rc<Vec<String>>>,
    pub statements: HashMap<String, Named>,
    pub portals: HashMap<String, Portal>,
    /// Cursors of DECLARE by name, where the coordinator was not given the client's text as it stood.
    pub declared_cursors: HashMap<String, DeclaredCursor>,
    /// Prepared statements that the session's coordinator connection has under the client's names.
    pub there: HashSet<String>,
    pub txn: Transaction,
    /// The session has state that only its own coordinator connection has (temporary tables, LISTEN, …).
    pub pin: bool,
    /// Settings that the statement makes which is about to run on the coordinator.
    pub making: Vec<String>,
    /// What bodies leave on the coordinator was asked for, in the statement that runs now.
    pub noticed: bool,
    /// NOWAIT or SKIP LOCKED of the statement that the coordinator runs now, for its scans of distributed tables.
    pub lock_wait: Option<&'static str>,
    /// The statement is the last of its Query: what comes next is its commit, where the block is ours.
    pub last_of_query: bool,
    /// How deep in parts of statements the statement is that is being planned.
    pub parts_within: usize,
    /// By what servers do not join for the part that is being run, which reads others.
    pub part_avoids: &'static [&'static str],
    pub pinned: Option<Lease>,
    /// Names of temporary relations: they hide tables of the same name.
    pub temp: HashSet<String>,
    /// Made when the coordinator is first asked.
    pub callbacks: Option<(CallbackSender, CallbackReceiver)>,
    /// Whose callbacks come here: those of its connections to the coordinator.
    pub(crate) callers: Vec<Caller>,
    /// Cursors that the coordinator's foreign tables have open.
    pub cursors: Cursors,
    /// Definitions that SQL inside the coordinator makes.
    pub definitions: Definitions,
    pub readers: Readers,
    pub copy_rights: CopyRights,
    pub cancel: Arc<CancelState>,
    /// As the coordinator reports it.
    pub server_version: Rc<str>,
    /// What its settings were when it began.
    pub initial: Rc<Initial>,
    /// Settings are being put back: what the coordinator had reported before, and the client knows.
    pub reported: Option<BTreeMap<String, String>>,
    /// Defaults that have changed since may be others.
    generation: u64,
    /// What the short way inside a block has run to its end as the unnamed portal, from Bind on.
    ran_in_block: Option<Rc<Prepared>>,
    bind_in_block: Vec<u8>,
    pid: i32,
    seat: Seat,
    /// After an error in the extended protocol: messages are skipped until Sync.
    skip_until_sync: bool,
    /// When the first message of a pipeline came, or the first behind an Execute.
    pipeline_began: Option<Instant>,
    /// The Execute that waits to learn whether Sync follows it.
    pending: Option<extended::Pending>,
    /// Something has been executed since the last Sync.
    pipelines: bool,
    /// The lanes that this session's statements ride on, for these settings.
    context: Option<(Settings, Rc<LaneContext>)>,
    /// What is on a lane right now.
    riding: Option<Rc<ride::Ridden>>,
    /// The messages at hand came back from a lane: they go the long way, up to their end.
    no_ride: bool,
    /// How often the statement at hand came back because others held it up.
    held_up: u8,
    /// It came from another thread, and has served nothing since.
    moved: bool,
    /// What the router has drawn for it last of each sequence.
    pub(crate) drawn: Vec<pgherd_planner::LastDrawn>,
    /// The same of any sequence.
    pub(crate) last_drawn: Option<pgherd_planner::LastOne>,
    /// What the coordinator's connection is marked with on which it drew last.
    pub(crate) draws_mark: u64,
    /// Where its client is.
    client_end: pgherd_planner::ClientEnd,
    /// The statement at hand leaves nothing on the coordinator's connection that others would see, and is kept there
    /// under this number.
    pub(crate) kept_there: Option<u64>,
    /// The statement at hand is to be run without values of the router.
    pub(crate) gives_nothing: bool,
    pub encoding: ClientEncoding,
}

/// What `pg_cursors` shows of a cursor that the coordinator cannot know.
pub struct DeclaredCursor {
    /// What the client sent.
    pub source: String,
    /// WITH HOLD: it outlives its transaction.
    pub hold: bool,
    /// Committed: no rollback takes it away.
    pub kept: bool,
    /// How long the transaction's log was: a rollback to a savepoint behind that takes it away.
    pub log: usize,
    /// Its rows may be named by WHERE CURRENT OF.
    pub followed: Option<crate::run::Followed>,
}

/// Why a session is served no more, here.
enum Ended {
    Left,
    /// It goes to this thread.
    Moves(usize),
}

/// What woke an idle session.
enum Wake {
    Arrival(Arrival),
    /// The pinned coordinator connection said something by itself.
    Notice(Frame),
    Shutdown,
}

impl Session {
    /// Greets the client. The coordinator checks its settings and says what the session's parameters are.
    pub async fn start(
        thread: Rc<Thread>,
        client: Client,
        new: NewSession,
    ) -> std::result::Result<Session, (Client, Failure)> {
        let pid = thread.shared.new_pid();
        let long_cancel_key = new.long_cancel_key;
        let mut session = Session::new(thread, client, new, pid, Arc::default());
        match session.greet(long_cancel_key).await {
            Ok(()) => {
                session.thread.add_link(session.pid, &session.client.link, &session.cancel);
                session.db.enter();
                Ok(session)
            }
            Err(failure) => {
                session.thread.shared.unregister_cancel(pid);
                Err((session.client, failure))
            }
        }
    }

    fn new(thread: Rc<Thread>, client: Client, new: NewSession, pid: i32, cancel: Arc<CancelState>) -> Session {
        let client_end = pgherd_planner::ClientEnd(client.link.stream().peer_addr().ok());
        Session {
            client,
            thread,
            db: new.database,
            user: new.user,
            credentials: new.credentials,
            encoding: new.encoding,
            startup_settings: new.settings.clone(),
            settings: new.settings,
            search_path: None,
            statements: HashMap::new(),
            portals: HashMap::new(),
            declared_cursors: HashMap::new(),
            there: HashSet::new(),
            txn: Transaction::new(),
            pin: false,
            lock_wait: None,
            last_of_query: false,
            making: Vec::new(),
            noticed: false,
            parts_within: 0,
            part_avoids: &[],
            pinned: None,
            temp: HashSet::new(),
            callbacks: None,
            callers: Vec::new(),
            cursors: Cursors::default(),
            definitions: Definitions::default(),
            readers: Readers::default(),
            copy_rights: CopyRights::default(),
            cancel,
            server_version: Rc::from(""),
            initial: Rc::default(),
            reported: None,
            generation: 0,
            ran_in_block: None,
            bind_in_block: Vec::new(),
            pid,
            seat: new.seat,
            skip_until_sync: false,
            pipeline_began: None,
            pending: None,
            pipelines: false,
            context: None,
            riding: None,
            no_ride: false,
            held_up: 0,
            moved: false,
            drawn: Vec::new(),
            last_drawn: None,
            draws_mark: 0,
            client_end,
            kept_there: None,
            gives_nothing: false,
        }
    }

    async fn greet(&mut self, long_cancel_key: bool) -> Result<()> {
        self.generation = self.thread.shared.generation();
        match self.thread.greeting(&self.user, &self.db.name, &self.settings) {
            Some(greeting) => {
                // One set of settings for all that have the same.
                self.settings = greeting.settings.clone();
                self.startup_settings = greeting.settings.clone();
                self.server_version = greeting.server_version.clone();
                self.initial = greeting.initial.clone();
                self.client.out.extend_from_slice(&greeting.parameters);
            }
            None => self.ask_for_greeting().await?,
        }
        self.follow_encoding();
        self.tell_encoding();
        let mut key = vec![0u8; if long_cancel_key { 32 } else { 4 }];
        getrandom::fill(&mut key).map_err(|e| Failure::fatal("XX000", format!("no random bytes: {e}")))?;
        backend::write_backend_key_data(&mut self.client.out, self.pid, &key);
        self.cancel.is_of(&self.user);
        let peer = self.client.link.stream().peer_addr().ok();
        self.cancel.activity.start(&self.db.name, self.settings.get("application_name").map(String::as_str), peer);
        self.thread.shared.register_cancel(self.pid, key, self.cancel.clone());
        backend::write_ready_for_query(&mut self.client.out, b'I');
        self.client.flush().await
    }

    /// Others are shown that it runs this.
    fn show_running(&self, query: &str) {
        self.cancel.activity.begin(query, self.settings.get("application_name").map(String::as_str));
    }

    /// The number of its process, as far as the client knows.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// PostgreSQL reads what a client gives when it connects before the role's and the database's settings: what a
    /// DateStyle leaves open is the server's then, not theirs.
    async fn complete_startup_dates(&mut self) {
        let Some(name) = self.settings.keys().find(|name| name.eq_ignore_ascii_case("datestyle")).cloned() else {
            return;
        };
        let given = self.settings.get(&name).cloned().unwrap_or_default();
        if given.contains(',') {
            return;
        }
        let sql = format!(
            "SELECT pg_catalog.set_config('datestyle', coalesce((SELECT f.setting FROM pg_catalog.pg_file_settings f \
                 WHERE f.name ILIKE 'datestyle' AND f.applied ORDER BY f.seqno DESC LIMIT 1), s.boot_val), true), \
                 pg_catalog.set_config('datestyle', {}, true) FROM pg_catalog.pg_settings s \
             WHERE s.name ILIKE 'datestyle' AND EXISTS (SELECT FROM pg_catalog.pg_db_role_setting r, \
                 pg_catalog.unnest(r.setconfig) c(setting) WHERE c.setting ILIKE 'datestyle=%')",
            crate::settings::quote_literal(&given)
        );
        let Ok(mut own) = pgherd_backend::connect(&self.thread.shared.own_target(&self.db.name)).await else {
            return;
        };
        // Where it is refused the session's own connection says so.
        let found = own.query(&sql).await;
        own.close().await;
        if let Some(whole) = found.ok().as_ref().and_then(|found| found.text(0, 1)) {
            self.settings.insert(name, whole.to_owned());
            self.startup_settings = self.settings.clone();
        }
    }

    /// The coordinator checks the settings and says what the session's parameters are.
    async fn ask_for_greeting(&mut self) -> Result<()> {
        for (name, value) in &self.settings {
            crate::settings::check_own(name, Some(value))?;
        }
        let asked = (self.thread.shared.generation(), Instant::now());
        let given = self.settings.clone();
        self.complete_startup_dates().await;
        self.join(COORDINATOR_GROUP).await?;
        let mut participant = self.take(COORDINATOR_GROUP)?;
        // A query brings back the error of a setting that the server refuses.
        let checked = participant.lease.query(Initial::SQL).await;
        self.initial = Rc::new(checked.as_ref().map(Initial::read).unwrap_or_default());
        let version = participant.lease.parameters.get("server_version");
        self.server_version = Rc::from(version.map_or("", String::as_str));
        let begin = self.client.out.len();
        for (name, value) in &participant.lease.parameters {
            // The encoding of every server connection is UTF8; what the client's is comes behind.
            backend::write_parameter_status(&mut self.client.out, name, value);
        }
        self.put_back(COORDINATOR_GROUP, participant);
        self.release_autocommit().await;
        checked?;
        let parameters = &self.client.out[begin..];
        let who = (self.user.as_str(), self.db.name.as_str());
        let found = (&self.server_version, &self.initial);
        self.thread.remember_greeting(who, (&given, &self.settings), asked, found, parameters);
        Ok(())
    }

    /// Where the coordinator's callbacks to this session are sent.
    pub fn callback_sender(&mut self) -> CallbackSender {
        self.callbacks.get_or_insert_with(|| mpsc::channel(CALLBACK_QUEUE)).0.clone()
    }

    /// Serves the client until it leaves, or the session goes to another thread.
    pub async fn run(mut self) -> Option<(Seed, usize)> {
        let cancel = self.cancel.clone();
        let ended = tokio::select! {
            biased;
            ended = self.serve() => ended,
            () = cancel.abandoned() => Err(match cancel.is_terminated() {
                true => Failure::fatal("57P01", "terminating connection due to administrator command"),
                false => Failure::ClientGone,
            }),
        };
        match ended {
            Ok(Ended::Moves(to)) => return self.into_seed().map(|seed| (seed, to)),
            Err(Failure::Fatal(fields)) => {
                backend::write_error(&mut self.client.out, &fields);
                let _ = self.client.flush().await;
            }
            Ok(Ended::Left) | Err(_) => {}
        }
        // Statements of a client that went away are interrupted, open transactions rolled back.
        if self.txn.participants.values().any(|p| p.lease.in_flight > 0) {
            self.cancel.cancel_all().await;
        }
        for participant in self.txn.participants.values_mut() {
            if participant.lease.in_flight > 0 {
                participant.lease.poison();
            }
        }
        if tokio::time::timeout(ROLLBACK_WAIT, self.rollback()).await.is_err() {
            // Servers that do not answer roll back when they find the connection closed.
            self.txn.participants.values_mut().for_each(|participant| participant.lease.poison());
        }
        self.unpin().await;
        self.unregister_callers();
        self.db.leave();
        self.thread.remove_link(self.pid);
        self.thread.shared.unregister_cancel(self.pid);
        None
    }

    async fn serve(&mut self) -> Result<Ended> {
        loop {
            match self.wait().await? {
                Wake::Arrival(Arrival::Message) => {
                    // A client whose messages are all here already leaves the others their turn.
                    tokio::task::consume_budget().await;
                    if self.riding.take().is_some() {
                        // The one before ended well, and a cancel that was meant for it came too late.
                        self.held_up = 0;
                        self.cancel.finish();
                    }
                    if self.generation != self.thread.shared.generation() && self.txn.block == Block::None {
                        Box::pin(self.keep_initial()).await;
                    }
                    // What brought it here is served here.
                    if !std::mem::take(&mut self.moved)
                        && self.thread.placement.is_leaving(self.thread.index)
                        && self.can_move()
                        && let Some(to) = self.thread.placement.take_leave(self.thread.index)
                    {
                        return Ok(Ended::Moves(to));
                    }
                    match self.try_ride() {
                        Attempt::Away => {}
                        Attempt::Incomplete => self.client.fill().await?,
                        Attempt::No if self.run_in_block().await? => {}
                        Attempt::No => {
                            let Some(frame) = self.client.take_frame()? else { continue };
                            self.cancel.begin();
                            match frame.tag() {
                                b'X' => return Ok(Ended::Left),
                                b'Q' => Box::pin(self.query_message(&frame)).await?,
                                _ => Box::pin(self.extended_message(&frame)).await?,
                            }
                            if !self.no_ride && self.pending.is_none() {
                                self.cancel.finish();
                            }
                        }
                    }
                }
                Wake::Arrival(Arrival::Back(again)) => self.after_ride(again),
                Wake::Arrival(Arrival::Lost) => {
                    self.riding = None;
                    if let Failure::Statement(fields) = Self::lost_ride() {
                        backend::write_error(&mut self.client.out, &fields);
                    }
                    self.ready().await?;
                }
                // What a server says unasked and is an error is its goodbye.
                Wake::Notice(frame) if frame.tag() == b'E' => {
                    return Err(Failure::Fatal(Box::new(backend::parse_error(&frame)?)));
                }
                Wake::Notice(frame) => {
                    let frame = self.of_session(&frame);
                    self.client.forward(&frame);
                    self.client.flush().await?;
                }
                Wake::Shutdown => {
                    return Err(Failure::fatal("57P01", "terminating connection due to administrator command"));
                }
            }
        }
    }

    /// The next message from the client, or whatever else an idle session reacts to.
    async fn wait(&mut self) -> Result<Wake> {
        let idle = self.txn.block == Block::None && self.pending.is_none();
        // Made once it turns out that the session has to wait.
        let mut limit: Option<(Failure, Duration, Pin<Box<Sleep>>)> = None;
        let mut looked = false;
        std::future::poll_fn(|cx| {
            if let Poll::Ready(arrival) = self.client.poll_arrival(cx) {
                return Poll::Ready(arrival.map(Wake::Arrival));
            }
            if !std::mem::replace(&mut looked, true) {
                limit = self.idle_limit().map(|(failure, limit)| (failure, limit, Box::pin(sleep(limit))));
            }
            if let Some((failure, limit, timer)) = &mut limit {
                while timer.as_mut().poll(cx).is_ready() {
                    if !self.client.is_away() {
                        return Poll::Ready(Err(std::mem::replace(failure, Failure::ClientGone)));
                    }
                    timer.as_mut().reset(tokio::time::Instant::now() + *limit);
                }
            }
            if !idle {
                return Poll::Pending;
            }
            if let Some(lease) = &mut self.pinned
                && let Poll::Ready(notice) = pin!(lease.frame()).poll(cx)
            {
                return Poll::Ready(notice.map(Wake::Notice).map_err(|e| {
                    let mut fields = match &e {
                        BackendError::Lost { said: Some(said), .. } => (**said).clone(),
                        _ => e.to_fields(),
                    };
                    fields.set(b'S', "FATAL");
                    fields.set(b'V', "FATAL");
                    Failure::Fatal(Box::new(fields))
                }));
            }
            if self.thread.is_stopping() && !self.client.is_away() {
                return Poll::Ready(Ok(Wake::Shutdown));
            }
            Poll::Pending
        })
        .await
    }

    /// How long the client may say nothing, and what it is told then. Servers would measure each its own part of the
    /// session.
    fn idle_limit(&self) -> Option<(Failure, Duration)> {
        let (name, sqlstate, what) = match self.txn.block {
            Block::None => ("idle_session_timeout", "57P05", "idle-session"),
            _ => ("idle_in_transaction_session_timeout", "25P03", "idle-in-transaction"),
        };
        let limit = self.in_force(name).filter(|limit| *limit != "0").and_then(crate::settings::time)?;
        if limit.is_zero() {
            return None;
        }
        Some((Failure::fatal(sqlstate, format!("terminating connection due to {what} timeout")), limit))
    }

    /// ReadyForQuery, and everything before it leaves.
    async fn ready(&mut self) -> Result<()> {
        self.no_ride = false;
        self.held_up = 0;
        self.pipelines = false;
        self.pipeline_began = None;
        self.cancel.finish();
        self.cancel.activity.rest(self.txn.status());
        self.tell_encoding();
        backend::write_ready_for_query(&mut self.client.out, self.txn.status());
        self.client.flush().await
    }

    /// The catalog this session plans with: its own transaction's where that changed it.
    pub fn catalog(&self) -> Arc<Snapshot> {
        self.txn.catalog.clone().unwrap_or_else(|| self.db.snapshot())
    }

    /// After DDL inside a block: what the transaction sees now.
    pub async fn reload_catalog_in_block(&mut self) -> Result<()> {
        self.load_catalog_in_block().await?;
        // A table is distributed, or has a name, that it did not have when they were defined.
        if !self.catalog().sampling_functions.is_empty() {
            self.let_all_functions_sample().await?;
            self.load_catalog_in_block().await?;
        }
        Ok(())
    }

    pub async fn load_catalog_in_block(&mut self) -> Result<()> {
        let base = self.catalog();
        let known = base.changed_here.clone();
        let loaded = if self.definitions.is_asked() {
            crate::load::load(self, Some(&base)).await?
        } else {
            self.join(COORDINATOR_GROUP).await?;
            let mut participant = self.take(COORDINATOR_GROUP)?;
            // Metadata is readable by everyone; what the user may not see of the system catalogs does not matter here.
            let loaded = crate::load::load(&mut *participant.lease, Some(&base)).await;
            self.put_back(COORDINATOR_GROUP, participant);
            loaded?
        };
        if loaded.changed_here != known {
            let (name, value) = (KNOWN_CHANGES.to_owned(), loaded.changed_here.clone());
            self.log(LogItem::Set { name, value, local: true });
        }
        self.txn.catalog = Some(Arc::new(loaded));
        self.txn.catalog_lags = false;
        self.search_path = None;
        Ok(())
    }

    /// Before a statement is looked at: what definitions before it in its transaction have left to be read, unless it
    /// does not matter for this one. What others have changed meanwhile always does.
    pub async fn catch_up(&mut self, kind: Option<&pgherd_sql::StatementKind>) -> Result<()> {
        if !self.txn.catalog_lags || self.txn.block == Block::Failed {
            return Ok(());
        }
        let matters = kind.is_none_or(|kind| !crate::run::needs_no_news(kind));
        if matters || self.db.snapshot().epoch > self.catalog().epoch {
            self.check_none_ended()?;
            Box::pin(self.reload_catalog_in_block()).await?;
        }
        Ok(())
    }

    /// A setting's value where somebody has set it: in the open block, for the session, or before it began.
    pub fn in_force(&self, name: &str) -> Option<&str> {
        let of_session = || self.settings.get(name).map(String::as_str);
        self.in_force_here(name).or_else(of_session).or_else(|| self.initial.get(name))
    }

    /// What the open block has set it to.
    fn in_force_here(&self, name: &str) -> Option<&str> {
        let last = self.txn.log.iter().rev().find_map(|item| match item {
            LogItem::Set { name: set, value, .. } if set == name => Some(Some(value.as_str())),
            item if item.resets(name) => Some(None),
            _ => None,
        });
        last.flatten()
    }

    /// After defaults of roles or databases have changed: this session keeps those that it began with.
    async fn keep_initial(&mut self) {
        self.generation = self.thread.shared.generation();
        // Its own connection, where it has one, was made before.
        let now = match self.coordinator_lease().await {
            Ok(mut lease) => lease.query(Initial::SQL).await.map(|shown| Initial::read(&shown)).unwrap_or_default(),
            Err(_) => Initial::default(),
        };
        let initial = self.initial.clone();
        for (name, value) in initial.iter().filter(|(name, value)| now.get(name) != Some(value)) {
            if self.settings.get(name).is_none() {
                self.settings.insert(name.clone(), value.clone());
                self.startup_settings.insert(name.clone(), value.clone());
            }
        }
    }

    /// Where a group's server is and who this client is there.
    pub fn target(&self, group: GroupId) -> Result<Target> {
        let shared = &self.thread.shared;
        let (address, parameters, label) = if group == COORDINATOR_GROUP {
            let url = &shared.config.coordinator;
            let token = crate::callback::new_token()?;
            // Definitions inside are told of where there is a router to hear. Where the kernel tells who calls back,
            // the name is the user's to set.
            let option = match shared.callers.is_local() {
                true => "-c pgherd.routed=on".to_owned(),
                false => {
                    format!("-c pgherd.routed=on -c postgres_fdw.application_name={}{token}", crate::callback::PREFIX)
                }
            };
            let options = vec![("options".to_owned(), option)];
            (Address { host: url.host.clone(), port: url.port }, options, Some(token))
        } else {
            let catalog = self.catalog();
            let node = catalog
                .node_of_group(group)
                .ok_or_else(|| Failure::new("58000", format!("node group {group} is not known")))?;
            let options = ("options".to_owned(), crate::settings::NEVER_IDLE.to_owned());
            (Address { host: node.host.clone(), port: node.port }, vec![options], None)
        };
        let credentials = match (&self.credentials, &shared.config.worker_password) {
            (Credentials::Password(_), Some(password)) if group != COORDINATOR_GROUP => {
                Credentials::Password(password.clone())
            }
            (credentials, _) => credentials.clone(),
        };
        Ok(Target { address, user: self.user.clone(), database: self.db.name.clone(), credentials, parameters, label })
    }

    /// Schemas that an unqualified name is looked up in, as the coordinator resolves the session's setting.
    pub async fn search_path(&mut self) -> Result<Rc<Vec<String>>> {
        if let Some(path) = &self.search_path {
            return Ok(path.clone());
        }
        let setting = self.settings.get("search_path").cloned().unwrap_or_default();
        let role = self.settings.get("role").cloned().unwrap_or_default();
        let key = (self.db.name.clone(), format!("{} {role}", self.user), setting);
        let generation = self.thread.shared.generation() ^ ((self.db.snapshot().epoch as u64) << 20);
        // SET LOCAL and its like are not in the session's settings: the coordinator's own connection knows.
        let local = self.txn.log.iter().any(|item| match item {
            LogItem::Set { name, .. } => matches!(name.as_str(), "search_path" | "role" | "session_authorization"),
            LogItem::Raw(sql) => {
                let sql = sql.trim_start().to_ascii_lowercase();
                !["set transaction", "set constraints"].iter().any(|of_transaction| sql.starts_with(of_transaction))
            }
            LogItem::Savepoint { .. } | LogItem::Modes(_) | LogItem::Snapshots(_) | LogItem::Anchor(_) => false,
        });
        let cacheable = self.txn.catalog.is_none() && !self.pin && !local && !self.definitions.is_asked();
        if cacheable
            && let Some((seen, path)) = self.thread.search_paths.borrow().get(&key)
            && *seen == generation
        {
            self.search_path = Some(path.clone());
            return Ok(path.clone());
        }
        let result = self.ask_coordinator("SELECT unnest(pg_catalog.current_schemas(true))").await?;
        let path: Vec<String> =
            (0..result.rows.len()).filter_map(|row| result.text(row, 0).map(str::to_owned)).collect();
        let path = Rc::new(path);
        if cacheable {
            let mut known = self.thread.search_paths.borrow_mut();
            if known.len() >= SEARCH_PATHS_MAX {
                known.clear();
            }
            known.insert(key, (generation, path.clone()));
        }
        self.search_path = Some(path.clone());
        Ok(path)
    }

    /// The next statement resolves the search path again.
    pub fn forget_search_path(&mut self) {
        self.search_path = None;
    }

    /// Runs a query of ours on the coordinator: inside the open block if the coordinator takes part in it, else on a
    /// connection of its own for the moment.
    pub async fn ask_coordinator(&mut self, sql: &str) -> Result<pgherd_backend::QueryResult> {
        if self.definitions.is_asked() {
            return self.collect_on(COORDINATOR_GROUP, sql).await;
        }
        let takes_part = self.txn.participants.contains_key(&COORDINATOR_GROUP) || self.txn.catalog.is_some();
        if takes_part || self.pinned.is_some() || self.txn.block == Block::None {
            self.join(COORDINATOR_GROUP).await?;
            let result = self.collect_on(COORDINATOR_GROUP, sql).await;
            self.release_autocommit().await;
            return result;
        }
        let mut lease = self.coordinator_lease().await?;
        Ok(lease.query(sql).await?)
    }

    /// A coordinator connection beside the transaction's own, with the session's settings.
    pub async fn coordinator_lease(&mut self) -> Result<Lease> {
        self.lease_aside(COORDINATOR_GROUP).await
    }

    /// The same, and what the open block has set for itself alone of `names`; with the block's end to be sent.
    pub async fn coordinator_lease_in_block(&mut self, names: &[&str]) -> Result<(Lease, bool)> {
        let mut lease = self.coordinator_lease().await?;
        let mut sql = String::new();
        for name in names {
            let Some(value) = self.in_force_here(name) else { continue };
            sql.push_str(if sql.is_empty() { "BEGIN;" } else { ";" });
            sql.push_str(&crate::settings::assignment(name, value, true));
        }
        if sql.is_empty() {
            return Ok((lease, false));
        }
        lease.query(&sql).await?;
        Ok((lease, true))
    }

    /// The same on any server.
    pub async fn lease_aside(&mut self, group: GroupId) -> Result<Lease> {
        match self.try_lease_aside(group).await {
            Err(failure) if is_refused_login(&failure) => {
                Box::pin(self.let_in(group, failure)).await?;
                self.try_lease_aside(group).await.map_err(|failure| self.no_login(group, failure))
            }
            other => other,
        }
    }

    /// A coordinator connection that runs nothing but what draws from sequences: `currval` is not asked for there.
    pub async fn lease_to_draw(&mut self) -> Result<Lease> {
        let mut target = self.target(COORDINATOR_GROUP)?;
        (target.label, target.parameters) = (None, Vec::new());
        self.lease_of(&target, COORDINATOR_GROUP).await
    }

    async fn try_lease_aside(&mut self, group: GroupId) -> Result<Lease> {
        let target = self.target(group)?;
        self.lease_of(&target, group).await
    }

    async fn lease_of(&mut self, target: &Target, group: GroupId) -> Result<Lease> {
        let wanted = &self.settings;
        let mut lease = self.thread.pool().lease(target, Claim::Aside, |name| wanted.contains_key(name)).await?;
        let difference = crate::settings::difference(&lease.applied, &self.settings, group != COORDINATOR_GROUP);
        if !difference.is_empty() {
            lease.query(&difference).await?;
            lease.applied = self.settings.clone();
        }
        crate::settings::note_made(&mut lease, self.settings.keys().map(String::as_str));
        Ok(lease)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use pgherd_wire::Frame;

    use super::Session;

    fn size_of<'a, F: Future + 'a>(_: impl Fn(&'a mut Session, &'a Frame) -> F) -> usize {
        std::mem::size_of::<F>()
    }

    /// The future of each message is copied into its box, room for what it may await included: branches that are not
    /// of the short way belong in boxes of their own.
    #[test]
    fn futures_of_messages_are_small() {
        assert!(size_of(Session::extended_message) <= 4096, "{}", size_of(Session::extended_message));
        assert!(size_of(Session::query_message) <= 8192, "{}", size_of(Session::query_message));
    }
}
