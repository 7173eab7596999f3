//! A host whose sessions do what their prompts say, and which counts what was worked on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use caliban_agent::{
    Answer, Effect, Event, Inquiry, Listener, Mailbox, Operator, Opinion, Outcome, Question,
    RunTotals, ToolCall,
};
use caliban_model::{CancellationToken, Message, Reasoning};
use caliban_serve::{HostedSession, News, Saved, SessionHost, SessionWanted, Unopened, Wanted};
use caliban_session::{
    Bounds, Closed, Command, Controls, Engine, EventBatch, Events, ExchangeEnd, Facts, Fanout,
    ModelChange, Parts, Prompt, PromptId, Questions, Retention, Rewind, RuleChange, ServerCommand,
    SessionHandle, begin,
};
use caliban_settings::PermissionMode;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

/// What outlives every server: how often each prompt was worked on.
#[derive(Debug, Clone, Default)]
pub(crate) struct World(Arc<Mutex<HashMap<String, usize>>>);

impl World {
    pub(crate) fn times(&self, prompt: &str) -> usize {
        self.0.lock().unwrap().get(prompt).copied().unwrap_or(0)
    }
}

/// A directory in memory, where there is such a place: a disk that others use takes its time for
/// every sync.
pub(crate) fn place() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let place = tempfile::tempdir_in(memory);
    place.or_else(|_| tempfile::tempdir()).unwrap()
}

#[derive(Debug)]
pub(crate) struct Host(pub(crate) World);

impl SessionHost for Host {
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>> {
        let world = self.0.clone();
        async move {
            let session_id = match wanted.session {
                SessionWanted::New(id) => id.to_string(),
                SessionWanted::Earlier { session, .. } => session,
            };
            let facts = Facts {
                session_id,
                ..Facts::default()
            };
            let questions = Questions::new(Some(wanted.patience));
            let fanout = Fanout::new(Retention::NONE, &questions);
            let engine = Scripted {
                questions: Arc::clone(&questions),
                facts: facts.clone(),
                world,
            };
            let (handle, mut events) = begin(Parts {
                engine: Box::new(engine),
                controls: Arc::new(Knobs),
                mailbox: Mailbox::default(),
                fanout,
                questions,
                bounds: Bounds::APPLICATION,
            });
            events.attend();
            Ok(Box::new(Hosted {
                facts,
                handle,
                events,
            }) as Box<dyn HostedSession>)
        }
        .boxed()
    }

    fn history(&self, _: &str) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, _: &str) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

#[derive(Debug)]
struct Hosted {
    facts: Facts,
    handle: SessionHandle,
    events: Events,
}

impl HostedSession for Hosted {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn send(&self, command: Command) -> BoxFuture<'_, Result<(), Closed>> {
        self.handle.send(command).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<News>> {
        async move {
            match self.events.next().await? {
                EventBatch::Events(events) => Some(News::Events(events)),
                EventBatch::Missed(count) => panic!("the first hearer missed {count}"),
            }
        }
        .boxed()
    }
}

#[derive(Debug)]
struct Scripted {
    questions: Arc<Questions>,
    facts: Facts,
    world: World,
}

impl Scripted {
    async fn perform(&self, script: &str, told: &dyn Listener) -> Outcome {
        *self
            .world
            .0
            .lock()
            .unwrap()
            .entry(script.to_owned())
            .or_default() += 1;
        for word in script.split(' ') {
            match word {
                "say" => say(told).await,
                "much" => {
                    for _ in 0..40 {
                        say(told).await;
                    }
                }
                "ask" => self.ask(told).await,
                "hang" => std::future::pending().await,
                _ => tokio::task::yield_now().await,
            }
        }
        Outcome::Success {
            text: script.to_owned(),
        }
    }

    async fn ask(&self, told: &dyn Listener) {
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
            target: None,
            input: None,
        };
        let inquiry = Inquiry::new(call, question);
        let asked = Event::PermissionAsked {
            inquiry: Box::new(inquiry.clone()),
        };
        told.hear(asked).await;
        let answer: Answer = self.questions.decide(&inquiry).await;
        told.hear(Event::PermissionAnswered {
            inquiry: Arc::clone(&inquiry.id),
            id: Arc::clone(&inquiry.call.id),
            answer,
        })
        .await;
    }
}

async fn say(told: &dyn Listener) {
    let text = "word ".to_owned();
    told.hear(Event::TextDelta { text }).await;
}

fn nothing<'a>() -> BoxFuture<'a, ExchangeEnd> {
    async {
        ExchangeEnd {
            outcome: Outcome::obeyed(String::new()),
            totals: RunTotals::default(),
        }
    }
    .boxed()
}

impl Engine for Scripted {
    fn facts(&self) -> Facts {
        self.facts.clone()
    }

    fn work<'a>(
        &'a mut self,
        prompt: Prompt,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            let script = prompt.message.text();
            let done = cancel
                .run_until_cancelled(self.perform(&script, told))
                .await;
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
        _: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        nothing()
    }

    fn rewind<'a>(
        &'a mut self,
        _: Rewind,
        _: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        nothing()
    }

    fn shell<'a>(
        &'a mut self,
        _: PromptId,
        _: String,
        _: &'a dyn Listener,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        nothing()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

#[derive(Debug)]
struct Knobs;

impl Controls for Knobs {
    fn set_mode(&self, _: PermissionMode) -> Result<(), String> {
        Ok(())
    }

    fn drop_latch(&self) -> PermissionMode {
        PermissionMode::Default
    }

    fn set_model(&self, _: &ModelChange) -> Result<Arc<str>, String> {
        Ok("model".into())
    }

    fn set_reasoning(&self, _: Reasoning) {}

    fn change_rule(&self, _: &RuleChange) -> Result<(), String> {
        Ok(())
    }

    fn command_server(&self, _: &ServerCommand) -> Result<(), String> {
        Ok(())
    }

    fn send_to_background(&self) {}

    fn end_job(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}
