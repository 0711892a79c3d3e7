//! A blocking client that hides nothing: every message of the server is kept as it came.
//!
//! It follows <https://www.postgresql.org/docs/current/protocol-message-formats.html>. It does not speak TLS and logs
//! in only where the server trusts it or asks for a plain password.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::{Error, Result, Target};

/// How long the server may be silent before a test is failed: longer than anything takes, shorter than a patience.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// One message of the server: its type byte and what follows the length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

/// The fields of an ErrorResponse or NoticeResponse by their code letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields(pub BTreeMap<char, String>);

impl Fields {
    pub fn get(&self, code: char) -> &str {
        self.0.get(&code).map_or("", String::as_str)
    }

    pub fn sqlstate(&self) -> &str {
        self.get('C')
    }

    pub fn message(&self) -> &str {
        self.get('M')
    }

    /// Of an ErrorResponse or a NoticeResponse.
    pub fn parse(body: &[u8]) -> Fields {
        let mut fields = BTreeMap::new();
        for part in body.split(|&b| b == 0).filter(|p| !p.is_empty()) {
            fields.insert(part[0] as char, String::from_utf8_lossy(&part[1..]).into_owned());
        }
        Fields(fields)
    }
}

/// A column of a RowDescription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub table_oid: u32,
    pub attnum: i16,
    pub type_oid: u32,
    pub typlen: i16,
    pub typmod: i32,
    pub format: i16,
}

pub type Row = Vec<Option<Vec<u8>>>;

/// What one statement answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// None where the statement has no rows to describe, or was not described.
    pub columns: Option<Vec<Column>>,
    pub rows: Vec<Row>,
    /// What COPY TO STDOUT sent, a CopyData message each.
    pub copied: Vec<Vec<u8>>,
    /// The command tag, or `EmptyQueryResponse`, or `PortalSuspended`.
    pub tag: Option<String>,
    pub error: Option<Fields>,
}

/// Everything between a request and its ReadyForQuery.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub answers: Vec<Answer>,
    pub notices: Vec<Fields>,
    /// Type ids of the parameters, where the statement was described.
    pub parameter_types: Option<Vec<u32>>,
    /// `I`, `T` or `E` of ReadyForQuery.
    pub status: u8,
}

impl Reply {
    pub fn error(&self) -> Option<&Fields> {
        self.answers.iter().find_map(|a| a.error.as_ref())
    }
}

/// A connection.
pub struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    start: usize,
    /// What ParameterStatus said last, by name.
    pub settings: BTreeMap<String, String>,
    /// How many notifications came with replies.
    pub notified: u32,
    pub process_id: u32,
    pub secret: Vec<u8>,
    target: Target,
}

impl Client {
    pub fn connect(target: &Target) -> Result<Client> {
        Self::connect_with(target, &[])
    }

    /// `parameters` go into the startup message behind user and database.
    pub fn connect_with(target: &Target, parameters: &[(&str, &str)]) -> Result<Client> {
        let mut client = Client::unconnected(target)?;
        let packet =
            startup(196_608, &[&[("user", &*target.user), ("database", &*target.database)], parameters].concat());
        client.stream.write_all(&packet)?;
        loop {
            let message = client.receive()?;
            match message.kind {
                b'R' => client.authenticate(&message.body)?,
                b'K' => {
                    client.process_id = Reader(&message.body).u32()?;
                    client.secret = message.body[4..].to_vec();
                }
                b'Z' => return Ok(client),
                b'E' => {
                    let fields = Fields::parse(&message.body);
                    return Err(format!("cannot log in to {}: {}", target.url(), show_fields(&fields)).into());
                }
                b'S' | b'N' => {}
                other => return Err(format!("message {:?} during start-up", other as char).into()),
            }
        }
    }

    fn unconnected(target: &Target) -> Result<Client> {
        let stream = TcpStream::connect((target.host.as_str(), target.port))?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            stream,
            received: Vec::new(),
            notified: 0,
            start: 0,
            settings: BTreeMap::new(),
            process_id: 0,
            secret: Vec::new(),
            target: target.clone(),
        })
    }

    fn authenticate(&mut self, body: &[u8]) -> Result<()> {
        match (Reader(body).u32()?, &self.target.password) {
            (0, _) => Ok(()),
            (3, Some(password)) => {
                let mut body = Vec::new();
                put_string(&mut body, password);
                let packet = message(b'p', &body);
                Ok(self.stream.write_all(&packet)?)
            }
            (method, _) => Err(format!("authentication method {method} is not known to the test client").into()),
        }
    }

    /// Sends a request to start up that is written by the caller, and gives the messages up to ReadyForQuery or to the
    /// error that ends the connection.
    pub fn start_up(target: &Target, packet: &[u8]) -> Result<Vec<Message>> {
        let mut client = Client::unconnected(target)?;
        client.send(packet)?;
        let mut messages = Vec::new();
        loop {
            let message = client.receive()?;
            let last = matches!(message.kind, b'Z' | b'E');
            messages.push(message);
            if last {
                return Ok(messages);
            }
        }
    }

    /// Sends an untyped request (SSLRequest, GSSENCRequest) on a new connection, and gives the byte that answers it.
    pub fn untyped_request(target: &Target, code: u32) -> Result<u8> {
        let mut client = Client::unconnected(target)?;
        let mut packet = 8u32.to_be_bytes().to_vec();
        packet.extend(code.to_be_bytes());
        client.send(&packet)?;
        let mut answer = [0u8; 1];
        client.stream.read_exact(&mut answer)?;
        Ok(answer[0])
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// A second way to send, for a thread of its own while this one receives.
    pub fn sender(&self) -> Result<TcpStream> {
        Ok(self.stream.try_clone()?)
    }

    /// The next message of the server. ParameterStatus is also remembered.
    pub fn receive(&mut self) -> Result<Message> {
        loop {
            let have = &self.received[self.start..];
            if have.len() >= 5 {
                let length = u32::from_be_bytes([have[1], have[2], have[3], have[4]]) as usize;
                if have.len() > length {
                    let found = Message { kind: have[0], body: have[5..=length].to_vec() };
                    self.start += length + 1;
                    if found.kind == b'S' {
                        let mut reader = Reader(&found.body);
                        let (name, value) = (reader.string()?, reader.string()?);
                        self.settings.insert(name, value);
                    }
                    return Ok(found);
                }
            }
            self.received.drain(..self.start);
            self.start = 0;
            let mut chunk = [0u8; 65536];
            let n = self.stream.read(&mut chunk).map_err(|e| match e.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    Error::from(format!("the server sent nothing for {} s", SILENCE_MAX.as_secs()))
                }
                _ => e.into(),
            })?;
            if n == 0 {
                return Err("the server closed the connection".into());
            }
            self.received.extend_from_slice(&chunk[..n]);
        }
    }

    /// Messages up to and with the `n`th ReadyForQuery.
    pub fn receive_until_ready(&mut self, n: usize) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        for _ in 0..n {
            loop {
                let message = self.receive()?;
                let last = message.kind == b'Z';
                messages.push(message);
                if last {
                    break;
                }
            }
        }
        Ok(messages)
    }

    /// A simple Query. `copy_in` answers every COPY FROM STDIN in it.
    pub fn simple(&mut self, sql: &str, copy_in: Option<&[u8]>) -> Result<Reply> {
        self.send(&query(sql))?;
        self.collect(copy_in, true)
    }

    /// Runs SQL that must succeed.
    pub fn run(&mut self, sql: &str) -> Result<Reply> {
        let reply = self.simple(sql, None)?;
        match reply.error() {
            None => Ok(reply),
            Some(fields) => Err(format!("{}\n  in: {sql}", show_fields(fields)).into()),
        }
    }

    /// The text of the one value of the one row that `sql` must give.
    pub fn value(&mut self, sql: &str) -> Result<String> {
        let reply = self.run(sql)?;
        let rows = reply.answers.last().map(|a| a.rows.as_slice()).unwrap_or_default();
        match rows {
            [row] if row.len() == 1 => {
                Ok(row[0].as_ref().map_or("NULL".to_owned(), |v| String::from_utf8_lossy(v).into_owned()))
            }
            _ => Err(format!("not one value but {} rows: {sql}", rows.len()).into()),
        }
    }

    /// Parse, Bind, Describe the portal, Execute and Sync on the unnamed statement, parameters and results as text.
    pub fn extended(
        &mut self,
        sql: &str,
        types: &[u32],
        parameters: &[Option<Vec<u8>>],
        copy_in: Option<&[u8]>,
    ) -> Result<Reply> {
        let mut packet = parse("", sql, types);
        packet.extend(describe(b'S', ""));
        packet.extend(bind("", "", &[], parameters, &[]));
        packet.extend(describe(b'P', ""));
        packet.extend(execute("", 0));
        self.finish(packet, copy_in)
    }

    /// Parse and Describe of a named statement.
    pub fn prepare(&mut self, name: &str, sql: &str, types: &[u32]) -> Result<Reply> {
        let mut packet = parse(name, sql, types);
        packet.extend(describe(b'S', name));
        packet.extend(sync());
        self.send(&packet)?;
        self.collect(None, true)
    }

    /// Bind and Execute of a named statement, with every result column in the format given (0 text, 1 binary).
    pub fn execute(
        &mut self,
        name: &str,
        parameters: &[Option<Vec<u8>>],
        result_format: i16,
        copy_in: Option<&[u8]>,
    ) -> Result<Reply> {
        let mut packet = bind("", name, &[], parameters, &[result_format]);
        packet.extend(execute("", 0));
        self.finish(packet, copy_in)
    }

    /// The same with parameters in these formats, and columns as text.
    pub fn execute_in(&mut self, name: &str, formats: &[i16], parameters: &[Option<Vec<u8>>]) -> Result<Reply> {
        let mut packet = bind("", name, formats, parameters, &[0]);
        packet.extend(execute("", 0));
        self.finish(packet, None)
    }

    pub fn close_statement(&mut self, name: &str) -> Result<Reply> {
        let mut packet = close(b'S', name);
        packet.extend(sync());
        self.send(&packet)?;
        self.collect(None, true)
    }

    /// Sends an extended request. A server in COPY FROM STDIN ignores Sync, so there it is sent behind the data.
    fn finish(&mut self, mut packet: Vec<u8>, copy_in: Option<&[u8]>) -> Result<Reply> {
        if copy_in.is_none() {
            packet.extend(sync());
            self.send(&packet)?;
            return self.collect(None, true);
        }
        packet.extend(message(b'H', &[]));
        self.send(&packet)?;
        self.collect(copy_in, false)
    }

    /// Reads up to ReadyForQuery. `synced`: it will come by itself; otherwise Sync is sent when the statement ended.
    fn collect(&mut self, copy_in: Option<&[u8]>, synced: bool) -> Result<Reply> {
        let mut reply = Reply::default();
        let mut answer = Answer::default();
        let mut synced = synced;
        loop {
            let message = self.receive()?;
            let mut ended = false;
            match message.kind {
                b'T' => answer.columns = Some(row_description(&message.body)?),
                b'D' => answer.rows.push(data_row(&message.body)?),
                b't' => {
                    let mut reader = Reader(&message.body);
                    let n = reader.u16()?;
                    reply.parameter_types = Some((0..n).map(|_| reader.u32()).collect::<Result<_>>()?);
                }
                b'C' => {
                    answer.tag = Some(Reader(&message.body).string()?);
                    ended = true;
                }
                b'I' => {
                    answer.tag = Some("EmptyQueryResponse".into());
                    ended = true;
                }
                b's' => {
                    answer.tag = Some("PortalSuspended".into());
                    ended = true;
                }
                b'E' => {
                    answer.error = Some(Fields::parse(&message.body));
                    ended = true;
                }
                b'N' => reply.notices.push(Fields::parse(&message.body)),
                b'G' => {
                    let mut packet = Vec::new();
                    match copy_in {
                        // In pieces that end anywhere, as a real client's buffer does.
                        Some(data) => {
                            for piece in data.chunks(1000) {
                                packet.extend(self::message(b'd', piece));
                            }
                            packet.extend(self::message(b'c', &[]));
                        }
                        None => {
                            let mut reason = Vec::new();
                            put_string(&mut reason, "the script has no data for this COPY");
                            packet.extend(self::message(b'f', &reason));
                        }
                    }
                    if !synced {
                        // The server keeps CommandComplete back until it is asked.
                        packet.extend(sync());
                        synced = true;
                    }
                    self.send(&packet)?;
                }
                b'd' => answer.copied.push(message.body),
                b'Z' => {
                    reply.status = message.body.first().copied().unwrap_or(b'?');
                    if answer != Answer::default() {
                        reply.answers.push(answer);
                    }
                    return Ok(reply);
                }
                b'A' => self.notified += 1,
                // ParseComplete, BindComplete, CloseComplete, NoData, CopyOut, CopyDone, ParameterStatus.
                b'1' | b'2' | b'3' | b'n' | b'H' | b'W' | b'c' | b'S' => {}
                other => return Err(format!("message {:?} out of place", other as char).into()),
            }
            if ended {
                reply.answers.push(std::mem::take(&mut answer));
                if !synced {
                    self.send(&sync())?;
                    synced = true;
                }
            }
        }
    }

    /// The server says something before this time is over.
    pub fn hears_within(&mut self, time: Duration) -> Result<bool> {
        if self.start < self.received.len() {
            return Ok(true);
        }
        self.stream.set_read_timeout(Some(time))?;
        let heard = self.stream.peek(&mut [0u8; 1]);
        self.stream.set_read_timeout(Some(SILENCE_MAX))?;
        match heard {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the server, on a connection of its own, to cancel what this one is doing.
    pub fn cancel(&self) -> Result<()> {
        let mut stream = TcpStream::connect((self.target.host.as_str(), self.target.port))?;
        let mut packet = (12 + self.secret.len() as u32).to_be_bytes().to_vec();
        packet.extend(80_877_102u32.to_be_bytes());
        packet.extend(self.process_id.to_be_bytes());
        packet.extend(&self.secret);
        stream.write_all(&packet)?;
        // The server closes the connection when it has passed the request on.
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let _ = stream.read(&mut [0u8; 1]);
        Ok(())
    }
}

impl Client {
    /// Sends nothing more: the server sees the end of what it gets, and can still answer.
    pub fn half_close(&self) -> Result<()> {
        Ok(self.stream.shutdown(std::net::Shutdown::Write)?)
    }

    /// Closes the connection without a goodbye.
    pub fn vanish(self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.stream.write_all(&message(b'X', &[]));
    }
}

/// A message of the client with its length.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![kind];
    packet.extend((body.len() as u32 + 4).to_be_bytes());
    packet.extend(body);
    packet
}

fn put_string(buffer: &mut Vec<u8>, text: &str) {
    buffer.extend(text.as_bytes());
    buffer.push(0);
}

/// A startup message. `protocol` is 196608 for 3.0.
pub fn startup(protocol: u32, parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = protocol.to_be_bytes().to_vec();
    for (name, value) in parameters {
        put_string(&mut body, name);
        put_string(&mut body, value);
    }
    body.push(0);
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend(body);
    packet
}

pub fn query(sql: &str) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, sql);
    message(b'Q', &body)
}

pub fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, name);
    put_string(&mut body, sql);
    body.extend((types.len() as u16).to_be_bytes());
    for oid in types {
        body.extend(oid.to_be_bytes());
    }
    message(b'P', &body)
}

/// `formats` and `result_formats` as the protocol has them: none, one for all, or one each.
pub fn bind(
    portal: &str,
    statement: &str,
    formats: &[i16],
    parameters: &[Option<Vec<u8>>],
    result_formats: &[i16],
) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, portal);
    put_string(&mut body, statement);
    put_i16s(&mut body, formats);
    body.extend((parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        match parameter {
            None => body.extend((-1i32).to_be_bytes()),
            Some(bytes) => {
                body.extend((bytes.len() as i32).to_be_bytes());
                body.extend(bytes);
            }
        }
    }
    put_i16s(&mut body, result_formats);
    message(b'B', &body)
}

fn put_i16s(buffer: &mut Vec<u8>, values: &[i16]) {
    buffer.extend((values.len() as u16).to_be_bytes());
    for value in values {
        buffer.extend(value.to_be_bytes());
    }
}

/// `kind` is `S` for a statement, `P` for a portal.
pub fn describe(kind: u8, name: &str) -> Vec<u8> {
    named(b'D', kind, name)
}

pub fn close(kind: u8, name: &str) -> Vec<u8> {
    named(b'C', kind, name)
}

fn named(message_kind: u8, kind: u8, name: &str) -> Vec<u8> {
    let mut body = vec![kind];
    put_string(&mut body, name);
    message(message_kind, &body)
}

pub fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    let mut body = Vec::new();
    put_string(&mut body, portal);
    body.extend(rows_max.to_be_bytes());
    message(b'E', &body)
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Walks over a message's body.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        if self.0.len() < n {
            return Err("a message ended early".into());
        }
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        Ok(head)
    }

    fn u16(&mut self) -> Result<u16> {
        let b = self.take(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Result<u32> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }

    fn string(&mut self) -> Result<String> {
        let end = self.0.iter().position(|&b| b == 0).ok_or("a string of a message has no end")?;
        let text = String::from_utf8_lossy(self.take(end)?).into_owned();
        self.take(1)?;
        Ok(text)
    }
}

fn row_description(body: &[u8]) -> Result<Vec<Column>> {
    let mut reader = Reader(body);
    let n = reader.u16()?;
    (0..n)
        .map(|_| {
            Ok(Column {
                name: reader.string()?,
                table_oid: reader.u32()?,
                attnum: reader.u16()? as i16,
                type_oid: reader.u32()?,
                typlen: reader.u16()? as i16,
                typmod: reader.u32()? as i32,
                format: reader.u16()? as i16,
            })
        })
        .collect()
}

fn data_row(body: &[u8]) -> Result<Row> {
    let mut reader = Reader(body);
    let n = reader.u16()?;
    (0..n)
        .map(|_| {
            let length = reader.u32()? as i32;
            if length < 0 { Ok(None) } else { Ok(Some(reader.take(length as usize)?.to_vec())) }
        })
        .collect()
}

/// An error or notice on one line, for reports.
pub fn show_fields(fields: &Fields) -> String {
    let mut text = format!("{}: {} {}", fields.get('S'), fields.sqlstate(), fields.message());
    for (code, name) in [('D', "detail"), ('H', "hint"), ('P', "position"), ('q', "internal query"), ('W', "context")] {
        if !fields.get(code).is_empty() {
            let _ = write!(text, " | {name}: {}", fields.get(code).replace('\n', " / "));
        }
    }
    text
}

/// A message of the server as a line of text without what may differ between two servers (object ids, process
/// numbers, the place in the source), so that two conversations can be compared.
pub fn show_message(message: &Message) -> String {
    let shown = || -> Result<String> {
        Ok(match message.kind {
            b'1' => "ParseComplete".into(),
            b'2' => "BindComplete".into(),
            b'3' => "CloseComplete".into(),
            b'n' => "NoData".into(),
            b'I' => "EmptyQueryResponse".into(),
            b's' => "PortalSuspended".into(),
            b'c' => "CopyDone".into(),
            b'Z' => format!("ReadyForQuery {}", message.body.first().copied().unwrap_or(b'?') as char),
            b'C' => format!("CommandComplete {}", Reader(&message.body).string()?),
            b'E' | b'N' => {
                let mut fields = Fields::parse(&message.body);
                fields.0.retain(|code, _| !matches!(code, 'F' | 'L' | 'R' | 'W'));
                format!("{} {:?}", if message.kind == b'E' { "ErrorResponse" } else { "NoticeResponse" }, fields.0)
            }
            b'T' => {
                let columns = row_description(&message.body)?;
                let shown: Vec<String> = columns
                    .iter()
                    .map(|c| format!("{} type {} typmod {} format {}", c.name, c.type_oid, c.typmod, c.format))
                    .collect();
                format!("RowDescription {}", shown.join(", "))
            }
            b'D' => {
                let row = data_row(&message.body)?;
                format!("DataRow {}", show_row(&row))
            }
            b't' => format!("ParameterDescription {:?}", message.body),
            b'S' => {
                let mut reader = Reader(&message.body);
                format!("ParameterStatus {}={}", reader.string()?, reader.string()?)
            }
            b'd' => format!("CopyData {}", String::from_utf8_lossy(&message.body).escape_debug()),
            b'G' | b'H' | b'W' => format!("CopyResponse {} {:?}", message.kind as char, message.body),
            other => format!("message {:?} {:?}", other as char, message.body),
        })
    };
    shown().unwrap_or_else(|error| format!("message {:?}: {error}", message.kind as char))
}

/// A row as text; a value that is not text is shown in hexadecimal.
pub fn show_row(row: &Row) -> String {
    let values: Vec<String> = row
        .iter()
        .map(|value| match value {
            None => "NULL".to_owned(),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') => text.escape_debug().to_string(),
                _ => bytes.iter().fold("\\x".to_owned(), |mut s, b| {
                    let _ = write!(s, "{b:02x}");
                    s
                }),
            },
        })
        .collect();
    format!("({})", values.join(", "))
}
