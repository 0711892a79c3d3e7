--@ include: schema.sql
-- Policies that read: reference tables, which workers have whole; functions that read nothing, or reference tables. Others are
-- refused.

CREATE TABLE docs (k int PRIMARY KEY, owner text, team int, title text);
CREATE TABLE teams (id int PRIMARY KEY, name text);
CREATE TABLE members (team int, who text, PRIMARY KEY (team, who));
CREATE TABLE shared (k int PRIMARY KEY, who text);
--@ cluster: SELECT create_distributed_table('docs', 'k'), create_distributed_table('shared', 'k', colocate_with => 'docs'), create_reference_table('teams'), create_reference_table('members')
DROP ROLE IF EXISTS policies_ann, policies_ben;
CREATE ROLE policies_ann;
CREATE ROLE policies_ben;
INSERT INTO docs SELECT g, (ARRAY['policies_ann', 'policies_ben', 'nobody'])[1 + g % 3], g % 4, 'd' || g FROM generate_series(1, 40) g;
INSERT INTO shared SELECT g, 'policies_ben' FROM generate_series(1, 40, 5) g;
INSERT INTO teams VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO members VALUES (1, 'policies_ann'), (2, 'policies_ann'), (2, 'policies_ben');
GRANT SELECT, INSERT, UPDATE, DELETE ON docs, shared TO policies_ann, policies_ben;
GRANT SELECT ON teams, members TO policies_ann, policies_ben;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;

-- Reference tables, read by whoever asks.
CREATE POLICY of_team ON docs USING (team IN (SELECT m.team FROM members m WHERE m.who = current_user));
SET ROLE policies_ann;
SELECT k FROM docs;
SELECT count(*) FROM docs WHERE k = 5;
UPDATE docs SET title = title || '!' WHERE k < 20;
--@ error: 42501
INSERT INTO docs VALUES (100, 'x', 3, 'y');
INSERT INTO docs VALUES (101, 'x', 2, 'y') RETURNING k;
INSERT INTO docs SELECT 110 + g, 'x', 1, 'z' FROM generate_series(1, 3) g;
DELETE FROM docs WHERE k > 110 RETURNING k;
SELECT d.k, t.name FROM docs d JOIN teams t ON t.id = d.team WHERE d.k < 9;
SELECT count(*) FROM docs a JOIN docs b ON a.team = b.k;
RESET ROLE;
INSERT INTO members VALUES (3, 'policies_ben');
DELETE FROM members WHERE team = 1;
SET ROLE policies_ben;
SELECT count(*), min(k), max(k) FROM docs;
SET ROLE policies_ann;
SELECT count(*), min(k), max(k) FROM docs;
RESET ROLE;
REVOKE SELECT ON members FROM policies_ben;
SET ROLE policies_ben;
--@ error: 42501
SELECT count(*) FROM docs;
RESET ROLE;
GRANT SELECT ON members TO policies_ben;
-- The reference table has policies of its own.
ALTER TABLE members ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON members USING (who = current_user AND team <> 2);
SET ROLE policies_ben;
SELECT count(*), min(k), max(k) FROM docs;
SELECT count(*) FROM members;
RESET ROLE;
ALTER TABLE members DISABLE ROW LEVEL SECURITY;
DROP POLICY own ON members;
DROP POLICY of_team ON docs;

-- Functions that read nothing but settings, and reference tables.
CREATE FUNCTION tenant() RETURNS int LANGUAGE sql STABLE AS $$ SELECT nullif(current_setting('app.tenant', true), '')::int $$;
CREATE FUNCTION tenant_by_default() RETURNS int LANGUAGE plpgsql STABLE AS $$ DECLARE found int; BEGIN found := nullif(current_setting('app.tenant', true), '')::int; IF found IS DISTINCT FROM NULL THEN RETURN found; END IF; RETURN 1; END $$;
CREATE FUNCTION is_member(team int) RETURNS bool LANGUAGE sql STABLE SECURITY DEFINER AS $$ SELECT EXISTS (SELECT 1 FROM public.members m WHERE m.team = $1 AND m.who = session_user OR m.team = 3) $$;
CREATE POLICY by_tenant ON docs USING (team = tenant_by_default() OR is_member(k) OR k = tenant());
SET ROLE policies_ann;
SELECT k FROM docs;
SET app.tenant = '2';
SELECT k FROM docs;
SELECT count(*) FROM docs a LEFT JOIN teams t ON t.id = a.team;
RESET ROLE;
RESET app.tenant;

-- Others.
CREATE FUNCTION shares(x int) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT 1 FROM public.shared s WHERE s.k = x) $$;
CREATE FUNCTION shares_by(x int) RETURNS bool LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN public.shares(x); END $$;
CREATE FUNCTION tenant_twice() RETURNS int LANGUAGE sql STABLE AS $$ SELECT 2 * tenant() $$;
CREATE FUNCTION shares_text(x int) RETURNS bool LANGUAGE plpgsql STABLE AS $$ DECLARE found bool; BEGIN EXECUTE 'SELECT EXISTS (SELECT 1 FROM shared WHERE k = $1)' INTO found USING x; RETURN found; END $$;
CREATE FUNCTION member_of(x int) RETURNS bool LANGUAGE sql STABLE AS $$ SELECT EXISTS (SELECT 1 FROM members m WHERE m.team = x) $$;
CREATE OR REPLACE FUNCTION tenant() RETURNS int LANGUAGE sql STABLE AS $$ SELECT min(id) FROM public.teams $$;
SET ROLE policies_ben;
SELECT k FROM docs;
RESET ROLE;
CREATE POLICY by_tenant_twice ON docs USING (tenant_twice() = team);
SET ROLE policies_ben;
SELECT k FROM docs;
RESET ROLE;
DROP POLICY by_tenant_twice ON docs;
-- Their names do not matter where no policy calls them.
CREATE FUNCTION tenants() RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT count(*) FROM public.shared $$;
SELECT tenants();
--@ refused: 0A000
CREATE POLICY bad_0 ON docs USING (EXISTS (SELECT 1 FROM shared s WHERE s.who = current_user AND s.k = docs.k + 1));
--@ refused: 0A000
CREATE POLICY bad_1 ON docs USING (k > (SELECT avg(d.k) FROM docs d));
--@ refused: 0A000
CREATE POLICY bad_2 ON docs USING (shares(k + 1));
--@ refused: 0A000
CREATE POLICY bad_3 ON docs FOR INSERT WITH CHECK (shares_by(k + 1));
--@ refused: 0A000
CREATE POLICY bad_5 ON docs USING (shares_text(k + 1));
--@ refused: 0A000
CREATE POLICY bad_6 ON docs USING (member_of(k));
--@ refused: 0A000
CREATE POLICY bad_7 ON docs USING (k < (SELECT count(*) FROM pg_class));
--@ refused: 0A000
ALTER POLICY by_tenant ON docs USING (EXISTS (SELECT 1 FROM shared s WHERE s.k = docs.k));
--@ refused: 0A000
CREATE OR REPLACE FUNCTION tenant() RETURNS int LANGUAGE sql STABLE AS $$ SELECT min(k) FROM public.shared $$;
--@ refused: 0A000
DO $$ BEGIN CREATE POLICY bad_8 ON docs USING (k > (SELECT max(s.k) FROM shared s)); END $$;
--@ refused: 0A000
DO $$ BEGIN CREATE OR REPLACE FUNCTION is_member(team int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT EXISTS (SELECT 1 FROM public.shared)'; END $$;
DROP TABLE docs, teams, members, shared;
DROP FUNCTION tenant_twice, tenant, tenant_by_default, is_member, shares, shares_by, shares_text, member_of, tenants;
DROP ROLE policies_ann, policies_ben;
