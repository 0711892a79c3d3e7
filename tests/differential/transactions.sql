--@ include: schema.sql
-- Transactions: reading own writes over several workers, savepoints, errors inside, DDL inside, two sessions.

BEGIN;
INSERT INTO clicks (user_id, url) VALUES (501, 'tx'), (502, 'tx'), (503, 'tx'), (504, 'tx'), (505, 'tx');
SELECT user_id FROM clicks WHERE url = 'tx';
SELECT url FROM clicks WHERE user_id = 503;
UPDATE clicks SET ms = user_id WHERE url = 'tx';
SELECT sum(ms) FROM clicks WHERE url = 'tx';
DELETE FROM clicks WHERE user_id = 504;
SELECT count(*), max(ms) FROM clicks WHERE url = 'tx';
COMMIT;
SELECT user_id, ms FROM clicks WHERE url = 'tx';

BEGIN;
UPDATE users SET score = 0;
SELECT sum(score), count(*) FROM users;
SELECT u.country, sum(u.score) FROM users u JOIN friends f ON f.a = u.id GROUP BY u.country;
SELECT sum(score) FROM (SELECT id, score FROM users ORDER BY id LIMIT 10) t;
ROLLBACK;
SELECT sum(score) FROM users;

BEGIN; 
--@ error: 42P01
SELECT * FROM nowhere;
--@ error: 25P02
SELECT 1;
--@ error: 25P02
UPDATE users SET score = 1 WHERE id = 1;
COMMIT;
SELECT score FROM users WHERE id = 1;

BEGIN;
UPDATE users SET score = 111 WHERE id = 1;
UPDATE users SET score = 222 WHERE id = 2;
--@ error: 22012
UPDATE users SET score = 1 / 0 WHERE id = 3;
ROLLBACK;
SELECT id, score FROM users WHERE id < 4;

-- Savepoints.
BEGIN;
UPDATE users SET score = 1 WHERE id = 1;
SAVEPOINT a;
UPDATE users SET score = 2 WHERE id = 2;
UPDATE users SET score = 11 WHERE id = 1;
SELECT id, score FROM users WHERE id IN (1, 2);
ROLLBACK TO a;
SELECT id, score FROM users WHERE id IN (1, 2);
UPDATE users SET score = 3 WHERE id = 3;
SAVEPOINT b;
--@ error: 23505
INSERT INTO users (id, created) VALUES (1, now());
--@ error: 25P02
SELECT 1;
ROLLBACK TO SAVEPOINT b;
RELEASE SAVEPOINT b;
INSERT INTO users (id, name, created) VALUES (900, 'after savepoint', '2020-01-01');
RELEASE a;
COMMIT;
SELECT id, score, name FROM users WHERE id IN (1, 2, 3, 900);

BEGIN;
SAVEPOINT s;
INSERT INTO clicks (user_id, url) VALUES (601, 'sp');
SAVEPOINT s;
INSERT INTO clicks (user_id, url) VALUES (602, 'sp');
ROLLBACK TO s;
INSERT INTO clicks (user_id, url) VALUES (603, 'sp');
RELEASE s;
ROLLBACK TO s;
INSERT INTO clicks (user_id, url) VALUES (604, 'sp');
COMMIT;
SELECT user_id FROM clicks WHERE url = 'sp';

BEGIN;
--@ error: 3B001
ROLLBACK TO nowhere;
ROLLBACK;
--@ error: 25P01
SAVEPOINT outside;

-- Words.
START TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SHOW transaction_isolation;
SHOW transaction_read_only;
SELECT count(*) FROM users;
--@ error: 25006
UPDATE users SET score = 1 WHERE id = 1;
END;
BEGIN READ ONLY;
--@ error: 25006
INSERT INTO clicks VALUES (1), (2), (3);
ABORT;
BEGIN;
BEGIN;
COMMIT AND CHAIN;
SELECT 1;
ROLLBACK;
COMMIT;
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM orders;
UPDATE orders SET note = 'ser' WHERE user_id = 14;
COMMIT;
BEGIN;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM clicks;
SHOW transaction_isolation;
COMMIT;
BEGIN;
SELECT count(*) FROM clicks;
--@ error: 25001
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
ROLLBACK;
BEGIN;
SET LOCAL transaction_isolation = 'repeatable read';
SELECT count(*) FROM clicks;
SELECT url FROM clicks WHERE user_id = 3 ORDER BY url;
SHOW transaction_isolation;
COMMIT;
BEGIN;
SET transaction_read_only = on;
SELECT count(*) FROM clicks;
--@ error: 25006
UPDATE users SET score = 1;
ROLLBACK;
SET transaction_isolation = 'serializable';
SHOW transaction_isolation;
SELECT count(*) FROM clicks;

-- One clock.
BEGIN;
CREATE TEMP TABLE clock AS SELECT now() AS t;
SELECT now() = t, transaction_timestamp() = t FROM clock;
INSERT INTO users (id, created) VALUES (910, now()), (911, current_timestamp), (912, transaction_timestamp());
UPDATE users SET created = now() WHERE id = 1;
SELECT count(DISTINCT created), bool_and(created = now()) FROM users WHERE id IN (1, 910, 911, 912);
DROP TABLE clock;
ROLLBACK;

-- The first server that is asked for the time has it for all: single-shard statements on several workers, one statement
-- several times, and the coordinator at last.
BEGIN;
UPDATE users SET created = now() WHERE id = 1;
UPDATE users SET created = now() WHERE id = 2;
UPDATE users SET created = now() WHERE id = 3;
UPDATE users SET created = now() WHERE id = 1;
INSERT INTO users (id, created) VALUES (913, now());
INSERT INTO users (id, created) VALUES (914, now());
INSERT INTO users (id, created) VALUES (915, current_timestamp);
SAVEPOINT later;
UPDATE users SET created = now() WHERE id = 4;
ROLLBACK TO later;
UPDATE users SET created = now() WHERE id = 5;
SELECT count(DISTINCT created), bool_and(created = now()) FROM users WHERE id IN (1, 2, 3, 5, 913, 914, 915);
SELECT (SELECT created FROM users WHERE id = 914) = now();
SELECT now() = created FROM users WHERE id = 913;
ROLLBACK;
BEGIN;
SELECT now() > now() - interval '1 second';
UPDATE users SET created = now() WHERE id = 1;
UPDATE users SET created = now() WHERE id = 2;
SELECT bool_and(created = now()) FROM users WHERE id IN (1, 2);
ROLLBACK;

-- DDL inside.
BEGIN;
CREATE TABLE made (k int PRIMARY KEY, v text);
INSERT INTO made VALUES (1, 'before');
--@ cluster: SELECT create_distributed_table('made', 'k')
INSERT INTO made VALUES (2, 'after'), (3, 'after');
SELECT * FROM made;
ROLLBACK;
--@ error: 42P01
SELECT * FROM made;
BEGIN;
ALTER TABLE orders ADD COLUMN extra int DEFAULT 5;
UPDATE orders SET extra = 6 WHERE user_id = 14;
SELECT extra, count(*) FROM orders GROUP BY extra;
ROLLBACK;
--@ error: 42703
SELECT extra FROM orders;
BEGIN;
CREATE INDEX clicks_ms ON clicks (ms);
ALTER TABLE clicks ADD COLUMN seen bool NOT NULL DEFAULT false;
INSERT INTO clicks (user_id, url, seen) VALUES (700, 'ddl', true);
COMMIT;
SELECT user_id, seen FROM clicks WHERE user_id = 700;
SELECT seen, count(*) FROM clicks GROUP BY seen;
BEGIN;
TRUNCATE clicks;
INSERT INTO clicks (user_id, url) VALUES (1, 'only');
SELECT user_id, url FROM clicks;
ROLLBACK;
SELECT count(*) > 100 FROM clicks;
BEGIN;
DROP TABLE friends;
--@ error: 42P01
SELECT * FROM friends;
ROLLBACK;
SELECT count(*) FROM friends;

-- Local, reference and distributed tables in one transaction.
BEGIN;
INSERT INTO local_notes (user_id, body) VALUES (5, 'mixed');
UPDATE products SET price = 1 WHERE id = 1;
UPDATE users SET name = 'mixed' WHERE id = 5;
SELECT u.name, n.body, p.price FROM users u JOIN local_notes n ON n.user_id = u.id JOIN products p ON p.id = 1 WHERE u.id = 5;
ROLLBACK;
SELECT (SELECT count(*) FROM local_notes WHERE body = 'mixed'), (SELECT price FROM products WHERE id = 1), (SELECT name FROM users WHERE id = 5);
BEGIN;
INSERT INTO local_notes (user_id, body) VALUES (5, 'mixed');
UPDATE products SET price = 2 WHERE id = 1;
UPDATE users SET name = 'mixed' WHERE id IN (5, 6, 7);
COMMIT;
SELECT (SELECT count(*) FROM local_notes WHERE body = 'mixed'), (SELECT price FROM products WHERE id = 1), (SELECT count(*) FROM users WHERE name = 'mixed');

-- Several statements in one message are one transaction.
UPDATE users SET score = 500 WHERE id = 20\; UPDATE users SET score = 501 WHERE id = 21\; SELECT sum(score) FROM users WHERE id IN (20, 21);
--@ error: 22012
UPDATE users SET score = 600 WHERE id = 20\; UPDATE users SET score = 601 WHERE id = 21\; SELECT 1 / 0;
SELECT score FROM users WHERE id IN (20, 21);
BEGIN\; UPDATE users SET score = 700 WHERE id = 20\; COMMIT\; SELECT score FROM users WHERE id = 20;
--@ error: 42601
UPDATE users SET score = 800 WHERE id = 20\; SELEC 1;
SELECT score FROM users WHERE id = 20;
UPDATE users SET score = 900 WHERE id = 20\; ROLLBACK;
SELECT score FROM users WHERE id = 20;

-- Two sessions.
BEGIN;
UPDATE users SET name = 'hidden' WHERE id IN (30, 31, 32);
--@ on: b
SELECT name FROM users WHERE id IN (30, 31, 32);
SELECT name FROM users WHERE id IN (30, 31, 32);
COMMIT;
--@ on: b
SELECT name FROM users WHERE id IN (30, 31, 32);
--@ on: b
BEGIN ISOLATION LEVEL REPEATABLE READ;
--@ on: b
SELECT count(*), sum(score) FROM users;
UPDATE users SET score = score + 1;
--@ on: b
SELECT count(*), sum(score) FROM users;
--@ on: b
--@ error: 40001
UPDATE users SET score = 0 WHERE id = 1;
--@ on: b
ROLLBACK;
--@ on: b
SELECT sum(score) FROM users;
BEGIN;
SELECT id FROM users WHERE id = 40 FOR UPDATE;
--@ on: b
--@ error: 55P03
SELECT id FROM users WHERE id = 40 FOR UPDATE NOWAIT;
--@ on: b
SELECT id FROM users WHERE id IN (39, 40, 41) FOR UPDATE SKIP LOCKED;
--@ on: b
SELECT id FROM users WHERE id = 41 FOR SHARE;
SELECT count(*) FROM (SELECT 1 FROM users WHERE id < 5 FOR UPDATE) t;
ROLLBACK;
--@ on: b
BEGIN;
--@ on: b
SET LOCAL lock_timeout = '200ms';
BEGIN;
UPDATE users SET score = 1 WHERE id = 45;
--@ on: b
--@ error: 55P03
UPDATE users SET score = 2 WHERE id = 45;
--@ on: b
ROLLBACK;
COMMIT;
SELECT score FROM users WHERE id = 45;
LOCK TABLE users IN SHARE MODE\; SELECT 1;

-- What the coordinator wrote before a savepoint stays when a statement on another server failed behind it.
CREATE TABLE kept_local (n int);
BEGIN;
SET LOCAL lock_timeout = '7s';
INSERT INTO kept_local VALUES (1);
SAVEPOINT a;
--@ error: 22012
SELECT 1 / (id - id) FROM users WHERE id = 7;
ROLLBACK TO a;
INSERT INTO kept_local VALUES (2);
SHOW lock_timeout;
COMMIT;
SELECT n FROM kept_local;
BEGIN;
SET lock_timeout = '8s';
INSERT INTO kept_local VALUES (3);
UPDATE users SET score = 77 WHERE id = 2;
SAVEPOINT a;
--@ error: 23505
INSERT INTO users (id, created) VALUES (2, '2020-01-01');
ROLLBACK TO a;
COMMIT;
SHOW lock_timeout;
RESET lock_timeout;
SELECT n FROM kept_local;
SELECT score FROM users WHERE id = 2;
DROP TABLE kept_local;

-- What is wrong with a text is said in a failed transaction too, whatever the servers have not been told yet.
CREATE TABLE kept_local (k int UNIQUE, v int);
INSERT INTO kept_local VALUES (1, 1), (2, 2);
BEGIN;
SAVEPOINT one;
SAVEPOINT two;
--@ error: 23505
UPDATE kept_local l SET k = 0 FROM (SELECT DISTINCT id FROM users) u WHERE u.id = l.k;
--@ error: 42601
SELECT k = v = 1 FROM kept_local;
--@ error: 25P02
SELECT k FROM kept_local;
ROLLBACK TO one;
SELECT k, v FROM kept_local;
--@ error: 42601
SELECT k FROM kept_local WHERE;
--@ error: 42601
SELECT k = v = 1 FROM kept_local;
COMMIT;

-- Savepoints around statements inside which the coordinator has subtransactions of its own.
CREATE TABLE at_home (n int);
CREATE FUNCTION next_of(n bigint) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN n + 1; END';
BEGIN;
SAVEPOINT first;
SELECT count(*) FROM users WHERE next_of(id) > 9;
SELECT count(*) FROM users WHERE next_of(id) > 9;
RELEASE SAVEPOINT first;
SAVEPOINT second;
INSERT INTO at_home VALUES (1);
SELECT count(*) FROM users WHERE next_of(id) > 9;
ROLLBACK TO SAVEPOINT second;
INSERT INTO at_home VALUES (2);
SAVEPOINT first;
SELECT count(*) FROM users WHERE next_of(id) > 9;
INSERT INTO at_home VALUES (3);
SELECT count(*) FROM users WHERE next_of(id) > 9;
ROLLBACK TO SAVEPOINT first;
RELEASE SAVEPOINT second;
SAVEPOINT third;
INSERT INTO at_home VALUES (4);
ROLLBACK TO SAVEPOINT third;
COMMIT;
SELECT n FROM at_home;
DROP TABLE at_home;
DROP FUNCTION next_of(bigint);

-- AND CHAIN keeps what SET TRANSACTION has changed, but for what an error puts back.
BEGIN;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM users;
COMMIT AND CHAIN;
SHOW transaction_isolation;
SELECT count(*) FROM orders;
COMMIT;
BEGIN READ ONLY;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
--@ error: 22012
SELECT count(*) / 0 FROM users;
ROLLBACK AND CHAIN;
SHOW transaction_isolation;
SHOW transaction_read_only;
UPDATE users SET score = score WHERE id = 1;
COMMIT;
BEGIN READ ONLY;
SAVEPOINT a;
--@ error: 22012
SELECT 1 / 0;
COMMIT AND CHAIN;
SHOW transaction_read_only;
--@ error: 25006
UPDATE users SET score = score WHERE id = 1;
ROLLBACK;
BEGIN;
SAVEPOINT a;
SET TRANSACTION READ ONLY;
ROLLBACK TO SAVEPOINT a;
COMMIT AND CHAIN;
SHOW transaction_read_only;
UPDATE users SET score = score WHERE id = 1;
COMMIT;
BEGIN;
SET transaction_isolation = 'serializable';
SET LOCAL transaction_read_only = on;
COMMIT AND CHAIN;
SHOW transaction_isolation;
SHOW transaction_read_only;
--@ error: 25006
DELETE FROM users WHERE id = 1;
ROLLBACK AND CHAIN;
SHOW transaction_isolation;
SHOW transaction_read_only;
COMMIT;
-- Subtransactions that are not committed take their modes back, as those that are released do.
BEGIN;
SAVEPOINT a;
SET TRANSACTION READ ONLY;
ROLLBACK AND CHAIN;
SHOW transaction_read_only;
UPDATE users SET score = score WHERE id = 1;
COMMIT;
BEGIN;
SAVEPOINT a;
SET TRANSACTION READ ONLY;
SAVEPOINT b;
--@ error: 22012
SELECT 1 / 0;
COMMIT AND CHAIN;
SHOW transaction_read_only;
UPDATE users SET score = score WHERE id = 2;
COMMIT;
BEGIN;
SAVEPOINT a;
SET TRANSACTION READ ONLY;
RELEASE SAVEPOINT a;
UPDATE users SET score = score WHERE id = 1;
UPDATE orders SET note = note WHERE user_id = 3;
COMMIT AND CHAIN;
SHOW transaction_read_only;
COMMIT;
BEGIN;
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
COMMIT AND CHAIN;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
--@ error: 22012
SELECT count(*) / 0 FROM users;
ROLLBACK AND CHAIN;
SHOW transaction_isolation;
SELECT count(*) FROM users;
COMMIT;
BEGIN;
SET default_transaction_isolation = 'serializable';
COMMIT AND CHAIN;
SHOW transaction_isolation;
COMMIT;
SHOW transaction_isolation;
RESET default_transaction_isolation;
BEGIN;
SELECT set_config('transaction_read_only', 'on', true);
COMMIT AND CHAIN;
SHOW transaction_read_only;
--@ error: 25006
UPDATE users SET score = score WHERE id = 1;
ROLLBACK;
BEGIN DEFERRABLE;
SELECT count(*) FROM users WHERE id < 5;
COMMIT AND CHAIN;
SHOW transaction_deferrable;
COMMIT;
-- Modes come before queries, whoever has run these.
BEGIN;
UPDATE users SET score = -1 WHERE id = 1;
--@ error: 25001
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
ROLLBACK;
BEGIN READ ONLY;
SELECT id FROM users WHERE id = 1;
--@ error: 25001
SET TRANSACTION READ WRITE;
ROLLBACK;
BEGIN;
UPDATE users SET score = score WHERE id = 1;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT count(*) FROM users WHERE score = -1;
COMMIT;
BEGIN;
BEGIN READ ONLY;
--@ error: 25006
UPDATE users SET score = -1 WHERE id = 1;
ROLLBACK;
BEGIN;
SELECT id FROM users WHERE id = 1;
--@ error: 25001
BEGIN ISOLATION LEVEL REPEATABLE READ;
COMMIT;

-- What built-in functions write is part of the transaction: it goes where COMMIT fails on a worker.
CREATE TABLE owed (k int PRIMARY KEY, v int);
CREATE TABLE owing (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('owed', 'k'), create_distributed_table('owing', 'k')
ALTER TABLE owing ADD FOREIGN KEY (k) REFERENCES owed DEFERRABLE INITIALLY DEFERRED;
BEGIN;
INSERT INTO owing VALUES (1, 1);
SELECT lo_create(0) > 0;
--@ error: 23503
COMMIT;
SELECT count(*) FROM pg_largeobject_metadata;
BEGIN;
INSERT INTO owing VALUES (1, 1);
DECLARE c CURSOR FOR SELECT lo_from_bytea(0, 'x') > 0, v FROM owing;
FETCH c;
--@ error: 23503
COMMIT;
BEGIN;
INSERT INTO owing VALUES (1, 1);
PREPARE makes AS SELECT lo_create($1) > 0;
EXECUTE makes (0);
--@ error: 23503
COMMIT;
BEGIN;
INSERT INTO owing VALUES (1, 1);
COPY (SELECT lo_create(0) > 0) TO STDOUT;
--@ error: 23503
COMMIT;
BEGIN;
INSERT INTO owing VALUES (1, 1);
SELECT (SELECT count(*) FROM (SELECT lo_create(0)) s), count(*) FROM owing;
--@ error: 23503
COMMIT;
SELECT count(*) FROM pg_largeobject_metadata;
BEGIN;
INSERT INTO owed VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO owing VALUES (1, 1), (2, 2), (3, 3);
EXECUTE makes (70006);
SELECT lo_put(70006, 0, 'kept');
SELECT pg_advisory_xact_lock(7), pg_notify('owed', 'said');
COMMIT;
SELECT lo_get(70006), count(*) FROM owing;
PREPARE ends AS SELECT lo_unlink($1), count(*) FROM owed;
EXECUTE ends (70006);
SELECT count(*) FROM pg_largeobject_metadata;
DEALLOCATE ALL;

-- A COMMIT that fails puts back what was set.
BEGIN;
SET timezone = 'Asia/Tokyo';
SET own.failed = 'yes';
RESET search_path;
INSERT INTO owed VALUES (77, 1), (78, 1), (79, 1);
INSERT INTO owing VALUES (80, 1);
SELECT count(*) FROM owed;
--@ error: 23503
COMMIT;
SHOW timezone;
SELECT created, current_setting('own.failed', true) FROM users WHERE id = 1;
SELECT max(created), max(current_setting('own.failed', true)) FROM users;
BEGIN;
SET timezone = 'Asia/Tokyo';
INSERT INTO owing VALUES (77, 1);
SELECT v FROM owed WHERE k = 2;
NOTIFY owed;
--@ error: 23503
COMMIT;
SHOW timezone;
SELECT created FROM users WHERE id = 1;
SELECT max(created) FROM users;

-- The coordinator ends last, with cursors that are open.
BEGIN;
SET work_mem = '77MB';
NOTIFY owed;
DECLARE c CURSOR FOR SELECT k, v FROM owed ORDER BY k;
FETCH 1 FROM c;
UPDATE owed SET v = 0 WHERE k = 1;
COMMIT;
SHOW work_mem;
SELECT current_setting('work_mem'), count(*) FROM users;
RESET work_mem;
BEGIN;
UPDATE owed SET v = 5;
SELECT pg_advisory_xact_lock(7);
DECLARE c CURSOR WITH HOLD FOR SELECT k, v FROM owed ORDER BY k;
FETCH 1 FROM c;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
UPDATE owed SET v = k;

-- A transaction that has written may only read from then on, and is committed all the same.
BEGIN;
UPDATE owed SET v = v + 10;
SET TRANSACTION READ ONLY;
SELECT count(*), sum(v) FROM owed;
SHOW transaction_read_only;
COMMIT;
SELECT k, v FROM owed ORDER BY k;
BEGIN;
UPDATE owed SET v = v + 10;
SET LOCAL transaction_read_only = on;
SAVEPOINT s;
--@ error: 25006
UPDATE owed SET v = 0;
ROLLBACK TO s;
SELECT sum(v) FROM owed;
--@ error: 25006
DELETE FROM owed WHERE k = 2;
ROLLBACK;
BEGIN;
UPDATE owed SET v = v + 10;
SELECT set_config('transaction_read_only', 'on', true);
SELECT count(*) FROM owed;
COMMIT;
BEGIN;
UPDATE owed SET v = v - 10;
UPDATE pg_settings SET setting = 'on' WHERE name = 'transaction_read_only';
SELECT count(*) FROM owed;
COMMIT;
BEGIN;
UPDATE owed SET v = v + 10;
SET TRANSACTION READ ONLY;
ROLLBACK AND CHAIN;
SHOW transaction_read_only;
--@ error: 25006
UPDATE owed SET v = 0;
ROLLBACK AND CHAIN;
SHOW transaction_read_only;
ROLLBACK;
BEGIN;
UPDATE owed SET v = v + 10;
SAVEPOINT s;
SET TRANSACTION READ ONLY;
RELEASE s;
UPDATE owed SET v = v + 1;
COMMIT;
SELECT k, v FROM owed ORDER BY k;
BEGIN;
CREATE TABLE owed_too (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('owed_too', 'k')
INSERT INTO owed_too VALUES (1), (2), (3);
UPDATE owed SET v = v + 10;
SAVEPOINT s;
SET TRANSACTION READ ONLY;
ROLLBACK TO s;
SET TRANSACTION READ ONLY;
SET TRANSACTION READ ONLY;
COMMIT AND CHAIN;
SHOW transaction_read_only;
--@ error: 25006
UPDATE owed SET v = 0;
ROLLBACK;
BEGIN;
UPDATE owed SET v = v + 10;
DECLARE c CURSOR WITH HOLD FOR SELECT k, v, pg_try_advisory_xact_lock(8) FROM owed ORDER BY k;
SET TRANSACTION READ ONLY;
FETCH 1 FROM c;
COMMIT;
FETCH ALL FROM c;
CLOSE c;
SELECT k, v FROM owed ORDER BY k;
DROP TABLE owing, owed, owed_too;

-- Servers that have not been asked behind a savepoint hear nothing of the subtransactions there.
CREATE TABLE heard_a (k bigint, a int);
CREATE TABLE heard_b (k int, a int);
--@ cluster: SELECT create_distributed_table('heard_a', 'k', colocate_with => 'none', shard_count => 3)
--@ cluster: SELECT create_distributed_table('heard_b', 'k', colocate_with => 'none', shard_count => 4)
INSERT INTO heard_a SELECT i % 5, i % 3 FROM generate_series(1, 15) i;
INSERT INTO heard_b SELECT i % 7, i % 4 FROM generate_series(1, 20) i;
BEGIN;
SAVEPOINT s;
DELETE FROM heard_a t WHERE t.k = -1 AND t.a < ANY (SELECT b.a FROM heard_b b CROSS JOIN (SELECT false AS c FROM heard_a r WHERE r.a < 5 ORDER BY 1 LIMIT 4) q WHERE b.k = t.k);
ROLLBACK TO s;
UPDATE heard_a SET a = s.v FROM (SELECT r.a AS k, min(r.a) + 1 AS v FROM heard_a r GROUP BY r.a) s WHERE s.k = heard_a.k;
SELECT k, a FROM heard_a ORDER BY 1, 2;
COMMIT;
SELECT k, a FROM heard_a ORDER BY 1, 2;
