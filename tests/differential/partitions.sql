-- Partitioned tables of the user's: distributed by another column, with their partitions.

CREATE TABLE regions (id int PRIMARY KEY, name text);
INSERT INTO regions VALUES (1, 'north'), (2, 'south'), (3, 'east');
--@ cluster: SELECT create_reference_table('regions')
CREATE TABLE devices (k int PRIMARY KEY, label text);
INSERT INTO devices SELECT g, 'device ' || g FROM generate_series(0, 60) g;
--@ cluster: SELECT create_distributed_table('devices', 'k')

-- Empty, with partitions.
CREATE TABLE by_month (k int, at date NOT NULL, v int) PARTITION BY RANGE (at);
CREATE TABLE by_month_1 PARTITION OF by_month FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE by_month_2 PARTITION OF by_month FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
--@ cluster: SELECT create_distributed_table('by_month', 'k')
INSERT INTO by_month SELECT g, date '2020-01-01' + g, g * 2 FROM generate_series(0, 50) g;
SELECT count(*), sum(v) FROM by_month;
SELECT count(*) FROM by_month_2;
SELECT * FROM by_month WHERE k = 40;
SELECT * FROM by_month_1 WHERE k = 4;
SELECT * FROM by_month_1 WHERE k = 40;
CREATE TABLE by_month_3 PARTITION OF by_month FOR VALUES FROM ('2020-03-01') TO ('2020-04-01');
INSERT INTO by_month VALUES (77, '2020-03-05', 1);
INSERT INTO by_month_3 VALUES (78, '2020-03-06', 1);
SELECT count(*) FROM by_month_3;
--@ error: 23514
INSERT INTO by_month VALUES (78, '2021-03-05', 1);
--@ error: 23514
INSERT INTO by_month_3 VALUES (78, '2020-02-05', 1);
--@ error: 42P17
CREATE TABLE by_month_4 PARTITION OF by_month FOR VALUES FROM ('2020-03-15') TO ('2020-04-01');
UPDATE by_month SET at = at + 31, v = v + 1 WHERE k = 3 RETURNING *;
SELECT * FROM by_month_2 WHERE k = 3;
UPDATE by_month SET at = date '2020-03-31' WHERE k BETWEEN 5 AND 15;
SELECT count(*) FROM by_month_3;
UPDATE by_month SET at = date '2020-01-05' FROM devices d WHERE d.k = by_month.k AND d.k = 6 RETURNING by_month.*, d.label;
DELETE FROM by_month WHERE at < '2020-01-03' RETURNING k, at;
DROP TABLE by_month_1;
SELECT count(*) FROM by_month;
ALTER TABLE by_month DETACH PARTITION by_month_2;
SELECT count(*) FROM by_month;
SELECT count(*) FROM by_month_2;
INSERT INTO by_month_2 VALUES (500, '1999-01-01', 1);
SELECT * FROM by_month_2 WHERE k = 500;
DELETE FROM by_month_2 WHERE k = 500;
ALTER TABLE by_month ATTACH PARTITION by_month_2 FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
SELECT count(*) FROM by_month;
DROP TABLE by_month;
--@ error: 42P01
SELECT * FROM by_month_2;

-- Loaded, with a primary key, indexes, defaults, a default partition and a foreign key to a reference table.
CREATE TABLE events (
    k int NOT NULL, at timestamptz NOT NULL DEFAULT '2024-01-15 00:00+00', region int REFERENCES regions,
    kind text DEFAULT 'click' CHECK (kind <> ''), n bigserial, PRIMARY KEY (k, at, n)
) PARTITION BY RANGE (at);
CREATE INDEX ON events (region);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01 00:00+00') TO ('2024-02-01 00:00+00');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2024-02-01 00:00+00') TO ('2024-03-01 00:00+00');
CREATE TABLE events_rest PARTITION OF events DEFAULT;
INSERT INTO events (k, at, region) SELECT g % 40, timestamptz '2024-01-01 00:00+00' + g * interval '12 hours', 1 + g % 3 FROM generate_series(0, 199) g;
--@ cluster: SELECT create_distributed_table('events', 'k')
SELECT count(*), sum(n), min(at), max(at) FROM events;
SELECT count(*) FROM events_1;
SELECT count(*) FROM events_rest;
SELECT region, count(*), max(n) FROM events WHERE at < '2024-02-10 00:00+00' GROUP BY region;
SELECT r.name, count(*) FROM events e JOIN regions r ON r.id = e.region GROUP BY r.name;
SELECT d.label, e.at, e.n FROM events e JOIN devices d USING (k) WHERE e.k = 7;
SELECT d.label, count(e.n) FROM devices d LEFT JOIN events_1 e USING (k) GROUP BY d.label;
SELECT a.k, a.n, b.n FROM events_1 a JOIN events_2 b USING (k) WHERE a.region = b.region AND a.k < 5;
--@ ordered
SELECT k, at, n FROM events ORDER BY at DESC, n LIMIT 7;
SELECT * FROM events WHERE at = '2024-01-10 12:00+00';
SELECT count(*) FROM events e WHERE EXISTS (SELECT FROM events_2 x WHERE x.k = e.k AND x.at > e.at);
SELECT k, count(*) OVER (PARTITION BY region) FROM events WHERE k < 3 AND at < '2024-01-20 00:00+00';
--@ params: 7
--@ params: 8
--@ types: 23
SELECT count(*), min(at) FROM events WHERE k = $1;
--@ params: 7, '2024-02-01 00:00+00'
--@ params: 9, '2024-03-01 00:00+00'
--@ types: 23, 1184
SELECT n FROM events WHERE k = $1 AND at > $2;
INSERT INTO events (k, at, region) VALUES (1, '2024-01-02 00:00+00', 1), (2, '2024-02-02 00:00+00', 2), (3, '2030-02-02 00:00+00', 3) RETURNING k, at, kind, n;
INSERT INTO events (k) VALUES (4) RETURNING *;
INSERT INTO events (k, region, n) VALUES (4, 1, 7), (5, 1, 7) ON CONFLICT (k, at, n) DO UPDATE SET kind = 'again ' || excluded.n RETURNING k, at, kind, n;
INSERT INTO events (k, region, n) VALUES (4, 1, 7), (5, 1, 8) ON CONFLICT (k, at, n) DO UPDATE SET kind = 'again ' || excluded.n, region = 3 RETURNING k, at, kind, n;
INSERT INTO events (k, region, n) VALUES (4, 1, 7), (6, 1, 8) ON CONFLICT DO NOTHING RETURNING k, n;
--@ error: 23505
INSERT INTO events (k, n) VALUES (4, 7);
--@ error: 23503
INSERT INTO events (k, region) VALUES (4, 17);
--@ error: 23503
DELETE FROM regions WHERE id = 1;
--@ error: 23514
INSERT INTO events (k, kind) VALUES (4, '');
INSERT INTO events (k, at, region, n) SELECT k, at + interval '1 year', region, n FROM events WHERE k < 3;
INSERT INTO events_rest (k, at, n) SELECT k + 100, at + interval '10 years', n FROM events_1 WHERE k = 1 RETURNING k, at, n;
SELECT count(*) FROM events_rest;
UPDATE events SET at = at + interval '1 month' WHERE k = 4 RETURNING at, n;
UPDATE events SET kind = 'seen' WHERE at < '2024-01-05 00:00+00';
UPDATE events_1 SET kind = 'one' WHERE k = 8 RETURNING k, kind, n;
--@ error: 23514
UPDATE events_1 SET at = '2024-02-05 00:00+00' WHERE k = 8;
UPDATE events e SET kind = r.name FROM regions r WHERE r.id = e.region AND e.k = 9 RETURNING e.k, e.kind;
DELETE FROM events USING devices d WHERE d.k = events.k AND d.label = 'device 10' RETURNING events.n;
DELETE FROM events_2 WHERE k = 11 RETURNING n;
SELECT kind, count(*) FROM events GROUP BY kind;
MERGE INTO events e USING (VALUES (12, 'merged')) s(k, kind) ON e.k = s.k AND e.k = 12 WHEN MATCHED THEN UPDATE SET kind = s.kind;
SELECT count(*) FROM events WHERE kind = 'merged';
-- The distribution column.
UPDATE events SET k = 41 WHERE k = 13 AND at < '2024-02-01 00:00+00';
SELECT k, at, n FROM events WHERE k IN (13, 41);
-- What the coordinator runs.
CREATE TABLE wanted (k int, at timestamptz);
INSERT INTO wanted VALUES (14, '2024-01-08 00:00+00'), (15, '2024-02-17 12:00+00');
SELECT e.k, e.at, e.n FROM events e JOIN wanted w ON w.k = e.k AND e.at >= w.at;
UPDATE events SET kind = 'wanted' FROM wanted w WHERE w.k = events.k RETURNING events.k, events.n;
DELETE FROM events WHERE (k, at) IN (SELECT k, at FROM wanted) RETURNING k;
SELECT count(*) FROM events WHERE kind = 'wanted';
CREATE FUNCTION add_event(key int, moment timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint;
BEGIN
    INSERT INTO events (k, at, region) VALUES (key, moment, 2) RETURNING k INTO r;
    UPDATE events SET kind = 'by function' WHERE k = key AND at = moment;
    RETURN (SELECT count(*) FROM events WHERE k = key AND kind = 'by function') + r;
END $$;
SELECT add_event(16, '2024-01-09 00:00+00');
SELECT add_event(17, '2031-01-09 00:00+00');
SELECT k, at, kind FROM events WHERE kind = 'by function';
--@ error: 23503
DO $$ BEGIN INSERT INTO events (k, region) VALUES (18, 99); END $$;
-- One statement reads what it changes; PostgreSQL sees its rows as they were before.
CREATE TABLE copies (k int, at date, n int) PARTITION BY RANGE (at);
CREATE TABLE copies_1 PARTITION OF copies FOR VALUES FROM ('2020-01-01') TO ('2020-02-01');
CREATE TABLE copies_2 PARTITION OF copies FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');
--@ cluster: SELECT create_distributed_table('copies', 'k', colocate_with => 'events')
INSERT INTO copies SELECT g, date '2020-01-10' + g, g FROM generate_series(0, 29) g;
DO $$ BEGIN INSERT INTO copies SELECT k, at + 31, n FROM copies WHERE at < '2020-01-28'; END $$;
DO $$ BEGIN INSERT INTO copies SELECT k, at + 10, n FROM copies WHERE at < '2020-02-18'; END $$;
DO $$ BEGIN UPDATE copies SET at = at + 15 WHERE at < '2020-02-13'; END $$;
SELECT * FROM copies;
SELECT count(*) FROM copies_1;
DO $$ BEGIN UPDATE copies SET at = at - 15 WHERE at >= '2020-02-05'; END $$;
SELECT * FROM copies;
DO $$ BEGIN UPDATE copies SET at = at + 1 WHERE at < '2020-01-31'; END $$;
DO $$
BEGIN
    FOR i IN 1 .. 3 LOOP
        BEGIN
            INSERT INTO copies VALUES (i, '2020-02-02', i);
            INSERT INTO copies VALUES (i, '2029-02-02', i);
        EXCEPTION WHEN check_violation THEN
            UPDATE copies SET n = n + 100 WHERE k = i;
        END;
    END LOOP;
END $$;
SELECT * FROM copies;
INSERT INTO copies SELECT k, at, n FROM copies WHERE at > '2020-02-01';
SELECT count(*), sum(n) FROM copies;
DO $$ BEGIN INSERT INTO copies VALUES (1, '2020-01-01', 1) ON CONFLICT DO NOTHING; END $$;
DO $$ BEGIN CREATE TABLE copies_3 PARTITION OF copies DEFAULT; END $$;
INSERT INTO copies VALUES (70, '2035-01-01', 1);
SELECT count(*) FROM copies_3;
DO $$ BEGIN ALTER TABLE copies ADD COLUMN z int; END $$;
UPDATE copies SET z = 4 WHERE k = 70;
DO $$ BEGIN DROP TABLE copies_1; END $$;
SELECT * FROM copies;
DROP TABLE copies_3;
CREATE TABLE copies_4 PARTITION OF copies FOR VALUES FROM ('2020-04-01') TO ('2020-05-01');
CREATE TABLE copies_5 PARTITION OF copies FOR VALUES FROM ('2020-05-01') TO ('2020-06-01');
ALTER TABLE copies_5 ALTER at SET NOT NULL, ADD CONSTRAINT may CHECK (at >= '2020-05-01' AND at < '2020-06-01');
INSERT INTO copies SELECT g, date '2020-04-01' + g, g FROM generate_series(0, 20) g;
--@ error: 25001
BEGIN \; ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY \; COMMIT;
ROLLBACK;
BEGIN;
--@ error: 25001
ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY;
ROLLBACK;
--@ loose: in a block that the router has begun
--@ error: 25001
DO $$ BEGIN ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY; END $$;
CREATE TABLE copies_6 PARTITION OF copies DEFAULT;
--@ error: 55000
ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY;
DROP TABLE copies_6;
ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY;
ALTER TABLE copies DETACH PARTITION copies_5 CONCURRENTLY;
--@ error: 42P01
ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY;
--@ error: 42P17 before 18
--@ error: 42809 from 18
ALTER TABLE copies_2 DETACH PARTITION copies_4 CONCURRENTLY;
--@ error: 55000
ALTER TABLE copies DETACH PARTITION copies_2 FINALIZE;
SELECT conrelid::regclass, conname, contype, pg_get_constraintdef(oid), convalidated, conislocal, coninhcount
FROM pg_constraint WHERE conrelid IN ('copies_4'::regclass, 'copies_5'::regclass) ORDER BY 1, 2;
SELECT count(*), sum(n) FROM copies;
SELECT count(*), sum(n) FROM copies_4;
--@ error: 23514
INSERT INTO copies_4 VALUES (1, '2020-06-01');
INSERT INTO copies_4 VALUES (1, '2020-04-02') RETURNING *;
ALTER TABLE copies ATTACH PARTITION copies_4 FOR VALUES FROM ('2020-04-01') TO ('2020-05-01');
SELECT count(*), sum(n) FROM copies;
ALTER TABLE copies DETACH PARTITION copies_4 CONCURRENTLY;
SELECT conname FROM pg_constraint WHERE conrelid = 'copies_4'::regclass ORDER BY 1;
DROP TABLE copies, copies_4, copies_5;
CREATE TABLE levels (k int, region text, at int) PARTITION BY LIST (region);
CREATE TABLE levels_a PARTITION OF levels FOR VALUES IN ('a', NULL) PARTITION BY RANGE (at);
CREATE TABLE levels_a1 PARTITION OF levels_a FOR VALUES FROM (MINVALUE) TO (10);
CREATE TABLE levels_b PARTITION OF levels FOR VALUES IN ('b') PARTITION BY HASH (at);
CREATE TABLE levels_b0 PARTITION OF levels_b FOR VALUES WITH (MODULUS 2, REMAINDER 0);
--@ cluster: SELECT create_distributed_table('levels', 'k', colocate_with => 'events')
INSERT INTO levels SELECT g, 'a', g FROM generate_series(1, 9) g;
ALTER TABLE levels_a DETACH PARTITION levels_a1 CONCURRENTLY;
ALTER TABLE levels_b DETACH PARTITION levels_b0 CONCURRENTLY;
ALTER TABLE levels DETACH PARTITION levels_a CONCURRENTLY;
SELECT conrelid::regclass, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE conrelid::regclass::text LIKE 'levels%' ORDER BY 1, 2;
SELECT count(*) FROM levels_a1;
DROP TABLE levels, levels_a, levels_a1, levels_b0;

-- Rows that statements inside the coordinator move to other partitions.
CREATE TABLE steps (k int, at int, n int, note text DEFAULT 'new', PRIMARY KEY (k, at)) PARTITION BY RANGE (at);
CREATE TABLE steps_1 PARTITION OF steps FOR VALUES FROM (0) TO (10);
CREATE TABLE steps_2 PARTITION OF steps FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (at);
CREATE TABLE steps_2a PARTITION OF steps_2 FOR VALUES FROM (10) TO (15);
CREATE TABLE steps_2b PARTITION OF steps_2 FOR VALUES FROM (15) TO (20);
CREATE TABLE steps_3 PARTITION OF steps FOR VALUES FROM (20) TO (30);
--@ cluster: SELECT create_distributed_table('steps', 'k', colocate_with => 'events')
INSERT INTO steps SELECT g, g % 30, g FROM generate_series(0, 59) g;
DO $$ BEGIN UPDATE steps SET at = at + 5 WHERE at < 25; END $$;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
DO $$ BEGIN UPDATE steps SET at = at - 5, note = note || '-' WHERE at >= 5; END $$;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
CREATE FUNCTION shift(by int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE c int; r record; l text := '';
BEGIN
    UPDATE steps SET at = at + by, n = n + 1000 WHERE at + by < 30 AND at + by >= 0;
    GET DIAGNOSTICS c = ROW_COUNT;
    FOR r IN UPDATE steps SET at = at - by WHERE n >= 1000 AND k IN (1, 2, 31) RETURNING k, at, n LOOP l := l || r.k || ':' || r.at || ':' || r.n || ' '; END LOOP;
    UPDATE steps SET n = n - 1000 WHERE n >= 1000;
    RETURN c || ' ' || FOUND;
END $$;
SELECT shift(7);
SELECT * FROM steps;
SELECT shift(-7);
SELECT * FROM steps;
-- Only within what the statement names.
--@ error: 23514
DO $$ BEGIN UPDATE steps_1 SET at = 25 WHERE k = 1; END $$;
INSERT INTO steps VALUES (70, 12), (71, 17) ON CONFLICT DO NOTHING;
--@ error: 23514
--@ loose: which row is the first
DO $$ BEGIN UPDATE steps_2 SET at = at - 10; END $$;
DO $$ BEGIN UPDATE steps_2 SET at = 29 - at; END $$;
--@ error: 23514
--@ loose: which row is the first
DO $$ BEGIN UPDATE steps SET at = at + 25; END $$;
--@ error: 23505
DO $$ BEGIN INSERT INTO steps VALUES (3, 29); UPDATE steps SET at = 29 WHERE k = 3; END $$;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
-- Caught, and once more.
DO $$
BEGIN
    FOR i IN 1 .. 4 LOOP
        BEGIN
            UPDATE steps SET at = at + 10 * i, note = 'step ' || i WHERE k % 4 = i % 4;
        EXCEPTION WHEN check_violation THEN
            UPDATE steps SET at = 0, note = 'caught' WHERE k = i;
        END;
    END LOOP;
END $$;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
-- A local table, a subquery over the same table, the distribution column as well.
CREATE TABLE targets (k int, at int);
INSERT INTO targets SELECT g, 29 - g FROM generate_series(0, 29) g;
UPDATE steps s SET at = t.at FROM targets t WHERE t.k = s.k RETURNING s.k, s.at, s.n;
SELECT '1', * FROM steps_1 WHERE k < 30 UNION ALL SELECT '2a', * FROM steps_2a WHERE k < 30 UNION ALL SELECT '2b', * FROM steps_2b WHERE k < 30 UNION ALL SELECT '3', * FROM steps_3 WHERE k < 30;
UPDATE steps SET at = (SELECT t.at / 2 FROM targets t WHERE t.k = steps.k), note = 'half' WHERE k < 30;
SELECT '1', * FROM steps_1 WHERE k < 30 UNION ALL SELECT '2a', * FROM steps_2a WHERE k < 30 UNION ALL SELECT '2b', * FROM steps_2b WHERE k < 30 UNION ALL SELECT '3', * FROM steps_3 WHERE k < 30;
UPDATE steps SET at = 29 - at, n = (SELECT count(*) FROM steps x WHERE x.at > steps.at) WHERE k < 30 RETURNING k, at, n;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
UPDATE steps SET n = (SELECT sum(x.n) FROM steps x WHERE x.at = steps.at);
SELECT * FROM steps;
DO $$ BEGIN UPDATE steps SET k = k + 100, at = 29 - at WHERE k < 10; END $$;
SELECT '1', * FROM steps_1 UNION ALL SELECT '2a', * FROM steps_2a UNION ALL SELECT '2b', * FROM steps_2b UNION ALL SELECT '3', * FROM steps_3;
BEGIN;
DO $$ BEGIN UPDATE steps SET at = 0 WHERE k BETWEEN 20 AND 25; END $$;
SELECT count(*) FROM steps_1;
SAVEPOINT s;
DO $$ BEGIN UPDATE steps SET at = 25 WHERE k BETWEEN 20 AND 25; END $$;
SELECT count(*) FROM steps_3;
ROLLBACK TO s;
SELECT count(*) FROM steps_3;
DO $$ BEGIN UPDATE steps SET at = 15 WHERE k BETWEEN 20 AND 25; END $$;
COMMIT;
SELECT '1', * FROM steps_1 WHERE k BETWEEN 20 AND 25 UNION ALL SELECT '2a', * FROM steps_2a WHERE k BETWEEN 20 AND 25 UNION ALL SELECT '2b', * FROM steps_2b WHERE k BETWEEN 20 AND 25 UNION ALL SELECT '3', * FROM steps_3 WHERE k BETWEEN 20 AND 25;
-- ON CONFLICT DO NOTHING.
CREATE FUNCTION add_steps(OUT c int, OUT f bool, OUT l text) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    DELETE FROM steps WHERE k >= 1000;
    INSERT INTO steps SELECT 1000 + g % 10, g % 10, g FROM generate_series(0, 14) g ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS c = ROW_COUNT;
    INSERT INTO steps VALUES (1001, 1, 99) ON CONFLICT DO NOTHING;
    f := FOUND;
    l := '';
    FOR r IN INSERT INTO steps VALUES (1001, 1, 99), (1001, 21, 98), (1001, 21, 97) ON CONFLICT DO NOTHING RETURNING k, at, n LOOP
        l := l || r.k || ',' || r.at || ',' || r.n || ' ';
    END LOOP;
END $$;
SELECT * FROM add_steps();
SELECT * FROM steps WHERE k >= 1000;
--@ error: 23514
DO $$ BEGIN INSERT INTO steps VALUES (1, 77) ON CONFLICT DO NOTHING; END $$;
DO $$ BEGIN INSERT INTO steps_3 VALUES (1001, 21, 1), (1002, 22, 1) ON CONFLICT DO NOTHING; END $$;
SELECT * FROM steps WHERE k >= 1000;
-- A loop reads the rows as they were when it began.
DO $$ DECLARE r record; BEGIN FOR r IN SELECT k, at FROM steps LOOP UPDATE steps SET at = (at + 10) % 30, n = n + 1 WHERE k = r.k AND at = r.at; END LOOP; END $$;
SELECT * FROM steps;
DROP TABLE steps, targets;

CREATE VIEW recent AS SELECT k, at, n, kind FROM events WHERE at >= '2024-03-01 00:00+00';
SELECT count(*), min(at) FROM recent;
SELECT r.k, d.label FROM recent r JOIN devices d USING (k) WHERE d.k = 20;
SELECT count(*) FROM ONLY events;
SELECT count(*) FROM ONLY events_1;
UPDATE ONLY events SET kind = 'x';
DELETE FROM ONLY events;
SELECT count(*) FROM events e, ONLY events_1 x WHERE x.k = e.k AND x.n = e.n;

-- In transactions.
BEGIN;
INSERT INTO events (k, at, region) VALUES (50, '2024-01-03 00:00+00', 1);
SELECT count(*) FROM events_1 WHERE k = 50;
SAVEPOINT s;
UPDATE events SET at = '2024-02-03 00:00+00' WHERE k = 50;
SELECT k FROM events_2 WHERE k = 50;
ROLLBACK TO s;
SELECT k FROM events_2 WHERE k = 50;
DECLARE c CURSOR FOR SELECT k, at FROM events WHERE k IN (50, 20) ORDER BY k, at;
FETCH 3 FROM c;
FETCH ALL FROM c;
CLOSE c;
CREATE TABLE events_3 (LIKE events INCLUDING ALL);
INSERT INTO events_3 (k, at, region, n) VALUES (51, '2040-01-01 00:00+00', 1, 1), (52, '2040-01-02 00:00+00', 2, 2);
ALTER TABLE events ATTACH PARTITION events_3 FOR VALUES FROM ('2040-01-01 00:00+00') TO ('2041-01-01 00:00+00');
SELECT * FROM events WHERE k IN (51, 52);
INSERT INTO events (k, at, region, n) VALUES (51, '2040-02-01 00:00+00', 1, 1);
SELECT count(*) FROM events_3;
ROLLBACK;
--@ error: 42P01
SELECT count(*) FROM events_3;
SELECT count(*) FROM events WHERE at > '2040-01-01 00:00+00';

-- COPY.
COPY events (k, at, region, kind, n) FROM STDIN;
20	2024-01-20 00:00:00+00	1	copied	1000
21	2024-02-20 00:00:00+00	2	copied	1001
22	2029-02-20 00:00:00+00	\N	copied	1002
\.
COPY events_1 (k, at, n) FROM STDIN;
23	2024-01-21 00:00:00+00	1003
\.
--@ error: 23514
COPY events_1 (k, at, n) FROM STDIN;
23	2024-02-21 00:00:00+00	1003
\.
SELECT * FROM events WHERE n >= 1000;
COPY (SELECT k, n FROM events WHERE n >= 1000 ORDER BY n) TO STDOUT;
COPY (SELECT k, n FROM events_1 WHERE n >= 1000 ORDER BY n) TO STDOUT;

-- Where the rows are.
--@ cluster: DO $$ BEGIN IF (SELECT sum(result::int) FROM pgherd.run_command_on_workers('SELECT count(*) FROM public.events')) <> (SELECT count(*) FROM events) THEN RAISE 'rows are missing'; END IF; END $$

-- Definitions.
ALTER TABLE events ADD COLUMN extra int DEFAULT 5;
SELECT k, extra FROM events_1 WHERE k = 23;
ALTER TABLE events RENAME COLUMN extra TO more;
UPDATE events SET more = k WHERE k < 3;
SELECT sum(more) FROM events;
ALTER TABLE events ALTER COLUMN more SET DEFAULT 6;
INSERT INTO events (k, n) VALUES (24, 2000) RETURNING more;
ALTER TABLE events ALTER COLUMN more TYPE bigint;
SELECT more FROM events WHERE n = 2000;
ALTER TABLE events ADD CONSTRAINT small CHECK (more < 1000);
--@ error: 23514
UPDATE events SET more = 5000 WHERE k = 24;
ALTER TABLE events DROP CONSTRAINT small;
CREATE INDEX by_kind ON events (kind, k);
CREATE UNIQUE INDEX once ON events (n, k, at);
--@ error: 0A000
CREATE UNIQUE INDEX ON events (n, k);
--@ error: 23505
INSERT INTO events (k, at, n) VALUES (24, '2024-01-15 00:00+00', 2000);
CREATE INDEX only_one ON events_1 (more);
SELECT tablename, indexname FROM pg_indexes WHERE tablename LIKE 'events%';
DROP INDEX by_kind;
ALTER INDEX once RENAME TO only_once;
DROP INDEX only_once;
DROP INDEX only_one;
ALTER TABLE events DROP COLUMN more;
SELECT * FROM events WHERE n = 2000;
ALTER TABLE events RENAME TO happenings;
ALTER TABLE events_1 RENAME TO january;
SELECT count(*) FROM january;
SELECT count(*) FROM happenings;
INSERT INTO happenings (k, at, n) VALUES (25, '2024-01-03 00:00+00', 3000);
SELECT k, at FROM january WHERE n = 3000;
TRUNCATE january;
SELECT count(*) FROM happenings;
CREATE TABLE happenings_3 PARTITION OF happenings FOR VALUES FROM ('2050-01-01 00:00+00') TO ('2051-01-01 00:00+00');
INSERT INTO happenings (k, at, n) VALUES (26, '2050-01-03 00:00+00', 3001) RETURNING kind;
--@ error: 23503
INSERT INTO happenings_3 (k, at, region) VALUES (26, '2050-01-03 00:00+00', 77);
--@ error: 23505
INSERT INTO happenings_3 (k, at, n) VALUES (26, '2050-01-03 00:00+00', 3001);
DROP VIEW recent;
--@ error: 42809
TRUNCATE ONLY happenings;
SELECT count(*) FROM happenings;
TRUNCATE happenings RESTART IDENTITY;
SELECT count(*) FROM happenings;
INSERT INTO happenings (k, region) VALUES (1, 1), (2, 2) RETURNING n;
DELETE FROM regions WHERE id = 3;
--@ cluster: SELECT undistribute_table('happenings')
SELECT * FROM happenings;
SELECT count(*), sum(n) FROM january;
--@ error: 23503
DELETE FROM regions WHERE id = 2;
--@ cluster: SELECT create_distributed_table('happenings', 'k')
SELECT * FROM happenings;
SELECT count(*), sum(n) FROM january;
DROP TABLE happenings, wanted;
DROP FUNCTION add_event;

-- Partitions of partitions; LIST and HASH; the partition key is the distribution column.
CREATE TABLE tree (k text, kind text, at date, v numeric) PARTITION BY LIST (kind);
CREATE TABLE tree_a PARTITION OF tree FOR VALUES IN ('a', 'b') PARTITION BY RANGE (at);
CREATE TABLE tree_a_1 PARTITION OF tree_a FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE tree_c PARTITION OF tree FOR VALUES IN ('c', NULL);
INSERT INTO tree VALUES ('x', 'a', '2020-05-05', 1), ('y', 'c', '2020-05-05', 2);
--@ cluster: SELECT create_distributed_table('tree', 'k')
CREATE TABLE tree_a_2 PARTITION OF tree_a FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
CREATE TABLE tree_d PARTITION OF tree FOR VALUES IN ('d') PARTITION BY HASH (at, kind);
CREATE TABLE tree_d_0 PARTITION OF tree_d FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE tree_d_1 PARTITION OF tree_d FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO tree SELECT 'k' || g, (ARRAY['a', 'b', 'c', 'd', NULL])[1 + g % 5], date '2020-01-01' + g * 6, g FROM generate_series(0, 99) g;
SELECT kind, count(*), sum(v) FROM tree GROUP BY kind;
SELECT count(*) FROM tree_a;
SELECT count(*) FROM tree_a_2;
SELECT count(*) FROM tree_d;
SELECT * FROM tree WHERE k = 'k7';
SELECT * FROM tree_a WHERE k = 'k5';
UPDATE tree SET kind = 'd' WHERE k = 'k5' RETURNING *;
UPDATE tree_a SET at = at + 365 WHERE k = 'k0';
SELECT * FROM tree WHERE k IN ('k0', 'k5');
--@ error: 23514
UPDATE tree_a SET kind = 'c' WHERE k = 'k10';
--@ error: 23514
INSERT INTO tree VALUES ('z', 'a', '2030-01-01', 1);
--@ error: 23514
INSERT INTO tree VALUES ('z', 'zz', '2030-01-01', 1);
ALTER TABLE tree ADD COLUMN w int;
UPDATE tree SET w = 1 WHERE kind = 'd';
SELECT count(w) FROM tree_d;
ALTER TABLE tree DETACH PARTITION tree_a;
SELECT count(*) FROM tree;
SELECT count(*) FROM tree_a;
INSERT INTO tree_a VALUES ('q', 'zz', '2020-06-06', 1, 1);
SELECT * FROM tree_a WHERE k = 'q';
DELETE FROM tree_a WHERE k = 'q';
ALTER TABLE tree ATTACH PARTITION tree_a FOR VALUES IN ('a', 'b');
SELECT count(*) FROM tree;
DROP TABLE tree_a;
SELECT count(*) FROM tree;
DROP TABLE tree;
CREATE TABLE same (k int, v text, PRIMARY KEY (k)) PARTITION BY RANGE (k);
CREATE TABLE same_1 PARTITION OF same FOR VALUES FROM (0) TO (100);
CREATE TABLE same_2 PARTITION OF same FOR VALUES FROM (100) TO (200);
--@ cluster: SELECT create_distributed_table('same', 'k', colocate_with => 'devices')
INSERT INTO same SELECT g, 'v' || g FROM generate_series(0, 199, 7) g;
SELECT * FROM same WHERE k = 105;
SELECT d.label, s.v FROM same s JOIN devices d USING (k);
INSERT INTO same VALUES (105, 'new') ON CONFLICT (k) DO UPDATE SET v = same.v || excluded.v RETURNING *;
UPDATE same SET k = k + 100 WHERE k < 20 AND k > 0 RETURNING k;
SELECT count(*) FROM same_2;
--@ error: 23514
UPDATE same SET k = 1000 WHERE k = 21;
INSERT INTO devices SELECT k, 'new' FROM same ON CONFLICT DO NOTHING;
ALTER TABLE same ADD FOREIGN KEY (k) REFERENCES devices;
INSERT INTO same VALUES (2, 'device 2');
--@ error: 23503
INSERT INTO same VALUES (199, 'no device');
--@ error: 23503
--@ loose: between colocated tables foreign keys go from partition to partition
DELETE FROM devices WHERE k = 2;
ALTER TABLE same DROP CONSTRAINT same_k_fkey;
DELETE FROM devices WHERE k = 2;
ALTER TABLE same DETACH PARTITION same_2;
SELECT count(*) FROM same_2;
SELECT s.k, d.label FROM same_2 s LEFT JOIN devices d USING (k);
DROP TABLE same_2;
DROP TABLE same;

-- Identity; another column order in a partition; a table distributed alike is attached.
CREATE TABLE ordered (at date NOT NULL, k int, id int GENERATED ALWAYS AS IDENTITY, note text) PARTITION BY RANGE (at);
CREATE TABLE ordered_1 (note text, gone int, id int NOT NULL, k int, at date NOT NULL);
ALTER TABLE ordered_1 DROP COLUMN gone;
ALTER TABLE ordered ATTACH PARTITION ordered_1 FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE INDEX note_index ON ordered (note);
--@ cluster: SELECT create_distributed_table('ordered', 'k', colocate_with => 'devices')
INSERT INTO ordered (at, k, note) SELECT date '2020-01-01' + g, g, 'n' || g FROM generate_series(0, 20) g;
SELECT * FROM ordered WHERE k = 5;
SELECT note || '', id + 0, k + 0, at + 0 FROM ordered_1 WHERE k = 5;
CREATE TABLE ordered_2 (k int, at date NOT NULL, id int NOT NULL, note text);
--@ cluster: SELECT create_distributed_table('ordered_2', 'k', colocate_with => 'devices')
INSERT INTO ordered_2 SELECT g, date '2021-01-01' + g, g, 'm' || g FROM generate_series(0, 20) g;
--@ error: 23514
ALTER TABLE ordered ATTACH PARTITION ordered_2 FOR VALUES FROM ('2021-01-01') TO ('2021-01-05');
ALTER TABLE ordered ATTACH PARTITION ordered_2 FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
SELECT count(*), sum(id) FROM ordered;
SELECT * FROM ordered WHERE k = 6;
UPDATE ordered SET at = at + 366 WHERE k = 7 AND at < '2021-01-01' RETURNING *;
SELECT count(*) FROM ordered_2;
ALTER TABLE ordered DETACH PARTITION ordered_1;
--@ cluster: SELECT undistribute_table('ordered_1')
SELECT note || '', id + 0, k + 0, at + 0 FROM ordered_1 WHERE k = 6;
INSERT INTO ordered_1 (k, at, id) VALUES (100, '2020-07-01', 100);
ALTER TABLE ordered ATTACH PARTITION ordered_1 FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
SELECT count(*), sum(id) FROM ordered;
SELECT relname, relkind, relispartition FROM pg_class WHERE relname LIKE 'ordered%' OR relname = 'note_index';
SELECT inhrelid::regclass, inhparent::regclass FROM pg_inherits WHERE inhparent = 'ordered'::regclass;
SELECT partrelid::regclass, partstrat FROM pg_partitioned_table;
SELECT relid, parentrelid, level FROM pg_partition_tree('ordered') WHERE level < 2;
CREATE ROLE partitions_ins;
GRANT INSERT ON ordered TO partitions_ins;
SET ROLE partitions_ins;
INSERT INTO ordered (at, k) VALUES ('2020-03-01', 200);
INSERT INTO ordered (at, k) VALUES ('2020-03-02', 201), ('2021-03-02', 202);
INSERT INTO ordered (at, k) SELECT date '2020-12-30' + g, 202 + g FROM generate_series(1, 3) g;
COPY ordered (at, k) FROM STDIN WITH (FORMAT csv);
2020-04-01,206
2021-04-01,207
\.
-- The column is an identity column of the partition's, too, from 17 on.
--@ error: 42501 before 17
--@ error: 428C9 from 17
INSERT INTO ordered_1 (at, k, id) VALUES ('2020-03-01', 208, 1);
RESET ROLE;
SELECT id, at, k FROM ordered WHERE k >= 200;
DROP TABLE ordered;
DROP ROLE partitions_ins;

-- Several levels of rights.
CREATE TABLE owned (k int, at int) PARTITION BY RANGE (at);
CREATE TABLE owned_1 PARTITION OF owned DEFAULT;
--@ cluster: SELECT create_distributed_table('owned', 'k')
INSERT INTO owned VALUES (1, 1), (2, NULL), (NULL, 3);
SELECT * FROM owned;
SELECT * FROM owned WHERE k IS NULL;
VACUUM owned;
ANALYZE owned;
VACUUM ANALYZE owned_1;
BEGIN;
LOCK TABLE owned;
TRUNCATE owned;
SELECT count(*) FROM owned;
ROLLBACK;
SELECT count(*) FROM owned;
BEGIN;
DROP TABLE owned_1;
CREATE TABLE owned_1 PARTITION OF owned FOR VALUES FROM (0) TO (10);
INSERT INTO owned VALUES (5, 5);
SELECT * FROM owned;
ROLLBACK;
SELECT * FROM owned;
ALTER TABLE owned DETACH PARTITION owned_1;
DROP TABLE owned;
SELECT count(*) FROM owned_1;
DROP TABLE owned_1, devices, regions;

-- Other types of columns that indexes have, and columns that only the coordinator can fill.
CREATE TABLE retyped (k int, at int, v int, w text) PARTITION BY RANGE (at);
CREATE TABLE retyped_a PARTITION OF retyped FOR VALUES FROM (0) TO (10);
CREATE TABLE retyped_b PARTITION OF retyped FOR VALUES FROM (10) TO (20) PARTITION BY LIST (at);
CREATE TABLE retyped_b1 PARTITION OF retyped_b DEFAULT;
CREATE INDEX retyped_v ON retyped (v);
CREATE INDEX ON retyped (w, v) WHERE v > 3;
CREATE INDEX ON retyped ((v + 1));
CREATE UNIQUE INDEX ON retyped (k, at, v);
ALTER TABLE retyped ADD CONSTRAINT retyped_key UNIQUE (v, k, at);
CREATE INDEX its_own ON retyped_b1 (v, w);
ALTER INDEX retyped_a_v_idx RENAME TO named;
--@ cluster: SELECT create_distributed_table('retyped', 'k')
INSERT INTO retyped SELECT g, g % 20, g, 'w' || g FROM generate_series(1, 100) g;
ALTER TABLE retyped ALTER COLUMN v TYPE bigint, ALTER COLUMN w TYPE varchar(20), ALTER COLUMN w SET NOT NULL;
SELECT count(*), sum(v), max(w) FROM retyped;
SELECT tablename, indexname FROM pg_indexes WHERE tablename LIKE 'retyped%' ORDER BY 1, 2;
DROP INDEX retyped_v;
ALTER TABLE retyped ADD COLUMN n serial, ADD COLUMN i int DEFAULT nextval('retyped_n_seq');
SELECT count(DISTINCT n), min(n), count(DISTINCT i) FROM retyped;
ALTER TABLE retyped ALTER COLUMN v TYPE int USING v * 2;
SELECT k, v FROM retyped WHERE k BETWEEN 3 AND 5;
--@ error: 23505
INSERT INTO retyped (k, at, v, w) VALUES (3, 3, 6, '');
INSERT INTO retyped (k, at, v, w) VALUES (200, 1, 1, '') RETURNING n, i;
INSERT INTO retyped (k, at, v, w) VALUES (3, 3, 6, 'x') ON CONFLICT (k, at, v) DO UPDATE SET w = 'again' RETURNING k, w;
ALTER INDEX its_own RENAME TO still_its_own;
ALTER TABLE retyped DROP CONSTRAINT retyped_key;
SELECT tablename, indexname FROM pg_indexes WHERE tablename LIKE 'retyped%' ORDER BY 1, 2;
DROP TABLE retyped;

-- Joins that a body sends partition by partition, full ones as well; also where its transaction has written.
CREATE TABLE wise_a (k int, c text, v int) PARTITION BY LIST (c);
CREATE TABLE wise_a_1 PARTITION OF wise_a FOR VALUES IN ('x', 'y');
CREATE TABLE wise_a_2 PARTITION OF wise_a FOR VALUES IN ('z');
CREATE TABLE wise_b (k int, c text, v int) PARTITION BY LIST (c);
CREATE TABLE wise_b_1 PARTITION OF wise_b FOR VALUES IN ('x', 'y');
CREATE TABLE wise_b_2 PARTITION OF wise_b FOR VALUES IN ('z');
--@ cluster: SELECT create_distributed_table('wise_a', 'k')
--@ cluster: SELECT create_distributed_table('wise_b', 'k', colocate_with => 'wise_a')
INSERT INTO wise_a SELECT g, substr('xyz', 1 + g % 3, 1), g FROM generate_series(0, 59) g;
INSERT INTO wise_b SELECT g * 2, substr('xyz', 1 + g % 3, 1), g FROM generate_series(0, 59) g;
INSERT INTO wise_a VALUES (NULL, 'x', -1);
INSERT INTO wise_b VALUES (NULL, 'x', -1);
CREATE FUNCTION wise() RETURNS TABLE (n bigint, of_a bigint, of_b bigint, a bigint, b bigint, both_sides bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT count(*), count(wise_a.v), count(wise_b.v), sum(wise_a.v), sum(wise_b.v), sum(wise_a.v * wise_b.v)
        FROM wise_a FULL JOIN wise_b ON wise_a.k = wise_b.k AND wise_a.c = wise_b.c;
    RETURN QUERY SELECT count(*), count(wise_a.v), count(wise_b.v), sum(wise_a.v), sum(wise_b.v), sum(wise_a.v * wise_b.v)
        FROM wise_a LEFT JOIN wise_b ON wise_a.k = wise_b.k AND wise_a.c = wise_b.c;
    RETURN QUERY SELECT count(*), count(wise_a.v), count(wise_b.v), sum(wise_a.v), sum(wise_b.v), sum(wise_a.v * wise_b.v)
        FROM wise_a JOIN wise_b ON wise_a.k = wise_b.k AND wise_a.c = wise_b.c;
END $$;
SELECT * FROM wise() WITH ORDINALITY ORDER BY ordinality;
SET enable_partitionwise_join = on;
SELECT * FROM wise() WITH ORDINALITY ORDER BY ordinality;
SELECT wise_a.k, wise_b.k, wise_a.v, wise_b.v FROM wise_a FULL JOIN wise_b ON wise_a.k = wise_b.k AND wise_a.c = wise_b.c;
BEGIN;
INSERT INTO wise_a VALUES (1000, 'z', 7), (120, 'x', 8);
DELETE FROM wise_b WHERE k = 4;
UPDATE wise_b SET v = v + 1 WHERE c = 'y';
SELECT * FROM wise() WITH ORDINALITY ORDER BY ordinality;
SELECT count(*), sum(wise_a.v * wise_b.v) FROM wise_a FULL JOIN wise_b ON wise_a.k = wise_b.k AND wise_a.c = wise_b.c;
ROLLBACK;
SELECT * FROM wise() WITH ORDINALITY ORDER BY ordinality;
RESET enable_partitionwise_join;
DROP FUNCTION wise;
DROP TABLE wise_a, wise_b;

-- What a partition has for itself, and its parent otherwise.
CREATE TABLE own_kept (k int NOT NULL, d int DEFAULT 1, g bigint GENERATED ALWAYS AS (k * 2) STORED) PARTITION BY RANGE (k);
--@ cluster: SELECT create_distributed_table('own_kept', 'k')
CREATE TABLE own_kept_1 PARTITION OF own_kept FOR VALUES FROM (0) TO (10);
CREATE TABLE own_kept_2 PARTITION OF own_kept (d DEFAULT 5) FOR VALUES FROM (10) TO (20);
CREATE TABLE own_kept_3 PARTITION OF own_kept FOR VALUES FROM (20) TO (30) PARTITION BY LIST (k);
CREATE TABLE own_kept_4 PARTITION OF own_kept_3 DEFAULT;
ALTER TABLE ONLY own_kept ALTER d SET DEFAULT 7;
INSERT INTO own_kept (k) VALUES (1), (11), (21);
INSERT INTO own_kept_1 (k) VALUES (2);
INSERT INTO own_kept_2 (k) VALUES (12);
INSERT INTO own_kept_3 (k) VALUES (22);
INSERT INTO own_kept_4 (k) VALUES (23);
ALTER TABLE ONLY own_kept_3 ALTER d DROP DEFAULT;
INSERT INTO own_kept_3 (k) VALUES (24);
INSERT INTO own_kept_4 (k) VALUES (25);
ALTER TABLE own_kept ALTER d SET DEFAULT 9;
INSERT INTO own_kept_1 (k) VALUES (3);
INSERT INTO own_kept_2 (k) VALUES (13);
INSERT INTO own_kept_4 (k) VALUES (26);
ALTER TABLE own_kept_2 ALTER d DROP DEFAULT;
INSERT INTO own_kept_2 (k) VALUES (14);
INSERT INTO own_kept (k) VALUES (15);
--@ error: 23502
ALTER TABLE own_kept ALTER d TYPE numeric, ALTER d SET DEFAULT 2.5, ALTER d SET NOT NULL;
DELETE FROM own_kept WHERE d IS NULL;
ALTER TABLE own_kept ALTER d TYPE numeric, ALTER d SET DEFAULT 2.5, ALTER d SET NOT NULL;
INSERT INTO own_kept_2 (k) VALUES (16);
INSERT INTO own_kept_4 (k) VALUES (27);
SELECT tableoid::regclass::text AS t, * FROM own_kept ORDER BY k;
--@ only: from 17
ALTER TABLE own_kept_1 ALTER g SET EXPRESSION AS (k * 10);
INSERT INTO own_kept (k) VALUES (4);
SELECT k, g FROM own_kept ORDER BY k;
--@ only: from 17
ALTER TABLE ONLY own_kept ALTER g SET EXPRESSION AS (k * 4);
INSERT INTO own_kept (k) VALUES (5), (17), (28);
SELECT k, g FROM own_kept ORDER BY k;
--@ only: from 17
ALTER TABLE own_kept_3 ALTER g SET EXPRESSION AS (k + 1);
SELECT k, g FROM own_kept ORDER BY k;
--@ only: from 17
ALTER TABLE own_kept ALTER g SET EXPRESSION AS (k * 3);
INSERT INTO own_kept (k) VALUES (6), (18), (29);
SELECT k, g FROM own_kept ORDER BY k;
DROP TABLE own_kept;
