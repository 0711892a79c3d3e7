-- The first table of each plan is compared afterwards.
update test set c1 = coalesce(c1, 0) + 1
update test set c1 = 99, info = upper(info) where id = 5
update test set c1 = 1 where id in (1, 2, 3)
update test t set c1 = h.s from (select aid, sum(delta) as s from pgbench_history group by aid) h where h.aid = t.id
update test set c1 = (select max(delta) from pgbench_history h where h.aid = test.id)
update test set c1 = r.id from regions r where r.id = c2
update test set (c1, c2) = (c2, c1) where c3 > 4
delete from test where id = 5
delete from test where c1 in (select id from regions)
delete from test using pgbench_history h where h.aid = test.id and h.delta < 3
delete from test
with d as (delete from test where id = 5 returning id) select count(*) from d
insert into test (id, c1) values (1, 2), (77, 3), (78, 4), (null, 5), (80, null)
insert into test values (81, 1, 2, 3, 'x', now()), (82, 1, 2, 3, 'y', now())
insert into test (c1) values (1)
insert into test default values
insert into test select * from test
insert into test (c1, id) select sum(delta), aid from pgbench_history group by aid
insert into test select id, c1 from test where id = 5
insert into test (id, c2) select t.id, h.delta from test t join pgbench_history h on h.aid = t.id where h.delta > 3
insert into docs (key, body) values ('a', 'b'), ('it''s', E'\\n')
insert into orders (id, customer_id, total, created) values (1, 5, 9.999, now()), (2, 6, 1, null)
merge into test t using (select aid, sum(delta) as s from pgbench_history group by aid) h on h.aid = t.id when matched then update set c1 = h.s when not matched then insert (id, c1) values (h.aid, h.s)
merge into test t using (values (5, 'x'), (6, 'y')) s(k, v) on t.id = s.k when matched then update set info = s.v
merge into test t using (values (95, 'x')) s(k, v) on t.id = s.k when matched then update set info = s.v when not matched then insert (id, info) values (s.k, s.v)
merge into test t using (select distinct id from regions) r on t.c1 = r.id when matched and t.c2 > 3 then delete when matched then update set c3 = 0
