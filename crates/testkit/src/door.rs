//! What comes before a login: packets that are sent as they are, and what is answered.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::client::startup;
use crate::fuzz::random::Random;
use crate::{Result, Side, Target};

/// Protocol 3.0.
const VERSION: u32 = 196_608;
pub const SSL_REQUEST: u32 = 80_877_103;
pub const CANCEL_REQUEST: u32 = 80_877_102;
/// Nothing is waited for longer.
const WAIT: Duration = Duration::from_secs(20);

/// A packet with a length that may be another one.
pub fn packet(length: u32, code: u32, rest: &[u8]) -> Vec<u8> {
    [&length.to_be_bytes()[..], &code.to_be_bytes(), rest].concat()
}

/// What is answered to packets, each of which is sent when the first byte of the answer to the one before is there; the
/// last ends what is sent. `declined`: no encryption. Letters of messages, and of errors what they say; who logs in
/// hears of settings, which are left out, as are the versions that a release speaks.
pub fn answer(target: &Target, packets: &[Vec<u8>]) -> Result<Vec<String>> {
    let mut stream = TcpStream::connect((&*target.host, target.port))?;
    stream.set_read_timeout(Some(WAIT))?;
    let (last, first) = packets.split_last().ok_or("no packet")?;
    for packet in first {
        stream.write_all(packet)?;
        stream.read_exact(&mut [0])?;
    }
    // Who has closed the connection already does not take it.
    let _ = stream.write_all(last).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = Vec::new();
    // A reset says no more than an end.
    let _ = stream.read_to_end(&mut answer);
    let declined = answer.iter().take_while(|byte| **byte == b'N').count();
    let mut told = vec!["declined".to_owned(); declined];
    let mut rest = &answer[declined..];
    while let [kind, a, b, c, d, after @ ..] = rest {
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d]))?;
        let (body, after) = after.split_at_checked(length.saturating_sub(4)).ok_or("half a message")?;
        rest = after;
        match kind {
            b'S' | b'K' => {}
            b'E' => told.extend(
                String::from_utf8_lossy(body)
                    .split('\0')
                    .filter(|field| field.starts_with(['S', 'C', 'M', 'D']))
                    .map(|field| field.split(": server supports").next().unwrap_or(field).to_owned()),
            ),
            kind => told.push(char::from(*kind).to_string()),
        }
    }
    match rest {
        [] => Ok(told),
        rest => Err(format!("half a message: {rest:?}").into()),
    }
}

/// A startup packet with at most one thing in it that is not as usual, or bytes of one that are not.
fn packets(random: &mut Random, user: &str, database: &str) -> Vec<Vec<u8>> {
    const NAMES: &[&str] = &["", "a", "postgres", "template1", "no such", "pgherd", "\"x\"", "%s", "ü"];
    const OPTIONS: &[&str] = &[
        "",
        " ",
        "-c",
        "-c=",
        "-c =",
        "-c a",
        "-cwork_mem=4MB",
        "-c work_mem=4MB",
        "--work-mem=4MB",
        "--work_mem",
        "--",
        "-",
        "-c  work_mem=-7",
        "-c work_mem=4MB -c",
        "-c work\\_mem=4MB",
        "-c search_path=a\\ b",
        "-c search_path=a\\\\b",
        "\\",
        "-z",
        "x",
        "-c no_such=1",
        "-c a.b=1",
        "-c a..b=1",
        "-c TimeZone=Mars",
        "-c DateStyle=ISO,MDY",
        "-c fsync=off",
        "-c server_version=1",
        "-cc=1",
        "-c c",
        "-c -c",
        "--x=1",
    ];
    const SETTINGS: &[(&str, &str)] = &[
        ("client_encoding", "UTF8"),
        ("client_encoding", "no such"),
        ("client_encoding", ""),
        ("datestyle", "German"),
        ("datestyle", "no such"),
        ("timezone", ""),
        ("application_name", "\u{1}\u{7f}"),
        ("application_name", ""),
        ("search_path", ""),
        ("search_path", "a,,b"),
        ("statement_timeout", "-1"),
        ("statement_timeout", "1 day"),
        ("no_such", "1"),
        ("_pq_.x", "1"),
        ("replication", "off"),
        ("replication", "false"),
        ("", ""),
    ];
    let mut fields = vec![("user", user), ("database", database)];
    let mut version = VERSION;
    match random.below(9) {
        0 => fields[0].1 = *random.pick::<&str>(NAMES),
        1 => fields[1].1 = *random.pick::<&str>(NAMES),
        2 | 3 => fields.push(("options", *random.pick::<&str>(OPTIONS))),
        4 => fields.push(*random.pick(SETTINGS)),
        5 => {
            fields.remove(random.below(2));
        }
        // (Of versions before 3.0 a server speaks in their own way.)
        6 => version = *random.pick(&[262_144, 206_607, CANCEL_REQUEST, 0x7fff_ffff, u32::MAX]),
        _ => {}
    }
    let mut bytes = startup(version, &fields);
    match random.below(8) {
        0 => bytes.truncate(random.between(1, bytes.len())),
        1 => bytes.extend(std::iter::repeat_n(0, random.between(1, 9))),
        2 => {
            let length = *random.pick(&[0, 4, 7, 8, 9, 10_000, 10_001, 0x7fff_ffff, 0x8000_0001, u32::MAX]);
            bytes.splice(..4, length.to_be_bytes());
        }
        // (Where there are several faults, which is told is another question.)
        3 if fields.iter().all(|(name, _)| *name != "options") => {
            let at = random.between(8, bytes.len() - 1);
            bytes[at] = *random.pick(b"\0\x01 -=\\'\"a\x7f");
        }
        _ => {}
    }
    match random.below(6) {
        0 => vec![packet(8, SSL_REQUEST, b""), bytes],
        1 => vec![[packet(8, SSL_REQUEST, b""), bytes].concat()],
        _ => vec![bytes],
    }
}

/// Answers that differ, with what was sent. After each the tested side still answers.
pub fn compare(oracle: &Side, tested: &Side, database: &str, seeds: impl Iterator<Item = u64>) -> Result<Vec<String>> {
    let mut differ = Vec::new();
    for seed in seeds {
        let sent = packets(&mut Random::new(seed), &oracle.target.user, database);
        let [expected, found] = [oracle, tested].map(|side| answer(&side.target, &sent).map_err(|e| e.to_string()));
        if expected != found {
            let shown: Vec<String> = sent.iter().map(|bytes| bytes.escape_ascii().to_string()).collect();
            differ.push(format!(
                "seed {seed}: {}\n  one server: {expected:?}\n  the router: {found:?}",
                shown.join(" then ")
            ));
        }
    }
    tested.connect(database)?.run("SELECT 1")?;
    Ok(differ)
}
