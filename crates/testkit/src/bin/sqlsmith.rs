//! `make sqlsmith`: Debian's sqlsmith on a cluster with distributed, reference and local tables. Statements may fail;
//! no server and not the router may die, panic, call anything an internal error, or keep what belongs to a client
//! that is gone. Options are words: `program=target/release/pgherd seed=1 minutes=30 workers=3 clients=2`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use pgherd_testkit::client::Client;
use pgherd_testkit::words::Words;
use pgherd_testkit::{Cluster, Result, Target};

const DATABASE: &str = "smith";
/// Tables of every kind, of types that sqlsmith has operators for.
const TABLES: &str = "
    CREATE TABLE people (id bigint PRIMARY KEY, name text, born date, score numeric(8,2), tags text[], about jsonb);
    CREATE TABLE orders (person bigint, id int, placed timestamp, total numeric(10,2), PRIMARY KEY (person, id));
    CREATE TABLE events (kind text, at timestamptz, value float8, took interval);
    CREATE TABLE things (id uuid, a int, b int, c bool);
    CREATE TABLE regions (code int PRIMARY KEY, name varchar(20) NOT NULL);
    CREATE TABLE notes (id int PRIMARY KEY, person bigint, body text);
    SELECT create_distributed_table('people', 'id', shard_count => 6);
    SELECT create_distributed_table('orders', 'person', colocate_with => 'people');
    SELECT create_distributed_table('events', 'kind', colocate_with => 'none', shard_count => 4);
    SELECT create_distributed_table('things', 'id', colocate_with => 'none', shard_count => 3);
    SELECT create_reference_table('regions');
    INSERT INTO people SELECT i, 'p' || i % 7, date '1990-01-01' + i, i / 3.0, ARRAY['a', 'b' || i], '{\"n\": 1}'
        FROM generate_series(1, 20) i;
    INSERT INTO orders SELECT i % 20, i, timestamp '2020-01-01' + i * interval '1 hour', i
        FROM generate_series(1, 30) i;
    INSERT INTO events SELECT 'k' || i % 5, timestamptz '2020-01-01' + i * interval '1 day', i, interval '1 s' * i
        FROM generate_series(1, 20) i;
    INSERT INTO things SELECT md5(i::text)::uuid, i, i % 3, i % 2 = 0 FROM generate_series(1, 20) i;
    INSERT INTO regions SELECT i, 'r' || i FROM generate_series(1, 5) i;
    INSERT INTO notes SELECT i, i, 'note ' || i FROM generate_series(1, 10) i;
    CREATE VIEW busy AS SELECT p.id, count(*) AS n FROM people p JOIN orders o ON o.person = p.id GROUP BY p.id;
";
/// sqlsmith is started anew after so many statements, with the next seed.
const QUERIES_EACH: u32 = 400;
/// One statement may not take the whole time, on whichever server.
const STATEMENT_TIMEOUT: &str = "5s";
/// A run of sqlsmith that takes longer hangs.
const RUN_MAX: Duration = Duration::from_secs(900);

fn main() -> ExitCode {
    match run(&Words::from_arguments()) {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            for line in wrong {
                println!("wrong: {line}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Smith {
    child: Child,
    log: PathBuf,
    begun: Instant,
}

fn run(words: &Words) -> Result<Vec<String>> {
    let program = words.program();
    let mut seed = words.number("seed", 1)?;
    let clients = words.number("clients", 2)?;
    let time = Duration::from_secs(60 * words.number("minutes", 30)?);
    let cluster = Cluster::start(&program, words.number("workers", 3)? as u32)?;
    let side = cluster.side();
    let target = side.create_database(DATABASE, "")?;
    let mut client = Client::connect(&target)?;
    client.run(TABLES)?;
    client.run(&format!("ALTER DATABASE {DATABASE} SET statement_timeout = '{STATEMENT_TIMEOUT}'"))?;
    let nodes = nodes(&mut client, &cluster.target)?;
    let router = cluster.router_pid()?;
    let before = connections(&nodes)?;
    let mut wrong = Vec::new();
    let mut running: Vec<Smith> = Vec::new();
    let (mut runs, begun) = (0, Instant::now());
    let mut errors: BTreeMap<String, (usize, String)> = BTreeMap::new();
    while begun.elapsed() < time || !running.is_empty() {
        while begun.elapsed() < time && (running.len() as u64) < clients {
            running.push(start(&cluster.directory, &target, seed)?);
            seed += 1;
            runs += 1;
        }
        std::thread::sleep(Duration::from_millis(200));
        let late = begun.elapsed() > time + Duration::from_secs(30);
        let mut still = Vec::new();
        for mut smith in running {
            if smith.child.try_wait()?.is_none() {
                if smith.begun.elapsed() < RUN_MAX && !late {
                    still.push(smith);
                    continue;
                }
                if !late {
                    wrong.push(format!("sqlsmith did not end within {} s", RUN_MAX.as_secs()));
                }
                smith.child.kill()?;
                smith.child.wait()?;
            }
            read_errors(&smith.log, &mut errors);
        }
        running = still;
        if cluster.router_pid()? != router || !Path::new(&format!("/proc/{router}")).exists() {
            wrong.push("the router died".into());
            break;
        }
    }
    // Whoever is left answers, and holds nothing for those who are gone.
    match Client::connect(&target)
        .and_then(|mut c| c.value("SELECT count(*) FROM people p JOIN orders o ON o.id = p.id"))
    {
        Ok(_) => {}
        Err(error) => wrong.push(format!("the router does not answer: {error}")),
    }
    std::thread::sleep(Duration::from_secs(3));
    for (name, node) in &nodes {
        let mut client = Client::connect(&node.with_database("postgres"))?;
        let prepared = client.value("SELECT count(*) FROM pg_prepared_xacts")?;
        if prepared != "0" {
            wrong.push(format!("{prepared} prepared transactions are left on {name}"));
        }
        let open = client.value(
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() \
             AND xact_start < now() - interval '30 s'",
        )?;
        if open != "0" {
            wrong.push(format!("{open} transactions are left open on {name}"));
        }
    }
    let after = connections(&nodes)?;
    println!("{runs} runs of {QUERIES_EACH} statements; connections of servers before {before:?}, after {after:?}");
    let mut listed: Vec<_> = errors.into_iter().collect();
    listed.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    for (message, (times, _)) in listed.iter().take(40) {
        println!("{times:8}  {message}");
    }
    wrong.extend(read_logs(&cluster.directory));
    Ok(wrong)
}

fn start(directory: &Path, target: &Target, seed: u64) -> Result<Smith> {
    let log = directory.join(format!("sqlsmith-{seed}.log"));
    let connection =
        format!("host={} port={} user={} dbname={}", target.host, target.port, target.user, target.database);
    let child = Command::new("sqlsmith")
        .arg(format!("--target={connection}"))
        .arg(format!("--seed={seed}"))
        .arg(format!("--max-queries={QUERIES_EACH}"))
        .args(["--exclude-catalog", "--verbose"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log)?)
        .spawn()
        .map_err(|e| format!("sqlsmith: {e}"))?;
    Ok(Smith { child, log, begun: Instant::now() })
}

/// What sqlsmith prints at its end: how often each error came.
fn read_errors(log: &Path, errors: &mut BTreeMap<String, (usize, String)>) {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    for line in text.lines() {
        let Some((count, message)) = line.trim().split_once(char::is_whitespace) else { continue };
        if let (Ok(count), true) = (count.parse::<usize>(), message.contains("ERROR")) {
            let entry = errors.entry(message.trim().to_owned()).or_default();
            entry.0 += count;
        }
    }
}

/// Name and address of the coordinator and of each worker.
fn nodes(client: &mut Client, like: &Target) -> Result<Vec<(String, Target)>> {
    let reply = client.run("SELECT nodename, nodeport, groupid FROM pg_dist_node ORDER BY groupid")?;
    let text = |v: &Option<Vec<u8>>| v.as_deref().map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default();
    let mut nodes = Vec::new();
    for row in &reply.answers[0].rows {
        let target = Target { host: text(&row[0]), port: text(&row[1]).parse()?, ..like.clone() };
        nodes.push((format!("group {}", text(&row[2])), target));
    }
    Ok(nodes)
}

fn connections(nodes: &[(String, Target)]) -> Result<Vec<String>> {
    nodes
        .iter()
        .map(|(_, node)| {
            Client::connect(&node.with_database("postgres"))?
                .value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
        })
        .collect()
}

/// Lines of any server's or the router's log that nobody should ever see, each once.
fn read_logs(directory: &Path) -> Vec<String> {
    let mut found: BTreeSet<String> = BTreeSet::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !matches!(&*name, "base" | "pg_wal" | "global") {
                directories.push(path);
            } else if name.ends_with(".log") && !name.starts_with("sqlsmith") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                for line in text.lines() {
                    let bad = ["panicked", "terminated by signal", "PANIC:", "internal error", "TRAP:"];
                    if bad.iter().any(|word| line.contains(word)) {
                        let mut shown = String::new();
                        let _ = write!(shown, "{name}: {}", line.split_once("Z ").map_or(line, |(_, rest)| rest));
                        found.insert(shown);
                    }
                }
            }
        }
    }
    found.into_iter().collect()
}
