//! What was measured and found, as a report.

use super::answer::FLOAT_TOLERANCE;
use crate::report::{cut, markdown_table, plain_table};
use crate::sides::say;
use std::path::Path;

/// A query may take so many times longer than on one server.
const RATIO_MAX: f64 = 5.0;
/// The mean of the ratios of a layout by which tables are mostly joined.
const COLOCATED_MEAN_MAX: f64 = 1.1;

/// What became of a query on both.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub enum Sameness {
    Identical,
    Different(String),
    Failed(String),
    /// On the cluster.
    TimedOut,
    /// On the plain server, so that nobody knows what is right.
    Unknown,
    /// The rows are not such that the query shows anything.
    Empty,
}

#[derive(Debug, serde::Serialize)]
pub struct Compared {
    pub query: &'static str,
    pub rows: Option<usize>,
    pub plain_ms: Option<f64>,
    pub herd_ms: Option<f64>,
    pub tier: String,
    pub reason: String,
    /// The whole EXPLAIN, for who wants to know where the time goes.
    pub plan: String,
    pub same: Sameness,
}

/// One benchmark in one layout.
#[derive(Debug, serde::Serialize)]
pub struct Part {
    pub benchmark: &'static str,
    pub layout: &'static str,
    pub title: String,
    pub spread: String,
    pub tables_mb: u64,
    pub with_indexes_mb: u64,
    pub queries: Vec<Compared>,
}

#[derive(Debug, serde::Serialize)]
pub struct Results {
    pub commit: String,
    pub circumstances: String,
    pub timeout_ms: f64,
    pub parts: Vec<Part>,
    /// Parts that could not be made, and why.
    pub not_run: Vec<String>,
}

impl Sameness {
    fn word(&self) -> &'static str {
        match self {
            Sameness::Identical => "yes",
            Sameness::Different(_) => "NO",
            Sameness::Failed(_) => "FAILED",
            Sameness::TimedOut => "timed out",
            Sameness::Unknown => "unknown",
            Sameness::Empty => "EMPTY",
        }
    }

    fn is_wrong(&self) -> bool {
        matches!(self, Sameness::Different(_) | Sameness::Failed(_) | Sameness::Empty)
    }
}

impl Compared {
    /// Cluster to plain server.
    fn ratio(&self) -> Option<f64> {
        Some(self.herd_ms? / self.plain_ms?)
    }

    /// The least that it can be where the cluster did not end in time.
    fn ratio_at_least(&self, timeout_ms: f64) -> Option<f64> {
        match self.same {
            Sameness::TimedOut => Some(timeout_ms / self.plain_ms?),
            _ => self.ratio(),
        }
    }

    fn cells(&self, timeout_ms: f64) -> Vec<String> {
        let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), cut);
        let ratio = match (self.ratio(), self.ratio_at_least(timeout_ms)) {
            (Some(ratio), _) => format!("{ratio:.2}"),
            (None, Some(least)) => format!("> {least:.0}"),
            (None, None) => "–".to_owned(),
        };
        let herd = if self.same == Sameness::TimedOut { format!("> {timeout_ms}") } else { ms(self.herd_ms) };
        vec![
            self.query.to_owned(),
            self.rows.map_or("–".to_owned(), |rows| rows.to_string()),
            ms(self.plain_ms),
            herd,
            ratio,
            self.same.word().to_owned(),
            self.tier.clone(),
            self.reason.replace('|', "\\|").replace('\n', " "),
        ]
    }

    /// For who waits.
    pub fn line(&self) -> String {
        let ms = |ms: Option<f64>| ms.map_or("–".to_owned(), cut);
        let head = format!(
            "  query {}: {} ms, cluster {} ms, {} ({}: {})",
            self.query,
            ms(self.plain_ms),
            ms(self.herd_ms),
            self.same.word(),
            self.tier,
            self.reason
        );
        match &self.same {
            Sameness::Different(why) | Sameness::Failed(why) => format!("{head}\n    {why}"),
            _ => head,
        }
    }
}

impl Part {
    fn of(&self, wanted: impl Fn(&Sameness) -> bool) -> Vec<&str> {
        self.queries.iter().filter(|compared| wanted(&compared.same)).map(|compared| compared.query).collect()
    }

    /// The geometric mean, and whether it is only a lower bound because some did not end.
    fn mean(&self, timeout_ms: f64) -> (f64, bool) {
        let ratios = self.queries.iter().filter_map(|query| query.ratio_at_least(timeout_ms));
        (geometric_mean(ratios), !self.of(|same| *same == Sameness::TimedOut).is_empty())
    }

    fn summary(&self, timeout_ms: f64) -> String {
        let list = |queries: Vec<&str>| match queries.len() {
            0 => "none".to_owned(),
            count => format!("{count} ({})", queries.join(", ")),
        };
        let (mean, is_bound) = self.mean(timeout_ms);
        let slow: Vec<&str> = self
            .queries
            .iter()
            .filter(|query| query.ratio_at_least(timeout_ms).is_some_and(|ratio| ratio > RATIO_MAX))
            .map(|query| query.query)
            .collect();
        let goal = if self.layout == "colocated" { format!(" (goal: {COLOCATED_MEAN_MAX})") } else { String::new() };
        format!(
            "Geometric mean of the ratios: {}{mean:.2}{goal}. Identical: {} of {}. More than {RATIO_MAX} times slower: \
             {}. Timed out: {}. Wrong: {}.",
            if is_bound { "more than " } else { "" },
            self.of(|same| *same == Sameness::Identical).len(),
            self.queries.len(),
            list(slow),
            list(self.of(|same| *same == Sameness::TimedOut)),
            list(self.of(Sameness::is_wrong)),
        )
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = ratios.fold((0.0, 0.0), |(sum, count), ratio| (sum + ratio.ln(), count + 1.0));
    f64::exp(sum / count)
}

impl Results {
    pub fn write(&self, out: &Path) -> Result<(), String> {
        let json = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(out).map_err(|error| format!("could not make \"{}\": {error}", out.display()))?;
        for (extension, text) in [("md", self.report(markdown_table)), ("json", format!("{json}\n"))] {
            let path = out.join(format!("analytics-{}.{extension}", self.commit));
            std::fs::write(&path, text).map_err(|error| format!("could not write \"{}\": {error}", path.display()))?;
            say(&format!("wrote {}", path.display()));
        }
        say("");
        print!("{}", self.report(plain_table));
        Ok(())
    }

    /// An error if any answer is wrong. Slow is not wrong.
    pub fn judge(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        for part in &self.parts {
            let queries = part.of(Sameness::is_wrong);
            if !queries.is_empty() {
                wrong.push(format!("{} {}: {}", part.benchmark, part.layout, queries.join(", ")));
            }
        }
        match (wrong.is_empty(), self.not_run.first()) {
            (true, None) => Ok(()),
            (true, Some(error)) => Err(error.clone()),
            (false, _) => Err(format!("wrong, refused or empty: {}", wrong.join("; "))),
        }
    }

    /// The planner's reasons against sending a query to the workers, with the queries that each kept from it, the worst
    /// first: what would be worth building.
    fn reasons(&self) -> Vec<Vec<String>> {
        let mut found: Vec<(&str, &str, Vec<String>, Vec<f64>)> = Vec::new();
        for part in &self.parts {
            for compared in part.queries.iter().filter(|compared| !compared.tier.starts_with("Scatter")) {
                // Every statement over more than one shard has this in front.
                let reason = match compared.reason.split_once(", and ") {
                    Some((first, second)) if first.starts_with("no single value is given") => second,
                    _ => &compared.reason,
                };
                let name = format!("{} {} {}", part.benchmark, part.layout, compared.query);
                let ratio = compared.ratio_at_least(self.timeout_ms);
                match found.iter_mut().find(|(tier, known, ..)| *tier == compared.tier && *known == reason) {
                    Some((_, _, names, ratios)) => {
                        names.push(name);
                        ratios.extend(ratio);
                    }
                    None => found.push((&compared.tier, reason, vec![name], ratio.into_iter().collect())),
                }
            }
        }
        let mut rows: Vec<(f64, Vec<String>)> = found
            .into_iter()
            .map(|(tier, reason, names, ratios)| {
                let lost: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
                let mean = if ratios.is_empty() { "–".to_owned() } else { cut((lost / ratios.len() as f64).exp()) };
                let count = names.len().to_string();
                (lost, vec![reason.replace('|', "\\|"), tier.to_owned(), count, mean, names.join(", ")])
            })
            .collect();
        rows.sort_by(|left, right| right.0.total_cmp(&left.0));
        let head = ["reason", "way", "queries", "mean ratio, at least", "which"].map(str::to_owned).to_vec();
        std::iter::once(head).chain(rows.into_iter().map(|(_, cells)| cells)).collect()
    }

    fn report(&self, draw: fn(&[Vec<String>]) -> String) -> String {
        let mut text = format!(
            "# Analytical queries beside one plain PostgreSQL\n\nCommit {}. {}\n\nRows of our own in the shapes of \
             TPC-H and CH-benCHmark; these are no results of either. Answers are compared as text, in order where \
             they are sorted, floats to {FLOAT_TOLERANCE:e} of their size.\n",
            self.commit, self.circumstances
        );
        let head = ["query", "rows", "plain ms", "pgherd ms", "ratio", "identical", "way", "reason"].map(str::to_owned);
        for part in &self.parts {
            let mut rows = vec![head.to_vec()];
            rows.extend(part.queries.iter().map(|compared| compared.cells(self.timeout_ms)));
            text.push_str(&format!(
                "\n## {}\n\n{} MB of tables, {} MB with indexes. {}.\n\n{}\n{}\n",
                part.title,
                part.tables_mb,
                part.with_indexes_mb,
                part.spread,
                draw(&rows),
                part.summary(self.timeout_ms)
            ));
            for compared in &part.queries {
                if let Sameness::Different(why) | Sameness::Failed(why) = &compared.same {
                    text.push_str(&format!("\nQuery {}: {why}\n", compared.query));
                }
            }
        }
        let colocated: Vec<&Part> = self.parts.iter().filter(|part| part.layout == "colocated").collect();
        if colocated.len() > 1 {
            let queries = colocated.iter().flat_map(|part| &part.queries);
            let mean = geometric_mean(queries.filter_map(|query| query.ratio_at_least(self.timeout_ms)));
            text.push_str(&format!(
                "\n## All colocated queries\n\nGeometric mean of the ratios: {mean:.2} (goal: {COLOCATED_MEAN_MAX}).\n"
            ));
        }
        let reasons = self.reasons();
        if reasons.len() > 1 {
            text.push_str(&format!("\n## What was not scattered\n\n{}", draw(&reasons)));
        }
        for error in &self.not_run {
            text.push_str(&format!("\nNot run: {error}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(query: &'static str, plain_ms: f64, herd_ms: Option<f64>, same: Sameness) -> Compared {
        let [tier, reason, plan] = ["Scatter", "no key", "pgherd Scatter"].map(str::to_owned);
        Compared { query, rows: Some(1), plain_ms: Some(plain_ms), herd_ms, tier, reason, plan, same }
    }

    fn results(queries: Vec<Compared>) -> Results {
        let part = Part {
            benchmark: "tpch",
            layout: "colocated",
            title: "TPC-H".to_owned(),
            spread: "a by b".to_owned(),
            tables_mb: 100,
            with_indexes_mb: 120,
            queries,
        };
        let (commit, circumstances) = ("abc".to_owned(), "One machine.".to_owned());
        Results { commit, circumstances, timeout_ms: 1000.0, parts: vec![part], not_run: Vec::new() }
    }

    #[test]
    fn a_wrong_answer_fails_and_a_slow_one_does_not() {
        let slow = || {
            vec![compared("01", 1.0, Some(900.0), Sameness::Identical), compared("02", 1.0, None, Sameness::TimedOut)]
        };
        assert_eq!(results(slow()).judge(), Ok(()));
        for same in [Sameness::Different("x".to_owned()), Sameness::Failed("x".to_owned()), Sameness::Empty] {
            let mut queries = slow();
            queries.push(compared("03", 1.0, Some(1.0), same));
            assert_eq!(results(queries).judge(), Err("wrong, refused or empty: tpch colocated: 03".to_owned()));
        }
    }

    #[test]
    fn a_part_that_could_not_be_made_fails() {
        let mut results = results(Vec::new());
        results.not_run.push("tpch apart: x".to_owned());
        assert_eq!(results.judge(), Err("tpch apart: x".to_owned()));
    }

    #[test]
    fn the_mean_counts_what_timed_out_as_the_least_that_it_was() {
        let queries =
            vec![compared("01", 10.0, Some(1.0), Sameness::Identical), compared("02", 10.0, None, Sameness::TimedOut)];
        let summary = results(queries).parts[0].summary(1000.0);
        assert!(
            summary.starts_with("Geometric mean of the ratios: more than 3.16 (goal: 1.1). Identical: 1 of 2."),
            "{summary}"
        );
        assert!(summary.contains("More than 5 times slower: 1 (02). Timed out: 1 (02). Wrong: none."), "{summary}");
    }

    #[test]
    fn reasons_are_counted_without_what_all_have_in_common() {
        let federated = |query, herd_ms, reason: &str| Compared {
            tier: "Federate".to_owned(),
            reason: reason.to_owned(),
            ..compared(query, 1.0, herd_ms, Sameness::Identical)
        };
        let rows = results(vec![
            federated("01", Some(2.0), "a full join"),
            federated("02", Some(4.0), "no single value is given for a.b, and not joined"),
            federated("03", Some(16.0), "no single value is given for c.d, and not joined"),
            compared("04", 1.0, Some(99.0), Sameness::Identical),
        ])
        .reasons();
        let lines: Vec<String> = rows[1..].iter().map(|row| row.join(" / ")).collect();
        assert_eq!(
            lines,
            [
                "not joined / Federate / 2 / 8.00 / tpch colocated 02, tpch colocated 03",
                "a full join / Federate / 1 / 2.00 / tpch colocated 01"
            ]
        );
    }

    #[test]
    fn the_report_shows_what_is_different() {
        let text = results(vec![compared("07", 2.0, Some(1.0), Sameness::Different("2 rows, expected 3".to_owned()))])
            .report(markdown_table);
        assert!(text.contains("| 07 | 1 | 2.00 | 1.00 | 0.50 | NO | Scatter | no key |"), "{text}");
        assert!(text.contains("\nQuery 07: 2 rows, expected 3\n"), "{text}");
    }
}
