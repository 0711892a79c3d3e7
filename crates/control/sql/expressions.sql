-- What the servers that have a table's rows evaluate for them (checks, those of domains, generated columns, indexes, policies),
-- and the functions of users' that this calls. The router judges their bodies (crates/router/src/run/bodies.rs).

-- The functions of users' that objects use as PostgreSQL has noted it: calls, operators, values of domains. Numbers of
-- catalogs and of objects, in pairs; 'root' is the number of the object from which a function was reached.
CREATE OR REPLACE FUNCTION pgherd.calls_of(classes oid[], objects oid[]) RETURNS TABLE (root oid, function oid)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE used(root, classid, objid) AS (
        SELECT o, c, o FROM unnest($1, $2) u(c, o)
        UNION
        SELECT u.root, x.classid, x.objid FROM used u, LATERAL (
            SELECT d.refclassid, d.refobjid FROM pg_depend d
                WHERE d.classid = u.classid AND d.objid = u.objid AND d.refobjid >= 16384
                    AND u.classid NOT IN ('pg_proc'::regclass, 'pg_type'::regclass)
                    AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass)
            UNION ALL SELECT 'pg_constraint'::regclass, k.oid FROM pg_constraint k
                WHERE u.classid = 'pg_type'::regclass AND k.contypid = u.objid AND u.objid >= 16384
            UNION ALL SELECT 'pg_type'::regclass, t.part FROM pg_type y
                CROSS JOIN LATERAL (VALUES (y.typbasetype), (y.typelem)) t(part)
                WHERE u.classid = 'pg_type'::regclass AND y.oid = u.objid AND t.part >= 16384
            UNION ALL SELECT 'pg_type'::regclass, a.atttypid FROM pg_type y JOIN pg_attribute a ON a.attrelid = y.typrelid
                WHERE u.classid = 'pg_type'::regclass AND y.oid = u.objid AND a.attnum > 0 AND NOT a.attisdropped
                    AND a.atttypid >= 16384
            UNION ALL SELECT 'pg_type'::regclass, g.rngsubtype FROM pg_range g
                WHERE u.classid = 'pg_type'::regclass AND u.objid IN (g.rngtypid, g.rngmultitypid) AND g.rngsubtype >= 16384
        ) x(classid, objid)
    )
    SELECT DISTINCT u.root, u.objid FROM used u WHERE u.classid = 'pg_proc'::regclass
$$;

-- The expressions of a table and its partitions, or of all that are distributed or reference tables, that call functions of
-- users'; and all policies, with their text.
CREATE OR REPLACE FUNCTION pgherd.expressions(of_table oid)
RETURNS TABLE (relation oid, schema text, table_name text, is_reference bool, kind text, name text, expression text, calls oid[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    -- Asked for of each table (LATERAL … OFFSET 0): joined, all there are would be read.
    WITH tables AS (
        SELECT $1 AS oid WHERE $1 IS NOT NULL
        UNION SELECT t.relid FROM pg_partition_tree($1) t
        UNION SELECT p.logicalrelid FROM pgherd.pg_dist_partition p WHERE $1 IS NULL
    ),
    found AS (
        SELECT t.oid AS relation, 'pg_constraint'::regclass::oid AS class, k.oid AS object,
            CASE k.contype WHEN 'c' THEN 'check constraint' ELSE 'exclusion constraint' END AS kind, k.conname::text AS name,
            NULL AS expression
        FROM tables t, LATERAL (SELECT * FROM pg_constraint k WHERE k.conrelid = t.oid OFFSET 0) k WHERE k.contype IN ('c', 'x')
        UNION ALL
        SELECT t.oid, 'pg_attrdef'::regclass, d.oid, 'generated column', a.attname, NULL
        FROM tables t, LATERAL (SELECT * FROM pg_attribute a WHERE a.attrelid = t.oid OFFSET 0) a
            JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attgenerated <> '' AND NOT a.attisdropped
        UNION ALL
        SELECT t.oid, 'pg_class'::regclass, i.indexrelid, 'index', x.relname, NULL
        FROM tables t, LATERAL (SELECT * FROM pg_index i WHERE i.indrelid = t.oid OFFSET 0) i JOIN pg_class x ON x.oid = i.indexrelid
        WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL
        UNION ALL
        SELECT DISTINCT t.oid, 'pg_type'::regclass::oid, a.atttypid, 'type', format_type(a.atttypid, NULL), NULL
        FROM tables t, LATERAL (SELECT * FROM pg_attribute a WHERE a.attrelid = t.oid OFFSET 0) a
        WHERE a.attnum > 0 AND a.atttypid >= 16384 AND NOT a.attisdropped
        UNION ALL
        SELECT t.oid, 'pg_policy'::regclass, y.oid, 'policy', y.polname, concat_ws(' AND ',
            '(' || pg_get_expr(y.polqual, y.polrelid) || ')', '(' || pg_get_expr(y.polwithcheck, y.polrelid) || ')')
        FROM tables t JOIN pg_policy y ON y.polrelid = t.oid
    ),
    called AS (
        SELECT c.root, array_agg(c.function ORDER BY c.function) AS calls
        FROM pgherd.calls_of((SELECT array_agg(class) FROM found), (SELECT array_agg(object) FROM found)) c GROUP BY c.root
    )
    SELECT f.relation, n.nspname::text, c.relname::text, coalesce(p.partmethod = 'n', false), f.kind::text, f.name::text, f.expression::text,
        coalesce(l.calls, '{}')
    FROM found f JOIN pg_class c ON c.oid = f.relation JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pgherd.pg_dist_partition p ON p.logicalrelid = f.relation
        LEFT JOIN called l ON l.root = f.object
    WHERE (l.calls IS NOT NULL OR f.kind = 'policy') AND n.nspname <> 'pgherd'
    ORDER BY f.relation, f.kind, f.name;
END
$$;

-- Functions of users' by number, and by what a body says, with 'key' as it was asked: 'f:' a call, 'a:' an attribute, which may
-- be a call with a row, 'o:' an operator, 't:' a type.
CREATE OR REPLACE FUNCTION pgherd.bodies(functions oid[], keys text[])
RETURNS TABLE (key text, function oid, name text, language text, kind "char", volatility "char", returns_set bool, body text,
    parsed text, defaults text, calls oid[])
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH asked AS (SELECT k AS key, left(k, 2) AS kind, substr(k, 3) AS name FROM unnest($2) k),
    found(key, function) AS (
        SELECT NULL, f FROM unnest($1) f
        UNION SELECT a.key, p.oid FROM asked a JOIN pg_proc p ON p.proname = a.name WHERE a.kind = 'f:'
        UNION SELECT a.key, p.oid FROM asked a JOIN pg_proc p ON p.proname = a.name JOIN pg_type t ON t.oid = p.proargtypes[0]
            WHERE a.kind = 'a:' AND t.typtype IN ('c', 'p')
        UNION SELECT a.key, o.oprcode FROM asked a JOIN pg_operator o ON o.oprname = a.name WHERE a.kind = 'o:'
        UNION SELECT a.key, c.function FROM asked a JOIN pg_type t ON t.typname = a.name,
            LATERAL pgherd.calls_of(ARRAY['pg_type'::regclass::oid], ARRAY[t.oid]) c WHERE a.kind = 't:' AND t.oid >= 16384
        UNION SELECT a.key, c.castfunc FROM asked a JOIN pg_type t ON t.typname = a.name
            JOIN pg_cast c ON t.oid IN (c.castsource, c.casttarget) WHERE a.kind = 't:' AND t.oid >= 16384
    )
    SELECT f.key, p.oid, p.proname, l.lanname, p.prokind, p.provolatile, p.proretset, p.prosrc,
        CASE WHEN p.prosqlbody IS NOT NULL THEN pg_get_function_sqlbody(p.oid) END, pg_get_expr(p.proargdefaults, 0),
        ARRAY(SELECT d.refobjid FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
            AND d.refclassid = 'pg_proc'::regclass AND d.refobjid >= 16384
          UNION SELECT o.oprcode FROM pg_depend d JOIN pg_operator o ON o.oid = d.refobjid
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.refclassid = 'pg_operator'::regclass)
    FROM found f JOIN pg_proc p ON p.oid = f.function JOIN pg_language l ON l.oid = p.prolang
    WHERE p.oid >= 16384 AND p.pronamespace NOT IN (11, 'pgherd'::regnamespace)
$$;
