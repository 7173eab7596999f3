//! How long the bodies of requests may take: whoever sends one slowly holds a place that others
//! wait for.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream;
use tokio::time::{Instant, timeout_at};

use crate::problem::Refusal;

/// The largest body, which is a prompt with images.
pub(crate) const LARGEST: usize = 32 * 1024 * 1024;
/// How much of a larger one is passed over, so that whoever sends it hears why it is refused.
const PASSED_OVER: usize = 128 * 1024 * 1024;
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
    let length = length(request.headers());
    let is_announced = request.headers().contains_key(header::EXPECT);
    let request = limited(request, Patience::Idle);
    if length.is_none_or(|length| length <= LARGEST) {
        return next.run(request).await;
    }
    // Who waits to be told to go on has sent nothing yet.
    if !is_announced {
        pass_over(request).await;
    }
    let reason = "a body has at most 32 MiB";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", reason).into_response()
}

fn length(headers: &HeaderMap) -> Option<usize> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Reads what is of no use, and keeps none of it.
async fn pass_over(request: Request) {
    let mut pieces = request.into_body().into_data_stream();
    let mut passed = 0;
    while let Some(Ok(piece)) = pieces.next().await {
        passed += piece.len();
        if passed > PASSED_OVER {
            return;
        }
    }
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
