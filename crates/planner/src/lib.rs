//! Statement + catalog → [`Plan`]. Pure.
//!
//! A tier is chosen only when it is proved to give single-server PostgreSQL's answer; when in doubt the next one runs
//! (route, scatter, federate), and what has no answer is refused by name. Each choice carries its reason.

mod analysis;
mod context;
mod ddl;
mod decorrelate;
mod display;
mod early;
mod given;
mod insert;
mod literal;
mod local_draws;
mod merge;
mod merge_rows;
mod merge_source;
mod minmax;
mod modify;
mod moments;
mod naming;
mod one_row;
mod parts;
mod plan;
mod reduce;
mod routine;
mod safety;
mod select;
mod spread;
mod stage;
mod unions;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use context::fix_session;
pub use ddl::*;
pub use early::compute_first;
pub use given::{
    ClientEnd, Given, Gives, LastDrawn, LastOne, address_text, asks_drawn, asks_session, body_with_drawn,
    is_asked_inside, is_next_value, last_part, moves_sequences, name_of_sequence, sequences_moved,
    sequences_of_default,
};
pub use insert::{
    default_at, default_reads_now, default_sql, differs_by_row, evaluation_type, expression_at, time_default,
};
pub use literal::moving_parameter;
pub use modify::{fires, names_old_rows, refuse_unheard};
pub use plan::*;
pub use routine::{COPY_PREFIX, GIVEN_NAMES};
pub use safety::{
    Now, has_moving_words, is_moving_word, is_same_for_arguments, is_same_in_policies, literals_read_settings, uses_now,
};

use pgherd_catalog::{Column, ColumnDefault, Routine, Snapshot, Table};
use pgherd_sql::Statement;
use pgherd_sql::ast::Tree;

use context::Context;

/// What of a session decides how a statement is planned.
#[derive(Debug, Clone, Copy)]
pub struct SessionView<'a> {
    /// The effective search path, `$user` replaced.
    pub search_path: &'a [String],
    /// Names of the session's temporary tables: they hide any other relation of that name.
    pub temp_relations: &'a HashSet<String>,
    /// Rows of distributed tables by oid, as far as somebody has counted: says which way is cheap, never which is
    /// right.
    pub sizes: &'a HashMap<u32, f64>,
    /// Rows that parts of statements give, by their texts, as workers have estimated them; not a number: none could.
    pub estimates: &'a HashMap<String, f64>,
    /// The statement comes from postgres_fdw inside a federated statement: it is never federated again.
    pub callback: bool,
    /// The text is postgres_fdw's, which names with a schema what is not in pg_catalog. (Clauses of users' come back as
    /// they were written.)
    pub built_in_names: bool,
    /// Parts may be run before the statement; not where it is a part of a part of a part itself.
    pub may_stage: bool,
    /// The transaction's time, for statements that several servers run.
    pub multi_statement_txn_now: Option<Now<'a>>,
    /// The number of the session's process, as its client knows it.
    pub pid: Option<i32>,
    /// Where its client is.
    pub client: Option<ClientEnd>,
    /// What the router has drawn for it last of each sequence.
    pub drawn: &'a [LastDrawn],
    /// The same of any sequence, where nobody else has drawn for it since: its name as a literal, and the value.
    pub last_drawn: Option<&'a LastOne>,
    /// What of this and more may come as parameters.
    pub gives: Option<Gives<'a>>,
    /// Functions of users' that the statement calls, as far as they are known.
    pub routines: &'a [Arc<Routine>],
    /// The settings by which servers read literals, as text.
    pub styles: &'a str,
    /// No parameter is of a type that users or extensions have made.
    pub built_in_parameters: bool,
}

/// Whether single-shard writes to a table may be one transaction with those of others: what the table itself adds
/// to them (defaults, constraints) gives the same in any transaction.
pub fn shares_transaction(table: &Table, snapshot: &Snapshot) -> bool {
    let plain = |column: &Column| match &column.default {
        ColumnDefault::Expression { sql, immutable: false } => match pgherd_sql::split(&format!("SELECT {sql}")) {
            Ok(statements) => {
                statements.iter().all(|s| safety::statement_reason(s, &safety::Names::written(snapshot)).is_none())
            }
            Err(_) => false,
        },
        _ => true,
    };
    !table.has_deferred && table.columns.iter().all(plain)
}

/// Plans a data statement. A utility statement gets the coordinator: see [`ddl_scope`] for where else it must run.
pub fn plan(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>) -> Plan {
    pgherd_sql::with_stack(statement.depth, || plan_statement(statement, snapshot, session))
}

fn plan_statement(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>) -> Plan {
    let context = Context::new(statement, snapshot, session);
    // Of so many rows, or for so long, each worker would take as many as all of them should.
    let unfit = |sample: &pgherd_sql::Sample| {
        let table = statement.relations.get(sample.relation).and_then(|r| analysis::resolve(snapshot, session, r));
        !sample.by_share && table.is_some_and(|t| !t.is_reference())
    };
    if !matches!(statement.tree, Tree::Utility) && statement.samples.iter().any(unfit) {
        return context.refuse(
            "cannot take such a sample of a distributed table",
            Some("Workers can take shares of rows, by SYSTEM and BERNOULLI.".to_owned()),
            None,
        );
    }
    let mut plan = plan_in(&context);
    if let Some(timed) = given::plan_with_time(&plan, statement, snapshot, session) {
        plan = timed;
    } else if given::may_help(&plan, statement) {
        plan.could_be_given = true;
        plan = given::plan_with_values(statement, snapshot, session).unwrap_or(plan);
    } else if given::may_draw(&plan, statement) {
        plan.could_be_given = true;
        plan = given::plan_with_draws(statement, snapshot, session).unwrap_or(plan);
    }
    // Those of one transaction have one xmin.
    plan.one_row =
        context.analysis.system_columns.is_empty() && one_row::gives_one_row(&plan, statement, snapshot, session);
    plan
}

/// The columns of the occurrence at `relation` that a statement may read, by their own names; none: it cannot be told.
pub fn columns_read(
    statement: &Statement,
    snapshot: &Snapshot,
    session: &SessionView<'_>,
    relation: pgherd_sql::Span,
) -> Option<Vec<String>> {
    let context = Context::new(statement, snapshot, session);
    let mut found = (0..context.analysis.instances.len())
        .filter(|index| context.analysis.instances[*index].relation.full_span == relation);
    let index = found.next().filter(|_| found.next().is_none() && !context.analysis.has_parts_unknown)?;
    let instance = &context.analysis.instances[index];
    let renamed = instance.relation.alias.as_ref().is_some_and(|a| !a.columns.is_empty());
    if renamed {
        return None;
    }
    Some(context.columns_written(index, instance.table.columns.iter().map(|c| c.name.clone()).collect()))
}

fn plan_in(context: &Context<'_>) -> Plan {
    let statement = context.statement;
    if let Tree::Utility = statement.tree {
        let tier = |sql| Tier::Coordinator { sql, in_block: true, rides: false };
        let mut plan = context.with_coordinator_sql(tier, "a utility statement");
        plan.writes = true;
        return plan;
    }
    if context.tables.is_empty() {
        return context.by_routine().unwrap_or_else(|| context.on_coordinator("no distributed table is named"));
    }
    // On workers ONLY is taken away from every name; the coordinator knows that a partitioned table has no rows itself.
    let bare = context.analysis.instances.iter().any(|i| i.relation.only && i.table.is_partitioned);
    if bare && !matches!(statement.tree, Tree::Insert(_) | Tree::Merge(_)) {
        return context.federate("ONLY of a partitioned table");
    }
    let here = |i: &analysis::Instance<'_>| i.is_target && i.table.changed_here;
    if !context.session.callback && context.analysis.instances.iter().any(here) {
        return context.change_here();
    }
    if !context.session.callback
        && let Some(plan) = context.takes_key_of_local()
    {
        return plan;
    }
    let local_target = statement.has_modifying && !context.analysis.instances.iter().any(|i| i.is_target);
    match &statement.tree {
        _ if !context.has_distributed() && !context.analysis.instances.iter().any(|i| i.is_target) => {
            context.on_coordinator("the coordinator has a copy of every reference table")
        }
        Tree::Query(_) => context.select(),
        _ if local_target => context.federate("a local table is written"),
        Tree::Insert(insert) => context.insert(insert),
        Tree::Update(update) => context.update(update),
        Tree::Delete(delete) => context.delete(delete),
        Tree::Merge(merge) => context.merge_statement(merge),
        Tree::Utility => context.federate("a utility statement"),
    }
}
