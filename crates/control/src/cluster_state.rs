//! The metadata as control operations see it: nodes, colocation groups, tables with their shards. A router has it of
//! the catalog that it holds, where that is at the epoch that the operation's own transaction sees; the coordinator
//! tells the same (`pgherd.cluster_state()`).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::describe::DescriptionError;
use pgherd_catalog::{COORDINATOR_GROUP, ColocationId, GroupId, NodeId, Oid, ShardId, Snapshot, Table, TableKind};

/// Gives one row with one column: the JSON for [`parse_cluster_state`].
pub fn cluster_state_query() -> &'static str {
    "SELECT pgherd.cluster_state()"
}

pub fn parse_cluster_state(json: &str) -> Result<ClusterState, DescriptionError> {
    Ok(serde_json::from_str(json)?)
}

/// The epoch, and of each table what [`TableName`] has. A row without a table where there is none.
pub const NAMES: &str = "SELECT e.epoch, t.* FROM pgherd.epoch e LEFT JOIN ( \
     SELECT c.oid, n.nspname, c.relname, CASE WHEN c.relispartition THEN \
         (SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) END, \
         c.relkind = 'p' AND NOT EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = c.oid) \
     FROM pgherd.pg_dist_partition p JOIN pg_catalog.pg_class c ON c.oid = p.logicalrelid \
         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace) t ON true";

/// What PostgreSQL's own catalogs tell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub parent: Option<Oid>,
    pub is_partitioned: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterState {
    pub epoch: i64,
    pub nodes: Vec<NodeState>,
    pub colocations: Vec<Colocation>,
    pub tables: Vec<DistributedTable>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    pub id: NodeId,
    pub group: GroupId,
    pub host: String,
    pub port: i32,
    pub is_active: bool,
    pub role: String,
    pub should_have_shards: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Colocation {
    pub id: ColocationId,
    pub shard_count: u32,
    /// -1: reference tables.
    pub replication_factor: i32,
    /// Of the base type where the column's is a domain.
    pub key_type: Oid,
    pub key_collation: Oid,
    /// What the fence compares.
    pub epoch: i64,
    /// Tables created with `colocate_with => 'default'` may join.
    pub is_default: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DistributedTable {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// `h` distributed, `n` reference.
    pub method: char,
    pub key: Option<String>,
    pub colocation: ColocationId,
    /// Distributed: in remainder order. Reference: the one shard, once per group.
    pub shards: Option<Vec<ShardPlacement>>,
    /// Partitioned by the user: its shards are names only.
    #[serde(default)]
    pub is_partitioned: bool,
    /// The table that it is a partition of.
    #[serde(default)]
    pub parent: Option<Oid>,
}

impl DistributedTable {
    /// `groups`: those that have copies of reference tables.
    fn of(table: &Table, groups: &[GroupId]) -> DistributedTable {
        let shards = match &table.kind {
            TableKind::Distributed { shards, .. } => {
                let shard = |s: &pgherd_catalog::Shard| ShardPlacement {
                    id: s.id,
                    remainder: Some(s.remainder),
                    group: s.group,
                };
                shards.iter().map(shard).collect()
            }
            TableKind::Reference { shard } => {
                groups.iter().map(|group| ShardPlacement { id: *shard, remainder: None, group: *group }).collect()
            }
        };
        DistributedTable {
            oid: table.oid,
            schema: table.schema.clone(),
            name: table.name.clone(),
            method: if table.is_reference() { 'n' } else { 'h' },
            key: table.key_column().map(|column| column.name.clone()),
            colocation: table.colocation,
            shards: Some(shards),
            is_partitioned: table.is_partitioned,
            parent: table.parent,
        }
    }

    pub fn shards(&self) -> &[ShardPlacement] {
        self.shards.as_deref().unwrap_or_default()
    }

    /// The shards that a group holds.
    pub fn shards_of(&self, group: GroupId) -> Vec<ShardPlacement> {
        self.shards().iter().copied().filter(|s| s.group == group).collect()
    }

    pub fn is_reference(&self) -> bool {
        self.method == 'n'
    }

    /// The shards that workers have tables for.
    pub fn stored_shards(&self) -> &[ShardPlacement] {
        if self.is_partitioned { &[] } else { self.shards() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPlacement {
    pub id: ShardId,
    /// None: a reference table's.
    pub remainder: Option<u32>,
    pub group: GroupId,
}

impl ShardPlacement {
    /// The schema of this shard's partition on its worker.
    pub fn schema(&self) -> String {
        shard_schema(self.id)
    }
}

pub(crate) fn shard_schema(shard: ShardId) -> String {
    format!("pgherd_{shard}")
}

impl ClusterState {
    pub fn of(catalog: &Snapshot) -> ClusterState {
        let node = |n: &pgherd_catalog::Node| NodeState {
            id: n.id,
            group: n.group,
            host: n.host.clone(),
            port: n.port.into(),
            is_active: n.is_active,
            // It has no others.
            role: "primary".to_owned(),
            should_have_shards: n.should_have_shards,
        };
        let mut colocations: Vec<Colocation> = catalog
            .colocations
            .iter()
            .map(|(id, c)| Colocation {
                id: *id,
                shard_count: c.shard_count,
                replication_factor: c.replication_factor,
                key_type: c.key_type,
                key_collation: c.key_collation,
                epoch: c.placement_epoch,
                is_default: c.is_default,
            })
            .collect();
        colocations.sort_unstable_by_key(|c| c.id);
        let mut state = ClusterState {
            epoch: catalog.epoch,
            nodes: catalog.nodes.iter().map(node).collect(),
            colocations,
            tables: Vec::new(),
        };
        let groups = state.groups(|_| true);
        state.tables = catalog.by_oid.values().map(|table| DistributedTable::of(table, &groups)).collect();
        state.tables.sort_unstable_by_key(|table| table.oid);
        state
    }

    /// The tables as they are called now; others are gone.
    pub fn rename(&mut self, names: Vec<TableName>) {
        let mut names: HashMap<Oid, TableName> = names.into_iter().map(|name| (name.oid, name)).collect();
        self.tables.retain_mut(|table| match names.remove(&table.oid) {
            Some(TableName { schema, name, parent, is_partitioned, .. }) => {
                (table.schema, table.name, table.parent, table.is_partitioned) = (schema, name, parent, is_partitioned);
                true
            }
            None => false,
        });
    }

    pub fn table(&self, oid: Oid) -> Option<&DistributedTable> {
        self.tables.iter().find(|t| t.oid == oid)
    }

    /// A table and those below it by partitioning, each after its parent.
    pub fn tree(&self, root: Oid) -> Vec<&DistributedTable> {
        let mut out: Vec<&DistributedTable> = self.table(root).into_iter().collect();
        let mut at = 0;
        while let Some(parent) = out.get(at).map(|t| t.oid) {
            out.extend(self.tables.iter().filter(|t| t.parent == Some(parent)));
            at += 1;
        }
        out
    }

    pub fn colocation(&self, id: ColocationId) -> Option<&Colocation> {
        self.colocations.iter().find(|c| c.id == id)
    }

    /// Active primaries other than the coordinator, in group order: every one has the copies of reference tables.
    pub fn worker_groups(&self) -> Vec<GroupId> {
        self.groups(|n| n.group != COORDINATOR_GROUP)
    }

    /// The groups that new shards go to. Never the coordinator: its table of that name is the schema of record.
    pub fn shard_groups(&self) -> Vec<GroupId> {
        self.groups(|n| n.should_have_shards && n.group != COORDINATOR_GROUP)
    }

    fn groups(&self, wanted: impl Fn(&NodeState) -> bool) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> =
            self.nodes.iter().filter(|n| n.is_active && n.role == "primary" && wanted(n)).map(|n| n.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}
