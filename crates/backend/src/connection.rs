//! One connection to one server: frames go out through a buffer and come back in order. Statements that the caller
//! does not want to see the replies of (BEGIN, savepoints, locks) are **steps**: they travel under the same Sync, or in
//! the same Query, as the next request, and their replies are swallowed here. Their error is the request's error, which
//! then does not run: a cancel that hits BEGIN must not let what follows commit by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use pgherd_wire::backend::{self, ErrorFields, FieldDescription};
use pgherd_wire::frame::{Frame, next_frame, peek_frame};
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

use crate::lane::{LaneStatement, statement_name, write_execution};
use crate::statements::BEGIN_NAME;
use crate::{BackendError, CancelKey, Settings, Statements};

/// The largest message taken from a server: PostgreSQL's own limit of 1 GiB and some.
const FRAME_MAX: usize = (1 << 30) + 1024;
const READ_CHUNK: usize = 64 * 1024;
/// Outgoing bytes are pushed to the socket once this many have gathered.
pub const WRITE_CHUNK: usize = 64 * 1024;
/// What a socket does not take of a stream of CopyData is kept up to this, so that the other servers get theirs
/// meanwhile.
const COPY_PENDING_MAX: usize = 512 * 1024;
/// What is read ahead of its time while something waits to be written.
const READ_AHEAD_MAX: usize = 1024 * 1024;
/// A buffer larger than this is given back when it is empty.
const KEEP_MAX: usize = 4 * WRITE_CHUNK;
/// Rows of COPY are gathered in messages of about this size: a server looks at each message by itself.
const COPY_MESSAGE: usize = 16 * 1024;

pub struct Connection {
    stream: TcpStream,
    read: BytesMut,
    write: BytesMut,
    /// Where in `write` a CopyData message begins that more may be added to: nothing stands behind it.
    copy_message: Option<usize>,
    /// The length of `write` at which a stream of CopyData is pushed on.
    push_at: usize,
    address: String,
    /// Steps that wait for the next request.
    steps: Vec<String>,
    /// Portals that the next request closes; what is not there any more is no error.
    closing: Vec<String>,
    /// Replies still to be swallowed, counted in CommandComplete messages.
    swallow: u32,
    /// BEGIN was given its name: the first ParseComplete to come is its.
    naming_begin: bool,
    /// Characters in front of the caller's own text in the Query that is being answered.
    shifted: usize,
    /// As the server reported them.
    pub parameters: BTreeMap<String, String>,
    pub cancel_key: Option<CancelKey>,
    /// When it was ready: its process is older.
    pub since: Instant,
    /// Transaction status of the last ReadyForQuery: `I`, `T` or `E`.
    pub status: u8,
    /// ReadyForQuery messages still to come.
    pub in_flight: u32,
    /// Session settings that we changed on this connection, by lower-case name, with the value in SQL.
    pub applied: Settings,
    /// Settings of names that users gave which sessions before have set here. No server takes them away again: they are
    /// empty, where on another connection there are none.
    pub made: BTreeSet<String>,
    /// The server ends it once it was idle for so long (`idle_session_timeout`).
    pub idle_limit: Option<Duration>,
    /// What was set here nobody knows: it is for its session alone.
    pub alone: bool,
    /// Server-side statements prepared here, by the router's number.
    pub prepared: Statements,
    /// The session behind this connection may have state of unknown kind: DISCARD ALL before anyone else uses it.
    pub tainted: bool,
    /// Who may have drawn from sequences here: what `currval` says is for it alone.
    pub drew: Option<u64>,
    /// The caller's own mark, given when the connection was opened.
    pub label: Option<String>,
    broken: bool,
    /// Why it has ended, where the server or the system said so.
    why: Option<String>,
    /// Its part of what the server takes.
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The collected answer to one or more statements.
#[derive(Debug, Clone, Default)]
pub struct QueryResult {
    pub fields: Vec<FieldDescription>,
    pub rows: Vec<Vec<Option<Bytes>>>,
    pub tag: String,
}

impl QueryResult {
    /// A field as text; none for NULL, an absent column or bytes that are not UTF-8.
    pub fn text(&self, row: usize, column: usize) -> Option<&str> {
        self.rows.get(row)?.get(column)?.as_deref().and_then(|b| std::str::from_utf8(b).ok())
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, address: String) -> Self {
        Connection {
            stream,
            read: BytesMut::with_capacity(8 * 1024),
            write: BytesMut::with_capacity(4 * 1024),
            copy_message: None,
            push_at: WRITE_CHUNK,
            address,
            steps: Vec::new(),
            closing: Vec::new(),
            swallow: 0,
            naming_begin: false,
            shifted: 0,
            parameters: BTreeMap::new(),
            cancel_key: None,
            since: Instant::now(),
            status: b'I',
            in_flight: 1,
            applied: Settings::default(),
            made: BTreeSet::new(),
            idle_limit: None,
            alone: false,
            prepared: Statements::default(),
            tainted: false,
            drew: None,
            label: None,
            broken: false,
            why: None,
            room: None,
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Where messages for the server are written; they leave at the next [`flush`](Self::flush) or
    /// [`frame`](Self::frame).
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.copy_message = None;
        self.write_closing();
        if !self.steps.is_empty() {
            self.write_steps();
        }
        &mut self.write
    }

    fn write_closing(&mut self) {
        for portal in std::mem::take(&mut self.closing) {
            frontend::write_close(&mut self.write, b'P', &portal);
        }
    }

    /// The steps as part of the pipeline up to the next Sync.
    fn write_steps(&mut self) {
        for sql in std::mem::take(&mut self.steps) {
            // Most transactions begin in this way. (The coordinator's connections may be told to forget everything.)
            let named = sql == "BEGIN" && self.in_flight == 0 && self.label.is_none();
            let name = if named { BEGIN_NAME } else { "" };
            if named && !self.prepared.begin {
                self.naming_begin = true;
                frontend::write_close(&mut self.write, b'S', name);
            }
            if !named || !self.prepared.begin {
                frontend::write_parse(&mut self.write, name, &sql, &[]);
            }
            frontend::write_bind::<&[u8]>(&mut self.write, "", name, &[], &[], &[]);
            frontend::write_execute(&mut self.write, "", 0);
            self.swallow += 1;
        }
    }

    /// No reply is owed and the stream is whole.
    pub fn is_idle(&self) -> bool {
        !self.broken && self.in_flight == 0 && self.steps.is_empty() && self.write.is_empty() && self.status == b'I'
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Marks the connection unusable: it is closed instead of pooled.
    pub fn poison(&mut self) {
        self.broken = true;
    }

    /// A simple Query whose replies the caller will read. Only while the caller has no reply outstanding, if there are
    /// steps.
    pub fn send_query(&mut self, sql: &str) {
        self.copy_message = None;
        self.write_closing();
        if self.steps.is_empty() {
            frontend::write_query(&mut self.write, sql);
        } else {
            let mut text = String::new();
            for step in std::mem::take(&mut self.steps) {
                text.push_str(&step);
                // A comment may stand at the step's end.
                text.push_str("\n;");
                self.swallow += 1;
            }
            self.shifted = text.chars().count();
            text.push_str(sql);
            frontend::write_query(&mut self.write, &text);
        }
        self.in_flight += 1;
    }

    /// A Sync whose ReadyForQuery the caller will read.
    pub fn send_sync(&mut self) {
        frontend::write_sync(self.buffer());
        self.in_flight += 1;
    }

    /// Bind and Execute of a statement that is kept here, with Parse in front if it is not yet. The caller enters it
    /// into `prepared` when ParseComplete comes.
    pub fn send_kept(&mut self, statement: &LaneStatement, values: &[u8]) {
        if !self.prepared.touch(statement.id) {
            while let Some(oldest) = self.prepared.make_room(statement.sql.len()) {
                frontend::write_close(self.buffer(), b'S', &statement_name(oldest));
            }
            // It may be there without our knowing, where an error kept its Close from being read. Closing what is not
            // there is no error.
            frontend::write_close(self.buffer(), b'S', &statement.name);
            frontend::write_parse(self.buffer(), &statement.name, &statement.sql, &statement.param_types);
        }
        write_execution(self.buffer(), &statement.name, values);
    }

    /// One statement that goes with the next request.
    pub fn add_step(&mut self, sql: impl Into<String>) {
        self.steps.push(sql.into());
    }

    /// Steps that have not been sent.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// Those of a transaction that is rolled back before they were sent: all but the first few.
    pub fn forget_steps(&mut self, from: usize) {
        self.steps.truncate(from);
    }

    /// A portal that nobody wants any more; it is closed with the next request.
    pub fn close_portal(&mut self, name: impl Into<String>) {
        self.closing.push(name.into());
    }

    /// Pushes everything written so far to the socket. Reads meanwhile: a server that is not listened to may wait for
    /// us while we wait for it. Cancel safe.
    pub async fn flush(&mut self) -> Result<(), BackendError> {
        loop {
            self.write_some()?;
            if self.write.is_empty() {
                return Ok(());
            }
            self.until_ready().await?;
        }
    }

    /// Writes what the socket takes at once.
    fn write_some(&mut self) -> Result<(), BackendError> {
        if self.broken {
            return Err(self.lost("the connection is closed"));
        }
        self.copy_message = None;
        while !self.write.is_empty() {
            match self.stream.try_write(&self.write) {
                Ok(0) => return Err(self.fail("the server closed the connection")),
                Ok(n) => self.write.advance(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.fail(&error.to_string())),
            }
        }
        if self.write.is_empty() && self.write.capacity() > KEEP_MAX {
            self.write = BytesMut::new();
        }
        self.push_at = self.write.len() + WRITE_CHUNK;
        Ok(())
    }

    /// Reads what is there, unless much has gathered already.
    fn read_some(&mut self) -> Result<(), BackendError> {
        if self.read.len() >= READ_AHEAD_MAX {
            return Ok(());
        }
        self.read.reserve(READ_CHUNK);
        match self.stream.try_read_buf(&mut self.read) {
            Ok(0) => Err(self.fail("the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(self.fail(&error.to_string())),
        }
    }

    /// Waits until more can be written, or something was read.
    async fn until_ready(&mut self) -> Result<(), BackendError> {
        let reads = self.read.len() < READ_AHEAD_MAX;
        let interest = if reads { Interest::READABLE | Interest::WRITABLE } else { Interest::WRITABLE };
        match self.stream.ready(interest).await {
            Ok(ready) if ready.is_readable() => self.read_some(),
            Ok(_) => Ok(()),
            Err(error) => Err(self.fail(&error.to_string())),
        }
    }

    /// Pushes only once enough has gathered: for streams of CopyData.
    pub async fn flush_if_full(&mut self) -> Result<(), BackendError> {
        if self.write.len() >= WRITE_CHUNK { self.flush().await } else { Ok(()) }
    }

    /// Adds to the stream of CopyData. How it is cut into messages means nothing to a server.
    pub fn copy_data(&mut self, bytes: &[u8]) {
        if let Some(start) = self.copy_message
            && self.write.len() - start + bytes.len() <= COPY_MESSAGE
        {
            self.write.extend_from_slice(bytes);
            let len = (self.write.len() - start - 1) as u32;
            if let Some(field) = self.write.get_mut(start + 1..start + 5) {
                field.copy_from_slice(&len.to_be_bytes());
            }
        } else {
            let start = self.buffer().len();
            frontend::write_copy_data(&mut self.write, bytes);
            self.copy_message = Some(start);
        }
    }

    /// Enough has gathered for [`push_copy`](Self::push_copy).
    pub fn is_full(&self) -> bool {
        self.write.len() >= self.push_at
    }

    /// Pushes what has gathered of a stream of CopyData as far as the socket takes it, and waits only where too much is
    /// left. True: the server has said something, and the caller is to read it before it goes on. Cancel safe.
    pub async fn push_copy(&mut self) -> Result<bool, BackendError> {
        loop {
            self.write_some()?;
            self.read_some()?;
            if self.next_tag().is_some() {
                return Ok(true);
            }
            if self.write.len() <= COPY_PENDING_MAX {
                return Ok(false);
            }
            self.until_ready().await?;
        }
    }

    /// Pushes what has gathered of a stream of CopyData, and returns when the server says something: the caller is to
    /// read it. Cancel safe.
    pub async fn listen(&mut self) -> Result<(), BackendError> {
        while self.next_tag().is_none() {
            self.write_some()?;
            match self.write.is_empty() {
                true => self.fill().await?,
                false => self.until_ready().await?,
            }
        }
        Ok(())
    }

    /// The tag of the next message, where it is here as a whole.
    pub fn next_tag(&self) -> Option<u8> {
        peek_frame(&self.read).map(|(tag, _)| tag)
    }

    /// The next message that the caller is meant to see. Cancel safe.
    pub async fn frame(&mut self) -> Result<Frame, BackendError> {
        if !self.write.is_empty() {
            self.flush().await?;
        }
        loop {
            let frame = match next_frame(&mut self.read, FRAME_MAX) {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.fill().await?;
                    continue;
                }
                Err(error) => {
                    self.broken = true;
                    return Err(BackendError::protocol(&self.address, &error));
                }
            };
            self.note(&frame)?;
            if self.swallow == 0 && self.shifted == 0 {
                return Ok(frame);
            }
            match frame.tag() {
                b'E' => {
                    // Whatever follows is skipped by the server.
                    self.swallow = 0;
                    return Ok(if self.shifted > 0 { self.shift_back(frame)? } else { frame });
                }
                b'Z' => {
                    self.swallow = 0;
                    self.shifted = 0;
                    return Ok(frame);
                }
                b'C' | b'I' if self.swallow > 0 => self.swallow -= 1,
                b'1' | b'2' | b'3' | b'T' | b'D' | b'n' | b'N' if self.swallow > 0 => {}
                _ => return Ok(frame),
            }
        }
    }

    /// Positions count from the start of what the caller sent.
    fn shift_back(&mut self, frame: Frame) -> Result<Frame, BackendError> {
        let mut fields = backend::parse_error(&frame).map_err(|e| self.garbled(&e.to_string()))?;
        let Some(position) = fields.get(b'P').and_then(|p| p.parse::<usize>().ok()) else { return Ok(frame) };
        match position.checked_sub(self.shifted) {
            Some(position) if position > 0 => fields.set(b'P', position.to_string()),
            _ => {
                fields.remove(b'P');
            }
        }
        let mut raw = BytesMut::new();
        backend::write_error(&mut raw, &fields);
        Ok(Frame { raw: raw.freeze() })
    }

    /// Keeps what every reader of this connection relies on.
    fn note(&mut self, frame: &Frame) -> Result<(), BackendError> {
        match frame.tag() {
            b'Z' => {
                self.status = *frame.body().first().ok_or_else(|| self.garbled("short ReadyForQuery"))?;
                self.in_flight = self.in_flight.saturating_sub(1);
                self.naming_begin = false;
            }
            b'1' if self.naming_begin => {
                self.naming_begin = false;
                self.prepared.begin = true;
            }
            b'S' => {
                let (name, value) = backend::parse_parameter_status(frame).map_err(|e| self.garbled(&e.to_string()))?;
                self.parameters.insert(name.to_owned(), value.to_owned());
            }
            b'K' => {
                let (pid, key) = backend::parse_backend_key_data(frame).map_err(|e| self.garbled(&e.to_string()))?;
                self.cancel_key = Some(CancelKey { pid, key: Bytes::copy_from_slice(key) });
            }
            _ => {}
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), BackendError> {
        if self.broken {
            return Err(self.lost("the connection is closed"));
        }
        self.read.reserve(READ_CHUNK);
        match self.stream.read_buf(&mut self.read).await {
            Ok(0) => Err(self.fail("the server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) => Err(self.fail(&error.to_string())),
        }
    }

    /// True if the connection, idle in a pool, is still open and has said nothing.
    pub(crate) fn is_alive(&mut self) -> bool {
        if !self.is_idle() || !self.read.is_empty() {
            return false;
        }
        let mut probe = [0u8; 1];
        matches!(self.stream.try_read(&mut probe), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Why a connection that owes no reply has ended, if it has.
    pub fn ended(&mut self) -> Option<BackendError> {
        if self.broken {
            return Some(self.lost(self.why.as_deref().unwrap_or("the connection is closed")));
        }
        if self.in_flight > 0 {
            return None;
        }
        loop {
            let before = self.read.len();
            if let Err(error) = self.read_some() {
                return Some(error);
            }
            if self.read.len() == before {
                break;
            }
        }
        // What a server says unasked is its goodbye.
        (self.next_tag() == Some(b'E')).then(|| self.fail("the server closed the connection"))
    }

    /// Reads and drops everything until no reply is owed. The first error among the replies is given back.
    pub async fn drain(&mut self) -> Result<Option<ErrorFields>, BackendError> {
        let mut first = None;
        while self.in_flight > 0 {
            let frame = self.frame().await?;
            match frame.tag() {
                b'E' => {
                    let fields = backend::parse_error(&frame).map_err(|e| self.garbled(&e.to_string()))?;
                    first.get_or_insert(fields);
                }
                b'G' | b'W' => frontend::write_copy_fail(&mut self.write, "not expected here"),
                _ => {}
            }
        }
        Ok(first)
    }

    /// Runs one or more statements by simple Query and collects the last result set.
    pub async fn query(&mut self, sql: &str) -> Result<QueryResult, BackendError> {
        self.send_query(sql);
        self.collect().await
    }

    /// Collects the replies up to ReadyForQuery into one result: the last row description wins.
    pub async fn collect(&mut self) -> Result<QueryResult, BackendError> {
        let mut result = QueryResult::default();
        let mut failure = None;
        loop {
            let frame = self.frame().await?;
            match frame.tag() {
                b'T' => {
                    result.rows.clear();
                    result.fields = backend::parse_row_description(&frame).map_err(|e| self.garbled(&e.to_string()))?;
                }
                b'D' => result.rows.push(self.row(&frame)?),
                b'C' => {
                    result.tag =
                        backend::parse_command_complete(&frame).map_err(|e| self.garbled(&e.to_string()))?.to_owned();
                }
                b'E' => {
                    let fields = backend::parse_error(&frame).map_err(|e| self.garbled(&e.to_string()))?;
                    failure.get_or_insert(Box::new(fields));
                }
                b'G' | b'W' => frontend::write_copy_fail(&mut self.write, "not expected here"),
                b'Z' => {
                    return match failure {
                        Some(fields) => Err(BackendError::Server(fields)),
                        None => Ok(result),
                    };
                }
                _ => {}
            }
        }
    }

    fn row(&mut self, frame: &Frame) -> Result<Vec<Option<Bytes>>, BackendError> {
        let body = frame.body_bytes();
        let base = body.as_ptr() as usize;
        let mut row = Vec::new();
        for field in backend::parse_data_row(frame).map_err(|e| self.garbled(&e.to_string()))? {
            let field = field.map_err(|e| self.garbled(&e.to_string()))?;
            row.push(field.map(|f| {
                let start = f.as_ptr() as usize - base;
                body.slice(start..start + f.len())
            }));
        }
        Ok(row)
    }

    /// An error for a message that does not parse; the stream can no longer be trusted.
    pub fn garbled(&mut self, reason: &str) -> BackendError {
        self.broken = true;
        BackendError::Protocol { address: self.address.clone(), reason: reason.to_owned() }
    }

    fn fail(&mut self, reason: &str) -> BackendError {
        self.broken = true;
        // What the server said before it went is the better explanation (57P01 and its like).
        while let Ok(Some(frame)) = next_frame(&mut self.read, FRAME_MAX) {
            if frame.tag() == b'E'
                && let Ok(fields) = backend::parse_error(&frame)
            {
                let (address, reason) = (self.address.clone(), fields.message().to_owned());
                self.why = Some(reason.clone());
                return BackendError::Lost { address, reason, said: Some(Box::new(fields)) };
            }
        }
        self.lost(reason)
    }

    fn lost(&self, reason: &str) -> BackendError {
        BackendError::Lost { address: self.address.clone(), reason: reason.to_owned(), said: None }
    }

    /// The socket and what was read from it, for a use of its own.
    pub(crate) fn into_stream(self) -> (TcpStream, BytesMut) {
        (self.stream, self.read)
    }

    /// Says goodbye; errors do not matter any more.
    pub async fn close(mut self) {
        if !self.broken {
            frontend::write_terminate(&mut self.write);
            let _ = self.flush().await;
        }
    }
}
