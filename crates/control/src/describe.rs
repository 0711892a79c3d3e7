//! A table as data: what `pgherd.describe_table` (`sql/describe.sql`) tells of it. Every name in an expression is
//! qualified and every constant unambiguous, so the texts mean the same on every node under any settings.

use serde::{Deserialize, Serialize};

use crate::quote::qualified;
use pgherd_catalog::Oid;

/// Gives one row with one column: the JSON for [`parse_description`], or NULL where there is no such relation. Works on
/// any node that has our schema.
pub fn describe_query(table: Oid) -> String {
    format!("SELECT pgherd.describe_table({table})")
}

/// What is wrong with a description that does not parse: a version of our schema that does not fit this program.
#[derive(Debug)]
pub struct DescriptionError(String);

impl std::fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "description from schema \"pgherd\" is not understood: {}", self.0)
    }
}

impl std::error::Error for DescriptionError {}

impl From<serde_json::Error> for DescriptionError {
    fn from(error: serde_json::Error) -> Self {
        DescriptionError(error.to_string())
    }
}

/// Options that PostgreSQL does not document are left out; their names are in `left_alone`.
pub fn parse_description(json: &str) -> Result<TableDescription, DescriptionError> {
    let mut description: TableDescription = serde_json::from_str(json)?;
    description.left_alone = crate::options::keep_documented(&mut description);
    Ok(description)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableDescription {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: char,
    /// `pg_class.relpersistence`.
    pub persistence: char,
    pub owner: String,
    /// The role that asked may act as the owner.
    pub caller_owns: bool,
    /// Size of the table's own heap here; 0: there are surely no rows.
    pub bytes: Option<i64>,
    pub access_method: Option<String>,
    /// `name=value`, as all options here.
    pub options: Option<Vec<String>>,
    pub toast_options: Option<Vec<String>>,
    /// Names of options of the table and what belongs to it that PostgreSQL does not document: not ours to copy.
    #[serde(skip)]
    pub left_alone: Vec<String>,
    pub row_security: bool,
    pub force_row_security: bool,
    /// `d` default, `n` nothing, `f` full, `i` index.
    pub replica_identity: char,
    pub replica_identity_index: Option<String>,
    /// The user's own partition of the user's own partitioned table.
    pub is_partition: bool,
    pub is_catalog: bool,
    pub in_extension: Option<String>,
    pub of_type: Option<String>,
    pub partition_by: Option<String>,
    /// Of a partition: the table that it is a partition of, and its part, `FOR VALUES …` or `DEFAULT`.
    pub parent: Option<Oid>,
    pub bound: Option<String>,
    /// The coordinator has it partitioned further: a partition of a distributed table, or one that was detached.
    #[serde(default)]
    pub is_leaf: bool,
    /// Parents and children by inheritance or partitioning, without our foreign child; qualified and quoted.
    pub inherits: Vec<String>,
    pub children: Vec<String>,
    /// None: the owner has everything and nobody else anything.
    pub grants: Option<Vec<Grant>>,
    /// The owner has given no privilege away.
    pub owner_has_all: bool,
    pub columns: Vec<Column>,
    pub constraints: Vec<Constraint>,
    /// Foreign keys of other tables that point here.
    pub incoming: Vec<IncomingKey>,
    /// Those that no constraint owns.
    pub indexes: Vec<Index>,
    pub triggers: Vec<Trigger>,
    /// Those of foreign keys, its own and others' to it, are disabled.
    #[serde(default)]
    pub keys_off: bool,
    /// They fire on the coordinator, and workers do not have them.
    #[serde(default)]
    pub fires_here: bool,
    /// They are to, once the table has its child again: what they do now is not the same on any server.
    #[serde(default)]
    pub to_fire_here: bool,
    /// Why they cannot.
    #[serde(default)]
    pub trigger_refusal: Option<String>,
    pub rules: Vec<Rule>,
    pub policies: Vec<Policy>,
    pub statistics: Vec<Statistics>,
    pub prerequisites: Vec<Prerequisite>,
}

impl TableDescription {
    /// `schema.name`, quoted.
    pub fn qualified_name(&self) -> String {
        qualified(&self.schema, &self.name)
    }

    /// The coordinator runs whatever changes its rows. `soon`: once the table has its child again.
    pub fn is_changed_here(&self, soon: bool) -> bool {
        !self.rules.is_empty() || if soon { self.to_fire_here } else { self.fires_here }
    }

    /// Partitioned by the user: its rows are in its partitions, which are tables of their own.
    pub fn is_partitioned(&self) -> bool {
        self.kind == 'p'
    }

    /// As it would be if its indexes and unique constraints were those of `other`.
    pub fn with_indexes_of(mut self, other: &TableDescription) -> Self {
        let is_index = |kind: char| matches!(kind, 'p' | 'u' | 'x');
        self.indexes = other.indexes.clone();
        self.constraints.retain(|c| !is_index(c.kind));
        self.constraints.extend(other.constraints.iter().filter(|c| is_index(c.kind)).cloned());
        self
    }

    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// None: PUBLIC.
    pub grantee: Option<String>,
    pub privilege: String,
    pub grantable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub name: String,
    /// `attnum`.
    pub number: i16,
    /// With modifiers: `numeric(10,2)`.
    #[serde(rename = "type")]
    pub type_name: String,
    pub base_type: String,
    pub type_oid: Oid,
    pub type_modifier: i32,
    /// Only where it is not the type's own.
    pub collation: Option<String>,
    pub collation_oid: Oid,
    pub not_null: bool,
    pub not_null_name: Option<String>,
    /// From PostgreSQL 18 on: NOT VALID, so rows that were there may be NULL.
    #[serde(default)]
    pub not_null_unchecked: bool,
    pub default: Option<String>,
    /// The default may give something else at another time or on another server.
    #[serde(default)]
    pub default_varies: bool,
    /// What such a default gave all rows that were there when the column came.
    #[serde(default)]
    pub missing: Option<String>,
    /// The default has a sequence in it, or a function that might use one.
    pub default_on_coordinator: bool,
    /// `a` always, `d` by default, or empty.
    pub identity: String,
    pub identity_sequence: Option<String>,
    /// A partition's, which is its parent's.
    #[serde(default)]
    pub identity_inherited: bool,
    /// `s` stored, `v` virtual, or empty.
    pub generated: String,
    pub generation_expression: Option<String>,
    pub storage: Option<String>,
    pub statistics: Option<i32>,
    pub compression: Option<String>,
    pub options: Option<Vec<String>>,
    pub grants: Option<Vec<Grant>>,
    /// What is hashed: a domain's base type, without modifiers.
    pub key_type: String,
    pub key_type_oid: Oid,
    /// `enum`, `composite` or `registered`: hashes differ between servers.
    pub hashes_by_object_id: Option<String>,
    pub hash_function: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Constraint {
    pub oid: Oid,
    pub name: String,
    /// `pg_constraint.contype`: p, u, x, c or f.
    #[serde(rename = "type")]
    pub kind: char,
    /// What follows ADD CONSTRAINT name.
    pub definition: String,
    /// None stands for an expression of an EXCLUDE constraint.
    pub columns: Vec<Option<String>>,
    pub validated: bool,
    pub no_inherit: bool,
    /// A partition's, which follows its parent's.
    #[serde(default)]
    pub inherited: bool,
    pub index_options: Option<Vec<String>>,
    pub clustered: bool,
    /// EXCLUDE: the columns compared by an equality operator.
    pub equality_columns: Option<Vec<String>>,
    /// FOREIGN KEY: what it points to, and the definition in two pieces, before REFERENCES and after the referenced
    /// columns.
    pub referenced: Option<Referenced>,
    pub head: Option<String>,
    pub tail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Referenced {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    pub columns: Vec<Option<String>>,
    /// The last column is a PERIOD.
    #[serde(default)]
    pub period: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncomingKey {
    pub name: String,
    pub oid: Oid,
    pub schema: String,
    pub table: String,
    pub columns: Vec<Option<String>>,
    pub referenced_columns: Vec<Option<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Index {
    pub oid: Oid,
    pub name: String,
    pub options: Option<Vec<String>>,
    pub unique: bool,
    /// Key columns; None stands for an expression.
    pub columns: Vec<Option<String>>,
    pub expressions: bool,
    pub predicate: bool,
    pub valid: bool,
    pub clustered: bool,
    /// `USING …` to the end of the definition. None: not understood.
    pub tail: Option<String>,
    /// (column number in the index, statistics target).
    pub statistics: Option<Vec<(i32, i32)>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    pub oid: Oid,
    pub name: String,
    pub definition: String,
    pub function: String,
    /// FOR EACH ROW.
    pub row: bool,
    pub on_truncate: bool,
    pub transition_tables: bool,
    /// `pg_trigger.tgenabled`: O, D, R or A.
    pub enabled: char,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub oid: Oid,
    pub name: String,
    pub definition: String,
    pub enabled: char,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub oid: Oid,
    pub name: String,
    pub permissive: bool,
    pub command: String,
    /// None: PUBLIC.
    pub roles: Vec<Option<String>>,
    pub using: Option<String>,
    pub with_check: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    pub oid: Oid,
    pub schema: String,
    pub name: String,
    /// ` (kinds) ON columns`: between the name and FROM.
    pub middle: String,
}

/// An object that must exist before the table can.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prerequisite {
    pub id: String,
    pub kind: String,
    pub name: String,
    /// SQL condition: true where it is missing.
    pub guard: String,
    /// None: cannot be made on another server.
    pub ddl: Option<Vec<Option<String>>>,
    pub depends_on: Vec<String>,
}
