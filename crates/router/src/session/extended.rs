//! The extended protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync. Statements and portals live here in the
//! router; a server sees a statement when it is executed there. An Execute waits until the next message is known: with
//! a Sync right behind it, it is a transaction of its own; otherwise the pipeline is one transaction up to Sync.
//! Follows <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY>.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use pgherd_sql::{DiscardKind, StatementKind};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend::{BindMessage, FrontendMessage, format_of, parse_frontend};

use super::{Named, Prepared, Session};
use crate::error::{Failure, Result};
use crate::run::{Call, Completion};
use crate::transaction::Block;

/// Parameter values and formats of a portal.
#[derive(Debug, Clone, Default)]
pub struct Bound {
    pub param_formats: Vec<i16>,
    pub params: Vec<Option<Bytes>>,
    pub result_formats: Vec<i16>,
}

impl Bound {
    /// The values of a Bind.
    pub fn new(frame: &Frame, bind: BindMessage<'_>) -> Bound {
        let base = frame.body_bytes();
        let place = |value: &[u8]| value.as_ptr() as usize - base.as_ptr() as usize;
        let params = bind.params.iter().map(|p| p.map(|p| base.slice(place(p)..place(p) + p.len()))).collect();
        Bound { param_formats: bind.param_formats, params, result_formats: bind.result_formats }
    }

    pub fn is_binary(&self, index: usize) -> bool {
        format_of(&self.param_formats, index) == 1
    }

    /// The same values, for rows that come as text.
    pub fn for_text(&self) -> Bound {
        Bound { result_formats: Vec::new(), ..self.clone() }
    }
}

pub struct Portal {
    pub prepared: Rc<Prepared>,
    pub bound: Rc<Bound>,
    pub progress: Progress,
    pub made: SystemTime,
    /// It has given a row, and not come to its end since.
    pub on_row: bool,
    /// Where BindComplete was written: taken back if a server does not accept a value.
    mark: (u64, usize),
}

impl Portal {
    /// One that has been run to its end.
    pub fn done(prepared: Rc<Prepared>, bound: Bound, mark: (u64, usize)) -> Portal {
        Portal {
            prepared,
            bound: Rc::new(bound),
            progress: Progress::Done,
            made: SystemTime::now(),
            on_row: false,
            mark,
        }
    }
}

/// How far a portal has been executed.
pub enum Progress {
    NotStarted,
    /// A portal of this name is open on a participant.
    OnServer {
        group: pgherd_catalog::GroupId,
        name: String,
    },
    /// Rows that are already here.
    Rows {
        rows: VecDeque<Bytes>,
        tag: String,
    },
    Done,
}

/// An Execute whose fate depends on the next message.
pub struct Pending {
    portal: String,
    max_rows: i32,
}

impl Pending {
    pub fn new(portal: &str, max_rows: i32) -> Pending {
        Pending { portal: portal.to_owned(), max_rows }
    }
}

impl Session {
    pub(super) async fn extended_message(&mut self, frame: &Frame) -> Result<()> {
        if frame.tag() == b'S' {
            if let Some(failure) = self.pipeline_is_late() {
                self.fail_pipeline(failure).await?;
            }
            return self.sync().await;
        }
        // CopyData and its like outside a copy are leftovers of one that failed; PostgreSQL ignores them too.
        if matches!(frame.tag(), b'd' | b'c' | b'f') {
            return Ok(());
        }
        if self.skip_until_sync {
            return Ok(());
        }
        if frame.tag() == b'F' {
            return Box::pin(self.function_message(frame)).await;
        }
        self.recall_portal();
        let result = match self.pipeline_is_late() {
            Some(failure) => Err(failure),
            None => self.extended_step(frame).await,
        };
        match frame.tag() {
            // What has been executed is over.
            b'E' => self.pipeline_began = None,
            b'P' | b'B' | b'D' => _ = self.pipeline_began.get_or_insert_with(Instant::now),
            _ => {}
        }
        match self.client.converted(result) {
            Ok(()) => self.client.flush_if_full().await,
            Err(failure) => self.fail_pipeline(failure).await,
        }
    }

    /// A statement's time goes on while its client is between Parse and Execute.
    pub(super) fn pipeline_is_late(&self) -> Option<Failure> {
        let spent = self.pipeline_began.filter(|_| !self.skip_until_sync)?.elapsed();
        let limit = self.in_force("statement_timeout").and_then(crate::settings::time)?;
        let is_late = !limit.is_zero() && spent >= limit;
        is_late.then(|| Failure::new("57014", "canceling statement due to statement timeout"))
    }

    /// After an error nothing is done before the client's Sync.
    async fn fail_pipeline(&mut self, failure: Failure) -> Result<()> {
        let fields = match self.of_pipeline(failure) {
            Failure::Statement(fields) => fields,
            other => return Err(other),
        };
        backend::write_error(&mut self.client.out, &fields);
        // A client in the middle of COPY sends no Sync before it has read this.
        self.client.flush().await?;
        self.skip_until_sync = true;
        self.pending = None;
        // Nobody waits for this client's Sync.
        if self.txn.block != Block::None {
            self.fail_block().await;
        }
        Ok(())
    }

    /// A block of ours is a pipeline for PostgreSQL.
    fn of_pipeline(&self, failure: Failure) -> Failure {
        const IN_BLOCK: &str = " cannot run inside a transaction block";
        let Failure::Statement(mut fields) = failure else { return failure };
        if self.txn.block == Block::Implicit
            && self.server_major() < PIPELINES_ARE_BLOCKS
            && let Some(what) = fields.message().strip_suffix(IN_BLOCK).map(str::to_owned)
        {
            fields.set(b'M', format!("{what} cannot be executed within a pipeline"));
        }
        Failure::Statement(fields)
    }

    /// A Query without a Sync before it is in one transaction with what came before. False: that has failed.
    pub(super) async fn join_pipeline(&mut self) -> Result<bool> {
        match self.run_waiting().await {
            Ok(()) => Ok(true),
            Err(failure) => self.fail_pipeline(failure).await.map(|()| false),
        }
    }

    /// Whatever comes now is not a Sync: the Execute that waited is part of a longer transaction.
    async fn run_waiting(&mut self) -> Result<()> {
        if self.pending.is_some() {
            if !matches!(self.txn.block, Block::Explicit | Block::Failed) {
                let first = self.txn.block == Block::None && !self.pipelines;
                if first && matches!(self.pending_kind(), Some(StatementKind::Set(set)) if set.local) {
                    // PostgreSQL warns, and it holds until the pipeline's end all the same.
                    self.warn("25P01", "SET LOCAL can only be used in transaction blocks");
                    self.open_implicit_block();
                } else if !self.pending_is_alone() && !self.pending_ends_transactions().await? {
                    self.open_implicit_block();
                }
            }
            let commits = self.txn.block == Block::None && !self.pending_goes_on();
            Box::pin(self.run_pending()).await?;
            self.pipelines = !commits;
        }
        Ok(())
    }

    async fn extended_step(&mut self, frame: &Frame) -> Result<()> {
        self.run_waiting().await?;
        let frame = &self.client.decoded(frame)?;
        match parse_frontend(frame)? {
            FrontendMessage::Parse { name, sql, param_types } => {
                Box::pin(self.parse_message(name, sql, param_types)).await
            }
            FrontendMessage::Bind(bind) => {
                let (portal, statement) = (bind.portal, bind.statement);
                self.catch_up_for(self.named(statement)).await?;
                self.bind_message(portal, statement, Bound::new(frame, bind)).await
            }
            FrontendMessage::Describe { kind, name } => {
                let prepared = match kind {
                    b'S' => self.named(name),
                    _ => self.portals.get(name).map(|portal| portal.prepared.clone()),
                };
                self.catch_up_for(prepared).await?;
                Box::pin(self.describe_message(kind, name)).await
            }
            FrontendMessage::Execute { portal, max_rows } => {
                if !self.portals.contains_key(portal) {
                    return Err(no_portal(portal));
                }
                self.pending = Some(Pending::new(portal, max_rows));
                let copies = |p: &Portal| {
                    p.prepared.statement.as_ref().is_some_and(|s| matches!(s.kind, StatementKind::Copy(_)))
                };
                if self.portals.get(portal).is_some_and(copies) {
                    // The client waits for the copy to begin.
                    if self.txn.block == Block::None {
                        self.open_implicit_block();
                    }
                    Box::pin(self.run_pending()).await?;
                }
                Ok(())
            }
            FrontendMessage::Close { kind, name } => {
                if kind == b'S' {
                    self.statements.remove(name);
                } else if !self.portals.contains_key(name) && self.declared_cursors.contains_key(name) {
                    Box::pin(self.close_cursor(name)).await?;
                } else {
                    self.remove_portal(name);
                }
                backend::write_close_complete(&mut self.client.out);
                Ok(())
            }
            FrontendMessage::Flush => self.client.flush().await,
            _ => Err(Failure::fatal("08P01", format!("invalid frontend message type {}", frame.tag()))),
        }
    }

    fn pending_kind(&self) -> Option<&StatementKind> {
        let portal = self.portals.get(&self.pending.as_ref()?.portal)?;
        portal.prepared.statement.as_ref().map(|statement| &statement.kind)
    }

    /// VACUUM and its like begin and end transactions themselves, and PostgreSQL takes what follows for their pipeline.
    fn pending_goes_on(&self) -> bool {
        match self.pending_kind() {
            Some(StatementKind::Vacuum { .. } | StatementKind::Reindex { .. } | StatementKind::Cluster) => true,
            Some(StatementKind::Ddl(info)) => info.concurrently,
            _ => false,
        }
    }

    /// What begins a transaction; and, before anything else of its pipeline, what PostgreSQL commits by itself there.
    fn pending_is_alone(&self) -> bool {
        match self.pending_kind() {
            Some(StatementKind::Begin(_)) => true,
            Some(kind) => self.txn.block == Block::None && !self.pipelines && is_alone(kind),
            None => false,
        }
    }

    /// A body that may COMMIT does so as the first of a pipeline.
    async fn pending_ends_transactions(&mut self) -> Result<bool> {
        if self.txn.block != Block::None || self.pipelines {
            return Ok(false);
        }
        let portal = self.pending.as_ref().and_then(|pending| self.portals.get(&pending.portal));
        match portal.map(|portal| portal.prepared.clone()) {
            Some(prepared) => self.body_ends_transactions(&prepared).await,
            None => Ok(false),
        }
    }

    async fn catch_up_for(&mut self, prepared: Option<Rc<Prepared>>) -> Result<()> {
        match prepared.as_ref().and_then(|prepared| prepared.statement.as_ref()) {
            Some(statement) => self.catch_up(Some(&statement.kind)).await,
            None => Ok(()),
        }
    }

    async fn parse_message(&mut self, name: &str, sql: &str, param_types: Vec<u32>) -> Result<()> {
        if name.is_empty() {
            // Also where the new one comes to nothing.
            self.statements.remove("");
        }
        let declared = param_types.clone();
        let prepared = self.prepare(sql, param_types).await?;
        if !name.is_empty() && self.statements.contains_key(name) {
            return Err(Failure::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        if name.is_empty() {
            self.learn_parsed(sql, &declared, &prepared);
        }
        self.statements.insert(name.to_owned(), Named::new(prepared, None));
        backend::write_parse_complete(&mut self.client.out);
        Ok(())
    }

    /// Parses a text, or finds it parsed, and has the coordinator check and describe it.
    pub async fn prepare(&mut self, sql: &str, param_types: Vec<u32>) -> Result<Rc<Prepared>> {
        let read = match self.plain_strings_escape() {
            true => pgherd_sql::escape_plain_strings(sql),
            false => Cow::Borrowed(sql),
        };
        if self.txn.catalog_lags {
            let statements = pgherd_sql::split(&read).unwrap_or_default();
            self.catch_up(statements.first().map(|statement| &statement.kind)).await?;
        }
        let key = match &read {
            Cow::Borrowed(_) => self.statement_key(sql, &param_types).await?,
            Cow::Owned(_) => None,
        };
        if let Some(key) = &key
            && let Some(found) = self.thread.statements.borrow_mut().get(key)
        {
            self.check_accepted(&found, "exec_parse_message")?;
            return Ok(found);
        }
        let mut statements = match pgherd_sql::split(&read) {
            Ok(statements) => statements,
            Err(error) => {
                return Err(self
                    .unparsed(sql, error)
                    .await
                    .err()
                    .unwrap_or_else(|| Failure::new("42601", "syntax error")));
            }
        };
        if statements.len() > 1 {
            return Err(Failure::new("42601", "cannot insert multiple commands into a prepared statement"));
        }
        let prepared = Prepared::new(statements.pop(), sql, param_types);
        self.check_accepted(&prepared, "exec_parse_message")?;
        if prepared.statement.as_ref().is_some_and(|s| is_planned(&s.kind)) {
            self.described(&prepared).await?;
            if let Some(key) = key {
                self.thread.statements.borrow_mut().insert(key, prepared.clone());
            }
        }
        if prepared.statement.as_ref().is_some_and(|s| matches!(s.kind, StatementKind::Show { .. })) {
            // An unknown name is an error of Parse.
            let (catalog, path) = (self.catalog(), self.search_path().await?);
            let described = self.describe_show(&prepared).await?;
            prepared.set_described(&catalog, path, Rc::new(described));
        }
        if prepared.statement.as_ref().is_some_and(|s| !is_planned(&s.kind) && s.params > 0) {
            // What it explains, or makes a table of, has parameters.
            let (catalog, path) = (self.catalog(), self.search_path().await?);
            let described = self.describe_on_coordinator(prepared.text(), &prepared.declared).await?;
            prepared.set_described(&catalog, path, Rc::new(described));
        }
        Ok(prepared)
    }

    /// The statement of a name; the unnamed one has the empty name.
    pub fn named(&self, name: &str) -> Option<Rc<Prepared>> {
        self.statements.get(name).map(|named| named.prepared.clone())
    }

    /// DEALLOCATE ALL: the unnamed statement is not among them.
    pub fn forget_named(&mut self) {
        self.statements.retain(|name, _| name.is_empty());
    }

    /// In a failed transaction only its end may be parsed.
    fn check_accepted(&self, prepared: &Prepared, routine: &str) -> Result<()> {
        let ends = prepared.statement.as_ref().is_none_or(|s| ends_block(&s.kind));
        if self.txn.block == Block::Failed && !ends { Err(aborted().in_routine(routine)) } else { Ok(()) }
    }

    async fn bind_message(&mut self, portal: &str, statement: &str, bound: Bound) -> Result<()> {
        let prepared = self.named(statement).ok_or_else(|| no_statement(statement))?;
        self.check_accepted(&prepared, "exec_bind_message")?;
        if prepared.statement.as_ref().is_some_and(|s| is_planned(&s.kind)) {
            // DDL may have changed what it means since it was parsed.
            self.described(&prepared).await?;
        }
        let wanted = prepared.last_described().map_or(prepared.declared.len(), |d| d.param_types.len());
        if bound.params.len() != wanted {
            return Err(Failure::new(
                "08P01",
                format!(
                    "bind message supplies {} parameters, but prepared statement \"{statement}\" requires {wanted}",
                    bound.params.len()
                ),
            ));
        }
        if bound.param_formats.len() > 1 && bound.param_formats.len() != bound.params.len() {
            return Err(Failure::new(
                "08P01",
                format!(
                    "bind message has {} parameter formats but {} parameters",
                    bound.param_formats.len(),
                    bound.params.len()
                ),
            ));
        }
        if let Some(code) =
            bound.param_formats.iter().chain(&bound.result_formats).find(|code| !(0..=1).contains(*code))
        {
            return Err(Failure::new("22023", format!("unsupported format code: {code}")));
        }
        let bound = self.decoded_values(&prepared, bound).await?;
        if let Some(described) = prepared.last_described() {
            check_values(&bound, &described.param_types)?;
            let columns = described.fields.as_ref().map_or(0, Vec::len);
            if bound.result_formats.len() > 1 && bound.result_formats.len() != columns {
                return Err(Failure::new(
                    "08P01",
                    format!(
                        "bind message has {} result formats but query has {columns} columns",
                        bound.result_formats.len()
                    ),
                ));
            }
        }
        let taken = self.portals.contains_key(portal) || self.declared_cursors.contains_key(portal);
        if !portal.is_empty() && taken {
            return Err(Failure::new("42P03", format!("cursor \"{portal}\" already exists")));
        }
        self.remove_portal(portal);
        let mark = self.client.mark();
        let progress = Progress::NotStarted;
        let portal_state =
            Portal { prepared, bound: Rc::new(bound), progress, made: SystemTime::now(), on_row: false, mark };
        self.portals.insert(portal.to_owned(), portal_state);
        backend::write_bind_complete(&mut self.client.out);
        Ok(())
    }

    async fn describe_message(&mut self, kind: u8, name: &str) -> Result<()> {
        if kind == b'P' && !self.portals.contains_key(name) {
            return self.describe_cursor(name).await;
        }
        let (routine, (prepared, formats)) = if kind == b'S' {
            let routine = "exec_describe_statement_message";
            let unnamed = |failure: Failure| if name.is_empty() { failure.in_routine(routine) } else { failure };
            (routine, (self.named(name).ok_or_else(|| unnamed(no_statement(name)))?, None))
        } else {
            let portal = self.portals.get(name).ok_or_else(|| no_described_portal(name))?;
            (DESCRIBE_PORTAL, (portal.prepared.clone(), Some(portal.bound.clone())))
        };
        self.check_accepted(&prepared, routine)?;
        if kind == b'S' {
            // They were settled by Parse; what has become of the columns since may be an error, which comes after them.
            let described = prepared.last_described();
            let types = described.as_ref().map_or(&prepared.declared, |d| &d.param_types);
            backend::write_parameter_description(&mut self.client.out, types);
        }
        let described = match &prepared.statement {
            None => None,
            Some(statement) if is_planned(&statement.kind) => Some(self.described(&prepared).await?),
            Some(_) => self.describe_utility(&prepared).await?,
        };
        match described.as_ref().and_then(|d| d.fields.as_ref()) {
            None => backend::write_no_data(&mut self.client.out),
            Some(fields) => {
                let mut fields = fields.clone();
                for (index, field) in fields.iter_mut().enumerate() {
                    field.format = formats.as_ref().map_or(0, |b| format_of(&b.result_formats, index));
                }
                backend::write_row_description(&mut self.client.out, &fields);
            }
        }
        Ok(())
    }

    /// A cursor of SQL is a portal, too.
    async fn close_cursor(&mut self, name: &str) -> Result<()> {
        if self.txn.block == Block::Failed {
            return Ok(());
        }
        self.run_text(&format!("CLOSE {}", crate::settings::quote_ident(name))).await
    }

    /// A portal that is not ours may be a cursor that DECLARE made on the coordinator.
    async fn describe_cursor(&mut self, name: &str) -> Result<()> {
        use pgherd_catalog::COORDINATOR_GROUP;
        if !self.txn.participants.contains_key(&COORDINATOR_GROUP) && self.pinned.is_none() {
            return Err(no_described_portal(name));
        }
        self.join(COORDINATOR_GROUP).await?;
        let mut participant = self.take(COORDINATOR_GROUP)?;
        pgherd_wire::frontend::write_describe(participant.lease.buffer(), b'P', name);
        participant.lease.send_sync();
        let mut failure = None;
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match frame.tag() {
                b'T' | b'n' => self.client.forward(&frame),
                b'E' => failure = Some(backend::parse_error(&frame)?),
                b'Z' => break,
                _ => {}
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        self.release_autocommit().await;
        failure.map_or(Ok(()), |fields| Err(fields.into()))
    }

    async fn sync(&mut self) -> Result<()> {
        let outcome = self.end_pipeline().await;
        self.skip_until_sync = false;
        if let Err(failure) = outcome {
            match self.of_pipeline(failure) {
                Failure::Statement(fields) => backend::write_error(&mut self.client.out, &fields),
                other => return Err(other),
            }
            self.fail_block().await;
        }
        if self.txn.block == Block::None {
            self.forget_transaction_portals();
        }
        self.ready().await
    }

    /// Runs what waits, and ends our own block.
    async fn end_pipeline(&mut self) -> Result<()> {
        if self.skip_until_sync {
            self.undo_autocommit().await;
            return Ok(());
        }
        // Its commit is next, as after the last statement of a Query.
        self.last_of_query = true;
        if self.pipelines && self.txn.block == Block::None && self.pending.is_some() {
            // What may not be in a block is refused behind others.
            self.open_implicit_block();
        }
        let completion = match self.pending.take() {
            Some(pending) => Some(Box::pin(self.execute_portal(pending)).await),
            None => None,
        };
        self.last_of_query = false;
        // The statement was done, whatever becomes of the commit: errors of deferred constraints come behind it.
        if let Some(completion) = self.client.converted(completion.transpose())? {
            self.complete(completion);
        }
        if self.txn.block == Block::Implicit {
            self.commit().await?;
        }
        Ok(())
    }

    async fn run_pending(&mut self) -> Result<()> {
        if let Some(pending) = self.pending.take() {
            let completion = self.execute_portal(pending).await;
            let completion = self.client.converted(completion)?;
            self.complete(completion);
        }
        Ok(())
    }

    pub(super) async fn execute_portal(&mut self, pending: Pending) -> Result<Completion> {
        let portal = self.portals.get(&pending.portal).ok_or_else(|| no_portal(&pending.portal))?;
        let (prepared, bound) = (portal.prepared.clone(), portal.bound.clone());
        self.show_running(prepared.source());
        if self.pipelines
            && self.txn.block == Block::Implicit
            && self.server_major() < PIPELINES_ARE_BLOCKS
            && let Some(what) = prepared.statement.as_ref().and_then(|s| needed_block(&s.kind))
        {
            let message = format!("{what} can only be used in transaction blocks");
            if what != "SET LOCAL" {
                return Err(Failure::new("25P01", message));
            }
            self.warn("25P01", &message);
        }
        if self.txn.block == Block::Failed && prepared.statement.as_ref().is_some_and(|s| !ends_block(&s.kind)) {
            // Also of what it has begun to fetch.
            return Err(aborted().in_routine("exec_execute_message"));
        }
        self.catch_up_for(Some(prepared.clone())).await?;
        self.tell_columns(&prepared, Some(&bound)).await?;
        let portal = self.portals.get_mut(&pending.portal).ok_or_else(|| no_portal(&pending.portal))?;
        match std::mem::replace(&mut portal.progress, Progress::Done) {
            Progress::NotStarted => {}
            Progress::Done => {
                // Rows that were all fetched are followed by none; anything else cannot run twice.
                if let Some(tag) = tag_of_no_rows(&prepared) {
                    return Ok(Completion::Tag(tag.to_owned()));
                }
                return Err(Failure::new("55000", format!("portal \"{}\" cannot be run", pending.portal)));
            }
            Progress::OnServer { group, name } => {
                return self.continue_portal(&pending.portal, group, name, pending.max_rows).await;
            }
            Progress::Rows { rows, tag } => return self.serve_rows(&pending.portal, rows, tag, pending.max_rows).await,
        }
        if prepared.statement.is_none() {
            return Ok(Completion::Empty);
        }
        let mark = self.portals.get(&pending.portal).map(|p| p.mark);
        let call = Call::extended(&prepared, &bound, pending.max_rows, &pending.portal);
        let result = self.execute(&call).await;
        if let (Err(Failure::Statement(fields)), Some((flushes, position))) = (&result, mark)
            && fields.get(b'W').is_some_and(|context| context.contains("portal parameter $"))
            && flushes == self.client.flushes
        {
            // The values are read when the statement runs; for the client it is Bind that failed.
            self.client.out.truncate(position);
        }
        result
    }

    /// Hands out rows that are here already.
    pub async fn serve_rows(
        &mut self,
        portal: &str,
        mut rows: VecDeque<Bytes>,
        tag: String,
        max_rows: i32,
    ) -> Result<Completion> {
        let mut sent = 0;
        while max_rows <= 0 || sent < max_rows {
            let Some(row) = rows.pop_front() else {
                let given = with_count(&tag, sent);
                if let Some(portal) = self.portals.get_mut(portal) {
                    portal.progress = Progress::Rows { rows, tag };
                }
                return Ok(Completion::Tag(given));
            };
            self.client.forward(&Frame { raw: row });
            self.client.flush_if_full().await?;
            sent += 1;
        }
        if let Some(portal) = self.portals.get_mut(portal) {
            portal.progress = Progress::Rows { rows, tag };
        }
        Ok(Completion::Suspended)
    }

    /// Portals end with their transaction.
    pub fn forget_transaction_portals(&mut self) {
        self.ran_in_block = None;
        self.portals.clear();
    }

    /// A simple Query replaces the unnamed statement and portal.
    pub(super) fn drop_unnamed(&mut self) {
        self.statements.remove("");
        self.remove_portal("");
    }

    pub(super) fn remove_portal(&mut self, name: &str) {
        if name.is_empty() {
            self.ran_in_block = None;
        }
        if let Some(portal) = self.portals.remove(name) {
            self.end_progress(&portal.progress);
        }
    }
}

/// What a portal says that has given all of its rows, if its statement gives any.
fn tag_of_no_rows(prepared: &Prepared) -> Option<&'static str> {
    use StatementKind as K;
    let kind = &prepared.statement.as_ref()?.kind;
    if is_planned(kind) && prepared.last_described()?.fields.is_none() {
        return None;
    }
    match kind {
        K::Select => Some("SELECT 0"),
        K::Insert => Some("INSERT 0 0"),
        K::Update => Some("UPDATE 0"),
        K::Delete => Some("DELETE 0"),
        K::Merge => Some("MERGE 0"),
        K::Explain { .. } => Some("EXPLAIN"),
        K::Show { .. } => Some("SHOW"),
        K::Fetch { is_move: false, .. } => Some("FETCH 0"),
        _ => None,
    }
}

/// The tag of a write of whose rows so many were given this time.
fn with_count(tag: &str, rows: i32) -> String {
    match tag.rsplit_once(' ') {
        Some((words, _)) => format!("{words} {rows}"),
        None => tag.to_owned(),
    }
}

/// Binary values of fixed length are as long as their types, as Bind finds out on a server.
fn check_values(bound: &Bound, types: &[u32]) -> Result<()> {
    for (index, (value, type_oid)) in bound.params.iter().zip(types).enumerate() {
        let length = match type_oid {
            16 => 1,
            21 => 2,
            23 | 26 | 700 | 1082 => 4,
            20 | 701 | 1083 | 1114 | 1184 => 8,
            2950 => 16,
            _ => continue,
        };
        let Some(value) = value.as_ref().filter(|_| bound.is_binary(index)) else { continue };
        if value.len() < length {
            return Err(Failure::new("08P01", "insufficient data left in message"));
        }
        if value.len() > length {
            return Err(Failure::new("22P03", format!("incorrect binary data format in bind parameter {}", index + 1)));
        }
    }
    Ok(())
}

/// Statements whose parameters and result the coordinator describes when they are parsed.
pub fn is_planned(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Select
            | StatementKind::Insert
            | StatementKind::Update
            | StatementKind::Delete
            | StatementKind::Merge
    )
}

/// A statement that no transaction block may be around, or that has to have one: PostgreSQL commits the former at
/// once, as the first of a pipeline, and refuses the latter.
fn is_alone(kind: &StatementKind) -> bool {
    use StatementKind as K;
    match kind {
        K::Vacuum { is_vacuum, .. } => *is_vacuum,
        K::Discard(what) => *what == DiscardKind::All,
        // Of a distributed table it is no part of a transaction.
        K::Reindex { .. } | K::Cluster => true,
        K::AlterDatabase { is_moved, .. } => *is_moved,
        K::Ddl(info) => {
            let is_made = |tag: &str| tag.starts_with("CREATE") || tag.starts_with("DROP");
            info.concurrently || matches!(info.object, "tablespace" | "subscription") && is_made(info.tag)
        }
        K::CreateDatabase { .. }
        | K::DropDatabase { .. }
        | K::AlterSystem(_)
        | K::CommitPrepared(_)
        | K::RollbackPrepared(_) => true,
        kind => needed_block(kind).is_some(),
    }
}

/// From this version on what follows the first statement of a pipeline is in a transaction block, and errors say so.
const PIPELINES_ARE_BLOCKS: u32 = 18;

/// What a statement is called that has to be in a transaction block.
fn needed_block(kind: &StatementKind) -> Option<&'static str> {
    use StatementKind as K;
    match kind {
        K::Lock { .. } => Some("LOCK TABLE"),
        K::DeclareCursor { hold: false, .. } => Some("DECLARE CURSOR"),
        K::Savepoint(_) => Some("SAVEPOINT"),
        K::Release(_) => Some("RELEASE SAVEPOINT"),
        K::RollbackTo(_) => Some("ROLLBACK TO SAVEPOINT"),
        K::Set(set) if set.local => Some("SET LOCAL"),
        _ => None,
    }
}

/// What a failed transaction still accepts.
pub fn ends_block(kind: &StatementKind) -> bool {
    use StatementKind as K;
    matches!(kind, K::Commit { .. } | K::Rollback { .. } | K::RollbackTo(_) | K::PrepareTransaction(_))
}

#[track_caller]
pub fn aborted() -> Failure {
    Failure::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

#[track_caller]
fn no_statement(name: &str) -> Failure {
    if name.is_empty() {
        Failure::new("26000", "unnamed prepared statement does not exist")
    } else {
        Failure::new("26000", format!("prepared statement \"{name}\" does not exist"))
    }
}

/// PostgreSQL's function that answers Describe of a portal.
const DESCRIBE_PORTAL: &str = "exec_describe_portal_message";

#[track_caller]
fn no_described_portal(name: &str) -> Failure {
    no_portal(name).in_routine(DESCRIBE_PORTAL)
}

#[track_caller]
fn no_portal(name: &str) -> Failure {
    Failure::new("34000", format!("portal \"{name}\" does not exist"))
}
