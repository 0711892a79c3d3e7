//! Gives the same SQL to PostgreSQL and to another server (a cluster, or a second PostgreSQL to see that the corpus
//! itself is deterministic) and compares what a client can see: rows, column names and types, command tags, notices,
//! every field of errors, reported settings and the transaction status.
//!
//! Each file is run in three modes: simple Query, the unnamed extended statement, and a named statement that is
//! executed again and again, with text and with binary results. See [`crate::script`] for the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use crate::client::{Answer, Client, Column, Fields, Reply, Row, show_fields, show_row};
use crate::script::{Mode, Script, Statement, Step, release};
use crate::{Error, Result, Side, workspace_file};

/// Eight turns run each third file once.
const FILES_OF_TURN: usize = 24;

/// A prepared statement is executed at least so often: the server may turn to a generic plan at the sixth time.
const EXECUTIONS_MIN: usize = 6;
/// How often a statement that only reads is run in the other modes.
const TEXTS_AGAIN: usize = 3;
/// Rows of each side that a report shows.
const ROWS_SHOWN_MAX: usize = 12;
/// Object ids below this are the same on every server of a version.
pub(crate) const FIRST_USER_OID: u32 = 16384;
/// Types whose binary form has object ids in it: record, record[], regproc, regprocedure, regoper, regoperator,
/// regclass, regtype, regnamespace, regrole, regcollation, regconfig, regdictionary.
const OID_TYPES: [u32; 13] = [2249, 2287, 24, 2202, 2203, 2204, 2205, 2206, 4089, 4096, 4191, 3734, 3769];

/// One statement that did not answer alike.
#[derive(Debug, Clone)]
pub struct Difference {
    pub file: String,
    pub line: usize,
    pub mode: Mode,
    pub sql: String,
    /// Reasons and both answers, for a person to read.
    pub text: String,
}

impl Difference {
    /// The line of the list of known failures that means this one.
    fn key(&self) -> String {
        format!("{} | {} | {}", self.file, self.mode.name(), squeeze(&self.sql))
    }
}

#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Statements of the corpus that were run in at least one mode.
    pub statements: BTreeSet<(String, usize)>,
    pub executions: usize,
    /// Without those of the list of known failures.
    pub different: Vec<Difference>,
    pub known: Vec<Difference>,
    /// Lines of the list of known failures that answer alike now.
    pub fixed: Vec<String>,
    pub refused: BTreeSet<String>,
    pub skipped: BTreeSet<String>,
}

impl Report {
    pub fn add(&mut self, other: Report) {
        self.statements.extend(other.statements);
        self.executions += other.executions;
        self.different.extend(other.different);
        self.known.extend(other.known);
        self.fixed.extend(other.fixed);
        self.refused.extend(other.refused);
        self.skipped.extend(other.skipped);
    }

    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} statements, {} executions: {} different, {} known to differ, {} refused by name, {} skipped\n",
            self.statements.len(),
            self.executions,
            self.different.len(),
            self.known.len(),
            self.refused.len(),
            self.skipped.len()
        );
        for line in &self.refused {
            let _ = writeln!(text, "  refused: {line}");
        }
        for line in &self.skipped {
            let _ = writeln!(text, "  skipped: {line}");
        }
        let mut files: BTreeMap<&str, usize> = BTreeMap::new();
        for difference in &self.different {
            *files.entry(&difference.file).or_default() += 1;
        }
        for (file, n) in files {
            let _ = writeln!(text, "  different in {file}: {n}");
        }
        for line in &self.fixed {
            let _ = writeln!(text, "  answers alike now, take it from the list: {line}");
        }
        text
    }
}

/// The files of the corpus in `tests/differential`. `PGHERD_DIFF_FILES=joins,copy` leaves those whose path has one of
/// the words.
pub fn corpus() -> Result<Vec<PathBuf>> {
    let only = std::env::var("PGHERD_DIFF_FILES").unwrap_or_default();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace_file("tests/differential"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sql") && only.split(',').any(|w| path.to_string_lossy().contains(w)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs files on two sides.
pub struct Runner<'a> {
    oracle: &'a Side,
    tested: &'a Side,
    /// What follows the name in CREATE DATABASE on the oracle, so that its locale is that of the tested side.
    pub oracle_database_options: String,
    pub modes: Vec<Mode>,
    /// `ALTER DATABASE … SET` of each database on the tested side.
    pub database_settings: Vec<(&'static str, String)>,
    /// In short: one file of so many in one of the modes, others at each turn; and nothing is executed again only to
    /// see whether the answer is the same.
    pub turn: Option<usize>,
    /// Prints what breaks a connection when it happens, and not at the end of its file.
    pub print_at_once: bool,
    /// Lines as [`Runner::known_lines`] writes them.
    pub known: BTreeSet<String>,
    /// Databases of files that change nothing, by what they include.
    shared: Mutex<HashMap<String, SharedDatabase>>,
}

type SharedDatabase = Arc<OnceLock<Vec<Difference>>>;

impl<'a> Runner<'a> {
    pub fn new(oracle: &'a Side, tested: &'a Side) -> Runner<'a> {
        Runner {
            oracle,
            tested,
            oracle_database_options: String::new(),
            modes: Mode::ALL.to_vec(),
            database_settings: Vec::new(),
            turn: None,
            print_at_once: std::env::var_os("PGHERD_DIFF_FILES").is_some(),
            known: BTreeSet::new(),
            shared: Mutex::default(),
        }
    }

    /// `PGHERD_DIFF_MODES=simple,extended` runs these modes only: for a person who looks for a mistake.
    pub fn restrict_modes_from_environment(&mut self) {
        if let Ok(words) = std::env::var("PGHERD_DIFF_MODES") {
            self.modes.retain(|m| words.split(',').any(|w| w == m.name()));
        }
    }

    /// Reads a list of known failures: a line each, `#` begins a remark.
    pub fn read_known(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        self.known = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect();
        Ok(())
    }

    /// The list of known failures that this report would need.
    pub fn known_lines(report: &Report) -> BTreeSet<String> {
        report.different.iter().chain(&report.known).map(Difference::key).collect()
    }

    /// Runs every file, `threads` at a time, and prints each file's differences when it is done.
    pub fn run_files(&self, files: &[PathBuf], threads: usize) -> Report {
        let queue = Mutex::new(files.iter().enumerate());
        let total = Mutex::new(Report::default());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((number, file)) = next() {
                        let begun = Instant::now();
                        let modes = self.modes_of(number);
                        if modes.is_empty() {
                            continue;
                        }
                        let report = self.run_file(file, &modes);
                        let mut text = String::new();
                        for difference in &report.different {
                            let _ = writeln!(text, "{}", difference.text);
                        }
                        let shown = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                        let _ = writeln!(
                            text,
                            "{shown}: {} statements, {} executions, {} different, {} known, {} s",
                            report.statements.len(),
                            report.executions,
                            report.different.len(),
                            report.known.len(),
                            begun.elapsed().as_secs()
                        );
                        println!("{text}");
                        total.lock().unwrap_or_else(PoisonError::into_inner).add(report);
                    }
                });
            }
        });
        total.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The modes of a file, which has this number in the list.
    fn modes_of(&self, number: usize) -> Vec<Mode> {
        match self.turn {
            None => self.modes.clone(),
            Some(turn) if (number + turn).is_multiple_of(FILES_OF_TURN) => {
                vec![self.modes[(number + turn) / FILES_OF_TURN % self.modes.len()]]
            }
            Some(_) => Vec::new(),
        }
    }

    /// A file as the oracle's release runs it.
    fn script(&self, path: &Path) -> Result<Script> {
        let version = self.oracle.version()?;
        let release = release(&version).ok_or_else(|| format!("no release of PostgreSQL: {version}"))?;
        Ok(Script::read(path)?.on(release))
    }

    /// Runs one file in these modes.
    pub fn run_file(&self, path: &Path, modes: &[Mode]) -> Report {
        let mut report = Report::default();
        let script = match self.script(path) {
            Ok(script) => script,
            Err(error) => {
                report.different.push(broken(&path.to_string_lossy(), 0, "read the file", &error));
                return report;
            }
        };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_");
        for &mode in modes {
            let database = if script.read_only {
                format!("shared_{}", script.includes.join("_").replace(['.', '/', '-'], "_"))
            } else {
                format!("{stem}_{}", mode.name())
            };
            match self.prepare_database(&script, path, &database) {
                Ok(differences) => report.different.extend(differences),
                Err(error) => {
                    report.different.push(broken(&script.name, 0, "make the database", &error));
                    continue;
                }
            }
            let mut run = Run::new(self, &script.name, &database, mode);
            run.steps(&script.steps);
            report.add(run.report);
        }
        let (known, different) = report.different.drain(..).partition(|d: &Difference| self.known.contains(&d.key()));
        (report.known, report.different) = (known, different);
        let modes: BTreeSet<&str> = modes.iter().map(|m| m.name()).collect();
        let failed: BTreeSet<String> = report.known.iter().map(Difference::key).collect();
        let prefix = format!("{} | ", script.name);
        report.fixed = self
            .known
            .iter()
            .filter(|l| l.strip_prefix(&prefix).and_then(|r| r.split(' ').next()).is_some_and(|m| modes.contains(m)))
            .filter(|l| !failed.contains(*l))
            .cloned()
            .collect();
        report
    }

    /// Makes the database on both sides and runs what the script includes. For a shared one, the first who comes does
    /// it; differences are given to that one only.
    fn prepare_database(&self, script: &Script, path: &Path, database: &str) -> Result<Vec<Difference>> {
        let make = || -> Result<Vec<Difference>> {
            self.oracle.create_database(database, &self.oracle_database_options)?;
            self.tested.create_database(database, "")?;
            for (name, value) in &self.database_settings {
                let mut client = self.tested.connect(&self.tested.target.database)?;
                client.run(&format!("ALTER DATABASE \"{database}\" SET {name} = '{value}'"))?;
            }
            let mut differences = Vec::new();
            for include in &script.includes {
                let included = self.script(&path.with_file_name(include))?;
                let mut run = Run::new(self, &included.name, database, Mode::Simple);
                run.steps(&included.steps);
                differences.extend(run.report.different);
            }
            Ok(differences)
        };
        if !script.read_only {
            return make();
        }
        let cell = {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.entry(database.to_owned()).or_default().clone()
        };
        let mut first = false;
        let differences = cell.get_or_init(|| {
            first = true;
            make().unwrap_or_else(|error| vec![broken(&script.name, 0, "make the shared database", &error)])
        });
        Ok(if first { differences.clone() } else { Vec::new() })
    }
}

fn broken(file: &str, line: usize, what: &str, error: &Error) -> Difference {
    Difference {
        file: file.to_owned(),
        line,
        mode: Mode::Simple,
        sql: what.to_owned(),
        text: format!("--- {file}:{line}: cannot {what}: {error}"),
    }
}

/// One file in one mode.
struct Run<'a> {
    runner: &'a Runner<'a>,
    file: &'a str,
    database: &'a str,
    mode: Mode,
    /// Both ends of each session, by its name.
    sessions: HashMap<String, (Client, Client)>,
    /// Beside those, to ask what object ids mean; they see what is committed.
    namers: Option<(Client, Client)>,
    /// Names of relations on the oracle (false) and on the tested side (true).
    relation_names: HashMap<(bool, u32), Option<String>>,
    statement_number: usize,
    settings_reported: BTreeSet<String>,
    report: Report,
}

impl<'a> Run<'a> {
    fn new(runner: &'a Runner<'a>, file: &'a str, database: &'a str, mode: Mode) -> Run<'a> {
        Run {
            runner,
            file,
            database,
            mode,
            sessions: HashMap::new(),
            namers: None,
            relation_names: HashMap::new(),
            statement_number: 0,
            settings_reported: BTreeSet::new(),
            report: Report::default(),
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            let (line, outcome) = match step {
                Step::Setup { line, cluster, sql } => (*line, self.setup(*cluster, sql).map_err(|e| (sql.clone(), e))),
                Step::Statement(statement) => {
                    (statement.line, self.statement(statement).map_err(|e| (statement.sql.clone(), e)))
                }
            };
            if let Err((sql, error)) = outcome {
                let mode = self.mode;
                let text =
                    format!("--- {}:{line} [{}] {error}\n    {}", self.file, mode.name(), sql.replace('\n', "\n    "));
                self.report.different.push(Difference { file: self.file.to_owned(), line, mode, sql, text });
                if self.runner.print_at_once {
                    println!("{}", self.report.different.last().map_or("", |d| &d.text));
                }
                // Connections may be broken: what follows gets new ones.
                self.sessions.clear();
            }
        }
    }

    fn session(&mut self, name: &str) -> Result<&mut (Client, Client)> {
        if !self.sessions.contains_key(name) {
            let oracle = self.runner.oracle.connect(self.database).map_err(|e| format!("oracle: {e}"))?;
            let tested =
                self.runner.tested.connect(self.database).map_err(|e| format!("{}: {e}", self.runner.tested.name))?;
            self.sessions.insert(name.to_owned(), (oracle, tested));
        }
        self.sessions.get_mut(name).ok_or_else(|| "no session".into())
    }

    fn setup(&mut self, cluster: bool, sql: &str) -> Result<()> {
        let tested_is_cluster = self.runner.tested.is_cluster;
        let (oracle, tested) = self.session("a")?;
        if cluster && tested_is_cluster {
            tested.run(sql)?;
        } else if !cluster {
            oracle.run(sql)?;
            if !tested_is_cluster {
                tested.run(sql)?;
            }
        }
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<()> {
        if let Some(reason) = &statement.skip {
            self.report.skipped.insert(format!("{}:{}: {reason}", self.file, statement.line));
            return Ok(());
        }
        if !statement.modes.is_empty() && !statement.modes.contains(&self.mode) {
            return Ok(());
        }
        self.report.statements.insert((self.file.to_owned(), statement.line));
        self.statement_number += 1;
        let copy_in = statement.copy_in.as_deref();
        let no_parameters = vec![Vec::new()];
        let sets = if statement.parameters.is_empty() { &no_parameters } else { &statement.parameters };
        let mode = if statement.batch { Mode::Simple } else { self.mode };
        // A text that came before may be answered in another way than one that is new.
        let brief = self.runner.turn.is_some();
        let again = match statement.repeat {
            Some(n) => n,
            None if brief => 1,
            None if statement.error.is_none() && only_reads(&statement.sql) => TEXTS_AGAIN,
            None => 1,
        };
        match mode {
            Mode::Simple => {
                for set in sets.iter().cycle().take(sets.len() * again) {
                    let sql = substitute(&statement.sql, set);
                    self.compare(statement, "", |client| client.simple(&sql, copy_in))?;
                }
            }
            Mode::Extended => {
                for set in sets.iter().cycle().take(sets.len() * again) {
                    let bytes = as_bytes(set);
                    self.compare(statement, "", |client| {
                        client.extended(&statement.sql, &statement.types, &bytes, copy_in)
                    })?;
                }
            }
            Mode::Prepared => {
                let name = format!("s{}", self.statement_number);
                let prepared = self
                    .compare(statement, "prepare", |client| client.prepare(&name, &statement.sql, &statement.types))?;
                let Some(columns) = prepared else { return Ok(()) };
                let text_only = statement.text_only
                    || columns.iter().any(|c| c.type_oid >= FIRST_USER_OID || OID_TYPES.contains(&c.type_oid));
                let rounds = match statement.repeat {
                    Some(n) => n,
                    // One with text, one with binary results.
                    None if brief && only_reads(&statement.sql) => 2,
                    None if only_reads(&statement.sql) => EXECUTIONS_MIN.div_ceil(sets.len()).max(2),
                    None => 1,
                };
                'rounds: for round in 0..rounds {
                    let binary = !text_only && round >= rounds.div_ceil(2);
                    for set in sets {
                        let bytes = as_bytes(set);
                        let what = format!("execution {}{}", round + 1, if binary { ", binary" } else { "" });
                        let answered = self.compare(statement, &what, |client| {
                            client.execute(&name, &bytes, i16::from(binary), copy_in)
                        })?;
                        // Inside a transaction every further one would fail for this reason alone.
                        if answered.is_none() && sets.len() == 1 {
                            break 'rounds;
                        }
                    }
                }
                self.compare(&Statement { error: None, ..statement.clone() }, "close", |client| {
                    client.close_statement(&name)
                })?;
            }
        }
        Ok(())
    }

    /// Which table's column each column says it is: the number of the column, and the table by its name where it can be
    /// asked for.
    fn origin_difference(&mut self, expected: &Reply, found: &Reply) -> Result<Vec<String>> {
        let columns = |reply: &Reply| -> Vec<Column> {
            reply.answers.iter().filter_map(|a| a.columns.as_ref()).flatten().cloned().collect()
        };
        let mut reasons = Vec::new();
        for (a, b) in columns(expected).iter().zip(&columns(found)) {
            let (name_a, name_b) = match (a.table_oid, b.table_oid) {
                (0, 0) => continue,
                (0, _) | (_, 0) => (Some("a table".to_owned()), None),
                (a, b) if a < FIRST_USER_OID => (Some(a.to_string()), Some(b.to_string())),
                (a, b) => match self.relation_name(false, a)? {
                    // Of a transaction that is still open, or gone again.
                    None => (None, None),
                    name => (name, self.relation_name(true, b)?),
                },
            };
            if (a.attnum, &name_a) != (b.attnum, &name_b) {
                let shown = |name: Option<String>, column: &Column| {
                    format!("column {} of {}", column.attnum, name.as_deref().unwrap_or("no known table"))
                };
                reasons.push(format!("column {} is {} and {}", a.name, shown(name_a, a), shown(name_b, b)));
            }
        }
        Ok(reasons)
    }

    /// A relation's name with its schema, where it is there for everybody.
    fn relation_name(&mut self, tested: bool, oid: u32) -> Result<Option<String>> {
        if let Some(name) = self.relation_names.get(&(tested, oid)) {
            return Ok(name.clone());
        }
        if self.namers.is_none() {
            let (oracle, tested) = (&self.runner.oracle, &self.runner.tested);
            self.namers = Some((oracle.connect(self.database)?, tested.connect(self.database)?));
        }
        let Some((oracle, other)) = self.namers.as_mut() else { return Ok(None) };
        let sql = format!(
            "SELECT pg_catalog.regexp_replace(n.nspname, '^pg_temp_.*', 'pg_temp') || '.' || c.relname \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = {oid}"
        );
        let reply = if tested { other } else { oracle }.simple(&sql, None)?;
        let row = reply.answers.iter().flat_map(|a| &a.rows).next();
        let name = row.and_then(|r| r.first().cloned().flatten()).map(|n| String::from_utf8_lossy(&n).into_owned());
        // One that is not there yet may come, and may be renamed.
        if name.is_some() {
            self.relation_names.insert((tested, oid), name.clone());
        }
        Ok(name)
    }

    /// Runs a request on both sides. Gives back the columns that the oracle described, or none where it failed.
    fn compare(
        &mut self,
        statement: &Statement,
        what: &str,
        request: impl Fn(&mut Client) -> Result<Reply>,
    ) -> Result<Option<Vec<Column>>> {
        let is_cluster = self.runner.tested.is_cluster;
        let tested_name = self.runner.tested.name.clone();
        let (oracle, tested) = self.session(&statement.session)?;
        let refused = statement.refused.as_deref().filter(|_| is_cluster && what != "close");
        let mut reasons = Vec::new();
        let found = if let Some(code) = refused {
            let found = request(tested).map_err(|e| format!("{tested_name}: {e}"))?;
            if found.error().is_some_and(|fields| fields.sqlstate() == code) {
                // The oracle does not run it either, so that what follows is compared on the same rows.
                if found.status == b'E' {
                    oracle.simple("SELECT 'aborted'::int", None).map_err(|e| format!("oracle: {e}"))?;
                }
                self.report.executions += 1;
                self.report.refused.insert(format!("{}:{}: {}", self.file, statement.line, squeeze(&statement.sql)));
                return Ok(None);
            }
            // Parse may still work where Execute is refused.
            if what != "prepare" {
                reasons.push(format!("not refused with {code} any more"));
            }
            Some(found)
        } else {
            None
        };
        let expected = request(oracle).map_err(|e| format!("oracle: {e}"))?;
        let found = match found {
            Some(found) => found,
            None => request(tested).map_err(|e| format!("{tested_name}: {e}"))?,
        };
        let columns = expected.answers.iter().find_map(|a| a.columns.clone()).unwrap_or_default();
        // In prepared mode the first failing request is Parse or the first execution; later ones may succeed or fail.
        match (&statement.error, expected.error()) {
            (None, Some(fields)) => reasons.push(format!("the corpus does not announce: {}", show_fields(fields))),
            (Some(code), Some(fields)) if fields.sqlstate() != code => {
                reasons.push(format!("the corpus announces {code}, PostgreSQL says {}", show_fields(fields)))
            }
            (Some(code), None) if what.is_empty() => reasons.push(format!("the corpus announces {code}, but it works")),
            _ => {}
        }
        difference(statement, &expected, &found, &mut reasons);
        let settings = |client: &Client| {
            let mut settings = client.settings.clone();
            settings.remove("in_hot_standby");
            settings
        };
        let (a, b) = (settings(oracle), settings(tested));
        for (name, value) in &a {
            let reason = format!("setting {name} is reported as {value:?} and {:?}", b.get(name));
            // A setting that stays different is reported when it begins to differ.
            if b.get(name) != Some(value) && self.settings_reported.insert(reason.clone()) {
                reasons.push(reason);
            }
        }
        let failed = expected.error().is_some();
        reasons.extend(self.origin_difference(&expected, &found)?);
        self.report.executions += 1;
        if !reasons.is_empty() {
            let mut text = format!("--- {}:{} [{}", self.file, statement.line, self.mode.name());
            if !what.is_empty() {
                let _ = write!(text, ", {what}");
            }
            let _ = writeln!(text, "] {}", reasons.join("; "));
            let _ = writeln!(text, "    {}", statement.sql.replace('\n', "\n    "));
            let _ = write!(text, "  postgres: {}", show_reply(&expected));
            let _ = write!(text, "  {tested_name}: {}", show_reply(&found));
            // One report of a statement and mode is enough.
            let reported = self.report.different.last().is_some_and(|d| d.line == statement.line);
            if !reported {
                self.report.different.push(Difference {
                    file: self.file.to_owned(),
                    line: statement.line,
                    mode: self.mode,
                    sql: statement.sql.clone(),
                    text,
                });
            }
            if expected.status != found.status {
                // What follows would only differ for this reason.
                let (oracle, tested) = self.session(&statement.session)?;
                for client in [oracle, tested] {
                    let _ = client.simple("ROLLBACK", None);
                }
            }
        }
        Ok(if failed { None } else { Some(columns) })
    }
}

/// What differs between two replies, as sentences.
fn difference(statement: &Statement, a: &Reply, b: &Reply, reasons: &mut Vec<String>) {
    if a.status != b.status {
        reasons.push(format!("transaction status is {} and {}", a.status as char, b.status as char));
    }
    let types = |reply: &Reply| -> Option<Vec<u32>> {
        let types = reply.parameter_types.as_ref()?;
        Some(types.iter().map(|t| (*t).min(FIRST_USER_OID)).collect())
    };
    if types(a) != types(b) {
        reasons.push(format!("parameter types are {:?} and {:?}", a.parameter_types, b.parameter_types));
    }
    if a.answers.len() != b.answers.len() {
        reasons.push(format!("{} and {} answers", a.answers.len(), b.answers.len()));
    }
    for (a, b) in a.answers.iter().zip(&b.answers) {
        answer_difference(statement, a, b, reasons);
    }
    if !statement.loose {
        let shown = |notices: &[Fields]| {
            let mut lines: Vec<String> = notices.iter().map(|f| show_fields(&comparable(f))).collect();
            lines.sort();
            lines
        };
        let (a, b) = (shown(&a.notices), shown(&b.notices));
        if a != b {
            reasons.push(format!("notices are {a:?} and {b:?}"));
        }
    }
}

fn answer_difference(statement: &Statement, a: &Answer, b: &Answer, reasons: &mut Vec<String>) {
    match (&a.columns, &b.columns) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b).filter(|(a, b)| comparable_column(a) != comparable_column(b)) {
                reasons.push(format!("column is {} and {}", show_column(a), show_column(b)));
            }
        }
        (None, None) => {}
        (a, b) => reasons.push(format!(
            "{:?} and {:?} columns",
            a.as_ref().map(|c| c.len()).unwrap_or(0),
            b.as_ref().map(|c| c.len()).unwrap_or(0)
        )),
    }
    match (&a.error, &b.error) {
        (None, None) => {}
        (Some(a), Some(b)) if statement.loose => {
            if a.sqlstate() != b.sqlstate() {
                reasons.push(format!("SQLSTATE is {} and {}", a.sqlstate(), b.sqlstate()));
            }
        }
        (Some(a), Some(b)) => {
            let (a, b) = (comparable(a), comparable(b));
            if a != b {
                let codes: BTreeSet<char> = a.0.keys().chain(b.0.keys()).copied().collect();
                let differing: Vec<String> = codes
                    .into_iter()
                    .filter(|c| a.0.get(c) != b.0.get(c))
                    .map(|c| format!("{c}: {:?} and {:?}", a.get(c), b.get(c)))
                    .collect();
                reasons.push(format!("error fields differ ({})", differing.join(", ")));
            }
        }
        (Some(_), None) => reasons.push("it fails on PostgreSQL only".into()),
        (None, Some(_)) => reasons.push("it works on PostgreSQL only".into()),
    }
    if a.tag != b.tag {
        reasons.push(format!("tags are {:?} and {:?}", a.tag, b.tag));
    }
    let ordered = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        if !statement.ordered {
            rows.sort();
        }
        rows
    };
    let (rows_a, rows_b) = (ordered(&a.rows), ordered(&b.rows));
    let equal = rows_a.len() == rows_b.len()
        && rows_a.iter().zip(&rows_b).all(|(a, b)| match statement.float {
            None => a == b,
            Some(tolerance) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| nearly(a, b, tolerance)),
        });
    if !equal {
        reasons.push(format!("rows differ ({} and {})", rows_a.len(), rows_b.len()));
    }
    let copied = |data: &[Vec<u8>]| {
        let mut data = data.to_vec();
        if !statement.ordered {
            data.sort();
        }
        data
    };
    if copied(&a.copied) != copied(&b.copied) {
        reasons.push("the copied data differ".into());
    }
}

/// The parts of a column that are the same on two servers: all but the object ids of its table and of its user type.
/// Which table it comes from is compared apart, see [`Run::origin_difference`].
fn comparable_column(column: &Column) -> Column {
    Column { table_oid: 0, attnum: 0, type_oid: column.type_oid.min(FIRST_USER_OID), ..column.clone() }
}

fn show_column(column: &Column) -> String {
    format!("{} type {} {} {} format {}", column.name, column.type_oid, column.typlen, column.typmod, column.format)
}

/// An error without the place in PostgreSQL's source and without its context, which may name a remote statement.
fn comparable(fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    fields.0.retain(|code, _| !matches!(code, 'F' | 'L' | 'R' | 'W'));
    fields
}

fn nearly(a: &Option<Vec<u8>>, b: &Option<Vec<u8>>, tolerance: f64) -> bool {
    if a == b {
        return true;
    }
    let number = |value: &Option<Vec<u8>>| -> Option<f64> {
        let bytes = value.as_ref()?;
        // A float8 in binary form has eight bytes that are no number when read as text.
        match std::str::from_utf8(bytes).ok().and_then(|t| t.parse().ok()) {
            Some(number) => Some(number),
            None => <[u8; 8]>::try_from(bytes.as_slice()).ok().map(f64::from_be_bytes),
        }
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * a.abs().max(b.abs()),
        _ => false,
    }
}

fn show_reply(reply: &Reply) -> String {
    let mut text = String::new();
    for answer in &reply.answers {
        if let Some(error) = &answer.error {
            let _ = writeln!(text, "{}", show_fields(error));
        } else {
            let _ = writeln!(text, "{}", answer.tag.as_deref().unwrap_or("described"));
        }
        for row in answer.rows.iter().take(ROWS_SHOWN_MAX) {
            let _ = writeln!(text, "      {}", show_row(row));
        }
        if answer.rows.len() > ROWS_SHOWN_MAX {
            let _ = writeln!(text, "      … {} rows", answer.rows.len());
        }
        for data in answer.copied.iter().take(ROWS_SHOWN_MAX) {
            let _ = writeln!(text, "      {}", String::from_utf8_lossy(data).trim_end());
        }
    }
    for notice in &reply.notices {
        let _ = writeln!(text, "      {}", show_fields(notice));
    }
    if text.is_empty() {
        text.push('\n');
    }
    text
}

fn squeeze(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn as_bytes(set: &[Option<String>]) -> Vec<Option<Vec<u8>>> {
    set.iter().map(|value| value.as_ref().map(|v| v.as_bytes().to_vec())).collect()
}

/// `$n` as a literal of unknown type, which is what a parameter without a declared type is.
pub(crate) fn substitute(sql: &str, set: &[Option<String>]) -> String {
    let mut text = sql.to_owned();
    for (index, value) in set.iter().enumerate().rev() {
        let literal = value.as_ref().map_or("NULL".to_owned(), |v| format!("'{}'", v.replace('\'', "''")));
        text = text.replace(&format!("${}", index + 1), &literal);
    }
    text
}

/// By its words: whether running it again changes nothing.
fn only_reads(sql: &str) -> bool {
    let lower = sql.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let reads = matches!(words.first(), Some(&("select" | "values" | "table" | "with" | "show")));
    reads && !words.iter().any(|w| matches!(*w, "insert" | "update" | "delete" | "merge" | "into" | "setval"))
}
