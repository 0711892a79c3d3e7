//! `pgherd init` and `pgherd serve` in front of a server that exists already. Needs psql.
#![allow(clippy::unwrap_used)]

use pgherd_cluster::embedded::{PgBin, Server, ServerSpec, StopMode};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);

/// A server of somebody else's, gone at the end.
struct Coordinator {
    server: Server,
    dir: PathBuf,
}

impl Coordinator {
    fn start(name: &str) -> Coordinator {
        let dir = std::env::temp_dir().join(format!("pgherd-serve-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let pg = PgBin::installed().unwrap_or_else(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(PgBin::obtain(None)).unwrap()
        });
        let spec = ServerSpec::new(&dir).unwrap().setting("fsync", "off").setting("shared_buffers", "16MB");
        let server = Server::start(&pg, &spec, &|_| ()).unwrap();
        Coordinator { server, dir }
    }

    fn url(&self) -> String {
        self.server.url("postgres")
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.server.stop(StopMode::Immediate, WAIT);
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A `pgherd serve` that runs, killed at the end if it still does.
struct Router {
    child: Child,
    port: u16,
}

impl Router {
    fn start(coordinator: &Coordinator) -> Router {
        Router::start_with(coordinator, &[])
    }

    fn start_with(coordinator: &Coordinator, further: &[&str]) -> Router {
        let port = free_port();
        let listen = format!("127.0.0.1:{port}");
        let child = pgherd(&["serve", "--coordinator", &coordinator.url(), "--listen", &listen, "--auth", "trust"])
            .args(further)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let router = Router { child, port };
        let started = Instant::now();
        while !router.psql("SELECT 1").status.success() {
            assert!(started.elapsed() < WAIT, "the router does not answer: {}", stderr(&router.psql("SELECT 1")));
            std::thread::sleep(Duration::from_millis(50));
        }
        router
    }

    fn psql(&self, statement: &str) -> Output {
        psql(&format!("postgres://postgres@127.0.0.1:{}/postgres", self.port), statement)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Whether it ended well by itself.
    fn ends(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < WAIT {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pgherd(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgherd"));
    command.args(arguments);
    for name in ["PGHERD_DIR", "PGHERD_COORDINATOR", "PGHERD_LOG", "PGPASSWORD"] {
        command.env_remove(name);
    }
    command
}

fn psql(url: &str, statement: &str) -> Output {
    Command::new("psql").args(["-XAtqwc", statement, url]).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn init_may_be_repeated_and_serve_answers_clients() {
    let coordinator = Coordinator::start("init");
    for _ in 0..2 {
        let output = pgherd(&["init", "--coordinator", &coordinator.url()]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let found = psql(&coordinator.url(), "SELECT count(*) FROM pg_namespace WHERE nspname = 'pgherd'");
    assert_eq!(String::from_utf8_lossy(&found.stdout).trim(), "1");

    let mut router = Router::start(&coordinator);
    let answer = router.psql("SELECT 6 * 7");
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "42");
    router.signal(rustix::process::Signal::TERM);
    assert!(router.ends());
}

/// A client whose statement takes long; returns when `count` of them are at it.
fn sleeper(coordinator: &Coordinator, router: &Router, count: u32) -> Child {
    let client = Command::new("psql")
        .args(["-XAtqwc", "SELECT pg_sleep(600)"])
        // As on one server a statement goes on without its client, unless he asks for this.
        .env("PGOPTIONS", "-c client_connection_check_interval=100ms")
        .arg(format!("postgres://postgres@127.0.0.1:{}/postgres", router.port))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'";
    let started = Instant::now();
    while psql(&coordinator.url(), sleeps).stdout != format!("{count}\n").into_bytes() {
        assert!(started.elapsed() < WAIT);
        std::thread::sleep(Duration::from_millis(50));
    }
    client
}

#[test]
fn more_clients_than_allowed_are_refused_and_places_are_given_back() {
    let coordinator = Coordinator::start("many");
    let router = Router::start_with(&coordinator, &["--max-clients", "2"]);
    let mut clients = [sleeper(&coordinator, &router, 1), sleeper(&coordinator, &router, 2)];
    let refused = router.psql("SELECT 1");
    assert!(stderr(&refused).contains("FATAL:  sorry, too many clients already"), "{}", stderr(&refused));
    for client in &mut clients {
        client.kill().unwrap();
        client.wait().unwrap();
    }
    let started = Instant::now();
    while !router.psql("SELECT 1").status.success() {
        assert!(started.elapsed() < WAIT);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What a new connection as `r` is answered, without the address.
fn answer_of(port: u16) -> String {
    let output = psql(&format!("postgres://r@127.0.0.1:{port}/postgres"), "SHOW work_mem");
    let said = stderr(&output);
    said.split_once("failed: ").map_or(said.as_str(), |(_, rest)| rest).to_owned()
        + &String::from_utf8_lossy(&output.stdout)
}

#[test]
fn what_is_remembered_of_a_role_gives_it_nothing_that_it_has_lost() {
    let coordinator = Coordinator::start("roles");
    let router = Router::start(&coordinator);
    let direct = coordinator.server.port;
    let own = |sql: &str| {
        let output = psql(&coordinator.url(), sql);
        assert!(output.status.success(), "{sql}: {}", stderr(&output));
    };
    own("CREATE ROLE r LOGIN");
    let mut answers = std::collections::HashSet::new();
    for change in [
        "ALTER ROLE r NOLOGIN",
        "ALTER ROLE r LOGIN",
        "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC",
        "GRANT CONNECT ON DATABASE postgres TO PUBLIC",
        "ALTER ROLE r CONNECTION LIMIT 0",
        "ALTER ROLE r CONNECTION LIMIT -1",
        "ALTER ROLE r SET work_mem = '5MB'",
        "ALTER ROLE r RESET work_mem",
        "DROP ROLE r",
        "CREATE ROLE r LOGIN",
    ] {
        // Nobody tells the router: it finds out soon, also where it was asked a moment before.
        answer_of(router.port);
        own(change);
        let expected = answer_of(direct);
        let started = Instant::now();
        while answer_of(router.port) != expected {
            assert!(started.elapsed() < WAIT, "{change}: {} in place of {expected}", answer_of(router.port));
            std::thread::sleep(Duration::from_millis(50));
        }
        answers.insert(expected);
    }
    assert_eq!(answers.len(), 6, "{answers:?}");
    // What goes through the router holds at once.
    for change in ["ALTER ROLE r NOLOGIN", "ALTER ROLE r LOGIN", "REVOKE CONNECT ON DATABASE postgres FROM PUBLIC"] {
        answer_of(router.port);
        let output = router.psql(change);
        assert!(output.status.success(), "{change}: {}", stderr(&output));
        assert_eq!(answer_of(router.port), answer_of(direct), "{change}");
    }
}

#[test]
fn a_first_signal_waits_for_clients_and_a_second_does_not() {
    let coordinator = Coordinator::start("signals");
    let mut router = Router::start(&coordinator);
    let mut client = sleeper(&coordinator, &router, 1);
    router.signal(rustix::process::Signal::TERM);
    std::thread::sleep(Duration::from_millis(500));
    assert!(router.child.try_wait().unwrap().is_none(), "a client is still at work");
    assert!(client.try_wait().unwrap().is_none());
    router.signal(rustix::process::Signal::INT);
    assert!(router.ends());
    assert!(!client.wait().unwrap().success());
}

#[test]
fn what_cannot_be_served_is_said_in_a_line() {
    let check = |arguments: &[&str], expected: &str| {
        let output = pgherd(arguments).output().unwrap();
        let said = stderr(&output);
        assert!(!output.status.success());
        assert!(said.contains(expected), "{arguments:?} said:\n{said}");
    };
    let nobody = format!("postgres://postgres@127.0.0.1:{}/postgres", free_port());
    check(&["serve", "--coordinator", &nobody, "--listen", "127.0.0.1:0"], "pgherd: error: ");
    check(&["init", "--coordinator", &nobody], "pgherd: error: ");
    check(&["init", "--coordinator", "db1:5432"], "it does not start with postgres://");
    check(&["serve", "--coordinator", &nobody, "--listen", "nowhere"], "--listen \"nowhere\" is not an address");
    check(&["serve", "--coordinator", &nobody, "--lanes", "4"], "unexpected argument '--lanes'");
    check(&["serve"], "required arguments were not provided");

    let coordinator = Coordinator::start("taken");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    check(&["serve", "--coordinator", &coordinator.url(), "--listen", &listen], "Address already in use");
}
