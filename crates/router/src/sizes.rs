//! How many rows tables have and parts of statements give, roughly: asked of the workers where that says which way of
//! running a statement is cheap, and kept for a while. It decides about time only, never about answers.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgherd_catalog::{COORDINATOR_GROUP, Table};

use crate::error::Result;
use crate::session::Session;
use crate::settings::quote_literal;

const KEPT_FOR: Duration = Duration::from_secs(60);
/// Databases of one thread whose sizes are kept.
const DATABASES_MAX: usize = 100;

/// Estimates of statements that are kept for a database, and asked for at once.
const ESTIMATES_MAX: usize = 1_000;
const QUESTIONS_MAX: usize = 24;
/// In a transaction of its own, which waits for nobody.
const QUESTION: &str = "SET LOCAL lock_timeout = '20ms'; SET LOCAL statement_timeout = '1s'; EXPLAIN (FORMAT JSON)";
/// Longer ones are not asked about.
const QUESTION_BYTES_MAX: usize = 10_000;

/// What is known of one database.
#[derive(Clone, Default)]
pub struct Sizes {
    /// Rows of tables by the coordinator's oids.
    pub tables: HashMap<u32, f64>,
    /// Rows of statements by their texts; not a number where no worker could tell.
    pub statements: HashMap<String, f64>,
}

#[derive(Default)]
pub struct Known {
    databases: HashMap<String, (Instant, Rc<Sizes>)>,
}

impl Known {
    pub fn of(&self, database: &str) -> Rc<Sizes> {
        match self.databases.get(database) {
            Some((since, sizes)) if since.elapsed() < KEPT_FOR => sizes.clone(),
            _ => Rc::default(),
        }
    }

    fn change(&mut self, database: &str, change: impl FnOnce(&mut Sizes)) {
        if self.databases.len() >= DATABASES_MAX {
            self.databases.clear();
        }
        let kept = self.databases.remove(database).filter(|(since, _)| since.elapsed() < KEPT_FOR);
        let (since, mut sizes) = kept.unwrap_or_else(|| (Instant::now(), Rc::default()));
        let mutable = Rc::make_mut(&mut sizes);
        if mutable.statements.len() >= ESTIMATES_MAX {
            mutable.statements.clear();
        }
        change(mutable);
        self.databases.insert(database.to_owned(), (since, sizes));
    }
}

impl Session {
    /// Asks for what is not known of these tables, unless the session holds connections already: who does must not wait
    /// for more. A worker that does not answer leaves them at a guess.
    pub async fn measure(&mut self, tables: &[Arc<Table>]) {
        if !self.txn.participants.is_empty() {
            return;
        }
        let known = self.thread.sizes.borrow().of(&self.db.name);
        let unknown: Vec<&Arc<Table>> =
            tables.iter().filter(|t| !t.is_reference() && !known.tables.contains_key(&t.oid)).collect();
        let mut sizes: HashMap<u32, f64> = unknown.iter().map(|t| (t.oid, 0.0)).collect();
        for group in self.catalog().worker_groups() {
            if group != COORDINATOR_GROUP {
                // Nothing depends on it.
                let _ = self.add_sizes(group, &unknown, &mut sizes).await;
            }
        }
        let database = self.db.name.clone();
        self.thread.sizes.borrow_mut().change(&database, |known| known.tables.extend(sizes));
    }

    /// Has a worker estimate how many rows statements give; all workers together give about as many times that.
    pub async fn estimate(&mut self, statements: &[String]) {
        let groups = self.catalog().worker_groups();
        let Some(group) = groups.first().filter(|_| self.txn.participants.is_empty()) else { return };
        let mut found: HashMap<String, f64> = HashMap::new();
        if let Ok(mut lease) = self.lease_aside(*group).await {
            for statement in statements.iter().take(QUESTIONS_MAX) {
                // One with parameters cannot be explained alone.
                let may_ask = statement.len() <= QUESTION_BYTES_MAX && !statement.contains('$');
                let rows = match may_ask {
                    true => lease.query(&format!("{QUESTION} {statement}")).await.ok(),
                    false => None,
                };
                let rows = rows.as_ref().and_then(|result| result.text(0, 0)).and_then(plan_rows);
                found.insert(statement.clone(), rows.map_or(f64::NAN, |rows| rows * groups.len() as f64));
                if may_ask && rows.is_none() {
                    break;
                }
            }
        }
        let database = self.db.name.clone();
        self.thread.sizes.borrow_mut().change(&database, |known| known.statements.extend(found));
    }

    async fn add_sizes(&mut self, group: i32, tables: &[&Arc<Table>], sizes: &mut HashMap<u32, f64>) -> Result<()> {
        let values: Vec<String> = tables
            .iter()
            .map(|t| {
                let name = quote_literal(&format!(
                    "{}.{}",
                    crate::settings::quote_ident(&t.schema),
                    crate::settings::quote_ident(&t.name)
                ));
                // Without a lock: this very transaction may hold one that excludes all others.
                format!("({}::pg_catalog.int8, pg_catalog.to_regclass({name})::pg_catalog.oid)", t.oid)
            })
            .collect();
        if values.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "WITH RECURSIVE p(oid, rel) AS (VALUES {} \
             UNION ALL SELECT p.oid, i.inhrelid FROM p JOIN pg_catalog.pg_inherits i ON i.inhparent = p.rel) \
             SELECT p.oid, pg_catalog.sum(greatest(c.reltuples, pg_catalog.pg_stat_get_live_tuples(c.oid), 0)) \
             FROM p JOIN pg_catalog.pg_class c ON c.oid = p.rel AND c.relkind = 'r' GROUP BY p.oid",
            values.join(", ")
        );
        let result = self.lease_aside(group).await?.query(&sql).await?;
        for row in 0..result.rows.len() {
            if let (Some(oid), Some(rows)) = (result.text(row, 0), result.text(row, 1))
                && let (Ok(oid), Ok(rows)) = (oid.parse::<u32>(), rows.parse::<f64>())
            {
                *sizes.entry(oid).or_default() += rows;
            }
        }
        Ok(())
    }
}

/// The first number of rows in a plan: that of its root.
fn plan_rows(plan: &str) -> Option<f64> {
    let (_, rest) = plan.split_once("\"Plan Rows\":")?;
    let number: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::plan_rows;

    #[test]
    fn the_root_of_a_plan_says_how_many_rows() {
        let plan = r#"[ { "Plan": { "Node Type": "Sort", "Plan Rows": 1200, "Plans": [ { "Plan Rows": 7 } ] } } ]"#;
        assert_eq!(plan_rows(plan), Some(1200.0));
        assert_eq!(plan_rows("[]"), None);
    }
}
