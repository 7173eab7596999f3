//! What happened, and how it is told to handlers: one JSON object per event, whose names suit
//! handlers written for caliban and for Claude Code.

use std::path::Path;

use caliban_agent::{
    CompactionReason, DenialSource, HookEvent, Outcome, SessionSource, ToolCall, ToolOutput,
    ToolStatus,
};
use serde_json::{Map, Value, json};

use crate::event::EventName;
use crate::facts::SessionFacts;

/// Something handlers are told of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Occasion<'a> {
    Start(SessionSource),
    Prompt(&'a str),
    Tool(&'a ToolCall),
    Stop { text: &'a str, rerun: Rerun },
    Told(&'a HookEvent),
}

/// Whether the model works because a handler of `Stop` sent it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rerun {
    No,
    Yes,
}

impl Occasion<'_> {
    pub(crate) fn event(&self) -> EventName {
        match self {
            Self::Start(_) => EventName::SessionStart,
            Self::Prompt(_) => EventName::UserPromptSubmit,
            Self::Tool(_) => EventName::PreToolUse,
            Self::Stop { .. } => EventName::Stop,
            Self::Told(event) => match event {
                HookEvent::SessionEnd { .. } => EventName::SessionEnd,
                HookEvent::PreCompact { .. } => EventName::PreCompact,
                HookEvent::PostCompact { .. } => EventName::PostCompact,
                HookEvent::PostToolUse { .. } => EventName::PostToolUse,
                HookEvent::PostToolUseFailure { .. } => EventName::PostToolUseFailure,
                HookEvent::ConfigChange { .. } => EventName::ConfigChange,
                HookEvent::CwdChanged { .. } => EventName::CwdChanged,
                HookEvent::FileChanged { .. } => EventName::FileChanged,
                HookEvent::SubagentStart { .. } => EventName::SubagentStart,
                HookEvent::SubagentStop { .. } => EventName::SubagentStop,
                HookEvent::WorktreeCreate { .. } => EventName::WorktreeCreate,
                HookEvent::WorktreeRemove { .. } => EventName::WorktreeRemove,
                HookEvent::TaskCreated { .. } => EventName::TaskCreated,
                HookEvent::TaskCompleted { .. } => EventName::TaskCompleted,
                HookEvent::PermissionRequest { .. } => EventName::PermissionRequest,
                HookEvent::PermissionDenied { .. } => EventName::PermissionDenied,
                HookEvent::Notification { .. } => EventName::Notification,
                HookEvent::Stopped { .. } => EventName::Stop,
                HookEvent::StopFailure { .. } => EventName::StopFailure,
            },
        }
    }

    /// What a matcher is compared with; nothing where the event has no such thing.
    pub(crate) fn subject(&self) -> Option<&str> {
        match self {
            Self::Start(source) => Some(source.as_str()),
            Self::Told(HookEvent::PreCompact { .. } | HookEvent::PostCompact { .. }) => {
                Some(TRIGGER)
            }
            Self::Told(HookEvent::Notification { kind, .. }) => Some(kind.as_str()),
            Self::Tool(_) | Self::Prompt(_) | Self::Stop { .. } | Self::Told(_) => {
                self.call().map(|call| &*call.name)
            }
        }
    }

    /// The call it is about.
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        match self {
            Self::Tool(call) => Some(call),
            Self::Told(
                HookEvent::PostToolUse { call, .. }
                | HookEvent::PostToolUseFailure { call, .. }
                | HookEvent::PermissionRequest { call }
                | HookEvent::PermissionDenied { call, .. },
            ) => Some(call),
            Self::Start(_) | Self::Prompt(_) | Self::Stop { .. } | Self::Told(_) => None,
        }
    }

    /// What handlers read.
    pub(crate) fn payload(&self, facts: &dyn SessionFacts) -> Value {
        let mut payload = Payload::new(self.event(), facts);
        match self {
            Self::Start(source) => payload.put("source", source.as_str()),
            Self::Prompt(text) => payload.prompt(text),
            Self::Tool(call) => payload.call(call),
            Self::Stop { text, rerun } => {
                payload.put("stop_hook_active", *rerun == Rerun::Yes);
                payload.put("last_assistant_message", *text);
            }
            Self::Told(event) => payload.told(event),
        }
        payload.0.into()
    }
}

/// History is shortened only because it must be; nobody asks for it.
const TRIGGER: &str = "auto";

/// An object being written.
struct Payload(Map<String, Value>);

impl Payload {
    fn new(event: EventName, facts: &dyn SessionFacts) -> Self {
        let mut payload = Self(Map::new());
        payload.put("session_id", &*facts.session_id());
        payload.put("hook_event_name", event.as_str());
        payload.put("hookEventName", event.as_str());
        payload.put("cwd", shown(&facts.cwd()));
        payload.put("permission_mode", json!(facts.permission_mode()));
        if let Some(path) = facts.transcript_path() {
            payload.put("transcript_path", shown(&path));
        }
        payload
    }

    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn call(&mut self, call: &ToolCall) {
        self.put("turn_index", call.turn);
        self.put("tool_name", &*call.name);
        self.put("tool_input", call.input.clone());
        self.put("tool_use_id", &*call.id);
        self.put(
            "tool",
            json!({ "name": &*call.name, "useId": &*call.id, "input": call.input }),
        );
        if let Some(agent) = &call.agent {
            self.put("agent_id", &**agent);
        }
    }

    fn response(&mut self, output: &ToolOutput) {
        let response = json!({
            "status": status(output.status),
            "is_error": output.is_error(),
            "content": output.text(),
        });
        self.put("tool_response", response);
    }

    fn prompt(&mut self, text: &str) {
        self.put("prompt", text);
        let command = slash_command(text);
        self.put("is_slash", command.is_some());
        if let Some((name, args)) = command {
            self.put("command", name);
            self.put("args", args);
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        self.put("subtype", outcome.subtype());
        if let Some(message) = outcome.message() {
            self.put("error", message);
        }
    }

    #[expect(clippy::too_many_lines, reason = "a few lines for each event")]
    fn told(&mut self, event: &HookEvent) {
        match event {
            HookEvent::SessionEnd { reason } => self.put("reason", reason.as_str()),
            HookEvent::PreCompact { reason } => {
                self.put(
                    "trigger",
                    match reason {
                        CompactionReason::Threshold | CompactionReason::TooLong => TRIGGER,
                        CompactionReason::Asked => "manual",
                    },
                );
                self.put(
                    "reason",
                    match reason {
                        CompactionReason::Threshold => "threshold",
                        CompactionReason::TooLong => "too_long",
                        CompactionReason::Asked => "asked",
                    },
                );
            }
            HookEvent::PostCompact {
                before_tokens,
                after_tokens,
            } => {
                self.put("trigger", TRIGGER);
                self.put("before_tokens", *before_tokens);
                self.put("after_tokens", *after_tokens);
            }
            HookEvent::PostToolUse { call, output } => {
                self.call(call);
                self.response(output);
            }
            HookEvent::PostToolUseFailure { call, output } => {
                self.call(call);
                self.response(output);
                self.put("error", output.text());
            }
            HookEvent::ConfigChange { keys } => self.put("keys", keys.clone()),
            HookEvent::CwdChanged { from, to } => {
                self.put("old_cwd", shown(from));
                self.put("new_cwd", shown(to));
            }
            HookEvent::FileChanged { path } => {
                self.put("path", shown(path));
                self.put("file_path", shown(path));
            }
            HookEvent::SubagentStart { call_id, prompt } => {
                self.put("agent_id", &**call_id);
                self.put("prompt", prompt.as_str());
            }
            HookEvent::SubagentStop { call_id, outcome } => {
                self.put("agent_id", &**call_id);
                self.outcome(outcome);
                if let Outcome::Success { text } = outcome {
                    self.put("last_assistant_message", text.as_str());
                }
            }
            HookEvent::WorktreeCreate {
                name,
                path,
                branch,
                base,
            } => {
                self.put("name", name.as_str());
                self.put("worktree_path", shown(path));
                self.put("branch", branch.as_str());
                self.put("base", base.as_str());
            }
            HookEvent::WorktreeRemove {
                name,
                path,
                branch,
                verdict,
            } => {
                self.put("name", name.as_str());
                self.put("worktree_path", shown(path));
                if let Some(branch) = branch {
                    self.put("branch", branch.as_str());
                }
                self.put("verdict", verdict.as_str());
            }
            HookEvent::TaskCreated { id, task } => {
                self.put("task_id", id.as_str());
                self.put("task", task.as_str());
            }
            HookEvent::TaskCompleted { id } => self.put("task_id", id.as_str()),
            HookEvent::PermissionRequest { call } => self.call(call),
            HookEvent::PermissionDenied { call, denial } => {
                self.call(call);
                self.put("reason", denial.reason.as_str());
                self.put("denied_by", denied_by(denial.source));
                if let Some(rule) = &denial.rule {
                    self.put("rule", rule.as_str());
                }
            }
            HookEvent::Notification { kind, message } => {
                self.put("notification_type", kind.as_str());
                self.put("message", message.as_str());
            }
            // Nobody was asked before this end, because the model was sent on too often already.
            HookEvent::Stopped { usage } => {
                self.put("stop_hook_active", true);
                self.put("usage", json!(usage));
            }
            HookEvent::StopFailure { outcome } => self.outcome(outcome),
        }
    }
}

/// Takes `/name args` apart. A path is no command.
fn slash_command(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let (name, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_of_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    (name.starts_with(char::is_alphabetic) && name.chars().all(is_of_a_name))
        .then(|| (name, args.trim()))
}

fn status(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Ok => "ok",
        ToolStatus::Failed => "failed",
        ToolStatus::InvalidInput => "invalid_input",
        ToolStatus::Denied => "denied",
        ToolStatus::CouldNotRun => "could_not_run",
        ToolStatus::TimedOut => "timed_out",
        ToolStatus::Cancelled => "cancelled",
    }
}

fn denied_by(source: DenialSource) -> &'static str {
    match source {
        DenialSource::Rule => "rule",
        DenialSource::Hook => "hook",
        DenialSource::Classifier => "classifier",
        DenialSource::Person => "person",
        DenialSource::Unattended => "unattended",
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
