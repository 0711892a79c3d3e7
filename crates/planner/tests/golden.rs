//! SQL → plan. Each file of `tests/golden` is a topic; a case is SQL, a line `=>`, and the plan up to an empty line.
//! `UPDATE_GOLDEN=1` writes the plans anew: read the difference before committing it.
//!
//! Lines before the SQL: `-- callback`, `-- gives` (values of the router), `-- now TIME`, `-- temp NAME` and
//! `-- rows TABLE NUMBER` set the session, `-- my_func LANGUAGE (name type, …) BODY` tells of the function; `# …` is a
//! comment.
#![allow(clippy::unwrap_used)]

mod fixture;

use std::fmt::Write;

use std::sync::Arc;

use pgherd_catalog::{Argument, Routine};
use pgherd_planner::{Gives, Now, SessionView, plan};

/// `plpgsql (id int4, v text) BEGIN … END`
fn routine(words: &str) -> Routine {
    let (language, rest) = words.split_once(" (").unwrap();
    let (arguments, body) = rest.split_once(") ").unwrap();
    let argument = |text: &str| {
        let (name, type_name) = text.trim().rsplit_once(' ').unwrap();
        let type_oid = fixture::type_of(type_name).0;
        Argument { name: name.to_owned(), type_oid, type_name: type_name.to_owned(), ..Argument::default() }
    };
    Routine {
        schema: "public".to_owned(),
        name: "my_func".to_owned(),
        signature: "my_func(…)".to_owned(),
        language: language.to_owned(),
        body: body.to_owned(),
        arguments: arguments.split(',').map(argument).collect(),
        result: "void".to_owned(),
        options: "VOLATILE".to_owned(),
        ..Routine::default()
    }
}

fn planned(snapshot: &pgherd_catalog::Snapshot, block: &[&str]) -> String {
    let mut temp = Vec::new();
    let (mut callback, mut gives, mut now) = (false, false, None);
    let (mut sql, mut rows, mut routines) = (Vec::new(), Vec::new(), Vec::new());
    for line in block {
        if *line == "-- callback" {
            callback = true;
        } else if *line == "-- gives" {
            gives = true;
        } else if let Some(words) = line.strip_prefix("-- my_func ") {
            routines.push(Arc::new(routine(words)));
        } else if let Some(name) = line.strip_prefix("-- temp ") {
            temp.push(name);
        } else if let Some(time) = line.strip_prefix("-- now ") {
            now = Some(Now::Text(time));
        } else if let Some((table, number)) = line.strip_prefix("-- rows ").and_then(|words| words.split_once(' ')) {
            let table = snapshot.by_oid.values().find(|t| t.name == table).unwrap().oid;
            rows.push((table, number.parse().unwrap()));
        } else if !line.starts_with('#') {
            sql.push(*line);
        }
    }
    let session = fixture::Session::new(&temp);
    let session = rows.into_iter().fold(session, |session, (table, rows)| session.with_rows(table, rows));
    let sql = sql.join("\n");
    let statements = pgherd_sql::split(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let settings = ["application_name"];
    let gives = gives.then(|| Gives {
        parameters: statements[0].params,
        settings: &settings,
        draws: true,
        time: now.is_some(),
    });
    let view = SessionView { callback, multi_statement_txn_now: now, gives, routines: &routines, ..session.view() };
    let plan = plan(&statements[0], snapshot, &view);
    plan.to_string().trim_end().to_owned()
}

#[test]
fn plans_are_as_recorded() {
    let snapshot = fixture::snapshot();
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = String::new();
    let mut cases = 0;
    let mut files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut out = String::new();
        for block in text.split("\n\n").map(str::trim).filter(|b| !b.is_empty()) {
            let lines: Vec<&str> = block.lines().collect();
            let at = lines.iter().position(|l| *l == "=>").unwrap_or(lines.len());
            let (sql, expected) = (&lines[..at], lines.get(at + 1..).unwrap_or(&[]).join("\n"));
            if sql.iter().all(|l| l.starts_with('#')) {
                writeln!(out, "{block}\n").unwrap();
                continue;
            }
            cases += 1;
            let plan = planned(&snapshot, sql);
            if plan != expected {
                writeln!(
                    wrong,
                    "{}: {}\n--- recorded\n{expected}\n--- planned\n{plan}\n",
                    file.display(),
                    sql.join("\n")
                )
                .unwrap();
            }
            writeln!(out, "{}\n=>\n{plan}\n", sql.join("\n")).unwrap();
        }
        if update {
            std::fs::write(&file, out.trim_end().to_owned() + "\n").unwrap();
        }
    }
    assert!(cases > 100, "only {cases} cases");
    assert!(update || wrong.is_empty(), "{wrong}");
}
