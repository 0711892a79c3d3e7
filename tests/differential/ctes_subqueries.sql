--@ include: schema.sql
--@ read only
-- Common table expressions and subqueries in every place.

WITH t AS (SELECT id FROM users WHERE score > 50) SELECT count(*) FROM t;
WITH t AS (SELECT id, country FROM users) SELECT country, count(*) FROM t GROUP BY country;
WITH t AS (SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id) SELECT max(s), min(s), avg(s) FROM t;
WITH t AS (SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id) SELECT u.name, t.s FROM users u JOIN t ON t.user_id = u.id WHERE t.s > 900;
WITH t AS MATERIALIZED (SELECT * FROM users WHERE id < 10) SELECT a.id, b.id FROM t a, t b WHERE a.id + 1 = b.id;
WITH t AS NOT MATERIALIZED (SELECT * FROM users) SELECT name FROM t WHERE id = 12;
WITH t AS (SELECT id FROM users WHERE id = 5) SELECT * FROM t;
WITH t AS (SELECT id FROM users WHERE id = 5) SELECT o.id FROM orders o WHERE o.user_id IN (SELECT id FROM t);
WITH t AS (SELECT id FROM users WHERE id = 13) SELECT t.id, o.id FROM t JOIN orders o ON o.user_id = t.id;
WITH t AS (SELECT id FROM users WHERE id = 13) SELECT o.id FROM orders o WHERE user_id = 14;
WITH a AS (SELECT id FROM users WHERE id < 20), b AS (SELECT id FROM a WHERE id > 10) SELECT count(*), sum(id) FROM b;
WITH a AS (SELECT 5 AS k) SELECT u.name FROM users u, a WHERE u.id = a.k;
WITH users AS (SELECT 1 AS id, 'shadow' AS name) SELECT * FROM users;
WITH t (a, b) AS (VALUES (1, 'x'), (2, 'y')) SELECT t.b, u.name FROM t LEFT JOIN users u ON u.id = t.a;
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n, u.name FROM r JOIN users u ON u.id = r.n;
WITH RECURSIVE reach (id) AS (SELECT 1::bigint UNION SELECT f.b FROM reach JOIN friends f ON f.a = reach.id) SELECT id FROM reach;
WITH RECURSIVE path (id, depth) AS (SELECT id, 0 FROM users WHERE id = 6 UNION ALL SELECT f.b, depth + 1 FROM path JOIN friends f ON f.a = path.id WHERE depth < 3) SELECT depth, count(*) FROM path GROUP BY depth;
SELECT * FROM (WITH t AS (SELECT count(*) AS n FROM orders) SELECT n + 1 AS n FROM t) x;
SELECT id, (WITH t AS (SELECT max(total) AS m FROM orders o WHERE o.user_id = u.id) SELECT m FROM t) FROM users u WHERE id < 10;

-- IN and EXISTS.
SELECT id FROM users WHERE id IN (SELECT user_id FROM orders WHERE status = 'paid');
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders);
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM clicks);
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM clicks WHERE user_id IS NOT NULL);
SELECT id FROM users WHERE id IN (SELECT a FROM friends WHERE since > '2019-06-01');
SELECT id FROM users WHERE id IN (SELECT user_id FROM orders ORDER BY total DESC NULLS LAST, id LIMIT 5);
SELECT id FROM users WHERE country IN (SELECT code FROM regions WHERE tax > 19);
SELECT id FROM users WHERE id IN (SELECT user_id FROM local_notes);
SELECT id FROM users WHERE (id, name) IN (SELECT user_id, 'user ' || user_id FROM orders);
SELECT id FROM users WHERE id = ANY (SELECT user_id FROM orders WHERE total > 500);
SELECT id FROM users WHERE id > ALL (SELECT user_id FROM orders);
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'back');
SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM friends f WHERE f.a = u.id AND f.b > 40);
SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM friends f WHERE f.a = u.id);
SELECT id FROM users WHERE EXISTS (SELECT 1 FROM orders WHERE user_id = 14) AND id < 4;
SELECT id FROM users WHERE EXISTS (SELECT 1 FROM orders WHERE user_id = 15) AND id < 4;
SELECT code FROM regions r WHERE EXISTS (SELECT 1 FROM users u WHERE u.country = r.code);
SELECT code FROM regions r WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.country = r.code AND u.score > 50);
SELECT id FROM local_notes n WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = n.user_id AND u.active);
SELECT id FROM users WHERE id = 5 AND EXISTS (SELECT 1 FROM orders WHERE user_id = 6);
SELECT id FROM users WHERE id = 5 OR EXISTS (SELECT 1 FROM orders WHERE user_id = 99);

-- Scalar.
SELECT id FROM users WHERE id = (SELECT max(user_id) FROM orders);
SELECT id FROM users WHERE id = (SELECT 7);
SELECT id FROM users WHERE score > (SELECT avg(score) FROM users);
SELECT id FROM users WHERE score = (SELECT max(score) FROM users);
SELECT id, (SELECT count(*) FROM orders) FROM users WHERE id < 4;
SELECT id, (SELECT count(*) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE id < 20;
SELECT id, (SELECT name FROM regions r WHERE r.code = u.country) FROM users u WHERE id < 20;
SELECT id, (SELECT max(f.id) FROM friends f WHERE f.a = u.id) FROM users u WHERE id < 20;
SELECT (SELECT count(*) FROM users), (SELECT sum(total) FROM orders), (SELECT name FROM users WHERE id = 5);
SELECT code, (SELECT count(*) FROM users u WHERE u.country = r.code) FROM regions r;
SELECT id, (SELECT name FROM users u WHERE u.id = n.user_id) FROM local_notes n;
SELECT ARRAY(SELECT id FROM users WHERE id < 5 ORDER BY id), id FROM users WHERE id = 9;
SELECT id FROM users u WHERE score > (SELECT avg(score) FROM users v WHERE v.country = u.country);
SELECT o.user_id, o.id FROM orders o WHERE total = (SELECT max(total) FROM orders p WHERE p.user_id = o.user_id);
SELECT id, CASE WHEN EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id) THEN (SELECT min(id) FROM orders o WHERE o.user_id = u.id) ELSE -1 END FROM users u WHERE id < 9;
SELECT id FROM users ORDER BY (SELECT count(*) FROM orders o WHERE o.user_id = users.id) DESC, id LIMIT 3;
SELECT country FROM users GROUP BY country HAVING count(*) >= (SELECT count(*) / 6 FROM users);
SELECT country, (SELECT count(*) FROM orders) FROM users GROUP BY country;
SELECT sum((SELECT count(*) FROM orders o WHERE o.user_id = u.id)) FROM users u;

-- FROM.
SELECT * FROM (SELECT id, score FROM users WHERE id < 10) t WHERE score > 20;
SELECT * FROM (SELECT * FROM users) t WHERE id = 12;
SELECT t.country, t.n FROM (SELECT country, count(*) AS n FROM users GROUP BY country) t WHERE t.n > 9;
SELECT t.n, count(*) FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) t GROUP BY t.n;
SELECT u.id, t.n FROM users u JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) t ON t.user_id = u.id WHERE u.id < 15;
SELECT u.id, t.n FROM users u LEFT JOIN (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) t ON t.user_id = u.id WHERE u.id < 15;
SELECT r.code, t.n FROM regions r LEFT JOIN (SELECT country, count(*) AS n FROM users GROUP BY country) t ON t.country = r.code;
SELECT a.id FROM (SELECT id FROM users ORDER BY id LIMIT 5) a JOIN (SELECT id FROM users ORDER BY id DESC LIMIT 58) b ON a.id = b.id;
SELECT id FROM (SELECT id FROM users WHERE id = 5 UNION ALL SELECT id FROM users WHERE id = 6) t;
SELECT x.id FROM (SELECT id FROM users WHERE id = 5) x, (SELECT id FROM users WHERE id = 6) y;
SELECT count(*) FROM (SELECT 1 FROM users u JOIN orders o ON o.user_id = u.id JOIN friends f ON f.a = u.id) t;
SELECT t.id, t.k FROM (SELECT id, 5 AS k FROM users) t WHERE t.k = 5 AND t.id < 3;
--@ ordered
SELECT * FROM (SELECT id, row_number() OVER (ORDER BY id) AS r FROM users) t WHERE r BETWEEN 4 AND 6 ORDER BY r;

--@ error: 21000
SELECT (SELECT id FROM users WHERE id < 4);
--@ error: 21000
SELECT id FROM users u WHERE id = (SELECT user_id FROM orders WHERE user_id < 10);
--@ error: 42601
SELECT id FROM users WHERE id IN (SELECT id, name FROM users);
--@ error: 42703
SELECT (SELECT nope FROM orders o WHERE o.user_id = u.id) FROM users u;

--@ params: 5
--@ params: 14
WITH t AS (SELECT id FROM users WHERE id = $1) SELECT t.id, o.id FROM t LEFT JOIN orders o ON o.user_id = t.id;
--@ params: 5, 14
SELECT id FROM users WHERE id = $1 OR id IN (SELECT user_id FROM orders WHERE user_id = $2);
--@ params: 500
SELECT id FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.total > $1);
