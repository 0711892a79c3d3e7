//! Objects that users make besides tables, and settings, beside one PostgreSQL: text search, views of catalogs and of
//! partitions, keys of reference tables to local ones, triggers of keys, quoted names, dates.

#![allow(clippy::unwrap_used)]

use pgherd_testkit::client::Client;
use pgherd_testkit::{Plain, Side, beside};

fn sides() -> (Plain, [Side; 2]) {
    beside::sides(env!("CARGO_BIN_EXE_pgherd"))
}

fn same(name: &str, statements: &[&str]) -> Vec<String> {
    let (_plain, [plain, cluster]) = sides();
    beside::same(&plain, &cluster, name, statements).into_iter().map(|(_, said)| said).collect()
}

#[test]
fn text_search_is_made_on_every_node() {
    let said = same(
        "objects_text",
        &[
            "CREATE TEXT SEARCH CONFIGURATION public.fr (COPY = french)",
            "CREATE TABLE t (k int PRIMARY KEY, d text, tv tsvector GENERATED ALWAYS AS (to_tsvector('public.fr', d)) STORED)",
            "only: SELECT create_distributed_table('t', 'k')",
            "INSERT INTO t (k, d) VALUES (1, 'les chevaux mangent'), (2, 'nous mangeons'), (3, 'the horses')",
            "SELECT k, to_tsvector('fr', d), tv FROM t ORDER BY k",
            "CREATE INDEX ON t USING gin (to_tsvector('public.fr', d))",
            "SELECT k FROM t WHERE to_tsvector('public.fr', d) @@ to_tsquery('public.fr', 'manger') ORDER BY k",
            "CREATE TEXT SEARCH CONFIGURATION public.de (COPY = german)",
            "SELECT k, to_tsvector('de', d) FROM t ORDER BY k",
            "SET default_text_search_config = 'public.fr'",
            "SELECT k, to_tsvector(d) FROM t ORDER BY k",
            "UPDATE t SET d = d || ' chat' WHERE k = 1 RETURNING tv",
            "ALTER TEXT SEARCH CONFIGURATION public.fr ALTER MAPPING FOR asciiword WITH simple",
            "SELECT k, to_tsvector(d) FROM t ORDER BY k",
            "RESET default_text_search_config",
            "CREATE TEXT SEARCH DICTIONARY public.short (TEMPLATE = simple, STOPWORDS = french)",
            "CREATE TEXT SEARCH CONFIGURATION public.own (PARSER = default)",
            "ALTER TEXT SEARCH CONFIGURATION public.own ADD MAPPING FOR asciiword WITH public.short",
            "SELECT k, to_tsvector('public.own', d) FROM t ORDER BY k",
            "DO $$ BEGIN CREATE TEXT SEARCH CONFIGURATION public.inside (COPY = english); END $$",
            "SELECT k, to_tsvector('inside', d) FROM t WHERE k = 3",
            "ALTER TEXT SEARCH CONFIGURATION own RENAME TO other",
            "SELECT k, to_tsvector('public.other', d) FROM t WHERE k = 2",
            "DROP TEXT SEARCH CONFIGURATION other",
            "SELECT k, to_tsvector('public.other', d) FROM t ORDER BY k",
        ],
    );
    assert!(said.iter().any(|said| said.contains("chev")), "no stem: {said:?}");
}

#[test]
fn keys_of_reference_tables_to_local_ones_are_kept() {
    let said = same(
        "objects_keys",
        &[
            "CREATE TABLE here (id int PRIMARY KEY); INSERT INTO here VALUES (1), (2), (3)",
            "CREATE TABLE r (id int PRIMARY KEY, h int REFERENCES here ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO r VALUES (1, 1)",
            "only: SELECT create_reference_table('r')",
            "INSERT INTO r VALUES (2, 2), (3, 3)",
            "INSERT INTO r VALUES (4, 9)",
            "UPDATE r SET h = 8 WHERE id = 1",
            "DELETE FROM here WHERE id = 2",
            "UPDATE here SET id = 7 WHERE id = 3",
            "SELECT * FROM r ORDER BY id",
            "CREATE TABLE d (k int PRIMARY KEY, r int REFERENCES r)",
            "only: SELECT create_distributed_table('d', 'k')",
            "INSERT INTO d VALUES (1, 1), (2, 3)",
            "INSERT INTO d VALUES (3, 2)",
            "SELECT d.k, r.h FROM d JOIN r ON r.id = d.r ORDER BY 1",
            "only: DO $$ BEGIN PERFORM create_distributed_table('here', 'id'); RAISE 'distributed'; EXCEPTION WHEN feature_not_supported THEN END $$",
            "only: SELECT create_reference_table('here')",
            "UPDATE here SET id = 17 WHERE id = 7",
            "SELECT d.k, r.h FROM d JOIN r ON r.id = d.r ORDER BY 1",
            "ALTER TABLE d DISABLE TRIGGER ALL",
            "INSERT INTO d VALUES (5, 55)",
            "ALTER TABLE d ENABLE TRIGGER ALL",
            "INSERT INTO d VALUES (6, 66)",
            "SELECT * FROM d ORDER BY k",
            "ALTER TABLE r DROP CONSTRAINT r_h_fkey",
            "UPDATE r SET h = 99 WHERE id = 1",
            "ALTER TABLE r ADD FOREIGN KEY (h) REFERENCES here",
            "ALTER TABLE r ADD FOREIGN KEY (h) REFERENCES here NOT VALID",
            "INSERT INTO r VALUES (9, 98)",
        ],
    );
    assert_eq!(said.iter().filter(|said| said.contains("23503")).count(), 6, "{said:?}");
    let mut client = sides().1[1].connect("objects_keys").unwrap();
    let copies = "SELECT count(DISTINCT result) FROM run_command_on_all_nodes('SELECT string_agg(r::text, '' '' ORDER BY id) FROM r r')";
    assert_eq!(client.value(copies).unwrap(), "1");
}

#[test]
fn views_read_catalogs_partitions_and_take_rows() {
    same(
        "objects_views",
        &[
            "CREATE TABLE t (k int PRIMARY KEY, v int)",
            "only: SELECT create_distributed_table('t', 'k')",
            "CREATE VIEW tv AS SELECT * FROM t",
            "INSERT INTO tv VALUES (1, 1), (2, 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v + 10",
            "INSERT INTO tv VALUES (1, 5), (3, 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v + tv.v RETURNING *",
            "INSERT INTO tv SELECT i, i FROM generate_series(1, 6) i ON CONFLICT DO NOTHING",
            "SELECT * FROM tv ORDER BY k",
            "CREATE VIEW renamed AS SELECT k AS a, v AS b FROM t",
            "SELECT * FROM renamed ORDER BY a",
            "CREATE TABLE m (k int, d int, PRIMARY KEY (k, d)) PARTITION BY RANGE (d); \
             CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (10)",
            "only: SELECT create_distributed_table('m', 'k')",
            "CREATE TABLE m2 (k int, d int, PRIMARY KEY (k, d)); INSERT INTO m2 VALUES (1, 11)",
            "CREATE VIEW vm WITH (security_barrier) AS SELECT k, d + 1 AS e FROM m2 WHERE k > 0; GRANT SELECT ON vm TO PUBLIC; \
             CREATE VIEW vvm AS SELECT e FROM vm",
            "ALTER TABLE m ATTACH PARTITION m2 FOR VALUES FROM (10) TO (20)",
            "INSERT INTO m VALUES (2, 12), (3, 3)",
            "SELECT * FROM vm ORDER BY 1; SELECT * FROM vvm ORDER BY 1; SELECT * FROM m ORDER BY 1",
            "SELECT reloptions, relacl IS NOT NULL FROM pg_class WHERE relname = 'vm'",
            "CREATE VIEW names AS SELECT relname, relkind FROM pg_class WHERE relnamespace::regnamespace::text NOT LIKE 'pg\\_%' \
             AND relnamespace::regnamespace::text <> 'information_schema'",
            "SELECT * FROM names ORDER BY 1, 2",
            "SELECT n.relname FROM names n WHERE n.relkind = 'v' ORDER BY 1",
            // Those of PostgreSQL come first, and a CTE hides a view wherever it stands.
            "CREATE VIEW public.pg_am AS SELECT a.amname FROM pg_catalog.pg_am a, pg_catalog.pg_class c WHERE c.relname = 'pg_class'",
            "SELECT count(*) > 3 FROM pg_am",
            "SELECT count(*) > 3 FROM public.pg_am",
            "SELECT * FROM (WITH names AS (SELECT 'mine' AS relname) SELECT relname FROM names) s",
            "CREATE VIEW triggers AS SELECT tgname FROM pg_trigger; SELECT count(*) FROM triggers",
            "CREATE SCHEMA \"a_schema_with_a_very_long_name_of_sixty_characters_and_more_ab\"",
            "SET search_path = \"a_schema_with_a_very_long_name_of_sixty_characters_and_more_ab\", public",
            "CREATE TABLE \"a_table_with_a_very_long_name_of_sixty_characters_and_more_abcd\" (k int PRIMARY KEY) PARTITION BY RANGE (k); \
             CREATE TABLE \"a_part_with_a_very_long_name_of_sixty_characters_and_more_abcde\" PARTITION OF \
             \"a_table_with_a_very_long_name_of_sixty_characters_and_more_abcd\" FOR VALUES FROM (0) TO (9)",
            "only: SELECT create_distributed_table('\"a_table_with_a_very_long_name_of_sixty_characters_and_more_abcd\"', 'k')",
            "INSERT INTO \"a_table_with_a_very_long_name_of_sixty_characters_and_more_abcd\" VALUES (1) RETURNING *",
        ],
    );
}

/// ORMs assign all columns of a row that they save, the distribution column among them, to the value that it has.
#[test]
fn rows_are_saved_whole() {
    same(
        "objects_whole",
        &[
            "CREATE TABLE p (t int, id int, v text, PRIMARY KEY (t, id))",
            "CREATE TABLE q (t int, id int, p int, PRIMARY KEY (t, id), FOREIGN KEY (t, p) REFERENCES p)",
            "only: SELECT create_distributed_table('p', 't'), create_distributed_table('q', 't')",
            "INSERT INTO p VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'); INSERT INTO q VALUES (1, 1, 1)",
            "UPDATE p SET t = 1, v = 'b' WHERE id = 1",
            "UPDATE p AS x SET t = 2, v = 'b' WHERE id = 2 RETURNING *",
            "UPDATE p SET v = 'z', t = 7 WHERE id = 77",
            "PREPARE u (int, text, int) AS UPDATE p SET t = $1, v = $2 WHERE id = $3 RETURNING t, v",
            "EXECUTE u (3, 'w', 3)",
            "UPDATE p SET t = '3', v = 'q' WHERE id = 3",
            "UPDATE p SET (t, v) = (3, 'r') WHERE id = 3",
            "UPDATE p SET t = p.id WHERE id < 4",
            "UPDATE p SET t = 1, v = q.id::text FROM q WHERE q.t = p.t AND p.id = 1",
            "UPDATE p SET t = 1, v = (SELECT max(v) FROM q) WHERE id = 1",
            "WITH s AS (UPDATE p SET t = 1, v = 'c' WHERE id = 1 RETURNING *) SELECT * FROM s",
            "DO $$ DECLARE n int; BEGIN UPDATE p SET t = 2, v = 'd' WHERE id = 2; GET DIAGNOSTICS n = ROW_COUNT; ASSERT n = 1; END $$",
            "INSERT INTO p VALUES (1, 1, 'up') ON CONFLICT (t, id) DO UPDATE SET t = excluded.t, id = excluded.id, v = excluded.v",
            "only: DO $$ BEGIN UPDATE p SET t = 5 WHERE id = 1; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "SELECT * FROM p ORDER BY 1, 2",
            "CREATE FUNCTION marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := NEW.v || '!'; RETURN NEW; END $$",
            "CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
            "CREATE TABLE g (t uuid, id int, v varchar(9), PRIMARY KEY (t, id))",
            "CREATE TRIGGER g BEFORE UPDATE ON g FOR EACH ROW EXECUTE FUNCTION marks()",
            "CREATE TABLE h (t varchar(5), id int, v text, PRIMARY KEY (t, id))",
            "CREATE TRIGGER h BEFORE UPDATE ON h FOR EACH ROW EXECUTE FUNCTION keeps()",
            "only: SELECT create_distributed_table('g', 't'), create_distributed_table('h', 't')",
            "INSERT INTO g VALUES ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1, 'x'); INSERT INTO h VALUES ('abc', 1, 'x')",
            "UPDATE g SET t = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', v = 'y' WHERE id = 1 RETURNING *",
            "DO $$ BEGIN UPDATE g SET t = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', v = 'z' WHERE id = 1; END $$",
            "UPDATE h SET t = 'abc', v = 'y' WHERE id = 1",
            "DO $$ BEGIN UPDATE h SET t = 'abc', v = 'y' WHERE id = 1; END $$",
            "SELECT * FROM g, h",
        ],
    );
}

/// A row that is there already is none that triggers for INSERT see, and those for UPDATE see it: in the coordinator,
/// where they fire because they write there.
#[test]
fn triggers_of_the_coordinator_fire_for_what_on_conflict_does() {
    same(
        "objects_upserts",
        &[
            "CREATE TABLE log (id bigserial, what text, k int, v int)",
            "CREATE TABLE t (k int PRIMARY KEY, v int)",
            "CREATE FUNCTION audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log (what, k, v) VALUES (TG_OP, NEW.k, NEW.v); RETURN NULL; END $$",
            "CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION audit()",
            "only: SELECT create_distributed_table('t', 'k')",
            "INSERT INTO t VALUES (1, 1)",
            "INSERT INTO t VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET v = excluded.v",
            "INSERT INTO t VALUES (1, 3), (2, 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v RETURNING k, v",
            "INSERT INTO t VALUES (3, 3), (2, 4) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v RETURNING k, v",
            "SELECT what, k, v FROM log ORDER BY id",
            "CREATE TRIGGER b AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION audit()",
            "INSERT INTO t VALUES (1, 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v RETURNING k, v",
            "INSERT INTO t VALUES (4, 3), (6, 6) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v RETURNING k, v",
            "only: DO $$ BEGIN INSERT INTO t VALUES (1, 3), (7, 3) ON CONFLICT (k) DO UPDATE SET v = excluded.v; \
                ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "DO $$ DECLARE n int; BEGIN INSERT INTO t VALUES (1, 7) ON CONFLICT (k) DO UPDATE SET v = excluded.v + t.v; \
            GET DIAGNOSTICS n = ROW_COUNT; ASSERT n = 1; END $$",
            "SELECT what, k, v FROM log ORDER BY id",
            "CREATE TABLE q (id int, t int, state text, n int, PRIMARY KEY (t, id)); CREATE TABLE sent (id serial, what text)",
            "CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
            INSERT INTO sent (what) VALUES (TG_OP || ' ' || NEW.id || ' ' || NEW.state); RETURN NULL; END $$",
            "CREATE TRIGGER n AFTER INSERT ON q FOR EACH ROW WHEN (NEW.state = 'new') EXECUTE FUNCTION notes()",
            "CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
            INSERT INTO sent (what) VALUES (TG_OP || ' ' || TG_WHEN || ' ' || TG_LEVEL); RETURN NULL; END $$",
            "CREATE TRIGGER s AFTER INSERT OR UPDATE ON q FOR EACH STATEMENT EXECUTE FUNCTION says()",
            "CREATE TRIGGER r BEFORE INSERT OR UPDATE ON q FOR EACH STATEMENT EXECUTE FUNCTION says()",
            "only: SELECT create_distributed_table('q', 't')",
            "CREATE FUNCTION adds(a int, b int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r q; n int; BEGIN \
            INSERT INTO q AS x VALUES (a, b, 'new', 1) ON CONFLICT (t, id) DO UPDATE SET n = x.n + 1 RETURNING * INTO r; \
            GET DIAGNOSTICS n = ROW_COUNT; RETURN r || ' ' || n; END $$",
            "SELECT adds(1, 1)",
            "SELECT adds(1, 1)",
            "SELECT adds(2, 1)",
            "SELECT adds(1, 1)",
            "INSERT INTO q AS x VALUES (1, 1, 'new', 5), (3, 3, 'new', 5), (2, 1, 'new', 6) ON CONFLICT (t, id) DO UPDATE \
            SET n = x.n + excluded.n WHERE x.id < 2 RETURNING *",
            "PREPARE u (int, int, text) AS INSERT INTO q AS x VALUES ($1, $2, $3, 0) ON CONFLICT (t, id) DO UPDATE \
            SET state = excluded.state, n = x.n + 1 RETURNING id, n",
            "EXECUTE u (1, 1, 'y')",
            "EXECUTE u (9, 9, 'new')",
            "BEGIN; SAVEPOINT a",
            "INSERT INTO q VALUES (1, 1, 'new', 5) ON CONFLICT (t, id) DO UPDATE SET n = 1 / 0",
            "ROLLBACK TO a",
            "INSERT INTO q VALUES (10, 10, 'new', 1); INSERT INTO q VALUES (1, 1, 'new', 5) ON CONFLICT (t, id) DO UPDATE SET n = 0",
            "COMMIT",
            "INSERT INTO q VALUES (11, 10, 'new', 1)",
            "SHOW session_replication_role",
            // Tables without such triggers leave it alone.
            "CREATE TABLE plain (k int PRIMARY KEY, v int); CREATE TABLE loc (x int); INSERT INTO loc VALUES (7)",
            "only: SELECT create_distributed_table('plain', 'k')",
            "INSERT INTO plain VALUES (1, 1)",
            "BEGIN; INSERT INTO plain VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET v = (SELECT max(x) FROM loc) RETURNING *",
            "SHOW session_replication_role",
            "COMMIT",
            // Code of users' runs with its triggers on.
            "CREATE TABLE checked (k int PRIMARY KEY, v int CHECK (set_config('pgherd.fires', '', true) IS NOT NULL))",
            "CREATE TRIGGER a AFTER INSERT ON checked FOR EACH ROW EXECUTE FUNCTION audit()",
            "only: SELECT create_distributed_table('checked', 'k')",
            "INSERT INTO checked VALUES (1, 1)",
            "only: DO $$ BEGIN INSERT INTO checked VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET v = (SELECT max(x) FROM loc); \
                ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "SHOW session_replication_role",
            "CREATE TABLE range (k int PRIMARY KEY, v int CHECK (v > 0), w int GENERATED ALWAYS AS (v * 2) STORED)",
            "CREATE INDEX ON range (lower(v::text)) WHERE v < 100",
            "CREATE TRIGGER a AFTER INSERT ON range FOR EACH ROW EXECUTE FUNCTION audit()",
            "only: SELECT create_distributed_table('range', 'k')",
            "INSERT INTO range VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET v = 2 RETURNING *",
            "SELECT what FROM sent ORDER BY id",
            "SELECT * FROM q ORDER BY id",
            "only: DO $$ BEGIN PERFORM pgherd.fire_nothing(1); ASSERT false; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
            "only: DO $$ BEGIN EXECUTE E'SELECT pgherd.fire_nothing(1) /*\\nPL/pgSQL function pgherd.upsert_local_row() line 1 at assignment\\n*/'; \
            ASSERT false; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        ],
    );
}

/// ON UPDATE CASCADE, which Prisma and MikroORM write into every key, changes its own columns alone.
#[test]
fn local_tables_refer_to_what_keys_do_not_change() {
    same(
        "objects_keys",
        &[
            "CREATE TABLE country (code char(2) PRIMARY KEY); INSERT INTO country VALUES ('de'), ('fr')",
            "CREATE TABLE tenant (id bigint PRIMARY KEY, country char(2) REFERENCES country ON UPDATE CASCADE ON DELETE SET NULL)",
            "INSERT INTO tenant VALUES (1, 'de'), (2, 'fr')",
            "only: SELECT create_reference_table('country'), create_distributed_table('tenant', 'id')",
            "CREATE TABLE invoice (tenant_id bigint REFERENCES tenant, number int, PRIMARY KEY (tenant_id, number))",
            "INSERT INTO invoice SELECT id, 1 FROM tenant",
            "INSERT INTO invoice VALUES (9, 9)",
            "UPDATE country SET code = 'xx' WHERE code = 'de'",
            "DELETE FROM country WHERE code = 'fr'",
            "SELECT * FROM tenant ORDER BY 1",
            "DELETE FROM tenant WHERE id = 1",
            "only: SELECT create_distributed_table('invoice', 'tenant_id')",
            "DELETE FROM tenant WHERE id = 1",
            "SELECT * FROM invoice ORDER BY 1",
        ],
    );
}

/// Keys that pass deletes on, one behind another, as applications of several tenants have them.
#[test]
fn loaded_tables_are_distributed_one_by_one_along_their_keys() {
    same(
        "objects_chain",
        &[
            "CREATE TABLE tenant (id int PRIMARY KEY); CREATE TABLE plan (id int PRIMARY KEY)",
            "CREATE TABLE account (t int REFERENCES tenant ON DELETE CASCADE, id int, \
                plan int REFERENCES plan ON DELETE CASCADE, PRIMARY KEY (t, id))",
            "CREATE TABLE orders (t int, id int, a int, PRIMARY KEY (t, id), \
                FOREIGN KEY (t, a) REFERENCES account ON DELETE CASCADE)",
            "CREATE TABLE item (t int, id int, o int, PRIMARY KEY (t, id), FOREIGN KEY (t, o) REFERENCES orders ON DELETE CASCADE)",
            "INSERT INTO plan VALUES (1), (2); INSERT INTO tenant VALUES (1), (2); INSERT INTO account VALUES (1, 1, 1), (2, 2, 2)",
            "INSERT INTO orders VALUES (1, 1, 1), (2, 2, 2); INSERT INTO item VALUES (1, 1, 1), (2, 2, 2)",
            "only: SELECT create_reference_table('plan'), create_distributed_table('tenant', 'id'), create_distributed_table('account', 't')",
            "INSERT INTO orders VALUES (1, 2, 9)",
            "INSERT INTO orders VALUES (1, 2, 1)",
            // What nobody would tell the coordinator of is refused until all are distributed.
            "only: DO $$ BEGIN DELETE FROM tenant WHERE id = 1; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "only: DO $$ BEGIN DELETE FROM tenant; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "only: DO $$ BEGIN DELETE FROM plan; ASSERT false; EXCEPTION WHEN feature_not_supported THEN NULL; END $$",
            "only: SELECT create_distributed_table('orders', 't'), create_distributed_table('item', 't')",
            "SELECT * FROM item ORDER BY 1",
            "DELETE FROM tenant WHERE id = 1",
            "DELETE FROM plan WHERE id = 2",
            "SELECT (SELECT count(*) FROM tenant), (SELECT count(*) FROM account), (SELECT count(*) FROM orders), (SELECT count(*) FROM item)",
        ],
    );
}

/// What the client says of output is not in the way of what we make and read.
#[test]
fn quoted_names_are_for_the_client_alone() {
    let statements = [
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "only: SELECT create_distributed_table('t', 'k')",
        "INSERT INTO t SELECT i, i FROM generate_series(1, 9) i",
        "SET quote_all_identifiers = on",
        "CREATE VIEW w AS SELECT v, count(*) FROM t GROUP BY v",
        "SELECT count(*) FROM w",
        "SELECT (SELECT count(*) FROM t b WHERE b.k <= a.k) FROM t a ORDER BY 1",
        "DO $$ BEGIN PERFORM * FROM t; INSERT INTO t VALUES (10, 10); END $$",
        "DO $$ BEGIN UPDATE t SET v = v + 1 WHERE k = 3; UPDATE t SET v = v + 1; DELETE FROM t WHERE v > 9; END $$",
        "DO $$ BEGIN INSERT INTO t VALUES (3, 1), (11, 1) ON CONFLICT (k) DO UPDATE SET v = t.v + 100; END $$",
        "WITH u AS (UPDATE t SET v = 0 WHERE k < 3 RETURNING *) SELECT count(*) FROM u",
        "DO $$ BEGIN CREATE TABLE made (k int); ALTER TABLE t ADD COLUMN x int; END $$",
        "DECLARE c CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k",
        "FETCH ALL FROM c",
        "ALTER TABLE t ADD COLUMN z int DEFAULT 3",
        "SELECT * FROM t ORDER BY k",
        "SELECT pg_get_viewdef('w'), 't'::regclass",
        "RESET quote_all_identifiers",
        "CREATE VIEW x AS SELECT v FROM t",
        "ALTER TABLE t ADD COLUMN y int",
        "SELECT pg_get_viewdef('x')",
    ];
    same("objects_quoted", &statements);
    // Nor of who comes next.
    let (_plain, [_, cluster]) = sides();
    let mut client = cluster.connect("objects_quoted").unwrap();
    client.run("CREATE VIEW next AS SELECT v FROM t; ALTER TABLE t DROP COLUMN y CASCADE; SELECT * FROM next").unwrap();
}

/// What a client leaves open of DateStyle is the server's, whatever the role has.
#[test]
fn dates_are_read_as_the_client_said_when_it_connected() {
    let (_plain, sides) = sides();
    let [plain, cluster] = sides.map(|side| {
        side.create_database("objects_dates", "").unwrap();
        let mut owner = side.connect("objects_dates").unwrap();
        owner.run("CREATE ROLE objects_dmy LOGIN; CREATE TABLE d (k int, d date); GRANT ALL ON d TO objects_dmy").unwrap();
        if side.is_cluster {
            owner.run("SELECT create_distributed_table('d', 'k')").unwrap();
        }
        let mut said = Vec::new();
        for of_role in ["ISO, DMY", "SQL, DMY", "German"] {
            owner.run(&format!("ALTER ROLE objects_dmy SET datestyle = '{of_role}'")).unwrap();
            for given in [None, Some("ISO"), Some("ISO, YMD"), Some("German"), Some("DMY")] {
                let mut target = side.target.with_database("objects_dates");
                target.user = "objects_dmy".into();
                let given: Vec<(&str, &str)> = given.map(|given| ("DateStyle", given)).into_iter().collect();
                let mut client = Client::connect_with(&target, &given).unwrap();
                for sql in [
                    "SHOW datestyle",
                    "DELETE FROM d; INSERT INTO d VALUES (1, '01/02/2026'), (2, '03.04.2026'); SELECT d FROM d ORDER BY k",
                    "SET datestyle = 'SQL'; SHOW datestyle; SELECT d FROM d ORDER BY k",
                    "RESET datestyle; SHOW datestyle",
                    "SET datestyle = 'YMD'; DISCARD ALL",
                    "SHOW datestyle",
                ] {
                    said.push(format!("{of_role}, {given:?}, {sql}: {}", beside::told(&mut client, sql)));
                }
                said.push(format!("{:?}", client.settings.get("DateStyle")));
            }
        }
        owner.run("DROP OWNED BY objects_dmy; DROP ROLE objects_dmy").unwrap();
        said
    });
    assert_eq!(plain, cluster);
}

/// What would have another value on a worker is refused, and not computed there.
#[test]
fn what_names_the_table_is_not_distributed() {
    let (_plain, [_, cluster]) = sides();
    cluster.create_database("objects_tableoid", "").unwrap();
    let mut client = cluster.connect("objects_tableoid").unwrap();
    client
        .run("CREATE TABLE g (k int PRIMARY KEY, b bool GENERATED ALWAYS AS (tableoid = 'g'::regclass) STORED); CREATE TABLE plain (k int PRIMARY KEY)")
        .unwrap();
    for sql in ["SELECT create_distributed_table('g', 'k')", "SELECT create_reference_table('g')"] {
        let said = beside::told(&mut client, sql);
        assert!(said.contains("generated column \"b\" names tableoid") && said.contains("0A000"), "{said}");
    }
    client.run("SELECT create_distributed_table('plain', 'k')").unwrap();
    let added = "ALTER TABLE plain ADD COLUMN b bool GENERATED ALWAYS AS (tableoid = 'plain'::regclass) STORED";
    let said = beside::told(&mut client, added);
    assert!(said.contains("names tableoid"), "{said}");
    client.run("INSERT INTO plain VALUES (1)").unwrap();
    assert_eq!(beside::told(&mut client, "SELECT * FROM plain"), "(1)\nSELECT 1");
    let explained =
        beside::told(&mut client, "EXPLAIN SELECT * FROM plain i8, LATERAL (SELECT i8.* FROM plain t LIMIT 1) ss");
    assert!(explained.contains("EXPLAIN"), "{explained}");
    let said = beside::told(&mut client, "VACUUM ONLY plain");
    assert!(said.contains("42601") || said.contains("VACUUM"), "{said}");
    assert_eq!(client.value("SELECT count(*) FROM pgherd_operations WHERE state <> 'done'").unwrap(), "0");
}

#[test]
fn indexes_have_their_own_tables() {
    let said = same(
        "objects_indexes",
        &[
            "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t SELECT i, i % 3 FROM generate_series(1, 20) i",
            "CREATE TABLE p (k int, at int) PARTITION BY RANGE (at); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
            "only: SELECT create_distributed_table('t', 'k'), create_distributed_table('p', 'k')",
            "CREATE INDEX one ON t (v)",
            "CREATE UNIQUE INDEX two ON t (k, v)",
            "CREATE TEMP TABLE scratch (v int); CREATE INDEX one ON scratch (v)",
            "CREATE SCHEMA other; CREATE TABLE other.t (v int); CREATE INDEX one ON other.t (v)",
            "CREATE INDEX one ON t (k, v)",
            "CREATE INDEX IF NOT EXISTS one ON t (k, v)",
            "CREATE INDEX three ON t (nothing)",
            "BEGIN; CREATE INDEX four ON t (v, k); SAVEPOINT s; CREATE INDEX five ON t (nothing)",
            "ROLLBACK TO s; CREATE INDEX five ON t (v DESC); COMMIT",
            "DO $$ BEGIN CREATE INDEX six ON t (v NULLS FIRST); END $$",
            "CREATE INDEX seven ON p (at); CREATE INDEX eight ON p1 (k)",
            "DROP INDEX pg_temp.one",
            "DROP INDEX one",
            "SELECT schemaname, tablename, indexname FROM pg_indexes WHERE schemaname IN ('public', 'other') ORDER BY 1, 2, 3",
            "only: DO $$ BEGIN ASSERT (SELECT count(DISTINCT result) = 1 AND min(result) = 'five four six t_pkey two' FROM \
             run_command_on_workers($c$SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes \
             WHERE tablename = 't' AND schemaname = 'public'$c$)); END $$",
        ],
    );
    assert!(said.iter().any(|said| said.contains("seven")), "{said:?}");
}

#[test]
fn rows_that_move_say_where_they_are() {
    let said = same(
        "objects_moved",
        &[
            "CREATE TABLE p (k int, r int, p text, PRIMARY KEY (k, r)) PARTITION BY RANGE (r)",
            "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)",
            "CREATE TABLE p3 PARTITION OF p DEFAULT",
            "only: SELECT create_distributed_table('p', 'k')",
            "INSERT INTO p VALUES (1, 1, 'a'), (2, 12, 'b'), (3, 30, 'c')",
            "UPDATE p SET r = r + 10 WHERE k = 1 RETURNING tableoid::regclass, *",
            "UPDATE p AS q SET r = r + 10 WHERE k = 1 RETURNING q.tableoid::regclass, q.*",
            "UPDATE p SET p = 'x' WHERE k = 2 RETURNING tableoid::regclass, *",
            "UPDATE p SET r = 5 WHERE k = 3 AND tableoid = 'p2'::regclass RETURNING tableoid::regclass, r",
            "UPDATE p SET r = p.r + 1 FROM p o WHERE o.k = p.k AND p.k = 1 RETURNING p.tableoid::regclass, o.tableoid::regclass, p.r, o.r",
            "SELECT tableoid::regclass, * FROM p ORDER BY k",
            "DELETE FROM p WHERE k = 3 RETURNING tableoid::regclass",
        ],
    );
    assert!(said.iter().any(|said| said.contains("p3")), "{said:?}");
}

/// A table that needs nothing but its schema is told without the long search, which finds the same.
#[test]
fn what_a_table_needs() {
    let whole = "only: DO $$ BEGIN EXECUTE replace(replace(pg_get_functiondef('pgherd.describe_prerequisites'::regproc), \
                 'pgherd.needs_schema_only($1)', 'false'), 'pgherd.describe_prerequisites', 'public.whole'); END $$";
    let compared = "only: DO $$ BEGIN ASSERT (SELECT count(*) FILTER (WHERE needs_only) > 5 AND count(*) FILTER (WHERE NOT needs_only) > 8 \
                    AND bool_and(same) FROM (SELECT pgherd.needs_schema_only(c.oid) AS needs_only, public.whole(c.oid) IS NOT \
                    DISTINCT FROM pgherd.describe_prerequisites(c.oid) AS same FROM pg_class c WHERE relkind IN ('r', 'p') \
                    AND relnamespace IN ('public'::regnamespace, 's'::regnamespace)) t); END $$";
    same(
        "objects_needed",
        &[
            "CREATE SCHEMA s; CREATE TYPE ty AS ENUM ('a', 'b'); CREATE DOMAIN dm AS int CHECK (value > 0)",
            "CREATE COLLATION co (locale = 'C'); CREATE FUNCTION f(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 > 0'",
            "CREATE TABLE a1 (k int PRIMARY KEY, v int, CHECK (f(v))); CREATE TABLE a2 (k bigserial PRIMARY KEY, d ty)",
            "CREATE TABLE a3 (k int PRIMARY KEY, d dm[]); CREATE INDEX ON a3 ((d[1]))",
            "CREATE TABLE a4 (k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, e text COLLATE co)",
            "CREATE TABLE s.a5 (k int DEFAULT nextval('a2_k_seq'), j int UNIQUE, CHECK (j > 3), g int GENERATED ALWAYS AS (j + 1) STORED)",
            "CREATE TABLE a6 (k int, v int GENERATED ALWAYS AS (abs(k)) STORED); CREATE INDEX ON a6 (abs(k)) WHERE v > 3",
            "CREATE UNLOGGED TABLE s.a7 (k int PRIMARY KEY, f text DEFAULT f(3)::text)",
            "CREATE TABLE a8 (k int, l int) PARTITION BY RANGE (k); CREATE TABLE a9 PARTITION OF a8 FOR VALUES FROM (0) TO (9)",
            "CREATE TABLE a10 (LIKE a1 INCLUDING ALL); CREATE TABLE a11 (a a1); CREATE TABLE a12 () INHERITS (a1)",
            "CREATE TABLE a13 (v int CHECK (v IS DISTINCT FROM NULL), e name DEFAULT current_user)",
            "CREATE TABLE a14 (x int4range, EXCLUDE USING gist (x WITH &&)); CREATE TABLE a15 (ts tsvector)",
            "CREATE TABLE a16 (k int REFERENCES a1, f float8 DEFAULT random()); CREATE STATISTICS st ON k, f FROM a16",
            "CREATE TABLE a17 (k int); CREATE POLICY po ON a17 USING (f(k)); CREATE TABLE a18 (k int)",
            "CREATE TRIGGER tr BEFORE UPDATE ON a18 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "only: SELECT create_distributed_table('s.a5', 'j'), create_distributed_table('a13', 'v'), create_reference_table('a10')",
            whole,
            compared,
            "only: DROP FUNCTION whole",
            "CREATE TEXT SEARCH CONFIGURATION cf (COPY = english)",
            whole,
            &compared.replace("> 5", "= 0"),
        ],
    );
}

/// What is made newly has no old form on workers, whatever way the old one went.
#[test]
fn functions_made_again() {
    let used = |table: &str, function: &str| {
        [
            format!("CREATE TABLE {table} (k int PRIMARY KEY, v int, CHECK ({function}(v)))"),
            format!("only: SELECT create_distributed_table('{table}', 'k')"),
            format!("INSERT INTO {table} VALUES (1, 1)"),
            format!("INSERT INTO {table} VALUES (2, -1)"),
            format!("DROP TABLE {table}"),
        ]
    };
    let made = |name: &str, sign: &str| {
        format!("CREATE FUNCTION {name}(int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 {sign} 0'")
    };
    let mut statements =
        vec!["CREATE SCHEMA s; CREATE ROLE objects_maker; GRANT CREATE ON SCHEMA s TO objects_maker".to_owned()];
    let ways = [
        "DROP FUNCTION s.f",
        "DO $$ BEGIN DROP FUNCTION s.f; END $$",
        "BEGIN; DROP FUNCTION s.f; COMMIT",
        "DROP SCHEMA s CASCADE; CREATE SCHEMA s; GRANT CREATE ON SCHEMA s TO objects_maker; \
         GRANT USAGE ON SCHEMA s TO objects_maker",
        "ALTER FUNCTION s.f(int) OWNER TO objects_maker; DROP OWNED BY objects_maker; GRANT CREATE ON SCHEMA s TO objects_maker",
        "ALTER FUNCTION s.f(int) RENAME TO g",
        "CREATE SCHEMA s2; ALTER FUNCTION s.f(int) SET SCHEMA s2",
    ];
    for (at, way) in ways.iter().enumerate() {
        statements.push(made("s.f", if at % 2 == 0 { ">" } else { "<" }));
        statements.extend(used("s.t", "s.f"));
        statements.push((*way).to_owned());
    }
    statements.push("DROP SCHEMA s CASCADE; DROP SCHEMA s2 CASCADE; DROP ROLE objects_maker".to_owned());
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let said = same("objects_again", &statements);
    assert_eq!(said.iter().filter(|said| said.contains("violates check")).count(), ways.len(), "{said:?}");
}

/// Where there is nothing, files stay; all else of TRUNCATE is as ever.
#[test]
fn truncate_of_what_is_empty() {
    let said = same(
        "objects_truncate",
        &[
            "CREATE TABLE t (k int PRIMARY KEY, s serial, v text); CREATE TABLE c (k int REFERENCES t, v int)",
            "CREATE TABLE p (k int, at int) PARTITION BY RANGE (at); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9)",
            "CREATE TABLE r (k int PRIMARY KEY)",
            "only: SELECT create_distributed_table('t', 'k'), create_distributed_table('c', 'k'), create_distributed_table('p', 'k'), \
             create_reference_table('r')",
            "TRUNCATE t",
            "TRUNCATE t, c",
            "TRUNCATE t CASCADE",
            "TRUNCATE c, p, r",
            "INSERT INTO t (k) SELECT generate_series(1, 40); INSERT INTO c VALUES (1, 1); INSERT INTO p VALUES (1, 1), (2, 2); \
             INSERT INTO r VALUES (1)",
            "TRUNCATE t RESTART IDENTITY CASCADE",
            "INSERT INTO t (k) VALUES (7) RETURNING s; TRUNCATE t RESTART IDENTITY CASCADE; INSERT INTO t (k) VALUES (8) RETURNING s",
            "SELECT count(*) FROM c; SELECT count(*) FROM p",
            "TRUNCATE p1; SELECT count(*) FROM p; TRUNCATE p; TRUNCATE r; SELECT count(*) FROM r",
            "BEGIN; INSERT INTO p VALUES (3, 3); TRUNCATE p; SELECT count(*) FROM p; ROLLBACK",
            "BEGIN; TRUNCATE p; INSERT INTO p VALUES (3, 3); COMMIT; SELECT count(*) FROM p",
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM r; TRUNCATE p; COMMIT; SELECT count(*) FROM p",
            "BEGIN READ ONLY; TRUNCATE p",
            "ROLLBACK; INSERT INTO p VALUES (5, 5)",
            "BEGIN; DELETE FROM p; TRUNCATE p; SAVEPOINT a; INSERT INTO p VALUES (4, 4); ROLLBACK TO a; TRUNCATE p; COMMIT",
            "SELECT count(*) FROM p",
            "CREATE ROLE objects_truncates; GRANT SELECT, INSERT, UPDATE, DELETE ON p, r TO objects_truncates",
            "SET ROLE objects_truncates; TRUNCATE p",
            "TRUNCATE r; RESET ROLE; GRANT TRUNCATE ON p TO objects_truncates; SET ROLE objects_truncates; TRUNCATE p; TRUNCATE ONLY p1",
            "RESET ROLE; DROP OWNED BY objects_truncates; DROP ROLE objects_truncates",
            "CREATE TABLE log (what text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO log VALUES (tg_op || ' ' || tg_when); RETURN NULL; END $$",
            "CREATE TABLE tr (k int); CREATE TRIGGER a BEFORE TRUNCATE ON tr EXECUTE FUNCTION note()",
            "CREATE TRIGGER b AFTER TRUNCATE ON tr EXECUTE FUNCTION note()",
            "only: SELECT create_distributed_table('tr', 'k')",
            "TRUNCATE tr; INSERT INTO tr VALUES (1); TRUNCATE tr; SELECT * FROM log; SELECT count(*) FROM tr",
        ],
    );
    assert!(said.iter().any(|said| said.contains("cannot truncate a table referenced in a foreign key")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("permission denied for table p")), "{said:?}");
}

/// Who may read a column reads it, though its type is in a schema that is not for them.
#[test]
fn types_of_schemas_that_are_for_others() {
    same(
        "objects_hidden",
        &[
            "CREATE SCHEMA hidden; CREATE TYPE hidden.mood AS ENUM ('low', 'high'); CREATE TYPE hidden.pair AS (a int, b hidden.mood)",
            "CREATE DOMAIN hidden.some AS int CHECK (value > 0); CREATE TYPE hidden.span AS RANGE (SUBTYPE = int4)",
            "CREATE TABLE t (k int PRIMARY KEY, v int, m hidden.mood, p hidden.pair, s hidden.some, r hidden.span, ms hidden.mood[])",
            "only: SELECT create_distributed_table('t', 'k')",
            "INSERT INTO t SELECT g, g % 5, 'low', (g, 'high'), g, hidden.span(g, g + 2), '{low,high}' FROM generate_series(1, 30) g",
            "CREATE ROLE objects_reader; GRANT ALL ON t TO objects_reader; SET ROLE objects_reader",
            "SELECT * FROM t WHERE k = 3",
            "SELECT * FROM t ORDER BY k LIMIT 3",
            "SELECT m, count(*), max(m), min(k) FROM t GROUP BY 1",
            "SELECT DISTINCT m, s, p, r FROM t WHERE k < 4 ORDER BY s",
            "SELECT max(m), count(*) FROM t WHERE m > 'low' OR k = 1",
            "SELECT to_jsonb(t) FROM t ORDER BY k DESC LIMIT 2",
            "SELECT p, count(*) FROM t GROUP BY 1 ORDER BY 1 LIMIT 2",
            "SELECT ms, p FROM t WHERE k IN (1, 2) ORDER BY k",
            "SELECT s, row_number() OVER (ORDER BY s DESC) FROM t WHERE k < 4 ORDER BY k",
            "SELECT a.m, b.p, count(*) FROM t a JOIN t b ON a.k = b.v GROUP BY 1, 2 ORDER BY 3 DESC, 2 LIMIT 3",
            "INSERT INTO t VALUES (100, 1, 'high', NULL, 5) RETURNING m, s",
            "UPDATE t SET m = 'high', ms = NULL WHERE k = 4 RETURNING m, ms, p",
            "UPDATE t SET m = 'high' WHERE k < 3",
            "SELECT count(*) FROM t WHERE m IN (SELECT max(m) FROM t GROUP BY v % 2)",
            "TABLE pg_settings LIMIT 0",
            "BEGIN; SET LOCAL application_name = 'x'; SELECT setting, source FROM pg_settings WHERE name = 'application_name'; COMMIT",
            "DELETE FROM t WHERE m = 'high' AND k > 50 RETURNING *",
            "WITH x AS (SELECT m, p FROM t WHERE k < 3) SELECT count(*) FROM x",
            "BEGIN; DECLARE c CURSOR FOR SELECT k, m, p FROM t ORDER BY k; FETCH 2 FROM c; COMMIT",
            "RESET ROLE; DROP OWNED BY objects_reader; DROP ROLE objects_reader",
            // No operator of ours keeps triggers from firing on workers.
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.v := 1; RETURN NEW; END'",
            "CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION f()",
            "only: DO $$ BEGIN ASSERT NOT pgherd.fires_here('t'::regclass); END $$",
            "UPDATE t SET v = 3 WHERE k = 2 RETURNING v",
        ],
    );
}

/// Some function that reads a table and is not volatile is there, as in most databases; nothing in bodies calls it.
#[test]
fn triggers_read_their_own_table_beside_functions_that_nobody_calls() {
    same(
        "objects_readers",
        &[
            "CREATE TABLE t (k int PRIMARY KEY, v int); CREATE TABLE log (n bigint)",
            "only: SELECT create_distributed_table('t', 'k')",
            "CREATE FUNCTION unrelated() RETURNS bigint STABLE LANGUAGE sql AS 'SELECT count(*) FROM t WHERE v > 100'",
            "CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$ \
             BEGIN INSERT INTO log SELECT sum(v) FROM t; RETURN NULL; END $$",
            "INSERT INTO t SELECT g, g FROM generate_series(1, 20) g",
            "CREATE TRIGGER seen AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION seen()",
            "UPDATE t SET v = v + 1 WHERE k <= 3",
            "SELECT * FROM log ORDER BY n",
            "BEGIN; UPDATE t SET v = v + 1 WHERE k <= 3; UPDATE t SET v = v + abs(k) WHERE k > 4; COMMIT",
            "SELECT count(*), sum(n), (SELECT sum(v) FROM t) FROM log",
        ],
    );
    let (_plain, [_, cluster]) = sides();
    let mut client = cluster.connect("objects_readers").unwrap();
    // Called by the statement or by a body: which of the two reads nobody can tell.
    let reply = client.simple("UPDATE t SET v = 101 + unrelated() WHERE k <= 3", None).unwrap();
    assert_eq!(reply.error().map(|error| error.sqlstate()), Some("0A000"));
    for called in ["unrelated()", "(SELECT count(*) FROM by_view)::int"] {
        client.run("CREATE OR REPLACE VIEW by_view AS SELECT unrelated() AS n").unwrap();
        let body = format!("BEGIN UPDATE t SET v = 300 + {called} WHERE k <= 3; END");
        client
            .run(&format!("CREATE OR REPLACE FUNCTION caller() RETURNS void LANGUAGE plpgsql AS $$ {body} $$"))
            .unwrap();
        let reply = client.simple("SELECT caller()", None).unwrap();
        assert_eq!(reply.error().map(|error| error.sqlstate()), Some("0A000"), "{called}");
    }
}
