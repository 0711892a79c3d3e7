//! SQL-level cursors and prepared statements. A cursor lives on the coordinator, which answers any query; a prepared
//! statement lives in the router, so that it follows the client from server to server; the coordinator has those that
//! concern it alone as well (`there.rs`).

use std::rc::Rc;

use bytes::Bytes;
use pgherd_catalog::{COORDINATOR_GROUP, OWN_SCHEMA};
use pgherd_sql::ast::ExprKind;
use pgherd_sql::{Span, Splice, Statement, StatementKind};

use super::stage::Capture;
use super::{Call, Completion, Errors};
use crate::error::{Failure, Result};
use crate::session::{Bound, DeclaredCursor, Named, Prepared, Session};

impl Session {
    pub(super) async fn run_cursor(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        if let StatementKind::DeclareCursor { hold: true, .. } = kind {
            self.pin = true;
            // WITH HOLD outside a block: a transaction of its own, in which the rows are fetched and kept.
            self.open_implicit_block();
        }
        if let Some(completion) = self.run_in_portal(call, kind).await? {
            return Ok(completion);
        }
        if let StatementKind::Fetch { name, is_move, .. } = kind {
            self.cursors.fetching = Some(name.clone());
            let completion = match self.is_followed(name) {
                true => self.fetch_followed(call, name, *is_move).await,
                false => self.run_cursor_there(call, kind).await,
            };
            self.cursors.fetching = None;
            return completion;
        }
        self.run_cursor_there(call, kind).await
    }

    async fn run_cursor_there(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        let mut followed = None;
        let sql = match (&call.prepared.statement, kind) {
            (Some(statement), StatementKind::DeclareCursor { query, .. }) => {
                let mut inserted = Vec::new();
                if let Some((table, at, column)) = self.followed(&statement.text, *query).await? {
                    followed = Some(table);
                    inserted.push((pgherd_sql::Span { start: at, end: at }, column));
                }
                self.coordinator_text_with(statement, Some(call), &inserted).await?
            }
            _ => self.coordinator_text(call).await?,
        };
        let completion = self.run_coordinator_plan(call, &sql, false, false).await?;
        match kind {
            StatementKind::DeclareCursor { name, query, hold, .. } => {
                self.txn.holds |= *hold;
                let inner = query.of(call.prepared.text());
                if let Some(statement) = pgherd_sql::split(inner).ok().and_then(|mut s| s.pop()) {
                    self.keep_moment(name, &statement, Some(&sql.as_written())).await?;
                }
                self.declared_cursors.remove(name);
                if sql.as_written() != call.prepared.source() {
                    let source = call.prepared.source().to_owned();
                    let log = self.txn.log.len();
                    let declared = DeclaredCursor { source, hold: *hold, kept: false, log, followed };
                    self.declared_cursors.insert(name.clone(), declared);
                }
            }
            StatementKind::CloseCursor { name } => {
                self.forget_moment(name.as_deref());
                match name {
                    Some(name) => drop(self.declared_cursors.remove(name)),
                    None => self.declared_cursors.clear(),
                }
            }
            _ => {}
        }
        Ok(completion)
    }

    /// Its rows have a last column that the client does not know of.
    pub fn is_followed(&self, cursor: &str) -> bool {
        self.declared_cursors.get(cursor).is_some_and(|c| c.followed.is_some())
    }

    pub(super) async fn run_sql_prepared(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        let text = call.prepared.text();
        match kind {
            StatementKind::Prepare { name, types, statement } => {
                let inner = statement.of(text).to_owned();
                let exists = self.statements.contains_key(name);
                if !exists && let Some(completion) = self.prepare_there(call, name, &inner).await? {
                    return Ok(completion);
                }
                let declared = self.type_oids(types).await?;
                let prepared = self.prepare(&inner, declared).await.map_err(|f| shift(f, text, statement.start))?;
                if exists {
                    // What is wrong with the statement comes first.
                    return Err(Failure::new("42P05", format!("prepared statement \"{name}\" already exists")));
                }
                let named = Named::new(prepared, Some(call.prepared.source().to_owned()));
                self.statements.insert(name.clone(), named);
                Ok(Completion::tag("PREPARE"))
            }
            StatementKind::Execute { name, args } => {
                let prepared = self.prepared_by_name(name)?;
                if !is_query(&prepared) {
                    // Parse may have named a utility statement, which has no parameters.
                    return Box::pin(self.execute(&Call { prepared: &prepared, ..*call })).await;
                }
                if let Some(completion) = self.execute_there(call, name).await? {
                    return Ok(completion);
                }
                let types = self.execute_types(name, &prepared, args).await?;
                let params = self.evaluate_args(text, args, &types).await?;
                let result_formats = call.bound.map(|b| b.result_formats.clone()).unwrap_or_default();
                let bound = Bound { param_formats: Vec::new(), params, result_formats };
                let inner = Call {
                    prepared: &prepared,
                    bound: Some(&bound),
                    max_rows: call.max_rows,
                    portal: call.portal,
                    described: true,
                    ..Call::simple(&prepared)
                };
                if call.describes()
                    && let Some(fields) = &self.described(&prepared).await?.fields
                {
                    pgherd_wire::backend::write_row_description(&mut self.client.out, fields);
                }
                Box::pin(self.execute(&inner)).await
            }
            StatementKind::Deallocate { name: Some(name) } => match self.statements.remove(name) {
                Some(_) => {
                    self.forget_there(name).await?;
                    Ok(Completion::tag("DEALLOCATE"))
                }
                None => Err(Failure::new("26000", format!("prepared statement \"{name}\" does not exist"))),
            },
            StatementKind::Deallocate { name: None } => {
                self.forget_named();
                self.forget_all_there().await?;
                Ok(Completion::tag("DEALLOCATE ALL"))
            }
            _ => Err(Failure::new("XX000", "not a prepared statement")),
        }
    }

    pub(super) fn prepared_by_name(&self, name: &str) -> Result<Rc<Prepared>> {
        self.named(name).ok_or_else(|| Failure::new("26000", format!("prepared statement \"{name}\" does not exist")))
    }

    /// The types of an EXECUTE's arguments, of which there must be as many.
    async fn execute_types(&mut self, name: &str, prepared: &Prepared, args: &[Span]) -> Result<Vec<u32>> {
        let types = self.described(prepared).await?.param_types.clone();
        if args.len() == types.len() {
            return Ok(types);
        }
        Err(Failure::new("42601", format!("wrong number of parameters for prepared statement \"{name}\""))
            .detail(format!("Expected {} parameters but got {}.", types.len(), args.len())))
    }

    /// The statement and the values of `EXPLAIN EXECUTE name (args)`; `text` is what the arguments are ranges of.
    pub(super) async fn explained_execute(
        &mut self,
        text: &str,
        name: &str,
        args: &[Span],
    ) -> Result<(Rc<Prepared>, Bound)> {
        let prepared = self.prepared_by_name(name)?;
        let types = self.execute_types(name, &prepared, args).await?;
        let params = self.evaluate_args(text, args, &types).await?;
        Ok((prepared, Bound { param_formats: Vec::new(), params, result_formats: Vec::new() }))
    }

    /// `CREATE TABLE … AS EXECUTE`: the coordinator is given the prepared statement for a moment under a name of ours,
    /// and the statement that creates the table is the user's own but for that name. Gives that text and the name.
    pub(super) async fn lend_prepared(&mut self, text: &str, query: Span) -> Result<Option<(Splice, String)>> {
        let parsed = pgherd_sql::split(query.of(text)).unwrap_or_default().pop();
        let Some(Statement { kind: StatementKind::Execute { name, args }, offset, .. }) = parsed else {
            return Ok(None);
        };
        let prepared = self.prepared_by_name(&name)?;
        let Some(inner) = prepared.statement.as_ref().filter(|s| matches!(s.kind, StatementKind::Select)) else {
            return Err(Failure::new("42809", "prepared statement is not a SELECT"));
        };
        let types = self.execute_types(&name, &prepared, &args).await?;
        let lent = format!("{OWN_SCHEMA}_execute_{}", crate::session::next_id());
        let names = self.type_names(&types).await?;
        let list = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let sql = self.coordinator_text_of(inner).await?.as_written();
        self.join(COORDINATOR_GROUP).await?;
        self.run_quiet(COORDINATOR_GROUP, &format!("PREPARE {lent}{list} AS {sql}")).await?;
        // Prepared statements outlive a rollback: an error leaves this one to the connection's end or wiping.
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.tainted = true;
        }
        let mut splice = Splice::default();
        splice.push_text(&text[..query.start], Some(0));
        splice.push_text(&format!("EXECUTE {lent}"), None);
        let rest = match args.first() {
            Some(first) => {
                splice.push_text(" (", None);
                query.start + offset + first.start
            }
            None => query.end,
        };
        splice.push_text(text.get(rest..).unwrap_or(""), Some(rest));
        Ok(Some((splice, lent)))
    }

    /// Types as the coordinator names them.
    async fn type_names(&mut self, types: &[u32]) -> Result<Vec<String>> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let oids: Vec<String> = types.iter().map(u32::to_string).collect();
        let names = self
            .ask_coordinator(&format!(
                "SELECT pg_catalog.format_type(o, -1) FROM pg_catalog.unnest(ARRAY[{}]::pg_catalog.oid[]) \
                 WITH ORDINALITY u(o, n) ORDER BY n",
                oids.join(", ")
            ))
            .await?;
        Ok((0..types.len()).map(|row| names.text(row, 0).unwrap_or("text").to_owned()).collect())
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
        let mut computes = types.iter().any(|type_oid| reads_words(*type_oid));
        for arg in args {
            const BEFORE: &str = "SELECT ";
            let parsed = pgherd_sql::split(&format!("{BEFORE}{}", arg.of(text))).unwrap_or_default();
            computes |= !parsed.iter().all(|s| s.calls.is_empty() && s.types.is_empty());
            if let Some(statement) = parsed.iter().find(|s| s.has_sublink) {
                let mut at = None;
                statement.tree.walk_all(&mut |_, e| {
                    if matches!(e.kind, ExprKind::Sublink(_)) && e.span.is_known() {
                        at.get_or_insert(arg.start + e.span.start - BEFORE.len());
                    }
                });
                let position = text.get(..at.unwrap_or(arg.start)).map_or(0, |t| t.chars().count()) + 1;
                return Err(
                    Failure::new("0A000", "cannot use subquery in EXECUTE parameter").with(b'P', &position.to_string())
                );
            }
        }
        let names = self.type_names(types).await?;
        let mut splice = Splice::default();
        for (index, arg) in args.iter().enumerate() {
            splice.push_text(if index == 0 { "SELECT (" } else { ", (" }, None);
            splice.push_text(arg.of(text), Some(arg.start));
            splice.push_text(&format!(")::{}", names.get(index).map_or("text", String::as_str)), None);
        }
        let sql = splice.as_written();
        let values = match computes {
            true => self.computed_values(&sql).await,
            false => self.ask_coordinator(&sql).await.map(|mut result| result.rows.pop().unwrap_or_default()),
        };
        let errors = Errors::of(&splice, text);
        values.map_err(|failure| match failure {
            Failure::Statement(fields) => self.translate(*fields, errors),
            other => other,
        })
    }

    /// The values of a SELECT of one row, in the open transaction: functions may read and write, and tell its time.
    async fn computed_values(&mut self, sql: &str) -> Result<Vec<Option<Bytes>>> {
        let Some(statement) = pgherd_sql::split(sql).ok().and_then(|mut s| s.pop()) else { return Ok(Vec::new()) };
        self.open_implicit_block();
        let none = Prepared::new(Some(statement.clone()), sql, Vec::new());
        let (_, captured) = self.run_captured(&Call::simple(&none), statement, Vec::new(), Capture::raw()).await?;
        captured.map_or(Ok(Vec::new()), Capture::into_row)
    }
}

/// Its values may be words for the time.
fn reads_words(type_oid: u32) -> bool {
    matches!(type_oid, 1082 | 1083 | 1114 | 1184 | 1266)
}

/// A data statement: it has parameters and columns that the coordinator describes.
fn is_query(prepared: &Prepared) -> bool {
    prepared.statement.as_ref().is_some_and(|s| crate::session::is_planned(&s.kind))
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
