//! CREATE, DROP and ALTER DATABASE, and defaults of roles: on every node, step by step, since PostgreSQL allows no
//! transaction around the first two. A step that was done already is not an error when the statement is repeated.

use pgherd_backend::connect;
use pgherd_catalog::{COORDINATOR_GROUP, Node};
use pgherd_sql::{SetInfo, StatementKind};

use super::{Call, Completion};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{self, quote_ident, quote_literal};
use crate::transaction::Block;

impl Session {
    pub(super) async fn run_database(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        match kind {
            StatementKind::CreateDatabase { name } => self.create_database(call, name).await,
            StatementKind::DropDatabase { name, .. } => self.drop_database(call, name).await,
            StatementKind::AlterDatabase { set, .. } | StatementKind::AlterRoleSet { set, .. } => {
                self.alter_defaults(call, set.as_ref()).await
            }
            _ => Err(Failure::new("XX000", "not a database statement")),
        }
    }

    async fn create_database(&mut self, call: &Call<'_>, name: &str) -> Result<Completion> {
        if self.txn.block != Block::None {
            return Err(Failure::new("25001", "CREATE DATABASE cannot run inside a transaction block"));
        }
        let text = call.prepared.text();
        let completion = self.run_on_coordinator(call, text, true).await?;
        let nodes = self.worker_nodes();
        let shared = self.thread.shared.clone();
        let owner = self.user.clone();
        for node in &nodes {
            let made = async {
                // As the router's own account: the database is the client's in name.
                let mut connection = connect(&shared.own_target_on(node, &self.db.name)).await?;
                let there = connection
                    .query(&format!("SELECT FROM pg_catalog.pg_database WHERE datname = {}", quote_literal(name)))
                    .await?;
                if there.rows.is_empty() {
                    connection.query(text).await?;
                    let sql = format!("ALTER DATABASE {} OWNER TO {}", quote_ident(name), quote_ident(&owner));
                    if !text.to_ascii_lowercase().contains("owner") {
                        connection.query(&sql).await?;
                    }
                }
                connection.close().await;
                Ok::<_, pgherd_backend::BackendError>(())
            };
            if let Err(error) = made.await {
                let _ = self.run_quiet(COORDINATOR_GROUP, &format!("DROP DATABASE IF EXISTS {}", quote_ident(name))).await;
                return Err(Failure::from(error).detail(format!("Node {}:{}.", node.host, node.port)));
            }
        }
        // Metadata of its own, with the same nodes.
        crate::database::open(&shared, name).await?;
        let own = self.db.clone();
        for node in &nodes {
            let mut connection = connect(&shared.own_target_on(node, name)).await?;
            connection.query(&pgherd_control::schema::worker_schema_sql()).await?;
            connection.close().await;
        }
        drop(own);
        Ok(completion)
    }

    async fn drop_database(&mut self, call: &Call<'_>, name: &str) -> Result<Completion> {
        if self.txn.block != Block::None {
            return Err(Failure::new("25001", "DROP DATABASE cannot run inside a transaction block"));
        }
        let shared = self.thread.shared.clone();
        // Our own connections must not keep it alive.
        let known = shared.databases.lock().await.remove(name);
        if let Some(database) = &known {
            database.stop();
        }
        shared.forget_connections();
        self.thread.pool();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let mut result = self.run_on_coordinator(call, call.prepared.text(), true).await;
        // Idle connections of other threads go when they next look; they are few and soon gone.
        for _ in 0..100 {
            match &result {
                Err(failure) if failure.sqlstate() == "55006" && self.only_ours_left(name).await? => {
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    result = self.run_on_coordinator(call, call.prepared.text(), true).await;
                }
                _ => break,
            }
        }
        let completion = result?;
        for node in self.worker_nodes() {
            let mut connection = connect(&shared.own_target_on(&node, &self.db.name)).await?;
            let dropped = connection.query(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote_ident(name))).await;
            connection.close().await;
            dropped?;
        }
        Ok(completion)
    }

    /// Only connections of this router's pools hold the database: they are ended.
    async fn only_ours_left(&mut self, name: &str) -> Result<bool> {
        let mut own = connect(&self.thread.shared.own_target(&self.db.name)).await?;
        let result = own
            .query(&format!(
                "SELECT pg_catalog.count(*) FILTER (WHERE application_name NOT LIKE 'pgherd%'), \
                        pg_catalog.count(pg_catalog.pg_terminate_backend(pid)) FILTER (WHERE application_name LIKE 'pgherd%' AND state = 'idle') \
                 FROM pg_catalog.pg_stat_activity WHERE datname = {} AND backend_type = 'client backend'",
                quote_literal(name)
            ))
            .await;
        own.close().await;
        Ok(result?.text(0, 0) == Some("0"))
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
        let catalog = self.catalog();
        catalog.nodes.iter().filter(|n| n.group != COORDINATOR_GROUP && n.is_active).cloned().collect()
    }
}
