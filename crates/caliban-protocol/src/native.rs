//! The native dialect: one JSON frame per line, `system/init` first and `result` last.

use std::time::Duration;

use caliban_agent::{Denial, DenialSource, Event, Outcome, RunTotals};
use caliban_model::{Block, ImageSource, Message, Retry, Shown, ToolContent, Usage, WarningKind};
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value, json};

/// The version of this dialect.
const VERSION: &str = "1.0";

/// What a run is, told before anything happens in it.
#[derive(Debug, Clone)]
pub struct Init {
    pub session_id: String,
    pub provider: String,
    pub model: String,
    pub tools: Vec<String>,
    pub setting_sources: Vec<String>,
    pub bare_mode: bool,
    pub cwd: String,
    pub permission_mode: String,
    pub program_version: String,
    pub pricing_as_of: String,
    pub trusted: bool,
    pub fallback_model: Option<String>,
    pub warnings: Vec<String>,
}

/// Whether deltas are sent instead of whole messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partial {
    Included,
    Left,
}

/// Whether prompts are echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    Prompts,
    Nothing,
}

/// Whether hooks that fire are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookEvents {
    Included,
    Left,
}

/// Translates the events of a run.
#[derive(Debug, Clone, Copy)]
pub struct Encoder {
    pub partial: Partial,
    pub hooks: HookEvents,
    pub replay: Replay,
}

impl Init {
    pub fn frame(&self) -> Value {
        let mut frame = json!({
            "type": "system",
            "subtype": "init",
            "session_id": self.session_id,
            "model": format!("{}/{}", self.provider, self.model),
            "tools": self.tools,
            "plugins": [],
            "settingSources": self.setting_sources,
            "mcp_servers": [],
            "bare_mode": self.bare_mode,
            "cwd": self.cwd,
            "permission_mode": self.permission_mode,
            "version": self.program_version,
            "protocol": {"dialect": "caliban", "version": VERSION},
            "pricing_as_of": self.pricing_as_of,
            "trusted": self.trusted,
            "warnings": self.warnings,
        });
        if let Some(model) = &self.fallback_model {
            frame["fallback_model"] = json!(model);
        }
        frame
    }
}

impl Encoder {
    /// The frames of an event; the result is not among them, see [`result`].
    pub fn frames(&self, event: &Event) -> Vec<Value> {
        match event {
            Event::PromptAccepted { prompt } => match self.replay {
                Replay::Prompts => vec![json!({"type": "user", "content": blocks(prompt)})],
                Replay::Nothing => Vec::new(),
            },
            Event::TextDelta { text } => self.delta("text", text),
            Event::ThinkingDelta { text } => self.delta("thinking", text),
            Event::ToolReady {
                id, name, input, ..
            } => vec![json!({"type": "tool_use", "id": id, "name": name, "input": input})],
            Event::ToolFinished { id, output, .. } => vec![json!({
                "type": "tool_result",
                "tool_use_id": id,
                "is_error": output.is_error(),
                "content": output.content.iter().map(tool_content).collect::<Vec<_>>(),
            })],
            Event::TurnEnded { message } => match self.partial {
                Partial::Included => Vec::new(),
                Partial::Left => {
                    vec![
                        json!({"type": "message", "role": "assistant", "content": blocks(message)}),
                    ]
                }
            },
            Event::Retrying(retry) => retrying(retry),
            Event::Warning(warning) => vec![self::warning(
                warning.kind.subtype(),
                &warning.message,
                details(&warning.kind),
            )],
            Event::Notice { subtype, message } => {
                vec![self::warning(subtype, message, None)]
            }
            Event::HookFired { event, output } => match self.hooks {
                HookEvents::Included => vec![json!({
                    "type": "hook_event",
                    "hookEventName": event,
                    "hookSpecificOutput": output,
                })],
                HookEvents::Left => Vec::new(),
            },
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => vec![json!({
                "type": "system",
                "subtype": "compaction",
                "before_tokens": before_tokens,
                "after_tokens": after_tokens,
            })],
            Event::TurnStarted { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolProgress { .. }
            | Event::AssistantMessage { .. }
            | Event::ToolResults { .. }
            | Event::CompactionStarted { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => Vec::new(),
        }
    }

    fn delta(self, kind: &str, text: &str) -> Vec<Value> {
        match self.partial {
            Partial::Included => vec![json!({"type": kind, "delta": text})],
            Partial::Left => Vec::new(),
        }
    }
}

/// The last frame of a run.
pub fn result(outcome: &Outcome, totals: &RunTotals, session_id: &str) -> Value {
    let mut frame = head(outcome.subtype());
    let mut structured = None;
    match outcome {
        Outcome::Success { text } => {
            frame.insert("result".to_owned(), json!(text));
            if let Some(value) = &totals.structured {
                structured = Some(value.clone());
            }
        }
        failure => {
            if let (true, Some(message)) = (outcome.subtype() == "error", failure.message()) {
                frame.insert("error".to_owned(), json!(message));
            }
            if let Some(text) = &totals.last_text {
                frame.insert("last_assistant_text".to_owned(), json!(text));
            }
            frame.insert("tool_calls_seen".to_owned(), json!(totals.tool_calls));
        }
    }
    let mut frame = close(frame, totals, session_id);
    if let Some(value) = structured {
        frame["structured_output"] = value;
    }
    frame
}

/// The result of a run that could not begin.
pub fn failure(message: &str, session_id: &str) -> Value {
    failure_after(message, &RunTotals::default(), session_id)
}

/// The result of a run that cannot go on, after what it came to so far.
pub fn failure_after(message: &str, totals: &RunTotals, session_id: &str) -> Value {
    let outcome = Outcome::Internal {
        message: message.to_owned(),
    };
    result(&outcome, totals, session_id)
}

fn head(subtype: &str) -> Map<String, Value> {
    let mut frame = Map::new();
    frame.insert("type".to_owned(), json!("result"));
    frame.insert("subtype".to_owned(), json!(subtype));
    frame
}

fn close(mut frame: Map<String, Value>, totals: &RunTotals, session_id: &str) -> Value {
    let is_error = frame.get("subtype") != Some(&json!("success"));
    let denials: Vec<Value> = totals
        .denials
        .iter()
        .map(|(id, tool, reason)| denial(id, tool, reason))
        .collect();
    let fields = [
        ("session_id", json!(session_id)),
        (
            "total_cost_usd",
            json!(totals.cost.to_f64().unwrap_or_default()),
        ),
        ("turns", json!(totals.turns)),
        ("total_input_tokens", json!(totals.usage.total_input())),
        ("total_output_tokens", json!(totals.usage.output)),
        ("is_error", json!(is_error)),
        ("duration_ms", json!(millis(totals.duration))),
        ("usage", usage(&totals.usage)),
        ("denials", Value::Array(denials)),
    ];
    frame.extend(fields.map(|(name, value)| (name.to_owned(), value)));
    Value::Object(frame)
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_read_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_write(),
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning,
    })
}

fn denial(id: &str, tool: &str, denial: &Denial) -> Value {
    let source = match denial.source {
        DenialSource::Rule => "rule",
        DenialSource::Hook => "hook",
        DenialSource::Classifier => "classifier",
        DenialSource::Person => "person",
        DenialSource::Unattended => "unattended",
    };
    json!({
        "tool": tool,
        "id": id,
        "source": source,
        "rule": denial.rule,
        "reason": denial.reason,
        "remedy": denial.remedy,
    })
}

fn retrying(retry: &Retry) -> Vec<Value> {
    let mut frames = vec![json!({
        "type": "system",
        "subtype": "api_retry",
        "attempt": retry.attempt,
        "max_retries": retry.max_retries,
        "retry_delay_ms": millis(retry.delay),
        "error_status": retry.status,
        "error_category": retry.category.as_str(),
    })];
    if retry.shown == Shown::Superseded {
        frames.push(warning(
            "superseded",
            "the answer broke off; what was sent of this turn is void and begins anew",
            None,
        ));
    }
    frames
}

fn warning(subtype: &str, message: &str, details: Option<Value>) -> Value {
    let mut frame = json!({"type": "warning", "subtype": subtype, "message": message});
    if let Some(details) = details {
        frame["details"] = details;
    }
    frame
}

fn details(kind: &WarningKind) -> Option<Value> {
    match kind {
        WarningKind::ModelMismatch { requested, actual } => {
            Some(json!({"requested": requested, "actual": actual}))
        }
        WarningKind::ParameterDropped { parameter } => Some(json!({"parameter": parameter})),
        WarningKind::UsageEstimated => None,
    }
}

/// A message's blocks as programs read them: without what only a provider understands.
fn blocks(message: &Message) -> Vec<Value> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => Some(json!({"type": "text", "text": text})),
            Block::Thinking { text, .. } => Some(json!({"type": "thinking", "thinking": text})),
            Block::ToolUse {
                id, name, input, ..
            } => Some(json!({"type": "tool_use", "id": id, "name": name, "input": input})),
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => Some(json!({
                "type": "tool_result",
                "tool_use_id": tool_use_id,
                "is_error": is_error,
                "content": content.iter().map(tool_content).collect::<Vec<_>>(),
            })),
            Block::Image(image) => Some(picture(image)),
            Block::RedactedThinking { .. } | Block::Opaque { .. } => None,
        })
        .collect()
}

fn tool_content(part: &ToolContent) -> Value {
    match part {
        ToolContent::Text { text } => json!({"type": "text", "text": text}),
        ToolContent::Image(image) => picture(image),
    }
}

fn picture(image: &caliban_model::Image) -> Value {
    let source = match &image.source {
        ImageSource::Base64 { data } => {
            json!({"type": "base64", "media_type": image.mime.as_str(), "data": &**data})
        }
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
