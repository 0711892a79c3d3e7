//! Binary values that name types by number: arrays, composite values and ranges of the users' own types, which have
//! other numbers on every server. Only the coordinator reads and writes them; workers get and give text.

use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, Oid};
use pgherd_wire::frame::Frame;
use pgherd_wire::frontend::format_of;

use super::Call;
use super::request::{Errors, Request, Rows, fields_of};
use crate::error::Result;
use crate::session::{Bound, Session};

/// `record` and its array: their values name the types of all fields.
const RECORDS: [Oid; 2] = [2249, 2287];

const KNOWN_MAX: usize = 10_000;

impl Session {
    /// Which of these types have numbers of types in their values.
    pub(super) async fn hold_numbers(&mut self, types: &[Oid]) -> Result<Vec<bool>> {
        let database = self.db.name.clone();
        let key = |oid: &Oid| (database.clone(), *oid);
        let own = |oid: &&Oid| **oid >= FIRST_USER_OID;
        let unknown: Vec<String> = {
            let known = self.thread.numbered_types.borrow();
            types.iter().filter(own).filter(|oid| !known.contains_key(&key(oid))).map(Oid::to_string).collect()
        };
        if !unknown.is_empty() {
            let sql = format!(
                "WITH RECURSIVE base AS (SELECT oid AS asked, oid AS type FROM pg_catalog.pg_type WHERE oid IN ({}) \
                 UNION ALL SELECT b.asked, t.typbasetype FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type \
                 WHERE t.typtype = 'd') \
                 SELECT b.asked, CASE WHEN t.typtype IN ('c', 'r', 'm') OR t.typelem <> 0 AND t.typlen = -1 \
                   THEN pg_catalog.format('%I.%I', n.nspname, a.typname) END \
                 FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.type JOIN pg_catalog.pg_type a ON a.oid = b.asked \
                   JOIN pg_catalog.pg_namespace n ON n.oid = a.typnamespace WHERE t.typtype <> 'd'",
                unknown.join(", ")
            );
            let found = self.ask_coordinator(&sql).await?;
            let mut known = self.thread.numbered_types.borrow_mut();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            for row in 0..found.rows.len() {
                let Some(oid) = found.text(row, 0).and_then(|oid| oid.parse().ok()) else { continue };
                known.insert(key(&oid), found.text(row, 1).map(str::to_owned));
            }
        }
        let known = self.thread.numbered_types.borrow();
        let holds = |oid: &Oid| RECORDS.contains(oid) || *oid >= FIRST_USER_OID && known.get(&key(oid)) != Some(&None);
        Ok(types.iter().map(holds).collect())
    }

    /// The same values, with text in place of those; none: there are none.
    pub(super) async fn without_numbers(&mut self, call: &Call<'_>) -> Result<Option<Bound>> {
        let Some(bound) = call.bound else { return Ok(None) };
        if !bound.param_formats.contains(&1) {
            return Ok(None);
        }
        let described = self.described(call.prepared).await?;
        let types = &described.param_types;
        let is_read = |index: usize| bound.is_binary(index) && bound.params.get(index).is_some_and(Option::is_some);
        if !(0..types.len()).any(|index| is_read(index) && types[index] >= FIRST_USER_OID) {
            return Ok(None);
        }
        let holds = self.hold_numbers(types).await?;
        let is_own = |index: usize| holds[index] && types[index] >= FIRST_USER_OID;
        let list: Vec<usize> = (0..types.len()).filter(|index| is_own(*index) && is_read(*index)).collect();
        if list.is_empty() {
            return Ok(None);
        }
        let asked = Bound {
            param_formats: vec![1],
            params: list.iter().map(|index| bound.params[*index].clone()).collect(),
            result_formats: Vec::new(),
        };
        let asked_types: Vec<Oid> = list.iter().map(|index| types[*index]).collect();
        let sql = {
            let known = self.thread.numbered_types.borrow();
            let name =
                |oid: &Oid| known.get(&(self.db.name.clone(), *oid)).and_then(Option::as_deref).unwrap_or("text");
            let casts = asked_types.iter().enumerate();
            let items: Vec<String> =
                casts.map(|(at, oid)| format!("(${}::{})::pg_catalog.text", at + 1, name(oid))).collect();
            format!("SELECT {}", items.join(", "))
        };
        let request = Request { param_types: &asked_types, bound: Some(&asked), ..Request::text(sql) };
        let mut kept = Vec::new();
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.run_request(COORDINATOR_GROUP, &request, Rows::Keep(&mut kept), Errors::default()).await?;
        let Some(raw) = kept.pop() else { return Ok(None) };
        let mut changed = bound.clone();
        changed.param_formats = (0..bound.params.len()).map(|index| i16::from(bound.is_binary(index))).collect();
        for (index, text) in list.into_iter().zip(fields_of(&Frame { raw })?) {
            changed.params[index] = text;
            changed.param_formats[index] = 0;
        }
        Ok(Some(changed))
    }

    /// The client wants values with such numbers, which are to be the coordinator's.
    pub(super) async fn gives_numbers(&mut self, call: &Call<'_>) -> Result<bool> {
        let Some(formats) = call.bound.map(|bound| &bound.result_formats).filter(|formats| formats.contains(&1)) else {
            return Ok(false);
        };
        let described = self.described(call.prepared).await?;
        let fields = described.fields.iter().flatten().enumerate();
        let binary = fields.filter(|(index, _)| format_of(formats, *index) == 1).map(|(_, field)| field.type_oid);
        let types: Vec<Oid> = binary.filter(|oid| *oid >= FIRST_USER_OID || RECORDS.contains(oid)).collect();
        Ok(!types.is_empty() && self.hold_numbers(&types).await?.contains(&true))
    }
}
