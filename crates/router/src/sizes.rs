//! How many rows distributed tables have, roughly: asked of the workers' statistics where that says which way of running
//! a statement is cheap, and kept for a while. It decides about time only, never about answers.

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

/// Rows by the coordinator's oids.
pub type Sizes = HashMap<u32, f64>;

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

    fn add(&mut self, database: &str, new: Sizes) {
        let mut sizes = Sizes::clone(&self.of(database));
        let since = match self.databases.get(database) {
            Some((since, _)) if !sizes.is_empty() => *since,
            _ => Instant::now(),
        };
        sizes.extend(new);
        if self.databases.len() >= DATABASES_MAX {
            self.databases.clear();
        }
        self.databases.insert(database.to_owned(), (since, Rc::new(sizes)));
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
            tables.iter().filter(|t| !t.is_reference() && !known.contains_key(&t.oid)).collect();
        let mut sizes: Sizes = unknown.iter().map(|t| (t.oid, 0.0)).collect();
        for group in self.catalog().worker_groups() {
            if group != COORDINATOR_GROUP {
                // Nothing depends on it.
                let _ = self.add_sizes(group, &unknown, &mut sizes).await;
            }
        }
        let database = self.db.name.clone();
        self.thread.sizes.borrow_mut().add(&database, sizes);
    }

    async fn add_sizes(&mut self, group: i32, tables: &[&Arc<Table>], sizes: &mut Sizes) -> Result<()> {
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
