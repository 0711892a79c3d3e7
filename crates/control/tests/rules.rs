//! The rules that the SQL of schema `pgherd` keeps, tried on a real PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use pgherd_control::distribute::*;
use support::Server;
use support::pair::Pair;

#[test]
fn fence_stops_whoever_knows_an_older_placement() {
    let server = Server::start("fence");
    server.run("postgres", pgherd_control::WORKER_SCHEMA);
    server.run("postgres", "CREATE ROLE somebody; SELECT pgherd.open_placement(7)");
    let (mut mover, mut reader) = (server.session("postgres"), server.session("postgres"));
    assert_eq!(reader.run("SET ROLE somebody"), "");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 1)"), "");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 2)"), "ERROR:  PH002");
    assert_eq!(reader.run("SELECT pgherd.fence(8, 1)"), "ERROR:  PH002");
    assert_eq!(reader.run("SELECT pgherd.change_placement(7, 9)"), "ERROR:  42501");

    // A scatter waits for the move, and sees what it did.
    mover.run("BEGIN; SELECT pgherd.change_placement(7, 2)");
    reader.send("SELECT pgherd.fence(7, 1)");
    wait_for_lock(&server);
    mover.run("COMMIT");
    assert_eq!(reader.answer(), "ERROR:  PH002");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 2)"), "");

    // A move waits for the scatter.
    reader.run("BEGIN; SELECT pgherd.fence(7, 2)");
    mover.send("SELECT pgherd.change_placement(7, 3)");
    wait_for_lock(&server);
    reader.run("COMMIT");
    mover.answer();

    // A snapshot older than the move: neither the old placement nor the new one is right.
    for (old, new) in [(3, 4), (4, 5)] {
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
        mover.run(&format!("SELECT pgherd.change_placement(7, {new})"));
        assert_eq!(
            reader.run(&format!("SELECT pgherd.fence(7, {})", if new == 4 { old } else { new })),
            "ERROR:  40001"
        );
        reader.run("ROLLBACK");
    }
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    mover.run("SELECT pgherd.open_placement(9)");
    assert_eq!(reader.run("SELECT pgherd.fence(9, 1)"), "ERROR:  40001");
    reader.run("ROLLBACK");

    // A move that was rolled back changed nothing.
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1");
    mover.run("BEGIN; SELECT pgherd.change_placement(7, 6); ROLLBACK");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 5)"), "");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 4)"), "ERROR:  PH002");
    reader.run("ROLLBACK");
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(reader.run("SELECT pgherd.fence(7, 5)"), "");
    reader.run("COMMIT");
}

/// Until some session waits for a lock.
fn wait_for_lock(server: &Server) {
    for _ in 0..400 {
        if server.run("postgres", "SELECT count(*) FROM pg_locks WHERE NOT granted") != "0" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("nobody waits");
}

#[test]
fn commit_and_abort_records_exclude_each_other() {
    let server = Server::start("records");
    server.run("postgres", pgherd_control::WORKER_SCHEMA);
    server.run("postgres", "CREATE ROLE a; CREATE ROLE b; GRANT a, b TO postgres");
    let (mut decider, mut recovery) = (server.session("postgres"), server.session("postgres"));
    assert_eq!(recovery.run("SELECT pgherd.record_abort('t1')"), "t");
    assert_eq!(recovery.run("SELECT pgherd.record_abort('t1')"), "t");
    // A pass is for one transaction on one connection.
    let record = |transaction: &str| {
        format!("SELECT pgherd.record_commit('{transaction}', current_setting('test.{transaction}'))")
    };
    for transaction in ["t0", "t1", "t2", "t3"] {
        let pass = format!("pgherd.make_pass('commit {transaction}', '')");
        decider.run(&format!("DO $$ BEGIN PERFORM set_config('test.{transaction}', {pass}, false); END $$"));
    }
    assert_eq!(decider.run(&record("t1")), "ERROR:  PH003");
    assert_eq!(decider.run("SELECT pgherd.record_commit('t1', current_setting('test.t0'))"), "ERROR:  42501");

    // The decision is durable, whatever the session chose for its own commits.
    decider.run(&format!("SET synchronous_commit = off; BEGIN; {}", record("t0")));
    assert_eq!(decider.run("SHOW synchronous_commit"), "on");
    decider.run("COMMIT");
    assert_eq!(decider.run("SHOW synchronous_commit"), "off");

    decider.run(&format!("SET ROLE a; BEGIN; {}", record("t2")));
    recovery.send("SELECT pgherd.record_abort('t2')");
    wait_for_lock(&server);
    decider.run("COMMIT");
    assert_eq!(recovery.answer(), "f");

    decider.run(&format!("BEGIN; {}", record("t3")));
    recovery.send("SELECT pgherd.record_abort('t3')");
    wait_for_lock(&server);
    decider.run("ROLLBACK");
    assert_eq!(recovery.answer(), "t");

    assert_eq!(recovery.run("SELECT txid, decision FROM pgherd.commit_record ORDER BY 1"), "t0|c\nt1|a\nt2|c\nt3|a");
    recovery.run("SELECT pgherd.forget_records('{t0,t1,t2}')");
    assert_eq!(recovery.run("SELECT txid FROM pgherd.commit_record"), "t3");
}

/// What a distribution leaves on the coordinator and on the worker, and what undoes it.
#[test]
fn rows_move_and_come_back() {
    let pair = Pair::start("rows");
    let server = &pair.server;
    // The worker stands in for the router.
    server.run("coord", &format!(
        "CREATE ROLE pgherd_callback SUPERUSER LOGIN; CREATE ROLE pgherd_callback_10 SUPERUSER LOGIN; ALTER SERVER pgherd_router OPTIONS (SET host '{}', SET dbname 'worker')",
        server.directory().display()));
    let port = server.run("coord", "SHOW port");
    server.run("coord", &format!("ALTER SERVER pgherd_router OPTIONS (SET port '{port}')"));
    server.run(
        "coord",
        "CREATE TABLE t (k int PRIMARY KEY, v text, g int GENERATED ALWAYS AS (k + 1) STORED);
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''truncated''; END';
        CREATE TRIGGER tr BEFORE TRUNCATE ON t EXECUTE FUNCTION f();
        INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 20) i",
    );
    let epoch = server.run("coord", "SELECT epoch FROM pgherd.epoch");
    let description = pair.describe("coord", "t");
    assert_eq!(copied_columns(&description), ["k", "v"]);
    assert_eq!(local_rows_sql(&description), "SELECT k, v FROM ONLY public.t");
    assert_eq!(
        copy_in_sql(&description, Some(102_008), "(FORMAT binary)"),
        "COPY pgherd_102008.t (k, v) FROM STDIN (FORMAT binary)"
    );
    let registered = pair.distribute("t", "k");
    assert_ne!(server.run("coord", "SELECT epoch FROM pgherd.epoch"), epoch);
    assert_eq!(server.run("coord", "SELECT count(*) FROM ONLY t"), "0");
    // The router knows which table a child's number stands for; a worker has to be told.
    let child = server.run("coord", "SELECT 'pgherd.ft_' || 't'::regclass::oid");
    server.run("coord", &format!("ALTER FOREIGN TABLE {child} OPTIONS (ADD schema_name 'public', ADD table_name 't')"));

    // Its trigger fires on the coordinator, as routers know.
    let oid = server.run("coord", "SELECT 't'::regclass::oid");
    assert!(server.try_run("worker", "INSERT INTO t SELECT generate_series(1, 20)").unwrap_err().contains("PH002"));
    server.run("worker", &format!("ALTER DATABASE worker SET pgherd.changes = ',{oid},'"));
    server.run("worker", &format!("SET pgherd.changes = ',{oid},'"));

    // A row lands where the coordinator says, and in the partition that PostgreSQL says.
    let here: Vec<_> = registered.shards.iter().filter(|s| s.group == 1).collect();
    let mut placed = 0;
    for k in 1..=20 {
        let shard: i64 = server
            .run("coord", &format!("SELECT pgherd.get_shard_id_for_distribution_column('t', {k})"))
            .parse()
            .unwrap();
        assert_eq!(
            shard.to_string(),
            server.run("coord", &format!("SELECT pgherd.get_shard_id_for_distribution_column('t', '{k}')"))
        );
        let inserted = server.try_run("worker", &format!("INSERT INTO t VALUES ({k}) RETURNING tableoid::regclass"));
        match here.iter().find(|s| s.id == shard) {
            Some(shard) => {
                assert_eq!(inserted.unwrap(), format!("{}.t", shard.schema()));
                placed += 1;
            }
            None => assert!(inserted.unwrap_err().contains("23514")),
        }
    }
    assert!(placed > 0);
    // The foreign child leads there.
    assert_eq!(server.run("coord", "SELECT count(*) FROM t"), placed.to_string());
    // A duplicate is reported under the user's name for the constraint.
    let k = server.run("worker", "SELECT min(k) FROM t");
    assert!(server.try_run("worker", &format!("INSERT INTO t VALUES ({k})")).unwrap_err().contains("\"t_pkey\""));

    // Nobody sees the child or the guard.
    for catalog in ["pg_inherits", "pg_trigger", "pg_class", "pg_namespace", "pg_foreign_table", "pg_foreign_server"] {
        let ours = |of: &str| -> i64 {
            let sql = format!(
                "SELECT count(*) FROM {of} x WHERE x::text ~ 'pgherd|ft_[0-9]|router' \
                OR to_jsonb(x) ->> 'inhparent' = 't'::regclass::oid::text"
            );
            server.run("coord", &sql).parse().unwrap()
        };
        if catalog != "pg_foreign_table" && catalog != "pg_inherits" {
            assert!(ours(&format!("pg_catalog.{catalog}")) > 0, "{catalog}");
        }
        assert_eq!(ours(&format!("pgherd.{catalog}")), 0, "{catalog}");
    }
    assert_eq!(
        server.run("coord", "SELECT count(*) FROM pgherd.information_schema_tables WHERE table_schema = 'pgherd'"),
        "0"
    );

    let description = pair.describe("coord", "t");
    server.apply("coord", &coordinator_undistribute_ddl(&description));
    server.run("coord", "INSERT INTO t VALUES (1)");
    let ids: Vec<i64> = here.iter().map(|s| s.id).collect();
    server.apply("worker", &drop_ddl("public", "t", &ids));
    // Again: it may be repeated.
    server.apply("worker", &drop_ddl("public", "t", &ids));
    assert_eq!(server.run("worker", "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^pgherd_'"), "0");
    for relation in ["partition", "shard", "placement", "colocation"] {
        assert_eq!(server.run("coord", &format!("SELECT count(*) FROM pgherd.pg_dist_{relation}")), "0", "{relation}");
    }
}

#[test]
fn partition_hash_is_postgresqls() {
    let pair = Pair::start("hash");
    let server = &pair.server;
    server.run("coord", "CREATE DOMAIN small AS int2 CHECK (VALUE < 1000)");
    for (at, (key_type, values)) in [
        ("int2", "0,1,-1,32767"),
        ("small", "5,-7"),
        ("int4", "0,1,-1,2147483647"),
        ("int8", "0,-1,9223372036854775807"),
        ("text", "'', 'a', 'Ünï', 'it''s'"),
        ("varchar(3)", "'abc'"),
        ("text COLLATE \"C\"", "'abc'"),
        ("char(5)", "'a', 'a  '"),
        ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'"),
        ("date", "'2020-01-01', 'infinity'"),
        ("timestamptz", "'2020-01-01 12:00+03'"),
        ("numeric", "1.50, 1.5, 'NaN', 0"),
        ("numeric(10,2)", "1.50"),
        ("bytea", "'\\x00ff'"),
        ("bool", "true, false"),
        ("inet", "'10.0.0.1'"),
        ("interval", "'1 mon', '30 days'"),
        ("int4[]", "'{1,2,3}', '{}'"),
        ("jsonb", "'{\"a\": 1}'"),
        ("int4range", "'[1,5)'"),
    ]
    .iter()
    .enumerate()
    {
        server.run("coord", &format!("CREATE TABLE h{at} (k {key_type})"));
        let registered = pair.try_distribute(&format!("h{at}"), "k", ColocateWith::None).unwrap();
        // The same by PostgreSQL's own judge, on a partitioned table of that type.
        server.run("coord", &format!("CREATE TABLE p{at} (k {key_type}) PARTITION BY HASH (k)"));
        let ids: Vec<String> = registered.shards.iter().map(|s| s.id.to_string()).collect();
        let plain = key_type.split(" COLLATE").next().unwrap();
        let wrong = server.run("coord", &format!(
            "SELECT v FROM unnest(ARRAY[{values}]::text[] || NULL::text) v
             WHERE NOT satisfies_hash_partition('p{at}'::regclass, 4,
                array_position('{{{}}}'::bigint[], pgherd.get_shard_id_for_distribution_column('h{at}', v)) - 1, v::{plain})",
            ids.join(",")));
        assert_eq!(wrong, "", "{key_type}");
    }
}

#[test]
fn an_owner_without_privileges_can_distribute() {
    let pair = Pair::start("owner");
    let server = &pair.server;
    server.run(
        "coord",
        "CREATE ROLE bob LOGIN; CREATE ROLE eve LOGIN; CREATE SCHEMA s AUTHORIZATION bob; SET ROLE bob;
        CREATE TABLE s.t (k int PRIMARY KEY); CREATE TYPE s.mood AS ENUM ('ok'); ALTER TABLE s.t ADD m s.mood",
    );
    server.run("worker", "CREATE SCHEMA s AUTHORIZATION bob");
    // As the router does on the connection of a user: with a pass for what only it may call.
    let as_user = |user: &str, statements: Vec<String>| -> Vec<String> {
        let is_own = |sql: &str| is_own(sql) || sql.contains("register_table(");
        let passes = statements.iter().enumerate().filter(|(_, sql)| is_own(sql)).map(|(at, sql)| {
            let pass = format!("pgherd.make_pass(E'by router\\n' || $q${sql}$q$, '')");
            format!("DO $do$ BEGIN PERFORM set_config('test.pass{at}', {pass}, true); END $do$")
        });
        let calls = statements.iter().enumerate().map(|(at, sql)| match is_own(sql) {
            true => format!("SELECT pgherd.by_router($q${sql}$q$, current_setting('test.pass{at}'))"),
            false => sql.clone(),
        });
        passes.chain([format!("SET SESSION AUTHORIZATION {user}")]).chain(calls).collect()
    };
    let alone = |user: &str, sql: &str| {
        let statements = [format!("SET SESSION AUTHORIZATION {user}"), sql.to_owned()];
        server.try_apply("coord", &statements).unwrap_err()
    };
    let oid = server.run("coord", "SELECT 's.t'::regclass::oid");
    let asked = |user: &str| {
        let json = server.apply("coord", &as_user(user, vec![format!("SELECT pgherd.describe_table({oid})")]));
        pgherd_control::describe::parse_description(&json).unwrap()
    };
    let state = pair.state();
    assert_eq!(check_distributable(&asked("eve"), "k", &state, None).unwrap_err().message, "must be owner of table t");
    let description = asked("bob");
    check_distributable(&description, "k", &state, None).unwrap();
    let placement =
        choose_placement(&description, key_column(&description, "k").unwrap(), &state, ColocateWith::Default, None, 4)
            .unwrap();
    let register = register_distributed_sql(&description, "k", &placement);
    assert!(server.try_apply("coord", &as_user("eve", vec![register.clone()])).unwrap_err().contains("must be owner"));
    for call in [
        register.as_str(),
        "SELECT pgherd.bump_epoch()",
        "SELECT pgherd.open_placement(9)",
        "SELECT pgherd.create_shard_schemas('{900}', 'bob')",
        "SELECT pgherd.record_abort('x')",
        "SELECT pgherd.begin_operation('a', 'b', 0, 'c')",
        "SELECT pgherd.unregister_table(1)",
        "LOCK TABLE pgherd.placement_epoch IN ACCESS SHARE MODE",
    ] {
        assert!(alone("bob", call).contains("permission denied"), "{call}");
    }
    for call in ["SELECT pgherd.record_commit('x', 'y')", "SELECT pgherd.by_router('SELECT pgherd.bump_epoch()', '')"] {
        assert!(alone("bob", call).contains("only the router may run this"), "{call}");
    }
    let registered = parse_registered(&server.apply("coord", &as_user("bob", vec![register]))).unwrap();
    server.apply("worker", &as_user("bob", worker_ddl(&description, "k", &registered, 1, &state).unwrap().all()));
    for action in [coordinator_ddl(&description), coordinator_undistribute_ddl(&description)] {
        assert!(server.try_apply("coord", &as_user("eve", vec![action.last().unwrap().clone()])).is_err());
        server.apply("coord", &as_user("bob", action));
    }
    let ids: Vec<i64> = registered.shards.iter().filter(|s| s.group == 1).map(|s| s.id).collect();
    server.apply("worker", &as_user("bob", drop_ddl("s", "t", &ids)));
}

#[test]
fn dropped_tables_leave_views_and_are_found() {
    let pair = Pair::start("dropped");
    let server = &pair.server;
    server.run("coord", "CREATE SCHEMA s; CREATE TABLE s.t (k int); CREATE TABLE kept (k int)");
    pair.distribute("s.t", "k");
    pair.distribute("kept", "k");
    let oid = server.run("coord", "SELECT 's.t'::regclass::oid");
    server.run("coord", &format!("SELECT pgherd.detach_child({oid}); DROP SCHEMA s CASCADE"));
    let views =
        "SELECT table_name, citus_table_type, distribution_column, shard_count, table_owner FROM pgherd.citus_tables;
        SELECT table_name, shard_name, nodename, nodeport FROM pgherd.citus_shards ORDER BY shardid LIMIT 2";
    assert_eq!(
        server.run("coord", views),
        "kept|distributed|k|4|postgres\nkept|pgherd_102012.kept|worker|1\nkept|pgherd_102013.kept|other|2"
    );
    let dropped = server.run(
        "coord",
        "SELECT x ->> 'schema', x ->> 'name', jsonb_array_length(x -> 'shards')
        FROM jsonb_array_elements(pgherd.dropped_tables()) x",
    );
    assert_eq!(dropped, "s|t|4");
    server.run("coord", &unregister_sql(oid.parse().unwrap()));
    assert_eq!(
        server.run("coord", "SELECT pgherd.dropped_tables(), (SELECT count(*) FROM pgherd.pg_dist_shard)"),
        "[]|4"
    );
}

#[test]
fn errors_name_the_users_constraints() {
    let pair = Pair::start("names");
    let server = &pair.server;
    server.run(
        "coord",
        "CREATE TABLE dim (id int PRIMARY KEY);
        CREATE TABLE parent (k int PRIMARY KEY, v int CONSTRAINT \"V\" CHECK (v > 0));
        CREATE TABLE child (k int CONSTRAINT \"To Parent\" REFERENCES parent, d int CONSTRAINT to_dim REFERENCES dim)",
    );
    pair.make_reference("dim");
    let shards = pair.distribute("parent", "k").shards;
    pair.distribute("child", "k");
    let k = (1..100)
        .find(|k| {
            let shard =
                server.run("coord", &format!("SELECT pgherd.get_shard_id_for_distribution_column('parent', {k})"));
            shards.iter().any(|s| s.group == 1 && s.id.to_string() == shard)
        })
        .unwrap();
    server.run(
        "worker",
        &format!(
            "INSERT INTO dim VALUES (1), (2); INSERT INTO parent VALUES ({k}, 1); INSERT INTO child VALUES ({k}, 1)"
        ),
    );
    for (sql, expected) in [
        (
            format!("INSERT INTO parent VALUES ({k}, 1)"),
            "23505: duplicate key value violates unique constraint \"parent_pkey\"",
        ),
        (
            format!("UPDATE parent SET v = 0 WHERE k = {k}"),
            "23514: new row for relation \"parent\" violates check constraint \"V\"",
        ),
        (
            format!("DELETE FROM parent WHERE k = {k}"),
            "23503: update or delete on table \"parent\" violates foreign key constraint \"To Parent\" on table \"child\"",
        ),
        (
            format!("INSERT INTO child VALUES ({k}, 9)"),
            "23503: insert or update on table \"child\" violates foreign key constraint \"to_dim\"",
        ),
        (
            "DELETE FROM dim WHERE id = 1".into(),
            "23503: update or delete on table \"dim\" violates foreign key constraint \"to_dim\" on table \"child\"",
        ),
    ] {
        let error = server.try_run("worker", &sql).unwrap_err();
        assert_eq!(error.lines().next().unwrap(), format!("ERROR:  {expected}"), "{sql}");
    }
    server.run(
        "worker",
        &format!("DELETE FROM dim WHERE id = 2; TRUNCATE parent, child; INSERT INTO parent VALUES ({k}, 1)"),
    );
}

#[test]
fn a_serial_column_wants_values_from_the_coordinator_for_the_rows_there_are() {
    let pair = Pair::start("serial");
    let server = &pair.server;
    server.run("coord", "CREATE TABLE t (k int); CREATE TABLE other (k int)");
    pair.distribute("t", "k");
    let oid: u32 = server.run("coord", "SELECT 't'::regclass::oid").parse().unwrap();
    pair.try_alter(oid, "ALTER TABLE t ADD a serial", &[]).unwrap();
    server.run(
        "worker",
        "INSERT INTO t (k, a) SELECT i, i FROM generate_series(1, 100) i WHERE EXISTS (
        SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid WHERE h.inhparent = 't'::regclass
        AND pg_get_expr(c.relpartbound, c.oid) = 'FOR VALUES WITH (modulus 4, remainder '
            || (SELECT r FROM generate_series(0, 3) r WHERE satisfies_hash_partition('t'::regclass, 4, r, i)) || ')')",
    );
    assert_ne!(server.run("worker", "SELECT count(*) FROM t"), "0");
    let error = pair.try_alter(oid, "ALTER TABLE t ADD b int GENERATED ALWAYS AS IDENTITY", &[]).unwrap_err();
    assert!(error.contains("40001: could not serialize access due to concurrent update"), "{error}");
}

#[test]
fn nodes_are_copied_to_another_database() {
    let pair = Pair::start("nodes");
    let server = &pair.server;
    let sql = server.run("coord", pgherd_control::COPY_NODES_SOURCE);
    server.run("postgres", "CREATE DATABASE second");
    server.run("second", pgherd_control::COORDINATOR_SCHEMA);
    assert_eq!(server.run("second", pgherd_control::COPY_NODES_SOURCE), "");
    server.run("second", &sql);
    let nodes = "SELECT * FROM pgherd.pg_dist_node ORDER BY 1";
    assert_eq!(server.run("second", nodes), server.run("coord", nodes));
    assert_eq!(server.run("second", "SELECT pgherd.register_node('third', 3)"), "3");
}

#[test]
fn what_cannot_be_distributed_is_refused_by_name() {
    let pair = Pair::start("refused");
    let server = &pair.server;
    server.run("coord", "CREATE TABLE dim (id int PRIMARY KEY); CREATE TABLE hashed (k int PRIMARY KEY); CREATE TABLE other (k int PRIMARY KEY);
        CREATE TYPE mood AS ENUM ('a'); CREATE TYPE pair AS (a int); CREATE DOMAIN feeling AS mood;
        CREATE TABLE local (id int PRIMARY KEY)");
    pair.make_reference("dim");
    pair.distribute("hashed", "k");
    pair.try_distribute("other", "k", ColocateWith::None).unwrap();
    let unique = "42P17: cannot create constraint on \"t\"\nDETAIL: Distributed relations cannot have UNIQUE, EXCLUDE, or PRIMARY KEY \
                  constraints that do not include the partition column (with an equality operator if EXCLUDE).";
    let foreign = "0A000: cannot create foreign key constraint \"f\" on distributed table \"t\"\nDETAIL: ";
    let actions = format!(
        "{foreign}ON UPDATE CASCADE, SET NULL and SET DEFAULT would change the distribution column, and so the row's place."
    );
    let by_column = "0A000: cannot distribute table \"t\" by column \"k\"\nDETAIL: Type";
    let ids = "its values hash by object id, which differs between servers.\nHINT: Use another column, or store the value as text.";
    for (create, expected) in [
        ("CREATE TABLE t (a int)", "42703: column \"k\" of relation \"t\" does not exist".to_owned()),
        ("CREATE TABLE t (k int, a int PRIMARY KEY)", unique.to_owned()),
        ("CREATE TABLE t (k int, a int, UNIQUE (a))", unique.to_owned()),
        ("CREATE TABLE t (k int, a int); CREATE UNIQUE INDEX ON t (a)", unique.to_owned()),
        ("CREATE TABLE t (k int, a int); CREATE UNIQUE INDEX ON t ((k + 0), a)", unique.to_owned()),
        ("CREATE TABLE t (k int, a int4range, EXCLUDE USING gist (a WITH &&))", unique.to_owned()),
        ("CREATE TABLE t (k int4range, EXCLUDE USING gist (k WITH &&))", unique.to_owned()),
        ("CREATE TABLE t (k int4range, EXCLUDE USING gist (k WITH =))", String::new()),
        ("CREATE TABLE t (a int, k int GENERATED ALWAYS AS (a + 1) STORED)",
            "0A000: cannot distribute relation: t\nDETAIL: Distribution column \"k\" must not be generated: its values are computed on the workers.".to_owned()),
        ("CREATE TABLE t (k mood)", format!("{by_column} public.mood is, or is built on, an enum: {ids}")),
        ("CREATE TABLE t (k feeling[])", format!("{by_column} public.feeling[] is, or is built on, an enum: {ids}")),
        ("CREATE TABLE t (k pair)", format!("{by_column} public.pair is, or is built on, a composite type: {ids}")),
        ("CREATE TABLE t (k regclass)", format!("{by_column} regclass is, or is built on, a type that stands for an object of the database: {ids}")),
        ("CREATE TABLE t (k json)",
            "42704: data type json has no default operator class for access method \"hash\"\nHINT: The distribution column must have a type that can be hashed.".to_owned()),
        ("CREATE TABLE t (k int, a int CONSTRAINT f REFERENCES local)",
            format!("{foreign}Table \"local\" is local to the coordinator; the rows referenced must be on the node of those that reference them.\n\
                HINT: Run SELECT create_reference_table('local') or distribute it by the same key first.")),
        ("CREATE TABLE t (k int, a int CONSTRAINT f REFERENCES hashed)",
            format!("{foreign}The distribution columns of both tables must stand at the same place in the key.")),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES other)",
            format!("{foreign}Table \"other\" is not in the same colocation group.\nHINT: Distribute it with colocate_with => 'other'.")),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES hashed ON UPDATE CASCADE)", String::new()),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES hashed ON UPDATE SET NULL)", actions.clone()),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES dim ON UPDATE CASCADE)", actions.clone()),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES dim ON DELETE SET NULL)", actions.clone()),
        ("CREATE TABLE t (k int, a int, UNIQUE (k, a), b int, CONSTRAINT f FOREIGN KEY (k, b) REFERENCES t (k, a) ON DELETE SET NULL)", actions.clone()),
        ("CREATE TABLE t (k int, a int, UNIQUE (k, a), b int, CONSTRAINT f FOREIGN KEY (k, b) REFERENCES t (k, a) ON DELETE SET NULL (b))", String::new()),
        ("CREATE TABLE t (k int CONSTRAINT f REFERENCES hashed ON DELETE CASCADE)", String::new()),
        ("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1); CREATE TABLE s (k int CONSTRAINT f REFERENCES t)",
            String::new()),
        ("CREATE TABLE t (k int PRIMARY KEY); CREATE TABLE s (k int REFERENCES t)", String::new()),
        ("CREATE TABLE t (k int) PARTITION BY RANGE (k)", String::new()),
        ("CREATE TABLE s (k int) PARTITION BY RANGE (k); CREATE TABLE t PARTITION OF s DEFAULT",
            "0A000: cannot distribute table \"t\"\nDETAIL: It is a partition; distribute the partitioned table.".to_owned()),
        ("CREATE TABLE s (k int); CREATE TABLE t () INHERITS (s)", "0A000: cannot distribute table \"t\"\nDETAIL: It takes part in inheritance.".to_owned()),
        ("CREATE VIEW t AS SELECT 1 AS k", "42809: \"t\" is not a table".to_owned()),
        ("CREATE SEQUENCE t", "42809: \"t\" is not a table".to_owned()),
        ("CREATE TABLE t (k int); CREATE FUNCTION fn() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
          CREATE TRIGGER tr AFTER UPDATE ON t REFERENCING NEW TABLE AS n FOR EACH ROW EXECUTE FUNCTION fn()",
            "0A000: distributed table \"t\" cannot have such triggers\nDETAIL: Trigger \"tr\" has a transition table for UPDATE or DELETE, \
             and the rows are on the workers.\nHINT: Triggers that read and write nothing but the row fire on the workers.".to_owned()),
        ("CREATE TABLE t (k int, a int); CREATE FUNCTION eq(int, int) RETURNS bool LANGUAGE sql IMMUTABLE RETURN $1 = $2;
          CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = eq); ALTER TABLE t ADD CHECK (k === a)",
            "0A000: cannot distribute table \"t\"\nDETAIL: It depends on operator public.===(integer,integer), which workers do not have.".to_owned()),
        ("CREATE TABLE t (k int); CREATE POLICY p ON t USING (k IN (SELECT id FROM local))",
            "0A000: cannot distribute table \"t\"\nDETAIL: It depends on relation public.local, which workers do not have.".to_owned()),
        ("CREATE TABLE t (k int); CREATE POLICY p ON t USING (k IN (SELECT id FROM dim))", String::new()),
    ] {
        server.run("coord", create);
        let answer = match pair.try_distribute("t", "k", ColocateWith::Default) {
            Ok(registered) => {
                let table = pair.describe("coord", "t");
                server.apply("coord", &coordinator_undistribute_ddl(&table));
                let ids: Vec<i64> = registered.shards.iter().filter(|s| s.group == 1).map(|s| s.id).collect();
                server.apply("worker", &drop_ddl("public", "t", &ids));
                String::new()
            }
            Err(refusal) => refusal.to_string(),
        };
        assert_eq!(answer, expected, "{create}");
        server.run("coord", "DO $$ DECLARE r record; BEGIN
            FOR r IN SELECT relname, relkind FROM pg_class WHERE relname IN ('t', 's') AND relnamespace = 'public'::regnamespace ORDER BY relname DESC LOOP
                EXECUTE format('DROP %s IF EXISTS %I CASCADE', CASE r.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, r.relname);
            END LOOP; END $$; DROP FUNCTION IF EXISTS fn()");
    }
    let refused = |table: &str, count: u32, with: ColocateWith, given: Option<u32>| {
        let table = pair.describe("coord", table);
        choose_placement(&table, &table.columns[0], &pair.state(), with, given, count).unwrap_err().to_string()
    };
    assert_eq!(
        refused("local", 0, ColocateWith::Default, None),
        "22023: 0 is outside the valid range for parameter \"shard_count\" (1 .. 64000)"
    );
    let hashed: u32 = server.run("coord", "SELECT 'hashed'::regclass::oid").parse().unwrap();
    server.run("coord", "CREATE TABLE big (k bigint)");
    assert_eq!(
        refused("big", 4, ColocateWith::Table(hashed), None),
        "42P16: cannot colocate tables hashed and big\nDETAIL: Distribution column types don't match for hashed and big."
    );
    assert_eq!(
        refused("local", 4, ColocateWith::Table(hashed), Some(8)),
        "22023: cannot use both a table in \"colocate_with\" and another \"shard_count\""
    );
    let hashed_table = pair.describe("coord", "hashed");
    assert_eq!(
        check_distributable(&hashed_table, "k", &pair.state(), None).unwrap_err().message,
        "table \"hashed\" is already distributed"
    );
    server.run("coord", "UPDATE pgherd.pg_dist_node SET isactive = false");
    assert_eq!(
        refused("local", 5, ColocateWith::Default, None),
        "55000: there is no worker node to place shards on\nHINT: Add one with SELECT citus_add_node('host', port)."
    );
}

#[test]
fn what_would_reach_the_coordinator_only_is_refused() {
    let pair = Pair::start("nested");
    let server = &pair.server;
    server.run("coord", "CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE r (id int PRIMARY KEY);
        CREATE TABLE r2 (id int REFERENCES r ON DELETE CASCADE); CREATE TABLE l (id int);
        CREATE FUNCTION plain() RETURNS void LANGUAGE sql AS 'DELETE FROM r';
        CREATE FUNCTION add_r() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO r VALUES (new.id); RETURN new; END';
        CREATE TRIGGER tr BEFORE INSERT ON l FOR EACH ROW EXECUTE FUNCTION add_r()");
    pair.distribute("t", "k");
    pair.make_reference("r");
    pair.make_reference("r2");
    // Statements that the router runs on every node.
    let everywhere = "SET pgherd.forward = 'off'";
    server.run("coord", &format!("{everywhere}; INSERT INTO r VALUES (1), (2); INSERT INTO r2 VALUES (1)"));
    server.run("coord", &format!("{everywhere}; WITH d AS (DELETE FROM r WHERE id = 1 RETURNING id) SELECT * FROM d"));
    assert_eq!(server.run("coord", "SELECT count(*) FROM r2"), "0");
    server.run(
        "coord",
        "SET pgherd.forward = 'off'; PREPARE p AS UPDATE r SET id = 3; EXECUTE p; COMMENT ON TABLE t IS 'x'; GRANT SELECT ON t TO PUBLIC",
    );
    server.run("coord", "CREATE INDEX CONCURRENTLY i ON t (v)");
    server.run("coord", "DROP INDEX CONCURRENTLY i");
    let definition = "PH001: cannot change the definition of distributed table \"t\" from inside the coordinator";
    // Whatever else writes this copy needs the router for the others.
    let write = "08001: could not connect to server \"pgherd_router\"";
    for (sql, expected) in [
        ("INSERT INTO r VALUES (5)", write),
        ("SET pgherd.forward = 'off'; DO 'BEGIN DELETE FROM r WHERE id = 3; END'", write),
        ("DO 'BEGIN INSERT INTO r VALUES (5); END'", write),
        ("DO 'BEGIN EXECUTE ''UPDATE r SET id = 6''; END'", write),
        ("DO 'BEGIN TRUNCATE r; END'", "0A000: cannot truncate a table referenced in a foreign key constraint"),
        ("SELECT plain()", write),
        ("INSERT INTO l VALUES (1)", write),
        ("DO 'BEGIN ALTER TABLE t ADD x int; END'", definition),
        ("DO 'BEGIN CREATE INDEX ON t (v); END'", definition),
        ("DO 'BEGIN CREATE TRIGGER tr BEFORE UPDATE ON t EXECUTE FUNCTION add_r(); END'", definition),
        ("DO 'BEGIN CREATE POLICY p ON t; END'", definition),
        (
            "ALTER TABLE t RENAME TO u",
            "PH001: cannot change the definition of distributed table \"u\" from inside the coordinator",
        ),
        ("DROP TABLE t CASCADE", definition),
        ("DROP TABLE t", "2BP01: cannot drop table t because other objects depend on it"),
    ] {
        let error = server.try_run("coord", sql).unwrap_err();
        assert_eq!(error.lines().find(|l| l.starts_with("ERROR")).unwrap(), format!("ERROR:  {expected}"), "{sql}");
    }
    let oid: u32 = server.run("coord", "SELECT 'r2'::regclass::oid").parse().unwrap();
    server.run("coord", &unregister_sql(oid));
    server.run("coord", "DO 'BEGIN INSERT INTO r2 VALUES (3); END'; DROP TABLE r2");
}

/// As it was made by version 16, with what routers have written there.
#[test]
fn changes_that_were_numbered_are_kept() {
    let pair = Pair::start("versions");
    let server = &pair.server;
    server.run(
        "coord",
        "ALTER EVENT TRIGGER pgherd_changes DISABLE; ALTER EVENT TRIGGER pgherd_changes_drops DISABLE; \
         TRUNCATE pgherd.change; \
         ALTER TABLE pgherd.change DROP COLUMN at, ADD COLUMN number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY; \
         ALTER TABLE pgherd.change REPLICA IDENTITY DEFAULT; \
         CREATE INDEX change_xid ON pgherd.change (xid, number); \
         CREATE OR REPLACE FUNCTION pgherd.note_changes() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ \
             DECLARE told bigint; BEGIN INSERT INTO pgherd.change (class, object) VALUES (1, 2) RETURNING number INTO told; END $$; \
         ALTER TABLE pgherd.operation ALTER COLUMN id DROP DEFAULT; \
         ALTER TABLE pgherd.operation ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY; \
         DROP SEQUENCE pgherd.operation_number; \
         ALTER TABLE pgherd.pg_dist_node ALTER COLUMN nodeid SET DEFAULT nextval('pgherd.pg_dist_node_nodeid_seq'); \
         DROP TABLE pgherd.number_lock, pgherd.shared_epoch; \
         DROP FUNCTION pgherd.bump_epoch(text), pgherd.next_number(regclass, int) CASCADE; \
         CREATE FUNCTION pgherd.bump_epoch() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'; \
         INSERT INTO pgherd.operation (kind, statement, relation) VALUES ('a', 'b', 0), ('a', 'c', 0); \
         DELETE FROM pgherd.schema_version WHERE version > 16; INSERT INTO pgherd.schema_version VALUES (16); \
         ALTER EVENT TRIGGER pgherd_changes ENABLE ALWAYS; ALTER EVENT TRIGGER pgherd_changes_drops ENABLE ALWAYS; \
         CREATE TABLE noted (k int)",
    );
    for _ in 0..2 {
        server.run("coord", pgherd_control::COORDINATOR_SCHEMA);
        let told = "SELECT count(*) > 0 AND bool_and(at IS NOT NULL) AND bool_or(class = 1) FROM pgherd.change";
        assert_eq!(server.run("coord", told), "t");
    }
    let added = "INSERT INTO pgherd.operation (kind, statement, relation) VALUES ('a', 'd', 0) RETURNING id";
    assert_eq!(server.run("coord", added), "3");
    assert_eq!(server.run("coord", "SELECT pgherd.register_node('third', 3)"), "3");
    server.run("coord", "CREATE TABLE noted_too (k int)");
    let last = "SELECT object = 'noted_too'::regclass::oid FROM pgherd.change WHERE class = 'pg_class'::regclass ORDER BY at DESC LIMIT 1";
    assert_eq!(server.run("coord", last), "t");
}
