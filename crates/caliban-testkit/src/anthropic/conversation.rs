//! What the Messages API refuses about the conversation: the shape of its messages, their order, and calls without results.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Value, json};

use super::check::Context;
use super::models::Support;
use super::thinking;
use crate::family::Memory;
use crate::fault::{Rejection, Verdict, ensure};
use crate::json::{self, given, is_name, list, text};

const MAX_MESSAGES: usize = 100_000;
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Consecutive messages of one role, which the API treats as one.
pub(super) struct Turn<'a> {
    pub(super) role: &'a str,
    pub(super) blocks: Vec<Place<'a>>,
}

/// A content block and where it stands in the request.
pub(super) struct Place<'a> {
    pub(super) message: usize,
    pub(super) block: usize,
    pub(super) value: Cow<'a, Value>,
}

impl Place<'_> {
    pub(super) fn kind(&self) -> &str {
        text(&self.value, "type").unwrap_or_default()
    }

    pub(super) fn field(&self, key: &str) -> &str {
        text(&self.value, key).unwrap_or_default()
    }

    pub(super) fn error(&self, reason: &str) -> Rejection {
        Rejection::invalid(format!(
            "messages.{}.content.{}: {reason}",
            self.message, self.block
        ))
    }

    pub(super) fn thinks(&self) -> bool {
        matches!(self.kind(), "thinking" | "redacted_thinking")
    }
}

pub(super) fn check(context: &Context<'_>, memory: &Memory) -> Verdict {
    let Some(messages) = context.body.get("messages").and_then(Value::as_array) else {
        return Err(Rejection::invalid("messages: Field required"));
    };
    ensure(!messages.is_empty(), || {
        "messages: at least one message is required".into()
    })?;
    ensure(messages.len() <= MAX_MESSAGES, || {
        format!("messages: at most {MAX_MESSAGES} messages are allowed")
    })?;
    for (index, message) in messages.iter().enumerate() {
        shape(context, messages, index, message)?;
    }
    let turns = turns(messages);
    ensure(
        turns.first().is_some_and(|turn| turn.role == "user"),
        || "messages: first message must use the \"user\" role".into(),
    )?;
    for place in turns.iter().flat_map(|turn| &turn.blocks) {
        block(context, place)?;
    }
    ending(context, &turns)?;
    tool_pairs(&turns)?;
    thinking::check(context, &turns, memory)
}

fn shape(context: &Context<'_>, messages: &[Value], index: usize, message: &Value) -> Verdict {
    let role = text(message, "role").unwrap_or_default();
    let extra = message
        .as_object()
        .and_then(|f| f.keys().find(|key| *key != "role" && *key != "content"));
    if let Some(key) = extra {
        return Err(Rejection::invalid(format!(
            "messages.{index}.{key}: Extra inputs are not permitted"
        )));
    }
    match role {
        "user" | "assistant" => {}
        "system" => {
            ensure(
                context
                    .rules
                    .is_some_and(|rules| rules.system_role == Support::Yes),
                || "role 'system' is not supported on this model".into(),
            )?;
            let role_at = |at: usize| messages.get(at).and_then(|message| text(message, "role"));
            let after_user = index.checked_sub(1).and_then(role_at) == Some("user");
            ensure(
                after_user && matches!(role_at(index + 1), None | Some("assistant")),
                || {
                    format!(
                        "messages.{index}: a system message must follow a user message and be last or followed by an assistant message"
                    )
                },
            )?;
        }
        _ => {
            return Err(Rejection::invalid(format!(
                "messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\"."
            )));
        }
    }
    let empty = match message.get("content") {
        Some(Value::String(words)) => words.trim().is_empty(),
        Some(Value::Array(blocks)) => blocks.is_empty(),
        _ => {
            return Err(Rejection::invalid(format!(
                "messages.{index}.content: Field required"
            )));
        }
    };
    ensure(!empty, || {
        format!("messages.{index}: all messages must have non-empty content")
    })
}

pub(super) fn turns(messages: &[Value]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for (message, value) in messages.iter().enumerate() {
        let role = text(value, "role").unwrap_or_default();
        if turns.last().is_none_or(|turn| turn.role != role) {
            turns.push(Turn {
                role,
                blocks: Vec::new(),
            });
        }
        let Some(turn) = turns.last_mut() else {
            continue;
        };
        match value.get("content") {
            Some(Value::String(content)) => {
                let value = Cow::Owned(json!({"type": "text", "text": content}));
                turn.blocks.push(Place {
                    message,
                    block: 0,
                    value,
                });
            }
            _ => turn
                .blocks
                .extend(
                    list(value, "content")
                        .iter()
                        .enumerate()
                        .map(|(block, value)| Place {
                            message,
                            block,
                            value: Cow::Borrowed(value),
                        }),
                ),
        }
    }
    turns
}

fn block(context: &Context<'_>, place: &Place<'_>) -> Verdict {
    let role = list(context.body, "messages")
        .get(place.message)
        .and_then(|message| text(message, "role"))
        .unwrap_or_default();
    let new_version = context.version != "2023-06-01";
    let misplaced = || {
        place.error(&format!(
            "`{}` blocks are not allowed in {role} messages",
            place.kind()
        ))
    };
    match (place.kind(), role) {
        ("text", _) => {
            non_empty(place, &place.value)?;
            let cites = role == "user" && !list(&place.value, "citations").is_empty();
            if cites && new_version {
                return Err(place.error("citations are not allowed in user messages"));
            }
            Ok(())
        }
        ("image", "user") => image(place, &place.value),
        ("document" | "search_result" | "container_upload", "user")
        | ("fallback" | "compaction" | "server_tool_use", "assistant") => Ok(()),
        ("document", _) if new_version => Err(misplaced()),
        ("document", _) => Ok(()),
        ("tool_use", "assistant") => tool_use(place),
        ("tool_result", "user") => tool_result(place),
        ("thinking", "assistant") => {
            let whole = place.value.get("thinking").is_some_and(Value::is_string)
                && place.value.get("signature").is_some_and(Value::is_string);
            if whole {
                Ok(())
            } else {
                Err(place.error("thinking.signature: Field required"))
            }
        }
        ("redacted_thinking", "assistant") => {
            if place.field("data").is_empty() {
                Err(place.error("redacted_thinking.data: Field required"))
            } else {
                Ok(())
            }
        }
        ("image" | "tool_use" | "tool_result" | "thinking" | "redacted_thinking", _) => {
            Err(misplaced())
        }
        (kind, "assistant") if kind.ends_with("_tool_result") => Ok(()),
        (kind, _) => Err(place.error(&format!(
            "Input tag '{kind}' found using 'type' does not match any of the expected tags"
        ))),
    }
}

fn non_empty(place: &Place<'_>, value: &Value) -> Verdict {
    match text(value, "text") {
        None => Err(place.error("text.text: Field required")),
        Some(content) if content.trim().is_empty() => {
            Err(place.error("text content blocks must be non-empty"))
        }
        Some(_) => Ok(()),
    }
}

fn image(place: &Place<'_>, value: &Value) -> Verdict {
    let source = value.get("source").unwrap_or(&Value::Null);
    match text(source, "type") {
        Some("base64") => {
            let media_type = text(source, "media_type").unwrap_or_default();
            if !IMAGE_TYPES.contains(&media_type) {
                return Err(place.error(
                    "image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
                ));
            }
            if json::is_base64(text(source, "data").unwrap_or_default()) {
                Ok(())
            } else {
                Err(place.error("image.source.base64: invalid base64 data"))
            }
        }
        Some("url" | "file") => Ok(()),
        _ => Err(place.error("image.source.type: Input should be 'base64', 'url' or 'file'")),
    }
}

fn tool_use(place: &Place<'_>) -> Verdict {
    if !is_name(place.field("id"), usize::MAX) {
        return Err(place.error("tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    if !is_name(place.field("name"), 128) {
        return Err(
            place.error("tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
        );
    }
    if place.value.get("input").is_some_and(Value::is_object) {
        Ok(())
    } else {
        Err(place.error("tool_use.input: Input should be a valid dictionary"))
    }
}

fn tool_result(place: &Place<'_>) -> Verdict {
    match given(&place.value, "content") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            blocks
                .iter()
                .try_for_each(|block| match text(block, "type") {
                    Some("text") => non_empty(place, block),
                    Some("image") => image(place, block),
                    Some("document" | "search_result" | "tool_reference") => Ok(()),
                    _ => Err(place.error("tool_result.content: unexpected block type")),
                })
        }
        Some(_) => Err(place.error("tool_result.content: Input should be a valid string or list")),
    }
}

fn ending(context: &Context<'_>, turns: &[Turn<'_>]) -> Verdict {
    let Some(last) = turns.last().filter(|turn| turn.role == "assistant") else {
        return Ok(());
    };
    let prefill = context
        .rules
        .is_some_and(|rules| rules.prefill == Support::Yes)
        && !context.thinks();
    ensure(prefill, || {
        "This model does not support assistant message prefill. The conversation must end with a user message.".into()
    })?;
    let trailing = last.blocks.last().is_some_and(|place| {
        place.kind() == "text" && place.field("text").ends_with(char::is_whitespace)
    });
    ensure(!trailing, || {
        "messages: final assistant content cannot end with trailing whitespace".into()
    })
}

fn tool_pairs(turns: &[Turn<'_>]) -> Verdict {
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for turn in turns {
        if turn.role == "system" {
            continue;
        }
        answers(turn, &open)?;
        open.clear();
        for place in turn
            .blocks
            .iter()
            .filter(|place| place.kind() == "tool_use")
        {
            let id = place.field("id");
            ensure(seen.insert(id), || {
                "messages: `tool_use` ids must be unique".into()
            })?;
            open.push(id);
        }
    }
    unanswered(&open, turns.last())
}

fn unanswered(open: &[&str], turn: Option<&Turn<'_>>) -> Verdict {
    let index = turn
        .and_then(|turn| turn.blocks.first())
        .map_or(0, |place| place.message);
    ensure(open.is_empty(), || {
        format!(
            "messages.{index}: tool_use ids were found without tool_result blocks immediately after: {}. Each tool_use block must have a corresponding tool_result block in the next message.",
            open.join(", ")
        )
    })
}

/// A turn must first answer every call of the turn before it, and nothing else.
fn answers(turn: &Turn<'_>, open: &[&str]) -> Verdict {
    let leading = turn
        .blocks
        .iter()
        .take_while(|place| place.kind() == "tool_result");
    let mut answered = Vec::new();
    for place in leading {
        let id = place.field("tool_use_id");
        orphan(place, open)?;
        if answered.contains(&id) {
            return Err(place.error(&format!(
                "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            )));
        }
        answered.push(id);
    }
    let missing: Vec<_> = open
        .iter()
        .copied()
        .filter(|id| !answered.contains(id))
        .collect();
    unanswered(&missing, Some(turn))?;
    match turn
        .blocks
        .iter()
        .skip(answered.len())
        .find(|place| place.kind() == "tool_result")
    {
        Some(late) => {
            orphan(late, open)?;
            Err(late.error("tool_result blocks must come before any other content of the message"))
        }
        None => Ok(()),
    }
}

fn orphan(place: &Place<'_>, open: &[&str]) -> Verdict {
    let id = place.field("tool_use_id");
    if open.contains(&id) {
        return Ok(());
    }
    Err(place.error(&format!(
        "unexpected tool_use_id found in tool_result blocks: {id}. Each tool_result block must have a corresponding tool_use block in the previous message."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anthropic::tests::{exchange, verdict};

    #[test]
    fn a_faithful_continuation_passes() {
        for model in ["claude-sonnet-4-6", "claude-opus-5-5", "test-model"] {
            let (memory, body) = exchange(model);
            verdict(&body, &memory).unwrap();
        }
    }

    fn assert_refused(cases: &[(&str, Value, &str)]) {
        for (pointer, value, reason) in cases {
            let (memory, mut body) = exchange("claude-sonnet-4-6");
            *body.pointer_mut(pointer).unwrap() = value.clone();
            let message = verdict(&body, &memory).expect_err(pointer);
            assert!(message.contains(reason), "{pointer}: {message}");
        }
    }

    #[test]
    fn misshapen_messages_are_refused() {
        assert_refused(&[
            ("/messages", json!([]), "at least one message"),
            (
                "/messages/0/role",
                json!("assistant"),
                "first message must use the \"user\" role",
            ),
            (
                "/messages/0/role",
                json!("system"),
                "role 'system' is not supported on this model",
            ),
            ("/messages/0/role", json!("tool"), "Unexpected role"),
            ("/messages/0/content", json!([]), "non-empty content"),
            ("/messages/0/content", json!(""), "non-empty content"),
            (
                "/messages/0/content/0/text",
                json!(" \n"),
                "text content blocks must be non-empty",
            ),
            (
                "/messages/0/content/0/type",
                json!("sparkle"),
                "Input tag 'sparkle'",
            ),
            (
                "/messages/0/content/1/source/media_type",
                json!("image/bmp"),
                "media_type",
            ),
            (
                "/messages/0/content/1/source/data",
                json!("?"),
                "invalid base64",
            ),
        ]);
    }

    #[test]
    fn broken_loops_are_refused() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_refused(&[
            (
                "/messages/1/content/0/signature",
                json!("forged"),
                "Invalid 'signature' in 'thinking' block",
            ),
            (
                "/messages/1/content/0/thinking",
                json!("Other"),
                "latest assistant message cannot be modified",
            ),
            (
                "/messages/1/content/0",
                text("Plan"),
                "latest assistant message cannot be modified",
            ),
            (
                "/messages/1/content/3/data",
                json!("other"),
                "Invalid 'signature' in 'redacted_thinking'",
            ),
            (
                "/messages/1/content/1/id",
                json!("a b"),
                "tool_use.id: String should match",
            ),
            (
                "/messages/1/content/1/id",
                json!("toolu_0002"),
                "ids must be unique",
            ),
            ("/messages/1/content/1/input", json!("{}"), "tool_use.input"),
            (
                "/messages/2/content/0",
                text("wait"),
                "tool_use ids were found without tool_result blocks immediately after: toolu_0001, toolu_0002",
            ),
            (
                "/messages/2/content/1",
                text("wait"),
                "immediately after: toolu_0002",
            ),
            (
                "/messages/2/content/2",
                json!({"type": "tool_result", "tool_use_id": "zzz"}),
                "unexpected tool_use_id found in tool_result blocks",
            ),
            (
                "/messages/2/content/1/tool_use_id",
                json!("toolu_0001"),
                "single result",
            ),
            (
                "/messages/2/content/0/content",
                json!([{"type": "text", "text": ""}]),
                "text content blocks must be non-empty",
            ),
            (
                "/messages/2",
                json!({"role": "assistant", "content": "x"}),
                "does not support assistant message prefill",
            ),
        ]);
    }

    #[test]
    fn results_come_before_text() {
        let (memory, mut body) = exchange("claude-sonnet-4-6");
        body["messages"][2]["content"]
            .as_array_mut()
            .unwrap()
            .swap(1, 2);
        assert!(
            verdict(&body, &memory)
                .unwrap_err()
                .contains("immediately after: toolu_0002")
        );
        // Consecutive messages of one role are one turn.
        let (memory, mut body) = exchange("claude-sonnet-4-6");
        let trailing = body["messages"][2]["content"]
            .as_array_mut()
            .unwrap()
            .pop()
            .unwrap();
        body["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({"role": "user", "content": [trailing]}));
        verdict(&body, &memory).unwrap();
    }

    #[test]
    fn prefill_follows_the_model() {
        let body = |model: &str, last: &str| {
            json!({"model": model, "max_tokens": 9, "messages": [
                {"role": "user", "content": "hi"}, {"role": "assistant", "content": last}]})
        };
        verdict(&body("claude-haiku-4-5", "So"), &Memory::default()).unwrap();
        assert!(
            verdict(&body("claude-haiku-4-5", "So "), &Memory::default())
                .unwrap_err()
                .contains("whitespace")
        );
        assert!(
            verdict(&body("claude-opus-4-8", "So"), &Memory::default())
                .unwrap_err()
                .contains("prefill")
        );
    }

    #[test]
    fn system_entries_need_a_model_that_has_them() {
        let body = json!({"model": "claude-opus-4-8", "max_tokens": 9, "messages": [
            {"role": "user", "content": "hi"}, {"role": "system", "content": "be kind"}]});
        verdict(&body, &Memory::default()).unwrap();
    }
}
