//! What `pg_stat_activity` tells of this router's sessions: they are known to their clients by numbers of the router's
//! own, and servers have what they run in pieces.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;

use crate::session::time_text;
use crate::shared::Shared;

/// As much of a statement as is kept: PostgreSQL's `track_activity_query_size`, less the end of the string.
const QUERY_MAX: usize = 1023;
/// Outside of a transaction block.
const IDLE: u8 = b'I';
/// In one that failed.
const FAILED: u8 = b'E';

/// Of one session. What goes by a lane is not written down: a session with nothing else is idle or active.
#[derive(Debug, Default)]
pub struct Activity(Mutex<Shown>);

#[derive(Debug, Clone)]
struct Shown {
    database: String,
    application: String,
    address: Option<IpAddr>,
    port: u16,
    began: SystemTime,
    transaction: Option<SystemTime>,
    query_began: Option<SystemTime>,
    changed: SystemTime,
    /// As ReadyForQuery says it.
    status: u8,
    active: bool,
    query: String,
}

impl Default for Shown {
    fn default() -> Self {
        Shown {
            database: String::new(),
            application: String::new(),
            address: None,
            port: 0,
            began: SystemTime::UNIX_EPOCH,
            transaction: None,
            query_began: None,
            changed: SystemTime::UNIX_EPOCH,
            status: IDLE,
            active: false,
            query: String::new(),
        }
    }
}

impl Activity {
    /// The client has logged in.
    pub fn start(&self, database: &str, application: Option<&str>, peer: Option<std::net::SocketAddr>) {
        let now = SystemTime::now();
        let mut shown = self.lock();
        shown.database = database.to_owned();
        shown.application = application.unwrap_or_default().to_owned();
        shown.address = peer.map(|peer| peer.ip());
        shown.port = peer.map_or(0, |peer| peer.port());
        (shown.began, shown.changed) = (now, now);
    }

    /// A statement begins.
    pub fn begin(&self, query: &str, application: Option<&str>) {
        let now = SystemTime::now();
        let mut end = query.len().min(QUERY_MAX);
        while !query.is_char_boundary(end) {
            end -= 1;
        }
        let query = &query[..end];
        let mut shown = self.lock();
        shown.active = true;
        shown.changed = now;
        shown.query_began = Some(now);
        if shown.status != FAILED {
            shown.transaction.get_or_insert(now);
        }
        if shown.query != query {
            shown.query.clear();
            shown.query.push_str(query);
        }
        if let Some(application) = application
            && shown.application != application
        {
            shown.application = application.to_owned();
        }
    }

    /// The client has its answer.
    pub fn rest(&self, status: u8) {
        let mut shown = self.lock();
        if shown.active || shown.status != status {
            shown.active = false;
            shown.status = status;
            shown.changed = SystemTime::now();
        }
        if matches!(status, IDLE | FAILED) {
            shown.transaction = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's row, as `pgherd.sessions()` reads it.
#[derive(Serialize)]
struct Row {
    pid: i32,
    usename: String,
    datname: String,
    application_name: String,
    client_addr: Option<String>,
    client_port: Option<u16>,
    backend_start: String,
    xact_start: Option<String>,
    query_start: Option<String>,
    state_change: String,
    state: &'static str,
    query: String,
    waits_for: BTreeSet<i32>,
    /// Its processes on the coordinator.
    here: Vec<i32>,
}

/// All sessions as JSON, with the sessions that each waits for on some server.
pub async fn sessions(shared: &Shared) -> String {
    let waits = shared.waits.of(shared).await;
    let coordinator = shared.own_target("").address;
    let rows: Vec<Row> = shared
        .cancel_states()
        .into_iter()
        .filter_map(|(pid, state)| {
            let usename = state.user()?.to_owned();
            let shown = state.activity.lock().clone();
            let targets = state.targets().into_iter().filter(|(address, _)| *address == coordinator);
            let here = targets.map(|(_, key)| key.pid).collect();
            let state = match (shown.active || state.is_busy(), shown.status) {
                (true, _) => "active",
                (false, IDLE) => "idle",
                (false, FAILED) => "idle in transaction (aborted)",
                (false, _) => "idle in transaction",
            };
            Some(Row {
                pid,
                usename,
                datname: shown.database,
                application_name: shown.application,
                client_addr: shown.address.map(|address| address.to_string()),
                client_port: shown.address.map(|_| shown.port),
                backend_start: time_text(shown.began),
                xact_start: shown.transaction.map(time_text),
                query_start: shown.query_began.map(time_text),
                state_change: time_text(shown.changed),
                state,
                query: shown.query,
                waits_for: waits.get(&pid).cloned().unwrap_or_default(),
                here,
            })
        })
        .collect();
    serde_json::to_string(&rows).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_shown_as_it_is() {
        let activity = Activity::default();
        activity.start("db", Some("app"), "127.0.0.1:5000".parse().ok());
        activity.begin(&"ä".repeat(QUERY_MAX), Some("other"));
        let shown = activity.lock().clone();
        assert!(shown.active && shown.transaction.is_some() && shown.application == "other");
        assert_eq!(shown.query, "ä".repeat(QUERY_MAX / 2));
        activity.rest(b'T');
        let began = activity.lock().transaction;
        activity.begin("SELECT 2", None);
        assert_eq!(activity.lock().transaction, began);
        activity.rest(IDLE);
        let shown = activity.lock().clone();
        assert!(!shown.active && shown.transaction.is_none() && shown.query == "SELECT 2");
    }
}
