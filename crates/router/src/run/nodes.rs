//! citus_add_node and its like: a node is checked and prepared over a connection of its own, then registered inside the
//! client's transaction.

use pgherd_backend::{Connection, connect};
use pgherd_catalog::{COORDINATOR_GROUP, ColocationId, GroupId, Node};
use pgherd_control::cluster_state::{ClusterState, DistributedTable};
use pgherd_control::distribute;

use super::own::Arguments;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

impl Session {
    pub(super) async fn add_node(&mut self, arguments: &Arguments) -> Result<i64> {
        let host = arguments.need("nodename")?.to_owned();
        let port: u16 =
            arguments.number("nodeport")?.ok_or_else(|| Failure::new("22004", "nodeport cannot be NULL"))?;
        let group: i32 = arguments.number("groupid")?.unwrap_or(-1);
        if let Some(role) = arguments.get("noderole")
            && role != "primary"
        {
            return Err(Failure::refused(format!("node role \"{role}\" is not supported yet")));
        }
        self.require_superuser().await?;
        let node = Node { id: 0, group, host: host.clone(), port, is_active: true, should_have_shards: true };
        if group != COORDINATOR_GROUP {
            self.prepare_worker(&node).await?;
        }
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let known = self.cluster_state().await?;
        let id = self
            .collect_on(
                COORDINATOR_GROUP,
                &format!("SELECT pgherd.register_node({}, {port}, {group})", quote_literal(&host)),
            )
            .await?
            .text(0, 0)
            .and_then(|t| t.parse::<i64>().ok())
            .ok_or_else(|| Failure::new("XX000", "the node was not registered"))?;
        self.changed_catalog_in_block().await?;
        if known.nodes.iter().all(|n| i64::from(n.id) != id) && group != COORDINATOR_GROUP {
            self.copy_to_new_node(id).await?;
            let elsewhere = self.databases_without(&node).await?;
            if !elsewhere.is_empty() {
                let message = format!("node {host}:{port} is known in database \"{}\" only", self.db.name);
                let hint = format!("Add it in these databases as well: {}.", elsewhere.join(", "));
                self.notice_with_hint(&message, &hint);
            }
        }
        Ok(id)
    }

    /// Other databases with nodes of their own that lack this one. Those that no router has opened yet will get the
    /// default database's.
    async fn databases_without(&self, node: &Node) -> Result<Vec<String>> {
        let shared = &self.thread.shared;
        let sql = format!(
            "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND datname <> {} \
             ORDER BY 1",
            quote_literal(&self.db.name)
        );
        let mut own = connect(&shared.own_target(&self.db.name)).await?;
        let names = own.query(&sql).await;
        own.close().await;
        let names = names?;
        let sql = format!(
            "SELECT pg_catalog.count(*) FROM pgherd.pg_dist_node WHERE nodename = {} AND nodeport = {}",
            quote_literal(&node.host),
            node.port
        );
        let mut lacking = Vec::new();
        for name in (0..names.rows.len()).filter_map(|row| names.text(row, 0)) {
            // One that cannot be asked, or has no nodes.
            let Ok(mut there) = connect(&shared.own_target(name)).await else { continue };
            let known = there.query(&sql).await;
            there.close().await;
            if known.is_ok_and(|known| known.text(0, 0) == Some("0")) {
                lacking.push(name.to_owned());
            }
        }
        Ok(lacking)
    }

    /// A node that joins later gets every reference table and an empty parent of every distributed one.
    async fn copy_to_new_node(&mut self, id: i64) -> Result<()> {
        let state = self.cluster_state().await?;
        let Some(group) = state.nodes.iter().find(|n| i64::from(n.id) == id).map(|n| n.group) else { return Ok(()) };
        // Partitions after what they are partitions of.
        let roots = state.tables.iter().filter(|t| t.parent.is_none_or(|parent| state.table(parent).is_none()));
        let tables: Vec<DistributedTable> = roots.flat_map(|root| state.tree(root.oid)).cloned().collect();
        for known in tables {
            let table = self.describe_table(known.oid).await?;
            if known.is_reference() {
                // A router that does not know the new copy yet must not write the others without it.
                let epoch = self.next_placement_epoch(&state, known.colocation, group).await?;
                let copied = distribute::as_copied(&table, &state);
                let ddl = distribute::reference_ddl_at(&copied, known.colocation, epoch);
                self.run_ddl_on(vec![(group, ddl.before_rows)]).await?;
                self.copy_reference_rows(&table, &[group]).await?;
                self.run_ddl_on(vec![(group, ddl.after_rows)]).await?;
                let sql = format!(
                    "INSERT INTO pgherd.pg_dist_placement (shardid, groupid) \
                     SELECT shardid, {group} FROM pgherd.pg_dist_shard WHERE logicalrelid = {}::pg_catalog.regclass",
                    known.oid
                );
                self.run_quiet(COORDINATOR_GROUP, &sql).await?;
            } else {
                let epoch = state.colocation(known.colocation).map_or(1, |c| c.epoch);
                let registered =
                    distribute::Registered { colocation: known.colocation, epoch, shards: known.shards().to_vec() };
                let key = known.key.clone().unwrap_or_default();
                let ddl = distribute::worker_ddl(&table, &key, &registered, group, &state)
                    .map_err(super::distribute::refusal)?;
                let mut statements = ddl.all();
                statements.extend(super::partitions::attach_below_parent(&table, &state));
                self.run_ddl_on(vec![(group, statements)]).await?;
            }
        }
        self.changed_catalog_in_block().await
    }

    /// Moves the placement epoch of a colocation group on all nodes but `newcomer`, which begins with it.
    async fn next_placement_epoch(
        &mut self,
        state: &ClusterState,
        colocation: ColocationId,
        newcomer: GroupId,
    ) -> Result<i64> {
        let current = self.catalog().placement_epoch(colocation).unwrap_or(1);
        let stored = state.colocation(colocation).map_or(current, |c| c.epoch);
        if stored < current {
            // Another reference table of the group has moved it already.
            return Ok(current);
        }
        let epoch = stored + 1;
        let lists = state
            .worker_groups()
            .into_iter()
            .filter(|g| *g != newcomer)
            .map(|g| (g, vec![pgherd_control::schema::change_placement_sql(colocation, epoch)]))
            .collect();
        self.run_ddl_on(lists).await?;
        self.run_quiet(COORDINATOR_GROUP, &pgherd_control::schema::placement_epoch_sql(colocation, epoch)).await?;
        self.reload_catalog_in_block().await?;
        Ok(epoch)
    }

    async fn require_superuser(&mut self) -> Result<()> {
        let result =
            self.ask_coordinator("SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user").await?;
        if result.text(0, 0) == Some("t") {
            Ok(())
        } else {
            Err(Failure::new("42501", "must be superuser to change the nodes of the cluster"))
        }
    }

    /// The server answers, has this database, the roles of the coordinator and our schema.
    pub(super) async fn prepare_worker(&mut self, node: &Node) -> Result<()> {
        let shared = self.thread.shared.clone();
        let database = self.db.name.clone();
        let mut connection = match connect(&shared.own_target_on(node, &database)).await {
            Ok(connection) => connection,
            Err(error) if error.to_fields().sqlstate() == "3D000" => {
                create_database_on(&shared.own_target_on(node, "postgres"), &database).await?;
                connect(&shared.own_target_on(node, &database)).await?
            }
            Err(error) => {
                return Err(Failure::new("08001", format!("could not connect to node {}:{}", node.host, node.port))
                    .detail(error.to_string()));
            }
        };
        let prepared = self.prepare_on(node, &mut connection).await;
        connection.close().await;
        prepared
    }

    async fn prepare_on(&mut self, node: &Node, connection: &mut Connection) -> Result<()> {
        let checked = connection
            .query(
                "SELECT pg_catalog.current_setting('max_prepared_transactions')::int4 > 0, \
                        pg_catalog.getdatabaseencoding(), \
                        pg_catalog.current_setting('server_version_num')::int4 / 10000, \
                        pg_catalog.pg_is_in_recovery(), (SELECT system_identifier FROM pg_catalog.pg_control_system())",
            )
            .await?;
        let mine = self
            .ask_coordinator(
                "SELECT true, pg_catalog.getdatabaseencoding(), pg_catalog.current_setting('server_version_num')::int4 / 10000",
            )
            .await?;
        let is_coordinator = self.system_identifier().await?.as_deref() == checked.text(0, 4);
        if is_coordinator && checked.text(0, 3) == Some("f") {
            return Err(Failure::new("22023", format!("node {}:{} is the coordinator", node.host, node.port))
                .detail("It has a table's definition where a worker has its rows.")
                .hint("Add other servers as workers."));
        }
        if checked.text(0, 0) != Some("t") {
            return Err(Failure::new("55000", format!("node {}:{} cannot prepare transactions", node.host, node.port))
                .hint("Set max_prepared_transactions to at least max_connections there and restart it."));
        }
        if checked.text(0, 3) == Some("t") {
            return Err(Failure::new("55000", format!("node {}:{} is a standby", node.host, node.port)));
        }
        if checked.text(0, 1) != mine.text(0, 1) {
            return Err(Failure::new("22023", format!("node {}:{} has another encoding", node.host, node.port))
                .detail(format!(
                    "The coordinator has {}, the node {}.",
                    mine.text(0, 1).unwrap_or("?"),
                    checked.text(0, 1).unwrap_or("?")
                )));
        }
        let major = checked.text(0, 2).and_then(|major| major.parse::<u32>().ok()).unwrap_or_default();
        if major < 15 {
            return Err(Failure::new("0A000", format!("node {}:{} runs PostgreSQL {major}", node.host, node.port))
                .detail("pgherd needs PostgreSQL 15 to 18."));
        }
        if major > 18 {
            let newer = format!(
                "node {}:{} runs PostgreSQL {major}, which is newer than any that pgherd was tested with",
                node.host, node.port
            );
            self.warn("01000", &newer);
        }
        if checked.text(0, 2) != mine.text(0, 2) {
            self.warn(
                "01000",
                &format!(
                    "node {}:{} runs PostgreSQL {}, the coordinator {}",
                    node.host,
                    node.port,
                    checked.text(0, 2).unwrap_or("?"),
                    mine.text(0, 2).unwrap_or("?")
                ),
            );
        }
        let roles = self.roles_ddl().await?;
        for sql in roles {
            connection.query(&sql).await?;
        }
        connection.query(&pgherd_control::schema::worker_schema_sql()).await?;
        Ok(())
    }

    /// The coordinator's.
    async fn system_identifier(&mut self) -> Result<Option<String>> {
        let mut own = connect(&self.thread.shared.own_target(&self.db.name)).await?;
        let asked = own.query("SELECT system_identifier FROM pg_catalog.pg_control_system()").await;
        own.close().await;
        Ok(asked?.text(0, 0).map(str::to_owned))
    }

    /// Roles of the coordinator, with the same password verifiers, each made where it is missing.
    pub(super) async fn roles_ddl(&self) -> Result<Vec<String>> {
        let mut own = connect(&self.thread.shared.own_target(&self.db.name)).await?;
        let roles = own
            .query(
                "SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, \
                        rolbypassrls, rolconnlimit, rolpassword, rolvaliduntil \
                 FROM pg_catalog.pg_authid WHERE rolname !~ '^pg_' ORDER BY oid",
            )
            .await;
        let members = own
            .query(
                "SELECT r.rolname, m.rolname FROM pg_catalog.pg_auth_members a \
                 JOIN pg_catalog.pg_roles r ON r.oid = a.roleid JOIN pg_catalog.pg_roles m ON m.oid = a.member \
                 WHERE m.rolname !~ '^pg_' ORDER BY 1, 2",
            )
            .await;
        own.close().await;
        let (roles, members) = (roles?, members?);
        let mut out = Vec::new();
        for row in 0..roles.rows.len() {
            let name = roles.text(row, 0).unwrap_or_default();
            let mut options = String::new();
            for (column, word) in
                ["SUPERUSER", "INHERIT", "CREATEROLE", "CREATEDB", "LOGIN", "REPLICATION", "BYPASSRLS"]
                    .iter()
                    .enumerate()
            {
                let no = if roles.text(row, column + 1) == Some("t") { "" } else { "NO" };
                options.push_str(&format!(" {no}{word}"));
            }
            if let Some(password) = roles.text(row, 9) {
                options.push_str(&format!(" PASSWORD {}", quote_literal(password)));
            }
            if let Some(until) = roles.text(row, 10) {
                options.push_str(&format!(" VALID UNTIL {}", quote_literal(until)));
            }
            out.push(format!(
                "DO $pgherd$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {}) \
                 THEN EXECUTE {}; END IF; END $pgherd$",
                quote_literal(name),
                quote_literal(&format!("CREATE ROLE {}{options}", quote_ident(name)))
            ));
        }
        for row in 0..members.rows.len() {
            let (role, member) = (members.text(row, 0).unwrap_or_default(), members.text(row, 1).unwrap_or_default());
            out.push(format!("GRANT {} TO {}", quote_ident(role), quote_ident(member)));
        }
        Ok(out)
    }

    pub(super) async fn node_id(&mut self, arguments: &Arguments) -> Result<i64> {
        let (host, port) = (arguments.need("nodename")?, arguments.need("nodeport")?);
        let sql = format!(
            "SELECT nodeid FROM pgherd.pg_dist_node WHERE nodename = {} AND nodeport = {}::int4",
            quote_literal(host),
            quote_literal(port)
        );
        let result = self.ask_coordinator(&sql).await?;
        result
            .text(0, 0)
            .and_then(|t| t.parse().ok())
            .ok_or_else(|| Failure::new("42704", format!("node at \"{host}:{port}\" does not exist")))
    }

    pub(super) async fn remove_node(&mut self, arguments: &Arguments) -> Result<()> {
        self.require_superuser().await?;
        let id = self.node_id(arguments).await?;
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let state = self.cluster_state().await?;
        let Some(node) = state.nodes.iter().find(|n| i64::from(n.id) == id) else { return Ok(()) };
        let holds = state.tables.iter().find(|t| !t.is_reference() && t.shards().iter().any(|s| s.group == node.group));
        if let Some(table) = holds {
            return Err(Failure::new(
                "55000",
                "cannot remove or disable the node because it contains the only shard placement",
            )
            .detail(format!("Table \"{}\" has shards on {}:{}.", table.name, node.host, node.port))
            .hint("Undistribute the table, or move its shards to other nodes first."));
        }
        let sql = format!(
            "DELETE FROM pgherd.pg_dist_placement WHERE groupid = {}; DELETE FROM pgherd.pg_dist_node WHERE nodeid = {id}",
            node.group
        );
        self.run_quiet(COORDINATOR_GROUP, &sql).await?;
        self.changed_catalog_in_block().await
    }

    pub(super) async fn set_coordinator_host(&mut self, arguments: &Arguments) -> Result<()> {
        self.require_superuser().await?;
        let host = arguments.need("host")?;
        let port: u16 = arguments.number("port")?.unwrap_or(self.thread.shared.config.coordinator.port);
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        let host = quote_literal(host);
        let sql = format!(
            "UPDATE pgherd.pg_dist_node SET nodename = {host}, nodeport = {port} WHERE groupid = 0; \
             SELECT pgherd.register_node({host}, {port}, 0)"
        );
        self.run_quiet(COORDINATOR_GROUP, &sql).await?;
        self.changed_catalog_in_block().await
    }
}

/// CREATE DATABASE on a server that lacks it.
pub async fn create_database_on(target: &pgherd_backend::Target, database: &str) -> Result<()> {
    let mut connection = connect(target).await?;
    let result = connection.query(&format!("CREATE DATABASE {}", quote_ident(database))).await;
    connection.close().await;
    match result {
        Ok(_) => Ok(()),
        // Somebody else was faster.
        Err(error) if error.to_fields().sqlstate() == "42P04" => Ok(()),
        Err(error) => Err(error.into()),
    }
}
