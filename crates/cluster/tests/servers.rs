//! Embedded servers on real PostgreSQL: every installed version, and the downloaded one unless
//! `PGHERD_TEST_OFFLINE` is set. Each test has its own directory and ports, and stops what it started.
#![allow(clippy::unwrap_used)]

use pgherd_cluster::embedded::{Auth, Cluster, ClusterSpec, ClusterState, PgBin, Server, ServerSpec, StopMode};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);

/// A directory that is removed at the end, with every server in it stopped, also when the test fails.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("pgherd-servers-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let mut dirs = vec![self.0.clone()];
        while let Some(dir) = dirs.pop() {
            if let Ok(Some(mut server)) = Server::attach(&dir, "postgres") {
                server.stop(StopMode::Immediate, WAIT);
            }
            dirs.extend(
                std::fs::read_dir(&dir)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .filter(|entry| entry.path().is_dir() && entry.file_name() != "data")
                    .map(|entry| entry.path()),
            );
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Every PostgreSQL that can be had here.
fn all_pg() -> Vec<PgBin> {
    let mut found: Vec<PgBin> = (15..=18)
        .filter_map(|major| PgBin::from_dir(Path::new(&format!("/usr/lib/postgresql/{major}/bin"))).ok())
        .collect();
    if std::env::var_os("PGHERD_TEST_OFFLINE").is_none() {
        found.push(downloaded());
    }
    assert!(!found.is_empty(), "no PostgreSQL is installed and PGHERD_TEST_OFFLINE forbids to download one");
    found
}

fn downloaded() -> PgBin {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(PgBin::obtain(None)).unwrap()
}

fn any_pg() -> PgBin {
    PgBin::installed().unwrap_or_else(downloaded)
}

fn quiet(_: &str) {}

fn fast(spec: ServerSpec) -> ServerSpec {
    spec.setting("fsync", "off").setting("shared_buffers", "16MB").setting("max_connections", "20")
}

/// One row, one column, as text.
fn query(url: &str, password: Option<&str>, sql: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config: tokio_postgres::Config = url.parse().unwrap();
        if let Some(password) = password {
            config.password(password);
        }
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.map_err(|error| error.to_string())?;
        let connection = tokio::spawn(connection);
        let messages = client.simple_query(sql).await.map_err(|error| error.to_string())?;
        drop(client);
        let _ = connection.await;
        let row = messages.into_iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        Ok(row.unwrap_or_default())
    })
}

#[test]
fn a_server_starts_is_adopted_and_keeps_its_data() {
    for pg in all_pg() {
        let scratch = Scratch::new(&format!("life-{}", pg.version));
        let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap());
        let mut server = Server::start(&pg, &spec, &quiet).unwrap();
        assert!(server.is_running() && !server.adopted);
        let url = server.url("postgres");
        query(&url, None, "CREATE TABLE t AS SELECT 42 AS x").unwrap();
        assert_eq!(query(&url, None, "SHOW max_prepared_transactions").unwrap(), "200");
        assert_eq!(query(&url, None, "SHOW server_encoding").unwrap(), "UTF8");
        assert_eq!(query(&url, None, "SHOW fsync").unwrap(), "off");
        assert!(query(&url, None, "SELECT version()").unwrap().contains(&format!("PostgreSQL {}", pg.version)));
        assert_eq!(
            query(&url, None, "SELECT count(*) FROM pg_available_extensions WHERE name = 'postgres_fdw'").unwrap(),
            "1"
        );

        let again = Server::start(&pg, &spec, &quiet).unwrap();
        assert!(again.adopted);
        assert_eq!((again.pid(), again.port), (server.pid(), server.port));

        assert!(server.stop(StopMode::Fast, WAIT));
        assert!(!server.is_running());
        assert!(Server::attach(&spec.dir, "postgres").unwrap().is_none());

        let resumed = Server::start(&pg, &ServerSpec { port: server.port, ..spec }, &quiet).unwrap();
        assert_eq!(resumed.port, server.port);
        assert_eq!(query(&resumed.url("postgres"), None, "SELECT x FROM t").unwrap(), "42");
    }
}

#[test]
fn a_killed_server_starts_again_with_what_was_committed() {
    for pg in all_pg() {
        let scratch = Scratch::new(&format!("kill-{}", pg.version));
        let spec = ServerSpec::new(scratch.0.join("one")).unwrap();
        let mut server = Server::start(&pg, &spec, &quiet).unwrap();
        query(&server.url("postgres"), None, "CREATE TABLE t AS SELECT 7 AS x").unwrap();
        server.kill();
        assert!(!server.is_running());
        let again = Server::start(&pg, &ServerSpec { port: server.port, ..spec }, &quiet).unwrap();
        assert_eq!(query(&again.url("postgres"), None, "SELECT x FROM t").unwrap(), "7");
    }
}

#[test]
fn a_pid_file_that_names_somebody_else_is_stale() {
    let pg = any_pg();
    let scratch = Scratch::new("stale");
    let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap());
    let mut server = Server::start(&pg, &spec, &quiet).unwrap();
    let pid_file = server.data_dir().join("postmaster.pid");
    let text = std::fs::read_to_string(&pid_file).unwrap();
    assert!(server.stop(StopMode::Fast, WAIT));
    // As after a restart of the machine: the number now belongs to another process.
    let stranger = std::process::id().to_string();
    std::fs::write(&pid_file, text.replacen(&server.pid().to_string(), &stranger, 1)).unwrap();
    assert!(Server::attach(&spec.dir, "postgres").unwrap().is_none());
    assert!(Server::start(&pg, &spec, &quiet).unwrap().is_running());
}

#[test]
fn what_a_killed_initdb_left_is_removed() {
    let pg = any_pg();
    let scratch = Scratch::new("half");
    let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap());
    std::fs::create_dir_all(spec.dir.join(".half-made-0123/base")).unwrap();
    std::fs::write(spec.dir.join(".half-made-0123/PG_VERSION"), "15\n").unwrap();
    let server = Server::start(&pg, &spec, &quiet).unwrap();
    assert!(server.is_running());
    assert!(!spec.dir.join(".half-made-0123").exists());
}

#[test]
fn a_port_that_was_taken_is_replaced_or_named() {
    let pg = any_pg();
    let scratch = Scratch::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let spec = ServerSpec { port, port_may_change: false, ..fast(ServerSpec::new(scratch.0.join("one")).unwrap()) };
    let error = Server::start(&pg, &spec, &quiet).unwrap_err();
    assert_eq!(error.message, format!("port {port} is in use by another process"));
    let server = Server::start(&pg, &ServerSpec { port_may_change: true, ..spec }, &quiet).unwrap();
    assert_ne!(server.port, port);
    assert!(server.is_running());
}

#[test]
fn a_server_that_does_not_start_is_explained_with_its_log() {
    let pg = any_pg();
    let scratch = Scratch::new("broken");
    let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap()).setting("no_such_setting", "1");
    let error = Server::start(&pg, &spec, &quiet).unwrap_err();
    assert!(error.message.ends_with("did not start"), "{}", error.message);
    let log = error.log.unwrap();
    assert!(log.path.ends_with("one/server.log"));
    assert!(log.lines.iter().any(|line| line.contains("no_such_setting")), "{:?}", log.lines);
    // And it starts when the cause is gone.
    let spec = ServerSpec { settings: Vec::new(), ..spec };
    assert!(Server::start(&pg, &fast(spec), &quiet).unwrap().is_running());
}

#[test]
fn a_directory_of_something_else_or_of_another_version_is_refused() {
    let pg = any_pg();
    let scratch = Scratch::new("foreign");
    let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap());
    std::fs::create_dir_all(spec.dir.join("data/letters")).unwrap();
    let error = Server::start(&pg, &spec, &quiet).unwrap_err();
    assert!(error.message.ends_with("one/data\" exists and is not a data directory of PostgreSQL"), "{error}");
    std::fs::write(spec.dir.join("data/PG_VERSION"), "12\n").unwrap();
    let error = Server::start(&pg, &spec, &quiet).unwrap_err();
    assert!(error.message.contains("was made by PostgreSQL 12 and cannot be used with"), "{error}");
    assert!(spec.dir.join("data/letters").exists());
}

#[test]
fn a_cluster_starts_resumes_grows_and_is_deleted() {
    let pg = any_pg();
    let scratch = Scratch::new("cluster");
    let dir = scratch.0.join("herd");
    let spec = |workers| ClusterSpec {
        dir: dir.clone(),
        workers: Some(workers),
        settings: vec![("fsync".to_owned(), "off".to_owned()), ("shared_buffers".to_owned(), "16MB".to_owned())],
        ..ClusterSpec::default()
    };
    let open = |workers| Cluster::open_or_create(&spec(workers), |_| Ok(pg.clone()), &quiet).unwrap().0;

    let mut cluster = open(1);
    let servers = cluster.start_servers(&pg, &quiet).unwrap();
    assert_eq!(servers.len(), 2);
    let url = cluster.state.url(cluster.state.nodes[1].port, true);
    query(&url, None, "CREATE TABLE t AS SELECT 'kept' AS x").unwrap();
    drop(cluster);

    // Killed all at once; one more worker.
    for mut server in servers {
        server.kill();
    }
    let mut cluster = open(2);
    let servers = cluster.start_servers(&pg, &quiet).unwrap();
    assert_eq!(servers.len(), 3);
    assert_eq!(query(&cluster.state.url(servers[1].port, true), None, "SELECT x FROM t").unwrap(), "kept");
    assert!(ClusterState::read(&dir).unwrap().unwrap().nodes.iter().all(|node| node.made && node.port != 0));
    let status = cluster.state.status(&cluster.dir).unwrap();
    assert!(status.iter().all(|node| node.pid.is_some()));

    // Nothing that runs is deleted.
    assert_eq!(cluster.stop_servers(WAIT, WAIT, &quiet).unwrap(), 3);
    assert!(cluster.state.status(&cluster.dir).unwrap().iter().all(|node| node.pid.is_none()));
    cluster.delete().unwrap();
    assert!(!dir.exists());
}

#[test]
fn a_lost_data_directory_is_not_replaced_by_an_empty_one() {
    let pg = any_pg();
    let scratch = Scratch::new("lost");
    let dir = scratch.0.join("herd");
    let spec = ClusterSpec { dir: dir.clone(), workers: Some(1), ..ClusterSpec::default() };
    let (mut cluster, _) = Cluster::open_or_create(&spec, |_| Ok(pg.clone()), &quiet).unwrap();
    cluster.start_servers(&pg, &quiet).unwrap();
    cluster.stop_servers(WAIT, WAIT, &quiet).unwrap();
    drop(cluster);
    std::fs::remove_dir_all(dir.join("worker-1/data")).unwrap();
    let (mut cluster, _) = Cluster::open_or_create(&spec, |_| Ok(pg.clone()), &quiet).unwrap();
    let error = cluster.start_servers(&pg, &quiet).unwrap_err();
    assert!(error.message.ends_with("worker-1/data\" of worker-1 is gone"), "{error}");
}

#[test]
fn a_deletion_that_was_killed_goes_on() {
    let pg = any_pg();
    let scratch = Scratch::new("deleting");
    let dir = scratch.0.join("herd");
    let spec = ClusterSpec { dir: dir.clone(), workers: Some(1), ..ClusterSpec::default() };
    drop(Cluster::open_or_create(&spec, |_| Ok(pg.clone()), &quiet).unwrap());
    std::fs::create_dir_all(dir.join("worker-1/data")).unwrap();
    std::fs::rename(dir.join("cluster.json"), dir.join("cluster.json.deleting")).unwrap();
    assert!(Cluster::open(&dir, &quiet).unwrap().is_none());
    assert!(!dir.join("worker-1").exists());
    let (cluster, _) = Cluster::open_or_create(&spec, |_| Ok(pg.clone()), &quiet).unwrap();
    assert!(!cluster.state.nodes[1].made);
}

#[test]
fn a_scram_cluster_has_one_verifier_and_wants_the_password() {
    let pg = any_pg();
    let scratch = Scratch::new("scram");
    let spec = ClusterSpec {
        dir: scratch.0.join("herd"),
        workers: Some(1),
        auth: Some(Auth::ScramSha256),
        ..ClusterSpec::default()
    };
    let (mut cluster, _) = Cluster::open_or_create(&spec, |_| Ok(pg.clone()), &quiet).unwrap();
    let servers = cluster.start_servers(&pg, &quiet).unwrap();
    let mut verifiers = Vec::new();
    for server in &servers {
        let url = cluster.state.url(server.port, true);
        let sql = "SELECT rolpassword FROM pg_authid WHERE rolname = 'postgres'";
        verifiers.push(query(&url, None, sql).unwrap());
        assert!(query(&server.url("postgres"), Some("wrong"), "SELECT 1").is_err());
    }
    assert!(verifiers[0].starts_with("SCRAM-SHA-256$4096:"));
    assert_eq!(verifiers[0], verifiers[1]);
    let state = std::fs::metadata(cluster.dir.join("cluster.json")).unwrap();
    assert_eq!(state.mode() & 0o777, 0o600);
}

/// A process that hears no signal: PostgreSQL's own loops that check for none are as deaf.
#[test]
fn a_server_that_does_not_stop_fast_is_stopped_all_the_same_and_that_is_said() {
    let scratch = Scratch::new("deaf");
    let spec = fast(ServerSpec::new(scratch.0.join("one")).unwrap());
    let mut server = Server::start(&any_pg(), &spec, &quiet).unwrap();
    let url = server.url("postgres");
    query(&url, None, "CREATE TABLE t AS SELECT 42 AS x").unwrap();
    let busy = std::thread::spawn({
        let url = url.clone();
        move || query(&url, None, "SELECT pg_sleep(600)")
    });
    let sleeping = "SELECT max(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
    let pid = loop {
        match query(&url, None, sleeping).unwrap().parse() {
            Ok(pid) => break rustix::process::Pid::from_raw(pid).unwrap(),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let said = std::sync::Mutex::new(Vec::new());
    let tell = |text: &str| said.lock().unwrap().push(text.to_owned());
    server.stop_surely(Duration::from_millis(100), Duration::from_secs(1), &tell).unwrap();
    assert!(!server.is_running());
    assert!(busy.join().unwrap().is_err());
    let said = said.into_inner().unwrap();
    assert!(said.len() == 1 && said[0].contains("within 1 s") && said[0].contains("immediately"), "{said:?}");
    // What was committed is there again.
    let mut server = Server::start(&any_pg(), &spec, &quiet).unwrap();
    assert_eq!(query(&server.url("postgres"), None, "SELECT x FROM t").unwrap(), "42");
    assert!(server.stop(StopMode::Fast, WAIT));
}
