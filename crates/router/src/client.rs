//! The client's side of a session: frames in, bytes out. Replies gather in `out` and leave when the protocol says so or
//! when enough has gathered, so that a client that does not read stalls its own session and nothing else.

use bytes::BytesMut;
use pgherd_wire::frame::{Frame, next_frame};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::error::{Failure, Result};

/// The largest message taken from a client (PostgreSQL's own limit is 1 GiB).
const FRAME_MAX: usize = (1 << 30) - 1;
const OUT_CHUNK: usize = 64 * 1024;

pub struct Client {
    stream: TcpStream,
    pub read: BytesMut,
    pub out: BytesMut,
    /// How often bytes have left: what was written before can no longer be taken back.
    pub flushes: u64,
}

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        Client { stream, read: BytesMut::with_capacity(4096), out: BytesMut::with_capacity(4096), flushes: 0 }
    }

    /// The next message. Cancel safe.
    pub async fn frame(&mut self) -> Result<Frame> {
        loop {
            if let Some(frame) = next_frame(&mut self.read, FRAME_MAX)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// Returns when the client has closed its side. While it has sent bytes that nobody has read yet, that cannot be told,
    /// and this waits for ever. Cancel safe.
    pub async fn gone(&self) {
        loop {
            if self.stream.readable().await.is_err() {
                return;
            }
            let mut byte = [0u8; 1];
            match self.stream.peek(&mut byte).await {
                Ok(0) | Err(_) => return,
                Ok(_) => std::future::pending::<()>().await,
            }
        }
    }

    /// Reads some more bytes; an end of the stream is [`Failure::ClientGone`]. Cancel safe.
    pub async fn fill(&mut self) -> Result<()> {
        loop {
            self.stream.readable().await.map_err(|_| Failure::ClientGone)?;
            self.read.reserve(8 * 1024);
            match self.stream.try_read_buf(&mut self.read) {
                Ok(0) => return Err(Failure::ClientGone),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Failure::ClientGone),
            }
        }
    }

    pub async fn flush(&mut self) -> Result<()> {
        self.flushes += u64::from(!self.out.is_empty());
        while !self.out.is_empty() {
            match self.stream.write_buf(&mut self.out).await {
                Ok(0) | Err(_) => return Err(Failure::ClientGone),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Flushes once enough has gathered: called for every row.
    pub async fn flush_if_full(&mut self) -> Result<()> {
        if self.out.len() >= OUT_CHUNK { self.flush().await } else { Ok(()) }
    }

    /// Appends a server's message as it is.
    pub fn forward(&mut self, frame: &Frame) {
        self.out.extend_from_slice(&frame.raw);
    }
}
