//! Values that the router gives a statement as parameters behind the client's own: what only the session knows, and the
//! next values of sequences.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_planner::Given;
use pgherd_sql::StatementKind;

use super::Call;
use crate::error::{Failure, Result};
use crate::run::deadlock;
use crate::sequences::Lease;
use crate::session::{Bound, Session};

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
        if bound.param_formats.len() == 1 && !bound.params.is_empty() {
            bound.param_formats = vec![bound.param_formats[0]; bound.params.len()];
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

    /// The next value of a sequence: of those that are here, or of new ones.
    async fn draw_value(&mut self, sql: &str) -> Result<Option<i64>> {
        if self.txn.begin.to_ascii_uppercase().contains("READ ONLY") {
            // The INSERT is refused.
            return Ok(Some(0));
        }
        let version = self.db.version();
        let lease = self.sequence(sql);
        let value = match lease.take(version) {
            Some(value) => Some(value),
            None => {
                let turn = tokio::time::timeout(TURN_WAIT, lease.turn()).await.ok();
                match lease.take(version) {
                    Some(value) => Some(value),
                    None => self.draw_values(sql, &lease, version, turn.is_some()).await?,
                }
            }
        };
        if let Some(value) = value {
            self.note_drawn(&name_of_sequence(sql), value);
        }
        Ok(value)
    }

    async fn draw_values(&mut self, sql: &str, lease: &Lease, version: u64, in_turn: bool) -> Result<Option<i64>> {
        let takes_part = self.txn.participants.contains_key(&COORDINATOR_GROUP);
        if takes_part {
            // It may hold locks that another connection would wait for.
            self.join(COORDINATOR_GROUP).await?;
            let drawn = self.collect_on(COORDINATOR_GROUP, &format!("SELECT {sql}")).await?;
            lease.forget();
            return Ok(drawn.text(0, 0).and_then(|value| value.parse().ok()));
        }
        let most = self.in_force("pgherd.sequence_lease").and_then(|text| text.trim().parse().ok()).unwrap_or(32);
        let mut wanted = lease.wanted(version, if in_turn { most } else { 1 });
        loop {
            let query = format!("SELECT {sql} FROM pg_catalog.generate_series(1, {})", wanted.count);
            let mut connection = self.coordinator_lease().await?;
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
                    return Ok(match in_turn {
                        true => lease.put(&wanted, version, &values),
                        false => values.first().copied(),
                    });
                }
                Err(failure) if failure.sqlstate() == "57014" => {
                    return Err(if self.cancel.breaks_deadlock() { deadlock() } else { failure });
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
        (Arc::from(name_of_sequence(sql)), self.sequence(sql))
    }

    /// Who draws, in the coordinator's eyes.
    fn role_in_force(&self) -> String {
        let setting = |name: &str| self.settings.get(name).map_or("", String::as_str);
        format!("{}\0{}\0{}", self.user, setting("role"), setting("session_authorization"))
    }

    /// What `currval` and `lastval` give from now on: the coordinator's connections know nothing of it.
    pub(crate) fn note_drawn(&mut self, sequence: &Arc<str>, value: i64) {
        match self.drawn.iter_mut().find(|(known, _)| Arc::ptr_eq(known, sequence) || **known == **sequence) {
            Some((_, last)) => *last = value,
            None => self.drawn.push((sequence.clone(), value)),
        }
        self.last_drawn = Some(value);
    }

    /// After a statement that the coordinator ran, which may have drawn from sequences, or have moved them.
    pub(super) fn note_draws_there(&mut self, call: &Call<'_>, draws: bool) {
        let Some(statement) = &call.prepared.statement else { return };
        let catalog = self.catalog();
        let moves = |name: &str| matches!(name, "nextval" | "setval") || catalog.user_functions.contains(name);
        let by_call = statement.calls.iter().any(|(_, name)| moves(name))
            || matches!(statement.kind, StatementKind::Do { .. } | StatementKind::Call);
        if by_call || draws || statement.has_modifying && catalog.local_triggers {
            self.db.leases.forget();
        }
        if by_call || draws || statement.has_modifying {
            self.last_drawn = None;
        }
        if statement.calls.iter().any(|(_, name)| name == "setval") {
            self.drawn.clear();
        }
    }
}

/// The sequence's name as a literal: all that is in quotes.
fn name_of_sequence(sql: &str) -> Arc<str> {
    let quotes = sql.find('\'').zip(sql.rfind('\''));
    Arc::from(quotes.and_then(|(first, last)| sql.get(first..=last)).unwrap_or("NULL"))
}
