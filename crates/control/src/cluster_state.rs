//! The metadata as control operations see it: nodes, colocation groups, tables with their shards. Read fresh inside the
//! operation's own transaction (`pgherd.cluster_state()`), not from a router's snapshot.

use serde::{Deserialize, Serialize};

use crate::describe::DescriptionError;
use pgherd_catalog::{COORDINATOR_GROUP, ColocationId, GroupId, NodeId, Oid, ShardId};

/// Gives one row with one column: the JSON for [`parse_cluster_state`].
pub fn cluster_state_query() -> &'static str {
    "SELECT pgherd.cluster_state()"
}

pub fn parse_cluster_state(json: &str) -> Result<ClusterState, DescriptionError> {
    Ok(serde_json::from_str(json)?)
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
