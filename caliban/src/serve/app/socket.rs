//! Several applications of one user over a socket, on the same sessions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::Outcome;
use caliban_model::CancellationToken;
use caliban_serve::{Client, Line, LineDecoder, MayEnd, Registry};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::link::{self, Ended, PIECES};
use crate::console::note;
use crate::exit::Failure;
use crate::serve::{farewell, peer};

/// Connections at the same time; one more waits.
const CONNECTIONS: usize = 64;
/// How long a connection that takes nothing is kept; it comes back by number.
const STALLED: Duration = Duration::from_secs(30);
/// Lines that wait; an application that is further ahead waits itself.
const LINES: usize = 16;
/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

pub(super) async fn serve(
    registry: Registry,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let listener = peer::listen(path)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let over = cancel.child_token();
    loop {
        let accepted = tokio::select! {
            () = over.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // Too many files are open; others are closed meanwhile.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if let Err(stranger) = peer::check(&stream) {
            note(&format!(
                "warning: a connection was turned away: {stranger:?}"
            ));
            continue;
        }
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            break;
        };
        let (registry, over) = (registry.clone(), over.clone());
        tokio::spawn(async move {
            if connection(registry, stream, &over).await == Ended::Goodbye {
                over.cancel();
            }
            drop(place);
        });
    }
    drop(listener);
    // Another server may have taken the place meanwhile; then it is not there any more.
    let _ = std::fs::remove_file(path);
    farewell(&registry).await;
    if cancel.is_cancelled() {
        return Err(Failure::Outcome(Outcome::Cancelled));
    }
    Ok(())
}

async fn connection(registry: Registry, stream: UnixStream, over: &CancellationToken) -> Ended {
    let (input, output) = stream.into_split();
    let mut lines = lines(input);
    let (pieces, written) = writer(output);
    let mut client = Client::new(registry, MayEnd::Yes);
    let ended = link::serve(&mut client, &mut lines, &pieces, over).await;
    drop(pieces);
    let _ = timeout(STALLED, written).await;
    ended
}

fn lines(mut input: OwnedReadHalf) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(LINES);
    tokio::spawn(async move {
        let (mut decoder, mut chunk) = (LineDecoder::default(), vec![0; CHUNK]);
        loop {
            let read = tokio::select! {
                read = input.read(&mut chunk) => read.unwrap_or(0),
                () = sender.closed() => return,
            };
            let lines = decoder.feed(&chunk[..read]);
            let last = if read == 0 { decoder.end() } else { None };
            for line in lines.into_iter().chain(last) {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
            if read == 0 {
                return;
            }
        }
    });
    receiver
}

fn writer(mut output: OwnedWriteHalf) -> (mpsc::Sender<String>, tokio::task::JoinHandle<()>) {
    let (sender, mut receiver) = mpsc::channel::<String>(PIECES);
    let written = tokio::spawn(async move {
        while let Some(piece) = receiver.recv().await {
            match timeout(STALLED, output.write_all(piece.as_bytes())).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    });
    (sender, written)
}
