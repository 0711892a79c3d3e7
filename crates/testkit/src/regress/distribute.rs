//! The second mode: each table that the suite makes is distributed by its first hashable column as soon as it is there,
//! and the rows of every SELECT are compared, as multisets: a scatter has no order of its own.
//!
//! Plans, notices, definitions as text and the words of errors differ by nature and are not compared. A statement that
//! fails on both sides is alike; what fails or writes otherwise shows in the SELECTs that follow.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::compare::{self, Hunk};
use super::statements::{Lines, Statement, answers};

const BEGIN: &str = "pgherd-begin";
const END: &str = "pgherd-end";

/// Types that a key may have; see `crates/catalog/src/hash`.
const KEY_TYPES: &str = "bool, bpchar, bytea, cidr, date, float4, float8, inet, int2, int4, int8, interval, macaddr, \
                         name, numeric, text, time, timestamp, timestamptz, timetz, uuid, varchar";

/// What became of one file.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    pub distributed: usize,
    /// Why tables were not distributed, and how many of them.
    pub refused: BTreeMap<String, usize>,
    pub selects: usize,
    /// SELECTs that do not answer alike.
    pub hunks: Vec<Hunk>,
    pub diff: String,
}

/// The script with a call of `create_distributed_table` after each CREATE TABLE. What is added is between marks in the
/// output. Inside of blocks a refused call is rolled back to before it. None: the script makes no table.
pub fn instrument(script: &str) -> Option<String> {
    let lines = Lines::of(script);
    let mut text = String::new();
    // Tables made on lines inside of which nothing can be added wait for the next end of a statement.
    let mut made: Vec<String> = Vec::new();
    let mut added = false;
    for (number, line) in script.lines().enumerate() {
        let _ = writeln!(text, "{line}");
        made.extend(lines.statements.iter().filter(|s| s.line == number).filter_map(|s| created_table(&s.text)));
        if lines.clean.get(number) != Some(&true) || made.is_empty() {
            continue;
        }
        added = true;
        let _ = writeln!(text, "\\echo {BEGIN}\n\\set pgherd_kept :ON_ERROR_ROLLBACK\n\\set ON_ERROR_ROLLBACK on");
        for name in made.drain(..) {
            let _ = writeln!(text, "{}", call(&name));
        }
        let _ = writeln!(text, "\\set ON_ERROR_ROLLBACK :pgherd_kept\n\\echo {END}");
    }
    added.then_some(text)
}

/// The name as it is written, of a statement that makes an ordinary table.
fn created_table(statement: &str) -> Option<String> {
    let lower = statement.to_ascii_lowercase();
    let mut rest = ["create table ", "create unlogged table "].iter().find_map(|p| lower.strip_prefix(p))?;
    rest = rest.strip_prefix("if not exists ").unwrap_or(rest);
    let rest = &statement[statement.len() - rest.len()..];
    let mut quoted = false;
    let end = rest.find(|c: char| {
        quoted ^= c == '"';
        !quoted && (c.is_whitespace() || c == '(')
    });
    let name = &rest[..end.unwrap_or(rest.len())];
    // A name with a variable of psql is known to psql alone.
    (!name.is_empty() && !name.contains(':')).then(|| name.to_owned())
}

/// One line of psql that distributes the table if it can be: a unique index must have the key, and a partition follows
/// its parent.
fn call(name: &str) -> String {
    let types: Vec<String> = KEY_TYPES.split(", ").map(|t| format!("'{t}'")).collect();
    format!(
        "SELECT pg_catalog.format('SELECT create_distributed_table(%L, %L)', c.oid::pg_catalog.regclass::text, \
         a.attname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid \
         JOIN pg_catalog.pg_type t ON t.oid = a.atttypid AND t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace \
         WHERE c.oid = pg_catalog.to_regclass('{}') AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' \
         AND NOT c.relispartition AND t.typname IN ({}) AND a.attnum > 0 AND a.attgenerated = '' \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE c.oid IN (i.inhrelid, i.inhparent) \
         AND c.relkind = 'r') AND NOT EXISTS (SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = c.oid \
         AND x.indisunique AND NOT a.attnum = ANY (x.indkey::pg_catalog.int2[])) ORDER BY a.attnum LIMIT 1 \\gexec",
        name.replace('\'', "''"),
        types.join(", ")
    )
}

/// `router` is what the instrumented script printed.
pub fn compare(script: &str, plain: &str, router: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let router = outcome.without_marked(router);
    let (plain, router) = (answers(script, plain), answers(script, &router));
    let statements = Lines::of(script).statements;
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for statement in statements.iter().filter(|s| is_compared(s)) {
        outcome.selects += 1;
        let (left, right) = (&plain[statement.line], &router[statement.line]);
        if left == right || rows(left) == rows(right) {
            continue;
        }
        let again = seen.entry(&statement.text).or_default();
        *again += 1;
        outcome.hunks.push(compare::named(&format!("{} {again}", statement.text), &statement.text));
        let _ = writeln!(
            outcome.diff,
            "### line {}: {}\n--- plain\n{}\n--- router\n{}\n",
            statement.line + 1,
            statement.text,
            left.trim_end(),
            right.trim_end()
        );
    }
    outcome
}

fn is_compared(statement: &Statement) -> bool {
    let lower = statement.text.to_ascii_lowercase();
    let first = lower.split(|c: char| !c.is_ascii_alphabetic()).find(|w| !w.is_empty()).unwrap_or_default();
    ["select", "with", "values", "table"].contains(&first) && !lower.contains("explain")
}

/// What an answer says, in no order; an error is one whatever its words.
fn rows(answer: &str) -> Vec<&str> {
    if answer.lines().any(|l| l.starts_with("ERROR:")) {
        return vec!["ERROR"];
    }
    let said = ["NOTICE:", "WARNING:", "INFO:", "DETAIL:", "HINT:", "CONTEXT:"];
    let mut rows: Vec<&str> =
        answer.lines().filter(|l| !l.trim().is_empty() && !said.iter().any(|s| l.starts_with(s))).collect();
    rows.sort_unstable();
    rows
}

impl Outcome {
    /// Takes out what stands between the marks, and counts it.
    fn without_marked(&mut self, printed: &str) -> String {
        let (mut text, mut marked) = (String::new(), false);
        for line in printed.lines() {
            if line == format!("\\echo {BEGIN}") {
                marked = true;
            } else if marked {
                marked = line != END;
                if line.trim() == "create_distributed_table" {
                    self.distributed += 1;
                } else if let Some(error) = line.split("ERROR:  ").nth(1) {
                    *self.refused.entry(without_names(error)).or_default() += 1;
                }
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }
}

/// A message with … for what is quoted in it, so that equal reasons are counted together.
fn without_names(message: &str) -> String {
    message.split('"').enumerate().map(|(n, part)| if n % 2 == 0 { part } else { "…" }).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_by_the_names_they_are_made_with() {
        assert_eq!(created_table("CREATE TABLE IF NOT EXISTS s.\"a b\" (x int)").unwrap(), "s.\"a b\"");
        assert_eq!(created_table("create unlogged table t(x int)").unwrap(), "t");
        assert_eq!(created_table("CREATE TABLE t AS SELECT 1").unwrap(), "t");
        assert_eq!(created_table("CREATE TEMP TABLE t (x int)"), None);
        assert_eq!(created_table("CREATE TABLE :name (x int)"), None);
    }

    #[test]
    fn a_call_follows_each_table_and_leaves_no_trace() {
        let script = "CREATE TABLE t (x int);\nSELECT 1;\n";
        let instrumented = instrument(script).unwrap();
        assert!(instrument("SELECT 1;\n").is_none());
        assert_eq!(instrumented.lines().filter(|l| l.contains("to_regclass('t')")).count(), 1);
        let marked = format!("\\echo {BEGIN}\n{BEGIN}\n create_distributed_table \n\\echo {END}\n{END}\n");
        let printed = format!("CREATE TABLE t (x int);\n{marked}SELECT 1;\n 1\n");
        let outcome = compare(script, "CREATE TABLE t (x int);\nSELECT 1;\n 1\n", &printed);
        assert_eq!((outcome.distributed, outcome.selects, outcome.hunks.len()), (1, 1, 0));
    }

    #[test]
    fn rows_are_a_multiset_and_errors_are_alike() {
        let script = "SELECT a;\n";
        let compared = |plain: &str, router: &str| {
            compare(script, &format!("SELECT a;\n{plain}\n"), &format!("SELECT a;\n{router}\n")).hunks.len()
        };
        assert_eq!(compared(" 1\n 2\n 2", " 2\n 1\n 2"), 0);
        assert_eq!(compared(" 1\n 2\n 2", " 2\n 1\n 1"), 1);
        assert_eq!(compared("ERROR:  a", "ERROR:  b"), 0);
        assert_eq!(compared(" 1", "ERROR:  b"), 1);
        assert_eq!(compared(" 1", "NOTICE:  b\n 1"), 0);
    }
}
