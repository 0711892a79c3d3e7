--@ include: schema.sql
-- Roles and rights: row security and policies, grants on tables, columns, schemas, functions and sequences, default privileges, SET
-- ROLE, security barriers and security definers.

CREATE TABLE accounts (k int PRIMARY KEY, owner text NOT NULL, amount int, secret text);
CREATE TABLE ledger (k int, entry int, owner text, PRIMARY KEY (k, entry));
CREATE TABLE limits (owner text PRIMARY KEY, most int);
--@ cluster: SELECT create_distributed_table('accounts', 'k'), create_distributed_table('ledger', 'k', colocate_with => 'accounts')
--@ cluster: SELECT create_reference_table('limits')
DROP ROLE IF EXISTS corpus_ann, corpus_ben, corpus_team, corpus_boss;
CREATE ROLE corpus_ann;
CREATE ROLE corpus_ben;
CREATE ROLE corpus_team;
CREATE ROLE corpus_boss BYPASSRLS;
GRANT corpus_team TO corpus_ann, corpus_ben;
INSERT INTO accounts SELECT g, (ARRAY['corpus_ann', 'corpus_ben', 'nobody'])[1 + g % 3], g * 10, 's' || g FROM generate_series(1, 30) g;
INSERT INTO ledger SELECT g, e, (ARRAY['corpus_ann', 'corpus_ben', 'nobody'])[1 + g % 3] FROM generate_series(1, 30) g, generate_series(1, 2) e;
INSERT INTO limits VALUES ('corpus_ann', 150), ('corpus_ben', 250);

-- Without rights.
SET ROLE corpus_ann;
--@ error: 42501
SELECT count(*) FROM accounts;
--@ error: 42501
SELECT amount FROM accounts WHERE k = 3;
--@ error: 42501
INSERT INTO accounts VALUES (100, 'corpus_ann', 1);
--@ error: 42501
INSERT INTO accounts VALUES (100, 'corpus_ann', 1), (101, 'corpus_ann', 1);
--@ error: 42501
UPDATE accounts SET amount = 0;
--@ error: 42501
DELETE FROM accounts WHERE k = 3;
--@ error: 42501
TRUNCATE accounts;
--@ error: 42501
COPY accounts TO STDOUT;
--@ error: 42501
SELECT a.k FROM accounts a JOIN limits l ON l.owner = a.owner;
--@ error: 42501
ALTER TABLE accounts ADD COLUMN x int;
--@ error: 42501
DROP TABLE accounts;
--@ error: 42501
CREATE INDEX ON accounts (amount);
--@ error: 42501
LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE\; SELECT 1;
RESET ROLE;

-- Rights on columns, and on the table.
GRANT SELECT (k, owner, amount), UPDATE (amount) ON accounts TO corpus_team;
SET ROLE corpus_ann;
SELECT count(*), sum(amount) FROM accounts;
SELECT k, amount FROM accounts WHERE k = 3;
SELECT owner, count(*) FROM accounts GROUP BY owner;
--@ error: 42501
SELECT * FROM accounts;
--@ error: 42501
SELECT secret FROM accounts WHERE k = 3;
--@ error: 42501
SELECT max(secret) FROM accounts;
UPDATE accounts SET amount = amount + 1 WHERE k = 3 RETURNING k, amount;
UPDATE accounts SET amount = amount + 1 WHERE k < 6;
--@ error: 42501
UPDATE accounts SET secret = 'x' WHERE k = 3;
--@ error: 42501
UPDATE accounts SET amount = 1 WHERE k = 3 RETURNING secret;
RESET ROLE;
SELECT sum(amount) FROM accounts;
GRANT ALL ON accounts, ledger TO corpus_team;
GRANT SELECT ON limits TO corpus_team;
SET ROLE corpus_ben;
SELECT count(*), max(secret) FROM accounts;
INSERT INTO accounts VALUES (100, 'corpus_ben', 5, 'new') RETURNING k;
INSERT INTO accounts VALUES (101, 'corpus_ben', 5, 'new'), (102, 'corpus_ben', 5, 'new'), (103, 'nobody', 5, 'new');
DELETE FROM accounts WHERE k > 100;
SELECT a.owner, count(*), min(l.most) FROM accounts a LEFT JOIN limits l ON l.owner = a.owner GROUP BY a.owner;
--@ error: 42501
UPDATE limits SET most = 0;
RESET ROLE;
SELECT has_table_privilege('corpus_ben', 'accounts', 'DELETE'), has_table_privilege('corpus_ben', 'limits', 'DELETE'), has_column_privilege('corpus_ann', 'accounts', 'secret', 'SELECT');
SELECT grantee, privilege_type FROM information_schema.role_table_grants WHERE table_name = 'ledger' AND grantee = 'corpus_team';

-- Row security.
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
SET ROLE corpus_ann;
SELECT count(*) FROM accounts;
SELECT * FROM accounts WHERE k = 3;
--@ error: 42501
INSERT INTO accounts VALUES (200, 'corpus_ann', 1, 'x');
RESET ROLE;
CREATE POLICY own ON accounts TO corpus_team USING (owner = current_user) WITH CHECK (owner = current_user AND amount < 1000);
SET ROLE corpus_ann;
SELECT k, amount FROM accounts;
SELECT count(*), sum(amount), array_agg(k ORDER BY k) FROM accounts;
SELECT * FROM accounts WHERE k = 3;
SELECT * FROM accounts WHERE k = 4;
--@ ordered
SELECT k FROM accounts ORDER BY amount DESC LIMIT 3;
SELECT a.k, l.entry FROM accounts a JOIN ledger l ON l.k = a.k;
SELECT a.k, m.most FROM accounts a JOIN limits m ON m.owner = a.owner WHERE a.amount > m.most;
SELECT count(*) FROM ledger l WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.k = l.k);
SELECT count(*) FROM accounts a JOIN accounts b ON a.amount = b.amount + 30;
SELECT owner, count(*) FROM accounts GROUP BY ROLLUP (owner);
INSERT INTO accounts VALUES (200, 'corpus_ann', 1, 'x') RETURNING k;
INSERT INTO accounts VALUES (201, 'corpus_ann', 1, 'x'), (202, 'corpus_ann', 2, 'x');
--@ error: 42501
INSERT INTO accounts VALUES (203, 'corpus_ben', 1, 'x');
--@ error: 42501
INSERT INTO accounts VALUES (204, 'corpus_ann', 1, 'x'), (205, 'corpus_ann', 2000, 'x');
--@ error: 42501
INSERT INTO accounts SELECT k + 1000, owner, amount, secret FROM ledger JOIN limits USING (owner) CROSS JOIN LATERAL (SELECT 1 AS amount, 'y' AS secret) x WHERE entry = 1;
UPDATE accounts SET amount = 7 WHERE k = 200 RETURNING amount;
UPDATE accounts SET amount = amount + 1;
UPDATE accounts SET amount = 0 WHERE k = 4;
--@ error: 42501
UPDATE accounts SET owner = 'corpus_ben' WHERE k = 200;
--@ error: 42501
UPDATE accounts SET amount = 5000;
DELETE FROM accounts WHERE k IN (200, 4, 5);
DELETE FROM accounts WHERE k > 200;
COPY (SELECT k, amount FROM accounts) TO STDOUT;
COPY accounts (k, amount) TO STDOUT;
RESET ROLE;
SELECT owner, count(*), sum(amount) FROM accounts GROUP BY owner;
SET ROLE corpus_ben;
SELECT count(*), sum(amount) FROM accounts;
RESET ROLE;
CREATE POLICY rich ON accounts AS RESTRICTIVE FOR SELECT TO corpus_team USING (amount > 100);
CREATE POLICY no_delete ON accounts AS RESTRICTIVE FOR DELETE USING (k > 1000);
SET ROLE corpus_ann;
SELECT k FROM accounts;
DELETE FROM accounts;
--@ error: 42501
INSERT INTO accounts VALUES (300, 'corpus_ann', 1, 'too poor') RETURNING k;
RESET ROLE;
ALTER POLICY rich ON accounts USING (amount > 200);
SET ROLE corpus_ann;
SELECT k FROM accounts;
RESET ROLE;
ALTER POLICY rich ON accounts RENAME TO richer;
DROP POLICY richer ON accounts;
DROP POLICY no_delete ON accounts;
CREATE POLICY by_limit ON accounts FOR SELECT TO corpus_team USING (EXISTS (SELECT 1 FROM limits l WHERE l.owner = current_user AND l.most > accounts.amount));
SET ROLE corpus_ann;
SELECT k, amount FROM accounts;
SELECT count(*) FROM accounts WHERE k < 10;
RESET ROLE;
SELECT policyname, permissive, roles, cmd, qual, with_check FROM pg_policies WHERE tablename = 'accounts';
DROP POLICY by_limit ON accounts;
SET ROLE corpus_boss;
--@ error: 42501
SELECT count(*) FROM accounts;
RESET ROLE;
GRANT SELECT ON accounts TO corpus_boss;
SET ROLE corpus_boss;
SELECT count(*) FROM accounts;
RESET ROLE;
SET row_security = off;
SELECT count(*) FROM accounts;
SET ROLE corpus_ann;
-- The router knows what this statement describes from before the setting; it fails at Execute.
--@ mode: simple
--@ error: 42501
SELECT count(*) FROM accounts;
RESET ROLE;
RESET row_security;
ALTER TABLE accounts FORCE ROW LEVEL SECURITY;
ALTER TABLE accounts OWNER TO corpus_boss;
ALTER TABLE accounts OWNER TO corpus_ann;
SET ROLE corpus_ann;
SELECT count(*) FROM accounts;
RESET ROLE;
ALTER TABLE accounts NO FORCE ROW LEVEL SECURITY;
SET ROLE corpus_ann;
SELECT count(*) FROM accounts;
RESET ROLE;
ALTER TABLE accounts OWNER TO CURRENT_USER;
ALTER TABLE limits ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON limits USING (owner = current_user);
SET ROLE corpus_ben;
SELECT * FROM limits;
SELECT a.k, l.most FROM accounts a JOIN limits l ON true WHERE a.k < 9;
RESET ROLE;
ALTER TABLE limits DISABLE ROW LEVEL SECURITY;
ALTER TABLE accounts DISABLE ROW LEVEL SECURITY;
SET ROLE corpus_ben;
SELECT count(*) FROM accounts;
SELECT count(*) FROM limits;
RESET ROLE;

-- Views with the rights of their owner or of who asks; functions likewise.
REVOKE ALL ON accounts FROM corpus_team, corpus_ann;
CREATE VIEW amounts AS SELECT owner, sum(amount) AS total FROM accounts GROUP BY owner;
CREATE VIEW amounts_invoker WITH (security_invoker = true) AS SELECT owner, sum(amount) AS total FROM accounts GROUP BY owner;
CREATE VIEW guarded WITH (security_barrier) AS SELECT k, owner, amount FROM accounts WHERE owner = current_user;
GRANT SELECT ON amounts, amounts_invoker, guarded TO corpus_team;
CREATE FUNCTION amount_of(int) RETURNS int STABLE LANGUAGE sql SECURITY DEFINER SET search_path = public AS 'SELECT amount FROM accounts WHERE k = $1';
CREATE FUNCTION amount_as(int) RETURNS int STABLE LANGUAGE sql AS 'SELECT amount FROM accounts WHERE k = $1';
SET ROLE corpus_ann;
SELECT * FROM amounts;
--@ error: 42501
SELECT * FROM amounts_invoker;
SELECT count(*) FROM guarded;
SELECT amount FROM guarded WHERE k = 3;
SELECT amount_of(3), amount_of(4);
--@ error: 42501
SELECT amount_as(3);
RESET ROLE;
REVOKE EXECUTE ON FUNCTION amount_of(int) FROM PUBLIC;
SET ROLE corpus_ann;
--@ error: 42501
SELECT amount_of(3);
RESET ROLE;
GRANT EXECUTE ON FUNCTION amount_of(int) TO corpus_ann;
SET ROLE corpus_ann;
SELECT amount_of(3);
SELECT current_user, session_user = current_user;
RESET ROLE;

-- Schemas, sequences, default privileges.
CREATE SCHEMA vault;
CREATE TABLE vault.gold (k int PRIMARY KEY, n serial);
--@ cluster: SELECT create_distributed_table('vault.gold', 'k')
INSERT INTO vault.gold (k) SELECT generate_series(1, 5);
GRANT SELECT, INSERT ON vault.gold TO corpus_ann;
SET ROLE corpus_ann;
--@ error: 42501
SELECT count(*) FROM vault.gold;
RESET ROLE;
GRANT USAGE ON SCHEMA vault TO corpus_ann;
SET ROLE corpus_ann;
SELECT count(*) FROM vault.gold;
SELECT k FROM vault.gold WHERE k = 4;
--@ error: 42501
INSERT INTO vault.gold (k) VALUES (6);
RESET ROLE;
GRANT USAGE ON SEQUENCE vault.gold_n_seq TO corpus_ann;
SET ROLE corpus_ann;
INSERT INTO vault.gold (k) VALUES (6);
INSERT INTO vault.gold (k) VALUES (7), (8), (9);
--@ error: 42501
DELETE FROM vault.gold;
--@ error: 42501
CREATE TABLE vault.mine (k int);
RESET ROLE;
ALTER DEFAULT PRIVILEGES IN SCHEMA vault GRANT SELECT ON TABLES TO corpus_ben;
ALTER DEFAULT PRIVILEGES IN SCHEMA vault GRANT USAGE ON SEQUENCES TO corpus_ben;
GRANT USAGE, CREATE ON SCHEMA vault TO corpus_ben;
CREATE TABLE vault.silver (k int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('vault.silver', 'k')
INSERT INTO vault.silver SELECT g, 'v' || g FROM generate_series(1, 6) g;
SET ROLE corpus_ben;
SELECT count(*) FROM vault.silver;
SELECT v FROM vault.silver WHERE k = 2;
--@ error: 42501
DELETE FROM vault.silver;
CREATE TABLE vault.bens (k int, v text);
INSERT INTO vault.bens VALUES (1, 'x');
SELECT * FROM vault.bens;
RESET ROLE;
SELECT defaclobjtype, defaclacl::text FROM pg_default_acl;
ALTER DEFAULT PRIVILEGES IN SCHEMA vault REVOKE SELECT ON TABLES FROM corpus_ben;
CREATE TABLE vault.bronze (k int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('vault.bronze', 'k')
SET ROLE corpus_ben;
--@ error: 42501
SELECT count(*) FROM vault.bronze;
RESET ROLE;
GRANT SELECT ON ALL TABLES IN SCHEMA vault TO corpus_ben;
SET ROLE corpus_ben;
SELECT count(*) FROM vault.bronze;
SELECT count(*) FROM vault.gold;
RESET ROLE;
REVOKE SELECT ON ALL TABLES IN SCHEMA vault FROM corpus_ben;
SET ROLE corpus_ben;
--@ error: 42501
SELECT count(*) FROM vault.gold;
RESET ROLE;
SET SESSION AUTHORIZATION corpus_ann;
SELECT count(*) FROM vault.gold;
SELECT session_user, current_user;
RESET SESSION AUTHORIZATION;
BEGIN;
SET LOCAL ROLE corpus_ann;
SELECT count(*) FROM vault.gold;
ROLLBACK;
SELECT count(*) FROM vault.gold;
-- ON CONFLICT that the coordinator computes, under policies.
CREATE FUNCTION doubled(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN i * 2; END $$;
CREATE TABLE pol (k int PRIMARY KEY, owner text, n int);
--@ cluster: SELECT create_distributed_table('pol', 'k')
INSERT INTO pol SELECT g, CASE g % 3 WHEN 0 THEN 'ann' WHEN 1 THEN 'read' ELSE 'hidden' END, g FROM generate_series(1, 12) g;
ALTER TABLE pol ENABLE ROW LEVEL SECURITY;
CREATE POLICY s ON pol FOR SELECT USING (owner IN ('ann', 'read'));
CREATE POLICY u ON pol FOR UPDATE USING (owner = 'ann') WITH CHECK (n < 100);
CREATE POLICY i ON pol FOR INSERT WITH CHECK (n < 1000);
GRANT ALL ON pol TO corpus_ann;
SET ROLE corpus_ann;
INSERT INTO pol VALUES (3, 'ann', 7), (30, 'ann', 8) ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n) RETURNING *;
--@ error: 42501
INSERT INTO pol VALUES (4, 'ann', 7) ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n) RETURNING *;
--@ error: 42501 from 15.20, 16.16, 17.12, 18.7
INSERT INTO pol VALUES (4, 'ann', 7) ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n) WHERE doubled(pol.n) < 0;
--@ error: 42501
INSERT INTO pol VALUES (5, 'ann', 7) ON CONFLICT (k) DO UPDATE SET n = doubled(excluded.n);
--@ error: 42501
INSERT INTO pol VALUES (3, 'ann', 7) ON CONFLICT (k) DO UPDATE SET n = doubled(100);
--@ error: 42501
MERGE INTO pol t USING (SELECT 9 AS k) s ON t.k = s.k AND random() < 2 WHEN MATCHED THEN UPDATE SET n = doubled(100);
--@ error: 42501
MERGE INTO pol t USING (SELECT 4 AS k) s ON t.k = s.k AND random() < 2 WHEN MATCHED THEN UPDATE SET n = 1;
RESET ROLE;
SELECT * FROM pol;
--@ error: 2BP01
DROP ROLE corpus_ann;
DROP OWNED BY corpus_ann, corpus_ben, corpus_team, corpus_boss;
DROP ROLE corpus_ann, corpus_ben, corpus_team, corpus_boss;
--@ error: 22023
SET ROLE corpus_ann;

-- Who is under his own policies moves all rows, where his table is distributed and where it is not any more.
CREATE ROLE corpus_forced;
GRANT CREATE ON SCHEMA public TO corpus_forced;
SET ROLE corpus_forced;
CREATE TABLE forced (k int PRIMARY KEY, v int);
CREATE TABLE forced_r (k int PRIMARY KEY, v int);
INSERT INTO forced SELECT g, g FROM generate_series(1, 10) g;
INSERT INTO forced_r SELECT g, g FROM generate_series(1, 10) g;
ALTER TABLE forced ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE forced_r ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY small ON forced USING (v < 4);
CREATE POLICY small ON forced_r USING (v < 4);
--@ cluster: SELECT create_distributed_table('forced', 'k')
--@ cluster: SELECT create_reference_table('forced_r')
SELECT count(*) FROM forced;
SELECT count(*) FROM forced_r;
--@ error: 42501
INSERT INTO forced VALUES (11, 11);
RESET ROLE;
SELECT count(*), sum(v) FROM forced;
SELECT count(*), sum(r.v) FROM forced f JOIN forced_r r USING (k);
SET ROLE corpus_forced;
--@ cluster: SELECT undistribute_table('forced')
SELECT count(*) FROM forced;
--@ error: 42501
INSERT INTO forced VALUES (11, 11);
RESET ROLE;
SELECT count(*), sum(v) FROM forced;
SELECT relname, relforcerowsecurity FROM pg_class WHERE relname IN ('forced', 'forced_r');
DROP TABLE forced, forced_r;
DROP OWNED BY corpus_forced;
DROP ROLE corpus_forced;

-- Who may execute what a constraint calls.
CREATE ROLE corpus_calls;
CREATE ROLE corpus_calls_not;
CREATE ROLE corpus_owns_calls;
CREATE FUNCTION called(v int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN v > 0; END $$;
REVOKE EXECUTE ON FUNCTION called(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION called(int) TO corpus_calls WITH GRANT OPTION;
ALTER FUNCTION called(int) OWNER TO corpus_owns_calls;
CREATE TABLE calls (k int PRIMARY KEY, v int CHECK (called(v)));
--@ cluster: SELECT create_distributed_table('calls', 'k')
GRANT SELECT, INSERT, UPDATE ON calls TO corpus_calls, corpus_calls_not;
SET ROLE corpus_calls;
INSERT INTO calls VALUES (1, 1);
INSERT INTO calls VALUES (2, 2), (3, 3);
--@ error: 23514
INSERT INTO calls VALUES (4, 0);
RESET ROLE;
SET ROLE corpus_calls_not;
--@ error: 42501
INSERT INTO calls VALUES (5, 1);
--@ error: 42501
INSERT INTO calls VALUES (6, 2), (7, 3);
--@ error: 42501
UPDATE calls SET v = 9;
RESET ROLE;
SET ROLE corpus_calls;
GRANT EXECUTE ON FUNCTION called(int) TO corpus_calls_not;
RESET ROLE;
SET ROLE corpus_calls_not;
INSERT INTO calls VALUES (5, 1);
RESET ROLE;
SELECT * FROM calls;
DROP TABLE calls;
DROP FUNCTION called;
DROP ROLE corpus_calls, corpus_calls_not, corpus_owns_calls;
