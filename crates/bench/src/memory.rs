//! What a connected client that does nothing costs the router: resident memory before and after many have come, and the
//! CPU time that they take while idle. Measured on a router that has done nothing yet, whose memory holds nothing to be
//! reused.

use crate::report::count;
use crate::router::Router;
use crate::sides::{ClusterSide, Setup, delete_cluster, psql, say, start_cluster, work_dir};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// Bytes that a client may take.
pub const GOAL_BYTES: f64 = 16.0 * 1024.0;
/// Clients that come first, so that what the router makes once is not counted.
const WARM_CLIENTS: u32 = 64;
/// Files that this process and the router have open besides clients.
const FILES_BESIDES: u64 = 200;
const IDLE_SECONDS: u32 = 3;
const TIMEOUT: Duration = Duration::from_secs(30);
const STATEMENT: &str = "SELECT v FROM bench_idle WHERE k = $1";

/// Start a cluster and measure the router's memory with many idle clients.
#[derive(Debug, clap::Args)]
pub struct Memory {
    #[command(flatten)]
    setup: Setup,

    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
}

/// What was measured.
#[derive(Debug, Clone, serde::Serialize)]
pub struct IdleClients {
    pub clients: u32,
    /// The router's memory divided by the clients: connected only, and after each has run a prepared statement.
    pub bytes_connected: f64,
    pub bytes_used: f64,
    /// CPU time of the router while all of them wait.
    pub cpu_ms_per_second: f64,
}

impl IdleClients {
    pub fn line(&self) -> String {
        format!(
            "{} idle clients: {:.1} KiB of router memory each (goal: at most {:.0} KiB, {}), {:.1} KiB after a \
             prepared statement each; {:.1} ms of router CPU a second while idle",
            count(f64::from(self.clients)),
            self.bytes_connected / 1024.0,
            GOAL_BYTES / 1024.0,
            if self.bytes_connected <= GOAL_BYTES { "holds" } else { "NO" },
            self.bytes_used / 1024.0,
            self.cpu_ms_per_second,
        )
    }
}

impl Memory {
    pub fn run(self) -> Result<(), String> {
        let dir = match &self.setup.dir {
            Some(dir) => std::path::absolute(dir).map_err(|error| error.to_string())?,
            None => work_dir("bench-memory")?,
        };
        let cluster = start_cluster(&self.setup, &dir)?;
        let measured = measure(&cluster, self.clients);
        let deleted = delete_cluster(&cluster.dir);
        say(&measured?.line());
        deleted
    }
}

/// Fewer clients than `clients` if files or ports do not suffice; it says so.
pub fn measure(cluster: &ClusterSide, clients: u32) -> Result<IdleClients, String> {
    let router = Router::find(&cluster.dir)?;
    let possible = possible(&router)?;
    let clients = if possible < u64::from(clients) {
        say(&format!("this machine's limits on open files and ports allow {possible} clients, not {clients}"));
        u32::try_from(possible).unwrap_or(clients)
    } else {
        clients
    };
    if clients == 0 {
        return Err("not one idle client is possible".to_owned());
    }
    for statement in [
        "DROP TABLE IF EXISTS bench_idle",
        "CREATE TABLE bench_idle (k int PRIMARY KEY, v int)",
        "SELECT create_distributed_table('bench_idle', 'k')",
        "INSERT INTO bench_idle VALUES (1, 1)",
    ] {
        psql(cluster.port, statement)?;
    }
    let mut warm = connect(cluster.port, WARM_CLIENTS)?;
    run_statement(&mut warm)?;
    let settle = || std::thread::sleep(Duration::from_millis(500));
    settle();
    let before = router.memory_bytes()?;
    let mut idle = connect(cluster.port, clients)?;
    settle();
    let connected = router.memory_bytes()?;
    let cpu = router.cpu_us()?;
    std::thread::sleep(Duration::from_secs(u64::from(IDLE_SECONDS)));
    let cpu_us = router.cpu_us()? - cpu;
    run_statement(&mut idle)?;
    settle();
    let used = router.memory_bytes()?;
    drop((warm, idle));
    psql(cluster.port, "DROP TABLE bench_idle")?;
    let each = |after: u64| after.saturating_sub(before) as f64 / f64::from(clients);
    Ok(IdleClients {
        clients,
        bytes_connected: each(connected),
        bytes_used: each(used),
        cpu_ms_per_second: cpu_us / 1000.0 / f64::from(IDLE_SECONDS),
    })
}

/// How many clients our files, the router's and the ports of one address allow.
fn possible(router: &Router) -> Result<u64, String> {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let ours = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ends: Vec<u64> = range.split_whitespace().filter_map(|end| end.parse().ok()).collect();
    let ports = if let [first, last] = ends[..] { last.saturating_sub(first) + 1 } else { u64::MAX };
    Ok(ours.min(router.files_max()?).min(ports).saturating_sub(FILES_BESIDES + u64::from(WARM_CLIENTS)))
}

fn connect(port: u16, number: u32) -> Result<Vec<TcpStream>, String> {
    let mut clients = Vec::new();
    for index in 0..number {
        let text = |error: std::io::Error| format!("idle client {} of {number}: {error}", index + 1);
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(text)?;
        client.set_read_timeout(Some(TIMEOUT)).map_err(text)?;
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        startup.extend_from_slice(b"user\0postgres\0database\0postgres\0\0");
        client.write_all(&framed(None, &startup)).map_err(text)?;
        until_ready(&mut client).map_err(|error| format!("idle client {} of {number}: {error}", index + 1))?;
        clients.push(client);
    }
    Ok(clients)
}

fn run_statement(clients: &mut [TcpStream]) -> Result<(), String> {
    let parse = [b"s\0", STATEMENT.as_bytes(), b"\0\0\0"].concat();
    // The unnamed portal of "s" with one parameter, the text "1"; all rows.
    let messages = [
        framed(Some(b'P'), &parse),
        framed(Some(b'B'), b"\0s\0\0\0\0\x01\0\0\0\x011\0\0"),
        framed(Some(b'E'), b"\0\0\0\0\0"),
        framed(Some(b'S'), b""),
    ]
    .concat();
    for client in clients {
        client.write_all(&messages).map_err(|error| format!("a statement of an idle client: {error}"))?;
        until_ready(client).map_err(|error| format!("a statement of an idle client: {error}"))?;
    }
    Ok(())
}

fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let mut message: Vec<u8> = kind.into_iter().collect();
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// Reads messages until ReadyForQuery; an error for an ErrorResponse.
fn until_ready(client: &mut TcpStream) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    loop {
        let mut head = [0; 5];
        client.read_exact(&mut head).map_err(text)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
        let mut body = vec![0; length as usize];
        client.read_exact(&mut body).map_err(text)?;
        match head[0] {
            b'Z' => return Ok(()),
            b'E' => return Err(String::from_utf8_lossy(&body).replace('\0', " ")),
            _ => {}
        }
    }
}
