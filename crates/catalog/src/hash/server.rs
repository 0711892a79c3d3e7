//! What a server is asked: the hash of a value that the router is not certain of, and which types cannot be keys.

use super::HASH_PARTITION_SEED;

/// SQL that gives the int8 hash of `$1` by its type's own hash function, NULL for NULL; [`super::combine`] makes the
/// partition hash of it.
///
/// `type_name` as `format_type` prints it: with its type modifier for a value that is to be stored, without for one that
/// is compared. A value of another type that is *compared* must not be sent through this cast
/// ([`super::KeyType::for_parameter`]). `collation` is the quoted name of the column's collation where it is not its
/// type's own: a nondeterministic one decides the hash.
///
/// The record around the value is what makes it work for every type: `hash_record_extended` calls the default hash
/// operator class of each field and gives the hash of a single field as it is, while the functions of date, bytea,
/// boolean and timestamptz cannot be called in SQL with their own types before version 18.
pub fn ask_server_sql(type_name: &str, collation: Option<&str>) -> String {
    let type_name = without_implied_length(type_name);
    let collate = collation.map(|name| format!(" COLLATE {name}")).unwrap_or_default();
    format!(
        "SELECT CASE WHEN k IS NOT NULL THEN pg_catalog.hash_record_extended(ROW(k), \
         {HASH_PARTITION_SEED}::pg_catalog.int8) END FROM (SELECT $1::{type_name}{collate}) value(k)"
    )
}

/// SQL that asks a server which has the partitioned table for the remainder of `$1`, by the server's own partition
/// routing: true for any type, collation and operator class, at the price of up to `modulus` calls. `table` is the
/// partitioned table's quoted name.
pub fn shard_remainder_sql(table: &str, modulus: u32, type_name: &str) -> String {
    let type_name = without_implied_length(type_name);
    let table = table.replace('\'', "''");
    format!(
        "SELECT r FROM pg_catalog.generate_series(0, {}) r WHERE pg_catalog.satisfies_hash_partition(\
         '{table}'::pg_catalog.regclass, {modulus}, r, $1::{type_name}) LIMIT 1",
        modulus.saturating_sub(1)
    )
}

/// `format_type` without a modifier prints names that SQL reads as char(1) and bit(1).
fn without_implied_length(type_name: &str) -> &str {
    match type_name {
        "character" => "pg_catalog.bpchar",
        "bit" => "pg_catalog.\"bit\"",
        name => name,
    }
}

/// One type that the key column's type is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPart {
    /// `pg_type.typtype`: b(ase), c(omposite), d(omain), e(num), m(ultirange), p(seudo), r(ange).
    pub kind: char,
    pub oid: crate::Oid,
    /// As `format_type` prints it.
    pub name: String,
}

/// Lists the column's type (`$1`, an object id) and every type inside it (base type of a domain, element of an array,
/// subtype of a range, attributes of a composite) as `(typtype, oid, name)`, for [`key_refusal`].
pub const KEY_PARTS_SQL: &str = "\
WITH RECURSIVE part(oid) AS (
    SELECT $1::pg_catalog.oid
    UNION
    SELECT inner_type.oid
    FROM part
    JOIN pg_catalog.pg_type t ON t.oid = part.oid
    LEFT JOIN pg_catalog.pg_range r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid
    LEFT JOIN pg_catalog.pg_attribute a
        ON t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    CROSS JOIN LATERAL (VALUES (t.typbasetype), (CASE WHEN t.typlen = -1 THEN t.typelem END), (r.rngsubtype),
        (a.atttypid)) inner_type(oid)
    WHERE inner_type.oid <> 0
)
SELECT t.typtype, t.oid, pg_catalog.format_type(t.oid, NULL)
FROM part JOIN pg_catalog.pg_type t USING (oid)
ORDER BY t.oid <> $1::pg_catalog.oid, t.oid";

/// Why a column cannot be a distribution column. SQLSTATE 0A000.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRefusal {
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

impl KeyRefusal {
    /// feature_not_supported.
    pub const SQLSTATE: &'static str = "0A000";
}

/// Refuses a column whose values would hash differently on different servers. `parts` is what [`KEY_PARTS_SQL`]
/// listed, the column's own type first.
pub fn key_refusal(column: &str, parts: &[KeyPart]) -> Option<KeyRefusal> {
    let own = parts.first()?;
    let bad = parts.iter().find_map(|part| {
        let what = match part.kind {
            'e' => "enum",
            'p' => "pseudo-",
            'c' => "composite",
            _ if is_object_id_alias(part.oid) => "object identifier",
            _ => return None,
        };
        Some((part, what))
    });
    let (part, what) = bad?;
    let detail = (part.oid != own.oid)
        .then(|| format!("Type \"{}\" of column \"{column}\" is built on type \"{}\".", own.name, part.name));
    let (reason, hint) = match part.kind {
        'e' => (
            format!("values of {what} type \"{}\" hash by object id, which differs between servers", part.name),
            Some("Distribute by another column, or make it text with a CHECK constraint."),
        ),
        'c' => (format!("{what} type \"{}\" is not supported as a distribution key", part.name), None),
        'p' => (format!("{what}type \"{}\" has no values of its own", part.name), None),
        _ => (
            format!("values of {what} type \"{}\" are object ids, which differ between servers", part.name),
            Some("Distribute by another column, or make it text."),
        ),
    };
    Some(KeyRefusal {
        message: format!("cannot distribute by column \"{column}\": {reason}"),
        detail,
        hint: hint.map(str::to_owned),
    })
}

/// regproc, regprocedure, regoper, regoperator, regclass, regtype, regconfig, regdictionary, regnamespace, regrole,
/// regcollation: src/include/catalog/pg_type.dat.
fn is_object_id_alias(oid: crate::Oid) -> bool {
    matches!(oid, 24 | 2202..=2206 | 3734 | 3769 | 4089 | 4096 | 4191)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn part(kind: char, oid: crate::Oid, name: &str) -> KeyPart {
        KeyPart { kind, oid, name: name.to_owned() }
    }

    #[test]
    fn types_that_differ_between_servers_are_refused_by_name() {
        let check = |parts: &[KeyPart], expected: &str| {
            let text = key_refusal("x", parts).map_or("accepted".to_owned(), |r| {
                r.message + &r.detail.map(|d| format!(" / {d}")).unwrap_or_default()
            });
            assert_eq!(text, expected);
        };
        check(&[part('b', 23, "integer")], "accepted");
        check(&[part('b', 1007, "integer[]"), part('b', 23, "integer")], "accepted");
        check(&[part('d', 16500, "positive"), part('b', 23, "integer")], "accepted");
        check(
            &[part('e', 16385, "mood")],
            "cannot distribute by column \"x\": values of enum type \"mood\" hash by object id, which differs between servers",
        );
        check(
            &[part('b', 16384, "mood[]"), part('e', 16385, "mood")],
            "cannot distribute by column \"x\": values of enum type \"mood\" hash by object id, which differs between \
             servers / Type \"mood[]\" of column \"x\" is built on type \"mood\".",
        );
        check(
            &[part('c', 16390, "pair"), part('b', 23, "integer")],
            "cannot distribute by column \"x\": composite type \"pair\" is not supported as a distribution key",
        );
        check(
            &[part('b', 2205, "regclass")],
            "cannot distribute by column \"x\": values of object identifier type \"regclass\" are object ids, which \
             differ between servers",
        );
    }

    #[test]
    fn the_server_is_asked_for_the_value_at_its_full_length() {
        assert_eq!(
            ask_server_sql("character", None),
            "SELECT CASE WHEN k IS NOT NULL THEN pg_catalog.hash_record_extended(ROW(k), \
             8816678312871386365::pg_catalog.int8) END FROM (SELECT $1::pg_catalog.bpchar) value(k)"
        );
        assert_eq!(
            ask_server_sql("text", Some("public.ci")),
            "SELECT CASE WHEN k IS NOT NULL THEN pg_catalog.hash_record_extended(ROW(k), \
             8816678312871386365::pg_catalog.int8) END FROM (SELECT $1::text COLLATE public.ci) value(k)"
        );
        assert_eq!(
            shard_remainder_sql("public.\"it's\"", 32, "date"),
            "SELECT r FROM pg_catalog.generate_series(0, 31) r WHERE pg_catalog.satisfies_hash_partition(\
             'public.\"it''s\"'::pg_catalog.regclass, 32, r, $1::date) LIMIT 1"
        );
    }
}
