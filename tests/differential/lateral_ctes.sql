--@ include: schema.sql
-- LATERAL, recursive and modifying CTEs, VALUES and set-returning functions.

CREATE TABLE nodes (id int PRIMARY KEY, parent int, label text);
CREATE TABLE edges (a int, b int, w int);
CREATE TABLE kept (id int, note text);
--@ cluster: SELECT create_distributed_table('nodes', 'id'), create_distributed_table('edges', 'a'), create_distributed_table('kept', 'id')
INSERT INTO nodes SELECT g, nullif(g / 2, 0), 'n' || g FROM generate_series(1, 40) g;
INSERT INTO edges SELECT g, 1 + g * 7 % 20, g % 5 FROM generate_series(1, 20) g;

-- LATERAL.
SELECT u.id, o.id, o.total FROM users u CROSS JOIN LATERAL (SELECT * FROM orders o WHERE o.user_id = u.id ORDER BY o.placed DESC, o.id LIMIT 2) o;
SELECT u.id, o.n FROM users u LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders o WHERE o.user_id = u.id) o ON true;
SELECT u.id, o.n FROM users u LEFT JOIN LATERAL (SELECT sum(total) AS n FROM orders o WHERE o.user_id = u.id HAVING count(*) > 2) o ON true;
SELECT u.id, o.* FROM users u, LATERAL (SELECT max(total), min(placed) FROM orders WHERE user_id = u.id) o WHERE u.id < 20;
SELECT u.id, o.* FROM users u, LATERAL (SELECT max(total), min(placed) FROM orders WHERE user_id = u.id) o WHERE u.id = 14;
SELECT u.id, f.id FROM users u CROSS JOIN LATERAL (SELECT * FROM friends f WHERE f.a = u.id ORDER BY f.id LIMIT 1) f;
SELECT u.id, f.id FROM users u LEFT JOIN LATERAL (SELECT * FROM friends f WHERE f.b = u.id AND f.id % 2 = 0 ORDER BY f.id DESC LIMIT 1) f ON f.a > 5;
SELECT r.code, u.id FROM regions r CROSS JOIN LATERAL (SELECT id FROM users u WHERE u.country = r.code ORDER BY score DESC NULLS LAST, id LIMIT 2) u;
SELECT r.code, u.n FROM regions r LEFT JOIN LATERAL (SELECT count(*) AS n, max(id) FROM users u WHERE u.country = r.code) u ON true;
SELECT n.id, u.name FROM local_notes n LEFT JOIN LATERAL (SELECT name FROM users u WHERE u.id = n.user_id) u ON true;
SELECT u.id, t FROM users u, LATERAL unnest(u.tags) t WHERE u.id < 15;
SELECT u.id, t, n FROM users u LEFT JOIN LATERAL unnest(u.tags) WITH ORDINALITY AS x (t, n) ON true WHERE u.id < 15;
SELECT u.id, g FROM users u, generate_series(1, (u.id % 3)::int) g WHERE u.id < 12;
SELECT u.id, k, v FROM users u, LATERAL jsonb_each_text(u.meta) AS j (k, v) WHERE u.id < 12;
SELECT t, count(*) FROM users u, LATERAL unnest(u.tags) t GROUP BY t;
SELECT u.id, x.big FROM users u, LATERAL (SELECT u.score > 50 AS big) x WHERE x.big;
SELECT u.id, x.d FROM users u JOIN LATERAL (SELECT u.score * 2 AS d) x ON x.d > 150;
SELECT u.id, v.y FROM users u, LATERAL (VALUES (u.id * 2), (u.id * 3)) v (y) WHERE u.id < 6;
SELECT o.user_id, o.id, i.s FROM orders o, LATERAL (SELECT sum(qty * price) AS s FROM items i WHERE i.user_id = o.user_id AND i.order_id = o.id) i WHERE i.s > o.total;
SELECT o.user_id, o.id, i.s FROM orders o, LATERAL (SELECT sum(qty * price) AS s FROM items i WHERE i.order_id = o.id) i WHERE i.s > o.total;
SELECT a.id, b.id, c.n FROM users a, LATERAL (SELECT * FROM friends f WHERE f.a = a.id) b, LATERAL (SELECT count(*) AS n FROM orders o WHERE o.user_id = b.b) c WHERE a.id < 12;
SELECT count(*) FROM users u, LATERAL (SELECT * FROM orders o WHERE o.user_id = u.id UNION ALL SELECT * FROM orders o WHERE o.user_id = u.id + 1) x;
SELECT u.id, (SELECT string_agg(x.s, ',' ORDER BY x.s) FROM (SELECT DISTINCT o.status AS s FROM orders o WHERE o.user_id = u.id) x) FROM users u WHERE u.id < 20;
SELECT u.id, (SELECT count(*) FROM friends f WHERE f.a = u.id AND EXISTS (SELECT 1 FROM orders o WHERE o.user_id = f.b)) FROM users u WHERE u.id < 20;
SELECT u.id, ARRAY(SELECT o.id FROM orders o WHERE o.user_id = u.id ORDER BY o.id) FROM users u WHERE u.id < 10;
SELECT u.id, ROW((SELECT count(*) FROM orders o WHERE o.user_id = u.id), 1) FROM users u WHERE u.id < 5;
--@ error: 42P01
SELECT u.id FROM users u, (SELECT * FROM orders o WHERE o.user_id = u.id) x;

-- Recursive.
WITH RECURSIVE t AS (SELECT id, parent, 1 AS depth FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, n.parent, t.depth + 1 FROM nodes n JOIN t ON n.parent = t.id) SELECT * FROM t;
WITH RECURSIVE t AS (SELECT id, parent FROM nodes WHERE id = 37 UNION ALL SELECT n.id, n.parent FROM nodes n JOIN t ON n.id = t.parent) SELECT id FROM t;
WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 20) SELECT sum(n) FROM t;
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 60) SELECT t.n, u.name FROM t LEFT JOIN users u ON u.id = t.n WHERE t.n > 50;
WITH RECURSIVE reach AS (SELECT 1 AS at UNION SELECT e.b FROM edges e JOIN reach r ON e.a = r.at) SELECT at FROM reach;
WITH RECURSIVE reach AS (SELECT a AS s, b AS at FROM edges UNION SELECT r.s, e.b FROM reach r JOIN edges e ON e.a = r.at) SELECT s, count(*) FROM reach GROUP BY s;
WITH RECURSIVE path AS (SELECT a, b, ARRAY[a, b] AS seen, w FROM edges WHERE a = 3 UNION ALL SELECT p.a, e.b, p.seen || e.b, p.w + e.w FROM path p JOIN edges e ON e.a = p.b WHERE e.b <> ALL (p.seen)) SELECT b, w, seen FROM path;
WITH RECURSIVE sub AS (SELECT id FROM nodes WHERE id = 5 UNION ALL SELECT n.id FROM nodes n, sub s WHERE n.parent = s.id) SELECT count(*), max(id), sum(id) FROM sub;
WITH RECURSIVE up AS (SELECT id, parent, label FROM nodes WHERE id IN (33, 22) UNION ALL SELECT n.id, n.parent, n.label FROM up JOIN nodes n ON n.id = up.parent) SELECT label, count(*) FROM up GROUP BY label;
WITH RECURSIVE t AS (SELECT id, parent, label::text AS path FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, n.parent, t.path || '/' || n.label FROM nodes n JOIN t ON n.parent = t.id WHERE n.id < 12) SELECT path FROM t ORDER BY path;
WITH RECURSIVE t AS (SELECT id, parent FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, n.parent FROM nodes n JOIN t ON n.parent = t.id) SEARCH DEPTH FIRST BY id SET o SELECT id FROM t ORDER BY o LIMIT 9;
WITH RECURSIVE t AS (SELECT id, parent FROM nodes WHERE parent IS NULL UNION ALL SELECT n.id, n.parent FROM nodes n JOIN t ON n.parent = t.id) SEARCH BREADTH FIRST BY id SET o SELECT id FROM t ORDER BY o LIMIT 9;
WITH RECURSIVE g AS (SELECT a, b FROM edges WHERE a = 2 UNION ALL SELECT e.a, e.b FROM g JOIN edges e ON e.a = g.b) CYCLE b SET looped USING way SELECT a, b, looped FROM g;
WITH RECURSIVE t AS (SELECT id FROM nodes WHERE id = 1 UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id), o AS (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) SELECT t.id, o.n FROM t LEFT JOIN o ON o.user_id = t.id;
WITH RECURSIVE t AS (SELECT id, 0 AS d FROM users WHERE id = 3 UNION SELECT f.b, d + 1 FROM t JOIN friends f ON f.a = t.id WHERE d < 4) SELECT count(*), max(d) FROM t;
SELECT id FROM nodes WHERE id IN (WITH RECURSIVE t AS (SELECT 4 AS id UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id) SELECT id FROM t);
SELECT u.id, (WITH RECURSIVE t (n) AS (SELECT u.id UNION ALL SELECT n - 1 FROM t WHERE n > 1) SELECT sum(n) FROM t) FROM users u WHERE u.id < 6;
WITH RECURSIVE t AS (SELECT code FROM regions WHERE code = 'de' UNION SELECT r.code FROM regions r, t WHERE r.code > t.code) SELECT code FROM t;
WITH RECURSIVE t AS (SELECT id, user_id FROM local_notes WHERE id = 1 UNION ALL SELECT n.id, n.user_id FROM local_notes n JOIN t ON n.id = t.id * 2) SELECT t.id, u.name FROM t LEFT JOIN users u ON u.id = t.user_id;
--@ params: 6
--@ params: 9
WITH RECURSIVE t AS (SELECT id FROM nodes WHERE id = $1::int UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id) SELECT id FROM t;
--@ error: 42P19
WITH RECURSIVE t AS (SELECT id FROM nodes UNION ALL SELECT count(*)::int FROM t) SELECT * FROM t;

-- CTEs that are read once, twice, never, materialized or not.
WITH a AS MATERIALIZED (SELECT * FROM users WHERE active) SELECT count(*) FROM a WHERE id = 5;
WITH a AS NOT MATERIALIZED (SELECT * FROM users WHERE active) SELECT name FROM a WHERE id = 5;
WITH a AS (SELECT country, count(*) AS n FROM users GROUP BY country) SELECT a.country, b.n FROM a JOIN a b ON a.n = b.n;
WITH a AS (SELECT 1 / (id - id) FROM users) SELECT count(*) FROM orders;
WITH a (x, y) AS (SELECT id, score FROM users), b AS (SELECT x FROM a WHERE y > 50), c AS (SELECT user_id, sum(total) AS s FROM orders GROUP BY 1) SELECT b.x, c.s FROM b LEFT JOIN c ON c.user_id = b.x;
WITH a AS (SELECT id FROM users ORDER BY score DESC NULLS LAST, id LIMIT 5) SELECT o.user_id, count(*) FROM orders o JOIN a ON a.id = o.user_id GROUP BY 1;
WITH a AS (SELECT * FROM users) SELECT * FROM (WITH a AS (SELECT id FROM orders) SELECT count(*) FROM a) x, (SELECT count(*) FROM a) y;
WITH a AS (VALUES (1, 'x'), (2, 'y')) SELECT u.id, a.column2 FROM users u JOIN a ON a.column1 = u.id;
WITH a AS (SELECT id, random() AS r FROM users) SELECT count(*) FROM a x JOIN a y ON x.id = y.id AND x.r = y.r;

-- Modifying.
WITH w AS (INSERT INTO kept VALUES (1, 'a') RETURNING *) SELECT * FROM w;
WITH w AS (INSERT INTO kept VALUES (2, 'a'), (3, 'b'), (4, 'c') RETURNING id) SELECT sum(id) FROM w;
WITH w AS (DELETE FROM kept WHERE id = 1 RETURNING *) SELECT note FROM w;
WITH w AS (UPDATE kept SET note = note || '!' WHERE id = 2 RETURNING *) SELECT id, note FROM w;
WITH w AS (UPDATE kept SET note = note || '?' RETURNING *) SELECT count(*), min(note) FROM w;
WITH w AS (UPDATE kept SET note = 'gone' WHERE id = 2) SELECT note FROM kept WHERE id = 2;
SELECT * FROM kept;
WITH w AS (DELETE FROM kept WHERE id > 2 RETURNING *) SELECT w.id, u.name FROM w JOIN users u ON u.id = w.id;
SELECT * FROM kept;
WITH w AS (SELECT id FROM users WHERE id BETWEEN 10 AND 15) INSERT INTO kept SELECT id::int, 'from cte' FROM w;
SELECT * FROM kept;
WITH w AS (SELECT id FROM users WHERE id BETWEEN 10 AND 12) UPDATE kept SET note = 'cte' FROM w WHERE w.id = kept.id;
WITH w AS (SELECT id FROM users WHERE id = 13) DELETE FROM kept USING w WHERE w.id = kept.id RETURNING kept.*;
SELECT * FROM kept;
WITH moved AS (DELETE FROM kept WHERE id = 14 RETURNING *) INSERT INTO kept SELECT id, note || ' moved' FROM moved;
WITH moved AS (DELETE FROM kept WHERE id >= 12 RETURNING *) INSERT INTO kept SELECT id + 100, note || ' moved' FROM moved RETURNING *;
SELECT * FROM kept;
WITH t AS (INSERT INTO local_notes (user_id, body) VALUES (7, 'cte') RETURNING user_id) SELECT u.name FROM users u JOIN t ON t.user_id = u.id;
WITH t AS (DELETE FROM local_notes WHERE body = 'cte' RETURNING user_id, body) INSERT INTO kept SELECT user_id, body FROM t;
WITH a AS (UPDATE kept SET note = 'a' WHERE id = 10 RETURNING 1), b AS (UPDATE kept SET note = 'b' WHERE id = 11 RETURNING 1) SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b);
SELECT * FROM kept;
-- Several that write one table: none sees what another has done, and of a row only one change is made.
INSERT INTO kept SELECT g, 'g' || g FROM generate_series(20, 45) g;
WITH a AS (UPDATE kept SET note = note || 'a' WHERE id BETWEEN 20 AND 24 RETURNING id, note), b AS (UPDATE kept SET note = note || 'b' WHERE id BETWEEN 25 AND 29 RETURNING id, note) SELECT * FROM a UNION ALL SELECT * FROM b;
SELECT * FROM kept WHERE id BETWEEN 20 AND 29;
WITH a AS (UPDATE kept SET note = 'first' WHERE id BETWEEN 20 AND 22), b AS (UPDATE kept SET note = 'again' WHERE note = 'first') SELECT count(*) FROM kept WHERE note IN ('first', 'again');
SELECT * FROM kept WHERE id BETWEEN 20 AND 24;
WITH a AS (UPDATE kept SET note = 'both' WHERE id IN (20, 21) RETURNING id), b AS (UPDATE kept SET note = 'both' WHERE id IN (21, 22) RETURNING id) SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) x;
SELECT * FROM kept WHERE id BETWEEN 20 AND 24;
WITH a AS (DELETE FROM kept WHERE id IN (23, 24) RETURNING id), b AS (DELETE FROM kept WHERE id IN (24, 25, 26) RETURNING id) SELECT count(*) FROM (SELECT id FROM a UNION ALL SELECT id FROM b) x;
SELECT * FROM kept WHERE id BETWEEN 20 AND 30;
WITH a AS (DELETE FROM kept WHERE id BETWEEN 27 AND 28 RETURNING *), b AS (INSERT INTO kept SELECT id + 100, note FROM kept WHERE id BETWEEN 27 AND 29 RETURNING *) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM kept WHERE id BETWEEN 27 AND 129);
SELECT * FROM kept WHERE id BETWEEN 27 AND 29 OR id > 100;
WITH a AS (UPDATE kept SET note = 'old ' || note WHERE id IN (30, 31)) SELECT id, note FROM kept WHERE id BETWEEN 29 AND 32;
WITH a AS (UPDATE kept SET note = upper(note) WHERE id IN (30, 31) RETURNING id, note) SELECT k.id, k.note, a.note FROM kept k JOIN a ON a.id = k.id;
WITH a AS (DELETE FROM kept WHERE id = 30 RETURNING *) UPDATE kept k SET note = a.note FROM a WHERE k.id = a.id + 1;
SELECT * FROM kept WHERE id BETWEEN 29 AND 32;
WITH a AS (UPDATE kept SET note = 'x' WHERE id BETWEEN 31 AND 33 RETURNING id) DELETE FROM kept WHERE id BETWEEN 34 AND 35 OR note = 'x' RETURNING id;
SELECT * FROM kept WHERE id BETWEEN 30 AND 40;
WITH a AS (INSERT INTO kept VALUES (200, 'new'), (201, 'new') RETURNING id), b AS (INSERT INTO kept VALUES (202, 'newer')) UPDATE kept SET note = 'seen' WHERE note IN ('new', 'newer') RETURNING id;
WITH a AS (INSERT INTO kept VALUES (203, 'new') RETURNING id), b AS (DELETE FROM kept WHERE id IN (200, 203) RETURNING id) SELECT * FROM a UNION ALL SELECT * FROM b;
SELECT * FROM kept WHERE id >= 200;
-- With other tables, values and parameters, in blocks.
WITH a AS (UPDATE kept SET note = 'with users' FROM users u WHERE u.id = kept.id AND kept.id IN (36, 37) RETURNING kept.id), b AS (UPDATE edges SET w = w + 1 WHERE a < 4 RETURNING a, w) SELECT a.id, b.a, b.w FROM a, b;
WITH a AS (DELETE FROM edges WHERE a = 20 RETURNING a, b), b AS (UPDATE nodes SET label = 'moved' FROM a WHERE nodes.id = a.b RETURNING nodes.id), c AS (INSERT INTO kept SELECT id + 300, 'from b' FROM b RETURNING id) SELECT count(*) FROM c;
SELECT * FROM kept WHERE id > 300;
--@ params: 38, 39, p
--@ params: 39, 40, q
WITH a AS (UPDATE kept SET note = $3 WHERE id = $1::int RETURNING id), b AS (UPDATE kept SET note = $3 || '2' WHERE id = $2::int RETURNING id) SELECT (SELECT min(id) FROM a), (SELECT min(id) FROM b), (SELECT count(*) FROM kept WHERE note LIKE $3 || '%');
SELECT * FROM kept WHERE id BETWEEN 36 AND 40;
BEGIN;
INSERT INTO kept VALUES (400, 'in the block'), (401, 'in the block');
WITH a AS (UPDATE kept SET note = 'a' WHERE id = 400 RETURNING id), b AS (UPDATE kept SET note = 'b' WHERE note = 'in the block' AND id > 400 RETURNING id) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM kept WHERE note = 'in the block');
SAVEPOINT s;
WITH a AS (DELETE FROM kept WHERE id = 400 RETURNING id), b AS (DELETE FROM kept WHERE id = 401 RETURNING id) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), (SELECT count(*) FROM kept WHERE id >= 400);
--@ error: 22012
WITH a AS (DELETE FROM kept WHERE id = 41 RETURNING id), b AS (UPDATE kept SET note = (1 / (id - 42))::text WHERE id = 42 RETURNING id) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b);
ROLLBACK TO s;
WITH a AS (UPDATE kept SET note = 'after' WHERE id = 400 RETURNING id), b AS (UPDATE kept SET note = 'after' WHERE id = 401 RETURNING id) SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b);
SELECT * FROM kept WHERE id >= 400;
COMMIT;
SELECT * FROM kept WHERE id >= 400;
WITH a AS (DELETE FROM kept WHERE id >= 20 RETURNING id), b AS (SELECT max(id) AS m FROM kept) SELECT (SELECT count(*) FROM a), m FROM b;
SELECT * FROM kept;
WITH r AS (UPDATE regions SET tax = tax WHERE code = 'de' RETURNING name) SELECT * FROM r;
BEGIN;
WITH w AS (DELETE FROM nodes WHERE id > 20 RETURNING id) SELECT count(*) FROM w;
WITH RECURSIVE t AS (SELECT id FROM nodes WHERE id = 1 UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id) SELECT count(*) FROM t;
WITH RECURSIVE t AS (SELECT id FROM nodes WHERE id = 2 UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id) DELETE FROM nodes WHERE id IN (SELECT id FROM t);
SELECT id FROM nodes;
WITH RECURSIVE t AS (SELECT id FROM nodes WHERE id = 3 UNION ALL SELECT n.id FROM nodes n JOIN t ON n.parent = t.id) UPDATE nodes SET label = 'under 3' FROM t WHERE t.id = nodes.id;
SELECT label, count(*) FROM nodes GROUP BY label;
ROLLBACK;
--@ error: 0A000
SELECT * FROM (WITH w AS (DELETE FROM kept RETURNING *) SELECT * FROM w) x;

-- VALUES and functions in FROM.
VALUES (1, 'a'), (2, 'b');
VALUES (1), (3), (2) ORDER BY 1 DESC LIMIT 2;
VALUES ((SELECT count(*) FROM users)), (7);
SELECT * FROM (VALUES (1, 'x'), (5, 'y'), (NULL, 'z')) v (id, t) LEFT JOIN users u USING (id);
SELECT v.id, count(o.id) FROM (VALUES (14), (15), (999)) v (id) LEFT JOIN orders o ON o.user_id = v.id GROUP BY v.id;
SELECT u.id FROM users u WHERE (u.id, u.country) IN (VALUES (1, 'fr'), (2, 'nl'), (3, 'jp'));
SELECT u.id FROM users u WHERE u.id IN (VALUES (3), (5), (NULL));
SELECT u.id FROM users u JOIN (VALUES (3), (3)) v (x) ON v.x = u.id;
SELECT * FROM (VALUES (1), (2)) a (x) FULL JOIN (SELECT id FROM users WHERE id IN (2, 3)) b ON a.x = b.id;
TABLE kept;
SELECT g, u.name FROM generate_series(58, 63) g LEFT JOIN users u ON u.id = g;
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b'])) AS r (n, t);
SELECT generate_series(1, 3), id FROM users WHERE id < 3;
SELECT id, unnest(tags) FROM users WHERE id IN (1, 2, 4);
SELECT unnest(ARRAY[1, 2]), count(*) FROM users GROUP BY 1;
SELECT DISTINCT unnest(tags) AS t FROM users ORDER BY t;
SELECT count(*) FROM (SELECT unnest(tags) FROM users) x;
SELECT id, generate_series(1, 2) FROM users ORDER BY id, 2 LIMIT 3;
SELECT * FROM json_to_recordset('[{"id": 1, "x": "a"}, {"id": 61}]') AS j (id bigint, x text) LEFT JOIN users u USING (id);
SELECT * FROM regexp_split_to_table('5,6,7', ',') WITH ORDINALITY s (v, n) JOIN users u ON u.id = s.v::int;
