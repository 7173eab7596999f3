//! A world for sessions, and the smallest face that drives one.

#![allow(dead_code, reason = "each test uses its part of it")]

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use caliban_agent::{Answer, Interrupt, Outcome, Remember};
use caliban_harness::options::RunOptions;
use caliban_harness::{Diagnostics, Hearers, LaunchError, Launched, Process, Surroundings, launch};
use caliban_process::Guard;
use caliban_session::{
    Command, Delivery, EventBatch, Events, Prompt, Retention, SessionEvent, SessionHandle,
    Shutdown, What,
};
use caliban_settings::variables::Environment;
use caliban_testkit::{ModelServer, Reply, Script};
use serde_json::{Value, json};

/// Keeps what is said outside the events of a session.
#[derive(Debug, Default)]
pub(crate) struct Said(Mutex<Vec<String>>);

impl Said {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().join("\n")
    }
}

impl Diagnostics for Said {
    fn warning(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn debug(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

/// An empty home, an empty workspace, and a scripted model.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) server: ModelServer,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) said: Arc<Said>,
}

impl World {
    pub(crate) async fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let server = ModelServer::start(Script::new(replies)).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["home/.config/caliban", "workspace/.caliban"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let variables = [
            ("ANTHROPIC_BASE_URL", server.url()),
            ("ANTHROPIC_API_KEY", "k".to_owned()),
            ("OPENAI_BASE_URL", format!("{}/v1", server.url())),
            ("OPENAI_API_KEY", "k".to_owned()),
            ("GEMINI_BASE_URL", server.url()),
            ("GEMINI_API_KEY", "k".to_owned()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
        ];
        Self {
            folder,
            server,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            said: Arc::default(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    pub(crate) fn user_settings(&self, text: &str) {
        self.write("home/.config/caliban/settings.toml", text);
    }

    pub(crate) async fn launch(&self, options: RunOptions) -> Result<Launched, LaunchError> {
        let variables = self.variables.clone();
        let home = self.folder.path().join("home");
        let all = self.variables.iter();
        let process = Process {
            environment: Environment::new(move |name| variables.get(name).cloned()),
            variables: all
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            home,
            current_directory: self.workspace(),
            guard: Guard::None,
            diagnostics: Arc::clone(&self.said) as _,
            hearers: Hearers::default(),
        };
        let mut surroundings = Surroundings::new(process);
        surroundings.dialect.retention = Retention::USUAL;
        launch(options, surroundings).await
    }

    /// Launches a session and hears it.
    pub(crate) async fn face(&self, options: RunOptions) -> Face {
        Face::of(self.launch(options).await.unwrap())
    }

    /// The last request that the model had.
    pub(crate) fn last_request(&self) -> Value {
        self.server.model_requests().pop().unwrap().json()
    }
}

/// A session and its first hearer, which remembers everything it heard.
pub(crate) struct Face {
    pub(crate) handle: SessionHandle,
    pub(crate) events: Events,
    pub(crate) heard: Vec<Arc<SessionEvent>>,
    waiting: VecDeque<Arc<SessionEvent>>,
    prompts: usize,
}

impl Face {
    pub(crate) fn of(launched: Launched) -> Self {
        let (handle, events) = launched.begin();
        Self {
            handle,
            events,
            heard: Vec::new(),
            waiting: VecDeque::new(),
            prompts: 0,
        }
    }

    pub(crate) async fn send(&self, command: Command) {
        self.handle.send(command).await.unwrap();
    }

    /// Sends a prompt under the next number, which is its id.
    pub(crate) async fn prompt(&mut self, text: &str, delivery: Delivery) {
        self.prompts += 1;
        let prompt = Prompt::typed(self.prompts.to_string(), text);
        self.send(Command::Prompt { prompt, delivery }).await;
    }

    async fn next(&mut self) -> Option<Arc<SessionEvent>> {
        while self.waiting.is_empty() {
            match self.events.next().await? {
                EventBatch::Events(events) => self.waiting.extend(events),
                EventBatch::Missed(count) => panic!("the first hearer missed {count}"),
            }
        }
        let event = self.waiting.pop_front()?;
        self.heard.push(Arc::clone(&event));
        Some(event)
    }

    /// Hears until something is found in an event.
    pub(crate) async fn until<T>(&mut self, found: impl Fn(&What) -> Option<T>) -> T {
        loop {
            let event = self.next().await.expect("the session ended");
            if let Some(found) = found(&event.what) {
                return found;
            }
        }
    }

    /// Hears until the next end of a prompt.
    pub(crate) async fn ended(&mut self) -> Outcome {
        self.until(|what| match what {
            What::Ended { outcome, .. } => Some(outcome.clone()),
            _ => None,
        })
        .await
    }

    /// Hears until the next question.
    pub(crate) async fn question(&mut self) -> Arc<str> {
        self.until(|what| match what {
            What::Asked(asked) => Some(Arc::clone(&asked.question)),
            _ => None,
        })
        .await
    }

    /// Has a prompt worked on to its end.
    pub(crate) async fn ask(&mut self, text: &str) -> Outcome {
        self.prompt(text, Delivery::Queue).await;
        self.ended().await
    }

    /// Ends the session when it is idle; everything that was heard of it.
    pub(crate) async fn close(mut self) -> Vec<Arc<SessionEvent>> {
        let when = Shutdown::WhenIdle;
        self.send(Command::Shutdown { when }).await;
        while self.next().await.is_some() {}
        let last = self.heard.last().map(|event| &event.what);
        assert!(matches!(last, Some(What::Closed { .. })), "{last:?}");
        self.heard
    }
}

/// The configuration of a server `sums` whose tool adds.
pub(crate) fn summing_server() -> String {
    let server = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../caliban/tests/mcp/server.py"
    );
    json!({"mcpServers": {"sums": {"command": "python3", "args": [server]}}}).to_string()
}

pub(crate) fn allow() -> Answer {
    Answer::Allow {
        input: None,
        remember: Remember::Once,
    }
}

pub(crate) fn deny() -> Answer {
    Answer::Deny {
        reason: None,
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}
