-- Foreign keys of local tables with rows to distributed ones: added, validated, with new columns.

CREATE TABLE d (k int PRIMARY KEY, n int);
--@ cluster: SELECT create_distributed_table('d', 'k')
INSERT INTO d SELECT g, g FROM generate_series(1, 10) g;
CREATE TABLE l (id int PRIMARY KEY, q int);
INSERT INTO l SELECT g, g FROM generate_series(1, 10) g;
ALTER TABLE l ADD CONSTRAINT fk FOREIGN KEY (q) REFERENCES d (k) DEFERRABLE INITIALLY DEFERRED;
--@ mode: simple
--@ error: 23503
INSERT INTO l VALUES (11, 11);
ALTER TABLE l DROP CONSTRAINT fk;
INSERT INTO l VALUES (11, 11);
--@ error: 23503
ALTER TABLE l ADD CONSTRAINT fk FOREIGN KEY (q) REFERENCES d;
ALTER TABLE l ADD CONSTRAINT fk FOREIGN KEY (q) REFERENCES d NOT VALID;
--@ error: 23503
ALTER TABLE l VALIDATE CONSTRAINT fk;
SELECT convalidated FROM pg_constraint WHERE conrelid = 'l'::regclass AND conname = 'fk';
DELETE FROM l WHERE id = 11;
ALTER TABLE l VALIDATE CONSTRAINT fk;
ALTER TABLE l VALIDATE CONSTRAINT fk, VALIDATE CONSTRAINT fk;
--@ error: 42704
ALTER TABLE l VALIDATE CONSTRAINT none;
SELECT conname, convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'l'::regclass ORDER BY 1;
--@ error: 23503
DELETE FROM d WHERE k = 3;
--@ error: 23503
UPDATE l SET q = 50 WHERE id = 2;
INSERT INTO l VALUES (12, 1);

-- New columns, as AddField of an ORM writes them.
ALTER TABLE l ADD COLUMN a int REFERENCES d;
ALTER TABLE l ADD COLUMN b int DEFAULT 5 NOT NULL CONSTRAINT b_key REFERENCES d (k) ON DELETE SET DEFAULT DEFERRABLE INITIALLY DEFERRED;
--@ error: 23503
ALTER TABLE l ADD COLUMN "c C" int DEFAULT 55 REFERENCES d, ADD CHECK (id > 0);
ALTER TABLE l ADD COLUMN "c C" int CHECK ("c C" > 0) DEFAULT 7 REFERENCES d NOT NULL, ADD CHECK (id > 0);
SELECT conname, condeferrable, convalidated, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'l'::regclass ORDER BY 1;
SELECT * FROM l ORDER BY id LIMIT 2;
--@ error: 23503
DELETE FROM d WHERE k = 7;
--@ error: 23503
INSERT INTO l (id, "c C") VALUES (20, 70);

-- Several columns, MATCH FULL, other types, names and schemas.
CREATE SCHEMA "S s";
CREATE TABLE "S s".m (a int, b text, PRIMARY KEY (a, b));
--@ cluster: SELECT create_distributed_table('"S s".m', 'a')
INSERT INTO "S s".m VALUES (1, 'x'), (2, 'y'), (3, 'it''s');
CREATE TABLE n (a bigint, b varchar(10));
INSERT INTO n VALUES (1, 'x'), (NULL, 'y'), (3, 'it''s');
--@ error: 23503
ALTER TABLE n ADD FOREIGN KEY (a, b) REFERENCES "S s".m MATCH FULL;
ALTER TABLE n ADD CONSTRAINT simple FOREIGN KEY (a, b) REFERENCES "S s".m ON UPDATE CASCADE, ADD CONSTRAINT positive CHECK (a > 0);
--@ error: 23503
INSERT INTO n VALUES (4, 'z');
BEGIN;
ALTER TABLE n DROP CONSTRAINT simple;
INSERT INTO n VALUES (4, 'z');
SAVEPOINT s;
--@ error: 23503
ALTER TABLE n ADD CONSTRAINT simple FOREIGN KEY (a, b) REFERENCES "S s".m;
ROLLBACK TO s;
DELETE FROM n WHERE a = 4;
ALTER TABLE n ADD CONSTRAINT simple FOREIGN KEY (a, b) REFERENCES "S s".m;
--@ error: 23503
INSERT INTO n VALUES (4, 'z');
ROLLBACK TO s;
DELETE FROM n WHERE a = 4;
ALTER TABLE n ADD CONSTRAINT simple FOREIGN KEY (a, b) REFERENCES "S s".m;
COMMIT;
SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'n'::regclass ORDER BY 1;
-- The table is distributed later, its keys with it.
ALTER TABLE n DROP CONSTRAINT simple;
DELETE FROM n WHERE a IS NULL;
ALTER TABLE n ADD CONSTRAINT simple FOREIGN KEY (a, b) REFERENCES "S s".m;
CREATE TABLE one (k int);
INSERT INTO one VALUES (1), (2), (NULL);
ALTER TABLE one ADD CONSTRAINT one_key FOREIGN KEY (k) REFERENCES d;
--@ cluster: SELECT create_distributed_table('one', 'k', colocate_with => 'd')
--@ error: 23503
INSERT INTO one VALUES (1000);
--@ error: 23503
DELETE FROM d WHERE k = 2;
-- To a local and to a distributed table at once.
CREATE TABLE plain (k int PRIMARY KEY);
INSERT INTO plain VALUES (1);
CREATE TABLE two (x int, y int);
INSERT INTO two VALUES (1, 1);
ALTER TABLE two ADD FOREIGN KEY (x) REFERENCES plain, ADD FOREIGN KEY (y) REFERENCES d;
--@ error: 23503
INSERT INTO two VALUES (2, 1);
--@ error: 23503
INSERT INTO two VALUES (1, 100);
INSERT INTO two VALUES (1, NULL);
--@ error: 23502
ALTER TABLE two ADD FOREIGN KEY (x) REFERENCES d, ALTER COLUMN y SET NOT NULL;
SELECT count(*) FROM pg_constraint WHERE conrelid = 'two'::regclass;
