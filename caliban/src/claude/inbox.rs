//! What comes in over standard input, read on a thread of its own: prompts wait for their turn,
//! everything else is dealt with at once.

use std::collections::VecDeque;
use std::io::Read;
use std::time::Duration;

use caliban_model::Message;
use caliban_protocol::claude::{Input, UserInput, Wording, decode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::requests::{Next, Reception};
use crate::exit::Failure;
use crate::stdin;

/// The longest line that is read, in MiB: images come in lines.
const LONGEST_LINE: u64 = 64;
/// Prompts that wait for their turn; then standard input waits.
const PROMPT_QUEUE: usize = 256;
/// How long a client that begins with a prompt may take to introduce itself.
const INTRODUCTION: Duration = Duration::from_millis(30);

type Line = Result<Input, Failure>;

/// What is still to be done, and where more may come from.
pub(crate) struct Inbox {
    waiting: VecDeque<UserInput>,
    more: Option<mpsc::Receiver<Line>>,
    replay: Echo,
    has_introduced_itself: bool,
    /// The client has introduced itself, and nobody was told yet.
    introduction_is_due: bool,
}

/// What there is to do next.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The client has said how it wants the session, and waits to hear what there is.
    Introduction,
    Prompt(UserInput),
    /// There will be nothing more.
    End,
}

/// Whether answers of the client are echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Echo {
    On,
    Off,
}

/// Why no prompt comes any more.
#[derive(Debug)]
pub(crate) enum Over {
    /// The client said so.
    Ended,
    /// It wrote something that makes no sense.
    Failed(Failure),
}

impl Inbox {
    /// One prompt and nothing else.
    pub(crate) fn one(message: Message) -> Self {
        Self {
            waiting: VecDeque::from([UserInput {
                message,
                uuid: None,
                // What it names was attached when it was read.
                wording: Wording::Composed,
            }]),
            more: None,
            replay: Echo::Off,
            has_introduced_itself: true,
            introduction_is_due: false,
        }
    }

    /// Begins to read.
    pub(crate) fn reading(input: impl Read + Send + 'static, replay: Echo) -> Self {
        Self {
            waiting: VecDeque::new(),
            more: Some(stdin::decoded(input, LONGEST_LINE, decode)),
            replay,
            has_introduced_itself: false,
            introduction_is_due: false,
        }
    }

    /// What comes next.
    pub(crate) async fn next(&mut self, reception: &Reception<'_>) -> Result<Arrival, Over> {
        loop {
            if std::mem::take(&mut self.introduction_is_due) {
                return Ok(Arrival::Introduction);
            }
            let is_heard = self.has_introduced_itself || self.more.is_none();
            match self.waiting.pop_front_if(|_| is_heard) {
                Some(prompt) => return Ok(Arrival::Prompt(prompt)),
                None if self.more.is_none() => return Ok(Arrival::End),
                None if self.waiting.is_empty() => self.take(reception).await?,
                // Who sends a prompt first and introduces itself right behind it is heard first.
                None => match timeout(INTRODUCTION, self.take(reception)).await {
                    Ok(taken) => taken?,
                    Err(_) => self.has_introduced_itself = true,
                },
            }
        }
    }

    /// Hears what comes while a prompt is worked on; returns only when nothing will come.
    pub(crate) async fn listen(&mut self, reception: &Reception<'_>) -> Over {
        loop {
            if self.more.is_none() || self.waiting.len() >= PROMPT_QUEUE {
                return std::future::pending().await;
            }
            if let Err(over) = self.take(reception).await {
                return over;
            }
        }
    }

    /// Takes one line in.
    async fn take(&mut self, reception: &Reception<'_>) -> Result<(), Over> {
        let Some(more) = &mut self.more else {
            return Ok(());
        };
        match more.recv().await {
            None => {
                self.more = None;
                reception.host.channel.close();
            }
            Some(Err(failure)) => return Err(Over::Failed(failure)),
            Some(Ok(Input::User(prompt))) => self.waiting.push_back(*prompt),
            Some(Ok(Input::Control { id, request })) => {
                self.has_introduced_itself = true;
                match reception.grant(&id, *request) {
                    Next::GoOn => {}
                    Next::Introduce => self.introduction_is_due = true,
                    Next::End => return Err(Over::Ended),
                }
            }
            Some(Ok(Input::Answer { id, result, frame })) => {
                if self.replay == Echo::On {
                    reception.host.wire.frame(frame);
                }
                reception.host.channel.answer(&id, result);
            }
            // Requests of the client are answered at once, so there is nothing to take back.
            Some(Ok(Input::Cancelled { .. })) => {}
        }
        Ok(())
    }
}
