//! Citus's functions that change the cluster. They stand in a SELECT like any function: the router carries each call
//! out first, then the statement runs on the coordinator with the results in the calls' places.

use bytes::Bytes;
use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_control::schema::ROUTER_FUNCTIONS;
use pgherd_sql::{ArgValue, Edits, OwnCall};

use super::request::{Announce, Errors};
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

/// The arguments of one call, by name.
pub struct Arguments {
    function: String,
    values: Vec<(String, Option<String>)>,
}

impl Arguments {
    /// An argument that is neither left out nor NULL.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.as_deref())
    }

    /// It is given, as NULL.
    pub fn is_null(&self, name: &str) -> bool {
        self.values.iter().any(|(n, value)| n == name && value.is_none())
    }

    pub fn need(&self, name: &str) -> Result<&str> {
        self.get(name).ok_or_else(|| Failure::new("22004", format!("{name} of {} cannot be NULL", self.function)))
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "t" | "true" | "on" | "yes" | "1"))
    }

    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let parsed = text
            .trim()
            .parse()
            .map_err(|_| Failure::new("22P02", format!("invalid input syntax for type integer: \"{text}\"")))?;
        Ok(Some(parsed))
    }
}

/// Functions that bring rows from where they are to where they belong.
const MOVE_ROWS: &[&str] = &[
    "create_distributed_table",
    "create_distributed_table_concurrently",
    "create_reference_table",
    "undistribute_table",
    "alter_distributed_table",
    "citus_add_node",
    "master_add_node",
    "citus_activate_node",
];

/// Those that change nothing but what kind of table one is: who goes on in their transaction loads the catalog.
const DISTRIBUTE: &[&str] =
    &["create_distributed_table", "create_distributed_table_concurrently", "create_reference_table"];

/// Parameter names of the functions, as Citus has them.
fn parameters(function: &str) -> &'static [&'static str] {
    match function {
        "create_distributed_table" => {
            &["table_name", "distribution_column", "distribution_type", "colocate_with", "shard_count"]
        }
        "create_distributed_table_concurrently" => {
            &["table_name", "distribution_column", "distribution_type", "colocate_with", "shard_count"]
        }
        "create_reference_table" => &["table_name"],
        "undistribute_table" => &["table_name", "cascade_via_foreign_keys"],
        "truncate_local_data_after_distributing_table" => &["function_name"],
        "citus_add_node" | "master_add_node" => &["nodename", "nodeport", "groupid", "noderole", "nodecluster"],
        "citus_remove_node" | "master_remove_node" | "citus_activate_node" | "citus_disable_node" => {
            &["nodename", "nodeport"]
        }
        "alter_distributed_table" => {
            &["table_name", "distribution_column", "shard_count", "colocate_with", "cascade_to_colocated"]
        }
        "citus_set_node_property" => &["nodename", "nodeport", "property", "value"],
        "citus_set_coordinator_host" => &["host", "port", "node_role", "node_cluster"],
        _ => &[],
    }
}

impl Session {
    /// None: nothing here for the router; the statement is planned like any other.
    pub(super) async fn run_own(&mut self, call: &Call<'_>) -> Result<Option<Completion>> {
        let Some(statement) = &call.prepared.statement else { return Ok(None) };
        let calls = pgherd_sql::own_calls(statement);
        let ours: Vec<&OwnCall> = calls.iter().filter(|c| ROUTER_FUNCTIONS.contains(&c.name.as_str())).collect();
        if ours.is_empty() {
            return Ok(None);
        }
        self.open_implicit_block();
        if let Some(moves) = ours.iter().find(|own| MOVE_ROWS.contains(&own.name.as_str())) {
            self.check_moves_rows(&moves.name)?;
        }
        let is_alone = ours.len() == 1 && calls.len() == 1 && stands_alone(ours[0], &statement.text);
        let mut edits = Edits::new();
        for own in &calls {
            if ours.iter().any(|o| std::ptr::eq(*o, own)) {
                let arguments = self.arguments(call, own).await?;
                let value = Box::pin(self.perform(&own.name, &arguments)).await?;
                // Nothing that is left of the statement needs to know of the table, nor who commits next.
                if DISTRIBUTE.contains(&own.name.as_str()) && !(is_alone && self.is_last_of_transaction()) {
                    self.reload_catalog_in_block().await?;
                }
                edits.cover(own.span, in_place(own, &value, &statement.text));
            }
        }
        for (span, name) in pgherd_sql::own_names(statement) {
            if !ours.iter().any(|own| own.span.start <= span.start && span.end <= own.span.end) {
                edits.replace(span, name);
            }
        }
        let splice = edits.apply(&statement.text)?;
        self.join(COORDINATOR_GROUP).await?;
        let errors = Errors::of(&splice, &statement.text);
        let types = match call.prepared.last_described() {
            Some(described) => described.param_types.clone(),
            None => call.prepared.declared.clone(),
        };
        let announce = if call.describes() { Announce::Columns(&[]) } else { Announce::Nothing };
        self.run_single(call, COORDINATOR_GROUP, splice.as_written(), None, &types, announce, errors).await.map(Some)
    }

    /// The same for a call that is met inside the coordinator, with all its arguments.
    pub(super) async fn perform_inside(&mut self, function: &str, values: &[Option<Bytes>]) -> Result<()> {
        self.check_moves_rows(function)?;
        let text = |value: &Option<Bytes>| value.as_ref().map(|v| String::from_utf8_lossy(v).into_owned());
        let names = parameters(function).iter().map(|name| (*name).to_owned());
        let values = names.zip(values.iter().map(text)).collect();
        self.perform(function, &Arguments { function: function.to_owned(), values }).await?;
        match DISTRIBUTE.contains(&function) {
            true => self.reload_catalog_in_block().await,
            false => Ok(()),
        }
    }

    async fn arguments(&mut self, call: &Call<'_>, own: &OwnCall) -> Result<Arguments> {
        let names = parameters(&own.name);
        let mut values = Vec::new();
        for (position, (name, value)) in own.args.iter().enumerate() {
            let name = match name {
                Some(name) => name.clone(),
                None => (*names.get(position).ok_or_else(|| {
                    Failure::new("42883", format!("function {} does not take {} arguments", own.name, own.args.len()))
                })?)
                .to_owned(),
            };
            if !names.contains(&name.as_str()) {
                return Err(Failure::new("42883", format!("function {} has no parameter \"{name}\"", own.name)));
            }
            let text = match value {
                ArgValue::Const { .. } => value.text(),
                ArgValue::Param { number, .. } => {
                    let index = usize::from(*number).saturating_sub(1);
                    let bound = call.bound.filter(|b| !b.is_binary(index));
                    match bound.and_then(|b| b.params.get(index).cloned()) {
                        Some(value) => value.map(|v| String::from_utf8_lossy(&v).into_owned()),
                        None => {
                            return Err(Failure::refused(format!("parameters of {} must be sent as text", own.name)));
                        }
                    }
                }
                ArgValue::Sql(sql) => {
                    let result =
                        self.ask_coordinator(&format!("SELECT ({sql})::pg_catalog.text")).await.map_err(|_| {
                            Failure::refused(format!("arguments of {} must be constants here", own.name))
                                .hint("Call it once for each value.")
                        })?;
                    result.text(0, 0).map(str::to_owned)
                }
            };
            values.push((name, text));
        }
        Ok(Arguments { function: own.name.clone(), values })
    }

    /// Carries one call out; the text of its result.
    async fn perform(&mut self, function: &str, arguments: &Arguments) -> Result<Value> {
        match function {
            "create_distributed_table" | "create_distributed_table_concurrently" => {
                self.create_distributed_table(arguments).await.map(|()| Value::Void)
            }
            "create_reference_table" => self.create_reference_table(arguments).await.map(|()| Value::Void),
            "undistribute_table" => self.undistribute_table(arguments).await.map(|()| Value::Void),
            "truncate_local_data_after_distributing_table" => {
                self.truncate_local_data(arguments).await.map(|()| Value::Void)
            }
            "citus_add_node" | "master_add_node" => self.add_node(arguments).await.map(Value::Integer),
            "citus_activate_node" => self.node_id(arguments).await.map(Value::Integer),
            "citus_remove_node" | "master_remove_node" => self.remove_node(arguments).await.map(|()| Value::Void),
            "citus_set_coordinator_host" => self.set_coordinator_host(arguments).await.map(|()| Value::Void),
            other => Err(Failure::refused(format!("function {other} is not supported yet"))),
        }
    }

    /// The object id of a relation's name, resolved as `regclass` does.
    pub(super) async fn relation_oid(&mut self, name: &str) -> Result<u32> {
        self.join(COORDINATOR_GROUP).await?;
        let sql = format!("SELECT {}::pg_catalog.regclass::pg_catalog.oid", quote_literal(name));
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await.map_err(without_position)?;
        result
            .text(0, 0)
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| Failure::new("42P01", format!("relation \"{name}\" does not exist")))
    }
}

/// What a call gives back.
pub enum Value {
    Void,
    Integer(i64),
}

/// A position in a statement of ours means nothing to the client.
pub fn without_position(failure: Failure) -> Failure {
    match failure {
        Failure::Statement(mut fields) => {
            fields.remove(b'P');
            Failure::Statement(fields)
        }
        other => other,
    }
}

/// `SELECT call(…)`, and nothing else.
fn stands_alone(own: &OwnCall, text: &str) -> bool {
    let around = (text.get(..own.span.start), text.get(own.span.end..));
    let (Some(before), Some(after)) = around else { return false };
    before.trim().eq_ignore_ascii_case("select") && after.trim().trim_end_matches(';').is_empty()
}

/// Nor does where in our functions it came up.
pub fn without_context(failure: Failure) -> Failure {
    match without_position(failure) {
        Failure::Statement(mut fields) => {
            fields.remove(b'W');
            Failure::Statement(fields)
        }
        other => other,
    }
}

/// The text that stands for a call: its value, under the column name that the call would have had.
fn in_place(own: &OwnCall, value: &Value, text: &str) -> String {
    let expression = match value {
        Value::Void => "''::pg_catalog.void".to_owned(),
        Value::Integer(number) => format!("{number}::pg_catalog.int4"),
    };
    let rest = text.get(own.span.end..).unwrap_or("").trim_start();
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphabetic()).collect::<String>().to_ascii_lowercase();
    let ends = rest.is_empty()
        || rest.starts_with([',', ';', ')'])
        || matches!(word.as_str(), "from" | "where" | "order" | "limit" | "union" | "group" | "join" | "cross");
    let name = quote_ident(&own.name);
    if own.in_from {
        let alias = if ends { format!(" AS {name}") } else { String::new() };
        return format!("(SELECT {expression} AS {name}){alias}");
    }
    if own.is_whole_select_target && ends { format!("{expression} AS {name}") } else { expression }
}
