//! COPY. From the client: lines are split on the fly, only the key is decoded, each line goes to the worker that owns
//! it. To the client: the workers' output one after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::BytesMut;
use pgherd_catalog::{COORDINATOR_GROUP, ColumnDefault, GroupId, Table};
use pgherd_planner::Tier;
use pgherd_sql::{CopyFormat, CopyInfo, CopyTarget, StatementKind};
use pgherd_wire::copy::{self, CopySplitter, Header, KeyField};
use pgherd_wire::{backend, frontend};

use super::request::Errors;
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_ident;

/// A COPY FROM that is under way on the workers of a table.
pub struct CopyIn {
    pub table: Arc<Table>,
    columns: Vec<String>,
    options: String,
    /// Bytes put before the first line on each worker (the binary header).
    header: Vec<u8>,
    /// Bytes put after the last (the binary trailer).
    trailer: Vec<u8>,
    started: BTreeMap<GroupId, u64>,
    tables: Vec<Arc<Table>>,
}

impl Session {
    pub(super) async fn run_copy(&mut self, call: &Call<'_>, info: &CopyInfo) -> Result<Completion> {
        let text = call.prepared.text();
        let Some(name) = &info.relation else { return self.copy_query(call, info).await };
        let catalog = self.catalog();
        let path = self.search_path().await?;
        let hidden = name.schema.is_none() && self.temp.contains(&name.name);
        let table = match catalog.resolve(name.schema.as_deref(), &name.name, &path) {
            pgherd_catalog::Resolved::Table(table) if !hidden => table.clone(),
            _ => return self.copy_on_coordinator(call, text).await,
        };
        if !info.from && table.is_reference() {
            return self.copy_on_coordinator(call, text).await;
        }
        if info.target != CopyTarget::Client {
            return Err(Failure::refused(
                "COPY between a distributed or reference table and a file on the server is not supported",
            )
            .hint("Use COPY FROM STDIN or TO STDOUT, or psql's \\copy."));
        }
        if info.from { self.copy_from(call, info, table).await } else { self.copy_to(call, info, table).await }
    }

    /// COPY of a local table or a query: the coordinator does it, the bytes pass through.
    async fn copy_on_coordinator(&mut self, call: &Call<'_>, sql: &str) -> Result<Completion> {
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.send_query(sql);
        let mut failure = None;
        let mut tag = String::new();
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match frame.tag() {
                b'H' | b'd' | b'c' | b'N' => {
                    self.client.forward(&frame);
                    self.client.flush_if_full().await?;
                }
                b'G' => {
                    self.client.forward(&frame);
                    self.client.flush().await?;
                    self.pass_copy_data(&mut participant.lease).await?;
                }
                b'C' => tag = backend::parse_command_complete(&frame)?.to_owned(),
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'Z' => break,
                _ => self.forward_aside(COORDINATOR_GROUP, &frame),
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        self.taint_coordinator(call);
        match failure {
            Some(fields) => Err(self.translate(fields, Errors::default())),
            None => Ok(Completion::Tag(tag)),
        }
    }

    /// The client's copy data as it is, up to its end.
    async fn pass_copy_data(&mut self, connection: &mut pgherd_backend::Connection) -> Result<()> {
        loop {
            let frame = self.client.frame().await?;
            match frame.tag() {
                b'd' => {
                    connection.buffer().extend_from_slice(&frame.raw);
                    connection.flush_if_full().await?;
                }
                b'c' | b'f' => {
                    connection.buffer().extend_from_slice(&frame.raw);
                    return Ok(());
                }
                b'H' | b'S' => {}
                other => return Err(unexpected(other)),
            }
        }
    }

    /// COPY (query) TO: on one worker where the query is routed, else the coordinator's (which federates).
    async fn copy_query(&mut self, call: &Call<'_>, info: &CopyInfo) -> Result<Completion> {
        let text = call.prepared.text();
        if let Some(span) = info.query
            && let Ok(mut statements) = pgherd_sql::split(span.of(text))
            && let Some(statement) = statements.pop()
        {
            let (catalog, path) = (self.catalog(), self.search_path().await?);
            let plan = self.plan_statement(&statement, &catalog, &path, false);
            let inner = match &plan.tier {
                Tier::Refuse(refusal) => return Err(super::planned::refuse(refusal)),
                Tier::Coordinator { sql, .. } | Tier::Federate { sql } => sql.as_written(),
                _ if plan.writes && !matches!(statement.kind, StatementKind::Update | StatementKind::Delete) => {
                    return Err(Failure::refused(
                        "COPY of a statement that writes distributed tables is not supported",
                    ));
                }
                _ => self.coordinator_text_of(&statement).await?.as_written(),
            };
            let sql = format!("{}{inner}{}", &text[..span.start], &text[span.end..]);
            self.open_implicit_block();
            return self.copy_on_coordinator(call, &sql).await;
        }
        self.open_implicit_block();
        self.copy_on_coordinator(call, text).await
    }

    async fn copy_to(&mut self, call: &Call<'_>, info: &CopyInfo, table: Arc<Table>) -> Result<Completion> {
        let text = call.prepared.text();
        let columns: Vec<String> = if info.columns.is_empty() {
            table
                .columns
                .iter()
                .filter(|c| c.default != ColumnDefault::Generated)
                .map(|c| quote_ident(&c.name))
                .collect()
        } else {
            info.columns.iter().map(|c| quote_ident(c)).collect()
        };
        for column in &info.columns {
            if table.column(column).is_none() {
                return Err(no_column(column, &table));
            }
        }
        let options = info.options_span.map_or("", |s| s.of(text));
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        self.open_implicit_block();
        let catalog = self.catalog();
        let mut rows = 0;
        let binary = info.options.format == CopyFormat::Binary;
        let with_header = info.options.header.as_deref().is_some_and(|h| h != "false");
        for (index, group) in catalog.groups_of(&table).into_iter().enumerate() {
            self.join(group).await?;
            self.fence_table(group, &table, &catalog);
            let sql = format!("COPY (SELECT {} FROM {relation}) TO STDOUT {options}", columns.join(", "));
            let mut participant = self.take(group)?;
            participant.lease.send_query(&sql);
            let mut first_data = true;
            let mut failure = None;
            loop {
                let frame = participant.lease.frame().await?;
                match frame.tag() {
                    b'H' if index == 0 => self.client.forward(&frame),
                    b'd' => {
                        let body = frame.body();
                        let skip = first_data && index > 0 && with_header && !binary;
                        if binary {
                            let body = strip_binary(body, first_data && index > 0);
                            if !body.is_empty() {
                                frontend::write_copy_data(&mut self.client.out, body);
                            }
                        } else if !skip {
                            self.client.forward(&frame);
                        }
                        first_data = false;
                        self.client.flush_if_full().await?;
                    }
                    b'C' => {
                        rows += backend::command_tag_rows(backend::parse_command_complete(&frame)?).unwrap_or(0);
                    }
                    b'E' => {
                        failure.get_or_insert(backend::parse_error(&frame)?);
                    }
                    b'N' => self.client.forward(&frame),
                    b'Z' => break,
                    _ => {}
                }
            }
            self.put_back(group, participant);
            if let Some(fields) = failure {
                return Err(self.translate(fields, Errors::default()));
            }
        }
        if binary {
            frontend::write_copy_data(&mut self.client.out, &copy::BINARY_TRAILER);
        }
        frontend::write_copy_done(&mut self.client.out);
        Ok(Completion::Tag(format!("COPY {rows}")))
    }

    async fn copy_from(&mut self, call: &Call<'_>, info: &CopyInfo, table: Arc<Table>) -> Result<Completion> {
        let text = call.prepared.text();
        let columns: Vec<String> = if info.columns.is_empty() {
            table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).map(|c| c.name.clone()).collect()
        } else {
            info.columns.clone()
        };
        for column in &columns {
            if table.column(column).is_none() {
                return Err(no_column(column, &table));
            }
        }
        self.open_implicit_block();
        let filled = self.sequence_columns(&table, &columns);
        let reference = table.is_reference();
        // What drops rows must be decided once, and in one place.
        let drops_rows = info.filter.is_some()
            || info.options.others.iter().any(|(name, _)| name == "on_error" || name == "reject_limit");
        if !filled.is_empty() || drops_rows {
            return self.copy_by_temporary_table(call, info, table, columns).await;
        }
        let options = without_freeze(info, text);
        let key = table.key_column().and_then(|k| columns.iter().position(|c| *c == k.name));
        let mut splitter =
            CopySplitter::new(self.splitter_options(info, &columns, key)?, key.unwrap_or(0), columns.len());
        let format = u8::from(info.options.format == CopyFormat::Binary);
        let binary = format == 1;
        let mut copy = CopyIn {
            table: table.clone(),
            columns: columns.clone(),
            options,
            header: if binary { copy::BINARY_HEADER.to_vec() } else { Vec::new() },
            trailer: if binary { copy::BINARY_TRAILER.to_vec() } else { Vec::new() },
            started: BTreeMap::new(),
            tables: vec![table.clone()],
        };
        if reference {
            let catalog = self.catalog();
            let mut groups = vec![COORDINATOR_GROUP];
            groups.extend(catalog.worker_groups());
            self.lock_reference_copies(std::slice::from_ref(&table), &groups).await?;
        }
        // The first worker checks the options before the client is asked for data; a header line comes with the data.
        if !reference
            && info.options.header.as_deref().is_none_or(|h| h == "false")
            && let Some(first) = self.catalog().groups_of(&table).first().copied()
        {
            let started = self.start_copy_on(&mut copy, first).await;
            if let Err(failure) = started {
                return Err(in_options(failure, &copy, info, text));
            }
        }
        backend::write_copy_in_response(&mut self.client.out, format, &vec![i16::from(format); columns.len()]);
        self.client.flush().await?;
        let key_is_there = key.is_some();
        let outcome = self.feed_copy(&mut copy, &mut splitter, key_is_there, reference).await;
        match outcome {
            Ok(Feed::Done) => {
                let rows = self.finish_copy_in(copy).await?;
                Ok(Completion::Tag(format!("COPY {rows}")))
            }
            Ok(Feed::Failed(failure)) => Err(self.abort_copy_in(copy).await.unwrap_or(failure)),
            Err(failure) => {
                // The client goes on sending until it hears of the error; PostgreSQL drops that too.
                let explained = self.abort_copy_in(copy).await;
                Err(explained.unwrap_or(failure))
            }
        }
    }

    /// Reads the client's data to its end and hands each row to its worker.
    async fn feed_copy(
        &mut self,
        copy: &mut CopyIn,
        splitter: &mut CopySplitter,
        key_is_there: bool,
        reference: bool,
    ) -> Result<Feed> {
        let table = copy.table.clone();
        loop {
            let frame = self.client.frame().await?;
            let ended = match frame.tag() {
                b'd' => {
                    splitter.push(frame.body());
                    false
                }
                b'c' => true,
                b'f' => {
                    let message = match frontend::parse_frontend(&frame)? {
                        frontend::FrontendMessage::CopyFail { message } => message.to_owned(),
                        _ => String::new(),
                    };
                    return Ok(Feed::Failed(Failure::new("57014", format!("COPY from stdin failed: {message}"))));
                }
                b'H' | b'S' => continue,
                other => return Err(unexpected(other)),
            };
            loop {
                let row = if ended { splitter.finish() } else { splitter.next_row() };
                let row = match row {
                    Ok(Some(row)) => row,
                    Ok(None) => break,
                    Err(error) => {
                        // A server reads values before it misses columns: its own error is the one to tell.
                        if let (false, Some(line)) = (reference, &error.row) {
                            let line = [line, b"\n".as_slice()].concat();
                            self.copy_line(copy, 0, &line).await?;
                            self.end_copies(copy).await?;
                        }
                        return Err(Failure::from(error.to_fields(&table.name)));
                    }
                };
                // Each worker skips a header line of its own.
                if copy.header.is_empty()
                    && let Some(header) = splitter.header()
                {
                    copy.header = header.to_vec();
                }
                if reference {
                    self.copy_everywhere(copy, &row.raw).await?;
                } else {
                    let value = match (key_is_there, &row.key) {
                        (false, _) | (_, KeyField::Null) => None,
                        (_, KeyField::Text(value) | KeyField::Binary(value)) => Some(value.as_slice()),
                        (_, KeyField::Default) => {
                            return Err(Failure::refused(
                                "DEFAULT for the distribution column in COPY is not supported",
                            ));
                        }
                    };
                    let binary = matches!(row.key, KeyField::Binary(_));
                    let remainder = match value {
                        None => 0,
                        Some(value) => {
                            self.remainder_of_stored_bytes(&table, value, binary).await.map_err(|failure| {
                                failure.with(b'W', &format!("COPY {}, line {}", table.name, splitter.line_number()))
                            })?
                        }
                    };
                    self.copy_line(copy, remainder, &row.raw).await?;
                }
            }
            if ended {
                return Ok(Feed::Done);
            }
        }
    }

    fn splitter_options(&self, info: &CopyInfo, columns: &[String], key: Option<usize>) -> Result<copy::CopyOptions> {
        let from = &info.options;
        let format = match from.format {
            CopyFormat::Text => copy::CopyFormat::Text,
            CopyFormat::Csv => copy::CopyFormat::Csv,
            CopyFormat::Binary => copy::CopyFormat::Binary,
        };
        if let Some(encoding) = &from.encoding
            && !crate::settings::is_utf8(encoding)
        {
            return Err(Failure::refused(format!(
                "COPY encoding \"{encoding}\" is not supported by the router, use UTF8"
            )));
        }
        let mut options = copy::CopyOptions::new(format, self.server_major());
        let byte = |text: &Option<String>, default: u8| text.as_ref().and_then(|t| t.bytes().next()).unwrap_or(default);
        options.delimiter = byte(&from.delimiter, options.delimiter);
        options.quote = byte(&from.quote, options.quote);
        options.escape = byte(&from.escape, if from.quote.is_some() { options.quote } else { options.escape });
        if let Some(null) = &from.null {
            options.null = null.clone();
        }
        options.default = from.default.clone();
        options.column_names = columns.to_vec();
        options.header = match from.header.as_deref() {
            None | Some("false") => Header::None,
            Some("match") => Header::Match,
            Some(_) => Header::Skip,
        };
        if let Some(key) = key {
            let name = columns.get(key);
            let listed = |list: &Option<Vec<String>>| {
                list.as_ref().is_some_and(|l| l.is_empty() || name.is_none_or(|n| l.contains(n)))
            };
            options.force_not_null = listed(&from.force_not_null);
            options.force_null = listed(&from.force_null);
        }
        Ok(options)
    }

    /// Columns that COPY leaves out and the coordinator's sequences fill.
    fn sequence_columns(&self, table: &Table, columns: &[String]) -> Vec<String> {
        table
            .columns
            .iter()
            .filter(|c| matches!(c.default, ColumnDefault::Sequence { .. } | ColumnDefault::Identity { .. }))
            .filter(|c| !columns.contains(&c.name))
            .map(|c| c.name.clone())
            .collect()
    }

    /// COPY that leaves out serial columns, or drops rows: the coordinator loads it into a temporary table, numbers the rows,
    /// and they go on from there.
    async fn copy_by_temporary_table(
        &mut self,
        call: &Call<'_>,
        info: &CopyInfo,
        table: Arc<Table>,
        columns: Vec<String>,
    ) -> Result<Completion> {
        let text = call.prepared.text();
        let list: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let create = format!(
            "CREATE TEMPORARY TABLE pgherd_copy ON COMMIT DROP AS SELECT {} FROM {relation} WITH NO DATA",
            list.join(", ")
        );
        self.run_quiet(COORDINATOR_GROUP, &create).await?;
        let mut options = without_freeze(info, text);
        if let Some(filter) = info.filter {
            options.push_str(&format!(" WHERE {}", filter.of(text)));
        }
        let sql = format!("COPY pg_temp.pgherd_copy ({}) FROM STDIN {options}", list.join(", "));
        let completion = self.copy_on_coordinator(call, &sql).await?;
        let insert = format!("INSERT INTO {relation} ({0}) SELECT {0} FROM pg_temp.pgherd_copy", list.join(", "));
        let mut statements = pgherd_sql::split(&insert)
            .map_err(|e| Failure::new("XX000", format!("could not load the copied rows: {}", e.message)))?;
        let statement = statements.pop().ok_or_else(|| Failure::new("XX000", "nothing to load"))?;
        let prepared = self.analyse(statement, &insert)?;
        Box::pin(self.execute(&Call::simple(&prepared))).await?;
        self.run_quiet(COORDINATOR_GROUP, "DROP TABLE pg_temp.pgherd_copy").await?;
        Ok(completion)
    }

    /// A COPY of rows in text format, made here; each worker's begins with its first row.
    pub(super) fn start_rows(&self, table: &Arc<Table>, columns: &[String]) -> CopyIn {
        CopyIn {
            table: table.clone(),
            columns: columns.to_vec(),
            options: String::new(),
            header: Vec::new(),
            trailer: Vec::new(),
            started: BTreeMap::new(),
            tables: vec![table.clone()],
        }
    }

    pub(super) async fn start_copy_on(&mut self, copy: &mut CopyIn, group: GroupId) -> Result<()> {
        let catalog = self.catalog();
        self.join(group).await?;
        for table in copy.tables.clone() {
            self.fence_table(group, &table, &catalog);
        }
        self.mark_writer(group);
        let sql = format!("{}{}", copy.prefix(), copy.options);
        let mut participant = self.take(group)?;
        participant.lease.send_query(&sql);
        let mut failure = None;
        let started = loop {
            let frame = match participant.lease.frame().await {
                Ok(frame) => frame,
                Err(error) => break Err(error.into()),
            };
            match frame.tag() {
                b'G' if failure.is_none() => break Ok(()),
                b'G' => frontend::write_copy_fail(participant.lease.buffer(), "not wanted any more"),
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'N' => self.client.forward(&frame),
                b'Z' => {
                    break Err(match failure {
                        Some(fields) => self.translate(fields, Errors::default()),
                        None => Failure::new("XX000", "COPY did not start"),
                    });
                }
                _ => {}
            }
        };
        if started.is_ok() && !copy.header.is_empty() {
            frontend::write_copy_data(participant.lease.buffer(), &copy.header);
        }
        self.put_back(group, participant);
        started?;
        copy.started.insert(group, 0);
        Ok(())
    }

    /// One line, or binary tuple, for the worker of a shard.
    pub(super) async fn copy_line(&mut self, copy: &mut CopyIn, remainder: usize, line: &[u8]) -> Result<()> {
        let group =
            copy.table.shards().get(remainder).map(|s| s.group).ok_or_else(|| {
                Failure::new("XX000", format!("table \"{}\" has no shard {remainder}", copy.table.name))
            })?;
        if !copy.started.contains_key(&group) {
            self.start_copy_on(copy, group).await?;
        }
        self.copy_bytes(group, line).await
    }

    async fn copy_everywhere(&mut self, copy: &mut CopyIn, line: &[u8]) -> Result<()> {
        if copy.started.is_empty() {
            let mut groups = vec![COORDINATOR_GROUP];
            groups.extend(self.catalog().worker_groups());
            for group in groups {
                self.start_copy_on(copy, group).await?;
            }
        }
        for group in copy.started.keys().copied().collect::<Vec<_>>() {
            self.copy_bytes(group, line).await?;
        }
        Ok(())
    }

    pub(super) async fn copy_bytes(&mut self, group: GroupId, bytes: &[u8]) -> Result<()> {
        if let Some(participant) = self.txn.participants.get_mut(&group) {
            frontend::write_copy_data(participant.lease.buffer(), bytes);
            participant.lease.flush_if_full().await?;
        }
        Ok(())
    }

    /// Ends the COPY on every worker; the sum of the rows they took.
    pub(super) async fn finish_copy_in(&mut self, copy: CopyIn) -> Result<u64> {
        let groups: Vec<GroupId> = copy.started.keys().copied().collect();
        for group in &groups {
            if let Some(participant) = self.txn.participants.get_mut(group) {
                if !copy.trailer.is_empty() {
                    frontend::write_copy_data(participant.lease.buffer(), &copy.trailer);
                }
                frontend::write_copy_done(participant.lease.buffer());
                participant.lease.flush().await?;
            }
        }
        let mut rows = 0;
        let mut failure = None;
        for group in groups {
            let result = self.collect_started(group).await;
            match result {
                Ok(result) if copy.table.is_reference() && group != COORDINATOR_GROUP => drop(result),
                Ok(result) => rows += backend::command_tag_rows(&result.tag).unwrap_or(0),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(rows),
        }
    }

    /// Ends the COPY on every worker before its time.
    async fn end_copies(&mut self, copy: &mut CopyIn) -> Result<()> {
        let groups: Vec<GroupId> = std::mem::take(&mut copy.started).into_keys().collect();
        let mut result = Ok(());
        for group in groups {
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                frontend::write_copy_done(participant.lease.buffer());
            }
            if let Err(failure) = self.collect_started(group).await
                && result.is_ok()
            {
                result = Err(failure);
            }
        }
        result
    }

    /// Ends a COPY that failed; an error that a worker had found by itself is given back.
    pub(super) async fn abort_copy_in(&mut self, copy: CopyIn) -> Option<Failure> {
        let mut explained = None;
        for group in copy.started.keys().copied().collect::<Vec<_>>() {
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                frontend::write_copy_fail(participant.lease.buffer(), "pgherd: not wanted any more");
            }
            if let Err(failure) = self.collect_started(group).await {
                let ours =
                    matches!(&failure, Failure::Statement(f) if f.message().contains("pgherd: not wanted any more"));
                if !ours {
                    explained.get_or_insert(failure);
                }
            }
        }
        explained
    }

    /// Lines in text format to one participant, in one go.
    pub async fn copy_lines_to(
        &mut self,
        group: GroupId,
        table: &Arc<Table>,
        columns: &[String],
        lines: &BytesMut,
    ) -> Result<u64> {
        let mut copy = self.start_rows(table, columns);
        self.start_copy_on(&mut copy, group).await?;
        for chunk in lines.chunks(64 * 1024) {
            self.copy_bytes(group, chunk).await?;
        }
        self.finish_copy_in(copy).await
    }

    /// The coordinator's major version, as it told this session's first connection.
    pub(super) fn server_major(&self) -> u32 {
        self.server_version.split('.').next().and_then(|v| v.parse().ok()).unwrap_or(15)
    }
}

/// A position in the COPY that a worker was sent, where it is in the options, counts in the client's text.
fn in_options(failure: Failure, copy: &CopyIn, info: &CopyInfo, text: &str) -> Failure {
    let Failure::Statement(mut fields) = failure else { return failure };
    let sent = fields.get(b'P').and_then(|p| p.parse::<usize>().ok());
    let prefix = copy.prefix().chars().count();
    fields.remove(b'P');
    if let (Some(sent), Some(options)) = (sent, info.options_span)
        && sent > prefix
    {
        let before = text.get(..options.start).map_or(0, |t| t.chars().count());
        fields.set(b'P', (before + sent - prefix).to_string());
    }
    Failure::Statement(fields)
}

impl CopyIn {
    /// What stands before the options in the COPY for a worker.
    fn prefix(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|c| quote_ident(c)).collect();
        format!(
            "COPY {}.{} ({}) FROM STDIN ",
            quote_ident(&self.table.schema),
            quote_ident(&self.table.name),
            columns.join(", ")
        )
    }
}

/// How the client's side of a COPY ended.
enum Feed {
    Done,
    Failed(Failure),
}

fn unexpected(tag: u8) -> Failure {
    Failure::fatal("08P01", format!("unexpected message type 0x{tag:02X} during COPY from stdin"))
}

fn no_column(column: &str, table: &Table) -> Failure {
    Failure::new("42703", format!("column \"{column}\" of relation \"{}\" does not exist", table.name))
}

/// The options as written, without FREEZE: partitions made before this transaction cannot be frozen, and it changes no
/// answer.
fn without_freeze(info: &CopyInfo, text: &str) -> String {
    let options = info.options_span.map_or("", |s| s.of(text));
    if !info.options.freeze {
        return options.to_owned();
    }
    let lower = options.to_ascii_lowercase();
    let Some(at) = lower.find("freeze") else { return options.to_owned() };
    let mut end = at + "freeze".len();
    let rest = lower[end..].trim_start();
    for word in ["true", "on", "1", "'true'", "'on'"] {
        if rest.starts_with(word) {
            end += lower[end..].len() - rest.len() + word.len();
            break;
        }
    }
    let (before, after) = (options[..at].trim_end(), options[end..].trim_start());
    match (before.strip_suffix(','), after.strip_prefix(',')) {
        (Some(before), _) => format!("{before} {after}"),
        (None, Some(after)) => format!("{before}{after}"),
        // FREEZE was alone: an empty list of options is not allowed.
        _ if before.ends_with('(') && after.starts_with(')') => String::new(),
        _ => format!("{before} {after}"),
    }
}

/// Binary output of one worker without its header (but the first worker's) and its trailer. Servers send the header
/// with the first tuple, the trailer in a message of its own.
fn strip_binary(body: &[u8], drop_header: bool) -> &[u8] {
    let body = if drop_header { body.get(copy::BINARY_HEADER.len()..).unwrap_or(&[]) } else { body };
    if body == copy::BINARY_TRAILER.as_slice() {
        &[]
    } else {
        body.strip_suffix(copy::BINARY_TRAILER.as_slice())
            .filter(|_| body.len() == copy::BINARY_HEADER.len() + 2)
            .unwrap_or(body)
    }
}
