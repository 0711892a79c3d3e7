-- Constraints that old rows need not satisfy: no statement leaves rows out because of them, whoever runs it.
CREATE TABLE doubted (a int, b int, c text DEFAULT 'x');
INSERT INTO doubted VALUES (1, 1), (2, 2), (3, 3), (4, NULL);
--@ cluster: SELECT create_distributed_table('doubted', 'a')
CREATE TABLE doubted_local (a int, b int);
INSERT INTO doubted_local VALUES (1, 1), (2, 2), (5, 5);
ALTER TABLE doubted ADD CONSTRAINT high CHECK (b > 2) NOT VALID;
CREATE VIEW doubted_view AS SELECT a, b FROM doubted;
CREATE FUNCTION doubted_low() RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN RETURN (SELECT count(*) FROM doubted WHERE b <= 2); END $$;
SELECT * FROM doubted WHERE b <= 2;
SELECT * FROM doubted_view WHERE b <= 2;
SELECT d.a, l.b FROM doubted d JOIN doubted_local l ON l.b = d.b WHERE d.b < 3;
SELECT l.a, d.b FROM doubted_local l LEFT JOIN doubted_view d ON d.a = l.a AND d.b = 2;
SELECT doubted_low();
SELECT a, (WITH RECURSIVE r AS (SELECT d.b AS n UNION ALL SELECT n - 1 FROM r WHERE n > 0) SELECT count(*) FROM r) FROM doubted d WHERE b <= 2;
--@ error: 23514
INSERT INTO doubted VALUES (6, 1);
BEGIN;
UPDATE doubted SET c = 'y' WHERE a = 3;
SELECT count(*) FROM doubted_view WHERE b <= 2;
DO $$ BEGIN DELETE FROM doubted WHERE b = 1; END $$;
SELECT a FROM doubted_view;
ROLLBACK;
--@ error: 23514
DO $$ BEGIN UPDATE doubted SET c = 'z' WHERE b = 2; END $$;
DO $$ BEGIN UPDATE doubted SET b = 7 WHERE b = 2; END $$;
SELECT * FROM doubted_view;

-- Definitions that make the table's stand-in anew keep the doubt.
ALTER TABLE doubted ALTER COLUMN c TYPE varchar(10);
SELECT a FROM doubted_view WHERE b = 1;
ALTER TABLE doubted RENAME CONSTRAINT high TO higher;
ALTER TABLE doubted ADD COLUMN d int;
SELECT count(*) FROM doubted_view WHERE b <= 2;
BEGIN;
ALTER TABLE doubted ADD CONSTRAINT positive CHECK (a > 2) NOT VALID;
SELECT a FROM doubted_view WHERE a < 2;
DO $$ BEGIN DELETE FROM doubted WHERE a = 1; END $$;
SELECT a FROM doubted_view;
ROLLBACK;
--@ error: 23514
ALTER TABLE doubted VALIDATE CONSTRAINT higher;
SELECT a FROM doubted_view WHERE b <= 2;
SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'doubted'::regclass;
DO $$ BEGIN DELETE FROM doubted WHERE b = 1; END $$;
ALTER TABLE doubted VALIDATE CONSTRAINT higher;
SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'doubted'::regclass;
SELECT a FROM doubted_view WHERE b <= 2 OR b IS NULL;

-- The constraint was there before the table was distributed; and in a table with partitions.
CREATE TABLE doubted_before (a int, b int);
INSERT INTO doubted_before VALUES (1, 1), (2, 2);
ALTER TABLE doubted_before ADD CHECK (b > 1) NOT VALID;
--@ cluster: SELECT create_distributed_table('doubted_before', 'a')
CREATE VIEW doubted_before_view AS SELECT * FROM doubted_before;
SELECT * FROM doubted_before_view WHERE b = 1;
CREATE TABLE doubted_parts (a int, b int, t int) PARTITION BY RANGE (t);
CREATE TABLE doubted_parts_1 PARTITION OF doubted_parts FOR VALUES FROM (0) TO (10);
CREATE TABLE doubted_parts_2 PARTITION OF doubted_parts FOR VALUES FROM (10) TO (20);
--@ cluster: SELECT create_distributed_table('doubted_parts', 'a')
INSERT INTO doubted_parts SELECT i, i % 3, i FROM generate_series(0, 19) i;
ALTER TABLE doubted_parts ADD CONSTRAINT more CHECK (b > 0) NOT VALID;
CREATE VIEW doubted_parts_view AS SELECT * FROM doubted_parts;
SELECT count(*), sum(a) FROM doubted_parts_view WHERE b = 0;
ALTER TABLE doubted_parts_1 ADD CONSTRAINT one_more CHECK (a > 5) NOT VALID;
SELECT count(*), sum(a) FROM doubted_parts_view WHERE a < 5;
DO $$ BEGIN DELETE FROM doubted_parts WHERE b = 0 AND a < 5; END $$;
SELECT count(*), sum(a) FROM doubted_parts_view;
