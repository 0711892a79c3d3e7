--@ include: schema.sql
-- Views, functions, triggers, row security and types over distributed tables.

SELECT * FROM order_totals;
SELECT * FROM order_totals WHERE user_id = 14;
SELECT max(total) FROM order_totals WHERE orders > 2;
CREATE VIEW germans AS SELECT id, name, score, country FROM users WHERE country = 'de' WITH CHECK OPTION;
SELECT count(*), sum(score) FROM germans;
SELECT name FROM germans WHERE id = 12;
UPDATE germans SET score = 1 WHERE id = 12 RETURNING id, score;
UPDATE germans SET score = 2 RETURNING id;
--@ error: 44000
UPDATE germans SET country = 'fr' WHERE id = 12;
DELETE FROM germans WHERE id = 60;
SELECT id, score FROM users WHERE country = 'de';
CREATE VIEW everything AS SELECT u.id, u.name, o.id AS order_id, r.name AS region FROM users u LEFT JOIN orders o ON o.user_id = u.id LEFT JOIN regions r ON r.code = u.country;
SELECT count(*), count(order_id), count(region) FROM everything;
SELECT * FROM everything WHERE id = 14;
SELECT region, count(DISTINCT id) FROM everything GROUP BY region;
--@ error: 55000
DELETE FROM everything WHERE id = 14;
CREATE MATERIALIZED VIEW frozen AS SELECT country, count(*) AS n FROM users GROUP BY country;
SELECT * FROM frozen;
DELETE FROM clicks WHERE user_id = 1;
REFRESH MATERIALIZED VIEW frozen;
SELECT sum(n) FROM frozen;
CREATE TABLE snapshot AS SELECT id, name FROM users WHERE score > 50;
SELECT count(*) FROM snapshot;
SELECT user_id, total INTO big_orders FROM orders WHERE total > 500;
SELECT count(*), sum(total) FROM big_orders;
SELECT definition FROM pg_views WHERE viewname = 'germans';

-- SQL functions.
CREATE FUNCTION user_name(bigint) RETURNS text STABLE LANGUAGE sql AS 'SELECT name FROM users WHERE id = $1';
SELECT user_name(5), user_name(99999);
SELECT id, user_name(id) FROM users WHERE id < 4;
SELECT g, user_name(g) FROM generate_series(1, 3) g;
SELECT id FROM users WHERE name = user_name(7);
CREATE FUNCTION orders_of(bigint) RETURNS SETOF orders STABLE LANGUAGE sql AS 'SELECT * FROM orders WHERE user_id = $1';
SELECT id, status FROM orders_of(14);
SELECT u.id, o.id FROM users u, orders_of(u.id) o WHERE u.id < 8;
CREATE FUNCTION add_tax(numeric, numeric DEFAULT 20) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT round($1 * (1 + $2 / 100), 2)';
SELECT id, add_tax(total) FROM orders WHERE user_id = 14;
SELECT sum(add_tax(total, 10)) FROM orders;
SELECT id FROM users WHERE id = add_tax(10)::int;
CREATE FUNCTION score_of(users) RETURNS numeric STABLE LANGUAGE sql AS 'SELECT $1.score * 2';
SELECT score_of(users.*), users.score_of FROM users WHERE id = 8;

-- PL/pgSQL.
CREATE FUNCTION count_orders(u bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM orders WHERE user_id = u); END $$;
SELECT count_orders(14), count_orders(15);
SELECT id, count_orders(id) FROM users WHERE id < 6;
CREATE FUNCTION place_order(u bigint, i int, t numeric) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  INSERT INTO orders (user_id, id, placed, total) VALUES (u, i, '2022-02-02', t);
  UPDATE users SET score = coalesce(score, 0) + 1 WHERE id = u;
  SELECT count(*) INTO n FROM orders WHERE user_id = u;
  RETURN n;
END $$;
--@ repeat: 1
SELECT place_order(14, 9001, 5);
SELECT id, total FROM orders WHERE user_id = 14;
--@ error: 23505
--@ repeat: 1
SELECT place_order(14, 9001, 5);
SELECT score, (SELECT count(*) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE id = 14;
CREATE PROCEDURE transfer(a bigint, b bigint, amount numeric) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE users SET score = coalesce(score, 0) - amount WHERE id = a;
  UPDATE users SET score = coalesce(score, 0) + amount WHERE id = b;
END $$;
CALL transfer(1, 2, 10);
SELECT id, score FROM users WHERE id IN (1, 2);
BEGIN;
CALL transfer(1, 2, 10);
SELECT id, score FROM users WHERE id IN (1, 2);
ROLLBACK;
SELECT id, score FROM users WHERE id IN (1, 2);
DO $$ DECLARE r record; s numeric := 0; BEGIN FOR r IN SELECT total FROM orders WHERE total IS NOT NULL ORDER BY id LOOP s := s + r.total; END LOOP; RAISE NOTICE 'sum %', s; END $$;
DO $$ BEGIN INSERT INTO clicks (user_id, url) SELECT g, 'do' FROM generate_series(1, 12) g; DELETE FROM clicks WHERE url = 'do' AND user_id > 10; END $$;
SELECT count(*), sum(user_id) FROM clicks WHERE url = 'do';
--@ error: P0001
DO $$ BEGIN UPDATE users SET score = -1; RAISE EXCEPTION 'undo'; END $$;
SELECT count(*) FROM users WHERE score = -1;
DO $$ BEGIN BEGIN INSERT INTO users (id, created) VALUES (1, now()); EXCEPTION WHEN unique_violation THEN UPDATE users SET name = 'caught' WHERE id = 1; END; END $$;
SELECT name FROM users WHERE id = 1;

-- Triggers.
CREATE TABLE audited (k int PRIMARY KEY, v text, changes int NOT NULL DEFAULT 0);
--@ cluster: SELECT create_distributed_table('audited', 'k')
CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.changes := OLD.changes + 1; RETURN NEW; END $$;
CREATE TRIGGER audit BEFORE UPDATE ON audited FOR EACH ROW EXECUTE FUNCTION count_change();
INSERT INTO audited VALUES (1, 'a'), (2, 'b'), (3, 'c');
UPDATE audited SET v = v || '!' RETURNING *;
UPDATE audited SET v = 'x' WHERE k = 2 RETURNING changes;
INSERT INTO audited VALUES (2, 'y') ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *;
ALTER TABLE audited DISABLE TRIGGER audit;
UPDATE audited SET v = 'quiet' WHERE k = 1 RETURNING changes;
DROP TRIGGER audit ON audited;

-- Row security.
CREATE TABLE secrets (k int PRIMARY KEY, owner text, body text);
--@ cluster: SELECT create_distributed_table('secrets', 'k')
INSERT INTO secrets SELECT g, CASE WHEN g % 2 = 0 THEN 'corpus_even' ELSE 'someone' END, 'body ' || g FROM generate_series(1, 10) g;
CREATE ROLE corpus_even;
GRANT ALL ON secrets TO corpus_even;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON secrets USING (owner = current_user);
SET ROLE corpus_even;
SELECT k, body FROM secrets;
SELECT body FROM secrets WHERE k = 4;
SELECT body FROM secrets WHERE k = 5;
SELECT count(*) FROM secrets;
UPDATE secrets SET body = 'changed' WHERE k IN (3, 4) RETURNING k;
--@ error: 42501
INSERT INTO secrets VALUES (20, 'someone', 'x');
RESET ROLE;
SELECT count(*) FROM secrets WHERE body = 'changed';
DROP TABLE secrets;
DROP ROLE corpus_even;

-- Types of the user's own, in columns that are not the key.
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN short AS text CHECK (length(VALUE) < 10);
CREATE TABLE typed (k int PRIMARY KEY, m mood, p pair, s short, ms mood[]);
--@ cluster: SELECT create_distributed_table('typed', 'k')
INSERT INTO typed VALUES (1, 'happy', (1, 'x'), 'short', '{sad,ok}'), (2, 'sad', ROW(2, NULL), 'tiny', NULL), (3, NULL, NULL, NULL, ARRAY['happy'::mood]);
SELECT * FROM typed WHERE k = 1;
SELECT * FROM typed;
--@ ordered
SELECT k, m FROM typed ORDER BY m DESC NULLS LAST;
SELECT m, count(*) FROM typed GROUP BY m;
SELECT max(m), min(m) FROM typed;
SELECT k, (p).a + 1, (p).b FROM typed WHERE m = 'happy';
UPDATE typed SET m = 'ok', p.b = 'set' WHERE k = 2 RETURNING *;
SELECT k FROM typed WHERE m > 'sad';
--@ params: 'ok', 2
SELECT k, m FROM typed WHERE m = $1 AND k = $2;
--@ error: 22P02
SELECT k FROM typed WHERE m = 'none';
--@ error: 23514
INSERT INTO typed VALUES (4, 'ok', NULL, 'much too long');
SELECT to_jsonb(t) FROM typed t WHERE k = 1;
SELECT row_to_json(t) FROM (SELECT k, m FROM typed WHERE k < 3) t;
SELECT typed FROM typed WHERE k = 1;
SELECT (k, s) FROM typed;
ALTER TYPE mood ADD VALUE 'ecstatic';
INSERT INTO typed (k, m) VALUES (9, 'ecstatic') RETURNING m;

-- Views that call functions which write.
CREATE TABLE bumped_d (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('bumped_d', 'k')
INSERT INTO bumped_d SELECT g, 0 FROM generate_series(1, 6) g;
CREATE FUNCTION bump_d() RETURNS int LANGUAGE plpgsql AS $$ DECLARE c int; BEGIN UPDATE bumped_d SET n = n + 1 WHERE k < 4; INSERT INTO bumped_d VALUES ((SELECT max(k) + 1 FROM bumped_d), 100); SELECT sum(n) INTO c FROM bumped_d; RETURN c; END $$;
CREATE VIEW bumped AS SELECT bump_d() AS n;
CREATE VIEW bumped_twice AS SELECT n + 1 AS n FROM bumped;
SELECT * FROM bumped;
SELECT * FROM bumped_twice;
BEGIN;
SELECT n FROM bumped;
ROLLBACK;
SELECT * FROM bumped_d;
CREATE OPERATOR @+@ (leftarg = int, rightarg = int, function = int4pl);
CREATE FUNCTION bump_by(int, int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE bumped_d SET n = n + $1; RETURN $2; END $$;
CREATE OPERATOR @!@ (leftarg = int, rightarg = int, function = bump_by);
CREATE VIEW bumped_by AS SELECT 5 @!@ 6 AS v, 1 @+@ 2 AS w;
SELECT * FROM bumped_by;
SELECT sum(n) FROM bumped_d;
DROP VIEW bumped_by;
DROP OPERATOR @+@ (int, int), @!@ (int, int);
