//! Later DDL on distributed and reference tables, by comparison: the statement is run on the coordinator first, whose
//! table is the schema of record, and the workers are brought from the description before to the description after. So
//! names that PostgreSQL chose, defaults it filled in and objects that went by CASCADE are the same everywhere, and no
//! form of ALTER TABLE needs to be parsed here.
//!
//! Left to others: what changes no description (TRUNCATE, VACUUM, ANALYZE, REINDEX, CLUSTER, LOCK: the same text on the
//! parent's name is right), CREATE and DROP TABLE (`distribute`), and taking the coordinator's foreign child away while
//! it alters.

use crate::Refusal;
use crate::cluster_state::{ClusterState, ShardPlacement};
use crate::describe::{Column, Constraint, IncomingKey, Index, Referenced, Statistics, TableDescription};
use crate::distribute::{
    Leaf, STALE_GUARD, add_constraint, as_copied, check_outgoing_key, check_prerequisites, check_triggers,
    column_definition, create_index, create_policy, enable_clause, fire_keys_sql, fits_reference, foreign_key_ddl,
    grants_ddl, must_be_reference, options_text, owner_sql, partitioning_refusal, prerequisite_ddl, stale_guard,
    statistics_ddl, unchecked_not_null, unique_constraint_has_key, unique_refusal,
};
use crate::quote::{qualified, quote_ident, quote_literal};
use pgherd_catalog::{GroupId, Oid};

/// What two descriptions do not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hints<'a> {
    /// `ALTER COLUMN name TYPE … USING expression`: the name before, and the expression as written.
    pub using: &'a [(String, String)],
    /// What the worker's rows get in columns that are new and that only the coordinator can fill.
    pub fills: &'a [Fill],
    /// A generated column gets another expression. Else one that reads otherwise names what was renamed.
    pub sets_expression: bool,
}

/// The values of a new column: a query for the worker, which gives one for each of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fill {
    /// `attnum`.
    pub column: i16,
    pub query: String,
}

/// What the coordinator evaluates for each row of a new column, and as which type. None: workers can do so themselves.
pub fn filled_from(column: &Column) -> Option<(String, String)> {
    let expression = match (&column.identity_sequence, &column.default) {
        (Some(sequence), _) => format!("pg_catalog.nextval({}::pg_catalog.regclass)", quote_literal(sequence)),
        (None, Some(default)) if column.default_on_coordinator => default.clone(),
        _ => return None,
    };
    let as_type = if is_string(column) { "text" } else { &column.type_name };
    Some((expression, as_type.to_owned()))
}

/// Text is too long for such a column where it is assigned, and is cut where it is cast.
fn is_string(column: &Column) -> bool {
    matches!(column.base_type.as_str(), "text" | "character varying" | "character")
}

/// Whether the table as altered can still be distributed by its column: to be called after the statement ran on the
/// coordinator and before anything runs on workers. `key`: the column's name before. Gives its name now.
pub fn check_altered(
    before: &TableDescription,
    after: &TableDescription,
    key: &str,
    state: &ClusterState,
) -> Result<String, Refusal> {
    let old = crate::distribute::key_column(before, key)?;
    let Some(new) = after.columns.iter().find(|c| c.number == old.number) else {
        return Err(Refusal::new(
            "42P16",
            format!("cannot drop column \"{key}\" because it is the distribution column of table \"{}\"", before.name),
        ));
    };
    if new.type_oid != old.type_oid || new.collation_oid != old.collation_oid || !new.generated.is_empty() {
        return Err(Refusal::new(
            "42P16",
            format!("cannot alter column \"{key}\" because it is the distribution column of table \"{}\"", before.name),
        )
        .hint("Use undistribute_table, alter the column, and distribute the table again."));
    }
    let missing_key = after.constraints.iter().any(|c| !unique_constraint_has_key(c, &new.name))
        || after.indexes.iter().any(|i| i.unique && !i.columns.iter().flatten().any(|c| *c == new.name));
    if missing_key {
        return Err(unique_refusal(&after.name));
    }
    let parent = after.parent.and_then(|parent| state.table(parent));
    let is_child = !after.inherits.is_empty() && parent.is_none();
    if is_child || (!after.children.is_empty() && !after.is_partitioned()) {
        return Err(Refusal::unsupported(format!(
            "distributed table \"{}\" cannot take part in inheritance",
            after.name
        )));
    }
    if let (Some(parent), Some(own)) = (parent, state.table(after.oid))
        && before.parent != after.parent
        && (parent.colocation != own.colocation || parent.key != own.key)
    {
        return Err(Refusal::unsupported(format!(
            "cannot attach distributed table \"{}\" to distributed table \"{}\"",
            after.name, parent.name
        ))
        .detail("They are not colocated, or have different distribution columns."));
    }
    if let Some(why) = partitioning_refusal(after) {
        return Err(Refusal::unsupported(format!(
            "cannot change the definition of distributed table \"{}\" so",
            after.name
        ))
        .detail(why));
    }
    if after.is_partitioned() {
        check_retyped(before, after)?;
    }
    check_triggers(after)?;
    crate::distribute::check_default_actions(after)?;
    check_prerequisites(after, state)?;
    let own = state.table(after.oid);
    let placement = own.map(|t| crate::distribute::Placement {
        colocation: Some(t.colocation),
        is_default: false,
        groups: t.shards().iter().map(|s| s.group).collect(),
    });
    for constraint in after.constraints.iter().filter(|c| c.kind == 'f') {
        check_outgoing_key(after, &new.name, constraint, state, placement.as_ref())?;
    }
    check_incoming(after, state)?;
    Ok(new.name.clone())
}

/// Another type makes indexes of the column anew, in each partition and shard under names that PostgreSQL invents.
/// Where a statement does nothing else, workers take these names over ([`TableDescription::with_indexes_of`]).
fn check_retyped(before: &TableDescription, after: &TableDescription) -> Result<(), Refusal> {
    for old in &before.columns {
        let retyped = after
            .columns
            .iter()
            .any(|new| new.number == old.number && (new.type_name != old.type_name || new.collation != old.collation));
        let holds = |columns: &[Option<String>]| columns.iter().any(|c| c.as_ref().is_none_or(|c| *c == old.name));
        let is_kept = |oid: Oid| {
            after.indexes.iter().map(|i| i.oid).chain(after.constraints.iter().map(|c| c.oid)).any(|o| o == oid)
        };
        let is_indexed =
            before.constraints.iter().any(|c| matches!(c.kind, 'p' | 'u') && holds(&c.columns) && !is_kept(c.oid))
                || before.indexes.iter().any(|i| (i.predicate || holds(&i.columns)) && !is_kept(i.oid));
        if retyped && is_indexed {
            return Err(Refusal::unsupported(format!(
                "cannot alter the type of column \"{}\" of partitioned distributed table \"{}\"",
                old.name, before.name
            ))
            .detail("An index has the column.")
            .hint("Drop the index, alter the column, and create the index again."));
        }
    }
    Ok(())
}

/// The same for a reference table.
pub fn check_altered_reference(after: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    if !after.inherits.is_empty() || !after.children.is_empty() {
        return Err(Refusal::unsupported(format!(
            "reference table \"{}\" cannot take part in inheritance",
            after.name
        )));
    }
    check_prerequisites(after, state)?;
    for constraint in after.constraints.iter().filter(|c| c.kind == 'f') {
        let fits = |r: &Referenced| fits_reference(after.oid, r.oid, state);
        if !constraint.referenced.as_ref().is_some_and(fits) {
            return Err(must_be_reference(
                &constraint.name,
                &after.name,
                constraint.referenced.as_ref().map_or("", |r| r.name.as_str()),
            ));
        }
    }
    Ok(())
}

/// For ALTER TABLE on a local table, too: it must not come to reference a distributed table.
pub fn check_incoming(referenced: &TableDescription, state: &ClusterState) -> Result<(), Refusal> {
    let is_reference = state.table(referenced.oid).is_some_and(|t| t.is_reference());
    // A local table's key is checked on the coordinator.
    let is_checked = !referenced.is_partitioned() && !referenced.is_leaf;
    let fits = |incoming: &&IncomingKey| match state.table(incoming.oid) {
        Some(table) => !table.is_reference(),
        None => is_checked,
    };
    match referenced.incoming.iter().find(|i| !fits(i)) {
        Some(incoming) if !is_reference => Err(Refusal::unsupported(format!(
            "cannot create foreign key constraint \"{}\": table \"{}\" is distributed and \"{}\" is not",
            incoming.name, referenced.name, incoming.table
        ))
        .detail("Only distributed tables of the same colocation group can reference a distributed table.")),
        _ => Ok(()),
    }
}

/// Brings one worker from `before` to `after`. `shards`: all of the table's; `group`: whose worker this is.
pub fn alter_ddl(
    before: &TableDescription,
    after: &TableDescription,
    shards: &[ShardPlacement],
    group: GroupId,
    state: &ClusterState,
    hints: Hints<'_>,
) -> Result<Vec<String>, Refusal> {
    alter_ddl_parts(before, after, shards, group, state, hints).map(Alteration::all)
}

/// The statements for one table. Of partitioned tables and their partitions, all changes come first, from parents to
/// partitions, whom PostgreSQL changes along; what is new comes then, from partitions to parents, who adopt it.
#[derive(Debug, Default, Clone)]
pub struct Alteration {
    pub changes: Vec<String>,
    pub additions: Vec<String>,
}

impl Alteration {
    pub fn all(self) -> Vec<String> {
        let mut all = self.changes;
        all.extend(self.additions);
        all
    }
}

pub fn alter_ddl_parts(
    before: &TableDescription,
    after: &TableDescription,
    shards: &[ShardPlacement],
    group: GroupId,
    state: &ClusterState,
    hints: Hints<'_>,
) -> Result<Alteration, Refusal> {
    let leaves = |name: &str| -> Vec<Leaf> {
        shards
            .iter()
            .filter(|s| s.group == group)
            .map(|s| Leaf { schema: s.schema(), name: qualified(&s.schema(), name), shard: Some(*s) })
            .collect()
    };
    let site =
        Site { is_reference: false, leaves: leaves(&after.name), old_leaves: leaves(&before.name), shards, state };
    site.alter(before, after, hints)
}

/// Brings a reference table's copy on a worker from `before` to `after`.
pub fn alter_reference_ddl(
    before: &TableDescription,
    after: &TableDescription,
    state: &ClusterState,
    hints: Hints<'_>,
) -> Result<Vec<String>, Refusal> {
    let (before, after) = (as_copied(before, state), as_copied(after, state));
    let leaf = |t: &TableDescription| vec![Leaf { schema: t.schema.clone(), name: t.qualified_name(), shard: None }];
    let site = Site { is_reference: true, leaves: leaf(&after), old_leaves: leaf(&before), shards: &[], state };
    site.alter(&before, &after, hints).map(Alteration::all)
}

/// Where the statements go: a parent with its partitions, or one reference table.
struct Site<'a> {
    is_reference: bool,
    leaves: Vec<Leaf>,
    /// Under the name before.
    old_leaves: Vec<Leaf>,
    shards: &'a [ShardPlacement],
    state: &'a ClusterState,
}

/// Two lists matched: what went, what came, and what stayed under a new identity or the same.
struct Matched<'a, T> {
    gone: Vec<&'a T>,
    new: Vec<&'a T>,
    kept: Vec<(&'a T, &'a T)>,
}

/// By object id; what is left, by name (ALTER COLUMN … TYPE makes indexes and constraints anew under their names).
fn matched<'a, T>(
    before: &'a [T],
    after: &'a [T],
    oid: impl Fn(&T) -> Oid,
    name: impl Fn(&T) -> String,
) -> Matched<'a, T> {
    let mut out = Matched { gone: vec![], new: vec![], kept: vec![] };
    for old in before {
        let same = after
            .iter()
            .find(|n| oid(n) == oid(old))
            .or_else(|| after.iter().find(|n| name(n) == name(old) && !before.iter().any(|b| oid(b) == oid(n))));
        match same {
            Some(new) => out.kept.push((old, new)),
            None => out.gone.push(old),
        }
    }
    out.new = after.iter().filter(|n| !out.kept.iter().any(|(_, k)| oid(k) == oid(n))).collect();
    out
}

impl<'a, T> Matched<'a, T> {
    /// Moves pairs that cannot be altered into one another to `gone` and `new`.
    fn recreate_where(mut self, differs: impl Fn(&T, &T) -> bool) -> Self {
        let (again, kept): (Vec<_>, Vec<_>) = self.kept.into_iter().partition(|(old, new)| differs(old, new));
        self.kept = kept;
        for (old, new) in again {
            self.gone.push(old);
            self.new.push(new);
        }
        self
    }
}

impl Site<'_> {
    fn alter(
        &self,
        before: &TableDescription,
        after: &TableDescription,
        hints: Hints<'_>,
    ) -> Result<Alteration, Refusal> {
        let table = after.qualified_name();
        // What its parent hands down.
        let follows = before.parent.is_some() && before.parent == after.parent;
        let mut out = Vec::new();
        let added: Vec<_> = after
            .prerequisites
            .iter()
            .filter(|p| !before.prerequisites.iter().any(|b| b.kind == p.kind && b.name == p.name))
            .cloned()
            .collect();
        out.extend(prerequisite_ddl(&added));
        self.rename_table(before, after, &mut out);

        let constraints = matched(&before.constraints, &after.constraints, |c| c.oid, |c| c.name.clone())
            .recreate_where(constraint_differs);
        let indexes = matched(&before.indexes, &after.indexes, |i| i.oid, |i| i.name.clone())
            .recreate_where(|old, new| old.oid != new.oid && old.tail != new.tail);
        // A reference table's run on the coordinator only.
        let (no_triggers, of_workers) = (Vec::new(), !self.is_reference);
        let old_triggers = if of_workers && !before.fires_here { &before.triggers } else { &no_triggers };
        let new_triggers = if of_workers && !after.to_fire_here { &after.triggers } else { &no_triggers };
        let triggers = matched(old_triggers, new_triggers, |t| t.oid, |t| t.name.clone()).recreate_where(|old, new| {
            old.name != new.name || definition_differs(before, after, &old.definition, &new.definition)
        });
        let policies =
            matched(&before.policies, &after.policies, |p| p.oid, |p| p.name.clone()).recreate_where(|old, new| {
                let mut old = old.clone();
                old.oid = new.oid;
                old != *new
            });
        let statistics =
            matched(&before.statistics, &after.statistics, |s| s.oid, |s| format!("{}.{}", s.schema, s.name))
                .recreate_where(|old, new| {
                    (&old.schema, &old.name, &old.middle) != (&new.schema, &new.name, &new.middle)
                });

        // What goes, dependents first.
        out.extend(triggers.gone.iter().map(|t| format!("DROP TRIGGER {} ON {table}", quote_ident(&t.name))));
        let guarded = of_workers && before.is_changed_here(false);
        let to_be_guarded = of_workers && after.is_changed_here(true);
        if guarded && !to_be_guarded {
            out.push(format!("DROP TRIGGER IF EXISTS {STALE_GUARD} ON {table}"));
        }
        for policy in &policies.gone {
            out.extend(self.names(after).map(|name| format!("DROP POLICY {} ON {name}", quote_ident(&policy.name))));
        }
        for object in &statistics.gone {
            self.drop_statistics(object, &mut out);
        }
        // In the parent's schema, which SET SCHEMA has moved it to.
        for index in &indexes.gone {
            out.push(format!("DROP INDEX IF EXISTS {}", qualified(&after.schema, &index.name)));
            if !self.is_reference && !self.leaves.is_empty() {
                let ids: Vec<String> = self.leaves.iter().filter_map(|l| l.shard).map(|s| s.id.to_string()).collect();
                let name = quote_literal(&index.name);
                out.push(format!("SELECT pgherd.drop_shard_indexes('{{{}}}', {name})", ids.join(",")));
            }
        }
        for constraint in
            constraints.gone.iter().filter(|c| c.kind == 'f').chain(constraints.gone.iter().filter(|c| c.kind != 'f'))
        {
            let drop = format!("DROP CONSTRAINT IF EXISTS {} CASCADE", quote_ident(&constraint.name));
            // CASCADE: foreign keys that went with it on the coordinator. IF EXISTS: so did it, perhaps, with a column.
            let on_leaves = match constraint.kind {
                'x' => true,
                'c' => constraint.no_inherit,
                _ => false,
            };
            if self.is_reference || !on_leaves {
                out.push(format!("ALTER TABLE {table} {drop}"));
            }
            if !self.is_reference && (on_leaves || constraint.kind == 'f') {
                out.extend(self.leaves.iter().map(|leaf| format!("ALTER TABLE {} {drop}", leaf.name)));
            }
        }

        self.alter_columns(before, after, hints, follows, &mut out);

        for (old, new) in &constraints.kept {
            self.alter_constraint(old, new, &table, &mut out);
        }
        for (old, new) in &indexes.kept {
            self.alter_index(old, new, after, &mut out);
        }

        // What comes: on partitions first, so that the parent adopts what has the user's name.
        let changes = std::mem::take(&mut out);
        for constraint in constraints.new.iter().filter(|c| !(c.inherited && c.kind == 'c')) {
            self.add_constraint(after, constraint, &table, &mut out)?;
        }
        for index in indexes.new.iter().filter(|i| i.valid && i.tail.is_some()) {
            for leaf in &self.leaves {
                out.push(create_index(index, &leaf.name));
                for (column, target) in index.statistics.iter().flatten() {
                    out.push(index_statistics(&leaf.schema, &index.name, *column, *target));
                }
            }
            if !self.is_reference {
                out.push(create_index(index, &table));
            }
        }
        for object in &statistics.new {
            let one = TableDescription { statistics: vec![(*object).clone()], ..after.clone() };
            out.extend(statistics_ddl(&one, &table, None));
            for leaf in self.leaves.iter().filter(|_| !self.is_reference) {
                out.extend(statistics_ddl(&one, &leaf.name, Some(&leaf.schema)));
            }
        }
        self.alter_storage(before, after, &mut out);

        for policy in &policies.new {
            out.extend(self.names(after).map(|name| create_policy(policy, &name)));
        }
        for (was, is, what) in [
            (before.row_security, after.row_security, ["ENABLE", "DISABLE"]),
            (before.force_row_security, after.force_row_security, ["FORCE", "NO FORCE"]),
        ] {
            if was != is {
                let verb = if is { what[0] } else { what[1] };
                out.extend(self.names(after).map(|name| format!("ALTER TABLE {name} {verb} ROW LEVEL SECURITY")));
            }
        }
        for trigger in &triggers.new {
            out.push(trigger.definition.clone());
        }
        if to_be_guarded && !guarded {
            out.push(stale_guard(after));
        }
        let states = triggers.kept.iter().filter(|(old, new)| old.enabled != new.enabled).map(|(_, new)| *new);
        for trigger in triggers.new.iter().copied().filter(|t| t.enabled != 'O').chain(states) {
            let names: Vec<String> = if trigger.row { self.names(after).collect() } else { vec![table.clone()] };
            out.extend(names.iter().map(|name| format!("ALTER TABLE {name} {}", enable_clause(trigger))));
        }
        self.alter_grants(before, after, &mut out);
        if before.keys_off != after.keys_off {
            out.extend(self.names(after).map(|name| fire_keys_sql(&name, !after.keys_off)));
        }
        Ok(Alteration { changes, additions: out })
    }

    /// The parent and its partitions; or the reference table.
    fn names(&self, after: &TableDescription) -> impl Iterator<Item = String> {
        let parent = (!self.is_reference).then(|| after.qualified_name());
        parent.into_iter().chain(self.leaves.iter().map(|l| l.name.clone()))
    }

    fn rename_table(&self, before: &TableDescription, after: &TableDescription, out: &mut Vec<String>) {
        let mut now = before.clone();
        if before.name != after.name {
            let to = quote_ident(&after.name);
            out.push(format!("ALTER TABLE {} RENAME TO {to}", before.qualified_name()));
            if !self.is_reference {
                out.extend(self.old_leaves.iter().map(|leaf| format!("ALTER TABLE {} RENAME TO {to}", leaf.name)));
            }
            now.name = after.name.clone();
        }
        if before.schema != after.schema {
            out.push(format!("ALTER TABLE {} SET SCHEMA {}", now.qualified_name(), quote_ident(&after.schema)));
        }
        if before.owner != after.owner {
            if !self.is_reference && !self.leaves.is_empty() {
                let ids: Vec<String> =
                    self.leaves.iter().filter_map(|l| l.shard).map(|shard| shard.id.to_string()).collect();
                out.push(format!(
                    "SELECT pgherd.own_shard_schemas('{{{}}}', {})",
                    ids.join(","),
                    quote_literal(&after.owner)
                ));
            }
            out.extend(self.names(after).map(|name| owner_sql(&name, &after.owner)));
        }
    }

    fn alter_columns(
        &self,
        before: &TableDescription,
        after: &TableDescription,
        hints: Hints<'_>,
        follows: bool,
        out: &mut Vec<String>,
    ) {
        let table = after.qualified_name();
        let is_kept = |c: &Column| after.columns.iter().any(|n| n.number == c.number);
        // CASCADE: the coordinator has decided what goes with it.
        let gone = before.columns.iter().filter(|c| !follows && !is_kept(c));
        let drops = gone.map(|column| format!("DROP COLUMN IF EXISTS {} CASCADE", quote_ident(&column.name)));
        let kept: Vec<(&Column, &Column)> = before
            .columns
            .iter()
            .filter_map(|old| after.columns.iter().find(|n| n.number == old.number).map(|new| (old, new)))
            .collect();
        let renamed: Vec<_> = kept.iter().filter(|(old, new)| old.name != new.name && !follows).collect();
        // One statement: expressions of USING see all columns as they were. A name that is given again must be free.
        let mut actions = Vec::new();
        match renamed.is_empty() {
            true => actions.extend(drops),
            false => out.extend(drops.map(|drop| format!("ALTER TABLE {table} {drop}"))),
        }
        for (old, new) in renamed {
            let (old, new) = (quote_ident(&old.name), quote_ident(&new.name));
            out.push(format!("ALTER TABLE {table} RENAME COLUMN {old} TO {new}"));
        }
        let mut own = Vec::new();
        for (old, new) in &kept {
            let altered = match follows {
                false => alter_column(old, new, hints),
                true => {
                    let old = Column {
                        type_name: new.type_name.clone(),
                        collation_oid: new.collation_oid,
                        generated: new.generated.clone(),
                        ..(*old).clone()
                    };
                    alter_column(&old, new, Hints { sets_expression: hints.sets_expression, ..Hints::default() })
                }
            };
            actions.extend(altered.handed_down);
            own.extend(altered.own);
        }
        // A table with partitions of users' has none of ours: what each of those has for itself, its description says.
        if self.is_reference || !self.leaves.is_empty() {
            actions.append(&mut own);
        }
        if !actions.is_empty() {
            out.push(format!("ALTER TABLE {table} {}", actions.join(", ")));
        }
        if !own.is_empty() {
            out.push(format!("ALTER TABLE ONLY {table} {}", own.join(", ")));
        }
        let is_checked = |(old, new): &&(&Column, &Column)| {
            old.not_null && old.not_null_unchecked && new.not_null && !new.not_null_unchecked
        };
        for (_, new) in kept.iter().filter(is_checked) {
            let (table, column) = (quote_literal(&table), quote_literal(&new.name));
            out.push(format!("SELECT pgherd.validate_not_null({table}, {column})"));
        }
        let retyped = !follows && kept.iter().any(|(old, new)| is_retyped(old, new, hints));
        if retyped && !self.is_reference && !self.leaves.is_empty() {
            out.push(format!("SELECT pgherd.align_names({})", quote_literal(&table)));
        }
        for column in after.columns.iter().filter(|c| !before.columns.iter().any(|b| b.number == c.number)) {
            if follows {
                continue;
            }
            let added = column_definition(column);
            let is_filled = filled_from(column).is_some();
            if let (Some(value), Some(default), false) = (&column.missing, &column.default, is_filled) {
                // All rows get one value, everywhere.
                let value = format!("{}::{}", quote_literal(value), column.type_name);
                let first = column_definition(&Column { default: Some(value), ..column.clone() });
                out.push(format!("ALTER TABLE {table} ADD COLUMN {first}"));
                let name = quote_ident(&column.name);
                out.push(format!("ALTER TABLE {table} ALTER COLUMN {name} SET DEFAULT {default}"));
            } else if !(is_filled || self.is_reference && column.default_varies) {
                out.push(format!("ALTER TABLE {table} ADD COLUMN {added}"));
            } else if self.is_reference {
                let (table, column) = (quote_literal(&table), quote_literal(&column.name));
                out.push(format!("SELECT pgherd.require_empty({table}, {column})"));
                out.push(format!("ALTER TABLE {} ADD COLUMN {added}", after.qualified_name()));
            } else {
                let fill = hints.fills.iter().find(|f| f.column == column.number);
                let query = fill.map_or("SELECT NULL WHERE false", |f| &f.query);
                let cast = if is_string(column) { String::new() } else { format!("::{}", column.type_name) };
                out.push(format!("SELECT pgherd.keep_values({})", quote_literal(query)));
                out.push(format!("ALTER TABLE {table} ADD COLUMN {added} DEFAULT pgherd.kept_value(){cast}"));
                out.push(format!("ALTER TABLE {table} ALTER COLUMN {} DROP DEFAULT", quote_ident(&column.name)));
                out.push("CLOSE pgherd_values".to_owned());
            }
        }
        for column in &after.columns {
            let old = before.columns.iter().find(|b| b.number == column.number);
            if old.is_none() && !follows {
                out.extend(unchecked_not_null(column).map(|action| format!("ALTER TABLE {table} {action}")));
            }
            let actions = storage_actions(old, column);
            if !actions.is_empty() {
                out.extend(
                    self.leaves.iter().map(|leaf| format!("ALTER TABLE ONLY {} {}", leaf.name, actions.join(", "))),
                );
            }
        }
    }

    fn alter_constraint(&self, old: &Constraint, new: &Constraint, table: &str, out: &mut Vec<String>) {
        if old.name != new.name {
            out.push(format!(
                "SELECT pgherd.rename_constraint({}, {}, {})",
                quote_literal(table),
                quote_literal(&old.name),
                quote_literal(&new.name)
            ));
        }
        if !old.validated && new.validated {
            let validate = format!("VALIDATE CONSTRAINT {}", quote_ident(&new.name));
            if new.kind == 'c' && !new.no_inherit {
                out.push(format!("ALTER TABLE {table} {validate}"));
            } else {
                out.extend(self.leaves.iter().map(|leaf| format!("ALTER TABLE {} {validate}", leaf.name)));
            }
        }
        if matches!(new.kind, 'p' | 'u' | 'x') {
            let changes = option_changes(old.index_options.as_deref(), new.index_options.as_deref());
            for change in changes {
                out.extend(
                    self.leaves
                        .iter()
                        .map(|leaf| format!("ALTER INDEX {} {change}", qualified(&leaf.schema, &new.name))),
                );
            }
        }
    }

    fn alter_index(&self, old: &Index, new: &Index, after: &TableDescription, out: &mut Vec<String>) {
        let to = quote_ident(&new.name);
        if old.name != new.name {
            if !self.is_reference {
                out.push(format!("ALTER INDEX {} RENAME TO {to}", qualified(&after.schema, &old.name)));
            }
            out.extend(
                self.leaves.iter().map(|l| format!("ALTER INDEX {} RENAME TO {to}", qualified(&l.schema, &old.name))),
            );
        }
        for leaf in &self.leaves {
            for change in option_changes(old.options.as_deref(), new.options.as_deref()) {
                out.push(format!("ALTER INDEX {} {change}", qualified(&leaf.schema, &new.name)));
            }
            if old.statistics != new.statistics {
                for (column, _) in old.statistics.iter().flatten() {
                    if !new.statistics.iter().flatten().any(|(c, _)| c == column) {
                        out.push(index_statistics(&leaf.schema, &new.name, *column, -1));
                    }
                }
                for (column, target) in new.statistics.iter().flatten() {
                    out.push(index_statistics(&leaf.schema, &new.name, *column, *target));
                }
            }
        }
    }

    fn add_constraint(
        &self,
        after: &TableDescription,
        constraint: &Constraint,
        table: &str,
        out: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        match constraint.kind {
            _ if self.is_reference => out.push(add_constraint(table, constraint)),
            'f' => out.extend(foreign_key_ddl(after, constraint, table, &self.leaves, self.shards, self.state)?),
            'c' if !constraint.no_inherit => out.push(add_constraint(table, constraint)),
            kind => {
                out.extend(self.leaves.iter().map(|leaf| add_constraint(&leaf.name, constraint)));
                if matches!(kind, 'p' | 'u') {
                    out.push(add_constraint(table, constraint));
                }
            }
        }
        if let Some(options) = &constraint.index_options {
            out.extend(self.leaves.iter().map(|leaf| {
                format!("ALTER INDEX {} SET ({})", qualified(&leaf.schema, &constraint.name), options_text(options))
            }));
        }
        Ok(())
    }

    fn drop_statistics(&self, object: &Statistics, out: &mut Vec<String>) {
        out.push(format!("DROP STATISTICS IF EXISTS {}", qualified(&object.schema, &object.name)));
        for leaf in self.leaves.iter().filter(|_| !self.is_reference) {
            out.push(format!("DROP STATISTICS IF EXISTS {}", qualified(&leaf.schema, &object.name)));
        }
    }

    /// What belongs to partitions: storage options, persistence, replica identity, the index to cluster on.
    fn alter_storage(&self, before: &TableDescription, after: &TableDescription, out: &mut Vec<String>) {
        let mut actions = option_changes(before.options.as_deref(), after.options.as_deref());
        let toast = |options: &Option<Vec<String>>| -> Vec<String> {
            options.iter().flatten().map(|o| format!("toast.{o}")).collect()
        };
        actions.extend(option_changes(Some(&toast(&before.toast_options)), Some(&toast(&after.toast_options))));
        let identity = |t: &TableDescription| (t.replica_identity, t.replica_identity_index.clone());
        if identity(before) != identity(after) {
            match identity(after) {
                ('n', _) => actions.push("REPLICA IDENTITY NOTHING".to_owned()),
                ('f', _) => actions.push("REPLICA IDENTITY FULL".to_owned()),
                ('i', Some(index)) => actions.push(format!("REPLICA IDENTITY USING INDEX {}", quote_ident(&index))),
                // The index was dropped, here as there.
                ('i', None) => {}
                _ => actions.push("REPLICA IDENTITY DEFAULT".to_owned()),
            }
        }
        let clustered = |t: &TableDescription| {
            let constraints = t.constraints.iter().filter(|c| c.clustered).map(|c| c.name.clone());
            constraints.chain(t.indexes.iter().filter(|i| i.clustered).map(|i| i.name.clone())).next()
        };
        if clustered(before) != clustered(after) {
            actions.push(match clustered(after) {
                Some(index) => format!("CLUSTER ON {}", quote_ident(&index)),
                None => "SET WITHOUT CLUSTER".to_owned(),
            });
        }
        if before.persistence != after.persistence {
            actions.push(if after.persistence == 'u' { "SET UNLOGGED".to_owned() } else { "SET LOGGED".to_owned() });
        }
        if before.access_method != after.access_method
            && let Some(method) = &after.access_method
        {
            actions.push(format!("SET ACCESS METHOD {}", quote_ident(method)));
        }
        for leaf in &self.leaves {
            // One by one: some of them do not go together.
            out.extend(actions.iter().map(|action| format!("ALTER TABLE ONLY {} {action}", leaf.name)));
        }
    }

    /// Privileges are given anew where they differ.
    fn alter_grants(&self, before: &TableDescription, after: &TableDescription, out: &mut Vec<String>) {
        let of_columns = |t: &TableDescription| -> Vec<_> {
            t.columns.iter().filter(|c| c.grants.is_some()).map(|c| (c.number, c.grants.clone())).collect()
        };
        if before.grants == after.grants && of_columns(before) == of_columns(after) {
            return;
        }
        let of_table = before.grants.iter().flatten();
        let of_column = before.columns.iter().filter_map(|c| c.grants.as_ref()).flatten();
        let mut grantees: Vec<Option<&String>> = of_table.chain(of_column).map(|g| g.grantee.as_ref()).collect();
        // After OWNER TO, what was the old owner's is the new one's already.
        grantees.retain(|g| *g != Some(&before.owner) && *g != Some(&after.owner));
        grantees.sort();
        grantees.dedup();
        for name in self.names(after) {
            for grantee in &grantees {
                let role = grantee.map_or("PUBLIC".to_owned(), |g| quote_ident(g));
                out.push(format!("REVOKE ALL ON TABLE {name} FROM {role} CASCADE"));
            }
            if before.grants.is_some() {
                out.push(format!("GRANT ALL ON TABLE {name} TO {}", quote_ident(&after.owner)));
            }
            out.extend(grants_ddl(after, &name));
        }
    }
}

fn constraint_differs(old: &Constraint, new: &Constraint) -> bool {
    if old.kind != new.kind || old.no_inherit != new.no_inherit {
        return true;
    }
    // A foreign key's deferrability can be altered; names of columns follow by themselves.
    let tail = |c: &Constraint| c.tail.as_deref().map(|t| t.trim_end_matches(" NOT VALID").to_owned());
    if tail(old) != tail(new) {
        return true;
    }
    let bare = |c: &Constraint| c.definition.trim_end_matches(" NOT VALID").to_owned();
    old.oid != new.oid && (bare(old) != bare(new) || (old.validated && !new.validated))
}

/// Definitions that name the table differ after it was renamed without having to be made again.
fn definition_differs(before: &TableDescription, after: &TableDescription, old: &str, new: &str) -> bool {
    old.replace(&before.qualified_name(), &after.qualified_name()) != new
}

fn is_retyped(old: &Column, new: &Column, hints: Hints<'_>) -> bool {
    old.type_name != new.type_name
        || old.collation_oid != new.collation_oid
        || hints.using.iter().any(|(column, _)| *column == old.name)
}

/// Subcommands of ALTER TABLE.
struct Altered {
    handed_down: Vec<String>,
    /// What partitions of users' may have otherwise.
    own: Vec<String>,
}

fn alter_column(old: &Column, new: &Column, hints: Hints<'_>) -> Altered {
    let alter = format!("ALTER COLUMN {}", quote_ident(&new.name));
    let default = |c: &Column| c.default.clone().filter(|_| !c.default_on_coordinator);
    let using = hints.using.iter().find(|(column, _)| *column == old.name).map(|(_, expression)| expression);
    let retyped = is_retyped(old, new, hints);
    let (mut out, mut own) = (Vec::new(), Vec::new());
    if old.generated != new.generated && new.generated.is_empty() {
        out.push(format!("{alter} DROP EXPRESSION"));
    }
    // A default that has no cast to the new type would stand in the way.
    let redefault = default(old) != default(new);
    if default(old).is_some() && redefault {
        if retyped { &mut out } else { &mut own }.push(format!("{alter} DROP DEFAULT"));
    }
    if retyped {
        let collation = new.collation.as_ref().map(|c| format!(" COLLATE {c}")).unwrap_or_default();
        let using = using.map(|u| format!(" USING {u}")).unwrap_or_default();
        out.push(format!("{alter} TYPE {}{collation}{using}", new.type_name));
    }
    if redefault && let Some(default) = default(new) {
        own.push(format!("{alter} SET DEFAULT {default}"));
    }
    if hints.sets_expression
        && !new.generated.is_empty()
        && old.generation_expression != new.generation_expression
        && !retyped
        && let Some(expression) = &new.generation_expression
    {
        own.push(format!("{alter} SET EXPRESSION AS ({expression})"));
    }
    match (old.not_null, new.not_null) {
        (true, false) => out.push(format!("{alter} DROP NOT NULL")),
        (false, true) => out.push(unchecked_not_null(new).unwrap_or(format!("{alter} SET NOT NULL"))),
        (true, true) if !old.not_null_unchecked && new.not_null_unchecked => {
            out.push(format!("{alter} DROP NOT NULL"));
            out.extend(unchecked_not_null(new));
        }
        // (Where it becomes checked: by a statement of its own.)
        _ => {}
    }
    Altered { handed_down: out, own }
}

/// Settings of a column that each partition has for itself. `old` None: the column is new.
fn storage_actions(old: Option<&Column>, new: &Column) -> Vec<String> {
    let alter = format!("ALTER COLUMN {}", quote_ident(&new.name));
    let mut out = Vec::new();
    if old.and_then(|o| o.storage.as_ref()) != new.storage.as_ref() {
        // DEFAULT (the type's own) is a word only from PostgreSQL 16 on; EXTENDED is what types that vary have.
        out.push(format!("{alter} SET STORAGE {}", new.storage.as_deref().unwrap_or("EXTENDED")));
    }
    if old.and_then(|o| o.compression.as_ref()) != new.compression.as_ref() {
        out.push(format!("{alter} SET COMPRESSION {}", new.compression.as_deref().unwrap_or("default")));
    }
    if old.and_then(|o| o.statistics) != new.statistics {
        out.push(format!("{alter} SET STATISTICS {}", new.statistics.unwrap_or(-1)));
    }
    let changes = option_changes(old.and_then(|o| o.options.as_deref()), new.options.as_deref());
    out.extend(changes.into_iter().map(|change| format!("{alter} {change}")));
    out
}

/// `SET (…)` and `RESET (…)` from one list of options to another.
fn option_changes(old: Option<&[String]>, new: Option<&[String]>) -> Vec<String> {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    let quoted = |option: &str| match option.strip_prefix("toast.") {
        Some(rest) => format!("toast.{}", options_text(&[rest.to_owned()])),
        None => options_text(&[option.to_owned()]),
    };
    let mut out = Vec::new();
    let set: Vec<String> = new.iter().filter(|o| !old.contains(o)).map(|o| quoted(o)).collect();
    if !set.is_empty() {
        out.push(format!("SET ({})", set.join(", ")));
    }
    let reset: Vec<String> =
        old.iter().map(|o| name(o)).filter(|o| !new.iter().any(|n| name(n) == *o)).map(|o| quoted(&o)).collect();
    if !reset.is_empty() {
        out.push(format!("RESET ({})", reset.join(", ")));
    }
    out
}

pub(crate) fn index_statistics(schema: &str, index: &str, column: i32, target: i32) -> String {
    format!("ALTER INDEX {} ALTER COLUMN {column} SET STATISTICS {target}", qualified(schema, index))
}
