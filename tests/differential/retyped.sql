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

-- Expressions of USING see all columns as they were, those that go included.
CREATE TABLE swapped (k int PRIMARY KEY, a int, b int, v text NOT NULL, w int);
CREATE TABLE swapped_r (k int PRIMARY KEY, a int, b int, v text NOT NULL, w int);
--@ cluster: SELECT create_distributed_table('swapped', 'k'), create_reference_table('swapped_r')
INSERT INTO swapped SELECT g, g, 100 + g, CASE WHEN g % 2 = 0 THEN '' ELSE g::text END, g * g FROM generate_series(1, 12) g;
INSERT INTO swapped_r SELECT * FROM swapped;
ALTER TABLE swapped ALTER a TYPE bigint USING b, ALTER b TYPE bigint USING a;
ALTER TABLE swapped_r ALTER a TYPE bigint USING b, ALTER b TYPE bigint USING a;
ALTER TABLE swapped ALTER v DROP NOT NULL, ALTER v TYPE int USING nullif(v, '')::int;
ALTER TABLE swapped_r ALTER v DROP NOT NULL, ALTER v TYPE int USING nullif(v, '')::int;
SELECT * FROM swapped ORDER BY k;
SELECT s.k FROM swapped s JOIN swapped_r r USING (k, a, b) WHERE s.v IS NOT DISTINCT FROM r.v ORDER BY k;
ALTER TABLE swapped ALTER v TYPE text USING w || 'w', DROP COLUMN w;
ALTER TABLE swapped_r ALTER v TYPE text USING w || 'w', DROP COLUMN w;
ALTER TABLE swapped ALTER v SET DEFAULT 'none', ALTER v SET NOT NULL, ALTER a TYPE numeric(9, 1) USING a / 2.0, DROP COLUMN b, ADD COLUMN b text DEFAULT 'new';
SELECT s.*, r.a, r.b FROM swapped s JOIN swapped_r r USING (k, v) ORDER BY k;
CREATE TABLE swapped_p (k int, day int, a text, b text, PRIMARY KEY (k, day)) PARTITION BY RANGE (day);
CREATE TABLE swapped_p1 (b text, a text, day int NOT NULL, k int NOT NULL);
ALTER TABLE swapped_p ATTACH PARTITION swapped_p1 FOR VALUES FROM (0) TO (10);
--@ cluster: SELECT create_distributed_table('swapped_p', 'k')
INSERT INTO swapped_p SELECT g, g % 10, g::text, (-g)::text FROM generate_series(1, 20) g;
ALTER TABLE swapped_p ALTER a TYPE int USING b::int, ALTER b TYPE int USING a::int;
SELECT * FROM swapped_p ORDER BY k;
DROP TABLE swapped, swapped_r, swapped_p;
