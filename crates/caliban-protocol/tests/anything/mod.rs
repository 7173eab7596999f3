//! Strategies for everything that can happen in a run.

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{
    Answer, AnswerStep, CompactionReason, Denial, DenialSource, Effect, Event, Inquiry, Opinion,
    Outcome, Question, RunTotals, ToolCall, ToolOutput, ToolStatus,
};
use caliban_model::{
    Block, Error, ErrorKind, Hop, HopKind, Image, ImageMime, ImageSource, Message, Origin, Purpose,
    Retry, RetryCategory, Role, Shown, ToolContent, Usage, Warning, WarningKind,
};
use caliban_protocol::{
    Encoder, HookEvents, Init, McpServerState, Partial, PluginState, Replay, SandboxState,
};
use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::Value;

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a\n\r\t\"\\\\\u{0}\u{85}\u{2028}\u{2029}\u{feff}👩‍🔧]{0,12}",
    ]
}

fn shared() -> impl Strategy<Value = Arc<str>> {
    text().prop_map(Arc::from)
}

pub(crate) fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec((text(), json_value()), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn tool_input() -> impl Strategy<Value = Value> {
    prop_oneof![object(), text().prop_map(Value::from)]
}

fn image() -> impl Strategy<Value = Image> {
    let mime = prop_oneof![
        Just(ImageMime::Png),
        Just(ImageMime::Jpeg),
        Just(ImageMime::Gif),
        Just(ImageMime::Webp),
    ];
    let source = prop_oneof![
        shared().prop_map(|data| ImageSource::Base64 { data }),
        text().prop_map(|url| ImageSource::Url { url }),
    ];
    (mime, source).prop_map(|(mime, source)| Image {
        mime,
        source,
        dims: None,
    })
}

fn tool_content() -> impl Strategy<Value = Vec<ToolContent>> {
    let part = prop_oneof![
        text().prop_map(|text| ToolContent::Text { text }),
        image().prop_map(ToolContent::Image),
    ];
    prop::collection::vec(part, 0..3)
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        (text(), prop::option::of(json_value()))
            .prop_map(|(text, private)| Block::Text { text, private }),
        (text(), prop::option::of(text())).prop_map(|(text, signature)| Block::Thinking {
            text,
            signature,
            private: None
        }),
        text().prop_map(|data| Block::RedactedThinking { data }),
        (text(), text(), tool_input()).prop_map(|(id, name, input)| Block::ToolUse {
            id,
            name,
            input,
            private: None
        }),
        (text(), tool_content(), any::<bool>()).prop_map(|(tool_use_id, content, is_error)| {
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            }
        }),
        image().prop_map(Block::Image),
        json_value().prop_map(|value| Block::Opaque { value }),
    ]
}

fn message() -> impl Strategy<Value = Arc<Message>> {
    prop::collection::vec(block(), 0..4)
        .prop_map(|blocks| Arc::new(Message::new(Role::Assistant, blocks)))
}

fn denial() -> impl Strategy<Value = Denial> {
    let source = prop_oneof![
        Just(DenialSource::Rule),
        Just(DenialSource::Hook),
        Just(DenialSource::Classifier),
        Just(DenialSource::Person),
        Just(DenialSource::Unattended),
    ];
    let optional = || prop::option::of(text());
    (source, text(), optional(), optional()).prop_map(|(source, reason, rule, remedy)| Denial {
        source,
        reason,
        rule,
        remedy,
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    // Sums of real runs; more would overflow long before it is printed.
    let count = || 0..u64::from(u32::MAX);
    (count(), count(), count(), count(), count(), count()).prop_map(
        |(input, cache_read, cache_write_5m, cache_write_1h, output, reasoning)| Usage {
            input,
            cache_read,
            cache_write_5m,
            cache_write_1h,
            output,
            reasoning,
            estimated: false,
            charged: None,
        },
    )
}

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_millis)
}

pub(crate) fn totals() -> impl Strategy<Value = RunTotals> {
    (
        any::<u32>(),
        usage(),
        (any::<u32>(), 0u32..20),
        any::<u32>(),
        prop::collection::vec((shared(), shared(), denial()), 0..3),
        prop::option::of(text()),
        prop::option::of(json_value()),
        duration(),
    )
        .prop_map(
            |(
                turns,
                usage,
                (cost, scale),
                tool_calls,
                denials,
                last_text,
                structured,
                duration,
            )| {
                RunTotals {
                    turns,
                    usage,
                    cost: Decimal::new(i64::from(cost), scale),
                    tool_calls,
                    denials,
                    last_text,
                    structured,
                    duration,
                    model_time: duration / 2,
                    ..RunTotals::default()
                }
            },
        )
}

pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let optional = || prop::option::of(text());
    prop_oneof![
        text().prop_map(|text| Outcome::Success { text }),
        any::<u32>().prop_map(|limit| Outcome::MaxTurns { limit }),
        text().prop_map(|message| Outcome::BudgetExceeded { message }),
        Just(Outcome::MaxTokens),
        Just(Outcome::Cancelled),
        text().prop_map(|text| Outcome::Provider(Error::new(ErrorKind::Auth, "p", "m", text))),
        text().prop_map(|reason| Outcome::HookDenied { reason }),
        optional().prop_map(|detail| Outcome::Refusal { detail }),
        optional().prop_map(|detail| Outcome::ContentFilter { detail }),
        text().prop_map(|message| Outcome::ContextFull { message }),
        (text(), any::<u32>()).prop_map(|(tool, times)| Outcome::Looping { tool, times }),
        text().prop_map(|message| Outcome::SchemaMismatch { message }),
        text().prop_map(|message| Outcome::Internal { message }),
    ]
}

fn retry() -> impl Strategy<Value = Retry> {
    let category = prop_oneof![
        Just(RetryCategory::Overloaded),
        Just(RetryCategory::RateLimit),
        Just(RetryCategory::Timeout),
        Just(RetryCategory::Network),
        Just(RetryCategory::ServerError),
        Just(RetryCategory::Other),
    ];
    let shown = prop_oneof![Just(Shown::Nothing), Just(Shown::Superseded)];
    (
        any::<u32>(),
        any::<u32>(),
        duration(),
        prop::option::of(any::<u16>()),
        category,
        text(),
        shown,
    )
        .prop_map(
            |(attempt, max_retries, delay, status, category, message, shown)| Retry {
                attempt,
                max_retries,
                delay,
                status,
                category,
                message,
                shown,
            },
        )
}

fn warning() -> impl Strategy<Value = Warning> {
    prop_oneof![
        (text(), text()).prop_map(|(asked, got)| Warning::model_mismatch(&asked, &got)),
        (text(), text(), text())
            .prop_map(|(name, model, why)| Warning::dropped(&name, &model, &why)),
        text().prop_map(|message| Warning {
            kind: WarningKind::UsageEstimated,
            message
        }),
        hop().prop_map(Warning::rerouted),
    ]
}

fn hop() -> impl Strategy<Value = Hop> {
    let kind = prop_oneof![
        Just(HopKind::Fallback),
        Just(HopKind::Hedge),
        Just(HopKind::Skipped),
        Just(HopKind::Budget),
    ];
    let origin = || (text(), text()).prop_map(|(provider, model)| Origin::new(provider, model));
    let purpose = prop::sample::select(Purpose::ALL.to_vec());
    (
        text(),
        purpose,
        kind,
        origin(),
        origin(),
        text(),
        any::<u32>(),
    )
        .prop_map(
            |(route_id, purpose, kind, from, to, reason, markers_cleared)| Hop {
                route_id,
                purpose,
                kind,
                from,
                to,
                reason,
                markers_cleared,
            },
        )
}

fn output() -> impl Strategy<Value = ToolOutput> {
    let status = prop_oneof![
        Just(ToolStatus::Ok),
        Just(ToolStatus::Failed),
        Just(ToolStatus::Denied)
    ];
    (status, tool_content()).prop_map(|(status, content)| ToolOutput::of(status, content))
}

/// The events that become frames.
fn told() -> impl Strategy<Value = Event> {
    let name = prop_oneof![Just("superseded"), Just("hook"), Just("config_change")];
    prop_oneof![
        message().prop_map(|prompt| Event::PromptAccepted { prompt }),
        text().prop_map(|text| Event::TextDelta { text }),
        text().prop_map(|text| Event::ThinkingDelta { text }),
        block().prop_map(|block| Event::Answer(AnswerStep::BlockEnded {
            block: Arc::new(block)
        })),
        (
            shared(),
            shared(),
            output(),
            duration(),
            prop::option::of(denial())
        )
            .prop_map(|(id, name, output, duration, denial)| Event::ToolFinished {
                id,
                name,
                output,
                duration,
                denial
            }),
        message().prop_map(|message| Event::TurnEnded { message }),
        retry().prop_map(Event::Retrying),
        warning().prop_map(Event::Warning),
        (name, text()).prop_map(|(subtype, message)| Event::Notice {
            subtype: subtype.into(),
            message
        }),
        object().prop_map(|output| Event::HookFired {
            event: "PreToolUse".into(),
            output
        }),
        object().prop_map(|output| Event::HookPassed {
            event: "SessionStart".into(),
            output
        }),
        (any::<u64>(), any::<u64>()).prop_map(|(before_tokens, after_tokens)| {
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            }
        }),
    ]
}

fn inquiry(id: Arc<str>, reason: String) -> Inquiry {
    let call = ToolCall {
        id,
        agent: None,
        name: "Bash".into(),
        input: Value::Null,
        effect: Effect::Executes,
        first_arg: None,
        turn: 1,
        opinion: Opinion::None,
    };
    let question = Question {
        reason,
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

/// The events that do not.
fn untold() -> impl Strategy<Value = Event> {
    prop_oneof![
        any::<u32>().prop_map(|turn| Event::TurnStarted { turn }),
        (shared(), shared()).prop_map(|(id, name)| Event::ToolStarted {
            id,
            name,
            first_arg: None
        }),
        (shared(), shared(), tool_input()).prop_map(|(id, name, input)| Event::ToolReady {
            id,
            name,
            input,
            first_arg: None
        }),
        (shared(), text()).prop_map(|(id, text)| Event::ToolProgress { id, text }),
        (message(), usage()).prop_map(|(message, usage)| Event::AssistantMessage {
            message,
            usage,
            cost: None
        }),
        message().prop_map(|message| Event::ToolResults { message }),
        (shared(), text()).prop_map(|(id, reason)| Event::PermissionAsked {
            inquiry: Box::new(inquiry(id, reason)),
        }),
        shared().prop_map(|id| Event::PermissionAnswered {
            inquiry: id.clone(),
            id,
            answer: Answer::Nobody
        }),
        Just(Event::CompactionStarted {
            reason: CompactionReason::Threshold
        }),
        (outcome(), totals()).prop_map(|(outcome, totals)| Event::Finished {
            outcome,
            totals: Box::new(totals)
        }),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => told(),
        2 => untold(),
        1 => (shared(), told()).prop_map(|(parent, event)| Event::Nested {
            parent,
            event: Box::new(event)
        }),
    ]
}

pub(crate) fn encoder() -> impl Strategy<Value = Encoder> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(partial, hooks, replay)| Encoder {
        partial: if partial {
            Partial::Included
        } else {
            Partial::Left
        },
        hooks: if hooks {
            HookEvents::Included
        } else {
            HookEvents::Left
        },
        replay: if replay {
            Replay::Prompts
        } else {
            Replay::Nothing
        },
    })
}

pub(crate) fn init() -> impl Strategy<Value = Init> {
    let texts = || prop::collection::vec(text(), 0..3);
    let mode = prop_oneof![
        Just("default"),
        Just("acceptEdits"),
        Just("plan"),
        Just("auto"),
        Just("dontAsk"),
        Just("bypassPermissions"),
        Just("disabled"),
    ];
    (
        (text(), text(), text(), text()),
        (texts(), texts(), texts()),
        (any::<bool>(), any::<bool>()),
        mode,
        prop::option::of(text()),
    )
        .prop_map(
            |(
                (session_id, provider, model, cwd),
                (tools, setting_sources, warnings),
                (bare_mode, trusted),
                permission_mode,
                fallback_model,
            )| Init {
                session_id,
                provider,
                model,
                tools,
                setting_sources,
                bare_mode,
                cwd,
                permission_mode: permission_mode.to_owned(),
                program_version: "1.0.0".to_owned(),
                pricing_as_of: "2026-11-15".to_owned(),
                trusted,
                fallback_model,
                plugins: vec![PluginState {
                    name: "tools".to_owned(),
                    path: "/p/tools".to_owned(),
                    source: "user".to_owned(),
                    version: Some("1.0.0".to_owned()),
                }],
                mcp_servers: vec![McpServerState {
                    name: "notes".to_owned(),
                    status: "connected".to_owned(),
                }],
                slash_commands: vec!["compact".to_owned()],
                sandbox: SandboxState {
                    backend: "bwrap".to_owned(),
                    enabled: true,
                    reduced: Vec::new(),
                    egress: "closed".to_owned(),
                    reason: None,
                },
                warnings,
            },
        )
}
