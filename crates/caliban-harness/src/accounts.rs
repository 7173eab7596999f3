//! What a session came to, and what fills the model's window, as text.

use std::fmt::Write as _;
use std::sync::{MutexGuard, PoisonError};

use caliban_agent::RunTotals;
use caliban_mcp::Laziness;
use caliban_model::{Block, CostLedger, Message, Role, ToolContent, Usage};
use caliban_session::Engine;
use rust_decimal::Decimal;

use crate::reports::columns;
use crate::session::Session;

/// The largest parts of a conversation that are named.
const LARGEST: usize = 5;
/// The percentage of the window from which on somebody should know.
const WARNING: u64 = 80;

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
    columns(rows)
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

pub(crate) fn usage(totals: &RunTotals, (earlier, before): Before) -> String {
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
    let all = totals.cost + before;
    rows.push(("cost".to_owned(), format!("${all:.4}")));
    columns(rows)
}

pub(crate) fn context(session: &Session) -> String {
    let window = session.facts().context_window;
    let tools = session.agent.tool_tokens();
    let used = session.conversation.tokens(tools);
    let percent = used.saturating_mul(100) / window.max(1);
    let messages = session.conversation.messages();
    let size = |role: Role| -> String {
        let own = messages.iter().filter(|message| message.role == role);
        let tokens: u64 = own
            .clone()
            .map(|it| caliban_agent::estimated_tokens(it))
            .sum();
        format!("about {tokens} tokens in {} messages", own.count())
    };
    let rows = [
        ("window", format!("{window} tokens")),
        ("in use", format!("about {used} tokens, {percent} %")),
        ("system prompt", size(Role::System)),
        ("tools", format!("about {tools} tokens")),
        ("prompts and results", size(Role::User)),
        ("answers and calls", size(Role::Assistant)),
    ];
    let mut text = columns(rows.map(|(name, value)| (name.to_owned(), value)));
    if percent >= WARNING {
        text.push_str("\n\n⚠ approaching the limit: `/compact` makes room");
    }
    text.extend(active_tools(session).map(|line| format!("\n\n{line}")));
    let mut blocks: Vec<(usize, String)> = messages
        .iter()
        .filter(|message| message.role != Role::System)
        .flat_map(|message| message.content.iter().map(|block| part(message, block)))
        .collect();
    blocks.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
    if !blocks.is_empty() {
        text.push_str("\n\nlargest parts\n");
        let rows = blocks.into_iter().take(LARGEST);
        text.push_str(&columns(
            rows.map(|(size, what)| (format!("  {size} characters"), what)),
        ));
    }
    text
}

/// The tools of servers that the model sees, and how many it may have searched for.
fn active_tools(session: &Session) -> Option<String> {
    session.servers()?;
    let cap = session.configuration().ok();
    let cap = cap.and_then(|it| it.settings().tools.max_active_schemas);
    let cap = cap.map_or(Laziness::default().max_active.to_string(), |cap| {
        cap.to_string()
    });
    let tools = session.agent.tools.current();
    let names: Vec<&str> = tools.names().filter(|it| it.starts_with("mcp__")).collect();
    let listed = match names.as_slice() {
        [] => String::new(),
        names => format!(" ({})", names.join(", ")),
    };
    Some(format!("MCP active: {}/{cap}{listed}", names.len()))
}

/// How long a part of a message is, and what it is.
fn part(message: &Message, block: &Block) -> (usize, String) {
    let beginning = |text: &str| -> String {
        let line = text.trim().lines().next().unwrap_or_default();
        line.chars().take(60).collect()
    };
    let who = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    match block {
        Block::Text { text, .. } => (text.chars().count(), format!("{who}: {}", beginning(text))),
        Block::Thinking { text, .. } => (text.chars().count(), "thinking".to_owned()),
        Block::RedactedThinking { data } => (data.len(), "thinking".to_owned()),
        Block::ToolUse { name, input, .. } => (input.to_string().len(), format!("call of {name}")),
        Block::ToolResult { content, .. } => {
            let texts = content.iter().map(|part| match part {
                ToolContent::Text { text } => text.as_str(),
                ToolContent::Image(_) => "",
            });
            let all: String = texts.collect();
            (all.chars().count(), format!("result: {}", beginning(&all)))
        }
        Block::Image(_) => (0, "image".to_owned()),
        Block::Opaque { value } => (value.to_string().len(), "data of the provider".to_owned()),
    }
}
