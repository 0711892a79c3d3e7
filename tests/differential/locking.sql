--@ include: schema.sql
-- Row locks: queues, and subqueries that lock.

CREATE TABLE jobs (id int PRIMARY KEY, prio int, state text DEFAULT 'new', owner text);
--@ cluster: SELECT create_distributed_table('jobs', 'id')
INSERT INTO jobs (id, prio) SELECT g, g * 7 % 11 FROM generate_series(1, 60) g;
--@ ordered
SELECT id, prio FROM jobs WHERE state = 'new' ORDER BY prio DESC, id LIMIT 2 FOR UPDATE SKIP LOCKED;
--@ ordered
SELECT id FROM jobs ORDER BY prio, id DESC FOR SHARE;
--@ ordered
SELECT id FROM jobs ORDER BY prio, id LIMIT 3 OFFSET 2 FOR NO KEY UPDATE NOWAIT;
--@ ordered
SELECT j.id, u.name FROM jobs j JOIN users u ON u.id = j.id ORDER BY j.prio, j.id LIMIT 4 FOR UPDATE OF j;
--@ ordered
SELECT j.id, u.b FROM jobs j JOIN friends u ON u.a = j.prio ORDER BY j.prio, j.id, u.id LIMIT 4 FOR UPDATE OF j;
--@ ordered
SELECT id, lower(state) AS s FROM jobs ORDER BY 2, prio, id FOR UPDATE LIMIT 2;
SELECT count(*) FROM (SELECT id FROM jobs ORDER BY id LIMIT 5 FOR UPDATE) s;
SELECT s.id, u.name FROM (SELECT id, prio FROM jobs ORDER BY prio, id LIMIT 3 FOR UPDATE) s JOIN users u ON u.id = s.id;
--@ error: 0A000
SELECT DISTINCT prio FROM jobs ORDER BY prio FOR UPDATE;
--@ error: 0A000
SELECT prio, count(*) FROM jobs GROUP BY prio ORDER BY prio FOR UPDATE;
--@ error: 42P01
SELECT id FROM jobs ORDER BY id FOR UPDATE OF nope;
UPDATE jobs SET state = 'run' WHERE id = (SELECT id FROM jobs WHERE state = 'new' ORDER BY prio, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, prio, state;
UPDATE jobs SET state = 'run', owner = 'me' WHERE id IN (SELECT id FROM jobs WHERE state = 'new' ORDER BY prio, id LIMIT 3 FOR UPDATE SKIP LOCKED) RETURNING id, prio;
DELETE FROM jobs WHERE id = (SELECT id FROM jobs WHERE state = 'run' ORDER BY prio DESC, id DESC LIMIT 1 FOR UPDATE) RETURNING *;
WITH next AS (SELECT id FROM jobs WHERE state = 'new' ORDER BY prio, id LIMIT 2 FOR UPDATE SKIP LOCKED) UPDATE jobs j SET state = 'cte' FROM next WHERE j.id = next.id RETURNING j.id, j.state;
WITH next AS MATERIALIZED (SELECT id FROM jobs WHERE state = 'new' ORDER BY prio DESC, id LIMIT 2 FOR UPDATE) DELETE FROM jobs USING next WHERE jobs.id = next.id RETURNING jobs.*;
--@ params: 'new', 2
--@ params: 'cte', 1
UPDATE jobs SET owner = $1 WHERE id IN (SELECT id FROM jobs WHERE state = $1 ORDER BY prio, id LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING id, owner;
--@ params: 'new', 2
--@ ordered
SELECT id FROM jobs WHERE state = $1 ORDER BY prio, id LIMIT $2 FOR UPDATE;
BEGIN;
SELECT id FROM jobs WHERE state = 'cte' ORDER BY id FOR UPDATE;
UPDATE jobs SET owner = 'x' WHERE state = 'cte';
SAVEPOINT s;
--@ ordered
SELECT id, owner FROM jobs WHERE owner = 'x' ORDER BY prio, id LIMIT 1 FOR UPDATE;
ROLLBACK TO s;
COMMIT;
CREATE FUNCTION next_job() RETURNS int LANGUAGE plpgsql AS $$
DECLARE j jobs;
BEGIN
  SELECT * INTO j FROM jobs WHERE state = 'new' ORDER BY prio, id LIMIT 1 FOR UPDATE SKIP LOCKED;
  UPDATE jobs SET state = 'taken' WHERE id = j.id;
  RETURN j.id;
END $$;
--@ repeat: 1
SELECT next_job();
--@ repeat: 1
SELECT next_job();
SELECT state, owner, count(*), sum(id) FROM jobs GROUP BY state, owner;

-- WHERE CURRENT OF.
CREATE TABLE walked (id int PRIMARY KEY, v text, n int, twice int GENERATED ALWAYS AS (n * 2) STORED);
--@ cluster: SELECT create_distributed_table('walked', 'id')
INSERT INTO walked (id, v, n) SELECT g, 'v' || g, g FROM generate_series(1, 12) g;
BEGIN;
DECLARE w CURSOR FOR SELECT id, v FROM walked WHERE n < 6 ORDER BY id FOR UPDATE;
--@ error: 24000
UPDATE walked SET v = 'early' WHERE CURRENT OF w;
ROLLBACK;
BEGIN;
DECLARE w CURSOR FOR SELECT id, v FROM walked WHERE n < 6 ORDER BY id FOR UPDATE;
--@ ordered
FETCH 2 FROM w;
UPDATE walked SET v = 'second', n = n + 100 WHERE CURRENT OF w RETURNING id, v, twice;
UPDATE walked SET v = v || ' again', n = (SELECT 7) WHERE CURRENT OF w RETURNING *;
FETCH NEXT FROM w;
DELETE FROM walked WHERE CURRENT OF w RETURNING id;
SAVEPOINT s;
--@ error: 24000
UPDATE jobs SET owner = 'x' WHERE CURRENT OF w;
ROLLBACK TO s;
MOVE 1 FROM w;
UPDATE walked AS x SET v = 'moved to' WHERE CURRENT OF w RETURNING x.id, x.v;
--@ ordered
FETCH ALL FROM w;
SAVEPOINT s2;
--@ error: 24000
DELETE FROM walked WHERE CURRENT OF w;
ROLLBACK TO s2;
CLOSE w;
--@ error: 34000
DELETE FROM walked WHERE CURRENT OF w;
ROLLBACK;
BEGIN;
DECLARE "W x" CURSOR FOR SELECT * FROM walked a WHERE id = 4 FOR NO KEY UPDATE;
FETCH "W x";
UPDATE walked SET v = 'quoted', n = NULL WHERE CURRENT OF "W x";
FETCH "W x";
COMMIT;
SELECT * FROM walked;

-- A cursor that ROLLBACK TO has taken away.
CREATE TABLE undeclared (id int PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('undeclared', 'id')
INSERT INTO undeclared SELECT g, 'v' || g FROM generate_series(1, 5) g;
BEGIN;
SAVEPOINT a;
DECLARE gone CURSOR FOR SELECT * FROM undeclared WHERE id = 3 FOR UPDATE;
FETCH gone;
ROLLBACK TO a;
--@ error: 34000
UPDATE undeclared SET v = 'changed' WHERE CURRENT OF gone;
ROLLBACK;
BEGIN;
SAVEPOINT a;
SAVEPOINT b;
DECLARE stays CURSOR FOR SELECT * FROM undeclared WHERE id = 3 FOR UPDATE;
FETCH stays;
RELEASE b;
RELEASE a;
SAVEPOINT c;
DECLARE gone CURSOR FOR SELECT * FROM undeclared WHERE id = 4 FOR UPDATE;
FETCH gone;
ROLLBACK TO c;
UPDATE undeclared SET v = 'changed' WHERE CURRENT OF stays RETURNING *;
SAVEPOINT d;
--@ error: 34000
DELETE FROM undeclared WHERE CURRENT OF gone;
ROLLBACK TO d;
DELETE FROM undeclared WHERE CURRENT OF stays RETURNING *;
COMMIT;
SELECT * FROM undeclared;
