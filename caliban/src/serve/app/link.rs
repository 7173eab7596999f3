//! The loop between an application and the registry, whatever the bytes go over.

use caliban_model::CancellationToken;
use caliban_protocol::line;
use caliban_serve::{Client, Line, Malformed, Output, Reply};
use tokio::sync::mpsc;

/// Pieces of output that wait to be written; then the streams of tabs wait, which are bounded.
pub(super) const PIECES: usize = 4;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The application has closed its end.
    HungUp,
    /// It asked for the end of everything.
    Goodbye,
    /// We were told to end.
    Cancelled,
}

/// Serves one application until it goes or everything ends.
pub(super) async fn serve(
    client: &mut Client,
    lines: &mut mpsc::Receiver<Line>,
    pieces: &mpsc::Sender<String>,
    cancel: &CancellationToken,
) -> Ended {
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ended::Cancelled,
            line = lines.recv(), if client.has_room() => match line {
                Some(Line::Text(text)) => client.submit(&text).await,
                Some(Line::Unusable(reason)) => client.complain(Malformed {
                    id: None,
                    reason: reason.to_owned(),
                }),
                None => return Ended::HungUp,
            },
            output = next(client, pieces) => match output {
                Some((place, output)) => {
                    let is_last = matches!(output, Output::Goodbye(_));
                    place.send(written(&output));
                    if is_last {
                        return Ended::Goodbye;
                    }
                }
                None => return Ended::HungUp,
            },
        }
    }
}

/// Sends what is left once no session is there any more.
pub(super) async fn drain(client: &mut Client, pieces: &mpsc::Sender<String>) {
    while let Ok(place) = pieces.reserve().await
        && let Some(output) = client.rest().await
    {
        place.send(written(&output));
    }
}

/// What is sent next, as soon as there is room for it; nothing once nobody reads.
async fn next<'a>(
    client: &mut Client,
    pieces: &'a mpsc::Sender<String>,
) -> Option<(mpsc::Permit<'a, String>, Output)> {
    let place = pieces.reserve().await.ok()?;
    Some((place, client.next().await))
}

fn written(output: &Output) -> String {
    match output {
        Output::Reply(reply) | Output::Goodbye(reply) => reply_line(reply),
        Output::Told(told) => told.iter().map(caliban_serve::Told::line).collect(),
    }
}

fn reply_line(reply: &Reply) -> String {
    // Only a map with keys that are no texts could fail, and there is none.
    line(&serde_json::to_value(reply).unwrap_or_default())
}
