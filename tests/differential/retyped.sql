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
DROP TABLE retyped, timed;
DROP FUNCTION twice, thrice;
