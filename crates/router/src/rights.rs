//! With whose rights a callback uses a distributed table (docs/decisions/0013). The coordinator has checked the rights
//! of whoever it reads for: a view's owner, a function's, or the session's own role. A worker asks the session's role
//! again, which may have none, or may be shown fewer rows. Then the worker runs the callback's text as the table's
//! owner, by a function that does so for the router only (`pgherd.create_as_owner`).

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use pgherd_backend::{Lease, QueryResult, connect};
use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Oid, Snapshot, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::{Body, Const, Expr, ExprKind, OpKind, Tree};
use pgherd_wire::backend;
use pgherd_wire::scram::sha256_hex;

use crate::database::Database;
use crate::error::{Failure, Result};
use crate::run::{Definer, Errors, OnWorker, Request, fields_of, send, without_position};
use crate::session::{Bound, Session};
use crate::settings::quote_literal;
use crate::shared::Shared;
use crate::text::{fields_of_record, is_in_name, replace_unquoted};

/// A superuser that nobody can drop.
pub(crate) const FIRST_SUPERUSER: Oid = 10;
const TEXT_OID: u32 = 25;
/// How long rights on reference tables are taken for what they were.
const REMEMBERED: Duration = Duration::from_secs(1);
const EXCLUSION_VIOLATION: &str = "23P01";
/// What [`check_pass`](../../control/sql/common.sql) says.
pub(crate) const NO_PASS: &str = "only the router may run this";

/// What a callback does with its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Read,
    /// FOR UPDATE and its like.
    Lock,
    Insert,
    Update,
    Delete,
}

impl Use {
    fn writes(self) -> bool {
        matches!(self, Use::Insert | Use::Update | Use::Delete)
    }
}

/// What the session's role may do with a table on the workers.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    me: String,
    owner: String,
    reads: bool,
    inserts: bool,
    updates: bool,
    deletes: bool,
    /// Policies hide rows from it.
    filtered: bool,
    /// They hide rows from the table's owner as well.
    forced: bool,
    /// Writing it runs something of the user's that the catalog may not know: a trigger, a rule, a key's action.
    runs: bool,
}

impl Rights {
    fn has(&self, using: Use) -> bool {
        match using {
            Use::Read => self.reads,
            Use::Lock => self.reads && self.updates,
            Use::Insert => self.inserts,
            Use::Update => self.reads && self.updates,
            Use::Delete => self.reads && self.deletes,
        }
    }
}

/// What roles may do with all columns of reference tables, as far as it has been asked.
#[derive(Debug, Default)]
pub struct CopyRights {
    /// Of the role and the catalog for which it was asked.
    known: Option<(Option<String>, Option<String>, Arc<Snapshot>)>,
    of: HashMap<Oid, (Instant, CopyRight)>,
}

#[derive(Debug, Clone, Copy)]
pub struct CopyRight {
    /// LOCK TABLE … IN SHARE ROW EXCLUSIVE MODE.
    pub locks: bool,
    pub reads: bool,
    /// Row security holds for it.
    pub is_bound: bool,
    /// All that changes rows, of any row.
    pub is_full: bool,
}

impl Session {
    /// What the session's role may do with a reference table: asked beside the transaction, whose snapshot must not be
    /// taken before its locks.
    pub(crate) async fn copy_right(&mut self, table: &Table) -> Result<CopyRight> {
        let catalog = self.catalog();
        let setting = |name: &str| self.settings.get(name).map(|value| value.to_string());
        let (role, user) = (setting("role"), setting("session_authorization"));
        let is_same = |(r, u, c): &(Option<String>, Option<String>, Arc<Snapshot>)| {
            *r == role && *u == user && Arc::ptr_eq(c, &catalog)
        };
        if !self.copy_rights.known.as_ref().is_some_and(is_same) {
            self.copy_rights = CopyRights { known: Some((role, user, catalog)), of: HashMap::new() };
        }
        if let Some((asked, right)) = self.copy_rights.of.get(&table.oid)
            && asked.elapsed() < REMEMBERED
        {
            return Ok(*right);
        }
        let has = |right: &str| format!("pg_catalog.has_table_privilege(c.oid, '{right}')");
        let all: Vec<String> = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"].map(has).to_vec();
        let sql = format!(
            "SELECT u.ok AND {}, {}, u.ok AND {} AND NOT s.active, s.active \
             FROM pg_catalog.pg_class c, \
                 LATERAL (SELECT pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') AS ok) u, \
                 LATERAL (SELECT pg_catalog.row_security_active(c.oid) AS active) s WHERE c.oid = {}",
            has("UPDATE, DELETE, TRUNCATE"),
            has("SELECT"),
            all.join(" AND "),
            table.oid
        );
        let found = self.lease_aside(COORDINATOR_GROUP).await?.query(&sql).await?;
        // A table that this transaction has made is not there: what needs no right is right for everyone.
        let is = |column| !found.rows.is_empty() && found.text(0, column) == Some("t");
        let right = CopyRight { locks: is(0), reads: is(1), is_full: is(2), is_bound: is(3) };
        self.copy_rights.of.insert(table.oid, (Instant::now(), right));
        Ok(right)
    }

    /// The owner as whom a worker must run a callback. None: as the session's own role. `shows_nothing`: whatever the
    /// text computes tells nothing of rows that it does not return.
    pub(crate) async fn owner_for(
        &mut self,
        group: GroupId,
        table: &Arc<Table>,
        using: Use,
        shows_nothing: bool,
    ) -> Result<Option<String>> {
        if table.is_reference() || self.db.callback_secret.is_none() || self.worker_secret(group).await?.is_none() {
            return Ok(None);
        }
        let rights = match self.cursors.rights.get(&table.oid) {
            Some(known) => known.clone(),
            None => {
                let Some(rights) = self.ask_rights(group, table).await? else { return Ok(None) };
                self.cursors.rights.insert(table.oid, rights.clone());
                rights
            }
        };
        Ok(self.is_for_owner(table, &rights, using, shows_nothing)?.then_some(rights.owner))
    }

    fn is_for_owner(&self, table: &Table, rights: &Rights, using: Use, shows_nothing: bool) -> Result<bool> {
        // Whatever a write runs would run as the owner, and no longer as who writes.
        let runs_nothing = !(rights.runs
            || table.has_triggers
            || table.has_hidden_calls
            || table.has_user_types
            || table.reads_by_modifier());
        // postgres_fdw sends a security barrier's conditions together with those that it was to come before.
        let catalog = self.catalog();
        let keeps_barriers = shows_nothing
            || !matches!(using, Use::Lock | Use::Update | Use::Delete)
            || !catalog.is_behind_barrier(table);
        if !rights.filtered {
            // No policy hides anything from this role. What they hide from the one that the coordinator reads for, it
            // leaves out itself.
            let may = !rights.forced && keeps_barriers && (!using.writes() || runs_nothing && !table.row_security);
            return Ok(may && !rights.has(using));
        }
        match self.cursors.role {
            Some(role) if catalog.told_apart.get(&role) == Some(&rights.me) => Ok(false),
            Some(role) => {
                // From these no policy hides anything.
                let sees_all = role == FIRST_SUPERUSER || catalog.owners.get(&table.oid) == Some(&role);
                if !rights.forced
                    && (sees_all && keeps_barriers && (!using.writes() || runs_nothing)
                        || using == Use::Read && shows_nothing)
                {
                    return Ok(true);
                }
                // The owner's forwarder hands on the rows that whoever runs the statement has inserted into the heap.
                if sees_all && using == Use::Insert {
                    return Ok(false);
                }
                Err(Failure::refused(format!(
                    "cannot use distributed table \"{}\" with the rights of another role",
                    table.name
                ))
                .detail("Its policies hide rows from you, and a view or function of that role uses it."))
            }
            // Whoever else it could be, callbacks tell apart.
            None => Ok(false),
        }
    }

    async fn ask_rights(&mut self, group: GroupId, table: &Table) -> Result<Option<Rights>> {
        let sql = format!(
            "SELECT me, owner, reads, inserts, updates, deletes, filtered, forced, runs FROM pgherd.table_rights({}, {})",
            quote_literal(&table.schema),
            quote_literal(&table.name)
        );
        let result = self.collect_on(group, &sql).await?;
        let is = |column| result.text(0, column) == Some("t");
        let text = |column| result.text(0, column).unwrap_or_default().to_owned();
        Ok((!result.rows.is_empty()).then(|| Rights {
            me: text(0),
            owner: text(1),
            reads: is(2),
            inserts: is(3),
            updates: is(4),
            deletes: is(5),
            filtered: is(6),
            forced: is(7),
            runs: is(8),
        }))
    }

    /// What the worker and the router know. None: the schema there is older than this program.
    async fn worker_secret(&self, group: GroupId) -> Result<Option<Arc<str>>> {
        worker_secret(&self.thread.shared, &self.db, &self.catalog(), group).await
    }

    /// With which the coordinator believes that the workers will hear of a schema's new name.
    pub(crate) async fn schema_pass(&mut self) -> Result<String> {
        let pid = self.coordinator_process().await?;
        Ok(self.db.callback_secret.as_ref().map_or(String::new(), |secret| pass(secret, pid, "", "schema follows")))
    }

    async fn coordinator_process(&mut self) -> Result<i32> {
        let found = self.collect_on(COORDINATOR_GROUP, "SELECT pg_catalog.pg_backend_pid()").await?;
        Ok(found.text(0, 0).and_then(|pid| pid.parse().ok()).unwrap_or_default())
    }

    pub(crate) fn forget_worker_secret(&self, group: GroupId) {
        if let Some(node) = self.catalog().node_of_group(group) {
            let key = self.thread.shared.address_of(node);
            self.db.worker_secrets.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
    }

    /// Runs a statement of a callback on a worker as the table's owner: its rows, as whole DataRow messages.
    pub(crate) async fn run_as_owner(
        &mut self,
        group: GroupId,
        table: &Table,
        owner: &str,
        sql: &str,
        bound: Option<&Bound>,
    ) -> Result<Vec<Bytes>> {
        let shard = table.shards().iter().filter(|s| s.group == group).map(|s| s.id).min();
        let secret = self.worker_secret(group).await?;
        let (Some(shard), Some(secret)) = (shard, secret) else {
            return Err(Failure::new("XX000", format!("table \"{}\" is not on node group {group}", table.name)));
        };
        let text = with_values(sql, bound);
        let query = match text.starts_with("SELECT ") {
            true => format!("SELECT ROW(pgherd_row.*)::pg_catalog.text FROM ({text}) AS pgherd_row"),
            false => {
                format!("WITH pgherd_row AS ({text}) SELECT ROW(pgherd_row.*)::pg_catalog.text FROM pgherd_row")
            }
        };
        let call = format!("SELECT pgherd_{shard}.as_owner($1, $2)");
        let rows = match self.call_with_pass(group, &secret, &call, &[&query], (owner, &query)).await {
            Ok(rows) => rows,
            Err(Failure::Statement(mut fields)) => {
                // What a row has that was there before.
                if !text.starts_with("INSERT ") || fields.sqlstate() == EXCLUSION_VIOLATION {
                    fields.remove(b'D');
                }
                return Err(self.translate(*fields, Errors::default()));
            }
            Err(other) => return Err(other),
        };
        let mut messages = Vec::with_capacity(rows.len());
        for row in rows {
            let record = row.into_iter().next().flatten().unwrap_or_default();
            let fields = fields_of_record(&record)
                .ok_or_else(|| Failure::new("XX000", "a row of a distributed table is not understood"))?;
            let mut out = BytesMut::with_capacity(record.len() + 16);
            backend::write_data_row(&mut out, &fields);
            messages.push(out.freeze());
        }
        Ok(messages)
    }

    /// Runs what a definition needs on a worker, as whoever defines (`pgherd.as_definer`).
    pub(crate) async fn run_as_definer(
        &mut self,
        group: GroupId,
        definer: &Definer,
        sql: &str,
        returns_rows: bool,
    ) -> Result<QueryResult> {
        let Some(secret) = self.worker_secret(group).await? else { return Err(no_secret(group)) };
        let returns = if returns_rows { "t" } else { "f" };
        let vouched = ["as definer", &definer.path, returns, sql].join("\n");
        let call = "SELECT pgherd.as_definer($1, $2, $3, $4::pg_catalog.bool, $5)";
        let values = [definer.role.as_str(), &definer.path, sql, returns];
        let found = self.call_with_pass(group, &secret, call, &values, (&definer.role, &vouched)).await;
        let rows = found.map_err(|failure| self.localise(failure))?.into_iter().map(|row| {
            let record = row.into_iter().next().flatten().unwrap_or_default();
            fields_of_record(&record).ok_or_else(|| Failure::new("XX000", "a row of a worker is not understood"))
        });
        Ok(QueryResult { rows: rows.collect::<Result<_>>()?, ..QueryResult::default() })
    }

    /// The coordinator's roles as this transaction sees them, with their passwords.
    pub(crate) async fn roles_with_passwords(&mut self) -> Result<String> {
        let Some(secret) = self.db.callback_secret.clone() else { return Err(no_secret(COORDINATOR_GROUP)) };
        let call = "SELECT pgherd.roles_now($1)";
        let found = self.call_with_pass(COORDINATOR_GROUP, &secret, call, &[], ("", "roles")).await;
        let rows = found.map_err(|failure| self.localise(failure))?;
        let value = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default();
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// Brings a worker's roles from what they were to what they are; the names of those that were made.
    pub(crate) async fn run_follow_roles(
        &mut self,
        group: GroupId,
        before: &str,
        now: &str,
        seen: &str,
    ) -> Result<Vec<String>> {
        let Some(secret) = self.worker_secret(group).await? else { return Err(no_secret(group)) };
        let vouched = ["follow roles", before, now, seen].join("\n");
        let call = "SELECT pgherd.follow_roles($1, $2, $3, $4)";
        let found = self.call_with_pass(group, &secret, call, &[before, now, seen], ("", &vouched)).await;
        let rows = found.map_err(|failure| self.localise(failure))?;
        let name = |row: Vec<Option<Bytes>>| row.into_iter().next().flatten();
        Ok(rows.into_iter().filter_map(name).map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    /// Has a worker's roles take the passwords of the coordinator that differ between two answers.
    pub(crate) async fn run_follow_passwords(&mut self, group: GroupId, before: &str, now: &str) -> Result<()> {
        let Some(secret) = self.worker_secret(group).await? else { return Err(no_secret(group)) };
        let vouched = ["follow passwords", before, now].join("\n");
        let call = "SELECT pgherd.follow_passwords($1, $2, $3)";
        let done = self.call_with_pass(group, &secret, call, &[before, now], ("", &vouched)).await;
        done.map(drop).map_err(|failure| self.localise(failure))
    }

    /// Calls a function of ours that only routers may call, whoever it is for: its value as text.
    pub(crate) async fn call_own(&mut self, group: GroupId, call: &str) -> Result<String> {
        let secret = self.secret_of_group(group).await?;
        let vouched = format!("by router\n{call}");
        if group == COORDINATOR_GROUP && self.definitions.is_asked() {
            let pid = self.coordinator_process().await?;
            let pass = pass(&secret, pid, "", &vouched);
            let sql = format!("SELECT pgherd.by_router({}, {})", quote_literal(call), quote_literal(&pass));
            return Ok(self.collect_on(group, &sql).await?.text(0, 0).unwrap_or_default().to_owned());
        }
        let rows = self.call_with_pass(group, &secret, BY_ROUTER, &[call], ("", &vouched)).await;
        let rows = rows.map_err(|failure| self.localise(failure))?;
        let value = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()).unwrap_or_default();
        Ok(String::from_utf8_lossy(&value).into_owned())
    }

    /// The same as SQL for the coordinator's connection `lease`.
    pub(crate) fn own_call_sql(&self, lease: &Lease, call: &str) -> String {
        let secret = self.db.callback_secret.as_deref().unwrap_or_default();
        let pid = lease.cancel_key.as_ref().map_or(0, |key| key.pid);
        let pass = pass(secret, pid, "", &format!("by router\n{call}"));
        format!("SELECT pgherd.by_router({}, {})", quote_literal(call), quote_literal(&pass))
    }

    /// What the server and the router know.
    pub(crate) async fn secret_of_group(&self, group: GroupId) -> Result<Arc<str>> {
        secret_of_group(&self.thread.shared, &self.db, &self.catalog(), group).await
    }

    /// What workers are to do, all at the same time. The first error is told.
    pub(crate) async fn run_on_workers(&mut self, work: Vec<OnWorker>) -> Result<()> {
        let mut secrets = Vec::new();
        for OnWorker { group, own, .. } in &work {
            secrets.push(match own.is_empty() {
                true => Arc::from(""),
                false => self.secret_of_group(*group).await?,
            });
        }
        let mut started = Vec::new();
        for (OnWorker { group, own, sql }, secret) in work.into_iter().zip(secrets) {
            let Some(participant) = self.txn.participants.get_mut(&group) else { continue };
            for call in &own {
                let vouched = format!("by router\n{call}");
                send_with_pass(&mut participant.lease, &secret, BY_ROUTER, &[call], ("", &vouched));
            }
            if !sql.is_empty() {
                participant.lease.send_query(&sql);
            }
            let sent = participant.lease.flush().await;
            started.push((group, own.len(), !sql.is_empty(), sent));
        }
        let mut first = Ok(());
        for (group, calls, has_text, sent) in started {
            let mut done = sent.map_err(Failure::from);
            for at in 0..calls + usize::from(has_text) {
                let Some(participant) = self.txn.participants.get_mut(&group) else { break };
                // A connection that is lost has no more to say.
                if matches!(&done, Err(failure) if !matches!(failure, Failure::Statement(_))) {
                    break;
                }
                let heard = match participant.lease.collect().await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(match (Failure::from(error), at < calls) {
                        (Failure::Statement(fields), true) => self.refused_pass(group, *fields),
                        (failure, _) => failure,
                    }),
                };
                done = done.and(heard);
            }
            if let Err(failure) = done
                && first.is_ok()
            {
                tracing::debug!("node group {group} refused: {failure:?}");
                first = Err(without_position(self.localise(failure)));
            }
        }
        first
    }

    /// An error of a call with a pass: what was sent is told to nobody.
    fn refused_pass(&self, group: GroupId, mut fields: backend::ErrorFields) -> Failure {
        if fields.message() == NO_PASS {
            self.forget_worker_secret(group);
        }
        // Contexts have parameters, and positions are those of our text.
        for field in [b'W', b'P', b'p', b'q'] {
            fields.remove(field);
        }
        Failure::Statement(Box::new(fields))
    }

    /// Calls a function of ours that wants a pass, which is its last argument: for a role and what it vouches for.
    async fn call_with_pass(
        &mut self,
        group: GroupId,
        secret: &str,
        call: &str,
        values: &[&str],
        (role, vouched): (&str, &str),
    ) -> Result<Vec<Vec<Option<Bytes>>>> {
        let mut participant = self.take(group)?;
        send_with_pass(&mut participant.lease, secret, call, values, (role, vouched));
        let (mut rows, mut failure, mut bytes) = (Vec::new(), None, 0);
        loop {
            let frame = self.next_frame(group, &mut participant).await?;
            match frame.tag() {
                b'D' => {
                    bytes += frame.raw.len();
                    if bytes <= crate::callback::REPLY_BYTES_MAX {
                        rows.push(fields_of(&frame)?);
                    }
                }
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'Z' => break,
                // Notices have a context, in which parameters may stand.
                _ => {}
            }
        }
        self.put_back(group, participant);
        if let Some(fields) = failure {
            return Err(self.refused_pass(group, fields));
        }
        match bytes > crate::callback::REPLY_BYTES_MAX {
            true => Err(crate::callback::too_large()),
            false => Ok(rows),
        }
    }
}

const BY_ROUTER: &str = "SELECT pgherd.by_router($1, $2)";

fn send_with_pass(lease: &mut Lease, secret: &str, call: &str, values: &[&str], (role, vouched): (&str, &str)) {
    let pid = lease.cancel_key.as_ref().map_or(0, |key| key.pid);
    // Parameters: what runs is seen by others in pg_stat_activity.
    let mut params: Vec<_> = values.iter().map(|value| Some(Bytes::from((*value).to_owned()))).collect();
    params.push(Some(Bytes::from(pass(secret, pid, role, vouched))));
    let types = vec![TEXT_OID; params.len()];
    let bound = Bound { params, ..Bound::default() };
    let request = Request { param_types: &types, bound: Some(&bound), ..Request::text(call) };
    send(lease, &request, false);
}

/// What a server of the database and the router know.
pub(crate) async fn secret_of_group(
    shared: &Shared,
    database: &Database,
    catalog: &Snapshot,
    group: GroupId,
) -> Result<Arc<str>> {
    let secret = match group {
        COORDINATOR_GROUP => database.callback_secret.clone(),
        group => worker_secret(shared, database, catalog, group).await?,
    };
    secret.ok_or_else(|| no_secret(group))
}

async fn worker_secret(
    shared: &Shared,
    database: &Database,
    catalog: &Snapshot,
    group: GroupId,
) -> Result<Option<Arc<str>>> {
    let node = catalog
        .node_of_group(group)
        .ok_or_else(|| Failure::new("58000", format!("node group {group} is not known")))?;
    let key = shared.address_of(node);
    let known = database.worker_secrets.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let mut connection = connect(&shared.own_target_on(node, &database.name)).await?;
    let secret: Option<Arc<str>> = crate::database::secret_of(&mut connection).await?.map(Arc::from);
    connection.close().await;
    // One that is brought up to date later has one then.
    if secret.is_some() {
        database.worker_secrets.lock().unwrap_or_else(PoisonError::into_inner).insert(key, secret.clone());
    }
    Ok(secret)
}

fn no_secret(group: GroupId) -> Failure {
    Failure::new("55000", format!("schema pgherd of node group {group} is older than this program"))
}

/// With which a server believes that a transaction is committed.
pub(crate) fn commit_pass(secret: &str, pid: i32, transaction: &str) -> String {
    pass(secret, pid, "", &format!("commit {transaction}"))
}

/// What `pgherd.check_pass` computes.
fn pass(secret: &str, pid: i32, owner: &str, query: &str) -> String {
    let inner = sha256_hex(format!("{secret}\n{pid}\n{}\n{owner}\n{query}", owner.chars().count()).as_bytes());
    sha256_hex(format!("{secret}\n{inner}").as_bytes())
}

/// A statement of postgres_fdw whose conditions can neither fail nor tell of the rows for which they are false:
/// comparisons of columns with constants, by functions that PostgreSQL calls leakproof.
pub(crate) fn shows_nothing(statement: &Statement, table: &Table) -> bool {
    let query = match &statement.tree {
        Tree::Query(query) => query,
        // The rest is computed for rows that have met all conditions.
        Tree::Update(update) => {
            return update.from.is_empty() && update.filter.as_ref().is_none_or(|filter| is_leakproof(filter, table));
        }
        Tree::Delete(delete) => {
            return delete.using.is_empty() && delete.filter.as_ref().is_none_or(|filter| is_leakproof(filter, table));
        }
        _ => return false,
    };
    let Body::Select(select) = &query.body else { return false };
    let is_plain = |e: &Expr| matches!(e.kind, ExprKind::Column(_) | ExprKind::Const(_));
    select.filter.as_ref().is_none_or(|filter| is_leakproof(filter, table))
        && select.items.iter().all(|item| is_plain(&item.expr))
        && query.order_by.iter().all(|item| !item.using && is_sorted_by_postgresql(&item.expr, table))
        && query.limit.is_none()
}

/// A column of a type of PostgreSQL's own.
fn is_sorted_by_postgresql(expr: &Expr, table: &Table) -> bool {
    let ExprKind::Column(path) = &expr.kind else { return false };
    path.last().and_then(|name| table.column(name)).is_some_and(|column| column.type_oid < FIRST_USER_OID)
}

fn is_leakproof(filter: &Expr, table: &Table) -> bool {
    // bool, int8, int2, int4, text, varchar, date, uuid
    const TYPES: [u32; 8] = [16, 20, 21, 23, 25, 1043, 1082, 2950];
    let column = |e: &Expr| match &e.kind {
        ExprKind::Column(path) => path.last().and_then(|name| table.column(name)),
        _ => None,
    };
    let constant = |e: &Expr| match &e.kind {
        ExprKind::Const(Const::String(_) | Const::Integer(_) | Const::Bool(_)) => true,
        ExprKind::Cast { expr, .. } => matches!(expr.kind, ExprKind::Const(_)),
        _ => false,
    };
    match &filter.kind {
        ExprKind::And(list) => list.iter().all(|e| is_leakproof(e, table)),
        ExprKind::Or(list) => list.iter().all(|e| is_leakproof(e, table)),
        ExprKind::Not(e) => is_leakproof(e, table),
        ExprKind::NullTest { expr, .. } => column(expr).is_some(),
        ExprKind::Op(op) => {
            op.kind == OpKind::Plain
                && op.schema.is_none()
                && matches!(op.name.as_str(), "=" | "<>" | "<" | ">" | "<=" | ">=")
                && op.left.as_ref().and_then(column).is_some_and(|c| TYPES.contains(&c.type_oid))
                && op.right.as_ref().is_some_and(constant)
        }
        _ => false,
    }
}

/// The text with its parameters' values in it.
pub(crate) fn with_values(sql: &str, bound: Option<&Bound>) -> String {
    let Some(bound) = bound else { return sql.to_owned() };
    replace_unquoted(sql, |rest, before| {
        let number = rest.strip_prefix('$').filter(|_| !before.is_some_and(is_in_name))?;
        let digits = number.len() - number.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = number[..digits].parse::<usize>().unwrap_or(0);
        let value = bound.params.get(number.wrapping_sub(1)).and_then(Option::as_ref);
        let value = value.map(|value| quote_literal(&String::from_utf8_lossy(value)));
        Some((1 + digits, value.unwrap_or_else(|| "NULL".to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_parameters_stood() {
        let bound = |values: &[Option<&str>]| Bound {
            params: values.iter().map(|v| v.map(|v| Bytes::copy_from_slice(v.as_bytes()))).collect(),
            ..Bound::default()
        };
        let sql = r#"UPDATE s."t$1" SET a = $2, b = 'it''s $1', c = E'\'$2' WHERE ctid = $1"#;
        assert_eq!(
            with_values(sql, Some(&bound(&[Some("(0,1)"), None]))),
            r#"UPDATE s."t$1" SET a = NULL, b = 'it''s $1', c = E'\'$2' WHERE ctid = '(0,1)'"#
        );
        assert_eq!(with_values("SELECT $1", None), "SELECT $1");
    }

    #[test]
    fn a_pass_is_for_one_backend() {
        // Of the rest tests/rights.rs of the binary tells: the servers compute it, too.
        assert_eq!(pass("s", 7, "o", "q").len(), 64);
        assert_ne!(pass("s", 7, "o", "q"), pass("s", 8, "o", "q"));
    }
}
