-- Foreign keys of local tables that lead to distributed ones (docs/decisions/0022). Their rows are on the coordinator, the rows
-- that they refer to on the workers, so neither can check by itself. Run behind inside.sql; repeating it is harmless.

-- Those that there are. (What is referenced through a partition is the partitioned table's.)
CREATE OR REPLACE VIEW pgherd.local_keys AS
    SELECT k.oid, k.conname, k.conrelid, k.confrelid, k.conkey, k.confkey, k.conpfeqop, k.confmatchtype, k.confdeltype,
        k.confupdtype
    FROM pg_catalog.pg_constraint k
        JOIN pgherd.pg_dist_partition p ON p.logicalrelid = k.confrelid AND p.partmethod = 'h'
    WHERE k.contype = 'f' AND k.conparentid = 0 AND k.conrelid <> k.confrelid
        AND NOT EXISTS (SELECT FROM pgherd.pg_dist_partition c WHERE c.logicalrelid = k.conrelid);

-- The foreign keys of a table, and those that refer to it, which no index of pg_constraint tells.
CREATE OR REPLACE FUNCTION pgherd.keys_at(relation oid) RETURNS SETOF oid
LANGUAGE sql STABLE AS $$
    SELECT k.oid FROM pg_catalog.pg_constraint k WHERE k.conrelid = $1 AND k.contype = 'f'
    UNION
    SELECT k.oid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_constraint k ON k.oid = d.objid AND k.contype = 'f'
    WHERE d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid = $1
        AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass AND k.confrelid = $1
$$;

-- The values of a row's columns as text, by which they are told apart. As their types write them: a cast to text may be a
-- function of anybody's.
CREATE OR REPLACE FUNCTION pgherd.values_in(row_now anyelement, columns name[]) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres'
    SET extra_float_digits = 3 AS $$
DECLARE
    found text[];
BEGIN
    EXECUTE (SELECT format('SELECT ARRAY[%s]::text[]',
            string_agg(format('CASE num_nulls(($1).%1$I) WHEN 0 THEN concat(($1).%1$I) END', c.name), ', ' ORDER BY c.number))
        FROM unnest(columns) WITH ORDINALITY c(name, number)) INTO found USING row_now;
    RETURN found;
END
$$;

-- The same as the session writes them, for PostgreSQL's error.
CREATE OR REPLACE FUNCTION pgherd.shown_in(row_now anyelement, columns name[]) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found pg_catalog.text;
BEGIN
    EXECUTE (SELECT pg_catalog.format('SELECT pg_catalog.concat_ws('', '', %s)',
            pg_catalog.string_agg(pg_catalog.format('pg_catalog.concat(($1).%I)', c.name), ', ' ORDER BY c.number))
        FROM pg_catalog.unnest(columns) WITH ORDINALITY c(name, number)) INTO found USING row_now;
    RETURN found;
END
$$;

-- Columns of a relation by number, as they are named now.
CREATE OR REPLACE FUNCTION pgherd.names_of(relation oid, numbers int2[]) RETURNS name[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT array_agg(a.attname ORDER BY n.at) FROM unnest(numbers) WITH ORDINALITY n(number, at)
        JOIN pg_attribute a ON a.attrelid = relation AND a.attnum = n.number
$$;

-- `x.a = ($1).b AND …` by the operators of the key: the parameter is a row of the other side.
DROP FUNCTION IF EXISTS pgherd.key_condition(oid, bool, text[]);
CREATE OR REPLACE FUNCTION pgherd.key_condition(key oid, of_referenced bool) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(CASE WHEN of_referenced
            THEN format('x.%I OPERATOR(%I.%s) ($1).%I', r.attname, n.nspname, o.oprname, f.attname)
            ELSE format('($1).%I OPERATOR(%I.%s) x.%I', r.attname, n.nspname, o.oprname, f.attname) END
        -- The referenced column's counts, as in PostgreSQL.
        || CASE WHEN f.attcollation <> r.attcollation AND f.attcollation <> 0 AND r.attcollation <> 0
            THEN ' COLLATE ' || r.attcollation::regcollation ELSE '' END, ' AND ' ORDER BY at)
    FROM pg_constraint k CROSS JOIN generate_subscripts(k.conkey, 1) at
        JOIN pg_attribute f ON f.attrelid = k.conrelid AND f.attnum = k.conkey[at]
        JOIN pg_attribute r ON r.attrelid = k.confrelid AND r.attnum = k.confkey[at]
        JOIN pg_operator o ON o.oid = k.conpfeqop[at] JOIN pg_namespace n ON n.oid = o.oprnamespace
    WHERE k.oid = key
$$;

-- Rows that workers change or delete by themselves, by a foreign key of the referenced table, are not heard of here: nothing may
-- refer to them.
CREATE OR REPLACE FUNCTION pgherd.check_stays(key oid) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k record;
BEGIN
    SELECT l.conname, l.conrelid, l.confrelid, o.confkey INTO k
        FROM pgherd.local_keys l JOIN pg_constraint o ON o.oid = l.oid WHERE l.oid = key;
    -- It changes its own columns; where it deletes rows with those that they refer to, the router refuses to delete these.
    IF EXISTS (SELECT FROM pg_constraint o WHERE o.conrelid = k.confrelid AND o.contype = 'f' AND o.confrelid <> k.confrelid
            AND o.conkey && k.confkey AND (o.confdeltype IN ('n', 'd') OR o.confupdtype IN ('c', 'n', 'd'))) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot have foreign key constraint "%s" of table "%s" to distributed table "%s"', k.conname,
                (SELECT c.relname FROM pg_class c WHERE c.oid = k.conrelid),
                (SELECT c.relname FROM pg_class c WHERE c.oid = k.confrelid)),
            DETAIL = 'A foreign key of the distributed table changes or deletes its rows on the workers.',
            HINT = 'Drop the constraint, distribute both tables, and add it again.';
    END IF;
END
$$;

-- Whether reading a value of the type runs nothing that users have made: a domain has its checks, wherever it is inside. A
-- domain itself is compared as what it stands on.
CREATE OR REPLACE FUNCTION pgherd.reads_plainly(type oid, inside bool DEFAULT false) RETURNS bool
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t record;
BEGIN
    SELECT y.typtype, y.typbasetype, CASE WHEN y.typsubscript = 'array_subscript_handler'::regproc THEN y.typelem ELSE 0 END AS element,
            coalesce(r.rngsubtype, m.rngsubtype) AS part INTO t
        FROM pg_type y LEFT JOIN pg_range r ON r.rngtypid = y.oid LEFT JOIN pg_range m ON m.rngmultitypid = y.oid WHERE y.oid = $1;
    RETURN CASE
        WHEN t.typtype = 'd' THEN NOT inside AND pgherd.reads_plainly(t.typbasetype, inside)
        WHEN t.part IS NOT NULL THEN pgherd.reads_plainly(t.part, true)
        WHEN t.element <> 0 THEN pgherd.reads_plainly(t.element, true)
        ELSE t.typtype IN ('b', 'e') END;
END
$$;

-- Whether the operator of a key takes the referring column's values as they are, or as a cast of PostgreSQL's own makes them.
CREATE OR REPLACE FUNCTION pgherd.compares_plainly(key oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE column_type AS (
        SELECT a.atttypid AS type, o.oprright AS wanted FROM pg_constraint k CROSS JOIN generate_subscripts(k.conkey, 1) at
            JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[at] JOIN pg_operator o ON o.oid = k.conpfeqop[at]
            WHERE k.oid = key
        UNION ALL
        SELECT t.typbasetype, c.wanted FROM column_type c JOIN pg_type t ON t.oid = c.type WHERE t.typtype = 'd'
    )
    SELECT NOT EXISTS (SELECT FROM column_type c JOIN pg_cast p ON p.castsource = c.type AND p.casttarget = c.wanted
        WHERE c.type <> c.wanted AND p.castfunc >= 16384)
$$;

-- Whether the rows that a local table has keep to one of its keys. As the role that asks, whose operators these are: as in
-- PostgreSQL it must see both tables.
CREATE OR REPLACE FUNCTION pgherd.check_key(key oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k record;
    found text;
    mixed bool;
BEGIN
    SELECT l.*, c.relname AS referring, n.nspname, r.relname AS referenced, c.relkind,
            pgherd.names_of(l.conrelid, l.conkey) AS columns, pgherd.names_of(l.confrelid, l.confkey) AS keys
        INTO STRICT k FROM pgherd.local_keys l JOIN pg_class c ON c.oid = l.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_class r ON r.oid = l.confrelid WHERE l.oid = key;
    IF row_security_active(k.conrelid) OR row_security_active(k.confrelid) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot create foreign key constraint "%s": table "%s" is distributed and "%s" is not', k.conname,
                k.referenced, k.referring),
            DETAIL = 'Policies hide rows from the role.';
    END IF;
    EXECUTE (SELECT format('SELECT concat_ws('', '', %s), NOT (%s) FROM %s %s f LEFT JOIN %s r ON %s WHERE (%s) AND r.%I IS NULL LIMIT 1',
            string_agg(format('concat(f.%I)', f.attname), ', ' ORDER BY at),
            string_agg(format('f.%I IS NOT NULL', f.attname), ' AND '),
            CASE k.relkind WHEN 'r' THEN 'ONLY' ELSE '' END, k.conrelid::regclass, k.confrelid::regclass,
            string_agg(format('r.%I OPERATOR(%I.%s) f.%I%s', r.attname, n.nspname, o.oprname, f.attname,
                CASE WHEN f.attcollation <> r.attcollation AND f.attcollation <> 0 AND r.attcollation <> 0 THEN ' COLLATE ' || r.attcollation::regcollation
                ELSE '' END), ' AND '),
            string_agg(format('f.%I IS NOT NULL', f.attname), CASE k.confmatchtype WHEN 'f' THEN ' OR ' ELSE ' AND ' END),
            k.keys[1])
        FROM generate_subscripts(k.conkey, 1) at
            JOIN pg_attribute f ON f.attrelid = k.conrelid AND f.attnum = k.conkey[at]
            JOIN pg_attribute r ON r.attrelid = k.confrelid AND r.attnum = k.confkey[at]
            JOIN pg_operator o ON o.oid = k.conpfeqop[at] JOIN pg_namespace n ON n.oid = o.oprnamespace) INTO found, mixed;
    IF found IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23503',
            MESSAGE = format('insert or update on table "%s" violates foreign key constraint "%s"', k.referring, k.conname),
            DETAIL = CASE WHEN mixed THEN 'MATCH FULL does not allow mixing of null and nonnull key values.'
                ELSE format('Key (%s)=(%s) is not present in table "%s".', array_to_string(k.columns, ', '), found, k.referenced) END,
            SCHEMA = k.nspname, TABLE = k.referring, CONSTRAINT = k.conname;
    END IF;
END
$$;

-- A key whose rows were looked at, or will be. Only routers call this.
CREATE OR REPLACE FUNCTION pgherd.key_is_valid(key oid, valid bool) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
DECLARE
    relation oid;
BEGIN
    UPDATE pg_constraint k SET convalidated = valid WHERE k.oid = key AND k.oid IN (SELECT l.oid FROM pgherd.local_keys l)
        RETURNING k.conrelid INTO relation;
    UPDATE pg_class c SET relname = c.relname WHERE c.oid = relation;
    PERFORM pgherd.note_change('pg_class'::regclass, relation);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.key_is_valid(oid, bool) FROM PUBLIC;

-- From PostgreSQL 18 on.
CREATE OR REPLACE FUNCTION pgherd.has_period(key oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((to_jsonb(k) ->> 'conperiod')::bool, false) FROM pg_constraint k WHERE k.oid = key
$$;

-- In place of RI_FKey_check_ins and RI_FKey_check_upd on the local table, under the constraint's own trigger: so its deferral, and
-- SET CONSTRAINTS, are PostgreSQL's. The row that is referred to is locked on its worker until the transaction ends.
CREATE OR REPLACE FUNCTION pgherd.find_key() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    key record;
    columns name[];
    given text[];
    is_there bool;
BEGIN
    SELECT k.* INTO key FROM pg_trigger t JOIN pgherd.local_keys k ON k.oid = t.tgconstraint
        WHERE t.tgrelid = TG_RELID AND t.tgname = TG_NAME;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    columns := pgherd.names_of(key.conrelid, key.conkey);
    given := pgherd.values_in(NEW, columns);
    IF TG_OP = 'UPDATE' AND given IS NOT DISTINCT FROM pgherd.values_in(OLD, columns)
        OR array_remove(given, NULL) = '{}' THEN
        RETURN NULL;
    END IF;
    IF array_position(given, NULL) IS NOT NULL THEN
        IF key.confmatchtype = 'f' THEN
            RAISE EXCEPTION USING ERRCODE = '23503',
                MESSAGE = format('insert or update on table "%s" violates foreign key constraint "%s"', TG_TABLE_NAME, key.conname),
                DETAIL = 'MATCH FULL does not allow mixing of null and nonnull key values.',
                SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = key.conname;
        END IF;
        RETURN NULL;
    END IF;
    PERFORM pgherd.check_stays(key.oid);
    IF pgherd.has_period(key.oid) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', MESSAGE = format('cannot check foreign key constraint "%s"', key.conname),
            DETAIL = 'It has a PERIOD, and refers to a distributed table.', HINT = format('Distribute "%s" first.', TG_TABLE_NAME);
    END IF;
    EXECUTE format('SELECT pgherd.key_lookup_%s($1)', key.oid) INTO is_there USING NEW;
    IF is_there IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23503',
            MESSAGE = format('insert or update on table "%s" violates foreign key constraint "%s"', TG_TABLE_NAME, key.conname),
            DETAIL = format('Key (%s)=(%s) is not present in table "%s".', array_to_string(columns, ', '),
                pgherd.shown_in(NEW, columns), (SELECT c.relname FROM pg_class c WHERE c.oid = key.confrelid)),
            SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME, CONSTRAINT = key.conname;
    END IF;
    RETURN NULL;
END
$$;

-- Each definition asks whether functions of keys have other owners now: only where one has are event triggers put off, which costs all plans.
CREATE OR REPLACE FUNCTION pgherd.give_function(function regprocedure, owner name) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
BEGIN
    EXECUTE format('ALTER FUNCTION %s OWNER TO %I', function, owner);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.give_function(regprocedure, name) FROM PUBLIC;

CREATE OR REPLACE FUNCTION pgherd.own_keys() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM pgherd.give_function(p.oid, pg_get_userbyid(c.relowner))
        FROM pgherd.local_keys l, LATERAL (VALUES ('key_action_' || l.oid, l.conrelid), ('key_lookup_' || l.oid, l.confrelid)) f(name, relation)
            JOIN pg_class c ON c.oid = f.relation JOIN pg_proc p ON p.proname = f.name AND p.pronamespace = 'pgherd'::regnamespace
        WHERE p.proowner <> c.relowner;
END
$$;

-- What a key does to the rows that refer to what is deleted or changed; none: nothing. Rows that must not refer to it are an error.
-- It is run where this is called, since triggers of users' see the search_path of the statement.
CREATE OR REPLACE FUNCTION pgherd.key_command(key oid, old_row anyelement, new_row anyelement) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    k record;
    deletes CONSTANT bool := new_row IS NOT DISTINCT FROM NULL;
    referenced name[];
    referring name[];
    old_values text[];
    action "char";
    condition text;
    is_there int;
BEGIN
    SELECT l.* INTO k FROM pgherd.local_keys l WHERE l.oid = key;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    referenced := pgherd.names_of(k.confrelid, k.confkey);
    referring := pgherd.names_of(k.conrelid, k.conkey);
    old_values := pgherd.values_in(old_row, referenced);
    action := CASE WHEN deletes THEN k.confdeltype ELSE k.confupdtype END;
    IF array_position(old_values, NULL) IS NOT NULL
        OR NOT deletes AND pgherd.values_in(new_row, referenced) IS NOT DISTINCT FROM old_values THEN
        RETURN NULL;
    END IF;
    condition := pgherd.key_condition(k.oid, false);
    IF action = 'c' AND deletes THEN
        RETURN format('DELETE FROM %s x WHERE %s', k.conrelid::regclass, condition);
    ELSIF action = 'c' THEN
        RETURN (SELECT format('UPDATE %s x SET %s WHERE %s', k.conrelid::regclass,
            string_agg(format('%I = ($2).%I', c.name, referenced[c.at]), ', '), condition)
            FROM unnest(referring) WITH ORDINALITY c(name, at));
    ELSIF action IN ('n', 'd') THEN
        RETURN (SELECT format('UPDATE %s x SET %s WHERE %s', k.conrelid::regclass,
            string_agg(format('%I = %s', c.name, CASE action WHEN 'n' THEN 'NULL' ELSE 'DEFAULT' END), ', '), condition)
            FROM unnest(coalesce(CASE WHEN deletes THEN (SELECT pgherd.names_of(k.conrelid, s.confdelsetcols)
                FROM pg_constraint s WHERE s.oid = k.oid) END, referring)) WITH ORDINALITY c(name, at));
    END IF;
    EXECUTE format('SELECT 1 FROM %s x WHERE %s LIMIT 1', k.conrelid::regclass, condition) INTO is_there USING old_row;
    IF is_there IS NOT NULL AND action = 'a' AND NOT deletes THEN
        -- What is written otherwise may be the same key.
        EXECUTE format('SELECT 1 FROM %s x WHERE %s AND NOT (%s) LIMIT 1', k.conrelid::regclass, condition,
            replace(condition, '($1).', '($2).')) INTO is_there USING old_row, new_row;
    END IF;
    IF is_there IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '23503',
            MESSAGE = format('update or delete on table "%s" violates foreign key constraint "%s" on table "%s"',
                (SELECT c.relname FROM pg_class c WHERE c.oid = k.confrelid), k.conname,
                (SELECT c.relname FROM pg_class c WHERE c.oid = k.conrelid)),
            DETAIL = format('Key (%s)=(%s) is still referenced from table "%s".', array_to_string(referenced, ', '),
                pgherd.shown_in(old_row, referenced), (SELECT c.relname FROM pg_class c WHERE c.oid = k.conrelid)),
            SCHEMA = (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = k.conrelid),
            TABLE = (SELECT c.relname FROM pg_class c WHERE c.oid = k.conrelid), CONSTRAINT = k.conname;
    END IF;
    RETURN NULL;
END
$$;

-- For each key two functions, as PostgreSQL does it: one looks for the row that another refers to, as the owner of the
-- referenced table; and AFTER DELETE OR UPDATE of the foreign child of that table one does what the key says is to become of the
-- rows that refer to the old one, as the owner of the local table. What is read on the way (domains have checks) runs as these.
CREATE OR REPLACE FUNCTION pgherd.create_key_action(key oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    k pgherd.local_keys;
    trigger oid;
    child text;
BEGIN
    SELECT l.* INTO STRICT k FROM pgherd.local_keys l WHERE l.oid = key;
    child := format('pgherd.%I', 'ft_' || k.confrelid);
    EXECUTE format('CREATE OR REPLACE FUNCTION pgherd.key_lookup_%s(referring anyelement) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS %L', key, format($$
DECLARE
    is_there pg_catalog.bool;
BEGIN
    EXECUTE (SELECT format('SELECT true FROM %%s x WHERE %%s FOR KEY SHARE OF x', l.confrelid::regclass, pgherd.key_condition(l.oid, true))
        FROM pgherd.local_keys l WHERE l.oid = %s) INTO is_there USING referring;
    RETURN is_there;
END
$$, key));
    EXECUTE format('CREATE OR REPLACE FUNCTION pgherd.key_action_%s() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER AS %L', key, format($$
DECLARE
    command pg_catalog.text;
BEGIN
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
        command := pgherd.key_command(%1$s, OLD, NULL);
    ELSE
        command := pgherd.key_command(%1$s, OLD, NEW);
    END IF;
    IF command IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP OPERATOR(pg_catalog.=) 'DELETE' THEN
        EXECUTE command USING OLD;
    ELSE
        EXECUTE command USING OLD, NEW;
    END IF;
    RETURN NULL;
END
$$, key));
    EXECUTE format('REVOKE EXECUTE ON FUNCTION pgherd.key_action_%1$s(), pgherd.key_lookup_%1$s(anyelement) FROM PUBLIC', key);
    PERFORM pgherd.own_keys();
    EXECUTE format('DROP TRIGGER IF EXISTS pgherd_key_%s ON %s', key, child);
    EXECUTE format('CREATE TRIGGER pgherd_key_%s AFTER DELETE OR UPDATE OF %s ON %s FOR EACH ROW EXECUTE FUNCTION pgherd.key_action_%s()',
        key, (SELECT string_agg(quote_ident(c), ', ') FROM unnest(pgherd.names_of(k.confrelid, k.confkey)) c), child, key);
    SELECT t.oid INTO STRICT trigger FROM pg_trigger t WHERE t.tgrelid = child::regclass AND t.tgname = 'pgherd_key_' || key;
    -- All go with the constraint.
    DELETE FROM pg_depend d WHERE d.refclassid = 'pg_constraint'::regclass AND d.refobjid = key AND d.classid = 'pg_proc'::regclass;
    INSERT INTO pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
        SELECT 'pg_proc'::regclass, p.oid, 0, 'pg_constraint'::regclass, key, 0, 'a'::"char" FROM pg_proc p
            WHERE p.pronamespace = 'pgherd'::regnamespace AND p.proname IN ('key_action_' || key, 'key_lookup_' || key)
        UNION ALL VALUES ('pg_trigger'::regclass::oid, trigger, 0, 'pg_constraint'::regclass::oid, key, 0, 'a'::"char");
END
$f$;
REVOKE EXECUTE ON FUNCTION pgherd.create_key_action(oid) FROM PUBLIC;

-- Those of earlier versions.
DO $$
BEGIN
    PERFORM pgherd.create_key_action(l.oid) FROM pgherd.local_keys l WHERE pg_catalog.to_regclass('pgherd.ft_' || l.confrelid) IS NOT NULL;
END
$$;

-- Brings what checks the foreign keys of a table, and those that lead to it, to what they are now. Whoever calls it changes
-- nothing that is not wrong.
CREATE OR REPLACE FUNCTION pgherd.follow_keys(relation oid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET client_min_messages = warning
    -- No event triggers, the user's least of all.
    SET session_replication_role = replica AS $$
DECLARE
    key record;
    refers bool;
    why text;
    is_new bool;
    changed bool := false;
BEGIN
    FOR key IN SELECT l.oid, l.conrelid, l.confrelid, l.conkey FROM pgherd.local_keys l
        WHERE l.oid = ANY (ARRAY(SELECT pgherd.keys_at(relation))) AND to_regclass('pgherd.ft_' || l.confrelid) IS NOT NULL
    LOOP
        EXECUTE (SELECT format('SELECT EXISTS (SELECT FROM ONLY %s WHERE %s)', key.conrelid::regclass,
                string_agg(format('%I IS NOT NULL', c), ' AND '))
            FROM unnest(pgherd.names_of(key.conrelid, key.conkey)) c) INTO refers;
        IF refers THEN
            PERFORM pgherd.check_stays(key.oid);
        END IF;
        SELECT CASE
            -- What looks for rows does so with rights that the makers of types do not have.
            WHEN NOT pgherd.compares_plainly(key.oid) OR NOT (SELECT bool_and(pgherd.reads_plainly(a.atttypid))
                FROM pg_constraint k JOIN pg_attribute a
                    ON a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) OR a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey)
                WHERE k.oid = key.oid) THEN 'Reading values of its types may run functions of users''.'
            -- PostgreSQL's own checks do not ask policies; ours are the owner's.
            WHEN c.relrowsecurity AND c.relforcerowsecurity THEN 'Policies hide rows from its owner.'
            WHEN refers AND pgherd.has_period(key.oid) THEN 'The key has a PERIOD.'
            -- PostgreSQL looks for its own triggers where it makes partitions.
            WHEN c.relkind = 'p' THEN 'The referencing table is partitioned.' END INTO why
            FROM pg_class c WHERE c.oid = key.conrelid;
        IF why IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = '0A000',
                MESSAGE = format('cannot create foreign key constraint: table "%s" is distributed and "%s" is not',
                    (SELECT c.relname FROM pg_class c WHERE c.oid = key.confrelid),
                    (SELECT c.relname FROM pg_class c WHERE c.oid = key.conrelid)),
                DETAIL = why, HINT = 'Distribute it, and add the key then.';
        END IF;
        UPDATE pg_trigger t SET tgfoid = 'pgherd.find_key()'::regprocedure
            WHERE t.tgconstraint = key.oid AND t.tgrelid = key.conrelid AND t.tgfoid <> 'pgherd.find_key()'::regprocedure;
        is_new := FOUND;
        -- ALTER CONSTRAINT changes PostgreSQL's own.
        UPDATE pg_trigger t SET tgdeferrable = k.condeferrable, tginitdeferred = k.condeferred
            FROM pg_constraint k WHERE k.oid = key.oid AND t.tgconstraint = key.oid AND t.tgrelid = key.conrelid
                AND (t.tgdeferrable, t.tginitdeferred) <> (k.condeferrable, k.condeferred);
        IF FOUND OR is_new THEN
            UPDATE pg_class c SET relname = c.relname WHERE c.oid = key.conrelid;
            PERFORM pgherd.note_change('pg_class'::regclass, key.conrelid);
            changed := true;
        END IF;
        IF NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = to_regclass('pgherd.ft_' || key.confrelid)
                AND t.tgname = 'pgherd_key_' || key.oid) THEN
            PERFORM pgherd.create_key_action(key.oid);
            PERFORM pgherd.note_change('pg_class'::regclass, key.confrelid);
            changed := true;
        END IF;
    END LOOP;
    PERFORM pgherd.own_keys();
    -- Those that are no longer a local table's are checked where both tables are.
    FOR key IN SELECT DISTINCT k.oid, k.conrelid FROM pg_constraint k JOIN pg_trigger t ON t.tgconstraint = k.oid AND t.tgrelid = k.conrelid
        WHERE k.conrelid = relation AND k.contype = 'f' AND t.tgfoid = 'pgherd.find_key()'::regprocedure
            AND NOT EXISTS (SELECT FROM pgherd.local_keys l WHERE l.oid = k.oid)
    LOOP
        UPDATE pg_trigger t SET tgfoid = CASE WHEN t.tgtype & 4 <> 0 THEN 'pg_catalog."RI_FKey_check_ins"()'::regprocedure
                ELSE 'pg_catalog."RI_FKey_check_upd"()'::regprocedure END
            WHERE t.tgconstraint = key.oid AND t.tgrelid = key.conrelid;
        UPDATE pg_class c SET relname = c.relname WHERE c.oid = key.conrelid;
        EXECUTE format('DROP FUNCTION IF EXISTS pgherd.key_action_%1$s(), pgherd.key_lookup_%1$s(anyelement) CASCADE', key.oid);
        PERFORM pgherd.note_change('pg_class'::regclass, key.conrelid);
        changed := true;
    END LOOP;
    IF changed THEN
        PERFORM pgherd.bump_epoch();
    END IF;
END
$$;

-- A table whose rows are on the workers by now is emptied, whatever refers to them.
CREATE OR REPLACE FUNCTION pgherd.empty_referenced(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
DECLARE
    hidden oid[];
BEGIN
    PERFORM pgherd.require_owner(relation);
    IF NOT EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = relation AND p.partmethod = 'h') THEN
        RAISE EXCEPTION USING ERRCODE = '42809', MESSAGE = format('table %s is not distributed', relation);
    END IF;
    IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = relation AND NOT t.tgisinternal AND t.tgtype & 32 <> 0
            AND t.tgenabled IN ('A', 'R')) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot distribute table "%s"', (SELECT c.relname FROM pg_class c WHERE c.oid = relation)),
            DETAIL = 'A TRUNCATE trigger of it is enabled ALWAYS or REPLICA.';
    END IF;
    WITH keys AS (UPDATE pg_constraint k SET contype = 'x' WHERE k.confrelid = relation AND k.contype = 'f' RETURNING oid)
        SELECT array_agg(oid) INTO hidden FROM keys;
    EXECUTE format('TRUNCATE ONLY %s', relation);
    UPDATE pg_constraint k SET contype = 'f' WHERE k.oid = ANY (hidden);
END
$$;
GRANT SELECT ON pgherd.local_keys TO PUBLIC;
GRANT EXECUTE ON FUNCTION pgherd.follow_keys(oid), pgherd.values_in(anyelement, name[]),
    pgherd.shown_in(anyelement, name[]), pgherd.names_of(oid, int2[]),
    pgherd.key_condition(oid, bool), pgherd.check_key(oid), pgherd.reads_plainly(oid, bool), pgherd.compares_plainly(oid) TO PUBLIC;
