//! How long the bodies of requests may take: whoever sends one slowly holds a place that others
//! wait for.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use futures::stream;
use tokio::time::{Instant, timeout_at};

/// How long nothing of a body may come.
const IDLE: Duration = Duration::from_secs(10);
/// How long the whole of a body may take that somebody sends whom nobody knows yet.
const STRANGER: Duration = Duration::from_secs(10);

/// Nothing came for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooSlow;

impl std::fmt::Display for TooSlow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the body came too slowly; send the request again")
    }
}

impl std::error::Error for TooSlow {}

/// Until when a body is waited for.
#[derive(Debug, Clone, Copy)]
enum Patience {
    /// Until it has said nothing for a while.
    Idle,
    /// Until then.
    Until(Instant),
}

/// Bodies of those who were let in.
pub(crate) async fn idle(request: Request, next: Next) -> Response {
    next.run(limited(request, Patience::Idle)).await
}

/// Bodies of strangers.
pub(crate) async fn whole(request: Request, next: Next) -> Response {
    let end = Instant::now() + STRANGER;
    next.run(limited(request, Patience::Until(end))).await
}

fn limited(request: Request, patience: Patience) -> Request {
    request.map(|body| {
        let pieces = stream::unfold(Some(body.into_data_stream()), move |pieces| async move {
            let mut pieces = pieces?;
            let end = match patience {
                Patience::Idle => Instant::now() + IDLE,
                Patience::Until(end) => end,
            };
            match timeout_at(end, pieces.next()).await {
                Ok(None) => None,
                Ok(Some(piece)) => Some((piece, Some(pieces))),
                // What comes after that is not read any more.
                Err(_) => Some((Err(axum::Error::new(TooSlow)), None)),
            }
        });
        Body::from_stream(pieces)
    })
}
