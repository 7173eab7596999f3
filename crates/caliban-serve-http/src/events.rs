//! What is told: as server-sent events, and both ways over a WebSocket.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use caliban_serve::{Client, MayEnd, Output, Reader, Told};
use futures::FutureExt;
use futures::stream::{self, Stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::Server;
use crate::extract::{Path, Query, Upgrade};
use crate::problem::Refusal;
use crate::routes::Answered;

/// How often a stream without events shows that it is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How soon a reader that was cut off may come back.
const RETRY: Duration = Duration::from_secs(1);
/// The longest message of a client, which is a prompt with images.
const LONGEST: usize = 32 * 1024 * 1024;
/// The longest message of somebody who has nothing to say.
const SHORTEST: usize = 1024;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct From {
    after: Option<u64>,
    /// The last event that is known, as `<epoch>-<seq>`. Where it means nothing here, a snapshot
    /// comes first.
    last: Option<String>,
}

/// The events of a session: the rest of what is known, or a snapshot and what follows.
pub(crate) async fn stream(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Query(from): Query<From>,
    headers: HeaderMap,
) -> Answered {
    let place = place(&server)?;
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = match known.or(from.last.as_deref()) {
        Some(known) => number(&server, known),
        None => from.after,
    };
    let mut first = VecDeque::new();
    let next = if let Some(after) = after {
        after.saturating_add(1)
    } else {
        let (seq, line) = snapshot(&server, &tab).await?;
        first.push_back(event(&server, seq, &line));
        seq + 1
    };
    let mut reader = server.registry.reader(&tab, Some(next))?;
    if wants_page(&headers) {
        return Ok(page(&mut reader, next).into_response());
    }
    Ok(sse(told(server, reader, first, place)))
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get("accept").and_then(|kind| kind.to_str().ok());
    accepted == Some("application/json")
}

/// What is known by now from an event on, for whoever asks from time to time. A page is as large as
/// a reader's share.
fn page(reader: &mut Reader, from: u64) -> Json<Value> {
    let told = reader.next().now_or_never().flatten().unwrap_or_default();
    let next = told.last().map_or(from, |told| told.seq + 1);
    Json(json!({"events": told, "after": next - 1}))
}

/// The number of the last event that a reader knows; nothing where it is another server's.
fn number(server: &Server, known: &str) -> Option<u64> {
    let (epoch, seq) = known.rsplit_once('-')?;
    let is_ours = epoch == server.registry.epoch();
    seq.parse().ok().filter(|_| is_ours)
}

/// Everything there is, as a line that takes the place of those up to its number.
async fn snapshot(server: &Server, tab: &str) -> Result<(u64, String), Refusal> {
    let (seq, snapshot) = server.registry.snapshot(tab).await?;
    let line = json!({"tab": tab, "seq": seq, "event": snapshot}).to_string();
    Ok((seq, line))
}

/// The states of all sessions, without what is said in them.
pub(crate) async fn states(State(server): State<Server>) -> Answered {
    let place = place(&server)?;
    let reader = server.registry.states();
    Ok(sse(told(server, reader, VecDeque::new(), place)))
}

fn place(server: &Server) -> Result<OwnedSemaphorePermit, Refusal> {
    let streams = std::sync::Arc::clone(&server.streams);
    streams.try_acquire_owned().map_err(|_| {
        let status = StatusCode::TOO_MANY_REQUESTS;
        Refusal::new(
            status,
            "too_many_streams",
            "too many streams are open; close one of them",
        )
    })
}

fn event(server: &Server, seq: u64, line: &str) -> Event {
    let id = format!("{}-{seq}", server.registry.epoch());
    Event::default().id(id).retry(RETRY).data(line)
}

fn told(
    server: Server,
    reader: Reader,
    first: VecDeque<Event>,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(
        (server, reader, first, place),
        |(server, mut reader, mut waiting, place)| async move {
            if waiting.is_empty() {
                let told = reader.next().await?;
                let line = |told: &Told| event(&server, told.seq, told.line().trim_end());
                waiting.extend(told.iter().map(line));
            }
            let next = waiting.pop_front()?;
            Some((Ok(next), (server, reader, waiting, place)))
        },
    )
}

fn sse<S>(stream: S) -> Response
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let alive = KeepAlive::new().interval(HEARTBEAT);
    Sse::new(stream).keep_alive(alive).into_response()
}

/// The states of all sessions over a WebSocket, of which a browser has more than of streams.
pub(crate) async fn states_socket(
    State(server): State<Server>,
    Upgrade(upgrade): Upgrade,
) -> Answered {
    let place = place(&server)?;
    let mut reader = server.registry.states();
    let upgraded = upgrade.max_message_size(SHORTEST).max_frame_size(SHORTEST);
    Ok(upgraded.on_upgrade(move |mut socket| async move {
        loop {
            tokio::select! {
                message = socket.recv() => match message {
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(_) | Err(_)) | None => break,
                },
                told = reader.next() => {
                    for told in told.into_iter().flatten() {
                        let text = told.line().trim_end().to_owned();
                        if socket.send(Message::Text(text.into())).await.is_err() {
                            return;
                        }
                    }
                }
            }
        }
        drop(place);
    }))
}

/// The line protocol, one line a message, with this session heard from the beginning.
pub(crate) async fn socket(
    State(server): State<Server>,
    Path(tab): Path<String>,
    Query(from): Query<From>,
    Upgrade(upgrade): Upgrade,
) -> Answered {
    let place = place(&server)?;
    server.registry.view(&tab)?;
    let (first, after) = match &from.last {
        None => (None, from.after),
        Some(known) => {
            if let Some(after) = number(&server, known) {
                (None, Some(after))
            } else {
                let (seq, line) = snapshot(&server, &tab).await?;
                (Some(line), Some(seq))
            }
        }
    };
    let upgraded = upgrade.max_message_size(LONGEST).max_frame_size(LONGEST);
    let response: Response = upgraded.on_upgrade(move |mut socket| async move {
        if let Some(line) = first
            && socket.send(Message::Text(line.into())).await.is_err()
        {
            return;
        }
        talk(server, &tab, after, socket).await;
        drop(place);
    });
    Ok(response)
}

async fn talk(server: Server, tab: &str, after: Option<u64>, mut socket: WebSocket) {
    let mut client = Client::new(server.registry, MayEnd::No);
    let since = after.map_or(json!({}), |after| json!({"since": after}));
    let mut hear = json!({"op": "events", "id": "ws", "tab": tab});
    if let (Some(hear), Some(since)) = (hear.as_object_mut(), since.as_object()) {
        hear.extend(since.clone());
    }
    client.submit(&hear.to_string()).await;
    loop {
        tokio::select! {
            message = socket.recv(), if client.has_room() => match message {
                Some(Ok(Message::Text(text))) => client.submit(text.as_str()).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_) | Message::Close(_)) | Err(_)) | None => return,
            },
            output = client.next() => {
                let lines: Vec<String> = match output {
                    Output::Told(told) => told.iter().map(Told::line).collect(),
                    Output::Reply(reply) | Output::Goodbye(reply) => {
                        vec![serde_json::to_string(&reply).unwrap_or_default()]
                    }
                };
                for line in lines {
                    let text = line.trim_end().to_owned();
                    if socket.send(Message::Text(text.into())).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
