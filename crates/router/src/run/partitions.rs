//! Partitioned tables of users' and their partitions (docs/decisions/0012): each is a distributed table of its own. On
//! the coordinator a partition is partitioned further, so that it can have a foreign child.

use std::sync::Arc;

use pgherd_catalog::{COORDINATOR_GROUP, GroupId, Table};
use pgherd_control::cluster_state::ClusterState;
use pgherd_control::ddl::{self, Hints};
use pgherd_control::describe::TableDescription;
use pgherd_control::distribute;
use pgherd_sql::DdlInfo;

use super::distribute::{garbled, refusal};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

impl Session {
    /// A partitioned table, without its partitions: on every worker, and in the metadata.
    pub(super) async fn register_partitioned(
        &mut self,
        table: &TableDescription,
        key: &str,
        placement: &distribute::Placement,
        state: &ClusterState,
    ) -> Result<()> {
        let sql = distribute::register_distributed_sql(table, key, placement);
        let registered = self.call_own(COORDINATOR_GROUP, &sql).await?;
        let registered = distribute::parse_registered(&registered).map_err(garbled)?;
        self.mark_writer(COORDINATOR_GROUP);
        let mut lists = Vec::new();
        for group in state.worker_groups() {
            let ddl = distribute::worker_ddl(table, key, &registered, group, state).map_err(refusal)?;
            let mut statements = ddl.all();
            statements.extend(attach_below_parent(table, state));
            lists.push((group, statements));
        }
        self.run_ddl_on(lists).await
    }

    /// Distributes what is in the tree of a distributed partitioned table and is not distributed yet; these tables.
    /// They get their children when all of them are made: definitions of the tree are refused once there is one.
    pub(super) async fn adopt_partitions(&mut self, root: u32) -> Result<Vec<u32>> {
        let sql = format!(
            "SELECT c.oid FROM pg_catalog.pg_partition_tree({root}::pg_catalog.oid::pg_catalog.regclass) t \
             JOIN pg_catalog.pg_class c ON c.oid = t.relid \
             LEFT JOIN pgherd.pg_dist_partition p ON p.logicalrelid = c.oid \
             WHERE p.logicalrelid IS NULL AND c.relnamespace <> 'pgherd'::pg_catalog.regnamespace \
             ORDER BY t.level, c.oid"
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let oids: Vec<u32> =
            (0..found.rows.len()).filter_map(|row| found.text(row, 0).and_then(|t| t.parse().ok())).collect();
        if !oids.is_empty() {
            let state = self.cluster_state().await?;
            self.check_expressions(root, &state).await?;
        }
        let mut made = Vec::new();
        for oid in oids {
            let table = self.describe_locked(oid).await?;
            let state = self.cluster_state().await?;
            let Some(parent) = table.parent.and_then(|parent| state.table(parent)).cloned() else { continue };
            let key = parent.key.clone().unwrap_or_default();
            let placement = distribute::Placement {
                colocation: Some(parent.colocation),
                is_default: false,
                groups: parent.shards().iter().map(|s| s.group).collect(),
            };
            distribute::check_distributable(&table, &key, &state, Some(&placement)).map_err(refusal)?;
            if table.is_partitioned() {
                self.register_partitioned(&table, &key, &placement, &state).await?;
                made.push(oid);
            } else {
                made.push(self.adopt_leaf(table, &key, &placement, &state).await?);
            }
        }
        Ok(made)
    }

    /// A partition that is a table of the coordinator becomes a distributed table of its own, with its rows.
    async fn adopt_leaf(
        &mut self,
        table: TableDescription,
        key: &str,
        placement: &distribute::Placement,
        state: &ClusterState,
    ) -> Result<u32> {
        let has_rows = self.has_rows(&table).await?;
        if has_rows && self.definitions.is_asked() {
            return Err(Failure::refused(format!(
                "cannot distribute table \"{}\" with its rows from inside the coordinator",
                table.name
            ))
            .hint("Send ATTACH PARTITION as a statement of its own, or attach the table while it is empty."));
        }
        let aside = TableDescription { schema: distribute::aside_schema(table.oid), ..table.clone() };
        let parent = self.parent_name(&table, state);
        let oid = self.replace_as_leaf(&table, Some(key), parent.as_deref()).await?;
        let table = TableDescription { oid, ..table };
        let sql = distribute::register_distributed_sql(&table, key, placement);
        let registered = self.call_own(COORDINATOR_GROUP, &sql).await?;
        let registered = distribute::parse_registered(&registered).map_err(garbled)?;
        self.mark_writer(COORDINATOR_GROUP);
        let mut before = Vec::new();
        let mut after = Vec::new();
        for group in state.worker_groups() {
            let mut ddl = distribute::worker_ddl(&table, key, &registered, group, state).map_err(refusal)?;
            ddl.after_rows.extend(attach_below_parent(&table, state));
            before.push((group, ddl.before_rows));
            after.push((group, ddl.after_rows));
        }
        self.run_ddl_on(before).await?;
        if has_rows {
            self.changed_catalog_in_block().await?;
            let Some(distributed) = self.catalog().by_oid.get(&oid).cloned() else {
                return Err(Failure::new("XX000", format!("table \"{}\" is not in the catalog", table.name)));
            };
            self.move_rows_out(&aside, &distributed).await?;
        }
        self.run_ddl_on(after).await?;
        self.run_quiet(COORDINATOR_GROUP, &distribute::drop_aside_sql(aside.oid)).await?;
        Ok(oid)
    }

    /// What DETACH PARTITION … CONCURRENTLY leaves to the table that it detaches: its partition constraint as a CHECK
    /// constraint, if it has none that implies it.
    pub(super) async fn checks_of_detached(
        &mut self,
        info: &DdlInfo,
        before: &[(Arc<Table>, TableDescription)],
    ) -> Result<Vec<String>> {
        let mut checks = Vec::new();
        for name in &info.relations {
            let Some(named) = self.distributed(name).await? else { continue };
            let Some((table, description)) = before.iter().find(|(t, _)| t.oid == named.oid) else { continue };
            let sql = format!(
                "SELECT (SELECT p.partdefid <> 0 AND pg_catalog.pg_has_role(c.relowner, 'USAGE') \
                   FROM pg_catalog.pg_partitioned_table p JOIN pg_catalog.pg_class c ON c.oid = p.partrelid \
                   WHERE c.oid = {0}), pgherd.check_of_detached({0})",
                table.oid
            );
            let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
            let is_altered = info.relations.first() == Some(name);
            if is_altered && found.text(0, 0) == Some("t") {
                return Err(Failure::new(
                    "55000",
                    "cannot detach partitions concurrently when a default partition exists",
                ));
            }
            if !is_altered && let Some(check) = found.text(0, 1) {
                checks.push(format!("ALTER TABLE {} ADD CHECK ({check})", description.qualified_name()));
            }
        }
        Ok(checks)
    }

    fn parent_name(&self, table: &TableDescription, state: &ClusterState) -> Option<String> {
        let parent = table.parent.and_then(|parent| state.table(parent))?;
        Some(format!("{}.{}", quote_ident(&parent.schema), quote_ident(&parent.name)))
    }

    /// A table of the coordinator anew in the other form, with the old one set aside; its new object id.
    pub(super) async fn replace_on_coordinator(&mut self, table: &TableDescription, is_leaf: bool) -> Result<u32> {
        let state = self.cluster_state().await?;
        let key = state.table(table.oid).and_then(|t| t.key.clone()).filter(|_| is_leaf);
        let parent = self.parent_name(table, &state);
        self.replace_as_leaf(table, key.as_deref(), parent.as_deref()).await
    }

    async fn replace_as_leaf(
        &mut self,
        table: &TableDescription,
        key: Option<&str>,
        parent: Option<&str>,
    ) -> Result<u32> {
        let owned = self.collect_on(COORDINATOR_GROUP, &distribute::set_aside_sql(table.oid)).await?;
        let mut sql = distribute::coordinator_table_ddl(table, key);
        sql.extend(parent.map(|parent| distribute::attach_partition_sql(parent, table)));
        sql.push(distribute::replace_aside_sql(table.oid, table, owned.text(0, 0).unwrap_or("[]"), key.is_some()));
        // One by one: inside the coordinator some of them need a pass.
        let last = sql.pop();
        // From PostgreSQL 18 on none is made that is partitioned and UNLOGGED.
        let marked = (key.is_some() && table.persistence == 'u')
            .then(|| format!("SELECT pgherd.mark_unlogged({}, true)", quote_literal(&table.qualified_name())));
        for sql in [Some(sql.join(";\n")), marked, last].into_iter().flatten() {
            self.run_quiet(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
        }
        let sql = format!("SELECT pg_catalog.to_regclass({})::pg_catalog.oid", quote_literal(&table.qualified_name()));
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        found
            .text(0, 0)
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| Failure::new("XX000", format!("table \"{}\" is not there", table.name)))
    }

    /// For workers: the indexes that another type of a column has made anew get the names that they have here.
    pub(super) async fn index_renames(
        &mut self,
        trees: &[(&Arc<Table>, TableDescription, TableDescription)],
    ) -> Result<Vec<String>> {
        let mut renames = Vec::new();
        for (table, ..) in trees.iter().filter(|(.., new)| new.parent.is_none()) {
            let sql = format!("SELECT pgherd.tree_names({})", table.oid);
            let names = self.collect_on(COORDINATOR_GROUP, &sql).await?;
            renames.push(format!("SELECT pgherd.align_tree({})", quote_literal(names.text(0, 0).unwrap_or("[]"))));
        }
        for (.., new) in trees.iter().filter(|(.., new)| !new.is_partitioned()) {
            renames.push(format!("SELECT pgherd.align_names({})", quote_literal(&new.qualified_name())));
        }
        Ok(renames)
    }

    /// The same for partitioned tables and partitions: some were attached or detached, some are new.
    pub(super) async fn follow_trees(
        &mut self,
        trees: &[(&Arc<Table>, TableDescription, TableDescription)],
        (using, sets_expression): (&[(String, String)], bool),
        renames: &[String],
        state: &ClusterState,
    ) -> Result<()> {
        let old_name = |oid: u32| trees.iter().find(|(t, ..)| t.oid == oid).map(|(_, old, _)| old.qualified_name());
        let new_name = |oid: u32| trees.iter().find(|(t, ..)| t.oid == oid).map(|(.., new)| new.qualified_name());
        let mut detaches = Vec::new();
        let mut attaches = Vec::new();
        for (_, old, new) in trees.iter().filter(|(_, old, new)| old.parent != new.parent) {
            if let Some(parent) = old.parent.and_then(old_name) {
                detaches.push(format!("ALTER TABLE {parent} DETACH PARTITION {}", old.qualified_name()));
            }
            if let Some(parent) = new.parent.and_then(new_name) {
                attaches.push(distribute::attach_partition_sql(&parent, new));
            }
        }
        let groups = state.worker_groups();
        let mut lists: Vec<(GroupId, Vec<String>)> = groups.iter().map(|g| (*g, detaches.clone())).collect();
        let mut additions: Vec<Vec<Vec<String>>> = vec![Vec::new(); groups.len()];
        let mut defaults = Vec::new();
        for (table, old, new) in trees {
            self.check_followed(table, old, new, state, false).await?;
            let (fixed, fixed_defaults) = self.fixed_columns(old, new).await?;
            if old.parent.is_none() {
                defaults.extend(fixed_defaults);
            }
            let shards = state.table(table.oid).map(|k| k.stored_shards()).unwrap_or_default();
            for (at, (group, statements)) in lists.iter_mut().enumerate() {
                // What a partition gets comes with its parent's.
                let fills = if old.parent.is_none() { self.fills(*group, old, new).await? } else { Vec::new() };
                let hints = Hints { using, fills: &fills, sets_expression };
                let parts = ddl::alter_ddl_parts(old, &fixed, shards, *group, state, hints).map_err(refusal)?;
                statements.extend(parts.changes);
                if let Some(of_group) = additions.get_mut(at) {
                    of_group.push(parts.additions);
                }
            }
        }
        for ((_, statements), additions) in lists.iter_mut().zip(additions) {
            statements.extend(renames.iter().cloned());
            statements.extend(additions.into_iter().rev().flatten());
            statements.extend(defaults.iter().cloned());
            statements.extend(attaches.iter().cloned());
        }
        self.run_ddl_on(lists).await?;
        let mut made = Vec::new();
        // Whoever is not the owner has only given rights.
        for (table, old, new) in trees.iter().filter(|(_, old, _)| old.caller_owns) {
            if new.parent.is_none() || old.parent.is_some() || new.is_partitioned() || table.is_leaf {
                made.push(table.oid);
            } else {
                // It was an ordinary table on the coordinator.
                made.push(self.replace_on_coordinator(new, true).await?);
                self.run_quiet(COORDINATOR_GROUP, &distribute::drop_aside_sql(new.oid)).await?;
            }
        }
        for (table, ..) in trees.iter().filter(|(_, _, new)| new.is_partitioned() && new.parent.is_none()) {
            made.extend(self.adopt_partitions(table.oid).await?);
        }
        for oid in made {
            self.run_quiet(COORDINATOR_GROUP, &distribute::attach_child_sql(oid)).await?;
        }
        Ok(())
    }
}

/// Once a table is made on a worker: puts it below its parent there.
pub(super) fn attach_below_parent(table: &TableDescription, state: &ClusterState) -> Option<String> {
    let parent = table.parent.and_then(|parent| state.table(parent))?;
    let name = format!("{}.{}", quote_ident(&parent.schema), quote_ident(&parent.name));
    Some(distribute::attach_partition_sql(&name, table))
}
