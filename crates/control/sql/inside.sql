-- Writes of SQL that runs inside the coordinator (functions, triggers, DO blocks, statements that no worker can run), after
-- coordinator.sql: what our triggers on the coordinator's tables pass on to the workers, through the router and in the
-- client's own transaction (docs/decisions/0011).

-- Reading it with command = '…' makes the router do what a trigger of ours asks for (remote_statement in callback.rs).
CREATE FOREIGN TABLE IF NOT EXISTS pgherd.remote_statement (command text, result text)
    SERVER pgherd_router OPTIONS (schema_name 'pgherd', table_name 'remote_statement', updatable 'false', truncatable 'false');
GRANT SELECT ON pgherd.remote_statement TO PUBLIC;
-- The same for changes of reference tables, which the other copies follow with their owner's rights. Nobody but our triggers
-- may read it.
CREATE FOREIGN TABLE IF NOT EXISTS pgherd.remote_copies (command text, result text)
    SERVER pgherd_router OPTIONS (schema_name 'pgherd', table_name 'remote_copies', updatable 'false', truncatable 'false');
REVOKE ALL ON pgherd.remote_copies FROM PUBLIC;

-- Takes our triggers from a table of the coordinator, and gives the user's back their states.
CREATE OR REPLACE FUNCTION pgherd.unguard(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard name;
    state record;
BEGIN
    FOR guard IN SELECT t.tgname FROM pg_trigger t
        WHERE t.tgrelid = relation AND NOT t.tgisinternal AND t.tgname ~* '^[!~]?pgherd_guard'
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', guard, relation);
    END LOOP;
    FOR state IN SELECT t.tgname AS name, w.enabled FROM pgherd.worker_trigger w JOIN pg_trigger t ON t.oid = w.trigger
        WHERE w.relation = $1
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s ENABLE %s TRIGGER %I', relation,
            CASE state.enabled WHEN 'A' THEN 'ALWAYS' WHEN 'R' THEN 'REPLICA' ELSE '' END, state.name);
    END LOOP;
    DELETE FROM pgherd.worker_trigger w WHERE w.relation = $1;
    DELETE FROM pgherd.fires_here h WHERE h.relation = $1;
    -- See guard_partitioned.
    FOR state IN SELECT t.tgrelid::regclass AS referenced, t.tgname AS name FROM pg_constraint k
        JOIN pg_class c ON c.oid = k.conrelid AND c.relkind = 'p'
        JOIN pgherd.pg_dist_partition p ON p.logicalrelid::oid = k.confrelid AND p.partmethod = 'n'
        JOIN pg_trigger t ON t.tgconstraint = k.oid AND t.tgrelid = k.confrelid
        WHERE k.conrelid = $1 AND k.contype = 'f' AND t.tgenabled = 'D'
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s ENABLE TRIGGER %I', state.referenced, state.name);
    END LOOP;
END
$$;

-- Reference tables ---------------------------------------------------------------------------------------------------

-- Whether what a trigger sees was written here alone. Where the router writes every copy of a reference table with the same
-- top-level statement, it says so (pgherd.forward). Whatever else writes, through functions, triggers, views or rules,
-- writes this copy only.
CREATE OR REPLACE FUNCTION pgherd.written_here_alone(context text) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT strpos(context, E'\n') > 0 OR coalesce(current_setting('pgherd.forward', true), '') <> 'off'
$$;

-- A change of so many rows of a reference table for all copies but this one. "verified": a query that is true where fewer
-- rows have changed because the copy has them as they should be already. Whose rights the statement has here was checked
-- here. There it has the owner's, unless his own policies hold for him as well.
DROP FUNCTION IF EXISTS pgherd.change_copies(text, bigint, text, text);
CREATE OR REPLACE FUNCTION pgherd.change_copies(changed regclass, rows bigint, command text, verified text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation text;
    owner text;
    result text;
BEGIN
    SELECT format('%I.%I', n.nspname, c.relname),
            CASE WHEN c.relrowsecurity AND c.relforcerowsecurity THEN '' ELSE pg_get_userbyid(c.relowner)::text END
        INTO STRICT relation, owner
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = changed;
    EXECUTE format('SELECT r.result FROM pgherd.remote_copies r WHERE r.command = %L', format(E'reference %s %s %s %s\n%s%s%s',
        rows, length(owner), length(command), relation, owner, command, verified)) INTO result;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.change_copies(regclass, bigint, text, text) FROM PUBLIC;

-- Whether a trigger is one of those that guard_reference() makes. Everyone may make triggers of these functions; they run as a
-- superuser, and what is no transition table may be a view of anyone's.
CREATE OR REPLACE FUNCTION pgherd.guards_reference(changed oid, trigger name, operation text)
RETURNS bool LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pgherd.pg_dist_partition p JOIN pg_trigger t ON t.tgrelid = p.logicalrelid::oid
        WHERE p.logicalrelid::oid = changed AND p.partmethod = 'n' AND t.tgname = trigger
            AND t.tgname = 'pgherd_guard_' || lower(operation) AND t.tgtype & 67 = 0
            AND t.tgoldtable IS NOT DISTINCT FROM CASE WHEN operation IN ('UPDATE', 'DELETE') THEN 'pgherd_old'::name END
            AND t.tgnewtable IS NOT DISTINCT FROM CASE WHEN operation IN ('INSERT', 'UPDATE') THEN 'pgherd_new'::name END)
$$;

-- AFTER statement triggers on the coordinator's copy of a reference table: the rows that were changed here go to the other
-- copies as they are now, as values. So functions, defaults and triggers run once. A row is named by its primary key, or
-- by all that is in it and its number among its equals. A foreign key may have acted on the other copies by itself.
-- Values are written by concat() and not by a cast, which may be a function of the user's.
CREATE OR REPLACE FUNCTION pgherd.forward_reference_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres'
    SET extra_float_digits = 3 AS $$
DECLARE
    batch CONSTANT int := 5000;
    relation text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    context text;
    source text;
    changed text[];
    acts bool;
    comparisons text;
    verb text;
    arrays text;
    names text;
    by_row bool;
    wanted text;
    present text;
    wanted_after text;
    present_after text;
    part record;
BEGIN
    IF TG_OP = 'TRUNCATE' OR NOT pgherd.guards_reference(TG_RELID, TG_NAME, TG_OP) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'pgherd.forward_reference_rows() is for triggers of pgherd';
    END IF;
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF NOT pgherd.written_here_alone(context) THEN
        RETURN NULL;
    END IF;
    -- What was (o) and what is (n) side by side: both tables of a trigger have their rows in the same order.
    source := CASE TG_OP
        WHEN 'INSERT' THEN '(SELECT *, row_number() OVER () AS pgherd_number FROM pgherd_new) n'
        WHEN 'DELETE' THEN '(SELECT *, row_number() OVER () AS pgherd_number FROM pgherd_old) o'
        ELSE '(SELECT *, row_number() OVER () AS pgherd_number FROM pgherd_old) o '
            'JOIN (SELECT *, row_number() OVER () AS pgherd_number FROM pgherd_new) n USING (pgherd_number)' END;
    IF TG_OP = 'UPDATE' THEN
        SELECT string_agg(format('CASE WHEN bool_or(num_nulls(o.%1$I) <> num_nulls(n.%1$I) '
                'OR concat(o.%1$I) COLLATE "C" <> concat(n.%1$I) COLLATE "C") THEN %1$L END', a.attname), ', ') INTO STRICT comparisons
            FROM pg_attribute a WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
        EXECUTE format('SELECT array_remove(ARRAY[%s]::text[], NULL) FROM %s', comparisons, source) INTO STRICT changed;
        IF cardinality(changed) = 0 THEN
            RETURN NULL;
        END IF;
    END IF;
    acts := TG_OP <> 'INSERT' AND EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = TG_RELID AND k.contype = 'f'
        AND (k.confupdtype IN ('c', 'n', 'd') OR k.confdeltype IN ('c', 'n', 'd')));
    -- One array of text for each column that goes along: old values that name the row, new ones that it gets.
    WITH columns AS (
        SELECT a.attname AS name, a.attnum AS number, format_type(a.atttypid, -1) AS type, a.attname = ANY (changed) AS is_changed,
            k.conkey IS NULL AS by_row, k.conkey IS NULL OR a.attnum = ANY (k.conkey) AS is_key
        FROM pg_attribute a LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
        WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ), sent AS (
        SELECT c.*, s.side, format('(u.%s%s)::%s', s.side, c.number, c.type) AS value
        FROM columns c, (VALUES ('o'), ('n')) s(side)
        WHERE CASE s.side WHEN 'o' THEN TG_OP <> 'INSERT' AND c.is_key ELSE TG_OP = 'INSERT' OR TG_OP = 'UPDATE' AND (acts OR c.is_changed) END
    )
    SELECT bool_or(s.by_row),
        string_agg(format('quote_literal(array_agg(CASE num_nulls(%1$s.%2$I) WHEN 0 THEN concat(%1$s.%2$I) END '
            'ORDER BY pgherd_number)::text) || ''::pg_catalog.text[]''', s.side, s.name), ', ' ORDER BY s.side, s.number),
        string_agg(format('%s%s', s.side, s.number), ', ' ORDER BY s.side, s.number),
        CASE TG_OP
            WHEN 'INSERT' THEN format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM', relation,
                string_agg(quote_ident(s.name), ', ' ORDER BY s.number), string_agg(s.value, ', ' ORDER BY s.number))
            WHEN 'DELETE' THEN format('DELETE FROM %s AS t USING', relation)
            ELSE format('UPDATE %s AS t SET %s FROM', relation,
                string_agg(format('%I = %s', s.name, s.value), ', ') FILTER (WHERE s.side = 'n' AND s.is_changed)) END,
        CASE WHEN bool_or(s.by_row) THEN
            format('ROW(%s)::pg_catalog.text', string_agg(s.value || '::pg_catalog.text', ', ' ORDER BY s.number) FILTER (WHERE s.side = 'o'))
            ELSE string_agg(format('t.%I = %s', s.name, s.value), ' AND ') FILTER (WHERE s.side = 'o') END,
        format('ROW(%s)::pg_catalog.text', string_agg(format('t.%I::pg_catalog.text', s.name), ', ' ORDER BY s.number)
            FILTER (WHERE s.side = 'o')),
        format('ROW(%s)::pg_catalog.text', string_agg(s.value || '::pg_catalog.text', ', ' ORDER BY s.number) FILTER (WHERE s.side = 'n')),
        format('ROW(%s)::pg_catalog.text', string_agg(format('t.%I::pg_catalog.text', s.name), ', ' ORDER BY s.number)
            FILTER (WHERE s.side = 'n'))
        INTO STRICT by_row, arrays, names, verb, wanted, present, wanted_after, present_after FROM sent s;
    FOR part IN EXECUTE format('SELECT concat_ws('', '', %s) AS arrays, count(*) AS rows FROM %s GROUP BY (pgherd_number - 1) / %s '
        'ORDER BY (pgherd_number - 1) / %3$s', arrays, source, batch)
    LOOP
        PERFORM pgherd.change_copies(TG_RELID, part.rows, CASE
            WHEN TG_OP = 'INSERT' THEN format('%s unnest(%s) AS u(%s)', verb, part.arrays, names)
            WHEN NOT by_row THEN format('%s unnest(%s) AS u(%s) WHERE %s', verb, part.arrays, names, wanted)
            ELSE format('WITH pgherd_u AS MATERIALIZED (SELECT u.*, %1$s AS pgherd_row, pg_catalog.row_number() OVER '
                '(PARTITION BY %1$s) AS pgherd_number FROM unnest(%2$s) AS u(%3$s)), pgherd_t AS MATERIALIZED '
                '(SELECT t.ctid AS pgherd_ctid, %4$s AS pgherd_row, pg_catalog.row_number() OVER (PARTITION BY %4$s) AS pgherd_number '
                'FROM ONLY %5$s AS t) %6$s pgherd_u AS u JOIN pgherd_t USING (pgherd_row, pgherd_number) WHERE t.ctid = pgherd_ctid',
                wanted, part.arrays, names, present, relation, verb) END, CASE
            WHEN NOT acts THEN ''
            WHEN TG_OP = 'DELETE' THEN 'SELECT true'
            ELSE format('SELECT pg_catalog.count(*) = %6$s FROM (SELECT %1$s AS pgherd_row, pg_catalog.row_number() OVER '
                '(PARTITION BY %1$s) AS pgherd_number FROM unnest(%2$s) AS u(%3$s)) AS u JOIN (SELECT %4$s AS pgherd_row, '
                'pg_catalog.row_number() OVER (PARTITION BY %4$s) AS pgherd_number FROM ONLY %5$s AS t) AS t '
                'USING (pgherd_row, pgherd_number)', wanted_after, part.arrays, names, present_after, relation, part.rows) END);
    END LOOP;
    RETURN NULL;
END
$$;

-- AFTER TRUNCATE. What refers to the table has been emptied here by CASCADE, or there is nothing.
CREATE OR REPLACE FUNCTION pgherd.forward_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
    context text;
BEGIN
    IF TG_OP <> 'TRUNCATE' OR NOT pgherd.guards_reference(TG_RELID, TG_NAME, TG_OP) THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'pgherd.forward_truncate() is for triggers of pgherd';
    END IF;
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF pgherd.written_here_alone(context) THEN
        PERFORM pgherd.change_copies(TG_RELID, 0, format('TRUNCATE %s CASCADE', relation), 'SELECT true');
    END IF;
    RETURN NULL;
END
$$;

-- Gives the coordinator's copy of a reference table the triggers that keep the other copies equal, whatever
-- session_replication_role is. Repeating it is harmless.
CREATE OR REPLACE FUNCTION pgherd.guard_reference(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
    operation text;
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS pgherd_guard ON %s', relation);
    EXECUTE format('CREATE OR REPLACE TRIGGER pgherd_guard_truncate AFTER TRUNCATE ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.forward_truncate()', relation);
    EXECUTE format('CREATE OR REPLACE TRIGGER pgherd_guard_insert AFTER INSERT ON %s REFERENCING NEW TABLE AS pgherd_new '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.forward_reference_rows()', relation);
    EXECUTE format('CREATE OR REPLACE TRIGGER pgherd_guard_update AFTER UPDATE ON %s REFERENCING OLD TABLE AS pgherd_old '
        'NEW TABLE AS pgherd_new FOR EACH STATEMENT EXECUTE FUNCTION pgherd.forward_reference_rows()', relation);
    EXECUTE format('CREATE OR REPLACE TRIGGER pgherd_guard_delete AFTER DELETE ON %s REFERENCING OLD TABLE AS pgherd_old '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.forward_reference_rows()', relation);
    FOREACH operation IN ARRAY '{truncate,insert,update,delete}'::text[] LOOP
        EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER pgherd_guard_%s', relation, operation);
    END LOOP;
END
$$;

-- Distributed tables ------------------------------------------------------------------------------------------------

-- The statement that fires a statement trigger whose context this is, where its text is known.
CREATE OR REPLACE FUNCTION pgherd.statement_of(context text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN strpos(context, E'\n') = 0 THEN current_query()
        ELSE (regexp_match(substr(context, strpos(context, E'\n') + 1),
            E'^SQL statement "(.*?)"(\\n(PL/pgSQL function|SQL function|SQL statement|COPY|PL/\\w+) .*)?$'))[1] END
$$;

-- The INSERT of a loop over its rows, or of an SQL function that is nothing else, whose text no context has: as the function's
-- body has it. NULL where the body does not tell which it is.
CREATE OR REPLACE FUNCTION pgherd.insert_in_body(context text, relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH caller AS (
        SELECT split_part(context, E'\n', 2) AS line, (SELECT c.relname FROM pg_class c WHERE c.oid = relation) AS name
    ), asked AS (
        SELECT name, line ~ '^PL/pgSQL function inline_code_block line [0-9]+ at FOR over SELECT rows$' AND strpos(context, E'\n') > 0
                AND split_part(context, E'\n', 3) = '' AS in_block,
            (regexp_match(line, E'^PL/pgSQL function (?:[^(]*\\.)?"?([^(" ]+)"?\\(.*\\) line ([0-9]+) at FOR over SELECT rows$')) AS loop,
            (regexp_match(line, '^SQL function "([^"]+)" statement 1$'))[1] AS sql_function
        FROM caller
    ), body AS (
        SELECT current_query() AS text, NULL::int AS line FROM asked WHERE in_block
        UNION ALL SELECT p.prosrc, a.loop[2]::int FROM asked a JOIN pg_proc p ON p.proname = a.loop[1]
    ), found AS (
        SELECT b.text, b.line, m.at, m.match[1] AS before, m.match[2] AS statement
        FROM body b, LATERAL regexp_matches(b.text, E'(\\mfor\\s[^;]*?\\sin\\s+)(insert\\s+into\\s.*?)\\sloop\\M', 'gi')
            WITH ORDINALITY AS m(match, at)
    ), fitting AS (
        SELECT f.statement FROM found f, asked a WHERE strpos(lower(f.statement), lower(a.name)) > 0
            AND (f.line IS NULL OR f.line = 1 + length(substr(f.text, 1, strpos(f.text, f.before || f.statement) - 1))
                - length(replace(substr(f.text, 1, strpos(f.text, f.before || f.statement) - 1), E'\n', '')))
        UNION ALL SELECT p.prosrc FROM asked a JOIN pg_proc p ON p.proname = a.sql_function AND p.prosqlbody IS NULL
    )
    SELECT CASE WHEN count(DISTINCT statement) = 1 AND NOT EXISTS (SELECT FROM body WHERE text ~* E'\\min\\s+with\\M') THEN min(statement) END
    FROM fitting
$$;

-- What tells whether the statement looks for rows that are there already: its text. Where that is not known (an SQL function,
-- or a loop over RETURNING) the bodies of all functions of the name.
CREATE OR REPLACE FUNCTION pgherd.text_or_bodies(context text, statement text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH bodies AS (
        SELECT coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS body FROM pg_proc p
        WHERE statement IS NULL
            AND p.proname = (regexp_match(split_part(context, E'\n', 2), E'^(?:SQL|PL/\\w+) function (?:[^(]*\\.)?"?([^(" ]+)'))[1]
    )
    SELECT coalesce(statement, (SELECT string_agg(body, E'\n') FROM bodies), current_query())
$$;

-- BEFORE INSERT statement trigger: what the row triggers must know. pgherd.inserted: the depth and table of statements whose
-- rows are on the workers already; pgherd.upsert_<table>: the depth of an INSERT … ON CONFLICT, which runs row by row there,
-- whether it is the client's own or some function's, and its text, or INSERT where the table has row triggers;
-- pgherd.inserting_<table>: how many statements insert there, one in a function that another calls for each row.
CREATE OR REPLACE FUNCTION pgherd.begin_local_rows() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mark CONSTANT text := format(' %s:%s ', pg_trigger_depth(), TG_RELID);
    context text;
    statement text;
    around CONSTANT int := coalesce(nullif(current_setting('pgherd.inserting_' || TG_RELID, true), ''), '0');
BEGIN
    IF around > 0 AND coalesce(current_setting('pgherd.upsert_' || TG_RELID, true), '') <> '' THEN
        RAISE EXCEPTION USING ERRCODE = 'PH001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
            MESSAGE = format('cannot insert into distributed table "%s" while another statement does', TG_TABLE_NAME);
    END IF;
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    statement := coalesce(pgherd.statement_of(context), pgherd.insert_in_body(context, TG_RELID));
    IF pgherd.text_or_bodies(context, statement) !~* E'on\\s+conflict|merge\\s+into' THEN
        statement := CASE WHEN EXISTS (SELECT FROM pgherd.worker_trigger w JOIN pg_trigger t ON t.oid = w.trigger
            WHERE w.relation = TG_RELID AND t.tgtype & 5 = 5) THEN 'INSERT' ELSE '' END;
        -- A rule's action has no text of its own.
        IF EXISTS (SELECT FROM pg_depend d JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
            WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = TG_RELID AND r.ev_action::text ~ ':onConflict [{]') THEN
            RAISE EXCEPTION USING ERRCODE = 'PH001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
                MESSAGE = format('cannot run ON CONFLICT or MERGE on distributed table "%s" from inside the coordinator', TG_TABLE_NAME),
                DETAIL = 'There is a rule that inserts into it with ON CONFLICT, and this statement may be that.',
                HINT = 'Have the rule insert without ON CONFLICT.';
        END IF;
    ELSIF statement IS NULL OR statement ~* E'merge\\s+into' THEN
        RAISE EXCEPTION USING ERRCODE = 'PH001',
            MESSAGE = format('cannot run ON CONFLICT or MERGE on distributed table "%s" from inside the coordinator', TG_TABLE_NAME),
            HINT = 'Send the statement through the router by itself.', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    -- Triggers see a row that is there already as updated (upsert_local_row): where they see no rows that others have.
    IF statement ~* E'\\mdo\\s+update\\M' AND EXISTS (SELECT FROM pgherd.fires_here h CROSS JOIN pgherd.enabled_triggers(h.relation) t
        WHERE h.relation = TG_RELID AND (t.tgnewtable IS NOT NULL OR t.tgoldtable IS NOT NULL
            OR (t.tgtype & 17 = 16 AND pgherd.fires_for_updates(TG_RELID))
            OR (t.tgtype & 17 = 17 AND concat(pg_get_triggerdef(t.oid), (SELECT p.prosrc FROM pg_proc p WHERE p.oid = t.tgfoid))
                ~* 'pg_trigger_depth'))) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
            MESSAGE = format('cannot run ON CONFLICT DO UPDATE on distributed table "%s"', TG_TABLE_NAME),
            DETAIL = 'It has triggers with transition tables that fire on the coordinator, for UPDATE both for rows and for statements, '
                'or that ask for pg_trigger_depth().',
            HINT = 'Use UPDATE, and INSERT … ON CONFLICT DO NOTHING.';
    END IF;
    PERFORM set_config('pgherd.upserted_' || TG_RELID, '', true);
    IF statement <> '' THEN
        -- Where triggers here have to know whether the row was there already.
        statement := format('%s %s%s %s', pg_trigger_depth(), CASE WHEN strpos(context, E'\n') = 0 THEN 'top' ELSE 'inner' END,
            CASE WHEN EXISTS (SELECT FROM pgherd.fires_here h CROSS JOIN pgherd.enabled_triggers(h.relation) t
                WHERE h.relation = TG_RELID AND (t.tgtype & 7 = 5 OR t.tgtype & 17 = 17)) THEN '-fires' END, statement);
    END IF;
    IF EXISTS (SELECT FROM pgherd.fires_here h WHERE h.relation = TG_RELID) THEN
        -- As begin_local_changes does.
        EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L',
            format(E'changing %I.%I\n', TG_TABLE_SCHEMA, TG_TABLE_NAME)) INTO context;
    END IF;
    PERFORM set_config('pgherd.upsert_' || TG_RELID, statement, true);
    PERFORM set_config('pgherd.inserting_' || TG_RELID, (around + 1)::text, true);
    PERFORM set_config('pgherd.inserted', replace(coalesce(current_setting('pgherd.inserted', true), ''), mark, ''), true);
    RETURN NULL;
END
$$;

-- BEFORE INSERT row trigger where the statement says ON CONFLICT, or triggers may change the row: the worker inserts or
-- updates it, and what became of it is the row that the coordinator goes on with, for RETURNING and the count. No row: none.
-- Where a row is there already and no worker can say what becomes of it, the answer is a query that does. It has the settings
-- of the statement, and sees what the statement sees: not the rows that it has inserted.
-- Where triggers of users' fire here, they are none for INSERT of a row that was there already: see fire_nothing. Those for UPDATE
-- fire by an UPDATE that the router writes.
CREATE OR REPLACE FUNCTION pgherd.upsert_local_row() RETURNS trigger
LANGUAGE plpgsql STABLE AS $$
DECLARE
    answer text := pgherd.send_row(TG_RELID, NEW);
    assigned record;
    was_there bool := false;
    fires bool;
BEGIN
    IF pg_catalog.starts_with(answer, '-- ') THEN
        EXECUTE answer INTO assigned;
        IF assigned IS NULL THEN
            RETURN NULL;
        END IF;
        answer := pgherd.send_assigned(TG_RELID, pg_catalog.split_part(answer, E'\n', 1), assigned);
        IF pg_catalog.starts_with(answer, 'UPDATE ') THEN
            answer := pgherd.run_returning(answer);
        END IF;
        was_there := true;
    ELSIF answer IS NOT NULL THEN
        PERFORM pgherd.note_upserted(TG_RELID, 'inserted');
    END IF;
    IF answer IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE pg_catalog.format('SELECT ($1::%I.%I).*', TG_TABLE_SCHEMA, TG_TABLE_NAME) INTO NEW USING answer;
    IF was_there THEN
        -- (Nothing else is run in between.)
        fires := pgherd.fire_nothing(TG_RELID);
    END IF;
    RETURN NEW;
END
$$;

-- (Under the settings of who asks, which the triggers that it fires see.)
CREATE OR REPLACE FUNCTION pgherd.run_returning(command text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE command INTO said;
    RETURN said;
END
$$;

-- Row triggers for UPDATE, where they fire here.
CREATE OR REPLACE FUNCTION pgherd.fires_for_updates(relation oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pgherd.fires_here h CROSS JOIN pgherd.enabled_triggers(h.relation) t
        WHERE h.relation = $1 AND t.tgtype & 17 = 17)
$$;

-- No trigger for INSERT fires for the row that upsert_local_row, the last before it, gives on: whether one fires PostgreSQL decides
-- when the row is in, and "~pgherd_guard_fires", the last after it, ends this. Nobody else may have triggers not fire: who calls,
-- the context says, and nobody can make functions in this schema; and nothing of users' is run meanwhile, whose own statements would
-- fire nothing either. False: the table has no such triggers.
CREATE OR REPLACE FUNCTION pgherd.fire_nothing(relation oid) RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
    why text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := split_part(pgherd.plain_context(context), E'\n', 2);
    IF context !~ E'^PL/pgSQL function pgherd\\.upsert_local_row\\(\\) line [0-9]+ at assignment$' THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only triggers of distributed tables may do this',
            HINT = 'Leave schema pgherd out of search_path.';
    END IF;
    IF current_setting('session_replication_role') = 'replica' OR NOT EXISTS (SELECT FROM pgherd.fires_here h
            CROSS JOIN pgherd.enabled_triggers(h.relation) t WHERE h.relation = $1 AND t.tgtype & 7 = 5) THEN
        RETURN false;
    END IF;
    why := CASE
        WHEN NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = $1 AND t.tgname = '~pgherd_guard_fires' AND t.tgenabled = 'A'
            AND t.tgfoid = 'pgherd.begin_local_changes()'::regprocedure) THEN 'It has not been brought up to date.'
        WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = $1 AND t.tgtype & 5 = 5 AND (t.tgtype & 2 = 0
            AND t.tgname > '~pgherd_guard_fires' OR t.tgtype & 2 = 2 AND t.tgname > '~pgherd_guard_row'
            OR t.tgfoid = 'pgherd.upsert_local_row()'::regprocedure AND t.tgname <> '~pgherd_guard_row'))
            THEN 'Triggers of it come after the router''s own.'
        WHEN EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = $1 AND t.tgtype & 7 = 5 AND t.tgenabled IN ('A', 'R')
            AND t.tgname !~* '^[!~]?pgherd_guard') THEN 'Triggers of it are enabled ALWAYS or REPLICA.'
        WHEN pgherd.heap_calls_users($1) THEN 'Its constraints, indexes or policies call functions of users'' own.' END;
    IF why IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', DETAIL = why, HINT = 'Use UPDATE, and INSERT … ON CONFLICT DO NOTHING.',
            MESSAGE = format('cannot run ON CONFLICT DO UPDATE on distributed table "%s"', (SELECT c.relname FROM pg_class c WHERE c.oid = $1));
    END IF;
    PERFORM set_config('pgherd.fires', current_setting('session_replication_role'), true),
        set_config('session_replication_role', 'replica', true);
    RETURN true;
END
$$;

-- Whether more may be run when a row comes to the heap than what is the same for ever: in doubt it may.
CREATE OR REPLACE FUNCTION pgherd.heap_calls_users(relation oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    WITH trees AS (
        SELECT k.conbin::text AS tree FROM pg_constraint k WHERE k.conrelid = $1 AND k.conbin IS NOT NULL
        UNION ALL SELECT concat(i.indexprs::text, i.indpred::text) FROM pg_index i WHERE i.indrelid = $1
        UNION ALL SELECT d.adbin::text FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
            WHERE d.adrelid = $1 AND a.attgenerated <> ''
    )
    SELECT EXISTS (SELECT FROM pg_policy y WHERE y.polrelid = $1)
        OR EXISTS (SELECT FROM trees WHERE tree ~ '[{](COERCETODOMAIN|SUBLINK|SUBPLAN|XMLEXPR|NEXTVALUEEXPR) ')
        OR EXISTS (SELECT FROM trees, regexp_matches(tree, ':resulttype ([0-9]+)', 'g') t(id) WHERE t.id[1]::oid >= 16384)
        OR EXISTS (SELECT FROM trees, regexp_matches(tree, ':(?:op)?funcid ([0-9]+)', 'g') f(id)
            WHERE NOT EXISTS (SELECT FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
                WHERE p.oid = f.id[1]::oid AND p.provolatile = 'i' AND l.lanname IN ('internal', 'c')))
        OR EXISTS (SELECT FROM pg_index i, unnest(i.indclass) c(id) JOIN pg_opclass o ON o.oid = c.id
                JOIN pg_amproc m ON m.amprocfamily = o.opcfamily JOIN pg_proc p ON p.oid = m.amproc JOIN pg_language l ON l.oid = p.prolang
            WHERE i.indrelid = $1 AND l.lanname NOT IN ('internal', 'c'))
$$;

-- The condition of a trigger that never fires.
CREATE OR REPLACE FUNCTION pgherd.fires_again() RETURNS bool
LANGUAGE plpgsql AS $$
BEGIN
    RETURN pg_catalog.current_setting('pgherd.fires', true) OPERATOR(pg_catalog.<>) '' AND pgherd.fire_again();
END
$$;

CREATE OR REPLACE FUNCTION pgherd.fire_again() RETURNS bool
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before CONSTANT text := current_setting('pgherd.fires', true);
BEGIN
    IF before IN ('origin', 'local') THEN
        PERFORM set_config('session_replication_role', before, true);
    END IF;
    PERFORM set_config('pgherd.fires', '', true);
    RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.send_row(relation regclass, proposed record) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres'
    SET extra_float_digits = 3 AS $$
DECLARE
    statement text := current_setting('pgherd.upsert_' || $1::oid, true);
    names text;
    expressions text;
    given text;
    answer text;
BEGIN
    IF split_part(statement, ' ', 1) <> pg_trigger_depth()::text THEN
        SELECT n.nspname, c.relname INTO STRICT names, given
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1;
        RAISE EXCEPTION USING ERRCODE = 'PH001', SCHEMA = names, TABLE = given,
            MESSAGE = format('cannot insert into distributed table "%s" while another statement does', given);
    END IF;
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum),
        string_agg(format('CASE num_nulls(($1).%1$I) WHEN 0 THEN quote_literal(concat(($1).%1$I)) ELSE ''NULL'' END', a.attname),
            ', ' ORDER BY a.attnum)
        INTO STRICT names, expressions
        FROM pg_attribute a WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
    EXECUTE format('SELECT concat_ws('', '', %s)', expressions) INTO STRICT given USING proposed;
    given := format('(%s) OVERRIDING SYSTEM VALUE VALUES (%s)', names, given);
    EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L', format(E'upsert %s %s %s %s\n%s%s',
        length(given), to_char(timezone('UTC', transaction_timestamp()), 'YYYY-MM-DD"T"HH24:MI:SS.US') || '+00',
        split_part(statement, ' ', 2), pgherd.full_name($1), given, pgherd.after_words(statement, 2))) INTO answer;
    RETURN answer;
END
$$;

-- Triggers for UPDATE fire at once, where one PostgreSQL would wait for the other rows of the statement.
CREATE OR REPLACE FUNCTION pgherd.note_upserted(relation oid, became text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    before CONSTANT text := coalesce(current_setting('pgherd.upserted_' || relation, true), '');
BEGIN
    IF before = 'updated' OR before <> '' AND became = 'updated' THEN
        RAISE EXCEPTION USING ERRCODE = '0A000', DETAIL = 'One of several rows is there already, and there are row triggers for UPDATE.',
            MESSAGE = format('cannot run ON CONFLICT DO UPDATE on distributed table "%s"', (SELECT c.relname FROM pg_class c WHERE c.oid = $1)),
            HINT = 'Insert the rows one by one.';
    END IF;
    PERFORM set_config('pgherd.upserted_' || relation, became, true);
END
$$;

-- What was computed of a row that is there already. `place`: the first line of the router's answer.
CREATE OR REPLACE FUNCTION pgherd.send_assigned(relation regclass, place text, assigned record) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO, MDY' SET intervalstyle = 'postgres'
    SET extra_float_digits = 3 AS $$
DECLARE
    statement text := current_setting('pgherd.upsert_' || $1::oid, true);
    answer text;
BEGIN
    EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L', format(E'%s %s %s %s\n%s%s',
        CASE WHEN pgherd.fires_for_updates($1) THEN 'change' ELSE 'assign' END,
        substr(place, 4), length(assigned::text), pgherd.full_name($1), assigned, pgherd.after_words(statement, 2))) INTO answer;
    IF starts_with(answer, 'UPDATE ') THEN
        PERFORM pgherd.note_upserted($1, 'updated');
    END IF;
    RETURN answer;
END
$$;

CREATE OR REPLACE FUNCTION pgherd.full_name(relation regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1
$$;

CREATE OR REPLACE FUNCTION pgherd.after_words(text text, words int) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (regexp_match($1, format('^(?:[^ ]* ){%s}(.*)$', $2)))[1]
$$;

-- The heap is empty again. As nobody's rule or trigger may run with the rights of this function, rules are left out.
CREATE OR REPLACE FUNCTION pgherd.empty_heap(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_trigger_depth() = 0
        OR NOT EXISTS (SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = relation AND p.partmethod = 'h') THEN
        RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'only triggers of distributed tables may do this';
    END IF;
    PERFORM pgherd.empty_heap_quietly(relation);
END
$$;

-- Neither rules nor foreign keys hear of it: rows that refer to these may be in another heap still.
CREATE OR REPLACE FUNCTION pgherd.empty_heap_quietly(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET session_replication_role = replica AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = relation AND r.ev_type = '4' AND r.ev_enabled IN ('A', 'R')) THEN
        RAISE EXCEPTION USING ERRCODE = '0A000',
            MESSAGE = format('cannot insert into distributed table %s from inside the coordinator', relation),
            DETAIL = 'It has a rule for DELETE that is always enabled.';
    END IF;
    EXECUTE format('DELETE FROM ONLY %s', relation);
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.empty_heap_quietly(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pgherd.empty_heap(regclass) TO PUBLIC;

-- AFTER INSERT on the heap: what SQL inside the coordinator inserted goes through the foreign child to the worker that owns
-- it, and the heap is empty again before the next statement looks. So RETURNING, FOUND and row counts are right. As a row
-- trigger it comes before those of foreign keys, which then find no row that they would have to check here.
-- Each owner of distributed tables has one, which runs as him: generated columns are computed once more for the child.
CREATE OR REPLACE FUNCTION pgherd.create_forwarder(owner oid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION pgherd.forward_rows_%s() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS %L', owner, $$
DECLARE
    mark CONSTANT text := format(' %s:%s ', pg_trigger_depth(), TG_RELID);
    inserted CONSTANT text := coalesce(current_setting('pgherd.inserted', true), '');
    columns text;
    source text := 'pgherd_rows';
    around int;
BEGIN
    IF strpos(inserted, mark) = 0 THEN
        -- Triggers of users' may have changed rows in the heap, or sent them on with rows of their own.
        IF EXISTS (SELECT FROM pgherd.fires_here h JOIN pg_class c ON c.oid = h.relation
                WHERE h.relation = TG_RELID AND NOT c.relforcerowsecurity) THEN
            source := format('ONLY %I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
        END IF;
        IF coalesce(current_setting('pgherd.upsert_' || TG_RELID, true), '') = '' THEN
            SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO STRICT columns
                FROM pg_attribute a
                WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
            EXECUTE format('INSERT INTO pgherd.%I (%s) SELECT %s FROM %s', 'ft_' || TG_RELID, columns, columns, source);
        ELSE
            EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L',
                format(E'inserted %I.%I\n', TG_TABLE_SCHEMA, TG_TABLE_NAME)) INTO columns;
        END IF;
        PERFORM pgherd.empty_heap(TG_RELID);
    END IF;
    IF TG_LEVEL = 'ROW' THEN
        PERFORM set_config('pgherd.inserted', replace(inserted, mark, '') || mark, true);
        RETURN NULL;
    END IF;
    -- The last of the statement. One around it, which has called a function for a row, goes on with rows of its own.
    around := current_setting('pgherd.inserting_' || TG_RELID)::int - 1;
    PERFORM set_config('pgherd.inserted', replace(inserted, mark, ''), true),
        set_config('pgherd.inserting_' || TG_RELID, greatest(around, 0)::text, true),
        set_config('pgherd.upsert_' || TG_RELID, '', true);
    RETURN NULL;
END
$$);
    EXECUTE format('ALTER FUNCTION pgherd.forward_rows_%s() OWNER TO %I', owner, pg_get_userbyid(owner));
    EXECUTE format('REVOKE EXECUTE ON FUNCTION pgherd.forward_rows_%s() FROM PUBLIC', owner);
END
$f$;
REVOKE EXECUTE ON FUNCTION pgherd.create_forwarder(oid) FROM PUBLIC;

-- See fire_nothing.
CREATE OR REPLACE FUNCTION pgherd.guard_firing(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE format('CREATE TRIGGER "~pgherd_guard_fires" AFTER INSERT ON %s FOR EACH ROW '
        'WHEN (pgherd.fires_again()) EXECUTE FUNCTION pgherd.begin_local_changes()', relation);
    EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER "~pgherd_guard_fires"', relation);
END
$$;

-- Gives the heap of a distributed table, which is always empty, its triggers. Where the user's fire on the workers they are
-- disabled here, and rows go to the workers one by one, so that what triggers there make of a row is known here.
CREATE OR REPLACE FUNCTION pgherd.guard_heap(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard name;
    owner CONSTANT oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = $1);
    -- Where a schema is brought up to date, workers have the triggers that they have.
    here CONSTANT bool := coalesce(current_setting('pgherd.keeps_triggers', true), '') <> 'on' AND pgherd.fires_here($1);
BEGIN
    IF to_regprocedure(format('pgherd.forward_rows_%s()', owner)) IS NULL THEN
        PERFORM pgherd.create_forwarder(owner);
    END IF;
    IF here THEN
        INSERT INTO pgherd.fires_here (relation) VALUES ($1);
        -- Its scan has a higher number than those of the statement, and a lower one than those of triggers.
        EXECUTE format('CREATE TRIGGER "!pgherd_guard_changes" BEFORE UPDATE OR DELETE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.begin_local_changes()', relation);
        -- Before any of the user's.
        EXECUTE format('CREATE TRIGGER "!pgherd_guard_rows" AFTER INSERT ON %s REFERENCING NEW TABLE AS pgherd_rows '
            'FOR EACH ROW EXECUTE FUNCTION pgherd.forward_rows_%s()', relation, owner);
        PERFORM pgherd.guard_firing(relation);
    ELSE
        INSERT INTO pgherd.worker_trigger (trigger, relation, enabled)
            SELECT t.oid, t.tgrelid, t.tgenabled FROM pg_trigger t
            WHERE t.tgrelid = $1 AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND t.tgenabled <> 'D'
            ON CONFLICT DO NOTHING;
        FOR guard IN SELECT t.tgname FROM pgherd.worker_trigger w JOIN pg_trigger t ON t.oid = w.trigger WHERE w.relation = $1 LOOP
            EXECUTE format('ALTER TABLE ONLY %s DISABLE TRIGGER %I', relation, guard);
        END LOOP;
    END IF;
    EXECUTE format('CREATE TRIGGER pgherd_guard AFTER INSERT ON %s REFERENCING NEW TABLE AS pgherd_rows '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.forward_rows_%s()', relation, owner);
    EXECUTE format('CREATE TRIGGER pgherd_guard_statement BEFORE INSERT ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.begin_local_rows()', relation);
    -- After any of the user's.
    EXECUTE format('CREATE TRIGGER "~pgherd_guard_row" BEFORE INSERT ON %s FOR EACH ROW '
        'WHEN (pg_catalog.current_setting(%L, true) <> '''') EXECUTE FUNCTION pgherd.upsert_local_row()', relation,
        'pgherd.upsert_' || relation::oid);
    FOR guard IN SELECT t.tgname FROM pg_trigger t
        WHERE t.tgrelid = relation AND NOT t.tgisinternal AND t.tgname ~* '^[!~]?pgherd_guard'
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', relation, guard);
    END LOOP;
END
$$;

-- BEFORE UPDATE and DELETE statement trigger where the user's triggers fire here: what begins to read from now on is
-- theirs, or a function's.
CREATE OR REPLACE FUNCTION pgherd.begin_local_changes() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L',
        format(E'changing %I.%I\n', TG_TABLE_SCHEMA, TG_TABLE_NAME)) INTO result;
    RETURN NULL;
END
$$;

-- What a trigger on a foreign child says in place of TG_RELID, TG_TABLE_NAME and TG_TABLE_SCHEMA: of the table.
CREATE OR REPLACE FUNCTION pgherd.parent_of(child oid) RETURNS oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT i.inhparent FROM pg_inherits i WHERE i.inhrelid = $1 $$;
CREATE OR REPLACE FUNCTION pgherd.parent_name(child oid) RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$ SELECT c.relname FROM pg_class c WHERE c.oid = pgherd.parent_of($1) $$;
CREATE OR REPLACE FUNCTION pgherd.parent_schema(child oid) RETURNS name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pgherd.parent_of($1)
$$;

-- The function of a trigger on a foreign child: the user's, or where that asks for the table's name a copy that is told it.
CREATE OR REPLACE FUNCTION pgherd.function_of_child(function oid) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    source record;
    body text := '';
    piece text;
    last text := '';
    copy text := format('pgherd.fired_%s', function);
BEGIN
    SELECT p.*, l.lanname, format('%I.%I', n.nspname, p.proname) AS full_name INTO STRICT source
        FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.oid = function;
    IF source.lanname <> 'plpgsql' OR source.prosrc !~* E'\\mtg_(relid|relname|table_name|table_schema)\\M' THEN
        RETURN source.full_name;
    END IF;
    FOREACH piece IN ARRAY pgherd.pieces(source.prosrc) LOOP
        body := body || CASE WHEN last = '.' THEN piece ELSE CASE lower(piece)
            WHEN 'tg_relid' THEN 'pgherd.parent_of(TG_RELID)'
            WHEN 'tg_relname' THEN 'pgherd.parent_name(TG_RELID)'
            WHEN 'tg_table_name' THEN 'pgherd.parent_name(TG_RELID)'
            WHEN 'tg_table_schema' THEN 'pgherd.parent_schema(TG_RELID)'
            ELSE piece END END;
        last := piece;
    END LOOP;
    EXECUTE format('CREATE OR REPLACE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS %L', copy, body);
    EXECUTE format('ALTER FUNCTION %s() %s COST %s', copy,
        CASE source.provolatile WHEN 'v' THEN 'VOLATILE' WHEN 's' THEN 'STABLE' ELSE 'IMMUTABLE' END, source.procost);
    IF source.prosecdef THEN
        EXECUTE format('ALTER FUNCTION %s() SECURITY DEFINER', copy);
        EXECUTE format('ALTER FUNCTION %s() OWNER TO %I', copy, pg_get_userbyid(source.proowner));
    END IF;
    UPDATE pg_proc p SET proconfig = source.proconfig, prosecdef = source.prosecdef WHERE p.oid = to_regprocedure(copy || '()');
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s() FROM PUBLIC', copy);
    RETURN copy;
END
$f$;
REVOKE EXECUTE ON FUNCTION pgherd.function_of_child(oid) FROM PUBLIC;

-- The user's row triggers for UPDATE and DELETE, on the foreign child that has the rows.
CREATE OR REPLACE FUNCTION pgherd.create_child_triggers(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    t record;
    child text := format('pgherd.%I', 'ft_' || relation::oid);
    columns text;
    arguments text;
BEGIN
    FOR t IN SELECT e.* FROM pgherd.enabled_triggers(relation) e
        WHERE e.tgtype & 1 = 1 AND e.tgtype & 24 <> 0 AND pgherd.trigger_refusal(relation) IS NULL ORDER BY e.tgname
    LOOP
        SELECT ' OF ' || string_agg(quote_ident(a.attname), ', ') INTO columns
            FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum = ANY (t.tgattr::int2[]);
        SELECT coalesce(string_agg(quote_literal(convert_from(x.value, getdatabaseencoding())), ', ' ORDER BY x.number), '')
            INTO arguments
            FROM (SELECT row_number() OVER () AS number, decode(m[1], 'hex') AS value
                FROM regexp_matches(encode(t.tgargs, 'hex'), '((?:(?!00)..)*)00', 'g') m) x
            WHERE x.number <= t.tgnargs;
        EXECUTE format('CREATE TRIGGER %I %s %s ON %s FOR EACH ROW %s EXECUTE FUNCTION %s(%s)', t.tgname,
            CASE WHEN t.tgtype & 2 = 2 THEN 'BEFORE' ELSE 'AFTER' END,
            concat_ws(' OR ', CASE WHEN t.tgtype & 8 <> 0 THEN 'DELETE' END,
                CASE WHEN t.tgtype & 16 <> 0 THEN 'UPDATE' || coalesce(columns, '') END),
            child, 'WHEN (' || pgherd.trigger_condition(t.oid) || ')', pgherd.function_of_child(t.tgfoid), arguments);
        IF t.tgenabled <> 'O' THEN
            EXECUTE format('ALTER FOREIGN TABLE %s ENABLE %s TRIGGER %I', child,
                CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END, t.tgname);
        END IF;
    END LOOP;
END
$$;
REVOKE EXECUTE ON FUNCTION pgherd.create_child_triggers(regclass) FROM PUBLIC;

-- Tables that refer to each other, this one among them: what is referenced goes before what refers to it, if it came first. The
-- name puts the trigger before RI_ConstraintTrigger_…. A table may have had its guard before it had the key.
CREATE OR REPLACE FUNCTION pgherd.guard_keys(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    -- No event triggers, the user's least of all.
    SET session_replication_role = replica AS $$
DECLARE
    guarded record;
BEGIN
    FOR guarded IN SELECT DISTINCT c.oid, c.oid::regclass AS name, c.relowner FROM pg_constraint k
        JOIN pgherd.pg_dist_partition p ON p.logicalrelid = k.confrelid AND p.partmethod = 'h'
        JOIN pg_class c ON c.oid IN (k.conrelid, k.confrelid) AND c.relkind = 'r'
        WHERE k.oid = ANY (ARRAY(SELECT pgherd.keys_at(relation))) AND k.contype = 'f'
            AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'pgherd_guard')
            AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'PGHERD_guard_rows')
    LOOP
        IF to_regprocedure(format('pgherd.forward_rows_%s()', guarded.relowner)) IS NULL THEN
            PERFORM pgherd.create_forwarder(guarded.relowner);
        END IF;
        EXECUTE format('CREATE TRIGGER "PGHERD_guard_rows" AFTER INSERT ON %s REFERENCING NEW TABLE AS pgherd_rows '
            'FOR EACH ROW EXECUTE FUNCTION pgherd.forward_rows_%s()', guarded.name, guarded.relowner);
        -- ENABLE ALWAYS, which ALTER TABLE refuses where a statement around this one reads the other table.
        UPDATE pg_trigger t SET tgenabled = 'A' WHERE t.tgrelid = guarded.oid AND t.tgname = 'PGHERD_guard_rows';
        UPDATE pg_class c SET relname = c.relname WHERE c.oid = guarded.oid;
    END LOOP;
END
$$;

-- BEFORE INSERT statement trigger of a partitioned table and its partitions: rows reach the workers through foreign partitions,
-- which know of no conflict but with whatever is there.
CREATE OR REPLACE FUNCTION pgherd.begin_partitioned_rows() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
BEGIN
    GET DIAGNOSTICS context = PG_CONTEXT;
    context := pgherd.plain_context(context);
    IF pgherd.text_or_bodies(context, pgherd.statement_of(context)) ~* E'on\\s+conflict(?!\\s+do\\s+nothing)|merge\\s+into' THEN
        RAISE EXCEPTION USING ERRCODE = 'PH001',
            MESSAGE = format('cannot run ON CONFLICT or MERGE on distributed table "%s" from inside the coordinator', TG_TABLE_NAME),
            HINT = 'Send the statement through the router by itself.', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME;
    END IF;
    RETURN NULL;
END
$$;

-- BEFORE and AFTER UPDATE statement triggers of such a table, where columns are assigned that say to which partition a row
-- belongs: the statement may move rows within the table that it names.
CREATE OR REPLACE FUNCTION pgherd.update_partitioned() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    context text;
    result text;
    -- The coordinator's row stays in its partition, and says so.
    tells_partition bool := false;
BEGIN
    IF TG_WHEN = 'BEFORE' THEN
        GET DIAGNOSTICS context = PG_CONTEXT;
        context := pgherd.plain_context(context);
        -- (Where the router has written pgherd.tableoid, that tells.)
        context := pgherd.text_or_bodies(context, pgherd.statement_of(context));
        tells_partition := context ~* E'\\mreturning\\M.*\\mtableoid\\M' AND strpos(context, 'pgherd.tableoid(') = 0;
    END IF;
    EXECUTE format('SELECT r.result FROM pgherd.remote_statement r WHERE r.command = %L', format(E'%s %I.%I\n%s',
        CASE TG_WHEN WHEN 'BEFORE' THEN 'updating' ELSE 'updated' END, TG_TABLE_SCHEMA, TG_TABLE_NAME,
        CASE WHEN tells_partition THEN 'tableoid' END)) INTO result;
    RETURN NULL;
END
$$;

-- The triggers of a table that is partitioned here. What a foreign key does to referencing rows is the workers' business.
CREATE OR REPLACE FUNCTION pgherd.guard_partitioned(relation regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    acting record;
    moment text;
    columns text;
    is_tree bool;
BEGIN
    -- An expression may read any column.
    SELECT CASE WHEN NOT bool_or(p.partexprs IS NOT NULL) THEN 'OF ' || string_agg(DISTINCT quote_ident(a.attname), ', ') END, count(*) > 0
        INTO columns, is_tree
        FROM pg_partition_tree(pg_partition_root($1)) t JOIN pg_partitioned_table p ON p.partrelid = t.relid
            LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = ANY (p.partattrs::int2[]) AND a.attnum > 0
        WHERE NOT EXISTS (SELECT FROM pgherd.leaf l WHERE l.relation = t.relid);
    FOREACH moment IN ARRAY CASE WHEN is_tree THEN '{BEFORE,AFTER}'::text[] ELSE '{}' END LOOP
        EXECUTE format('CREATE TRIGGER pgherd_guard_%s_update %s UPDATE %s ON %s FOR EACH STATEMENT '
            'EXECUTE FUNCTION pgherd.update_partitioned()', lower(moment), moment, columns, relation);
        EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER pgherd_guard_%s_update', relation, lower(moment));
    END LOOP;
    EXECUTE format('CREATE TRIGGER pgherd_guard_statement BEFORE INSERT ON %s '
        'FOR EACH STATEMENT EXECUTE FUNCTION pgherd.begin_partitioned_rows()', relation);
    EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER pgherd_guard_statement', relation);
    FOR acting IN SELECT t.tgrelid::regclass AS relation, t.tgname FROM pg_constraint k
        JOIN pgherd.pg_dist_partition p ON p.logicalrelid::oid = k.confrelid AND p.partmethod = 'n'
        JOIN pg_trigger t ON t.tgconstraint = k.oid AND t.tgrelid = k.confrelid
        WHERE k.conrelid = $1 AND k.contype = 'f' AND t.tgenabled <> 'D'
    LOOP
        EXECUTE format('ALTER TABLE ONLY %s DISABLE TRIGGER %I', acting.relation, acting.tgname);
    END LOOP;
END
$$;

-- Tables that were distributed before these triggers were made.
DO $$
DECLARE
    t record;
BEGIN
    PERFORM set_config('pgherd.keeps_triggers', 'on', true);
    FOR t IN SELECT p.logicalrelid AS relation, p.partmethod FROM pgherd.pg_dist_partition p
        WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = p.logicalrelid)
            AND (NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = p.logicalrelid AND g.tgname ~* '^[!~]?pgherd_guard_')
                OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = p.logicalrelid
                    AND (g.tgfoid = to_regprocedure('pgherd.forward_local_rows()') OR g.tgname = 'pgherd_guard_row'
                        OR p.partmethod = 'n' AND g.tgname = 'pgherd_guard_insert' AND g.tgenabled = 'O'))
                OR EXISTS (SELECT FROM pg_class c WHERE c.oid = p.logicalrelid AND c.relkind = 'p')
                    AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = p.logicalrelid AND g.tgname = 'pgherd_guard_before_update'))
    LOOP
        IF t.partmethod = 'h' THEN
            PERFORM pgherd.attach_child(t.relation);
        ELSE
            PERFORM pgherd.guard_reference(t.relation);
        END IF;
    END LOOP;
    PERFORM set_config('pgherd.keeps_triggers', '', true);
    FOR t IN SELECT h.relation::regclass AS relation FROM pgherd.fires_here h JOIN pg_class c ON c.oid = h.relation
        WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = h.relation AND g.tgname = '~pgherd_guard_fires')
            AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = h.relation AND g.tgname = '!pgherd_guard_rows')
    LOOP
        PERFORM pgherd.guard_firing(t.relation);
    END LOOP;
    PERFORM pgherd.create_forwarder(r.oid) FROM pg_roles r
        WHERE to_regprocedure(format('pgherd.forward_rows_%s()', r.oid)) IS NOT NULL;
    -- Those that had their guard before rows went by keys.
    PERFORM pgherd.guard_keys(p.logicalrelid) FROM pgherd.pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
        WHERE p.partmethod = 'h' AND EXISTS (SELECT FROM pg_constraint k WHERE k.contype = 'f' AND k.confrelid = c.oid);
    DROP FUNCTION IF EXISTS pgherd.forward_local_rows();
    DROP FUNCTION IF EXISTS pgherd.looks_for_conflicts(text, text);
    DROP FUNCTION IF EXISTS pgherd.guards_reference(oid, name, text, bool, bool);
END
$$;

-- Distributed tables whose triggers may be told otherwise once functions of these names are others.
CREATE OR REPLACE FUNCTION pgherd.fired_by(names text[]) RETURNS SETOF oid
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT DISTINCT t.tgrelid FROM pgherd.pg_dist_partition d JOIN pg_trigger t ON t.tgrelid = d.logicalrelid
        JOIN pg_proc p ON p.oid = t.tgfoid
    WHERE d.partmethod = 'h' AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard'
        AND (p.proname::text = ANY (names) OR EXISTS (SELECT FROM unnest(names) n
            WHERE strpos(lower(p.prosrc || pg_get_triggerdef(t.oid)), lower(n)) > 0
                AND EXISTS (SELECT FROM pg_proc o WHERE o.proname = n AND o.pronamespace = 'pg_catalog'::regnamespace)))
$$;

-- From PostgreSQL 17 on there is a setting for just this; the other makes a backend forget all its plans.
DO $$
DECLARE
    function text;
BEGIN
    IF current_setting('server_version_num')::int >= 170000 THEN
        FOREACH function IN ARRAY '{attach_child(regclass),detach_child(regclass),follow_keys(oid),guard_keys(regclass)}'::text[] LOOP
            EXECUTE format('ALTER FUNCTION pgherd.%s RESET session_replication_role', function);
            EXECUTE format('ALTER FUNCTION pgherd.%s SET event_triggers = off', function);
        END LOOP;
    END IF;
END
$$;
