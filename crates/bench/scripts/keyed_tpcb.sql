-- pgbench's TPC-B with the branch as the key of every statement: the account and the teller are of the same branch, so the
-- transaction is one worker's. The tables are those of keyed_tables.sql.
\set bid random(1, :scale)
\set aid (:bid - 1) * 100000 + random(1, 100000)
\set tid (:bid - 1) * 10 + random(1, 10)
\set delta random(-5000, 5000)
BEGIN;
UPDATE keyed_accounts SET abalance = abalance + :delta WHERE bid = :bid AND aid = :aid;
SELECT abalance FROM keyed_accounts WHERE bid = :bid AND aid = :aid;
UPDATE keyed_tellers SET tbalance = tbalance + :delta WHERE bid = :bid AND tid = :tid;
UPDATE keyed_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO keyed_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
