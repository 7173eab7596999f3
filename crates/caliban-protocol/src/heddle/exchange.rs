//! One `send` from its message to its result: what happens in the engine as numbered events, and
//! what it came to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, Inquiry, Outcome, RunTotals, ToolOutput, ToolStatus};
use caliban_model::{Message, Retry, Usage};
use serde_json::Value;

use super::envelope::{Code, Envelope, of_outcome};
use super::response::{
    Correlation, Latencies, MadeCall, Payload, Response, SendResult, Status, Tokens, TurnState,
};
use super::tools::{wire_args, wire_name};
use super::version::Version;

/// Characters of a tool's result that are shown.
const PREVIEW: usize = 500;
/// The tool whose call ends planning.
const EXIT_PLAN: &str = "ExitPlanMode";

/// Whether the answer is a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    Expected,
    /// It was told already, or never asked for.
    None,
}

/// What the session had come to before.
#[derive(Debug, Clone, Copy, Default)]
pub struct Baseline {
    turns: u32,
    tokens: Tokens,
    model_time: Duration,
    /// Messages of the conversation.
    messages: usize,
}

impl Baseline {
    pub fn new(totals: &RunTotals, messages: usize) -> Self {
        Self {
            turns: totals.turns,
            tokens: tokens(&totals.usage),
            model_time: totals.model_time,
            messages,
        }
    }
}

/// What is known when a `send` begins.
#[derive(Debug)]
pub struct Opening {
    pub id: String,
    pub version: Version,
    /// What results carry; events carry it only where the client gave ids.
    pub correlation: Correlation,
    /// Who is asked.
    pub provider: String,
    pub plan: Plan,
    pub before: Baseline,
}

/// Translates the events of one `send`, and counts.
#[derive(Debug)]
pub struct Exchange {
    opening: Opening,
    next_seq: u64,
    iteration: u32,
    /// Calls that have not ended, by id.
    calls: HashMap<Arc<str>, Call>,
    made: Vec<MadeCall>,
    counted: Tokens,
    tool_time: Duration,
    messages: usize,
    /// Messages there were when compaction began.
    compacting: Option<usize>,
    routed_model: Option<String>,
}

#[derive(Debug)]
struct Call {
    name: Arc<str>,
    input: Value,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Announced,
    Running,
}

impl Exchange {
    pub fn new(opening: Opening) -> Self {
        let messages = opening.before.messages;
        Self {
            opening,
            next_seq: 0,
            iteration: 0,
            calls: HashMap::new(),
            made: Vec::new(),
            counted: Tokens::default(),
            tool_time: Duration::ZERO,
            messages,
            compacting: None,
            routed_model: None,
        }
    }

    pub fn id(&self) -> &str {
        &self.opening.id
    }

    /// How many messages the conversation has by now.
    pub fn messages(&self) -> usize {
        self.messages
    }

    pub fn heartbeat(&mut self, elapsed: Duration) -> Response {
        self.numbered(Payload::Heartbeat {
            duration_ms: millis(elapsed),
        })
    }

    /// What is told of an event; the result is not part of it.
    pub fn events(&mut self, event: &Event) -> Vec<Response> {
        let payloads = match event {
            // Of other agents only what costs or needs somebody.
            Event::Nested { event, .. } => self.of_sub_agent(event),
            event => self.of_agent(event),
        };
        payloads
            .into_iter()
            .map(|payload| self.numbered(payload))
            .collect()
    }

    /// The one result, whatever the end was. Without totals there are only those counted here.
    pub fn result(
        self,
        outcome: &Outcome,
        totals: Option<&RunTotals>,
        elapsed: Duration,
    ) -> Response {
        let error = of_outcome(outcome, self.opening.version);
        let iterations = totals.map_or(self.iteration, |totals| {
            totals.turns.saturating_sub(self.opening.before.turns)
        });
        // A cancelled send says what was done and whose it was, and nothing else.
        if *outcome == Outcome::Cancelled {
            return Response::Result(Box::new(SendResult {
                id: self.opening.id,
                status: Status::Error,
                response: None,
                tool_calls_made: self.made,
                usage: None,
                iterations,
                error,
                correlation: self.opening.correlation,
                latencies: None,
                routed_model: None,
            }));
        }
        let (usage, model_time) = match totals {
            Some(totals) => (
                less(tokens(&totals.usage), self.opening.before.tokens),
                totals
                    .model_time
                    .saturating_sub(self.opening.before.model_time),
            ),
            None => (self.counted, Duration::ZERO),
        };
        let response = outcome.answer().map(str::to_owned);
        Response::Result(Box::new(SendResult {
            id: self.opening.id,
            status: match error {
                None => Status::Ok,
                Some(_) => Status::Error,
            },
            response,
            tool_calls_made: self.made,
            usage: Some(usage),
            iterations,
            error,
            correlation: self.opening.correlation,
            latencies: Some(Latencies {
                model: millis(model_time),
                tool: millis(self.tool_time),
                total: millis(elapsed),
            }),
            routed_model: self.routed_model,
        }))
    }

    fn numbered(&mut self, event: Payload) -> Response {
        let event_seq = self.next_seq;
        self.next_seq += 1;
        let Correlation {
            task_id, worker_id, ..
        } = &self.opening.correlation;
        Response::Event {
            event,
            event_seq,
            send_id: self.opening.id.clone(),
            correlation: if task_id.is_some() || worker_id.is_some() {
                self.opening.correlation.clone()
            } else {
                Correlation::default()
            },
        }
    }

    fn of_agent(&mut self, event: &Event) -> Vec<Payload> {
        match event {
            Event::TextDelta { text } if !text.is_empty() => {
                vec![Payload::ContentDelta { text: text.clone() }]
            }
            Event::TurnStarted { turn } => {
                self.iteration = *turn;
                self.state(TurnState::Model)
            }
            Event::ToolReady {
                id, name, input, ..
            } => {
                let told = if self.calls.is_empty() {
                    self.state(TurnState::Tools)
                } else {
                    Vec::new()
                };
                self.announce(id, name, input);
                told
            }
            Event::PermissionAsked { inquiry } => {
                let mut told = vec![self.asked(inquiry)];
                told.extend(self.state(TurnState::Permission));
                told
            }
            Event::PermissionAnswered { .. } => self.state(TurnState::Tools),
            Event::ToolStarted { id, .. } => self.started(id),
            Event::ToolFinished {
                id,
                name,
                output,
                duration,
                denial,
            } => match denial {
                Some(denial) => {
                    self.calls.remove(id);
                    vec![denied(name, &denial.reason)]
                }
                None => self.finished(id, name, output, *duration),
            },
            Event::AssistantMessage { message, usage, .. } => {
                if !message.content.is_empty() {
                    self.messages += 1;
                }
                vec![self.usage(message, usage)]
            }
            Event::PromptAccepted { .. }
            | Event::SentOn { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. } => {
                self.messages += 1;
                Vec::new()
            }
            Event::Interrupted { said, .. } => {
                self.messages += 1 + usize::from(said.is_some());
                Vec::new()
            }
            Event::HistoryReplaced { messages } => {
                self.messages = messages.len();
                Vec::new()
            }
            Event::CompactionStarted { .. } => {
                self.compacting = Some(self.messages);
                self.state(TurnState::Compaction)
            }
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => self.compacted(*before_tokens, *after_tokens),
            Event::Retrying(retry) => vec![retrying(retry, self.opening.provider.clone())],
            Event::Finished { outcome, .. } => self.ending(outcome),
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolProgress { .. }
            | Event::TurnEnded { .. }
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::Nested { .. } => Vec::new(),
        }
    }

    fn of_sub_agent(&mut self, event: &Event) -> Vec<Payload> {
        match event {
            Event::ToolReady {
                id, name, input, ..
            } => {
                self.announce(id, name, input);
                Vec::new()
            }
            Event::PermissionAsked { inquiry } => vec![self.asked(inquiry)],
            Event::ToolFinished {
                id, name, denial, ..
            } => {
                self.calls.remove(id);
                let reason = denial.as_ref().map(|denial| &denial.reason);
                reason
                    .map(|reason| denied(name, reason))
                    .into_iter()
                    .collect()
            }
            Event::AssistantMessage { message, usage, .. } => {
                let routed = self.routed_model.take();
                let told = vec![self.usage(message, usage)];
                // The result names the model of the conversation.
                self.routed_model = routed;
                told
            }
            Event::PromptAccepted { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => Vec::new(),
        }
    }

    fn state(&self, state: TurnState) -> Vec<Payload> {
        match self.opening.version {
            Version::V0_2 => Vec::new(),
            Version::V0_5 => vec![Payload::TurnState {
                state,
                iteration: self.iteration,
            }],
        }
    }

    fn announce(&mut self, id: &Arc<str>, name: &Arc<str>, input: &Value) {
        let call = Call {
            name: Arc::clone(name),
            input: input.clone(),
            stage: Stage::Announced,
        };
        self.calls.insert(Arc::clone(id), call);
    }

    fn asked(&self, inquiry: &Inquiry) -> Payload {
        Payload::PermissionRequest {
            name: wire_name(&inquiry.call.name).to_owned(),
            reason: inquiry.question.reason.clone(),
            request_id: match self.opening.version {
                Version::V0_2 => None,
                Version::V0_5 => Some(inquiry.call.id.to_string()),
            },
        }
    }

    fn started(&mut self, id: &Arc<str>) -> Vec<Payload> {
        let Some(call) = self.calls.get_mut(id) else {
            return Vec::new();
        };
        call.stage = Stage::Running;
        let name = wire_name(&call.name).to_owned();
        let args = wire_args(&call.name, &call.input);
        self.made.push(MadeCall {
            name: name.clone(),
            args: args.clone(),
        });
        vec![Payload::ToolStart {
            name,
            args,
            id: id.to_string(),
        }]
    }

    /// The end of a call that was permitted. One that did not get to run because its input was
    /// wrong began and ended at once; one that was cancelled before never was.
    fn finished(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        output: &ToolOutput,
        duration: Duration,
    ) -> Vec<Payload> {
        let stage = self.calls.get(id).map(|call| call.stage);
        let mut told = match stage {
            Some(Stage::Running) => {
                self.tool_time += duration;
                Vec::new()
            }
            Some(Stage::Announced) if output.status != ToolStatus::Cancelled => self.started(id),
            Some(Stage::Announced) | None => {
                self.calls.remove(id);
                return Vec::new();
            }
        };
        let call = self.calls.remove(id);
        told.push(Payload::ToolEnd {
            name: wire_name(name).to_owned(),
            result_preview: preview(output.text().trim_end()),
            id: id.to_string(),
        });
        let plan = call.filter(|_| &**name == EXIT_PLAN && !output.is_error());
        let plan = plan.and_then(|call| call.input.get("plan")?.as_str().map(str::to_owned));
        if let Some(plan) = plan {
            self.opening.plan = Plan::None;
            told.push(Payload::PlanComplete { plan });
        }
        told
    }

    fn usage(&mut self, message: &Message, usage: &Usage) -> Payload {
        let tokens = tokens(usage);
        self.counted = Tokens::new(
            self.counted.prompt.saturating_add(tokens.prompt),
            self.counted.completion.saturating_add(tokens.completion),
        );
        if self.opening.version == Version::V0_5 {
            let origin = message.origin.as_ref();
            let model = origin.map(|origin| format!("{}/{}", origin.provider, origin.model));
            self.routed_model = model;
        }
        Payload::Usage {
            tokens,
            routed_model: self.routed_model.clone(),
        }
    }

    fn compacted(&mut self, tokens_before: u64, tokens_after: u64) -> Vec<Payload> {
        let before = self.compacting.take().unwrap_or(self.messages);
        // One that found nothing to leave out changed nothing.
        if tokens_before == tokens_after && before == self.messages {
            return Vec::new();
        }
        vec![
            Payload::ContextCompact,
            Payload::ContextPrune {
                messages_pruned: before.saturating_sub(self.messages),
                tokens_before,
                tokens_after,
            },
        ]
    }

    /// What is told of the end before the result.
    pub fn ended(&mut self, outcome: &Outcome) -> Vec<Response> {
        let told = self.ending(outcome);
        told.into_iter()
            .map(|payload| self.numbered(payload))
            .collect()
    }

    fn ending(&mut self, outcome: &Outcome) -> Vec<Payload> {
        if let (Outcome::Success { text }, Plan::Expected) = (outcome, self.opening.plan) {
            self.opening.plan = Plan::None;
            return vec![Payload::PlanComplete { plan: text.clone() }];
        }
        if *outcome == Outcome::Cancelled {
            // Whoever cancelled knows.
            return Vec::new();
        }
        let provider = outcome.provider_error().map(|error| error.provider.clone());
        let error = of_outcome(outcome, self.opening.version);
        error
            .map(|error| told_error(error, provider))
            .into_iter()
            .collect()
    }
}

fn told_error(error: Envelope, provider: Option<String>) -> Payload {
    Payload::Error {
        code: error.code,
        message: error.message,
        retryable: error.retryable,
        provider,
        details: error.details.unwrap_or_default(),
    }
}

/// A call to the provider that failed and is made again by itself.
fn retrying(retry: &Retry, provider: String) -> Payload {
    let mut error = Envelope::new(Code::ProviderError, retry.message.clone());
    error.details = Some(serde_json::json!({
        "status": retry.status,
        "attempt": retry.attempt,
        "retry_delay_ms": millis(retry.delay),
    }));
    told_error(error, Some(provider))
}

fn denied(name: &str, reason: &str) -> Payload {
    Payload::PermissionDenied {
        name: wire_name(name).to_owned(),
        reason: reason.to_owned(),
    }
}

fn preview(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} (truncated)", &text[..end]),
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens::new(usage.total_input(), usage.output)
}

fn less(sum: Tokens, earlier: Tokens) -> Tokens {
    Tokens::new(
        sum.prompt.saturating_sub(earlier.prompt),
        sum.completion.saturating_sub(earlier.completion),
    )
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
