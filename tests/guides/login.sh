#!/usr/bin/env bash
# Users who log in and out: 200,000 of them, with pgbench scripts of several statements, plain and as functions.
. "$(dirname "$0")/lib.sh"
users=${GUIDE_USERS:-200000} seconds=${GUIDE_SECONDS:-4}

say "tables"
printed=$(typed <<'SQL'
create table user_info (userid int, engname text, cnname text, occupation text, birthday date, signname text, email text, qq numeric, crt_time timestamp without time zone, mod_time timestamp without time zone);
create table user_session (userid int, logintime timestamp(0) without time zone, login_count bigint default 0, logouttime timestamp(0) without time zone, online_interval interval default interval '0');
create table user_login_rec (userid int, login_time timestamp without time zone, ip inet);
create table user_logout_rec (userid int, logout_time timestamp without time zone, ip inet);
alter table user_info add constraint pk_user_info primary key (userid);
alter table user_session add constraint pk_user_session primary key (userid);
set citus.shard_count = 32;
select create_distributed_table('user_info', 'userid');
select create_distributed_table('user_session', 'userid');
select create_distributed_table('user_login_rec', 'userid');
select create_distributed_table('user_logout_rec', 'userid');
SQL
)
check_lines "made and distributed" 0 'ERROR|FATAL' "$printed"
printed=$(psql -X 2>&1 <<SQL
insert into user_info (userid,engname,cnname,occupation,birthday,signname,email,qq,crt_time,mod_time) select generate_series(1,$users), 'digoal.zhou', '德哥', 'DBA', '1970-01-01', E'公益是一辈子的事, I\'m Digoal.Zhou, Just do it!', 'digoal@126.com', 276732431, clock_timestamp(), NULL;
insert into user_session (userid) select generate_series(1,$users);
SQL
)
check_lines "users and sessions" 2 "^INSERT 0 $users\$" "$printed"
check "users" "$users|$users" "$(sql "select count(*), count(distinct userid) from user_info")"
check "defaults" "$users|0|00:00:00" "$(sql "select count(*), sum(login_count), max(online_interval) from user_session")"
check "text is kept" "德哥|公益是一辈子的事, I'm Digoal.Zhou, Just do it!" "$(sql "select cnname, signname from user_info where userid = $users")"
must "analyze" sql "vacuum analyze user_info"

say "log in, log out"
cat > "$work/login.sql" <<SQL
\set userid random(1,$users)
SELECT engname,cnname,occupation,birthday,signname,email,qq FROM user_info WHERE userid=:userid;
INSERT INTO user_login_rec (userid,login_time,ip) VALUES (:userid,now(),inet_client_addr());
UPDATE user_session SET logintime=now(), login_count=login_count+1 WHERE userid=:userid;
SQL
cat > "$work/logout.sql" <<SQL
\set userid random(1,$users)
INSERT INTO user_logout_rec (userid,logout_time,ip) VALUES (:userid,now(),inet_client_addr());
UPDATE user_session SET logouttime=now(), online_interval=online_interval+(now()-logintime) WHERE userid=:userid;
SQL
processed() { printf '%s\n' "$output" | sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p'; }
logins=0 logouts=0
for protocol in simple extended prepared; do
    must "logins, $protocol" pgbench -M $protocol -n -r -f "$work/login.sql" -c 8 -j 2 -T "$seconds"
    check_lines "nobody was thrown out" 0 'abort|ERROR|FATAL' "$output"
    n=$(processed); logins=$((logins + ${n:-0}))
    must "logouts, $protocol" pgbench -M $protocol -n -r -f "$work/logout.sql" -c 8 -j 2 -T "$seconds"
    check_lines "nobody was thrown out" 0 'abort|ERROR|FATAL' "$output"
    n=$(processed); logouts=$((logouts + ${n:-0}))
done
check "every login is recorded" "$logins|$logins" "$(sql "select (select count(*) from user_login_rec), (select sum(login_count) from user_session)")"
check "every logout is recorded" "$logouts" "$(sql "select count(*) from user_logout_rec")"
check "by user too" 0 "$(sql "select count(*) from user_session s left join (select userid, count(*) as n from user_login_rec group by userid) r using (userid) where s.login_count <> coalesce(r.n, 0)")"
check "the client's address, for all" "$(sql "select inet_client_addr()")|1" "$(sql "select min(ip), count(distinct ip) from user_login_rec")"
check "online time was added" t "$(sql "select count(*) > 0 from user_session where logouttime is not null and logintime is not null and online_interval >= interval '0'")"
check "nobody logged out who is unknown" 0 "$(sql "select count(*) from user_logout_rec r left join user_info u using (userid) where u.userid is null")"

say "the same as functions"
printed=$(typed <<'SQL'
create or replace function f_user_login (i_userid int, OUT o_userid int, OUT o_engname text, OUT o_cnname text, OUT o_occupation text, OUT o_birthday date, OUT o_signname text, OUT o_email text, OUT o_qq numeric) as $BODY$
begin
select userid,engname,cnname,occupation,birthday,signname,email,qq into o_userid,o_engname,o_cnname,o_occupation,o_birthday,o_signname,o_email,o_qq from user_info where userid=i_userid;
insert into user_login_rec (userid,login_time,ip) values (i_userid,now(),inet_client_addr());
update user_session set logintime=now(),login_count=login_count+1 where userid=i_userid;
return;
end;
$BODY$ language plpgsql;
create or replace function f_user_logout (i_userid int, OUT o_result int) as $BODY$
begin
insert into user_logout_rec (userid,logout_time,ip) values (i_userid,now(),inet_client_addr());
update user_session set logouttime=now(),online_interval=online_interval+(now()-logintime) where userid=i_userid;
o_result := 0;
return;
exception when others then
o_result := 1;
return;
end;
$BODY$ language plpgsql;
SQL
)
check_lines "functions" 2 '^CREATE FUNCTION$' "$printed"
check "one call" "7|digoal.zhou|德哥" "$(sql "select o_userid, o_engname, o_cnname from f_user_login(7)")"
check "was recorded" "$((logins + 1))" "$(sql "select count(*) from user_login_rec")"
check "log out" 0 "$(sql "select f_user_logout(7)")"
check "was recorded" "$((logouts + 1))" "$(sql "select count(*) from user_logout_rec")"
printf '\\set userid random(1,%s)\nSELECT * FROM f_user_login(:userid);\n' "$users" > "$work/f_login.sql"
printf '\\set userid random(1,%s)\nSELECT f_user_logout(:userid);\n' "$users" > "$work/f_logout.sql"
must "logins by function" pgbench -M prepared -n -f "$work/f_login.sql" -c 4 -j 2 -t 25
must "logouts by function" pgbench -M simple -n -f "$work/f_logout.sql" -c 4 -j 2 -t 25
check "all recorded" "$((logins + 101))|$((logouts + 101))" "$(sql "select (select sum(login_count) from user_session), (select count(*) from user_logout_rec)")"
must "drop" sql "drop table user_info, user_session, user_login_rec, user_logout_rec; drop function f_user_login, f_user_logout"
