//! PostgreSQL's own regression suite on one plain server and through the router: `make regress`. Either as it is, all
//! tables local, and every line that psql prints compared; or with each table distributed (`distribute.rs`), and the
//! rows of SELECTs compared; or the same as it is used, with ISO styles and plain tables for temporary ones on both
//! sides: under the styles that the suite sets, and beside temporary tables, little is carried to workers.
//!
//! The oracle is what the plain server of the same programs prints in the same run, not the suite's expected files;
//! those only show that the plain server ran the suite as it should, so that two servers that fail alike do not pass.

pub mod compare;
pub mod distribute;
pub mod known;
pub mod ours;
pub mod statements;
pub mod suite;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::{Cluster, Error, Plain, Result, Target, pg_bin, workspace_file};
use compare::{Comparison, Hunk, compare};
use distribute::Outcome;
use known::Known;
use suite::{Place, Printed, Suite};

/// Of a hundred files of the plain server, so many print what the suite expects. On Debian all do; fewer mean that
/// something the suite needs is missing, and that the comparison is worth nothing.
const EXPECTED_MIN_PERCENT: usize = 97;

/// What `make regress` asks for.
#[derive(Debug, Clone)]
pub struct Options {
    pub suite: Suite,
    /// The `pgherd` program.
    pub program: String,
    /// Where results and differences are written; outside the tree.
    pub out: PathBuf,
    pub workers: u32,
    pub mode: Mode,
    /// Only these files; empty is all.
    pub only: Vec<String>,
    /// Run nothing: judge what the last run printed. For work on the list and on the comparison.
    pub again: bool,
    /// Write the list of known differences anew instead of judging by it.
    pub write_known: bool,
    /// What the list's name ends with: each major version's suite has its own.
    pub list: String,
    /// The suite is that of the server's own release, with its libraries: the plain server prints what it expects.
    pub has_expected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Local,
    /// Every table that can be is distributed.
    Distributed,
    /// The same with styles and tables as applications have them.
    Iso,
}

impl Mode {
    /// What names of its files end with.
    fn suffix(self) -> &'static str {
        match self {
            Mode::Local => "",
            Mode::Distributed => "-distributed",
            Mode::Iso => "-iso",
        }
    }

    fn distributes(self) -> bool {
        self != Mode::Local
    }
}

/// Runs the suite on both sides and judges. The text is the report; `Err` is one that must fail the run.
pub fn run(options: &Options) -> Result<String> {
    let files = options.suite.schedule(&options.only)?;
    let [plain, router] = if options.again { read_again(options, &files)? } else { run_both(options, &files)? };
    judge(options, &files, &plain, &router)
}

const SIDES: [&str; 2] = ["plain", "router"];

fn run_both(options: &Options, files: &[String]) -> Result<[Vec<Printed>; 2]> {
    let bin = pg_bin()?;
    // Both are gone at the end of this function, and of this process.
    let cluster = Cluster::start(&options.program, options.workers)?;
    forgo_durability(&cluster)?;
    let plain = Plain::start(&bin, &cluster.target.user)?;
    let targets = [plain.target.clone(), cluster.target.clone()];
    let [plain, router] = std::thread::scope(|scope| {
        let threads = [0, 1].map(|side| {
            let (suite, programs) = (&options.suite, bin.as_path());
            let directory = options.out.join(SIDES[side]);
            let iso = options.mode == Mode::Iso;
            // What several servers do not see (SERIALIZABLE) may leave a lock that the file never gives up.
            let further = if options.mode.distributes() { " -c lock_timeout=60s" } else { "" };
            let place = Place { suite, programs, target: targets[side].clone(), directory, iso, further };
            scope.spawn(move || run_side(&place, files, options.mode.distributes() && side == 1))
        });
        threads.map(|t| t.join().unwrap_or_else(|_| Err("a side panicked".into())))
    });
    Ok([plain?, router?])
}

fn read_again(options: &Options, files: &[String]) -> Result<[Vec<Printed>; 2]> {
    let read = |side: &str| -> Result<Vec<Printed>> {
        let directory = options.out.join(side);
        files.iter().map(|file| Printed::read(&directory, file)).collect()
    };
    Ok([read(SIDES[0])?, read(SIDES[1])?])
}

/// The plain server does not wait for its disk either; the data do not outlive the run.
fn forgo_durability(cluster: &Cluster) -> Result<()> {
    let output = Command::new(&cluster.program).arg("status").arg("--dir").arg(&cluster.directory).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut servers = 0;
    for line in text.lines().filter(|l| l.starts_with("coordinator") || l.starts_with("worker-")) {
        let port = line.split_whitespace().nth(1).and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| format!("no port in {line}"))?;
        let mut server = Client::connect(&Target { port, ..cluster.target.clone() })?;
        for setting in ["fsync", "full_page_writes"] {
            server.run(&format!("ALTER SYSTEM SET {setting} = off"))?;
        }
        server.run("SELECT pg_reload_conf()")?;
        servers += 1;
    }
    match servers {
        0 | 1 => Err(Error::from(format!("pgherd status does not name the servers:\n{text}"))),
        _ => Ok(()),
    }
}

/// The files one after another on one side.
fn run_side(place: &Place, files: &[String], distributed: bool) -> Result<Vec<Printed>> {
    place.prepare()?;
    let mut printed = Vec::new();
    for file in files {
        let mut script = place.suite.script(file);
        let own = place.directory.join(format!("{file}.sql"));
        if place.iso {
            fs::write(&own, statements::without_temporary(&read_script(&script)?))?;
            script = own.clone();
        }
        if distributed {
            // None: nothing to add, and the script may have bytes that are not for us to read.
            if let Some(text) = distribute::instrument(&read_script(&script)?) {
                fs::write(&own, text)?;
                script = own;
            }
        }
        printed.push(place.run(file, &script)?);
    }
    Ok(printed)
}

/// Some scripts have bytes that are no UTF-8.
fn read_script(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?).into_owned())
}

fn judge(options: &Options, files: &[String], plain: &[Printed], router: &[Printed]) -> Result<String> {
    let diffs = options.out.join(format!("diffs{}", options.mode.suffix()));
    let has_expected = options.has_expected && options.mode != Mode::Iso;
    let _ = fs::remove_dir_all(&diffs);
    fs::create_dir_all(&diffs)?;
    let mut report = String::new();
    let mut found = BTreeMap::new();
    let mut unexpected = Vec::new();
    let mut counted = Counted::default();
    for ((file, plain), router) in files.iter().zip(plain).zip(router) {
        if !options.suite.is_expected(file, &plain.text) {
            unexpected.push(file.as_str());
        }
        let comparison = if options.mode.distributes() {
            let mut script = read_script(&options.suite.script(file))?;
            if options.mode == Mode::Iso {
                script = statements::without_temporary(&script);
            }
            counted.add(distribute::compare(&script, &plain.text, &router.text))
        } else {
            let (plain, router) = ours::hide(&plain.text, &router.text);
            compare(&diffs, file, &plain, &router)?
        };
        if !comparison.hunks.is_empty() {
            fs::write(diffs.join(format!("{file}.diff")), &comparison.diff)?;
        }
        report.push_str(&line(file, plain.took, router.took, &comparison));
        found.insert(file.clone(), comparison.hunks);
    }
    let _ = writeln!(report, "differences: {}", diffs.display());
    if options.mode.distributes() {
        report.push_str(&counted.report(&found));
    } else {
        let identical = found.values().filter(|hunks| hunks.is_empty()).count();
        let rate = percent(identical, files.len());
        let _ = writeln!(report, "{identical} of {} files identical: {rate} %", files.len());
    }
    if !unexpected.is_empty() && has_expected {
        let _ = writeln!(report, "the plain server does not print what the suite expects: {}", unexpected.join(", "));
    }
    if has_expected && (files.len() - unexpected.len()) * 100 < EXPECTED_MIN_PERCENT * files.len() {
        return Err(Error::from(format!("{report}the suite did not run well on the plain server: nothing is proved")));
    }
    judge_by_list(options, &found, report)
}

fn judge_by_list(options: &Options, found: &BTreeMap<String, Vec<Hunk>>, mut report: String) -> Result<String> {
    let mode = options.mode.suffix().replace('-', "_").to_ascii_uppercase();
    let path = workspace_file("tests/regress").join(format!("KNOWN{mode}{}", options.list));
    let known = Known::read(&path)?;
    if options.write_known {
        fs::write(&path, known.renewed(found))?;
        let _ = writeln!(report, "{} is written anew; lines with ? wait for a reason", path.display());
        return Ok(report);
    }
    let verdict = known.judge(found);
    let mut failures = 0;
    for (what, lines) in [
        ("differs and is not listed", &verdict.unlisted),
        ("is listed and does not differ", &verdict.stale),
        ("is listed without a reason", &verdict.unexplained),
    ] {
        failures += lines.len();
        for line in lines {
            let _ = writeln!(report, "{what}: {line}");
        }
    }
    match failures {
        0 => Ok(report),
        _ => Err(Error::from(format!("{report}{failures} lines above: {} is not right", path.display()))),
    }
}

/// The second mode's numbers over all files.
#[derive(Debug, Default)]
struct Counted {
    distributed: usize,
    refused: BTreeMap<String, usize>,
    selects: usize,
}

impl Counted {
    fn add(&mut self, outcome: Outcome) -> Comparison {
        self.distributed += outcome.distributed;
        self.selects += outcome.selects;
        for (reason, count) in outcome.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        Comparison { hunks: outcome.hunks, diff: outcome.diff }
    }

    fn report(&self, found: &BTreeMap<String, Vec<Hunk>>) -> String {
        let different: usize = found.values().map(Vec::len).sum();
        let alike = self.selects - different;
        let mut text = format!("{} tables distributed\n", self.distributed);
        let mut reasons: Vec<_> = self.refused.iter().map(|(reason, count)| (count, reason)).collect();
        reasons.sort_unstable();
        for (count, reason) in reasons.iter().rev() {
            let _ = writeln!(text, "  {count} not: {reason}");
        }
        let rate = percent(alike, self.selects);
        let _ = writeln!(text, "{alike} of {} SELECTs answer alike: {rate} %", self.selects);
        text
    }
}

fn percent(part: usize, whole: usize) -> String {
    let tenths = part * 1000 / whole.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn line(file: &str, plain: Duration, router: Duration, comparison: &Comparison) -> String {
    let verdict = match comparison.hunks.len() {
        0 => "identical".to_owned(),
        1 => "differs in 1 place".to_owned(),
        n => format!("differs in {n} places"),
    };
    format!("{file:<24} {:>6} ms {:>6} ms  {verdict}\n", plain.as_millis(), router.as_millis())
}

/// Reads `name=value` words of the command line.
pub fn options(arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        suite: Suite { sources: PathBuf::new(), libraries: PathBuf::new() },
        program: String::new(),
        out: PathBuf::new(),
        workers: 2,
        only: Vec::new(),
        mode: Mode::Local,
        again: false,
        write_known: false,
        list: String::new(),
        has_expected: true,
    };
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match name {
            "sources" => options.suite.sources = Path::new(value).canonicalize()?,
            // Functions of the suite's own libraries are missing on both sides then.
            "libraries" if value == "none" => {
                options.suite.libraries = PathBuf::from("/nonexistent");
                options.has_expected = false;
            }
            "libraries" => options.suite.libraries = Path::new(value).canonicalize()?,
            "program" => options.program = value.to_owned(),
            "out" => options.out = PathBuf::from(value),
            "workers" => options.workers = value.parse()?,
            "only" => options.only = value.split([',', ' ']).filter(|w| !w.is_empty()).map(str::to_owned).collect(),
            "mode" => {
                let modes = [("local", Mode::Local), ("distributed", Mode::Distributed), ("iso", Mode::Iso)];
                let named = modes.iter().find(|(name, _)| *name == value);
                options.mode = named.ok_or_else(|| format!("no such mode: {value}"))?.1;
            }
            "list" => options.list = if value.is_empty() { String::new() } else { format!("_{value}") },
            "again" => options.again = value == "yes",
            "known" => options.write_known = value == "write",
            _ => return Err(Error::from(format!("no such option: {argument}"))),
        }
    }
    for (name, missing) in [
        ("sources", options.suite.sources.as_os_str().is_empty()),
        ("libraries", options.suite.libraries.as_os_str().is_empty()),
        ("program", options.program.is_empty()),
        ("out", !options.out.is_absolute()),
    ] {
        if missing {
            return Err(Error::from(format!("{name}=… is missing, or no absolute path")));
        }
    }
    Ok(options)
}
