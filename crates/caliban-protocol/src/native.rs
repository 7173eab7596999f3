//! The native dialect: one JSON frame per line, `system/init` first and `result` last.

use std::time::Duration;

use caliban_agent::{
    AnswerStep, Denial, DenialSource, Event, Inquiry, Outcome, RunTotals, ToolOutput,
};
use caliban_model::{
    Block, Image, ImageSource, Message, Retry, Shown, ToolContent, Usage, Warning, WarningKind,
};
use caliban_session::{Asked, Facts, QuestionKind};
use rust_decimal::prelude::ToPrimitive;
use serde_json::Value;

use crate::frame::{
    self, ApiRetrySubtype, AssistantRole, CompactionSubtype, DeniedBy, DeniedCall, ElicitationKind,
    ErrorSubtype, FallbackModelDetails, FallbackModelSubtype, Frame, HedgeLossDetails,
    HedgeLossSubtype, InitSubtype, McpServerState, ModelMismatchDetails, ModelMismatchSubtype,
    ParameterDroppedDetails, ParameterDroppedSubtype, Part, PermissionKind, PluginState, Progress,
    Protocol, SandboxState, Source, StoppedSubtype, SuccessSubtype, Tokens, Totals,
};
use crate::line::written;

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
    pub plugins: Vec<PluginState>,
    pub mcp_servers: Vec<McpServerState>,
    pub slash_commands: Vec<String>,
    pub sandbox: SandboxState,
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

impl From<&Facts> for Init {
    fn from(facts: &Facts) -> Self {
        let servers = facts.servers.iter();
        Self {
            session_id: facts.session_id.clone(),
            provider: facts.provider.clone(),
            model: facts.model.clone(),
            tools: facts.tools.clone(),
            setting_sources: facts.setting_sources.clone(),
            bare_mode: facts.bare,
            cwd: facts.cwd.clone(),
            permission_mode: facts.permission_mode.clone(),
            program_version: facts.program_version.clone(),
            pricing_as_of: facts.pricing_as_of.clone(),
            trusted: facts.trusted,
            fallback_model: facts.fallback_model.clone(),
            plugins: facts
                .plugins
                .iter()
                .map(|plugin| PluginState {
                    name: plugin.name.clone(),
                    path: plugin.path.clone(),
                    source: plugin.source.clone(),
                    version: plugin.version.clone(),
                })
                .collect(),
            mcp_servers: servers
                .map(|server| McpServerState {
                    name: server.name.clone(),
                    status: server.status.clone(),
                })
                .collect(),
            slash_commands: facts
                .commands
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            sandbox: SandboxState {
                backend: facts.sandbox.backend.clone(),
                enabled: facts.sandbox.enabled,
                reduced: facts.sandbox.reduced.clone(),
                egress: facts.sandbox.egress.clone(),
                reason: facts.sandbox.reason.clone(),
            },
            warnings: facts.warnings.clone(),
        }
    }
}

impl Init {
    pub fn frame(&self) -> Value {
        let frame = Frame::Init {
            subtype: InitSubtype::Init,
            session_id: &self.session_id,
            model: format!("{}/{}", self.provider, self.model),
            tools: &self.tools,
            plugins: &self.plugins,
            setting_sources: &self.setting_sources,
            mcp_servers: &self.mcp_servers,
            slash_commands: &self.slash_commands,
            bare_mode: self.bare_mode,
            cwd: &self.cwd,
            permission_mode: &self.permission_mode,
            version: &self.program_version,
            protocol: Protocol {
                dialect: "caliban",
                version: VERSION,
            },
            pricing_as_of: &self.pricing_as_of,
            trusted: self.trusted,
            sandbox: &self.sandbox,
            warnings: &self.warnings,
            fallback_model: self.fallback_model.as_deref(),
        };
        frame.value()
    }
}

impl Encoder {
    /// The frames of an event; the result is not among them, see [`result`].
    pub fn frames(&self, event: &Event) -> Vec<Value> {
        self.typed(event).iter().map(Frame::value).collect()
    }

    /// The same frames, each as a [`line`](crate::line).
    pub fn lines(&self, event: &Event) -> Vec<String> {
        self.typed(event).iter().map(written).collect()
    }

    fn typed(self, event: &Event) -> Vec<Frame<'_>> {
        let (event, parent) = match event {
            Event::Nested { parent, event } => match event.innermost() {
                (event, None) => (event, Some(&**parent)),
                (event, Some(inner)) => (event, Some(&**inner)),
            },
            event => (event, None),
        };
        match parent {
            None => self.of_session(event),
            Some(parent) => of_sub_agent(event, parent),
        }
    }

    fn of_session(self, event: &Event) -> Vec<Frame<'_>> {
        match event {
            Event::PromptAccepted { prompt } => match self.replay {
                Replay::Prompts => vec![Frame::User {
                    content: blocks(prompt),
                }],
                Replay::Nothing => Vec::new(),
            },
            Event::TextDelta { text } => match self.partial {
                Partial::Included => vec![Frame::Text { delta: text }],
                Partial::Left => Vec::new(),
            },
            Event::ThinkingDelta { text } => match self.partial {
                Partial::Included => vec![Frame::Thinking { delta: text }],
                Partial::Left => Vec::new(),
            },
            Event::Answer(step) => called(step, None).into_iter().collect(),
            Event::ToolFinished { id, output, .. } => vec![finished(id, output, None)],
            Event::TurnEnded { message } => match self.partial {
                Partial::Included => Vec::new(),
                Partial::Left => vec![Frame::Message {
                    role: AssistantRole::Assistant,
                    content: blocks(message),
                }],
            },
            Event::Retrying(retry) => retrying(retry),
            Event::Warning(warning) => vec![warned(warning)],
            Event::Notice { subtype, message } => vec![Frame::Warning { subtype, message }],
            Event::HookFired { event, output } | Event::HookPassed { event, output } => {
                match self.hooks {
                    HookEvents::Included => vec![Frame::HookEvent {
                        name: event,
                        output,
                    }],
                    HookEvents::Left => Vec::new(),
                }
            }
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => vec![Frame::Compaction {
                subtype: CompactionSubtype::Compaction,
                before_tokens: *before_tokens,
                after_tokens: *after_tokens,
            }],
            Event::TurnStarted { .. }
            | Event::ToolReady { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
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
}

/// What sub-agents do is shown under the call that runs them; what they say is their parent's to
/// read.
fn of_sub_agent<'a>(event: &'a Event, parent: &'a str) -> Vec<Frame<'a>> {
    match event {
        Event::Answer(step) => called(step, Some(parent)).into_iter().collect(),
        Event::ToolFinished { id, output, .. } => vec![finished(id, output, Some(parent))],
        Event::Retrying(retry) => retrying(retry),
        Event::Warning(warning) => vec![warned(warning)],
        Event::Notice { subtype, message } => vec![Frame::Warning { subtype, message }],
        Event::PromptAccepted { .. }
        | Event::TurnStarted { .. }
        | Event::TextDelta { .. }
        | Event::ThinkingDelta { .. }
        | Event::ToolReady { .. }
        | Event::PermissionAsked { .. }
        | Event::PermissionAnswered { .. }
        | Event::ToolStarted { .. }
        | Event::SentOn { .. }
        | Event::HistoryReplaced { .. }
        | Event::ToolProgress { .. }
        | Event::AssistantMessage { .. }
        | Event::Interrupted { .. }
        | Event::Steered { .. }
        | Event::ToolResults { .. }
        | Event::TurnEnded { .. }
        | Event::HookFired { .. }
        | Event::HookPassed { .. }
        | Event::CompactionStarted { .. }
        | Event::CompactionFinished { .. }
        | Event::Nested { .. }
        | Event::Finished { .. } => Vec::new(),
    }
}

/// The call that an answer comes to with this step: it is told as soon as its input is whole, while
/// the rest of the answer still comes.
fn called<'a>(step: &'a AnswerStep, parent: Option<&'a str>) -> Option<Frame<'a>> {
    match step {
        AnswerStep::BlockEnded { block } => match &**block {
            Block::ToolUse {
                id, name, input, ..
            } => Some(Frame::ToolUse {
                id,
                name,
                input,
                parent_tool_use_id: parent,
            }),
            Block::Text { .. }
            | Block::Image(_)
            | Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::Opaque { .. } => None,
        },
        AnswerStep::Started { .. }
        | AnswerStep::Measured { .. }
        | AnswerStep::ToolBegun { .. }
        | AnswerStep::ToolInput { .. }
        | AnswerStep::Stopped { .. } => None,
    }
}

fn finished<'a>(id: &'a str, output: &'a ToolOutput, parent: Option<&'a str>) -> Frame<'a> {
    Frame::ToolResult {
        tool_use_id: id,
        is_error: output.is_error(),
        content: output.content.iter().map(part).collect(),
        parent_tool_use_id: parent,
    }
}

/// What somebody who attends is asked.
pub fn question(asked: &Asked) -> Value {
    let frame = match &asked.kind {
        QuestionKind::Permission(inquiry) => {
            let Inquiry { call, question, .. } = &**inquiry;
            let place = question.place.as_ref();
            Frame::PermissionQuestion {
                question: &asked.question,
                kind: PermissionKind::Permission,
                tool: &call.name,
                input: question.input.as_ref().unwrap_or(&call.input),
                tool_use_id: &call.id,
                agent: asked.agent.as_deref(),
                reason: &question.reason,
                rule: question.rule.as_deref(),
                rule_scope: place.map(|place| place.scope.as_str()),
                rule_written: place.and_then(|place| place.written.as_deref()),
                rule_comment: place.and_then(|place| place.comment.as_deref()),
                suggestions: &question.suggestions,
            }
        }
        QuestionKind::Elicitation(elicitation) => Frame::Elicitation {
            question: &asked.question,
            kind: ElicitationKind::Elicitation,
            server: &elicitation.server,
            message: &elicitation.message,
            schema: &elicitation.schema,
        },
    };
    frame.value()
}

/// The last frame of an exchange.
pub fn result(outcome: &Outcome, totals: &RunTotals, session_id: &str) -> Value {
    let stopped = |subtype| Frame::Stopped {
        subtype,
        progress: progress(totals),
        totals: sums(outcome, totals, session_id),
    };
    let frame = match outcome {
        Outcome::Success { text } => Frame::Success {
            subtype: SuccessSubtype::Success,
            result: text,
            totals: sums(outcome, totals, session_id),
            structured_output: totals.structured.as_ref(),
            report: None,
        },
        Outcome::Obeyed { text, report } => Frame::Success {
            subtype: SuccessSubtype::Success,
            result: text,
            totals: sums(outcome, totals, session_id),
            structured_output: totals.structured.as_ref(),
            report: report.as_deref(),
        },
        Outcome::MaxTurns { .. } => stopped(StoppedSubtype::MaxTurns),
        Outcome::BudgetExceeded { .. } => stopped(StoppedSubtype::BudgetExceeded),
        Outcome::Cancelled => stopped(StoppedSubtype::Cancelled),
        Outcome::MaxTokens => stopped(StoppedSubtype::MaxTokens),
        Outcome::Provider(_)
        | Outcome::HookDenied { .. }
        | Outcome::Refusal { .. }
        | Outcome::ContentFilter { .. }
        | Outcome::ContextFull { .. }
        | Outcome::Looping { .. }
        | Outcome::SchemaMismatch { .. }
        | Outcome::Unusable { .. }
        | Outcome::Misused { .. }
        | Outcome::Internal { .. } => Frame::Failed {
            subtype: ErrorSubtype::Error,
            error: outcome.message().unwrap_or_default(),
            progress: progress(totals),
            totals: sums(outcome, totals, session_id),
        },
    };
    frame.value()
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

fn progress(totals: &RunTotals) -> Progress<'_> {
    Progress {
        last_assistant_text: totals.last_text.as_deref(),
        tool_calls_seen: totals.tool_calls,
    }
}

fn sums<'a>(outcome: &Outcome, totals: &'a RunTotals, session_id: &'a str) -> Totals<'a> {
    Totals {
        session_id,
        total_cost_usd: totals.cost.to_f64().unwrap_or_default(),
        turns: totals.turns,
        total_input_tokens: totals.usage.total_input(),
        total_output_tokens: totals.usage.output,
        is_error: outcome.answer().is_none(),
        duration_ms: millis(totals.duration),
        usage: tokens(&totals.usage),
        denials: totals
            .denials
            .iter()
            .map(|(id, tool, reason)| denied(id, tool, reason))
            .collect(),
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write(),
        output: usage.output,
        reasoning: usage.reasoning,
    }
}

fn denied<'a>(id: &'a str, tool: &'a str, denial: &'a Denial) -> DeniedCall<'a> {
    DeniedCall {
        tool,
        id,
        source: match denial.source {
            DenialSource::Rule => DeniedBy::Rule,
            DenialSource::Hook => DeniedBy::Hook,
            DenialSource::Classifier => DeniedBy::Classifier,
            DenialSource::Person => DeniedBy::Person,
            DenialSource::Unattended => DeniedBy::Unattended,
        },
        rule: denial.rule.as_deref(),
        reason: &denial.reason,
        remedy: denial.remedy.as_deref(),
    }
}

fn retrying(retry: &Retry) -> Vec<Frame<'_>> {
    let mut frames = vec![Frame::ApiRetry {
        subtype: ApiRetrySubtype::ApiRetry,
        attempt: retry.attempt,
        max_retries: retry.max_retries,
        retry_delay_ms: millis(retry.delay),
        error_status: retry.status,
        error_category: retry.category.as_str(),
    }];
    if retry.shown == Shown::Superseded {
        frames.push(Frame::Warning {
            subtype: "superseded",
            message: "the answer broke off; what was sent of this turn is void and begins anew",
        });
    }
    frames
}

fn warned(warning: &Warning) -> Frame<'_> {
    let Warning { kind, message } = warning;
    match kind {
        WarningKind::ModelMismatch { requested, actual } => Frame::ModelMismatch {
            subtype: ModelMismatchSubtype::ModelMismatch,
            message,
            details: ModelMismatchDetails { requested, actual },
        },
        WarningKind::ParameterDropped { parameter } => Frame::ParameterDropped {
            subtype: ParameterDroppedSubtype::ParameterDropped,
            message,
            details: ParameterDroppedDetails { parameter },
        },
        WarningKind::Rerouted { hop } => Frame::FallbackModel {
            subtype: FallbackModelSubtype::FallbackModel,
            message,
            details: FallbackModelDetails {
                route_id: &hop.route_id,
                purpose: hop.purpose.slug(),
                kind: hop.kind.as_str(),
                from: hop.from.to_string(),
                to: hop.to.to_string(),
                reason: &hop.reason,
                markers_cleared: hop.markers_cleared,
            },
        },
        WarningKind::HedgeLoss { loss } => Frame::HedgeLoss {
            subtype: HedgeLossSubtype::HedgeLoss,
            message,
            details: HedgeLossDetails {
                route_id: &loss.route_id,
                purpose: loss.purpose.slug(),
                kind: kind.subtype(),
                from: loss.from.to_string(),
                to: loss.to.to_string(),
                input_tokens: loss.usage.total_input(),
                output_tokens: loss.usage.output,
                estimated: loss.usage.estimated,
                cost_usd: loss.cost.and_then(|cost| cost.to_f64()),
            },
        },
        WarningKind::UsageEstimated => Frame::Warning {
            subtype: kind.subtype(),
            message,
        },
    }
}

/// A message's blocks as programs read them: without what only a provider understands.
fn blocks(message: &Message) -> Vec<frame::Block<'_>> {
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => Some(frame::Block::Text { text }),
            Block::Thinking { text, .. } => Some(frame::Block::Thinking { thinking: text }),
            Block::ToolUse {
                id, name, input, ..
            } => Some(frame::Block::ToolUse { id, name, input }),
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => Some(frame::Block::ToolResult {
                tool_use_id,
                is_error: *is_error,
                content: content.iter().map(part).collect(),
            }),
            Block::Image(image) => Some(frame::Block::Image {
                source: source(image),
            }),
            Block::RedactedThinking { .. } | Block::Opaque { .. } => None,
        })
        .collect()
}

fn part(content: &ToolContent) -> Part<'_> {
    match content {
        ToolContent::Text { text } => Part::Text { text },
        ToolContent::Image(image) => Part::Image {
            source: source(image),
        },
    }
}

fn source(image: &Image) -> Source<'_> {
    match &image.source {
        ImageSource::Base64 { data } => Source::Base64 {
            media_type: image.mime.as_str(),
            data,
        },
        ImageSource::Url { url } => Source::Url { url },
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
