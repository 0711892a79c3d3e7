//! Every combination of read-only and read-write, protocol and number of clients on both sides: how the ratio moves,
//! beside the rows of `bars.rs`, which say how it should be.

use crate::pgbench::{Length, Load, Outcome, Work, measure};
use crate::report::{count, median};
use crate::sides::{ClusterSide, PlainSide, say};

/// The combinations.
#[derive(Debug)]
pub struct Matrix {
    pub clients: Vec<u32>,
    pub protocols: Vec<&'static str>,
    pub seconds: u32,
    pub rounds: u32,
}

/// The medians of one combination.
#[derive(Debug, serde::Serialize)]
pub struct Measured {
    work: &'static str,
    protocol: &'static str,
    clients: u32,
    plain: Outcome,
    pgherd: Outcome,
    /// The router's transactions a second divided by the plain server's.
    ratio: f64,
}

impl Matrix {
    pub fn measure(&self, plain: &PlainSide, cluster: &ClusterSide) -> Result<Vec<Measured>, String> {
        let loads = self.loads();
        let runs = loads.len() as u32 * self.rounds * 2;
        say(&format!(
            "all combinations: {runs} measurements of {} s, about {} minutes",
            self.seconds,
            runs * (self.seconds + 1) / 60 + 1
        ));
        let mut measured = Vec::new();
        for (number, load) in loads.iter().enumerate() {
            let one = self.measure_both(load, plain, cluster)?;
            say(&format!(
                "{:>2}/{} {:<10} {:<8} {:>3} clients: plain {:>8} tps, pgherd {:>8} tps, ratio {:.2}",
                number + 1,
                loads.len(),
                one.work,
                one.protocol,
                one.clients,
                count(one.plain.tps),
                count(one.pgherd.tps),
                one.ratio
            ));
            measured.push(one);
        }
        Ok(measured)
    }

    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for work in [Work::ReadOnly, Work::ReadWrite] {
            for protocol in &self.protocols {
                for clients in &self.clients {
                    loads.push(Load::new(work, protocol, *clients, Length::Seconds(self.seconds)));
                }
            }
        }
        loads
    }

    fn measure_both(&self, load: &Load, plain: &PlainSide, cluster: &ClusterSide) -> Result<Measured, String> {
        let (mut one, mut herd) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            // Who goes first alternates too.
            if round % 2 == 0 {
                one.push(measure(plain.port, load)?);
                herd.push(measure(cluster.port, load)?);
            } else {
                herd.push(measure(cluster.port, load)?);
                one.push(measure(plain.port, load)?);
            }
        }
        let (plain, pgherd) = (medians(&one), medians(&herd));
        Ok(Measured {
            work: load.work.name(),
            protocol: load.protocol,
            clients: load.clients,
            ratio: pgherd.tps / plain.tps,
            plain,
            pgherd,
        })
    }
}

fn medians(outcomes: &[Outcome]) -> Outcome {
    let of = |value: fn(&Outcome) -> f64| median(&outcomes.iter().map(value).collect::<Vec<_>>());
    Outcome {
        tps: of(|outcome| outcome.tps),
        latency_ms: of(|outcome| outcome.latency_ms),
        failed: outcomes.iter().map(|outcome| outcome.failed).sum(),
        transactions: of(|outcome| outcome.transactions),
    }
}

/// As a table, the first row the heading.
pub fn table(measured: &[Measured]) -> Vec<Vec<String>> {
    let heading =
        ["work", "protocol", "clients", "plain tps", "pgherd tps", "ratio", "plain ms", "pgherd ms", "failed"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(measured.iter().map(|one| {
        vec![
            one.work.to_owned(),
            one.protocol.to_owned(),
            one.clients.to_string(),
            count(one.plain.tps),
            count(one.pgherd.tps),
            format!("{:.2}", one.ratio),
            format!("{:.3}", one.plain.latency_ms),
            format!("{:.3}", one.pgherd.latency_ms),
            (one.plain.failed + one.pgherd.failed).to_string(),
        ]
    }));
    rows
}
