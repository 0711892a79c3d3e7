//! The simple protocol: one Query message, any number of statements, one implicit transaction.

use std::borrow::Cow;

use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_sql::StatementKind;
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};

use super::Session;
use crate::error::{Failure, Result};
use crate::run::{Call, Completion};
use crate::transaction::Block;

impl Session {
    pub(super) async fn query_message(&mut self, frame: &Frame) -> Result<()> {
        if self.skip_until_sync || !self.join_pipeline().await? {
            return Ok(());
        }
        let sql = match self.client.decoded(frame) {
            Err(failure) => Err(failure),
            Ok(frame) => match parse_frontend(&frame) {
                Ok(FrontendMessage::Query { sql }) => Ok(sql.to_owned()),
                Ok(_) => return Err(Failure::fatal("08P01", "expected a Query message")),
                // It is not UTF-8, perhaps.
                Err(error) => Err(error.into()),
            },
        };
        self.drop_unnamed();
        let (sql, result) = match sql {
            Err(failure) => (String::new(), Err(failure)),
            Ok(sql) => {
                self.show_running(&sql);
                let result = self.simple_query(&sql).await;
                (sql, result)
            }
        };
        self.last_of_query = false;
        match result {
            Ok(()) if self.txn.block == Block::None => {
                // The client has its answer first.
                self.ready().await?;
                Box::pin(self.learn_query(&sql)).await;
                return Ok(());
            }
            Ok(()) => {}
            Err(Failure::Statement(fields)) => {
                backend::write_error(&mut self.client.out, &fields);
                self.fail_block().await;
            }
            Err(other) => return Err(other),
        }
        self.ready().await
    }

    /// A function of the coordinator, called by its number without SQL: libpq's large objects are read and written so.
    pub(super) async fn function_message(&mut self, frame: &Frame) -> Result<()> {
        if self.skip_until_sync || !self.join_pipeline().await? {
            return Ok(());
        }
        let called = match self.function_call(frame).await {
            // It ends what was sent before it, as a Query does.
            Ok(()) if self.txn.block == Block::Implicit => self.commit().await,
            called => called,
        };
        match called {
            Ok(()) => self.release_autocommit().await,
            Err(Failure::Statement(fields)) => {
                backend::write_error(&mut self.client.out, &fields);
                self.fail_block().await;
            }
            Err(other) => return Err(other),
        }
        self.ready().await
    }

    async fn function_call(&mut self, frame: &Frame) -> Result<()> {
        if self.txn.block == Block::Failed {
            return Err(super::extended::aborted().in_routine("HandleFunctionRequest").with(b'F', "fastpath.c"));
        }
        self.catch_up(None).await?;
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        if !calls_large_object(frame) {
            // What any other leaves (a setting, a lock) is the session's.
            self.pin = true;
            if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                participant.lease.tainted = true;
                participant.lease.alone = true;
            }
        }
        // BEGIN and its like go first: they cannot travel with this message.
        self.run_quiet(COORDINATOR_GROUP, "").await?;
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.buffer().extend_from_slice(&frame.raw);
        participant.lease.in_flight += 1;
        let mut failure = None;
        loop {
            let answer = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match answer.tag() {
                b'V' | b'N' => self.client.forward(&answer),
                b'E' => failure = Some(backend::parse_error(&answer)?),
                b'Z' => break,
                _ => self.forward_aside(COORDINATOR_GROUP, &answer),
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        failure.map_or(Ok(()), |fields| Err(fields.into()))
    }

    async fn simple_query(&mut self, sql: &str) -> Result<()> {
        let read = match self.plain_strings_escape() {
            true => pgherd_sql::escape_plain_strings(sql),
            false => Cow::Borrowed(sql),
        };
        let statements = match pgherd_sql::split(&read) {
            Ok(statements) => statements,
            Err(error) => return self.unparsed(sql, error).await,
        };
        if statements.is_empty() {
            if self.txn.block == Block::Implicit {
                self.commit().await?;
            }
            backend::write_empty_query_response(&mut self.client.out);
            return Ok(());
        }
        let count = statements.len();
        for (index, statement) in statements.into_iter().enumerate() {
            if count > 1 && self.txn.block == Block::None && !matches!(statement.kind, StatementKind::Begin(_)) {
                self.open_implicit_block();
            }
            let offset = statement.offset;
            let prepared = self.analyse(statement, sql, count == 1 && matches!(read, Cow::Owned(_)))?;
            let call = Call::simple(&prepared);
            self.last_of_query = index + 1 == count;
            self.tell_columns(&prepared, None).await?;
            let completion = match self.execute(&call).await {
                Ok(completion) => completion,
                Err(failure) => return Err(shift_position(failure, sql, offset)),
            };
            let last = index + 1 == count;
            // The last statement's tag is only told once its transaction is committed.
            if last && self.txn.block == Block::Implicit {
                self.commit().await?;
            }
            self.complete(completion);
            self.client.flush_if_full().await?;
        }
        Ok(())
    }

    pub(super) fn complete(&mut self, completion: Completion) {
        match completion {
            Completion::Tag(tag) => backend::write_command_complete(&mut self.client.out, &tag),
            Completion::Empty => backend::write_empty_query_response(&mut self.client.out),
            Completion::Suspended => backend::write_portal_suspended(&mut self.client.out),
        }
    }

    /// Text that our parser does not take: the coordinator's own parser says what is wrong with it. It is only parsed
    /// there, never run.
    pub(super) async fn unparsed(&mut self, sql: &str, error: pgherd_sql::ParseError) -> Result<()> {
        match self.describe_on_coordinator(sql, &[]).await {
            Err(failure) => Err(failure),
            // Older servers find it when they run the statement.
            Ok(_) if error.message.starts_with("unrecognized partitioning strategy") => {
                Err(Failure::new("22023", error.message))
            }
            Ok(_) => Err(Failure::refused("the router could not read this statement")),
        }
    }

    /// After an error: our own block is rolled back, the client's waits for its ROLLBACK, without its locks.
    pub(super) async fn fail_block(&mut self) {
        match self.txn.block {
            Block::None | Block::Implicit => self.undo_autocommit().await,
            Block::Explicit => {
                self.txn.block = Block::Failed;
                self.fail_encoding();
                self.give_up_locks().await;
            }
            Block::Failed => {}
        }
    }
}

/// The function of a FunctionCall message is one of those for large objects, which leave nothing outside of the
/// transaction.
fn calls_large_object(frame: &Frame) -> bool {
    const OPEN_TO_UNLINK: std::ops::RangeInclusive<u32> = 952..=958;
    const OTHERS: [u32; 13] = [715, 764, 765, 767, 964, 1004, 3170, 3171, 3172, 3457, 3458, 3459, 3460];
    let oid = frame.body().first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
    oid.is_some_and(|oid| OPEN_TO_UNLINK.contains(&oid) || OTHERS.contains(&oid))
}

/// An error's position counts from the start of the whole Query text, in characters.
fn shift_position(failure: Failure, sql: &str, offset: usize) -> Failure {
    match failure {
        Failure::Statement(mut fields) if offset > 0 => {
            if let Some(position) = fields.get(b'P').and_then(|p| p.parse::<usize>().ok()) {
                let before = sql.get(..offset).map_or(0, |s| s.chars().count());
                fields.set(b'P', (position + before).to_string());
            }
            Failure::Statement(fields)
        }
        other => other,
    }
}
