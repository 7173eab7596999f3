//! One application over standard input and output. Both are threads of their own: neither an input
//! that does not end nor an output that nobody reads holds up the sessions.

use std::io::Read;
use std::time::Duration;

use caliban_agent::Outcome;
use caliban_model::CancellationToken;
use caliban_serve::{Client, Line, LineDecoder, MayEnd, Registry};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::link::{self, Ended, PIECES};
use crate::console::Console;
use crate::exit::Failure;
use crate::serve::farewell;

/// Lines that wait; an application that is further ahead waits itself.
const LINES: usize = 16;
/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// How long the last output may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub(super) async fn serve(
    registry: Registry,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    let mut lines = lines();
    let (pieces, written) = writer(console);
    let mut client = Client::new(registry.clone(), MayEnd::Yes);
    let ended = link::serve(&mut client, &mut lines, &pieces, cancel).await;
    farewell(&registry).await;
    // Nobody may be reading any more.
    let _ = timeout(LAST_WORDS, link::drain(&mut client, &pieces)).await;
    drop(pieces);
    let _ = timeout(LAST_WORDS, written).await;
    match ended {
        Ended::HungUp | Ended::Goodbye => Ok(()),
        Ended::Cancelled => Err(Failure::Outcome(Outcome::Cancelled)),
    }
}

fn lines() -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let (mut input, mut decoder) = (std::io::stdin().lock(), LineDecoder::default());
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = input.read(&mut chunk).unwrap_or(0);
            let lines = decoder.feed(&chunk[..read]);
            let last = if read == 0 { decoder.end() } else { None };
            for line in lines.into_iter().chain(last) {
                // Nobody listens any more once everything is over.
                if sender.blocking_send(line).is_err() {
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

/// Where output goes, and when all of it has been written.
fn writer(mut console: Console) -> (mpsc::Sender<String>, oneshot::Receiver<()>) {
    let (sender, mut receiver) = mpsc::channel::<String>(PIECES);
    let (done, written) = oneshot::channel();
    std::thread::spawn(move || {
        while let Some(piece) = receiver.blocking_recv() {
            if console.write(&piece).is_err() {
                break;
            }
        }
        let _ = done.send(());
    });
    (sender, written)
}
