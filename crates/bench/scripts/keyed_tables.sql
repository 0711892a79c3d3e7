-- pgbench's tables with the branch in every primary key, so that all four can be distributed by it: a branch, its tellers,
-- its accounts and its history are on one worker, as in a schema where every table carries the tenant.
CREATE TABLE keyed_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE keyed_tellers (tid int, bid int, tbalance int, filler char(84), PRIMARY KEY (bid, tid));
CREATE TABLE keyed_accounts (aid int, bid int, abalance int, filler char(84), PRIMARY KEY (bid, aid));
CREATE TABLE keyed_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO keyed_branches (bid, bbalance) SELECT bid, 0 FROM generate_series(1, :scale) bid;
INSERT INTO keyed_tellers (tid, bid, tbalance)
    SELECT tid, (tid - 1) / 10 + 1, 0 FROM generate_series(1, 10 * :scale) tid;
