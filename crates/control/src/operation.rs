//! What PostgreSQL refuses in a transaction block, as a list of steps: each is safe to repeat, because what it does
//! depends on what it finds. The router runs them one by one and writes down in `pgherd.operation_step` how each ended,
//! so that the same statement, repeated after a failure, goes on where it stopped.
//!
//! The index itself tells whether a step of CREATE INDEX CONCURRENTLY is done: what is written down is for people, and
//! for telling the statement's own leftovers from somebody else's.

use serde::Serialize;

use crate::cluster_state::ShardPlacement;
use crate::ddl::index_statistics;
use crate::describe::{Index, TableDescription};
use crate::distribute::create_index;
use crate::quote::{qualified, quote_literal};
use pgherd_catalog::{COORDINATOR_GROUP, GroupId};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    pub group: GroupId,
    /// What it is for, in a few words.
    pub action: String,
    /// The statement that does it, where nothing has been done yet.
    pub command: String,
    #[serde(skip)]
    pub work: Work,
}

/// What a step looks at before it acts. Names are qualified and quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Nothing: the command may run again at any time.
    Command,
    /// One index of one table. `on`: the partition or reference table; `parent`: the index it will be attached to.
    BuildIndex { on: String, index: String, parent: Option<String>, then: Vec<String> },
    /// The parent's index, once every partition here has one.
    AttachIndexes { index: String },
    /// The parent's index with those attached to it, and those that never were.
    DropIndex { indexes: Vec<String> },
    /// REINDEX CONCURRENTLY: an attempt that failed leaves invalid indexes with names of its own.
    Reindex { table: String },
}

/// An index that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub valid: bool,
    /// To the index of a partitioned table.
    pub attached: bool,
}

/// As `pgherd.plan_operation` takes them.
pub fn to_json(steps: &[Step]) -> String {
    serde_json::to_string(steps).unwrap_or_default()
}

/// The user's statement on the coordinator.
pub fn on_coordinator(statement: &str) -> Step {
    Step {
        group: COORDINATOR_GROUP,
        action: "on the coordinator".to_owned(),
        command: statement.to_owned(),
        work: Work::Command,
    }
}

/// `index` of `table` on the workers: concurrently on each partition, then on the parent, which adopts what is there.
pub fn create_index_steps(
    table: &TableDescription,
    index: &Index,
    shards: Option<&[ShardPlacement]>,
    groups: &[GroupId],
) -> Vec<Step> {
    let parent = qualified(&table.schema, &index.name);
    let statistics = |schema: &str| -> Vec<String> {
        let targets = index.statistics.iter().flatten();
        targets.map(|(column, target)| index_statistics(schema, &index.name, *column, *target)).collect()
    };
    let build = |group: GroupId, schema: &str, parent: Option<String>| {
        let on = qualified(schema, &table.name);
        let command = create_index(index, &on).replacen("INDEX ", "INDEX CONCURRENTLY ", 1);
        let work = Work::BuildIndex { on, index: qualified(schema, &index.name), parent, then: statistics(schema) };
        Step { group, action: "build the index".to_owned(), command, work }
    };
    let mut steps = Vec::new();
    for group in groups {
        let Some(shards) = shards else {
            steps.push(build(*group, &table.schema, None));
            continue;
        };
        for shard in shards.iter().filter(|s| s.group == *group) {
            steps.push(build(*group, &shard.schema(), Some(parent.clone())));
        }
        steps.push(Step {
            group: *group,
            action: "attach the partitions' indexes".to_owned(),
            command: create_index(index, &table.qualified_name()),
            work: Work::AttachIndexes { index: parent.clone() },
        });
    }
    steps
}

/// The index of a table goes from the workers, whatever of it is there. `shards` None: a reference table.
pub fn drop_index_steps(schema: &str, index: &str, shards: Option<&[ShardPlacement]>, groups: &[GroupId]) -> Vec<Step> {
    let name = qualified(schema, index);
    let steps = groups.iter().map(|group| {
        let here = shards.unwrap_or_default().iter().filter(|s| s.group == *group);
        let partitions = here.map(|s| qualified(&s.schema(), index));
        let concurrently = if shards.is_none() { "CONCURRENTLY " } else { "" };
        Step {
            group: *group,
            action: "drop the index".to_owned(),
            command: format!("DROP INDEX {concurrently}{name}"),
            work: Work::DropIndex { indexes: std::iter::once(name.clone()).chain(partitions).collect() },
        }
    });
    steps.collect()
}

/// Lists the indexes that a step looks at: name, valid, attached. None: it looks at nothing.
pub fn inspection(work: &Work) -> Option<String> {
    let from = match work {
        Work::Command => return None,
        Work::BuildIndex { index, .. } | Work::AttachIndexes { index } => named(std::slice::from_ref(index)),
        Work::DropIndex { indexes } => named(indexes),
        Work::Reindex { table } => {
            let table = quote_literal(table);
            format!(
                "(SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), i.indexrelid \
                 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE NOT i.indisvalid AND c.relname ~ '_cc(new|old)[0-9]*$' \
                 AND (i.indrelid = {table}::pg_catalog.regclass \
                 OR i.indrelid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree({table}) p))) x(name, oid)"
            )
        }
    };
    Some(format!(
        "SELECT x.name, i.indisvalid AND i.indisready AND i.indislive, \
         EXISTS (SELECT FROM pg_catalog.pg_inherits h WHERE h.inhrelid = i.indexrelid) \
         FROM {from} JOIN pg_catalog.pg_index i ON i.indexrelid = x.oid"
    ))
}

fn named(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|n| quote_literal(n)).collect();
    format!(
        "(SELECT n, pg_catalog.to_regclass(n)::pg_catalog.oid \
         FROM pg_catalog.unnest(ARRAY[{}]::text[]) n) x(name, oid)",
        names.join(", ")
    )
}

/// Waits for whoever is at work on the table of a step: a server goes on building after its client is gone.
pub fn settle(work: &Work) -> Option<String> {
    match work {
        Work::BuildIndex { on, .. } => {
            Some(format!("BEGIN; LOCK TABLE ONLY {on} IN SHARE UPDATE EXCLUSIVE MODE; COMMIT"))
        }
        _ => None,
    }
}

/// What is to be run for a step, one statement after another. `resumed`: a valid index is an earlier attempt's.
pub fn statements(step: &Step, found: &[Found], resumed: bool) -> Vec<String> {
    let command = || step.command.clone();
    match &step.work {
        Work::Command => vec![command()],
        Work::BuildIndex { index, parent, then, .. } => {
            let mut out = match found.iter().find(|f| f.name == *index) {
                Some(there) if there.valid && resumed => return Vec::new(),
                // Attached ones go with their parent's only.
                Some(Found { attached: true, name, .. }) => {
                    vec![format!("DROP INDEX {}", parent.as_ref().unwrap_or(name))]
                }
                Some(Found { name, .. }) => vec![format!("DROP INDEX CONCURRENTLY {name}")],
                None => Vec::new(),
            };
            out.push(command());
            out.extend(then.iter().cloned());
            out
        }
        Work::AttachIndexes { index } => match found.first() {
            Some(there) if there.valid && resumed => Vec::new(),
            Some(_) => vec![format!("DROP INDEX {index}"), command()],
            None => vec![command()],
        },
        Work::DropIndex { indexes } => {
            let is_first = |f: &&Found| indexes.first() == Some(&f.name);
            let whole = found.iter().filter(is_first).map(|_| command());
            let left = found.iter().filter(|f| !is_first(f) && !f.attached);
            whole.chain(left.map(|f| format!("DROP INDEX CONCURRENTLY {}", f.name))).collect()
        }
        Work::Reindex { .. } => {
            let left = found.iter().filter(|_| resumed).map(|f| format!("DROP INDEX CONCURRENTLY {}", f.name));
            left.chain([command()]).collect()
        }
    }
}

/// Which part of the steps is done, for the hint of the error that ended them.
pub fn progress(steps: &[Step], done: usize) -> String {
    let finished: Vec<GroupId> = {
        let mut groups: Vec<GroupId> = steps.iter().map(|s| s.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter().filter(|g| steps.iter().skip(done).all(|s| s.group != *g)).collect()
    };
    let place =
        |g: &GroupId| if *g == COORDINATOR_GROUP { "the coordinator".to_owned() } else { format!("node group {g}") };
    let finished: Vec<String> = finished.iter().map(place).collect();
    let whole = if finished.is_empty() { "no node".to_owned() } else { finished.join(", ") };
    format!("{done} of {} steps are done (complete on {whole}).", steps.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build() -> Step {
        Step {
            group: 1,
            action: "build the index".to_owned(),
            command: "CREATE INDEX CONCURRENTLY i ON s.t USING btree (v)".to_owned(),
            work: Work::BuildIndex {
                on: "s.t".to_owned(),
                index: "s.i".to_owned(),
                parent: Some("public.i".to_owned()),
                then: vec!["ALTER INDEX s.i ALTER COLUMN 1 SET STATISTICS 5".to_owned()],
            },
        }
    }

    fn found(name: &str, valid: bool, attached: bool) -> Found {
        Found { name: name.to_owned(), valid, attached }
    }

    fn check(step: &Step, found: &[Found], resumed: bool, expected: &[&str]) {
        assert_eq!(statements(step, found, resumed), expected, "{found:?} resumed: {resumed}");
    }

    #[test]
    fn only_an_index_of_an_earlier_attempt_that_is_valid_stays() {
        let create = "CREATE INDEX CONCURRENTLY i ON s.t USING btree (v)";
        let then = "ALTER INDEX s.i ALTER COLUMN 1 SET STATISTICS 5";
        check(&build(), &[], true, &[create, then]);
        check(&build(), &[found("s.i", true, false)], true, &[]);
        check(&build(), &[found("s.i", true, true)], true, &[]);
        check(&build(), &[found("s.i", false, false)], true, &["DROP INDEX CONCURRENTLY s.i", create, then]);
        check(&build(), &[found("s.i", true, false)], false, &["DROP INDEX CONCURRENTLY s.i", create, then]);
        check(&build(), &[found("s.i", true, true)], false, &["DROP INDEX public.i", create, then]);
    }

    #[test]
    fn an_index_is_dropped_whatever_of_it_is_there() {
        let shard = |id, group| ShardPlacement { id, remainder: Some(0), group };
        let steps = drop_index_steps("public", "i", Some(&[shard(7, 1), shard(8, 2), shard(9, 1)]), &[1, 2]);
        assert_eq!(steps.len(), 2);
        check(&steps[0], &[], false, &[]);
        let all = [found("public.i", true, false), found("pgherd_7.i", true, true), found("pgherd_9.i", true, true)];
        check(&steps[0], &all, false, &["DROP INDEX public.i"]);
        check(&steps[0], &[found("pgherd_9.i", false, false)], false, &["DROP INDEX CONCURRENTLY pgherd_9.i"]);
        let reference = drop_index_steps("public", "i", None, &[2]);
        check(&reference[0], &[found("public.i", false, false)], false, &["DROP INDEX CONCURRENTLY public.i"]);
    }

    #[test]
    fn the_hint_says_what_is_whole() {
        let steps = [on_coordinator("x"), build(), build(), Step { group: 2, ..build() }];
        assert_eq!(progress(&steps, 0), "0 of 4 steps are done (complete on no node).");
        assert_eq!(progress(&steps, 2), "2 of 4 steps are done (complete on the coordinator).");
        assert_eq!(progress(&steps, 3), "3 of 4 steps are done (complete on the coordinator, node group 1).");
    }
}
