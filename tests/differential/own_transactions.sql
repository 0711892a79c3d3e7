-- Procedures and DO blocks that end transactions themselves, and what they write on workers and on the coordinator.

CREATE TABLE t (k int PRIMARY KEY, v int);
CREATE TABLE here (k int PRIMARY KEY, v int);
CREATE TABLE copied (k int PRIMARY KEY, v int);
--@ cluster: SELECT create_distributed_table('t', 'k'), create_reference_table('copied')
INSERT INTO t SELECT g, g FROM generate_series(1, 60) g;

-- Batches, as deletes are written.
CREATE PROCEDURE delete_in_batches(size int) LANGUAGE plpgsql AS $$
DECLARE
    done int;
    batches int := 0;
BEGIN
    LOOP
        DELETE FROM t WHERE k IN (SELECT k FROM t WHERE k <= 30 ORDER BY k LIMIT size);
        GET DIAGNOSTICS done = ROW_COUNT;
        EXIT WHEN done = 0;
        batches := batches + 1;
        COMMIT;
    END LOOP;
    RAISE NOTICE '% batches', batches;
END
$$;
CALL delete_in_batches(7);
SELECT count(*), sum(v) FROM t;
DO $$ BEGIN FOR i IN 31..35 LOOP UPDATE t SET v = 0 WHERE k = i; COMMIT; END LOOP; END $$;
SELECT count(*) FROM t WHERE v = 0;
DO $$ BEGIN INSERT INTO t VALUES (100, 1); ROLLBACK; INSERT INTO t VALUES (101, 1); COMMIT; INSERT INTO t VALUES (102, 1); END $$;
SELECT k FROM t WHERE k >= 100 ORDER BY k;

-- On the coordinator and on workers, together.
CREATE PROCEDURE everywhere(n int, fails bool) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..n LOOP
        INSERT INTO t VALUES (1000 + i, i), (2000 + i, i);
        INSERT INTO here VALUES (i, i);
        INSERT INTO copied VALUES (i, i);
        IF i % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    END LOOP;
    INSERT INTO t VALUES (5000, 0);
    INSERT INTO here VALUES (5000, 0);
    IF fails THEN RAISE EXCEPTION 'it fails'; END IF;
END
$$;
CALL everywhere(7, false);
SELECT (SELECT sum(v) FROM t WHERE k > 1000), (SELECT sum(v) FROM here), (SELECT sum(v) FROM copied), count(*) FROM t;
DELETE FROM t WHERE k > 1000;
DELETE FROM here;
DELETE FROM copied;
--@ error: P0001
CALL everywhere(8, true);
SELECT (SELECT sum(v) FROM t WHERE k > 1000), (SELECT sum(v) FROM here), (SELECT sum(v) FROM copied), count(*) FROM t;
SELECT count(*) FROM pg_prepared_xacts;

-- What is read after COMMIT is what was written before it, and a loop over rows goes on.
DO $$
DECLARE
    r record;
    n int := 0;
BEGIN
    FOR r IN SELECT k FROM t ORDER BY k LOOP
        UPDATE t SET v = v + 1 WHERE k = r.k;
        n := n + 1;
        IF n % 5 = 0 THEN
            COMMIT;
        END IF;
    END LOOP;
    COMMIT;
    RAISE NOTICE '%', (SELECT sum(v) FROM t);
END
$$;
CREATE PROCEDURE answers(INOUT a int) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE t SET v = a WHERE k = 40;
    INSERT INTO here VALUES (-a, a) ON CONFLICT (k) DO UPDATE SET v = here.v + 1;
    COMMIT;
    a := (SELECT v FROM t WHERE k = 40) + (SELECT max(v) FROM here);
END
$$;
CALL answers(41);
CALL answers(41);

-- A COMMIT that fails.
CREATE TABLE p (k int PRIMARY KEY);
CREATE TABLE c (k int REFERENCES p DEFERRABLE INITIALLY DEFERRED);
--@ cluster: SELECT create_distributed_table('p', 'k'), create_distributed_table('c', 'k')
--@ error: 23503
DO $$ BEGIN INSERT INTO c VALUES (1); INSERT INTO here VALUES (77, 1); COMMIT; END $$;
--@ error: 23503
DO $$ BEGIN INSERT INTO c VALUES (1); COMMIT; END $$;
--@ mode: simple
--@ error: 23503
DO $$ BEGIN INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); COMMIT; INSERT INTO c VALUES (2); END $$;
SELECT (SELECT count(*) FROM c), (SELECT count(*) FROM p), (SELECT count(*) FROM here WHERE k = 77);

-- Subtransactions, procedures inside of procedures, and blocks in which none of it may be.
DO $$
BEGIN
    BEGIN
        INSERT INTO t VALUES (50, 0);
    EXCEPTION WHEN unique_violation THEN
        INSERT INTO t VALUES (600, 1);
    END;
    COMMIT;
    INSERT INTO t VALUES (601, 1);
    COMMIT;
END
$$;
CREATE PROCEDURE outer_one() LANGUAGE plpgsql AS $$ BEGIN CALL answers(3); INSERT INTO t VALUES (700, 1); COMMIT; END $$;
CREATE PROCEDURE calls_it() LANGUAGE plpgsql AS $$ DECLARE a int := 4; BEGIN CALL answers(a); INSERT INTO t VALUES (700, a); COMMIT; END $$;
--@ error: 42601
CALL outer_one();
CALL calls_it();
SELECT k, v FROM t WHERE k >= 600 ORDER BY k;
BEGIN;
CALL delete_in_batches(7);
ROLLBACK;
BEGIN;
INSERT INTO t VALUES (800, 1);
--@ error: 2D000
DO $$ BEGIN UPDATE t SET v = 2 WHERE k = 800; COMMIT; END $$;
ROLLBACK;
SELECT count(*) FROM t WHERE k = 800;

-- Settings, COMMIT AND CHAIN, and what a body leaves.
SET pgherd_test.x = 'before';
DO $$ BEGIN PERFORM set_config('pgherd_test.x', 'committed', false); UPDATE t SET v = 9 WHERE k = 50; COMMIT;
    PERFORM set_config('pgherd_test.x', 'rolled back', false); UPDATE t SET v = 10 WHERE k = 50; ROLLBACK; END $$;
SELECT current_setting('pgherd_test.x'), v FROM t WHERE k = 50;
DO $$ BEGIN UPDATE t SET v = 11 WHERE k = 50; COMMIT AND CHAIN; UPDATE t SET v = v + 1 WHERE k IN (50, 51); COMMIT; END $$;
SELECT sum(v) FROM t WHERE k IN (50, 51);
-- Rows of a trigger and of a view.
CREATE TABLE audit (k int, v int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (NEW.k, NEW.v); RETURN NULL; END $$;
CREATE TRIGGER note AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION note();
CREATE VIEW seen AS SELECT * FROM t;
DO $$ BEGIN UPDATE t SET v = v + 1 WHERE k = 52; COMMIT; UPDATE seen SET v = v + 1 WHERE k IN (52, 53); ROLLBACK; UPDATE seen SET v = 1 WHERE k = 54; END $$;
SELECT * FROM audit ORDER BY k;
SELECT k, v FROM t WHERE k IN (52, 53, 54) ORDER BY k;
