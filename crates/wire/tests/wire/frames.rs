use bytes::{BufMut, Bytes, BytesMut};
use pgherd_wire::frame::{LARGE_MESSAGE_LEN_MAX, frontend_len_max};
use pgherd_wire::frontend::{write_cancel, write_gssenc_request, write_ssl_request, write_startup};
use pgherd_wire::{Frame, ProtocolError, Startup, next_frame, next_startup, peek_frame};

/// Three messages as psql sends them: Query "SELECT 1", Sync, Terminate.
const STREAM: &[u8] = b"Q\0\0\0\x0dSELECT 1\0S\0\0\0\x04X\0\0\0\x04";

fn frames(buf: &mut BytesMut) -> Vec<Frame> {
    std::iter::from_fn(|| next_frame(buf, 1000).unwrap()).collect()
}

#[test]
fn frames_are_the_same_wherever_the_stream_is_split() {
    let whole = frames(&mut BytesMut::from(STREAM));
    let shown: Vec<_> = whole.iter().map(|frame| (frame.tag(), frame.body(), frame.raw.len())).collect();
    assert_eq!(shown, [(b'Q', &b"SELECT 1\0"[..], 14), (b'S', b"", 5), (b'X', b"", 5)]);
    for split in 0..=STREAM.len() {
        let mut buf = BytesMut::from(&STREAM[..split]);
        let mut got = frames(&mut buf);
        buf.extend_from_slice(&STREAM[split..]);
        got.extend(frames(&mut buf));
        assert_eq!(got, whole, "split at {split}");
        assert!(buf.is_empty());
    }
}

#[test]
fn a_frame_is_split_off_without_copying() {
    let mut buf = BytesMut::from(STREAM);
    let start = buf.as_ptr();
    let frame = next_frame(&mut buf, 1000).unwrap().unwrap();
    assert_eq!(frame.raw.as_ptr(), start);
    assert_eq!(frame.body_bytes().as_ptr(), start.wrapping_add(5));
    assert_eq!(frame.body_bytes(), frame.body());
}

#[test]
fn only_whole_frames_are_peeked() {
    for end in 0..=STREAM.len() {
        assert_eq!(peek_frame(&STREAM[..end]), (end >= 14).then_some((b'Q', 14)), "{end} bytes");
    }
    assert_eq!(peek_frame(b"Q\0\0\0\x03"), None);
}

#[test]
fn lengths_out_of_bounds_end_the_stream() {
    let error = |bytes: &[u8], max| next_frame(&mut BytesMut::from(bytes), max).unwrap_err();
    let invalid = ProtocolError::fatal("invalid message length");
    assert_eq!(error(b"Q\0\0\0\x03", 100), invalid);
    assert_eq!(error(b"Q\0\0\0\0", 100), invalid);
    assert_eq!(error(b"Q\0\0\0\x65", 100), invalid);
    assert_eq!(error(b"Q\xff\xff\xff\xff", LARGE_MESSAGE_LEN_MAX), invalid);
    assert_eq!(next_frame(&mut BytesMut::from(&b"Q\0\0\0\x64"[..]), 100), Ok(None));
}

#[test]
fn limits_depend_on_the_message() {
    assert_eq!(frontend_len_max(b'Q'), Ok(LARGE_MESSAGE_LEN_MAX));
    assert_eq!(frontend_len_max(b'S'), Ok(10_000));
    assert_eq!(frontend_len_max(b'z').unwrap_err().message, "invalid frontend message type 122");
}

#[test]
fn a_frame_made_by_hand_from_too_few_bytes_is_empty() {
    let frame = Frame { raw: Bytes::from_static(b"Q\0") };
    assert_eq!((frame.tag(), frame.body(), frame.body_bytes().len()), (b'Q', &b""[..], 0));
    assert_eq!(Frame { raw: Bytes::new() }.tag(), 0);
}

/// psql 15 with -h, as it was recorded.
const STARTUP: &[u8] = b"\0\0\0\x54\0\x03\0\0user\0postgres\0database\0postgres\0application_name\0psql\0\
                         client_encoding\0UTF8\0\0";

fn startup_of(bytes: &[u8]) -> Result<Option<Startup>, ProtocolError> {
    next_startup(&mut BytesMut::from(bytes))
}

#[test]
fn startup_is_the_same_wherever_it_is_split() {
    let pairs =
        [("user", "postgres"), ("database", "postgres"), ("application_name", "psql"), ("client_encoding", "UTF8")];
    let params = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let expected = Startup::Startup { version: (3, 0), params };
    for split in 0..STARTUP.len() {
        let mut buf = BytesMut::from(&STARTUP[..split]);
        assert_eq!(next_startup(&mut buf), Ok(None), "split at {split}");
        assert_eq!(buf.len(), split);
        buf.extend_from_slice(&STARTUP[split..]);
        buf.put_slice(b"next");
        assert_eq!(next_startup(&mut buf).unwrap().unwrap(), expected, "split at {split}");
        assert_eq!(buf, "next");
    }
    let mut written = BytesMut::new();
    write_startup(&mut written, (3, 0), &pairs);
    assert_eq!(written, STARTUP);
}

#[test]
fn requests_before_startup_are_told_apart() {
    let mut buf = BytesMut::new();
    write_ssl_request(&mut buf);
    write_gssenc_request(&mut buf);
    write_cancel(&mut buf, -7, b"\x01\x02\x03\x04");
    write_cancel(&mut buf, 7, &[9; 256]);
    assert_eq!(buf[..24], *b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x08\x04\xd2\x16\x30\0\0\0\x10\x04\xd2\x16\x2e");
    assert_eq!(next_startup(&mut buf), Ok(Some(Startup::SslRequest)));
    assert_eq!(next_startup(&mut buf), Ok(Some(Startup::GssEncRequest)));
    let key = Bytes::from_static(b"\x01\x02\x03\x04");
    assert_eq!(next_startup(&mut buf), Ok(Some(Startup::Cancel { pid: -7, key })));
    assert_eq!(next_startup(&mut buf), Ok(Some(Startup::Cancel { pid: 7, key: Bytes::from(vec![9; 256]) })));
    assert_eq!(next_startup(&mut buf), Ok(None));
}

#[test]
fn a_newer_minor_version_is_for_the_caller_to_negotiate() {
    let startup = startup_of(b"\0\0\0\x09\0\x03\x27\x0f\0").unwrap().unwrap();
    assert_eq!(startup, Startup::Startup { version: (3, 9999), params: vec![] });
}

#[test]
fn broken_startup_packets() {
    fn check(bytes: &[u8], expected: &str) {
        let error = startup_of(bytes).unwrap_err();
        assert!(error.fatal);
        assert_eq!(error.log_only, expected.contains("invalid length"));
        assert_eq!(format!("{} {}", error.sqlstate, error.message), expected);
    }
    let layout = "08P01 invalid startup packet layout: expected terminator as last byte";
    check(b"\0\0\0\x07", "08P01 invalid length of startup packet");
    check(b"\0\0\x27\x15", "08P01 invalid length of startup packet");
    check(b"GET / HTTP/1.1\r\n", "08P01 invalid length of startup packet");
    assert_eq!(startup_of(b"\0\0\x27\x14"), Ok(None));
    check(b"\0\0\0\x08\0\x03\0\0", layout);
    check(b"\0\0\0\x0d\0\x03\0\0user\0", layout);
    check(b"\0\0\0\x0f\0\x03\0\0user\0me", layout);
    check(b"\0\0\0\x10\0\x03\0\0user\0me\0", layout);
    check(b"\0\0\0\x12\0\x03\0\0user\0me\0\0x", layout);
    check(b"\0\0\0\x11\0\x03\0\0user\0m\xff\0\0", "22021 invalid byte sequence for encoding \"UTF8\": 0xff");
    check(b"\0\0\0\x08\0\x02\0\0", "0A000 unsupported frontend protocol 2.0: server supports 3.0 to 3.2");
    check(b"\0\0\0\x08\0\x04\0\x01", "0A000 unsupported frontend protocol 4.1: server supports 3.0 to 3.2");
    check(b"\0\0\0\x0a\x04\xd2\x16\x2e\0\0", "08P01 invalid length of cancel request packet");
    check(b"\0\0\0\x0c\x04\xd2\x16\x2e\0\0\0\x01", "08P01 invalid length of cancel key in cancel request packet");
    let mut long = BytesMut::new();
    write_cancel(&mut long, 1, &[0; 257]);
    check(&long, "08P01 invalid length of cancel key in cancel request packet");
}
