--@ include: schema.sql
--@ read only
-- ORDER BY, LIMIT, OFFSET, FETCH, DISTINCT, DISTINCT ON and the sorting of text.

--@ ordered
SELECT id FROM users ORDER BY id;
--@ ordered
SELECT id FROM users ORDER BY id DESC LIMIT 5;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 2;
--@ ordered
SELECT id FROM users ORDER BY id OFFSET 55;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 5 OFFSET 10;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 0;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT NULL OFFSET NULL;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT ALL;
--@ ordered
SELECT id FROM users ORDER BY id LIMIT (SELECT 3);
--@ ordered
SELECT id FROM users ORDER BY id LIMIT 1 + 2 OFFSET 2 * 2;
--@ ordered
SELECT id FROM users ORDER BY id FETCH FIRST 3 ROWS ONLY;
--@ ordered
SELECT id FROM users ORDER BY id OFFSET 3 ROWS FETCH NEXT ROW ONLY;
SELECT active FROM users ORDER BY active FETCH FIRST 3 ROWS WITH TIES;
--@ ordered
SELECT score, id FROM users ORDER BY score, id;
--@ ordered
SELECT score, id FROM users ORDER BY score DESC, id DESC;
--@ ordered
SELECT score, id FROM users ORDER BY score NULLS FIRST, id LIMIT 12;
--@ ordered
SELECT score, id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 12;
--@ ordered
SELECT id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 12;
--@ ordered
SELECT id FROM users ORDER BY country NULLS FIRST, born DESC;
--@ ordered
SELECT name FROM users ORDER BY id LIMIT 7;
--@ ordered
SELECT name AS id, id AS name FROM users ORDER BY name LIMIT 7;
--@ ordered
SELECT id, name FROM users ORDER BY 2 NULLS FIRST, 1 DESC LIMIT 15;
--@ ordered
SELECT id FROM users ORDER BY id % 7, id / 7;
--@ ordered
SELECT id, -id AS minus FROM users ORDER BY minus LIMIT 4;
--@ ordered
SELECT id FROM users ORDER BY id USING > LIMIT 4;
--@ ordered
SELECT id FROM users WHERE id = 5 ORDER BY name LIMIT 10;
--@ ordered
SELECT id FROM users WHERE id IN (40, 5, 17) ORDER BY id DESC;
--@ ordered
SELECT user_id, id, total FROM orders ORDER BY total DESC NULLS LAST, id LIMIT 10;
--@ ordered
SELECT placed, user_id, id FROM orders ORDER BY placed DESC, user_id, id LIMIT 8 OFFSET 3;
--@ ordered
SELECT took, id FROM events ORDER BY took DESC, id LIMIT 9;
--@ ordered
SELECT ip, id FROM events ORDER BY ip, id LIMIT 9;
--@ ordered
SELECT value, id FROM events ORDER BY value DESC LIMIT 4;
--@ ordered
SELECT kind, id FROM events ORDER BY kind NULLS FIRST, id;
--@ ordered
SELECT kind, id FROM events ORDER BY kind COLLATE "C" DESC, id LIMIT 20;
--@ ordered
SELECT created, id FROM users ORDER BY created DESC LIMIT 3;
--@ ordered
SELECT tags, id FROM users ORDER BY tags, id LIMIT 9;
--@ ordered
SELECT meta, id FROM users ORDER BY meta, id LIMIT 9;
--@ ordered
SELECT active, id FROM users ORDER BY active, id LIMIT 9;
--@ ordered
SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id ORDER BY o.placed, o.id LIMIT 5;
--@ ordered
SELECT u.id, r.name FROM users u LEFT JOIN regions r ON r.code = u.country ORDER BY r.name NULLS LAST, u.id LIMIT 20;
--@ ordered
SELECT * FROM orders ORDER BY user_id DESC, id LIMIT 3;
--@ ordered
SELECT orders.*, total * 2 AS twice FROM orders ORDER BY twice DESC NULLS LAST, id LIMIT 3;

-- Groups.
--@ ordered
SELECT country, count(*) FROM users GROUP BY country ORDER BY count(*) DESC, country LIMIT 3;
--@ ordered
SELECT country, sum(score) AS s FROM users GROUP BY country ORDER BY s DESC NULLS LAST LIMIT 2;
--@ ordered
SELECT country FROM users GROUP BY country ORDER BY avg(score) LIMIT 3;
--@ ordered
SELECT user_id, sum(total) FROM orders GROUP BY user_id ORDER BY sum(total) DESC NULLS LAST, user_id LIMIT 5;
--@ ordered
SELECT user_id, sum(total) FROM orders GROUP BY user_id ORDER BY user_id OFFSET 40;
--@ ordered
SELECT id % 5 AS m, count(*), max(score) FROM users GROUP BY m HAVING count(*) > 3 ORDER BY m DESC;
--@ ordered
SELECT count(*) AS n, country FROM users GROUP BY country ORDER BY n, country NULLS FIRST;

-- LIMIT without an order: only how many.
SELECT count(*) FROM (SELECT 1 FROM users LIMIT 2) t;
SELECT count(*) FROM (SELECT * FROM users LIMIT 17 OFFSET 50) t;
SELECT count(*) FROM (SELECT * FROM orders LIMIT 1000) t;

-- DISTINCT.
SELECT DISTINCT country FROM users;
SELECT DISTINCT active, country FROM users;
SELECT DISTINCT user_id FROM clicks;
SELECT DISTINCT user_id, url FROM clicks WHERE user_id < 10;
SELECT DISTINCT * FROM clicks WHERE ms < 60;
SELECT DISTINCT id % 4 FROM users;
--@ ordered
SELECT DISTINCT status FROM orders ORDER BY status;
--@ ordered
SELECT DISTINCT status FROM orders ORDER BY status DESC LIMIT 2;
--@ ordered
SELECT DISTINCT country, active FROM users ORDER BY active, country NULLS FIRST;
SELECT count(*) FROM (SELECT DISTINCT url FROM clicks LIMIT 4) t;
--@ ordered
SELECT DISTINCT ON (country) country, id, name FROM users ORDER BY country, id DESC;
--@ ordered
SELECT DISTINCT ON (user_id) user_id, id, total FROM orders ORDER BY user_id, total DESC NULLS LAST, id;
--@ ordered
SELECT DISTINCT ON (status) status, user_id, id FROM orders ORDER BY status, placed, id LIMIT 3;
--@ ordered
SELECT DISTINCT ON (id % 3) id % 3, id FROM users ORDER BY id % 3, id DESC;
--@ ordered
SELECT DISTINCT ON (country) name, id FROM users ORDER BY country NULLS FIRST, id OFFSET 1;

-- Text under collations. The tables are made here without a place, so they are spelt as values.
--@ ordered
SELECT name FROM users WHERE name IS NOT NULL ORDER BY name COLLATE "C", id;
--@ ordered
SELECT kind || CASE WHEN id % 2 = 0 THEN 'a' ELSE 'B' END AS t, id FROM events ORDER BY kind || CASE WHEN id % 2 = 0 THEN 'a' ELSE 'B' END COLLATE "en-x-icu", id LIMIT 40;
--@ ordered
SELECT kind || CASE WHEN id % 2 = 0 THEN 'a' ELSE 'B' END AS t, id FROM events ORDER BY kind || CASE WHEN id % 2 = 0 THEN 'a' ELSE 'B' END COLLATE "C", id LIMIT 40;
SELECT max(n COLLATE "en-x-icu"), min(n COLLATE "en-x-icu"), max(n COLLATE "C") FROM (SELECT CASE WHEN id % 2 = 0 THEN 'b' ELSE 'A' END || id AS n FROM users) t;

--@ error: 42P10
SELECT DISTINCT country FROM users ORDER BY id;
--@ error: 42P10
SELECT id FROM users ORDER BY 3;
--@ error: 2201W
SELECT id FROM users ORDER BY id LIMIT -1;
--@ error: 2201X
SELECT id FROM users ORDER BY id OFFSET -1;

--@ ordered
--@ params: 3
--@ params: 0
--@ params: NULL
SELECT id FROM users ORDER BY id LIMIT $1;
--@ ordered
--@ params: 3, 57
SELECT id FROM users ORDER BY id LIMIT $1 OFFSET $2;
--@ ordered
--@ params: 2
SELECT id FROM users ORDER BY id % $1::int, id LIMIT 7;
--@ error: 2201W
--@ params: -3
SELECT id FROM users ORDER BY id LIMIT $1;
