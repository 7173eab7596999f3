//! Replaces results that a later call of the same kind has made obsolete. Costs no model call,
//! but changes earlier messages, so it costs the provider's cache: it runs in batches.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_model::{Block, Message, ToolContent};

use crate::registry::Registry;

/// Results shorter than their placeholder are left alone.
const WORTHWHILE_CHARS: usize = 200;

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
    if obsolete.is_empty() {
        return None;
    }
    let mut edited = false;
    let replaced = messages
        .iter()
        .map(|message| {
            let mut copy = Message::clone(message);
            let mut changed = false;
            for block in &mut copy.content {
                if let Block::ToolResult {
                    tool_use_id,
                    content,
                    ..
                } = block
                    && let Some(placeholder) = obsolete.get(tool_use_id.as_str())
                {
                    *content = vec![ToolContent::Text {
                        text: placeholder.clone(),
                    }];
                    changed = true;
                }
            }
            if edited && thinking == BoundThinking::Strip {
                let before = copy.content.len();
                copy.content.retain(|block| {
                    !matches!(
                        block,
                        Block::Thinking { .. } | Block::RedactedThinking { .. }
                    )
                });
                changed |= copy.content.len() < before;
            }
            edited |= changed;
            if changed {
                Arc::new(copy)
            } else {
                Arc::clone(message)
            }
        })
        .collect();
    Some(replaced)
}

/// The ids of results that a newer one replaces, with their placeholders.
fn obsolete_results<'a>(
    messages: &'a [Arc<Message>],
    registry: &Registry,
) -> HashMap<&'a str, String> {
    let mut newest: HashMap<(String, String), &str> = HashMap::new();
    let mut obsolete = HashMap::new();
    let sizes = result_sizes(messages);
    for message in messages {
        for (id, name, input) in message.tool_uses() {
            let Some(key) = registry
                .get(name)
                .and_then(|tool| tool.supersession_key(input))
            else {
                continue;
            };
            // A failed newer call replaces nothing: the older result is still the best there is.
            if sizes.get(id).is_none_or(|result| result.failed) {
                continue;
            }
            let placeholder = format!("[superseded: {name}({key})]");
            if let Some(older) = newest.insert((name.to_owned(), key), id)
                && sizes
                    .get(older)
                    .is_some_and(|result| result.chars > WORTHWHILE_CHARS)
            {
                obsolete.insert(older, placeholder);
            }
        }
    }
    obsolete
}

struct ResultSize {
    chars: usize,
    failed: bool,
}

fn result_sizes(messages: &[Arc<Message>]) -> HashMap<&str, ResultSize> {
    messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                let chars = content
                    .iter()
                    .map(|part| match part {
                        ToolContent::Text { text } => text.len(),
                        ToolContent::Image(_) => usize::MAX / 2,
                    })
                    .fold(0, usize::saturating_add);
                Some((
                    tool_use_id.as_str(),
                    ResultSize {
                        chars,
                        failed: *is_error,
                    },
                ))
            }
            _ => None,
        })
        .collect()
}
