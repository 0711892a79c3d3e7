//! Tables of every kind, described on one database, made on another by the statements of `distribute`, and described there:
//! both must say the same. One server; database `coord` is the coordinator, `worker` the worker of group 1.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use pgherd_control::cluster_state::{ClusterState, cluster_state_query, parse_cluster_state};
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
            for c in &mut side.constraints {
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
        assert_eq!(here.policies, there.policies);
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
