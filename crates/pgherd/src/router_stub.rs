//! Stands in for `pgherd_router` until it exists: passes every connection through to the coordinator.

use std::net::SocketAddr;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    Trust,
    ScramSha256,
}

#[derive(Debug, Clone)]
pub struct CoordinatorUrl {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub dbname: String,
}

#[derive(Debug, Clone)]
#[allow(dead_code)]
pub struct ServeConfig {
    pub coordinator: CoordinatorUrl,
    pub listen: Vec<SocketAddr>,
    pub auth: AuthMode,
    pub threads: usize,
    pub worker_password: Option<String>,
}

const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS pgherd;
CREATE TABLE IF NOT EXISTS pgherd.pg_dist_node (groupid serial, nodename text, nodeport int, UNIQUE (nodename, nodeport));
CREATE OR REPLACE VIEW public.pg_dist_node AS SELECT * FROM pgherd.pg_dist_node;
CREATE OR REPLACE FUNCTION citus_set_coordinator_host(text, int) RETURNS void LANGUAGE sql AS
'INSERT INTO pgherd.pg_dist_node VALUES (0, $1, $2)';
CREATE OR REPLACE FUNCTION citus_add_node(text, int) RETURNS int LANGUAGE sql AS
'INSERT INTO pgherd.pg_dist_node(nodename, nodeport) VALUES ($1, $2) RETURNING groupid';
CREATE OR REPLACE FUNCTION create_distributed_table(regclass, text) RETURNS void LANGUAGE sql AS 'SELECT NULL';";

pub fn init(url: &CoordinatorUrl) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let mut config = tokio_postgres::Config::new();
        config.host(&url.host).port(url.port).user(&url.user).dbname(&url.dbname);
        if let Some(password) = &url.password {
            config.password(password);
        }
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        client.batch_execute(SCHEMA).await.map_err(|e| format!("{e:?}"))
    })
}

pub fn serve(
    config: ServeConfig,
    listener_ready: impl FnOnce(Vec<SocketAddr>) + Send,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), String> {
    init(&config.coordinator)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(config.listen[0]).await.map_err(|e| e.to_string())?;
        listener_ready(vec![listener.local_addr().map_err(|e| e.to_string())?]);
        let clients = std::sync::Arc::new(());
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((mut client, _)) = accepted else { continue };
                    let to = (config.coordinator.host.clone(), config.coordinator.port);
                    let clients = clients.clone();
                    tokio::spawn(async move {
                        if let Ok(mut server) = tokio::net::TcpStream::connect(to).await {
                            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                        }
                        drop(clients);
                    });
                }
                _ = shutdown.changed() => break,
            }
        }
        while std::sync::Arc::strong_count(&clients) > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Ok(())
    })
}
