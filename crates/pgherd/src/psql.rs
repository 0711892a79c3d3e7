//! `pgherd psql`: becomes psql, connected to the router.

use crate::failure::Failure;
use crate::place::Place;
use pgherd_cluster::embedded::RouterProcess;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Run psql on a cluster on this machine. Everything after the options of pgherd goes to psql.
#[derive(Debug, clap::Args)]
pub struct Psql {
    #[command(flatten)]
    place: Place,

    /// Arguments of psql, such as -c 'SELECT 1'
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<String>,
}

impl Psql {
    pub fn run(self) -> Result<(), Failure> {
        let (dir, state) = self.place.existing()?;
        let port = RouterProcess::find(&dir)?.and_then(|router| router.ports.first().copied()).ok_or_else(|| {
            Failure::new(format!("the cluster in \"{}\" is not running", dir.display()))
                .hint("start it with \"pgherd up\"")
        })?;
        // The one that belongs to the servers' version, if there is one.
        let beside: PathBuf = state.pg_bin_dir.join("psql");
        let program = if beside.is_file() { beside } else { PathBuf::from("psql") };
        let mut command = Command::new(&program);
        if let Some(password) = &state.password {
            command.env("PGPASSWORD", password);
        }
        command.arg("--dbname").arg(state.url(port, false)).args(&self.arguments);
        let error = command.exec();
        if error.kind() == std::io::ErrorKind::NotFound {
            return Err(Failure::new("psql is not installed").hint(
                "install it (on Debian and Ubuntu the package \"postgresql-client\"), or connect with another client \
                 to the URL that \"pgherd up\" prints",
            ));
        }
        Err(Failure::new(format!("could not run \"{}\": {error}", program.display())))
    }
}
