//! UPDATE, DELETE and MERGE of distributed and reference tables.

use std::sync::Arc;

use pgherd_catalog::{ColumnDefault, Snapshot, Table};
use pgherd_sql::ast::*;

use crate::analysis::Node;
use crate::context::{Context, quote_ident, quote_literal};
use crate::insert::time_default;
use crate::plan::*;
use crate::spread::Spread;
use crate::{literal, moments, safety};

/// Aggregates that give the same whatever order their rows are in.
const ORDERLESS: &[&str] = &["bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "every", "max", "min"];

/// What PostgreSQL would run for a row that changes is not what it runs for one that goes and one that comes.
pub fn fires(table: &Table) -> bool {
    table.has_triggers || table.fires_here || table.row_security || table.is_referenced
}

fn is_outer_join(node: &Node) -> bool {
    matches!(node, Node::Join { kind, .. } if *kind != JoinKind::Inner)
}

/// RETURNING has something of rows as they were.
pub fn names_old_rows(returning: &[SelectItem]) -> bool {
    let mut old = false;
    for item in returning {
        item.expr.walk_deep(&mut |e| match &e.kind {
            ExprKind::Column(path) | ExprKind::Star(path) => old |= path.first().is_some_and(|q| q == "old"),
            _ => {}
        });
    }
    old
}

/// Why nothing can be deleted from a table whose foreign keys take away, on the workers, what local tables refer to.
pub fn refuse_unheard(table: &Table, snapshot: &Snapshot) -> Option<Refusal> {
    let other = snapshot.deletes_unheard(table.oid)?;
    Some(Refusal {
        sqlstate: "0A000",
        message: format!("cannot delete from table \"{}\"", table.name),
        detail: Some(format!(
            "A foreign key passes it on to distributed table \"{}\", which a local table references.",
            other.name
        )),
        hint: Some("Distribute the table that references it.".to_owned()),
    })
}

fn current_of(filter: Option<&Expr>) -> bool {
    let mut found = false;
    filter.into_iter().for_each(|f| f.walk(&mut |e| found |= matches!(e.kind, ExprKind::CurrentOf(_))));
    found
}

impl Context<'_> {
    pub fn update(&self, update: &Update) -> Plan {
        let Some(table) = self.target() else { return self.federate("a local table is written") };
        if let Some(plan) = self.identity_is_set(&update.set, &table) {
            return plan;
        }
        if let Some(key) = table.key_column() {
            let target = moments::target_of(&self.statement.tree, &self.analysis);
            let pinned = target.and_then(|i| self.analysis.pin_of(i));
            for assignment in update.set.iter().filter(|a| a.column == key.name) {
                let same_value = !assignment.indirection
                    && !assignment.multi
                    && literal::stored_value(&assignment.value, key, self.snapshot).as_ref() == pinned
                    && pinned.is_some();
                let same_column = is_same_column(&assignment.value, &key.name, &self.statement.tree);
                if !same_value && !same_column && !self.leaves_key(update, assignment, &table) {
                    return self.move_rows(update, &table).unwrap_or_else(|reason| {
                        // The coordinator finds the rows, and the router moves them one by one.
                        if !fires(&table) && !self.session.callback && !current_of(update.filter.as_ref()) {
                            return self.federate(reason);
                        }
                        self.refuse(
                            format!(
                                "cannot modify the distribution column \"{}\" of table \"{}\"",
                                key.name, table.name
                            ),
                            Some(format!("The row may belong to another server then, and cannot be moved: {reason}.")),
                            Some("Delete the row and insert it with the new value in one transaction."),
                        )
                    });
                }
            }
        }
        if !table.is_reference() && sets_to_sequence(&update.set, &table) {
            if !self.analysis.modifying.is_empty() {
                return self.refuse(
                    format!("cannot run this {} on the distributed table \"{}\"", "UPDATE", table.name),
                    Some("It cannot be split over the workers: a column's default needs the coordinator.".to_owned()),
                    Some("Give the values instead of DEFAULT."),
                );
            }
            let mut plan = self.federate("a column's default needs the coordinator");
            plan.writes = true;
            return plan;
        }
        self.modify("UPDATE", &table, update.filter.as_ref())
    }

    /// ORMs assign all columns of a row that they save: where rows cannot go to another server, each worker sees to it
    /// that they do not have to (`pgherd.same_key`).
    fn leaves_key(&self, update: &Update, assignment: &Assignment, table: &Table) -> bool {
        let (Some(key), value) = (table.key_column(), &assignment.value) else { return false };
        let is_value = value.span.is_known() && !matches!(value.kind, ExprKind::Default);
        if !fires(table) || self.session.callback || assignment.indirection || assignment.multi || !is_value {
            return false;
        }
        let name = quote_ident(&key.name);
        let key_type = crate::insert::evaluation_type(key, false);
        let row = quote_ident(update.target.reference_name());
        let before = format!("pgherd.same_key({row}.{name}::{key_type}, (");
        let after = format!("\n)::{key_type}, {}, {})", quote_literal(&table.name), quote_literal(&key.name));
        *self.kept_key.borrow_mut() = Some((value.span, [before, after]));
        true
    }

    /// A write to a table whose rules or triggers the coordinator runs. What is refused of any table stays so.
    pub fn change_here(&self) -> Plan {
        let target = self.target();
        let cursor = match &self.statement.tree {
            Tree::Update(update) => current_of(update.filter.as_ref()).then_some("UPDATE"),
            Tree::Delete(delete) => current_of(delete.filter.as_ref()).then_some("DELETE"),
            _ => None,
        };
        if let (Some(word), Some(table)) = (cursor, &target) {
            return self.refuse(
                format!("cannot run this {word} on the distributed table \"{}\"", table.name),
                Some("The coordinator runs its rules and triggers, and does not have the cursor's row.".to_owned()),
                Some("Give the values that name the row."),
            );
        }
        let fires = |i: &&crate::analysis::Instance<'_>| i.is_target && i.table.fires_here;
        if !self.analysis.instances.iter().any(|i| fires(&i)) {
            return self.federate("what rules make of it only the coordinator knows");
        }
        let plan = match (&self.statement.tree, &target) {
            (Tree::Merge(_), Some(table)) if table.fires_here => {
                return self.refuse(
                    format!("cannot run MERGE into the distributed table \"{}\"", table.name),
                    Some("The coordinator fires its triggers, and does not have its rows.".to_owned()),
                    Some("Use UPDATE, DELETE and INSERT."),
                );
            }
            (Tree::Merge(merge), _) => Some(self.merge_statement(merge)),
            (Tree::Update(update), _) => Some(self.update(update)),
            _ => None,
        };
        match plan.filter(|plan| matches!(plan.tier, Tier::Refuse(_))) {
            Some(plan) => plan,
            None => self.federate("the triggers of a table that it writes fire on the coordinator"),
        }
    }

    /// DELETE, MERGE with it, or a data-modifying CTE that may be one.
    fn deletes(&self) -> bool {
        match &self.statement.tree {
            Tree::Delete(_) => true,
            Tree::Merge(merge) => merge.clauses.iter().any(|clause| matches!(clause.action, MergeAction::Delete)),
            _ => self.analysis.modifying.iter().any(|tree| matches!(tree, Tree::Delete(_) | Tree::Merge(_))),
        }
    }

    /// A statement that takes away what rows of local tables refer to: the coordinator has those, and acts on them.
    pub fn takes_key_of_local(&self) -> Option<Plan> {
        let mut targets = self.analysis.instances.iter().filter(|i| i.is_target && self.deletes());
        if let Some(refusal) = targets.find_map(|i| refuse_unheard(i.table, self.snapshot)) {
            let reason = refusal.message.clone();
            return Some(self.plan(Tier::Refuse(refusal), reason));
        }
        let is_referenced = |i: &&crate::analysis::Instance<'_>| i.is_target && !i.table.local_keys.is_empty();
        self.analysis.instances.iter().find(is_referenced)?;
        let federate = || Some(self.federate("a foreign key of a local table leads to what it changes"));
        let target = self.target();
        let Some(table) = target.filter(|_| self.analysis.modifying.is_empty()) else { return federate() };
        let sets = |set: &[Assignment]| set.iter().any(|a| table.local_keys.contains(&a.column));
        let refuse = |what: &str| {
            Some(self.refuse(
                format!("cannot run this {what} on the distributed table \"{}\"", table.name),
                Some(
                    "A local table references what it changes, and the coordinator does not have the rows.".to_owned(),
                ),
                Some("Distribute the table that references it, or use UPDATE, DELETE and INSERT."),
            ))
        };
        match &self.statement.tree {
            Tree::Delete(_) => federate(),
            // The distribution column is another question.
            Tree::Update(update) if sets(&update.set) => {
                let plan = self.update(update);
                if matches!(plan.tier, Tier::Refuse(_)) { Some(plan) } else { federate() }
            }
            Tree::Insert(insert) if insert.on_conflict.as_ref().is_some_and(|c| sets(&c.set)) => {
                refuse("INSERT … ON CONFLICT")
            }
            Tree::Merge(merge) => {
                let takes = |clause: &MergeClause| match &clause.action {
                    MergeAction::Delete => true,
                    MergeAction::Update(set) => sets(set),
                    _ => false,
                };
                merge.clauses.iter().any(takes).then(|| refuse("MERGE")).flatten()
            }
            _ => None,
        }
    }

    /// GENERATED ALWAYS AS IDENTITY takes DEFAULT only. Workers have no identity columns and would not know.
    pub fn identity_is_set(&self, set: &[Assignment], table: &Table) -> Option<Plan> {
        let column = set.iter().filter(|a| !has_default(&a.value)).find_map(|a| {
            table
                .columns
                .iter()
                .find(|c| c.name == a.column && matches!(c.default, ColumnDefault::Identity { always: true, .. }))
        })?;
        let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
        let refusal = Refusal {
            sqlstate: "428C9",
            message: message.clone(),
            detail: Some(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name)),
            hint: None,
        };
        Some(self.plan(Tier::Refuse(refusal), message))
    }

    /// The same of what a MERGE inserts.
    fn identity_is_given(&self, columns: &[String], values: &[Expr], table: &Table) -> Option<Plan> {
        let star = values.iter().position(|e| matches!(e.kind, ExprKind::Star(_)));
        let column = table.columns.iter().enumerate().find_map(|(number, column)| {
            let ColumnDefault::Identity { always: true, .. } = column.default else { return None };
            let at = match columns.is_empty() {
                true => number,
                false => columns.iter().position(|name| *name == column.name)?,
            };
            let value = match star {
                Some(star) if at >= star => {
                    // What stands behind the star is counted from the end.
                    let left = columns.len().checked_sub(at).and_then(|left| values.len().checked_sub(left));
                    left.filter(|at| *at > star).and_then(|at| values.get(at))
                }
                _ => Some(values.get(at)?),
            };
            value.is_none_or(|e| !matches!(e.kind, ExprKind::Default)).then_some(column)
        })?;
        Some(self.generated_always(
            column,
            format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name),
            Some("Use OVERRIDING SYSTEM VALUE to override."),
        ))
    }

    /// Why what a data-modifying CTE writes needs the coordinator, though it is pinned to one shard: defaults of
    /// sequences and the transaction's time; the coordinator also says what is wrong with identity columns.
    pub fn ctes_need_coordinator(&self) -> Option<String> {
        let needs = |tree: &&Tree| -> Option<&'static str> {
            let set = match tree {
                Tree::Insert(insert) => insert.on_conflict.as_ref().map_or(&[][..], |c| &c.set),
                Tree::Update(update) => update.set.as_slice(),
                Tree::Merge(_) => &[],
                _ => return None,
            };
            let target = moments::target_of(tree, &self.analysis)?;
            let table: &Arc<Table> = self.analysis.instances[target].table;
            let needs = match tree {
                Tree::Insert(insert) => !self.cte_has_defaults(insert, table),
                Tree::Merge(merge) => !table.is_reference() && !self.stays_in_shard(merge, table, target),
                _ => false,
            };
            if needs || sets_to_sequence(set, table) || self.identity_is_set(set, table).is_some() {
                return Some("a column's default needs the coordinator");
            }
            let key = table.key_column()?;
            let value = self.analysis.pin_of(target);
            let keeps = |a: &Assignment| {
                let is_value = || value.is_some_and(|v| self.is_value(&a.value, key, None, v));
                !a.indirection && !a.multi && (is_value() || is_same_column(&a.value, &key.name, tree))
            };
            let changes = set.iter().any(|a| a.column == key.name && !keeps(a));
            changes.then_some("the distribution column is modified")
        };
        self.analysis.modifying.iter().find_map(needs).map(str::to_owned)
    }

    /// A MERGE on one shard leaves nothing to the coordinator, and what it inserts belongs there.
    fn stays_in_shard(&self, merge: &pgherd_sql::ast::Merge, table: &Arc<Table>, target: usize) -> bool {
        let (Some(key), Some(value)) = (table.key_column(), self.analysis.pin_of(target)) else { return false };
        let time = inserts_time(merge, table) && self.session.multi_statement_txn_now.is_some();
        let level = self.merge_level(target);
        match self.inserted_keys(merge, table, &|_| false) {
            Ok(inserted) => !time && inserted.iter().all(|e| self.is_value(e, key, level, value)),
            Err(_) => false,
        }
    }

    /// An expression is the key's value as it is stored. `level`: where its columns are.
    fn is_value(&self, e: &Expr, key: &pgherd_catalog::Column, level: Option<usize>, value: &KeyValue) -> bool {
        if literal::stored_value(e, key, self.snapshot).as_ref() == Some(value) {
            return true;
        }
        let Some(level) = level.map(|level| &self.analysis.levels[level]) else { return false };
        match self.analysis.resolve_expr(e, level.scope) {
            crate::analysis::Found::Column(id, true) => match self.analysis.constant(id) {
                // NULL in its place is no key of that value.
                Some(_) if self.analysis.any_node(&level.from, &is_outer_join) => false,
                Some(constant) => literal::key_value(constant, key, self.snapshot).as_ref() == Some(value),
                None => {
                    self.analysis.facts(level.env).pinned(id) == Some(value)
                        && self
                            .analysis
                            .column(id)
                            .is_some_and(|c| c.type_oid == key.type_oid && c.typmod == key.typmod)
                }
            },
            _ => false,
        }
    }

    /// UPDATE of the distribution column: rows are deleted, and inserted with their new values.
    fn move_rows(&self, update: &Update, table: &Arc<Table>) -> std::result::Result<Plan, String> {
        if fires(table) {
            return Err("the table has triggers, policies, or foreign keys to it".to_owned());
        }
        if self.session.callback || !self.analysis.modifying.is_empty() {
            return Err("it is part of another statement".to_owned());
        }
        if let Some(reason) = &self.unsafe_reason {
            return Err(reason.clone());
        }
        let clauses = update.clauses.ok_or("its clauses are not found in the text")?;
        if !update.returning.is_empty() && (!update.from.is_empty() || update.with.is_some()) {
            return Err("RETURNING may name other tables".to_owned());
        }
        // Where the row comes to, none was before.
        let mut old = clauses.returning.is_some_and(|span| {
            let words = span.of(self.text()).to_ascii_lowercase();
            words.trim_start().trim_start_matches("returning").trim_start().starts_with("with")
        });
        for item in &update.returning {
            // A worker has them while the rows are on their way.
            if let Some(reason) = safety::field_reason(&item.expr, &self.names()) {
                return Err(format!("RETURNING: {reason}"));
            }
        }
        old |= names_old_rows(&update.returning);
        if old {
            return Err("RETURNING has rows as they were".to_owned());
        }
        let mut plain = !current_of(update.filter.as_ref());
        for assignment in &update.set {
            plain &= !assignment.indirection && !assignment.multi && assignment.value.span.is_known();
            // Rows that are deleted already would be missing there.
            assignment.value.walk(&mut |e| {
                plain &= !matches!(e.kind, ExprKind::Sublink(_) | ExprKind::Default | ExprKind::Unknown(_));
            });
        }
        if !plain {
            return Err("it assigns a subquery, a default or a part of a column".to_owned());
        }
        let columns: Vec<&pgherd_catalog::Column> =
            table.columns.iter().filter(|c| c.default != ColumnDefault::Generated).collect();
        let mut edits = self.coordinator_edits();
        let text = self.text();
        let name = quote_ident(update.target.reference_name());
        let values = columns.iter().map(|column| match update.set.iter().find(|a| a.column == column.name) {
            Some(assignment) => edits.apply_to(text, assignment.value.span).map(|s| s.as_written()),
            None => Ok(format!("{name}.{}", quote_ident(&column.name))),
        });
        let returned = values.collect::<std::result::Result<Vec<_>, _>>()?.join(", ");
        edits.replace(clauses.word, "DELETE FROM").cover(clauses.set, "");
        if let Some(from) = clauses.from {
            edits.replace(from, "USING");
        }
        if let Some(returning) = clauses.returning {
            edits.cover(returning, "");
        }
        let moves = InsertSelect {
            table: table.clone(),
            columns: columns.iter().map(|c| c.name.clone()).collect(),
            width_known: true,
            select: format!("{} RETURNING {returned}", edits.apply(text)?.as_written()),
            moves: true,
            defaults: Vec::new(),
            identity_is_own: false,
            tail: clauses.returning.map(|span| self.worker_edits().apply_to(text, span)).transpose()?,
            alias: update.target.alias.as_ref().map(|a| a.name.clone()),
            returning: !update.returning.is_empty(),
            by_shard: self.returns_versions() && !self.parent_only(),
        };
        let mut plan = self.plan(Tier::InsertSelect(moves), "rows get another distribution column, and may move");
        plan.writes = true;
        Ok(plan)
    }

    pub fn delete(&self, delete: &Delete) -> Plan {
        let Some(table) = self.target() else { return self.federate("a local table is written") };
        self.modify("DELETE", &table, delete.filter.as_ref())
    }

    pub fn target(&self) -> Option<Arc<Table>> {
        self.analysis
            .instances
            .iter()
            .find(|i| i.is_target && std::ptr::eq(i.relation, self.target_relation().unwrap_or(i.relation)))
            .map(|i| i.table.clone())
    }

    fn target_relation(&self) -> Option<&Relation> {
        match &self.statement.tree {
            Tree::Insert(i) => Some(&i.target),
            Tree::Update(u) => Some(&u.target),
            Tree::Delete(d) => Some(&d.target),
            Tree::Merge(m) => Some(&m.target),
            _ => None,
        }
    }

    fn modify(&self, word: &str, table: &Arc<Table>, filter: Option<&Expr>) -> Plan {
        if table.is_reference() {
            return self.replicate();
        }
        let refuse = |reason: String| {
            self.refuse(
                format!("cannot run this {word} on the distributed table \"{}\"", table.name),
                Some(format!("It cannot be split over the workers: {reason}.")),
                Some("Give the value of the distribution column, or run it in steps."),
            )
        };
        if self.analysis.instances.iter().any(|i| i.is_target && i.table.is_reference()) {
            return self.federate("a reference table is modified in a common table expression");
        }
        // The coordinator finds the rows and changes them one by one through the callback.
        let federate = |reason: String| match current_of(filter) {
            true => refuse(reason),
            false => self.federate(reason),
        };
        if self.analysis.has_local {
            return federate("it names a relation that is not distributed".to_owned());
        }
        if let Some(reason) = self.unsafe_reason.clone().or_else(|| self.ctes_need_coordinator()) {
            return federate(reason);
        }
        if !self.names_are_known() {
            return federate("a table's name is not found in the text".to_owned());
        }
        let no_route = match self.route_key() {
            Ok((table, key)) => return self.route(table, key),
            Err(reason) => reason,
        };
        if !self.analysis.modifying.is_empty() {
            return federate(format!("a common table expression modifies a table, and {no_route}"));
        }
        match self.scatter_modify(table, filter) {
            Ok(plan) => plan,
            Err(reason) => federate(format!("{no_route}, and {reason}")),
        }
    }

    fn scatter_modify(&self, table: &Arc<Table>, filter: Option<&Expr>) -> std::result::Result<Plan, String> {
        self.scatterable_tables()?;
        if let Some(reason) = self.time_reason(table) {
            return Err(reason);
        }
        let target = self.analysis.instances.iter().position(|i| i.is_target).ok_or("no target")?;
        let key = self.analysis.key_of(target).ok_or("no distribution column")?;
        let level = self
            .analysis
            .levels
            .iter()
            .position(|l| l.from.iter().any(|n| matches!(n, crate::analysis::Node::Instance(i) if *i == target)))
            .ok_or("no target")?;
        let Spread::Partitioned(anchors) = self.spread_of_from(level)? else {
            return Err("no distributed table is in FROM".to_owned());
        };
        if !anchors.contains(&key) {
            return Err("the modified table may have no matching rows".to_owned());
        }
        let keys = self.keys_of(&anchors, level, filter);
        let sql = self.worker_edits().apply(self.text())?;
        let scatter = Scatter { table: table.clone(), keys, sql, combine: Combine::Concatenate };
        Ok(self.plan(Tier::Scatter(scatter), "each worker changes its own rows"))
    }

    /// Other tables than those that it changes, or these once more.
    pub fn reads_tables(&self) -> bool {
        self.analysis.instances.iter().any(|instance| !instance.is_target)
    }

    /// A write to a reference table, which must do the same on every node.
    pub fn replicate(&self) -> Plan {
        match self.replicable() {
            Ok(()) => {
                let tier = |sql| Tier::ReplicateWrite { sql, reads: self.reads_tables() };
                self.with_worker_sql(tier, "the same change is made on every node")
            }
            Err(reason) => self.federate(reason),
        }
    }

    /// Every node would do the same.
    pub fn replicable(&self) -> std::result::Result<(), String> {
        if self.has_distributed() {
            return Err("it names a distributed table".to_owned());
        }
        if self.analysis.instances.iter().any(|i| i.is_target && i.table.has_triggers) {
            return Err("the table has triggers".to_owned());
        }
        if self.analysis.has_local {
            return Err("it names a relation that is not on every node".to_owned());
        }
        if let Some(reason) = &self.unsafe_reason {
            return Err(reason.clone());
        }
        if !self.names_are_known() {
            return Err("a table's name is not found in the text".to_owned());
        }
        if self.uses_now && self.session.multi_statement_txn_now.is_none() {
            return Err("it reads the current time".to_owned());
        }
        if let Some(reason) = self.moving_reason() {
            return Err(reason);
        }
        for (_, name) in &self.statement.calls {
            let fixed = safety::NOW_CALLS.contains(&name.as_str());
            if !fixed && !self.snapshot.immutable_functions.contains(name) && !self.snapshot.aggregates.contains(name) {
                return Err(format!("the function {name} may give other values elsewhere"));
            }
        }
        if let Some(reason) = self.order_reason() {
            return Err(reason.to_owned());
        }
        let mut default = false;
        let set = match &self.statement.tree {
            Tree::Update(update) => update.set.as_slice(),
            Tree::Insert(insert) => insert.on_conflict.as_ref().map_or(&[][..], |c| &c.set),
            _ => &[],
        };
        set.iter().for_each(|a| a.value.walk(&mut |e| default |= matches!(e.kind, ExprKind::Default)));
        if default || matches!(self.statement.tree, Tree::Merge(_)) {
            return Err("a column may get its default".to_owned());
        }
        let mut limited = false;
        for level in &self.analysis.levels {
            limited |= level.query.is_some_and(|q| q.limit.is_some() || q.offset.is_some());
        }
        if limited {
            return Err("LIMIT may choose other rows elsewhere".to_owned());
        }
        Ok(())
    }

    /// What rows it writes may depend on the order in which a node has those that it reads.
    fn order_reason(&self) -> Option<&'static str> {
        match &self.statement.tree {
            Tree::Update(update) if !update.from.is_empty() => {
                return Some("several rows may meet one that is updated");
            }
            Tree::Insert(insert) if insert.on_conflict.is_some() && matches!(insert.source, InsertSource::Query(_)) => {
                return Some("which of the rows conflict depends on their order");
            }
            _ => {}
        }
        for query in self.analysis.levels.iter().filter_map(|level| level.query) {
            let Body::Select(select) = &query.body else { continue };
            if matches!(select.distinct, Distinct::On(_)) || !select.windows.is_empty() {
                return Some("DISTINCT ON or a window depends on the order of rows");
            }
        }
        let mut ordered = false;
        self.statement.tree.walk_all(&mut |_, e| {
            ordered |= matches!(&e.kind, ExprKind::Sublink(link) if link.kind == SublinkKind::Array);
            if let ExprKind::Call(call) = &e.kind {
                ordered |=
                    call.over.is_some() || self.analysis.is_aggregate(call) && !ORDERLESS.contains(&call.name.as_str());
            }
        });
        ordered.then_some("an aggregate or a window depends on the order of rows")
    }

    pub fn merge_statement(&self, merge: &pgherd_sql::ast::Merge) -> Plan {
        let Some(table) = self.target() else {
            return self.refuse(
                "cannot run MERGE into a local table from distributed tables",
                None,
                Some("Use INSERT … ON CONFLICT, or UPDATE and INSERT."),
            );
        };
        if table.is_reference() {
            return self.replicate();
        }
        for clause in &merge.clauses {
            let plan = match &clause.action {
                MergeAction::Update(set) => self.identity_is_set(set, &table),
                MergeAction::Insert { columns, values, overriding: Overriding::No, .. } => {
                    self.identity_is_given(columns, values, &table)
                }
                _ => None,
            };
            if let Some(plan) = plan {
                return plan;
            }
        }
        let reason = match self.merge_on_workers(merge, &table) {
            Ok(plan) => return plan,
            Err(reason) => reason,
        };
        match self.stage_merge(merge, &table, &reason) {
            Ok(plan) => plan,
            Err(other) => self.refuse(
                format!("cannot run MERGE into the distributed table \"{}\"", table.name),
                Some(match other == reason {
                    true => format!("It cannot be split over the workers: {reason}."),
                    false => format!(
                        "It cannot be split over the workers: {reason}; nor with its source sent to them: {other}."
                    ),
                }),
                Some("Join on the distribution column, and insert what it is joined with."),
            ),
        }
    }

    pub fn merge_on_workers(
        &self,
        merge: &pgherd_sql::ast::Merge,
        table: &Arc<Table>,
    ) -> std::result::Result<Plan, String> {
        if has_sublink_in_join(&merge.source) {
            return Err("a subquery in the condition of a join".to_owned());
        }
        if self.analysis.has_local {
            return Err("it names a relation that is not distributed".to_owned());
        }
        if let Some(reason) = &self.unsafe_reason {
            return Err(reason.clone());
        }
        if !self.names_are_known() || !self.analysis.modifying.is_empty() {
            return Err("common table expressions".to_owned());
        }
        let key = table.key_column().ok_or("no distribution column")?;
        let target = self.analysis.instances.iter().position(|i| i.is_target).ok_or("no target")?;
        let target_key = self.analysis.key_of(target).ok_or("no distribution column")?;
        let target_env = self.analysis.instances[target].env;
        let level = self.merge_level(target).ok_or("no target")?;
        let scope = self.analysis.levels[level].scope;
        let inserted = self.inserted_keys(merge, table, &|_| false)?;
        let by_source = merge.clauses.iter().any(|c| c.matched == MergeMatch::NotMatchedBySource);
        // One shard: what is read and what is written is pinned to one value.
        let target_table = table;
        if let (Ok((table, value)), false) = (self.route_key(), by_source) {
            let same = |e: &&Expr| self.is_value(e, key, Some(level), &value);
            let uses_now = inserts_time(merge, target_table);
            if inserted.iter().all(same) && !(uses_now && self.session.multi_statement_txn_now.is_some()) {
                let mut plan = self.route(table, value);
                plan.uses_now |= uses_now;
                return Ok(plan);
            }
        }
        if inserts_time(merge, table) {
            return Err("a column's default is the current time, which must be the same on every server".to_owned());
        }
        self.scatterable_tables()?;
        if let Some(reason) = self.time_reason(table) {
            return Err(reason);
        }
        match self.spread_of_source(level)? {
            Spread::Replicated if inserted.is_empty() => {}
            Spread::Replicated => return Err("every worker would insert the same rows".to_owned()),
            Spread::Partitioned(anchors) => {
                let facts = self.analysis.facts(target_env);
                if !anchors.iter().any(|a| facts.same(*a, target_key)) {
                    return Err("it does not join on the distribution columns".to_owned());
                }
                let own = self.analysis.facts(self.analysis.levels[level].env);
                let from_source = |e: &&Expr| match self.analysis.resolve_expr(e, scope) {
                    crate::analysis::Found::Column(id, true) => {
                        anchors.iter().any(|a| own.same(id, *a))
                            && self.analysis.column(id).is_some_and(|c| {
                                c.type_oid == key.type_oid && c.typmod == key.typmod && c.collation == key.collation
                            })
                    }
                    _ => false,
                };
                if !inserted.iter().all(from_source) {
                    return Err("an inserted row's key is not the source's distribution column".to_owned());
                }
            }
        }
        let sql = self.worker_edits().apply(self.text())?;
        let scatter = Scatter { table: table.clone(), keys: None, sql, combine: Combine::Concatenate };
        Ok(self.plan(Tier::Scatter(scatter), "each worker merges its own rows"))
    }

    /// The level whose FROM is a MERGE's target and source.
    pub fn merge_level(&self, target: usize) -> Option<usize> {
        let is_target = |n: &crate::analysis::Node| matches!(n, crate::analysis::Node::Instance(i) if *i == target);
        self.analysis.levels.iter().position(|l| l.from.first().is_some_and(is_target))
    }

    /// What a MERGE inserts as the distribution column. `keeps`: an assigned value is the one that the row has.
    pub fn inserted_keys<'m>(
        &self,
        merge: &'m pgherd_sql::ast::Merge,
        table: &Table,
        keeps: &dyn Fn(&Expr) -> bool,
    ) -> std::result::Result<Vec<&'m Expr>, String> {
        let key = table.key_column().ok_or("no distribution column")?;
        let mut inserted = Vec::new();
        let identity = |c: &pgherd_catalog::Column| matches!(c.default, ColumnDefault::Identity { .. });
        let overrides = |clause: &MergeClause| match &clause.action {
            MergeAction::Insert { overriding, .. } => *overriding != Overriding::No,
            _ => false,
        };
        if table.columns.iter().any(identity) && merge.clauses.iter().any(overrides) {
            return Err("OVERRIDING".to_owned());
        }
        for clause in &merge.clauses {
            match &clause.action {
                MergeAction::Update(set) => {
                    let changes =
                        |a: &&Assignment| a.column == key.name && (a.indirection || a.multi || !keeps(&a.value));
                    if set.iter().any(|a| changes(&a)) {
                        return Err("it modifies the distribution column".to_owned());
                    }
                    if sets_to_sequence(set, table) {
                        return Err("a column's default needs the coordinator".to_owned());
                    }
                }
                MergeAction::Insert { columns, values, .. } => {
                    let position = |name: &str| {
                        if columns.is_empty() {
                            table.columns.iter().position(|c| c.name == name)
                        } else {
                            columns.iter().position(|c| c == name)
                        }
                    };
                    // What stands behind `s.*` is at another place.
                    let star = values.iter().position(|e| matches!(e.kind, ExprKind::Star(_))).unwrap_or(values.len());
                    let at = |name: &str| position(name).filter(|at| *at < star || star == values.len());
                    let needs_coordinator = table.columns.iter().any(|c| {
                        use pgherd_catalog::ColumnDefault as D;
                        let is_key = c.name == key.name;
                        let evaluated = matches!(c.default, D::Sequence { .. } | D::Identity { .. })
                            || (is_key && matches!(c.default, D::Expression { .. }));
                        let given = at(&c.name).and_then(|at| values.get(at));
                        evaluated && given.is_none_or(|e| matches!(e.kind, ExprKind::Default))
                    });
                    if needs_coordinator {
                        return Err("a column's default needs the coordinator".to_owned());
                    }
                    inserted.push(at(&key.name).and_then(|at| values.get(at)).ok_or("an inserted row has no key")?);
                }
                MergeAction::Nothing | MergeAction::Delete => {}
            }
        }
        Ok(inserted)
    }
}

/// A column that is assigned to itself.
pub(crate) fn is_same_column(value: &Expr, column: &str, tree: &Tree) -> bool {
    let (target, alone) = match tree {
        Tree::Update(update) => (update.target.reference_name(), update.from.is_empty()),
        Tree::Insert(insert) => (insert.target.reference_name(), false),
        _ => return false,
    };
    match &value.kind {
        ExprKind::Column(path) => match path.as_slice() {
            [name] => alone && name == column,
            // The conflicting row has the same key: every unique constraint contains it.
            [qualifier, name] => {
                name == column && (qualifier == target || qualifier == "excluded" && matches!(tree, Tree::Insert(_)))
            }
            _ => false,
        },
        _ => false,
    }
}

/// An inserted row gets the transaction's time by a default.
pub(crate) fn inserts_time(merge: &pgherd_sql::ast::Merge, table: &Table) -> bool {
    merge.clauses.iter().any(|clause| {
        let MergeAction::Insert { columns, values, .. } = &clause.action else { return false };
        let star = values.iter().any(|e| matches!(e.kind, ExprKind::Star(_)));
        table.columns.iter().enumerate().filter(|(_, c)| time_default(c).is_some()).any(|(number, c)| {
            let at = if columns.is_empty() { Some(number) } else { columns.iter().position(|name| *name == c.name) };
            let given = at.and_then(|at| values.get(at));
            star || given.is_none_or(|e| matches!(e.kind, ExprKind::Default))
        })
    })
}

/// The source is a join, and its conditions read other tables.
fn has_sublink_in_join(item: &FromItem) -> bool {
    let FromItem::Join(join) = item else { return false };
    let mut found = false;
    join.on.iter().for_each(|on| on.walk(&mut |e| found |= matches!(e.kind, ExprKind::Sublink(_))));
    found || has_sublink_in_join(&join.left) || has_sublink_in_join(&join.right)
}

fn has_default(value: &Expr) -> bool {
    let mut found = false;
    value.walk(&mut |e| found |= matches!(e.kind, ExprKind::Default));
    found
}

/// DEFAULT is assigned to a column that takes its values from a sequence, which only the coordinator has.
pub(crate) fn sets_to_sequence(set: &[Assignment], table: &Table) -> bool {
    set.iter().any(|a| {
        let from_sequence = |c: &pgherd_catalog::Column| {
            matches!(c.default, ColumnDefault::Sequence { .. } | ColumnDefault::Identity { .. })
        };
        has_default(&a.value) && table.columns.iter().any(|c| c.name == a.column && from_sequence(c))
    })
}
