//! TABLESAMPLE of distributed tables in statements that the coordinator runs. Its foreign tables have no samples: they
//! would give all rows. So the workers draw each sample first, and its rows stand in the text in place of the table.
//! Where the statement is kept (a view), locks rows, or takes samples by values of other rows, the coordinator chooses
//! among all rows instead.
//!
//! So it does in the bodies of functions and DO blocks. A function's is written anew when it comes into existence, or
//! its table becomes distributed (`pgherd.let_function_sample`); what EXECUTE runs, when it does
//! (`pgherd.sampled_text`). What is planned as it was written nevertheless is refused there (`pgherd.unsampled`).
//! ONLY, by which a distributed table would be its empty heap on the coordinator, goes the same way.

use std::collections::BTreeSet;
use std::fmt::Write;

use bytes::{Buf, Bytes};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Resolved, Snapshot, Table};
use pgherd_planner::Tier;
use pgherd_sql::{Edits, Sample, Span, Statement, StatementKind};
use pgherd_wire::backend;

use super::Call;
use super::stage::Capture;
use crate::error::{Failure, Result};
use crate::session::{Prepared, Session};
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::Block;

/// Bytes of a sample that go with a statement.
const BYTES_MAX: usize = 64 << 20;

fn refused(detail: impl AsRef<str>) -> Failure {
    Failure::refused("cannot take a sample of a distributed table in this statement")
        .detail(detail)
        .hint("Take the sample with a SELECT of its own.")
}

/// Clauses within the brackets of clauses.
const CLAUSES_MAX: usize = 16;

/// Whether a function's body takes a sample of a distributed table, or names ONLY one, as nobody has written it anew:
/// its statements are the coordinator's own, whose foreign tables would give all rows.
pub fn takes_sample(body: &str, language: &str, snapshot: &Snapshot) -> bool {
    // What is not understood is refused where it is planned (pgherd.unsampled).
    with_chosen_rows(body, language, snapshot).is_ok_and(|text| text.is_some())
}

/// A text that the coordinator runs by itself (a body, or what one hands to EXECUTE), with all tables in place of which
/// rows have to be chosen. `None`: as it is. `language`: whose words it has, none for a statement; what is `planned`
/// has been checked by the coordinator.
pub fn written_anew(text: &str, language: &str, snapshot: &Snapshot) -> Result<Option<String>> {
    if !names_samples(text) && !names_only(text) {
        return Ok(None);
    }
    let mut written = match with_chosen_rows(text, language, snapshot)? {
        Some(written) => written,
        None => text.to_owned(),
    };
    let mut edits = Edits::new();
    for (span, body) in pgherd_sql::do_literals(&written) {
        if !names_samples(span.of(&written)) && !names_only(span.of(&written)) {
            continue;
        }
        let body = body.ok_or_else(|| refused("The block is written with escapes."))?;
        if let Some(body) = written_anew(&body, "plpgsql", snapshot)? {
            edits.replace(span, quote_literal(&body));
        }
    }
    let executes = names_samples(&written) || names_only(&written) && pgherd_sql::strings_have_word(&written, "only");
    if language == "plpgsql" && executes {
        for text in pgherd_sql::executed_texts(&written).unwrap_or_default() {
            if !text.of(&written).starts_with(SAMPLED_TEXT) {
                edits.insert(text.start, format!("{SAMPLED_TEXT}("));
                edits.insert(text.end, ")::pg_catalog.text)");
            }
        }
    }
    if !edits.is_empty() {
        written = edits.apply(&written)?.as_written();
    }
    Ok((written != text).then_some(written))
}

/// What EXECUTE runs is known when it does.
const SAMPLED_TEXT: &str = "pgherd.sampled_text(";

fn names_samples(text: &str) -> bool {
    text.to_ascii_lowercase().contains("tablesample")
}

fn names_only(text: &str) -> bool {
    text.to_ascii_lowercase().contains("only")
}

/// ONLY of a distributed table means the table: its rows are in a child on the coordinator. Of a partitioned one it
/// means no rows, there as elsewhere. Of what is `planned` nothing is left.
fn without_only(text: &str, language: &str, snapshot: &Snapshot) -> Result<Option<String>> {
    if language == "planned" || !names_only(text) {
        return Ok(None);
    }
    let Some(found) = pgherd_sql::only_named(text) else { return Ok(None) };
    let mut edits = Edits::new();
    for only in found {
        let is_named = |schema: &str| only.name.schema.as_ref().is_none_or(|named| named == schema);
        let mut tables = snapshot.all_tables().filter(|t| t.name == only.name.name && is_named(&t.schema));
        let Some(table) = tables.next() else { continue };
        // A reference table has no child.
        if table.is_reference() || table.is_partitioned {
            continue;
        }
        let mut others = snapshot.other_names().filter(|(s, n)| *n == only.name.name && is_named(s));
        if others.next().is_some() || tables.next().is_some() {
            return Err(Failure::refused(format!("cannot tell which table ONLY \"{}\" means", only.name.name))
                .detail("There are several of that name, and some are distributed.")
                .hint("Name the table with its schema."));
        }
        edits.replace(only.relation, only.written.of(text));
    }
    if edits.is_empty() {
        return Ok(None);
    }
    Ok(Some(edits.apply(text)?.as_written()))
}

fn with_chosen_rows(text: &str, language: &str, snapshot: &Snapshot) -> Result<Option<String>> {
    let bare = without_only(text, language, snapshot)?;
    let chosen = with_chosen(bare.as_deref().unwrap_or(text), language, snapshot)?;
    Ok(chosen.or(bare))
}

fn with_chosen(text: &str, language: &str, snapshot: &Snapshot) -> Result<Option<String>> {
    if !names_samples(text) {
        return Ok(None);
    }
    // Bodies of functions in SQL may become part of statements in which nothing tells of them any more.
    let is_certain = matches!(language, "sql" | "planned");
    let mut written = text.to_owned();
    for _ in 0..CLAUSES_MAX {
        let Some(found) = pgherd_sql::samplings(&written) else {
            return match is_certain {
                true => Err(refused("The text is not understood.")),
                false => Ok(None),
            };
        };
        let mut edits = Edits::new();
        for sampling in found {
            let named = |t: &&std::sync::Arc<Table>| {
                t.name == sampling.name.name && sampling.name.schema.as_ref().is_none_or(|schema| *schema == t.schema)
            };
            let Some(table) = snapshot.all_tables().filter(|t| !t.is_reference()).find(named) else { continue };
            // ONLY of a partitioned table has no rows.
            if sampling.only && table.is_partitioned {
                continue;
            }
            if !sampling.by_share {
                match is_certain {
                    true => return Err(by_another_method()),
                    false => continue,
                }
            }
            if sampling.names_physical_rows {
                return Err(names_physical_rows());
            }
            let (name, clause) = (sampling.written.of(&written), sampling.clause.of(&written));
            let rows = chosen(name, clause).ok_or_else(|| refused("The clause is not found in the text."))?;
            let alias = match sampling.aliased {
                true => String::new(),
                false => format!(" AS {}", quote_ident(&sampling.name.name)),
            };
            // Lines keep their numbers.
            let lines = |text: &str| text.matches('\n').count();
            let gone = (lines(sampling.relation.of(&written)) + lines(clause)).saturating_sub(lines(&rows));
            edits.cover(sampling.relation, format!("({rows}){alias}"));
            edits.cover(sampling.clause, "\n".repeat(gone));
        }
        if edits.is_empty() {
            return Ok((written != text).then_some(written));
        }
        written = edits.apply(&written)?.as_written();
    }
    Err(refused("The text is nested too deeply."))
}

impl Session {
    /// Functions that came into existence past the router, or before it could write them anew. `alone`: the statement
    /// may have a block of ours around it. Where they cannot be written anew now, who calls one is refused.
    pub(super) async fn let_functions_sample(&mut self, call: &Call<'_>, alone: bool) -> Result<()> {
        let catalog = self.catalog();
        if catalog.sampling_functions.is_empty() {
            return Ok(());
        }
        if alone && self.txn.block != Block::Explicit {
            self.open_implicit_block();
            self.join(COORDINATOR_GROUP).await?;
            self.let_all_functions_sample().await?;
            return self.changed_catalog_in_block().await;
        }
        let calls = call.prepared.statement.iter().flat_map(|s| &s.calls);
        match calls.into_iter().any(|(_, name)| catalog.sampling_functions.contains(name)) {
            true => Err(refused("A function's body takes it, which the coordinator runs by itself.")),
            false => Ok(()),
        }
    }

    pub(crate) async fn let_all_functions_sample(&mut self) -> Result<()> {
        self.mark_writer(COORDINATOR_GROUP);
        self.collect_on(COORDINATOR_GROUP, "SELECT pgherd.let_functions_sample()").await?;
        Ok(())
    }

    /// Puts rows that the workers draw in place of every distributed table with a TABLESAMPLE clause.
    pub(super) async fn draw_samples(
        &mut self,
        statement: &Statement,
        call: Option<&Call<'_>>,
        edits: &mut Edits,
    ) -> Result<()> {
        if statement.samples.is_empty() {
            return Ok(());
        }
        let path = self.search_path().await?;
        let catalog = self.catalog();
        for sample in &statement.samples {
            let Some(relation) = statement.relations.get(sample.relation) else { continue };
            if relation.schema.is_none() && self.temp.contains(&relation.name) {
                continue;
            }
            let Resolved::Table(table) = catalog.resolve(relation.schema.as_deref(), &relation.name, &path) else {
                continue;
            };
            // The coordinator has all rows of a reference table, and ONLY of a partitioned table has none.
            if table.is_reference() || relation.only && table.is_partitioned {
                continue;
            }
            check(statement, sample)?;
            let rows = if is_drawn_before(statement, sample) {
                let columns = self.sampled_columns(statement, table, relation.full_span, &path);
                self.draw(statement, sample, &columns, call).await?
            } else {
                let clause = sample.clause.of(&statement.text);
                let name = relation.span.of(&statement.text);
                chosen(name, clause).ok_or_else(|| refused("The clause is not found in the text."))?
            };
            let aliased = !statement.text[relation.full_span.end..sample.clause.start].trim().is_empty();
            let name = if aliased { String::new() } else { format!(" AS {}", quote_ident(&relation.name)) };
            edits.cover(relation.full_span, format!("({rows}){name}"));
            edits.cover(sample.clause, "");
        }
        Ok(())
    }

    /// The columns that the statement may read, in the table's order.
    fn sampled_columns(&self, statement: &Statement, table: &Table, relation: Span, path: &[String]) -> Vec<String> {
        let catalog = self.catalog();
        let named =
            self.with_view(path, false, |view| pgherd_planner::columns_read(statement, &catalog, view, relation));
        named.unwrap_or_else(|| table.columns.iter().map(|c| c.name.clone()).collect())
    }

    /// Draws one sample: a SELECT that gives its rows.
    async fn draw(
        &mut self,
        statement: &Statement,
        sample: &Sample,
        columns: &[String],
        call: Option<&Call<'_>>,
    ) -> Result<String> {
        // Values pass as text, and NULL among them as a word.
        if self.in_force("array_nulls").is_some_and(|value| value != "on") {
            return Err(refused("The session has array_nulls turned off."));
        }
        let relation = &statement.relations[sample.relation];
        let list: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        let list = if list.is_empty() { "1 AS pgherd_row".to_owned() } else { list.join(", ") };
        let (from, clause) = (relation.full_span.of(&statement.text), sample.clause.of(&statement.text));
        let sql = format!("SELECT {list} FROM {from} {clause}");
        let drawing = pgherd_sql::split(&sql).ok().and_then(|mut s| s.pop());
        let Some(drawing) = drawing else { return Err(refused("The clause is not found in the text.")) };
        let (catalog, path) = (self.catalog(), self.search_path().await?);
        let plan = self.plan_statement(&drawing, &catalog, &path, false);
        match &plan.tier {
            Tier::Scatter(_) | Tier::Route(_) => {}
            Tier::Refuse(refusal) => return Err(super::refuse(refusal)),
            _ => return Err(refused(format!("The workers cannot draw it by themselves: {}.", plan.reason))),
        }
        self.open_implicit_block();
        let types = match call {
            Some(call) => self.param_types(call).await?,
            None => Vec::new(),
        };
        let described = self.describe_text_aside(&sql, &types).await?;
        let fields = described.fields.unwrap_or_default();
        let Some(casts) = self.casts(COORDINATOR_GROUP, &fields).await? else {
            return Err(refused("A column's values cannot be sent with the statement."));
        };
        let Some(collations) = self.collations(COORDINATOR_GROUP, &sql, &types, None, &fields).await? else {
            return Err(refused("A column's collation is not known."));
        };
        let none = Prepared::new(Some(drawing.clone()), &sql, types.clone());
        let nothing = Call::simple(&none);
        let capture = Capture::rows(fields.len(), BYTES_MAX);
        // Settings that shorten or reorder their text would change values.
        let mut styled: BTreeSet<GroupId> = BTreeSet::new();
        if self.has_styles() {
            styled.extend(plan.tables.iter().flat_map(|table| catalog.groups_of(table)));
        }
        for group in &styled {
            self.join(*group).await?;
            self.with_plain_styles(*group).await?;
        }
        let drawn = self.run_captured(call.unwrap_or(&nothing), drawing, types, capture).await;
        if drawn.is_ok() {
            for group in &styled {
                self.with_client_styles(*group).await?;
            }
        }
        if let (Err(failure), Some(call)) = (&drawn, call)
            && matches!(failure.sqlstate().get(..2), Some("22"))
            && matches!(statement.kind, StatementKind::Select)
            && !statement.has_modifying
            && call.describes()
        {
            // PostgreSQL has described the rows when it finds what is wrong with a value.
            let described = self.described(call.prepared).await?;
            backend::write_row_description(&mut self.client.out, described.fields.as_deref().unwrap_or_default());
        }
        let (_, capture) = drawn?;
        let Some(arrays) = capture.and_then(Capture::into_arrays) else {
            return Err(refused("It has too many rows to be sent with the statement."));
        };
        let (mut items, mut texts, mut names) = (String::new(), String::new(), String::new());
        for (number, ((field, cast), array)) in fields.iter().zip(&casts).zip(arrays).enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            let collation = collations[number].as_ref().map_or(String::new(), |name| format!(" COLLATE {name}"));
            let _ = write!(items, "{comma}(pgherd_u.c{number})::{cast}{collation} AS {}", quote_ident(&field.name));
            let _ = write!(texts, "{comma}{}::pg_catalog.text[]", array_literal(array));
            let _ = write!(names, "{comma}c{number}");
        }
        Ok(format!("SELECT {items} FROM unnest({texts}) AS pgherd_u({names})"))
    }
}

/// What is kept of a statement with a sample must not be the sample, and rows that stand for others cannot be locked.
fn is_drawn_before(statement: &Statement, sample: &Sample) -> bool {
    use StatementKind as K;
    let once = match &statement.kind {
        K::Select | K::SelectInto | K::Insert | K::Update | K::Delete | K::Merge | K::DeclareCursor { .. } => true,
        K::CreateTableAs(create) => !create.materialized_view,
        _ => false,
    };
    once && !sample.reads_columns && !statement.locks_rows
}

fn check(statement: &Statement, sample: &Sample) -> Result<()> {
    if !sample.by_share {
        return Err(by_another_method());
    }
    if statement.names_physical_rows {
        return Err(names_physical_rows());
    }
    match sample.clause.is_known() {
        true => Ok(()),
        false => Err(refused("The clause is not found in the text.")),
    }
}

fn by_another_method() -> Failure {
    Failure::refused("cannot take such a sample of a distributed table")
        .detail("Workers can take shares of rows, by SYSTEM and BERNOULLI.")
}

fn names_physical_rows() -> Failure {
    refused("The statement names system columns, or columns with their table's schema.")
}

/// A SELECT in which the coordinator chooses rows of a table.
fn chosen(name: &str, clause: &str) -> Option<String> {
    let open = clause.find('(')?;
    let (percentage, rest) = in_brackets(&clause[open..])?;
    let (seed, is_repeatable) = match rest.find('(') {
        Some(open) => (in_brackets(&rest[open..])?.0, true),
        None => ("NULL", false),
    };
    let line = if is_repeatable { "pgherd_t::pg_catalog.text" } else { "NULL" };
    // The share may be a value of the rows around, whose names the table's columns would hide.
    Some(format!(
        "SELECT pgherd_t.* FROM (SELECT ({percentage})::pg_catalog.float4 AS share, \
         ({seed})::pg_catalog.float8 AS seed) AS pgherd_s CROSS JOIN {name} AS pgherd_t \
         WHERE pgherd.can_sample(pgherd_s.share, pgherd_s.seed, {is_repeatable}) \
         AND pgherd.is_sampled(pgherd_s.share, pgherd_s.seed, {is_repeatable}, {line})"
    ))
}

/// What stands in the brackets with which a text begins, and what follows them.
fn in_brackets(text: &str) -> Option<(&str, &str)> {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => {
                depth -= 1;
                if depth == 0 {
                    return Some((&text[1..at], &text[at + 1..]));
                }
            }
            _ => {}
        }
    }
    None
}

/// A text array in binary form as a literal.
fn array_literal(mut array: Bytes) -> String {
    let mut text = String::from("{");
    // Of none there are no dimensions.
    let has_elements = array.len() > 20;
    array.advance(array.len().min(20));
    while has_elements && array.has_remaining() {
        if text.len() > 1 {
            text.push(',');
        }
        let Ok(len) = array.try_get_i32() else { break };
        let Ok(len) = usize::try_from(len) else {
            text.push_str("NULL");
            continue;
        };
        let value = array.split_to(len.min(array.len()));
        text.push('"');
        for c in String::from_utf8_lossy(&value).chars() {
            if matches!(c, '"' | '\\') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push('"');
    }
    text.push('}');
    format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_stands_in_brackets() {
        let of = |clause: &'static str| clause.find('(').and_then(|at| in_brackets(&clause[at..]));
        assert_eq!(of("TABLESAMPLE SYSTEM (f(')') + (1)) REPEATABLE (2)"), Some(("f(')') + (1)", " REPEATABLE (2)")));
        assert_eq!(of("TABLESAMPLE SYSTEM (1"), None);
    }

    #[test]
    fn arrays_are_written_as_literals() {
        let array = |values: &[Option<&'static str>]| {
            let values: Vec<Option<Bytes>> =
                values.iter().map(|v| v.map(|v| Bytes::from_static(v.as_bytes()))).collect();
            array_literal(super::super::combine::text_array(&values))
        };
        assert_eq!(array(&[]), " E'{}'");
        assert_eq!(array(&[Some("")]), " E'{\"\"}'");
        assert_eq!(array(&[Some("a"), None, Some("NULL")]), " E'{\"a\",NULL,\"NULL\"}'");
        assert_eq!(array(&[Some("it's \"x\\y\"")]), " E'{\"it''s \\\\\"x\\\\\\\\y\\\\\"\"}'");
    }
}
