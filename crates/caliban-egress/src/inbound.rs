//! The client's side of a connection while it still says what it wants: a buffer with a bound.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest head of a request, greeting or hello.
pub(crate) const HEAD: usize = 16 << 10;
/// How much is read at a time.
const STEP: usize = 4 << 10;
/// How long and how much is read after the last word, so that a client which is still writing hears
/// it: closing with bytes unread takes the answer back.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 256 << 10;

/// A client, and what it said that has not been taken yet.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

/// Why no more came.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoMore {
    /// The client left.
    Gone,
    /// It said more than a head may have.
    TooLong,
}

impl From<io::Error> for NoMore {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

impl Inbound {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: Vec::new(),
        }
    }

    /// What came and was not taken.
    pub(crate) fn said(&self) -> &[u8] {
        &self.buffer
    }

    /// Waits for more to be said.
    pub(crate) async fn more(&mut self) -> Result<(), NoMore> {
        let room = HEAD.saturating_sub(self.buffer.len()).min(STEP);
        if room == 0 {
            return Err(NoMore::TooLong);
        }
        let mut limited = (&mut self.stream).take(room as u64);
        match limited.read_buf(&mut self.buffer).await? {
            0 => Err(NoMore::Gone),
            _ => Ok(()),
        }
    }

    /// Forgets the first bytes, which were understood.
    pub(crate) fn taken(&mut self, bytes: usize) {
        self.buffer.drain(..bytes.min(self.buffer.len()));
    }

    /// The stream, and what is left of what was said.
    pub(crate) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.buffer)
    }

    pub(crate) async fn answer(&mut self, bytes: &[u8]) -> Result<(), NoMore> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Says the last word and sees to it that it is heard.
    pub(crate) async fn farewell(mut self, bytes: &[u8]) {
        let goodbye = async {
            self.stream.write_all(bytes).await?;
            self.stream.shutdown().await?;
            let mut rest = (&mut self.stream).take(LINGER_BYTES);
            tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
        };
        // A client that is gone, or talks on for ever, has lost its answer by itself.
        let _ = timeout(LINGER, goodbye).await;
    }
}
