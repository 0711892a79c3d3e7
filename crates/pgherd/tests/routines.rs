//! Functions of users' that are about one key, beside one PostgreSQL: bodies of every kind, called by every way; those
//! that are not about one key are called as well.
#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::Client;
use pgherd_testkit::ways::{Ways, compare_all};
use pgherd_testkit::{Plain, Side, beside};

fn sides() -> (Plain, [Side; 2]) {
    beside::sides(env!("CARGO_BIN_EXE_pgherd"))
}

const TABLES: &str = "
CREATE TABLE userinfo (userid int PRIMARY KEY, name text, email text, logins int DEFAULT 0);
CREATE TABLE session (userid int PRIMARY KEY, login_at timestamptz, online bool DEFAULT false);
CREATE TABLE login_log (userid int, at timestamptz DEFAULT now(), ip inet, event text);
CREATE TABLE events (userid int NOT NULL, id bigserial, what text, PRIMARY KEY (userid, id));
CREATE TABLE country (code int PRIMARY KEY, name text);
CREATE TABLE audit (what text);
INSERT INTO userinfo SELECT g, 'u' || g, 'e' || g FROM generate_series(1, 60) g;
INSERT INTO session (userid) SELECT g FROM generate_series(1, 60) g WHERE g % 5 > 0;
INSERT INTO country SELECT g, 'c' || g FROM generate_series(0, 9) g;
";

const DISTRIBUTE: [&str; 5] = [
    "SELECT create_distributed_table('userinfo', 'userid')",
    "SELECT create_distributed_table('session', 'userid')",
    "SELECT create_distributed_table('login_log', 'userid')",
    "SELECT create_distributed_table('events', 'userid')",
    "SELECT create_reference_table('country')",
];

/// About one key, and not: what each says is what it says on one server.
const FUNCTIONS: &str = r#"
CREATE FUNCTION login(i_userid int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM userinfo WHERE userid = i_userid;
    INSERT INTO login_log (userid, ip, event) VALUES (i_userid, inet_client_addr(), 'login');
    UPDATE session SET login_at = now(), online = true WHERE userid = i_userid;
END $$;
CREATE FUNCTION renamed(k int, new text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    old userinfo.name%TYPE;
    info userinfo%ROWTYPE;
BEGIN
    SELECT name INTO STRICT old FROM userinfo u WHERE u.userid = k;
    UPDATE userinfo SET name = new, logins = logins + 1 WHERE userid = renamed.k RETURNING * INTO info;
    IF info.logins > 1000 THEN
        RAISE EXCEPTION 'too many logins of %', info.name USING ERRCODE = 'UE001', HINT = 'hint ' || k;
    END IF;
    RETURN old || '>' || info.name;
END $$;
CREATE FUNCTION missing(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    SELECT * INTO STRICT r FROM userinfo WHERE userid = k + 0 * k AND userid = k AND name = 'nobody';
    RETURN r.logins;
END $$;
CREATE FUNCTION divided(k int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    UPDATE userinfo SET logins = 1 / (logins - logins) WHERE userid = k;
    RETURN 1;
END $$;
CREATE FUNCTION handled(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
    BEGIN
        INSERT INTO userinfo (userid, name) VALUES (k, 'again');
        RETURN 'new';
    EXCEPTION WHEN unique_violation THEN
        UPDATE userinfo SET logins = logins + 1 WHERE userid = k;
        GET DIAGNOSTICS n = ROW_COUNT;
        RETURN SQLERRM || n;
    END;
END $$;
CREATE FUNCTION countries(k int) RETURNS TABLE (userid int, country text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT u.userid, c.name FROM userinfo u JOIN country c ON c.code = u.userid % 10 WHERE u.userid = k;
END $$;
CREATE FUNCTION rows_of(k int, low int DEFAULT 0) RETURNS TABLE (who text, often int) LANGUAGE sql AS
    $$ SELECT name, logins FROM userinfo WHERE userid = k AND logins >= low $$;
CREATE FUNCTION everyone(low int) RETURNS TABLE (who text, often int) LANGUAGE sql AS
    $$ SELECT name, logins FROM userinfo WHERE logins >= low $$;
CREATE FUNCTION of_nobody() RETURNS TABLE (a int, b text, c int) LANGUAGE sql AS $$ SELECT 1, 'b', 3 $$;
CREATE FUNCTION visits(k int) RETURNS TABLE (who text, at_home bool) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    FOR r IN SELECT u.name, s.online FROM userinfo u LEFT JOIN session s ON s.userid = u.userid WHERE u.userid = k LOOP
        who := r.name;
        at_home := r.online;
        RETURN NEXT;
        CONTINUE WHEN r.online;
        who := upper(r.name);
        RETURN NEXT;
    END LOOP;
END $$;
CREATE FUNCTION named(k int) RETURNS text LANGUAGE sql STABLE AS $$ SELECT name FROM userinfo WHERE userid = k $$;
CREATE FUNCTION numbered(int) RETURNS SETOF text LANGUAGE sql AS
    $$ SELECT name FROM userinfo WHERE userid = $1 UNION ALL SELECT email FROM userinfo WHERE userid = $1 $$;
CREATE FUNCTION pair(k int, OUT a text, OUT b int) LANGUAGE plpgsql AS $$
BEGIN
    SELECT name, logins INTO a, b FROM userinfo WHERE userid = k FOR UPDATE;
END $$;
CREATE FUNCTION looped(k int, n int DEFAULT 3) RETURNS int LANGUAGE plpgsql AS $$
DECLARE total int := 0;
BEGIN
    FOR i IN 1..n LOOP
        total := total + (SELECT logins FROM userinfo WHERE userid = k) + i;
    END LOOP;
    WHILE total > 100 LOOP total := total - 7; END LOOP;
    CASE WHEN total % 2 = 0 THEN INSERT INTO login_log (userid, event) VALUES (k, 'even');
    ELSE DELETE FROM login_log WHERE userid = k AND event = 'even'; END CASE;
    RETURN total;
END $$;
CREATE FUNCTION strict_one(k int) RETURNS int LANGUAGE sql STRICT AS $$ SELECT logins FROM userinfo WHERE userid = k $$;
CREATE FUNCTION other_key(k int) RETURNS int LANGUAGE sql AS $$ SELECT logins FROM userinfo WHERE userid = k % 7 + 1 $$;
CREATE FUNCTION two_keys(k int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM userinfo WHERE userid IN (k, k + 1)) + (SELECT count(*) FROM session WHERE userid = k);
END $$;
CREATE FUNCTION moved_key(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    k := k + 1;
    RETURN (SELECT name FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION shadowed(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    DECLARE k int := 5; BEGIN RETURN (SELECT name FROM userinfo WHERE userid = k); END;
END $$;
CREATE FUNCTION audited(k int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE userinfo SET logins = logins WHERE userid = k;
    INSERT INTO audit VALUES ('audited');
END $$;
CREATE FUNCTION dynamic(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE t text;
BEGIN
    EXECUTE 'SELECT name FROM userinfo WHERE userid = $1' INTO t USING k;
    RETURN t;
END $$;
CREATE FUNCTION nested(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM session WHERE userid = k;
    RETURN named(k);
END $$;
CREATE FUNCTION setting(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('app.seen', 'k' || k, false);
    RETURN (SELECT name FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION event(k int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE i bigint;
BEGIN
    INSERT INTO events (userid, what) VALUES (k, 'x') RETURNING id INTO i;
    RETURN i;
END $$;
CREATE FUNCTION ambiguous(userid int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT name FROM userinfo WHERE userinfo.userid = userid);
END $$;
CREATE FUNCTION column_first(userid int) RETURNS bigint LANGUAGE sql AS
    $$ SELECT count(*) FROM userinfo WHERE userid = userid $$;
CREATE FUNCTION noticed(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'for %', k;
    RETURN (SELECT name FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION where_from(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE a inet := inet_client_addr();
BEGIN
    UPDATE userinfo SET email = coalesce(host(a), 'none') || (inet_client_port() > 0) || (pg_backend_pid() > 0)
        WHERE userid = k;
    RETURN (SELECT email FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION twice(k int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;
CREATE FUNCTION twice(k text) RETURNS int LANGUAGE sql AS $$ SELECT logins FROM userinfo WHERE userid = 1 $$;
CREATE FUNCTION writes_in_stable(k int) RETURNS void LANGUAGE sql STABLE AS
    $$ DELETE FROM login_log WHERE userid = k $$;
CREATE FUNCTION no_return(k int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM userinfo WHERE userid = k;
END $$;
CREATE FUNCTION caught(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    UPDATE userinfo SET logins = logins + 1 WHERE userid = k;
    RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
    RETURN 'failed';
END $$;
CREATE FUNCTION aliased(k int) RETURNS bigint LANGUAGE sql AS
    $$ SELECT count(*) FROM userinfo t, (SELECT 7 AS k) aliased WHERE t.userid = aliased.k $$;
CREATE FUNCTION recorded(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE recorded record;
BEGIN
    SELECT 7 AS k INTO recorded;
    RETURN (SELECT name FROM userinfo WHERE userid = recorded.k);
END $$;
CREATE FUNCTION labelled(k int) RETURNS text LANGUAGE plpgsql AS $$
<<r>>
DECLARE r record;
BEGIN
    SELECT 7 AS k INTO r;
    RETURN (SELECT name FROM userinfo WHERE userid = r.k);
END $$;
CREATE FUNCTION subquery(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT t.name FROM userinfo t, (SELECT 7 AS id) k WHERE t.userid = k.id);
END $$;
CREATE FUNCTION settings(k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE u text := current_setting('statement_timeout') || current_setting('application_name');
BEGIN
    RETURN (SELECT name || u FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION dated(k int) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE t timestamptz;
BEGIN
    UPDATE session SET login_at = '2024-06-01 00:00' WHERE userid = k RETURNING login_at INTO t;
    RETURN extract(epoch FROM t)::text || ' ' || '01/02/2024'::date;
EXCEPTION WHEN invalid_datetime_format THEN RETURN t;
END $$;
CREATE FUNCTION qualified(k int, OUT total int) LANGUAGE plpgsql AS $$
BEGIN
    qualified.total := 1;
    SELECT logins INTO qualified.total FROM userinfo WHERE userid = k;
END $$;
CREATE FUNCTION changed_arg(k int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    changed_arg.k := k + 1;
    RETURN (SELECT name FROM userinfo WHERE userid = k);
END $$;
CREATE FUNCTION same_label(k int) RETURNS text LANGUAGE plpgsql AS $$
<<same_label>>
DECLARE n text;
BEGIN
    SELECT name INTO same_label.n FROM userinfo WHERE userid = k;
    RETURN same_label.n;
END $$;
CREATE FUNCTION one_out(k int, OUT name text) RETURNS SETOF text LANGUAGE sql AS
    $$ SELECT name FROM userinfo WHERE userid = k $$;
CREATE FUNCTION addressed(k int) RETURNS TABLE (ip inet, who text) LANGUAGE plpgsql AS $$
BEGIN
    addressed.ip := inet_client_addr();
    SELECT name INTO who FROM userinfo WHERE userid = k;
    IF $2 IS NOT DISTINCT FROM addressed.ip THEN RETURN NEXT; END IF;
END $$;
CREATE FUNCTION versions(k int) RETURNS bool LANGUAGE sql AS
    $$ SELECT xmin IS NOT NULL FROM userinfo WHERE userid = k $$;
CREATE FUNCTION too_many(k int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
    SELECT l.userid INTO STRICT n FROM login_log l WHERE l.userid = k AND event = 'login';
    RETURN n;
END $$;
"#;

const STATEMENTS: &[&str] = &[
    "SELECT login($1)",
    "SELECT login($1), 1",
    "SELECT * FROM login($1)",
    "SELECT renamed($1, 'n' || 'x')",
    "SELECT renamed($1, 'y') AS was",
    "SELECT renamed AS was, length(renamed) FROM renamed($1, 'z')",
    "SELECT r FROM renamed($1, 'z') r",
    "SELECT missing($1)",
    "SELECT divided($1)",
    "SELECT handled($1)",
    "SELECT handled(100 + $1)",
    "SELECT * FROM countries($1)",
    "SELECT * FROM rows_of($1)",
    "SELECT * FROM rows_of($1, 1)",
    "SELECT rows_of($1)",
    "SELECT often, who FROM rows_of(least => 0, k => $1)",
    "SELECT count(*), sum(often) FROM everyone(0)",
    "SELECT everyone($1) LIMIT 0",
    "SELECT * FROM of_nobody() WHERE c > $1",
    "SELECT * FROM visits($1)",
    "SELECT who, count(*) FROM visits($1) AS v (who, x) GROUP BY who ORDER BY who LIMIT 1",
    "SELECT visits($1)",
    "SELECT (visits($1)).who",
    "SELECT named($1)",
    "SELECT public.named($1) AS name",
    "SELECT named(k => $1)",
    "SELECT named($1 + 1)",
    "SELECT upper(named($1))",
    "SELECT numbered($1)",
    "SELECT n FROM numbered($1) WITH ORDINALITY n (n, m) WHERE m > 1",
    "SELECT pair($1)",
    "SELECT * FROM pair($1)",
    "SELECT a FROM pair($1) x",
    "SELECT looped($1)",
    "SELECT looped($1, 4)",
    "SELECT looped($1, NULL)",
    "SELECT strict_one($1)",
    "SELECT strict_one(NULL), $1::int",
    "SELECT strict_one('x'), $1::int",
    "SELECT strict_one('5'), $1::int",
    "SELECT named(NULL)",
    "SELECT named(5000000000)",
    "SELECT named($1::int::bigint)",
    "SELECT other_key($1)",
    "SELECT two_keys($1)",
    "SELECT moved_key($1)",
    "SELECT shadowed($1)",
    "SELECT audited($1)",
    "SELECT dynamic($1)",
    "SELECT nested($1)",
    "SELECT setting($1)",
    "SELECT event($1) > 0",
    "SELECT ambiguous($1)",
    "SELECT column_first($1)",
    "SELECT noticed($1)",
    "SELECT where_from($1)",
    "SELECT twice($1)",
    "SELECT twice('a'), $1::int",
    "SELECT writes_in_stable($1)",
    "SELECT no_return($1)",
    "SELECT too_many($1)",
    "SELECT caught($1)",
    "SELECT aliased($1)",
    "SELECT recorded($1)",
    "SELECT labelled($1)",
    "SELECT subquery($1)",
    "SELECT settings($1)",
    "SELECT dated($1)",
    "SELECT qualified($1)",
    "SELECT changed_arg($1)",
    "SELECT same_label($1)",
    "SELECT one_out($1)",
    "SELECT * FROM addressed($1)",
    "SELECT versions($1)",
    "SELECT named(userid) FROM userinfo WHERE userid = $1",
    "SELECT login(1), login($1)",
    "INSERT INTO login_log (userid, event) SELECT $1, named($1)",
];

const LEFT: [&str; 5] = [
    "SELECT * FROM userinfo",
    "SELECT userid, online, login_at IS NULL FROM session",
    "SELECT userid, ip, event, count(*) FROM login_log GROUP BY userid, ip, event",
    "SELECT count(*) FROM audit",
    "SELECT current_setting('app.seen', true)",
];

#[test]
fn functions_say_what_they_say_on_one_server() {
    let (_plain, sides) = sides();
    let ways = Ways { ordered: false, contexts: true, literals_from: 20 };
    let said = sides.each_ref().map(|side| {
        let target = side.create_database("routines", "").unwrap();
        let mut before = vec![TABLES];
        if side.is_cluster {
            before.extend(DISTRIBUTE);
        }
        before.push(FUNCTIONS);
        ways.all(&target, &before, STATEMENTS, &LEFT).unwrap()
    });
    compare_all(&said[0], &said[1]);
}

/// Those that are about one key go to its worker: the plan says so once the function is known.
#[test]
fn what_is_about_one_key_has_copies_on_workers() {
    let (_plain, [_, cluster]) = sides();
    let mut client = cluster.create_tables("routine_copies", TABLES, &DISTRIBUTE).unwrap();
    client.run(FUNCTIONS).unwrap();
    let calls = [
        "login(1)",
        "renamed(1, 'a')",
        "handled(1)",
        "visits(1)",
        "rows_of(1, 0)",
        "named(1)",
        "numbered(1)",
        "pair(1)",
        "looped(1, 2)",
        "strict_one(1)",
        "where_from(1)",
    ];
    for call in calls {
        client.run(&format!("SELECT {call}")).unwrap();
    }
    let copies = "SELECT count(DISTINCT (e.a)[1]) FROM run_command_on_workers($$SELECT string_agg(DISTINCT \
             proname, ',') FROM pg_proc \
                  WHERE proname LIKE 'pgherd\\_body\\_%'$$) r, regexp_matches(r.result, 'pgherd_body_[0-9a-f]+', 'g') e (a)";
    let reply = client.simple(copies, None).unwrap();
    let found = reply.answers[0].rows[0][0].clone().map(|n| String::from_utf8(n.to_vec()).unwrap());
    assert_eq!(found.as_deref(), Some(calls.len().to_string().as_str()));
}

/// What functions mean changes under those who call them: by definitions of others, of their tables and of rights.
#[test]
fn definitions_of_others_hold_from_the_next_call_on() {
    const STEPS: &[&str] = &[
        "CREATE OR REPLACE FUNCTION f(k int) RETURNS text LANGUAGE sql AS $$ SELECT 'new ' || name FROM userinfo \
                 WHERE userid = k $$",
        "ALTER TABLE userinfo ALTER logins TYPE bigint",
        "CREATE OR REPLACE FUNCTION f(k int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE n userinfo.logins%TYPE; \
         BEGIN UPDATE userinfo SET logins = logins + 1 WHERE userid = k RETURNING logins INTO n; RETURN pg_typeof(n) || ' ' || n; END $$",
        "ALTER TABLE userinfo ALTER logins TYPE numeric",
        "CREATE FUNCTION f(k text) RETURNS text LANGUAGE sql AS $$ SELECT 'of text' $$",
        "DROP FUNCTION f(text)",
        "REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC",
        "GRANT EXECUTE ON FUNCTION f(int) TO PUBLIC",
        "DO $$ BEGIN REVOKE EXECUTE ON FUNCTION f(int) FROM PUBLIC; END $$",
        "DO $$ BEGIN GRANT EXECUTE ON FUNCTION f(int) TO PUBLIC; END $$",
        "REVOKE SELECT ON userinfo FROM routine_caller",
        "GRANT SELECT ON userinfo TO routine_caller",
        "ALTER FUNCTION f(int) SECURITY DEFINER",
        "ALTER FUNCTION f(int) SECURITY INVOKER",
        "ALTER FUNCTION f(int) SET work_mem = '8MB'",
        "ALTER FUNCTION f(int) RESET ALL",
        "CREATE TRIGGER t AFTER UPDATE ON userinfo FOR EACH ROW EXECUTE FUNCTION noted()",
        "DROP TRIGGER t ON userinfo",
        "ALTER TABLE userinfo ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON userinfo USING (userid > 2)",
        "ALTER TABLE userinfo DISABLE ROW LEVEL SECURITY",
        "CREATE FUNCTION hidden.f(k int) RETURNS text LANGUAGE sql AS $$ SELECT 'hidden' $$",
        "DROP FUNCTION hidden.f(int)",
        "ALTER FUNCTION f(int) RENAME TO g",
        "ALTER FUNCTION g(int) RENAME TO f",
        "ALTER TABLE userinfo RENAME TO others",
        "ALTER TABLE others RENAME TO userinfo",
        "DROP FUNCTION f(int)",
    ];
    let (_plain, sides) = sides();
    let ways = Ways { contexts: true, ..Ways::default() };
    let said = sides.each_ref().map(|side| {
        let mut owner = side.create_tables("routine_changes", TABLES, &DISTRIBUTE).unwrap();
        owner.run("CREATE SCHEMA hidden; CREATE TABLE notes (v text)").unwrap();
        owner
            .run(
                "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO notes VALUES \
                 ('n'); RETURN NEW; END $$",
            )
            .unwrap();
        owner
            .run(
                "CREATE FUNCTION f(k int) RETURNS text LANGUAGE sql AS $$ SELECT name FROM userinfo WHERE \
                 userid = k $$",
            )
            .unwrap();
        owner
            .run(
                "CREATE ROLE routine_caller LOGIN; GRANT SELECT, UPDATE ON userinfo TO routine_caller; GRANT \
                 INSERT ON notes TO routine_caller",
            )
            .unwrap();
        let mut caller = side.connect("routine_changes").unwrap();
        caller.run("SET ROLE routine_caller").unwrap();
        let mut all = Vec::new();
        for step in ["SELECT 1"].iter().chain(STEPS) {
            let mut said = vec![ways.told(&owner.simple(step, None).unwrap())];
            for key in 1..5 {
                for client in [&mut owner, &mut caller] {
                    let value = [Some(key.to_string().into_bytes())];
                    said.push(ways.told(&client.extended("SELECT f($1)", &[23], &value, None).unwrap()));
                    said.push(ways.told(&client.simple(&format!("SELECT * FROM f({key})"), None).unwrap()));
                }
            }
            said.push(ways.told(&owner.simple("SELECT count(*) FROM notes", None).unwrap()));
            all.push(((*step).to_owned(), said));
        }
        owner.run("DROP OWNED BY routine_caller; DROP ROLE routine_caller").unwrap();
        all
    });
    compare_all(&said[0], &said[1]);
}

/// The session's settings for literals, and names in other schemas, make other copies.
#[test]
fn copies_are_of_one_meaning() {
    let (_plain, sides) = sides();
    let ways = Ways::default();
    let said = sides.each_ref().map(|side| {
        let target = side.create_database("routine_meanings", "").unwrap();
        let mut client = Client::connect(&target).unwrap();
        client
            .run(
                "CREATE SCHEMA s1; CREATE SCHEMA s2; CREATE TABLE a (id int PRIMARY KEY, at timestamptz); \
                 INSERT INTO a SELECT g FROM generate_series(1, 9) g",
            )
            .unwrap();
        for schema in ["s1", "s2"] {
            client
                .run(&format!(
                    "CREATE TABLE {schema}.b (id int PRIMARY KEY, v text); INSERT INTO {schema}.b \
                     SELECT g, '{schema}' FROM generate_series(1, 9) g"
                ))
                .unwrap();
        }
        // A name that would end a body.
        client.run("CREATE TABLE \"x$pgherd_body$'; DROP TABLE a; --\" (id int PRIMARY KEY)").unwrap();
        if side.is_cluster {
            for table in ["a", "s1.b", "s2.b", "\"x$pgherd_body$''; DROP TABLE a; --\""] {
                client.run(&format!("SELECT create_distributed_table('{table}', 'id')")).unwrap();
            }
        }
        client
            .run(
                "CREATE FUNCTION f(k int) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN \
            UPDATE a SET at = '2024-06-01 00:00' WHERE id = k; RETURN QUERY SELECT v FROM b WHERE id = k; END $$",
            )
            .unwrap();
        client
            .run(
                "CREATE FUNCTION odd(k int) RETURNS bigint LANGUAGE sql AS \
            $$ SELECT count(*) FROM U&\"x\\0024pgherd_body$'; DROP TABLE a; --\" WHERE id = k $$",
            )
            .unwrap();
        let mut all = Vec::new();
        for (path, zone) in
            [("s1", "UTC"), ("s2", "UTC"), ("s1", "Asia/Tokyo"), ("s2", "America/New_York"), ("s1", "UTC")]
        {
            let mut client = Client::connect(&target).unwrap();
            client.run(&format!("SET search_path = public, {path}; SET TimeZone = '{zone}'")).unwrap();
            for key in 1..4 {
                let value = [Some(key.to_string().into_bytes())];
                for _ in 0..3 {
                    all.push(ways.told(&client.extended("SELECT f($1)", &[23], &value, None).unwrap()));
                }
                client.run("BEGIN").unwrap();
                all.push(ways.told(&client.simple(&format!("SELECT f({key})"), None).unwrap()));
                client.run("COMMIT").unwrap();
                all.push(ways.told(&client.simple("SELECT id, extract(epoch FROM at) FROM a", None).unwrap()));
                all.push(ways.told(&client.simple(&format!("SELECT odd({key})"), None).unwrap()));
            }
        }
        vec![("meanings".to_owned(), all)]
    });
    compare_all(&said[0], &said[1]);
}
