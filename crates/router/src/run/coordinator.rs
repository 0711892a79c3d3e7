//! Statements that the coordinator runs: local tables, functions, and everything that only PostgreSQL itself can
//! answer. Distributed tables that it reads call back into this session meanwhile.

use std::collections::HashSet;

use pgherd_backend::QueryResult;
use pgherd_catalog::{COORDINATOR_GROUP, Resolved, Snapshot, qualified};
use pgherd_control::schema::{CATALOG_VIEWS, NOT_OURS};
use pgherd_planner::SessionView;
use pgherd_sql::ast::Tree;
use pgherd_sql::{Edits, Span, Splice, Statement, StatementKind};
use pgherd_wire::backend;

use super::give::Draws;
use super::repeat::{announces, calls_what_writes, locks};
use super::request::{Announce, Errors};
use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::{Prepared, Session};
use crate::settings::quote_ident;
use crate::transaction::Block;

/// Values for the transaction's time and the session's process; also in the query of CREATE TABLE AS, but not in what
/// is kept as a definition.
fn fix_session(statement: &Statement, catalog: &Snapshot, view: &SessionView<'_>, edits: &mut Edits) {
    let StatementKind::CreateTableAs(create) = &statement.kind else {
        return pgherd_planner::fix_session(statement, catalog, view, edits);
    };
    if create.materialized_view || create.is_execute {
        return;
    }
    let query = create.query.of(&statement.text);
    let Some(own) = pgherd_sql::split(query).ok().and_then(|mut list| list.pop()) else { return };
    let mut own_edits = Edits::new();
    pgherd_planner::fix_session(&own, catalog, view, &mut own_edits);
    edits.extend_at(own_edits, create.query.start + own.offset);
}

/// Of triggers as they are for users: those that fire on workers are disabled on the coordinator.
const TRIGGER_COLUMNS: &str = "oid, tgrelid, tgparentid, tgname, tgfoid, tgtype, \
    coalesce((SELECT w.enabled FROM pgherd.worker_trigger w WHERE w.trigger = pg_trigger.oid), tgenabled) \
    AS tgenabled, \
    tgisinternal, tgconstrrelid, tgconstrindid, tgconstraint, tgdeferrable, tginitdeferred, tgnargs, tgattr, tgargs, \
    tgqual, tgoldtable, tgnewtable";

/// Functions that leave something behind on the connection they ran on.
const SESSION_FUNCTIONS: &[&str] = &[
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
    "setseed",
    "set_config",
    "currval",
    "lastval",
    "nextval",
    "setval",
    "lo_open",
];

impl Session {
    /// A call's statement as the coordinator runs it.
    pub(super) async fn coordinator_text(&mut self, call: &Call<'_>) -> Result<Splice> {
        match &call.prepared.statement {
            Some(statement) => self.coordinator_text_with(statement, Some(call), &[]).await,
            None => Ok(Splice::default()),
        }
    }

    /// Our own names qualified, ONLY taken away from distributed tables (whose rows are in a child there), and catalogs
    /// replaced by views of them that do not show our own objects.
    pub(super) async fn coordinator_text_of(&mut self, statement: &Statement) -> Result<Splice> {
        self.coordinator_text_with(statement, None, &[]).await
    }

    /// The same with something else written at places of the text. `call`: has the values of its parameters.
    pub(super) async fn coordinator_text_with(
        &mut self,
        statement: &Statement,
        call: Option<&Call<'_>>,
        written: &[(Span, String)],
    ) -> Result<Splice> {
        let mut edits = Edits::new();
        for (span, text) in written {
            match span.start == span.end {
                true => edits.insert(span.start, text.as_str()),
                false => edits.replace(*span, text.as_str()),
            };
        }
        for (span, name) in pgherd_sql::own_names(statement) {
            edits.replace(span, name);
        }
        let path = self.search_path().await?;
        let catalog = self.catalog();
        for relation in &statement.relations {
            let resolved = catalog.resolve(relation.schema.as_deref(), &relation.name, &path);
            let has_child = matches!(resolved, Resolved::Table(table) if !table.is_partitioned);
            if relation.only && has_child && relation.span.is_known() {
                edits.replace(relation.full_span, relation.span.of(&statement.text));
            }
        }
        if let StatementKind::Ddl(info) = &statement.kind
            && (info.tag == "ALTER TABLE" || info.object == "index")
            && info.concurrently
            && let Some(span) = pgherd_sql::detached_concurrently(&statement.text)
        {
            edits.replace(span, "");
        }
        self.draw_samples(statement, call, &mut edits).await?;
        for (span, stand_in) in self.stand_ins(statement).into_iter().chain(self.encoding_calls(statement)) {
            edits.replace(span, stand_in);
        }
        self.with_view(&path, false, |view| {
            fix_session(statement, &catalog, view, &mut edits);
            pgherd_planner::compute_first(statement, &catalog, view, &mut edits);
        });
        edits.apply(&statement.text).map_err(Failure::from)
    }

    /// What is read in place of catalogs in which our own objects would be seen, or the client's would not.
    fn stand_ins(&self, statement: &Statement) -> Vec<(Span, String)> {
        use StatementKind as K;
        let reads = matches!(statement.kind, K::Select | K::DeclareCursor { .. });
        let table_oid = names_table_oid(&statement.text);
        let expands_it = table_oid && expands_columns(&statement.text);
        // pg_dump forbids itself views that it does not know, and reads what is in them.
        let restricted = self.settings.get("restrict_nonsystem_relation_kind").is_some_and(|kinds| !kinds.is_empty());
        let views = reads && !restricted && !names_system_columns(&statement.text) && !expands_it;
        let subqueries = reads || matches!(statement.kind, K::SelectInto | K::CreateTableAs(_));
        // A CTE of a catalog's name hides it.
        let hidden = |name: &str| match &statement.tree {
            Tree::Query(query) => query.with.iter().flat_map(|w| &w.ctes).any(|cte| cte.name == name),
            _ => false,
        };
        let with = statement.text.to_ascii_lowercase().contains("with");
        let class_columns = self.catalog().class_columns.clone();
        let mut found = Vec::new();
        let mut replaced: Vec<(String, &str)> = Vec::new();
        for relation in statement.relations.iter().filter(|r| r.span.is_known()) {
            let schema = relation.schema.as_deref();
            if schema.is_none() && hidden(&relation.name) {
                continue;
            }
            let view = CATALOG_VIEWS
                .iter()
                .find(|(home, name, _)| *name == relation.name && schema.map_or(*home == "pg_catalog", |s| s == *home))
                .map(|(_, _, view)| *view);
            let condition = NOT_OURS.iter().find(|(name, _)| *name == relation.name).map(|(_, condition)| *condition);
            let is_catalog = schema.is_none_or(|s| s == "pg_catalog");
            let stand_in = match view {
                Some(view) if views && table_oid && has_table_oid(&relation.name, view) => Some(format!(
                    "(SELECT 'pg_catalog.{}'::pg_catalog.regclass::pg_catalog.oid AS tableoid, * FROM {view})",
                    relation.name
                )),
                Some(view) if views => Some(view.to_owned()),
                _ if reads && restricted && is_catalog && condition.is_some() => condition.map(|condition| {
                    let columns = match (relation.name.as_str(), class_columns.is_empty()) {
                        ("pg_class", false) => class_columns.as_str(),
                        ("pg_trigger", _) => TRIGGER_COLUMNS,
                        _ => "*",
                    };
                    format!("(SELECT {columns}, tableoid, xmin FROM pg_catalog.{} WHERE {condition})", relation.name)
                }),
                None if subqueries && schema.is_none_or(|s| s == "pg_catalog") => self.session_view(&relation.name),
                _ => None,
            };
            // A CTE, of whatever level, may have the view's name; TABLE takes a name only.
            let written = statement.text.get(..relation.full_span.start).unwrap_or("").trim_end();
            let is_bare = written.len() >= 5
                && written.is_char_boundary(written.len() - 5)
                && written[written.len() - 5..].eq_ignore_ascii_case("table");
            if stand_in.is_none()
                && views
                && !with
                && !is_bare
                && let Some((home, query)) = self.view_of_catalogs(schema, &relation.name)
            {
                let alias = match has_alias(statement.text.get(relation.full_span.end..).unwrap_or("")) {
                    true => String::new(),
                    false => format!(" AS {}", quote_ident(&relation.name)),
                };
                found.push((relation.full_span, format!("({query}){alias}")));
                replaced.push((home, &relation.name));
                continue;
            }
            // Of its own settings a client is told by SELECT.
            if is_bare && relation.name == "pg_settings" {
                continue;
            }
            let Some(mut stand_in) = stand_in else { continue };
            // The name by which columns are qualified stays.
            let same = view.is_some_and(|v| v == stand_in && v.rsplit('.').next() == Some(relation.name.as_str()));
            if !same && !has_alias(statement.text.get(relation.full_span.end..).unwrap_or("")) {
                stand_in = format!("{stand_in} AS {}", relation.name);
            }
            found.push((relation.full_span, stand_in));
            let home =
                view.and_then(|view| CATALOG_VIEWS.iter().find(|(_, name, v)| *v == view && *name == relation.name));
            replaced.push((home.map_or("pg_catalog", |(home, ..)| home).to_owned(), &relation.name));
        }
        if !replaced.is_empty() {
            // The stand-in is of another schema, or of none.
            let qualifiers = statement.qualifiers().into_iter();
            let of_replaced =
                qualifiers.filter(|q| replaced.iter().any(|(home, name)| *home == q.schema && *name == q.table));
            found.extend(of_replaced.map(|q| (q.span, q.table)));
        }
        found
    }

    /// Where a name is a view of a user's over catalogs, which this role may read: its schema, and its query over what
    /// does not show our own objects.
    fn view_of_catalogs(&self, schema: Option<&str>, name: &str) -> Option<(String, String)> {
        let catalog = self.catalog();
        // What begins so is PostgreSQL's own first, without a schema.
        if catalog.catalog_views.is_empty()
            || self.temp.contains(name)
            || name.starts_with("pg_")
            || pgherd_sql::is_own_relation(name)
        {
            return None;
        }
        // Schemas in it may be used.
        let path = self.search_path.clone().unwrap_or_default();
        if schema.is_some_and(|schema| !path.iter().any(|known| known == schema)) {
            return None;
        }
        let listed: Vec<&str> = schema.map_or_else(|| path.iter().map(String::as_str).collect(), |schema| vec![schema]);
        let is_there = |schema: &&&str| {
            catalog.is_other(schema, name) || matches!(catalog.resolve(Some(schema), name, &[]), Resolved::Table(_))
        };
        let home = listed.iter().find(is_there)?;
        let view = catalog.catalog_views.get(&qualified(home, name))?;
        let is_another = ["role", "session_authorization"].into_iter().any(|name| self.settings.contains_key(name));
        if !view.is_public && (view.owner != self.user || is_another) {
            return None;
        }
        let query = view.query.trim_end().trim_end_matches(';');
        let statement = pgherd_sql::split(query).ok()?.pop()?;
        let mut edits = Edits::new();
        for (span, stand_in) in self.stand_ins(&statement) {
            edits.replace(span, stand_in);
        }
        let query = edits.apply(&statement.text).ok()?.as_written();
        Some(((*home).to_owned(), query))
    }

    /// What the coordinator runs by itself must not say when workers check constraints.
    fn check_constraints_inside(&self, call: &Call<'_>) -> Result<()> {
        let Some(statement) = &call.prepared.statement else { return Ok(()) };
        let catalog = self.catalog();
        if !catalog.has_deferrable {
            return Ok(());
        }
        let sets = |body: &str| {
            let lower = body.to_lowercase();
            let words: Vec<&str> = lower.split_whitespace().collect();
            words.windows(2).any(|pair| pair[0] == "set" && pair[1] == "constraints")
        };
        let calls = statement.calls.iter().any(|(_, name)| catalog.constraining_functions.contains(name));
        let in_body = matches!(&statement.kind, StatementKind::Do { body, .. } if sets(body));
        match calls || in_body {
            true => Err(Failure::refused("cannot run SET CONSTRAINTS inside a function or DO block")
                .detail("The workers check the constraints of distributed tables, and do not hear of it.")
                .hint("Send SET CONSTRAINTS by itself.")),
            false => Ok(()),
        }
    }

    /// The general way for a statement that only reads, whatever its plan is.
    pub(super) async fn federate(&mut self, call: &Call<'_>) -> Result<Completion> {
        let sql = self.coordinator_text(call).await?;
        self.run_coordinator_plan(call, &sql, false, true).await
    }

    /// Runs planned text on the coordinator, its reply is the client's.
    pub(super) async fn run_coordinator_plan(
        &mut self,
        call: &Call<'_>,
        sql: &Splice,
        writes: bool,
        in_block: bool,
    ) -> Result<Completion> {
        self.let_functions_sample(call, true).await?;
        self.check_constraints_inside(call)?;
        let announce = self.announce_on_coordinator(call).await?;
        if in_block || call.max_rows > 0 {
            self.open_implicit_block();
        }
        if call.prepared.statement.as_ref().is_some_and(sets_config) {
            self.making = first_arguments(call.prepared.text()).unwrap_or_default();
            self.save_before_read_only(call.prepared.text());
        }
        self.join_making().await?;
        let calls_function = self.calls_user_function(call);
        let draws = call.prepared.statement.as_ref().is_some_and(pgherd_planner::moves_sequences);
        if draws || writes || calls_function || call.prepared.statement.as_ref().is_some_and(pgherd_planner::asks_drawn)
        {
            self.forget_draws_of_others();
        }
        if writes || calls_function {
            self.mark_writer(COORDINATOR_GROUP);
        } else if draws {
            self.note_may_draw();
        }
        self.taint_coordinator(call);
        let types = match call.bound {
            Some(_) => match call.prepared.last_described() {
                Some(described) => described.param_types.clone(),
                None => call.prepared.declared.clone(),
            },
            None => Vec::new(),
        };
        let mut text = sql.as_written();
        let plain = call.prepared.plain().filter(|_| text == call.prepared.text());
        let verbatim = plain.map(|plain| Splice::verbatim(plain, 0));
        let errors = match (plain, &verbatim) {
            (Some(plain), Some(splice)) => Errors::of(splice, plain),
            _ => Errors::of(sql, call.prepared.text()),
        };
        if let Some(plain) = plain {
            text = plain.to_owned();
        }
        let shown = (call.max_rows > 0 && call.bound.is_none_or(|b| b.params.is_empty())).then(|| text.clone());
        let completion = if self.answers_to_query_only(call) {
            self.run_as_query(&text, errors).await?
        } else {
            let id = self.kept_there;
            self.run_single(call, COORDINATOR_GROUP, text, id, &types, announce, errors).await?
        };
        if completion == Completion::Suspended
            && let Some(statement) = &call.prepared.statement
            && matches!(statement.kind, StatementKind::Select)
        {
            self.keep_moment_of_portal(call, shown.as_deref()).await?;
        }
        self.follow_set_config(call, call.prepared.text()).await?;
        if calls_function {
            self.keep_moment_of_returned(call).await?;
        }
        let modifies = call.prepared.statement.as_ref().is_some_and(|s| s.has_modifying);
        if calls_function || modifies && self.txn.block != Block::None {
            self.notice_temporary_tables().await?;
        }
        Ok(completion)
    }

    /// A rule's SELECT returns rows in the simple protocol only: the extended one could not announce them. And only
    /// there FETCH from a binary cursor gives binary values without being asked for them.
    fn answers_to_query_only(&self, call: &Call<'_>) -> bool {
        use StatementKind as K;
        let Some(statement) = call.prepared.statement.as_ref().filter(|_| call.bound.is_none()) else { return false };
        if matches!(statement.kind, K::Fetch { is_move: false, .. }) {
            return true;
        }
        let catalog = self.catalog();
        call.staged.is_none()
            && call.max_rows == 0
            && matches!(statement.kind, K::Insert | K::Update | K::Delete)
            && statement.relations.iter().any(|r| catalog.ruled_relations.contains(&r.name) || r.name == "pg_settings")
    }

    /// A Query message has no parameters: the coordinator says so, where nothing before them is wrong.
    pub(super) async fn refuse_parameters(&mut self, call: &Call<'_>) -> Result<Completion> {
        let text = call.prepared.text();
        self.join(COORDINATOR_GROUP).await?;
        let splice = Splice::verbatim(text, 0);
        self.run_as_query(text, Errors::of(&splice, text)).await
    }

    /// Runs a statement by the simple protocol, as the client sent it; the reply is the client's.
    async fn run_as_query(&mut self, sql: &str, errors: Errors<'_>) -> Result<Completion> {
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.send_query(sql);
        let mut tag = String::new();
        let mut failure = None;
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match frame.tag() {
                b'T' | b'D' | b'N' => {
                    self.client.forward(&frame);
                    self.client.flush_if_full().await?;
                }
                b'C' => tag = backend::parse_command_complete(&frame)?.to_owned(),
                b'E' => failure = Some(backend::parse_error(&frame)?),
                b'Z' => break,
                _ => self.forward_aside(COORDINATOR_GROUP, &frame),
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        match failure {
            Some(fields) => Err(self.translate(fields, errors)),
            None => Ok(Completion::Tag(tag)),
        }
    }

    /// Whatever stands in for a catalog is described as that catalog: the columns are its own.
    async fn announce_on_coordinator(&mut self, call: &Call<'_>) -> Result<Announce<'static>> {
        if !call.describes() {
            return Ok(Announce::Nothing);
        }
        if call.staged.is_some() {
            return Ok(Announce::Known(self.described(call.prepared).await?));
        }
        match &call.prepared.statement {
            // They run to their end before the first row is told.
            Some(statement) if !crate::session::is_planned(&statement.kind) || statement.has_modifying => {
                Ok(Announce::WithRows)
            }
            Some(statement) if !statement.samples.is_empty() || !self.stand_ins(statement).is_empty() => {
                Ok(Announce::Known(self.described(call.prepared).await?))
            }
            _ => Ok(Announce::Columns(&[])),
        }
    }

    /// Functions that a statement calls, or that views, defaults, triggers and operators call behind it, may leave
    /// settings on the connection: nobody else gets it like that. And what built-in ones write, lock or announce there
    /// is part of the transaction.
    pub(super) fn taint_coordinator(&mut self, call: &Call<'_>) {
        const MAY_RUN_ANYTHING: &[&str] = &["set_config", "query_to_xml", "ts_rewrite", "pg_settings", "cursor_to_xml"];
        let lower = call.prepared.text().to_ascii_lowercase();
        let unclean = self.kept_there.is_none()
            && (!self.catalog().user_functions.is_empty() || MAY_RUN_ANYTHING.iter().any(|name| lower.contains(name)));
        if unclean && let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.tainted = true;
        }
        let (writes, locks, announces) = (calls_what_writes(call), locks(call), announces(call));
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.wrote |= writes;
            participant.ends_last |= locks || announces;
            participant.announces |= announces;
        }
    }

    /// Runs a utility statement's text on the coordinator, its reply is the client's.
    pub(super) async fn run_on_coordinator(&mut self, call: &Call<'_>, sql: &str, writes: bool) -> Result<Completion> {
        self.join(COORDINATOR_GROUP).await?;
        if writes {
            self.mark_writer(COORDINATOR_GROUP);
        }
        let splice = Splice::verbatim(sql, 0);
        let errors = Errors::of(&splice, call.prepared.text());
        let types = call.prepared.declared.clone();
        let announce = if call.describes() { Announce::WithRows } else { Announce::Nothing };
        self.run_single(call, COORDINATOR_GROUP, sql.to_owned(), None, &types, announce, errors).await
    }

    /// DO, CALL, NOTIFY and statements we know nothing of. What a body does with distributed tables arrives as
    /// callbacks; it is atomic with the rest, unless the body ends transactions itself.
    pub(super) async fn run_procedural(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        if matches!(kind, StatementKind::Do { .. } | StatementKind::Call) {
            Box::pin(self.doubt_last_drawn()).await?;
        }
        self.check_constraints_inside(call)?;
        self.note_session_calls(call);
        let own_transactions = match kind {
            StatementKind::Do { .. } | StatementKind::Call => self.body_ends_transactions(call.prepared).await?,
            _ => true,
        };
        self.let_functions_sample(call, !own_transactions).await?;
        if !own_transactions {
            self.open_implicit_block();
        }
        let written = match kind {
            StatementKind::Do { .. } => {
                let written = super::written_anew(call.prepared.text(), "", &self.catalog())?;
                self.block_with_drawn(written.as_deref().unwrap_or(call.prepared.text())).or(written)
            }
            _ => None,
        };
        let again = match &written {
            Some(text) => pgherd_sql::split(text).ok().and_then(|mut all| all.pop()),
            None => call.prepared.statement.clone(),
        };
        let written = match again.filter(|_| matches!(kind, StatementKind::Do { .. })) {
            Some(statement) => {
                let text = self.coordinator_text_of(&statement).await?.as_written();
                (written.is_some() || text != statement.text).then_some(text)
            }
            None => written,
        };
        let text = written.as_deref().unwrap_or(call.prepared.text());
        let runs_bodies = matches!(kind, StatementKind::Do { .. } | StatementKind::Call);
        let roles = match runs_bodies && self.txn.block == Block::None {
            true => Some(self.committed_roles().await?),
            false => None,
        };
        let announces = matches!(kind, StatementKind::Notify { .. });
        if own_transactions && runs_bodies {
            self.begin_own_transactions().await?;
        }
        let completion = self.run_on_coordinator(call, text, !announces).await;
        self.forget_leases_after(call, Draws::Shown);
        self.end_own_transactions().await;
        let completion = completion?;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.ends_last |= announces;
            participant.announces |= announces;
        }
        if let Some(roles) = roles {
            self.follow_committed_roles(&roles).await?;
        }
        if matches!(kind, StatementKind::Call) {
            self.keep_moment_of_returned(call).await?;
        }
        if matches!(kind, StatementKind::Do { .. } | StatementKind::Call | StatementKind::Other(_))
            && let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
        {
            participant.lease.tainted = true;
        }
        if let StatementKind::Do { body, .. } = kind {
            self.txn.body_settings.extend(body_settings(body));
        }
        if matches!(kind, StatementKind::Other("LOAD")) {
            self.forget_removed_settings().await?;
        }
        self.notice_temporary_tables().await?;
        Ok(completion)
    }

    /// Whether a DO block or a procedure that is called may end transactions itself.
    pub(crate) async fn body_ends_transactions(&mut self, prepared: &Prepared) -> Result<bool> {
        let Some(statement) = &prepared.statement else { return Ok(false) };
        let called = match &statement.kind {
            StatementKind::Do { body, language } => {
                pgherd_sql::procedures_called(body, language.as_deref().unwrap_or("plpgsql"))
            }
            StatementKind::Call => {
                let called: Vec<String> = statement.calls.iter().map(|(_, name)| name.clone()).collect();
                Some(called).filter(|called| !called.is_empty())
            }
            _ => return Ok(false),
        };
        self.procedures_end_transactions(called).await
    }

    /// LOAD gives this connection a library, and takes settings away that the library does not know.
    async fn forget_removed_settings(&mut self) -> Result<()> {
        self.pin = true;
        let names: Vec<String> = self.settings.keys().filter(|n| n.contains('.')).cloned().collect();
        for name in names.iter().filter(|n| !crate::settings::is_own(n)) {
            let sql = format!("SELECT pg_catalog.current_setting({}, true)", crate::settings::quote_literal(name));
            if self.collect_on(COORDINATOR_GROUP, &sql).await?.text(0, 0).is_none() {
                self.settings.remove(name);
                if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                    participant.lease.applied.remove(name);
                }
            }
        }
        Ok(())
    }

    /// Whether a procedure of these names, or one that it calls, may end transactions. None: what calls them does.
    async fn procedures_end_transactions(&mut self, called: Option<Vec<String>>) -> Result<bool> {
        let Some(mut waiting) = called else { return Ok(true) };
        let mut seen: HashSet<String> = waiting.iter().cloned().collect();
        while !waiting.is_empty() {
            let names: Vec<String> = waiting.drain(..).map(|name| crate::settings::quote_literal(&name)).collect();
            let sql = format!(
                "SELECT p.prosrc, l.lanname FROM pg_catalog.pg_proc p \
                 JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE p.prokind = 'p' AND p.proname IN ({})",
                names.join(", ")
            );
            let bodies = self.ask_coordinator(&sql).await?;
            for row in 0..bodies.rows.len() {
                let (body, language) =
                    (bodies.text(row, 0).unwrap_or_default(), bodies.text(row, 1).unwrap_or_default());
                let Some(called) = pgherd_sql::procedures_called(body, language) else { return Ok(true) };
                waiting.extend(called.into_iter().filter(|name| seen.insert(name.clone())));
            }
        }
        Ok(false)
    }

    /// By itself, or by a view.
    pub(super) fn calls_user_function(&self, call: &Call<'_>) -> bool {
        call.prepared.statement.as_ref().is_some_and(|statement| self.statement_calls_user_function(statement))
    }

    pub(super) fn statement_calls_user_function(&self, statement: &Statement) -> bool {
        let catalog = self.catalog();
        let is_users =
            |schema: Option<&str>, name: &str| schema != Some("pg_catalog") && catalog.user_functions.contains(name);
        statement.calls.iter().any(|(schema, name)| is_users(schema.as_deref(), name))
            || statement.relations.iter().any(|relation| catalog.calling_views.contains(&relation.name))
    }

    /// Before a statement that may call what sets settings by names that it computes: those that it gives are among them.
    pub(super) fn note_names_given(&mut self, call: &Call<'_>) {
        if !self.catalog().body_settings.contains(ANY_SETTING) || !self.calls_user_function(call) {
            return;
        }
        let values = call.bound.into_iter().flat_map(|bound| bound.params.iter().flatten());
        let texts = values.filter_map(|value| std::str::from_utf8(value).ok()).map(str::to_ascii_lowercase);
        let names = literal_names(call.prepared.text()).into_iter().chain(texts);
        self.txn.body_settings.extend(names.filter(|name| name.contains('.') && is_setting_name(name)));
    }

    /// A call that leaves session state behind ties the session to its coordinator connection.
    pub(super) fn note_session_calls(&mut self, call: &Call<'_>) {
        let Some(statement) = &call.prepared.statement else { return };
        let catalog = self.catalog();
        let leaves = |name: &str| SESSION_FUNCTIONS.contains(&name) || catalog.leaving_functions.contains(name);
        let in_body = |body: &str| body.to_lowercase().split(|c: char| !c.is_alphanumeric() && c != '_').any(leaves);
        let leaves_state = statement.calls.iter().any(|(_, name)| leaves(name))
            || matches!(&statement.kind, StatementKind::Do { body, .. } if in_body(body));
        if leaves_state {
            self.pin = true;
        }
    }

    /// `set_config` is SET or SET LOCAL: the other servers must follow it. `text`: where the arguments are.
    pub(super) async fn follow_set_config(&mut self, call: &Call<'_>, text: &str) -> Result<()> {
        let Some(statement) = &call.prepared.statement else { return Ok(()) };
        if !sets_config(statement) {
            return Ok(());
        }
        let by_rule = changes_settings(statement);
        let mut names = first_arguments(&statement.text).filter(|_| !by_rule);
        if names.is_none() {
            let mut found = literal_names(&statement.text);
            found.extend(literal_names(text));
            let values = call.bound.into_iter().flat_map(|bound| bound.params.iter().flatten());
            let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
            found.extend(texts.filter(|text| is_setting_name(text)).map(str::to_ascii_lowercase));
            let sql = "SELECT pg_catalog.lower(name) FROM pg_catalog.pg_settings WHERE source = 'session'";
            let set = self.collect_on(COORDINATOR_GROUP, sql).await?;
            found.extend((0..set.rows.len()).filter_map(|row| set.text(row, 0).map(str::to_owned)));
            names = Some(found);
        }
        // The client's encoding is not the servers'. What is the transaction's is over with it.
        let (of_transaction, names): (Vec<String>, Vec<String>) = names
            .unwrap_or_default()
            .into_iter()
            .filter(|name| !matches!(name.as_str(), "client_encoding" | "seed"))
            .partition(|name| name.starts_with("transaction_"));
        for name in of_transaction {
            let sql = format!("SELECT pg_catalog.current_setting({}, true)", crate::settings::quote_literal(&name));
            let value = self.collect_on(COORDINATOR_GROUP, &sql).await?.text(0, 0).map(str::to_owned);
            if let Some(value) = value.filter(|_| self.txn.block != Block::None) {
                self.set_followed(&name, value, true);
            }
        }
        self.txn.body_settings.extend(names);
        self.follow_settings_of_bodies().await?;
        self.forget_search_path();
        Ok(())
    }

    /// After bodies have run on the coordinator: what they have set there is so on the other servers. Inside of a block
    /// nobody can tell what was set for the block alone; that shows when it is over.
    pub(super) async fn follow_settings_of_bodies(&mut self) -> Result<()> {
        let names = self.catalog().body_settings.clone();
        self.txn.body_settings.extend(names.iter().map(str::to_owned));
        if self.txn.body_settings.is_empty() {
            return Ok(());
        }
        if self.txn.body_settings.contains(ANY_SETTING) {
            let known = self.settings.keys().filter(|name| *name != "client_encoding");
            self.txn.body_settings.extend(known.cloned());
        }
        let found = self.collect_on(COORDINATOR_GROUP, &settings_sql(&self.txn.body_settings)).await?;
        let in_block = self.txn.block != Block::None;
        for row in 0..found.rows.len() {
            let (Some(name), value) = (found.text(row, 0), found.text(row, 1).unwrap_or_default()) else { continue };
            let known = self.in_force(name);
            if known.or(found.text(row, 2)).unwrap_or_default() == value && (known.is_some() || !is_made(&found, row)) {
                continue;
            }
            self.set_followed(name, value.to_owned(), in_block);
            self.forget_search_path();
        }
        Ok(())
    }

    /// At the end of a block: what bodies have set for longer than that is the session's.
    pub async fn keep_settings_of_bodies(&mut self) {
        let names = std::mem::take(&mut self.txn.body_settings);
        let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) else { return };
        if names.is_empty() || !participant.lease.is_idle() {
            return;
        }
        let Ok(found) = participant.lease.query(&settings_sql(&names)).await else { return };
        for row in 0..found.rows.len() {
            let (Some(name), value) = (found.text(row, 0), found.text(row, 1).unwrap_or_default()) else { continue };
            let known = self.settings.get(name).map(String::as_str);
            if known.or(found.text(row, 2)).unwrap_or_default() != value || known.is_none() && is_made(&found, row) {
                participant.lease.applied.insert(name.to_owned(), value.to_owned());
                self.settings.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    /// Remembers a setting that the coordinator connection has already taken.
    pub(super) fn set_followed(&mut self, name: &str, value: String, local: bool) {
        let eased = crate::settings::eased(name, &value);
        if !local {
            self.settings.insert(name.to_owned(), eased.clone().unwrap_or_else(|| value.clone()));
        }
        if self.txn.block == Block::None {
            if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                participant.lease.applied.insert(name.to_owned(), value);
            }
        } else if let Some(value) = eased {
            // The coordinator is told it again.
            self.log(crate::transaction::LogItem::Set { name: name.to_owned(), value, local });
        } else {
            if name == "transaction_isolation" {
                self.txn.keeps_snapshot = super::keeps_snapshot(&value);
            }
            self.log(crate::transaction::LogItem::Set { name: name.to_owned(), value, local });
            self.told(COORDINATOR_GROUP);
        }
    }
}

/// Whether what follows a relation's name in FROM is an alias.
fn has_alias(rest: &str) -> bool {
    const NO_ALIAS: &[&str] = &[
        "where",
        "join",
        "left",
        "right",
        "full",
        "inner",
        "cross",
        "natural",
        "on",
        "using",
        "group",
        "order",
        "limit",
        "offset",
        "having",
        "union",
        "intersect",
        "except",
        "window",
        "for",
        "fetch",
        "returning",
        "tablesample",
    ];
    let rest = rest.trim_start();
    let word: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    rest.starts_with('"') || (!word.is_empty() && !NO_ALIAS.contains(&word.to_ascii_lowercase().as_str()))
}

/// Views have no system columns, and rows of theirs cannot be locked.
fn names_system_columns(text: &str) -> bool {
    ["ctid", "xmin", "xmax", "for update", "for share"].iter().any(|word| text.to_ascii_lowercase().contains(word))
}

/// psql joins descriptions by it.
fn names_table_oid(text: &str) -> bool {
    text.to_ascii_lowercase().contains("tableoid")
}

/// A catalog, and no view of it.
fn has_table_oid(name: &str, view: &str) -> bool {
    const VIEWS: &[&str] = &[
        "pg_locks",
        "pg_stat_activity",
        "pg_tables",
        "pg_views",
        "pg_indexes",
        "pg_sequences",
        "pg_stats_ext",
        "pg_stats_ext_exprs",
        "pg_user_mappings",
    ];
    view.rsplit('.').next() == Some(name) && !VIEWS.contains(&name)
}

/// A `*` that might stand for columns: a stand-in with one more would show.
fn expands_columns(text: &str) -> bool {
    text.replace(' ', "").replace("(*)", "").contains('*')
}

/// Among the names of settings that bodies set: some that they compute. Of those that only users know PostgreSQL has no
/// list: where nobody has seen the name, the value stays with the session's connection, since such functions leave
/// something there.
const ANY_SETTING: &str = "*";

/// Asks for settings: names, values, and what they are where nobody has set them.
fn settings_sql(names: &std::collections::BTreeSet<String>) -> String {
    let named = names.iter().filter(|name| *name != ANY_SETTING);
    let list: Vec<String> = named.map(|name| crate::settings::quote_literal(name)).collect();
    let of_session = match names.contains(ANY_SETTING) {
        true => {
            " UNION SELECT pg_catalog.lower(x.name) FROM pg_catalog.pg_settings x WHERE x.source = 'session' \
             AND x.name !~ '^(pgherd[.]|transaction_|client_encoding$|seed$)'"
        }
        false => "",
    };
    format!(
        "SELECT n.name, pg_catalog.current_setting(n.name, true), s.reset_val \
         FROM (SELECT pg_catalog.unnest(ARRAY[{}]::pg_catalog.text[]){of_session}) n(name) \
         LEFT JOIN pg_catalog.pg_settings s ON pg_catalog.lower(s.name) = n.name",
        list.join(", ")
    )
}

/// Settings that a body names behind SET and RESET, and in set_config(). Columns behind UPDATE … SET are among them.
fn body_settings(body: &str) -> Vec<String> {
    let lower = body.to_ascii_lowercase();
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let words: Vec<&str> = lower.split(|c: char| !is_word(c)).filter(|w| !w.is_empty()).collect();
    let mut found = Vec::new();
    if lower.contains("set_config") {
        found = first_arguments(body).unwrap_or_else(|| {
            let mut names = literal_names(body);
            names.push(ANY_SETTING.to_owned());
            names
        });
    }
    let is_computed = |at: usize, word: &str| {
        let before = lower[..at].chars().next_back();
        let next = lower[at + word.len()..].trim_start();
        !before.is_some_and(is_word) && (next.starts_with('%') || next.starts_with('\''))
    };
    if ["set ", "set local ", "reset "].iter().any(|w| lower.match_indices(w).any(|(at, word)| is_computed(at, word))) {
        found.push(ANY_SETTING.to_owned());
    }
    for (at, _) in words.iter().enumerate().filter(|(_, word)| matches!(**word, "set" | "reset")) {
        let next = words[at + 1..].iter().find(|word| !matches!(**word, "local" | "session"));
        found.extend(next.map(|name| if *name == "time" { "timezone" } else { *name }.to_owned()));
    }
    found.retain(|name| !matches!(name.as_str(), "client_encoding" | "transaction"));
    found
}

fn sets_config(statement: &Statement) -> bool {
    changes_settings(statement) || statement.calls.iter().any(|(_, name)| name == "set_config")
}

/// UPDATE of `pg_settings`, whose rule calls set_config.
fn changes_settings(statement: &Statement) -> bool {
    matches!(statement.kind, StatementKind::Update) && statement.relations.iter().any(|r| r.name == "pg_settings")
}

/// A setting that no server has of its own: it is there, and perhaps empty, once somebody has set it.
fn is_made(found: &QueryResult, row: usize) -> bool {
    found.text(row, 0).is_some_and(|name| name.contains('.')) && found.text(row, 1).is_some()
}

/// First arguments of `set_config`, where all are literals.
fn first_arguments(text: &str) -> Option<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let first = |at: usize| {
        let rest = lower[at..].trim_start().strip_prefix('(')?.trim_start().strip_prefix('\'')?;
        rest.split_once('\'').map(|(name, _)| name.to_owned())
    };
    lower.match_indices("set_config").map(|(at, word)| first(at + word.len())).collect()
}

/// All literals that may be names of settings: `SELECT set_config(name, …) FROM pg_settings WHERE name = '…'`, as
/// pg_dump has it.
fn literal_names(text: &str) -> Vec<String> {
    let lower = text.to_ascii_lowercase();
    lower.split('\'').skip(1).step_by(2).filter(|literal| is_setting_name(literal)).map(str::to_owned).collect()
}

fn is_setting_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
}
