//! FETCH, MOVE and CLOSE of SQL in portals that Bind has made. PostgreSQL has one space of names for those and for the
//! cursors of DECLARE; here the former are the router's and the latter the coordinator's.

use pgherd_sql::{StatementKind, Step};
use pgherd_wire::backend;

use super::Session;
use super::extended::Pending;
use crate::error::{Failure, Result};
use crate::run::{Call, Capture, Completion};

impl Session {
    pub fn has_portal(&self, name: &str) -> bool {
        !name.is_empty() && self.portals.contains_key(name)
    }

    /// What the statement does, if it is about a portal that Bind has made.
    pub async fn run_in_portal(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Option<Completion>> {
        match kind {
            StatementKind::Fetch { name, is_move, step } if self.has_portal(name) => {
                Box::pin(self.fetch_in_portal(call, name, *is_move, *step)).await.map(Some)
            }
            StatementKind::CloseCursor { name: Some(name) } if self.has_portal(name) => {
                self.remove_portal(name);
                Ok(Some(Completion::tag("CLOSE CURSOR")))
            }
            StatementKind::CloseCursor { name: None } => {
                let names: Vec<String> =
                    self.portals.keys().filter(|n| !n.is_empty() && *n != call.portal).cloned().collect();
                names.iter().for_each(|name| self.remove_portal(name));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    async fn fetch_in_portal(&mut self, call: &Call<'_>, name: &str, is_move: bool, step: Step) -> Result<Completion> {
        let word = if is_move { "MOVE" } else { "FETCH" };
        let (prepared, bound, on_row) = match self.portals.get(name) {
            Some(portal) => (portal.prepared.clone(), portal.bound.clone(), portal.on_row),
            None => return Err(Failure::new("34000", format!("cursor \"{name}\" does not exist"))),
        };
        let max_rows = match step {
            Step::Forward(0) if is_move => return Ok(Completion::Tag(format!("MOVE {}", u8::from(on_row)))),
            Step::Forward(0) if !on_row => 0,
            Step::Forward(count @ 1..) => i32::try_from(count).unwrap_or(0),
            _ => {
                return Err(Failure::new("55000", "cursor can only scan forward")
                    .hint("Declare it with SCROLL option to enable backward scan."));
            }
        };
        if !is_move && bound.result_formats.contains(&1) && !call.bound.is_some_and(|b| b.result_formats.contains(&1)) {
            return Err(Failure::new("0A000", format!("portal \"{name}\" gives binary rows, FETCH wants text"))
                .hint("Execute fetches its rows."));
        }
        if call.describes() && !is_move {
            let fields = self.described(&prepared).await?.fields.clone().unwrap_or_default();
            backend::write_row_description(&mut self.client.out, &fields);
        }
        let nothing = matches!(step, Step::Forward(0));
        let (mut rows, mut count) = (Vec::new(), 0);
        if !nothing {
            let outer = self.client.capture.replace(Box::new(if is_move { Capture::count() } else { Capture::raw() }));
            let result = self.execute_portal(Pending::new(name, max_rows)).await;
            let captured = std::mem::replace(&mut self.client.capture, outer);
            let completion = result?;
            if let Some(portal) = self.portals.get_mut(name) {
                portal.on_row = matches!(completion, Completion::Suspended);
            }
            if let Some(captured) = captured {
                (count, _) = captured.size();
                rows = captured.into_rows();
            }
        }
        for row in rows {
            self.client.out.extend_from_slice(&row);
            self.client.flush_if_full().await?;
        }
        Ok(Completion::Tag(format!("{word} {count}")))
    }
}
