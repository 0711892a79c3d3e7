//! The short way for INSERT of many rows: each server's rows go there as one prepared statement per shard and number of
//! rows, under one transaction that several clients may share (`group.rs`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::rc::Rc;

use bytes::BufMut;
use pgherd_backend::lane::{LaneStatement, statement_name};
use pgherd_catalog::Oid;
use pgherd_planner::{Field, InsertRows, Plan, RowKey};
use pgherd_sql::ast::Tree;
use pgherd_sql::{Lifter, Splice, StatementKind};
use pgherd_wire::backend;

use super::context::Names;
use super::ride::{CompiledKey, Ridden, SHARD_BYTES_MAX, Values, compiled_key, is_built_in};
use super::{Attempt, Prepared, Session, next_id};
use crate::group::{Part, SharedWrite};
use crate::settings::quote_ident;

/// Parameters of one statement at most.
const PARAMS_MAX: usize = 1000;
/// A request larger than this goes the long way.
const REQUEST_MAX: usize = 64 * 1024;

/// How an INSERT of many rows goes to its shards, worked out once per catalog.
pub struct CompiledRows {
    pub(super) version: u64,
    pub(super) names: Rc<Names>,
    plan: Rc<Plan>,
    /// Up to and with VALUES.
    head: Splice,
    /// ON CONFLICT DO NOTHING, or empty.
    tail: Splice,
    params: usize,
    /// By column.
    types: Vec<Oid>,
    rows: Vec<(CompiledKey, Vec<Value>)>,
    /// By shard and number of rows.
    statements: RefCell<HashMap<(usize, usize), Rc<LaneStatement>>>,
    bytes: Cell<usize>,
    pub(super) ridden: Rc<Ridden>,
}

enum Value {
    /// Of the client's Bind.
    Param(usize),
    /// A constant as text; none: NULL.
    Fixed(Option<Vec<u8>>),
}

impl Session {
    /// After an INSERT of many rows went the long way well.
    pub fn compile_rows(&mut self, prepared: &Prepared, plan: &Rc<Plan>, insert: &InsertRows, param_types: &[Oid]) {
        let version = self.db.version();
        let names = Names::of(&self.user, &self.db.name, &self.settings);
        if prepared.rows().is_some_and(|rows| rows.version == version && *rows.names == names) {
            return;
        }
        let catalog = self.db.snapshot();
        if !self.may_compile(prepared, plan, &catalog) || plan.uses_now {
            return;
        }
        // ON CONFLICT DO UPDATE waits for rows that others change, in whatever order.
        let conflict = match prepared.statement.as_ref().map(|s| &s.tree) {
            Some(Tree::Insert(written)) => written.on_conflict.as_ref(),
            _ => return,
        };
        let tail_fits = conflict.is_none_or(|c| !c.update) && !insert.tail.as_written().contains('$');
        if insert.needs_coordinator || insert.returning || !tail_fits {
            return;
        }
        let plain = !insert.table.parent_only
            && !insert.table.has_triggers
            && !insert.table.has_hidden_calls
            && !insert.table.row_security
            && !insert.table.has_user_types
            && plan.tables.len() == 1
            && pgherd_planner::shares_transaction(&insert.table, &catalog);
        if !plain || !is_built_in(param_types) {
            return;
        }
        let mut lifter = Lifter::default();
        let mut types: Vec<Oid> = Vec::new();
        let mut rows = Vec::with_capacity(insert.rows.len());
        for row in &insert.rows {
            let RowKey::Value(key) = &row.key else { return };
            let Some(key) = compiled_key(&insert.table, key, &StatementKind::Insert, param_types) else {
                return;
            };
            let mut values = Vec::with_capacity(row.fields.len());
            let mut row_types = Vec::with_capacity(row.fields.len());
            for field in &row.fields {
                let Field::Text(text) = field else { return };
                let Some((value, oid)) = value_of(text.as_written().trim(), param_types, &mut lifter) else {
                    return;
                };
                if oid == 0 && matches!(value, Value::Fixed(Some(_))) && insert.table.reads_by_modifier() {
                    return;
                }
                values.push(value);
                row_types.push(oid);
            }
            if rows.is_empty() {
                types = row_types;
            } else if types != row_types {
                return;
            }
            rows.push((key, values));
        }
        if types.is_empty() || types.len() * rows.len() > PARAMS_MAX {
            return;
        }
        prepared.set_rows(Rc::new(CompiledRows {
            version,
            names: Rc::new(names),
            plan: plan.clone(),
            head: insert.head.clone(),
            tail: insert.tail.clone(),
            params: param_types.len(),
            types,
            rows,
            statements: RefCell::default(),
            bytes: Cell::new(0),
            ridden: Rc::default(),
        }));
    }

    /// The messages of one execution at the front of the client's buffer: `values` is what Bind says behind the
    /// statement's name, `end` where they end.
    pub(super) fn ride_rows(
        &mut self,
        rows: &Rc<CompiledRows>,
        parsed: bool,
        describes: bool,
        values: std::ops::Range<usize>,
        end: usize,
    ) -> Attempt {
        let timeouts = ["lock_timeout", "statement_timeout", "transaction_timeout"];
        if values.len() > REQUEST_MAX || timeouts.iter().any(|name| self.settings.contains_key(*name)) {
            return Attempt::No;
        }
        let values = &self.client.read[values];
        let Some(view) = Values::read(values).filter(|view| view.count == rows.params && !view.may_move) else {
            return Attempt::No;
        };
        let Some(parts) = rows.parts(&view) else { return Attempt::No };
        let Some((_, context)) = &self.context else { return Attempt::No };
        let context = context.clone();
        let Some(targets) = self.targets_of(&context, rows.version, parts.iter().map(|part| part.group)) else {
            return Attempt::No;
        };
        let link = self.client.link.clone();
        let mut prefix = link.begin();
        if parsed {
            backend::write_parse_complete(&mut prefix);
        }
        backend::write_bind_complete(&mut prefix);
        if describes {
            backend::write_no_data(&mut prefix);
        }
        drop(prefix);
        let protocol = self.commit_protocol();
        context.group_writer(&self.thread).push(SharedWrite {
            rider: link,
            parts,
            verb: "INSERT 0",
            protocol,
            targets,
            database: self.db.clone(),
            commit_wait: self.commit_wait(),
        });
        self.cancel.begin();
        self.client.depart(end);
        self.riding = Some(rows.ridden.clone());
        Attempt::Away
    }
}

/// A field that is a parameter or a plain constant, with the type that it has in the statement.
fn value_of(text: &str, param_types: &[Oid], lifter: &mut Lifter) -> Option<(Value, Oid)> {
    if let Some(number) = text.strip_prefix('$') {
        let index = number.parse::<usize>().ok()?.checked_sub(1)?;
        return Some((Value::Param(index), *param_types.get(index)?));
    }
    if text.eq_ignore_ascii_case("null") {
        return Some((Value::Fixed(None), 0));
    }
    if !lifter.scan(text) {
        return None;
    }
    let [literal] = lifter.literals.as_slice() else { return None };
    if literal.span.of(text).len() != text.len() {
        return None;
    }
    let mut value = Vec::new();
    pgherd_sql::write_value(text, *literal, &mut value);
    Some((Value::Fixed(Some(value)), literal.kind.type_oid()))
}

impl CompiledRows {
    /// What each server gets. None: the long way.
    fn parts(&self, values: &Values<'_>) -> Option<Vec<Part>> {
        let table = &self.plan.tables.first()?;
        let mut by_shard: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, (key, _)) in self.rows.iter().enumerate() {
            by_shard.entry(key.remainder(values, table.shards().len())?).or_default().push(index);
        }
        let mut parts = Vec::with_capacity(by_shard.len());
        for (remainder, indexes) in by_shard {
            let group = table.shards().get(remainder)?.group;
            let statement = self.statement(remainder, indexes.len())?;
            parts.push(Part { group, statement, values: self.values(values, &indexes)? });
        }
        Some(parts)
    }

    fn statement(&self, remainder: usize, rows: usize) -> Option<Rc<LaneStatement>> {
        if let Some(statement) = self.statements.borrow().get(&(remainder, rows)) {
            return Some(statement.clone());
        }
        let table = self.plan.tables.first()?;
        let shard = table.shards().get(remainder)?;
        let name_of = |oid| (oid == table.oid).then(|| format!("{}.{}", shard.schema(), quote_ident(&table.name)));
        let mut sql = self.head.render(name_of);
        let mut number = 0;
        for row in 0..rows {
            sql.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..self.types.len() {
                number += 1;
                let _ = write!(sql, "{}${number}", if column == 0 { "" } else { ", " });
            }
            sql.push(')');
        }
        let _ = write!(sql, " {}", self.tail.render(name_of));
        let bytes = self.bytes.get() + sql.len();
        if bytes > SHARD_BYTES_MAX {
            return None;
        }
        self.bytes.set(bytes);
        let id = next_id() * 65_536;
        let statement = Rc::new(LaneStatement {
            id,
            name: statement_name(id),
            sql,
            param_types: self.types.iter().copied().cycle().take(number).collect(),
            columns: None,
            writes: true,
            shares: true,
        });
        self.statements.borrow_mut().insert((remainder, rows), statement.clone());
        Some(statement)
    }

    /// The rest of a Bind for some of the rows.
    fn values(&self, given: &Values<'_>, indexes: &[usize]) -> Option<Vec<u8>> {
        let count = indexes.len() * self.types.len();
        let mut formats = Vec::with_capacity(2 + count * 2);
        let mut out = Vec::with_capacity(64 + count * 16);
        formats.put_u16(count as u16);
        for index in indexes {
            for value in &self.rows[*index].1 {
                let (value, binary) = match value {
                    Value::Fixed(value) => (value.as_deref(), false),
                    Value::Param(index) => match given.get(*index)? {
                        Some((value, binary)) => (Some(value), binary),
                        None => (None, false),
                    },
                };
                formats.put_u16(u16::from(binary));
                match value {
                    Some(value) => {
                        out.put_u32(u32::try_from(value.len()).ok()?);
                        out.put_slice(value);
                    }
                    None => out.put_i32(-1),
                }
            }
        }
        formats.put_u16(count as u16);
        formats.extend_from_slice(&out);
        formats.put_u16(0);
        Some(formats)
    }
}
