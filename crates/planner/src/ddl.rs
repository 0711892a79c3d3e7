//! Where a utility statement must run.

use std::sync::Arc;

use pgherd_catalog::{Snapshot, Table};
use pgherd_sql::{Name, Statement, StatementKind};

use crate::SessionView;
use crate::analysis::resolve_name;
use crate::plan::{DdlScope, Refusal};

/// Where a utility statement must run, and on which tables.
pub fn ddl_scope(
    statement: &Statement,
    snapshot: &Snapshot,
    session: &SessionView<'_>,
) -> std::result::Result<DdlScope, Refusal> {
    use StatementKind as K;
    let tables = |names: &[Name]| -> Vec<Arc<Table>> {
        let mut found: Vec<Arc<Table>> = Vec::new();
        for name in names {
            if let Some(table) = resolve_name(snapshot, session, name.schema.as_deref(), &name.name)
                && !found.iter().any(|t| t.oid == table.oid)
            {
                found.push(table.clone());
            }
        }
        found
    };
    let scope = |names: &[Name]| {
        let found = tables(names);
        if found.is_empty() { DdlScope::Coordinator } else { DdlScope::Tables(found) }
    };
    let all_named = || -> Vec<Name> {
        statement.relations.iter().map(|r| Name { schema: r.schema.clone(), name: r.name.clone() }).collect()
    };
    Ok(match &statement.kind {
        K::Truncate { relations, .. } | K::Vacuum { relations, .. } | K::Lock { relations } => scope(relations),
        K::Reindex { relation: Some(name), object: "table", .. } => scope(std::slice::from_ref(name)),
        K::Reindex { relation: None, .. } => DdlScope::AllNodes,
        K::Reindex { relation: Some(_), .. } => DdlScope::Coordinator,
        K::Cluster => scope(&all_named()),
        K::CreateTable(create) => {
            // A foreign key from a local table needs the rows on the coordinator.
            let referenced = tables(&create.references);
            let parents = tables(&create.parents);
            if create.temp {
                return refuse_if(
                    parents.first().or(referenced.iter().find(|t| !t.is_reference())),
                    "cannot create a temporary table that depends on the distributed table",
                    None,
                );
            }
            if let Some(parent) = parents.first() {
                DdlScope::Tables(vec![parent.clone()])
            } else if let Some(table) = referenced.iter().find(|t| !t.is_reference()) {
                return Err(refusal(
                    format!(
                        "cannot create a foreign key from a local table to the distributed table \"{}\"",
                        table.name
                    ),
                    Some("Distribute the new table first, then add the foreign key with ALTER TABLE."),
                ));
            } else {
                DdlScope::Coordinator
            }
        }
        K::Ddl(info) => match info.object {
            // Objects that statements on workers may name: the same everywhere.
            "schema"
            | "role"
            | "type"
            | "domain"
            | "extension"
            | "function"
            | "procedure"
            | "routine"
            | "aggregate"
            | "operator"
            | "operator class"
            | "operator family"
            | "cast"
            | "collation"
            | "conversion"
            | "language"
            | "transform"
            | "text search configuration"
            | "text search dictionary"
            | "text search parser"
            | "text search template"
            | "default privileges"
            | "domain constraint"
            | "attribute"
            | "database"
                if !info.temp =>
            {
                DdlScope::AllNodes
            }
            "table" | "foreign table" | "column" | "constraint" | "index" | "trigger" | "policy" | "rule"
            | "statistics" | "view" | "materialized view" | "sequence" => {
                if matches!(info.object, "view" | "materialized view" | "sequence") && info.tag.starts_with("CREATE") {
                    // A view over distributed tables lives on the coordinator and is federated from there.
                    return Ok(DdlScope::Coordinator);
                }
                if info.all_in_schema {
                    let named = |t: &Arc<Table>| info.objects.iter().any(|o| o.name == t.schema);
                    let mut found: Vec<Arc<Table>> = snapshot.all_tables().filter(|t| named(t)).cloned().collect();
                    found.sort_by_key(|t| t.oid);
                    return Ok(if found.is_empty() { DdlScope::Coordinator } else { DdlScope::Tables(found) });
                }
                let mut names = info.relations.clone();
                if matches!(info.tag, "GRANT" | "REVOKE") {
                    names.extend(info.objects.iter().cloned());
                }
                let found = tables(&names);
                // DROP INDEX and ALTER INDEX name the index, not the table: the caller looks it up.
                if found.is_empty() { DdlScope::Coordinator } else { DdlScope::Tables(found) }
            }
            _ => DdlScope::Coordinator,
        },
        K::AlterRoleSet { .. } => DdlScope::AllNodes,
        K::CreateDatabase { .. } | K::DropDatabase { .. } | K::AlterDatabase { .. } | K::Checkpoint => {
            DdlScope::AllNodes
        }
        K::Copy(copy) => scope(copy.relation.as_slice()),
        _ => DdlScope::Coordinator,
    })
}

fn refusal(message: String, hint: Option<&str>) -> Refusal {
    Refusal { sqlstate: "0A000", message, detail: None, hint: hint.map(str::to_owned) }
}

fn refuse_if(table: Option<&Arc<Table>>, message: &str, hint: Option<&str>) -> std::result::Result<DdlScope, Refusal> {
    match table {
        Some(table) => Err(refusal(format!("{message} \"{}\"", table.name), hint)),
        None => Ok(DdlScope::Coordinator),
    }
}
