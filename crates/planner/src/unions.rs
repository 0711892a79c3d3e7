//! UNION ALL of arms with different collations, in what the coordinator runs.
//!
//! PostgreSQL makes one relation of such arms, where they are plain, and asks each for the order that is wanted of all.
//! postgres_fdw sends `ORDER BY` with the column's own collation, whatever the one of the order is, and the rows of an
//! arm come in another order than they are merged by. An arm with a condition is left apart, and nothing asks it for
//! an order; other conditions are still sent into it. So each such arm has one: `WHERE true`.

use pgherd_catalog::{Snapshot, Table};
use pgherd_sql::{Edits, Statement, UnionArms};

use crate::SessionView;
use crate::analysis::resolve;
use crate::merge::is_plain;

/// Adds the conditions to `edits`, where collations may differ.
pub(crate) fn keep_apart(statement: &Statement, snapshot: &Snapshot, session: &SessionView<'_>, edits: &mut Edits) {
    let arms = UnionArms::of(statement);
    if arms.is_empty() || session.callback {
        return;
    }
    let is_other = |table: &Table| {
        let mut own = table.columns.iter().filter(|c| !is_plain(c.collation));
        table.has_user_types || own.any(|c| arms.may_read(&c.name))
    };
    let (mut reads, mut differ) = (false, arms.collates);
    for relation in &statement.relations {
        match resolve(snapshot, session, relation) {
            Some(table) => {
                reads |= !table.is_reference();
                differ |= is_other(table);
            }
            None => {
                reads |= snapshot.passing_on.contains(&relation.name);
                differ |= snapshot.collated.contains(&relation.name);
                differ |= session.temp_relations.contains(&relation.name);
            }
        }
    }
    // A function's query may become part of the statement, with columns of any collation.
    for (_, name) in &statement.calls {
        reads |= snapshot.user_functions.contains(name);
        differ |= snapshot.user_functions.contains(name) || snapshot.collated.contains(name);
    }
    for name in arms.names() {
        reads |= snapshot.passing_on.contains(name) || snapshot.user_functions.contains(name);
        differ |= snapshot.user_functions.contains(name) || snapshot.collated.contains(name);
        for table in snapshot.all_tables().filter(|table| table.name == *name) {
            reads |= !table.is_reference();
            differ |= is_other(table);
        }
    }
    differ |= statement.types.iter().any(|(_, name)| snapshot.collated.contains(name));
    if reads && differ {
        arms.filter(edits);
    }
}
