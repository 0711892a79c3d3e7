//! Roles with passwords, on servers that ask for them: the router logs in everywhere with what the client has proved,
//! so every server has the same verifier of each password.

#![allow(clippy::unwrap_used)]

use std::sync::OnceLock;

use pgherd_testkit::client::startup;
use pgherd_testkit::door::{self, packet};
use pgherd_testkit::{Cluster, Target};
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start_with(env!("CARGO_BIN_EXE_pgherd"), 2, &["--auth", "scram-sha-256"]).unwrap())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

async fn connect_as(target: &Target, user: &str, password: &str) -> Result<Client, Error> {
    let mut config = tokio_postgres::Config::new();
    config.host(&target.host).port(target.port).user(user).password(password).dbname(&target.database);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn admin() -> Client {
    let target = &cluster().target;
    connect_as(target, &target.user, target.password.as_ref().unwrap()).await.unwrap()
}

/// The coordinator itself, of which the router does not hear what is done there.
async fn behind_the_router(admin: &Client) -> (Target, Client) {
    let coordinator = Target { port: value(admin, "SHOW port").await.parse().unwrap(), ..cluster().target.clone() };
    let direct = connect_as(&coordinator, &coordinator.user, coordinator.password.as_ref().unwrap()).await.unwrap();
    (coordinator, direct)
}

async fn value(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|e| panic!("{sql}: {:?}", e.as_db_error()));
    let row = messages.iter().find_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(row) } else { None });
    row.and_then(|row| row.get(0)).unwrap_or_default().to_owned()
}

/// What a role with a password does in its first minute.
async fn works(role: &str, password: &str) {
    let client = connect_as(&cluster().target, role, password).await.unwrap_or_else(|e| panic!("{role}: {e}"));
    assert_eq!(value(&client, "SELECT count(*) FROM shared_rows").await, "100", "{role}");
    assert_eq!(value(&client, "SELECT v FROM shared_rows WHERE k = 7").await, "0", "{role}");
    let sql = "BEGIN; UPDATE shared_rows SET v = v + 1; INSERT INTO shared_rows VALUES (1000, 0); ROLLBACK";
    client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{role}: {:?}", e.as_db_error()));
    let table = format!("own_{role}");
    client
        .batch_execute(&format!(
            "CREATE SCHEMA IF NOT EXISTS AUTHORIZATION {role}; CREATE TABLE {role}.{table} (k int PRIMARY KEY, v int); \
             SELECT create_distributed_table('{role}.{table}', 'k'); \
             INSERT INTO {role}.{table} SELECT g, g FROM generate_series(1, 10) g; DROP TABLE {role}.{table}"
        ))
        .await
        .unwrap_or_else(|e| panic!("{role}: {:?}", e.as_db_error()));
}

/// Once for all tests.
async fn prepared() -> Client {
    static ONCE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONCE.lock().await;
    let admin = admin().await;
    if value(&admin, "SELECT count(*) FROM pg_class WHERE relname = 'shared_rows'").await == "1" {
        return admin;
    }
    admin
        .batch_execute(
            "CREATE TABLE shared_rows (k int PRIMARY KEY, v int); \
             DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO PUBLIC', current_database()); END $$; \
             GRANT ALL ON shared_rows TO PUBLIC; \
             SELECT create_distributed_table('shared_rows', 'k', shard_count => 4); \
             INSERT INTO shared_rows SELECT g, 0 FROM generate_series(1, 100) g",
        )
        .await
        .unwrap();
    admin
}

/// The verifiers of a role on all workers, and the coordinator's.
async fn verifiers(admin: &Client, role: &str) -> Vec<String> {
    let sql = format!("SELECT coalesce(rolpassword, '') FROM pg_authid WHERE rolname = '{role}'");
    let workers =
        value(admin, &format!("SELECT string_agg(result, ' ') FROM run_command_on_workers($${sql}$$) WHERE success"))
            .await;
    let mut found: Vec<String> = workers.split(' ').map(str::to_owned).collect();
    found.push(value(admin, &sql).await);
    found
}

#[test]
fn a_role_made_through_the_router_is_let_in_everywhere() {
    block_on(async {
        let admin = prepared().await;
        let ways: &[(&str, &str, &str)] = &[
            ("pw_create", "CREATE ROLE pw_create LOGIN PASSWORD 'secret'", "secret"),
            ("pw_user", "CREATE USER pw_user WITH ENCRYPTED PASSWORD 'it''s'", "it's"),
            ("pw_alter", "CREATE ROLE pw_alter LOGIN; ALTER ROLE pw_alter WITH PASSWORD $q$other$q$", "other"),
            ("pw_twice", "CREATE USER pw_twice PASSWORD 'a'; ALTER USER pw_twice PASSWORD E'b\\x63'", "bc"),
            ("pw_do", "DO $$ BEGIN CREATE ROLE pw_do LOGIN PASSWORD 'inside'; END $$", "inside"),
            ("pw_block", "BEGIN; CREATE ROLE pw_block LOGIN; ALTER ROLE pw_block PASSWORD 'x'; COMMIT", "x"),
            ("pw_two", "BEGIN; CREATE ROLE pw_one; CREATE ROLE pw_two PASSWORD 'y' IN ROLE pw_one LOGIN; COMMIT", "y"),
            (
                "pw_back",
                "CREATE ROLE pw_back LOGIN PASSWORD 'kept'; COMMIT; BEGIN; ALTER ROLE pw_back PASSWORD 'gone'; ROLLBACK",
                "kept",
            ),
            ("pw_renamed", "CREATE ROLE pw_named LOGIN PASSWORD 'n'; ALTER ROLE pw_named RENAME TO pw_renamed", "n"),
        ];
        for (role, sql, password) in ways {
            admin.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {:?}", e.as_db_error()));
            let found = verifiers(&admin, role).await;
            assert!(
                found.len() == 3 && found.iter().all(|v| *v == found[0] && v.starts_with("SCRAM")),
                "{sql}: {found:?}"
            );
            works(role, password).await;
        }
        // A client that encrypts it itself, as \password does, and one that takes it away.
        let verifier = verifiers(&admin, "pw_create").await.pop().unwrap();
        admin.batch_execute(&format!("CREATE ROLE pw_hashed LOGIN PASSWORD '{verifier}'")).await.unwrap();
        works("pw_hashed", "secret").await;
        // Its own password, by the role itself.
        let own = connect_as(&cluster().target, "pw_user", "it's").await.unwrap();
        own.batch_execute("ALTER ROLE CURRENT_USER PASSWORD 'mine'").await.unwrap();
        works("pw_user", "mine").await;
        admin.batch_execute("ALTER ROLE pw_hashed PASSWORD NULL").await.unwrap();
        assert_eq!(verifiers(&admin, "pw_hashed").await.concat(), "");
        assert!(connect_as(&cluster().target, "pw_hashed", "secret").await.is_err());
    });
}

#[test]
fn roles_that_differ_are_brought_in_line_when_they_are_used() {
    block_on(async {
        let admin = prepared().await;
        let (_, direct) = behind_the_router(&admin).await;
        // Made behind the router's back, with a group; then changed there.
        let sql = "CREATE ROLE bh_group; CREATE ROLE bh_role LOGIN PASSWORD 'one' IN ROLE bh_group";
        direct.batch_execute(sql).await.unwrap();
        works("bh_role", "one").await;
        direct.batch_execute("ALTER ROLE bh_role PASSWORD 'two'").await.unwrap();
        // What the router remembers of roles it remembers for a second.
        let mut tries = 0;
        while connect_as(&cluster().target, "bh_role", "two").await.is_err() {
            tries += 1;
            assert!(tries < 100, "the new password is never accepted");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        works("bh_role", "two").await;
        // Changed on the workers.
        admin.batch_execute("SELECT run_command_on_workers($$ALTER ROLE bh_role PASSWORD 'three'$$)").await.unwrap();
        works("bh_role", "two").await;
    });
}

/// A password as psql sends it.
async fn encrypted(admin: &Client, password: &str) -> String {
    let role = format!("has_{password}");
    admin.batch_execute(&format!("CREATE ROLE {role} PASSWORD '{password}'")).await.unwrap();
    value(admin, &format!("SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'")).await
}

#[test]
fn open_sessions_go_on_when_the_password_changes() {
    block_on(async {
        let admin = prepared().await;
        admin.batch_execute("CREATE ROLE goes_on LOGIN PASSWORD 'p'").await.unwrap();
        let other = connect_as(&cluster().target, "goes_on", "p").await.unwrap();
        for (way, now) in [("ALTER ROLE goes_on PASSWORD 'q'", "q"), ("ALTER USER goes_on WITH PASSWORD 'r';", "r")] {
            let client = connect_as(&cluster().target, "goes_on", if now == "q" { "p" } else { "q" }).await.unwrap();
            assert_eq!(value(&client, "SELECT 1").await, "1");
            admin.batch_execute(way).await.unwrap();
            for client in [&client, &other] {
                assert_eq!(value(client, "SELECT count(*) FROM shared_rows").await, "100");
                assert_eq!(value(client, "SELECT count(*) FROM pg_tables WHERE tablename = 'shared_rows'").await, "1");
            }
            works("goes_on", now).await;
        }
        // Its own, and one that comes encrypted: the next login tells what it is.
        connect_as(&cluster().target, "goes_on", "r")
            .await
            .unwrap()
            .batch_execute("ALTER ROLE CURRENT_USER PASSWORD 's'")
            .await
            .unwrap();
        assert_eq!(value(&other, "SELECT count(*) FROM shared_rows").await, "100");
        let verifier = encrypted(&admin, "t").await;
        admin.batch_execute(&format!("ALTER ROLE goes_on PASSWORD '{verifier}'")).await.unwrap();
        works("goes_on", "t").await;
        assert_eq!(value(&other, "SELECT count(*) FROM shared_rows").await, "100");
    });
}

#[test]
fn a_worker_that_lets_nobody_in_fails_the_statement_and_not_the_session() {
    block_on(async {
        let admin = prepared().await;
        admin.batch_execute("CREATE ROLE kept_out LOGIN PASSWORD 'p'").await.unwrap();
        let client = connect_as(&cluster().target, "kept_out", "p").await.unwrap();
        assert_eq!(value(&client, "SELECT 1").await, "1");
        // The session's keys are those of the old password, and nobody has used the new one.
        let verifier = encrypted(&admin, "q").await;
        admin.batch_execute(&format!("ALTER ROLE kept_out PASSWORD '{verifier}'")).await.unwrap();
        let error = client.batch_execute("SELECT count(*) FROM shared_rows").await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!((error.severity(), error.code().code()), ("ERROR", "28P01"), "{error:?}");
        assert!(error.message().contains("could not log in to ") && error.hint().is_some(), "{error:?}");
        assert!(!client.is_closed());
        works("kept_out", "q").await;
    });
}

/// What a client says that has not proved yet who it is.
#[test]
fn nothing_but_a_proof_is_read_before_login() {
    use std::io::{Read, Write};
    let target = &cluster().target;
    let first = startup(196_608, &[("user", &target.user), ("database", &target.database)]);
    let query = [&b"Q\0\0\0\x0d"[..], b"SELECT 1\0"].concat();
    let long = [&b"p"[..], &0x7fff_ffff_u32.to_be_bytes(), &[b'x'; 100]].concat();
    for (said, expected) in [
        // A second startup packet, encryption, a cancel request, a query, an empty proof, one that is too long.
        (first.clone(), "expected SASL response, got message type 0"),
        (packet(8, door::SSL_REQUEST, b""), "expected SASL response, got message type 0"),
        (packet(16, door::CANCEL_REQUEST, &[0; 8]), "expected SASL response, got message type 0"),
        (query, "expected SASL response, got message type 81"),
        (b"p\0\0\0\x04".to_vec(), "08P01"),
        (long, ""),
    ] {
        let mut stream = std::net::TcpStream::connect((&*target.host, target.port)).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        stream.write_all(&first).unwrap();
        let mut asked = [0; 24];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(asked[0], b'R', "{asked:?}");
        assert_eq!(&asked[9..22], b"SCRAM-SHA-256");
        stream.write_all(&said).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer[0] == b'E' && text.contains("FATAL"), "{text:?}");
        assert!(text.contains(expected), "{said:?}: {text:?} has no {expected:?}");
    }
    block_on(async {
        assert_eq!(value(&admin().await, "SELECT 1").await, "1");
    });
}

/// What is remembered of a login is not longer true than a second.
#[test]
fn a_login_ends_with_what_it_stands_on() {
    block_on(async {
        let admin = prepared().await;
        let (coordinator, direct) = behind_the_router(&admin).await;
        let sql = "CREATE ROLE may_end LOGIN PASSWORD 'p'";
        admin.batch_execute(sql).await.unwrap();
        let code = async |target: &Target| match connect_as(target, "may_end", "p").await {
            Ok(_) => "in".to_owned(),
            Err(error) => error.as_db_error().map_or_else(|| error.to_string(), |e| e.code().code().to_owned()),
        };
        for (change, expected) in [
            ("ALTER ROLE may_end VALID UNTIL 'yesterday'", "28P01"),
            ("ALTER ROLE may_end VALID UNTIL 'tomorrow'", "in"),
            ("ALTER ROLE may_end PASSWORD 'q'", "28P01"),
            ("ALTER ROLE may_end PASSWORD 'p'", "in"),
            ("ALTER ROLE may_end VALID UNTIL '-infinity'", "28P01"),
            ("ALTER ROLE may_end VALID UNTIL 'infinity'", "in"),
            ("ALTER ROLE may_end NOLOGIN", "28000"),
            ("ALTER ROLE may_end LOGIN CONNECTION LIMIT 0", "53300"),
            ("ALTER ROLE may_end CONNECTION LIMIT -1", "in"),
            ("ALTER ROLE may_end PASSWORD NULL", "28P01"),
            ("ALTER ROLE may_end PASSWORD 'p'", "in"),
            ("DROP ROLE may_end", "28P01"),
            (sql, "in"),
        ] {
            // By itself PostgreSQL says the same; the router finds out soon, though nobody tells it.
            code(&cluster().target).await;
            direct.batch_execute(change).await.unwrap_or_else(|e| panic!("{change}: {:?}", e.as_db_error()));
            assert_eq!(code(&coordinator).await, expected, "{change}");
            let mut found = code(&cluster().target).await;
            for _ in 0..60 {
                if found == expected {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                found = code(&cluster().target).await;
            }
            assert_eq!(found, expected, "{change}");
        }
    });
}
