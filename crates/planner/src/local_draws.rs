//! INSERT of one row into a local table whose columns draw from sequences: the router has drawn their values ahead, and
//! the coordinator runs the rest like any statement that leaves nothing behind.

use pgherd_sql::Splice;
use pgherd_sql::ast::*;

use crate::context::{Context, quote_ident};
use crate::given::is_next_value;
use crate::one_row::calls_set;
use crate::plan::*;

impl Context<'_> {
    /// The same plan with such values; none: they cannot be given.
    pub fn with_local_draws(&self, plan: &Plan) -> Option<Plan> {
        let Tree::Insert(insert) = &self.statement.tree else { return None };
        let Tier::Coordinator { in_block, rides: false, .. } = plan.tier else { return None };
        let given = self.given.as_ref().filter(|_| plan.leaves_draws_only)?;
        let target = &insert.target;
        let path = self.session.search_path;
        let name = self.snapshot.resolve_other(target.schema.as_deref(), &target.name, path)?;
        let draws = self.snapshot.local_draws.get(&name)?;
        let InsertSource::Values(rows) = &insert.source else { return None };
        let ([row], Some(list)) = (rows.as_slice(), insert.columns_span) else { return None };
        let sets_default =
            |conflict: &OnConflict| conflict.set.iter().any(|a| matches!(a.value.kind, ExprKind::Default));
        let plain = insert.with.is_none()
            && !insert.on_conflict.as_ref().is_some_and(sets_default)
            && insert.overriding == Overriding::No
            && insert.columns.len() == row.len()
            && insert.columns.iter().all(|(_, part)| !part)
            && row.iter().all(|field| field.span.is_known())
            && draws.iter().all(|draw| is_next_value(&draw.sql))
            && !calls_set(self.statement, self.snapshot);
        if !plain {
            return None;
        }
        let text = self.text();
        let mut sql = Splice::default();
        sql.push_text(Span::new(0, list.end - 1).of(text), Some(0));
        // With the places in the text of those that stand there.
        let mut fields: Vec<(String, Option<usize>)> =
            row.iter().map(|field| (field.span.of(text).to_owned(), Some(field.span.start))).collect();
        let mut always = false;
        for draw in draws.iter() {
            let at = insert.columns.iter().position(|(column, _)| *column == draw.column);
            match at.map(|at| &row[at].kind) {
                None | Some(ExprKind::Default) => {}
                // PostgreSQL refuses it, or takes it.
                Some(_) if draw.always => return None,
                Some(_) => continue,
            }
            let value = (format!("${}", given.draw(&draw.sql)?), None);
            always |= draw.always;
            match at {
                Some(at) => fields[at] = value,
                None => {
                    sql.push_text(&format!(", {}", quote_ident(&draw.column)), None);
                    fields.push(value);
                }
            }
        }
        sql.push_text(if always { ") OVERRIDING SYSTEM VALUE VALUES (" } else { ") VALUES (" }, None);
        for (at, (field, origin)) in fields.iter().enumerate() {
            sql.push_text(if at == 0 { "" } else { ", " }, None);
            sql.push_text(field, *origin);
        }
        sql.push_text(")", None);
        if let Some(tail) = insert.tail_span {
            sql.push_text(" ", None);
            sql.push_text(tail.of(text), Some(tail.start));
        }
        let tier = Tier::Coordinator { sql, in_block, rides: true };
        Some(Plan { tier, one_row: true, ..plan.clone() })
    }
}
