//! What the planner decides: plain data that can be printed and compared. The router carries it out and adds nothing
//! to the decision except values known at Bind time.

use std::sync::Arc;

use pgherd_catalog::{GroupId, Oid, Table};
use pgherd_sql::Splice;
use pgherd_sql::ast::Span;

use crate::given::Given;

/// A settled statement.
#[derive(Debug, Clone)]
pub struct Plan {
    pub tier: Tier,
    /// Why this tier and not a cheaper one; printed by EXPLAIN. Lower case, no full stop.
    pub reason: String,
    /// The statement may change rows or schema (so its participants must take part in two-phase commit).
    pub writes: bool,
    /// Every distributed or reference table the statement names: for fencing and for EXPLAIN.
    pub tables: Vec<Arc<Table>>,
    /// The statement reads the transaction's time: `SessionView::multi_statement_txn_now` is written into the plan, or
    /// a better plan would need it. Such a plan serves one transaction only: do not keep it.
    pub uses_now: bool,
    /// A column's default may give the time of the server that the rows go to: right where that transaction is all of
    /// it. In a block such a statement is planned with the block's time.
    pub default_time: bool,
    /// Sizes of tables would have helped to choose, and are not known.
    pub wants_sizes: bool,
    /// Statements whose number of rows, as a worker estimates it, would have helped to choose.
    pub questions: Vec<String>,
    /// Federated: what stands behind every FOR UPDATE of the statement. postgres_fdw does not pass it on.
    pub lock_wait: Option<&'static str>,
    /// Reference tables whose rows it locks in order to change them, and waits for.
    pub locked_copies: Vec<Arc<Table>>,
    /// Values that the router has to give, as parameters behind the client's own ([`SessionView::gives`]).
    pub given: Vec<Given>,
    /// The statement shows a table's own name, or a partition would not behave like its table.
    pub parent_only: bool,
    /// The coordinator alone runs it, and it leaves nothing there but what `currval` tells.
    pub leaves_draws_only: bool,
    /// It gives one row at most.
    pub one_row: bool,
    /// What its server needs for it: a copy of the function that it calls.
    pub copy: Option<Arc<RoutineCopy>>,
    /// With such values there may be a better plan.
    pub could_be_given: bool,
}

impl Plan {
    /// It reads the transaction's time, by itself or by a column's default.
    pub fn reads_time(&self) -> bool {
        self.uses_now || self.default_time
    }
}

#[derive(Debug, Clone)]
pub enum Tier {
    /// The coordinator alone answers it: no distributed table is named. (Reference tables may be read: the
    /// coordinator has a copy.) `in_block`: run inside a transaction block, since it may call back and write.
    /// `rides`: nothing runs but what it shows, and nothing depends on the session or is left there.
    Coordinator { sql: Splice, in_block: bool, rides: bool },
    /// The coordinator answers it, its distributed tables call back into the router. `sql` has ONLY removed before
    /// distributed tables and own-function names qualified. `copies`: reference tables that it writes. The
    /// coordinator's own copies are written by it, and the others get the rows as they are then.
    Federate { sql: Splice, copies: Vec<Arc<Table>> },
    /// One shard group answers it: forward to the worker that owns the key.
    Route(Route),
    /// Each involved worker answers for its rows, and the answers are combined.
    Scatter(Scatter),
    /// Parts are run first, and their rows come with the rest of the statement.
    Stage(Stage),
    /// INSERT … VALUES into a distributed table: each row goes to its shard.
    InsertRows(InsertRows),
    /// INSERT … SELECT into a distributed table that the workers cannot run by themselves: rows pass the router.
    InsertSelect(InsertSelect),
    /// A write to a reference table: the same statement on the coordinator and on every worker. All its
    /// expressions give the same value everywhere (checked by the planner).
    ReplicateWrite { sql: Splice, reads: bool },
    /// INSERT into a reference table whose values must be computed once: run `sql` with RETURNING * on the
    /// coordinator, then put the resulting rows on each worker.
    ReplicateRows { table: Arc<Table>, sql: Splice, returning: bool },
    /// Refused by name: no server is asked.
    Refuse(Refusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub sqlstate: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
}

/// A value of the distribution column that is known before any server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyValue {
    /// The literal's text as the type's input function would read it.
    Literal(String),
    Null,
    /// `$n`, n from 1. `type_oid`: the parameter's type where the planner can tell it from a cast, 0 where it is the
    /// column's own type.
    Param(u16),
    /// Each element of the array `$n`.
    Each(u16),
}

#[derive(Debug, Clone)]
pub struct Route {
    /// The table whose distribution column is pinned; the other distributed tables are colocated with it.
    pub table: Arc<Table>,
    pub key: KeyValue,
    pub sql: Splice,
    /// Name the parent, not the partition: the statement shows the table's own name or schema, or a partition named
    /// directly would not behave like the table.
    pub parent_only: bool,
}

/// A function that is about one key, as the server of a shard has it, in the shard's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutineCopy {
    /// Made of all that it is made of: another meaning has another name.
    pub name: String,
    /// From the arguments up to the body.
    pub head: String,
    pub body: Splice,
    /// It may run on a lane, whose limits of time are others.
    pub rides: bool,
    /// The name of the user's function, and with its arguments' types.
    pub of: String,
    pub signature: String,
}

/// Keys that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    pub values: Vec<KeyValue>,
    pub listed: Option<Listed>,
}

/// A list that stands behind a column (`IN (…)`, `= ANY (…)`) and is all that its keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// From behind the column to its end.
    pub span: Span,
    /// What stands there.
    pub written: String,
    /// The column's type.
    pub type_oid: Oid,
    /// All of it is cast to an array of that type.
    pub is_cast: bool,
}

/// One statement per worker.
#[derive(Debug, Clone)]
pub struct Scatter {
    /// A table whose placements say which workers take part (all distributed tables of the statement are colocated).
    pub table: Arc<Table>,
    /// Only the workers that own these keys are asked (`key IN (…)`); none: all.
    pub keys: Option<Keys>,
    /// What each worker runs.
    pub sql: Splice,
    pub combine: Combine,
}

/// A SELECT in parts. In the rest's texts (a merge's too) `{{stage 1}}` and so on stand for a SELECT in brackets that
/// gives the rows of that part under their names.
#[derive(Debug, Clone)]
pub struct Stage {
    pub parts: Vec<StagePart>,
    pub rest: Rest,
    /// Columns of parts may have other collations than their types: the coordinator is asked, and the rest gets them.
    pub collated: bool,
    /// What is run where the rows of a part cannot be split as they are to be.
    pub otherwise: Option<Box<Stage>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StagePart {
    /// A SELECT with the statement's parameters, planned by itself: any tier. It may read the parts before it, by
    /// `{{stage 1}}`, or `{{stage 1.2}}` for an array of the second column's values.
    pub sql: String,
    pub ship: Ship,
    /// Which share of its rows conditions have left that the rest of the statement meets once more: 1, all of them.
    pub kept: f64,
    /// Columns by which the rest joins its rows: those together that equal columns of one other occurrence.
    pub joins: Vec<Vec<usize>>,
    /// How many different values such columns have in the whole table, where that is known and not all rows are here.
    pub different: Vec<(usize, f64)>,
}

impl StagePart {
    pub fn new(sql: String, ship: Ship) -> StagePart {
        StagePart { sql, ship, kept: 1.0, joins: Vec::new(), different: Vec::new() }
    }
}

/// To whom the rows of a part go.
#[derive(Debug, Clone)]
pub enum Ship {
    /// To every server that runs the rest.
    Everywhere,
    /// Each to the worker that has the table's shard for the value of this column (from 0).
    Split { column: usize, table: Arc<Table> },
    /// The same by the part's last column, which the rest does not have. `stored`: the value becomes a key there;
    /// otherwise it is only compared with keys, and the rows may as well go everywhere.
    SplitByLast { table: Arc<Table>, stored: bool },
    /// Each to the worker that has the row of the target whose system column `ctid` this column (from 0) is as the
    /// coordinator sees it. The rest sees it as text: the partition's number there, and the place in it.
    ByPlace { column: usize, table: Arc<Table> },
}

impl PartialEq for Ship {
    fn eq(&self, other: &Ship) -> bool {
        match (self, other) {
            (Ship::Everywhere, Ship::Everywhere) => true,
            (Ship::Split { column: a, table: s }, Ship::Split { column: b, table: t }) => a == b && s.oid == t.oid,
            (Ship::SplitByLast { table: s, stored: a }, Ship::SplitByLast { table: t, stored: b }) => {
                a == b && s.oid == t.oid
            }
            (Ship::ByPlace { column: a, table: s }, Ship::ByPlace { column: b, table: t }) => a == b && s.oid == t.oid,
            _ => false,
        }
    }
}

#[derive(Debug, Clone)]
pub enum Rest {
    Scatter(Scatter),
    /// On the coordinator, which gets the rows of every part.
    Coordinator(Splice),
    /// Statements that write, one after another. The client is told of the rows of all of them.
    Steps(Vec<Step>),
}

/// In its text `{{stage 1 from 5}}` stands for the names of a part's columns from that one on.
#[derive(Debug, Clone)]
pub enum Step {
    /// Planned by itself: any tier. It may read the parts as these read one another.
    Planned(String),
    /// The same; the rows that it writes have been counted already.
    Moved(String),
    /// What the workers run with the parts' rows for them. Every row that has a place is to be changed.
    Workers(Scatter),
}

impl Step {
    pub fn text(&self) -> String {
        match self {
            Step::Planned(sql) | Step::Moved(sql) => sql.clone(),
            Step::Workers(scatter) => scatter.sql.as_written(),
        }
    }
}

#[derive(Debug, Clone)]
pub enum Combine {
    /// Rows one after another, in any order; command tags are summed.
    Concatenate,
    /// Rows one after another, at most this many (`LIMIT` without ORDER BY, OFFSET 0; the workers have the limit too).
    ConcatenateLimit(u64),
    /// PostgreSQL combines the partial rows.
    Merge(Merge),
}

/// How rows are put together that are ordered on each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    pub keys: Vec<OrderKey>,
    pub limit: u64,
}

/// A column of the result, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    pub column: usize,
    pub descending: bool,
    pub nulls_first: bool,
}

/// `sql` is run on one server over the workers' partial rows. It reads them from a relation that the router puts in
/// place of the FROM item written `{{partial}}`: columns `c1 … cn`, cast to the types in which the workers returned
/// them. Statement parameters keep their numbers (a parameter may be left in one of the texts only: give its type).
/// Other places in braces depend on the partial columns' types: use [`Merge::render`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merge {
    pub sql: String,
    /// Number of the partial columns.
    pub columns: usize,
    /// The columns may have other collations than those of their types: a server is asked, and `c1 … cn` get them.
    pub collated: bool,
}

impl Merge {
    /// It does nothing but add up: one row, of as many counts as there are columns.
    pub fn adds_counts(&self) -> bool {
        let Some(mut rest) = self.sql.strip_prefix("SELECT ") else { return false };
        for column in 1..=self.columns {
            let sum = format!("coalesce(pg_catalog.sum(c{column}), 0)::pg_catalog.int8 AS \"");
            let Some(name) = rest.strip_prefix(sum.as_str()) else { return false };
            let Some(end) = name.find('"') else { return false };
            rest = &name[end + 1..];
            rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
        rest == " FROM {{partial}}"
    }

    /// It does nothing but order the workers' rows, which are ordered and few themselves, and cut them.
    pub fn orders_rows(&self) -> Option<Ordered> {
        let mut rest = self.sql.strip_prefix("SELECT ")?;
        for column in 1..=self.columns {
            rest = rest.strip_prefix(format!("c{column} AS \"").as_str())?;
            // A name may have quotes, which are doubled.
            let bytes = rest.as_bytes();
            let mut end = 0;
            while *bytes.get(end)? != b'"' || bytes.get(end + 1) == Some(&b'"') {
                end += if bytes[end] == b'"' { 2 } else { 1 };
            }
            rest = &rest[end + 1..];
            rest = rest.strip_prefix(", ").unwrap_or(rest);
        }
        let (order, limit) = rest.strip_prefix(" FROM {{partial}} ORDER BY ")?.split_once(" LIMIT ")?;
        let key = |item: &str| {
            let mut words = item.split(' ');
            let column = words.next()?.parse::<usize>().ok()?.checked_sub(1)?;
            let rest: Vec<&str> = words.collect();
            let (descending, nulls) = match rest.as_slice() {
                ["DESC", nulls @ ..] => (true, nulls),
                ["ASC", nulls @ ..] => (false, nulls),
                nulls => (false, nulls),
            };
            let nulls_first = match nulls {
                [] => descending,
                ["NULLS", "FIRST"] => true,
                ["NULLS", "LAST"] => false,
                _ => return None,
            };
            Some(OrderKey { column, descending, nulls_first })
        };
        let keys = order.split(", ").map(key).collect::<Option<Vec<_>>>()?;
        Some(Ordered { keys, limit: limit.parse().ok()? })
    }

    /// The statement over `partial` (a FROM item with its alias and columns `c1 … cn`); `types`: the partial columns'
    /// type ids as the workers describe them.
    ///
    /// A worker's `sum` of int2 or int4 is int8, whose sum would be numeric: cast back. An average is the sum of the
    /// sums over the sum of the counts, in the type that `avg` gives.
    pub fn render(&self, partial: &str, types: &[u32]) -> String {
        let type_of = |text: &str| {
            text.trim().parse::<usize>().ok().and_then(|n| n.checked_sub(1)).and_then(|n| types.get(n)).copied()
        };
        let mut out = String::new();
        let mut rest = self.sql.as_str();
        while let Some(at) = rest.find("{{") {
            out.push_str(&rest[..at]);
            let Some(len) = rest[at..].find("}}") else { break };
            let mut words = rest[at + 2..at + len].split(' ');
            match (words.next().unwrap_or(""), words.next(), words.next(), words.next()) {
                ("partial", ..) => out.push_str(partial),
                ("sum", Some(sum), ..) => {
                    out.push_str(&format!("pg_catalog.sum(c{sum})"));
                    if type_of(sum) == Some(20) {
                        out.push_str("::pg_catalog.int8");
                    }
                }
                ("avg", Some(avg), Some(sum), Some(count)) => {
                    let total = format!("nullif(pg_catalog.sum(c{count}), 0)");
                    out.push_str(&match (type_of(avg), type_of(sum)) {
                        // avg(float4) is float8 but sum(float4) is float4.
                        (Some(701), Some(700)) => {
                            format!("(pg_catalog.sum(c{avg} * c{count}) / {total}::pg_catalog.float8)")
                        }
                        (Some(701), _) => format!("(pg_catalog.sum(c{sum}) / {total}::pg_catalog.float8)"),
                        (Some(1186), _) => format!("(pg_catalog.sum(c{sum}) / {total}::pg_catalog.float8)"),
                        _ => format!("(pg_catalog.sum(c{sum})::pg_catalog.numeric / {total})"),
                    });
                }
                _ => {}
            }
            rest = &rest[at + len + 2..];
        }
        out.push_str(rest);
        out
    }
}

#[derive(Debug, Clone)]
pub struct InsertRows {
    pub table: Arc<Table>,
    /// Text up to and including `VALUES ` (column list made explicit, sequence columns that were left out appended).
    pub head: Splice,
    /// What the rows' fields are values of; empty where one is a part of a column.
    pub columns: Vec<String>,
    pub rows: Vec<InsertRow>,
    /// ON CONFLICT … RETURNING …, or empty.
    pub tail: Splice,
    pub returning: bool,
    /// Expressions the coordinator must evaluate for each row before it can be sent (sequence defaults, and key
    /// expressions that are not constants).
    pub needs_coordinator: bool,
    /// Values that the statement has are among those, not only defaults: whether their types can be assigned is to be
    /// asked before.
    pub computes: bool,
    /// Rows of each shard go by its partition's name: RETURNING has system columns.
    pub by_shard: bool,
}

/// One VALUES row: its fields in column order.
#[derive(Debug, Clone)]
pub struct InsertRow {
    pub key: RowKey,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowKey {
    Value(KeyValue),
    /// The key is this field, computed by the coordinator.
    Computed {
        field: usize,
    },
}

#[derive(Debug, Clone)]
pub enum Field {
    /// Sent to the worker as it stands (an expression text, or DEFAULT).
    Text(Splice),
    /// Evaluated on the coordinator as `(sql)::type`, then sent as a literal of that type.
    Evaluate { sql: String, type_name: String },
}

#[derive(Debug, Clone)]
pub struct InsertSelect {
    pub table: Arc<Table>,
    /// Names of the target columns in the order of the select list. Where the INSERT has no column list these are all
    /// columns of the table: the select list may be shorter.
    pub columns: Vec<String>,
    /// The column list was written, or the width of the select list is known: `columns` has its length.
    pub width_known: bool,
    /// The SELECT, as coordinator text (it is planned by itself again: any tier).
    pub select: String,
    /// `select` is a DELETE … RETURNING, and the statement an UPDATE of the distribution column: the rows come back
    /// where they belong now.
    pub moves: bool,
    /// Columns not in `columns` whose defaults need the coordinator, with the SQL expression to evaluate per row there.
    /// Where the width is not known: of every column that has such a default (leave out those that the rows fill).
    pub defaults: Vec<(String, String)>,
    /// OVERRIDING USER VALUE: an identity column gets its own default whatever the rows have for it.
    pub identity_is_own: bool,
    /// ON CONFLICT … RETURNING …, or none: then the rows are copied.
    pub tail: Option<Splice>,
    /// The target's alias, by which the tail names it.
    pub alias: Option<String>,
    pub returning: bool,
    /// See [`InsertRows::by_shard`].
    pub by_shard: bool,
}

/// Where a utility statement must run.
#[derive(Debug, Clone)]
pub enum DdlScope {
    /// Names only what the coordinator alone has.
    Coordinator,
    /// Every node: coordinator and workers (roles, schemas, types, extensions, functions, …).
    AllNodes,
    /// Names these distributed or reference tables: the coordinator, and the workers that have them.
    Tables(Vec<Arc<Table>>),
}

/// Where in a plan a table's placements are found.
pub fn involved_groups(table: &Table) -> Vec<GroupId> {
    let mut groups: Vec<GroupId> = table.shards().iter().map(|s| s.group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_that_only_order_rows_are_known() {
        let ordered = |sql: &str, columns| Merge { sql: sql.to_owned(), columns, collated: false }.orders_rows();
        let key = |column, descending, nulls_first| OrderKey { column, descending, nulls_first };
        let of = |keys: &[OrderKey], limit| Some(Ordered { keys: keys.to_vec(), limit });
        for (sql, columns, expected) in [
            (r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY 1 LIMIT 5"#, 1, of(&[key(0, false, false)], 5)),
            (
                r#"SELECT c1 AS "a""b", c2 AS "x, c2 AS " FROM {{partial}} ORDER BY 2 DESC, 1 NULLS FIRST LIMIT 7"#,
                2,
                of(&[key(1, true, true), key(0, false, true)], 7),
            ),
            (
                r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY 1 DESC NULLS LAST LIMIT 0"#,
                1,
                of(&[key(0, true, false)], 0),
            ),
            (r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY 1"#, 1, None),
            (r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY coalesce(c2) LIMIT 5"#, 2, None),
            (r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY 1 LIMIT 5 OFFSET 2"#, 1, None),
            (r#"SELECT c1 AS "id" FROM {{partial}} ORDER BY 1 LIMIT $1::pg_catalog.int8"#, 1, None),
            (r#"SELECT DISTINCT c1 AS "id" FROM {{partial}} ORDER BY 1 LIMIT 5"#, 1, None),
        ] {
            assert_eq!(ordered(sql, columns), expected, "{sql}");
        }
    }
}
