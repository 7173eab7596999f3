//! Messages of before as cells.

use std::sync::Arc;

use caliban_agent::{ToolOutput, ToolStatus};
use caliban_model::{Block, Image, Message, Role};

use crate::transcript::calls::{Call, CallState, Ending};
use crate::transcript::cell::{Cell, CellKind, Spoken};
use crate::transcript::feed::Feed;

/// The cells that a conversation is shown as.
pub(crate) fn cells_of(messages: &[Arc<Message>]) -> Feed {
    let mut feed = Feed::default();
    for message in messages {
        for (place, block) in message.content.iter().enumerate() {
            add(&mut feed, message, place, block);
        }
    }
    feed
}

fn add(feed: &mut Feed, message: &Arc<Message>, place: usize, block: &Block) {
    let kept = || Spoken::Kept(Arc::clone(message), place);
    match block {
        Block::Text { text, .. } if text.trim().is_empty() => {}
        Block::Text { text, .. } => feed.push(match message.role {
            Role::User | Role::System => Cell::prompt(text),
            Role::Assistant => Cell::new(CellKind::Answer(kept())),
        }),
        Block::Thinking { text, .. } if text.trim().is_empty() => {}
        Block::Thinking { .. } => feed.push(Cell::new(CellKind::Thinking(kept()))),
        Block::RedactedThinking { .. } => feed.push(Cell::new(CellKind::Redacted)),
        Block::ToolUse {
            id, name, input, ..
        } => {
            let call = Call::new(id.as_str().into(), name.as_str().into(), input.clone());
            feed.push(Cell::new(CellKind::Call(Box::new(call))));
        }
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let status = if *is_error {
                ToolStatus::Failed
            } else {
                ToolStatus::Ok
            };
            feed.with_call(tool_use_id, |call| {
                call.state = CallState::Over(Box::new(Ending {
                    output: ToolOutput::of(status, content.clone()),
                    duration: None,
                    denial: None,
                }));
            });
        }
        Block::Image(image) => feed.push(Cell::new(CellKind::Image(description(image).into()))),
        Block::Opaque { .. } => {}
    }
}

/// What stands for an image where none can be drawn.
pub(crate) fn description(image: &Image) -> String {
    let size = image
        .dims
        .map_or_else(String::new, |(width, height)| format!("{width}x{height} "));
    format!("[image: {size}{}]", image.mime.as_str())
}
