//! Tables of every kind, described on one database, made on another by the statements of `distribute`, and described
//! there: both must say the same. One server; database `coord` is the coordinator, `worker` the worker of group 1.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use support::pair::Pair;

/// Every statement of this file makes something that is awkward to carry over.
const NASTY: &str = include_str!("nasty.sql");

#[test]
fn tables_are_the_same_on_the_worker() {
    let pair = Pair::start("same");
    pair.server.run("coord", NASTY);
    pair.make_reference("country");
    pair.assert_same("country", true);
    for (table, key) in [
        ("plain", "k"),
        ("account", "id"),
        ("entry", "account"),
        ("tree", "id"),
        ("\"My Schema\".\"Odd \"\"Table\"", "Key Col"),
        ("secured", "tenant"),
        ("settings", "k"),
        ("types", "k"),
        ("triggered", "k"),
        ("fired", "k"),
        ("a_table_with_a_name_of_sixty_three_bytes_which_is_the_longest_it", "k"),
    ] {
        let registered = pair.distribute(table, key);
        pair.assert_same(table, false);
        let name = &pair.describe("coord", table).name.replace('"', "\"\"");
        for shard in registered.shards.iter().filter(|s| s.group == 1) {
            pair.assert_partition_like(table, &format!("{}.\"{name}\"", shard.schema()));
        }
    }
}

#[test]
fn ddl_on_distributed_tables_reaches_parent_and_partitions() {
    let pair = Pair::start("alter");
    pair.server.run(
        "coord",
        "CREATE ROLE app; CREATE ROLE boss; CREATE SCHEMA other;
        CREATE TABLE dim (id int PRIMARY KEY);
        CREATE TABLE parent (k int, n int, UNIQUE (k, n));
        CREATE TABLE t (k int, a int, b text, c numeric);
        INSERT INTO t SELECT i, i, i::text, i FROM generate_series(1, 10) i;
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
    );
    pair.make_reference("dim");
    pair.distribute("parent", "k");
    let registered = pair.distribute("t", "k");
    let oid: u32 = pair.server.run("coord", "SELECT 't'::regclass::oid").parse().unwrap();
    let using = [("b".to_owned(), "(length(b) + a)".to_owned())];
    for (at, sql) in [
        "ALTER TABLE t ADD PRIMARY KEY (k)",
        "CREATE INDEX ON t (a)",
        "CREATE UNIQUE INDEX u ON t (k, lower(b)) WHERE a > 0",
        "CREATE INDEX g ON t USING gin (string_to_array(b, ' ')) WITH (fastupdate = off)",
        "ALTER INDEX g SET (fastupdate = on, gin_pending_list_limit = 128)",
        "ALTER INDEX g ALTER COLUMN 1 SET STATISTICS 33",
        "ALTER INDEX g ALTER COLUMN 1 SET STATISTICS -1",
        "ALTER TABLE t ADD UNIQUE (k, a), ADD CHECK (a > 0), ADD EXCLUDE USING btree (k WITH =, b WITH =)",
        "ALTER TABLE t ADD CONSTRAINT later CHECK (a < 1000) NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT later",
        "ALTER TABLE t ADD CONSTRAINT local CHECK (a < 2000) NO INHERIT",
        "ALTER TABLE t RENAME CONSTRAINT later TO sooner",
        "ALTER TABLE t RENAME CONSTRAINT t_pkey TO \"The Key\"",
        "ALTER INDEX t_a_idx RENAME TO \"An Index\"",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES dim",
        "ALTER TABLE t RENAME CONSTRAINT t_a_fkey TO to_dim",
        "ALTER TABLE t ALTER CONSTRAINT to_dim DEFERRABLE INITIALLY DEFERRED",
        "ALTER TABLE t ADD CONSTRAINT to_parent FOREIGN KEY (k, a) REFERENCES parent (k, n) ON DELETE CASCADE NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT to_parent",
        "ALTER TABLE t RENAME CONSTRAINT to_parent TO \"To Parent\"",
        "ALTER TABLE t DROP CONSTRAINT \"To Parent\"",
        "ALTER TABLE t DROP CONSTRAINT to_dim, ADD CONSTRAINT to_dim FOREIGN KEY (a) REFERENCES dim NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT to_dim",
        "ALTER TABLE t RENAME CONSTRAINT to_dim TO dim",
        "ALTER TABLE t DROP CONSTRAINT dim, DROP CONSTRAINT t_k_b_excl",
        "ALTER TABLE t ADD EXCLUDE USING btree (k WITH =, b WITH =)",
        "ALTER TABLE t RENAME a TO \"A a\"",
        "ALTER TABLE t ADD d int DEFAULT 7 NOT NULL, ADD e serial, ADD f int GENERATED ALWAYS AS IDENTITY, ADD g int GENERATED ALWAYS AS (\"A a\" + 1) STORED",
        "ALTER TABLE t ADD CONSTRAINT generous CHECK (g > 0), ALTER g DROP EXPRESSION",
        "ALTER TABLE t ALTER d DROP NOT NULL, ALTER d DROP DEFAULT, ALTER b SET NOT NULL, ALTER b SET DEFAULT 'x\\y'",
        "ALTER TABLE t ALTER c TYPE float8, ALTER \"A a\" TYPE bigint",
        "ALTER TABLE t DROP d, DROP \"A a\" CASCADE",
        "ALTER TABLE t ADD a int DEFAULT 1",
        "DROP INDEX g",
        "ALTER TABLE t ALTER b DROP DEFAULT, ALTER b TYPE int USING (length(b) + a), ALTER b SET DEFAULT 3",
        "ALTER TABLE t ADD v text COLLATE \"C\"",
        "ALTER TABLE t ALTER v SET STORAGE EXTERNAL, ALTER v SET COMPRESSION pglz, ALTER v SET STATISTICS 12, ALTER v SET (n_distinct = 5)",
        "ALTER TABLE t ALTER v SET STORAGE EXTENDED, ALTER v SET COMPRESSION default, ALTER v SET STATISTICS -1, ALTER v RESET (n_distinct)",
        "ALTER TABLE t SET (fillfactor = 50, toast.autovacuum_enabled = off, autovacuum_enabled = off)",
        "ALTER TABLE t RESET (fillfactor), SET (autovacuum_enabled = on)",
        "ALTER TABLE t SET UNLOGGED",
        "ALTER TABLE t SET LOGGED",
        "ALTER TABLE t REPLICA IDENTITY FULL, CLUSTER ON \"The Key\"",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX \"The Key\", SET WITHOUT CLUSTER",
        "CREATE STATISTICS st ON k, v FROM t",
        "ALTER STATISTICS st RENAME TO st2",
        "DROP STATISTICS st2",
        "CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
        "ALTER TABLE t DISABLE TRIGGER tr",
        "ALTER TRIGGER tr ON t RENAME TO \"Tr\"",
        "CREATE OR REPLACE TRIGGER \"Tr\" AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f(1)",
        "DROP TRIGGER \"Tr\" ON t",
        "CREATE RULE r AS ON DELETE TO t DO INSTEAD NOTHING",
        "ALTER TABLE t DISABLE RULE r",
        "DROP RULE r ON t",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        "CREATE POLICY p ON t TO app USING (k > 0)",
        "ALTER POLICY p ON t TO PUBLIC USING (k > 1)",
        "ALTER POLICY p ON t RENAME TO q",
        "DROP POLICY q ON t",
        "ALTER TABLE t DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY",
        "GRANT SELECT, INSERT ON t TO app WITH GRANT OPTION",
        "GRANT UPDATE (v) ON t TO PUBLIC",
        "REVOKE INSERT ON t FROM app; REVOKE DELETE ON t FROM postgres",
        "GRANT DELETE ON t TO postgres; REVOKE ALL ON t FROM app; REVOKE UPDATE (v) ON t FROM PUBLIC",
        "ALTER TABLE t OWNER TO boss",
        "ALTER TABLE t OWNER TO postgres",
        "ALTER TABLE t RENAME TO \"T t\"",
        "ALTER TABLE \"T t\" SET SCHEMA other",
        "ALTER TABLE other.\"T t\" RENAME k TO \"K\"",
        "ALTER TABLE other.\"T t\" DROP CONSTRAINT \"The Key\"",
    ]
    .iter()
    .enumerate()
    {
        let using = if sql.contains("USING (length") { &using[..] } else { &[] };
        if let Err(error) = pair.try_alter(oid, sql, using) {
            panic!("{at}: {sql}: {error}");
        }
        // The partitions are alike: one of them is compared.
        let table = pair.server.run("coord", &format!("SELECT {oid}::regclass"));
        pair.assert_same(&table, false);
        let name = table.trim_start_matches("other.").trim_matches('"').to_owned();
        let shard = registered.shards.iter().find(|s| s.group == 1).unwrap();
        pair.assert_partition_like(&table, &format!("{}.\"{name}\"", shard.schema()));
    }
}
