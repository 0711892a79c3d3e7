//! What each statement is: `tests/golden/kinds.txt` has SQL, `=>`, and the kind with ranges shown as their text, then
//! the relations named. `UPDATE_GOLDEN=1` writes it anew.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use pgherd_sql::{Statement, own_calls, qualify_own, split};

/// The debug text with each `Span { start: a, end: b }` shown as what it covers.
fn with_texts(statement: &Statement, debug: &str) -> String {
    let mut out = String::new();
    let mut rest = debug;
    while let Some(at) = rest.find("Span { start: ") {
        out.push_str(&rest[..at]);
        let end = at + rest[at..].find('}').unwrap();
        let numbers: Vec<usize> =
            rest[at..end].split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        write!(out, "«{}»", statement.text.get(numbers[0]..numbers[1]).unwrap()).unwrap();
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

fn shown(sql: &str) -> String {
    let mut out = String::new();
    for statement in split(sql).unwrap_or_else(|e| panic!("{sql}: {e}")) {
        writeln!(out, "{}", with_texts(&statement, &format!("{:?}", statement.kind))).unwrap();
        let names: Vec<&str> = statement.relations.iter().map(|r| statement.slice(r.span)).collect();
        if !names.is_empty() {
            writeln!(out, "relations: {}", names.join(", ")).unwrap();
        }
        for call in own_calls(&statement) {
            writeln!(out, "own: {}", with_texts(&statement, &format!("{call:?}"))).unwrap();
        }
        let qualified = qualify_own(&statement).unwrap().as_written();
        if qualified != statement.text {
            writeln!(out, "coordinator: {qualified}").unwrap();
        }
    }
    out.trim_end().to_owned()
}

#[test]
fn kinds_are_as_recorded() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/kinds.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut out, mut wrong, mut cases) = (String::new(), String::new(), 0);
    for block in text.split("\n\n").map(str::trim).filter(|b| !b.is_empty()) {
        if block.starts_with('#') {
            writeln!(out, "{block}\n").unwrap();
            continue;
        }
        let (sql, expected) = block.split_once("\n=>\n").unwrap_or((block, ""));
        let kind = shown(sql);
        if kind != expected {
            writeln!(wrong, "{sql}\n--- recorded\n{expected}\n--- now\n{kind}\n").unwrap();
        }
        writeln!(out, "{sql}\n=>\n{kind}\n").unwrap();
        cases += 1;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, out.trim_end().to_owned() + "\n").unwrap();
        return;
    }
    assert!(cases > 100, "only {cases} cases");
    assert!(wrong.is_empty(), "{wrong}");
}
