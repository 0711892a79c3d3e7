//! `pgherd download`: PostgreSQL's programs before anything needs them, such as in an image without a network later.

use crate::connect::runtime;
use crate::failure::Failure;
use crate::place::progress;
use pgherd_cluster::embedded::PgBin;

/// Download PostgreSQL unless it is there, and print the directory of its programs.
#[derive(Debug, clap::Args)]
pub struct Download {
    /// PostgreSQL version, such as 18 or 18.6
    #[arg(long, value_name = "VERSION")]
    pg: Option<String>,
}

impl Download {
    pub fn run(self) -> Result<(), Failure> {
        let pg = runtime()?.block_on(PgBin::obtain_with_progress(self.pg.as_deref(), &progress))?;
        println!("{}", pg.bin_dir.display());
        Ok(())
    }
}
