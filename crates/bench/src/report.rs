//! Numbers as tables: columns for a terminal, Markdown for the repository.

/// Rows of text; the first is the heading, the first column is aligned left, the others right.
pub fn plain_table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(column, (cell, width))| {
                    if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text.push_str(&rule.join("  "));
            text.push('\n');
        }
    }
    text
}

/// The same as a Markdown table.
pub fn markdown_table(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
        if number == 0 {
            let rule: Vec<&str> = (0..row.len()).map(|column| if column == 0 { "---" } else { "---:" }).collect();
            text.push_str(&format!("|{}|\n", rule.join("|")));
        }
    }
    text
}

/// 68654.3 as `68,654`.
pub fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits that count: `0.0625`, `6.25`, `12.5`, `5,000`.
pub fn cut(number: f64) -> String {
    match number.abs() {
        size if size < 0.1 => format!("{number:.4}"),
        size if size < 1.0 => format!("{number:.3}"),
        size if size < 10.0 => format!("{number:.2}"),
        size if size < 100.0 => format!("{number:.1}"),
        _ => count(number),
    }
}

/// Several measurements of one thing.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: &[f64]) -> Option<Spread> {
        Some(Spread {
            median: median(values),
            min: values.iter().copied().reduce(f64::min)?,
            max: values.iter().copied().reduce(f64::max)?,
        })
    }

    /// Where nothing was measured.
    pub fn nothing() -> Spread {
        Spread { median: f64::NAN, min: f64::NAN, max: f64::NAN }
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[length / 2],
        length => (sorted[length / 2 - 1] + sorted[length / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        [["work", "tps"], ["read-only", "68,654"], ["x", "1"]].map(|row| row.map(str::to_owned).to_vec()).to_vec()
    }

    #[test]
    fn numbers_are_aligned_right() {
        assert_eq!(
            plain_table(&rows()),
            "work          tps\n---------  ------\nread-only  68,654\nx               1\n"
        );
    }

    #[test]
    fn markdown_has_a_rule_below_the_heading() {
        assert_eq!(markdown_table(&rows()), "| work | tps |\n|---|---:|\n| read-only | 68,654 |\n| x | 1 |\n");
    }

    #[test]
    fn counts_have_thousands_separators() {
        for (number, text) in [(0.0, "0"), (999.4, "999"), (1000.0, "1,000"), (1234567.8, "1,234,568")] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn small_numbers_keep_three_digits() {
        for (number, text) in [
            (0.0625, "0.0625"),
            (0.1234, "0.123"),
            (6.254, "6.25"),
            (12.54, "12.5"),
            (-12.54, "-12.5"),
            (5000.4, "5,000"),
        ] {
            assert_eq!(cut(number), text);
        }
    }

    #[test]
    fn a_spread_is_the_median_between_the_extremes() {
        assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
