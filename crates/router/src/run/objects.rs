//! Definitions of objects that are no tables. The coordinator has them all; a worker has roles, schemas, and what a
//! distributed or reference table there needs: functions, types, collations, operators, extensions. So a worker hears
//! of a function's definition only where it has one of that name, and of the rest where it has the object. Extensions
//! with operators of built-in types are on all workers.

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Oid};
use pgherd_control::describe::Prerequisite;
use pgherd_control::distribute;
use pgherd_sql::{DdlInfo, Name};

use super::ddl::touches_unnamed;
use super::own::without_position;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal, quote_name};

/// Statements that change no table: the workers hear of them as they stand.
const ON_EVERY_NODE: &[&str] = &["role", "schema"];
/// Objects that workers have only where a table needed them, with the catalog and the column that have their names; none:
/// what the statement names is part of one.
const WHERE_PRESENT: &[(&str, &str, &str)] = &[
    ("type", "pg_type", "typname"),
    ("attribute", "", ""),
    ("domain constraint", "", ""),
    ("domain", "pg_type", "typname"),
    ("function", "pg_proc", "proname"),
    ("procedure", "pg_proc", "proname"),
    ("routine", "pg_proc", "proname"),
    ("aggregate", "pg_proc", "proname"),
    ("operator", "pg_operator", "oprname"),
    ("collation", "pg_collation", "collname"),
    ("extension", "pg_extension", "extname"),
    ("text search configuration", "pg_ts_config", "cfgname"),
    ("text search dictionary", "pg_ts_dict", "dictname"),
];

/// What users make for text search is on all workers: constants and settings name it.
fn is_text_search(info: &DdlInfo) -> bool {
    info.object.starts_with("text search")
}

/// The objects that a definition names and that there were before it.
#[derive(Debug, Clone)]
pub(super) struct Meant {
    /// The catalog and the column that have their names.
    catalog: &'static str,
    column: &'static str,
    names: Vec<String>,
    /// Their names as `pg_identify_object` tells them, with schemas.
    identities: Vec<String>,
}

/// What was found out before a definition.
#[derive(Debug, Clone, Default)]
pub(super) struct Followed {
    pub meant: Option<Meant>,
    /// Distributed and reference tables that it may change.
    pub tables: Vec<Oid>,
}

/// Whether statements of a command tag, as event triggers tell it, may define what workers have, and no table.
pub(super) fn concerns_workers(tag: &str) -> bool {
    const OTHERS: &[&str] = &["GRANT", "REVOKE", "COMMENT", "DROP OWNED", "REASSIGN OWNED", "SECURITY LABEL"];
    let makes = ["CREATE SCHEMA", "CREATE FUNCTION", "CREATE PROCEDURE", "CREATE EXTENSION"].contains(&tag)
        || tag.starts_with("CREATE TEXT SEARCH");
    let words = tag.split_once(' ').filter(|(verb, _)| matches!(*verb, "ALTER" | "DROP")).map(|(_, object)| object);
    let is_object =
        |object: &str| object == "SCHEMA" || WHERE_PRESENT.iter().any(|(known, ..)| known.eq_ignore_ascii_case(object));
    makes || OTHERS.contains(&tag) || words.is_some_and(is_object)
}

impl Session {
    /// Whether workers must hear of a definition, as far as that can be told before it: where they have the object, or
    /// the table.
    pub(super) async fn is_for_workers(&mut self, info: &DdlInfo) -> Result<bool> {
        if ON_EVERY_NODE.contains(&info.object)
            || info.tag == "CREATE EXTENSION"
            || is_text_search(info)
            || !touches_unnamed(info) && !self.affected_tables(info).await?.is_empty()
        {
            return Ok(true);
        }
        match WHERE_PRESENT.iter().find(|(object, ..)| *object == info.object) {
            Some((_, catalog, column)) => Ok(!self.groups_with(catalog, column, info).await?.is_empty()),
            None => Ok(false),
        }
    }

    /// What names in a definition mean on the coordinator, before it is run there: a worker has not all schemas'
    /// objects of a name. None: it is not told, and names are believed.
    pub(super) async fn meant_objects(&mut self, info: &DdlInfo) -> Result<Option<Meant>> {
        let (catalog, column) = match info.object {
            "type" | "domain" | "attribute" => ("pg_type", "typname"),
            "domain constraint" if info.tag == "RENAME" => ("pg_type", "typname"),
            "function" | "procedure" | "routine" => ("pg_proc", "proname"),
            "collation" => ("pg_collation", "collname"),
            _ => return Ok(None),
        };
        let names = if info.objects.is_empty() { &info.relations } else { &info.objects };
        if info.tag.starts_with("CREATE")
            || info.all_in_schema
            || names.is_empty()
            || self.catalog().worker_groups().is_empty()
        {
            return Ok(None);
        }
        let is_function = catalog == "pg_proc";
        let quoted = |name: &Name| quote_name(name.schema.as_deref(), &name.name);
        let found = |(at, name): (usize, &Name)| match (catalog, info.signatures.get(at)) {
            ("pg_type", _) => type_named(name, false),
            ("pg_proc", Some(Some(signature))) => {
                let are_known = signature.types.iter();
                let are_known = are_known.map(|(name, array)| format!("{} IS NOT NULL", type_named(name, *array)));
                let are_known = are_known.chain(["true".to_owned()]).collect::<Vec<_>>().join(" AND ");
                let found = found_by("to_regprocedure", &signature.text);
                format!("CASE WHEN {are_known} THEN {found} END")
            }
            ("pg_proc", _) => found_by("to_regproc", &quoted(name)),
            _ => found_by("to_regcollation", &quoted(name)),
        };
        let found: Vec<String> = names.iter().enumerate().map(found).collect();
        let sql = format!(
            "SELECT i.identity, i.schema ~ '^pg_temp' FROM (VALUES ({})) o(oid) LEFT JOIN LATERAL \
                 pg_catalog.pg_identify_object('pg_catalog.{catalog}'::pg_catalog.regclass, o.oid, 0) i ON true",
            found.join("), (")
        );
        let found = self.ask_coordinator(&sql).await?;
        let rows = 0..found.rows.len();
        // What is no type does not exist; a function's arguments may be written otherwise.
        if is_function && rows.clone().any(|row| found.text(row, 0).is_none()) {
            return Ok(None);
        }
        let lasting = rows.filter(|row| found.text(*row, 1) == Some("f"));
        let identities = lasting.filter_map(|row| found.text(row, 0)).map(str::to_owned).collect();
        let names = names.iter().map(|name| name.name.clone()).collect();
        Ok(Some(Meant { catalog, column, names, identities }))
    }

    /// Those of the objects that a worker has.
    async fn present(&mut self, group: GroupId, meant: &Meant) -> Result<Vec<String>> {
        if meant.identities.is_empty() {
            return Ok(Vec::new());
        }
        let list = |texts: &[String]| texts.iter().map(|text| quote_literal(text)).collect::<Vec<_>>().join(", ");
        let catalog = meant.catalog;
        // No name is resolved: the session's role may have no right on its schema.
        let sql = format!(
            "SELECT i.identity FROM pg_catalog.{catalog} o, LATERAL \
                 pg_catalog.pg_identify_object('pg_catalog.{catalog}'::pg_catalog.regclass, o.oid, 0) i \
             WHERE o.{} IN ({}) AND i.identity IN ({})",
            meant.column,
            list(&meant.names),
            list(&meant.identities)
        );
        self.join(group).await?;
        let found = self.collect_on(group, &sql).await?;
        Ok((0..found.rows.len()).filter_map(|row| found.text(row, 0).map(str::to_owned)).collect())
    }

    /// Workers get what a type is made of newly; whether they can follow then whatever is said of it.
    async fn bring_parts(&mut self, info: &DdlInfo, tables: &[Oid]) -> Result<bool> {
        let adds =
            |s: &String| matches!(s.as_str(), "add_constraint" | "column_default" | "add_column" | "alter_column_type");
        let is_made_of_more = matches!(info.object, "type" | "domain") && info.subcommands.iter().any(adds);
        if is_made_of_more {
            self.bring_prerequisites(tables).await?;
        }
        Ok(is_made_of_more && !tables.is_empty())
    }

    /// Workers that have some of the objects follow. There they are the first of their names in the path, as on the
    /// coordinator, which has whatever workers have.
    async fn follow_meant(&mut self, text: &str, info: &DdlInfo, meant: &Meant, tables: &[Oid]) -> Result<()> {
        let must = self.bring_parts(info, tables).await?;
        for group in self.catalog().worker_groups() {
            let present = self.present(group, meant).await?;
            if present.is_empty() {
                continue;
            }
            if must {
                self.mark_writer(group);
                self.run_defining(group, text).await.map_err(without_position)?;
                continue;
            }
            let drop = format!(
                "DROP {} {}{}",
                info.object.to_ascii_uppercase(),
                present.join(", "),
                if info.cascade { " CASCADE" } else { "" }
            );
            self.run_where_present(&[group], if info.tag == "DROP" { &drop } else { text }).await?;
        }
        Ok(())
    }

    /// How many sessions a role may have is for the router to see to: its connections to a worker are others.
    async fn lift_limits(&mut self, info: &DdlInfo) -> Result<()> {
        for name in &info.objects {
            self.run_everywhere(&format!("ALTER ROLE {} CONNECTION LIMIT -1", quote_ident(&name.name))).await?;
        }
        Ok(())
    }

    /// After a definition that was run on the coordinator: the same on the workers that it concerns.
    pub(super) async fn follow_object(&mut self, text: &str, info: &DdlInfo, followed: Followed) -> Result<()> {
        if ON_EVERY_NODE.contains(&info.object) || is_role_grant(info) {
            let bare = self.bare_schema(info, text).await?;
            self.run_everywhere(bare.as_deref().unwrap_or(text)).await?;
            if info.object == "role" && text.to_ascii_lowercase().contains("limit") {
                self.lift_limits(info).await?;
            }
            return if info.gives_password { self.follow_passwords(text).await } else { Ok(()) };
        }
        match info.tag {
            "CREATE FUNCTION" | "CREATE AGGREGATE" => self.check_expressions_calling(&info.objects, "").await?,
            "RENAME" | "SET SCHEMA" if matches!(info.object, "function" | "routine" | "aggregate") => {
                self.check_expressions_calling(&[], "a function").await?;
            }
            "ALTER DOMAIN" => self.check_expressions_calling(&[], "a type").await?,
            _ if info.object == "cast" => return self.follow_cast(text, info).await,
            _ => {}
        }
        let creates = info.tag.starts_with("CREATE");
        if is_of_database(info) {
            let groups = self.catalog().worker_groups();
            return self.run_where_present(&groups, text).await;
        }
        let Some((_, catalog, column)) = WHERE_PRESENT.iter().find(|(object, ..)| *object == info.object) else {
            return Ok(());
        };
        // Naming the session's temporary schema is enough to keep a worker from preparing its part of the transaction.
        let is_temporary = |name: &Name| name.schema.as_deref().is_some_and(|s| s.starts_with("pg_temp"));
        if info.objects.iter().any(is_temporary) {
            return Ok(());
        }
        match info.tag {
            // Of what is new no worker has an old one: they follow whatever is dropped.
            "CREATE FUNCTION" | "CREATE PROCEDURE" if !info.replaces => Ok(()),
            "CREATE FUNCTION" | "CREATE PROCEDURE" => self.replace_function(info).await,
            "CREATE EXTENSION" => self.follow_extension().await,
            _ if is_text_search(info) => {
                let groups = if creates { Vec::new() } else { self.catalog().worker_groups() };
                if matches!(info.tag, "DROP" | "RENAME" | "SET SCHEMA") {
                    self.run_where_present(&groups, text).await?;
                    return self.follow_text_search().await;
                }
                // A mapping may need dictionaries that no worker has yet.
                self.follow_text_search().await?;
                self.run_where_present(&groups, text).await
            }
            _ if creates => Ok(()),
            _ if let Some(meant) = &followed.meant => self.follow_meant(text, info, meant, &followed.tables).await,
            _ => {
                let groups = self.groups_with(catalog, column, info).await?;
                self.run_where_present(&groups, text).await
            }
        }
    }

    /// The extensions that all workers have; this may have made several.
    async fn follow_extension(&mut self) -> Result<()> {
        let all = "SELECT 'extension', name, guard, pg_catalog.jsonb_build_array(ddl) FROM pgherd.worker_extensions \
                   ORDER BY oid";
        self.make_all_on_workers(all).await
    }

    /// What all workers have for text search, each after what it is made of.
    async fn follow_text_search(&mut self) -> Result<()> {
        let all = "SELECT kind, name, guard, ddl FROM pgherd.worker_text_search ORDER BY place, objid";
        self.make_all_on_workers(all).await
    }

    /// `sql` tells of prerequisites: kind, name, guard and statements.
    async fn make_all_on_workers(&mut self, sql: &str) -> Result<()> {
        let made = self.collect_on(COORDINATOR_GROUP, sql).await?;
        let text = |row, column| made.text(row, column).unwrap_or_default().to_owned();
        let objects: Vec<Prerequisite> = (0..made.rows.len())
            .map(|row| Prerequisite {
                id: format!("{} {}", text(row, 0), text(row, 1)),
                kind: text(row, 0),
                name: text(row, 1),
                guard: text(row, 2),
                ddl: serde_json::from_str(&text(row, 3)).ok(),
                depends_on: Vec::new(),
            })
            .collect();
        self.make_on_workers(&objects).await
    }

    /// Workers that have the types have the cast, and its function.
    async fn follow_cast(&mut self, text: &str, info: &DdlInfo) -> Result<()> {
        let groups = self.catalog().worker_groups();
        if info.tag == "CREATE CAST" {
            let sql = "SELECT pg_catalog.pg_get_functiondef(p.oid) FROM (SELECT castfunc FROM pg_catalog.pg_cast \
                       ORDER BY oid DESC LIMIT 1) c JOIN pg_catalog.pg_proc p ON p.oid = c.castfunc AND p.oid >= 16384";
            let function = self.collect_on(COORDINATOR_GROUP, sql).await?.text(0, 0).map(str::to_owned);
            if let Some(function) = function {
                self.run_where_present(&groups, &function).await?;
            }
        }
        self.run_where_present(&groups, text).await
    }

    /// CREATE SCHEMA without what is made inside of it, which is the coordinator's like what comes later.
    async fn bare_schema(&mut self, info: &DdlInfo, text: &str) -> Result<Option<String>> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let makes = words.filter(|w| ["create", "grant"].iter().any(|m| w.eq_ignore_ascii_case(m))).count();
        if info.tag != "CREATE SCHEMA" || makes < 2 {
            return Ok(None);
        }
        let name = info.objects.first().map_or("", |o| o.name.as_str());
        let named = match name {
            // CURRENT_USER and its like.
            "" => "nspname IN (current_user, session_user)".to_owned(),
            name => format!("nspname = {}", quote_literal(name)),
        };
        let sql = format!(
            "SELECT nspname, pg_catalog.pg_get_userbyid(nspowner) FROM pg_catalog.pg_namespace WHERE {named} \
             ORDER BY oid DESC LIMIT 1"
        );
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        Ok(result.text(0, 0).zip(result.text(0, 1)).map(|(name, owner)| {
            format!("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {}", quote_ident(name), quote_ident(owner))
        }))
    }

    /// The workers that have an object of one of a statement's names, in whatever schema.
    async fn groups_with(&mut self, catalog: &str, column: &str, info: &DdlInfo) -> Result<Vec<GroupId>> {
        let groups = self.catalog().worker_groups();
        if info.objects.is_empty() || info.all_in_schema || catalog.is_empty() {
            return Ok(groups);
        }
        let names: Vec<String> = info.objects.iter().map(|o| quote_literal(&o.name)).collect();
        let names = names.join(", ");
        let sql = format!("SELECT FROM pg_catalog.{catalog} WHERE {column} IN ({names}) LIMIT 1");
        for group in &groups {
            self.join(*group).await?;
        }
        let mut found = Vec::new();
        for (group, tag) in self.run_parallel(groups.into_iter().map(|group| (group, sql.clone())).collect()).await {
            if tag? != "SELECT 0" {
                found.push(group);
            }
        }
        Ok(found)
    }

    /// A trigger or a default on a worker may use the function that this replaces; others of the name may be other
    /// roles'. Its body was checked on the coordinator; a worker does not have all that it names.
    async fn replace_function(&mut self, info: &DdlInfo) -> Result<()> {
        let groups = self.groups_with("pg_proc", "proname", info).await?;
        let Some(name) = info.objects.first().filter(|_| !groups.is_empty()) else { return Ok(()) };
        let schema = name.schema.as_deref().map_or("pg_catalog.current_schema()".to_owned(), quote_literal);
        let sql = format!(
            "SELECT pg_catalog.pg_get_functiondef(p.oid) FROM pg_catalog.pg_proc p \
             JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
             WHERE p.proname = {} AND p.prokind <> 'a' AND n.nspname = {schema} AND n.nspname !~ '^pg_temp_' \
                 AND pg_catalog.pg_has_role(p.proowner, 'USAGE')",
            quote_literal(&name.name)
        );
        let defined = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let definitions: Vec<&str> = (0..defined.rows.len()).filter_map(|row| defined.text(row, 0)).collect();
        for definition in definitions {
            let sql = distribute::replace_function_sql(definition);
            self.run_where_present(&groups, &sql).await?;
        }
        Ok(())
    }

    /// The same statement on workers, which may not have the object or what it is made of.
    async fn run_where_present(&mut self, groups: &[GroupId], sql: &str) -> Result<()> {
        for group in groups.iter().copied() {
            self.join(group).await?;
            self.mark_writer(group);
            self.run_quiet(group, "SAVEPOINT pgherd_where_present").await?;
            match self.run_defining(group, sql).await {
                Ok(()) => {}
                Err(failure) if is_missing(&failure) => {
                    self.run_quiet(group, "ROLLBACK TO SAVEPOINT pgherd_where_present").await?;
                }
                Err(failure) => return Err(failure),
            }
            self.run_quiet(group, "RELEASE SAVEPOINT pgherd_where_present").await?;
        }
        Ok(())
    }
}

/// SQL for the object that a name means, by one of PostgreSQL's `to_reg…`. Up to version 15 these fail where a type that
/// is named does not exist, or is a shell, so types are asked for first.
fn found_by(finder: &str, written: &str) -> String {
    format!("pg_catalog.{finder}({})::pg_catalog.oid", quote_literal(written))
}

/// SQL for the type that a name means; NULL: there is none, or only a shell, or there are no arrays of it where one is meant.
fn type_named(name: &Name, array: bool) -> String {
    let place = match &name.schema {
        Some(schema) => format!("n.nspname = {}", quote_literal(schema)),
        None => "pg_catalog.pg_type_is_visible(t.oid)".to_owned(),
    };
    format!(
        "(SELECT t.oid FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace \
          WHERE t.typname = {} AND t.typisdefined AND {place}{})",
        quote_literal(&name.name),
        if array { " AND t.typarray <> 0" } else { "" }
    )
}

/// GRANT and REVOKE of a role's membership.
pub(super) fn is_role_grant(info: &DdlInfo) -> bool {
    matches!(info.tag, "GRANT ROLE" | "REVOKE ROLE")
}

/// What a database is called, who owns it, and rights on it: CREATE is needed on each node for a schema there.
fn is_of_database(info: &DdlInfo) -> bool {
    matches!(info.tag, "GRANT" | "REVOKE" | "RENAME" | "ALTER OWNER") && info.object == "database"
}

/// The object is not there, or not made of what it needs.
fn is_missing(failure: &Failure) -> bool {
    matches!(failure.sqlstate(), "42704" | "42883" | "42P01" | "3F000" | "3D000" | "42703" | "2BP01")
}
