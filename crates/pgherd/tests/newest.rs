//! What PostgreSQL 16 to 18 have brought, on the PostgreSQL that users get, beside one server of that release. Older
//! ones say the same of it, on either side.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::{Cluster, Plain, beside};

#[test]
fn features_of_the_newest_releases_are_as_on_one_server() {
    let cluster = Cluster::start_as_users_do(env!("CARGO_BIN_EXE_pgherd"), 3).unwrap();
    let plain = Plain::like(&cluster.target).unwrap();
    let (plain_side, cluster_side) = (plain.side("postgres"), cluster.side());
    for (name, statements) in [
        ("newest_not_null", NOT_NULL),
        ("newest_domains", DOMAINS),
        ("newest_periods", PERIODS),
        ("newest_unlogged", UNLOGGED),
        ("newest_only", ONLY),
        ("newest_merge", MERGE),
        ("newest_returning", RETURNING),
        ("newest_identity", IDENTITY),
        ("newest_moved", MOVED),
    ] {
        let said = beside::same(&plain_side, &cluster_side, name, statements);
        assert!(said.iter().any(|(_, said)| said.contains('1')), "{name} says nothing: {said:?}");
    }
}

const NOT_NULL: &[&str] = &[
    "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, nullif(i % 3, 0) FROM generate_series(1, 20) i",
    "only: SELECT create_distributed_table('t', 'k')",
    "ALTER TABLE t ADD CONSTRAINT vn NOT NULL v NOT VALID",
    "INSERT INTO t VALUES (100, NULL)",
    "UPDATE t SET v = NULL WHERE k = 1",
    "UPDATE t SET k = k WHERE k = 2",
    "ALTER TABLE t VALIDATE CONSTRAINT vn",
    "UPDATE t SET v = 7 WHERE v IS NULL",
    "ALTER TABLE t VALIDATE CONSTRAINT vn",
    "INSERT INTO t VALUES (101, NULL)",
    "ALTER TABLE t DROP CONSTRAINT vn",
    "INSERT INTO t VALUES (101, NULL)",
    "SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1",
    // Of a table that has it before, and of one that gets it with the column.
    "CREATE TABLE u (k int PRIMARY KEY, v int); INSERT INTO u VALUES (1, NULL), (2, 2)",
    "ALTER TABLE u ADD CONSTRAINT un NOT NULL v NOT VALID",
    "only: SELECT create_distributed_table('u', 'k')",
    "SELECT * FROM u ORDER BY k",
    "INSERT INTO u VALUES (3, NULL)",
    "ALTER TABLE u VALIDATE CONSTRAINT un",
    "DELETE FROM u WHERE v IS NULL",
    "ALTER TABLE u VALIDATE CONSTRAINT un",
    "ALTER TABLE u ADD COLUMN w int, ADD CONSTRAINT wn NOT NULL w NOT VALID",
    "INSERT INTO u VALUES (4, 4, NULL)",
    "SELECT * FROM u ORDER BY k",
    "ALTER TABLE u DROP CONSTRAINT un, ADD CONSTRAINT once_more NOT NULL v NOT VALID",
    "INSERT INTO u VALUES (5, NULL)",
    "CREATE TABLE p (k int, at int, v int) PARTITION BY RANGE (at); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
    "INSERT INTO p VALUES (1, 1, NULL); ALTER TABLE p ADD CONSTRAINT pn NOT NULL v NOT VALID",
    "only: SELECT create_distributed_table('p', 'k')",
    "ALTER TABLE p1 VALIDATE CONSTRAINT pn",
    "SELECT * FROM p WHERE v IS NULL",
    "UPDATE p SET v = 1",
    "ALTER TABLE p1 VALIDATE CONSTRAINT pn",
    "ALTER TABLE p VALIDATE CONSTRAINT pn",
    "INSERT INTO p VALUES (1, 1, NULL)",
    "CREATE TABLE r (k int PRIMARY KEY, v int); INSERT INTO r VALUES (1, NULL); ALTER TABLE r ADD CONSTRAINT rn NOT NULL v NOT VALID",
    "only: SELECT create_reference_table('r')",
    "INSERT INTO r VALUES (2, NULL)",
    "ALTER TABLE r ALTER v SET NOT NULL",
    "UPDATE r SET v = 1",
    "ALTER TABLE r ALTER v SET NOT NULL",
    "INSERT INTO r VALUES (2, NULL)",
];

const DOMAINS: &[&str] = &[
    "CREATE DOMAIN d AS int CONSTRAINT must_be NOT NULL CONSTRAINT positive CHECK (VALUE > 0)",
    "CREATE TABLE t (k int PRIMARY KEY, v d)",
    "only: SELECT create_distributed_table('t', 'k')",
    "INSERT INTO t VALUES (1, NULL)",
    "INSERT INTO t VALUES (1, -1)",
    "ALTER DOMAIN d DROP CONSTRAINT must_be",
    "INSERT INTO t VALUES (1, NULL), (2, 2)",
    "SELECT * FROM t ORDER BY k",
    "ALTER DOMAIN d ADD CONSTRAINT again NOT NULL",
    "DELETE FROM t WHERE v IS NULL",
    "ALTER DOMAIN d ADD CONSTRAINT again NOT NULL",
    "INSERT INTO t VALUES (1, NULL)",
    "ALTER DOMAIN d RENAME CONSTRAINT again TO once_more",
    "ALTER DOMAIN d DROP CONSTRAINT once_more",
    "INSERT INTO t VALUES (1, NULL)",
];

const PERIODS: &[&str] = &[
    "CREATE EXTENSION btree_gist",
    "CREATE TABLE p (k int, during daterange, PRIMARY KEY (k, during WITHOUT OVERLAPS))",
    "only: SELECT create_distributed_table('p', 'k')",
    "CREATE TABLE f (k int, during daterange, v int, FOREIGN KEY (k, PERIOD during) REFERENCES p (k, PERIOD during))",
    "only: SELECT create_distributed_table('f', 'k', colocate_with => 'p')",
    "INSERT INTO p SELECT i, daterange(date '2020-01-01', date '2021-01-01') FROM generate_series(1, 9) i",
    "INSERT INTO f VALUES (1, '[2020-02-01,2020-03-01)', 1), (2, '[2020-02-01,2021-01-01)', 2)",
    "INSERT INTO f VALUES (3, '[2020-02-01,2021-03-01)', 3)",
    "INSERT INTO p VALUES (3, '[2020-06-01,2021-06-01)')",
    "INSERT INTO p VALUES (3, '[2021-01-01,2021-06-01)')",
    "INSERT INTO f VALUES (3, '[2020-02-01,2021-03-01)', 3)",
    "DELETE FROM p WHERE k = 1",
    "DELETE FROM p WHERE k = 4",
    "ALTER TABLE f DROP CONSTRAINT f_k_during_fkey",
    "DELETE FROM p WHERE k = 1",
    "ALTER TABLE f ADD CONSTRAINT late FOREIGN KEY (k, PERIOD during) REFERENCES p",
    "DELETE FROM f WHERE k = 1",
    "ALTER TABLE f ADD CONSTRAINT late FOREIGN KEY (k, PERIOD during) REFERENCES p",
    "INSERT INTO f VALUES (4, '[2020-02-01,2020-03-01)', 4)",
    "SELECT * FROM f ORDER BY k",
];

const UNLOGGED: &[&str] = &[
    "CREATE TABLE t (k int, at int) PARTITION BY RANGE (at)",
    "CREATE UNLOGGED TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
    "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)",
    "only: SELECT create_distributed_table('t', 'k')",
    "INSERT INTO t SELECT i, i FROM generate_series(0, 19) i",
    "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM t1)",
    "CREATE UNLOGGED TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30)",
    "INSERT INTO t VALUES (21, 21) RETURNING tableoid::regclass",
    "SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^t[0-9]?$' AND relnamespace = 'public'::regnamespace ORDER BY 1",
    "ALTER TABLE t ADD COLUMN v int",
    "ALTER TABLE t1 SET LOGGED",
    "ALTER TABLE t2 SET UNLOGGED",
    "SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^t[0-9]?$' AND relnamespace = 'public'::regnamespace ORDER BY 1",
    "ALTER TABLE t DETACH PARTITION t3",
    "SELECT * FROM t3",
    "DO $$ BEGIN CREATE UNLOGGED TABLE t4 PARTITION OF t FOR VALUES FROM (30) TO (40); END $$",
    "INSERT INTO t VALUES (31, 31, 1) RETURNING tableoid::regclass",
    "CREATE UNLOGGED TABLE alone (k int PRIMARY KEY); INSERT INTO alone VALUES (1)",
    "only: SELECT create_distributed_table('alone', 'k')",
    "ALTER TABLE alone SET LOGGED",
    "SELECT relname, relpersistence FROM pg_class WHERE relname ~ '^t[0-9]?$|^alone$' AND relnamespace = 'public'::regnamespace ORDER BY 1",
];

const ONLY: &[&str] = &[
    "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 100) i",
    "CREATE TABLE p (k int, at int) PARTITION BY RANGE (at); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
    "CREATE TABLE here (k int)",
    "only: SELECT create_distributed_table('t', 'k'), create_distributed_table('p', 'k')",
    "VACUUM ONLY t",
    "VACUUM ONLY p",
    "VACUUM ONLY (t), only(p)",
    "ANALYZE ONLY (t) (v)",
    "ANALYZE ONLY t (v), ONLY p",
    "VACUUM (ANALYZE) ONLY t, here, ONLY p1",
    "only: DO $$ BEGIN ASSERT (SELECT bool_and(result::bool) FROM run_command_on_workers($c$SELECT current_setting('server_version_num')::int \
     < 180000 OR bool_or(reltuples > 0) FROM pg_class WHERE relname = 't'$c$)); END $$",
];

const MERGE: &[&str] = &[
    "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 9) i",
    "CREATE TABLE s (k int PRIMARY KEY, v int); INSERT INTO s SELECT i, 10 * i FROM generate_series(7, 12) i",
    "only: SELECT create_distributed_table('t', 'k'), create_distributed_table('s', 'k')",
    "MERGE INTO t USING s ON t.k = s.k AND s.k = 8 AND t.k = 8 WHEN MATCHED THEN DELETE RETURNING merge_action(), t.*",
    "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.k = 7 THEN UPDATE SET v = s.v RETURNING merge_action(), t.*, s.*",
    "MERGE INTO t USING (VALUES (1, 5)) s (k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v RETURNING merge_action(), t.*",
    "MERGE INTO t USING (VALUES (1, 7)) s (k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v \
     WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) RETURNING WITH (OLD AS o, NEW AS n) merge_action(), o.v, n.v, s.k",
    "MERGE INTO t USING (VALUES (200, 7)) s (k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v \
     WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v) RETURNING WITH (OLD AS o, NEW AS n) merge_action() = 'INSERT' AS made, o.v, n.*",
    "MERGE INTO t USING s ON t.k = s.k WHEN NOT MATCHED BY SOURCE THEN DELETE",
    "SELECT * FROM t ORDER BY k",
    "SELECT merge_action()",
];

const RETURNING: &[&str] = &[
    "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, i FROM generate_series(1, 9) i",
    "CREATE TABLE s (k int PRIMARY KEY, v int); INSERT INTO s SELECT i, 10 * i FROM generate_series(7, 12) i",
    "only: SELECT create_distributed_table('t', 'k'), create_distributed_table('s', 'k')",
    "UPDATE t SET v = v + 1 WHERE k = 1 RETURNING WITH (OLD AS o) o.v, v, new.v",
    "WITH u AS (UPDATE t SET v = v + 1 RETURNING WITH (OLD AS o, NEW AS n) o.k, o.v AS was, n.v, o AS whole) SELECT * FROM u ORDER BY k",
    "UPDATE t SET v = 100 FROM s WHERE s.k = t.k AND t.k = 7 RETURNING WITH (OLD AS before) before.*, t.*, s.v",
    "INSERT INTO t VALUES (1, 9) ON CONFLICT (k) DO UPDATE SET v = excluded.v + 1 RETURNING WITH (NEW AS n, OLD AS o) o.*, n.*",
    "INSERT INTO t VALUES (50, 9) ON CONFLICT (k) DO UPDATE SET v = excluded.v + 1 RETURNING WITH (NEW AS n, OLD AS o) o.*, n.*",
    "DELETE FROM t WHERE k = 50 RETURNING WITH (OLD AS o) o.k, new.k, (SELECT max(s.v) FROM s WHERE s.k <> o.k)",
    "UPDATE t SET v = 3 WHERE k = 3 RETURNING WITH (OLD AS new, NEW AS old) old.v, new.v",
    "UPDATE t SET v = 3 WHERE k = 3 RETURNING WITH (OLD AS o, OLD AS p) o.v",
    "UPDATE t SET v = 3 WHERE k = 3 RETURNING WITH (OLD AS t) t.v",
    "UPDATE t SET v = 3 WHERE k = 3 RETURNING WITH (OLD AS o) old.v",
    "UPDATE t SET k = 33 WHERE k = 3 RETURNING /**/ WITH (OLD AS o) o.k, k",
    "UPDATE t SET k = 3 WHERE k = 33 RETURNING /**/ WITH (OLD AS o) o, k",
    "UPDATE t SET v = 0 FROM s AS old WHERE old.k = t.k AND t.k = 8 RETURNING WITH (OLD AS o) (SELECT max(x.v) FROM s x WHERE x.k = o.k), old.v",
    "UPDATE t SET v = 0 WHERE k = 8 RETURNING WITH (OLD AS o) (SELECT max(o.v) FROM s o WHERE o.k = t.k)",
    "SELECT * FROM t ORDER BY k",
];

const MOVED: &[&str] = &[
    "CREATE TABLE p (k int, r int, PRIMARY KEY (k, r)) PARTITION BY RANGE (r)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
    "CREATE TABLE t (k int PRIMARY KEY, v int)",
    "only: SELECT create_distributed_table('p', 'k'), create_distributed_table('t', 'k')",
    "INSERT INTO p VALUES (1, 1), (2, 12); INSERT INTO t VALUES (1, 1)",
    "UPDATE p SET r = r + 10 WHERE k = 1 RETURNING old.tableoid::regclass, new.tableoid::regclass, tableoid::regclass, old.r, new.r",
    "UPDATE p SET r = r - 10 WHERE k = 1 RETURNING WITH (OLD AS o, NEW AS n) o.tableoid::regclass, n.tableoid::regclass, o.*, n.*",
    "UPDATE t SET v = 2 RETURNING old.tableoid::regclass, new.tableoid::regclass, old.v, v",
    // In a function's text nothing is put around tableoid: what cannot be told is refused.
    "WITH u AS (UPDATE p SET r = r RETURNING k, old.tableoid::regclass o, new.tableoid::regclass n) SELECT * FROM u ORDER BY k",
    "WITH u AS (UPDATE p SET r = r + 1 RETURNING k, old.tableoid::regclass o, new.tableoid::regclass n) SELECT * FROM u ORDER BY k",
    "WITH u AS (UPDATE p SET r = 15 RETURNING k, old.tableoid::regclass o, new.tableoid::regclass n, p.tableoid::regclass p) \
        SELECT * FROM u ORDER BY k",
    "WITH u AS (UPDATE p SET r = k + 2 RETURNING k, old.tableoid::regclass o, new.tableoid::regclass n), \
        v AS (UPDATE t SET v = 2 RETURNING old.tableoid::regclass o, new.tableoid::regclass n) SELECT * FROM u, v ORDER BY k",
    "WITH u AS (UPDATE p SET r = r WHERE k = 1 RETURNING k) UPDATE t SET v = 2 FROM u WHERE t.k = u.k RETURNING t.tableoid::regclass",
    "WITH u AS (UPDATE p SET r = r WHERE k = 1 RETURNING k) SELECT t.tableoid::regclass, u.k FROM t, u WHERE t.k = u.k",
    "only: DO $$ DECLARE part regclass; BEGIN UPDATE p SET r = 12 WHERE k = 1 RETURNING tableoid INTO part; \
        ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
    "SELECT tableoid::regclass, * FROM p ORDER BY k",
    "only: DO $$ DECLARE r record; BEGIN FOR r IN INSERT INTO t VALUES (1, 5), (2, 6) ON CONFLICT (k) DO UPDATE \
        SET v = excluded.v RETURNING old.v AS o LOOP END LOOP; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
    "only: DO $$ DECLARE r record; BEGIN FOR r IN INSERT INTO t VALUES (1, 5), (2, 6) ON CONFLICT (k) DO UPDATE \
        SET v = excluded.v RETURNING WITH (OLD AS o) o.v LOOP END LOOP; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
    "DO $$ DECLARE r record; BEGIN FOR r IN INSERT INTO t VALUES (1, 5) ON CONFLICT (k) DO UPDATE \
        SET v = excluded.v RETURNING new.v AS n LOOP ASSERT r.n = 5; END LOOP; END $$",
    "SELECT * FROM t ORDER BY k",
    "DELETE FROM t RETURNING old.tableoid::regclass, new.tableoid::regclass, old.v, new.v",
];

const IDENTITY: &[&str] = &[
    "CREATE TABLE t (id bigint GENERATED ALWAYS AS IDENTITY, at int, v int, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)",
    "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10); CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)",
    "only: SELECT create_distributed_table('t', 'id')",
    "INSERT INTO t (at, v) SELECT i, i FROM generate_series(0, 19) i",
    "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t",
    "INSERT INTO t (at, v) VALUES (3, 3) RETURNING id, at",
    "INSERT INTO t (id, at, v) VALUES (1000, 3, 3)",
    "CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30)",
    "INSERT INTO t (at, v) VALUES (23, 3) RETURNING id",
    "ALTER TABLE t DETACH PARTITION t1 CONCURRENTLY",
    "SELECT count(*) FROM t",
];
