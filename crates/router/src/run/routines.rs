//! Functions of users' that are about one key (crates/planner/src/routine.rs): what the coordinator says of a function,
//! and the copies of it that servers have beside the shards.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pgherd_backend::{BackendError, QueryResult, connect};
use pgherd_catalog::{Argument, ArgumentMode, GroupId, Oid, Routine, Shard, Snapshot, Table};
use pgherd_planner::{Plan, RoutineCopy};
use pgherd_sql::Statement;
use pgherd_sql::ast::Tree;
use pgherd_wire::backend::ErrorFields;

use crate::error::{Failure, Result};
use crate::session::{Session, name_there};
use crate::settings::quote_literal;

/// Names and copies that are known at the most; beyond that all are forgotten.
const KNOWN_MAX: usize = 100_000;

/// What the coordinator has said of a name, under a version of the catalog.
type Told = (u64, Option<Arc<Routine>>);

/// What is known of functions, and of their copies on servers. Of one database.
#[derive(Debug, Default)]
pub struct Routines {
    /// By name, with the version of the catalog; none: no copies can be made of it.
    known: Mutex<HashMap<String, Told>>,
    /// Copies that are there, by server, schema and name.
    copies: Mutex<HashSet<(GroupId, String, String)>>,
    /// Whoever makes some: others wait, and find them there.
    making: tokio::sync::Mutex<()>,
}

impl Routines {
    /// None: nobody has asked.
    fn of(&self, name: &str, version: u64) -> Option<Option<Arc<Routine>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).filter(|(then, _)| *then == version).map(|(_, routine)| routine.clone())
    }

    fn put(&self, name: &str, version: u64, routine: Option<Arc<Routine>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), (version, routine));
    }

    fn has_copy(&self, shard: &Shard, name: &str) -> bool {
        let copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        copies.contains(&(shard.group, shard.schema(), name.to_owned()))
    }

    fn put_copy(&self, shard: &Shard, name: &str) {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if copies.len() >= KNOWN_MAX {
            copies.clear();
        }
        copies.insert((shard.group, shard.schema(), name.to_owned()));
    }

    /// A server has said that one is not there.
    fn forget_copies(&self) {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Session {
    /// Asks the coordinator of functions that the statement calls, where nobody has asked before.
    pub(crate) async fn learn_routines(&mut self, statement: &Statement) {
        let version = self.db.version();
        let Some(name) = self.routine_called(statement) else { return };
        if self.plain_strings_escape() {
            return;
        }
        if self.db.routines.of(&name, version).is_some() {
            return;
        }
        let asked = async {
            let mut connection = self.lease_to_draw().await?;
            let described = connection.query(&question(&name)).await?;
            Ok::<_, Failure>(routine_of(&name, &described))
        };
        // Whoever runs it says what is wrong.
        match asked.await {
            Ok(routine) => self.db.routines.put(&name, version, routine.map(Arc::new)),
            Err(failure) => tracing::debug!("could not ask what function {name} is: {failure:?}"),
        }
    }

    /// What is known of them.
    pub(crate) fn routines_known(&self, statement: &Statement) -> Vec<Arc<Routine>> {
        // Bodies are read as they are where a backslash is nothing special.
        let called = self.routine_called(statement).filter(|_| !self.plain_strings_escape());
        let known = called.and_then(|name| self.db.routines.of(&name, self.db.version()));
        known.flatten().into_iter().collect()
    }

    /// The only function of users' that a query without tables calls.
    pub(crate) fn routine_called(&self, statement: &Statement) -> Option<String> {
        if !matches!(statement.tree, Tree::Query(_)) || !statement.relations.is_empty() || self.txn.catalog.is_some() {
            return None;
        }
        let catalog = self.catalog();
        let mut called = statement
            .calls
            .iter()
            .filter(|(schema, name)| catalog.user_functions.contains(name) && schema.as_deref() != Some("pg_catalog"));
        let (_, name) = called.next()?;
        called.next().is_none().then(|| name.clone())
    }

    /// Before a server runs the copy. False: it cannot have one.
    pub(super) async fn make_copy(
        &mut self,
        copy: &RoutineCopy,
        plan: &Plan,
        table: &Table,
        remainder: usize,
    ) -> Result<bool> {
        let Some(shard) = table.shards().get(remainder) else { return Ok(false) };
        if self.has_copy(copy, table, remainder) {
            return Ok(true);
        }
        let version = self.db.version();
        if self.db.routines.of(&copy.of, version) == Some(None) {
            return Ok(false);
        }
        let catalog = self.catalog();
        let db = self.db.clone();
        let _turn = db.routines.making.lock().await;
        if self.has_copy(copy, table, remainder) {
            return Ok(true);
        }
        match self.make_copies(copy, plan, table, shard.group, &catalog).await {
            Ok(()) => return Ok(self.has_copy(copy, table, remainder)),
            // It would fail again.
            Err(BackendError::Server(fields)) => {
                tracing::warn!("could not make a copy of function {}: {}", copy.signature, fields.message());
                self.db.routines.put(&copy.of, version, None);
            }
            Err(error) => tracing::debug!("could not make a copy of function {}: {error}", copy.signature),
        }
        Ok(false)
    }

    /// Whether the shard's server is known to have it.
    pub(crate) fn has_copy(&self, copy: &RoutineCopy, table: &Table, remainder: usize) -> bool {
        let shard = table.shards().get(remainder);
        shard.is_some_and(|shard| self.db.routines.has_copy(shard, &copy.name))
    }

    /// For all shards of a server at once: others come soon.
    async fn make_copies(
        &mut self,
        copy: &RoutineCopy,
        plan: &Plan,
        table: &Table,
        group: GroupId,
        catalog: &Snapshot,
    ) -> std::result::Result<(), BackendError> {
        let target = self.thread.shared.own_target_in(catalog, group, &self.db.name);
        let mut connection = connect(&target).await?;
        // Who drops the table holds the schema.
        let settings = "SET check_function_bodies = off; SET search_path = pg_catalog; SET lock_timeout = '2s'";
        connection.query(settings).await?;
        for (at, shard) in table.shards().iter().enumerate().filter(|(_, shard)| shard.group == group) {
            let is_there = |table: &Arc<Table>| {
                table.is_reference() || table.shards().get(at).is_some_and(|shard| shard.group == group)
            };
            if !plan.tables.iter().all(is_there) {
                continue;
            }
            let there = |oid: Oid| name_there(plan.tables.iter().find(|table| table.oid == oid)?, at);
            let body = quote_literal(&copy.body.render(there));
            let schema = shard.schema();
            match connection.query(&format!("CREATE FUNCTION {schema}.{}{}{body}", copy.name, copy.head)).await {
                Ok(_) => {}
                // Another router has made it, or is about to.
                Err(BackendError::Server(fields)) if matches!(fields.sqlstate(), "42723" | "23505") => {
                    let ours = format!(
                        "SELECT 1 FROM pg_proc WHERE proname = {} AND pronamespace = {}::regnamespace \
                         AND proowner = current_user::regrole AND prosrc = {body}",
                        quote_literal(&copy.name),
                        quote_literal(&schema)
                    );
                    if connection.query(&ours).await?.rows.is_empty() {
                        return Err(BackendError::Server(fields));
                    }
                }
                Err(error) => return Err(error),
            }
            self.db.routines.put_copy(shard, &copy.name);
        }
        connection.close().await;
        Ok(())
    }

    pub(crate) fn forget_copies(&self) {
        self.db.routines.forget_copies();
    }
}

/// A server's words about a copy, in the user's.
pub(super) fn in_users_words(fields: &mut ErrorFields, copy: &RoutineCopy, renamed: &dyn Fn(u32) -> Option<String>) {
    let words = |text: &str| {
        let mut text = text.to_owned();
        for part in &copy.body.parts {
            if let pgherd_sql::Part::Table { table, as_written, .. } = part
                && let Some(there) = renamed(*table)
            {
                text = text.replace(&there, as_written);
            }
        }
        for given in pgherd_planner::GIVEN_NAMES {
            text = text.replace(given, &format!("{}()", given.trim_start_matches("pgherd_")));
        }
        named_as(&text, copy)
    };
    let position = fields.get(b'p').and_then(|position| position.parse::<usize>().ok()?.checked_sub(1));
    if let (Some(query), Some(position)) = (fields.get(b'q').map(str::to_owned), position)
        && let Some((at, _)) = query.char_indices().nth(position)
    {
        let before = words(&query[..at]).chars().count();
        fields.set(b'p', (before + 1).to_string());
    }
    for code in *b"WqMD" {
        if let Some(text) = fields.get(code).map(words) {
            fields.set(code, text);
        }
    }
}

/// The copy's name, its schema and its arguments are those of the user's function.
fn named_as(text: &str, copy: &RoutineCopy) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&copy.name) {
        let before = &rest[..at];
        let schema = before.strip_suffix('.').and_then(|before| {
            let digits = before.trim_end_matches(|c: char| c.is_ascii_digit());
            digits.strip_suffix("pgherd_").map(str::len)
        });
        out.push_str(&before[..schema.unwrap_or(at)]);
        rest = &rest[at + copy.name.len()..];
        match rest.strip_prefix('(').and_then(|arguments| arguments.find(')')) {
            Some(end) => {
                out.push_str(&copy.signature);
                rest = &rest[end + 2..];
            }
            None => out.push_str(&copy.of),
        }
    }
    out.push_str(rest);
    out
}

/// The server has no such copy any more.
pub(crate) fn is_missing(fields: &ErrorFields) -> bool {
    fields.sqlstate() == "42883" && fields.message().contains(pgherd_planner::COPY_PREFIX)
}

pub(super) fn lacks_copy(failure: &Failure) -> bool {
    matches!(failure, Failure::Statement(fields) if is_missing(fields))
}

/// One row for each argument, or one. What is IMMUTABLE and reads tables would be computed once for a kept statement.
fn question(name: &str) -> String {
    format!(
        "SELECT n.nspname, pg_catalog.quote_ident(p.proname) \
         || pg_catalog.substring(p.oid::pg_catalog.regprocedure::text, '[(][^(]*$'), l.lanname, p.prosrc, \
         pg_catalog.format_type(p.prorettype, NULL), p.proretset, p.proisstrict, \
         pg_catalog.concat_ws(' ', CASE p.provolatile WHEN 'v' THEN 'VOLATILE' ELSE 'STABLE' END, \
         'COST', p.procost, CASE WHEN p.proretset THEN 'ROWS ' || p.prorows END), \
         a.name, a.type, pg_catalog.format_type(a.type, NULL), coalesce(a.mode, 'i') \
         FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
         JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
         LEFT JOIN LATERAL ROWS FROM (pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])), \
         pg_catalog.unnest(p.proargnames), pg_catalog.unnest(p.proargmodes)) WITH ORDINALITY a (type, name, mode, \
         at) ON true \
         WHERE p.proname = {0} AND l.lanname IN ('sql', 'plpgsql') AND p.prokind = 'f' AND NOT p.prosecdef \
         AND NOT p.proleakproof AND p.provariadic = 0 AND p.prosupport = 0 AND p.proconfig IS NULL \
         AND p.prosqlbody IS NULL AND p.protrftypes IS NULL AND n.nspname NOT IN ('pg_catalog', 'pgherd') \
         AND pg_catalog.length(p.prosrc) < 65536 \
         AND coalesce(pg_catalog.current_setting('plpgsql.variable_conflict', true), '') IN ('', 'error') \
         AND (SELECT pg_catalog.count(*) FROM pg_catalog.pg_proc o WHERE o.proname = p.proname) = 1 \
         AND (p.proacl IS NULL OR EXISTS (SELECT FROM pg_catalog.aclexplode(p.proacl) x \
         WHERE x.grantee = 0 AND x.privilege_type = 'EXECUTE')) \
         AND (p.prorettype = 'void'::pg_catalog.regtype \
         OR p.prorettype = 'record'::pg_catalog.regtype AND p.proallargtypes IS NOT NULL \
         OR EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = p.prorettype AND t.typtype IN ('b', 'r', 'm') \
         AND t.oid < 16384)) \
         AND NOT EXISTS (SELECT FROM pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) \
         u (type) \
         JOIN pg_catalog.pg_type t ON t.oid = u.type WHERE t.oid >= 16384 OR t.typtype NOT IN ('b', 'r', 'm')) \
         ORDER BY a.at",
        quote_literal(name)
    )
}

fn routine_of(name: &str, found: &QueryResult) -> Option<Routine> {
    let text = |row: usize, column: usize| found.text(row, column).unwrap_or_default().to_owned();
    let argument = |row: usize| {
        let mode = match found.text(row, 11)? {
            "i" => ArgumentMode::In,
            "o" => ArgumentMode::Out,
            "b" => ArgumentMode::InOut,
            "t" => ArgumentMode::Table,
            _ => return None,
        };
        Some(Argument {
            name: text(row, 8),
            type_oid: found.text(row, 9)?.parse().ok()?,
            type_name: text(row, 10),
            mode,
        })
    };
    found.rows.first()?;
    Some(Routine {
        schema: text(0, 0),
        name: name.to_owned(),
        signature: text(0, 1),
        language: text(0, 2),
        body: text(0, 3),
        arguments: (0..found.rows.len()).map(argument).collect::<Option<_>>()?,
        result: text(0, 4),
        returns_set: found.text(0, 5) == Some("t"),
        is_strict: found.text(0, 6) == Some("t"),
        options: text(0, 7),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_are_the_users() {
        let copy = RoutineCopy {
            name: "pgherd_body_01".to_owned(),
            head: String::new(),
            body: pgherd_sql::Splice::default(),
            rides: true,
            of: "f".to_owned(),
            signature: "s.f(integer)".to_owned(),
        };
        let cases = [
            (
                "PL/pgSQL function pgherd_102008.pgherd_body_01(integer,inet) line 3",
                "PL/pgSQL function s.f(integer) line 3",
            ),
            ("pgherd_body_01(integer) and pgherd_body_01", "s.f(integer) and f"),
            ("x.pgherd_body_01", "x.f"),
            ("nothing", "nothing"),
        ];
        for (text, expected) in cases {
            assert_eq!(named_as(text, &copy), expected);
        }
    }
}
