-- A table as JSON, complete enough to make it again on another server. One function per concern; pgherd.describe_table
-- puts them together under settings that make every name qualified and every constant unambiguous. They are plpgsql for
-- the plans that a backend keeps. What differs between PostgreSQL 15 and 18 is read through to_jsonb(row). See crates/control/src/describe.rs for the shapes.

-- "schema.name" of an object, quoted.
CREATE OR REPLACE FUNCTION pgherd.qualified(schema oid, name name) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT format('%I.%I', n.nspname, $2) FROM pg_catalog.pg_namespace n WHERE n.oid = $1
$$;

-- Names of columns, in the order of attnums; NULL stands for an expression.
CREATE OR REPLACE FUNCTION pgherd.column_names(relation oid, attnums int2[]) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT coalesce(pg_catalog.jsonb_agg(a.attname ORDER BY k.n), '[]')
    FROM pg_catalog.unnest($2) WITH ORDINALITY k(attnum, n)
    LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = $1 AND a.attnum = k.attnum AND k.attnum > 0
$$;

-- An ACL as rows for GRANT, or NULL where it is the default.
CREATE OR REPLACE FUNCTION pgherd.describe_acl(acl aclitem[]) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN $1 IS NULL THEN NULL ELSE coalesce((
        SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
            'grantee', CASE WHEN x.grantee = 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(x.grantee) END,
            'privilege', x.privilege_type, 'grantable', x.is_grantable))
        FROM pg_catalog.aclexplode($1) x), '[]') END
$$;

-- A domain's base type, any other type itself.
CREATE OR REPLACE FUNCTION pgherd.base_type(typ oid) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
DECLARE
    base oid := typ;
    below oid;
BEGIN
    LOOP
        SELECT t.typbasetype INTO below FROM pg_catalog.pg_type t WHERE t.oid = base;
        IF NOT FOUND OR below = 0 THEN
            RETURN CASE WHEN FOUND THEN base END;
        END IF;
        base := below;
    END LOOP;
END
$$;

-- Which part of a type hashes by object id, which differs between servers: 'enum', 'composite' or 'registered'; else NULL.
CREATE OR REPLACE FUNCTION pgherd.hashes_by_object_id(typ oid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    WITH RECURSIVE parts(typ) AS (
        SELECT $1
        UNION
        SELECT x.typ FROM parts p JOIN pg_catalog.pg_type t ON t.oid = p.typ, LATERAL (
            SELECT t.typbasetype WHERE t.typtype = 'd'
            UNION ALL SELECT t.typelem WHERE t.typcategory = 'A' AND t.typelem <> 0
            UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
        ) x(typ)
    )
    SELECT min(CASE WHEN t.typtype = 'e' THEN 'enum'
        WHEN t.typtype = 'c' OR t.oid = 'record'::pg_catalog.regtype THEN 'composite'
        WHEN t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace AND t.typname ~ '^reg' THEN 'registered' END)
    FROM parts p JOIN pg_catalog.pg_type t ON t.oid = p.typ
    );
END
$$;

-- The hash support function with a seed (hash access method, function 2) of a type's default operator class, or NULL.
CREATE OR REPLACE FUNCTION pgherd.hash_function(typ oid) RETURNS oid
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT p.amproc
    FROM (SELECT b.oid, b.typtype, b.typcategory FROM pg_catalog.pg_type b WHERE b.oid = (SELECT pgherd.base_type($1))) t,
        pg_catalog.pg_opclass o
        JOIN pg_catalog.pg_am m ON m.oid = o.opcmethod AND m.amname = 'hash'
        JOIN pg_catalog.pg_amproc p ON p.amprocfamily = o.opcfamily AND p.amproclefttype = o.opcintype
            AND p.amprocrighttype = o.opcintype AND p.amprocnum = 2
        JOIN pg_catalog.pg_type i ON i.oid = o.opcintype
    WHERE o.opcdefault AND (o.opcintype = t.oid
        OR EXISTS (SELECT FROM pg_catalog.pg_cast c WHERE c.castsource = t.oid AND c.casttarget = o.opcintype
            AND c.castmethod = 'b' AND c.castcontext = 'i')
        OR (i.typname = 'anyarray' AND t.typcategory = 'A')
        OR (i.typname = 'anyenum' AND t.typtype = 'e')
        OR (i.typname = 'anyrange' AND t.typtype = 'r')
        OR (i.typname = 'anymultirange' AND t.typtype = 'm')
        OR (i.typname = 'record' AND t.typtype = 'c'))
    ORDER BY o.opcintype = t.oid DESC, i.typispreferred DESC
    LIMIT 1
    );
END
$$;

-- A default that a worker must not evaluate: it has a sequence in it, or calls a function that might use one, or read tables.
-- How volatile that is, and what its body has, may change while workers have the table.
CREATE OR REPLACE FUNCTION pgherd.default_on_coordinator(attrdef oid, expression text) RETURNS bool
LANGUAGE sql STABLE AS $$
    SELECT $2 ~ E'\\m(nextval|currval|lastval|setval|pg_backend_pid|txid_current|pg_current_(xact_id|snapshot|wal_lsn))(_if_assigned)?\\M'
        OR EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        LEFT JOIN pg_catalog.pg_class s ON d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND s.oid = d.refobjid
        LEFT JOIN (pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang)
            ON d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass AND p.oid = d.refobjid
        WHERE d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass AND d.objid = $1
            AND (s.relkind = 'S' OR l.lanname NOT IN ('c', 'internal')))
$$;

CREATE OR REPLACE FUNCTION pgherd.describe_columns(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    -- Once for each type: most columns of a table share a few.
    WITH keys AS MATERIALIZED (
        SELECT x.type, CASE WHEN t.is_plain THEN x.type ELSE pgherd.base_type(x.type) END AS base,
            CASE WHEN NOT t.is_plain THEN pgherd.hashes_by_object_id(x.type) END AS hashes_by_object_id,
            pgherd.hash_function(x.type) AS hash_function
        FROM (SELECT DISTINCT a.atttypid FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped) x(type),
            -- A base type that is made of no other, and stands for no object.
            LATERAL (SELECT t.typtype = 'b' AND t.typcategory <> 'A' AND t.typname !~ '^reg' AS is_plain
                FROM pg_catalog.pg_type t WHERE t.oid = x.type) t
    )
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'name', a.attname,
        'number', a.attnum,
        'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
        'base_type', pg_catalog.format_type(a.atttypid, NULL),
        'type_oid', a.atttypid::bigint,
        'type_modifier', a.atttypmod,
        'collation', CASE WHEN a.attcollation <> t.typcollation THEN
            (SELECT pgherd.qualified(c.collnamespace, c.collname) FROM pg_catalog.pg_collation c WHERE c.oid = a.attcollation) END,
        'collation_oid', a.attcollation::bigint,
        'not_null', a.attnotnull,
        'not_null_name', n.conname,
        'not_null_unchecked', coalesce(NOT n.convalidated, false),
        'default', CASE WHEN a.attgenerated = '' THEN e.expression END,
        'default_varies', coalesce(a.attgenerated = '' AND v.varies, false),
        -- What it gave the rows that were there.
        'missing', CASE WHEN v.varies AND a.atthasmissing THEN (a.attmissingval::text::text[])[1] END,
        'default_on_coordinator', d.oid IS NOT NULL AND a.attgenerated = '' AND pgherd.default_on_coordinator(d.oid, e.expression),
        'identity', a.attidentity,
        -- From PostgreSQL 17 on a partition has its parent's.
        'identity_inherited', a.attidentity <> '' AND a.attinhcount > 0
            AND pg_catalog.pg_get_serial_sequence(a.attrelid::pg_catalog.regclass::text, a.attname) IS NULL,
        'identity_sequence', CASE WHEN a.attidentity <> '' THEN coalesce(
            pg_catalog.pg_get_serial_sequence(a.attrelid::pg_catalog.regclass::text, a.attname),
            pg_catalog.pg_get_serial_sequence(pg_catalog.pg_partition_root(a.attrelid)::text, a.attname)) END,
        'generated', a.attgenerated,
        'generation_expression', CASE WHEN a.attgenerated <> '' THEN e.expression END,
        'storage', CASE WHEN a.attstorage <> t.typstorage THEN
            CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END END,
        'statistics', CASE WHEN a.attstattarget >= 0 THEN a.attstattarget END,
        'compression', CASE a.attcompression WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END,
        'options', a.attoptions,
        'grants', CASE WHEN a.attacl IS NOT NULL THEN pgherd.describe_acl(a.attacl) END,
        'key_type', pg_catalog.format_type(k.base, NULL),
        'key_type_oid', k.base::bigint,
        'hashes_by_object_id', k.hashes_by_object_id,
        'hash_function', k.hash_function::pg_catalog.regproc::text
        ) ORDER BY a.attnum), '[]')
    FROM pg_catalog.pg_attribute a
    JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    JOIN keys k ON k.type = a.atttypid
    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    LEFT JOIN LATERAL (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid)) e(expression) ON true
    LEFT JOIN LATERAL (SELECT c.conname, c.convalidated FROM pg_catalog.pg_constraint c
        WHERE a.attnotnull AND c.conrelid = a.attrelid AND c.contype = 'n' AND c.conkey[1] = a.attnum LIMIT 1) n ON true
    LEFT JOIN LATERAL (SELECT d.adbin::text ~ '[{](SQLVALUEFUNCTION|COERCEVIAIO|NEXTVALUEEXPR|XMLEXPR) ' OR EXISTS (
            SELECT FROM pg_catalog.regexp_matches(d.adbin::text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') m
            JOIN pg_catalog.pg_proc p ON p.oid = m[1]::pg_catalog.oid AND p.provolatile <> 'i')) v(varies) ON true
    WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped
    );
END
$$;

-- Foreign keys: 'head' is FOREIGN KEY (…), 'tail' what follows the referenced columns.
CREATE OR REPLACE FUNCTION pgherd.describe_constraints(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', c.oid::bigint,
        'name', c.conname,
        'type', c.contype,
        'definition', f.definition,
        'columns', pgherd.column_names(c.conrelid, c.conkey),
        'validated', c.convalidated,
        'no_inherit', c.connoinherit AND c.contype = 'c',
        'inherited', c.coninhcount > 0 OR c.conparentid <> 0,
        'index_options', (SELECT i.reloptions FROM pg_catalog.pg_class i WHERE i.oid = c.conindid AND c.contype IN ('p', 'u', 'x')),
        'clustered', coalesce((SELECT i.indisclustered FROM pg_catalog.pg_index i
            WHERE i.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x')), false),
        'equality_columns', CASE WHEN c.contype = 'x' THEN (
            SELECT coalesce(pg_catalog.jsonb_agg(a.attname), '[]')
            FROM unnest(c.conkey, c.conexclop) x(attnum, op)
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = x.attnum
            WHERE EXISTS (SELECT FROM pg_catalog.pg_amop o JOIN pg_catalog.pg_am m ON m.oid = o.amopmethod
                WHERE o.amopopr = x.op AND ((m.amname = 'btree' AND o.amopstrategy = 3)
                    OR (m.amname = 'hash' AND o.amopstrategy = 1)))) END,
        'referenced', CASE WHEN c.contype = 'f' THEN pg_catalog.jsonb_build_object(
            'oid', c.confrelid::bigint, 'schema', n.nspname, 'name', r.relname,
            'columns', pgherd.column_names(c.confrelid, c.confkey), 'period', f.period) END,
        'head', f.head,
        'tail', CASE WHEN c.contype = 'f' AND pg_catalog.starts_with(f.definition, f.prefix) THEN
            pg_catalog.substr(f.definition, pg_catalog.length(f.prefix) + 1) END
        ) ORDER BY c.oid), '[]')
    FROM pg_catalog.pg_constraint c
    LEFT JOIN pg_catalog.pg_class r ON r.oid = c.confrelid
    LEFT JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
    CROSS JOIN LATERAL (
        SELECT d.definition, w.period, h.head, h.head || ' REFERENCES ' || pgherd.qualified(r.relnamespace, r.relname) || '('
            || (SELECT pg_catalog.string_agg(CASE WHEN w.period AND k.n = pg_catalog.cardinality(c.confkey) THEN 'PERIOD ' ELSE '' END
                    || pg_catalog.quote_ident(k.name), ', ' ORDER BY k.n)
                FROM pg_catalog.jsonb_array_elements_text(pgherd.column_names(c.confrelid, c.confkey))
                    WITH ORDINALITY k(name, n)) || ')' AS prefix
        FROM (SELECT pg_catalog.pg_get_constraintdef(c.oid) AS definition) d,
            -- From PostgreSQL 18 on; WITHOUT OVERLAPS alike.
            (SELECT c.contype = 'f' AND coalesce((pg_catalog.to_jsonb(c) ->> 'conperiod')::bool, false)) w(period),
            LATERAL (SELECT CASE WHEN c.contype = 'f' THEN 'FOREIGN KEY ('
                || (SELECT pg_catalog.string_agg(CASE WHEN w.period AND k.n = pg_catalog.cardinality(c.conkey) THEN 'PERIOD ' ELSE '' END
                        || pg_catalog.quote_ident(k.name), ', ' ORDER BY k.n)
                    FROM pg_catalog.jsonb_array_elements_text(pgherd.column_names(c.conrelid, c.conkey))
                        WITH ORDINALITY k(name, n)) || ')' END AS head) h
    ) f
    WHERE c.conrelid = $1 AND c.contype IN ('p', 'u', 'x', 'c', 'f')
        -- A key to a partitioned table has further rows, one per partition there.
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid)
    );
END
$$;

-- Foreign keys of other tables that point here.
CREATE OR REPLACE FUNCTION pgherd.describe_incoming(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'name', c.conname, 'oid', c.conrelid::bigint, 'schema', n.nspname, 'table', r.relname,
        'columns', pgherd.column_names(c.conrelid, c.conkey),
        'referenced_columns', pgherd.column_names(c.confrelid, c.confkey)) ORDER BY c.oid), '[]')
    -- No index is by what is referenced.
    FROM (SELECT DISTINCT d.objid FROM pg_catalog.pg_depend d WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
        AND d.refobjid = $1 AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass) d
    JOIN pg_catalog.pg_constraint c ON c.oid = d.objid
    JOIN pg_catalog.pg_class r ON r.oid = c.conrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
    WHERE c.confrelid = $1 AND c.conrelid <> $1 AND c.contype = 'f' AND c.conparentid = 0
    );
END
$$;

-- Indexes that no constraint owns. 'tail' starts with USING.
CREATE OR REPLACE FUNCTION pgherd.describe_indexes(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', x.oid::bigint,
        'name', x.relname,
        'options', x.reloptions,
        'unique', i.indisunique,
        'columns', pgherd.column_names(i.indrelid, (i.indkey::int2[])[0:i.indnkeyatts - 1]),
        'expressions', i.indexprs IS NOT NULL,
        'predicate', i.indpred IS NOT NULL,
        'valid', i.indisvalid AND i.indisready,
        'clustered', i.indisclustered,
        'tail', CASE WHEN pg_catalog.starts_with(f.definition, f.prefix) THEN
            pg_catalog.substr(f.definition, pg_catalog.length(f.prefix)) END,
        'statistics', (SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(a.attnum, a.attstattarget))
            FROM pg_catalog.pg_attribute a WHERE a.attrelid = x.oid AND a.attstattarget >= 0)
        ) ORDER BY x.oid), '[]')
    FROM pg_catalog.pg_index i
    JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
    JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
    CROSS JOIN LATERAL (SELECT pg_catalog.pg_get_indexdef(x.oid) AS definition,
        pg_catalog.format('CREATE %sINDEX %I ON %s%s ', CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END, x.relname,
            CASE x.relkind WHEN 'I' THEN 'ONLY ' ELSE '' END, pgherd.qualified(t.relnamespace, t.relname)) || 'U' AS prefix) f
    WHERE i.indrelid = $1 AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint c
        WHERE c.conrelid = $1 AND c.conindid = x.oid AND c.contype IN ('p', 'u', 'x'))
    );
END
$$;

CREATE OR REPLACE FUNCTION pgherd.describe_triggers(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', t.oid::bigint,
        'name', t.tgname,
        'definition', pg_catalog.pg_get_triggerdef(t.oid),
        'function', t.tgfoid::pg_catalog.regprocedure::text,
        'row', t.tgtype::int & 1 <> 0,
        'on_truncate', t.tgtype::int & 32 <> 0,
        'transition_tables', t.tgoldtable IS NOT NULL OR t.tgnewtable IS NOT NULL,
        'enabled', coalesce(w.enabled, t.tgenabled)) ORDER BY t.oid), '[]')
    FROM pg_catalog.pg_trigger t LEFT JOIN pgherd.worker_trigger w ON w.trigger = t.oid
    WHERE t.tgrelid = $1 AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard'
    );
END
$$;

CREATE OR REPLACE FUNCTION pgherd.describe_rules(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', r.oid::bigint, 'name', r.rulename, 'definition', pg_catalog.pg_get_ruledef(r.oid), 'enabled', r.ev_enabled) ORDER BY r.oid), '[]')
    FROM pg_catalog.pg_rewrite r WHERE r.ev_class = $1 AND r.rulename <> '_RETURN'
    );
END
$$;

-- 'roles': names, NULL is PUBLIC.
CREATE OR REPLACE FUNCTION pgherd.describe_policies(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', p.oid::bigint,
        'name', p.polname,
        'permissive', p.polpermissive,
        'command', CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
            ELSE 'ALL' END,
        'roles', (SELECT pg_catalog.jsonb_agg(CASE WHEN r.oid = 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(r.oid) END)
            FROM pg_catalog.unnest(p.polroles) r(oid)),
        'using', pg_catalog.pg_get_expr(p.polqual, p.polrelid),
        'with_check', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)) ORDER BY p.oid), '[]')
    FROM pg_catalog.pg_policy p WHERE p.polrelid = $1
    );
END
$$;

-- 'middle': what stands between the name and FROM.
CREATE OR REPLACE FUNCTION pgherd.describe_statistics(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'oid', s.oid::bigint, 'schema', n.nspname, 'name', s.stxname,
        'middle', pg_catalog.substr(f.definition, pg_catalog.length(f.prefix) + 1,
            pg_catalog.length(f.definition) - pg_catalog.length(f.prefix) - pg_catalog.length(f.suffix))) ORDER BY s.oid), '[]')
    FROM pg_catalog.pg_statistic_ext s
    JOIN pg_catalog.pg_namespace n ON n.oid = s.stxnamespace
    CROSS JOIN LATERAL (SELECT pg_catalog.pg_get_statisticsobjdef(s.oid) AS definition,
        'CREATE STATISTICS ' || pgherd.qualified(s.stxnamespace, s.stxname) AS prefix,
        ' FROM ' || s.stxrelid::pg_catalog.regclass::text AS suffix) f
    WHERE s.stxrelid = $1 AND n.nspname !~ '^pg_temp_'
    );
END
$$;

-- How a worker makes an extension: in the coordinator's version, where it has that.
CREATE OR REPLACE FUNCTION pgherd.extension_ddl(name name, schema name, version text, further text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('DO %L', format('BEGIN EXECUTE %L || CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_available_extension_versions v '
        'WHERE v.name = %L AND v.version = %L) THEN %L ELSE '''' END || %L; END',
        format('CREATE EXTENSION %I SCHEMA %I', $1, $2), $1, $3, format(' VERSION %L', $3), $4))
$$;

-- Where none is made: where it is not installed, or by who may not.
CREATE OR REPLACE FUNCTION pgherd.extension_guard(name name) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = %1$L) AND EXISTS (
        SELECT FROM pg_catalog.pg_available_extension_versions v JOIN pg_catalog.pg_roles r ON r.rolname = current_user
        WHERE v.name = %1$L AND (r.rolsuper OR NOT v.superuser
            OR v.trusted AND pg_catalog.has_database_privilege(pg_catalog.current_database(), ''CREATE'')))', $1)
$$;

-- Extensions with operators of built-in types. Nothing but an operator's name tells that a statement needs one, so all
-- workers have them. 'guard' is as of a prerequisite.
CREATE OR REPLACE VIEW pgherd.worker_extensions AS
SELECT e.oid, e.extname AS name, e.extnamespace AS schema,
    pgherd.extension_ddl(e.extname, n.nspname, e.extversion, ' CASCADE') AS ddl, pgherd.extension_guard(e.extname) AS guard
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE EXISTS (SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_operator o ON o.oid = d.objid
    WHERE d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.refobjid = e.oid AND d.deptype = 'e'
        AND d.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND o.oprleft < 16384 AND o.oprright < 16384);

-- What users make for text search: constants, and settings of roles and databases, name it, so all workers have it, and the extensions
-- that it is made of. Not what is made of parsers and templates of no extension.
CREATE OR REPLACE VIEW pgherd.worker_text_search AS
WITH member AS (
    SELECT d.classid, d.objid, d.refobjid AS extension FROM pg_catalog.pg_depend d
    WHERE d.deptype = 'e' AND d.classid IN ('pg_catalog.pg_ts_config'::pg_catalog.regclass, 'pg_catalog.pg_ts_dict'::pg_catalog.regclass,
        'pg_catalog.pg_ts_parser'::pg_catalog.regclass, 'pg_catalog.pg_ts_template'::pg_catalog.regclass)
), dictionary AS (
    SELECT d.*, pgherd.qualified(d.dictnamespace, d.dictname) AS full_name FROM pg_catalog.pg_ts_dict d
    WHERE d.oid >= 16384 AND d.dictnamespace::pg_catalog.regnamespace::text !~ '^pg_temp'
        AND NOT EXISTS (SELECT FROM member m WHERE m.classid = 'pg_catalog.pg_ts_dict'::pg_catalog.regclass AND m.objid = d.oid)
        AND (d.dicttemplate < 16384 OR EXISTS (SELECT FROM member m
            WHERE m.classid = 'pg_catalog.pg_ts_template'::pg_catalog.regclass AND m.objid = d.dicttemplate))
), config AS (
    SELECT c.*, pgherd.qualified(c.cfgnamespace, c.cfgname) AS full_name FROM pg_catalog.pg_ts_config c
    WHERE c.oid >= 16384 AND c.cfgnamespace::pg_catalog.regnamespace::text !~ '^pg_temp'
        AND NOT EXISTS (SELECT FROM member m WHERE m.classid = 'pg_catalog.pg_ts_config'::pg_catalog.regclass AND m.objid = c.oid)
        AND (c.cfgparser < 16384 OR EXISTS (SELECT FROM member m
            WHERE m.classid = 'pg_catalog.pg_ts_parser'::pg_catalog.regclass AND m.objid = c.cfgparser))
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_ts_config_map p WHERE p.mapcfg = c.oid AND p.mapdict >= 16384
            AND NOT EXISTS (SELECT FROM dictionary d WHERE d.oid = p.mapdict) AND NOT EXISTS (SELECT FROM member m
                WHERE m.classid = 'pg_catalog.pg_ts_dict'::pg_catalog.regclass AND m.objid = p.mapdict))
), needed AS (
    SELECT m.extension FROM member m WHERE (m.classid, m.objid) IN (
        SELECT 'pg_catalog.pg_ts_template'::pg_catalog.regclass, d.dicttemplate FROM dictionary d
        UNION ALL SELECT 'pg_catalog.pg_ts_parser'::pg_catalog.regclass, c.cfgparser FROM config c
        UNION ALL SELECT 'pg_catalog.pg_ts_dict'::pg_catalog.regclass, p.mapdict FROM config c JOIN pg_catalog.pg_ts_config_map p ON p.mapcfg = c.oid)
)
SELECT 1 AS place, 'pg_catalog.pg_extension'::pg_catalog.regclass::oid AS classid, e.oid AS objid, e.extnamespace AS schema,
    'extension' AS kind, e.extname::text AS name, pgherd.extension_guard(e.extname) AS guard,
    pg_catalog.jsonb_build_array(pgherd.extension_ddl(e.extname, n.nspname, e.extversion, ' CASCADE')) AS ddl
FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.oid IN (SELECT n.extension FROM needed n)
UNION ALL
SELECT 2, 'pg_catalog.pg_ts_dict'::pg_catalog.regclass, d.oid, d.dictnamespace, 'text search dictionary', d.full_name,
    pg_catalog.format('NOT EXISTS (SELECT FROM pg_catalog.pg_ts_dict WHERE dictname = %1$L AND dictnamespace = to_regnamespace(%2$L)) AND '
        'pg_catalog.pg_has_role(%3$L, ''USAGE'') AND pg_catalog.has_schema_privilege(to_regnamespace(%2$L)::oid, ''CREATE'')', d.dictname, d.dictnamespace::pg_catalog.regnamespace::text,
        pg_catalog.pg_get_userbyid(d.dictowner)),
    pg_catalog.jsonb_build_array(pg_catalog.format('CREATE TEXT SEARCH DICTIONARY %s (TEMPLATE = %s%s)', d.full_name,
            pgherd.qualified(t.tmplnamespace, t.tmplname), ', ' || d.dictinitoption),
        pg_catalog.format('ALTER TEXT SEARCH DICTIONARY %s OWNER TO %I', d.full_name, pg_catalog.pg_get_userbyid(d.dictowner)))
FROM dictionary d JOIN pg_catalog.pg_ts_template t ON t.oid = d.dicttemplate
UNION ALL
SELECT 3, 'pg_catalog.pg_ts_config'::pg_catalog.regclass, c.oid, c.cfgnamespace, 'text search configuration', c.full_name,
    pg_catalog.format('NOT EXISTS (SELECT FROM pg_catalog.pg_ts_config WHERE cfgname = %1$L AND cfgnamespace = to_regnamespace(%2$L)) AND '
        'pg_catalog.pg_has_role(%3$L, ''USAGE'') AND pg_catalog.has_schema_privilege(to_regnamespace(%2$L)::oid, ''CREATE'')', c.cfgname, c.cfgnamespace::pg_catalog.regnamespace::text,
        pg_catalog.pg_get_userbyid(c.cfgowner)),
    pg_catalog.jsonb_build_array(pg_catalog.format('CREATE TEXT SEARCH CONFIGURATION %s (PARSER = %s)', c.full_name,
            pgherd.qualified(p.prsnamespace, p.prsname)))
        || coalesce((SELECT pg_catalog.jsonb_agg(pg_catalog.format('ALTER TEXT SEARCH CONFIGURATION %s ADD MAPPING FOR %I WITH %s', c.full_name,
                t.alias, m.dictionaries) ORDER BY t.tokid)
            FROM pg_catalog.ts_token_type(p.oid) t, LATERAL (
                SELECT pg_catalog.string_agg(pgherd.qualified(d.dictnamespace, d.dictname), ', ' ORDER BY m.mapseqno) AS dictionaries
                FROM pg_catalog.pg_ts_config_map m JOIN pg_catalog.pg_ts_dict d ON d.oid = m.mapdict
                WHERE m.mapcfg = c.oid AND m.maptokentype = t.tokid) m
            WHERE m.dictionaries IS NOT NULL), '[]')
        || pg_catalog.jsonb_build_array(pg_catalog.format('ALTER TEXT SEARCH CONFIGURATION %s OWNER TO %I', c.full_name,
            pg_catalog.pg_get_userbyid(c.cfgowner)))
FROM config c JOIN pg_catalog.pg_ts_parser p ON p.oid = c.cfgparser;

-- The same, asked for only where there is any: the view is long, and each description of a table would plan and read it.
CREATE OR REPLACE FUNCTION pgherd.text_search_objects() RETURNS SETOF pgherd.worker_text_search
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_ts_config c WHERE c.oid >= 16384) OR EXISTS (SELECT FROM pg_catalog.pg_ts_dict d WHERE d.oid >= 16384) THEN
        RETURN QUERY SELECT * FROM pgherd.worker_text_search;
    END IF;
END
$$;

-- Makes a function that is no aggregate, with its owner and who may execute it. What the role that makes it has been given comes
-- last: until then it is the owner.
CREATE OR REPLACE FUNCTION pgherd.function_ddl(function oid) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.jsonb_build_array(pg_catalog.pg_get_functiondef(p.oid))
        || CASE WHEN p.proacl IS NULL THEN '[]' ELSE
            pg_catalog.jsonb_build_array(pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f.name)) END
        || coalesce(g.others, '[]')
        || pg_catalog.jsonb_build_array(pg_catalog.format('ALTER ROUTINE %s OWNER TO %I', f.name,
            pg_catalog.pg_get_userbyid(p.proowner)))
        || coalesce(g.own, '[]')
        || CASE WHEN NOT g.owner_may AND pg_catalog.pg_has_role(p.proowner, 'USAGE') THEN
            pg_catalog.jsonb_build_array(pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM %I', f.name,
                pg_catalog.pg_get_userbyid(p.proowner))) ELSE '[]' END
    FROM pg_catalog.pg_proc p,
        LATERAL (SELECT (pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0)).identity AS name) f,
        LATERAL (SELECT
            pg_catalog.jsonb_agg(x.ddl) FILTER (WHERE x.grantee <> p.proowner AND NOT x.is_own) AS others,
            pg_catalog.jsonb_agg(x.ddl) FILTER (WHERE x.grantee <> p.proowner AND x.is_own
                AND pg_catalog.pg_has_role(p.proowner, 'USAGE')) AS own,
            p.proacl IS NULL OR coalesce(pg_catalog.bool_or(x.grantee = p.proowner), false) AS owner_may
            FROM (SELECT a.grantee, a.grantee <> 0 AND pg_catalog.pg_get_userbyid(a.grantee) = current_user AS is_own,
                    pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO %s%s', f.name, CASE WHEN a.grantee = 0 THEN 'PUBLIC'
                            ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END,
                        CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS ddl
                FROM pg_catalog.aclexplode(p.proacl) a) x) g
    WHERE p.oid = $1
$$;

CREATE OR REPLACE VIEW pgherd.described_schema AS
SELECT n.oid, 'schema' AS kind, n.nspname::text AS name,
    pg_catalog.format('to_regnamespace(%L) IS NULL', pg_catalog.quote_ident(n.nspname)) AS guard,
    pg_catalog.jsonb_build_array(pg_catalog.format('CREATE SCHEMA %I AUTHORIZATION %I', n.nspname,
        pg_catalog.pg_get_userbyid(n.nspowner)))
    || coalesce((SELECT pg_catalog.jsonb_agg(pg_catalog.format('GRANT %s ON SCHEMA %I TO %s%s', a.privilege_type,
            n.nspname, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(a.grantee)) END,
            CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END))
        FROM pg_catalog.aclexplode(n.nspacl) a WHERE a.grantee <> n.nspowner), '[]') AS ddl
FROM pg_catalog.pg_namespace n;

-- Whether a table needs nothing but its schema, nor the database's tables anything: most are so, and the whole search is long.
CREATE OR REPLACE FUNCTION pgherd.needs_schema_only(relation oid) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM pgherd.worker_extensions)
        AND NOT EXISTS (SELECT FROM pgherd.text_search_objects())
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = $1 AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard')
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy p WHERE p.polrelid = $1)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = $1)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_depend d ON d.objid = c.relnamespace
            WHERE c.oid = $1 AND d.classid = 'pg_namespace'::pg_catalog.regclass)
        -- Nothing of the table leads to what is not the table's.
        AND NOT EXISTS (
            SELECT FROM (
                SELECT 'pg_class'::pg_catalog.regclass::oid, $1
                UNION ALL SELECT 'pg_attrdef'::pg_catalog.regclass, f.oid FROM pg_catalog.pg_attrdef f WHERE f.adrelid = $1
                UNION ALL SELECT 'pg_constraint'::pg_catalog.regclass, k.oid
                    FROM pg_catalog.pg_constraint k WHERE k.conrelid = $1 AND k.contype <> 'f'
                UNION ALL SELECT 'pg_class'::pg_catalog.regclass, i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = $1
            ) r(classid, objid),
                LATERAL (SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
                    WHERE d.classid = r.classid AND d.objid = r.objid OFFSET 0) d
            WHERE NOT (d.refclassid = 'pg_class'::pg_catalog.regclass AND (d.refobjid = $1
                    OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indexrelid = d.refobjid AND i.indrelid = $1)))
                AND NOT (d.refclassid = 'pg_constraint'::pg_catalog.regclass AND EXISTS (SELECT FROM pg_catalog.pg_constraint k
                    WHERE k.oid = d.refobjid AND k.conrelid = $1 AND k.contype <> 'f'))
                AND NOT (d.refclassid = 'pg_namespace'::pg_catalog.regclass AND d.refobjid = (SELECT c.relnamespace
                    FROM pg_catalog.pg_class c WHERE c.oid = $1))
                AND NOT (r.classid = 'pg_attrdef'::pg_catalog.regclass AND EXISTS (
                    SELECT FROM pg_catalog.pg_attrdef f JOIN pg_catalog.pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
                    WHERE f.oid = r.objid AND a.attgenerated = ''
                        AND pgherd.default_on_coordinator(f.oid, pg_catalog.pg_get_expr(f.adbin, f.adrelid)))));
END
$$;

-- What must exist before the table can be made on another server. Objects of extensions stand for the extension;
-- built-in objects do not appear in pg_depend. 'guard' is an SQL condition that is true where the object is missing;
-- 'depends_on' names other members of the list by 'id'. An object that has no 'ddl' cannot be made elsewhere.
CREATE OR REPLACE FUNCTION pgherd.describe_prerequisites(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF pgherd.needs_schema_only($1) THEN
        RETURN (SELECT pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object(
            'id', 'pg_namespace'::pg_catalog.regclass::oid || '/' || n.oid,
            'kind', n.kind, 'name', n.name, 'guard', n.guard, 'ddl', n.ddl, 'depends_on', '[]'::jsonb))
            FROM pg_catalog.pg_class c JOIN pgherd.described_schema n ON n.oid = c.relnamespace WHERE c.oid = $1);
    END IF;
    RETURN (
    WITH RECURSIVE roots(classid, objid) AS (
        SELECT 'pg_class'::pg_catalog.regclass::oid, $1
        UNION ALL SELECT 'pg_attrdef'::pg_catalog.regclass, d.oid
            FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            WHERE d.adrelid = $1 AND (a.attgenerated <> ''
                OR NOT pgherd.default_on_coordinator(d.oid, pg_catalog.pg_get_expr(d.adbin, d.adrelid)))
        UNION ALL SELECT 'pg_constraint'::pg_catalog.regclass, oid
            FROM pg_catalog.pg_constraint WHERE conrelid = $1 AND contype <> 'f'
        UNION ALL SELECT 'pg_class'::pg_catalog.regclass, indexrelid FROM pg_catalog.pg_index WHERE indrelid = $1
        UNION ALL SELECT 'pg_trigger'::pg_catalog.regclass, oid
            FROM pg_catalog.pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal AND tgname !~* '^[!~]?pgherd_guard'
                AND NOT pgherd.fires_here($1)
        UNION ALL SELECT 'pg_policy'::pg_catalog.regclass, oid FROM pg_catalog.pg_policy WHERE polrelid = $1
        UNION ALL SELECT 'pg_statistic_ext'::pg_catalog.regclass, oid FROM pg_catalog.pg_statistic_ext
            WHERE stxrelid = $1 AND stxnamespace::pg_catalog.regnamespace::text !~ '^pg_temp_'
        UNION ALL SELECT 'pg_namespace'::pg_catalog.regclass, e.schema FROM pgherd.worker_extensions e
    ),
    -- In place, where an index finds the few that are asked for: not joined, but asked (LATERAL … OFFSET 0), or it is scanned.
    edges(classid, objid, refclassid, refobjid) AS NOT MATERIALIZED (
        SELECT d.classid, d.objid, d.refclassid, d.refobjid FROM pg_catalog.pg_depend d
            WHERE d.deptype IN ('n', 'a', 'i', 'e')
            -- A member of an extension leads to the extension only.
            AND (d.deptype = 'e' OR NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                WHERE e.classid = d.classid AND e.objid = d.objid AND e.deptype = 'e'))
            -- A composite type's class leads to the types of its columns, not back to the type.
            AND NOT (d.deptype = 'i' AND d.classid = 'pg_class'::pg_catalog.regclass
                AND d.refclassid = 'pg_type'::pg_catalog.regclass)
            -- What initdb makes for text search is everywhere.
            AND NOT (d.refobjid < 16384 AND d.refclassid IN ('pg_ts_config'::pg_catalog.regclass, 'pg_ts_dict'::pg_catalog.regclass,
                'pg_ts_parser'::pg_catalog.regclass, 'pg_ts_template'::pg_catalog.regclass))
            -- An owned sequence's way back to its table is none of ours.
            AND NOT (d.refclassid = 'pg_class'::pg_catalog.regclass AND d.refobjid = $1)
        UNION ALL
        SELECT 'pg_type'::pg_catalog.regclass, t.oid, 'pg_class'::pg_catalog.regclass, t.typrelid
            FROM pg_catalog.pg_type t WHERE t.typtype = 'c'
        UNION ALL
        SELECT 'pg_type'::pg_catalog.regclass, c.contypid, 'pg_constraint'::pg_catalog.regclass, c.oid
            FROM pg_catalog.pg_constraint c WHERE c.conrelid = 0 AND c.contypid <> 0
        UNION ALL
        SELECT 'pg_type'::pg_catalog.regclass, x.type, 'pg_cast'::pg_catalog.regclass, k.oid
            FROM pg_catalog.pg_cast k, LATERAL (VALUES (k.castsource), (k.casttarget)) x(type) WHERE k.oid >= 16384
    ),
    reached(classid, objid) AS (
        SELECT classid, objid FROM roots
        UNION
        SELECT e.refclassid, e.refobjid FROM reached r, LATERAL (
            SELECT e.refclassid, e.refobjid FROM edges e WHERE e.classid = r.classid AND e.objid = r.objid
            -- What a body calls is known by its name alone.
            UNION ALL
            SELECT 'pg_proc'::pg_catalog.regclass, g.oid FROM pg_catalog.pg_proc f, pg_catalog.pg_proc g
            WHERE r.classid = 'pg_proc'::pg_catalog.regclass AND f.oid = r.objid AND f.prosqlbody IS NULL
                AND f.prolang IN (SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname IN ('sql', 'plpgsql'))
                AND g.oid >= 16384 AND g.oid <> f.oid AND g.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
                AND g.prokind = 'f' AND strpos(lower(f.prosrc), lower(g.proname)) > 0
                AND f.prosrc ~* ('(^|[^a-z0-9_$])' || regexp_replace(g.proname, E'(\\W)', E'\\\\\\1', 'g') || E'"?\\s*[(]')
        ) e
        -- Other relations are named, not entered.
        WHERE r.classid <> 'pg_class'::pg_catalog.regclass OR r.objid = $1
            OR (SELECT c.relkind IN ('c', 'i') FROM pg_catalog.pg_class c WHERE c.oid = r.objid)
    ),
    described AS (
        SELECT 'pg_extension'::pg_catalog.regclass::oid AS classid, e.oid AS objid, 'extension' AS kind, e.name::text, e.guard,
            pg_catalog.jsonb_build_array(e.ddl) AS ddl
        FROM pgherd.worker_extensions e
        WHERE ('pg_extension'::pg_catalog.regclass::oid, e.oid) NOT IN (SELECT r.classid, r.objid FROM reached r)
        UNION ALL
        SELECT w.classid, w.objid, w.kind, w.name, w.guard, w.ddl FROM pgherd.text_search_objects() w
        WHERE w.kind <> 'extension' OR NOT EXISTS (SELECT FROM pgherd.worker_extensions e WHERE e.oid = w.objid)
            AND (w.classid, w.objid) NOT IN (SELECT r.classid, r.objid FROM reached r)
        UNION ALL
        SELECT r.classid, r.objid, x.*
        FROM reached r, LATERAL (
            SELECT n.kind, n.name, n.guard, n.ddl FROM pgherd.described_schema n
            WHERE r.classid = 'pg_namespace'::pg_catalog.regclass AND n.oid = r.objid
            UNION ALL
            SELECT 'extension', e.extname::text,
                pg_catalog.format('NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = %L)', e.extname),
                pg_catalog.jsonb_build_array(pgherd.extension_ddl(e.extname, n.nspname, e.extversion, ''))
            FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
            WHERE r.classid = 'pg_extension'::pg_catalog.regclass AND e.oid = r.objid AND e.extname <> 'plpgsql'
            UNION ALL
            SELECT 'collation', f.name,
                pg_catalog.format('to_regcollation(%L) IS NULL', f.name),
                pg_catalog.jsonb_build_array(pg_catalog.format('CREATE COLLATION %s (PROVIDER = %s, %sDETERMINISTIC = %s%s)', f.name,
                    CASE c.collprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END,
                    CASE WHEN f.locale IS NOT NULL THEN pg_catalog.format('LOCALE = %L, ', f.locale)
                        ELSE pg_catalog.format('LC_COLLATE = %L, LC_CTYPE = %L, ', c.collcollate, c.collctype) END,
                    c.collisdeterministic::text,
                    coalesce(', RULES = ' || pg_catalog.quote_literal(pg_catalog.to_jsonb(c) ->> 'collicurules'), '')),
                    pg_catalog.format('ALTER COLLATION %s OWNER TO %I', f.name, pg_catalog.pg_get_userbyid(c.collowner)))
            FROM pg_catalog.pg_collation c, LATERAL (SELECT pgherd.qualified(c.collnamespace, c.collname) AS name,
                coalesce(pg_catalog.to_jsonb(c) ->> 'colliculocale', pg_catalog.to_jsonb(c) ->> 'colllocale') AS locale) f
            WHERE r.classid = 'pg_collation'::pg_catalog.regclass AND c.oid = r.objid
            UNION ALL
            -- Array types and multiranges come with their element's type; their rows only pass the dependency on.
            SELECT CASE WHEN f.made THEN 'type' ELSE 'derived' END, f.name,
                pg_catalog.format('to_regtype(%L) IS NULL', f.name),
                CASE WHEN f.made THEN pg_catalog.jsonb_build_array(
                    CASE t.typtype
                    WHEN 'e' THEN pg_catalog.format('CREATE TYPE %s AS ENUM (%s)', f.name,
                        (SELECT pg_catalog.string_agg(pg_catalog.quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder)
                            FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid))
                    WHEN 'c' THEN pg_catalog.format('CREATE TYPE %s AS (%s)', f.name,
                        (SELECT pg_catalog.string_agg(pg_catalog.format('%I %s%s', a.attname,
                            pg_catalog.format_type(a.atttypid, a.atttypmod),
                            CASE WHEN a.attcollation <> y.typcollation THEN
                                ' COLLATE ' || (SELECT pgherd.qualified(c.collnamespace, c.collname)
                                    FROM pg_catalog.pg_collation c WHERE c.oid = a.attcollation) ELSE '' END), ', ' ORDER BY a.attnum)
                            FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type y ON y.oid = a.atttypid
                            WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped))
                    WHEN 'd' THEN pg_catalog.format('CREATE DOMAIN %s AS %s', f.name,
                            pg_catalog.format_type(t.typbasetype, t.typtypmod))
                        || coalesce((SELECT ' COLLATE ' || pgherd.qualified(c.collnamespace, c.collname)
                            FROM pg_catalog.pg_collation c JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
                            WHERE c.oid = t.typcollation AND t.typcollation <> b.typcollation), '')
                        || coalesce(' DEFAULT ' || pg_catalog.pg_get_expr(t.typdefaultbin, 0), '')
                        -- From PostgreSQL 17 on it has a name.
                        || CASE WHEN t.typnotnull THEN coalesce((SELECT pg_catalog.format(' CONSTRAINT %I', k.conname)
                            FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'n'), '') || ' NOT NULL' ELSE '' END
                        || coalesce((SELECT pg_catalog.string_agg(pg_catalog.format(' CONSTRAINT %I %s', k.conname,
                                pg_catalog.pg_get_constraintdef(k.oid)), '' ORDER BY k.oid)
                            FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated), '')
                    WHEN 'r' THEN (SELECT pg_catalog.format('CREATE TYPE %s AS RANGE (SUBTYPE = %s, SUBTYPE_OPCLASS = %s%s%s%s)', f.name,
                            pg_catalog.format_type(g.rngsubtype, NULL), pgherd.qualified(o.opcnamespace, o.opcname),
                            coalesce(', COLLATION = ' || (SELECT pgherd.qualified(c.collnamespace, c.collname)
                                FROM pg_catalog.pg_collation c WHERE c.oid = g.rngcollation), ''),
                            CASE WHEN g.rngsubdiff <> 0 THEN ', SUBTYPE_DIFF = ' || g.rngsubdiff::pg_catalog.regproc ELSE '' END,
                            ', MULTIRANGE_TYPE_NAME = ' || pgherd.qualified(v.typnamespace, v.typname))
                        FROM pg_catalog.pg_range g JOIN pg_catalog.pg_opclass o ON o.oid = g.rngsubopc
                            JOIN pg_catalog.pg_type v ON v.oid = g.rngmultitypid
                        WHERE g.rngtypid = t.oid AND g.rngcanonical = 0)
                    END,
                    pg_catalog.format('ALTER %s %s OWNER TO %I', CASE WHEN t.typtype = 'd' THEN 'DOMAIN' ELSE 'TYPE' END, f.name,
                        pg_catalog.pg_get_userbyid(t.typowner)))
                || coalesce((SELECT pg_catalog.jsonb_agg(pg_catalog.format('ALTER DOMAIN %s ADD CONSTRAINT %I %s', f.name, k.conname,
                        pg_catalog.pg_get_constraintdef(k.oid)) ORDER BY k.oid)
                    FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c' AND NOT k.convalidated), '[]')
                END
            FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class y ON y.oid = t.typrelid,
                LATERAL (SELECT pgherd.qualified(t.typnamespace, t.typname) AS name,
                    t.typtype IN ('e', 'd', 'r', 'b', 'p') AND NOT (t.typcategory = 'A' AND t.typelem <> 0)
                        OR t.typtype = 'c' AND y.relkind = 'c' AS made) f
            WHERE r.classid = 'pg_type'::pg_catalog.regclass AND t.oid = r.objid
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                    WHERE e.classid = r.classid AND e.objid = r.objid AND e.deptype = 'e')
            UNION ALL
            SELECT 'function', p.oid::pg_catalog.regprocedure::text,
                pg_catalog.format('to_regprocedure(%L) IS NULL', p.oid::pg_catalog.regprocedure::text),
                CASE WHEN p.prokind <> 'a' THEN pgherd.function_ddl(p.oid) END
            FROM pg_catalog.pg_proc p
            WHERE r.classid = 'pg_proc'::pg_catalog.regclass AND p.oid = r.objid
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                    WHERE e.classid = r.classid AND e.objid = r.objid AND e.deptype = 'e')
            UNION ALL
            SELECT 'cast', f.name,
                pg_catalog.format('NOT EXISTS (SELECT FROM pg_catalog.pg_cast WHERE castsource = to_regtype(%L) AND casttarget = to_regtype(%L))',
                    f.source, f.target),
                pg_catalog.jsonb_build_array(pg_catalog.format('CREATE CAST (%s) %s%s', f.name,
                    CASE k.castmethod WHEN 'f' THEN 'WITH FUNCTION ' || k.castfunc::pg_catalog.regprocedure
                        WHEN 'b' THEN 'WITHOUT FUNCTION' ELSE 'WITH INOUT' END,
                    CASE k.castcontext WHEN 'a' THEN ' AS ASSIGNMENT' WHEN 'i' THEN ' AS IMPLICIT' ELSE '' END))
            FROM pg_catalog.pg_cast k, LATERAL (SELECT pg_catalog.format_type(k.castsource, NULL) AS source,
                    pg_catalog.format_type(k.casttarget, NULL) AS target) t,
                LATERAL (SELECT t.*, t.source || ' AS ' || t.target AS name) f
            WHERE r.classid = 'pg_cast'::pg_catalog.regclass AND k.oid = r.objid
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                    WHERE e.classid = r.classid AND e.objid = r.objid AND e.deptype = 'e')
            UNION ALL
            SELECT 'relation', pgherd.qualified(c.relnamespace, c.relname),
                pg_catalog.format('to_regclass(%L) IS NULL', pgherd.qualified(c.relnamespace, c.relname)), NULL
            FROM pg_catalog.pg_class c
            WHERE r.classid = 'pg_class'::pg_catalog.regclass AND c.oid = r.objid AND c.oid <> $1
                AND c.relkind NOT IN ('i', 'I', 'c', 't')
            UNION ALL
            SELECT o.type, o.identity, 'true', NULL
            FROM pg_catalog.pg_identify_object(r.classid, r.objid, 0) o
            WHERE r.classid NOT IN ('pg_namespace'::pg_catalog.regclass, 'pg_extension'::pg_catalog.regclass,
                    'pg_collation'::pg_catalog.regclass, 'pg_type'::pg_catalog.regclass, 'pg_proc'::pg_catalog.regclass,
                    'pg_class'::pg_catalog.regclass, 'pg_attrdef'::pg_catalog.regclass, 'pg_constraint'::pg_catalog.regclass,
                    'pg_trigger'::pg_catalog.regclass, 'pg_policy'::pg_catalog.regclass, 'pg_rewrite'::pg_catalog.regclass,
                    'pg_statistic_ext'::pg_catalog.regclass, 'pg_cast'::pg_catalog.regclass)
                AND (r.classid NOT IN ('pg_ts_config'::pg_catalog.regclass, 'pg_ts_dict'::pg_catalog.regclass)
                    OR NOT EXISTS (SELECT FROM pgherd.text_search_objects() w WHERE w.classid = r.classid AND w.objid = r.objid))
                AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e
                    WHERE e.classid = r.classid AND e.objid = r.objid AND e.deptype = 'e')
        ) x
    ),
    -- Which listed objects a listed object needs, also through unlisted ones (array types, constraints, …).
    needs(id, classid, objid) AS (
        SELECT d.classid || '/' || d.objid, e.refclassid, e.refobjid
        FROM described d, LATERAL (SELECT e.refclassid, e.refobjid FROM edges e
            WHERE e.classid = d.classid AND e.objid = d.objid AND e.refclassid <> 'pg_cast'::pg_catalog.regclass OFFSET 0) e
        UNION
        SELECT n.id, e.refclassid, e.refobjid
        FROM needs n, LATERAL (SELECT e.refclassid, e.refobjid FROM edges e
            WHERE e.classid = n.classid AND e.objid = n.objid AND e.refclassid <> 'pg_cast'::pg_catalog.regclass OFFSET 0) e
        WHERE NOT EXISTS (SELECT FROM described d WHERE d.classid = n.classid AND d.objid = n.objid AND d.kind <> 'derived')
    )
    SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
        'id', d.classid || '/' || d.objid,
        'kind', d.kind, 'name', d.name, 'guard', d.guard, 'ddl', d.ddl,
        'depends_on', (SELECT coalesce(pg_catalog.jsonb_agg(DISTINCT x.classid || '/' || x.objid), '[]')
            FROM needs n JOIN described x ON x.classid = n.classid AND x.objid = n.objid AND x.kind <> 'derived'
            WHERE n.id = d.classid || '/' || d.objid AND (x.classid, x.objid) <> (d.classid, d.objid))
        ) ORDER BY d.classid, d.objid), '[]')
    FROM described d WHERE d.kind <> 'derived'
    );
END
$$;

-- Everything. NULL where there is no such relation. Beside many tables PostgreSQL would compile each of its queries, for seconds.
CREATE OR REPLACE FUNCTION pgherd.describe_table(relation oid) RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET intervalstyle = 'postgres' SET quote_all_identifiers = off
SET bytea_output = 'hex' SET extra_float_digits = 1 SET xmlbinary = 'base64' SET jit = off
    -- Plans that are kept are made for many tables, whoever is the first.
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
#variable_conflict use_column
BEGIN
    RETURN (
    SELECT pg_catalog.jsonb_build_object(
        'oid', c.oid::bigint,
        'schema', n.nspname,
        'name', c.relname,
        'kind', CASE WHEN l.relation IS NULL THEN c.relkind ELSE 'r' END,
        'persistence', c.relpersistence,
        'owner', pg_catalog.pg_get_userbyid(c.relowner),
        'caller_owns', pg_catalog.pg_has_role(c.relowner, 'USAGE'),
        'bytes', pg_catalog.pg_relation_size(c.oid),
        'access_method', (SELECT m.amname FROM pg_catalog.pg_am m WHERE m.oid = c.relam),
        'options', CASE WHEN l.relation IS NULL THEN c.reloptions ELSE l.options END,
        'toast_options', CASE WHEN l.relation IS NULL
            THEN (SELECT t.reloptions FROM pg_catalog.pg_class t WHERE t.oid = c.reltoastrelid) ELSE l.toast_options END,
        'row_security', c.relrowsecurity,
        'force_row_security', c.relforcerowsecurity,
        'replica_identity', c.relreplident,
        'replica_identity_index', (SELECT x.relname FROM pg_catalog.pg_index i
            JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid AND i.indisreplident),
        'is_partition', c.relispartition,
        'is_catalog', c.oid < 16384 OR n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast', 'pgherd'),
        'in_extension', (SELECT e.extname FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
            WHERE d.classid = 'pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e'
            AND d.refclassid = 'pg_extension'::pg_catalog.regclass),
        'of_type', CASE WHEN c.reloftype <> 0 THEN pg_catalog.format_type(c.reloftype, NULL) END,
        'partition_by', CASE WHEN c.relkind = 'p' AND l.relation IS NULL THEN pg_catalog.pg_get_partkeydef(c.oid) END,
        'parent', CASE WHEN c.relispartition THEN
            (SELECT i.inhparent::bigint FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid) END,
        'is_leaf', l.relation IS NOT NULL,
        'bound', pg_catalog.pg_get_expr(c.relpartbound, c.oid),
        'inherits', (SELECT coalesce(pg_catalog.jsonb_agg(i.inhparent::pg_catalog.regclass::text ORDER BY i.inhseqno), '[]')
            FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid),
        'children', (SELECT coalesce(pg_catalog.jsonb_agg(i.inhrelid::pg_catalog.regclass::text ORDER BY i.inhrelid), '[]')
            FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class h ON h.oid = i.inhrelid
            WHERE i.inhparent = c.oid AND h.relnamespace <> 'pgherd'::pg_catalog.regnamespace),
        'grants', pgherd.describe_acl(c.relacl),
        -- Which privileges there are differs between versions.
        'owner_has_all', NOT EXISTS (
            SELECT x.privilege_type FROM pg_catalog.aclexplode(pg_catalog.acldefault('r', c.relowner)) x WHERE x.grantee = c.relowner
            EXCEPT SELECT x.privilege_type FROM pg_catalog.aclexplode(c.relacl) x WHERE x.grantee = c.relowner)
            OR c.relacl IS NULL,
        'columns', pgherd.describe_columns(c.oid),
        'constraints', pgherd.describe_constraints(c.oid),
        'incoming', pgherd.describe_incoming(c.oid),
        'indexes', pgherd.describe_indexes(c.oid),
        'triggers', pgherd.describe_triggers(c.oid),
        -- DISABLE TRIGGER ALL. (See guard_partitioned for what is ours.)
        'keys_off', (SELECT coalesce(pg_catalog.bool_and(t.tgenabled = 'D'), false) FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_constraint k ON k.oid = t.tgconstraint
                JOIN pg_catalog.pg_class r ON r.oid = k.conrelid
            WHERE t.tgrelid = c.oid AND t.tgisinternal AND k.contype = 'f'
                AND NOT (k.confrelid = c.oid AND r.relkind = 'p')),
        -- As it is, and as it is to be.
        'fires_here', EXISTS (SELECT FROM pgherd.fires_here h WHERE h.relation = c.oid),
        'to_fire_here', pgherd.fires_here(c.oid),
        'trigger_refusal', pgherd.trigger_refusal(c.oid),
        'rules', pgherd.describe_rules(c.oid),
        'policies', pgherd.describe_policies(c.oid),
        'statistics', pgherd.describe_statistics(c.oid),
        'prerequisites', CASE WHEN c.relkind IN ('r', 'p') THEN pgherd.describe_prerequisites(c.oid) ELSE '[]' END)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN pgherd.leaf l ON l.relation = c.oid
    WHERE c.oid = $1
    );
END
$$;
