//! COPY. From the client: lines are split on the fly, only the key is decoded, each line goes to the worker that owns
//! it. To the client: the workers' output one after another.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BytesMut;
use pgherd_catalog::hash::{self, Hashed};
use pgherd_catalog::{COORDINATOR_GROUP, Column, ColumnDefault, GroupId, Table};
use pgherd_planner::{Tier, time_default};
use pgherd_sql::{CopyFormat, CopyInfo, CopyTarget, StatementKind};
use pgherd_wire::copy::{self, CopyErrorKind, CopySplitter, Header, KeyField};
use pgherd_wire::{backend, frontend};

use super::copy_in::CopyIn;
use super::request::Errors;
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

const TIMESTAMPTZ: pgherd_catalog::Oid = 1184;

impl Session {
    pub(super) async fn run_copy(&mut self, call: &Call<'_>, info: &CopyInfo) -> Result<Completion> {
        let text = call.prepared.text();
        let Some(name) = &info.relation else { return self.copy_query(call, info).await };
        let catalog = self.catalog();
        let path = self.search_path().await?;
        let hidden = name.schema.is_none() && self.temp.contains(&name.name);
        let table = match catalog.resolve(name.schema.as_deref(), &name.name, &path) {
            pgherd_catalog::Resolved::Table(table) if !hidden => table.clone(),
            _ => {
                // Triggers may write what workers have.
                if info.from && catalog.passing_on.contains(&name.name) {
                    self.open_implicit_block();
                }
                return self.copy_on_coordinator(call, text).await;
            }
        };
        if !info.from && table.is_reference() {
            return self.copy_on_coordinator(call, text).await;
        }
        if info.from && table.fires_here {
            self.open_implicit_block();
            return self.copy_on_coordinator(call, text).await;
        }
        match info.from {
            true => self.copy_from(call, info, table).await,
            false => self.copy_to(call, info, table).await,
        }
    }

    /// COPY of a local table or a query: the coordinator does it, the bytes pass through.
    async fn copy_on_coordinator(&mut self, call: &Call<'_>, sql: &str) -> Result<Completion> {
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.send_query(sql);
        let (mut failure, mut unconverted) = (None, None);
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
                    self.put_back(COORDINATOR_GROUP, participant);
                    let passed = self.pass_copy_data().await;
                    participant = self.take(COORDINATOR_GROUP)?;
                    unconverted = passed?;
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
        match (unconverted, failure) {
            (Some(unconverted), _) => Err(unconverted),
            (None, Some(fields)) => Err(self.translate(fields, Errors::default())),
            (None, None) => Ok(Completion::Tag(tag)),
        }
    }

    /// The client's copy data up to its end, to what the coordinator does not take, or to bytes that cannot be
    /// converted: the error of those is given.
    async fn pass_copy_data(&mut self) -> Result<Option<Failure>> {
        loop {
            let Some(frame) = self.copy_message(&[COORDINATOR_GROUP]).await? else { return Ok(None) };
            let decoded = self.client.decoded(&frame);
            let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) else { return Ok(None) };
            let frame = match decoded {
                Ok(frame) => frame,
                Err(failure) => {
                    frontend::write_copy_fail(participant.lease.buffer(), failure.sqlstate());
                    return Ok(Some(failure));
                }
            };
            match frame.tag() {
                b'd' => {
                    if self.copy_bytes(COORDINATOR_GROUP, frame.body()).await? {
                        return Ok(None);
                    }
                }
                b'c' | b'f' => {
                    participant.lease.buffer().extend_from_slice(&frame.raw);
                    return Ok(None);
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
                Tier::Coordinator { sql, .. } => sql.as_written(),
                _ if plan.writes && matches!(statement.kind, StatementKind::Merge) => {
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
        check_columns(&info.columns, &table)?;
        let options = options_of(info, text);
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        self.open_implicit_block();
        if info.target != CopyTarget::Client {
            // Files and programs are the coordinator's, and so is the right to them.
            let target = at_server(&info.target);
            let sql = format!("COPY (SELECT {} FROM {relation}) TO {target} {options}", columns.join(", "));
            return self.copy_on_coordinator(call, &sql).await;
        }
        let catalog = self.catalog();
        let mut rows = 0;
        let binary = info.options.format == CopyFormat::Binary;
        let sql = format!("COPY (SELECT {} FROM {relation}) TO STDOUT {options}", columns.join(", "));
        if binary && self.has_numbered(&table, &info.columns).await? {
            return self.copy_on_coordinator(call, &sql).await;
        }
        let with_header = info.options.header.as_deref().is_some_and(|h| h != "false");
        let groups = catalog.groups_of(&table);
        for group in &groups {
            self.join(*group).await?;
            self.fence_table(*group, &table, &catalog);
        }
        // All work at the same time, each as far ahead as its socket holds.
        for group in &groups {
            if let Some(participant) = self.txn.participants.get_mut(group) {
                participant.lease.send_query(&sql);
                participant.lease.flush().await?;
            }
        }
        for (index, group) in groups.iter().copied().enumerate() {
            let mut participant = self.take(group)?;
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
                self.abandon(&groups[index + 1..]).await;
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
        check_columns(&columns, &table)?;
        self.open_implicit_block();
        let reference = table.is_reference();
        // What drops rows must be decided once, and in one place.
        let drops_rows = info.filter.is_some()
            || info.options.others.iter().any(|(name, _)| name == "on_error" || name == "reject_limit");
        let numbered = info.options.format == CopyFormat::Binary && self.has_numbered(&table, &columns).await?;
        let elsewhere = drops_rows || numbered || info.target != CopyTarget::Client;
        if self.leaves_out_filled(&table, &columns) || elsewhere {
            return self.copy_by_temporary_table(call, info, table, columns).await;
        }
        let times = match reference {
            true => Times::Alike(Vec::new()),
            false => self.times_left_out(&table, &columns, info).await?,
        };
        let Times::Alike(times) = times else {
            return self.copy_by_temporary_table(call, info, table, columns).await;
        };
        let format = u8::from(info.options.format == CopyFormat::Binary);
        let binary = format == 1;
        let options = without_freeze(info, text);
        let key = table.key_column().and_then(|k| columns.iter().position(|c| *c == k.name));
        let splitter_options = self.splitter_options(info, &columns, key)?;
        let behind = Behind::new(&times, &splitter_options);
        let mut splitter = CopySplitter::new(splitter_options, key.unwrap_or(0), columns.len());
        let mut copy = CopyIn {
            options,
            header: if binary { copy::BINARY_HEADER.to_vec() } else { Vec::new() },
            trailer: if binary { copy::BINARY_TRAILER.to_vec() } else { Vec::new() },
            // What its copies would compute by themselves.
            forwards: reference
                && (table.has_triggers
                    || table.columns.iter().any(|c| {
                        matches!(c.default, ColumnDefault::Expression { immutable: false, .. })
                            && !columns.contains(&c.name)
                    })),
            // It knows best whether it is frozen.
            options_here: (reference && info.options.freeze).then(|| options_of(info, text).into_owned()),
            ..CopyIn::new(&table, &columns)
        };
        copy.columns.extend(times.into_iter().map(|t| t.column));
        if reference {
            self.lock_all_copies(std::slice::from_ref(&table)).await?;
        }
        // The first worker checks rights and options before the client is asked for data.
        let first = self.catalog().groups_of(&table).first().copied();
        let started = match first {
            _ if reference => self.start_everywhere(&mut copy).await,
            Some(first) => self.start_copy_on(&mut copy, first).await,
            None => Ok(()),
        };
        if let Err(failure) = started {
            return Err(in_options(failure, &copy, info, text));
        }
        backend::write_copy_in_response(&mut self.client.out, format, &vec![i16::from(format); columns.len()]);
        self.client.flush().await?;
        let key_is_there = key.is_some();
        let fed = match self.check_freeze(info, &table).await {
            Ok(()) => self.feed_copy(&mut copy, &mut splitter, key_is_there, &behind).await,
            Err(failure) => Err(failure),
        };
        let outcome = match fed {
            Ok(Feed::Done) => self.finish_copy_in(copy).await.map(|rows| Completion::Tag(format!("COPY {rows}"))),
            Ok(Feed::Failed(failure)) => Err(self.abort_copy_in(copy).await.unwrap_or(failure)),
            Err(failure) => {
                // The client goes on sending until it hears of the error; PostgreSQL drops that too.
                let explained = self.abort_copy_in(copy).await;
                Err(explained.unwrap_or(failure))
            }
        };
        outcome.map_err(|failure| behind.taken_from(failure))
    }

    /// FREEZE is for tables that this transaction has made or emptied, as the coordinator knows of its own.
    async fn check_freeze(&mut self, info: &CopyInfo, table: &Table) -> Result<()> {
        if !info.options.freeze || table.is_reference() {
            return Ok(());
        }
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        self.join(COORDINATOR_GROUP).await?;
        self.begin_copy(COORDINATOR_GROUP, &format!("COPY {relation} FROM STDIN (FREEZE)")).await?;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            frontend::write_copy_done(participant.lease.buffer());
        }
        self.collect_started(COORDINATOR_GROUP).await.map(drop)
    }

    /// Binary values of these columns, or of all, have numbers of types in them.
    async fn has_numbered(&mut self, table: &Table, columns: &[String]) -> Result<bool> {
        let is_copied = |c: &&Column| columns.is_empty() || columns.contains(&c.name);
        let types: Vec<u32> = table.columns.iter().filter(is_copied).map(|c| c.type_oid).collect();
        Ok(self.hold_numbers(&types).await?.contains(&true))
    }

    /// Reads the client's data to its end and hands each row to its worker.
    async fn feed_copy(
        &mut self,
        copy: &mut CopyIn,
        splitter: &mut CopySplitter,
        key_is_there: bool,
        behind: &Behind,
    ) -> Result<Feed> {
        let table = copy.table.clone();
        let reference = table.is_reference();
        let mut last_line = 0;
        loop {
            let servers: Vec<GroupId> = copy.started.keys().copied().collect();
            let Some(frame) = self.copy_message(&servers).await? else {
                // What it was, the server says when the COPY is ended.
                return Err(Failure::new("XX000", "a worker has stopped taking rows"));
            };
            let frame = self.client.decoded(&frame)?;
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
                    let context = format!("COPY {}, line {}", table.name, last_line + 1);
                    let failure = Failure::new("57014", format!("COPY from stdin failed: {message}"));
                    return Ok(Feed::Failed(failure.with(b'W', &context)));
                }
                b'H' | b'S' => continue,
                other => return Err(unexpected(other)),
            };
            if ended {
                splitter.end();
            }
            loop {
                match splitter.advance() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        // A server reads values before it misses columns: its own error is the one to tell.
                        // With more columns than the client's it would miss others.
                        let is_read = behind.count == 0 || matches!(error.kind, CopyErrorKind::MissingColumn { .. });
                        if let (false, true, Some(line)) = (reference, is_read, &error.row) {
                            let line = [line, b"\n".as_slice()].concat();
                            copy.row_lines = Some((error.line.saturating_sub(last_line), error.line));
                            self.copy_line(copy, 0, &line).await?;
                            self.end_copies(copy).await?;
                        }
                        return Err(Failure::from(error.to_fields(&table.name)));
                    }
                }
                if copy.header.is_empty()
                    && let Some(header) = splitter.header()
                {
                    let header = behind.header(header);
                    let lines = header.iter().filter(|byte| **byte == b'\n').count().max(1) as u64;
                    last_line = lines;
                    self.copy_header(copy, header, lines).await?;
                }
                let row = splitter.row();
                copy.row_lines = Some((row.line.saturating_sub(last_line), row.line));
                last_line = row.line;
                if reference {
                    self.copy_everywhere(copy, row.raw).await?;
                    continue;
                }
                let (value, binary) = match &row.key {
                    _ if !key_is_there => (None, false),
                    KeyField::Null => (None, false),
                    KeyField::Text(value) => (Some(value.as_ref()), false),
                    KeyField::Binary(value) => (Some(value.as_ref()), true),
                    KeyField::Default => {
                        return Err(Failure::refused("DEFAULT for the distribution column in COPY is not supported"));
                    }
                };
                let remainder = match value.map(|value| remainder_here(&table, value, binary)) {
                    None => 0,
                    Some(Some(remainder)) => remainder,
                    Some(None) => {
                        let value = value.unwrap_or_default();
                        match self.remainder_of_stored_bytes(&table, value, binary).await {
                            Ok(remainder) => remainder,
                            Err(failure) => {
                                // A server has more to say of it, or finds something before it in the row.
                                self.copy_line(copy, 0, &behind.row(&row)).await?;
                                self.end_copies(copy).await?;
                                let context = format!("COPY {}, line {}", table.name, row.line);
                                return Err(failure.with(b'W', &context));
                            }
                        }
                    }
                };
                self.copy_line(copy, remainder, &behind.row(&row)).await?;
            }
            if copy.failed {
                // What it was, the server says when the COPY is ended.
                return Err(Failure::new("XX000", "a worker has stopped taking rows"));
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

    /// Columns that COPY leaves out and whose default is the transaction's time: one for all rows, wherever they go.
    async fn times_left_out(&mut self, table: &Table, columns: &[String], info: &CopyInfo) -> Result<Times> {
        let is_left_out = |column: &&Column| !columns.contains(&column.name);
        let read: Vec<&Column> =
            table.columns.iter().filter(is_left_out).filter(|c| time_default(c).is_some()).collect();
        // Options that name one of them are an error of the server's.
        let options = [&info.options.force_null, &info.options.force_not_null];
        let is_named = |c: &&Column| options.iter().any(|list| list.as_ref().is_some_and(|l| l.contains(&c.name)));
        if read.is_empty() || read.iter().any(is_named) {
            return Ok(Times::Alike(Vec::new()));
        }
        let catalog = self.catalog();
        if self.txn.clock.is_none() && catalog.time_is_read_inside {
            self.txn.clock = Some(COORDINATOR_GROUP);
        }
        let now = self.transaction_time().await?;
        let is_binary = info.options.format == CopyFormat::Binary;
        let (mut times, mut asked) = (Vec::new(), Vec::new());
        for column in read {
            let sql = time_default(column).unwrap_or_default();
            let Some(fixed) = pgherd_planner::default_at(sql, pgherd_planner::Now::Text(&now), &catalog) else {
                continue;
            };
            if pgherd_planner::differs_by_row(sql, &catalog) {
                return Ok(Times::ByRow);
            }
            let is_now = !is_binary && column.type_oid == TIMESTAMPTZ && matches!(sql, "now()" | "CURRENT_TIMESTAMP");
            if !is_now {
                let value = format!("({fixed})::{}", pgherd_planner::evaluation_type(column, false));
                let value = match is_binary {
                    // Behind the number of fields and the type's.
                    true => {
                        format!("pg_catalog.encode(pg_catalog.substr(pg_catalog.record_send(ROW({value})), 9), 'hex')")
                    }
                    false => self.plainly(&value),
                };
                asked.push((times.len(), value));
            }
            times.push(TimeLeftOut { column: column.name.clone(), value: is_now.then(|| now.clone()) });
        }
        if !asked.is_empty() {
            let list: Vec<&str> = asked.iter().map(|(_, sql)| sql.as_str()).collect();
            self.join(COORDINATOR_GROUP).await?;
            let result = self.collect_on(COORDINATOR_GROUP, &format!("SELECT {}", list.join(", "))).await?;
            for (field, (at, _)) in asked.iter().enumerate() {
                times[*at].value = result.text(0, field).map(str::to_owned);
            }
        }
        // FORCE_NULL and FORCE_NOT_NULL of all columns would change these.
        let is_special = |t: &TimeLeftOut| t.value.as_deref().is_none_or(str::is_empty);
        if options.iter().any(|list| list.is_some()) && times.iter().any(is_special) {
            return Ok(Times::ByRow);
        }
        Ok(Times::Alike(times))
    }

    /// COPY leaves out columns that the coordinator's sequences fill, or a distribution column that has a default.
    fn leaves_out_filled(&self, table: &Table, columns: &[String]) -> bool {
        let key = table.key_column().map(|c| &c.name);
        let is_filled = |c: &Column| match c.default {
            ColumnDefault::Sequence { .. } | ColumnDefault::Identity { .. } => true,
            ColumnDefault::Expression { .. } => Some(&c.name) == key,
            ColumnDefault::None | ColumnDefault::Generated => false,
        };
        table.columns.iter().any(|c| is_filled(c) && !columns.contains(&c.name))
    }

    /// COPY that leaves out columns with values of each row's own, drops rows, or reads a file of the server's: the
    /// coordinator loads it into a temporary table, gives the rows their values, and they go on from there.
    async fn copy_by_temporary_table(
        &mut self,
        call: &Call<'_>,
        info: &CopyInfo,
        table: Arc<Table>,
        columns: Vec<String>,
    ) -> Result<Completion> {
        let text = call.prepared.text();
        if info.options.default.is_some() {
            return Err(Failure::refused("COPY with DEFAULT is not supported through a temporary table")
                .detail("It leaves out columns with sequences, has a condition, or reads a file on the server."));
        }
        let list: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        let relation = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let create = match self.copied_columns(&table, &relation, &columns).await? {
            Some(definition) => format!("CREATE TEMPORARY TABLE pgherd_copy ({definition}) ON COMMIT DROP"),
            None => format!(
                "CREATE TEMPORARY TABLE pgherd_copy ON COMMIT DROP AS SELECT {} FROM {relation} WITH NO DATA",
                list.join(", ")
            ),
        };
        self.run_quiet(COORDINATOR_GROUP, &create).await?;
        let mut options = without_freeze(info, text);
        if let Some(filter) = info.filter {
            options.push_str(&format!(" WHERE {}", filter.of(text)));
        }
        let source = at_server(&info.target);
        let sql = format!("COPY pg_temp.pgherd_copy ({}) FROM {source} {options}", list.join(", "));
        let completion = self.copy_on_coordinator(call, &sql).await.map_err(|failure| of_table(failure, &table))?;
        // COPY gives values to identity columns of any kind.
        let insert = format!(
            "INSERT INTO {relation} ({0}) OVERRIDING SYSTEM VALUE SELECT {0} FROM pg_temp.pgherd_copy",
            list.join(", ")
        );
        let mut statements = pgherd_sql::split(&insert)
            .map_err(|e| Failure::new("XX000", format!("could not load the copied rows: {}", e.message)))?;
        let statement = statements.pop().ok_or_else(|| Failure::new("XX000", "nothing to load"))?;
        let prepared = self.analyse(statement, &insert, false)?;
        Box::pin(self.execute(&Call::simple(&prepared))).await?;
        self.run_quiet(COORDINATOR_GROUP, "DROP TABLE pg_temp.pgherd_copy").await?;
        Ok(completion)
    }

    /// Columns for a table of those copied, for whoever may insert them: LIKE and AS ask for the right to read them.
    /// None: the role has that, and need not have one to name the columns' types.
    async fn copied_columns(&mut self, table: &Table, relation: &str, columns: &[String]) -> Result<Option<String>> {
        let names: Vec<String> = columns.iter().map(|c| quote_literal(c)).collect();
        let sql = format!(
            "SELECT pg_catalog.string_agg(pg_catalog.format('%I %s', a.attname, \
                 pg_catalog.format_type(a.atttypid, a.atttypmod)) \
                 || CASE WHEN a.attcollation <> 0 THEN ' COLLATE ' || a.attcollation::pg_catalog.regcollation \
                    ELSE '' END, ', ' ORDER BY a.attnum), \
                 pg_catalog.bool_and(pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'INSERT')), \
                 pg_catalog.bool_and(pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')) \
             FROM pg_catalog.pg_attribute a \
             WHERE a.attrelid = {}::pg_catalog.regclass AND a.attnum > 0 AND NOT a.attisdropped \
                 AND a.attname::pg_catalog.text IN ({})",
            quote_literal(relation),
            names.join(", ")
        );
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        match (result.text(0, 0), result.text(0, 1)) {
            (Some(_), Some("t")) if result.text(0, 2) == Some("t") => Ok(None),
            (Some(definition), Some("t")) => Ok(Some(definition.to_owned())),
            _ => Err(Failure::new("42501", format!("permission denied for table {}", table.name))),
        }
    }

    /// The coordinator's major version, as it told this session's first connection.
    pub fn server_major(&self) -> u32 {
        self.server_version.split('.').next().and_then(|v| v.parse().ok()).unwrap_or(15)
    }
}

/// A position in the COPY that a worker was sent, where it is in the options, counts in the client's text.
fn in_options(failure: Failure, copy: &CopyIn, info: &CopyInfo, text: &str) -> Failure {
    let Failure::Statement(mut fields) = failure else { return failure };
    let sent = fields.get(b'P').and_then(|p| p.parse::<usize>().ok());
    let prefix = copy.prefix().chars().count();
    fields.remove(b'P');
    if let (Some(sent), Some(options), None) = (sent, info.options_span, &info.options.old)
        && sent > prefix
    {
        let before = text.get(..options.start).map_or(0, |t| t.chars().count());
        fields.set(b'P', (before + sent - prefix).to_string());
    }
    Failure::Statement(fields)
}

/// The shard of a stored value, where no server need be asked.
fn remainder_here(table: &Table, value: &[u8], binary: bool) -> Option<usize> {
    let (key_type, typmod) = (table.key_type()?, table.key_column()?.typmod);
    let hashed =
        if binary { key_type.hash_binary_stored(value, typmod) } else { key_type.hash_text_stored(value, typmod) };
    match hashed {
        Hashed::Value(hash) => Some(hash::remainder(hash, table.shards().len().max(1) as u32) as usize),
        Hashed::AskServer => None,
    }
}

/// What the coordinator reads from, or writes to.
fn at_server(target: &CopyTarget) -> String {
    match target {
        CopyTarget::Client => "STDIN".to_owned(),
        CopyTarget::File(path) => quote_literal(path),
        CopyTarget::Program(command) => format!("PROGRAM {}", quote_literal(command)),
    }
}

/// The line and column of an error are those of the copied data, whatever table they came to first.
fn of_table(failure: Failure, table: &Table) -> Failure {
    let Failure::Statement(mut fields) = failure else { return failure };
    if let Some(rest) = fields.get(b'W').and_then(|context| context.strip_prefix("COPY pgherd_copy,")) {
        let context = format!("COPY {},{rest}", table.name);
        fields.set(b'W', context);
    }
    Failure::Statement(fields)
}

/// What the columns are given that COPY leaves out and whose default is the transaction's time.
enum Times {
    /// The same for all rows.
    Alike(Vec<TimeLeftOut>),
    ByRow,
}

/// A column that COPY leaves out, with what its default gives: as text (none: NULL), or a binary field in hexadecimal.
struct TimeLeftOut {
    column: String,
    value: Option<String>,
}

/// Fields that are not the client's, behind those of each row.
struct Behind {
    count: usize,
    fields: Vec<u8>,
    /// Of a header line.
    names: Vec<u8>,
    options: copy::CopyOptions,
}

impl Behind {
    fn new(times: &[TimeLeftOut], options: &copy::CopyOptions) -> Behind {
        let (mut fields, mut names) = (BytesMut::new(), BytesMut::new());
        for time in times {
            if options.format == copy::CopyFormat::Binary {
                fields.extend(time.value.as_deref().and_then(pgherd_wire::multibyte::from_hex).unwrap_or_default());
            } else {
                copy::append_field(&mut fields, time.value.as_deref().map(str::as_bytes), options);
                copy::append_field(&mut names, Some(time.column.as_bytes()), options);
            }
        }
        let (fields, names) = (fields.to_vec(), names.to_vec());
        Behind { count: times.len(), fields, names, options: options.clone() }
    }

    fn row<'r>(&self, row: &copy::CopyRow<'r>) -> Cow<'r, [u8]> {
        match self.options.format {
            _ if self.count == 0 => Cow::Borrowed(row.raw),
            copy::CopyFormat::Binary => Cow::Owned(copy::append_binary_fields(row.raw, self.count, &self.fields)),
            _ => Cow::Owned(copy::append_fields(row.raw, row.content_len, &self.fields, &self.options)),
        }
    }

    /// The first line of text or CSV, or what binary data begins with.
    fn header(&self, header: &[u8]) -> Vec<u8> {
        let ending = header.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        match self.options.format {
            copy::CopyFormat::Binary => header.to_vec(),
            _ if self.count == 0 => header.to_vec(),
            _ => copy::append_fields(header, header.len() - ending, &self.names, &self.options),
        }
    }

    /// The line in an error as the client sent it.
    fn taken_from(&self, failure: Failure) -> Failure {
        let Failure::Statement(mut fields) = failure else { return failure };
        let behind = format!("{}\"", String::from_utf8_lossy(&self.fields));
        if let Some(context) = fields.get(b'W').filter(|_| self.count > 0)
            && let Some(line) = context.strip_suffix(&behind)
        {
            let context = format!("{line}\"");
            fields.set(b'W', context);
        }
        Failure::Statement(fields)
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

/// Columns that COPY names, each as PostgreSQL comes to it.
fn check_columns(columns: &[String], table: &Table) -> Result<()> {
    for (at, name) in columns.iter().enumerate() {
        let Some(column) = table.column(name) else {
            let message = format!("column \"{name}\" of relation \"{}\" does not exist", table.name);
            return Err(Failure::new("42703", message));
        };
        if column.default == ColumnDefault::Generated {
            return Err(Failure::new("42P10", format!("column \"{name}\" is a generated column"))
                .detail("Generated columns cannot be used in COPY."));
        }
        if columns[..at].contains(name) {
            return Err(Failure::new("42701", format!("column \"{name}\" specified more than once")));
        }
    }
    Ok(())
}

/// The options as written. BINARY in front of the table and DELIMITERS behind the target, as PostgreSQL before 9.0 had
/// them, are written as options.
fn options_of<'a>(info: &CopyInfo, text: &'a str) -> Cow<'a, str> {
    match &info.options.old {
        Some(options) => Cow::Owned(options.clone()),
        None => Cow::Borrowed(info.options_span.map_or("", |s| s.of(text))),
    }
}

/// The options as written, without FREEZE: partitions made before this transaction cannot be frozen, and it changes no
/// answer.
fn without_freeze(info: &CopyInfo, text: &str) -> String {
    let options = options_of(info, text);
    if !info.options.freeze {
        return options.into_owned();
    }
    let lower = options.to_ascii_lowercase();
    let Some(at) = lower.find("freeze") else { return options.into_owned() };
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
