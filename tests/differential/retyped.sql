--@ include: schema.sql
-- ALTER COLUMN … TYPE … USING with functions of users', numbers of objects as values, keys told from the present time.

CREATE FUNCTION twice(x int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT (2 * x)::text $$;
CREATE FUNCTION thrice(x text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 3 * length(twice(x::int)); END $$;
CREATE TABLE retyped (k int PRIMARY KEY, v int, o oid);
--@ cluster: SELECT create_distributed_table('retyped', 'k')
INSERT INTO retyped SELECT g, g, g FROM generate_series(1, 20) g;
ALTER TABLE retyped ALTER v TYPE text USING twice(v);
SELECT k, v FROM retyped ORDER BY k;
ALTER TABLE retyped ALTER COLUMN v TYPE int USING thrice(v);
SELECT k, v FROM retyped ORDER BY k;
CREATE FUNCTION total(x int) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT x + count(*) FROM retyped $$;
BEGIN;
--@ refused: 0A000
ALTER TABLE retyped ALTER v TYPE bigint USING total(v);
ROLLBACK;
ALTER TABLE retyped ALTER v TYPE bigint USING v * 2 + length(twice(v));
BEGIN;
UPDATE retyped SET v = 100 WHERE k = 1;
ALTER TABLE retyped ALTER v TYPE text USING twice(v::int) || now();
SELECT count(DISTINCT right(v, 20)) FROM retyped;
ROLLBACK;
CREATE TABLE retyped_r (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_reference_table('retyped_r')
INSERT INTO retyped_r SELECT g, g FROM generate_series(1, 5) g;
ALTER TABLE retyped_r ALTER v TYPE text USING twice(v);
SELECT * FROM retyped_r ORDER BY k;
SELECT k FROM retyped WHERE o = 3::oid;
SELECT k FROM retyped WHERE k = 3::oid;
CREATE VIEW retyped_o AS SELECT * FROM retyped WHERE o = 5;
SELECT k FROM retyped_o;
ALTER TABLE retyped ADD COLUMN at timestamptz, ADD COLUMN n int;
ALTER TABLE retyped ALTER at TYPE text USING now()::text;
SELECT count(DISTINCT at) FROM retyped;
CREATE TABLE timed (at timestamptz PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('timed', 'at')
INSERT INTO timed VALUES ('now', 1);
INSERT INTO timed VALUES ('2020-01-01', 2), ('yesterday', 3);
SELECT count(*) FROM timed WHERE at <= 'now';
DROP VIEW retyped_o;
DROP FUNCTION total;
DROP TABLE retyped, timed, retyped_r;
DROP FUNCTION twice, thrice;

-- Values of parameters of another type than the distribution column's.
CREATE TABLE typed_keys (k int PRIMARY KEY, v text);
CREATE TABLE typed_big (k bigint PRIMARY KEY, v text);
CREATE TABLE typed_text (k text PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('typed_keys', 'k'), create_distributed_table('typed_big', 'k'), create_distributed_table('typed_text', 'k')
--@ mode: prepared
--@ types: 1700, 25
--@ params: 904.4, 'rounded'
INSERT INTO typed_keys VALUES ($1, $2);
--@ types: 1700, 25
--@ params: 17, 'whole'
INSERT INTO typed_keys VALUES ($1, $2), ($1 + 0.6, 'more');
--@ mode: prepared
--@ types: 701, 25
--@ params: 2.5, 'even'
INSERT INTO typed_keys VALUES ($1, $2);
--@ mode: prepared
--@ types: 1700
--@ params: 7000000000.5
INSERT INTO typed_big VALUES ($1, 'big');
--@ error: 22003
--@ types: 1700
--@ params: 7000000000
INSERT INTO typed_keys VALUES ($1, 'big');
--@ types: 23
--@ params: 41
INSERT INTO typed_text VALUES ($1, 1);
--@ types: 1042
--@ params: 'padded   '
INSERT INTO typed_text VALUES ($1, 2);
SELECT k, v FROM typed_keys ORDER BY k;
SELECT k, v FROM typed_big;
SELECT k, length(k), v FROM typed_text ORDER BY v;
--@ types: 1700
--@ params: 904
SELECT v FROM typed_keys WHERE k = $1;
--@ mode: prepared
--@ types: 1700
--@ params: 904.4
SELECT v FROM typed_keys WHERE k = $1;
--@ types: 701
--@ params: 17
UPDATE typed_keys SET v = 'float' WHERE k = $1 RETURNING v;
--@ types: 21
--@ params: 18
DELETE FROM typed_keys WHERE k = $1 RETURNING k;
DROP TABLE typed_keys, typed_big, typed_text;
