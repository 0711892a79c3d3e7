//! One statement to one server, and its replies to the client: always the extended protocol towards servers, so that
//! parameters, formats and row limits have one path. Callbacks of the coordinator are served while it runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use pgherd_backend::lane::LaneStatement;
use pgherd_backend::{Connection, QueryResult};
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, OWN_SCHEMA, Snapshot, SnapshotId, Table};
use pgherd_planner::RoutineCopy;
use pgherd_sql::Splice;
use pgherd_wire::backend::{self, ErrorFields, FieldDescription};
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend;

use super::snapshots::has_cursor;
use crate::callback::{Batch, CallbackReceiver, CallbackSender};
use crate::describe::Described;
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};
use crate::transaction::{Block, Participant};

/// What is sent to a server.
pub struct Request<'a> {
    pub sql: Cow<'a, str>,
    /// Keep it on the server under this number; none: parsed for this one time.
    pub id: Option<u64>,
    pub param_types: &'a [u32],
    pub bound: Option<&'a Bound>,
    pub describe: bool,
    /// The server's portal and how many rows at most; empty and 0 for all at once.
    pub portal: &'a str,
    pub max_rows: i32,
}

impl<'a> Request<'a> {
    pub fn text(sql: impl Into<Cow<'a, str>>) -> Self {
        Request { sql: sql.into(), id: None, param_types: &[], bound: None, describe: false, portal: "", max_rows: 0 }
    }
}

const TEXT_OID: u32 = 25;
/// Tables of workers whose numbers are kept per thread.
const TABLE_OIDS_MAX: usize = 20_000;
/// The same for types.
const TYPE_OIDS_MAX: usize = 1_000;

/// What a worker's table is to the coordinator.
pub struct TableOrigin {
    /// Under which this is true.
    catalog: SnapshotId,
    oid: u32,
    /// Column numbers there and here.
    columns: HashMap<i16, i16>,
}

/// How a server's errors are put in terms of the user's statement.
#[derive(Clone, Copy, Default)]
pub struct Errors<'a> {
    pub splice: Option<&'a Splice>,
    /// The user's statement.
    pub text: &'a str,
    /// Names under which tables were sent, by oid.
    pub renamed: Option<&'a dyn Fn(u32) -> Option<String>>,
    /// The copy of a function that the server runs.
    pub copy: Option<&'a RoutineCopy>,
}

impl<'a> Errors<'a> {
    /// Of a statement that names tables and functions as the user does. `splice`: what was sent for his text.
    pub fn of(splice: &'a Splice, text: &'a str) -> Errors<'a> {
        Errors { splice: Some(splice), text, renamed: None, copy: None }
    }
}

/// How one server's reply ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    pub tag: String,
    pub rows: u64,
    pub suspended: bool,
    pub empty: bool,
}

/// What the client is told of the columns when the server describes them.
#[derive(Clone)]
pub enum Announce<'a> {
    Nothing,
    /// What the server says, in the coordinator's numbers; with the distributed and reference tables of the statement.
    Columns(&'a [Arc<Table>]),
    /// The same of a utility statement, which describes its rows when it has them and not when it fails before.
    WithRows,
    /// What the coordinator has said of the client's own text.
    Known(Rc<Described>),
    /// One of those, of a statement that writes: PostgreSQL has run it before it describes what it returns.
    Written(Box<Announce<'a>>),
}

impl Announce<'_> {
    pub fn is_needed(&self) -> bool {
        !matches!(self, Announce::Nothing)
    }
}

/// Where rows go.
pub enum Rows<'a> {
    /// To the client as they are. At most `limit`.
    Client { announce: Announce<'a>, limit: Option<u64> },
    /// Into memory, as whole DataRow messages.
    Keep(&'a mut Vec<Bytes>),
    /// Nobody wants them.
    Drop,
}

/// Writes a request into a connection's buffer, its types by their numbers on that server; nothing is flushed. `close`:
/// end the portal right after it ran. The coordinator's foreign scans end with it, while their cursors on the workers
/// are still open.
pub fn send(connection: &mut Connection, request: &Request<'_>, close: bool) {
    let empty = Bound::default();
    let bound = request.bound.unwrap_or(&empty);
    let mut types = Cow::Borrowed(request.param_types);
    let mut params = Cow::Borrowed(bound.params.as_slice());
    // Where this part of the user's statement does not have the parameter, nothing tells the server its type.
    for index in (0..types.len()).filter(|i| request.param_types[*i] == 0) {
        if !has_parameter(&request.sql, index + 1) {
            types.to_mut()[index] = TEXT_OID;
            if let Some(value) = params.to_mut().get_mut(index) {
                *value = None;
            }
        }
    }
    let name = match request.id {
        Some(id) => {
            let name = format!("{OWN_SCHEMA}_{id}");
            if !connection.prepared.touch(id) {
                while let Some(oldest) = connection.prepared.make_room(request.sql.len()) {
                    frontend::write_close(connection.buffer(), b'S', &format!("{OWN_SCHEMA}_{oldest}"));
                }
                // It may be there without our knowing, where an error kept its Close from being read. Closing what is
                // not there is no error.
                frontend::write_close(connection.buffer(), b'S', &name);
                frontend::write_parse(connection.buffer(), &name, &request.sql, &types);
            }
            name
        }
        None => {
            frontend::write_parse(connection.buffer(), "", &request.sql, &types);
            String::new()
        }
    };
    if !request.portal.is_empty() {
        // Of the client's earlier portal of this name.
        frontend::write_close(connection.buffer(), b'P', request.portal);
    }
    frontend::write_bind(
        connection.buffer(),
        request.portal,
        &name,
        &bound.param_formats,
        &params,
        &bound.result_formats,
    );
    if request.describe {
        frontend::write_describe(connection.buffer(), b'P', request.portal);
    }
    frontend::write_execute(connection.buffer(), request.portal, request.max_rows);
    if close {
        frontend::write_close(connection.buffer(), b'P', request.portal);
    }
    connection.send_sync();
}

/// `$number` stands in the text, if only in a literal.
fn has_parameter(sql: &str, number: usize) -> bool {
    let name = format!("${number}");
    sql.match_indices(&name).any(|(at, _)| !sql[at + name.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

/// What a participant says, or asks.
pub(super) enum Heard {
    Frame(Frame),
    Asked(Batch),
}

impl Session {
    /// Runs one request on one participant and hands its rows on.
    pub async fn run_request(
        &mut self,
        group: GroupId,
        request: &Request<'_>,
        rows: Rows<'_>,
        errors: Errors<'_>,
    ) -> Result<End> {
        let mut participant = self.take(group)?;
        let close = group == COORDINATOR_GROUP && request.portal.is_empty();
        let types = self.types_on(group, request.param_types);
        send(
            &mut participant.lease,
            &Request { sql: request.sql.as_ref().into(), param_types: &types, ..*request },
            close,
        );
        let kept = request.id.map(|id| (id, request.sql.len()));
        let mut taken = Ok(());
        if !self.txn.snapshots_asked.is_empty() {
            // What could not be sent is found when the reply is read.
            let _ = participant.lease.flush().await;
            taken = self.await_snapshots().await;
        }
        let result = self.read_reply(group, &mut participant, kept, rows, errors).await;
        self.put_back(group, participant);
        taken.and(result)
    }

    /// Tells the client of the columns that a server describes.
    async fn describe_rows(&mut self, group: GroupId, announce: &Announce<'_>, frame: &Frame) -> Result<()> {
        match announce {
            Announce::Columns(tables) if group != COORDINATOR_GROUP => {
                let fields = backend::parse_row_description(frame)?;
                let fields = self.coordinator_fields(group, fields, tables).await?;
                backend::write_row_description(&mut self.client.out, &fields);
            }
            Announce::Columns(_) => self.client.forward(frame),
            Announce::Known(known) => {
                let fields = known.fields.as_deref().unwrap_or_default();
                backend::write_row_description(&mut self.client.out, fields);
            }
            Announce::Nothing | Announce::WithRows | Announce::Written(_) => {}
        }
        Ok(())
    }

    /// Reads one reply up to ReadyForQuery. `kept`: the number and length of a text that the server keeps once parsed.
    pub async fn read_reply(
        &mut self,
        group: GroupId,
        participant: &mut Participant,
        kept: Option<(u64, usize)>,
        mut rows: Rows<'_>,
        errors: Errors<'_>,
    ) -> Result<End> {
        let mut end = End::default();
        let mut failure: Option<ErrorFields> = None;
        let mut described: Option<Frame> = None;
        loop {
            let frame = self.next_frame(group, participant).await?;
            if matches!(frame.tag(), b'D' | b'C')
                && let Some(described) = described.take()
                && let Rows::Client { announce, .. } = &rows
            {
                match announce {
                    Announce::Written(announce) => self.describe_rows(group, announce, &described).await?,
                    _ => self.client.forward(&described),
                }
            }
            match frame.tag() {
                b'D' => {
                    end.rows += 1;
                    match &mut rows {
                        Rows::Client { limit, .. } => {
                            if limit.is_none_or(|limit| end.rows <= limit) {
                                self.client.forward(&frame);
                                self.client.flush_if_full().await?;
                            }
                        }
                        Rows::Keep(kept) => kept.push(frame.raw),
                        Rows::Drop => {}
                    }
                }
                b'T' => {
                    if group == COORDINATOR_GROUP && self.txn.block == Block::Explicit {
                        self.cursors.returned |= has_cursor(&backend::parse_row_description(&frame)?);
                    }
                    if let Rows::Client { announce, .. } = &rows {
                        match announce {
                            Announce::WithRows | Announce::Written(_) => described = Some(frame),
                            _ => self.describe_rows(group, announce, &frame).await?,
                        }
                    }
                }
                b'1' => {
                    if let Some((id, bytes)) = kept {
                        participant.lease.prepared.insert(id, bytes);
                    }
                }
                b'C' => end.tag = backend::parse_command_complete(&frame)?.to_owned(),
                b's' => end.suspended = true,
                b'I' => end.empty = true,
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'N' => self.client.forward(&frame),
                b'G' | b'W' | b'H' => {
                    frontend::write_copy_fail(participant.lease.buffer(), "COPY is not expected here");
                }
                b'Z' => {
                    return match failure {
                        Some(fields) => Err(self.translate(fields, errors)),
                        None => Ok(end),
                    };
                }
                _ => self.forward_aside(group, &frame),
            }
        }
    }

    /// ParameterStatus and notifications of the coordinator concern the client; a worker's are ours.
    pub fn forward_aside(&mut self, group: GroupId, frame: &Frame) {
        // The client's encoding is told by the session itself.
        let encoding = frame.tag() == b'S' && frame.body().starts_with(b"client_encoding\0");
        let held = frame.tag() == b'S' && self.reported.is_some();
        if group == COORDINATOR_GROUP && matches!(frame.tag(), b'S' | b'A') && !encoding && !held {
            let frame = self.of_session(frame);
            self.client.forward(&frame);
        }
    }

    /// A notification as one of the session that sent it, by the number that it knows of itself.
    pub(crate) fn of_session(&self, frame: &Frame) -> Frame {
        let sender = frame.body().first_chunk::<4>().map(|pid| i32::from_be_bytes(*pid));
        let session = sender.filter(|_| frame.tag() == b'A').and_then(|pid| self.thread.shared.served_by(pid));
        let Some(session) = session else { return frame.clone() };
        let mut raw = bytes::BytesMut::from(&frame.raw[..]);
        raw[5..9].copy_from_slice(&session.to_be_bytes());
        Frame { raw: raw.freeze() }
    }

    /// The next message of a participant; while the coordinator computes, its callbacks are answered.
    pub async fn next_frame(&mut self, group: GroupId, participant: &mut Participant) -> Result<Frame> {
        loop {
            match self.hear(group, participant).await? {
                Heard::Frame(frame) => return Ok(frame),
                Heard::Asked(batch) => self.answer(batch, participant).await,
            }
        }
    }

    /// What comes next of a participant; the coordinator may ask something before it says something.
    pub(super) async fn hear(&mut self, group: GroupId, participant: &mut Participant) -> Result<Heard> {
        let watched = self.watches_client();
        tokio::select! {
            biased;
            frame = participant.lease.frame() => Ok(Heard::Frame(frame?)),
            Some(batch) = next_batch(&mut self.callbacks), if group == COORDINATOR_GROUP => Ok(Heard::Asked(batch)),
            () = self.client.gone(), if watched => Err(Failure::ClientGone),
        }
    }

    /// Answers what the coordinator's foreign tables ask while it computes.
    pub(super) async fn answer(&mut self, batch: Batch, participant: &mut Participant) {
        let ends_known = participant.in_block || self.txn.own.is_some();
        Box::pin(self.serve_callback(batch, ends_known)).await;
        // A definition inside of it, perhaps.
        participant.wrote |= self.txn.changed_catalog;
    }

    /// Pushes what has gathered of a stream of CopyData; the coordinator's callbacks are answered meanwhile. True: the
    /// server has said something.
    pub(super) async fn pushed_copy(&mut self, group: GroupId, participant: &mut Participant) -> Result<bool> {
        loop {
            let batch = tokio::select! {
                biased;
                said = participant.lease.push_copy() => return said.map_err(Failure::from),
                Some(batch) = next_batch(&mut self.callbacks), if group == COORDINATOR_GROUP => batch,
            };
            self.answer(batch, participant).await;
        }
    }

    /// Reads what is left of the replies of a participant. False: its connection is lost.
    pub async fn drain(&mut self, group: GroupId) -> bool {
        let Ok(mut participant) = self.take(group) else { return false };
        let mut is_there = true;
        while is_there && participant.lease.in_flight > 0 {
            match self.next_frame(group, &mut participant).await {
                Ok(frame) if matches!(frame.tag(), b'G' | b'W') => {
                    frontend::write_copy_fail(participant.lease.buffer(), "not expected here");
                }
                Ok(_) => {}
                Err(_) => is_there = false,
            }
        }
        self.put_back(group, participant);
        is_there
    }

    /// Whether a statement ends when its client closes the connection. PostgreSQL finishes what it has received, and
    /// finds the client gone when it writes to it, unless this setting says otherwise.
    pub fn watches_client(&self) -> bool {
        let interval = self.settings.get("client_connection_check_interval");
        !self.txn.committing && interval.is_some_and(|value| value.contains(|digit| matches!(digit, '1'..='9')))
    }

    /// Runs statements on a participant by simple Query and collects the last result.
    pub async fn collect_on(&mut self, group: GroupId, sql: &str) -> Result<QueryResult> {
        if group == COORDINATOR_GROUP && self.definitions.is_asked() {
            return self.ask_inside("ask", sql).await;
        }
        let mut participant = self.take(group)?;
        participant.lease.send_query(sql);
        let result = self.collect_from(group, &mut participant, false).await;
        self.put_back(group, participant);
        result
    }

    /// The same of a statement without parameters that is kept there.
    pub async fn collect_kept(&mut self, group: GroupId, statement: &LaneStatement) -> Result<QueryResult> {
        let mut participant = self.take(group)?;
        participant.lease.send_kept(statement, &[0; 6]);
        participant.lease.send_sync();
        let result = self.collect_from(group, &mut participant, false).await;
        let kept = &mut participant.lease.prepared;
        match &result {
            Ok(_) => kept.insert(statement.id, statement.sql.len()),
            Err(_) => kept.remove(statement.id),
        }
        self.put_back(group, participant);
        result
    }

    /// Collects the reply to a query that was already sent.
    pub async fn collect_started(&mut self, group: GroupId) -> Result<QueryResult> {
        let mut participant = self.take(group)?;
        let result = self.collect_from(group, &mut participant, true).await;
        self.put_back(group, participant);
        result
    }

    /// `notices`: those of a worker are for the client, too.
    async fn collect_from(
        &mut self,
        group: GroupId,
        participant: &mut Participant,
        notices: bool,
    ) -> Result<QueryResult> {
        let mut result = QueryResult::default();
        let mut failure: Option<ErrorFields> = None;
        loop {
            let frame = self.next_frame(group, participant).await?;
            match frame.tag() {
                b'T' => {
                    result.rows.clear();
                    result.fields = backend::parse_row_description(&frame)?;
                }
                b'D' => {
                    result.rows.push(fields_of(&frame)?);
                }
                b'C' => result.tag = backend::parse_command_complete(&frame)?.to_owned(),
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                // The coordinator has said the same, or it concerns us alone.
                b'N' if group != COORDINATOR_GROUP
                    && !notices
                    && backend::parse_error(&frame)?.severity() == "NOTICE" => {}
                b'N' => self.client.forward(&frame),
                b'G' | b'W' => frontend::write_copy_fail(participant.lease.buffer(), "COPY is not expected here"),
                b'Z' => {
                    return match failure {
                        Some(fields) => Err(self.translate(fields, Errors::default())),
                        None => Ok(result),
                    };
                }
                _ => self.forward_aside(group, &frame),
            }
        }
    }

    /// A server's error in the user's terms: shard schemas become the table's, positions count in the user's text.
    pub fn translate(&self, mut fields: ErrorFields, errors: Errors<'_>) -> Failure {
        if fields.sqlstate() == "57014" && self.cancel.breaks_deadlock() {
            return super::deadlock();
        }
        if let Some(refusal) = self.names_a_variable(&fields) {
            return refusal;
        }
        self.complete_error(&mut fields);
        if let Some(table) = self.child_in(fields.message()) {
            if fields.message().starts_with("cannot execute MERGE on relation ") {
                return Failure::refused(format!(
                    "cannot run ON CONFLICT or MERGE on distributed table \"{table}\" from inside the coordinator"
                ))
                .hint("Send the statement through the router by itself.");
            }
            let message = fields.message().replace(&child_name(fields.message()), &table);
            fields.set(b'M', message);
        }
        if let Some(detail) = fields.get(b'D').and_then(without_children) {
            fields.set(b'D', detail);
        }
        if let Some(schema) = fields.get(b's')
            && let Some(user_schema) = self.schema_of_shard(schema)
        {
            fields.set(b's', user_schema);
        }
        if let Some(splice) = errors.splice
            && let Some(position) = fields.get(b'P').and_then(|p| p.parse::<usize>().ok())
        {
            let name_of = |oid| errors.renamed.and_then(|f| f(oid));
            let rendered = splice.render(name_of);
            let byte = byte_of(&rendered, position);
            match splice.origin_of(byte, name_of) {
                Some(origin) => {
                    let characters = errors.text.get(..origin).map_or(0, |t| t.chars().count());
                    fields.set(b'P', (characters + 1).to_string());
                }
                None => {
                    fields.remove(b'P');
                }
            }
        }
        if let (Some(copy), Some(renamed)) = (errors.copy, errors.renamed) {
            match super::routines::is_missing(&fields) {
                // Whoever may runs the statement again.
                true => self.forget_copies(),
                false => super::routines::in_users_words(&mut fields, copy, renamed),
            }
        }
        Failure::Statement(Box::new(fields))
    }

    /// An error that came through the coordinator's foreign tables: what postgres_fdw keeps to itself of it, and
    /// without the lines of its context that are ours.
    fn complete_error(&self, fields: &mut ErrorFields) {
        if let Some(known) = &self.cursors.failure
            && known.sqlstate() == fields.sqlstate()
            && known.message() == fields.message()
            && known.get(b'D') == fields.get(b'D')
            && fields.get(b'W').is_some_and(|context| context.contains("remote SQL command: "))
        {
            for code in *b"stcdn" {
                if let Some(value) = known.get(code).map(str::to_owned) {
                    fields.set(code, value);
                }
            }
        }
        if let Some(context) = fields.get(b'W')
            && let Some(own) = without_our_context(context).map(str::to_owned)
        {
            fields.remove(b'W');
            if !own.is_empty() {
                fields.set(b'W', own);
            }
        }
    }

    /// The table whose foreign child a message names.
    fn child_in(&self, message: &str) -> Option<String> {
        let oid: u32 = child_name(message).strip_prefix("ft_")?.parse().ok()?;
        self.catalog().by_oid.get(&oid).map(|table| table.name.clone())
    }

    fn schema_of_shard(&self, schema: &str) -> Option<String> {
        let id: i64 = schema.strip_prefix("pgherd_")?.parse().ok()?;
        let catalog = self.catalog();
        catalog.all_tables().find(|t| t.shards().iter().any(|s| s.id == id)).map(|t| t.schema.clone())
    }

    /// Column descriptions of a worker in the coordinator's numbers: types outside the built-in range by name, tables
    /// by the partition or parent that they are there.
    async fn coordinator_fields(
        &mut self,
        group: GroupId,
        mut fields: Vec<FieldDescription>,
        tables: &[Arc<Table>],
    ) -> Result<Vec<FieldDescription>> {
        for field in fields.iter_mut().filter(|f| f.type_oid >= FIRST_USER_OID) {
            field.type_oid = Box::pin(self.coordinator_type(group, field.type_oid)).await?;
        }
        for field in fields.iter_mut().filter(|f| f.table_oid >= FIRST_USER_OID) {
            let origin = match tables {
                [table] if tells_origin(tables) => Some((table.oid, field.column_id)),
                _ => Box::pin(self.coordinator_column(group, field.table_oid, field.column_id)).await?,
            };
            (field.table_oid, field.column_id) = origin.unwrap_or((0, 0));
        }
        Ok(fields)
    }

    /// The coordinator's numbers of a column of a worker's table; none where there is no such table, or not yet for
    /// anybody but its own transaction.
    async fn coordinator_column(&mut self, group: GroupId, oid: u32, column: i16) -> Result<Option<(u32, i16)>> {
        let catalog = self.catalog();
        let key = (self.db.name.clone(), group, oid);
        let known = self.thread.table_oids.borrow().get(&key).filter(|o| o.catalog.is(&catalog)).cloned();
        let origin = match known {
            Some(origin) => origin,
            None => {
                let origin = Rc::new(self.look_up_table(group, oid, catalog).await?);
                let mut known = self.thread.table_oids.borrow_mut();
                if known.len() >= TABLE_OIDS_MAX {
                    known.clear();
                }
                known.insert(key, origin.clone());
                origin
            }
        };
        Ok(origin.columns.get(&column).map(|column| (origin.oid, *column)))
    }

    async fn look_up_table(&mut self, group: GroupId, oid: u32, catalog: Arc<Snapshot>) -> Result<TableOrigin> {
        // The participant's own connection is in the middle of a reply.
        let mut lease = self.lease_aside(group).await?;
        let named = lease
            .query(&format!(
                "SELECT n.nspname, c.relname, a.attnum, a.attname FROM pg_catalog.pg_class c \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
                 WHERE c.oid = {oid}"
            ))
            .await?;
        let schema = named.text(0, 0).unwrap_or_default();
        let schema = self.schema_of_shard(schema).unwrap_or_else(|| schema.to_owned());
        let table = catalog.tables.get(&schema).and_then(|t| t.get(named.text(0, 1).unwrap_or_default())).cloned();
        let mut columns = HashMap::new();
        for row in 0..named.rows.len() {
            let number = named.text(row, 2).and_then(|n| n.parse().ok());
            let column =
                table.as_ref().and_then(|t| t.columns.iter().find(|c| Some(c.name.as_str()) == named.text(row, 3)));
            if let (Some(number), Some(column)) = (number, column) {
                columns.insert(number, column.attnum);
            }
        }
        Ok(TableOrigin { catalog: SnapshotId::of(&catalog), oid: table.map_or(0, |t| t.oid), columns })
    }

    /// The coordinator's number of a worker's type, by name; 0 becomes text where the coordinator lacks it.
    async fn coordinator_type(&mut self, group: GroupId, oid: u32) -> Result<u32> {
        let key = (self.db.name.clone(), group, oid);
        let catalog = self.catalog();
        if let Some((seen, known)) = self.thread.type_oids.borrow().get(&key)
            && seen.is(&catalog)
        {
            return Ok(*known);
        }
        // The participant's own connection is in the middle of a reply.
        let mut lease = self.lease_aside(group).await?;
        let named = lease
            .query(&format!(
                "SELECT n.nspname, coalesce(e.typname, t.typname), e.oid IS NOT NULL FROM pg_catalog.pg_type t \
                 LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND e.typarray = t.oid \
                 JOIN pg_catalog.pg_namespace n ON n.oid = coalesce(e.typnamespace, t.typnamespace) WHERE t.oid = {oid}"
            ))
            .await?;
        let name = |column| crate::settings::quote_literal(named.text(0, column).unwrap_or_default());
        let number = if named.text(0, 2) == Some("t") { "typarray" } else { "oid" };
        let mut lease = self.coordinator_lease().await?;
        // By no name that is resolved: the role may have no right on the schema.
        let found = lease
            .query(&format!(
                "SELECT t.{number} FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
                 WHERE n.nspname = {} AND t.typname = {} AND t.{number} <> 0",
                name(0),
                name(1)
            ))
            .await?;
        let Some(found) = found.text(0, 0).and_then(|t| t.parse().ok()) else { return Ok(25) };
        let mut known = self.thread.type_oids.borrow_mut();
        if known.len() >= TYPE_OIDS_MAX {
            known.clear();
        }
        known.insert(key, (SnapshotId::of(&catalog), found));
        Ok(found)
    }
}

/// Whether a worker's table and column numbers say which the coordinator's are without a look at that worker's
/// catalog: there is only one table, and the coordinator has dropped none of its columns, so that no worker has either.
pub fn tells_origin(tables: &[Arc<Table>]) -> bool {
    match tables {
        [table] => (1..).zip(&table.columns).all(|(number, column): (i16, _)| column.attnum == number),
        _ => false,
    }
}

/// A context without what our functions and foreign tables have put in front; none: nothing has.
fn without_our_context(context: &str) -> Option<&str> {
    let mut rest = context;
    if let Some(at) = rest.rfind("PL/pgSQL function pgherd.") {
        rest = rest[at..].split_once('\n').map_or("", |(_, rest)| rest);
    }
    if rest.starts_with("remote SQL command: ") {
        const LINES: [&str; 3] = ["\nSQL statement \"", "\nPL/pgSQL function ", "\nSQL function "];
        let next = LINES.iter().filter_map(|line| rest.find(line)).min();
        rest = next.map_or("", |at| &rest[at + 1..]);
    }
    (rest.len() != context.len()).then_some(rest)
}

/// The byte offset of a 1-based character position.
fn byte_of(text: &str, position: usize) -> usize {
    text.char_indices().nth(position.saturating_sub(1)).map_or(text.len(), |(byte, _)| byte)
}

/// The fields of a DataRow without copying.
pub fn fields_of(frame: &Frame) -> Result<Vec<Option<Bytes>>> {
    let body = frame.body_bytes();
    let base = body.as_ptr() as usize;
    let mut fields = Vec::new();
    for field in backend::parse_data_row(frame)? {
        fields.push(field?.map(|f| {
            let start = f.as_ptr() as usize - base;
            body.slice(start..start + f.len())
        }));
    }
    Ok(fields)
}

/// What the coordinator's foreign tables ask next. Cancel safe.
pub(super) async fn next_batch(callbacks: &mut Option<(CallbackSender, CallbackReceiver)>) -> Option<Batch> {
    match callbacks {
        Some((_, receiver)) => receiver.recv().await,
        None => None,
    }
}
/// A detail that lists objects, without those that depend on something through our own children; none: it names none.
fn without_children(detail: &str) -> Option<String> {
    let is_child = |line: &&str| line.contains("foreign table pgherd.ft_");
    let kept: Vec<&str> = detail.lines().filter(|line| !is_child(line)).collect();
    (!kept.is_empty() && kept.len() < detail.lines().count()).then(|| kept.join("\n"))
}

/// `ft_17` of a message; empty where it names no such thing.
fn child_name(message: &str) -> String {
    let Some(at) = message.find("\"ft_") else { return String::new() };
    message[at + 1..].chars().take_while(|c| *c != '"').collect()
}
