//! `pgherd status`: the processes of a cluster on this machine, as they are now.

use crate::failure::Failure;
use crate::place::Place;
use pgherd_cluster::embedded::RouterProcess;

/// Show the processes of a cluster on this machine. Fails if one of them does not run.
#[derive(Debug, clap::Args)]
pub struct Status {
    #[command(flatten)]
    place: Place,
}

impl Status {
    pub fn run(self) -> Result<(), Failure> {
        let (dir, state) = self.place.existing()?;
        let router = RouterProcess::find(&dir)?;
        let router_port = router.as_ref().and_then(|router| router.ports.first().copied());
        let mut rows = vec![["role", "port", "pid", "state", "data directory", "log file"].map(str::to_owned)];
        rows.push([
            "router".to_owned(),
            port_text(router_port.unwrap_or(state.router_port)),
            router.as_ref().map_or_else(dash, |router| router.process.pid.to_string()),
            match (&router, router_port) {
                (Some(_), Some(_)) => "running",
                (Some(_), None) => "starting",
                (None, _) => "stopped",
            }
            .to_owned(),
            dash(),
            dir.join("router/router.log").display().to_string(),
        ]);
        let nodes = state.status(&dir)?;
        for node in &nodes {
            rows.push([
                node.name.clone(),
                port_text(node.port),
                node.pid.map_or_else(dash, |pid| pid.to_string()),
                if node.pid.is_some() { "running" } else { "stopped" }.to_owned(),
                node.data_dir.display().to_string(),
                node.log_file.display().to_string(),
            ]);
        }
        print!("{}", table(&rows));
        println!("PostgreSQL {} in {}", state.pg_version, state.pg_bin_dir.display());
        if let Some(port) = router_port {
            println!("{}", state.url(port, false));
        }
        let stopped = nodes.iter().filter(|node| node.pid.is_none()).count() + usize::from(router_port.is_none());
        if stopped == 0 {
            return Ok(());
        }
        Err(Failure::new(format!("{stopped} of {} processes are not running", nodes.len() + 1))
            .hint("\"pgherd up\" starts what is missing"))
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn port_text(port: u16) -> String {
    if port == 0 { dash() } else { port.to_string() }
}

/// Columns as wide as their widest cell.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let line: String = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["role", "port"], ["coordinator", "1"], ["-", "16384"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "role         port\ncoordinator  1\n-            16384\n");
    }
}
