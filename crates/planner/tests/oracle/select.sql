-- One statement per line; each must be planned without the coordinator, and rows come in the order asked for.
select count(*), count(info), sum(c1), avg(c1), min(info), max(crt_time), min(c1 * 2), bool_and(c1 > 3), bit_or(c2) from test
select count(*), sum(c1), avg(c1), min(info) from test where false
select sum(total), avg(total), sum(qty), avg(qty), avg(customer_id), sum(customer_id), avg(wait), sum(wait) from orders
select sum(price), avg(price), sum(weight), avg(weight) from orders
select customer_id % 5 as k, sum(total), avg(total), round(avg(price)::numeric, 3), avg(wait), count(*) from orders group by k order by k
select ok, every(qty > 1), bool_or(qty > 9), count(*) filter (where total > 3), sum(total) filter (where false), avg(qty) filter (where ok) from orders group by ok order by ok nulls first
select c1, count(*) from test group by c1 order by count(*) desc, c1 limit 5
select c1, count(*) as c2 from test group by c1 order by c2 desc, 1 offset 3
select c1 as c2, c2 as c1, count(*) from test group by test.c1, test.c2 order by test.c1, test.c2 limit 20
select c1 + c2 as s, sum(c3) from test group by c1 + c2 order by c1 + c2 desc nulls last
select c1 + c2, sum(c3) + 1 from test group by 1 having count(*) > 2 and sum(c3) > 3 order by 1
select date_trunc('day', crt_time) as day, count(*), max(info) from test group by 1 order by day desc
select count(distinct c1), count(distinct info), sum(distinct c2), avg(distinct c3), count(*) from test
select c2, count(distinct c1), count(*), max(distinct c3) from test group by c2 order by c2
select distinct c1 from test order by c1
select distinct c1, upper(info) as u from test order by u nulls first, c1 limit 7 offset 2
select distinct c1 % 3 from test group by c1 order by 1
select distinct count(*) from test group by c1 order by 1
select count(*) + count(info) * 2 - coalesce(sum(c1), 0), greatest(max(c1), min(c2)), case when count(*) > 1 then avg(c1) end from test
select nullif(sum(c1), 0), round(avg(c2), 3), max(c1)::text || 'x', sum(c1)::int, (sum(c1) * 2)::numeric(10,1), -count(*), - avg(c1) from test
select 'k' as kind, c1 is null as missing, count(*) from test group by kind, c1 is null order by missing
select id, c1, info from test order by c2 desc nulls last, c1, id, info, c3 limit 10 offset 4
select id as c1, c1 as id, c2 from test order by c1, test.c1, c2, c3, info, crt_time
select *, c1 + c2 as s from test order by s nulls first, id, c1, c2, c3, info, crt_time limit 30
select id from test order by (c1 + c2) desc, id, c3, info limit 12
select key, lang from docs order by lang, key, body
select lang, count(*), min(lang), max(lang) from docs group by lang order by lang
select min(lang), max(key), min(body collate "C") from docs
select id, sum(c1), array_agg(c1 order by c1, c2) from test group by id having count(*) > 1 order by 2 desc nulls last, id limit 3
select distinct on (id) id, c1, c2 from test order by id, c1 desc, c2, c3
select id, c1, rank() over (partition by id order by c1, c2, c3, info) from test order by 1, 2, 3
select a.aid, count(*), sum(h.delta) from pgbench_accounts a join pgbench_history h using (aid) group by a.aid order by 1
select a.bid, count(*), sum(h.delta) from pgbench_accounts a join pgbench_history h using (aid) group by a.bid order by 1
select a.bid, count(h.tid), max(h.filler) from pgbench_accounts a left join pgbench_history h on a.aid = h.aid and h.delta > 2 group by a.bid order by 1
select r.name, count(*), avg(t.c2) from test t join regions r on r.id = t.c1 group by r.name order by r.name
select r.name, count(*) from test t left join regions r on r.id = t.c1 group by r.name order by r.name nulls first
select s.n, count(*) from (select id, count(*) as n from test group by id) s group by s.n order by s.n
with x as (select id, c1 from test where c2 > 3) select c1, count(*) from x group by c1 order by 1
with x as (select id, count(*) as n from test group by id) select x.id, x.n, a.abalance from x join pgbench_accounts a on a.aid = x.id order by 1, 2, 3
select count(*) from pgbench_accounts a where not exists (select 1 from pgbench_history h where h.aid = a.aid and h.delta > 5)
select count(*) from pgbench_accounts where aid in (select aid from pgbench_history where delta > 5)
select a.aid, (select sum(delta) from pgbench_history h where h.aid = a.aid) as s from pgbench_accounts a order by 1, 2, a.bid
select count(*), sum(c1) from test where id in (1, 2, 3)
select count(*), sum(c1) from test where id = 1 or id = 7
select id, c1 from test where id in (3, 5) order by id desc, c1, c2
select max(crt_time) - min(crt_time), now() - max(crt_time), count(*) filter (where crt_time < now() - interval '3 days') from test
select now() as n, count(*) from test group by 1
select extract(year from crt_time) as y, to_char(crt_time, 'DD') as d, count(*) from test group by y, d order by y, d
select c1, count(*) from test group by c1 having max(c2) > 5 or c1 is null order by c1 nulls first
select data->>'n' as n, count(*) from customers group by n order by n
select name, count(*) from customers group by name order by name
select filler, count(*) from pgbench_accounts group by filler order by filler
select sum(c1 + c2), avg((c1 + c2)::numeric), avg(c1::float8), sum(c1::bigint) from test
select x.g, sum(t.c1) from test t, generate_series(1, 2) x(g) group by x.g order by x.g
select v.name, count(*) from test t join (values (1, 'one'), (2, 'two')) v(n, name) on v.n = t.c1 group by v.name order by 1
select coalesce(info, 'none') as i, count(*) from test group by coalesce(info, 'none') order by coalesce(info, 'none') collate "C"
select id from test union all select aid from pgbench_history
select t.id, t.c1, x.delta from test t, lateral (select h.delta from pgbench_history h where h.aid = t.id order by h.delta desc, h.tid limit 2) x order by 1, 2, 3, t.c2, t.c3
select t.id, t.c1, x.n from test t left join lateral (select count(*) as n from pgbench_history h where h.aid = t.id and h.delta > t.c1) x on true order by 1, 2, 3
select t.id, r.name from test t left join lateral (select max(name) as name from regions r where r.id = t.c1) r on true order by 1, 2
select a.aid, t.c1, h.delta from pgbench_accounts a left join (test t join pgbench_history h on h.aid = t.id) on t.id = a.aid and h.delta > 6 order by 1, 2, 3
select aid, count(*) from pgbench_accounts join pgbench_history using (aid) join (select id as aid, c1 from test) t using (aid) group by aid order by aid
select id, c1 from test union select aid, bid from pgbench_accounts order by 1, 2
select id as a, c1 from test union all select aid, bid from pgbench_accounts order by a desc, 2 nulls first limit 25 offset 3
select c1 from test union select id from regions union select 7 order by c1 nulls first
(select c1, info from test where c2 = 1) union (select c2, upper(info) from test) order by 2, 1 limit 12
with x as (select c1 from test where c2 > 2) select c1 from x union all select c3 from test where id < 9 order by 1 limit 40
