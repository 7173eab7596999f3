//! Calls of a model.

use std::sync::Arc;

use caliban_agent::AnswerStep;
use caliban_model::{HedgeLoss, Hop, Message, Origin, Purpose, Retry, StopReason, Usage};
use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::data::{Attributes, Context, LONGEST, Severity, Span, SpanKind, shortened};
use crate::instruments::Instrument;

use super::{Translator, elapsed, provider, said};

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct ModelCall {
    began: Timestamp,
    context: Context,
    /// Who is asked, where that is not the session's own model.
    asked: Option<Origin>,
    /// The model that answers, once it does.
    model: Option<Arc<str>>,
    first: Option<Timestamp>,
    finish: Option<String>,
    /// Attempts that failed.
    retries: u32,
}

impl Translator {
    pub(super) fn call_began(&mut self, agent: Option<&Arc<str>>, at: Timestamp) {
        if let Some(agent) = self.agent(agent, at) {
            agent.call = Some(ModelCall {
                began: at,
                context: agent.context.child(),
                asked: None,
                model: None,
                first: None,
                finish: None,
                retries: 0,
            });
        }
    }

    fn call(&mut self, agent: Option<&Arc<str>>, at: Timestamp) -> Option<&mut ModelCall> {
        self.agent(agent, at)?.call.as_mut()
    }

    pub(super) fn first_chunk(&mut self, agent: Option<&Arc<str>>, at: Timestamp) {
        if let Some(call) = self.call(agent, at) {
            call.first.get_or_insert(at);
        }
    }

    pub(super) fn answer_step(
        &mut self,
        step: &AnswerStep,
        agent: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        match step {
            AnswerStep::Started { model } => {
                if let Some(call) = self.call(agent, at) {
                    call.model = Some(Arc::clone(model));
                }
            }
            AnswerStep::ToolBegun { .. } => self.first_chunk(agent, at),
            AnswerStep::Stopped { reason } => {
                if let Some(call) = self.call(agent, at) {
                    call.finish = Some(finish(reason));
                }
            }
            AnswerStep::Measured { .. }
            | AnswerStep::ToolInput { .. }
            | AnswerStep::BlockEnded { .. } => {}
        }
    }

    pub(super) fn call_ended(
        &mut self,
        message: &Message,
        usage: &Usage,
        cost: Option<Decimal>,
        of: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        let source = if of.is_some() { "subagent" } else { "main" };
        let origin = message.origin.clone().unwrap_or_else(|| self.origin());
        let call = self.agent(of, at).and_then(|agent| {
            agent.origin = Some(origin.clone());
            agent.call.take()
        });
        self.count_tokens(&origin, source, usage, cost.unwrap_or_default());
        let cost = cost.and_then(|cost| cost.to_f64());
        let Some(mut call) = call else {
            return;
        };
        call.asked = Some(origin.clone());
        let taken = elapsed(call.began, at);
        let attributes = Attributes::default()
            .with("model", origin.model.to_string())
            .with("provider", origin.provider.to_string())
            .with_known("cost_usd", cost)
            .with("cost_usd_micros", micros(cost))
            .with("duration_ms", taken)
            .with("input_tokens", usage.input)
            .with("output_tokens", usage.output)
            .with("cache_read_tokens", usage.cache_read)
            .with("cache_creation_tokens", usage.cache_write())
            .with("query_source", source)
            .with("attempt", call.retries + 1);
        self.log(at, "api_request", Severity::Info, attributes);
        self.measure_call(&call, usage, &origin, at);
        if of.is_none() {
            self.response(message, at);
        }
        let span = match self.agent(of, at) {
            Some(agent) => {
                let above = agent.context;
                self.model_span(&call, above, at, None)
            }
            None => return,
        };
        let attributes = span
            .attributes
            .with("gen_ai.usage.input_tokens", usage.total_input())
            .with("gen_ai.usage.output_tokens", usage.output)
            .with("gen_ai.usage.cache_read.input_tokens", usage.cache_read)
            .with(
                "gen_ai.usage.cache_creation.input_tokens",
                usage.cache_write(),
            )
            .with("gen_ai.usage.reasoning.output_tokens", usage.reasoning)
            .with_known("gen_ai.output.messages", self.spoken(message));
        self.push_span(Span { attributes, ..span });
    }

    fn measure_call(&mut self, call: &ModelCall, usage: &Usage, origin: &Origin, at: Timestamp) {
        let of = of_model(origin);
        for (kind, tokens) in [("input", usage.total_input()), ("output", usage.output)] {
            let of = of.clone().with("gen_ai.token.type", kind);
            let tokens = tokens.to_f64().unwrap_or_default();
            self.instruments
                .measure(Instrument::ModelTokens, of, tokens);
        }
        let taken = elapsed(call.began, at).as_secs_f64();
        self.instruments
            .measure(Instrument::ModelDuration, of.clone(), taken);
        if let Some(first) = call.first {
            let waited = elapsed(call.began, first).as_secs_f64();
            self.instruments.measure(Instrument::FirstChunk, of, waited);
        }
    }

    /// The answer as the conventions write messages, where somebody wants it.
    fn spoken(&self, message: &Message) -> Option<String> {
        let text = self.contents.prompts.then(|| message.text())?;
        (!text.is_empty()).then(|| said("assistant", &shortened(&text, LONGEST)))
    }

    fn response(&mut self, message: &Message, at: Timestamp) {
        let text = message.text();
        let length = text.chars().count() as u64;
        let mut attributes = Attributes::default().with("response_length", length);
        if self.contents.prompts {
            attributes.set("response", shortened(&text, LONGEST));
        }
        self.log(at, "assistant_response", Severity::Info, attributes);
    }

    pub(super) fn retried(&mut self, retry: &Retry, of: Option<&Arc<str>>, at: Timestamp) {
        let asked = match self.call(of, at) {
            Some(call) => {
                call.retries = retry.attempt;
                call.asked.clone()
            }
            None => None,
        };
        let asked = asked.unwrap_or_else(|| self.origin());
        let attributes = Attributes::default()
            .with("model", asked.model.to_string())
            .with("error", shortened(&retry.message, 2_000))
            .with_known("status_code", retry.status.map(u32::from))
            .with("attempt", retry.attempt);
        self.log(at, "api_error", Severity::Warn, attributes);
    }

    pub(super) fn rerouted(&mut self, hop: &Hop, of: Option<&Arc<str>>, at: Timestamp) {
        // Judgements and summaries have routes, too, and no span of their own.
        let is_own = matches!(hop.purpose, Purpose::MainLoop | Purpose::SubAgent);
        if let Some(call) = self.call(of, at).filter(|_| is_own) {
            call.asked = Some(hop.to.clone());
        }
        let attributes = Attributes::default()
            .with("route_id", hop.route_id.clone())
            .with("purpose", hop.purpose.slug())
            .with("kind", hop.kind.as_str())
            .with("from", hop.from.to_string())
            .with("to", hop.to.to_string())
            .with("markers_cleared", hop.markers_cleared)
            .with("reason", shortened(&hop.reason, 2_000));
        let counted = self
            .measured
            .clone()
            .with("kind", hop.kind.as_str())
            .with("purpose", hop.purpose.slug());
        self.instruments.count(Instrument::Hops, counted.clone(), 1);
        let marks = u64::from(hop.markers_cleared);
        self.instruments
            .count(Instrument::ClearedMarkers, counted, marks);
        self.log(at, "route_changed", Severity::Warn, attributes);
    }

    pub(super) fn hedge_lost(&mut self, loss: &HedgeLoss, at: Timestamp) {
        let kind = "hedge_loss";
        let (input, output) = (loss.usage.total_input(), loss.usage.output);
        let attributes = Attributes::default()
            .with("route_id", loss.route_id.clone())
            .with("purpose", loss.purpose.slug())
            .with("kind", kind)
            .with("from", loss.from.to_string())
            .with("to", loss.to.to_string())
            .with("input_tokens", input)
            .with("output_tokens", output)
            .with("estimated", loss.usage.estimated);
        let cost = loss.cost.and_then(|cost| cost.to_f64());
        let attributes = match cost {
            Some(cost) => attributes.with("cost_usd", cost),
            None => attributes,
        };
        let counted = self
            .measured
            .clone()
            .with("model", loss.from.model.to_string())
            .with("purpose", loss.purpose.slug());
        let instruments = &mut self.instruments;
        instruments.count(Instrument::HedgeLosses, counted.clone(), 1);
        instruments.count(Instrument::HedgeLossTokens, counted.clone(), input + output);
        if let Some(cost) = cost {
            instruments.measure(Instrument::HedgeLossCost, counted, cost);
        }
        self.log(at, kind, Severity::Info, attributes);
    }

    /// The session's own model.
    pub(super) fn origin(&self) -> Origin {
        Origin::new(self.provider.as_str(), self.model.as_str())
    }

    pub(super) fn model_span(
        &self,
        call: &ModelCall,
        above: Context,
        at: Timestamp,
        error: Option<String>,
    ) -> Span {
        let asked = call.asked.clone().unwrap_or_else(|| self.origin());
        let answered = call.model.as_deref().unwrap_or(&asked.model);
        let finish = call.finish.clone();
        let waited = call
            .first
            .map(|first| elapsed(call.began, first).as_secs_f64());
        let attributes = of_model(&asked)
            .with("gen_ai.response.model", answered)
            .with("gen_ai.request.stream", true)
            .with_known(
                "gen_ai.response.finish_reasons",
                finish.map(|reason| crate::data::Value::Texts(vec![reason])),
            )
            .with_known("gen_ai.response.time_to_first_chunk", waited)
            .with_known("error.type", error.clone())
            .and(&self.conversation());
        Span {
            context: call.context,
            parent: Some(above.span),
            name: format!("chat {}", asked.model),
            kind: SpanKind::Client,
            began: call.began,
            ended: at,
            attributes,
            error,
        }
    }
}

/// What is known of a call to a model.
fn of_model(origin: &Origin) -> Attributes {
    Attributes::default()
        .with("gen_ai.operation.name", "chat")
        .with("gen_ai.provider.name", provider(&origin.provider))
        .with("gen_ai.request.model", origin.model.to_string())
}

/// As the conventions name them.
fn finish(reason: &StopReason) -> String {
    let name = match reason {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
        StopReason::StopSequence => "stop_sequence",
        StopReason::Refusal => "refusal",
        StopReason::ContentFilter => "content_filter",
        StopReason::ContextExceeded => "context_exceeded",
        StopReason::Pause => "pause",
        StopReason::Other(other) => other,
    };
    name.to_owned()
}

fn micros(cost: Option<f64>) -> u64 {
    let micros = cost.unwrap_or_default() * 1_000_000.0;
    micros.round().to_u64().unwrap_or_default()
}
