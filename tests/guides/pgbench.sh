#!/usr/bin/env bash
# pgbench, as the guides of Citus 7 to 10 do it: load, distribute, look at sizes, run read-only and read-write in all
# three protocols, and then the books must balance.
. "$(dirname "$0")/lib.sh"
scale=${GUIDE_SCALE:-5} seconds=${GUIDE_SECONDS:-4}

distribute() {
    typed <<SQL
set citus.shard_count =$1;
select create_distributed_table('pgbench_accounts','aid');
select create_distributed_table('pgbench_branches','bid');
select create_distributed_table('pgbench_tellers','tid');
select create_distributed_table('pgbench_history','aid');
SQL
}

counts() { sql "select (select count(*) from pgbench_accounts), (select count(*) from pgbench_branches), (select count(*) from pgbench_tellers), (select count(*) from pgbench_history)"; }

say "load and distribute over 128 shards"
must "pgbench -i" pgbench -i -s "$scale"
printed=$(distribute 128)
if on_cluster; then
    check_lines "rows of the three loaded tables are copied" 3 '^NOTICE:  Copying data from local table\.\.\.' "$printed"
    check_lines "no errors" 0 'ERROR|FATAL|WARNING' "$printed"
    printed=$(typed <<<'SELECT truncate_local_data_after_distributing_table($$public.pgbench_accounts$$);')
    check_lines "truncate_local_data_after_distributing_table" 0 'ERROR|FATAL' "$printed"
    check "shards of a table" 128 "$(sql "select count(*) from pg_dist_shard where logicalrelid = 'pgbench_accounts'::regclass")"
    check "tables of one key type are colocated" 1 "$(sql "select count(distinct colocation_id) from citus_tables where table_name::text like 'pgbench%'")"
    check "every worker holds shards" "$(sql "select count(*) from master_get_active_worker_nodes()")" \
        "$(sql "select count(distinct nodeport) from citus_shards where table_name = 'pgbench_accounts'::regclass")"
    check "the size is that of all shards" t "$(sql "select pg_relation_size('pgbench_accounts') = citus_relation_size('pgbench_accounts')")"
fi
check "rows after distributing" "$((scale * 100000))|$scale|$((scale * 10))|0" "$(counts)"
check_match "size" '^[0-9]+ MB$' "$(sql "SELECT pg_size_pretty(citus_total_relation_size('pgbench_accounts'))")"
check "size with indexes is more" t "$(sql "SELECT citus_total_relation_size('pgbench_accounts') > citus_relation_size('pgbench_accounts') AND citus_table_size('pgbench_accounts') > $scale * 10000000")"

say "plans"
plan=$(sql "explain select * from pgbench_accounts where aid = 7")
check_match "an index scan" 'Index Scan' "$plan"
if on_cluster; then
    check_match "one task" 'Task Count: 1$' "$plan"
    check_match "on a node" 'Node: host=[^ ]+ port=[0-9]+ dbname=[^ ]+' "$plan"
    plan=$(sql "explain select count(*) from pgbench_accounts")
    check_match "tasks of a scan" 'Task Count: [0-9]+' "$plan"
    check_match "of which one is shown" 'Tasks Shown: One of [0-9]+' "$plan"
fi

say "read-only"
must "the guide's command" pgbench -M prepared -v -r -P 1 -c 32 -j 2 -T "$seconds" -S
check_match "no transaction failed" 'number of failed transactions: 0|number of transactions actually processed: [1-9]' "$output"
check_lines "nobody was thrown out" 0 'abort|ERROR|FATAL' "$output"
for protocol in simple extended; do
    must "pgbench -S -M $protocol" pgbench -n -M $protocol -c 8 -j 2 -T "$seconds" -S
    check_lines "nobody was thrown out" 0 'abort|ERROR|FATAL' "$output"
done

say "read-write"
processed=0
for protocol in simple extended prepared; do
    must "pgbench -M $protocol" pgbench -n -M $protocol -r -P 1 -c 16 -j 2 -T "$seconds"
    check_lines "nobody was thrown out" 0 'abort|ERROR|FATAL' "$output"
    n=$(printf '%s\n' "$output" | sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p')
    check_match "transactions were processed" '^[1-9]' "$n"
    processed=$((processed + ${n:-0}))
    check "the books balance" 1 "$(sql "select count(distinct s) from (select sum(abalance) from pgbench_accounts union all select sum(bbalance) from pgbench_branches union all select sum(tbalance) from pgbench_tellers union all select sum(delta) from pgbench_history) t(s)")"
    check "history has every transaction" "$processed" "$(sql "select count(*) from pgbench_history")"
done
check "each account agrees with its history" 0 "$(sql "select count(*) from pgbench_accounts a left join (select aid, sum(delta) as s from pgbench_history group by aid) h on h.aid = a.aid where a.abalance <> coalesce(h.s, 0)")"
check "each branch agrees with its history" 0 "$(sql "select count(*) from pgbench_branches b left join (select bid, sum(delta) as s from pgbench_history group by bid) h using (bid) where b.bbalance <> coalesce(h.s, 0)")"
must "a simple update" pgbench -n -N -c 4 -T 1
check "two-phase commit left nothing behind" 0 "$(sql "select count(*) from pg_prepared_xacts")"
if on_cluster; then
    check "nor on a worker" 0 "$(sql "select coalesce(sum(result::int), 0) from run_command_on_workers('select count(*) from pg_prepared_xacts')")"
fi

say "other shard counts"
for shards in 8 3 9 32; do
    must "pgbench -i over distributed tables" pgbench -i -s 1 -q
    printed=$(distribute $shards)
    check_lines "distribute over $shards" 0 'ERROR|FATAL' "$printed"
    if on_cluster; then
        check "shards" "$shards" "$(sql "select count(*) from pg_dist_shard where logicalrelid = 'pgbench_tellers'::regclass")"
    fi
    check "rows" "100000|1|10|0" "$(counts)"
    must "transactions" pgbench -n -M prepared -c 4 -t 50
    check "history" 200 "$(sql "select count(*) from pgbench_history")"
done
must "pgbench's own variants" pgbench -i -s 1 -I dtgvpf
must "drop" pgbench -i -I d
check "nothing is left" 0 "$(sql "select count(*) from pg_class where relname like 'pgbench%'")"
