//! MERGE whose conditions or values no worker may compute: the coordinator joins the source with the target, and says
//! of each row which action it is for and with which values. The router then changes the target's rows one by one.

use std::sync::Arc;

use pgherd_catalog::{ColumnDefault, Table};
use pgherd_sql::ast::*;

use crate::context::{Context, quote_ident};
use crate::insert::{default_sql, evaluation_type};
use crate::plan::*;

type Result<T> = std::result::Result<T, String>;

/// Whose column says which action a row is for.
const ACTION: &str = "pgherd_action";

impl Context<'_> {
    /// `why`: what keeps the workers from it.
    pub fn merge_by_rows(&self, merge: &pgherd_sql::ast::Merge, table: &Arc<Table>, why: &str) -> Result<Plan> {
        if self.session.callback || !merge.returning.is_empty() {
            return Err("RETURNING of rows that are changed one by one".to_owned());
        }
        if !self.analysis.modifying.is_empty() || self.analysis.has_parts_unknown {
            return Err("a data-modifying common table expression".to_owned());
        }
        if table.has_triggers || table.row_security {
            return Err("the table has triggers or policies".to_owned());
        }
        if self.statement.names_physical_rows || merge.target.only || table.is_partitioned {
            return Err("it names physical rows".to_owned());
        }
        if !merge.source_span.is_known() || !merge.on.span.is_known() {
            return Err("its source is not found in the text".to_owned());
        }
        let is_target = |cte: &Cte| merge.target.schema.is_none() && cte.name == merge.target.name;
        if merge.with.iter().flat_map(|w| &w.ctes).any(is_target) {
            return Err("a common table expression has the target's name".to_owned());
        }
        let (edits, text) = (self.coordinator_edits(), self.text());
        let taken = |span: Span| edits.apply_to(text, span).as_written();
        let name = quote_ident(merge.target.reference_name());
        let mut cases = String::new();
        let mut values: Vec<String> = Vec::new();
        let mut actions = Vec::new();
        for (number, clause) in (1..).zip(&merge.clauses) {
            let matched = match clause.matched {
                MergeMatch::Matched => "IS NOT NULL",
                MergeMatch::NotMatchedByTarget => "IS NULL",
                MergeMatch::NotMatchedBySource => return Err("WHEN NOT MATCHED BY SOURCE".to_owned()),
            };
            cases.push_str(&format!(" WHEN {name}.ctid {matched}"));
            if let Some(condition) = &clause.condition {
                if !condition.span.is_known() {
                    return Err("a condition is not found in the text".to_owned());
                }
                cases.push_str(&format!(" AND ({}\n)", taken(condition.span)));
            }
            cases.push_str(&format!(" THEN {number}"));
            if clause.matched == MergeMatch::NotMatchedByTarget {
                self.check_source_names(clause, table)?;
            }
            let mut computed = |column: &str, value: Option<&Expr>| -> Result<Option<(String, Option<usize>)>> {
                let column = table.column(column).ok_or("no such column")?;
                let is_default = value.is_none_or(|v| matches!(v.kind, ExprKind::Default));
                if !is_default
                    && matches!(column.default, ColumnDefault::Generated | ColumnDefault::Identity { always: true, .. })
                {
                    return Err("a value for a generated column".to_owned());
                }
                let sql = match value.filter(|_| !is_default) {
                    Some(value) if matches!(value.kind, ExprKind::Star(_)) || !value.span.is_known() => {
                        return Err("a value is not found in the text".to_owned());
                    }
                    Some(value) => taken(value.span),
                    None => match default_sql(column) {
                        Some(sql) => sql,
                        // The worker knows it as well.
                        None => return Ok(value.map(|_| (column.name.clone(), None))),
                    },
                };
                let is_key = table.key_column().is_some_and(|k| k.name == column.name);
                values.push(format!(
                    "CASE WHEN {ACTION}.pgherd_number = {number} THEN ({sql}\n)::{}::pg_catalog.text END",
                    evaluation_type(column, is_key)
                ));
                Ok(Some((column.name.clone(), Some(values.len() - 1))))
            };
            actions.push(match &clause.action {
                MergeAction::Nothing => RowAction::Nothing,
                MergeAction::Delete => RowAction::Delete,
                MergeAction::Update(set) => {
                    if set.iter().any(|a| a.indirection || a.multi) {
                        return Err("several columns are assigned at once, or a part of one".to_owned());
                    }
                    let set: Result<Vec<_>> = set.iter().map(|a| computed(&a.column, Some(&a.value))).collect();
                    RowAction::Update(set?.into_iter().flatten().collect())
                }
                MergeAction::Insert { columns, values: given } => {
                    if !clause.span.is_known() || clause.span.of(text).to_ascii_lowercase().contains("overriding") {
                        return Err("OVERRIDING".to_owned());
                    }
                    let position = |name: &str| match columns.is_empty() {
                        true => table.columns.iter().position(|c| c.name == name),
                        false => columns.iter().position(|c| c == name),
                    };
                    let all: Result<Vec<_>> = table
                        .columns
                        .iter()
                        .map(|c| computed(&c.name, position(&c.name).and_then(|at| given.get(at))))
                        .collect();
                    RowAction::Insert(all?.into_iter().flatten().collect())
                }
            });
        }
        let list: String = values.iter().map(|value| format!(", {value}")).collect();
        let select = format!(
            "{} SELECT {ACTION}.pgherd_number, {name}.ctid{list} FROM {} LEFT JOIN {} AS {name} ON ({}\n) \
             CROSS JOIN LATERAL (SELECT CASE{cases} ELSE 0 END AS pgherd_number OFFSET 0) AS {ACTION} \
             WHERE {ACTION}.pgherd_number > 0",
            if merge.with_span.is_known() { taken(merge.with_span) } else { String::new() },
            taken(merge.source_span),
            taken(merge.target.full_span),
            taken(merge.on.span),
        );
        let merge = MergeRows { table: table.clone(), select: select.trim_start().to_owned(), actions };
        let mut plan = self.plan(Tier::MergeRows(merge), format!("{why}; its rows are changed one by one"));
        plan.writes = true;
        Ok(plan)
    }

    /// Where nothing is matched names are the source's, and in the join they must not be the target's as well.
    fn check_source_names(&self, clause: &MergeClause, table: &Table) -> Result<()> {
        let mut ambiguous = false;
        let mut look = |e: &Expr| {
            if let ExprKind::Column(path) = &e.kind {
                ambiguous |= path.len() == 1 && path.first().is_some_and(|name| table.column(name).is_some());
            }
        };
        let values = match &clause.action {
            MergeAction::Insert { values, .. } => values.as_slice(),
            _ => &[],
        };
        clause.condition.iter().chain(values).for_each(|e| e.walk(&mut look));
        if ambiguous { Err("a name may be the target's".to_owned()) } else { Ok(()) }
    }
}
