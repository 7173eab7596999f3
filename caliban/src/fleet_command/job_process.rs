//! The process of one job: a session made of what the worker says, which hears every frame and
//! answers questions. It ends with its worker.

use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;

use caliban_agent::Outcome;
use caliban_fleet::worker::lines;
use caliban_harness::{RunOptions, Surroundings, launch};
use caliban_session::{
    Bounds, Command, Delivery, EventBatch, Prompt, SessionHandle, Shutdown, What,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::print::commands;
use crate::signals::Interrupts;
use crate::stdin;
use crate::{process, runtime};

/// The first argument that makes the program the process of a job.
pub(crate) const JOB_ARGUMENT: &str = "__job";
/// The longest line of orders.
const LONGEST_ORDERS: u64 = 16 << 20;

/// What the worker wants done: the first line on standard input. Further lines are the frames that
/// a program which drives a run may write.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) options: Box<RunOptions>,
    pub(super) prompt: String,
    pub(super) questions: Questions,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Questions {
    Worker,
    Nobody,
}

/// Runs one job to its end; its exit code is that of the run.
pub(crate) fn job_main() -> ExitCode {
    runtime::exit_code(job())
}

async fn job() -> ExitCode {
    let interrupts = Interrupts::listen();
    let mut console = Console::new();
    let id = Uuid::new_v4();
    match Box::pin(live(id, &interrupts, &mut console)).await {
        Ok(outcome) => ExitCode::from(outcome.map_or(1, |outcome| outcome.exit_code())),
        Err(failure) => {
            note(&format!("caliban: {failure}"));
            let frame = caliban_protocol::failure(&failure.to_string(), &id.to_string());
            // Nobody may be there to read it.
            let _ = console.write(&caliban_protocol::line(&frame));
            failure.code()
        }
    }
}

fn orders() -> Result<Orders, Failure> {
    let mut line = String::new();
    let mut input = std::io::stdin().lock().take(LONGEST_ORDERS);
    let read = input.read_line(&mut line);
    read.map_err(|error| Failure::NoInput(format!("the orders of the worker: {error}")))?;
    let orders = serde_json::from_str(&line);
    orders.map_err(|error| Failure::Usage(format!("the orders of the worker: {error}")))
}

async fn live(
    id: Uuid,
    interrupts: &Interrupts,
    console: &mut Console,
) -> Result<Option<Outcome>, Failure> {
    let orders = orders()?;
    let mut options = *orders.options;
    options.session.id = Some(id);
    let mut surroundings = Surroundings::new(process::current(process::environment()));
    surroundings.dialect.bounds = Bounds::PIPE;
    let launched = launch(options, surroundings).await?;
    let session_id = launched.facts.session_id.clone();
    let (handle, mut events) = launched.begin();
    let attendance = match orders.questions {
        Questions::Worker => Some(handle.attend()),
        Questions::Nobody => None,
    };
    let prompt = Prompt::typed(Uuid::new_v4().to_string(), orders.prompt);
    let delivery = Delivery::Queue;
    // A session that is over already says so itself.
    let _ = handle.send(Command::Prompt { prompt, delivery }).await;
    let mut said = stdin::commands(std::io::stdin());
    let mut is_heard = true;
    let mut is_leaving = false;
    let mut asked = Vec::new();
    let mut last = None;
    loop {
        tokio::select! {
            biased;
            () = interrupts.cancel.cancelled(), if !is_leaving => {
                is_leaving = true;
                shut(&handle, Shutdown::Now).await;
            }
            heard = events.next() => match heard {
                None => break,
                Some(EventBatch::Missed(_)) => {}
                Some(EventBatch::Events(batch)) => for event in batch {
                    let (_, told) = lines(&event.what, &session_id);
                    for line in told {
                        console.put(&line)?;
                    }
                    match &event.what {
                        What::Asked(_) => asked.insert(0, event.clone()),
                        What::Ended { outcome, .. } => {
                            last = Some(outcome.clone());
                            shut(&handle, Shutdown::WhenIdle).await;
                        }
                        _ => {}
                    }
                }
            },
            line = said.recv(), if is_heard => match line {
                Some(Ok(line)) => for command in commands(line, &asked) {
                    let _ = handle.send(command).await;
                },
                Some(Err(failure)) => note(&format!("caliban: {failure}")),
                // The worker is gone, or wants no more.
                None => {
                    is_heard = false;
                    is_leaving = true;
                    shut(&handle, Shutdown::Now).await;
                }
            },
        }
        console.flush()?;
    }
    drop(attendance);
    Ok(last)
}

async fn shut(handle: &SessionHandle, when: Shutdown) {
    // It may have ended by itself.
    let _ = handle.send(Command::Shutdown { when }).await;
}
