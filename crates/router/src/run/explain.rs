//! EXPLAIN: the tier, why it was chosen, and the plan of the server that does the work beneath it.

use std::fmt::Write;

use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_planner::{Combine, Plan, Rest, Scatter, Ship, Stage, Tier};
use pgherd_sql::{Span, Statement, StatementKind};
use pgherd_wire::backend::{self, FieldDescription};

use super::analyze::{Analyzed, is_on, lines_of};
use super::planned::{parameters, refuse};
use super::request::{Errors, Request, Rows};
use super::{Call, Completion, Staged};
use crate::error::{Failure, Result};
use crate::session::{Planning, Session};
use crate::settings::quote_ident;
use crate::transaction::{Block, Reach};

/// One worker's part.
pub(super) struct Task {
    pub group: GroupId,
    pub sql: String,
}

impl Session {
    pub(super) async fn run_explain(
        &mut self,
        call: &Call<'_>,
        options: &[(String, Option<String>)],
        inner: Span,
    ) -> Result<Completion> {
        let text = call.prepared.text();
        let inner_text = inner.of(text);
        let Some(statement) = pgherd_sql::split(inner_text).ok().and_then(|mut s| s.pop()) else {
            return self.run_on_coordinator(call, text, false).await;
        };
        if let StatementKind::Execute { name, args } = &statement.kind {
            if let Some(there) = self.runs_there(name).await? {
                if there.writes || is_on(options, &["analyze", "analyse"]) {
                    self.open_implicit_block();
                }
                let completion = self.run_on_coordinator(call, text, there.writes).await?;
                self.taint_coordinator(call);
                return Ok(completion);
            }
            let shift = inner.start + statement.offset;
            let args: Vec<Span> = args.iter().map(|a| Span::new(a.start + shift, a.end + shift)).collect();
            let (prepared, bound) = self.explained_execute(text, name, &args).await?;
            let Some(statement) = &prepared.statement else { return Ok(Completion::tag("EXPLAIN")) };
            let executed = Call { prepared: &prepared, bound: Some(&bound), ..*call };
            return self.explain_statement(call, &executed, statement, options, &text[..inner.start]).await;
        }
        if !crate::session::is_planned(&statement.kind) {
            self.open_implicit_block();
            let completion = self.explain_definition(call, &statement, inner).await?;
            // EXPLAIN ANALYZE CREATE TABLE AS makes the table, and no event trigger hears of it.
            if options.iter().any(|(name, _)| name == "analyze") {
                self.call_own(COORDINATOR_GROUP, "SELECT pgherd.note_change(0, 0)").await?;
                self.after_ddl(Reach::Local).await?;
                self.notice_temporary_tables().await?;
            }
            return Ok(completion);
        }
        self.explain_statement(call, call, &statement, options, &text[..inner.start]).await
    }

    /// The coordinator gets what it creates from, where that is a prepared statement of the session's.
    async fn explain_definition(&mut self, call: &Call<'_>, statement: &Statement, inner: Span) -> Result<Completion> {
        let text = call.prepared.text();
        if let StatementKind::CreateTableAs(create) = &statement.kind
            && create.is_execute
            && !self.creates_there(create.query.of(&statement.text)).await?
            && let shift = inner.start + statement.offset
            && let query = Span::new(create.query.start + shift, create.query.end + shift)
            && let Some((sql, lent)) = self.lend_prepared(text, query).await?
        {
            let completion = self.run_on_coordinator(call, &sql.as_written(), true).await?;
            self.run_quiet(COORDINATOR_GROUP, &format!("DEALLOCATE {lent}")).await?;
            return Ok(completion);
        }
        self.run_on_coordinator(call, text, true).await
    }

    /// `call` is the EXPLAIN; `inner` has the values of what it explains, which is another call for EXPLAIN EXECUTE.
    async fn explain_statement(
        &mut self,
        call: &Call<'_>,
        inner: &Call<'_>,
        statement: &Statement,
        options: &[(String, Option<String>)],
        head: &str,
    ) -> Result<Completion> {
        let (catalog, path) = (self.catalog(), self.search_path().await?);
        let plan = self.plan_statement(statement, &catalog, &path, false);
        let plan =
            self.plan_by_sizes(statement, &catalog, &path, plan, Planning::of(inner.prepared.parameters())).await;
        let format = options
            .iter()
            .rev()
            .find(|(name, _)| name == "format")
            .and_then(|(_, value)| value.as_deref())
            .unwrap_or("text")
            .to_ascii_lowercase();
        let analyze = is_on(options, &["analyze", "analyse"]);
        if let Tier::Refuse(refusal) = &plan.tier {
            return Err(refuse(refusal));
        }
        if matches!(plan.tier, Tier::Coordinator { .. }) {
            let sql = pgherd_sql::qualify_own(statement)?.as_written();
            if plan.writes || analyze {
                self.open_implicit_block();
            }
            if is_execute(call, inner) {
                let task = Task { group: COORDINATOR_GROUP, sql };
                let lines = self.run_task(inner, head, &plan, &task).await?;
                self.taint_coordinator(inner);
                return Ok(self.write_explained(call, &format, lines));
            }
            let completion = self.run_on_coordinator(call, &format!("{head}{sql}"), plan.writes).await?;
            self.taint_coordinator(call);
            return Ok(completion);
        }
        let own = self.txn.block == Block::None;
        self.open_implicit_block();
        let staged = match &plan.tier {
            Tier::Stage(Stage { rest: Rest::Steps(_), .. }) if analyze => {
                return Err(Failure::refused("cannot run EXPLAIN ANALYZE of a MERGE that is run in steps")
                    .hint("Use EXPLAIN without ANALYZE."));
            }
            Tier::Stage(stage) if analyze => {
                let mut staged = self.run_parts(inner, stage).await?;
                let alone = call.bound.is_none() || self.client.read.first() == Some(&b'S');
                if let Some(parts) = staged.as_mut().filter(|_| own && alone && !plan.writes) {
                    match self.keep_in_tables(inner, stage, parts).await {
                        Ok(()) => {}
                        Err(Failure::Statement(fields)) if fields.sqlstate() != "57014" => {
                            self.rollback().await;
                            self.open_implicit_block();
                            staged = self.run_parts(inner, stage).await?;
                        }
                        Err(failure) => return Err(failure),
                    }
                }
                staged
            }
            Tier::Stage(stage) => self.without_rows(inner, stage).await?,
            _ => None,
        };
        if let Tier::Scatter(Scatter { combine: Combine::Merge(merge), .. }) = &plan.tier
            && merge.collated
            && !is_execute(call, inner)
        {
            // Whether values can be compared at all is seen where the whole statement is.
            self.described(call.prepared).await?;
        }
        let inner = &Call { staged: staged.as_ref(), ..*inner };
        let mut tasks = self.explain_tasks(inner, statement, &plan, is_execute(call, inner)).await?;
        if analyze && !statement.samples.is_empty() && matches!(plan.tier, Tier::Federate { .. }) {
            let sql = self.coordinator_text_with(statement, Some(inner), &[]).await?.as_written();
            tasks = vec![Task { group: COORDINATOR_GROUP, sql }];
        }
        let by_running = matches!(
            plan.tier,
            Tier::InsertRows(_) | Tier::InsertSelect(_) | Tier::ReplicateWrite { .. } | Tier::ReplicateRows { .. }
        );
        let analyzed = match analyze {
            true if by_running => self.analyze_by_running(inner, options, &plan, &tasks, statement).await?,
            true => self.analyze_tasks(inner, options, &plan, &tasks, &format).await?,
            false => Analyzed { shown: self.run_first_task(inner, head, &plan, &tasks).await?, ..Analyzed::default() },
        };
        if matches!(plan.tier, Tier::Federate { .. }) {
            self.taint_coordinator(inner);
        }
        let lines = match format.as_str() {
            "text" => self.as_text(&plan, &tasks, &analyzed, inner.staged.filter(|_| analyze)),
            "json" => vec![self.as_json(&plan, &tasks, &analyzed)],
            "xml" => vec![self.as_xml(&plan, &tasks, &analyzed)],
            _ => vec![self.as_yaml(&plan, &tasks, &analyzed)],
        };
        Ok(self.write_explained(call, &format, lines))
    }

    fn write_explained(&mut self, call: &Call<'_>, format: &str, lines: Vec<String>) -> Completion {
        if call.describes() {
            let mut field = FieldDescription::text("QUERY PLAN");
            field.type_oid = match format {
                "json" => 114,
                "xml" => 142,
                _ => 25,
            };
            backend::write_row_description(&mut self.client.out, &[field]);
        }
        for line in lines {
            backend::write_data_row(&mut self.client.out, &[Some(line.as_bytes())]);
        }
        Completion::tag("EXPLAIN")
    }

    /// What each server would run; the coordinator alone for what it federates.
    /// `statement`: what is explained, of which `call` may have more.
    async fn explain_tasks(
        &mut self,
        call: &Call<'_>,
        statement: &Statement,
        plan: &Plan,
        is_execute: bool,
    ) -> Result<Vec<Task>> {
        let mut tasks = Vec::new();
        match &plan.tier {
            Tier::Route(route) => {
                let types = self.explained_types(call);
                let has_values = call.bound.is_some_and(|bound| !bound.params.is_empty());
                let remainder = match &route.key {
                    // A parameter of EXPLAIN itself without a value: any shard shows the plan.
                    pgherd_planner::KeyValue::Param(_) if !is_execute && !has_values => 0,
                    key => self.remainder_of(&route.table, key, parameters(call, &types)).await?.unwrap_or(0),
                };
                let tables = plan.tables.clone();
                let parent_only = route.parent_only || tables.iter().any(|t| t.parent_only);
                let name_of = move |oid: u32| {
                    let table = tables.iter().find(|t| t.oid == oid)?;
                    match table.shards().get(remainder) {
                        Some(shard) if !parent_only => Some(format!("{}.{}", shard.schema(), quote_ident(&table.name))),
                        _ => Some(format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name))),
                    }
                };
                let group = route.table.shards().get(remainder).map_or(COORDINATOR_GROUP, |s| s.group);
                tasks.push(Task { group, sql: route.sql.render(name_of) });
            }
            Tier::Scatter(scatter) => {
                for group in self.scatter_groups(call, scatter).await? {
                    tasks.push(Task { group, sql: scatter.sql.as_written() });
                }
            }
            // Without its parts the general way runs the statement.
            Tier::Stage(_) if call.staged.is_none() => {
                let sql = self.coordinator_text_with(statement, Some(call), &[]).await?.as_written();
                tasks.push(Task { group: COORDINATOR_GROUP, sql });
            }
            Tier::Stage(stage) => {
                let fill = |sql: &pgherd_sql::Splice| call.fill_on_workers(&sql.as_written());
                match &stage.rest {
                    Rest::Scatter(scatter) => {
                        for group in self.scatter_groups(call, scatter).await? {
                            tasks.push(Task { group, sql: fill(&scatter.sql) });
                        }
                    }
                    Rest::Coordinator(sql) => tasks.push(Task { group: COORDINATOR_GROUP, sql: fill(sql) }),
                    Rest::Steps(steps) => {
                        if let Some(last) = steps.last() {
                            tasks.push(Task { group: COORDINATOR_GROUP, sql: call.fill(&last.text()) });
                        }
                    }
                }
            }
            Tier::InsertRows(insert) => {
                tasks.push(Task {
                    group: COORDINATOR_GROUP,
                    sql: format!("SELECT 1 FROM (VALUES (1)) AS {}", quote_ident(&insert.table.name)),
                });
            }
            Tier::InsertSelect(insert) => tasks.push(Task { group: COORDINATOR_GROUP, sql: insert.select.clone() }),
            Tier::ReplicateWrite { sql, .. } | Tier::ReplicateRows { sql, .. } => {
                tasks.push(Task { group: COORDINATOR_GROUP, sql: sql.as_written() });
            }
            Tier::Coordinator { sql, .. } | Tier::Federate { sql, .. } => {
                tasks.push(Task { group: COORDINATOR_GROUP, sql: sql.as_written() });
            }
            Tier::Refuse(refusal) => return Err(refuse(refusal)),
        }
        Ok(tasks)
    }

    pub(super) fn explained_types(&self, call: &Call<'_>) -> Vec<u32> {
        call.prepared.last_described().map_or_else(|| call.prepared.declared.clone(), |d| d.param_types.clone())
    }

    async fn run_first_task(
        &mut self,
        call: &Call<'_>,
        head: &str,
        plan: &Plan,
        tasks: &[Task],
    ) -> Result<Vec<String>> {
        match tasks.first() {
            Some(task) => self.run_task(call, head, plan, task).await,
            None => Ok(Vec::new()),
        }
    }

    pub(super) async fn run_task(
        &mut self,
        call: &Call<'_>,
        head: &str,
        plan: &Plan,
        task: &Task,
    ) -> Result<Vec<String>> {
        self.join(task.group).await?;
        let catalog = self.catalog();
        if task.group != COORDINATOR_GROUP {
            self.fence_tables(task.group, plan, &catalog);
        }
        if plan.writes {
            self.mark_writer(task.group);
        }
        let bound = call.bound_on(task.group).map(|b| b.for_text());
        let types = call.with_staged(&self.explained_types(call));
        let request = Request {
            sql: format!("{head}{}", task.sql).into(),
            id: None,
            param_types: &types,
            bound: bound.as_ref(),
            describe: false,
            portal: "",
            max_rows: 0,
        };
        let mut kept = Vec::new();
        let empty = pgherd_sql::Splice::default();
        let errors = Errors::of(&empty, "");
        self.run_request(task.group, &request, Rows::Keep(&mut kept), errors).await?;
        lines_of(kept)
    }

    fn node_line(&self, group: GroupId) -> String {
        let catalog = self.catalog();
        let url = &self.thread.shared.config.coordinator;
        let (host, port) = match catalog.node_of_group(group) {
            Some(node) => (node.host.clone(), node.port),
            None => (url.host.clone(), url.port),
        };
        format!("host={host} port={port} dbname={}", self.db.name)
    }

    /// What each server has said of its part.
    fn measured(&self, tasks: &[Task], analyzed: &Analyzed) -> Vec<String> {
        let both = tasks.iter().zip(&analyzed.measures);
        both.map(|(task, measure)| format!("{} {}", self.node_line(task.group), measure.text())).collect()
    }

    fn as_text(&self, plan: &Plan, tasks: &[Task], analyzed: &Analyzed, staged: Option<&Staged>) -> Vec<String> {
        let shown = &analyzed.shown;
        let mut lines = vec![format!("pgherd {}  (cost=0.00..0.00 rows=0 width=0)", title(plan))];
        lines.push(format!("  Reason: {}", plan.reason));
        let scatter = match &plan.tier {
            Tier::Scatter(scatter) => Some(scatter),
            Tier::Stage(stage) => {
                for (number, part) in (1..).zip(&stage.parts) {
                    let to = match &part.ship {
                        Ship::Everywhere => String::new(),
                        Ship::Split { column, table } => {
                            format!(", split by column {} as {}", column + 1, quote_ident(&table.name))
                        }
                        Ship::SplitByLast { table, .. } => {
                            format!(", split by its last column as {}", quote_ident(&table.name))
                        }
                        Ship::ByPlace { .. } => ", to the rows it names".to_owned(),
                    };
                    let size = staged.and_then(|staged| staged.size_of(number - 1));
                    let size = size.map_or(String::new(), |(rows, bytes)| format!(" (rows={rows} bytes={bytes})"));
                    lines.push(format!("  Part {number}{to}{size}: {}", one_line(&part.sql)));
                }
                match &stage.rest {
                    Rest::Scatter(scatter) => {
                        lines.push(format!("  Rest: {}", one_line(&scatter.sql.as_written())));
                        Some(scatter)
                    }
                    Rest::Steps(steps) => {
                        lines.extend(
                            (1..)
                                .zip(steps)
                                .map(|(number, step)| format!("  Step {number}: {}", one_line(&step.text()))),
                        );
                        None
                    }
                    Rest::Coordinator(sql) => {
                        lines.push(format!("  Rest: {}", one_line(&sql.as_written())));
                        None
                    }
                }
            }
            _ => None,
        };
        match scatter.map(|scatter| &scatter.combine) {
            None | Some(Combine::Concatenate) => {}
            Some(Combine::ConcatenateLimit(limit)) => lines.push(format!("  Limit: {limit}")),
            Some(Combine::Merge(merge)) => lines.push(format!("  Merge: {}", one_line(&merge.sql))),
        }
        lines.push(format!("  Task Count: {}", tasks.len()));
        lines.push(format!("  Tasks Shown: {}", tasks_shown(tasks.len())));
        lines.extend(self.measured(tasks, analyzed).iter().map(|measure| format!("  Analyzed: {measure}")));
        lines.push("  ->  Task".to_owned());
        if let Some(task) = tasks.first() {
            lines.push(format!("        Node: {}", self.node_line(task.group)));
        }
        for (index, line) in shown.iter().enumerate() {
            lines.push(if index == 0 { format!("        ->  {line}") } else { format!("            {line}") });
        }
        lines
    }

    fn as_json(&self, plan: &Plan, tasks: &[Task], analyzed: &Analyzed) -> String {
        let inner = analyzed.shown.join("\n");
        let inner = if inner.trim().is_empty() { "[]".to_owned() } else { inner };
        let measured: Vec<String> = self.measured(tasks, analyzed).iter().map(|m| json_string(m)).collect();
        let measured = match measured.is_empty() {
            true => String::new(),
            false => format!("      \"Analyzed\": [{}],\n", measured.join(", ")),
        };
        format!(
            "[\n  {{\n    \"Plan\": {{\n      \"Node Type\": {},\n      \"Reason\": {},\n      \"Task Count\": {},\n      \
             \"Tasks Shown\": {},\n{}      \"Tasks\": [\n        {{\n          \"Node\": {},\n          \"Remote Plan\": {inner}\n        }}\n      ]\n    }}\n  }}\n]",
            json_string(&format!("pgherd {}", title(plan))),
            json_string(&plan.reason),
            tasks.len(),
            json_string(&tasks_shown(tasks.len())),
            measured,
            json_string(&tasks.first().map(|t| self.node_line(t.group)).unwrap_or_default())
        )
    }

    fn as_xml(&self, plan: &Plan, tasks: &[Task], analyzed: &Analyzed) -> String {
        let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let line = |measure: &String| format!("      <Analyzed>{}</Analyzed>\n", escape(measure));
        let measured: String = self.measured(tasks, analyzed).iter().map(line).collect();
        format!(
            "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>\n    <Plan>\n      <Node-Type>pgherd {}</Node-Type>\n      \
             <Reason>{}</Reason>\n      <Task-Count>{}</Task-Count>\n      <Tasks-Shown>{}</Tasks-Shown>\n{}      <Task>\n        \
             <Node>{}</Node>\n        <Remote-Plan>{}</Remote-Plan>\n      </Task>\n    </Plan>\n  </Query>\n</explain>",
            title(plan),
            escape(&plan.reason),
            tasks.len(),
            tasks_shown(tasks.len()),
            measured,
            escape(&tasks.first().map(|t| self.node_line(t.group)).unwrap_or_default()),
            analyzed.shown.join("\n")
        )
    }

    fn as_yaml(&self, plan: &Plan, tasks: &[Task], analyzed: &Analyzed) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "- Plan:");
        let _ = writeln!(out, "    Node Type: {}", json_string(&format!("pgherd {}", title(plan))));
        let _ = writeln!(out, "    Reason: {}", json_string(&plan.reason));
        let _ = writeln!(out, "    Task Count: {}", tasks.len());
        let _ = writeln!(out, "    Tasks Shown: {}", json_string(&tasks_shown(tasks.len())));
        let measured = self.measured(tasks, analyzed);
        if !measured.is_empty() {
            let _ = writeln!(out, "    Analyzed:");
        }
        for measure in &measured {
            let _ = writeln!(out, "      - {}", json_string(measure));
        }
        let _ = writeln!(out, "    Tasks:");
        let node = tasks.first().map(|t| self.node_line(t.group)).unwrap_or_default();
        let _ = writeln!(out, "      - Node: {}", json_string(&node));
        let _ = write!(out, "        Remote Plan:");
        for line in analyzed.shown.iter().flat_map(|s| s.lines()) {
            let _ = write!(out, "\n          {line}");
        }
        out
    }
}

/// EXPLAIN EXECUTE: what is explained is another statement than the EXPLAIN.
fn is_execute(call: &Call<'_>, inner: &Call<'_>) -> bool {
    !std::ptr::eq(call.prepared, inner.prepared)
}

fn title(plan: &Plan) -> &'static str {
    match &plan.tier {
        Tier::Route(_) => "Route",
        Tier::Scatter(_) => "Scatter",
        Tier::Stage(_) => "Stage",
        Tier::InsertRows(_) => "Insert Rows",
        Tier::InsertSelect(_) => "Insert Select",
        Tier::ReplicateWrite { .. } | Tier::ReplicateRows { .. } => "Replicate",
        Tier::Federate { .. } => "Federate",
        Tier::Coordinator { .. } => "Coordinator",
        Tier::Refuse(_) => "Refuse",
    }
}

fn tasks_shown(count: usize) -> String {
    if count == 1 { "All".to_owned() } else { format!("One of {count}") }
}

fn one_line(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json_string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
