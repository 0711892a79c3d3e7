//! Making a table distributed or a reference table, and undoing it: the checks, where shards go, and the statements for
//! each node. Who moves the rows and runs the statements is the router's `run/distribute.rs`.
//!
//! On a worker a distributed table is a parent under its own name, `PARTITION BY HASH (key)`, with one partition per
//! shard placed there, which has the table's name in schema `pgherd_<shard id>`. Constraints and indexes are made on
//! the partitions first, under the user's names, and then on the parent, which adopts them
//! (src/backend/commands/indexcmds.c, `DefineIndex`): the other way round PostgreSQL would invent names. Foreign keys
//! between colocated tables go from partition to partition, since those that point to a partitioned table report
//! invented names.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::cluster_state::{ClusterState, ShardPlacement, shard_schema};
use crate::describe::{
    Column, Constraint, DescriptionError, Grant, Index, Policy, Prerequisite, TableDescription, Trigger,
};
use crate::quote::{ident_list, qualified, quote_ident, quote_literal};
use pgherd_catalog::{COORDINATOR_GROUP, ColocationId, GroupId, Oid, ShardId};

/// Citus's limit, and ours.
pub const SHARD_COUNT_MAX: u32 = 64_000;

const UNIQUE_DETAIL: &str = "Distributed relations cannot have UNIQUE, EXCLUDE, or PRIMARY KEY constraints that do not \
                             include the partition column (with an equality operator if EXCLUDE).";

// Where shards go -----------------------------------------------------------------------------------------------------

/// `colocate_with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColocateWith {
    /// A group of the same shard count and key type, else a new one.
    Default,
    /// A group of its own.
    None,
    Table(Oid),
}

/// A table's colocation group and the worker group of each remainder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// None: a new group.
    pub colocation: Option<ColocationId>,
    /// The new group may be joined by tables that ask for the default.
    pub is_default: bool,
    /// By remainder; its length is the modulus.
    pub groups: Vec<GroupId>,
}

/// Round robin over groups. Empty where there are no groups.
pub fn placements(groups: &[GroupId], shard_count: u32) -> Vec<GroupId> {
    groups.iter().copied().cycle().take(if groups.is_empty() { 0 } else { shard_count as usize }).collect()
}

/// Chooses the colocation group. `shard_count`: the argument of create_distributed_table; `default_shard_count`: the
/// setting `citus.shard_count`.
pub fn choose_placement(
    table: &TableDescription,
    key: &Column,
    state: &ClusterState,
    colocate_with: ColocateWith,
    shard_count: Option<u32>,
    default_shard_count: u32,
) -> Result<Placement, Refusal> {
    let count = shard_count.unwrap_or(default_shard_count);
    if count == 0 || count > SHARD_COUNT_MAX {
        return Err(Refusal::new(
            "22023",
            format!("{count} is outside the valid range for parameter \"shard_count\" (1 .. {SHARD_COUNT_MAX})"),
        ));
    }
    let matches = |id: ColocationId| {
        state.colocation(id).is_some_and(|c| {
            c.replication_factor > 0 && c.key_type == key.key_type_oid && c.key_collation == key.collation_oid
        })
    };
    match colocate_with {
        ColocateWith::Table(oid) => {
            let partner = state.table(oid).filter(|t| !t.is_reference()).ok_or_else(|| {
                Refusal::new(
                    "42P16",
                    format!("cannot colocate table \"{}\" with a table that is not distributed", table.name),
                )
            })?;
            if shard_count.is_some_and(|c| c as usize != partner.shards().len()) {
                return Err(Refusal::new(
                    "22023",
                    "cannot use both a table in \"colocate_with\" and another \"shard_count\"",
                ));
            }
            if !matches(partner.colocation) {
                return Err(Refusal::new(
                    "42P16",
                    format!("cannot colocate tables {} and {}", partner.name, table.name),
                )
                .detail(format!("Distribution column types don't match for {} and {}.", partner.name, table.name)));
            }
            Ok(existing(partner.colocation, partner.shards()))
        }
        ColocateWith::Default => {
            let found = state.tables.iter().find(|t| {
                !t.is_reference()
                    && t.shards().len() == count as usize
                    && matches(t.colocation)
                    && state.colocation(t.colocation).is_some_and(|c| c.is_default)
            });
            match found {
                Some(partner) => Ok(existing(partner.colocation, partner.shards())),
                None => new_group(state, count, true),
            }
        }
        ColocateWith::None => new_group(state, count, false),
    }
}

fn existing(colocation: ColocationId, shards: &[ShardPlacement]) -> Placement {
    Placement { colocation: Some(colocation), is_default: false, groups: shards.iter().map(|s| s.group).collect() }
}

fn new_group(state: &ClusterState, count: u32, is_default: bool) -> Result<Placement, Refusal> {
    let groups = placements(&state.shard_groups(), count);
    if groups.is_empty() {
        return Err(Refusal::new("55000", "there is no worker node to place shards on")
            .hint("Add one with SELECT citus_add_node('host', port)."));
    }
    Ok(Placement { colocation: None, is_default, groups })
}

// Checks --------------------------------------------------------------------------------------------------------------

/// Whether a table can be distributed by a column. `placement` as [`choose_placement`] gave it, or none to check what
/// does not depend on it (foreign keys to distributed tables do).
pub fn check_distributable(
    table: &TableDescription,
    key: &str,
    state: &ClusterState,
    placement: Option<&Placement>,
) -> Result<(), Refusal> {
    check_table(table, state)?;
    let column = key_column(table, key)?;
    if !column.generated.is_empty() {
        return Err(Refusal::unsupported(format!("cannot distribute relation: {}", table.name)).detail(format!(
            "Distribution column \"{}\" must not be generated: its values are computed on the workers.",
            column.name
        )));
    }
    if let Some(part) = &column.hashes_by_object_id {
        return Err(Refusal::unsupported(format!("cannot distribute table \"{}\" by column \"{}\"", table.name, key))
            .detail(format!(
                "Type {} is, or is built on, {}: its values hash by object id, which differs between servers.",
                column.type_name,
                match part.as_str() {
                    "enum" => "an enum",
                    "composite" => "a composite type",
                    _ => "a type that stands for an object of the database",
                }
            ))
            .hint("Use another column, or store the value as text."));
    }
    if column.hash_function.is_none() {
        return Err(Refusal::new(
            "42704",
            format!("data type {} has no default operator class for access method \"hash\"", column.type_name),
        )
        .hint("The distribution column must have a type that can be hashed."));
    }
    for constraint in &table.constraints {
        if !unique_constraint_has_key(constraint, key) {
            return Err(unique_refusal(&table.name));
        }
    }
    for index in &table.indexes {
        if index.unique && !index.columns.iter().flatten().any(|c| c == key) {
            return Err(unique_refusal(&table.name));
        }
    }
    check_triggers(table)?;
    check_default_actions(table)?;
    // It was local when a reference table came to reference it.
    if let Some(key) = table.incoming.iter().find(|key| state.table(key.oid).is_some_and(|t| t.is_reference())) {
        return Err(must_be_reference(&key.name, &key.table, &table.name));
    }
    for constraint in table.constraints.iter().filter(|c| c.kind == 'f') {
        check_outgoing_key(table, key, constraint, state, placement)?;
    }
    Ok(())
}

pub(crate) fn must_be_reference(key: &str, table: &str, referenced: &str) -> Refusal {
    Refusal::unsupported(format!("foreign key \"{}\" of table \"{}\" must reference a reference table", key, table))
        .detail("A reference table is copied to every node, and so must be what it references.")
        .hint(format!("Run SELECT create_reference_table('{referenced}') first."))
}

/// A reference table may reference itself, another one, or a local table: its copy on the coordinator is checked then.
pub(crate) fn fits_reference(table: Oid, referenced: Oid, state: &ClusterState) -> bool {
    table == referenced || state.table(referenced).is_none_or(|t| t.is_reference())
}

/// What workers have of a reference table: without foreign keys to tables that only the coordinator has.
pub fn as_copied(table: &TableDescription, state: &ClusterState) -> TableDescription {
    let mut copied = table.clone();
    copied.constraints.retain(|c| {
        let is_there = |oid| oid == table.oid || state.table(oid).is_some();
        c.referenced.as_ref().is_none_or(|referenced| is_there(referenced.oid))
    });
    copied
}

/// Whether a table can become a reference table.
pub fn check_reference(table: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    check_default_actions(table)?;
    if table.is_partitioned() || table.is_partition {
        return Err(Refusal::unsupported(format!("cannot distribute table \"{}\"", table.name))
            .detail("It is partitioned, or a partition, which reference tables cannot be."));
    }
    check_table(table, state)?;
    for constraint in table.constraints.iter().filter(|c| c.kind == 'f') {
        let Some(referenced) = &constraint.referenced else { continue };
        if !fits_reference(table.oid, referenced.oid, state) {
            return Err(must_be_reference(&constraint.name, &table.name, &referenced.name));
        }
    }
    check_prerequisites(table, state)
}

fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The distribution column of that name.
pub fn key_column<'a>(table: &'a TableDescription, key: &str) -> Result<&'a Column, Refusal> {
    table
        .column(key)
        .ok_or_else(|| Refusal::new("42703", format!("column \"{key}\" of relation \"{}\" does not exist", table.name)))
}

/// The refusal for a unique constraint or index without the distribution column, in Citus's words.
pub fn unique_refusal(table: &str) -> Refusal {
    Refusal::new("42P17", format!("cannot create constraint on \"{table}\"")).detail(UNIQUE_DETAIL)
}

pub(crate) fn unique_constraint_has_key(constraint: &Constraint, key: &str) -> bool {
    match constraint.kind {
        'p' | 'u' => constraint.columns.iter().flatten().any(|c| c == key),
        'x' => constraint.equality_columns.iter().flatten().any(|c| c == key),
        _ => true,
    }
}

/// That it is a table, of the caller's, and not distributed yet.
pub fn check_ordinary(table: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    let name = &table.name;
    if table.is_catalog {
        return Err(Refusal::new("42501", format!("permission denied: \"{name}\" is a system catalog")));
    }
    match table.kind {
        'r' | 'p' => {}
        _ => return Err(Refusal::new("42809", format!("\"{name}\" is not a table"))),
    }
    if !table.caller_owns {
        return Err(Refusal::new("42501", format!("must be owner of table {name}")));
    }
    if state.table(table.oid).is_some() {
        return Err(Refusal::new("42P16", format!("table \"{name}\" is already distributed")));
    }
    Ok(())
}

fn check_table(table: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    check_ordinary(table, state)?;
    let name = &table.name;
    let refuse = |why: &str| Err(Refusal::unsupported(format!("cannot distribute table \"{name}\"")).detail(why));
    if table.persistence == 't' {
        return refuse("It is temporary.");
    }
    if table.is_partition && table.parent.is_none_or(|parent| state.table(parent).is_none()) {
        return refuse("It is a partition; distribute the partitioned table.");
    }
    if (!table.inherits.is_empty() && !table.is_partition) || (!table.children.is_empty() && !table.is_partitioned()) {
        return refuse("It takes part in inheritance.");
    }
    if let Some(why) = partitioning_refusal(table) {
        return refuse(why);
    }
    if let Some(extension) = &table.in_extension {
        return refuse(&format!("It belongs to extension \"{extension}\"."));
    }
    check_prerequisites(table, state)
}

/// What partitioned tables and their partitions cannot have here.
pub(crate) fn partitioning_refusal(table: &TableDescription) -> Option<&'static str> {
    if !table.is_partitioned() && !table.is_partition && !table.is_leaf {
        return None;
    }
    if !table.triggers.is_empty() {
        return Some("It is partitioned, or is or was a partition, and has triggers.");
    }
    if !table.rules.is_empty() {
        return Some("It is partitioned, or is or was a partition, and has rules.");
    }
    if !table.incoming.is_empty() {
        return Some("It is partitioned, or is or was a partition, and foreign keys reference it.");
    }
    if table.constraints.iter().any(|c| c.kind == 'f' && c.referenced.as_ref().is_some_and(|r| r.oid == table.oid)) {
        return Some("It is partitioned, or is or was a partition, and has a foreign key to itself.");
    }
    if table.is_partition && table.columns.iter().any(|c| !c.identity.is_empty() && !c.identity_inherited) {
        return Some("It is a partition with an identity column.");
    }
    if table.is_partition && table.constraints.iter().any(|c| c.kind == 'x' || c.no_inherit) {
        return Some("It is a partition with an exclusion constraint or a CHECK constraint that is NO INHERIT.");
    }
    // Workers are asked for partitions by name, where PostgreSQL applies the policies of the table that is named alone.
    if table.is_partition && (table.row_security || !table.policies.is_empty()) {
        return Some("It is a partition with row security of its own.");
    }
    None
}

pub(crate) fn check_prerequisites(table: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    // A row's table is a partition on a worker, and has another number everywhere.
    let names_table = |c: &&Constraint| c.kind == 'c' && words(&c.definition).any(|word| word == "tableoid");
    if let Some(constraint) = table.constraints.iter().find(names_table) {
        return Err(Refusal::unsupported(format!("cannot distribute table \"{}\"", table.name))
            .detail(format!("Its constraint \"{}\" names tableoid.", constraint.name)));
    }
    let computes_table = |c: &&Column| {
        let expression = c.generation_expression.as_ref();
        expression.is_some_and(|expression| words(expression).any(|word| word == "tableoid"))
    };
    if let Some(column) = table.columns.iter().find(computes_table) {
        return Err(Refusal::unsupported(format!("cannot distribute table \"{}\"", table.name))
            .detail(format!("Its generated column \"{}\" names tableoid.", column.name)));
    }
    for prerequisite in &table.prerequisites {
        let made = prerequisite.ddl.as_ref().is_some_and(|ddl| ddl.iter().all(Option::is_some));
        let known = prerequisite.kind == "relation"
            && state.tables.iter().any(|t| qualified(&t.schema, &t.name) == prerequisite.name);
        let itself = prerequisite.kind == "relation" && prerequisite.name == table.qualified_name();
        if !made && !known && !itself {
            return Err(Refusal::unsupported(format!("cannot distribute table \"{}\"", table.name)).detail(format!(
                "It depends on {} {}, which workers do not have.",
                prerequisite.kind, prerequisite.name
            )));
        }
    }
    Ok(())
}

/// What [`stale_guard`] is called.
pub(crate) const STALE_GUARD: &str = "pgherd_guard_stale";

pub(crate) fn check_triggers(table: &TableDescription) -> Result<(), Refusal> {
    match &table.trigger_refusal {
        Some(why) => {
            let hint = match why.contains("foreign key") {
                true => {
                    "Let the foreign key say NO ACTION, and delete or change the rows that refer to others first: the \
                     trigger fires for these."
                }
                false => "Triggers that read and write nothing but the row fire on the workers.",
            };
            Err(Refusal::unsupported(format!("distributed table \"{}\" cannot have such triggers", table.name))
                .detail(why)
                .hint(hint))
        }
        None => Ok(()),
    }
}

/// A row that loses what it references gets a default on its worker: one that the coordinator keeps is not there.
pub(crate) fn check_default_actions(table: &TableDescription) -> Result<(), Refusal> {
    for constraint in table.constraints.iter().filter(|c| c.kind == 'f') {
        let sets = constraint.tail.as_deref().is_some_and(|tail| tail.contains(" SET DEFAULT"));
        let kept = |name: &String| {
            let column = table.columns.iter().find(|c| c.name == *name);
            column.is_some_and(|c| c.default_on_coordinator || !c.identity.is_empty())
        };
        if sets && constraint.columns.iter().flatten().any(kept) {
            return Err(Refusal::unsupported(format!(
                "cannot create foreign key constraint \"{}\" on distributed table \"{}\"",
                constraint.name, table.name
            ))
            .detail(
                "SET DEFAULT would need a default that only the coordinator has: one with a sequence or a function.",
            ));
        }
    }
    Ok(())
}

pub(crate) fn check_outgoing_key(
    table: &TableDescription,
    key: &str,
    constraint: &Constraint,
    state: &ClusterState,
    placement: Option<&Placement>,
) -> Result<(), Refusal> {
    let refuse = |detail: String| {
        Refusal::unsupported(format!(
            "cannot create foreign key constraint \"{}\" on distributed table \"{}\"",
            constraint.name, table.name
        ))
        .detail(detail)
    };
    let (Some(referenced), Some(tail)) = (&constraint.referenced, &constraint.tail) else {
        return Err(refuse("Its definition is of a form that is not known.".into()));
    };
    let holds_key = constraint.columns.iter().flatten().any(|c| c == key);
    // What is referenced keeps its distribution column as long as a key leads there.
    let follows_key =
        referenced.oid == table.oid || state.table(referenced.oid).is_some_and(|partner| !partner.is_reference());
    if holds_key && changes_referencing(tail, key, follows_key) {
        return Err(refuse(
            "ON UPDATE CASCADE, SET NULL and SET DEFAULT would change the distribution column, and so the row's place."
                .into(),
        ));
    }
    let partner_key = if referenced.oid == table.oid {
        key
    } else {
        match state.table(referenced.oid) {
            None => {
                return Err(refuse(format!(
                    "Table \"{}\" is local to the coordinator; the rows referenced must be on the node of those that \
                     reference them.",
                    referenced.name
                ))
                .hint(format!(
                    "Run SELECT create_reference_table('{}') or distribute it by the same key first.",
                    referenced.name
                )));
            }
            Some(partner) if partner.is_reference() => return Ok(()),
            Some(partner) => {
                if placement.is_some_and(|p| p.colocation != Some(partner.colocation)) {
                    return Err(refuse(format!("Table \"{}\" is not in the same colocation group.", referenced.name))
                        .hint(format!("Distribute it with colocate_with => '{}'.", referenced.name)));
                }
                partner.key.as_deref().unwrap_or_default()
            }
        }
    };
    let aligned = constraint
        .columns
        .iter()
        .zip(&referenced.columns)
        .any(|(own, other)| own.as_deref() == Some(key) && other.as_deref() == Some(partner_key));
    if !aligned {
        return Err(refuse("The distribution columns of both tables must stand at the same place in the key.".into()));
    }
    Ok(())
}

/// Whether the referential actions may change the distribution column. `tail` is as `pg_get_constraintdef` prints it.
/// `follows_key`: the column that it references never changes.
fn changes_referencing(tail: &str, key: &str, follows_key: bool) -> bool {
    let mut updates = ["CASCADE", "SET NULL", "SET DEFAULT"].iter().skip(usize::from(follows_key));
    let updates = updates.any(|action| tail.contains(&format!(" ON UPDATE {action}")));
    let deletes = ["SET NULL", "SET DEFAULT"].iter().any(|action| {
        let phrase = format!(" ON DELETE {action}");
        match tail.find(&phrase) {
            None => false,
            // ON DELETE SET NULL (columns): the others stay.
            Some(at) => match tail[at + phrase.len()..].strip_prefix(" (") {
                None => true,
                Some(list) => list.split(')').next().unwrap_or_default().split(", ").any(|c| c == quote_ident(key)),
            },
        }
    });
    updates || deletes
}

// Metadata ------------------------------------------------------------------------------------------------------------

/// What `pgherd.register_table` made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    pub colocation: ColocationId,
    /// The placement epoch that the fence compares.
    pub epoch: i64,
    pub shards: Vec<ShardPlacement>,
}

/// Writes the metadata of a distributed table; gives one row with one column, for [`parse_registered`]. The epoch moves
/// and the routers are told when it commits.
pub fn register_distributed_sql(table: &TableDescription, key: &str, placement: &Placement) -> String {
    let groups: Vec<String> = placement.groups.iter().map(|g| g.to_string()).collect();
    format!(
        "SELECT pgherd.register_table({}, 'h', {}, {}, {}, '{{{}}}')",
        table.oid,
        quote_literal(key),
        placement.colocation.map_or("NULL".to_owned(), |c| c.to_string()),
        placement.is_default,
        groups.join(",")
    )
}

/// The same for a reference table: on the coordinator and every worker.
pub fn register_reference_sql(table: &TableDescription, state: &ClusterState) -> String {
    let mut groups = vec![COORDINATOR_GROUP];
    groups.extend(state.worker_groups());
    let groups: Vec<String> = groups.iter().map(|g| g.to_string()).collect();
    format!("SELECT pgherd.register_table({}, 'n', NULL, NULL, true, '{{{}}}')", table.oid, groups.join(","))
}

pub fn parse_registered(json: &str) -> Result<Registered, DescriptionError> {
    Ok(serde_json::from_str(json)?)
}

/// Removes the metadata of a table, dropped or not.
pub fn unregister_sql(table: Oid) -> String {
    format!("SELECT pgherd.unregister_table({table})")
}

// Coordinator ---------------------------------------------------------------------------------------------------------

/// Once the rows are on the workers: empties the heap and gives it its foreign child and guard.
pub fn coordinator_ddl(table: &TableDescription) -> Vec<String> {
    let name = table.qualified_name();
    let truncate_triggers: Vec<&Trigger> =
        table.triggers.iter().filter(|t| t.on_truncate && t.enabled != 'D').collect();
    let mut out: Vec<String> = Vec::new();
    // The user truncates nothing: their TRUNCATE triggers must not see this.
    // TRUNCATE refuses a table that others reference, so what is surely empty is left alone.
    if table.bytes != Some(0) {
        for trigger in &truncate_triggers {
            out.push(format!("ALTER TABLE ONLY {name} DISABLE TRIGGER {}", quote_ident(&trigger.name)));
        }
        match table.incoming.iter().any(|key| key.oid != table.oid) {
            true => out.push(format!("SELECT pgherd.empty_referenced({})", table.oid)),
            false => out.push(format!("TRUNCATE ONLY {name}")),
        }
        for trigger in &truncate_triggers {
            out.push(format!("ALTER TABLE ONLY {name} {}", enable_clause(trigger)));
        }
    }
    out.push(attach_child_sql(table.oid));
    out
}

/// undistribute_table, before rows come back: the heap takes rows again and the table is no longer in the metadata.
pub fn coordinator_undistribute_ddl(table: &TableDescription) -> Vec<String> {
    vec![detach_child_sql(table.oid), unregister_sql(table.oid)]
}

pub fn attach_child_sql(table: Oid) -> String {
    format!("SELECT pgherd.attach_child({table})")
}

pub fn detach_child_sql(table: Oid) -> String {
    format!("SELECT pgherd.detach_child({table})")
}

/// The columns that rows are copied with: all that are not computed.
pub fn copied_columns(table: &TableDescription) -> Vec<&str> {
    table.columns.iter().filter(|c| c.generated.is_empty()).map(|c| c.name.as_str()).collect()
}

/// The rows of the coordinator's heap, for COPY TO STDOUT.
pub fn local_rows_sql(table: &TableDescription) -> String {
    format!("SELECT {} FROM ONLY {}", ident_list(&copied_columns(table)), table.qualified_name())
}

/// `COPY … FROM STDIN` into one partition on its worker, or (None) into the table under its own name.
pub fn copy_in_sql(table: &TableDescription, shard: Option<ShardId>, options: &str) -> String {
    let name = match shard {
        Some(shard) => qualified(&shard_schema(shard), &table.name),
        None => table.qualified_name(),
    };
    format!("COPY {name} ({}) FROM STDIN {options}", ident_list(&copied_columns(table))).trim_end().to_owned()
}

// Workers -------------------------------------------------------------------------------------------------------------

/// Statements for one worker, in order. Rows are copied between the two lists: indexes, foreign keys, constraints that
/// old rows may break, policies and triggers come after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerDdl {
    pub before_rows: Vec<String>,
    pub after_rows: Vec<String>,
}

impl WorkerDdl {
    /// For a table without rows.
    pub fn all(self) -> Vec<String> {
        let mut all = self.before_rows;
        all.extend(self.after_rows);
        all
    }
}

/// One partition on a worker, or a reference table's copy.
pub(crate) struct Leaf {
    pub(crate) schema: String,
    /// Qualified and quoted.
    pub(crate) name: String,
    pub(crate) shard: Option<ShardPlacement>,
}

/// Makes a distributed table with its shards on the worker that has `shards_here` (perhaps none). `registered`: of this
/// table; `state`: the metadata before or after it was registered.
pub fn worker_ddl(
    table: &TableDescription,
    key: &str,
    registered: &Registered,
    group: GroupId,
    state: &ClusterState,
) -> Result<WorkerDdl, Refusal> {
    let stored: &[ShardPlacement] = if table.is_partitioned() { &[] } else { &registered.shards };
    let shards_here: Vec<ShardPlacement> = stored.iter().copied().filter(|s| s.group == group).collect();
    let modulus = registered.shards.len();
    let parent = table.qualified_name();
    let leaves: Vec<Leaf> = shards_here
        .iter()
        .map(|s| Leaf { schema: s.schema(), name: qualified(&s.schema(), &table.name), shard: Some(*s) })
        .collect();

    let mut ddl = WorkerDdl::default();
    let out = &mut ddl.before_rows;
    out.extend(prerequisite_ddl(&table.prerequisites));
    out.push(open_placement(registered.colocation, registered.epoch));
    let hashed = format!("HASH ({})", quote_ident(key));
    let partition_by = table.partition_by.as_deref().filter(|_| table.is_partitioned()).unwrap_or(&hashed);
    out.push(format!("CREATE TABLE {parent} ({}) PARTITION BY {partition_by}", column_list(table)));
    out.push(owner_sql(&parent, &table.owner));
    if !leaves.is_empty() {
        let ids: Vec<String> = shards_here.iter().map(|s| s.id.to_string()).collect();
        out.push(format!(
            "SELECT pgherd.create_shard_schemas('{{{}}}', {})",
            ids.join(","),
            quote_literal(&table.owner)
        ));
    }
    for (leaf, shard) in leaves.iter().zip(&shards_here) {
        out.push(format!(
            "CREATE {}TABLE {} PARTITION OF {parent} FOR VALUES WITH (MODULUS {modulus}, REMAINDER {}){}",
            unlogged(table),
            leaf.name,
            shard.remainder.unwrap_or_default(),
            storage_clauses(table)
        ));
        out.push(owner_sql(&leaf.name, &table.owner));
        out.extend(column_settings(table, &leaf.name));
    }

    let out = &mut ddl.after_rows;
    for leaf in &leaves {
        out.extend(leaf_constraints(table, &leaf.name));
        out.extend(leaf_indexes(table, leaf));
    }
    // EXCLUDE stays on the partitions: parents have it only from PostgreSQL 17 on, and it holds there already.
    for constraint in table.constraints.iter().filter(|c| matches!(c.kind, 'p' | 'u')) {
        out.push(add_constraint(&parent, constraint));
    }
    for index in made_indexes(table) {
        out.push(create_index(index, &parent));
    }
    out.extend(unchecked_not_nulls(table, &parent));
    for constraint in table.constraints.iter().filter(|c| c.kind == 'c') {
        if constraint.no_inherit {
            out.extend(leaves.iter().map(|leaf| add_constraint(&leaf.name, constraint)));
        } else if !constraint.validated {
            out.push(add_constraint(&parent, constraint));
        }
    }
    for constraint in table.constraints.iter().filter(|c| c.kind == 'f') {
        out.extend(foreign_key_ddl(table, constraint, &parent, &leaves, &registered.shards, state)?);
    }
    out.extend(statistics_ddl(table, &parent, None));
    for leaf in &leaves {
        out.extend(statistics_ddl(table, &leaf.name, Some(&leaf.schema)));
        out.extend(leaf_identity(table, leaf));
    }
    let names: Vec<&str> = std::iter::once(parent.as_str()).chain(leaves.iter().map(|l| l.name.as_str())).collect();
    for name in &names {
        out.extend(grants_ddl(table, name));
        out.extend(policies_ddl(table, name));
    }
    for trigger in table.triggers.iter().filter(|_| !table.to_fire_here) {
        out.push(trigger.definition.clone());
        if trigger.enabled != 'O' {
            let named = names.iter().filter(|n| trigger.row || **n == parent);
            out.extend(named.map(|name| format!("ALTER TABLE {name} {}", enable_clause(trigger))));
        }
    }
    if table.keys_off {
        out.extend(names.iter().map(|name| fire_keys_sql(name, false)));
    }
    // No rules: the coordinator runs what they make of a statement.
    if table.is_changed_here(true) {
        out.push(stale_guard(table));
    }
    Ok(ddl)
}

/// On a worker: triggers of foreign keys of a table, and to it, are enabled or not.
pub(crate) fn fire_keys_sql(name: &str, fires: bool) -> String {
    format!("SELECT pgherd.fire_keys({}, {fires})", quote_literal(name))
}

/// On a worker, the trigger by which a router hears that it does not know yet that the coordinator runs what changes
/// the table. Who knows says so (`pgherd.changes`); what keys of other tables do is no statement of a router's.
pub(crate) fn stale_guard(table: &TableDescription) -> String {
    format!(
        "CREATE TRIGGER {STALE_GUARD} BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW \
         WHEN (pg_catalog.pg_trigger_depth() = 0 AND coalesce(pg_catalog.strpos( \
         pg_catalog.current_setting('pgherd.changes', true), ',{},'), 0) = 0) EXECUTE FUNCTION pgherd.refuse_stale()",
        table.qualified_name(),
        table.oid
    )
}

/// Makes a table that a worker has a partition of another one that it has.
pub fn attach_partition_sql(parent: &str, table: &TableDescription) -> String {
    format!(
        "ALTER TABLE {parent} ATTACH PARTITION {} {}",
        table.qualified_name(),
        table.bound.as_deref().unwrap_or("DEFAULT")
    )
}

/// The table anew on the coordinator, without rows, after the old one was set aside: partitioned further by its key, so
/// that it can have a foreign child, or (None) as an ordinary table.
pub fn coordinator_table_ddl(table: &TableDescription, key: Option<&str>) -> Vec<String> {
    let name = table.qualified_name();
    let mut parts: Vec<String> = table.columns.iter().map(|column| column_text(column, true)).collect();
    parts.extend(check_clauses(table));
    let parts = parts.join(", ");
    let mut out = match key {
        Some(key) => vec![format!("CREATE TABLE {name} ({parts}) PARTITION BY HASH ({})", quote_ident(key))],
        None => vec![format!("CREATE {}TABLE {name} ({parts}){}", unlogged(table), storage_clauses(table))],
    };
    out.push(owner_sql(&name, &table.owner));
    out.extend(column_settings(table, &name));
    let leaf = Leaf { schema: table.schema.clone(), name: name.clone(), shard: None };
    out.extend(leaf_constraints(table, &name));
    out.extend(unchecked_not_nulls(table, &name));
    out.extend(leaf_indexes(table, &leaf));
    for constraint in &table.constraints {
        if constraint.kind == 'f' || (constraint.kind == 'c' && !constraint.validated) {
            out.push(add_constraint(&name, constraint));
        }
    }
    out.extend(statistics_ddl(table, &name, None));
    out.extend(grants_ddl(table, &name));
    out.extend(policies_ddl(table, &name));
    out
}

pub fn set_aside_sql(table: Oid) -> String {
    format!("SELECT pgherd.set_aside({table})")
}

/// The schema of what was set aside.
pub fn aside_schema(table: Oid) -> String {
    format!("pgherd_aside_{table}")
}

pub fn replace_aside_sql(aside: Oid, table: &TableDescription, owned: &str, is_leaf: bool) -> String {
    format!(
        "SELECT pgherd.replace_aside({aside}, {}, {}, {is_leaf})",
        quote_literal(&table.qualified_name()),
        quote_literal(owned)
    )
}

pub fn drop_aside_sql(table: Oid) -> String {
    format!("SELECT pgherd.drop_aside({table})")
}

/// A statement of [`worker_ddl`] and its like that only routers may run. It comes before all others.
pub fn is_own(sql: &str) -> bool {
    const CALLS: [&str; 3] = ["open_placement(", "change_placement(", "create_shard_schemas("];
    sql.strip_prefix("SELECT pgherd.").is_some_and(|call| CALLS.iter().any(|own| call.starts_with(own)))
}

/// A new group starts at epoch 1; one that has been moved has another.
fn open_placement(colocation: ColocationId, epoch: i64) -> String {
    match epoch {
        1 => format!("SELECT pgherd.open_placement({colocation})"),
        moved => crate::schema::change_placement_sql(colocation, moved),
    }
}

/// Makes a reference table's copy on a worker, in a colocation group that was not changed since it was made.
pub fn reference_ddl(table: &TableDescription, colocation: ColocationId) -> WorkerDdl {
    reference_ddl_at(table, colocation, 1)
}

/// The same for a group at a later placement epoch (a node that joins).
pub fn reference_ddl_at(table: &TableDescription, colocation: ColocationId, epoch: i64) -> WorkerDdl {
    let name = table.qualified_name();
    let leaf = Leaf { schema: table.schema.clone(), name: name.clone(), shard: None };
    let mut ddl = WorkerDdl::default();
    let out = &mut ddl.before_rows;
    out.extend(prerequisite_ddl(&table.prerequisites));
    out.push(open_placement(colocation, epoch));
    out.push(format!("CREATE {}TABLE {name} ({}){}", unlogged(table), column_list(table), storage_clauses(table)));
    out.push(owner_sql(&name, &table.owner));
    out.extend(column_settings(table, &name));
    let out = &mut ddl.after_rows;
    out.extend(leaf_constraints(table, &name));
    out.extend(unchecked_not_nulls(table, &name));
    out.extend(leaf_indexes(table, &leaf));
    for constraint in &table.constraints {
        if constraint.kind == 'f' || (constraint.kind == 'c' && (constraint.no_inherit || !constraint.validated)) {
            out.push(add_constraint(&name, constraint));
        }
    }
    out.extend(statistics_ddl(table, &name, None));
    out.extend(leaf_identity(table, &leaf));
    out.extend(grants_ddl(table, &name));
    out.extend(policies_ddl(table, &name));
    if table.keys_off {
        out.push(fire_keys_sql(&name, false));
    }
    // No triggers and no rules: they run on the coordinator, and the workers get the rows as they are then.
    ddl
}

/// Removes a table and the schemas of its shards from a worker. Nothing needs to be there any more.
pub fn drop_ddl(schema: &str, name: &str, shards_here: &[ShardId]) -> Vec<String> {
    let mut out = vec![format!("DROP TABLE IF EXISTS {} CASCADE", qualified(schema, name))];
    if !shards_here.is_empty() {
        let schemas: Vec<String> = shards_here.iter().map(|s| shard_schema(*s)).collect();
        out.push(format!("DROP SCHEMA IF EXISTS {} CASCADE", schemas.join(", ")));
    }
    out
}

/// Makes what a table needs and a server may lack, each object after those it depends on.
pub fn prerequisite_ddl(prerequisites: &[Prerequisite]) -> Vec<String> {
    in_dependency_order(prerequisites).into_iter().filter_map(guarded).collect()
}

/// Depth first over `depends_on`. Objects that depend on each other come in the order given.
fn in_dependency_order(prerequisites: &[Prerequisite]) -> Vec<&Prerequisite> {
    let by_id: HashMap<&str, &Prerequisite> = prerequisites.iter().map(|p| (p.id.as_str(), p)).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut out = Vec::new();
    for start in prerequisites {
        // (object, how many of its dependencies have been entered)
        let mut path: Vec<(&Prerequisite, usize)> = Vec::new();
        if seen.insert(&start.id) {
            path.push((start, 0));
        }
        while let Some((object, entered)) = path.last_mut() {
            match object.depends_on.get(*entered) {
                Some(needed) => {
                    *entered += 1;
                    if let Some(needed) = by_id.get(needed.as_str())
                        && seen.insert(&needed.id)
                    {
                        path.push((needed, 0));
                    }
                }
                None => {
                    out.push(*object);
                    path.pop();
                }
            }
        }
    }
    out
}

/// `DO` that makes the object where it is missing: plain IF NOT EXISTS would ask for the right to make it all the same.
fn guarded(prerequisite: &Prerequisite) -> Option<String> {
    let ddl: Vec<&String> = prerequisite.ddl.as_ref()?.iter().flatten().collect();
    let statements: String = ddl.iter().map(|statement| format!(" EXECUTE {};", quote_literal(statement))).collect();
    let guard = &prerequisite.guard;
    Some(if prerequisite.kind == "function" {
        // The body may name what is not there yet, or only under the user's search path.
        unchecked_bodies(&format!("IF {guard} THEN{UNCHECK}{statements}{CHECK_AGAIN} END IF;"))
    } else {
        do_block(&format!("BEGIN IF {guard} THEN{statements} END IF; END"))
    })
}

const UNCHECK: &str = " PERFORM pg_catalog.set_config('check_function_bodies', 'off', true);";
const CHECK_AGAIN: &str = " PERFORM pg_catalog.set_config('check_function_bodies', checked, true);";

fn unchecked_bodies(statements: &str) -> String {
    do_block(&format!(
        "DECLARE checked text := pg_catalog.current_setting('check_function_bodies'); BEGIN {statements} END"
    ))
}

/// A function's definition for a worker: its body was checked on the coordinator, and names what workers do not have.
pub fn replace_function_sql(definition: &str) -> String {
    unchecked_bodies(&format!("{UNCHECK} EXECUTE {};{CHECK_AGAIN}", quote_literal(definition)))
}

fn do_block(body: &str) -> String {
    let mut tag = "$pgherd$".to_owned();
    while body.contains(&tag) {
        tag = format!("{}_$", &tag[..tag.len() - 1]);
    }
    format!("DO {tag}{body}{tag}")
}

/// Columns and CHECK constraints. No sequences: identity and serial columns get their values on the coordinator.
fn column_list(table: &TableDescription) -> String {
    let mut parts: Vec<String> = table.columns.iter().map(column_definition).collect();
    parts.extend(check_clauses(table));
    parts.join(", ")
}

/// NOT NULL … NOT VALID, as ALTER TABLE takes it.
pub(crate) fn unchecked_not_null(column: &Column) -> Option<String> {
    let name = column.not_null_name.as_ref().filter(|_| column.not_null_unchecked)?;
    Some(format!("ADD CONSTRAINT {} NOT NULL {} NOT VALID", quote_ident(name), quote_ident(&column.name)))
}

fn unchecked_not_nulls(table: &TableDescription, name: &str) -> Vec<String> {
    table.columns.iter().filter_map(unchecked_not_null).map(|action| format!("ALTER TABLE {name} {action}")).collect()
}

fn check_clauses(table: &TableDescription) -> impl Iterator<Item = String> {
    table
        .constraints
        .iter()
        .filter(|c| c.kind == 'c' && c.validated && !c.no_inherit)
        .map(|c| format!("CONSTRAINT {} {}", quote_ident(&c.name), c.definition))
}

/// A column as CREATE TABLE and ADD COLUMN take it, for a worker.
pub fn column_definition(column: &Column) -> String {
    column_text(column, false)
}

/// `defaults`: those that only the coordinator evaluates as well.
fn column_text(column: &Column, defaults: bool) -> String {
    let mut out = format!("{} {}", quote_ident(&column.name), column.type_name);
    if let Some(collation) = &column.collation {
        out.push_str(&format!(" COLLATE {collation}"));
    }
    if let Some(expression) = &column.generation_expression {
        let kind = if column.generated == "v" { "VIRTUAL" } else { "STORED" };
        out.push_str(&format!(" GENERATED ALWAYS AS ({expression}) {kind}"));
    } else if let Some(default) = column.default.as_ref().filter(|_| defaults || !column.default_on_coordinator) {
        out.push_str(&format!(" DEFAULT {default}"));
    }
    if column.not_null && !column.not_null_unchecked {
        if let Some(name) = &column.not_null_name {
            out.push_str(&format!(" CONSTRAINT {}", quote_ident(name)));
        }
        out.push_str(" NOT NULL");
    }
    out
}

fn unlogged(table: &TableDescription) -> &'static str {
    if table.persistence == 'u' { "UNLOGGED " } else { "" }
}

/// ` USING access_method WITH (options)`, as far as they are not the default.
fn storage_clauses(table: &TableDescription) -> String {
    let mut out = String::new();
    if let Some(method) = table.access_method.as_ref().filter(|m| *m != "heap") {
        out.push_str(&format!(" USING {}", quote_ident(method)));
    }
    let own = table.options.iter().flatten().map(|o| option_text("", o));
    let toast = table.toast_options.iter().flatten().map(|o| option_text("toast.", o));
    let options: Vec<String> = own.chain(toast).collect();
    if !options.is_empty() {
        out.push_str(&format!(" WITH ({})", options.join(", ")));
    }
    out
}

fn option_text(prefix: &str, option: &str) -> String {
    match option.split_once('=') {
        Some((name, value)) => format!("{prefix}{}={}", quote_ident(name), quote_literal(value)),
        None => format!("{prefix}{}", quote_ident(option)),
    }
}

pub(crate) fn options_text(options: &[String]) -> String {
    options.iter().map(|o| option_text("", o)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn owner_sql(name: &str, owner: &str) -> String {
    format!("ALTER TABLE {name} OWNER TO {}", quote_ident(owner))
}

/// What partitions do not take over from a parent, or a parent cannot be told.
fn column_settings(table: &TableDescription, name: &str) -> Vec<String> {
    let mut actions = Vec::new();
    for column in &table.columns {
        let alter = format!("ALTER COLUMN {}", quote_ident(&column.name));
        if let Some(storage) = &column.storage {
            actions.push(format!("{alter} SET STORAGE {storage}"));
        }
        if let Some(compression) = &column.compression {
            actions.push(format!("{alter} SET COMPRESSION {compression}"));
        }
        if let Some(target) = column.statistics {
            actions.push(format!("{alter} SET STATISTICS {target}"));
        }
        if let Some(options) = &column.options {
            actions.push(format!("{alter} SET ({})", options_text(options)));
        }
    }
    if actions.is_empty() { vec![] } else { vec![format!("ALTER TABLE ONLY {name} {}", actions.join(", "))] }
}

pub fn add_constraint(name: &str, constraint: &Constraint) -> String {
    format!("ALTER TABLE {name} ADD CONSTRAINT {} {}", quote_ident(&constraint.name), constraint.definition)
}

fn leaf_constraints(table: &TableDescription, leaf: &str) -> Vec<String> {
    table.constraints.iter().filter(|c| matches!(c.kind, 'p' | 'u' | 'x')).map(|c| add_constraint(leaf, c)).collect()
}

fn made_indexes(table: &TableDescription) -> impl Iterator<Item = &Index> {
    table.indexes.iter().filter(|i| i.valid && i.tail.is_some())
}

pub(crate) fn create_index(index: &Index, on: &str) -> String {
    format!(
        "CREATE {}INDEX {} ON {on} {}",
        if index.unique { "UNIQUE " } else { "" },
        quote_ident(&index.name),
        index.tail.as_deref().unwrap_or_default()
    )
}

fn leaf_indexes(table: &TableDescription, leaf: &Leaf) -> Vec<String> {
    let mut out = Vec::new();
    for index in made_indexes(table) {
        out.push(create_index(index, &leaf.name));
        for (column, target) in index.statistics.iter().flatten() {
            out.push(format!(
                "ALTER INDEX {} ALTER COLUMN {column} SET STATISTICS {target}",
                qualified(&leaf.schema, &index.name)
            ));
        }
    }
    out
}

/// Index options of constraints, replica identity and the index to cluster on.
fn leaf_identity(table: &TableDescription, leaf: &Leaf) -> Vec<String> {
    let mut out = Vec::new();
    for constraint in &table.constraints {
        if let Some(options) = &constraint.index_options {
            out.push(format!(
                "ALTER INDEX {} SET ({})",
                qualified(&leaf.schema, &constraint.name),
                options_text(options)
            ));
        }
    }
    let identity = match (table.replica_identity, &table.replica_identity_index) {
        // An index that was dropped leaves nothing to identify rows by.
        ('n', _) | ('i', None) => Some("NOTHING".to_owned()),
        ('f', _) => Some("FULL".to_owned()),
        ('i', Some(index)) => Some(format!("USING INDEX {}", quote_ident(index))),
        _ => None,
    };
    if let Some(identity) = identity {
        out.push(format!("ALTER TABLE ONLY {} REPLICA IDENTITY {identity}", leaf.name));
    }
    let constraints = table.constraints.iter().filter(|c| c.clustered).map(|c| &c.name);
    for index in constraints.chain(made_indexes(table).filter(|i| i.clustered).map(|i| &i.name)) {
        out.push(format!("ALTER TABLE ONLY {} CLUSTER ON {}", leaf.name, quote_ident(index)));
    }
    out
}

/// A foreign key to a reference table is the parent's (one trigger on the referenced side); one to a colocated table
/// goes from partition to partition; so does what a parent refuses (NOT VALID, before PostgreSQL 18, which is what lets
/// users write it for a partitioned table).
pub(crate) fn foreign_key_ddl(
    table: &TableDescription,
    constraint: &Constraint,
    parent: &str,
    leaves: &[Leaf],
    own_shards: &[ShardPlacement],
    state: &ClusterState,
) -> Result<Vec<String>, Refusal> {
    let (Some(referenced), Some(head), Some(tail)) = (&constraint.referenced, &constraint.head, &constraint.tail)
    else {
        return Err(Refusal::unsupported(format!(
            "foreign key \"{}\" is of a form that is not known",
            constraint.name
        )));
    };
    let partner_shards = if referenced.oid == table.oid {
        Some(own_shards)
    } else {
        state.table(referenced.oid).filter(|t| !t.is_reference()).map(|t| t.shards())
    };
    let Some(partner_shards) = partner_shards else {
        return Ok(match constraint.validated {
            // Comes with the parent's.
            _ if constraint.inherited => vec![],
            true => vec![add_constraint(parent, constraint)],
            false if table.is_partitioned() => vec![add_constraint(parent, constraint)],
            false => leaves.iter().map(|leaf| add_constraint(&leaf.name, constraint)).collect(),
        });
    };
    let mut columns: Vec<String> = referenced.columns.iter().flatten().map(|column| quote_ident(column)).collect();
    if let Some(last) = columns.last_mut().filter(|_| referenced.period) {
        last.insert_str(0, "PERIOD ");
    }
    let columns = columns.join(", ");
    let mut out = Vec::new();
    for leaf in leaves {
        let remainder = leaf.shard.and_then(|s| s.remainder);
        let Some(partner) = partner_shards.iter().find(|s| s.remainder == remainder) else {
            return Err(Refusal::new(
                "XX000",
                format!("table \"{}\" has no shard of remainder {remainder:?}", referenced.name),
            ));
        };
        out.push(format!(
            "ALTER TABLE {} ADD CONSTRAINT {} {head} REFERENCES {}({columns}){tail}",
            leaf.name,
            quote_ident(&constraint.name),
            qualified(&partner.schema(), &referenced.name),
        ));
    }
    Ok(out)
}

/// Statistics objects: of the table in their own schema, of a partition in the shard's.
pub(crate) fn statistics_ddl(table: &TableDescription, name: &str, shard_schema: Option<&str>) -> Vec<String> {
    table
        .statistics
        .iter()
        .map(|s| {
            let object = qualified(shard_schema.unwrap_or(&s.schema), &s.name);
            format!("CREATE STATISTICS {object}{} FROM {name}", s.middle)
        })
        .collect()
}

/// Privileges that differ from the default, on the table or one of its partitions.
pub(crate) fn grants_ddl(table: &TableDescription, name: &str) -> Vec<String> {
    let mut out = Vec::new();
    if let Some(grants) = &table.grants {
        let (own, others): (Vec<&Grant>, Vec<&Grant>) =
            grants.iter().partition(|g| g.grantee.as_deref() == Some(table.owner.as_str()));
        if !table.owner_has_all {
            out.push(format!("REVOKE ALL ON TABLE {name} FROM {}", quote_ident(&table.owner)));
            out.extend(grant_statements(&own, name, None));
        }
        out.extend(grant_statements(&others, name, None));
    }
    for column in &table.columns {
        if let Some(grants) = &column.grants {
            out.extend(grant_statements(&grants.iter().collect::<Vec<_>>(), name, Some(&column.name)));
        }
    }
    out
}

/// One GRANT per grantee, in the order in which grantees come.
pub(crate) fn grant_statements(grants: &[&Grant], name: &str, column: Option<&str>) -> Vec<String> {
    let mut grouped: Vec<(&Grant, Vec<String>)> = Vec::new();
    for grant in grants {
        let privilege = match column {
            Some(column) => format!("{} ({})", grant.privilege, quote_ident(column)),
            None => grant.privilege.clone(),
        };
        match grouped.iter_mut().find(|(g, _)| g.grantee == grant.grantee && g.grantable == grant.grantable) {
            Some((_, privileges)) => privileges.push(privilege),
            None => grouped.push((grant, vec![privilege])),
        }
    }
    grouped
        .into_iter()
        .map(|(grant, privileges)| {
            format!(
                "GRANT {} ON TABLE {name} TO {}{}",
                privileges.join(", "),
                role(grant.grantee.as_deref()),
                if grant.grantable { " WITH GRANT OPTION" } else { "" }
            )
        })
        .collect()
}

fn role(name: Option<&str>) -> String {
    name.map_or("PUBLIC".to_owned(), quote_ident)
}

/// Row security of the table or one of its partitions, which does not inherit it.
fn policies_ddl(table: &TableDescription, name: &str) -> Vec<String> {
    let mut out: Vec<String> = table.policies.iter().map(|p| create_policy(p, name)).collect();
    if table.row_security {
        out.push(format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"));
    }
    if table.force_row_security {
        out.push(format!("ALTER TABLE {name} FORCE ROW LEVEL SECURITY"));
    }
    out
}

pub(crate) fn create_policy(policy: &Policy, name: &str) -> String {
    let roles: Vec<String> = policy.roles.iter().map(|r| role(r.as_deref())).collect();
    let mut out = format!(
        "CREATE POLICY {} ON {name} AS {} FOR {} TO {}",
        quote_ident(&policy.name),
        if policy.permissive { "PERMISSIVE" } else { "RESTRICTIVE" },
        policy.command,
        roles.join(", ")
    );
    if let Some(using) = &policy.using {
        out.push_str(&format!(" USING ({using})"));
    }
    if let Some(check) = &policy.with_check {
        out.push_str(&format!(" WITH CHECK ({check})"));
    }
    out
}

/// `ENABLE TRIGGER name` in the variant that gives the trigger its state.
pub(crate) fn enable_clause(trigger: &Trigger) -> String {
    let verb = match trigger.enabled {
        'D' => "DISABLE",
        'R' => "ENABLE REPLICA",
        'A' => "ENABLE ALWAYS",
        _ => "ENABLE",
    };
    format!("{verb} TRIGGER {}", quote_ident(&trigger.name))
}
