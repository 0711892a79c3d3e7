--@ include: schema.sql
-- Statements that other routers answered wrongly (notes of the peers we tried): each must be PostgreSQL's answer.

-- The first `key = value` found anywhere must not route the whole statement.
SELECT id FROM users WHERE id = 5 UNION SELECT id FROM users WHERE id = 6;
SELECT id FROM users WHERE id = 5 UNION ALL SELECT id FROM users;
SELECT count(*) FROM users WHERE id IN (SELECT id FROM users WHERE id = 5) OR id = 6;
SELECT count(*) FROM users WHERE name = (SELECT name FROM users WHERE id = 5);
WITH one AS (SELECT * FROM users WHERE id = 5) SELECT (SELECT count(*) FROM one), count(*) FROM users;
SELECT count(*), sum((id = 5)::int) FROM users;
SELECT count(CASE WHEN id = 5 THEN 1 END), count(*) FROM users;
SELECT count(*) FILTER (WHERE id = 5), count(*) FROM users;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND u.id = 5 WHERE u.id IN (5, 6, 7);
SELECT count(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.user_id = 5;
SELECT id FROM users WHERE id = 5 OR true;
SELECT id FROM users WHERE NOT (id = 5) AND id < 8;
SELECT id FROM users WHERE (id = 5) IS FALSE AND id < 8;
SELECT id FROM users WHERE (id = 5) IS NOT TRUE AND id < 8;
SELECT id FROM users WHERE CASE WHEN id = 5 THEN true ELSE id < 3 END;
SELECT id FROM users WHERE coalesce(id = 5, false) OR id = 7;
SELECT id, (id = 5) FROM users ORDER BY (id = 5) DESC, id LIMIT 3;

-- IN, ANY, OR, contradictions, other types.
SELECT id FROM users WHERE id IN (1, 3);
--@ params: '{1,3,17,44}'
SELECT id FROM users WHERE id = ANY ($1);
--@ params: 1, 3
SELECT id FROM users WHERE id = $1 OR id = $2;
SELECT id FROM users WHERE id = 1 AND id = 2;
SELECT count(*) FROM users WHERE id = 1 AND id = 2;
SELECT id FROM users WHERE id = 7.0 OR id = '8';
SELECT id FROM users WHERE id = 9223372036854775808;
SELECT id FROM users WHERE id = CAST('7' AS int);
CREATE DOMAIN positive AS bigint CHECK (VALUE > 0);
SELECT id FROM users WHERE id = 7::positive;
--@ error: 23514
SELECT id FROM users WHERE id = (-7)::positive;
SELECT count(*) FROM users WHERE id = NULL;
SELECT id FROM users WHERE id > 10 AND id < 14;

-- A batch: every statement counts, not only the first.
SELECT name FROM users WHERE id = 5\; SELECT name FROM users WHERE id = 6\; SELECT count(*) FROM users;
UPDATE users SET score = 1 WHERE id = 5\; UPDATE users SET score = 2 WHERE id = 6\; SELECT id, score FROM users WHERE id IN (5, 6);
INSERT INTO clicks VALUES (101, 'batch', 1)\; INSERT INTO clicks VALUES (102, 'batch', 2)\; INSERT INTO clicks VALUES (103, 'batch', 3);
SELECT user_id, ms FROM clicks WHERE url = 'batch';
--@ error: 22012
INSERT INTO clicks VALUES (104, 'half', 1)\; SELECT 1 / 0\; INSERT INTO clicks VALUES (105, 'half', 2);
SELECT count(*) FROM clicks WHERE url = 'half';

-- Rows of an INSERT go to their own shard, once.
INSERT INTO clicks (user_id, url) VALUES (201, 'many'), (202, 'many'), (203, 'many'), (204, 'many'), (205, 'many'), (206, 'many'), (207, 'many'), (208, 'many'), (209, 'many');
SELECT count(*), count(DISTINCT user_id) FROM clicks WHERE url = 'many';
SELECT user_id FROM clicks WHERE user_id = 204;
INSERT INTO clicks (url, ms) VALUES ('no key', 7);
SELECT user_id, url, ms FROM clicks WHERE url = 'no key';
SELECT ms FROM clicks WHERE user_id IS NULL AND url = 'no key';
INSERT INTO clicks (user_id, url) SELECT g, 'series' FROM generate_series(301, 320) g;
SELECT count(*), sum(user_id) FROM clicks WHERE url = 'series';
SELECT url FROM clicks WHERE user_id = 311;

-- Aggregates and groups.
SELECT country, count(*) FROM users GROUP BY country HAVING count(*) > 9;
SELECT 1 + count(*) FROM users;
SELECT coalesce(sum(score), 0) FROM users;
SELECT 'total', count(*) FROM users;
SELECT avg(a) FROM (SELECT avg(total) AS a FROM orders GROUP BY status) t;
SELECT avg(total) FROM orders;
SELECT count(DISTINCT status) FROM orders;
SELECT id % 3, count(*) FROM users GROUP BY id % 3;
SELECT max(id) - min(id) FROM users;
SELECT round(avg(score), 2) FROM users;
--@ ordered
SELECT country, sum(score) FROM users GROUP BY country ORDER BY sum(score) DESC NULLS LAST LIMIT 5;
SELECT count(*) FROM users WHERE score > (SELECT avg(score) FROM users);
WITH t AS (SELECT country, sum(score) AS s FROM users GROUP BY country) SELECT count(*), max(s), sum(s) FROM t;
CREATE FUNCTION longer(text, text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN length($2) > length(coalesce($1, '')) THEN $2 ELSE $1 END $$;
CREATE AGGREGATE longest (text) (SFUNC = longer, STYPE = text);
SELECT length(longest(name)) FROM users;
SELECT country, length(longest(note)) FROM users JOIN orders ON users.id = orders.user_id GROUP BY country;

-- Windows, set operations, joins that are not colocated.
SELECT id, row_number() OVER (ORDER BY id) FROM users WHERE id < 20;
SELECT id FROM users EXCEPT SELECT user_id FROM orders;
SELECT status FROM orders INTERSECT SELECT 'paid';
--@ ordered
SELECT DISTINCT ON (status) status, id FROM orders ORDER BY status, id DESC;
SELECT count(*) FROM users u JOIN friends f ON f.b = u.id;
SELECT count(*) FROM users a JOIN users b ON a.country = b.country;

-- LIMIT, OFFSET, order.
SELECT count(*) FROM (SELECT id FROM users LIMIT 2) t;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 2;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 3 OFFSET 30;
SELECT country FROM users ORDER BY country NULLS FIRST FETCH FIRST 2 ROWS WITH TIES;
--@ ordered
SELECT name FROM users ORDER BY id DESC LIMIT 4;
--@ ordered
SELECT score FROM users ORDER BY score NULLS FIRST LIMIT 10;
--@ ordered
SELECT name FROM users ORDER BY name COLLATE "en-x-icu" DESC NULLS LAST, id LIMIT 10;

-- Outer joins: unmatched rows once.
SELECT r.code, u.id FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id < 10;
SELECT v.c, u.id FROM (VALUES ('de'), ('zz'), ('none')) v (c) LEFT JOIN users u ON u.country = v.c AND u.id < 10;
SELECT g, u.id FROM generate_series(59, 62) g LEFT JOIN users u ON u.id = g;
WITH t AS (SELECT 61 AS k UNION ALL SELECT 5) SELECT t.k, u.id FROM t LEFT JOIN users u ON u.id = t.k;
SELECT r.code, u.id FROM users u RIGHT JOIN regions r ON u.country = r.code AND u.id = 5;
SELECT r.code, u.id FROM regions r LEFT JOIN users u ON u.country = r.code AND false;
SELECT r.code, u.id FROM regions r FULL JOIN users u ON u.country = r.code AND u.id < 4 WHERE u.id < 8 OR u.id IS NULL;
SELECT count(*) FROM regions r FULL JOIN users u ON false;
SELECT r.code, u.id, o.id FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id < 9 LEFT JOIN orders o ON o.user_id = u.id AND o.total > 100;
SELECT r.code FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id = 1 UNION ALL SELECT r.code FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id = 2;
SELECT p.id, i.user_id FROM products p LEFT JOIN (items i JOIN orders o ON o.user_id = i.user_id AND o.id = i.order_id AND o.status = 'back') ON i.product_id = p.id AND i.user_id < 10;
SELECT count(*) FROM regions WHERE code NOT IN (SELECT country FROM users WHERE country IS NOT NULL);

-- The key changes: the row must be found under its new key.
INSERT INTO clicks (user_id, url, ms) VALUES (401, 'moved', 1);
UPDATE clicks SET user_id = 402 WHERE user_id = 401;
SELECT url FROM clicks WHERE user_id = 402;
SELECT count(*) FROM clicks WHERE user_id = 401;
UPDATE clicks SET user_id = user_id + 1 WHERE url = 'moved';
SELECT user_id FROM clicks WHERE user_id = 403;
UPDATE clicks c SET user_id = v.k FROM (VALUES (403, 404)) v (o, k) WHERE c.user_id = v.o;
SELECT user_id, url FROM clicks WHERE user_id IN (403, 404);
CREATE TABLE moving (k bigint PRIMARY KEY, v varchar(6), n numeric(6,2) DEFAULT 7, twice bigint GENERATED ALWAYS AS (k * 2) STORED,
    id int GENERATED ALWAYS AS IDENTITY, at timestamptz DEFAULT '2020-01-01 00:00+00', CHECK (k < 100000));
--@ cluster: SELECT create_distributed_table('moving', 'k')
INSERT INTO moving (k, v, n) SELECT g, 'v' || g, g / 8.0 FROM generate_series(1, 40) g;
UPDATE moving SET k = k + 1000, v = upper(v), n = n + 0.005 WHERE k % 4 = 1;
SELECT k, v, n, twice, id, at FROM moving;
UPDATE moving m SET k = m.k + 2000 WHERE m.k BETWEEN 2 AND 6 RETURNING *;
UPDATE moving AS m SET v = 'r', k = -m.k WHERE m.k = 1005 RETURNING m.k, m.v, m.twice, m.k + 1 AS next, 'x';
UPDATE moving SET k = NULL WHERE false;
UPDATE moving SET k = 5000 WHERE k = 123456;
--@ error: 23502
UPDATE moving SET k = NULL WHERE k = 7;
--@ error: 23505
UPDATE moving SET k = 8 WHERE k = 7;
--@ error: 23514
UPDATE moving SET k = 100000 WHERE k = 7;
--@ error: 22001
UPDATE moving SET k = 7777, v = 'far too long' WHERE k = 7;
--@ error: 42804
UPDATE moving SET k = now() WHERE k = 7;
--@ error: 42804
UPDATE moving SET k = 'x'::text WHERE k = 7;
--@ error: 42703
UPDATE moving SET k = nothing WHERE k = 7;
--@ error: 428C9
UPDATE moving SET k = 3, twice = 4 WHERE k = 7;
--@ error: 22P02
UPDATE moving SET k = 'seven' WHERE k = 7;
UPDATE moving SET k = '77', n = 2.5, at = at + interval '1 day' WHERE k = 7;
UPDATE moving SET k = 78.6 WHERE k = 8;
UPDATE moving SET k = users.id + 3000, v = users.country FROM users WHERE users.id = moving.k AND users.id < 20;
WITH pick AS (SELECT id FROM users WHERE score > 50) UPDATE moving SET k = k + 4000 FROM pick WHERE pick.id = k;
UPDATE moving SET k = CASE WHEN n IS DISTINCT FROM 2.5 THEN k + 10000 ELSE k + 20000 END WHERE k > 70 AND k < 80;
SELECT k, v, n, twice, id, at FROM moving;
BEGIN;
UPDATE moving SET k = k + 30000;
SELECT count(*), min(k), max(k), sum(twice) FROM moving;
SAVEPOINT a;
--@ error: 22012
UPDATE moving SET k = k / (k - k);
ROLLBACK TO a;
UPDATE moving SET k = k - 30000 WHERE k % 2 = 0;
SELECT k, v FROM moving WHERE k = 30010;
ROLLBACK;
SELECT count(*), min(k), max(k), sum(twice) FROM moving;
DROP TABLE moving;
CREATE TABLE keyed (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('keyed', 'k')
INSERT INTO keyed VALUES (1, 'a'), (2, 'b');
INSERT INTO keyed VALUES (1, 'x') ON CONFLICT (k) DO UPDATE SET k = 1000 + keyed.k, v = excluded.v;
INSERT INTO keyed VALUES (2, 'y'), (3, 'new') ON CONFLICT (k) DO UPDATE SET k = excluded.k * -1, v = keyed.v || excluded.v RETURNING *;
INSERT INTO keyed VALUES (3, 'no') ON CONFLICT (k) DO UPDATE SET k = 5 WHERE keyed.v = 'other' RETURNING *;
--@ error: 23505
INSERT INTO keyed VALUES (3, 'no') ON CONFLICT (k) DO UPDATE SET k = -2;
SELECT * FROM keyed;
SELECT * FROM keyed WHERE k = 1001;
SELECT * FROM keyed WHERE k = 1;

-- A key that cannot be read is an error, not a write to everyone.
--@ error: 22P02
INSERT INTO keyed VALUES ('seven', 'c');
--@ error: 22003
INSERT INTO keyed VALUES (99999999999, 'c');
--@ error: 22P02
DELETE FROM keyed WHERE k = 'seven';
SELECT count(*) FROM keyed;
--@ error: 42P01
INSERT INTO nowhere VALUES (1);
--@ error: 42P01
SELECT * FROM nowhere WHERE id = 5;

-- Grouping sets inside a subquery, recursion, LIMIT in IN, correlation.
SELECT sum(n) FROM (SELECT country, count(*) AS n FROM users GROUP BY ROLLUP (country)) t;
WITH RECURSIVE w (id) AS (SELECT 1::bigint UNION SELECT b FROM friends JOIN w ON a = w.id) SELECT count(*) FROM w;
SELECT id FROM users WHERE id IN (SELECT user_id FROM orders ORDER BY id DESC LIMIT 3);
SELECT id, (SELECT count(*) FROM friends f WHERE f.a = users.id) FROM users WHERE id < 10;
SELECT id, (SELECT max(o.total) FROM orders o WHERE o.user_id <> users.id) FROM users WHERE id < 5;

-- COALESCE(x, now()) and ON CONFLICT … = now() have one value each.
UPDATE users SET created = coalesce(NULL, now()) WHERE id < 10;
SELECT count(DISTINCT created) FROM users WHERE id < 10;
INSERT INTO keyed VALUES (2, 'z') ON CONFLICT (k) DO UPDATE SET v = (now() = transaction_timestamp())::text;
SELECT v FROM keyed WHERE k = 2;
SELECT DISTINCT now() = current_timestamp FROM users;
