//! What the comparison does not see of the router's side: rows of psql's tables that name relations of schema `pgherd`.
//!
//! The router hides that schema itself from catalogs that a client's query names (docs/decisions/0006): the suite's
//! sweeps over all objects, such as `opr_sanity`, need nothing here, and what they find is a difference. It cannot
//! hide it where the body of a user's view or function reads a catalog, or where a server says what it has locked.
//! Rows that come from there are taken out here, and nowhere else.

/// Beginnings of cells that are names of our relations, as `pg_class` and as `regclass` write them.
const BEGINNINGS: &[&str] =
    &["pg_dist_", "epoch_single_row", "fires_here", "pgherd.pg_dist_", "pgherd.epoch", "pgherd.fires_here"];
/// Whole cells: the words are common ones.
const NAMES: &[&str] = &["epoch", "leaf", "leaf_pkey"];

/// Both texts as they are compared: without our rows in the router's, if there are some. Columns are as wide as their
/// widest row, so spaces and rules count as one then.
pub fn hide(plain: &str, router: &str) -> (String, String) {
    match without_our_rows(router) {
        Some(rest) => (squeeze(plain), squeeze(&rest)),
        None => (plain.to_owned(), router.to_owned()),
    }
}

/// None: there are none.
fn without_our_rows(text: &str) -> Option<String> {
    let mut kept: Vec<String> = Vec::new();
    let (mut in_table, mut hidden, mut hidden_ever) = (false, 0_usize, false);
    for line in text.split('\n') {
        if is_rule(line) {
            (in_table, hidden) = (true, 0);
        } else if let Some(rows) = row_count(line).filter(|_| in_table) {
            in_table = false;
            if hidden > 0 {
                let rows = rows.saturating_sub(hidden);
                let word = if rows == 1 { "row" } else { "rows" };
                kept.push(format!("({rows} {word})"));
                continue;
            }
        } else if in_table && line.split(" | ").any(|cell| is_ours(cell.trim())) {
            hidden += 1;
            hidden_ever = true;
            continue;
        }
        kept.push(line.to_owned());
    }
    hidden_ever.then(|| kept.join("\n"))
}

/// `(2 rows)`: what psql writes below a table.
fn row_count(line: &str) -> Option<usize> {
    let number = line.strip_prefix('(')?;
    number.strip_suffix(" rows)").or_else(|| number.strip_suffix(" row)"))?.parse().ok()
}

/// What psql writes between header and rows.
fn is_rule(line: &str) -> bool {
    line.len() > 2 && line.starts_with('-') && line.ends_with('-') && line.chars().all(|c| matches!(c, '-' | '+'))
}

fn is_ours(cell: &str) -> bool {
    NAMES.contains(&cell) || BEGINNINGS.iter().any(|b| cell.starts_with(b))
}

fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for line in text.split('\n') {
        if is_rule(line) {
            squeezed.push_str("---");
        } else {
            squeezed.push_str(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        squeezed.push('\n');
    }
    squeezed.pop();
    squeezed
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PLAIN: &str = "select;\n relname | n \n---------+---\n mine    | 1\n(1 row)\n\n";

    #[test]
    fn our_rows_are_taken_out_and_not_counted() {
        let router = "select;\n     relname      | n \n------------------+---\n epoch            | 7\n\
                      \x20leaf             | 1\n\
                      \x20mine             | 1\n\
                      \x20pg_dist_node_idx | 2\n(4 rows)\n\n";
        let (plain, router) = hide(PLAIN, router);
        assert_eq!(plain, router);
    }

    #[test]
    fn rows_of_others_stay_a_difference() {
        let router = "select;\n relname | n \n---------+---\n epoch   | 7\n other   | 1\n(2 rows)\n\n";
        let (plain, router) = hide(PLAIN, router);
        assert_ne!(plain, router);
    }

    #[test]
    fn text_outside_of_tables_is_as_it_was() {
        let text = "-- epoch\nERROR:  epoch\n";
        assert_eq!(hide(PLAIN, text), (PLAIN.to_owned(), text.to_owned()));
    }
}
