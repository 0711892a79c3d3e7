//! Large parts of a staged statement as temporary tables of the workers that run the rest. Unlike an array a table has
//! statistics, without which servers join many rows in orders that take for ever.

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use pgherd_catalog::GroupId;
use pgherd_planner::{Rest, Stage, StagePart};
use pgherd_wire::backend;
use pgherd_wire::copy::write_text_row;
use pgherd_wire::frontend;

use super::Call;
use super::partials::rows_of;
use super::request::Errors;
use super::stage::Staged;
use crate::error::Result;
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

/// Parts that have so many rows together become tables of the workers, where the transaction is the statement's own,
const TABLES_FROM: usize = 4_000;
/// each that has at least these.
const TABLE_FROM: usize = 200;
/// default_statistics_target of those tables: three hundred times as many rows are looked at.
const STATISTICS_TARGET: usize = 30;
/// Columns of one statistic at the most: the server sorts the rows by every subset of them.
const STATISTICS_COLUMNS_MAX: usize = 4;
/// A smaller share is as good as a guess.
const KEPT_MIN: f64 = 0.001;
/// So many bytes of rows wait for each worker at a time.
const CHUNK: usize = 1 << 20;

impl Staged {
    /// Parts whose rows are many, and that the text names; a table must have names for its columns.
    fn large_parts(&self, text: &str) -> Vec<usize> {
        let parts: Vec<usize> = (0..self.sources.len()).filter(|part| self.is_large(*part, text)).collect();
        let rows: usize = parts.iter().map(|part| self.rows_of(*part)).sum();
        if rows < TABLES_FROM { Vec::new() } else { parts }
    }

    fn rows_of(&self, part: usize) -> usize {
        self.size_of(part).map_or(0, |(rows, _)| rows)
    }

    fn is_large(&self, part: usize, text: &str) -> bool {
        let fields = self.sources[part].fields();
        let named = |at: usize| fields[..at].iter().all(|f| f.name != fields[at].name);
        self.rows_of(part) >= TABLE_FROM
            && text.contains(&format!("{{{{stage {}}}}}", part + 1))
            && !fields.is_empty()
            && (0..fields.len()).all(named)
    }

    fn definition_of(&self, part: usize) -> String {
        let source = &self.sources[part];
        let columns = source.fields().iter().zip(&source.casts);
        let columns: Vec<String> = columns.map(|(f, cast)| format!("{} {cast}", quote_ident(&f.name))).collect();
        format!("CREATE TEMPORARY TABLE {} ({}) ON COMMIT DROP", name_of(part), columns.join(", "))
    }

    /// The columns of a part's rows that a worker gets.
    fn columns_for(&self, part: usize, group: GroupId) -> Vec<Bytes> {
        let source = &self.sources[part];
        let at = self.groups.iter().position(|g| *g == group);
        let columns = self.values.get(source.first..source.first + source.fields().len()).unwrap_or_default();
        columns.iter().map(|values| self.value_of(values, at)).collect()
    }

    /// What tells a server about the rows of a part that it has as a table. `major`: its version.
    fn statistics_of(&self, part: usize, what: &StagePart, major: u32) -> String {
        let table = format!("pg_temp.{}", name_of(part));
        let fields = self.sources[part].fields();
        let mut told = String::new();
        // Before it joins by several columns by what is known of them together.
        for join in what.joins.iter().filter(|_| major >= 18) {
            let columns: Vec<String> =
                join.iter().filter_map(|at| fields.get(*at)).map(|f| quote_ident(&f.name)).collect();
            if (2..=STATISTICS_COLUMNS_MAX).contains(&columns.len()) {
                told.push_str(&format!("CREATE STATISTICS (ndistinct) ON {} FROM {table}; ", columns.join(", ")));
            }
        }
        told.push_str(&format!("ANALYZE {table}; "));
        // Conditions that it meets once more leave all of these rows.
        if major >= 18 && what.kept < 1.0 {
            told.push_str(&format!(
                "SELECT pg_catalog.pg_restore_relation_stats('schemaname', n.nspname::pg_catalog.text, 'relname', \
                 c.relname::pg_catalog.text, 'reltuples', (c.reltuples / {})::pg_catalog.float4) \
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.oid = '{table}'::pg_catalog.regclass; ",
                what.kept.max(KEPT_MIN)
            ));
            // They have no more values for that. It takes those of many values for a share of the rows.
            for (at, different) in &what.different {
                let Some(field) = fields.get(*at) else { continue };
                told.push_str(&format!(
                    "SELECT pg_catalog.pg_restore_attribute_stats('schemaname', n.nspname::pg_catalog.text, 'relname', \
                     c.relname::pg_catalog.text, 'attname', {}::pg_catalog.text, 'inherited', false, \
                     'n_distinct', {different}::pg_catalog.float4) \
                     FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                     WHERE c.oid = '{table}'::pg_catalog.regclass AND EXISTS (SELECT FROM pg_catalog.pg_statistic s \
                     WHERE s.starelid = c.oid AND s.staattnum = {}); ",
                    quote_literal(&field.name),
                    at + 1
                ));
            }
        }
        told
    }
}

impl Session {
    pub(super) async fn keep_in_tables(&mut self, call: &Call<'_>, stage: &Stage, staged: &mut Staged) -> Result<()> {
        let Rest::Scatter(scatter) = &stage.rest else { return Ok(()) };
        let parts = staged.large_parts(&scatter.sql.as_written());
        if parts.is_empty() {
            return Ok(());
        }
        let groups = self.scatter_groups(call, scatter).await?;
        let made = self.make_tables(&groups, &parts, stage, staged).await;
        if let Err(failure) = made {
            self.abandon(&groups).await;
            return Err(failure);
        }
        staged.tables = (0..staged.sources.len()).map(|part| parts.contains(&part).then(|| name_of(part))).collect();
        Ok(())
    }

    /// All that is to be done is sent at once, to all workers side by side.
    async fn make_tables(&mut self, groups: &[GroupId], parts: &[usize], stage: &Stage, staged: &Staged) -> Result<()> {
        let definitions: Vec<String> = parts.iter().map(|part| staged.definition_of(*part)).collect();
        for group in groups {
            self.join(*group).await?;
            let Some(participant) = self.txn.participants.get_mut(group) else { continue };
            // Nobody waits for what is gone at the end.
            participant.lease.add_step("SET LOCAL synchronous_commit = off");
            participant.lease.add_step(format!("SET LOCAL default_statistics_target = {STATISTICS_TARGET}"));
            participant.lease.send_query(&definitions.join("; "));
        }
        for part in parts {
            self.copy_rows(groups, *part, staged).await?;
        }
        for group in groups {
            let Some(participant) = self.txn.participants.get_mut(group) else { continue };
            let version = participant.lease.parameters.get("server_version");
            let major = version.and_then(|v| v.split('.').next()?.parse().ok()).unwrap_or(0);
            let told: String =
                parts.iter().map(|part| staged.statistics_of(*part, &stage.parts[*part], major)).collect();
            participant.lease.send_query(&told);
        }
        self.flush_all(groups).await?;
        for group in groups {
            for _ in 0..parts.len() + 2 {
                self.until_ready(*group).await?;
            }
        }
        Ok(())
    }

    async fn copy_rows(&mut self, groups: &[GroupId], part: usize, staged: &Staged) -> Result<()> {
        let mut rows: Vec<_> = groups.iter().map(|group| rows_of(staged.columns_for(part, *group))).collect();
        let mut line = BytesMut::new();
        for group in groups {
            let Some(participant) = self.txn.participants.get_mut(group) else { continue };
            participant.lease.send_query(&format!("COPY pg_temp.{} FROM STDIN", name_of(part)));
        }
        let mut more = true;
        while more {
            more = false;
            for (group, rows) in groups.iter().zip(&mut rows) {
                let Some(participant) = self.txn.participants.get_mut(group) else { continue };
                let mut bytes = 0;
                while bytes < CHUNK
                    && let Some(row) = rows.next()
                {
                    line.clear();
                    write_text_row(&mut line, &row);
                    bytes += line.len();
                    participant.lease.copy_data(&line);
                }
                more |= bytes >= CHUNK;
            }
            self.flush_all(groups).await?;
        }
        for group in groups {
            let Some(participant) = self.txn.participants.get_mut(group) else { continue };
            frontend::write_copy_done(participant.lease.buffer());
        }
        Ok(())
    }

    async fn flush_all(&mut self, groups: &[GroupId]) -> Result<()> {
        let all = self.txn.participants.iter_mut().filter(|(group, _)| groups.contains(group));
        for flushed in join_all(all.map(|(_, participant)| participant.lease.flush())).await {
            flushed?;
        }
        Ok(())
    }

    async fn until_ready(&mut self, group: GroupId) -> Result<()> {
        let mut participant = self.take(group)?;
        let mut failure = None;
        let result = loop {
            let frame = match self.next_frame(group, &mut participant).await {
                Ok(frame) => frame,
                Err(failure) => break Err(failure),
            };
            match frame.tag() {
                b'E' => {
                    failure.get_or_insert(backend::parse_error(&frame)?);
                }
                b'Z' => {
                    break match failure {
                        Some(fields) => Err(self.translate(fields, Errors::default())),
                        None => Ok(()),
                    };
                }
                _ => {}
            }
        };
        self.put_back(group, participant);
        result
    }
}

fn name_of(part: usize) -> String {
    format!("pgherd_stage_{}", part + 1)
}
