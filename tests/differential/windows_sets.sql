--@ include: schema.sql
--@ read only
-- Window functions and set operations.

SELECT id, row_number() OVER (ORDER BY id) FROM users;
SELECT id, rank() OVER (ORDER BY score NULLS FIRST), dense_rank() OVER (ORDER BY country) FROM users;
SELECT user_id, id, row_number() OVER (PARTITION BY user_id ORDER BY id) FROM orders;
SELECT user_id, id, sum(total) OVER (PARTITION BY user_id ORDER BY id) FROM orders;
SELECT user_id, id, sum(total) OVER (PARTITION BY status ORDER BY id) FROM orders;
SELECT id, count(*) OVER (), avg(score) OVER () FROM users WHERE id < 20;
SELECT id, lag(id) OVER (ORDER BY id), lead(name, 2, 'none') OVER (ORDER BY id DESC) FROM users;
SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM users WINDOW w AS (PARTITION BY country ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING);
SELECT id, ntile(4) OVER (ORDER BY id), percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id) FROM users;
SELECT placed, sum(total) OVER (ORDER BY placed RANGE BETWEEN '30 days' PRECEDING AND CURRENT ROW) FROM orders;
SELECT user_id, status, total, max(total) FILTER (WHERE status = 'paid') OVER (PARTITION BY user_id) FROM orders;
SELECT id, sum(score) OVER (PARTITION BY active ORDER BY id GROUPS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) FROM users;
--@ ordered
SELECT id, row_number() OVER (ORDER BY score DESC NULLS LAST, id) AS r FROM users ORDER BY r LIMIT 5;
SELECT * FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id ORDER BY total DESC NULLS LAST, id) AS r FROM orders) t WHERE r = 1;
SELECT * FROM (SELECT status, id, row_number() OVER (PARTITION BY status ORDER BY id) AS r FROM orders) t WHERE r <= 2;
SELECT country, count(*), rank() OVER (ORDER BY count(*) DESC, country) FROM users GROUP BY country;
SELECT id, row_number() OVER (ORDER BY id) FROM users WHERE id = 9;
SELECT u.id, o.id, count(*) OVER (PARTITION BY u.id) FROM users u JOIN orders o ON o.user_id = u.id;
SELECT p.id, sum(price) OVER (ORDER BY id) FROM products p;
SELECT DISTINCT country, count(*) OVER (PARTITION BY country) FROM users;

-- UNION.
SELECT id FROM users WHERE id = 3 UNION ALL SELECT id FROM users WHERE id = 4;
SELECT id FROM users WHERE id = 3 UNION SELECT id FROM users WHERE id = 3;
SELECT id FROM users WHERE id = 3 UNION ALL SELECT user_id FROM orders WHERE user_id = 3;
SELECT id FROM users WHERE id < 5 UNION SELECT user_id FROM orders WHERE user_id < 8;
SELECT id FROM users WHERE id < 5 UNION ALL SELECT user_id FROM orders WHERE user_id < 8;
SELECT id, name FROM users WHERE id = 5 UNION ALL SELECT 1, 'one';
SELECT 'a' UNION SELECT 'b' UNION ALL SELECT 'b';
SELECT country FROM users UNION SELECT code FROM regions;
SELECT count(*) FROM users UNION ALL SELECT count(*) FROM orders;
SELECT id FROM products UNION SELECT id FROM users WHERE id < 30;
SELECT id FROM local_notes UNION ALL SELECT id::int FROM users WHERE id = 1;
SELECT user_id FROM orders UNION SELECT a FROM friends;
SELECT kind FROM events WHERE kind = 'kind-1' UNION SELECT name FROM users WHERE id = 1;
--@ ordered
SELECT id FROM users WHERE id < 5 UNION ALL SELECT user_id FROM orders WHERE user_id < 6 ORDER BY 1 DESC LIMIT 6;
--@ ordered
(SELECT id FROM users ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM users ORDER BY id DESC LIMIT 3) ORDER BY id;
(SELECT id FROM users ORDER BY id LIMIT 3) UNION ALL (SELECT user_id FROM orders ORDER BY user_id DESC, id LIMIT 2);
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id = 5 UNION SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id = 6;

-- INTERSECT and EXCEPT.
SELECT id FROM users INTERSECT SELECT user_id FROM orders;
SELECT id FROM users EXCEPT SELECT user_id FROM orders;
SELECT country FROM users INTERSECT SELECT code FROM regions;
SELECT code FROM regions EXCEPT SELECT country FROM users;
SELECT user_id FROM clicks INTERSECT ALL SELECT user_id FROM orders;
SELECT user_id FROM clicks EXCEPT ALL SELECT id FROM users;
SELECT status FROM orders EXCEPT SELECT 'new';
SELECT a FROM friends INTERSECT SELECT b FROM friends;
SELECT id FROM users WHERE id < 10 EXCEPT (SELECT user_id FROM orders WHERE status = 'paid' UNION SELECT user_id FROM clicks);
SELECT count(*) FROM (SELECT id FROM users EXCEPT SELECT user_id FROM orders) t;
SELECT id FROM users WHERE id = 5 EXCEPT SELECT user_id FROM orders WHERE user_id = 5;
SELECT id FROM users WHERE id = 5 INTERSECT SELECT user_id FROM orders WHERE user_id = 6;

--@ error: 42601
SELECT id, name FROM users UNION SELECT id FROM orders;
--@ error: 42804
SELECT id FROM users UNION SELECT placed FROM orders;

--@ params: 3, 14
SELECT id FROM users WHERE id = $1 UNION ALL SELECT user_id FROM orders WHERE user_id = $2;
--@ params: 14
SELECT id, row_number() OVER (ORDER BY id) FROM orders WHERE user_id = $1;
