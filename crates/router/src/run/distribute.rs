//! create_distributed_table, create_reference_table and undistribute_table, inside the client's transaction: describe
//! the table, decide (`pgherd-control`), make it on the workers, move the rows, write the metadata.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Oid, Table};
use pgherd_control::cluster_state::{self, ClusterState, DistributedTable, TableName};
use pgherd_control::describe::{self, DescriptionError, TableDescription};
use pgherd_control::distribute::{self, ColocateWith};
use pgherd_wire::backend;
use pgherd_wire::copy::{CopyFormat, CopyOptions, CopySplitter, KeyField};

use super::Call;
use super::own::Arguments;
use super::request::Errors;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_name};
use crate::transaction::{Block, Reach};

/// How often a long copy says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// How often a table is described anew that others change meanwhile.
const LOOKS_MAX: usize = 20;

const KEYS_HINT: &str = "Drop the foreign key first, or use cascade_via_foreign_keys.";

/// From which table to which, and how each is dropped and made. Those of partitions come with their parents'.
const FOREIGN_KEYS: &str = "SELECT conrelid, confrelid, conrelid::pg_catalog.regclass, \
    pg_catalog.quote_ident(conname), pg_catalog.pg_get_constraintdef(oid) FROM pg_catalog.pg_constraint \
    WHERE contype = 'f' AND conparentid = 0 AND connamespace <> 'pgherd'::pg_catalog.regnamespace ORDER BY oid";

/// What one worker is to do: calls that only routers may make come first.
pub struct OnWorker {
    pub group: GroupId,
    pub own: Vec<String>,
    pub sql: String,
}

impl Session {
    pub(super) async fn create_distributed_table(&mut self, arguments: &Arguments) -> Result<()> {
        let name = arguments.need("table_name")?;
        if arguments.is_null("distribution_column") {
            return self.keep_on_one_server(name, arguments).await;
        }
        let key = arguments.need("distribution_column")?;
        if let Some(kind) = arguments.get("distribution_type")
            && kind != "hash"
        {
            return Err(Failure::refused(format!("distribution type \"{kind}\" is not supported"))
                .hint("Tables are distributed by hash."));
        }
        let shard_count: Option<u32> =
            arguments.number::<i64>("shard_count")?.map(|count| u32::try_from(count).unwrap_or(0));
        let default_count = self.own_setting("citus.shard_count").await?.and_then(|v| v.parse().ok()).unwrap_or(32);
        let oid = self.relation_oid(name).await?;
        let colocate_with = match arguments.get("colocate_with") {
            None | Some("default") => ColocateWith::Default,
            Some("none") => ColocateWith::None,
            Some(other) => ColocateWith::Table(self.relation_oid(other).await?),
        };
        let table = self.describe_locked(oid).await?;
        let state = self.cluster_state().await?;
        distribute::check_distributable(&table, key, &state, None).map_err(refusal)?;
        let column = distribute::key_column(&table, key).map_err(refusal)?;
        let placement = distribute::choose_placement(&table, column, &state, colocate_with, shard_count, default_count)
            .map_err(refusal)?;
        distribute::check_distributable(&table, key, &state, Some(&placement)).map_err(refusal)?;
        self.check_unsampled(&table).await?;
        self.check_expressions(table.oid, &state).await?;
        if table.is_partition {
            return Err(Failure::new("42P16", format!("table \"{}\" is a partition", table.name))
                .hint("Distribute the partitioned table."));
        }
        if table.is_partitioned() {
            self.register_partitioned(&table, key, &placement, &state).await?;
            let mut made = vec![table.oid];
            made.extend(self.adopt_partitions(table.oid).await?);
            for oid in made {
                self.run_quiet(COORDINATOR_GROUP, &distribute::attach_child_sql(oid)).await?;
            }
            self.txn.changes_catalog(Reach::Shared);
            return Ok(());
        }
        let registered =
            self.call_own(COORDINATOR_GROUP, &distribute::register_distributed_sql(&table, key, &placement)).await?;
        let registered = distribute::parse_registered(&registered).map_err(garbled)?;
        self.mark_writer(COORDINATOR_GROUP);
        // Where its triggers fire depends on the distribution column.
        let table = if table.triggers.is_empty() { table } else { self.describe_table(oid).await? };
        self.force_policies(COORDINATOR_GROUP, &table, false).await?;
        let has_rows = self.has_rows(&table).await?;
        let mut before = Vec::new();
        let mut after = Vec::new();
        for group in state.worker_groups() {
            let mut ddl = distribute::worker_ddl(&table, key, &registered, group, &state).map_err(refusal)?;
            if !has_rows {
                ddl.before_rows.append(&mut ddl.after_rows);
            }
            before.push((group, ddl.before_rows));
            after.push((group, ddl.after_rows));
        }
        self.run_ddl_on(before).await?;
        if has_rows {
            self.changed_catalog_in_block().await?;
            self.check_not_inside(&table)?;
            self.notice("Copying data from local table...");
            self.client.flush().await?;
            let catalog = self.catalog();
            let distributed = catalog
                .by_oid
                .get(&oid)
                .cloned()
                .ok_or_else(|| Failure::new("XX000", format!("table \"{name}\" is not in the catalog")))?;
            let rows = self.move_rows_out(&table, &distributed).await?;
            let mut fields = backend::ErrorFields::new("NOTICE", "00000", "copying the data has completed");
            fields.set(b'D', format!("{rows} rows were moved to the workers."));
            if self.hears("notice") {
                backend::write_notice(&mut self.client.out, &fields);
            }
        }
        self.force_policies(COORDINATOR_GROUP, &table, true).await?;
        self.run_ddl_on(after).await?;
        for sql in distribute::coordinator_ddl(&table) {
            self.run_quiet(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
        }
        self.txn.changes_catalog(Reach::Shared);
        Ok(())
    }

    /// A table of one shard, in Citus's words, is a local table.
    async fn keep_on_one_server(&mut self, name: &str, arguments: &Arguments) -> Result<()> {
        let oid = self.relation_oid(name).await?;
        let table = self.describe_table(oid).await?;
        let state = self.cluster_state().await?;
        distribute::check_ordinary(&table, &state).map_err(refusal)?;
        if arguments.get("shard_count").is_some() {
            return Err(Failure::new(
                "22023",
                "shard_count can't be specified when the distribution column is null because in that case it's \
                 automatically set to 1",
            ));
        }
        self.notice(&format!("table {name} stays on the coordinator, whole"));
        Ok(())
    }

    /// Views that were made before sample the table itself, which has no rows on the coordinator any more. Those that
    /// are made later get what the coordinator can sample.
    async fn check_unsampled(&mut self, table: &TableDescription) -> Result<()> {
        let sql = format!(
            "SELECT r.ev_class::pg_catalog.regclass FROM pg_catalog.pg_depend d \
             JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid \
             WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
               AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = {oid} \
               AND r.ev_action::pg_catalog.text ~ E':relid {oid} (:\\\\w+ \\\\w+ )*:tablesample \\\\{{' LIMIT 1",
            oid = table.oid
        );
        let sampled = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        // ONLY would mean the empty heap.
        let sql = format!(
            "SELECT r.ev_class::pg_catalog.regclass FROM pg_catalog.pg_depend d \
             JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid \
             WHERE d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass \
               AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = {oid} \
               AND pg_catalog.strpos(pg_catalog.pg_get_ruledef(r.oid), \
                   ' ONLY ' || {oid}::pg_catalog.regclass::pg_catalog.text) > 0 LIMIT 1",
            oid = table.oid
        );
        let only = match table.is_partitioned() {
            true => Default::default(),
            false => self.collect_on(COORDINATOR_GROUP, &sql).await?,
        };
        if let Some(view) = only.text(0, 0) {
            return Err(Failure::refused(format!("cannot distribute table \"{}\"", table.name))
                .detail(format!("View {view}, or a rule of it, names ONLY the table."))
                .hint("Drop the view, and create it again when the table is distributed."));
        }
        match sampled.text(0, 0) {
            None => Ok(()),
            Some(view) => Err(Failure::refused(format!("cannot distribute table \"{}\"", table.name))
                .detail(format!("View {view} takes a sample of it."))
                .hint("Drop the view, and create it again when the table is distributed.")),
        }
    }

    pub(super) async fn create_reference_table(&mut self, arguments: &Arguments) -> Result<()> {
        let oid = self.relation_oid(arguments.need("table_name")?).await?;
        let table = self.describe_locked(oid).await?;
        let state = self.cluster_state().await?;
        distribute::check_reference(&table, &state).map_err(refusal)?;
        self.check_expressions(table.oid, &state).await?;
        let registered = self.call_own(COORDINATOR_GROUP, &distribute::register_reference_sql(&table, &state)).await?;
        let registered = distribute::parse_registered(&registered).map_err(garbled)?;
        self.mark_writer(COORDINATOR_GROUP);
        let mut ddl = distribute::reference_ddl(&distribute::as_copied(&table, &state), registered.colocation);
        // Copies of other reference tables get their keys to this one, which was the coordinator's alone.
        for key in table.incoming.iter().filter(|key| state.table(key.oid).is_some_and(|t| t.is_reference())) {
            let from = self.describe_table(key.oid).await?;
            let constraint = from.constraints.iter().find(|c| c.kind == 'f' && c.name == key.name);
            ddl.after_rows.extend(constraint.map(|c| distribute::add_constraint(&from.qualified_name(), c)));
        }
        let groups = state.worker_groups();
        self.force_policies(COORDINATOR_GROUP, &table, false).await?;
        let has_rows = self.has_rows(&table).await?;
        let mut before = ddl.before_rows;
        before.extend(ddl.after_rows.iter().filter(|_| !has_rows).cloned());
        self.run_ddl_on(groups.iter().map(|g| (*g, before.clone())).collect()).await?;
        self.txn.changes_catalog(Reach::Shared);
        if has_rows {
            self.changed_catalog_in_block().await?;
            self.check_not_inside(&table)?;
            self.notice("Copying data from local table...");
            self.client.flush().await?;
            self.copy_reference_rows(&table, &groups).await?;
        }
        self.force_policies(COORDINATOR_GROUP, &table, true).await?;
        if has_rows {
            self.run_ddl_on(groups.iter().map(|g| (*g, ddl.after_rows.clone())).collect()).await?;
        }
        Ok(())
    }

    /// The coordinator's connection is busy with what distributes it.
    fn check_not_inside(&self, table: &TableDescription) -> Result<()> {
        match self.definitions.is_asked() {
            false => Ok(()),
            true => {
                Err(Failure::refused(format!("cannot distribute table \"{}\" from inside the coordinator", table.name))
                    .detail("It has rows, which cannot be moved meanwhile.")
                    .hint("Distribute it before rows come in, or by a statement of its own."))
            }
        }
    }

    /// While rows are moved, policies that their owner has forced upon himself hide none of them from him.
    async fn force_policies(&mut self, group: GroupId, table: &TableDescription, forces: bool) -> Result<()> {
        if !(table.row_security && table.force_row_security) {
            return Ok(());
        }
        let word = if forces { "FORCE" } else { "NO FORCE" };
        let sql = format!("ALTER TABLE ONLY {} {word} ROW LEVEL SECURITY", table.qualified_name());
        self.run_quiet(group, &sql).await
    }

    /// The coordinator's copy goes to every group as it is.
    pub(super) async fn copy_reference_rows(&mut self, table: &TableDescription, groups: &[GroupId]) -> Result<u64> {
        let copied: Vec<String> = distribute::copied_columns(table).into_iter().map(str::to_owned).collect();
        let catalog = self.catalog();
        let Some(known) = catalog.by_oid.get(&table.oid).cloned() else {
            return Err(Failure::new("XX000", format!("table \"{}\" is not in the catalog", table.name)));
        };
        let mut copy = self.start_rows(&known, &copied);
        for group in groups {
            self.start_copy_on(&mut copy, *group).await?;
        }
        let sql = format!("COPY ({}) TO STDOUT", distribute::local_rows_sql(table));
        let styled = self.with_plain_styles(COORDINATOR_GROUP).await?;
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.send_query(&sql);
        let mut failure = None;
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match frame.tag() {
                b'd' => {
                    for group in groups {
                        self.copy_bytes(*group, frame.body()).await?;
                    }
                }
                b'E' => failure = Some(backend::parse_error(&frame)?),
                b'Z' => break,
                _ => {}
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        if styled && failure.is_none() {
            self.with_client_styles(COORDINATOR_GROUP).await?;
        }
        match failure {
            Some(fields) => Err(self.translate(fields, Errors::default())),
            None => self.finish_copy_in(copy).await,
        }
    }

    /// The coordinator's rows go to the shards that own them; all workers load at the same time.
    pub(super) async fn move_rows_out(&mut self, table: &TableDescription, distributed: &Arc<Table>) -> Result<u64> {
        let copied: Vec<String> = distribute::copied_columns(table).into_iter().map(str::to_owned).collect();
        let key_name = distributed.key_column().map(|c| c.name.clone()).unwrap_or_default();
        let key = copied
            .iter()
            .position(|c| *c == key_name)
            .ok_or_else(|| Failure::new("XX000", "the distribution column is not copied"))?;
        let mut copy = self.start_rows(distributed, &copied);
        let sql = format!("COPY ({}) TO STDOUT", distribute::local_rows_sql(table));
        let mut splitter =
            CopySplitter::new(CopyOptions::new(CopyFormat::Text, self.server_major()), key, copied.len());
        let styled = self.with_plain_styles(COORDINATOR_GROUP).await?;
        let mut participant = self.take(COORDINATOR_GROUP)?;
        participant.lease.send_query(&sql);
        let mut failure: Option<Failure> = None;
        let mut rows = 0u64;
        let mut told = Instant::now();
        loop {
            let frame = self.next_frame(COORDINATOR_GROUP, &mut participant).await?;
            match frame.tag() {
                b'd' if failure.is_none() => {
                    splitter.push(frame.body());
                    loop {
                        match splitter.next_row() {
                            Ok(None) => break,
                            Ok(Some(row)) => {
                                let value = match &row.key {
                                    KeyField::Text(value) | KeyField::Binary(value) => Some(value.as_ref()),
                                    _ => None,
                                };
                                let step = async {
                                    let remainder = self.remainder_of_stored_text(distributed, value).await?;
                                    self.copy_line(&mut copy, remainder, row.raw).await
                                };
                                if let Err(error) = step.await {
                                    failure = Some(error);
                                    break;
                                }
                                rows += 1;
                            }
                            Err(error) => {
                                failure = Some(error.to_fields(&table.name).into());
                                break;
                            }
                        }
                    }
                    if told.elapsed() >= PROGRESS_INTERVAL {
                        told = Instant::now();
                        self.notice(&format!("copied {rows} rows of table \"{}\" so far", table.name));
                        self.client.flush().await?;
                    }
                }
                b'E' => {
                    let fields = backend::parse_error(&frame)?;
                    failure.get_or_insert(fields.into());
                }
                b'Z' => break,
                _ => {}
            }
        }
        self.put_back(COORDINATOR_GROUP, participant);
        if styled && failure.is_none() {
            self.with_client_styles(COORDINATOR_GROUP).await?;
        }
        match failure {
            Some(failure) => Err(self.abort_copy_in(copy).await.unwrap_or(failure)),
            None => {
                let loaded = self.finish_copy_in(copy).await?;
                if loaded == rows {
                    Ok(rows)
                } else {
                    Err(Failure::new("XX001", format!("{rows} rows were sent and {loaded} arrived")))
                }
            }
        }
    }

    pub(super) async fn undistribute_table(&mut self, arguments: &Arguments) -> Result<()> {
        let name = arguments.need("table_name")?;
        let oid = self.relation_oid(name).await?;
        match arguments.is_true("cascade_via_foreign_keys") {
            true => self.undistribute_with_keys(oid).await,
            false => self.undistribute_one(oid).await,
        }
    }

    /// A table and all that foreign keys lead to from it, over distributed and reference tables. The keys are dropped
    /// before, and made again of the coordinator's tables: PostgreSQL checks the rows.
    async fn undistribute_with_keys(&mut self, oid: u32) -> Result<()> {
        let state = self.cluster_state().await?;
        if state.table(oid).is_none() {
            return Err(not_distributed());
        }
        let found = self.collect_on(COORDINATOR_GROUP, FOREIGN_KEYS).await?;
        let number = |row, column| found.text(row, column).and_then(|oid| oid.parse::<u32>().ok()).unwrap_or_default();
        let mut tables = vec![oid];
        let mut keys = BTreeSet::new();
        let mut next = 0;
        while let Some(table) = tables.get(next).copied() {
            next += 1;
            for row in 0..found.rows.len() {
                let (from, to) = (number(row, 0), number(row, 1));
                let other = match (from == table, to == table) {
                    (true, _) => to,
                    (_, true) => from,
                    _ => continue,
                };
                keys.insert(row);
                if !tables.contains(&other) && state.table(other).is_some() {
                    tables.push(other);
                }
            }
        }
        let key = |row| {
            let word = |column| found.text(row, column).unwrap_or_default();
            (format!("ALTER TABLE {}", word(2)), word(3), word(4))
        };
        for (alter, name, _) in keys.iter().map(|row| key(*row)) {
            self.run_text(&format!("{alter} DROP CONSTRAINT {name}")).await?;
        }
        for table in tables {
            self.undistribute_one(table).await?;
        }
        for (alter, name, definition) in keys.iter().map(|row| key(*row)) {
            self.run_text(&format!("{alter} ADD CONSTRAINT {name} {definition}")).await?;
        }
        Ok(())
    }

    /// A statement of ours, as if the client had sent it where this one stands.
    pub async fn run_text(&mut self, sql: &str) -> Result<()> {
        let prepared = self.prepare(sql, Vec::new()).await?;
        Box::pin(self.execute(&Call::simple(&prepared))).await.map(drop)
    }

    async fn undistribute_one(&mut self, oid: u32) -> Result<()> {
        let table = self.describe_locked(oid).await?;
        let state = self.cluster_state().await?;
        let Some(known) = state.table(oid).cloned() else {
            return Err(not_distributed());
        };
        if let Some(key) = table.incoming.iter().find(|k| k.oid != oid) {
            return Err(Failure::refused(format!("cannot undistribute table \"{}\"", table.name))
                .detail(format!("Foreign key \"{}\" of table \"{}\" references it.", key.name, key.table))
                .hint(KEYS_HINT));
        }
        if let Some(constraint) = table.constraints.iter().find(|c| c.kind == 'f')
            && !known.is_reference()
            && constraint
                .referenced
                .as_ref()
                .is_some_and(|r| state.table(r.oid).is_some_and(|t| !t.is_reference()) && r.oid != oid)
        {
            return Err(Failure::refused(format!("cannot undistribute table \"{}\"", table.name))
                .detail(format!("Its foreign key \"{}\" references a distributed table.", constraint.name))
                .hint(KEYS_HINT));
        }
        if table.is_partition {
            return Err(Failure::refused(format!("cannot undistribute table \"{}\"", table.name))
                .detail("It is a partition.")
                .hint("Undistribute the partitioned table, or detach the partition first."));
        }
        if known.is_reference() {
            self.check_not_read_by_expressions(&table).await?;
        }
        self.mark_writer(COORDINATOR_GROUP);
        let groups = state.worker_groups();
        let tree: Vec<DistributedTable> = state.tree(oid).into_iter().cloned().collect();
        for below in &tree {
            self.describe_locked(below.oid).await?;
            self.run_quiet(COORDINATOR_GROUP, &distribute::detach_child_sql(below.oid)).await?;
        }
        for below in &tree {
            let table = self.describe_table(below.oid).await?;
            let is_leaf = self.catalog().by_oid.get(&below.oid).is_some_and(|t| t.is_leaf);
            if is_leaf {
                self.replace_on_coordinator(&table, false).await?;
            }
            if !known.is_reference() && !table.is_partitioned() {
                let mut holders: Vec<GroupId> = below.shards().iter().map(|s| s.group).collect();
                holders.sort_unstable();
                holders.dedup();
                if !is_leaf {
                    self.call_own(COORDINATOR_GROUP, &distribute::unregister_sql(below.oid)).await?;
                }
                self.fetch_rows_back(&table, &holders).await?;
            }
            if is_leaf {
                self.run_quiet(COORDINATOR_GROUP, &distribute::drop_aside_sql(below.oid)).await?;
            }
        }
        let gone = self.cluster_state().await?;
        for below in gone.tables.iter().filter(|t| tree.iter().any(|b| (&b.schema, &b.name) == (&t.schema, &t.name))) {
            self.call_own(COORDINATOR_GROUP, &distribute::unregister_sql(below.oid)).await?;
        }
        let mut drops: Vec<(GroupId, Vec<String>)> = groups.iter().map(|g| (*g, Vec::new())).collect();
        for below in &tree {
            for (group, statements) in &mut drops {
                let shards: Vec<i64> = below
                    .stored_shards()
                    .iter()
                    .filter(|s| s.group == *group && !below.is_reference())
                    .map(|s| s.id)
                    .collect();
                statements.extend(distribute::drop_ddl(&below.schema, &below.name, &shards));
            }
        }
        self.run_ddl_on(drops).await?;
        self.changed_catalog_in_block().await
    }

    async fn fetch_rows_back(&mut self, table: &TableDescription, holders: &[GroupId]) -> Result<()> {
        let columns = distribute::copied_columns(table);
        let list: Vec<String> = columns.iter().map(|c| quote_ident(c)).collect();
        let catalog = self.catalog();
        let known = catalog.by_oid.get(&table.oid).cloned();
        let Some(known) = known else { return Err(Failure::new("XX000", "the table is not in the catalog")) };
        let columns: Vec<String> = columns.into_iter().map(str::to_owned).collect();
        let mut copy = self.start_rows(&known, &columns);
        // Triggers of the user's must not see rows that only come home.
        self.run_quiet(COORDINATOR_GROUP, &format!("ALTER TABLE {} DISABLE TRIGGER USER", table.qualified_name()))
            .await?;
        self.force_policies(COORDINATOR_GROUP, table, false).await?;
        self.start_copy_on(&mut copy, COORDINATOR_GROUP).await?;
        for group in holders {
            self.join(*group).await?;
            self.mark_writer(*group);
            self.force_policies(*group, table, false).await?;
            let sql = format!("COPY (SELECT {} FROM {}) TO STDOUT", list.join(", "), table.qualified_name());
            let styled = self.with_plain_styles(*group).await?;
            let mut participant = self.take(*group)?;
            participant.lease.send_query(&sql);
            let mut failure = None;
            loop {
                let frame = participant.lease.frame().await?;
                match frame.tag() {
                    b'd' => {
                        self.copy_bytes(COORDINATOR_GROUP, frame.body()).await?;
                    }
                    b'E' => failure = Some(backend::parse_error(&frame)?),
                    b'Z' => break,
                    _ => {}
                }
            }
            self.put_back(*group, participant);
            if let Some(fields) = failure {
                self.abort_copy_in(copy).await;
                return Err(self.translate(fields, Errors::default()));
            }
            if styled {
                self.with_client_styles(*group).await?;
            }
        }
        self.finish_copy_in(copy).await?;
        self.force_policies(COORDINATOR_GROUP, table, true).await?;
        for trigger in table.triggers.iter().filter(|t| t.enabled != 'D') {
            let word = match trigger.enabled {
                'R' => "ENABLE REPLICA TRIGGER",
                'A' => "ENABLE ALWAYS TRIGGER",
                _ => "ENABLE TRIGGER",
            };
            let sql = format!("ALTER TABLE {} {word} {}", table.qualified_name(), quote_ident(&trigger.name));
            self.run_quiet(COORDINATOR_GROUP, &sql).await?;
        }
        Ok(())
    }

    pub(super) async fn truncate_local_data(&mut self, arguments: &Arguments) -> Result<()> {
        let oid = self.relation_oid(arguments.need("function_name")?).await?;
        let catalog = self.catalog();
        if catalog.by_oid.contains_key(&oid) {
            // create_distributed_table moved the rows: nothing is left here.
            return Ok(());
        }
        Err(Failure::new("42P16", "supplied parameter is not a distributed relation")
            .detail("This UDF only truncates local data of distributed tables"))
    }

    /// The table as the coordinator has it, locked against everything until the transaction ends, where the caller owns
    /// it.
    pub(super) async fn describe_locked(&mut self, oid: u32) -> Result<TableDescription> {
        self.join(COORDINATOR_GROUP).await?;
        let look = format!(
            "SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.oid = {oid} AND c.relkind IN ('r', 'p') AND pg_catalog.pg_has_role(c.relowner, 'USAGE')"
        );
        for _ in 0..LOOKS_MAX {
            let found = self.collect_on(COORDINATOR_GROUP, &look).await?;
            let Some((schema, name)) = found.text(0, 0).zip(found.text(0, 1)) else {
                return self.describe_table(oid).await;
            };
            let sql = format!("LOCK TABLE ONLY {} IN ACCESS EXCLUSIVE MODE", quote_name(Some(schema), name));
            self.run_quiet(COORDINATOR_GROUP, &sql).await?;
            let table = self.describe_table(oid).await?;
            // Whoever waited may have locked what has that name by now.
            if table.schema == schema && table.name == name {
                return Ok(table);
            }
        }
        Err(super::ddl::overtaken())
    }

    pub(super) async fn describe_table(&mut self, oid: u32) -> Result<TableDescription> {
        self.join(COORDINATOR_GROUP).await?;
        // Without a lock another's definition may end between the catalog's rows and the texts that PostgreSQL makes of
        // what is there by now: an index that is gone has no definition. It is then looked at again.
        let mut rounds = 0;
        loop {
            let described = self.collect_on(COORDINATOR_GROUP, &describe::describe_query(oid)).await;
            rounds += 1;
            match described.and_then(|result| parse_table(oid, result.text(0, 0))) {
                Err(failure) if failure.sqlstate() == "XX000" && rounds < LOOKS_MAX && self.may_look_again() => {}
                described => return described,
            }
        }
    }

    /// Those of several tables that are there.
    pub(super) async fn describe_tables(
        &mut self,
        tables: impl Iterator<Item = Oid>,
    ) -> Result<HashMap<Oid, TableDescription>> {
        let list: Vec<String> = tables.map(|oid| oid.to_string()).collect();
        if list.is_empty() {
            return Ok(HashMap::new());
        }
        let sql = format!(
            "SELECT c.oid, pgherd.describe_table(c.oid) FROM pg_catalog.pg_class c WHERE c.oid IN ({})",
            list.join(", ")
        );
        let told = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let mut tables = HashMap::new();
        for row in 0..told.rows.len() {
            if let Some(oid) = told.text(row, 0).and_then(|oid| oid.parse().ok()) {
                tables.insert(oid, parse_table(oid, told.text(row, 1))?);
            }
        }
        Ok(tables)
    }

    /// An error on the coordinator has not ended a transaction.
    fn may_look_again(&self) -> bool {
        self.txn.participants.get(&COORDINATOR_GROUP).is_none_or(|p| p.lease.status != b'E')
    }

    /// As this transaction sees it: of the held catalog, but for names and partitions, which what is being defined may
    /// have changed.
    pub(super) async fn cluster_state(&mut self) -> Result<ClusterState> {
        self.join(COORDINATOR_GROUP).await?;
        let now = self.collect_on(COORDINATOR_GROUP, cluster_state::NAMES).await?;
        if now.text(0, 0) != Some(self.catalog().epoch.to_string().as_str()) {
            match self.txn.block {
                Block::None => self.db.reload(&self.thread.shared).await?,
                _ => self.load_catalog_in_block().await?,
            }
        }
        let mut state = ClusterState::of(&self.catalog());
        let names = (0..now.rows.len()).filter_map(|row| {
            let text = |column| now.text(row, column);
            Some(TableName {
                oid: text(1)?.parse().ok()?,
                schema: text(2)?.to_owned(),
                name: text(3)?.to_owned(),
                parent: text(4).and_then(|oid| oid.parse().ok()),
                is_partitioned: text(5) == Some("t"),
            })
        });
        state.rename(names.collect());
        Ok(state)
    }

    pub(super) async fn has_rows(&mut self, table: &TableDescription) -> Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT FROM ONLY {})", table.qualified_name());
        Ok(self.collect_on(COORDINATOR_GROUP, &sql).await?.text(0, 0) == Some("t"))
    }

    /// Statements for several workers, each worker's in one packet, all workers at the same time.
    pub(super) async fn run_ddl_on(&mut self, lists: Vec<(GroupId, Vec<String>)>) -> Result<()> {
        let mut work = Vec::new();
        for (group, statements) in lists.into_iter().filter(|(_, s)| !s.is_empty()) {
            self.join(group).await?;
            self.mark_writer(group);
            let (own, statements): (Vec<_>, Vec<_>) = statements.into_iter().partition(|sql| distribute::is_own(sql));
            work.push(OnWorker { group, own, sql: statements.join(";\n") });
        }
        if self.definitions.definer.is_some() {
            for OnWorker { group, own, .. } in &work {
                for call in own {
                    self.call_own(*group, call).await?;
                }
            }
            for OnWorker { group, sql, .. } in work.iter().filter(|work| !work.sql.is_empty()) {
                self.run_defining(*group, sql).await.map_err(super::own::without_position)?;
            }
            return Ok(());
        }
        self.run_on_workers(work).await
    }

    /// What follows a definition on one worker, as whoever defines.
    pub(super) async fn run_defining(&mut self, group: GroupId, sql: &str) -> Result<()> {
        match self.definitions.definer.clone() {
            Some(definer) => self.run_as_definer(group, &definer, sql, false).await.map(drop),
            None => self.run_quiet(group, sql).await,
        }
    }

    pub(crate) fn localise(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Statement(fields) => self.translate(*fields, Errors::default()),
            other => other,
        }
    }

    /// Metadata or schema changed in this transaction: it plans with its own view of the catalog from now on.
    pub(super) async fn changed_catalog_in_block(&mut self) -> Result<()> {
        self.txn.changes_catalog(Reach::Shared);
        self.reload_catalog_in_block().await
    }
}

fn not_distributed() -> Failure {
    Failure::new("42P16", "cannot undistribute table because the table is not distributed")
}

pub fn refusal(refusal: pgherd_control::Refusal) -> Failure {
    let mut failure = Failure::new(refusal.sqlstate, &refusal.message);
    if let Some(detail) = &refusal.detail {
        failure = failure.detail(detail);
    }
    if let Some(hint) = &refusal.hint {
        failure = failure.hint(hint);
    }
    failure
}

/// Options that the log has told of.
static LEFT_ALONE: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The answer to `describe_query`.
pub(super) fn parse_table(oid: u32, json: Option<&str>) -> Result<TableDescription> {
    let json = json.ok_or_else(|| Failure::new("42P01", format!("relation with OID {oid} does not exist")))?;
    let table = describe::parse_description(json).map_err(garbled)?;
    for option in &table.left_alone {
        let mut known = LEFT_ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if known.insert(option.clone()) {
            tracing::info!("storage option {option} is not PostgreSQL's documented: it is not carried to workers");
        }
    }
    Ok(table)
}

pub(super) fn garbled(error: DescriptionError) -> Failure {
    Failure::new("XX000", error.to_string()).hint("Run pgherd init to bring the schema pgherd up to date.")
}
