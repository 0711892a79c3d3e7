//! PostgreSQL's hash partitioning, computed by the router (src/backend/partitioning/partbounds.c,
//! `compute_partition_hash_value`; src/common/hashfn.c; the `…_extended` hash support functions of each type).

/// How the router hashes values of a distribution column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    Int2,
    Int4,
    Int8,
    /// text and varchar under a deterministic collation, server encoding UTF8 (or SQL_ASCII with ASCII values).
    Text,
    /// char(n): trailing spaces do not count.
    Bpchar,
    Uuid,
    Date,
    Time,
    Timetz,
    Timestamp,
    Timestamptz,
    Numeric,
    Bytea,
    Bool,
    Inet,
    Interval,
    Float4,
    Float8,
    Macaddr,
    Name,
    /// A type or collation that only a server can hash.
    AskServer,
}

/// What hashing one value gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hashed {
    /// The partition hash (`compute_partition_hash_value` of one column); the remainder is this modulo the shard count.
    Value(u64),
    /// The router cannot tell (unusual spelling, a setting-dependent format, or invalid input): let a server hash it, or
    /// report its error.
    AskServer,
}

/// The partition hash of NULL: remainder 0 under every modulus.
pub const NULL_HASH: u64 = 0;
