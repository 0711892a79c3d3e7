--@ include: schema.sql
-- UPDATE, DELETE and TRUNCATE: of one row, of many, with other tables, with RETURNING.

-- Of one row.
UPDATE users SET score = score + 1 WHERE id = 8;
UPDATE users SET name = 'renamed', score = NULL WHERE id = 9 RETURNING id, name, score;
UPDATE users SET (name, score) = ('pair', 5) WHERE id = 10 RETURNING *;
UPDATE users SET name = DEFAULT, active = DEFAULT WHERE id = 12 RETURNING id, name, active;
UPDATE users u SET tags[1] = 'first', meta = jsonb_set(meta, '{level}', '9') WHERE u.id = 13 RETURNING u.tags, meta;
UPDATE users SET score = 1 WHERE id = 99999;
UPDATE users SET score = 1 WHERE id = NULL;
DELETE FROM items WHERE user_id = 3 AND line = 1 RETURNING *;
DELETE FROM clicks WHERE user_id = 8;
SELECT count(*) FROM clicks WHERE user_id = 8;
SELECT id, name, score FROM users WHERE id BETWEEN 7 AND 14;

-- Of many rows.
UPDATE users SET score = 0 WHERE score IS NULL;
UPDATE users SET name = upper(name) WHERE id IN (1, 2, 30);
UPDATE users SET active = NOT active WHERE id > 50 RETURNING id, active;
UPDATE orders SET total = total * 1.1, status = 'upd' WHERE placed > '2021-12-01';
UPDATE orders SET total = round(total, 1);
SELECT sum(total), count(*) FILTER (WHERE status = 'upd') FROM orders;
UPDATE clicks SET ms = coalesce(ms, 0) + 1 WHERE user_id IS NULL RETURNING ms;
UPDATE clicks SET url = url || '!' WHERE user_id IN (15, 22, 29) AND ms > 50 RETURNING user_id, url;
DELETE FROM clicks WHERE ms > 400;
DELETE FROM clicks WHERE url LIKE '/p/3%' RETURNING url, ms;
SELECT count(*), sum(ms) FROM clicks;
DELETE FROM events WHERE kind IS NULL;
DELETE FROM events WHERE kind IN ('kind-2', 'kind-4');
SELECT kind, count(*) FROM events GROUP BY kind;

-- With other tables.
UPDATE orders o SET note = u.name FROM users u WHERE u.id = o.user_id AND u.country = 'de';
UPDATE orders o SET note = u.name FROM users u WHERE u.id = o.user_id AND u.id = 14 RETURNING o.id, o.note, u.score;
UPDATE items i SET price = p.price FROM products p WHERE p.id = i.product_id AND p.discontinued;
SELECT sum(price) FROM items;
UPDATE users u SET score = t.n FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) t WHERE t.user_id = u.id;
SELECT sum(score) FROM users;
UPDATE users SET score = (SELECT count(*) FROM orders o WHERE o.user_id = users.id) WHERE id < 20;
UPDATE users SET name = (SELECT name FROM regions r WHERE r.code = users.country) WHERE id < 10 RETURNING id, name;
UPDATE users SET score = (SELECT avg(total) FROM orders) WHERE id = 20 RETURNING score;
UPDATE users SET score = 77 WHERE id IN (SELECT user_id FROM orders WHERE status = 'back');
UPDATE users SET score = 78 WHERE id IN (SELECT a FROM friends WHERE b < 10);
UPDATE users u SET score = f.id FROM friends f WHERE f.a = u.id AND f.id = 7 RETURNING u.id, u.score;
UPDATE users u SET name = n.body FROM local_notes n WHERE n.user_id = u.id RETURNING u.id, u.name;
UPDATE users u SET score = v.s FROM (VALUES (1, 11), (2, 22), (500, 5)) v (id, s) WHERE v.id = u.id RETURNING u.id, u.score;
UPDATE local_notes n SET body = u.name FROM users u WHERE u.id = n.user_id AND u.id < 20 RETURNING n.id, n.body;
UPDATE regions r SET tax = t.n FROM (SELECT country, count(*) AS n FROM users GROUP BY country) t WHERE t.country = r.code;
SELECT * FROM regions;
WITH t AS (SELECT id FROM users WHERE id < 5) UPDATE users SET score = 1000 WHERE id IN (SELECT id FROM t) RETURNING id;
WITH up AS (UPDATE users SET score = 2000 WHERE id = 5 RETURNING id, score) SELECT * FROM up;
WITH gone AS (DELETE FROM clicks WHERE ms < 60 RETURNING user_id, url) SELECT count(*), count(DISTINCT url) FROM gone;
DELETE FROM clicks c USING users u WHERE u.id = c.user_id AND u.country = 'fr';
DELETE FROM clicks c USING users u WHERE u.id = c.user_id AND u.id = 15 RETURNING c.url, u.name;
DELETE FROM clicks WHERE user_id IN (SELECT id FROM users WHERE NOT active);
DELETE FROM friends f USING users u WHERE u.id = f.a AND u.country = 'nl';
DELETE FROM friends WHERE a IN (SELECT user_id FROM orders WHERE status = 'new');
DELETE FROM friends WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.id = friends.b);
SELECT count(*), sum(a), sum(b) FROM friends;
DELETE FROM events e USING local_notes n WHERE n.id = e.id;
SELECT count(*), sum(id) FROM events;
DELETE FROM clicks WHERE ms = (SELECT max(ms) FROM clicks);
SELECT count(*), max(ms) FROM clicks;

-- Rows that refer to each other.
DELETE FROM orders WHERE user_id = 14;
SELECT count(*) FROM items WHERE user_id = 14;
--@ error: 23503
DELETE FROM users WHERE id = 19;
--@ error: 23503
INSERT INTO orders VALUES (5000, 1, '2020-01-01');
--@ error: 23503
INSERT INTO items VALUES (19, 999, 1, 1, 1, 1);
--@ error: 23503
UPDATE items SET product_id = 99 WHERE user_id = 19 AND line = 1;
--@ error: 23503
DELETE FROM products WHERE id = 3;
DELETE FROM users WHERE id = 60;
SELECT count(*) FROM users;

-- Reference and local tables.
UPDATE products SET price = price + 1 WHERE id < 4 RETURNING *;
UPDATE products SET discontinued = true;
DELETE FROM regions WHERE code = 'xx';
UPDATE local_notes SET stars = 5 WHERE user_id IS NULL RETURNING id;
DELETE FROM local_notes WHERE stars = 0;
SELECT p.discontinued, count(*), sum(p.price) FROM products p JOIN items i ON i.product_id = p.id GROUP BY p.discontinued;
SELECT count(*) FROM local_notes;

-- Mistakes change nothing.
--@ error: 22012
UPDATE users SET score = 1 / (id - 30) WHERE id BETWEEN 25 AND 35;
SELECT sum(score) FROM users WHERE id BETWEEN 25 AND 35;
--@ error: 42703
UPDATE users SET nope = 1 WHERE id = 1;
--@ error: 42703
DELETE FROM users WHERE nope = 1;
--@ error: 23502
UPDATE users SET active = NULL WHERE id = 1;
--@ error: 23514
UPDATE products SET price = -1 WHERE id = 1;
--@ error: 23505
UPDATE friends SET id = (SELECT min(id) FROM friends) WHERE id = (SELECT max(id) FROM friends);
--@ error: 22003
UPDATE users SET score = 1e9 WHERE id = 1;

-- Parameters.
--@ params: 21, 5.5
--@ params: 22, NULL
UPDATE users SET score = $2 WHERE id = $1 RETURNING id, score;
--@ params: 30
UPDATE users SET score = -1 WHERE id > $1 AND country = 'jp';
--@ repeat: 8
--@ params: 23
UPDATE users SET score = coalesce(score, 0) + 1 WHERE id = $1 RETURNING score;
--@ repeat: 7
UPDATE users SET score = score + 1 WHERE active RETURNING id;
--@ params: '{31,32}'
UPDATE users SET name = 'any' WHERE id = ANY ($1) RETURNING id;
--@ params: 29
DELETE FROM clicks WHERE user_id = $1;

-- TRUNCATE.
TRUNCATE clicks;
SELECT count(*) FROM clicks;
--@ error: 0A000
TRUNCATE orders;
TRUNCATE items, orders;
SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM orders);
TRUNCATE local_notes RESTART IDENTITY;
INSERT INTO local_notes (body) VALUES ('first again') RETURNING id;
TRUNCATE users CASCADE;
SELECT count(*) FROM users;
BEGIN;
TRUNCATE events;
SELECT count(*) FROM events;
ROLLBACK;
SELECT count(*) > 0 FROM events;

-- DEFAULT is the transaction's time on every server.
CREATE TABLE stamped (k int PRIMARY KEY, n int, at timestamptz DEFAULT now(), day date DEFAULT current_date);
--@ cluster: SELECT create_distributed_table('stamped', 'k')
BEGIN;
INSERT INTO stamped (k, at) VALUES (1, DEFAULT);
INSERT INTO stamped (k, at) VALUES (2, DEFAULT), (3, DEFAULT), (4, DEFAULT), (5, DEFAULT);
INSERT INTO stamped (k, at) VALUES (6, DEFAULT);
INSERT INTO stamped (k, at) VALUES (7, DEFAULT);
SELECT count(DISTINCT at), bool_and(at = now()) FROM stamped;
COMMIT;
UPDATE stamped SET at = DEFAULT, day = '2020-02-02';
SELECT count(DISTINCT at) FROM stamped;
BEGIN;
UPDATE stamped SET at = DEFAULT WHERE k = 1;
UPDATE stamped SET at = DEFAULT WHERE k = 2;
UPDATE stamped SET at = DEFAULT, n = 4, day = DEFAULT WHERE k > 4;
UPDATE stamped SET (n, at) = (5, DEFAULT) WHERE k = 4 RETURNING k, n, at = now();
INSERT INTO stamped (k) VALUES (3), (8) ON CONFLICT (k) DO UPDATE SET at = DEFAULT;
SELECT count(DISTINCT at), bool_and(at = now()), count(DISTINCT day) FROM stamped;
INSERT INTO stamped (k) SELECT 5 + g FROM generate_series(1, 9) g ON CONFLICT (k) DO UPDATE SET at = DEFAULT, n = -1;
UPDATE stamped SET at = DEFAULT, n = 7 WHERE n = (SELECT max(n) FROM stamped);
SELECT k, n, at = now() FROM stamped;
COMMIT;
