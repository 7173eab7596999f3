//! Every block of the conversation as the model sees it.

use std::fmt::Write as _;
use std::sync::Arc;

use caliban_model::{Block, Message, Role, ToolContent};

use crate::transcript::description;

/// The whole conversation as text.
pub(crate) fn as_the_model_sees_it(messages: &[Arc<Message>]) -> String {
    if messages.is_empty() {
        return "Nothing was said yet.".to_owned();
    }
    let mut text = String::new();
    for (place, message) in messages.iter().enumerate() {
        let who = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let _ = writeln!(text, "--- {} {who}", place + 1);
        for block in &message.content {
            write_block(&mut text, block);
        }
        text.push('\n');
    }
    text
}

fn write_block(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Text { text, .. } => writeln!(out, "{text}"),
        Block::Thinking { text, .. } => writeln!(out, "[thinking]\n{text}"),
        Block::RedactedThinking { data } => {
            writeln!(out, "[thinking that is not shown, {} bytes]", data.len())
        }
        Block::ToolUse {
            id, name, input, ..
        } => writeln!(out, "[call {id}] {name} {input:#}"),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let kind = if *is_error { "error" } else { "result" };
            let _ = writeln!(out, "[{kind} of {tool_use_id}]");
            content.iter().try_for_each(|part| match part {
                ToolContent::Text { text } => writeln!(out, "{text}"),
                ToolContent::Image(image) => writeln!(out, "{}", description(image)),
            })
        }
        Block::Image(image) => writeln!(out, "{}", description(image)),
        Block::Opaque { value } => writeln!(out, "[a block of the provider's own]\n{value:#}"),
    };
}
