-- What applications send all day, inside a transaction that has written, behind savepoints, and after an error: functions about
-- one key, lists and arrays of keys, the first rows by numbers, rows with keys that the database makes, writes that return.
CREATE TABLE person (id int PRIMARY KEY, name text, visits int DEFAULT 0, big bigint);
CREATE TABLE visit (person int NOT NULL, id bigserial, at int, PRIMARY KEY (person, id));
CREATE TABLE noted (id bigserial PRIMARY KEY, what text);
--@ cluster: SELECT create_distributed_table('person', 'id'), create_distributed_table('visit', 'person')
INSERT INTO person SELECT g, 'p' || g, g % 7, 9223372036854775807 - g % 11 FROM generate_series(1, 60) g;
INSERT INTO visit (person, at) SELECT g % 60 + 1, g FROM generate_series(1, 200) g;
CREATE FUNCTION comes(who int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
    UPDATE person SET visits = visits + 1 WHERE id = who RETURNING visits INTO n;
    INSERT INTO visit (person, at) VALUES (who, n);
    RETURN n;
END $$;
CREATE FUNCTION seen(who int) RETURNS TABLE (name text, times bigint) LANGUAGE sql AS
    $$ SELECT p.name, count(*) FROM person p JOIN visit v ON v.person = p.id WHERE p.id = who GROUP BY p.name $$;
CREATE FUNCTION fails(who int) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    UPDATE person SET visits = visits + 1 WHERE id = who;
    RETURN 1 / (who - who);
END $$;
CREATE FUNCTION everyone() RETURNS TABLE (name text, visits int) LANGUAGE sql AS $$ SELECT name, visits FROM person $$;
SELECT comes(3), comes(4);
SELECT comes(3);
SELECT * FROM seen(3);
SELECT * FROM everyone();
BEGIN;
UPDATE person SET name = 'w' WHERE id = 7;
--@ params: 7
SELECT comes($1);
--@ params: 8
SELECT comes($1);
--@ params: 7
SELECT * FROM seen($1);
SELECT count(*), sum(visits) FROM everyone();
--@ params: 7, 50
SELECT id, name, visits FROM person WHERE id IN ($1, $2, 8);
--@ types: 1007
--@ params: '{7,8,NULL,50,70}'
SELECT id, name, visits FROM person WHERE id = ANY ($1);
--@ types: 1007
--@ params: '{}'
SELECT id FROM person WHERE id = ANY ($1);
--@ types: 1007
--@ params: '{7,8}'
UPDATE person SET visits = visits + 10 WHERE id = ANY ($1) RETURNING id, visits;
SELECT id FROM person WHERE id = ANY (ARRAY[7, 9, 11]::int[]);
--@ ordered
SELECT id, visits FROM person ORDER BY visits DESC, id LIMIT 5;
--@ ordered
SELECT id, big FROM person ORDER BY big DESC, id DESC LIMIT 4;
--@ ordered
--@ params: 3
SELECT person, at FROM visit WHERE at < 50 ORDER BY at, person, id LIMIT $1;
--@ params: 7
INSERT INTO person (id, name) VALUES ($1, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id, name, visits;
--@ params: 61
INSERT INTO person (id, name) VALUES ($1, 'new') ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id, name, visits;
--@ params: 7
SELECT * FROM person WHERE id = $1 FOR UPDATE;
--@ params: 7
SELECT * FROM person WHERE id = $1 FOR NO KEY UPDATE NOWAIT;
--@ params: 'first'
INSERT INTO noted (what) VALUES ($1);
--@ params: 'second'
INSERT INTO noted (what) VALUES ($1) RETURNING what;
SELECT lastval() = max(id), currval('noted_id_seq') = max(id) FROM noted;
SAVEPOINT s;
--@ params: 9
SELECT comes($1);
--@ params: 'gone'
INSERT INTO noted (what) VALUES ($1) RETURNING what;
--@ error: 22012
--@ params: 9
SELECT fails($1);
--@ error: 25P02
SELECT 1;
ROLLBACK TO s;
--@ params: 9
SELECT * FROM seen($1);
SELECT id, visits FROM person WHERE id IN (7, 8, 9);
SET LOCAL work_mem = '5MB';
SET LOCAL statement_timeout = '50s';
SHOW work_mem;
--@ params: 9
SELECT comes($1);
--@ error: 22023
SET LOCAL work_mem = 'much';
ROLLBACK TO s;
SHOW work_mem;
SELECT id, visits FROM person WHERE id IN (7, 8, 9);
COMMIT;
SHOW statement_timeout;
BEGIN;
INSERT INTO noted (what) VALUES ('third');
DELETE FROM person WHERE id IN (20, 21) RETURNING id;
--@ ordered
SELECT id FROM person WHERE id BETWEEN 18 AND 23 ORDER BY id LIMIT 4;
SELECT comes(20), comes(22);
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM seen(22);
--@ error: 25006
SELECT comes(22);
ROLLBACK;
BEGIN READ ONLY;
--@ error: 25006
INSERT INTO noted (what) VALUES ('never');
ROLLBACK;
SELECT count(*), sum(visits), count(DISTINCT name) FROM person;
SELECT count(*), sum(at) FROM visit;
SELECT what FROM noted;
