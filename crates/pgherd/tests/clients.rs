//! Real clients on a cluster: psql, psycopg 3 and tokio-postgres, each with a create, load, distribute, query and
//! transaction round. (pgbench has its turn in the guides.) Each is also run on one plain PostgreSQL, so that what it
//! expects is true there.
//!
//! psycopg needs a Python environment: `PGHERD_TEST_PYTHON` names its interpreter (`make test` makes one), else the
//! test makes one below `target/`.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::{SinkExt, TryStreamExt, pin_mut};
use pgherd_testkit::{Cluster, Plain, Side, Target, workspace_file};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{CancelToken, NoTls, SimpleQueryMessage};

fn cluster() -> Side {
    Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side()
}

/// The plain server beside the cluster; it lives as long as the tests.
fn plain() -> Side {
    static PLAIN: OnceLock<Plain> = OnceLock::new();
    PLAIN.get_or_init(|| Plain::like(&cluster().target).unwrap()).side("postgres")
}

/// What psql prints for a file, both streams in the order in which they were written.
fn psql(target: &Target, arguments: &[&str], file: &str) -> String {
    let directory = std::env::temp_dir().join(format!("pgherd-psql-{}-{}", std::process::id(), target.port));
    std::fs::create_dir_all(&directory).unwrap();
    let output = Command::new("sh")
        .args(["-c", "exec 2>&1; exec \"$@\"", "sh", "psql", "-X", "-a"])
        .args(arguments)
        .args(["-v", &format!("dir={}", directory.display()), "-f"])
        .arg(workspace_file(file))
        .envs(target.environment())
        .output()
        .unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn psql_prints_the_same_as_on_one_server() {
    let (oracle, tested) = (plain(), cluster());
    let expected = psql(&oracle.create_database("psql", "").unwrap(), &[], "tests/clients/psql_round.sql");
    let found =
        psql(&tested.create_database("psql", "").unwrap(), &["-v", "cluster=1"], "tests/clients/psql_round.sql");
    // Between the marks of \if the file itself differs.
    let cut = |text: &str| -> Vec<String> {
        let end = text.find("\\endif").unwrap();
        text[end..].lines().map(|l| l.trim_end().to_owned()).collect()
    };
    let (expected, found) = (cut(&expected), cut(&found));
    assert!(expected.len() > 300, "psql printed next to nothing: {expected:#?}");
    if expected != found {
        panic!("psql prints otherwise (-: one server, +: cluster)\n{}", line_difference(&expected, &found));
    }
}

/// Encodings with one byte for a character that a client may have.
const ENCODINGS: [&str; 27] = [
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1250",
    "WIN1251",
    "WIN1252",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1256",
    "WIN1257",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "KOI8U",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
];

/// The bytes that psql prints for a script in an encoding.
fn psql_in(target: &Target, encoding: &str, script: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut child = Command::new("sh")
        .args(["-c", "exec 2>&1; exec \"$@\"", "sh", "psql", "-X", "-a", "-v", "VERBOSITY=verbose"])
        .envs(target.environment())
        .env("PGCLIENTENCODING", encoding)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let script = script.to_vec();
    let writer = std::thread::spawn(move || input.write_all(&script));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    // Where in PostgreSQL's sources an error comes from.
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"LOCATION:"));
    lines.collect::<Vec<_>>().join(&b'\n')
}

#[test]
fn psql_of_other_encodings_gets_the_same_bytes() {
    let (oracle, tested) = (plain(), cluster());
    let (oracle, tested) =
        (oracle.create_database("encodings", "").unwrap(), tested.create_database("encodings", "").unwrap());
    for (target, distribute) in [(&oracle, ""), (&tested, "SELECT create_distributed_table('words', 'word');")] {
        let made = format!("CREATE TABLE words (id int, word text);{distribute}");
        psql_in(target, "UTF8", made.as_bytes());
    }
    for encoding in ENCODINGS {
        let mut script: Vec<u8> = Vec::new();
        let mut add = |parts: &[&[u8]]| parts.iter().for_each(|part| script.extend_from_slice(part));
        add(&[b"SHOW client_encoding; TRUNCATE words;\n"]);
        for byte in 0x80..=0xffu8 {
            let c = [byte];
            add(&[b"SELECT '", &c, b"', convert_to('", &c, b"', 'UTF8');\n"]);
            add(&[b"INSERT INTO words VALUES (", byte.to_string().as_bytes(), b", '", &c, b"');\n"]);
        }
        add(&[b"SELECT id, word, length(word), convert_to(word, 'UTF8') AS \"\xe1\" FROM words ORDER BY id;\n"]);
        add(&[b"SELECT id FROM words WHERE word = '\xe1';\nSELECT count(*), max(word COLLATE \"C\") FROM words;\n"]);
        add(&[
            b"\\copy (SELECT id, word FROM words ORDER BY id) to stdout\n\\copy words from stdin\n1000\tx\xe1y\n\\.\n",
        ]);
        add(&[
            b"SELECT word, id FROM words WHERE id > 255;\nUPDATE words SET id = 0 WHERE word = 'x\xe1y' RETURNING *;\n",
        ]);
        add(&[b"SELECT E'\\u20ac', E'\\u4e00';\nSELECT \"nothing \xe1\" FROM words;\nSELECT '\xe1' FROM;\n"]);
        add(&[
            b"INSERT INTO words VALUES (5000, 'gone') RETURNING E'\\u4e00';\nSELECT * FROM words WHERE id = 5000;\n",
        ]);
        add(&[b"BEGIN;\nDO $$ BEGIN RAISE NOTICE '\xe1'; END $$;\nSAVEPOINT a;\nSELECT E'\\u4e00';\nROLLBACK TO a;\n"]);
        add(&[b"SELECT '\xe1', id FROM words WHERE id = 0;\nCOMMIT;\n\\encoding UTF8\nSELECT E'\\u4e00';\n"]);
        let (expected, found) = (psql_in(&oracle, encoding, &script), psql_in(&tested, encoding, &script));
        if expected != found {
            let lines = |bytes: &[u8]| -> Vec<String> {
                bytes.split(|byte| *byte == b'\n').map(|line| line.escape_ascii().to_string()).collect()
            };
            panic!("psql in {encoding} prints otherwise\n{}", line_difference(&lines(&expected), &lines(&found)));
        }
    }
}

/// What `diff -U 4` says.
fn line_difference(a: &[String], b: &[String]) -> String {
    let directory = std::env::temp_dir().join(format!("pgherd-diff-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a"), a.join("\n")).unwrap();
    std::fs::write(directory.join("b"), b.join("\n")).unwrap();
    let output =
        Command::new("diff").args(["-U", "4"]).arg(directory.join("a")).arg(directory.join("b")).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn psql_lists_tables_with_sizes_and_several_commands() {
    let target = cluster().create_database("psql_list", "").unwrap();
    let run = |arguments: &[&str]| {
        let output = Command::new("psql").arg("-X").args(arguments).envs(target.environment()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql {arguments:?}: {printed}");
        printed
    };
    run(&["-c", "CREATE TABLE t (k int PRIMARY KEY, v text)", "-c", "SELECT create_distributed_table('t', 'k')"]);
    assert!(run(&["-c", "INSERT INTO t SELECT g, 'v' FROM generate_series(1, 100) g"]).contains("INSERT 0 100"));
    let listed = run(&["-c", r"\dt+"]);
    assert!(listed.contains("public | t    | table"), "{listed}");
    assert_eq!(listed.matches("table").count(), 1, "only the user's table is listed: {listed}");
    assert!(run(&["-c", r"\timing on", "-c", "SELECT count(*) FROM t"]).contains("Time: "));
    assert_eq!(run(&["-Atc", "SELECT 1; SELECT count(*) FROM t; SELECT 'x'"]), "1\n100\nx\n");
    assert_eq!(
        run(&["-1", "-Atq", "-c", "UPDATE t SET v = 'w'", "-c", "SELECT count(*) FROM t WHERE v = 'w'"]),
        "100\n"
    );
    assert!(run(&["-l"]).contains("psql_list"));
    let connected = run(&["-c", r"\conninfo"]);
    assert!(connected.contains(&target.port.to_string()), "{connected}");
}

/// The interpreter of a Python environment that has psycopg.
fn python() -> PathBuf {
    let has_psycopg = |python: &PathBuf| {
        Command::new(python).args(["-c", "import psycopg"]).output().is_ok_and(|output| output.status.success())
    };
    if let Some(python) = std::env::var_os("PGHERD_TEST_PYTHON").map(PathBuf::from)
        && has_psycopg(&python)
    {
        return python;
    }
    let environment = workspace_file("target/venv-psycopg");
    let python = environment.join("bin/python");
    if !has_psycopg(&python) {
        let run = |command: &mut Command| {
            let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?} (install python3-venv, or set PGHERD_TEST_PYTHON): {said}");
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "psycopg[binary]>=3.2"]));
    }
    python
}

fn psycopg_round(side: &Side) {
    let target = side.create_database("psycopg", "").unwrap();
    let mut command = Command::new(python());
    command.arg(workspace_file("tests/clients/psycopg_round.py")).envs(target.environment());
    if !side.is_cluster {
        command.env("PGHERD_PLAIN", "1");
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.contains("all done"), "on {}:\n{printed}", side.name);
}

#[test]
fn psycopg_on_one_server() {
    psycopg_round(&plain());
}

#[test]
fn psycopg_on_a_cluster() {
    psycopg_round(&cluster());
}

/// One tokio-postgres connection; its driver runs until the client is dropped.
async fn connect(target: &Target) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&target.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Cancels, and returns when the server has closed the connection that asked for it. Before that PostgreSQL may be
/// about to interrupt once more (it signals the process, then its group), which would meet the next statement.
async fn cancel_and_wait(target: &Target, token: &CancelToken) {
    let (near, mut far) = tokio::io::duplex(256);
    token.cancel_query_raw(near, NoTls).await.unwrap();
    let mut request = Vec::new();
    far.read_to_end(&mut request).await.unwrap();
    let mut stream = TcpStream::connect((target.host.as_str(), target.port)).await.unwrap();
    stream.write_all(&request).await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "a cancel request has no answer");
}

async fn tokio_postgres_round(side: &Side) {
    let target = side.create_database("tokio_postgres", "").unwrap();
    let mut client = connect(&target).await;

    // Create, load, distribute.
    client
        .batch_execute(
            "CREATE TABLE people (id bigint PRIMARY KEY, name text, age int, ratio float8, raw bytea);
             CREATE TABLE visits (person bigint, at timestamp, note text);
             CREATE TABLE kinds (id int PRIMARY KEY, name text);
             INSERT INTO people SELECT g, 'p' || g, g, g / 2.0, NULL FROM generate_series(1, 100) g",
        )
        .await
        .unwrap();
    if side.is_cluster {
        for call in [
            "SELECT create_distributed_table('people', 'id')",
            "SELECT create_distributed_table('visits', 'person', colocate_with => 'people')",
            "SELECT create_reference_table('kinds')",
        ] {
            client.query_one(call, &[]).await.unwrap();
        }
    }
    client.execute("INSERT INTO kinds VALUES ($1, $2), ($3, $4)", &[&1i32, &"one", &2i32, &"two"]).await.unwrap();

    // Query: tokio-postgres sends every parameter and asks for every result in binary.
    let by_id = client.prepare("SELECT name, age, ratio FROM people WHERE id = $1").await.unwrap();
    assert_eq!(by_id.params(), [Type::INT8]);
    assert_eq!(by_id.columns()[1].type_(), &Type::INT4);
    for id in 1..=20i64 {
        let row = client.query_one(&by_id, &[&id]).await.unwrap();
        assert_eq!((row.get::<_, String>(0), row.get::<_, i32>(1)), (format!("p{id}"), id as i32));
    }
    let row =
        client.query_one("SELECT count(*), sum(age), avg(ratio) FROM people WHERE id > $1", &[&50i64]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, f64>(2)), (50, 3775, 37.75));
    let rows = client
        .query("SELECT id FROM people WHERE id = ANY($1) ORDER BY id DESC", &[&vec![5i64, 7, 500, 6]])
        .await
        .unwrap();
    assert_eq!(rows.iter().map(|r| r.get(0)).collect::<Vec<i64>>(), [7, 6, 5]);
    let rows =
        client.query("SELECT p.id, k.name FROM people p JOIN kinds k ON k.id = p.age ORDER BY 1", &[]).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert!(client.query_opt(&by_id, &[&999i64]).await.unwrap().is_none());
    let raw: &[u8] = &[0, 1, 255, b'\\'];
    assert_eq!(client.execute("UPDATE people SET raw = $1 WHERE id = $2", &[&raw, &3i64]).await.unwrap(), 1);
    assert_eq!(client.query_one("SELECT raw FROM people WHERE id = 3", &[]).await.unwrap().get::<_, Vec<u8>>(0), raw);

    // A pipeline: many requests before the first answer.
    let (client_ref, statement) = (&client, &by_id);
    let names = futures_util::future::try_join_all(
        (1..=100i64)
            .map(|id| async move { client_ref.query_one(statement, &[&id]).await.map(|r| r.get::<_, String>(0)) }),
    )
    .await
    .unwrap();
    assert_eq!(names[99], "p100");
    let (good, bad, after) = futures_util::join!(
        client.query_one(&by_id, &[&1i64]),
        client.query_one("SELECT 1 / (age - age) FROM people WHERE id = $1", &[&1i64]),
        client.query_one(&by_id, &[&2i64])
    );
    assert!(good.is_ok() && after.is_ok());
    assert_eq!(bad.unwrap_err().code(), Some(&SqlState::DIVISION_BY_ZERO));

    // Transactions over several workers, savepoints, errors inside.
    let mut transaction = client.transaction().await.unwrap();
    assert_eq!(transaction.execute("UPDATE people SET name = 'tx' WHERE id <= 10", &[]).await.unwrap(), 10);
    let savepoint = transaction.transaction().await.unwrap();
    savepoint.execute("DELETE FROM people", &[]).await.unwrap();
    let error = savepoint.execute("INSERT INTO kinds VALUES (1, 'dup')", &[]).await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
    assert_eq!(error.as_db_error().unwrap().constraint(), Some("kinds_pkey"));
    savepoint.rollback().await.unwrap();
    let n: i64 = transaction.query_one("SELECT count(*) FROM people WHERE name = 'tx'", &[]).await.unwrap().get(0);
    assert_eq!(n, 10);
    transaction.commit().await.unwrap();
    let transaction = client.transaction().await.unwrap();
    transaction.execute("DELETE FROM people", &[]).await.unwrap();
    drop(transaction);
    let count = async |client: &tokio_postgres::Client| -> i64 {
        client.query_one("SELECT count(*) FROM people", &[]).await.unwrap().get(0)
    };
    assert_eq!(count(&client).await, 100);

    // Portals: rows in portions.
    let transaction = client.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM people ORDER BY id", &[]).await.unwrap();
    for first in [1i64, 8, 15] {
        let rows = transaction.query_portal(&portal, 7).await.unwrap();
        assert_eq!((rows.len(), rows[0].get::<_, i64>(0)), (7, first));
    }
    assert_eq!(transaction.query_portal(&portal, 0).await.unwrap().len(), 79);
    transaction.commit().await.unwrap();

    // Rows as they come.
    let rows = client.query_raw("SELECT age FROM people", Vec::<i32>::new()).await.unwrap();
    let ages: Vec<i32> = rows.map_ok(|r| r.get::<_, i32>(0)).try_collect().await.unwrap();
    assert_eq!(ages.iter().sum::<i32>(), 5050);

    // COPY in and out, text and binary.
    let sink = client.copy_in("COPY visits FROM STDIN").await.unwrap();
    pin_mut!(sink);
    for part in ["1\t2020-01-01 10:00\tfirst\n2\t2020-01-", "02 10:00\tsecond\n", "\\N\t\\N\tnobody\n"] {
        sink.send(part.as_bytes()).await.unwrap();
    }
    assert_eq!(sink.finish().await.unwrap(), 3);
    let sink = client.copy_in("COPY people (id, name, age) FROM STDIN (FORMAT binary)").await.unwrap();
    let writer = BinaryCopyInWriter::new(sink, &[Type::INT8, Type::TEXT, Type::INT4]);
    pin_mut!(writer);
    for id in 1000..1200i64 {
        writer.as_mut().write(&[&id, &format!("c{id}"), &(id as i32)]).await.unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), 200);
    let name: String = client.query_one(&by_id, &[&1150i64]).await.unwrap().get(0);
    assert_eq!(name, "c1150");
    let out = client.copy_out("COPY (SELECT person, note FROM visits ORDER BY note) TO STDOUT").await.unwrap();
    let bytes: Vec<u8> = out.map_ok(|b| b.to_vec()).try_concat().await.unwrap();
    assert_eq!(String::from_utf8(bytes).unwrap(), "1\tfirst\n\\N\tnobody\n2\tsecond\n");
    let sink = client.copy_in("COPY people (id) FROM STDIN").await.unwrap();
    pin_mut!(sink);
    sink.send("5000\n1\n".as_bytes()).await.unwrap();
    assert_eq!(sink.finish().await.unwrap_err().code(), Some(&SqlState::UNIQUE_VIOLATION));
    assert_eq!(client.execute("DELETE FROM people WHERE id >= 1000", &[]).await.unwrap(), 200);

    // Simple queries: several results in one message.
    let messages = client
        .simple_query("SELECT name FROM people WHERE id = 77; UPDATE kinds SET name = name; SELECT 1")
        .await
        .unwrap();
    let rows = messages.iter().filter(|m| matches!(m, SimpleQueryMessage::Row(_))).count();
    assert_eq!(rows, 2);

    // Errors leave the connection usable; types are checked on the client by what the server described.
    for (sql, code) in [
        ("SELECT nope FROM people", SqlState::UNDEFINED_COLUMN),
        ("SELECT * FROM nowhere", SqlState::UNDEFINED_TABLE),
        ("SELEC", SqlState::SYNTAX_ERROR),
        ("INSERT INTO people (name) VALUES ('x')", SqlState::NOT_NULL_VIOLATION),
        ("SELECT sum(1 / (age - age)) FROM people", SqlState::DIVISION_BY_ZERO),
    ] {
        assert_eq!(client.query(sql, &[]).await.unwrap_err().code(), Some(&code), "{sql}");
    }
    assert!(client.query_one(&by_id, &[&"no number"]).await.is_err());
    assert_eq!(count(&client).await, 100);

    // Cancel.
    for sql in ["SELECT pg_sleep(30)", "SELECT count(pg_sleep(5)) FROM people"] {
        let cancel = client.cancel_token();
        let later = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            cancel_and_wait(&target, &cancel).await;
        };
        let (result, ()) = futures_util::join!(client.query(sql, &[]), later);
        assert_eq!(result.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED), "{sql}");
    }
    assert_eq!(count(&client).await, 100);

    // A statement stays prepared while its table changes below it.
    let all = client.prepare("SELECT name FROM people WHERE id = $1").await.unwrap();
    client.query_one(&all, &[&1i64]).await.unwrap();
    client.batch_execute("ALTER TABLE people ADD COLUMN extra int DEFAULT 5").await.unwrap();
    client.query_one(&all, &[&1i64]).await.unwrap();
    let extra: i32 = client.query_one("SELECT extra FROM people WHERE id = 42", &[]).await.unwrap().get(0);
    assert_eq!(extra, 5);

    // Many connections, each with statements of its own by the same names (s0, s1, …).
    let mut tasks = Vec::new();
    for i in 0..20i64 {
        let target = target.clone();
        tasks.push(tokio::spawn(async move {
            let client = connect(&target).await;
            let even = i % 2 == 0;
            let statement = if even {
                "SELECT name FROM people WHERE id = $1"
            } else {
                "SELECT age::text FROM people WHERE id = $1"
            };
            let statement = client.prepare(statement).await.unwrap();
            for id in 11..40i64 {
                let value: String = client.query_one(&statement, &[&id]).await.unwrap().get(0);
                assert_eq!(value, if even { format!("p{id}") } else { id.to_string() });
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn tokio_postgres_on_one_server() {
    let side = tokio::task::spawn_blocking(plain).await.unwrap();
    tokio_postgres_round(&side).await;
}

#[tokio::test]
async fn tokio_postgres_on_a_cluster() {
    let side = tokio::task::spawn_blocking(cluster).await.unwrap();
    tokio_postgres_round(&side).await;
}
