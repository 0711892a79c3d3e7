//! Peers that are gone without a word are found by the system: it asks after them while nothing is said.

use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

/// How soon a silent peer is given up.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// It is asked after this long without a word, and so often again.
    pub idle: Duration,
    pub interval: Duration,
    pub times: u32,
}

/// Our servers.
pub const SERVERS: Patience = Patience { idle: Duration::from_secs(5), interval: Duration::from_secs(3), times: 3 };
/// Our clients, which may be far away.
pub const CLIENTS: Patience = Patience { idle: Duration::from_secs(30), interval: Duration::from_secs(10), times: 3 };

/// Has the system look after a connection. Where it cannot, the connection is as good as before.
pub fn keep_alive(stream: &TcpStream, patience: Patience) {
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, patience.idle);
    let _ = sockopt::set_tcp_keepintvl(stream, patience.interval);
    let _ = sockopt::set_tcp_keepcnt(stream, patience.times);
    // The same where something was sent that the peer does not acknowledge.
    let unheard = patience.idle + patience.interval * patience.times;
    #[cfg(target_os = "linux")]
    let _ = sockopt::set_tcp_user_timeout(stream, unheard.as_millis() as u32);
}
