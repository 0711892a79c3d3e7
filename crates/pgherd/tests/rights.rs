//! What a view or function of another role reads for a client, nobody reads without it: callbacks are believed only
//! where postgres_fdw asks, workers run as a table's owner only what the router vouches for, and nothing of it stays
//! open or is told. What views and functions answer is compared in tests/differential/rights.sql.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::{Client, Reply};
use pgherd_testkit::{Cluster, Side, Target};

/// A database with a table of which the role that it is named after may see sums only.
fn prepared(name: &str) -> (Side, Client) {
    let side = Cluster::shared(env!("CARGO_BIN_EXE_pgherd")).side();
    side.create_database(name, "").unwrap();
    let mut client = side.connect(name).unwrap();
    for sql in [
        "DROP ROLE IF EXISTS mallory, alice",
        "CREATE ROLE mallory",
        "CREATE ROLE alice",
        "GRANT CREATE ON SCHEMA public TO alice, mallory",
        "GRANT CREATE ON DATABASE mallory TO alice",
        "CREATE TABLE wages (k int PRIMARY KEY, cents int)",
        "SELECT create_distributed_table('wages', 'k', shard_count => 6)",
        "INSERT INTO wages SELECT g, g * 1000 FROM generate_series(1, 30) g",
        "ALTER TABLE wages OWNER TO alice",
        "SET ROLE alice",
        "CREATE VIEW sums AS SELECT sum(cents) AS total FROM wages",
        "GRANT SELECT ON sums TO mallory",
        "SET ROLE mallory",
    ] {
        // Tests share the roles of the cluster.
        let sql = sql.replace("mallory", name).replace("alice", &format!("{name}_owner"));
        client.run(&sql).unwrap();
    }
    assert_eq!(client.value("SELECT total FROM sums").unwrap(), "465000");
    (side, client)
}

fn said(reply: &Reply) -> String {
    reply.error().map_or_else(String::new, |e| format!("{} {}", e.sqlstate(), e.message()))
}

/// The last column.
fn last_values(reply: &Reply) -> Vec<String> {
    let rows = reply.answers.iter().flat_map(|answer| &answer.rows);
    let text = |row: &Vec<Option<Vec<u8>>>| String::from_utf8_lossy(row.last()?.as_deref()?).into_owned().into();
    rows.filter_map(text).collect()
}

fn fails(client: &mut Client, sql: &str, state: &str) {
    let reply = client.simple(sql, None).unwrap();
    assert!(said(&reply).starts_with(state), "{sql}: {:?}", said(&reply));
}

#[test]
fn a_token_alone_is_not_believed() {
    let (side, mut client) = prepared("rights_token");
    let token = format!("pgherd:{}", client.value("SELECT pg_backend_pid()").unwrap());
    for user in ["pgherd_callback", "pgherd_callback_10"] {
        let mut target = side.target.with_database("rights_token");
        user.clone_into(&mut target.user);
        target.password = Some("guessed".to_owned());
        let error = Client::connect_with(&target, &[("application_name", &token)]).err().unwrap();
        assert!(error.to_string().contains("28000"), "{error}");
    }
}

#[test]
fn workers_run_as_the_owner_for_the_router_only() {
    let (_, mut client) = prepared("rights_pass");
    let shard = client.value("SELECT min(shardid) FROM pg_dist_shard WHERE logicalrelid::text = 'wages'").unwrap();
    let all = "SELECT string_agg(result, ' ') FROM run_command_on_workers(";
    for (command, wanted) in [
        (format!("SELECT pgherd_{shard}.as_owner('SELECT cents::text FROM public.wages', 'x')"), "only the router"),
        ("SELECT secret FROM pgherd.secret".to_owned(), "permission denied"),
        ("SELECT pgherd.create_as_owner(1, 'postgres')".to_owned(), "permission denied"),
        ("SELECT cents FROM public.wages".to_owned(), "permission denied"),
    ] {
        let answer = client.value(&format!("{all}$${command}$$)")).unwrap();
        assert!(answer.contains(wanted) && !answer.contains("000 "), "{command}: {answer}");
    }
    fails(&mut client, "SELECT secret FROM pgherd.secret", "42501");
    client.run("RESET ROLE").unwrap();
    client.run("GRANT pg_read_all_data TO rights_pass").unwrap();
    client.run("SET ROLE rights_pass").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM pgherd.secret").unwrap(), "0");
    client.run("RESET ROLE").unwrap();
    client.run("REVOKE pg_read_all_data FROM rights_pass").unwrap();
    // The owner could have his own text run in the sessions of others.
    client.run("SET ROLE rights_pass_owner").unwrap();
    for command in [
        format!("ALTER FUNCTION pgherd_{shard}.as_owner(text, text) SECURITY INVOKER"),
        format!(
            "CREATE OR REPLACE FUNCTION pgherd_{shard}.as_owner(query text, pass text) RETURNS SETOF text LANGUAGE sql AS 'SELECT 1'"
        ),
        "CREATE SCHEMA other; ALTER SCHEMA other RENAME TO pgherd_1234567".to_owned(),
    ] {
        let answer = client.value(&format!("{all}$${command}$$)")).unwrap();
        assert!(answer.contains("cannot be changed"), "{command}: {answer}");
    }
    client.run("SET ROLE rights_pass").unwrap();
    fails(&mut client, "SELECT umoptions FROM pg_catalog.pg_user_mapping", "42501");
}

#[test]
fn nothing_stays_open_or_is_told() {
    let (side, mut client) = prepared("rights_told");
    client.run("BEGIN").unwrap();
    client.run("DECLARE c CURSOR FOR SELECT total FROM sums").unwrap();
    client.run("FETCH 1 FROM c").unwrap();
    let open = client
        .value("SELECT string_agg(result, ' ') FROM run_command_on_workers($$SELECT count(*) FROM pg_cursors WHERE statement LIKE '%wages%'$$)")
        .unwrap();
    assert!(open.split(' ').all(|n| n == "0"), "{open}");
    client.run("ROLLBACK").unwrap();
    // The worker would put parameters into the context of errors and messages.
    let mut owner = side.connect("rights_told").unwrap();
    owner.run("SET ROLE rights_told_owner").unwrap();
    owner.run("CREATE VIEW parts AS SELECT k, 1000 / (k - 7) AS part FROM wages").unwrap();
    owner.run("GRANT SELECT ON parts TO rights_told").unwrap();
    client.run("SET log_parameter_max_length_on_error = -1").unwrap();
    client.run("SET client_min_messages = debug5").unwrap();
    for sql in ["SELECT count(*) FROM parts WHERE part = 3", "SELECT total FROM sums"] {
        let reply = client.simple(sql, None).unwrap();
        let text = format!("{reply:?}");
        assert!(!text.contains("as_owner") && !text.contains("pgherd_row"), "{text}");
    }
}

#[test]
fn a_foreign_table_leads_where_it_was_made_to_lead() {
    let (_, mut client) = prepared("rights_child");
    client.run("CREATE TABLE mine (k int PRIMARY KEY, cents int)").unwrap();
    client.run("SELECT create_distributed_table('mine', 'k')").unwrap();
    let child = client.value("SELECT 'pgherd.ft_' || 'mine'::regclass::oid").unwrap();
    for sql in [
        format!("ALTER FOREIGN TABLE {child} OPTIONS (ADD table_name 'wages')"),
        format!("ALTER TABLE {child} OPTIONS (ADD table_name 'wages') /* concurrently */"),
        format!("DO $$ BEGIN ALTER FOREIGN TABLE {child} OPTIONS (ADD table_name 'wages'); END $$"),
    ] {
        fails(&mut client, &sql, "PH001");
    }
    fails(&mut client, &format!("ALTER FOREIGN TABLE {child} RENAME TO other"), "42501");
    fails(&mut client, "CREATE FOREIGN TABLE lead (k int) SERVER pgherd_router OPTIONS (table_name 'wages')", "42501");
    fails(&mut client, "CREATE USER MAPPING FOR rights_child SERVER pgherd_router", "42501");
    // Whatever a grant says, what leads to the router is for the owner of its table alone.
    let (side, mut client) = prepared("rights_granted");
    let mut admin = side.connect("rights_granted").unwrap();
    admin.run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC").unwrap();
    admin.run("CREATE TABLE later (k int PRIMARY KEY, cents int)").unwrap();
    admin.run("REVOKE ALL ON later FROM PUBLIC").unwrap();
    admin.run("SELECT create_distributed_table('later', 'k')").unwrap();
    let child = client.value("SELECT 'pgherd.ft_' || 'later'::regclass::oid").unwrap();
    fails(&mut client, &format!("SELECT * FROM {child}"), "42501");
    // A schema that is renamed where the workers do not hear of it would have the child lead elsewhere.
    for sql in [
        "RESET ROLE",
        "CREATE SCHEMA rights_room AUTHORIZATION rights_granted",
        "SET ROLE rights_granted",
        "CREATE TABLE rights_room.t (k int PRIMARY KEY)",
        "SELECT create_distributed_table('rights_room.t', 'k')",
    ] {
        client.run(sql).unwrap();
    }
    client.run("RESET ROLE").unwrap();
    client.run("DO $$ BEGIN ALTER SCHEMA rights_room RENAME TO rights_hall; END $$").unwrap();
    assert_eq!(client.value("SELECT count(*) FROM rights_hall.t").unwrap(), "0");
}

#[test]
fn what_only_a_worker_has_never_runs_as_the_owner() {
    let (side, mut client) = prepared("rights_runs");
    let mut owner = side.connect("rights_runs").unwrap();
    for sql in [
        "SET ROLE rights_runs_owner",
        "CREATE VIEW open AS SELECT k, cents FROM wages",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON open TO rights_runs",
    ] {
        owner.run(sql).unwrap();
    }
    // Of a row that is there no column is told but what the view shows.
    owner.run("ALTER TABLE wages ADD COLUMN hidden text DEFAULT 'unseen'").unwrap();
    owner.run("ALTER TABLE wages ADD CHECK (cents >= 0)").unwrap();
    let reply = client.simple("UPDATE open SET cents = -1 WHERE k = 7", None).unwrap();
    assert!(said(&reply).starts_with("23514") && reply.error().unwrap().get('D').is_empty(), "{reply:?}");
    client.run("UPDATE open SET cents = cents + 1 WHERE k = 7").unwrap();
    assert_eq!(client.value("SELECT cents FROM open WHERE k = 7").unwrap(), "7001");
    owner
        .value(
            "SELECT string_agg(result, ' ') FROM run_command_on_workers($$CREATE FUNCTION public.noted() RETURNS trigger \
             LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER noted BEFORE UPDATE ON public.wages \
             FOR EACH ROW EXECUTE FUNCTION public.noted()$$)",
        )
        .unwrap();
    fails(&mut client, "UPDATE open SET cents = cents + 1 WHERE k = 7", "42501");
}

/// What the owner of a table can have run with the rights of others, and of which functions of ours.
#[test]
fn nothing_of_the_owners_runs_with_the_rights_of_others() {
    let (_, mut client) = prepared("rights_runner");
    for sql in [
        "CREATE TABLE seen (who text)",
        "GRANT INSERT ON seen TO PUBLIC",
        "CREATE FUNCTION evil(k int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
         $$ BEGIN PERFORM public.tell(); RETURN k; EXCEPTION WHEN undefined_function OR undefined_table THEN RETURN k; END $$",
        "CREATE FUNCTION tell() RETURNS void LANGUAGE sql AS $$ INSERT INTO public.seen VALUES (current_user) $$",
        "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM public.tell(); RETURN NEW; END $$",
        "CREATE TABLE mine (k int PRIMARY KEY, g int GENERATED ALWAYS AS (evil(k)) STORED)",
    ] {
        client.run(sql).unwrap();
    }
    // Workers would compute it, in whatever name.
    fails(&mut client, "SELECT create_distributed_table('mine', 'k')", "0A000");
    client.run("ALTER TABLE mine DROP COLUMN g, ADD COLUMN g int DEFAULT evil(1)").unwrap();
    client.run("SELECT create_distributed_table('mine', 'k')").unwrap();
    let child = client.value("SELECT 'pgherd.ft_' || 'mine'::regclass::oid").unwrap();
    for sql in [
        format!("CREATE TRIGGER noted BEFORE INSERT ON {child} FOR EACH ROW EXECUTE FUNCTION noted()"),
        format!("ALTER TABLE {child} ALTER COLUMN k SET DEFAULT evil(1)"),
        format!("ALTER TABLE {child} ADD CHECK (evil(k) > 0)"),
    ] {
        fails(&mut client, &format!("DO $$ BEGIN {sql}; END $$"), "PH001");
    }
    client.run("CREATE RULE noted AS ON DELETE TO mine DO ALSO SELECT tell()").unwrap();
    client.run("DO $$ BEGIN INSERT INTO mine VALUES (1), (2); END $$").unwrap();
    assert_eq!(client.value("SELECT string_agg(DISTINCT who, ' ') FROM seen").unwrap(), "rights_runner");
    assert_eq!(client.value("SELECT sum(g) FROM mine").unwrap(), "2");
    // What the router calls is of no use to anybody else: not with other texts, and not inside of another's function.
    client.run("CREATE TABLE plain (i int)").unwrap();
    client.run("CREATE SEQUENCE numbers").unwrap();
    for sql in [
        "SELECT pgherd.replace_aside('plain', 'plain', \
         '[{\"sequence\":\"numbers OWNER TO rights_runner; --\",\"column\":\"i\"}]', false)",
        "SELECT pgherd.drop_aside('plain')",
        "SELECT pgherd.attach_child('plain')",
    ] {
        let reply = client.simple(sql, None).unwrap();
        assert!(reply.error().is_some(), "{sql}");
    }
    client.run("CREATE FUNCTION lent() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN PERFORM pgherd.detach_child('mine'); END $$").unwrap();
    fails(&mut client, "SELECT lent()", "42501");
    // Renamed without the router, and inside of a text that looks like one that may be.
    for sql in [
        "DO $$ BEGIN /* concurrently */ ALTER TABLE mine RENAME TO yours; COMMIT; END $$",
        "DO $$ BEGIN ALTER TABLE mine RENAME TO yours; COMMIT; END $$",
    ] {
        fails(&mut client, sql, "PH001");
    }
    // Whoever has written a function tells the router nothing in the name of others, nor calls what the router may.
    for sql in [
        "SELECT pgherd.tell_router('x', 'y')",
        "SELECT * FROM pgherd.remote_definition",
        "SELECT pgherd.make_pass('x', '')",
    ] {
        fails(&mut client, sql, "42501");
        fails(&mut client, &format!("DO $$ BEGIN EXECUTE $q${sql}$q$; END $$"), "42501");
    }
    for setting in ["inside", "key"] {
        client.run("BEGIN").unwrap();
        client.run(&format!("SELECT set_config('pgherd.{setting}', 'x', true)")).unwrap();
        if setting == "inside" {
            fails(&mut client, "SELECT pgherd.detach_child('mine')", "42501");
        } else {
            client.run("DO $$ BEGIN ALTER TABLE mine ADD COLUMN late int; END $$").unwrap();
        }
        client.run("ROLLBACK").unwrap();
    }
    client.run("RESET ROLE").unwrap();
    client.run("CREATE SCHEMA rights_own_room AUTHORIZATION rights_runner").unwrap();
    client.run("SET ROLE rights_runner").unwrap();
    client.run("CREATE TABLE rights_own_room.t (k int PRIMARY KEY)").unwrap();
    client.run("SELECT create_distributed_table('rights_own_room.t', 'k')").unwrap();
    for setting in ["on", "x"] {
        let sql = format!(
            "DO $$ BEGIN PERFORM set_config('pgherd.schema_follows', '{setting}', true); /* concurrently */ \
             EXECUTE 'ALTER SCHEMA rights_own_room RENAME TO rights_hall_two; SELECT 1'; END $$"
        );
        fails(&mut client, &sql, "42501");
    }
    let shard = client.value("SELECT min(shardid) FROM pg_dist_shard WHERE logicalrelid::text = 'mine'").unwrap();
    let aggregate = format!(
        "SELECT string_agg(result, ' ') FROM run_command_on_workers($$CREATE AGGREGATE pgherd_{shard}.as_owner(text, text) \
         (SFUNC = pg_catalog.textcat, STYPE = text)$$)"
    );
    let answer = client.value(&aggregate).unwrap();
    assert!(!answer.contains("CREATE AGGREGATE"), "{answer}");
}

/// What forwards changes of reference tables runs as a superuser here, and as their owner on the workers.
#[test]
fn changes_of_reference_tables_lend_nobody_rights() {
    let (side, mut client) = prepared("rights_copies");
    let mut owner = side.connect("rights_copies").unwrap();
    for sql in [
        "CREATE TABLE kinds (k int PRIMARY KEY, v text)",
        "SELECT create_reference_table('kinds')",
        "INSERT INTO kinds VALUES (1, 'one')",
    ] {
        owner.run(sql).unwrap();
    }
    for sql in [
        // What stands where a trigger of ours has its transition tables.
        "CREATE FUNCTION attack() RETURNS int LANGUAGE plpgsql AS \
         $$ BEGIN EXECUTE 'ALTER ROLE rights_copies SUPERUSER'; RETURN 1; END $$",
        "CREATE TEMP VIEW pgherd_new AS SELECT k FROM (SELECT attack() AS k OFFSET 0) s WHERE k = 0",
        "CREATE TEMP VIEW pgherd_old AS SELECT * FROM pgherd_new",
    ] {
        client.run(sql).unwrap();
    }
    for (function, name, event) in [
        ("forward_reference_rows", "x", "INSERT"),
        ("forward_reference_rows", "pgherd_guard_insert", "INSERT"),
        ("forward_reference_rows", "pgherd_guard_truncate", "TRUNCATE"),
        ("forward_truncate", "pgherd_guard_truncate", "TRUNCATE"),
    ] {
        for sql in [
            "CREATE TABLE bait (k int)".to_owned(),
            format!(
                "CREATE TRIGGER {name} AFTER {event} ON bait FOR EACH STATEMENT EXECUTE FUNCTION pgherd.{function}()"
            ),
        ] {
            client.run(&sql).unwrap();
        }
        let write = if event == "INSERT" { "INSERT INTO bait VALUES (1)" } else { "TRUNCATE bait" };
        fails(&mut client, write, "42501");
        client.run("DROP TABLE bait").unwrap();
    }
    fails(&mut client, "SELECT pgherd.change_copies('kinds', 1, 'TRUNCATE kinds', '')", "42501");
    fails(&mut client, "SELECT * FROM pgherd.remote_copies", "42501");
    // Columns that look like what postgres_fdw reads.
    for foreign in ["remote_copies", "remote_statement", "remote_definition", "remote_command"] {
        client.run(&format!("CREATE TABLE evil (k int, command text, \"x FROM pgherd.{foreign} y\" text)")).unwrap();
        client.run("SELECT create_distributed_table('evil', 'k')").unwrap();
        client.run("INSERT INTO evil VALUES (1, 'pgherd.remote_command', 'here')").unwrap();
        let change = "TRUNCATE public.kinds; ALTER ROLE rights_copies SUPERUSER";
        let command =
            format!("format(E'reference 0 8 %s public.kinds\\npostgres%sSELECT true', length('{change}'), '{change}')");
        let column = format!("\"x FROM pgherd.{foreign} y\"");
        let sql = format!(
            "DO $$ DECLARE r record; BEGIN EXECUTE format('SELECT {column} AS a FROM evil WHERE command = %L', {command}) INTO r; \
             IF r.a IS NOT NULL THEN RAISE 'a row'; END IF; END $$"
        );
        client.run(&sql).unwrap();
        let sql = format!(
            "DO $$ DECLARE r record; BEGIN SELECT {column} AS a INTO r FROM evil WHERE command = 'pgherd.remote_command'; \
             IF r.a IS DISTINCT FROM 'here' THEN RAISE 'not the row: %', r; END IF; END $$"
        );
        client.run(&sql).unwrap();
        client.run("DROP TABLE evil").unwrap();
    }
    // Conversions to a type of one's own, where somebody else has a column of it.
    client.run("CREATE TYPE mood AS ENUM ('a', 'b')").unwrap();
    for sql in [
        "CREATE TABLE moods (k int PRIMARY KEY, m mood)",
        "SELECT create_reference_table('moods')",
        "GRANT INSERT, SELECT ON moods TO rights_copies",
    ] {
        owner.run(sql).unwrap();
    }
    for sql in [
        "CREATE FUNCTION to_mood(text) RETURNS mood LANGUAGE plpgsql AS $$ BEGIN \
         IF current_user <> 'rights_copies' THEN ALTER ROLE rights_copies SUPERUSER; END IF; RETURN 'a'; END $$",
        "CREATE CAST (text AS mood) WITH FUNCTION to_mood(text)",
    ] {
        client.run(sql).unwrap();
    }
    let _ = client.simple("DO $$ BEGIN INSERT INTO moods VALUES (1, 'a'); END $$", None).unwrap();
    let is_super = "SELECT rolsuper FROM pg_roles WHERE rolname = 'rights_copies'";
    assert_eq!(owner.value(is_super).unwrap(), "f");
    let there = format!("SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_workers($${is_super}$$)");
    assert_eq!(owner.value(&there).unwrap(), "f");
    assert_eq!(owner.value("SELECT count(*) FROM kinds").unwrap(), "1");
}

#[test]
fn merging_tells_nothing() {
    let (side, mut client) = prepared("rights_merge");
    let mut owner = side.connect("rights_merge").unwrap();
    for sql in [
        "SET ROLE rights_merge_owner",
        // Workers cannot choose among the rows.
        "CREATE VIEW own AS SELECT k, cents FROM wages WHERE current_user = 'nobody' OR cents = 3000",
        "GRANT SELECT ON own TO rights_merge",
    ] {
        owner.run(sql).unwrap();
    }
    client.run("SET log_parameter_max_length_on_error = -1").unwrap();
    client.run("SET debug_print_plan = on").unwrap();
    client.run("SET client_min_messages = log").unwrap();
    let reply = client.simple("SELECT cents FROM own ORDER BY cents", None).unwrap();
    assert!(reply.error().is_none(), "{reply:?}");
    assert_eq!(last_values(&reply), ["3000"]);
    let told = reply.notices.iter().flat_map(|n| "MDHW".chars().map(|field| n.get(field)));
    let told: String = told.collect();
    // 29000, as it is, and byte by byte as plans show constants.
    assert!(told.contains("PLANNEDSTMT") && !told.contains("29000") && !told.contains("50 57 48 48 48"), "{told}");
}

#[test]
fn conditions_come_after_a_security_barrier() {
    let (side, mut client) = prepared("rights_barrier");
    let mut owner = side.connect("rights_barrier").unwrap();
    for sql in [
        "SET ROLE rights_barrier_owner",
        "CREATE VIEW low WITH (security_barrier) AS SELECT k, cents FROM wages WHERE cents <= 5000",
        "GRANT SELECT, UPDATE, DELETE ON low TO rights_barrier",
    ] {
        owner.run(sql).unwrap();
    }
    for sql in [
        "UPDATE low SET cents = cents WHERE 1 / (cents - 29000) IS NULL",
        "DELETE FROM low WHERE 1 / (cents - 29000) IS NULL",
        "UPDATE low SET cents = length(current_user) WHERE 1 / (cents - 29000) IS NULL",
    ] {
        fails(&mut client, sql, "42501");
    }
    assert_eq!(client.value("UPDATE low SET cents = cents + 1 WHERE k = 2 RETURNING cents").unwrap(), "2001");
    assert_eq!(client.value("SELECT count(*) FROM low WHERE 1 / (cents - 29000) IS NULL").unwrap(), "0");
    owner.run("ALTER VIEW low RESET (security_barrier)").unwrap();
    client.run("DELETE FROM low WHERE 1 / (cents - 29000) IS NULL").unwrap();
}

#[test]
fn a_cursor_shows_the_moment_of_declare() {
    let (side, mut client) = prepared("rights_moment");
    let mut owner = side.connect("rights_moment").unwrap();
    for sql in [
        "SET ROLE rights_moment_owner",
        "CREATE VIEW few AS SELECT k, cents FROM wages WHERE k <= 3",
        "CREATE FUNCTION opened() RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS \
         $$ DECLARE c refcursor := 'c'; BEGIN OPEN c FOR SELECT k, cents FROM public.wages WHERE k <= 3 ORDER BY k; \
            RETURN c; END $$",
        "GRANT SELECT ON few TO rights_moment",
    ] {
        owner.run(sql).unwrap();
    }
    let declare = "DECLARE c CURSOR FOR SELECT cents FROM few ORDER BY k";
    let with_values = "DECLARE c CURSOR FOR SELECT b.cents FROM few a, \
                       LATERAL (SELECT cents FROM few b WHERE b.k = a.k OFFSET 0) b \
         ORDER BY 1";
    let mut cents = [1000, 2000, 3000];
    for (begin, declare, wanted) in [
        ("BEGIN", declare, true),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", declare, true),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", with_values, true),
        ("BEGIN", with_values, false),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT opened()", true),
        ("BEGIN", "SELECT opened()", false),
    ] {
        client.run(begin).unwrap();
        client.run(declare).unwrap();
        owner.run("UPDATE wages SET cents = cents + 1 WHERE k <= 3").unwrap();
        let reply = client.simple("FETCH ALL FROM c", None).unwrap();
        match wanted {
            true => assert_eq!(last_values(&reply), cents.map(|value| value.to_string()), "{begin} {declare}"),
            false => assert!(said(&reply).contains("as it was when the cursor was declared"), "{:?}", said(&reply)),
        }
        client.run("ROLLBACK").unwrap();
        cents.iter_mut().for_each(|value| *value += 1);
    }
}

#[test]
fn partitions_have_no_row_security_of_their_own() {
    let (side, _) = prepared("rights_parts");
    let mut client = side.connect("rights_parts").unwrap();
    let refused = |client: &mut Client, sql: &str| {
        let reply = client.simple(sql, None).unwrap();
        let why = reply.error().map(|e| e.get('D').to_owned()).unwrap_or_default();
        assert_eq!(why, "It is a partition with row security of its own.", "{sql}: {:?}", said(&reply));
    };
    for sql in [
        "CREATE TABLE years (k int, year int, PRIMARY KEY (k, year)) PARTITION BY LIST (year)",
        "CREATE TABLE y1 PARTITION OF years FOR VALUES IN (1)",
        "ALTER TABLE y1 ENABLE ROW LEVEL SECURITY",
    ] {
        client.run(sql).unwrap();
    }
    refused(&mut client, "SELECT create_distributed_table('years', 'k')");
    client.run("ALTER TABLE y1 DISABLE ROW LEVEL SECURITY").unwrap();
    client.run("SELECT create_distributed_table('years', 'k')").unwrap();
    refused(&mut client, "ALTER TABLE y1 ENABLE ROW LEVEL SECURITY");
    refused(&mut client, "CREATE POLICY p ON y1 USING (k > 1)");
    client.run("ALTER TABLE years ENABLE ROW LEVEL SECURITY").unwrap();
    client.run("CREATE POLICY p ON years USING (k > 1)").unwrap();
    client.run("CREATE TABLE y2 PARTITION OF years FOR VALUES IN (2)").unwrap();
    // Of a table by itself they are its own affair, until it is attached.
    client.run("ALTER TABLE years DETACH PARTITION y2").unwrap();
    client.run("ALTER TABLE y2 ENABLE ROW LEVEL SECURITY").unwrap();
    refused(&mut client, "ALTER TABLE years ATTACH PARTITION y2 FOR VALUES IN (2)");
}

/// The router waits for what the coordinator does in the middle of a definition; here that never comes to its end.
#[test]
fn a_definition_that_breaks_off_inside_leaves_nothing() {
    let (side, mut client) = prepared("rights_broken");
    let mut admin = side.connect("rights_broken").unwrap();
    for sql in [
        "CREATE TABLE mine (k int PRIMARY KEY, v int)",
        "SELECT create_distributed_table('mine', 'k')",
        "INSERT INTO mine SELECT g, g FROM generate_series(1, 20) g",
        // No handler but one that names it catches a failed assertion.
        "CREATE FUNCTION broken() RETURNS event_trigger LANGUAGE plpgsql AS \
         $$ BEGIN ASSERT TG_TAG <> 'ALTER TABLE', 'broken'; END $$",
        "ALTER TABLE mine OWNER TO rights_broken",
        "CREATE EVENT TRIGGER broken ON ddl_command_end EXECUTE FUNCTION broken()",
    ] {
        admin.run(sql).unwrap();
    }
    fails(&mut client, "DO $$ BEGIN ALTER TABLE mine ADD COLUMN a int; END $$", "P0004");
    assert_eq!(client.value("SELECT sum(v) FROM mine").unwrap(), "210");
    client.run("BEGIN").unwrap();
    client.run("UPDATE mine SET v = v + 1").unwrap();
    client
        .run(
            "DO $$ BEGIN BEGIN UPDATE mine SET v = 0; ALTER TABLE mine ADD COLUMN a int; \
             EXCEPTION WHEN assert_failure THEN UPDATE mine SET v = v + 1; END; END $$",
        )
        .unwrap();
    assert_eq!(client.value("SELECT sum(v) FROM mine").unwrap(), "250");
    client.run("COMMIT").unwrap();
    admin.run("DROP EVENT TRIGGER broken").unwrap();
    client.run("DO $$ BEGIN ALTER TABLE mine ADD COLUMN a int DEFAULT 3; UPDATE mine SET v = v + a; END $$").unwrap();
    assert_eq!(client.value("SELECT sum(v) FROM mine").unwrap(), "310");
}

/// A function serves all roles of a backend in the form to which the first one's search path has it compiled.
#[test]
fn triggers_of_definitions_use_no_names_of_users() {
    let (side, _) = prepared("rights_names");
    let mut admin = side.connect("rights_names").unwrap();
    let port = admin.value("SELECT nodeport FROM pg_dist_node WHERE groupid = 0").unwrap().parse().unwrap();
    let mut client = Client::connect(&Target { port, ..side.target.with_database("rights_names") }).unwrap();
    for sql in [
        "CREATE SCHEMA evil AUTHORIZATION rights_names",
        "SET ROLE rights_names",
        "CREATE TABLE evil.log (who name)",
        "CREATE FUNCTION evil.note(text) RETURNS bool LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO evil.log VALUES (current_user); RETURN true; END $$",
        "CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.note(VALUE))",
    ] {
        admin.run(sql).unwrap();
    }
    for sql in [
        "SET ROLE rights_names",
        "SET search_path = evil, pg_catalog",
        "CREATE TABLE evil.first (k int)",
        "RESET ROLE",
        "RESET search_path",
        "CREATE TABLE second (k int)",
        "DROP TABLE second",
    ] {
        client.run(sql).unwrap();
    }
    assert_eq!(client.value("SELECT count(*) FROM evil.log").unwrap(), "0");
}

/// How many sessions a role may have is counted where they are: the router's connections to workers are others.
#[test]
fn a_limit_of_sessions_is_none_of_connections_to_workers() {
    let (side, _client) = prepared("rights_limit");
    let mut admin = side.connect("rights_limit").unwrap();
    admin.run("CREATE ROLE rights_limited LOGIN CONNECTION LIMIT 1; GRANT SELECT ON wages TO rights_limited").unwrap();
    admin.run("CREATE ROLE rights_limited_too CONNECTION LIMIT 2").unwrap();
    let mut target = side.target.with_database("rights_limit");
    "rights_limited".clone_into(&mut target.user);
    let mut limited = Client::connect(&target).unwrap();
    assert_eq!(limited.value("SELECT count(*) FROM wages").unwrap(), "30");
    assert!(Client::connect(&target).is_err(), "a second session is let in");
    // It goes on with new connections to workers.
    admin
        .run(
            "SELECT run_command_on_workers('SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity \
               WHERE usename = ''rights_limited''')",
        )
        .unwrap();
    assert_eq!(limited.value("SELECT count(*) FROM wages").unwrap(), "30");
    limited.run("BEGIN; SELECT sum(cents) FROM wages; SELECT cents FROM wages WHERE k = 3; COMMIT").unwrap();
    let there = "SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_workers('SELECT min(rolconnlimit) FROM pg_roles \
                 WHERE rolname LIKE ''rights_limited%'' ')";
    assert_eq!(admin.value(there).unwrap(), "-1");
    let limits = "SELECT string_agg(rolconnlimit::text, ' ' ORDER BY rolname) FROM pg_roles WHERE rolname LIKE 'rights\\_limited%'";
    assert_eq!(admin.value(limits).unwrap(), "1 2");
    drop(limited);
    admin.run("DROP OWNED BY rights_limited; DROP ROLE rights_limited, rights_limited_too").unwrap();
}
