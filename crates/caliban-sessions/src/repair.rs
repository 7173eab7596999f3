//! Makes a recorded conversation valid again after whatever interrupted it: every call has a
//! result right after it that tells the truth about what happened.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_model::{Block, Message, Role, ToolContent};

use crate::error::Warning;
use crate::record::{CallStatus, Effects, Record, common};
use crate::state::{Replica, Turn};
use crate::stored::OpenCall;

const NEVER_STARTED: &str =
    "This tool call was never started: the session ended before. Nothing was done by it.";
const UNKNOWN: &str = "The session ended while this tool call was running. Its outcome is \
    unknown: it may have taken effect in full, in part or not at all. Find out before running \
    it again.";
const UNKNOWN_READ_ONLY: &str =
    "The session ended while this tool call was running. Its result is lost; it changed nothing.";
const MISSING: &str = "The result of this tool call is missing from the session's record. \
    Whether it ran is unknown.";

/// How much the record of the last turn can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evidence {
    Complete,
    /// Records may have been lost.
    Damaged,
}

/// The records that make the conversation valid; none if it is. Calls that began and are
/// nowhere in the conversation are told of.
pub(crate) fn repairs(
    replica: &Replica,
    evidence: Evidence,
    warnings: &mut Vec<Warning>,
) -> Vec<Record> {
    let messages = &replica.state.messages;
    let last_calls = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant);
    let mut has_stray = false;
    for call in &replica.calls {
        let is_recorded = last_calls.is_some_and(|at| {
            messages[at]
                .tool_uses()
                .any(|(id, _, _)| id == call.told_by())
        });
        if !is_recorded {
            has_stray = true;
            let name = call.name.clone();
            warnings.push(Warning::StrayCall { name });
        }
    }
    let repaired = repaired(messages, |at, id| {
        let call = replica.calls.iter().find(|call| call.is(None, id));
        match call {
            Some(call) if Some(at) == last_calls => ended(call),
            None if Some(at) == last_calls
                && replica.turn == Turn::Open
                && evidence == Evidence::Complete =>
            {
                failed(id, NEVER_STARTED)
            }
            Some(_) | None => failed(id, MISSING),
        }
    });
    let keep = common(messages, &repaired);
    // This form also ends the turn, so that a stray call is told of once.
    if keep < messages.len() || has_stray {
        return vec![Record::Repaired {
            keep,
            messages: repaired[keep..].to_vec(),
        }];
    }
    repaired[keep..]
        .iter()
        .cloned()
        .map(Record::Message)
        .collect()
}

/// The result of a call that began.
fn ended(call: &OpenCall) -> Block {
    match (&call.done, call.effects) {
        (Some(done), _) => Block::ToolResult {
            tool_use_id: call.id.clone(),
            content: done.content.clone(),
            is_error: done.status == CallStatus::Failed,
        },
        (None, Effects::SideEffects) => failed(&call.id, UNKNOWN),
        (None, Effects::ReadOnly) => failed(&call.id, UNKNOWN_READ_ONLY),
    }
}

fn failed(id: &str, text: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: vec![ToolContent::Text {
            text: text.to_owned(),
        }],
        is_error: true,
    }
}

/// The conversation made valid: system messages lead and hold text, calls are complete, and the
/// message after them begins with their results. `missing` makes a result for a call of the
/// message at a position. What is valid stays the very same message.
fn repaired(
    messages: &[Arc<Message>],
    missing: impl Fn(usize, &str) -> Block,
) -> Vec<Arc<Message>> {
    let mut valid: Vec<Arc<Message>> = Vec::with_capacity(messages.len() + 1);
    let mut position = 0;
    while let Some(message) = messages.get(position) {
        let at = position;
        position += 1;
        match message.role {
            Role::System if valid.iter().all(|message| message.role == Role::System) => {
                valid.extend(filtered(message, is_text));
            }
            // The place for instructions is the beginning; they are not lost for that.
            Role::System => valid.extend(
                filtered(message, is_text)
                    .map(|message| Arc::new(Message::new(Role::User, message.content.clone()))),
            ),
            Role::User => valid.extend(filtered(message, |block| !is_result(block))),
            Role::Assistant => {
                let Some(message) = whole_calls(message) else {
                    continue;
                };
                let answers = messages[position..]
                    .iter()
                    .take_while(|message| message.role == Role::User)
                    .count();
                let answers = &messages[position..position + answers];
                position += answers.len();
                let answered = answered(&message, answers, |id| missing(at, id));
                valid.push(message);
                valid.extend(answered);
            }
        }
    }
    valid
}

/// The user messages after an assistant message, the first beginning with the results of its
/// calls in their order, none of them having others.
fn answered(
    message: &Message,
    answers: &[Arc<Message>],
    missing: impl Fn(&str) -> Block,
) -> Vec<Arc<Message>> {
    let calls: Vec<&str> = message.tool_uses().map(|(id, _, _)| id).collect();
    let without_results = |answers: &[Arc<Message>]| -> Vec<Arc<Message>> {
        answers
            .iter()
            .filter_map(|answer| filtered(answer, |block| !is_result(block)))
            .collect()
    };
    if calls.is_empty() {
        return without_results(answers);
    }
    if let [first, rest @ ..] = answers
        && leads_with(first, &calls)
    {
        let mut valid = vec![Arc::clone(first)];
        valid.extend(without_results(rest));
        return valid;
    }
    let mut found: HashMap<&str, &Block> = HashMap::new();
    for block in answers.iter().flat_map(|answer| &answer.content) {
        if let Block::ToolResult { tool_use_id, .. } = block {
            found.entry(tool_use_id).or_insert(block);
        }
    }
    let results = calls
        .iter()
        .map(|id| {
            found
                .get(id)
                .map_or_else(|| missing(id), |block| (*block).clone())
        })
        .collect();
    let mut valid = vec![Arc::new(Message::new(Role::User, results))];
    valid.extend(without_results(answers));
    valid
}

/// Whether a message begins with exactly the results of these calls.
fn leads_with(message: &Message, calls: &[&str]) -> bool {
    let mut results = message.content.iter().map(|block| match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
        _ => None,
    });
    calls.iter().all(|id| results.next() == Some(Some(id))) && results.all(|id| id.is_none())
}

/// An assistant message without calls that nobody could answer: those that were cut off while
/// they were written, and repetitions.
fn whole_calls(message: &Arc<Message>) -> Option<Arc<Message>> {
    let mut seen: Vec<&str> = Vec::new();
    let mut surplus = Vec::new();
    for (position, block) in message.content.iter().enumerate() {
        if let Block::ToolUse { id, name, .. } = block {
            if id.is_empty() || name.is_empty() || seen.contains(&id.as_str()) {
                surplus.push(position);
            } else {
                seen.push(id);
            }
        }
    }
    let mut position = 0;
    filtered(message, |_| {
        position += 1;
        !surplus.contains(&(position - 1))
    })
}

/// A message with only some of its blocks; nothing if none is left.
fn filtered(message: &Arc<Message>, mut keep: impl FnMut(&Block) -> bool) -> Option<Arc<Message>> {
    let kept: Vec<bool> = message.content.iter().map(&mut keep).collect();
    if !kept.contains(&true) {
        return None;
    }
    if !kept.contains(&false) {
        return Some(Arc::clone(message));
    }
    let mut message = Message::clone(message);
    let mut kept = kept.into_iter();
    message.content.retain(|_| kept.next().unwrap_or_default());
    Some(Arc::new(message))
}

fn is_text(block: &Block) -> bool {
    matches!(block, Block::Text { .. })
}

fn is_result(block: &Block) -> bool {
    matches!(block, Block::ToolResult { .. })
}

#[cfg(test)]
mod tests;
