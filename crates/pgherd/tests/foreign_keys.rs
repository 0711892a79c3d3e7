//! Foreign keys whose tables are in different places: local tables that reference distributed ones, in any order in
//! which ORMs and pg_dump create, fill and distribute them (docs/decisions/0022), beside one PostgreSQL.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::beside::{self, told};
use pgherd_testkit::{Plain, Side};

fn sides() -> (Plain, [Side; 2]) {
    beside::sides(env!("CARGO_BIN_EXE_pgherd"))
}

/// Runs the statements on both sides; those that begin with "only: " on the cluster alone.
fn same(name: &str, statements: &[&str]) {
    let (_plain, [plain, cluster]) = sides();
    let said = beside::same(&plain, &cluster, name, statements);
    assert!(said.iter().any(|(_, said)| said.contains("23503")), "no key was ever broken");
}

const PARENT: &str = "CREATE TABLE parent (k int PRIMARY KEY, name text); \
                      INSERT INTO parent SELECT g, 'p' || g FROM generate_series(1, 9) g";
const DISTRIBUTED: &str = "only: SELECT create_distributed_table('parent', 'k', shard_count => 4)";

/// What follows on any two tables.
const USED: &[&str] = &[
    "INSERT INTO child VALUES (1, 1), (2, 2), (3, NULL)",
    "INSERT INTO child VALUES (4, 77)",
    "UPDATE child SET p = 78 WHERE id = 1",
    "UPDATE child SET p = 3 WHERE id = 1",
    "UPDATE child SET id = 11 WHERE id = 1",
    "DELETE FROM parent WHERE k = 3",
    "DELETE FROM parent WHERE k = 5 RETURNING name",
    "DELETE FROM parent WHERE k > 2 AND k < 4",
    "TRUNCATE parent",
    "UPDATE parent SET name = 'other' WHERE k = 3",
    "BEGIN; INSERT INTO child VALUES (5, 6); SAVEPOINT a; DELETE FROM parent WHERE k = 6",
    "ROLLBACK TO a; DELETE FROM child WHERE id = 5; DELETE FROM parent WHERE k = 6; COMMIT",
    "DO $$ BEGIN INSERT INTO parent VALUES (20, 'x'); INSERT INTO child VALUES (20, 20); \
     DELETE FROM parent WHERE k = 20; END $$",
    "WITH gone AS (DELETE FROM parent WHERE k = 2 RETURNING k) SELECT count(*) FROM gone",
    "SELECT id, p FROM child ORDER BY id",
    "SELECT k, name FROM parent ORDER BY k",
    "SELECT conname, pg_get_constraintdef(oid), convalidated FROM pg_constraint \
     WHERE conrelid = 'child'::regclass AND contype = 'f'",
    "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'child'::regclass AND NOT tgisinternal",
];

fn with_used<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<&'a str> {
    before.iter().chain(USED).chain(after).copied().collect()
}

const DISTRIBUTE_CHILD: &str = "only: SELECT create_distributed_table('child', 'p', colocate_with => 'parent')";

#[test]
fn a_child_is_made_when_its_parent_is_distributed() {
    let create = "CREATE TABLE child (id int, p int REFERENCES parent)";
    same("fk_later_child", &with_used(&[PARENT, DISTRIBUTED, create], &[]));
}

#[test]
fn a_loaded_parent_is_distributed_and_then_its_child() {
    let create =
        "CREATE TABLE child (id int, p int REFERENCES parent); INSERT INTO child VALUES (30, 8), (31, 8), (32, 7)";
    let after = ["DELETE FROM child WHERE p IS NULL", DISTRIBUTE_CHILD];
    let again = [
        "INSERT INTO child VALUES (40, 9), (41, 99)",
        "INSERT INTO child VALUES (40, 9)",
        "DELETE FROM parent WHERE k = 9",
        "SELECT id, p FROM child ORDER BY id",
        "SELECT k FROM parent ORDER BY k",
    ];
    let before = [PARENT, create, DISTRIBUTED, "SELECT count(*) FROM child JOIN parent ON p = k"];
    let mut all = with_used(&before, &after);
    all.extend(again);
    same("fk_both", &all);
}

#[test]
fn keys_are_added_by_alter_table_and_go_with_it() {
    let add =
        "ALTER TABLE child ADD CONSTRAINT refers FOREIGN KEY (p) REFERENCES parent (k) DEFERRABLE INITIALLY DEFERRED";
    let checked_late = [
        PARENT,
        DISTRIBUTED,
        "CREATE TABLE child (id int, p int)",
        add,
        "INSERT INTO child VALUES (0, 99)",
        "BEGIN; INSERT INTO child VALUES (1, 100); INSERT INTO parent VALUES (100, 'late'); COMMIT",
        "BEGIN; INSERT INTO child VALUES (2, 101); SELECT count(*) FROM child; COMMIT",
        "BEGIN; SET CONSTRAINTS refers IMMEDIATE; INSERT INTO child VALUES (2, 101)",
        "ROLLBACK",
        "ALTER TABLE child DROP CONSTRAINT refers",
        "INSERT INTO child VALUES (3, 300)",
        "DELETE FROM parent WHERE k = 100 RETURNING k",
        "SELECT id, p FROM child ORDER BY id",
        "DELETE FROM child",
        add,
        "INSERT INTO child VALUES (1, 1)",
        "DROP TABLE parent",
        "DROP TABLE child",
        "DELETE FROM parent WHERE k = 1 RETURNING k",
        "DROP TABLE parent",
    ];
    same("fk_alter", &checked_late);
}

#[test]
fn rows_that_local_ones_refer_to_move() {
    let statements = [
        PARENT,
        DISTRIBUTED,
        "CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent); INSERT INTO child VALUES (1, 4)",
        "UPDATE parent SET k = 70 WHERE k = 7 RETURNING *",
        "UPDATE parent SET k = 40 WHERE k = 4",
        "UPDATE parent SET k = k + 100 WHERE k = 9 RETURNING k",
        "BEGIN; UPDATE parent SET k = 60 WHERE k = 6; SELECT count(*) FROM parent WHERE k = 60; ROLLBACK",
        "SELECT k, name FROM parent WHERE k < 90 ORDER BY k",
        "INSERT INTO child VALUES (2, 7)",
    ];
    same("fk_moved", &statements);
}

#[test]
fn actions_reach_local_rows() {
    for (name, action) in [
        ("fk_cascade", "ON DELETE CASCADE ON UPDATE CASCADE"),
        ("fk_null", "ON DELETE SET NULL"),
        ("fk_restrict", "ON DELETE RESTRICT"),
    ] {
        let create = format!("CREATE TABLE child (id int, p int DEFAULT 9 REFERENCES parent {action})");
        let statements = [
            PARENT,
            DISTRIBUTED,
            create.as_str(),
            "INSERT INTO child SELECT g, g FROM generate_series(1, 6) g",
            "INSERT INTO child VALUES (0, 0)",
            "DELETE FROM parent WHERE k = 1",
            "DELETE FROM parent WHERE k IN (3, 12)",
            "DO $$ BEGIN DELETE FROM parent WHERE k = 5; END $$",
            "BEGIN; DELETE FROM parent WHERE k = 6; ROLLBACK",
            "SELECT id, p FROM child ORDER BY id",
            "SELECT k FROM parent ORDER BY k",
        ];
        same(name, &statements);
    }
}

#[test]
fn keys_of_several_columns_and_other_types() {
    let statements = [
        "CREATE TABLE parent (tenant text, n numeric(6, 2), d date, PRIMARY KEY (tenant, n, d))",
        "INSERT INTO parent VALUES ('it''s', 1.50, '2024-02-29'), ('b', 2, '2024-01-01')",
        "only: SELECT create_distributed_table('parent', 'tenant', shard_count => 4)",
        "CREATE TABLE child (id int, t varchar(9), n numeric(6, 2), d date, \
         FOREIGN KEY (t, n, d) REFERENCES parent (tenant, n, d) MATCH FULL)",
        "SET datestyle = 'German, DMY'",
        "INSERT INTO child VALUES (1, 'it''s', 1.5, '29.02.2024')",
        "INSERT INTO child VALUES (2, 'it''s', 1.51, '29.02.2024')",
        "INSERT INTO child VALUES (3, 'b', NULL, '29.02.2024')",
        "INSERT INTO child VALUES (4, NULL, NULL, NULL)",
        "RESET datestyle",
        "DELETE FROM parent WHERE tenant = 'it''s'",
        "UPDATE parent SET n = 3 WHERE tenant = 'b'",
        "UPDATE parent SET n = 3 WHERE tenant = 'it''s'",
        "SELECT * FROM child ORDER BY id",
        "SELECT * FROM parent ORDER BY 1",
    ];
    same("fk_types", &statements);
}

#[test]
fn what_refers_to_a_row_holds_it() {
    let (_plain, [_, cluster]) = sides();
    cluster.create_database("fk_locks", "").unwrap();
    let mut first = cluster.connect("fk_locks").unwrap();
    for sql in
        [PARENT, DISTRIBUTED.trim_start_matches("only: "), "CREATE TABLE child (id int, p int REFERENCES parent)"]
    {
        first.run(sql).unwrap();
    }
    let mut second = cluster.connect("fk_locks").unwrap();
    second.run("SET lock_timeout = '300ms'").unwrap();
    first.run("BEGIN; INSERT INTO child VALUES (1, 4)").unwrap();
    assert!(told(&mut second, "DELETE FROM parent WHERE k = 4").contains("55P03"));
    first.run("COMMIT").unwrap();
    assert!(told(&mut second, "DELETE FROM parent WHERE k = 4").contains("23503"));
    first.run("BEGIN; DELETE FROM parent WHERE k = 5").unwrap();
    assert!(told(&mut second, "INSERT INTO child VALUES (2, 5)").contains("55P03"));
    first.run("COMMIT").unwrap();
    assert!(told(&mut second, "INSERT INTO child VALUES (2, 5)").contains("23503"));
    // Of a role that may do neither.
    first
        .run("CREATE ROLE fk_writer; GRANT INSERT ON child TO fk_writer; GRANT DELETE, SELECT ON parent TO fk_writer")
        .unwrap();
    second.run("SET ROLE fk_writer").unwrap();
    assert_eq!(told(&mut second, "INSERT INTO child VALUES (3, 6)"), "INSERT 0 1");
    assert!(told(&mut second, "INSERT INTO child VALUES (3, 60)").contains("23503"));
    assert!(told(&mut second, "DELETE FROM parent WHERE k = 6").contains("23503"));
    assert_eq!(told(&mut second, "DELETE FROM parent WHERE k = 7"), "DELETE 1");
}

#[test]
fn columns_of_tables_with_rows_come_and_change() {
    let keys = "SELECT conname, condeferrable, convalidated, pg_get_constraintdef(oid) FROM pg_constraint \
                WHERE conrelid = 'child'::regclass ORDER BY 1";
    let statements = [
        PARENT,
        DISTRIBUTED,
        "CREATE TABLE child (x int); INSERT INTO child VALUES (1)",
        "ALTER TABLE child ADD COLUMN IF NOT EXISTS x int DEFAULT 2 REFERENCES parent",
        "ALTER TABLE child ADD COLUMN IF NOT EXISTS a int DEFAULT 1 REFERENCES parent",
        "ALTER TABLE child ADD COLUMN IF NOT EXISTS a int DEFAULT 1 REFERENCES parent",
        "ALTER TABLE child ADD COLUMN s serial REFERENCES parent, ADD COLUMN u int REFERENCES parent (k) NOT NULL DEFAULT 2 \
         CHECK (u > 0), ADD COLUMN z int DEFAULT 77 REFERENCES parent",
        "ALTER TABLE child ADD COLUMN s serial REFERENCES parent, ADD COLUMN u int REFERENCES parent (k) NOT NULL DEFAULT 2 \
         CHECK (u > 0)",
        keys,
        "ALTER TABLE child ALTER COLUMN a TYPE bigint",
        "ALTER TABLE child ALTER COLUMN u TYPE bigint USING u + 100",
        keys,
        "INSERT INTO child VALUES (1, 1000)",
        "ALTER TABLE child ALTER COLUMN u TYPE text",
        "ALTER TABLE child ALTER CONSTRAINT child_a_fkey DEFERRABLE INITIALLY DEFERRED",
        "BEGIN; INSERT INTO child (x, a) VALUES (2, 9000); INSERT INTO parent VALUES (9000); COMMIT",
        "SELECT x, a FROM child ORDER BY 1",
        "BEGIN; INSERT INTO child (x, a) VALUES (2, 99); COMMIT",
        "ALTER TABLE child ADD CONSTRAINT nv FOREIGN KEY (x) REFERENCES parent NOT VALID",
        "ALTER TABLE child ALTER COLUMN x TYPE bigint",
        keys,
        "SET default_transaction_isolation = 'repeatable read'",
        "ALTER TABLE child ADD FOREIGN KEY (x) REFERENCES parent",
    ];
    same("fk_new_columns", &statements);
}

/// Values are read as their types write them: a cast to text may be a function of anybody's, and would be called with
/// rights that it does not have.
#[test]
fn no_cast_of_the_users_is_called() {
    let statements = [
        "CREATE TYPE mood AS ENUM ('a', 'b')",
        "CREATE FUNCTION told(mood) RETURNS text LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $$",
        "CREATE CAST (mood AS text) WITH FUNCTION told(mood)",
        "CREATE TABLE parent (k int, m mood, PRIMARY KEY (k, m))",
        "only: SELECT create_distributed_table('parent', 'k', shard_count => 4)",
        "INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'a')",
        "CREATE TABLE child (k int, m mood, FOREIGN KEY (k, m) REFERENCES parent ON DELETE SET NULL)",
        "INSERT INTO child VALUES (1, 'a'), (2, NULL)",
        "INSERT INTO child VALUES (1, 'b')",
        "INSERT INTO parent VALUES (1, 'a') ON CONFLICT DO NOTHING",
        "DO $$ BEGIN INSERT INTO parent VALUES (1, 'a'), (4, 'b') ON CONFLICT DO NOTHING; END $$",
        "DELETE FROM parent WHERE k = 1",
        "SELECT k, m FROM child ORDER BY k",
        "ALTER TABLE child ADD CONSTRAINT again FOREIGN KEY (k, m) REFERENCES parent",
        "INSERT INTO child VALUES (3, 'b')",
    ];
    same("fk_casts", &statements);
    let (_plain, [_, cluster]) = sides();
    let mut client = cluster.connect("fk_casts").unwrap();
    // Nor are the checks of domains inside of others.
    let function = "CREATE FUNCTION looks(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$";
    client.run(function).unwrap();
    client.run("CREATE DOMAIN checked AS int CHECK (looks(VALUE)); CREATE TYPE pair AS (a checked)").unwrap();
    client.run("CREATE TABLE pairs (k int, p pair, d checked, PRIMARY KEY (k, p), UNIQUE (k, d))").unwrap();
    client.run("SELECT create_distributed_table('pairs', 'k')").unwrap();
    client.run("INSERT INTO pairs VALUES (1, '(1)', 1)").unwrap();
    let refused =
        client.simple("CREATE TABLE refers (k int, p pair, FOREIGN KEY (k, p) REFERENCES pairs)", None).unwrap();
    assert_eq!(refused.error().unwrap().sqlstate(), "0A000");
    client.run("CREATE TABLE refers (k int, d checked, FOREIGN KEY (k, d) REFERENCES pairs (k, d))").unwrap();
    client.run("INSERT INTO refers VALUES (1, 1)").unwrap();
    // An implicit cast is one, too; what is read of the referenced row on the way is read as its owner.
    for sql in [
        "CREATE ROLE fk_low; GRANT ALL ON SCHEMA public TO fk_low; SET ROLE fk_low",
        "CREATE TYPE tone AS ENUM ('x'); CREATE FUNCTION told(tone) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$",
        "CREATE CAST (tone AS text) WITH FUNCTION told(tone) AS IMPLICIT",
        "CREATE TABLE tones (k text PRIMARY KEY); SELECT create_distributed_table('tones', 'k')",
        "CREATE FUNCTION sees(int) RETURNS bool LANGUAGE plpgsql AS \
         $$ BEGIN RAISE NOTICE 'as %', current_user; RETURN true; END $$",
        "CREATE DOMAIN watched AS int CHECK (sees(VALUE))",
        "CREATE TABLE watches (k int PRIMARY KEY, w watched); SELECT create_distributed_table('watches', 'k')",
        "INSERT INTO watches VALUES (1, 1); CREATE TABLE watcher (k int REFERENCES watches)",
        "RESET ROLE",
    ] {
        client.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let refused = client.simple("CREATE TABLE toned (t tone REFERENCES tones)", None).unwrap();
    assert_eq!(refused.error().unwrap().sqlstate(), "0A000");
    let reply = client.simple("INSERT INTO watcher VALUES (1)", None).unwrap();
    let said: Vec<String> = reply.notices.iter().map(|notice| notice.message().to_owned()).collect();
    assert!(reply.error().is_none() && said.iter().all(|said| said == "as fk_low"), "{said:?}");
    client.run("DROP OWNED BY fk_low CASCADE; DROP ROLE fk_low").unwrap();
}
