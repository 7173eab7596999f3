//! Passing bytes on, both ways at once, counted and not for ever.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, copy_bidirectional_with_sizes,
};
use tokio::net::TcpStream;

use crate::body::{Body, Progress};

/// The buffer for each direction of a connection.
const BUFFER: usize = 64 << 10;
/// How many times within the time that a connection may be quiet it is looked at.
const LOOKS: u32 = 10;

/// How many bytes went each way.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Meter {
    /// Bytes to the origin, and from it.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (
            self.sent.load(Ordering::Relaxed),
            self.received.load(Ordering::Relaxed),
        )
    }

    /// Returns when nothing has come from either side for as long as `idle`.
    async fn quiet(&self, idle: Duration) {
        let mut last = self.counts();
        let mut looks = 0;
        while looks < LOOKS {
            tokio::time::sleep(idle / LOOKS).await;
            let now = self.counts();
            looks = if now == last { looks + 1 } else { 0 };
            last = now;
        }
    }
}

fn add(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// One end of a connection, with what it said before.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) stream: TcpStream,
    pub(crate) ahead: Vec<u8>,
}

/// Passes everything on until both sides have ended, one broke, or nothing came for too long. One side
/// may end and still be answered.
pub(crate) async fn tunnel(client: End, origin: End, meter: &Meter, idle: Duration) {
    let passing = async {
        let mut client = Counted::new(client, &meter.sent);
        let mut origin = Counted::new(origin, &meter.received);
        client.greet(&mut origin).await?;
        origin.greet(&mut client).await?;
        copy_bidirectional_with_sizes(&mut client, &mut origin, BUFFER, BUFFER).await
    };
    // However it ends, both sides are closed; they cannot be told more.
    tokio::select! {
        _ = passing => {}
        () = meter.quiet(idle) => {}
    }
}

/// Sends one request with its body, and passes on what comes back until the origin ends.
pub(crate) async fn exchange(
    client: End,
    mut origin: TcpStream,
    head: &[u8],
    body: Body,
    meter: &Meter,
    idle: Duration,
) {
    let End { mut stream, ahead } = client;
    let (from_client, mut to_client) = stream.split();
    let (mut from_origin, mut to_origin) = origin.split();
    let sending = async {
        match send(&ahead, from_client, &mut to_origin, head, body, meter).await {
            // An origin that wants no more may have answered.
            Sent::All | Sent::Unwanted => pending().await,
            Sent::Broken => {}
        }
    };
    let receiving = async {
        let mut buffer = vec![0; BUFFER];
        while let Ok(read @ 1..) = from_origin.read(&mut buffer).await {
            add(&meter.received, read);
            let some = buffer.get(..read).unwrap_or_default();
            if to_client.write_all(some).await.is_err() {
                return;
            }
        }
        // The client may be gone; then it needs no end either.
        let _ = to_client.shutdown().await;
    };
    tokio::select! {
        () = receiving => {}
        () = sending => {}
        () = meter.quiet(idle) => {}
    }
}

enum Sent {
    All,
    /// The origin took no more.
    Unwanted,
    /// The client left, or its body is not what it announced.
    Broken,
}

/// Sends the head and exactly the body; what the client says behind it goes nowhere.
async fn send(
    ahead: &[u8],
    from_client: impl AsyncRead + Unpin,
    to_origin: &mut (impl AsyncWrite + Unpin),
    head: &[u8],
    mut body: Body,
    meter: &Meter,
) -> Sent {
    if to_origin.write_all(head).await.is_err() {
        return Sent::Unwanted;
    }
    add(&meter.sent, head.len());
    if body.is_empty() {
        return Sent::All;
    }
    let mut from_client = ahead.chain(from_client);
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = match from_client.read(&mut buffer).await {
            Ok(0) | Err(_) => return Sent::Broken,
            Ok(read) => read,
        };
        let some = buffer.get(..read).unwrap_or_default();
        let (some, is_last) = match body.advance(some) {
            Ok(Progress::More) => (some, false),
            Ok(Progress::Ends(at)) => (some.get(..at).unwrap_or_default(), true),
            Err(_) => return Sent::Broken,
        };
        add(&meter.sent, some.len());
        if to_origin.write_all(some).await.is_err() {
            return Sent::Unwanted;
        }
        if is_last {
            return Sent::All;
        }
    }
}

/// A stream that counts what is read from it.
struct Counted<'a> {
    stream: TcpStream,
    ahead: Vec<u8>,
    counter: &'a AtomicU64,
}

impl<'a> Counted<'a> {
    fn new(end: End, counter: &'a AtomicU64) -> Self {
        let End { stream, ahead } = end;
        Self {
            stream,
            ahead,
            counter,
        }
    }

    /// Passes on what was said before.
    async fn greet(&mut self, other: &mut Self) -> io::Result<()> {
        let ahead = std::mem::take(&mut self.ahead);
        add(self.counter, ahead.len());
        other.stream.write_all(&ahead).await
    }
}

impl AsyncRead for Counted<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        add(self.counter, buffer.filled().len().saturating_sub(before));
        read
    }
}

impl AsyncWrite for Counted<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
