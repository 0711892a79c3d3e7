//! The short way for statements that name a few keys (`key IN ($1, $2)`): each server's part rides on a lane of its
//! own, and the client gets what all of them answered as one reply. Writes to several servers are one transaction,
//! which clients may share (`group.rs`). Counts over all shards go to each server by the table's own name, and are
//! added up here.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use bytes::{Buf, BufMut, BytesMut};
use pgherd_backend::lane::{Again, LaneStatement, Outcome, Rider};
use pgherd_catalog::{GroupId, Oid, Snapshot};
use pgherd_planner::{Combine, KeyValue, Listed, OrderKey, Ordered, Plan, Scatter, Tier};
use pgherd_sql::ast::Tree;
use pgherd_sql::{Splice, Statement, StatementKind};
use pgherd_wire::backend::{self, DataRow, FieldDescription};

use super::ride::{Compiled, CompiledKey, Values, is_plain_table};
use super::{Attempt, Session, next_id};
use crate::client::Link;
use crate::group::{Part, SharedWrite};
use crate::run::shard_key::{element_type, remainders};

/// More keys than this go the long way.
const KEYS_MAX: usize = 32;
/// Of an array any shards may be wanted: more than this on one server are read by the tables' own names, in a text for
/// all of them.
const BY_NAME_MAX: usize = 2;
/// Texts that are kept of a statement, one for each set of shards on a server.
const TEXTS_MAX: usize = 256;
/// Bytes of them.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The texts of a statement for sets of shards that are on one server.
#[derive(Default)]
pub(super) struct Texts {
    known: RefCell<HashMap<Box<[usize]>, Rc<LaneStatement>>>,
    bytes: Cell<usize>,
}

/// Whether a statement over a list of keys may ride.
pub(super) fn may_ride(plan: &Plan, scatter: &Scatter, statement: &Statement, catalog: &Snapshot) -> bool {
    let locks = matches!(&statement.tree, Tree::Query(query) if !query.row_locks.is_empty());
    let shares = || plan.tables.iter().all(|table| pgherd_planner::shares_transaction(table, catalog));
    let fits = match &statement.kind {
        // Parts of one server are put together by UNION ALL, which cannot lock rows.
        StatementKind::Select => !plan.writes && !locks,
        StatementKind::Update | StatementKind::Delete => plan.writes && shares(),
        _ => false,
    };
    let is_merged = matches!(scatter.combine, Combine::Merge(_)) && matches!(statement.kind, StatementKind::Select);
    let is_listed = match &scatter.keys {
        Some(keys) => (is_merged || matches!(scatter.combine, Combine::Concatenate)) && keys.values.len() <= KEYS_MAX,
        None => is_merged,
    };
    fits && is_listed && !plan.parent_only && !plan.uses_now && plan.tables.iter().all(is_plain_table)
}

/// Rows of more than this are ordered elsewhere.
const ORDERED_MAX: u64 = 1000;

/// How the rows of several servers become one answer.
#[derive(Debug, Clone)]
pub(super) enum Gathers {
    /// One after another.
    Rows,
    /// They are numbers to be added up.
    Sums,
    /// By columns that are numbers.
    Ordered(Rc<Ordered>),
}

impl Gathers {
    /// None: PostgreSQL does it.
    pub(super) fn of(combine: &Combine, fields: &[FieldDescription]) -> Option<Gathers> {
        match combine {
            Combine::Concatenate => Some(Gathers::Rows),
            Combine::Merge(merge) if merge.adds_counts() => Some(Gathers::Sums),
            Combine::Merge(merge) => {
                let ordered = merge.orders_rows().filter(|ordered| ordered.limit <= ORDERED_MAX && !merge.collated)?;
                let is_number = |column: usize| fields.get(column).is_some_and(|f| matches!(f.type_oid, 20 | 21 | 23));
                let fits = fields.len() == merge.columns && ordered.keys.iter().all(|key| is_number(key.column));
                fits.then(|| Gathers::Ordered(Rc::new(ordered)))
            }
            Combine::ConcatenateLimit(_) => None,
        }
    }
}

/// What each server is to run, by group.
type Places = BTreeMap<GroupId, Place>;

#[derive(Default)]
struct Place {
    shards: Vec<usize>,
    /// The keys that are in each of them, as the elements of an array's text.
    keys: Vec<Vec<u8>>,
}

impl Place {
    /// The keys of a shard.
    fn keys_in(&mut self, at: usize) -> &mut Vec<u8> {
        let index = match self.shards.binary_search(&at) {
            Ok(index) => index,
            Err(index) => {
                self.shards.insert(index, at);
                self.keys.insert(index, Vec::new());
                index
            }
        };
        &mut self.keys[index]
    }
}

fn array(elements: &[u8]) -> Option<Vec<u8>> {
    Some([b"{", elements, b"}"].concat())
}

/// The statement with an array of keys where it lists them, for each shard its own: PostgreSQL puts a list together
/// with parameters in it once for each row that it looks at, and a shard needs to be searched for its own keys only.
pub(super) struct Narrowed {
    listed: Listed,
    array_oid: Oid,
    /// Elements are quoted.
    is_text: bool,
    /// The values, for those of the keys that are literals.
    literals: Vec<Option<Vec<u8>>>,
}

impl Narrowed {
    pub fn of(plan: &Plan, param_types: &[Oid]) -> Option<Narrowed> {
        let Tier::Scatter(Scatter { keys: Some(keys), sql, .. }) = &plan.tier else { return None };
        let listed = keys.listed.as_ref()?;
        let (array_oid, family) = array_of(listed.type_oid)?;
        let fits = |type_oid: Oid| family.contains(&type_oid) && (!listed.is_cast || type_oid == listed.type_oid);
        let type_of = |number: u16| param_types.get(usize::from(number).checked_sub(1)?).copied();
        let is_read_alike = keys.values.iter().all(|key| match key {
            KeyValue::Param(number) => type_of(*number).is_some_and(fits),
            KeyValue::Each(number) => type_of(*number).and_then(element_type).is_some_and(fits),
            KeyValue::Literal(_) | KeyValue::Null => true,
        });
        if !is_read_alike {
            return None;
        }
        sql.replaced(listed.span, &listed.written, "")?;
        let literals = keys.values.iter().map(|key| match key {
            KeyValue::Literal(text) => Some(text.clone().into_bytes()),
            _ => None,
        });
        Some(Narrowed {
            listed: listed.clone(),
            array_oid,
            is_text: !family.contains(&INT8),
            literals: literals.collect(),
        })
    }

    fn add(&self, value: &[u8], binary: bool, keys: &mut Vec<u8>) -> Option<()> {
        if !keys.is_empty() {
            keys.push(b',');
        }
        match (binary, value.len()) {
            (true, 16) if self.array_oid == UUID_ARRAY => {
                value.iter().for_each(|byte| keys.extend_from_slice(format!("{byte:02x}").as_bytes()));
            }
            _ if self.is_text => {
                keys.push(b'"');
                for byte in value {
                    if matches!(byte, b'"' | b'\\') {
                        keys.push(b'\\');
                    }
                    keys.push(*byte);
                }
                keys.push(b'"');
            }
            (false, _) => keys.extend_from_slice(value.trim_ascii()),
            (true, 2 | 4 | 8) => {
                let sign = if value[0] & 0x80 == 0 { 0 } else { 0xff };
                let mut whole = [sign; 8];
                whole[8 - value.len()..].copy_from_slice(value);
                keys.extend_from_slice(i64::from_be_bytes(whole).to_string().as_bytes());
            }
            _ => return None,
        }
        Some(())
    }
}

const INT8: Oid = 20;
const UUID_ARRAY: Oid = 2951;

/// The type of an array whose elements are compared with a column of this type as those of a list are, and the types
/// that these may have. Integers of any width are compared with one as `bigint`.
fn array_of(type_oid: Oid) -> Option<(Oid, &'static [Oid])> {
    match type_oid {
        INT8 | 21 | 23 => Some((1016, &[INT8, 21, 23])),
        2950 => Some((UUID_ARRAY, &[2950])),
        25 | 1043 => Some((1009, &[25, 1043])),
        _ => None,
    }
}

impl Compiled {
    /// Where the keys are. None: only a server can tell, or a table has no shard there.
    fn places(&self, scatter: &Scatter, keys: &[CompiledKey], values: &Values<'_>) -> Option<Places> {
        if values.may_move {
            return None;
        }
        let shards = scatter.table.shards();
        let mut places = Places::new();
        let mut add = |at: usize, value: Option<(&[u8], bool)>| {
            let keys = places.entry(shards.get(at)?.group).or_default().keys_in(at);
            match (&self.narrowed, value) {
                (Some(narrowed), Some((value, binary))) => narrowed.add(value, binary, keys),
                // NULL equals no key.
                _ => Some(()),
            }
        };
        for (number, key) in keys.iter().enumerate() {
            match key {
                CompiledKey::Each { index, key_type } => {
                    let Some((array, binary)) = values.get(*index)? else { continue };
                    for (at, value) in remainders(array, binary, *key_type, shards.len())? {
                        add(at, Some((value.as_ref(), binary)))?;
                    }
                }
                CompiledKey::Param { index, .. } => add(key.remainder(values, shards.len())?, values.get(*index)?)?,
                _ => {
                    let literal = self.narrowed.as_ref().and_then(|narrowed| narrowed.literals.get(number)?.as_deref());
                    add(key.remainder(values, shards.len())?, literal.map(|value| (value, false)))?;
                }
            }
        }
        // Whoever finds nothing still says so.
        (!places.is_empty()).then_some(places)
    }

    /// What a server gets for some of its shards, behind the client's values.
    fn values_there<'a>(
        &self,
        view: &Values<'_>,
        values: &'a [u8],
        keys: &[Vec<u8>],
        is_by_parent: bool,
    ) -> Option<Cow<'a, [u8]>> {
        if self.narrowed.is_none() {
            return Some(Cow::Borrowed(values));
        }
        let arrays: Vec<_> = match is_by_parent {
            true => {
                let all: Vec<&[u8]> = keys.iter().filter(|keys| !keys.is_empty()).map(Vec::as_slice).collect();
                vec![array(&all.join(&b","[..]))]
            }
            false => keys.iter().map(|keys| array(keys)).collect(),
        };
        view.extended(&arrays).map(Cow::Owned)
    }

    /// So many shards of one server are read by the tables' own names, since of an array any may be wanted: one text is
    /// for all of them.
    fn is_by_parent(&self, shards: usize) -> bool {
        let has_array = || match &self.key {
            CompiledKey::List(keys) => keys.iter().any(|key| matches!(key, CompiledKey::Each { .. })),
            _ => false,
        };
        shards > BY_NAME_MAX && self.may_be_by_parent(shards) && has_array()
    }

    fn may_be_by_parent(&self, shards: usize) -> bool {
        shards > 1 && !self.writes && self.fence.is_some()
    }

    /// The text with the keys of its place among several.
    fn written<'a>(&self, scatter: &'a Scatter, place: usize) -> Option<Cow<'a, Splice>> {
        match &self.narrowed {
            None => Some(Cow::Borrowed(&scatter.sql)),
            Some(narrowed) => {
                let array = format!(" = ANY (${})", self.param_types.len() + place + 1);
                scatter.sql.replaced(narrowed.listed.span, &narrowed.listed.written, &array).map(Cow::Owned)
            }
        }
    }

    /// Of one server: its shards together for rows, one by one for writes; all that it has where none are named. And
    /// whether the text is by the tables' own names.
    fn part(&self, scatter: &Scatter, shards: &[usize]) -> Option<(Rc<LaneStatement>, bool)> {
        let texts = &self.texts;
        let found = |shards: &[usize]| texts.known.borrow().get(shards).map(|known| (known.clone(), shards.is_empty()));
        let is_full = || texts.known.borrow().len() >= TEXTS_MAX || texts.bytes.get() >= TEXT_BYTES_MAX;
        let shards = match self.is_by_parent(shards.len()) {
            true => &[],
            false => match found(shards) {
                Some(known) => return Some(known),
                None if !is_full() => shards,
                None if self.may_be_by_parent(shards.len()) => &[],
                None => return None,
            },
        };
        if let Some(known) = found(shards) {
            return Some(known);
        }
        let text_of =
            |place: usize, at: usize| Some(self.text_at(&scatter.table, self.written(scatter, place)?.as_ref(), at)?.1);
        let sql = match (shards, &self.fence) {
            // What an uncorrelated subquery gives is known before the first row.
            ([], Some(fence)) => format!(
                "SELECT * FROM ({}\n) AS pgherd_s WHERE (SELECT {fence}::pg_catalog.text) IS NOT NULL",
                self.written(scatter, 0)?.as_written()
            ),
            ([at], _) => text_of(0, *at)?,
            _ => {
                let parts = shards.iter().enumerate().map(|(place, at)| Some(format!("({})", text_of(place, *at)?)));
                parts.collect::<Option<Vec<_>>>()?.join(" UNION ALL ")
            }
        };
        texts.bytes.set(texts.bytes.get() + sql.len());
        let mut statement = self.statement(next_id() * 65_536, sql);
        if let (Some(narrowed), Some(statement)) = (&self.narrowed, Rc::get_mut(&mut statement)) {
            statement.param_types.extend(std::iter::repeat_n(narrowed.array_oid, shards.len().max(1)));
        }
        texts.known.borrow_mut().insert(shards.into(), statement.clone());
        Some((statement, shards.is_empty()))
    }
}

impl Session {
    /// The messages of one execution at the front of the client's buffer, of a statement over a list of keys. `parsed`:
    /// Parse stands in front of them.
    pub(super) fn ride_list(
        &mut self,
        compiled: &Rc<Compiled>,
        parsed: bool,
        describes: bool,
        values: std::ops::Range<usize>,
        end: usize,
    ) -> Attempt {
        let Tier::Scatter(scatter) = &compiled.plan.tier else { return Attempt::No };
        if self.in_force("pgherd.fanout").is_some_and(|fanout| fanout == "single") {
            return Attempt::No;
        }
        let values = &self.client.read[values];
        let Some(view) = Values::read(values).filter(|view| view.count == compiled.param_types.len()) else {
            return Attempt::No;
        };
        let columns = compiled.described.fields.as_ref().map_or(0, Vec::len);
        let formats = view.result_formats();
        if formats.len() > 2 && formats.len() != columns * 2 {
            return Attempt::No;
        }
        let places = match &compiled.key {
            CompiledKey::List(keys) => compiled.places(scatter, keys, &view),
            CompiledKey::All(groups) if !view.may_move => Some(groups.iter().map(|g| (*g, Place::default())).collect()),
            _ => None,
        };
        let Some(places) = places else { return Attempt::No };
        let link = self.client.link.clone();
        let begin = |link: &Rc<Link>| {
            let mut prefix = link.begin();
            if parsed {
                backend::write_parse_complete(&mut prefix);
            }
            backend::write_bind_complete(&mut prefix);
            if describes {
                compiled.write_columns(formats, &mut prefix);
            }
        };
        if compiled.writes {
            let Some(write) = self.write_of(compiled, scatter, places, &view, values) else { return Attempt::No };
            let Some((_, context)) = &self.context else { return Attempt::No };
            let context = context.clone();
            begin(&link);
            context.group_writer(&self.thread).push(write);
        } else {
            let mut rides = Vec::with_capacity(places.len());
            for (group, place) in places {
                let lanes = self.lanes_of(group, compiled.version());
                let Some((lanes, (statement, by_parent))) = lanes.zip(compiled.part(scatter, &place.shards)) else {
                    return Attempt::No;
                };
                let Some(values) = compiled.values_there(&view, values, &place.keys, by_parent) else {
                    return Attempt::No;
                };
                rides.push((lanes, statement, values));
            }
            begin(&link);
            let formats = (0..columns).map(|column| match formats.len() / 2 {
                0 => false,
                1 => formats[1] == 1,
                _ => formats[column * 2 + 1] == 1,
            });
            let kept = match &compiled.gathers {
                Gathers::Rows => Kept::Rows,
                Gathers::Sums => Kept::Sums(formats.map(|binary| (binary, 0)).collect()),
                Gathers::Ordered(ordered) => {
                    Kept::Ordered { ordered: ordered.clone(), binary: formats.collect(), rows: Vec::new() }
                }
            };
            let gather = Rc::new(Gather::new(link, rides.len(), kept));
            for (lanes, statement, values) in rides {
                // Where one is not taken, all go the long way once the others are back.
                if !lanes.ride(Rc::new(PartOf(gather.clone())), &statement, &values) {
                    gather.arrive(Outcome::Again(Again::NotSent));
                }
            }
        }
        self.cancel.begin();
        self.client.depart(end);
        self.riding = Some(compiled.ridden());
        Attempt::Away
    }

    fn write_of(
        &self,
        compiled: &Compiled,
        scatter: &Scatter,
        places: Places,
        view: &Values<'_>,
        values: &[u8],
    ) -> Option<SharedWrite> {
        let timeouts = ["lock_timeout", "statement_timeout", "transaction_timeout"];
        if timeouts.iter().any(|name| self.settings.contains_key(*name)) {
            return None;
        }
        let (_, context) = self.context.as_ref()?;
        let targets = self.targets_of(context, compiled.version(), places.keys().copied())?;
        let mut parts = Vec::new();
        for (group, place) in places {
            for (at, keys) in place.shards.iter().zip(&place.keys) {
                let (statement, _) = compiled.part(scatter, std::slice::from_ref(at))?;
                let values = compiled.values_there(view, values, std::slice::from_ref(keys), false)?;
                parts.push(Part { group, statement, values: values.into_owned() });
            }
        }
        Some(SharedWrite {
            rider: self.client.link.clone(),
            parts,
            verb: compiled.verb()?,
            protocol: self.commit_protocol(),
            targets,
            database: self.db.clone(),
            commit_wait: self.commit_wait(),
        })
    }
}

/// The parts of one reply.
struct Gather {
    rider: Rc<Link>,
    left: Cell<usize>,
    rows: Cell<u64>,
    /// The rows of those that have answered.
    body: RefCell<BytesMut>,
    again: Cell<Option<Again>>,
    kept: RefCell<Kept>,
}

/// What is kept of the rows until all of them are here. Which columns are binary.
enum Kept {
    /// Nothing: they are in the body.
    Rows,
    /// How much each column is so far.
    Sums(Vec<(bool, i64)>),
    Ordered {
        ordered: Rc<Ordered>,
        binary: Vec<bool>,
        rows: Vec<(Vec<OrderedValue>, Vec<u8>)>,
    },
}

/// By which a row is compared: where NULL stands, and the number.
type OrderedValue = (bool, i64);

impl Gather {
    fn new(rider: Rc<Link>, parts: usize, kept: Kept) -> Gather {
        Gather {
            rider,
            left: Cell::new(parts),
            rows: Cell::default(),
            body: RefCell::default(),
            again: Cell::default(),
            kept: RefCell::new(kept),
        }
    }

    fn arrive(&self, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Complete(reply) => self.add(reply),
            // What keeps it off lanes for good is said, whatever else went wrong.
            Outcome::Again(again) => match self.again.get() {
                None | Some(Again::NotSent | Again::HeldUp) => self.again.set(Some(again)),
                Some(_) => {}
            },
            Outcome::Lost => self.again.set(Some(Again::NotSent)),
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() > 0 {
            return;
        }
        if let Some(again) = self.again.get() {
            return self.rider.arrive(Outcome::Again(again));
        }
        let mut body = self.body.borrow_mut();
        match &mut *self.kept.borrow_mut() {
            Kept::Rows => {}
            Kept::Sums(sums) => {
                write_numbers(sums, &mut body);
                self.rows.set(1);
            }
            Kept::Ordered { ordered, rows, .. } => {
                rows.sort_by(|(a, _), (b, _)| a.cmp(b));
                rows.truncate(ordered.limit as usize);
                rows.iter().for_each(|(_, row)| body.put_slice(row));
                self.rows.set(rows.len() as u64);
            }
        }
        backend::write_command_complete(&mut body, &format!("SELECT {}", self.rows.get()));
        backend::write_ready_for_query(&mut body, b'I');
        self.rider.arrive(Outcome::Complete(&body));
    }

    /// Rows and notices of a part.
    fn add(&self, mut reply: &[u8]) {
        let mut body = self.body.borrow_mut();
        while let Some(header) = reply.first_chunk::<5>() {
            let length = 1 + u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
            let Some(message) = reply.get(..length) else { break };
            match header[0] {
                b'D' => {
                    let read = match &mut *self.kept.borrow_mut() {
                        Kept::Rows => {
                            self.rows.set(self.rows.get() + 1);
                            body.put_slice(message);
                            Some(())
                        }
                        Kept::Sums(sums) => add_numbers(&message[5..], sums),
                        Kept::Ordered { ordered, binary, rows } => {
                            let keys = keys_of_row(&message[5..], ordered, binary);
                            keys.map(|keys| rows.push((keys, message.to_vec())))
                        }
                    };
                    if read.is_none() {
                        self.again.set(Some(Again::Changed));
                    }
                }
                b'N' => body.put_slice(message),
                _ => {}
            }
            reply.advance(length);
        }
    }
}

/// By what a DataRow is ordered, smaller ones first. None: they are no numbers.
fn keys_of_row(row: &[u8], ordered: &Ordered, binary: &[bool]) -> Option<Vec<OrderedValue>> {
    let values: Vec<Option<&[u8]>> = DataRow::of(row).and_then(Iterator::collect).ok()?;
    if values.len() != binary.len() {
        return None;
    }
    let key = |key: &OrderKey| {
        let Some(value) = values.get(key.column)? else { return Some((!key.nulls_first, 0)) };
        let number = match (binary.get(key.column)?, value.len()) {
            (true, 8) => i64::from_be_bytes((*value).try_into().ok()?),
            (true, 4) => i64::from(i32::from_be_bytes((*value).try_into().ok()?)),
            (true, 2) => i64::from(i16::from_be_bytes((*value).try_into().ok()?)),
            (true, _) => return None,
            (false, _) => std::str::from_utf8(value).ok()?.parse().ok()?,
        };
        // Of the largest there is no negative of the smallest: its complement turns the order around.
        Some((key.nulls_first, if key.descending { !number } else { number }))
    };
    ordered.keys.iter().map(key).collect()
}

/// A DataRow's numbers. None: they are not, or more than an int8 holds.
fn add_numbers(row: &[u8], sums: &mut [(bool, i64)]) -> Option<()> {
    let mut values = DataRow::of(row).ok()?;
    for (binary, sum) in sums {
        let value = values.next()?.ok()??;
        let value = match binary {
            true => i64::from_be_bytes(value.try_into().ok()?),
            false => std::str::from_utf8(value).ok()?.parse().ok()?,
        };
        *sum = sum.checked_add(value)?;
    }
    Some(())
}

fn write_numbers(sums: &[(bool, i64)], out: &mut BytesMut) {
    let mut row = BytesMut::new();
    row.put_u16(sums.len() as u16);
    for (binary, sum) in sums {
        let text = sum.to_string();
        let value: &[u8] = if *binary { &sum.to_be_bytes() } else { text.as_bytes() };
        row.put_u32(value.len() as u32);
        row.put_slice(value);
    }
    out.put_u8(b'D');
    out.put_u32(row.len() as u32 + 4);
    out.put_slice(&row);
}

struct PartOf(Rc<Gather>);

impl Rider for PartOf {
    fn arrive(&self, outcome: Outcome<'_>) {
        self.0.arrive(outcome);
    }
}
