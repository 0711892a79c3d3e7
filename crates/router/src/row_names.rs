//! Names that the coordinator is told in place of rows' ctids: one ctid for each row of a distributed table, and of all
//! partitions of users', wherever a statement meets it. It is made of the shard's number in the tree of partitions and
//! of the row's place in its shard, so another transaction finds the same row by it as long as the row has not changed.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use pgherd_catalog::{GroupId, Oid, ShardId, Snapshot, Table};

use crate::error::{Failure, Result};
use crate::text::{is_in_name, replace_unquoted};

/// A tid has 32 bits for a block and 16 for the row's number in it, which is never above 2047 (32 kB blocks).
const BITS: u32 = 48;
const OFFSET_BITS: u32 = 11;

/// The shards of a tree of partitions, each with its number.
#[derive(Debug, Clone)]
struct Numbers {
    root: Oid,
    /// Bits of a name that hold a shard's number.
    bits: u32,
}

/// The names that a transaction has told.
#[derive(Default)]
pub struct RowNames {
    /// What is known of a partition, by worker group and object id.
    partitions: HashMap<(GroupId, String), (Numbers, u64)>,
    /// Which partition it is, by the tree's root and number.
    places: HashMap<(Oid, u64), (GroupId, String)>,
}

/// The partitions of a table's tree that have rows, in an order of their own.
fn leaves(snapshot: &Snapshot, table: &Arc<Table>) -> (Oid, Vec<Arc<Table>>) {
    let tree = snapshot.partition_tree(table);
    let root = tree.first().map_or(table.oid, |t| t.oid);
    let mut leaves: Vec<Arc<Table>> = tree.into_iter().filter(|t| !t.is_partitioned).collect();
    leaves.sort_by_key(|t| t.oid);
    (root, leaves)
}

/// How many bits the numbers of a tree's shards need.
fn bits_of(leaves: &[Arc<Table>]) -> u32 {
    let shards: usize = leaves.iter().map(|t| t.shards().len()).sum();
    usize::BITS - shards.saturating_sub(1).leading_zeros()
}

/// The number of a table's first shard in its tree.
fn first_of(leaves: &[Arc<Table>], table: Oid) -> u64 {
    leaves.iter().take_while(|t| t.oid != table).map(|t| t.shards().len() as u64).sum()
}

impl RowNames {
    /// The name of a row. `place`: partition and ctid on its worker.
    pub fn name(&mut self, snapshot: &Snapshot, group: GroupId, place: &str, shard: ShardId) -> Result<String> {
        let unknown = || Failure::new("XX000", "a row's place is not understood");
        let (partition, ctid) = place.split_once(' ').ok_or_else(unknown)?;
        let known = (group, partition.to_owned());
        let (numbers, number) = match self.partitions.get(&known) {
            Some(found) => found.clone(),
            None => {
                let owner = snapshot.all_tables().find(|t| t.shards().iter().any(|s| s.id == shard));
                let owner = owner.ok_or_else(unknown)?;
                let (root, leaves) = leaves(snapshot, owner);
                let at = owner.shards().iter().position(|s| s.id == shard).ok_or_else(unknown)?;
                let number = first_of(&leaves, owner.oid) + at as u64;
                let found = (Numbers { root, bits: bits_of(&leaves) }, number);
                let before = self.places.insert((root, number), known.clone());
                let bits = self.partitions.values().find(|(n, _)| n.root == root).map(|(n, _)| n.bits);
                if before.is_some_and(|before| before != known) || bits.is_some_and(|bits| bits != found.0.bits) {
                    return Err(Failure::new("40001", "could not serialize access due to concurrent definitions")
                        .hint("The statement might succeed if retried."));
                }
                self.partitions.insert(known, found.clone());
                found
            }
        };
        let (block, offset) = numbers_of(ctid).ok_or_else(unknown)?;
        let room = BITS - OFFSET_BITS - numbers.bits.min(BITS - OFFSET_BITS);
        if offset >> OFFSET_BITS != 0 || u64::from(block) >> room != 0 {
            return Err(Failure::new("54000", "a shard is too large for its rows to be named by ctid"));
        }
        let name = number << (BITS - numbers.bits) | u64::from(block) << OFFSET_BITS | u64::from(offset);
        Ok(format!("({},{})", name >> 16, name & 0xffff))
    }

    /// Which row of a table a name stands for: worker group, partition and ctid.
    pub fn row(&self, snapshot: &Snapshot, table: &Arc<Table>, name: &[u8]) -> Option<(GroupId, String)> {
        let (root, leaves) = leaves(snapshot, table);
        let bits = bits_of(&leaves);
        let (block, offset) = numbers_of(std::str::from_utf8(name).ok()?)?;
        let name = u64::from(block) << 16 | u64::from(offset);
        let number = name.checked_shr(BITS - bits).unwrap_or(0);
        let (group, partition) = self.places.get(&(root, number))?;
        let rest = name & ((1 << (BITS - bits)) - 1);
        let place = format!("{partition} ({},{})", rest >> OFFSET_BITS, rest & ((1 << OFFSET_BITS) - 1));
        Some((*group, place))
    }
}

/// A worker's text in which conditions, and what is returned, have such names in place of ctids.
pub fn with_names(sql: &str, snapshot: &Snapshot, table: &Arc<Table>) -> String {
    let mut expression = None;
    replace_unquoted(sql, |rest, before| {
        let is_name = rest.starts_with("ctid")
            && !before.is_some_and(|c| is_in_name(c) || c == '"')
            && !rest[4..].starts_with(is_in_name);
        is_name.then(|| (4, expression.get_or_insert_with(|| name_expression(snapshot, table)).clone()))
    })
}

/// The name of a row as SQL of a worker.
fn name_expression(snapshot: &Snapshot, table: &Arc<Table>) -> String {
    let (_, leaves) = leaves(snapshot, table);
    let (bits, first) = (bits_of(&leaves), first_of(&leaves, table.oid));
    let numbers: Vec<String> = table
        .shards()
        .iter()
        .zip(first..)
        .map(|(shard, number)| format!("WHEN '{}' THEN {number}", shard.id))
        .collect();
    let (block, offset) = (
        "((ctid::pg_catalog.text::pg_catalog.point)[0])::pg_catalog.int8",
        "((ctid::pg_catalog.text::pg_catalog.point)[1])::pg_catalog.int8",
    );
    format!(
        "('(' OPERATOR(pg_catalog.||) ((CASE {SHARD} {} END)::pg_catalog.int8 << {} | ({block} >> {})) \
         OPERATOR(pg_catalog.||) ',' OPERATOR(pg_catalog.||) (({block} & {}) << {OFFSET_BITS} | {offset}) \
         OPERATOR(pg_catalog.||) ')')::pg_catalog.tid",
        numbers.join(" "),
        32 - bits.min(32),
        16 - OFFSET_BITS,
        (1 << (16 - OFFSET_BITS)) - 1,
    )
}

/// The shard of a row as SQL of a worker.
pub const SHARD: &str =
    "pg_catalog.substring(tableoid::pg_catalog.regclass::pg_catalog.text, '^\"?pgherd_([0-9]+)\"?[.]')";

/// Block and number of `(block,number)`.
fn numbers_of(ctid: &str) -> Option<(u32, u16)> {
    let (block, offset) = ctid.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    Some((block.parse().ok()?, offset.parse().ok()?))
}

/// A name in a row that may be in binary form.
pub fn name_text(name: &Bytes) -> Bytes {
    match name.as_ref() {
        [a, b, c, d, e, f] if !name.starts_with(b"(") => {
            Bytes::from(format!("({},{})", u32::from_be_bytes([*a, *b, *c, *d]), u16::from_be_bytes([*e, *f])))
        }
        _ => name.clone(),
    }
}
