//! Lanes on a real cluster: what a ride must not change, slow heads, cancels, backends that are interrupted or ended
//! under load, a worker that restarts, clients that do not read, and servers with few connections. That statements ride
//! at all is seen in the workers' `pg_stat_activity`. No test asserts a time.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use pgherd_testkit::client::{Client, Reply, bind, describe, execute, sync};
use pgherd_testkit::{Cluster, Side, Target, pg_bin, run_as_owner};

const PROGRAM: &str = env!("CARGO_BIN_EXE_pgherd");

/// A database of its own with tables `t` and `u` over all workers: `v` is `k` in `t` and `-k` in `u`.
fn prepared(side: &Side, name: &str) -> Target {
    let target = side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    for (table, sign) in [("t", ""), ("u", "-")] {
        client.run(&format!("CREATE TABLE {table} (k int PRIMARY KEY, v int NOT NULL)")).unwrap();
        client.run(&format!("SELECT create_distributed_table('{table}', 'k', shard_count => 6)")).unwrap();
        client.run(&format!("INSERT INTO {table} SELECT g, {sign}g FROM generate_series(1, 100) g")).unwrap();
    }
    target
}

fn shared() -> Side {
    Cluster::shared(PROGRAM).side()
}

fn text(number: i32) -> Option<Vec<u8>> {
    Some(number.to_string().into_bytes())
}

fn sqlstate(reply: &Reply) -> String {
    reply.error().map_or("", |e| e.sqlstate()).to_owned()
}

fn get(client: &mut Client, name: &str, k: i32) -> Reply {
    client.execute(name, &[text(k)], 0, None).unwrap()
}

fn only_value(reply: &Reply) -> String {
    assert_eq!(sqlstate(reply), "");
    let rows = &reply.answers.last().unwrap().rows;
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{reply:?}");
    String::from_utf8(rows[0][0].clone().unwrap()).unwrap()
}

/// Prepares `name` and runs it until it rides: once the long way for each key.
fn warm(client: &mut Client, name: &str, sql: &str) {
    assert_eq!(sqlstate(&client.prepare(name, sql, &[23]).unwrap()), "");
    for k in 1..=3 {
        assert_eq!(sqlstate(&get(client, name, k)), "");
    }
}

/// What the workers say of lanes, summed.
fn on_lanes(side: &Side, database: &str, what: &str) -> i64 {
    let mut client = side.connect("postgres").unwrap();
    client
        .value(&format!(
            "SELECT sum(result::int) FROM run_command_on_workers($$SELECT {what} FROM pg_stat_activity \
             WHERE datname = '{database}' AND application_name = 'pgherd lane'$$)"
        ))
        .unwrap()
        .parse()
        .unwrap()
}

/// Goes on until the statement rides: notice of definitions just before it may still replace the catalog, under which
/// it is compiled.
fn until_it_rides(side: &Side, database: &str, what: &str, client: &mut Client, name: &str) {
    const TIMES_MAX: usize = 200;
    for _ in 0..TIMES_MAX {
        if on_lanes(side, database, what) != 0 {
            return;
        }
        assert_eq!(sqlstate(&get(client, name, 1)), "");
    }
    panic!("nothing rode");
}

#[test]
fn names_mean_what_the_session_says_and_not_what_they_meant_when_the_statement_was_compiled() {
    let side = shared();
    let target = side.create_database("lane_names", "").unwrap();
    let mut client = Client::connect(&target).unwrap();
    for schema in ["a", "b"] {
        client.run(&format!("CREATE SCHEMA {schema}")).unwrap();
        client.run(&format!("CREATE TABLE {schema}.t (k int PRIMARY KEY, v text)")).unwrap();
        client.run(&format!("SELECT create_distributed_table('{schema}.t', 'k')")).unwrap();
        client.run(&format!("INSERT INTO {schema}.t SELECT g, '{schema}' FROM generate_series(1, 20) g")).unwrap();
    }
    client.run("SET search_path = a").unwrap();
    let sql = "SELECT v FROM t WHERE k = $1";
    warm(&mut client, "s", sql);
    until_it_rides(&side, "lane_names", "count(*)", &mut client, "s");
    let both = |client: &mut Client, expected: &str| {
        for k in 1..=8 {
            assert_eq!(only_value(&get(client, "s", k)), expected);
            assert_eq!(only_value(&client.extended(sql, &[23], &[text(k)], None).unwrap()), expected);
            assert_eq!(client.value(&format!("SELECT v FROM t WHERE k = {k}")).unwrap(), expected);
        }
    };
    both(&mut client, "a");
    client.run("SET search_path = b").unwrap();
    both(&mut client, "b");
    client.run("SET search_path = a").unwrap();
    both(&mut client, "a");
    client.run("BEGIN; SET LOCAL search_path = b").unwrap();
    both(&mut client, "b");
    client.run("COMMIT").unwrap();
    both(&mut client, "a");
    client.run("BEGIN").unwrap();
    both(&mut client, "a");
    client.run("SET search_path = b").unwrap();
    both(&mut client, "b");
    client.run("ROLLBACK").unwrap();
    both(&mut client, "a");
}

#[test]
fn rights_policies_and_triggers_of_others_hold_from_the_next_statement_on() {
    let side = shared();
    let target = prepared(&side, "lane_rights");
    let mut owner = Client::connect(&target).unwrap();
    owner.run("DROP ROLE IF EXISTS lane_reader").unwrap();
    owner.run("CREATE ROLE lane_reader LOGIN").unwrap();
    owner.run("GRANT SELECT, UPDATE ON t TO lane_reader").unwrap();
    let mut reader = Client::connect(&Target { user: "lane_reader".into(), ..target.clone() }).unwrap();
    warm(&mut reader, "r", "SELECT v FROM t WHERE k = $1");
    warm(&mut reader, "w", "UPDATE t SET v = v WHERE k = $1");
    until_it_rides(&side, "lane_rights", "count(*) FILTER (WHERE usename = 'lane_reader')", &mut reader, "r");
    owner.run("REVOKE SELECT ON t FROM lane_reader").unwrap();
    for k in 1..=3 {
        assert_eq!(sqlstate(&get(&mut reader, "r", k)), "42501");
    }
    owner.run("GRANT SELECT ON t TO lane_reader").unwrap();
    assert_eq!(only_value(&get(&mut reader, "r", 2)), "2");
    owner.run("CREATE POLICY even ON t FOR SELECT TO lane_reader USING (k % 2 = 0)").unwrap();
    owner.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY").unwrap();
    for k in 1..=6 {
        let rows = get(&mut reader, "r", k).answers.last().unwrap().rows.len();
        assert_eq!(rows, usize::from(k % 2 == 0), "key {k}");
    }
    // The same role again is another one.
    drop(reader);
    owner.run("DROP TABLE u").unwrap();
    let mut other = Client::connect(&target).unwrap();
    warm(&mut other, "n", "SELECT count(*) FROM t WHERE k = $1");
    owner.run("DROP TABLE t").unwrap();
    assert_eq!(sqlstate(&get(&mut other, "n", 1)), "42P01");
    owner.run("CREATE TABLE t (k int PRIMARY KEY, v text)").unwrap();
    owner.run("SELECT create_distributed_table('t', 'k')").unwrap();
    assert_eq!(only_value(&get(&mut other, "n", 1)), "0");
    owner.run("DROP TABLE t").unwrap();
    owner.run("DROP ROLE lane_reader").unwrap();
}

#[test]
fn a_clients_own_timeout_is_not_hidden_by_a_lanes() {
    let side = shared();
    let target = prepared(&side, "lane_timeout");
    let mut client = Client::connect(&target).unwrap();
    warm(&mut client, "s", "SELECT v FROM t WHERE k = $1 AND (k < 4 OR pg_sleep(0.2) IS NOT NULL)");
    client.run("SET statement_timeout = '50ms'").unwrap();
    assert_eq!(only_value(&get(&mut client, "s", 1)), "1");
    for _ in 0..3 {
        assert_eq!(sqlstate(&get(&mut client, "s", 50)), "57014");
    }
    client.run("SET statement_timeout = 0").unwrap();
    assert_eq!(only_value(&get(&mut client, "s", 50)), "50");
}

#[test]
fn what_waits_for_a_lock_holds_up_nobody() {
    let side = shared();
    let target = prepared(&side, "lane_lock");
    let mut locker = Client::connect(&target).unwrap();
    let mut warmer = Client::connect(&target).unwrap();
    warm(&mut warmer, "t", "SELECT v FROM t WHERE k = $1");
    warm(&mut warmer, "u", "SELECT v FROM u WHERE k = $1");
    locker.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").unwrap();
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for n in 1..=12 {
            let (target, done) = (&target, &done);
            scope.spawn(move || {
                let mut client = Client::connect(target).unwrap();
                client.prepare("t", "SELECT v FROM t WHERE k = $1", &[23]).unwrap();
                assert_eq!(only_value(&get(&mut client, "t", n)), n.to_string());
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let fast: Vec<_> = (0..12)
            .map(|_| {
                let target = &target;
                scope.spawn(move || {
                    let mut client = Client::connect(target).unwrap();
                    client.prepare("u", "SELECT v FROM u WHERE k = $1", &[23]).unwrap();
                    for k in (1..=100).cycle().take(400) {
                        assert_eq!(only_value(&get(&mut client, "u", k)), (-k).to_string());
                    }
                })
            })
            .collect();
        fast.into_iter().for_each(|f| f.join().unwrap());
        assert_eq!(done.load(Ordering::SeqCst), 0, "the lock is still held");
        locker.run("COMMIT").unwrap();
    });
    assert_eq!(done.load(Ordering::SeqCst), 12);
}

#[test]
fn a_cancel_meets_its_own_statement_and_none_else() {
    let side = shared();
    let target = prepared(&side, "lane_cancel");
    let mut locker = Client::connect(&target).unwrap();
    let mut client = Client::connect(&target).unwrap();
    let sql = "SELECT v FROM t WHERE k = $1";
    warm(&mut client, "t", sql);
    // Too late: the statement has ended, and the next one is not touched.
    for k in (1..=100).cycle().take(300) {
        assert_eq!(only_value(&get(&mut client, "t", k)), k.to_string());
        client.cancel().unwrap();
    }
    // In time, again and again, while neighbours go on.
    locker.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stopping = Stop(&stop);
        let neighbour = scope.spawn(|| {
            let mut other = Client::connect(&target).unwrap();
            warm(&mut other, "u", "SELECT v FROM u WHERE k = $1");
            let mut count = 0;
            while !stop.load(Ordering::SeqCst) {
                assert_eq!(only_value(&get(&mut other, "u", 7)), "-7");
                count += 1;
            }
            count
        });
        for k in 1..=8 {
            let packet = [bind("", "t", &[], &[text(k)], &[]), execute("", 0), sync()].concat();
            client.send(&packet).unwrap();
            // At any stage of its way.
            thread::sleep(Duration::from_millis(u64::try_from(k).unwrap() * 20));
            client.cancel().unwrap();
            // On a busy machine a server may not have read the statement yet: it has nothing to cancel then.
            while !client.hears_within(Duration::from_secs(2)).unwrap() {
                client.cancel().unwrap();
            }
            let mut last = client.receive().unwrap();
            let mut error = None;
            while last.kind != b'Z' {
                if last.kind == b'E' {
                    error = Some(String::from_utf8_lossy(&last.body).into_owned());
                }
                last = client.receive().unwrap();
            }
            assert!(error.is_some_and(|e| e.contains("57014")), "key {k} was not cancelled");
        }
        drop(stopping);
        assert_ne!(neighbour.join().unwrap(), 0);
    });
    locker.run("COMMIT").unwrap();
    assert_eq!(only_value(&get(&mut client, "t", 5)), "5");
}

/// Sets the flag however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Readers and writers at work until told to stop: what each write was told, by its number.
fn load(target: &Target, stop: &AtomicBool, started: &AtomicUsize, strict: bool) -> HashMap<i32, String> {
    let mut told = HashMap::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(target).unwrap();
                warm(&mut client, "r", "SELECT v FROM t WHERE k = $1");
                started.fetch_add(1, Ordering::SeqCst);
                for k in (1..=100).cycle() {
                    let reply = get(&mut client, "r", k);
                    if strict || sqlstate(&reply).is_empty() {
                        assert_eq!(only_value(&reply), k.to_string());
                    }
                    if stop.load(Ordering::SeqCst) {
                        break;
                    }
                }
            });
        }
        let writers: Vec<_> = (0..4)
            .map(|w| {
                scope.spawn(move || {
                    let mut client = Client::connect(target).unwrap();
                    let sql = "INSERT INTO log (k, n) VALUES ($1, 1)";
                    let mut told = HashMap::new();
                    assert_eq!(sqlstate(&client.prepare("w", sql, &[23]).unwrap()), "");
                    started.fetch_add(1, Ordering::SeqCst);
                    for n in 0.. {
                        let k = w * 1_000_000 + n;
                        told.insert(k, sqlstate(&get(&mut client, "w", k)));
                        if stop.load(Ordering::SeqCst) {
                            break;
                        }
                    }
                    told
                })
            })
            .collect();
        writers.into_iter().for_each(|w| told.extend(w.join().unwrap()));
    });
    told
}

/// Each write that was answered well is there once, one whose fate is unknown at most once, a refused one not at all.
fn check_writes(target: &Target, told: &HashMap<i32, String>, unknown: impl Fn(&str) -> bool) {
    let mut client = Client::connect(target).unwrap();
    let rows = client.run("SELECT k, count(*) FROM log GROUP BY k").unwrap();
    let found: HashMap<i32, String> = rows.answers[0]
        .rows
        .iter()
        .map(|row| {
            let column = |n: usize| String::from_utf8(row[n].clone().unwrap()).unwrap();
            (column(0).parse().unwrap(), column(1))
        })
        .collect();
    assert!(found.keys().all(|k| told.contains_key(k)), "rows that nobody wrote");
    for (k, state) in told {
        let there = found.get(k).map_or("0", String::as_str);
        match state.as_str() {
            "" => assert_eq!(there, "1", "write {k} was answered well"),
            state if unknown(state) => assert!(there == "0" || there == "1", "write {k}, {state}: {there} times"),
            state => assert_eq!(there, "0", "write {k} failed with {state}"),
        }
    }
    let well = told.values().filter(|s| s.is_empty()).count();
    eprintln!("{} writes, {} not well", told.len(), told.len() - well);
    assert_ne!(well, 0);
}

fn with_log(side: &Side, name: &str) -> Target {
    let target = prepared(side, name);
    let mut client = side.connect(name).unwrap();
    client.run("CREATE TABLE log (k int, n int)").unwrap();
    client.run("SELECT create_distributed_table('log', 'k', shard_count => 6)").unwrap();
    target
}

#[test]
fn lane_backends_that_are_interrupted_or_ended_under_load() {
    let side = shared();
    let target = with_log(&side, "lane_killed");
    let (stop, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = thread::scope(|scope| {
        let stopping = Stop(&stop);
        let loaded = scope.spawn(|| load(&target, &stop, &started, true));
        while started.load(Ordering::SeqCst) < 8 && !loaded.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let (mut cancelled, mut ended) = (0, 0);
        for _ in 0..15 {
            cancelled += on_lanes(&side, "lane_killed", "count(pg_cancel_backend(pid))");
            ended += on_lanes(&side, "lane_killed", "count(pg_terminate_backend(pid))");
        }
        drop(stopping);
        assert!(cancelled > 0 && ended > 0, "nothing rode");
        loaded.join().unwrap()
    });
    assert!(told.values().all(|s| s.is_empty() || s == "08007"), "writes failed otherwise: {:?}", told.values());
    check_writes(&target, &told, |state| state == "08007");
}

#[test]
fn a_worker_that_restarts_under_load() {
    let cluster = Cluster::start(PROGRAM, 2).unwrap();
    let side = cluster.side();
    let target = with_log(&side, "lane_restart");
    let directory = side
        .connect("postgres")
        .unwrap()
        .value("SELECT min(result) FROM run_command_on_workers('SHOW data_directory')")
        .unwrap();
    let (stop, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = thread::scope(|scope| {
        let stopping = Stop(&stop);
        let loaded = scope.spawn(|| load(&target, &stop, &started, false));
        while started.load(Ordering::SeqCst) < 8 && !loaded.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        for _ in 0..2 {
            let status = run_as_owner(&pg_bin().unwrap().join("pg_ctl"))
                .args(["-D", &directory, "-m", "immediate", "-w", "-l", "/dev/null", "restart"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success());
            thread::sleep(Duration::from_millis(500));
        }
        drop(stopping);
        loaded.join().unwrap()
    });
    // On a lane 08007; on a lease the connection's end is told as such, or in the server's last words.
    check_writes(&target, &told, |state| matches!(state, "08007" | "08006" | "57P01" | "57P02"));
}

#[test]
fn clients_that_do_not_read_or_disappear_stall_nobody() {
    let side = shared();
    let target = prepared(&side, "lane_greedy");
    // Of this router alone: other programs have theirs, and start more, meanwhile.
    let status = format!("/proc/{}/status", Cluster::shared(PROGRAM).router_pid().unwrap());
    let memory = || -> u64 {
        let status = std::fs::read_to_string(&status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let sql = "SELECT k, repeat('x', 10000) FROM t WHERE k = $1";
    let mut greedy = Client::connect(&target).unwrap();
    warm(&mut greedy, "s", sql);
    let before = memory();
    const MANY: i32 = 5000;
    let group = |n: i32| [bind("", "s", &[], &[text(n % 100 + 1)], &[]), execute("", 0), sync()].concat();
    greedy.send(&(0..MANY).flat_map(group).collect::<Vec<u8>>()).unwrap();
    // Others that leave in the middle.
    for _ in 0..20 {
        let mut gone = Client::connect(&target).unwrap();
        warm(&mut gone, "s", sql);
        gone.send(&(0..50).flat_map(group).collect::<Vec<u8>>()).unwrap();
    }
    let mut modest = Client::connect(&target).unwrap();
    warm(&mut modest, "s", "SELECT v FROM t WHERE k = $1");
    for k in (1..=100).cycle().take(1000) {
        assert_eq!(only_value(&get(&mut modest, "s", k)), k.to_string());
    }
    // Its replies are 50 MB.
    let grown = memory().saturating_sub(before);
    assert!(grown < 20_000, "the router keeps {grown} kB for a client that does not read");
    let replies = greedy.receive_until_ready(MANY as usize).unwrap();
    let keys: Vec<i32> = replies
        .iter()
        .filter(|m| m.kind == b'D')
        .map(|m| {
            let length = u32::from_be_bytes(m.body[2..6].try_into().unwrap()) as usize;
            std::str::from_utf8(&m.body[6..6 + length]).unwrap().parse().unwrap()
        })
        .collect();
    assert_eq!(keys, (0..MANY).map(|n| n % 100 + 1).collect::<Vec<_>>());
}

/// A cluster whose own router only prepares: the routers that are tested take its callbacks over.
fn aside() -> &'static Cluster {
    static ASIDE: OnceLock<Cluster> = OnceLock::new();
    ASIDE.get_or_init(|| Cluster::start(PROGRAM, 2).unwrap())
}

/// A second router in front of it.
struct Router {
    child: Child,
    target: Target,
}

impl Router {
    fn start(arguments: &[&str]) -> Router {
        let mut client = aside().side().connect("postgres").unwrap();
        let port = client.value("SHOW port").unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = &aside().target;
        let coordinator = Target { port: port.parse().unwrap(), database: "postgres".into(), ..own.clone() };
        let child = Command::new(PROGRAM)
            .args(["serve", "--coordinator", &coordinator.url(), "--auth", "trust"])
            .args(["--listen", &format!("127.0.0.1:{free}")])
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let router = Router { child, target: Target { port: free, ..own.clone() } };
        for _ in 0..600 {
            if Client::connect(&router.target).is_ok() {
                return router;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("the second router does not answer");
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn transactions_over_several_servers_make_progress_on_few_connections() {
    prepared(&aside().side(), "lane_few");
    let ports: Vec<u16> = aside()
        .side()
        .connect("postgres")
        .unwrap()
        .run("SELECT node_port FROM citus_get_active_worker_nodes()")
        .unwrap()
        .answers[0]
        .rows
        .iter()
        .map(|row| String::from_utf8(row[0].clone().unwrap()).unwrap().parse().unwrap())
        .collect();
    let router = Router::start(&["--connections", "8", "--threads", "2"]);
    let target = router.target.with_database("lane_few");
    let most = AtomicUsize::new(0);
    let (stop, started) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let stopping = Stop(&stop);
        let watching = scope.spawn(|| {
            let worker = |port: &u16| Client::connect(&Target { port: *port, ..aside().target.clone() }).unwrap();
            let mut workers: Vec<Client> = ports.iter().map(worker).collect();
            // The router that prepared may have idle connections of its own.
            let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'lane_few' \
                       AND application_name <> 'pgherd router' AND backend_start > $1";
            let since: Vec<Vec<u8>> =
                workers.iter_mut().map(|w| w.value("SELECT clock_timestamp()").unwrap().into_bytes()).collect();
            started.store(true, Ordering::SeqCst);
            while !stop.load(Ordering::SeqCst) {
                for (worker, since) in workers.iter_mut().zip(&since) {
                    let now = only_value(&worker.extended(sql, &[1184], &[Some(since.clone())], None).unwrap());
                    most.fetch_max(now.parse().unwrap(), Ordering::SeqCst);
                }
            }
        });
        while !started.load(Ordering::SeqCst) && !watching.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        let clients: Vec<_> = (0..40)
            .map(|n| {
                let target = &target;
                scope.spawn(move || {
                    let mut client = Client::connect(target).unwrap();
                    for round in 0..6 {
                        // Each begins on another server, and waits for the rows of others meanwhile.
                        client.run("BEGIN").unwrap();
                        let mut keys: Vec<i32> = (0..4).map(|i| 1 + (n * 7 + round + i * 13) % 100).collect();
                        keys.sort_unstable();
                        for k in keys {
                            client.run(&format!("UPDATE t SET v = v + 1 WHERE k = {k}")).unwrap();
                        }
                        client.run("COMMIT").unwrap();
                        client.run(&format!("UPDATE u SET v = v + 1 WHERE k = {}", n + 1)).unwrap();
                        client.run("SELECT count(*) FROM u").unwrap();
                    }
                })
            })
            .collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        drop(stopping);
        watching.join().unwrap();
        assert!(ended.iter().all(Result::is_ok), "a transaction failed");
    });
    let mut client = Client::connect(&target).unwrap();
    assert_eq!(client.value("SELECT sum(v) - 5050 FROM t").unwrap(), (40 * 6 * 4).to_string());
    assert_eq!(client.value("SELECT sum(v) + 5050 FROM u").unwrap(), (40 * 6).to_string());
    let most = most.load(Ordering::SeqCst);
    assert!((1..=8).contains(&most), "{most} connections to one worker");
}

#[test]
fn a_statement_that_waits_for_a_connection_can_be_cancelled() {
    prepared(&aside().side(), "lane_queue");
    let router = Router::start(&["--connections", "8", "--threads", "1"]);
    let target = router.target.with_database("lane_queue");
    // Three places for transactions over several servers.
    let mut holders: Vec<Client> = (0..3).map(|_| Client::connect(&target).unwrap()).collect();
    for (n, holder) in holders.iter_mut().enumerate() {
        holder.run(&format!("BEGIN; UPDATE t SET v = v WHERE k = {}", n + 1)).unwrap();
    }
    let mut waiting = Client::connect(&target).unwrap();
    waiting.run("BEGIN").unwrap();
    waiting.send(&pgherd_testkit::client::query("UPDATE t SET v = v WHERE k = 50")).unwrap();
    thread::sleep(Duration::from_millis(300));
    waiting.cancel().unwrap();
    let messages = waiting.receive_until_ready(1).unwrap();
    assert!(messages.iter().any(|m| m.kind == b'E' && String::from_utf8_lossy(&m.body).contains("57014")));
    waiting.run("ROLLBACK").unwrap();
    // Statements by themselves have places of their own.
    assert_eq!(waiting.value("SELECT v FROM u WHERE k = 9").unwrap(), "-9");
    holders.iter_mut().for_each(|holder| drop(holder.run("COMMIT").unwrap()));
    waiting.run("BEGIN; UPDATE t SET v = v WHERE k = 50; COMMIT").unwrap();
}

#[test]
fn a_database_with_open_lanes_can_be_dropped() {
    let side = shared();
    let target = prepared(&side, "lane_dropped");
    // On every thread.
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&target).unwrap()).collect();
    for client in &mut clients {
        warm(client, "s", "SELECT v FROM t WHERE k = $1");
        warm(client, "w", "UPDATE t SET v = v WHERE k = $1");
    }
    until_it_rides(&side, "lane_dropped", "count(*)", &mut clients[0], "s");
    drop(clients);
    let mut other = side.connect("postgres").unwrap();
    // A session ends a moment after its client.
    for _ in 0..100 {
        let reply = other.simple("DROP DATABASE lane_dropped", None).unwrap();
        match sqlstate(&reply).as_str() {
            "" => break,
            "55006" => thread::sleep(Duration::from_millis(20)),
            other => panic!("DROP DATABASE: {other}"),
        }
    }
    assert_eq!(other.value("SELECT count(*) FROM pg_database WHERE datname = 'lane_dropped'").unwrap(), "0");
    assert_eq!(on_lanes(&side, "lane_dropped", "count(*)"), 0);
}

#[test]
fn more_statements_than_a_connection_keeps_go_round_and_round() {
    let side = shared();
    let target = prepared(&side, "lane_many");
    let mut client = Client::connect(&target).unwrap();
    for n in 0..700 {
        let sql = format!("SELECT v + {n} FROM t WHERE k = $1");
        assert_eq!(sqlstate(&client.prepare(&format!("s{n}"), &sql, &[23]).unwrap()), "");
    }
    for block in [true, false, true] {
        if block {
            client.run("BEGIN").unwrap();
        }
        for n in 0..700 {
            assert_eq!(only_value(&get(&mut client, &format!("s{n}"), 7)), (7 + n).to_string());
        }
        if block {
            client.run("COMMIT").unwrap();
        }
    }
}

/// Every session goes to another thread before every message that finds nothing open.
#[test]
fn sessions_that_move_all_the_time_lose_nothing() {
    prepared(&aside().side(), "lane_moving");
    let router = Router::start(&["--restless", "--threads", "3"]);
    let target = Target { database: "lane_moving".into(), ..router.target.clone() };
    thread::scope(|scope| {
        for n in 0..8 {
            let target = &target;
            scope.spawn(move || {
                let mut client = Client::connect(target).unwrap();
                client.run(&format!("SET application_name = 'mover {n}'")).unwrap();
                warm(&mut client, "t", "SELECT v FROM t WHERE k = $1");
                warm(&mut client, "u", "SELECT v FROM u WHERE k = $1");
                assert_eq!(sqlstate(&client.prepare("w", "UPDATE t SET v = v WHERE k = $1", &[23]).unwrap()), "");
                let made = client.value("SELECT prepare_time FROM pg_prepared_statements WHERE name = 't'").unwrap();
                for k in (1..=100).cycle().skip(n * 12).take(150) {
                    assert_eq!(only_value(&get(&mut client, "t", k)), k.to_string());
                    assert_eq!(only_value(&get(&mut client, "u", k)), (-k).to_string());
                    assert_eq!(get(&mut client, "w", k).answers[0].tag.as_deref(), Some("UPDATE 1"));
                }
                // Messages that lie unread while the session goes.
                let group = |k: i32| [bind("", "t", &[], &[text(k)], &[]), execute("", 0), sync()].concat();
                client.send(&(1..=60).flat_map(group).collect::<Vec<u8>>()).unwrap();
                let replies = client.receive_until_ready(60).unwrap();
                assert_eq!(replies.iter().filter(|m| m.kind == b'D').count(), 60);
                // What is open stays where it is, and what was set goes with the session.
                client.run("BEGIN; UPDATE t SET v = v WHERE k = 1").unwrap();
                assert_eq!(only_value(&get(&mut client, "t", 2)), "2");
                client.run("ROLLBACK").unwrap();
                client.run("CREATE TEMP TABLE own AS SELECT 7 AS x").unwrap();
                assert_eq!(client.value("SELECT x FROM own").unwrap(), "7");
                client.run("DROP TABLE own").unwrap();
                assert_eq!(client.value("SHOW application_name").unwrap(), format!("mover {n}"));
                let again = "SELECT prepare_time FROM pg_prepared_statements WHERE name = 't'";
                assert_eq!(client.value(again).unwrap(), made);
            });
        }
    });
}

/// What one session knows of its statements is nothing that others may find where it goes, unless it is true for them.
#[test]
fn a_session_that_moves_leaves_others_their_own_columns() {
    let side = aside().side();
    side.create_database("lane_moved", "").unwrap();
    let mut maker = side.connect("lane_moved").unwrap();
    for schema in ["a", "b"] {
        maker.run(&format!("CREATE SCHEMA {schema}")).unwrap();
        let more = if schema == "b" { ", w text" } else { "" };
        maker.run(&format!("CREATE TABLE {schema}.t (k int PRIMARY KEY, v int{more})")).unwrap();
        maker.run(&format!("SELECT create_distributed_table('{schema}.t', 'k')")).unwrap();
        maker.run(&format!("INSERT INTO {schema}.t (k, v) SELECT g, g FROM generate_series(1, 20) g")).unwrap();
    }
    let router = Router::start(&["--restless", "--threads", "2"]);
    let target = Target { database: "lane_moved".into(), ..router.target.clone() };
    let columns = |client: &mut Client, name: &str| {
        client
            .send(&[bind("", name, &[], &[text(3)], &[]), describe(b'P', ""), execute("", 0), sync()].concat())
            .unwrap();
        let replies = client.receive_until_ready(1).unwrap();
        let count =
            |kind: u8| replies.iter().find(|m| m.kind == kind).map(|m| u16::from_be_bytes([m.body[0], m.body[1]]));
        (count(b'T'), count(b'D'))
    };
    let sql = "SELECT * FROM t WHERE k = $1";
    let mut first = Client::connect(&target).unwrap();
    first.run("SET search_path = a").unwrap();
    assert_eq!(sqlstate(&first.prepare("q", sql, &[23]).unwrap()), "");
    first.run("SET search_path = b").unwrap();
    for _ in 0..3 {
        first.run("SELECT 1").unwrap();
    }
    // Each on both threads.
    for _ in 0..2 {
        let mut other = Client::connect(&target).unwrap();
        other.run("SET search_path = b").unwrap();
        for name in ["x", "y", "z"] {
            assert_eq!(sqlstate(&other.prepare(name, sql, &[23]).unwrap()), "");
            assert_eq!(columns(&mut other, name), (Some(3), Some(3)));
        }
    }
    // The same after a change of the table.
    first.run("SET search_path = a").unwrap();
    assert_eq!(columns(&mut first, "q"), (Some(2), Some(2)));
    Client::connect(&target).unwrap().run("ALTER TABLE a.t ADD COLUMN w int").unwrap();
    for _ in 0..3 {
        first.run("SELECT 1").unwrap();
    }
    for _ in 0..2 {
        let mut other = Client::connect(&target).unwrap();
        other.run("SET search_path = a").unwrap();
        for name in ["x", "y", "z"] {
            assert_eq!(sqlstate(&other.prepare(name, sql, &[23]).unwrap()), "");
            assert_eq!(columns(&mut other, name), (Some(3), Some(3)));
        }
    }
}

/// On one thread: a client that has sent thousands of statements, on lanes or cheaper ones that only the router sees,
/// is still being served when another has sent and been answered two hundred, one at a time.
#[test]
fn a_client_that_pipelines_thousands_leaves_others_their_turn() {
    prepared(&aside().side(), "lane_fair");
    let router = Router::start(&["--threads", "1"]);
    let target = Target { database: "lane_fair".into(), ..router.target.clone() };
    let ride = |n: i32| [bind("", "s", &[], &[text(n % 100 + 1)], &[]), execute("", 0), sync()].concat();
    let nothing = |_: i32| sync();
    for (many, group) in [(60_000, &ride as &dyn Fn(i32) -> Vec<u8>), (3_000_000, &nothing)] {
        let sent: Vec<u8> = (0..many).flat_map(group).collect();
        let mut greedy = Client::connect(&target).unwrap();
        warm(&mut greedy, "s", "SELECT v FROM t WHERE k = $1");
        let mut modest = Client::connect(&target).unwrap();
        warm(&mut modest, "s", "SELECT v FROM t WHERE k = $1");
        let answered = AtomicUsize::new(0);
        thread::scope(|scope| {
            let mut sender = greedy.sender().unwrap();
            scope.spawn(move || std::io::Write::write_all(&mut sender, &sent).unwrap());
            let (greedy, answered) = (&mut greedy, &answered);
            scope.spawn(move || {
                while answered.load(Ordering::Relaxed) < many as usize {
                    let ready = greedy.receive().unwrap().kind == b'Z';
                    answered.fetch_add(usize::from(ready), Ordering::Relaxed);
                }
            });
            while answered.load(Ordering::Relaxed) < 500 {
                thread::yield_now();
            }
            for k in (1..=100).cycle().take(200) {
                assert_eq!(only_value(&get(&mut modest, "s", k)), k.to_string());
            }
            let now = answered.load(Ordering::Relaxed);
            assert!(now < many as usize, "all {now} came first");
        });
    }
}
