--@ include: schema.sql
-- Views and materialized views over distributed, reference and local tables: read, joined, written through, changed, and refreshed.

CREATE VIEW active_users AS SELECT id, name, country, score FROM users WHERE active;
CREATE VIEW user_orders AS SELECT u.id, u.name, o.id AS order_id, o.total, o.status FROM users u JOIN orders o ON o.user_id = u.id;
CREATE VIEW all_users AS SELECT u.id, o.id AS order_id FROM users u LEFT JOIN orders o ON o.user_id = u.id;
CREATE VIEW per_country AS SELECT country, count(*) AS n, sum(score) AS s, avg(score) AS a FROM users GROUP BY country;
CREATE VIEW top_users AS SELECT id, score FROM users ORDER BY score DESC NULLS LAST, id LIMIT 10;
CREATE VIEW friend_pairs AS SELECT f.id, a.name AS a_name, b.name AS b_name FROM friends f JOIN users a ON a.id = f.a LEFT JOIN users b ON b.id = f.b;
CREATE VIEW both_kinds AS SELECT id::bigint AS x, 'user' AS kind FROM users UNION ALL SELECT id, 'friend' FROM friends;
CREATE VIEW ranked AS SELECT id, country, rank() OVER (PARTITION BY country ORDER BY score DESC NULLS LAST, id) AS r FROM users;
CREATE VIEW with_notes AS SELECT n.id, n.body, u.name FROM local_notes n LEFT JOIN users u ON u.id = n.user_id;
CREATE VIEW nested AS SELECT p.country, p.n, r.name FROM per_country p LEFT JOIN regions r ON r.code = p.country;
CREATE VIEW with_cte AS WITH w AS (SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id) SELECT u.id, w.s FROM users u JOIN w ON w.user_id = u.id;
CREATE RECURSIVE VIEW upto (n) AS SELECT 1 UNION ALL SELECT n + 1 FROM upto WHERE n < 5;

-- Read.
SELECT * FROM active_users WHERE id = 5;
SELECT count(*), sum(score) FROM active_users;
SELECT * FROM user_orders WHERE id = 14;
SELECT status, count(*), sum(total) FROM user_orders GROUP BY status;
SELECT count(*), count(order_id) FROM all_users;
SELECT * FROM all_users WHERE id IN (5, 10, 14);
SELECT * FROM per_country;
SELECT * FROM per_country WHERE country = 'de';
SELECT n FROM per_country WHERE s > 300;
SELECT max(n), sum(n) FROM per_country;
--@ ordered
SELECT * FROM top_users ORDER BY score DESC, id;
SELECT count(*) FROM top_users WHERE score < 90;
SELECT * FROM top_users WHERE id = 27;
SELECT * FROM friend_pairs WHERE id < 9;
SELECT count(*), count(a_name), count(b_name) FROM friend_pairs;
SELECT kind, count(*), sum(x) FROM both_kinds GROUP BY kind;
SELECT * FROM both_kinds WHERE x = 7;
SELECT * FROM ranked WHERE r = 1;
SELECT * FROM ranked WHERE id = 7;
SELECT * FROM with_notes WHERE id < 6;
SELECT * FROM nested;
SELECT * FROM with_cte WHERE id = 14;
SELECT count(*), sum(s) FROM with_cte;
SELECT u.n, a.name FROM upto u LEFT JOIN active_users a ON a.id = u.n;
SELECT a.id, b.n FROM active_users a JOIN per_country b USING (country) WHERE a.id < 9;
SELECT a.id FROM active_users a WHERE a.id IN (SELECT id FROM top_users);
SELECT a.id, t.score FROM active_users a LEFT JOIN top_users t USING (id) WHERE a.id < 30;
SELECT v.id, o.order_id FROM active_users v JOIN user_orders o ON o.id = v.id WHERE o.total > 800;
SELECT (SELECT count(*) FROM active_users), (SELECT max(total) FROM user_orders);
SELECT active_users FROM active_users WHERE id = 5;
--@ params: 5
--@ params: NULL
SELECT name FROM active_users WHERE id = $1;

-- Written through.
CREATE VIEW notes_view AS SELECT user_id, url, ms FROM clicks WHERE ms > 100;
INSERT INTO notes_view VALUES (1, '/view', 500) RETURNING *;
INSERT INTO notes_view VALUES (2, '/view', 5), (3, '/view', 600), (4, '/view', 700);
SELECT user_id, url, ms FROM clicks WHERE url = '/view';
UPDATE notes_view SET ms = ms + 1 WHERE url = '/view' RETURNING user_id, ms;
UPDATE notes_view SET ms = 1 WHERE user_id = 1 AND url = '/view';
DELETE FROM notes_view WHERE url = '/view';
SELECT user_id, ms FROM clicks WHERE url = '/view';
UPDATE active_users SET score = 0 WHERE id = 5 RETURNING name, score;
UPDATE active_users SET score = score + 1;
SELECT sum(score) FROM users;
CREATE VIEW checked AS SELECT * FROM active_users WHERE country = 'fr' WITH LOCAL CHECK OPTION;
CREATE VIEW checked2 AS SELECT * FROM active_users WHERE country = 'fr' WITH CASCADED CHECK OPTION;
UPDATE checked SET score = 3 RETURNING id;
--@ error: 44000
UPDATE checked SET country = 'de' WHERE id = 1;
--@ error: 44000
UPDATE checked2 SET country = 'de' WHERE id = 1;
--@ error: 55000
UPDATE per_country SET n = 1;
--@ error: 55000
DELETE FROM user_orders WHERE id = 14;
--@ error: 55000
INSERT INTO top_users VALUES (1, 1);
--@ error: 42703
UPDATE active_users SET born = now();
CREATE VIEW region_view AS SELECT code, tax FROM regions WHERE tax > 0;
UPDATE region_view SET tax = tax + 1 WHERE code = 'de' RETURNING tax;
SELECT count(*) FROM users u JOIN region_view r ON r.code = u.country WHERE r.tax = 20;
CREATE VIEW local_view AS SELECT * FROM local_notes WHERE stars > 1;
UPDATE local_view SET body = 'viewed' WHERE id < 9;
SELECT count(*) FROM local_notes WHERE body = 'viewed';

-- Changed.
CREATE OR REPLACE VIEW active_users AS SELECT id, name, country, score, born FROM users WHERE active AND score IS NOT NULL;
SELECT count(*), max(born) FROM active_users;
ALTER VIEW active_users RENAME TO live_users;
SELECT count(*) FROM live_users;
SELECT count(*) FROM checked;
ALTER VIEW live_users ALTER COLUMN score SET DEFAULT 5;
ALTER VIEW live_users RENAME COLUMN score TO points;
SELECT points FROM live_users WHERE id = 9;
CREATE SCHEMA seen;
ALTER VIEW per_country SET SCHEMA seen;
SELECT count(*) FROM seen.per_country;
SELECT count(*) FROM nested;
ALTER VIEW nested SET (security_barrier = true);
SELECT table_name, is_updatable FROM information_schema.views WHERE table_schema = 'seen';
ALTER TABLE users RENAME COLUMN born TO birth;
SELECT max(born) FROM live_users;
ALTER TABLE users RENAME COLUMN birth TO born;
ALTER TABLE users RENAME TO people;
SELECT count(*) FROM live_users;
SELECT name FROM live_users WHERE id = 9;
ALTER TABLE people RENAME TO users;
--@ error: 42P16
CREATE OR REPLACE VIEW live_users AS SELECT id FROM users;
--@ error: 2BP01
DROP VIEW live_users;
--@ error: 2BP01
ALTER TABLE users DROP COLUMN score;
DROP VIEW checked, checked2;
DROP VIEW live_users;
--@ error: 42P01
SELECT * FROM live_users;
SELECT pg_get_viewdef('with_cte'::regclass);
SELECT viewname FROM pg_views WHERE schemaname IN ('public', 'seen');
CREATE TEMP VIEW temporary AS SELECT id FROM users WHERE id < 4;
SELECT * FROM temporary;
BEGIN;
CREATE VIEW in_tx AS SELECT count(*) AS n FROM users;
SELECT * FROM in_tx;
DELETE FROM clicks;
SELECT n, (SELECT count(*) FROM notes_view) FROM in_tx;
ROLLBACK;
--@ error: 42P01
SELECT * FROM in_tx;

-- Materialized.
CREATE MATERIALIZED VIEW m_country AS SELECT country, count(*) AS n, sum(score) AS s FROM users GROUP BY country;
CREATE MATERIALIZED VIEW m_orders AS SELECT u.id, u.name, count(o.id) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id WITH NO DATA;
CREATE MATERIALIZED VIEW m_friends AS SELECT f.id, u.name FROM friends f JOIN users u ON u.id = f.b;
SELECT * FROM m_country;
--@ error: 55000
SELECT count(*) FROM m_orders;
REFRESH MATERIALIZED VIEW m_orders;
SELECT count(*), sum(n) FROM m_orders;
SELECT m.n, u.name FROM m_orders m JOIN users u USING (id) WHERE m.n > 3;
SELECT count(*) FROM m_friends m JOIN friends f USING (id);
CREATE UNIQUE INDEX ON m_country (country);
CREATE INDEX m_friends_name ON m_friends (name);
UPDATE users SET country = 'nl' WHERE id < 20;
SELECT sum(n) FROM m_country WHERE country = 'nl';
REFRESH MATERIALIZED VIEW CONCURRENTLY m_country;
SELECT sum(n) FROM m_country WHERE country = 'nl';
DELETE FROM friends WHERE id > 40;
REFRESH MATERIALIZED VIEW m_friends;
SELECT count(*) FROM m_friends;
REFRESH MATERIALIZED VIEW m_friends WITH NO DATA;
--@ error: 55000
SELECT count(*) FROM m_friends;
BEGIN;
UPDATE users SET country = 'jp';
REFRESH MATERIALIZED VIEW m_country;
SELECT * FROM m_country;
ROLLBACK;
SELECT count(*) FROM m_country;
ALTER MATERIALIZED VIEW m_country RENAME TO m_land;
ALTER MATERIALIZED VIEW m_land RENAME COLUMN n TO number;
SELECT sum(number) FROM m_land;
COMMENT ON MATERIALIZED VIEW m_land IS 'counted';
SELECT matviewname, ispopulated FROM pg_matviews;
ANALYZE m_land;
--@ error: 42809
DROP VIEW m_land;
CREATE MATERIALIZED VIEW IF NOT EXISTS m_land AS SELECT 1;
CREATE MATERIALIZED VIEW m_of_view AS SELECT * FROM with_cte;
SELECT count(*) FROM m_of_view;
DROP MATERIALIZED VIEW m_of_view, m_friends;
DROP VIEW with_cte;
DROP MATERIALIZED VIEW m_land, m_orders;
