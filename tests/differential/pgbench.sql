-- The tables of pgbench, distributed as Citus's guides do it, and its transactions.

CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor = 100);
INSERT INTO pgbench_branches SELECT i, 0 FROM generate_series(1, 4) i;
INSERT INTO pgbench_tellers SELECT i, 1 + (i - 1) / 10, 0 FROM generate_series(1, 40) i;
INSERT INTO pgbench_accounts SELECT i, 1 + (i - 1) / 500, 0, '' FROM generate_series(1, 2000) i;
ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid);
ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid);
ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
--@ cluster: SELECT create_distributed_table('pgbench_accounts', 'aid')
--@ cluster: SELECT create_distributed_table('pgbench_branches', 'bid')
--@ cluster: SELECT create_distributed_table('pgbench_tellers', 'tid')
--@ cluster: SELECT create_distributed_table('pgbench_history', 'aid')
--@ cluster: SELECT truncate_local_data_after_distributing_table($$public.pgbench_accounts$$)

SELECT count(*) FROM pgbench_accounts;
SELECT abalance FROM pgbench_accounts WHERE aid = 1234;
--@ types: 23
--@ params: 1
--@ params: 2000
--@ params: 2001
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 100 WHERE aid = 77;
SELECT abalance FROM pgbench_accounts WHERE aid = 77;
UPDATE pgbench_tellers SET tbalance = tbalance + 100 WHERE tid = 3;
UPDATE pgbench_branches SET bbalance = bbalance + 100 WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (3, 1, 77, 100, '2020-01-01');
END;
BEGIN;
--@ params: 78, -50
--@ params: 1999, 25
UPDATE pgbench_accounts SET abalance = abalance + $2 WHERE aid = $1;
--@ params: 4, -50
--@ params: 33, 25
UPDATE pgbench_tellers SET tbalance = tbalance + $2 WHERE tid = $1;
--@ params: 1, -50
--@ params: 4, 25
UPDATE pgbench_branches SET bbalance = bbalance + $2 WHERE bid = $1;
--@ params: 4, 1, 78, -50
--@ params: 33, 4, 1999, 25
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP);
END;
SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), (SELECT sum(delta) FROM pgbench_history);
--@ ordered
SELECT bid, sum(abalance) AS s FROM pgbench_accounts GROUP BY bid ORDER BY s DESC, bid LIMIT 5;
SELECT bid, count(*) FROM pgbench_accounts GROUP BY bid HAVING sum(abalance) <> 0;
SELECT round(avg(abalance), 4) FROM pgbench_accounts;
SELECT max(aid) - min(aid), count(*) + 1 FROM pgbench_accounts;
SELECT count(*) FROM pgbench_accounts WHERE abalance > (SELECT avg(abalance) FROM pgbench_accounts);
SELECT count(*) FROM pgbench_accounts a JOIN pgbench_branches b ON b.bid = a.bid WHERE a.abalance <> 0;
SELECT b.bid, count(DISTINCT t.tid), sum(t.tbalance) FROM pgbench_branches b JOIN pgbench_tellers t USING (bid) GROUP BY b.bid;
SELECT h.aid, a.abalance, h.delta FROM pgbench_history h JOIN pgbench_accounts a USING (aid);
SELECT aid FROM pgbench_accounts WHERE aid BETWEEN 500 AND 505;
--@ ordered
SELECT aid, row_number() OVER (ORDER BY aid DESC) FROM pgbench_accounts ORDER BY aid DESC LIMIT 3;
SELECT aid FROM pgbench_accounts WHERE aid < 5 UNION SELECT tid FROM pgbench_tellers WHERE tid < 8;
SELECT length(filler), filler = '' FROM pgbench_accounts WHERE aid = 5;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE bid = 2;
SELECT sum(abalance) FROM pgbench_accounts WHERE bid = 2;
VACUUM ANALYZE pgbench_branches;
TRUNCATE pgbench_history;
SELECT count(*) FROM pgbench_history;
TRUNCATE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;
SELECT count(*) FROM pgbench_accounts;
DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers;
--@ error: 42P01
SELECT count(*) FROM pgbench_accounts;
