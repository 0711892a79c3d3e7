//! What travels with a request must not be separable from it: a server that refuses BEGIN (a cancel may hit it) must
//! not run the statement behind it outside a transaction. A scripted peer stands in for the server.
#![allow(clippy::unwrap_used)]

use bytes::BytesMut;
use pgherd_backend::{Address, Connection, Credentials, Target, connect};
use pgherd_wire::backend::{self, ErrorFields};
use pgherd_wire::frame::{Frame, next_frame, next_startup};
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Peer {
    stream: TcpStream,
    buf: BytesMut,
}

impl Peer {
    async fn frame(&mut self) -> Frame {
        loop {
            if let Some(frame) = next_frame(&mut self.buf, 1 << 20).unwrap() {
                return frame;
            }
            assert!(self.stream.read_buf(&mut self.buf).await.unwrap() > 0, "the connection ended");
        }
    }

    /// Messages up to the end of a request, each as its tag, and the text of a Query.
    async fn request(&mut self) -> String {
        let mut tags = String::new();
        loop {
            let frame = self.frame().await;
            tags.push(char::from(frame.tag()));
            match frame.tag() {
                b'Q' => {
                    let text = frame.body().strip_suffix(b"\0").unwrap();
                    return format!("{tags} {}", std::str::from_utf8(text).unwrap());
                }
                b'S' => return tags,
                _ => {}
            }
        }
    }

    async fn answer(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        write(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }
}

async fn pair() -> (Connection, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = Target {
        address: Address { host: "127.0.0.1".into(), port },
        user: "u".into(),
        database: "d".into(),
        credentials: Credentials::None,
        parameters: Vec::new(),
        label: None,
    };
    let peer = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut peer = Peer { stream, buf: BytesMut::new() };
        while next_startup(&mut peer.buf).unwrap().is_none() {
            peer.stream.read_buf(&mut peer.buf).await.unwrap();
        }
        peer.answer(|out| {
            backend::write_authentication_ok(out);
            backend::write_ready_for_query(out, b'I');
        })
        .await;
        peer
    };
    let (connection, peer) = tokio::join!(connect(&target), peer);
    (connection.unwrap(), peer)
}

fn cancelled(out: &mut BytesMut, position: Option<&str>) {
    let mut fields = ErrorFields::new("ERROR", "57014", "canceling statement due to user request");
    if let Some(position) = position {
        fields.set(b'P', position);
    }
    backend::write_error(out, &fields);
    backend::write_ready_for_query(out, b'I');
}

fn insert(connection: &mut Connection) {
    frontend::write_parse(connection.buffer(), "", "INSERT INTO t VALUES (1)", &[]);
    frontend::write_bind::<&[u8]>(connection.buffer(), "", "", &[], &[], &[]);
    frontend::write_execute(connection.buffer(), "", 0);
    connection.send_sync();
}

#[tokio::test(flavor = "current_thread")]
async fn steps_are_under_the_sync_of_the_statement() {
    let (mut connection, mut peer) = pair().await;
    connection.add_step("BEGIN");
    connection.add_step("SAVEPOINT s");
    insert(&mut connection);
    connection.flush().await.unwrap();
    assert_eq!(peer.request().await, "CPBEPBEPBES");
    peer.answer(|out| cancelled(out, None)).await;
    assert_eq!(connection.frame().await.unwrap().tag(), b'E');
    assert_eq!(connection.frame().await.unwrap().tag(), b'Z');
    assert!(connection.is_idle());
}

#[tokio::test(flavor = "current_thread")]
async fn begin_is_parsed_until_the_server_has_said_that_it_was() {
    let (mut connection, mut peer) = pair().await;
    for (sent, parses) in [("CPBEPBES", false), ("CPBEPBES", true), ("BEPBES", false)] {
        connection.add_step("BEGIN");
        insert(&mut connection);
        connection.flush().await.unwrap();
        assert_eq!(peer.request().await, sent);
        if sent.starts_with('C') && !parses {
            peer.answer(|out| cancelled(out, None)).await;
            assert_eq!(connection.frame().await.unwrap().tag(), b'E');
        } else {
            peer.answer(|out| {
                if parses {
                    backend::write_close_complete(out);
                    backend::write_parse_complete(out);
                }
                backend::write_bind_complete(out);
                backend::write_command_complete(out, "BEGIN");
                backend::write_parse_complete(out);
                backend::write_bind_complete(out);
                backend::write_command_complete(out, "INSERT 0 1");
                backend::write_ready_for_query(out, b'I');
            })
            .await;
            assert_eq!(connection.frame().await.unwrap().tag(), b'1');
            assert_eq!(connection.frame().await.unwrap().tag(), b'2');
            assert_eq!(connection.frame().await.unwrap().tag(), b'C');
        }
        assert_eq!(connection.frame().await.unwrap().tag(), b'Z');
        assert!(connection.is_idle());
    }
}

#[tokio::test(flavor = "current_thread")]
async fn steps_are_in_the_query_of_the_statement() {
    let (mut connection, mut peer) = pair().await;
    connection.add_step("BEGIN");
    connection.add_step("SET CONSTRAINTS ALL DEFERRED -- é");
    connection.send_query("COPY t FROM STDIN");
    connection.flush().await.unwrap();
    assert_eq!(peer.request().await, "Q BEGIN\n;SET CONSTRAINTS ALL DEFERRED -- é\n;COPY t FROM STDIN");
    let before = "BEGIN\n;SET CONSTRAINTS ALL DEFERRED -- é\n;".chars().count();
    peer.answer(|out| cancelled(out, Some(&(before + 6).to_string()))).await;
    let error = backend::parse_error(&connection.frame().await.unwrap()).unwrap();
    assert_eq!(error.get(b'P'), Some("6"));
    assert_eq!(connection.frame().await.unwrap().tag(), b'Z');
    assert!(connection.is_idle());
}

#[tokio::test(flavor = "current_thread")]
async fn replies_to_steps_are_nobodys() {
    let (mut connection, mut peer) = pair().await;
    connection.add_step("BEGIN");
    connection.add_step("SELECT pg_catalog.set_config('a.b', 'c', true)");
    insert(&mut connection);
    connection.flush().await.unwrap();
    peer.request().await;
    peer.answer(|out| {
        for tag in ["BEGIN", "SELECT 1", "INSERT 0 1"] {
            backend::write_parse_complete(out);
            backend::write_bind_complete(out);
            if tag == "SELECT 1" {
                backend::write_data_row(out, &[Some(b"c")]);
            }
            backend::write_command_complete(out, tag);
        }
        backend::write_ready_for_query(out, b'T');
    })
    .await;
    let mut seen = String::new();
    loop {
        let frame = connection.frame().await.unwrap();
        seen.push(char::from(frame.tag()));
        match frame.tag() {
            b'C' => assert_eq!(backend::parse_command_complete(&frame).unwrap(), "INSERT 0 1"),
            b'Z' => break,
            _ => {}
        }
    }
    assert_eq!(seen, "12CZ");
    assert_eq!(connection.status, b'T');
}
