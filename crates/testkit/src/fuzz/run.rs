//! Carries rounds out on both sides, shrinks what differs, and reports.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::compare::{Difference, Kind, Outcome, Pair};
use super::{Round, Step, Way, generate, shrink};
use crate::{Result, Side};

/// Statements that shrinking may try, and scripts.
const STATEMENTS_TRIED_MAX: usize = 1500;
const SCRIPTS_TRIED_MAX: usize = 60;

#[derive(Debug, Clone, Default)]
pub struct Found {
    pub times: usize,
    pub seed: u64,
    pub kind: Option<Kind>,
    pub text: String,
}

#[derive(Debug, Default)]
pub struct Report {
    pub rounds: usize,
    pub statements: usize,
    pub unclear: usize,
    /// Those that fail alike on both sides.
    pub failed: usize,
    /// By what is in common.
    pub found: BTreeMap<String, Found>,
}

impl Report {
    /// Everything but refusals by name.
    pub fn wrong(&self) -> usize {
        self.found.values().filter(|f| !matches!(f.kind, Some(Kind::Refused))).count()
    }

    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} rounds, {} statements, {} fail on both sides, {} unclear, {} kinds of differences, \
             {} kinds of refusals\n",
            self.rounds,
            self.statements,
            self.failed,
            self.unclear,
            self.wrong(),
            self.found.len() - self.wrong()
        );
        let mut found: Vec<_> = self.found.iter().collect();
        found.sort_by_key(|(_, f)| (f.kind, std::cmp::Reverse(f.times)));
        for (signature, found) in found {
            let _ = writeln!(text, "  {:?} {} times, first seed {}: {signature}", found.kind, found.times, found.seed);
        }
        text
    }
}

pub struct Runner<'a> {
    pub oracle: &'a Side,
    pub tested: &'a Side,
    /// What follows the name in CREATE DATABASE on the oracle.
    pub database_options: String,
    pub statements: usize,
    /// Scripts that differ are written here.
    pub out: Option<PathBuf>,
    /// Shrink what differs; without it only the statement is shown.
    pub shrink: bool,
    /// Also what is refused by name.
    pub shrink_refused: bool,
    pub report: Report,
    databases: usize,
    /// The database of each purpose.
    open: BTreeMap<String, String>,
}

impl<'a> Runner<'a> {
    pub fn new(oracle: &'a Side, tested: &'a Side) -> Runner<'a> {
        Runner {
            oracle,
            tested,
            database_options: String::new(),
            statements: 120,
            out: None,
            shrink: true,
            shrink_refused: false,
            report: Report::default(),
            databases: 0,
            open: BTreeMap::new(),
        }
    }

    /// A new database, in place of the one before of the same purpose.
    fn fresh(&mut self, purpose: &str) -> Result<Pair> {
        self.databases += 1;
        let name = format!("{purpose}_{}", self.databases);
        if let Some(old) = self.open.insert(purpose.to_owned(), name.clone()) {
            for side in [self.oracle, self.tested] {
                let _ = side
                    .connect(&side.target.database)
                    .and_then(|mut c| c.simple(&format!("DROP DATABASE IF EXISTS {old} WITH (FORCE)"), None));
            }
        }
        self.oracle.create_database(&name, &self.database_options)?;
        self.tested.create_database(&name, "")?;
        Pair::connect(self.oracle, self.tested, &name)
    }

    /// One round. Stops where the sides have different rows.
    pub fn round(&mut self, seed: u64) -> Result<()> {
        let round = generate(seed, self.statements);
        let mut pair = self.fresh("fuzz_round")?;
        self.report.rounds += 1;
        let all: Vec<&Step> = round.setup.iter().chain(&round.steps).collect();
        for (number, &step) in all.iter().enumerate() {
            self.report.statements += 1;
            match check(&mut pair, step)? {
                Outcome::Same => {}
                Outcome::BothFail => self.report.failed += 1,
                Outcome::Unclear => self.report.unclear += 1,
                Outcome::Different(difference) => {
                    if difference.kind == Kind::Rows && step.only_reads && !pair.is_clear(step).unwrap_or(false) {
                        self.report.unclear += 1;
                        continue;
                    }
                    let diverged = difference.diverged;
                    self.differs(&round, number, step, difference);
                    if diverged {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn differs(&mut self, round: &Round, number: usize, step: &Step, difference: Difference) {
        if difference.text.is_empty() {
            self.report.unclear += 1;
            return;
        }
        let entry = self.report.found.entry(difference.signature.clone()).or_default();
        entry.times += 1;
        // Wrong rows have many causes and one signature.
        let examples = if difference.kind == Kind::Rows { 6 } else { 1 };
        if entry.times > examples {
            return;
        }
        entry.kind = Some(difference.kind);
        let examples = entry.times;
        if examples == 1 {
            entry.seed = round.seed;
        }
        let mut text = format!(
            "=== seed {}, statement {number}: {:?}: {}\n    {}\n{}",
            round.seed, difference.kind, difference.signature, step, difference.text
        );
        if self.shrink && number >= round.setup.len() && (difference.kind != Kind::Refused || self.shrink_refused) {
            match self.shrunk(round, number, &difference) {
                Ok(script) => text += &script,
                Err(error) => _ = writeln!(text, "  (shrinking ended: {error})"),
            }
        }
        println!("{text}");
        if let Some(directory) = &self.out {
            let _ = std::fs::create_dir_all(directory);
            let _ = std::fs::write(directory.join(format!("{}-{number}.txt", round.seed)), &text);
        }
    }

    /// A small script that shows the difference, or what was tried.
    fn shrunk(&mut self, round: &Round, number: usize, difference: &Difference) -> Result<String> {
        let all: Vec<Step> = round.setup.iter().chain(&round.steps).cloned().collect();
        let mut pair = self.fresh("fuzz_shrink")?;
        for step in &all[..number] {
            check(&mut pair, step)?;
        }
        let mut step = all[number].clone();
        let mut out = String::new();
        let same = |found: &Option<Difference>| {
            found.as_ref().is_some_and(|f| {
                f.kind == difference.kind
                    && (f.kind == Kind::Rows || f.signature == difference.signature)
                    && f.kind != Kind::Lost
            })
        };
        if matches!(difference.kind, Kind::Lost | Kind::Slow) {
            return self.shrunk_script(&all[..=number], difference);
        }
        // With literals in place of parameters, where that differs too.
        let plain = Step { way: Way::Simple, sql: with_literals(&step), parameters: Vec::new(), ..step.clone() };
        if same(&pair.probe(&plain)?) {
            step = plain;
        } else if !same(&pair.probe(&step)?) {
            return self.shrunk_script(&all[..=number], difference);
        }
        let mut budget = STATEMENTS_TRIED_MAX;
        let mut broken = None;
        let sql = shrink::statement(&step.sql, &mut budget, |sql| {
            if broken.is_some() || (sql.contains("LIMIT") && !step.ordered && !sql.contains("ORDER BY")) {
                return false;
            }
            match pair.probe(&Step { sql: sql.to_owned(), ..step.clone() }) {
                Ok(found) => same(&found),
                Err(error) => {
                    broken = Some(error);
                    false
                }
            }
        });
        step.sql = sql;
        let _ = writeln!(out, "  shrunk: {}", step);
        if let Some(error) = broken {
            let _ = writeln!(out, "  (a smaller one ended in: {error})");
            return Ok(out);
        }
        let found = pair.probe(&step)?;
        if let Some(found) = &found {
            let _ = write!(out, "{}", found.text);
        }
        // The tables that it names, with the rows they have now.
        let mut script = Vec::new();
        for before in all[..number].iter().filter(|s| !s.only_reads) {
            let insert = before.sql.starts_with("INSERT") || before.sql.starts_with("DELETE");
            let own = round.setup.contains(before);
            let definition = ["CREATE", "ALTER", "SELECT create_"].iter().any(|w| before.sql.starts_with(w));
            if (own && !insert) || (!own && definition) {
                script.push(before.clone());
            }
        }
        let tables = pair.oracle.run(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1",
        )?;
        let mut rows = Vec::new();
        for table in tables.answers[0].rows.iter().filter_map(|r| r.first().cloned().flatten()) {
            let table = String::from_utf8_lossy(&table).into_owned();
            rows.extend(pair.rows_as_inserts(&table)?.into_iter().map(|sql| Step::sql(&sql)));
        }
        // Foreign keys last.
        let keys: Vec<Step> = script.iter().filter(|s| s.sql.contains("FOREIGN KEY")).cloned().collect();
        script.retain(|s| !s.sql.contains("FOREIGN KEY"));
        script.extend(rows);
        script.extend(keys);
        script.push(step.clone());
        out += &self.shrunk_script(&script, difference)?;
        Ok(out)
    }

    /// Leaves statements out of a script as long as it differs in the same way.
    fn shrunk_script(&mut self, script: &[Step], difference: &Difference) -> Result<String> {
        let mut last = None;
        let mut fails = |script: &[Step]| {
            let found = self.replay(script).ok().flatten();
            let same = found.as_ref().is_some_and(|f| {
                f.kind == difference.kind && (f.kind == Kind::Rows || f.signature == difference.signature)
            });
            if same {
                last = found;
            }
            same
        };
        if !fails(script) {
            return Ok("  (a script of its tables and rows alone does not differ)\n".into());
        }
        let mut budget = if difference.kind == Kind::Lost { 8 } else { SCRIPTS_TRIED_MAX };
        let small = shrink::list(script, &mut budget, fails);
        let mut out = String::from("  script:\n");
        for step in &small {
            let _ = writeln!(out, "    {step}");
        }
        if let Some(last) = last {
            out += &last.text;
        }
        Ok(out)
    }

    /// The first difference of a script from nothing.
    fn replay(&mut self, script: &[Step]) -> Result<Option<Difference>> {
        let mut pair = self.fresh("fuzz_shrink")?;
        for step in script {
            match check(&mut pair, step)? {
                Outcome::Different(difference) if !difference.text.is_empty() => {
                    if difference.kind == Kind::Rows && step.only_reads && !pair.is_clear(step).unwrap_or(false) {
                        continue;
                    }
                    return Ok(Some(difference));
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

/// A step, and after it the tables' contents where a transaction with writes has ended.
fn check(pair: &mut Pair, step: &Step) -> Result<Outcome> {
    let outcome = pair.step(step)?;
    if !matches!(outcome, Outcome::Same) || step.only_reads || step.cluster_only || !pair.is_idle()? {
        return Ok(outcome);
    }
    pair.contents()
}

fn with_literals(step: &Step) -> String {
    let mut sql = step.sql.clone();
    for (i, value) in step.parameters.iter().enumerate().rev() {
        let literal = value.as_ref().map_or("NULL".to_owned(), |v| format!("'{v}'"));
        sql = sql.replace(&format!("${}", i + 1), &literal);
    }
    sql
}
