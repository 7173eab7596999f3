//! Lines of JSON over a Unix socket, each within a bound, between processes of one user.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::peer::{self, Peer};

/// The version of what is said over both sockets. Fields are added, never changed.
pub const PROTOCOL: u32 = 2;
/// The oldest that is still understood: the one before. Who speaks another is told so.
pub(crate) const OLDEST: u32 = PROTOCOL - 1;

/// Whether a version is understood here.
pub(crate) fn is_spoken(protocol: u32) -> bool {
    (OLDEST..=PROTOCOL).contains(&protocol)
}

/// Bytes of the first line.
pub(crate) const MAX_HELLO: usize = 1024 * 1024;
/// Bytes of any other.
pub(crate) const MAX_LINE: usize = 10 * 1024 * 1024;
/// How long the first line may take.
pub(crate) const HELLO_PATIENCE: Duration = Duration::from_secs(2);

/// Reads lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::new(reader),
        }
    }

    /// The next line; nothing at the end. Must not be dropped while it waits.
    pub(crate) async fn text(&mut self, most: usize) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut bounded = (&mut self.reader).take(bound);
        let read = bounded.read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            let kind = io::ErrorKind::InvalidData;
            return Err(if line.len() > most {
                io::Error::new(kind, format!("a line is longer than {most} bytes"))
            } else {
                io::Error::new(kind, "the connection ended in the middle of a line")
            });
        }
        String::from_utf8(line)
            .map(Some)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line is not UTF-8"))
    }

    /// The next line as what it must be.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self, most: usize) -> io::Result<Option<T>> {
        let Some(line) = self.text(most).await? else {
            return Ok(None);
        };
        serde_json::from_str(&line)
            .map(Some)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    /// The first line, which must come soon.
    pub(crate) async fn hello<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let first = tokio::time::timeout(HELLO_PATIENCE, self.next(MAX_HELLO));
        match first.await {
            Ok(Ok(Some(hello))) => Ok(hello),
            Ok(Ok(None)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "nothing was said in time",
            )),
        }
    }
}

/// Something as a line.
pub(crate) fn line(content: &impl Serialize) -> String {
    // Only a map with keys that are no texts could fail, and there is none.
    let mut line = serde_json::to_string(content).unwrap_or_default();
    line.push('\n');
    line
}

pub(crate) async fn send<W: AsyncWrite + Unpin>(
    writer: &mut W,
    content: &impl Serialize,
) -> io::Result<()> {
    writer.write_all(line(content).as_bytes()).await
}

/// Both directions of a connection, and who is at its other end.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) lines: Lines<OwnedReadHalf>,
    pub(crate) writer: OwnedWriteHalf,
    pub(crate) peer: Peer,
}

impl Connection {
    /// A connection that was made, if a process of this user is at its other end.
    pub(crate) fn of(stream: UnixStream) -> io::Result<Self> {
        let peer = peer::of(&stream)?;
        let (reader, writer) = stream.into_split();
        Ok(Self {
            lines: Lines::new(reader),
            writer,
            peer,
        })
    }

    pub(crate) async fn open(path: &Path) -> io::Result<Self> {
        Self::of(UnixStream::connect(path).await?)
    }

    pub(crate) async fn send(&mut self, content: &impl Serialize) -> io::Result<()> {
        send(&mut self.writer, content).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_have_a_bound_and_an_end() {
        let mut lines = Lines::new(&b"{\"a\":1}\n12345\n123456\n"[..]);
        let first: Option<serde_json::Value> = lines.next(100).await.unwrap();
        assert_eq!(first.unwrap()["a"], 1);
        assert_eq!(lines.text(5).await.unwrap().as_deref(), Some("12345"));
        assert!(lines.text(5).await.is_err());
        let mut cut = Lines::new(&b"12"[..]);
        assert!(cut.text(5).await.is_err());
        let mut none = Lines::new(&b""[..]);
        assert_eq!(none.text(5).await.unwrap(), None);
    }
}
