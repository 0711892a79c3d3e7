//! EXPLAIN ANALYZE: the statement is run, by all servers that take part at the same time, and each says how many rows
//! it gave, how long it took and, from PostgreSQL 17 on, how many bytes its rows are.

use std::fmt::Write;
use std::time::Instant;

use pgherd_catalog::GroupId;
use pgherd_planner::{Plan, Tier};
use pgherd_sql::Statement;
use pgherd_wire::frame::Frame;

use super::explain::Task;
use super::request::{Errors, Request, Rows, fields_of};
use super::stage::Capture;
use super::{Call, Completion};
use crate::error::Result;
use crate::session::{Bound, Session};
use crate::settings::quote_literal;

/// The first version whose EXPLAIN can tell the size of what is sent.
const SERIALIZE_SINCE: u32 = 17;

/// What a server said of its part.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Measure {
    pub rows: Option<String>,
    pub milliseconds: Option<String>,
    /// With its unit.
    pub output: Option<String>,
}

impl Measure {
    /// Read from a plan in any of the formats.
    fn of(lines: &[String]) -> Measure {
        let text = lines.join("\n");
        let first = |keys: &[&str]| keys.iter().find_map(|key| number_behind(key, &text));
        let actual = text.lines().next().and_then(|line| line.split_once("(actual ")).map(|(_, actual)| actual);
        let plain = actual.and_then(|actual| number_behind("rows=", actual));
        let rows = plain.or_else(|| first(&["\"Actual Rows\": ", "<Actual-Rows>", "Actual Rows: "]));
        let serialized = text.lines().find_map(|line| line.strip_prefix("Serialization: "));
        let output = serialized.and_then(|line| line.split_whitespace().find_map(|word| word.strip_prefix("output=")));
        Measure {
            // Of one execution they are whole; newer servers write them as averages.
            rows: rows.map(|rows| rows.trim_end_matches(".00").to_owned()),
            milliseconds: first(&["Execution Time: ", "\"Execution Time\": ", "<Execution-Time>"]),
            output: output.map(str::to_owned),
        }
    }

    /// `rows=5 time=0.120 ms output=1kB`
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, value, unit) in
            [("rows", &self.rows, ""), ("time", &self.milliseconds, " ms"), ("output", &self.output, "")]
        {
            if let Some(value) = value {
                let _ = write!(text, "{}{name}={value}{unit}", if text.is_empty() { "" } else { " " });
            }
        }
        text
    }
}

/// What was run, and what is shown of it: the plan of the first task.
#[derive(Default)]
pub(super) struct Analyzed {
    pub shown: Vec<String>,
    /// One for each task.
    pub measures: Vec<Measure>,
}

fn number_behind(key: &str, text: &str) -> Option<String> {
    let rest = &text[text.find(key)? + key.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}

pub(super) fn is_on(options: &[(String, Option<String>)], names: &[&str]) -> bool {
    options.iter().rev().find(|(name, _)| names.contains(&name.as_str())).is_some_and(|(_, value)| {
        !matches!(value.as_deref().map(str::to_ascii_lowercase).as_deref(), Some("off" | "false" | "0"))
    })
}

/// EXPLAIN with these options, written out.
fn head_of(options: &[(String, Option<String>)]) -> String {
    let list: Vec<String> = options
        .iter()
        .map(|(name, value)| match value {
            None => name.clone(),
            Some(value) => format!("{name} {}", quote_literal(value)),
        })
        .collect();
    if list.is_empty() { "EXPLAIN ".to_owned() } else { format!("EXPLAIN ({}) ", list.join(", ")) }
}

impl Session {
    /// Runs the tasks of a route, a scatter or what the coordinator answers.
    pub(super) async fn analyze_tasks(
        &mut self,
        call: &Call<'_>,
        options: &[(String, Option<String>)],
        plan: &Plan,
        tasks: &[Task],
        format: &str,
    ) -> Result<Analyzed> {
        let major = self.server_major();
        let own = options.iter().any(|(name, _)| name == "serialize");
        let asks_size = format == "text" && !own && !plan.writes && major >= SERIALIZE_SINCE;
        let mut options = options.to_vec();
        if asks_size {
            options.push(("serialize".to_owned(), Some("text".to_owned())));
        }
        let head = head_of(&options);
        let mut analyzed = Analyzed::default();
        let answers = match tasks {
            [one] => vec![self.run_task(call, &head, plan, one).await?],
            _ => self.run_at_once(call, &head, plan, tasks).await?,
        };
        for (index, mut lines) in answers.into_iter().enumerate() {
            analyzed.measures.push(Measure::of(&lines));
            if index == 0 {
                if asks_size {
                    lines.retain(|line| !line.starts_with("Serialization: "));
                }
                analyzed.shown = lines;
            }
        }
        Ok(analyzed)
    }

    /// One text on several workers.
    async fn run_at_once(
        &mut self,
        call: &Call<'_>,
        head: &str,
        plan: &Plan,
        tasks: &[Task],
    ) -> Result<Vec<Vec<String>>> {
        let Some(first) = tasks.first() else { return Ok(Vec::new()) };
        let groups: Vec<GroupId> = tasks.iter().map(|task| task.group).collect();
        let own = call.bound.map(Bound::for_text);
        let types = call.with_staged(&self.explained_types(call));
        let request =
            Request { param_types: &types, bound: own.as_ref(), ..Request::text(format!("{head}{}", first.sql)) };
        self.start_scatter(plan, &groups, &request, call.staged).await?;
        let mut answers = Vec::new();
        let empty = pgherd_sql::Splice::default();
        let errors = Errors::of(&empty, "");
        for (index, group) in groups.iter().enumerate() {
            let mut kept = Vec::new();
            let mut participant = self.take(*group)?;
            let end = self.read_reply(*group, &mut participant, None, Rows::Keep(&mut kept), errors).await;
            self.put_back(*group, participant);
            if let Err(failure) = end {
                self.abandon(&groups[index + 1..]).await;
                return Err(failure);
            }
            answers.push(lines_of(kept)?);
        }
        Ok(answers)
    }

    /// Runs a write that is taken apart or goes to every copy, as without EXPLAIN; its rows are only counted. The
    /// plan is what EXPLAIN says of it before.
    pub(super) async fn analyze_by_running(
        &mut self,
        call: &Call<'_>,
        options: &[(String, Option<String>)],
        plan: &Plan,
        tasks: &[Task],
        statement: &Statement,
    ) -> Result<Analyzed> {
        // What only makes sense together with ANALYZE goes with it.
        let kept = |name: &str| !matches!(name, "analyze" | "analyse" | "wal" | "timing" | "serialize" | "summary");
        let plain: Vec<_> = options.iter().filter(|(name, _)| kept(name)).cloned().collect();
        let shown = match tasks.first() {
            Some(task) if !matches!(plan.tier, Tier::InsertRows(_)) => {
                self.run_task(call, &head_of(&plain), plan, task).await?
            }
            _ => Vec::new(),
        };
        let begun = Instant::now();
        let types = self.explained_types(call);
        let (end, capture) = self.run_captured(call, statement.clone(), types, Capture::count()).await?;
        let Completion::Tag(tag) = end else { return Ok(Analyzed { shown, ..Analyzed::default() }) };
        let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
        let returned = capture.map_or(0, |capture| capture.size().0);
        let timed = is_on(options, &["summary"]) || !options.iter().any(|(name, _)| name == "summary");
        let measure = Measure {
            rows: Some(match returned {
                0 => tag.rsplit(' ').next().unwrap_or("0").to_owned(),
                some => some.to_string(),
            }),
            milliseconds: timed.then(|| format!("{milliseconds:.3}")),
            output: None,
        };
        Ok(Analyzed { shown, measures: vec![measure] })
    }
}

/// The lines of a plan.
pub(super) fn lines_of(rows: Vec<bytes::Bytes>) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for raw in rows {
        for field in fields_of(&Frame { raw })?.into_iter().flatten() {
            lines.push(String::from_utf8_lossy(&field).into_owned());
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(text: &str) -> Measure {
        Measure::of(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn rows_time_and_size_are_read_from_every_format() {
        let text = "Seq Scan on t  (cost=0.00..1.05 rows=7 width=4) (actual time=0.010..0.020 rows=5.00 loops=1)\n  \
                    Buffers: shared hit=1\nPlanning Time: 0.100 ms\nSerialization: time=0.011 ms  output=12kB  format=text\n\
                    Execution Time: 0.345 ms";
        assert_eq!(measure(text).text(), "rows=5 time=0.345 ms output=12kB");
        let old = "Append  (cost=0.00..1.05 rows=7 width=4) (actual rows=1250 loops=1)\nExecution Time: 3.5 ms";
        assert_eq!(measure(old).text(), "rows=1250 time=3.5 ms");
        let json =
            "[{\"Plan\": {\"Actual Rows\": 31.00, \"Plans\": [{\"Actual Rows\": 8.00}]}, \"Execution Time\": 1.250}]";
        assert_eq!(measure(json).text(), "rows=31 time=1.250 ms");
        let xml = "<Plan>\n<Actual-Rows>4</Actual-Rows>\n</Plan>\n<Execution-Time>0.5</Execution-Time>";
        assert_eq!(measure(xml).text(), "rows=4 time=0.5 ms");
        let yaml = "- Plan: \n    Actual Rows: 2\n  Execution Time: 0.25";
        assert_eq!(measure(yaml).text(), "rows=2 time=0.25 ms");
        assert_eq!(measure("Seq Scan on t  (cost=0.00..1.05 rows=7 width=4)").text(), "");
    }

    #[test]
    fn options_are_written_out_again() {
        let options = [("analyze".to_owned(), None), ("format".to_owned(), Some("json".to_owned()))];
        assert_eq!(head_of(&options), "EXPLAIN (analyze, format 'json') ");
        assert_eq!(head_of(&[]), "EXPLAIN ");
        assert!(is_on(&options, &["analyze", "analyse"]));
        let off = [("analyze".to_owned(), None), ("analyze".to_owned(), Some("Off".to_owned()))];
        assert!(!is_on(&off, &["analyze"]));
    }
}
