//! Which shard a value of the distribution column belongs to: hashed here where that is certain, else by a server.

use std::borrow::Cow;

use bytes::Bytes;
use pgherd_catalog::Table;
use pgherd_catalog::hash::{self, Hashed, KeyType, remainder};
use pgherd_planner::KeyValue;
use pgherd_wire::array::elements;
use pgherd_wire::frontend;

use super::request::fields_of;
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};

impl Session {
    /// The remainder of a value that the key is compared with, which is the shard's index. None: a parameter whose type
    /// does not let its value pin a shard (`bigint = double precision` may match several keys).
    pub async fn remainder_of(
        &mut self,
        table: &Table,
        key: &KeyValue,
        bound: Option<Parameters<'_>>,
    ) -> Result<Option<usize>> {
        match key {
            KeyValue::Null => Ok(Some(0)),
            KeyValue::Each(_) => Ok(None),
            KeyValue::Literal(text) => {
                let hashed = key_type(table)?.hash_text(text.as_bytes());
                self.settle(table, hashed, text.as_bytes(), Asked::COMPARED).await.map(Some)
            }
            KeyValue::Param(number) => {
                let index = usize::from(*number).saturating_sub(1);
                let bound = bound.ok_or_else(|| no_parameter(*number))?;
                let Some(value) = bound.bound.params.get(index).cloned().flatten() else { return Ok(Some(0)) };
                let column_type = table.key_column().map_or(0, |c| c.type_oid);
                let param_type = bound.types.get(index).copied().filter(|t| *t != 0).unwrap_or(column_type);
                let binary = bound.bound.is_binary(index);
                let key_type = key_type(table)?;
                if param_type != column_type && key_type.for_parameter(param_type).is_none() {
                    return Ok(None);
                }
                let hashed = if binary {
                    key_type.hash_binary_as(param_type, &value)
                } else {
                    key_type.hash_text_as(param_type, &value)
                };
                let asked = Asked { param_type: if binary { param_type } else { 0 }, binary, stored: false };
                let settled = self.settle(table, hashed, &value, asked).await;
                settled.map(Some).map_err(|failure| of_parameter(failure, *number))
            }
        }
    }

    /// The remainders of the values that a key may be, where it may be several.
    pub async fn remainders_of(
        &mut self,
        table: &Table,
        key: &KeyValue,
        bound: Option<Parameters<'_>>,
    ) -> Result<Option<Vec<usize>>> {
        let KeyValue::Each(number) = key else {
            return Ok(self.remainder_of(table, key, bound).await?.map(|remainder| vec![remainder]));
        };
        let index = usize::from(*number).saturating_sub(1);
        let Some(bound) = bound else { return Ok(None) };
        let Some(value) = bound.bound.params.get(index).cloned().flatten() else { return Ok(Some(Vec::new())) };
        let element = bound.types.get(index).and_then(|oid| element_type(*oid));
        let Some(key_type) = element.and_then(|oid| table.key_type()?.for_parameter(oid)) else { return Ok(None) };
        let found = remainders(&value, bound.bound.is_binary(index), key_type, table.shards().len());
        Ok(found.map(|found| found.into_iter().map(|(at, _)| at).collect()))
    }

    /// The remainder of a value that is put into the key column, which may change it first (`varchar(3)`).
    pub async fn remainder_of_stored(
        &mut self,
        table: &Table,
        key: &KeyValue,
        bound: Option<Parameters<'_>>,
    ) -> Result<usize> {
        match key {
            KeyValue::Null => Ok(0),
            KeyValue::Each(_) => Err(Failure::new("XX000", "an array is no key")),
            KeyValue::Literal(text) => self.remainder_of_stored_text(table, Some(text.as_bytes())).await,
            KeyValue::Param(number) => {
                let index = usize::from(*number).saturating_sub(1);
                let bound = bound.ok_or_else(|| no_parameter(*number))?;
                let Some(value) = bound.bound.params.get(index).cloned().flatten() else { return Ok(0) };
                let (column_type, typmod) = table.key_column().map_or((0, -1), |c| (c.type_oid, c.typmod));
                let param_type = bound.types.get(index).copied().filter(|t| *t != 0).unwrap_or(column_type);
                let binary = bound.bound.is_binary(index);
                let key_type = key_type(table)?;
                let read_as = key_type.for_parameter(param_type);
                let hashed = match &read_as {
                    Some(read_as) if binary => read_as.hash_binary_stored(&value, typmod),
                    Some(read_as) => read_as.hash_text_stored(&value, typmod),
                    None => Hashed::AskServer,
                };
                // Of another type it is read as that, and assigned: 904.4 to an integer.
                let is_other = read_as.is_none() && param_type != column_type && param_type != 705;
                let param_type = if binary || is_other { param_type } else { 0 };
                self.settle(table, hashed, &value, Asked { param_type, binary, stored: true }).await
            }
        }
    }

    /// The same for a value in text form; NULL is in remainder 0.
    pub async fn remainder_of_stored_text(&mut self, table: &Table, value: Option<&[u8]>) -> Result<usize> {
        match value {
            None => Ok(0),
            Some(value) => self.remainder_of_stored_bytes(table, value, false).await,
        }
    }

    pub async fn remainder_of_stored_bytes(&mut self, table: &Table, value: &[u8], binary: bool) -> Result<usize> {
        let (type_oid, typmod) = table.key_column().map_or((0, -1), |c| (c.type_oid, c.typmod));
        let key_type = key_type(table)?;
        let hashed =
            if binary { key_type.hash_binary_stored(value, typmod) } else { key_type.hash_text_stored(value, typmod) };
        let param_type = if binary { type_oid } else { 0 };
        self.settle(table, hashed, value, Asked { param_type, binary, stored: true }).await
    }

    async fn settle(&mut self, table: &Table, hashed: Hashed, value: &[u8], asked: Asked) -> Result<usize> {
        let modulus = table.shards().len().max(1) as u32;
        match hashed {
            Hashed::Value(hash) => Ok(hash::remainder(hash, modulus) as usize),
            Hashed::AskServer => {
                let hash = self.ask_hash(table, value, asked).await?;
                Ok(hash.map_or(0, |h| hash::remainder(hash::combine(h as u64), modulus) as usize))
            }
        }
    }

    /// The coordinator hashes it; an invalid value is its error to report.
    async fn ask_hash(&mut self, table: &Table, value: &[u8], asked: Asked) -> Result<Option<i64>> {
        let column = table.key_column().ok_or_else(|| Failure::new("XX000", "a reference table has no key"))?;
        // None, "default", "C" and "POSIX" hash by the bytes.
        let collation = match column.collation {
            0 | 100 | 950 | 951 => None,
            oid => {
                let sql = format!(
                    "SELECT pg_catalog.format('%I.%I', n.nspname, c.collname) FROM pg_catalog.pg_collation c \
                     JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = {oid}"
                );
                self.ask_coordinator(&sql).await?.text(0, 0).map(str::to_owned)
            }
        };
        let type_name = if asked.stored { &column.type_name } else { &column.base_type_name };
        let sql = hash::ask_server_sql(type_name, collation.as_deref());
        // A date or an interval is read as the statement will read it.
        let (mut lease, in_block) =
            self.coordinator_lease_in_block(&["datestyle", "intervalstyle", "timezone"]).await?;
        let types = if asked.param_type != 0 { vec![asked.param_type] } else { Vec::new() };
        let params: [Option<Bytes>; 1] = [Some(Bytes::copy_from_slice(value))];
        frontend::write_parse(lease.buffer(), "", &sql, &types);
        frontend::write_bind(lease.buffer(), "", "", &[i16::from(asked.binary)], &params, &[]);
        frontend::write_execute(lease.buffer(), "", 0);
        lease.send_sync();
        let mut hash = None;
        let mut failure = None;
        loop {
            let frame = lease.frame().await?;
            match frame.tag() {
                b'D' => {
                    let field = fields_of(&frame)?.into_iter().next().flatten();
                    hash = field.and_then(|f| std::str::from_utf8(&f).ok().and_then(|t| t.parse().ok()));
                }
                b'E' => failure = Some(pgherd_wire::backend::parse_error(&frame)?),
                b'Z' => break,
                _ => {}
            }
        }
        if in_block {
            lease.query("ROLLBACK").await?;
        }
        match failure {
            Some(mut fields) => {
                // The position is in our text, not in the client's.
                fields.remove(b'P');
                fields.remove(b'W');
                Err(fields.into())
            }
            None => Ok(hash),
        }
    }
}

/// How a server is asked: with which parameter type (0: the column's), and as a stored value or a compared one.
#[derive(Clone, Copy)]
struct Asked {
    param_type: u32,
    binary: bool,
    stored: bool,
}

impl Asked {
    const COMPARED: Asked = Asked { param_type: 0, binary: false, stored: false };
}

/// Bound values with the types that the coordinator gave them.
#[derive(Clone, Copy)]
pub struct Parameters<'a> {
    pub bound: &'a Bound,
    pub types: &'a [u32],
}

/// For the client it is Bind that read the value.
fn of_parameter(failure: Failure, number: u16) -> Failure {
    failure.with(b'W', &format!("unnamed portal parameter ${number}"))
}

fn no_parameter(number: u16) -> Failure {
    Failure::new("42P02", format!("there is no parameter ${number}"))
}

fn key_type(table: &Table) -> Result<&pgherd_catalog::hash::KeyType> {
    table.key_type().ok_or_else(|| Failure::new("XX000", format!("table \"{}\" is not distributed", table.name)))
}

/// The type of the elements of a built-in array type.
pub fn element_type(array: u32) -> Option<u32> {
    Some(match array {
        1005 => 21,
        1007 => 23,
        1016 => 20,
        1009 => 25,
        1015 => 1043,
        2951 => 2950,
        1182 => 1082,
        _ => return None,
    })
}

/// More elements of an array than this are not looked at: all shards are asked.
const ELEMENTS_MAX: usize = 1000;

/// Where the elements of an array are, each once. None: only a server can tell.
pub fn remainders<'v>(
    value: &'v [u8],
    binary: bool,
    key_type: KeyType,
    shards: usize,
) -> Option<Vec<(usize, Cow<'v, [u8]>)>> {
    let elements = elements(value, binary, ELEMENTS_MAX)?;
    // With array_nulls = off it is a text like any other.
    if !binary && matches!(key_type, KeyType::Text | KeyType::Name) && elements.iter().any(Option::is_none) {
        return None;
    }
    // NULL equals no key.
    let place = |element: Cow<'v, [u8]>| {
        let hashed = if binary { key_type.hash_binary(&element) } else { key_type.hash_text(&element) };
        let Hashed::Value(hash) = hashed else { return None };
        Some((remainder(hash, shards as u32) as usize, element))
    };
    elements.into_iter().flatten().map(place).collect()
}
