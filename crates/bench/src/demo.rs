//! `make demo`: a cluster from nothing, pgbench's tables on it, and how fast it is beside one plain PostgreSQL.

use crate::pgbench::{Length, Load, Outcome, Work, measure};
use crate::report::{count, plain_table};
use crate::sides::{PlainSide, Setup, beside, check_balances, load, pgherd_program, say, start_cluster, work_dir};

/// Start a cluster, load pgbench's tables, measure, and leave the cluster running.
#[derive(Debug, clap::Args)]
pub struct Demo {
    #[command(flatten)]
    setup: Setup,

    /// pgbench's scale: 100,000 accounts each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    scale: u32,

    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,

    /// How long each measurement takes
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

impl Demo {
    pub fn run(self) -> Result<(), String> {
        crate::pgbench::version()?;
        let dir = match &self.setup.dir {
            Some(dir) => std::path::absolute(dir).map_err(|error| error.to_string())?,
            None => work_dir("demo")?,
        };
        say(&format!("starting a cluster of one coordinator and {} workers", self.setup.workers));
        let cluster = start_cluster(&self.setup, &dir)?;
        say("starting one plain PostgreSQL beside it, to compare with");
        let plain = PlainSide::start(&cluster.state, &beside(&dir, "-plain"))?;
        load(&cluster, &plain, self.scale)?;

        let mut rows =
            vec![["", "plain tps", "pgherd tps", "ratio", "plain ms", "pgherd ms"].map(str::to_owned).to_vec()];
        for work in [Work::ReadOnly, Work::ReadWrite] {
            let load = Load::new(work, "prepared", self.clients, Length::Seconds(self.seconds));
            say(&format!("measuring {}: {} clients, {} s on each", work.name(), load.clients, self.seconds));
            let one = measure(plain.port, &load)?;
            let herd = measure(cluster.port, &load)?;
            rows.push(row(work, one, herd));
            for (name, outcome) in [("plain PostgreSQL", one), ("pgherd", herd)] {
                if outcome.failed > 0 {
                    say(&format!("  {name}: {} transactions failed", outcome.failed));
                }
            }
        }
        check_balances(cluster.port, "pgbench")?;
        let version = plain.version.clone();
        drop(plain);

        say("");
        print!("{}", plain_table(&rows));
        say(&format!(
            "pgbench -M prepared -c {} -T {}, scale {}, PostgreSQL {version}, everything on this machine ({} cores)",
            self.clients,
            self.seconds,
            self.scale,
            std::thread::available_parallelism().map_or(1, usize::from),
        ));
        say("every balance agrees with the history: no transaction was half done");
        say("");
        let program = pgherd_program()?;
        let program = std::env::current_dir()
            .ok()
            .and_then(|here| program.strip_prefix(here).ok().map(ToOwned::to_owned))
            .unwrap_or(program);
        let place = format!("--dir {}", cluster.dir.display());
        say("the cluster is running:");
        say(&format!("  connect  psql {}", cluster.url));
        say(&format!("  look     {} status {place}", program.display()));
        say(&format!("  stop     {} down {place}", program.display()));
        say(&format!("  remove   {} down {place} --delete", program.display()));
        Ok(())
    }
}

fn row(work: Work, plain: Outcome, herd: Outcome) -> Vec<String> {
    vec![
        work.name().to_owned(),
        count(plain.tps),
        count(herd.tps),
        format!("{:.2}", herd.tps / plain.tps),
        format!("{:.3}", plain.latency_ms),
        format!("{:.3}", herd.latency_ms),
    ]
}
