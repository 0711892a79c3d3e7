//! A statement as the session holds it: parsed once, planned once per catalog, described once by the coordinator.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pgherd_catalog::Snapshot;
use pgherd_planner::Plan;
use pgherd_sql::Statement;

use super::Session;
use crate::describe::Described;
use crate::error::Result;

/// Numbers for server-side statements: unique in this process, so that a name on a server connection means one text.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

pub struct Prepared {
    /// None for the empty statement.
    pub statement: Option<Statement>,
    /// Types that the client declared in Parse.
    pub declared: Vec<u32>,
    /// Parameter and result types as the coordinator gives them.
    pub described: OnceCell<Rc<Described>>,
    plan: RefCell<Option<Planned>>,
}

/// A plan, good for one catalog, search path and set of temporary names.
struct Planned {
    catalog: Arc<Snapshot>,
    search_path: Rc<Vec<String>>,
    plan: Rc<Plan>,
    id: u64,
}

impl Prepared {
    pub fn new(statement: Option<Statement>, declared: Vec<u32>) -> Rc<Prepared> {
        Rc::new(Prepared { statement, declared, described: OnceCell::new(), plan: RefCell::new(None) })
    }

    pub fn text(&self) -> &str {
        self.statement.as_ref().map_or("", |s| s.text.as_str())
    }
}

impl Session {
    /// A statement of a simple Query.
    pub fn analyse(&mut self, statement: Statement) -> Result<Rc<Prepared>> {
        Ok(Prepared::new(Some(statement), Vec::new()))
    }

    /// The plan under the session's catalog and search path, and the number under which servers may keep it.
    pub async fn plan(&mut self, prepared: &Prepared) -> Result<(Rc<Plan>, u64)> {
        let catalog = self.catalog();
        let search_path = self.search_path().await?;
        // A value for now() belongs to one transaction: such a plan is made afresh.
        let reusable = self.temp.is_empty() && self.txn.now.is_none();
        if reusable
            && let Some(planned) = &*prepared.plan.borrow()
            && Arc::ptr_eq(&planned.catalog, &catalog)
            && *planned.search_path == *search_path
        {
            return Ok((planned.plan.clone(), planned.id));
        }
        let Some(statement) = &prepared.statement else {
            return Err(crate::error::Failure::new("XX000", "an empty statement has no plan"));
        };
        let plan = Rc::new(self.plan_statement(statement, &catalog, &search_path, false));
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        if reusable {
            *prepared.plan.borrow_mut() = Some(Planned { catalog, search_path, plan: plan.clone(), id });
        }
        Ok((plan, id))
    }

    pub fn plan_statement(
        &self,
        statement: &Statement,
        catalog: &Snapshot,
        search_path: &[String],
        callback: bool,
    ) -> Plan {
        let view = pgherd_planner::SessionView {
            search_path,
            temp_relations: &self.temp,
            callback,
            multi_statement_txn_now: self.txn.now.as_deref(),
        };
        pgherd_planner::plan(statement, catalog, &view)
    }
}
