--@ include: schema.sql
-- The time of a transaction is one value, whoever reads it.

CREATE TABLE mom (k int PRIMARY KEY, at timestamptz DEFAULT now(), day date, note text);
CREATE TABLE mom_local (k int, at timestamptz DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE mom_at (at timestamptz PRIMARY KEY, v int);
CREATE TABLE mom_ts (at timestamp(0), v int);
CREATE TABLE mom_day (day date, v int);
CREATE TABLE mom_ref (k int PRIMARY KEY, at timestamptz DEFAULT now());
--@ cluster: SELECT create_distributed_table('mom', 'k'), create_distributed_table('mom_at', 'at'), create_distributed_table('mom_ts', 'at'), create_distributed_table('mom_day', 'day'), create_reference_table('mom_ref')

-- Nothing yet reads the time but what clients send.
BEGIN;
INSERT INTO mom (k, at) VALUES (1, now());
CREATE TABLE mom_as AS SELECT now() AS at, CURRENT_DATE AS day, 'now'::timestamptz AS word;
SELECT now() AS at INTO mom_into;
CREATE TEMP TABLE mom_temp AS SELECT transaction_timestamp() AS at;
SELECT (SELECT at FROM mom WHERE k = 1) = now(), at = now(), day = now()::date, word = now() FROM mom_as;
SELECT at = now() FROM mom_into;
SELECT at = now() FROM mom_temp;
SELECT count(*) FROM mom WHERE at = now();
COMMIT;
DROP TABLE mom_as, mom_into, mom_temp;
DELETE FROM mom;

CREATE FUNCTION mom_now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN now(); END $$;
CREATE FUNCTION mom_put(i int) RETURNS void LANGUAGE plpgsql AS $$ BEGIN DELETE FROM mom WHERE k = i; INSERT INTO mom (k, note) VALUES (i, 'inside'); END $$;
CREATE VIEW mom_view AS SELECT k, now() AS at FROM mom;

-- One statement.
INSERT INTO mom (k, note) SELECT g, 'v' || g FROM generate_series(1, 5) g;
SELECT count(DISTINCT at) FROM mom;
SELECT k, mom_now() = now(), mom_now() = CURRENT_TIMESTAMP FROM mom ORDER BY k;
SELECT v.k, v.at = now() FROM mom_view v JOIN mom m ON m.k = v.k ORDER BY 1;
SELECT count(*) FROM mom WHERE mom_now() = now();

-- A worker first, then the coordinator.
BEGIN;
INSERT INTO mom (k, at) VALUES (10, now());
INSERT INTO mom (k) VALUES (11);
INSERT INTO mom_local VALUES (1);
SELECT mom_put(12);
INSERT INTO mom_ref VALUES (1), (2);
UPDATE mom SET day = CURRENT_DATE, at = now() WHERE k IN (1, 2);
SELECT k, at = now() AS same, at = mom_now() AS inside FROM mom WHERE k IN (1, 2, 10, 11, 12) ORDER BY k;
SELECT at = now() FROM mom_local;
SELECT k, at = now() FROM mom_ref ORDER BY k;
SELECT DISTINCT at = now() FROM mom_view;
DO $$ BEGIN IF (SELECT at FROM mom WHERE k = 10) <> now() THEN RAISE EXCEPTION 'another time'; END IF; END $$;
CREATE MATERIALIZED VIEW mom_mat AS SELECT now() AS at;
SELECT at = now() FROM mom_mat;
COMMIT;
DROP MATERIALIZED VIEW mom_mat;

-- The coordinator first.
BEGIN;
SELECT mom_put(20);
INSERT INTO mom (k) VALUES (21);
UPDATE mom SET at = now() WHERE k = 5;
SELECT k, at = now() FROM mom WHERE k IN (5, 20, 21) ORDER BY k;
SELECT count(DISTINCT at) FROM mom WHERE k IN (5, 20, 21);
COMMIT;
BEGIN;
DO $$ BEGIN PERFORM mom_put(22); END $$;
INSERT INTO mom (k, at) VALUES (23, LOCALTIMESTAMP);
INSERT INTO mom_at VALUES (now(), 1);
INSERT INTO mom (k, at) VALUES (24, 'now'), (25, 'now'::timestamptz), (26, now());
SELECT count(DISTINCT at) FROM mom WHERE k > 21;
SELECT v FROM mom_at JOIN mom USING (at) ORDER BY k;
COMMIT;
DELETE FROM mom_at;

-- Words for the current time.
INSERT INTO mom_at VALUES ('now', 1);
INSERT INTO mom_at VALUES ('now', 2), ('today', 3), (' Tomorrow', 4), ('yesterday', 5);
INSERT INTO mom_at VALUES ('now'::timestamptz, 6);
INSERT INTO mom_at VALUES (CAST('now' AS timestamptz), 7);
INSERT INTO mom_at VALUES (timestamptz 'now' + interval '1 hour', 8);
INSERT INTO mom_ts VALUES ('now', 1), ('today', 2), (timestamp 'tomorrow', 3);
INSERT INTO mom_day VALUES ('today', 1), ('tomorrow', 2), ('yesterday', 3), ('now', 4), (date 'today', 5);
INSERT INTO mom_day VALUES ('today', 6);
SELECT v, day - CURRENT_DATE FROM mom_day ORDER BY v;
SELECT v FROM mom_day WHERE day = 'today' ORDER BY v;
SELECT v FROM mom_day WHERE day = CURRENT_DATE ORDER BY v;
SELECT v FROM mom_day WHERE day > date 'today' ORDER BY v;
SELECT v FROM mom_at WHERE at = 'today';
SELECT v FROM mom_at WHERE at = timestamptz 'tomorrow';
SELECT v FROM mom_at WHERE at > 'now' ORDER BY v;
SELECT v, at = date_trunc('day', at) FROM mom_at ORDER BY v;
SELECT v, at::date - CURRENT_DATE FROM mom_ts ORDER BY v;
DELETE FROM mom_at;
DELETE FROM mom_day;
DELETE FROM mom_ts;
BEGIN;
INSERT INTO mom_at VALUES ('now', 1);
INSERT INTO mom (k, at) VALUES (30, 'now'), (31, 'now');
INSERT INTO mom (k, at) VALUES (32, 'now');
UPDATE mom SET at = 'now' WHERE k IN (1, 3);
UPDATE mom SET at = 'now', day = 'tomorrow' WHERE k = 2;
INSERT INTO mom (k) VALUES (4) ON CONFLICT (k) DO UPDATE SET at = 'now';
SELECT k, at = now(), day - CURRENT_DATE FROM mom WHERE k IN (1, 2, 3, 4, 30, 31, 32) ORDER BY k;
SELECT at = now(), at = 'now'::timestamptz, at = 'now' FROM mom_at;
-- Compared with a column, which says of which type they are.
SELECT k, at = 'now', 'now' = at, day > 'today', at BETWEEN 'now' AND 'now', at IN ('now', '2000-01-01') FROM mom WHERE k IN (1, 2, 3, 4) ORDER BY k;
SELECT k FROM mom WHERE at = 'now' AND k < 40 ORDER BY k;
SELECT k FROM mom WHERE at >= 'now' AND day <> 'yesterday' AND k = 2;
SELECT at = 'now', count(*) FROM mom WHERE k IN (1, 2, 3, 4) GROUP BY at ORDER BY 1;
SELECT count(*) FILTER (WHERE at = 'now'), bool_and(at <= 'now') FROM mom WHERE k IN (1, 2, 3, 4);
SELECT a.k FROM mom a JOIN mom b ON a.k = b.k AND a.at = 'now' AND b.day = 'tomorrow' WHERE a.k < 40 ORDER BY 1;
SELECT k FROM mom WHERE k IN (SELECT k FROM mom WHERE at = 'now') AND k < 40 ORDER BY k;
UPDATE mom SET day = 'yesterday' WHERE at = 'now' AND k IN (1, 3);
UPDATE mom SET day = CASE WHEN at < 'now' THEN date '2000-01-01' ELSE day END WHERE k IN (1, 2, 3, 4);
SELECT k, day - CURRENT_DATE FROM mom WHERE k IN (1, 2, 3, 4) AND day > '2001-01-01' ORDER BY k;
UPDATE mom SET note = 'then' FROM mom_ref r WHERE mom.k = r.k AND mom.at = 'now' AND r.at < 'now' RETURNING mom.k, mom.at = 'now', r.at >= 'now';
DELETE FROM mom WHERE at = 'now' AND k >= 30 RETURNING k, at = 'now';
SELECT k FROM mom WHERE k IN (30, 31, 32);
SELECT 'now'::timestamptz = mom_now(), 'today'::date = CURRENT_DATE, k FROM mom WHERE k IN (1, 2) ORDER BY k;
SELECT 'now'::timestamptz IS NULL, 'now'::timestamp(0) IS NULL, 'tomorrow'::date IS NULL, 'now' FROM mom WHERE k = 1;
INSERT INTO mom_ref VALUES (3, 'now'), (4, 'now'::timestamptz);
SELECT k, at = now() FROM mom_ref WHERE k > 2 ORDER BY k;
ROLLBACK;
--@ params: now
INSERT INTO mom_at VALUES ($1, 1);
DELETE FROM mom_at;
--@ params: today
INSERT INTO mom_day VALUES ($1, 1);
SELECT DISTINCT day = CURRENT_DATE FROM mom_day;
--@ params: today
SELECT DISTINCT v FROM mom_day WHERE day = $1;
BEGIN;
--@ params: now
UPDATE mom SET at = $1 WHERE k IN (1, 2, 3);
SELECT k, at = now() FROM mom WHERE k < 4 ORDER BY k;
ROLLBACK;
-- They are words elsewhere.
INSERT INTO mom (k, note) VALUES (40, 'now'), (41, 'today');
SELECT k FROM mom WHERE note = 'today';
SELECT k, note FROM mom WHERE note IN ('now', 'today') ORDER BY k;
--@ params: now
SELECT k FROM mom WHERE note = $1;

-- A text that comes again is read again: its words are those of each transaction.
CREATE TABLE mom_again (k int PRIMARY KEY, at timestamptz, ts timestamp);
--@ cluster: SELECT create_distributed_table('mom_again', 'k')
INSERT INTO mom_again (k, at) VALUES (1, 'now'::timestamptz);
INSERT INTO mom_again (k, at) VALUES (2, 'now'::timestamptz);
INSERT INTO mom_again (k, at) VALUES (3, 'now'::timestamptz);
INSERT INTO mom_again (k, at) VALUES (4, 'now'::timestamptz);
INSERT INTO mom_again (k, at) VALUES (5, 'now'::timestamptz);
INSERT INTO mom_again (k, at) VALUES (6, 'now'::timestamptz);
SELECT count(DISTINCT at) FROM mom_again;
CREATE TABLE mom_seen (at timestamptz, ts timestamp);
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
UPDATE mom_again SET at = timestamptz 'now', ts = 'now' WHERE k = 1;
INSERT INTO mom_seen SELECT at, ts FROM mom_again WHERE k = 1;
SELECT count(DISTINCT at), count(DISTINCT ts), bool_and(at = ts) FROM mom_seen;
UPDATE mom_again SET at = now() WHERE k = 2;
SELECT count(*) FROM mom_again WHERE k = 2 AND at BETWEEN 'yesterday' AND 'now';
UPDATE mom_again SET at = now() WHERE k = 2;
SELECT count(*) FROM mom_again WHERE k = 2 AND at BETWEEN 'yesterday' AND 'now';
UPDATE mom_again SET at = now() WHERE k = 2;
SELECT count(*) FROM mom_again WHERE k = 2 AND at BETWEEN 'yesterday' AND 'now';
UPDATE mom_again SET at = now() WHERE k = 2;
SELECT count(*) FROM mom_again WHERE k = 2 AND at BETWEEN 'yesterday' AND 'now';
UPDATE mom_again SET at = now() WHERE k = 2;
SELECT count(*) FROM mom_again WHERE k = 2 AND at BETWEEN 'yesterday' AND 'now';
UPDATE mom_again SET at = now() WHERE k = 3;
SELECT count(*) FROM mom_again WHERE k = 3 AND at < date 'tomorrow' AND at <= timestamptz 'now';
UPDATE mom_again SET at = now() WHERE k = 3;
SELECT count(*) FROM mom_again WHERE k = 3 AND at < date 'tomorrow' AND at <= timestamptz 'now';
UPDATE mom_again SET at = now() WHERE k = 3;
SELECT count(*) FROM mom_again WHERE k = 3 AND at < date 'tomorrow' AND at <= timestamptz 'now';
UPDATE mom_again SET at = now() WHERE k = 3;
SELECT count(*) FROM mom_again WHERE k = 3 AND at < date 'tomorrow' AND at <= timestamptz 'now';
UPDATE mom_again SET at = now() WHERE k = 3;
SELECT count(*) FROM mom_again WHERE k = 3 AND at < date 'tomorrow' AND at <= timestamptz 'now';
DROP TABLE mom_seen;
INSERT INTO mom_again (k, at) SELECT k, now() FROM generate_series(11, 19) k;

-- What a word is compared with is looked for where it stands.
WITH gone AS (DELETE FROM mom_day WHERE day < '1900-01-01') UPDATE mom_again SET k = k WHERE at < 'now';
WITH gone AS (DELETE FROM mom_day WHERE day < '1900-01-01') DELETE FROM mom_again WHERE k > 17 AND at < 'now';
SELECT m.at > 'now', count(*) FROM mom_again m JOIN local_notes l ON l.id = m.k GROUP BY at > 'now';
SELECT DISTINCT m.at > 'now' FROM mom_again m JOIN local_notes l ON l.id = m.k ORDER BY at > 'now';
SELECT count(*) FROM (mom_again m JOIN regions r ON r.tax >= 0 OR r.tax IS NULL) AS j(k, ts, at) WHERE at < 'now';
SELECT max(CASE WHEN now() IS NULL THEN 1 ELSE m.k END) FROM mom_again m JOIN local_notes l ON l.id = m.k ORDER BY 1 FETCH FIRST ROW WITH TIES;
SELECT min(CASE WHEN now() IS NULL THEN 1 ELSE m.k END), generate_series(1, 2) FROM mom_again m JOIN local_notes l ON l.id = m.k;
BEGIN;
SELECT count(*) FROM mom_again WHERE at < now();
CREATE TABLE mom_made AS SELECT DISTINCT tableoid::regclass::text AS t FROM mom_again WHERE at < 'now';
CREATE TABLE mom_also AS SELECT k FROM mom_again WHERE at < 'now' AND k * 1 = (SELECT min(m.k) FROM mom_again m WHERE mom_now() IS NOT NULL);
SELECT * FROM mom_made, mom_also;
ROLLBACK;
BEGIN;
INSERT INTO mom_again (k, at) VALUES (21, now());
CREATE TABLE mom_made AS SELECT at = 'now' AS same FROM mom_again WHERE k = 21;
SELECT * FROM mom_made;
ROLLBACK;
BEGIN;
UPDATE mom_again SET at = 'now' WHERE k < 5;
SELECT k FROM mom_again WHERE at = 'now' ORDER BY k;
SELECT count(*), count(*) FILTER (WHERE at < 'now') FROM mom_again WHERE at <= 'now' AND at > 'yesterday';
DELETE FROM mom_again WHERE at = 'now';
SELECT count(*) FROM mom_again;
ROLLBACK;
DROP TABLE mom_again;

-- A statement that has run in a transaction of one time has another in the next.
CREATE TABLE mom_default (k int PRIMARY KEY, at timestamptz DEFAULT now());
--@ cluster: SELECT create_distributed_table('mom_default', 'k')
PREPARE mom_put AS INSERT INTO mom_default (k) VALUES ($1);
BEGIN;
SELECT count(*) FROM mom_default WHERE at < now();
EXECUTE mom_put(1);
SELECT at = now() FROM mom_default WHERE k = 1;
COMMIT;
EXECUTE mom_put(2);
EXECUTE mom_put(3);
SELECT count(DISTINCT at) FROM mom_default;
DEALLOCATE mom_put;
-- Words inside of other values.
UPDATE mom_default SET at = now() WHERE k = 1;
SELECT k FROM mom_default WHERE k = 1 AND at <@ '(yesterday,now]'::tstzrange;
UPDATE mom_default SET at = now() WHERE k = 1;
SELECT k FROM mom_default WHERE k = 1 AND at <@ '(yesterday,now]'::tstzrange;
UPDATE mom_default SET at = now() WHERE k = 1;
SELECT k FROM mom_default WHERE k = 1 AND at <@ '(yesterday,now]'::tstzrange;
UPDATE mom_default SET at = now() WHERE k = 1;
SELECT k FROM mom_default WHERE k = 1 AND at <@ '(yesterday,now]'::tstzrange;
UPDATE mom_default SET at = now() WHERE k = 1;
SELECT k FROM mom_default WHERE k = 1 AND at = ANY ('{now,yesterday}'::timestamptz[]) IS NOT NULL;
UPDATE mom_default SET at = now();
SELECT k, max(at) <= 'now' FROM mom_default GROUP BY k HAVING max(at) <= 'now' ORDER BY k;
UPDATE mom_default SET at = now();
SELECT k % 2, count(*) FROM mom_default GROUP BY 1 HAVING max(at) <= 'now' ORDER BY 1;
UPDATE mom_default SET at = now();
SELECT k % 2, count(*) FROM mom_default GROUP BY 1 HAVING max(at) <= 'now' ORDER BY 1;
DROP TABLE mom_default;
