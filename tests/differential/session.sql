--@ include: schema.sql
-- What belongs to a session follows the client and never leaks.

SHOW search_path;
SET search_path = pg_temp, public;
SELECT count(*) FROM users;
CREATE SCHEMA other;
CREATE TABLE other.users (id int PRIMARY KEY, only_here text);
--@ cluster: SELECT create_distributed_table('other.users', 'id')
INSERT INTO other.users VALUES (1, 'other one'), (2, 'other two'), (3, 'other three');
SELECT count(*) FROM users;
SELECT count(*) FROM other.users;
SET search_path = other, public;
SELECT * FROM users;
SELECT * FROM users WHERE id = 2;
SELECT only_here, p.name FROM users u JOIN public.users p ON p.id = u.id;
--@ on: b
SELECT count(*) FROM users;
--@ params: 2
SELECT * FROM users WHERE id = $1;
INSERT INTO users VALUES (4, 'into other');
SHOW search_path;
SET search_path = nowhere;
--@ error: 42P01
SELECT * FROM users;
SELECT count(*) FROM public.users;
SET search_path = '';
--@ error: 42P01
SELECT * FROM users;
RESET search_path;
SELECT count(*) FROM users;
SELECT only_here FROM other.users WHERE id = 4;
SELECT set_config('search_path', 'other', false);
SELECT count(*) FROM users;
SELECT current_schema(), current_schemas(false);
SET search_path TO DEFAULT;
BEGIN;
SET LOCAL search_path = other;
SELECT count(*) FROM users;
COMMIT;
SELECT count(*) FROM users;
BEGIN;
SET search_path = other;
SELECT count(*) FROM users;
ROLLBACK;
SELECT count(*) FROM users;
BEGIN;
SAVEPOINT a;
SET search_path = other;
SELECT count(*) FROM users;
ROLLBACK TO a;
SELECT count(*) FROM users;
COMMIT;

-- How values are read and shown.
SET timezone = 'Asia/Tokyo';
SELECT id, created FROM users WHERE id < 4;
SELECT created FROM users WHERE id = 9;
SELECT max(created) FROM users;
SELECT count(*) FROM users WHERE created > '2020-01-10 12:00';
SELECT created::date, count(*) FROM users GROUP BY 1;
--@ ordered
SELECT date_trunc('day', created) AS d, count(*) FROM users GROUP BY d ORDER BY d LIMIT 5;
INSERT INTO users (id, created) VALUES (700, '2020-01-01 00:00');
SET TIME ZONE 'UTC';
SELECT created FROM users WHERE id = 700;
SHOW timezone;
SET TIME ZONE INTERVAL '-03:00' HOUR TO MINUTE;
SELECT created FROM users WHERE id IN (700, 1);
SET TIME ZONE LOCAL;
SET datestyle = 'SQL, DMY';
SELECT born, created AT TIME ZONE 'UTC' FROM users WHERE id < 3;
SELECT count(*) FROM users WHERE born < '03/02/1970';
SELECT min(placed), max(placed) FROM orders;
SHOW datestyle;
RESET datestyle;
SET intervalstyle = 'iso_8601';
SELECT took FROM events WHERE id < 5;
SELECT sum(took) FROM events;
RESET intervalstyle;
SET bytea_output = 'escape';
SELECT 'a\\001'::bytea, name::bytea FROM users WHERE id < 3;
RESET bytea_output;
SET extra_float_digits = 0;
SELECT value / 3 FROM events WHERE id < 5;
SELECT id, value / 3 FROM events WHERE kind = 'kind-3';
RESET extra_float_digits;
SET lc_monetary = 'C';
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SELECT 'a\tb', id FROM users WHERE name = 'user\0405' OR id = 1;
RESET standard_conforming_strings;
-- Bytes of another encoding: what is sent here as UTF-8 is then two characters for each.
SET client_encoding = 'LATIN1';
SHOW client_encoding;
--@ mode: simple extended
SELECT E'\u00fc', length('ü'), name FROM users WHERE id < 3;
SELECT 'ü', octet_length('ü'), convert_to('ü', 'UTF8');
SELECT id, E'gr\u00fc\u00df ' || name AS "größe" FROM users WHERE id < 5;
SELECT count(*), max(E'\u00e4' || name) FROM users;
--@ params: ä
SELECT $1::text, length($1::text), id FROM users WHERE id = 3;
--@ error: 22P05
SELECT E'\u20ac', id FROM users WHERE id < 3;
--@ error: 22P05
SELECT id, CASE WHEN id = 30 THEN E'\u0416' ELSE name END FROM users ORDER BY id;
CREATE TABLE words (id int, word text);
--@ cluster: SELECT create_distributed_table('words', 'word')
INSERT INTO words VALUES (1, 'ä'), (2, E'\u00e9t\u00e9'), (3, 'plain');
SELECT id, word, length(word) FROM words WHERE word = 'ä';
--@ params: ä
--@ params: plain
SELECT id, word, length(word) FROM words WHERE word = $1;
SELECT id, word FROM words ORDER BY id;
--@ error: 22P05
INSERT INTO words VALUES (4, 'x') RETURNING E'\u20ac';
SELECT id, word FROM words ORDER BY id;
UPDATE words SET id = id + 10 WHERE word = 'ä' RETURNING id, word;
COPY (SELECT id, word FROM words ORDER BY id) TO STDOUT;
COPY words FROM STDIN;
5	ö
6	plain
\.
SELECT id, word, length(word) FROM words ORDER BY id;
BEGIN;
SET LOCAL client_encoding = 'WIN1252';
SHOW client_encoding;
SELECT E'\u20ac', id FROM users WHERE id < 3;
COMMIT;
SHOW client_encoding;
BEGIN;
SET client_encoding = 'koi8-r';
SHOW client_encoding;
SELECT E'\u0436', id FROM users WHERE id < 3;
ROLLBACK;
SHOW client_encoding;
SET client_encoding TO 'iso-8859-15';
SHOW client_encoding;
SELECT E'\u20ac', id FROM users WHERE id < 3;
--@ error: 42703
SELECT "größe" FROM users;
SET client_encoding = SQL_ASCII;
SHOW client_encoding;
SELECT E'\u20ac', length('€'), id FROM users WHERE id < 3;
--@ error: 22023
SET client_encoding = 'nowhere';
--@ error: 0A000
SET client_encoding = 'MULE_INTERNAL';
-- Those of more than one byte for a character: every character of them is in crates/pgherd/tests/encodings.rs.
SET client_encoding = 'SJIS';
SHOW client_encoding;
SELECT E'\u8868', E'\uff71', id FROM users WHERE id < 3;
--@ error: 22P05
SELECT E'\u00e4', id FROM users WHERE id < 3;
SET client_encoding = 'GB18030';
SELECT E'\u8868 \u20ac', E'\U0001F600', name FROM users WHERE id < 3;
SET client_encoding = 'Shift_JIS_2004';
SHOW client_encoding;
SET client_encoding = 'UTF8';
DO $$ BEGIN PERFORM set_config('client_encoding', 'latin1', false); END $$;
SELECT E'\u00e4', name FROM users WHERE id < 3;
SET client_encoding = 'UTF8';
BEGIN;
SET LOCAL client_encoding = 'latin1';
SELECT E'\u00e4', name FROM users WHERE id < 3;
SAVEPOINT a;
SET client_encoding = 'WIN1252';
ROLLBACK TO a;
SHOW client_encoding;
SELECT E'\u00e4', name FROM users WHERE id < 3;
COMMIT;
SHOW client_encoding;
SELECT E'\u00e4', name FROM users WHERE id < 3;
SET NAMES 'LATIN1';
SHOW client_encoding;
RESET client_encoding;
SHOW client_encoding;
SELECT id, word, length(word) FROM words ORDER BY id;
DROP TABLE words;
SET array_nulls = off;
SELECT '{NULL}'::text[], id FROM users WHERE id = 1;
RESET array_nulls;
SET xmlbinary = 'hex';
SET application_name = 'corpus';
SHOW application_name;
SELECT current_setting('application_name');
SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid();
SET statement_timeout = '5s';
SHOW statement_timeout;
RESET statement_timeout;
SET "my.setting" = 'mine';
SHOW my.setting;
SELECT current_setting('my.setting'), id FROM users WHERE id < 3;
SELECT current_setting('my.setting') FROM users WHERE id = 2;
SELECT set_config('my.setting', 'changed', false);
SELECT count(*) FROM users WHERE current_setting('my.setting') = 'changed';
--@ on: b
SELECT current_setting('my.setting', true);
--@ on: b
SHOW application_name;
--@ on: b
SHOW timezone;
SET default_transaction_read_only = on;
--@ error: 25006
UPDATE users SET score = 1 WHERE id = 1;
--@ error: 25006
INSERT INTO clicks VALUES (1), (2);
SET default_transaction_read_only = off;
--@ on: b
SELECT count(*) FROM (SELECT 1 FROM users FOR UPDATE) t;
BEGIN;
SET LOCAL timezone = 'America/New_York';
SELECT created FROM users WHERE id = 1;
COMMIT;
SELECT created FROM users WHERE id = 1;
--@ mode: simple
DISCARD ALL;
RESET ALL;
SHOW application_name;
-- What a connection has had a setting for, it has an empty one for.
SELECT coalesce(current_setting('my.setting', true), '');

-- Temporary tables.
CREATE TEMP TABLE tmp (id bigint, v text);
INSERT INTO tmp VALUES (1, 'one'), (14, 'fourteen');
SELECT * FROM tmp;
SELECT t.v, u.name FROM tmp t JOIN users u ON u.id = t.id;
INSERT INTO tmp SELECT id, name FROM users WHERE id < 4;
SELECT count(*) FROM tmp;
--@ on: b
--@ error: 42P01
SELECT * FROM tmp;
CREATE TEMP TABLE regions (code text);
SELECT count(*) FROM regions;
SELECT count(*) FROM public.regions;
DROP TABLE regions;
SELECT count(*) FROM regions;
CREATE TEMP TABLE users (id bigint, shadow bool);
INSERT INTO users VALUES (1, true);
SELECT * FROM users;
SELECT count(*) FROM public.users;
DROP TABLE pg_temp.users;
SELECT count(*) FROM users;
BEGIN;
CREATE TEMP TABLE gone (a int) ON COMMIT DROP;
INSERT INTO gone SELECT user_id FROM orders;
SELECT count(*) FROM gone;
COMMIT;
--@ error: 42P01
SELECT * FROM gone;
SELECT id, name INTO TEMP copied FROM users WHERE id < 6;
SELECT * FROM copied;
CREATE TEMP VIEW tv AS SELECT country, count(*) AS n FROM users GROUP BY country;
SELECT * FROM tv;
CREATE TEMP TABLE as_select AS SELECT user_id, sum(total) AS s FROM orders GROUP BY user_id;
SELECT count(*), sum(s) FROM as_select;
UPDATE users u SET name = t.v FROM tmp t WHERE t.id = u.id AND t.id = 14 RETURNING u.id, u.name;
INSERT INTO clicks (user_id, url) SELECT id, 'tmp ' || v FROM tmp WHERE v IS NOT NULL;
SELECT user_id, url FROM clicks WHERE url LIKE 'tmp %';
DELETE FROM clicks WHERE user_id IN (SELECT id FROM tmp) AND url LIKE 'tmp %';

-- Advisory locks, notifications, roles.
SELECT pg_try_advisory_lock(42);
--@ on: b
SELECT pg_try_advisory_lock(42);
SELECT pg_advisory_unlock(42);
--@ on: b
SELECT pg_try_advisory_lock(42);
--@ on: b
SELECT pg_advisory_unlock(42);
BEGIN;
SELECT pg_advisory_xact_lock(43);
--@ on: b
SELECT pg_try_advisory_xact_lock(43);
COMMIT;
--@ on: b
SELECT pg_try_advisory_xact_lock(43);
LISTEN corpus;
NOTIFY corpus, 'hello';
SELECT pg_listening_channels();
UNLISTEN *;
SELECT pg_backend_pid() = pg_backend_pid();
SELECT inet_client_addr() = '127.0.0.1', id FROM users WHERE id = 1;
SELECT count(DISTINCT inet_client_addr()) FROM users;
CREATE ROLE corpus_reader;
GRANT SELECT ON users TO corpus_reader;
SET ROLE corpus_reader;
SELECT current_user, count(*) FROM users;
SELECT name FROM users WHERE id = 5;
--@ error: 42501
SELECT count(*) FROM orders;
--@ error: 42501
SELECT id FROM orders WHERE user_id = 14;
--@ error: 42501
DELETE FROM users WHERE id = 5;
--@ on: b
SELECT current_user = session_user;
RESET ROLE;
SELECT current_user = session_user;
BEGIN;
SET LOCAL ROLE corpus_reader;
--@ error: 42501
UPDATE users SET score = 1;
ROLLBACK;
SET SESSION AUTHORIZATION corpus_reader;
SELECT session_user;
RESET SESSION AUTHORIZATION;
REVOKE SELECT ON users FROM corpus_reader;
SET ROLE corpus_reader;
--@ error: 42501
SELECT name FROM users WHERE id = 5;
RESET ROLE;
DROP ROLE corpus_reader;

-- RESET ALL keeps the role; RESET in a block is over for every server with it.
CREATE TABLE reset_rows (k int PRIMARY KEY, who text DEFAULT current_user);
--@ cluster: SELECT create_distributed_table('reset_rows', 'k')
DROP ROLE IF EXISTS reset_bob;
CREATE ROLE reset_bob;
GRANT SELECT, INSERT ON reset_rows TO reset_bob;
SET ROLE reset_bob;
INSERT INTO reset_rows (k) VALUES (1);
INSERT INTO reset_rows (k) VALUES (2), (3);
RESET ALL;
SELECT current_user;
INSERT INTO reset_rows (k) VALUES (4);
--@ error: 42501
DELETE FROM reset_rows WHERE k = 4;
--@ error: 42501
DELETE FROM reset_rows;
BEGIN;
RESET ALL;
INSERT INTO reset_rows (k) VALUES (5);
COMMIT;
--@ error: 42501
DELETE FROM reset_rows WHERE k = 5;
BEGIN;
RESET ROLE;
UPDATE reset_rows SET who = who || '!' WHERE k = 1;
SELECT count(*) FROM reset_rows WHERE k = 1;
SELECT count(*) FROM reset_rows;
COMMIT;
SET ROLE reset_bob;
--@ error: 42501
DELETE FROM reset_rows WHERE k = 1;
--@ error: 42501
UPDATE reset_rows SET who = 'x';
INSERT INTO reset_rows (k) VALUES (6);
BEGIN;
SET ROLE NONE;
INSERT INTO reset_rows (k) SELECT g FROM generate_series(11, 16) g;
SET ROLE reset_bob;
INSERT INTO reset_rows (k) SELECT g FROM generate_series(21, 26) g;
COMMIT;
--@ error: 42501
DELETE FROM reset_rows WHERE k = 11;
RESET ROLE;
SELECT k, who = 'reset_bob' FROM reset_rows;
SET datestyle = 'SQL, DMY';
SELECT max('2024-03-01'::date::text) FROM reset_rows WHERE k = 1;
BEGIN;
RESET datestyle;
SELECT max('2024-03-01'::date::text) FROM reset_rows WHERE k = 1;
COMMIT;
SET datestyle = 'SQL, DMY';
SELECT max('2024-03-01'::date::text) FROM reset_rows WHERE k = 1;
RESET datestyle;
DROP TABLE reset_rows;
DROP ROLE reset_bob;

-- A dropped temporary table is there again after a rollback, and hides the other again.
CREATE TEMP TABLE users (id bigint, shadow bool);
INSERT INTO users VALUES (1, true);
BEGIN;
DROP TABLE users;
SELECT count(*) FROM users;
ROLLBACK;
SELECT * FROM users;
BEGIN;
SAVEPOINT s;
DROP TABLE pg_temp.users;
SELECT count(*) FROM users;
ROLLBACK TO s;
SELECT * FROM users;
UPDATE users SET shadow = false;
COMMIT;
SELECT * FROM users;
BEGIN;
DISCARD TEMP;
SELECT count(*) FROM users;
ROLLBACK;
SELECT * FROM users;
BEGIN;
DO $$ BEGIN DROP TABLE pg_temp.users; END $$;
SELECT count(*) FROM users;
ROLLBACK;
SELECT * FROM users;
DROP TABLE users;
SELECT count(*) FROM users;

-- set_config in every form: the other servers follow it for as long as it lasts.
SELECT set_config('my.a', coalesce(current_setting('my.none', true), '') || 'x', false);
SELECT current_setting('my.a', true), count(*) FROM users;
SELECT count(*) FROM users WHERE current_setting('my.a') = 'x';
BEGIN;
SELECT set_config('my.tenant', 'a', 'on'::bool);
SELECT count(*) FROM users WHERE current_setting('my.tenant') = 'a';
COMMIT;
SELECT current_setting('my.tenant', true);
SELECT count(*) FROM users WHERE current_setting('my.tenant', true) = 'a';
BEGIN;
SELECT set_config('my.tenant', 'b', 't');
SELECT count(*) FROM users WHERE current_setting('my.tenant') = 'b';
COMMIT;
SELECT count(*) FROM users WHERE current_setting('my.tenant', true) = 'b';
BEGIN;
SELECT set_config('my.tenant', 'c', true), set_config('my.b', 'd', false);
SELECT count(*) FROM users WHERE current_setting('my.tenant') = 'c' AND current_setting('my.b') = 'd';
SAVEPOINT s;
SELECT set_config('my.b', 'e', false);
SELECT count(*) FROM users WHERE current_setting('my.b') = 'e';
ROLLBACK TO s;
SELECT count(*) FROM users WHERE current_setting('my.b') = 'd';
COMMIT;
SELECT count(*) FROM users WHERE current_setting('my.tenant', true) = 'c';
SELECT count(*) FROM users WHERE current_setting('my.b') = 'd';
--@ types: 25, 25, 16
--@ params: my.p, one, false
SELECT set_config($1, $2, $3);
SELECT count(*) FROM users WHERE current_setting('my.p', true) = 'one';
BEGIN;
--@ types: 25, 25, 16
--@ params: my.p, two, true
SELECT set_config($1, $2, $3);
SELECT count(*) FROM users WHERE current_setting('my.p') = 'two';
COMMIT;
SELECT count(*) FROM users WHERE current_setting('my.p') = 'one';
--@ types: 25, 25, 16
--@ params: TimeZone, Asia/Tokyo, false
SELECT set_config($1, $2, $3);
SELECT created FROM users WHERE id = 1;
PREPARE configures AS SELECT set_config($1, $2, false);
EXECUTE configures ('timezone', 'America/New_York');
SELECT created FROM users WHERE id = 1;
SELECT set_config(name, 'UTC', false) FROM pg_settings WHERE name = 'TimeZone';
SELECT created FROM users WHERE id = 1;
DEALLOCATE configures;
RESET timezone;

-- Numbers behind SET seed are the session's.
SET seed = 0.5;
SELECT count(*) FROM users;
SELECT random() < 1, count(*) FROM orders GROUP BY 1;

-- A key that a server reads under the session's settings, also where they are the block's.
CREATE TABLE ticks (at timestamptz, v int);
CREATE TABLE days (day date PRIMARY KEY, v int);
CREATE TABLE spans (took interval, v int);
--@ cluster: SELECT create_distributed_table('ticks', 'at'), create_distributed_table('days', 'day'), create_distributed_table('spans', 'took')
INSERT INTO ticks SELECT '2024-01-01 00:00+09'::timestamptz + i * interval '1 hour', i FROM generate_series(0, 9) i;
INSERT INTO days SELECT date '2024-02-03' + i, i FROM generate_series(0, 9) i;
INSERT INTO days VALUES ('2024-03-02', 20), ('2024-04-02', 21);
INSERT INTO spans VALUES ('-1 day -2 hours', 1), ('-1 day +2 hours', 2);
BEGIN;
SET LOCAL timezone = 'Asia/Tokyo';
SELECT v FROM ticks WHERE at = '2024-01-01 00:00';
SELECT v FROM ticks WHERE at IN ('2024-01-01 01:00', '2024-01-01 02:00') ORDER BY v;
UPDATE ticks SET v = 100 WHERE at = '2024-01-01 03:00';
INSERT INTO ticks VALUES ('2024-01-02 00:00', 50);
DELETE FROM ticks WHERE at = '2024-01-01 04:00';
SELECT set_config('timezone', 'America/New_York', true);
INSERT INTO ticks VALUES ('2024-01-02 00:00', 51);
RESET timezone;
INSERT INTO ticks VALUES ('2024-01-02 00:00', 52);
COMMIT;
SELECT * FROM ticks ORDER BY at, v;
SELECT v FROM ticks WHERE at = '2024-01-02 00:00+09';
BEGIN;
SET LOCAL datestyle = 'SQL, DMY';
SELECT v FROM days WHERE day = '02/03/2024';
SAVEPOINT s;
SET LOCAL datestyle = 'SQL, MDY';
SELECT v FROM days WHERE day = '02/03/2024';
ROLLBACK TO s;
SELECT v FROM days WHERE day IN ('02/03/2024', '02/04/2024') ORDER BY v;
COMMIT;
BEGIN;
SET LOCAL intervalstyle = 'sql_standard';
SELECT v FROM spans WHERE took = '-1 2:00:00';
COMMIT;

-- What ALTER DATABASE sets for new sessions is in force as if each had set it.
CREATE TABLE said (k text, v int);
CREATE TABLE floats (k int, x float8, at timestamptz);
--@ cluster: SELECT create_distributed_table('said', 'k'), create_distributed_table('floats', 'k')
INSERT INTO said VALUES (E'a\\b', 1), (E'c\\\\d', 2), ('it''s', 3);
INSERT INTO floats VALUES (1, 0.1::float8 + 0.2::float8, '2024-01-01 00:00+05:30'), (2, 0.1, '2023-01-01 00:00+05:30');
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET escape_string_warning = off', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = 0', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET datestyle = ''SQL, DMY''', current_database()); END $$;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Kolkata''', current_database()); END $$;
--@ on: by_default
SELECT v FROM said WHERE k = 'a\\b';
--@ on: by_default
SELECT max(x) > 0.3, max(x), min(at), max(at) FROM floats;
--@ on: by_default
CREATE TABLE floats_too AS SELECT * FROM floats;
--@ on: by_default
--@ cluster: SELECT create_distributed_table('floats_too', 'k')
--@ on: by_default
INSERT INTO floats SELECT k + 2, x, at FROM floats_too;
SELECT k, x, at AT TIME ZONE 'UTC' FROM floats ORDER BY k;
SELECT k, x, at AT TIME ZONE 'UTC' FROM floats_too ORDER BY k;
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET ALL', current_database()); END $$;

-- `= NULL` that means IS NULL.
SET transform_null_equals = on;
SELECT count(*) FROM clicks WHERE user_id = NULL;
SELECT count(*) FROM clicks WHERE NULL = user_id;
SELECT count(*) FROM clicks WHERE url = NULL OR user_id = NULL;
SELECT count(*) FROM users u JOIN clicks c ON c.user_id = u.id WHERE c.ms = NULL;
UPDATE clicks SET ms = 1 WHERE user_id = NULL AND url = 'nowhere';
RESET transform_null_equals;
SELECT count(*) FROM clicks WHERE user_id = NULL;

-- A path makes relations temporary; they hide distributed ones.
CREATE TABLE hidden (k int PRIMARY KEY, v text);
CREATE TABLE hidden_too (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('hidden', 'k'), create_distributed_table('hidden_too', 'k')
INSERT INTO hidden SELECT g, 'far' FROM generate_series(1, 5) g;
INSERT INTO hidden_too SELECT g, 'far' FROM generate_series(1, 5) g;
SET search_path = pg_temp, public;
CREATE TABLE hidden (k int, v text);
INSERT INTO hidden VALUES (1, 'near');
SELECT * FROM hidden;
SELECT v FROM hidden WHERE k = 1;
UPDATE hidden SET v = 'nearer';
CREATE TABLE hidden_too AS SELECT 2 AS k, 'near' AS v;
SELECT * FROM hidden_too;
DROP TABLE hidden_too;
CREATE VIEW hidden_too AS SELECT 3 AS k, v FROM hidden;
SELECT * FROM hidden_too;
RESET search_path;
SELECT * FROM hidden;
SELECT * FROM public.hidden ORDER BY k;
DROP VIEW hidden_too;
DROP TABLE hidden;
SELECT count(*) FROM hidden;
BEGIN;
SET LOCAL search_path = pg_temp, public;
CREATE TABLE hidden (k int, v text);
INSERT INTO hidden VALUES (1, 'near');
SELECT * FROM hidden;
ROLLBACK;
SELECT count(*) FROM hidden;
DROP TABLE hidden, hidden_too;

-- A setting of the user's own: missing before the session has set it, empty when it is reset. Another session's
-- connection is not taken for one where it was never set.
--@ on: never_1
SELECT current_setting('own.a', true), current_setting('own.b', true);
--@ on: sets_1
SET own.a = '1';
--@ on: sets_1
SELECT current_setting('own.a', true), current_setting('own.b', true), count(*) FROM users;
--@ on: sets_2
SELECT set_config('own.b', '2', false);
--@ on: sets_2
SELECT count(*) FROM users WHERE current_setting('own.a', true) IS NULL AND current_setting('own.b', true) = '2';
--@ on: never_1
SELECT current_setting('own.a', true), current_setting('own.b', true);
--@ on: never_2
SELECT current_setting('own.a', true), current_setting('own.b', true);
--@ on: never_2
SELECT count(*) FROM users WHERE current_setting('own.a', true) IS NULL AND current_setting('own.b', true) IS NULL;
--@ on: never_2
SELECT count(*) FROM users WHERE id = 1 AND current_setting('own.a', true) IS NULL;
--@ on: sets_1
RESET own.a;
--@ on: sets_1
SELECT current_setting('own.a', true), count(*) FROM users WHERE current_setting('own.a', true) = '';
--@ on: sets_2
RESET ALL;
--@ on: sets_2
SELECT current_setting('own.a', true), current_setting('own.b', true);
--@ on: sets_2
SELECT count(*) FROM users WHERE current_setting('own.b', true) = '';
--@ on: sets_1
SET own.a = '1';
--@ on: sets_1
DISCARD ALL;
--@ on: sets_1
SELECT current_setting('own.a', true), count(*) FROM users WHERE current_setting('own.a', true) = '';
--@ on: local_1
BEGIN;
--@ on: local_1
SET LOCAL own.c = '3';
--@ on: local_1
SELECT count(*) FROM users WHERE current_setting('own.c', true) = '3';
--@ on: local_1
COMMIT;
--@ on: local_1
SELECT current_setting('own.c', true);
--@ on: local_1
SELECT count(*) FROM users WHERE current_setting('own.c', true) = '';
--@ on: local_2
BEGIN;
--@ on: local_2
SET own.c = '3';
--@ on: local_2
SET LOCAL own.d TO DEFAULT;
--@ on: local_2
ROLLBACK;
--@ on: local_2
SELECT current_setting('own.c', true), current_setting('own.d', true), count(*) FROM users;
--@ on: never_2
SELECT current_setting('own.c', true), current_setting('own.d', true), count(*) FROM users;
--@ on: never_3
SELECT current_setting('own.c', true), current_setting('own.d', true), count(*) FROM users WHERE id = 2;
--@ on: never_3
SELECT count(*) FROM users WHERE id = 2 AND current_setting('own.c', true) IS NULL;
--@ on: local_2
SET LOCAL own.e = '1';
--@ on: local_2
SELECT current_setting('own.e', true), count(*) FROM users;
--@ on: local_2
--@ error: 22012
SELECT set_config('own.f', '1', false), 1 / (count(*) - count(*)) FROM users;
--@ on: never_3
SELECT current_setting('own.e', true), current_setting('own.f', true), count(*) FROM users;
--@ on: never_2
SELECT current_setting('own.e', true), current_setting('own.f', true);
--@ on: never_3
SET plpgsql.variable_conflict = use_column;
--@ on: never_3
RESET ALL;
--@ on: never_3
SELECT count(*) FROM users;
--@ on: never_3
BEGIN;
--@ on: never_3
SET LOCAL plpgsql.variable_conflict = use_variable;
--@ on: never_3
SELECT count(*) FROM users;
--@ on: never_3
COMMIT;
--@ on: never_3
DISCARD ALL;
--@ on: never_3
SELECT count(*) FROM users WHERE id < 5;
--@ on: never_3
--@ error: 42704
SHOW own.c;
--@ on: sets_3
UPDATE pg_settings SET setting = 'Asia/Tokyo' WHERE name = 'TimeZone';
--@ on: sets_3
SELECT min(created) FROM users;
--@ on: sets_3
SELECT created FROM users WHERE id = 1;
--@ on: sets_3
BEGIN;
--@ on: sets_3
UPDATE pg_settings SET setting = 'UTC' WHERE name ILIKE 'timezone';
--@ on: sets_3
SELECT created FROM users WHERE id = 1;
--@ on: sets_3
ROLLBACK;
--@ on: sets_3
SELECT created FROM users WHERE id = 1;
