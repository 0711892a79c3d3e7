//! Identifiers and literals as SQL text (PostgreSQL: src/backend/utils/adt/ruleutils.c `quote_identifier`, quote.c
//! `quote_literal`).

/// Every keyword that is not unreserved in PostgreSQL 15 to 18: `quote_ident` of any of them quotes these.
const KEYWORDS: &str = " \
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case \
    cast char character check coalesce collate collation column concurrently constraint create cross current_catalog \
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default \
    deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant \
    greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join \
    json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize \
    json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national \
    natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay \
    placing position precision primary real references returning right row select session_user setof similar \
    smallint some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true \
    union unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat \
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable ";

/// An identifier, quoted where PostgreSQL would read it as something else.
pub fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !KEYWORDS.contains(&format!(" {name} "));
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// `schema.name`.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// A string literal that means the same whatever `standard_conforming_strings` is.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Identifiers joined by `, `.
pub fn ident_list<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|n| quote_ident(n.as_ref())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_quoted_as_postgresql_does() {
        for (name, expected) in [
            ("t", "t"),
            ("_a1", "_a1"),
            ("1a", "\"1a\""),
            ("My S", "\"My S\""),
            ("user", "\"user\""),
            ("merge_action", "\"merge_action\""),
            ("name", "name"),
            ("a\"b", "\"a\"\"b\""),
            ("é", "\"é\""),
            ("", "\"\""),
        ] {
            assert_eq!(quote_ident(name), expected);
        }
    }

    #[test]
    fn literals_escape_quotes_and_backslashes() {
        assert_eq!(quote_literal("it's"), "'it''s'");
        assert_eq!(quote_literal("a\\'b"), "E'a\\\\''b'");
    }
}
