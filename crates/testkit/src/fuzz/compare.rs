//! A statement on both sides, and what differs.

use std::fmt::Write as _;

use super::{Step, Way};
use crate::client::{Client, Fields, Reply, Row, show_fields, show_row};
use crate::differential::FIRST_USER_OID;
use crate::{Result, Side};

/// Rows of each side that a report shows.
const ROWS_SHOWN_MAX: usize = 8;
/// A statement that takes PostgreSQL longer proves nothing here.
const ORACLE_TIMEOUT: &str = "4s";
/// The client waits for 20 seconds.
const TESTED_TIMEOUT: &str = "12s";

/// How two answers differ. The order is that of badness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// No answer: a hang, or a connection that was closed.
    Lost,
    /// Wrong rows, tags, columns or table contents.
    Rows,
    /// It works on the cluster only, or says XX000 there, or another error.
    Error,
    /// PostgreSQL answers at once, the cluster not in time.
    Slow,
    /// The cluster refuses it by name.
    Refused,
}

#[derive(Debug, Clone)]
pub struct Difference {
    pub kind: Kind,
    /// The same fault has the same words, mostly.
    pub signature: String,
    /// Both answers, for a person to read.
    pub text: String,
    /// The sides have different rows now: nothing that follows can be compared.
    pub diverged: bool,
}

/// The same session on both sides.
pub struct Pair {
    pub oracle: Client,
    pub tested: Client,
    prepared: usize,
}

/// The outcome of a step.
#[derive(Debug)]
pub enum Outcome {
    Same,
    /// With the same error.
    BothFail,
    /// PostgreSQL was too slow, or the answer depends on what nobody promises.
    Unclear,
    Different(Difference),
}

impl Pair {
    pub fn connect(oracle: &Side, tested: &Side, database: &str) -> Result<Pair> {
        let mut pair = Pair { oracle: oracle.connect(database)?, tested: tested.connect(database)?, prepared: 0 };
        pair.oracle.run(&format!("SET statement_timeout = '{ORACLE_TIMEOUT}'"))?;
        pair.tested.run(&format!("SET statement_timeout = '{TESTED_TIMEOUT}'"))?;
        Ok(pair)
    }

    /// Runs the step on both sides, on the cluster first: what it refuses, PostgreSQL only tries.
    pub fn step(&mut self, step: &Step) -> Result<Outcome> {
        self.prepared += 1;
        let name = format!("p{}", self.prepared);
        if step.cluster_only {
            let reply = self.tested.simple(&step.sql, None)?;
            return Ok(match reply.error() {
                None => Outcome::Same,
                Some(fields) => Outcome::Different(Difference {
                    kind: if fields.sqlstate() == "0A000" { Kind::Refused } else { Kind::Error },
                    signature: signature("set up", fields),
                    text: format!("  cluster: {}\n", show_fields(fields)),
                    diverged: true,
                }),
            });
        }
        let found = match send(&mut self.tested, step, &name) {
            Ok(found) => found,
            Err(error) => {
                return Ok(Outcome::Different(Difference {
                    kind: Kind::Lost,
                    signature: format!("lost: {error}"),
                    text: format!("  cluster: {error}\n"),
                    diverged: true,
                }));
            }
        };
        let failed = found.iter().find_map(|r| r.error());
        let expected;
        if let Some(failed) = failed {
            expected = self.try_on_oracle(step, &name, found.last().map_or(b'I', |r| r.status))?;
            if let Some(fields) = expected.iter().find_map(|r| r.error()) {
                return Ok(errors(step, fields, failed));
            }
            if failed.sqlstate() == "57014" {
                return Ok(Outcome::Different(self.report(Kind::Slow, step, "slow".into(), &expected, &found, false)));
            }
            let refused = matches!(failed.sqlstate(), "0A000" | "PH001");
            let kind = if refused { Kind::Refused } else { Kind::Error };
            let words = signature("works on PostgreSQL", failed);
            return Ok(Outcome::Different(self.report(kind, step, words, &expected, &found, false)));
        }
        expected = send(&mut self.oracle, step, &name).map_err(|e| format!("postgres: {e}"))?;
        if let Some(fields) = expected.iter().find_map(|r| r.error()) {
            // PostgreSQL may have no plan for any parameters where values left nothing to be joined.
            let no_plan = fields.message().starts_with("FULL JOIN is only supported with");
            if fields.sqlstate() == "57014" || no_plan {
                // What it changed on the cluster is not on the other side.
                return Ok(if step.only_reads && self.status() == b'I' { Outcome::Unclear } else { lost_track() });
            }
            let words = signature("works on the cluster", fields);
            let diverged = !step.only_reads || found.last().is_some_and(|r| r.status != b'I');
            return Ok(Outcome::Different(self.report(Kind::Error, step, words, &expected, &found, diverged)));
        }
        let mut reasons = Vec::new();
        for (a, b) in expected.iter().zip(&found) {
            replies(a, b, step.ordered, &mut reasons);
        }
        if reasons.is_empty() {
            return Ok(Outcome::Same);
        }
        reasons.sort();
        reasons.dedup();
        let words = format!("answers: {}", reasons.join("; "));
        Ok(Outcome::Different(self.report(Kind::Rows, step, words, &expected, &found, !step.only_reads)))
    }

    /// No transaction is open.
    pub fn is_idle(&mut self) -> Result<bool> {
        Ok(self.oracle.simple("", None)?.status == b'I')
    }

    fn status(&mut self) -> u8 {
        self.oracle.simple("", None).map_or(b'?', |r| r.status)
    }

    /// What PostgreSQL says, without a trace: in a block of its own that is rolled back, or, where the cluster's
    /// transaction is aborted now, so that this one is too.
    fn try_on_oracle(&mut self, step: &Step, name: &str, status: u8) -> Result<Vec<Reply>> {
        let open = status == b'E';
        if !open {
            self.oracle.simple("BEGIN", None)?;
        }
        let expected = send(&mut self.oracle, step, name)?;
        if open {
            self.oracle.simple("SELECT 'aborted'::int", None)?;
        } else {
            self.oracle.simple("ROLLBACK", None)?;
        }
        Ok(expected)
    }

    fn report(
        &self,
        kind: Kind,
        _step: &Step,
        signature: String,
        expected: &[Reply],
        found: &[Reply],
        diverged: bool,
    ) -> Difference {
        let shown = |replies: &[Reply], other: &[Reply]| {
            // Of several executions the first that differs.
            let at = (0..replies.len()).find(|&i| other.get(i).is_none_or(|o| o.answers != replies[i].answers));
            replies.get(at.unwrap_or(0)).map(show_reply).unwrap_or_default()
        };
        let text = format!("  postgres: {}  cluster: {}", shown(expected, found), shown(found, expected));
        Difference { kind, signature, text, diverged }
    }

    /// The contents of every table, compared.
    pub fn contents(&mut self) -> Result<Outcome> {
        let names = self.oracle.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1",
        )?;
        let names: Vec<String> = names.answers[0].rows.iter().map(text_of).collect();
        for name in names {
            let step = Step { only_reads: true, ..Step::sql(&format!("SELECT * FROM {name}")) };
            if let Outcome::Different(mut difference) = self.step(&step)? {
                difference.diverged = true;
                difference.signature = format!("contents: {}", difference.signature);
                difference.text = format!("  table {name}:\n{}", difference.text);
                return Ok(Outcome::Different(difference));
            }
        }
        Ok(Outcome::Same)
    }
}

fn text_of(row: &Row) -> String {
    row.first().and_then(|v| v.as_deref()).map(|v| String::from_utf8_lossy(v).into_owned()).unwrap_or_default()
}

/// Not a fault, but the round is over.
fn lost_track() -> Outcome {
    Outcome::Different(Difference {
        kind: Kind::Slow,
        signature: "PostgreSQL was too slow".into(),
        text: String::new(),
        diverged: true,
    })
}

fn send(client: &mut Client, step: &Step, name: &str) -> Result<Vec<Reply>> {
    let parameters: Vec<Option<Vec<u8>>> =
        step.parameters.iter().map(|v| v.as_ref().map(|v| v.replace("''", "'").into_bytes())).collect();
    let again = if step.only_reads { 2 } else { 1 };
    let mut replies = Vec::new();
    match step.way {
        Way::Simple => {
            for _ in 0..again {
                replies.push(client.simple(&step.sql, None)?);
                if replies.last().is_some_and(|r| r.error().is_some()) {
                    break;
                }
            }
        }
        Way::Extended => {
            for _ in 0..again {
                replies.push(client.extended(&step.sql, &[], &parameters, None)?);
                if replies.last().is_some_and(|r| r.error().is_some()) {
                    break;
                }
            }
        }
        Way::Prepared { times, format } => {
            replies.push(client.prepare(name, &step.sql, &[])?);
            if replies[0].error().is_none() {
                for _ in 0..times {
                    replies.push(client.execute(name, &parameters, format, None)?);
                    if replies.last().is_some_and(|r| r.error().is_some()) {
                        break;
                    }
                }
                client.close_statement(name)?;
            }
        }
    }
    Ok(replies)
}

/// Both fail. Which of several rows that break a constraint is met first is nobody's promise.
fn errors(_step: &Step, a: &Fields, b: &Fields) -> Outcome {
    let (x, y) = (a.sqlstate(), b.sqlstate());
    let constraint = |code: &str| code.starts_with("23") || code == "21000";
    if x == y || x == "57014" || (constraint(x) && constraint(y)) {
        return Outcome::BothFail;
    }
    Outcome::Different(Difference {
        kind: if matches!(y, "0A000" | "PH001") { Kind::Refused } else { Kind::Error },
        signature: if matches!(y, "0A000" | "PH001") {
            signature("works on PostgreSQL", b)
        } else {
            format!("{x} on PostgreSQL, {}", signature("but", b))
        },
        text: format!("  postgres: {}\n  cluster: {}\n", show_fields(a), show_fields(b)),
        diverged: false,
    })
}

/// An error without what is in quotes.
fn signature(what: &str, fields: &Fields) -> String {
    let mut message = String::new();
    for (i, part) in fields.message().split('"').enumerate() {
        message += if i % 2 == 0 { part } else { "…" };
    }
    format!("{what}: {} {message}", fields.sqlstate())
}

fn replies(a: &Reply, b: &Reply, ordered: bool, reasons: &mut Vec<String>) {
    if a.status != b.status {
        reasons.push(format!("status {} and {}", a.status as char, b.status as char));
    }
    if a.answers.len() != b.answers.len() {
        reasons.push("number of answers".into());
    }
    for (a, b) in a.answers.iter().zip(&b.answers) {
        let columns = |answer: &crate::client::Answer| {
            answer.columns.as_ref().map(|columns| {
                columns.iter().map(|c| (c.name.clone(), c.type_oid.min(FIRST_USER_OID), c.typmod)).collect::<Vec<_>>()
            })
        };
        if columns(a) != columns(b) {
            reasons.push("columns".into());
        }
        if a.tag != b.tag {
            reasons.push("tags".into());
        }
        let sorted = |rows: &[Row]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        if sorted(&a.rows) != sorted(&b.rows) {
            reasons.push("rows".into());
        } else if ordered && a.rows != b.rows {
            reasons.push("order".into());
        }
    }
}

fn show_reply(reply: &Reply) -> String {
    let mut text = String::new();
    for answer in &reply.answers {
        match &answer.error {
            Some(error) => _ = writeln!(text, "{}", show_fields(error)),
            None => _ = writeln!(text, "{}", answer.tag.as_deref().unwrap_or("described")),
        }
        for row in answer.rows.iter().take(ROWS_SHOWN_MAX) {
            let _ = writeln!(text, "      {}", show_row(row));
        }
        if answer.rows.len() > ROWS_SHOWN_MAX {
            let _ = writeln!(text, "      … {} rows", answer.rows.len());
        }
    }
    text
}

/// What a step answers, and what is in the tables then, as text that can be compared.
type Seen = (Vec<String>, Vec<String>);

impl Pair {
    /// Runs the step on both sides and takes back what it did. None: it does not differ there, or not in a way that
    /// means anything.
    pub fn probe(&mut self, step: &Step) -> Result<Option<Difference>> {
        let open = self.status() == b'T';
        let (begin, end) = if open { ("SAVEPOINT probe", "ROLLBACK TO probe") } else { ("BEGIN", "ROLLBACK") };
        // What PostgreSQL does not run is not worth the other side's time.
        self.oracle.simple(begin, None)?;
        let name = format!("probe{}", self.prepared);
        let alone = send(&mut self.oracle, step, &name)?;
        self.oracle.simple(end, None)?;
        let fails = alone.iter().find_map(|r| r.error()).map(|f| f.sqlstate().to_owned());
        if fails.as_deref().is_some_and(|code| code.starts_with("42") || code == "57014" || code == "0A000") {
            return Ok(None);
        }
        // A statement that only reads is also run outside of any block.
        if open || !step.only_reads {
            self.oracle.simple(begin, None)?;
            self.tested.simple(begin, None)?;
        }
        let mut outcome = self.step(step)?;
        if matches!(outcome, Outcome::Same) && !step.only_reads && self.status() == b'T' {
            outcome = self.contents()?;
        }
        if open || !step.only_reads {
            self.oracle.simple(end, None)?;
            self.tested.simple(end, None)?;
        }
        let Outcome::Different(difference) = outcome else { return Ok(None) };
        if difference.kind == Kind::Rows && !self.is_clear(step)? {
            return Ok(None);
        }
        Ok(Some(difference))
    }

    /// PostgreSQL answers alike when its rows are stored in another order.
    pub fn is_clear(&mut self, step: &Step) -> Result<bool> {
        let plain = self.seen(step, None)?;
        for salt in ["x", "y"] {
            if self.seen(step, Some(salt))? != plain {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn seen(&mut self, step: &Step, salt: Option<&str>) -> Result<Seen> {
        let open = self.status() == b'T';
        let (begin, end) = if open { ("SAVEPOINT seen", "ROLLBACK TO seen") } else { ("BEGIN", "ROLLBACK") };
        let names = self.oracle.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1",
        )?;
        let names: Vec<String> = names.answers[0].rows.iter().map(text_of).collect();
        self.oracle.run(begin)?;
        if let Some(salt) = salt {
            for name in &names {
                // Generated columns cannot be copied into; their values can.
                self.oracle.run(&format!(
                    "CREATE TEMP TABLE {name} (LIKE public.{name} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING \
                     INDEXES); \
                     INSERT INTO pg_temp.{name} SELECT * FROM public.{name} x ORDER BY md5('{salt}' || x::text)"
                ))?;
            }
        }
        let name = format!("seen{}", self.prepared);
        let replies = send(&mut self.oracle, &Step { way: step.way, ..step.clone() }, &name)?;
        let mut answers: Vec<String> = Vec::new();
        for answer in replies.iter().flat_map(|r| &r.answers) {
            let mut rows: Vec<String> = answer.rows.iter().map(show_row).collect();
            if !step.ordered {
                rows.sort();
            }
            answers.extend(rows);
            answers.push(format!("{:?} {:?}", answer.tag, answer.error.as_ref().map(|e| e.sqlstate().to_owned())));
        }
        let mut contents = Vec::new();
        if !step.only_reads && replies.iter().all(|r| r.error().is_none()) {
            for name in &names {
                let rows = self.oracle.run(&format!("SELECT * FROM {name}"))?;
                let mut rows: Vec<String> = rows.answers[0].rows.iter().map(show_row).collect();
                rows.sort();
                contents.extend(rows);
            }
        }
        self.oracle.run(end)?;
        Ok((answers, contents))
    }

    /// The rows of a table on PostgreSQL, each as an INSERT.
    pub fn rows_as_inserts(&mut self, table: &str) -> Result<Vec<String>> {
        let columns = self.oracle.run(&format!(
            "SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 0 \
             AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
        ))?;
        let columns: Vec<String> = columns.answers[0].rows.iter().map(text_of).collect();
        let values: Vec<String> = columns.iter().map(|c| format!("quote_nullable({c})")).collect();
        let rows = self
            .oracle
            .run(&format!("SELECT concat_ws(', ', {}) FROM {table} x ORDER BY md5(x::text)", values.join(", ")))?;
        let head = format!("INSERT INTO {table} ({}) VALUES", columns.join(", "));
        Ok(rows.answers[0].rows.iter().map(|r| format!("{head} ({})", text_of(r))).collect())
    }
}
