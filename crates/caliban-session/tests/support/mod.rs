//! A session over an engine that does what its prompt says.

#![allow(dead_code, reason = "each test uses its part of it")]

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{
    Answer, Effect, Event, Inquiry, Listener, Mailbox, Operator, Opinion, Outcome, Question,
    Remember, RunTotals, ToolCall,
};
use caliban_model::{CancellationToken, Reasoning};
use caliban_session::{
    Bounds, Command, Controls, Engine, EventBatch, Events, ExchangeEnd, Facts, Fanout, ModelChange,
    Parts, Prompt, PromptId, Questions, Retention, Rewind, RuleChange, ServerCommand, SessionEvent,
    SessionHandle, Shutdown, What, begin,
};
use caliban_settings::PermissionMode;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the engine does on a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Say,
    SayMuch,
    Ask,
    AskNested,
    /// Something that outlives the work asks.
    AskAside,
    /// Waits until it is cancelled.
    Hang,
    /// Waits until the test lets it through.
    Gate,
    TakeMail,
    Overspend,
    Panic,
    Yield,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Script(Vec<Step>);

impl Script {
    pub(crate) fn of(steps: &[Step]) -> Self {
        Self(steps.to_vec())
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap()
    }
}

#[derive(Debug)]
struct Scripted {
    questions: Arc<Questions>,
    mailbox: Mailbox,
    gate: Arc<Semaphore>,
    answers: UnboundedSender<Answer>,
}

impl Scripted {
    async fn perform(&self, script: Script, told: &dyn Listener) -> Outcome {
        let mut text = String::new();
        for step in script.0 {
            match step {
                Step::Say => say(told).await,
                Step::SayMuch => {
                    for _ in 0..300 {
                        say(told).await;
                    }
                }
                Step::Ask => text = self.ask(told, |event| event).await,
                Step::AskNested => {
                    let nested = |event| Event::Nested {
                        parent: "parent".into(),
                        event: Box::new(event),
                    };
                    text = self.ask(told, nested).await;
                }
                Step::AskAside => {
                    let questions = Arc::clone(&self.questions);
                    let answers = self.answers.clone();
                    tokio::spawn(async move {
                        let answer = questions.decide_aside(&inquiry()).await;
                        // The test may have heard enough.
                        let _ = answers.send(answer);
                    });
                    // So that it is told before the work ends.
                    tokio::task::yield_now().await;
                }
                Step::Hang => std::future::pending().await,
                Step::Gate => self.gate.acquire().await.unwrap().forget(),
                Step::TakeMail => {
                    if let Some((prompt, message)) = self.mailbox.take() {
                        let message = Arc::new(message);
                        told.hear(Event::Steered { prompt, message }).await;
                    }
                }
                Step::Overspend => {
                    return Outcome::BudgetExceeded {
                        message: "spent".to_owned(),
                    };
                }
                Step::Panic => panic!("as scripted"),
                Step::Yield => tokio::task::yield_now().await,
            }
        }
        Outcome::Success { text }
    }

    async fn ask(&self, told: &dyn Listener, of: impl Fn(Event) -> Event) -> String {
        let inquiry = inquiry();
        let asked = Event::PermissionAsked {
            inquiry: Box::new(inquiry.clone()),
        };
        told.hear(of(asked)).await;
        let answer = self.questions.decide(&inquiry).await;
        let text = match answer {
            Answer::Allow { .. } => "allowed",
            Answer::Deny { .. } => "refused",
            Answer::Nobody => "nobody",
            Answer::TimedOut => "too late",
        };
        let answered = Event::PermissionAnswered {
            inquiry: Arc::clone(&inquiry.id),
            id: Arc::clone(&inquiry.call.id),
            answer,
        };
        told.hear(of(answered)).await;
        text.to_owned()
    }
}

async fn say(told: &dyn Listener) {
    let text = "word".to_owned();
    told.hear(Event::TextDelta { text }).await;
}

fn inquiry() -> Inquiry {
    let call = ToolCall {
        id: "call".into(),
        name: "Bash".into(),
        input: json!({}),
        effect: Effect::Executes,
        first_arg: None,
        agent: None,
        turn: 1,
        opinion: Opinion::None,
    };
    let question = Question {
        reason: "r".to_owned(),
        rule: None,
        remedy: String::new(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        place: None,
        target: None,
        input: None,
    };
    Inquiry::new(call, question)
}

pub(crate) fn allow() -> Answer {
    Answer::Allow {
        input: None,
        remember: Remember::Once,
    }
}

impl Engine for Scripted {
    fn facts(&self) -> Facts {
        Facts::default()
    }

    fn work<'a>(
        &'a mut self,
        prompt: Prompt,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            let script = serde_json::from_str(&prompt.message.text()).unwrap_or(Script(Vec::new()));
            let done = cancel.run_until_cancelled(self.perform(script, told)).await;
            ExchangeEnd {
                outcome: done.unwrap_or(Outcome::Cancelled),
                totals: RunTotals::default(),
            }
        }
        .boxed()
    }

    fn compact<'a>(
        &'a mut self,
        _: Option<String>,
        told: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            say(told).await;
            ExchangeEnd {
                outcome: Outcome::Success {
                    text: String::new(),
                },
                totals: RunTotals::default(),
            }
        }
        .boxed()
    }

    fn rewind<'a>(
        &'a mut self,
        _: Rewind,
        told: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            say(told).await;
            ExchangeEnd {
                outcome: Outcome::obeyed(String::new()),
                totals: RunTotals::default(),
            }
        }
        .boxed()
    }

    fn shell<'a>(
        &'a mut self,
        _: PromptId,
        _: String,
        told: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            say(told).await;
            ExchangeEnd {
                outcome: Outcome::obeyed(String::new()),
                totals: RunTotals::default(),
            }
        }
        .boxed()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

#[derive(Debug)]
struct Knobs;

impl Controls for Knobs {
    fn set_mode(&self, mode: PermissionMode) -> Result<(), String> {
        match mode {
            PermissionMode::BypassPermissions => Err("not launched so".to_owned()),
            _ => Ok(()),
        }
    }

    fn drop_latch(&self) -> PermissionMode {
        PermissionMode::Default
    }

    fn set_model(&self, model: &ModelChange) -> Result<Arc<str>, String> {
        Ok(match model {
            ModelChange::Default => "default".into(),
            ModelChange::Named(name) => Arc::clone(name),
        })
    }

    fn set_reasoning(&self, _: Reasoning) {}

    fn change_rule(&self, _: &RuleChange) -> Result<(), String> {
        Ok(())
    }

    fn command_server(&self, _: &ServerCommand) -> Result<(), String> {
        Err("there is no such server".to_owned())
    }

    fn send_to_background(&self) {}

    fn end_job(&self, _: &str) -> Result<(), String> {
        Err("there is no such job".to_owned())
    }
}

/// A session and its first hearer.
pub(crate) struct Studio {
    pub(crate) handle: SessionHandle,
    pub(crate) events: Events,
    pub(crate) gate: Arc<Semaphore>,
    /// What those were told that asked aside from the work.
    pub(crate) answers: UnboundedReceiver<Answer>,
    waiting: std::collections::VecDeque<Arc<SessionEvent>>,
}

impl Studio {
    pub(crate) fn open(bounds: Bounds) -> Self {
        Self::patient(bounds, None)
    }

    /// A session where an answer may take so long.
    pub(crate) fn patient(bounds: Bounds, patience: Option<Duration>) -> Self {
        let questions = Questions::new(patience);
        let (answers, given) = unbounded_channel();
        let fanout = Fanout::new(Retention::USUAL, &questions);
        let (mailbox, gate) = (Mailbox::default(), Arc::new(Semaphore::new(0)));
        let engine = Scripted {
            questions: Arc::clone(&questions),
            mailbox: mailbox.clone(),
            gate: Arc::clone(&gate),
            answers,
        };
        let (handle, events) = begin(Parts {
            engine: Box::new(engine),
            controls: Arc::new(Knobs),
            mailbox,
            fanout,
            questions,
            bounds,
        });
        Self {
            handle,
            events,
            gate,
            answers: given,
            waiting: std::collections::VecDeque::new(),
        }
    }

    pub(crate) async fn send(&self, command: Command) {
        self.handle.send(command).await.unwrap();
    }

    pub(crate) async fn shut_down(&self, when: Shutdown) {
        self.send(Command::Shutdown { when }).await;
    }

    pub(crate) async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            match self.events.next().await? {
                EventBatch::Events(events) => self.waiting.extend(events),
                EventBatch::Missed(count) => panic!("the first hearer missed {count}"),
            }
        }
    }

    pub(crate) async fn until(&mut self, wanted: impl Fn(&What) -> bool) -> Arc<SessionEvent> {
        loop {
            let event = self.next().await.expect("the session ended");
            if wanted(&event.what) {
                return event;
            }
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<Arc<SessionEvent>> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// Lets go of every handle and hears the rest.
    pub(crate) async fn abandon(self) -> Vec<Arc<SessionEvent>> {
        let Self {
            handle,
            mut events,
            waiting,
            ..
        } = self;
        drop(handle);
        let mut all: Vec<_> = waiting.into_iter().collect();
        while let Some(EventBatch::Events(more)) = events.next().await {
            all.extend(more);
        }
        all
    }
}

/// The events of one kind, by the name they have on the wire.
pub(crate) fn kinds(events: &[Arc<SessionEvent>], kind: &str) -> Vec<Arc<SessionEvent>> {
    let is_kind = |event: &&Arc<SessionEvent>| match serde_json::to_value(&event.what).unwrap() {
        serde_json::Value::Object(map) => map.contains_key(kind),
        value => value == kind,
    };
    events.iter().filter(is_kind).cloned().collect()
}
