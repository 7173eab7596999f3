//! What a session came to, as text and for programs.

use std::fmt::Write as _;
use std::sync::{MutexGuard, PoisonError};

use caliban_agent::RunTotals;
use caliban_model::{CostLedger, Purpose, RouteAccount, Usage};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};

use crate::recorder::Recorder;
use crate::reports::columns;
use crate::session::Session;

/// What a session came to before this process.
pub(crate) type Before = (Usage, Decimal);

pub(crate) fn cost(totals: &RunTotals, (_, before): Before, session: &Session) -> String {
    let all = totals.cost + before;
    let mut rows = vec![("session".to_owned(), format!("${all:.4}"))];
    if !before.is_zero() {
        rows.push(("earlier runs of it".to_owned(), format!("${before:.4}")));
    }
    let books = books(session);
    for model in &totals.models {
        let mut price = match &model.cost {
            Some(cost) => format!("${cost:.4}"),
            None => "price not known".to_owned(),
        };
        if let Some(saved) = saved(&books, &model.provider, &model.model, &model.usage) {
            // Writing to a string does not fail.
            let _ = if saved.is_sign_negative() {
                write!(price, ", ${:.4} more for writing to the cache", -saved)
            } else {
                write!(price, ", ${saved:.4} saved by the cache")
            };
        }
        rows.push((format!("{}/{}", model.provider, model.model), price));
    }
    for (purpose, cost) in purposes(session) {
        rows.push((format!("for {purpose}"), format!("${cost:.4}")));
    }
    columns(rows)
}

/// What each purpose cost in this process, where the session is kept and there are several.
fn purposes(session: &Session) -> Vec<(&'static str, Decimal)> {
    let recorder = session.recorder.as_ref();
    let purposes = recorder.map(Recorder::purposes).unwrap_or_default();
    if purposes.len() < 2 {
        return Vec::new();
    }
    let named = |(purpose, cost)| (purpose_name(purpose), cost);
    purposes.into_iter().map(named).collect()
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::MainLoop => "the conversation",
        Purpose::Summarization => "summaries",
        Purpose::FastClassifier => "judging calls",
        Purpose::SubAgent => "sub-agents",
        Purpose::Embedding => "embeddings",
        Purpose::Other => "other things",
    }
}

fn dollars(amount: Decimal) -> Value {
    amount.to_f64().map_or(Value::Null, Value::from)
}

fn tokens(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.total_input(),
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write(),
    })
}

fn models(totals: &RunTotals, session: &Session) -> Vec<Value> {
    let books = books(session);
    let model = |model: &caliban_agent::ModelTotals| {
        let saved = saved(&books, &model.provider, &model.model, &model.usage);
        json!({
            "provider": model.provider,
            "model": model.model,
            "cost_usd": model.cost.map(dollars),
            "cache_saved_usd": saved.map(dollars),
            "usage": tokens(&model.usage),
        })
    };
    totals.models.iter().map(model).collect()
}

/// `/cost` for programs.
pub(crate) fn cost_report(totals: &RunTotals, (_, before): Before, session: &Session) -> Value {
    let purposes: Vec<Value> = purposes(session)
        .into_iter()
        .map(|(purpose, cost)| json!({"purpose": purpose, "cost_usd": dollars(cost)}))
        .collect();
    json!({
        "total_cost_usd": dollars(totals.cost + before),
        "earlier_cost_usd": dollars(before),
        "models": models(totals, session),
        "purposes": purposes,
        "routes": route_rows(session),
    })
}

/// `/usage` for programs.
pub(crate) fn usage_report(
    totals: &RunTotals,
    (earlier, before): Before,
    session: &Session,
) -> Value {
    json!({
        "turns": totals.turns,
        "tool_calls": totals.tool_calls,
        "usage": tokens(&totals.usage),
        "earlier_usage": tokens(&earlier),
        "total_cost_usd": dollars(totals.cost + before),
        "models": models(totals, session),
        "routes": route_rows(session),
    })
}

/// What each route came to, where there is more than one way to be answered.
fn routes(session: &Session) -> Vec<RouteAccount> {
    let accounts = session.agent.provider.accounts();
    if accounts.len() < 2 {
        return Vec::new();
    }
    accounts
}

fn route_rows(session: &Session) -> Vec<Value> {
    let row = |account: RouteAccount| {
        json!({
            "route": account.route,
            "purpose": account.purpose.slug(),
            "answers": account.answers,
            "failures": account.failures,
            "cost_usd": dollars(account.cost),
            "wasted_cost_usd": dollars(account.wasted_cost),
            "usage": tokens(&account.usage),
        })
    };
    routes(session).into_iter().map(row).collect()
}

/// One route in words.
fn route_line(account: &RouteAccount) -> (String, String) {
    let mut said = format!(
        "{} answers, {} in, {} out, ${:.4}",
        account.answers,
        account.usage.total_input(),
        account.usage.output,
        account.cost
    );
    // Writing to a string does not fail.
    if account.failures > 0 {
        let _ = write!(said, ", {} failed", account.failures);
    }
    if !account.wasted_cost.is_zero() {
        let _ = write!(said, ", ${:.4} for nothing", account.wasted_cost);
    }
    let name = format!("route {} ({})", account.route, account.purpose.slug());
    (name, said)
}

fn books(session: &Session) -> MutexGuard<'_, CostLedger> {
    let ledger = session.agent.ledger.lock();
    ledger.unwrap_or_else(PoisonError::into_inner)
}

/// What the same tokens would have cost more without a cache, at the prices of short prompts;
/// nothing where no cache took part or the price is not known.
fn saved(books: &CostLedger, provider: &str, model: &str, usage: &Usage) -> Option<Decimal> {
    let rate = books.card().lookup(provider, model)?;
    if usage.cache_read == 0 && usage.cache_write() == 0 {
        return None;
    }
    let cheaper = |tokens: u64, price: Option<Decimal>| {
        Decimal::from(tokens) * (rate.input - price.unwrap_or(rate.input))
    };
    let long_write = rate.cache_write_1h.or(rate.cache_write_5m);
    let saved = cheaper(usage.cache_read, rate.cache_read)
        + cheaper(usage.cache_write_5m, rate.cache_write_5m)
        + cheaper(usage.cache_write_1h, long_write);
    Some(saved / Decimal::from(1_000_000))
}

pub(crate) fn usage(totals: &RunTotals, (earlier, before): Before, session: &Session) -> String {
    let told = |usage: &Usage| {
        format!(
            "{} in, {} out, {} read from cache, {} written to it",
            usage.total_input(),
            usage.output,
            usage.cache_read,
            usage.cache_write()
        )
    };
    let mut rows = vec![
        ("turns".to_owned(), totals.turns.to_string()),
        ("calls".to_owned(), totals.tool_calls.to_string()),
        ("tokens".to_owned(), told(&totals.usage)),
    ];
    if earlier != Usage::default() {
        rows.push(("earlier runs of it".to_owned(), told(&earlier)));
    }
    for model in &totals.models {
        rows.push((
            format!("{}/{}", model.provider, model.model),
            told(&model.usage),
        ));
    }
    rows.extend(routes(session).iter().map(route_line));
    let all = totals.cost + before;
    rows.push(("cost".to_owned(), format!("${all:.4}")));
    columns(rows)
}
