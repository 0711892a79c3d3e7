//! `pgherd up`, `status`, `psql` and `down` as a user runs them: twice, killed in the middle, with ports taken, as
//! root. Needs psql. PostgreSQL is the installed one, or a downloaded one where none is installed.
#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use pgherd_cluster::embedded::ProcessId;

/// A cluster's directory; the cluster is stopped and deleted at the end, also when the test fails.
struct Herd {
    dir: PathBuf,
    options: Vec<String>,
}

impl Herd {
    fn new(name: &str) -> Herd {
        let dir = std::env::temp_dir().join(format!("pgherd-up-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Herd { dir, options: pg_options() }
    }

    fn command(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgherd"));
        command.arg(verb).arg("--dir").arg(&self.dir).args(arguments);
        for name in ["PGHERD_DIR", "PGHERD_COORDINATOR", "PGHERD_LOG"] {
            command.env_remove(name);
        }
        command
    }

    fn up_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("up", &["--workers", "2"]);
        command.args(&self.options).args(arguments);
        command
    }

    /// Runs `up`; the URL that it prints.
    fn up(&self, arguments: &[&str]) -> String {
        let output = self.up_command(arguments).output().unwrap();
        assert!(output.status.success(), "pgherd up failed:\n{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Runs `up`, which must fail; what it says.
    fn up_fails(&self, arguments: &[&str]) -> String {
        let output = self.up_command(arguments).output().unwrap();
        assert!(!output.status.success(), "pgherd up should have failed");
        assert!(output.stdout.is_empty());
        stderr(&output)
    }

    /// What `pgherd psql` prints for one statement.
    fn sql(&self, statement: &str) -> String {
        self.sql_in("postgres", statement)
    }

    fn sql_in(&self, database: &str, statement: &str) -> String {
        let output =
            self.command("psql", &["-XAtq", "-c", &format!("\\connect {database}"), "-c", statement]).output().unwrap();
        assert!(output.status.success(), "{statement}:\n{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn down(&self, arguments: &[&str]) {
        let output = self.command("down", arguments).output().unwrap();
        assert!(output.status.success(), "pgherd down failed:\n{}", stderr(&output));
    }

    fn state(&self) -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(self.dir.join("cluster.json")).unwrap()).unwrap()
    }

    /// The processes of the cluster by role, from `pgherd status`.
    fn pids(&self) -> Vec<(String, Option<u32>)> {
        let output = self.command("status", &[]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .skip(1)
            .take_while(|line| !line.starts_with("PostgreSQL"))
            .map(|line| {
                let cells: Vec<&str> = line.split_whitespace().collect();
                (cells[0].to_owned(), cells[2].parse().ok())
            })
            .collect()
    }

    fn pid(&self, role: &str) -> u32 {
        self.pids().into_iter().find(|(name, _)| name == role).unwrap().1.unwrap()
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        let _ = self.command("down", &["--delete", "--wait", "0"]).output();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn pg_options() -> Vec<String> {
    let installed = (15..=18).rev().map(|major| format!("/usr/lib/postgresql/{major}/bin"));
    match installed.into_iter().find(|dir| Path::new(dir).join("postgres").is_file()) {
        Some(dir) => vec!["--pg-bin".to_owned(), dir],
        None => Vec::new(),
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Ends a process and sees its end, for which the signal does not wait.
fn kill(pid: u32) {
    let process = ProcessId::of(pid).unwrap();
    assert!(process.signal(rustix::process::Signal::KILL));
    assert!(process.wait_gone(Duration::from_secs(10)));
}

/// A port that nobody listens on at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const NODES: &str = "SELECT string_agg(nodeport::text, ',' ORDER BY groupid) FROM pg_dist_node";

fn ports(herd: &Herd) -> String {
    let state = herd.state();
    let ports: Vec<String> = state["nodes"].as_array().unwrap().iter().map(|node| node["port"].to_string()).collect();
    ports.join(",")
}

#[test]
fn a_cluster_starts_stops_and_goes_on_with_its_data() {
    life(&Herd::new("life"));
}

#[test]
fn the_downloaded_postgresql_does_the_same() {
    if std::env::var_os("PGHERD_TEST_OFFLINE").is_some() {
        eprintln!("skipped: PGHERD_TEST_OFFLINE forbids downloads");
        return;
    }
    let mut herd = Herd::new("life-downloaded");
    herd.options.clear();
    life(&herd);
}

fn life(herd: &Herd) {
    let port = free_port().to_string();
    let url = herd.up(&["--port", &port, "--shard-count", "6", "--set", "work_mem=5MB", "--set", "TimeZone=UTC"]);
    assert_eq!(url, format!("postgres://postgres@127.0.0.1:{port}/postgres"));
    assert_eq!(herd.sql(NODES), ports(herd));
    herd.sql("CREATE TABLE kept AS SELECT 42 AS x");
    let pids = herd.pids();
    assert_eq!(
        pids.iter().map(|(role, _)| role.as_str()).collect::<Vec<_>>(),
        ["router", "coordinator", "worker-1", "worker-2"]
    );
    assert!(pids.iter().all(|(_, pid)| pid.is_some()));

    // A second time changes nothing.
    assert_eq!(herd.up(&[]), url);
    assert_eq!(herd.pids(), pids);

    // What no server takes is not kept, whether the cluster runs or not.
    for wrong in ["shared_bufers=1GB", "work_mem=much", "max_connections=0"] {
        let said = herd.up_fails(&["--set", "work_mem=6MB", "--set", wrong]);
        assert!(said.contains("the servers do not take --set") && said.contains(&wrong[..7]), "{said}");
    }
    herd.down(&[]);
    assert!(herd.pids().iter().all(|(_, pid)| pid.is_none()));
    assert!(!herd.command("psql", &["-c", "SELECT 1"]).output().unwrap().status.success());

    assert_eq!(herd.up(&["--set", "maintenance_work_mem=9MB"]), url);
    assert_eq!(herd.sql("SHOW maintenance_work_mem"), "9MB");
    herd.down(&[]);
    assert_eq!(herd.up(&["--unset", "maintenance_work_mem"]), url);
    assert_ne!(herd.sql("SHOW maintenance_work_mem"), "9MB");
    assert_eq!(herd.sql("SELECT x FROM kept"), "42");
    assert_eq!(herd.sql(NODES), ports(herd));

    // An older program's schema is brought up to date, on the workers too.
    herd.sql("CREATE TABLE spread (k int PRIMARY KEY)");
    herd.sql("SELECT create_distributed_table('spread', 'k'); INSERT INTO spread SELECT generate_series(1, 20)");
    let older = "UPDATE pgherd.schema_version SET version = 1; DROP TABLE pgherd.leaf CASCADE; DROP TABLE pgherd.secret; \
                 DROP FUNCTION IF EXISTS pgherd.open_cursor, pgherd.check_pass(text, text, text)";
    let aged = format!("SELECT count(*) FROM run_command_on_workers($$DO 'BEGIN {older}; END'$$) WHERE success");
    assert_eq!(herd.sql(&aged), "2");
    // The router does not hear of it.
    let alone = "PERFORM set_config('pgherd.routed', '', true)";
    herd.sql(&format!("DO $$BEGIN {alone}; {older}; END$$"));
    herd.down(&[]);
    assert_eq!(herd.up(&[]), url);
    assert_eq!(herd.sql("SELECT sum(k) FROM spread WHERE k IN (SELECT g FROM generate_series(1, 3) g)"), "6");
    let versions =
        "SELECT string_agg(result, ' ') FROM run_command_on_workers('SELECT max(version) FROM pgherd.schema_version')";
    let here = herd.sql("SELECT max(version) FROM pgherd.schema_version");
    assert_eq!(herd.sql(versions), format!("{here} {here}"));

    let work_mem = "SELECT current_setting('work_mem'), success, result FROM run_command_on_workers('SHOW work_mem')";
    assert_eq!(herd.sql(work_mem), "5MB|t|5MB\n5MB|t|5MB");
    for (setting, error) in [
        ("work_mem", "write NAME=VALUE"),
        ("=5MB", "the name is missing"),
        ("port=1", "each server has its own port"),
        ("a b=1", "\"a b\" is no name of a setting"),
    ] {
        let said = herd.up_fails(&["--set", setting]);
        assert!(said.contains(error), "{said}");
    }

    herd.down(&["--delete"]);
    assert!(!herd.dir.exists());
    // Deleting nothing is no error, stopping nothing is one.
    herd.down(&["--delete"]);
    assert!(!herd.command("down", &[]).output().unwrap().status.success());
}

#[test]
fn up_that_is_killed_anywhere_loses_nothing_and_the_next_one_works() {
    let herd = Herd::new("killed");
    // From the first moment to past the end of a first start.
    for delay_ms in [5, 40, 120, 300, 500, 700, 900, 1100, 1400, 1800, 2300] {
        let mut child = herd.up_command(&[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let _ = child.kill();
        child.wait().unwrap();
    }
    herd.up(&[]);
    herd.sql("CREATE TABLE kept AS SELECT 7 AS x");
    assert_eq!(herd.sql(NODES), ports(&herd));
    // Nothing half-made is left.
    for node in ["coordinator", "worker-1", "worker-2"] {
        let names: Vec<String> = std::fs::read_dir(herd.dir.join(node))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with(".half-made"))
            .collect();
        assert_eq!(names, [""; 0], "{node}");
    }
    // The same while it resumes.
    for delay_ms in [10, 60, 150, 300, 500] {
        herd.down(&["--wait", "0"]);
        let mut child = herd.up_command(&[]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let _ = child.kill();
        child.wait().unwrap();
    }
    herd.up(&[]);
    assert_eq!(herd.sql("SELECT x FROM kept"), "7");
    assert_eq!(herd.sql(NODES), ports(&herd));
}

#[test]
fn what_was_killed_is_started_again_and_the_rest_is_left_alone() {
    let herd = Herd::new("parts");
    herd.up(&[]);
    herd.sql("CREATE TABLE kept AS SELECT 1 AS x");
    let before = herd.pids();
    for role in ["router", "worker-1", "coordinator"] {
        kill(herd.pid(role));
        herd.up(&[]);
        assert_eq!(herd.sql("SELECT x FROM kept"), "1", "after {role} was killed");
    }
    let after = herd.pids();
    assert_eq!(before[3], after[3], "worker-2 was not touched");
    for role in 0..3 {
        assert_ne!(before[role], after[role]);
    }
    // All at once, as a machine does.
    for (_, pid) in after {
        kill(pid.unwrap());
    }
    herd.up(&[]);
    assert_eq!(herd.sql("SELECT x FROM kept"), "1");
}

#[test]
fn two_at_once_agree_on_one_cluster() {
    let herd = Herd::new("race");
    let mut children: Vec<_> =
        (0..3).map(|_| herd.up_command(&[]).stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
    let urls: Vec<String> = children
        .drain(..)
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(urls.iter().all(|url| *url == urls[0]));
    assert_eq!(herd.sql(NODES), ports(&herd));
}

#[test]
fn a_port_that_is_taken_is_named_or_replaced() {
    let herd = Herd::new("ports");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let said = herd.up_fails(&["--port", &port.to_string()]);
    assert!(said.contains(&format!("error: port {port} is in use by another process")), "{said}");
    assert!(said.contains("hint: without --port a free one is taken"), "{said}");

    herd.up(&[]);
    let router_port = herd.state()["router_port"].as_u64().unwrap();
    let said = herd.up_fails(&["--port", "1"]);
    assert!(said.contains(&format!("the cluster's router runs on port {router_port}, not 1")), "{said}");
    herd.sql("CREATE TABLE kept AS SELECT 3 AS x");
    herd.sql("CREATE DATABASE other");
    herd.down(&[]);

    // Every port of the cluster, the router's too, now belongs to somebody else.
    let before = ports(&herd);
    let others: Vec<TcpListener> = before
        .split(',')
        .map(|port| port.parse().unwrap())
        .chain([u16::try_from(router_port).unwrap()])
        // Where that fails it belongs to somebody else already.
        .filter_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
        .collect();
    let url = herd.up(&[]);
    assert!(!url.contains(&format!(":{router_port}/")), "{url}");
    assert_ne!(ports(&herd), before);
    assert_eq!(herd.sql(NODES), ports(&herd));
    assert_eq!(herd.sql("SELECT x FROM kept"), "3");
    drop(others);
}

#[test]
fn a_server_that_does_not_start_is_shown_with_its_log() {
    let herd = Herd::new("broken");
    herd.up(&[]);
    herd.down(&[]);
    let conf = herd.dir.join("worker-1/data/postgresql.auto.conf");
    let good = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(&conf, "shared_preload_libraries = 'no_such_library'\n").unwrap();
    let said = herd.up_fails(&[]);
    assert!(said.contains("pgherd: error: worker-1: the server in "), "{said}");
    assert!(said.contains("worker-1/server.log\" ends with"), "{said}");
    assert!(said.contains("no_such_library"), "{said}");
    std::fs::write(&conf, good).unwrap();
    herd.up(&[]);
    assert_eq!(herd.sql(NODES), ports(&herd));
}

#[test]
fn what_no_server_starts_with_is_not_kept() {
    let herd = Herd::new("refused");
    herd.up(&["--set", "work_mem=5MB"]);
    herd.down(&[]);
    let said = herd.up_fails(&["--set", "shared_preload_libraries=no_such_library", "--set", "work_mem=6MB"]);
    assert!(said.contains("no_such_library") && said.contains("is not kept"), "{said}");
    assert!(herd.state()["settings"].to_string().contains("5MB"));
    herd.up(&[]);
    assert_eq!(herd.sql("SHOW work_mem"), "5MB");
}

#[test]
fn servers_have_the_ports_that_are_chosen() {
    let herd = Herd::new("ports");
    // Three that are free, one behind the other.
    // Connections that others make meanwhile get theirs from 32768 on.
    let begin = 10_000 + (std::process::id() % 2_000) as u16 * 10;
    let first = (begin..32_000)
        .step_by(3)
        .find(|first| (0..3).all(|next| std::net::TcpListener::bind(("127.0.0.1", first + next)).is_ok()))
        .unwrap();
    herd.up(&["--server-port", &first.to_string()]);
    let chosen = |herd: &Herd| {
        herd.state()["nodes"].as_array().unwrap().iter().map(|node| node["port"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&herd), [first, first + 1, first + 2]);
    assert_eq!(herd.sql(NODES), ports(&herd));
    herd.sql("CREATE TABLE kept (x int); SELECT create_distributed_table('kept', 'x'); INSERT INTO kept VALUES (3)");
    herd.down(&[]);
    let taken = std::net::TcpListener::bind(("127.0.0.1", first + 1)).unwrap();
    let said = herd.up_fails(&[]);
    assert!(said.contains(&format!("port {} is in use", first + 1)), "{said}");
    drop(taken);
    herd.up(&[]);
    assert_eq!(chosen(&herd), [first, first + 1, first + 2]);
    assert_eq!(herd.sql("SELECT x FROM kept"), "3");
    let said = herd.up_fails(&["--server-port", "65535"]);
    assert!(said.contains("would end at 65537"), "{said}");
}

#[test]
fn a_cluster_grows_and_refuses_what_it_cannot_be() {
    let herd = Herd::new("grow");
    herd.up(&[]);
    // Nodes are the cluster's, in every database.
    herd.sql("CREATE DATABASE other");
    let fill = "SELECT create_distributed_table('t', 'k', colocate_with => 'none', shard_count => 6); \
                INSERT INTO t SELECT generate_series(1, 100); SELECT count(*) FROM t";
    herd.sql_in("other", "CREATE TABLE r AS SELECT 7 AS v; SELECT create_reference_table('r')");
    herd.sql_in("template1", "SELECT 1");
    let output = herd.command("up", &["--workers", "3"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(herd.sql("SELECT count(*) FROM pg_dist_node"), "4");
    assert_eq!(herd.sql_in("other", "SELECT count(*) FROM pg_dist_node"), "4");
    assert_eq!(herd.sql_in("other", &format!("CREATE TABLE t (k int); {fill}")), "100");
    assert_eq!(
        herd.sql_in("other", "SELECT string_agg(result, ' ') FROM run_command_on_workers('SELECT v FROM r')"),
        "7 7 7"
    );
    herd.sql_in("other", "CREATE DATABASE third");
    assert_eq!(herd.sql_in("third", &format!("CREATE TABLE t (k int); {fill}")), "100");
    assert_eq!(herd.sql_in("third", "SELECT count(DISTINCT groupid) FROM pg_dist_placement"), "3");
    let said = herd.up_fails(&[]);
    assert!(said.contains("the cluster has 3 workers, more than 2"), "{said}");
    let said = stderr(&herd.command("up", &["--auth", "scram-sha-256"]).output().unwrap());
    assert!(said.contains("was made with --auth trust and cannot be started with scram-sha-256"), "{said}");
}

#[test]
fn scram_wants_the_password_that_up_prints() {
    let herd = Herd::new("scram");
    let url = herd.up(&["--auth", "scram-sha-256"]);
    let psql =
        |url: &str| Command::new("psql").args(["-XAtqwc", "SELECT 5", url]).env_remove("PGPASSWORD").output().unwrap();
    let good = psql(&url);
    assert!(good.status.success(), "{}", stderr(&good));
    let (head, tail) = url.split_once('@').unwrap();
    let user = head.rsplit_once(':').unwrap().0;
    assert!(!psql(&format!("{user}@{tail}")).status.success());
    assert!(!psql(&format!("{user}:wrong@{tail}")).status.success());
    assert_eq!(herd.sql("SELECT 6"), "6");
    // Nobody reads it over our shoulder.
    let output = herd.command("status", &[]).output().unwrap();
    let password = herd.state()["password"].as_str().unwrap().to_owned();
    assert!(!String::from_utf8_lossy(&output.stdout).contains(&password));
}

#[test]
fn a_directory_that_is_no_cluster_is_left_alone() {
    let herd = Herd::new("foreign");
    std::fs::create_dir_all(&herd.dir).unwrap();
    std::fs::write(herd.dir.join("letters.txt"), "dear").unwrap();
    let said = herd.up_fails(&[]);
    assert!(said.contains("is not empty and not a cluster (it has \"letters.txt\")"), "{said}");
    herd.down(&["--delete"]);
    assert_eq!(std::fs::read_to_string(herd.dir.join("letters.txt")).unwrap(), "dear");
    assert!(!herd.command("status", &[]).output().unwrap().status.success());
}
