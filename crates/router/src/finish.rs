//! The end of a transaction over several servers when a connection to one of them is lost or says nothing more. What
//! is prepared is ended on connections of their own, again and again until it is; where it is not known whether the
//! decider has decided, it is asked. Recovery does the same for routers that are gone.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgherd_backend::{BackendError, Connection, QueryResult, Target, connect};
use pgherd_catalog::GroupId;
use pgherd_txn::Gid;
use pgherd_txn::recovery::DeciderSays;
use tokio::sync::watch;

use crate::database::Database;
use crate::settings::quote_literal;
use crate::shared::Shared;

/// Pauses between attempts: the first, and the longest. What a server holds is free this soon after it is well again.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(400);
/// Where it has not been decided: a client may take its time.
const PAUSE_OPEN_MAX: Duration = Duration::from_secs(3);
/// A server that does not answer such a question by then is asked again.
pub const DEADLINE: Duration = Duration::from_secs(2);
/// A server that has said nothing at the end of a transaction for so long is asked what it does.
const QUIET: Duration = Duration::from_secs(2);
/// An answer that was under way is here by then.
const UNDER_WAY: Duration = Duration::from_millis(200);
/// Attempts at one server at the same time.
pub const ATTEMPTS_MAX: usize = 8;

/// One process of a server's: the number may be another's once this one has ended.
#[derive(Debug, Clone)]
pub struct Process {
    pid: i32,
    since: Instant,
}

impl Process {
    pub fn of(connection: &Connection) -> Option<Process> {
        connection.cancel_key.as_ref().map(|key| Process { pid: key.pid, since: connection.since })
    }

    /// Its row of `pg_stat_activity`.
    fn condition(&self) -> String {
        // Clocks need not be the same, only run at the same rate.
        let age = self.since.elapsed().as_secs_f64();
        format!(
            "pid = {} AND backend_start <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => {age:.6})",
            self.pid
        )
    }
}

/// A part of a transaction that is prepared, or may be.
#[derive(Debug)]
pub struct Part {
    pub group: GroupId,
    /// Its answer was lost: it may do yet what it was told.
    pub lost: Option<Process>,
}

pub struct Unfinished {
    pub database: Arc<Database>,
    pub transaction: String,
    pub decider: GroupId,
    /// None: the decider's answer was lost. With its process, if it is known.
    pub committed: Option<bool>,
    pub deciding: Option<Process>,
    pub parts: Vec<Part>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub committed: Option<bool>,
    pub finished: bool,
}

impl Unfinished {
    /// Goes on until it is done, whoever waits for it.
    pub fn start(self, shared: &Arc<Shared>) -> watch::Receiver<Progress> {
        let first = Progress { committed: self.committed, finished: self.parts.is_empty() && self.committed.is_some() };
        let (progress, receiver) = watch::channel(first);
        let shared = shared.clone();
        tokio::spawn(async move { self.run(&shared, &progress).await });
        receiver
    }

    /// The same, and waits for it at most for this long.
    pub async fn finish(self, shared: &Arc<Shared>, at_most: Duration) -> Progress {
        let mut progress = self.start(shared);
        let _ = tokio::time::timeout(at_most, progress.wait_for(|progress| progress.finished)).await;
        *progress.borrow()
    }

    async fn run(&self, shared: &Shared, progress: &watch::Sender<Progress>) {
        let mut pause = PAUSE_MIN;
        let committed = loop {
            if let Some(committed) = self.committed {
                break committed;
            }
            match self.ask(shared).await {
                DeciderSays::Committed => break true,
                DeciderSays::Aborted => break false,
                DeciderSays::Unreachable => rest(&mut pause, PAUSE_MAX).await,
                DeciderSays::InProgress => rest(&mut pause, PAUSE_OPEN_MAX).await,
            }
        };
        progress.send_replace(Progress { committed: Some(committed), finished: false });
        let parts = self.parts.iter().map(|part| self.end(shared, part, committed));
        futures_util::future::join_all(parts).await;
        progress.send_replace(Progress { committed: Some(committed), finished: true });
    }

    async fn ask(&self, shared: &Shared) -> DeciderSays {
        if let Some(process) = &self.deciding {
            // Where it waits for a COMMIT that was lost it would wait for ever, and the question with it.
            let sql = format!(
                "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE {} \
                 AND state LIKE 'idle in%'",
                process.condition()
            );
            if ask_on(shared, &self.database, self.decider, &sql).await.is_err() {
                return DeciderSays::Unreachable;
            }
        }
        ask_decider(shared, &self.database, self.decider, &self.transaction).await
    }

    /// Ends one part.
    async fn end(&self, shared: &Shared, part: &Part, committed: bool) {
        let gid = Gid { decider: self.decider, transaction: self.transaction.clone(), participant: part.group };
        let mut pause = PAUSE_MIN;
        loop {
            match self.try_to_end(shared, part, &gid, committed).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::debug!("{gid} is not ended yet: {error}"),
            }
            rest(&mut pause, PAUSE_MAX).await;
        }
    }

    /// False: it may have to be done again.
    async fn try_to_end(&self, shared: &Shared, part: &Part, gid: &Gid, committed: bool) -> Result<bool, BackendError> {
        let mut over = true;
        if let Some(process) = &part.lost {
            // What it was told to prepare is not to be any more.
            let sql = format!(
                "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE {} \
                 AND state <> 'idle'",
                process.condition()
            );
            over = ask_on(shared, &self.database, part.group, &sql).await?.rows.is_empty();
        }
        let ended = ask_on(shared, &self.database, part.group, &sql_of(gid, committed)).await;
        match ended {
            Ok(_) => {
                tracing::info!("{}", sql_of(gid, committed));
                Ok(true)
            }
            // There is no such transaction: somebody has ended it, or it never was.
            Err(BackendError::Server(fields)) if fields.sqlstate() == "42704" => Ok(over),
            Err(error) => Err(error),
        }
    }
}

async fn rest(pause: &mut Duration, longest: Duration) {
    tokio::time::sleep(*pause).await;
    *pause = (*pause * 2).min(longest);
}

/// The end of a prepared transaction.
pub fn sql_of(gid: &Gid, committed: bool) -> String {
    let verb = if committed { "COMMIT" } else { "ROLLBACK" };
    format!("{verb} PREPARED {}", quote_literal(&gid.to_string()))
}

/// One question to a server, on a connection of its own, with a deadline.
pub async fn ask_on(
    shared: &Shared,
    database: &Database,
    group: GroupId,
    sql: &str,
) -> Result<QueryResult, BackendError> {
    let target = shared.own_target_in(&database.snapshot(), group, &database.name);
    let attempts = shared.attempts_at(&target.address);
    let _turn = attempts.acquire().await;
    ask_at(&target, sql).await
}

async fn ask_at(target: &Target, sql: &str) -> Result<QueryResult, BackendError> {
    let asked = async {
        let mut connection = connect(target).await?;
        let answer = connection.query(sql).await;
        connection.close().await;
        answer
    };
    within(DEADLINE, target, asked).await
}

/// An answer, or that there was none in time.
pub async fn within<T>(
    limit: Duration,
    target: &Target,
    asked: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    match tokio::time::timeout(limit, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(BackendError::Lost {
            address: target.address.to_string(),
            reason: format!("it did not answer within {} s", limit.as_secs_f32()),
            said: None,
        }),
    }
}

/// Whether a transaction was committed. One that was not can never be from now on.
pub async fn ask_decider(shared: &Shared, database: &Database, decider: GroupId, transaction: &str) -> DeciderSays {
    if let Some(number) = pgherd_txn::number_of(transaction) {
        return ask_by_number(shared, database, decider, number).await;
    }
    let sql = format!("SELECT pgherd.record_abort({})", quote_literal(transaction));
    match ask_on(shared, database, decider, &sql).await {
        Ok(result) if result.text(0, 0) == Some("t") => DeciderSays::Aborted,
        Ok(_) => DeciderSays::Committed,
        Err(error) => {
            tracing::debug!("the decider of {transaction} (node group {decider}) does not answer: {error}");
            DeciderSays::Unreachable
        }
    }
}

/// Whatever a server has written of others is on its disk after that, whether they wait for it or not.
pub const FLUSH: &str = "BEGIN; SET LOCAL synchronous_commit TO on; \
     SELECT pg_catalog.pg_logical_emit_message(true, 'pgherd', ''); COMMIT";

/// The same of a transaction of the decider's own. While it is in progress nobody knows.
async fn ask_by_number(shared: &Shared, database: &Database, decider: GroupId, number: u64) -> DeciderSays {
    let sql = format!("SELECT pg_catalog.pg_xact_status('{number}'::pg_catalog.xid8)");
    match ask_on(shared, database, decider, &sql).await.as_ref().map(|found| found.text(0, 0)) {
        // It may have been told not to wait for its disk.
        Ok(Some("committed")) => match ask_on(shared, database, decider, FLUSH).await {
            Ok(_) => DeciderSays::Committed,
            Err(_) => DeciderSays::Unreachable,
        },
        Ok(Some("aborted")) => DeciderSays::Aborted,
        Ok(Some("in progress")) => DeciderSays::InProgress,
        // Of long ago: nobody knows any more.
        Ok(_) => DeciderSays::Unreachable,
        Err(error) => {
            tracing::debug!("the decider of transaction {number} (node group {decider}) does not answer: {error}");
            DeciderSays::Unreachable
        }
    }
}

/// A server from which an answer is awaited that nobody else bounds.
pub struct Awaited {
    pub shared: Arc<Shared>,
    pub database: Arc<Database>,
    pub group: GroupId,
    pub process: Option<Process>,
    /// How long it may be out of reach.
    pub at_most: Duration,
}

impl Awaited {
    /// The answer. None: it will not come. A server that works at it may take its time.
    pub async fn answer<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        let mut unheard_since = Instant::now();
        loop {
            if let Ok(answer) = tokio::time::timeout(QUIET, answer.as_mut()).await {
                return Some(answer);
            }
            match Box::pin(self.works_at_it()).await {
                Ok(true) => unheard_since = Instant::now(),
                Ok(false) => return tokio::time::timeout(UNDER_WAY, answer).await.ok(),
                Err(_) if unheard_since.elapsed() < self.at_most => {}
                Err(_) => return None,
            }
        }
    }

    async fn works_at_it(&self) -> Result<bool, BackendError> {
        let Some(process) = &self.process else { return Ok(true) };
        let sql = format!("SELECT FROM pg_catalog.pg_stat_activity WHERE {} AND state = 'active'", process.condition());
        let target = self.shared.own_target_in(&self.database.snapshot(), self.group, &self.database.name);
        Ok(!ask_at(&target, &sql).await?.rows.is_empty())
    }
}
