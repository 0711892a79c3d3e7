//! The byte range of every expression, parsed by itself, gives the same expression again.
#![allow(clippy::unwrap_used)]

use pgherd_sql::ast::{Expr, ExprKind, Tree};
use pgherd_sql::{Statement, split};

/// The tree without positions.
fn shape(expr: &Expr) -> String {
    let text = format!("{:?}", expr.kind);
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span {") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('}').unwrap();
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

fn one(sql: &str) -> Statement {
    split(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).remove(0)
}

fn first_item(statement: &Statement) -> String {
    let Tree::Query(query) = &statement.tree else { panic!("no query") };
    let pgherd_sql::ast::Body::Select(select) = &query.body else { panic!("no select") };
    shape(&select.items[0].expr)
}

fn check(sql: &str) {
    let statement = one(sql);
    assert!(!statement.has_unknown, "{sql}: not understood");
    let mut seen = 0;
    statement.tree.walk_all(&mut |_, expr| {
        if matches!(
            expr.kind,
            ExprKind::List(_) | ExprKind::NamedArg { .. } | ExprKind::Default | ExprKind::CurrentOf(_)
        ) {
            return;
        }
        if matches!(&expr.kind, ExprKind::Call(c) if c.name == "like_escape" || c.name == "similar_to_escape") {
            return;
        }
        if statement.slice(expr.span).starts_with('[') {
            return; // the inner array of a nested one
        }
        seen += 1;
        let text = statement.slice(expr.span);
        assert!(!text.is_empty(), "{sql}: no range for {:?}", expr.kind);
        let again = match &expr.kind {
            ExprKind::Star(_) => format!("SELECT {text}"),
            _ => format!("SELECT ({text})"),
        };
        let parsed = split(&again).unwrap_or_else(|e| panic!("{sql}: range {text:?}: {e}"));
        // The range of `a IN (SELECT …)` below NOT has the word NOT in it.
        let outer = first_item(&parsed[0]);
        let negated = format!("Not(Expr {{ kind: {}, span:  }})", shape(expr));
        assert!(outer == shape(expr) || outer == negated, "{sql}: range {text:?}: {outer} is not {}", shape(expr));
    });
    assert!(seen > 0, "{sql}: nothing seen");
}

#[test]
fn every_expression_range_parses_to_the_same_expression() {
    for sql in [
        "select a, t.b, s.t.c, * from t",
        "select 1, -1, - (1), +2, 1.5, 'x', 'a''b', E'\\n', $$d$$, null, true, false, b'01'",
        "select (a+b)*c, ((a)), -(a+b), not (a or b) and c, a is null, (a+b) is not null, a is true, a is not unknown",
        "select a::int, (a+b)::numeric(10,2), cast(a as varchar(20)), date '2020-01-01', interval '1' day, \
         interval '1 2' day to second, '1'::character varying(3)::text, a::timestamp(3) with time zone, a::int[], \
         a::double precision, a::int4[3], timestamp with time zone '2020-01-01 00:00', a::pg_catalog.int4, a::bit varying(3)",
        "select count(*), count(distinct a), sum(a) filter (where b > 1), max(a) over (partition by b order by c desc), \
         rank() over w, percentile_cont(0.5) within group (order by x), f(a, b => 1, variadic c), pg_catalog.lower(x) \
         from t window w as (order by a)",
        "select a in (1, 2, 3), a not in (select 1), (a, b) in ((1, 2), (3, 4)), a = any (array[1,2]), a <> all (b), \
         a between 1 and 2 + 3, a not between symmetric 1 and 2, a like 'x%', a not ilike 'y' escape '!', \
         a similar to 'z', a is distinct from b, a is not distinct from 5, nullif(a, 0), a operator(pg_catalog.=) b",
        "select case when a then b when c then d else e end, case a when 1 then case b when 2 then 3 end end + 1",
        "select coalesce(a, b, 0) + 1, greatest(a, b), least(1, 2), array[1, 2], array[[1],[2]], row(1, 2), (1, 2), \
         array(select 1), (select 2), exists (select 3 from t where t.a = u.b)",
        "select a[1], a[1:2], (c).f, (f(x)).y, (a || b)[1], a.b[2].c, x collate \"C\", (x || y) collate \"de_DE\"",
        "select current_timestamp, current_timestamp(3), current_date, localtime, user, current_user",
        "select a at time zone 'utc', (a + b) at time zone 'utc', extract('year' from a), substring(a from 1 for 2), \
         trim(both 'x' from a), position('a' in b), overlay(a placing b from 1), (a, b) overlaps (c, d)",
        "select a = 1 and (b = 2 or c = 3) and not d, $1, $2::int, a->'x'->>'y', a @> '{}', !!a, ~a from t",
        "select x from t where (a, b) = (1, 2) and (a = (select max(b) from u) or a > any (select 1))",
        "insert into t (a, b) values (1, -2), ((1 + 2) * 3, 'x'), (default, null) on conflict (a) do update set b = \
         excluded.b + 1 where t.c > 1 returning a, b + 1",
        "update t set a = a + 1, (b, c) = (1, 2), d[1] = 5 from u where t.k = u.k and u.x in (1) returning *, t.a",
        "delete from only t using u where t.k = u.k",
        "with x as (select a + 1 as b from t where c = 5) select b from x join y using (b) left join z on x.b = z.c + 1 \
         group by 1, b having count(*) > 1 order by 1 desc nulls last, b + 1 limit 5 + 1 offset 2",
        "merge into t using s on t.k = s.k when matched and s.x > 1 then update set a = s.a when not matched then \
         insert (k, a) values (s.k, 1 + s.a)",
        "select /* a comment */ a -- another\n + b, U&'d\\0061t\\+000061', U&\"d!0061t!+000061\" uescape '!' from t",
        "select 'ä' || a, \"ü\".\"ö\" + 1 from \"ü\"",
        "values (1, a + 2), (3, 4)",
        "select grouping(a), a from t group by a",
    ] {
        check(sql);
    }
}

#[test]
fn later_statements_have_ranges_of_their_own() {
    let statements = split("select 1;;\n -- note\n select 'ä', b + 2 from t ; ").unwrap();
    let texts: Vec<(&str, usize)> = statements.iter().map(|s| (s.text.as_str(), s.offset)).collect();
    assert_eq!(texts, [("select 1", 0), ("select 'ä', b + 2 from t", 21)]);
    assert_eq!(statements[1].slice(statements[1].relations[0].span), "t");
}

#[test]
fn relation_names_are_found_with_only_and_star() {
    let sql = "select * from only (public.a) x, only b, c *, \"D\".e, lateral (select 1 from f) g where h in (table i)";
    let statement = one(sql);
    let found: Vec<(&str, &str, bool)> =
        statement.relations.iter().map(|r| (statement.slice(r.span), statement.slice(r.full_span), r.only)).collect();
    assert_eq!(
        found,
        [
            ("public.a", "only (public.a)", true),
            ("b", "only b", true),
            ("c", "c *", false),
            ("\"D\".e", "\"D\".e", false),
            ("f", "f", false),
            ("i", "i", false),
        ]
    );
}

#[test]
fn a_text_without_statements_has_none() {
    for sql in ["", "  ", "-- x", "/* a */ ;", ";;"] {
        assert!(split(sql).unwrap().is_empty(), "{sql:?}");
    }
}

#[test]
fn what_does_not_parse_is_an_error() {
    let error = split("selec 1").unwrap_err();
    assert_eq!((error.message.as_str(), error.sqlstate), ("syntax error at or near \"selec\"", "42601"));
    assert!(split("select 'unterminated").is_err());
}

#[test]
fn deep_nesting_is_refused_and_breadth_is_not() {
    let deep = format!("select {}1{}", "(".repeat(9000), ")".repeat(9000));
    assert_eq!(split(&deep).unwrap_err().sqlstate, "54001");
    let sum = format!("select 1{}", "+1".repeat(100_000));
    assert_eq!(split(&sum).unwrap_err().sqlstate, "54001");
    let some = format!("select 1{}", "+1".repeat(4000));
    assert!(split(&some).is_ok());
    let wide =
        format!("select * from t where {} and a in ({})", vec!["b = 1"; 2000].join(" or "), vec!["-1"; 5000].join(","));
    assert!(split(&wide).is_ok());
    let rows = format!("insert into t values {}", vec!["(1, -2, 'x' || 'y')"; 5000].join(","));
    assert!(split(&rows).is_ok());
}

#[test]
fn the_clause_of_a_conflict_ends_before_returning() {
    let check = |sql: &str, clause: &str, values: &[&str]| {
        let statement = one(sql);
        let tree = match &statement.tree {
            Tree::Query(query) => &query.with.as_ref().unwrap().ctes[0].tree,
            tree => tree,
        };
        let Tree::Insert(insert) = tree else { panic!("{sql}: no INSERT") };
        let conflict = insert.on_conflict.as_ref().unwrap();
        assert_eq!(statement.slice(conflict.span), clause);
        let found: Vec<&str> = conflict.set.iter().map(|a| statement.slice(a.value.span)).collect();
        assert_eq!(found, values, "{sql}");
    };
    check("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING RETURNING k", "ON CONFLICT DO NOTHING", &[]);
    check(
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET a = (b + 1) * (c) -- RETURNING '\n RETURNING k",
        "ON CONFLICT (k) DO UPDATE SET a = (b + 1) * (c)",
        &["(b + 1) * (c)"],
    );
    check(
        "WITH i AS (INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET (a, b) = ((c + 1) * (d), DEFAULT), \
         (e) = ROW ((f)), g = $$ RETURNING $$ WHERE t.k > 1 RETURNING k) SELECT * FROM i",
        "ON CONFLICT (k) DO UPDATE SET (a, b) = ((c + 1) * (d), DEFAULT), (e) = ROW ((f)), g = $$ RETURNING $$ \
         WHERE t.k > 1",
        &["(c + 1) * (d)", "DEFAULT", "(f)", "$$ RETURNING $$"],
    );
    check(
        "INSERT INTO t VALUES (1) ON CONFLICT (k) DO UPDATE SET (a, b) = (SELECT 1, 2), c = 3",
        "ON CONFLICT (k) DO UPDATE SET (a, b) = (SELECT 1, 2), c = 3",
        &["(SELECT 1, 2)", "(SELECT 1, 2)", "3"],
    );
}
