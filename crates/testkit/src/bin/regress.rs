//! `make regress`: PostgreSQL's own regression suite through the router, compared with one plain server. Its options
//! are words like `workers=2`; see `Options` in `regress/mod.rs`.

use std::process::ExitCode;

use pgherd_testkit::regress;

fn main() -> ExitCode {
    match regress::options(std::env::args().skip(1)).and_then(|options| regress::run(&options)) {
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
