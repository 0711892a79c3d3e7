//! What names mean, as far as planning asks: of functions, types, operators, relations and roles. What comes with the
//! server is read once; each object of users' tells of its own (`crates/control/sql/changes.sql`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pgherd_catalog::{Builtins, CatalogView, LocalDraw, NameRow, NameSet, Oid, Part, Snapshot, qualified};

use crate::database::Source;

/// A row is a kind, and a name.
const BUILTINS: &str = r"
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

pub async fn builtins<S: Source>(source: &mut S) -> Result<Builtins, S::Error> {
    let result = source.query(BUILTINS).await?;
    let mut names: HashMap<&str, HashSet<&str>> = HashMap::new();
    for row in 0..result.rows.len() {
        if let (Some(kind), Some(name)) = (result.text(row, 0), result.text(row, 1)) {
            names.entry(kind).or_default().insert(name);
        }
    }
    let mut of = |kind| names.remove(kind).unwrap_or_default().into_iter().collect::<NameSet>();
    Ok(Builtins {
        immutable: of("i"),
        volatile: of("v"),
        aggregates: of("a"),
        window: of("w"),
        set_returning: of("s"),
        collated: of("c"),
    })
}

/// Before any object has told of names.
pub fn begin(snapshot: &mut Snapshot, builtins: Builtins) {
    snapshot.immutable_functions = builtins.immutable.clone();
    snapshot.volatile_functions = builtins.volatile.clone();
    snapshot.aggregates = builtins.aggregates.clone();
    snapshot.window_functions = builtins.window.clone();
    snapshot.set_returning_functions = builtins.set_returning.clone();
    snapshot.collated = builtins.collated.clone();
    snapshot.builtins = Arc::new(builtins);
}

/// What these objects, all that were read again, tell now.
pub fn replace(snapshot: &mut Snapshot, part: Part, objects: &[Oid], rows: Vec<(Oid, NameRow)>) {
    let mut told: HashMap<Oid, Vec<NameRow>> = HashMap::new();
    for (oid, row) in rows {
        told.entry(oid).or_default().push(row);
    }
    for oid in objects {
        let mut now = told.remove(oid).unwrap_or_default();
        now.sort_unstable();
        let before = snapshot.held.rows.remove(&(part, *oid));
        if before.as_deref().unwrap_or_default() != now {
            before.iter().flat_map(|rows| rows.iter()).for_each(|row| put(snapshot, *oid, row, false));
            now.iter().for_each(|row| put(snapshot, *oid, row, true));
        }
        if !now.is_empty() {
            snapshot.held.rows.insert((part, *oid), now.into());
        }
    }
}

/// What follows from all of it together, tables included.
pub fn settle(snapshot: &mut Snapshot) {
    let (immutable, others) = &snapshot.held.overloads;
    if immutable.is_empty() && others.is_empty() {
        snapshot.immutable_functions = snapshot.builtins.immutable.clone();
    } else {
        let mut names = snapshot.builtins.immutable.clone();
        names.extend(immutable.iter().filter(|name| !snapshot.builtins.immutable.contains(*name)));
        others.iter().for_each(|name| names.remove_all(name));
        snapshot.immutable_functions = names;
    }
    let has = |mark: char| snapshot.held.marks.contains_key(&mark);
    snapshot.has_deferrable = has('D');
    snapshot.has_deferred_triggers = has('E');
    snapshot.has_stable_readers = has('Q');
    snapshot.after_triggers = has('A');
    snapshot.time_is_read_inside = has('N') || has('M') && has('F');
    // Such a body is told with the names that tables have now.
    if !may_sample(snapshot) {
        snapshot.sampling_functions = NameSet::default();
        snapshot.settle_names();
        return;
    }
    let rows = snapshot.held.rows.values().flat_map(|rows| rows.iter()).filter(|(kind, _)| *kind == SAMPLING);
    let takes = |text: &str| {
        let (head, body) = text.split_once('\u{1}')?;
        let (language, function) = head.split_once(' ')?;
        crate::run::takes_sample(body, language, snapshot).then(|| function.to_owned())
    };
    snapshot.sampling_functions = rows.filter_map(|(_, text)| takes(text)).collect();
    snapshot.settle_names();
}

/// There are functions that take samples, or may once a table has a name that they use.
pub fn may_sample(snapshot: &Snapshot) -> bool {
    snapshot.held.marks.contains_key(&SAMPLING)
}

/// Of a function whose body may take samples: its language and name, and the body.
const SAMPLING: char = 'S';

fn put(snapshot: &mut Snapshot, oid: Oid, (kind, name): &NameRow, there: bool) {
    let set = match kind {
        'n' => &mut snapshot.other_relations,
        'b' => &mut snapshot.shown_relations,
        'B' => &mut snapshot.shown_targets,
        'q' => &mut snapshot.drawing_targets,
        'f' => &mut snapshot.user_functions,
        'o' => &mut snapshot.user_operators,
        'u' => &mut snapshot.reached_functions,
        'O' => &mut snapshot.reached_operators,
        't' => &mut snapshot.user_types,
        'r' => &mut snapshot.ruled_relations,
        'p' => &mut snapshot.passing_on,
        'x' => &mut snapshot.calling_views,
        'c' => &mut snapshot.collated,
        'i' => &mut snapshot.held.overloads.0,
        '-' => &mut snapshot.held.overloads.1,
        'l' => &mut snapshot.held.direct,
        'v' => &mut snapshot.volatile_functions,
        'V' => &mut snapshot.volatile_user_functions,
        'a' => &mut snapshot.aggregates,
        'w' => &mut snapshot.window_functions,
        's' => &mut snapshot.set_returning_functions,
        'd' => &mut snapshot.definers,
        'G' => &mut snapshot.body_settings,
        'L' => &mut snapshot.leaving_functions,
        'C' => &mut snapshot.constraining_functions,
        'H' => &mut snapshot.asked_inside,
        'X' | 'W' => {
            let set = if *kind == 'X' { &mut snapshot.changing_triggers } else { &mut snapshot.firing_before };
            _ = if there { set.insert(oid) } else { set.remove(&oid) };
            return;
        }
        'y' => {
            let mut words = name.splitn(6, '\u{1}');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let table = qualified(&word(), &word());
            let draw = LocalDraw { number: word(), column: word(), always: word() == "t", sql: word() };
            let mut draws = snapshot.local_draws.remove(&table).unwrap_or_default().to_vec();
            match there {
                true => draws.push(draw),
                false => {
                    if let Some(at) = draws.iter().position(|known| *known == draw) {
                        draws.remove(at);
                    }
                }
            }
            draws.sort_by(|a, b| a.number.cmp(&b.number));
            if !draws.is_empty() {
                snapshot.local_draws.insert(table, draws.into());
            }
            return;
        }
        'K' => {
            let mut words = name.splitn(5, '\u{1}');
            let mut word = || words.next().unwrap_or_default();
            let name = qualified(word(), word());
            let view = CatalogView { owner: word().to_owned(), is_public: word() == "t", query: word().to_owned() };
            match there {
                true => snapshot.catalog_views.insert(name, view),
                false => snapshot.catalog_views.remove(&name),
            };
            return;
        }
        mark => {
            let count = snapshot.held.marks.entry(*mark).or_default();
            *count = if there { *count + 1 } else { count.saturating_sub(1) };
            if *count == 0 {
                snapshot.held.marks.remove(mark);
            }
            return;
        }
    };
    match there {
        true => set.insert(name.clone()),
        false => set.remove(name),
    }
}
