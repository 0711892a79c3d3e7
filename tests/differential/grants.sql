-- Privileges on distributed and reference tables, given on and taken back by whoever may.

DROP ROLE IF EXISTS grants_own, grants_ann, grants_ben, grants_cal;
CREATE ROLE grants_own;
CREATE ROLE grants_ann;
CREATE ROLE grants_ben;
CREATE ROLE grants_cal;
CREATE TABLE shared (k int PRIMARY KEY, a int, b text);
--@ cluster: SELECT create_distributed_table('shared', 'k')
CREATE TABLE codes (k int PRIMARY KEY, a int);
--@ cluster: SELECT create_reference_table('codes')
CREATE TABLE parted (k int, day int, a int) PARTITION BY RANGE (day);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (1) TO (10);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
--@ cluster: SELECT create_distributed_table('parted', 'k')
INSERT INTO shared SELECT i, i % 3, 'b' || i FROM generate_series(1, 12) i;
INSERT INTO codes SELECT i, i FROM generate_series(1, 4) i;
INSERT INTO parted SELECT i, i, i FROM generate_series(1, 15) i;
ALTER TABLE shared OWNER TO grants_own;
ALTER TABLE codes OWNER TO grants_own;
ALTER TABLE parted OWNER TO grants_own;
ALTER TABLE parted_1 OWNER TO grants_own;
ALTER TABLE parted_2 OWNER TO grants_own;

SET ROLE grants_own;
GRANT SELECT, INSERT ON shared, codes, parted TO grants_ann WITH GRANT OPTION;
GRANT UPDATE ON codes TO grants_ann WITH GRANT OPTION;
GRANT UPDATE (a) ON shared TO grants_ann WITH GRANT OPTION;
RESET ROLE;

-- Given on, and on again.
SET ROLE grants_ann;
GRANT SELECT ON shared TO grants_ben WITH GRANT OPTION;
GRANT SELECT, INSERT, UPDATE ON codes TO grants_ben;
GRANT SELECT ON parted TO grants_ben;
GRANT UPDATE (a) ON shared TO grants_ben;
GRANT DELETE ON shared TO grants_ben;
GRANT SELECT ON shared TO PUBLIC;
RESET ROLE;
SET ROLE grants_ben;
GRANT SELECT ON shared TO grants_cal;
SELECT k FROM shared WHERE k = 3;
SELECT count(*) FROM shared;
UPDATE shared SET a = 7 WHERE k = 3;
--@ error: 42501
UPDATE shared SET b = 'x' WHERE k = 3;
INSERT INTO codes VALUES (5, 5);
SELECT count(*) FROM codes;
--@ error: 42501
INSERT INTO shared VALUES (90, 1, 'no');
SELECT count(*) FROM parted;
SELECT a FROM parted WHERE k = 4;
--@ error: 42501
SELECT * FROM parted_1;
--@ error: 42501
INSERT INTO parted VALUES (3, 3, 3);
SELECT s.k FROM shared s JOIN codes c ON c.k = s.a JOIN parted p ON p.k = s.k WHERE s.k < 4;
RESET ROLE;
SELECT grantee, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_name IN ('shared', 'codes', 'parted');
SET ROLE grants_cal;
SELECT count(*) FROM shared;
--@ error: 42501
SELECT count(*) FROM codes;
RESET ROLE;

-- In a transaction, with what it changes besides.
BEGIN;
SET LOCAL ROLE grants_ann;
GRANT INSERT ON shared TO grants_cal;
INSERT INTO shared VALUES (40, 1, 'ann');
SET LOCAL ROLE grants_cal;
INSERT INTO shared VALUES (41, 1, 'cal');
SELECT count(*) FROM shared;
ROLLBACK;
SET ROLE grants_cal;
--@ error: 42501
INSERT INTO shared VALUES (41, 1, 'cal');
RESET ROLE;
BEGIN;
SET LOCAL ROLE grants_ann;
GRANT INSERT ON shared TO grants_cal;
COMMIT;
SET ROLE grants_cal;
INSERT INTO shared VALUES (41, 1, 'cal');
RESET ROLE;

-- Inside a function, and by a SECURITY DEFINER function.
CREATE FUNCTION gives() RETURNS void LANGUAGE plpgsql AS $$ BEGIN GRANT SELECT ON codes TO grants_cal; END $$;
CREATE FUNCTION gives_as_ann() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN GRANT INSERT, UPDATE ON codes TO grants_cal; END $$;
ALTER FUNCTION gives_as_ann() OWNER TO grants_ann;
SET ROLE grants_ann;
SELECT gives();
RESET ROLE;
SET ROLE grants_cal;
SELECT count(*) FROM codes;
SELECT gives_as_ann();
INSERT INTO codes VALUES (6, 6);
RESET ROLE;

-- On all tables of schemas.
CREATE SCHEMA grants_one;
CREATE SCHEMA grants_two;
CREATE TABLE grants_one.a (k int PRIMARY KEY, v int);
CREATE TABLE grants_one.b (k int PRIMARY KEY, v int);
CREATE TABLE grants_two.a (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('grants_one.a', 'k'), create_reference_table('grants_one.b'), create_distributed_table('grants_two.a', 'k')
ALTER TABLE grants_one.a OWNER TO grants_own;
ALTER TABLE grants_one.b OWNER TO grants_ann;
GRANT SELECT ON grants_one.a TO grants_ann WITH GRANT OPTION;
GRANT USAGE ON SCHEMA grants_one TO grants_own, grants_ann, grants_ben;
GRANT USAGE ON SCHEMA grants_two TO grants_ben;
SET ROLE grants_ann;
GRANT SELECT ON ALL TABLES IN SCHEMA grants_one TO grants_ben;
RESET ROLE;
SET ROLE grants_ben;
SELECT count(*) FROM grants_one.a JOIN grants_one.b USING (k);
--@ error: 42501
SELECT count(*) FROM grants_two.a;
RESET ROLE;
GRANT SELECT ON ALL TABLES IN SCHEMA grants_one, grants_two TO grants_ben;
SET ROLE grants_ben;
SELECT count(*) FROM grants_two.a;
RESET ROLE;
BEGIN;
REVOKE USAGE ON SCHEMA grants_two FROM grants_ben;
REVOKE ALL ON ALL TABLES IN SCHEMA grants_one FROM grants_ben;
SET LOCAL ROLE grants_ben;
SELECT count(*) FROM grants_one.a;
ROLLBACK;
REVOKE USAGE ON SCHEMA grants_two FROM grants_ben;
SET ROLE grants_ben;
--@ error: 42501
SELECT count(*) FROM grants_two.a;
RESET ROLE;
GRANT USAGE ON SCHEMA grants_two TO grants_ben;
SET ROLE grants_ben;
SELECT count(*) FROM grants_two.a;
RESET ROLE;
DROP TABLE grants_one.a, grants_one.b, grants_two.a;
DROP SCHEMA grants_one, grants_two;

-- By logins of their own.
SET SESSION AUTHORIZATION grants_ann;
GRANT INSERT ON shared TO grants_ben;
GRANT SELECT ON parted TO grants_cal;
DO $$ BEGIN GRANT INSERT ON parted TO grants_ben; END $$;
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION grants_ben;
INSERT INTO shared VALUES (61, 1, 'ben');
INSERT INTO parted VALUES (61, 5, 1);
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION grants_ann;
REVOKE INSERT ON shared FROM grants_ben;
REVOKE INSERT ON parted FROM grants_ben;
RESET SESSION AUTHORIZATION;

-- A partition of another owner leaves.
ALTER TABLE parted_2 OWNER TO grants_ben;
SET ROLE grants_own;
ALTER TABLE parted DETACH PARTITION parted_2;
RESET ROLE;
SELECT count(*) FROM parted;
--@ error: 23514
INSERT INTO parted VALUES (2, 15, 2);
SELECT count(*) FROM parted_2;
DROP TABLE parted_2;

-- Taken back.
SET ROLE grants_ann;
REVOKE SELECT ON shared FROM PUBLIC;
--@ error: 2BP01
REVOKE SELECT ON shared FROM grants_ben;
REVOKE GRANT OPTION FOR SELECT ON shared FROM grants_ben CASCADE;
REVOKE INSERT ON codes FROM grants_ben;
REVOKE INSERT ON codes FROM grants_own;
RESET ROLE;
SET ROLE grants_ben;
SELECT count(*) FROM shared;
--@ error: 42501
INSERT INTO codes VALUES (7, 7);
GRANT SELECT ON shared TO grants_cal;
RESET ROLE;
SET ROLE grants_cal;
--@ error: 42501
SELECT count(*) FROM shared;
--@ error: 42501
SELECT k FROM shared WHERE k = 3;
INSERT INTO shared VALUES (42, 1, 'cal');
RESET ROLE;
SET ROLE grants_own;
INSERT INTO codes VALUES (8, 8);
REVOKE ALL ON shared, codes, parted FROM grants_ann CASCADE;
RESET ROLE;
SELECT grantee, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_name IN ('shared', 'codes', 'parted');
SELECT grantee, column_name, privilege_type FROM information_schema.column_privileges WHERE table_name = 'shared' AND grantee <> 'grants_own';
SET ROLE grants_ben;
--@ error: 42501
SELECT k FROM shared WHERE k = 3;
--@ error: 42501
SELECT count(*) FROM parted;
RESET ROLE;
SET ROLE grants_ann;
--@ error: 42501
SELECT count(*) FROM shared;
--@ error: 42501
GRANT SELECT ON shared TO grants_ben;
RESET ROLE;
ALTER TABLE shared ADD COLUMN c int DEFAULT 4;
SELECT sum(c), count(*) FROM shared;
DROP TABLE shared, codes, parted;
DROP OWNED BY grants_own, grants_ann, grants_ben, grants_cal;
DROP FUNCTION gives();
DROP ROLE grants_own, grants_ann, grants_ben, grants_cal;
