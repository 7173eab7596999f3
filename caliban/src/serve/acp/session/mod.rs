//! One session of a connection: hears it, tells the client, and passes on what the client wants.

mod beginning;
mod ending;
mod turning;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use caliban_harness::{LiveMode, SessionDesk};
use caliban_protocol::acp::v1::{
    Error, PromptResponse, RequestId, SessionId, SessionInfoUpdate, SessionUpdate, StopReason,
};
use caliban_protocol::acp::{Content, Projection, answered, updated, withdrawn};
use caliban_session::{
    Asked, Attach, Command, Delivery, EventBatch, Events, Facts, Place, Prompt, PromptId, Refused,
    SessionEvent, SessionHandle, Shutdown, What,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::console::note;
use crate::face::warn;

use super::capabilities::Client;
use super::dials::{Dial, Dials};
use super::listing::title;
use super::outbox::Outbox;
use super::questions::{Put, Questions};
use super::requests::Requests;
use turning::{Turned, TurnedBy};

/// Between two tellings of what calls write: five in a second.
const PACE: Duration = Duration::from_millis(200);

/// Something that the client wants of a session.
#[derive(Debug)]
pub(super) enum Wish {
    Prompt {
        request: RequestId,
        content: Content,
    },
    /// Nothing that was asked for so far is wanted any more.
    Cancel,
    /// The prompt of this request is not wanted any more.
    CancelPrompt(RequestId),
    SetMode {
        request: RequestId,
        mode: String,
    },
    SetOption {
        request: RequestId,
        option: String,
        value: String,
    },
    /// The answer to the request of this number.
    Answer {
        number: i64,
        answer: Result<Value, Error>,
    },
    /// The session is not needed any more; told when it is over, where a request asks for it.
    Close {
        request: Option<RequestId>,
    },
}

/// What a session has of its connection.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) outbox: Outbox,
    pub(super) requests: Requests,
    pub(super) client: Client,
    /// Where answers to the session's own requests go.
    pub(super) inbox: mpsc::Sender<Wish>,
}

/// A session that is open.
pub(super) struct Live {
    id: SessionId,
    line: Line,
    handle: SessionHandle,
    /// Nothing once it is over.
    events: Option<Events>,
    projection: Projection,
    dials: Dials,
    mode: LiveMode,
    desk: SessionDesk,
    /// Prompts without an answer, in their order.
    prompts: Vec<Outstanding>,
    turned: VecDeque<Turned>,
    questions: Questions,
    /// A prompt that the model declined, while it is taken out of the conversation.
    declined: Option<(PromptId, RequestId)>,
    closing: Vec<RequestId>,
    /// What is said before the first answer.
    foreword: Option<String>,
    titled: Titled,
    /// When what calls write is told next.
    due: Option<Instant>,
    told_last: Option<Instant>,
}

#[derive(Debug)]
struct Outstanding {
    prompt: PromptId,
    request: RequestId,
    wanted: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Still,
    /// The client has cancelled it.
    NoMore,
}

/// Whether the client knows what the session is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Titled {
    Yes,
    NotYet,
}

impl Live {
    /// Serves the session until it is over.
    pub(super) async fn run(mut self, mut wishes: mpsc::Receiver<Wish>) {
        while self.events.is_some() {
            tokio::select! {
                wish = wishes.recv() => match wish {
                    Some(wish) => self.heed(wish).await,
                    None => self.send(Command::Shutdown { when: Shutdown::Now }).await,
                },
                heard = next(&mut self.events, &self.line.outbox) => self.hear(heard).await,
                () = reached(self.due) => self.tell_progress(),
            }
        }
        self.leave();
    }

    fn answer<T: Serialize>(&self, request: &RequestId, answer: Result<T, Error>) {
        self.line.outbox.send(answered(request, answer));
    }

    fn refuse(&self, request: &RequestId, error: Error) {
        self.answer::<Value>(request, Err(error));
    }

    fn tell(&self, update: SessionUpdate) {
        self.line.outbox.send(updated(&self.id, update));
    }

    fn tell_all(&self, updates: impl IntoIterator<Item = SessionUpdate>) {
        updates.into_iter().for_each(|update| self.tell(update));
    }

    async fn send(&self, command: Command) {
        // It may have ended by itself, which is told as an event.
        let _ = self.handle.send(command).await;
    }

    async fn heed(&mut self, wish: Wish) {
        match wish {
            Wish::Prompt { request, content } => self.prompt(request, content).await,
            Wish::Cancel => {
                for prompt in &mut self.prompts {
                    prompt.wanted = Wanted::NoMore;
                }
                let waiting: Vec<PromptId> = self
                    .prompts
                    .iter()
                    .skip(1)
                    .rev()
                    .map(|it| it.prompt.clone())
                    .collect();
                for prompt in waiting {
                    self.send(Command::TakeBack { prompt }).await;
                }
                self.send(Command::Interrupt).await;
            }
            Wish::CancelPrompt(request) => self.cancel_prompt(&request).await,
            Wish::SetMode { request, mode } => {
                let turn = self.dials.mode(&mode).map(|command| (Dial::Mode, command));
                self.turn(request, TurnedBy::Mode, turn).await;
            }
            Wish::SetOption {
                request,
                option,
                value,
            } => {
                let turn = self.dials.turn(&option, &value);
                self.turn(request, TurnedBy::Option, turn).await;
            }
            Wish::Answer { number, answer } => {
                if let Some(command) = self.questions.answer(number, answer) {
                    self.send(command).await;
                }
            }
            Wish::Close { request } => {
                self.closing.extend(request);
                for prompt in &mut self.prompts {
                    prompt.wanted = Wanted::NoMore;
                }
                let when = Shutdown::Now;
                self.send(Command::Shutdown { when }).await;
            }
        }
    }

    async fn prompt(&mut self, request: RequestId, content: Content) {
        let id: PromptId = Uuid::new_v4().to_string().into();
        if let (Titled::NotYet, Some(title)) = (self.titled, title(&content.typed)) {
            self.titled = Titled::Yes;
            let update = SessionInfoUpdate::new().title(title);
            self.tell(SessionUpdate::SessionInfoUpdate(update));
        }
        self.prompts.push(Outstanding {
            prompt: id.clone(),
            request,
            wanted: Wanted::Still,
        });
        let prompt = Prompt {
            id,
            message: content.message,
            attach: Attach::Named,
        };
        let delivery = Delivery::Queue;
        self.send(Command::Prompt { prompt, delivery }).await;
    }

    async fn cancel_prompt(&mut self, request: &RequestId) {
        let place = self.prompts.iter().position(|it| it.request == *request);
        let Some(place) = place else {
            return;
        };
        self.prompts[place].wanted = Wanted::NoMore;
        let prompt = self.prompts[place].prompt.clone();
        // What does not wait any more is interrupted when that is told.
        self.send(Command::TakeBack { prompt }).await;
    }

    async fn hear(&mut self, heard: Option<EventBatch>) {
        match heard {
            Some(EventBatch::Events(events)) => {
                for event in events {
                    self.hear_one(&event).await;
                }
                self.follow();
            }
            // The first hearer is waited for and misses nothing.
            Some(EventBatch::Missed(_)) => {}
            None => self.events = None,
        }
    }

    async fn hear_one(&mut self, event: &SessionEvent) {
        match &event.what {
            What::Began { prompt, facts } => self.began(prompt, facts).await,
            What::Run(event) => {
                warn(event);
                let updates = self.projection.heard(event);
                self.tell_all(updates);
                if self.projection.has_progress() && self.due.is_none() {
                    let now = Instant::now();
                    let next = self.told_last.map_or(now, |last| last + PACE);
                    self.due = Some(next.max(now));
                }
            }
            What::Asked(asked) => self.ask(asked).await,
            What::Answered(answered) => {
                let open = self.questions.close(&answered.question);
                self.withdraw(open);
            }
            What::Ended {
                prompt,
                outcome,
                totals,
            }
            | What::Repeated {
                prompt,
                outcome,
                totals,
            } => self.end(prompt, outcome, totals).await,
            What::TakenBack { prompt } => {
                if let Some(it) = self.taken(prompt) {
                    let stopped = PromptResponse::new(StopReason::Cancelled);
                    self.answer(&it.request, Ok(stopped));
                }
            }
            What::Refused(refused) => self.refused(refused).await,
            What::ModeChanged { .. } => self.has_turned(Dial::Mode),
            What::ModelChanged { model } => {
                self.dials.model = Arc::clone(model);
                self.has_turned(Dial::Model);
            }
            What::ReasoningChanged { reasoning } => {
                self.dials.reasoning = *reasoning;
                self.has_turned(Dial::Thought);
            }
            What::Closed { trouble, .. } => {
                if let Some(trouble) = trouble {
                    note(&format!("warning: the session was not saved: {trouble}"));
                }
                self.events = None;
            }
            What::Opened(_)
            | What::Queued { .. }
            | What::Interrupted { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => {}
        }
    }

    async fn began(&mut self, prompt: &PromptId, facts: &Facts) {
        self.projection.set_window(facts.context_window);
        if let Some(foreword) = self.foreword.take() {
            let said = self.projection.say(&foreword);
            self.tell(said);
        }
        let is_cancelled = |it: &Outstanding| it.prompt == *prompt && it.wanted == Wanted::NoMore;
        if self.prompts.iter().any(is_cancelled) {
            self.send(Command::Interrupt).await;
        }
        if *self.dials.model != *facts.model {
            self.dials.model = facts.model.as_str().into();
            self.tell_options();
        }
    }

    async fn ask(&mut self, asked: &Asked) {
        let number = self.line.requests.begin(self.line.inbox.clone());
        let forms = self.line.client.forms;
        let put = self
            .questions
            .put(number, &self.id, asked, forms, &self.projection);
        match put {
            Put::Ask(line) => self.line.outbox.send(line),
            Put::Decline(command) => {
                self.line.requests.forget(number);
                self.send(command).await;
            }
        }
    }

    fn withdraw(&self, numbers: impl IntoIterator<Item = i64>) {
        for number in numbers {
            self.line.requests.forget(number);
            self.line.outbox.send(withdrawn(number));
        }
    }

    async fn refused(&mut self, refused: &Refused) {
        let failed = |code: i32| Error::new(code, refused.reason.clone());
        match &refused.what {
            Place::Prompt(prompt) => {
                if let Some(it) = self.taken(prompt) {
                    self.refuse(&it.request, failed(-32603));
                }
            }
            Place::TakeBack(prompt) => {
                // It is being worked on, unless its end is on the way.
                let is_open = self.prompts.iter().any(|it| it.prompt == *prompt);
                if is_open {
                    self.send(Command::Interrupt).await;
                }
            }
            Place::Mode => self.has_not_turned(Dial::Mode, failed(-32602)),
            Place::Model => self.has_not_turned(Dial::Model, failed(-32602)),
            Place::Question(_) | Place::Rule | Place::Server(_) | Place::Job(_) => {}
        }
    }

    fn tell_progress(&mut self) {
        self.due = None;
        let updates = self.projection.progress();
        if !updates.is_empty() {
            self.told_last = Some(Instant::now());
        }
        self.tell_all(updates);
    }
}

/// What the session tells next, once there is room to pass it on.
async fn next(events: &mut Option<Events>, outbox: &Outbox) -> Option<EventBatch> {
    match events {
        Some(events) => {
            outbox.room().await;
            events.next().await
        }
        None => None,
    }
}

/// Waits for a moment, for ever where there is none.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
