//! Where utility statements run.
#![allow(clippy::unwrap_used)]

mod fixture;

use pgherd_planner::{DdlScope, ddl_scope};

fn check(sql: &str, expected: &str) {
    let session = fixture::Session::new(&["hidden"]);
    let statement = pgherd_sql::split(sql).unwrap().remove(0);
    let scope = match ddl_scope(&statement, &fixture::snapshot(), &session.view()) {
        Ok(DdlScope::Coordinator) => "coordinator".to_owned(),
        Ok(DdlScope::AllNodes) => "all nodes".to_owned(),
        Ok(DdlScope::Tables(tables)) => tables.iter().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", "),
        Err(refusal) => format!("{}: {}", refusal.sqlstate, refusal.message),
    };
    assert_eq!(scope, expected, "{sql}");
}

#[test]
fn statements_on_distributed_tables_go_to_their_nodes() {
    check("alter table test add column x int", "test");
    check("alter table public.test rename column c1 to d1", "test");
    check("alter table test add foreign key (c1) references regions (id)", "test, regions");
    check("create index concurrently on test (c1)", "test");
    check("drop table test, local_t, regions cascade", "test, regions");
    check("truncate test, docs", "test, docs");
    check("vacuum analyze test", "test");
    check("lock table test in exclusive mode", "test");
    check("comment on column test.c1 is 'x'", "test");
    check("grant select on test, local_t to public", "test");
    check("create trigger x before insert on test for each row execute function f()", "test");
    check("create policy p on public.test using (true)", "test");
    check("create statistics s on c1, c2 from test", "test");
    check("reindex table test", "test");
    check("cluster test using i", "test");
    check("copy test from stdin", "test");
    check("drop trigger x on test", "test");
}

#[test]
fn what_tables_are_built_on_is_on_every_node() {
    for sql in [
        "create schema s",
        "create role r",
        "grant a to b",
        "create type t as enum ('a')",
        "create function f() returns int language sql as 'select 1'",
        "drop function f()",
        "create extension citext",
        "create domain d as int",
        "alter role all set x = 1",
        "create database d",
        "alter database d owner to x",
        "checkpoint",
        "grant usage on schema s to x",
    ] {
        check(sql, "all nodes");
    }
}

#[test]
fn everything_else_is_the_coordinators() {
    for sql in [
        "create table t (id int references regions (id))",
        "create view v as select * from test",
        "create sequence s",
        "alter table local_t add column x int",
        "create temp table x (a int)",
        "drop table other.test",
        "truncate hidden",
        "vacuum",
        "listen x",
        "create publication p for all tables",
    ] {
        check(sql, "coordinator");
    }
}

#[test]
fn a_foreign_key_to_a_distributed_table_needs_distribution_first() {
    check(
        "create table t (id int references test (id))",
        "0A000: cannot create a foreign key from a local table to the distributed table \"test\"",
    );
}
