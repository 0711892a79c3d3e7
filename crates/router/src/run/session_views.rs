//! `pg_prepared_statements`, `pg_cursors` and `pg_settings` as the client expects them: its statements, portals and
//! encoding live in the router, and what is on the coordinator connection under our names is none of its business. Each
//! view becomes a subquery of the same columns over the session's state and what SQL itself left on the connection.

use std::fmt::Write;

use pgherd_catalog::OWN_SCHEMA;
use pgherd_sql::StatementKind;

use crate::encoding::UTF8;
use crate::session::{Prepared, Session, is_planned, time_text};
use crate::settings::quote_literal;

/// `text`, the type of SHOW's and EXPLAIN's column.
const TEXT_OID: u32 = 25;
/// The first version whose `pg_prepared_statements` has `result_types`.
const RESULT_TYPES_SINCE: u32 = 16;

impl Session {
    /// What to read in place of a view of `pg_catalog` that shows a session; without an alias.
    pub(super) fn session_view(&self, name: &str) -> Option<String> {
        match name {
            "pg_prepared_statements" => Some(self.prepared_statements_sql()),
            "pg_cursors" => Some(self.cursors_sql()),
            "pg_settings" => {
                // What the client said when it connected is set on the connection like anything else.
                let given = self.startup_settings.iter();
                let given = given.filter(|(name, value)| self.in_force(name) == Some(value.as_str()));
                let given: Vec<String> = given.map(|(name, _)| quote_literal(&name.to_ascii_lowercase())).collect();
                (self.encoding.name() != UTF8 || !given.is_empty()).then(|| settings_sql(self.encoding.name(), &given))
            }
            _ => None,
        }
    }

    fn prepared_statements_sql(&self) -> String {
        let with_results = self.server_major() >= RESULT_TYPES_SINCE;
        let [results, null, known, given] = match with_results {
            true => [
                " result_types,",
                " NULL::pg_catalog.regtype[],",
                "coalesce(result_types, pgherd_results),",
                ", result_types AS pgherd_results",
            ],
            false => [""; 4],
        };
        let columns =
            format!("name, statement, prepare_time, parameter_types,{results} from_sql, generic_plans, custom_plans");
        // What the coordinator has under the client's names is shown with the client's text.
        let there = self.there.iter().fold("''".to_owned(), |list, name| format!("{list}, {}", quote_literal(name)));
        let mut sql = format!(
            "(SELECT {columns} FROM pg_catalog.pg_prepared_statements WHERE from_sql AND \
             pg_catalog.left(name, {}) <> '{OWN_SCHEMA}_execute_' AND name NOT IN ({there}) UNION ALL \
             SELECT name, statement, prepare_time, parameter_types,{known} from_sql, \
             coalesce(generic, generic_plans), coalesce(custom, custom_plans) FROM (VALUES \
             (NULL::pg_catalog.text, NULL::pg_catalog.text, NULL::pg_catalog.timestamptz, \
             NULL::pg_catalog.regtype[],{null} NULL::pg_catalog.bool, 0::pg_catalog.int8, 0::pg_catalog.int8)",
            OWN_SCHEMA.len() + "_execute_".len()
        );
        // The unnamed statement is not shown.
        for (name, named) in self.statements.iter().filter(|(name, _)| !name.is_empty()) {
            let described = named.prepared.last_described();
            let parameters = described.as_ref().map_or(&named.prepared.declared, |d| &d.param_types);
            let _ = write!(
                sql,
                ", ({}, {}, '{}', {}, ",
                quote_literal(name),
                quote_literal(named.source()),
                time_text(named.made),
                types(parameters)
            );
            if with_results {
                let _ = write!(sql, "{}, ", result_types(&named.prepared).map_or("NULL".to_owned(), |r| types(&r)));
            }
            let _ = write!(sql, "{}, 0, 0)", named.from_sql.is_some());
        }
        let _ = write!(
            sql,
            ") pgherd_v ({columns}) LEFT JOIN (SELECT name AS pgherd_name, generic_plans AS generic, \
             custom_plans AS custom{given} FROM pg_catalog.pg_prepared_statements WHERE name IN ({there})) pgherd_p \
             ON pgherd_name = name WHERE name IS NOT NULL)"
        );
        sql
    }

    fn cursors_sql(&self) -> String {
        const COLUMNS: &str = "name, statement, is_holdable, is_binary, is_scrollable, creation_time";
        let mut sql = String::from(
            "(SELECT c.name, coalesce(d.statement, c.statement) AS statement, is_holdable, is_binary, is_scrollable, \
             creation_time FROM pg_catalog.pg_cursors c LEFT JOIN (VALUES \
             (NULL::pg_catalog.text, NULL::pg_catalog.text)",
        );
        for (name, declared) in &self.declared_cursors {
            let _ = write!(sql, ", ({}, {})", quote_literal(name), quote_literal(&declared.source));
        }
        let _ = write!(
            sql,
            ") d (name, statement) ON d.name = c.name WHERE c.name <> '' AND pg_catalog.left(c.name, {}) <> \
             '{OWN_SCHEMA}_p' UNION ALL SELECT * FROM (VALUES (NULL::pg_catalog.text, NULL::pg_catalog.text, \
             NULL::pg_catalog.bool, NULL::pg_catalog.bool, NULL::pg_catalog.bool, NULL::pg_catalog.timestamptz)",
            OWN_SCHEMA.len() + "_p".len()
        );
        for (name, portal) in &self.portals {
            let _ = write!(
                sql,
                ", ({}, {}, false, false, false, '{}')",
                quote_literal(name),
                quote_literal(portal.prepared.source()),
                time_text(portal.made)
            );
        }
        let _ = write!(sql, ") pgherd_v ({COLUMNS}) WHERE name IS NOT NULL)");
        sql
    }
}

/// `given`: names of settings that are as the client wanted them when it connected.
fn settings_sql(encoding: &str, given: &[String]) -> String {
    let is_given = match given {
        [] => "false".to_owned(),
        given => format!("source = 'session' AND pg_catalog.lower(name) IN ({})", given.join(", ")),
    };
    format!(
        "(SELECT name, CASE name WHEN 'client_encoding' THEN '{encoding}' ELSE setting END AS setting, unit, category, \
         short_desc, extra_desc, context, vartype, CASE WHEN {is_given} THEN 'client' ELSE source END AS source, \
         min_val, max_val, enumvals, boot_val, CASE WHEN {is_given} THEN setting ELSE reset_val END AS reset_val, \
         sourcefile, sourceline, pending_restart FROM pg_catalog.pg_settings)"
    )
}

/// An array of types as SQL.
fn types(oids: &[u32]) -> String {
    let list: Vec<String> = oids.iter().map(u32::to_string).collect();
    format!("'{{{}}}'::pg_catalog.oid[]::pg_catalog.regtype[]", list.join(","))
}

/// The types of the columns; none where the statement returns no rows, or where nobody has asked yet.
fn result_types(prepared: &Prepared) -> Option<Vec<u32>> {
    let kind = &prepared.statement.as_ref()?.kind;
    if !is_planned(kind) {
        return matches!(kind, StatementKind::Show { .. } | StatementKind::Explain { .. }).then(|| vec![TEXT_OID]);
    }
    let described = prepared.last_described()?;
    Some(described.fields.as_ref()?.iter().map(|f| f.type_oid).collect())
}
