//! Where the statements of a script for psql end, and which part of what psql printed is each one's answer.
//!
//! Follows psql's own lexer (`psqlscan.l`) as far as the suite needs it: quotes, dollar quotes, comments, parentheses,
//! commands with a backslash, and data of COPY, which psql does not echo.

/// A statement of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The line that it ends on, counted from 0.
    pub line: usize,
    /// Without comments, on one line.
    pub text: String,
}

#[derive(Debug, Default)]
struct Lexer {
    /// The statement so far.
    text: String,
    within: Within,
    parentheses: i32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Nothing,
    /// The end, and whether a backslash takes the next character.
    Quote(char, bool),
    Dollar(String),
    Comment(u32),
}

/// What the lines of a script are.
#[derive(Debug, Default)]
pub struct Lines {
    pub statements: Vec<Statement>,
    /// For each line whether the next one begins a statement.
    pub clean: Vec<bool>,
    /// For each line whether it is data of COPY.
    data: Vec<bool>,
}

impl Lines {
    pub fn of(script: &str) -> Lines {
        let mut lines = Lines::default();
        let mut lexer = Lexer::default();
        let mut in_data = false;
        let all: Vec<&str> = script.lines().collect();
        for (number, line) in all.iter().copied().enumerate() {
            lines.data.push(in_data);
            if in_data {
                in_data = line != "\\.";
                lines.clean.push(!in_data);
                continue;
            }
            let first = lines.statements.len();
            lexer.line(line, |text| lines.statements.push(Statement { line: number, text }));
            let backslash_copy = line.trim_start().to_ascii_lowercase().starts_with("\\copy ");
            let copies = lines.statements[first..].iter().any(|s| copies_in(&s.text))
                || (backslash_copy && copies_in(&line.trim_start()[1..]));
            in_data = copies && has_data(&all[number + 1..]);
            lines.clean.push(!in_data && lexer.is_clean());
        }
        lines
    }
}

fn copies_in(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.starts_with("copy ") && lower.split_whitespace().collect::<Vec<_>>().join(" ").contains(" from stdin")
}

/// Data end before another COPY begins: one that the server refuses has none.
fn has_data(rest: &[&str]) -> bool {
    let end = rest.iter().position(|line| *line == "\\.");
    end.is_some_and(|end| !rest[..end].iter().any(|line| copies_in(line.trim_start().trim_start_matches('\\'))))
}

/// The script with plain tables for temporary ones, which are gone at its end as those would be.
pub fn without_temporary(script: &str) -> String {
    let lower = script.to_ascii_lowercase();
    let mut text = String::new();
    let mut rest = 0;
    let mut made = Vec::new();
    let mut words = words(&lower).peekable();
    let mut before = (0, "");
    while let Some((at, word)) = words.next() {
        if matches!(word, "temp" | "temporary") && matches!(before.1, "create" | "local" | "into") {
            let after = words.peek().map_or(lower.len(), |(at, _)| *at);
            let is_table = words.peek().is_some_and(|(_, word)| *word == "table");
            if is_table || before.1 == "into" {
                text.push_str(&script[rest..if before.1 == "local" { before.0 } else { at }]);
                rest = after;
                let mut names = words.clone().map(|(_, word)| word);
                let skipped = ["table", "if", "not", "exists"];
                made.extend(names.find(|word| !skipped.contains(word)));
            }
        }
        before = (at, word);
    }
    text.push_str(&script[rest..]);
    made.sort_unstable();
    made.dedup();
    for name in made {
        text.push_str(&format!("\nDROP TABLE IF EXISTS {name} CASCADE;\n"));
    }
    text
}

/// Words of letters, digits and underscores, and where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        at += text[at..].find(in_word)?;
        let begin = at;
        at += text[at..].find(|c| !in_word(c)).unwrap_or(text.len() - at);
        Some((begin, &text[begin..at]))
    })
}

impl Lexer {
    fn is_clean(&self) -> bool {
        self.within == Within::Nothing && self.text.trim().is_empty()
    }

    fn end(&mut self, ended: &mut impl FnMut(String)) {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.text.clear();
        self.parentheses = 0;
        if !text.is_empty() {
            ended(text);
        }
    }

    fn line(&mut self, line: &str, mut ended: impl FnMut(String)) {
        let characters: Vec<char> = line.chars().collect();
        let mut at = 0;
        while let Some(&c) = characters.get(at) {
            let rest = &characters[at..];
            let starts = |s: &str| s.chars().enumerate().all(|(n, c)| rest.get(n) == Some(&c));
            let mut length = 1;
            match &mut self.within {
                Within::Quote(end, escapes) => {
                    if c == '\\' && *escapes {
                        length = 2;
                    } else if c == *end {
                        self.within = Within::Nothing;
                    }
                }
                Within::Dollar(tag) => {
                    if starts(tag) {
                        length = tag.chars().count();
                        self.within = Within::Nothing;
                    }
                }
                Within::Comment(depth) => {
                    if starts("*/") {
                        length = 2;
                        *depth -= 1;
                    } else if starts("/*") {
                        length = 2;
                        *depth += 1;
                    }
                    if *depth == 0 {
                        self.within = Within::Nothing;
                    }
                    at += length;
                    continue;
                }
                Within::Nothing => {
                    if starts("--") {
                        break;
                    }
                    if starts("/*") {
                        self.within = Within::Comment(1);
                        at += 2;
                        continue;
                    }
                    match c {
                        '\'' => self.within = Within::Quote('\'', self.text.ends_with(['e', 'E'])),
                        '"' => self.within = Within::Quote('"', false),
                        '$' => {
                            if let Some(tag) = dollar_tag(rest) {
                                length = tag.chars().count();
                                self.within = Within::Dollar(tag);
                            }
                        }
                        '(' => self.parentheses += 1,
                        ')' => self.parentheses -= 1,
                        ';' if self.parentheses <= 0 => {
                            self.end(&mut ended);
                            at += 1;
                            continue;
                        }
                        '\\' if starts("\\;") => length = 2,
                        '\\' => {
                            let word: String = rest[1..].iter().take_while(|c| c.is_ascii_alphabetic()).collect();
                            if ["g", "gx", "gset", "gexec", "gdesc", "crosstabview"].contains(&word.as_str()) {
                                self.end(&mut ended);
                            } else if ["r", "reset"].contains(&word.as_str()) {
                                self.end(&mut |_| {});
                            }
                            break;
                        }
                        _ => {}
                    }
                }
            }
            self.text.extend(&characters[at..(at + length).min(characters.len())]);
            at += length;
        }
        self.text.push(' ');
    }
}

/// `$$` or `$tag$` at the beginning.
fn dollar_tag(rest: &[char]) -> Option<String> {
    let tag: String = rest[1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
    let closed = rest.get(1 + tag.chars().count()) == Some(&'$') && !tag.starts_with(|c: char| c.is_ascii_digit());
    closed.then(|| format!("${tag}$"))
}

/// What psql (`-a`) printed after each line of the script and before it echoed the next one. Data of COPY are echoed
/// only where the server did not want them, which makes them a part of the answer.
pub fn answers(script: &str, printed: &str) -> Vec<String> {
    let data = Lines::of(script).data;
    let printed: Vec<&str> = printed.lines().collect();
    let mut answers = vec![String::new(); script.lines().count()];
    let (mut at, mut last) = (0, None);
    for (number, line) in script.lines().enumerate().filter(|(n, l)| !data[*n] && !l.trim().is_empty()) {
        // What is not echoed follows the end.
        let Some(found) = printed[at..].iter().position(|p| *p == line) else { continue };
        if let Some(last) = last {
            let answer: &mut String = &mut answers[last];
            *answer = printed[at..at + found].join("\n");
        }
        last = Some(number);
        at += found + 1;
    }
    if let Some(last) = last {
        answers[last] = printed[at..].join("\n");
    }
    answers
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &[(usize, &str)]) {
        let found: Vec<(usize, String)> = Lines::of(script).statements.into_iter().map(|s| (s.line, s.text)).collect();
        let expected: Vec<(usize, String)> = expected.iter().map(|(n, t)| (*n, (*t).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes() {
        check("SELECT 1;\nSELECT ';',\n  2; SELECT 3;\n", &[(0, "SELECT 1"), (2, "SELECT ';', 2"), (2, "SELECT 3")]);
        check(
            "DO $x$ a; $$ b; $x$; -- c;\n/* d; /* e; */ */ VALUES (E'\\';');",
            &[(0, "DO $x$ a; $$ b; $x$"), (1, "VALUES (E'\\';')")],
        );
    }

    #[test]
    fn a_rule_of_several_statements_is_one() {
        check(
            "CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b);",
            &[(0, "CREATE RULE r AS ON INSERT TO t DO (DELETE FROM a; DELETE FROM b)")],
        );
    }

    #[test]
    fn backslash_commands_end_what_they_run() {
        check("SELECT 1 AS x \\gset\n\\d t\nSELECT 2\n\\g\n", &[(0, "SELECT 1 AS x"), (3, "SELECT 2")]);
    }

    #[test]
    fn data_of_copy_are_no_statements() {
        let script = "COPY t FROM stdin;\n1;\n\\.\nSELECT 1;\n";
        check(script, &[(0, "COPY t FROM stdin"), (3, "SELECT 1")]);
        assert_eq!(Lines::of(script).clean, [false, false, true, true]);
    }

    #[test]
    fn what_follows_a_copy_that_is_refused_are_statements() {
        let script =
            "COPY t FROM stdin; -- fails\nSELECT 1;\nCOPY t FROM stdin;\n1\n\\.\nCOPY t FROM stdin;\nSELECT 2;\n";
        let copy = "COPY t FROM stdin";
        check(script, &[(0, copy), (1, "SELECT 1"), (2, copy), (5, copy), (6, "SELECT 2")]);
    }

    #[test]
    fn temporary_tables_become_plain_ones() {
        let script = "CREATE TEMP TABLE a (x int);\ncreate local temporary table if not exists b AS SELECT 1;\n\
                      SELECT 1 AS temp INTO TEMP c;\nCREATE TEMP VIEW v AS SELECT 1;";
        let plain = "CREATE TABLE a (x int);\ncreate table if not exists b AS SELECT 1;\n\
                     SELECT 1 AS temp INTO c;\nCREATE TEMP VIEW v AS SELECT 1;";
        let dropped = ["a", "b", "c"].map(|name| format!("\nDROP TABLE IF EXISTS {name} CASCADE;\n"));
        assert_eq!(without_temporary(script), format!("{plain}{}", dropped.concat()));
    }

    #[test]
    fn data_of_copy_are_not_looked_for() {
        let script = "COPY t FROM stdin;\n one\n\\.\nSELECT 1;\nSELECT 2;\n";
        let answers = answers(script, "COPY t FROM stdin;\nSELECT 1;\n one\nSELECT 2;\n two\n");
        assert_eq!(answers, ["", "", "", " one", " two"]);
    }

    #[test]
    fn an_answer_is_what_is_printed_before_the_next_line() {
        let script = "SELECT 1;\n\nSELECT\n 2;\n";
        let answers = answers(script, "SELECT 1;\n one\n\n\nSELECT\n 2;\n two\n");
        assert_eq!(answers, [" one\n\n", "", "", " two"]);
    }
}
