//! What names mean, as far as planning asks: of functions, types, operators, relations and roles. Three parts: what
//! comes with the server, what users' functions say, which is looked into and takes the longest, and the rest.

use std::collections::HashSet;
use std::sync::Arc;

use pgherd_catalog::{Builtins, NameRow, Snapshot};

use crate::database::{Source, string};

/// A row is a kind, and a name.
///
/// Bodies would be cut to a name's length if the second column of the first query were one.
pub const BUILTINS: &str = r"
WITH of_collation AS MATERIALIZED (SELECT t.oid FROM pg_catalog.pg_type t WHERE t.typcollation NOT IN (0, 100))
SELECT 'i', proname::pg_catalog.text FROM pg_catalog.pg_proc WHERE oid < 16384 AND pronamespace = 11
  GROUP BY proname HAVING pg_catalog.bool_and(provolatile = 'i')
UNION ALL SELECT 'v', proname FROM pg_catalog.pg_proc WHERE oid < 16384 AND pronamespace = 11 AND provolatile = 'v'
UNION ALL SELECT prokind::pg_catalog.text, proname FROM pg_catalog.pg_proc WHERE oid < 16384 AND prokind IN ('a', 'w')
UNION ALL SELECT 's', proname FROM pg_catalog.pg_proc WHERE oid < 16384 AND proretset
UNION ALL SELECT 'c', c.relname FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
  WHERE c.oid < 16384 AND a.attnum > 0 AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
    AND (a.attcollation NOT IN (0, 100) OR a.attcollation = 0 AND a.atttypid >= 16384)
    AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
UNION ALL SELECT 'c', typname FROM pg_catalog.pg_type WHERE oid < 16384 AND typcollation NOT IN (0, 100)
UNION ALL SELECT 'c', f.proname FROM pg_catalog.pg_proc f
  WHERE f.oid < 16384 AND (f.prorettype IN (SELECT oid FROM of_collation)
    OR f.proallargtypes && (SELECT pg_catalog.array_agg(oid) FROM of_collation))";

pub const FUNCTIONS: &str = r"
WITH bodies AS MATERIALIZED (SELECT p.proname, b.body,
    b.body ~ E'\\m((next|curr|last|set)val|setseed|lo_open)\\M'
      OR b.body ~ E'\\mpg_(try_)?advisory_(un)?lock(_shared)?\\M' AS direct
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang,
  LATERAL (SELECT pg_catalog.lower(
    coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)) AS body) b
  WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')
    AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)),
of_collation AS MATERIALIZED (SELECT t.oid FROM pg_catalog.pg_type t
  WHERE t.typcollation NOT IN (0, 100) OR t.typtype = 'c' AND t.oid >= 16384)
SELECT 'f', proname::pg_catalog.text FROM pg_catalog.pg_proc WHERE oid >= 16384 AND pronamespace NOT IN
  ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace, 'pgherd'::pg_catalog.regnamespace)
UNION ALL SELECT 'S' || l.lanname || ' ' || p.proname,
    coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE p.oid >= 16384 AND l.lanname IN ('sql', 'plpgsql')
    AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    AND (p.prosrc ~* E'tablesample|\\monly\\M' OR p.prosqlbody::pg_catalog.text ~ ':tablesample [{]'
      OR pg_catalog.pg_get_function_sqlbody(p.oid) ~ E'\\mONLY\\M')
UNION ALL SELECT 'C' || proname, '' FROM pg_catalog.pg_proc
  WHERE oid >= 16384 AND pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    AND prosrc ~* E'\\mset\\s+constraints\\M'
UNION ALL SELECT 'Q', '' WHERE EXISTS (SELECT FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.oid >= 16384 AND p.provolatile <> 'v' AND l.lanname NOT IN ('c', 'internal')
      AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
      AND coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc)
        ~* E'\\m(from|execute|table)\\M')
UNION ALL SELECT 'L', b.proname FROM bodies b WHERE b.direct OR EXISTS (SELECT FROM bodies d
    WHERE d.direct AND pg_catalog.strpos(b.body, pg_catalog.lower(d.proname)) > 0)
UNION ALL SELECT 'V', proname FROM pg_catalog.pg_proc WHERE oid >= 16384 AND provolatile = 'v'
UNION ALL SELECT 'G', CASE m.name WHEN 'time' THEN 'timezone' ELSE m.name END FROM pg_catalog.pg_proc p,
    LATERAL (SELECT pg_catalog.lower(x[1]) AS name FROM pg_catalog.regexp_matches(p.prosrc,
        E'set_config\\s*[(]\\s*''([a-z_][a-z0-9_.]*)''', 'gi') x
      UNION SELECT pg_catalog.lower(x[2]) FROM pg_catalog.regexp_matches(p.prosrc,
        E'\\m(set|reset)\\s+(?:session\\s+|local\\s+)?([a-z_][a-z0-9_.]*)', 'gi') x) m
  WHERE p.oid >= 16384 AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    AND (m.name ~ '[.]' OR m.name IN ('time', 'role', 'session_authorization')
      OR m.name IN (SELECT pg_catalog.lower(s.name) FROM pg_catalog.pg_settings s))
UNION ALL SELECT 'N', '' FROM (
    SELECT '[{]SQLVALUEFUNCTION|:funcid (1299|2647|2648) '::pg_catalog.text AS tree) x
  WHERE EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')
      AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
      AND (l.lanname NOT IN ('sql', 'plpgsql') OR p.prosqlbody::pg_catalog.text ~ x.tree
        OR p.prosrc ~* E'\\m(now|(transaction|statement)_timestamp|current_(date|time|timestamp))\\M'
        OR p.prosrc ~* E'\\m(localtime|localtimestamp|today|tomorrow|yesterday)\\M'))
UNION ALL SELECT 'c', f.proname FROM pg_catalog.pg_proc f
  WHERE f.oid >= 16384 AND (f.prorettype IN (SELECT oid FROM of_collation)
    OR f.proallargtypes && (SELECT pg_catalog.array_agg(oid) FROM of_collation))
UNION ALL SELECT CASE WHEN pg_catalog.bool_and(p.provolatile = 'i') THEN 'i' ELSE '-' END, p.proname
  FROM pg_catalog.pg_proc p WHERE p.pronamespace = 11 AND p.proname IN (
    SELECT o.proname FROM pg_catalog.pg_proc o WHERE o.oid >= 16384 AND o.pronamespace = 11)
  GROUP BY p.proname
UNION ALL SELECT 'v', proname FROM pg_catalog.pg_proc WHERE oid >= 16384 AND pronamespace = 11 AND provolatile = 'v'
UNION ALL SELECT prokind::pg_catalog.text, proname FROM pg_catalog.pg_proc WHERE oid >= 16384 AND prokind IN ('a', 'w')
UNION ALL SELECT 's', proname FROM pg_catalog.pg_proc WHERE oid >= 16384 AND proretset
UNION ALL SELECT 'H', pg_catalog.sum(pg_catalog.hashtextextended(oid || ' ' || xmin || ctid::pg_catalog.text, 0))::pg_catalog.text
  FROM pg_catalog.pg_proc WHERE oid < 16384";

// OFFSET 0: our own views have long trees.
pub const RELATIONS: &str = r"
SELECT 'o', o.oprname::pg_catalog.text FROM pg_catalog.pg_operator o
  JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode JOIN pg_catalog.pg_language l ON l.oid = p.prolang
  WHERE o.oid >= 16384 AND (l.lanname NOT IN ('internal', 'c') OR NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_operator'::pg_catalog.regclass
      AND d.objid = o.oid AND d.deptype = 'e'))
UNION ALL SELECT 't', typname FROM pg_catalog.pg_type WHERE oid >= 16384
  AND typnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
UNION ALL SELECT 'T', '' WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgname !~* '^[!~]?pgherd_guard')
  OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE rulename <> '_RETURN' AND oid >= 16384)
UNION ALL SELECT 'X' || t.tgrelid, '' FROM pg_catalog.pg_trigger t
    WHERE NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND t.tgtype::int4 & 24 <> 0
      AND t.tgtype::int4 & 3 <> 1 AND t.tgrelid NOT IN (SELECT relation FROM pgherd.fires_here)
UNION ALL SELECT 'D', '' WHERE EXISTS (
    SELECT FROM pg_catalog.pg_constraint k JOIN pgherd.pg_dist_partition p ON p.logicalrelid = k.conrelid
    WHERE k.condeferrable AND p.partmethod = 'h')
UNION ALL SELECT 'E', '' WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger t
    WHERE (NOT t.tgisinternal OR t.tgfoid = pg_catalog.to_regprocedure('pgherd.find_key()'))
      AND t.tgdeferrable AND NOT EXISTS (
      SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = t.tgrelid AND p.partmethod = 'h'))
UNION ALL SELECT 'A', '' WHERE EXISTS (SELECT FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND t.tgtype::int4 & 66 = 0
      AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace) AND NOT EXISTS (
        SELECT FROM pgherd.pg_dist_partition p WHERE p.logicalrelid = c.oid AND p.partmethod = 'h'
          AND c.oid NOT IN (SELECT relation FROM pgherd.fires_here)))
UNION ALL SELECT 'W' || t.tgrelid, '' FROM pg_catalog.pg_trigger t
    JOIN pgherd.fires_here h ON h.relation = t.tgrelid
    WHERE NOT t.tgisinternal AND t.tgname !~* '^[!~]?pgherd_guard' AND t.tgtype::int4 & 3 = 3
      AND t.tgtype::int4 & 24 <> 0
UNION ALL SELECT 'N', '' FROM (
    SELECT '[{]SQLVALUEFUNCTION|:funcid (1299|2647|2648) '::pg_catalog.text AS tree) x
  WHERE EXISTS (SELECT FROM (
      SELECT r.ev_action FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
      WHERE r.oid >= 16384 AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace) OFFSET 0) v
    WHERE v.ev_action::pg_catalog.text ~ x.tree)
  OR EXISTS (SELECT FROM pg_catalog.pg_attrdef d
    WHERE d.oid >= 16384 AND d.adbin::pg_catalog.text ~ x.tree
    AND (EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
        WHERE p.oid >= 16384 AND l.lanname NOT IN ('c', 'internal')
          AND p.pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace))
      OR NOT EXISTS (SELECT FROM pgherd.pg_dist_partition t
        WHERE t.logicalrelid = d.adrelid AND t.partmethod = 'h'))
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = d.adrelid
      AND c.relnamespace = 'pgherd'::pg_catalog.regnamespace))
UNION ALL SELECT 'r', c.relname FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
  WHERE r.ev_type <> '1' AND r.oid >= 16384
UNION ALL SELECT 'p', c.relname FROM pg_catalog.pg_class c
  WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'f')
  AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
  AND c.oid NOT IN (SELECT logicalrelid FROM pgherd.pg_dist_partition)
  AND (c.relkind IN ('v', 'f') OR c.relhasrules OR EXISTS (SELECT FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_proc f ON f.oid = t.tgfoid WHERE t.tgrelid = c.oid
      AND (NOT t.tgisinternal OR f.proname ~ '^RI_FKey_(cascade|setnull|setdefault)_')))
UNION ALL SELECT 'x', c.relname FROM (WITH RECURSIVE named AS MATERIALIZED (
    SELECT r.ev_class AS view, d.refclassid, d.refobjid FROM pg_catalog.pg_rewrite r
    JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
      AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      AND d.objid = r.oid AND d.refobjid <> r.ev_class AND d.refobjid >= 16384),
  calling (view) AS (SELECT n.view FROM named n LEFT JOIN pg_catalog.pg_operator o ON o.oid = n.refobjid
        AND n.refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass
      JOIN pg_catalog.pg_proc p ON p.provolatile = 'v' AND p.oid = CASE n.refclassid
        WHEN 'pg_catalog.pg_proc'::pg_catalog.regclass THEN n.refobjid ELSE o.oprcode END
    UNION SELECT n.view FROM calling k JOIN named n ON n.refobjid = k.view
      AND n.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass)
  SELECT view FROM calling) k JOIN pg_catalog.pg_class c ON c.oid = k.view
UNION ALL SELECT 'c', c.relname FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
  WHERE c.oid >= 16384 AND a.attnum > 0 AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
    AND (a.attcollation NOT IN (0, 100) OR a.attcollation = 0 AND a.atttypid >= 16384)
    AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    AND c.oid NOT IN (SELECT logicalrelid FROM pgherd.pg_dist_partition)
UNION ALL SELECT 'c', typname FROM pg_catalog.pg_type WHERE oid >= 16384 AND typcollation NOT IN (0, 100)
UNION ALL SELECT 'd', pg_catalog.pg_get_userbyid(proowner) FROM pg_catalog.pg_proc WHERE prosecdef AND oid >= 16384
  AND pronamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
UNION ALL SELECT 'd', pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_rewrite r
  JOIN pg_catalog.pg_class c ON c.oid = r.ev_class WHERE r.oid >= 16384
    AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
    AND NOT coalesce(c.reloptions && '{security_invoker=true,security_invoker=on,security_invoker=1}', false)
UNION ALL SELECT 'B' || b.relation, '' FROM (WITH RECURSIVE behind (relation) AS (
    SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relkind = 'v'
      AND c.relnamespace NOT IN (11, 'pgherd'::pg_catalog.regnamespace)
      AND (SELECT o.option_value::pg_catalog.bool FROM pg_catalog.pg_options_to_table(c.reloptions) o
           WHERE o.option_name = 'security_barrier')
  UNION SELECT d.refobjid FROM behind JOIN pg_catalog.pg_rewrite r ON r.ev_class = behind.relation
    JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass
      AND d.objid = r.oid AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass)
  SELECT relation FROM behind) b JOIN pgherd.pg_dist_partition p ON p.logicalrelid = b.relation
UNION ALL SELECT 'R' || m.umuser, pg_catalog.pg_get_userbyid(m.umuser) FROM pg_catalog.pg_user_mappings m
  WHERE m.srvname = 'pgherd_router' AND m.umuser <> 0";

/// Rows of users' functions with the bodies that take samples begin so. Such a body is told with the names that tables
/// have now.
const SAMPLING: char = 'S';

/// `base` is an earlier catalog.
pub async fn load<S: Source>(
    connection: &mut S,
    snapshot: &mut Snapshot,
    base: Option<&Snapshot>,
) -> Result<(), S::Error> {
    let samples = |base: &Snapshot| base.function_rows.iter().any(|(kind, _)| kind.starts_with(SAMPLING));
    let same = base.filter(|base| base.functions_are == snapshot.functions_are && !samples(base));
    snapshot.function_rows = match same {
        Some(base) => base.function_rows.clone(),
        None => Arc::new(rows_of(connection, FUNCTIONS).await?),
    };
    let altered = altered_builtins(&snapshot.function_rows);
    snapshot.builtins = match base.filter(|base| altered_builtins(&base.function_rows) == altered) {
        Some(base) => base.builtins.clone(),
        None => Arc::new(builtins(rows_of(connection, BUILTINS).await?)),
    };
    let relations = rows_of(connection, RELATIONS).await?;
    let builtins = snapshot.builtins.clone();
    snapshot.immutable_functions = builtins.immutable.clone();
    snapshot.volatile_functions = builtins.volatile.clone();
    snapshot.aggregates = builtins.aggregates.clone();
    snapshot.window_functions = builtins.window.clone();
    snapshot.set_returning_functions = builtins.set_returning.clone();
    snapshot.collated.extend(builtins.collated.iter().cloned());
    let functions = snapshot.function_rows.clone();
    for (kind, name) in functions.iter().chain(&relations) {
        put(snapshot, kind, name);
    }
    Ok(())
}

async fn rows_of<S: Source>(connection: &mut S, sql: &str) -> Result<Vec<NameRow>, S::Error> {
    let result = connection.query(sql).await?;
    Ok((0..result.rows.len()).map(|row| (string(&result, row, 0), string(&result, row, 1))).collect())
}

/// Equal where the functions that came with the server are.
fn altered_builtins(functions: &[NameRow]) -> Option<&str> {
    functions.iter().find(|(kind, _)| kind == "H").map(|(_, by)| by.as_str())
}

fn builtins(rows: Vec<NameRow>) -> Builtins {
    let of = |kind: &str| -> Arc<HashSet<String>> {
        Arc::new(rows.iter().filter(|row| row.0 == kind).map(|row| row.1.clone()).collect())
    };
    Builtins {
        immutable: of("i"),
        volatile: of("v"),
        aggregates: of("a"),
        window: of("w"),
        set_returning: of("s"),
        collated: of("c"),
    }
}

fn put(snapshot: &mut Snapshot, kind: &str, name: &str) {
    let number = || kind[1..].parse().unwrap_or_default();
    let set: &mut HashSet<String> = match kind {
        "f" => &mut snapshot.user_functions,
        "o" => &mut snapshot.user_operators,
        "t" => &mut snapshot.user_types,
        "r" => &mut snapshot.ruled_relations,
        "p" => &mut snapshot.passing_on,
        "x" => &mut snapshot.calling_views,
        "c" => &mut snapshot.collated,
        "i" => Arc::make_mut(&mut snapshot.immutable_functions),
        "v" => Arc::make_mut(&mut snapshot.volatile_functions),
        "V" => &mut snapshot.volatile_user_functions,
        "a" => Arc::make_mut(&mut snapshot.aggregates),
        "w" => Arc::make_mut(&mut snapshot.window_functions),
        "s" => Arc::make_mut(&mut snapshot.set_returning_functions),
        "d" => &mut snapshot.definers,
        "G" => &mut snapshot.body_settings,
        "L" => &mut snapshot.leaving_functions,
        _ => {
            match kind.chars().next() {
                Some('-') => _ = Arc::make_mut(&mut snapshot.immutable_functions).remove(name),
                Some('D') => snapshot.has_deferrable = true,
                Some('E') => snapshot.has_deferred_triggers = true,
                Some('Q') => snapshot.has_stable_readers = true,
                Some('A') => snapshot.after_triggers = true,
                Some('N') => snapshot.time_is_read_inside = true,
                Some('T') => snapshot.local_triggers = true,
                Some('R') => _ = snapshot.told_apart.insert(number(), name.to_owned()),
                Some('B') => _ = snapshot.behind_barriers.insert(number()),
                Some('X') => _ = snapshot.changing_triggers.insert(number()),
                Some('W') => _ = snapshot.firing_before.insert(number()),
                Some('C') => _ = snapshot.constraining_functions.insert(kind[1..].to_owned()),
                Some(SAMPLING) => {
                    let (language, function) = kind[1..].split_once(' ').unwrap_or_default();
                    if crate::run::takes_sample(name, language, snapshot) {
                        snapshot.sampling_functions.insert(function.to_owned());
                    }
                }
                _ => {}
            }
            return;
        }
    };
    set.insert(name.to_owned());
}
