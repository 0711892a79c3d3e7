#!/usr/bin/env bash
# The SQL interface of distribution: nodes, tables, settings, metadata, several databases, and mistakes.
. "$(dirname "$0")/lib.sh"
on_cluster || { echo "only on a cluster"; exit 0; }
fails() { psql -XAtq -v VERBOSITY=verbose -c "$1" 2>&1; }

say "nodes"
workers=$(sql "select count(*) from master_get_active_worker_nodes()")
check "workers" "$workers" "$(sql "select count(*) from citus_get_active_worker_nodes()")"
check "in pg_dist_node" "$workers" "$(sql "select count(*) from pg_dist_node where noderole = 'primary' and isactive and groupid > 0")"
check "the coordinator is group 0" 1 "$(sql "select count(*) from pg_dist_node where groupid = 0")"
check_match "version" '[0-9]' "$(sql "select citus_version()")"
read -r host port < <(sql "select nodename || ' ' || nodeport from pg_dist_node where groupid > 0 order by groupid limit 1")
id=$(sql "select nodeid from pg_dist_node where nodename = '$host' and nodeport = $port")
check "adding a node again changes nothing" "$id" "$(sql "select citus_add_node('$host', $port)")"
check "by its old name, in FROM" "$id" "$(sql "select * from master_add_node('$host', $port)")"
check "inside an expression" "node $id" "$(sql "select 'node ' || citus_add_node('$host', $port)")"
check "nodes are as many as before" "$workers" "$(sql "select count(*) from pg_dist_node where groupid > 0")"
check_match "a node that does not answer" 'ERROR' "$(fails "select citus_add_node('127.0.0.1', 1)")"
check "is not added" "$workers" "$(sql "select count(*) from pg_dist_node where groupid > 0")"
check "a command on every worker" "$workers" "$(sql "select count(*) from run_command_on_workers('select 1') where success and result = '1'")"
check "that fails" "$workers" "$(sql "select count(*) from run_command_on_workers('select 1/0') where not success and result like '%division by zero%'")"

say "tables"
printed=$(typed <<'SQL'
create table countries (code char(2) primary key, name text);
insert into countries values ('de', 'Germany'), ('fr', 'France');
create table people (id bigint primary key, name text, country char(2));
insert into people select i, 'p' || i, case when i % 2 = 0 then 'de' else 'fr' end from generate_series(1, 1000) i;
create table visits (person bigint, at timestamp default now(), note text);
create table loose (k text, v int);
select create_reference_table('countries');
select create_distributed_table('people', 'id', shard_count => 12);
select create_distributed_table('visits', 'person', colocate_with => 'people');
select create_distributed_table('loose', 'k', 'hash', 'none', 5);
SQL
)
check_lines "made" 0 'ERROR|FATAL' "$printed"
check_lines "loaded rows are copied" 2 '^NOTICE:  Copying data from local table\.\.\.' "$printed"
check "shards" "12|12|5|1" "$(sql "select (select count(*) from pg_dist_shard where logicalrelid = 'people'::regclass), (select count(*) from pg_dist_shard where logicalrelid = 'visits'::regclass), (select count(*) from pg_dist_shard where logicalrelid = 'loose'::regclass), (select count(*) from pg_dist_shard where logicalrelid = 'countries'::regclass)")"
check "partition methods" "countries n|loose h|people h|visits h" "$(sql "select logicalrelid || ' ' || partmethod::text from pg_dist_partition where logicalrelid::text in ('countries', 'loose', 'people', 'visits') order by 1" | paste -sd'|')"
check "citus_tables" "reference|distributed|distributed" "$(sql "select citus_table_type from citus_tables where table_name::text in ('countries', 'people', 'visits') order by table_name::text" | paste -sd'|')"
check "distribution columns" "id|person" "$(sql "select distribution_column from citus_tables where table_name::text in ('people', 'visits') order by 1" | paste -sd'|')"
check "people and visits are colocated" 1 "$(sql "select count(distinct colocationid) from pg_dist_partition where logicalrelid::text in ('people', 'visits')")"
check "every shard has a placement" 12 "$(sql "select count(*) from pg_dist_placement p join pg_dist_shard s using (shardid) where s.logicalrelid = 'people'::regclass")"
check "citus_shards" 12 "$(sql "select count(distinct shardid) from citus_shards where table_name = 'people'::regclass")"
check "sizes" t "$(sql "select citus_relation_size('people') > 0 and citus_table_size('people') >= citus_relation_size('people') and citus_total_relation_size('people') >= citus_table_size('people')")"
check "a shard is found by its key" t "$(sql "select get_shard_id_for_distribution_column('people', 17) = get_shard_id_for_distribution_column('people', 17) and get_shard_id_for_distribution_column('people', 17) is not null")"
check "rows" "1000|2" "$(sql "select count(*), count(distinct c.name) from people p join countries c on c.code = p.country")"
printed=$(typed <<<"select undistribute_table('loose');")
check_lines "undistribute_table" 0 'ERROR|FATAL' "$printed"
check "is a local table again" 0 "$(sql "select count(*) from pg_dist_partition where logicalrelid::text = 'loose'")"
check "a call inside a transaction is undone with it" 0 "$(typed >/dev/null <<<"begin; select create_distributed_table('loose', 'k'); rollback;"; sql "select count(*) from pg_dist_partition where logicalrelid::text = 'loose'")"

say "mistakes, each by its name, and nothing changes"
check_match "unknown table" '42P01: relation "nowhere" does not exist' "$(fails "select create_distributed_table('nowhere', 'k')")"
check_match "unknown column" '42703: .*column "nope"' "$(fails "select create_distributed_table('loose', 'nope')")"
check_match "already distributed" 'ERROR: .*table "people" is already distributed' "$(fails "select create_distributed_table('people', 'id')")"
check_match "a unique constraint without the key" 'ERROR: .*cannot create constraint on "u"' "$(fails "create table u (a int, b int primary key); select create_distributed_table('u', 'a')")"
check_match "with its detail" 'Distributed relations cannot have UNIQUE, EXCLUDE, or PRIMARY KEY constraints that do not include the partition column \(with an equality operator if EXCLUDE\)\.' "$(fails "create table if not exists u (a int, b int primary key); select create_distributed_table('u', 'a')")"
check_match "no shards" 'ERROR' "$(fails "select create_distributed_table('loose', 'k', shard_count => 0)")"
check_match "an enum as key" 'ERROR: .*' "$(fails "create type e as enum ('a'); create table with_enum (k e); select create_distributed_table('with_enum', 'k')" | grep ERROR)"
check_match "a foreign key to a table that is not colocated" 'ERROR' "$(fails "create table other (a int primary key); create table child (k int, a int references other (a)); select create_distributed_table('other', 'a', colocate_with => 'none'); select create_distributed_table('child', 'k', colocate_with => 'none')" | grep ERROR)"
check_match "a node with the only copies cannot be removed" 'ERROR' "$(fails "select citus_remove_node('$host', $port)")"
check "nothing was half made" 0 "$(sql "select count(*) from pg_dist_partition where logicalrelid::text in ('u', 'with_enum', 'child')")"

say "settings"
check "shard_count" "17" "$(sql "set citus.shard_count = 17; show citus.shard_count")"
check_match "shard_count 0" 'ERROR: .*22023.*' "$(fails "set citus.shard_count = 0")"
check "replication factor" 1 "$(sql "set citus.shard_replication_factor = 1; show citus.shard_replication_factor")"
check_match "more copies have no effect, which is said" 'NOTICE' "$(fails "set citus.shard_replication_factor = 2")"
check "protocol" 1pc "$(sql "set citus.multi_shard_commit_protocol = '1pc'; show citus.multi_shard_commit_protocol")"
check_match "an unknown citus setting has no effect" 'NOTICE' "$(fails "set citus.no_such_thing = 1")"
check_match "an unknown pgherd setting is an error" 'ERROR' "$(fails "set pgherd.no_such_thing = 1")"
must "ALTER SYSTEM" sql "alter system set citus.shard_count = 16"
check "reload" t "$(sql "select pg_reload_conf()")"
check "holds for new sessions" 16 "$(for i in 1 2 3 4 5; do n=$(sql "show citus.shard_count"); [ "$n" = 16 ] && break; sleep 0.3; done; echo "$n")"
must "ALTER SYSTEM RESET" sql "alter system reset citus.shard_count"
must "reload" sql "select pg_reload_conf()"
must "ALTER DATABASE" sql "alter database $PGDATABASE set citus.shard_count = 6"
check "of the database" 6 "$(sql "show citus.shard_count")"
must "ALTER DATABASE RESET" sql "alter database $PGDATABASE reset citus.shard_count"

say "several databases"
sql "drop database if exists ${PGDATABASE}_x" >/dev/null
printed=$(typed <<SQL
create database ${PGDATABASE}_x;
\c ${PGDATABASE}_x
create table people (id int primary key);
select create_distributed_table('people', 'id', shard_count => 4);
insert into people values (1), (2), (3), (4), (5), (6);
select count(*) as six from people;
select count(*) as shards from pg_dist_shard;
SQL
)
check_match "connected" "You are now connected to database \"${PGDATABASE}_x\"" "$printed"
check_lines "no errors" 0 'ERROR|FATAL' "$printed"
check_match "rows" '^ +6$' "$printed"
check_match "metadata of its own" '^ +4$' "$printed"
check "the other database is as it was" 1000 "$(sql "select count(*) from people")"
must "drop" sql "drop database ${PGDATABASE}_x"
must "drop" sql "drop table countries, people, visits, loose"
