//! Tables of every kind, described on one database, made on another by the statements of `distribute`, and described there:
//! both must say the same. One server; database `coord` is the coordinator, `worker` the worker of group 1.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use pgherd_control::cluster_state::{ClusterState, cluster_state_query, parse_cluster_state};
use pgherd_control::ddl::{Hints, alter_ddl, alter_reference_ddl, check_altered, check_altered_reference};
use pgherd_control::describe::{TableDescription, describe_query, parse_description};
use pgherd_control::distribute::*;
use pgherd_control::schema::{coordinator_schema_sql, worker_schema_sql};
use support::Server;

struct Pair {
    server: Server,
}

impl Pair {
    fn start(name: &str) -> Pair {
        let server = Server::start(name);
        for (database, schema) in [("coord", coordinator_schema_sql()), ("worker", worker_schema_sql())] {
            server.run("postgres", &format!("CREATE DATABASE {database}"));
            // Twice: it may be repeated.
            server.run(database, &schema);
            server.run(database, &schema);
        }
        server.run("coord", "SELECT pgherd.register_node('worker', 1), pgherd.register_node('other', 2)");
        Pair { server }
    }

    fn describe(&self, database: &str, table: &str) -> TableDescription {
        let oid = self.server.run(database, &format!("SELECT '{table}'::regclass::oid")).parse().unwrap();
        parse_description(&self.server.run(database, &describe_query(oid))).unwrap()
    }

    fn state(&self) -> ClusterState {
        parse_cluster_state(&self.server.run("coord", cluster_state_query())).unwrap()
    }

    fn try_distribute(
        &self,
        table: &str,
        key: &str,
        with: ColocateWith,
    ) -> Result<Registered, pgherd_control::Refusal> {
        let description = self.describe("coord", table);
        let state = self.state();
        check_distributable(&description, key, &state, None)?;
        let column = key_column(&description, key)?;
        let placement = choose_placement(&description, column, &state, with, None, 4)?;
        check_distributable(&description, key, &state, Some(&placement))?;
        let registered =
            parse_registered(&self.server.run("coord", &register_distributed_sql(&description, key, &placement)))
                .unwrap();
        let ddl = worker_ddl(&description, key, &registered, 1, &state)?;
        self.server.apply("worker", &ddl.all());
        self.server.apply("coord", &coordinator_ddl(&description));
        Ok(registered)
    }

    fn distribute(&self, table: &str, key: &str) -> Registered {
        self.try_distribute(table, key, ColocateWith::Default).unwrap()
    }

    fn make_reference(&self, table: &str) {
        let description = self.describe("coord", table);
        let state = self.state();
        check_reference(&description, &state).unwrap();
        let registered =
            parse_registered(&self.server.run("coord", &register_reference_sql(&description, &state))).unwrap();
        self.server.apply("worker", &reference_ddl(&description, registered.colocation).all());
    }

    /// Runs DDL on the coordinator's table and brings the worker after it.
    fn try_alter(&self, oid: u32, sql: &str, using: &[(String, String)]) -> Result<Vec<String>, String> {
        let before = self.describe_oid("coord", oid);
        let table = self.state().table(oid).unwrap().clone();
        let hints = Hints { using, is_empty: true, concurrently: false };
        if table.is_reference() {
            self.server.try_run("coord", sql)?;
        } else {
            self.server.try_run("coord", &format!("{}; {sql}; {}", detach_child_sql(oid), attach_child_sql(oid)))?;
        }
        let (after, state) = (self.describe_oid("coord", oid), self.state());
        let ddl = if table.is_reference() {
            check_altered_reference(&after, &state).map_err(|r| r.to_string())?;
            alter_reference_ddl(&before, &after, hints)
        } else {
            let key =
                check_altered(&before, &after, table.key.as_deref().unwrap(), &state).map_err(|r| r.to_string())?;
            self.server.run("coord", &format!("SELECT pgherd.table_renamed({oid}, '{key}')"));
            alter_ddl(&before, &after, table.shards(), 1, &state, hints)
        }
        .map_err(|r| r.to_string())?;
        self.server.try_apply("worker", &ddl).map_err(|e| format!("{e}\nin: {}", ddl.join(";\n")))?;
        Ok(ddl)
    }

    fn describe_oid(&self, database: &str, oid: u32) -> TableDescription {
        parse_description(&self.server.run(database, &describe_query(oid))).unwrap()
    }

    /// The worker's parent says what the coordinator's table says, but for what a worker does not have.
    fn assert_same(&self, table: &str, is_reference: bool) {
        let mut here = self.describe("coord", table);
        let mut there = self.describe("worker", table);
        for side in [&mut here, &mut there] {
            side.oid = 0;
            side.bytes = None;
            side.prerequisites.clear();
            side.incoming.clear();
            for c in &mut side.columns {
                c.type_oid = 0;
                c.key_type_oid = 0;
                c.collation_oid = 0;
                if c.default_on_coordinator {
                    c.default = None;
                    c.default_on_coordinator = false;
                }
                c.identity.clear();
                c.identity_sequence = None;
            }
            side.indexes.iter_mut().for_each(|x| x.oid = 0);
            side.triggers.iter_mut().for_each(|x| x.oid = 0);
            side.rules.iter_mut().for_each(|x| x.oid = 0);
            side.policies.iter_mut().for_each(|x| x.oid = 0);
            side.statistics.iter_mut().for_each(|x| x.oid = 0);
            for c in &mut side.constraints {
                c.oid = 0;
                if let Some(r) = &mut c.referenced {
                    r.oid = 0;
                }
            }
            side.constraints.sort_by(|a, b| a.name.cmp(&b.name));
            side.indexes.sort_by(|a, b| a.name.cmp(&b.name));
            if !is_reference {
                // What stands on the partitions only.
                side.kind = 'r';
                side.partition_by = None;
                side.access_method = None;
                side.options = None;
                side.toast_options = None;
                side.persistence = 'p';
                side.replica_identity = 'd';
                side.replica_identity_index = None;
                side.children.clear();
                side.constraints.retain(|c| c.kind != 'x' && c.kind != 'f' && !c.no_inherit);
                for i in &mut side.indexes {
                    i.clustered = false;
                    i.options = None;
                    if let Some((head, rest)) = i.tail.clone().unwrap().split_once(" WITH (") {
                        i.tail = Some(format!("{head}{}", rest.split_once(')').unwrap().1));
                    }
                    i.statistics = None;
                }
                for c in &mut side.constraints {
                    c.clustered = false;
                    c.index_options = None;
                }
                for c in &mut side.columns {
                    c.storage = None;
                    c.compression = None;
                    c.statistics = None;
                    c.options = None;
                }
            }
        }
        let text = |d: &TableDescription| serde_json::to_string_pretty(d).unwrap();
        let (here, there) = (text(&here), text(&there));
        if here != there {
            let differing: Vec<String> = here
                .lines()
                .zip(there.lines())
                .filter(|(a, b)| a != b)
                .take(5)
                .map(|(a, b)| format!("coordinator: {a}\nworker:      {b}"))
                .collect();
            panic!("table {table} differs:\n{}", differing.join("\n"));
        }
    }

    /// A partition has everything under the user's names.
    fn assert_partition_like(&self, table: &str, partition: &str) {
        let here = self.describe("coord", table);
        let there = self.describe("worker", partition);
        let constraints = |d: &TableDescription| {
            let mut all: Vec<(String, char, bool)> =
                d.constraints.iter().map(|c| (c.name.clone(), c.kind, c.validated)).collect();
            all.sort();
            all
        };
        let indexes = |d: &TableDescription| {
            let mut all: Vec<String> = d
                .indexes
                .iter()
                .map(|i| format!("{} {} {:?}", i.name, i.tail.clone().unwrap(), i.statistics))
                .collect();
            all.sort();
            all
        };
        assert_eq!(constraints(&here), constraints(&there), "constraints of {partition}");
        assert_eq!(indexes(&here), indexes(&there), "indexes of {partition}");
        assert_eq!((&here.options, &here.toast_options), (&there.options, &there.toast_options), "{partition}");
        assert_eq!(here.replica_identity_index, there.replica_identity_index);
        assert_eq!(here.persistence, there.persistence);
        assert_eq!(here.replica_identity, there.replica_identity);
        let policies = |d: &TableDescription| {
            let mut all = d.policies.clone();
            all.iter_mut().for_each(|p| p.oid = 0);
            all
        };
        assert_eq!(policies(&here), policies(&there));
        assert_eq!(here.grants, there.grants);
        assert_eq!(here.owner, there.owner);
        assert_eq!((here.row_security, here.force_row_security), (there.row_security, there.force_row_security));
        for (a, b) in here.columns.iter().zip(&there.columns) {
            assert_eq!(
                (&a.storage, &a.compression, &a.statistics, &a.options, &a.grants),
                (&b.storage, &b.compression, &b.statistics, &b.options, &b.grants),
                "column {} of {partition}",
                a.name
            );
        }
    }
}

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
    let using = vec![("b".to_owned(), "(length(b) + a)".to_owned())];
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
        "ALTER TABLE t DROP CONSTRAINT to_dim",
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
        let table = pair.server.run("coord", &format!("SELECT {oid}::regclass"));
        pair.assert_same(&table, false);
        let name = pair.describe("coord", &table).name;
        for shard in registered.shards.iter().filter(|s| s.group == 1) {
            pair.assert_partition_like(&table, &format!("{}.\"{name}\"", shard.schema()));
        }
    }
}
