//! `make drivers`: the suites of drivers and ORMs through the router, compared with one plain server. Its options are
//! words like `only=asyncpg`; see `Options` in `drivers.rs`.

use std::process::ExitCode;

use pgherd_testkit::drivers;

fn main() -> ExitCode {
    match drivers::options(std::env::args().skip(1)).and_then(|options| drivers::run(&options)) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
