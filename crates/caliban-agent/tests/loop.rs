#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
//! The promises of the loop, with a scripted provider and tools that record what they see.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_agent::{
    Advice, Adviser, Agent, Answer, CompactionReason, Company, Confinement, Conversation, Denial,
    Dial, Effect, Event, Gate, Hearing, HookEvent, Inheritance, Inquiry, Interrupt, Mailbox,
    Observer, OpenReading, Operator, Opinion, Outcome, PromptStage, PromptVerdict, Question,
    ReadGuard, Registry, Remember, Settings, StopStage, StopVerdict, ToolCall, ToolContext,
    ToolOutput, ToolStatus, TypedTool, Unattended, Verdict, Witness, Workspace,
};
use caliban_model::{
    Block, CachePolicy, CancellationToken, Capabilities, CostLedger, Error, ErrorKind, EventStream,
    Message, ModelInfo, Provider, Purpose, RateCard, Reasoning, Request, Role, StopReason,
    StreamEvent, Usage,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use rust_decimal::dec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Script = VecDeque<Vec<Result<StreamEvent, Error>>>;

#[derive(Debug)]
struct Scripted {
    script: Mutex<Script>,
    requests: Mutex<Vec<Request>>,
    window: Option<u64>,
}

impl Provider for Scripted {
    fn id(&self) -> &'static str {
        "anthropic"
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        Capabilities {
            context_window: self.window,
            ..caliban_model::capabilities("anthropic", model)
        }
    }

    fn stream(&self, request: Request, _: CancellationToken) -> EventStream {
        let input = request.text_bytes() as u64 / 4;
        self.requests.lock().unwrap().push(request);
        let mut answer = self
            .script
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| text("done"));
        if self.window.is_some() {
            for event in &mut answer {
                if let Ok(StreamEvent::Usage { usage }) = event {
                    usage.input = usage.input.max(input);
                }
            }
        }
        Box::pin(futures::stream::iter(answer))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        async { Ok(Vec::new()) }.boxed()
    }
}

fn answer(blocks: Vec<Block>, reason: StopReason, usage: Usage) -> Vec<Result<StreamEvent, Error>> {
    let mut events = vec![Ok(StreamEvent::Started { model: "m".into() })];
    for (index, block) in blocks.into_iter().enumerate() {
        if let Block::Text { text, .. } = &block {
            events.push(Ok(StreamEvent::TextDelta {
                index,
                text: text.clone(),
            }));
        }
        events.push(Ok(StreamEvent::BlockEnded { index, block }));
    }
    events.push(Ok(StreamEvent::Usage { usage }));
    events.push(Ok(StreamEvent::Stopped {
        reason,
        detail: None,
    }));
    events
}

fn small() -> Usage {
    Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    }
}

fn text(text: &str) -> Vec<Result<StreamEvent, Error>> {
    answer(vec![Block::text(text)], StopReason::EndTurn, small())
}

fn calls(calls: &[(&str, &str, Value)]) -> Vec<Result<StreamEvent, Error>> {
    let blocks = calls
        .iter()
        .map(|(id, name, input)| Block::ToolUse {
            id: (*id).into(),
            name: (*name).into(),
            input: input.clone(),
            private: None,
        })
        .collect();
    answer(blocks, StopReason::ToolUse, small())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepInput {
    /// What to do.
    name: String,
    /// The target; calls on the same one do not overlap.
    #[serde(default)]
    key: Option<String>,
    /// Virtual milliseconds to take.
    #[serde(default)]
    millis: u64,
}

#[derive(Debug, Default)]
struct Shared {
    log: Mutex<Vec<String>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

/// Takes a while and notes when it began and ended.
#[derive(Debug)]
struct Step(Arc<Shared>);

impl TypedTool for Step {
    type Input = StepInput;
    const NAME: &'static str = "Step";
    const DESCRIPTION: &'static str = "Takes a step.";
    const EFFECT: Effect = Effect::Writes;

    fn first_arg(&self, input: &StepInput) -> Option<String> {
        Some(input.name.clone())
    }

    fn conflict_key(&self, input: &StepInput, _: &Workspace) -> Option<String> {
        input.key.clone()
    }

    fn supersession_key(&self, input: &StepInput) -> Option<String> {
        input.key.clone()
    }

    async fn run(&self, input: StepInput, context: ToolContext) -> ToolOutput {
        let shared = &self.0;
        shared.log.lock().unwrap().push(format!("+{}", input.name));
        let now = shared.running.fetch_add(1, Ordering::SeqCst) + 1;
        shared.most.fetch_max(now, Ordering::SeqCst);
        context.progress.output(format!("at {}", input.name));
        let ended = context
            .cancel
            .run_until_cancelled(tokio::time::sleep(Duration::from_millis(input.millis)))
            .await;
        shared.running.fetch_sub(1, Ordering::SeqCst);
        shared.log.lock().unwrap().push(format!("-{}", input.name));
        match input.name.as_str() {
            "panic" => panic!("as told"),
            _ if ended.is_none() => ToolOutput::new(ToolStatus::Cancelled, "stopped half-way"),
            name => ToolOutput::ok(format!("did {name}")),
        }
    }
}

/// Allows everything.
#[derive(Debug)]
struct Open;

impl Gate for Open {
    fn judge<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async { Verdict::Allow }.boxed()
    }

    fn refused(&self, _: &ToolCall, _: &Denial) {}

    fn answered(&self, _: &ToolCall, _: &Answer) {}

    fn reading(&self, _: &ToolCall) -> Arc<dyn ReadGuard> {
        OpenReading::shared()
    }
}

fn nobody() -> Company {
    Company::new(Arc::new(Open))
}

struct Bench {
    agent: Agent,
    provider: Arc<Scripted>,
    shared: Arc<Shared>,
    _folder: tempfile::TempDir,
}

fn bench(script: Vec<Vec<Result<StreamEvent, Error>>>) -> Bench {
    bench_with(script, nobody(), None)
}

fn bench_with(
    script: Vec<Vec<Result<StreamEvent, Error>>>,
    company: Company,
    window: Option<u64>,
) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let shared = Arc::new(Shared::default());
    let provider = Arc::new(Scripted {
        script: Mutex::new(script.into()),
        requests: Mutex::default(),
        window,
    });
    let mut settings = Settings::new("claude-sonnet-4-6");
    settings.parallel_tools = NonZeroUsize::new(4).unwrap();
    Bench {
        agent: Agent {
            provider: provider.clone(),
            tools: Registry::new([Step(shared.clone()).boxed()]).into(),
            company,
            operator: Arc::new(Unattended),
            workspace: workspace(folder.path()),
            settings,
            ledger: Arc::new(Mutex::new(CostLedger::new(Arc::new(
                RateCard::builtin().clone(),
            )))),
            session_id: Arc::from("session"),
            works_for: None,
            mailbox: None,
            dial: None,
        },
        provider,
        shared,
        _folder: folder,
    }
}

fn workspace(root: &Path) -> Arc<Workspace> {
    Arc::new(Workspace::new(root, &[], None, Confinement::Open).unwrap())
}

struct Ran {
    outcome: Outcome,
    events: Vec<Event>,
    conversation: Conversation,
}

impl Bench {
    async fn run(&self) -> Ran {
        self.run_until(CancellationToken::new()).await
    }

    async fn run_until(&self, cancel: CancellationToken) -> Ran {
        let mut conversation = Conversation::default();
        let (sender, mut receiver) = mpsc::channel(1024);
        let collecting = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                events.push(event);
            }
            events
        };
        let running = async {
            let result = self
                .agent
                .run(&mut conversation, Message::user("go"), &sender, &cancel)
                .await;
            drop(sender);
            result
        };
        let ((outcome, _), events) = tokio::join!(running, collecting);
        Ran {
            outcome,
            events,
            conversation,
        }
    }

    fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }
}

fn finished(events: &[Event]) -> Vec<(String, ToolStatus)> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::ToolFinished { id, output, .. } => Some((id.to_string(), output.status)),
            _ => None,
        })
        .collect()
}

fn results(message: &Message) -> Vec<(String, String)> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolResult {
                tool_use_id,
                content,
                ..
            } => {
                let caliban_model::ToolContent::Text { text } = &content[0] else {
                    return None;
                };
                Some((tool_use_id.clone(), text.clone()))
            }
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_run_is_request_answer_tools_and_again() {
    let bench = bench(vec![
        calls(&[("a", "Step", json!({"name": "one"}))]),
        text("all done"),
    ]);
    let ran = bench.run().await;
    assert_eq!(
        ran.outcome,
        Outcome::Success {
            text: "all done".into()
        }
    );
    let roles: Vec<Role> = ran.conversation.messages().iter().map(|m| m.role).collect();
    assert_eq!(
        roles,
        [Role::User, Role::Assistant, Role::User, Role::Assistant]
    );
    let shape: Vec<&str> = ran
        .events
        .iter()
        // The steps of an answer come between; they are looked at where they are made frames of.
        .filter(|event| !matches!(event, Event::Answer(_)))
        .map(|event| match event {
            Event::PromptAccepted { .. } => "run",
            Event::TurnStarted { .. } => "turn",
            Event::TextDelta { .. } => "text",
            Event::AssistantMessage { .. } => "message",
            Event::ToolReady { .. } => "ready",
            Event::ToolStarted { .. } => "started",
            Event::ToolProgress { .. } => "progress",
            Event::ToolFinished { .. } => "finished",
            Event::ToolResults { .. } => "results",
            Event::TurnEnded { .. } => "turn-end",
            Event::Finished { .. } => "end",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shape,
        [
            "run", "turn", "message", "ready", "started", "progress", "finished", "results",
            "turn-end", "turn", "text", "message", "turn-end", "end"
        ]
    );
    let second = &bench.provider.requests.lock().unwrap()[1];
    assert_eq!(
        results(&second.messages()[2]),
        [("a".into(), "did one".into())]
    );
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_and_results_keep_the_models_order() {
    let bench = bench(vec![calls(&[
        ("slow", "Step", json!({"name": "slow", "millis": 1000})),
        ("quick", "Step", json!({"name": "quick", "millis": 10})),
    ])]);
    let start = tokio::time::Instant::now();
    let ran = bench.run().await;
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    let ends: Vec<String> = finished(&ran.events)
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(ends, ["quick", "slow"]);
    let order: Vec<String> = results(&ran.conversation.messages()[2])
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(order, ["slow", "quick"]);
}

#[tokio::test(start_paused = true)]
async fn calls_on_one_target_run_in_order_and_two_hundred_respect_the_limit() {
    let steps: Vec<(String, Value)> = (0..200)
        .map(|n| {
            let key = (n % 2 == 0).then_some("file");
            let input = json!({"name": format!("{n}"), "key": key, "millis": 200 - n});
            (format!("t{n}"), input)
        })
        .collect();
    let named: Vec<(&str, &str, Value)> = steps
        .iter()
        .map(|(id, input)| (id.as_str(), "Step", input.clone()))
        .collect();
    let bench = bench(vec![calls(&named)]);
    bench.run().await;
    assert_eq!(bench.shared.most.load(Ordering::SeqCst), 4);
    let keyed: Vec<String> = bench
        .log()
        .into_iter()
        .filter(|entry| entry[1..].parse::<u32>().unwrap() % 2 == 0)
        .collect();
    let expected: Vec<String> = (0..200)
        .step_by(2)
        .flat_map(|n| [format!("+{n}"), format!("-{n}")])
        .collect();
    assert_eq!(keyed, expected);
}

#[tokio::test]
async fn unknown_tools_bad_input_and_panics_are_results_not_ends() {
    let bench = bench(vec![calls(&[
        ("a", "Nothing", json!({})),
        ("b", "Step", json!({"millis": "x"})),
        ("c", "Step", json!("{\"name\": ")),
        ("d", "Step", json!({"name": "panic"})),
        ("e", "Step", json!({"name": "fine"})),
    ])]);
    let ran = bench.run().await;
    assert!(matches!(ran.outcome, Outcome::Success { .. }));
    let told: Vec<String> = results(&ran.conversation.messages()[2])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(
        told[0],
        "There is no tool named `Nothing`. The tools are: Step."
    );
    assert!(
        told[1].contains("`millis`") && told[1].contains("\"name\" is a required property"),
        "{}",
        told[1]
    );
    assert!(told[2].contains("not a JSON object"), "{}", told[2]);
    assert_eq!(told[3], "Step crashed: as told.");
    assert_eq!(told[4], "did fine");
}

/// Changes some inputs, and is the gate that is shut for some calls.
#[derive(Debug, Default)]
struct Guard {
    asked: Mutex<Vec<String>>,
    told: Mutex<Vec<&'static str>>,
}

impl Adviser for Guard {
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        async move {
            let name = call.first_arg.clone().unwrap_or_default();
            self.asked.lock().unwrap().push(name.clone());
            match name.as_str() {
                "other" => Advice::AllowWith(json!({"name": "changed"})),
                "broken" => Advice::AllowWith(json!({"name": 7})),
                _ => Advice::Allow,
            }
        }
        .boxed()
    }
}

impl Gate for Guard {
    fn judge<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move {
            if call.input["name"] == "no" {
                Verdict::Deny(Denial::by_hook("the gate is shut"))
            } else {
                Verdict::Allow
            }
        }
        .boxed()
    }

    fn refused(&self, _: &ToolCall, _: &Denial) {}

    fn answered(&self, _: &ToolCall, _: &Answer) {}

    fn reading(&self, _: &ToolCall) -> Arc<dyn ReadGuard> {
        OpenReading::shared()
    }
}

impl Observer for Guard {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.told.lock().unwrap().push(event.name());
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        None
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, inheritance: Inheritance) -> Option<Arc<dyn Observer>> {
        match inheritance {
            Inheritance::All => Some(self),
            Inheritance::Managed => None,
        }
    }
}

impl Guard {
    fn company(self: &Arc<Self>) -> Company {
        let gate = Arc::clone(self);
        Company {
            advisers: vec![Arc::clone(self) as _],
            observers: vec![Arc::clone(self) as _],
            ..Company::new(gate)
        }
    }
}

#[tokio::test]
async fn everybody_is_asked_in_order_and_their_word_holds() {
    let gate = Arc::new(Guard::default());
    let bench = bench_with(
        vec![calls(&[
            ("a", "Step", json!({"name": "yes"})),
            ("b", "Step", json!({"name": "no"})),
            ("c", "Step", json!({"name": "other"})),
            ("d", "Step", json!({"name": "broken"})),
        ])],
        gate.company(),
        None,
    );
    let ran = bench.run().await;
    assert_eq!(
        *gate.asked.lock().unwrap(),
        ["yes", "no", "other", "broken"]
    );
    let mut log = bench.log();
    log.sort();
    assert_eq!(log, ["+changed", "+yes", "-changed", "-yes"]);
    let told = results(&ran.conversation.messages()[2]);
    assert_eq!(told[1].1, "The call was not permitted: the gate is shut.");
    assert!(
        told[3].1.contains("a hook changed the input"),
        "{}",
        told[3].1
    );
    let ends = finished(&ran.events);
    assert_eq!(ends[0], ("b".into(), ToolStatus::Denied));
    let Some(Event::Finished { totals, .. }) = ran.events.last() else {
        panic!()
    };
    assert_eq!(totals.denials.len(), 2);
    let notices = gate.told.lock().unwrap();
    assert!(notices.contains(&"PermissionDenied") && notices.contains(&"PostToolUse"));
    assert!(notices.ends_with(&["Stop", "Notification"]), "{notices:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelling_leaves_every_call_with_a_result() {
    let bench = bench(vec![calls(&[
        ("a", "Step", json!({"name": "long", "millis": 60_000})),
        (
            "b",
            "Step",
            json!({"name": "queued", "key": "k", "millis": 60_000}),
        ),
        (
            "c",
            "Step",
            json!({"name": "behind", "key": "k", "millis": 60_000}),
        ),
    ])]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stop.cancel();
    });
    let ran = bench.run_until(cancel).await;
    assert_eq!(ran.outcome, Outcome::Cancelled);
    let told = results(&ran.conversation.messages()[2]);
    assert_eq!(told[0].1, "stopped half-way");
    assert_eq!(told[2].1, "The call was cancelled.");
    assert_eq!(finished(&ran.events).len(), 3);
    assert!(matches!(ran.events.last(), Some(Event::Finished { .. })));
}

#[tokio::test]
async fn turns_and_money_are_limited() {
    let step = || calls(&[("a", "Step", json!({"name": "x"}))]);
    let mut bench_turns = bench(vec![step(), step(), step()]);
    bench_turns.agent.settings.limits.max_turns = 2;
    let ran = bench_turns.run().await;
    assert_eq!(ran.outcome, Outcome::MaxTurns { limit: 2 });
    assert_eq!(bench_turns.provider.requests.lock().unwrap().len(), 2);

    let costly = Usage {
        input: 1_000_000,
        output: 0,
        ..Usage::default()
    };
    let mut bench_money = bench(vec![answer(
        vec![Block::text("rich")],
        StopReason::EndTurn,
        costly,
    )]);
    bench_money.agent.settings.limits.budget = Some(dec!(1));
    let ran = bench_money.run().await;
    assert_eq!(
        ran.outcome,
        Outcome::BudgetExceeded {
            message: "spent $3 of a budget of $1; raise `--max-budget-usd` to go on".into()
        }
    );

    let mut bench_poor = bench(vec![]);
    bench_poor.agent.settings.limits.budget = Some(dec!(0.0000001));
    let ran = bench_poor.run().await;
    assert!(matches!(ran.outcome, Outcome::BudgetExceeded { .. }));
    assert_eq!(bench_poor.provider.requests.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn the_same_call_with_the_same_result_is_a_loop_where_one_ends_the_run() {
    let step = || calls(&[("a", "Step", json!({"name": "again"}))]);
    let mut bench = bench((0..20).map(|_| step()).collect());
    bench.agent.settings.limits.max_repetitions = Some(8);
    let ran = bench.run().await;
    assert_eq!(
        ran.outcome,
        Outcome::Looping {
            tool: "Step".into(),
            times: 8
        }
    );
}

#[tokio::test]
async fn a_cut_answer_runs_no_tools_and_a_failure_is_an_outcome() {
    let cut = answer(
        vec![
            Block::text("I will"),
            Block::ToolUse {
                id: "a".into(),
                name: "Step".into(),
                input: json!({"name": "never"}),
                private: None,
            },
        ],
        StopReason::MaxTokens,
        small(),
    );
    let bench_cut = bench(vec![cut]);
    let ran = bench_cut.run().await;
    assert_eq!(ran.outcome, Outcome::MaxTokens);
    assert!(bench_cut.log().is_empty());

    let error = Error::new(ErrorKind::Auth, "anthropic", "m", "no key");
    let ran = bench(vec![vec![Err(error.clone())]]).run().await;
    assert_eq!(ran.outcome, Outcome::Provider(error));
}

fn long_step(n: usize) -> Vec<Result<StreamEvent, Error>> {
    let name = format!("{n}-{}", "x".repeat(8_000));
    calls(&[(&format!("c{n}"), "Step", json!({"name": name}))])
}

#[tokio::test]
async fn a_full_window_is_summarised_and_no_call_loses_its_result() {
    let mut script: Vec<_> = (0..6).map(long_step).collect();
    script.push(text("the summary"));
    script.push(text("finished"));
    let bench = bench_with(script, nobody(), Some(28_000));
    let ran = bench.run().await;
    assert_eq!(
        ran.outcome,
        Outcome::Success {
            text: "finished".into()
        }
    );
    let compacted = ran
        .events
        .iter()
        .find_map(|event| match event {
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => Some((*before_tokens, *after_tokens)),
            _ => None,
        })
        .expect("a compaction");
    assert!(compacted.1 * 2 <= 28_000 && compacted.1 < compacted.0);
    let requests = bench.provider.requests.lock().unwrap();
    let last = requests.last().unwrap();
    assert!(last.messages()[0].text().contains("the summary"));
    let mut open: Vec<&str> = Vec::new();
    for message in last.messages() {
        for block in &message.content {
            match block {
                Block::ToolUse { id, .. } => open.push(id),
                Block::ToolResult { tool_use_id, .. } => {
                    assert_eq!(open.pop(), Some(tool_use_id.as_str()));
                }
                _ => {}
            }
        }
    }
    assert!(open.is_empty());
}

#[tokio::test]
async fn a_prompt_the_provider_finds_too_long_is_compacted_or_the_run_ends() {
    let too_long = || {
        vec![Err(Error::new(
            ErrorKind::TooLong { limit: Some(9_000) },
            "anthropic",
            "m",
            "prompt is too long",
        ))]
    };
    let bench_ok = bench(vec![
        long_step(0),
        long_step(1),
        too_long(),
        text("sum"),
        text("ok"),
    ]);
    let ran = bench_ok.run().await;
    assert_eq!(ran.outcome, Outcome::Success { text: "ok".into() });

    let bench_off = {
        let mut bench = bench(vec![too_long()]);
        bench.agent.settings.compaction.threshold = None;
        bench
    };
    let ran = bench_off.run().await;
    assert!(matches!(ran.outcome, Outcome::ContextFull { .. }));
    assert_eq!(bench_off.provider.requests.lock().unwrap().len(), 1);

    let full_window = || {
        answer(
            vec![Block::text("and so")],
            StopReason::ContextExceeded,
            small(),
        )
    };
    let bench_full = bench((0..10).map(|_| full_window()).collect());
    let ran = bench_full.run().await;
    assert!(
        matches!(ran.outcome, Outcome::ContextFull { .. }),
        "{:?}",
        ran.outcome
    );
    assert_eq!(bench_full.provider.requests.lock().unwrap().len(), 1);

    let endless = bench((0..10).map(|_| too_long()).collect());
    let ran = endless.run().await;
    assert!(matches!(ran.outcome, Outcome::ContextFull { .. }));
    assert!(endless.provider.requests.lock().unwrap().len() < 8);
}

#[tokio::test]
async fn outdated_results_are_replaced_before_anything_is_summarised() {
    let step = |n: usize| {
        calls(&[(
            &format!("c{n}"),
            "Step",
            json!({"name": "y".repeat(6_000), "key": "same"}),
        )])
    };
    let mut script: Vec<_> = (0..5).map(step).collect();
    script.push(text("end"));
    let bench = bench_with(script, nobody(), Some(24_000));
    let ran = bench.run().await;
    assert_eq!(ran.outcome, Outcome::Success { text: "end".into() });
    let told: Vec<String> = ran
        .conversation
        .messages()
        .iter()
        .flat_map(|message| results(message))
        .map(|(_, text)| text)
        .collect();
    assert!(
        told.iter().any(|text| text == "[superseded: Step(same)]"),
        "{told:?}"
    );
    assert!(told.last().unwrap().starts_with("did yyy"));
}

/// A call whose request the provider counted like this.
fn counted(id: &str, input: &Value, tokens: u64) -> Vec<Result<StreamEvent, Error>> {
    let call = Block::ToolUse {
        id: id.into(),
        name: "Step".into(),
        input: input.clone(),
        private: None,
    };
    let usage = Usage {
        input: tokens,
        ..small()
    };
    answer(vec![call], StopReason::ToolUse, usage)
}

#[tokio::test]
async fn the_providers_count_makes_room_once_where_more_would_not_help() {
    let step = |id: &str| counted(id, &json!({ "name": id }), 90_000);
    let script = vec![
        step("a"),
        text("the summary"),
        step("b"),
        step("c"),
        text("end"),
    ];
    let bench = bench_with(script, nobody(), Some(100_000));
    let ran = bench.run().await;
    assert_eq!(ran.outcome, Outcome::Success { text: "end".into() });
    let requests = bench.provider.requests.lock().unwrap();
    let summaries = requests
        .iter()
        .filter(|request| request.metadata.purpose == Purpose::Summarization);
    assert_eq!(summaries.count(), 1);
    assert!(
        requests[4].messages()[0].text().contains("the summary"),
        "{:?}",
        requests[4].messages()
    );
}

#[tokio::test]
async fn a_small_threshold_leaves_less_and_nothing_is_done_where_nothing_can_be() {
    let mut script: Vec<_> = (0..4).map(long_step).collect();
    script.insert(3, text("the summary"));
    script.push(text("end"));
    let mut bench = bench_with(script, nobody(), Some(1_000_000));
    bench.agent.settings.compaction.threshold = Some(0.01);
    let ran = bench.run().await;
    assert_eq!(ran.outcome, Outcome::Success { text: "end".into() });
    let compactions = |ran: &Ran| {
        let started = |event: &&Event| matches!(event, Event::CompactionStarted { .. });
        ran.events.iter().filter(started).count()
    };
    assert_eq!(compactions(&ran), 1);

    let mut nothing = bench_with(vec![text("end")], nobody(), Some(1_000));
    nothing.agent.settings.compaction.threshold = Some(0.001);
    let ran = nothing.run().await;
    assert_eq!(compactions(&ran), 0);
}

#[tokio::test]
async fn outdated_results_go_without_compaction_and_where_no_cache_is_lost() {
    let input = json!({"name": "short", "key": "same"});
    let superseded = |bench: &Bench| {
        let requests = bench.provider.requests.lock().unwrap();
        let last = requests.last().unwrap();
        let texts = last.messages().iter().flat_map(|message| results(message));
        texts
            .filter(|(_, text)| text == "[superseded: Step(same)]")
            .count()
    };
    let script = |tokens| {
        vec![
            counted("a", &input, tokens),
            counted("b", &input, tokens),
            text("end"),
        ]
    };
    let mut off = bench_with(script(60_000), nobody(), Some(100_000));
    off.agent.settings.compaction.threshold = None;
    off.run().await;
    assert_eq!(superseded(&off), 1);

    let mut uncached = bench_with(script(10), nobody(), Some(100_000));
    uncached.agent.settings.cache = CachePolicy::Off;
    uncached.run().await;
    assert_eq!(superseded(&uncached), 1);

    let cached = bench_with(script(10), nobody(), Some(100_000));
    cached.run().await;
    assert_eq!(superseded(&cached), 0);
}

#[tokio::test]
async fn a_price_nobody_knows_is_said_once() {
    let mut bench = bench(vec![
        calls(&[("a", "Step", json!({"name": "x"}))]),
        text("end"),
    ]);
    bench.agent.settings.model = Arc::from("claude-nobody-1");
    let ran = bench.run().await;
    let notices = ran
        .events
        .iter()
        .filter(
            |event| matches!(event, Event::Notice { subtype, .. } if subtype == "unknown_price"),
        )
        .count();
    assert_eq!(notices, 1);
}

/// Leaves a message after the first call, and another when the model wants to stop.
#[derive(Debug)]
struct Postman(Mailbox, Mutex<bool>);

impl Observer for Postman {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        if let HookEvent::PostToolUse { .. } = event {
            self.0.put("first".into(), Message::user("meanwhile"));
        }
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        None
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        None
    }
}

impl StopStage for Postman {
    fn before_stop<'a>(&'a self, _: &'a str) -> BoxFuture<'a, StopVerdict> {
        if !std::mem::replace(&mut *self.1.lock().unwrap(), true) {
            self.0.put("second".into(), Message::user("at last"));
        }
        async { StopVerdict::Stop }.boxed()
    }
}

#[tokio::test]
async fn messages_join_a_run_between_its_turns() {
    let mut bench = bench(vec![
        calls(&[("a", "Step", json!({"name": "x"}))]),
        text("one"),
        text("two"),
    ]);
    let mailbox = Mailbox::default();
    let postman = Arc::new(Postman(mailbox.clone(), Mutex::new(false)));
    bench.agent.mailbox = Some(mailbox.clone());
    bench.agent.company.observers.push(postman.clone());
    bench.agent.company.stop_stages.push(postman);
    let ran = bench.run().await;
    assert_eq!(ran.outcome, Outcome::Success { text: "two".into() });
    let messages = ran.conversation.messages();
    let said: Vec<String> = messages.iter().map(|message| message.text()).collect();
    assert_eq!(said, ["go", "", "", "meanwhile", "one", "at last", "two"]);
    let joined: Vec<&str> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Steered { prompt, .. } => Some(&**prompt),
            _ => None,
        })
        .collect();
    assert_eq!(joined, ["first", "second"]);
    assert!(mailbox.is_empty());
}

/// Turns the dial after a call.
#[derive(Debug)]
struct Turning(Dial);
impl Observer for Turning {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        if let HookEvent::PostToolUse { .. } = event {
            self.0.set_model("claude-opus-4-6".into());
            self.0.set_reasoning(Reasoning::Off);
        }
        async {}.boxed()
    }

    fn remarks(&self, _: &[Arc<str>]) -> Option<String> {
        None
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        None
    }
}

#[tokio::test]
async fn another_model_counts_from_the_next_turn_on() {
    let mut bench = bench(vec![
        calls(&[("a", "Step", json!({"name": "x"}))]),
        text("end"),
    ]);
    let dial = Dial::new(bench.agent.settings.model.clone(), Reasoning::Auto);
    bench.agent.dial = Some(dial.clone());
    bench.agent.company.observers.push(Arc::new(Turning(dial)));
    bench.run().await;
    let requests = bench.provider.requests.lock().unwrap();
    let models: Vec<&str> = requests.iter().map(|request| &*request.model).collect();
    assert_eq!(models, ["claude-sonnet-4-6", "claude-opus-4-6"]);
    assert_eq!(requests[1].reasoning, Reasoning::Off);
}

#[tokio::test]
async fn a_conversation_is_condensed_on_demand() {
    let bench = bench(vec![text("hello"), text("we greeted")]);
    let mut ran = bench.run().await;
    let (sender, mut receiver) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    let hint = Some("the greeting");
    let (outcome, _) = bench
        .agent
        .compact(&mut ran.conversation, hint, &sender, &cancel)
        .await;
    assert!(matches!(outcome, Outcome::Obeyed { .. }), "{outcome:?}");
    let messages = ran.conversation.messages();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].text().contains("we greeted"));
    let asked = bench.provider.requests.lock().unwrap().pop().unwrap();
    assert!(asked.messages()[0].text().contains("the greeting"));
    receiver.close();
    let mut reasons = Vec::new();
    while let Some(event) = receiver.recv().await {
        if let Event::CompactionStarted { reason } = event {
            reasons.push(reason);
        }
    }
    assert_eq!(reasons, [CompactionReason::Asked]);
}

#[derive(Debug)]
struct Insistent;

impl PromptStage for Insistent {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        let verdict = if prompt.text() == "forbidden" {
            PromptVerdict::Deny {
                reason: "not here".into(),
            }
        } else {
            PromptVerdict::AcceptWith("Mind the gap.".into())
        };
        async { verdict }.boxed()
    }
}

impl StopStage for Insistent {
    fn before_stop<'a>(&'a self, _: &'a str) -> BoxFuture<'a, StopVerdict> {
        async {
            StopVerdict::Continue {
                message: "Are you sure?".into(),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn hooks_add_to_prompts_refuse_them_and_send_the_model_on_a_few_times() {
    let company = Company {
        prompt_stages: vec![Arc::new(Insistent)],
        stop_stages: vec![Arc::new(Insistent)],
        ..nobody()
    };
    let bench_on = bench_with(vec![], company, None);
    let ran = bench_on.run().await;
    assert!(matches!(ran.outcome, Outcome::Success { .. }));
    assert_eq!(ran.conversation.messages()[0].text(), "goMind the gap.");
    assert_eq!(bench_on.provider.requests.lock().unwrap().len(), 4);

    let (sender, _receiver) = mpsc::channel(64);
    let mut conversation = Conversation::default();
    let (outcome, _) = bench_on
        .agent
        .run(
            &mut conversation,
            Message::user("forbidden"),
            &sender,
            &CancellationToken::new(),
        )
        .await;
    assert_eq!(
        outcome,
        Outcome::HookDenied {
            reason: "not here".into()
        }
    );
    assert!(conversation.messages().is_empty());
}

#[test]
fn every_outcome_has_its_code_and_name() {
    let table = [
        (Outcome::Success { text: "x".into() }, 0, "success"),
        (Outcome::MaxTurns { limit: 1 }, 75, "max_turns"),
        (
            Outcome::BudgetExceeded {
                message: "m".into(),
            },
            137,
            "budget_exceeded",
        ),
        (Outcome::MaxTokens, 1, "max_tokens"),
        (Outcome::Cancelled, 124, "cancelled"),
        (
            Outcome::SchemaMismatch {
                message: "m".into(),
            },
            2,
            "error",
        ),
        (Outcome::Refusal { detail: None }, 1, "error"),
        (
            Outcome::ContextFull {
                message: "m".into(),
            },
            1,
            "error",
        ),
    ];
    for (outcome, code, subtype) in table {
        assert_eq!(
            (outcome.exit_code(), outcome.subtype()),
            (code, subtype),
            "{outcome:?}"
        );
        assert_eq!(outcome.message().is_none(), code == 0);
    }
}

/// Answers every question the same way.
#[derive(Debug)]
struct Person(Answer);

impl Operator for Person {
    fn decide<'a>(&'a self, _: &'a Inquiry) -> BoxFuture<'a, Answer> {
        let answer = self.0.clone();
        async move { answer }.boxed()
    }
}

fn question() -> Box<Question> {
    Box::new(Question {
        reason: "Step is new".into(),
        rule: Some("Step".into()),
        remedy: "Run with `--allow Step`.".into(),
        suggestions: Vec::new(),
        parts: Vec::new(),
        place: None,
        target: None,
        input: None,
    })
}

/// Asks about everything that nobody approved; an adviser when `opinion` says so.
#[derive(Debug, Default)]
struct Asking {
    answers: Mutex<Vec<Answer>>,
}

impl Gate for Asking {
    fn judge<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async {
            match &call.opinion {
                Opinion::Approved { .. } => Verdict::Allow,
                Opinion::None | Opinion::Ask { .. } => Verdict::Ask(question()),
            }
        }
        .boxed()
    }

    fn refused(&self, _: &ToolCall, _: &Denial) {}

    fn answered(&self, _: &ToolCall, answer: &Answer) {
        self.answers.lock().unwrap().push(answer.clone());
    }

    fn reading(&self, _: &ToolCall) -> Arc<dyn ReadGuard> {
        OpenReading::shared()
    }
}

async fn asked(answer: Answer) -> (Bench, Ran) {
    let gate = Arc::new(Asking::default());
    let script = vec![calls(&[("a", "Step", json!({"name": "x"}))])];
    let mut bench = bench_with(script, Company::new(gate.clone()), None);
    bench.agent.operator = Arc::new(Person(answer.clone()));
    let ran = bench.run().await;
    assert_eq!(*gate.answers.lock().unwrap(), [answer]);
    let order: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolReady { .. } => Some("ready"),
            Event::PermissionAsked { .. } => Some("asked"),
            Event::PermissionAnswered { .. } => Some("answered"),
            Event::ToolFinished { .. } => Some("finished"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["ready", "asked", "answered", "finished"]);
    (bench, ran)
}

#[tokio::test]
async fn the_operator_is_asked_and_obeyed() {
    let once = Remember::Once;
    let (bench, _) = asked(Answer::Allow {
        input: Some(json!({"name": "changed"})),
        remember: once.clone(),
    })
    .await;
    assert_eq!(bench.log(), ["+changed", "-changed"]);

    let (bench, ran) = asked(Answer::Deny {
        reason: Some("not today".into()),
        remember: once.clone(),
        interrupt: Interrupt::No,
    })
    .await;
    assert!(bench.log().is_empty());
    let told = results(&ran.conversation.messages()[2]);
    assert_eq!(told[0].1, "The call was not permitted: not today.");
    assert!(matches!(ran.outcome, Outcome::Success { .. }));

    let (bench, ran) = asked(Answer::Deny {
        reason: None,
        remember: once,
        interrupt: Interrupt::Yes,
    })
    .await;
    assert!(bench.log().is_empty());
    assert_eq!(ran.outcome, Outcome::Cancelled);

    let (bench, ran) = asked(Answer::Nobody).await;
    assert!(bench.log().is_empty());
    let told = results(&ran.conversation.messages()[2]);
    assert_eq!(
        told[0].1,
        "The call was not permitted: Step is new. Run with `--allow Step`."
    );
}

/// Gives the same advice on every call.
#[derive(Debug)]
struct Advising(Advice);

impl Adviser for Advising {
    fn advise<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, Advice> {
        let advice = self.0.clone();
        async { advice }.boxed()
    }
}

#[tokio::test]
async fn advice_approves_what_would_be_asked_and_the_strictest_counts() {
    let ask = || Advice::Ask {
        reason: "new".into(),
        remedy: None,
        input: None,
    };
    let approve = || Advice::Approve {
        reason: None,
        input: Some(json!({"name": "approved"})),
    };
    let deny = || Advice::Deny(Denial::by_hook("no"));
    for (advice, runs) in [
        (vec![approve()], true),
        (vec![Advice::Allow], false),
        (vec![approve(), ask()], false),
        (vec![ask(), approve()], false),
        (vec![approve(), deny()], false),
    ] {
        let company = Company {
            advisers: advice
                .iter()
                .map(|advice| Arc::new(Advising(advice.clone())) as Arc<dyn Adviser>)
                .collect(),
            ..Company::new(Arc::new(Asking::default()))
        };
        let script = vec![calls(&[("a", "Step", json!({"name": "x"}))])];
        let bench = bench_with(script, company, None);
        bench.run().await;
        let expected: &[&str] = if runs {
            &["+approved", "-approved"]
        } else {
            &[]
        };
        assert_eq!(bench.log(), expected, "{advice:?}");
    }
}

#[tokio::test]
async fn an_adviser_that_asks_about_another_input_has_that_input_run() {
    let advice = Advice::Ask {
        reason: "new".into(),
        remedy: None,
        input: Some(json!({"name": "changed"})),
    };
    let company = Company {
        advisers: vec![Arc::new(Advising(advice))],
        ..Company::new(Arc::new(Asking::default()))
    };
    let script = vec![calls(&[("a", "Step", json!({"name": "x"}))])];
    let mut bench = bench_with(script, company, None);
    bench.agent.operator = Arc::new(Person(Answer::Allow {
        input: None,
        remember: Remember::Once,
    }));
    bench.run().await;
    assert_eq!(bench.log(), ["+changed", "-changed"]);
}

/// Notes what it sees, and cannot note calls of one name.
#[derive(Debug, Default)]
struct Notary(Mutex<Vec<String>>);

impl Notary {
    fn note(&self, what: &str, call: &ToolCall) {
        let agent = call.agent.as_deref().unwrap_or("session");
        let line = format!("{what} {} of {agent}", call.id);
        self.0.lock().unwrap().push(line);
    }
}

impl Witness for Notary {
    fn before_run<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), String>> {
        self.note("before", call);
        let noted = if call.input["name"] == "unnoted" {
            Err("there is no paper".to_owned())
        } else {
            Ok(())
        };
        async { noted }.boxed()
    }

    fn after_end<'a>(&'a self, call: &'a ToolCall, _: &'a ToolOutput) -> BoxFuture<'a, ()> {
        self.note("after", call);
        async {}.boxed()
    }

    fn over<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, ()> {
        async {}.boxed()
    }

    fn at_stop(&self, _: Hearing) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    fn for_elsewhere(self: Arc<Self>) -> Option<Arc<dyn Witness>> {
        Some(self)
    }
}

#[tokio::test]
async fn witnesses_see_every_end_and_what_they_cannot_note_does_not_run() {
    let notary = Arc::new(Notary::default());
    let company = Company {
        witnesses: vec![notary.clone()],
        ..Arc::new(Guard::default()).company()
    };
    let script = vec![calls(&[
        ("a", "Step", json!({"name": "no"})),
        ("b", "Step", json!({"name": "unnoted", "key": "k"})),
        ("c", "Step", json!({"name": "fine", "key": "k"})),
    ])];
    let bench = bench_with(script, company, None);
    let ran = bench.run().await;
    assert_eq!(bench.log(), ["+fine", "-fine"]);
    let told = results(&ran.conversation.messages()[2]);
    assert_eq!(told[1].1, "there is no paper");
    assert_eq!(
        *notary.0.lock().unwrap(),
        [
            "after a of session",
            "before b of session",
            "after b of session",
            "before c of session",
            "after c of session"
        ]
    );
}

#[tokio::test]
async fn agents_that_work_for_another_are_judged_and_witnessed_like_it() {
    for (inheritance, is_told) in [(Inheritance::All, true), (Inheritance::Managed, false)] {
        let notary = Arc::new(Notary::default());
        let guard = Arc::new(Guard::default());
        let parent = Company {
            witnesses: vec![notary.clone()],
            prompt_stages: vec![Arc::new(Insistent)],
            stop_stages: vec![Arc::new(Insistent)],
            ..guard.company()
        };
        let script = vec![calls(&[
            ("a", "Step", json!({"name": "no"})),
            ("b", "Step", json!({"name": "other"})),
        ])];
        let mut bench = bench_with(script, parent.for_sub_agent(inheritance), None);
        bench.agent.works_for = Some("task".into());
        let ran = bench.run().await;
        assert_eq!(bench.log(), ["+changed", "-changed"]);
        // Nobody adds to its prompt or sends it on.
        assert_eq!(ran.conversation.messages()[0].text(), "go");
        assert_eq!(bench.provider.requests.lock().unwrap().len(), 2);
        assert_eq!(
            *notary.0.lock().unwrap(),
            ["after a of task", "before b of task", "after b of task"]
        );
        let told = guard.told.lock().unwrap();
        let expected: &[&str] = if is_told {
            &["PermissionDenied", "PostToolUse"]
        } else {
            &[]
        };
        assert_eq!(*told, expected, "its end is not the session's");
    }
}
