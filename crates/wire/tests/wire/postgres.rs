//! PostgreSQL as the oracle: what it makes of COPY data and what it says to our messages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use bytes::BytesMut;
use pgherd_testkit::client::{Client, Reply};
use pgherd_testkit::{Plain, pg_bin};
use pgherd_wire::backend::{self, Authentication, field};
use pgherd_wire::copy::{BINARY_HEADER, CopyError, CopyFormat, CopyOptions, Header, KeyField, write_binary_row};
use pgherd_wire::frame::LARGE_MESSAGE_LEN_MAX;
use pgherd_wire::scram::{MECHANISM, ScramClient, ScramServer, ScramVerifier, build_verifier};
use pgherd_wire::{ErrorFields, Frame, frontend, next_frame};

use crate::copy::split_pieces;
use crate::random::Random;

/// One server for all tests here; it ends with the process.
static SERVER: LazyLock<Mutex<Plain>> =
    LazyLock::new(|| Mutex::new(Plain::start(&pg_bin().unwrap(), "postgres").unwrap()));

fn server() -> MutexGuard<'static, Plain> {
    SERVER.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Rows of two columns.
type Rows = Vec<[Option<Vec<u8>>; 2]>;

/// What PostgreSQL makes of the data: the rows, or the error.
fn postgresql(client: &mut Client, sql: &str, data: &[u8]) -> Result<Rows, ErrorFields> {
    client.run("TRUNCATE t").unwrap();
    let reply: Reply = client.simple(sql, Some(data)).unwrap();
    if let Some(error) = reply.error() {
        let fields = error.0.iter().map(|(code, text)| (*code as u8, text.clone())).collect();
        return Err(ErrorFields { fields });
    }
    let reply = client.run("SELECT a, b FROM t ORDER BY ctid").unwrap();
    let rows = reply.answers[0].rows.iter();
    Ok(rows.map(|row| [row[0].clone(), row[1].clone()]).collect())
}

/// What we make of it: each column in turn is the key. Also the rows' own bytes.
fn ours(options: &CopyOptions, pieces: &[&[u8]]) -> Result<(Rows, Vec<u8>), CopyError> {
    let (first, _, error) = split_pieces(options, 0, 2, pieces);
    let (second, _, error_again) = split_pieces(options, 1, 2, pieces);
    assert_eq!(error, error_again);
    if let Some(error) = error {
        return Err(error);
    }
    let text = |key: &KeyField<'_>| match key {
        KeyField::Null => None,
        // The table's default.
        KeyField::Default => Some(b"the default".to_vec()),
        KeyField::Text(bytes) | KeyField::Binary(bytes) => Some(bytes.to_vec()),
    };
    assert_eq!(first.len(), second.len());
    let rows = first.iter().zip(&second).map(|(a, b)| [text(&a.1), text(&b.1)]).collect();
    Ok((rows, first.iter().flat_map(|row| row.0.clone()).collect()))
}

/// Cuts the data into up to four pieces.
fn pieces<'a>(random: &mut Random, data: &'a [u8]) -> Vec<&'a [u8]> {
    let mut cuts = [0; 3].map(|_: usize| random.below(data.len() + 1));
    cuts.sort();
    let [a, b, c] = cuts;
    vec![&data[..a], &data[a..b], &data[b..c], &data[c..]]
}

/// Compares one COPY, then once more with only the bytes of the rows that came out of it.
fn compare(client: &mut Client, random: &mut Random, options: &CopyOptions, with: &str, data: &[u8]) -> &'static str {
    let sql = format!("COPY t FROM STDIN WITH ({with})");
    let expected = postgresql(client, &sql, data);
    let got = ours(options, &pieces(random, data));
    let case = format!("{sql} \"{}\"", data.escape_ascii());
    match (expected, got) {
        (Ok(expected), Ok((rows, raw))) => {
            assert_eq!(rows, expected, "{case}");
            let (sql, raw) = match options.format {
                CopyFormat::Binary => (sql, [&BINARY_HEADER[..], &raw].concat()),
                _ => (sql.replace("HEADER match", "HEADER false").replace("HEADER true", "HEADER false"), raw),
            };
            let again = postgresql(client, &sql, &raw);
            assert_eq!(again.as_ref(), Ok(&expected), "{case}: the rows' own bytes \"{}\"", raw.escape_ascii());
            "rows"
        }
        // Contents of fields are for the server to refuse, and so are options that do not go together.
        (Err(error), _) if ["22021", "0A000"].contains(&error.sqlstate()) => "others",
        (Err(expected), Err(error)) => {
            let fields = error.to_fields("t");
            for code in [field::SEVERITY, field::SQLSTATE, field::MESSAGE, field::DETAIL, field::HINT, field::WHERE] {
                assert_eq!(fields.get(code), expected.get(code), "{case}: field {}", char::from(code));
            }
            "errors"
        }
        (Err(expected), Ok(rows)) => panic!("{case}: PostgreSQL says {expected:?}, we see {rows:?}"),
        (Ok(expected), Err(error)) => panic!("{case}: PostgreSQL sees {expected:?}, we say {error}"),
    }
}

struct Oracle {
    client: Client,
    major: u32,
    random: Random,
    counts: [(&'static str, usize); 3],
}

impl Oracle {
    fn new(table: &str, seed: u64) -> Self {
        let mut client = Client::connect(&server().target).unwrap();
        client.run(&format!("CREATE TEMP TABLE t ({table})")).unwrap();
        let major = client.value("SHOW server_version_num").unwrap().parse::<u32>().unwrap() / 10_000;
        let counts = [("rows", 0), ("errors", 0), ("others", 0)];
        Self { client, major, random: Random::new(seed), counts }
    }

    fn compare(&mut self, options: &CopyOptions, with: &str, data: &[u8]) {
        let outcome = compare(&mut self.client, &mut self.random, options, with, data);
        self.counts.iter_mut().filter(|(name, _)| *name == outcome).for_each(|(_, count)| *count += 1);
    }

    fn options(&self, format: CopyFormat) -> CopyOptions {
        CopyOptions { column_names: vec!["a".into(), "b".into()], ..CopyOptions::new(format, self.major) }
    }

    /// Both outcomes must have been seen, or the comparison says nothing.
    fn check_counts(&self) {
        println!("{:?}", self.counts);
        assert!(self.counts[0].1 > 50 && self.counts[1].1 > 50, "{:?}", self.counts);
    }
}

/// Data in which lines and fields are likely: each line two fields of `letters`, now and then spoiled.
fn lines(random: &mut Random, delimiter: &str, letters: &[&str]) -> Vec<u8> {
    let newline = *random.pick(&["\n", "\n", "\r\n", "\r"]);
    // Half of them hold only letters that mean little, or nearly all would be errors.
    let letters = if random.below(2) == 0 { &letters[..letters.len() / 2] } else { letters };
    let mut data = String::new();
    for line in 0..random.below(5) {
        if line > 0 {
            data += if random.below(12) == 0 { *random.pick(&["\n", "\r\n", "\r"]) } else { newline };
        }
        for index in 0..2 {
            if index > 0 {
                data += delimiter;
            }
            for _ in 0..random.below(5) {
                data += random.pick::<&str>(letters);
            }
        }
        match random.below(15) {
            0 => data += delimiter,
            1 => data += "\\.",
            2 => data += &format!("{newline}\\.{newline}"),
            3 => data += &format!("{newline}\\."),
            _ => {}
        }
    }
    if random.below(3) > 0 {
        data += newline;
    }
    data.into_bytes()
}

#[test]
fn text_rows_are_postgresqls() {
    let mut oracle = Oracle::new("a text DEFAULT 'the default', b text DEFAULT 'the default'", 0x7465_7874);
    let letters =
        ["a", "N", "\\N", "\\", "\\\\", "\\t", "\\n", "\\x4", "\\x", "1", "\\1", "\\14", "\\141", ".", "x", "ä"];
    for _ in 0..700 {
        let mut options = oracle.options(CopyFormat::Text);
        let mut with = "FORMAT text".to_owned();
        if oracle.random.below(3) == 0 {
            options.delimiter = *oracle.random.pick(b"|A\x01");
            with += &format!(", DELIMITER E'\\x{:02x}'", options.delimiter);
        }
        if oracle.random.below(3) == 0 {
            options.null = (*oracle.random.pick(&["", "x", "N"])).to_owned();
            with += &format!(", NULL '{}'", options.null);
        }
        if oracle.major >= 16 && oracle.random.below(3) == 0 {
            options.default = Some((*oracle.random.pick(&["\\D", "a1", "\\1"])).to_owned());
            with += &format!(", DEFAULT '{}'", options.default.as_deref().unwrap());
        }
        let delimiter = char::from(options.delimiter).to_string();
        let mut data = lines(&mut oracle.random, &delimiter, &letters);
        header(&mut oracle.random, &mut options, &mut with, &mut data);
        oracle.compare(&options, &with, &data);
    }
    oracle.check_counts();
}

/// Sometimes a header line, right or wrong.
fn header(random: &mut Random, options: &mut CopyOptions, with: &mut String, data: &mut Vec<u8>) {
    match random.below(6) {
        0 => {
            options.header = Header::Skip;
            *with += ", HEADER true";
        }
        1 => {
            options.header = Header::Match;
            *with += ", HEADER match";
            let delimiter = char::from(options.delimiter);
            let names = random.pick(&["a?b", "a?b", "a?b", "a?c", "a", "a?b?c", "?b", "a?\"b\""]);
            let names = names.replace('?', &delimiter.to_string());
            data.splice(0..0, format!("{names}\n").into_bytes());
        }
        _ => {}
    }
}

#[test]
fn csv_rows_are_postgresqls() {
    let mut oracle = Oracle::new("a text DEFAULT 'the default', b text DEFAULT 'the default'", 0x0063_7376);
    let letters = [
        "a",
        "N",
        ".",
        "ä",
        "\"a\"",
        "\"a\nb\"",
        "\"\"\"\"",
        "\"a\\\"\"\"",
        "'a'",
        "\\",
        "\"",
        "\"",
        "\"\"",
        "\\\"",
        "'",
        "\n",
        "\r",
        ",",
    ];
    for _ in 0..900 {
        let mut options = oracle.options(CopyFormat::Csv);
        let mut with = "FORMAT csv".to_owned();
        if oracle.random.below(4) == 0 {
            options.delimiter = *oracle.random.pick(b";a\t");
            with += &format!(", DELIMITER E'\\x{:02x}'", options.delimiter);
        }
        if oracle.random.below(4) == 0 {
            (options.quote, options.escape) = *oracle.random.pick(&[(b'\'', b'\''), (b'"', b'\\'), (b'\'', b'"')]);
            with += &format!(", QUOTE E'\\x{:02x}', ESCAPE E'\\x{:02x}'", options.quote, options.escape);
        }
        if oracle.random.below(4) == 0 {
            options.null = (*oracle.random.pick(&["N", "\\N", "."])).to_owned();
            with += &format!(", NULL '{}'", options.null);
        }
        if oracle.major >= 16 && oracle.random.below(4) == 0 {
            options.default = Some((*oracle.random.pick(&["\\D", "aN", "N."])).to_owned());
            with += &format!(", DEFAULT '{}'", options.default.as_deref().unwrap());
        }
        match oracle.random.below(8) {
            0 => {
                options.force_null = true;
                with += ", FORCE_NULL (a, b)";
            }
            1 => {
                options.force_not_null = true;
                with += ", FORCE_NOT_NULL (a, b)";
            }
            _ => {}
        }
        let delimiter = char::from(options.delimiter).to_string();
        let mut data = lines(&mut oracle.random, &delimiter, &letters);
        header(&mut oracle.random, &mut options, &mut with, &mut data);
        oracle.compare(&options, &with, &data);
    }
    oracle.check_counts();
}

#[test]
fn binary_tuples_are_postgresqls() {
    let mut oracle = Oracle::new("a text, b text", 0x6269_6e61);
    let options = oracle.options(CopyFormat::Binary);
    for _ in 0..400 {
        let random = &mut oracle.random;
        let mut data = BytesMut::from(&BINARY_HEADER[..]);
        for _ in 0..random.below(4) {
            let row = [(); 2].map(|()| match random.below(4) {
                0 => None,
                _ => Some((0..random.below(6)).map(|_| *random.pick(b"abc")).collect::<Vec<u8>>()),
            });
            write_binary_row(&mut data, &row);
        }
        if random.below(3) > 0 {
            data.extend_from_slice(&[0xff, 0xff]);
        }
        match random.below(3) {
            0 => data.truncate(random.below(data.len() + 1)),
            1 => {
                let at = random.below(data.len());
                data[at] = *random.pick(&[0, 1, 2, 3, 0xff, 0x80]);
            }
            _ => {}
        }
        // A field of a gigabyte is refused by both, in other words.
        if oracle_is_too_long(&data) {
            continue;
        }
        oracle.compare(&options, "FORMAT binary", &data);
    }
    oracle.check_counts();
}

/// Some length in it says more than PostgreSQL may ask of its memory.
fn oracle_is_too_long(data: &[u8]) -> bool {
    let (_, _, error) = split_pieces(&CopyOptions::new(CopyFormat::Binary, 18), 0, 2, &[data]);
    error.is_some_and(|error| error.sqlstate() == "54000")
}

/// A connection that speaks through this crate only.
struct Wire {
    stream: TcpStream,
    write: BytesMut,
    read: BytesMut,
}

impl Wire {
    fn open(plain: &Plain) -> Self {
        let stream = TcpStream::connect((plain.target.host.as_str(), plain.target.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream, write: BytesMut::new(), read: BytesMut::new() }
    }

    fn frame(&mut self) -> Frame {
        if !self.write.is_empty() {
            self.stream.write_all(&self.write.split()).unwrap();
        }
        loop {
            if let Some(frame) = next_frame(&mut self.read, LARGE_MESSAGE_LEN_MAX).unwrap() {
                return frame;
            }
            let mut chunk = [0; 4096];
            let len = self.stream.read(&mut chunk).unwrap();
            assert!(len > 0, "the server closed the connection");
            self.read.extend_from_slice(&chunk[..len]);
        }
    }

    /// Frames up to ReadyForQuery, which must say `status`.
    fn until_ready(&mut self, status: u8) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.frame();
            if frame.tag() == backend::tag::READY_FOR_QUERY {
                assert_eq!(u8::from(backend::parse_ready_for_query(&frame).unwrap()), status);
                return frames;
            }
            frames.push(frame);
        }
    }

    /// Logs in, by SCRAM if the server asks; gives the error or what came between authentication and ReadyForQuery.
    fn log_in(&mut self, user: &str, scram: ScramClient) -> Result<Vec<Frame>, ErrorFields> {
        frontend::write_startup(&mut self.write, (3, 0), &[("user", user), ("database", "postgres")]);
        self.authenticate(scram)
    }

    fn authenticate(&mut self, mut scram: ScramClient) -> Result<Vec<Frame>, ErrorFields> {
        loop {
            let frame = self.frame();
            if frame.tag() == backend::tag::ERROR_RESPONSE {
                return Err(backend::parse_error(&frame).unwrap());
            }
            match backend::parse_authentication(&frame).unwrap() {
                Authentication::Ok => return Ok(self.until_ready(b'I')),
                Authentication::Sasl { mechanisms } => {
                    assert_eq!(mechanisms, [MECHANISM]);
                    frontend::write_sasl_initial(&mut self.write, MECHANISM, scram.first_message().as_bytes());
                }
                Authentication::SaslContinue { data } => {
                    let reply = scram.handle_server_first(&data).unwrap();
                    frontend::write_sasl_response(&mut self.write, reply.as_bytes());
                }
                Authentication::SaslFinal { data } => {
                    scram.handle_server_final(&data).unwrap();
                    assert!(scram.server_is_proven());
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_password_and_the_keys_of_an_exchange_log_in_by_scram() {
    let plain = server();
    let mut admin = Client::connect(&plain.target).unwrap();
    // PostgreSQL takes our verifier, and gives back the one that it made.
    let ours = build_verifier("pässword ☃", b"0123456789abcdef", 5000);
    admin.run(&format!("CREATE ROLE with_verifier LOGIN PASSWORD '{ours}'")).unwrap();
    admin.run("SET password_encryption = 'scram-sha-256'").unwrap();
    admin.run("CREATE ROLE with_password LOGIN PASSWORD U&'\\2168\\00AD'").unwrap();
    let verifier = admin.value("SELECT rolpassword FROM pg_authid WHERE rolname = 'with_password'").unwrap();
    let verifier = ScramVerifier::parse(&verifier).unwrap();
    assert!(verifier.verify_password("IX") && !verifier.verify_password("ix"));
    let data = admin.value("SHOW data_directory").unwrap();
    let rules = "host all with_verifier,with_password 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    std::fs::write(std::path::Path::new(&data).join("pg_hba.conf"), rules).unwrap();
    admin.run("SELECT pg_reload_conf()").unwrap();
    // Connections are accepted by the old rules until the postmaster has read the new ones.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while Wire::open(&plain).log_in("with_password", ScramClient::from_password("wrong", "n")).is_ok() {
        assert!(std::time::Instant::now() < deadline, "the server does not ask for a password");
        std::thread::sleep(Duration::from_millis(20));
    }

    let error = Wire::open(&plain).log_in("with_verifier", ScramClient::from_password("wrong", "n")).unwrap_err();
    assert_eq!((error.severity(), error.sqlstate()), ("FATAL", "28P01"));
    Wire::open(&plain).log_in("with_verifier", ScramClient::from_password("pässword ☃", "nonce")).unwrap();
    Wire::open(&plain).log_in("with_password", ScramClient::from_password("\u{2168}\u{ad}", "nonce")).unwrap();

    // A client proves itself to us; with the keys of that we log in as it.
    let mut client = ScramClient::from_password("IX", "ofTheClient");
    let mut server = ScramServer::new(verifier, "ofTheRouter");
    let server_first = server.handle_client_first(client.first_message().as_bytes()).unwrap();
    let client_final = client.handle_server_first(server_first.as_bytes()).unwrap();
    let (_, keys) = server.handle_client_final(client_final.as_bytes()).unwrap();
    let by_keys = ScramClient::from_keys(keys.client_key, keys.server_key, "nonce");
    let greeting = Wire::open(&plain).log_in("with_password", by_keys).unwrap();
    let tags: Vec<u8> = greeting.iter().map(Frame::tag).collect();
    assert!(tags.contains(&backend::tag::PARAMETER_STATUS) && tags.contains(&backend::tag::BACKEND_KEY_DATA));
}

#[test]
fn postgresql_understands_what_we_write_and_we_what_it_writes() {
    let plain = server();
    let mut wire = Wire::open(&plain);
    let greeting = wire.log_in("postgres", ScramClient::from_password("", "n")).unwrap();
    let key = greeting.iter().find(|frame| frame.tag() == backend::tag::BACKEND_KEY_DATA).unwrap();
    let (pid, _) = backend::parse_backend_key_data(key).unwrap();

    // The extended protocol, all in one packet.
    let buf = &mut wire.write;
    frontend::write_parse(buf, "s", "SELECT $1::int4 AS n, $2::text AS t", &[23]);
    frontend::write_describe(buf, b'S', "s");
    frontend::write_bind(buf, "p", "s", &[1, 0], &[Some(&[0, 0, 1, 2][..]), None], &[1, 0]);
    frontend::write_describe(buf, b'P', "p");
    frontend::write_execute(buf, "p", 1);
    frontend::write_execute(buf, "p", 0);
    frontend::write_close(buf, b'P', "p");
    frontend::write_parse(buf, "", "", &[]);
    frontend::write_bind(buf, "", "", &[], &[None::<&[u8]>; 0], &[]);
    frontend::write_describe(buf, b'P', "");
    frontend::write_execute(buf, "", 0);
    frontend::write_sync(buf);
    let frames = wire.until_ready(b'I');
    let tags: Vec<u8> = frames.iter().map(Frame::tag).collect();
    assert_eq!(String::from_utf8(tags).unwrap(), "1tT2TDsC312nI");
    assert_eq!(backend::parse_parameter_description(&frames[1]).unwrap(), [23, 25]);
    let columns = backend::parse_row_description(&frames[4]).unwrap();
    let shown: Vec<_> = columns.iter().map(|c| (c.name.as_str(), c.type_oid, c.type_len, c.format)).collect();
    assert_eq!(shown, [("n", 23, 4, 1), ("t", 25, -1, 0)]);
    let row: Vec<_> = backend::parse_data_row(&frames[5]).unwrap().map(|value| value.unwrap()).collect();
    assert_eq!(row, [Some(&[0, 0, 1, 2][..]), None]);
    assert_eq!(backend::parse_command_complete(&frames[7]).unwrap(), "SELECT 0");
    // What we would write for the same is the same, byte for byte.
    let mut again = BytesMut::new();
    backend::write_parse_complete(&mut again);
    backend::write_parameter_description(&mut again, &[23, 25]);
    backend::write_row_description(&mut again, &backend::parse_row_description(&frames[2]).unwrap());
    backend::write_bind_complete(&mut again);
    backend::write_row_description(&mut again, &columns);
    backend::write_data_row(&mut again, &row);
    backend::write_portal_suspended(&mut again);
    backend::write_command_complete(&mut again, "SELECT 0");
    backend::write_close_complete(&mut again);
    backend::write_parse_complete(&mut again);
    backend::write_bind_complete(&mut again);
    backend::write_no_data(&mut again);
    backend::write_empty_query_response(&mut again);
    assert_eq!(again, frames.iter().flat_map(|frame| frame.raw.to_vec()).collect::<Vec<u8>>());

    // Errors and notices with all their fields, in PostgreSQL's order.
    frontend::write_query(&mut wire.write, "CREATE TEMP TABLE u (id int PRIMARY KEY)");
    wire.until_ready(b'I');
    frontend::write_query(&mut wire.write, "BEGIN; DROP TABLE IF EXISTS nix; INSERT INTO u VALUES (1), (1)");
    let frames = wire.until_ready(b'E');
    let of_kind = |tag| frames.iter().find(|frame| frame.tag() == tag).unwrap();
    let notice = backend::parse_notice(of_kind(backend::tag::NOTICE_RESPONSE)).unwrap();
    assert_eq!((notice.severity(), notice.sqlstate()), ("NOTICE", "00000"));
    let error = backend::parse_error(of_kind(backend::tag::ERROR_RESPONSE)).unwrap();
    assert_eq!(error.get(field::CONSTRAINT), Some("u_pkey"));
    let mut rebuilt = ErrorFields::default();
    error.fields.iter().rev().for_each(|(code, text)| rebuilt.set(*code, text));
    let mut again = BytesMut::new();
    backend::write_error(&mut again, &rebuilt);
    assert_eq!(again, of_kind(backend::tag::ERROR_RESPONSE).raw, "set puts each field where PostgreSQL has it");

    // COPY both ways, and LISTEN.
    frontend::write_query(
        &mut wire.write,
        "ROLLBACK; TRUNCATE u; LISTEN ch; NOTIFY ch, 'hello'; COPY u FROM STDIN; COPY u TO STDOUT",
    );
    frontend::write_copy_data(&mut wire.write, b"1\n2");
    frontend::write_copy_data(&mut wire.write, b"0\n");
    frontend::write_copy_done(&mut wire.write);
    let frames = wire.until_ready(b'I');
    let of_kind = |tag| frames.iter().find(|frame| frame.tag() == tag).unwrap();
    let copy_in = backend::parse_copy_response(of_kind(backend::tag::COPY_IN_RESPONSE)).unwrap();
    assert_eq!((copy_in.format, copy_in.column_formats), (0, vec![0]));
    let out: Vec<&[u8]> =
        frames.iter().filter(|frame| frame.tag() == backend::tag::COPY_DATA).map(Frame::body).collect();
    assert_eq!(out, [b"1\n".as_slice(), b"20\n"]);
    let notification = backend::parse_notification(of_kind(backend::tag::NOTIFICATION_RESPONSE)).unwrap();
    assert_eq!((notification.pid, notification.channel.as_str(), notification.payload.as_str()), (pid, "ch", "hello"));
    frontend::write_query(&mut wire.write, "COPY u FROM STDIN");
    frontend::write_copy_fail(&mut wire.write, "enough");
    let frames = wire.until_ready(b'I');
    let error = backend::parse_error(frames.last().unwrap()).unwrap();
    assert_eq!((error.sqlstate(), error.message()), ("57014", "COPY from stdin failed: enough"));
}

#[test]
fn newer_protocol_versions_are_negotiated() {
    let plain = server();
    let version = Client::connect(&plain.target).unwrap().value("SHOW server_version_num").unwrap();
    let latest = if version.parse::<u32>().unwrap() >= 180_000 { (3, 2) } else { (3, 0) };
    let params = [("user", "postgres"), ("database", "postgres"), ("_pq_.unheard_of", "x")];
    let mut wire = Wire::open(&plain);
    frontend::write_startup(&mut wire.write, (3, 9999), &params);
    let frame = wire.frame();
    assert_eq!(frame.tag(), backend::tag::NEGOTIATE_PROTOCOL_VERSION);
    let negotiated = backend::parse_negotiate_protocol_version(&frame).unwrap();
    assert_eq!((negotiated.version, negotiated.unrecognized.as_slice()), (latest, &["_pq_.unheard_of".to_owned()][..]));
    let mut again = BytesMut::new();
    backend::write_negotiate_protocol_version(&mut again, negotiated.version, &negotiated.unrecognized);
    // Before 18 the major version was left out.
    assert_eq!(again[9..], frame.raw[9..]);
    assert!(again == frame.raw || latest == (3, 0));

    let greeting = wire.authenticate(ScramClient::from_password("", "n")).unwrap();
    let key = greeting.iter().find(|frame| frame.tag() == backend::tag::BACKEND_KEY_DATA).unwrap();
    let (pid, key) = backend::parse_backend_key_data(key).unwrap();
    assert_eq!(key.len() > 4, latest == (3, 2), "the key is longer from 3.2 on");

    // The key cancels what runs there.
    frontend::write_query(&mut wire.write, "SELECT pg_sleep(60)");
    wire.stream.write_all(&wire.write.split()).unwrap();
    let mut admin = Client::connect(&plain.target).unwrap();
    let asleep = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'PgSleep'");
    while admin.value(&asleep).unwrap() == "0" {}
    let mut cancel = Wire::open(&plain);
    frontend::write_cancel(&mut cancel.write, pid, key);
    cancel.stream.write_all(&cancel.write.split()).unwrap();
    let frames = wire.until_ready(b'I');
    let error = backend::parse_error(frames.last().unwrap()).unwrap();
    assert_eq!((error.sqlstate(), error.message()), ("57014", "canceling statement due to user request"));
}

/// Messages that break the protocol, as tag and body.
const BROKEN: &[(u8, &[u8])] = &[
    (b'Q', b"SELECT 1"),
    (b'Q', b"SELECT 1\0x"),
    (b'Q', b"SELECT '\xe4'\0"),
    (b'Q', b"\xed\xa0\x80\0"),
    (b'Q', b"\xf0\x9f\x0a\x0a\0"),
    (b'Q', b"\xff\0"),
    (b'P', b"\0SELECT 1\0"),
    (b'P', b"\0SELECT 1\0\0\x01\0\0"),
    (b'P', b"\0SELECT 1\0\0\0\0"),
    (b'B', b"\0\0\0\x02\0\0\0\0\0\x01"),
    (b'D', b""),
    (b'D', b"X\0"),
    (b'C', b"X\0"),
    (b'E', b"\0\0\0"),
    (b'H', b"x"),
    (b'z', b""),
];

#[test]
fn broken_messages_have_postgresqls_errors() {
    let plain = server();
    for (tag, body) in BROKEN {
        let mut wire = Wire::open(&plain);
        wire.log_in("postgres", ScramClient::from_password("", "n")).unwrap();
        let mut raw = vec![*tag];
        raw.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        raw.extend_from_slice(body);
        let ours = pgherd_wire::parse_frontend(&Frame { raw: raw.clone().into() }).unwrap_err();
        if *tag == b'B' {
            // PostgreSQL looks at the formats before it looks for the statement.
            frontend::write_parse(&mut wire.write, "", "SELECT $1::text", &[]);
        }
        wire.write.extend_from_slice(&raw);
        let theirs = loop {
            let frame = wire.frame();
            if frame.tag() == backend::tag::ERROR_RESPONSE {
                break backend::parse_error(&frame).unwrap();
            }
        };
        let ours = ours.to_fields();
        let shown = |fields: &ErrorFields| format!("{} {} {}", fields.severity(), fields.sqlstate(), fields.message());
        assert_eq!(shown(&ours), shown(&theirs), "{} \"{}\"", char::from(*tag), body.escape_ascii());
    }
}
