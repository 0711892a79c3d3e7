//! SQL-level cursors and prepared statements. A cursor lives on the coordinator, which answers any query; a prepared
//! statement lives in the router, so that it follows the client from server to server.

use bytes::Bytes;
use pgherd_sql::{Span, Splice, StatementKind};

use super::{Call, Completion, Errors};
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};

impl Session {
    pub(super) async fn run_cursor(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        if let StatementKind::DeclareCursor { hold: true, .. } = kind {
            self.pin = true;
            // WITH HOLD outside a block: a transaction of its own, in which the rows are fetched and kept.
            self.open_implicit_block();
        }
        let sql = self.coordinator_text(call).await?;
        self.run_coordinator_plan(call, &sql, false, false).await
    }

    pub(super) async fn run_sql_prepared(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        let text = call.prepared.text();
        match kind {
            StatementKind::Prepare { name, types, statement } => {
                if self.statements.contains_key(name) {
                    return Err(Failure::new("42P05", format!("prepared statement \"{name}\" already exists")));
                }
                let declared = self.type_oids(types).await?;
                let inner = statement.of(text).to_owned();
                let prepared = self.prepare(&inner, declared).await.map_err(|f| shift(f, text, statement.start))?;
                self.statements.insert(name.clone(), prepared);
                Ok(Completion::tag("PREPARE"))
            }
            StatementKind::Execute { name, args } => {
                let prepared =
                    self.statements.get(name).cloned().ok_or_else(|| {
                        Failure::new("26000", format!("prepared statement \"{name}\" does not exist"))
                    })?;
                let types = match prepared.statement.as_ref() {
                    Some(s) if crate::session::is_planned(&s.kind) => {
                        self.described(&prepared).await?.param_types.clone()
                    }
                    _ => prepared.declared.clone(),
                };
                if args.len() != types.len() {
                    return Err(Failure::new(
                        "42601",
                        format!("wrong number of parameters for prepared statement \"{name}\""),
                    )
                    .detail(format!("Expected {} parameters but got {}.", types.len(), args.len())));
                }
                let params = self.evaluate_args(text, args, &types).await?;
                let result_formats = call.bound.map(|b| b.result_formats.clone()).unwrap_or_default();
                let bound = Bound { param_formats: Vec::new(), params, result_formats };
                let inner = Call {
                    prepared: &prepared,
                    bound: Some(&bound),
                    max_rows: call.max_rows,
                    portal: call.portal,
                    described: true,
                };
                if call.describes()
                    && let Some(statement) = &prepared.statement
                    && crate::session::is_planned(&statement.kind)
                    && let Some(fields) = &self.described(&prepared).await?.fields
                {
                    pgherd_wire::backend::write_row_description(&mut self.client.out, fields);
                }
                Box::pin(self.execute(&inner)).await
            }
            StatementKind::Deallocate { name: Some(name) } => match self.statements.remove(name) {
                Some(_) => Ok(Completion::tag("DEALLOCATE")),
                None => Err(Failure::new("26000", format!("prepared statement \"{name}\" does not exist"))),
            },
            StatementKind::Deallocate { name: None } => {
                self.statements.clear();
                Ok(Completion::tag("DEALLOCATE ALL"))
            }
            _ => Err(Failure::new("XX000", "not a prepared statement")),
        }
    }

    /// Type names of PREPARE as the coordinator numbers them.
    async fn type_oids(&mut self, names: &[String]) -> Result<Vec<u32>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let list: Vec<String> = names
            .iter()
            .map(|n| format!("{}::pg_catalog.regtype::pg_catalog.oid", crate::settings::quote_literal(n)))
            .collect();
        let result = self.ask_coordinator(&format!("SELECT {}", list.join(", "))).await?;
        Ok((0..names.len()).filter_map(|i| result.text(0, i).and_then(|t| t.parse().ok())).collect())
    }

    /// Arguments of EXECUTE are expressions: the coordinator computes them, as the parameters' types.
    async fn evaluate_args(&mut self, text: &str, args: &[Span], types: &[u32]) -> Result<Vec<Option<Bytes>>> {
        if args.is_empty() {
            return Ok(Vec::new());
        }
        for arg in args {
            let parsed = pgherd_sql::split(&format!("SELECT {}", arg.of(text))).unwrap_or_default();
            if parsed.iter().any(|s| s.has_sublink) {
                let position = text.get(..arg.start).map_or(0, |t| t.chars().count()) + 1;
                return Err(
                    Failure::new("0A000", "cannot use subquery in EXECUTE parameter").with(b'P', &position.to_string())
                );
            }
        }
        let oids: Vec<String> = types.iter().map(u32::to_string).collect();
        let names = self
            .ask_coordinator(&format!(
                "SELECT pg_catalog.format_type(o, -1) FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.oid[]) WITH ORDINALITY u(o, n) ORDER BY n",
                oids.join(", ")
            ))
            .await?;
        let mut splice = Splice::default();
        for (index, arg) in args.iter().enumerate() {
            splice.push_text(if index == 0 { "SELECT (" } else { ", (" }, None);
            splice.push_text(arg.of(text), Some(arg.start));
            splice.push_text(&format!(")::{}", names.text(index, 0).unwrap_or("text")), None);
        }
        let errors = Errors { splice: Some(&splice), text, renamed: None };
        let mut result = self.ask_coordinator(&splice.as_written()).await.map_err(|failure| match failure {
            Failure::Statement(fields) => self.translate(*fields, errors),
            other => other,
        })?;
        Ok(result.rows.pop().unwrap_or_default())
    }
}

/// A position inside the prepared text counts from the start of PREPARE.
fn shift(failure: Failure, text: &str, offset: usize) -> Failure {
    match failure {
        Failure::Statement(mut fields) => {
            if let Some(position) = fields.get(b'P').and_then(|p| p.parse::<usize>().ok()) {
                let before = text.get(..offset).map_or(0, |t| t.chars().count());
                fields.set(b'P', (position + before).to_string());
            }
            Failure::Statement(fields)
        }
        other => other,
    }
}
