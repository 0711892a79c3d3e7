-- What definitions have changed, and the catalog that routers hold (docs/decisions/0024): they read again what has changed since
-- they read last, and no more. Only on the coordinator.

-- Of which sequences a text asks what was drawn last: the last part of each name, in lower case; an empty one: of any.
CREATE OR REPLACE FUNCTION pgherd.sequences_asked(body text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN m[2] IS NULL THEN '' ELSE lower(substring(replace(m[2], '"', '') FROM '[^.]*$')) END
    FROM regexp_matches(body, E'(currval|lastval)(?:\\s*[(]\\s*\'([^\']+)\')?', 'gi') m
$$;

-- What belongs to other objects is told with the relation that it is of, where that is still there.
CREATE OR REPLACE FUNCTION pgherd.note_changes() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_time bool;
BEGIN
    -- What makes temporary tables. Who has made them knows of them.
    IF current_setting('transaction_read_only')::bool THEN
        RETURN;
    END IF;
    IF TG_TAG IN ('ALTER EXTENSION', 'REASSIGN OWNED', 'CREATE CAST', 'DROP CAST') THEN
        -- Which objects are an extension's counts, too; what changes hands is not told of. By a cast, types may stand for others.
        INSERT INTO pgherd.change (class, object) VALUES (0, 0);
    ELSIF TG_EVENT = 'sql_drop' THEN
        -- What leads to the router is of it.
        IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() d
                WHERE d.object_type = 'extension' AND d.object_name = 'postgres_fdw') THEN
            RAISE EXCEPTION USING ERRCODE = 'PH001', MESSAGE = 'cannot drop extension postgres_fdw together with others',
                DETAIL = 'Distributed tables need it.', HINT = 'Drop it by itself before, with a statement of its own.';
        END IF;
        INSERT INTO pgherd.change (class, object)
        SELECT DISTINCT x.class, x.object
        FROM pg_event_trigger_dropped_objects() d, LATERAL (
            SELECT d.classid, d.objid WHERE d.classid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass,
                'pg_operator'::regclass, 'pg_language'::regclass, 'pg_user_mapping'::regclass)
            UNION ALL
            SELECT 'pg_class'::regclass, to_regclass(quote_ident(d.address_names[1]) || '.' || quote_ident(d.address_names[2]))::oid
            WHERE d.object_type IN ('trigger', 'rule', 'policy', 'default value', 'table constraint', 'table column')) x(class, object)
        WHERE x.object IS NOT NULL;
    ELSE
        WITH added AS (
            INSERT INTO pgherd.change (class, object)
            SELECT DISTINCT d.classid, d.objid FROM pg_event_trigger_ddl_commands() d
            WHERE d.classid IS NOT NULL AND d.objid IS NOT NULL
                AND TG_TAG NOT IN ('COMMENT', 'SECURITY LABEL', 'GRANT', 'REVOKE', 'REFRESH MATERIALIZED VIEW', 'REINDEX')
            RETURNING at)
        SELECT bool_or((a.at - '0/0') % 1024 < 8) INTO is_time FROM added a;
        -- Temporary tables move no epoch, with which what is old is forgotten.
        IF is_time AND TG_TAG IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO') THEN
            PERFORM pgherd.forget_changes(0);
        END IF;
    END IF;
END
$$;

-- Event triggers run in the order of their names: these before those that ask the router.
DO $$
DECLARE
    added record;
BEGIN
    FOR added IN SELECT * FROM (VALUES ('pgherd_changes', 'ddl_command_end'), ('pgherd_changes_drops', 'sql_drop')) AS x(name, event)
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_event_trigger t WHERE t.evtname = x.name)
    LOOP
        EXECUTE pg_catalog.format('CREATE EVENT TRIGGER %I ON %s EXECUTE FUNCTION pgherd.note_changes()', added.name, added.event);
        EXECUTE pg_catalog.format('ALTER EVENT TRIGGER %I ENABLE ALWAYS', added.name);
    END LOOP;
END
$$;

-- Of our own tables, whose rows tell of relations: those of nodes are told as such.
CREATE OR REPLACE FUNCTION pgherd.note_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_TABLE_SCHEMA <> 'pgherd' THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only tables of pgherd may have this trigger';
    ELSIF TG_OP = 'TRUNCATE' THEN
        PERFORM pgherd.note_change(0, 0);
    ELSIF TG_ARGV[0] = '' THEN
        PERFORM pgherd.note_change(TG_RELID, 0);
    ELSIF TG_ARGV[0] = 'shardid' THEN
        INSERT INTO pgherd.change (class, object)
        SELECT DISTINCT 'pg_class'::regclass::oid, s.logicalrelid::oid FROM changed_rows c JOIN pgherd.pg_dist_shard s ON s.shardid = c.shardid;
    ELSIF TG_ARGV[0] = 'relation' THEN
        INSERT INTO pgherd.change (class, object) SELECT DISTINCT 'pg_class'::regclass::oid, c.relation FROM changed_rows c;
    ELSE
        INSERT INTO pgherd.change (class, object)
        SELECT DISTINCT 'pg_class'::regclass::oid, c.logicalrelid::oid FROM changed_rows c;
    END IF;
    RETURN NULL;
END
$$;
DO $$
DECLARE
    noted record;
BEGIN
    FOR noted IN
        SELECT t.relation, t.of, e.event, 'pgherd_note_' || lower(e.event) AS name,
            CASE WHEN t.of = '' OR e.event = 'TRUNCATE' THEN ''
                ELSE format('REFERENCING %s TABLE AS changed_rows', CASE e.event WHEN 'DELETE' THEN 'OLD' ELSE 'NEW' END) END AS rows
        FROM (VALUES ('pg_dist_node', ''), ('pg_dist_colocation', ''), ('pg_dist_partition', 'logicalrelid'),
                ('pg_dist_shard', 'logicalrelid'), ('pg_dist_placement', 'shardid'), ('fires_here', 'relation'), ('leaf', 'relation'))
                AS t(relation, of),
            (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS e(event)
    LOOP
        EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER %s ON pgherd.%I %s FOR EACH STATEMENT EXECUTE FUNCTION pgherd.note_rows(%L)',
            noted.name, noted.event, noted.relation, noted.rows, noted.of);
        EXECUTE format('ALTER TABLE pgherd.%I ENABLE ALWAYS TRIGGER %I', noted.relation, noted.name);
    END LOOP;
END
$$;

-- The objects given, what is told of them elsewhere, and what that is a part of. From a table it goes on to its row type, its
-- partitions and children; what else is built on it says the same as before. Class 0: a relation that is to be read again itself.
CREATE OR REPLACE FUNCTION pgherd.touched_by(classes oid[], objects oid[]) RETURNS TABLE (class oid, object oid)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE touched(class, object) AS (
        SELECT g.class, g.object FROM unnest(classes, objects) g(class, object)
        UNION
        SELECT x.class, x.object
        FROM touched t
            LEFT JOIN pg_class c ON t.class = 'pg_class'::regclass AND c.oid = t.object,
        LATERAL (
            SELECT d.classid, d.objid FROM pg_depend d
            WHERE t.class <> 0 AND d.refclassid = t.class AND d.refobjid = t.object
                AND (t.class <> 'pg_class'::regclass OR c.relkind IN ('v', 'm', 'c')
                    -- Row types; expressions and bodies that are told with the names that relations have.
                    OR d.classid IN ('pg_type'::regclass, 'pg_attrdef'::regclass, 'pg_proc'::regclass)
                    OR d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i'))
            UNION ALL SELECT 'pg_class'::regclass, r.ev_class FROM pg_rewrite r WHERE t.class = 'pg_rewrite'::regclass AND r.oid = t.object
            UNION ALL SELECT 0, r.ev_class FROM pg_rewrite r WHERE t.class = 'pg_rewrite'::regclass AND r.oid = t.object
            -- The table that a sequence belongs to.
            UNION ALL SELECT 0, d.refobjid FROM pg_depend d WHERE c.relkind = 'S' AND d.classid = t.class AND d.objid = t.object
                AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
            UNION ALL SELECT 0, a.adrelid FROM pg_attrdef a WHERE t.class = 'pg_attrdef'::regclass AND a.oid = t.object
            UNION ALL SELECT 0, g.tgrelid FROM pg_trigger g WHERE t.class = 'pg_trigger'::regclass AND g.oid = t.object
            UNION ALL SELECT 0, p.polrelid FROM pg_policy p WHERE t.class = 'pg_policy'::regclass AND p.oid = t.object
            UNION ALL SELECT 0, s.stxrelid FROM pg_statistic_ext s WHERE t.class = 'pg_statistic_ext'::regclass AND s.oid = t.object
            UNION ALL SELECT 0, r.relation FROM pg_constraint k, LATERAL (VALUES (k.conrelid), (k.confrelid)) r(relation)
                WHERE t.class = 'pg_constraint'::regclass AND k.oid = t.object
            UNION ALL SELECT 0, i.indrelid FROM pg_index i WHERE c.relkind IN ('i', 'I') AND i.indexrelid = t.object
            UNION ALL SELECT t.class, i.inhrelid FROM pg_inherits i WHERE c.relkind IN ('r', 'p', 'f', 'I') AND i.inhparent = t.object
            UNION ALL SELECT 0, i.inhparent FROM pg_inherits i WHERE c.relkind IN ('r', 'p', 'f') AND i.inhrelid = t.object
            UNION ALL SELECT 0, r.relation
                FROM pg_depend d JOIN pg_constraint k ON k.oid = d.objid AND k.contype = 'f',
                LATERAL (VALUES (k.conrelid), (k.confrelid)) r(relation)
                WHERE c.relkind IN ('r', 'p') AND d.refclassid = t.class AND d.refobjid = t.object
                    AND d.classid = 'pg_constraint'::regclass) x(class, object)
        WHERE x.object <> 0
    )
    SELECT t.class, t.object FROM touched t;
END
$$;

-- What names of relations mean, as far as planning asks: a kind (crates/router/src/names.rs), a name, the relation.
CREATE OR REPLACE FUNCTION pgherd.held_relations(which oid[]) RETURNS TABLE (kind text, name text, of oid)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    time_is_read CONSTANT text := '[{]SQLVALUEFUNCTION|:funcid (1299|2647|2648) ';
BEGIN
    RETURN QUERY
    WITH rel AS MATERIALIZED (
        SELECT c.oid, c.relname, c.relkind, c.relowner, c.reloptions, c.relhasrules, n.nspname, p.partmethod,
            c.relkind = 'r' AND p.logicalrelid IS NULL AND n.nspname !~ '^pg_temp' AND NOT c.relrowsecurity AND NOT c.relhasrules
                AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
                AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.atttypid >= 16384) AS is_shown,
            p.logicalrelid IS NOT NULL AS is_distributed, h.relation IS NOT NULL AS fires_here
        FROM unnest(which) w(oid) JOIN pg_class c ON c.oid = w.oid JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pgherd.pg_dist_partition p ON p.logicalrelid = c.oid LEFT JOIN pgherd.fires_here h ON h.relation = c.oid
        WHERE c.oid >= 16384 AND n.nspname NOT IN ('pg_catalog', 'pgherd') AND n.nspname !~ '^pg_toast'
    ), trg AS MATERIALIZED (
        SELECT r.oid, r.relname, r.partmethod, r.is_distributed, r.fires_here, t.tgtype::int AS bits, t.tgdeferrable, t.tgfoid,
            NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AS is_users, t.tgisinternal
        FROM rel r JOIN pg_trigger t ON t.tgrelid = r.oid
    ), rule AS MATERIALIZED (
        SELECT r.oid, r.relname, r.relowner, r.reloptions, w.rulename, w.ev_type, w.oid AS rule
        FROM rel r JOIN pg_rewrite w ON w.ev_class = r.oid WHERE w.oid >= 16384
    )
    SELECT 'n', r.nspname || E'\x01' || r.relname, r.oid FROM rel r
        WHERE r.relkind IN ('r', 'v', 'm', 'f', 'p', 'S') AND NOT r.is_distributed AND r.nspname !~ '^pg_temp'
    UNION ALL SELECT 'b', r.nspname || E'\x01' || r.relname, r.oid FROM rel r WHERE r.is_shown
    -- Defaults that draw from sequences, and whether the column is GENERATED ALWAYS.
    UNION ALL SELECT 'y', concat_ws(E'\x01', r.nspname, r.relname, to_char(a.attnum, 'FM0000'), a.attname, a.attidentity = 'a', CASE WHEN a.attidentity <> ''
            THEN format('pgherd.next_identity(%L::pg_catalog.regclass)', pg_get_serial_sequence(format('%I.%I', r.nspname, r.relname), a.attname))
            ELSE pg_get_expr(d.adbin, d.adrelid) END), r.oid
        FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE r.is_shown AND (a.attidentity <> '' OR d.adbin::text ~ ':funcid 1574 ')
            AND NOT EXISTS (SELECT FROM pg_attribute g WHERE g.attrelid = r.oid AND g.attacl IS NOT NULL)
    -- What was drawn from sequences is the session's; literals for intervals are read by the column's modifier.
    UNION ALL SELECT CASE WHEN EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attidentity <> '')
                OR EXISTS (SELECT FROM pg_attrdef a WHERE a.adrelid = r.oid AND a.adbin::text ~ ':funcid 1574 ') THEN 'q' ELSE 'B' END,
            r.nspname || E'\x01' || r.relname, r.oid FROM rel r
        WHERE r.is_shown AND NOT EXISTS (SELECT FROM trg t JOIN pg_proc f ON f.oid = t.tgfoid WHERE t.oid = r.oid
                AND (t.tgfoid >= 16384 OR t.tgdeferrable OR f.proname ~ '^RI_FKey_(cascade|setnull|setdefault)_'))
            AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = r.oid AND (k.condeferrable OR k.contype = 'x'))
            AND NOT EXISTS (SELECT FROM pg_index i, unnest(i.indclass) c(id) WHERE i.indrelid = r.oid AND c.id >= 16384)
            -- A row that is written to a partition is checked by how its parents are partitioned.
            AND NOT EXISTS (SELECT FROM pg_partition_ancestors(r.oid) p(relation) JOIN pg_partitioned_table t ON t.partrelid = p.relation
                WHERE EXISTS (SELECT FROM unnest(t.partclass) c(id) WHERE c.id >= 16384)
                    OR EXISTS (SELECT FROM regexp_matches(t.partexprs::text, ':(?:(?:op)?funcid|opno) ([0-9]+)', 'g') m
                        WHERE m[1]::oid >= 16384))
            AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0
                AND a.atttypid IN (1186, 1187) AND a.atttypmod >= 0)
            AND NOT EXISTS (
                SELECT FROM (SELECT a.adbin::text FROM pg_attrdef a WHERE a.adrelid = r.oid
                        UNION ALL SELECT k.conbin::text FROM pg_constraint k WHERE k.conrelid = r.oid AND k.contype = 'c'
                        UNION ALL SELECT concat(i.indexprs::text, i.indpred::text) FROM pg_index i WHERE i.indrelid = r.oid) x(tree)
                WHERE x.tree ~ '[{](COERCETODOMAIN|SUBLINK|SUBPLAN|XMLEXPR) '
                    OR EXISTS (SELECT FROM regexp_matches(x.tree, ':(?:opno|resulttype) ([0-9]+)', 'g') m WHERE m[1]::oid >= 16384)
                    OR EXISTS (SELECT FROM regexp_matches(x.tree, ':(?:op)?funcid ([0-9]+)', 'g') m JOIN pg_proc f ON f.oid = m[1]::oid
                        WHERE f.oid >= 16384
                            OR f.provolatile = 'v' AND f.oid <> 1574 AND f.proname NOT IN ('clock_timestamp', 'gen_random_uuid', 'random', 'uuidv4', 'uuidv7')
                            OR f.provolatile = 's' AND f.proname ~ '^(pg_|current_setting|has_|inet_|txid|to_reg|current_schema|version)'))
    UNION ALL SELECT DISTINCT 'X', '', t.oid FROM trg t WHERE t.is_users AND t.bits & 24 <> 0 AND t.bits & 3 <> 1 AND NOT t.fires_here
    UNION ALL SELECT DISTINCT 'D', '', r.oid FROM rel r JOIN pg_constraint k ON k.conrelid = r.oid
        WHERE r.partmethod = 'h' AND k.condeferrable
    UNION ALL SELECT DISTINCT 'E', '', t.oid FROM trg t
        WHERE (NOT t.tgisinternal OR t.tgfoid = to_regprocedure('pgherd.find_key()')) AND t.tgdeferrable
            AND t.partmethod IS DISTINCT FROM 'h'
    UNION ALL SELECT DISTINCT 'A', '', t.oid FROM trg t WHERE t.is_users AND t.bits & 66 = 0
        AND (t.partmethod IS DISTINCT FROM 'h' OR t.fires_here)
    UNION ALL SELECT DISTINCT 'W', '', t.oid FROM trg t WHERE t.fires_here AND t.is_users AND t.bits & 3 = 3 AND t.bits & 24 <> 0
    UNION ALL SELECT DISTINCT 'H', pgherd.sequences_asked(x.body), x.oid FROM (
        SELECT r.oid, pg_get_expr(a.adbin, a.adrelid) AS body FROM rel r JOIN pg_attrdef a ON a.adrelid = r.oid
            WHERE a.adbin::text ~ ':funcid (1575|2559) '
        UNION ALL SELECT w.oid, pg_get_ruledef(w.rule) FROM rule w JOIN pg_rewrite a ON a.oid = w.rule WHERE a.ev_action::text ~ ':funcid (1575|2559) ') x
    UNION ALL SELECT DISTINCT 'N', '', w.oid FROM rule w JOIN pg_rewrite a ON a.oid = w.rule WHERE a.ev_action::text ~ time_is_read
    UNION ALL SELECT DISTINCT CASE r.partmethod WHEN 'h' THEN 'M' ELSE 'N' END, '', r.oid FROM rel r JOIN pg_attrdef a ON a.adrelid = r.oid
        WHERE a.adbin::text ~ time_is_read
    UNION ALL SELECT DISTINCT 'r', w.relname::text, w.oid FROM rule w WHERE w.ev_type <> '1'
    UNION ALL SELECT 'p', r.relname, r.oid FROM rel r
        WHERE r.relkind IN ('r', 'p', 'v', 'f') AND NOT r.is_distributed
            AND (r.relkind IN ('v', 'f') OR r.relhasrules OR EXISTS (SELECT FROM trg t JOIN pg_proc f ON f.oid = t.tgfoid
                WHERE t.oid = r.oid AND (NOT t.tgisinternal OR f.proname ~ '^RI_FKey_(cascade|setnull|setdefault)_')))
    UNION ALL SELECT DISTINCT 'c', r.relname::text, r.oid FROM rel r JOIN pg_attribute a ON a.attrelid = r.oid
        WHERE a.attnum > 0 AND r.relkind IN ('r', 'v', 'm', 'f', 'p')
            AND (a.attcollation NOT IN (0, 100) OR a.attcollation = 0 AND a.atttypid >= 16384) AND NOT r.is_distributed
    UNION ALL SELECT DISTINCT 'd', pg_get_userbyid(w.relowner)::text, w.oid FROM rule w
        WHERE NOT coalesce(w.reloptions && '{security_invoker=true,security_invoker=on,security_invoker=1}', false)
    -- Views of catalogs that everybody may read, and of nothing else: the router reads what they say.
    UNION ALL SELECT 'K', concat_ws(E'\x01', r.nspname, r.relname, pg_get_userbyid(r.relowner),
            EXISTS (SELECT FROM pg_class c, aclexplode(c.relacl) g WHERE c.oid = r.oid AND g.grantee = 0 AND g.privilege_type = 'SELECT'),
            pg_get_viewdef(r.oid)), r.oid
        FROM rel r JOIN pg_rewrite w ON w.ev_class = r.oid AND w.rulename = '_RETURN'
        WHERE r.relkind = 'v' AND r.nspname !~ '^pg_temp' AND strpos(r.nspname || r.relname, E'\x01') = 0 AND (
            SELECT bool_and(c.oid < 16384 AND has_table_privilege('public', c.oid, 'SELECT')) AND bool_or(EXISTS (SELECT FROM pg_class h
                WHERE h.relnamespace = 'pgherd'::regnamespace AND h.relkind = 'v'
                    AND h.relname IN (c.relname, 'information_schema_' || c.relname)))
            FROM (SELECT DISTINCT m[1]::oid AS oid FROM regexp_matches(w.ev_action::text, ':relid ([0-9]+) ', 'g') m) m
                JOIN pg_class c USING (oid) WHERE c.oid <> r.oid);
    -- Views that call, or that read such.
    IF EXISTS (SELECT FROM unnest(which) w(oid) JOIN pg_class c ON c.oid = w.oid WHERE c.relkind = 'v') THEN
        RETURN QUERY
        WITH RECURSIVE below(view) AS (
            SELECT c.oid FROM unnest(which) w(oid) JOIN pg_class c ON c.oid = w.oid WHERE c.relkind = 'v'
            UNION SELECT d.refobjid FROM below b JOIN pg_rewrite r ON r.ev_class = b.view
                JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass
                JOIN pg_class c ON c.oid = d.refobjid AND c.relkind = 'v'
        ), named AS MATERIALIZED (
            SELECT b.view, d.refclassid, d.refobjid FROM below b JOIN pg_class c ON c.oid = b.view
                JOIN pg_rewrite r ON r.ev_class = b.view
                JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refobjid <> r.ev_class
                    AND d.refobjid >= 16384
            WHERE c.relnamespace NOT IN (11, 'pgherd'::regnamespace)
        ), calling(view) AS (
            (SELECT n.view FROM named n
                LEFT JOIN pg_operator o ON o.oid = n.refobjid AND n.refclassid = 'pg_operator'::regclass
                JOIN pg_proc p ON p.provolatile = 'v'
                    AND p.oid = CASE n.refclassid WHEN 'pg_proc'::regclass THEN n.refobjid ELSE o.oprcode END
            UNION ALL SELECT b.view FROM below b JOIN pg_class c ON c.oid = b.view JOIN pg_rewrite r ON r.ev_class = b.view
                WHERE c.relnamespace NOT IN (11, 'pgherd'::regnamespace) AND r.ev_action::text ~ ':funcid 2078 ')
            UNION SELECT n.view FROM calling k JOIN named n ON n.refobjid = k.view AND n.refclassid = 'pg_class'::regclass
        )
        SELECT 'x', c.relname::text, c.oid FROM calling k JOIN pg_class c ON c.oid = k.view
        WHERE k.view = ANY (which)
        -- set_config()
        UNION ALL SELECT DISTINCT 'G', lower(m[1]), c.oid FROM unnest(which) w(oid) JOIN pg_class c ON c.oid = w.oid AND c.relkind = 'v'
            JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_action::text ~ ':funcid 2078 ',
            regexp_matches(pg_get_viewdef(c.oid), E'set_config[(]''([a-z_][a-z0-9_.]*)''', 'gi') m
        WHERE c.relnamespace NOT IN (11, 'pgherd'::regnamespace);
    END IF;
END
$$;

-- Values of built-in types, of domains and of rows may be taken for this one, too, without a word. (A cast by assignment does not
-- count.)
CREATE OR REPLACE FUNCTION pgherd.is_reached(type oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.oid < 16384 OR t.typtype IN ('d', 'c', 'p')
        OR EXISTS (SELECT FROM pg_cast c JOIN pg_type s ON s.oid = c.castsource WHERE c.casttarget = t.oid AND c.castcontext = 'i'
            AND (s.oid < 16384 OR s.typtype IN ('d', 'c', 'p')))
        OR CASE WHEN t.typelem <> 0 AND t.typcategory = 'A' THEN pgherd.is_reached(t.typelem) ELSE false END
    FROM pg_type t WHERE t.oid = $1
$$;

-- Likewise of functions. `direct`: names of those that leave something on their connection by themselves.
CREATE OR REPLACE FUNCTION pgherd.held_functions(which oid[], direct text[]) RETURNS TABLE (kind text, name text, of oid)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH fun AS MATERIALIZED (
        SELECT p.oid, p.proname, p.provolatile, p.prokind, p.proretset, p.prosecdef, p.proowner, p.prosrc, p.prosqlbody, p.prorettype,
            p.proargtypes, p.pronargs, p.pronargdefaults, p.provariadic, p.proallargtypes, l.lanname, p.pronamespace = 11 AS is_builtin, p.pronamespace = 'information_schema'::regnamespace AS is_standard,
            p.pronamespace NOT IN (11, 'pgherd'::regnamespace) AS is_users,
            l.lanname NOT IN ('c', 'internal') AS has_body, pg_get_function_sqlbody(p.oid) AS sqlbody
        FROM unnest(which) w(oid) JOIN pg_proc p ON p.oid = w.oid JOIN pg_language l ON l.oid = p.prolang
        WHERE p.oid >= 16384
            -- Triggers of ours, and what they call for a key, come and go with tables, and nobody else calls them.
            AND NOT (p.pronamespace = 'pgherd'::regnamespace
                AND (p.prorettype = 'trigger'::regtype OR p.proname LIKE E'key\\_lookup\\_%'))
    ), body AS MATERIALIZED (
        SELECT f.oid, f.proname, b.body, b.body ~ E'\\m((next|curr|last|set)val|setseed|lo_open)\\M'
                OR b.body ~ E'\\mpg_(try_)?advisory_(un)?lock(_shared)?\\M' OR c.computes AS direct, c.computes
        FROM fun f, LATERAL (SELECT lower(coalesce(f.sqlbody, f.prosrc)) AS body) b,
            -- Settings by names that it computes.
            LATERAL (SELECT b.body ~ E'set_config\\s*[(]\\s*[^''[:space:]]'
                OR b.body ~ E'\\m(set|reset)\\s+(session\\s+|local\\s+)?(%|'')' AS computes) c
        WHERE f.has_body AND f.is_users
    )
    SELECT 'f', f.proname::text, f.oid FROM fun f WHERE f.is_users AND NOT f.is_standard
    UNION ALL SELECT 'u', f.proname, f.oid FROM fun f WHERE f.is_users AND NOT f.is_standard
        -- A literal may stand for any type: where all arguments are of such types, a built-in function of as many takes it.
        AND (f.pronargs = 0 OR f.pronargdefaults > 0 OR f.provariadic <> 0
            OR EXISTS (SELECT FROM unnest(f.proargtypes::oid[]) a(type) WHERE pgherd.is_reached(a.type))
            OR NOT EXISTS (SELECT FROM pg_proc b WHERE b.proname = f.proname AND b.pronamespace = 11 AND b.oid < 16384
                AND b.pronargs = f.pronargs AND b.provariadic = 0))
    UNION ALL SELECT 'F', '', f.oid FROM fun f WHERE f.has_body AND f.is_users
    -- It may ask what the session has drawn, which the coordinator does not know of values that the router gave.
    UNION ALL SELECT DISTINCT 'H', pgherd.sequences_asked(coalesce(f.sqlbody, f.prosrc)), f.oid FROM fun f
        WHERE f.is_users AND coalesce(f.sqlbody, f.prosrc) ~* '(currval|lastval)'
    UNION ALL SELECT 'S' || f.lanname || ' ' || f.proname, coalesce(f.sqlbody, f.prosrc), f.oid FROM fun f
        WHERE f.lanname IN ('sql', 'plpgsql') AND f.is_users
            AND (f.prosrc ~* E'tablesample|\\monly\\M' OR f.prosqlbody::text ~ ':tablesample [{]' OR f.sqlbody ~ E'\\mONLY\\M')
    UNION ALL SELECT 'C', f.proname, f.oid FROM fun f WHERE f.is_users AND f.prosrc ~* E'\\mset\\s+constraints\\M'
    UNION ALL SELECT 'Q', '', f.oid FROM fun f WHERE f.provolatile <> 'v' AND f.has_body AND f.is_users
        AND coalesce(f.sqlbody, f.prosrc) ~* E'\\m(from|execute|table)\\M'
    UNION ALL SELECT 'l', lower(b.proname), b.oid FROM body b WHERE b.direct
    UNION ALL SELECT 'L', b.proname, b.oid FROM body b
        WHERE b.direct OR EXISTS (SELECT FROM unnest($2) d(name) WHERE strpos(b.body, d.name) > 0)
    UNION ALL SELECT 'V', f.proname, f.oid FROM fun f WHERE f.provolatile = 'v'
    UNION ALL SELECT DISTINCT 'G', CASE m.name WHEN 'time' THEN 'timezone' ELSE m.name END, f.oid
        FROM fun f, LATERAL (SELECT coalesce(f.sqlbody, f.prosrc) AS text) b,
        LATERAL (SELECT lower(x[1]) AS name FROM regexp_matches(b.text, E'set_config\\s*[(]\\s*''([a-z_][a-z0-9_.]*)''', 'gi') x
            UNION SELECT lower(x[2])
            FROM regexp_matches(b.text, E'\\m(set|reset)\\s+(?:session\\s+|local\\s+)?([a-z_][a-z0-9_.]*)', 'gi') x) m
        WHERE f.is_users AND (m.name ~ '[.]' OR m.name IN ('time', 'role', 'session_authorization')
            OR m.name IN (SELECT lower(s.name) FROM pg_settings s))
    UNION ALL SELECT 'G', '*', b.oid FROM body b WHERE b.computes
    UNION ALL SELECT 'N', '', f.oid FROM fun f
        WHERE f.has_body AND f.is_users
            AND (f.lanname NOT IN ('sql', 'plpgsql') OR f.prosqlbody::text ~ '[{]SQLVALUEFUNCTION|:funcid (1299|2647|2648) '
                OR f.prosrc ~* E'\\m(now|(transaction|statement)_timestamp|current_(date|time|timestamp))\\M'
                OR f.prosrc ~* E'\\m(localtime|localtimestamp|today|tomorrow|yesterday)\\M')
    UNION ALL SELECT 'c', f.proname, f.oid FROM fun f
        WHERE EXISTS (SELECT FROM unnest(coalesce(f.proallargtypes, '{}') || f.prorettype) a(type) JOIN pg_type t ON t.oid = a.type
            WHERE t.typcollation NOT IN (0, 100) OR t.typtype = 'c' AND t.oid >= 16384)
    UNION ALL SELECT CASE WHEN f.provolatile = 'i' AND NOT EXISTS (SELECT FROM pg_proc o
            WHERE o.proname = f.proname AND o.pronamespace = 11 AND o.oid < 16384 AND o.provolatile <> 'i') THEN 'i' ELSE '-' END,
        f.proname, f.oid FROM fun f WHERE f.is_builtin
    UNION ALL SELECT 'v', f.proname, f.oid FROM fun f WHERE f.is_builtin AND f.provolatile = 'v'
    UNION ALL SELECT f.prokind::text, f.proname, f.oid FROM fun f WHERE f.prokind IN ('a', 'w')
    UNION ALL SELECT 's', f.proname, f.oid FROM fun f WHERE f.proretset
    UNION ALL SELECT 'd', pg_get_userbyid(f.proowner), f.oid FROM fun f WHERE f.prosecdef AND f.is_users;
END
$$;

-- Distributed and reference tables, in the order of what reads them (crates/router/src/database.rs), as text.
CREATE OR REPLACE FUNCTION pgherd.held_tables(which oid[]) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    SELECT json_agg(ARRAY[p.logicalrelid::oid::text, n.nspname, c.relname, p.partmethod::text, p.partkey, p.colocationid::text,
        c.relrowsecurity::text,
        EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard')::text,
        (EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard'
                AND t.tgtype & 1 = 0)
            OR c.relkind = 'p'
            OR EXISTS (SELECT FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid WHERE i.inhparent = c.oid
                AND k.relnamespace <> 'pgherd'::regnamespace)
            OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid))::text,
        getdatabaseencoding()::text,
        EXISTS (SELECT FROM (
                SELECT 'pg_constraint'::regclass::oid, k.oid FROM pg_constraint k WHERE k.conrelid = c.oid
                UNION ALL SELECT 'pg_attrdef'::regclass, f.oid FROM pg_attrdef f WHERE f.adrelid = c.oid
                UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i WHERE i.indrelid = c.oid) x(class, oid)
            WHERE EXISTS (SELECT FROM pg_depend d WHERE d.classid = x.class AND d.objid = x.oid
                AND d.refobjid >= 16384 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) OFFSET 0))::text,
        EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tginitdeferred)::text,
        EXISTS (SELECT FROM pg_depend d JOIN pg_constraint k ON k.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass
            AND d.refobjid = c.oid AND d.classid = 'pg_constraint'::regclass AND k.confrelid = c.oid AND k.contype = 'f'
            AND (p.partmethod = 'n' OR EXISTS (SELECT FROM pgherd.pg_dist_partition o WHERE o.logicalrelid = k.conrelid)))::text,
        (l.relation IS NOT NULL)::text, (c.relkind = 'p')::text,
        CASE WHEN c.relispartition THEN (SELECT i.inhparent::text FROM pg_inherits i WHERE i.inhrelid = c.oid) END,
        c.relowner::text,
        EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid)::text,
        (h.relation IS NOT NULL)::text,
        (SELECT string_agg(DISTINCT x.number::text, ',')
            FROM pg_depend d JOIN pg_constraint k ON k.oid = d.objid, unnest(k.confkey) x(number)
            WHERE p.partmethod = 'h' AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
                AND d.classid = 'pg_constraint'::regclass AND k.confrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0
                AND k.conrelid <> k.confrelid
                AND NOT EXISTS (SELECT FROM pgherd.pg_dist_partition o WHERE o.logicalrelid = k.conrelid))] ORDER BY c.oid)
    FROM unnest(which) w(oid) JOIN pgherd.pg_dist_partition p ON p.logicalrelid = w.oid
        JOIN pg_class c ON c.oid = w.oid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pgherd.leaf l ON l.relation = c.oid LEFT JOIN pgherd.fires_here h ON h.relation = c.oid);
END
$$;

-- pg_get_expr without the table takes no lock on it (defaults name no columns): a definition in an open block holds up nobody
-- who reads this.
CREATE OR REPLACE FUNCTION pgherd.held_columns(which oid[]) RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    SELECT json_agg(ARRAY[a.attrelid::text, a.attnum::text, a.attname, a.atttypid::text, a.atttypmod::text,
        format_type(a.atttypid, a.atttypmod),
        format_type(CASE WHEN t.typtype = 'd' THEN pgherd.base_type(t.oid) ELSE t.oid END, -1),
        a.attcollation::text, a.attnotnull::text, a.attidentity::text, a.attgenerated::text,
        CASE WHEN a.attgenerated = '' THEN coalesce(pg_get_expr(d.adbin, 0), pg_get_expr(t.typdefaultbin, 0)) END,
        (CASE WHEN d.oid IS NULL AND t.typdefaultbin IS NOT NULL THEN
            -- A domain's: what it is made of is not looked into.
            pg_get_expr(t.typdefaultbin, 0) ~ E'\\m(nextval|currval|lastval|setval|pg_backend_pid)\\M'
            OR EXISTS (SELECT FROM pg_depend s WHERE s.classid = 'pg_type'::regclass AND s.objid = t.oid
                AND s.refclassid = 'pg_proc'::regclass AND s.refobjid >= 16384)
        ELSE d.oid IS NOT NULL AND (
            EXISTS (SELECT FROM pg_depend s JOIN pg_class q ON q.oid = s.refobjid AND q.relkind = 'S'
                WHERE s.classid = 'pg_attrdef'::regclass AND s.objid = d.oid AND s.refclassid = 'pg_class'::regclass)
            OR coalesce(pgherd.default_on_coordinator(d.oid,
                CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, 0) END), false)) END)::text,
        CASE WHEN a.attidentity <> '' THEN coalesce(
            pg_get_serial_sequence(format('%I.%I', n.nspname, c.relname), a.attname),
            (SELECT pg_get_serial_sequence(format('%I.%I', rn.nspname, r.relname), a.attname)
                FROM pg_class r JOIN pg_namespace rn ON rn.oid = r.relnamespace
                WHERE r.oid = pg_partition_root(c.oid) AND r.oid <> c.oid)) END,
        coalesce(o.collisdeterministic, true)::text, (t.oid >= 16384)::text] ORDER BY a.attrelid, a.attnum)
    FROM unnest(which) w(oid) JOIN pgherd.pg_dist_partition p ON p.logicalrelid = w.oid
        JOIN pg_class c ON c.oid = w.oid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        LEFT JOIN pg_collation o ON o.oid = a.attcollation);
END
$$;

-- What a router that read under `known` does not know yet, of its own transaction what comes after `own`; all where it is NULL,
-- or too old. `direct` is for pgherd.held_functions. Whoever may have been told of an epoch that this server has lost reads all.
DROP FUNCTION IF EXISTS pgherd.catalog_since(pg_snapshot, bigint, bigint, text[], oid[]);
DROP FUNCTION IF EXISTS pgherd.catalog_since(pg_snapshot, bigint, bigint, text[], oid[], text);
CREATE OR REPLACE FUNCTION pgherd.catalog_since(known pg_snapshot, own pg_lsn, epoch bigint, direct text[], also oid[], server text)
RETURNS json
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET jit = off
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    here CONSTANT xid8 := pg_current_xact_id_if_assigned();
    -- Another server may have given the same numbers to other transactions.
    server_now CONSTANT text := extract(epoch FROM pg_postmaster_start_time())::text;
    CHANGES_MAX CONSTANT int := 5000;
    epoch_now bigint;
    last_own pg_lsn := own;
    classes oid[];
    objects oid[];
    touched_classes oid[];
    touched oid[];
    -- Two serializable transactions that both write there and read it would fail, though neither has what the other has changed.
    serializable CONSTANT bool := here IS NOT NULL AND current_setting('transaction_isolation') = 'serializable';
    whole bool := known IS NULL OR serializable;
    relations oid[];
    functions oid[];
    types oid[];
    operators oid[];
    barriers json;
BEGIN
    IF serializable THEN
        epoch_now := $3;
    ELSE
        SELECT e.epoch INTO epoch_now FROM pgherd.epoch e;
    END IF;
    IF NOT whole THEN
        whole := epoch_now < $3 OR server IS DISTINCT FROM server_now OR pg_snapshot_xmax(known) > pg_snapshot_xmax(pg_current_snapshot())
            OR EXISTS (SELECT FROM pgherd.change_horizon h
            WHERE h.xid > pg_snapshot_xmin(known) AND h.xid < pg_snapshot_xmax(pg_current_snapshot()));
    END IF;
    IF here IS NOT NULL AND NOT serializable THEN
        SELECT max(c.at) INTO last_own FROM pgherd.change c WHERE c.xid = here;
    END IF;
    IF NOT whole THEN
        SELECT array_agg(x.class), array_agg(x.object), count(*) > CHANGES_MAX OR coalesce(bool_or(x.class = 0
                OR x.class IN ('pg_language'::regclass, 'pg_proc'::regclass) AND x.object < 16384), false)
            INTO classes, objects, whole
        FROM (SELECT c.class, c.object FROM pgherd.change c
                WHERE c.xid >= pg_snapshot_xmin(known) AND (here IS NULL OR c.xid < here) AND NOT pg_visible_in_snapshot(c.xid, known)
            UNION SELECT c.class, c.object FROM pgherd.change c WHERE c.xid > here AND NOT pg_visible_in_snapshot(c.xid, known)
            UNION SELECT c.class, c.object FROM pgherd.change c WHERE c.xid = here AND c.at > own
            UNION SELECT 'pg_class'::regclass::oid, a.oid FROM unnest(also) a(oid)) x;
    END IF;
    IF whole THEN
        SELECT array_agg(c.oid) INTO relations FROM pg_class c
            WHERE c.oid >= 16384 AND c.relkind IN ('r', 'v', 'm', 'f', 'p', 'S') AND c.relnamespace <> 'pgherd'::regnamespace;
        SELECT array_agg(p.oid) INTO functions FROM pg_proc p WHERE p.oid >= 16384;
        SELECT array_agg(t.oid) INTO types FROM pg_type t WHERE t.oid >= 16384 AND t.typnamespace <> 'pgherd'::regnamespace;
        SELECT array_agg(o.oid) INTO operators FROM pg_operator o WHERE o.oid >= 16384;
        SELECT coalesce(array_agg(DISTINCT lower(p.proname)), '{}') INTO direct
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang, lower(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)) b(body)
        WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal') AND p.pronamespace NOT IN (11, 'pgherd'::regnamespace)
            AND (b.body ~ E'\\m((next|curr|last|set)val|setseed|lo_open)\\M'
                OR b.body ~ E'\\mpg_(try_)?advisory_(un)?lock(_shared)?\\M');
    ELSIF classes IS NOT NULL THEN
        SELECT array_agg(t.class), array_agg(t.object) INTO touched_classes, touched FROM pgherd.touched_by(classes, objects) t;
        SELECT array_agg(DISTINCT t.object) FILTER (WHERE t.class IN (0::oid, 'pg_class'::regclass::oid)),
            array_agg(t.object) FILTER (WHERE t.class = 'pg_proc'::regclass),
            array_agg(t.object) FILTER (WHERE t.class = 'pg_type'::regclass),
            array_agg(t.object) FILTER (WHERE t.class = 'pg_operator'::regclass)
            INTO relations, functions, types, operators
        FROM unnest(touched_classes, touched) t(class, object)
        WHERE NOT EXISTS (SELECT FROM pg_class c WHERE t.class = 'pg_class'::regclass AND c.oid = t.object AND c.relkind IN ('i', 'I', 't'));
    END IF;
    -- Tables that views with security_barrier read.
    IF relations IS NOT NULL THEN
        SELECT coalesce(json_agg(b.relation::text), '[]') INTO barriers
        FROM (WITH RECURSIVE behind(relation) AS (
                SELECT c.oid FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class
                    WHERE w.oid >= 16384 AND c.relkind = 'v' AND c.relnamespace NOT IN (11, 'pgherd'::regnamespace)
                    AND c.reloptions IS NOT NULL
                    AND (SELECT o.option_value::bool FROM pg_options_to_table(c.reloptions) o WHERE o.option_name = 'security_barrier')
                UNION SELECT d.refobjid FROM behind JOIN pg_rewrite r ON r.ev_class = behind.relation
                    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refclassid = 'pg_class'::regclass)
            SELECT relation FROM behind) b JOIN pgherd.pg_dist_partition p ON p.logicalrelid = b.relation;
    END IF;
    RETURN json_build_object(
        'epoch', epoch_now::text, 'known', pg_current_snapshot()::text, 'server', server_now, 'own', coalesce(last_own, own)::text, 'whole', whole,
        'nodes', CASE WHEN whole OR 'pgherd.pg_dist_node'::regclass = ANY (classes) THEN (
            SELECT coalesce(json_agg(ARRAY[n.nodeid::text, n.groupid::text, n.nodename, n.nodeport::text, n.isactive::text, n.shouldhaveshards::text]
                ORDER BY n.groupid, n.nodeid), '[]') FROM pgherd.pg_dist_node n WHERE n.noderole = 'primary') END,
        'colocations', CASE WHEN whole OR 'pgherd.pg_dist_colocation'::regclass = ANY (classes) THEN (
            SELECT coalesce(json_agg(ARRAY[c.colocationid::text, c.placementepoch::text, c.shardcount::text, c.replicationfactor::text,
                c.distributioncolumntype::oid::text, c.distributioncolumncollation::oid::text, c.isdefault::text]), '[]') FROM pgherd.pg_dist_colocation c) END,
        'relations', to_json(relations::text[]), 'functions', to_json(functions::text[]),
        'types', to_json(types::text[]), 'operators', to_json(operators::text[]),
        'relation_names', CASE WHEN relations IS NOT NULL THEN (
            SELECT json_agg(ARRAY[h.kind, h.name, h.of::text]) FROM pgherd.held_relations(relations) h) END,
        'function_names', CASE WHEN functions IS NOT NULL THEN (
            SELECT json_agg(ARRAY[h.kind, h.name, h.of::text]) FROM pgherd.held_functions(functions, direct) h) END,
        'type_names', CASE WHEN types IS NOT NULL THEN (
            SELECT json_agg(ARRAY[k.kind, t.typname, t.oid::text])
            FROM unnest(types) w(oid) JOIN pg_type t ON t.oid = w.oid JOIN pg_namespace n ON n.oid = t.typnamespace,
            LATERAL (SELECT 't' WHERE n.nspname NOT IN ('pg_catalog', 'pgherd') AND n.nspname !~ '^pg_temp'
                UNION ALL SELECT 'c' WHERE t.typcollation NOT IN (0, 100)) k(kind) WHERE t.oid >= 16384) END,
        'operator_names', CASE WHEN operators IS NOT NULL THEN (
            SELECT json_agg(ARRAY[k.kind, o.oprname, o.oid::text])
            FROM unnest(operators) w(oid) JOIN pg_operator o ON o.oid = w.oid
                JOIN pg_proc p ON p.oid = o.oprcode JOIN pg_language l ON l.oid = p.prolang,
            -- A literal takes the type of what it stands beside: it is not the user's where that is not.
            LATERAL (SELECT 'o' UNION ALL SELECT 'O'
                WHERE NOT EXISTS (SELECT FROM pg_operator b WHERE b.oprname = o.oprname AND b.oprkind = o.oprkind AND b.oid < 16384)
                    OR o.oprleft <> 0 AND pgherd.is_reached(o.oprleft) OR o.oprright <> 0 AND pgherd.is_reached(o.oprright)) k(kind)
            WHERE o.oid >= 16384 AND o.oprnamespace <> 'pgherd'::regnamespace AND (l.lanname NOT IN ('internal', 'c') OR NOT EXISTS (
                SELECT FROM pg_depend d WHERE d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e'))) END,
        'tables', CASE WHEN relations IS NOT NULL THEN pgherd.held_tables(relations) END,
        'columns', CASE WHEN relations IS NOT NULL THEN pgherd.held_columns(relations) END,
        'shards', CASE WHEN relations IS NOT NULL THEN (
            SELECT json_agg(ARRAY[s.logicalrelid::oid::text, s.shardid::text, s.remainder::text, l.groupid::text]
                ORDER BY s.logicalrelid::oid, s.remainder, l.groupid)
            FROM unnest(relations) w(oid) JOIN pgherd.pg_dist_shard s ON s.logicalrelid = w.oid
                JOIN pgherd.pg_dist_placement l USING (shardid)) END,
        'unique_keys', CASE WHEN relations IS NOT NULL THEN (
            SELECT json_agg(ARRAY[i.indrelid::text, array_to_string(ARRAY(
                SELECT a.attname FROM unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY k(num, pos)
                JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num ORDER BY k.pos), E'\x01')] ORDER BY i.indexrelid)
            FROM unnest(relations) w(oid) JOIN pgherd.pg_dist_partition p ON p.logicalrelid = w.oid
                JOIN pg_index i ON i.indrelid = w.oid
            WHERE i.indisunique AND i.indexprs IS NULL AND i.indpred IS NULL) END,
        'foreign_keys', CASE WHEN relations IS NOT NULL THEN (
            SELECT json_agg(ARRAY[k.conrelid::text, k.confrelid::text, (k.confdeltype IN ('c', 'n', 'd'))::text,
                (k.confupdtype IN ('c', 'n', 'd'))::text,
                (SELECT string_agg(a.attname, chr(1)) FROM pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)),
                (SELECT string_agg(a.attname, chr(1)) FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey)),
                (k.confdeltype = 'c')::text]
                ORDER BY k.oid)
            FROM unnest(relations) w(oid) JOIN pg_constraint k ON k.conrelid = w.oid WHERE k.contype = 'f') END,
        'barriers', barriers,
        'mappings', (SELECT coalesce(json_agg(ARRAY[m.umuser::text, pg_get_userbyid(m.umuser)]), '[]') FROM pg_user_mappings m
            WHERE m.srvname = 'pgherd_router' AND m.umuser <> 0),
        'class_columns', CASE WHEN EXISTS (SELECT FROM pgherd.leaf) THEN pgherd.class_columns() END);
END
$$;

GRANT SELECT ON pgherd.change, pgherd.change_horizon TO PUBLIC;
REVOKE EXECUTE ON FUNCTION pgherd.note_change(oid, oid), pgherd.forget_changes(bigint), pgherd.note_rows(), pgherd.note_changes()
    FROM PUBLIC;
