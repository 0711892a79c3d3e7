//! Definition statements. The coordinator's table is the schema of record: a statement runs there first, and workers
//! are brought from the description before to the description after (`pgherd-control::ddl`). Everything is one
//! transaction; what PostgreSQL refuses inside a block is in `operation.rs`. Definitions of one table take turns, as
//! PostgreSQL's own.

use std::sync::Arc;

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Oid, Resolved, Table};
use pgherd_control::cluster_state::ClusterState;
use pgherd_control::ddl::{self, Fill, Hints};
use pgherd_control::describe::TableDescription;
use pgherd_control::distribute;
use pgherd_control::operation;
use pgherd_sql::{CreateTable, CreateTableAs, DdlInfo, Name, Splice, StatementKind};

use super::distribute::{parse_table, refusal};
use super::objects::{Followed, is_role_grant};
use super::{Call, Completion, Definer, is_transaction_control};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal, quote_name};
use crate::transaction::{Block, LogItem, Reach};

/// How often the affected tables are looked up again because others changed them meanwhile.
pub(super) const LOCK_ROUNDS_MAX: usize = 20;

/// Whether a statement is right, and what comes of it, though the router has not read what definitions of local tables
/// before it in its transaction have changed. Migrations consist of such.
pub fn needs_no_news(kind: &StatementKind) -> bool {
    use StatementKind as K;
    match kind {
        K::CreateTable(create) => {
            !is_temporary(create.temp, &create.name) && create.parents.is_empty() && !create.is_foreign
        }
        K::Ddl(info) => defines_local_parts(info),
        K::PrepareTransaction(_) => false,
        other => is_transaction_control(other),
    }
}

fn is_temporary(temp: bool, name: &Name) -> bool {
    temp || name.schema.as_deref() == Some("pg_temp")
}

/// Of local relations, nothing of what it changes is in the catalog that routers hold.
fn tells_nothing(info: &DdlInfo) -> bool {
    matches!(info.tag, "GRANT" | "REVOKE" | "COMMENT")
        && matches!(info.object, "table" | "column" | "index" | "sequence" | "view" | "materialized view")
}

/// Where it concerns local tables alone, it changes neither which are distributed nor what a name means.
fn defines_local_parts(info: &DdlInfo) -> bool {
    !info.temp
        && !info.concurrently
        && match info.tag {
            "CREATE INDEX" | "CREATE SEQUENCE" | "ALTER SEQUENCE" => true,
            // What goes with a column, a sequence of its own, may have hidden a table.
            "ALTER TABLE" => info.object == "table" && !info.subcommands.iter().any(|s| s.starts_with("drop")),
            "COMMENT" => matches!(info.object, "table" | "column" | "index" | "sequence"),
            _ => false,
        }
}
impl Session {
    pub(super) async fn run_ddl(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        use StatementKind as K;
        match kind {
            K::Truncate { relations, only, restart_identity, cascade } => {
                self.run_truncate(call, relations, only, *restart_identity, *cascade).await
            }
            K::Vacuum { relations, .. } => self.run_maintenance(call, relations, false).await,
            K::Cluster => {
                let relations = call.prepared.statement.iter().flat_map(|s| &s.relations);
                let relations: Vec<Name> =
                    relations.map(|r| Name { schema: r.schema.clone(), name: r.name.clone() }).collect();
                self.run_maintenance(call, &relations, false).await
            }
            K::Reindex { relation, object, .. } => {
                let relations: Vec<Name> = relation.iter().cloned().collect();
                self.run_maintenance(call, &relations, *object == "index").await
            }
            K::Lock { relations } => self.run_lock(call, relations).await,
            K::CreateTable(create) => {
                if is_temporary(create.temp, &create.name) {
                    return self.run_create_temp(call, &create.name).await;
                }
                match self.created_below(create).await? {
                    Some(info) => self.run_definition(call, &info).await,
                    None => self.run_local_ddl(call).await,
                }
            }
            K::CreateTableAs(create) => {
                let temp = is_temporary(create.temp, &create.name);
                if create.is_execute && !self.creates_there(create.query.of(call.prepared.text())).await? {
                    return self.run_create_as_execute(call, create, temp).await;
                }
                if temp {
                    return self.run_create_temp(call, &create.name).await;
                }
                self.run_local_ddl(call).await
            }
            K::SelectInto => {
                let completion = self.run_local_ddl(call).await?;
                self.notice_temporary_tables().await?;
                Ok(completion)
            }
            K::RefreshMatView { .. } => self.run_local_ddl(call).await,
            K::Ddl(info) => {
                if let Some(done) = self.run_own_extension(info, call.prepared.text()).await? {
                    return Ok(done);
                }
                let (fresh, mark) = (self.txn.block == Block::None, self.client.mark());
                match self.run_definition(call, info).await {
                    // The table has become distributed while the statement waited for it.
                    Err(failure) if fresh && failure.sqlstate() == "PH001" && self.client.mark() == mark => {
                        self.undo_autocommit().await;
                        self.db.reload(&self.thread.shared).await?;
                        self.forget_search_path();
                        self.run_definition(call, info).await
                    }
                    other => other,
                }
            }
            _ => self.run_local_ddl(call).await,
        }
    }

    /// What CREATE TABLE does to a distributed table, as whose partition it makes the new one.
    pub(super) async fn created_below(&mut self, create: &CreateTable) -> Result<Option<DdlInfo>> {
        for parent in &create.parents {
            if let Some(table) = self.distributed(parent).await? {
                if create.partition_of && table.is_partitioned {
                    return Ok(Some(DdlInfo {
                        tag: "CREATE TABLE",
                        object: "table",
                        relations: create.parents.clone(),
                        ..DdlInfo::default()
                    }));
                }
                return Err(Failure::refused(format!("cannot create a child of distributed table \"{}\"", table.name)));
            }
        }
        for referenced in &create.references {
            if let Some(table) = self.distributed(referenced).await?
                && !table.is_reference()
            {
                if table.is_partitioned || table.is_leaf {
                    return Err(super::local_keys::key_to_partitioned(&table));
                }
                // Whatever takes the referenced rows away from now on has to know (`Table::local_keys`).
                self.txn.changes_catalog(Reach::Shared);
            }
        }
        Ok(None)
    }

    /// The distributed or reference table of a name, if it is one.
    pub(super) async fn distributed(&mut self, name: &Name) -> Result<Option<Arc<Table>>> {
        if name.schema.is_none() && self.temp.contains(&name.name) {
            return Ok(None);
        }
        let path = self.search_path().await?;
        match self.catalog().resolve(name.schema.as_deref(), &name.name, &path) {
            Resolved::Table(table) => Ok(Some(table.clone())),
            Resolved::Other => Ok(None),
        }
    }

    async fn run_create_temp(&mut self, call: &Call<'_>, name: &Name) -> Result<Completion> {
        self.open_implicit_block();
        let sql = self.created_text(call).await?;
        self.run_create_temp_as(call, name, &sql).await
    }

    async fn run_create_temp_as(&mut self, call: &Call<'_>, name: &Name, sql: &Splice) -> Result<Completion> {
        self.pin = true;
        let completion = self.run_coordinator_plan(call, sql, true, true).await?;
        self.temp.insert(name.name.clone());
        self.forget_search_path();
        Ok(completion)
    }

    /// An object of the session's temporary schema, which its connection takes with it. Relations are found there by
    /// looking; other objects are not.
    fn makes_temporary(&self, call: &Call<'_>) -> bool {
        let is_named = |text: &str| text.to_ascii_lowercase().contains("pg_temp");
        let is_path = |item: &LogItem| match item {
            LogItem::Set { name, value, .. } => name == "search_path" && is_named(value),
            _ => false,
        };
        is_named(call.prepared.text())
            || self.settings.get("search_path").is_some_and(|path| is_named(path))
            || self.txn.log.iter().any(is_path)
    }

    /// Relations that a path made temporary, and no word.
    async fn notice_made_temporary(&mut self, call: &Call<'_>) -> Result<()> {
        match self.makes_temporary(call) {
            true => self.notice_temporary_tables().await,
            false => Ok(()),
        }
    }

    /// A definition that only the coordinator has.
    async fn run_local_ddl(&mut self, call: &Call<'_>) -> Result<Completion> {
        self.open_implicit_block();
        let sql = self.created_text(call).await?;
        let completion = self.run_local_ddl_as(call, &sql).await?;
        self.notice_made_temporary(call).await?;
        Ok(completion)
    }

    /// The text that the coordinator gets. The query of CREATE TABLE AS reads the transaction's time.
    async fn created_text(&mut self, call: &Call<'_>) -> Result<Splice> {
        let Some(statement) = &call.prepared.statement else { return Ok(Splice::default()) };
        let query = match &statement.kind {
            StatementKind::CreateTableAs(create) if !create.materialized_view && !create.is_execute => {
                pgherd_sql::split(create.query.of(&statement.text)).ok().and_then(|mut list| list.pop())
            }
            StatementKind::SelectInto => Some(statement.clone()),
            _ => None,
        };
        if let Some(query) = &query {
            self.agree_with_coordinator(query).await?;
        }
        self.coordinator_text(call).await
    }

    async fn run_local_ddl_as(&mut self, call: &Call<'_>, sql: &Splice) -> Result<Completion> {
        let completion = self.run_coordinator_plan(call, sql, true, true).await?;
        match call.prepared.statement.as_ref().map(|statement| &statement.kind) {
            Some(kind @ StatementKind::CreateTable(create)) if needs_no_news(kind) => {
                let reach = if create.references.is_empty() { Reach::New } else { Reach::Local };
                self.after_local_ddl(Some(&create.name), reach).await?;
            }
            _ => self.after_ddl(Reach::Local).await?,
        }
        Ok(completion)
    }

    async fn run_create_as_execute(
        &mut self,
        call: &Call<'_>,
        create: &CreateTableAs,
        temp: bool,
    ) -> Result<Completion> {
        self.open_implicit_block();
        let Some((sql, lent)) = self.lend_prepared(call.prepared.text(), create.query).await? else {
            return self.run_local_ddl(call).await;
        };
        let completion = if temp {
            self.run_create_temp_as(call, &create.name, &sql).await?
        } else {
            let completion = self.run_local_ddl_as(call, &sql).await?;
            self.notice_made_temporary(call).await?;
            completion
        };
        self.run_quiet(COORDINATOR_GROUP, &format!("DEALLOCATE {lent}")).await?;
        Ok(completion)
    }

    pub(super) async fn after_ddl(&mut self, reach: Reach) -> Result<()> {
        self.note_unheard_definition(reach).await?;
        match self.is_last_of_transaction() {
            true => Ok(()),
            false => self.reload_catalog_in_block().await,
        }
    }

    /// After one that left distributed tables, and what names mean them, as they were: what it has changed is read
    /// before a statement that may need it, and after a commit with all the rest.
    async fn after_local_ddl(&mut self, name: Option<&Name>, reach: Reach) -> Result<()> {
        let catalog = self.catalog();
        let hides = name.is_some_and(|name| catalog.tables.values().any(|names| names.contains_key(&*name.name)));
        if self.txn.block == Block::None || hides || crate::names::may_sample(&catalog) {
            return self.after_ddl(reach).await;
        }
        self.note_unheard_definition(reach).await?;
        self.txn.catalog = Some(catalog);
        self.txn.catalog_lags = true;
        Ok(())
    }

    /// The catalog changes at the commit. Without event triggers nobody has noted what.
    async fn note_unheard_definition(&mut self, reach: Reach) -> Result<()> {
        self.txn.changes_catalog(reach);
        let are_told = |setting: &str| ["on", "true", "yes", "1"].contains(&setting.to_ascii_lowercase().as_str());
        if self.in_force("event_triggers").is_some_and(|setting| !are_told(setting)) {
            self.call_own(COORDINATOR_GROUP, "SELECT pgherd.note_change(0, 0)").await?;
        }
        Ok(())
    }

    /// Nobody looks between the end of a Query, or what a Sync ends, and its commit; but for functions that sample, which
    /// have to hear of tables.
    pub(super) fn is_last_of_transaction(&self) -> bool {
        match self.txn.block {
            Block::None => true,
            Block::Implicit => self.last_of_query && !crate::names::may_sample(&self.catalog()),
            Block::Explicit | Block::Failed => false,
        }
    }

    async fn run_definition(&mut self, call: &Call<'_>, info: &DdlInfo) -> Result<Completion> {
        self.define(call, info, 0).await
    }

    /// `rounds`: how often others' definitions have come between.
    async fn define(&mut self, call: &Call<'_>, info: &DdlInfo, rounds: usize) -> Result<Completion> {
        if info.temp
            && let Some(name) = info.objects.first().or(info.relations.first())
        {
            return self.run_create_temp(call, &name.clone()).await;
        }
        if info.tag == "RENAME"
            && let Some(("database", name)) = &info.renamed_part
        {
            self.leave_database(name).await?;
        }
        self.leave_schema(info).await?;
        let since = if drops_part(info) { self.coordinator_time().await? } else { String::new() };
        let mut affected = self.affected_tables(info).await?;
        if self.txn.catalog_lags && !affected.is_empty() {
            self.reload_catalog_in_block().await?;
            affected = self.affected_tables(info).await?;
        }
        let added_keys = self.keys_to_check(call.prepared.text(), info, &affected, false).await?;
        // DETACH PARTITION … CONCURRENTLY is carried out as DETACH PARTITION. Indexes of partitions are partitioned on
        // the coordinator, and are made and dropped likewise.
        let of_leaf = info.concurrently && info.object == "index" && self.names_leaf(info).await?;
        let mut detaches = info.concurrently && info.tag == "ALTER TABLE" && !affected.is_empty() || of_leaf;
        let mut dropped = None;
        if drops_part(info) && info.concurrently && affected.is_empty() && self.txn.block == Block::None {
            dropped = self.index_to_drop(info).await?;
            // Nobody has it: whoever makes it meanwhile is noticed without the word.
            detaches |= dropped.is_none() && info.objects.len() == 1 && !info.cascade;
        }
        let options = |s: &String| s == "set_rel_options" || s == "reset_rel_options";
        if info.tag == "ALTER TABLE" && info.subcommands.iter().any(options) && self.names_leaf(info).await? {
            return Err(Failure::refused("cannot set storage parameters of a partition that is distributed")
                .detail("It is a partitioned table on the coordinator, which can have none.")
                .hint("Set them on the partition before it is attached, or before its parent is distributed."));
        }
        if detaches && self.txn.block != Block::None {
            // In PostgreSQL's own words: not inside a block.
            return self.run_on_coordinator(call, call.prepared.text(), true).await;
        }
        if info.concurrently && info.object == "index" && !affected.is_empty() && !of_leaf {
            return self.run_concurrently(call, info, &affected).await;
        }
        if info.concurrently && !detaches || is_outside_blocks(info) {
            let completion = self.run_on_coordinator(call, call.prepared.text(), true).await?;
            self.reload_after_plain_ddl().await;
            if let Some((table, name)) = dropped
                && self.catalog().by_oid.contains_key(&table)
            {
                // Its table was distributed while the statement waited for it. There may be another of its name by now.
                self.open_implicit_block();
                let sql = format!("SELECT pg_catalog.to_regclass({}) IS NULL", quote_literal(&name));
                if self.ask_coordinator(&sql).await?.text(0, 0) == Some("t") {
                    self.run_everywhere(&format!("DROP INDEX IF EXISTS {name}")).await?;
                }
            }
            return Ok(completion);
        }
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let before = if affected.is_empty() { Vec::new() } else { self.before_definition(info, &[]).await? };
        if let Some((table, description)) = before.iter().find(|(table, _)| table.is_leaf)
            && description.caller_owns
            && info.subcommands.iter().any(|s| s == "attach_partition" || s == "detach_partition")
            && let Some(altered) = info.relations.first()
            && self.distributed(altered).await?.is_some_and(|altered| altered.oid == table.oid)
        {
            // Here it is.
            let verb = if info.subcommands.iter().any(|s| s == "attach_partition") { "ATTACH" } else { "DETACH" };
            let detail = "This operation is not supported for tables.";
            let message = format!("ALTER action {verb} PARTITION cannot be performed on relation \"{}\"", table.name);
            let is_told_so = "SELECT pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 180000";
            let is_told_so = self.collect_on(COORDINATOR_GROUP, is_told_so).await?.text(0, 0) == Some("t");
            return Err(match is_told_so {
                true => Failure::new("42809", message).detail(detail),
                false => Failure::new("42P17", format!("table \"{}\" is not partitioned", table.name)),
            });
        }
        // Here it is partitioned, which PostgreSQL 18 lets be neither.
        let mut marked = None;
        if let [only] = info.subcommands.as_slice()
            && matches!(only.as_str(), "set_logged" | "set_un_logged")
            && let Some(altered) = info.relations.first()
            && let Some(leaf) = self.distributed(altered).await?.filter(|table| table.is_leaf)
            && before.iter().any(|(table, description)| table.oid == leaf.oid && description.caller_owns)
        {
            marked = Some(format!("SELECT pgherd.mark_unlogged({}, {})", leaf.oid, only == "set_un_logged"));
        }
        let checks = if detaches && !of_leaf { self.checks_of_detached(info, &before).await? } else { Vec::new() };
        let drops = info.tag.starts_with("DROP");
        let meant = self.meant_objects(info).await?;
        let followed = Followed { meant, tables: before.iter().map(|(table, _)| table.oid).collect() };
        let sql = match (&call.prepared.statement, &added_keys) {
            (Some(statement), Some(added)) => {
                self.coordinator_text_with(statement, Some(call), &added.unchecked).await?
            }
            _ => self.coordinator_text(call).await?,
        };
        self.pin |= self.makes_temporary(call);
        self.let_schema_follow(info, true).await?;
        self.definitions.outer = followed.tables.clone();
        let completion = if affected.is_empty() && drops_part(info) {
            match self.drop_local_part(call, &sql, &since).await? {
                Some(completion) => completion,
                None if rounds < LOCK_ROUNDS_MAX => return Box::pin(self.define(call, info, rounds + 1)).await,
                None => return Err(overtaken()),
            }
        } else if let Some(sql) = marked {
            self.run_quiet(COORDINATOR_GROUP, &sql).await?;
            Completion::tag("ALTER TABLE")
        } else {
            let completion = self.run_coordinator_plan(call, &sql, true, true).await;
            self.definitions.outer.clear();
            completion?
        };
        for check in checks {
            self.run_quiet(COORDINATOR_GROUP, &check).await?;
        }
        self.let_schema_follow(info, false).await?;
        let object_first = renames_value(info);
        if object_first {
            self.follow_object(call.prepared.text(), info, followed.clone()).await?;
        }
        self.follow_tables(&before, info, call.prepared.text()).await?;
        if let Some(added) = added_keys {
            // The referenced tables have their foreign children again.
            self.check_added_keys(added).await?;
        }
        if drops {
            self.drop_on_workers().await?;
            let dropped = |name: &String| info.objects.iter().any(|o| o.schema.is_none() && o.name == *name);
            let left = self.temp.iter().filter(|name| !dropped(name)).cloned().collect();
            self.keep_temporary(left);
        }
        if !object_first {
            self.follow_object(call.prepared.text(), info, followed).await?;
        }
        if matches!(info.object, "role" | "database") || is_role_grant(info) {
            self.txn.changed_defaults = true;
        }
        if matches!(info.tag, "CREATE VIEW" | "CREATE SEQUENCE") {
            self.notice_made_temporary(call).await?;
        }
        // Roles have no event triggers.
        if info.tag == "RENAME" && info.object == "role" {
            self.call_own(COORDINATOR_GROUP, "SELECT pgherd.note_change(0, 0)").await?;
        }
        if affected.is_empty() && tells_nothing(info) {
            return Ok(completion);
        }
        let reach = match affected.is_empty() {
            true if info.tag.starts_with("CREATE ") && info.relations.is_empty() => Reach::New,
            true => Reach::Local,
            false => Reach::Shared,
        };
        match affected.is_empty() && defines_local_parts(info) {
            true => self.after_local_ddl(info.relations.first().or(info.objects.first()), reach).await?,
            false => self.after_ddl(reach).await?,
        }
        Ok(completion)
    }

    async fn coordinator_time(&mut self) -> Result<String> {
        let now = self.ask_coordinator("SELECT extract(epoch FROM pg_catalog.clock_timestamp())").await?;
        Ok(now.text(0, 0).unwrap_or_default().to_owned())
    }

    /// The table of an index that is dropped concurrently, and the index's name.
    async fn index_to_drop(&mut self, info: &DdlInfo) -> Result<Option<(Oid, String)>> {
        let Some(name) = info.objects.first() else { return Ok(None) };
        let qualified = quote_name(name.schema.as_deref(), &name.name);
        let sql = format!(
            "SELECT i.indrelid::pg_catalog.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid WHERE c.oid = pg_catalog.to_regclass({})",
            quote_literal(&qualified)
        );
        let found = self.ask_coordinator(&sql).await?;
        let table = found.text(0, 0).and_then(|oid| oid.parse().ok()).unwrap_or_default();
        Ok(found.text(0, 1).map(|name| (table, name.to_owned())))
    }

    /// Drops what was of no distributed table, or was not there, when it was looked for, `since` then. None: definitions
    /// have been changed, and it may have been of a table of theirs, whose workers are to hear of it: it is back.
    async fn drop_local_part(&mut self, call: &Call<'_>, sql: &Splice, since: &str) -> Result<Option<Completion>> {
        self.run_quiet(COORDINATOR_GROUP, "SAVEPOINT pgherd_part").await?;
        let mark = self.client.mark();
        let completion = self.run_coordinator_plan(call, sql, true, true).await?;
        // It is locked now, as its table is: nobody makes another of its name. Whoever builds an index concurrently holds
        // the table until that is written down, and moves the epoch afterwards.
        let look = format!(
            "SELECT e.epoch::pg_catalog.text || CASE WHEN EXISTS (SELECT FROM pgherd.operation o \
               WHERE o.kind = 'create index' AND extract(epoch FROM o.ended) >= {}::pg_catalog.numeric) THEN ' built' ELSE '' END FROM pgherd.epoch e",
            quote_literal(since)
        );
        if self.call_own(COORDINATOR_GROUP, &look).await? == self.catalog().epoch.to_string() {
            self.run_quiet(COORDINATOR_GROUP, "RELEASE SAVEPOINT pgherd_part").await?;
            return Ok(Some(completion));
        }
        let back = "ROLLBACK TO SAVEPOINT pgherd_part; RELEASE SAVEPOINT pgherd_part";
        self.run_quiet(COORDINATOR_GROUP, back).await?;
        self.client.rewind(mark);
        self.reload_catalog_in_block().await?;
        Ok(None)
    }

    /// The table that a definition names, or whose index it names, is a distributed partition.
    async fn names_leaf(&mut self, info: &DdlInfo) -> Result<bool> {
        let Some(name) = info.relations.first().or(info.objects.first()).cloned() else { return Ok(false) };
        let table = match self.distributed(&name).await? {
            Some(table) => Some(table),
            None => self.table_of_part(&name, false).await?,
        };
        Ok(table.is_some_and(|table| table.is_leaf))
    }

    /// Before a definition: the affected tables as they are, locked, and without the foreign children, which stand in
    /// the way of some forms, and of DROP. They are put back when the workers have followed. But for tables that a
    /// definition around this one has described. Whoever waited for a lock may find the tables changed: they are
    /// looked up again.
    pub(super) async fn before_definition(
        &mut self,
        info: &DdlInfo,
        around: &[Oid],
    ) -> Result<Vec<(Arc<Table>, TableDescription)>> {
        for _ in 0..LOCK_ROUNDS_MAX {
            let affected = self.affected_tables(info).await?;
            if affected.is_empty() {
                return Ok(Vec::new());
            }
            let keeps = self.keeps_child(info, &affected);
            let mode = |table: &Table| match table.is_reference() || keeps {
                true => reference_lock(info),
                false => "ACCESS EXCLUSIVE",
            };
            let list = |item: &dyn Fn(&Table) -> String| {
                let items: Vec<String> = affected.iter().map(|table| item(table)).collect();
                quote_literal(&format!("{{{}}}", items.join(",")))
            };
            let sql = format!(
                "SELECT relation, description FROM pgherd.begin_definition({}, {}, {}, {}, {})",
                list(&|table| table.oid.to_string()),
                list(&|table| mode(table).to_owned()),
                list(&|table| (!around.contains(&table.oid)).to_string()),
                // From inside the coordinator only what it is told to run may do that.
                if keeps {
                    "false"
                } else if self.definitions.is_asked() {
                    "NULL"
                } else {
                    "true"
                },
                self.catalog().epoch
            );
            let told = self.collect_on(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_context)?;
            if told.rows.is_empty() {
                self.reload_catalog_in_block().await?;
                continue;
            }
            let mut before = Vec::new();
            for (row, table) in affected.into_iter().enumerate() {
                if let Some(json) = told.text(row, 1) {
                    let description = parse_table(table.oid, Some(json))?;
                    if self.definitions.is_asked() && !table.is_reference() && description.caller_owns {
                        self.run_quiet(COORDINATOR_GROUP, &distribute::detach_child_sql(table.oid)).await?;
                    }
                    before.push((table, description));
                }
            }
            return Ok(before);
        }
        Err(overtaken())
    }

    /// An index of a table is none of its child, which may stay: unless the table is partitioned, or the statement may
    /// find nothing to do.
    fn keeps_child(&self, info: &DdlInfo, affected: &[Arc<Table>]) -> bool {
        let (Some(on), [only]) = (info.relations.first(), affected) else { return false };
        // The index may have the name of another table's.
        let is_named = on.name == only.name && on.schema.as_ref().is_none_or(|schema| *schema == only.schema);
        info.tag == "CREATE INDEX"
            && is_named
            && !info.if_not_exists
            && !self.definitions.is_asked()
            && !only.is_reference()
            && !only.is_partitioned
            && !only.is_leaf
    }

    /// Around ALTER SCHEMA … RENAME: the coordinator believes that the workers will hear of it.
    pub(super) async fn let_schema_follow(&mut self, info: &DdlInfo, begins: bool) -> Result<()> {
        if info.tag != "RENAME" || info.object != "schema" {
            return Ok(());
        }
        let pass = if begins { self.schema_pass().await? } else { String::new() };
        self.run_quiet(COORDINATOR_GROUP, &format!("SET LOCAL pgherd.schema_follows = '{pass}'")).await
    }

    /// The tables whose description a statement may change: those it names, those whose index it names, or all.
    pub(super) async fn affected_tables(&mut self, info: &DdlInfo) -> Result<Vec<Arc<Table>>> {
        let catalog = self.catalog();
        if catalog.by_oid.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<Arc<Table>> = Vec::new();
        // What happens to a partitioned table happens to its partitions, and often the other way round.
        let mut add = |table: Arc<Table>| {
            for table in catalog.partition_tree(&table) {
                if !found.iter().any(|t| t.oid == table.oid) {
                    found.push(table);
                }
            }
        };
        if touches_unnamed(info) {
            // Those of schemas that are named, where it is about schemas.
            let is_meant = |t: &&Arc<Table>| !info.all_in_schema || info.objects.iter().any(|s| s.name == t.schema);
            match dependents_query(info).filter(|_| !info.all_in_schema) {
                Some(sql) => {
                    let result = self.ask_coordinator(&sql).await?;
                    let oids = (0..result.rows.len()).filter_map(|row| result.text(row, 0)?.parse::<u32>().ok());
                    oids.filter_map(|oid| catalog.by_oid.get(&oid)).for_each(|t| add(t.clone()));
                }
                None => catalog.all_tables().filter(is_meant).for_each(|t| add(t.clone())),
            }
            found.sort_by_key(|t| t.oid);
            return Ok(found);
        }
        if matches!(info.object, "function" | "routine") {
            // Their triggers may have to fire elsewhere then. Under another name a function is the same, but calls of
            // others may come to mean it.
            let names: Vec<String> = match info.tag {
                "CREATE FUNCTION" | "ALTER FUNCTION" | "DROP FUNCTION" | "ALTER OWNER" => {
                    info.objects.iter().map(|o| quote_literal(&o.name)).collect()
                }
                "RENAME" => info.new_name.iter().map(|name| quote_literal(name)).collect(),
                _ => Vec::new(),
            };
            if !names.is_empty() && catalog.all_tables().any(|table| table.has_triggers || table.fires_here) {
                let sql = format!("SELECT pgherd.fired_by(ARRAY[{}])", names.join(", "));
                let result = self.ask_coordinator(&sql).await?;
                let oids = (0..result.rows.len()).filter_map(|row| result.text(row, 0)?.parse::<u32>().ok());
                oids.filter_map(|oid| catalog.by_oid.get(&oid)).for_each(|t| add(t.clone()));
            }
            found.sort_by_key(|t| t.oid);
            return Ok(found);
        }
        // An index that PostgreSQL is to name has none yet.
        let names = info.relations.iter().chain(&info.objects).filter(|name| !name.name.is_empty());
        for name in names.cloned().collect::<Vec<Name>>() {
            if let Some(table) = self.distributed(&name).await? {
                add(table);
                continue;
            }
            let may_be_index =
                matches!(info.object, "index" | "statistics" | "trigger" | "policy" | "rule" | "table" | "constraint")
                    && !matches!(info.tag, "GRANT" | "REVOKE");
            if may_be_index && let Some(table) = self.table_of_part(&name, info.object == "statistics").await? {
                add(table);
            }
        }
        found.sort_by_key(|t| t.oid);
        Ok(found)
    }

    /// The distributed or reference table that an index, or a statistics object, of this name belongs to.
    async fn table_of_part(&mut self, name: &Name, is_statistics: bool) -> Result<Option<Arc<Table>>> {
        let sql = if is_statistics {
            let schema = name.schema.as_ref().map(|s| format!(" AND n.nspname = {}", quote_literal(s)));
            format!(
                "SELECT s.stxrelid::oid FROM pg_catalog.pg_statistic_ext s \
                     JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace \
                 WHERE s.stxname = {}{}",
                quote_literal(&name.name),
                schema.unwrap_or_else(|| " AND pg_catalog.pg_statistics_obj_is_visible(s.oid)".to_owned())
            )
        } else {
            let qualified = quote_name(name.schema.as_deref(), &name.name);
            format!(
                "SELECT i.indrelid::oid FROM pg_catalog.pg_index i WHERE i.indexrelid = pg_catalog.to_regclass({})",
                quote_literal(&qualified)
            )
        };
        let result = self.ask_coordinator(&sql).await?;
        let oid = result.text(0, 0).and_then(|t| t.parse::<u32>().ok());
        Ok(oid.and_then(|oid| self.catalog().by_oid.get(&oid).cloned()))
    }

    /// Brings the workers from the tables as they were to the tables as they are.
    pub(super) async fn follow_tables(
        &mut self,
        before: &[(Arc<Table>, TableDescription)],
        info: &DdlInfo,
        text: &str,
    ) -> Result<()> {
        if before.is_empty() {
            return Ok(());
        }
        let state = self.cluster_state().await?;
        let mut using = using_clauses(text, info);
        let sets_expression = info.subcommands.iter().any(|subcommand| subcommand == "set_expression");
        if let Some((_, table)) = before.first().filter(|_| !using.is_empty()) {
            using = self.follow_using(using, table, &state).await?;
        }
        let mut altered = Vec::new();
        let mut told = self.describe_tables(before.iter().map(|(table, _)| table.oid)).await?;
        for (table, old) in before {
            // It may be gone.
            let Some(new) = told.remove(&table.oid) else { continue };
            if !old.caller_owns && *old == new {
                continue;
            }
            if !old.caller_owns && old.fires_here != new.to_fire_here {
                return Err(Failure::refused(format!(
                    "cannot change where triggers of distributed table \"{}\" fire",
                    old.name
                ))
                .detail("It belongs to another role, and its triggers use the function.")
                .hint("Have its owner disable the triggers meanwhile."));
            }
            let oids = |t: &TableDescription| t.indexes.iter().map(|i| i.oid).collect::<Vec<_>>();
            if !table.is_reference() {
                self.check_numbered(table, old, &new, info).await?;
            }
            if oids(old) != oids(&new) {
                self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.indexes_changed({})", table.oid)).await?;
            }
            altered.push((table, old.clone(), new));
        }
        // Tables that are in no tree of partitions are brought up to date one by one.
        let is_partial = |old: &TableDescription, new: &TableDescription| {
            new.is_partitioned() || old.parent.is_some() || new.parent.is_some()
        };
        let (mut trees, single): (Vec<_>, Vec<_>) = altered.into_iter().partition(|(_, old, new)| is_partial(old, new));
        let keeps = matches!(before, [(only, _)] if self.keeps_child(info, std::slice::from_ref(only)));
        for (table, old, new) in &single {
            self.check_followed(table, old, new, &state, !keeps).await?;
            // Where triggers fire depends on the distribution column, which may have another name now.
            let again = match new.triggers.is_empty() || table.is_reference() {
                true => None,
                false => Some(self.describe_table(table.oid).await?),
            };
            let new = again.as_ref().unwrap_or(new);
            let (fixed, defaults) = self.fixed_columns(old, new).await?;
            let known = state.table(table.oid);
            let mut lists = Vec::new();
            for group in state.worker_groups() {
                let fills = if table.is_reference() { Vec::new() } else { self.fills(group, old, new).await? };
                let hints = Hints { using: &using, fills: &fills, sets_expression };
                let statements = if table.is_reference() {
                    ddl::alter_reference_ddl(old, &fixed, &state, hints)
                } else {
                    let shards = known.map(|k| k.shards()).unwrap_or_default();
                    ddl::alter_ddl(old, &fixed, shards, group, &state, hints)
                };
                let mut statements = statements.map_err(refusal)?;
                statements.extend(defaults.iter().cloned());
                lists.push((group, statements));
            }
            let definer = self.lend_owner(info, old);
            let done = self.run_ddl_on(lists).await;
            self.definitions.definer = definer;
            done?;
        }
        if trees.is_empty() {
            return Ok(());
        }
        // Parents first.
        trees.sort_by_key(|(table, _, _)| self.catalog().depth(table));
        // What other subcommands do cannot be told from what another type makes anew.
        let keeps_indexes = |s: &String| {
            matches!(
                s.as_str(),
                "alter_column_type"
                    | "column_default"
                    | "set_not_null"
                    | "drop_not_null"
                    | "set_statistics"
                    | "set_storage"
            )
        };
        let retypes = info.subcommands.iter().any(|s| s == "alter_column_type");
        let renames = if retypes && info.subcommands.iter().all(keeps_indexes) {
            for (_, old, new) in &mut trees {
                *old = std::mem::replace(old, new.clone()).with_indexes_of(new);
            }
            self.index_renames(&trees).await?
        } else {
            Vec::new()
        };
        if !matches!(info.tag, "GRANT" | "REVOKE") {
            return self.follow_trees(&trees, (&using, sets_expression), &renames, &state).await;
        }
        // Each as its owner, where somebody else may give rights on.
        for tree in trees {
            let definer = self.lend_owner(info, &tree.1);
            let done = self.follow_trees(&[tree], (&using, sets_expression), &renames, &state).await;
            self.definitions.definer = definer;
            done?;
        }
        Ok(())
    }

    /// Privileges are given anew on the workers, all of them: in the name of the table's owner where somebody else may
    /// give some of them on. Who defined until then, to be put back.
    fn lend_owner(&mut self, info: &DdlInfo, old: &TableDescription) -> Option<Definer> {
        let before = self.definitions.definer.clone();
        if matches!(info.tag, "GRANT" | "REVOKE") && !old.caller_owns {
            self.definitions.definer = Some(Definer { role: old.owner.clone(), path: "pg_catalog".to_owned() });
        }
        before
    }

    /// What must be so on the coordinator before the workers follow. `attach`: gives a distributed table its child
    /// back.
    pub(super) async fn check_followed(
        &mut self,
        table: &Arc<Table>,
        old: &TableDescription,
        new: &TableDescription,
        state: &ClusterState,
        attach: bool,
    ) -> Result<()> {
        if evaluates_otherwise(old, new) {
            self.check_expressions(new.oid, state).await?;
        }
        if table.is_reference() {
            ddl::check_altered_reference(new, state).map_err(refusal)?;
            // DISABLE TRIGGER USER means the user's. Nobody else disables any.
            if old.caller_owns {
                let sql = format!("SELECT pgherd.guard_reference({})", table.oid);
                self.run_quiet(COORDINATOR_GROUP, &sql).await?;
            }
            if old.name != new.name || old.schema != new.schema {
                self.call_own(COORDINATOR_GROUP, &format!("SELECT pgherd.table_renamed({}, NULL)", table.oid)).await?;
            }
            return Ok(());
        }
        let key = table.key_column().map_or("", |c| c.name.as_str());
        let new_key = ddl::check_altered(old, new, key, state).map_err(refusal)?;
        if old.name != new.name || old.schema != new.schema || new_key != key {
            let sql = format!("SELECT pgherd.table_renamed({}, {})", table.oid, quote_literal(&new_key));
            self.call_own(COORDINATOR_GROUP, &sql).await?;
            if !attach {
                self.run_quiet(COORDINATOR_GROUP, &distribute::detach_child_sql(table.oid)).await?;
            }
        } else if attach && old.caller_owns {
            self.run_quiet(COORDINATOR_GROUP, &distribute::attach_child_sql(table.oid)).await?;
        }
        Ok(())
    }

    /// Rows that are there get a new column's default: one time for all of them, wherever they are. The table as
    /// workers make it, and what gives it its real defaults afterwards.
    pub(super) async fn fixed_columns(
        &mut self,
        old: &TableDescription,
        new: &TableDescription,
    ) -> Result<(TableDescription, Vec<String>)> {
        let mut fixed = new.clone();
        let mut defaults = Vec::new();
        for column in fixed.columns.iter_mut().filter(|c| !old.columns.iter().any(|o| o.number == c.number)) {
            let Some(default) = column.default.clone().filter(|d| pgherd_planner::default_reads_now(d)) else {
                continue;
            };
            let now = self.transaction_time().await?;
            column.default = pgherd_planner::default_at(&default, pgherd_planner::Now::Text(&now), &self.catalog())
                .or(Some(default.clone()));
            defaults.push(format!(
                "ALTER TABLE {}.{} ALTER COLUMN {} SET DEFAULT {default}",
                quote_ident(&new.schema),
                quote_ident(&new.name),
                quote_ident(&column.name)
            ));
        }
        Ok((fixed, defaults))
    }

    /// What the rows of a distributed table on one worker get in columns that are new, where only the coordinator
    /// knows: the next values of a sequence.
    pub(super) async fn fills(
        &mut self,
        group: GroupId,
        old: &TableDescription,
        new: &TableDescription,
    ) -> Result<Vec<Fill>> {
        let mut fills = Vec::new();
        let mut rows = None;
        for column in new.columns.iter().filter(|c| !old.columns.iter().any(|o| o.number == c.number)) {
            let Some((expression, as_type)) = ddl::filled_from(column) else { continue };
            if rows.is_none() {
                rows = self.rows_to_fill(group, old).await?;
            }
            let Some(rows) = rows.filter(|rows| *rows > 0) else { continue };
            let sql =
                format!("SELECT pgherd.values_of({}, {}, {rows})", quote_literal(&expression), quote_literal(&as_type));
            let values = self.collect_on(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
            let query = values.text(0, 0).unwrap_or_default().to_owned();
            fills.push(Fill { column: column.number, query });
        }
        Ok(fills)
    }

    /// How many rows a distributed table has on one worker.
    async fn rows_to_fill(&mut self, group: GroupId, old: &TableDescription) -> Result<Option<u64>> {
        self.join(group).await?;
        self.mark_writer(group);
        let sql = format!("SELECT pgherd.rows_to_fill({})", quote_literal(&old.qualified_name()));
        let counted = match self.definitions.definer.clone() {
            Some(definer) => self.run_as_definer(group, &definer, &sql, true).await,
            None => self.collect_on(group, &sql).await,
        };
        let counted = counted.map_err(super::own::without_position)?;
        Ok(counted.text(0, 0).and_then(|t| t.parse::<u64>().ok()))
    }

    /// `ADD COLUMN c … NOT NULL, ALTER c ADD GENERATED …`: PostgreSQL numbers the rows of a column that comes as an
    /// identity column, and no others.
    async fn check_numbered(
        &mut self,
        table: &Table,
        old: &TableDescription,
        new: &TableDescription,
        info: &DdlInfo,
    ) -> Result<()> {
        let before = |number| old.columns.iter().find(|c| c.number == number);
        let gained = new.columns.iter().filter(|c| !c.identity.is_empty());
        let gained = gained.filter(|c| before(c.number).is_some_and(|c| c.identity.is_empty())).count();
        let asked = info.subcommands.iter().filter(|s| *s == "add_identity").count();
        let added = new.columns.iter().find(|c| !c.identity.is_empty() && before(c.number).is_none());
        let Some(column) = added.filter(|_| asked > gained) else { return Ok(()) };
        for group in self.catalog().groups_of(table) {
            if self.rows_to_fill(group, old).await?.is_some_and(|rows| rows > 0) {
                return Err(Failure::new(
                    "23502",
                    format!("column \"{}\" of relation \"{}\" contains null values", column.name, new.name),
                ));
            }
        }
        Ok(())
    }

    /// Tables that the coordinator has dropped go from the workers and the metadata.
    pub(super) async fn drop_on_workers(&mut self) -> Result<()> {
        let result = self
            .collect_on(
                COORDINATOR_GROUP,
                "SELECT d.oid, d.schema, d.name, (SELECT pg_catalog.string_agg((s->>'id') || ':' || (s->>'group'), ',') \
                   FROM pg_catalog.jsonb_array_elements(d.shards) s), d.method \
                 FROM pg_catalog.jsonb_to_recordset(pgherd.dropped_tables()) \
                   AS d(oid bigint, schema text, name text, method text, shards jsonb)",
            )
            .await?;
        if result.rows.is_empty() {
            return Ok(());
        }
        let groups = self.catalog().worker_groups();
        let mut lists: Vec<(GroupId, Vec<String>)> = groups.iter().map(|g| (*g, Vec::new())).collect();
        for row in 0..result.rows.len() {
            let (schema, name) = (result.text(row, 1).unwrap_or_default(), result.text(row, 2).unwrap_or_default());
            let reference = result.text(row, 4) == Some("n");
            let shards: Vec<(i64, GroupId)> = result
                .text(row, 3)
                .unwrap_or_default()
                .split(',')
                .filter_map(|s| {
                    let (id, group) = s.split_once(':')?;
                    Some((id.parse().ok()?, group.parse().ok()?))
                })
                .collect();
            for (group, statements) in &mut lists {
                let here: Vec<i64> =
                    shards.iter().filter(|(_, g)| g == group && !reference).map(|(id, _)| *id).collect();
                statements.extend(distribute::drop_ddl(schema, name, &here));
            }
            let oid: u32 = result.text(row, 0).and_then(|t| t.parse().ok()).unwrap_or_default();
            self.call_own(COORDINATOR_GROUP, &distribute::unregister_sql(oid)).await?;
        }
        self.run_ddl_on(lists).await
    }

    /// The same statement on every worker.
    pub(super) async fn run_everywhere(&mut self, sql: &str) -> Result<()> {
        let lists = self.catalog().worker_groups().into_iter().map(|g| (g, vec![sql.to_owned()])).collect();
        self.run_ddl_on(lists).await
    }

    pub(super) async fn reload_after_plain_ddl(&mut self) {
        if let Err(error) = self.db.reload(&self.thread.shared).await {
            tracing::warn!("could not load the catalog again: {error}");
        }
        self.forget_search_path();
    }

    async fn run_truncate(
        &mut self,
        call: &Call<'_>,
        relations: &[Name],
        only: &[Name],
        restart_identity: bool,
        cascade: bool,
    ) -> Result<Completion> {
        if restart_identity {
            // Values of these sequences that routers have drawn are good no more.
            self.txn.changes_catalog(Reach::Local);
        }
        let mut tables = Vec::new();
        let mut local = Vec::new();
        let mut without_partitions = false;
        for name in relations {
            match self.distributed(name).await? {
                Some(table) => {
                    without_partitions |= table.is_partitioned && only.contains(name);
                    tables.push(table);
                }
                None => local.push(name.clone()),
            }
        }
        if tables.is_empty() {
            // CASCADE may reach distributed tables only through foreign keys to reference tables, which local tables
            // cannot have.
            self.open_implicit_block();
            return self.run_on_coordinator(call, call.prepared.text(), true).await;
        }
        self.open_implicit_block();
        let options = format!(
            "{}{}",
            if restart_identity { " RESTART IDENTITY" } else { "" },
            if cascade { " CASCADE" } else { "" }
        );
        // On the coordinator the heaps of distributed tables are empty; their sequences and rights count.
        let word = |name: &Name| if only.contains(name) { "ONLY " } else { "" };
        let local = local.iter().map(|n| format!("{}{}", word(n), quote_name(n.schema.as_deref(), &n.name)));
        let mut on_coordinator: Vec<String> = local.collect();
        let mut partitioned = Vec::new();
        // Triggers that fire there are to see rows before, and none afterwards: the foreign child is truncated with the
        // table, which is how workers hear of it.
        let fires = tables.iter().any(|t| t.fires_here);
        for table in &tables {
            let name = quote_name(Some(&table.schema), &table.name);
            // There they are partitioned, and TRUNCATE would go on to the foreign partitions.
            match table.is_partitioned || table.is_leaf {
                true => partitioned.push(name),
                false if fires => on_coordinator.push(name),
                false => on_coordinator.push(format!("ONLY {name}")),
            }
        }
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        for name in &partitioned {
            let sql = format!("SELECT pgherd.begin_truncate({}, {restart_identity})", quote_literal(name));
            self.run_quiet(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
        }
        if without_partitions {
            return Err(Failure::new("42809", "cannot truncate only a partitioned table")
                .hint("Do not specify the ONLY keyword, or use TRUNCATE ONLY on the partitions directly."));
        }
        if !on_coordinator.is_empty() {
            let sql = format!("TRUNCATE {}{}", on_coordinator.join(", "), options);
            self.forward_copies(fires);
            self.run_quiet(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
            self.forward_copies(true);
        }
        let tables: Vec<_> = tables.into_iter().filter(|t| !fires || t.is_partitioned || t.is_leaf).collect();
        if tables.is_empty() {
            return Ok(Completion::tag("TRUNCATE TABLE"));
        }
        let names: Vec<String> = tables.iter().map(|t| quote_name(Some(&t.schema), &t.name)).collect();
        let names: Vec<String> = names.iter().map(|name| quote_literal(name)).collect();
        let sql = format!("SELECT pgherd.truncate(ARRAY[{}], {cascade})", names.join(", "));
        let catalog = self.catalog();
        let groups = catalog.worker_groups();
        for group in &groups {
            self.join(*group).await?;
            for table in &tables {
                self.fence_table(*group, table, &catalog);
            }
        }
        let done = self.run_ddl_on(groups.into_iter().map(|g| (g, vec![sql.clone()])).collect()).await;
        done.map_err(super::own::without_context)?;
        Ok(Completion::tag("TRUNCATE TABLE"))
    }

    /// VACUUM, ANALYZE, CLUSTER and REINDEX: on the coordinator, then on each worker that has the tables.
    async fn run_maintenance(&mut self, call: &Call<'_>, relations: &[Name], index: bool) -> Result<Completion> {
        let mut text = call.prepared.text();
        let apart;
        let mut tables = Vec::new();
        for name in relations {
            let table = if index { self.table_of_part(name, false).await? } else { self.distributed(name).await? };
            tables.push(table);
        }
        // Older servers do not know ONLY there, and say so before anything is begun.
        let is_only = |target: &&str| {
            let (word, rest) = target.trim_start().split_at_checked("only".len()).unwrap_or_default();
            word.eq_ignore_ascii_case("only") && !rest.starts_with(|c: char| c.is_alphanumeric() || "_$".contains(c))
        };
        let says_only = maintained(call).is_some_and(|(_, targets)| targets.iter().any(is_only));
        let distributed = tables.iter().any(Option::is_some);
        if says_only && self.server_major() < 18 {
            return self.run_on_coordinator(call, text, true).await;
        }
        if !distributed && (!relations.is_empty() || self.catalog().by_oid.is_empty()) {
            return self.run_on_coordinator(call, text, true).await;
        }
        // Partitions that are ours are the table itself. VACUUM ONLY of users' partitioned tables does nothing but say
        // so, which one worker does.
        let without_only = |partitioned: bool| {
            let (head, targets) = maintained(call).filter(|(_, targets)| says_only && targets.len() == tables.len())?;
            let whole =
                targets.iter().zip(&tables).filter_map(|(target, table)| match table.as_ref()?.is_partitioned {
                    true if is_only(target) => partitioned.then(|| (*target).to_owned()),
                    false if is_only(target) => target.trim_start().get("only".len()..).map(without_brackets),
                    _ => Some((*target).to_owned()),
                });
            let whole: Vec<String> = whole.collect();
            Some(if whole.is_empty() { String::new() } else { format!("{head}{}", whole.join(", ")) })
        };
        let is_vacuum = match call.prepared.statement.as_ref().map(|s| &s.kind) {
            Some(StatementKind::Vacuum { is_vacuum, options, .. }) => {
                *is_vacuum && !options.iter().any(|(name, _)| name == "analyze")
            }
            _ => false,
        };
        let (without_only, elsewhere) = (without_only(true), without_only(!is_vacuum));
        if tables.iter().any(Option::is_none) {
            // Local ones first, by themselves.
            let Some((head, targets)) = maintained(call).filter(|(_, targets)| targets.len() == tables.len()) else {
                return Err(Failure::new("XX000", "what the statement is about could not be told apart"));
            };
            let of = |local: bool| {
                let wanted = targets.iter().zip(&tables).filter(|(_, table)| table.is_none() == local);
                let wanted: Vec<&str> = wanted.map(|(target, _)| *target).collect();
                format!("{head}{}", wanted.join(", "))
            };
            self.run_on_coordinator(call, &of(true), true).await?;
            apart = of(false);
            text = &apart;
            tables.retain(Option::is_some);
        }
        let word = first_words(text).split(' ').next().unwrap_or_default().to_owned();
        let word = if word == "ANALYSE" { "ANALYZE".to_owned() } else { word };
        // ANALYZE of the coordinator's table would read every row through its foreign child; its heap is empty anyway.
        let is_empty_there = matches!(word.as_str(), "ANALYZE" | "VACUUM")
            && !tables.is_empty()
            && tables.iter().flatten().all(|t| !t.is_reference());
        let concurrently = matches!(
            call.prepared.statement.as_ref().map(|s| &s.kind),
            Some(StatementKind::Reindex { concurrently: true, .. })
        );
        let table = match tables.as_slice() {
            [Some(table)] => Some(table.clone()),
            _ => None,
        };
        let work = match &table {
            Some(table) if concurrently => operation::Work::Reindex {
                table: format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name)),
            },
            _ => operation::Work::Command,
        };
        let catalog = self.catalog();
        let command = match &table {
            Some(table) if word == "CLUSTER" && !table.is_reference() => self.cluster_command(text, table).await?,
            _ => without_only.unwrap_or_else(|| text_for_worker(text)),
        };
        let mut steps = Vec::new();
        if !is_empty_there {
            steps.push(operation::Step { work: work.clone(), ..operation::on_coordinator(&command) });
        }
        let elsewhere = elsewhere.unwrap_or_else(|| command.clone());
        for (number, group) in catalog.worker_groups().into_iter().enumerate() {
            let command = if number == 0 { &command } else { &elsewhere };
            if !command.is_empty() {
                let (action, command) = ("on the worker".to_owned(), command.clone());
                steps.push(operation::Step { group, action, command, work: work.clone() });
            }
        }
        let tag = Completion::Tag(word.clone());
        if self.txn.block == Block::None && word != "ANALYZE" {
            let relation = table.map_or(0, |t| t.oid);
            return Ok(self.run_recorded(call, &word.to_ascii_lowercase(), relation, steps).await?.unwrap_or(tag));
        }
        let mut completion = None;
        for step in steps {
            if step.group == COORDINATOR_GROUP {
                completion = Some(self.run_on_coordinator(call, text, true).await?);
                continue;
            }
            self.join(step.group).await?;
            self.mark_writer(step.group);
            self.run_quiet(step.group, &step.command).await.map_err(super::own::without_position)?;
        }
        Ok(completion.unwrap_or(tag))
    }

    /// CLUSTER without an index goes by the one that the table is marked with, which no worker's parent can be.
    async fn cluster_command(&mut self, text: &str, table: &Table) -> Result<String> {
        let command = text_for_worker(text);
        let sql = format!(
            "SELECT c.relname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
             WHERE i.indrelid = {} AND i.indisclustered",
            table.oid
        );
        let names_index =
            command.split_whitespace().any(|w| w.eq_ignore_ascii_case("using") || w.eq_ignore_ascii_case("on"));
        let marked = self.ask_coordinator(&sql).await?;
        Ok(match marked.text(0, 0) {
            Some(index) if !names_index => format!("{command} USING {}", quote_ident(index)),
            _ => command,
        })
    }

    async fn run_lock(&mut self, call: &Call<'_>, relations: &[Name]) -> Result<Completion> {
        let mut distributed = Vec::new();
        for name in relations {
            if let Some(table) = self.distributed(name).await? {
                distributed.push(format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name)));
            }
        }
        if self.txn.block == Block::None && !distributed.is_empty() {
            return Err(Failure::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
        }
        let text = call.prepared.text();
        let completion = self.run_on_coordinator(call, text, false).await?;
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.ends_last = true;
        }
        if !distributed.is_empty() {
            // The workers have no local tables.
            let last = call.prepared.statement.iter().flat_map(|s| &s.relations).map(|r| r.full_span.end).max();
            let mode = last.and_then(|end| text.get(end..)).unwrap_or("");
            self.run_everywhere(&format!("LOCK TABLE {}{mode}", distributed.join(", "))).await?;
        }
        Ok(completion)
    }
}

/// What keeps two definitions of a reference table apart, and its readers no longer than PostgreSQL would.
fn reference_lock(info: &DdlInfo) -> &'static str {
    match info.tag {
        "CREATE INDEX" | "CREATE TRIGGER" => "SHARE ROW EXCLUSIVE",
        "GRANT" | "REVOKE" | "COMMENT" | "CREATE STATISTICS" => "SHARE UPDATE EXCLUSIVE",
        _ => "ACCESS EXCLUSIVE",
    }
}

/// ALTER TYPE of an enum, or of a row's attributes: defaults of tables are told by the new names of its values, or as
/// such rows are now.
pub(super) fn renames_value(info: &DdlInfo) -> bool {
    info.object == "type" && (info.tag == "ALTER TABLE" || info.tag == "ALTER TYPE" && info.subcommands.is_empty())
}

/// Workers may evaluate something new for the table's rows that is not built in, or may read.
pub(super) fn evaluates_otherwise(old: &TableDescription, new: &TableDescription) -> bool {
    let calls = new.prerequisites.iter().any(|p| matches!(p.kind.as_str(), "function" | "extension"));
    (calls || !new.policies.is_empty())
        && (old.policies != new.policies
            || old.columns != new.columns
            || old.constraints != new.constraints
            || old.indexes != new.indexes
            || old.prerequisites != new.prerequisites)
}

pub(super) fn overtaken() -> Failure {
    Failure::new("40001", "could not serialize access due to concurrent definitions")
        .hint("The statement might succeed if retried.")
}

/// DROP of what belongs to a table. Of other definitions the coordinator says by itself that their table is distributed.
fn drops_part(info: &DdlInfo) -> bool {
    info.tag.starts_with("DROP") && matches!(info.object, "index" | "statistics" | "trigger" | "policy" | "rule")
}

/// What PostgreSQL refuses inside a transaction block.
fn is_outside_blocks(info: &DdlInfo) -> bool {
    matches!(
        info.tag,
        "CREATE TABLESPACE" | "DROP TABLESPACE" | "CREATE SUBSCRIPTION" | "DROP SUBSCRIPTION" | "ALTER SUBSCRIPTION"
    )
}

/// Statements that may change tables which they do not name.
pub(super) fn touches_unnamed(info: &DdlInfo) -> bool {
    let dependents = info.cascade && info.tag.starts_with("DROP") && info.object != "view";
    let wide = matches!(
        info.tag,
        "REASSIGN OWNED" | "DROP OWNED" | "ALTER TYPE" | "ALTER DOMAIN" | "DROP SCHEMA" | "ALTER SCHEMA"
    );
    // Rights on anything but tables are no part of a table's description.
    let in_schema = info.all_in_schema && info.object == "table";
    // Typed tables have the columns of their type.
    let attributes = info.object == "type" && info.tag == "ALTER TABLE"
        || info.renamed_part.as_ref().is_some_and(|(word, _)| *word == "attribute");
    dependents || wide || attributes || in_schema
}

/// Asks for the tables among whatever is built on the objects that a statement names, on all that have such names.
/// None: it is not about objects that have names of their own.
fn dependents_query(info: &DdlInfo) -> Option<String> {
    let (catalog, name, schema) = match info.object {
        "type" | "domain" => ("pg_type", "typname", "typnamespace"),
        "function" | "procedure" | "routine" | "aggregate" => ("pg_proc", "proname", "pronamespace"),
        "table" | "foreign table" | "materialized view" | "sequence" | "index" => {
            ("pg_class", "relname", "relnamespace")
        }
        "collation" => ("pg_collation", "collname", "collnamespace"),
        "schema" => ("pg_namespace", "nspname", ""),
        _ => return None,
    };
    let named = |object: &Name| {
        let is_named = format!("o.{name} = {}", quote_literal(&object.name));
        match &object.schema {
            Some(within) if !schema.is_empty() => format!(
                "({is_named} AND o.{schema} = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = {}))",
                quote_literal(within)
            ),
            _ => is_named,
        }
    };
    let named: Vec<String> = info.objects.iter().chain(&info.relations).map(named).collect();
    // A part of a table is built on it, which it stands for; the row type of a composite type on that.
    let sql = format!(
        "WITH RECURSIVE built(classid, objid) AS ( \
         SELECT 'pg_catalog.{catalog}'::pg_catalog.regclass::oid, o.oid FROM pg_catalog.{catalog} o WHERE {} \
         UNION SELECT x.classid, x.objid FROM built b, LATERAL ( \
             SELECT d.classid, d.objid FROM pg_catalog.pg_depend d \
             WHERE d.refclassid = b.classid AND d.refobjid = b.objid \
             UNION ALL SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d \
             WHERE d.classid = b.classid AND d.objid = b.objid AND d.deptype IN ('a', 'i', 'P', 'S') \
             AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass \
             UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.typrelid FROM pg_catalog.pg_type t \
             WHERE b.classid = 'pg_catalog.pg_type'::pg_catalog.regclass AND t.oid = b.objid AND t.typrelid <> 0) x) \
         SELECT DISTINCT objid FROM built WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass",
        named.join(" OR ")
    );
    (!named.is_empty()).then_some(sql)
}

/// `ALTER COLUMN name TYPE … USING expression`, as written.
pub(super) fn using_clauses(text: &str, info: &DdlInfo) -> Vec<(String, String)> {
    if !info.subcommands.iter().any(|s| s == "alter_column_type") {
        return Vec::new();
    }
    pgherd_sql::using_clauses(text)
}

/// A name as it may stand after ONLY, and its columns.
fn without_brackets(target: &str) -> String {
    match target.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((name, columns)) => format!(" {name}{columns}"),
        None => target.to_owned(),
    }
}

/// VACUUM or ANALYZE up to what it is about, and each of that.
fn maintained<'a>(call: &Call<'a>) -> Option<(&'a str, Vec<&'a str>)> {
    let statement = call.prepared.statement.as_ref()?;
    let StatementKind::Vacuum { targets, .. } = &statement.kind else { return None };
    let head = statement.text.get(..targets.first()?.start)?;
    Some((head, targets.iter().map(|target| target.of(&statement.text)).collect()))
}

/// The statement's first two words in upper case, for messages.
pub(super) fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).map(str::to_ascii_uppercase).collect::<Vec<_>>().join(" ")
}

/// The statement as a worker runs it.
fn text_for_worker(text: &str) -> String {
    text.trim_end().trim_end_matches(';').to_owned()
}
