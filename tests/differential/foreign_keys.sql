--@ include: schema.sql
-- Foreign keys: between colocated tables and to reference tables, with every action, deferred, of several columns, added later.

CREATE TABLE tenants (t int PRIMARY KEY, name text);
CREATE TABLE projects (t int, p int, name text, kind int, PRIMARY KEY (t, p));
CREATE TABLE tasks (t int, p int, n int, kind int DEFAULT 1, owner int, PRIMARY KEY (t, p, n));
CREATE TABLE kinds (id int PRIMARY KEY, word text UNIQUE);
CREATE TABLE colours (c text PRIMARY KEY, kind int);
--@ cluster: SELECT create_reference_table('kinds'), create_reference_table('colours')
--@ cluster: SELECT create_distributed_table('tenants', 't'), create_distributed_table('projects', 't'), create_distributed_table('tasks', 't')
INSERT INTO kinds VALUES (1, 'one'), (2, 'two'), (3, 'three');
INSERT INTO colours VALUES ('red', 1), ('blue', 2);
INSERT INTO tenants SELECT g, 'tenant ' || g FROM generate_series(1, 12) g;
INSERT INTO projects SELECT t, p, 'p' || p, 1 + p % 3 FROM generate_series(1, 12) t, generate_series(1, 3) p;
INSERT INTO tasks (t, p, n) SELECT t, p, n FROM generate_series(1, 12) t, generate_series(1, 3) p, generate_series(1, 2) n;
ALTER TABLE projects ADD CONSTRAINT projects_t FOREIGN KEY (t) REFERENCES tenants ON DELETE CASCADE;
ALTER TABLE tasks ADD CONSTRAINT tasks_p FOREIGN KEY (t, p) REFERENCES projects (t, p) ON DELETE CASCADE ON UPDATE NO ACTION;
ALTER TABLE projects ADD CONSTRAINT projects_kind FOREIGN KEY (kind) REFERENCES kinds (id);
ALTER TABLE tasks ADD CONSTRAINT tasks_kind FOREIGN KEY (kind) REFERENCES kinds (id) ON DELETE SET NULL;
ALTER TABLE colours ADD CONSTRAINT colours_kind FOREIGN KEY (kind) REFERENCES kinds (id) ON DELETE CASCADE ON UPDATE CASCADE;
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f' AND conrelid IN ('projects'::regclass, 'tasks'::regclass, 'colours'::regclass);

-- What they refuse.
--@ error: 23503
INSERT INTO projects VALUES (99, 1, 'x', 1);
--@ error: 23503
INSERT INTO projects VALUES (1, 9, 'x', 9);
--@ error: 23503
INSERT INTO projects VALUES (1, 10, 'x', 1), (2, 10, 'x', 1), (98, 10, 'x', 1);
SELECT count(*) FROM projects WHERE p = 10;
--@ error: 23503
INSERT INTO tasks (t, p, n) VALUES (1, 77, 1);
--@ error: 23503
--@ loose: which row comes first
INSERT INTO tasks (t, p, n) SELECT t, 78, 1 FROM tenants;
--@ error: 23503
UPDATE projects SET kind = 50 WHERE t = 3;
--@ error: 23503
UPDATE projects SET kind = 50;
--@ error: 23503
DELETE FROM kinds WHERE id = 2;
--@ error: 23503
UPDATE kinds SET id = 20 WHERE id = 3;
--@ error: 23503
COPY projects FROM STDIN (FORMAT csv);
1,20,ok,1
500,1,nobody,1
\.
SELECT count(*) FROM projects WHERE p = 20;
--@ error: 2BP01
DROP TABLE tenants;
--@ error: 2BP01
DROP TABLE kinds;
--@ error: 2BP01
ALTER TABLE tenants DROP CONSTRAINT tenants_pkey;
--@ error: 0A000
TRUNCATE tenants;
--@ error: 0A000
TRUNCATE kinds;

-- What they pass on.
DELETE FROM tenants WHERE t = 5;
SELECT (SELECT count(*) FROM projects WHERE t = 5), (SELECT count(*) FROM tasks WHERE t = 5), (SELECT count(*) FROM tasks);
DELETE FROM projects WHERE p = 3;
SELECT count(*), max(p) FROM tasks;
DELETE FROM projects WHERE t = 6 AND p = 1 RETURNING name;
SELECT count(*) FROM tasks WHERE t = 6;
INSERT INTO kinds VALUES (4, 'four');
UPDATE tasks SET kind = 4 WHERE t < 4;
INSERT INTO colours VALUES ('green', 4);
SELECT count(*) FROM tasks WHERE kind = 4;
UPDATE tasks SET kind = NULL WHERE kind = 4;
UPDATE tasks SET kind = 3 WHERE t = 8;
BEGIN;
DELETE FROM tenants;
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM tasks);
ROLLBACK;
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM tasks);
BEGIN;
TRUNCATE tenants CASCADE;
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM tasks);
ROLLBACK;
TRUNCATE tenants, projects, tasks;
SELECT (SELECT count(*) FROM projects), (SELECT count(*) FROM tasks);
INSERT INTO tenants SELECT g, 'tenant ' || g FROM generate_series(1, 6) g;
INSERT INTO projects SELECT t, p, 'p' || p, 1 FROM generate_series(1, 6) t, generate_series(1, 2) p;

-- Deferred.
ALTER TABLE projects DROP CONSTRAINT projects_t;
ALTER TABLE projects ADD CONSTRAINT projects_t FOREIGN KEY (t) REFERENCES tenants (t) DEFERRABLE INITIALLY IMMEDIATE;
BEGIN;
SET CONSTRAINTS projects_t DEFERRED;
INSERT INTO projects VALUES (50, 1, 'early', 1);
SELECT count(*) FROM projects WHERE t = 50;
INSERT INTO tenants VALUES (50, 'late');
COMMIT;
SELECT t.name, p.name FROM tenants t JOIN projects p USING (t) WHERE t = 50;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO projects VALUES (60, 1, 'never', 1);
--@ error: 23503
COMMIT;
SELECT count(*) FROM projects WHERE t = 60;
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO projects VALUES (61, 1, 'never', 1);
--@ error: 23503
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK;
BEGIN;
INSERT INTO tenants VALUES (70, 'x');
INSERT INTO projects VALUES (70, 1, 'x', 1), (1, 30, 'x', 1), (2, 30, 'x', 1);
COMMIT;
SELECT count(*) FROM projects;

-- Other actions.
ALTER TABLE tasks DROP CONSTRAINT tasks_p;
ALTER TABLE tasks ADD CONSTRAINT tasks_p FOREIGN KEY (t, p) REFERENCES projects ON DELETE RESTRICT;
INSERT INTO tasks (t, p, n) VALUES (1, 1, 1), (2, 2, 1);
--@ error: 23503 before 18
--@ error: 23001 from 18
DELETE FROM projects WHERE t = 1 AND p = 1;
--@ error: 23503 before 18
--@ error: 23001 from 18
--@ loose: which row comes first
DELETE FROM projects;
ALTER TABLE tasks DROP CONSTRAINT tasks_kind;
ALTER TABLE tasks ADD FOREIGN KEY (kind) REFERENCES kinds;
INSERT INTO tasks (t, p, n, kind) VALUES (1, 1, 2, NULL);
--@ error: 23503
INSERT INTO tasks (t, p, n, kind) VALUES (1, 1, 3, 55);
UPDATE tasks SET kind = 2 WHERE n = 2 RETURNING t, kind;
CREATE TABLE self_ref (t int, id int, parent int, PRIMARY KEY (t, id));
--@ cluster: SELECT create_distributed_table('self_ref', 't')
ALTER TABLE self_ref ADD CONSTRAINT to_parent FOREIGN KEY (t, parent) REFERENCES self_ref (t, id) ON DELETE CASCADE;
INSERT INTO self_ref VALUES (1, 1, NULL), (1, 2, 1), (1, 3, 2), (2, 1, NULL), (2, 2, 1);
--@ error: 23503
INSERT INTO self_ref VALUES (3, 1, 9);
DELETE FROM self_ref WHERE id = 1 AND t = 1;
SELECT * FROM self_ref;
--@ error: 42703
ALTER TABLE tasks ADD FOREIGN KEY (nothing) REFERENCES kinds;
--@ error: 42830
ALTER TABLE tasks ADD FOREIGN KEY (t, owner) REFERENCES projects (t, kind);
INSERT INTO tasks (t, p, n, owner) VALUES (2, 1, 1, 99);
--@ error: 23503
ALTER TABLE tasks ADD CONSTRAINT bad FOREIGN KEY (owner) REFERENCES kinds (id);
ALTER TABLE tasks ADD CONSTRAINT fine FOREIGN KEY (owner) REFERENCES kinds (id) NOT VALID;
UPDATE tasks SET owner = 1 WHERE owner = 99;
ALTER TABLE tasks VALIDATE CONSTRAINT fine;
ALTER TABLE tasks RENAME CONSTRAINT fine TO finer;
--@ error: 23503
UPDATE tasks SET owner = 99;

-- Made with the table, between local and reference tables.
CREATE TABLE local_tasks (id serial PRIMARY KEY, kind int REFERENCES kinds (id) ON DELETE CASCADE);
INSERT INTO local_tasks (kind) VALUES (1), (2), (NULL);
--@ error: 23503
INSERT INTO local_tasks (kind) VALUES (1000);
SELECT count(*) FROM local_tasks JOIN kinds ON kinds.id = local_tasks.kind;
CREATE TABLE with_key (t int REFERENCES tenants, n int, PRIMARY KEY (t, n));
DROP TABLE tenants CASCADE;
INSERT INTO projects VALUES (4000, 1, 'free', 1);
SELECT count(*) FROM projects WHERE t = 4000;
DROP TABLE local_tasks;
DROP TABLE kinds CASCADE;
UPDATE projects SET kind = 99;
SELECT count(*) FROM projects WHERE kind = 99;

-- What a key changes with its rows is seen by other parts of the statement as it was.
CREATE TABLE owners (id int PRIMARY KEY, n int);
CREATE TABLE pets (owner int REFERENCES owners ON DELETE CASCADE, id int, PRIMARY KEY (owner, id));
CREATE TABLE toys (owner int, id int, pet int, PRIMARY KEY (owner, id), FOREIGN KEY (owner, pet) REFERENCES pets (owner, id) ON DELETE SET NULL (pet));
CREATE TABLE picks (k int);
--@ cluster: SELECT create_distributed_table('owners', 'id'), create_distributed_table('pets', 'owner'), create_distributed_table('toys', 'owner')
INSERT INTO owners SELECT g, g * 10 FROM generate_series(1, 8) g;
INSERT INTO pets SELECT g % 8 + 1, g FROM generate_series(1, 24) g;
INSERT INTO toys SELECT g % 8 + 1, g, g FROM generate_series(1, 24) g;
INSERT INTO picks VALUES (2), (3), (5);
BEGIN;
WITH gone AS (DELETE FROM owners WHERE id IN (SELECT k FROM picks) RETURNING id) SELECT (SELECT count(*) FROM gone), count(*), count(pet) FROM pets JOIN toys ON toys.pet = pets.id;
SELECT count(*) FROM pets;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM owners o USING picks WHERE o.id = k RETURNING o.id) SELECT gone.id, (SELECT count(*) FROM pets p WHERE p.owner = gone.id), (SELECT count(pet) FROM toys t WHERE t.owner = gone.id) FROM gone;
SELECT owner, id, pet FROM toys;
ROLLBACK;
BEGIN;
DELETE FROM owners o USING picks WHERE o.id = k AND o.n <= (SELECT count(*) FROM pets p WHERE p.id > o.id) * 2 RETURNING o.id;
SELECT count(*) FROM pets;
ROLLBACK;
BEGIN;
DELETE FROM owners o WHERE o.id IN (SELECT k FROM picks) AND (SELECT count(*) FROM pets p JOIN picks ON p.owner >= k) >= 15 + o.id * 0 RETURNING o.id, (SELECT count(*) FROM toys t WHERE t.pet IS NOT NULL AND t.id >= o.id);
SELECT count(*) FROM pets;
ROLLBACK;
BEGIN;
DO $$ BEGIN DELETE FROM owners o WHERE (SELECT count(*) FROM pets p WHERE p.id >= o.id) > 20; END $$;
SELECT count(*) FROM owners;
SELECT count(*), count(pet) FROM toys;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM owners WHERE id IN (SELECT k FROM picks)) DELETE FROM pets p USING picks WHERE p.id = k RETURNING p.id;
SELECT * FROM pets;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM owners WHERE id IN (SELECT k FROM picks) RETURNING id) UPDATE toys t SET id = t.id + 100 FROM gone WHERE t.owner = gone.id RETURNING t.*;
ROLLBACK;
BEGIN;
WITH gone AS (DELETE FROM owners WHERE id IN (SELECT k FROM picks) RETURNING id) INSERT INTO picks SELECT p.id FROM pets p JOIN gone ON p.owner = gone.id;
SELECT * FROM picks;
ROLLBACK;
CREATE TABLE branches (t int, id int, parent int, PRIMARY KEY (t, id), FOREIGN KEY (t, parent) REFERENCES branches ON DELETE CASCADE);
--@ cluster: SELECT create_distributed_table('branches', 't')
INSERT INTO branches VALUES (1, 1, NULL), (1, 2, 1), (1, 3, 2), (2, 1, NULL), (2, 2, 1), (3, 2, NULL);
BEGIN;
DELETE FROM branches b USING picks WHERE b.id < k AND k < 4 AND b.t < 3;
ROLLBACK;
BEGIN;
DELETE FROM branches b WHERE b.id IN (SELECT k - 1 FROM picks) OR b.parent IN (SELECT k - 1 FROM picks) RETURNING b.*;
ROLLBACK;
DROP TABLE branches, toys, pets, owners, picks;

-- Tables like distributed ones, with keys to others or none.
CREATE TABLE fk_events (k int PRIMARY KEY, v int);
CREATE TABLE fk_regions (r int PRIMARY KEY);
CREATE TABLE fk_places (p int PRIMARY KEY);
--@ cluster: SELECT create_distributed_table('fk_events', 'k'), create_reference_table('fk_regions')
CREATE TABLE fk_staging (LIKE fk_events, region int REFERENCES fk_places);
CREATE TABLE fk_noted (LIKE fk_events INCLUDING ALL, note text DEFAULT 'references');
INSERT INTO fk_places VALUES (1);
INSERT INTO fk_staging VALUES (1, 1, 1);
--@ error: 23503
INSERT INTO fk_staging VALUES (1, 1, 2);
INSERT INTO fk_noted VALUES (1, 1);
SELECT * FROM fk_staging, fk_noted;
BEGIN;
CREATE TABLE fk_bad (LIKE fk_events, e int REFERENCES fk_events);
ROLLBACK;
BEGIN;
CREATE TABLE fk_bad (e int, note text DEFAULT 'x', CONSTRAINT c FOREIGN KEY (e) REFERENCES fk_events (k));
ROLLBACK;
DROP TABLE fk_staging, fk_noted, fk_events, fk_regions, fk_places;
