//! CREATE, DROP and ALTER DATABASE, and defaults of roles: on every node, step by step, since PostgreSQL allows no
//! transaction around the first two. A step that was done already is not an error when the statement is repeated.

use pgherd_backend::{Target, connect};
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
                let _ =
                    self.run_quiet(COORDINATOR_GROUP, &format!("DROP DATABASE IF EXISTS {}", quote_ident(name))).await;
                return Err(Failure::from(error).detail(format!("Node {}:{}.", node.host, node.port)));
            }
        }
        // Metadata of its own, with the same nodes.
        crate::database::open(&shared, name).await?;
        for node in &nodes {
            let mut connection = connect(&shared.own_target_on(node, name)).await?;
            connection.query(&pgherd_control::schema::worker_schema_sql()).await?;
            connection.close().await;
        }
        Ok(completion)
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

    /// Before a database is dropped or renamed: PostgreSQL refuses while somebody is connected; our own idle
    /// connections are nobody.
    pub(super) async fn leave_database(&mut self, name: &str) -> Result<()> {
        let shared = self.thread.shared.clone();
        let known = shared.databases.lock().await.get(name).cloned();
        let Some(database) = known.filter(|_| name != self.db.name) else { return Ok(()) };
        let sessions = database.sessions();
        if sessions > 0 {
            let detail = match sessions {
                1 => "There is 1 other session using the database.".to_owned(),
                n => format!("There are {n} other sessions using the database."),
            };
            return Err(
                Failure::new("55006", format!("database \"{name}\" is being accessed by other users")).detail(detail)
            );
        }
        shared.databases.lock().await.remove(name);
        database.stop();
        shared.forget_connections();
        self.end_idle_connections(&shared.own_target(&self.db.name), name).await?;
        for node in self.worker_nodes() {
            self.end_idle_connections(&shared.own_target_on(&node, &self.db.name), name).await?;
        }
        Ok(())
    }

    /// Ends the connections to a database that no session of this router uses any more, and waits until they are gone.
    async fn end_idle_connections(&mut self, server: &Target, name: &str) -> Result<()> {
        let mut own = connect(server).await?;
        let sql = format!(
            "SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(pid)) FROM pg_catalog.pg_stat_activity \
             WHERE datname = {} AND backend_type = 'client backend' AND state = 'idle'",
            quote_literal(name)
        );
        let mut result = Ok(());
        for _ in 0..100 {
            match own.query(&sql).await {
                Ok(found) if found.text(0, 0) == Some("0") => break,
                Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
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
        let catalog = self.catalog();
        catalog.nodes.iter().filter(|n| n.group != COORDINATOR_GROUP && n.is_active).cloned().collect()
    }
}
