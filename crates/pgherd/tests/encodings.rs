//! Clients whose encoding is not UTF8, byte for byte against one PostgreSQL: every character of every encoding, and
//! what a session does with its encoding. psql in encodings of one byte is in `clients.rs`.

#![allow(clippy::unwrap_used)]

use std::sync::OnceLock;

use pgherd_testkit::client::{Client, bind, describe, execute, message, parse, query, show_message, sync};
use pgherd_testkit::{Cluster, Plain, Side, Target};

const MULTIBYTE: [&str; 12] = [
    "BIG5",
    "EUC_CN",
    "EUC_JIS_2004",
    "EUC_JP",
    "EUC_KR",
    "EUC_TW",
    "GB18030",
    "GBK",
    "JOHAB",
    "SHIFT_JIS_2004",
    "SJIS",
    "UHC",
];

/// On the plain server: which characters have an equivalent, and which bytes are characters.
const ASKED: &str = "
    CREATE FUNCTION characters(other name) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE found text[] := '{}'; step int; at int := 128;
    BEGIN
        WHILE at < 1114112 LOOP
            step := CASE WHEN at < 65536 OR at BETWEEN 131072 AND 196607 THEN 1 ELSE 61 END;
            IF at NOT BETWEEN 55296 AND 57343 THEN
                BEGIN
                    PERFORM convert_to(chr(at), other);
                    found := found || at::text;
                EXCEPTION WHEN untranslatable_character THEN
                END;
            END IF;
            at := at + step;
        END LOOP;
        RETURN array_to_string(found, ',');
    END $$;
    CREATE FUNCTION sequences(other name) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE found text[] := '{}'; one bytea;
    BEGIN
        FOR one IN
            SELECT decode(to_hex(a), 'hex') FROM generate_series(128, 255) a
            UNION ALL
            SELECT decode(to_hex(a) || lpad(to_hex(b), 2, '0'), 'hex')
            FROM generate_series(128, 255) a, generate_series(128, 383) x, LATERAL (SELECT x % 256) y(b) WHERE b <> 0
            UNION ALL
            SELECT decode('8f' || to_hex(a) || to_hex(b), 'hex')
            FROM generate_series(160, 255) a, generate_series(160, 255) b WHERE other LIKE 'EUC%'
            UNION ALL
            SELECT decode('8e' || to_hex(a) || to_hex(b) || to_hex(c), 'hex')
            FROM generate_series(160, 178) a, generate_series(160, 255) b, generate_series(160, 255) c
            WHERE other = 'EUC_TW'
            UNION ALL
            SELECT decode(to_hex(a) || to_hex(b) || to_hex(c) || 30 + (a + b + c) % 10, 'hex')
            FROM generate_series(129, 254) a, generate_series(48, 57) b, generate_series(129, 254) c
            WHERE other = 'GB18030'
        LOOP
            BEGIN
                -- One character, not two.
                IF length(convert_from(one, other)) = 1 OR length(one) = 2 AND other LIKE '%2004'
                    AND get_byte(one, 1) >= 64 AND get_byte(one, 0) NOT BETWEEN 161 AND 223 THEN
                    found := found || encode(one, 'hex');
                END IF;
            EXCEPTION WHEN untranslatable_character OR character_not_in_repertoire THEN
            END;
        END LOOP;
        RETURN array_to_string(found, ',');
    END $$";

struct Sides {
    plain: Plain,
    oracle: Target,
    tested: Target,
}

fn sides() -> &'static Sides {
    static SIDES: OnceLock<Sides> = OnceLock::new();
    SIDES.get_or_init(|| {
        let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
        let plain = Plain::like(&cluster.target).unwrap();
        let make = |side: &Side| {
            let target = side.create_database("multibyte", "").unwrap();
            let mut client = Client::connect(&target).unwrap();
            client.run("CREATE TABLE words (id int, word text); CREATE TABLE local (id int, word text)").unwrap();
            client
                .run("CREATE TYPE mood AS ENUM ('h\u{e4}', 'b'); CREATE TYPE pair AS (m mood, t text, n int)")
                .unwrap();
            client.run("CREATE DOMAIN tags AS text[]; CREATE TYPE moods AS RANGE (SUBTYPE = mood)").unwrap();
            client.run("CREATE DOMAIN few AS moods").unwrap();
            client.run("CREATE TABLE typed (id int, m mood, a tags, j jsonb, p pair, r moods)").unwrap();
            if side.is_cluster {
                client.run("SELECT create_distributed_table('words', 'id')").unwrap();
                client.run("SELECT create_distributed_table('typed', 'id')").unwrap();
            } else {
                client.run(ASKED).unwrap();
            }
            target
        };
        let (oracle, tested) = (make(&plain.side("postgres")), make(&cluster.side()));
        Sides { plain, oracle, tested }
    })
}

fn query_of(sql: &[u8]) -> Vec<u8> {
    message(b'Q', &[sql, b"\0"].concat())
}

/// What a client in an encoding gets for some messages, each of which a ReadyForQuery answers.
fn told(target: &Target, encoding: &str, steps: &[Vec<u8>]) -> Vec<Vec<String>> {
    let mut client = Client::connect_with(target, &[("client_encoding", encoding)]).unwrap();
    steps
        .iter()
        .map(|step| {
            client.send(step).unwrap();
            client.receive_until_ready(1).unwrap().iter().map(show_message).collect()
        })
        .collect()
}

/// The same messages bring the same.
fn check(encoding: &str, steps: &[Vec<u8>]) {
    let (expected, found) = (told(&sides().oracle, encoding, steps), told(&sides().tested, encoding, steps));
    let mut wrong = Vec::new();
    for ((step, expected), found) in steps.iter().zip(&expected).zip(&found) {
        if expected != found {
            let step = step[..step.len().min(200)].escape_ascii();
            let cut = |lines: &[String]| lines.join("\n  ").chars().take(600).collect::<String>();
            wrong.push(format!("{step}\n  {}\ncluster:\n  {}", cut(expected), cut(found)));
        }
    }
    let shown = wrong.iter().take(12).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{encoding}: {} of {} differ\n{shown}", wrong.len(), steps.len());
}

fn characters_of(encoding: &str) {
    let mut oracle = Client::connect(&sides().oracle).unwrap();
    let list = oracle.value(&format!("SELECT characters('{encoding}')")).unwrap();
    let there: Vec<u32> = list.split(',').map(|c| c.parse().unwrap()).collect();
    assert!(there.len() > 5000, "{encoding} has {} characters", there.len());
    let mut steps: Vec<Vec<u8>> = Vec::new();
    for some in there.chunks(1000) {
        let list: Vec<String> = some.iter().map(u32::to_string).collect();
        steps.push(query(&format!("SELECT string_agg(chr(c), '') FROM unnest('{{{}}}'::int[]) c", list.join(","))));
    }
    let there: std::collections::HashSet<u32> = there.into_iter().collect();
    let none = (128..0x11_0000).filter(|c| char::from_u32(*c).is_some() && !there.contains(c));
    // What is behind the first two planes was looked at here and there only.
    let none = none.filter(|c| *c < 0x1_0000 || *c >> 16 == 2 || (*c - 128) % 61 == 0);
    steps.extend(none.step_by(211).map(|c| query(&format!("SELECT 'x' || chr({c})"))));
    check(encoding, &steps);
}

fn sequences_of(encoding: &str) {
    let mut oracle = Client::connect(&sides().oracle).unwrap();
    let list = oracle.value(&format!("SELECT sequences('{encoding}')")).unwrap();
    let from_hex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let there: Vec<Vec<u8>> = list.split(',').map(from_hex).collect();
    assert!(there.len() > 5000, "{encoding} has {} sequences", there.len());
    let text = |bytes: &[u8]| query_of(&[b"SELECT convert_to('", bytes, b"', 'UTF8')"].concat());
    let mut steps: Vec<Vec<u8>> = there.chunks(500).map(|some| text(&some.concat())).collect();
    let there: std::collections::HashSet<Vec<u8>> = there.into_iter().collect();
    let mut others: Vec<Vec<u8>> = Vec::new();
    for a in 0x80..=0xffu8 {
        others.push(vec![a]);
        others.extend((1..=0xff).map(|b| vec![a, b]));
        others.extend((0x30..=0xff).step_by(13).map(|b| vec![a, b, 0xa1]));
        others.extend((0x30..=0xff).step_by(13).map(|b| vec![a, b, 0xb0, 0x35]));
        others.extend((0x30..=0xff).step_by(13).map(|b| vec![a, b, 0xb0, 0xff]));
    }
    // A quote or a newline within would make other statements.
    let others = others.into_iter().filter(|bytes| !there.contains(bytes) && !bytes[1..].contains(&b'\''));
    steps.extend(others.step_by(if std::env::var_os("PGHERD_ALL_BYTES").is_some() { 1 } else { 29 }).map(|b| text(&b)));
    // Where a text ends in the middle of a character.
    steps.extend((0x80..=0xff).map(|byte| query_of(&[b"SELECT 1 -- ", &[byte][..]].concat())));
    check(encoding, &steps);
}

fn for_each_encoding(test: fn(&str)) {
    let failed = |encoding: &&str| std::panic::catch_unwind(|| test(encoding)).is_err();
    let failed: Vec<&str> = MULTIBYTE.into_iter().filter(failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_character_leaves_as_from_one_server() {
    for_each_encoding(characters_of);
}

#[test]
fn every_sequence_of_bytes_arrives_as_at_one_server() {
    for_each_encoding(sequences_of);
}

#[test]
fn a_second_byte_that_is_ascii_is_part_of_its_character() {
    // The second byte of each is a backslash, a pipe, a letter.
    for (encoding, c) in [
        ("SJIS", b"\x95\x5c\x83\x7c\x83\x41"),
        ("BIG5", b"\xa5\x5c\xa6\x7c\xa4\x41"),
        ("GBK", b"\x97\x5c\x81\x7c\x81\x41"),
    ] {
        let with = |parts: &[&[u8]]| parts.concat();
        let values = [Some(b"7".to_vec()), Some(c.to_vec())];
        let copy = |table: &str, data: &[&[u8]]| {
            let mut all = query(&format!("COPY {table} FROM STDIN"));
            data.iter().for_each(|data| all.extend(message(b'd', data)));
            all.extend(message(b'c', b""));
            all
        };
        let mut steps = vec![
            query_of(&with(&[b"SELECT E'", c, b"', '", c, b"' AS \"", c, b"\", length('", c, b"')"])),
            query_of(&with(&[b"INSERT INTO words VALUES (1, '", c, b"'), (2, '", c, b"x') RETURNING word"])),
            query_of(&with(&[b"SELECT id, word FROM words WHERE word LIKE '", c, b"%' ORDER BY id"])),
            query_of(&with(&[b"SELECT \"", c, b"\" FROM words"])),
            query_of(&with(&[b"DO $$ BEGIN RAISE NOTICE '", c, b"'; END $$"])),
            [
                parse("", "INSERT INTO words VALUES ($1, $2) RETURNING word", &[23, 25]),
                bind("", "", &[], &values, &[]),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ]
            .concat(),
        ];
        for table in ["words", "local"] {
            // Characters in two messages, and a line that ends in half of one.
            let lines = with(&[b"10\t", c, b"\n11\t", c, c, b"\n"]);
            let halves = [&lines[..4], &lines[4..9], &lines[9..]];
            steps.push(copy(table, &halves));
            // Flush and Sync mean nothing between them.
            let parts =
                halves.map(|half| message(b'd', half)).join(&[message(b'H', b""), message(b'S', b"")].concat()[..]);
            steps.push([query(&format!("COPY {table} FROM STDIN")), parts, message(b'c', b"")].concat());
            steps.push(query(&format!("SELECT id, word, convert_to(word, 'UTF8') FROM {table} ORDER BY id")));
            steps.push(query(&format!("COPY (SELECT id, word FROM {table} ORDER BY id) TO STDOUT")));
            steps.push(copy(table, &[b"12\tx", &c[..1]]));
            steps.push(copy(table, &[b"13\t\xff\xff\n", b"14\tx\n"]));
            steps.push(query(&format!("SELECT count(*) FROM {table}; TRUNCATE {table}")));
        }
        check(encoding, &steps);
    }
}

#[test]
fn what_is_not_utf8_fails_and_the_session_goes_on() {
    let bound = |value: &[u8]| bind("", "", &[], &[Some(value.to_vec())], &[]);
    let steps = [
        query_of(b"SELECT '\xe4'"),
        query("SELECT 1"),
        query_of(b"\xff"),
        [message(b'P', b"\xe4\0SELECT 1\0\0\0"), sync()].concat(),
        [message(b'P', b"\0SELECT '\xe4\xa0'\0\0\0"), sync()].concat(),
        [parse("", "SELECT $1", &[25]), bound(b"\xc3"), execute("", 0), sync()].concat(),
        query("BEGIN"),
        query_of(b"SELECT '\xe4'"),
        query("ROLLBACK"),
        [query("COPY words FROM STDIN"), message(b'd', b"1\t\xe4\n"), message(b'c', b"")].concat(),
        [query("COPY words FROM STDIN"), message(b'f', b"\xe4\0")].concat(),
        query("SELECT 2"),
    ];
    check("UTF8", &steps);
    // PostgreSQL's COPY takes anything from such a client.
    check("SQL_ASCII", &steps[..9]);
}

#[test]
fn a_changed_encoding_holds_for_the_next_message() {
    let one = |sql: &[u8]| {
        [message(b'P', &[b"\0", sql, b"\0\0\0"].concat()), bind("", "", &[], &[], &[]), execute("", 0)].concat()
    };
    check(
        "UTF8",
        &[
            [one(b"SET client_encoding = 'LATIN1'"), one(b"SELECT '\xe4', convert_to('\xe4', 'UTF8')"), sync()]
                .concat(),
            [one(b"SET client_encoding = 'SJIS'"), one(b"SELECT convert_to('\x95\x5c', 'UTF8')"), sync()].concat(),
            [one(b"SET client_encoding = 'UTF8'"), one("SELECT 'ä'".as_bytes()), sync()].concat(),
        ],
    );
}

#[test]
fn what_ends_a_transaction_decides_about_the_encoding() {
    let mut steps: Vec<Vec<u8>> = Vec::new();
    for sql in [
        "BEGIN; SET client_encoding = 'LATIN1'; SAVEPOINT a; SET client_encoding = 'SJIS'; SHOW client_encoding",
        "ROLLBACK TO a; SHOW client_encoding; SELECT chr(228)",
        "SET LOCAL client_encoding = 'EUC_JP'; SAVEPOINT b; RESET client_encoding; RELEASE b; SHOW client_encoding",
        "ROLLBACK TO a",
        "SHOW client_encoding",
        "COMMIT; SHOW client_encoding; SELECT chr(228)",
        "BEGIN; SET client_encoding = 'SJIS'; ROLLBACK; SHOW client_encoding",
        "BEGIN; SET client_encoding = 'BIG5'; SELECT 1/0; COMMIT",
        "ROLLBACK; SHOW client_encoding",
        "SET client_encoding = 'UTF8'; BEGIN; SET client_encoding = 'LATIN2'",
        "PREPARE TRANSACTION 'encodings'",
        "SHOW client_encoding",
        "ROLLBACK PREPARED 'encodings'",
        "SET client_encoding = 'MULE_INTERNAL'",
        "SET client_encoding = 'nowhere'",
        "RESET client_encoding; SHOW client_encoding",
        "DISCARD ALL",
    ] {
        steps.push(query(sql));
    }
    check("WIN1252", &steps);
    check("SJIS", &steps);
}

#[test]
fn what_functions_set_is_the_client_s() {
    let set_config = |values: [&str; 3]| {
        let values: Vec<Option<Vec<u8>>> = values.iter().map(|v| Some(v.as_bytes().to_vec())).collect();
        let sql = "SELECT set_config($1, $2, $3), chr(228)";
        [parse("", sql, &[]), bind("", "", &[], &values, &[]), execute("", 0), sync()].concat()
    };
    let row = || query("SELECT chr(228), word FROM words; SHOW client_encoding");
    check(
        "UTF8",
        &[
            query("INSERT INTO words VALUES (1, chr(228))"),
            set_config(["client_encoding", "latin1", "false"]),
            row(),
            query("SET client_encoding = UTF8"),
            query("BEGIN"),
            set_config(["client_encoding", "latin1", "true"]),
            row(),
            query("COMMIT"),
            row(),
            query("BEGIN"),
            set_config(["Client_Encoding", "latin1", "false"]),
            row(),
            query("COMMIT"),
            row(),
            query("SET client_encoding = UTF8; BEGIN"),
            set_config(["client_encoding", "latin1", "false"]),
            query("ROLLBACK"),
            row(),
            query("DO $$ BEGIN PERFORM set_config('client_encoding', 'SJIS', false); END $$"),
            query("SELECT chr(34920); SHOW client_encoding; TRUNCATE words"),
        ],
    );
}

#[test]
fn rows_of_binary_cursors_are_binary() {
    check(
        "LATIN1",
        &[
            query("INSERT INTO words VALUES (228, chr(228)), (-61, chr(233))"),
            query(
                "BEGIN; DECLARE c BINARY CURSOR FOR SELECT id, word, id::int8 FROM words ORDER BY id; FETCH ALL FROM c",
            ),
            query("MOVE BACKWARD 1 FROM c; FETCH BACKWARD 1 FROM c; SELECT chr(228)"),
            [parse("", "FETCH ABSOLUTE 1 FROM c", &[]), bind("", "", &[], &[], &[]), execute("", 0), sync()].concat(),
            [parse("", "FETCH ABSOLUTE 1 FROM c", &[]), bind("", "", &[], &[], &[1]), execute("", 0), sync()].concat(),
            query("ROLLBACK; DECLARE h BINARY CURSOR WITH HOLD FOR SELECT -61, chr(228); FETCH ALL FROM h; CLOSE h"),
            query("TRUNCATE words"),
        ],
    );
}

#[test]
fn what_cannot_be_sent_is_told_once() {
    let one = |sql: &str| [parse("", sql, &[]), bind("", "", &[], &[], &[])].concat();
    let mut steps = vec![query(
        "CREATE TABLE kept (word text); CREATE FUNCTION keep(c int) RETURNS text LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO kept VALUES (chr(c)); RETURN chr(c); END $$",
    )];
    for failed in [
        // What comes behind it has failed, too.
        query("SELECT chr(8364), 1 / (2 - g) FROM generate_series(1, 3) g"),
        query("SELECT 1; SELECT chr(8364), 1 / (2 - g) FROM generate_series(1, 3) g; SELECT 2"),
        [one("SELECT chr(8364), 1 / (2 - g) FROM generate_series(1, 3) g"), execute("", 0), sync()].concat(),
        [
            one("SELECT chr(8364), 1 / (2 - g) FROM generate_series(1, 3) g"),
            execute("", 0),
            one("SELECT 2"),
            execute("", 0),
            sync(),
        ]
        .concat(),
        [
            one("SELECT CASE g WHEN 2 THEN chr(8364) END, 1 / (3 - g) FROM generate_series(1, 4) g"),
            execute("", 1),
            execute("", 2),
            execute("", 1),
            sync(),
        ]
        .concat(),
        [one("SELECT g AS \u{e4}, chr(8364) FROM generate_series(1, 4) g"), describe(b'P', ""), sync()].concat(),
        query("COPY (SELECT chr(8364)) TO STDOUT"),
        query("COPY (SELECT chr(8364), 1 / (2 - g) FROM generate_series(1, 3) g) TO STDOUT"),
        // What a function has written is gone.
        query("SELECT keep(8364)"),
        [one("SELECT keep(8364)"), execute("", 0), sync()].concat(),
        query("INSERT INTO kept SELECT keep(8364) RETURNING word"),
        query("BEGIN; SELECT keep(8364); COMMIT"),
        query("COMMIT"),
        query("BEGIN; SAVEPOINT a; DECLARE c CURSOR FOR SELECT keep(c) FROM (VALUES (65), (8364), (66)) v (c)"),
        query("FETCH 1 FROM c; SAVEPOINT b; FETCH 2 FROM c"),
        query("ROLLBACK TO b; SELECT count(*) FROM kept; COMMIT"),
    ] {
        steps.push(failed);
        steps.push(query("SELECT count(*) FROM kept"));
    }
    steps.push(query("SELECT keep(228); SELECT * FROM kept"));
    check("LATIN1", &steps);
}

#[test]
fn binary_values_without_text_are_sent_as_they_are() {
    let numbers = |values: &[i32]| {
        let mut array: Vec<u8> = [1i32, 0, 23, values.len() as i32, 1].iter().flat_map(|n| n.to_be_bytes()).collect();
        values.iter().for_each(|n| array.extend([4i32.to_be_bytes(), n.to_be_bytes()].concat()));
        Some(array)
    };
    let xml = |text: &[u8]| {
        let sql = "SELECT convert_to($1::text, 'UTF8')";
        [parse("", sql, &[142]), bind("", "", &[1], &[Some(text.to_vec())], &[]), execute("", 0), sync()].concat()
    };
    check(
        "LATIN1",
        &[
            [
                parse("", "SELECT $1, -1::int8, '{1.5,-2}'::numeric[], '[-3,5)'::int4range", &[1007]),
                bind("", "", &[1], &[numbers(&[-1, 200, 7])], &[1]),
                describe(b'P', ""),
                execute("", 0),
                sync(),
            ]
            .concat(),
            // It says its encoding itself, or is in UTF-8.
            xml(b"<?xml version=\"1.0\" encoding=\"LATIN1\"?><a>\xe4</a>"),
            xml("<a>\u{e4}</a>".as_bytes()),
        ],
    );
}

#[test]
fn text_is_found_in_binary_values() {
    let sized = |value: &[u8]| [&(value.len() as i32).to_be_bytes()[..], value].concat();
    let texts = |values: &[&[u8]]| {
        let head = [1i32, 0, 25, values.len() as i32, 1].iter().flat_map(|n| n.to_be_bytes()).collect::<Vec<u8>>();
        [head, values.iter().flat_map(|value| sized(value)).collect()].concat()
    };
    let run = |sql: &str, values: &[Vec<u8>]| {
        let values: Vec<_> = values.iter().cloned().map(Some).collect();
        [parse("", sql, &[]), bind("", "", &[1], &values, &[1]), execute("", 0), sync()].concat()
    };
    let copied = |fields: &[&[u8]]| {
        let mut data = [&b"PGCOPY\n\xff\r\n\0"[..], &[0; 8], &(fields.len() as i16).to_be_bytes()].concat();
        fields.iter().for_each(|field| data.extend(sized(field)));
        data.extend([255, 255]);
        // A piece may end anywhere.
        let pieces = data.chunks(7).map(|piece| message(b'd', piece));
        [pieces.collect::<Vec<_>>().concat(), message(b'c', b"")].concat()
    };
    let (id, happy) = (7i32.to_be_bytes().to_vec(), b"h\xe4".to_vec());
    let tags = texts(&[b"\xe4\xf6", b"plain", &[b'\xfc'; 200]]);
    let json = b"\x01{\"\xe4\": \"\xdf\"}".to_vec();
    let range = [&[6][..], &sized(b"h\xe4"), &sized(b"b")].concat();
    let mut steps = Vec::new();
    for table in ["typed", "kept"] {
        let insert = format!("INSERT INTO {table} (id, m, a, j, r) VALUES ($1, $2, $3, $4, $5)");
        let select = format!("SELECT id, m, a, j, r FROM {table} WHERE m = $1");
        steps.extend([
            query("CREATE TEMP TABLE IF NOT EXISTS kept (LIKE typed)"),
            run(&insert, &[id.clone(), happy.clone(), tags.clone(), json.clone(), range.clone()]),
            run(&select, std::slice::from_ref(&happy)),
            run(
                &format!(
                    "SELECT (p).t, m::text, array_agg(t) FROM {table}, unnest(a) t WHERE t = ANY ($1) GROUP BY 1, 2"
                ),
                std::slice::from_ref(&tags),
            ),
            run(
                &format!("UPDATE {table} SET p = ROW(m, $1, 3) RETURNING p::text, (p).t, ROW(1, (p).t)"),
                &[b"\xe5".to_vec()],
            ),
            // What cannot be in an array, a jsonb value or an enum.
            run(&format!("SELECT a || chr(8364), j FROM {table}"), &[]),
            run(&format!("SELECT jsonb_build_object('a', chr(8364)), ARRAY[ROW(id, chr(8364))] FROM {table}"), &[]),
            query(&format!("COPY {table} (id, m, a, j, r) TO STDOUT (FORMAT binary)")),
            query(&format!("COPY (SELECT id, m, a, (p).t FROM {table}) TO STDOUT (FORMAT binary)")),
            query(&format!("COPY (SELECT id, ARRAY['a', chr(8364)] FROM {table}) TO STDOUT (FORMAT binary)")),
            [query(&format!("COPY {table} (m, id, a) FROM STDIN (FORMAT binary)")), copied(&[&happy, &id, &tags])]
                .concat(),
            [query(&format!("COPY {table} (m, id, a) FROM STDIN (FORMAT binary)")), copied(&[b"\xf6", &id, &tags])]
                .concat(),
            run(&format!("SELECT id, m, a, j FROM {table} WHERE j IS NULL"), &[]),
            query(&format!("DELETE FROM {table}")),
        ]);
    }
    steps.extend([
        run("SELECT to_tsvector('simple', $1), to_tsquery('simple', $1 || ' & !x <2> y')", &[b"\xe4".to_vec()]),
        run(
            "SELECT $1::jsonpath, ROW($2::name, 1, NULL, $2::varchar[])",
            &[b"\x01$.\"\xe4\"".to_vec(), b"{\xe4}".to_vec()],
        ),
    ]);
    steps.push(run("SELECT 'h\u{e4}'::mood::text, 'x' AS x, ROW(1, '[b,b]'::few)::text", &[]));
    check("LATIN1", &steps);
    let sjis = |sql: &str| run(sql, &[texts(&[b"\x95\x5c", b"a"])]);
    check(
        "SJIS",
        &[
            sjis("SELECT $1::text[], to_jsonb($1::text[])"),
            sjis("INSERT INTO typed (id, a) VALUES (1, $1) RETURNING a"),
        ],
    );
}

#[test]
fn a_query_sees_the_client_s_encoding() {
    let one = |sql: &str| {
        let values = [Some(b"x".to_vec())];
        [parse("", sql, &[25]), bind("", "", &[], &values, &[]), describe(b'P', ""), execute("", 0), sync()].concat()
    };
    let steps = [
        query("SELECT pg_client_encoding(), pg_catalog.pg_client_encoding() AS e, length(pg_client_encoding())"),
        query("SELECT current_setting('client_encoding'), upper(pg_catalog.current_setting('Client_Encoding', true))"),
        query("SELECT name, setting FROM pg_settings WHERE name IN ('client_encoding', 'server_encoding') ORDER BY 1"),
        query("SELECT s.setting FROM pg_catalog.pg_settings AS s WHERE s.name = pg_settings.name"),
        query("SELECT count(*), pg_client_encoding() FROM words GROUP BY pg_client_encoding()"),
        query("WITH w AS (SELECT pg_client_encoding() e) SELECT e || ':' || (SELECT pg_client_encoding()) FROM w"),
        one("SELECT pg_client_encoding() WHERE current_setting('client_encoding') <> $1"),
    ];
    check("SJIS", &[&steps[..], &[query("SET client_encoding = LATIN1")], &steps].concat());
    check("UTF8", &steps);
}

#[test]
fn a_default_of_role_or_database_is_the_client_s() {
    let asked = |side: &Side| {
        let target = side.create_database("defaults", "").unwrap();
        let mut owner = Client::connect(&target).unwrap();
        let database = &target.database;
        owner.run("CREATE ROLE encoded LOGIN").unwrap();
        owner.run(&format!("ALTER DATABASE {database} SET client_encoding = 'win1252'")).unwrap();
        let mut found = Vec::new();
        for changed in [
            String::new(),
            "ALTER ROLE encoded SET client_encoding = 'SJIS'".to_owned(),
            format!("ALTER ROLE encoded IN DATABASE {database} SET client_encoding = LATIN9"),
            format!("ALTER DATABASE {database} RESET client_encoding"),
            "ALTER ROLE encoded RESET ALL".to_owned(),
            format!("ALTER ROLE encoded IN DATABASE {database} RESET ALL"),
        ] {
            owner.run(&changed).unwrap();
            let target = Target { user: "encoded".to_owned(), ..target.clone() };
            let mut client = Client::connect(&target).unwrap();
            let told = client.settings["client_encoding"].clone();
            found.push((changed.replace(database, "d"), told, told_of(&mut client)));
        }
        owner.run("DROP ROLE encoded").unwrap();
        found
    };
    fn told_of(client: &mut Client) -> Vec<String> {
        client.send(&query("SET client_encoding = BIG5; RESET client_encoding; SHOW client_encoding")).unwrap();
        client.receive_until_ready(1).unwrap().iter().map(show_message).collect()
    }
    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    assert_eq!(asked(&sides().plain.side("postgres")), asked(&cluster));
}

/// The router asks as a superuser, in a database whose owner is none.
#[test]
fn what_asks_for_conversions_runs_nobody_s_operators() {
    let cluster = Cluster::start(env!("CARGO_BIN_EXE_pgherd"), 1).unwrap();
    let target = cluster.side().create_database("owned", "").unwrap();
    Client::connect(&target)
        .unwrap()
        .run(
            "CREATE TABLE public.ran (as_role text);
             CREATE FUNCTION public.append(text[], text) RETURNS text[] LANGUAGE plpgsql AS $$ BEGIN
                 EXECUTE 'INSERT INTO public.ran SELECT current_user'; RETURN array_append($1, $2); END $$;
             CREATE OPERATOR public.|| (LEFTARG = text[], RIGHTARG = text, FUNCTION = public.append)",
        )
        .unwrap();
    let mut client = Client::connect_with(&target, &[("client_encoding", "EUC_CN")]).unwrap();
    assert_eq!(client.value("SELECT count(*) FROM ran").unwrap(), "0");
    assert_eq!(client.value("SELECT octet_length(array_to_string('{a}'::text[] || 'b'::text, ''))").unwrap(), "2");
    assert_eq!(client.value("SELECT count(*) FROM ran").unwrap(), "1");
}
