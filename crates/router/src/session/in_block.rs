//! The short way inside a client's block: the same statements that ride on lanes outside one go to the transaction's
//! own connection as the bytes that the client sent, and the reply passes as it comes.

use std::rc::Rc;

use bytes::{BufMut, Bytes, BytesMut};
use pgherd_backend::lane::statement_name;
use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_planner::Tier;
use pgherd_wire::backend;
use pgherd_wire::frame::next_frontend_frame;
use pgherd_wire::frontend::{self, FrontendMessage, parse_frontend};

use super::extended::{Bound, Portal};
use super::ride::{BoundGroup, Clock, name_there};
use super::{Prepared, Session};
use crate::error::{Failure, Result};
use crate::run::Errors;
use crate::transaction::{Block, LogItem, Participant};

/// Bytes of a Bind that is kept, and what follows it.
const RECALLED_MAX: usize = 16 * 1024;

impl Session {
    /// Runs the messages at the front of the client's buffer, if they are one execution of a single-shard statement.
    /// False: they go the long way.
    pub(super) async fn run_in_block(&mut self) -> Result<bool> {
        let fit = self.txn.block == Block::Explicit
            && self.client.coding.is_none()
            && !self.skip_until_sync
            && self.pending.is_none()
            // Bind replaces the unnamed one.
            && self.portals.keys().all(String::is_empty)
            && self.temp.is_empty()
            && self.txn.catalog.is_none()
            // SET LOCAL and its like may change what names mean.
            && !self.txn.log.iter().any(LogItem::changes_meaning)
            && !self.lacks_snapshots()
            && self.pipeline_is_late().is_none()
            && self.has_context();
        if !fit {
            return Ok(false);
        }
        let mut group = match self.group_in_time().await {
            Ok(Some(group)) => group,
            Ok(None) => return Ok(false),
            Err(Failure::Statement(fields)) => {
                if let Ok(execution) = self.execution(0) {
                    drop(self.client.read.split_to(execution.end));
                }
                backend::write_error(&mut self.client.out, &fields);
                self.fail_block().await;
                self.ready().await?;
                return Ok(true);
            }
            Err(other) => return Err(other),
        };
        let lacks_copy = match (&group.compiled.plan.copy, &group.compiled.plan.tier) {
            (Some(copy), Tier::Route(route)) => !self.has_copy(copy, &route.table, group.shard.remainder),
            _ => false,
        };
        if group.compiled.reads_settings || lacks_copy || self.has_ended() {
            group.give_back();
            return Ok(false);
        }
        self.cancel.begin();
        self.remove_portal("");
        self.note_ridden(std::mem::take(&mut group.drawn));
        let messages = self.client.read.split_to(group.end).freeze();
        match self.run_group(&group, messages.slice(group.values.clone())).await {
            Ok(()) => self.keep_messages(&group.prepared, &messages),
            Err(Failure::Statement(fields)) => {
                backend::write_error(&mut self.client.out, &fields);
                self.fail_block().await;
            }
            Err(other) => return Err(other),
        }
        self.ready().await?;
        Ok(true)
    }

    /// The execution at the front of the client's buffer, with the transaction's time where it reads one that is not
    /// its server's.
    async fn group_in_time(&mut self) -> Result<Option<BoundGroup>> {
        if let Ok(group) = self.bound_group(0, None, Clock::Servers) {
            let server = group.shard.group;
            let is_its_own = |session: &mut Session| session.txn.now.is_none() && session.clock_of(server) == server;
            if !group.compiled.plan.reads_time() || is_its_own(self) {
                return Ok(Some(group));
            }
            let is_known = group.prepared.compiled_timed().is_some();
            group.give_back();
            if !is_known {
                return Ok(None);
            }
            if self.txn.now.is_none() {
                self.fix_now().await?;
            }
        } else if self.txn.now.is_none() && self.is_known_in_time() {
            self.fix_now().await?;
        }
        Ok(match self.txn.now {
            Some(_) => self.bound_group(0, None, Clock::Transactions).ok(),
            None => None,
        })
    }

    /// The execution at the front of the client's buffer is of a statement that goes with the transaction's time only.
    fn is_known_in_time(&mut self) -> bool {
        if !self.coordinator_takes_part() && !self.catalog().time_is_read_inside {
            return false;
        }
        let Ok(execution) = self.execution(0) else { return false };
        let Some(name) = self.client.read.get(execution.name).and_then(|name| std::str::from_utf8(name).ok()) else {
            return false;
        };
        let Some(prepared) = self.statements.get(name).map(|named| named.prepared.clone()) else { return false };
        prepared.compiled().is_none()
            && prepared.compiled_timed().is_some_and(|compiled| self.is_current(&compiled))
            && self.clock_of(COORDINATOR_GROUP) == COORDINATOR_GROUP
    }

    /// What is in the client's buffer leaves for a lane.
    pub(super) fn keep_bind(&mut self, prepared: &Rc<Prepared>, place: std::ops::Range<usize>) {
        let messages = self.client.read[place].to_vec();
        self.keep_messages(prepared, &messages);
    }

    fn keep_messages(&mut self, prepared: &Rc<Prepared>, messages: &[u8]) {
        // More is not worth its memory.
        if messages.len() <= RECALLED_MAX {
            // Copied: the client's buffer is to be used again.
            self.bind_in_block.clear();
            self.bind_in_block.extend_from_slice(messages);
            self.ran_in_block = Some(prepared.clone());
        }
    }

    /// The portal that it would have left there, for whoever asks for it.
    pub(super) fn recall_portal(&mut self) {
        let Some(prepared) = self.ran_in_block.take() else { return };
        if self.txn.block != Block::Explicit || self.portals.contains_key("") {
            return;
        }
        let Ok(Some(bind)) = next_frontend_frame(&mut BytesMut::from(self.bind_in_block.as_slice())) else { return };
        if let Ok(FrontendMessage::Bind(bound)) = parse_frontend(&bind) {
            let bound = Bound::new(&bind, bound);
            let mark = self.client.mark();
            self.portals.insert(String::new(), Portal::done(prepared, bound, mark));
        }
    }

    async fn run_group(&mut self, group: &BoundGroup, values: Bytes) -> Result<()> {
        let server = group.shard.group;
        self.join(server).await?;
        if group.compiled.writes {
            self.mark_writer(server);
        }
        let mut participant = self.take(server)?;
        let result = self.exchange(group, &mut participant, &values).await;
        self.put_back(server, participant);
        result
    }

    async fn exchange(&mut self, group: &BoundGroup, participant: &mut Participant, values: &[u8]) -> Result<()> {
        let statement = &group.shard.statement;
        let parses = !participant.lease.prepared.touch(statement.id);
        let mut forgotten = Vec::new();
        while parses && let Some(oldest) = participant.lease.prepared.make_room(statement.sql.len()) {
            forgotten.push(statement_name(oldest));
        }
        let out = participant.lease.buffer();
        if parses {
            forgotten.iter().for_each(|name| frontend::write_close(out, b'S', name));
            frontend::write_close(out, b'S', &statement.name);
            frontend::write_parse(out, &statement.name, &statement.sql, &statement.param_types);
        }
        let whole = group.whole.as_deref().unwrap_or(values);
        out.reserve(whole.len() + statement.name.len() + 32);
        out.put_u8(b'B');
        out.put_u32((4 + 1 + statement.name.len() + 1 + whole.len()) as u32);
        out.put_u8(0);
        out.put_slice(statement.name.as_bytes());
        out.put_u8(0);
        out.put_slice(whole);
        frontend::write_execute(out, "", 0);
        participant.lease.send_sync();
        let mut failure = None;
        loop {
            let frame = self.next_frame(group.shard.group, participant).await?;
            match frame.tag() {
                b'D' => {
                    self.client.forward(&frame);
                    self.client.flush_if_full().await?;
                }
                b'C' | b'N' | b'I' => self.client.forward(&frame),
                b'1' => {
                    participant.lease.prepared.insert(statement.id, statement.sql.len());
                }
                b'2' => group.write_prefix(values, &mut self.client.out),
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'Z' => break,
                _ => {}
            }
        }
        let Some(fields) = failure else { return Ok(()) };
        let route = match &group.compiled.plan.tier {
            Tier::Route(route) => route,
            Tier::Coordinator { sql, .. } => {
                let errors = Errors::of(sql, group.prepared.text());
                return Err(self.translate(fields, errors));
            }
            _ => return Err(fields.into()),
        };
        let tables = &group.compiled.plan.tables;
        let name_of =
            |oid: u32| -> Option<String> { name_there(tables.iter().find(|t| t.oid == oid)?, group.shard.remainder) };
        let copy = group.compiled.plan.copy.as_deref();
        let errors = Errors { splice: Some(&route.sql), text: group.prepared.text(), renamed: Some(&name_of), copy };
        Err(self.translate(fields, errors))
    }
}
