//! Policies of distributed and reference tables. Workers apply them to their own rows, and must come to what one server
//! would: a policy may read reference tables, which are whole there, and call functions that read nothing else.

use std::collections::HashSet;

use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_control::cluster_state::ClusterState;
use pgherd_control::describe::{Policy, TableDescription};
use pgherd_sql::{Body, Name, read_body};

use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;

/// Catalogs of roles, which are the same everywhere.
const ROLES: &[&str] = &["pg_roles", "pg_authid", "pg_auth_members", "pg_user", "pg_group", "pg_shadow"];

/// What a policy reads and calls, as far as it can be told.
#[derive(Default)]
struct Reads {
    /// Why a worker cannot evaluate it.
    why: Option<String>,
    /// Names of functions, of those that do not exist as well.
    functions: HashSet<String>,
    relations: HashSet<(String, String)>,
}

impl Reads {
    fn tell(&mut self, why: String) {
        self.why.get_or_insert(why);
    }

    /// `within`: what the body is of, for messages.
    fn add(&mut self, body: &Body, within: &str, state: &ClusterState) {
        for (schema, name) in &body.relations {
            let Some(schema) = schema else {
                // In a policy's text only catalogs and CTEs are without a schema.
                let is_cte = within.is_empty() && !name.starts_with("pg_");
                if !is_cte && !ROLES.contains(&name.as_str()) {
                    let unqualified = if name.starts_with("pg_") { "" } else { ", without its schema" };
                    self.tell(format!("{within}reads \"{name}\"{unqualified}."));
                }
                continue;
            };
            let is_reference = state.tables.iter().any(|t| t.is_reference() && t.schema == *schema && t.name == *name);
            let is_of_roles = schema == "pg_catalog" && ROLES.contains(&name.as_str());
            if !is_reference && !is_of_roles {
                self.tell(format!("{within}reads \"{schema}.{name}\", which is not a reference table."));
            }
            self.relations.insert((schema.clone(), name.clone()));
        }
    }
}

impl Session {
    /// Refuses policies that workers would apply otherwise than one server.
    pub(super) async fn check_policies(&mut self, table: &TableDescription, state: &ClusterState) -> Result<()> {
        for policy in &table.policies {
            if let Some(why) = self.policy_reads(policy, state).await?.why {
                return Err(Failure::refused(format!(
                    "cannot use policy \"{}\" on table \"{}\"",
                    policy.name, table.name
                ))
                .detail(format!("It {why} Workers apply policies, and have only a part of the rows."))
                .hint("Policies can read reference tables, and call functions that read nothing else."));
            }
        }
        Ok(())
    }

    /// The same after a function has come into existence or got another body or name. None: any function.
    pub(super) async fn check_policies_calling(&mut self, functions: &[Name]) -> Result<()> {
        let (catalog, state) = (self.catalog(), self.cluster_state().await?);
        for table in self.tables_with_policies().await? {
            for policy in &table.policies {
                let reads = self.policy_reads(policy, &state).await?;
                let Some(why) = reads.why else { continue };
                let called = functions.iter().find(|f| reads.functions.contains(&f.name));
                if called.is_some() || functions.is_empty() {
                    let name = called.map_or("", |f| f.name.as_str());
                    let kind = match catalog.by_oid.get(&table.oid).is_some_and(|t| t.is_reference()) {
                        true => "reference",
                        false => "distributed",
                    };
                    return Err(Failure::refused(format!(
                        "cannot change function \"{name}\" that a policy of {kind} table \"{}\" calls",
                        table.name
                    ))
                    .detail(format!("Policy \"{}\" {why}", policy.name))
                    .hint("Policies can read reference tables, and call functions that read nothing else."));
                }
            }
        }
        Ok(())
    }

    /// A reference table becomes the coordinator's alone, which a policy on the workers may read.
    pub(super) async fn check_not_read_by_policies(&mut self, table: &TableDescription) -> Result<()> {
        let state = self.cluster_state().await?;
        for other in self.tables_with_policies().await? {
            for policy in other.policies.iter().filter(|_| other.oid != table.oid) {
                let reads = self.policy_reads(policy, &state).await?;
                if reads.relations.contains(&(table.schema.clone(), table.name.clone())) {
                    return Err(Failure::refused(format!("cannot undistribute table \"{}\"", table.name))
                        .detail(format!("Policy \"{}\" of table \"{}\" reads it.", policy.name, other.name))
                        .hint("Drop the policy first."));
                }
            }
        }
        Ok(())
    }

    async fn tables_with_policies(&mut self) -> Result<Vec<TableDescription>> {
        self.join(COORDINATOR_GROUP).await?;
        let sql = "SELECT DISTINCT y.polrelid::pg_catalog.int8 FROM pg_catalog.pg_policy y \
                   JOIN pgherd.pg_dist_partition p ON p.logicalrelid = y.polrelid";
        let found = self.collect_on(COORDINATOR_GROUP, sql).await?;
        let mut tables = Vec::new();
        for oid in (0..found.rows.len()).filter_map(|row| found.text(row, 0)?.parse().ok()) {
            tables.push(self.describe_table(oid).await?);
        }
        Ok(tables)
    }

    async fn policy_reads(&mut self, policy: &Policy, state: &ClusterState) -> Result<Reads> {
        let mut reads = Reads::default();
        // What has been found and not looked into.
        let mut names: Vec<String> = Vec::new();
        // What workers have since the table, or a parsed body, depends on it.
        let mut there: HashSet<String> = HashSet::new();
        for expression in policy.using.iter().chain(&policy.with_check) {
            match read_body(&format!("SELECT {expression}"), "sql") {
                Some(body) => {
                    reads.add(&body, "", state);
                    self.add_names(&body, "", &mut reads, &mut names).await?;
                    there.extend(names.iter().cloned());
                }
                None => reads.tell("is not understood.".to_owned()),
            }
        }
        let mut seen: HashSet<String> = HashSet::new();
        while !names.is_empty() {
            let asked: Vec<String> = names.drain(..).filter(|n| seen.insert(n.clone())).collect();
            if asked.is_empty() {
                break;
            }
            reads.functions.extend(asked.iter().cloned());
            let list: Vec<String> = asked.iter().map(|n| quote_literal(n)).collect();
            let sql = format!(
                "SELECT p.proname::pg_catalog.text, l.lanname, p.prokind, p.provolatile, p.prosrc, \
                     CASE WHEN p.prosqlbody IS NOT NULL THEN pg_catalog.pg_get_function_sqlbody(p.oid) END, \
                     pg_catalog.pg_get_expr(p.proargdefaults, 0) \
                 FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
                 WHERE p.oid >= 16384 AND p.pronamespace <> 'pgherd'::pg_catalog.regnamespace AND p.proname IN ({})",
                list.join(", ")
            );
            let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
            for row in 0..found.rows.len() {
                let text = |column| found.text(row, column).unwrap_or_default();
                let (name, language, kind, volatility) = (text(0), text(1), text(2), text(3));
                let within = format!("calls function \"{name}\", which ");
                // What is compiled and said to be IMMUTABLE is believed.
                if matches!(language, "c" | "internal") && kind == "f" && volatility == "i" {
                    continue;
                }
                if !there.contains(name) {
                    reads.tell(format!("calls a function that calls \"{name}\", which workers may not have."));
                }
                let is_parsed = found.text(row, 5).is_some();
                let parsed = found.text(row, 5).map(|body| match body.strip_prefix("BEGIN ATOMIC") {
                    Some(rest) => rest.trim_end().trim_end_matches("END").to_owned(),
                    None => format!("SELECT {}", body.trim_start().trim_start_matches("RETURN ")),
                });
                let body = parsed.unwrap_or_else(|| text(4).to_owned());
                let defaults = found.text(row, 6).map(|list| format!("SELECT {list}"));
                let bodies = [(Some(body), language), (defaults, "sql")];
                for (body, language) in bodies.iter().filter_map(|(body, l)| Some((body.as_ref()?, *l))) {
                    match read_body(body, language).filter(|_| kind == "f") {
                        Some(body) => {
                            reads.add(&body, &within, state);
                            self.add_names(&body, &within, &mut reads, &mut names).await?;
                            if is_parsed {
                                there.extend(names.iter().cloned());
                            }
                        }
                        None => reads.tell(format!("{within}may read tables.")),
                    }
                }
            }
        }
        Ok(reads)
    }

    /// The functions of users that a body may call; refuses what else depends on where it runs.
    async fn add_names(&mut self, body: &Body, within: &str, reads: &mut Reads, names: &mut Vec<String>) -> Result<()> {
        let catalog = self.catalog();
        if let Some(operator) = body.operators.iter().find(|o| catalog.user_operators.contains(*o)) {
            reads.tell(format!("{within}uses operator {operator}, which is not built in."));
        }
        let user_types = body.words.iter().filter(|w| catalog.user_types.contains(*w));
        let user_types: Vec<String> = user_types.map(|w| quote_literal(w)).collect();
        if !user_types.is_empty() {
            // Input of a domain, or a cast, may call anything.
            let sql = format!(
                "SELECT t.typname FROM pg_catalog.pg_type t WHERE t.oid >= 16384 AND t.typname IN ({}) \
                   AND (t.typtype = 'd' AND EXISTS (SELECT FROM pg_catalog.pg_constraint k \
                     WHERE k.contypid = t.oid AND EXISTS ( \
                         SELECT FROM pg_catalog.pg_depend d WHERE d.objid = k.oid AND d.refobjid >= 16384 \
                             AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass)) \
                   OR EXISTS (SELECT FROM pg_catalog.pg_cast k JOIN pg_catalog.pg_proc p ON p.oid = k.castfunc \
                         JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
                         WHERE t.oid IN (k.castsource, k.casttarget) AND l.lanname NOT IN ('c', 'internal')))",
                user_types.join(", ")
            );
            if let Some(name) = self.collect_on(COORDINATOR_GROUP, &sql).await?.text(0, 0) {
                reads.tell(format!("{within}uses type \"{name}\", whose values call functions of users."));
            }
        }
        for (schema, name) in &body.calls {
            let is_built_in =
                !catalog.user_functions.contains(name) && schema.as_ref().is_none_or(|s| s == "pg_catalog");
            if is_built_in && !pgherd_planner::is_same_in_policies(name) {
                reads.tell(format!("{within}calls {name}(), which depends on the server it runs on."));
            }
        }
        names.extend(body.calls.iter().map(|(_, name)| name.clone()));
        // A policy has been written by PostgreSQL, which does not call so.
        if !within.is_empty() {
            names.extend(body.attributes.iter().cloned());
        }
        Ok(())
    }
}
