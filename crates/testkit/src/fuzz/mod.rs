//! Random schemas, data and statements, carried out on one PostgreSQL and on a cluster and compared: `make fuzz`, and
//! `crates/pgherd/tests/fuzz.rs` for a fixed seed.
//!
//! [`generate`] is pure: the same seed gives the same round. [`run`] carries rounds out, [`shrink`] makes what differs
//! small. Everything is text: what a generated statement means is PostgreSQL's business, and a statement that it does
//! not take either is only a waste.

mod change;
pub mod compare;
mod expression;
mod query;
pub mod random;
mod round;
pub mod run;
mod schema;
pub mod shrink;

use std::fmt;

use random::Random;
pub use round::{Round, generate};
use schema::Schema;

/// How a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Simple,
    /// The unnamed statement.
    Extended,
    /// A named one, executed so often, with results in this format.
    Prepared {
        times: usize,
        format: i16,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub sql: String,
    /// Of the interface of distribution: PostgreSQL does not run it, and the cluster must.
    pub cluster_only: bool,
    pub way: Way,
    pub parameters: Vec<Option<String>>,
    /// The rows come in a total order.
    pub ordered: bool,
    /// It changes no table: it may be run again.
    pub only_reads: bool,
}

impl Step {
    pub fn sql(sql: &str) -> Step {
        Step {
            sql: sql.to_owned(),
            cluster_only: false,
            way: Way::Simple,
            parameters: Vec::new(),
            ordered: false,
            only_reads: false,
        }
    }

    pub fn on_cluster(sql: &str) -> Step {
        Step { cluster_only: true, ..Step::sql(sql) }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.cluster_only { "--@ cluster: " } else { "" })?;
        write!(f, "{};", self.sql)?;
        if !self.parameters.is_empty() {
            let shown = |v: &Option<String>| v.as_ref().map_or("NULL".to_owned(), |v| format!("'{v}'"));
            write!(f, " -- params: {}", self.parameters.iter().map(shown).collect::<Vec<_>>().join(", "))?;
        }
        if self.way == Way::Simple { Ok(()) } else { write!(f, " -- {:?}", self.way) }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "-- seed {}", self.seed)?;
        self.setup.iter().chain(&self.steps).enumerate().try_for_each(|(i, s)| writeln!(f, "/* {i} */ {s}"))
    }
}

/// What statements are made from.
pub(crate) struct Gen<'a> {
    random: &'a mut Random,
    schema: &'a Schema,
    aliases: usize,
    ctes: Vec<query::Cte>,
    /// How many more subqueries this statement may have.
    subqueries_left: usize,
    parameters: Vec<Option<String>>,
    parameters_allowed: bool,
}

impl<'a> Gen<'a> {
    fn new(random: &'a mut Random, schema: &'a Schema, parameters_allowed: bool) -> Gen<'a> {
        let subqueries_left = random.below(6);
        Gen {
            random,
            schema,
            aliases: 0,
            ctes: Vec::new(),
            subqueries_left,
            parameters: Vec::new(),
            parameters_allowed,
        }
    }
}
