//! The list of differences that are known, with the reason of each.
//!
//! ```text
//! file | key | reason | first lines, for the reader
//! ```
//!
//! A line is for as many places of a file as have its key. Lines that mean nothing any more, and lines without a
//! reason, fail the run. What depends on time has a reason that begins with `sometimes:`, and may be absent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::compare::Hunk;
use crate::{Error, Result};

/// What a line that a program wrote has until a person has looked.
const NO_REASON: &str = "?";
const SOMETIMES: &str = "sometimes:";

#[derive(Debug, Default)]
pub struct Known {
    /// The lines at the beginning that start with `#`.
    head: String,
    /// (file, key) → (reason, shown).
    entries: BTreeMap<(String, String), (String, String)>,
}

/// What became of the list in one run.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Differences that are not listed, `file: first lines`.
    pub unlisted: Vec<String>,
    /// Lines whose place did not differ.
    pub stale: Vec<String>,
    /// Lines that give no reason.
    pub unexplained: Vec<String>,
}

impl Known {
    pub fn read(path: &Path) -> Result<Known> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        Known::parse(&text)
    }

    fn parse(text: &str) -> Result<Known> {
        let mut known = Known::default();
        for line in text.lines() {
            if line.starts_with('#') || line.trim().is_empty() {
                let _ = writeln!(known.head, "{line}");
                continue;
            }
            let cells: Vec<&str> = line.splitn(4, '|').map(str::trim).collect();
            let [file, key, reason, shown] = cells[..] else {
                return Err(Error::from(format!("not \"file | key | reason | shown\": {line}")));
            };
            let old = known.entries.insert((file.into(), key.into()), (reason.into(), shown.into()));
            if old.is_some() {
                return Err(Error::from(format!("listed twice: {line}")));
            }
        }
        Ok(known)
    }

    /// `found` has every file that was run.
    pub fn judge(&self, found: &BTreeMap<String, Vec<Hunk>>) -> Verdict {
        let mut verdict = Verdict::default();
        let mut met: BTreeSet<(&str, &str)> = BTreeSet::new();
        for (file, hunks) in found {
            for hunk in hunks {
                met.insert((file, &hunk.key));
                if !self.entries.contains_key(&(file.clone(), hunk.key.clone())) {
                    verdict.unlisted.push(format!("{file} | {} | {}", hunk.key, hunk.shown));
                }
            }
        }
        for ((file, key), (reason, shown)) in &self.entries {
            let absent = found.contains_key(file) && !met.contains(&(file.as_str(), key.as_str()));
            if absent && !reason.starts_with(SOMETIMES) {
                verdict.stale.push(format!("{file} | {key} | {shown}"));
            }
            if reason.is_empty() || reason == NO_REASON {
                verdict.unexplained.push(format!("{file} | {key} | {shown}"));
            }
        }
        verdict
    }

    /// The list for what was found: reasons are kept, new lines wait for theirs. Files that were not run keep
    /// their lines.
    pub fn renewed(&self, found: &BTreeMap<String, Vec<Hunk>>) -> String {
        let mut lines: BTreeMap<(&str, usize, &str), (&str, &str)> = BTreeMap::new();
        let stays = |file: &String, reason: &String| !found.contains_key(file) || reason.starts_with(SOMETIMES);
        for ((file, key), (reason, shown)) in self.entries.iter().filter(|((file, _), (reason, _))| stays(file, reason))
        {
            lines.insert((file, 0, key), (reason, shown));
        }
        for (file, hunks) in found {
            let mut seen = BTreeSet::new();
            for (number, hunk) in hunks.iter().enumerate().filter(|(_, h)| seen.insert(h.key.as_str())) {
                let reason = self.entries.get(&(file.clone(), hunk.key.clone())).map_or(NO_REASON, |(r, _)| r);
                lines.remove(&(file.as_str(), 0, hunk.key.as_str()));
                lines.insert((file, number, &hunk.key), (reason, &hunk.shown));
            }
        }
        let mut text = self.head.clone();
        for ((file, _, key), (reason, shown)) in lines {
            let _ = writeln!(text, "{file} | {key} | {reason} | {shown}");
        }
        text
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn found(places: &[(&str, &str)]) -> BTreeMap<String, Vec<Hunk>> {
        let mut found: BTreeMap<String, Vec<Hunk>> = BTreeMap::new();
        for (file, key) in places {
            let hunks = found.entry((*file).to_owned()).or_default();
            if !key.is_empty() {
                hunks.push(Hunk { key: (*key).to_owned(), shown: "+x".to_owned() });
            }
        }
        found
    }

    #[test]
    fn every_line_must_be_met_and_every_place_listed() {
        let known = Known::parse("# head\nenum | aa | catalogs | +y\nenum | bb | why | +z\n").unwrap();
        let verdict = known.judge(&found(&[("enum", "aa"), ("enum", "cc")]));
        assert_eq!(verdict.unlisted, ["enum | cc | +x"]);
        assert_eq!(verdict.stale, ["enum | bb | +z"]);
        assert!(verdict.unexplained.is_empty());
    }

    #[test]
    fn a_file_that_was_not_run_is_not_judged() {
        let known = Known::parse("enum | aa | catalogs | +y\n").unwrap();
        assert!(known.judge(&found(&[("char", "")])).stale.is_empty());
        assert_eq!(known.judge(&found(&[("enum", "")])).stale.len(), 1);
    }

    #[test]
    fn a_new_list_keeps_reasons_and_asks_for_those_of_new_lines() {
        let known = Known::parse("# head\nenum | aa | catalogs | +y\nzeta | dd | kept | +q\n").unwrap();
        let text = known.renewed(&found(&[("enum", "bb"), ("enum", "aa"), ("enum", "aa")]));
        assert_eq!(text, "# head\nenum | bb | ? | +x\nenum | aa | catalogs | +x\nzeta | dd | kept | +q\n");
        assert_eq!(Known::parse(&text).unwrap().judge(&found(&[])).unexplained.len(), 1);
    }

    #[test]
    fn what_is_there_sometimes_may_be_absent() {
        let list = "async | aa | sometimes: a queue | +y\n";
        let known = Known::parse(list).unwrap();
        assert!(known.judge(&found(&[("async", "")])).stale.is_empty());
        assert!(known.judge(&found(&[("async", "aa")])).unlisted.is_empty());
        assert_eq!(known.renewed(&found(&[("async", "")])), list);
    }

    #[test]
    fn broken_lists_are_refused() {
        assert!(Known::parse("enum | aa\n").is_err());
        assert!(Known::parse("enum | aa | r | x\nenum | aa | s | x\n").is_err());
    }
}
