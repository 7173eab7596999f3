//! What the events of a session mean to somebody who watches many of them: metrics, logs, spans.

mod hooks;
mod model;
mod tools;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Answer, CompactionReason, Event, Outcome, RunTotals};
use caliban_model::{Message, Origin, Usage, Warning, WarningKind};
use caliban_session::{Facts, SessionEvent, What};
use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::bodies::{self, Half, Place, RawBody};
use crate::config::{Contents, Included};
use crate::data::{Attributes, Context, LONGEST, Record, Severity, Span, SpanKind, shortened};
use crate::hearer::Means;
use crate::instruments::{Instrument, Instruments, Metric, Temporality};
use crate::traces::Seed;

use model::ModelCall;
use tools::ToolCall;

/// Spans and records that may wait to be sent; more are counted and let go.
const WAITING: usize = 4_096;
/// The agents of one prompt that have spans of their own.
const AGENTS: usize = 256;

/// Turns events into what is exported.
#[derive(Debug)]
pub(crate) struct Translator {
    contents: Contents,
    /// What is known of everything that is told, and what metrics say of it.
    common: Attributes,
    measured: Attributes,
    included: Included,
    instruments: Instruments,
    records: Vec<Record>,
    spans: Vec<Span>,
    /// What did not find room.
    dropped: u64,
    /// A directory that takes nothing is told of once.
    has_warned_of_bodies: bool,
    sequence: u64,
    provider: String,
    model: String,
    seed: Seed,
    run: Option<Run>,
    /// What was told of each model, to tell the rest at the end of a prompt.
    told: HashMap<Origin, (Usage, Decimal)>,
}

/// A prompt that is worked on.
#[derive(Debug)]
struct Run {
    prompt: Arc<str>,
    began: Timestamp,
    context: Context,
    parent: Option<[u8; 8]>,
    /// By the call that runs it; the session's own has none.
    agents: HashMap<Option<Arc<str>>, Agent>,
    compaction: Option<(Timestamp, CompactionReason)>,
    /// The prompt as the conventions write messages, where somebody wants it.
    asked: Option<String>,
}

/// An agent at work.
#[derive(Debug)]
struct Agent {
    context: Context,
    began: Timestamp,
    parent: Option<[u8; 8]>,
    /// Who answered it last.
    origin: Option<Origin>,
    call: Option<ModelCall>,
    tools: HashMap<Arc<str>, ToolCall>,
}

/// Everything that waits to be sent.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) metrics: Vec<Metric>,
    pub(crate) records: Vec<Record>,
    pub(crate) spans: Vec<Span>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.metrics.is_empty() && self.records.is_empty() && self.spans.is_empty()
    }
}

/// What a translator begins with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Beginning {
    pub(crate) contents: Contents,
    pub(crate) temporality: Temporality,
    pub(crate) included: Included,
    pub(crate) seed: Seed,
}

impl Translator {
    pub(crate) fn new(beginning: Beginning, now: Timestamp) -> Self {
        Self {
            contents: beginning.contents,
            common: Attributes::default(),
            measured: Attributes::default(),
            included: beginning.included,
            instruments: Instruments::new(beginning.temporality, now),
            records: Vec::new(),
            spans: Vec::new(),
            dropped: 0,
            has_warned_of_bodies: false,
            sequence: 0,
            provider: String::new(),
            model: String::new(),
            seed: beginning.seed,
            run: None,
            told: HashMap::new(),
        }
    }

    /// Metrics, too, where it is their time.
    pub(crate) fn taken(&mut self, now: Timestamp) -> Batch {
        Batch {
            metrics: self.instruments.taken(now),
            ..self.happened()
        }
    }

    /// What happened, without metrics.
    pub(crate) fn happened(&mut self) -> Batch {
        Batch {
            metrics: Vec::new(),
            records: std::mem::take(&mut self.records),
            spans: std::mem::take(&mut self.spans),
        }
    }

    /// How many spans and records found no room since this was last asked.
    pub(crate) fn dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    pub(crate) fn hear(&mut self, event: &SessionEvent) {
        let at = event.at;
        match &event.what {
            What::Opened(facts) => self.opened(facts, at),
            What::Began { prompt, facts } => {
                self.provider.clone_from(&facts.provider);
                self.model.clone_from(&facts.model);
                self.began(prompt, at);
            }
            What::Run(event) => {
                let (event, agent) = event.innermost();
                self.step(event, agent, at);
            }
            What::Ended {
                outcome, totals, ..
            } => self.ended(outcome, totals, at),
            What::ModeChanged { mode } => {
                let attributes = Attributes::default().with("to_mode", mode.to_string());
                self.log(at, "permission_mode_changed", Severity::Info, attributes);
            }
            What::ModelChanged { model } => self.model = model.to_string(),
            What::Closed { .. } => self.closed(at),
            What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::Asked(_)
            | What::Answered(_)
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing => {}
        }
    }

    fn opened(&mut self, facts: &Facts, at: Timestamp) {
        self.provider.clone_from(&facts.provider);
        self.model.clone_from(&facts.model);
        self.common.set("session.id", facts.session_id.clone());
        self.measured = self.included.attributes(&facts.session_id);
        // The system prompt alone is no past.
        let start = if facts.messages < 2 {
            "fresh"
        } else {
            "resume"
        };
        let attributes = self.measured.clone().with("start_type", start);
        self.instruments.count(Instrument::Sessions, attributes, 1);
        for server in &facts.servers {
            let name = self.contents.name(&server.name);
            let attributes = Attributes::default()
                .with("mcp_server.name", name)
                .with("status", server.status.clone());
            self.log(at, "mcp_server_connection", Severity::Info, attributes);
        }
    }

    fn began(&mut self, prompt: &Arc<str>, at: Timestamp) {
        let (context, parent) = self.seed.run(prompt);
        let agent = Agent::new(context, parent, at);
        self.run = Some(Run {
            prompt: Arc::clone(prompt),
            began: at,
            context,
            parent,
            agents: HashMap::from([(None, agent)]),
            compaction: None,
            asked: None,
        });
    }

    fn step(&mut self, event: &Event, agent: Option<&Arc<str>>, at: Timestamp) {
        match event {
            Event::PromptAccepted { prompt } if agent.is_none() => self.prompt(prompt, at),
            Event::TurnStarted { .. } => self.call_began(agent, at),
            Event::TextDelta { .. } | Event::ThinkingDelta { .. } => self.first_chunk(agent, at),
            Event::Answer(step) => self.answer_step(step, agent, at),
            Event::AssistantMessage {
                message,
                usage,
                cost,
            } => self.call_ended(message, usage, *cost, agent, at),
            Event::Retrying(retry) => self.retried(retry, agent, at),
            Event::Warning(Warning {
                kind: WarningKind::Rerouted { hop },
                ..
            }) => self.rerouted(hop, agent, at),
            Event::Warning(Warning {
                kind: WarningKind::HedgeLoss { loss },
                ..
            }) => self.hedge_lost(loss, at),
            Event::ToolReady {
                id,
                name,
                input,
                first_arg,
            } => self.tool_ready(id, name, input, first_arg.as_deref(), agent, at),
            Event::PermissionAsked { inquiry } => self.tool_asked(&inquiry.call.id, agent, at),
            Event::PermissionAnswered { id, answer, .. } => {
                self.tool_answered(id, answer, agent, at);
            }
            Event::ToolStarted { id, .. } => self.tool_started(id, agent, at),
            Event::ToolFinished {
                id,
                output,
                duration,
                denial,
                ..
            } => self.tool_finished(id, output, *duration, denial.as_ref(), agent, at),
            Event::HookFired { event, output } => self.hooked(event, output, agent, at),
            Event::CompactionStarted { reason } => {
                if let Some(run) = &mut self.run {
                    run.compaction = Some((at, *reason));
                }
            }
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => self.compacted(*before_tokens, *after_tokens, at),
            Event::PromptAccepted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookPassed { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// One half of a call as it was sent or answered.
    pub(crate) async fn body(
        &mut self,
        at: Timestamp,
        place: Option<&Place>,
        body: RawBody,
        means: &Means,
    ) {
        let (name, status) = match body.half {
            Half::Request => ("api_request_body", None),
            Half::Response(status) => ("api_response_body", Some(u32::from(status))),
        };
        let mut attributes = Attributes::default()
            .with("provider", body.provider.clone())
            .with("model", body.model.clone())
            .with("call", body.call)
            .with_known("status_code", status)
            .with("body_length", body.text.len() as u64);
        match place {
            None => return,
            Some(Place::Logs) => {
                attributes.set("body", shortened(&body.text, LONGEST));
                let is_cut = body.text.chars().nth(LONGEST).is_some();
                attributes.set("body_truncated", is_cut);
            }
            Some(Place::Directory(directory)) => {
                match bodies::write(directory.clone(), at, Arc::new(body)).await {
                    Ok(path) => attributes.set("body_ref", path.display().to_string()),
                    Err(error) => {
                        if !std::mem::replace(&mut self.has_warned_of_bodies, true) {
                            let directory = directory.display();
                            (means.warn)(&format!(
                                "`{directory}` does not take what is sent to models: {error}"
                            ));
                        }
                        return;
                    }
                }
            }
        }
        self.log(at, name, Severity::Info, attributes);
    }

    fn prompt(&mut self, prompt: &Message, at: Timestamp) {
        let text = prompt.text();
        let length = text.chars().count() as u64;
        let mut attributes = Attributes::default().with("prompt_length", length);
        if self.contents.prompts {
            let text = shortened(&text, LONGEST);
            if let Some(run) = &mut self.run {
                run.asked = Some(said("user", &text));
            }
            attributes.set("prompt", text);
        }
        self.log(at, "user_prompt", Severity::Info, attributes);
    }

    fn compacted(&mut self, before: u64, after: u64, at: Timestamp) {
        let begun = self.run.as_mut().and_then(|run| run.compaction.take());
        let trigger = match begun {
            Some((_, CompactionReason::Asked)) => "manual",
            Some((_, CompactionReason::Threshold | CompactionReason::TooLong)) | None => "auto",
        };
        let attributes = Attributes::default()
            .with("trigger", trigger)
            .with("pre_tokens", before)
            .with("post_tokens", after);
        let counted = self.measured.clone().with("trigger", trigger);
        self.instruments.count(Instrument::Compactions, counted, 1);
        if let (Some((began, _)), Some(run)) = (begun, &self.run) {
            let span = Span {
                context: run.context.child(),
                parent: Some(run.context.span),
                name: "caliban.compaction".to_owned(),
                kind: SpanKind::Internal,
                began,
                ended: at,
                attributes: attributes.clone(),
                error: None,
            };
            self.push_span(span);
        }
        self.log(at, "compact.event", Severity::Info, attributes);
    }

    fn ended(&mut self, outcome: &Outcome, totals: &RunTotals, at: Timestamp) {
        self.tell_the_rest(totals);
        self.failed(outcome, at);
        let Some(run) = self.run.take() else {
            return;
        };
        let error = match outcome {
            Outcome::Success { .. } | Outcome::Obeyed { .. } => None,
            other => Some(other.subtype().to_owned()),
        };
        self.end_agents(&run, error.as_deref(), at);
        let taken = elapsed(run.began, at);
        let attributes = self.measured.clone().with("type", "cli");
        self.instruments
            .measure(Instrument::ActiveTime, attributes, taken.as_secs_f64());
        let attributes = self
            .of_agent("caliban", None)
            .with_known("error.type", error.clone());
        let measured = Attributes::default()
            .with("gen_ai.operation.name", "invoke_agent")
            .with("gen_ai.agent.name", "caliban")
            .with("gen_ai.provider.name", provider(&self.provider))
            .with("gen_ai.request.model", self.model.clone())
            .with_known("error.type", error.clone());
        self.instruments
            .measure(Instrument::AgentDuration, measured, taken.as_secs_f64());
        let attributes = attributes
            .with("gen_ai.usage.input_tokens", totals.usage.total_input())
            .with("gen_ai.usage.output_tokens", totals.usage.output)
            .with("prompt.id", run.prompt.to_string())
            .with_known("gen_ai.input.messages", run.asked);
        let span = Span {
            context: run.context,
            parent: run.parent,
            name: "invoke_agent caliban".to_owned(),
            kind: SpanKind::Internal,
            began: run.began,
            ended: at,
            attributes,
            error,
        };
        self.push_span(span);
    }

    /// Tells what ended a prompt, where it was not its answer.
    fn failed(&mut self, outcome: &Outcome, at: Timestamp) {
        let of = Attributes::default().with("model", self.model.clone());
        let (name, of) = match outcome {
            Outcome::Provider(error) => (
                "api_error",
                of.with("error", shortened(&error.to_string(), 2_000)),
            ),
            Outcome::Refusal { .. } | Outcome::ContentFilter { .. } => ("api_refusal", of),
            Outcome::Internal { .. } => ("internal_error", of),
            Outcome::Success { .. }
            | Outcome::Obeyed { .. }
            | Outcome::MaxTurns { .. }
            | Outcome::BudgetExceeded { .. }
            | Outcome::MaxTokens
            | Outcome::Cancelled
            | Outcome::HookDenied { .. }
            | Outcome::ContextFull { .. }
            | Outcome::Looping { .. }
            | Outcome::SchemaMismatch { .. }
            | Outcome::Unusable { .. }
            | Outcome::Misused { .. } => return,
        };
        self.log(at, name, Severity::Error, of);
    }

    /// Ends what the end of a prompt left open: every span that began is sent.
    fn end_agents(&mut self, run: &Run, error: Option<&str>, at: Timestamp) {
        let why = error.unwrap_or("unfinished");
        for (of, agent) in &run.agents {
            if let Some(call) = &agent.call {
                let span = self.model_span(call, agent.context, at, Some(why.to_owned()));
                self.push_span(span);
            }
            for tool in agent.tools.values() {
                self.end_tool(tool, Some(why.to_owned()), at);
            }
            if of.is_some() {
                self.end_agent(agent, error.map(ToOwned::to_owned), at);
            }
        }
    }

    fn end_agent(&mut self, agent: &Agent, error: Option<String>, at: Timestamp) {
        let span = Span {
            context: agent.context,
            parent: agent.parent,
            name: "invoke_agent subagent".to_owned(),
            kind: SpanKind::Internal,
            began: agent.began,
            ended: at,
            attributes: self.of_agent("subagent", agent.origin.as_ref()),
            error,
        };
        self.push_span(span);
    }

    /// The session is over, whatever was being done.
    fn closed(&mut self, at: Timestamp) {
        if let Some(run) = self.run.take() {
            self.end_agents(&run, Some("closed"), at);
        }
    }

    /// The agent that an event is of; it begins with its first event.
    fn agent(&mut self, of: Option<&Arc<str>>, at: Timestamp) -> Option<&mut Agent> {
        let run = self.run.as_mut()?;
        let key = of.cloned();
        if !run.agents.contains_key(&key) {
            if run.agents.len() >= AGENTS {
                return None;
            }
            let tool = run
                .agents
                .values()
                .find_map(|agent| Some(agent.tools.get(of?)?.context));
            let above = tool.unwrap_or(run.context);
            let agent = Agent::new(above.child(), Some(above.span), at);
            run.agents.insert(key.clone(), agent);
        }
        run.agents.get_mut(&key)
    }

    /// What is known of an agent's own spans.
    fn of_agent(&self, name: &str, origin: Option<&Origin>) -> Attributes {
        let origin = origin.cloned().unwrap_or_else(|| self.origin());
        Attributes::default()
            .with("gen_ai.operation.name", "invoke_agent")
            .with("gen_ai.agent.name", name)
            .with("gen_ai.provider.name", provider(&origin.provider))
            .with("gen_ai.request.model", origin.model.to_string())
            .and(&self.conversation())
    }

    fn conversation(&self) -> Attributes {
        match self.common.0.get("session.id") {
            Some(id) => Attributes::default().with("gen_ai.conversation.id", id.clone()),
            None => Attributes::default(),
        }
    }

    fn log(&mut self, at: Timestamp, name: &'static str, severity: Severity, of: Attributes) {
        self.sequence += 1;
        let prompt = self.run.as_ref().map(|run| run.prompt.to_string());
        let record = Record {
            at,
            name,
            severity,
            attributes: of
                .and(&self.common)
                .with("event.name", name)
                .with("event.timestamp", at.to_string())
                .with("event.sequence", self.sequence)
                .with_known("prompt.id", prompt),
            context: self.run.as_ref().map(|run| run.context),
        };
        if self.records.len() < WAITING {
            self.records.push(record);
        } else {
            self.dropped += 1;
        }
    }

    fn push_span(&mut self, span: Span) {
        let span = Span {
            attributes: span.attributes.and(&self.common),
            ..span
        };
        if self.spans.len() < WAITING {
            self.spans.push(span);
        } else {
            self.dropped += 1;
        }
    }

    /// The part of the totals that no answer was told of: summaries, judgements, attempts that
    /// failed. So the sums are those of the result.
    fn tell_the_rest(&mut self, totals: &RunTotals) {
        for model in &totals.models {
            let origin = Origin::new(model.provider.as_str(), model.model.as_str());
            let told = self.told.get(&origin).copied().unwrap_or_default();
            let cost = model.cost.unwrap_or_default();
            let rest = Usage {
                input: model.usage.input.saturating_sub(told.0.input),
                cache_read: model.usage.cache_read.saturating_sub(told.0.cache_read),
                cache_write_5m: model
                    .usage
                    .cache_write_5m
                    .saturating_sub(told.0.cache_write_5m),
                cache_write_1h: model
                    .usage
                    .cache_write_1h
                    .saturating_sub(told.0.cache_write_1h),
                output: model.usage.output.saturating_sub(told.0.output),
                ..Usage::default()
            };
            let rest_cost = (cost - told.1).max(Decimal::ZERO);
            self.count_tokens(&origin, "auxiliary", &rest, rest_cost);
        }
    }

    /// Adds a call to what was consumed.
    fn count_tokens(
        &mut self,
        origin: &Origin,
        source: &'static str,
        usage: &Usage,
        cost: Decimal,
    ) {
        let of = self
            .measured
            .clone()
            .with("model", origin.model.to_string())
            .with("provider", origin.provider.to_string())
            .with("query_source", source);
        let kinds = [
            ("input", usage.input),
            ("output", usage.output),
            ("cacheRead", usage.cache_read),
            ("cacheCreation", usage.cache_write()),
        ];
        for (kind, number) in kinds {
            let of = of.clone().with("type", kind);
            self.instruments.count(Instrument::Tokens, of, number);
        }
        if let Some(cost) = cost.to_f64().filter(|cost| *cost > 0.0) {
            self.instruments.measure(Instrument::Cost, of, cost);
        }
        let (told, told_cost) = self.told.entry(origin.clone()).or_default();
        *told += *usage;
        *told_cost += cost;
    }
}

impl Agent {
    fn new(context: Context, parent: Option<[u8; 8]>, began: Timestamp) -> Self {
        Self {
            context,
            began,
            parent,
            origin: None,
            call: None,
            tools: HashMap::new(),
        }
    }
}

/// What was said about a question, as the conventions name it.
fn answered(answer: &Answer) -> (&'static str, &'static str) {
    use caliban_agent::Remember;
    match answer {
        Answer::Allow {
            remember: Remember::Once,
            ..
        } => ("accept", "user_temporary"),
        Answer::Allow {
            remember: Remember::Session { .. },
            ..
        } => ("accept", "user_permanent"),
        Answer::Deny { .. } => ("reject", "user_reject"),
        Answer::Nobody | Answer::TimedOut => ("reject", "config"),
    }
}

/// A message as the conventions write it.
fn said(role: &str, text: &str) -> String {
    let part = serde_json::json!({"type": "text", "content": text});
    serde_json::json!([{"role": role, "parts": [part]}]).to_string()
}

/// Our provider's name as the conventions have it.
fn provider(name: &str) -> &str {
    match name {
        "google" => "gcp.gemini",
        "bedrock" => "aws.bedrock",
        "vertex" => "gcp.vertex_ai",
        "azure" => "azure.ai.openai",
        name => name,
    }
}

fn elapsed(began: Timestamp, ended: Timestamp) -> Duration {
    ended.duration_since(began).try_into().unwrap_or_default()
}
