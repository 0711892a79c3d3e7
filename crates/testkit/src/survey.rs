//! What the corpus covers, by topic, and in which way a cluster runs it: `docs/sql.md`. Each statement is given to
//! EXPLAIN where it stands in its file, in the state that the statements above have left, and is then run.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::client::{Client, Reply};
use crate::differential::substitute;
use crate::script::{Script, Statement, Step};
use crate::{Error, Result, Side};

/// Columns of the table: how a statement is run, as its header shows it.
const COLUMNS: [&str; 13] = [
    "local",
    "route",
    "scatter",
    "stage",
    "apart",
    "replicate",
    "federate",
    "definition",
    "COPY",
    "program",
    "session",
    "error",
    "refused",
];

/// The columns that the files themselves decide.
const FROM_FILES: [&str; 5] = ["definition", "COPY", "program", "error", "refused"];

/// One file of the corpus.
#[derive(Debug, Clone, Default)]
pub struct Topic {
    pub file: String,
    /// The remark at its beginning.
    pub title: String,
    pub statements: usize,
    pub ways: BTreeMap<&'static str, usize>,
    /// What pgherd refuses and PostgreSQL runs: SQLSTATE and statement.
    pub refused: Vec<(String, String)>,
    pub skipped: Vec<(String, String)>,
}

/// What the files say by themselves: everything but the way of each statement that EXPLAIN takes.
pub fn outline(files: &[PathBuf]) -> Result<Vec<Topic>> {
    let mut topics = Vec::new();
    for path in files {
        let script = Script::read(path)?;
        let mut topic = Topic { file: script.name.clone(), title: title(path)?, ..Topic::default() };
        for step in &script.steps {
            if let Step::Statement(statement) = step {
                let way = topic.note(statement, None);
                topic.count(way);
            }
        }
        topics.push(topic);
    }
    topics.sort_by(|a: &Topic, b: &Topic| a.file.cmp(&b.file));
    Ok(topics)
}

impl Topic {
    fn count(&mut self, way: &'static str) {
        self.statements += 1;
        *self.ways.entry(way).or_default() += 1;
    }

    /// The column where a statement counts, with what EXPLAIN has said of it.
    fn note(&mut self, statement: &Statement, explained: Option<&'static str>) -> &'static str {
        let words = squeeze(&statement.sql);
        if let Some(reason) = &statement.skip {
            self.skipped.push((reason.clone(), words));
            return "session";
        }
        if let Some(code) = &statement.refused {
            self.refused.push((code.clone(), words));
            return "refused";
        }
        match (kind(&statement.sql), explained) {
            _ if statement.error.is_some() => "error",
            (_, Some(way)) => way,
            // Several statements at once, or one that EXPLAIN does not take.
            ("data", None) => "session",
            (kind, None) => kind,
        }
    }
}

/// Looks at every file, `threads` at a time.
pub fn survey(side: &Side, files: &[PathBuf], settings: &[(&str, String)], threads: usize) -> Result<Vec<Topic>> {
    let queue = Mutex::new(files.iter());
    let topics = Mutex::new(Vec::new());
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(file) = lock(&queue).next() {
                    match survey_file(side, file, settings) {
                        Ok(topic) => lock(&topics).push(topic),
                        Err(error) => {
                            lock(&failure).get_or_insert(format!("{}: {error}", file.display()).into());
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let mut topics = topics.into_inner().unwrap_or_else(PoisonError::into_inner);
    topics.sort_by(|a: &Topic, b: &Topic| a.file.cmp(&b.file));
    Ok(topics)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn survey_file(side: &Side, path: &Path, settings: &[(&str, String)]) -> Result<Topic> {
    let script = Script::read(path)?;
    let database = format!("survey_{}", path.file_stem().unwrap_or_default().to_string_lossy());
    side.create_database(&database, "")?;
    let mut admin = side.connect(&side.target.database)?;
    for (name, value) in settings {
        admin.run(&format!("ALTER DATABASE \"{database}\" SET {name} = '{value}'"))?;
    }
    let mut topic = Topic { file: script.name.clone(), title: title(path)?, ..Topic::default() };
    for include in &script.includes {
        let included = Script::read(&path.with_file_name(include))?;
        survey_steps(side, &database, &included.steps, None)?;
    }
    survey_steps(side, &database, &script.steps, Some(&mut topic))?;
    let _ = admin.simple(&format!("DROP DATABASE \"{database}\""), None)?;
    Ok(topic)
}

/// The remark in the first lines.
fn title(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path)?;
    let lines = text.lines().skip_while(|l| l.starts_with("--@"));
    let words: Vec<&str> = lines.map_while(|l| l.strip_prefix("-- ")).map(str::trim).collect();
    if words.is_empty() {
        return Err("the first lines do not say what the file is about".into());
    }
    Ok(words.join(" "))
}

/// Without a topic the statements are only run.
fn survey_steps(side: &Side, database: &str, steps: &[Step], mut topic: Option<&mut Topic>) -> Result<()> {
    let mut sessions: HashMap<&str, (Client, u8)> = HashMap::new();
    let connect = || side.connect(database).map(|client| (client, b'I'));
    for step in steps {
        match step {
            Step::Setup { cluster: false, .. } => {}
            Step::Setup { sql, .. } => {
                if !sessions.contains_key("a") {
                    sessions.insert("a", connect()?);
                }
                if let Some((client, status)) = sessions.get_mut("a") {
                    // Some are known to fail (tests/KNOWN).
                    *status = client.simple(sql, None)?.status;
                }
            }
            Step::Statement(statement) => {
                if !sessions.contains_key(statement.session.as_str()) {
                    sessions.insert(&statement.session, connect()?);
                }
                match (sessions.get_mut(statement.session.as_str()), &mut topic) {
                    (Some((client, status)), Some(topic)) => {
                        let way = survey_statement(client, status, statement, topic)?;
                        topic.count(way);
                    }
                    (Some((client, _)), None) => {
                        client.simple(&statement.sql, statement.copy_in.as_deref())?;
                    }
                    (None, _) => {}
                }
            }
        }
    }
    Ok(())
}

/// Explains and runs one statement. Gives the column where it counts.
fn survey_statement(
    client: &mut Client,
    status: &mut u8,
    statement: &Statement,
    topic: &mut Topic,
) -> Result<&'static str> {
    if statement.skip.is_some() {
        return Ok(topic.note(statement, None));
    }
    let no_parameters = Vec::new();
    let sql = substitute(&statement.sql, statement.parameters.first().unwrap_or(&no_parameters));
    let is_data = kind(&statement.sql) == "data" && !statement.batch;
    let explained = if is_data { explain(client, *status, &sql)? } else { None };
    if statement.refused.is_none() {
        *status = client.simple(&sql, statement.copy_in.as_deref())?.status;
    } else if *status == b'T' {
        *status = client.simple("SELECT 'aborted'::int", None)?.status;
    }
    Ok(topic.note(statement, explained))
}

/// The way that EXPLAIN names.
fn explain(client: &mut Client, status: u8, sql: &str) -> Result<Option<&'static str>> {
    if status == b'E' {
        return Ok(None);
    }
    let in_block = status == b'T';
    if in_block {
        client.run("SAVEPOINT pgherd_survey")?;
    }
    let reply = client.simple(&format!("EXPLAIN {sql}"), None)?;
    if in_block {
        let undo = if reply.error().is_some() { "ROLLBACK TO pgherd_survey; " } else { "" };
        client.run(&format!("{undo}RELEASE pgherd_survey"))?;
    }
    Ok(first_line(&reply).map(|line| match line.strip_prefix("pgherd ").and_then(|l| l.split("  (").next()) {
        Some("Route") => "route",
        Some("Scatter") => "scatter",
        Some("Stage") => "stage",
        Some("Insert Rows" | "Insert Select") => "apart",
        Some("Replicate") => "replicate",
        Some("Federate" | "Merge Rows") => "federate",
        _ => "local",
    }))
}

fn first_line(reply: &Reply) -> Option<String> {
    if reply.error().is_some() {
        return None;
    }
    let row = reply.answers.iter().flat_map(|a| &a.rows).next()?;
    row.first().cloned().flatten().map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// By its first word: `data` is what EXPLAIN takes.
fn kind(sql: &str) -> &'static str {
    let word: String = sql.trim_start_matches(['(', ' ']).chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    match word.to_ascii_lowercase().as_str() {
        "select" | "with" | "values" | "table" | "insert" | "update" | "delete" | "merge" | "execute" => "data",
        "create" | "alter" | "drop" | "comment" | "grant" | "revoke" | "truncate" | "refresh" | "reindex"
        | "vacuum" | "analyze" | "cluster" | "lock" | "reassign" | "security" | "import" => "definition",
        "copy" => "COPY",
        "do" | "call" => "program",
        _ => "session",
    }
}

fn squeeze(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `docs/sql.md`.
pub fn page(topics: &[Topic], shape: &str) -> String {
    let mut out = String::from(INTRODUCTION);
    let _ = writeln!(out, "\nCounted on {shape}.\n");
    let _ = writeln!(out, "| file | all | {} |", COLUMNS.join(" | "));
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(COLUMNS.len()));
    let mut total = Topic::default();
    for topic in topics {
        let _ = writeln!(out, "| [{0}](../tests/differential/{0}) | {1} |", topic.file, cells(topic));
        total.statements += topic.statements;
        for (way, n) in &topic.ways {
            *total.ways.entry(way).or_default() += n;
        }
    }
    let _ = writeln!(out, "| all | {} |", cells(&total));
    out.push_str("\n## Topics\n\n");
    for topic in topics {
        let _ = writeln!(out, "- **{}**: {}", topic.file.trim_end_matches(".sql"), topic.title);
    }
    out.push_str(
        "\n## Refused\n\nStatements of the corpus that PostgreSQL runs and pgherd refuses, with their SQLSTATE:\n\n",
    );
    for topic in topics {
        for (code, sql) in &topic.refused {
            let _ = writeln!(out, "- {} `{code}`: `{}`", topic.file, shorten(sql));
        }
    }
    let skipped: Vec<String> = topics
        .iter()
        .flat_map(|t| t.skipped.iter().map(|(reason, sql)| format!("- {}: {reason}: `{}`", t.file, shorten(sql))))
        .collect();
    if !skipped.is_empty() {
        let _ = writeln!(out, "\n## Not compared\n\n{}", skipped.join("\n"));
    }
    out
}

fn cells(topic: &Topic) -> String {
    let numbers = COLUMNS.iter().map(|c| topic.ways.get(c).map_or(String::new(), usize::to_string));
    std::iter::once(topic.statements.to_string()).chain(numbers).collect::<Vec<_>>().join(" | ")
}

fn shorten(sql: &str) -> String {
    const CHARACTERS_MAX: usize = 160;
    match sql.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}

/// What must be the same in two pages: all but how many of the statements that EXPLAIN takes are run in which way.
pub fn comparable(page: &str) -> Vec<String> {
    let line = |line: &str| {
        if !line.starts_with("| ") {
            return line.to_owned();
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let number = |n: &str| n.parse::<usize>().unwrap_or(0);
        let chosen = |name: &&&str| !FROM_FILES.contains(*name);
        let (mut kept, mut sum) = (vec![cells.first().copied().unwrap_or("").to_owned()], 0);
        for (index, cell) in cells.iter().enumerate().skip(1) {
            match index.checked_sub(2).and_then(|i| COLUMNS.get(i)).filter(chosen) {
                Some(_) => sum += number(cell),
                None => kept.push((*cell).to_owned()),
            }
        }
        format!("{} {sum}", kept.join(" "))
    };
    page.lines().map(line).collect()
}

const INTRODUCTION: &str = "# What SQL is checked, and how it is run

Written by `make sql-docs` from the files in `tests/differential` and the answers of a cluster. Do not edit it: a
test compares it with the files.

Each statement of these files is run on one plain PostgreSQL and on clusters of 1, 2 and 3 workers whose tables have
1, 4 and 32 shards: as simple queries, as unnamed statements of the extended protocol, and as prepared statements
that are executed again and again with text and binary results. Everything that a client can see must be the same:
rows (in order where a statement says how to sort, else as a multiset), names and types of columns, command tags,
notices, every field of errors, reported settings and the state of the transaction. `make test` runs all of it
prepared on three workers with 4 shards and a part on each of the eight other shapes; `make differential` runs all of
it on all.

Not compared: numbers of object ids; results of float sums beyond 1e-9 of their size; which rows LIMIT without a
total order, or a sample of neither all rows nor none, gives; names in an error where a statement says why.

How they are run, as EXPLAIN says (the ways are described in [ARCHITECTURE.md](../ARCHITECTURE.md)):

- local: by the coordinator: local and reference tables, and views (what is distributed in them it reads through the
  router)
- route: by the one worker that has the key
- scatter: by each worker for its rows, and combined
- stage: parts first, then the rest with their rows
- apart: the rows of an INSERT, each to its shard
- replicate: a write to every copy of a reference table
- federate: by the coordinator, which reads distributed tables through the router

What EXPLAIN does not take: definitions (CREATE, ALTER, GRANT, VACUUM, …), COPY, programs (DO, CALL), and what
belongs to the session (BEGIN, SET, cursors, several statements in one message). Errors are those that PostgreSQL
gives too.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_may_differ_in_the_ways_of_explain() {
        let topic = |scatter, stage, error| Topic {
            file: "a.sql".into(),
            statements: scatter + stage + error,
            ways: [("scatter", scatter), ("stage", stage), ("error", error)].into(),
            ..Topic::default()
        };
        let shown = |topic| comparable(&page(&[topic], "a cluster"));
        assert_eq!(shown(topic(3, 4, 5)), shown(topic(5, 2, 5)));
        assert_ne!(shown(topic(3, 4, 5)), shown(topic(3, 3, 6)));
        assert_ne!(shown(topic(3, 4, 5)), shown(topic(3, 5, 5)));
    }

    #[test]
    fn what_explain_takes_is_told_by_the_first_word() {
        for (sql, expected) in [("(SELECT 1)", "data"), ("VALUES (1)", "data"), ("DO $$ $$", "program")] {
            assert_eq!(kind(sql), expected);
        }
        assert_eq!(kind("alter table t add x int"), "definition");
        assert_eq!(kind("FETCH c"), "session");
    }
}
