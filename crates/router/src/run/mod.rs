//! Carrying out one statement. [`Session::execute`] says who does it; each kind has its own file.

mod analyze;
mod binary;
mod bodies;
mod combine;
mod control;
mod coordinator;
mod copy;
mod copy_in;
mod copy_lines;
mod current_row;
mod cursors;
mod database;
mod ddl;
mod define_inside;
mod distribute;
mod explain;
mod extensions;
mod give;
mod insert;
mod isolation;
mod local_keys;
mod nodes;
mod objects;
mod operation;
mod own;
mod own_types;
mod partials;
mod partitions;
mod planned;
mod repeat;
mod request;
mod returning;
mod roles;
pub mod routines;
mod samples;
mod session_views;
pub mod shard_key;
mod snapshots;
mod stage;
mod stage_tables;
mod state;
mod there;
mod two_phase;

use std::borrow::Cow;

use pgherd_catalog::GroupId;
use pgherd_sql::StatementKind;

use crate::error::Result;
use crate::session::{Bound, Prepared, Session};
use crate::transaction::Block;

pub use current_row::Followed;
pub use ddl::needs_no_news;
pub use define_inside::{Definer, Definitions};
pub use distribute::OnWorker;
pub use give::GivenValues;
pub use isolation::keeps_snapshot;
pub use own::without_position;
pub use own_types::OwnType;
pub(crate) use planned::lock_copy;
pub use planned::{add_tags, refuse};
pub use repeat::{Turns, deadlock};
pub use request::{Errors, Request, Rows, TableOrigin, fields_of, send};
pub use roles::RolesMade;
use roles::Untold;
pub use samples::{takes_sample, written_anew};
pub use snapshots::{Anchor, Askers, Within};
pub use stage::{Capture, Staged};

/// One execution of a statement.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub prepared: &'a Prepared,
    /// None in the simple protocol: rows are described and sent as text.
    pub bound: Option<&'a Bound>,
    /// 0: all rows.
    pub max_rows: i32,
    /// The client's portal, in the extended protocol.
    pub portal: &'a str,
    /// The client has the columns already.
    pub described: bool,
    /// Its text is not seen again: servers need not keep it.
    pub once: bool,
    /// Rows of parts that were run before.
    pub staged: Option<&'a Staged>,
    /// Values of the router behind the client's.
    pub given: Option<&'a GivenValues>,
}

impl<'a> Call<'a> {
    pub fn simple(prepared: &'a Prepared) -> Self {
        Call {
            prepared,
            bound: None,
            max_rows: 0,
            portal: "",
            described: false,
            once: false,
            staged: None,
            given: None,
        }
    }

    pub fn extended(prepared: &'a Prepared, bound: &'a Bound, max_rows: i32, portal: &'a str) -> Self {
        Call {
            prepared,
            bound: Some(bound),
            max_rows,
            portal,
            described: false,
            once: false,
            staged: None,
            given: None,
        }
    }

    /// Servers keep its text: it may come again.
    pub fn keeps(&self) -> bool {
        self.bound.is_some() && !self.once && self.staged.is_none() && !self.prepared.moves()
    }

    /// They may keep it on connections whose settings change.
    pub fn keeps_on_leases(&self) -> bool {
        self.keeps() && !self.prepared.reads_settings()
    }

    /// The values for one server: the client's, and those of parts.
    pub fn bound_on(&self, group: GroupId) -> Option<Cow<'a, Bound>> {
        match (self.staged, self.given) {
            (None, Some(given)) => Some(Cow::Owned(given.bound(self.bound))),
            (None, None) => self.bound.map(Cow::Borrowed),
            (Some(staged), _) => Some(Cow::Owned(staged.bound(self.bound, group))),
        }
    }

    /// A text of the rest of a statement with its parts in it.
    pub fn fill(&self, text: &str) -> String {
        self.staged.map_or_else(|| text.to_owned(), |staged| staged.fill(text))
    }

    /// The same for the workers, which have large parts as tables.
    pub fn fill_on_workers(&self, text: &str) -> String {
        self.staged.map_or_else(|| text.to_owned(), |staged| staged.fill_on_workers(text))
    }

    /// Types of those values; `own`: of the client's.
    pub fn with_staged(&self, own: &[u32]) -> Vec<u32> {
        let mut types = own.to_vec();
        if let Some(staged) = self.staged {
            types.resize(self.bound.map_or(0, |b| b.params.len()), 0);
            types.extend(staged.types());
        } else if let Some(given) = self.given {
            given.types(&mut types);
        }
        types
    }

    /// The client learns the columns together with the rows.
    pub fn describes(&self) -> bool {
        self.bound.is_none() && !self.described
    }
}

/// How a statement ended well; rows are already on their way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    Tag(String),
    Empty,
    Suspended,
}

impl Completion {
    pub fn tag(text: impl Into<String>) -> Completion {
        Completion::Tag(text.into())
    }
}

/// BEGIN, COMMIT and their like: they name no relation, and may be all that a failed transaction accepts.
fn is_transaction_control(kind: &StatementKind) -> bool {
    use StatementKind as K;
    matches!(
        kind,
        K::Begin(_)
            | K::Commit { .. }
            | K::Rollback { .. }
            | K::Savepoint(_)
            | K::Release(_)
            | K::RollbackTo(_)
            | K::PrepareTransaction(_)
            | K::Set(_)
    )
}

impl Session {
    pub async fn execute(&mut self, call: &Call<'_>) -> Result<Completion> {
        let Some(statement) = &call.prepared.statement else { return Ok(Completion::Empty) };
        if self.txn.block == Block::Failed && !crate::session::ends_block(&statement.kind) {
            let aborted = crate::session::aborted();
            return Err(match call.bound {
                Some(_) => aborted.in_routine("exec_execute_message"),
                None => aborted,
            });
        }
        if self.txn.block == Block::Explicit && !crate::session::ends_block(&statement.kind) {
            self.check_none_ended()?;
        }
        self.catch_up(Some(&statement.kind)).await?;
        if !self.temp.is_empty() && !is_transaction_control(&statement.kind) {
            Box::pin(self.refresh_temporary_names()).await?;
        }
        self.cursors.rights.clear();
        self.cursors.views.clear();
        self.check_encoding_of(call).await?;
        self.noticed = false;
        self.note_names_given(call);
        let mut start = self.start_of(call, &statement.kind);
        let mut result = self.dispatch(call, &statement.kind).await;
        while let Some(start) = &mut start
            && Box::pin(self.begins_again(start, &result)).await
        {
            result = self.dispatch(call, &statement.kind).await;
        }
        if start.is_some() {
            self.cancel.end_repeatable().await;
        }
        // Whatever way it went, bodies may have run on the coordinator.
        if result.is_ok()
            && !self.noticed
            && crate::session::is_planned(&statement.kind)
            && self.calls_user_function(call)
        {
            result = Box::pin(self.notice_temporary_tables()).await.and(result);
        }
        if self.client.capture.is_none() {
            result = self.client.converted(result);
        }
        if result.is_ok() {
            result = self.adopt_encoding().await.and(result);
        }
        if self.txn.block == Block::None {
            self.release_autocommit().await;
        }
        result
    }

    /// After a statement that may have made temporary relations in ways of its own: they tie the session to its
    /// connection.
    pub(super) async fn notice_temporary_tables(&mut self) -> Result<()> {
        self.noticed = true;
        if self.txn.participants.contains_key(&pgherd_catalog::COORDINATOR_GROUP) {
            self.follow_settings_of_bodies().await?;
            let changes = self.refresh_temporary_names().await?;
            if changes.roles && self.txn.block != Block::None {
                self.follow_roles().await?;
            }
            if changes.owners {
                self.check_owners().await?;
            }
            if !self.temp.is_empty() {
                self.pin = true;
                self.forget_search_path();
            }
        }
        Ok(())
    }

    /// Temporary relations come and go in more ways than statements tell (ON COMMIT DROP, ROLLBACK, functions): the
    /// session's own coordinator connection knows them. And it tells what may have been
    /// changed there without an event trigger.
    pub(super) async fn refresh_temporary_names(&mut self) -> Result<Untold> {
        let result = self.ask_coordinator("SELECT pgherd.untold()").await?;
        let names = (0..result.rows.len()).map(|row| result.text(row, 0));
        let changes = Untold {
            roles: names.clone().any(|name| name.is_none()),
            owners: names.clone().any(|name| name == Some("")),
        };
        let names = names.flatten().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        self.keep_temporary(names);
        Ok(changes)
    }

    /// What is not of the short way is boxed, here and below: what is awaited has room in the future of each message.
    async fn dispatch(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        use StatementKind as K;
        self.take_snapshots_before(kind).await?;
        let takes_query =
            matches!(kind, K::Explain { .. } | K::CreateTableAs(_) | K::DeclareCursor { .. } | K::Call | K::Copy(_));
        if takes_query && call.bound.is_none() && call.prepared.statement.as_ref().is_some_and(|s| s.params > 0) {
            return Box::pin(self.refuse_parameters(call)).await;
        }
        match kind {
            K::Select | K::Insert | K::Update | K::Delete | K::Merge => self.run_planned(call).await,
            K::Begin(_)
            | K::Commit { .. }
            | K::Rollback { .. }
            | K::Savepoint(_)
            | K::Release(_)
            | K::RollbackTo(_) => self.run_transaction_control(call, kind).await,
            K::PrepareTransaction(_) | K::CommitPrepared(_) | K::RollbackPrepared(_) => {
                Box::pin(self.run_two_phase(call, kind)).await
            }
            K::Set(_)
            | K::Show { .. }
            | K::Reset { .. }
            | K::Discard(_)
            | K::SetConstraints { .. }
            | K::AlterSystem(_) => Box::pin(self.run_state(call, kind)).await,
            K::Prepare { .. } | K::Execute { .. } | K::Deallocate { .. } => {
                Box::pin(self.run_sql_prepared(call, kind)).await
            }
            K::DeclareCursor { .. } | K::Fetch { .. } | K::CloseCursor { .. } => {
                Box::pin(self.run_cursor(call, kind)).await
            }
            K::Listen(_) | K::Unlisten(_) => {
                self.pin = true;
                self.txn.listens = true;
                Box::pin(self.run_on_coordinator(call, call.prepared.text(), true)).await
            }
            K::Notify { .. } | K::Call | K::Do { .. } | K::Checkpoint | K::Other(_) => {
                Box::pin(self.run_procedural(call, kind)).await
            }
            K::Copy(info) => {
                if info.from {
                    Box::pin(self.doubt_last_drawn()).await?;
                }
                let result = Box::pin(self.run_copy(call, info)).await;
                if info.from {
                    self.forget_leases_after(call, give::Draws::Any);
                }
                result
            }
            K::Explain { options, inner } => Box::pin(self.run_explain(call, options, *inner)).await,
            K::CreateDatabase { .. } | K::DropDatabase { .. } | K::AlterDatabase { .. } | K::AlterRoleSet { .. } => {
                Box::pin(self.run_database(call, kind)).await
            }
            _ => Box::pin(self.run_ddl(call, kind)).await,
        }
    }
}
