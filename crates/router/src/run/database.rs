//! CREATE, DROP and ALTER DATABASE, and defaults of roles: on every node, step by step, since PostgreSQL allows no
//! transaction around the first two. A step that was done already is not an error when the statement is repeated.

use std::time::Duration;

use pgherd_backend::{Target, connect};
use pgherd_catalog::{COORDINATOR_GROUP, Node, Snapshot};
use pgherd_sql::{SetInfo, StatementKind};

use super::{Call, Completion};
use crate::database::Database;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{self, quote_ident, quote_literal};
use crate::shared::Shared;
use crate::transaction::Block;

impl Session {
    pub(super) async fn run_database(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        match kind {
            StatementKind::CreateDatabase { name, template, has_owner } => {
                self.create_database(call, name, template.as_deref().unwrap_or("template1"), *has_owner).await
            }
            StatementKind::DropDatabase { name, .. } => self.drop_database(call, name).await,
            StatementKind::AlterDatabase { name, is_moved: true, .. } => {
                // Nobody may be in it, and no block around it. Workers have no tablespaces.
                if self.txn.block == Block::None {
                    self.leave_database(name).await?;
                }
                self.run_on_coordinator(call, call.prepared.text(), true).await
            }
            StatementKind::AlterDatabase { set, .. } | StatementKind::AlterRoleSet { set, .. } => {
                self.alter_defaults(call, set.as_ref()).await
            }
            _ => Err(Failure::new("XX000", "not a database statement")),
        }
    }

    async fn create_database(
        &mut self,
        call: &Call<'_>,
        name: &str,
        template: &str,
        has_owner: bool,
    ) -> Result<Completion> {
        if self.txn.block != Block::None {
            return Err(Failure::new("25001", "CREATE DATABASE cannot run inside a transaction block"));
        }
        let text = call.prepared.text();
        let shared = self.thread.shared.clone();
        let default = crate::database::open(&shared, &shared.config.coordinator.dbname).await?;
        // The new one gets the nodes of the default database, or those of its template.
        let mut nodes = self.worker_nodes();
        for node in workers_of(&default.snapshot()) {
            if !nodes.iter().any(|known| known.host == node.host && known.port == node.port) {
                nodes.push(node);
            }
        }
        self.leave_template(template, &nodes).await?;
        let completion = self.run_on_coordinator(call, text, true).await?;
        let owner = (!has_owner).then(|| self.user.clone());
        let made = async {
            for node in &nodes {
                let made = create_on_worker(&shared, node, name, text, owner.as_deref()).await;
                made.map_err(|failure| failure.detail(format!("Node {}:{}.", node.host, node.port)))?;
            }
            // Metadata of its own.
            crate::database::renew_nodes(&shared, name).await?;
            let database = crate::database::open(&shared, name).await?;
            for node in workers_of(&database.snapshot()) {
                if !nodes.iter().any(|known| known.host == node.host && known.port == node.port) {
                    create_on_worker(&shared, &node, name, text, owner.as_deref()).await?;
                }
                let mut connection = connect(&shared.own_target_on(&node, name)).await?;
                connection.query(&pgherd_control::schema::worker_schema_sql()).await?;
                connection.close().await;
            }
            Ok(())
        };
        if let Err(failure) = made.await {
            if let Some(database) = shared.databases.lock().await.remove(name) {
                database.stop();
            }
            let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote_ident(name));
            let _ = self.run_quiet(COORDINATOR_GROUP, &drop).await;
            return Err(failure);
        }
        Ok(completion)
    }

    /// Before a database is copied: PostgreSQL refuses while somebody else is connected to it, and our own idle
    /// connections are nobody. Clients that are in it through another router are PostgreSQL's to find.
    async fn leave_template(&mut self, template: &str, nodes: &[Node]) -> Result<()> {
        let shared = self.thread.shared.clone();
        let known = shared.databases.lock().await.get(template).cloned();
        let own = usize::from(template == self.db.name);
        let others = match &known {
            Some(database) => others_left(database, own).await,
            None => 0,
        };
        if others > 0 {
            let message = format!("source database \"{template}\" is being accessed by other users");
            return Err(Failure::new("55006", message).detail(other_sessions(others)));
        }
        let whose = if known.is_some() { Idle::All } else { Idle::Routers };
        if own == 0
            && let Some(database) = shared.databases.lock().await.remove(template)
        {
            database.stop();
        }
        if known.is_some() {
            shared.forget_connections();
        }
        self.end_idle_connections(&shared.own_target(&shared.config.coordinator.dbname), template, whose).await?;
        for node in nodes {
            self.end_idle_connections(&shared.own_target_on(node, "postgres"), template, whose).await?;
        }
        Ok(())
    }

    async fn drop_database(&mut self, call: &Call<'_>, name: &str) -> Result<Completion> {
        if self.txn.block != Block::None {
            return Err(Failure::new("25001", "DROP DATABASE cannot run inside a transaction block"));
        }
        self.leave_database(name).await?;
        let shared = self.thread.shared.clone();
        let completion = self.run_on_coordinator(call, call.prepared.text(), true).await?;
        for node in self.worker_nodes() {
            let mut connection = connect(&shared.own_target_on(&node, &self.db.name)).await?;
            let dropped =
                connection.query(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote_ident(name))).await;
            connection.close().await;
            dropped?;
        }
        Ok(completion)
    }

    /// Before a database is dropped, renamed or moved: PostgreSQL refuses while somebody is connected; our own idle
    /// connections are nobody.
    pub(super) async fn leave_database(&mut self, name: &str) -> Result<()> {
        let shared = self.thread.shared.clone();
        let known = shared.databases.lock().await.get(name).cloned();
        let Some(database) = known.filter(|_| name != self.db.name) else { return Ok(()) };
        let sessions = others_left(&database, 0).await;
        if sessions > 0 {
            let message = format!("database \"{name}\" is being accessed by other users");
            return Err(Failure::new("55006", message).detail(other_sessions(sessions)));
        }
        shared.databases.lock().await.remove(name);
        database.stop();
        shared.forget_connections();
        self.end_idle_connections(&shared.own_target(&self.db.name), name, Idle::All).await?;
        for node in self.worker_nodes() {
            self.end_idle_connections(&shared.own_target_on(&node, &self.db.name), name, Idle::All).await?;
        }
        Ok(())
    }

    /// Ends the connections to a database that no session of this router uses any more, and waits until they are gone.
    async fn end_idle_connections(&mut self, server: &Target, name: &str, whose: Idle) -> Result<()> {
        let mut own = connect(server).await?;
        let whose = match whose {
            Idle::All => "",
            Idle::Routers => " AND application_name IN ('pgherd router', 'pgherd lane')",
        };
        // One that was used a moment ago may be a client's that has come since.
        let sql = format!(
            "SELECT pg_catalog.count(*), pg_catalog.count(CASE WHEN state_change < pg_catalog.clock_timestamp() - \
             interval '0.3 s' THEN pg_catalog.pg_terminate_backend(pid) END) FROM pg_catalog.pg_stat_activity \
             WHERE datname = {} AND backend_type = 'client backend' AND state = 'idle'{whose}",
            quote_literal(name)
        );
        let mut result = Ok(());
        for _ in 0..100 {
            match own.query(&sql).await {
                Ok(found) if found.text(0, 0) == Some("0") => break,
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => {
                    result = Err(error.into());
                    break;
                }
            }
        }
        own.close().await;
        result
    }

    /// ALTER DATABASE and ALTER ROLE … SET: on every node, in one transaction; new connections see it.
    async fn alter_defaults(&mut self, call: &Call<'_>, set: Option<&SetInfo>) -> Result<Completion> {
        if let Some(set) = set {
            let value = set.values.join(", ");
            let verdict = settings::check_own(&set.name, (!set.is_default).then_some(value.as_str()))?;
            if verdict == settings::Verdict::NoEffect {
                self.notice(&format!("{} has no effect in pgherd", set.name));
            }
        }
        self.open_implicit_block();
        let completion = self.run_on_coordinator(call, call.prepared.text(), true).await?;
        let lists =
            self.catalog().worker_groups().into_iter().map(|g| (g, vec![call.prepared.text().to_owned()])).collect();
        self.run_ddl_on(lists).await?;
        self.txn.changed_defaults = true;
        Ok(completion)
    }

    fn worker_nodes(&self) -> Vec<Node> {
        workers_of(&self.catalog())
    }
}

/// Which idle connections to a database nobody misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// No session uses the database any more.
    All,
    /// What routers have for themselves.
    Routers,
}

fn workers_of(catalog: &Snapshot) -> Vec<Node> {
    catalog.nodes.iter().filter(|n| n.group != COORDINATOR_GROUP && n.is_active).cloned().collect()
}

/// How many sessions but `own` are in a database after the time that PostgreSQL gives those that are leaving it.
async fn others_left(database: &Database, own: usize) -> usize {
    for _ in 0..50 {
        if database.sessions() <= own {
            return 0;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    database.sessions().saturating_sub(own)
}

fn other_sessions(count: usize) -> String {
    match count {
        1 => "There is 1 other session using the database.".to_owned(),
        n => format!("There are {n} other sessions using the database."),
    }
}

/// As the router's own account: the database is the client's in name.
async fn create_on_worker(shared: &Shared, node: &Node, name: &str, create: &str, owner: Option<&str>) -> Result<()> {
    let mut connection = connect(&shared.own_target_on(node, "postgres")).await?;
    let there = format!("SELECT FROM pg_catalog.pg_database WHERE datname = {}", quote_literal(name));
    if connection.query(&there).await?.rows.is_empty() {
        connection.query(create).await?;
        if let Some(owner) = owner {
            let sql = format!("ALTER DATABASE {} OWNER TO {}", quote_ident(name), quote_ident(owner));
            connection.query(&sql).await?;
        }
    }
    connection.close().await;
    Ok(())
}
