//! Lanes to scripted servers over TCP: slow heads, servers that hang up, places that are given out, lanes that are
//! closed. Nothing here asserts a time: what is slow stays slow until the test says so.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::rc::Rc;

use bytes::{BufMut, BytesMut};
use pgherd_backend::lane::{Again, LaneStatement, Lanes, Outcome, Rider, statement_name};
use pgherd_backend::{Address, Budget, Credentials, Target};
use pgherd_wire::backend::{self, FieldDescription};
use pgherd_wire::frame::{Startup, next_frame, next_startup};
use pgherd_wire::frontend::{FrontendMessage, parse_frontend};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// A server that answers every request with its parameter, once it may.
struct Server {
    address: Address,
    /// Requests with these parameters are not answered before they are released.
    slow: RefCell<BTreeSet<usize>>,
    released: watch::Sender<bool>,
    /// Connections (by number, from 0) that get no answer before the release, and are closed then.
    stalled: RefCell<BTreeSet<usize>>,
    accepted: Cell<usize>,
    /// Connections that read one of these hang up, having run it or not.
    fatal: RefCell<HashMap<usize, bool>>,
    open: Cell<usize>,
    most: Cell<usize>,
    ran: RefCell<Vec<usize>>,
    syncs: Cell<usize>,
    /// A slow request is being held.
    waits: Cell<bool>,
}

impl Server {
    async fn start() -> Rc<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Rc::new(Server {
            address: Address { host: "127.0.0.1".into(), port },
            slow: RefCell::default(),
            released: watch::channel(false).0,
            stalled: RefCell::default(),
            accepted: Cell::new(0),
            fatal: RefCell::default(),
            open: Cell::new(0),
            most: Cell::new(0),
            ran: RefCell::default(),
            syncs: Cell::new(0),
            waits: Cell::new(false),
        });
        let accepting = server.clone();
        tokio::task::spawn_local(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = accepting.clone();
                tokio::task::spawn_local(async move {
                    server.open.set(server.open.get() + 1);
                    server.most.set(server.most.get().max(server.open.get()));
                    let _ = server.serve(stream).await;
                    server.open.set(server.open.get() - 1);
                });
            }
        });
        server
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
        let number = self.accepted.replace(self.accepted.get() + 1);
        if self.stalled.borrow().contains(&number) {
            let _ = self.released.subscribe().wait_for(|released| *released).await;
            return Ok(());
        }
        loop {
            if let Some(Startup::Startup { .. }) = next_startup(&mut input).unwrap() {
                break;
            }
            stream.read_buf(&mut input).await?;
        }
        backend::write_authentication_ok(&mut output);
        backend::write_ready_for_query(&mut output, b'I');
        let (mut bound, mut writes) = (0, false);
        loop {
            while let Some(frame) = next_frame(&mut input, 1 << 20).unwrap() {
                match parse_frontend(&frame).unwrap() {
                    FrontendMessage::Query { .. } => {
                        backend::write_command_complete(&mut output, "SELECT 1");
                        backend::write_ready_for_query(&mut output, b'I');
                    }
                    FrontendMessage::Parse { .. } => backend::write_parse_complete(&mut output),
                    FrontendMessage::Close { .. } => backend::write_close_complete(&mut output),
                    FrontendMessage::Describe { name, .. } => {
                        backend::write_parameter_description(&mut output, &[23]);
                        if name == statement_name(2) {
                            backend::write_no_data(&mut output);
                        } else {
                            backend::write_row_description(&mut output, &[FieldDescription::text("x")]);
                        }
                    }
                    FrontendMessage::Bind(bind) => {
                        bound = std::str::from_utf8(bind.params[0].unwrap()).unwrap().parse().unwrap();
                        writes = bind.statement == statement_name(2);
                        backend::write_bind_complete(&mut output);
                    }
                    FrontendMessage::Execute { .. } => {
                        stream.write_all_buf(&mut output).await?;
                        if self.slow.borrow().contains(&bound) {
                            self.waits.set(true);
                            let _ = self.released.subscribe().wait_for(|released| *released).await;
                        }
                        let fatal = self.fatal.borrow().get(&bound).copied();
                        if fatal != Some(false) {
                            self.ran.borrow_mut().push(bound);
                        }
                        if fatal.is_some() {
                            return Ok(());
                        }
                        if !writes {
                            backend::write_data_row(&mut output, &[Some(bound.to_string().as_bytes())]);
                        }
                        backend::write_command_complete(&mut output, &format!("UPDATE {bound}"));
                    }
                    FrontendMessage::Sync => {
                        self.syncs.set(self.syncs.get() + 1);
                        backend::write_ready_for_query(&mut output, b'I');
                    }
                    FrontendMessage::Terminate => return Ok(()),
                    other => panic!("a lane does not send {other:?}"),
                }
            }
            stream.write_all_buf(&mut output).await?;
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
        }
    }

    fn lanes(&self, budget: &Budget) -> Rc<Lanes> {
        let target = Target {
            address: self.address.clone(),
            user: "u".into(),
            database: "d".into(),
            credentials: Credentials::None,
            parameters: Vec::new(),
            label: None,
        };
        Lanes::new(target, String::new(), budget.server(&self.address))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Heard {
    Row(usize),
    Again(Again),
    Lost,
}

/// What the riders have heard, in order.
#[derive(Default)]
struct Ears {
    heard: RefCell<Vec<(usize, Heard)>>,
    more: Notify,
}

impl Ears {
    /// Waits until `enough` of them have been heard.
    async fn wait(&self, enough: impl Fn(&[(usize, Heard)]) -> bool) {
        loop {
            let more = self.more.notified();
            if enough(&self.heard.borrow()) {
                return;
            }
            more.await;
        }
    }

    fn of(&self, rider: usize) -> Vec<Heard> {
        self.heard.borrow().iter().filter(|(who, _)| *who == rider).map(|(_, what)| what.clone()).collect()
    }
}

struct Ear {
    rider: usize,
    ears: Rc<Ears>,
}

impl Rider for Ear {
    fn arrive(&self, outcome: Outcome<'_>) {
        let heard = match outcome {
            Outcome::Complete(bytes) => {
                let mut buf = BytesMut::from(bytes);
                let first = next_frame(&mut buf, 1 << 20).unwrap().unwrap();
                let value = match first.tag() {
                    b'C' => backend::parse_command_complete(&first).unwrap().rsplit(' ').next().unwrap().to_owned(),
                    _ => {
                        let value = backend::parse_data_row(&first).unwrap().next().unwrap().unwrap().unwrap();
                        std::str::from_utf8(value).unwrap().to_owned()
                    }
                };
                Heard::Row(value.parse().unwrap())
            }
            Outcome::Again(again) => Heard::Again(again),
            Outcome::Lost => Heard::Lost,
        };
        self.ears.heard.borrow_mut().push((self.rider, heard));
        self.ears.more.notify_waiters();
    }
}

fn values(rider: usize) -> Vec<u8> {
    let text = rider.to_string();
    let mut out = BytesMut::new();
    out.put_u16(0);
    out.put_u16(1);
    out.put_u32(text.len() as u32);
    out.put_slice(text.as_bytes());
    out.put_u16(0);
    out.to_vec()
}

fn statement(writes: bool) -> Rc<LaneStatement> {
    let id = if writes { 2 } else { 1 };
    Rc::new(LaneStatement {
        id,
        name: statement_name(id),
        sql: "any".into(),
        param_types: vec![23],
        columns: (!writes).then(|| vec![25]),
        writes,
        shares: false,
    })
}

fn ride(lanes: &Lanes, ears: &Rc<Ears>, rider: usize, writes: bool) -> bool {
    lanes.ride(Rc::new(Ear { rider, ears: ears.clone() }), &statement(writes), &values(rider))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limit = std::time::Duration::from_secs(60);
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(limit, test).await.unwrap_or_else(|_| panic!("nothing moves any more"));
    });
}

#[test]
fn slow_heads_hold_up_nobody() {
    run(async {
        let server = Server::start().await;
        let (lanes, ears) = (server.lanes(&Budget::new(Some(100))), Rc::new(Ears::default()));
        // Slow ones between fast ones, all of them at once.
        let slow: BTreeSet<usize> = (0..200).filter(|n| n % 7 == 3).collect();
        *server.slow.borrow_mut() = slow.clone();
        assert!((0..200).all(|n| ride(&lanes, &ears, n, false)));
        let mut leased = BTreeSet::new();
        let mut seen = 0;
        loop {
            ears.wait(|heard| heard.len() > seen || heard.iter().filter(|(n, _)| !slow.contains(n)).count() == 200)
                .await;
            let new: Vec<(usize, Heard)> = ears.heard.borrow()[seen..].to_vec();
            seen += new.len();
            for (rider, heard) in new {
                match heard {
                    Heard::Row(row) => assert_eq!(row, rider),
                    // As the router does: another lane, and where there is none a lease.
                    Heard::Again(Again::HeldUp) => {
                        if !ride(&lanes, &ears, rider, false) {
                            leased.insert(rider);
                        }
                    }
                    other => panic!("{rider} heard {other:?}"),
                }
            }
            let answered: BTreeSet<usize> =
                ears.heard.borrow().iter().filter(|(_, h)| matches!(h, Heard::Row(_))).map(|(n, _)| *n).collect();
            assert!(answered.is_disjoint(&slow), "nothing slow was released yet");
            if (0..200).filter(|n| !slow.contains(n)).all(|n| answered.contains(&n) || leased.contains(&n)) {
                break;
            }
        }
        assert!(server.most.get() <= 8, "{} lanes were open", server.most.get());
        server.released.send_replace(true);
        ears.wait(|heard| {
            let done = |n: &usize| leased.contains(n) || heard.iter().any(|(who, h)| who == n && *h == Heard::Row(*n));
            (0..200).all(|n| done(&n))
        })
        .await;
        for rider in 0..200 {
            let rows = ears.of(rider).iter().filter(|h| matches!(h, Heard::Row(_))).count();
            assert_eq!(rows, usize::from(!leased.contains(&rider)), "rider {rider}");
        }
    });
}

#[test]
fn a_server_that_hangs_up_fails_only_writes_that_left() {
    run(async {
        let server = Server::start().await;
        let (lanes, ears) = (server.lanes(&Budget::new(Some(100))), Rc::new(Ears::default()));
        *server.fatal.borrow_mut() = HashMap::from([(5, true), (6, false), (15, true), (16, false)]);
        for n in 0..10 {
            assert!(ride(&lanes, &ears, n, false));
            assert!(ride(&lanes, &ears, n + 10, true));
        }
        ears.wait(|heard| heard.len() == 20).await;
        for n in 0..10 {
            let [heard] = ears.of(n).try_into().unwrap();
            assert!(matches!(heard, Heard::Row(_) | Heard::Again(Again::NotSent)), "read {n} heard {heard:?}");
            let [heard] = ears.of(n + 10).try_into().unwrap();
            let expected = if matches!(n, 5 | 6) { Heard::Lost } else { Heard::Row(n + 10) };
            assert_eq!(heard, expected, "write {n}");
        }
        let ran = server.ran.borrow();
        assert!((10..20).all(|n| ran.iter().filter(|r| **r == n).count() == usize::from(n != 16)), "{ran:?}");
    });
}

#[test]
fn a_lane_that_does_not_come_up_keeps_nothing_from_one_that_is_idle() {
    run(async {
        let server = Server::start().await;
        let (lanes, ears) = (server.lanes(&Budget::new(Some(100))), Rc::new(Ears::default()));
        *server.stalled.borrow_mut() = BTreeSet::from([0]);
        // Two that may not share a transaction: two lanes.
        assert!(ride(&lanes, &ears, 1, true) && ride(&lanes, &ears, 2, true));
        ears.wait(|heard| heard.len() == 2).await;
        assert!(server.accepted.get() > 1);
        for n in 3..6 {
            assert!(ride(&lanes, &ears, n, true));
            ears.wait(|heard| heard.len() == n).await;
        }
        server.released.send_replace(true);
        let mut told: Vec<_> = ears.heard.borrow().clone();
        told.sort_by_key(|(rider, _)| *rider);
        assert_eq!(told, (1..6).map(|n| (n, Heard::Row(n))).collect::<Vec<_>>());
    });
}

#[test]
fn lanes_of_all_clients_together_take_no_more_than_their_part() {
    run(async {
        let server = Server::start().await;
        // Of ten connections three are for lanes.
        let budget = Budget::new(Some(10));
        let (one, two) = (server.lanes(&budget), server.lanes(&budget));
        let ears = Rc::new(Ears::default());
        *server.slow.borrow_mut() = (0..20).collect();
        assert!((0..10).all(|n| ride(&one, &ears, n, true)), "writes wait for a lane where there is one");
        assert!(!ride(&two, &ears, 10, true), "there is no place, and no lane to wait for");
        assert!(!ride(&two, &ears, 11, false));
        server.released.send_replace(true);
        ears.wait(|heard| heard.len() == 10).await;
        assert_eq!(server.most.get(), 3);
        assert_eq!(one.count(), 3);
        // Closed lanes give their places to others.
        one.close();
        while server.open.get() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(ride(&two, &ears, 11, false));
        ears.wait(|heard| heard.iter().any(|(n, _)| *n == 11)).await;
        assert_eq!(ears.of(11), [Heard::Row(11)]);
        assert!((0..10).all(|n| ears.of(n) == [Heard::Row(n)]));
    });
}

#[test]
fn riders_of_lanes_that_are_closed_are_answered_first() {
    run(async {
        let server = Server::start().await;
        let (lanes, ears) = (server.lanes(&Budget::new(Some(10))), Rc::new(Ears::default()));
        *server.slow.borrow_mut() = BTreeSet::from([0, 1, 2]);
        for n in 0..6 {
            assert!(ride(&lanes, &ears, n, n % 2 == 0));
        }
        lanes.close();
        assert!(!ride(&lanes, &ears, 7, false));
        server.released.send_replace(true);
        ears.wait(|heard| heard.len() == 6).await;
        for n in 0..6 {
            let heard = ears.of(n);
            let well = heard == [Heard::Row(n)]
                || heard == [Heard::Again(Again::NotSent)]
                || (n % 2 == 1 && heard == [Heard::Again(Again::HeldUp)]);
            assert!(well, "{n} heard {heard:?}");
        }
        while server.open.get() > 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn writes_share_a_transaction_and_go_round_one_that_waits() {
    run(async {
        let server = Server::start().await;
        let (lanes, ears) = (server.lanes(&Budget::new(Some(100))), Rc::new(Ears::default()));
        let mut shared = Rc::into_inner(statement(true)).unwrap();
        shared.shares = true;
        let shared = Rc::new(shared);
        let ride = |rider| lanes.ride(Rc::new(Ear { rider, ears: ears.clone() }), &shared, &values(rider));
        assert!((0..50).all(ride));
        ears.wait(|heard| heard.len() == 50).await;
        assert!((0..50).all(|n| ears.of(n) == [Heard::Row(n)]));
        // Where the first lane takes long to come up, another is on its way.
        assert_eq!(server.syncs.get(), 1, "what waits for a lane leaves together");
        *server.slow.borrow_mut() = BTreeSet::from([50]);
        assert!(ride(50));
        // It has left before the others come.
        while !server.waits.get() {
            tokio::task::yield_now().await;
        }
        assert!((51..60).all(ride));
        ears.wait(|heard| heard.len() == 59).await;
        assert!(ears.of(50).is_empty() && (51..60).all(|n| ears.of(n) == [Heard::Row(n)]));
        server.released.send_replace(true);
        ears.wait(|heard| heard.len() == 60).await;
        assert!((50..60).all(|n| ears.of(n) == [Heard::Row(n)]));
    });
}
