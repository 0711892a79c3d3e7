#!/usr/bin/env bash
# A table of a million rows that is filled, doubled, grouped and explained, and nine rows that go to nine shards.
. "$(dirname "$0")/lib.sh"

say "a million rows"
printed=$(typed <<'SQL'
create table test (id int, c1 int, c2 int, c3 int, info text, crt_time timestamp);
select create_distributed_table('test', 'id');
insert into test select id, random()*100, random()*100, random()*100, md5(random()::text), clock_timestamp() from generate_series(1,1000000) t(id);
SQL
)
check_match "create" '^CREATE TABLE$' "$printed"
check_match "insert" '^INSERT 0 1000000$' "$printed"
check "rows, keys, range" "1000000|1000000|1|1000000" "$(sql "select count(*), count(distinct id), min(id), max(id) from test")"
check "random() was called for every row" t "$(sql "select count(distinct info) > 999000 and count(distinct c1) = 101 from test")"
check_match "double" '^INSERT 0 1000000$' "$(typed <<<'insert into test select * from test;')"
check "rows after doubling" "2000000|1000000" "$(sql "select count(*), count(distinct id) from test")"
check "every key twice" 0 "$(sql "select count(*) from (select id from test group by id having count(*) <> 2) t")"

say "plans"
plan=$(sql "explain select * from test limit 1")
check_match "a limit" 'Limit' "$plan"
plan1=$(sql "explain select * from test where id=1")
check_match "a filter" 'id = 1' "$plan1"
analyzed=$(sql "explain (analyze,verbose,timing,costs,buffers) select count(*) from test")
check_match "an aggregate" 'Aggregate' "$analyzed"
check_match "that was run" 'actual time=' "$analyzed"
check_match "with its pages" 'Buffers: shared' "$analyzed"
check_match "as JSON" '"Plan"' "$(sql "explain (format json) select count(*) from test")"
if on_cluster; then
    check_match "the limit is pushed down: a worker's plan has it too" 't' "$([ "$(grep -c Limit <<<"$plan")" -ge 1 ] && grep -q 'Task' <<<"$plan" && echo t)"
    check_match "one task" 'Task Count: 1$' "$plan1"
    prepared=$(sql "prepare one (int) as select * from test where id = \$1; explain execute one (1)")
    check_match "one task of a prepared statement" 'Task Count: 1$' "$prepared"
    check_match "with its value" 'id = 1' "$prepared"
    check_match "and what it took" 'actual time=' "$(sql "prepare n (int) as select count(*) from test where c1 > \$1; explain (analyze) execute n (50)")"
    check_match "tasks" 'Task Count: [0-9]+' "$analyzed"
    check_match "shown" 'Tasks Shown: One of [0-9]+' "$analyzed"
    check_match "node" 'Node: host=[^ ]+ port=[0-9]+ dbname=' "$analyzed"
fi

say "queries"
check "ten groups" 10 "$(sql "select c1,count(*) from test group by c1 order by count(*) desc limit 10" | wc -l)"
check "in order" t "$(sql "select c1,count(*) from test group by c1 order by count(*) desc limit 10" | cut -d'|' -f2 | sort -rnc && echo t)"
check "groups add up" 2000000 "$(sql "select sum(n) from (select c1, count(*) as n from test group by c1) t")"
check "one key" 2 "$(sql "select count(*) from test where id = 4711")"
check "limit" 5 "$(sql "select id from test limit 5" | wc -l)"
check "update of one" "UPDATE 2" "$(typed <<<'update test set c1 = -1 where id = 77;')"
check "update of many" "UPDATE 200000" "$(typed <<<'update test set c2 = -1 where id <= 100000;')"
check "delete of many" "DELETE 1000000" "$(typed <<<'delete from test where id > 500000;')"
check "rows left" 1000000 "$(sql "select count(*) from test")"

say "nine rows over nine shards"
printed=$(typed <<'SQL'
set citus.shard_count = 9;
create table nine (id int primary key, info text);
select create_distributed_table('nine', 'id', colocate_with => 'none');
insert into nine values (1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e'),(6,'f'),(7,'g'),(8,'h'),(9,'i');
SQL
)
check_match "insert" '^INSERT 0 9$' "$printed"
check "all there" "9|45" "$(sql "select count(*), sum(id) from nine")"
check "each by its key" "abcdefghi" "$(for i in 1 2 3 4 5 6 7 8 9; do sql "select info from nine where id = $i"; done | tr -d '\n')"
if on_cluster; then
    check "nine shards" 9 "$(sql "select count(*) from pg_dist_shard where logicalrelid = 'nine'::regclass")"
    check "a key's shard" 1 "$(sql "select count(*) from pg_dist_shard where shardid = get_shard_id_for_distribution_column('nine', 5)")"
fi
must "drop" sql "drop table test, nine"
