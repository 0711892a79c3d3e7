//! Values that the router gives a statement as parameters behind the client's own: what only the session knows, and the
//! next values of sequences.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, Table, qualified};
use pgherd_planner::{Field, Given, InsertRows, LastDrawn, LastOne, Plan, Tier, name_of_sequence};
use pgherd_sql::ast::Tree;
use pgherd_sql::{Edits, Statement, StatementKind};

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::run::deadlock;
use crate::sequences::Lease;
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::Block;

/// How long a session waits for another one that is drawing: who locks a sequence holds up only those who draw.
const TURN_WAIT: Duration = Duration::from_millis(100);

/// The values for one execution.
#[derive(Debug, Default)]
pub struct GivenValues {
    /// How many parameters the client has.
    parameters: usize,
    values: Vec<(u32, Option<Bytes>)>,
}

impl GivenValues {
    /// The client's values and these.
    pub fn bound(&self, own: Option<&Bound>) -> Bound {
        let mut bound = own.cloned().unwrap_or_default();
        if let [format] = bound.param_formats[..] {
            bound.param_formats = vec![format; bound.params.len()];
        }
        bound.params.resize(self.parameters, None);
        bound.params.extend(self.values.iter().map(|(_, value)| value.clone()));
        // No formats: all of them are text.
        if !bound.param_formats.is_empty() {
            bound.param_formats.resize(bound.params.len(), 0);
        }
        bound
    }

    /// Their types, behind those of the client's.
    pub fn types(&self, types: &mut Vec<u32>) {
        types.resize(self.parameters, 0);
        types.extend(self.values.iter().map(|(oid, _)| *oid));
    }
}

impl Session {
    /// None: a value cannot be had in this way; whoever runs the statement in another says why.
    pub(super) async fn give(&mut self, call: &Call<'_>, given: &[Given]) -> Result<Option<GivenValues>> {
        let mut values = Vec::with_capacity(given.len());
        for what in given {
            let value = match what {
                Given::Drawn(sql) => match self.draw_value(sql).await? {
                    Some(value) => Some(value.to_string()),
                    None => return Ok(None),
                },
                other => self.value_given(other),
            };
            values.push((what.type_oid(), value.map(Bytes::from)));
        }
        Ok(Some(GivenValues { parameters: usize::from(call.prepared.parameter_count()), values }))
    }

    /// Whether the role may write the columns of a local table that get such values, which the statement does not name:
    /// it may have been given some of the others only.
    pub(crate) async fn may_insert_all(&mut self, statement: &Statement) -> bool {
        let Tree::Insert(insert) = &statement.tree else { return false };
        let (role, version) = (self.role_in_force(), self.db.version());
        let schema = insert.target.schema.as_ref().map(|schema| quote_ident(schema) + ".").unwrap_or_default();
        let table = schema + &quote_ident(&insert.target.name);
        // Which one is meant without a schema depends on the path.
        let path = self.settings.get("search_path").cloned().unwrap_or_default();
        let known = format!("{table}\0{path}");
        if let Some(may) = self.db.leases.may_insert(&role, &known, version) {
            return may;
        }
        let query = format!("SELECT pg_catalog.has_table_privilege({}, 'INSERT')", quote_literal(&table));
        let asked = async {
            let mut connection = self.lease_to_draw().await?;
            Ok::<_, Failure>(connection.query(&query).await?.text(0, 0) == Some("t"))
        };
        let may = asked.await.unwrap_or(false);
        self.db.leases.note_may_insert(&role, &known, version, may);
        may
    }

    /// The next value of a sequence: of those that are here, or of new ones.
    async fn draw_value(&mut self, sql: &str) -> Result<Option<i64>> {
        let begin = self.txn.begin.to_ascii_uppercase();
        if begin.contains("READ ONLY") {
            // The INSERT is refused, if that is no comment.
            return Ok((!begin.contains("--") && !begin.contains("/*")).then_some(0));
        }
        let version = self.db.version();
        let lease = self.sequence(sql);
        let value = match lease.take(version) {
            Some(taken) => Some(taken.value),
            None => {
                let Ok(_turn) = tokio::time::timeout(TURN_WAIT, lease.turn()).await else { return Ok(None) };
                match lease.take(version) {
                    Some(taken) => Some(taken.value),
                    None => self.draw_values(sql, &lease, version).await?,
                }
            }
        };
        if let Some(value) = value {
            self.note_drawn(&name_of_sequence(sql), value);
        }
        Ok(value)
    }

    async fn draw_values(&mut self, sql: &str, lease: &Lease, version: u64) -> Result<Option<i64>> {
        let most = self.in_force("pgherd.sequence_lease").and_then(|text| text.trim().parse().ok()).unwrap_or(32);
        let mut wanted = lease.wanted(version, most);
        loop {
            // Who waits for a definition does so on a connection of his own.
            let query = format!(
                "SET LOCAL lock_timeout = '100ms'; SELECT {sql} FROM pg_catalog.generate_series(1, {})",
                wanted.count
            );
            let mut connection = self.lease_to_draw().await?;
            self.cancel.add(connection.address(), &connection.cancel_key);
            let result = connection.query(&query).await;
            self.cancel.remove(&connection.cancel_key);
            if self.cancel.is_under_way() {
                self.cancel.settle().await;
            }
            match result.map_err(Failure::from) {
                Ok(drawn) => {
                    let values = (0..drawn.rows.len()).filter_map(|row| drawn.text(row, 0)?.parse().ok());
                    let values: Vec<i64> = values.collect();
                    return Ok(lease.put(&wanted, version, &values));
                }
                Err(failure) if failure.sqlstate() == "57014" => {
                    return Err(if self.cancel.breaks_deadlock() { deadlock() } else { failure });
                }
                // The own transaction may hold what another connection waits for.
                Err(failure) if failure.sqlstate() == "55P03" && self.coordinator_takes_part() => {
                    self.join(COORDINATOR_GROUP).await?;
                    self.forget_draws_of_others();
                    self.note_may_draw();
                    let drawn = self.collect_on(COORDINATOR_GROUP, &format!("SELECT {sql}")).await?;
                    lease.forget();
                    return Ok(drawn.text(0, 0).and_then(|value| value.parse().ok()));
                }
                // Fewer may be left.
                Err(Failure::Statement(_)) if wanted.count > 1 => wanted.count = 1,
                Err(Failure::Statement(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
        }
    }

    fn sequence(&self, sql: &str) -> Arc<Lease> {
        self.db.leases.of(&self.role_in_force(), sql)
    }

    /// Its values, for statements that take them without waiting.
    pub(crate) fn sequence_of(&self, sql: &str) -> (Arc<str>, Arc<Lease>) {
        (name_of_sequence(sql), self.sequence(sql))
    }

    /// Who draws, in the coordinator's eyes.
    pub(super) fn role_in_force(&self) -> String {
        let setting = |name: &str| self.settings.get(name).map_or("", String::as_str);
        format!("{}\0{}\0{}", self.user, setting("role"), setting("session_authorization"))
    }

    /// What `currval` and `lastval` give from now on: the coordinator's connections know nothing of it.
    pub(crate) fn note_drawn(&mut self, sequence: &Arc<str>, value: i64) {
        self.note_current(sequence, value);
        self.last_drawn = Some(LastOne { name: sequence.clone(), doubt: None });
    }

    fn note_current(&mut self, sequence: &Arc<str>, value: i64) {
        let is_it = |known: &&mut LastDrawn| Arc::ptr_eq(&known.name, sequence) || *known.name == **sequence;
        match self.drawn.iter_mut().find(is_it) {
            Some(known) => (known.value, known.doubt) = (value, None),
            None => self.drawn.push(LastDrawn { name: sequence.clone(), value, doubt: None }),
        }
    }

    /// The coordinator has evaluated a column's default, which is the next value of a sequence.
    pub(super) fn note_evaluated(&mut self, sql: &str, value: Option<&[u8]>) {
        if let Some(value) = value.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()) {
            self.note_drawn_there(&name_of_sequence(sql), value, true);
        }
    }

    /// The coordinator has drawn it. Where bodies may ask for it, the connection knows, and stays the session's.
    fn note_drawn_there(&mut self, name: &Arc<str>, value: i64, is_last: bool) {
        if !pgherd_planner::is_asked_inside(&self.catalog().asked_inside, name) {
            self.note_current(name, value);
            if is_last {
                self.last_drawn = Some(LastOne { name: name.clone(), doubt: None });
            }
            return;
        }
        self.pin = true;
        self.drawn.retain(|known| known.name != *name);
        self.last_drawn.take_if(|last| is_last || last.name == *name);
    }

    /// Before a statement that writes on the coordinator what may draw by itself, where bodies may ask for that.
    pub(super) fn keep_draws_there(&mut self, statement: &Statement) {
        if !self.catalog().asked_inside.is_empty() && statement.has_modifying && self.may_hide_draws(statement) {
            self.pin = true;
        }
    }

    /// The coordinator has inserted into a table whose columns have these sequences, by a connection which may be
    /// another one next time.
    pub(super) async fn note_inserted(&mut self, names: &[Arc<str>]) -> Result<()> {
        let is_there = self.txn.participants.contains_key(&COORDINATOR_GROUP) && self.txn.block != Block::Failed;
        if names.is_empty() || !is_there || self.pin {
            return Ok(());
        }
        let mut query = "SELECT pgherd.last_value_here()".to_owned();
        for name in names {
            let _ = write!(query, ", pgherd.current_value(pgherd.sequence_named({name}), NULL)");
        }
        let found = self.collect_on(COORDINATOR_GROUP, &query).await?;
        let number = |column| found.text(0, column).and_then(|value| value.parse::<i64>().ok());
        let last = number(0);
        let has_drawn = self.last_drawn.as_ref().is_none_or(|known| known.doubt != Some(last));
        for (at, name) in names.iter().enumerate() {
            let Some(value) = number(at + 1) else { continue };
            let is_old = |known: &LastDrawn| known.name == *name && known.doubt == Some(Some(value));
            if !self.drawn.iter().any(is_old) {
                self.note_drawn_there(name, value, has_drawn && last == Some(value));
            }
        }
        Ok(())
    }

    /// After a plan of which the coordinator has run the statement, or what is left of it: nothing that it may have
    /// drawn from is handed out any more, and what an INSERT has drawn for its table is the session's.
    pub(super) async fn note_run_there(
        &mut self,
        call: &Call<'_>,
        plan: &Plan,
        result: &Result<Completion>,
    ) -> Result<()> {
        let is_done = matches!(result, Ok(Completion::Tag(_)));
        let (own, is_all) = match inserted(call, plan) {
            Some(target) => (draws_of(target), false),
            None if is_done => self.draws_of_local(call).await?,
            None => (Vec::new(), false),
        };
        let draws = match &plan.tier {
            Tier::Federate { .. } if plan.writes => Draws::Any,
            Tier::Stage(_) => Draws::Of(&own),
            _ if is_all => Draws::Of(&own),
            _ => Draws::Shown,
        };
        self.forget_leases_after(call, draws);
        if is_done { self.note_inserted(&own).await } else { Ok(()) }
    }

    /// The sequences of a table of the coordinator's own into which a statement inserts, and whether nothing else is
    /// drawn from.
    async fn draws_of_local(&mut self, call: &Call<'_>) -> Result<(Vec<Arc<str>>, bool)> {
        let catalog = self.catalog();
        let Some(Tree::Insert(insert)) = call.prepared.statement.as_ref().map(|statement| &statement.tree) else {
            return Ok((Vec::new(), false));
        };
        if catalog.local_draws.is_empty() {
            return Ok((Vec::new(), false));
        }
        let (target, path) = (&insert.target, self.search_path().await?);
        let Some(table) = catalog.resolve_other(target.schema.as_deref(), &target.name, &path) else {
            return Ok((Vec::new(), false));
        };
        let draws = catalog.local_draws.get(&table).into_iter().flat_map(|draws| draws.iter());
        let names = draws.flat_map(|draw| pgherd_planner::sequences_of_default(&draw.sql)).collect();
        Ok((names, insert.with.is_none() && catalog.drawing_targets.contains(&table)))
    }

    /// Before the coordinator runs what may draw from sequences: what it has drawn last so far.
    pub(super) async fn doubt_last_drawn(&mut self) -> Result<()> {
        let certain: Vec<usize> =
            self.drawn.iter().enumerate().filter(|(_, known)| known.doubt.is_none()).map(|(at, _)| at).collect();
        let is_last_certain = self.last_drawn.as_ref().is_some_and(|last| last.doubt.is_none());
        if certain.is_empty() && !is_last_certain || self.txn.block == Block::Failed {
            return Ok(());
        }
        self.join(COORDINATOR_GROUP).await?;
        self.forget_draws_of_others();
        let mut query = "SELECT pgherd.last_value_here()".to_owned();
        for at in &certain {
            let _ = write!(query, ", pgherd.current_value(pgherd.sequence_named({}), NULL)", self.drawn[*at].name);
        }
        let found = self.collect_on(COORDINATOR_GROUP, &query).await?;
        let number = |column| found.text(0, column).and_then(|value| value.parse().ok());
        if let Some(last) = &mut self.last_drawn {
            last.doubt.get_or_insert(number(0));
        }
        for (column, at) in certain.into_iter().enumerate() {
            self.drawn[at].doubt = Some(number(column + 1));
        }
        Ok(())
    }

    /// A DO block that asks for what the router has drawn; none: it does not.
    pub(super) fn block_with_drawn(&self, text: &str) -> Option<String> {
        if self.drawn.is_empty() && self.last_drawn.is_none() {
            return None;
        }
        let mut edits = Edits::new();
        for (span, body) in pgherd_sql::do_literals(text) {
            let body = body.as_deref().unwrap_or_default();
            if let Some(body) = pgherd_planner::body_with_drawn(body, &self.drawn, self.last_drawn.as_ref()) {
                edits.replace(span, quote_literal(&body));
            }
        }
        if edits.is_empty() { None } else { edits.apply(text).ok().map(|text| text.as_written()) }
    }

    /// Whether the coordinator may draw for a statement that it runs.
    pub(super) fn may_draw_there(&self, statement: &Statement) -> bool {
        self.calls_what_draws(statement) || statement.has_modifying && self.may_hide_draws(statement)
    }

    /// By a call that it has.
    pub(super) fn calls_what_draws(&self, statement: &Statement) -> bool {
        pgherd_planner::moves_sequences(statement) || self.statement_calls_user_function(statement)
    }

    /// After a statement that the coordinator ran: of what it may have drawn from, or have moved, nothing is handed out
    /// any more.
    pub(super) fn forget_leases_after(&mut self, call: &Call<'_>, draws: Draws<'_>) {
        let Some(statement) = &call.prepared.statement else { return };
        if self.db.leases.is_empty() {
            return;
        }
        let moved = pgherd_planner::sequences_moved(statement);
        let is_any = match draws {
            Draws::Any => true,
            Draws::Shown => statement.has_modifying && self.may_hide_draws(statement),
            Draws::Of(_) => false,
        };
        let runs_any = matches!(statement.kind, StatementKind::Do { .. } | StatementKind::Call)
            || self.statement_calls_user_function(statement);
        match moved.filter(|_| !is_any && !runs_any) {
            None => self.db.leases.forget(),
            Some(mut names) => {
                if let Draws::Of(own) = draws {
                    names.extend(own.iter().map(|name| pgherd_planner::last_part(name)));
                }
                if !names.is_empty() {
                    let last_part = |sql: &str| pgherd_planner::last_part(&name_of_sequence(sql));
                    self.db.leases.forget_those(|sql| names.contains(&last_part(sql)));
                }
            }
        }
    }

    /// What the statement writes may draw from sequences by itself: not a local table with nothing behind it. It looks
    /// at all names, and is asked where something has been drawn.
    pub(super) fn may_hide_draws(&self, statement: &Statement) -> bool {
        let target = match &statement.tree {
            Tree::Insert(insert) if insert.with.is_none() => &insert.target,
            Tree::Update(update) if update.with.is_none() => &update.target,
            Tree::Delete(delete) if delete.with.is_none() => &delete.target,
            _ => return true,
        };
        let catalog = self.catalog();
        // Every table of the name: which one is meant depends on a path that may have changed.
        let mut others = catalog.other_names().filter(|(_, name)| *name == target.name).peekable();
        let is_ours = catalog.all_tables().any(|table| table.name == target.name);
        let is_plain = |(schema, name): (&str, &str)| catalog.shown_targets.contains(&qualified(schema, name));
        is_ours || others.peek().is_none() || self.temp.contains(&target.name) || !others.all(is_plain)
    }
}

/// What a statement may have drawn from besides what it calls.
#[derive(Debug, Clone, Copy)]
pub(super) enum Draws<'a> {
    /// What the table that it writes draws from by itself.
    Shown,
    /// These sequences.
    Of(&'a [Arc<str>]),
    /// Any.
    Any,
}

/// The sequences of a table's columns.
pub(super) fn draws_of(table: &Table) -> Vec<Arc<str>> {
    let defaults = table.columns.iter().filter_map(pgherd_planner::default_sql);
    defaults.flat_map(|sql| pgherd_planner::sequences_of_default(&sql)).collect()
}

/// The table into which a statement inserts, of those that its plan has.
fn inserted<'a>(call: &Call<'_>, plan: &'a Plan) -> Option<&'a Arc<Table>> {
    let Some(Tree::Insert(insert)) = call.prepared.statement.as_ref().map(|statement| &statement.tree) else {
        return None;
    };
    plan.tables.first().filter(|table| table.name == insert.target.name)
}

/// What the coordinator computes for rows, each once: first what is the next value of a sequence and nothing else.
pub(super) fn computed_for(insert: &InsertRows) -> (HashSet<&str>, HashSet<&str>) {
    let fields = insert.rows.iter().flat_map(|row| &row.fields);
    let computed: HashSet<&str> = fields
        .filter_map(|field| match field {
            Field::Evaluate { sql, .. } => Some(sql.as_str()),
            _ => None,
        })
        .collect();
    computed.into_iter().partition(|sql| pgherd_planner::is_next_value(sql))
}

/// The coordinator draws for columns whose values do not tell what was drawn.
pub(super) fn hides_draws(insert: &InsertRows) -> bool {
    let (_, others) = computed_for(insert);
    others.iter().any(|sql| sql.contains("nextval"))
}
