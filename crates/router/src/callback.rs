//! Callbacks: the coordinator's foreign tables (postgres_fdw) connect to the router and read distributed tables
//! inside the client's own transaction. This end talks to postgres_fdw and hands each batch of messages to the
//! session that owns the coordinator connection; [`Session::serve_callback`] answers it on the session's own worker
//! connections.
//!
//! START TRANSACTION and COMMIT change nothing here: the client's transaction is the transaction. Savepoints are real:
//! the coordinator makes them for its own subtransactions. Cursors live on the workers, one on each.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, ColumnDefault, GroupId, Node, Snapshot, Table};
use pgherd_planner::{Combine, Merge, Tier};
use pgherd_sql::ast::{Body, Const, ExprKind, Tree};
use pgherd_sql::{Statement, StatementKind};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};
use tokio::sync::{mpsc, oneshot};

use crate::callers::{Caller, Line};
use crate::changes::Changes;
use crate::error::{Failure, Result};
use crate::inside::{Assigned, MovedRow, keeps_its_key};
use crate::rights::{Rights, Use, shows_nothing, with_values};
use crate::row_names::{RowNames, SHARD, name_text, with_names};
use crate::run::{Anchor, Askers, Errors, Request, Rows, Within, add_tags, fields_of, refuse};
use crate::session::{Bound, Session};
use crate::settings::{STYLES, is_plain_style, quote_ident, quote_literal};
use crate::shared::Thread;
use crate::text::{is_in_name, length_of_quoted, replace_unquoted};
use crate::transaction::Block;

/// Callbacks introduce themselves by an application name that begins like this, followed by the token.
pub const PREFIX: &str = "pgherd:";
/// Begins the user name of those that say with whose rights the coordinator reads; the role's number follows.
pub const ROLE_PREFIX: &str = "pgherd_callback_";
/// Of savepoints on workers that stand for the coordinator's subtransactions.
pub const SAVEPOINT_PREFIX: &str = "pgherd_callback_";
/// Rows of one callback reply kept in memory.
pub const REPLY_BYTES_MAX: usize = 512 << 20;

/// Messages of one callback connection up to a Query, Sync or Flush, and where the reply goes.
pub struct Batch {
    pub frames: Vec<Frame>,
    role: Option<u32>,
    pub reply: oneshot::Sender<Bytes>,
    /// Closed once the connection is gone.
    pub open: mpsc::Sender<()>,
}

pub type CallbackSender = mpsc::Sender<Batch>;
pub type CallbackReceiver = mpsc::Receiver<Batch>;

/// 128 random bits: whoever knows them may read what the session may read.
pub fn new_token() -> Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| Failure::new("XX000", format!("no random bytes: {e}")))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// Serves one connection of postgres_fdw to its end.
pub async fn serve(thread: Rc<Thread>, mut client: impl Line, caller: Caller, role: Option<u32>) {
    backend::write_authentication_ok(client.out());
    for (name, value) in [
        ("server_version", "15.0"),
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
        ("TimeZone", "GMT"),
        ("is_superuser", "off"),
        ("in_hot_standby", "off"),
        ("default_transaction_read_only", "off"),
    ] {
        backend::write_parameter_status(client.out(), name, value);
    }
    backend::write_backend_key_data(client.out(), 0, &[0; 4]);
    backend::write_ready_for_query(client.out(), b'I');
    let mut is_proved = matches!(caller, Caller::Process(_));
    let mut frames = Vec::new();
    let (open, _held) = mpsc::channel(1);
    loop {
        if client.flush().await.is_err() {
            return;
        }
        let Ok(frame) = client.frame().await else { return };
        let tag = frame.tag();
        if tag == b'X' {
            return;
        }
        frames.push(frame);
        if !matches!(tag, b'Q' | b'S' | b'H') {
            continue;
        }
        // The session may have changed since: the coordinator connection belongs to whoever leases it now.
        let Some(called) = thread.shared.callers.find(&caller) else { return };
        if !is_proved && !called.is_proved(&thread.shared).await {
            let message = "callback connection that the session's server process does not wait for";
            backend::write_error(client.out(), &backend::ErrorFields::new("FATAL", "28000", message));
            let _ = client.flush().await;
            return;
        }
        is_proved = true;
        let (reply, answer) = oneshot::channel();
        let batch = Batch { frames: std::mem::take(&mut frames), role, reply, open: open.clone() };
        called.served(true);
        let answer = match called.sender.send(batch).await {
            Ok(()) => answer.await.ok(),
            Err(_) => None,
        };
        called.served(false);
        match answer {
            Some(bytes) => client.out().extend_from_slice(&bytes),
            None => return,
        }
    }
}

/// What a session keeps for the coordinator's foreign tables.
#[derive(Default)]
pub struct Cursors {
    cursors: HashMap<String, Cursor>,
    /// Their queries as postgres_fdw sent them.
    queries: HashMap<String, String>,
    statements: HashMap<String, String>,
    portals: HashMap<String, (String, Bound)>,
    /// The number of the last cursor that was opened on workers.
    pub next: u64,
    /// The number of postgres_fdw's scan that asked for it last: those that began before it have lower ones.
    pub scans: u64,
    /// The coordinator has read or written something elsewhere.
    pub heard: bool,
    /// The coordinator has announced a column of type refcursor.
    pub returned: bool,
    /// Rows by the names that the coordinator was told.
    names: RowNames,
    /// What statements of the coordinator are changing one by one.
    pub changes: Changes,
    /// With whose rights the coordinator asks what it asks now, where it says so.
    pub role: Option<u32>,
    /// What the session's role may do with tables on the workers, while a statement runs.
    pub rights: HashMap<pgherd_catalog::Oid, Rights>,
    /// What all parts of the statement that the coordinator runs see.
    pub moment: Option<Anchor>,
    /// What functions see that rows of the client's cursors call.
    pub within: HashMap<String, Within>,
    /// The cursor whose rows are fetched now.
    pub fetching: Option<String>,
    /// Whether a relation of a schema and name is a view that shows a table as it is, by the table's number.
    pub views: HashMap<(Option<String>, String, pgherd_catalog::Oid), bool>,
    /// The client's statement has these parameters, as SQL of the coordinator.
    pub values: Vec<String>,
    /// An error inside a callback batch: the rest up to Sync is skipped.
    skip: bool,
    /// The last error that postgres_fdw was told of: it keeps some of its fields to itself.
    pub failure: Option<Box<backend::ErrorFields>>,
}

impl Cursors {
    /// Which row of a table a name of ours stands for: worker group, partition and ctid.
    pub fn row(&self, snapshot: &Snapshot, table: &Arc<Table>, name: &Bytes) -> Option<(GroupId, String)> {
        self.names.row(snapshot, table, &name_text(name))
    }

    /// The queries of scans that have begun.
    pub fn begun(&self) -> Vec<String> {
        self.queries.values().cloned().collect()
    }

    /// Rows for a cursor that is not one of the workers'.
    pub fn keep(&mut self, name: &str, rows: Vec<Bytes>) {
        self.cursors.insert(name.to_owned(), Cursor::Rows { rows, at: 0, fields: Vec::new() });
    }

    /// Forgets those on workers that have higher numbers.
    pub fn forget_since(&mut self, number: u64) {
        let is_later = |name: &str| cursor_number(name).is_some_and(|cursor| cursor > number);
        self.cursors.retain(|_, cursor| !matches!(cursor, Cursor::Workers { name, .. } if is_later(name)));
    }

    /// At the end of a transaction: servers have closed the cursors.
    pub fn clear(&mut self) {
        *self = Cursors { next: self.next, ..Cursors::default() };
    }
}

enum Cursor {
    /// Open under `name` on each of these workers; `at` is the first that may have rows left.
    /// `identities`: the column that names rows.
    Workers { name: String, groups: Vec<GroupId>, at: usize, identities: Option<usize> },
    /// Rows that are already here, as whole DataRow messages.
    Rows { rows: Vec<Bytes>, at: usize, fields: Vec<backend::FieldDescription> },
}

const CURSOR: &str = "pgherd_cursor_";

fn cursor_number(name: &str) -> Option<u64> {
    name.strip_prefix(CURSOR)?.parse().ok()
}

/// A query of postgres_fdw for the workers.
struct Scan {
    groups: Vec<GroupId>,
    sql: String,
    merge: Option<Merge>,
    /// The column that names rows.
    identities: Option<usize>,
    /// The table's owner, where it must be run as that.
    owner: Option<(Arc<pgherd_catalog::Table>, String)>,
    table: Option<Arc<pgherd_catalog::Table>>,
    /// What it reads is being changed: it is to see what was.
    before: Option<Anchor>,
}

impl Scan {
    fn sql_on(&self, group: GroupId) -> String {
        match self.identities {
            Some(_) => with_identities(&self.sql, group),
            None => self.sql.clone(),
        }
    }
}

/// The same, open as `cursor` on each of the workers.
#[derive(Debug, Clone)]
pub struct Opened {
    pub cursor: String,
    pub groups: Vec<GroupId>,
    /// The query with its values, where collations are asked for.
    sql: String,
    merge: Option<Merge>,
    identities: Option<usize>,
}

/// What was done for a scan before postgres_fdw asked for it.
#[derive(Debug, Clone)]
pub enum Early {
    Open(Opened),
    /// Read with the rights of the table's owner; the column that names rows.
    Read(Rc<Vec<Bytes>>, Option<usize>),
}

/// A query of postgres_fdw that locks what it reads.
pub fn locks_rows(query: &str) -> bool {
    query.ends_with(" FOR UPDATE") || query.ends_with(" FOR SHARE")
}

/// A query by which `pgherd.tell_router()` tells of a definition.
pub fn reads_definitions(query: &str) -> bool {
    own_foreign_table(query) == Some("remote_definition")
}

/// Which foreign table of ours, but for the children of distributed tables, a query of postgres_fdw reads. Columns of
/// users can have any name, in quotes where it is not plain, or all of them (`quote_all_identifiers`).
fn own_foreign_table(query: &str) -> Option<&str> {
    const COLUMNS: [&str; 6] = ["NULL", "command", "result", "nodename", "nodeport", "success"];
    let (list, rest) = query.strip_prefix("SELECT ")?.split_once(" FROM ")?;
    let (schema, name) = rest.split(' ').next()?.split_once('.')?;
    let name = bare(name);
    let is_ours = bare(schema) == "pgherd" && name.starts_with("remote_");
    (is_ours && list.split(", ").all(|column| COLUMNS.contains(&bare(column)))).then_some(name)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(name)
}

/// The command of a scan that only tells its number.
pub const COUNT_SCANS: &str = "count scans";
/// Where a row is on its worker: partition and ctid.
pub(crate) const PLACE: &str = "tableoid::pg_catalog.text || ' ' || ctid::pg_catalog.text";
impl Session {
    /// Answers one batch. `in_block`: the end of the coordinator's transaction is known here, so that writes commit
    /// with it.
    pub async fn serve_callback(&mut self, batch: Batch, in_block: bool) {
        self.cursors.role = batch.role;
        self.definitions.expect(batch.open.clone());
        let mut out = BytesMut::new();
        let depth = self.definitions.replies.len();
        self.definitions.replies.push(batch.reply);
        for frame in &batch.frames {
            if frame.tag() == b'Q' {
                let result = match parse_frontend(frame) {
                    Ok(FrontendMessage::Query { sql }) => {
                        let sql = self.with_table_names(sql);
                        self.callback_query(&sql, None, in_block, &mut out, true).await
                    }
                    _ => Err(Failure::new("08P01", "malformed callback message")),
                };
                self.callback_error(result, &mut out);
                self.cursors.skip = false;
                backend::write_ready_for_query(&mut out, b'T');
                continue;
            }
            if frame.tag() == b'S' {
                self.cursors.skip = false;
                backend::write_ready_for_query(&mut out, b'T');
                continue;
            }
            if self.cursors.skip {
                continue;
            }
            let result = self.callback_step(frame, in_block, &mut out).await;
            if result.is_err() {
                self.cursors.skip = true;
            }
            self.callback_error(result, &mut out);
        }
        // A definition has had its first question answered meanwhile; this is the answer to its last.
        let reply = (self.definitions.replies.len() > depth).then(|| self.definitions.replies.pop()).flatten();
        if let Some(reply) = reply {
            let _ = reply.send(out.freeze());
        }
        if let Some(batch) = self.definitions.interrupted.take() {
            Box::pin(self.serve_callback(batch, in_block)).await;
        }
    }

    /// A text of postgres_fdw, in which foreign children stand for their tables: `pgherd.ft_17` for table 17.
    pub(crate) fn with_table_names(&self, sql: &str) -> String {
        let catalog = self.catalog();
        name_children(sql, &|oid| {
            let table = catalog.by_oid.get(&oid)?;
            Some(format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name)))
        })
    }

    fn callback_error(&mut self, result: Result<()>, out: &mut BytesMut) {
        match result {
            Ok(()) => {}
            Err(Failure::Statement(fields) | Failure::Fatal(fields)) => {
                backend::write_error(out, &fields);
                self.cursors.failure = Some(fields);
            }
            Err(Failure::ClientGone) => {
                backend::write_error(out, &backend::ErrorFields::new("ERROR", "57014", "the client is gone"));
            }
        }
    }

    /// The extended protocol as postgres_fdw uses it.
    async fn callback_step(&mut self, frame: &Frame, in_block: bool, out: &mut BytesMut) -> Result<()> {
        match parse_frontend(frame)? {
            FrontendMessage::Parse { name, sql, .. } => {
                let sql = self.with_table_names(sql);
                self.cursors.statements.insert(name.to_owned(), sql);
                backend::write_parse_complete(out);
            }
            FrontendMessage::Bind(bind) => {
                let params = bind.params.iter().map(|p| p.map(Bytes::copy_from_slice)).collect();
                let bound = Bound {
                    param_formats: bind.param_formats.clone(),
                    params,
                    result_formats: bind.result_formats.clone(),
                };
                self.cursors.portals.insert(bind.portal.to_owned(), (bind.statement.to_owned(), bound));
                backend::write_bind_complete(out);
            }
            FrontendMessage::Describe { name, .. } => {
                let sql = self
                    .cursors
                    .portals
                    .get(name)
                    .and_then(|(statement, _)| self.cursors.statements.get(statement))
                    .cloned()
                    .unwrap_or_default();
                match returned_columns(&sql) {
                    0 => backend::write_no_data(out),
                    count => write_columns(count, out),
                }
            }
            FrontendMessage::Execute { portal, .. } => {
                let (statement, bound) = self
                    .cursors
                    .portals
                    .remove(portal)
                    .ok_or_else(|| Failure::new("34000", format!("portal \"{portal}\" does not exist")))?;
                let sql = self.cursors.statements.get(&statement).cloned().unwrap_or_default();
                self.note_change(&statement, &sql, in_block).await?;
                self.cursors.changes.executed = statement;
                self.callback_query(&sql, Some(&bound), in_block, out, false).await?;
            }
            FrontendMessage::Close { .. } => backend::write_close_complete(out),
            FrontendMessage::Flush => {}
            _ => return Err(Failure::new("08P01", "unexpected callback message")),
        }
        Ok(())
    }

    async fn callback_query(
        &mut self,
        sql: &str,
        bound: Option<&Bound>,
        in_block: bool,
        out: &mut BytesMut,
        describe: bool,
    ) -> Result<()> {
        let statements = pgherd_sql::split(sql)
            .map_err(|e| Failure::new("42601", format!("callback not understood: {}", e.message)))?;
        for statement in &statements {
            let tag = self.callback_statement(statement, bound, in_block, out, describe).await?;
            backend::write_command_complete(out, &tag);
        }
        Ok(())
    }

    async fn callback_statement(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        in_block: bool,
        out: &mut BytesMut,
        describe: bool,
    ) -> Result<String> {
        use StatementKind as K;
        if self.txn.ending {
            return match &statement.kind {
                K::Set(_) => Ok("SET".into()),
                K::Begin(_) => Ok("START TRANSACTION".into()),
                K::Commit { .. } => Ok("COMMIT".into()),
                K::Rollback { .. } | K::RollbackTo(_) => Ok("ROLLBACK".into()),
                K::Savepoint(_) => Ok("SAVEPOINT".into()),
                K::Release(_) => Ok("RELEASE".into()),
                K::CloseCursor { .. } => Ok("CLOSE CURSOR".into()),
                K::Deallocate { .. } => Ok("DEALLOCATE".into()),
                _ => Err(too_late()),
            };
        }
        if self.txn.settled && changes_rows(&statement.kind) {
            return Err(too_late());
        }
        match &statement.kind {
            // Its settings make values unambiguous; ours are handled when a cursor is read.
            K::Set(_) => Ok("SET".into()),
            K::Begin(_) => {
                self.await_inner_end().await;
                // What ended with the transaction before was not told. Subtransactions that there are follow.
                self.cursors.changes.depth = 1;
                Ok("START TRANSACTION".into())
            }
            K::Commit { .. } => self.commit_inside().await.map(|()| "COMMIT".into()),
            K::Rollback { .. } => {
                self.forget_changes(0);
                self.rollback_inside().await;
                Ok("ROLLBACK".into())
            }
            K::Deallocate { name: Some(name) } => {
                self.cursors.statements.remove(name);
                if self.is_changing(name) {
                    self.make_waiting().await?;
                }
                self.end_change(name);
                Ok("DEALLOCATE".into())
            }
            K::Deallocate { name: None } => {
                self.cursors.statements.clear();
                self.make_waiting().await?;
                self.end_changes();
                Ok("DEALLOCATE ALL".into())
            }
            // Several connections of one coordinator tell of the same subtransaction.
            K::Savepoint(name) => {
                self.callback_block();
                self.cursors.changes.depth = depth_of(name).unwrap_or(self.cursors.changes.depth);
                let name = callback_savepoint(name);
                if !self.has_savepoint(&name) {
                    self.make_waiting().await?;
                    self.savepoint(&name);
                }
                Ok("SAVEPOINT".into())
            }
            K::Release(name) => {
                let depth = self.cursors.changes.depth;
                self.cursors.changes.depth = depth_of(name).map_or(depth, |depth| depth.saturating_sub(1));
                self.definitions.release(depth_of(name).unwrap_or(depth + 1));
                let name = callback_savepoint(name);
                if self.has_savepoint(&name) {
                    self.release_savepoint(&name).await?;
                }
                Ok("RELEASE".into())
            }
            K::RollbackTo(name) => {
                self.forget_changes(depth_of(name).unwrap_or(0));
                self.definitions.go_back(depth_of(name).unwrap_or(0));
                self.rollback_workers_to(&callback_savepoint(name)).await?;
                Ok("ROLLBACK".into())
            }
            K::DeclareCursor { name, query, .. } => {
                let inner = query.of(&statement.text).to_owned();
                self.callback_declare(name, &inner, bound, in_block).await?;
                Ok("DECLARE CURSOR".into())
            }
            K::Fetch { name, is_move: true, .. } => {
                self.callback_rewind(name).await?;
                Ok("MOVE 0".into())
            }
            K::Fetch { name, is_move: false, .. } => {
                let count = fetch_count(&statement.text);
                let rows = self.callback_fetch(name, count, out, describe).await?;
                Ok(format!("FETCH {rows}"))
            }
            K::CloseCursor { name: Some(name) } => {
                self.cursors.queries.remove(name);
                if let Some(Cursor::Workers { name, groups, .. }) = self.cursors.cursors.remove(name) {
                    for group in groups {
                        self.run_quiet(group, &format!("CLOSE {}", quote_ident(&name))).await?;
                    }
                }
                Ok("CLOSE CURSOR".into())
            }
            K::Update | K::Delete if statement.text.contains("WHERE ctid = $1") => {
                self.callback_change_row(statement, bound, in_block, out).await
            }
            K::Insert => {
                self.cursors.heard = true;
                let table = self.table_of(statement);
                if !table.is_some_and(|table| self.cursors.changes.later.only_refers(&table)) {
                    self.make_waiting().await?;
                }
                if let Some(table) = self.table_of(statement) {
                    self.cursors.changes.table_written(table.oid);
                }
                self.callback_insert(statement, bound, in_block, out).await
            }
            K::Update | K::Delete | K::Truncate { .. } => {
                if !in_block {
                    return Err(ends_transactions());
                }
                self.cursors.heard = true;
                self.make_waiting().await?;
                if let (K::Delete, Some(table)) = (&statement.kind, self.table_of(statement)) {
                    self.check_deletes(&table)?;
                }
                self.callback_write(statement, bound, out, describe).await
            }
            K::Select if statement.text.contains("pg_catalog.pg_relation_size(") => {
                self.callback_pages(&statement.text, out).await
            }
            K::Select => self.callback_select(statement, bound, out, describe).await,
            _ => Err(Failure::refused(
                "this write to a distributed table from inside the coordinator is not supported yet",
            )
            .hint("Send the statement through the router by itself.")),
        }
    }

    /// Worker transactions are needed even where the coordinator runs a single statement outside any block.
    fn callback_block(&mut self) {
        if self.txn.block == Block::None {
            self.open_implicit_block();
        }
    }

    async fn callback_declare(&mut self, name: &str, query: &str, bound: Option<&Bound>, in_block: bool) -> Result<()> {
        if reads_definitions(query) {
            self.make_waiting().await?;
            let said = command_of(query).unwrap_or_default();
            return self.serve_definition(name, &said, in_block && self.txn.own.is_none()).await;
        }
        self.callback_block();
        self.cursors.heard = true;
        let scan = scan_number(name);
        self.cursors.changes.scan_begins(scan);
        let own = own_foreign_table(query);
        let of_copies = own == Some("remote_copies");
        if of_copies || own == Some("remote_statement") {
            if command_of(query).is_some_and(|command| command == COUNT_SCANS) {
                self.cursors.scans = scan;
                let nothing = Cursor::Rows { rows: Vec::new(), at: 0, fields: Vec::new() };
                self.cursors.cursors.insert(name.to_owned(), nothing);
                return Ok(());
            }
            if self.txn.settled && !command_of(query).is_some_and(|command| command.starts_with("sample ")) {
                return Err(too_late());
            }
            // A statement that only begins has changed nothing.
            if !command_of(query).is_some_and(|command| command.starts_with("changing ")) {
                self.make_waiting().await?;
            }
            let rows = self.remote_statement(query, of_copies, scan, in_block).await?;
            self.cursors.cursors.insert(name.to_owned(), Cursor::Rows { rows, at: 0, fields: Vec::new() });
            return Ok(());
        }
        if own == Some("remote_session") {
            let cursor = self.remote_session(query).await?;
            self.cursors.cursors.insert(name.to_owned(), cursor);
            return Ok(());
        }
        if own == Some("remote_command") {
            if self.txn.settled {
                return Err(too_late());
            }
            self.make_waiting().await?;
            let cursor = self.remote_command(query).await?;
            self.cursors.cursors.insert(name.to_owned(), cursor);
            return Ok(());
        }
        // A trigger's query sees what the statement that fires it has changed.
        if self.cursors.changes.is_fired(scan) {
            self.make_waiting().await?;
        }
        let locks = locks_rows(query);
        self.cursors.queries.insert(name.to_owned(), query.to_owned());
        let read = match self.done_early(scan, query) {
            Some(Early::Open(opened)) => return self.read_opened(name, opened).await,
            Some(Early::Read(rows, identities)) => Some((rows, identities)),
            None => None,
        };
        let query = match self.lock_wait {
            Some(wait) if locks => &format!("{query}{wait}"),
            _ => query,
        };
        let moment = match self.moment_of(scan) {
            None => self.moment_within()?,
            moment => moment,
        };
        let shown_before = self
            .cursors
            .moment
            .as_ref()
            .is_some_and(|of_statement| !locks && moment.as_ref().is_some_and(|moment| moment == of_statement));
        let mut planned = self.callback_scan(query, bound, Some(scan), shown_before).await?;
        if shown_before && planned.owner.is_some() {
            // Another's rights are for reading at once, as it is now.
            let planned = self.callback_scan(query, bound, Some(scan), false).await?;
            if planned.before.is_some() {
                return Err(half_changed(planned.table.as_ref().map_or("", |table| &table.name)));
            }
            let rows = self.read_scan(&planned, bound).await?;
            return self.keep_rows(name, rows, planned.identities);
        }
        if let Some(table) = planned.table.as_ref().filter(|_| bound.is_some_and(|b| !b.params.is_empty())) {
            self.cursors.changes.scan_has_parameters(table.oid);
        }
        if moment.as_ref().is_some_and(|anchor| anchor.own) {
            planned.owner = None;
        }
        // The earlier of both.
        let is_earlier = |before: &Anchor| moment.as_ref().is_none_or(|moment| before.before < moment.before);
        if let Some(before) = planned.before.take().filter(is_earlier) {
            if planned.owner.is_some() {
                return Err(half_changed(planned.table.as_ref().map_or("", |table| &table.name)));
            }
            let opened = self.open_scan(planned, bound, Some(&before)).await?;
            return self.read_opened(name, opened).await;
        }
        // What is locked is a row's latest version.
        let anchor = moment.filter(|_| !locks);
        match (&planned.owner, read) {
            (Some(_), Some((rows, identities))) => return self.keep_rows(name, rows.to_vec(), identities),
            (Some((table, _)), None) if anchor.is_some() && !self.keeps_snapshot(&planned.groups).await? => {
                return Err(Failure::refused(format!(
                    "cannot read distributed table \"{}\" as it was when the cursor was declared",
                    table.name
                ))
                .detail("It is read with the rights of another role, which is known when rows are fetched.")
                .hint("Use REPEATABLE READ, and fetch before you write."));
            }
            _ => {}
        }
        if planned.owner.is_some() || planned.merge.is_some() && anchor.is_none() {
            let rows = self.read_scan(&planned, bound).await?;
            return self.keep_rows(name, rows, planned.identities);
        }
        let opened = self.open_scan(planned, bound, anchor.as_ref()).await?;
        self.read_opened(name, opened).await
    }

    /// These workers show now what they showed when the cursor was declared.
    async fn keeps_snapshot(&mut self, groups: &[GroupId]) -> Result<bool> {
        let Some(first) = groups.first() else { return Ok(true) };
        if groups.iter().any(|group| self.txn.participants.get(group).is_some_and(|p| p.wrote)) {
            return Ok(false);
        }
        let level = self.collect_on(*first, "SELECT pg_catalog.current_setting('transaction_isolation')").await?;
        Ok(matches!(level.text(0, 0), Some("repeatable read" | "serializable")))
    }

    /// A query of postgres_fdw before it asks for it: opened where it locks rows, read where it has another's rights. A
    /// cursor with those would be there for whoever may run SQL on that connection.
    pub async fn do_early(&mut self, query: &str, askers: &Askers) -> Result<Option<Early>> {
        let catalog = self.catalog();
        self.cursors.role = self.table_of(&one(query)?).and_then(|table| askers.role_for(&catalog, &table));
        let planned = self.callback_scan(query, None, None, false).await?;
        if planned.owner.is_some() && !askers.own {
            let rows = self.read_scan(&planned, None).await?;
            return Ok(Some(Early::Read(Rc::new(rows), planned.identities)));
        }
        match locks_rows(query) {
            true => Ok(Some(Early::Open(self.open_scan(planned, None, None).await?))),
            false => Ok(None),
        }
    }

    /// `shown_before`: what the table's rows were before the statement is what will be read.
    async fn callback_scan(
        &mut self,
        query: &str,
        bound: Option<&Bound>,
        scan: Option<u64>,
        shown_before: bool,
    ) -> Result<Scan> {
        // Rows that will be changed one by one: a name of ours stands for (worker, partition, ctid).
        let identities = selected_columns(query).iter().position(|c| c == "ctid");
        let statement = one(&sorted_by_names(query))?;
        Ok(Scan { identities, ..self.callback_plan(&statement, bound, scan, shown_before).await? })
    }

    /// One cursor on each of the workers.
    async fn open_scan(&mut self, scan: Scan, bound: Option<&Bound>, anchor: Option<&Anchor>) -> Result<Opened> {
        self.cursors.next += 1;
        let cursor = format!("{CURSOR}{}", self.cursors.next);
        for group in &scan.groups {
            self.open_on(*group, &cursor, &scan.sql_on(*group), bound, anchor).await?;
        }
        let sql = match (&scan.merge, scan.groups.first()) {
            (Some(merge), Some(first)) if merge.collated => with_values(&scan.sql_on(*first), bound),
            _ => String::new(),
        };
        Ok(Opened { cursor, groups: scan.groups, sql, merge: scan.merge, identities: scan.identities })
    }

    async fn read_opened(&mut self, name: &str, opened: Opened) -> Result<()> {
        let Opened { cursor, groups, sql, merge, identities } = opened;
        if let Some(merge) = merge {
            let fetch = |_| format!("FETCH ALL FROM {cursor}");
            let rows = self.merge_for_callback(&groups, &fetch, Some(&sql), &merge, None, None).await?;
            for group in &groups {
                if let Some(participant) = self.txn.participants.get_mut(group) {
                    participant.lease.add_step(format!("CLOSE {cursor}"));
                }
            }
            return self.keep_rows(name, rows, identities);
        }
        self.cursors.cursors.insert(name.to_owned(), Cursor::Workers { name: cursor, groups, at: 0, identities });
        Ok(())
    }

    fn keep_rows(&mut self, name: &str, mut rows: Vec<Bytes>, identities: Option<usize>) -> Result<()> {
        if let Some(column) = identities {
            let read = std::mem::take(&mut rows);
            for row in &read {
                rows.extend(self.name_row(column, row)?);
            }
        }
        self.cursors.cursors.insert(name.to_owned(), Cursor::Rows { rows, at: 0, fields: Vec::new() });
        Ok(())
    }

    /// All rows of a scan that is sorted, or that has another's rights.
    async fn read_scan(&mut self, scan: &Scan, bound: Option<&Bound>) -> Result<Vec<Bytes>> {
        let sql_on = |group| scan.sql_on(group);
        let owner = scan.owner.as_ref().map(|(table, owner)| (&**table, owner.as_str()));
        match (&scan.merge, owner) {
            (Some(merge), _) => self.merge_for_callback(&scan.groups, &sql_on, None, merge, bound, owner).await,
            (None, Some((table, owner))) => self.read_as_owner(&scan.groups, &sql_on, table, owner, bound).await,
            (None, None) => Ok(Vec::new()),
        }
    }

    /// All rows at once: a cursor would stay open for anybody to read who may run SQL on that connection.
    async fn read_as_owner(
        &mut self,
        groups: &[GroupId],
        sql: &dyn Fn(GroupId) -> String,
        table: &pgherd_catalog::Table,
        owner: &str,
        bound: Option<&Bound>,
    ) -> Result<Vec<Bytes>> {
        let mut rows = Vec::new();
        for group in groups {
            rows.extend(self.run_as_owner(*group, table, owner, &sql(*group), bound).await?);
            check_size(&rows)?;
        }
        Ok(rows)
    }

    /// The workers that have rows for a single-table query of postgres_fdw, joined and fenced, and its text for them.
    async fn callback_plan(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        scan: Option<u64>,
        shown_before: bool,
    ) -> Result<Scan> {
        let catalog = self.catalog();
        let plan = self.plan_callback(statement, &catalog);
        let (groups, sql, merge) = match &plan.tier {
            Tier::Refuse(refusal) => return Err(refuse(refusal)),
            Tier::Route(route) => {
                // The parameters are text; which type they have does not matter to postgres_fdw, so all workers where
                // the key is one.
                let group = match (&route.key, bound) {
                    (pgherd_planner::KeyValue::Param(_) | pgherd_planner::KeyValue::Each(_), _) => None,
                    (key, _) => self
                        .remainder_of(&route.table, key, None)
                        .await?
                        .and_then(|r| route.table.shards().get(r).map(|s| s.group)),
                };
                let groups = group.map_or_else(|| catalog.groups_of(&route.table), |g| vec![g]);
                (groups, route.sql.as_written(), None)
            }
            Tier::Scatter(scatter) => match &scatter.combine {
                Combine::Concatenate => (catalog.groups_of(&scatter.table), scatter.sql.as_written(), None),
                // postgres_fdw may want its rows sorted.
                Combine::Merge(merge) => {
                    (catalog.groups_of(&scatter.table), scatter.sql.as_written(), Some(merge.clone()))
                }
                Combine::ConcatenateLimit(_) => {
                    return Err(Failure::refused(format!("callback needs a merge: {}", plan.reason)));
                }
            },
            _ => return Err(Failure::refused(format!("callback is not a single-table query: {}", plan.reason))),
        };
        // One PostgreSQL would read its rows as they were before the statement.
        let before = match shown_before {
            true => None,
            false => {
                let locks = locks_rows(&statement.text);
                let triggers = catalog.after_triggers;
                match locks && self.cursors.changes.begins_own_update(&plan.tables) {
                    true => None,
                    false => {
                        let view = self.cursors.changes.view_of(&plan.tables, scan, locks, triggers);
                        view.map_err(|table| half_changed(&table))?
                    }
                }
            }
        };
        for group in &groups {
            self.join(*group).await?;
            for table in &plan.tables {
                if let Some(epoch) = catalog.placement_epoch(table.colocation) {
                    self.fence(*group, table.colocation, epoch);
                }
            }
            if plan.writes || statement.text.contains("FOR UPDATE") || statement.text.contains("FOR SHARE") {
                self.mark_writer(*group);
            }
        }
        let using = match &statement.kind {
            StatementKind::Update => Use::Update,
            StatementKind::Delete => Use::Delete,
            _ if statement.text.contains(" FOR UPDATE") || statement.text.contains(" FOR SHARE") => Use::Lock,
            _ => Use::Read,
        };
        let owner = match (plan.tables.first(), groups.first()) {
            (Some(table), Some(group)) => {
                let owner = self.owner_for(*group, table, using, shows_nothing(statement, table)).await?;
                owner.map(|owner| (table.clone(), owner))
            }
            _ => None,
        };
        let table = plan.tables.first().cloned();
        let sql = match &table {
            Some(table) if statement.names_physical_rows => with_names_behind(&sql, &catalog, table),
            _ => sql,
        };
        Ok(Scan { groups, sql, merge, identities: None, owner, table, before })
    }

    async fn callback_write(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        out: &mut BytesMut,
        describe: bool,
    ) -> Result<String> {
        self.callback_block();
        if let StatementKind::Truncate { relations, .. } = &statement.kind {
            let catalog = self.catalog();
            for group in catalog.worker_groups() {
                self.join(group).await?;
                for relation in relations {
                    if let pgherd_catalog::Resolved::Table(table) =
                        catalog.resolve(relation.schema.as_deref(), &relation.name, &[])
                        && let Some(epoch) = catalog.placement_epoch(table.colocation)
                    {
                        self.fence(group, table.colocation, epoch);
                    }
                }
                self.mark_writer(group);
                self.run_quiet(group, &statement.text).await?;
            }
            return Ok("TRUNCATE TABLE".to_owned());
        }
        let scan = self.callback_plan(statement, bound, None, false).await?;
        if scan.merge.is_some() {
            return Err(Failure::refused("callback needs a cursor for sorted rows"));
        }
        self.callback_run(&scan, bound, out, describe).await
    }

    async fn callback_select(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        out: &mut BytesMut,
        describe: bool,
    ) -> Result<String> {
        self.callback_block();
        let scan = self.callback_plan(statement, bound, None, false).await?;
        if scan.merge.is_some() {
            return Err(Failure::refused("callback needs a cursor for sorted rows"));
        }
        self.callback_run(&scan, bound, out, describe).await
    }

    /// ANALYZE asks how many pages the table has: those of all shards.
    async fn callback_pages(&mut self, sql: &str, out: &mut BytesMut) -> Result<String> {
        let name = sql.split('\'').nth(1).unwrap_or_default();
        let question = format!(
            "SELECT coalesce(pg_catalog.sum(pg_catalog.pg_relation_size(relid)), 0) / 8192 \
             FROM pg_catalog.pg_partition_tree({}::pg_catalog.regclass) WHERE isleaf",
            quote_literal(name)
        );
        let mut pages = 0u64;
        for group in self.catalog().worker_groups() {
            let text = self.command_on(group, &question).await?.unwrap_or_default();
            pages += text.split('.').next().and_then(|t| t.parse::<u64>().ok()).unwrap_or(0);
        }
        backend::write_row_description(out, &[backend::FieldDescription::text("pages")]);
        backend::write_data_row(out, &[Some(pages.to_string().as_bytes())]);
        Ok("SELECT 1".into())
    }

    async fn callback_run(
        &mut self,
        scan: &Scan,
        bound: Option<&Bound>,
        out: &mut BytesMut,
        describe: bool,
    ) -> Result<String> {
        let mut tag = String::new();
        let mut kept = Vec::new();
        for group in &scan.groups {
            if let Some((table, owner)) = &scan.owner {
                let rows = self.run_as_owner(*group, table, owner, &returning(&scan.sql), bound).await?;
                let end = format!("{} {}", command_word(&scan.sql), rows.len());
                tag = if tag.is_empty() { end } else { add_tags(&tag, &end) };
                kept.extend(rows.into_iter().filter(|_| returns_rows(&scan.sql)));
                check_size(&kept)?;
                continue;
            }
            let sql = scan.sql.as_str();
            let styled = self.with_plain_styles(*group).await?;
            let request = Request { bound, ..Request::text(sql) };
            let end = self.run_request(*group, &request, Rows::Keep(&mut kept), Errors::default()).await?;
            if styled {
                self.with_client_styles(*group).await?;
            }
            tag = if tag.is_empty() { end.tag } else { add_tags(&tag, &end.tag) };
        }
        if describe && !kept.is_empty() {
            describe_first(&kept, out)?;
        }
        check_size(&kept)?;
        for row in kept {
            out.extend_from_slice(&row);
        }
        Ok(tag)
    }

    async fn callback_fetch(&mut self, name: &str, count: u64, out: &mut BytesMut, describe: bool) -> Result<u64> {
        let missing = || Failure::new("34000", format!("cursor \"{name}\" does not exist"));
        let cursor = self.cursors.cursors.get_mut(name).ok_or_else(missing)?;
        match cursor {
            Cursor::Rows { rows, at, fields } => {
                if describe && fields.is_empty() {
                    describe_first(rows, out)?;
                } else if describe {
                    backend::write_row_description(out, fields);
                }
                let end = (*at + usize::try_from(count).unwrap_or(usize::MAX)).min(rows.len());
                for row in &rows[*at..end] {
                    out.extend_from_slice(row);
                }
                let sent = end - *at;
                *at = end;
                Ok(sent as u64)
            }
            Cursor::Workers { name: worker_name, groups, at, identities } => {
                let (worker_name, groups, mut position, identities) =
                    (worker_name.clone(), groups.clone(), *at, *identities);
                let mut rest = count;
                let mut kept = Vec::new();
                while rest > 0 && position < groups.len() {
                    let group = groups[position];
                    let sql = format!("FETCH FORWARD {rest} FROM {}", quote_ident(&worker_name));
                    let before = kept.len();
                    if self.txn.participants.contains_key(&group) {
                        self.join(group).await?;
                    }
                    let styled = self.with_plain_styles(group).await?;
                    let request = Request::text(sql);
                    let result = self.run_request(group, &request, Rows::Keep(&mut kept), Errors::default()).await;
                    if styled {
                        self.with_client_styles(group).await?;
                    }
                    result?;
                    let is_read = ((kept.len() - before) as u64) < rest;
                    if let Some(column) = identities {
                        let read = kept.split_off(before);
                        for row in &read {
                            kept.extend(self.name_row(column, row)?);
                        }
                    }
                    rest -= ((kept.len() - before) as u64).min(rest);
                    if is_read {
                        position += 1;
                    }
                }
                if describe {
                    describe_first(&kept, out)?;
                }
                let rows = kept.len() as u64;
                for row in kept {
                    out.extend_from_slice(&row);
                }
                if let Some(Cursor::Workers { at, .. }) = self.cursors.cursors.get_mut(name) {
                    *at = position;
                }
                Ok(rows)
            }
        }
    }

    /// Puts a name of ours in place of a row's identity on its worker. None: the statement has moved it here.
    fn name_row(&mut self, column: usize, raw: &Bytes) -> Result<Option<Bytes>> {
        let mut fields = fields_of(&Frame { raw: raw.clone() })?;
        if let Some(Some(identity)) = fields.get(column) {
            let identity = String::from_utf8_lossy(identity);
            let unknown = || Failure::new("XX000", "a row's place is not understood");
            let (group, rest) = identity.split_once(' ').ok_or_else(unknown)?;
            let (place, shard) = rest.rsplit_once(' ').ok_or_else(unknown)?;
            let group = group.parse().map_err(|_| unknown())?;
            if self.cursors.changes.has_moved(group, place) {
                return Ok(None);
            }
            let (catalog, shard) = (self.catalog(), shard.parse().map_err(|_| unknown())?);
            fields[column] = Some(Bytes::from(self.cursors.names.name(&catalog, group, place, shard)?));
        }
        let mut out = BytesMut::with_capacity(raw.len() + 16);
        backend::write_data_row(&mut out, &fields);
        Ok(Some(out.freeze()))
    }

    /// From its first row to its DEALLOCATE, a prepared change belongs to one statement of the coordinator.
    async fn note_change(&mut self, name: &str, sql: &str, in_block: bool) -> Result<()> {
        let inserts = sql.starts_with("INSERT INTO ");
        if !in_block || !(inserts || sql.contains("WHERE ctid = $1")) || self.is_changing(name) {
            return Ok(());
        }
        let table = one(sql).ok().and_then(|statement| self.table_of(&statement));
        // Rows for an ordinary table of the coordinator come at the end of their statement.
        match table.filter(|table| !inserts || table.is_leaf) {
            Some(table) => {
                let others = match inserts {
                    true => HashSet::new(),
                    false => self.catalog().changed_with(table.oid, sql.starts_with("DELETE ")),
                };
                self.begin_change(name, &table, others, !inserts).await
            }
            None => Ok(()),
        }
    }

    /// The table that a statement of postgres_fdw names first.
    fn table_of(&self, statement: &Statement) -> Option<Arc<pgherd_catalog::Table>> {
        let relation = statement.relations.first()?;
        match self.catalog().resolve(relation.schema.as_deref(), &relation.name, &[]) {
            pgherd_catalog::Resolved::Table(table) => Some(table.clone()),
            pgherd_catalog::Resolved::Other => None,
        }
    }

    /// Rows that SQL inside the coordinator inserted: `INSERT INTO t (…) VALUES ($1, …), …`, all values text.
    async fn callback_insert(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        in_block: bool,
        out: &mut BytesMut,
    ) -> Result<String> {
        if !in_block {
            return Err(ends_transactions());
        }
        let not_understood =
            || Failure::refused("this INSERT into a distributed table from inside the coordinator is not supported");
        let pgherd_sql::ast::Tree::Insert(insert) = &statement.tree else { return Err(not_understood()) };
        let catalog = self.catalog();
        let table = match catalog.resolve(insert.target.schema.as_deref(), &insert.target.name, &[]) {
            pgherd_catalog::Resolved::Table(table) => table.clone(),
            pgherd_catalog::Resolved::Other => return Err(not_understood()),
        };
        let pgherd_sql::ast::InsertSource::Values(rows) = &insert.source else { return Err(not_understood()) };
        // Through a foreign partition, which knows of this form only.
        let keeps_others =
            insert.on_conflict.as_ref().is_some_and(|c| !c.update && !c.has_inference && c.constraint.is_none());
        if insert.on_conflict.is_some() && !keeps_others {
            return Err(Failure::new(
                "PH001",
                format!(
                    "cannot run ON CONFLICT or MERGE on distributed table \"{}\" from inside the coordinator",
                    table.name
                ),
            )
            .hint("Send the statement through the router by itself."));
        }
        // The workers compute generated columns as the coordinator did.
        let is_stored = |name: &str| table.column(name).is_none_or(|c| c.default != ColumnDefault::Generated);
        let stored: Vec<bool> = insert.columns.iter().map(|(name, _)| is_stored(name)).collect();
        let columns: Vec<String> =
            insert.columns.iter().map(|(name, _)| name).filter(|name| is_stored(name)).cloned().collect();
        let key = table.key_column().and_then(|k| columns.iter().position(|c| *c == k.name));
        let params = bound.map(|b| b.params.as_slice()).unwrap_or_default();
        let mut by_group: std::collections::BTreeMap<GroupId, BytesMut> = std::collections::BTreeMap::new();
        let mut owned: std::collections::BTreeMap<GroupId, Vec<String>> = std::collections::BTreeMap::new();
        let mut owner = None;
        let mut count = 0u64;
        // Into a partition: as it is given, without triggers that could change it.
        let mut returning = Vec::new();
        for item in &insert.returning {
            let position = match &item.expr.kind {
                pgherd_sql::ast::ExprKind::Column(path) => {
                    path.last().and_then(|c| columns.iter().position(|n| n == c))
                }
                _ => None,
            };
            returning.push(position.filter(|_| !table.has_triggers).ok_or_else(not_understood)?);
        }
        let mut returned = BytesMut::new();
        let given = rows.len();
        for row in rows {
            let mut values = Vec::with_capacity(row.len());
            for (field, _) in row.iter().zip(&stored).filter(|(_, stored)| **stored) {
                values.push(match &field.kind {
                    pgherd_sql::ast::ExprKind::Param(number) => {
                        params.get(usize::from(*number).saturating_sub(1)).cloned().flatten()
                    }
                    // A column without a value of its own; the coordinator has computed every default that there is.
                    _ if field.span.of(&statement.text).eq_ignore_ascii_case("default") => None,
                    _ => return Err(not_understood()),
                });
            }
            let value = key.and_then(|k| values.get(k).cloned().flatten());
            let remainder = self.remainder_of_stored_text(&table, value.as_deref()).await?;
            let group = table.shards().get(remainder).map_or(COORDINATOR_GROUP, |s| s.group);
            if !returning.is_empty() {
                let row: Vec<Option<Bytes>> = returning.iter().map(|at| values.get(*at).cloned().flatten()).collect();
                backend::write_data_row(&mut returned, &row);
            }
            if count == 0 {
                self.callback_block();
                self.join(group).await?;
                owner = self.owner_for(group, &table, Use::Insert, false).await?;
            }
            count += 1;
            // COPY is refused where policies apply.
            if owner.is_some() || table.row_security || keeps_others {
                let literal = |v: &Option<Bytes>| match v {
                    Some(value) => quote_literal(&String::from_utf8_lossy(value)),
                    None => "NULL".to_owned(),
                };
                let list: Vec<String> = values.iter().map(literal).collect();
                owned.entry(group).or_default().push(format!("({})", list.join(", ")));
            } else {
                pgherd_wire::copy::write_text_row(by_group.entry(group).or_default(), &values);
            }
        }
        let names: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        for (group, rows) in owned {
            self.join(group).await?;
            if let Some(epoch) = catalog.placement_epoch(table.colocation) {
                self.fence(group, table.colocation, epoch);
            }
            self.mark_writer(group);
            let sql = format!(
                "INSERT INTO {}.{} ({}) OVERRIDING SYSTEM VALUE VALUES {}{}",
                quote_ident(&table.schema),
                quote_ident(&table.name),
                names.join(", "),
                rows.join(", "),
                if keeps_others { " ON CONFLICT DO NOTHING" } else { "" }
            );
            let inserted = match &owner {
                Some(owner) => {
                    self.run_as_owner(group, &table, owner, &format!("{sql} RETURNING 1"), None).await?.len()
                }
                None => {
                    let styled = self.with_plain_styles(group).await?;
                    let request = Request::text(sql);
                    let tag = self.run_request(group, &request, Rows::Drop, Errors::default()).await?.tag;
                    if styled {
                        self.with_client_styles(group).await?;
                    }
                    backend::command_tag_rows(&tag).and_then(|n| usize::try_from(n).ok()).unwrap_or(rows.len())
                }
            };
            count -= rows.len().saturating_sub(inserted) as u64;
        }
        if count == 0 {
            returned.clear();
        } else if keeps_others && !insert.returning.is_empty() && given != 1 {
            return Err(not_understood());
        }
        for (group, lines) in by_group {
            let styled = if self.txn.participants.contains_key(&group) || self.has_styles() {
                self.join(group).await?;
                self.with_plain_styles(group).await?
            } else {
                false
            };
            let copied = self.copy_lines_to(group, &table, &columns, &lines).await;
            if styled && copied.is_ok() {
                self.with_client_styles(group).await?;
            }
            copied.map_err(without_copy_context)?;
        }
        out.extend_from_slice(&returned);
        Ok(format!("INSERT 0 {count}"))
    }

    /// `UPDATE … WHERE ctid = $1` and `DELETE … WHERE ctid = $1` with a name of ours.
    async fn callback_change_row(
        &mut self,
        statement: &Statement,
        bound: Option<&Bound>,
        in_block: bool,
        out: &mut BytesMut,
    ) -> Result<String> {
        if !in_block {
            return Err(ends_transactions());
        }
        let name = bound.and_then(|b| b.params.first().cloned().flatten()).unwrap_or_default();
        let (catalog, table) = (self.catalog(), self.table_of(statement));
        let (group, identity) = table
            .as_ref()
            .and_then(|table| self.cursors.row(&catalog, table, &name))
            .ok_or_else(|| Failure::new("XX000", "a row of a distributed table is not known by this name"))?;
        let (partition, ctid) = identity.split_once(' ').unwrap_or(("0", ""));
        if let (Some(table), StatementKind::Delete) = (&table, &statement.kind) {
            self.check_deletes(table)?;
        }
        // Another part of the statement has changed it.
        if self.cursors.changes.later.has_row(group, &identity) {
            if let Some(table) = table.filter(|t| self.catalog().firing_before.contains(&t.oid)) {
                return Err(fired_twice(&table));
            }
            return Ok(format!("{} 0", command_word(&statement.text)));
        }
        let fired = table.clone().filter(|t| t.fires_here);
        let given_key = self.moved_key(statement).filter(|(table, _)| pgherd_planner::fires(table));
        // The partition that the row is in may be any of the table that the user's statement names.
        let whole = match (&statement.kind, &table) {
            (StatementKind::Update, Some(table)) => self.cursors.changes.moves_in(table)?,
            _ => None,
        };
        if given_key.is_none()
            && let Some((table, set)) = self.moved_key(statement)
        {
            let row = MovedRow { group, partition, ctid, table: &table, whole: whole.as_ref(), set: &set };
            return self.move_row(row, statement, bound, out).await;
        }
        let mut bound = bound.cloned().unwrap_or_default();
        if let Some(first) = bound.params.first_mut() {
            *first = Some(Bytes::copy_from_slice(ctid.as_bytes()));
        }
        let mut sql =
            statement.text.replacen("WHERE ctid = $1", &format!("WHERE ctid = $1 AND tableoid = {partition}"), 1);
        // Where BEFORE triggers may change any column, all are assigned.
        if let Some((table, set)) = &given_key
            && let Some(key) = table.key_column()
            && let Some((_, Some(index))) = set.iter().find(|(name, _)| *name == key.name)
        {
            let same = format!(" AND {} IS NOT DISTINCT FROM ${}", quote_ident(&key.name), index + 1);
            let found = format!("tableoid = {partition}");
            sql = sql.replacen(&found, &format!("{found}{same}"), 1);
        }
        if let (Some(table), Some(at)) = (&table, sql.rfind(" RETURNING ")) {
            let returned = with_names(&sql[at..], &catalog, table);
            sql.replace_range(at.., &returned);
        }
        let whole = whole.zip(table.as_ref()).filter(|(whole, table)| whole.oid != table.oid);
        if let Some((whole, _)) = &whole {
            sql = in_whole_table(statement, &sql, whole);
        }
        self.join(group).await?;
        self.mark_writer(group);
        let using = match &statement.kind {
            StatementKind::Delete => Use::Delete,
            _ => Use::Update,
        };
        let owner = match &table {
            // A scan has shown it already.
            Some(table) => self.owner_for(group, table, using, true).await?,
            None => None,
        };
        if let (Some(table), None, None, None) = (&table, &owner, &whole, &given_key)
            && let Some(tag) = self.wait_with_row((group, &identity), table, statement, Some(&bound), out).await?
        {
            return Ok(tag);
        }
        self.cursors.changes.are_made(table.as_ref().map(|table| table.oid));
        if let (Some(table), Some(owner)) = (&table, owner) {
            let rows = self.run_as_owner(group, table, &owner, &returning(&sql), Some(&bound)).await?;
            let tag = format!("{} {}", command_word(&sql), rows.len());
            self.check_key(given_key.as_ref(), (group, &identity), &tag, &bound).await?;
            if let Some(fired) = &fired {
                self.check_fired(fired, (group, &identity), &tag)?;
            }
            self.check_cascaded(table, (group, &identity), &tag)?;
            for row in rows {
                let row = match &whole {
                    Some((whole, _)) => self.note_place(whole, group, partition, &row)?,
                    None => row,
                };
                if returns_rows(&statement.text) {
                    out.extend_from_slice(&row);
                }
            }
            return Ok(tag);
        }
        let request = Request { bound: Some(&bound), ..Request::text(sql.clone()) };
        let mut kept = Vec::new();
        let styled = self.with_plain_styles(group).await?;
        let end = self.run_request(group, &request, Rows::Keep(&mut kept), Errors::default()).await?;
        if styled {
            self.with_client_styles(group).await?;
        }
        self.check_key(given_key.as_ref(), (group, &identity), &end.tag, &bound).await?;
        if let Some(fired) = &fired {
            self.check_fired(fired, (group, &identity), &end.tag)?;
        }
        if let Some(table) = &table {
            self.check_cascaded(table, (group, &identity), &end.tag)?;
        }
        for row in kept {
            let row = match &whole {
                Some((whole, _)) => self.note_place(whole, group, partition, &row)?,
                None => row,
            };
            if returns_rows(&statement.text) {
                out.extend_from_slice(&row);
            }
        }
        Ok(end.tag)
    }

    /// A row was not found under the distribution column that it was given: it has another one.
    async fn check_key(
        &mut self,
        given: Option<&(Arc<Table>, Assigned)>,
        (group, place): (GroupId, &str),
        tag: &str,
        bound: &Bound,
    ) -> Result<()> {
        let Some((table, set)) = given.filter(|_| tag.ends_with(" 0")) else { return Ok(()) };
        let Some(key) = table.key_column() else { return Ok(()) };
        let value = match set.iter().find(|(name, _)| *name == key.name) {
            Some((_, Some(index))) => bound.params.get(*index).cloned().flatten(),
            _ => return Ok(()),
        };
        let value = value.map_or("NULL".to_owned(), |value| quote_literal(&String::from_utf8_lossy(&value)));
        let (partition, ctid) = place.split_once(' ').unwrap_or_default();
        let there = format!(
            "SELECT FROM {}.{} WHERE ctid = {} AND tableoid = {partition} AND {} IS DISTINCT FROM {value}",
            quote_ident(&table.schema),
            quote_ident(&table.name),
            quote_literal(ctid),
            quote_ident(&key.name)
        );
        match self.collect_on(group, &there).await?.rows.is_empty() {
            true => Ok(()),
            false => Err(keeps_its_key(table)),
        }
    }

    /// A row of a table whose triggers fire on the coordinator was changed, or not found any more: the statement has
    /// changed it before, or something that its triggers did.
    fn check_fired(&mut self, table: &pgherd_catalog::Table, (group, place): (GroupId, &str), tag: &str) -> Result<()> {
        let name = self.cursors.changes.executed.clone();
        if !tag.ends_with(" 0") {
            self.cursors.changes.row_changed(&name, group, place);
            return Ok(());
        }
        if self.cursors.changes.has_written(&name, group, place) {
            return match self.catalog().firing_before.contains(&table.oid) {
                true => Err(fired_twice(table)),
                false => Ok(()),
            };
        }
        if table.row_security {
            return Ok(());
        }
        let word = if tag.starts_with("DELETE") { "deleted" } else { "updated" };
        Err(Failure::new(
            "27000",
            format!("tuple to be {word} was already modified by an operation triggered by the current command"),
        )
        .hint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows."))
    }

    /// One PostgreSQL would let foreign keys change rows when the statement has ended.
    fn check_cascaded(&mut self, table: &pgherd_catalog::Table, row: (GroupId, &str), tag: &str) -> Result<()> {
        let is_other = self.cursors.changes.is_other(table.oid);
        if !is_other && !self.is_keyed(table) {
            return Ok(());
        }
        // Triggers and policies leave rows as they are.
        let is_certain = is_other || !table.has_triggers && !table.row_security;
        let is_cascaded = self.cursors.changes.is_cascaded(row.0, row.1, !tag.ends_with(" 0"));
        match is_certain && is_cascaded {
            false => Ok(()),
            true => Err(changed_by_key(table)),
        }
    }

    /// A changed row whose last column says where it is now: the rest of it.
    pub(crate) fn note_place(
        &mut self,
        table: &pgherd_catalog::Table,
        group: GroupId,
        partition: &str,
        raw: &Bytes,
    ) -> Result<Bytes> {
        let mut fields = fields_of(&Frame { raw: raw.clone() })?;
        if let Some(Some(place)) = fields.pop() {
            let place = String::from_utf8_lossy(&place).into_owned();
            if place.split_once(' ').is_none_or(|(now, _)| now != partition) {
                self.cursors.changes.row_moved(table, group, place)?;
            }
        }
        let mut row = BytesMut::with_capacity(raw.len());
        backend::write_data_row(&mut row, &fields);
        Ok(row.freeze())
    }

    /// `MOVE BACKWARD ALL`: the coordinator reads the rows once more.
    async fn callback_rewind(&mut self, name: &str) -> Result<()> {
        let missing = || Failure::new("34000", format!("cursor \"{name}\" does not exist"));
        let (worker_name, groups) = match self.cursors.cursors.get_mut(name).ok_or_else(missing)? {
            Cursor::Rows { at, .. } => {
                *at = 0;
                return Ok(());
            }
            Cursor::Workers { name, groups, at, .. } => {
                *at = 0;
                (name.clone(), groups.clone())
            }
        };
        for group in groups {
            self.run_quiet(group, &format!("MOVE BACKWARD ALL IN {}", quote_ident(&worker_name))).await?;
        }
        Ok(())
    }

    /// Dates and numbers must come in the form that postgres_fdw expects, whatever the client's own settings are.
    pub async fn with_plain_styles(&mut self, group: GroupId) -> Result<bool> {
        let styled = self.has_styles();
        if styled {
            self.run_quiet(
                group,
                "SELECT pg_catalog.set_config(name, value, true) FROM (VALUES ('datestyle', 'ISO'), \
                 ('intervalstyle', 'postgres'), ('extra_float_digits', '3'), ('array_nulls', 'on')) s(name, value)",
            )
            .await?;
        }
        Ok(styled)
    }

    /// Values are written in a way that other settings read otherwise, or shortened.
    pub fn has_styles(&self) -> bool {
        STYLES.iter().any(|name| self.in_force(name).is_some_and(|value| !is_plain_style(name, value)))
    }

    pub async fn with_client_styles(&mut self, group: GroupId) -> Result<()> {
        let list: Vec<String> = STYLES
            .iter()
            .filter_map(|name| {
                let value = self.in_force(name)?;
                Some(format!("pg_catalog.set_config('{name}', {}, true)", quote_literal(value)))
            })
            .collect();
        self.run_quiet(group, &format!("SELECT {}", list.join(", "))).await
    }

    /// A subtransaction of the coordinator was rolled back: the workers follow, and only they.
    async fn rollback_workers_to(&mut self, name: &str) -> Result<()> {
        // The savepoint may be gone with one of the client's, which was rolled back to further out.
        if !self.has_savepoint(name) {
            return Ok(());
        }
        // Statements around it go on.
        let changes = std::mem::take(&mut self.cursors.changes);
        let done = self.rollback_to_savepoint(name).await;
        self.cursors.changes = changes;
        done
    }

    /// A session of this router, by the number that its client knows: whose it is, interrupted or ended. The
    /// coordinator has seen that who asks may.
    async fn remote_session(&mut self, query: &str) -> Result<Cursor> {
        let command = command_of(query)
            .ok_or_else(|| Failure::new("XX000", "pgherd.remote_session is read without a command"))?;
        let (what, pid) = command.split_once(' ').unwrap_or_default();
        let state = pid.parse().ok().and_then(|pid| self.thread.shared.cancel_state(pid));
        let result = match (&state, what) {
            (_, "all") => Some(crate::activity::sessions(&self.thread.shared).await),
            (Some(state), "user") => state.user().map(str::to_owned),
            (Some(state), "cancel") => {
                state.cancel_all().await;
                Some("t".to_owned())
            }
            (Some(state), "terminate") => {
                state.terminate();
                Some("t".to_owned())
            }
            _ => None,
        };
        let columns = selected_columns(query);
        let values = columns.iter().map(|column| match column.as_str() {
            "result" => result.as_deref(),
            "command" => Some(command.as_str()),
            _ => None,
        });
        let mut row = BytesMut::new();
        backend::write_data_row(&mut row, &values.map(|v| v.map(str::as_bytes)).collect::<Vec<_>>());
        let fields = columns.iter().map(|c| backend::FieldDescription::text(c)).collect();
        Ok(Cursor::Rows { rows: vec![row.freeze()], at: 0, fields })
    }

    /// `run_command_on_workers`: one row for each worker; an error there is a row too.
    async fn remote_command(&mut self, query: &str) -> Result<Cursor> {
        let command = command_of(query)
            .ok_or_else(|| Failure::refused("pgherd.remote_command can only be read with command = '…'"))?;
        let columns = selected_columns(query);
        let only = node_of(query);
        let catalog = self.catalog();
        let mut rows = Vec::new();
        let is_meant = |node: &&Node| match &only {
            Some((host, port)) => node.host == *host && node.port == *port,
            None => true,
        };
        for node in catalog.nodes.iter().filter(|n| n.is_active && n.group != COORDINATOR_GROUP).filter(is_meant) {
            let (success, result) = match self.command_on(node.group, &command).await {
                Ok(result) => (true, result),
                Err(Failure::Statement(fields) | Failure::Fatal(fields)) => {
                    (false, Some(format!("ERROR:  {}", fields.message())))
                }
                Err(other) => return Err(other),
            };
            let port = node.port.to_string();
            let values: Vec<Option<String>> = columns
                .iter()
                .map(|column| match column.as_str() {
                    "nodename" => Some(node.host.clone()),
                    "nodeport" => Some(port.clone()),
                    "success" => Some(if success { "t".into() } else { "f".into() }),
                    "result" => result.clone(),
                    "command" => Some(command.clone()),
                    _ => None,
                })
                .collect();
            let mut row = BytesMut::new();
            backend::write_data_row(
                &mut row,
                &values.iter().map(|v| v.as_ref().map(String::as_bytes)).collect::<Vec<_>>(),
            );
            rows.push(row.freeze());
        }
        let fields = columns.iter().map(|c| backend::FieldDescription::text(c)).collect();
        Ok(Cursor::Rows { rows, at: 0, fields })
    }

    /// The first value of a command's result. Inside the client's transaction where the worker takes part in one, else
    /// on a connection of its own.
    async fn command_on(&mut self, group: GroupId, command: &str) -> Result<Option<String>> {
        if self.txn.participants.contains_key(&group) {
            self.join(group).await?;
            self.mark_writer(group);
            self.run_quiet(group, "SAVEPOINT pgherd_command").await?;
            // Whatever it leaves on the connection is for nobody else.
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                participant.lease.tainted = true;
                participant.lease.prepared.clear();
            }
            let result = self.collect_on(group, command).await;
            let end = if result.is_ok() {
                "RELEASE SAVEPOINT pgherd_command"
            } else {
                "ROLLBACK TO SAVEPOINT pgherd_command"
            };
            self.run_quiet(group, end).await?;
            return result.map(|r| first_value(&r));
        }
        let mut lease = self.lease_aside(group).await?;
        let result = lease.query(command).await;
        lease.tainted = true;
        Ok(first_value(&result?))
    }
}

/// The one node that a query of `pgherd.remote_command` is for.
fn node_of(query: &str) -> Option<(String, u16)> {
    let statement = pgherd_sql::split(query).ok()?.pop()?;
    let Tree::Query(query) = &statement.tree else { return None };
    let Body::Select(select) = &query.body else { return None };
    let (mut host, mut port) = (None, None);
    select.filter.as_ref()?.walk(&mut |expr| {
        let ExprKind::Op(op) = &expr.kind else { return };
        let (Some(left), Some(right)) = (&op.left, &op.right) else { return };
        let ExprKind::Column(path) = &left.kind else { return };
        match (path.last().map(String::as_str), &right.kind) {
            (Some("nodename"), ExprKind::Const(Const::String(name))) => host = Some(name.clone()),
            (Some("nodeport"), ExprKind::Const(Const::Integer(number))) => port = u16::try_from(*number).ok(),
            _ => {}
        }
    });
    Some((host?, port?))
}

fn changes_rows(kind: &StatementKind) -> bool {
    use StatementKind as K;
    matches!(kind, K::Insert | K::Update | K::Delete | K::Truncate { .. })
}

/// At COMMIT: workers are prepared, or would not commit what is done there.
fn too_late() -> Failure {
    Failure::refused("distributed tables cannot be used by a trigger or constraint that runs at COMMIT")
        .hint("Use SET CONSTRAINTS ALL IMMEDIATE before COMMIT.")
}

pub fn ends_transactions() -> Failure {
    Failure::refused(
        "writing distributed tables from a procedure or DO block that ends transactions itself is not supported",
    )
}

fn first_value(result: &pgherd_backend::QueryResult) -> Option<String> {
    result.text(0, 0).map(str::to_owned).or_else(|| (!result.tag.is_empty()).then(|| result.tag.clone()))
}

/// The client sent an INSERT: that a COPY carried it is our business.
fn without_copy_context(failure: Failure) -> Failure {
    match failure {
        Failure::Statement(mut fields) => {
            fields.remove(b'W');
            Failure::Statement(fields)
        }
        other => other,
    }
}

/// An UPDATE of a row of a partition as one of the table that has the partition. It tells where the row is then.
fn in_whole_table(statement: &Statement, sql: &str, whole: &pgherd_catalog::Table) -> String {
    let rest = sql.split_once(" SET ").map_or("", |(_, rest)| rest);
    let more = if returns_rows(&statement.text) { ", " } else { " RETURNING " };
    format!("UPDATE {}.{} SET {rest}{more}{PLACE}", quote_ident(&whole.schema), quote_ident(&whole.name))
}

/// One PostgreSQL would not have fired them.
fn fired_twice(table: &pgherd_catalog::Table) -> Failure {
    Failure::refused(format!("cannot change a row of distributed table \"{}\" twice in one statement", table.name))
        .detail("Its BEFORE triggers have fired for the row once more.")
        .hint("Join so that each row is found once.")
}

pub(crate) fn changed_by_key(table: &pgherd_catalog::Table) -> Failure {
    Failure::refused(format!(
        "cannot change rows of distributed table \"{}\" that a foreign key changes in the same statement",
        table.name
    ))
    .hint("Run the statements one after another, or give the value of the distribution column.")
}

fn half_changed(table: &str) -> Failure {
    Failure::refused(format!(
        "cannot read distributed table \"{table}\" while a statement inside the coordinator changes its rows"
    ))
    .hint("Compute what is read first, or give the value of the distribution column.")
}

/// The number in postgres_fdw's names of savepoints, `s2`.
fn depth_of(savepoint: &str) -> Option<u32> {
    savepoint.strip_prefix('s')?.parse().ok()
}

/// Savepoints of the coordinator's subtransactions, apart from the client's own names.
fn callback_savepoint(name: &str) -> String {
    format!("{SAVEPOINT_PREFIX}{name}")
}

/// Names of foreign children as they are without `quote_all_identifiers`.
fn without_quotes(sql: &str) -> Cow<'_, str> {
    const QUOTED: &str = "\"pgherd\".\"ft_";
    if !sql.contains(QUOTED) {
        return Cow::Borrowed(sql);
    }
    let mut out = String::with_capacity(sql.len());
    let mut at = 0;
    while let Some(c) = sql[at..].chars().next() {
        let (before, rest) = sql.split_at(at);
        let child = rest.strip_prefix(QUOTED).and_then(|after| after.split_once('"')).map(|(number, _)| number);
        if let Some(number) = child.filter(|number| number.bytes().all(|b| b.is_ascii_digit())) {
            out.push_str("pgherd.ft_");
            out.push_str(number);
            at += QUOTED.len() + number.len() + 1;
        } else {
            let length = length_of_quoted(before, rest).max(c.len_utf8());
            out.push_str(&rest[..length]);
            at += length;
        }
    }
    Cow::Owned(out)
}

/// `name`: of a table, by its number. Quoted text is left as it is, but for the question of ANALYZE how large the table
/// is.
fn name_children(sql: &str, name: &dyn Fn(u32) -> Option<String>) -> String {
    const CHILD: &str = "pgherd.ft_";
    const SIZE: &str = "SELECT pg_catalog.pg_relation_size('";
    if let Some(after) = sql.strip_prefix(SIZE)
        && let Some((child, tail)) = after.split_once('\'')
    {
        let named = name_children(child, name).replace('\'', "''");
        return format!("{SIZE}{named}'{tail}");
    }
    replace_unquoted(&without_quotes(sql), |rest, before| {
        let after = rest.strip_prefix(CHILD).filter(|_| !before.is_some_and(|c| c == '.' || is_in_name(c)))?;
        let digits = &after[..after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len()];
        let ends = !after[digits.len()..].starts_with(is_in_name);
        Some((CHILD.len() + digits.len(), digits.parse().ok().filter(|_| ends).and_then(name)?))
    })
}

fn one(sql: &str) -> Result<Statement> {
    pgherd_sql::split(sql)
        .ok()
        .and_then(|mut s| s.pop())
        .ok_or_else(|| Failure::new("42601", "callback query is not understood"))
}

/// The number in `c17`, as postgres_fdw names its cursors: it counts the scans of a transaction as they begin, which is
/// when their statement does. Other names: the latest of all.
fn scan_number(name: &str) -> u64 {
    name.strip_prefix('c').and_then(|digits| digits.parse().ok()).unwrap_or(u64::MAX)
}

/// The number in `FETCH n FROM c`.
fn fetch_count(text: &str) -> u64 {
    text.split_whitespace().filter_map(|word| word.parse().ok()).next().unwrap_or(1)
}

/// postgres_fdw looks at the number of columns only.
fn describe_first(rows: &[Bytes], out: &mut BytesMut) -> Result<()> {
    let columns = match rows.first() {
        Some(raw) => fields_of(&Frame { raw: raw.clone() })?.len(),
        None => 0,
    };
    write_columns(columns, out);
    Ok(())
}

fn write_columns(count: usize, out: &mut BytesMut) {
    let fields: Vec<backend::FieldDescription> =
        (0..count).map(|i| backend::FieldDescription::text(&format!("c{i}"))).collect();
    backend::write_row_description(out, &fields);
}

fn check_size(rows: &[Bytes]) -> Result<()> {
    match rows.iter().map(Bytes::len).sum::<usize>() > REPLY_BYTES_MAX {
        true => Err(too_large()),
        false => Ok(()),
    }
}

pub fn too_large() -> Failure {
    Failure::new("53200", "the rows of one callback do not fit in memory")
}

/// UPDATE, DELETE or SELECT.
fn command_word(sql: &str) -> &str {
    sql.split_whitespace().next().unwrap_or_default()
}

fn returns_rows(sql: &str) -> bool {
    sql.starts_with("SELECT ") || sql.contains(" RETURNING ")
}

/// A change whose rows are counted by what it returns.
fn returning(sql: &str) -> String {
    match returns_rows(sql) {
        true => sql.to_owned(),
        false => format!("{sql} RETURNING 1"),
    }
}

/// How many columns a statement of postgres_fdw returns: plain names and constants, separated by commas.
fn returned_columns(sql: &str) -> usize {
    // In a cursor's query the word can only be in a literal.
    if sql.trim_start().starts_with("DECLARE") {
        return 0;
    }
    sql.rsplit_once(" RETURNING ").map_or(0, |(_, list)| list.split(',').count())
}

/// A query that sorts by ctid sorts by the names that stand for it, which are another column than the one selected.
fn sorted_by_names(query: &str) -> Cow<'_, str> {
    if !query.contains(" ORDER BY ") || !query.contains("ctid") {
        return query.into();
    }
    let mut sorts = false;
    let sorted = replace_unquoted(query, |rest, before| {
        sorts |= rest.starts_with(" ORDER BY ");
        let is_name = rest.starts_with("ctid ") && !before.is_some_and(|c| is_in_name(c) || c == '"');
        (sorts && is_name).then(|| (4, "coalesce(ctid)".to_owned()))
    });
    sorted.into()
}

/// A worker's text with names of ours in place of ctids, but where it selects them: there they have to be known here.
fn with_names_behind(sql: &str, snapshot: &Snapshot, table: &Arc<Table>) -> String {
    match sql.split_once(" FROM ").filter(|_| sql.starts_with("SELECT ")) {
        Some((list, rest)) => {
            let items = list.split(", ").map(|item| match item.strip_prefix("SELECT ").unwrap_or(item) {
                "ctid" => item.to_owned(),
                _ => with_names(item, snapshot, table),
            });
            format!("{} FROM {}", items.collect::<Vec<_>>().join(", "), with_names(rest, snapshot, table))
        }
        None => with_names(sql, snapshot, table),
    }
}

/// The worker's query with a row's whole identity, group, partition and ctid, in place of its ctid.
fn with_identities(sql: &str, group: GroupId) -> String {
    let Some((list, rest)) = sql.split_once(" FROM ") else { return sql.to_owned() };
    let identity = format!(
        "('{group} '::pg_catalog.text || tableoid::pg_catalog.text || ' ' || ctid::pg_catalog.text || ' ' || {SHARD})"
    );
    let columns: Vec<&str> = list
        .strip_prefix("SELECT ")
        .unwrap_or(list)
        .split(", ")
        .map(|c| if c == "ctid" { identity.as_str() } else { c })
        .collect();
    format!("SELECT {} FROM {rest}", columns.join(", "))
}

/// The literal in `(command = '…'::text)`.
pub fn command_of(query: &str) -> Option<String> {
    // What comes first: the literal may have any text.
    let at = ["command = ", "command\" = "].iter().filter_map(|word| Some(query.find(word)? + word.len())).min()?;
    let rest = &query[at..];
    let (escapes, rest) = match rest.strip_prefix('E').or_else(|| rest.strip_prefix(" E")) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let mut characters = rest.strip_prefix('\'')?.chars().peekable();
    let mut out = String::new();
    while let Some(c) = characters.next() {
        match c {
            '\'' if characters.peek() == Some(&'\'') => {
                characters.next();
                out.push('\'');
            }
            '\'' => return Some(out),
            '\\' if escapes => out.push(characters.next()?),
            c => out.push(c),
        }
    }
    None
}

/// Names in the select list of a callback query; NULL where no column is wanted.
fn selected_columns(query: &str) -> Vec<String> {
    let list = query.strip_prefix("SELECT ").and_then(|rest| rest.split_once(" FROM ")).map_or("", |(list, _)| list);
    list.split(',').map(|c| c.trim().trim_matches('"').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stand_for_their_tables_outside_of_quotes() {
        let named = |sql: &str| name_children(sql, &|oid| (oid == 17).then(|| "app.\"T\"".to_owned()));
        assert_eq!(
            named("SELECT a FROM pgherd.ft_17 WHERE b = 'pgherd.ft_17' AND c = E'\\'pgherd.ft_17'"),
            "SELECT a FROM app.\"T\" WHERE b = 'pgherd.ft_17' AND c = E'\\'pgherd.ft_17'"
        );
        assert_eq!(named("INSERT INTO pgherd.ft_17(a) VALUES ($1)"), "INSERT INTO app.\"T\"(a) VALUES ($1)");
        assert_eq!(
            named("SELECT \"a\" FROM \"pgherd\".\"ft_17\" WHERE b = '\"pgherd\".\"ft_17\"'"),
            "SELECT \"a\" FROM app.\"T\" WHERE b = '\"pgherd\".\"ft_17\"'"
        );
        for other in ["FROM pgherd.ft_18", "FROM pgherd.ft_17x", "FROM apgherd.ft_17", "\"pgherd.ft_17\"", "pgherd.ft_"]
        {
            assert_eq!(named(other), other);
        }
        assert_eq!(
            named("SELECT pg_catalog.pg_relation_size('pgherd.ft_17'::pg_catalog.regclass) / 8192"),
            "SELECT pg_catalog.pg_relation_size('app.\"T\"'::pg_catalog.regclass) / 8192"
        );
    }

    #[test]
    fn the_command_is_read_out_of_the_pushed_down_filter() {
        let query =
            "SELECT nodename, nodeport, success, result FROM pgherd.remote_command WHERE ((command = 'SELECT ''a'''))";
        assert_eq!(command_of(query).as_deref(), Some("SELECT 'a'"));
        assert_eq!(selected_columns(query), ["nodename", "nodeport", "success", "result"]);
        assert_eq!(
            command_of("SELECT NULL FROM pgherd.remote_command WHERE ((command = E'a\\\\b'))").as_deref(),
            Some("a\\b")
        );
        assert_eq!(command_of("SELECT NULL FROM pgherd.remote_command"), None);
    }
}
