//! A coordinator and a worker as two databases of one throw-away server; the worker is the node of group 1, and a node
//! of group 2 exists in the metadata only.

use pgherd_control::cluster_state::{ClusterState, cluster_state_query, parse_cluster_state};
use pgherd_control::ddl::{Hints, alter_ddl, alter_reference_ddl, check_altered, check_altered_reference};
use pgherd_control::describe::{TableDescription, describe_query, parse_description};
use pgherd_control::distribute::*;
use pgherd_control::{COORDINATOR_SCHEMA, WORKER_SCHEMA};

use super::Server;

pub struct Pair {
    pub server: Server,
}

impl Pair {
    pub fn start(name: &str) -> Pair {
        let server = Server::start(name);
        for (database, schema) in [("coord", COORDINATOR_SCHEMA), ("worker", WORKER_SCHEMA)] {
            server.run("postgres", &format!("CREATE DATABASE {database}"));
            // Twice: it may be repeated.
            server.run(database, schema);
            server.run(database, schema);
        }
        server.run("coord", "SELECT pgherd.register_node('worker', 1), pgherd.register_node('other', 2)");
        Pair { server }
    }

    pub fn describe(&self, database: &str, table: &str) -> TableDescription {
        let sql = format!("SELECT pgherd.describe_table('{}'::regclass)", table.replace('\'', "''"));
        parse_description(&self.server.run(database, &sql)).unwrap()
    }

    pub fn state(&self) -> ClusterState {
        parse_cluster_state(&self.server.run("coord", cluster_state_query())).unwrap()
    }

    pub fn try_distribute(
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

    pub fn distribute(&self, table: &str, key: &str) -> Registered {
        self.try_distribute(table, key, ColocateWith::Default).unwrap()
    }

    pub fn make_reference(&self, table: &str) {
        let description = self.describe("coord", table);
        let state = self.state();
        check_reference(&description, &state).unwrap();
        let registered =
            parse_registered(&self.server.run("coord", &register_reference_sql(&description, &state))).unwrap();
        self.server.apply("worker", &reference_ddl(&as_copied(&description, &state), registered.colocation).all());
    }

    /// Runs DDL on the coordinator's table and brings the worker after it.
    pub fn try_alter(&self, oid: u32, sql: &str, using: &[(String, String)]) -> Result<Vec<String>, String> {
        let before = self.describe_oid("coord", oid);
        let table = self.state().table(oid).unwrap().clone();
        let hints = Hints { using, fills: &[], sets_expression: sql.contains("SET EXPRESSION") };
        if table.is_reference() {
            self.server.try_run("coord", sql)?;
        } else {
            self.server.try_run("coord", &format!("{}; {sql}; {}", detach_child_sql(oid), attach_child_sql(oid)))?;
        }
        let (after, state) = (self.describe_oid("coord", oid), self.state());
        let ddl = if table.is_reference() {
            check_altered_reference(&after, &state).map_err(|r| r.to_string())?;
            alter_reference_ddl(&before, &after, &state, hints)
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

    pub fn describe_oid(&self, database: &str, oid: u32) -> TableDescription {
        parse_description(&self.server.run(database, &describe_query(oid))).unwrap()
    }

    /// The worker's parent says what the coordinator's table says, but for what a worker does not have.
    pub fn assert_same(&self, table: &str, is_reference: bool) {
        let mut here = self.describe("coord", table);
        let mut there = self.describe("worker", table);
        let fires_here = here.fires_here;
        for (database, side) in [("coord", &mut here), ("worker", &mut there)] {
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
                    c.default_varies = false;
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
            // They are the coordinator's.
            assert!(database == "coord" || side.rules.is_empty());
            side.rules.clear();
            if is_reference || fires_here {
                // They fire on the coordinator only.
                assert!(database == "coord" || side.triggers.is_empty());
                side.triggers.clear();
            }
            (side.fires_here, side.to_fire_here, side.trigger_refusal) = (false, false, None);
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
    pub fn assert_partition_like(&self, table: &str, partition: &str) {
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
