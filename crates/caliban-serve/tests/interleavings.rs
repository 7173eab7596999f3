//! Whatever an application does, in whatever order, and however often the server dies: what was
//! acknowledged is worked on once at most and ends once, and numbers have no holes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caliban_serve::{Client, Frames, Limits, MayEnd, Output, Registry};
use proptest::prelude::*;
use serde_json::{Value, json};

use support::{Host, Lives, World};

const SESSIONS: [&str; 3] = ["a", "b", "c"];
const SCRIPTS: [&str; 5] = ["say", "much say", "ask say", "hang", "say yield yield say"];
/// How long everything may take to come to its end.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
enum Step {
    Send {
        tab: usize,
        request: u8,
        script: usize,
    },
    Cancel {
        tab: usize,
    },
    CancelOne {
        tab: usize,
        request: u8,
    },
    ClearQueue {
        tab: usize,
    },
    AnswerAll,
    Reconnect,
    Kill,
    /// Lets the server work for so many turns.
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let tab = 0..SESSIONS.len();
    prop_oneof![
        6 => (tab.clone(), 0_u8..8, 0..SCRIPTS.len())
            .prop_map(|(tab, request, script)| Step::Send { tab, request, script }),
        2 => tab.clone().prop_map(|tab| Step::Cancel { tab }),
        1 => (tab.clone(), 0_u8..8).prop_map(|(tab, request)| Step::CancelOne { tab, request }),
        1 => tab.prop_map(|tab| Step::ClearQueue { tab }),
        2 => Just(Step::AnswerAll),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Kill),
        4 => (0_u8..60).prop_map(Step::Wait),
    ]
}

/// What an application knows, over all lives of the server.
#[derive(Debug, Default)]
struct Knowledge {
    /// What was acknowledged, by tab and request, with its content.
    acknowledged: HashMap<(String, String), String>,
    /// What was told to have ended.
    results: HashMap<(String, String), usize>,
    ids: u64,
}

/// One life of a server, and one application of it.
struct Life {
    registry: Registry,
    client: Client,
    /// The next number of each tab.
    next: HashMap<String, u64>,
    questions: HashSet<(String, String)>,
    /// Sends whose answer has not come.
    sent: HashMap<String, (String, String, String)>,
    answers: HashMap<String, Value>,
    lives: Lives,
}

impl Life {
    async fn begin(world: &World, place: &Path, knowledge: &mut Knowledge) -> Self {
        let limits = Limits {
            running: 2,
            queue: 4,
            stream: 4_000,
            ..Limits::default()
        };
        let host = Arc::new(Host(world.clone()));
        let registry = Registry::new(host, Frames::Caliban, limits, place.to_owned());
        let mut life = Self {
            client: Client::new(registry.clone(), MayEnd::Yes),
            registry,
            next: HashMap::new(),
            questions: HashSet::new(),
            sent: HashMap::new(),
            answers: HashMap::new(),
            lives: world.lives,
        };
        for tab in SESSIONS {
            let session = format!("00000000-0000-4000-8000-00000000000{tab}");
            life.ask(
                knowledge,
                json!({"op": "open", "tab": tab, "resume": session}),
            )
            .await;
        }
        life
    }

    /// A new connection that goes on where the old one was.
    async fn reconnect(&mut self, knowledge: &mut Knowledge) {
        self.client = Client::new(self.registry.clone(), MayEnd::Yes);
        self.sent.clear();
        for tab in SESSIONS {
            let since = self.next.get(tab).map_or(0, |next| next - 1);
            self.ask(
                knowledge,
                json!({"op": "events", "tab": tab, "since": since}),
            )
            .await;
        }
    }

    async fn submit(&mut self, knowledge: &mut Knowledge, mut request: Value) -> String {
        knowledge.ids += 1;
        let id = knowledge.ids.to_string();
        request["id"] = id.clone().into();
        self.client.submit(&request.to_string()).await;
        id
    }

    async fn ask(&mut self, knowledge: &mut Knowledge, request: Value) -> Value {
        let id = self.submit(knowledge, request).await;
        while !self.answers.contains_key(&id) {
            let output = self.client.next().await;
            self.take(knowledge, output);
        }
        self.answers.remove(&id).unwrap()
    }

    async fn send(&mut self, knowledge: &mut Knowledge, tab: &str, request: &str, script: &str) {
        let content = format!("{script} {tab} {request}");
        let line = json!({"op": "send", "tab": tab, "request": request, "content": content});
        let id = self.submit(knowledge, line).await;
        self.sent
            .insert(id, (tab.to_owned(), request.to_owned(), content));
    }

    /// Takes what comes within so many turns of the runtime.
    async fn wait(&mut self, knowledge: &mut Knowledge, turns: u8) {
        for _ in 0..=turns {
            tokio::task::yield_now().await;
            while let Some(output) = futures::FutureExt::now_or_never(self.client.next()) {
                self.take(knowledge, output);
            }
        }
    }

    fn take(&mut self, knowledge: &mut Knowledge, output: Output) {
        match output {
            Output::Reply(reply) | Output::Goodbye(reply) => {
                let reply = serde_json::to_value(&reply).unwrap();
                let id = reply["re"].as_str().unwrap().to_owned();
                if let Some((tab, request, content)) = self.sent.remove(&id)
                    && reply.get("ok").is_some()
                {
                    let known = knowledge
                        .acknowledged
                        .insert((tab, request), content.clone());
                    // The same id with other content is refused.
                    assert!(known.is_none_or(|known| known == content));
                }
                self.answers.insert(id, reply);
            }
            Output::Told(told) => {
                for line in told {
                    let line: Value = serde_json::from_str(&line.line()).unwrap();
                    self.hear(knowledge, &line);
                }
            }
        }
    }

    fn hear(&mut self, knowledge: &mut Knowledge, line: &Value) {
        let tab = line["tab"].as_str().unwrap().to_owned();
        let first = line.get("first").unwrap_or(&line["seq"]).as_u64().unwrap();
        let next = self.next.entry(tab.clone()).or_insert(1);
        assert_eq!(first, *next, "a hole: {line}");
        *next = line["seq"].as_u64().unwrap() + 1;
        let event = &line["event"];
        match event["type"].as_str().unwrap() {
            "result" => {
                let request = line["request"].as_str().unwrap().to_owned();
                let count = knowledge.results.entry((tab, request)).or_default();
                *count += 1;
                assert_eq!(*count, 1, "a second result: {line}");
                if self.lives == Lives::Apart {
                    let said = line.to_string();
                    assert!(!said.contains("the process ended"), "cut off: {line}");
                }
            }
            "question" => {
                let question = event["question"].as_str().unwrap().to_owned();
                self.questions.insert((tab, question));
            }
            "answered" => {
                let question = event["question"].as_str().unwrap().to_owned();
                self.questions.remove(&(tab, question));
            }
            _ => {}
        }
    }

    async fn answer_all(&mut self, knowledge: &mut Knowledge) {
        for (tab, question) in std::mem::take(&mut self.questions) {
            let answer =
                json!({"op": "answer", "tab": tab, "question": question, "decision": "allow"});
            self.submit(knowledge, answer).await;
        }
    }

    async fn step(&mut self, knowledge: &mut Knowledge, step: Step) {
        match step {
            Step::Send {
                tab,
                request,
                script,
            } => {
                self.send(
                    knowledge,
                    SESSIONS[tab],
                    &format!("r{request}"),
                    SCRIPTS[script],
                )
                .await;
            }
            Step::Cancel { tab } => {
                self.submit(knowledge, json!({"op": "cancel", "tab": SESSIONS[tab]}))
                    .await;
            }
            Step::CancelOne { tab, request } => {
                let request = format!("r{request}");
                let line = json!({"op": "cancel", "tab": SESSIONS[tab], "request": request});
                self.submit(knowledge, line).await;
            }
            Step::ClearQueue { tab } => {
                let line = json!({"op": "cancel", "tab": SESSIONS[tab], "queue": "clear"});
                self.submit(knowledge, line).await;
            }
            Step::AnswerAll => self.answer_all(knowledge).await,
            Step::Reconnect => self.reconnect(knowledge).await,
            Step::Wait(turns) => self.wait(knowledge, turns).await,
            Step::Kill => unreachable!("seen to outside"),
        }
    }

    /// Brings everything to its end.
    async fn settle(&mut self, knowledge: &mut Knowledge) {
        loop {
            self.wait(knowledge, 5).await;
            let views = self.registry.views();
            let is_idle =
                |view: &caliban_serve::TabView| view.running.is_none() && view.queue.is_empty();
            if views.iter().all(is_idle) && self.sent.is_empty() {
                return;
            }
            self.answer_all(knowledge).await;
            for tab in SESSIONS {
                self.submit(knowledge, json!({"op": "cancel", "tab": tab}))
                    .await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn check(steps: &[Step], lives: Lives) {
    let (place, world) = (support::place(), World::new(lives));
    let mut knowledge = Knowledge::default();
    // Between two kills there is one server.
    for life in steps.split(|step| matches!(step, Step::Kill)) {
        let runtime = runtime();
        runtime.block_on(async {
            let mut server = Life::begin(&world, place.path(), &mut knowledge).await;
            for step in life {
                server.step(&mut knowledge, step.clone()).await;
            }
        });
        // Nothing is said or saved: everything is dropped where it stands.
        runtime.shutdown_background();
    }
    let runtime = runtime();
    runtime.block_on(async {
        let mut server = Life::begin(&world, place.path(), &mut knowledge).await;
        let settled = tokio::time::timeout(PATIENCE, server.settle(&mut knowledge)).await;
        assert!(
            settled.is_ok(),
            "it does not come to an end: {:?}",
            server.registry.views()
        );
        for ((tab, request), content) in knowledge.acknowledged.clone() {
            // Sent again, each has the one result.
            let line = json!({"op": "send", "tab": tab, "request": request, "content": content});
            let answer = server.ask(&mut knowledge, line).await;
            assert_eq!(answer["ok"]["state"], "ended", "{tab} {request}: {answer}");
            assert!(world.times(&content) <= 1, "{content} was worked on twice");
        }
    });
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(300, |text| text.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn what_was_acknowledged_ends_once(steps in prop::collection::vec(step(), 1..40)) {
        check(&steps, Lives::Here);
    }

    #[test]
    fn the_same_where_sessions_outlive_their_servers(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        check(&steps, Lives::Apart);
    }
}
