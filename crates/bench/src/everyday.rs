//! What applications send all day: each statement beside one plain PostgreSQL, and beside it behind PgBouncer.

use crate::bars::Verdict;
use crate::bouncer::Bouncer;
use crate::pgbench::{Length, Load, Script, Work, measure};
use crate::report::{count, median};
use crate::sides::{ClusterSide, PlainSide, checkpoint, psql_script, say};

const SETUP: &str = include_str!("../everyday/setup.sql");
const DISTRIBUTE: &str = include_str!("../everyday/distribute.sql");
const DATA: &str = include_str!("../everyday/data.sql");
const STATEMENTS: &str = include_str!("../everyday/statements.txt");
/// What the statements' values are.
const VALUES: &str = "\\set t random(1, 2000)\n\\set r random(1, 2000)\n\\set c random(1, 200)\n\
                      \\set k random(1000000, 2000000000)\n";

/// What is measured, and how.
#[derive(Debug)]
pub struct Everyday {
    pub clients: Vec<u32>,
    pub protocols: Vec<&'static str>,
    pub seconds: u32,
    pub rounds: u32,
    /// Only rows with one of these in their name; none: all.
    pub only: Vec<String>,
}

/// What a row does, which says what it should reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Key,
    Here,
    Keys,
    Scatter,
    Block,
    Blocks,
    Login,
    Function,
}

impl Kind {
    fn named(name: &str) -> Option<Kind> {
        Some(match name {
            "key" => Kind::Key,
            "here" => Kind::Here,
            "keys" => Kind::Keys,
            "scatter" => Kind::Scatter,
            "block" => Kind::Block,
            "blocks" => Kind::Blocks,
            "login" => Kind::Login,
            "function" => Kind::Function,
            _ => return None,
        })
    }

    /// The floor and the goal at so many clients.
    fn bar(self, clients: u32) -> (f64, f64) {
        match self {
            Kind::Key | Kind::Here | Kind::Block => (0.5, 0.7),
            Kind::Keys => (0.4, 0.7),
            Kind::Scatter => (0.25, 0.5),
            Kind::Blocks => (0.3, 0.5),
            Kind::Login if clients >= 64 => (0.9, 1.0),
            Kind::Login => (0.6, 1.0),
            Kind::Function => (0.5, 1.0),
        }
    }
}

/// The medians of one statement under one protocol with so many clients, in transactions a second.
#[derive(Debug, serde::Serialize)]
pub struct Row {
    name: &'static str,
    kind: Kind,
    protocol: &'static str,
    clients: u32,
    plain: f64,
    pgherd: f64,
    /// What PgBouncer in front of the plain server makes of it, divided by that.
    bouncer: Option<f64>,
    /// The router's divided by the plain server's.
    ratio: f64,
    floor: f64,
    goal: f64,
    verdict: Verdict,
    error: Option<String>,
}

impl Row {
    pub fn error(&self) -> Option<String> {
        self.error.as_ref().map(|error| format!("{}: {}", self.name, error.trim_end()))
    }
}

/// Names, kinds and scripts.
fn statements() -> Result<Vec<(&'static str, Kind, &'static str)>, String> {
    let lines = STATEMENTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut parts = line.splitn(3, '|').map(str::trim);
            let (name, kind, text) = (parts.next(), parts.next().and_then(Kind::named), parts.next());
            name.zip(kind)
                .zip(text)
                .map(|((name, kind), text)| (name, kind, text))
                .ok_or_else(|| format!("what is {line}?"))
        })
        .collect()
}

/// The tables, empty first, so that rows go to their shards as an application's would.
pub fn load(cluster: &ClusterSide, plain: &PlainSide) -> Result<(), String> {
    say("loading the tables of everyday statements");
    for (port, parts) in [(plain.port, vec![SETUP, DATA]), (cluster.port, vec![SETUP, DISTRIBUTE, DATA])] {
        for part in parts {
            psql_script(port, part, &[])?;
        }
        psql_script(port, "VACUUM ANALYZE;", &[])?;
    }
    checkpoint(cluster, plain)
}

impl Everyday {
    pub fn measure(
        &self,
        plain: &PlainSide,
        cluster: &ClusterSide,
        bouncer: Option<&Bouncer>,
    ) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        let is_wanted = |name: &str| self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()));
        for (name, kind, text) in statements()?.into_iter().filter(|(name, ..)| is_wanted(name)) {
            // As long as the program: it is made once for each statement.
            let text: &'static str = Box::leak(format!("{VALUES}{text}\n").into_boxed_str());
            let work = Work::Script(Script { name, text, statements: 1 });
            for protocol in &self.protocols {
                for clients in &self.clients {
                    let load = Load::new(work, protocol, *clients, Length::Seconds(self.seconds));
                    let row = self.measure_one(name, kind, &load, [plain.port, cluster.port], bouncer);
                    say(&format!(
                        "{name:<22} {protocol:<8} {clients:>3} clients: plain {:>8}, pgherd {:>8}, ratio {:.2}, \
                         PgBouncer {} {}",
                        count(row.plain),
                        count(row.pgherd),
                        row.ratio,
                        row.bouncer.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
                        row.error.as_deref().unwrap_or("")
                    ));
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    fn measure_one(
        &self,
        name: &'static str,
        kind: Kind,
        load: &Load,
        ports: [u16; 2],
        bouncer: Option<&Bouncer>,
    ) -> Row {
        let mut tps = [Vec::new(), Vec::new(), Vec::new()];
        let mut error = None;
        // What it cannot carry prepared it carries as extended.
        let through = |bouncer: &Bouncer| match load.protocol {
            "prepared" if !bouncer.prepared => Load { protocol: "extended", ..load.clone() },
            _ => load.clone(),
        };
        for round in 0..self.rounds {
            // Who goes first alternates.
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for side in order {
                match measure(ports[side], load) {
                    Ok(outcome) => tps[side].push(outcome.tps),
                    Err(failed) => error = Some(failed),
                }
            }
            if let Some(bouncer) = bouncer
                && let Ok(outcome) = measure(bouncer.port, &through(bouncer))
            {
                tps[2].push(outcome.tps);
            }
        }
        let [plain, pgherd, behind] = [0, 1, 2].map(|side| median(&tps[side]));
        let bouncer = Some(behind / plain).filter(|ratio| ratio.is_finite());
        let (mut floor, mut goal) = kind.bar(load.clients);
        if matches!(name, "S local" | "S no table")
            && let Some(ratio) = bouncer
        {
            (floor, goal) = (floor.max(ratio), goal.max(ratio));
        }
        let ratio = pgherd / plain;
        let verdict = match () {
            () if error.is_some() => Verdict::Failed,
            () if ratio >= goal => Verdict::Goal,
            () if ratio >= floor => Verdict::Floor,
            () => Verdict::Below,
        };
        Row {
            name,
            kind,
            protocol: load.protocol,
            clients: load.clients,
            plain,
            pgherd,
            bouncer,
            ratio,
            floor,
            goal,
            verdict,
            error,
        }
    }
}

/// The geometric mean of the ratios of one protocol with so many clients; none: nothing was measured.
pub fn mean(rows: &[Row], protocol: &str, clients: u32) -> Option<f64> {
    let logs: Vec<f64> = rows
        .iter()
        .filter(|row| row.protocol == protocol && row.clients == clients && row.ratio > 0.0)
        .map(|row| row.ratio.ln())
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// One line for each protocol and number of clients.
pub fn means(rows: &[Row]) -> Vec<String> {
    let mut of: Vec<(&str, u32)> = rows.iter().map(|row| (row.protocol, row.clients)).collect();
    of.dedup();
    of.sort_unstable();
    of.dedup();
    of.into_iter()
        .filter_map(|(protocol, clients)| {
            let mean = mean(rows, protocol, clients)?;
            Some(format!("Geometric mean, {protocol}, {clients} clients: {mean:.2}"))
        })
        .collect()
}

/// As a table, the first row the heading.
pub fn table(rows: &[Row]) -> Vec<Vec<String>> {
    let heading =
        ["statement", "protocol", "clients", "plain tps", "pgherd tps", "ratio", "PgBouncer", "floor", "goal", "holds"];
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        vec![
            row.name.to_owned(),
            row.protocol.to_owned(),
            row.clients.to_string(),
            count(row.plain),
            count(row.pgherd),
            format!("{:.2}", row.ratio),
            row.bouncer.map_or(String::new(), |ratio| format!("{ratio:.2}")),
            format!("{:.2}", row.floor),
            format!("{:.2}", row.goal),
            row.verdict.mark().to_owned(),
        ]
    }));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_are_read() {
        let all = statements().unwrap_or_default();
        assert!(all.len() >= 49, "{}", all.len());
        assert!(all.iter().all(|(name, _, text)| !name.is_empty() && text.ends_with(';')));
    }

    #[test]
    fn the_mean_is_geometric() {
        let row = |ratio: f64, clients: u32| Row {
            name: "",
            kind: Kind::Key,
            protocol: "prepared",
            clients,
            plain: 1.0,
            pgherd: ratio,
            bouncer: None,
            ratio,
            floor: 0.5,
            goal: 0.7,
            verdict: Verdict::Floor,
            error: None,
        };
        let rows = [row(0.25, 8), row(4.0, 8), row(3.0, 64)];
        assert!(mean(&rows, "prepared", 8).is_some_and(|mean| (mean - 1.0).abs() < 1e-9));
        assert_eq!(mean(&rows, "simple", 8), None);
        assert_eq!(means(&rows).len(), 2);
    }
}
