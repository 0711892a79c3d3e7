//! `WHERE CURRENT OF cursor` on a distributed table. A cursor FOR UPDATE over one such table gets the row's name as
//! one more column, which the client does not see: the callback knows which worker, partition and row it stands for.

use std::sync::Arc;

use pgherd_catalog::{GroupId, Resolved, Table};
use pgherd_planner::Tier;
use pgherd_sql::Statement;
use pgherd_sql::ast::{Body, Distinct, Expr, ExprKind, FromItem, Span, Tree};
use pgherd_wire::backend;
use pgherd_wire::frame::Frame;

use super::request::{Announce, Errors, Request, Rows, fields_of};
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

/// Where a cursor stands.
pub struct Followed {
    table: Arc<Table>,
    /// Worker group, and the partition's number and the row's place there.
    at: Option<(GroupId, String)>,
}

/// The cursor in `WHERE CURRENT OF`.
pub(super) fn current_of(statement: &Statement) -> Option<&str> {
    let filter = match &statement.tree {
        Tree::Update(update) => update.filter.as_ref(),
        Tree::Delete(delete) => delete.filter.as_ref(),
        _ => None,
    };
    match filter {
        Some(Expr { kind: ExprKind::CurrentOf(name), .. }) => Some(name),
        _ => None,
    }
}

impl Session {
    /// The table of a cursor whose rows may be named later, where in DECLARE the column goes, and what it is.
    pub(super) async fn followed(&mut self, text: &str, query: Span) -> Result<Option<(Followed, usize, String)>> {
        let inner = query.of(text);
        let Some(statement) = pgherd_sql::split(inner).ok().and_then(|mut s| s.pop()) else { return Ok(None) };
        let Tree::Query(tree) = &statement.tree else { return Ok(None) };
        let Body::Select(select) = &tree.body else { return Ok(None) };
        let plain = tree.locks_rows()
            && tree.with.is_none()
            && select.group_by.is_empty()
            && select.having.is_none()
            && matches!(select.distinct, Distinct::No);
        let [FromItem::Relation(relation)] = select.from.as_slice() else { return Ok(None) };
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let resolved = match catalog.resolve(relation.schema.as_deref(), &relation.name, &path) {
            Resolved::Table(table) if !table.is_reference() => table.clone(),
            _ => return Ok(None),
        };
        if !plain || self.temp.contains(&relation.name) || !relation.full_span.is_known() {
            return Ok(None);
        }
        let own = statement.text.as_str();
        let Some(from) = own[..relation.full_span.start].to_ascii_uppercase().rfind("FROM") else { return Ok(None) };
        let at = query.start + statement.offset + from;
        let separator = if select.items.is_empty() { "" } else { ", " };
        let column = format!("{separator}{}.ctid ", quote_ident(relation.reference_name()));
        Ok(Some((Followed { table: resolved, at: None }, at, column)))
    }

    /// FETCH or MOVE of a cursor with such a column.
    pub(super) async fn fetch_followed(&mut self, call: &Call<'_>, cursor: &str, is_move: bool) -> Result<Completion> {
        let text = call.prepared.text();
        let lower = text.to_ascii_lowercase();
        let words = lower.trim_start();
        let rest = words.strip_prefix("fetch").or_else(|| words.strip_prefix("move")).unwrap_or_default();
        let sql = format!("FETCH{}", &text[text.len() - rest.len()..]);
        let mut described = None;
        if !is_move && call.describes() {
            described = self.describe_utility(call.prepared).await?;
        }
        self.join(pgherd_catalog::COORDINATOR_GROUP).await?;
        let mut bound = call.bound.cloned().unwrap_or_default();
        let formats = std::mem::take(&mut bound.result_formats);
        if formats.len() > 1 {
            bound.result_formats = formats.into_iter().chain([0]).collect();
        } else {
            bound.result_formats = formats;
        }
        let request = Request { bound: Some(&bound), ..Request::text(sql) };
        let mut kept = Vec::new();
        self.run_request(pgherd_catalog::COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), Errors::default()).await?;
        if let Some(fields) = described.as_ref().and_then(|d| d.fields.as_ref()) {
            backend::write_row_description(&mut self.client.out, fields);
        }
        let count = kept.len();
        let mut last = None;
        for raw in kept {
            let mut fields = fields_of(&Frame { raw })?;
            last = fields.pop().flatten();
            if !is_move {
                backend::write_data_row(&mut self.client.out, &fields);
                self.client.flush_if_full().await?;
            }
        }
        let catalog = self.catalog();
        let table = self.declared_cursors.get(cursor).and_then(|c| Some(c.followed.as_ref()?.table.clone()));
        let at = last
            .filter(|_| stands_on_a_row(rest, count))
            .and_then(|name| self.cursors.row(&catalog, table.as_ref()?, &name));
        if let Some(followed) = self.declared_cursors.get_mut(cursor).and_then(|c| c.followed.as_mut()) {
            followed.at = at;
        }
        Ok(Completion::Tag(format!("{} {count}", if is_move { "MOVE" } else { "FETCH" })))
    }

    /// `UPDATE` or `DELETE … WHERE CURRENT OF`; none: not of a cursor that is followed.
    pub(super) async fn run_current_of(&mut self, call: &Call<'_>) -> Result<Option<Completion>> {
        let Some(statement) = &call.prepared.statement else { return Ok(None) };
        let Some(cursor) = current_of(statement) else { return Ok(None) };
        let followed = self.declared_cursors.get(cursor).and_then(|c| c.followed.as_ref());
        let Some((followed_oid, at)) = followed.map(|f| (f.table.oid, f.at.clone())) else {
            let named = format!("SELECT FROM pg_catalog.pg_cursors WHERE name = {}", quote_literal(cursor));
            // Outside of blocks there are those WITH HOLD, of which PostgreSQL says more.
            if self.ask_coordinator(&named).await?.rows.is_empty() {
                return Err(Failure::new("34000", format!("cursor \"{cursor}\" does not exist")));
            }
            return Ok(None);
        };
        let target = match &statement.tree {
            Tree::Update(update) => &update.target,
            Tree::Delete(delete) => &delete.target,
            _ => return Ok(None),
        };
        let path = self.search_path().await?;
        let catalog = self.catalog();
        let same = matches!(catalog.resolve(target.schema.as_deref(), &target.name, &path),
            Resolved::Table(table) if table.oid == followed_oid);
        if !same {
            return Err(Failure::new(
                "24000",
                format!("cursor \"{cursor}\" does not have a FOR UPDATE/SHARE reference to table \"{}\"", target.name),
            ));
        }
        // Its rules and triggers are the coordinator's.
        if catalog.by_oid.get(&followed_oid).is_some_and(|table| table.changed_here) {
            return Ok(None);
        }
        let Some((group, place)) = at else {
            return Err(Failure::new("24000", format!("cursor \"{cursor}\" is not positioned on a row")));
        };
        let (partition, ctid) = place.split_once(' ').unwrap_or(("0", ""));
        self.join(group).await?;
        // It may have been changed since: its last version.
        let latest = format!(
            "SELECT pg_catalog.currtid2({partition}::pg_catalog.regclass::pg_catalog.text, {}::pg_catalog.tid)",
            quote_literal(ctid)
        );
        let latest = self.collect_on(group, &latest).await?.text(0, 0).unwrap_or(ctid).to_owned();
        let Some(clause) = clause_of(call.prepared.text()) else { return Ok(None) };
        let alias = quote_ident(target.reference_name());
        let text = call.prepared.text();
        let sql = format!(
            "{} {alias}.tableoid = {partition} AND {alias}.ctid = {}{}",
            &text[..clause.start],
            quote_literal(&latest),
            &text[clause.end..]
        );
        let Some(own) = pgherd_sql::split(&sql).ok().and_then(|mut s| s.pop()) else { return Ok(None) };
        let mut plan = self.plan_statement(&own, &catalog, &path, true);
        if !self.agree_on_time(&plan, group).await? {
            plan = self.plan_statement(&own, &catalog, &path, true);
        }
        let sql = match &plan.tier {
            Tier::Scatter(scatter) => scatter.sql.as_written(),
            Tier::Route(route) => route.sql.as_written(),
            Tier::Refuse(refusal) => return Err(super::refuse(refusal)),
            _ => return Ok(None),
        };
        for table in &plan.tables {
            self.fence_table(group, table, &catalog);
        }
        self.mark_writer(group);
        let types = self.param_types(call).await?;
        let announce = match call.describes() {
            true => Announce::Known(self.described(call.prepared).await?),
            false => Announce::Nothing,
        };
        let announce = match &announce {
            Announce::Known(known) if known.fields.is_none() => Announce::Nothing,
            _ => announce,
        };
        let empty = pgherd_sql::Splice::default();
        let errors = Errors::of(&empty, text);
        self.run_single(call, group, sql, None, &types, announce, errors).await.map(Some)
    }
}

/// Whether the cursor is on the last row that was returned, and not behind it. `rest`: what follows FETCH, in lower
/// case.
fn stands_on_a_row(rest: &str, count: usize) -> bool {
    let mut words = rest.split_whitespace().filter(|w| !matches!(*w, "forward" | "backward"));
    match words.next() {
        Some("all") => false,
        Some("absolute" | "relative") => count > 0,
        Some(word) => match word.parse::<i64>() {
            Ok(n) => count > 0 && (n == 0 || n.unsigned_abs() == count as u64),
            Err(_) => count > 0,
        },
        None => count > 0,
    }
}

/// `CURRENT OF name` in the text.
fn clause_of(text: &str) -> Option<Span> {
    let lower = text.to_ascii_lowercase();
    for (at, _) in lower.match_indices("current") {
        let before = lower[..at].trim_end();
        let after = lower[at + "current".len()..].trim_start();
        let Some(name) = after.strip_prefix("of").filter(|n| n.starts_with(|c: char| c.is_whitespace() || c == '"'))
        else {
            continue;
        };
        if !before.ends_with("where") {
            continue;
        }
        let name = name.trim_start();
        let length = match name.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => name.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'))).unwrap_or(name.len()),
        };
        return Some(Span::new(at, text.len() - name.len() + length));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clause_is_found() {
        let of = |text: &'static str| clause_of(text).map(|s| s.of(text));
        assert_eq!(of("UPDATE t SET current = 1 WHERE CURRENT OF c RETURNING *"), Some("CURRENT OF c"));
        assert_eq!(of("DELETE FROM t WHERE current  of \"C d\""), Some("current  of \"C d\""));
        assert_eq!(of("UPDATE t SET v = 'current of x'"), None);
    }

    #[test]
    fn a_cursor_behind_its_rows_is_on_none() {
        assert!(stands_on_a_row(" c", 1));
        assert!(stands_on_a_row(" 3 from c", 3));
        assert!(!stands_on_a_row(" 3 from c", 2));
        assert!(!stands_on_a_row(" all from c", 2));
        assert!(!stands_on_a_row(" forward all in c", 2));
        assert!(stands_on_a_row(" backward 2 in c", 2));
    }
}
