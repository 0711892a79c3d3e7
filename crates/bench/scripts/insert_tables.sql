-- The tables of insert_row.sql and insert_nine.sql, and an empty one like pgbench_accounts for COPY.
CREATE TABLE insert_row (id bigint PRIMARY KEY, c1 int, info text, crt_time timestamptz);
CREATE TABLE insert_nine (k int, v int, info text);
CREATE TABLE copy_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84));
