//! Large and deep statements are planned on an ordinary stack.
#![allow(clippy::unwrap_used)]

mod fixture;

use pgherd_planner::plan;

fn tier(sql: &str) -> &'static str {
    let session = fixture::Session::new(&[]);
    let statement = pgherd_sql::split(sql).unwrap().remove(0);
    plan(&statement, &fixture::snapshot(), &session.view()).tier.name()
}

#[test]
fn deep_expressions_are_planned() {
    assert_eq!(tier(&format!("select id{} from test where id = 5", " + 1".repeat(380))), "route");
    assert_eq!(tier(&format!("select {}c1{} from test", "abs(".repeat(150), ")".repeat(150))), "scatter");
    let nested = format!("{}select * from test where id = 5{}", "select * from (".repeat(60), ") s".repeat(60));
    assert_eq!(tier(&nested), "route");
}

#[test]
fn wide_statements_are_planned() {
    let list: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    assert_eq!(tier(&format!("select * from test where id in ({})", list.join(", "))), "scatter");
    let rows: Vec<String> = (0..20_000).map(|n| format!("({n}, -{n})")).collect();
    assert_eq!(tier(&format!("insert into test (id, c1) values {}", rows.join(", "))), "insert rows");
    let joins: Vec<String> = (0..40).map(|n| format!("join test t{n} on t{n}.id = t.id")).collect();
    assert_eq!(tier(&format!("select t.id from test t {} where t.id = 5", joins.join(" "))), "route");
}
