//! A host whose sessions do what their prompts say, and which counts what was worked on.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use caliban_agent::{
    Answer, Effect, Event, Inquiry, Listener, Mailbox, Operator, Opinion, Outcome, Question,
    RunTotals, ToolCall,
};
use caliban_model::{CancellationToken, Message, Reasoning};
use caliban_serve::{HostedSession, News, Saved, SessionHost, SessionWanted, Unopened, Wanted};
use caliban_session::{
    Bounds, Closed, Command, Controls, Engine, EventBatch, Events, ExchangeEnd, Facts, Fanout,
    ModelChange, Parts, Prompt, PromptId, Questions, Retention, Rewind, RuleChange, ServerCommand,
    SessionHandle, Stage, Standing, begin,
};
use caliban_settings::PermissionMode;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::runtime::Runtime;
use uuid::Uuid;

/// How often each prompt was worked on.
type Times = Arc<Mutex<HashMap<String, usize>>>;

/// What outlives every server.
#[derive(Debug, Clone)]
pub(crate) struct World {
    times: Times,
    pub(crate) lives: Lives,
    living: Arc<Mutex<HashMap<String, Living>>>,
}

/// Where sessions live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lives {
    /// In the server.
    Here,
    /// Apart from it.
    Apart,
}

impl World {
    pub(crate) fn new(lives: Lives) -> Self {
        Self {
            times: Arc::default(),
            lives,
            living: Arc::default(),
        }
    }

    pub(crate) fn times(&self, prompt: &str) -> usize {
        self.times.lock().unwrap().get(prompt).copied().unwrap_or(0)
    }

    /// A session that lives apart, which begins where there is none.
    fn living(&self, session: &str, patience: Duration) -> Living {
        let mut living = self.living.lock().unwrap();
        let found = living
            .get(session)
            .filter(|it| it.handle.state().stage != Stage::Closed);
        if let Some(found) = found {
            return found.clone();
        }
        let _apart = APART.enter();
        // So little is kept that servers fall behind.
        let retention = Retention(16);
        let (facts, handle, mut events) = begun(session, patience, retention, &self.times);
        events.attend();
        APART.spawn(async move { while events.next().await.is_some() {} });
        let begun = Living {
            facts,
            handle,
            life: Uuid::new_v4().to_string().into(),
        };
        living.insert(session.to_owned(), begun.clone());
        begun
    }
}

/// What sessions run on that no server takes along.
static APART: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(1).enable_all().build().unwrap()
});

/// A session that lives apart.
#[derive(Debug, Clone)]
struct Living {
    facts: Facts,
    handle: SessionHandle,
    life: Arc<str>,
}

fn begun(
    session: &str,
    patience: Duration,
    retention: Retention,
    times: &Times,
) -> (Facts, SessionHandle, Events) {
    let facts = Facts {
        session_id: session.to_owned(),
        ..Facts::default()
    };
    let questions = Questions::new(Some(patience));
    let fanout = Fanout::new(retention, &questions);
    let engine = Scripted {
        questions: Arc::clone(&questions),
        facts: facts.clone(),
        times: Arc::clone(times),
    };
    let (handle, events) = begin(Parts {
        engine: Box::new(engine),
        controls: Arc::new(Knobs),
        mailbox: Mailbox::default(),
        fanout,
        questions,
        bounds: Bounds::APPLICATION,
    });
    (facts, handle, events)
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
            if world.lives == Lives::Apart {
                let living = world.living(&session_id, wanted.patience);
                return Ok(Box::new(Joined::new(living)) as Box<dyn HostedSession>);
            }
            let (facts, handle, mut events) =
                begun(&session_id, wanted.patience, Retention::NONE, &world.times);
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

/// A session that lives apart, in the hands of a server.
#[derive(Debug)]
struct Joined {
    living: Living,
    events: Events,
    next: u64,
    first: Option<Standing>,
}

impl Joined {
    fn new(living: Living) -> Self {
        let mut standing = living.handle.standing();
        // It may not have opened yet.
        standing.facts = Arc::new(living.facts.clone());
        Self {
            events: living.handle.subscribe(standing.seq + 1),
            next: standing.seq + 1,
            first: Some(standing),
            living,
        }
    }
}

impl HostedSession for Joined {
    fn facts(&self) -> &Facts {
        &self.living.facts
    }

    fn life(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.living.life))
    }

    fn send(&self, command: Command) -> BoxFuture<'_, Result<(), Closed>> {
        self.living.handle.send(command).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<News>> {
        async move {
            loop {
                if let Some(standing) = self.first.take() {
                    return Some(News::Standing(Box::new(standing)));
                }
                match self.events.next().await? {
                    EventBatch::Events(events) => {
                        self.next += events.len() as u64;
                        return Some(News::Events(events));
                    }
                    EventBatch::Missed(count) => {
                        let standing = self.living.handle.standing();
                        if standing.seq < self.next {
                            self.next += count;
                        } else {
                            self.next = standing.seq + 1;
                            self.events = self.living.handle.subscribe(self.next);
                            self.first = Some(standing);
                        }
                    }
                }
            }
        }
        .boxed()
    }
}

#[derive(Debug)]
struct Scripted {
    questions: Arc<Questions>,
    facts: Facts,
    times: Times,
}

impl Scripted {
    async fn perform(&self, script: &str, told: &dyn Listener) -> Outcome {
        *self
            .times
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
            place: None,
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
