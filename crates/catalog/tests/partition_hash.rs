//! The router's partition hash against PostgreSQL's own: `vectors/<type>.tsv`, written by `vectors/generate.py`, which
//! also says what the verdicts mean.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use pgherd_catalog::hash::{Hashed, KeyType, NULL_HASH, remainder};

/// Fewer would mean that a file was cut.
const LINES_MIN: usize = 150;

struct Vector {
    verdict: String,
    text: Vec<u8>,
    binary: Vec<u8>,
    hash: u64,
    line: usize,
}

fn read(name: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name).with_extension("tsv");
    let file = std::fs::read_to_string(&path).unwrap();
    let mut vectors = Vec::new();
    for (i, line) in file.split('\n').enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [verdict, text, binary, hash] = fields[..] else { panic!("{name} line {}: {line}", i + 1) };
        vectors.push(Vector {
            verdict: verdict.to_owned(),
            text: unescape(text),
            binary: if matches!(binary, "-" | "\\N") { Vec::new() } else { unhex(binary) },
            hash: hash.parse().unwrap_or(0),
            line: i + 1,
        });
    }
    assert!(vectors.len() >= LINES_MIN, "{name} has {} vectors", vectors.len());
    vectors
}

/// COPY's escapes.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next().unwrap() {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                b'f' => 0x0c,
                b'b' => 0x08,
                other => other,
            },
            plain => plain,
        });
    }
    out
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn check(name: &str, key: KeyType) {
    let mut wrong = String::new();
    for vector in read(name) {
        let text = key.hash_text(&vector.text);
        let expected = Hashed::Value(vector.hash);
        let right = match vector.verdict.as_str() {
            "null" => vector.hash == NULL_HASH && remainder(NULL_HASH, 32) == 0,
            "fast" => text == expected,
            "ask" => text == expected || text == Hashed::AskServer,
            "varies" | "error" => text == Hashed::AskServer,
            "loose" => true,
            other => panic!("{name} line {}: verdict {other}", vector.line),
        };
        if !right {
            let spelling = String::from_utf8_lossy(&vector.text);
            writeln!(
                wrong,
                "{name}.tsv:{} {} {spelling:?}: {text:?}, PostgreSQL {}",
                vector.line, vector.verdict, vector.hash
            )
            .unwrap();
        }
        if matches!(vector.verdict.as_str(), "fast" | "ask") {
            let binary = key.hash_binary(&vector.binary);
            if binary != expected {
                writeln!(
                    wrong,
                    "{name}.tsv:{} binary {:02x?}: {binary:?}, PostgreSQL {}",
                    vector.line, vector.binary, vector.hash
                )
                .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

macro_rules! vectors {
    ($($name:ident: $key:ident,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), KeyType::$key);
        })*

        #[test]
        fn every_file_of_vectors_is_checked() {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
            let mut files: Vec<String> = std::fs::read_dir(directory)
                .unwrap()
                .filter_map(|entry| entry.unwrap().file_name().to_str().unwrap().strip_suffix(".tsv").map(str::to_owned))
                .collect();
            files.sort();
            let mut checked = vec![$(stringify!($name).to_owned()),*];
            checked.sort();
            assert_eq!(files, checked);
        }
    };
}

vectors! {
    int2: Int2,
    int4: Int4,
    int8: Int8,
    text: Text,
    varchar: Text,
    bpchar: Bpchar,
    name: Name,
    uuid: Uuid,
    date: Date,
    time: Time,
    timetz: Timetz,
    timestamp: Timestamp,
    timestamptz: Timestamptz,
    numeric: Numeric,
    bytea: Bytea,
    bool: Bool,
    inet: Inet,
    cidr: Inet,
    macaddr: Macaddr,
    interval: Interval,
    float4: Float4,
    float8: Float8,
}

/// A parameter that was declared with a wider or narrower integer type hashes as the column's values do.
#[test]
fn integers_of_every_width_hash_alike() {
    for vector in read("int2").iter().filter(|v| v.verdict == "fast") {
        let value: i16 = i16::from_be_bytes(vector.binary[..].try_into().unwrap());
        for key in [KeyType::Int2, KeyType::Int4, KeyType::Int8] {
            let expected = Hashed::Value(vector.hash);
            assert_eq!(key.hash_binary_as(21, &value.to_be_bytes()), expected);
            assert_eq!(key.hash_binary_as(23, &i32::from(value).to_be_bytes()), expected);
            assert_eq!(key.hash_binary_as(20, &i64::from(value).to_be_bytes()), expected);
        }
    }
}

/// What came from a peer may be cut or garbled anywhere: no panic, and nothing is hashed from a form too short for its
/// type.
#[test]
fn damaged_values_do_not_panic() {
    let keys = [
        ("timetz", KeyType::Timetz, true),
        ("numeric", KeyType::Numeric, true),
        ("interval", KeyType::Interval, true),
        ("inet", KeyType::Inet, true),
        ("uuid", KeyType::Uuid, true),
        ("macaddr", KeyType::Macaddr, true),
        ("timestamptz", KeyType::Timestamptz, true),
        ("date", KeyType::Date, true),
        ("bytea", KeyType::Bytea, false),
        ("bpchar", KeyType::Bpchar, false),
    ];
    for (name, key, has_frame) in keys {
        for vector in read(name).iter().filter(|v| v.verdict == "fast") {
            for cut in 0..vector.binary.len() {
                let hashed = key.hash_binary(&vector.binary[..cut]);
                assert!(!has_frame || hashed == Hashed::AskServer, "{name} {:02x?} cut at {cut}", vector.binary);
            }
            for cut in 0..vector.text.len() {
                key.hash_text(&vector.text[..cut]);
                let mut garbled = vector.text.clone();
                garbled[cut] ^= 0x80;
                key.hash_text(&garbled);
            }
        }
    }
}
