//! Large and deep statements are planned, and dropped, on an ordinary stack.
#![allow(clippy::unwrap_used)]

mod fixture;

use pgherd_planner::plan;

fn tier(sql: &str) -> &'static str {
    let session = fixture::Session::new(&[]);
    let statement = pgherd_sql::split(sql).unwrap().remove(0);
    plan(&statement, &fixture::snapshot(), &session.view()).tier.name()
}

/// `inner` within as many of `open` and `close`.
fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn deep_expressions_are_planned() {
    for times in [150, 3000] {
        assert_eq!(tier(&format!("select id{} from test where id = 5", " + 1".repeat(times))), "route");
        assert_eq!(tier(&format!("select {} from test", nested("abs(", "c1", ")", times / 2))), "scatter");
        assert_eq!(tier(&format!("select {} from test", nested("(", "c1", ")", times))), "scatter");
        assert_eq!(
            tier(&format!("select c1 from test where {}", nested("not (", "c1 = 1", ")", times / 2))),
            "scatter"
        );
        assert_eq!(tier(&format!("select c1{} from test", "::int".repeat(times))), "scatter");
        let cases = nested("case when c1 = 1 then 1 else ", "0", " end", times / 4);
        assert_eq!(tier(&format!("select {cases} from test")), "scatter");
    }
    for times in [60, 300] {
        let nested = format!("select * from {}", nested("(select * from ", "test where id = 5", ") s", times));
        assert_eq!(tier(&nested), "route");
    }
}

#[test]
fn many_set_operations_are_planned() {
    for times in [300, 3000] {
        assert_eq!(tier(&format!("select id, c1 from test{}", " union all select 1, 2".repeat(times))), "stage");
        let routed = " union all select id, c1 from test where id = 5".repeat(times);
        assert_eq!(tier(&format!("select id, c1 from test where id = 5{routed}")), "route");
    }
}

#[test]
fn what_no_server_takes_is_refused() {
    for sql in [
        format!("select 1{}", " + 1".repeat(20_000)),
        format!("select {}", nested("(", "1", ")", 9000)),
        format!("select 1, 2{}", " union all select 1, 2".repeat(20_000)),
        format!("select {}", nested("case when 1 then ", "1", " end", 9000)),
    ] {
        assert_eq!(pgherd_sql::split(&sql).unwrap_err().sqlstate, "54001");
    }
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
