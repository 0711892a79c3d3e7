//! A file of SQL with directives, read into steps. Statements end with `;` as in psql, `\;` joins several into one
//! simple Query, and the data of `COPY … FROM STDIN` follow its line up to `\.`.
//!
//! A directive is a comment that begins with `--@`; it belongs to the statement below it:
//!
//! | directive | meaning |
//! |---|---|
//! | `cluster: SQL` | run on the cluster alone, must succeed (`create_distributed_table`, …) |
//! | `plain: SQL` | run on the plain server alone, must succeed |
//! | `ordered` | the order of the rows is part of the answer; without it rows are compared as a multiset |
//! | `error: SQLSTATE` | it fails so on PostgreSQL; a failure that is not announced is a mistake of the corpus |
//! | `error: SQLSTATE from 15.20, 17` | the same from these releases on, each for its major version; also `before 17` |
//! | `only: from 17` | run on such releases only |
//! | `refused: SQLSTATE` | PostgreSQL runs it, the cluster refuses it by name; then neither runs it; `from` as above |
//! | `params: 1, 'a', NULL` | parameters as text; several lines: the statement is run with each |
//! | `types: 23, 25` | type ids that Parse declares for the parameters |
//! | `mode: simple extended prepared` | run in these modes only |
//! | `repeat: N` | a writing statement is executed N times in prepared mode |
//! | `text` | no binary results (a type that has no binary output on PostgreSQL) |
//! | `float: 1e-9` | numbers may differ by this part of their size (sums of float8) |
//! | `loose: reason` | of an error only SQLSTATE is compared, and notices are not; say why |
//! | `on: name` | the session to use; the default one is `a` |
//! | `copy hex` | the data of COPY FROM STDIN are hexadecimal digits |
//! | `skip: reason` | not run; counted and printed |
//!
//! In the first lines of a file: `include: other.sql` runs another file before it, `read only` says that the file
//! changes nothing that lasts, so that it may share a database with others.

use std::path::Path;

use crate::{Error, Result};

/// Major and minor version.
pub type Release = (u32, u32);

/// Of `server_version`, such as `15.20 (Debian 15.20-0+deb12u1)` and `18beta1`.
pub fn release(server_version: &str) -> Option<Release> {
    let mut numbers = server_version.split(' ').next()?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next().and_then(|n| n.parse().ok()).unwrap_or(0)))
}

/// Releases from some on, or before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct When {
    from: bool,
    /// One of each major version at most, in order.
    releases: Vec<Release>,
}

impl When {
    /// `from 15.20, 17` or `before 17`.
    fn parse(text: &str) -> Option<When> {
        let (word, list) = text.trim().split_once(' ')?;
        let releases = list.split(',').map(|r| release(r.trim())).collect::<Option<Vec<_>>>()?;
        let from = match word {
            "from" => true,
            "before" => false,
            _ => return None,
        };
        releases.is_sorted().then_some(When { from, releases })
    }

    /// A major version that is not listed is later than the last one before it that is.
    fn holds(&self, release: Release) -> bool {
        let reached = self.releases.iter().rfind(|r| r.0 <= release.0).is_some_and(|r| *r <= release);
        reached == self.from
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Simple,
    Extended,
    Prepared,
}

impl Mode {
    pub const ALL: [Mode; 3] = [Mode::Simple, Mode::Extended, Mode::Prepared];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Extended => "extended",
            Mode::Prepared => "prepared",
        }
    }

    fn from_name(name: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|m| m.name() == name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// On one side only; must succeed.
    Setup {
        line: usize,
        cluster: bool,
        sql: String,
    },
    Statement(Box<Statement>),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statement {
    pub line: usize,
    pub sql: String,
    pub copy_in: Option<Vec<u8>>,
    pub ordered: bool,
    pub error: Option<String>,
    /// Errors of some releases; [`Script::on`] makes one of them the error.
    pub errors: Vec<(String, When)>,
    /// The same of refusals.
    pub refusals: Vec<(String, When)>,
    /// None: on all releases.
    pub only: Option<When>,
    pub refused: Option<String>,
    pub parameters: Vec<Vec<Option<String>>>,
    pub types: Vec<u32>,
    /// Empty: all.
    pub modes: Vec<Mode>,
    pub repeat: Option<usize>,
    pub text_only: bool,
    pub float: Option<f64>,
    pub loose: bool,
    pub session: String,
    pub skip: Option<String>,
    /// Several statements in one simple Query.
    pub batch: bool,
}

impl Eq for Statement {}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Script {
    /// The file's name, for reports.
    pub name: String,
    pub includes: Vec<String>,
    pub read_only: bool,
    pub steps: Vec<Step>,
}

impl Script {
    pub fn read(path: &Path) -> Result<Script> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Script::parse(&name, &text)
    }

    pub fn parse(name: &str, text: &str) -> Result<Script> {
        let mut script = Script { name: name.to_owned(), ..Script::default() };
        let mut next = Statement { session: "a".into(), ..Statement::default() };
        let mut hex = false;
        let mut pending = false;
        let mut lines = text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let number = index + 1;
            let fail = |what: &str| Error::from(format!("{name}:{number}: {what}"));
            if let Some(directive) = line.strip_prefix("--@") {
                let (word, value) = directive.split_once(':').unwrap_or((directive, ""));
                let (word, value) = (word.trim(), value.trim());
                pending |= !matches!(word, "include" | "read only" | "cluster" | "plain");
                match word {
                    "include" => script.includes.push(value.to_owned()),
                    "read only" => script.read_only = true,
                    "cluster" | "plain" => script.steps.push(Step::Setup {
                        line: number,
                        cluster: word == "cluster",
                        sql: value.trim_end_matches(';').to_owned(),
                    }),
                    "ordered" => next.ordered = true,
                    "error" | "refused" => {
                        let (always, some) = match word {
                            "error" => (&mut next.error, &mut next.errors),
                            _ => (&mut next.refused, &mut next.refusals),
                        };
                        match value.split_once(' ').map(|(code, when)| (code, When::parse(when))) {
                            Some((code, Some(when))) => some.push((code.to_owned(), when)),
                            Some((_, None)) if word == "error" => return Err(fail("bad releases")),
                            // The text of a refusal.
                            _ => *always = Some(value.to_owned()),
                        }
                    }
                    "only" => next.only = Some(When::parse(value).ok_or_else(|| fail("bad releases"))?),
                    "params" => next.parameters.push(parameters(value).ok_or_else(|| fail("bad parameters"))?),
                    "types" => {
                        let types = value.split(',').map(|t| t.trim().parse());
                        next.types = types.collect::<Result<_, _>>().map_err(|_| fail("bad type ids"))?;
                    }
                    "mode" => {
                        let modes = value.split_whitespace().map(Mode::from_name).collect::<Option<_>>();
                        next.modes = modes.ok_or_else(|| fail("no such mode"))?;
                    }
                    "repeat" => next.repeat = Some(value.parse().map_err(|_| fail("bad number"))?),
                    "text" => next.text_only = true,
                    "float" => next.float = Some(value.parse().map_err(|_| fail("bad number"))?),
                    "loose" if !value.is_empty() => next.loose = true,
                    "on" => next.session = value.to_owned(),
                    "copy hex" => hex = true,
                    "skip" if !value.is_empty() => next.skip = Some(value.to_owned()),
                    _ => return Err(fail(&format!("unknown directive, or one without a reason: {word}"))),
                }
                continue;
            }
            if line.trim().is_empty() || line.trim_start().starts_with("--") {
                continue;
            }
            // A statement: lines up to the one that ends it.
            let mut lexer = Lexer::default();
            next.line = number;
            lexer.line(line);
            while !lexer.ended {
                let (_, line) = lines.next().ok_or_else(|| fail("a statement has no end"))?;
                lexer.line(line);
            }
            if !lexer.trailing.trim().is_empty() && !lexer.trailing.trim_start().starts_with("--") {
                return Err(fail("a statement begins on the line where another one ends"));
            }
            next.batch = lexer.batch;
            next.sql = lexer.text.trim().to_owned();
            let lower = next.sql.to_lowercase();
            if lower.starts_with("copy") && lower.contains("from stdin") {
                let mut data = Vec::new();
                loop {
                    let (_, line) = lines.next().ok_or_else(|| fail("the data of COPY have no end"))?;
                    if line == "\\." {
                        break;
                    }
                    if hex {
                        data.extend(from_hex(line).ok_or_else(|| fail("bad hexadecimal digits"))?);
                    } else {
                        data.extend(line.as_bytes());
                        data.push(b'\n');
                    }
                }
                next.copy_in = Some(data);
            }
            script.steps.push(Step::Statement(Box::new(std::mem::replace(
                &mut next,
                Statement { session: "a".into(), ..Statement::default() },
            ))));
            hex = false;
            pending = false;
        }
        if pending {
            return Err(format!("{name}: directives without a statement at the end").into());
        }
        Ok(script)
    }

    /// What is run on this release of PostgreSQL, and what fails there.
    pub fn on(mut self, release: Release) -> Script {
        self.steps.retain(|step| match step {
            Step::Statement(statement) => statement.only.as_ref().is_none_or(|when| when.holds(release)),
            Step::Setup { .. } => true,
        });
        for step in &mut self.steps {
            let Step::Statement(statement) = step else { continue };
            let found = |list: &[(String, When)]| {
                list.iter().find(|(_, when)| when.holds(release)).map(|(code, _)| code.clone())
            };
            statement.error = statement.error.take().or_else(|| found(&statement.errors));
            statement.refused = statement.refused.take().or_else(|| found(&statement.refusals));
        }
        self
    }

    /// How many statements there are, without what runs on one side only.
    pub fn statements(&self) -> usize {
        self.steps.iter().filter(|s| matches!(s, Step::Statement(_))).count()
    }
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = line.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| std::str::from_utf8(pair).ok().and_then(|p| u8::from_str_radix(p, 16).ok())).collect()
}

/// `1, 'it''s', NULL` → texts.
fn parameters(text: &str) -> Option<Vec<Option<String>>> {
    let mut values = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('\'') {
            let mut value = String::new();
            let mut chars = quoted.char_indices().peekable();
            let end = loop {
                match chars.next()? {
                    (_, '\'') if chars.next_if(|(_, c)| *c == '\'').is_some() => value.push('\''),
                    (at, '\'') => break at,
                    (_, c) => value.push(c),
                }
            };
            values.push(Some(value));
            rest = quoted[end + 1..].trim_start();
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            let word = rest[..end].trim();
            values.push(if word == "NULL" { None } else { Some(word.to_owned()) });
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(values)
}

/// Finds the end of a statement: the `;` outside of quotes, comments and parentheses.
#[derive(Default)]
struct Lexer {
    text: String,
    inside: Inside,
    depth: usize,
    ended: bool,
    /// Between BEGIN ATOMIC and END.
    body: bool,
    batch: bool,
    trailing: String,
}

#[derive(Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    /// `'…'` or `"…"`; with `true`, a backslash escapes.
    Quote(char, bool),
    Dollar(String),
    /// Nested `/* … */`.
    Comment(usize),
}

impl Lexer {
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.body |= self.inside == Inside::Nothing && self.ends_with("begin atomic");
            self.text.push('\n');
        }
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            let mut width = c.len_utf8();
            match &self.inside {
                Inside::Quote(_, true) if c == '\\' => {
                    width += rest[1..].chars().next().map_or(0, char::len_utf8);
                }
                Inside::Quote(quote, _) if c == *quote => self.inside = Inside::Nothing,
                Inside::Dollar(tag) if rest.starts_with(tag.as_str()) => {
                    width = tag.len();
                    self.inside = Inside::Nothing;
                }
                Inside::Comment(depth) if rest.starts_with("*/") => {
                    width = 2;
                    self.inside = if *depth == 1 { Inside::Nothing } else { Inside::Comment(depth - 1) };
                }
                Inside::Comment(depth) if rest.starts_with("/*") => {
                    width = 2;
                    self.inside = Inside::Comment(depth + 1);
                }
                Inside::Nothing => match c {
                    c if c.is_whitespace() => self.body |= self.ends_with("begin atomic"),
                    '\'' => {
                        let escapes = self.text.ends_with(['e', 'E'])
                            && !self.text.trim_end_matches(['e', 'E']).ends_with(|c: char| c.is_alphanumeric());
                        self.inside = Inside::Quote('\'', escapes);
                    }
                    '"' => self.inside = Inside::Quote('"', false),
                    '$' => {
                        if let Some(end) = rest[1..].find('$') {
                            let tag = &rest[..end + 2];
                            let name = &tag[1..tag.len() - 1];
                            if name.chars().all(|c| c.is_alphanumeric() || c == '_')
                                && !name.starts_with(|c: char| c.is_ascii_digit())
                            {
                                width = tag.len();
                                self.inside = Inside::Dollar(tag.to_owned());
                            }
                        }
                    }
                    '/' if rest.starts_with("/*") => {
                        width = 2;
                        self.inside = Inside::Comment(1);
                    }
                    '-' if rest.starts_with("--") => width = rest.len(),
                    '(' => self.depth += 1,
                    ')' => self.depth = self.depth.saturating_sub(1),
                    '\\' if rest.starts_with("\\;") => {
                        self.batch = true;
                        self.text.push(';');
                        rest = &rest[2..];
                        continue;
                    }
                    ';' if self.depth == 0 && (!self.body || self.ends_with(" end") || self.ends_with("\nend")) => {
                        self.ended = true;
                        self.trailing = rest[1..].to_owned();
                        return;
                    }
                    _ => {}
                },
                _ => {}
            }
            self.text.push_str(&rest[..width]);
            rest = &rest[width..];
        }
    }

    fn ends_with(&self, word: &str) -> bool {
        let ends = self.text.len().checked_sub(word.len()).and_then(|at| self.text.get(at..));
        ends.is_some_and(|end| end.eq_ignore_ascii_case(word))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn statements(text: &str) -> Vec<Statement> {
        let script = Script::parse("t.sql", text).unwrap();
        script
            .steps
            .into_iter()
            .filter_map(|s| match s {
                Step::Statement(s) => Some(*s),
                Step::Setup { .. } => None,
            })
            .collect()
    }

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = statements(text).into_iter().map(|s| s.sql).collect();
        assert_eq!(found, expected, "in {text}");
    }

    #[test]
    fn a_body_ends_at_its_end() {
        check(
            "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC\n  SELECT 1;\nSELECT 2; END;\nSELECT 3;",
            &["CREATE FUNCTION f() RETURNS int BEGIN ATOMIC\n  SELECT 1;\nSELECT 2; END", "SELECT 3"],
        );
    }

    #[test]
    fn a_statement_ends_at_a_semicolon_outside_of_quotes() {
        check("SELECT 1;\n\n-- remark\nSELECT\n 2;", &["SELECT 1", "SELECT\n 2"]);
        check(
            "SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';', 'E\\', /* ; /* ; */ ; */ 1;",
            &["SELECT ';', \";\", $$;$$, $a$;$$;$a$, E'\\';', 'E\\', /* ; /* ; */ ; */ 1"],
        );
        check("SELECT $1, ';' -- it's; \n FROM t;", &["SELECT $1, ';' -- it's; \n FROM t"]);
        check(
            "CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);",
            &["CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)"],
        );
        check("SELECT 1\\; SELECT 2;", &["SELECT 1; SELECT 2"]);
    }

    #[test]
    fn directives_belong_to_the_statement_below_them() {
        let found =
            statements("--@ ordered\n--@ params: 1, 'it''s, so', NULL\n--@ params: , ''\nSELECT $1;\nSELECT 2;");
        assert!(found[0].ordered && !found[1].ordered);
        let text = |s: &str| Some(s.to_owned());
        assert_eq!(found[0].parameters, [vec![text("1"), text("it's, so"), None], vec![text(""), text("")]]);
        assert!(Script::parse("t.sql", "--@ orderd\nSELECT 1;").is_err());
        assert!(Script::parse("t.sql", "SELECT 1;\n--@ ordered\n").is_err());
        assert!(Script::parse("t.sql", "--@ skip:\nSELECT 1;").is_err());
    }

    #[test]
    fn what_some_releases_do_is_announced_for_those() {
        let text = "--@ error: 42501 from 15.20, 16.16, 17.12, 18.7\nSELECT 1;\n--@ only: before 17\nSELECT 2;";
        let on = |version: &str| {
            let script = Script::parse("t.sql", text).unwrap().on(release(version).unwrap());
            let error = |step: &Step| match step {
                Step::Statement(statement) => statement.error.is_some(),
                Step::Setup { .. } => false,
            };
            script.steps.iter().map(error).collect::<Vec<_>>()
        };
        assert_eq!(on("15.18"), [false, false]);
        assert_eq!(on("15.20 (Debian 15.20-0+deb12u1)"), [true, false]);
        assert_eq!(on("16.15"), [false, false]);
        assert_eq!(on("18.6"), [false]);
        assert_eq!(on("18.7"), [true]);
        assert_eq!(on("19beta1"), [true]);
        assert!(Script::parse("t.sql", "--@ only: 17\nSELECT 1;").is_err());
        assert!(Script::parse("t.sql", "--@ error: 42501 from 17, 15\nSELECT 1;").is_err());
    }

    #[test]
    fn copy_data_follow_up_to_the_end_mark() {
        let found =
            statements("COPY t FROM STDIN;\n1\ta\n\\.\n--@ copy hex\nCOPY t FROM STDIN (FORMAT binary);\n50 47\n\\.\n");
        assert_eq!(found[0].copy_in.as_deref(), Some("1\ta\n".as_bytes()));
        assert_eq!(found[1].copy_in.as_deref(), Some("PG".as_bytes()));
    }
}
