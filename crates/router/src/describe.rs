//! What the coordinator says of a statement text: parameter types, result columns, and errors in PostgreSQL's own
//! words. Asked once per distinct text; the answers are kept per thread up to a limit.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use pgherd_backend::Connection;
use pgherd_catalog::{COORDINATOR_GROUP, Snapshot, SnapshotId};
use pgherd_sql::{Statement, StatementKind};
use pgherd_wire::backend::{self, ErrorFields, FieldDescription};
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend;

use crate::error::{Failure, Result};
use crate::run::deadlock;
use crate::session::{Prepared, Session};
use crate::transaction::{Block, Participant};

/// Distinct statement texts kept per thread, and their bytes.
const STATEMENTS_MAX: usize = 2000;
const STATEMENT_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    pub param_types: Vec<u32>,
    /// None: the statement returns no rows.
    pub fields: Option<Vec<FieldDescription>>,
}

/// Everything that the meaning of a text depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StatementKey {
    database: String,
    user: String,
    search_path: Vec<String>,
    catalog: SnapshotId,
    types: Vec<u32>,
    sql: String,
}

/// What is known of texts, in the order they came, the oldest dropped at the limit.
pub struct StatementCache<T = Rc<Prepared>> {
    statements: HashMap<Rc<StatementKey>, T>,
    order: VecDeque<Rc<StatementKey>>,
    bytes: usize,
}

impl<T> Default for StatementCache<T> {
    fn default() -> Self {
        StatementCache { statements: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Clone> StatementCache<T> {
    pub fn get(&mut self, key: &StatementKey) -> Option<T> {
        self.statements.get(key).cloned()
    }

    pub fn insert(&mut self, key: StatementKey, known: T) {
        let key = Rc::new(key);
        if self.statements.insert(key.clone(), known).is_none() {
            self.bytes += key.sql.len();
            self.order.push_back(key);
        }
        while self.order.len() > STATEMENTS_MAX || self.bytes > STATEMENT_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= oldest.sql.len();
            self.statements.remove(&oldest);
        }
    }
}

impl Session {
    /// The cache key of a text; none where the answer would be this session's own.
    pub async fn statement_key(&mut self, sql: &str, types: &[u32]) -> Result<Option<StatementKey>> {
        // Where there is none the coordinator is not asked for the path: SET TRANSACTION comes before all queries.
        if self.txn.block == Block::Failed || self.has_own_names() {
            return Ok(None);
        }
        let path = self.search_path().await?;
        Ok(self.statement_key_under(&self.catalog(), &path, sql, types))
    }

    /// Names may mean something in this session that they mean in no other.
    fn has_own_names(&self) -> bool {
        self.txn.catalog.is_some() || !self.temp.is_empty() || self.pin
    }

    /// The same where catalog and search path are known.
    pub fn statement_key_under(
        &self,
        catalog: &Arc<Snapshot>,
        path: &[String],
        sql: &str,
        types: &[u32],
    ) -> Option<StatementKey> {
        if self.has_own_names() {
            return None;
        }
        Some(StatementKey {
            database: self.db.name.clone(),
            user: self.user.clone(),
            search_path: path.to_vec(),
            // Reloads without a new epoch (local DDL) give a new snapshot all the same.
            catalog: SnapshotId::of(catalog),
            types: types.to_vec(),
            sql: sql.to_owned(),
        })
    }

    /// The coordinator's description of a planned statement, asked for once.
    pub async fn described(&mut self, prepared: &Prepared) -> Result<Rc<Described>> {
        let (catalog, path) = (self.catalog(), self.search_path().await?);
        if let Some(described) = prepared.described_under(&catalog, &path) {
            return Ok(described);
        }
        let text = match &prepared.statement {
            Some(statement) => pgherd_sql::qualify_own(statement)?.as_written(),
            None => String::new(),
        };
        // Parameters keep the types that the client was told.
        let before = prepared.last_described();
        let types = before.as_ref().map_or(&prepared.declared, |b| &b.param_types);
        let described = Rc::new(Box::pin(self.describe_on_coordinator(&text, types)).await?);
        if let Some(before) = before
            && !same_columns(&before.fields, &described.fields)
        {
            return Err(changed_result());
        }
        prepared.set_described(&catalog, path, described.clone());
        Ok(described)
    }

    /// The coordinator's opinion of a statement, on a connection beside the transaction's own.
    pub async fn describe_aside(&mut self, prepared: &Prepared) -> Result<Described> {
        let text = match &prepared.statement {
            Some(statement) => pgherd_sql::qualify_own(statement)?.as_written(),
            None => String::new(),
        };
        self.describe_text_aside(&text, &prepared.declared).await
    }

    /// The same of a text.
    pub async fn describe_text_aside(&mut self, sql: &str, types: &[u32]) -> Result<Described> {
        let mut lease = self.coordinator_lease().await?;
        // It may wait for a definition that waits for this session's transaction elsewhere.
        self.cancel.add(lease.address(), &lease.cancel_key);
        let result = describe_on(&mut lease, sql, types).await;
        self.cancel.remove(&lease.cancel_key);
        if self.cancel.is_under_way() {
            self.cancel.settle().await;
        }
        match result {
            Err(failure) if failure.sqlstate() == "57014" && self.cancel.breaks_deadlock() => Err(deadlock()),
            other => other,
        }
    }

    /// The result columns of a utility statement that returns rows.
    pub async fn describe_utility(&mut self, prepared: &Prepared) -> Result<Option<Rc<Described>>> {
        let Some(statement) = &prepared.statement else { return Ok(None) };
        match &statement.kind {
            StatementKind::Execute { name, .. } => {
                // That there is none is found when it is executed.
                let Some(inner) = self.named(name) else { return Ok(None) };
                if !inner.statement.as_ref().is_some_and(|s| crate::session::is_planned(&s.kind)) {
                    return Box::pin(self.describe_utility(&inner)).await;
                }
                let described = self.described(&inner).await?;
                Ok(Some(Rc::new(Described { param_types: Vec::new(), fields: described.fields.clone() })))
            }
            StatementKind::Show { .. } => match prepared.last_described() {
                Some(described) => Ok(Some(described)),
                None => Ok(Some(Rc::new(self.describe_show(prepared).await?))),
            },
            StatementKind::Fetch { name, is_move: false, .. } if self.has_portal(name) => {
                let Some(portal) = self.portals.get(name).map(|p| p.prepared.clone()) else { return Ok(None) };
                let described = self.described(&portal).await?;
                Ok(Some(Rc::new(Described { param_types: Vec::new(), fields: described.fields.clone() })))
            }
            StatementKind::Fetch { name, is_move: true, .. } if self.has_portal(name) => Ok(None),
            StatementKind::Explain { .. } | StatementKind::Fetch { .. } | StatementKind::Call => {
                let mut described = self.describe_on_coordinator(prepared.text(), &prepared.declared).await?;
                if let StatementKind::Fetch { name, .. } = &statement.kind
                    && self.is_followed(name)
                    && let Some(fields) = &mut described.fields
                {
                    fields.pop();
                }
                Ok(Some(Rc::new(described)))
            }
            _ => Ok(None),
        }
    }

    /// The column of SHOW is the setting's name as the server spells it; ours the coordinator does not know.
    pub async fn describe_show(&mut self, prepared: &Prepared) -> Result<Described> {
        if let Some(Statement { kind: StatementKind::Show { name }, .. }) = &prepared.statement
            && crate::settings::is_own(name)
        {
            if self.own_setting(name).await?.is_none() {
                return Err(crate::settings::unknown(name));
            }
            return Ok(Described { param_types: Vec::new(), fields: Some(vec![FieldDescription::text(name)]) });
        }
        self.describe_on_coordinator(prepared.text(), &prepared.declared).await
    }

    /// Parse and Describe on the coordinator, inside the open block where that may have changed what names mean.
    pub async fn describe_on_coordinator(&mut self, sql: &str, types: &[u32]) -> Result<Described> {
        let takes_part = self.txn.participants.contains_key(&COORDINATOR_GROUP) || self.txn.catalog.is_some();
        // In a failed transaction only the parser is asked, and the transaction's own connection is told nothing more.
        let failed = self.txn.block == Block::Failed;
        if !failed && (takes_part || self.pinned.is_some() || self.txn.block == Block::None) {
            self.join(COORDINATOR_GROUP).await?;
            let mut participant = self.take(COORDINATOR_GROUP)?;
            let result = self.describe_inside(&mut participant, sql, types).await;
            self.put_back(COORDINATOR_GROUP, participant);
            self.release_autocommit().await;
            return result;
        }
        self.describe_text_aside(sql, types).await
    }

    /// The same on the transaction's own connection. Where the text is wrong, the coordinator's transaction fails, and
    /// its foreign tables tell the router so before it says anything.
    async fn describe_inside(&mut self, participant: &mut Participant, sql: &str, types: &[u32]) -> Result<Described> {
        send_describe(&mut participant.lease, sql, types);
        let mut description = Description::default();
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, participant).await?;
            if let Some(described) = description.read(&frame)? {
                return described;
            }
        }
    }
}

/// Drivers prepare a statement anew when they read this: they know it by the routine that reports it.
fn changed_result() -> Failure {
    Failure::refused("cached plan must not change result type")
}

/// The same number of columns, of the same types.
pub fn same_columns(before: &Option<Vec<FieldDescription>>, after: &Option<Vec<FieldDescription>>) -> bool {
    match (before, after) {
        (Some(a), Some(b)) => {
            let same = |a: &FieldDescription, b: &FieldDescription| {
                (a.type_oid, a.type_modifier, &a.name) == (b.type_oid, b.type_modifier, &b.name)
            };
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (None, None) => true,
        _ => false,
    }
}

fn send_describe(connection: &mut Connection, sql: &str, types: &[u32]) {
    frontend::write_parse(connection.buffer(), "", sql, types);
    frontend::write_describe(connection.buffer(), b'S', "");
    connection.send_sync();
}

async fn describe_on(connection: &mut Connection, sql: &str, types: &[u32]) -> Result<Described> {
    send_describe(connection, sql, types);
    let mut description = Description::default();
    loop {
        let frame = connection.frame().await?;
        if let Some(described) = description.read(&frame)? {
            return described;
        }
    }
}

/// What has come of the reply to Parse and Describe.
#[derive(Default)]
struct Description {
    described: Described,
    failure: Option<ErrorFields>,
}

impl Description {
    /// One more message; the outcome when it was the last.
    fn read(&mut self, frame: &Frame) -> Result<Option<Result<Described>>> {
        match frame.tag() {
            b't' => self.described.param_types = backend::parse_parameter_description(frame)?,
            b'T' => self.described.fields = Some(backend::parse_row_description(frame)?),
            b'E' => {
                let fields = backend::parse_error(frame)?;
                self.failure.get_or_insert(fields);
            }
            b'Z' => {
                return Ok(Some(match self.failure.take() {
                    Some(fields) => Err(fields.into()),
                    None => Ok(std::mem::take(&mut self.described)),
                }));
            }
            _ => {}
        }
        Ok(None)
    }
}
