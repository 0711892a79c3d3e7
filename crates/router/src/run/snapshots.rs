//! What a cursor sees: the rows as they were when it was declared, whoever has changed them since. The coordinator's
//! scans of distributed tables begin when rows are first fetched, and those of a join later still. So DECLARE keeps its
//! moment on the workers: a cursor of ours, the *anchor*, over a function that opens other cursors under the snapshot
//! of its caller (`pgherd.open_cursor` in crates/control/sql/worker.sql). Nothing is read before it is fetched.

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Resolved};
use pgherd_planner::Tier;
use pgherd_sql::ast::Tree;
use pgherd_sql::{Statement, StatementKind};
use pgherd_wire::backend::FieldDescription;

use super::Call;
use super::request::{Errors, Request, Rows};
use crate::callback::{COUNT_SCANS, Opened, locks_rows};
use crate::error::{Failure, Result};
use crate::session::{Bound, Session};
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::{Block, LogItem};

/// The moment of a DECLARE.
#[derive(Debug, Clone)]
pub struct Anchor {
    /// The client's cursor; empty: a portal, or a cursor of a function.
    cursor: String,
    /// Ours, on each of `groups`.
    name: String,
    groups: Vec<GroupId>,
    /// Scans of the coordinator that began before it have lower numbers.
    before: u64,
    is_open: bool,
    /// Queries of scans that lock rows, which the function may not open: they have been opened already.
    early: Vec<(String, Opened)>,
}

impl Session {
    /// After a DECLARE, or rows of a portal: scans that will begin later are to see what there is now. `sent`: DECLARE
    /// as the coordinator got it.
    pub(super) async fn keep_moment(&mut self, cursor: &str, statement: &Statement, sent: Option<&str>) -> Result<()> {
        // WITH HOLD, and its commit is next.
        if self.txn.block == Block::None || (self.txn.block == Block::Implicit && self.last_of_query) {
            return Ok(());
        }
        let groups = self.scanned_groups(statement).await?;
        if groups.is_empty() {
            return Ok(());
        }
        let locking = matches!(&statement.tree, Tree::Query(query) if query.locking);
        self.anchor(cursor, groups, sent.filter(|_| locking)).await
    }

    /// After a function that has returned a cursor, whose scans will begin when the client fetches from it.
    pub(super) async fn keep_moment_of_returned(&mut self, call: &Call<'_>) -> Result<()> {
        let told = std::mem::take(&mut self.cursors.returned);
        if self.txn.block != Block::Explicit || self.catalog().by_oid.is_empty() {
            return Ok(());
        }
        let is_call = call.prepared.statement.as_ref().is_some_and(|s| matches!(s.kind, StatementKind::Call));
        let described = match is_call && call.bound.is_some() {
            true => self.describe_utility(call.prepared).await?,
            false => call.prepared.last_described(),
        };
        let known = described.as_ref().and_then(|d| d.fields.as_ref());
        if !told && !known.is_some_and(|fields| has_cursor(fields)) {
            return Ok(());
        }
        match self.has_begun_scans().await? {
            true => self.anchor("", self.catalog().worker_groups(), None).await,
            false => Ok(()),
        }
    }

    /// False: the coordinator has begun no scan of a distributed table since they were counted last.
    async fn has_begun_scans(&mut self) -> Result<bool> {
        if self.catalog().by_oid.is_empty() {
            return Ok(false);
        }
        let last = self.cursors.scans;
        self.run_quiet(COORDINATOR_GROUP, &count_scans()).await?;
        Ok(self.cursors.scans != last + 1)
    }

    /// `locking`: a DECLARE whose scans lock rows.
    async fn anchor(&mut self, cursor: &str, groups: Vec<GroupId>, locking: Option<&str>) -> Result<()> {
        for group in groups.iter().chain([&COORDINATOR_GROUP]) {
            self.join(*group).await?;
        }
        let name = format!("pgherd_anchor_{}", crate::session::next_id());
        // Without end, one row for each cursor that is opened.
        let declare = format!(
            "DECLARE {name} NO SCROLL CURSOR FOR WITH RECURSIVE forever(n) AS \
             (SELECT 1 UNION ALL SELECT 1 FROM forever) SELECT pgherd.open_cursor() FROM forever"
        );
        let mut asked = vec![(COORDINATOR_GROUP, count_scans())];
        asked.extend(groups.iter().map(|group| (*group, declare.clone())));
        for (_, result) in self.run_parallel(asked).await {
            result?;
        }
        let before = self.cursors.scans;
        let early = match locking {
            Some(declare) => self.open_locking_scans(declare).await?,
            None => Vec::new(),
        };
        self.log(LogItem::Anchor(Anchor { cursor: cursor.to_owned(), name, groups, before, is_open: true, early }));
        Ok(())
    }

    /// The scans of a DECLARE that lock rows, which are told by EXPLAIN, opened on the workers. Nothing is locked yet.
    async fn open_locking_scans(&mut self, declare: &str) -> Result<Vec<(String, Opened)>> {
        let explained =
            self.collect_on(COORDINATOR_GROUP, &format!("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) {declare}")).await?;
        let mut early = Vec::new();
        for query in remote_queries(explained.text(0, 0).unwrap_or_default()) {
            // One that has parameters is opened when they have values.
            if locks_rows(&query) && !query.contains('$') {
                let opened = self.open_early(&query).await?;
                early.push((query, opened));
            }
        }
        Ok(early)
    }

    /// What was opened for a scan that locks rows.
    pub fn opened_early(&mut self, scan: u64, query: &str) -> Option<Opened> {
        let anchors = self.txn.log.iter_mut().filter_map(|item| match item {
            LogItem::Anchor(anchor) if anchor.is_open && scan < anchor.before => Some(anchor),
            _ => None,
        });
        let early = &mut anchors.min_by_key(|anchor| anchor.before)?.early;
        let index = early.iter().position(|(text, _)| text == query)?;
        Some(early.swap_remove(index).1)
    }

    /// The workers that a statement's scans on the coordinator may read.
    async fn scanned_groups(&mut self, statement: &Statement) -> Result<Vec<GroupId>> {
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let plan = self.plan_statement(statement, &catalog, &path, false);
        match &plan.tier {
            // An SQL function may have become a part of the plan.
            Tier::Coordinator { in_block: true, .. } => match self.has_begun_scans().await? {
                true => Ok(catalog.worker_groups()),
                false => Ok(Vec::new()),
            },
            Tier::Coordinator { .. } => {
                let others: Vec<String> = statement
                    .relations
                    .iter()
                    .filter(|r| matches!(catalog.resolve(r.schema.as_deref(), &r.name, &path), Resolved::Other))
                    .map(|r| match &r.schema {
                        Some(schema) => format!("{}.{}", quote_ident(schema), quote_ident(&r.name)),
                        None => quote_ident(&r.name),
                    })
                    .map(|name| format!("pg_catalog.to_regclass({})", quote_literal(&name)))
                    .collect();
                if others.is_empty() {
                    return Ok(Vec::new());
                }
                // A view may read anything.
                let sql = format!(
                    "SELECT FROM pg_catalog.pg_class WHERE relkind = 'v' AND oid IN ({}) \
                     AND relnamespace NOT IN (SELECT oid FROM pg_catalog.pg_namespace \
                         WHERE nspname IN ('pg_catalog', 'information_schema', 'pgherd'))",
                    others.join(", ")
                );
                let views = self.collect_on(COORDINATOR_GROUP, &sql).await?;
                Ok(if views.rows.is_empty() { Vec::new() } else { catalog.worker_groups() })
            }
            Tier::Route(route) => {
                let remainder = self.remainder_of(&route.table, &route.key, None).await?;
                let shard = remainder.and_then(|r| route.table.shards().get(r));
                Ok(shard.map_or_else(|| catalog.groups_of(&route.table), |shard| vec![shard.group]))
            }
            Tier::Scatter(scatter) => Ok(catalog.groups_of(&scatter.table)),
            _ => Ok(catalog.worker_groups()),
        }
    }

    /// CLOSE of a cursor, or of all: nothing is kept for it any more.
    pub(super) fn forget_moment(&mut self, cursor: Option<&str>) {
        for item in &mut self.txn.log {
            let LogItem::Anchor(anchor) = item else { continue };
            if !anchor.is_open || cursor.is_some_and(|name| name != anchor.cursor) {
                continue;
            }
            anchor.is_open = false;
            let opened = anchor.early.iter().map(|(_, opened)| (&opened.cursor, &opened.groups));
            for (name, groups) in opened.chain([(&anchor.name, &anchor.groups)]) {
                for group in groups {
                    if let Some(participant) = self.txn.participants.get_mut(group) {
                        participant.lease.add_step(format!("CLOSE {name}"));
                    }
                }
            }
        }
    }

    /// The moment under which a scan of the coordinator has begun; none: it is of the statement that runs now.
    pub fn moment_of(&self, scan: u64) -> Option<Anchor> {
        let anchors = self.txn.log.iter().filter_map(|item| match item {
            LogItem::Anchor(anchor) if anchor.is_open && scan < anchor.before => Some(anchor),
            _ => None,
        });
        anchors.min_by_key(|anchor| anchor.before).cloned()
    }

    /// Opens a cursor of ours on a worker, under the snapshot of now or of an anchor.
    pub async fn open_on(
        &mut self,
        group: GroupId,
        cursor: &str,
        sql: &str,
        bound: Option<&Bound>,
        anchor: Option<&Anchor>,
    ) -> Result<()> {
        let Some(anchor) = anchor.filter(|anchor| anchor.groups.contains(&group)) else {
            let request = Request { bound, ..Request::text(format!("DECLARE {cursor} CURSOR FOR {sql}")) };
            return self.run_request(group, &request, Rows::Drop, Errors::default()).await.map(drop);
        };
        let open = format!(
            "SELECT pg_catalog.set_config('pgherd.cursor_name', {}, true), \
             pg_catalog.set_config('pgherd.cursor_query', {}, true); FETCH FORWARD 1 FROM {}",
            quote_literal(cursor),
            quote_literal(&with_values(sql, bound)),
            anchor.name
        );
        self.run_quiet(group, &open).await.map_err(without_function)
    }
}

/// Has a scan of the coordinator tell its number.
fn count_scans() -> String {
    format!("SELECT FROM pgherd.remote_statement WHERE command OPERATOR(pg_catalog.=) '{COUNT_SCANS}'")
}

/// A column is the name of a cursor.
pub fn has_cursor(fields: &[FieldDescription]) -> bool {
    const REFCURSOR_OID: u32 = 1790;
    fields.iter().any(|field| field.type_oid == REFCURSOR_OID)
}

/// A query of postgres_fdw with its parameters written into it; it gives each its type by a cast.
fn with_values(sql: &str, bound: Option<&Bound>) -> String {
    let Some(bound) = bound.filter(|bound| !bound.params.is_empty()) else { return sql.to_owned() };
    let mut out = String::with_capacity(sql.len() + 64);
    // The literal or quoted name that the text is inside of; a doubled quote ends it and begins it again.
    let mut quote = None;
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, '$') => {
                let digits = rest.len() - rest.trim_start_matches(|d: char| d.is_ascii_digit()).len();
                if let Some(value) =
                    rest[..digits].parse::<usize>().ok().and_then(|n| bound.params.get(n.wrapping_sub(1)))
                {
                    match value {
                        Some(value) => out.push_str(&quote_literal(&String::from_utf8_lossy(value))),
                        None => out.push_str("NULL"),
                    }
                    rest = &rest[digits..];
                    continue;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// The queries in a plan of the coordinator, as EXPLAIN writes it in JSON.
fn remote_queries(plan: &str) -> Vec<String> {
    let mut found = Vec::new();
    for rest in plan.split("\"Remote SQL\": \"").skip(1) {
        let mut query = String::new();
        let mut characters = rest.chars();
        while let Some(c) = characters.next() {
            query.push(match c {
                '"' => break,
                '\\' => match characters.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('b') => '\u{8}',
                    Some('f') => '\u{c}',
                    Some('u') => {
                        let digits: String = characters.by_ref().take(4).collect();
                        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or(' ')
                    }
                    Some(other) => other,
                    None => break,
                },
                c => c,
            });
        }
        found.push(query);
    }
    found
}

/// The client knows of no function.
fn without_function(failure: Failure) -> Failure {
    match failure {
        Failure::Statement(mut fields) => {
            for field in [b'W', b'q', b'p'] {
                fields.remove(field);
            }
            Failure::Statement(fields)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn values_stand_where_parameters_stood() {
        let params = vec![Some(Bytes::from_static(b"it's")), None];
        let bound = Bound { params, ..Bound::default() };
        let text = r#"SELECT "a$1" FROM t WHERE ((b = $1::text)) AND ((c <> '$1''$2')) AND ((d = $2::int)) AND e = $3"#;
        let expected =
            r#"SELECT "a$1" FROM t WHERE ((b = 'it''s'::text)) AND ((c <> '$1''$2')) AND ((d = NULL::int)) AND e = $3"#;
        assert_eq!(with_values(text, Some(&bound)), expected);
        assert_eq!(with_values(text, None), text);
    }

    #[test]
    fn queries_are_found_in_a_plan() {
        let plan = r#"[{"Plan": {"Node": "Scan", "Remote SQL": "SELECT \"A\" FROM t WHERE b = E'\\\\\n' FOR UPDATE",
            "Plans": [{"Remote SQL": "SELECT 1"}]}}]"#;
        assert_eq!(remote_queries(plan), ["SELECT \"A\" FROM t WHERE b = E'\\\\\n' FOR UPDATE", "SELECT 1"]);
    }
}
