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

impl Session {
    /// Which of these types have numbers of types in their values.
    pub(super) async fn hold_numbers(&mut self, types: &[Oid]) -> Result<Vec<bool>> {
        self.learn_types(types).await?;
        let holds = |oid: &Oid| {
            RECORDS.contains(oid) || *oid >= FIRST_USER_OID && self.own_type(*oid).is_none_or(|t| t.numbers)
        };
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
        let items: Vec<String> = (1..=list.len()).map(|number| format!("${number}::pg_catalog.text")).collect();
        let sql = format!("SELECT {}", items.join(", "));
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
