//! Storage options as PostgreSQL documents them. What else a server writes into its catalogs is its own: releases of
//! November 2026 keep `pg_attver` among the options of every column. Such options are neither compared nor copied.

use crate::describe::TableDescription;

/// ALTER TABLE … ALTER COLUMN … SET.
const OF_COLUMNS: &[&str] = &["n_distinct", "n_distinct_inherited"];

/// CREATE TABLE … WITH, and `autovacuum_…`.
const OF_TABLES: &[&str] = &[
    "fillfactor",
    "log_autovacuum_min_duration",
    "log_autoanalyze_min_duration",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_max_eager_freeze_failure_rate",
    "vacuum_truncate",
];

/// CREATE INDEX … WITH, of PostgreSQL's own access methods. Another method has what options its extension gives it.
const OF_INDEXES: &[&str] = &[
    "autosummarize",
    "buffering",
    "deduplicate_items",
    "fastupdate",
    "fillfactor",
    "gin_pending_list_limit",
    "pages_per_range",
];

const OWN_METHODS: &[&str] = &["btree", "hash", "gist", "gin", "spgist", "brin"];

/// Leaves what is documented; gives the names of the rest, each once.
pub(crate) fn keep_documented(table: &mut TableDescription) -> Vec<String> {
    let mut others = Vec::new();
    let of_tables = |name: &str| name.starts_with("autovacuum_") || OF_TABLES.contains(&name);
    // Another access method's options are its extension's.
    if table.access_method.as_deref().is_none_or(|method| method == "heap") {
        keep(&mut table.options, of_tables, &mut others);
    }
    keep(&mut table.toast_options, of_tables, &mut others);
    for column in &mut table.columns {
        keep(&mut column.options, |name| OF_COLUMNS.contains(&name), &mut others);
    }
    for constraint in &mut table.constraints {
        let own = of_own_method(&constraint.definition);
        keep(&mut constraint.index_options, |name| !own || OF_INDEXES.contains(&name), &mut others);
    }
    for index in &mut table.indexes {
        let own = index.tail.as_deref().is_none_or(of_own_method);
        keep(&mut index.options, |name| !own || OF_INDEXES.contains(&name), &mut others);
    }
    others.sort();
    others.dedup();
    others
}

/// Of a definition with `USING method`; without it the method is btree.
fn of_own_method(definition: &str) -> bool {
    let method = definition.split_once("USING ").and_then(|(_, rest)| rest.split([' ', '(']).next());
    method.is_none_or(|method| OWN_METHODS.contains(&method))
}

/// No options are what there was without any.
fn keep(options: &mut Option<Vec<String>>, known: impl Fn(&str) -> bool, others: &mut Vec<String>) {
    let Some(list) = options else { return };
    list.retain(|option| {
        let name = option.split_once('=').map_or(option.as_str(), |(name, _)| name);
        let keep = known(name);
        if !keep {
            others.push(name.to_owned());
        }
        keep
    });
    if list.is_empty() {
        *options = None;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn kept(options: &[&str], known: impl Fn(&str) -> bool) -> (Option<Vec<String>>, Vec<String>) {
        let mut others = Vec::new();
        let mut options = Some(options.iter().map(|o| (*o).to_owned()).collect());
        keep(&mut options, known, &mut others);
        (options, others)
    }

    #[test]
    fn what_a_server_keeps_for_itself_is_left_alone() {
        let of_columns = |name: &str| OF_COLUMNS.contains(&name);
        assert_eq!(kept(&["pg_attver=18270144"], of_columns), (None, vec!["pg_attver".to_owned()]));
        let (options, others) = kept(&["n_distinct=5", "pg_attver=1"], of_columns);
        assert_eq!((options.unwrap(), others), (vec!["n_distinct=5".to_owned()], vec!["pg_attver".to_owned()]));
        assert_eq!(kept(&["n_distinct_inherited=-1"], of_columns).1, Vec::<String>::new());
    }

    #[test]
    fn another_access_method_has_options_of_its_own() {
        assert!(of_own_method("PRIMARY KEY (k)"));
        assert!(of_own_method("USING gin (words) WITH (fastupdate=off)"));
        assert!(of_own_method("EXCLUDE USING gist (r WITH &&)"));
        assert!(!of_own_method("USING bloom (a, b) WITH (length='80')"));
    }
}
