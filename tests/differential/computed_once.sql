--@ include: schema.sql
-- Subqueries that are computed once and sent to foreign scans: they see the session's search path and styles, and are
-- computed where PostgreSQL would.

CREATE FUNCTION orders_of(u bigint) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM orders WHERE user_id = u $$;
CREATE FUNCTION note_of(u bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT max(body) FROM local_notes n WHERE n.user_id = u); END $$;
CREATE FUNCTION never(why text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RAISE EXCEPTION 'never: %', why; END $$;
CREATE FUNCTION shown_path() RETURNS text LANGUAGE sql STABLE AS $$ SELECT current_setting('search_path') $$;

-- As a condition.
SELECT id, name FROM users WHERE id = (SELECT orders_of(14));
SELECT id, name FROM users WHERE (SELECT orders_of(14)) = id AND active;
SELECT count(*) FROM users WHERE id <> (SELECT orders_of(14)) + 1 AND id > (SELECT orders_of(3));
SELECT id FROM users WHERE id BETWEEN (SELECT orders_of(1)) AND (SELECT orders_of(4)) + 1;
SELECT id FROM users WHERE NOT id > (SELECT orders_of(4));
SELECT u.id FROM users u JOIN local_notes n ON n.user_id = u.id AND u.id <> (SELECT orders_of(9)) WHERE n.stars > 2;
SELECT count(*) FROM users u JOIN local_notes r ON u.id <> (SELECT count(orders_of(n.user_id)) FROM local_notes n);
SELECT id FROM users WHERE id = (SELECT max(orders_of(f.a)) FROM friends f WHERE f.id < 9);
SELECT id FROM users WHERE id = (SELECT orders_of(user_id) FROM local_notes WHERE id = 1);
SELECT user_id, id FROM orders WHERE note = 'second of ' || (SELECT orders_of(14) * 3);
SELECT user_id, id FROM orders WHERE user_id = (SELECT user_id FROM local_notes WHERE body = (SELECT note_of(12)));
SELECT count(*) FROM clicks WHERE url LIKE '%' || (SELECT orders_of(14)) || '%';
SELECT id FROM users WHERE name = (SELECT shown_path());
SELECT id FROM users WHERE id = (SELECT length(shown_path()));
SELECT kind, id FROM events WHERE kind = (SELECT 'kind-' || orders_of(14)) AND id < 60;
SELECT id FROM users WHERE id = (SELECT orders_of(14) WHERE false);
SELECT id FROM users WHERE (SELECT orders_of(14) WHERE false) IS NULL AND id < 3;
SELECT id FROM users WHERE (SELECT orders_of(14)) = 4 AND id < 3;
--@ params: 14
SELECT id FROM users WHERE id = (SELECT orders_of($1));
--@ params: 14, 2
SELECT id FROM users WHERE id = (SELECT orders_of($1)) + $2 OR id = $2;
--@ error: 21000
SELECT id FROM users WHERE id = (SELECT orders_of(a) FROM friends);
--@ error: P0001
SELECT id FROM users WHERE id = (SELECT never('asked'));

--@ error: 42703
SELECT id FROM users WHERE id = (SELECT orders_of(idd));
--@ error: 42703
SELECT idd FROM users WHERE id = (SELECT orders_of(14)) AND name = 'x';
--@ error: 42883
SELECT id FROM users WHERE name <> 'ä' AND id = (SELECT no_orders_of(14)) AND active;
--@ error: 42883
SELECT id FROM users WHERE name = (SELECT orders_of(14));
--@ error: 42601
SELECT id FROM users WHERE id = (SELECT orders_of(14), 2);
SELECT id FROM users WHERE id = (SELECT orders_of(14)) FOR UPDATE;
SELECT u.id FROM users u JOIN local_notes n ON n.user_id = u.id AND u.id <= (SELECT orders_of(14)) FOR UPDATE OF n;
SELECT id /* one */ FROM users -- the other
WHERE /* is */ id = ( -- this
  SELECT orders_of(14) -- and that
) /* alone */ AND active;
CREATE SEQUENCE asked;
SELECT count(*) FROM users WHERE id <> (SELECT nextval('asked'));
SELECT count(*) FROM users WHERE id = 100 OR id = (SELECT nextval('asked'));
SELECT nextval('asked');

-- Types.
CREATE TYPE pair AS (a bigint, b text);
CREATE TYPE grade AS ENUM ('low', 'high');
CREATE DOMAIN small AS bigint CHECK (VALUE < 1000);
CREATE FUNCTION pair_of(u bigint) RETURNS pair LANGUAGE sql STABLE AS $$ SELECT count(*), max(status) FROM orders WHERE user_id = u $$;
CREATE FUNCTION ids_of(u bigint) RETURNS bigint[] LANGUAGE sql STABLE AS $$ SELECT array_agg(id / 10 ORDER BY id) FROM orders WHERE user_id = u $$;
CREATE FUNCTION small_of(u bigint) RETURNS small LANGUAGE sql STABLE AS $$ SELECT count(*) FROM orders WHERE user_id = u $$;
CREATE FUNCTION grade_of(u bigint) RETURNS grade LANGUAGE sql STABLE AS $$ SELECT CASE WHEN count(*) > 2 THEN 'high' ELSE 'low' END::grade FROM orders WHERE user_id = u $$;
SELECT id FROM users WHERE id = (SELECT pair_of(14)).a;
SELECT id FROM users WHERE id = 3 OR id = (SELECT pair_of(14)).a;
SELECT user_id, id FROM orders WHERE status = (SELECT (pair_of(14)).b) AND user_id < 9;
SELECT id FROM users WHERE (id, name) = (SELECT p.a, 'user ' || p.a FROM pair_of(14) p);
SELECT id FROM users WHERE ROW(id, 'sent')::pair = (SELECT pair_of(14));
SELECT id FROM users WHERE id = (SELECT ids_of(14))[2];
SELECT id FROM users WHERE id = ANY ((SELECT ids_of(14))::bigint[]);
SELECT id FROM users WHERE ARRAY[id] <@ (SELECT ids_of(14));
SELECT id FROM users WHERE id = (SELECT small_of(14));
SELECT id FROM users WHERE (CASE WHEN id = 2 THEN 'low' ELSE 'high' END)::grade < (SELECT grade_of(14));
SELECT id FROM users WHERE name = (SELECT 'user ' || orders_of(14)) COLLATE "C";
SELECT id FROM users WHERE name > (SELECT ('user ' || orders_of(14)) COLLATE "C") AND id < 20;
SELECT id, pg_typeof(v), v FROM (SELECT id, (SELECT small_of(14)) FROM users) x(id, v) WHERE id = v;
SELECT id, v FROM (SELECT id, (SELECT note_of(12)::varchar(4)) FROM users) x(id, v) WHERE id < 4 AND v > '';

-- In other places.
SELECT id FROM users WHERE id = 3 OR id = (SELECT orders_of(14));
SELECT id FROM users WHERE CASE WHEN active THEN id = (SELECT orders_of(14)) ELSE id = 7 END;
SELECT id FROM users WHERE CASE WHEN id > 0 THEN id = 5 ELSE id = (SELECT never('in a branch')) END;
SELECT id FROM users WHERE coalesce(id, (SELECT never('behind a value'))) = 5;
SELECT id FROM users WHERE id > 0 OR id = (SELECT never('behind what is true'));
SELECT n.id FROM local_notes n JOIN users u ON u.id = n.user_id WHERE n.id = 400 AND n.stars = (SELECT never('for no row'));
SELECT id FROM users WHERE id = ANY (ARRAY(SELECT orders_of(a) FROM friends WHERE id < 20));
SELECT id FROM users WHERE id = ANY (ARRAY(SELECT orders_of(n.user_id) FROM local_notes n));
SELECT id FROM users WHERE id = ALL (ARRAY(SELECT orders_of(14)));
SELECT id FROM users WHERE id IN (SELECT orders_of(a) FROM friends);
SELECT id FROM users WHERE id IN ((SELECT orders_of(14)), (SELECT orders_of(3)), 50);
SELECT id FROM users WHERE id < 4 AND EXISTS (SELECT FROM friends WHERE orders_of(a) = 3);
SELECT id FROM users WHERE id = 2 OR EXISTS (SELECT FROM friends WHERE orders_of(a) = 77);
SELECT id FROM users WHERE active = EXISTS (SELECT FROM friends WHERE orders_of(a) = 77);
SELECT user_id, id FROM orders WHERE (user_id, id) = (SELECT orders_of(14), orders_of(14) * 10 + 1);
SELECT country, count(*) FROM users GROUP BY country HAVING count(*) > (SELECT orders_of(14) * 2);
SELECT count(*), (SELECT orders_of(14)) + id % 2 FROM users GROUP BY (SELECT orders_of(14)) + id % 2;
SELECT DISTINCT (SELECT orders_of(14)), country FROM users;
--@ ordered
SELECT (SELECT orders_of(14)), id FROM users ORDER BY id % (SELECT orders_of(14)), id LIMIT 5;
--@ ordered
SELECT id FROM users WHERE id < (SELECT orders_of(14)) UNION ALL SELECT id FROM friends WHERE id = (SELECT orders_of(3)) ORDER BY 1;
SELECT x.id, x.v FROM (SELECT id, (SELECT orders_of(14)) FROM users) x(id, v) WHERE id = v;
SELECT id, orders_of FROM (SELECT id, (SELECT orders_of(14)) FROM users) x WHERE id = orders_of;
WITH x AS (SELECT (SELECT orders_of(14)) AS v) SELECT id FROM users, x WHERE id = v;
WITH x AS (SELECT orders_of(14) AS v) SELECT id FROM users WHERE id = (SELECT v FROM x);
WITH x AS (SELECT 14 AS v), y AS (SELECT orders_of(v) AS w FROM x) SELECT id FROM users WHERE id = (SELECT w FROM y) OR id IN (SELECT v FROM x);
WITH RECURSIVE r(n) AS (SELECT (SELECT orders_of(14)) UNION ALL SELECT n + 1 FROM r WHERE n < 8) SELECT id FROM users WHERE id = (SELECT max(n) FROM r WHERE n > (SELECT orders_of(3)));
SELECT n.id, x.id FROM local_notes n LEFT JOIN (SELECT * FROM users WHERE id <> (SELECT orders_of(14))) x ON x.id = n.user_id;
SELECT n.id, u.id FROM local_notes n LEFT JOIN users u ON u.id = n.user_id AND u.id <> (SELECT orders_of(14));
SELECT n.id FROM local_notes n WHERE EXISTS (SELECT FROM orders o WHERE o.user_id = n.user_id AND o.id % 10 = (SELECT orders_of(3)));
SELECT n.id FROM local_notes n WHERE NOT EXISTS (SELECT FROM orders o WHERE o.user_id = n.user_id AND o.id % 10 <= (SELECT orders_of(3)));
SELECT n.id FROM local_notes n WHERE n.stars = 5 OR EXISTS (SELECT FROM orders o WHERE o.user_id = n.user_id AND o.id % 10 = (SELECT orders_of(3)));
SELECT n.id FROM local_notes n WHERE n.user_id IN (SELECT o.user_id FROM orders o WHERE o.id % 10 = (SELECT orders_of(3)));
SELECT n.id FROM local_notes n LEFT JOIN users u ON u.id = n.user_id AND u.id IN (SELECT user_id FROM orders o WHERE o.id % 10 = (SELECT orders_of(3))) WHERE u.id IS NULL;
SELECT n.id, (SELECT max(o.total) FROM orders o WHERE o.user_id = n.user_id AND o.id % 10 <> (SELECT orders_of(3))) FROM local_notes n;
SELECT n.id, o.id FROM local_notes n, LATERAL (SELECT * FROM orders o WHERE o.user_id = n.user_id AND o.id % 10 <> (SELECT orders_of(3)) ORDER BY o.id LIMIT 1) o;
SELECT u.id, (SELECT max(u.id + f.id) FROM friends f WHERE f.id = (SELECT orders_of(u.id))) FROM users u WHERE u.id < 6;

-- What changes rows.
BEGIN;
UPDATE users SET score = (SELECT orders_of(14)) WHERE id = (SELECT orders_of(14)) RETURNING id, score;
UPDATE users u SET (score, name) = (SELECT max(n.stars), min(n.body) FROM local_notes n WHERE (SELECT orders_of(14)) <> u.id AND n.user_id = u.id) WHERE id < 9 RETURNING id, score, name;
UPDATE users u SET score = n.stars FROM local_notes n WHERE n.user_id = u.id AND u.id > (SELECT orders_of(14)) AND n.stars > 3 RETURNING u.id, u.score;
DELETE FROM clicks WHERE user_id = (SELECT orders_of(14)) + 4;
WITH x AS (SELECT orders_of(14) AS v) DELETE FROM clicks WHERE user_id = (SELECT v FROM x) + 25;
INSERT INTO local_notes (user_id, body) SELECT id, name FROM users WHERE id = (SELECT orders_of(14)) RETURNING user_id, body;
INSERT INTO clicks (user_id, url) SELECT id, name FROM users WHERE id > (SELECT orders_of(14)) + 50;
WITH gone AS (DELETE FROM local_notes WHERE body = 'note 3' RETURNING user_id) SELECT id FROM users WHERE id = (SELECT max(g.user_id) FROM gone g);
MERGE INTO regions r USING (SELECT country, count(*) AS n FROM users WHERE id > (SELECT orders_of(14)) GROUP BY country) s ON r.code = s.country AND r.code <> (SELECT shown_path()) WHEN MATCHED THEN UPDATE SET tax = s.n;
SELECT * FROM regions;
MERGE INTO users u USING local_notes n ON u.id = n.user_id AND u.id > (SELECT orders_of(14)) WHEN MATCHED AND n.stars > (SELECT orders_of(3)) THEN UPDATE SET score = n.stars;
SELECT sum(score) FROM users;
SELECT count(*), sum(user_id) FROM clicks;
INSERT INTO orders (user_id, id, placed) VALUES (14, 149, '2022-01-01');
SELECT id FROM users WHERE id = (SELECT orders_of(14));
CREATE TABLE chosen AS SELECT id FROM users WHERE id = (SELECT orders_of(14));
SELECT * FROM chosen;
SELECT id INTO chosen_too FROM users WHERE id <= (SELECT orders_of(14));
SELECT count(*) FROM chosen_too;
DECLARE few CURSOR FOR SELECT id FROM users WHERE id <= (SELECT orders_of(14)) ORDER BY id;
--@ ordered
FETCH 3 FROM few;
--@ ordered
FETCH ALL FROM few;
ROLLBACK;

-- Views, and tables of the session.
CREATE VIEW grown AS SELECT id, name, born FROM users WHERE born < '1985-01-01';
CREATE VIEW busy AS SELECT u.id, orders_of(u.id) AS n FROM users u WHERE u.id < 12;
SELECT id FROM grown WHERE id = (SELECT orders_of(14));
SELECT id FROM grown WHERE id = 5 OR id = (SELECT orders_of(14));
SELECT id FROM users WHERE id = (SELECT max(n) FROM busy);
SELECT id FROM grown WHERE id = (SELECT count(n) FROM busy);
CREATE TEMP TABLE own (n int);
INSERT INTO own VALUES (14);
SELECT id FROM users WHERE id = (SELECT orders_of(own.n) FROM own);
SELECT id FROM grown WHERE id = (SELECT orders_of(n) FROM own);
DROP TABLE own;

-- Styles.
SET datestyle = 'German';
SET intervalstyle = 'sql_standard';
INSERT INTO users (id, name, created) VALUES (900, '31.12.2020', '2020-01-01'), (901, '2020-12-31', '2020-01-01'), (902, '1 2:00:00', '2020-01-01');
SELECT id FROM users WHERE name = (SELECT ('2020-12-30'::date + max(n.id) - 23)::text FROM local_notes n WHERE n.id = 24);
SELECT u.id FROM users u JOIN users v ON u.id = v.id WHERE u.name = (SELECT max(n.d)::text FROM (SELECT since + 604 AS d FROM friends f WHERE f.id < 0 UNION ALL SELECT '2020-12-31') n) AND u.id <> (SELECT count(*) FROM local_notes);
SELECT u.id FROM users u LEFT JOIN local_notes n ON n.user_id = u.id WHERE u.name = (SELECT 'x' || (max(since) - max(since) + date '2020-12-31') FROM friends) OR u.name = (SELECT concat(max(since) - max(since) + date '2020-12-31') FROM friends);
SELECT u.id FROM users u LEFT JOIN local_notes n ON n.user_id = u.id WHERE u.name = (SELECT (max(took) - max(took) + interval '26 hours')::text FROM events);
SELECT u.id FROM users u LEFT JOIN local_notes n ON n.user_id = u.id WHERE u.name = (SELECT (justify_hours(max(took) - max(took) + interval '26 hours'))::text FROM events);
RESET datestyle;
RESET intervalstyle;
