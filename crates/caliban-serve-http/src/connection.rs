//! Connections: how many, how long their headers may take, and how long one that takes nothing is
//! kept.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// Connections at the same time; one more waits.
const CONNECTIONS: usize = 512;
/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(10);
/// How long a connection that takes nothing is kept; who hears events comes back by number.
const STALLED: Duration = Duration::from_secs(30);

/// The places for connections of a server.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Semaphore>);

/// A place for one connection; given back when it is dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held, not used")] OwnedSemaphorePermit);

impl Connections {
    /// Waits until there is room for one more. Nothing where there will never be.
    pub async fn place(&self) -> Option<Place> {
        let place = Arc::clone(&self.0).acquire_owned().await;
        place.ok().map(Place)
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(CONNECTIONS)))
    }
}

/// Serves one connection in a task of its own.
pub fn serve<S>(stream: S, router: Router, place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    serve_after(std::future::ready(Ok(stream)), router, place);
}

/// The same with a connection that both sides agree about first; that may take as long as a head.
pub fn serve_after<S>(
    agreed: impl Future<Output = std::io::Result<S>> + Send + 'static,
    router: Router,
    place: Place,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        let Ok(Ok(stream)) = timeout(HEAD, agreed).await else {
            return;
        };
        let stream = TokioIo::new(Patient::new(stream));
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(stream, TowerToHyperService::new(router))
            .with_upgrades()
            .await;
        // Whoever went away in the middle has nobody to be told.
        drop(served);
        drop(place);
    });
}

/// A stream that fails when nothing could be written for too long.
struct Patient<S> {
    stream: S,
    until: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(stream: S) -> Self {
        Self {
            stream,
            until: None,
        }
    }

    fn watch<T>(
        &mut self,
        written: Poll<std::io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<T>> {
        if written.is_ready() {
            self.until = None;
            return written;
        }
        let until = self
            .until
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + STALLED)));
        match until.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(std::io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(flushed, context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
