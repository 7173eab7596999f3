//! What comes in over standard input, read on a thread of its own: prompts wait for their turn,
//! everything else is dealt with at once.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use caliban_model::Message;
use caliban_protocol::claude::{Input, UserInput, decode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::requests::{Next, Reception};
use crate::exit::Failure;

/// The longest line that is read.
const MAX_LINE: u64 = 64 * 1024 * 1024;
/// Lines that wait; a client that is further ahead waits itself.
const QUEUE: usize = 64;
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
            }]),
            more: None,
            replay: Echo::Off,
            has_introduced_itself: true,
        }
    }

    /// Begins to read.
    pub(crate) fn reading(input: impl Read + Send + 'static, replay: Echo) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        std::thread::spawn(move || {
            let mut lines = BufReader::new(input);
            let mut number = 0;
            loop {
                number += 1;
                let next = match line(&mut lines) {
                    Ok(None) => return,
                    Ok(Some(line)) => match decode(&line, number) {
                        Ok(None) => continue,
                        Ok(Some(input)) => Ok(input),
                        Err(error) => Err(Failure::Usage(error.to_string())),
                    },
                    Err(failure) => Err(failure),
                };
                let is_last = next.is_err();
                // Nobody listens any more once the session is over.
                if sender.blocking_send(next).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            waiting: VecDeque::new(),
            more: Some(receiver),
            replay,
            has_introduced_itself: false,
        }
    }

    /// The next prompt; nothing when there will be no more.
    pub(crate) async fn next(
        &mut self,
        reception: &Reception<'_>,
    ) -> Result<Option<UserInput>, Over> {
        while self.waiting.is_empty() && self.more.is_some() {
            self.take(reception).await?;
        }
        // Who sends a prompt first and introduces itself right behind it is heard first.
        while !self.has_introduced_itself && self.more.is_some() {
            match timeout(INTRODUCTION, self.take(reception)).await {
                Ok(taken) => taken?,
                Err(_) => break,
            }
        }
        self.has_introduced_itself = true;
        Ok(self.waiting.pop_front())
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
                if reception.grant(&id, *request) == Next::End {
                    return Err(Over::Ended);
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

fn line(input: &mut impl BufRead) -> Result<Option<String>, Failure> {
    let mut bytes = Vec::new();
    input
        .take(MAX_LINE + 1)
        .read_until(b'\n', &mut bytes)
        .map_err(|error| {
            Failure::Usage(format!("Error: standard input cannot be read: {error}"))
        })?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() as u64 > MAX_LINE {
        return Err(Failure::Usage(
            "Error: an input line is longer than 64 MiB".to_owned(),
        ));
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| Failure::Usage("Error: an input line is not valid UTF-8".to_owned()))
}
