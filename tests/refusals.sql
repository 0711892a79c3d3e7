-- Every refusal of docs/sql-interface.md with a statement that meets it (crates/pgherd/tests/refusals.rs).

CREATE TABLE d (k int PRIMARY KEY, v text, n int);
CREATE TABLE other (a int PRIMARY KEY, k int, v text);
CREATE TABLE trig (k int PRIMARY KEY, v text);
CREATE TABLE ref (id int PRIMARY KEY, v text);
CREATE TABLE local (id int PRIMARY KEY, v text);
SELECT create_distributed_table('d', 'k'), create_distributed_table('other', 'a'), create_distributed_table('trig', 'k'), create_reference_table('ref');
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER nothing BEFORE INSERT OR UPDATE ON trig FOR EACH ROW EXECUTE FUNCTION nothing();
INSERT INTO d SELECT g, 'v' || g, g FROM generate_series(1, 20) g;
INSERT INTO other SELECT g, g, 'v' || g FROM generate_series(1, 20) g;
INSERT INTO trig SELECT g, 'v' || g FROM generate_series(1, 20) g;
INSERT INTO ref VALUES (1, 'one');
INSERT INTO local VALUES (1, 'one');

-- Policies that workers would apply to a part of the rows.
CREATE TABLE policed (k int, v int);
CREATE POLICY reads ON policed USING (v > (SELECT count(*) FROM d));
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('policed', 'k');
DROP POLICY reads ON policed;
CREATE FUNCTION counts() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM public.d $$;
CREATE POLICY calls ON policed USING (v > counts());
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('policed', 'k');
--@ refused: cannot use … "…" on table "…"
SELECT create_reference_table('policed');
DROP POLICY calls ON policed;
CREATE FUNCTION known() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM public.ref $$;
CREATE POLICY calls ON policed USING (v > known());
SELECT create_distributed_table('policed', 'k');
--@ refused: cannot change … that … "…" of … table "…" calls
CREATE OR REPLACE FUNCTION known() RETURNS bigint LANGUAGE sql AS $$ SELECT count(*) FROM public.d $$;
--@ refused: cannot undistribute table "…"
SELECT undistribute_table('ref');
DROP TABLE policed;

-- Rows that the transaction would not see.
CREATE TABLE moved (k int PRIMARY KEY);
BEGIN ISOLATION LEVEL REPEATABLE READ;
--@ refused: cannot run …() in a transaction that keeps one snapshot
SELECT create_distributed_table('moved', 'k');
ROLLBACK;
SET default_transaction_isolation = 'serializable';
SELECT create_reference_table('moved');
RESET default_transaction_isolation;
DROP TABLE moved;

-- Checks and their like, which workers evaluate.
CREATE FUNCTION counted(x int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN x + (SELECT count(*) FROM public.d); END $$;
CREATE DOMAIN counting AS int CHECK (counted(VALUE) > 0);
CREATE TABLE checked (k int, v int CHECK (counted(v) > 0));
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('checked', 'k');
--@ refused: cannot use … "…" on table "…"
SELECT create_reference_table('checked');
DROP TABLE checked;
CREATE TABLE checked (k int, v counting[]);
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('checked', 'k');
DROP TABLE checked;
CREATE TABLE checked (k int, v int GENERATED ALWAYS AS (counted(k)) STORED);
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('checked', 'k');
DROP TABLE checked;
CREATE TABLE checked (k int, v int) PARTITION BY LIST (v);
CREATE TABLE checked_1 PARTITION OF checked (CHECK (counted(v) > 0)) FOR VALUES IN (1);
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('checked', 'k');
DROP TABLE checked;
CREATE TABLE checked (k int, v int);
CREATE UNIQUE INDEX ON checked (k, counted(v));
--@ refused: cannot use … "…" on table "…"
SELECT create_distributed_table('checked', 'k');
DROP TABLE checked;
DROP DOMAIN counting;
DROP FUNCTION counted;

-- Tables that cannot be distributed.
CREATE TEMPORARY TABLE tmp (k int);
--@ refused: cannot distribute table "…"
SELECT create_distributed_table('tmp', 'k');
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE moods (m mood, k int);
--@ refused: cannot distribute table "…" by column "…"
SELECT create_distributed_table('moods', 'm');
CREATE TABLE generated (a int, k int GENERATED ALWAYS AS (a + 1) STORED);
--@ refused: cannot distribute table "…" from inside the coordinator
DO $$ BEGIN CREATE TABLE has_rows (k int); INSERT INTO has_rows VALUES (1); PERFORM create_distributed_table('has_rows', 'k'); END $$;
--@ refused: cannot drop extension … together with others
DROP EXTENSION postgres_fdw, plpgsql;
--@ refused: … cannot be called here
DO $$ BEGIN COMMIT; PERFORM create_distributed_table('generated', 'a'); END $$;
--@ refused: cannot distribute relation: …
SELECT create_distributed_table('generated', 'k');
--@ refused: distribution type "…" is not supported
SELECT create_distributed_table('moods', 'k', 'range');
CREATE TABLE parent (k int PRIMARY KEY);
CREATE TABLE child (k int REFERENCES parent);
SELECT create_distributed_table('parent', 'k'), create_distributed_table('child', 'k');
--@ refused: cannot undistribute table "…"
SELECT undistribute_table('parent');

-- Definitions.
PREPARE star AS SELECT * FROM d WHERE k = 1;
EXECUTE star;
ALTER TABLE d ADD COLUMN later int;
--@ refused: cached plan must not change result type
EXECUTE star;
--@ refused: cannot create foreign key constraint "…" on distributed table "…"
ALTER TABLE d ADD CONSTRAINT to_local FOREIGN KEY (n) REFERENCES local;
--@ refused: cannot create foreign key constraint: table "…" is distributed and "…" is not
DO $$ BEGIN ALTER TABLE local ADD FOREIGN KEY (id) REFERENCES d; END $$;
CREATE TABLE unchecked (k int);
INSERT INTO unchecked VALUES (1);
ALTER TABLE unchecked ADD FOREIGN KEY (k) REFERENCES d NOT VALID;
--@ refused: cannot validate foreign key constraints to distributed tables from inside the coordinator
DO $$ BEGIN ALTER TABLE unchecked VALIDATE CONSTRAINT unchecked_k_fkey; END $$;
BEGIN ISOLATION LEVEL REPEATABLE READ;
--@ refused: cannot check foreign keys to distributed tables in a transaction that keeps one snapshot
ALTER TABLE unchecked VALIDATE CONSTRAINT unchecked_k_fkey;
ROLLBACK;
DROP TABLE unchecked;
CREATE TABLE top (k int PRIMARY KEY);
CREATE TABLE middle (k int PRIMARY KEY REFERENCES top ON DELETE CASCADE);
SELECT create_distributed_table('top', 'k'), create_distributed_table('middle', 'k');
CREATE TABLE bottom (k int REFERENCES middle);
--@ refused: cannot delete from table "…"
DELETE FROM top;
DROP TABLE bottom;
CREATE TABLE renamed (a int PRIMARY KEY);
SELECT create_reference_table('renamed');
CREATE TABLE follows (k int, a int REFERENCES renamed ON UPDATE CASCADE, PRIMARY KEY (k, a));
SELECT create_distributed_table('follows', 'k');
CREATE TABLE bottom (k int, a int, FOREIGN KEY (k, a) REFERENCES follows);
--@ refused: cannot have foreign key constraint "…" of table "…" to distributed table "…"
INSERT INTO bottom VALUES (1, 1);
DROP TABLE bottom;
CREATE TABLE beside (k int REFERENCES top);
--@ refused: cannot run this … on the distributed table "…"
MERGE INTO top USING beside ON top.k = beside.k WHEN MATCHED THEN DELETE;
DROP TABLE beside;
CREATE TABLE pieces (k int PRIMARY KEY) PARTITION BY RANGE (k);
SELECT create_distributed_table('pieces', 'k');
--@ refused: cannot create foreign key constraint to partitioned distributed table "…"
CREATE TABLE to_pieces (k int REFERENCES pieces);
CREATE TABLE copied (k int);
SELECT create_reference_table('copied');
--@ refused: cannot create foreign key constraint "…": table "…" is distributed and "…" is not
ALTER TABLE copied ADD CONSTRAINT to_spread FOREIGN KEY (k) REFERENCES top;
CREATE TABLE to_copy (k int REFERENCES top);
--@ refused: foreign key "…" of table "…" must reference a reference table
SELECT create_reference_table('to_copy');
CREATE TABLE alike (k int NOT NULL);
--@ refused: distributed table "…" cannot take part in inheritance
ALTER TABLE d INHERIT alike;
--@ refused: reference table "…" cannot take part in inheritance
ALTER TABLE ref INHERIT local;
--@ refused: cannot create a child of distributed table "…"
CREATE TABLE kid () INHERITS (d);
--@ refused: cannot add column "…" to reference table "…"
ALTER TABLE ref ADD COLUMN s serial;
--@ refused: cannot change the definition of distributed table "…" from inside the coordinator
DO $$ BEGIN ALTER TABLE d ADD COLUMN w int; COMMIT; END $$;
--@ refused: cannot carry out … from inside the coordinator
DO $$ BEGIN COMMENT ON TABLE d IS 'theirs'; COMMIT; END $$;
BEGIN ISOLATION LEVEL REPEATABLE READ;
--@ refused: cannot change roles from inside the coordinator in this transaction
DO $$ BEGIN CREATE ROLE refused_role; END $$;
ROLLBACK;
-- without a case: `foreign key "…" is of a form that is not known`: no version of PostgreSQL writes one that is not

CREATE TABLE parted (k int, at int, v int) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
CREATE INDEX ON parted (v);
SELECT create_distributed_table('parted', 'k');
CREATE TABLE parted_3 (k int, at int, v int);
INSERT INTO parted_3 VALUES (1, 25, 1);
--@ refused: cannot distribute table "…" with its rows from inside the coordinator
DO $$ BEGIN ALTER TABLE parted ATTACH PARTITION parted_3 FOR VALUES FROM (20) TO (30); END $$;
DROP TABLE parted_3;
INSERT INTO parted VALUES (1, 1, 1);
--@ refused: cannot change the definition of distributed table "…" so
CREATE TRIGGER nothing BEFORE INSERT ON parted FOR EACH ROW EXECUTE FUNCTION nothing();
--@ refused: cannot alter the type of column "…" of partitioned distributed table "…"
ALTER TABLE parted ALTER COLUMN v TYPE bigint, ADD CHECK (v > 0);
--@ refused: cannot undistribute table "…"
SELECT undistribute_table('parted_1');
CREATE TABLE elsewhere (k int, at int, v int);
SELECT create_distributed_table('elsewhere', 'at');
--@ refused: cannot attach distributed table "…" to distributed table "…"
ALTER TABLE parted ATTACH PARTITION elsewhere FOR VALUES FROM (20) TO (30);
CREATE TABLE local_parted (k int, at int, v int) PARTITION BY RANGE (at);
--@ refused: distributed table "…" cannot take part in inheritance
ALTER TABLE local_parted ATTACH PARTITION elsewhere FOR VALUES FROM (20) TO (30);

-- Writes.
--@ refused: cannot modify the distribution column "…" of table "…"
UPDATE trig SET k = k + 1;
--@ refused: cannot modify the distribution column "…" from inside the coordinator
DO $$ BEGIN UPDATE trig SET k = k + 1; END $$;
CREATE TABLE arrays (k int[], v int);
SELECT create_distributed_table('arrays', 'k');
--@ refused: cannot insert a part of the distribution column "…"
INSERT INTO arrays (k[1], v) VALUES (1, 2);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM d;
FETCH c;
--@ refused: cannot run this … on the distributed table "…"
UPDATE d SET v = 'x' WHERE CURRENT OF c;
ROLLBACK;
-- without a case: `cannot return tableoid and old rows of ON CONFLICT on distributed table "…"`: from PostgreSQL 18 on
-- without a case: `cannot check foreign key constraint "…"`: keys have a PERIOD from PostgreSQL 18 on; tests/newest.rs is for these
-- without a case: `cannot run this INSERT into the distributed table "…"`: the coordinator makes no such rows
--@ refused: cannot run MERGE into the distributed table "…"
WITH gone AS (DELETE FROM d WHERE k < 0 RETURNING k) MERGE INTO d USING gone g ON d.k = g.k WHEN MATCHED THEN DELETE;
SET datestyle = 'German';
--@ refused: cannot run this MERGE with its source sent to the workers
WITH gone AS (DELETE FROM other RETURNING a) MERGE INTO d USING gone g ON d.k = g.a AND random() < 2 WHEN MATCHED THEN DELETE;
RESET datestyle;
--@ refused: cannot run EXPLAIN ANALYZE of a MERGE that is run in steps
EXPLAIN ANALYZE MERGE INTO d USING local l ON d.k = l.id WHEN NOT MATCHED THEN INSERT VALUES (l.id + 100);
-- without a case: `cannot run MERGE into a local table from distributed tables`: the coordinator runs it
-- without a case: `distributed tables cannot be used by a trigger or constraint that runs at COMMIT`: needs the failure of COMMIT, see crates/pgherd/tests/lost.rs
-- without a case: `cannot modify a distributed table in a common table expression over several shards`: postgres_fdw sends no such statement
--@ refused: statement needs more than one shard and pgherd.fanout is "single"
SET pgherd.fanout = 'single' \; SELECT count(*) FROM d;
RESET pgherd.fanout;

-- From inside the coordinator.
--@ refused: cannot run ON CONFLICT or MERGE on distributed table "…" from inside the coordinator
DO $$ DECLARE r record; BEGIN FOR r IN EXECUTE 'INSERT INTO d (k) VALUES (1) ON CONFLICT DO NOTHING RETURNING k' LOOP NULL; END LOOP; END $$;
--@ refused: cannot run this ON CONFLICT on distributed table … inside a function
DO $$ DECLARE x int := 3; BEGIN INSERT INTO d (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET n = x; END $$;
CREATE FUNCTION more_of_d() RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO d (k) VALUES (77); RETURN 78; END $$;
--@ refused: cannot insert into distributed table "…" while another statement does
DO $$ BEGIN INSERT INTO d (k) SELECT more_of_d() ON CONFLICT (k) DO UPDATE SET n = 1; END $$;
--@ refused: cannot move rows to another partition from inside the coordinator
DO $$ BEGIN WITH a AS (UPDATE parted_1 SET at = at RETURNING k) UPDATE parted SET at = 11 FROM a; END $$;
--@ refused: cannot return tableoid of rows of distributed table "…" that go to another partition
DO $$ DECLARE part oid; BEGIN UPDATE parted SET at = 11 RETURNING tableoid INTO part; END $$;
CREATE FUNCTION counted(i bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM d WHERE n < i); END $$;
--@ refused: cannot read distributed table "…" while a statement inside the coordinator changes its rows
DO $$ BEGIN UPDATE d SET n = counted(n); END $$;
DROP FUNCTION counted;
SET default_transaction_isolation = 'repeatable read';
--@ refused: writing distributed tables from a procedure or DO block that ends transactions itself is not supported
DO $$ BEGIN UPDATE d SET n = 1; COMMIT; END $$;
RESET default_transaction_isolation;
CREATE ROLE refused_owner;
CREATE ROLE refused_reader;
GRANT CREATE ON SCHEMA public TO refused_owner;
CREATE TABLE hidden (k int PRIMARY KEY, v text);
SELECT create_distributed_table('hidden', 'k');
INSERT INTO hidden SELECT g, 'v' || g FROM generate_series(1, 20) g;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE hidden OWNER TO refused_owner;
CREATE POLICY few ON hidden USING (k < 5);
SET ROLE refused_owner;
CREATE VIEW shown AS SELECT * FROM hidden;
GRANT SELECT ON shown, hidden TO refused_reader;
--@ refused: cannot change a foreign table that leads to the router
DO $$ BEGIN EXECUTE format('ALTER TABLE pgherd.%I OPTIONS (ADD table_name ''d'')', 'ft_' || 'hidden'::regclass::oid); END $$;
SET ROLE refused_reader;
--@ refused: cannot use distributed table "…" with the rights of another role
SELECT count(*) FROM shown;
SET ROLE refused_owner;
CREATE TABLE lent (k int PRIMARY KEY);
SELECT create_distributed_table('lent', 'k');
CREATE VIEW lends AS SELECT * FROM lent;
INSERT INTO lent VALUES (1);
GRANT SELECT ON lends TO refused_reader;
RESET ROLE;
CREATE FUNCTION looks() RETURNS bigint STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM d); END $$;
CREATE FUNCTION looks_now() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM d); END $$;
BEGIN;
DECLARE looking CURSOR FOR SELECT looks() + looks_now() FROM local;
INSERT INTO d VALUES (1000);
--@ refused: cannot read distributed tables as they were when the cursor was declared
FETCH looking;
ROLLBACK;
SET ROLE refused_reader;
BEGIN;
DECLARE early CURSOR FOR SELECT FROM lends a, LATERAL (SELECT FROM lends b WHERE b.k = a.k OFFSET 0) b;
--@ refused: cannot read distributed table "…" as it was when the cursor was declared
FETCH early;
ROLLBACK;
RESET ROLE;
DROP OWNED BY refused_owner, refused_reader;
DROP ROLE refused_owner, refused_reader;
-- without a case: `this INSERT into a distributed table from inside the coordinator is not supported`: postgres_fdw sends no such statement
-- without a case: `this write to a distributed table from inside the coordinator is not supported yet`: postgres_fdw sends no such statement
-- without a case: `cannot run this statement inside a statement of the coordinator`: postgres_fdw sends no such statement
-- without a case: `callback is not a single-table query: …`: postgres_fdw sends no such statement
-- without a case: `callback needs a merge: …`: postgres_fdw sends no such statement
-- without a case: `callback needs a cursor for sorted rows`: postgres_fdw sends no such statement
-- without a case: `rows of this type cannot be sorted for the coordinator`: postgres_fdw sends no such statement
--@ refused: pgherd.remote_command can only be read with command = '…'
SELECT * FROM pgherd.remote_command;
--@ refused: function must be called at the top level with constant arguments
DO $$ BEGIN PERFORM undistribute_table('d'); END $$;

-- COPY, EXPLAIN, maintenance.
-- without a case: `COPY with DEFAULT is not supported through a temporary table`: PostgreSQL 15 has no DEFAULT in COPY
-- without a case: `COPY of a statement that writes distributed tables is not supported`: MERGE, which COPY takes from PostgreSQL 17 on
-- without a case: `DEFAULT for the distribution column in COPY is not supported`: PostgreSQL 15 has no DEFAULT in COPY
--@ refused: COPY encoding "…" is not supported by the router, use UTF8
COPY d (k, v) FROM STDIN (ENCODING 'LATIN1');
1000	x
\.

-- Sessions and protocol.
SET client_encoding = 'LATIN1';
--@ refused: set_config of client_encoding is not supported with client_encoding "…"
SELECT set_config('client_encoding', 'LATIN1', false);
--@ refused: COPY with an encoding is not supported with client_encoding "…"
COPY d TO STDOUT (ENCODING 'LATIN1');
RESET client_encoding;
-- without a case: `cannot convert a binary value to or from client_encoding "…"`: needs the extended protocol
-- without a case: `replication connections are not supported by the router`: no statement, see crates/pgherd/tests/protocol.rs
-- without a case: `unsupported frontend protocol ….…: server supports 3.0 to 3.2`: no statement, see crates/pgherd/tests/protocol.rs
-- without a case: `the router could not read this statement`: a statement that PostgreSQL takes and our parser does not
-- without a case: `cannot commit a transaction with two participants that cannot be prepared`: workers are never asked for what cannot
PREPARE one (int) AS SELECT $1;
--@ refused: cannot use subquery in EXECUTE parameter
EXECUTE one ((SELECT 1));

-- The interface itself.
--@ refused: function … is not supported yet
SELECT alter_distributed_table('d', shard_count => 4);
--@ refused: node role "…" is not supported yet
SELECT citus_add_node('localhost', 1, noderole => 'secondary');
--@ refused: arguments of … must be constants here
SELECT undistribute_table(v) FROM local;
-- without a case: `parameters of … must be sent as text`: needs the extended protocol

-- Samples, row locks that do not wait, and transactions prepared by the client.
-- without a case: `cannot take such a sample of a distributed table`: needs an extension
CREATE TABLE branches (t int, id int, parent int, PRIMARY KEY (t, id), FOREIGN KEY (t, parent) REFERENCES branches ON DELETE CASCADE);
SELECT create_distributed_table('branches', 't');
INSERT INTO branches VALUES (1, 1, NULL), (1, 2, 1);
CREATE FUNCTION deletes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
CREATE TRIGGER deletes BEFORE DELETE ON branches FOR EACH ROW EXECUTE FUNCTION deletes();
--@ refused: cannot change rows of distributed table "…" that a foreign key changes in the same statement
DELETE FROM branches WHERE t >= (SELECT count(*) FROM local WHERE id < 0) RETURNING id;
ALTER TABLE branches ADD UNIQUE (t, parent) DEFERRABLE;
--@ refused: cannot run SET CONSTRAINTS inside a function or DO block
DO $$ BEGIN SET CONSTRAINTS ALL DEFERRED; END $$;
CREATE TABLE sampled_before (k int);
CREATE VIEW sampled_by AS SELECT * FROM sampled_before TABLESAMPLE BERNOULLI (10);
--@ refused: cannot distribute table "…"
SELECT create_distributed_table('sampled_before', 'k');
--@ refused: cannot take a sample of a distributed table in this statement
DO $$ BEGIN PERFORM tableoid FROM d TABLESAMPLE BERNOULLI (10); END $$;
CREATE FUNCTION run_text(statement text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; END $$;
--@ refused: cannot take a sample of a distributed table in this statement
SELECT run_text('SELECT FROM d TABLESAMPLE SYSTEM (10)');
--@ refused: cannot run this statement with NOWAIT or SKIP LOCKED
SELECT count(*) FROM (SELECT k FROM d FOR UPDATE NOWAIT) a, (SELECT k FROM other FOR UPDATE) b, local;
BEGIN;
INSERT INTO local SELECT count(*) + 1000, 'n' FROM d;
UPDATE d SET n = n + 1;
--@ refused: cannot PREPARE a transaction that has operated on postgres_fdw foreign tables
PREPARE TRANSACTION 'of_both';
BEGIN;
DECLARE kept CURSOR WITH HOLD FOR SELECT k FROM d;
UPDATE d SET n = n + 1;
--@ refused: cannot PREPARE a transaction that has created a cursor WITH HOLD
PREPARE TRANSACTION 'of_cursor';

-- ONLY in a body.
CREATE SCHEMA another;
CREATE TABLE another.d (k int);
--@ refused: cannot tell which table ONLY "…" means
DO $$ BEGIN PERFORM 1 FROM ONLY d; END $$;
DROP TABLE another.d;

-- System columns.
--@ refused: cannot return ctid of rows that are inserted into the distributed table "…"
INSERT INTO d VALUES (1000) RETURNING ctid;
--@ refused: cannot use system column "…" of distributed table "…" in this statement
SELECT d.xmin FROM d JOIN pg_class c ON c.oid = d.n;

-- Storage of a partition.
CREATE TABLE stored (k int, v int) PARTITION BY RANGE (v);
CREATE TABLE stored_1 PARTITION OF stored FOR VALUES FROM (0) TO (10);
SELECT create_distributed_table('stored', 'k');
--@ refused: cannot set storage parameters of a partition that is distributed
ALTER TABLE stored_1 SET (fillfactor = 50);
CREATE TABLE fired (k int PRIMARY KEY, v int);
CREATE TABLE fired_log (k int);
SELECT create_distributed_table('fired', 'k');
CREATE FUNCTION log_fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired_log VALUES (NEW.k); RETURN NEW; END $$;
--@ refused: distributed table "…" cannot have such triggers
CREATE TRIGGER fires AFTER UPDATE ON fired REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION log_fired();
CREATE TRIGGER fires BEFORE INSERT OR UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION log_fired();
INSERT INTO fired VALUES (1, 1), (2, 2);
--@ refused: cannot run ON CONFLICT DO UPDATE on distributed table "…"
INSERT INTO fired VALUES (9, 1), (1, 1) ON CONFLICT (k) DO UPDATE SET v = 2;
--@ refused: cannot change a row of distributed table "…" twice in one statement
UPDATE fired SET v = 5 FROM generate_series(1, 2) s WHERE k = 1;
-- without a case: `cannot change where triggers of distributed table "…" fire`: needs a second role, see crates/pgherd/tests/rights.rs
CREATE TABLE ruled (k int PRIMARY KEY, v int);
SELECT create_distributed_table('ruled', 'k');
CREATE RULE keeps AS ON DELETE TO ruled DO INSTEAD NOTHING;
ALTER TABLE ruled ENABLE ALWAYS RULE keeps;
--@ refused: cannot insert into distributed table … from inside the coordinator
DO $$ BEGIN INSERT INTO ruled VALUES (1, 1); END $$;
-- without a case: `portal "…" gives binary rows, FETCH wants text`: only the extended protocol makes portals.
-- without a case: `node …:… runs PostgreSQL …`: tests have no server that is so old
