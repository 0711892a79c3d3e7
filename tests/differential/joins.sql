--@ include: schema.sql
--@ read only
-- Joins of every kind between distributed, reference and local tables.

-- Colocated.
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id;
SELECT u.id, o.id, i.line FROM users u JOIN orders o ON o.user_id = u.id JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id WHERE u.country = 'de';
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id = 14;
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE o.user_id = 14;
SELECT u.id, o.id FROM users u, orders o WHERE u.id = o.user_id AND u.id IN (13, 14);
SELECT u.name, o.id FROM users u JOIN orders o ON u.id = 14 AND o.user_id = 14;
SELECT u.name, o.id FROM users u JOIN orders o ON u.id = 13 AND o.user_id = 14;
SELECT id, total FROM users JOIN orders USING (id);
SELECT count(*) FROM orders NATURAL JOIN items;
SELECT user_id, o.id, i.line FROM orders o JOIN items i USING (user_id) WHERE o.id = i.order_id AND user_id = 9;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id > 50;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.status = 'paid';
SELECT u.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id IS NULL;
SELECT u.id, o.id FROM orders o RIGHT JOIN users u ON o.user_id = u.id WHERE u.id < 8;
SELECT u.id, c.url FROM users u FULL JOIN clicks c ON c.user_id = u.id;
SELECT u.id, c.user_id, c.url FROM users u FULL JOIN clicks c ON c.user_id = u.id WHERE u.id IS NULL OR c.user_id IS NULL;
SELECT count(*), count(u.id), count(c.user_id) FROM users u FULL JOIN clicks c ON c.user_id = u.id AND c.ms > 100;
SELECT u.id, o.user_id, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id WHERE u.id = 14;
SELECT u.id, o.user_id, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id WHERE u.id = 14 AND o.user_id = 14;
SELECT u.id, o.user_id, o.id FROM users u FULL JOIN orders o ON o.user_id = u.id AND u.id = 14 WHERE u.id < 17 OR o.user_id < 17;
SELECT u.id, o.user_id, o.id FROM users u FULL JOIN orders o ON u.id = 14 AND o.user_id = 14 AND u.id = o.user_id WHERE u.id < 17 OR o.user_id < 17;
SELECT u.id, count(*), count(c.ms), sum(c.ms) FROM users u FULL JOIN clicks c ON c.user_id = u.id AND c.ms > 100 GROUP BY u.id;
SELECT c.user_id, count(DISTINCT u.id), max(c.ms) FROM users u FULL JOIN clicks c ON c.user_id = u.id AND u.active GROUP BY c.user_id HAVING count(*) > 1;
SELECT user_id, count(*), count(o.id), count(c.ms) FROM orders o FULL JOIN clicks c USING (user_id) GROUP BY user_id;
SELECT user_id, o.id, c.ms FROM orders o FULL JOIN clicks c USING (user_id) WHERE user_id = 14;
SELECT user_id, o.id, c.ms FROM orders o FULL JOIN clicks c USING (user_id) ORDER BY user_id, o.id, c.ms, c.url, c.at LIMIT 9;
SELECT DISTINCT o.user_id FROM orders o FULL JOIN clicks c USING (user_id);
SELECT count(*), count(u.id), count(o.id), count(c.ms) FROM orders o FULL JOIN clicks c USING (user_id) FULL JOIN users u ON u.id = user_id;
SELECT count(*), count(u.id), count(o.id), count(c.ms) FROM orders o FULL JOIN clicks c ON o.user_id = c.user_id FULL JOIN users u ON u.id = o.user_id;
SELECT count(*), sum(u.id), count(c.ms) FROM orders o FULL JOIN clicks c ON o.user_id = c.user_id JOIN users u ON u.id = o.user_id;
SELECT count(*), sum(u.id), count(c.ms) FROM users u LEFT JOIN (orders o FULL JOIN clicks c ON o.user_id = c.user_id) ON u.id = o.user_id;
SELECT count(*), sum(u.id), count(c.ms) FROM users u LEFT JOIN (orders o FULL JOIN clicks c ON o.id = c.ms) ON u.id = o.user_id AND u.id = c.user_id;
SELECT count(*), count(o.id), count(c.ms) FROM orders o FULL JOIN clicks c ON o.id = c.ms WHERE o.user_id = c.user_id;
SELECT count(*), count(r.code), count(c.ms) FROM users u FULL JOIN clicks c ON u.id = c.user_id LEFT JOIN regions r ON r.code = u.country;
SELECT x.user_id, x.total, y.user_id, y.ms FROM (SELECT user_id, sum(total) AS total FROM orders GROUP BY user_id) x FULL JOIN (SELECT user_id, max(ms) AS ms FROM clicks GROUP BY user_id) y ON x.user_id = y.user_id;
SELECT x.id, y.id FROM (SELECT * FROM users WHERE id = 14 OR active) x FULL JOIN (SELECT * FROM users WHERE score > 50) y ON x.id = y.id WHERE x.id IS NULL OR y.id IS NULL;
SELECT u.id, c.ms FROM users u FULL JOIN clicks c ON c.user_id = u.id AND EXISTS (SELECT FROM orders o WHERE o.user_id = c.user_id) WHERE u.id < 20 OR u.id IS NULL;
SELECT u.id, c.ms FROM users u FULL JOIN clicks c ON c.user_id = u.id WHERE EXISTS (SELECT FROM orders o WHERE o.user_id = u.id) OR c.ms IN (SELECT ms FROM clicks WHERE ms < 200);
SELECT count(*) FROM users v WHERE EXISTS (SELECT FROM orders o FULL JOIN clicks c ON o.user_id = c.user_id WHERE o.user_id = v.id);
SELECT count(*) FROM users v WHERE EXISTS (SELECT FROM orders o FULL JOIN clicks c ON o.user_id = c.user_id WHERE o.user_id = v.id AND c.user_id = v.id);
SELECT u.id, c.user_id, count(*) OVER (PARTITION BY u.id) FROM users u FULL JOIN clicks c ON c.user_id = u.id;
SELECT s.id, count(*) FROM (SELECT u.id FROM users u FULL JOIN clicks c ON c.user_id = u.id) s GROUP BY s.id;
SELECT u.id FROM users u FULL JOIN clicks c ON c.user_id = u.id UNION ALL SELECT user_id FROM orders;
SELECT v.id, s.n FROM users v FULL JOIN clicks c ON c.user_id = v.id, LATERAL (SELECT count(*) AS n FROM orders o WHERE o.user_id = v.id) s;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id AND u.id = 14 WHERE u.id < 17;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON u.id = o.user_id AND o.user_id = 14 WHERE u.id < 17;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = 14 WHERE u.id < 4;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON false WHERE u.id < 4;
SELECT u.id, o.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id = 14 OR o.id IS NULL;
SELECT a.id, b.id FROM users a JOIN users b ON a.id = b.id AND b.active WHERE a.score > 60;
SELECT a.id, b.id FROM users a JOIN users b ON a.name = b.name AND a.id < b.id;
SELECT a.user_id, a.id, b.id FROM orders a JOIN orders b ON a.user_id = b.user_id AND a.id < b.id WHERE a.status = b.status;

-- Reference tables on either side.
SELECT u.id, r.name FROM users u JOIN regions r ON r.code = u.country WHERE u.id < 20;
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country WHERE u.id < 20;
SELECT r.code, u.id FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id < 20;
SELECT r.code, u.id FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id = 6;
SELECT r.code, count(u.id) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code;
SELECT r.code, u.id FROM users u RIGHT JOIN regions r ON u.country = r.code AND u.active AND u.id < 13;
SELECT r.code, u.country, count(*) FROM users u FULL JOIN regions r ON u.country = r.code GROUP BY 1, 2;
SELECT p.id, i.user_id FROM products p LEFT JOIN items i ON i.product_id = p.id AND i.user_id = 14;
SELECT p.id FROM products p LEFT JOIN items i ON i.product_id = p.id WHERE i.user_id IS NULL;
SELECT i.user_id, p.name FROM items i LEFT JOIN products p ON p.id = i.product_id WHERE i.user_id IN (3, 4) AND i.line = 1;
SELECT r.code, p.id FROM regions r CROSS JOIN products p WHERE p.id < 3;
SELECT r.name, sum(i.qty * p.price) FROM regions r JOIN users u ON u.country = r.code JOIN items i ON i.user_id = u.id JOIN products p ON p.id = i.product_id GROUP BY r.name;
SELECT u.id, p.id FROM users u CROSS JOIN products p WHERE u.id < 5 AND p.id = u.id;
SELECT u.id, p.id FROM users u LEFT JOIN products p ON p.id = u.id WHERE u.id BETWEEN 10 AND 18;
SELECT u.id, p.id FROM users u RIGHT JOIN products p ON p.id = u.id + 50;

-- Not on the distribution column.
SELECT u.id, f.id FROM users u JOIN friends f ON f.a = u.id;
SELECT u.id, v.id, f.since FROM users u JOIN friends f ON f.a = u.id JOIN users v ON f.b = v.id WHERE u.id < 20;
SELECT f.id, u.id FROM friends f LEFT JOIN users u ON u.id = f.a;
SELECT u.id, f.id FROM users u LEFT JOIN friends f ON f.b = u.id WHERE f.id IS NULL OR f.id > 60;
SELECT u.id, f.id FROM users u FULL JOIN friends f ON f.a = u.id AND f.b > 10 WHERE u.id IS NULL OR f.id IS NULL;
SELECT u.id, e.id FROM users u JOIN events e ON e.id = u.id WHERE e.kind = 'kind-3';
SELECT u.id, e.id FROM users u JOIN events e ON e.id = u.id AND u.name = 'user 5';
SELECT o.id, e.kind FROM orders o JOIN events e ON e.id = o.id;
SELECT u.id, f.id FROM users u JOIN friends f ON u.id = f.id WHERE u.id < 6;
SELECT u.id, e.kind FROM users u, events e WHERE u.id = 3 AND e.kind = 'kind-4' AND e.id < 50;
SELECT count(*) FROM users u CROSS JOIN friends f;
SELECT a.id, b.id FROM users a JOIN users b ON a.id = b.id + 30 WHERE b.id < 10;
SELECT a.id, b.id FROM users a JOIN users b ON a.id <= b.id AND b.id <= 4;

-- Lateral.
SELECT u.id, l.id FROM users u, LATERAL (SELECT o.id FROM orders o WHERE o.user_id = u.id) l WHERE u.id < 12;
--@ ordered
SELECT u.id, l.id FROM users u, LATERAL (SELECT o.id FROM orders o WHERE o.user_id = u.id ORDER BY o.id DESC LIMIT 1) l ORDER BY u.id;
SELECT u.id, l.id, l.n FROM users u LEFT JOIN LATERAL (SELECT o.id, count(*) OVER () AS n FROM orders o WHERE o.user_id = u.id ORDER BY o.total NULLS LAST, o.id LIMIT 2) l ON true WHERE u.id < 15;
SELECT r.code, l.id FROM regions r LEFT JOIN LATERAL (SELECT u.id FROM users u WHERE u.country = r.code ORDER BY u.id LIMIT 2) l ON true;
SELECT g, l.id FROM generate_series(1, 4) g, LATERAL (SELECT id FROM users WHERE id = g) l;
SELECT f.id, l.name FROM friends f, LATERAL (SELECT name FROM users u WHERE u.id = f.b) l WHERE f.id < 9;
SELECT u.id, t FROM users u, unnest(u.tags) t WHERE u.id < 8;
SELECT u.id, t, n FROM users u LEFT JOIN LATERAL unnest(u.tags) WITH ORDINALITY x (t, n) ON n = 1 WHERE u.id < 8;

-- With tables of the coordinator, values and functions.
SELECT u.id, n.body FROM users u JOIN local_notes n ON n.user_id = u.id;
SELECT u.id, n.body FROM users u LEFT JOIN local_notes n ON n.user_id = u.id WHERE u.id < 10;
SELECT n.id, u.name FROM local_notes n LEFT JOIN users u ON u.id = n.user_id;
SELECT n.id, u.name FROM local_notes n LEFT JOIN users u ON u.id = n.user_id AND u.id = 6;
SELECT n.id, p.name FROM local_notes n JOIN products p ON p.id = n.stars;
SELECT n.id, u.id, p.id FROM local_notes n JOIN users u ON u.id = n.user_id JOIN products p ON p.id = n.stars WHERE u.active;
SELECT v.n, u.name FROM (VALUES (1), (2), (500)) v (n) LEFT JOIN users u ON u.id = v.n;
SELECT v.n, u.name FROM (VALUES (1), (2), (500)) v (n) JOIN users u ON u.id = v.n;
SELECT g, u.id FROM generate_series(58, 63) g LEFT JOIN users u ON u.id = g;
SELECT g, u.id FROM users u RIGHT JOIN generate_series(58, 63) g ON u.id = g;
SELECT g, u.id FROM generate_series(58, 63) g FULL JOIN users u ON u.id = g WHERE u.id > 56 OR u.id IS NULL;
SELECT t.u, o.id FROM (SELECT id AS u FROM users WHERE id < 10) t LEFT JOIN orders o ON o.user_id = t.u;
SELECT ot.user_id, u.name, ot.total FROM order_totals ot JOIN users u ON u.id = ot.user_id WHERE ot.orders = 4;
SELECT c.relname FROM pg_class c JOIN products p ON c.relname = 'users' AND p.id = 1;
SELECT u.id, c.relname FROM users u JOIN pg_class c ON c.relname = 'users' AND u.id < 3;

-- Nested outer joins.
SELECT u.id, o.id, i.line FROM users u LEFT JOIN (orders o JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id AND i.line = 2) ON o.user_id = u.id WHERE u.id < 14;
SELECT r.code, u.id, o.id FROM regions r LEFT JOIN users u ON u.country = r.code AND u.id < 15 LEFT JOIN orders o ON o.user_id = u.id AND o.status = 'sent';
SELECT r.code, x.uid FROM regions r LEFT JOIN (users u JOIN orders o ON o.user_id = u.id) AS x (uid) ON x.country = r.code AND x.uid < 9;
SELECT p.id, r.code, u.id FROM products p LEFT JOIN regions r ON r.tax = p.id LEFT JOIN users u ON u.country = r.code AND u.id < 8 WHERE p.id > 8;
SELECT count(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id LEFT JOIN clicks c ON c.user_id = u.id AND c.ms < 50;

--@ params: 14
--@ params: 5
SELECT u.name, o.id, i.qty FROM users u JOIN orders o ON o.user_id = u.id JOIN items i ON i.user_id = o.user_id AND i.order_id = o.id WHERE u.id = $1;
--@ params: 'de'
SELECT count(*) FROM users u JOIN regions r ON r.code = u.country WHERE r.code = $1;
--@ params: 14
SELECT p.id, i.user_id FROM products p LEFT JOIN items i ON i.product_id = p.id AND i.user_id = $1 WHERE p.id < 5;

-- Full joins that PostgreSQL has no join for, unless what is around them leaves out the rows of one side.
SELECT u.id FROM users u WHERE u.id IN (SELECT c.ms FROM regions r FULL JOIN clicks c ON 3 = c.ms % 7 JOIN friends f ON f.a = c.ms);
SELECT u.id FROM users u WHERE u.id IN (SELECT f.b FROM regions r FULL JOIN clicks c ON 3 = c.ms % 7 LEFT JOIN friends f ON f.a = c.ms);
SELECT u.id FROM users u WHERE u.id IN (SELECT c.user_id FROM clicks c FULL JOIN friends f ON (SELECT (count(*) % 5)::int FROM users) = f.b % 5 JOIN users v ON v.id = f.b);
SELECT count(*) FROM users u JOIN (SELECT c.user_id AS k, f.b FROM clicks c FULL JOIN friends f ON c.ms < f.b) s ON s.k = u.id;
SELECT count(*) FROM (SELECT c.user_id AS k, f.b FROM clicks c FULL JOIN friends f ON c.ms < f.b) s, regions r WHERE s.k > 3;
WITH s AS (SELECT c.user_id AS k, f.b FROM clicks c FULL JOIN friends f ON c.ms < f.b) SELECT count(*), sum(b) FROM s JOIN users u ON u.id = s.b;
SELECT count(*) FROM users u LEFT JOIN (SELECT c.user_id AS k, f.b FROM clicks c FULL JOIN friends f ON c.ms % 3 = f.b % 3 AND c.ms < f.b) s ON s.k = u.id;
SELECT count(*) FROM users u WHERE EXISTS (SELECT FROM clicks c FULL JOIN friends f ON c.ms < f.b WHERE c.user_id = u.id);
SELECT count(*) FROM users u JOIN (SELECT c.user_id AS k, f.b FROM clicks c FULL JOIN friends f ON true) s ON s.k = u.id AND s.b < 5;
--@ error: 0A000
SELECT count(*) FROM users u WHERE u.id IN (SELECT f.b FROM clicks c FULL JOIN friends f ON c.ms < f.b AND c.ms % 3 > 1) OR u.id = 3;
--@ error: 0A000
SELECT count(*) FROM clicks c FULL JOIN friends f ON c.ms < f.b;
