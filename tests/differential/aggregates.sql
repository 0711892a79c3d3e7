--@ include: schema.sql
--@ read only
-- Aggregates: whole table, grouped, of every type, over nothing.

SELECT count(*), count(score), count(DISTINCT country), min(id), max(id) FROM users;
SELECT sum(id), avg(id), min(score), max(score), sum(score), avg(score) FROM users;
SELECT count(*) + 1, 1 + count(*), -count(*), count(*) * 2.5 FROM users;
SELECT coalesce(sum(score), 0), coalesce(sum(score) FILTER (WHERE id > 1000), 0) FROM users;
SELECT max(id) - min(id), max(score) / count(*), round(avg(score), 3) FROM users;
SELECT sum(total) / count(DISTINCT user_id) FROM orders;
SELECT avg(qty), sum(qty), avg(line), sum(line), sum(order_id), avg(price), variance(qty), stddev(price) FROM items;
SELECT sum(ms::bigint), avg(ms::bigint), sum(ms::smallint), avg(ms::smallint) FROM clicks;
--@ float: 1e-12
SELECT sum(value), avg(value), min(value), max(value), stddev(value), var_pop(value) FROM events;
--@ float: 1e-6
SELECT sum(weight), avg(weight) FROM products;
--@ float: 1e-12
SELECT corr(value, id), regr_slope(value, id), covar_pop(value, amount) FROM events;
SELECT sum(took), avg(took), min(took), max(took) FROM events;
SELECT sum(amount), avg(amount), min(amount), max(amount), stddev_samp(amount) FROM events;
SELECT min(kind), max(kind), min(ip), max(ip) FROM events;
SELECT min(placed), max(placed), min(status), max(note) FROM orders;
SELECT min(created), max(born), min(country), max(tags) FROM users;
SELECT bool_and(active), bool_or(active), every(id > 0) FROM users;
SELECT bit_and(id), bit_or(id), bit_xor(id) FROM users;
SELECT string_agg(name, ',' ORDER BY id), array_agg(id ORDER BY id DESC) FROM users WHERE id < 15;
SELECT string_agg(DISTINCT country, '/' ORDER BY country) FROM users;
SELECT country, array_agg(id ORDER BY id) FROM users GROUP BY country;
SELECT array_agg(DISTINCT user_id ORDER BY user_id) FROM clicks WHERE user_id < 20;
SELECT json_agg(id ORDER BY id), jsonb_agg(name ORDER BY id), jsonb_object_agg(id, active) FROM users WHERE id < 6;
SELECT count(DISTINCT user_id), count(DISTINCT status), count(DISTINCT placed), sum(DISTINCT total), avg(DISTINCT total) FROM orders;
SELECT status, count(DISTINCT user_id), count(*) FROM orders GROUP BY status;
SELECT user_id, count(DISTINCT status) FROM orders GROUP BY user_id;
SELECT count(DISTINCT (country, active)) FROM users;
SELECT mode() WITHIN GROUP (ORDER BY status), percentile_disc(0.5) WITHIN GROUP (ORDER BY total) FROM orders;
SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total::float8) FROM orders GROUP BY status;
SELECT rank(100) WITHIN GROUP (ORDER BY total), dense_rank('sent') WITHIN GROUP (ORDER BY status) FROM orders;
SELECT count(*) FILTER (WHERE id = 5), count(*) FILTER (WHERE active), sum(score) FILTER (WHERE country = 'de') FROM users;
SELECT country, count(*) FILTER (WHERE score > 50), avg(score) FILTER (WHERE NOT active) FROM users GROUP BY country;
SELECT sum(CASE WHEN id = 5 THEN 1 ELSE 0 END), sum(CASE WHEN active THEN score END) FROM users;

-- GROUP BY.
SELECT country, count(*) FROM users GROUP BY country;
SELECT id, count(*) FROM users GROUP BY id;
SELECT id, name, count(*) FROM users GROUP BY id;
SELECT id % 3, count(*), sum(score) FROM users GROUP BY id % 3;
SELECT id % 3 AS m, max(name) FROM users GROUP BY m;
SELECT country, active, count(*), avg(score) FROM users GROUP BY country, active;
SELECT country, active, count(*) FROM users GROUP BY 1, 2;
SELECT upper(status) || '!', count(*) + 100 FROM orders GROUP BY upper(status);
SELECT date_trunc('month', placed), count(*), sum(total) FROM orders GROUP BY 1;
SELECT extract(dow FROM placed) AS dow, avg(total) FROM orders GROUP BY dow;
SELECT user_id, sum(total) FROM orders GROUP BY user_id;
SELECT user_id IS NULL, count(*) FROM clicks GROUP BY 1;
SELECT user_id, count(*), avg(ms) FROM clicks GROUP BY user_id;
SELECT kind, count(*), min(id), max(id) FROM events GROUP BY kind;
SELECT kind = 'kind-3', count(*) FROM events GROUP BY 1;
SELECT 1 FROM users GROUP BY country;
SELECT count(*) FROM users GROUP BY country;
SELECT country FROM users GROUP BY country;
SELECT country || 'x' FROM users GROUP BY country;
SELECT DISTINCT count(*) FROM users GROUP BY country;
SELECT count(*) FROM users GROUP BY ();
SELECT CASE WHEN score > 50 THEN 'high' WHEN score IS NULL THEN 'none' ELSE 'low' END AS class, count(*) FROM users GROUP BY class;
SELECT r.name, count(*) FROM users u JOIN regions r ON r.code = u.country GROUP BY r.code;
SELECT meta->>'level', count(*), sum((meta->>'level')::int) FROM users GROUP BY meta->>'level';
SELECT tags, count(*) FROM users GROUP BY tags;

-- HAVING.
SELECT country, count(*) FROM users GROUP BY country HAVING count(*) > 9;
SELECT country FROM users GROUP BY country HAVING sum(score) > 400;
SELECT country, avg(score) FROM users GROUP BY country HAVING avg(score) > 48 AND country IS NOT NULL;
SELECT user_id FROM orders GROUP BY user_id HAVING count(*) = 4;
SELECT count(*) FROM users HAVING count(*) > 1000;
SELECT count(*) FROM users HAVING count(*) = 60;
SELECT 1 FROM users HAVING max(id) = 60;
SELECT status, max(total) FROM orders GROUP BY status HAVING max(total) > (SELECT avg(total) FROM orders);
SELECT country FROM users GROUP BY country HAVING bool_or(id = 6);

-- Over nothing.
SELECT count(*), sum(id), avg(score), min(name), array_agg(id), string_agg(name, ','), bool_and(active) FROM users WHERE id < 0;
SELECT country, count(*) FROM users WHERE id < 0 GROUP BY country;
SELECT count(*), sum(score) FROM users WHERE id = -5;
SELECT count(*), sum(score) FROM users WHERE id = 5;
SELECT country, sum(score) FROM users WHERE id = 5 GROUP BY country;
SELECT count(*) FROM users WHERE false;
SELECT sum(s) FROM (SELECT sum(id) AS s FROM users WHERE id < 0) t;

-- Grouping sets.
SELECT country, active, count(*) FROM users GROUP BY ROLLUP (country, active);
SELECT country, active, count(*), grouping(country, active) FROM users GROUP BY CUBE (country, active);
SELECT status, placed > '2021-06-01', sum(total) FROM orders GROUP BY GROUPING SETS ((1), (2), ());
SELECT user_id, status, count(*) FROM orders WHERE user_id < 10 GROUP BY GROUPING SETS ((user_id), (status), (user_id, status));
SELECT count(*), country FROM users WHERE id < 0 GROUP BY GROUPING SETS ((country), ());

-- Aggregates of aggregates, and beside subqueries.
SELECT avg(n), max(n) FROM (SELECT count(*) AS n FROM orders GROUP BY user_id) t;
SELECT max(total) FROM (SELECT user_id, sum(total) AS total FROM orders GROUP BY user_id) t;
SELECT status, avg(n) FROM (SELECT status, user_id, count(*) AS n FROM orders GROUP BY status, user_id) t GROUP BY status;
SELECT count(*) FROM (SELECT DISTINCT country FROM users) t;
SELECT count(*) FROM (SELECT id FROM users ORDER BY score NULLS LAST, id LIMIT 10) t;
SELECT sum(id) FROM (SELECT id FROM users ORDER BY id LIMIT 10 OFFSET 5) t;
SELECT count(*), (SELECT count(*) FROM orders) FROM users;
SELECT sum(u.score + o.total) FROM users u JOIN orders o ON o.user_id = u.id;
SELECT u.country, sum(o.total), count(DISTINCT u.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.country;
SELECT count(*) FROM products;
SELECT discontinued, count(*), avg(price) FROM products GROUP BY discontinued;
SELECT stars, count(*) FROM local_notes GROUP BY stars;
SELECT (count(*))::text || ' users', now() - now() FROM users;
SELECT abs(min(id) - max(id)), sqrt(sum(id))::int, to_char(sum(score), '999999.99') FROM users;
SELECT sum(sum(total)) OVER (), status FROM orders GROUP BY status;
SELECT any_total IS NOT NULL FROM (SELECT max(total) AS any_total FROM orders) t;

--@ error: 42803
SELECT country, count(*) FROM users;
--@ error: 42803
SELECT count(*) FROM users WHERE count(*) > 1;
--@ error: 42803
SELECT sum(count(*)) FROM users;
--@ error: 22003
SELECT sum(id)::smallint + 32767::smallint FROM users;

--@ params: 30
--@ params: 0
SELECT count(*), sum(score), avg(score) FROM users WHERE id < $1;
--@ params: 2, 5
SELECT id % $1::int, count(*) FROM users GROUP BY 1 HAVING count(*) > $2;
--@ params: 3
SELECT country, count(*) + $1::int FROM users GROUP BY country;

-- An outer join that keeps a reference table's rows, aggregated by the workers.
SELECT r.code, count(u.id), sum(u.score), min(u.born), max(u.name) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code ORDER BY 1;
SELECT r.code, r.name, r.tax, count(u.id), avg(u.score) FROM regions r LEFT JOIN users u ON u.country = r.code AND u.active GROUP BY r.code ORDER BY 4 DESC, 1;
SELECT r.name || ' ' || r.code AS label, count(DISTINCT u.name), count(u.id) FILTER (WHERE u.score > 50) FROM users u RIGHT JOIN regions r ON u.country = r.code WHERE r.tax > 10 GROUP BY r.code HAVING count(u.id) >= 0 ORDER BY r.name;
SELECT count(u.id), sum(u.score), bool_or(u.active) FROM regions r LEFT JOIN users u ON u.country = r.code WHERE r.code = 'xx';
SELECT p.id, count(i.qty), sum(i.qty) FROM products p LEFT JOIN items i ON i.product_id = p.id AND i.qty > 2 GROUP BY p.id ORDER BY 1;
SELECT p.name, p.price, count(i.user_id) AS sold FROM products p LEFT JOIN items i ON i.product_id = p.id GROUP BY p.id ORDER BY sold DESC, p.name LIMIT 5;
SELECT c, count(*) FROM (SELECT r.code, count(u.id) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code) AS s (code, c) GROUP BY c ORDER BY 2 DESC, 1;
SELECT r.code, count(o.id) FROM regions r LEFT JOIN (users u JOIN orders o ON o.user_id = u.id) ON u.country = r.code GROUP BY r.code ORDER BY 1;
SELECT r.code, count(*), count(u.id), count(coalesce(u.id, 0)), sum(r.tax) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code ORDER BY 1;
SELECT r.code, u.active, count(u.id) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code, u.active ORDER BY 1, 2;
SELECT r.code, count(u.id) FROM regions r LEFT JOIN users u ON u.country = r.code WHERE u.id IS NULL OR u.id > 30 GROUP BY r.code ORDER BY 1;
SELECT r.code, r.name, p.id, count(i.qty) FROM regions r CROSS JOIN products p LEFT JOIN items i ON i.product_id = p.id GROUP BY r.code, p.id ORDER BY 1, 3 LIMIT 20;
--@ error: 42803
SELECT u.country, r.name, count(*) FROM users u JOIN regions r ON r.code = u.country GROUP BY u.country;
SELECT r.name, r.tax + 1, count(*) FROM users u JOIN regions r ON r.code = u.country GROUP BY r.code ORDER BY count(*) DESC, r.name;
SELECT r, count(u.id) FROM regions r LEFT JOIN users u ON u.country = r.code GROUP BY r.code ORDER BY r.code;

-- Aggregates that stand in a subquery and are over the rows of the query around it.
SELECT (SELECT max(u.score)) FROM users u;
SELECT (SELECT max(u.score) FROM regions WHERE code = 'de') FROM users u;
SELECT (SELECT max((SELECT count(*) FROM orders o WHERE o.user_id = u.id))) FROM users u;
SELECT (SELECT max((SELECT o.id FROM orders o WHERE o.user_id = u.id ORDER BY o.id LIMIT 1)) FILTER (WHERE u.id < 10)) FROM users u;
SELECT u.country, (SELECT sum(u.score)) FROM users u GROUP BY u.country ORDER BY 1;
SELECT 1 FROM users u HAVING (SELECT max(u.id)) > 3;
SELECT 1 FROM users u HAVING EXISTS (SELECT FROM regions r WHERE max(u.id) > 3 AND r.code = 'de');
SELECT (SELECT count(u.id) FILTER (WHERE u.id > 5)), (SELECT (SELECT min(u.id))) FROM users u;
SELECT (SELECT string_agg(u.name, ',' ORDER BY u.id)) FROM users u WHERE u.id < 6;
SELECT (SELECT max(u.id + o.id) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id < 5;
SELECT (SELECT max(id)) FROM users;
SELECT (SELECT count(*) FROM orders WHERE user_id = id) FROM users WHERE id < 4;
SELECT u.id FROM users u WHERE u.id = (SELECT max(o.user_id) FROM orders o WHERE o.user_id <= u.id) ORDER BY 1;
SELECT u.id, (SELECT grouping(u.id)) FROM users u WHERE u.id < 4 GROUP BY u.id ORDER BY 1;
--@ error: 42803
SELECT u.id, (SELECT max(u.score)) FROM users u;
--@ error: 42803
SELECT u.id FROM users u WHERE (SELECT max(u.score)) > 3;
SELECT count(*) FROM (SELECT (SELECT max(u.score)) AS m FROM users u) s;
INSERT INTO local_notes (user_id) SELECT (SELECT max(u.id)) FROM users u;
SELECT max(user_id), count(*) FROM local_notes;
