-- A session in psql, given to one PostgreSQL and to a cluster (there with -v cluster=1): both print the same. Sizes and
-- object ids are not shown; files are written below :dir.
\set ON_ERROR_STOP off
\set QUIET on
\pset pager off
\pset null '(null)'
CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL, score numeric(8,2) DEFAULT 0, born date, tags text[]);
CREATE TABLE orders (user_id bigint, id int, total numeric(10,2), PRIMARY KEY (user_id, id));
CREATE TABLE regions (code char(2) PRIMARY KEY, name text);
CREATE TABLE notes (id serial PRIMARY KEY, body text);
INSERT INTO users SELECT i, 'user ' || i, i * 1.5, date '2000-01-01' + i, ARRAY['a', 'b' || i] FROM generate_series(1, 20) i;
\if :{?cluster}
  SET client_min_messages = warning;
  \o /dev/null
  SELECT create_distributed_table('users', 'id');
  SELECT create_distributed_table('orders', 'user_id');
  SELECT create_reference_table('regions');
  \o
  RESET client_min_messages;
\endif
\unset QUIET
CREATE INDEX orders_total ON orders (total);
ALTER TABLE orders ADD CONSTRAINT orders_user_fk FOREIGN KEY (user_id) REFERENCES users (id);
CREATE VIEW rich AS SELECT * FROM users WHERE score > 20;
COMMENT ON TABLE users IS 'people';

\echo describe
\d
\d users
\d+ users
\d orders
\d+ rich
\d notes
\di
\dv
\ds
\dn
\df
\dp users
\dT
\sv rich
\d nowhere

\echo copy
\set file :dir '/users.tsv'
\set quoted '\'' :file '\''
\copy orders FROM PROGRAM 'for i in 1 2 3 4 5 6 7 8; do printf "%s\\t%s\\t%s.5\\n" $i $((i * 10)) $i; done'
\copy (SELECT * FROM users ORDER BY id) TO PROGRAM 'cat > /dev/null'
\copy orders TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';') WHERE
\copy (SELECT user_id, total FROM orders ORDER BY user_id) TO STDOUT WITH (FORMAT csv, HEADER)
\copy regions FROM STDIN CSV
de,Germany
fr,France
\.
COPY notes (body) FROM STDIN;
one
two
\.
COPY (SELECT id, name FROM users WHERE id < 4 ORDER BY id) TO STDOUT;
\copy orders FROM PROGRAM 'echo not a number'
\copy nowhere FROM '/dev/null'
SELECT count(*) FROM orders;

\echo variables
SELECT count(*) AS n, max(id) AS top FROM users \gset
\echo :n :top
SELECT name FROM users WHERE id = :top \gset best_
\echo :best_name
SELECT id, name FROM users WHERE id = 3 \gx
SELECT id, score FROM users WHERE id < 3 ORDER BY id \gdesc
SELECT format('SELECT %L AS made, count(*) FROM orders WHERE user_id <= %s', 'made ' || g, g) FROM generate_series(2, 4) g \gexec
SELECT id % 2 AS odd, id % 3 AS three, count(*) FROM users GROUP BY 1, 2 ORDER BY 1, 2 \crosstabview
SELECT 1 AS a \; SELECT name FROM users WHERE id = 5 \; SELECT count(*) FROM orders;
\set name 'o''hara'
INSERT INTO users (id, name) VALUES (100, :'name') RETURNING *;
\echo :ROW_COUNT :SQLSTATE :ERROR
UPDATE users SET score = score + 1;
\echo :ROW_COUNT
DELETE FROM users WHERE id = 100;

\echo errors
SELECT nope FROM users;
\echo :SQLSTATE :LAST_ERROR_MESSAGE
SELECT * FROM users WHERE id = 'x';
INSERT INTO users (id, name) VALUES (1, 'again');
\set VERBOSITY sqlstate
INSERT INTO users (id) VALUES (200);
\set VERBOSITY default
SELECT 1;

\echo transactions
BEGIN;
UPDATE users SET name = 'tx' WHERE id IN (1, 2, 3, 4);
SELECT count(*) FROM users WHERE name = 'tx';
SAVEPOINT s;
SELECT 1 / 0;
SELECT 'aborted';
ROLLBACK TO s;
SELECT count(*) FROM users WHERE name = 'tx';
COMMIT;
\set AUTOCOMMIT off
UPDATE users SET name = 'auto' WHERE id = 1;
ROLLBACK;
\set AUTOCOMMIT on
SELECT name FROM users WHERE id = 1;
\set ON_ERROR_ROLLBACK on
BEGIN;
INSERT INTO orders VALUES (1, 99, 5);
INSERT INTO orders VALUES (1, 99, 5);
SELECT count(*) FROM orders WHERE user_id = 1;
COMMIT;
\set ON_ERROR_ROLLBACK off

\echo cursors
\set FETCH_COUNT 3
SELECT id, name FROM users ORDER BY id LIMIT 8;
SELECT id FROM users WHERE id = 2;
\unset FETCH_COUNT

\echo settings
\encoding
SHOW search_path;
SET search_path = pg_catalog;
\dt users
RESET search_path;
\x on
SELECT id, name FROM users WHERE id = 7;
\x off
\t on
\a
SELECT id, name FROM users WHERE id IN (7, 8) ORDER BY id;
\a
\t off
\timing on
\timing off
EXPLAIN (COSTS off) SELECT 1;
\dt users
\drds
TABLE regions ORDER BY code;
DROP VIEW rich;
DROP TABLE orders, users, regions, notes;
\d
