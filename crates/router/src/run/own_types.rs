//! Types that users and extensions make have other numbers on every server. Whoever sends a parameter of such a type
//! declares it by the number that it has there: a server that had to guess would take another type, text often.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Oid, SnapshotId};

use super::Call;
use crate::error::Result;
use crate::session::Session;
use crate::settings::quote_literal;

/// Types that are kept per thread.
const KNOWN_MAX: usize = 10_000;

/// A type of a user's, or of an extension's.
#[derive(Debug, Default)]
pub struct OwnType {
    /// Its binary values name types by number.
    pub numbers: bool,
    /// Its numbers on the workers that have it.
    there: HashMap<GroupId, Oid>,
}

impl Session {
    /// What is known of a type of the coordinator's.
    pub(super) fn own_type(&self, oid: Oid) -> Option<Rc<OwnType>> {
        let catalog = self.catalog();
        let known = self.thread.own_types.borrow();
        let (seen, own) = known.get(&(self.db.name.clone(), oid))?;
        seen.is(&catalog).then(|| own.clone())
    }

    /// The same types by their numbers on a server; 0 for those that it does not have.
    pub(super) fn types_on<'a>(&self, group: GroupId, types: &'a [Oid]) -> Cow<'a, [Oid]> {
        if group == COORDINATOR_GROUP || types.iter().all(|oid| *oid < FIRST_USER_OID) {
            return Cow::Borrowed(types);
        }
        let there = |oid: &Oid| match *oid < FIRST_USER_OID {
            true => *oid,
            false => self.own_type(*oid).and_then(|own| own.there.get(&group).copied()).unwrap_or(0),
        };
        Cow::Owned(types.iter().map(there).collect())
    }

    /// Finds out how the workers number the types of a call's parameters. False: one of them does not have all.
    pub(super) async fn workers_have_types(&mut self, call: &Call<'_>) -> Result<bool> {
        let types = self.param_types(call).await?;
        if types.iter().all(|oid| *oid < FIRST_USER_OID) {
            return Ok(true);
        }
        self.learn_types(&types).await?;
        let groups = self.catalog().worker_groups();
        Ok(groups.into_iter().all(|group| !self.types_on(group, &types).contains(&0)))
    }

    /// Asks the servers for what is not known yet of these types.
    pub(super) async fn learn_types(&mut self, types: &[Oid]) -> Result<()> {
        let own = |oid: &&Oid| **oid >= FIRST_USER_OID;
        let mut unknown: Vec<Oid> = types.iter().filter(own).copied().collect();
        unknown.retain(|oid| self.own_type(*oid).is_none());
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog();
        // An array is found by its element: its own name may have had to give way on one of the servers.
        let list: Vec<String> = unknown.iter().map(Oid::to_string).collect();
        let sql = format!(
            "WITH RECURSIVE base AS (SELECT oid AS asked, oid AS type FROM pg_catalog.pg_type WHERE oid IN ({}) \
             UNION ALL SELECT b.asked, t.typbasetype FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type \
             WHERE t.typtype = 'd') \
             SELECT b.asked, t.typtype IN ('c', 'r', 'm') OR t.typelem <> 0 AND t.typlen = -1, \
               n.nspname, coalesce(e.typname, a.typname), e.oid IS NOT NULL \
             FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type JOIN pg_catalog.pg_type a ON a.oid = b.asked \
               LEFT JOIN pg_catalog.pg_type e ON e.oid = a.typelem AND e.typarray = a.oid \
               JOIN pg_catalog.pg_namespace n ON n.oid = coalesce(e.typnamespace, a.typnamespace) \
             WHERE t.typtype <> 'd'",
            list.join(", ")
        );
        let found = self.ask_coordinator(&sql).await?;
        let mut learnt: Vec<(Oid, OwnType)> = Vec::new();
        let mut names = Vec::new();
        for row in 0..found.rows.len() {
            let text = |column| found.text(row, column).unwrap_or_default();
            let Ok(oid) = text(0).parse() else { continue };
            // A temporary type is one session's, and on the coordinator.
            if !text(2).starts_with("pg_temp_") {
                let (schema, name) = (quote_literal(text(2)), quote_literal(text(3)));
                names.push(format!("({}, {schema}, {name}, {})", learnt.len(), quote_literal(text(4))));
            }
            learnt.push((oid, OwnType { numbers: text(1) == "t", there: HashMap::new() }));
        }
        if !names.is_empty() {
            let sql = format!(
                "SELECT v.i, CASE WHEN v.a::pg_catalog.bool THEN t.typarray ELSE t.oid END \
                 FROM (VALUES {}) v(i, s, n, a) JOIN pg_catalog.pg_namespace n ON n.nspname = v.s \
                 JOIN pg_catalog.pg_type t ON t.typnamespace = n.oid AND t.typname = v.n",
                names.join(", ")
            );
            for group in catalog.worker_groups() {
                // Definitions of this transaction's own are seen on its own connections.
                let found = match self.txn.catalog.is_some() {
                    true => {
                        self.join(group).await?;
                        self.collect_on(group, &sql).await?
                    }
                    false => self.lease_aside(group).await?.query(&sql).await?,
                };
                for row in 0..found.rows.len() {
                    let index = found.text(row, 0).and_then(|i| i.parse::<usize>().ok());
                    let there = found.text(row, 1).and_then(|oid| oid.parse().ok()).filter(|oid| *oid != 0);
                    if let (Some((_, own)), Some(there)) = (index.and_then(|i| learnt.get_mut(i)), there) {
                        own.there.insert(group, there);
                    }
                }
            }
        }
        let mut known = self.thread.own_types.borrow_mut();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        for (oid, own) in learnt {
            known.insert((self.db.name.clone(), oid), (SnapshotId::of(&catalog), Rc::new(own)));
        }
        Ok(())
    }
}
