//! MERGE into a distributed table by any condition and any values: the coordinator joins the target's rows with the
//! source's and computes for each pair which action it is and what is assigned or inserted. It tells rows of the target
//! by their places, to which the changes are brought; what is inserted follows by INSERT statements.
//!
//! Conditions and values are computed once for each pair, where all tables can be read, so that whatever PostgreSQL
//! accepts in them is right.

use std::sync::Arc;

use pgherd_catalog::{Column, ColumnDefault, Table, TableKind};
use pgherd_sql::Splice;
use pgherd_sql::ast::*;

use crate::context::{Context, qualified, quote_ident};
use crate::insert::{default_sql, time_default};
use crate::merge_source::{Names, SOURCE, single_name};
use crate::modify::{fires, sets_to_sequence};
use crate::plan::*;

type Result<T> = std::result::Result<T, String>;

/// The part's column with the number of a pair's action, from 1; 0 for DO NOTHING.
const ACTION: &str = "pgherd_action";
/// The part's column with the place of the target's row.
const ROW: &str = "pgherd_row";
/// Stands for the columns of `*` until it is known how many others there are.
const STAR: &str = "{{star}}";
/// What computes the action.
const CHOSEN: &str = "pgherd_chosen";

/// What the part computes for the actions.
struct Computed<'c> {
    text: &'c str,
    /// The target's name in the text.
    target: String,
    /// The source's items alone, as a FROM clause: what is inserted does not see the target.
    source: String,
    /// The part's columns behind action and place.
    columns: Vec<String>,
    /// Subqueries that give several columns.
    subqueries: Vec<String>,
    /// Columns of the source that are inserted as they are, whatever they are called.
    star: Option<String>,
}

impl Computed<'_> {
    fn at(column: usize) -> String {
        format!("{SOURCE}.pgherd_{column}")
    }

    fn column(&mut self, text: &str) -> String {
        let number = self.columns.len() + 1;
        self.columns.push(format!("{text} AS pgherd_{number}"));
        Self::at(number)
    }

    /// An expression that does not see the target's columns.
    fn of_source(&self, expr: &Expr) -> String {
        let text = expr.span.of(self.text);
        let mut names = false;
        expr.walk(&mut |e| {
            names |= matches!(e.kind, ExprKind::Column(_) | ExprKind::Star(_) | ExprKind::Sublink(_));
        });
        match names {
            // For each row anew, whatever is in it.
            true => format!("(SELECT {text} FROM {} WHERE {}.ctid IS NULL)", self.source, self.target),
            false => format!("({text})"),
        }
    }

    /// A value of an action, as the rest names it.
    fn value(&mut self, expr: &Expr, action: usize, inserted: bool) -> Result<String> {
        if !expr.span.is_known() {
            return Err("a value is not found in the text".to_owned());
        }
        // A literal or parameter has the type of what it is assigned to.
        if matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Default) {
            return Ok(expr.span.of(self.text).to_owned());
        }
        let computed = match inserted {
            true => self.of_source(expr),
            false => format!("({})", expr.span.of(self.text)),
        };
        Ok(self.chosen(&computed, action))
    }

    /// What is computed for the pairs of one action alone.
    fn chosen(&mut self, text: &str, action: usize) -> String {
        self.column(&format!("CASE WHEN {CHOSEN}.{ACTION} = {action} THEN {text} END"))
    }

    /// `(a, b) = (SELECT …)`: a row at the most.
    fn values_of(&mut self, query: &Query, width: usize, action: usize) -> Result<Vec<String>> {
        if !query.span.is_known() {
            return Err("a value is not found in the text".to_owned());
        }
        let number = self.subqueries.len() + 1;
        let name = format!("pgherd_values_{number}");
        let names: Vec<String> = (1..=width).map(|column| format!("pgherd_c{column}")).collect();
        self.subqueries.push(format!(
            " LEFT JOIN LATERAL (SELECT *, CASE WHEN pgherd_count > 1 THEN \
             (SELECT pgherd_count UNION ALL SELECT pgherd_count) END AS pgherd_one \
             FROM (SELECT *, pg_catalog.count(*) OVER () AS pgherd_count FROM ({}) AS pgherd_query ({}) \
             WHERE {CHOSEN}.{ACTION} = {action}) AS pgherd_counted) AS {name} ON true",
            query.span.of(self.text),
            names.join(", ")
        ));
        Ok(names.iter().map(|column| self.column(&format!("{name}.{column}"))).collect())
    }
}

impl Context<'_> {
    pub fn merge_by_rows(&self, names: &Names<'_>, table: &Arc<Table>) -> Result<Stage> {
        let merge = names.merge;
        if !merge.returning.is_empty() {
            return Err("RETURNING of actions that are run one after another".to_owned());
        }
        // What another transaction commits between the steps would be taken for a row without a source.
        if merge.clauses.iter().any(|c| c.matched == MergeMatch::NotMatchedBySource) {
            return Err("WHEN NOT MATCHED BY SOURCE with actions that are run one after another".to_owned());
        }
        if !merge.on.span.is_known() || merge.target.only && table.is_partitioned {
            return Err("its clauses are not found in the text".to_owned());
        }
        if !matches!(table.kind, TableKind::Distributed { .. }) {
            return Err("the target is not distributed".to_owned());
        }
        if !self.analysis.modifying.is_empty() && self.analysis.has_parts_unknown {
            return Err("a data-modifying common table expression".to_owned());
        }
        let text = self.text();
        let target = quote_ident(merge.target.reference_name());
        let items = items_of(&merge.source)?;
        let source: Vec<String> = items.iter().map(|n| format!("(SELECT {n}.*) AS {n}")).collect();
        let mut computed = Computed {
            text,
            target: target.clone(),
            source: source.join(", "),
            columns: Vec::new(),
            subqueries: Vec::new(),
            star: None,
        };
        let (mut matched, mut not_matched) = (String::new(), String::new());
        let (mut changes, mut moves, mut inserts) = (String::new(), Vec::new(), Vec::new());
        for (action, clause) in (1..).zip(&merge.clauses) {
            let by_target = clause.matched == MergeMatch::NotMatchedByTarget;
            let condition = match &clause.condition {
                Some(condition) if !condition.span.is_known() => {
                    return Err("a condition is not found in the text".to_owned());
                }
                Some(condition) if by_target => computed.of_source(condition),
                Some(condition) => condition.span.of(text).to_owned(),
                None => "true".to_owned(),
            };
            let number = if matches!(clause.action, MergeAction::Nothing) { 0 } else { action };
            let cases = if by_target { &mut not_matched } else { &mut matched };
            cases.push_str(&format!(" WHEN {condition} THEN {number}"));
            let when = format!(" WHEN MATCHED AND {SOURCE}.{ACTION} = {action} THEN ");
            match &clause.action {
                MergeAction::Nothing => {}
                MergeAction::Delete => changes.push_str(&format!("{when}DELETE")),
                MergeAction::Update(set) => {
                    let values = self.assigned(set, action, table, &mut computed)?;
                    if self.keeps_key(set, names, table) {
                        let set: Vec<String> =
                            values.iter().map(|(c, value)| format!("{} = {value}", quote_ident(c))).collect();
                        changes.push_str(&format!("{when}UPDATE SET {}", set.join(", ")));
                    } else {
                        let insert = moved(&values, action, table, &mut computed)?;
                        changes.push_str(&format!("{when}DELETE"));
                        moves.push(format!("{insert}{}", chosen_rows(action)));
                    }
                }
                MergeAction::Insert { columns, overriding, values } => {
                    let values = (values.as_slice(), *overriding);
                    let insert = self.inserted(columns, values, action, names, table, &mut computed)?;
                    inserts.push(format!("{insert}{}", chosen_rows(action)));
                }
            }
        }
        let side = |cases: &str| match cases {
            "" => "NULL".to_owned(),
            cases => format!("CASE{cases} END"),
        };
        let mut list = format!("{CHOSEN}.{ACTION}, {target}.ctid AS {ROW}");
        for column in computed.columns.iter().chain(&computed.star) {
            list.push_str(&format!(", {column}"));
        }
        let join = if not_matched.is_empty() { "JOIN" } else { "RIGHT JOIN" };
        let mut part = format!(
            "{} SELECT {list} FROM {} AS {target} {join} {} ON ({}) CROSS JOIN LATERAL (SELECT CASE WHEN {target}.ctid \
             IS NOT NULL THEN {} ELSE {} END OFFSET 0) AS {CHOSEN} ({ACTION})",
            merge.with_span.of(text),
            qualified(table),
            merge.source_span.of(text),
            merge.on.span.of(text),
            side(&matched),
            side(&not_matched),
        );
        part.push_str(&computed.subqueries.concat());
        part.push_str(&format!(" WHERE {CHOSEN}.{ACTION} > 0"));
        for number in 1..=computed.subqueries.len() {
            part.push_str(&format!(" AND pgherd_values_{number}.pgherd_one IS NULL"));
        }
        // The columns behind action, place and values.
        let star = format!("{{{{stage 1 from {}}}}}", computed.columns.len() + 3);
        let mut steps = Vec::new();
        if !changes.is_empty() {
            let place = |number: usize| format!("pg_catalog.split_part({SOURCE}.{ROW}, ' ', {number})");
            let sql = format!(
                "MERGE INTO {} AS {target} USING {{{{stage 1}}}} AS {SOURCE} ON {target}.tableoid = \
                 {}::pg_catalog.oid AND {target}.ctid = {}::pg_catalog.tid{changes}",
                qualified(table),
                place(1),
                place(2)
            );
            let sql = Splice::made(&sql);
            steps.push(Step::Workers(Scatter { table: table.clone(), keys: None, sql, combine: Combine::Concatenate }));
        }
        steps.extend(moves.into_iter().map(Step::Moved));
        steps.extend(inserts.into_iter().map(|sql| Step::Planned(sql.replace(STAR, &star))));
        self.check_modifying(std::slice::from_ref(table))?;
        let part = StagePart::new(part.trim_start().to_owned(), Ship::ByPlace { column: 1, table: table.clone() });
        Ok(Stage { parts: vec![part], rest: Rest::Steps(steps), collated: false, otherwise: None })
    }

    /// Columns and values that stand behind SET.
    fn assigned<'s>(
        &self,
        set: &'s [Assignment],
        action: usize,
        table: &Table,
        computed: &mut Computed<'_>,
    ) -> Result<Vec<(&'s str, String)>> {
        // The next value of a column's sequence, or the transaction's time, where that is its default.
        let next = |a: &Assignment| {
            let column = table.columns.iter().find(|c| c.name == a.column)?;
            let is_computed = match &column.default {
                _ if a.multi || !matches!(a.value.kind, ExprKind::Default) => false,
                ColumnDefault::Sequence { .. } | ColumnDefault::Identity { always: false, .. } => true,
                _ => time_default(column).is_some(),
            };
            default_sql(column).filter(|_| is_computed)
        };
        let others: Vec<Assignment> = set.iter().filter(|a| next(a).is_none()).cloned().collect();
        if sets_to_sequence(&others, table) {
            return Err("a column's default needs the coordinator".to_owned());
        }
        if set.iter().any(|a| a.indirection) {
            return Err("a part of a column is assigned".to_owned());
        }
        let mut all = Vec::new();
        let mut rest = set;
        while let Some(first) = rest.first() {
            let width = match first.multi {
                true => rest.iter().take_while(|a| a.multi && a.value.span == first.value.span).count(),
                false => 1,
            };
            let values = match (&first.value.kind, next(first)) {
                (_, Some(next)) => vec![computed.chosen(&next, action)],
                _ if !first.multi => vec![computed.value(&first.value, action, false)?],
                (ExprKind::Sublink(link), _) => computed.values_of(&link.query, width, action)?,
                (ExprKind::Row(values), _) if values.len() == width => {
                    values.iter().map(|v| computed.value(v, action, false)).collect::<Result<_>>()?
                }
                _ => return Err("several columns are assigned at once".to_owned()),
            };
            all.extend(rest[..width].iter().map(|a| a.column.as_str()).zip(values));
            rest = &rest[width..];
        }
        Ok(all)
    }

    /// The row stays where it is.
    fn keeps_key(&self, set: &[Assignment], names: &Names<'_>, table: &Table) -> bool {
        let key = table.key_column().map_or("", |key| &key.name);
        set.iter().all(|a| a.column != key || !a.multi && self.is_target_key(&a.value, names))
    }

    /// `INSERT INTO … SELECT …` without its FROM.
    fn inserted(
        &self,
        columns: &[String],
        (values, overriding): (&[Expr], Overriding),
        action: usize,
        names: &Names<'_>,
        table: &Table,
        computed: &mut Computed<'_>,
    ) -> Result<String> {
        let target = names.merge.target.span.of(self.text());
        let is_star = |e: &Expr| matches!(e.kind, ExprKind::Star(_));
        let is_default = |e: &Expr| matches!(e.kind, ExprKind::Default);
        if values.iter().any(is_star) {
            if values.iter().any(is_default) {
                return Err("DEFAULT beside columns that are not known here".to_owned());
            }
            let list = if columns.is_empty() {
                String::new()
            } else {
                format!(" ({})", columns.iter().map(|c| quote_ident(c)).collect::<Vec<_>>().join(", "))
            };
            let mut select = Vec::new();
            for value in values {
                let ExprKind::Star(path) = &value.kind else {
                    select.push(computed.value(value, action, true)?);
                    continue;
                };
                let [name] = path.as_slice() else { return Err("a qualified *".to_owned()) };
                let star = format!("{}.*", quote_ident(name));
                if computed.star.as_ref().is_some_and(|known| *known != star) {
                    return Err("* of several items".to_owned());
                }
                computed.star = Some(star);
                select.push(STAR.to_owned());
            }
            return Ok(format!("INSERT INTO {target}{list}{} SELECT {}", overriding.clause(), select.join(", ")));
        }
        let all: Vec<String> = table.columns.iter().map(|c| c.name.clone()).collect();
        let columns = if columns.is_empty() { &all[..] } else { columns };
        if values.len() > columns.len() {
            return Err("more values than columns".to_owned());
        }
        let (mut list, mut select) = (Vec::new(), Vec::new());
        for (column, value) in columns.iter().zip(values).filter(|(_, value)| !is_default(value)) {
            list.push(quote_ident(column));
            select.push(computed.value(value, action, true)?);
        }
        if list.is_empty() {
            return Err("DEFAULT VALUES".to_owned());
        }
        let overriding = overriding.clause();
        Ok(format!("INSERT INTO {target} ({}){overriding} SELECT {}", list.join(", "), select.join(", ")))
    }
}

fn chosen_rows(action: usize) -> String {
    format!(" FROM {{{{stage 1}}}} AS {SOURCE} WHERE {SOURCE}.{ACTION} = {action}")
}

/// `INSERT INTO … SELECT …`, without its FROM, of a row that was deleted, with its new values.
fn moved(values: &[(&str, String)], action: usize, table: &Table, computed: &mut Computed<'_>) -> Result<String> {
    if fires(table) {
        return Err("it modifies the distribution column, and the table has triggers, policies, or foreign keys to it"
            .to_owned());
    }
    let (mut list, mut select) = (Vec::new(), Vec::new());
    for column in table.columns.iter().filter(|c| c.default != ColumnDefault::Generated) {
        let name = quote_ident(&column.name);
        let value = match values.iter().find(|(assigned, _)| *assigned == column.name) {
            Some((_, value)) if value.eq_ignore_ascii_case("default") => continue,
            Some((_, value)) => value.clone(),
            None => {
                let kept = format!("{}.{name}", computed.target);
                computed.chosen(&kept, action)
            }
        };
        list.push(name);
        select.push(value);
    }
    let is_identity = |c: &Column| matches!(c.default, ColumnDefault::Identity { .. });
    let overriding = if table.columns.iter().any(is_identity) { Overriding::System } else { Overriding::No };
    let (list, select) = (list.join(", "), select.join(", "));
    Ok(format!("INSERT INTO {} ({list}){} SELECT {select}", qualified(table), overriding.clause()))
}

/// What a source's columns are qualified by.
fn items_of(item: &FromItem) -> Result<Vec<String>> {
    match item {
        FromItem::Join(join) => match &join.alias {
            Some(alias) => Ok(vec![quote_ident(&alias.name)]),
            None => Ok([items_of(&join.left)?, items_of(&join.right)?].concat()),
        },
        FromItem::Subquery { alias: None, .. } => Err("a source without a name".to_owned()),
        other => Ok(vec![quote_ident(single_name(other).ok_or("a source without a name")?)]),
    }
}
