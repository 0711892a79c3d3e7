//! What the workers run and the statement that PostgreSQL runs over their rows, for answers that are more than the rows
//! one after another. Texts are the user's own with ranges replaced, never printed from a tree.

use pgherd_catalog::{Column, FIRST_USER_OID};
use pgherd_sql::ast::*;
use pgherd_sql::{Edits, Outline, Splice};

use crate::analysis::Found;
use crate::context::{Context, Count, count_of, quote_ident, with_brackets};
use crate::plan::Merge;

type Result<T> = std::result::Result<T, String>;

/// `pg_collation.oid` of the database's default.
const DEFAULT_COLLATION: u32 = 100;

fn outline_of(context: &Context<'_>, select: &Select, query: &Query) -> Result<Outline> {
    let outline = context.statement.outline().ok_or("the statement's clauses are not in one place")?;
    if context.text().contains("{{") {
        return Err("the text has braces like the merge statement's".to_owned());
    }
    if outline.items.len() != select.items.len() || outline.order_by.len() != query.order_by.len() {
        return Err("the statement's clauses are not found in its text".to_owned());
    }
    Ok(outline)
}

/// How a value sorts and compares in the merge statement, where columns have the default collation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collation {
    Default,
    C,
    /// PostgreSQL has to tell; the partial columns then have it ([`Merge::collated`]).
    Asked,
}

impl Collation {
    fn suffix(self) -> &'static str {
        match self {
            Collation::Default | Collation::Asked => "",
            Collation::C => " COLLATE pg_catalog.\"C\"",
        }
    }
}

pub(crate) fn is_plain(collation: u32) -> bool {
    collation == 0 || collation == DEFAULT_COLLATION
}

/// What is known of the collation of something that an expression is made of.
#[derive(Clone, Copy)]
enum Source {
    /// A column's, `pg_collation.oid`.
    Column(u32),
    /// Of a composite value, whose fields have collations of their own.
    Fields,
    /// Computed in a subquery, where it is not followed.
    Computed,
}

impl Source {
    /// `is_whole`: what is asked for is this value, and no field of it.
    fn of(column: Option<&Column>, is_whole: bool) -> Source {
        match column {
            Some(c) if c.collation == 0 && c.type_oid >= FIRST_USER_OID && !is_whole => Source::Fields,
            Some(c) => Source::Column(c.collation),
            None => Source::Computed,
        }
    }
}

impl Context<'_> {
    /// The collation of an expression's value as far as the columns in it tell.
    fn collation_of(&self, expr: &Expr, scope: usize) -> Result<Collation> {
        if let ExprKind::Collate { collation, .. } = &expr.kind {
            return match collation.last().map(String::as_str) {
                Some("C" | "POSIX") => Ok(Collation::C),
                Some("default") => Ok(Collation::Default),
                _ => Err("a collation of its own".to_owned()),
            };
        }
        let mut found = Vec::new();
        let mut explicit = false;
        let is_column = matches!(expr.kind, ExprKind::Column(_));
        expr.walk(&mut |e| match &e.kind {
            ExprKind::Column(_) => match self.analysis.resolve_expr(e, scope) {
                Found::Column(id, _) => found.push(Source::of(self.analysis.column(id), is_column)),
                _ => found.push(Source::Computed),
            },
            ExprKind::Collate { .. } => explicit = true,
            _ => {}
        });
        if explicit {
            return Err("a collation of its own inside an expression".to_owned());
        }
        Ok(self.combine_collations(&found))
    }

    fn combine_collations(&self, found: &[Source]) -> Collation {
        let is_default = |source: &Source| match source {
            Source::Column(collation) => is_plain(*collation),
            Source::Fields => false,
            Source::Computed => self.has_plain_collations(),
        };
        if found.iter().all(is_default) { Collation::Default } else { Collation::Asked }
    }

    /// Where no table has another collation, neither has anything computed from it.
    fn has_plain_collations(&self) -> bool {
        self.analysis.instances.iter().flat_map(|i| &i.table.columns).all(|c| is_plain(c.collation))
    }
}

/// An output column of the statement.
struct Output<'e> {
    name: String,
    /// None for one that `*` gives.
    expr: Option<&'e Expr>,
    collation: Result<Collation>,
}

/// Every output column, with `*` expanded.
fn outputs<'e>(context: &Context<'_>, select: &'e Select, scope: usize) -> Result<Vec<Output<'e>>> {
    let mut all = Vec::new();
    for item in &select.items {
        if let ExprKind::Star(path) = &item.expr.kind {
            let columns = context.analysis.expand_star(path, scope).ok_or("the columns of * are not known here")?;
            for (name, id) in columns {
                let column = id.and_then(|id| context.analysis.column(id));
                let collation = context.combine_collations(&[Source::of(column, true)]);
                all.push(Output { name, expr: None, collation: Ok(collation) });
            }
        } else {
            let name = item.alias.clone().unwrap_or_else(|| crate::naming::column_name(&item.expr));
            let collation = context.collation_of(&item.expr, scope);
            all.push(Output { name, expr: Some(&item.expr), collation });
        }
    }
    Ok(all)
}

fn direction(sort: &SortBy) -> Result<&'static str> {
    if sort.using {
        return Err("ORDER BY … USING".to_owned());
    }
    Ok(match (sort.descending, sort.nulls_first) {
        (false, None) => "",
        (false, Some(true)) => " NULLS FIRST",
        (false, Some(false)) => " NULLS LAST",
        (true, None) => " DESC",
        (true, Some(true)) => " DESC NULLS FIRST",
        (true, Some(false)) => " DESC NULLS LAST",
    })
}

/// The output column an ORDER BY item names: by number, or by a bare output name (which wins over an input column).
fn output_of(sort: &Expr, outputs: &[Output<'_>]) -> Option<usize> {
    match &sort.kind {
        ExprKind::Const(Const::Integer(n)) => {
            usize::try_from(*n).ok().and_then(|n| n.checked_sub(1)).filter(|n| *n < outputs.len())
        }
        ExprKind::Column(path) if path.len() == 1 => outputs.iter().position(|o| Some(&o.name) == path.first()),
        _ => None,
    }
}

fn limit_text(count: &Count) -> Option<String> {
    match count {
        Count::None | Count::Other => None,
        Count::Constant(n) => Some(n.to_string()),
        Count::Param(n) => Some(format!("${n}::pg_catalog.int8")),
    }
}

/// Rows that each worker gives whole, ordered, limited or made distinct at the end.
pub(crate) fn rows(context: &Context<'_>, query: &Query, select: &Select, level: usize) -> Result<(Splice, Merge)> {
    let outline = outline_of(context, select, query)?;
    let scope = context.analysis.levels[level].scope;
    let outputs = outputs(context, select, scope)?;
    let text = context.text();
    let edits = context.worker_edits();
    let mut shipped: Vec<&Expr> = select.items.iter().map(|i| &i.expr).collect();
    shipped.extend(query.order_by.iter().map(|s| &s.expr));
    check_shippable(context, &shipped)?;
    let distinct = matches!(select.distinct, Distinct::All);
    // Rows of DISTINCT ON are whole per worker, but the order is part of its meaning there.
    let distinct_on = matches!(select.distinct, Distinct::On(_));
    let mut collated = false;
    if distinct {
        for output in &outputs {
            collated |= output.collation.clone()? == Collation::Asked;
        }
    }
    // Rows are sorted before such a function makes several of each, unless they are sorted by what it gives.
    let gives_rows = |e: &Expr| calls_any(e, &context.snapshot.set_returning_functions);
    let sorts_by = |sort: &SortBy| match output_of(&sort.expr, &outputs) {
        Some(at) => outputs[at].expr.is_some_and(gives_rows),
        None => gives_rows(&sort.expr),
    };
    let is_spread = select.items.iter().any(|item| gives_rows(&item.expr));
    if is_spread && !query.order_by.is_empty() && !query.order_by.iter().any(sorts_by) {
        return Err("a set-returning function beside ORDER BY".to_owned());
    }
    let mut hidden: Vec<Span> = Vec::new();
    let mut order = Vec::new();
    for (sort, span) in query.order_by.iter().zip(&outline.order_by) {
        let expr_span = sort_expr_span(sort, *span, text);
        let (column, collation) = match output_of(&sort.expr, &outputs) {
            Some(at) => ((at + 1).to_string(), outputs[at].collation.clone()?),
            None => {
                let same = |o: &Output<'_>| o.expr.is_some_and(|e| e.span.of(text) == expr_span.of(text));
                match outputs.iter().position(same) {
                    Some(at) => ((at + 1).to_string(), outputs[at].collation.clone()?),
                    None if distinct => return Err("ORDER BY of something DISTINCT leaves out".to_owned()),
                    None => {
                        let collation = context.collation_of(&sort.expr, scope)?;
                        hidden.push(expr_span);
                        (format!("coalesce(c{})", outputs.len() + hidden.len()), collation)
                    }
                }
            }
        };
        collated |= collation == Collation::Asked;
        // An output column is named by its number: an expression with COLLATE has to repeat the column.
        let column = match (collation, column.parse::<usize>()) {
            (Collation::C, Ok(n)) if distinct => return Err(format!("the collation of distinct column {n}")),
            (Collation::C, Ok(n)) => format!("coalesce(c{n})"),
            _ => column,
        };
        order.push(format!("{column}{}{}", collation.suffix(), direction(sort)?));
    }
    let (limit, offset) = (count_of(query.limit.as_ref()), count_of(query.offset.as_ref()));

    // The workers' text.
    let mut sql = edits.apply_to(text, Span::new(0, outline.select.end))?;
    sql.push_text(" ", None);
    for (at, span) in outline.items.iter().enumerate() {
        if at > 0 {
            sql.push_text(", ", None);
        }
        sql.append(edits.apply_to(text, *span)?);
    }
    for (at, span) in hidden.iter().enumerate() {
        sql.push_text(", ", None);
        sql.append(edits.apply_to(text, *span)?);
        // The statement's ORDER BY may name an output that is called as this would be.
        sql.push_text(&format!(" AS pgherd_sort{at}"), None);
    }
    for span in [outline.from_where, outline.group_clause, outline.having, outline.window].into_iter().flatten() {
        sql.push_text(" ", None);
        sql.append(edits.apply_to(text, span)?);
    }
    let pushed = pushed_limit(&limit, &offset);
    if let (Some(span), true) = (outline.order_clause, pushed.is_some() || distinct_on) {
        sql.push_text(" ", None);
        sql.append(edits.apply_to(text, span)?);
    }
    if let Some(pushed) = pushed {
        sql.push_text(&format!(" LIMIT {pushed}"), None);
    }
    if let Some(locking) = outline.locking {
        if outline.limit_clause.is_some_and(|limit| locking.contains(limit)) {
            return Err("row locks before and behind LIMIT".to_owned());
        }
        sql.push_text(" ", None);
        sql.append(edits.apply_to(text, locking)?);
    }

    // The merge.
    let mut merge = String::from(if distinct { "SELECT DISTINCT " } else { "SELECT " });
    for (at, output) in outputs.iter().enumerate() {
        if at > 0 {
            merge.push_str(", ");
        }
        merge.push_str(&format!("c{} AS {}", at + 1, quote_ident(&output.name)));
    }
    merge.push_str(" FROM {{partial}}");
    finish(&mut merge, &order, &limit, &offset);
    Ok((sql, Merge { sql: merge, columns: outputs.len() + hidden.len(), collated }))
}

/// UNION, made distinct at the end; UNION ALL with ORDER BY or LIMIT.
pub(crate) fn set_operation(
    context: &Context<'_>,
    query: &Query,
    level: usize,
    distinct: bool,
) -> Result<(Splice, Merge)> {
    let text = context.text();
    if text.contains("{{") {
        return Err("the text has braces like the merge statement's".to_owned());
    }
    check_shippable(context, &[])?;
    // Columns of all arms meet: only the default collation is followed through.
    let collated = !context.has_plain_collations();
    let names = context.analysis.levels[level].outputs.as_ref().ok_or("the columns of * are not known here")?;
    let mut order = Vec::new();
    for sort in &query.order_by {
        let at = match &sort.expr.kind {
            ExprKind::Const(Const::Integer(n)) => usize::try_from(*n).ok(),
            ExprKind::Column(path) if path.len() == 1 => {
                names.iter().position(|(name, _)| Some(name) == path.first()).map(|at| at + 1)
            }
            _ => None,
        };
        order.push(format!("{}{}", at.ok_or("ORDER BY of an expression")?, direction(sort)?));
    }
    let (limit, offset) = (count_of(query.limit.as_ref()), count_of(query.offset.as_ref()));
    let edits = context.worker_edits();
    let (tail, order_clause) = context.statement.query_tail();
    let mut sql = edits.apply_to(text, Span::new(0, text[..tail].trim_end().len()))?;
    if let Some(pushed) = pushed_limit(&limit, &offset) {
        if let Some(span) = order_clause {
            sql.push_text(" ", None);
            sql.append(edits.apply_to(text, span)?);
        }
        sql.push_text(&format!(" LIMIT {pushed}"), None);
    }
    let items: Vec<String> =
        names.iter().enumerate().map(|(at, (name, _))| format!("c{} AS {}", at + 1, quote_ident(name))).collect();
    let word = if distinct { "SELECT DISTINCT" } else { "SELECT" };
    let mut merge = format!("{word} {} FROM {{{{partial}}}}", items.join(", "));
    finish(&mut merge, &order, &limit, &offset);
    Ok((sql, Merge { sql: merge, columns: names.len(), collated }))
}

/// How many rows of each worker can matter.
fn pushed_limit(limit: &Count, offset: &Count) -> Option<String> {
    match (limit, offset) {
        (Count::None, _) => None,
        // Beyond what LIMIT can say there is no limit.
        (Count::Constant(l), Count::Constant(o)) => {
            l.checked_add(*o).filter(|n| i64::try_from(*n).is_ok()).map(|n| n.to_string())
        }
        (limit, Count::None) => limit_text(limit),
        (limit, offset) => {
            let (limit, offset) = (limit_text(limit).unwrap_or_default(), limit_text(offset).unwrap_or_default());
            // Beyond what LIMIT can say it is the most.
            Some(format!("LEAST({limit}::pg_catalog.numeric + {offset}, {})::pg_catalog.int8", i64::MAX))
        }
    }
}

fn finish(merge: &mut String, order: &[String], limit: &Count, offset: &Count) {
    if !order.is_empty() {
        merge.push_str(&format!(" ORDER BY {}", order.join(", ")));
    }
    if let Some(limit) = limit_text(limit) {
        merge.push_str(&format!(" LIMIT {limit}"));
    }
    if let Some(offset) = limit_text(offset) {
        merge.push_str(&format!(" OFFSET {offset}"));
    }
}

/// The ORDER BY item without ASC, DESC, NULLS …: the expression with the brackets around it.
fn sort_expr_span(sort: &SortBy, span: Span, text: &str) -> Span {
    let whole = with_brackets(text, sort.expr.span);
    if sort.expr.span.is_known() && span.contains(whole) { whole } else { sort.expr.span }
}

/// In ORDER BY a bare name is an output column before it is an input column, and the user's columns may be called
/// `c1`: a partial column that is no output column is written so that it is an expression.
fn unambiguous(column: &str) -> String {
    if column.starts_with('c') && column[1..].bytes().all(|b| b.is_ascii_digit()) {
        format!("coalesce({column})")
    } else {
        column.to_owned()
    }
}

/// A whole row or a row of several values cannot be sent between servers as one column.
fn check_shippable(context: &Context<'_>, exprs: &[&Expr]) -> Result<()> {
    if context.analysis.needs_parent_name {
        return Err("a whole row or a qualified table name".to_owned());
    }
    if exprs.iter().any(|e| matches!(e.kind, ExprKind::Row(_))) {
        return Err("a row of several values".to_owned());
    }
    Ok(())
}

/// Builds the partial columns of an aggregation.
struct Partials<'c, 'e> {
    context: &'c Context<'c>,
    scope: usize,
    /// Grouping expressions: columns `c1 …`.
    groups: Vec<Group<'e>>,
    /// Further texts of partial columns, in order after the groups.
    columns: Vec<Splice>,
    /// What each is, to share equal ones.
    texts: Vec<String>,
    /// Something of them sorts or compares by a collation that is not known here.
    collated: bool,
    edits: Edits,
}

struct Group<'e> {
    expr: &'e Expr,
    text: String,
    collation: Result<Collation>,
    /// A grouping that only the workers have: the argument of a DISTINCT aggregate,
    extra: bool,
    /// or a column that the others determine, being those of its table's primary key.
    dependent: bool,
    sql: Splice,
}

/// Types of which `(array_agg(x))[1]` is one of the values: a choice without arrays.
const SCALARS: [u32; 17] = [16, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950, 3802];

/// Aggregates whose partial results combine.
pub(crate) fn aggregates(
    context: &Context<'_>,
    query: &Query,
    select: &Select,
    level: usize,
) -> Result<(Splice, Merge)> {
    let outline = outline_of(context, select, query)?;
    let scope = context.analysis.levels[level].scope;
    let text = context.text();
    if select.grouping_sets || select.group_distinct || outline.group_by.len() != select.group_by.len() {
        return Err("grouping sets".to_owned());
    }
    if select.items.iter().any(|i| matches!(i.expr.kind, ExprKind::Star(_))) {
        return Err("* with GROUP BY".to_owned());
    }
    let mut partials = Partials {
        context,
        scope,
        groups: Vec::new(),
        columns: Vec::new(),
        texts: Vec::new(),
        collated: false,
        edits: context.worker_edits(),
    };
    for item in &select.group_by {
        let expr = context.group_expr(item, select, scope);
        if context.is_unclear(expr, select, scope) {
            return Err("GROUP BY a name that may be an input column".to_owned());
        }
        if matches!(expr.kind, ExprKind::Const(Const::Integer(_))) && std::ptr::eq(expr, item) {
            return Err("GROUP BY a number that is no output column".to_owned());
        }
        if has_sublink(expr) {
            return Err("a subquery in GROUP BY".to_owned());
        }
        check_shippable(context, &[expr])?;
        partials.group(expr, false)?;
    }
    // DISTINCT arguments become groupings of the workers: they come before the partial results.
    let mut exprs: Vec<&Expr> = select.items.iter().map(|i| &i.expr).collect();
    exprs.extend(select.having.iter());
    exprs.extend(query.order_by.iter().map(|s| &s.expr));
    let outputs = outputs(context, select, scope)?;
    if !select.group_by.is_empty() {
        select.items.iter().try_for_each(|i| partials.dependents(&i.expr))?;
        select.having.iter().try_for_each(|e| partials.dependents(e))?;
        let sorts = query.order_by.iter().map(|s| &s.expr);
        sorts.filter(|e| output_of(e, &outputs).is_none()).try_for_each(|e| partials.dependents(e))?;
    }
    for expr in &exprs {
        partials.distinct_arguments(expr)?;
    }

    let mut items = Vec::new();
    for (item, output) in select.items.iter().zip(&outputs) {
        let sql = partials.merged(&item.expr)?;
        items.push(format!("{sql} AS {}", quote_ident(&output.name)));
    }
    let having = match &select.having {
        Some(having) => Some(partials.merged(having)?),
        None => None,
    };
    let mut order = Vec::new();
    for sort in &query.order_by {
        let same = |o: &Output<'_>| o.expr.is_some_and(|e| e.span.of(text) == sort.expr.span.of(text));
        let at = output_of(&sort.expr, &outputs).or_else(|| outputs.iter().position(same));
        let sql = match at {
            // The output's own expression has its collation in it.
            Some(at) => {
                outputs[at].collation.clone()?;
                (at + 1).to_string()
            }
            None => {
                context.collation_of(&sort.expr, scope)?;
                unambiguous(&partials.merged(&sort.expr)?)
            }
        };
        order.push(format!("{sql}{}", direction(sort)?));
    }

    // The workers' text.
    let Partials { groups, columns, edits, mut collated, .. } = partials;
    collated |= groups.iter().any(|g| g.collation == Ok(Collation::Asked));
    let mut sql = edits.apply_to(text, Span::new(0, outline.whole.start))?;
    sql.push_text("SELECT ", None);
    let width = groups.len() + columns.len();
    let group_count = groups.len();
    let merged_groups: Vec<String> = groups
        .iter()
        .enumerate()
        .filter(|(_, g)| !g.extra)
        .map(|(at, g)| format!("c{}{}", at + 1, g.collation.as_ref().map_or("", |c| c.suffix())))
        .collect();
    let mut first = true;
    for column in groups.into_iter().map(|g| g.sql).chain(columns) {
        if !first {
            sql.push_text(", ", None);
        }
        first = false;
        sql.append(column);
    }
    if width == 0 {
        sql.push_text("1", None);
    }
    if let Some(span) = outline.from_where {
        sql.push_text(" ", None);
        sql.append(edits.apply_to(text, span)?);
    }
    if group_count > 0 {
        let list: Vec<String> = (1..=group_count).map(|n| n.to_string()).collect();
        sql.push_text(&format!(" GROUP BY {}", list.join(", ")), None);
    }

    // The merge.
    let distinct = match &select.distinct {
        Distinct::All => "DISTINCT ",
        _ => "",
    };
    let mut merge = format!("SELECT {distinct}{} FROM {{{{partial}}}}", items.join(", "));
    if !merged_groups.is_empty() {
        merge.push_str(&format!(" GROUP BY {}", merged_groups.join(", ")));
    }
    if let Some(having) = having {
        merge.push_str(&format!(" HAVING {having}"));
    }
    finish(&mut merge, &order, &count_of(query.limit.as_ref()), &count_of(query.offset.as_ref()));
    Ok((sql, Merge { sql: merge, columns: width.max(1), collated }))
}

/// Whether a function of these names is called.
fn calls_any(expr: &Expr, names: &pgherd_catalog::NameSet) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(&e.kind, ExprKind::Call(call) if names.contains(&call.name)));
    found
}

fn has_sublink(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Sublink(_)));
    found
}

impl<'e> Partials<'_, 'e> {
    fn text(&self) -> &str {
        &self.context.statement.text
    }

    /// Adds a grouping and gives its column's number.
    fn group(&mut self, expr: &'e Expr, extra: bool) -> Result<usize> {
        let text = expr.span.of(self.text()).to_owned();
        let sql = self.edits.apply_to(self.text(), expr.span)?;
        let collation = self.context.collation_of(expr, self.scope);
        self.groups.push(Group { expr, text, collation, extra, dependent: false, sql });
        Ok(self.groups.len())
    }

    /// Columns that stand beside aggregates without being grouped by. The coordinator takes the statement only where
    /// the groups have a primary key of theirs.
    fn dependents(&mut self, expr: &'e Expr) -> Result<()> {
        if self.group_of(expr, false).is_some() {
            return Ok(());
        }
        match &expr.kind {
            ExprKind::Column(_) => {
                let Found::Column(id, true) = self.context.analysis.resolve_expr(expr, self.scope) else {
                    return Ok(());
                };
                let scalar = self.context.analysis.column(id).is_some_and(|c| SCALARS.contains(&c.type_oid));
                // A distributed table's key has the distribution column in it.
                let of = self.context.analysis.instances.iter().find(|i| i.rel == id.rel);
                if scalar
                    && of.is_some_and(|i| i.table.is_reference())
                    && expr.span.is_known()
                    && self.dependent_of(expr).is_none()
                {
                    let at = self.group(expr, true)?;
                    self.groups[at - 1].dependent = true;
                }
            }
            ExprKind::Sublink(_) => {}
            ExprKind::Call(call) if self.context.analysis.is_aggregate(call) => {}
            _ => {
                let mut children = Vec::new();
                expr.for_each_child(&mut |child| children.push(child));
                children.into_iter().try_for_each(|child| self.dependents(child))?;
            }
        }
        Ok(())
    }

    /// The column of the workers that has a dependent column.
    fn dependent_of(&self, expr: &Expr) -> Option<usize> {
        let Found::Column(id, true) = self.context.analysis.resolve_expr(expr, self.scope) else { return None };
        let same = |g: &Group<'_>| {
            let found = self.context.analysis.resolve_expr(g.expr, self.scope);
            g.dependent && matches!(found, Found::Column(other, true) if other == id)
        };
        self.groups.iter().position(same).map(|at| at + 1)
    }

    /// The group an expression is.
    fn group_of(&self, expr: &Expr, extra: bool) -> Option<usize> {
        let text = expr.span.of(self.text());
        let id = match self.context.analysis.resolve_expr(expr, self.scope) {
            Found::Column(id, _) => Some(id),
            _ => None,
        };
        // A literal takes its type from where it stands: elsewhere the same text is another value.
        let is_bare = matches!(expr.kind, ExprKind::Const(_) | ExprKind::Param(_));
        self.groups
            .iter()
            .position(|group| {
                let same_column = id.is_some()
                    && matches!(self.context.analysis.resolve_expr(group.expr, self.scope), Found::Column(g, _) if Some(g) == id);
                let same_text = expr.span.is_known() && group.text == text && (!is_bare || group.expr.span == expr.span);
                (same_column || same_text) && (extra || !group.extra)
            })
            .map(|at| at + 1)
    }

    fn distinct_arguments(&mut self, expr: &'e Expr) -> Result<()> {
        let mut calls = Vec::new();
        expr.walk(&mut |e| {
            if let ExprKind::Call(call) = &e.kind
                && call.distinct
                && call.over.is_none()
            {
                calls.push(&**call);
            }
        });
        for call in calls {
            let harmless =
                matches!(call.name.as_str(), "min" | "max" | "bool_and" | "bool_or" | "every" | "bit_and" | "bit_or");
            if harmless {
                continue;
            }
            let ([arg], None) = (call.args.as_slice(), &call.filter) else {
                return Err(format!("{}(DISTINCT …) of this form", call.name));
            };
            if !matches!(call.name.as_str(), "count" | "sum" | "avg") {
                return Err(format!("{}(DISTINCT …) of this form", call.name));
            }
            check_shippable(self.context, &[arg])?;
            if has_sublink(arg) || self.context.collation_of(arg, self.scope).is_err() {
                return Err(format!("{}(DISTINCT …) of this form", call.name));
            }
            if self.group_of(arg, true).is_none() {
                self.group(arg, true)?;
            }
        }
        Ok(())
    }

    /// Adds a partial column and gives its number.
    fn column(&mut self, splice: Splice) -> usize {
        let text = splice.as_written();
        if let Some(at) = self.texts.iter().position(|t| *t == text) {
            return self.groups.len() + at + 1;
        }
        self.columns.push(splice);
        self.texts.push(text);
        self.groups.len() + self.columns.len()
    }

    /// An expression over groups and aggregates as the merge statement has it.
    fn merged(&mut self, expr: &'e Expr) -> Result<String> {
        let mut replaced = Edits::new();
        self.cover(expr, &mut replaced)?;
        if !expr.span.is_known() {
            return Err("an expression is not found in the text".to_owned());
        }
        // The time of the transaction, where it stands outside aggregates.
        if let (true, Some(now)) = (self.context.uses_now, self.context.session.multi_statement_txn_now) {
            let text = self.text().to_owned();
            expr.walk(&mut |e| {
                let new = crate::safety::now_replacement(e, &text, now);
                if let Some(new) = new.filter(|_| !replaced.is_covered(e.span)) {
                    replaced.cover(e.span, new);
                }
            });
            let inside = |(span, _): &(Span, String)| expr.span.contains(*span) && !replaced.is_covered(*span);
            let literals: Vec<_> = self.context.moving_literals(now).into_iter().filter(inside).collect();
            literals.into_iter().for_each(|(span, new)| {
                replaced.replace(span, new);
            });
        }
        Ok(replaced.apply_to(self.text(), expr.span)?.as_written())
    }

    fn cover(&mut self, expr: &'e Expr, out: &mut Edits) -> Result<()> {
        if let Some(column) = self.group_of(expr, false) {
            let collation = self.groups[column - 1].collation.clone()?;
            let text = match collation {
                Collation::Default | Collation::Asked => format!("c{column}"),
                Collation::C => format!("(c{column}{})", collation.suffix()),
            };
            out.cover(expr.span, text);
            return Ok(());
        }
        match &expr.kind {
            ExprKind::Column(path) => {
                if let Some(column) = self.dependent_of(expr) {
                    let collation = self.groups[column - 1].collation.clone()?;
                    out.cover(expr.span, format!("(pg_catalog.array_agg(c{column}))[1]{}", collation.suffix()));
                    return Ok(());
                }
                return Err(format!("the column {} is not grouped by its own", path.join(".")));
            }
            ExprKind::Star(_) => return Err("* beside aggregates".to_owned()),
            ExprKind::Sublink(link) => {
                let staged = self.context.level_of(&link.query).and_then(|l| self.context.staging.borrow().level(l));
                let (Some(staged), None) = (staged, &link.test) else {
                    return Err("a subquery beside aggregates".to_owned());
                };
                out.cover(link.query.span, staged.marker());
                return Ok(());
            }
            ExprKind::Grouping(_) => return Err("GROUPING()".to_owned()),
            ExprKind::Call(call) if call.over.is_some() => return Err("a window over aggregates".to_owned()),
            ExprKind::Call(call) if self.context.analysis.is_aggregate(call) => {
                let merged = self.aggregate(call, expr)?;
                out.cover(expr.span, merged);
                return Ok(());
            }
            ExprKind::Call(call) if self.context.snapshot.set_returning_functions.contains(&call.name) => {
                return Err("a set-returning function beside aggregates".to_owned());
            }
            _ => {}
        }
        let mut children = Vec::new();
        expr.for_each_child(&mut |child| children.push(child));
        children.into_iter().try_for_each(|child| self.cover(child, out))
    }

    fn aggregate(&mut self, call: &'e Call, expr: &'e Expr) -> Result<String> {
        if !call.order_by.is_empty() || call.within_group || call.variadic {
            return Err(format!("{} with an order of its own", call.name));
        }
        if call.schema.as_deref().is_some_and(|s| s != "pg_catalog") {
            return Err(format!("the aggregate {} is not built in", call.name));
        }
        let whole = self.edits.apply_to(self.text(), expr.span)?;
        let name = call.name.as_str();
        let one = match call.args.as_slice() {
            [one] => Some(one),
            _ => None,
        };
        match name {
            "count" | "sum" | "avg" if call.distinct => {
                let arg = one.ok_or("DISTINCT over several arguments")?;
                let column = self.group_of(arg, true).ok_or("a DISTINCT argument is not grouped")?;
                Ok(format!("pg_catalog.{name}(DISTINCT c{column})"))
            }
            "count" if call.star || one.is_some() => {
                let column = self.column(whole);
                Ok(format!("coalesce(pg_catalog.sum(c{column}), 0)::pg_catalog.int8"))
            }
            "sum" if one.is_some() => {
                let column = self.column(whole);
                Ok(format!("{{{{sum {column}}}}}"))
            }
            "avg" => {
                let arg = one.ok_or("avg of this form")?;
                let rest = Span::new(call.call_span.end, expr.span.end);
                let partial = |me: &Self, function: &str| -> Result<Splice> {
                    let mut splice = Splice::default();
                    splice.push_text(&format!("pg_catalog.{function}("), None);
                    splice.append(me.edits.apply_to(me.text(), arg.span)?);
                    splice.push_text(")", None);
                    splice.append(me.edits.apply_to(me.text(), rest)?);
                    Ok(splice)
                };
                let (sum, count) = (partial(self, "sum")?, partial(self, "count")?);
                let (avg, sum, count) = (self.column(whole), self.column(sum), self.column(count));
                Ok(format!("{{{{avg {avg} {sum} {count}}}}}"))
            }
            "min" | "max" => {
                let arg = one.ok_or("min or max of this form")?;
                let collation = self.context.collation_of(arg, self.scope)?;
                self.collated |= collation == Collation::Asked;
                let column = self.column(whole);
                Ok(format!("pg_catalog.{name}(c{column}{})", collation.suffix()))
            }
            "bool_and" | "bool_or" | "every" | "bit_and" | "bit_or" | "bit_xor" if one.is_some() => {
                if call.distinct && name == "bit_xor" {
                    return Err("bit_xor(DISTINCT …)".to_owned());
                }
                let column = self.column(whole);
                Ok(format!("pg_catalog.{name}(c{column})"))
            }
            _ => Err(format!("the aggregate {name} does not combine")),
        }
    }
}
