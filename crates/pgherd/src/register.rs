//! Tells the metadata which nodes there are: through the router, in the SQL that a user would run, so that it can be
//! repeated. Only when a server had to take another port are the tables changed directly, while no router runs.

use crate::connect::Session;
use crate::failure::Failure;
use pgherd_cluster::embedded::{Cluster, ClusterState, LogExcerpt, NodeState, RouterProcess};

const HOST: &str = "127.0.0.1";

/// The nodes whose port is not the one that the metadata has, in words; none if all agree.
pub fn moved_nodes(state: &ClusterState) -> Option<String> {
    let moved: Vec<String> =
        moved(state).map(|(node, registered)| format!("{} from {registered} to {}", node.name, node.port)).collect();
    (!moved.is_empty()).then(|| moved.join(", "))
}

fn moved(state: &ClusterState) -> impl Iterator<Item = (&NodeState, u16)> {
    state.nodes.iter().filter_map(|node| Some((node, node.registered_port.filter(|port| *port != node.port)?)))
}

/// Writes the new ports into the metadata of every database. No router may run. If this is killed after the commit, the
/// next time finds no row with the old port and changes nothing; no port is ever given to another node.
pub fn move_nodes(cluster: &mut Cluster) -> Result<(), Failure> {
    for database in databases(&cluster.state)? {
        let updates: String = moved(&cluster.state)
            .map(|(node, registered)| {
                format!(
                    "UPDATE pgherd.pg_dist_node SET nodeport = {} WHERE nodename = '{HOST}' AND nodeport = {registered};",
                    node.port
                )
            })
            .collect();
        database.session.rows(&format!("BEGIN; {updates} COMMIT"))?;
    }
    for node in &mut cluster.state.nodes {
        node.registered_port = node.registered_port.map(|_| node.port);
    }
    Ok(cluster.save()?)
}

/// A database that has nodes of its own, and a connection to it that no router serves.
struct Database {
    name: String,
    session: Session,
}

fn databases(state: &ClusterState) -> Result<Vec<Database>, Failure> {
    let url = state.url(state.coordinator().port, true);
    let names = Session::connect(&url, "the coordinator")?
        .rows("SELECT datname FROM pg_catalog.pg_database WHERE datallowconn")?;
    let mut databases = Vec::new();
    for name in names.into_iter().flatten() {
        let session = Session::connect(&in_database(&url, &name), "the coordinator")?;
        if session.rows("SELECT pg_catalog.to_regclass('pgherd.pg_dist_node')")? != [[""]] {
            databases.push(Database { name, session });
        }
    }
    Ok(databases)
}

fn in_database(url: &str, name: &str) -> String {
    format!("{url}?dbname={}", percent_encoded(name))
}

/// Makes coordinator and workers known in every database, and the default number of shards.
pub fn register_nodes(cluster: &mut Cluster, router: &RouterProcess, progress: &dyn Fn(&str)) -> Result<(), Failure> {
    let url = cluster.state.url(router.ports[0], true);
    let with_log = |failure: Failure| failure.log(LogExcerpt::read(&router.log_file, 0));
    let session = Session::connect(&url, "the router").map_err(with_log)?;
    let known = known_nodes(&session)?;
    for index in 0..cluster.state.nodes.len() {
        let node = &cluster.state.nodes[index];
        let port = node.port;
        if !known.contains(&(HOST.to_owned(), port.to_string())) {
            session.rows(&registration(index, port))?;
            progress(&format!("{}: registered", node.name));
        }
        if node.registered_port != Some(port) {
            cluster.state.nodes[index].registered_port = Some(port);
            cluster.save()?;
        }
    }
    for database in databases(&cluster.state)? {
        let known = known_nodes(&database.session)?;
        let lacking = cluster.state.nodes.iter().enumerate();
        let lacking = lacking.filter(|(_, node)| !known.contains(&(HOST.to_owned(), node.port.to_string())));
        let mut through_router = None;
        for (index, node) in lacking {
            let there = match &through_router {
                Some(session) => session,
                None => {
                    let session = Session::connect(&in_database(&url, &database.name), "the router");
                    through_router.insert(session.map_err(with_log)?)
                }
            };
            there.rows(&registration(index, node.port))?;
            progress(&format!("{}: registered in database {}", node.name, database.name));
        }
    }
    if let Some(count) = cluster.state.shard_count.filter(|_| !cluster.state.shard_count_applied) {
        session.rows(&format!("ALTER SYSTEM SET citus.shard_count = {count}"))?;
        session.rows("SELECT pg_reload_conf()")?;
        cluster.state.shard_count_applied = true;
        cluster.save()?;
        progress(&format!("new distributed tables get {count} shards"));
    }
    Ok(())
}

fn known_nodes(session: &Session) -> Result<Vec<(String, String)>, Failure> {
    let rows = session.rows("SELECT nodename, nodeport FROM pgherd.pg_dist_node")?;
    Ok(rows.into_iter().filter_map(|row| Some((row.first()?.clone(), row.get(1)?.clone()))).collect())
}

fn registration(index: usize, port: u16) -> String {
    let function = if index == 0 { "citus_set_coordinator_host" } else { "citus_add_node" };
    format!("SELECT {function}('{HOST}', {port})")
}

/// For a value in a URL's query.
fn percent_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_names_are_quoted_for_urls() {
        assert_eq!(percent_encoded("app_1"), "app_1");
        assert_eq!(percent_encoded("a b&ü"), "a%20b%26%C3%BC");
    }
}
