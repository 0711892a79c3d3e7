//! What a session leaves on servers' connections is not seen by the next one: generated statements that leave
//! something, in every shape and by every protocol, and what other sessions then find, beside one PostgreSQL.
//! `PGHERD_LEAKS`: how many statements (`make leaks` takes 100,000), `PGHERD_SEED`: which.
#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::{Client, Reply};
use pgherd_testkit::fuzz::random::Random;
use pgherd_testkit::ways::Ways;
use pgherd_testkit::{Side, beside};

const TABLES: &str = "
CREATE TABLE spread (k int PRIMARY KEY, v text);
CREATE TABLE local (k int PRIMARY KEY, v text);
CREATE TABLE numbered (k serial PRIMARY KEY, v text);
CREATE TABLE counted (k int, n bigserial, v text);
CREATE TABLE country (code int PRIMARY KEY, name text);
INSERT INTO spread SELECT g, 'v' || g FROM generate_series(1, 30) g;
INSERT INTO local SELECT g, 'l' || g FROM generate_series(1, 30) g;
INSERT INTO country SELECT g, 'c' || g FROM generate_series(1, 5) g;
CREATE SCHEMA other;
CREATE TABLE other.local (k int PRIMARY KEY, v text);
INSERT INTO other.local SELECT g, 'other' || g FROM generate_series(1, 30) g;
CREATE SEQUENCE drawn;
CREATE FUNCTION sets(name text, value text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config(name, value, false); RETURN value; END $$;
CREATE FUNCTION sets_by_word() RETURNS int LANGUAGE plpgsql AS $$ BEGIN SET app.word = 'w'; RETURN 1; END $$;
CREATE FUNCTION sets_within() RETURNS int LANGUAGE plpgsql SET app.within = 'x' AS $$ BEGIN RETURN 1; END $$;
CREATE FUNCTION named(i int) RETURNS text LANGUAGE sql AS $$ SELECT v FROM spread WHERE k = i $$;
CREATE VIEW setting AS SELECT set_config('app.view', 'seen', false) AS x;
GRANT ALL ON ALL TABLES IN SCHEMA public, other TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC;
GRANT USAGE ON SCHEMA other TO PUBLIC;
";

const DISTRIBUTE: [&str; 3] = [
    "SELECT create_distributed_table('spread', 'k')",
    "SELECT create_distributed_table('counted', 'k')",
    "SELECT create_reference_table('country')",
];

/// Expressions that leave something, each evaluated once in each shape.
const EXPRESSIONS: &[&str] = &[
    "set_config('app.leak#', 'v#', false)",
    "set_config('app.leak#', 'v#', true)",
    "set_config('work_mem', '#MB', false)",
    "set_config('DateStyle', 'German', false)",
    "set_config('TimeZone', 'Asia/Tokyo', false)",
    "set_config('search_path', 'other, public', false)",
    "set_config('statement_timeout', '9#s', false)",
    "set_config('application_name', 'app#', false)",
    "sets('app.leak#', 'f#')",
    "sets('search_path', 'other, public')",
    "sets_by_word()",
    "sets_within()",
    "nextval('drawn')",
    "pg_try_advisory_lock(#)",
    "pg_advisory_lock_shared(10#)",
    "pg_try_advisory_xact_lock(20#)",
    "setseed(0.#)",
    "(SELECT x FROM setting)",
    "coalesce(current_setting('app.leak#', true), '')",
    "date_trunc('century', now())",
    "random() >= 0",
];

/// `?` is the expression, `$1` a key.
const SHAPES: &[&str] = &[
    "SELECT ?",
    "SELECT ? AS x, $1::int",
    "SELECT k, ? FROM spread WHERE k = $1",
    "SELECT k, ? FROM local WHERE k = $1",
    "SELECT code, ? FROM country WHERE code = $1 % 5 + 1",
    "SELECT k FROM spread WHERE k = $1 AND (?)::text IS NOT NULL",
    "SELECT (SELECT (?)::text), $1::int",
    "WITH c AS MATERIALIZED (SELECT (?)::text AS x) SELECT x, $1::int FROM c",
    "SELECT CASE WHEN $1::int > 0 THEN (?)::text END",
    "SELECT x FROM (VALUES ((?)::text, $1::int)) v (x, y)",
    "VALUES ((?)::text, $1::int)",
    "INSERT INTO local (k, v) VALUES (100 + $1, (?)::text) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
    "INSERT INTO spread (k, v) VALUES (100 + $1, (?)::text) ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING k",
    "INSERT INTO numbered (v) VALUES ((?)::text)",
    "INSERT INTO counted (k, v) VALUES ($1, (?)::text)",
    "UPDATE local SET v = (?)::text WHERE k = $1",
    "UPDATE spread SET v = (?)::text WHERE k = $1",
    "DELETE FROM local WHERE k = $1 AND (?)::text IS NULL",
    "SELECT y FROM local s, LATERAL (SELECT (?)::text AS y) x WHERE s.k = $1",
    "DO $$ BEGIN PERFORM ?; END $$",
    "DO $$ BEGIN EXECUTE 'SELECT 1'; PERFORM ?; END $$",
    "SELECT named($1), (?)::text",
];

/// Whole statements that leave something, or take it away.
const STATEMENTS: &[&str] = &[
    "SET app.leak# = 's#'",
    "SET work_mem = '#MB'",
    "SET LOCAL app.leak# = 'local'",
    "SET LOCAL statement_timeout = '8#s'",
    "SET search_path = other, public",
    "SET DateStyle = 'SQL, DMY'",
    "SET TIME ZONE 'America/New_York'",
    "SET ROLE leak_role",
    "RESET ROLE",
    "RESET ALL",
    "RESET search_path",
    "CREATE TEMP TABLE IF NOT EXISTS temp# (a int)",
    "CREATE TEMP TABLE IF NOT EXISTS country (code int, name text)",
    "DROP TABLE IF EXISTS pg_temp.country",
    "CREATE TEMP SEQUENCE IF NOT EXISTS temp_seq",
    "PREPARE plan# AS SELECT # + 1",
    "DEALLOCATE ALL",
    "DECLARE held# CURSOR WITH HOLD FOR SELECT k FROM local ORDER BY k",
    "DECLARE far# CURSOR WITH HOLD FOR SELECT k FROM spread ORDER BY k",
    "CLOSE ALL",
    "LISTEN channel#",
    "UNLISTEN *",
    "INSERT INTO numbered (v) VALUES ('x')",
    "INSERT INTO numbered (v) VALUES ('x'), ('y')",
    "INSERT INTO counted (k, v) VALUES (#, 'x')",
    "SELECT pg_advisory_unlock_all()",
    "DISCARD ALL",
    "DISCARD TEMP",
    "DISCARD SEQUENCES",
    "SELECT named(#)",
];

/// What another session, or the same, finds.
const PROBES: &[&str] = &[
    "SELECT coalesce(current_setting('app.leak1', true), ''), coalesce(current_setting('app.leak2', true), ''), coalesce(current_setting('app.leak3', true), '')",
    "SELECT coalesce(current_setting('app.word', true), ''), coalesce(current_setting('app.view', true), ''), coalesce(current_setting('app.within', true), '')",
    "SELECT current_setting('work_mem'), current_setting('statement_timeout'), current_setting('application_name')",
    "SELECT current_setting('search_path'), current_setting('DateStyle'), current_setting('TimeZone')",
    "SHOW search_path",
    "SELECT current_user, session_user, current_setting('role')",
    "SELECT v FROM local WHERE k = #",
    "SELECT v FROM spread WHERE k = # AND v <> coalesce(current_setting('app.leak1', true), '')",
    "SELECT name FROM country WHERE code = 1",
    "SELECT '2024-02-01'::date, '2024-02-01 12:00+00'::timestamptz",
    "SELECT '01/02/2024'::date AS d FROM spread WHERE k = #",
    "SELECT count(*) FROM pg_prepared_statements",
    "SELECT name FROM pg_cursors WHERE is_holdable ORDER BY 1",
    "SELECT * FROM pg_listening_channels() ORDER BY 1",
    "SELECT to_regclass('temp#'), to_regclass('pg_temp.country'), to_regclass('temp_seq')",
    "SELECT currval('drawn')",
    // A statement that fails may have drawn twice: other tests look at values.
    "SELECT currval('numbered_k_seq') > 0",
    "SELECT currval('counted_n_seq') > 0",
    "SELECT lastval() > 0",
    "EXECUTE plan#",
    "FETCH 1 FROM held#",
    "FETCH 1 FROM far#",
    "SELECT pg_try_advisory_lock(#), pg_advisory_unlock(#)",
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
    "SELECT random() IN (0.4940891442, 0.7068515203)",
    "SELECT has_table_privilege('spread', 'SELECT')",
];

/// A step: who, in which way, what.
struct Step {
    who: usize,
    way: usize,
    block: Option<&'static str>,
    text: String,
    key: usize,
}

fn step(random: &mut Random) -> Step {
    let digit = random.between(1, 3).to_string();
    let text = match random.below(10) {
        0..3 => random.pick(PROBES).replace('#', &digit),
        3..6 => random.pick(STATEMENTS).replace('#', &digit),
        _ => random.pick(SHAPES).replace('?', &random.pick(EXPRESSIONS).replace('#', &digit)),
    };
    let block = match random.below(8) {
        0 => Some("COMMIT"),
        1 => Some("ROLLBACK"),
        _ => None,
    };
    Step { who: random.below(3), way: random.below(3), block, text, key: random.between(1, 30) }
}

/// Values that are nobody's to compare.
fn varies(text: &str) -> bool {
    text.contains("now()")
}

fn run(client: &mut Client, number: usize, step: &Step) -> Vec<Reply> {
    let mut replies = Vec::new();
    if step.block.is_some() {
        replies.push(client.simple("BEGIN", None).unwrap());
    }
    let types = &[23][..usize::from(step.text.contains("$1"))];
    let values = vec![Some(step.key.to_string().into_bytes()); types.len()];
    replies.push(match step.way {
        0 => client.simple(&step.text.replace("$1", &step.key.to_string()), None).unwrap(),
        1 => client.extended(&step.text, types, &values, None).unwrap(),
        _ => {
            let name = format!("n{number}");
            let made = client.prepare(&name, &step.text, types).unwrap();
            match made.error() {
                Some(_) => made,
                None => {
                    client.execute(&name, &values, 0, None).unwrap();
                    let again = client.execute(&name, &values, 0, None).unwrap();
                    client.close_statement(&name).unwrap();
                    again
                }
            }
        }
    });
    if let Some(end) = step.block {
        replies.push(client.simple(end, None).unwrap());
    }
    replies
}

fn begin(side: &Side) -> Client {
    let mut client = side.create_tables("leaks", TABLES, &DISTRIBUTE).unwrap();
    client.run("DROP ROLE IF EXISTS leak_role").unwrap();
    client.run("CREATE ROLE leak_role").unwrap();
    client
}

#[test]
fn nothing_is_left_for_the_next_session() {
    let count: usize = std::env::var("PGHERD_LEAKS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let seed: u64 = std::env::var("PGHERD_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (_plain, sides) = beside::sides(env!("CARGO_BIN_EXE_pgherd"));
    let mut owners = sides.each_ref().map(begin);
    let connect = |side: &Side| side.connect("leaks").unwrap();
    let mut clients = sides.each_ref().map(|side| [connect(side), connect(side), connect(side)]);
    let ways = Ways::default();
    let mut random = Random::new(seed);
    let mut history: Vec<String> = Vec::new();
    let mut differences = Vec::new();
    for number in 0..count {
        let step = step(&mut random);
        let renews = random.below(40) == 0;
        if renews {
            // What it holds is gone before others look.
            for clients in &mut clients {
                clients[step.who].simple("ROLLBACK", None).unwrap();
                clients[step.who].simple("SELECT pg_advisory_unlock_all()", None).unwrap();
            }
            for (side, clients) in sides.iter().zip(&mut clients) {
                clients[step.who] = connect(side);
            }
            history.push(format!("{number}: session {} is a new one", step.who));
        }
        let said = clients.each_mut().map(|clients| {
            let replies = run(&mut clients[step.who], number, &step);
            replies.iter().map(|reply| ways.told(reply)).collect::<Vec<_>>()
        });
        history.push(format!(
            "{number}: session {}, way {}, {:?}, {}: {}",
            step.who,
            step.way,
            step.block,
            step.text,
            said[0].join(" | ")
        ));
        if !varies(&step.text) && said[0] != said[1] {
            // What this session and the others have done lately.
            let own = format!("session {},", step.who);
            let mut lately: Vec<&String> = history.iter().rev().filter(|line| line.contains(&own)).take(20).collect();
            lately.extend(history.iter().rev().filter(|line| !line.contains(&own)).take(8));
            lately.sort_by_key(|line| line.split(':').next().and_then(|n| n.parse::<usize>().ok()));
            let lately: Vec<&str> = lately.into_iter().map(String::as_str).collect();
            differences.push(format!("{}\n  cluster: {}", lately.join("\n"), said[1].join(" | ")));
            if differences.len() >= 5 {
                break;
            }
        }
    }
    owners.iter_mut().for_each(|owner| drop(owner.simple("SELECT 1", None)));
    assert!(differences.is_empty(), "seed {seed}:\n{}", differences.join("\n\n"));
}
