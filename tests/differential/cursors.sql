--@ include: schema.sql
-- Cursors: in every direction, WITH HOLD, over every way a statement can run; positioned updates; what a ROLLBACK leaves of them.

BEGIN;
DECLARE c CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH c;
FETCH 3 FROM c;
FETCH FORWARD 2 IN c;
MOVE 5 IN c;
FETCH NEXT FROM c;
MOVE FORWARD ALL IN c;
FETCH c;
CLOSE c;
DECLARE s SCROLL CURSOR FOR SELECT id, name FROM users ORDER BY id;
FETCH LAST FROM s;
FETCH PRIOR FROM s;
FETCH FIRST FROM s;
FETCH ABSOLUTE 10 FROM s;
FETCH RELATIVE -3 FROM s;
FETCH BACKWARD 2 FROM s;
FETCH ABSOLUTE -1 FROM s;
FETCH RELATIVE 0 FROM s;
MOVE ABSOLUTE 30 IN s;
FETCH 2 FROM s;
MOVE BACKWARD ALL IN s;
FETCH s;
FETCH ABSOLUTE 1000 FROM s;
FETCH FORWARD 0 FROM s;
FETCH ALL FROM s;
FETCH BACKWARD ALL FROM s;
CLOSE s;
DECLARE n NO SCROLL CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH 2 FROM n;
SAVEPOINT a;
--@ error: 55000
FETCH PRIOR FROM n;
ROLLBACK TO a;
--@ error: 55000
FETCH n;
ROLLBACK;
--@ error: 34000
FETCH n;

-- Over every way.
BEGIN;
DECLARE routed SCROLL CURSOR FOR SELECT id, status FROM orders WHERE user_id = 14 ORDER BY id;
DECLARE scattered SCROLL CURSOR FOR SELECT user_id, count(*) FROM orders GROUP BY user_id ORDER BY user_id;
DECLARE merged SCROLL CURSOR FOR SELECT status, count(*), sum(total) FROM orders GROUP BY status ORDER BY status;
DECLARE staged SCROLL CURSOR FOR SELECT f.id, u.name FROM friends f JOIN users u ON u.id = f.b ORDER BY f.id;
DECLARE federated SCROLL CURSOR FOR SELECT n.id, u.name FROM local_notes n FULL JOIN users u ON u.id = n.user_id ORDER BY n.id, u.id;
DECLARE reference SCROLL CURSOR FOR SELECT code FROM regions ORDER BY code;
DECLARE local SCROLL CURSOR FOR SELECT id FROM local_notes ORDER BY id;
DECLARE settled SCROLL CURSOR FOR VALUES (1), (2), (3);
FETCH 2 FROM routed;
FETCH 2 FROM scattered;
FETCH 2 FROM merged;
FETCH 2 FROM staged;
FETCH 2 FROM federated;
FETCH 2 FROM reference;
FETCH 2 FROM local;
FETCH 2 FROM settled;
FETCH BACKWARD 1 FROM routed;
FETCH BACKWARD 1 FROM scattered;
FETCH BACKWARD 1 FROM merged;
FETCH BACKWARD 1 FROM staged;
FETCH BACKWARD 1 FROM federated;
FETCH BACKWARD 1 FROM reference;
FETCH LAST FROM routed;
FETCH LAST FROM scattered;
FETCH LAST FROM staged;
FETCH ABSOLUTE 3 FROM federated;
SELECT name, is_scrollable, is_holdable FROM pg_cursors;
DELETE FROM orders WHERE user_id = 15;
FETCH ABSOLUTE 15 FROM scattered;
FETCH ALL FROM settled;
CLOSE ALL;
SELECT count(*) FROM pg_cursors;
ROLLBACK;

-- WITH HOLD.
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT id FROM users ORDER BY id;
DECLARE hs SCROLL CURSOR WITH HOLD FOR SELECT country, count(*) FROM users GROUP BY country ORDER BY country NULLS LAST;
DECLARE hj SCROLL CURSOR WITH HOLD FOR SELECT f.id, u.id FROM friends f JOIN users u ON u.id = f.a ORDER BY f.id;
FETCH 2 FROM h;
COMMIT;
FETCH 2 FROM h;
DELETE FROM clicks;
FETCH 2 FROM hs;
FETCH PRIOR FROM hs;
FETCH 2 FROM hj;
UPDATE users SET score = 0 WHERE id = 4;
FETCH h;
BEGIN;
FETCH h;
ROLLBACK;
FETCH h;
SELECT name, is_holdable FROM pg_cursors;
CLOSE h;
CLOSE ALL;
--@ error: 34000
FETCH h;
DECLARE alone CURSOR WITH HOLD FOR SELECT id FROM users WHERE id < 4 ORDER BY id;
FETCH ALL FROM alone;
CLOSE alone;
--@ error: 25P01
DECLARE never CURSOR FOR SELECT id FROM users;
BEGIN;
DECLARE gone CURSOR WITH HOLD FOR SELECT id FROM users ORDER BY id;
ROLLBACK;
--@ error: 34000
FETCH gone;

-- Savepoints.
BEGIN;
DECLARE before CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH before;
SAVEPOINT a;
DECLARE inside CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH 3 FROM before;
FETCH inside;
ROLLBACK TO a;
FETCH before;
SAVEPOINT b;
--@ error: 34000
FETCH inside;
ROLLBACK TO b;
--@ error: 42P03
DECLARE before CURSOR FOR SELECT 1;
ROLLBACK TO b;
FETCH 2 FROM before;
COMMIT;

-- Sees what was there when it was declared.
BEGIN;
DECLARE snap CURSOR FOR SELECT id, score FROM users WHERE id < 6 ORDER BY id;
UPDATE users SET score = 77 WHERE id < 6;
FETCH ALL FROM snap;
DECLARE snap2 CURSOR FOR SELECT id, score FROM users WHERE id < 6 ORDER BY id;
FETCH ALL FROM snap2;
DECLARE snap3 INSENSITIVE CURSOR FOR SELECT count(*) FROM clicks;
INSERT INTO clicks (user_id) VALUES (1), (2), (3), (4);
FETCH snap3;
ROLLBACK;

-- The same whatever reads and whatever writes. Scans of a join begin one after another, long after the first row.
BEGIN;
DECLARE routed CURSOR FOR SELECT id, total FROM orders WHERE user_id = 14 ORDER BY id;
DECLARE joined CURSOR FOR SELECT u.id, u.score, o.id, o.total FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 9 ORDER BY u.id, o.id;
DECLARE across SCROLL CURSOR FOR SELECT f.id, u.name FROM friends f LEFT JOIN users u ON u.id = f.b WHERE f.id < 30 ORDER BY f.id;
DECLARE under CURSOR FOR SELECT u.id, (SELECT max(o.total) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id < 20 ORDER BY u.id;
DECLARE whether CURSOR FOR SELECT u.id FROM users u WHERE NOT EXISTS (SELECT FROM clicks c WHERE c.user_id = u.id) ORDER BY u.id;
DECLARE of_view CURSOR FOR SELECT * FROM order_totals ORDER BY user_id;
DECLARE kinds CURSOR FOR SELECT kind, count(*), sum(amount) FROM events GROUP BY kind ORDER BY kind;
DECLARE copies CURSOR FOR SELECT * FROM regions ORDER BY code;
DECLARE with_copy CURSOR FOR SELECT u.id, r.tax FROM users u JOIN regions r ON r.code = u.country ORDER BY u.id;
DECLARE with_local CURSOR FOR SELECT n.id, n.body, u.name FROM local_notes n LEFT JOIN users u ON u.id = n.user_id ORDER BY n.id;
DECLARE unioned CURSOR FOR SELECT id FROM users WHERE id < 4 UNION ALL SELECT id FROM friends WHERE id < 4 ORDER BY 1;
DECLARE early CURSOR FOR SELECT u.id, f.id FROM users u JOIN friends f ON f.a = u.id ORDER BY u.id, f.id;
FETCH 2 FROM early;
FETCH 1 FROM under;
UPDATE orders SET total = -1 WHERE user_id = 14;
UPDATE users SET name = 'changed', score = 0, country = 'zz';
DELETE FROM clicks;
DELETE FROM friends WHERE id > 3;
INSERT INTO events (kind, id) SELECT 'kind-' || i, 1000 + i FROM generate_series(1, 30) i;
INSERT INTO orders (user_id, id, placed, total) VALUES (1, 5001, '2024-01-01', 100000), (2, 5002, '2024-01-01', 100000);
UPDATE regions SET tax = 0, name = 'changed';
UPDATE local_notes SET body = 'changed';
--@ ordered
FETCH ALL FROM routed;
--@ ordered
FETCH ALL FROM joined;
--@ ordered
FETCH ALL FROM across;
--@ ordered
FETCH ALL FROM under;
--@ ordered
FETCH ALL FROM whether;
--@ ordered
FETCH ALL FROM of_view;
--@ ordered
FETCH ALL FROM kinds;
--@ ordered
FETCH ALL FROM copies;
--@ ordered
FETCH ALL FROM with_copy;
--@ ordered
FETCH ALL FROM with_local;
--@ ordered
FETCH ALL FROM unioned;
--@ ordered
FETCH ALL FROM early;
--@ ordered
FETCH BACKWARD 3 FROM across;
MOVE BACKWARD ALL IN across;
--@ ordered
FETCH 4 FROM across;
DECLARE afterwards CURSOR FOR SELECT name, count(*) FROM users GROUP BY name;
UPDATE users SET name = 'again';
SELECT DISTINCT name FROM users;
FETCH ALL FROM afterwards;
CLOSE afterwards;
DECLARE afterwards CURSOR FOR SELECT name, count(*) FROM users GROUP BY name;
CLOSE joined;
FETCH ALL FROM afterwards;
ROLLBACK;

-- Writes by COPY, functions, TRUNCATE; values in a style of the client's own.
CREATE FUNCTION forget_clicks(bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN DELETE FROM clicks WHERE user_id = $1; END $$;
CREATE FUNCTION count_clicks(bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT count(*) FROM clicks WHERE user_id = $1); END $$;
BEGIN;
SET LOCAL datestyle = 'SQL, DMY';
DECLARE dates CURSOR FOR SELECT id, born FROM users WHERE born > date '1962-01-13' ORDER BY born;
DECLARE at CURSOR FOR SELECT user_id, at FROM clicks WHERE at < timestamp '2022-03-01 12:30:00' ORDER BY at, user_id;
DECLARE total CURSOR FOR SELECT count(*), count(user_id) FROM clicks;
DECLARE counted CURSOR FOR SELECT id, count_clicks(id) FROM users WHERE id IN (8, 15, 22) ORDER BY id;
COPY clicks (user_id, url) FROM STDIN;
8	/copied
8	/copied
\.
SELECT forget_clicks(15);
DO $$ BEGIN UPDATE users SET born = '2000-01-01' WHERE id < 50; END $$;
--@ ordered
FETCH 5 FROM dates;
--@ ordered
FETCH 5 FROM at;
FETCH total;
-- A volatile function sees what there is when it runs.
--@ ordered
FETCH ALL FROM counted;
--@ error: 55006
TRUNCATE clicks;
ROLLBACK;
BEGIN;
DECLARE total CURSOR FOR SELECT count(*) FROM events;
SAVEPOINT a;
--@ error: 55006
TRUNCATE events;
ROLLBACK TO a;
CLOSE total;
TRUNCATE events;
SELECT count(*) FROM events;
ROLLBACK;

-- Cursors of functions.
CREATE FUNCTION open_clicks() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'clicks of'; BEGIN IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'clicks of') THEN OPEN c FOR SELECT count(*), sum(ms) FROM clicks; END IF; RETURN c; END $$;
CREATE FUNCTION open_notes() RETURNS refcursor LANGUAGE plpgsql AS $$ DECLARE c refcursor := 'notes'; BEGIN IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'notes') THEN OPEN c FOR SELECT count(*) FROM local_notes; END IF; RETURN c; END $$;
CREATE PROCEDURE open_users(INOUT c refcursor) LANGUAGE plpgsql AS $$ BEGIN IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'users of') THEN OPEN c FOR SELECT u.id, f.id FROM users u JOIN friends f ON f.a = u.id ORDER BY u.id, f.id; END IF; END $$;
CREATE FUNCTION clicks_of(bigint) RETURNS SETOF clicks LANGUAGE sql STABLE AS $$ SELECT * FROM clicks WHERE user_id = $1 $$;
BEGIN;
DECLARE of_function CURSOR FOR SELECT count(*), sum(ms) FROM clicks_of(22);
SELECT open_clicks();
SELECT * FROM open_notes();
CALL open_users('users of');
DELETE FROM clicks WHERE user_id > 20;
DELETE FROM friends;
DELETE FROM local_notes WHERE id > 20;
FETCH ALL FROM of_function;
FETCH ALL FROM "clicks of";
FETCH ALL FROM notes;
--@ ordered
FETCH ALL FROM "users of";
ROLLBACK;

-- What others commit.
BEGIN;
DECLARE others CURSOR FOR SELECT id, name FROM users WHERE id < 5 ORDER BY id;
DECLARE theirs CURSOR FOR SELECT u.id, c.url FROM users u JOIN clicks c ON c.user_id = u.id WHERE u.id < 9 ORDER BY u.id, c.url, c.ms;
--@ on: b
UPDATE users SET name = 'of b' WHERE id < 5;
--@ on: b
INSERT INTO clicks (user_id, url) VALUES (1, '/b'), (2, '/b'), (3, '/b');
--@ ordered
FETCH ALL FROM others;
--@ ordered
FETCH ALL FROM theirs;
DECLARE now_theirs CURSOR FOR SELECT u.id, c.url FROM users u JOIN clicks c ON c.user_id = u.id WHERE c.url = '/b' ORDER BY u.id;
--@ ordered
FETCH ALL FROM now_theirs;
COMMIT;
UPDATE users SET name = 'user ' || (id % 25) WHERE id < 5;
DELETE FROM clicks WHERE url = '/b';

-- Savepoints: a cursor goes on where it stands, whatever they take back.
BEGIN;
DECLARE outside SCROLL CURSOR FOR SELECT id, score FROM users WHERE id < 9 ORDER BY id;
SAVEPOINT a;
UPDATE users SET score = 1;
DECLARE within CURSOR FOR SELECT sum(score) FROM users;
DELETE FROM clicks;
SAVEPOINT b;
UPDATE users SET score = 2;
FETCH within;
RELEASE b;
ROLLBACK TO a;
UPDATE users SET score = 3;
--@ ordered
FETCH 3 FROM outside;
SAVEPOINT c;
--@ ordered
FETCH 2 FROM outside;
ROLLBACK TO c;
UPDATE users SET score = 4;
--@ ordered
FETCH 2 FROM outside;
ROLLBACK;
BEGIN;
DECLARE outside CURSOR FOR SELECT id, score FROM users WHERE id < 9 ORDER BY id;
DECLARE unordered CURSOR FOR SELECT id, score FROM users WHERE id < 9;
DECLARE joined CURSOR FOR SELECT u.id, f.id FROM users u JOIN friends f ON f.a = u.id ORDER BY u.id, f.id;
SAVEPOINT a;
UPDATE users SET score = 1;
--@ ordered
FETCH 3 FROM outside;
FETCH 0 FROM unordered;
MOVE 3 IN unordered;
--@ ordered
FETCH 3 FROM joined;
ROLLBACK TO a;
--@ ordered
FETCH 3 FROM outside;
MOVE ALL IN unordered;
--@ ordered
FETCH 3 FROM joined;
ROLLBACK;

-- WITH HOLD keeps what there was, too.
BEGIN;
DECLARE kept CURSOR WITH HOLD FOR SELECT id, score FROM users WHERE id < 6 ORDER BY id;
DECLARE kept_join CURSOR WITH HOLD FOR SELECT u.id, u.score, f.id FROM users u JOIN friends f ON f.a = u.id WHERE u.id < 6 ORDER BY u.id, f.id;
UPDATE users SET score = score + 1 WHERE id < 6;
FETCH 1 FROM kept;
COMMIT;
--@ ordered
FETCH ALL FROM kept;
--@ ordered
FETCH ALL FROM kept_join;
CLOSE ALL;
UPDATE users SET score = score - 1 WHERE id < 6;

-- Rows that are locked: what the transaction itself has changed since is not given.
BEGIN;
DECLARE locked CURSOR FOR SELECT id, score FROM users WHERE id < 6 ORDER BY id FOR UPDATE;
UPDATE users SET score = 5 WHERE id = 2;
DELETE FROM clicks;
--@ ordered
FETCH ALL FROM locked;
DECLARE locked_one CURSOR FOR SELECT id, score FROM users WHERE id = 3 FOR UPDATE;
UPDATE users SET score = 6 WHERE id = 3;
FETCH ALL FROM locked_one;
DECLARE locked_join CURSOR FOR SELECT u.id, u.score, f.id FROM users u JOIN friends f ON f.a = u.id WHERE u.id < 9 ORDER BY u.id, f.id FOR UPDATE OF u;
DECLARE unsorted CURSOR FOR SELECT id FROM users WHERE id IN (7, 8, 9) FOR SHARE;
UPDATE users SET score = 7 WHERE id = 8;
UPDATE friends SET a = 1 WHERE id < 20;
--@ ordered
FETCH ALL FROM locked_join;
FETCH ALL FROM unsorted;
CLOSE locked_one;
DECLARE unread CURSOR FOR SELECT id FROM users FOR UPDATE;
CLOSE unread;
DECLARE moved CURSOR FOR SELECT id, score FROM users WHERE id > 56 ORDER BY id FOR UPDATE;
UPDATE users SET score = 9 WHERE id = 60;
FETCH 1 FROM moved;
UPDATE users SET score = 8 WHERE CURRENT OF moved;
FETCH 1 FROM moved;
DELETE FROM users WHERE CURRENT OF moved;
--@ ordered
FETCH ALL FROM moved;
SELECT id, score FROM users WHERE id > 55;
ROLLBACK;

-- Positioned.
BEGIN;
DECLARE p CURSOR FOR SELECT * FROM users WHERE id = 7 FOR UPDATE;
FETCH p;
UPDATE users SET score = -7 WHERE CURRENT OF p;
ROLLBACK;
BEGIN;
DECLARE lp CURSOR FOR SELECT * FROM local_notes WHERE id < 3 ORDER BY id FOR UPDATE;
FETCH 1 FROM lp;
DELETE FROM local_notes WHERE CURRENT OF lp;
SELECT count(*) FROM local_notes WHERE id < 3;
ROLLBACK;

-- Parameters, names, errors.
BEGIN;
DECLARE "Odd Name" CURSOR FOR SELECT id FROM users ORDER BY id;
FETCH 1 FROM "Odd Name";
CLOSE "Odd Name";
PREPARE by_country (text) AS SELECT id FROM users WHERE country = $1 ORDER BY id;
EXECUTE by_country ('de');
SAVEPOINT a;
--@ error: 22012
DECLARE bad CURSOR FOR SELECT 1 / 0;
ROLLBACK TO a;
DECLARE later CURSOR FOR SELECT 10 / (id - 3) FROM users ORDER BY id;
FETCH 2 FROM later;
--@ error: 22012
FETCH 2 FROM later;
ROLLBACK;
DEALLOCATE by_country;
BEGIN READ ONLY;
DECLARE ro SCROLL CURSOR FOR SELECT id FROM users ORDER BY score NULLS FIRST, id;
FETCH 3 FROM ro;
COMMIT;
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE rr SCROLL CURSOR FOR SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id ORDER BY u.id, o.id;
FETCH 3 FROM rr;
FETCH LAST FROM rr;
COMMIT;

-- Functions that a cursor's rows call: stable ones see what there was at DECLARE, volatile ones what there is.
CREATE FUNCTION clicks_then(u bigint) RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM clicks WHERE user_id = u); END $$;
CREATE FUNCTION clicks_in_sql(u bigint) RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM clicks WHERE user_id = u';
CREATE FUNCTION clicks_now(u bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM clicks WHERE user_id = u); END $$;
CREATE VIEW clicks_of_notes AS SELECT id, clicks_then(user_id) AS clicks FROM local_notes;
BEGIN;
DECLARE a CURSOR FOR SELECT id, clicks_then(user_id), clicks_in_sql(user_id) FROM local_notes WHERE id < 12;
DECLARE b CURSOR FOR SELECT id, clicks_now(user_id) FROM local_notes WHERE id < 12;
DECLARE d CURSOR FOR SELECT u.id, clicks_then(u.id) FROM users u WHERE u.id < 12 ORDER BY clicks_in_sql(u.id), u.id;
FETCH 2 FROM a;
FETCH 2 FROM b;
INSERT INTO clicks (user_id) SELECT id FROM users;
FETCH 3 FROM a;
FETCH 3 FROM b;
FETCH 2 FROM d;
DELETE FROM clicks;
SAVEPOINT s;
FETCH 2 FROM a;
FETCH 2 FROM b;
FETCH 2 FROM d;
ROLLBACK TO s;
FETCH ALL FROM a;
FETCH ALL FROM b;
FETCH ALL FROM d;
ROLLBACK;
BEGIN;
DECLARE a CURSOR FOR SELECT * FROM clicks_of_notes WHERE id < 12;
FETCH 2 FROM a;
DELETE FROM clicks;
FETCH 2 FROM a;
ROLLBACK;
-- What a subquery read after a savepoint is read again for the next row.
BEGIN;
DECLARE a CURSOR FOR SELECT n.id, (SELECT count(*) FROM clicks c WHERE c.user_id = n.user_id) FROM local_notes n WHERE n.id < 12;
FETCH 2 FROM a;
SAVEPOINT s;
FETCH 2 FROM a;
DELETE FROM clicks;
ROLLBACK TO s;
FETCH 2 FROM a;
SAVEPOINT t;
INSERT INTO clicks (user_id) SELECT id FROM users;
FETCH 2 FROM a;
RELEASE t;
FETCH ALL FROM a;
ROLLBACK;
