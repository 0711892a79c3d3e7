//! Reads the catalog from the coordinator: what has changed since it was read last, in one statement
//! (`pgherd.catalog_since`, `crates/control/sql/changes.sql`), or all of it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use pgherd_catalog::hash::KeyType;
use pgherd_catalog::{
    Cascade, Colocation, Column, ColumnDefault, ForeignKey, NameRow, Node, Oid, Part, Shard, Snapshot, Table, TableKind,
};
use pgherd_control::cluster_state::{ClusterState, cluster_state_query, parse_cluster_state};
use serde::Deserialize;

use crate::database::Source;
use crate::names;
use crate::settings::{quote_element, quote_literal};

/// Whoever temporary tables belong to takes them away without a word: now and then all is read.
const CHANGES_IN_A_ROW_MAX: u32 = 2000;

/// The catalog as the coordinator has it; inside a transaction with that transaction's changes. What is the same in
/// `base`, an earlier one, is taken over.
pub async fn load<S: Source>(source: &mut S, base: Option<&Snapshot>) -> Result<Snapshot, S::Error> {
    let epoch = base.map_or(0, |base| base.epoch);
    let Some(base) = base.filter(|base| base.held.steps < CHANGES_IN_A_ROW_MAX && !base.held.known.is_empty()) else {
        return load_whole(source, epoch).await;
    };
    let mut changes = read(source, Some(base), epoch, &[]).await?;
    let mut also: Vec<Oid> = Vec::new();
    while !changes.whole {
        let left: Vec<Oid> = left_by(base, &changes).into_iter().filter(|oid| !also.contains(oid)).collect();
        if left.is_empty() {
            break;
        }
        also.extend(left);
        changes = read(source, Some(base), epoch, &also).await?;
    }
    if changes.whole {
        return made_of(source, &changes).await;
    }
    let mut snapshot = base.clone();
    apply(&mut snapshot, &changes);
    snapshot.held.steps += 1;
    // Which functions leave something on their connection depends on the names of all that do.
    if snapshot.held.direct != base.held.direct {
        return load_whole(source, epoch).await;
    }
    if *VERIFIES {
        verify(source, &snapshot).await?;
    }
    Ok(snapshot)
}

async fn load_whole<S: Source>(source: &mut S, epoch: i64) -> Result<Snapshot, S::Error> {
    let changes = read(source, None, epoch, &[]).await?;
    made_of(source, &changes).await
}

/// Of all that there is.
async fn made_of<S: Source>(source: &mut S, whole: &Changes) -> Result<Snapshot, S::Error> {
    let mut snapshot = Snapshot::default();
    names::begin(&mut snapshot, names::builtins(source).await?);
    apply(&mut snapshot, whole);
    Ok(snapshot)
}

/// For tests: whatever was brought up to date is compared with what is read as a whole.
static VERIFIES: LazyLock<bool> = LazyLock::new(|| std::env::var_os("PGHERD_VERIFY_CATALOG").is_some());

/// An error where a catalog that was changed is not what the coordinator has.
async fn verify<S: Source>(source: &mut S, changed: &Snapshot) -> Result<(), S::Error> {
    let whole = load_whole(source, changed.epoch).await?;
    let mut changed = changed.clone();
    // What temporary tables leave behind.
    let is_left = |key: &&(Part, Oid)| key.0 == Part::Relation && !whole.held.rows.contains_key(*key);
    let left: Vec<Oid> = changed.held.rows.keys().filter(is_left).map(|(_, oid)| *oid).collect();
    for oid in left {
        let sql = format!("SELECT FROM pg_catalog.pg_class WHERE oid = {oid}");
        if source.query(&sql).await?.rows.is_empty() {
            names::replace(&mut changed, Part::Relation, &[oid], Vec::new());
        }
    }
    names::settle(&mut changed);
    let told = source.query(cluster_state_query()).await?;
    let told = parse_cluster_state(told.text(0, 0).unwrap_or_default()).map_err(|e| S::unreadable(e.to_string()))?;
    let held = ClusterState::of(&changed);
    if held != told {
        return Err(S::unreadable(format!("a changed catalog tells of {held:?}, not of {told:?}")));
    }
    match differences(&changed, &whole) {
        found if found.is_empty() => Ok(()),
        found => Err(S::unreadable(format!("a changed catalog differs from the whole one: {}", found.join("; ")))),
    }
}

fn differences(changed: &Snapshot, whole: &Snapshot) -> Vec<String> {
    let mut found = Vec::new();
    macro_rules! compare {
        ($($field:ident).+) => {
            if changed.$($field).+ != whole.$($field).+ {
                found.push(stringify!($($field).+).to_owned());
            }
        };
    }
    compare!(epoch);
    compare!(nodes);
    compare!(colocations);
    compare!(class_columns);
    compare!(changed_here);
    compare!(firing_before);
    compare!(changing_triggers);
    compare!(sampling_functions);
    compare!(immutable_functions);
    compare!(volatile_functions);
    compare!(aggregates);
    compare!(set_returning_functions);
    compare!(collated);
    compare!(key_columns);
    compare!(owners);
    compare!(told_apart);
    compare!(behind_barriers);
    compare!(catalog_views);
    compare!(held.marks);
    compare!(held.direct);
    compare!(held.calling);
    compare!(held.hiding);
    compare!(held.foreign_keys);
    for key in changed.held.rows.keys().chain(whole.held.rows.keys()).collect::<HashSet<_>>() {
        let (changed, whole) = (changed.held.rows.get(key), whole.held.rows.get(key));
        if changed != whole {
            found.push(format!("{key:?}: {changed:?}, not {whole:?}"));
        }
    }
    for oid in changed.by_oid.keys().chain(whole.by_oid.keys()).collect::<HashSet<_>>() {
        let (changed, whole) = (changed.by_oid.get(oid), whole.by_oid.get(oid));
        if format!("{changed:?}") != format!("{whole:?}") {
            found.push(format!("{changed:?}, not {whole:?}"));
        }
    }
    let names = |snapshot: &Snapshot| {
        let schemas = snapshot.tables.iter().flat_map(|(schema, names)| names.keys().map(move |name| (schema, name)));
        schemas.map(|(schema, name)| format!("{schema}.{name}")).collect::<HashSet<_>>()
    };
    if names(changed) != names(whole) {
        found.push("names of tables".to_owned());
    }
    found
}

/// What changed, and what all of it is now.
#[derive(Debug, Default, Deserialize)]
struct Changes {
    epoch: String,
    known: String,
    server: String,
    own: Option<String>,
    whole: bool,
    nodes: Option<Rows>,
    colocations: Option<Rows>,
    relations: Option<Vec<String>>,
    functions: Option<Vec<String>>,
    types: Option<Vec<String>>,
    operators: Option<Vec<String>>,
    relation_names: Option<Rows>,
    function_names: Option<Rows>,
    type_names: Option<Rows>,
    operator_names: Option<Rows>,
    tables: Option<Rows>,
    columns: Option<Rows>,
    shards: Option<Rows>,
    unique_keys: Option<Rows>,
    foreign_keys: Option<Rows>,
    barriers: Option<Vec<String>>,
    mappings: Rows,
    class_columns: Option<String>,
}

type Row = Vec<Option<String>>;
type Rows = Vec<Row>;

/// `epoch`: the one that is known.
async fn read<S: Source>(
    source: &mut S,
    base: Option<&Snapshot>,
    epoch: i64,
    also: &[Oid],
) -> Result<Changes, S::Error> {
    let sql = match base {
        None => format!("SELECT pgherd.catalog_since(NULL, NULL, {epoch}, '{{}}', '{{}}', '')"),
        Some(base) => {
            let direct: Vec<String> = base.held.direct.iter().map(quote_element).collect();
            let also: Vec<String> = also.iter().map(Oid::to_string).collect();
            format!(
                "SELECT pgherd.catalog_since({}, {}, {}, {}, '{{{}}}', {})",
                quote_literal(&base.held.known),
                quote_literal(&base.held.own),
                epoch,
                quote_literal(&format!("{{{}}}", direct.join(","))),
                also.join(","),
                quote_literal(&base.held.server)
            )
        }
    };
    let result = source.query(&sql).await?;
    let text = result.rows.first().and_then(|row| row.first()).and_then(|cell| cell.as_deref()).unwrap_or_default();
    serde_json::from_slice(String::from_utf8_lossy(text).as_bytes()).map_err(|error| S::unreadable(error.to_string()))
}

/// Partitions that a table had and has no more are not found from it.
fn left_by(base: &Snapshot, changes: &Changes) -> Vec<Oid> {
    let touched: HashSet<Oid> = oids(changes.relations.as_ref()).into_iter().collect();
    let of_touched = |table: &&Arc<Table>| table.parent.is_some_and(|parent| touched.contains(&parent));
    base.all_tables().filter(of_touched).map(|table| table.oid).filter(|oid| !touched.contains(oid)).collect()
}

fn oids(list: Option<&Vec<String>>) -> Vec<Oid> {
    list.into_iter().flatten().filter_map(|oid| oid.parse().ok()).collect()
}

fn text(row: &Row, column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

fn string(row: &Row, column: usize) -> String {
    text(row, column).unwrap_or_default().to_owned()
}

fn number<T: std::str::FromStr + Default>(row: &Row, column: usize) -> T {
    text(row, column).and_then(|t| t.parse().ok()).unwrap_or_default()
}

fn truth(row: &Row, column: usize) -> bool {
    text(row, column) == Some("true")
}

fn rows(rows: Option<&Rows>) -> impl Iterator<Item = &Row> {
    rows.into_iter().flatten()
}

fn apply(snapshot: &mut Snapshot, changes: &Changes) {
    snapshot.epoch = changes.epoch.parse().unwrap_or_default();
    snapshot.held.known.clone_from(&changes.known);
    snapshot.held.server.clone_from(&changes.server);
    snapshot.held.own = changes.own.clone().unwrap_or_else(|| "0/0".to_owned());
    if let Some(nodes) = &changes.nodes {
        snapshot.nodes = nodes.iter().map(node).collect();
    }
    if let Some(colocations) = &changes.colocations {
        snapshot.colocations = colocations.iter().map(|row| (number(row, 0), colocation(row))).collect();
    }
    for (part, objects, names) in [
        (Part::Relation, &changes.relations, &changes.relation_names),
        (Part::Function, &changes.functions, &changes.function_names),
        (Part::Type, &changes.types, &changes.type_names),
        (Part::Operator, &changes.operators, &changes.operator_names),
    ] {
        let told = rows(names.as_ref()).filter_map(|row| Some((number(row, 2), name_row(row)?))).collect();
        names::replace(snapshot, part, &oids(objects.as_ref()), told);
    }
    if changes.relations.is_some() {
        apply_tables(snapshot, changes);
    }
    if let Some(barriers) = &changes.barriers {
        snapshot.behind_barriers = oids(Some(barriers)).into_iter().collect();
    }
    snapshot.told_apart = changes.mappings.iter().map(|row| (number(row, 0), string(row, 1))).collect();
    let has_leaf = snapshot.by_oid.values().any(|table| table.is_leaf);
    snapshot.class_columns = changes.class_columns.clone().filter(|_| has_leaf).unwrap_or_default();
    names::settle(snapshot);
}

fn node(row: &Row) -> Node {
    Node {
        id: number(row, 0),
        group: number(row, 1),
        host: string(row, 2),
        port: number(row, 3),
        is_active: truth(row, 4),
        should_have_shards: truth(row, 5),
    }
}

fn colocation(row: &Row) -> Colocation {
    Colocation {
        placement_epoch: number(row, 1),
        shard_count: number(row, 2),
        replication_factor: number(row, 3),
        key_type: number(row, 4),
        key_collation: number(row, 5),
        is_default: truth(row, 6),
    }
}

/// A kind may have the name's beginning with it.
fn name_row(row: &Row) -> Option<NameRow> {
    let (kind, name) = (text(row, 0)?, text(row, 1)?);
    let first = kind.chars().next()?;
    Some(match &kind[first.len_utf8()..] {
        "" => (first, name.into()),
        head => (first, format!("{head}\u{1}{name}").into()),
    })
}

fn apply_tables(snapshot: &mut Snapshot, changes: &Changes) {
    let touched = oids(changes.relations.as_ref());
    for oid in &touched {
        snapshot.remove_table(*oid);
        snapshot.held.calling.remove(oid);
        snapshot.held.hiding.remove(oid);
        snapshot.held.foreign_keys.remove(oid);
    }
    let mut keys: HashMap<Oid, Vec<ForeignKey>> = HashMap::new();
    for row in rows(changes.foreign_keys.as_ref()) {
        let columns = |column| string(row, column).split('\u{1}').map(str::to_owned).collect();
        keys.entry(number(row, 0)).or_default().push(ForeignKey {
            to: number(row, 1),
            on_delete: truth(row, 2),
            on_update: truth(row, 3),
            to_columns: columns(4),
            from_columns: columns(5),
            deletes: truth(row, 6),
        });
    }
    snapshot.held.foreign_keys.extend(keys.into_iter().map(|(oid, keys)| (oid, keys.into())));
    put_tables(snapshot, changes);
    follow_keys(snapshot);
    let here = snapshot.by_oid.values().filter(|t| t.changed_here && !t.is_reference());
    let mut here: Vec<String> = here.map(|t| t.oid.to_string()).collect();
    here.sort_unstable();
    snapshot.changed_here = if here.is_empty() { String::new() } else { format!(",{},", here.join(",")) };
}

/// What a write to a table may do to others without naming them.
fn follow_keys(snapshot: &mut Snapshot) {
    snapshot.cascades.clear();
    snapshot.key_columns.clear();
    let mut follows: Vec<(Oid, Oid)> = Vec::new();
    let mut from: Vec<&Oid> = snapshot.held.foreign_keys.keys().collect();
    from.sort_unstable();
    for from in from {
        for key in snapshot.held.foreign_keys[from].iter() {
            let is_distributed = |oid| snapshot.by_oid.get(oid).is_some_and(|table| !table.is_reference());
            if is_distributed(from) && is_distributed(&key.to) {
                for (table, columns) in [(key.to, &key.to_columns), (*from, &key.from_columns)] {
                    snapshot.key_columns.entry(table).or_default().extend(columns.iter().cloned());
                }
            }
            if key.on_delete || key.on_update {
                let ForeignKey { on_delete, on_update, deletes, .. } = *key;
                let cascade = Cascade { to: *from, on_delete, on_update, deletes };
                snapshot.cascades.entry(key.to).or_default().push(cascade);
                if snapshot.by_oid.contains_key(from) {
                    follows.push((*from, key.to));
                }
            }
        }
    }
    // Triggers, functions, defaults and deferred constraints of a table are also run by writes to those it follows.
    let mut followed: HashSet<Oid> = HashSet::new();
    loop {
        let before = followed.len();
        let of = |table: &Oid| snapshot.held.hiding.contains(table) || followed.contains(table);
        let more: Vec<Oid> = follows.iter().filter(|(table, _)| of(table)).map(|(_, parent)| *parent).collect();
        followed.extend(more);
        if followed.len() == before {
            break;
        }
    }
    let calls = |oid: &Oid| snapshot.held.calling.contains(oid) || followed.contains(oid);
    let other: Vec<Arc<Table>> =
        snapshot.all_tables().filter(|table| table.has_hidden_calls != calls(&table.oid)).cloned().collect();
    for table in other {
        let has_hidden_calls = !table.has_hidden_calls;
        snapshot.insert_table(Table { has_hidden_calls, ..(*table).clone() });
    }
}

fn put_tables(snapshot: &mut Snapshot, changes: &Changes) {
    let mut columns_of: HashMap<Oid, Vec<(Column, bool, bool)>> = HashMap::new();
    for row in rows(changes.columns.as_ref()) {
        columns_of.entry(number(row, 0)).or_default().push((column(row), truth(row, 14), truth(row, 15)));
    }
    let mut shards_of: HashMap<Oid, Vec<Shard>> = HashMap::new();
    for row in rows(changes.shards.as_ref()) {
        let list = shards_of.entry(number(row, 0)).or_default();
        let shard = Shard { id: number(row, 1), remainder: number(row, 2), group: number(row, 3) };
        // A reference table's one shard has a placement on every node; the first says its id.
        if list.last().is_none_or(|last| last.id != shard.id) {
            list.push(shard);
        }
    }
    let mut keys_of: HashMap<Oid, Vec<Vec<String>>> = HashMap::new();
    for row in rows(changes.unique_keys.as_ref()) {
        let names = string(row, 1).split('\u{1}').map(str::to_owned).collect();
        keys_of.entry(number(row, 0)).or_default().push(names);
    }
    for row in rows(changes.tables.as_ref()) {
        let oid: Oid = number(row, 0);
        let described = columns_of.remove(&oid).unwrap_or_default();
        let computed = |default: &ColumnDefault| {
            !matches!(default, ColumnDefault::None | ColumnDefault::Expression { immutable: true, .. })
        };
        if truth(row, 10) {
            snapshot.held.calling.insert(oid);
        }
        if [6, 7, 10, 11].into_iter().any(|flag| truth(row, flag))
            || described.iter().any(|(column, _, _)| computed(&column.default))
        {
            snapshot.held.hiding.insert(oid);
        }
        let encoding = string(row, 9);
        let list = shards_of.remove(&oid).unwrap_or_default();
        let kind = if text(row, 3) == Some("h") {
            let key_name = string(row, 4);
            let Some(key) = described.iter().position(|(c, _, _)| c.name == key_name) else { continue };
            let (column, deterministic, _) = &described[key];
            let key_type = KeyType::of(column.type_oid, column.collation, *deterministic, &encoding);
            TableKind::Distributed { key, key_type, shards: list }
        } else {
            TableKind::Reference { shard: list.first().map_or(0, |s| s.id) }
        };
        snapshot.owners.insert(oid, number(row, 16));
        let has_user_types = described.iter().any(|(_, _, user)| *user);
        let columns: Vec<Column> = described.into_iter().map(|(column, _, _)| column).collect();
        let local_keys: Vec<i16> =
            text(row, 19).unwrap_or_default().split(',').filter_map(|number| number.parse().ok()).collect();
        let local_keys = columns.iter().filter(|column| local_keys.contains(&column.attnum));
        snapshot.insert_table(Table {
            oid,
            schema: string(row, 1),
            name: string(row, 2),
            kind,
            colocation: number(row, 5),
            has_user_types,
            local_keys: local_keys.map(|column| column.name.clone()).collect(),
            columns,
            row_security: truth(row, 6),
            has_triggers: truth(row, 7) && !truth(row, 18),
            fires_here: truth(row, 18),
            changed_here: truth(row, 17) || truth(row, 18),
            has_hidden_calls: truth(row, 10),
            has_deferred: truth(row, 11),
            is_referenced: truth(row, 12),
            is_partitioned: truth(row, 14) && !truth(row, 13),
            is_leaf: truth(row, 13),
            parent: text(row, 15).and_then(|oid| oid.parse().ok()),
            parent_only: truth(row, 8) || truth(row, 6),
            unique_keys: keys_of.remove(&oid).unwrap_or_default(),
        });
    }
}

fn column(row: &Row) -> Column {
    let expression = text(row, 11).map(str::to_owned);
    let default = if text(row, 10).is_some_and(|g| !g.is_empty()) {
        ColumnDefault::Generated
    } else if let Some(identity) = text(row, 9).filter(|i| !i.is_empty()) {
        ColumnDefault::Identity { always: identity == "a", sequence: string(row, 13) }
    } else {
        match expression {
            None => ColumnDefault::None,
            Some(sql) if truth(row, 12) => ColumnDefault::Sequence { sql },
            Some(sql) => {
                let immutable = is_literal(&sql);
                ColumnDefault::Expression { sql, immutable }
            }
        }
    };
    Column {
        attnum: number(row, 1),
        name: string(row, 2),
        type_oid: number(row, 3),
        typmod: number(row, 4),
        type_name: string(row, 5),
        base_type_name: string(row, 6),
        collation: number(row, 7),
        not_null: truth(row, 8),
        default,
    }
}

/// A default that is a plain literal with casts, as PostgreSQL prints it: the same value whoever evaluates it.
fn is_literal(sql: &str) -> bool {
    let first = sql.bytes().next().unwrap_or(b' ');
    let plain = first == b'\'' || first.is_ascii_digit() || first == b'-' || matches!(sql, "true" | "false");
    // A string cast to a date or time may mean 'now'; those are printed folded, but text casts are not evaluated.
    plain && !sql.contains('(') && !sql.contains("::date") && !sql.contains("::time")
}

/// A coordinator's snapshot (`pg_snapshot`): which transactions it shows.
struct Shown {
    /// None from here on.
    end: u64,
    in_progress: HashSet<u64>,
}

impl Shown {
    /// None: nothing was read.
    fn parse(text: &str) -> Option<Shown> {
        let mut parts = text.split(':').skip(1);
        let end = parts.next()?.parse().ok()?;
        let in_progress = parts.next()?.split(',').filter_map(|xid| xid.parse().ok()).collect();
        Some(Shown { end, in_progress })
    }

    fn shows(&self, xid: u64) -> bool {
        xid < self.end && !self.in_progress.contains(&xid)
    }
}

/// What was read under one snapshot of the coordinator lacks nothing that was read under another.
pub fn shows_all_of(known: &str, other: &str) -> bool {
    let Some(other) = Shown::parse(other) else { return true };
    let Some(known) = Shown::parse(known) else { return false };
    let lacks = |xid: u64| other.shows(xid) && !known.shows(xid);
    !known.in_progress.iter().any(|xid| lacks(*xid)) && !(known.end..other.end).any(lacks)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_snapshot_of_the_coordinator_is_newer_than_another() {
        // It is empty, the same, further on, and has one ended that was in progress.
        for (known, other) in
            [("1:5:", ""), ("3:5:3", "3:5:3"), ("7:9:7", "3:5:3"), ("5:5:", "3:5:3"), ("3:9:3,8", "3:8:3")]
        {
            assert!(shows_all_of(known, other), "{known} {other}");
        }
        for (known, other) in [("", "1:5:"), ("3:5:3", "5:5:"), ("3:5:3", "7:9:7"), ("3:8:3", "3:9:3,7")] {
            assert!(!shows_all_of(known, other), "{known} {other}");
        }
        // What has no end yet is in neither.
        assert!(shows_all_of("3:8:3", "3:9:3,8"));
    }

    fn changed(snapshot: &mut Snapshot, json: &str) {
        let known = r#""epoch": "1", "known": "7:7:", "server": "1", "own": "0/0", "whole": false, "mappings": []"#;
        apply(snapshot, &serde_json::from_str(&format!("{{{known}, {json}}}")).unwrap());
    }

    /// A row of `pgherd.held_tables`: a distributed table, with a trigger or without.
    fn table(oid: u32, name: &str, has_trigger: bool) -> String {
        format!(
            r#"["{oid}", "s", "{name}", "h", "k", "1", "false", "{has_trigger}", "false", "UTF8", "false", "false", "false",
                "false", "false", null, "10", "false", "false", null]"#
        )
    }

    fn key(oid: u32) -> String {
        format!(
            r#"["{oid}", "1", "k", "23", "-1", "integer", "integer", "0", "false", "", "", null, "false", null, "true", "false"]"#
        )
    }

    fn shard(oid: u32) -> String {
        format!(r#"["{oid}", "{oid}00", "0", "1"]"#)
    }

    #[test]
    fn names_go_with_the_last_object_that_has_them() {
        let mut snapshot = Snapshot::default();
        let functions = r#""functions": ["1", "2"], "function_names": [["f", "same", "1"], ["V", "same", "1"], ["f", "same", "2"]]"#;
        changed(&mut snapshot, functions);
        changed(&mut snapshot, r#""functions": ["1"], "function_names": [["f", "other", "1"], ["Q", "", "1"]]"#);
        assert!(snapshot.user_functions.contains("same") && snapshot.user_functions.contains("other"));
        assert!(snapshot.volatile_user_functions.is_empty() && snapshot.has_stable_readers);
        changed(&mut snapshot, r#""functions": ["1", "2"], "function_names": null"#);
        assert!(snapshot.user_functions.is_empty() && !snapshot.has_stable_readers);
    }

    #[test]
    fn a_renamed_table_is_found_by_its_new_name_alone() {
        let mut snapshot = Snapshot::default();
        let of = |name: &str| {
            let (table, key, shard) = (table(5, name, false), key(5), shard(5));
            format!(r#""relations": ["5"], "tables": [{table}], "columns": [{key}], "shards": [{shard}]"#)
        };
        changed(&mut snapshot, &of("before"));
        changed(&mut snapshot, &of("after"));
        assert_eq!(snapshot.tables["s"].keys().collect::<Vec<_>>(), ["after"]);
        assert_eq!(snapshot.by_oid[&5].shards().len(), 1);
        changed(&mut snapshot, r#""relations": ["5"], "relation_names": [["n", "s\u0001after", "5"]]"#);
        assert!(snapshot.tables.is_empty() && snapshot.by_oid.is_empty() && snapshot.owners.is_empty());
        assert!(snapshot.other_relations.contains("s\u{1}after"));
    }

    #[test]
    fn what_a_write_runs_follows_keys_that_cascade_and_ends_with_them() {
        let mut snapshot = Snapshot::default();
        let list = |of: &dyn Fn(u32) -> String| (1..4).map(of).collect::<Vec<_>>().join(",");
        // 3 follows 2, which follows 1; 3 has a trigger.
        let tables = list(&|oid| table(oid, &format!("t{oid}"), oid == 3));
        let both = |columns: &str| {
            let keys =
                r#"[["2", "1", "true", "false", "k", "k", "true"], ["3", "2", "true", "false", "k", "k", "true"]]"#;
            let (keys, shards) = (if columns.is_empty() { "null" } else { keys }, list(&shard));
            let columns = list(&key);
            format!(
                r#""relations": ["1", "2", "3"], "tables": [{tables}], "columns": [{columns}], "shards": [{shards}], "foreign_keys": {keys}"#
            )
        };
        changed(&mut snapshot, &both("keys"));
        let runs = |snapshot: &Snapshot| [1, 2, 3].map(|oid| snapshot.by_oid[&oid].has_hidden_calls);
        assert_eq!(runs(&snapshot), [true, true, false]);
        // The key of 2 goes.
        let (table, key, shard) = (table(2, "t2", false), key(2), shard(2));
        let only = format!(r#""relations": ["2"], "tables": [{table}], "columns": [{key}], "shards": [{shard}]"#);
        changed(&mut snapshot, &only);
        assert_eq!(runs(&snapshot), [false, true, false]);
        assert_eq!(snapshot.cascades.keys().collect::<Vec<_>>(), [&2]);
        changed(&mut snapshot, &both(""));
        assert_eq!(runs(&snapshot), [false; 3]);
        assert!(snapshot.key_columns.is_empty());
    }
}
