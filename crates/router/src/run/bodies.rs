//! What workers evaluate for the rows that they have: policies, checks, those of domains, generated columns, indexes.
//! They must come to what one server would, which has all rows: so the functions of users' that these call are read
//! (`pgherd_sql::read_body`), and those that they call. They may read reference tables, which are whole there; what is
//! kept with a row, and computed again wherever the row is copied, nothing at all.

use std::collections::{HashMap, HashSet};

use pgherd_backend::QueryResult;
use pgherd_catalog::{COORDINATOR_GROUP, Oid, Snapshot};
use pgherd_control::cluster_state::ClusterState;
use pgherd_control::describe::{Prerequisite, TableDescription};
use pgherd_control::distribute;
use pgherd_sql::{Body, Name, read_body};

use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;

/// Catalogs of roles, which are the same everywhere.
const ROLES: &[&str] = &["pg_roles", "pg_authid", "pg_auth_members", "pg_user", "pg_group", "pg_shadow"];

/// Words that give something else for another role, or at another time.
const VARYING_WORDS: &[&str] = &[
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "localtime",
    "localtimestamp",
    "session_user",
    "user",
];

/// An expression that workers evaluate (`pgherd.expressions`).
struct Expression {
    relation: Oid,
    table: String,
    is_reference: bool,
    kind: String,
    name: String,
    /// Of a policy, which may read by itself.
    text: Option<String>,
    calls: Vec<Oid>,
}

impl Expression {
    /// Its values are kept with the rows.
    fn is_kept(&self) -> bool {
        matches!(self.kind.as_str(), "generated column" | "index" | "exclusion constraint")
    }

    /// Why workers cannot have it.
    fn refusal(&self, reads: &Reads) -> Option<String> {
        let read = reads.relations.first().map(|(within, schema, name)| format!("{within}reads \"{schema}.{name}\"."));
        match self.is_kept() {
            true => reads.why.clone().or(read).or_else(|| reads.varies.clone()),
            false => reads.why.clone(),
        }
    }

    fn hint(&self) -> &'static str {
        match self.is_kept() {
            true => "Generated columns and indexes can call functions that depend on nothing but their arguments.",
            false => "It can read reference tables by names with schemas, and call functions that read nothing else.",
        }
    }

    fn reason(&self) -> &'static str {
        match (self.is_kept(), self.kind.as_str()) {
            (true, _) => "It is computed again where a row is copied.",
            (_, "policy") => "Workers apply policies, and have only a part of the rows.",
            _ => "Workers evaluate it, and have only a part of the rows.",
        }
    }
}

/// What an expression, or a body, reads and calls, as far as it can be told.
#[derive(Default, Clone)]
struct Reads {
    /// Why a worker cannot evaluate it.
    why: Option<String>,
    /// Why its value may be another one the next time.
    varies: Option<String>,
    /// Names of functions, of those that do not exist as well.
    functions: HashSet<String>,
    /// By which function, in the words of a message.
    relations: Vec<(String, String, String)>,
}

impl Reads {
    fn tell(&mut self, why: String) {
        self.why.get_or_insert(why);
    }

    fn add(&mut self, other: &Reads) {
        self.why = self.why.take().or_else(|| other.why.clone());
        self.varies = self.varies.take().or_else(|| other.varies.clone());
        self.functions.extend(other.functions.iter().cloned());
        self.relations.extend(other.relations.iter().cloned());
    }
}

/// A function of users'.
struct Function {
    reads: Reads,
    /// Those that it calls, by number and as its body says it (`pgherd.bodies`).
    calls: Vec<Oid>,
    keys: Vec<String>,
}

/// The functions that some expressions call, and those that these call.
#[derive(Default)]
struct Functions {
    by_oid: HashMap<Oid, Function>,
    by_key: HashMap<String, Vec<Oid>>,
}

impl Functions {
    /// What is called, whoever calls.
    fn reached(&self, calls: &[Oid]) -> Vec<Oid> {
        let (mut seen, mut next): (Vec<Oid>, Vec<Oid>) = (Vec::new(), calls.iter().rev().copied().collect());
        while let Some(oid) = next.pop() {
            let Some(function) = self.by_oid.get(&oid).filter(|_| !seen.contains(&oid)) else { continue };
            seen.push(oid);
            next.extend(&function.calls);
            next.extend(self.called_as(&function.keys));
        }
        seen
    }

    fn called_as(&self, keys: &[String]) -> Vec<Oid> {
        keys.iter().filter_map(|key| self.by_key.get(key)).flatten().copied().collect()
    }

    fn read_by(&self, reached: &[Oid]) -> Reads {
        let mut reads = Reads::default();
        reached.iter().filter_map(|oid| self.by_oid.get(oid)).for_each(|function| reads.add(&function.reads));
        reads
    }
}

/// What bodies are judged by.
struct Judge<'a> {
    state: &'a ClusterState,
    catalog: &'a Snapshot,
}

impl Judge<'_> {
    /// `within`: what the body is of, for messages.
    fn reads(&self, body: &Body, within: &str) -> Reads {
        let mut reads = Reads::default();
        for (schema, name) in &body.relations {
            self.relation(&mut reads, body, within, schema.as_deref(), name);
        }
        for (schema, name) in &body.calls {
            let is_built_in =
                !self.catalog.user_functions.contains(name) && schema.as_ref().is_none_or(|s| s == "pg_catalog");
            if is_built_in && !pgherd_planner::is_same_in_policies(name) {
                reads.tell(format!("{within}calls {name}(), which depends on the server it runs on."));
            }
            if is_built_in && self.varies(name) {
                reads.varies.get_or_insert(format!("{within}calls {name}()."));
            }
            reads.functions.insert(name.clone());
        }
        if let Some(word) = body.words.iter().find(|w| VARYING_WORDS.contains(&w.as_str())) {
            reads.varies.get_or_insert(format!("{within}uses {word}."));
        }
        reads
    }

    fn relation(&self, reads: &mut Reads, body: &Body, within: &str, schema: Option<&str>, name: &str) {
        let is_of_roles = ROLES.contains(&name);
        let Some(schema) = schema else {
            // The text of a policy is PostgreSQL's own, in which only catalogs and CTEs are without a schema.
            let is_cte = match within.is_empty() {
                true => !name.starts_with("pg_"),
                false => body.ctes.iter().any(|c| c == name) && !self.is_relation(name),
            };
            if !is_cte && !is_of_roles {
                let unqualified = if name.starts_with("pg_") { "" } else { ", without its schema" };
                reads.tell(format!("{within}reads \"{name}\"{unqualified}."));
            }
            return;
        };
        let is_reference = self.state.tables.iter().any(|t| t.is_reference() && t.schema == schema && t.name == name);
        let is_same = is_reference || schema == "pg_catalog" && is_of_roles;
        if !is_same {
            reads.tell(format!("{within}reads \"{schema}.{name}\", which is not a reference table."));
        }
        reads.relations.push((within.to_owned(), schema.to_owned(), name.to_owned()));
    }

    /// Some relation has that name, in whatever schema.
    fn is_relation(&self, name: &str) -> bool {
        self.catalog.tables.values().any(|tables| tables.contains_key(name))
            || self.catalog.other_names().any(|(_, other)| other == name)
    }

    /// A built-in function that may give something else for the same arguments, other than by the style of a text.
    fn varies(&self, name: &str) -> bool {
        self.catalog.volatile_functions.contains(name) || !pgherd_planner::is_same_for_arguments(name)
    }

    fn function(&self, found: &QueryResult, row: usize) -> Function {
        let text = |column| found.text(row, column).unwrap_or_default();
        let (name, language, kind, volatility) = (text(2), text(3), text(4), text(5));
        let within = format!("calls function \"{name}\", which ");
        let mut reads = Reads::default();
        let mut keys = Vec::new();
        // What is compiled, and said to depend on its arguments or settings, is believed where it makes no rows.
        let is_believed = matches!(language, "c" | "internal") && volatility != "v" && found.text(row, 6) != Some("t");
        // An aggregate is what its functions are.
        if !is_believed && kind != "a" {
            let parsed = found.text(row, 8).map(|body| match body.strip_prefix("BEGIN ATOMIC") {
                Some(rest) => rest.trim_end().trim_end_matches("END").to_owned(),
                None => format!("SELECT {}", body.trim_start().trim_start_matches("RETURN ")),
            });
            let body = parsed.unwrap_or_else(|| text(7).to_owned());
            let defaults = found.text(row, 9).map(|list| format!("SELECT {list}"));
            for (body, language) in [(Some(body), language), (defaults, "sql")] {
                match body.map(|body| read_body(&body, language).filter(|_| kind == "f")) {
                    Some(Some(body)) => {
                        reads.add(&self.reads(&body, &within));
                        keys.extend(self.keys(&body));
                    }
                    Some(None) => reads.tell(format!("{within}may read or write tables.")),
                    None => {}
                }
            }
        }
        reads.functions.insert(name.to_owned());
        let calls = if is_believed { Vec::new() } else { oids(text(10)) };
        Function { reads, calls, keys }
    }

    /// What a body may call that is the user's.
    fn keys(&self, body: &Body) -> Vec<String> {
        let called = body.calls.iter().filter(|(schema, _)| schema.as_ref().is_none_or(|s| s != "pg_catalog"));
        let called = called.map(|(_, name)| format!("f:{name}"));
        let attributes = body.attributes.iter().filter(|a| self.catalog.user_functions.contains(*a));
        let operators = body.operators.iter().filter(|o| self.catalog.user_operators.contains(*o));
        let types = body.words.iter().filter(|w| self.catalog.user_types.contains(*w));
        called
            .chain(attributes.map(|a| format!("a:{a}")))
            .chain(operators.map(|o| format!("o:{o}")))
            .chain(types.map(|t| format!("t:{t}")))
            .collect()
    }
}

impl Session {
    /// Refuses what workers would evaluate otherwise than one server: expressions of a table, or of its partitions.
    pub(super) async fn check_expressions(&mut self, table: Oid, state: &ClusterState) -> Result<()> {
        for (expression, reads) in self.judged_expressions(Some(table), state).await? {
            if let Some(why) = expression.refusal(&reads) {
                let Expression { kind, name, table, .. } = &expression;
                return Err(Failure::refused(format!("cannot use {kind} \"{name}\" on table \"{table}\""))
                    .detail(format!("It {why} {}", expression.reason()))
                    .hint(expression.hint()));
            }
        }
        Ok(())
    }

    /// The same after functions have come into existence or got another body or name. None: any function, of which
    /// `what` tells. What workers evaluate may call others then, which they get.
    pub(super) async fn check_expressions_calling(&mut self, functions: &[Name], what: &str) -> Result<()> {
        if self.catalog().by_oid.is_empty() {
            return Ok(());
        }
        let expressions = self.expressions_of(None).await?;
        if expressions.is_empty() {
            return Ok(());
        }
        let state = self.cluster_state().await?;
        let mut tables = Vec::new();
        for (expression, reads) in self.judge(expressions, &state).await? {
            let called = functions.iter().find(|f| reads.functions.contains(&f.name));
            if called.is_none() && !functions.is_empty() {
                continue;
            }
            if let Some(why) = expression.refusal(&reads) {
                let Expression { kind, name, table, .. } = &expression;
                let what = called.map_or(what.to_owned(), |f| format!("function \"{}\"", f.name));
                let is = if expression.is_reference { "reference" } else { "distributed" };
                return Err(Failure::refused(format!(
                    "cannot change {what} that {kind} \"{name}\" of {is} table \"{table}\" calls"
                ))
                .detail(format!("It {why} {}", expression.reason()))
                .hint(expression.hint()));
            }
            tables.push(expression.relation);
        }
        tables.dedup();
        self.bring_prerequisites(&tables).await
    }

    /// What tables need now on workers: functions that functions there call.
    pub(super) async fn bring_prerequisites(&mut self, tables: &[Oid]) -> Result<()> {
        for oid in tables {
            let table = self.describe_table(*oid).await?;
            self.make_on_workers(&table.prerequisites).await?;
        }
        Ok(())
    }

    pub(super) async fn make_on_workers(&mut self, objects: &[Prerequisite]) -> Result<()> {
        let ddl = distribute::prerequisite_ddl(objects);
        let groups = self.catalog().worker_groups();
        self.run_ddl_on(groups.into_iter().map(|group| (group, ddl.clone())).collect()).await
    }

    /// A reference table becomes the coordinator's alone, which something on the workers may read.
    pub(super) async fn check_not_read_by_expressions(&mut self, table: &TableDescription) -> Result<()> {
        let state = self.cluster_state().await?;
        for (expression, reads) in self.judged_expressions(None, &state).await? {
            let reads_it =
                reads.relations.iter().any(|(_, schema, name)| *schema == table.schema && *name == table.name);
            if reads_it && expression.relation != table.oid {
                let Expression { kind, name, table: other, .. } = &expression;
                return Err(Failure::refused(format!("cannot undistribute table \"{}\"", table.name))
                    .detail(format!("It is read by {kind} \"{name}\" of table \"{other}\"."))
                    .hint(format!("Drop the {kind} first.")));
            }
        }
        Ok(())
    }

    /// `ALTER COLUMN … TYPE … USING`, which each worker computes for its rows: it gets the functions of users' for
    /// that, where they come to what one server would, and the time of the transaction. The expressions as workers run
    /// them.
    pub(super) async fn follow_using(
        &mut self,
        using: Vec<(String, String)>,
        table: &TableDescription,
        state: &ClusterState,
    ) -> Result<Vec<(String, String)>> {
        let is_reference = state.table(table.oid).is_some_and(|t| t.is_reference());
        let catalog = self.catalog();
        let judge = Judge { state, catalog: &catalog };
        let mut followed = Vec::new();
        for (column, expression) in using {
            let Some(body) = read_body(&format!("SELECT {expression}"), "sql") else {
                followed.push((column, expression));
                continue;
            };
            let keys = judge.keys(&body);
            let functions = self.functions_called(&judge, Vec::new(), keys.clone()).await?;
            let reached = functions.reached(&functions.called_as(&keys));
            let reads = functions.read_by(&reached);
            let volatile = body.calls.iter().find(|(_, name)| catalog.volatile_functions.contains(name));
            let volatile = volatile.map(|(_, name)| format!("calls {name}()."));
            let differs = volatile.or_else(|| reads.varies.clone()).filter(|_| is_reference);
            if let Some(why) = reads.why.or(differs) {
                let (kind, table) = ("expression", &table.name);
                return Err(Failure::refused(format!("cannot use {kind} \"{expression}\" on table \"{table}\""))
                    .detail(format!("It {why} Each server computes it for the rows that it has."))
                    .hint("Add a column, give it its values with UPDATE, and drop the other one."));
            }
            self.bring_functions(&reached).await?;
            let fixed = match pgherd_planner::default_reads_now(&expression) {
                true => pgherd_planner::expression_at(
                    &expression,
                    pgherd_planner::Now::Text(&self.transaction_time().await?),
                ),
                false => None,
            };
            followed.push((column, fixed.unwrap_or(expression)));
        }
        Ok(followed)
    }

    async fn bring_functions(&mut self, functions: &[Oid]) -> Result<()> {
        if functions.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = functions.iter().map(Oid::to_string).collect();
        let sql = format!(
            "SELECT (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0)).identity, \
                 (SELECT pg_catalog.string_agg(d.sql, E';\n' ORDER BY d.n) FROM \
                     pg_catalog.jsonb_array_elements_text(pgherd.function_ddl(p.oid)) WITH ORDINALITY d(sql, n)) \
             FROM pg_catalog.pg_proc p WHERE p.oid IN ({}) AND p.prokind = 'f' \
                 AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e' \
                     AND d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass)",
            list.join(", ")
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let function = |row| {
            let text = |column| found.text(row, column).unwrap_or_default();
            Prerequisite {
                id: text(0).to_owned(),
                kind: "function".to_owned(),
                name: text(0).to_owned(),
                guard: format!("to_regprocedure({}) IS NULL", quote_literal(text(0))),
                ddl: Some(vec![Some(text(1).to_owned())]),
                depends_on: Vec::new(),
            }
        };
        let functions: Vec<Prerequisite> = (0..found.rows.len()).map(function).collect();
        self.make_on_workers(&functions).await
    }

    async fn judged_expressions(
        &mut self,
        table: Option<Oid>,
        state: &ClusterState,
    ) -> Result<Vec<(Expression, Reads)>> {
        let expressions = self.expressions_of(table).await?;
        self.judge(expressions, state).await
    }

    /// Those of a table and its partitions, or of all that are distributed or reference tables.
    async fn expressions_of(&mut self, table: Option<Oid>) -> Result<Vec<Expression>> {
        self.join(COORDINATOR_GROUP).await?;
        let table = table.map_or("NULL".to_owned(), |oid| oid.to_string());
        let sql = format!("SELECT * FROM pgherd.expressions({table})");
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        Ok((0..found.rows.len()).map(|row| expression(&found, row)).collect())
    }

    async fn judge(&mut self, expressions: Vec<Expression>, state: &ClusterState) -> Result<Vec<(Expression, Reads)>> {
        let catalog = self.catalog();
        let judge = Judge { state, catalog: &catalog };
        let calls = expressions.iter().flat_map(|e| e.calls.iter().copied()).collect();
        let functions = self.functions_called(&judge, calls, Vec::new()).await?;
        let judged = expressions.into_iter().map(|expression| {
            let mut reads = Reads::default();
            if let Some(text) = &expression.text {
                match read_body(&format!("SELECT {text}"), "sql") {
                    Some(body) => reads = judge.reads(&body, ""),
                    None => reads.tell("is not understood.".to_owned()),
                }
            }
            reads.add(&functions.read_by(&functions.reached(&expression.calls)));
            (expression, reads)
        });
        Ok(judged.collect())
    }

    /// By number and as a body says it, and what these call.
    async fn functions_called(
        &mut self,
        judge: &Judge<'_>,
        mut numbers: Vec<Oid>,
        mut keys: Vec<String>,
    ) -> Result<Functions> {
        let mut functions = Functions::default();
        let mut asked: HashSet<String> = keys.iter().cloned().collect();
        while !numbers.is_empty() || !keys.is_empty() {
            let list: Vec<String> = numbers.iter().map(Oid::to_string).collect();
            let names: Vec<String> = keys.iter().map(|key| quote_literal(key)).collect();
            let sql = format!(
                "SELECT * FROM pgherd.bodies('{{{}}}'::pg_catalog.oid[], ARRAY[{}]::pg_catalog.text[])",
                list.join(","),
                names.join(", ")
            );
            let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
            (numbers, keys) = (Vec::new(), Vec::new());
            for row in 0..found.rows.len() {
                let Some(oid) = found.text(row, 1).and_then(|t| t.parse::<Oid>().ok()) else { continue };
                if let Some(key) = found.text(row, 0) {
                    functions.by_key.entry(key.to_owned()).or_default().push(oid);
                }
                functions.by_oid.entry(oid).or_insert_with(|| {
                    let function = judge.function(&found, row);
                    numbers.extend(&function.calls);
                    keys.extend(function.keys.iter().filter(|key| asked.insert((*key).clone())).cloned());
                    function
                });
            }
            numbers.retain(|oid| !functions.by_oid.contains_key(oid));
        }
        Ok(functions)
    }
}

fn expression(found: &QueryResult, row: usize) -> Expression {
    let text = |column| found.text(row, column).unwrap_or_default();
    Expression {
        relation: text(0).parse().unwrap_or_default(),
        table: text(2).to_owned(),
        is_reference: text(3) == "t",
        kind: text(4).to_owned(),
        name: text(5).to_owned(),
        text: found.text(row, 6).map(str::to_owned),
        calls: oids(text(7)),
    }
}

/// `{1,2}`
fn oids(array: &str) -> Vec<Oid> {
    array.trim_matches(['{', '}']).split(',').filter_map(|oid| oid.parse().ok()).collect()
}
