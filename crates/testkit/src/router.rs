//! One router in front of servers that exist already, ended when it is dropped.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::Client;
use crate::{Error, Result, Target};

/// For it to answer.
const WAIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Router {
    pub target: Target,
    child: Child,
}

impl Router {
    /// `program` is `env!("CARGO_BIN_EXE_pgherd")`. What it logs is in the test's output.
    pub fn start(program: &str, coordinator: &Target, further: &[&str]) -> Result<Router> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        for name in ["PGHERD_DIR", "PGHERD_COORDINATOR", "PGPASSWORD"] {
            command.env_remove(name);
        }
        let listen = format!("127.0.0.1:{port}");
        command.args(["serve", "--coordinator", &coordinator.url(), "--listen", &listen, "--auth", "trust"]);
        let child = command.args(further).stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let router = Router { target: Target { port, ..coordinator.clone() }, child };
        let started = Instant::now();
        loop {
            match Client::connect(&router.target) {
                Ok(_) => return Ok(router),
                Err(error) if started.elapsed() > WAIT => return Err(Error::from(format!("no router: {error}"))),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Router {
    /// It dies at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.kill();
    }
}
