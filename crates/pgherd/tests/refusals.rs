//! Each refusal of the list in docs/sql-interface.md has a statement in tests/refusals.sql that meets it, or a line
//! there that says why no statement does.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use pgherd_testkit::script::{Script, Step};
use pgherd_testkit::{Cluster, listed_refusals, workspace_file};

/// What a line says of a refusal that no statement here can meet.
const UNTOLD: &str = "-- without a case: `";

/// `…` in the pattern stands for anything.
fn matches(pattern: &str, message: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else { return false };
    let mut exact = true;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        exact = !part.is_empty();
    }
    !exact || rest.is_empty() || pattern.ends_with('…')
}

#[test]
fn every_refusal_has_a_case() {
    let file = workspace_file("tests/refusals.sql");
    let text = std::fs::read_to_string(&file).unwrap();
    let page = std::fs::read_to_string(workspace_file("docs/sql-interface.md")).unwrap();
    let listed = listed_refusals(&page);
    let untold: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix(UNTOLD)?.split_once("`: "))
        .inspect(|(message, why)| assert!(!why.is_empty(), "why has {message} no case?"))
        .map(|(message, _)| message.to_owned())
        .collect();
    let script = Script::read(&file).unwrap();
    let statements: Vec<_> = script
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Statement(statement) => Some(statement),
            Step::Setup { .. } => None,
        })
        .collect();
    let told: BTreeSet<String> = statements.iter().filter_map(|s| s.refused.clone()).collect();
    let cases: BTreeSet<String> = told.union(&untold).cloned().collect();
    let missing: Vec<_> = listed.difference(&cases).collect();
    assert!(missing.is_empty(), "tests/refusals.sql has no case for {missing:#?}");
    let unlisted: Vec<_> = cases.difference(&listed).collect();
    assert!(unlisted.is_empty(), "docs/sql-interface.md does not list {unlisted:#?}");

    let cluster = Cluster::shared(env!("CARGO_BIN_EXE_pgherd"));
    let side = cluster.side();
    side.create_database("refusals", "").unwrap();
    let mut client = side.connect("refusals").unwrap();
    let mut wrong = Vec::new();
    for statement in statements {
        let reply = client.simple(&statement.sql, statement.copy_in.as_deref()).unwrap();
        let said = reply.error().map(|e| format!("{}: {}", e.sqlstate(), e.message()));
        let right = match (&statement.refused, reply.error()) {
            (None, None) => true,
            (Some(pattern), Some(error)) => {
                matches!(error.sqlstate(), "0A000" | "PH001") && matches(pattern, error.message())
            }
            _ => false,
        };
        if !right {
            let wanted = statement.refused.as_deref().unwrap_or("no error");
            wrong.push(format!("line {}: {}\n  wanted: {wanted}\n  said: {said:?}", statement.line, statement.sql));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
