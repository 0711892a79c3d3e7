--@ include: schema.sql
-- Statements that are taken apart (the stage tier): joins on other columns than the distribution columns, subqueries that
-- stand alone or are looked up, in and outside of transactions; and what looks like one and must not be taken apart.

CREATE TABLE books (key text, title text COLLATE "C", shelf int);
CREATE TABLE wide (id bigint PRIMARY KEY, v int);
CREATE TABLE narrow (id int PRIMARY KEY, b bigint, c char(3));
INSERT INTO books SELECT 'k' || i, (ARRAY['B', 'a', 'b', 'A', 'ä', 'Z'])[1 + i % 6] || i, i % 5 FROM generate_series(1, 40) i;
INSERT INTO wide SELECT i, i % 7 FROM generate_series(1, 50) i;
INSERT INTO wide VALUES (5000000000, 3);
INSERT INTO narrow SELECT i, CASE WHEN i % 9 = 0 THEN 5000000000 ELSE i * 3 % 50 END, 'c' || i % 4 FROM generate_series(1, 60) i;
--@ cluster: SELECT create_distributed_table('books', 'key'), create_distributed_table('wide', 'id'), create_distributed_table('narrow', 'id')

-- A literal that may move with time; the statement is not a part of itself.
SELECT id FROM users WHERE name = 'nowhere';
SELECT id FROM users WHERE name LIKE 'today%' OR id = 3;
SELECT id FROM users WHERE name = 'tomorrow' OR created > 'yesterday';
SELECT count(*) FROM orders WHERE age(placed) > interval '1 day';

-- Collations of columns.
SELECT key FROM books ORDER BY title;
SELECT key, rank() OVER (ORDER BY title) FROM books;
SELECT max(title), min(title) FROM books;
SELECT b.key FROM books b JOIN friends f ON f.id = b.shelf ORDER BY b.title, f.a, f.id;
SELECT key FROM books WHERE title > (SELECT min(title) FROM books WHERE shelf = 2) ORDER BY title;

-- A primary key that other columns depend on.
SELECT u.id, u.name, count(*), rank() OVER (ORDER BY count(*) DESC, u.id) FROM users u JOIN orders o ON o.user_id = u.id GROUP BY u.id;
SELECT u.id, u.name, count(*) FROM users u JOIN friends f ON f.a = u.id GROUP BY u.id;
SELECT f.id, f.since, count(*) FROM users u JOIN friends f ON f.a = u.id GROUP BY f.id;

-- One CTE under two names, and CTEs that hide tables.
WITH s AS (SELECT a, count(*) n FROM friends GROUP BY a) SELECT u.id, x.n, y.n FROM users u JOIN s x ON x.a = u.id LEFT JOIN s y ON y.a = u.id + 1;
WITH s AS (SELECT a, count(*) n FROM friends GROUP BY a) SELECT u.id, x.n, y.n FROM users u JOIN s x ON x.a = u.id JOIN s y ON y.a = u.id;
WITH users AS (SELECT * FROM users WHERE score < (SELECT avg(score) FROM users)) SELECT id FROM users;
WITH a AS (SELECT * FROM users WHERE score < (SELECT avg(tax) * 3 FROM regions)), regions AS (SELECT 1 AS code) SELECT a.id FROM a, regions;
SELECT u.id FROM users u WHERE EXISTS (WITH c AS (SELECT * FROM friends WHERE b > 3), d AS (SELECT a, count(*) n FROM c GROUP BY a) SELECT 1 FROM d WHERE d.a = u.id);

-- Integers of another width, and characters with padding.
SELECT n.id, w.v FROM narrow n JOIN wide w ON w.id = n.b WHERE n.b IN (1, 5000000000);
SELECT n.id, w.v FROM narrow n LEFT JOIN wide w ON w.id = n.b;
SELECT n.id, m.id FROM narrow n JOIN narrow m ON m.id = n.b;
SELECT n.id, r.id FROM narrow n JOIN narrow r ON r.c = n.c WHERE n.id < 4 AND r.id > 57;

-- Aggregates per outer row.
SELECT o.user_id, o.id FROM orders o WHERE o.total < (SELECT avg(i.price) * 20 FROM items i WHERE i.order_id = o.id);
SELECT o.user_id, o.id FROM orders o WHERE o.total < (SELECT sum(f.id) FROM friends f WHERE f.a = o.user_id AND f.b > 5);
SELECT f.id FROM friends f WHERE f.b >= 0.5 * (SELECT max(g.b) FROM friends g WHERE g.a = f.a);
SELECT f.id FROM friends f WHERE f.b <> (SELECT min(g.b) FROM friends g WHERE g.a = f.a AND g.id <> f.id);
SELECT f.id FROM friends f WHERE 1 < (SELECT count(*) FROM friends g WHERE g.a = f.a);
SELECT f.id FROM friends f WHERE f.b = (SELECT sum(n.id) FROM narrow n WHERE n.c = 'c1' AND n.b = f.a)and f.id>1;
SELECT f.id FROM friends f WHERE(SELECT avg(g.b) FROM friends g WHERE g.a=f.a)<f.b AND f.id<50;

-- Cut off, volatile, with windows.
SELECT f.id, rank() OVER (ORDER BY f.since) FROM friends f WHERE f.a IN (SELECT id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 9);
SELECT count(*) > 0 FROM friends f WHERE f.a IN (SELECT id FROM users ORDER BY random() LIMIT 50);
SELECT f.id FROM friends f WHERE f.b IN (SELECT row_number() OVER (ORDER BY g.id) FROM friends g WHERE g.a = f.a);
--@ error: 42601
SELECT f.id FROM friends f WHERE f.a IN (TABLE wide);
SELECT f.id FROM friends f WHERE f.a = ANY (SELECT v FROM wide) ORDER BY f.id LIMIT 3;

-- Untyped literals in arms of a union.
(SELECT 'all' AS k, NULL AS d, sum(total) FROM orders) UNION ALL (SELECT 'day', placed, sum(total) FROM orders GROUP BY placed) ORDER BY 1, 2, 3;

-- The same alias at two levels, and names that only a deeper level has.
SELECT o.id FROM orders o WHERE o.user_id IN (SELECT f.a FROM friends f WHERE f.id < o.id AND EXISTS (SELECT 1 FROM wide o WHERE o.id = f.b));
SELECT u.id FROM users u WHERE u.score > (SELECT avg(f.b) FROM friends f JOIN wide w ON w.id = f.id AND w.v = u.id % 7 WHERE f.a = u.id);
SELECT count(*) FROM friends f JOIN wide w ON w.id = f.b AND w.v <> 3;
SELECT count(*), (SELECT count(*) FROM wide) FROM friends;

-- In a transaction of the client's, before and after a write, with errors undone.
BEGIN;
SELECT f.id, u.name FROM friends f JOIN users u ON u.id = f.b WHERE f.id < 20;
UPDATE friends SET b = b + 1 WHERE id < 30;
SELECT f.id, u.name FROM friends f JOIN users u ON u.id = f.b WHERE f.id < 40;
SELECT count(*) FROM wide w JOIN narrow n ON n.b = w.id WHERE w.v > (SELECT avg(v) FROM wide);
SAVEPOINT s;
--@ error: 22012
SELECT f.id FROM friends f JOIN users u ON u.id = f.b WHERE 1 / (f.a - f.a) > 0;
ROLLBACK TO s;
SELECT o.id FROM orders o WHERE o.user_id IN (SELECT f.a FROM friends f WHERE f.id < o.id AND EXISTS (SELECT 1 FROM wide o WHERE o.id = f.b));
SELECT f.a, count(*) FROM friends f JOIN users u ON u.id = f.b GROUP BY f.a HAVING count(*) > (SELECT 1);
INSERT INTO wide SELECT f.id + 1000, count(*) FROM friends f JOIN users u ON u.id = f.a GROUP BY f.id;
SELECT count(*), sum(v) FROM wide;
ROLLBACK;

-- Row locks.
BEGIN;
SELECT j.id, w.v FROM (SELECT * FROM users WHERE active FOR UPDATE) j JOIN wide w ON w.id = j.id;
ROLLBACK;
