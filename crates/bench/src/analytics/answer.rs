//! What a server answered, and whether two answered the same.

/// How much floats may differ, as a part of the larger: sums of floats depend on the order of adding. Everything else,
/// numeric averages too, must be the same text.
pub const FLOAT_TOLERANCE: f64 = 1e-9;

/// A row as text; None is NULL.
pub type Row = Vec<Option<String>>;

/// Rows and what is known of their columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Row>,
}

impl Rows {
    /// Whether a query found something: an aggregate over nothing is one row of NULLs or of zeros.
    pub fn is_empty(&self) -> bool {
        let is_nothing = |cell: &Option<String>| cell.as_deref().is_none_or(|text| text == "0");
        self.rows.iter().all(|row| row.iter().all(is_nothing))
    }
}

/// What is different between the answer of one server and that of the cluster; None: nothing. `order` has the columns
/// by which the rows are sorted: those must come in the same order. Rows that sort alike may change places.
pub fn difference(plain: &Rows, herd: &Rows, is_float: &[bool], order: &[usize]) -> Option<String> {
    if plain.columns != herd.columns {
        return Some(format!("columns {:?}, expected {:?}", herd.columns, plain.columns));
    }
    if plain.rows.len() != herd.rows.len() {
        return Some(format!("{} rows, expected {}", herd.rows.len(), plain.rows.len()));
    }
    for (number, (expected, got)) in plain.rows.iter().zip(&herd.rows).enumerate() {
        for column in order {
            if !is_same(cell(expected, *column), cell(got, *column), is_float.get(*column) == Some(&true)) {
                return Some(format!(
                    "row {} is sorted by {}, expected {}",
                    number + 1,
                    shown_key(got, order),
                    shown_key(expected, order)
                ));
            }
        }
    }
    for (expected, got) in sorted(plain, is_float).into_iter().zip(sorted(herd, is_float)) {
        let same = (0..expected.len().max(got.len()))
            .all(|column| is_same(cell(expected, column), cell(got, column), is_float.get(column) == Some(&true)));
        if !same {
            return Some(format!("row {}, expected {}", shown(got), shown(expected)));
        }
    }
    None
}

/// As a multiset: by what must be equal, floats last.
fn sorted<'a>(rows: &'a Rows, is_float: &[bool]) -> Vec<&'a Row> {
    let mut all: Vec<&Row> = rows.rows.iter().collect();
    let exact = |row: &'a Row| -> Vec<Option<&'a str>> {
        let columns = row.iter().enumerate().filter(|(column, _)| is_float.get(*column) != Some(&true));
        columns.map(|(_, cell)| cell.as_deref()).collect()
    };
    let floats = |row: &'a Row| -> Vec<f64> {
        let columns = row.iter().enumerate().filter(|(column, _)| is_float.get(*column) == Some(&true));
        columns.map(|(_, cell)| cell.as_deref().and_then(|text| text.parse().ok()).unwrap_or(f64::INFINITY)).collect()
    };
    all.sort_by(|left, right| {
        let by_float = || {
            let (left, right) = (floats(left), floats(right));
            let different = left.iter().zip(&right).map(|(left, right)| left.total_cmp(right)).find(|o| o.is_ne());
            different.unwrap_or(std::cmp::Ordering::Equal)
        };
        exact(left).cmp(&exact(right)).then_with(by_float)
    });
    all
}

fn cell(row: &Row, column: usize) -> Option<&str> {
    row.get(column).and_then(|cell| cell.as_deref())
}

fn is_same(expected: Option<&str>, got: Option<&str>, is_float: bool) -> bool {
    if expected == got {
        return true;
    }
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
    match (number(expected), number(got)) {
        (Some(expected), Some(got)) if is_float => {
            (expected - got).abs() <= FLOAT_TOLERANCE * expected.abs().max(got.abs())
        }
        _ => false,
    }
}

fn shown(row: &Row) -> String {
    let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
    format!("({})", cells.join(" | "))
}

fn shown_key(row: &Row, order: &[usize]) -> String {
    shown(&order.iter().map(|column| row.get(*column).cloned().flatten()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Rows {
        let cell = |cell: &str| (cell != "NULL").then(|| cell.to_owned());
        let rows: Vec<Row> =
            text.split(';').filter(|row| !row.is_empty()).map(|row| row.split(',').map(cell).collect()).collect();
        let columns = (1..=rows.first().map_or(0, Vec::len)).map(|number| format!("c{number}")).collect();
        Rows { columns, rows }
    }

    #[test]
    fn rows_that_must_be_the_same() {
        let cases = [
            ("the same", "a,1;b,2", "a,1;b,2", vec![], true),
            ("without an order they may change places", "a,1;b,2", "b,2;a,1", vec![], true),
            ("sorted rows may not", "a,1;b,2", "b,2;a,1", vec![0], false),
            ("but those that sort alike", "a,1;a,2;b,3", "a,2;a,1;b,3", vec![0], true),
            ("a row more", "a,1", "a,1;a,1", vec![], false),
            ("a row twice in place of another", "a,1;b,2;b,2", "a,1;a,1;b,2", vec![], false),
            ("another value", "a,1", "a,2", vec![0], false),
            ("NULL is not the empty text", "a,NULL", "a,", vec![], false),
            ("a numeric has no tolerance", "a,1.0000000000000000", "a,1.000000000000000", vec![], false),
        ];
        for (name, plain, herd, order, is_same) in cases {
            let found = difference(&rows(plain), &rows(herd), &[false, false], &order);
            assert_eq!(found.is_none(), is_same, "{name}: {found:?}");
        }
    }

    #[test]
    fn floats_may_differ_a_little() {
        let found = |plain, herd| difference(&rows(plain), &rows(herd), &[false, true], &[1]);
        assert_eq!(found("a,0.1;b,0.3", "a,0.10000000000001;b,0.3"), None);
        assert!(found("a,0.1", "a,0.1001").is_some());
        assert!(found("a,0.1", "a,NULL").is_some());
    }

    #[test]
    fn another_name_of_a_column_is_a_difference() {
        let renamed = Rows { columns: vec!["x".to_owned()], ..rows("a") };
        assert!(difference(&rows("a"), &renamed, &[false], &[]).is_some());
    }

    #[test]
    fn an_aggregate_over_nothing_is_nothing() {
        assert!(rows("NULL").is_empty() && rows("NULL,0").is_empty() && rows("").is_empty());
        assert!(!rows("NULL,1").is_empty());
    }
}
