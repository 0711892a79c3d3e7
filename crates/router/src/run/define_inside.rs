//! Definitions that SQL inside the coordinator makes (DO blocks, functions). Event triggers of ours there tell of each,
//! before it is carried out and afterwards (`pgherd.define_inside`), and the definition takes the way of any other
//! (`ddl.rs`). The coordinator's connection is busy with the statement meanwhile. What the router wants to know and to
//! have done there is the answer to the trigger's question, and the next question brings what came of it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_backend::QueryResult;
use pgherd_catalog::{COORDINATOR_GROUP, Table};
use pgherd_control::describe::TableDescription;
use pgherd_sql::{DdlInfo, StatementKind};
use pgherd_wire::backend;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};
use tokio::sync::{mpsc, oneshot};

use super::ddl::{renames_value, touches_unnamed};
use super::request::next_batch;
use crate::callback::{Batch, command_of, reads_definitions};
use crate::database::Source;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;
use crate::text::fields_of_record;
use crate::transaction::Block;

/// What a session keeps of definitions inside the coordinator.
#[derive(Default)]
pub struct Definitions {
    /// The cursor by which the coordinator asks; it waits for the answer.
    question: Option<String>,
    /// Definitions that have begun.
    begun: Vec<Begun>,
    /// Where replies to callbacks go that are being served.
    pub replies: Vec<oneshot::Sender<Bytes>>,
    /// A callback that came in place of a question: what asked has failed.
    pub interrupted: Option<Batch>,
    /// Closed once the callback connection is gone.
    open: Option<mpsc::Sender<()>>,
}

impl Definitions {
    /// The coordinator waits for an answer, and does what that says.
    pub fn is_asked(&self) -> bool {
        self.question.is_some()
    }

    pub fn expect(&mut self, open: mpsc::Sender<()>) {
        self.open = Some(open);
    }

    /// At the end of a transaction.
    pub fn forget(&mut self) {
        self.begun.clear();
    }
}

/// A definition that is being carried out.
struct Begun {
    /// Where, as PostgreSQL tells the context of an error: the same before and after.
    context: String,
    text: String,
    info: DdlInfo,
    before: Vec<(Arc<Table>, TableDescription)>,
}

impl Session {
    /// A question of `pgherd.tell_router`: what it says of a definition, and who defines.
    pub(crate) async fn serve_definition(&mut self, cursor: &str, said: &str, in_block: bool) -> Result<()> {
        self.definitions.question = Some(cursor.to_owned());
        // Without a block there is nothing that the workers could do with it; the guard refuses what they should.
        let result = match in_block && !self.txn.ending {
            true => self.hear_of_definition(said).await,
            false => Ok(()),
        };
        let cursor = self.definitions.question.take();
        result?;
        if let Some(cursor) = cursor {
            self.cursors.keep(&cursor, vec![row_of("done")]);
        }
        Ok(())
    }

    async fn hear_of_definition(&mut self, said: &str) -> Result<()> {
        let mut parts = said.splitn(3, '\n');
        let (Some(event), Some(definer), Some(context)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(not_understood());
        };
        if self.txn.block == Block::None {
            self.open_implicit_block();
        }
        // The function's own path.
        self.forget_search_path();
        let result = match event {
            "ddl_command_start" => self.begin_inside(definer, context).await,
            _ => self.end_inside(definer, context).await,
        };
        self.forget_search_path();
        result
    }

    async fn begin_inside(&mut self, definer: &str, context: &str) -> Result<()> {
        // One that has failed in the same place says no more.
        self.definitions.begun.retain(|begun| begun.context != context);
        let Some(text) = self.text_inside(context).await? else { return Ok(()) };
        let statement = pgherd_sql::split(&text).ok().and_then(|mut s| (s.len() == 1).then(|| s.remove(0)));
        let info = match statement.map(|s| s.kind) {
            Some(StatementKind::Ddl(info)) if !info.temp && !info.concurrently => info,
            Some(StatementKind::CreateTable(create)) if !create.temp => {
                match self.created_below(&create, &text).await? {
                    Some(info) => info,
                    None => return Ok(()),
                }
            }
            _ => return Ok(()),
        };
        self.refresh_temporary_names().await?;
        let affected = self.affected_tables(&info).await?;
        self.refuse_key_to_distributed(&text, &info, &affected).await?;
        // Workers have no such thing.
        if affected.is_empty() && matches!(info.object, "table" | "index") {
            return Ok(());
        }
        if !affected.is_empty() && !self.is_who_defines(definer).await? {
            // Which tables it concerns is not known: the guard refuses what reaches one.
            if touches_unnamed(&info) {
                return Ok(());
            }
            return self.refuse_other(definer, &affected).await;
        }
        let before = if affected.is_empty() { Vec::new() } else { self.before_definition(&info).await? };
        self.let_schema_follow(&info, true).await?;
        self.definitions.begun.push(Begun { context: context.to_owned(), text, info, before });
        Ok(())
    }

    async fn end_inside(&mut self, definer: &str, context: &str) -> Result<()> {
        let Some(at) = self.definitions.begun.iter().position(|begun| begun.context == context) else { return Ok(()) };
        let Begun { text, info, before, .. } = self.definitions.begun.remove(at);
        self.let_schema_follow(&info, false).await?;
        let follows = self.is_who_defines(definer).await?;
        if follows && renames_value(&info) {
            self.follow_object_inside(&text, &info).await?;
        }
        self.follow_tables(&before, &info, &text).await?;
        if info.tag.starts_with("DROP") {
            self.drop_on_workers().await?;
        }
        if follows && !renames_value(&info) {
            self.follow_object_inside(&text, &info).await?;
        }
        self.cursors.rights.clear();
        self.txn.changed_catalog = true;
        self.reload_catalog_in_block().await
    }

    /// A role that is not the session's may define nothing on the workers. What it does not own PostgreSQL refuses.
    async fn refuse_other(&mut self, definer: &str, affected: &[Arc<Table>]) -> Result<()> {
        let oids: Vec<String> = affected.iter().map(|t| t.oid.to_string()).collect();
        let sql = format!(
            "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.oid IN ({}) \
             AND pg_catalog.pg_has_role({}, c.relowner, 'USAGE') ORDER BY c.oid LIMIT 1",
            oids.join(", "),
            quote_literal(definer)
        );
        let owned = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let Some(table) = owned.text(0, 0) else { return Ok(()) };
        Err(Failure::new(
            "PH001",
            format!("cannot change the definition of distributed table \"{table}\" from inside the coordinator"),
        )
        .detail("It would run with the rights of another role than the session's.")
        .hint("Send it as a statement of its own through the router."))
    }

    /// Names in the text mean on the workers what they mean in the function.
    async fn follow_object_inside(&mut self, text: &str, info: &DdlInfo) -> Result<()> {
        const PATH: &str = "SELECT pg_catalog.current_setting('search_path')";
        let inside = self.collect_on(COORDINATOR_GROUP, PATH).await?;
        let inside = inside.text(0, 0).unwrap_or_default();
        let Some(group) = self.catalog().worker_groups().first().copied() else { return Ok(()) };
        self.join(group).await?;
        let there = self.collect_on(group, PATH).await?;
        let there = there.text(0, 0).unwrap_or_default();
        if inside == there {
            return self.follow_object(text, info).await;
        }
        let set = |path: &str| format!("SELECT pg_catalog.set_config('search_path', {}, true)", quote_literal(path));
        self.run_everywhere(&set(inside)).await?;
        self.follow_object(text, info).await?;
        self.run_everywhere(&set(there)).await
    }

    /// Whoever defines is, on the workers too, whose session it is. What another role has written (SECURITY DEFINER)
    /// must not run there with more rights than here.
    async fn is_who_defines(&mut self, definer: &str) -> Result<bool> {
        for group in self.catalog().worker_groups() {
            self.join(group).await?;
            let there = self.collect_on(group, "SELECT current_user").await?;
            if there.text(0, 0) != Some(definer) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The text of the statement that PostgreSQL tells of first in a context.
    async fn text_inside(&mut self, context: &str) -> Result<Option<String>> {
        if let Some(rest) = context.strip_prefix("SQL statement \"") {
            let end = ["\"\nPL/", "\"\nSQL function "].iter().filter_map(|mark| rest.find(mark)).min();
            return Ok(end.map(|end| rest[..end].to_owned()));
        }
        // SQL function "name" statement 1
        let first = context.lines().next().unwrap_or_default();
        let rest = first.strip_prefix("SQL function \"").and_then(|rest| rest.rsplit_once("\" statement "));
        let Some((name, Ok(number))) = rest.map(|(name, number)| (name, number.parse::<usize>())) else {
            return Ok(None);
        };
        let sql = format!(
            "SELECT p.prosrc FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
             WHERE l.lanname = 'sql' AND p.prosqlbody IS NULL AND p.proname = {}",
            quote_literal(name)
        );
        let bodies = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let body = (bodies.rows.len() == 1).then(|| bodies.text(0, 0)).flatten();
        let statements = body.and_then(|body| pgherd_sql::split(body).ok()).unwrap_or_default();
        Ok(statements.into_iter().nth(number.wrapping_sub(1)).map(|s| s.text))
    }

    /// Has the coordinator carry out a statement (`run`), or a query (`ask`; `see`: not under the definer's own path),
    /// while it waits for an answer.
    pub(crate) async fn ask_inside(&mut self, verb: &str, sql: &str) -> Result<QueryResult> {
        let Some(cursor) = self.definitions.question.clone() else { return Err(not_understood()) };
        self.cursors.keep(&cursor, vec![row_of(&format!("{verb} {sql}"))]);
        if let Some(reply) = self.definitions.replies.pop() {
            let mut out = BytesMut::new();
            backend::write_parse_complete(&mut out);
            backend::write_bind_complete(&mut out);
            backend::write_no_data(&mut out);
            backend::write_command_complete(&mut out, "DECLARE CURSOR");
            backend::write_ready_for_query(&mut out, b'T');
            let _ = reply.send(out.freeze());
        }
        let said = self.next_question().await?;
        let mut parts = parts_of(&said).ok_or_else(not_understood)?.into_iter();
        match parts.next() {
            Some("rows") => {
                let rows = parts.map(|row| fields_of_record(row.as_bytes())).collect::<Option<_>>();
                let rows = rows.ok_or_else(not_understood)?;
                Ok(QueryResult { rows, ..QueryResult::default() })
            }
            Some("failed") => {
                let mut next = || parts.next().unwrap_or_default();
                let mut failure = Failure::new(next(), next());
                let (detail, hint) = (next(), next());
                if !detail.is_empty() {
                    failure = failure.detail(detail);
                }
                if !hint.is_empty() {
                    failure = failure.hint(hint);
                }
                Err(failure)
            }
            _ => Err(not_understood()),
        }
    }

    /// What the coordinator says next; other callbacks are answered meanwhile.
    async fn next_question(&mut self) -> Result<String> {
        loop {
            let Some(open) = self.definitions.open.clone() else { return Err(not_understood()) };
            let batch = tokio::select! {
                biased;
                Some(batch) = next_batch(&mut self.callbacks) => batch,
                () = open.closed() => {
                    self.definitions.question = None;
                    return Err(Failure::new("08006", "the coordinator's connection to the router was lost"));
                }
            };
            if let Some((cursor, said)) = question_of(&batch) {
                self.definitions.question = Some(cursor);
                self.definitions.replies.push(batch.reply);
                return Ok(said);
            }
            if goes_back(&batch) {
                self.definitions.question = None;
                self.definitions.interrupted = Some(batch);
                return Err(Failure::new("57014", "the statement that defines has ended"));
            }
            Box::pin(self.serve_callback(batch, true)).await;
        }
    }
}

/// While the coordinator asks.
impl Source for Session {
    type Error = Failure;
    async fn query(&mut self, sql: &str) -> Result<QueryResult> {
        self.ask_inside("see", sql).await
    }
}

/// The cursor and the command of a batch in which `pgherd.tell_router` says something.
fn question_of(batch: &Batch) -> Option<(String, String)> {
    let FrontendMessage::Parse { sql, .. } = parse_frontend(batch.frames.first()?).ok()? else { return None };
    let statement = pgherd_sql::split(sql).ok()?.pop()?;
    let StatementKind::DeclareCursor { name, query, .. } = statement.kind else { return None };
    let query = query.of(&statement.text);
    if !reads_definitions(query) {
        return None;
    }
    Some((name, command_of(query)?))
}

/// The end of the transaction or subtransaction in which the trigger ran.
fn goes_back(batch: &Batch) -> bool {
    batch.frames.iter().any(|frame| match parse_frontend(frame) {
        Ok(FrontendMessage::Query { sql }) => sql.starts_with("ROLLBACK") || sql.starts_with("ABORT"),
        _ => false,
    })
}

/// Texts one after another, each behind its length in characters.
fn parts_of(mut said: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    while !said.is_empty() {
        let (length, rest) = said.split_once(' ')?;
        let length: usize = length.parse().ok()?;
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
        parts.push(&rest[..end]);
        said = &rest[end..];
    }
    Some(parts)
}

fn row_of(text: &str) -> Bytes {
    let mut row = BytesMut::new();
    backend::write_data_row(&mut row, &[Some(text.as_bytes())]);
    row.freeze()
}

fn not_understood() -> Failure {
    Failure::new("XX000", "an event trigger of schema pgherd said what is not understood")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_counted_in_characters() {
        assert_eq!(parts_of("4 rows2 ä 0 3 a b"), Some(vec!["rows", "ä ", "", "a b"]));
        assert_eq!(parts_of("x"), None);
    }
}
