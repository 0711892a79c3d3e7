//! CancelRequest: a connection of its own that carries the key of the one to be interrupted.

use bytes::{Bytes, BytesMut};
use pgherd_wire::frontend;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Address;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelKey {
    pub pid: i32,
    pub key: Bytes,
}

/// Asks the server to interrupt what runs on the connection with this key. Best effort: the server never answers, it
/// only closes.
pub async fn cancel(address: &Address, key: &CancelKey) {
    let Ok(mut stream) = TcpStream::connect((address.host.as_str(), address.port)).await else { return };
    let mut buffer = BytesMut::new();
    frontend::write_cancel(&mut buffer, key.pid, &key.key);
    if stream.write_all(&buffer).await.is_ok() {
        let mut end = [0u8; 1];
        let _ = stream.read(&mut end).await;
    }
}
