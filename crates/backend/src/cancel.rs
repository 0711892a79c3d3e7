//! CancelRequest: a connection of its own that carries the key of the one to be interrupted.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Address;

const DEADLINE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelKey {
    pub pid: i32,
    pub key: Bytes,
}

/// Asks the server to interrupt what runs on the connection with this key. Best effort: the server never answers, it
/// only closes.
pub async fn cancel(address: &Address, key: &CancelKey) {
    let asked = async {
        let mut stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
        let mut buffer = BytesMut::new();
        frontend::write_cancel(&mut buffer, key.pid, &key.key);
        stream.write_all(&buffer).await?;
        stream.read(&mut [0u8; 1]).await
    };
    // A session that ends its statement waits for this.
    let _ = tokio::time::timeout(DEADLINE, asked).await;
}
