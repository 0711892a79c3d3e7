//! Statements of PREPARE that concern the coordinator alone are prepared there too, under the client's name, and the
//! session keeps that connection: EXECUTE, EXPLAIN EXECUTE and SQL in functions find them as on one server, with its
//! generic and custom plans, its casts of arguments and its errors. The router keeps each as well, for when a table
//! that it names becomes distributed.

use pgherd_catalog::{COORDINATOR_GROUP, OWN_SCHEMA};
use pgherd_planner::Tier;
use pgherd_sql::{Statement, StatementKind};

use super::{Call, Completion};
use crate::error::Result;
use crate::session::{Named, Prepared, Session, is_planned};
use crate::settings::{quote_ident, quote_literal};

/// How the coordinator runs such a statement.
#[derive(Clone, Copy)]
pub(super) struct There {
    pub writes: bool,
    pub in_block: bool,
}

impl Session {
    /// Whether the coordinator alone runs a statement, and as it was written.
    async fn concerns_coordinator(&mut self, statement: &Statement) -> Result<Option<There>> {
        if !is_planned(&statement.kind) || !pgherd_sql::own_calls(statement).is_empty() {
            return Ok(None);
        }
        if !statement.samples.is_empty() {
            return Ok(None);
        }
        if self.coordinator_text_of(statement).await?.as_written() != statement.text {
            return Ok(None);
        }
        let (catalog, path) = (self.catalog(), self.search_path().await?);
        let plan = self.plan_statement(statement, &catalog, &path, false);
        match plan.tier {
            Tier::Coordinator { in_block, .. } if self.agree_on_time(&plan, COORDINATOR_GROUP).await? => {
                // A time that was fixed for several servers stands in the text that the router sends.
                let fixed = plan.uses_now && self.txn.now.is_some();
                Ok((!fixed).then_some(There { writes: plan.writes || in_block, in_block }))
            }
            _ => Ok(None),
        }
    }

    /// PREPARE; none: the router's own.
    pub(super) async fn prepare_there(
        &mut self,
        call: &Call<'_>,
        name: &str,
        inner: &str,
    ) -> Result<Option<Completion>> {
        let Some(statement) = pgherd_sql::split(inner).ok().and_then(|mut s| s.pop()) else { return Ok(None) };
        if name.starts_with(OWN_SCHEMA) || self.concerns_coordinator(&statement).await?.is_none() {
            return Ok(None);
        }
        self.pin = true;
        if self.is_there(name) {
            // The client has closed it by a message.
            self.forget_there(name).await?;
        }
        self.take_snapshots().await?;
        let completion = self.run_on_coordinator(call, call.prepared.text(), false).await?;
        self.there.insert(name.to_owned());
        let sql = format!(
            "SELECT t::pg_catalog.oid FROM pg_catalog.pg_prepared_statements p, \
             pg_catalog.unnest(p.parameter_types) WITH ORDINALITY u(t, n) WHERE p.name = {} ORDER BY n",
            quote_literal(name)
        );
        let types = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let declared = (0..types.rows.len()).filter_map(|row| types.text(row, 0)?.parse().ok()).collect();
        let prepared = Prepared::new(Some(statement), inner, declared);
        let named = Named::new(prepared, Some(call.prepared.source().to_owned()));
        self.statements.insert(name.to_owned(), Named { there: true, ..named });
        Ok(Some(completion))
    }

    /// Whether the coordinator has the client's statement of this name, and is still the one to run it.
    pub(super) async fn runs_there(&mut self, name: &str) -> Result<Option<There>> {
        // Another of the same name may have come since the client closed one by a message.
        let there = self.statements.get(name).is_some_and(|named| named.there) && self.is_there(name);
        let Some(prepared) = self.named(name).filter(|_| there) else { return Ok(None) };
        match &prepared.statement {
            Some(statement) => self.concerns_coordinator(statement).await,
            None => Ok(None),
        }
    }

    fn is_there(&mut self, name: &str) -> bool {
        if self.pinned.is_none() && !self.txn.participants.contains_key(&COORDINATOR_GROUP) {
            // They went with their connection.
            self.there.clear();
        }
        self.there.contains(name)
    }

    /// EXECUTE; none: the router runs it.
    pub(super) async fn execute_there(&mut self, call: &Call<'_>, name: &str) -> Result<Option<Completion>> {
        let Some(there) = self.runs_there(name).await? else { return Ok(None) };
        let Some(prepared) = self.named(name) else { return Ok(None) };
        let inner = Call { prepared: &prepared, ..*call };
        self.note_session_calls(&inner);
        if there.in_block || call.max_rows > 0 {
            self.open_implicit_block();
        }
        self.take_snapshots().await?;
        self.join(COORDINATOR_GROUP).await?;
        self.taint_coordinator(&inner);
        let calls_function = self.calls_user_function(&inner);
        let writes = there.writes || calls_function;
        let completion = self.run_on_coordinator(call, call.prepared.text(), writes).await?;
        self.follow_set_config(&inner, call.prepared.text()).await?;
        if calls_function {
            self.notice_temporary_tables().await?;
        }
        Ok(Some(completion))
    }

    /// The statement that `CREATE TABLE … AS EXECUTE` names, where the coordinator runs it.
    pub(super) async fn creates_there(&mut self, query: &str) -> Result<bool> {
        let parsed = pgherd_sql::split(query).ok().and_then(|mut s| s.pop());
        match parsed.map(|s| s.kind) {
            Some(StatementKind::Execute { name, .. }) => Ok(self.runs_there(&name).await?.is_some()),
            _ => Ok(false),
        }
    }

    /// After DEALLOCATE.
    pub(super) async fn forget_there(&mut self, name: &str) -> Result<()> {
        if self.is_there(name) {
            self.join(COORDINATOR_GROUP).await?;
            self.run_quiet(COORDINATOR_GROUP, &format!("DEALLOCATE {}", quote_ident(name))).await?;
            self.there.remove(name);
        }
        Ok(())
    }

    pub(super) async fn forget_all_there(&mut self) -> Result<()> {
        let names: Vec<String> = self.there.iter().cloned().collect();
        for name in names {
            self.forget_there(&name).await?;
        }
        Ok(())
    }
}
