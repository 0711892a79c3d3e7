//! `make drivers`: the test suites of drivers and ORMs on one plain server and through the router, and what differs.
//!
//! A suite is a script `tests/drivers/NAME.sh`: `prepare` brings the driver and its tests, `run` runs them against the
//! server that `PGHOST`, `PGPORT`, `PGUSER` and `PGDATABASE` name and writes a line `PASSED test`, `FAILED test` or
//! `SKIPPED test` for each into the file `DRIVERS_RESULTS`. A `prepare` that exits with 77 says that what it needs is
//! not to be had here: the report says so, and it fails the run only if the suite was asked for by its name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::client::Client;
use crate::regress::compare::Hunk;
use crate::regress::known::Known;
use crate::{Cluster, Error, Plain, Result, Side, Target, pg_bin, workspace_file};

/// What `make drivers` asks for.
#[derive(Debug, Clone)]
pub struct Options {
    /// The `pgherd` program.
    pub program: String,
    /// Where drivers are kept and results are written; outside the tree.
    pub out: PathBuf,
    pub workers: u32,
    /// Only these suites; empty is all.
    pub only: Vec<String>,
    /// A suite that cannot be prepared is passed over, even if it was asked for: there is no network, or no compiler.
    pub may_lack: bool,
    /// Write the list of known differences anew instead of judging by it.
    pub write_known: bool,
}

/// From words like `workers=2`.
pub fn options(words: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        program: String::new(),
        out: PathBuf::new(),
        workers: 2,
        only: Vec::new(),
        may_lack: false,
        write_known: false,
    };
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("not name=value: {word}"))?;
        match name {
            "program" => options.program = value.to_owned(),
            "out" => options.out = PathBuf::from(value),
            "workers" => options.workers = value.parse().map_err(|_| format!("no number: {word}"))?,
            "only" => options.only = value.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect(),
            "known" => options.write_known = value == "write",
            _ => return Err(Error::from(format!("no such option: {word}"))),
        }
    }
    if options.program.is_empty() || options.out.as_os_str().is_empty() {
        return Err("program= and out= are needed".into());
    }
    Ok(options)
}

/// The exit status of a `prepare` that cannot get the driver or its tests.
const NOT_TO_BE_HAD: i32 = 77;

/// How each test of a suite ended.
type Results = BTreeMap<String, String>;

/// Runs the suites on both sides and judges. The text is the report; `Err` is one that must fail the run.
pub fn run(options: &Options) -> Result<String> {
    let suites = suites(&options.only)?;
    fs::create_dir_all(&options.out)?;
    // Both are gone at the end of this function, and of this process.
    let cluster = Cluster::start(&options.program, options.workers)?;
    let plain = Plain::start(&pg_bin()?, &cluster.target.user)?;
    let sides = [plain.side("plain"), cluster.side()];
    let mut found = BTreeMap::new();
    let mut broken = Vec::new();
    let mut report = String::new();
    // Each line as it comes: a whole run takes most of an hour.
    let mut tell = |line: String| {
        eprintln!("{line}");
        report.push_str(&line);
        report.push('\n');
    };
    tell(format!("{:<16}{:>8}{:>8}{:>8}{:>11}{:>9}", "suite", "tests", "plain", "router", "different", "s"));
    for suite in &suites {
        let began = Instant::now();
        let [plain, router] = match run_suite(suite, &sides, &options.out) {
            Ok(Ran::Results(both)) => both,
            Ok(Ran::NotPrepared { why, is_known }) if options.may_lack || (is_known && options.only.is_empty()) => {
                tell(format!("{suite:<16} not run: {}", why.lines().last().unwrap_or_default()));
                continue;
            }
            // The others are run.
            Ok(Ran::NotPrepared { why, .. }) => {
                broken.push(format!("{suite} cannot be prepared: {why}"));
                continue;
            }
            Err(error) => {
                broken.push(format!("{suite}: {error}"));
                continue;
            }
        };
        let hunks = differences(&plain, &router);
        let passed = |results: &Results| results.values().filter(|r| *r == "PASSED").count();
        if passed(&plain) == 0 {
            broken.push(format!("{suite}: no test passed on the plain server, see {}", options.out.display()));
            continue;
        }
        tell(format!(
            "{suite:<16}{:>8}{:>8}{:>8}{:>11}{:>9}",
            plain.len(),
            passed(&plain),
            passed(&router),
            hunks.len(),
            began.elapsed().as_secs()
        ));
        found.insert(suite.clone(), hunks);
    }
    match broken.is_empty() {
        true => judge(options, report, &found),
        false => Err(Error::from(format!("{report}{}", broken.join("\n")))),
    }
}

fn judge(options: &Options, mut report: String, found: &BTreeMap<String, Vec<Hunk>>) -> Result<String> {
    let path = workspace_file("tests/drivers/KNOWN");
    let known = Known::read(&path)?;
    if options.write_known {
        fs::write(&path, known.renewed(found))?;
        let _ = writeln!(report, "written: {}", path.display());
        return Ok(report);
    }
    let verdict = known.judge(found);
    for (title, lines) in [
        ("not listed in tests/drivers/KNOWN", &verdict.unlisted),
        ("listed, and no difference", &verdict.stale),
        ("listed without a reason", &verdict.unexplained),
    ] {
        for line in lines {
            let _ = writeln!(report, "{title}: {line}");
        }
    }
    if verdict.unlisted.is_empty() && verdict.stale.is_empty() && verdict.unexplained.is_empty() {
        Ok(report)
    } else {
        Err(Error::from(report))
    }
}

/// The names of the scripts.
fn suites(only: &[String]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace_file("tests/drivers"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".sh").filter(|n| *n != "lib") {
            names.push(name.to_owned());
        }
    }
    names.sort();
    if let Some(unknown) = only.iter().find(|n| !names.contains(n)) {
        return Err(Error::from(format!("there is no tests/drivers/{unknown}.sh")));
    }
    names.retain(|n| only.is_empty() || only.contains(n));
    Ok(names)
}

/// What became of a suite.
enum Ran {
    /// On the plain server and through the router.
    Results([Results; 2]),
    /// With what the script said; it may know that what it needs is not to be had here.
    NotPrepared { why: String, is_known: bool },
}

fn run_suite(suite: &str, sides: &[Side; 2], out: &Path) -> Result<Ran> {
    let work = out.join(suite);
    fs::create_dir_all(&work)?;
    let log = out.join(format!("{suite}.prepare.log"));
    let status = script(suite, "prepare", &work, None, &log)?;
    if !status.success() {
        let why = fs::read_to_string(&log).unwrap_or_default();
        return Ok(Ran::NotPrepared { why, is_known: status.code() == Some(NOT_TO_BE_HAD) });
    }
    let [plain, router] = std::thread::scope(|scope| {
        let threads = [0, 1].map(|side| {
            let (side, work) = (&sides[side], &work);
            scope.spawn(move || run_side(suite, side, work, out))
        });
        threads.map(|t| t.join().unwrap_or_else(|_| Err("a side panicked".into())))
    });
    Ok(Ran::Results([plain?, router?]))
}

fn run_side(suite: &str, side: &Side, work: &Path, out: &Path) -> Result<Results> {
    let database = format!("drivers_{suite}");
    let mut client = Client::connect(&side.create_database(&database, "")?)?;
    if side.is_cluster {
        // No gaps between the values of sequences, which dumps and programs show.
        client.run(&format!("ALTER DATABASE {database} SET pgherd.sequence_lease = 1"))?;
    }
    let results = out.join(format!("{suite}.{}.results", side.name));
    let _ = fs::remove_file(&results);
    let target = side.target.with_database(&database);
    // Its exit status says only that a test failed.
    script(suite, "run", work, Some((&target, &side.name, &results)), &out.join(format!("{suite}.{}.log", side.name)))?;
    let text = fs::read_to_string(&results)
        .map_err(|_| format!("{suite} wrote no results on {}, see {}", side.name, out.display()))?;
    Ok(read_results(&text))
}

fn script(
    suite: &str,
    what: &str,
    work: &Path,
    server: Option<(&Target, &str, &Path)>,
    log: &Path,
) -> Result<ExitStatus> {
    let file = File::create(log)?;
    let mut command = Command::new("bash");
    command.arg(workspace_file(&format!("tests/drivers/{suite}.sh"))).arg(what);
    command.env("DRIVERS_WORK", work).env("DRIVERS_SOURCE", workspace_file("tests/drivers"));
    if let Some((target, side, results)) = server {
        command.envs(target.environment()).env("DRIVERS_SIDE", side).env("DRIVERS_RESULTS", results);
    }
    Ok(command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status()?)
}

fn read_results(text: &str) -> Results {
    let mut results = Results::new();
    for line in text.lines() {
        if let Some((outcome @ ("PASSED" | "FAILED" | "SKIPPED"), test)) = line.split_once(' ') {
            let result = results.entry(test.trim().replace('|', "¦")).or_insert_with(|| outcome.to_owned());
            // One that fails while it is taken down has passed before.
            if outcome == "FAILED" {
                outcome.clone_into(result);
            }
        }
    }
    results
}

fn differences(plain: &Results, router: &Results) -> Vec<Hunk> {
    let absent = "absent".to_owned();
    let tests = plain.keys().chain(router.keys().filter(|test| !plain.contains_key(*test)));
    tests
        .filter_map(|test| {
            let (plain, router) = (plain.get(test).unwrap_or(&absent), router.get(test).unwrap_or(&absent));
            let shown = format!("{} → {}", plain.to_lowercase(), router.to_lowercase());
            (plain != router).then(|| Hunk { key: test.clone(), shown })
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_end_otherwise_are_found() {
        let plain = read_results("PASSED a\nPASSED b[x|y]\nnoise\nSKIPPED c\nPASSED d\nFAILED d\n");
        let router = read_results("PASSED a\nFAILED b[x|y]\nPASSED e\nFAILED d\n");
        let told: Vec<String> =
            differences(&plain, &router).iter().map(|h| format!("{}: {}", h.key, h.shown)).collect();
        assert_eq!(told, ["b[x¦y]: passed → failed", "c: skipped → absent", "e: absent → passed"]);
    }

    #[test]
    fn options_name_what_is_wrong() {
        let read = |words: &[&str]| options(words.iter().map(|w| (*w).to_owned()));
        assert!(read(&["program=x"]).is_err());
        assert!(read(&["program=x", "out=y", "workers=z"]).is_err());
        assert_eq!(read(&["program=x", "out=y", "only=a,b"]).unwrap().only, ["a", "b"]);
    }
}
