//! Two printed files, cut into the places where they differ.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, Result};

/// Characters of a place's first line that the list of known differences shows.
const SHOWN_MAX: usize = 70;
/// A number of so many digits is an object id, a process id or the like: another one each time.
const VARYING_DIGITS: usize = 5;

/// One place where a file differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Names the place: a hash of all its lines, numbers that vary apart.
    pub key: String,
    /// Its first lines on both sides, for a reader.
    pub shown: String,
}

/// The places where what the router printed differs, and the whole difference for a person, in the format of `diff`.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    pub hunks: Vec<Hunk>,
    pub diff: String,
}

/// Compares with `diff`, through files in `directory`: it finds the shortest difference, and every machine has it.
pub fn compare(directory: &Path, file: &str, plain: &str, router: &str) -> Result<Comparison> {
    if plain == router {
        return Ok(Comparison::default());
    }
    let paths = ["plain", "router"].map(|side| directory.join(format!("{file}.{side}")));
    fs::write(&paths[0], plain)?;
    fs::write(&paths[1], router)?;
    let bare = diff(&paths, "-U0")?;
    let diff = diff(&paths, "-U4")?;
    for path in paths {
        fs::remove_file(path)?;
    }
    let hunks = hunks(&bare);
    if hunks.is_empty() {
        return Err(Error::from(format!("{file} differs, and diff shows nothing")));
    }
    Ok(Comparison { hunks, diff })
}

fn diff(paths: &[PathBuf; 2], context: &str) -> Result<String> {
    let output = Command::new("diff")
        .args(["-a", context, "--label", "plain", "--label", "router"])
        .args(paths)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| format!("diff: {e}"))?;
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(Error::from(format!("diff: {}", String::from_utf8_lossy(&output.stderr)))),
    }
}

/// Reads `diff -U0`.
fn hunks(bare: &str) -> Vec<Hunk> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    for line in bare.lines().skip(2) {
        if line.starts_with("@@ ") {
            found.push(Vec::new());
        } else if let Some(hunk) = found.last_mut() {
            hunk.push(line);
        }
    }
    found.iter().map(|lines| hunk(lines)).collect()
}

fn hunk(lines: &[&str]) -> Hunk {
    let steady: Vec<String> = lines.iter().map(|l| without_varying_numbers(l)).collect();
    let first = |sign: char| steady.iter().find(|l| l.starts_with(sign)).map(|l| cut(l));
    let shown = [first('-'), first('+')].into_iter().flatten().collect::<Vec<_>>().join("  ");
    Hunk { key: format!("{:08x}", hash(&steady.join("\n"))), shown }
}

/// A place that is named by a text of its own.
pub fn named(name: &str, shown: &str) -> Hunk {
    Hunk { key: format!("{:08x}", hash(name)), shown: cut(shown) }
}

/// FNV-1a, folded: the list is written and read by programs of any version, so the hash is no one's but ours.
fn hash(text: &str) -> u32 {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    #[allow(clippy::cast_possible_truncation)]
    {
        (hash ^ (hash >> 32)) as u32
    }
}

/// Each run of many digits as `#`, with the digits before its decimal point, and runs of spaces and dashes as one:
/// columns are as wide as their widest number.
fn without_varying_numbers(line: &str) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    let flush = |text: &mut String, digits: &mut String| {
        if digits.len() >= VARYING_DIGITS {
            if let Some(whole) = text.strip_suffix('.').map(|t| t.trim_end_matches(|c: char| c.is_ascii_digit()))
                && whole.len() + 1 < text.len()
            {
                text.truncate(whole.len());
                text.push_str("#.");
            }
            text.push('#');
        } else {
            text.push_str(digits);
        }
        digits.clear();
    };
    for c in line.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        flush(&mut text, &mut digits);
        let repeated = matches!(c, ' ' | '-') && text.len() > 1 && text.ends_with(c);
        if !repeated {
            text.push(c);
        }
    }
    flush(&mut text, &mut digits);
    text
}

fn cut(line: &str) -> String {
    let line = line.trim_end().replace('|', "/");
    match line.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn keys(plain: &str, router: &str) -> Vec<String> {
        let directory = std::env::temp_dir();
        let name = format!("pgherd-regress-{}-{:?}", std::process::id(), std::thread::current().id());
        let comparison = compare(&directory, &name, plain, router).unwrap();
        comparison.hunks.into_iter().map(|h| h.key).collect()
    }

    #[test]
    fn alike_is_no_difference() {
        assert!(keys("a\nb\n", "a\nb\n").is_empty());
    }

    #[test]
    fn each_place_has_its_key() {
        let two = keys("a\nb\nc\nd\n", "a\nB\nc\nD\n");
        assert_eq!(two.len(), 2);
        assert_ne!(two[0], two[1]);
        assert_eq!(two[..1], keys("a\nb\nc\n", "a\nB\nc\n"));
    }

    #[test]
    fn numbers_that_vary_do_not_change_the_key() {
        assert_eq!(keys("a\n", " oid 16401 | x\n"), keys("a\n", " oid 116402 | x\n"));
        assert_eq!(keys("a\n", "9.5367431640625e-07\n"), keys("a\n", "1.9073486328125e-07\n"));
        assert_ne!(keys("a\n", "(1 row)\n"), keys("a\n", "(2 rows)\n"));
    }

    #[test]
    fn a_missing_last_line_end_is_a_difference() {
        assert_eq!(keys("a\nb\n", "a\nb").len(), 1);
    }

    #[test]
    fn both_sides_are_shown() {
        assert_eq!(hunk(&["-a | 123456", "+b", "+c"]).shown, "-a / #  +b");
    }
}
