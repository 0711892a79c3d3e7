//! Definitions that SQL inside the coordinator makes (DO blocks, functions). Event triggers of ours there tell of each,
//! before it is carried out and afterwards (`pgherd.define_inside`), and the definition takes the way of any other
//! (`ddl.rs`). The coordinator's connection is busy with the statement meanwhile. What the router wants to know and to
//! have done there is the answer to the trigger's question, and the next question brings what came of it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgherd_backend::QueryResult;
use pgherd_catalog::{COORDINATOR_GROUP, Oid, Table};
use pgherd_control::describe::TableDescription;
use pgherd_sql::{DdlInfo, Statement, StatementKind};
use pgherd_wire::backend;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};
use tokio::sync::{mpsc, oneshot};

use super::ddl::{renames_value, using_clauses};
use super::objects::{Followed, Meant, concerns_workers};
use super::request::next_batch;
use crate::callback::{Batch, command_of, reads_definitions};
use crate::database::Source;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::quote_literal;
use crate::text::fields_of_record;
use crate::transaction::{Block, Reach};

/// What a session keeps of definitions inside the coordinator.
#[derive(Default)]
pub struct Definitions {
    /// The cursor by which the coordinator asks; it waits for the answer.
    question: Option<String>,
    /// Definitions that have begun.
    begun: Vec<Begun>,
    /// How far texts of several statements are.
    progress: Vec<Progress>,
    /// The tables whose definition a statement of the client's changes, while it does.
    pub outer: Vec<Oid>,
    /// As whom workers follow, where that is not the session's own role there.
    pub definer: Option<Definer>,
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
        self.progress.clear();
        self.outer.clear();
        self.definer = None;
    }

    /// A subtransaction goes back, and those within it: what they were in the middle of begins anew.
    pub fn go_back(&mut self, depth: u32) {
        self.progress.retain(|progress| progress.depth < depth);
    }

    /// A subtransaction ends and is part of the one around it.
    pub fn release(&mut self, depth: u32) {
        for progress in self.progress.iter_mut().filter(|progress| progress.depth >= depth) {
            progress.depth = depth.saturating_sub(1);
        }
    }
}

/// The owner of a SECURITY DEFINER function that defines, and the path it has.
#[derive(Debug, Clone)]
pub struct Definer {
    pub role: String,
    pub path: String,
}

/// A text of several statements that is being carried out: each is told of with the context of all.
struct Progress {
    context: String,
    /// How many of its statements are behind it.
    done: usize,
    /// The subtransaction it is in.
    depth: u32,
}

/// What `pgherd.define_inside` says of a definition.
struct Told<'a> {
    is_start: bool,
    tag: &'a str,
    definer: &'a str,
    context: &'a str,
}

/// The statement that defines.
enum Defines {
    Statement(Box<Statement>),
    /// It is part of another one, which is told of by itself.
    Part,
    /// The context does not tell which it is.
    Unknown,
}

/// A definition that is being carried out.
struct Begun {
    /// Where, as PostgreSQL tells the context of an error: the same before and after.
    context: String,
    text: String,
    info: DdlInfo,
    before: Vec<(Arc<Table>, TableDescription)>,
    meant: Option<Meant>,
}

impl Session {
    /// A question of `pgherd.tell_router`: what it says of a definition, and who defines.
    pub(crate) async fn serve_definition(&mut self, cursor: &str, said: &str, in_block: bool) -> Result<()> {
        self.definitions.question = Some(cursor.to_owned());
        let result = match self.txn.ending {
            true => Ok(()),
            false => self.hear_of_definition(said, in_block).await,
        };
        let cursor = self.definitions.question.take();
        result?;
        if let Some(cursor) = cursor {
            self.cursors.keep(&cursor, vec![row_of("done")]);
        }
        Ok(())
    }

    async fn hear_of_definition(&mut self, said: &str, in_block: bool) -> Result<()> {
        let mut parts = said.splitn(5, '\n');
        let mut next = || parts.next().ok_or_else(not_understood);
        let (event, tag, roles, definer, context) = (next()?, next()?, next()?, next()?, next()?);
        let told = Told { is_start: event == "ddl_command_start", tag, definer, context };
        if event == "own_call" {
            return self.call_inside(&told, in_block).await;
        }
        if self.catalog().worker_groups().is_empty() {
            return Ok(());
        }
        if !in_block {
            // There is no transaction that the workers could take part in.
            self.forget_search_path();
            let result = self.refuse_without_block(&told).await;
            self.forget_search_path();
            return result;
        }
        if self.txn.block == Block::None {
            self.open_implicit_block();
        }
        self.catch_up(None).await?;
        if roles == "t" {
            self.follow_roles().await?;
        }
        // The function's own path.
        self.forget_search_path();
        self.definitions.definer = self.definer_there(told.definer).await?;
        let result = match told.is_start {
            true => self.begin_inside(&told).await,
            false => self.end_inside(told.context).await,
        };
        self.definitions.definer = None;
        self.forget_search_path();
        result
    }

    /// A function of the interface that the coordinator has met in something that it runs.
    async fn call_inside(&mut self, told: &Told<'_>, in_block: bool) -> Result<()> {
        let values = fields_of_record(told.context.as_bytes()).ok_or_else(not_understood)?;
        if !in_block {
            return Err(Failure::refused(format!("{} cannot be called here", told.tag))
                .detail("The procedure or DO block ends transactions itself."));
        }
        if self.txn.block == Block::None {
            self.open_implicit_block();
        }
        self.catch_up(None).await?;
        self.forget_search_path();
        self.definitions.definer = match self.catalog().worker_groups().is_empty() {
            true => None,
            false => self.definer_there(told.definer).await?,
        };
        let result = Box::pin(self.perform_inside(told.tag, &values)).await;
        self.definitions.definer = None;
        self.forget_search_path();
        result
    }

    /// What the guard does not refuse in a procedure that ends transactions itself.
    async fn refuse_without_block(&mut self, told: &Told<'_>) -> Result<()> {
        if !told.is_start || !concerns_workers(told.tag) {
            return Ok(());
        }
        if let Defines::Statement(statement) = self.statement_inside(told).await?
            && let StatementKind::Ddl(info) = &statement.kind
            && (info.temp || !self.is_for_workers(info).await?)
        {
            return Ok(());
        }
        Err(refused_inside(told.tag).detail("The procedure or DO block ends transactions itself."))
    }

    async fn begin_inside(&mut self, told: &Told<'_>) -> Result<()> {
        let context = told.context;
        // One that has failed in the same place says no more.
        self.definitions.begun.retain(|begun| begun.context != context);
        let statement = match self.statement_inside(told).await? {
            Defines::Statement(statement) => statement,
            Defines::Part => return Ok(()),
            // The guard refuses what reaches a table.
            Defines::Unknown if !concerns_workers(told.tag) => return Ok(()),
            Defines::Unknown => {
                return Err(refused_inside(told.tag).detail("Its text is not known."));
            }
        };
        let Statement { text, kind, .. } = *statement;
        let info = match kind {
            StatementKind::Ddl(info) if !info.temp && !info.concurrently => info,
            StatementKind::CreateTable(create) if !create.temp => match self.created_below(&create).await? {
                Some(info) => info,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.refresh_temporary_names().await?;
        let affected = self.affected_tables(&info).await?;
        self.keys_to_check(&text, &info, &affected, true).await?;
        // Workers have no such thing.
        if affected.is_empty() && matches!(info.object, "table" | "index") {
            return Ok(());
        }
        // What is changed inside of its own definition follows with that, which compares what there was before.
        let around = self.definitions_around(context);
        if !using_clauses(&text, &info).is_empty() && affected.iter().any(|table| around.contains(&table.oid)) {
            return Err(refused_inside(told.tag).detail("Another definition of the table is being carried out."));
        }
        let before = if affected.is_empty() { Vec::new() } else { self.before_definition(&info, &around).await? };
        self.let_schema_follow(&info, true).await?;
        let meant = self.meant_objects(&info).await?;
        self.definitions.begun.push(Begun { context: context.to_owned(), text, info, before, meant });
        Ok(())
    }

    /// The tables that definitions are changing in which this one is.
    fn definitions_around(&self, context: &str) -> Vec<Oid> {
        let around = self.definitions.begun.iter().filter(|begun| context.ends_with(&format!("\n{}", begun.context)));
        let tables = around.flat_map(|begun| begun.before.iter().map(|(table, _)| table.oid));
        tables.chain(self.definitions.outer.iter().copied()).collect()
    }

    async fn end_inside(&mut self, context: &str) -> Result<()> {
        let Some(at) = self.definitions.begun.iter().position(|begun| begun.context == context) else { return Ok(()) };
        let Begun { text, info, before, meant, .. } = self.definitions.begun.remove(at);
        self.let_schema_follow(&info, false).await?;
        let object_first = renames_value(&info);
        let followed = Followed { meant, tables: before.iter().map(|(table, _)| table.oid).collect() };
        if object_first {
            self.follow_object_inside(&text, &info, followed.clone()).await?;
        }
        let path = match using_clauses(&text, &info).is_empty() {
            true => None,
            false => self.take_path_inside().await?,
        };
        self.follow_tables(&before, &info, &text).await?;
        if let Some(path) = path {
            self.run_everywhere(&set_path(&path)).await?;
        }
        if info.tag.starts_with("DROP") {
            self.drop_on_workers().await?;
        }
        if !object_first {
            self.follow_object_inside(&text, &info, followed).await?;
        }
        self.cursors.rights.clear();
        self.txn.changes_catalog(Reach::Shared);
        self.reload_catalog_in_block().await
    }

    /// Names in the text mean on the workers what they mean in the function.
    async fn follow_object_inside(&mut self, text: &str, info: &DdlInfo, followed: Followed) -> Result<()> {
        let path = self.take_path_inside().await?;
        self.follow_object(text, info, followed).await?;
        match path {
            Some(path) => self.run_everywhere(&set_path(&path)).await,
            None => Ok(()),
        }
    }

    /// Gives the workers the path of whoever defines; the one that they had, if that is another. A definer always
    /// has its own.
    async fn take_path_inside(&mut self) -> Result<Option<String>> {
        let first = self.catalog().worker_groups().first().copied();
        let Some(group) = first.filter(|_| self.definitions.definer.is_none()) else { return Ok(None) };
        let inside = self.path_inside().await?;
        self.join(group).await?;
        let there = self.collect_on(group, PATH).await?;
        let there = there.text(0, 0).unwrap_or_default().to_owned();
        if inside == there {
            return Ok(None);
        }
        self.run_everywhere(&set_path(&inside)).await?;
        Ok(Some(there))
    }

    async fn path_inside(&mut self) -> Result<String> {
        let inside = self.collect_on(COORDINATOR_GROUP, PATH).await?;
        Ok(inside.text(0, 0).unwrap_or_default().to_owned())
    }

    /// Whoever defines is, on the workers too, whose session it is. Another role is who a SECURITY DEFINER function
    /// belongs to: what it has written must not run there with other rights than here.
    async fn definer_there(&mut self, definer: &str) -> Result<Option<Definer>> {
        let Some(group) = self.catalog().worker_groups().first().copied() else { return Ok(None) };
        self.join(group).await?;
        let there = self.collect_on(group, "SELECT current_user").await?;
        if there.text(0, 0) == Some(definer) {
            return Ok(None);
        }
        Ok(Some(Definer { role: definer.to_owned(), path: self.path_inside().await? }))
    }

    /// The statement that PostgreSQL tells of first in a context.
    async fn statement_inside(&mut self, told: &Told<'_>) -> Result<Defines> {
        let context = told.context;
        if let Some(rest) = context.strip_prefix("SQL statement \"") {
            let end = ["\"\nPL/", "\"\nSQL function "].iter().filter_map(|mark| rest.find(mark)).min();
            let Some(mut all) = end.and_then(|end| pgherd_sql::split(&rest[..end]).ok()) else {
                return Ok(Defines::Unknown);
            };
            if all.len() > 1 {
                return Ok(self.next_of_several(told, all));
            }
            return Ok(match all.pop() {
                // A statement of the extension's script.
                Some(statement) if makes_extension(&statement) && !statement.may_have_tag(told.tag) => Defines::Part,
                Some(statement) => Defines::Statement(Box::new(statement)),
                None => Defines::Unknown,
            });
        }
        // SQL function "name" statement 1
        let first = context.lines().next().unwrap_or_default();
        let rest = first.strip_prefix("SQL function \"").and_then(|rest| rest.rsplit_once("\" statement "));
        let Some((name, Ok(number))) = rest.map(|(name, number)| (name, number.parse::<usize>())) else {
            return Ok(Defines::Unknown);
        };
        let sql = format!(
            "SELECT p.prosrc FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
             WHERE l.lanname = 'sql' AND p.prosqlbody IS NULL AND p.proname = {}",
            quote_literal(name)
        );
        let bodies = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        // Functions of one name may say the same.
        let mut found: Vec<Statement> = Vec::new();
        for body in (0..bodies.rows.len()).filter_map(|row| bodies.text(row, 0)) {
            let statements = pgherd_sql::split(body).unwrap_or_default();
            let statement = statements.into_iter().nth(number.wrapping_sub(1));
            let is_new = |s: &Statement| !found.iter().any(|f| f.text == s.text);
            found.extend(statement.filter(|s| (bodies.rows.len() == 1 || s.may_have_tag(told.tag)) && is_new(s)));
        }
        Ok(match found.pop() {
            Some(statement) if found.is_empty() => Defines::Statement(Box::new(statement)),
            _ => Defines::Unknown,
        })
    }

    /// Of several statements in one text, the next that has the tag. They are carried out one after another, and the
    /// same text begins anew when it has come to its end, or a subtransaction around it has gone back.
    fn next_of_several(&mut self, told: &Told<'_>, mut all: Vec<Statement>) -> Defines {
        let depth = self.cursors.changes.depth;
        let known = self.definitions.progress.iter().position(|progress| progress.context == told.context);
        let mut progress = match known {
            Some(known) => self.definitions.progress.remove(known),
            None => Progress { context: told.context.to_owned(), done: 0, depth },
        };
        let next = |from: usize| (from..all.len()).find(|at| all[*at].may_have_tag(told.tag));
        let Some(at) = next(progress.done).or_else(|| next(0)) else { return Defines::Unknown };
        progress.done = at + 1;
        progress.depth = depth;
        self.definitions.progress.push(progress);
        Defines::Statement(Box::new(all.swap_remove(at)))
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
            let definer = self.definitions.definer.take();
            Box::pin(self.serve_callback(batch, true)).await;
            self.definitions.definer = definer;
        }
    }
}

/// While the coordinator asks.
impl Source for Session {
    type Error = Failure;
    async fn query(&mut self, sql: &str) -> Result<QueryResult> {
        self.ask_inside("see", sql).await
    }

    fn unreadable(why: String) -> Failure {
        Failure::new("XX000", format!("what the coordinator says of its catalog is not understood: {why}"))
    }
}

const PATH: &str = "SELECT pg_catalog.current_setting('search_path')";

fn set_path(path: &str) -> String {
    format!("SELECT pg_catalog.set_config('search_path', {}, true)", quote_literal(path))
}

fn makes_extension(statement: &Statement) -> bool {
    ["CREATE EXTENSION", "ALTER EXTENSION"].iter().any(|tag| statement.may_have_tag(tag))
}

fn refused_inside(tag: &str) -> Failure {
    Failure::refused(format!("cannot carry out {tag} from inside the coordinator"))
        .hint("Send it as a statement of its own through the router.")
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
