//! What a session came to, as text and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};

use caliban_agent::RunTotals;
use caliban_model::{Block, Dollars, Image, Message, Purpose, RouteAccount, ToolContent, Usage};
use caliban_sessions::{Account, Accounts, Sums, Work};
use caliban_settings::calendar;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value, json};

use crate::recorder::Recorder;
use crate::reports::columns;
use crate::session::Session;

/// What a session came to before this process.
pub(crate) type Before = (Usage, Decimal);

/// The numbers of sums, in buckets that do not overlap, for programs.
pub fn sums_report(sums: &Sums) -> Map<String, Value> {
    let mut report = tokens(&sums.usage);
    report.insert("calls".to_owned(), json!(sums.calls));
    report.insert("cost_usd".to_owned(), dollars(sums.cost));
    report.insert("cache_saved_usd".to_owned(), dollars(sums.saved));
    report.insert("unpriced_calls".to_owned(), json!(sums.unpriced));
    report
}

/// The numbers of work, for programs.
pub fn work_report(work: Work) -> Map<String, Value> {
    let mut report = Map::new();
    report.insert("active_ms".to_owned(), json!(work.active_ms));
    report.insert("denials".to_owned(), json!(work.denials));
    report
}

/// What a purpose is called.
pub fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::MainLoop => "the conversation",
        Purpose::Summarization => "summaries",
        Purpose::FastClassifier => "judging calls and side questions",
        Purpose::SubAgent => "sub-agents",
        Purpose::Embedding => "embeddings",
        Purpose::Other => "other things",
    }
}

/// A time that a person reads.
pub fn lasting(millis: u64) -> String {
    let seconds = millis / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) => format!("{}.{}s", seconds, millis % 1_000 / 100),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}

fn dollars(amount: Decimal) -> Value {
    amount.to_f64().map_or(Value::Null, Value::from)
}

fn tokens(usage: &Usage) -> Map<String, Value> {
    let buckets = [
        ("input_tokens", usage.input),
        ("cache_read_input_tokens", usage.cache_read),
        ("cache_creation_input_tokens", usage.cache_write()),
        ("output_tokens", usage.output),
        ("reasoning_tokens", usage.reasoning),
    ];
    buckets
        .into_iter()
        .map(|(name, number)| (name.to_owned(), json!(number)))
        .collect()
}

/// The accounts of a session: those that are written down, or the books of this process where
/// nothing is.
fn accounts(session: &Session) -> Accounts {
    if let Some(accounts) = session.recorder.as_ref().and_then(Recorder::accounts) {
        return accounts;
    }
    let ledger = session.agent.ledger.lock();
    let ledger = ledger.unwrap_or_else(PoisonError::into_inner);
    let day = calendar::today();
    let mut accounts = Accounts::default();
    for (provider, model, purpose, entry) in ledger.accounts() {
        accounts.enter(Account {
            day,
            provider: provider.to_owned(),
            model: model.to_owned(),
            purpose,
            agent: None,
            sums: Sums {
                calls: entry.calls,
                usage: entry.usage,
                cost: entry.cost.unwrap_or_default(),
                saved: entry.saved.unwrap_or_default(),
                unpriced: if entry.cost.is_some() { 0 } else { entry.calls },
            },
        });
    }
    accounts
}

/// Accounts summed by whatever tells them apart.
fn grouped<K: Ord>(accounts: &Accounts, key: impl Fn(&Account) -> K) -> BTreeMap<K, Sums> {
    let mut groups = BTreeMap::<K, Sums>::new();
    for row in accounts.rows() {
        groups.entry(key(row)).or_default().add(&row.sums);
    }
    groups
}

fn of_model(row: &Account) -> (String, String) {
    (row.provider.clone(), row.model.clone())
}

/// `/cost` as text.
pub(crate) fn cost((_, before): Before, session: &Session) -> String {
    let accounts = accounts(session);
    let all = accounts.total().cost + accounts.inherited().1;
    let mut rows = vec![("session".to_owned(), Dollars(all).to_string())];
    if !before.is_zero() {
        rows.push(("earlier runs of it".to_owned(), Dollars(before).to_string()));
    }
    for ((provider, model), sums) in grouped(&accounts, of_model) {
        rows.push((format!("{provider}/{model}"), price(&sums)));
    }
    // A copy brings the sum of its original along, and not which model took which part of it.
    let inherited = accounts.inherited().1;
    if !inherited.is_zero() {
        rows.push(("before the copy".to_owned(), Dollars(inherited).to_string()));
    }
    let purposes = grouped(&accounts, |row| row.purpose);
    if purposes.len() > 1 {
        for (purpose, sums) in purposes {
            let name = format!("for {}", purpose_name(purpose));
            rows.push((name, Dollars(sums.cost).to_string()));
        }
    }
    columns(rows)
}

/// What calls cost, and what a cache saved of it.
fn price(sums: &Sums) -> String {
    let mut price = match sums.unpriced {
        0 => Dollars(sums.cost).to_string(),
        _ if sums.cost.is_zero() => "price not known".to_owned(),
        unpriced => format!(
            "{} and {unpriced} calls of unknown price",
            Dollars(sums.cost)
        ),
    };
    // Writing to a string does not fail.
    let _ = match sums.saved {
        saved if saved.is_zero() => Ok(()),
        saved if saved.is_sign_negative() => {
            write!(price, ", {} more for writing to the cache", Dollars(-saved))
        }
        saved => write!(price, ", {} saved by the cache", Dollars(saved)),
    };
    price
}

/// `/usage` as text.
pub(crate) fn usage(totals: &RunTotals, (earlier, _): Before, session: &Session) -> String {
    let accounts = accounts(session);
    let (all, (inherited, inherited_cost)) = (accounts.total(), accounts.inherited());
    let mut usage = all.usage;
    usage += inherited;
    let mut rows = vec![
        ("turns".to_owned(), totals.turns.to_string()),
        ("tool calls".to_owned(), totals.tool_calls.to_string()),
        ("tokens".to_owned(), buckets(&usage)),
    ];
    if earlier != Usage::default() {
        rows.push(("earlier runs of it".to_owned(), buckets(&earlier)));
    }
    for ((provider, model), sums) in grouped(&accounts, of_model) {
        rows.push((format!("{provider}/{model}"), buckets(&sums.usage)));
    }
    if inherited != Usage::default() {
        rows.push(("before the copy".to_owned(), buckets(&inherited)));
    }
    rows.extend(routes(session).iter().map(route_line));
    let images = Images::of(session.conversation.messages());
    if images.count > 0 {
        let Images { count, tokens } = images;
        let about = format!("{count}, by their size about {tokens} tokens (estimated)");
        rows.push(("images".to_owned(), about));
    }
    let cost = all.cost + inherited_cost;
    rows.push(("cost".to_owned(), Dollars(cost).to_string()));
    let work = accounts.total_work();
    if work.active_ms > 0 {
        rows.push(("time".to_owned(), lasting(work.active_ms)));
    }
    if work.denials > 0 {
        let calls = if work.denials == 1 { "call" } else { "calls" };
        rows.push(("denied".to_owned(), format!("{} {calls}", work.denials)));
    }
    columns(rows)
}

/// The images of a conversation. What they cost is in what the provider reports; this is a guess
/// that needs no answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Images {
    count: u64,
    tokens: u64,
}

impl Images {
    fn of(messages: &[Arc<Message>]) -> Self {
        let mut images = Self::default();
        let mut add = |image: &Image| {
            images.count += 1;
            images.tokens += image.estimated_tokens();
        };
        for block in messages.iter().flat_map(|message| &message.content) {
            match block {
                Block::Image(image) => add(image),
                Block::ToolResult { content, .. } => content.iter().for_each(|part| match part {
                    ToolContent::Image(image) => add(image),
                    ToolContent::Text { .. } => {}
                }),
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::Opaque { .. } => {}
            }
        }
        images
    }
}

fn buckets(usage: &Usage) -> String {
    format!(
        "{} in, {} read from cache, {} written to it, {} out",
        usage.input,
        usage.cache_read,
        usage.cache_write(),
        usage.output,
    )
}

fn models_report(accounts: &Accounts) -> Vec<Value> {
    let model = |((provider, model), sums): ((String, String), Sums)| {
        json!({
            "provider": provider,
            "model": model,
            "calls": sums.calls,
            "cost_usd": (sums.unpriced == 0 || !sums.cost.is_zero()).then(|| dollars(sums.cost)),
            "cache_saved_usd": dollars(sums.saved),
            "usage": tokens(&sums.usage),
        })
    };
    grouped(accounts, of_model).into_iter().map(model).collect()
}

/// Tokens that models have written in the session.
pub(crate) fn written(session: &Session) -> u64 {
    let accounts = accounts(session);
    accounts.total().usage.output + accounts.inherited().0.output
}

/// `/cost` for programs.
pub(crate) fn cost_report((_, before): Before, session: &Session) -> Value {
    let accounts = accounts(session);
    let purposes = grouped(&accounts, |row| row.purpose)
        .into_iter()
        .map(|(purpose, sums)| json!({"purpose": purpose.slug(), "cost_usd": dollars(sums.cost)}));
    let purposes: Vec<Value> = purposes.collect();
    let all = accounts.total();
    json!({
        "total_cost_usd": dollars(all.cost + accounts.inherited().1),
        "earlier_cost_usd": dollars(before),
        "cache_saved_usd": dollars(all.saved),
        "models": models_report(&accounts),
        "purposes": purposes,
        "routes": route_rows(session),
    })
}

/// `/usage` for programs.
pub(crate) fn usage_report(totals: &RunTotals, (earlier, _): Before, session: &Session) -> Value {
    let accounts = accounts(session);
    let (all, (inherited, inherited_cost)) = (accounts.total(), accounts.inherited());
    let mut usage = all.usage;
    usage += inherited;
    let work = accounts.total_work();
    let images = Images::of(session.conversation.messages());
    json!({
        "turns": totals.turns,
        "tool_calls": totals.tool_calls,
        "usage": tokens(&usage),
        "earlier_usage": tokens(&earlier),
        "total_cost_usd": dollars(all.cost + inherited_cost),
        "cache_saved_usd": dollars(all.saved),
        "active_ms": work.active_ms,
        "denials": work.denials,
        "images": {"count": images.count, "estimated_tokens": images.tokens},
        "models": models_report(&accounts),
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
        "{} answers, {} in, {} out, {}",
        account.answers,
        account.usage.total_input(),
        account.usage.output,
        Dollars(account.cost)
    );
    // Writing to a string does not fail.
    if account.failures > 0 {
        let _ = write!(said, ", {} failed", account.failures);
    }
    if !account.wasted_cost.is_zero() {
        let _ = write!(said, ", {} for nothing", Dollars(account.wasted_cost));
    }
    let name = format!("route {} ({})", account.route, account.purpose.slug());
    (name, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_two_units() {
        assert_eq!(lasting(1_280), "1.2s");
        assert_eq!(lasting(61_000), "1m01s");
        assert_eq!(lasting(7_260_000), "2h01m");
    }
}
