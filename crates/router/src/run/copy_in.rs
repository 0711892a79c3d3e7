//! Rows on their way into servers by COPY, whoever they come from: each server is started with its first row, gets them
//! at its own speed, and is heard while it does.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;
use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Table};
use pgherd_wire::frame::Frame;
use pgherd_wire::{backend, frontend};

use super::copy_lines::Lines;
use super::request::{Errors, next_batch};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_ident;
use crate::transaction::Participant;

/// A client that has sent nothing for so long waits for an answer, maybe: what it has sent goes out.
const SILENCE: Duration = Duration::from_millis(10);

/// A COPY FROM that is under way on the workers of a table.
pub struct CopyIn {
    pub table: Arc<Table>,
    pub(super) columns: Vec<String>,
    pub(super) options: String,
    /// Those for the coordinator, where they are others.
    pub(super) options_here: Option<String>,
    /// Bytes put before the first line on each worker (the binary header, or a header line once it is known).
    pub(super) header: Vec<u8>,
    /// Bytes put after the last (the binary trailer).
    pub(super) trailer: Vec<u8>,
    pub(super) started: BTreeMap<GroupId, Lines>,
    /// Lines of the header, where it is lines.
    pub(super) header_lines: u64,
    /// How many lines the next row covers, and the number of the last in the client's data; where it has numbers.
    pub(super) row_lines: Option<(u64, u64)>,
    /// Of a reference table: the coordinator's copy alone, whose triggers forward the rows.
    pub(super) forwards: bool,
    /// A server has reported an error: the rest is not wanted any more.
    pub(super) failed: bool,
}

impl CopyIn {
    /// Rows in text format under the default options.
    pub(super) fn new(table: &Arc<Table>, columns: &[String]) -> CopyIn {
        CopyIn {
            table: table.clone(),
            columns: columns.to_vec(),
            options: String::new(),
            options_here: None,
            header: Vec::new(),
            trailer: Vec::new(),
            started: BTreeMap::new(),
            header_lines: 0,
            row_lines: None,
            forwards: false,
            failed: false,
        }
    }

    fn in_client_lines(&self, group: GroupId, failure: Failure) -> Failure {
        match self.started.get(&group) {
            Some(lines) => lines.translate(failure, &self.table.name),
            None => failure,
        }
    }

    /// What stands before the options in the COPY for a worker.
    pub(super) fn prefix(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|c| quote_ident(c)).collect();
        format!(
            "COPY {}.{} ({}) FROM STDIN ",
            quote_ident(&self.table.schema),
            quote_ident(&self.table.name),
            columns.join(", ")
        )
    }
}

impl Session {
    /// A COPY of rows in text format, made here; each worker's begins with its first row.
    pub(super) fn start_rows(&self, table: &Arc<Table>, columns: &[String]) -> CopyIn {
        CopyIn::new(table, columns)
    }

    pub(super) async fn start_copy_on(&mut self, copy: &mut CopyIn, group: GroupId) -> Result<()> {
        let catalog = self.catalog();
        self.join(group).await?;
        self.fence_table(group, &copy.table, &catalog);
        self.mark_writer(group);
        let here = copy.options_here.as_ref().filter(|_| group == COORDINATOR_GROUP);
        self.begin_copy(group, &format!("{}{}", copy.prefix(), here.unwrap_or(&copy.options))).await?;
        if !copy.header.is_empty()
            && let Some(participant) = self.txn.participants.get_mut(&group)
        {
            frontend::write_copy_data(participant.lease.buffer(), &copy.header);
        }
        copy.started.entry(group).or_default().header(copy.header_lines);
        Ok(())
    }

    /// Sends a COPY FROM STDIN; returns when the server waits for data.
    pub(super) async fn begin_copy(&mut self, group: GroupId, sql: &str) -> Result<()> {
        let mut participant = self.take(group)?;
        participant.lease.send_query(sql);
        let mut failure = None;
        let started = loop {
            let frame = match self.next_frame(group, &mut participant).await {
                Ok(frame) => frame,
                Err(error) => break Err(error),
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
        self.put_back(group, participant);
        started
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
        if let (Some((lines, number)), Some(started)) = (copy.row_lines, copy.started.get_mut(&group)) {
            started.row(lines, number);
        }
        copy.failed |= self.copy_bytes(group, line).await?;
        Ok(())
    }

    pub(super) async fn copy_everywhere(&mut self, copy: &mut CopyIn, line: &[u8]) -> Result<()> {
        if copy.started.is_empty() {
            self.start_everywhere(copy).await?;
        }
        self.copy_to_started(copy, line).await
    }

    /// Starts the COPY of a reference table on every server that has one, or on the one that forwards its rows.
    pub(super) async fn start_everywhere(&mut self, copy: &mut CopyIn) -> Result<()> {
        let mut groups = vec![COORDINATOR_GROUP];
        if !copy.forwards {
            groups.extend(self.catalog().worker_groups());
            self.join(COORDINATOR_GROUP).await?;
            self.forward_copies(false);
        }
        for group in groups {
            self.start_copy_on(copy, group).await?;
        }
        Ok(())
    }

    async fn copy_to_started(&mut self, copy: &mut CopyIn, line: &[u8]) -> Result<()> {
        for group in copy.started.keys().copied().collect::<Vec<_>>() {
            copy.failed |= self.copy_bytes(group, line).await?;
        }
        Ok(())
    }

    /// The header line, of which each server skips its own.
    pub(super) async fn copy_header(&mut self, copy: &mut CopyIn, header: Vec<u8>, lines: u64) -> Result<()> {
        self.copy_to_started(copy, &header).await?;
        copy.started.values_mut().for_each(|started| started.header(lines));
        (copy.header, copy.header_lines) = (header, lines);
        Ok(())
    }

    /// Data for one server. True: it has failed, and drops whatever else it is sent.
    pub(super) async fn copy_bytes(&mut self, group: GroupId, bytes: &[u8]) -> Result<bool> {
        let Some(participant) = self.txn.participants.get_mut(&group) else { return Ok(false) };
        participant.lease.copy_data(bytes);
        if participant.lease.is_full() { self.push_copy(group).await } else { Ok(false) }
    }

    /// The client's next message of a COPY. While it is silent, servers get what there is for them, and are heard.
    /// None: one of them has failed.
    pub(super) async fn copy_message(&mut self, groups: &[GroupId]) -> Result<Option<Frame>> {
        let mut is_silent = false;
        loop {
            if let Some(frame) = self.client.take_frame()? {
                return Ok(Some(frame));
            }
            if !is_silent {
                match tokio::time::timeout(SILENCE, self.client.fill()).await {
                    Ok(filled) => filled?,
                    Err(_) => is_silent = true,
                }
                continue;
            }
            for group in groups {
                if self.push_copy(*group).await? {
                    return Ok(None);
                }
            }
            self.client.flush().await?;
            let asked = {
                let mut servers: Vec<_> = self
                    .txn
                    .participants
                    .iter_mut()
                    .filter(|(group, _)| groups.contains(group))
                    .map(|(_, participant)| Box::pin(participant.lease.listen()))
                    .collect();
                let said = poll_fn(|cx| match servers.iter_mut().any(|server| server.as_mut().poll(cx).is_ready()) {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                });
                tokio::select! {
                    biased;
                    // What was lost shows again when it is pushed.
                    () = said => None,
                    Some(batch) = next_batch(&mut self.callbacks) => Some(batch),
                    filled = self.client.fill() => {
                        filled?;
                        is_silent = false;
                        None
                    }
                }
            };
            if let Some(batch) = asked {
                let mut participant = self.take(COORDINATOR_GROUP)?;
                self.answer(batch, &mut participant).await;
                self.put_back(COORDINATOR_GROUP, participant);
            }
        }
    }

    async fn push_copy(&mut self, group: GroupId) -> Result<bool> {
        let Ok(mut participant) = self.take(group) else { return Ok(false) };
        let failed = self.push_copy_to(group, &mut participant).await;
        self.put_back(group, participant);
        failed
    }

    /// Sends what has gathered for a COPY, and passes on what the server says meanwhile. True: it has failed.
    pub(super) async fn push_copy_to(&mut self, group: GroupId, participant: &mut Participant) -> Result<bool> {
        while self.pushed_copy(group, participant).await? {
            if participant.lease.next_tag() == Some(b'E') {
                // Whoever ends the COPY reads it.
                participant.lease.flush().await?;
                return Ok(true);
            }
            let frame = self.next_frame(group, participant).await?;
            match frame.tag() {
                b'N' => self.client.forward(&frame),
                _ => self.forward_aside(group, &frame),
            }
            self.client.flush_if_full().await?;
        }
        Ok(false)
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
        let everywhere = groups.contains(&COORDINATOR_GROUP) && !copy.forwards;
        for group in groups {
            let result = self.collect_started(group).await.map_err(|failure| copy.in_client_lines(group, failure));
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
            None => {
                if everywhere {
                    self.forward_copies(true);
                }
                Ok(rows)
            }
        }
    }

    /// Ends the COPY on every worker before its time; how many rows they took.
    pub(super) async fn end_copies(&mut self, copy: &mut CopyIn) -> Result<u64> {
        let mut result = Ok(0);
        for group in copy.started.keys().copied().collect::<Vec<_>>() {
            if let Some(participant) = self.txn.participants.get_mut(&group) {
                frontend::write_copy_done(participant.lease.buffer());
            }
            let ended = self.collect_started(group).await.map_err(|failure| copy.in_client_lines(group, failure));
            result = match (result, ended) {
                (Ok(rows), Ok(ended)) => Ok(rows + backend::command_tag_rows(&ended.tag).unwrap_or(0)),
                (Err(failure), _) | (Ok(_), Err(failure)) => Err(failure),
            };
        }
        copy.started.clear();
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
                    explained.get_or_insert(copy.in_client_lines(group, failure));
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
}
