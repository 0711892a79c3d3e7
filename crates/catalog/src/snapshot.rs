//! The catalog of one database as plain data. Everything here is loaded from the coordinator in one transaction.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use crate::chunked::Chunked;
use crate::hash::KeyType;
use crate::names::NameSet;

/// Object id, as the coordinator numbers it. Workers number their objects differently.
pub type Oid = u32;

/// Objects that users made have numbers from here on, and other ones on other servers.
pub const FIRST_USER_OID: Oid = 16_384;
/// `pg_dist_node.nodeid`.
pub type NodeId = i32;
/// `pg_dist_node.groupid`: a primary with its replicas. Group 0 is the coordinator.
pub type GroupId = i32;
/// `pg_dist_colocation.colocationid`. 0 means none.
pub type ColocationId = i32;
/// `pg_dist_shard.shardid`.
pub type ShardId = i64;

const INTERVAL_OID: Oid = 1186;

/// The group of the coordinator.
pub const COORDINATOR_GROUP: GroupId = 0;
/// The schema of our own objects, on every node.
pub const OWN_SCHEMA: &str = "pgherd";

/// Which snapshot something was worked out under. Of the snapshot it keeps the address alone, which no other gets as
/// long.
#[derive(Debug, Clone)]
pub struct SnapshotId(Weak<Snapshot>);

impl SnapshotId {
    pub fn of(snapshot: &Arc<Snapshot>) -> SnapshotId {
        SnapshotId(Arc::downgrade(snapshot))
    }

    pub fn is(&self, snapshot: &Arc<Snapshot>) -> bool {
        self.0.as_ptr() == Arc::as_ptr(snapshot)
    }
}

impl PartialEq for SnapshotId {
    fn eq(&self, other: &SnapshotId) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for SnapshotId {}

impl Hash for SnapshotId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// One database of the cluster at one epoch.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Grows with each change of metadata.
    pub epoch: i64,
    pub nodes: Vec<Node>,
    pub colocations: HashMap<ColocationId, Colocation>,
    /// By schema, then name: distributed and reference tables only. What is not here is local to the coordinator.
    pub tables: HashMap<String, HashMap<String, Arc<Table>>>,
    pub by_oid: HashMap<Oid, Arc<Table>>,
    /// Every other relation that users may name (local tables, views, foreign tables, …), so that an unqualified name
    /// is resolved through the search path as PostgreSQL does: [`qualified`].
    pub other_relations: NameSet,
    /// Local tables of which a read runs nothing that its statement does not show, and all of whose columns are of
    /// built-in types: by [`qualified`] name.
    pub shown_relations: NameSet,
    /// Those of them to which that is true of a write as well, wherever it runs and in whatever transaction.
    pub shown_targets: NameSet,
    /// The same, but that their columns draw from sequences.
    pub drawing_targets: NameSet,
    /// What stands for `*` of pg_class where the catalog itself is read and some table is a leaf; empty where none is.
    pub class_columns: String,
    /// Names of functions and aggregates outside `pg_catalog` (any schema): a call of one of these is not built in.
    pub user_functions: NameSet,
    /// Those of them that a call may mean whose values are all of built-in types: there is no built-in function of the name,
    /// or one of the user's takes such values.
    pub reached_functions: NameSet,
    /// Names of functions whose bodies take samples of distributed tables, and were not written anew for that.
    pub sampling_functions: NameSet,
    /// Names of functions whose bodies, or those of functions that they name, leave something on their connection:
    /// values drawn from sequences, locks.
    pub leaving_functions: NameSet,
    /// Settings that bodies of functions may change, as far as they are named there.
    pub body_settings: NameSet,
    /// Names of operators defined outside `pg_catalog`.
    pub user_operators: NameSet,
    /// Columns of local tables whose defaults draw from sequences, by the table's [`qualified`] name.
    pub local_draws: Chunked<String, Arc<[LocalDraw]>>,
    /// As `reached_functions`.
    pub reached_operators: NameSet,
    /// See [`Snapshot::settle_names`].
    pub among_built_in: Option<Arc<Snapshot>>,
    /// Names of types outside `pg_catalog` and of casts' targets: a cast to one is not built in.
    pub user_types: NameSet,
    /// Names of relations with a rule other than a view's own: a write to one may run anything, and return rows.
    pub ruled_relations: NameSet,
    /// True when some relation of the coordinator's own, or a reference table, has an AFTER trigger of the user's.
    pub after_triggers: bool,
    /// Tables with triggers of the user's for UPDATE or DELETE that run before a row is changed, or for a statement.
    pub changing_triggers: HashSet<Oid>,
    /// Numbers of distributed tables whose changes the coordinator runs, each between commas: workers refuse whoever
    /// does not know of them. Empty: there are none.
    pub changed_here: String,
    /// Those with triggers that fire on the coordinator before a row is updated or deleted.
    pub firing_before: HashSet<Oid>,
    /// Some function of the user's that is not volatile reads tables: it sees what the statement that calls it sees.
    pub has_stable_readers: bool,
    /// Sequences of which a body, a view or a default may ask what was drawn last: the last part of each name, in lower
    /// case. An empty one: of any.
    pub asked_inside: NameSet,
    /// A body, a view or a default reads the transaction's time where only the coordinator can tell it.
    pub time_is_read_inside: bool,
    /// Names of functions whose bodies have SET CONSTRAINTS.
    pub constraining_functions: NameSet,
    /// Some distributed table has a constraint that can be deferred.
    pub has_deferrable: bool,
    /// Some trigger of the user's on the coordinator can be deferred.
    pub has_deferred_triggers: bool,
    /// Names of relations that are not distributed a write to which may change others: views, foreign tables, and those
    /// with triggers, rules or keys that cascade.
    pub passing_on: NameSet,
    /// Names of views behind which volatile functions of users' are called.
    pub calling_views: NameSet,
    /// Names of relations (not distributed ones), types and functions whose columns or values may have a collation that
    /// is not the database's default.
    pub collated: NameSet,
    /// Which tables' rows are changed with those of another, by foreign keys to it.
    pub cascades: HashMap<Oid, Vec<Cascade>>,
    /// Columns from and to which foreign keys between distributed tables lead, by table.
    pub key_columns: HashMap<Oid, HashSet<String>>,
    /// Names of built-in functions whose every overload is immutable.
    pub immutable_functions: NameSet,
    /// Names of built-in functions with a volatile overload.
    pub volatile_functions: NameSet,
    /// The same of other functions, which see what a statement that calls them has changed so far.
    pub volatile_user_functions: NameSet,
    /// Names of built-in aggregates (`prokind = 'a'`), any schema.
    pub aggregates: NameSet,
    /// Names of built-in window functions (`prokind = 'w'`).
    pub window_functions: NameSet,
    /// Names of functions (any schema) that return a set.
    pub set_returning_functions: NameSet,
    /// Numbers on the coordinator of the roles that own distributed tables, by table.
    pub owners: HashMap<Oid, Oid>,
    /// Views of users' that read catalogs and nothing else, by [`qualified`] name.
    pub catalog_views: HashMap<String, CatalogView>,
    /// Names of those that callbacks tell apart ([`Self::owners`] and the first superuser).
    pub told_apart: HashMap<Oid, String>,
    /// Roles with views or SECURITY DEFINER functions, through which others may reach tables.
    pub definers: NameSet,
    /// Tables that views with `security_barrier` read.
    pub behind_barriers: HashSet<Oid>,
    pub builtins: Arc<Builtins>,
    /// What a later load needs to know, to read only what has changed.
    pub held: Held,
}

/// How a catalog is brought up to date.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// The coordinator's snapshot under which it was read (`pg_snapshot`). Empty: it was not.
    pub known: String,
    /// Which server that was: when it was started.
    pub server: String,
    /// The last place in `pgherd.change` (a `pg_lsn`) of the transaction that has read it.
    pub own: String,
    /// How often it has been changed since all of it was read.
    pub steps: u32,
    /// What each object tells of names.
    pub rows: Chunked<(Part, Oid), Arc<[NameRow]>>,
    /// How many objects tell of what has no name.
    pub marks: HashMap<char, u32>,
    /// Names of functions that leave something on their connection by themselves, in lower case.
    pub direct: NameSet,
    /// Names of functions in `pg_catalog` that users have put there: immutable ones, and others.
    pub overloads: (NameSet, NameSet),
    /// Tables whose own defaults, checks or indexes call what is users'.
    pub calling: HashSet<Oid>,
    /// Tables a change to which runs what does not show.
    pub hiding: HashSet<Oid>,
    /// Foreign keys, by the table that has them.
    pub foreign_keys: HashMap<Oid, Arc<[ForeignKey]>>,
}

/// Whose row tells of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Relation,
    Function,
    Type,
    Operator,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    pub to: Oid,
    pub on_delete: bool,
    pub on_update: bool,
    /// ON DELETE CASCADE.
    pub deletes: bool,
    pub to_columns: Vec<String>,
    pub from_columns: Vec<String>,
}

/// A view of a user's over catalogs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogView {
    pub owner: String,
    /// Everybody may read it.
    pub is_public: bool,
    pub query: String,
}

/// A kind of name, and a name.
pub type NameRow = (char, Arc<str>);

/// Names of what comes with the server.
#[derive(Debug, Clone, Default)]
pub struct Builtins {
    pub immutable: NameSet,
    pub volatile: NameSet,
    pub aggregates: NameSet,
    pub window: NameSet,
    pub set_returning: NameSet,
    pub collated: NameSet,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub group: GroupId,
    pub host: String,
    pub port: u16,
    pub is_active: bool,
    /// `pg_dist_node.shouldhaveshards`.
    pub should_have_shards: bool,
}

/// A colocation group (`pg_dist_colocation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colocation {
    pub shard_count: u32,
    /// -1: reference tables.
    pub replication_factor: i32,
    /// Of the base type where the column's is a domain.
    pub key_type: Oid,
    pub key_collation: Oid,
    /// What the fence on the workers is compared with.
    pub placement_epoch: i64,
    /// Tables created with `colocate_with => 'default'` may join.
    pub is_default: bool,
}

#[derive(Debug, Clone)]
pub struct Table {
    /// On the coordinator.
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub kind: TableKind,
    pub colocation: ColocationId,
    /// In `attnum` order, without dropped columns.
    pub columns: Vec<Column>,
    /// True where a partition named directly would not behave like the table (row security, statement triggers,
    /// rules, inheritance of the user's own, partitions of the user's own): always go by the parent's name.
    pub parent_only: bool,
    /// Partitioned by the user: workers have tables for its partitions' shards only, and ONLY means no rows.
    pub is_partitioned: bool,
    /// The coordinator has it partitioned further: a partition of the user's, or one that was detached.
    pub is_leaf: bool,
    /// The distributed table that it is a partition of.
    pub parent: Option<Oid>,
    /// Some column's type is not built in, so object ids in its binary form differ between servers.
    pub has_user_types: bool,
    /// The table has triggers of the user's (any kind), but none that fire on the coordinator.
    pub has_triggers: bool,
    /// The triggers of a distributed table fire on the coordinator, and workers do not have them.
    pub fires_here: bool,
    /// What runs when its rows change (rules, triggers) is on the coordinator alone, which runs what changes them.
    pub changed_here: bool,
    /// Defaults, checks or indexes call functions or operators of the user's: a write runs what it does not show.
    pub has_hidden_calls: bool,
    /// Some constraint is checked at the end of the transaction.
    pub has_deferred: bool,
    /// A foreign key leads here; to a distributed table, one that workers have. (`local_keys` are the others.)
    pub is_referenced: bool,
    /// Columns to which foreign keys of local tables lead: what takes their values away, the coordinator runs.
    pub local_keys: Vec<String>,
    /// Row security is enabled.
    pub row_security: bool,
    /// Columns of each unique index or primary key that has no expressions and no predicate.
    pub unique_keys: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
pub enum TableKind {
    Distributed {
        /// Index into `columns`.
        key: usize,
        key_type: KeyType,
        /// In remainder order: `shards[i].remainder == i`; the modulus is `shards.len()`.
        shards: Vec<Shard>,
    },
    Reference {
        shard: ShardId,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    pub id: ShardId,
    pub remainder: u32,
    pub group: GroupId,
}

impl Shard {
    /// The schema on the worker that holds this shard's partition, which has the table's own name.
    pub fn schema(&self) -> String {
        format!("pgherd_{}", self.id)
    }
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub attnum: i16,
    pub type_oid: Oid,
    pub typmod: i32,
    /// As `format_type(type, typmod)` prints it with an empty search path: usable in SQL on any node.
    pub type_name: String,
    /// As `format_type(type, -1)` prints the type, or what a domain is made of: a cast to it cuts nothing.
    pub base_type_name: String,
    pub collation: Oid,
    pub not_null: bool,
    pub default: ColumnDefault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnDefault {
    None,
    /// A default the worker may evaluate: no sequence in it. The SQL text.
    Expression {
        sql: String,
        immutable: bool,
    },
    /// `nextval` of a coordinator sequence (serial), or any default that has a sequence in it: the coordinator
    /// evaluates it.
    Sequence {
        sql: String,
    },
    /// `GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY`; the sequence's qualified name.
    Identity {
        always: bool,
        sequence: String,
    },
    /// `GENERATED ALWAYS AS (…) STORED` (or VIRTUAL): the worker computes it.
    Generated,
}

impl Table {
    /// A constant in quotes that is written to some column means another thing than a parameter with the same text:
    /// `interval hour` reads '5' as hours, a parameter is read as `interval` first.
    pub fn reads_by_modifier(&self) -> bool {
        self.columns.iter().any(|column| column.type_oid == INTERVAL_OID && column.typmod >= 0)
    }

    /// Whoever reads it runs nothing but what the statement shows, and gets values that are the same on every server.
    pub fn shows_reads(&self) -> bool {
        !self.parent_only && !self.row_security && !self.has_user_types
    }

    /// The same of whoever writes it.
    pub fn shows_writes(&self) -> bool {
        self.shows_reads() && !self.has_triggers && !self.has_hidden_calls
    }

    pub fn is_reference(&self) -> bool {
        matches!(self.kind, TableKind::Reference { .. })
    }

    /// The distribution column, or none for a reference table.
    pub fn key_column(&self) -> Option<&Column> {
        match &self.kind {
            TableKind::Distributed { key, .. } => self.columns.get(*key),
            TableKind::Reference { .. } => None,
        }
    }

    pub fn key_type(&self) -> Option<&KeyType> {
        match &self.kind {
            TableKind::Distributed { key_type, .. } => Some(key_type),
            TableKind::Reference { .. } => None,
        }
    }

    pub fn shards(&self) -> &[Shard] {
        match &self.kind {
            TableKind::Distributed { shards, .. } => shards,
            TableKind::Reference { .. } => &[],
        }
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }
}

/// A column of a local table whose default draws from a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDraw {
    /// Columns get their values in this order.
    pub number: String,
    pub column: String,
    /// GENERATED ALWAYS AS IDENTITY.
    pub always: bool,
    /// What gives the value.
    pub sql: String,
}

/// What a relation's name means.
#[derive(Debug, Clone)]
pub enum Resolved<'a> {
    /// Distributed or reference.
    Table(&'a Arc<Table>),
    /// Something that only the coordinator knows: local table, view, catalog, or nothing at all.
    Other,
}

/// A foreign key that changes its own table's rows: CASCADE, SET NULL or SET DEFAULT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cascade {
    pub to: Oid,
    pub on_delete: bool,
    pub on_update: bool,
    /// The rows go with those that they refer to.
    pub deletes: bool,
}

impl Snapshot {
    /// A table whose rows workers delete with those of this one, and to which local tables refer: the coordinator,
    /// which has these, does not hear of it.
    pub fn deletes_unheard(&self, table: Oid) -> Option<&Arc<Table>> {
        self.cascades.get(&table)?;
        let mut reached = HashSet::from([table]);
        let mut open = vec![table];
        while let Some(from) = open.pop() {
            for cascade in self.cascades.get(&from).into_iter().flatten().filter(|cascade| cascade.deletes) {
                let Some(other) = self.by_oid.get(&cascade.to).filter(|other| reached.insert(other.oid)) else {
                    continue;
                };
                if !other.local_keys.is_empty() {
                    return Some(other);
                }
                open.push(other.oid);
            }
        }
        None
    }

    /// What names of functions and operators mean in a statement all of whose values are of built-in types: `=` is
    /// PostgreSQL's own there, whatever the user has made for types of their own. None: the same as in any other.
    pub fn among_built_in_types(&self) -> Option<&Snapshot> {
        self.among_built_in.as_deref()
    }

    /// After the last change.
    pub fn settle_names(&mut self) {
        self.among_built_in = None;
        if self.user_functions != self.reached_functions || self.user_operators != self.reached_operators {
            let mut other = self.clone();
            other.user_functions = self.reached_functions.clone();
            other.user_operators = self.reached_operators.clone();
            self.among_built_in = Some(Arc::new(other));
        }
    }

    /// What the fence on the workers is compared with.
    pub fn placement_epoch(&self, colocation: ColocationId) -> Option<i64> {
        self.colocations.get(&colocation).map(|colocation| colocation.placement_epoch)
    }

    /// Tables of which rows may change when rows of one are deleted, or updated.
    pub fn changed_with(&self, table: Oid, deletes: bool) -> HashSet<Oid> {
        let first = self.cascades.get(&table).into_iter().flatten();
        let first = first.filter(|c| if deletes { c.on_delete } else { c.on_update });
        let mut next: Vec<Oid> = first.map(|c| c.to).collect();
        let mut found = HashSet::new();
        while let Some(oid) = next.pop() {
            if found.insert(oid) {
                next.extend(self.cascades.get(&oid).into_iter().flatten().map(|c| c.to));
            }
        }
        found
    }

    /// Resolves a name as PostgreSQL does. `search_path` is the effective list of schemas (`$user` already replaced,
    /// missing schemas may be left in); `pg_catalog` is searched first where it is not listed. Temporary tables are
    /// the caller's business.
    pub fn resolve(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Resolved<'_> {
        if let Some(schema) = schema {
            return self.lookup(schema, name);
        }
        for schema in search_path {
            if let Resolved::Table(table) = self.lookup(schema, name) {
                return Resolved::Table(table);
            }
            if self.is_other(schema, name) {
                return Resolved::Other;
            }
        }
        Resolved::Other
    }

    fn lookup(&self, schema: &str, name: &str) -> Resolved<'_> {
        match self.tables.get(schema).and_then(|names| names.get(name)) {
            Some(table) => Resolved::Table(table),
            None => Resolved::Other,
        }
    }

    /// A relation that is not distributed has the name.
    pub fn is_other(&self, schema: &str, name: &str) -> bool {
        self.other_relations.contains(qualified(schema, name).as_str())
    }

    /// The [`qualified`] name of the local relation that a name means; none: there is no such relation, or it is a
    /// distributed one.
    pub fn resolve_other(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<String> {
        let is_ours = |schema: &str| matches!(self.lookup(schema, name), Resolved::Table(_));
        let home = match schema {
            Some(schema) => schema,
            None => search_path.iter().find(|schema| is_ours(schema) || self.is_other(schema, name))?,
        };
        (!is_ours(home) && self.is_other(home, name)).then(|| qualified(home, name))
    }

    /// Schemas and names of [`Self::other_relations`], in no order.
    pub fn other_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.other_relations.iter().filter_map(|name| name.split_once('\u{1}'))
    }

    /// Every distributed and reference table, in no order.
    pub fn all_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_oid.values()
    }

    /// All tables of the tree of partitions that a table is in, parents first; without partitioning itself alone.
    pub fn partition_tree(&self, table: &Arc<Table>) -> Vec<Arc<Table>> {
        let mut root = table;
        while let Some(parent) = root.parent.and_then(|oid| self.by_oid.get(&oid)) {
            root = parent;
        }
        let mut out = vec![root.clone()];
        let mut at = 0;
        while let Some(parent) = out.get(at).map(|t| t.oid) {
            out.extend(self.all_tables().filter(|t| t.parent == Some(parent)).cloned());
            at += 1;
        }
        out
    }

    /// A view with `security_barrier` reads it, or the table that it is a partition of.
    pub fn is_behind_barrier(&self, table: &Table) -> bool {
        let above = table.parent.and_then(|oid| self.by_oid.get(&oid));
        self.behind_barriers.contains(&table.oid) || above.is_some_and(|above| self.is_behind_barrier(above))
    }

    /// How many tables are above one in its tree of partitions.
    pub fn depth(&self, table: &Table) -> usize {
        let mut parent = table.parent;
        let mut depth = 0;
        while let Some(above) = parent.and_then(|oid| self.by_oid.get(&oid)) {
            parent = above.parent;
            depth += 1;
        }
        depth
    }

    /// The primary of a group.
    pub fn node_of_group(&self, group: GroupId) -> Option<&Node> {
        self.nodes.iter().find(|n| n.group == group)
    }

    /// Active groups that hold, or may hold, shards: every worker, in group order.
    pub fn worker_groups(&self) -> Vec<GroupId> {
        let mut groups: Vec<GroupId> =
            self.nodes.iter().filter(|n| n.is_active && n.group != COORDINATOR_GROUP).map(|n| n.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The groups that hold shards of a distributed table, sorted; all worker groups for a reference table.
    pub fn groups_of(&self, table: &Table) -> Vec<GroupId> {
        match &table.kind {
            TableKind::Distributed { shards, .. } => {
                let mut groups: Vec<GroupId> = shards.iter().map(|s| s.group).collect();
                groups.sort_unstable();
                groups.dedup();
                groups
            }
            TableKind::Reference { .. } => self.worker_groups(),
        }
    }

    pub fn insert_table(&mut self, table: Table) {
        let table = Arc::new(table);
        self.by_oid.insert(table.oid, table.clone());
        self.tables.entry(table.schema.clone()).or_default().insert(table.name.clone(), table);
    }

    pub fn remove_table(&mut self, oid: Oid) {
        let Some(table) = self.by_oid.remove(&oid) else { return };
        self.owners.remove(&oid);
        if let Some(names) = self.tables.get_mut(&table.schema)
            && names.get(&table.name).is_some_and(|named| named.oid == oid)
        {
            names.remove(&table.name);
            if names.is_empty() {
                self.tables.remove(&table.schema);
            }
        }
    }
}

/// A name in a schema, as [`Snapshot::other_relations`] has it.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{schema}\u{1}{name}")
}
