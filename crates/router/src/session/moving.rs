//! A session that goes to another thread: between two messages of its client it is taken apart into what can be sent,
//! and built up again there. What it has open keeps it where it is.

use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use pgherd_catalog::SnapshotId;
use pgherd_sql::StatementKind;

use super::{Named, NewSession, Prepared, Session};
use crate::cancel::CancelState;
use crate::client::Client;
use crate::database::Database;
use crate::describe::Described;
use crate::settings::{Initial, Settings};
use crate::shared::Thread;
use crate::transaction::Block;

/// With more named statements than this a session stays.
const STATEMENTS_MAX: usize = 100;

/// All there is of an idle session.
pub struct Seed {
    stream: TcpStream,
    /// What the client has sent and nobody has looked at.
    unread: Vec<u8>,
    new: NewSession,
    startup_settings: Settings,
    statements: Vec<StatementSeed>,
    search_path: Option<Vec<String>>,
    pid: i32,
    cancel: Arc<CancelState>,
    server_version: String,
    initial: Initial,
    generation: u64,
    drawn: Vec<pgherd_planner::LastDrawn>,
    last_drawn: Option<pgherd_planner::LastOne>,
    draws_mark: u64,
}

struct StatementSeed {
    name: String,
    sql: String,
    declared: Vec<u32>,
    made: SystemTime,
    /// What the client was told of it: that is settled.
    told: Option<Seen>,
}

/// [`Told`](super::prepared::Told), to be sent.
struct Seen {
    catalog: SnapshotId,
    path: Vec<String>,
    described: Described,
}

impl Seed {
    /// There is no thread for it any more: its client finds the connection closed.
    pub fn abandon(self, thread: &Thread) {
        forget(thread, &self.new.database, self.pid);
    }
}

fn forget(thread: &Thread, database: &Database, pid: i32) {
    database.leave();
    thread.shared.unregister_cancel(pid);
}

impl Session {
    /// Nothing is open, and everything that it has can be made again.
    pub(super) fn can_move(&self) -> bool {
        let again = |named: &Named| {
            let kind = named.prepared.statement.as_ref().map(|s| &s.kind);
            named.from_sql.is_none() && !matches!(kind, Some(StatementKind::Show { .. }))
        };
        self.txn.block == Block::None
            && self.txn.participants.is_empty()
            && self.portals.is_empty()
            && self.declared_cursors.is_empty()
            && !self.pin
            && self.pinned.is_none()
            && self.temp.is_empty()
            && !self.skip_until_sync
            && self.pending.is_none()
            && self.riding.is_none()
            && !self.no_ride
            && !self.cancel.is_under_way()
            && self.client.can_move()
            && self.encoding.name() == crate::encoding::UTF8
            && self.statements.len() <= STATEMENTS_MAX
            && self.statements.values().all(again)
    }

    pub(super) fn into_seed(self) -> Option<Seed> {
        self.thread.remove_link(self.pid);
        let statements = self.statements.into_iter().map(|(name, named)| StatementSeed {
            name,
            sql: named.source().to_owned(),
            declared: named.prepared.declared.clone(),
            made: named.made,
            told: named.prepared.told().map(|told| Seen {
                catalog: told.catalog,
                path: told.path.to_vec(),
                described: Described::clone(&told.described),
            }),
        });
        let statements = statements.collect();
        let Some((stream, unread)) = self.client.into_parts() else {
            forget(&self.thread, &self.db, self.pid);
            return None;
        };
        let new = NewSession {
            user: self.user,
            database: self.db,
            credentials: self.credentials,
            settings: self.settings,
            encoding: self.encoding,
            long_cancel_key: false,
            seat: self.seat,
        };
        let (startup_settings, server_version) = (self.startup_settings, self.server_version.to_string());
        Some(Seed {
            stream,
            unread,
            new,
            startup_settings,
            statements,
            search_path: self.search_path.map(|path| path.to_vec()),
            pid: self.pid,
            cancel: self.cancel,
            server_version,
            initial: Initial::clone(&self.initial),
            generation: self.generation,
            drawn: self.drawn,
            last_drawn: self.last_drawn,
            draws_mark: self.draws_mark,
        })
    }

    /// The same session on this thread. Its statements are analysed again when they are next used.
    pub fn grow(thread: Rc<Thread>, seed: Seed) -> Option<Session> {
        let Ok(stream) = tokio::net::TcpStream::from_std(seed.stream) else {
            forget(&thread, &seed.new.database, seed.pid);
            return None;
        };
        let mut client = Client::new(stream);
        client.read.extend_from_slice(&seed.unread);
        let mut session = Session::new(thread, client, seed.new, seed.pid, seed.cancel);
        session.moved = true;
        session.startup_settings = seed.startup_settings;
        session.server_version = Rc::from(seed.server_version.as_str());
        session.initial = Rc::new(seed.initial);
        session.generation = seed.generation;
        (session.drawn, session.last_drawn, session.draws_mark) = (seed.drawn, seed.last_drawn, seed.draws_mark);
        session.thread.add_link(session.pid, &session.client.link, &session.cancel);
        // Nobody is asked for it: a server that does not answer must not hold up a statement that does not need it.
        let path = seed.search_path.map(Rc::new);
        for StatementSeed { name, sql, declared, made, told } in seed.statements {
            let prepared = session.again(path.as_ref(), &sql, declared, told);
            session.statements.insert(name, Named { made, ..Named::new(prepared, None) });
        }
        Some(session)
    }

    /// A statement that was prepared before: one that others have here, if it means the same. Others find it only if what
    /// its client was told is true of this session as it is now.
    fn again(
        &mut self,
        path: Option<&Rc<Vec<String>>>,
        sql: &str,
        declared: Vec<u32>,
        told: Option<Seen>,
    ) -> Rc<Prepared> {
        let catalog = self.catalog();
        let key = told.as_ref().zip(path).and_then(|(told, path)| {
            let current = told.catalog.is(&catalog) && told.path == **path;
            current.then(|| self.statement_key_under(&catalog, path, sql, &declared)).flatten()
        });
        let found = key.as_ref().and_then(|key| self.thread.statements.borrow_mut().get(key));
        if let (Some(found), Some(told)) = (found, &told)
            && found.last_described().as_deref() == Some(&told.described)
        {
            return found;
        }
        let statement = pgherd_sql::split(sql).ok().and_then(|mut statements| statements.pop());
        let prepared = Prepared::new(statement, sql, declared);
        if let Some(told) = told {
            prepared.set_told(told.catalog, Rc::new(told.path), Rc::new(told.described));
            if let Some(key) = key {
                self.thread.statements.borrow_mut().insert(key, prepared.clone());
            }
        }
        prepared
    }
}
