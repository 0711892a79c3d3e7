//! The statements for each node, as text to read: `tests/golden/<name>.json` is what `pgherd.describe_table` said
//! (recorded from PostgreSQL 15), `<name>.sql` what is run. `PGHERD_RECORD=1 cargo test -p pgherd-control --test
//! golden` writes the latter anew.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use pgherd_control::cluster_state::{ClusterState, parse_cluster_state};
use pgherd_control::ddl::{Hints, alter_ddl, check_altered};
use pgherd_control::describe::{TableDescription, parse_description};
use pgherd_control::distribute::*;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn description(name: &str) -> TableDescription {
    parse_description(&std::fs::read_to_string(path(&format!("{name}.json"))).unwrap()).unwrap()
}

/// Reference table `country` and distributed table `account` on two workers, four shards.
fn state() -> ClusterState {
    parse_cluster_state(&std::fs::read_to_string(path("state.json")).unwrap()).unwrap()
}

fn check(name: &str, sections: &[(&str, Vec<String>)]) {
    let mut text = String::new();
    for (title, statements) in sections {
        text.push_str(&format!("-- {title}\n"));
        for statement in statements {
            text.push_str(&format!("{statement};\n"));
        }
        text.push('\n');
    }
    let file = path(&format!("{name}.sql"));
    if std::env::var_os("PGHERD_RECORD").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&file).unwrap(), "{}", file.display());
}

fn check_distribution(name: &str, key: &str, first_shard: i64) {
    let (table, state) = (description(name), state());
    let mut without = state.clone();
    without.tables.retain(|t| t.oid != table.oid);
    let column = key_column(&table, key).unwrap();
    let placement = choose_placement(&table, column, &without, ColocateWith::Default, None, 4).unwrap();
    check_distributable(&table, key, &without, Some(&placement)).unwrap();
    let shards: Vec<String> = placement
        .groups
        .iter()
        .enumerate()
        .map(|(i, g)| format!(r#"{{"id": {}, "remainder": {i}, "group": {g}}}"#, first_shard + i as i64))
        .collect();
    let registered =
        parse_registered(&format!(r#"{{"colocation": 2, "epoch": 1, "shards": [{}]}}"#, shards.join(","))).unwrap();
    let here = worker_ddl(&table, key, &registered, 1, &state).unwrap();
    let nothing_here = worker_ddl(&table, key, &registered, 3, &state).unwrap();
    let own: Vec<i64> = registered.shards.iter().filter(|s| s.group == 1).map(|s| s.id).collect();
    check(
        name,
        &[
            ("metadata", vec![register_distributed_sql(&table, key, &placement)]),
            ("worker of group 1, before rows", here.before_rows),
            ("worker of group 1, after rows", here.after_rows),
            ("worker without a shard", nothing_here.all()),
            ("coordinator", coordinator_ddl(&table)),
            ("coordinator, undistribute", coordinator_undistribute_ddl(&table)),
            ("worker of group 1, drop", drop_ddl(&table.schema, &table.name, &own)),
        ],
    );
}

#[test]
fn reference_table() {
    let table = description("country");
    let mut state = state();
    state.tables.clear();
    check_reference(&table, &state).unwrap();
    let ddl = reference_ddl(&table, 1);
    check(
        "country",
        &[
            ("metadata", vec![register_reference_sql(&table, &state)]),
            ("worker, before rows", ddl.before_rows),
            ("worker, after rows", ddl.after_rows),
        ],
    );
}

#[test]
fn identity_checks_and_a_key_to_a_reference_table() {
    check_distribution("account", "id", 102_009);
}

#[test]
fn a_foreign_key_goes_from_shard_to_shard_of_a_colocated_table() {
    check_distribution("entry", "account", 102_013);
}

#[test]
fn prerequisites_policies_grants_and_triggers() {
    check_distribution("odd_table", "Key", 102_017);
}

#[test]
fn many_changes_at_once() {
    let (before, mut after, state) = (description("account"), description("account_after"), state());
    // Table `entry` was there by then, and is not in the state.
    after.incoming.clear();
    assert_eq!(check_altered(&before, &after, "id", &state).unwrap(), "id");
    let shards = state.table(before.oid).unwrap().shards();
    let ddl = alter_ddl(&before, &after, shards, 1, &state, Hints::default()).unwrap();
    check("account_after", &[("worker of group 1", ddl)]);
    assert_eq!(alter_ddl(&before, &before, shards, 1, &state, Hints::default()).unwrap(), Vec::<String>::new());
}
