//! `pgherd down`: stops the router, then the servers; only processes that this cluster's `up` started.

use crate::failure::Failure;
use crate::place::{Place, no_cluster, progress};
use pgherd_cluster::embedded::{Cluster, RouterProcess};
use std::time::Duration;

/// Stop a cluster on this machine; its data stays.
#[derive(Debug, clap::Args)]
pub struct Down {
    #[command(flatten)]
    place: Place,

    /// Delete the cluster with all its data as well
    #[arg(long)]
    delete: bool,

    /// How long clients may finish before they are disconnected
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    wait: u64,

    /// How long servers may take for a fast shutdown before they are shut down immediately
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    fast: u64,
}

impl Down {
    pub fn run(self) -> Result<(), Failure> {
        let dir = self.place.dir()?;
        let Some(cluster) = Cluster::open(&dir, &progress)? else {
            if self.delete {
                progress(&format!("there is no cluster in {}: nothing to delete", dir.display()));
                return Ok(());
            }
            return Err(no_cluster(&dir));
        };
        let wait = Duration::from_secs(self.wait);
        if let Some(router) = RouterProcess::find(&cluster.dir)? {
            progress("stopping the router");
            if !router.stop(wait, Duration::from_secs(5)) {
                return Err(Failure::new(format!("the router (process {}) does not stop", router.process.pid)));
            }
        }
        progress("stopping the servers");
        let stopped = cluster.stop_servers(Duration::from_secs(2), Duration::from_secs(self.fast), &progress)?;
        let dir = cluster.dir.clone();
        if self.delete {
            cluster.delete()?;
            progress(&format!("deleted the cluster in {}", dir.display()));
        } else {
            progress(&format!("stopped {stopped} servers; the data is kept in {}", dir.display()));
        }
        Ok(())
    }
}
