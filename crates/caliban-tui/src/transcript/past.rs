//! Messages of before as cells.

use std::sync::Arc;

use caliban_agent::{ToolStatus, tells_of_denial, tells_of_interrupt};
use caliban_model::{Block, Message, Role, ToolContent};

use crate::transcript::calls::{Call, CallState, Ending};
use crate::transcript::cell::{Asked, Cell, CellKind, Spoken, Tone};
use crate::transcript::feed::{Feed, INTERRUPTED};
use crate::transcript::picture::Picture;

/// The cells that a conversation is shown as.
pub(crate) fn cells_of(messages: &[Arc<Message>]) -> Feed {
    let mut feed = Feed::default();
    for message in messages {
        if tells_of_interrupt(message) {
            feed.push(Cell::notice(Tone::Warning, INTERRUPTED));
            continue;
        }
        for (place, block) in message.content.iter().enumerate() {
            add(&mut feed, message, place, block);
        }
        feed.hang_results(message);
    }
    feed
}

fn add(feed: &mut Feed, message: &Arc<Message>, place: usize, block: &Block) {
    let kept = || Spoken::Kept(Arc::clone(message), place);
    match block {
        Block::Text { text, .. } if text.trim().is_empty() => {}
        Block::Text { .. } => match message.role {
            // What stands behind the first was added for the model to read.
            Role::User if place > 0 => {}
            Role::User | Role::System => feed.push(Cell::new(CellKind::Prompt(Asked::Kept(
                Arc::clone(message),
                place,
            )))),
            Role::Assistant => feed.push(Cell::new(CellKind::Answer(kept()))),
        },
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
            is_error,
            content,
        } => {
            let says_denied = content.iter().any(|part| match part {
                ToolContent::Text { text } => tells_of_denial(text).is_some(),
                ToolContent::Image(_) => false,
            });
            let status = match (*is_error, says_denied) {
                (true, true) => ToolStatus::Denied,
                (true, false) => ToolStatus::Failed,
                (false, _) => ToolStatus::Ok,
            };
            feed.with_call(tool_use_id, |call| {
                let ending = Ending::kept(status, message, place);
                call.state = CallState::Over(Box::new(ending));
            });
        }
        Block::Image(_) => {
            let picture = Picture::new(message, place, None);
            feed.push(Cell::new(CellKind::Image(Box::new(picture))));
        }
        Block::Opaque { .. } => {}
    }
}
