//! Tests of the whole product: throw-away servers and clusters, a raw protocol client, and a runner that gives the
//! same SQL to PostgreSQL and to a cluster and compares all that a client can see.
//!
//! The tests that need the `pgherd` binary live in `crates/pgherd/tests`, their data in `tests/` at the workspace root.
//! Nothing here uses another crate of ours: the protocol is read a second time, so that a mistake in `pgherd-wire`
//! does not hide itself.

pub mod beside;
pub mod client;
mod cluster;
pub mod differential;
pub mod door;
pub mod drivers;
pub mod fuzz;
mod keeper;
mod logs;
mod plain;
pub mod proxy;
pub mod regress;
mod router;
pub mod script;
mod shape;
pub mod survey;
mod target;
pub mod ways;
pub mod words;

use std::collections::BTreeSet;

pub use cluster::Cluster;
pub use plain::{Plain, pg_bin, pg_is_given, run_as_owner};
pub use router::Router;
pub use shape::{Coverage, Shape};
pub use target::{Side, Target, workspace_file, workspace_root};

/// What a test helper fails with: a sentence for the person who reads the test's output.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The texts in backticks of the list of refusals, names and reasons as `…`.
pub fn listed_refusals(page: &str) -> BTreeSet<String> {
    let list = page.split("## Refused by name").nth(1).unwrap_or_default();
    let items = list.split("\n- ").skip(1);
    // What follows the colon after the texts explains; it may quote, too.
    items
        .flat_map(|item| {
            let pieces: Vec<&str> = item.split('`').collect();
            let texts = pieces.iter().enumerate().skip(1).step_by(2);
            let separated = |n: usize| pieces[2..n].iter().step_by(2).all(|between| between.trim() == ",");
            texts.filter(|(n, _)| *n == 1 || separated(*n)).map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>()
        })
        .collect()
}
