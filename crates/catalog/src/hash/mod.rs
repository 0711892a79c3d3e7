//! PostgreSQL's hash partitioning, computed by the router (src/backend/partitioning/partbounds.c,
//! `compute_partition_hash_value`; src/common/hashfn.c; the `…_extended` hash support functions of each type).
//!
//! Only the rule is here: which type is read how, and how a value's hash becomes a partition. One file per family of
//! types reads the text form (what the type's input function accepts) and the binary form (its send function);
//! [`server`] has the SQL by which a server hashes what is not certain here, and the types that cannot be keys.
//!
//! A value is hashed only where its meaning is the same under every setting (DateStyle, IntervalStyle, TimeZone, …)
//! and on every server version from 15 to 18. Everything else, invalid input included, is [`Hashed::AskServer`].
//! PostgreSQL's hash of bytes depends on the byte order of the machine: this is the one of little-endian servers.

mod bytes;
mod datetime;
mod float;
mod integer;
mod interval;
mod jenkins;
mod network;
mod numeric;
mod server;
mod value;

pub use server::{KEY_PARTS_SQL, KeyPart, KeyRefusal, ask_server_sql, key_refusal, shard_remainder_sql};

use crate::Oid;
use value::Value;

/// How the router hashes values of a distribution column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyType {
    Int2,
    Int4,
    Int8,
    /// text and varchar under a deterministic collation, server encoding UTF8 or SQL_ASCII.
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
    /// inet and cidr, which have one representation.
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

/// `HASH_PARTITION_SEED` of src/backend/partitioning/partbounds.c.
const HASH_PARTITION_SEED: u64 = 0x7A5B_2236_7996_DCFD;

/// The partition that a partition hash belongs to: the remainder of `FOR VALUES WITH (modulus …, remainder …)`.
///
/// A modulus of 0 does not exist in PostgreSQL; it gives 0.
pub fn remainder(hash: u64, modulus: u32) -> u32 {
    // The remainder is below a u32, so it fits.
    hash.checked_rem(u64::from(modulus)).map_or(0, |r| r as u32)
}

/// Makes the partition hash of one key column from what the type's hash function gave for [`ask_server_sql`]:
/// `hash_combine64(0, value_hash)` of src/include/common/hashfn.h.
pub fn combine(value_hash: u64) -> u64 {
    value_hash.wrapping_add(0x49a0_f4dd_15e5_a8e3)
}

/// True where a string reaches the server with the bytes it has here, so that a [`KeyType`] of a text family may hash
/// it. Encodings are named as `pg_encoding_to_char` and the settings `client_encoding`, `server_encoding` name them.
pub fn same_bytes_on_server(value: &[u8], client_encoding: &str, server_encoding: &str) -> bool {
    value.is_ascii()
        || client_encoding.eq_ignore_ascii_case(server_encoding)
        || client_encoding.eq_ignore_ascii_case("SQL_ASCII")
        || server_encoding.eq_ignore_ascii_case("SQL_ASCII")
}

impl KeyType {
    /// How to hash a column of a type, by the type's object id.
    ///
    /// `collation` is the column's (0 where the type has none). Domains are not looked through: pass the base type, and
    /// its type modifier to the `…_stored` methods.
    pub fn of(type_oid: Oid, collation: Oid, collation_is_deterministic: bool, server_encoding: &str) -> KeyType {
        let known_encoding =
            server_encoding.eq_ignore_ascii_case("UTF8") || server_encoding.eq_ignore_ascii_case("SQL_ASCII");
        let bytes_decide = (collation == 0 || collation_is_deterministic) && known_encoding;
        match KeyType::of_builtin(type_oid) {
            // Another server encoding would need its own rules for what is a valid string.
            KeyType::Text | KeyType::Bpchar | KeyType::Name if !bytes_decide => KeyType::AskServer,
            known => known,
        }
    }

    /// Object ids of built-in types are fixed: src/include/catalog/pg_type.dat.
    fn of_builtin(type_oid: Oid) -> KeyType {
        match type_oid {
            16 => KeyType::Bool,
            17 => KeyType::Bytea,
            19 => KeyType::Name,
            20 => KeyType::Int8,
            21 => KeyType::Int2,
            23 => KeyType::Int4,
            25 | 1043 => KeyType::Text,
            650 | 869 => KeyType::Inet,
            700 => KeyType::Float4,
            701 => KeyType::Float8,
            829 => KeyType::Macaddr,
            1042 => KeyType::Bpchar,
            1082 => KeyType::Date,
            1083 => KeyType::Time,
            1114 => KeyType::Timestamp,
            1184 => KeyType::Timestamptz,
            1186 => KeyType::Interval,
            1266 => KeyType::Timetz,
            1700 => KeyType::Numeric,
            2950 => KeyType::Uuid,
            _ => KeyType::AskServer,
        }
    }

    /// Hashes a value written as text: an untyped literal, or a parameter of the column's own type in text format.
    ///
    /// The bytes of a string must be those that the server would store ([`same_bytes_on_server`]).
    pub fn hash_text(&self, value: &[u8]) -> Hashed {
        hashed(Value::read_text(*self, value))
    }

    /// Hashes a value in the binary format of the column's own type.
    ///
    /// Integers and floats are taken at any width the family has, told by length; a value outside the column's range is
    /// hashed all the same (no row has it, or the server refuses it).
    pub fn hash_binary(&self, value: &[u8]) -> Hashed {
        hashed(Value::read_binary(*self, value))
    }

    /// As [`KeyType::hash_text`], for a value that is stored in the column (INSERT, UPDATE, COPY) rather than compared
    /// with it: a type modifier may round or cut it first. `AskServer` where it would.
    ///
    /// `typmod` is `pg_attribute.atttypmod`, −1 for none. To ask the server, name the type with its modifier.
    pub fn hash_text_stored(&self, value: &[u8], typmod: i32) -> Hashed {
        hashed(Value::read_text(*self, value).filter(|v| v.is_kept_by(*self, typmod)))
    }

    /// As [`KeyType::hash_binary`], for a value that is stored: see [`KeyType::hash_text_stored`].
    pub fn hash_binary_stored(&self, value: &[u8], typmod: i32) -> Hashed {
        hashed(Value::read_binary(*self, value).filter(|v| v.is_kept_by(*self, typmod)))
    }

    /// How to read a parameter of type `param_type` that is compared with a column of this type by `=`, where equal
    /// values have equal hashes; 0 and `unknown` stand for the column's own type.
    ///
    /// None: the comparison does not pin a shard (`bigint = double precision` may match several keys,
    /// `date = timestamp` is about midnight). Do not ask a server to cast the parameter then: scatter.
    pub fn for_parameter(&self, param_type: Oid) -> Option<KeyType> {
        use KeyType::*;
        if matches!(self, AskServer) {
            return None;
        }
        if param_type == 0 || param_type == 705 {
            return Some(*self);
        }
        // Pairs of one hash operator family (pg_amop), and types with one representation.
        let param = KeyType::of_builtin(param_type);
        let same_hash = match (self, param) {
            (Int2 | Int4 | Int8, Int2 | Int4 | Int8) => true,
            (Float4 | Float8, Float4 | Float8) => true,
            (Text | Name, Text | Name) => true,
            (column, param) => *column == param,
        };
        (same_hash && param != AskServer).then_some(param)
    }

    /// Hashes a text parameter of another type: see [`KeyType::for_parameter`]. `AskServer` where that is none.
    pub fn hash_text_as(&self, param_type: Oid, value: &[u8]) -> Hashed {
        self.for_parameter(param_type).map_or(Hashed::AskServer, |read_as| read_as.hash_text(value))
    }

    /// Hashes a binary parameter of another type: see [`KeyType::for_parameter`]. `AskServer` where that is none.
    pub fn hash_binary_as(&self, param_type: Oid, value: &[u8]) -> Hashed {
        self.for_parameter(param_type).map_or(Hashed::AskServer, |read_as| read_as.hash_binary(value))
    }
}

fn hashed(value: Option<Value<'_>>) -> Hashed {
    value.map_or(Hashed::AskServer, |value| Hashed::Value(combine(value.hash(HASH_PARTITION_SEED))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn types_are_told_by_object_id_and_collation() {
        assert_eq!(KeyType::of(23, 0, true, "UTF8"), KeyType::Int4);
        assert_eq!(KeyType::of(23, 0, true, "LATIN1"), KeyType::Int4);
        assert_eq!(KeyType::of(1043, 100, true, "UTF8"), KeyType::Text);
        assert_eq!(KeyType::of(25, 100, true, "SQL_ASCII"), KeyType::Text);
        assert_eq!(KeyType::of(25, 100, true, "LATIN1"), KeyType::AskServer);
        assert_eq!(KeyType::of(1042, 16400, false, "UTF8"), KeyType::AskServer);
        assert_eq!(KeyType::of(3802, 0, true, "UTF8"), KeyType::AskServer, "jsonb");
        assert_eq!(KeyType::of(16384, 0, true, "UTF8"), KeyType::AskServer, "a type of the user's");
    }

    #[test]
    fn a_parameter_of_another_type_hashes_where_equality_is_by_the_same_value() {
        let five = KeyType::Int8.hash_text(b"5");
        assert_eq!(KeyType::Int4.hash_binary_as(20, &5i64.to_be_bytes()), five);
        assert_eq!(KeyType::Int2.hash_text_as(20, b"5"), five);
        // Outside the column's range but inside the parameter's: no row has it, any shard will do.
        assert!(matches!(KeyType::Int2.hash_text_as(20, b"5000000000"), Hashed::Value(_)));
        assert_eq!(KeyType::Int2.hash_text(b"5000000000"), Hashed::AskServer);
        let half = KeyType::Float8.hash_text(b"0.5");
        assert_eq!(KeyType::Float8.hash_binary_as(700, &0.5f32.to_be_bytes()), half);
        // 0.1 as real is another number than 0.1 as double precision.
        assert_ne!(KeyType::Float8.hash_text_as(700, b"0.1"), KeyType::Float8.hash_text(b"0.1"));
        assert_eq!(KeyType::Text.hash_binary_as(1043, b"a"), KeyType::Text.hash_text(b"a"));
        for (column, param) in [
            (KeyType::Int8, 701),
            (KeyType::Int8, 1700),
            (KeyType::Date, 1114),
            (KeyType::Timestamp, 1082),
            (KeyType::Timestamp, 1184),
            (KeyType::Text, 1042),
            (KeyType::Bpchar, 25),
            (KeyType::AskServer, 0),
            (KeyType::AskServer, 3802),
        ] {
            assert_eq!(column.for_parameter(param), None, "{column:?} = {param}");
            assert_eq!(column.hash_binary_as(param, &5i64.to_be_bytes()), Hashed::AskServer);
        }
    }

    #[test]
    fn a_type_modifier_that_changes_a_value_is_left_to_the_server() {
        let check = |key: KeyType, value: &str, typmod: i32, kept: bool| {
            let stored = key.hash_text_stored(value.as_bytes(), typmod);
            let expected = if kept { key.hash_text(value.as_bytes()) } else { Hashed::AskServer };
            assert_eq!(stored, expected, "{key:?} {value} {typmod}");
        };
        check(KeyType::Text, "abc", -1, true);
        check(KeyType::Text, "abc", 4 + 3, true);
        check(KeyType::Text, "äöü", 4 + 3, true);
        check(KeyType::Text, "abc ", 4 + 3, false);
        check(KeyType::Bpchar, "abc   ", 4 + 3, true);
        check(KeyType::Bpchar, "abcd", 4 + 3, false);
        let numeric_10_2 = 4 + ((10 << 16) | 2);
        check(KeyType::Numeric, "1.23000", numeric_10_2, true);
        check(KeyType::Numeric, "1.234", numeric_10_2, false);
        check(KeyType::Numeric, "NaN", numeric_10_2, true);
        let numeric_3_minus_2 = 4 + ((3 << 16) | (-2i32 & 0x7ff));
        check(KeyType::Numeric, "1200", numeric_3_minus_2, true);
        check(KeyType::Numeric, "1230", numeric_3_minus_2, false);
        check(KeyType::Numeric, "0", numeric_3_minus_2, true);
        check(KeyType::Timestamp, "2024-01-31 10:00:00.5", 1, true);
        check(KeyType::Timestamp, "2024-01-31 10:00:00.5", 0, false);
        check(KeyType::Timestamp, "infinity", 0, true);
        check(KeyType::Time, "10:00:00.123456", 6, true);
        check(KeyType::Timetz, "10:00:00.12+02", 1, false);
        check(KeyType::Interval, "1 day", 0, false);
    }

    #[test]
    fn remainders_are_those_of_unsigned_division() {
        assert_eq!(remainder(u64::MAX, 32), 31);
        assert_eq!(remainder(NULL_HASH, 7), 0);
        assert_eq!(remainder(1, 0), 0);
    }

    #[test]
    fn encodings_that_differ_matter_only_for_what_is_not_ascii() {
        assert!(same_bytes_on_server(b"abc", "LATIN1", "UTF8"));
        assert!(same_bytes_on_server("ä".as_bytes(), "utf8", "UTF8"));
        assert!(same_bytes_on_server("ä".as_bytes(), "SQL_ASCII", "UTF8"));
        assert!(!same_bytes_on_server("ä".as_bytes(), "LATIN1", "UTF8"));
    }
}
