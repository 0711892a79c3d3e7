//! The short way: a statement of one shard, or of the coordinator alone, that is a transaction of its own rides on a
//! lane. Its messages are read where they lie in the client's buffer, its key is hashed, and they leave under the
//! statement's name there; the lane's task sends the reply to the client. Nothing is parsed, planned or looked up but
//! what [`Compiled`] keeps.
//!
//! Anything unusual (an error, a timeout, a reply too large, a server that went) brings the messages back, and they go
//! the long way as if nothing had happened: a ride that failed was rolled back by its server.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use pgherd_backend::lane::{Again, LaneStatement, statement_name};
use pgherd_catalog::hash::{Hashed, KeyType, remainder};
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Oid, Snapshot, Table};
use pgherd_planner::{Given, KeyValue, Plan, Route, Tier};
use pgherd_sql::{Literal, Splice, StatementKind};
use pgherd_wire::backend;

use super::context::{Names, TEXT_MAX, Text, bytes_of};
use super::{Named, Prepared, Session, lists};
use crate::describe::Described;
use crate::error::Failure;
use crate::run::shard_key::element_type;
use crate::sequences::{Lease, Taken};
use crate::settings::quote_ident;
use crate::transaction::{Block, LogItem};

/// A request larger than this is not put on a lane.
const REQUEST_MAX: usize = 16 * 1024;
/// A statement that ran into a lane's timeouts this often is not short.
const SLOW_AFTER: u32 = 3;
/// A statement that others held up this often goes to a lease.
const HELD_UP_MAX: u8 = 2;
/// Bytes of a statement's texts, one for each shard, that are kept; what is beyond is made for each ride.
pub(super) const SHARD_BYTES_MAX: usize = 256 * 1024;

/// How a statement rides, worked out once per catalog.
pub struct Compiled {
    version: u64,
    names: Rc<Names>,
    pub(super) plan: Rc<Plan>,
    id: u64,
    pub(super) key: CompiledKey,
    /// It locks rows.
    locks: bool,
    /// See [`Prepared::reads_settings`].
    pub(super) reads_settings: bool,
    pub(super) param_types: Vec<Oid>,
    pub(super) described: Rc<Described>,
    pub(super) writes: bool,
    /// A write that may be one transaction with those of other clients.
    pub(super) shares: bool,
    shards: RefCell<Vec<Option<Shard>>>,
    /// Bytes of the texts in `shards`.
    bytes: Cell<usize>,
    /// RowDescription or NoData with all columns as text, and as binary.
    text_columns: Vec<u8>,
    binary_columns: OnceCell<Vec<u8>>,
    ridden: Rc<Ridden>,
    /// Values of the router behind the client's.
    given: Vec<RideGiven>,
    /// Of a statement over a list of keys.
    pub(super) texts: lists::Texts,
    pub(super) narrowed: Option<lists::Narrowed>,
    /// What the rows of several servers are put together by.
    pub(super) gathers: lists::Gathers,
    /// What keeps shards from moving while such a statement goes by the tables' own names.
    pub(super) fence: Option<String>,
    /// Of the tag of a write.
    verb: Option<&'static str>,
}

enum RideGiven {
    OfSession(Given),
    /// The next value of a sequence, whose name is a literal here.
    Drawn(Arc<str>, Arc<Lease>),
}

/// The values of one ride, and what they came from.
#[derive(Default)]
pub(super) struct Drawn(Vec<(Arc<str>, Arc<Lease>, Taken)>);

impl Drawn {
    /// They were not used.
    fn give_back(self, version: u64) {
        for (_, lease, taken) in self.0.into_iter().rev() {
            lease.give_back(taken, version);
        }
    }
}

/// What rides of a statement have shown.
#[derive(Debug, Default)]
pub(super) struct Ridden {
    timeouts: Cell<u32>,
    /// It goes the long way from now on.
    never: Cell<bool>,
}

pub(super) enum CompiledKey {
    /// Index of the parameter, and how its value is read.
    Param {
        index: usize,
        key_type: KeyType,
    },
    Fixed(usize),
    /// Each element of an array.
    Each {
        index: usize,
        key_type: KeyType,
    },
    /// The statement names several.
    List(Vec<CompiledKey>),
    /// All shards: these servers.
    All(Vec<GroupId>),
}

/// The statement as one shard runs it.
#[derive(Clone)]
pub(super) struct Shard {
    pub group: GroupId,
    pub remainder: usize,
    pub statement: Rc<LaneStatement>,
}

/// One execution of a compiled statement, as its messages lie in the client's buffer.
pub(super) struct BoundGroup {
    /// Behind the Sync.
    pub end: usize,
    /// What Bind says behind the statement's name.
    pub values: Range<usize>,
    /// The same with what the router gives.
    pub whole: Option<Vec<u8>>,
    pub drawn: Drawn,
    describes: bool,
    pub prepared: Rc<Prepared>,
    pub compiled: Rc<Compiled>,
    pub shard: Shard,
}

impl BoundGroup {
    /// It goes the long way.
    pub fn give_back(self) {
        self.drawn.give_back(self.compiled.version);
    }

    /// What the client is told in front of the rows.
    pub fn write_prefix(&self, values: &[u8], out: &mut BytesMut) {
        backend::write_bind_complete(out);
        if self.describes {
            let formats = Values::read(values).map_or(&[][..], |view| view.result_formats);
            self.compiled.write_columns(formats, out);
        }
    }
}

/// Whose time a statement reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// That of the server on which it runs.
    Servers,
    /// The transaction's, which comes with it.
    Transactions,
}

/// What became of an attempt to ride.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    Away,
    /// The rest of the messages is not here yet.
    Incomplete,
    /// The long way.
    No,
}

impl Session {
    /// Puts the messages at the front of the client's buffer on a lane, if they are all of one statement that may ride.
    pub(super) fn try_ride(&mut self) -> Attempt {
        let in_block = self.txn.block == Block::Explicit;
        let free = (self.txn.block == Block::None && self.txn.participants.is_empty()
            || in_block && self.may_read_aside())
            && !self.no_ride
            && !self.skip_until_sync
            && self.pending.is_none()
            && (self.portals.is_empty() || in_block && self.portals.keys().all(String::is_empty))
            && self.temp.is_empty()
            && !self.pin
            && self.pinned.is_none()
            && self.client.out.is_empty()
            && self.client.coding.is_none()
            && self.pipeline_is_late().is_none();
        if !free {
            return Attempt::No;
        }
        self.client.link.set_in_block(in_block);
        let attempt = match self.client.read.first() {
            Some(b'B') => self.ride_bound(0, None),
            Some(b'P') => self.ride_parsed(),
            Some(b'Q') => self.ride_query(),
            _ => Attempt::No,
        };
        if matches!(attempt, Attempt::Away) {
            self.pipeline_began = None;
        }
        attempt
    }

    /// A READ COMMITTED block keeps nothing of a SELECT that locks nothing: such statements may ride from inside it, to
    /// servers on which it has done nothing.
    fn may_read_aside(&mut self) -> bool {
        let limits = ["idle_in_transaction_session_timeout", "transaction_timeout"];
        self.txn.catalog.is_none()
            && !self.txn.changed_catalog
            && self.txn.own.is_none()
            && !self.txn.log.iter().any(|item| match item {
                LogItem::Snapshots(_) => true,
                item => item.is_setting() && !item.is_long_limit(),
            })
            && !self.keeps_one_snapshot()
            && limits.iter().all(|name| self.in_force(name).is_none_or(|limit| limit == "0"))
            && !self.has_ended()
    }

    /// Whether the statement may ride to this server from where the session is.
    fn may_ride_to(&self, compiled: &Compiled, group: GroupId) -> bool {
        let reads = || !compiled.writes && !compiled.locks && !compiled.plan.uses_now;
        self.txn.block == Block::None || reads() && !self.txn.participants.contains_key(&group)
    }

    /// Parse of the unnamed statement in front of Bind.
    fn ride_parsed(&mut self) -> Attempt {
        if !self.has_context() {
            return Attempt::No;
        }
        let buf: &[u8] = &self.client.read;
        let Some(parse) = message(buf, 0) else { return Attempt::No };
        let (end, Some(body)) = (parse.end, parse.body.strip_prefix(b"\0")) else { return Attempt::No };
        if body.len() > TEXT_MAX {
            return Attempt::No;
        }
        // Text, its end, and the declared types: all of it is the key.
        let Some((_, context)) = &self.context else { return Attempt::No };
        let Some(Text::Known(prepared)) = context.texts.borrow_mut().get(body) else { return Attempt::No };
        let attempt = self.ride_bound(end, Some(&prepared));
        if attempt == Attempt::Away {
            self.statements.insert(String::new(), Named::new(prepared, None));
        }
        attempt
    }

    /// A simple Query of one statement: its literals become parameters.
    fn ride_query(&mut self) -> Attempt {
        if !self.has_context() {
            return Attempt::No;
        }
        let Some(Message { body, end, .. }) = message(&self.client.read, 0) else { return Attempt::No };
        let Some(sql) = query_text(body) else { return Attempt::No };
        let Some((_, context)) = &self.context else { return Attempt::No };
        let thread = self.thread.clone();
        let mut lifter = thread.lifter.borrow_mut();
        if !lifter.scan(sql) {
            return Attempt::No;
        }
        let mut texts = context.texts.borrow_mut();
        let mut mask = None;
        let mut found = texts.get(lifter.key(sql, |_| true).as_bytes());
        if let Some(Text::Partly(chosen)) = found {
            found = texts.get(lifter.key(sql, |index| chosen.get(index) == Some(&true)).as_bytes());
            mask = Some(chosen);
        }
        let prepared = match found {
            Some(Text::Known(prepared)) => prepared,
            _ => return Attempt::No,
        };
        drop(texts);
        let Some(compiled) = prepared.compiled() else { return Attempt::No };
        if !self.is_current(&compiled) {
            return Attempt::No;
        }
        let mut values = thread.values.borrow_mut();
        write_values(sql, &lifter.literals, |index| mask.as_ref().is_none_or(|m| m[index]), &mut values);
        let Some((whole, drawn)) = self.with_given(&compiled, &values) else { return Attempt::No };
        let values = whole.as_ref().unwrap_or(&values);
        let place = Values::read(values).and_then(|view| {
            let shard = compiled.shard_of(&view).filter(|shard| self.may_ride_to(&compiled, shard.group))?;
            Some((self.lanes_of(shard.group, compiled.version)?, shard.statement))
        });
        let Some((lanes, statement)) = place else {
            drawn.give_back(compiled.version);
            return Attempt::No;
        };
        let link = self.client.link.clone();
        if compiled.described.fields.is_some() {
            link.begin().put_slice(&compiled.text_columns);
        } else {
            drop(link.begin());
        }
        if !lanes.ride(link, &statement, values) {
            self.client.link.stay();
            drawn.give_back(compiled.version);
            return Attempt::No;
        }
        self.note_ridden(drawn);
        self.txn.read_aside |= self.txn.block != Block::None;
        self.drop_unnamed();
        self.cancel.begin();
        self.client.depart(end);
        self.riding = Some(compiled.ridden.clone());
        Attempt::Away
    }

    /// A text that a client gave without a name and that went the long way: the next like it may ride.
    pub(super) async fn learn_query(&mut self, sql: &str) {
        if sql.len() > TEXT_MAX || !self.has_context() || self.txn.block != Block::None || !self.temp.is_empty() {
            return;
        }
        let Some((_, context)) = self.context.clone() else { return };
        let (whole, literals) = {
            let mut lifter = self.thread.lifter.borrow_mut();
            if !lifter.scan(sql) {
                return;
            }
            (lifter.key(sql, |_| true).to_owned(), lifter.literals.clone())
        };
        let version = self.db.version();
        let found = context.texts.borrow_mut().get(whole.as_bytes());
        match found {
            None => return context.texts.borrow_mut().put(bytes_of(whole), Text::Once),
            Some(Text::Never(then)) if then == version => return,
            // It goes the long way for a reason that holds until the catalog changes.
            Some(Text::Known(prepared)) if self.is_settled(&prepared, version) => return,
            _ => {}
        }
        let Some(statement) = pgherd_sql::split(sql).ok().filter(|s| s.len() == 1).and_then(|mut s| s.pop()) else {
            return;
        };
        let mask = pgherd_sql::liftable(&statement, statement.offset, &literals);
        let key = {
            let mut lifter = self.thread.lifter.borrow_mut();
            lifter.scan(sql);
            lifter.key(sql, |index| mask[index]).to_owned()
        };
        if key != whole {
            context.texts.borrow_mut().put(bytes_of(whole), Text::Partly(Rc::new(mask.clone())));
        }
        let types = literals.iter().zip(&mask).filter(|(_, lifted)| **lifted).map(|(l, _)| l.kind.type_oid()).collect();
        let text = match self.prepare_to_ride(pgherd_sql::Lifter::text_of(&key), types).await {
            Some(prepared) => Text::Known(prepared),
            None => Text::Never(version),
        };
        context.texts.borrow_mut().put(bytes_of(key), text);
    }

    fn is_settled(&self, prepared: &Prepared, version: u64) -> bool {
        let Some((_, context)) = &self.context else { return true };
        prepared.compiled().is_some_and(|c| c.version == version && c.names == context.names)
    }

    /// Plans a text with lifted literals. None: it may not ride.
    async fn prepare_to_ride(&mut self, sql: &str, types: Vec<Oid>) -> Option<Rc<Prepared>> {
        let statement = pgherd_sql::split(sql).ok().filter(|s| s.len() == 1)?.pop()?;
        if !super::is_planned(&statement.kind) {
            return None;
        }
        let path = self.search_path().await.ok()?;
        // A look at the plan first: it costs no round trip.
        let plan = self.plan_to_ride(&statement, &path, types.len());
        if !matches!(plan.tier, Tier::Route(_) | Tier::Coordinator { rides: true, .. })
            || plan.writes && plan.tables.iter().any(|t| t.reads_by_modifier())
        {
            return None;
        }
        let prepared = self.prepare(sql, types).await.ok()?;
        let (plan, id) = self.plan(&prepared).await.ok()?;
        self.compile(&prepared, &plan, id);
        prepared.compiled().map(|_| prepared)
    }

    /// The same for the unnamed statement of the extended protocol, as Parse had it.
    pub(super) fn learn_parsed(&mut self, sql: &str, declared: &[Oid], prepared: &Rc<Prepared>) {
        if sql.len() > TEXT_MAX || !prepared.statement.as_ref().is_some_and(|s| super::is_planned(&s.kind)) {
            return;
        }
        if !self.has_context() || !self.temp.is_empty() || self.txn.catalog.is_some() || !self.txn.log.is_empty() {
            return;
        }
        let Some((_, context)) = &self.context else { return };
        let mut key = Vec::with_capacity(sql.len() + 3 + declared.len() * 4);
        key.put_slice(sql.as_bytes());
        key.put_u8(0);
        key.put_u16(declared.len() as u16);
        declared.iter().for_each(|oid| key.put_u32(*oid));
        context.texts.borrow_mut().put(key.into_boxed_slice(), Text::Known(prepared.clone()));
    }

    /// Bind, perhaps Describe, Execute, Sync. `at`: where Bind begins; `unnamed`: what Parse in front of it made.
    fn ride_bound(&mut self, at: usize, unnamed: Option<&Rc<Prepared>>) -> Attempt {
        if !self.has_context() {
            return Attempt::No;
        }
        let group = match self.bound_group(at, unnamed, Clock::Servers) {
            Ok(group) => group,
            Err(Attempt::No) => return self.ride_bound_rows(at, unnamed),
            Err(attempt) => return attempt,
        };
        if !self.may_ride_to(&group.compiled, group.shard.group) {
            group.give_back();
            return Attempt::No;
        }
        let own = &self.client.read[group.values.clone()];
        let values = group.whole.as_deref().unwrap_or(own);
        let Some(lanes) = self.lanes_of(group.shard.group, group.compiled.version) else {
            group.drawn.give_back(group.compiled.version);
            return Attempt::No;
        };
        let link = self.client.link.clone();
        let mut prefix = link.begin();
        if at > 0 {
            backend::write_parse_complete(&mut prefix);
        }
        group.write_prefix(own, &mut prefix);
        drop(prefix);
        if !lanes.ride(link, &group.shard.statement, values) {
            self.client.link.stay();
            group.drawn.give_back(group.compiled.version);
            return Attempt::No;
        }
        self.note_ridden(group.drawn);
        if self.txn.block != Block::None {
            // Bind replaces the unnamed one.
            self.remove_portal("");
            self.txn.read_aside = true;
            self.keep_bind(&group.prepared, at..group.end);
        }
        self.cancel.begin();
        self.client.depart(group.end);
        self.riding = Some(group.compiled.ridden.clone());
        Attempt::Away
    }

    /// The same of an INSERT of many rows.
    fn ride_bound_rows(&mut self, at: usize, unnamed: Option<&Rc<Prepared>>) -> Attempt {
        if self.txn.block != Block::None {
            return Attempt::No;
        }
        let execution = match self.execution(at) {
            Ok(execution) => execution,
            Err(attempt) => return attempt,
        };
        let buf: &[u8] = &self.client.read;
        let prepared = match unnamed.filter(|_| execution.name.is_empty()) {
            Some(prepared) => Some(prepared),
            None => buf
                .get(execution.name.clone())
                .and_then(|name| std::str::from_utf8(name).ok())
                .and_then(|name| self.statements.get(name))
                .map(|named| &named.prepared),
        };
        let Some(prepared) = prepared else { return Attempt::No };
        let is_list = |c: &Rc<Compiled>| matches!(c.key, CompiledKey::List(_) | CompiledKey::All(_));
        if let Some(compiled) = prepared.compiled().filter(is_list) {
            let limited = execution.is_limited && compiled.described.fields.is_some();
            let fits = !limited && execution.values.len() <= REQUEST_MAX && self.is_current(&compiled);
            return match fits {
                true => self.ride_list(&compiled, at > 0, execution.describes, execution.values, execution.end),
                false => Attempt::No,
            };
        }
        let Some(rows) = prepared.rows() else { return Attempt::No };
        if rows.version != self.db.version() || rows.ridden.never.get() || !self.means_same(&rows.names) {
            return Attempt::No;
        }
        self.ride_rows(&rows, at > 0, execution.describes, execution.values, execution.end)
    }

    /// Where Bind, perhaps Describe, Execute and Sync of the unnamed portal lie in the client's buffer.
    pub(super) fn execution(&self, at: usize) -> std::result::Result<Execution, Attempt> {
        let buf: &[u8] = &self.client.read;
        let next_message = |at: usize| message(buf, at).ok_or_else(|| incomplete(buf, at));
        let bind = next_message(at)?;
        if bind.tag != b'B' {
            return Err(Attempt::No);
        }
        let mut next = next_message(bind.end)?;
        let describes = next.tag == b'D';
        if describes {
            if next.body != b"P\0" {
                return Err(Attempt::No);
            }
            next = next_message(next.end)?;
        }
        if next.tag != b'E' || next.body.len() != 5 || next.body[0] != 0 {
            return Err(Attempt::No);
        }
        let is_limited = next.body[1..] != [0; 4];
        let sync = next_message(next.end)?;
        let (name, values) = bind_target(bind.body).filter(|_| sync.tag == b'S').ok_or(Attempt::No)?;
        let values = bind.end - values.len()..bind.end;
        let name = values.start - 1 - name.len()..values.start - 1;
        Ok(Execution { name, values, describes, is_limited, end: sync.end })
    }

    /// The messages of one execution at the front of the client's buffer, if they are all there and their statement is
    /// one shard's.
    pub(super) fn bound_group(
        &self,
        at: usize,
        unnamed: Option<&Rc<Prepared>>,
        clock: Clock,
    ) -> std::result::Result<BoundGroup, Attempt> {
        let Execution { name, values, describes, is_limited, end } = self.execution(at)?;
        let buf: &[u8] = &self.client.read;
        let name = std::str::from_utf8(&buf[name]).map_err(|_| Attempt::No)?;
        let range = values.clone();
        let values = &buf[values];
        let prepared = match unnamed.filter(|_| name.is_empty()) {
            Some(prepared) => prepared,
            None => &self.statements.get(name).ok_or(Attempt::No)?.prepared,
        };
        let compiled = match clock {
            Clock::Servers => prepared.compiled(),
            Clock::Transactions => prepared.compiled_timed(),
        };
        let compiled = compiled.ok_or(Attempt::No)?;
        let is_list = matches!(compiled.key, CompiledKey::List(_) | CompiledKey::All(_));
        if is_list || !self.is_current(&compiled) || values.len() > REQUEST_MAX {
            return Err(Attempt::No);
        }
        // JDBC wants one row of a statement that gives none.
        if is_limited && compiled.described.fields.is_some() {
            return Err(Attempt::No);
        }
        let own = compiled.param_types.len() - compiled.given.len();
        let view = Values::read(values).filter(|view| view.count == own).ok_or(Attempt::No)?;
        let columns = compiled.described.fields.as_ref().map_or(0, Vec::len);
        if view.result_formats.len() > 2 && view.result_formats.len() != columns * 2 {
            return Err(Attempt::No);
        }
        if view.may_move {
            return Err(Attempt::No);
        }
        let (whole, drawn) = self.with_given(&compiled, values).ok_or(Attempt::No)?;
        let shard = match &whole {
            None => compiled.shard_of(&view),
            Some(whole) => Values::read(whole).and_then(|view| compiled.shard_of(&view)),
        };
        let Some(shard) = shard else {
            drawn.give_back(compiled.version);
            return Err(Attempt::No);
        };
        Ok(BoundGroup { end, values: range, whole, drawn, describes, prepared: prepared.clone(), compiled, shard })
    }

    /// A Bind's values with those of the router; none of either: there is nothing to add. None at all: a value is not
    /// here.
    fn with_given(&self, compiled: &Compiled, values: &[u8]) -> Option<(Option<Vec<u8>>, Drawn)> {
        let mut drawn = Drawn::default();
        if compiled.given.is_empty() {
            return Some((None, drawn));
        }
        let mut texts = Vec::with_capacity(compiled.given.len());
        for given in &compiled.given {
            texts.push(match given {
                RideGiven::OfSession(what @ (Given::Setting(_) | Given::Time)) => match self.value_given(what) {
                    Some(value) => Some(value),
                    // Another session of these lanes had one, or another transaction.
                    None => {
                        drawn.give_back(compiled.version);
                        return None;
                    }
                },
                RideGiven::OfSession(what) => self.value_given(what),
                RideGiven::Drawn(name, lease) => {
                    let taken = if self.may_draw() { lease.take(compiled.version) } else { None };
                    let Some(taken) = taken else {
                        drawn.give_back(compiled.version);
                        return None;
                    };
                    drawn.0.push((name.clone(), lease.clone(), taken));
                    Some(taken.value.to_string())
                }
            });
        }
        match Values::read(values).and_then(|view| view.extended(&texts)) {
            Some(whole) => Some((Some(whole), drawn)),
            None => {
                drawn.give_back(compiled.version);
                None
            }
        }
    }

    /// Values that have left: they are the session's last ones.
    pub(super) fn note_ridden(&mut self, drawn: Drawn) {
        for (name, _, taken) in drawn.0 {
            self.note_drawn(&name, taken.value);
        }
    }

    /// What was worked out for a statement holds: same catalog, and names mean the same to this session.
    pub(super) fn is_current(&self, compiled: &Compiled) -> bool {
        !compiled.ridden.never.get() && compiled.version == self.db.version() && self.means_same(&compiled.names)
    }

    fn means_same(&self, names: &Rc<Names>) -> bool {
        let Some((_, context)) = &self.context else { return false };
        Rc::ptr_eq(names, &context.names) || *names == context.names
    }

    /// A statement came back from its lane: it goes the long way now, and perhaps always.
    pub(super) fn after_ride(&mut self, again: Again) {
        self.held_up += u8::from(again == Again::HeldUp);
        self.no_ride = again != Again::HeldUp || self.held_up > HELD_UP_MAX || self.cancel.is_cancelled();
        let Some(ridden) = self.riding.take() else { return };
        match again {
            Again::Error(sqlstate) => match &sqlstate {
                b"57014" | b"55P03" => {
                    ridden.timeouts.set(ridden.timeouts.get() + 1);
                    if ridden.timeouts.get() >= SLOW_AFTER {
                        ridden.never.set(true);
                    }
                }
                // The statement there is not what it was: made anew when the catalog is.
                b"0A000" | b"42P01" | b"3F000" | b"42703" => ridden.never.set(true),
                // The index of an ON CONFLICT … WHERE, once a literal there is a parameter.
                b"42P10" => ridden.never.set(true),
                _ => {}
            },
            Again::TooLarge | Again::Changed => ridden.never.set(true),
            Again::NotSent | Again::HeldUp => {}
        }
    }

    /// Nobody knows whether a write on a lane happened.
    pub(super) fn lost_ride() -> Failure {
        Failure::new("08007", "connection to the server was lost while the statement ran")
            .detail("It may or may not have been carried out.")
    }

    /// After a statement of one server went the long way well: from now on it may ride.
    pub fn compile(&self, prepared: &Prepared, plan: &Rc<Plan>, id: u64) {
        // What may not ride stays so under the same plan.
        let names = Names::of(&self.user, &self.db.name, &self.settings);
        let version = self.db.version();
        let known = |c: Rc<Compiled>| c.version == version && *c.names == names && c.id == id;
        if prepared.compiled().is_some_and(known) || prepared.compiled_timed().is_some_and(known) {
            return;
        }
        let catalog = self.db.snapshot();
        if !self.may_compile(prepared, plan, &catalog) {
            return;
        }
        let Some(statement) = &prepared.statement else { return };
        let Some(described) = prepared.last_described() else { return };
        if !is_shown(plan, &statement.kind, &described) || plan.copy.as_ref().is_some_and(|copy| !copy.rides) {
            return;
        }
        let given = plan.given.iter().map(|what| match what {
            Given::Drawn(sql) => {
                let (name, lease) = self.sequence_of(sql);
                RideGiven::Drawn(name, lease)
            }
            other => RideGiven::OfSession(other.clone()),
        });
        let given: Vec<RideGiven> = given.collect();
        let mut param_types = described.param_types.clone();
        param_types.extend(plan.given.iter().map(Given::type_oid));
        let (mut fence, mut gathers) = (None, lists::Gathers::Rows);
        let key = match &plan.tier {
            Tier::Route(route) if is_plain(plan, route) => {
                compiled_key(&route.table, &route.key, &statement.kind, &param_types)
            }
            Tier::Coordinator { rides: true, .. } => Some(CompiledKey::Fixed(0)),
            Tier::Scatter(scatter) if lists::may_ride(plan, scatter, statement, &catalog) => {
                let fields = described.fields.as_deref().unwrap_or_default();
                let Some(how) = lists::Gathers::of(&scatter.combine, fields) else { return };
                gathers = how;
                let of = |key| compiled_key(&scatter.table, key, &statement.kind, &param_types);
                let epoch = catalog.placement_epoch(scatter.table.colocation);
                fence = epoch.map(|epoch| format!("pgherd.fence({}, {epoch})", scatter.table.colocation));
                match &scatter.keys {
                    Some(keys) => keys.values.iter().map(of).collect::<Option<Vec<_>>>().map(CompiledKey::List),
                    None => fence.as_ref().map(|_| CompiledKey::All(catalog.groups_of(&scatter.table))),
                }
            }
            _ => None,
        };
        let Some(key) = key else { return };
        let narrowed = lists::Narrowed::of(plan, &param_types);
        let mut text_columns = BytesMut::new();
        write_columns(&described, |_| 0, &mut text_columns);
        let locks = may_lock(&statement.text);
        prepared.set_compiled(Rc::new(Compiled {
            version,
            names: Rc::new(names),
            plan: plan.clone(),
            id,
            key,
            locks,
            reads_settings: prepared.reads_settings(),
            param_types,
            described,
            writes: plan.writes,
            shares: (plan.writes || locks)
                && plan.tables.iter().all(|t| pgherd_planner::shares_transaction(t, &catalog)),
            shards: RefCell::new(vec![None; shards_of(plan)]),
            bytes: Cell::new(0),
            text_columns: text_columns.to_vec(),
            binary_columns: OnceCell::new(),
            ridden: Rc::default(),
            given,
            texts: lists::Texts::default(),
            narrowed,
            gathers,
            fence,
            verb: match &statement.kind {
                StatementKind::Update => Some("UPDATE"),
                StatementKind::Delete => Some("DELETE"),
                _ => None,
            },
        }));
    }

    /// Whether what is known now will be true of later executions too. `catalog`: the database's, read after its version.
    pub(super) fn may_compile(&self, prepared: &Prepared, plan: &Rc<Plan>, catalog: &Arc<Snapshot>) -> bool {
        self.temp.is_empty()
            && self.txn.catalog.is_none()
            && (self.txn.now.is_none() || !plan.reads_time())
            // SET LOCAL, and its like inside the open block, are nothing that a ride would know of.
            && !self.txn.log.iter().any(LogItem::changes_meaning)
            && !prepared.moves()
            // The catalog may have been replaced since the statement was planned.
            && prepared.is_plan_of(plan, catalog)
    }
}

/// What the planner has proved is enough for a lease; a lane is shared, so nothing may run there that the statement does
/// not show: triggers, policies and functions in checks can do anything.
fn is_plain(plan: &Plan, route: &Route) -> bool {
    // Every server has the same rows of it.
    let is_read = |table: &Arc<Table>| !plan.writes && table.is_reference() && table.shows_reads();
    plan.tables.iter().all(|table| is_read(table) || is_plain_table(table)) && !route.parent_only
}

/// What a server calls its part of a table, or its copy.
pub(crate) fn name_there(table: &Table, at: usize) -> Option<String> {
    match table.is_reference() {
        true => Some(format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name))),
        false => Some(format!("{}.{}", table.shards().get(at)?.schema(), quote_ident(&table.name))),
    }
}

pub(super) fn is_plain_table(table: &Arc<Table>) -> bool {
    !table.is_reference() && table.shows_writes()
}

fn is_shown(plan: &Plan, kind: &StatementKind, described: &Described) -> bool {
    let is_shown = match kind {
        StatementKind::Select => !plan.writes || plan.one_row,
        // A write is never run twice, so its reply must not be one that can grow.
        StatementKind::Insert | StatementKind::Update | StatementKind::Delete => {
            described.fields.is_none() || plan.one_row
        }
        _ => false,
    };
    is_shown && is_built_in(&described.param_types)
}

/// FOR UPDATE, FOR SHARE and their like have this word.
fn may_lock(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("for"))
}

/// How many texts a statement has, one for each shard.
fn shards_of(plan: &Plan) -> usize {
    match &plan.tier {
        Tier::Route(route) => route.table.shards().len(),
        _ => 1,
    }
}

/// Types that have the same numbers on every server.
pub(super) fn is_built_in(types: &[Oid]) -> bool {
    types.iter().all(|oid| (1..FIRST_USER_OID).contains(oid))
}

pub(super) fn compiled_key(
    table: &Table,
    key: &KeyValue,
    kind: &StatementKind,
    param_types: &[Oid],
) -> Option<CompiledKey> {
    let column = table.key_column()?;
    let own_type = *table.key_type()?;
    // A stored value may be changed by the column's modifier before it is hashed.
    if matches!(kind, StatementKind::Insert) && column.typmod >= 0 {
        return None;
    }
    match key {
        KeyValue::Null => Some(CompiledKey::Fixed(0)),
        KeyValue::Literal(text) => match own_type.hash_text(text.as_bytes()) {
            Hashed::Value(hash) => Some(CompiledKey::Fixed(remainder(hash, table.shards().len() as u32) as usize)),
            Hashed::AskServer => None,
        },
        KeyValue::Each(number) => {
            let index = usize::from(*number).checked_sub(1)?;
            let key_type = own_type.for_parameter(element_type(*param_types.get(index)?)?)?;
            Some(CompiledKey::Each { index, key_type })
        }
        KeyValue::Param(number) => {
            let index = usize::from(*number).checked_sub(1)?;
            let key_type = own_type.for_parameter(*param_types.get(index)?)?;
            Some(CompiledKey::Param { index, key_type })
        }
    }
}

fn write_columns(described: &Described, format: impl Fn(usize) -> i16, out: &mut BytesMut) {
    match &described.fields {
        None => backend::write_no_data(out),
        Some(fields) => {
            let mut fields = fields.clone();
            for (index, field) in fields.iter_mut().enumerate() {
                field.format = format(index);
            }
            backend::write_row_description(out, &fields);
        }
    }
}

impl CompiledKey {
    /// The remainder that the values say; none: only a server can tell.
    pub(super) fn remainder(&self, values: &Values<'_>, shards: usize) -> Option<usize> {
        match self {
            CompiledKey::Fixed(at) => Some(*at),
            CompiledKey::List(_) | CompiledKey::All(_) | CompiledKey::Each { .. } => None,
            CompiledKey::Param { index, key_type } => match values.get(*index)? {
                None => Some(0),
                Some((value, binary)) => {
                    let hashed = if binary { key_type.hash_binary(value) } else { key_type.hash_text(value) };
                    let Hashed::Value(hash) = hashed else { return None };
                    Some(remainder(hash, shards as u32) as usize)
                }
            },
        }
    }
}

impl Compiled {
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn verb(&self) -> Option<&'static str> {
        self.verb
    }

    pub(super) fn ridden(&self) -> Rc<Ridden> {
        self.ridden.clone()
    }

    /// The shard that the values say.
    fn shard_of(&self, values: &Values<'_>) -> Option<Shard> {
        if values.may_move {
            return None;
        }
        let at = self.key.remainder(values, shards_of(&self.plan))?;
        let mut shards = self.shards.borrow_mut();
        let slot = shards.get_mut(at)?;
        if slot.is_none() {
            let shard = self.render(at)?;
            let bytes = self.bytes.get() + shard.statement.sql.len();
            if bytes > SHARD_BYTES_MAX {
                return Some(shard);
            }
            self.bytes.set(bytes);
            *slot = Some(shard);
        }
        slot.clone()
    }

    fn render(&self, at: usize) -> Option<Shard> {
        let (group, sql) = match &self.plan.tier {
            Tier::Route(route) => self.text_at(&route.table, &route.sql, at)?,
            Tier::Coordinator { sql, .. } => (COORDINATOR_GROUP, sql.as_written()),
            _ => return None,
        };
        let statement = self.statement(self.id * 65_536 + at as u64, sql);
        Some(Shard { group, remainder: at, statement })
    }

    /// A text for one shard, by the names that its server has for it. None: a table has no shard there.
    pub(super) fn text_at(&self, table: &Table, sql: &Splice, at: usize) -> Option<(GroupId, String)> {
        let group = table.shards().get(at)?.group;
        let tables = &self.plan.tables;
        let is_there = |t: &Arc<Table>| t.is_reference() || t.shards().get(at).is_some_and(|s| s.group == group);
        if !tables.iter().all(is_there) {
            return None;
        }
        Some((group, sql.render(|oid| name_there(tables.iter().find(|t| t.oid == oid)?, at))))
    }

    pub(super) fn statement(&self, id: u64, sql: String) -> Rc<LaneStatement> {
        Rc::new(LaneStatement {
            id,
            name: statement_name(id),
            sql,
            param_types: self.param_types.clone(),
            columns: self.described.fields.as_ref().map(|f| f.iter().map(|f| f.type_oid).collect()),
            // The end of a transaction that has locked rows is written to the log, as that of one that writes.
            writes: self.writes || self.locks && self.plan.one_row,
            shares: self.shares,
        })
    }

    /// The answer to Describe of the portal; the formats are as many as there are columns, or one, or none.
    pub(super) fn write_columns(&self, formats: &[u8], out: &mut BytesMut) {
        let code = |index: usize| formats.get(index * 2 + 1).copied().map_or(0, i16::from);
        match formats.len() / 2 {
            0 => out.put_slice(&self.text_columns),
            1 if code(0) == 0 => out.put_slice(&self.text_columns),
            1 => out.put_slice(self.binary_columns.get_or_init(|| {
                let mut binary = BytesMut::new();
                write_columns(&self.described, |_| 1, &mut binary);
                binary.to_vec()
            })),
            _ => write_columns(&self.described, code, out),
        }
    }
}

/// The text of a Query message, if it is short enough to be looked up.
fn query_text(body: &[u8]) -> Option<&str> {
    let (end, text) = body.split_last()?;
    if *end != 0 || text.len() > TEXT_MAX || text.contains(&0) {
        return None;
    }
    std::str::from_utf8(text).ok()
}

/// What a Bind says behind the statement's name: literals as text, and all columns as text.
fn write_values(sql: &str, literals: &[Literal], chosen: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    out.clear();
    out.put_u16(0);
    let count = (0..literals.len()).filter(|index| chosen(*index)).count();
    out.put_u16(count as u16);
    for (index, literal) in literals.iter().enumerate() {
        if chosen(index) {
            let at = out.len();
            out.put_u32(0);
            pgherd_sql::write_value(sql, *literal, out);
            let length = (out.len() - at - 4) as u32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    out.put_u16(0);
}

/// Ranges of the client's buffer.
pub(super) struct Execution {
    /// The statement's name.
    pub name: Range<usize>,
    /// What Bind says behind it.
    values: Range<usize>,
    describes: bool,
    /// Not all of the rows are wanted at once.
    is_limited: bool,
    /// Behind the Sync.
    pub end: usize,
}

struct Message<'a> {
    tag: u8,
    body: &'a [u8],
    end: usize,
}

/// The whole message that begins at `at`.
fn message(buf: &[u8], at: usize) -> Option<Message<'_>> {
    let header: &[u8; 5] = buf.get(at..)?.first_chunk()?;
    let end = at + 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
    Some(Message { tag: header[0], body: buf.get(at + 5..end)?, end })
}

/// The message at `at` is not here as a whole: worth waiting for only if it may become part of a ride.
fn incomplete(buf: &[u8], at: usize) -> Attempt {
    match buf.get(at) {
        None | Some(b'B' | b'D' | b'E' | b'S') if buf.len() < REQUEST_MAX => Attempt::Incomplete,
        _ => Attempt::No,
    }
}

/// The statement's name and what follows it in a Bind of the unnamed portal.
fn bind_target(body: &[u8]) -> Option<(&str, &[u8])> {
    let body = body.strip_prefix(b"\0")?;
    let end = body.iter().position(|b| *b == 0)?;
    Some((std::str::from_utf8(&body[..end]).ok()?, &body[end + 1..]))
}

/// Formats and values of a Bind where they lie.
pub(super) struct Values<'a> {
    param_formats: &'a [u8],
    pub(super) count: usize,
    params: &'a [u8],
    result_formats: &'a [u8],
    /// A value may stand for the current time: the long way gives all servers the same.
    pub(super) may_move: bool,
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (front, back) = rest.split_at_checked(n)?;
    *rest = back;
    Some(front)
}

fn take_count(rest: &mut &[u8]) -> Option<usize> {
    take(rest, 2).map(|b| usize::from(u16::from_be_bytes([b[0], b[1]])))
}

fn take_value<'a>(rest: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take(rest, 4)?;
    match i32::from_be_bytes([length[0], length[1], length[2], length[3]]) {
        -1 => Some(None),
        n => Some(Some(take(rest, usize::try_from(n).ok()?)?)),
    }
}

impl<'a> Values<'a> {
    /// None: the message is not well formed, or has formats that do not exist.
    pub(super) fn read(mut rest: &'a [u8]) -> Option<Values<'a>> {
        let formats = take_count(&mut rest)?;
        let param_formats = take(&mut rest, formats * 2)?;
        let count = take_count(&mut rest)?;
        let params = rest;
        let mut may_move = false;
        for _ in 0..count {
            may_move |= take_value(&mut rest)?.is_some_and(pgherd_planner::is_moving_word);
        }
        let results = take_count(&mut rest)?;
        let result_formats = take(&mut rest, results * 2)?;
        let valid = |formats: &[u8]| formats.chunks_exact(2).all(|code| matches!(code, [0, 0 | 1]));
        let whole = rest.is_empty() && valid(param_formats) && valid(result_formats);
        (whole && (formats <= 1 || formats == count)).then_some(Values {
            param_formats,
            count,
            params,
            result_formats,
            may_move,
        })
    }

    /// The same with more values behind the others, as text.
    pub(super) fn extended(&self, more: &[Option<impl AsRef<[u8]>>]) -> Option<Vec<u8>> {
        let count = u16::try_from(self.count + more.len()).ok()?;
        let mut out = Vec::with_capacity(16 + self.params.len() + more.len() * 32);
        match self.param_formats.len() / 2 {
            0 => out.put_u16(0),
            formats => {
                out.put_u16(count);
                match formats {
                    1 => (0..self.count).for_each(|_| out.put_slice(self.param_formats)),
                    _ => out.put_slice(self.param_formats),
                }
                more.iter().for_each(|_| out.put_u16(0));
            }
        }
        out.put_u16(count);
        let mut rest = self.params;
        for _ in 0..self.count {
            take_value(&mut rest)?;
        }
        out.put_slice(&self.params[..self.params.len() - rest.len()]);
        for value in more {
            match value {
                Some(value) => {
                    out.put_u32(u32::try_from(value.as_ref().len()).ok()?);
                    out.put_slice(value.as_ref());
                }
                None => out.put_i32(-1),
            }
        }
        // What is said of the results stands behind the parameters.
        out.put_slice(rest);
        Some(out)
    }

    /// Codes of the result columns' formats.
    pub(super) fn result_formats(&self) -> &'a [u8] {
        self.result_formats
    }

    /// A parameter and whether it is binary; `Some(None)` for NULL.
    pub(super) fn get(&self, index: usize) -> Option<Option<(&'a [u8], bool)>> {
        let mut rest = self.params;
        for _ in 0..index {
            take_value(&mut rest)?;
        }
        let binary = match self.param_formats.len() / 2 {
            0 => false,
            1 => self.param_formats[1] == 1,
            _ => self.param_formats.get(index * 2 + 1) == Some(&1),
        };
        Some(take_value(&mut rest)?.map(|value| (value, binary)))
    }
}
