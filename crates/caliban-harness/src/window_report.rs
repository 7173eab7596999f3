//! What fills the model's window: measured once, told as text and as a value.

use std::fmt::Write as _;

use caliban_agent::estimated_tokens;
use caliban_mcp::Laziness;
use caliban_model::{Block, Message, Role, ToolContent};
use caliban_session::Engine;
use caliban_slash::{ContextBlock, ContextKind, ContextPart, ContextReport};

use crate::reports::columns;
use crate::session::Session;

/// The largest parts of a conversation that are named.
const LARGEST: usize = 5;
/// The percentage of the window from which on somebody should know.
const WARNING: u64 = 80;
/// Characters of a block that tell which it is.
const BEGINNING: usize = 60;

impl Session {
    /// What fills the window now.
    pub(crate) fn window_report(&self) -> ContextReport {
        let window = self.facts().context_window;
        let tools = self.agent.tool_tokens();
        let used = self.conversation.tokens(tools);
        let mut blocks: Vec<ContextBlock> = self
            .conversation
            .messages()
            .iter()
            .flat_map(|message| measured(message))
            .collect();
        let mut parts: Vec<ContextPart> = ContextKind::ALL
            .into_iter()
            .map(|kind| {
                let own = blocks.iter().filter(|block| block.kind == kind);
                ContextPart {
                    kind,
                    tokens: own.clone().map(|block| block.tokens).sum(),
                    blocks: own.count() as u64,
                }
            })
            .collect();
        for part in &mut parts {
            if part.kind == ContextKind::Tools {
                part.tokens = tools;
                part.blocks = self.agent.tools.current().names().count() as u64;
            }
        }
        parts.retain(|part| part.tokens > 0);
        blocks.retain(|block| block.kind != ContextKind::SystemPrompt);
        let compaction_frees = blocks.iter().map(|block| block.tokens).sum();
        blocks.sort_by_key(|block| std::cmp::Reverse(block.tokens));
        blocks.truncate(LARGEST);
        let threshold = self.agent.settings.compaction.threshold;
        let current = self.agent.tools.current();
        let mcp_tools = current.names().filter(|name| name.starts_with("mcp__"));
        ContextReport {
            window,
            used,
            percent: used.saturating_mul(100) / window.max(1),
            compacts_at: threshold.map(|part| share(window, part)),
            compaction_frees,
            parts,
            largest: blocks,
            mcp_tools: mcp_tools.map(str::to_owned).collect(),
            mcp_limit: self.servers().map(|_| self.most_active()),
        }
    }

    fn most_active(&self) -> u64 {
        let configuration = self.configuration().ok();
        let most = configuration.and_then(|it| it.settings().tools.max_active_schemas);
        most.map_or(Laziness::default().max_active as u64, u64::from)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is far below 2^52 and the part is between 0 and 1"
)]
fn share(window: u64, part: f64) -> u64 {
    (window as f64 * part) as u64
}

/// The blocks of a message; what the message takes is shared out by their lengths.
fn measured(message: &Message) -> Vec<ContextBlock> {
    let total = estimated_tokens(message);
    let blocks: Vec<(ContextKind, usize, String)> = message
        .content
        .iter()
        .map(|block| part(message, block))
        .collect();
    let length: usize = blocks.iter().map(|(_, length, _)| length).sum();
    blocks
        .into_iter()
        .map(|(kind, characters, what)| ContextBlock {
            kind,
            what,
            tokens: total.saturating_mul(characters as u64) / (length as u64).max(1),
            characters: characters as u64,
        })
        .collect()
}

/// What a block is, how long, and how it begins.
fn part(message: &Message, block: &Block) -> (ContextKind, usize, String) {
    let beginning = |text: &str| -> String {
        let line = text.trim().lines().next().unwrap_or_default();
        line.chars().take(BEGINNING).collect()
    };
    match block {
        Block::Text { text, .. } => {
            let (kind, who) = match message.role {
                Role::System => (ContextKind::SystemPrompt, "system"),
                Role::User => (ContextKind::Prompts, "user"),
                Role::Assistant => (ContextKind::Answers, "assistant"),
            };
            let what = format!("{who}: {}", beginning(text));
            (kind, text.chars().count(), what)
        }
        Block::Thinking { text, .. } => (
            ContextKind::Thoughts,
            text.chars().count(),
            "thinking".to_owned(),
        ),
        Block::RedactedThinking { data } => {
            (ContextKind::Thoughts, data.len(), "thinking".to_owned())
        }
        Block::ToolUse { name, input, .. } => (
            ContextKind::Calls,
            input.to_string().len(),
            format!("call of {name}"),
        ),
        Block::ToolResult { content, .. } => {
            let texts = content.iter().map(|part| match part {
                ToolContent::Text { text } => text.as_str(),
                ToolContent::Image(_) => "",
            });
            let all: String = texts.collect();
            let what = format!("result: {}", beginning(&all));
            (ContextKind::Results, all.chars().count(), what)
        }
        // An image is estimated as a whole; one character keeps it in the account.
        Block::Image(_) => (ContextKind::Images, 1, "image".to_owned()),
        Block::Opaque { value } => (
            ContextKind::Other,
            value.to_string().len(),
            "data of the provider".to_owned(),
        ),
    }
}

/// A number that can be read: `62 430`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// The report for people; `output` is what models have written in the session.
pub(crate) fn told(report: &ContextReport, output: u64) -> String {
    let ContextReport {
        window,
        used,
        percent,
        ..
    } = report;
    let mut text = format!(
        "input tokens used : {} / {} ({percent}%)\noutput tokens used: {}\n",
        grouped(*used),
        grouped(*window),
        grouped(output)
    );
    if *percent >= WARNING {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "⚠ approaching limit (warn threshold: {WARNING}%): `/compact` makes room"
        );
    }
    text.push('\n');
    let mut rows: Vec<(String, String)> = Vec::new();
    rows.extend(report.parts.iter().map(|part| {
        let blocks = match part.blocks {
            1 => "1 block".to_owned(),
            blocks => format!("{blocks} blocks"),
        };
        let about = format!("about {} tokens in {blocks}", grouped(part.tokens));
        (part.kind.title().to_owned(), about)
    }));
    let compaction = match report.compacts_at {
        Some(at) => format!("by itself from {} tokens on", grouped(at)),
        None => "never by itself".to_owned(),
    };
    rows.push(("condensed".to_owned(), compaction));
    rows.push((
        "`/compact` frees".to_owned(),
        format!("at most {} tokens", grouped(report.compaction_frees)),
    ));
    text.push_str(&columns(rows));
    if let Some(limit) = report.mcp_limit {
        let names = &report.mcp_tools;
        let listed = match names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        // Writing to a string does not fail.
        let _ = write!(text, "\n\nMCP active: {}/{limit}{listed}", names.len());
    }
    if !report.largest.is_empty() {
        text.push_str("\n\nlargest parts\n");
        let row = |block: &ContextBlock| {
            (
                format!("  {} characters", block.characters),
                block.what.clone(),
            )
        };
        text.push_str(&columns(report.largest.iter().map(row)));
    }
    text
}
