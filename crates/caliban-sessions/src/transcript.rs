//! A conversation as a person reads it.

use std::fmt::Write as _;
use std::sync::Arc;

use caliban_model::{Block, Message, Role, ToolContent};

use crate::state::SessionState;

/// How many turns there were, in words.
pub fn turns(count: u64) -> String {
    match count {
        1 => "1 turn".to_owned(),
        several => format!("{several} turns"),
    }
}

/// What is written down of a conversation for people.
#[derive(Debug)]
pub struct Transcript<'a> {
    pub title: &'a str,
    /// The line below the title.
    pub about: String,
    pub messages: &'a [Arc<Message>],
}

impl<'a> Transcript<'a> {
    pub fn of(state: &'a SessionState) -> Self {
        let name = state.name.as_str();
        Self {
            title: state.title.as_deref().unwrap_or(name),
            about: format!(
                "{name} · {}/{} · {}",
                state.provider,
                state.model,
                turns(state.turns)
            ),
            messages: &state.messages,
        }
    }

    /// As Markdown: what was said, called and returned; not what was thought.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.title, self.about);
        for message in self.messages {
            let who = match message.role {
                Role::System => continue,
                Role::User => "User",
                Role::Assistant => "Assistant",
            };
            for block in &message.content {
                match block {
                    Block::Text { text: said, .. } => {
                        let _ = write!(text, "\n## {who}\n\n{said}\n");
                    }
                    Block::ToolUse { name, input, .. } => {
                        let _ = write!(text, "\n## Call of {name}\n\n```json\n{input}\n```\n");
                    }
                    Block::ToolResult {
                        content, is_error, ..
                    } => {
                        let kind = if *is_error { "Failure" } else { "Result" };
                        let _ = write!(text, "\n## {kind}\n\n");
                        for part in content {
                            match part {
                                ToolContent::Text { text: said } => {
                                    let _ = write!(text, "```\n{said}\n```\n");
                                }
                                ToolContent::Image(_) => text.push_str("(an image)\n"),
                            }
                        }
                    }
                    Block::Image(_) => text.push_str("\n(an image)\n"),
                    Block::Thinking { .. }
                    | Block::RedactedThinking { .. }
                    | Block::Opaque { .. } => {}
                }
            }
        }
        text
    }
}
