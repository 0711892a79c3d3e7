//! A COMMIT on several servers whose connections are cut, or go silent, before and after each of its messages. Whatever
//! the client is told is true, what was committed can be read by the next statement, and nothing stays locked.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pgherd_testkit::client::Client;
use pgherd_testkit::proxy::{Fault, Proxy};
use pgherd_testkit::{Plain, Router, pg_bin};

/// Long enough for everything that the router does by itself at once; recovery's own time is longer.
const SOON: Duration = Duration::from_secs(8);

/// A herd of two workers behind wires that can be cut.
struct Herd {
    router: Router,
    /// The second worker is asked through the second wire.
    wires: [Proxy; 2],
    workers: [Plain; 2],
    _coordinator: Plain,
    /// A key on each worker.
    keys: [i32; 2],
}

impl Herd {
    fn start() -> Herd {
        let bin = pg_bin().unwrap();
        let [coordinator, first, second] = [0; 3].map(|_| Plain::start(&bin, "postgres").unwrap());
        let workers = [first, second];
        let wires = [0, 1].map(|n: usize| Proxy::start(workers[n].target.port).unwrap());
        let router = Router::start(env!("CARGO_BIN_EXE_pgherd"), &coordinator.target, &[]).unwrap();
        let mut client = Client::connect(&router.target).unwrap();
        for wire in &wires {
            client.run(&format!("SELECT citus_add_node('127.0.0.1', {})", wire.port)).unwrap();
        }
        client.run("CREATE TABLE t (k int PRIMARY KEY, v int NOT NULL)").unwrap();
        client.run("SELECT create_distributed_table('t', 'k', shard_count => 2)").unwrap();
        client.run("CREATE TABLE h (k int, v int)").unwrap();
        client.run("SELECT create_distributed_table('h', 'k', colocate_with => 't')").unwrap();
        client.run("CREATE TABLE mine (n int NOT NULL); INSERT INTO mine VALUES (0)").unwrap();
        client.run("INSERT INTO t SELECT g, 0 FROM generate_series(1, 20) g").unwrap();
        let key_of = |worker: &Plain| -> i32 {
            let mut direct = Client::connect(&worker.target).unwrap();
            direct.value("SELECT min(k) FROM t").unwrap().parse().unwrap()
        };
        let keys = [key_of(&workers[0]), key_of(&workers[1])];
        Herd { router, wires, workers, _coordinator: coordinator, keys }
    }

    fn client(&self) -> Client {
        Client::connect(&self.router.target).unwrap()
    }

    /// Waits until the rows can be changed by others and nothing is prepared. How long it took.
    #[track_caller]
    fn is_free_again(&self, what: &str) -> Duration {
        let begun = Instant::now();
        let prepared = "SELECT count(*) FROM pg_prepared_xacts";
        let mut direct = [0, 1].map(|n: usize| Client::connect(&self.workers[n].target).unwrap());
        loop {
            let left: Vec<String> = direct.iter_mut().map(|worker| worker.value(prepared).unwrap()).collect();
            let locked = direct.iter_mut().any(|worker| {
                worker.run("SET lock_timeout = '100ms'").unwrap();
                worker.simple("UPDATE t SET v = v", None).unwrap().error().is_some()
            });
            if !locked && left == ["0", "0"] {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < SOON, "{what}: prepared {left:?}, locked {locked}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

const FAULTS: [Fault; 4] = [Fault::CutBefore, Fault::CutAfter, Fault::SilentBefore, Fault::SilentAfter];

/// A message of a COMMIT: on which wire, and what is in it.
const MESSAGES: &[(usize, &str)] =
    &[(1, "PREPARE TRANSACTION"), (0, "COMMIT\0"), (1, "COMMIT PREPARED"), (1, "ROLLBACK PREPARED")];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Block,
    OneStatement,
    WithTheCoordinator,
    /// Writes that clients share.
    Shared,
}

const SHAPES: [Shape; 4] = [Shape::Block, Shape::OneStatement, Shape::WithTheCoordinator, Shape::Shared];

/// What is worth its time in every run; `PGHERD_FAULTS=all` runs every combination.
fn is_run(message: &str, fault: Fault, times: usize, shape: Shape) -> bool {
    // Other messages are not sent again. And where nothing else fails nothing is rolled back.
    let makes_sense =
        (times == 1 || message.ends_with(" PREPARED")) && (message != "ROLLBACK PREPARED" || shape == Shape::Block);
    let is_quick = matches!(fault, Fault::CutBefore | Fault::CutAfter);
    let all = std::env::var("PGHERD_FAULTS").is_ok_and(|value| value == "all");
    makes_sense && (all || is_quick || times == 1 && (shape == Shape::Block || message == "COMMIT\0"))
}

impl Herd {
    /// What the client is told when it writes `value` on both workers; `armed` is called before the last message.
    fn write(&self, client: &mut Client, shape: Shape, value: i32, armed: impl FnOnce()) -> Option<String> {
        let [one, other] = self.keys;
        let reply = match shape {
            Shape::OneStatement => {
                armed();
                client.simple(&format!("UPDATE t SET v = {value} WHERE k IN ({one}, {other})"), None)
            }
            Shape::Block | Shape::WithTheCoordinator => {
                client.run(&format!("BEGIN; UPDATE t SET v = {value} WHERE k = {one}")).unwrap();
                client.run(&format!("UPDATE t SET v = {value} WHERE k = {other}")).unwrap();
                if shape == Shape::WithTheCoordinator {
                    client.run(&format!("UPDATE mine SET n = {value}")).unwrap();
                }
                armed();
                client.simple("COMMIT", None)
            }
            Shape::Shared => {
                let rows: Vec<String> = [one, other].iter().map(|k| format!("({k}, $1)")).collect();
                client.prepare("s", &format!("INSERT INTO h VALUES {}", rows.join(", ")), &[23]).unwrap();
                let text = |n: i32| Some(n.to_string().into_bytes());
                client.execute("s", &[text(-1)], 0, None).unwrap();
                armed();
                client.execute("s", &[text(value)], 0, None)
            }
        };
        reply.unwrap().error().map(|e| e.sqlstate().to_owned())
    }

    /// Whether `value` can be read on both workers. Fails where it is on one of them alone.
    fn is_there(&self, client: &mut Client, shape: Shape, value: i32) -> bool {
        let [one, other] = self.keys;
        let table = if shape == Shape::Shared { "h" } else { "t" };
        let sql = format!("SELECT count(*) FROM {table} WHERE v = {value} AND k IN ({one}, {other})");
        match client.value(&sql).unwrap().as_str() {
            "0" => false,
            "2" => true,
            part => panic!("{part} of two rows are there"),
        }
    }
}

#[test]
fn what_a_client_is_told_of_its_commit_is_true() {
    let herd = Herd::start();
    let (mut value, mut met, mut unknown) = (0, 0, 0);
    for &(wire, message) in MESSAGES {
        for fault in FAULTS {
            for (times, shape) in [1, 3].into_iter().flat_map(|times| SHAPES.map(|shape| (times, shape))) {
                if !is_run(message, fault, times, shape) {
                    continue;
                }
                let what = format!("{fault:?} {times} times at {message:?}, {shape:?}");
                let mut client = herd.client();
                value += 1;
                let told = herd.write(&mut client, shape, value, || {
                    if message == "ROLLBACK PREPARED" {
                        // The decider cannot commit: it is gone.
                        herd.wires[0].plan("COMMIT\0", Fault::CutBefore, 1);
                    }
                    herd.wires[wire].plan(message, fault, times);
                });
                let own = herd.is_there(&mut client, shape, value);
                let unmet = herd.wires[wire].end_plan();
                herd.wires[0].end_plan();
                met += usize::from(unmet == 0);
                herd.is_free_again(&what);
                let there = herd.is_there(&mut herd.client(), shape, value);
                match told.as_deref() {
                    // Its own next statement has seen it.
                    None => assert!(own && there, "{what}: {own} {there}"),
                    Some("08007") => unknown += 1,
                    Some(_) => assert!(!own && !there, "{what}: {told:?}"),
                }
                if shape == Shape::WithTheCoordinator {
                    let mine = client.value("SELECT n FROM mine").unwrap();
                    assert_eq!(mine == value.to_string(), there, "{what}: {mine}");
                }
            }
        }
    }
    // Some shapes do not send every message.
    assert!(met * 4 > value as usize * 3, "only {met} of {value} faults were met");
    assert_eq!(unknown, 0, "outcomes that nobody knows");
}

#[test]
fn a_commit_says_what_it_could_not_carry_out_in_time() {
    let herd = Herd::start();
    let mut client = herd.client();
    client.run("SET pgherd.commit_wait = '300ms'").unwrap();
    let told = herd.write(&mut client, Shape::Block, 1, || {
        herd.wires[1].plan("COMMIT PREPARED", Fault::CutBefore, 1_000);
    });
    assert_eq!(told, None);
    let mut watcher = Client::connect(&herd.workers[1].target).unwrap();
    assert_eq!(watcher.value("SELECT count(*) FROM pg_prepared_xacts").unwrap(), "1");
    assert_ne!(herd.wires[1].end_plan(), 0);
    herd.is_free_again("the wire is whole again");
    assert!(herd.is_there(&mut client, Shape::Block, 1));
}

#[test]
fn recovery_is_not_held_up_by_a_silent_server() {
    let herd = Herd::start();
    // Left by a router that is gone: the decider is the worker itself.
    let mut worker = Client::connect(&herd.workers[1].target).unwrap();
    let group =
        herd.client().value(&format!("SELECT groupid FROM pg_dist_node WHERE nodeport = {}", herd.wires[1].port));
    let group = group.unwrap();
    worker.run("BEGIN; UPDATE t SET v = -1").unwrap();
    worker.run(&format!("PREPARE TRANSACTION 'pgherd_{group}_0123456789abcdef0123456789abcdef_{group}'")).unwrap();
    // The other one takes connections and says nothing. (The startup message has the database's name.)
    herd.wires[0].plan("postgres", Fault::SilentBefore, 1_000);
    let begun = Instant::now();
    while worker.value("SELECT count(*) FROM pg_prepared_xacts").unwrap() != "0" {
        assert!(begun.elapsed() < Duration::from_secs(60), "a transaction stays prepared");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(worker.value("SELECT count(*) FROM t WHERE v = -1").unwrap(), "0");
}
