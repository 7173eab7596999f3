//! What comes in over standard input, read on a thread of its own.

use std::collections::VecDeque;
use std::io::Read;
use std::time::Duration;

use caliban_model::Message;
use caliban_protocol::claude::{Input, Request, UserInput, Wording, decode};
use caliban_session::PromptId;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::requests::{Next, RequestHandler, TakenBack, cancelled, still_queued};
use crate::console::note;
use crate::exit::Failure;
use crate::stdin;

/// The longest line that is read, in MiB: images come in lines.
const LONGEST_LINE: u64 = 64;
/// How long a client that begins with a prompt may take to introduce itself.
const INTRODUCTION: Duration = Duration::from_millis(30);
/// Prompts that wait for the session to begin; then standard input waits.
const EARLY_PROMPTS: usize = 256;

pub(crate) type Line = Result<Input, Failure>;

/// What is still to be done before the session begins, and where more comes from.
pub(crate) struct Inbox {
    early: VecDeque<UserInput>,
    more: Option<mpsc::Receiver<Line>>,
    echo: Echo,
    has_introduced_itself: bool,
}

/// What the session begins for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// There is a prompt, or the client waits to hear what there is.
    Begin,
    /// There will be nothing.
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
            early: VecDeque::from([UserInput {
                message,
                uuid: None,
                // What it names was attached when it was read.
                wording: Wording::Composed,
                unfit: None,
            }]),
            more: None,
            echo: Echo::Off,
            has_introduced_itself: true,
        }
    }

    /// Begins to read.
    pub(crate) fn reading(input: impl Read + Send + 'static, echo: Echo) -> Self {
        Self {
            early: VecDeque::new(),
            more: Some(stdin::decoded(input, LONGEST_LINE, decode)),
            echo,
            has_introduced_itself: false,
        }
    }

    /// Waits until there is a reason for the session to begin.
    pub(crate) async fn first(&mut self, requests: &RequestHandler) -> Result<Arrival, Over> {
        loop {
            let is_heard = self.has_introduced_itself || self.more.is_none();
            if is_heard && !self.early.is_empty() {
                return Ok(Arrival::Begin);
            }
            if self.more.is_none() {
                return Ok(Arrival::End);
            }
            let next = if self.early.is_empty() {
                self.take(requests).await?
            } else {
                // Who sends a prompt first and introduces itself right behind it is heard first.
                let taken = timeout(INTRODUCTION, self.take(requests)).await;
                self.has_introduced_itself |= taken.is_err();
                taken.unwrap_or(Ok(Next::GoOn))?
            };
            if next == Next::Introduce {
                return Ok(Arrival::Begin);
            }
        }
    }

    /// Hears what comes while the session is made; returns only when nothing will come.
    pub(crate) async fn listen(&mut self, requests: &RequestHandler) -> Over {
        loop {
            if self.more.is_none() || self.early.len() >= EARLY_PROMPTS {
                return std::future::pending().await;
            }
            if let Err(over) = self.take(requests).await {
                return over;
            }
        }
    }

    /// Takes in one line of before the session.
    async fn take(&mut self, requests: &RequestHandler) -> Result<Next, Over> {
        match self.line().await {
            None => {
                self.more = None;
                requests.host.channel.close();
            }
            Some(Err(failure)) => return Err(Over::Failed(failure)),
            Some(Ok(Input::User(prompt))) => self.early.push_back(*prompt),
            Some(Ok(Input::Control { id, request })) => {
                self.has_introduced_itself = true;
                if let Some(answer) = self.about_waiting(&request) {
                    requests.answer(&id, &answer);
                    return Ok(Next::GoOn);
                }
                return match requests.grant(&id, *request, &[]).await {
                    Next::End => Err(Over::Ended),
                    next => Ok(next),
                };
            }
            Some(Ok(Input::Answer { id, result, frame })) => {
                self.echo(frame, requests);
                requests.host.channel.answer(&id, result);
            }
            Some(Ok(Input::Choice { question, .. })) => tell_unasked(&question),
            Some(Ok(Input::Odd { reason })) => note(&format!("warning: {reason}")),
            // Requests of the client are answered at once, so there is nothing to take back.
            Some(Ok(Input::Cancelled { .. })) => {}
        }
        Ok(Next::GoOn)
    }

    /// Answers what is about prompts that wait, which before the session are here.
    fn about_waiting(&mut self, request: &Request) -> Option<Value> {
        if let Request::Interrupt { cancel_queued } = request {
            if *cancel_queued {
                self.early.clear();
            }
            let ids = self.early.iter().filter_map(|prompt| prompt.uuid.clone());
            let ids: Vec<PromptId> = ids.map(PromptId::from).collect();
            Some(still_queued(&ids))
        } else if let Request::CancelAsyncMessage { uuid } = request {
            let before = self.early.len();
            self.early.retain(|it| it.uuid.as_ref() != Some(uuid));
            Some(cancelled(if self.early.len() < before {
                TakenBack::Yes
            } else {
                TakenBack::No
            }))
        } else {
            None
        }
    }

    /// Shows an answer of the client's where that is wanted.
    pub(crate) fn echo(&self, frame: Value, requests: &RequestHandler) {
        if self.echo == Echo::On {
            requests.host.wire.frame(frame);
        }
    }

    /// The prompts that came before the session.
    pub(crate) fn early(&mut self) -> VecDeque<UserInput> {
        std::mem::take(&mut self.early)
    }

    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// The next line; nothing where the input has ended.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        self.more.as_mut()?.recv().await
    }
}

/// An answer to a question that is not open changes nothing, and whoever sent it may wait for ever.
pub(crate) fn tell_unasked(question: &str) {
    note(&format!(
        "warning: no question `{question}` is open; the answer to it has no effect"
    ));
}
