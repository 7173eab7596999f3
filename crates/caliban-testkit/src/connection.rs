//! One client connection: requests in, planned writes out, and noticing when the client leaves.

use std::future::pending;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

use crate::http::{self, MAX_HEAD, Persistence, ReadError};
use crate::plan::{End, Headers, Hold, Plan};
use crate::server::Shared;

/// How the delivery of one answer ended.
enum Delivered {
    Complete,
    /// The plan ends the connection.
    Ended,
    ClientGone,
}

pub(crate) async fn serve(mut stream: TcpStream, shared: &Shared) {
    // Only affects timing: a socket that refuses it still serves.
    let _ = stream.set_nodelay(true);
    let mut buffer = BytesMut::with_capacity(8 << 10);
    loop {
        let (plan, persistence) = match http::read(&mut stream, &mut buffer).await {
            Ok(Some(request)) => (shared.answer(&request), request.persistence),
            Ok(None) | Err(ReadError::Io(_)) => return,
            Err(ReadError::Bad { status, reason }) => {
                let body = json!({"error": {"message": reason}});
                (
                    Plan::json(status, &Headers::new(), &body),
                    Persistence::Close,
                )
            }
        };
        match deliver(&mut stream, &mut buffer, plan, shared).await {
            Delivered::Complete if persistence == Persistence::Keep => {}
            Delivered::Complete | Delivered::Ended => return,
            Delivered::ClientGone => return shared.log().disconnected(),
        }
    }
}

async fn deliver(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    plan: Plan,
    shared: &Shared,
) -> Delivered {
    let (mut reader, mut writer) = stream.split();
    if gone_within(&mut reader, buffer, plan.delay).await
        || (plan.hold == Some(Hold::BeforeHead)
            && gone_while_held(&mut reader, buffer, shared).await)
        || writer.write_all(&plan.head).await.is_err()
    {
        return Delivered::ClientGone;
    }
    for (index, chunk) in plan.chunks.iter().enumerate() {
        let gap = if index == 0 { Duration::ZERO } else { plan.gap };
        if gone_within(&mut reader, buffer, gap).await
            || (plan.hold == Some(Hold::AfterChunks(index))
                && gone_while_held(&mut reader, buffer, shared).await)
            || writer.write_all(chunk).await.is_err()
        {
            return Delivered::ClientGone;
        }
    }
    match plan.end {
        End::KeepAlive => Delivered::Complete,
        End::Close => {
            let _ = writer.shutdown().await;
            Delivered::Ended
        }
        End::Reset => {
            // With a zero linger time the following drop sends RST instead of FIN.
            let _ = stream.set_zero_linger();
            Delivered::Ended
        }
        End::Stall => {
            gone(&mut reader, buffer).await;
            Delivered::ClientGone
        }
    }
}

/// Waits, and tells whether the client left meanwhile.
async fn gone_within(reader: &mut ReadHalf<'_>, buffer: &mut BytesMut, wait: Duration) -> bool {
    if wait.is_zero() {
        return false;
    }
    tokio::select! {
        () = tokio::time::sleep(wait) => false,
        () = gone(reader, buffer) => true,
    }
}

/// Waits to be released, and tells whether the client left meanwhile.
async fn gone_while_held(
    reader: &mut ReadHalf<'_>,
    buffer: &mut BytesMut,
    shared: &Shared,
) -> bool {
    tokio::select! {
        () = shared.released() => false,
        () = gone(reader, buffer) => true,
    }
}

/// Resolves when the client closes. What it sends before belongs to its next request.
async fn gone(reader: &mut ReadHalf<'_>, buffer: &mut BytesMut) {
    loop {
        if buffer.len() >= MAX_HEAD {
            return pending().await;
        }
        match reader.read_buf(buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}
