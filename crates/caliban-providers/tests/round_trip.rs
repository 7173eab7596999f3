//! A tool loop with thinking through every family, against a server that checks requests as the
//! real services do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::sync::Arc;

use caliban_model::{
    Block, CancellationToken, Effort, Error, Message, OpenAiApi, Origin, Provider, ProviderKind,
    Reasoning, Request, Role, StopReason, StreamEvent, ToolContent, ToolSpec, Usage,
};
use caliban_providers::Connection;
use caliban_testkit::{ModelEntry, ModelServer, Outcome, Quirk, Reply, Script};
use futures::StreamExt;
use rstest::rstest;
use serde_json::{Value, json};

fn connect(kind: ProviderKind, api: Option<OpenAiApi>, url: &str) -> Arc<dyn Provider> {
    let openai = format!("{url}/v1");
    let variables = [
        ("ANTHROPIC_BASE_URL", url),
        ("GEMINI_BASE_URL", url),
        ("OLLAMA_BASE_URL", url),
        ("OPENAI_BASE_URL", &openai),
        ("ANTHROPIC_API_KEY", "k"),
        ("OPENAI_API_KEY", "k"),
        ("GEMINI_API_KEY", "k"),
    ];
    let lookup = |name: &str| {
        variables
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let connection = Connection {
        openai_api: api,
        ..Connection::default()
    };
    caliban_providers::connect(kind, &lookup, &connection).unwrap()
}

struct Answer {
    message: Message,
    usage: Usage,
    stop: StopReason,
}

async fn ask(provider: &dyn Provider, request: Request) -> Result<Answer, Error> {
    let origin = Origin::new(provider.id(), request.model.clone());
    let mut blocks = Vec::new();
    let mut usage = Usage::default();
    let mut events = provider.stream(request, CancellationToken::new());
    while let Some(event) = events.next().await {
        match event? {
            StreamEvent::BlockEnded { index, block } => blocks.push((index, block)),
            StreamEvent::Usage { usage: now } => usage = now,
            StreamEvent::Stopped { reason, .. } => {
                blocks.sort_by_key(|(index, _)| *index);
                let message = Message {
                    role: Role::Assistant,
                    content: blocks.into_iter().map(|(_, block)| block).collect(),
                    origin: Some(origin),
                };
                return Ok(Answer {
                    message,
                    usage,
                    stop: reason,
                });
            }
            _ => {}
        }
    }
    panic!("the answer has no end");
}

fn request(model: &str, messages: &[Message]) -> Request {
    let mut request =
        Request::new(model, messages.iter().cloned().map(Arc::new).collect()).unwrap();
    request.tools = ["Bash", "Read"]
        .map(|name| ToolSpec {
            name: name.to_owned(),
            description: format!("The {name} tool."),
            input_schema: json!({"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": false}),
        })
        .into();
    request.reasoning = Reasoning::Effort(Effort::High);
    request.max_tokens = 40_000;
    request
}

fn results(message: &Message) -> Message {
    let content = message
        .tool_uses()
        .enumerate()
        .map(|(index, (id, name, _))| Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: vec![ToolContent::Text {
                text: format!("{name} says {index}"),
            }],
            is_error: index == 1,
        })
        .collect();
    Message::new(Role::User, content)
}

fn script(quirks: &[Quirk]) -> Script {
    let calls = quirks.iter().fold(
        Reply::text("I look.")
            .and_tool("Bash", json!({"x": "ls é✓"}))
            .and_tool("Read", json!({"x": "a.rs"}))
            .thinking("Two things at once."),
        |reply, quirk| reply.quirk(*quirk),
    );
    Script::new([
        calls,
        Reply::tool("Bash", json!({"x": "again"})).thinking("Once more."),
        Reply::text("All done."),
    ])
    .model(ModelEntry::new("qwen3.5:9b").capabilities(["completion", "tools", "thinking"]))
    .model(ModelEntry::new("llama3.1"))
}

#[rstest]
#[case::anthropic(ProviderKind::Anthropic, None, "claude-sonnet-4-6", &[])]
#[case::anthropic_bound(ProviderKind::Anthropic, None, "claude-fable-5-2", &[])]
#[case::anthropic_manual(ProviderKind::Anthropic, None, "claude-haiku-4-5", &[])]
#[case::responses(ProviderKind::OpenAi, Some(OpenAiApi::Responses), "gpt-5.5", &[])]
#[case::chat(ProviderKind::OpenAi, Some(OpenAiApi::Chat), "gpt-4.1", &[])]
#[case::chat_local(ProviderKind::OpenAi, None, "local-model", &[Quirk::ReasoningContent, Quirk::NoToolIndex])]
#[case::chat_zero(ProviderKind::OpenAi, None, "local-model", &[Quirk::AllIndexesZero, Quirk::WholeArguments])]
#[case::chat_idless(ProviderKind::OpenAi, None, "local-model", &[Quirk::NoToolIds, Quirk::ObjectArguments])]
#[case::gemini(ProviderKind::Google, None, "gemini-3.8-flash", &[])]
#[case::gemini_idless(ProviderKind::Google, None, "gemini-3.8-flash", &[Quirk::NoIds])]
#[case::gemini_old(ProviderKind::Google, None, "gemini-2.5-pro", &[])]
#[case::ollama(ProviderKind::Ollama, None, "qwen3.5:9b", &[])]
#[case::ollama_idless(ProviderKind::Ollama, None, "llama3.1", &[Quirk::NoIds])]
#[tokio::test]
async fn a_parallel_tool_loop_is_accepted_and_keeps_its_prefix(
    #[case] kind: ProviderKind,
    #[case] api: Option<OpenAiApi>,
    #[case] model: &str,
    #[case] quirks: &[Quirk],
) {
    let server = ModelServer::start(script(quirks)).await.unwrap();
    let provider = connect(kind, api, &server.url());
    let mut messages = vec![Message::system("You work."), Message::user("Do it.")];
    let mut requests = Vec::new();
    for turn in 0..3 {
        let answer = ask(&*provider, request(model, &messages)).await.unwrap();
        let calls = answer.message.tool_uses().count();
        assert_eq!(calls, [2, 1, 0][turn]);
        let expected = [
            StopReason::ToolUse,
            StopReason::ToolUse,
            StopReason::EndTurn,
        ];
        assert_eq!(answer.stop, expected[turn]);
        assert!(answer.usage.output > 0 && answer.usage.total_input() > 0);
        let last = server.model_requests().pop().unwrap();
        assert_eq!(last.outcome, Outcome::Answered);
        requests.push(last.json());
        let answers = results(&answer.message);
        messages.push(answer.message);
        if calls > 0 {
            messages.push(answers);
        }
    }
    assert_eq!(messages.last().unwrap().text(), "All done.");
    for pair in requests.windows(2) {
        assert_prefix(&pair[0], &pair[1]);
    }
}

/// The second body is the first with messages appended; only cache markers may move.
fn assert_prefix(first: &Value, second: &Value) {
    let (Value::Object(first), Value::Object(second)) =
        (without_markers(first), without_markers(second))
    else {
        panic!("bodies are objects");
    };
    for (key, before) in &first {
        let after = &second[key];
        match (key.as_str(), before, after) {
            ("messages" | "input" | "contents", Value::Array(before), Value::Array(after)) => {
                assert!(after.len() > before.len());
                let bytes = |items: &[Value]| serde_json::to_string(items).unwrap();
                assert_eq!(bytes(before), bytes(&after[..before.len()]));
            }
            _ => assert_eq!(before.to_string(), after.to_string(), "{key}"),
        }
    }
    assert_eq!(first.len(), second.len());
}

fn without_markers(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_markers).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| *key != "cache_control")
            .map(|(key, value)| (key.clone(), without_markers(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A history of one provider is accepted by every other.
#[tokio::test]
async fn a_conversation_moves_between_providers() {
    let houses = [
        (ProviderKind::Anthropic, None, "claude-sonnet-4-6"),
        (ProviderKind::OpenAi, Some(OpenAiApi::Responses), "gpt-5.5"),
        (ProviderKind::Google, None, "gemini-3.8-flash"),
        (ProviderKind::OpenAi, Some(OpenAiApi::Chat), "gpt-4.1"),
        (ProviderKind::Ollama, None, "qwen3.5:9b"),
        (ProviderKind::Anthropic, None, "claude-opus-4-7"),
    ];
    let mut messages = vec![Message::user("Start.")];
    for (kind, api, model) in houses {
        let server = ModelServer::start(script(&[])).await.unwrap();
        let provider = connect(kind, api, &server.url());
        let answer = ask(&*provider, request(model, &messages)).await.unwrap();
        assert_eq!(answer.message.tool_uses().count(), 2, "{model}");
        let answers = results(&answer.message);
        messages.push(answer.message);
        messages.push(answers);
    }
}

#[tokio::test]
async fn models_are_listed() {
    let server = ModelServer::start(
        Script::new([])
            .model(ModelEntry::new("one"))
            .model(ModelEntry::new("two")),
    )
    .await
    .unwrap();
    for kind in ProviderKind::ALL
        .into_iter()
        .filter(|kind| !kind.is_cloud())
    {
        let models = connect(kind, None, &server.url()).models().await.unwrap();
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["one", "two"], "{kind}");
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_at_once() {
    for kind in ProviderKind::ALL
        .into_iter()
        .filter(|kind| !kind.is_cloud())
    {
        let server = ModelServer::start(Script::new([Reply::text("never")
            .with_fault(caliban_testkit::Fault::StallMidStream { after_events: 1 })]))
        .await
        .unwrap();
        let provider = connect(kind, None, &server.url());
        let cancel = CancellationToken::new();
        let mut events =
            provider.stream(request("llama3.1", &[Message::user("hi")]), cancel.clone());
        let stop = async {
            server.wait_for_requests(1).await;
            cancel.cancel();
        };
        let read = async {
            while let Some(event) = events.next().await {
                if let Err(error) = event {
                    return error;
                }
            }
            panic!("no error");
        };
        let (error, ()) = tokio::join!(read, stop);
        assert_eq!(error.kind, caliban_model::ErrorKind::Cancelled);
        drop(events);
        server.wait_for_disconnect().await;
    }
}
