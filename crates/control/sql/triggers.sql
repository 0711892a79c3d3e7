-- Users' triggers of distributed tables: which of them may fire on the workers, and what the others need to fire on the
-- coordinator (docs/decisions/0016). Every node has the questions, for describe.sql; only a coordinator has other answers.

-- A PL/pgSQL text in pieces: white space, comments, literals, quoted names, words and single characters.
CREATE OR REPLACE FUNCTION pgherd.pieces(code text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    rest text := code;
    piece text;
    closes int;
    found text[] := '{}';
BEGIN
    WHILE rest <> '' LOOP
        piece := (regexp_match(rest, $r$^(\s+|--[^\n]*|/\*(?:[^*]|\*+[^*/])*\*+/|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|$r$
            || $r$"(?:[^"]|"")*"|\$(?:[[:alpha:]_][[:alnum:]_]*)?\$|[[:alpha:]_][[:alnum:]_$]*|[0-9]+|.)$r$))[1];
        IF piece ~ E'^\\$.*\\$$' THEN
            closes := strpos(substr(rest, length(piece) + 1), piece);
            piece := CASE closes WHEN 0 THEN rest ELSE left(rest, 2 * length(piece) + closes - 1) END;
        END IF;
        found := found || piece;
        rest := substr(rest, length(piece) + 1);
    END LOOP;
    RETURN found;
END
$f$;

-- Whether PL/pgSQL code, or a trigger's condition, does the same on any server: it reads and writes nothing but the row, does
-- not ask where it runs, and calls built-in functions only. In doubt it does not.
CREATE OR REPLACE FUNCTION pgherd.same_anywhere(code text) RETURNS bool
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
    piece text;
    word text;
    last text := '';
    before_last text := '';
    is_name bool;
    last_is_name bool := false;
    -- What stands before each bracket that is open.
    brackets text[] := '{}';
    called text[] := '{}';
    named text[] := '{}';
    -- They read, write, define, or tell the server's state or the table's, or whose function writes. Partitions have the table's
    -- name, and the session's user is the same everywhere.
    reads CONSTANT text[] := '{insert,update,delete,merge,execute,call,copy,lock,truncate,create,alter,drop,notify,listen,unlisten,'
        'set,reset,table,grant,revoke,comment,vacuum,analyze,analyse,refresh,import,do,load,discard,checkpoint,cluster,reindex,prepare,'
        'deallocate,fetch,move,current_catalog,current_schema,current_user,current_role,user,pg_context,tg_relid,tg_table_schema}';
    physical CONSTANT text[] := '{tableoid,ctid,xmin,xmax,cmin,cmax}';
    keywords CONSTANT text[] := '{if,elsif,elseif,and,or,not,in,values,coalesce,nullif,greatest,least,case,when,then,else,exists,any,'
        'all,some,array,row,cast,return,over,filter,within,using,by,on,as,is,between,like,ilike,similar,escape,numeric,decimal,dec,'
        'varchar,char,character,varying,bpchar,bit,varbit,timestamp,timestamptz,time,timetz,interval,float,declare,begin,loop,while,'
        'exit,continue,perform,select,with,recursive,union,except,intersect,order,distinct,having,where,limit,offset,to,precision,'
        'normalize,collate,into,strict,raise,exception,next,query,for,foreach,slice,assert,default,constant}';
    steady CONSTANT text[] := '{now,transaction_timestamp,statement_timestamp,clock_timestamp,timeofday,random,gen_random_uuid,to_char,'
        'to_date,to_timestamp,to_number,date_trunc,date_part,date,extract,age,timezone,make_timestamptz,format,concat,concat_ws,'
        'quote_literal,quote_nullable,to_json,to_jsonb,row_to_json,array_to_json,json_build_object,json_build_array,'
        'jsonb_build_object,jsonb_build_array,to_tsvector,to_tsquery,plainto_tsquery,phraseto_tsquery,websearch_to_tsquery,'
        'array_to_string,text,substring,trim,overlay,position,left,right}';
BEGIN
    -- Comments in comments are not told from what follows them.
    IF code ~ E'/\\*(?:[^*]|\\*+[^*/])*/\\*' THEN
        RETURN false;
    END IF;
    FOREACH piece IN ARRAY pgherd.pieces(code) LOOP
        CONTINUE WHEN piece ~ E'^(\\s|--|/\\*)';
        is_name := piece ~ '^[[:alpha:]_"]' AND piece !~ '''$';
        word := CASE WHEN piece ~ '^"' THEN replace(substr(piece, 2, length(piece) - 2), '""', '"') WHEN is_name THEN lower(piece)
            ELSE piece END;
        IF is_name THEN
            IF word = ANY (physical) OR last <> '.' AND piece !~ '^"' AND word = ANY (reads)
                OR word IN ('type', 'rowtype') AND last = '%'
                OR word = 'from' AND last <> '.' AND NOT (last = 'distinct' AND before_last IN ('is', 'not'))
                    AND coalesce(brackets[cardinality(brackets)], '') <> ALL ('{extract,substring,trim,overlay,position}'::text[]) THEN
                RETURN false;
            END IF;
            IF last <> '.' THEN
                named := named || word;
            END IF;
        ELSIF word = '(' THEN
            IF last_is_name AND before_last = '.' THEN
                RETURN false;
            END IF;
            brackets := brackets || CASE WHEN last_is_name THEN last ELSE '' END;
            IF last_is_name THEN
                called := called || last;
            END IF;
        ELSIF word = ')' THEN
            brackets := brackets[:cardinality(brackets) - 1];
        ELSIF word = '.' AND last IN (')', ']') THEN
            -- Of a row it may be a function.
            RETURN false;
        END IF;
        before_last := last;
        last := word;
        last_is_name := is_name;
    END LOOP;
    RETURN NOT EXISTS (SELECT FROM unnest(called) c(name)
            WHERE EXISTS (SELECT FROM pg_proc p WHERE p.proname = c.name
                    AND p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pgherd'::regnamespace))
                OR c.name <> ALL (steady || keywords) AND coalesce((SELECT bool_or(p.provolatile <> 'i') FROM pg_proc p
                    WHERE p.proname = c.name AND p.pronamespace = 'pg_catalog'::regnamespace), true))
        AND NOT EXISTS (SELECT FROM pg_type y WHERE y.oid >= 16384 AND y.typname::text = ANY (named)
            AND y.typnamespace NOT IN ('information_schema'::regnamespace, 'pgherd'::regnamespace))
        AND NOT EXISTS (SELECT FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode JOIN pg_language l ON l.oid = p.prolang
            WHERE o.oid >= 16384 AND o.oprnamespace <> 'pgherd'::regnamespace AND l.lanname NOT IN ('internal', 'c'));
END
$f$;

-- The condition of a trigger; NULL: it has none.
CREATE OR REPLACE FUNCTION pgherd.trigger_condition(trigger oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT (regexp_match(substr(d.definition, strpos(d.definition, ' FOR EACH ') + 10), E'^\\w+ WHEN \\((.*)\\) EXECUTE FUNCTION '))[1]
    FROM (SELECT pg_get_triggerdef($1) AS definition) d
$$;

-- Whether a trigger does the same on whatever server the row is.
CREATE OR REPLACE FUNCTION pgherd.fires_anywhere(trigger oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.tgtype & 1 = 1 AND t.tgoldtable IS NULL AND t.tgnewtable IS NULL
        AND CASE l.lanname
            WHEN 'plpgsql' THEN pgherd.same_anywhere(p.prosrc)
                AND NOT EXISTS (SELECT FROM unnest(p.proconfig) c(setting) WHERE c.setting !~ '^search_path=')
            WHEN 'internal' THEN p.proname IN ('suppress_redundant_updates_trigger', 'tsvector_update_trigger',
                'tsvector_update_trigger_column')
            ELSE false END
        AND (t.tgqual IS NULL OR coalesce(pgherd.same_anywhere(pgherd.trigger_condition(t.oid)), false))
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
    WHERE t.oid = $1
$$;

-- Users' triggers of a table that are not disabled.
CREATE OR REPLACE FUNCTION pgherd.enabled_triggers(relation oid) RETURNS SETOF pg_catalog.pg_trigger
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.* FROM pg_trigger t LEFT JOIN pgherd.worker_trigger w ON w.trigger = t.oid
    WHERE t.tgrelid = $1 AND NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND coalesce(w.enabled, t.tgenabled) <> 'D'
$$;

-- Whether PL/pgSQL code of a trigger may give the row another value for a column. In doubt it does.
CREATE OR REPLACE FUNCTION pgherd.assigns(code text, field text) RETURNS bool
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.code ~ (E'(^|;|>>|\\m(begin|then|else|loop)\\M)\\s*"?new"?' || f.path || E'\\s*:?=')
        OR c.code ~ (E'\\minto\\s+(strict\\s+)?([^;]*,\\s*)?"?new"?' || f.path || E'\\s*(,|;|\\mfrom\\M|$)')
        OR c.code ~ E'\\mreturn\\s+(?!("?(new|old)"?|null)\\s*;)'
    FROM (SELECT lower(string_agg(CASE WHEN p.piece ~ E'^(--|/\\*)' THEN ' ' WHEN p.piece ~ E'^([eE]?''|\\$)' THEN '''''' ELSE p.piece END,
                '' ORDER BY p.n)) FROM unnest(pgherd.pieces($1)) WITH ORDINALITY p(piece, n)) c(code),
        (SELECT E'(\\s*\\.\\s*"?' || regexp_replace(lower($2), E'(\\W)', E'\\\\\\1', 'g')
            || E'"?(?![a-z0-9_$])(\\s*\\[[^]]*\\]|\\s*\\.\\s*"?\\w+"?)*)?') f(path)
$$;

-- The column that a table is distributed by; NULL for partitions and what has them.
CREATE OR REPLACE FUNCTION pgherd.distribution_column(relation oid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF to_regclass('pgherd.pg_dist_partition') IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT p.partkey FROM pgherd.pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
        WHERE c.oid = $1 AND p.partmethod = 'h' AND c.relkind = 'r' AND NOT c.relispartition);
END
$$;

-- Whether a trigger may give new rows another value for the column that says where they belong: they have gone there by then.
CREATE OR REPLACE FUNCTION pgherd.moves_rows(trigger oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.tgtype & 7 = 7 AND l.lanname = 'plpgsql'
        AND coalesce(pgherd.assigns(p.prosrc, pgherd.distribution_column(t.tgrelid)), false)
    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
    WHERE t.oid = $1
$$;

-- Why triggers cannot fire on the coordinator as in PostgreSQL; NULL: they can. Changed rows are those of a foreign table there.
CREATE OR REPLACE FUNCTION pgherd.refusal_to_fire(relation oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.why FROM pgherd.enabled_triggers($1) t JOIN pg_proc p ON p.oid = t.tgfoid JOIN pg_language l ON l.oid = p.prolang
        CROSS JOIN LATERAL (SELECT CASE
            WHEN t.tgtype & 24 <> 0 AND (t.tgoldtable IS NOT NULL OR t.tgnewtable IS NOT NULL) THEN
                format('Trigger "%s" has a transition table for UPDATE or DELETE, and the rows are on the workers.', t.tgname)
            WHEN t.tgconstraint <> 0 AND t.tgdeferrable AND NOT pgherd.fires_anywhere(t.oid) THEN
                format('Constraint trigger "%s" can be deferred, and reads or writes more than the row.', t.tgname)
            WHEN t.tgconstraint <> 0 AND t.tgtype & 24 <> 0 THEN
                format('Constraint trigger "%s" is for UPDATE or DELETE, and reads or writes more than the row.', t.tgname)
            WHEN t.tgtype & 1 = 1 AND t.tgtype & 24 <> 0 AND l.lanname NOT IN ('plpgsql', 'internal') THEN
                format('Trigger "%s" for UPDATE or DELETE has a function in language %s, to which the table could not be named.',
                    t.tgname, l.lanname)
            WHEN t.tgtype & 1 = 1 AND t.tgtype & 24 <> 0 AND concat(p.prosrc, pg_get_triggerdef(t.oid))
                    ~* E'\\mpg_typeof\\s*\\(\\s*(new|old)\\s*\\)|\\m(new|old)\\s*\\.\\s*(tableoid|ctid|xmin|xmax|cmin|cmax)\\M' THEN
                format('Trigger "%s" for UPDATE or DELETE asks where the row is.', t.tgname)
            WHEN t.tgtype & 8 <> 0 AND t.tgenabled IN ('A', 'R') THEN
                format('Trigger "%s" for DELETE is enabled ALWAYS or REPLICA: it would see rows leave the coordinator.', t.tgname)
            WHEN t.tgtype & 5 = 5 AND (t.tgtype & 2 = 2 AND t.tgname::text COLLATE "C" >= '~pgherd'
                    OR t.tgtype & 2 = 0 AND t.tgname::text COLLATE "C" <= '!pgherd~') THEN
                format('The name of trigger "%s" has it fire before or after what the coordinator does itself.', t.tgname)
            WHEN EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = $1 AND k.contype = 'f'
                    AND (k.confdeltype = 'c' AND t.tgtype & 8 <> 0 OR k.confdeltype IN ('n', 'd') AND t.tgtype & 16 <> 0
                        OR k.confupdtype IN ('c', 'n', 'd') AND t.tgtype & 16 <> 0)) THEN
                format('Trigger "%s" would not fire for rows that a foreign key of the table changes, by CASCADE or SET.', t.tgname)
            END) w(why)
    WHERE w.why IS NOT NULL ORDER BY t.tgname LIMIT 1
$$;

-- Whether all triggers of a table are to fire on the coordinator: some may not fire on the workers. Their order is kept so. Those that
-- move new rows fire there where nothing is refused for it.
CREATE OR REPLACE FUNCTION pgherd.fires_here(relation oid) RETURNS bool
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pgherd.enabled_triggers($1) t WHERE NOT pgherd.fires_anywhere(t.oid))
        OR EXISTS (SELECT FROM pgherd.enabled_triggers($1) t WHERE pgherd.moves_rows(t.oid))
            AND NOT EXISTS (SELECT FROM pgherd.enabled_triggers($1) t WHERE t.tgtype & 16 <> 0 OR t.tgtype & 6 = 4)
            AND pgherd.refusal_to_fire($1) IS NULL
$$;

-- Why triggers that are to fire on the coordinator cannot.
CREATE OR REPLACE FUNCTION pgherd.trigger_refusal(relation oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN pgherd.fires_here($1) THEN pgherd.refusal_to_fire($1) END
$$;
