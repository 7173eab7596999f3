//! The last frame of a turn: what it came to.

use caliban_agent::{Outcome, RunTotals};
use caliban_model::{ErrorKind, Usage, capabilities};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value, json};

use super::frame::{self, DeferredCall, DeniedCall, Frame};

/// What a turn came to beside its outcome.
pub(super) struct Account<'a> {
    pub(super) totals: &'a RunTotals,
    /// The sums of the session before this turn.
    pub(super) before: &'a RunTotals,
    /// What the session cost before this process.
    pub(super) earlier_cost: Decimal,
    pub(super) user_messages: u32,
    pub(super) stop_reason: Option<String>,
    pub(super) denials: Vec<DeniedCall>,
    /// The call that ended the turn, to be decided about later.
    pub(super) deferred: Option<DeferredCall>,
    pub(super) aborted: &'static str,
    pub(super) session_id: String,
    pub(super) uuid: String,
}

/// The kind of end that an outcome is.
struct End {
    subtype: &'static str,
    is_error: bool,
    terminal: &'static str,
    result: Option<String>,
    errors: Option<Vec<String>>,
    status: Option<u16>,
}

/// Something the program itself says in the place of the model, and the kind of trouble.
pub(super) fn synthetic(outcome: &Outcome) -> Option<(String, &'static str)> {
    match outcome {
        Outcome::Provider(error) => {
            let status = error
                .status
                .map_or_else(String::new, |status| format!(" {status}"));
            let kind = match error.kind {
                ErrorKind::Auth => "authentication_failed",
                ErrorKind::Billing => "billing_error",
                ErrorKind::RateLimited => "rate_limit",
                ErrorKind::Overloaded | ErrorKind::Server => "server_error",
                ErrorKind::Unavailable => "model_not_found",
                ErrorKind::Network
                | ErrorKind::Timeout
                | ErrorKind::Malformed
                | ErrorKind::TooLong { .. }
                | ErrorKind::Filtered
                | ErrorKind::Invalid
                | ErrorKind::Cancelled
                | ErrorKind::Mismatch => "unknown",
            };
            let remedy = error
                .remedy()
                .map_or_else(String::new, |remedy| format!("; {remedy}"));
            Some((
                format!("API Error:{status} {}{remedy}", error.message),
                kind,
            ))
        }
        Outcome::MaxTokens => Some((
            "API Error: the answer was cut at the limit of output tokens".to_owned(),
            "max_output_tokens",
        )),
        Outcome::Refusal { .. } | Outcome::ContentFilter { .. } | Outcome::ContextFull { .. } => {
            let message = outcome.message().unwrap_or_default();
            Some((format!("API Error: {message}"), "invalid_request"))
        }
        Outcome::Success { .. }
        | Outcome::Obeyed { .. }
        | Outcome::MaxTurns { .. }
        | Outcome::BudgetExceeded { .. }
        | Outcome::Cancelled
        | Outcome::HookDenied { .. }
        | Outcome::Looping { .. }
        | Outcome::SchemaMismatch { .. }
        | Outcome::Unusable { .. }
        | Outcome::Misused { .. }
        | Outcome::Internal { .. } => None,
    }
}

/// Whether a turn failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failed {
    No,
    Yes,
}

impl Failed {
    /// What a result says about its turn.
    pub fn of(result: &Value) -> Self {
        if result["is_error"] == false {
            Self::No
        } else {
            Self::Yes
        }
    }
}

fn end(outcome: &Outcome, aborted: &'static str) -> End {
    let error = |subtype, terminal, message: String| End {
        subtype,
        is_error: true,
        terminal,
        result: None,
        errors: Some(vec![message]),
        status: None,
    };
    let message = || outcome.message().unwrap_or_default();
    match outcome {
        // What the program itself says to a command is no failure of the turn here.
        Outcome::Success { text }
        | Outcome::Obeyed { text, .. }
        | Outcome::HookDenied { reason: text }
        | Outcome::Misused { message: text } => End {
            subtype: "success",
            is_error: false,
            terminal: "completed",
            result: Some(text.clone()),
            errors: None,
            status: None,
        },
        Outcome::Provider(_)
        | Outcome::MaxTokens
        | Outcome::Refusal { .. }
        | Outcome::ContentFilter { .. }
        | Outcome::ContextFull { .. } => End {
            subtype: "success",
            is_error: true,
            terminal: "api_error",
            result: synthetic(outcome).map(|(text, _)| text),
            errors: None,
            status: outcome.provider_error().and_then(|error| error.status),
        },
        Outcome::MaxTurns { limit } => error(
            "error_max_turns",
            "max_turns",
            format!("Reached maximum number of turns ({limit})"),
        ),
        Outcome::BudgetExceeded { .. } => {
            error("error_max_budget_usd", "budget_exhausted", message())
        }
        Outcome::SchemaMismatch { .. } => error(
            "error_max_structured_output_retries",
            "structured_output_retry_exhausted",
            message(),
        ),
        Outcome::Cancelled => error(
            "error_during_execution",
            aborted,
            "the request was interrupted".to_owned(),
        ),
        Outcome::Looping { .. } | Outcome::Unusable { .. } | Outcome::Internal { .. } => {
            error("error_during_execution", "api_error", message())
        }
    }
}

/// Why a turn ends whose call is to be decided about later.
const DEFERRED: &str = "tool_deferred";

fn put_off() -> End {
    End {
        subtype: "success",
        is_error: false,
        terminal: DEFERRED,
        result: Some(String::new()),
        errors: None,
        status: None,
    }
}

pub(super) fn result(outcome: &Outcome, account: Account<'_>) -> Value {
    let Account { totals, before, .. } = account;
    let end = match &account.deferred {
        Some(_) => put_off(),
        None => end(outcome, account.aborted),
    };
    let millis = |now: std::time::Duration, then: std::time::Duration| {
        u64::try_from(now.saturating_sub(then).as_millis()).unwrap_or(u64::MAX)
    };
    Frame::Result(Box::new(frame::Outcome {
        subtype: end.subtype,
        is_error: end.is_error,
        api_error_status: (end.subtype == "success").then(|| end.status.into()),
        duration_ms: millis(totals.duration, before.duration),
        duration_api_ms: millis(totals.model_time, before.model_time),
        num_turns: 1 + account.user_messages,
        result: end.result,
        stop_reason: match &account.deferred {
            Some(_) => Some(DEFERRED.to_owned()),
            None => account.stop_reason,
        },
        session_id: account.session_id,
        total_cost_usd: dollars(account.earlier_cost + totals.cost),
        usage: since(&totals.usage, &before.usage).into(),
        model_usage: model_usage(totals),
        permission_denials: account.denials,
        deferred_tool_use: account.deferred,
        structured_output: outcome.answer().and_then(|_| totals.structured.clone()),
        terminal_reason: Some(end.terminal),
        errors: end.errors,
        uuid: account.uuid,
    }))
    .value()
}

/// The result of a turn that could not begin.
pub fn failure(message: &str, session_id: &str, uuid: &str) -> Value {
    Frame::Result(Box::new(frame::Outcome {
        subtype: "error_during_execution",
        is_error: true,
        api_error_status: None,
        duration_ms: 0,
        duration_api_ms: 0,
        num_turns: 0,
        result: None,
        stop_reason: None,
        session_id: session_id.to_owned(),
        total_cost_usd: 0.0,
        usage: Usage::default().into(),
        model_usage: Map::new(),
        permission_denials: Vec::new(),
        deferred_tool_use: None,
        structured_output: None,
        terminal_reason: None,
        errors: Some(vec![message.to_owned()]),
        uuid: uuid.to_owned(),
    }))
    .value()
}

fn model_usage(totals: &RunTotals) -> Map<String, Value> {
    totals
        .models
        .iter()
        .map(|account| {
            let usage = account.usage;
            let able = capabilities(&account.provider, &account.model);
            let counts = json!({
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "cacheReadInputTokens": usage.cache_read,
                "cacheCreationInputTokens": usage.cache_write(),
                "webSearchRequests": 0,
                "costUSD": dollars(account.cost.unwrap_or_default()),
                "contextWindow": able.context_window.unwrap_or(DEFAULT_WINDOW),
                "maxOutputTokens": able.max_output.unwrap_or(DEFAULT_OUTPUT),
            });
            (account.model.clone(), counts)
        })
        .collect()
}

/// What is reported of models that nothing is known about.
const DEFAULT_WINDOW: u64 = 200_000;
const DEFAULT_OUTPUT: u64 = 32_000;

fn dollars(amount: Decimal) -> f64 {
    amount.to_f64().unwrap_or_default()
}

fn since(now: &Usage, then: &Usage) -> Usage {
    Usage {
        input: now.input.saturating_sub(then.input),
        cache_read: now.cache_read.saturating_sub(then.cache_read),
        cache_write_5m: now.cache_write_5m.saturating_sub(then.cache_write_5m),
        cache_write_1h: now.cache_write_1h.saturating_sub(then.cache_write_1h),
        output: now.output.saturating_sub(then.output),
        reasoning: now.reasoning.saturating_sub(then.reasoning),
        estimated: now.estimated,
        charged: None,
    }
}
