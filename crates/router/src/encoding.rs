//! Clients whose encoding is not UTF-8. Servers and the router speak UTF-8 only: such a client's messages are converted
//! as they are taken, and what goes to it before it leaves. Its statements do not ride.

use std::collections::HashMap;

use bytes::{BufMut, BytesMut};
use pgherd_catalog::{COORDINATOR_GROUP, Oid, SnapshotId};
use pgherd_sql::ast::{Const, Expr, ExprKind, Place};
use pgherd_sql::{CopyFormat, CopyInfo, CopyTarget, Span, Statement, StatementKind};
use pgherd_wire::backend::{FieldDescription, write_parameter_status};
use pgherd_wire::encoding::{Encoding, Unconvertible, by_name, canonical_name};
use pgherd_wire::forms::{Converter, CopyStream, Form, Unread};
use pgherd_wire::frame::{Frame, HEADER_LEN, peek_frame};
use pgherd_wire::frontend::format_of;

use crate::client::Client;
use crate::error::{Failure, Result};
use crate::run::Call;
use crate::session::{Bound, Prepared, Session, is_planned};
use crate::settings::{quote_literal, quote_name};
use crate::transaction::{Block, LogItem};

pub const UTF8: &str = "UTF8";

/// How a client's bytes are converted.
pub struct Coding {
    encoding: Encoding,
    /// So much of what waits for the client is converted.
    done: usize,
    /// The columns of the rows that are on their way, and of those that are not listed.
    columns: Vec<Form>,
    others: Form,
    /// Types that do not have the same number everywhere, under this catalog.
    types: HashMap<Oid, Form>,
    types_of: Option<SnapshotId>,
    /// A COPY in binary format, from or to the client.
    copy: Option<CopyStream>,
    /// The client cannot be sent this; rows are dropped until somebody has asked.
    failure: Option<Failure>,
    /// The first bytes of a character whose last ones are in the client's next CopyData.
    begun: Vec<u8>,
}

impl Coding {
    pub fn new(encoding: Encoding) -> Coding {
        let (columns, others) = (Vec::new(), Form::Text);
        let (types, types_of, copy) = (HashMap::new(), None, None);
        Coding { encoding, done: 0, columns, others, types, types_of, copy, failure: None, begun: Vec::new() }
    }

    /// A message of the client.
    pub fn received(&mut self, frame: &Frame) -> Result<Frame> {
        let body = frame.body();
        // Within a COPY these mean nothing, and its data go on behind them.
        if matches!(frame.tag(), b'H' | b'S') {
            return Ok(frame.clone());
        }
        if let Some(mut copy) = self.copy.take_if(|_| matches!(frame.tag(), b'd' | b'c' | b'f')) {
            if frame.tag() != b'd' {
                return Ok(frame.clone());
            }
            let mut out = begin_message(b'd', body.len());
            let text = |text: &[u8], out: &mut BytesMut| self.encoding.decode(text, out);
            match copy.feed(body, &Converter { form: &|oid| self.form(oid), text: &text }, &mut out) {
                // What is malformed is none of ours.
                Ok(()) | Err(Unread::Malformed) => {}
                Err(Unread::Text(error)) => return Err(self.not_in_utf8(&error)),
                Err(Unread::Unknown) => return Err(self.mixed()),
            }
            self.copy = Some(copy);
            set_length(&mut out, 0);
            return Ok(Frame { raw: out.freeze() });
        }
        let begun = std::mem::take(&mut self.begun);
        // How many strings there are in front of what is not text.
        let strings = match frame.tag() {
            b'd' if begun.is_empty() && body.is_ascii() => 0,
            b'd' => return self.received_data(&[&begun, body].concat()),
            b'c' if !begun.is_empty() => {
                let error = self.encoding.decode(&begun, &mut BytesMut::new()).err();
                return error.map_or(Ok(frame.clone()), |error| Err(self.not_in_utf8(&error)));
            }
            b'P' | b'B' => 2,
            b'Q' | b'D' | b'C' | b'E' | b'f' => 1,
            _ => 0,
        };
        let ends = body.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(at, _)| at);
        let ends: Vec<usize> = ends.take(strings).collect();
        let text = ends.last().copied().unwrap_or(0);
        if body[..text].is_ascii() {
            return Ok(frame.clone());
        }
        let mut out = begin_message(frame.tag(), body.len());
        let mut start = 0;
        for end in ends {
            self.encoding.decode(&body[start..end], &mut out).map_err(|error| self.not_in_utf8(&error))?;
            out.put_u8(0);
            start = end + 1;
        }
        out.extend_from_slice(&body[start..]);
        set_length(&mut out, 0);
        Ok(Frame { raw: out.freeze() })
    }

    fn received_data(&mut self, data: &[u8]) -> Result<Frame> {
        let mut out = begin_message(b'd', data.len());
        let left = self.encoding.decode_part(data, true, &mut out).map_err(|error| self.not_in_utf8(&error))?;
        self.begun = data[data.len() - left..].to_vec();
        set_length(&mut out, 0);
        Ok(Frame { raw: out.freeze() })
    }

    /// Values that the client gives.
    pub fn bound(&self, mut bound: Bound, types: &[u32]) -> Result<Bound> {
        for index in 0..bound.params.len() {
            let Some(value) = bound.params[index].clone().filter(|value| !value.is_ascii()) else { continue };
            let type_oid = types.get(index).copied().unwrap_or(0);
            let form = if bound.is_binary(index) { self.form(type_oid) } else { Form::Text };
            let mut out = BytesMut::with_capacity(value.len() * 2);
            let text = |text: &[u8], out: &mut BytesMut| self.encoding.decode(text, out);
            match (Converter { form: &|oid| self.form(oid), text: &text }).value(form, &value, &mut out) {
                Ok(()) => bound.params[index] = Some(out.freeze()),
                // Whoever reads it will say so.
                Err(Unread::Malformed) => {}
                Err(Unread::Text(error)) => return Err(self.not_in_utf8(&error)),
                // It says its encoding itself, or is in UTF-8.
                Err(Unread::Unknown) if type_oid == XML => {}
                Err(Unread::Unknown) => return Err(self.mixed()),
            }
        }
        Ok(bound)
    }

    /// Converts what waits for the client.
    fn convert(&mut self, out: &mut BytesMut) {
        let waiting = out.split_off(self.done.min(out.len()));
        let mut rest: &[u8] = &waiting;
        while let Some((tag, len)) = peek_frame(rest) {
            let (frame, after) = rest.split_at(len);
            rest = after;
            let start = out.len();
            if matches!(tag, b'D' | b'd' | b'c') && self.failure.is_some() {
                continue;
            }
            if tag == b'T' {
                self.columns = self.columns_of(&frame[HEADER_LEN..]);
            }
            let copy = self.copy.take_if(|_| matches!(tag, b'd' | b'c'));
            if copy.is_none() && frame[HEADER_LEN..].is_ascii() {
                out.extend_from_slice(frame);
                continue;
            }
            out.extend_from_slice(&frame[..HEADER_LEN]);
            let body = &frame[HEADER_LEN..];
            let converted = match tag {
                b'T' => self.names(body, out),
                b'D' => self.row(body, out),
                b'd' if let Some(mut copy) = copy => {
                    let fed = self.converting(|converter| copy.feed(body, converter, out));
                    self.copy = Some(copy);
                    // The first bytes of a value are sent with the rest.
                    if fed.is_ok() && out.len() == start + HEADER_LEN {
                        out.truncate(start);
                        continue;
                    }
                    fed
                }
                b'd' => self.encoding.encode(body, out).map_err(|error| self.not_in_encoding(&error)),
                b'E' | b'N' | b'S' => {
                    self.as_far_as_possible(body, out);
                    Ok(())
                }
                b'A' => {
                    out.extend_from_slice(&body[..4]);
                    self.as_far_as_possible(&body[4..], out);
                    Ok(())
                }
                _ => {
                    out.extend_from_slice(body);
                    Ok(())
                }
            };
            match converted {
                Ok(()) => set_length(out, start),
                Err(failure) => {
                    out.truncate(start);
                    self.failure.get_or_insert(failure);
                }
            }
        }
        out.extend_from_slice(rest);
        self.done = out.len();
    }

    /// RowDescription: names, each with 18 bytes of numbers behind it.
    fn names(&self, body: &[u8], out: &mut BytesMut) -> Result<()> {
        let (count, mut rest) = body.split_at(2);
        out.extend_from_slice(count);
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            self.encoding.encode(&rest[..end], out).map_err(|error| self.not_in_encoding(&error))?;
            let numbers = (end + 19).min(rest.len());
            out.extend_from_slice(&rest[end..numbers]);
            rest = &rest[numbers..];
        }
        Ok(())
    }

    fn row(&self, body: &[u8], out: &mut BytesMut) -> Result<()> {
        let (count, mut rest) = body.split_at(2);
        out.extend_from_slice(count);
        let mut column = 0;
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let len = i32::from_be_bytes(*length);
            let (value, after) = after.split_at(usize::try_from(len).unwrap_or(0).min(after.len()));
            rest = after;
            let at = out.len();
            out.extend_from_slice(length);
            let form = self.columns.get(column).copied().unwrap_or(self.others);
            self.converting(|converter| converter.value(form, value, out))?;
            if len > 0 {
                let len = (out.len() - at - 4) as i32;
                out[at..at + 4].copy_from_slice(&len.to_be_bytes());
            }
            column += 1;
        }
        Ok(())
    }

    /// For the client.
    fn converting(
        &self,
        convert: impl FnOnce(&Converter<'_, Unconvertible>) -> std::result::Result<(), Unread<Unconvertible>>,
    ) -> Result<()> {
        let text = |text: &[u8], out: &mut BytesMut| self.encoding.encode(text, out);
        convert(&Converter { form: &|oid| self.form(oid), text: &text }).map_err(|unread| match unread {
            Unread::Text(error) => self.not_in_encoding(&error),
            Unread::Unknown | Unread::Malformed => self.mixed(),
        })
    }

    fn form(&self, type_oid: Oid) -> Form {
        Form::built_in(type_oid).or_else(|| self.types.get(&type_oid).copied()).unwrap_or(Form::Other)
    }

    fn column(&self, format: i16, type_oid: Oid) -> Form {
        if format == 0 { Form::Text } else { self.form(type_oid) }
    }

    /// What a RowDescription says of its columns.
    fn columns_of(&self, body: &[u8]) -> Vec<Form> {
        let mut columns = Vec::new();
        let mut rest = body.get(2..).unwrap_or_default();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            let Some(numbers) = rest[end + 1..].first_chunk::<18>() else { break };
            let type_oid = u32::from_be_bytes([numbers[6], numbers[7], numbers[8], numbers[9]]);
            columns.push(self.column(i16::from_be_bytes([numbers[16], numbers[17]]), type_oid));
            rest = &rest[end + 19..];
        }
        columns
    }

    /// Messages for people: what cannot be said is a question mark.
    fn as_far_as_possible(&self, text: &[u8], out: &mut BytesMut) {
        for c in String::from_utf8_lossy(text).chars() {
            if self.encoding.encode(c.encode_utf8(&mut [0; 4]).as_bytes(), out).is_err() {
                out.put_u8(b'?');
            }
        }
    }

    fn not_in_utf8(&self, error: &Unconvertible) -> Failure {
        unconvertible(error, self.encoding.name(), UTF8)
    }

    fn not_in_encoding(&self, error: &Unconvertible) -> Failure {
        unconvertible(error, UTF8, self.encoding.name())
    }

    fn mixed(&self) -> Failure {
        Failure::refused(format!(
            "cannot convert a binary value to or from client_encoding \"{}\"",
            self.encoding.name()
        ))
        .hint("Use text format, or UTF8.")
    }
}

fn is_client_encoding(setting: &Expr) -> bool {
    matches!(&setting.kind, ExprKind::Const(Const::String(text)) if text.eq_ignore_ascii_case("client_encoding"))
}

fn unconvertible(error: &Unconvertible, from: &str, to: &str) -> Failure {
    let bytes: Vec<String> = error.bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    let bytes = bytes.join(" ");
    if !error.is_valid {
        return Failure::new("22021", format!("invalid byte sequence for encoding \"{from}\": {bytes}"));
    }
    Failure::new(
        "22P05",
        format!("character with byte sequence {bytes} in encoding \"{from}\" has no equivalent in encoding \"{to}\""),
    )
}

fn begin_message(tag: u8, len: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(HEADER_LEN + len * 2);
    out.put_u8(tag);
    out.put_u32(0);
    out
}

/// Corrects the length of the message that begins at `start`.
fn set_length(out: &mut BytesMut, start: usize) {
    let len = (out.len() - start - 1) as u32;
    out[start + 1..start + HEADER_LEN].copy_from_slice(&len.to_be_bytes());
}

const XML: Oid = 142;

impl Client {
    /// From here on.
    pub fn set_encoding(&mut self, encoding: Option<Encoding>) {
        self.convert();
        let failure = self.coding.take().and_then(|coding| coding.failure);
        self.coding =
            encoding.map(|encoding| Box::new(Coding { failure, done: self.out.len(), ..Coding::new(encoding) }));
    }

    pub fn convert(&mut self) {
        if let Some(coding) = &mut self.coding {
            coding.convert(&mut self.out);
            // Positions in it are others now.
            self.flushes += 1;
        }
    }

    /// So much of what is converted has left.
    pub fn converted_left(&mut self, bytes: usize) {
        if let Some(coding) = &mut self.coding {
            coding.done = coding.done.saturating_sub(bytes);
        }
    }

    /// What became of a statement: what it gave before it failed may be what the client could not be sent.
    pub fn converted<T>(&mut self, result: Result<T>) -> Result<T> {
        match result {
            Err(Failure::Fatal(_) | Failure::ClientGone) => result,
            _ => self.check_converted().and(result),
        }
    }

    /// Why the client could not be sent something.
    pub fn check_converted(&mut self) -> Result<()> {
        if self.coding.is_none() {
            return Ok(());
        }
        self.convert();
        self.coding.as_mut().and_then(|coding| coding.failure.take()).map_or(Ok(()), Err)
    }
}

/// An encoding that a client may have.
#[derive(Debug, Clone)]
pub struct Charset {
    /// PostgreSQL's name.
    pub name: &'static str,
    /// Not of UTF8; SQL_ASCII: its bytes are taken for UTF-8, as PostgreSQL does.
    pub encoding: Option<Encoding>,
}

/// What a session's `client_encoding` is.
pub struct ClientEncoding {
    startup: Charset,
    now: Moment,
    /// What a rollback brings back.
    before: Option<Charset>,
    /// What bytes are converted to, and what the client has been told.
    used: &'static str,
    told: &'static str,
}

/// What it is at one moment.
#[derive(Debug, Clone)]
pub struct Moment {
    session: Charset,
    /// By SET LOCAL.
    local: Option<Charset>,
}

impl ClientEncoding {
    pub fn new(startup: Charset) -> ClientEncoding {
        let now = Moment { session: startup.clone(), local: None };
        ClientEncoding { startup, now, before: None, used: UTF8, told: UTF8 }
    }

    fn charset(&self) -> &Charset {
        self.now.local.as_ref().unwrap_or(&self.now.session)
    }

    pub fn name(&self) -> &'static str {
        self.charset().name
    }

    pub fn moment(&self) -> Moment {
        self.now.clone()
    }

    pub fn go_back(&mut self, moment: Moment) {
        self.now = moment;
    }
}

/// The name of an encoding that clients may have, as PostgreSQL spells it.
pub fn supported(value: &str) -> Result<&'static str> {
    let name = canonical_name(value);
    if let Some(name) = name.filter(|name| matches!(*name, UTF8 | "SQL_ASCII") || by_name(name).is_some()) {
        return Ok(name);
    }
    let state = if name.is_some() { "0A000" } else { "22023" };
    let failure = Failure::new(state, format!("invalid value for parameter \"client_encoding\": \"{value}\""));
    Err(match name {
        Some(name) => failure.detail(format!("Conversion between {name} and UTF8 is not supported.")),
        None => failure,
    })
}

impl Session {
    /// What a value of client_encoding stands for; none for DEFAULT.
    pub async fn charset_of(&mut self, value: Option<&str>) -> Result<Charset> {
        match value {
            None => Ok(self.encoding.startup.clone()),
            Some(value) => self.thread.shared.charset(supported(value)?, &self.db.name).await,
        }
    }

    /// SET of client_encoding, which no server hears of.
    pub fn set_client_encoding(&mut self, charset: Charset, local: bool) {
        let in_block = self.txn.block != Block::None;
        match (local, in_block) {
            // PostgreSQL has warned; nothing stays.
            (true, false) => return,
            (true, true) => self.encoding.now.local = Some(charset),
            (false, _) => {
                if in_block {
                    self.encoding.before.get_or_insert(self.encoding.now.session.clone());
                }
                self.encoding.now = Moment { session: charset, local: None };
            }
        }
        self.follow_encoding();
    }

    pub fn reset_client_encoding(&mut self) {
        self.set_client_encoding(self.encoding.startup.clone(), false);
    }

    /// An error has undone what was set since the last savepoint.
    pub fn fail_encoding(&mut self) {
        let savepoint = self.txn.log.iter().rev().find_map(|item| match item {
            LogItem::Savepoint { encoding, .. } if !item.is_ours() => Some(encoding.clone()),
            _ => None,
        });
        self.encoding.now = savepoint.unwrap_or_else(|| {
            let session = self.encoding.before.as_ref().unwrap_or(&self.encoding.now.session);
            Moment { session: session.clone(), local: None }
        });
        self.follow_encoding();
    }

    /// What a function or a body has set on the coordinator's connection is the client's from here on; the connection
    /// is UTF8 again.
    pub async fn adopt_encoding(&mut self) -> Result<()> {
        let Some(value) = self.encoding_there() else { return Ok(()) };
        let charset = self.charset_of(Some(&value)).await?;
        // What lasts longer than the block shows when that ends.
        let in_block = self.txn.block != Block::None;
        let word = if in_block { "LOCAL" } else { "SESSION" };
        self.run_quiet(COORDINATOR_GROUP, &format!("SET {word} client_encoding = 'UTF8'")).await?;
        self.set_client_encoding(charset, in_block);
        Ok(())
    }

    /// The same where a transaction has ended, for the session.
    pub async fn encoding_left(&mut self) -> Option<Charset> {
        let value = self.encoding_there()?;
        let charset = self.charset_of(Some(&value)).await.ok()?;
        let participant = self.txn.participants.get_mut(&COORDINATOR_GROUP)?;
        participant.lease.query("SET client_encoding = 'UTF8'").await.ok()?;
        Some(charset)
    }

    fn encoding_there(&self) -> Option<String> {
        if self.definitions.is_asked() {
            return None;
        }
        let participant = self.txn.participants.get(&COORDINATOR_GROUP)?;
        participant.lease.parameters.get("client_encoding").filter(|value| *value != UTF8).cloned()
    }

    /// The end of a transaction.
    pub fn settle_encoding(&mut self, committed: bool) {
        let before = self.encoding.before.take();
        self.encoding.now.local = None;
        if let (Some(before), false) = (before, committed) {
            self.encoding.now.session = before;
        }
        self.follow_encoding();
    }

    /// The client has it from here on.
    pub fn follow_encoding(&mut self) {
        let charset = self.encoding.charset();
        if charset.name != self.encoding.used {
            self.client.set_encoding(charset.encoding.clone());
            self.encoding.used = charset.name;
        }
    }

    /// The client is told, in front of ReadyForQuery as PostgreSQL does.
    pub fn tell_encoding(&mut self) {
        if self.encoding.used != self.encoding.told {
            self.encoding.told = self.encoding.used;
            write_parameter_status(&mut self.client.out, "client_encoding", self.encoding.told);
        }
    }

    /// What a statement must not do where its client's bytes are converted, and for all clients.
    pub async fn check_encoding_of(&mut self, call: &Call<'_>) -> Result<()> {
        let Some(statement) = &call.prepared.statement else { return Ok(()) };
        if self.client.coding.is_none() {
            return Ok(());
        }
        // From UTF8 it is adopted; to UTF8 it would not be seen.
        let named = |text: &[u8]| text.to_ascii_lowercase().windows(15).any(|word| word == b"client_encoding");
        let mut values = call.bound.iter().flat_map(|bound| bound.params.iter().flatten());
        if statement.calls.iter().any(|(_, name)| name == "set_config")
            && (named(statement.text.as_bytes()) || values.any(|value| named(value)))
        {
            let name = self.encoding.name();
            let message = format!("set_config of client_encoding is not supported with client_encoding \"{name}\"");
            return Err(Failure::refused(message).hint("Use SET."));
        }
        let mut copy = None;
        if let StatementKind::Copy(info) = &statement.kind {
            let is_binary = info.options.format == CopyFormat::Binary;
            if info.options.encoding.is_some() || is_binary && info.target != CopyTarget::Client {
                let name = self.encoding.name();
                let message = format!("COPY with an encoding is not supported with client_encoding \"{name}\"");
                return Err(Failure::refused(message).hint("Use UTF8."));
            }
            if is_binary {
                let types = self.copied_types(statement, info).await?;
                self.learn_forms(&types).await?;
                copy = self.client.coding.as_ref().map(|c| types.iter().map(|oid| c.form(*oid)).collect());
            }
        }
        self.client.convert();
        if let Some(coding) = &mut self.client.coding {
            coding.copy = copy.map(CopyStream::new);
        }
        // What was written is undone where the client cannot be told of it.
        if statement.has_modifying && self.txn.block == Block::None {
            self.open_implicit_block();
        }
        Ok(())
    }

    /// Where a query asks for the client's encoding, which the server that runs it has not: what it is, under the name
    /// that the column has.
    pub fn encoding_calls(&self, statement: &Statement) -> Vec<(Span, String)> {
        let (name, catalog) = (self.encoding.name(), self.catalog());
        let mut found = Vec::new();
        if name == UTF8 || !matches!(statement.kind, StatementKind::Select) {
            return found;
        }
        statement.tree.walk_all(&mut |place, expr| {
            let ExprKind::Call(call) = &expr.kind else { return };
            let is_built_in = match &call.schema {
                Some(schema) => schema == "pg_catalog",
                None => !catalog.user_functions.contains(&call.name),
            };
            let gives = match (call.name.as_str(), call.args.as_slice()) {
                ("pg_client_encoding", []) => "name",
                ("current_setting", [setting, ..]) if is_client_encoding(setting) => "text",
                _ => return,
            };
            // In FROM it is a table.
            if is_built_in && place != Place::From && call.call_span.is_known() {
                let value = format!("(SELECT '{name}'::pg_catalog.{gives} AS {})", call.name);
                found.push((call.call_span, value));
            }
        });
        found
    }

    /// What a client binds to a statement, in UTF-8.
    pub async fn decoded_values(&mut self, prepared: &Prepared, bound: Bound) -> Result<Bound> {
        if self.client.coding.is_none() {
            return Ok(bound);
        }
        let described = prepared.last_described();
        let types = described.as_ref().map_or(&prepared.declared, |d| &d.param_types);
        if bound.param_formats.contains(&1) {
            self.learn_forms(types).await?;
        }
        match &self.client.coding {
            Some(coding) => coding.bound(bound, types),
            None => Ok(bound),
        }
    }

    /// What a statement copies, in binary format, from or to the client.
    async fn copied_types(&mut self, statement: &Statement, info: &CopyInfo) -> Result<Vec<Oid>> {
        if let Some(query) = info.query {
            let described = self.describe_on_coordinator(query.of(&statement.text), &[]).await?;
            return Ok(described.fields.iter().flatten().map(|field| field.type_oid).collect());
        }
        let Some(relation) = &info.relation else { return Ok(Vec::new()) };
        let sql = format!(
            "SELECT attname, atttypid FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass({}) \
             AND attnum > 0 AND NOT attisdropped AND ({} OR attgenerated = '') ORDER BY attnum",
            quote_literal(&quote_name(relation.schema.as_deref(), &relation.name)),
            !info.columns.is_empty()
        );
        let found = self.ask_coordinator(&sql).await?;
        let type_of = |row: usize| found.text(row, 1).and_then(|oid| oid.parse().ok()).unwrap_or(0);
        let rows = 0..found.rows.len();
        if info.columns.is_empty() {
            return Ok(rows.map(type_of).collect());
        }
        let named = |name: &String| rows.clone().find(|row| found.text(*row, 0) == Some(name)).map_or(0, type_of);
        Ok(info.columns.iter().map(named).collect())
    }

    /// Finds out where the text is in values of these types.
    pub async fn learn_forms(&mut self, types: &[Oid]) -> Result<()> {
        let catalog = self.catalog();
        let Some(coding) = &mut self.client.coding else { return Ok(()) };
        if !coding.types_of.as_ref().is_some_and(|seen| seen.is(&catalog)) {
            (coding.types, coding.types_of) = (HashMap::new(), Some(SnapshotId::of(&catalog)));
        }
        let is_unknown = |oid: &&Oid| **oid != 0 && Form::built_in(**oid).is_none() && !coding.types.contains_key(oid);
        let unknown: Vec<String> = types.iter().filter(is_unknown).map(Oid::to_string).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "WITH RECURSIVE met(oid) AS (SELECT pg_catalog.unnest('{{{}}}'::pg_catalog.oid[]) \
               UNION SELECT x.part FROM met m JOIN pg_catalog.pg_type t ON t.oid = m.oid, LATERAL (SELECT t.typelem UNION ALL SELECT t.typbasetype \
                 UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a \
                   WHERE t.typrelid <> 0 AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped \
                 UNION ALL SELECT g.rngsubtype FROM pg_catalog.pg_range g WHERE g.rngtypid = t.oid \
                 UNION ALL SELECT g.rngtypid FROM pg_catalog.pg_range g WHERE g.rngmultitypid = t.oid) x(part)) \
             SELECT t.oid, p.proname, coalesce(r.rngsubtype, m.rngtypid, 0) \
             FROM met JOIN pg_catalog.pg_type t ON t.oid = met.oid JOIN pg_catalog.pg_proc p ON p.oid = t.typsend \
               LEFT JOIN pg_catalog.pg_range r ON r.rngtypid IN (t.oid, t.typbasetype) \
               LEFT JOIN pg_catalog.pg_range m ON m.rngmultitypid IN (t.oid, t.typbasetype)",
            unknown.join(",")
        );
        let found = self.ask_coordinator(&sql).await?;
        let Some(coding) = &mut self.client.coding else { return Ok(()) };
        for row in 0..found.rows.len() {
            let number = |column| found.text(row, column).and_then(|text| text.parse::<Oid>().ok()).unwrap_or(0);
            coding.types.insert(number(0), Form::written_by(found.text(row, 1).unwrap_or_default(), number(2)));
        }
        Ok(())
    }

    /// Which columns of a statement's rows are text.
    pub async fn tell_columns(&mut self, prepared: &Prepared, bound: Option<&Bound>) -> Result<()> {
        if self.client.coding.is_none() {
            return Ok(());
        }
        let formats = bound.map_or(&[][..], |bound| &bound.result_formats);
        let (mut columns, mut others) = (Vec::new(), Form::Text);
        if formats.contains(&1) {
            let planned = prepared.statement.as_ref().is_some_and(|s| is_planned(&s.kind));
            let described = match planned && self.txn.block != Block::Failed {
                true => Some(self.described(prepared).await?),
                false => prepared.last_described(),
            };
            let fields: &[FieldDescription] = described.as_ref().and_then(|d| d.fields.as_deref()).unwrap_or_default();
            let types: Vec<Oid> = fields.iter().map(|field| field.type_oid).collect();
            self.learn_forms(&types).await?;
            let count = types.len().max(formats.len());
            let type_of = |index: usize| types.get(index).copied().unwrap_or(0);
            if let Some(coding) = &self.client.coding {
                let column = |index| coding.column(format_of(formats, index), type_of(index));
                columns = (0..count).map(column).collect();
            }
            others = Form::Other;
        }
        self.client.convert();
        if let Some(coding) = &mut self.client.coding {
            (coding.columns, coding.others) = (columns, others);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;
    use pgherd_wire::encoding::Known;
    use pgherd_wire::multibyte::Multibyte;
    use pgherd_wire::{backend, frontend};

    use super::*;

    fn coding(name: &str) -> Coding {
        let Some(Known::Here(encoding)) = by_name(name) else { panic!("{name} is not known") };
        Coding::new(Encoding::SingleByte(encoding))
    }

    fn latin1() -> Coding {
        coding("LATIN1")
    }

    fn frame(raw: &[u8]) -> Frame {
        Frame { raw: Bytes::copy_from_slice(raw) }
    }

    #[test]
    fn messages_of_a_client_become_utf8() {
        let query = latin1().received(&frame(b"Q\0\0\0\x09x\xe4y\0")).unwrap();
        assert_eq!(frontend::parse_frontend(&query).unwrap(), frontend::FrontendMessage::Query { sql: "xäy" });
        // Numbers behind the strings stay.
        let parse = latin1().received(&frame(b"P\0\0\0\x0e\xe4\0\xf6\0\0\x01\0\0\0\xff")).unwrap();
        assert_eq!(&parse.raw[..], b"P\0\0\0\x10\xc3\xa4\0\xc3\xb6\0\0\x01\0\0\0\xff");
        let bad = coding("WIN1252").received(&frame(b"Q\0\0\0\x06\x81\0"));
        assert_eq!(bad.unwrap_err().sqlstate(), "22P05");
    }

    #[test]
    fn a_character_may_be_in_two_messages_of_a_copy() {
        let learned = Multibyte::learned("SJIS", "b 95 5c e8a1a8").unwrap();
        let mut coding = Coding::new(Encoding::Multibyte(learned.into()));
        let data = |coding: &mut Coding, raw: &[u8]| coding.received(&frame(raw)).map(|frame| frame.body_bytes());
        assert_eq!(data(&mut coding, b"d\0\0\0\x06a\x95").unwrap(), "a");
        assert_eq!(data(&mut coding, b"d\0\0\0\x06\\b").unwrap(), "表b");
        assert_eq!(data(&mut coding, b"d\0\0\0\x05\x95").unwrap(), "");
        assert_eq!(data(&mut coding, b"c\0\0\0\x04").unwrap_err().sqlstate(), "22021");
        // The end of one string is not the beginning of the next.
        assert_eq!(data(&mut coding, b"P\0\0\0\x0a\x95\0\\\0\0\0").unwrap_err().sqlstate(), "22021");
    }

    #[test]
    fn rows_and_messages_leave_in_the_client_s_encoding() {
        let mut out = BytesMut::new();
        backend::write_data_row(&mut out, &[Some("ä"), None, Some("plain")]);
        let mut coding = latin1();
        coding.convert(&mut out);
        let mut expected = BytesMut::new();
        backend::write_data_row(&mut expected, &[Some(&b"\xe4"[..]), None, Some(b"plain")]);
        assert_eq!(out, expected);
        // What is converted is not converted again.
        coding.convert(&mut out);
        assert_eq!(out, expected);
        backend::write_data_row(&mut out, &[Some("€")]);
        coding.convert(&mut out);
        assert_eq!(out, expected);
        assert_eq!(coding.failure.take().unwrap().sqlstate(), "22P05");
    }

    #[test]
    fn binary_values_are_converted_where_they_are_text() {
        let mut coding = latin1();
        (coding.columns, coding.others) = (vec![Form::Plain, Form::Text], Form::Other);
        let mut out = BytesMut::new();
        backend::write_data_row(&mut out, &[Some(&b"\0\0\xc3\xa4"[..]), Some("ä".as_bytes())]);
        coding.convert(&mut out);
        let mut expected = BytesMut::new();
        backend::write_data_row(&mut expected, &[Some(&b"\0\0\xc3\xa4"[..]), Some(b"\xe4")]);
        assert_eq!(out, expected);
    }
}
