//! Replaces results that a later call of the same kind has made obsolete. Costs no model call,
//! but changes earlier messages, so it costs the provider's cache: it runs in batches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use caliban_model::{Block, Message, ToolContent};

use crate::registry::Registry;

/// What must happen to thinking that stands behind an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundThinking {
    Keep,
    /// The model would reject it: it is bound to an unchanged conversation.
    Strip,
}

/// The messages with obsolete results replaced; nothing if there are none.
pub(crate) fn supersede(
    messages: &[Arc<Message>],
    registry: &Registry,
    thinking: BoundThinking,
) -> Option<Vec<Arc<Message>>> {
    let obsolete = obsolete_results(messages, registry);
    let mut edited = false;
    let replaced = messages
        .iter()
        .map(|message| {
            let strip = edited && thinking == BoundThinking::Strip;
            let is_outdated = |block: &Block| match block {
                Block::ToolResult { content, .. } => {
                    placeholder(block, &obsolete).is_some_and(|new| *content != new)
                }
                Block::Thinking { .. } | Block::RedactedThinking { .. } => strip,
                _ => false,
            };
            if !message.content.iter().any(is_outdated) {
                return Arc::clone(message);
            }
            edited = true;
            let mut copy = Message::clone(message);
            if strip {
                copy.content.retain(|block| {
                    !matches!(
                        block,
                        Block::Thinking { .. } | Block::RedactedThinking { .. }
                    )
                });
            }
            for block in &mut copy.content {
                let new = placeholder(block, &obsolete);
                if let (Block::ToolResult { content, .. }, Some(new)) = (block, new) {
                    *content = new;
                }
            }
            Arc::new(copy)
        })
        .collect();
    edited.then_some(replaced)
}

/// What stands for a result that is obsolete.
fn placeholder(block: &Block, obsolete: &HashMap<&str, String>) -> Option<Vec<ToolContent>> {
    let Block::ToolResult { tool_use_id, .. } = block else {
        return None;
    };
    let text = obsolete.get(tool_use_id.as_str())?.clone();
    Some(vec![ToolContent::Text { text }])
}

/// The ids of results that a newer one replaces, with their placeholders.
fn obsolete_results<'a>(
    messages: &'a [Arc<Message>],
    registry: &Registry,
) -> HashMap<&'a str, String> {
    let mut newest: HashMap<(String, String), &str> = HashMap::new();
    let mut obsolete = HashMap::new();
    let succeeded = succeeded(messages);
    for message in messages {
        for (id, name, input) in message.tool_uses() {
            let Some(key) = registry
                .get(name)
                .and_then(|tool| tool.supersession_key(input))
            else {
                continue;
            };
            // A failed newer call replaces nothing: the older result is still the best there is.
            if !succeeded.contains(id) {
                continue;
            }
            let placeholder = format!("[superseded: {name}({key})]");
            if let Some(older) = newest.insert((name.to_owned(), key), id) {
                obsolete.insert(older, placeholder);
            }
        }
    }
    obsolete
}

/// The ids of calls whose result is none of a failure.
fn succeeded(messages: &[Arc<Message>]) -> HashSet<&str> {
    messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolResult {
                tool_use_id,
                is_error: false,
                ..
            } => Some(tool_use_id.as_str()),
            _ => None,
        })
        .collect()
}
