//! What commands have to say, as text.

use std::fmt::Write as _;

use caliban_agent::RunTotals;
use caliban_context::Commands;
use caliban_model::{Block, Message, Reasoning, Role, ToolContent, Usage};
use caliban_permissions::Origin;
use caliban_session::{Engine, McpServer};
use caliban_slash::{BUILT_IN, Category, Entry};
use rust_decimal::Decimal;

use crate::gate::Gate;
use crate::inventory::{Inventory, Listed};
use crate::session::Session;

/// The largest parts of a conversation that are named.
const LARGEST: usize = 5;

/// Left column and right column, lined up.
fn columns(rows: impl IntoIterator<Item = (String, String)>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = rows.iter().map(|(left, _)| left.chars().count()).max();
    let width = width.unwrap_or_default();
    let line = |(left, right): &(String, String)| format!("{left:width$}  {right}");
    let lines: Vec<String> = rows.iter().map(line).collect();
    lines.join("\n")
}

pub(crate) fn help(own: &Commands) -> String {
    let mut text = String::new();
    for category in Category::ALL {
        let entries = BUILT_IN
            .iter()
            .filter(|entry| entry.category == category && entry.works_anywhere());
        let rows: Vec<_> = entries
            .map(|entry: &Entry| (format!("  {}", entry.usage()), entry.summary.to_owned()))
            .collect();
        if !rows.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(text, "{}\n{}\n\n", category.title(), columns(rows));
        }
    }
    let rows: Vec<_> = own
        .iter()
        .map(|command| {
            let hint = command.argument_hint().unwrap_or_default();
            let usage = format!("  /{} {hint}", command.name());
            (
                usage.trim_end().to_owned(),
                command.description().to_owned(),
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(text, "Your own\n{}\n", columns(rows));
    }
    text.trim_end().to_owned()
}

pub(crate) fn reasoning(reasoning: Reasoning) -> String {
    match reasoning {
        Reasoning::Auto => "auto".to_owned(),
        Reasoning::Off => "off".to_owned(),
        Reasoning::Effort(effort) => effort.as_str().to_owned(),
        Reasoning::Budget(tokens) => format!("{tokens} tokens"),
    }
}

pub(crate) fn status(session: &Session) -> String {
    let facts = session.facts();
    let key = session.agent.provider.id();
    let thinking = session
        .agent
        .dial
        .as_ref()
        .map_or(session.agent.settings.reasoning, |dial| {
            dial.read().reasoning
        });
    let rows = [
        ("version", facts.program_version),
        ("session", facts.session_id),
        ("directory", facts.cwd),
        ("provider", key.to_owned()),
        ("model", facts.model),
        ("effort", reasoning(thinking)),
        ("mode", facts.permission_mode),
        (
            "workspace",
            if facts.trusted {
                "trusted"
            } else {
                "not trusted"
            }
            .to_owned(),
        ),
        ("settings", facts.setting_sources.join(", ")),
        ("messages", facts.messages.to_string()),
        ("servers", facts.servers.len().to_string()),
        ("skills", facts.skills.len().to_string()),
    ];
    columns(rows.map(|(name, value)| (name.to_owned(), value)))
}

/// What a session came to before this process.
pub(crate) type Before = (Usage, Decimal);

pub(crate) fn cost(totals: &RunTotals, (_, before): Before) -> String {
    let all = totals.cost + before;
    let mut rows = vec![("session".to_owned(), format!("${all:.4}"))];
    if !before.is_zero() {
        rows.push(("earlier runs of it".to_owned(), format!("${before:.4}")));
    }
    for model in &totals.models {
        let price = match &model.cost {
            Some(cost) => format!("${cost:.4}"),
            None => "price not known".to_owned(),
        };
        rows.push((format!("{}/{}", model.provider, model.model), price));
    }
    columns(rows)
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
    let size = |role: Option<Role>| -> u64 {
        let wanted = messages
            .iter()
            .filter(|message| role.is_none_or(|role| message.role == role));
        wanted
            .map(|message| caliban_agent::estimated_tokens(message))
            .sum()
    };
    let rows = [
        ("window", format!("{window} tokens")),
        ("in use", format!("about {used} tokens, {percent} %")),
        (
            "system prompt",
            format!("about {}", size(Some(Role::System))),
        ),
        ("tools", format!("about {tools}")),
        (
            "conversation",
            format!(
                "about {} in {} messages",
                size(Some(Role::User)) + size(Some(Role::Assistant)),
                messages.len()
            ),
        ),
    ];
    let mut text = columns(rows.map(|(name, value)| (name.to_owned(), value)));
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
        Block::Text { text, .. } => (text.len(), format!("{who}: {}", beginning(text))),
        Block::Thinking { text, .. } => (text.len(), "thinking".to_owned()),
        Block::RedactedThinking { data } => (data.len(), "thinking".to_owned()),
        Block::ToolUse { name, input, .. } => (input.to_string().len(), format!("call of {name}")),
        Block::ToolResult { content, .. } => {
            let texts = content.iter().map(|part| match part {
                ToolContent::Text { text } => text.as_str(),
                ToolContent::Image(_) => "",
            });
            let all: String = texts.collect();
            (all.len(), format!("result: {}", beginning(&all)))
        }
        Block::Image(_) => (0, "image".to_owned()),
        Block::Opaque { value } => (value.to_string().len(), "data of the provider".to_owned()),
    }
}

pub(crate) fn permissions(gate: &Gate) -> String {
    let mut text = format!("mode: {}\n", gate.regime().as_str());
    let book = gate.book();
    let own = book
        .rules()
        .iter()
        .filter(|rule| rule.origin != Origin::BuiltIn);
    let rows: Vec<_> = own
        .map(|rule| {
            let origin = rule.origin.as_str().to_owned();
            (format!("{} {}", rule.action, rule.pattern), origin)
        })
        .collect();
    if rows.is_empty() {
        text.push_str("no rules but the built-in ones");
    } else {
        text.push_str(&columns(rows));
    }
    text
}

pub(crate) fn listed(things: &[Listed], none: &str) -> String {
    if things.is_empty() {
        return none.to_owned();
    }
    let row = |thing: &Listed| {
        (
            thing.name.clone(),
            format!("{} ({})", thing.about, thing.origin),
        )
    };
    columns(things.iter().map(row))
}

pub(crate) fn styles(inventory: &Inventory) -> String {
    let current = inventory.style.as_deref().unwrap_or("none");
    format!(
        "output style: {current}\n\n{}",
        listed(&inventory.styles, "there are no others")
    )
}

pub(crate) fn servers(servers: &[McpServer]) -> String {
    if servers.is_empty() {
        return "no MCP servers".to_owned();
    }
    columns(
        servers
            .iter()
            .map(|server| (server.name.clone(), server.status.clone())),
    )
}

pub(crate) fn memory(inventory: &Inventory) -> String {
    let total: u64 = inventory.instructions.iter().map(|file| file.tokens).sum();
    let rows = inventory.instructions.iter().map(|file| {
        let about = format!("{} {}", file.kind, file.path.display());
        (format!("{:>7}", file.tokens), about)
    });
    let rows = rows.chain([(format!("{total:>7}"), "tokens, about".to_owned())]);
    let mut text = columns(rows);
    if let Some(notes) = &inventory.notes {
        let topics = notes.topics();
        let _ = write!(text, "\n\nnotes in `{}`\n", notes.directory().display());
        if topics.topics.is_empty() {
            text.push_str("  none");
        }
        let rows = topics.topics.iter().map(|(name, topic)| {
            (
                format!("  {}", name.as_str()),
                topic.description().to_owned(),
            )
        });
        text.push_str(&columns(rows));
    }
    text
}
