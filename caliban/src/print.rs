//! Print mode: one prompt in, the answer on standard output.

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, Outcome};
use caliban_harness::Session;
use caliban_model::{CancellationToken, Message};
use caliban_protocol::Init;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config_watch::ConfigWatch;
use crate::exit::Failure;
use crate::face::Face;

/// Events that wait to be shown; a run waits for a face that is further behind.
const EVENT_QUEUE: usize = 256;
/// How long background jobs may keep the program after its result.
const SHUTDOWN: Duration = Duration::from_millis(1500);

/// Runs a prompt and shows what happens. If nobody reads the output any more, the run is
/// cancelled.
pub(crate) async fn print(
    mut session: Session,
    prompt: String,
    cancel: &CancellationToken,
    init: &Init,
    watch: Option<ConfigWatch>,
    face: &mut Face<'_>,
) -> Result<(), Failure> {
    face.begin(init)?;
    let (sender, mut events) = mpsc::channel::<Event>(EVENT_QUEUE);
    let hooks = Arc::clone(&session.agent().hooks);
    let running = async {
        let run = session.run(Message::user(prompt), &sender, cancel);
        let (outcome, _) = match watch {
            None => run.await,
            Some(watch) => {
                let follow = watch.follow(&*hooks, &sender);
                tokio::select! {
                    ended = run => ended,
                    never = follow => match never {},
                }
            }
        };
        drop(sender);
        outcome
    };
    let showing = async {
        let mut shown = Ok(());
        while let Some(event) = events.recv().await {
            if shown.is_ok() {
                shown = face.show(&event);
                if shown.is_err() {
                    cancel.cancel();
                }
            }
        }
        shown
    };
    let (outcome, shown) = tokio::join!(running, showing);
    // The result is out; what takes longer to end, its guardian ends without us.
    let _ = timeout(SHUTDOWN, session.shutdown()).await;
    shown?;
    match outcome {
        Outcome::Success { .. } => Ok(()),
        failure => Err(Failure::Outcome(failure)),
    }
}
