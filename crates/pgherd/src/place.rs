//! Which cluster on this machine a command is about.

use crate::failure::Failure;
use pgherd_cluster::embedded::{ClusterState, home_dir};
use std::path::PathBuf;

/// The option that all commands about a cluster on this machine share.
#[derive(Debug, clap::Args)]
pub struct Place {
    /// The cluster's directory [default: "default" below $PGHERD_HOME, ~/.pgherd, or /var/lib/pgherd for root]
    #[arg(long, value_name = "DIR", env = "PGHERD_DIR")]
    dir: Option<PathBuf>,
}

impl Place {
    pub fn dir(&self) -> Result<PathBuf, Failure> {
        match &self.dir {
            Some(dir) => std::path::absolute(dir)
                .map_err(|error| Failure::new(format!("\"{}\" is not a directory: {error}", dir.display()))),
            None => Ok(home_dir()?.join("default")),
        }
    }

    /// Whether the other commands find it without being told.
    pub fn is_default(&self) -> bool {
        self.dir.is_none() || std::env::var_os("PGHERD_DIR").is_some()
    }

    /// The cluster that must be there already, and its directory.
    pub fn existing(&self) -> Result<(PathBuf, ClusterState), Failure> {
        let dir = self.dir()?;
        let dir = dir.canonicalize().unwrap_or(dir);
        match ClusterState::read(&dir)? {
            Some(state) => Ok((dir, state)),
            None => Err(no_cluster(&dir)),
        }
    }
}

pub fn no_cluster(dir: &std::path::Path) -> Failure {
    Failure::new(format!("there is no cluster in \"{}\"", dir.display()))
        .hint("start one there with \"pgherd up\", or name its directory with --dir")
}

/// Tells what goes on, on stderr.
pub fn progress(line: &str) {
    eprintln!("pgherd: {line}");
}
