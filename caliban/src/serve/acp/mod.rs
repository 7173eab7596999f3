//! `caliban serve acp` as a face of sessions: an editor's requests in, answers, updates and
//! questions out. Several sessions on one connection; every request has exactly one answer.

mod capabilities;
mod connection;
mod dials;
mod listing;
mod login;
mod opening;
mod outbox;
mod questions;
mod requests;
mod session;

use caliban_agent::Outcome;
use caliban_harness::{Process, RunOptions};
use caliban_model::CancellationToken;

use crate::console::Console;
use crate::exit::Failure;
use crate::serve::lines::lines;

use connection::{Connection, End};
use outbox::Outbox;

pub(crate) use login::login;

/// The longest line that is read: pictures are part of prompts.
const MAX_LINE: usize = 32 * 1024 * 1024;

/// Serves one editor until it goes away.
pub(crate) async fn serve(
    options: RunOptions,
    process: Process,
    cancel: &CancellationToken,
    console: Console,
) -> Result<(), Failure> {
    let outbox = Outbox::open(console);
    let input = lines(std::io::stdin(), MAX_LINE);
    let connection = Connection::new(options, process, outbox.clone());
    let end = Box::pin(connection.serve(input, cancel)).await;
    outbox.finish().await;
    match end {
        End::InputClosed => Ok(()),
        End::Cancelled => Err(Failure::Outcome(Outcome::Cancelled)),
        End::OutputClosed => Err(outbox.failure()),
    }
}
