//! What the Messages API refuses about thinking that comes back: forgeries, changes and gaps.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::check::Context;
use super::conversation::{Place, Turn, turns};
use super::models::{self, Support};
use super::{Issue, Issued};
use crate::ask::Ask;
use crate::family::Memory;
use crate::fault::{Verdict, ensure};
use crate::json::{self, list, text};

const MODIFIED: &str = "thinking or redacted_thinking blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.";

pub(super) fn check(context: &Context<'_>, turns: &[Turn<'_>], memory: &Memory) -> Verdict {
    let issued = memory.anthropic();
    let latest = turns.iter().rposition(|turn| turn.role == "assistant");
    let bound = context
        .rules
        .is_some_and(|rules| rules.bound == Support::Yes)
        && !drops_mismatches(context);
    let mut prefix = DefaultHasher::new();
    if bound {
        hash_frame(context.body, &mut prefix);
    }
    for (index, turn) in turns.iter().enumerate() {
        for place in turn.blocks.iter().filter(|place| place.thinks()) {
            let mark = mark(place);
            if memory.trusts(mark) {
                continue;
            }
            let Some(known) = lookup(issued, place) else {
                return Err(
                    place.error(&format!("Invalid 'signature' in '{}' block", place.kind()))
                );
            };
            if known
                .text
                .is_some_and(|text| text != place.field("thinking"))
            {
                let reason = if latest == Some(index) {
                    MODIFIED
                } else {
                    "Invalid 'signature' in 'thinking' block"
                };
                return Err(place.error(reason));
            }
            if bound && known.prefix.is_some_and(|before| before != prefix.finish()) {
                return Err(place.error(
                    "Invalid 'signature' in 'thinking' block. The block is bound to a different conversation. Remove the block, or set thinking.block_binding.prefix_mismatch_behavior to \"drop_block\".",
                ));
            }
        }
        if bound {
            hash_turn(turn, &mut prefix);
        }
    }
    match latest.and_then(|index| Some((turns.get(index)?, turns.get(index + 1)))) {
        Some((turn, Some(next)))
            if next
                .blocks
                .iter()
                .any(|place| place.kind() == "tool_result") =>
        {
            complete(context, turn, issued)
        }
        _ => Ok(()),
    }
}

struct Known<'a> {
    /// `None` for redacted thinking, whose mark is all of it.
    text: Option<&'a str>,
    prefix: Option<u64>,
}

fn lookup<'a>(issued: &'a Issued, place: &Place<'_>) -> Option<Known<'a>> {
    let mark = mark(place);
    if place.kind() == "redacted_thinking" {
        return issued.redacted.contains(mark).then_some(Known {
            text: None,
            prefix: None,
        });
    }
    let thought = issued.thoughts.get(mark)?;
    Some(Known {
        text: Some(&thought.text),
        prefix: thought.prefix,
    })
}

fn mark<'a>(place: &'a Place<'_>) -> &'a str {
    if place.kind() == "thinking" {
        place.field("signature")
    } else {
        place.field("data")
    }
}

/// Within a tool loop the latest assistant turn must come back with all its thinking.
fn complete(context: &Context<'_>, turn: &Turn<'_>, issued: &Issued) -> Verdict {
    let Some(first) = turn.blocks.first() else {
        return Ok(());
    };
    if !context.thinks() {
        return Ok(());
    }
    let calls = || {
        turn.blocks
            .iter()
            .filter(|place| place.kind() == "tool_use")
    };
    let mut origins: Vec<&Issue> = Vec::new();
    for issue in calls().filter_map(|place| issued.turns.get(place.field("id"))) {
        if !origins
            .iter()
            .any(|seen| std::ptr::eq(*seen, issue.as_ref()))
        {
            origins.push(issue);
        }
    }
    if origins.is_empty() {
        let manual = context.thinking_type() == Some("enabled");
        return ensure(!manual || first.thinks(), || {
            format!(
                "messages.{}.content.{}.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
                first.message,
                first.block,
                first.kind()
            )
        });
    }
    // Thinking belongs to the model that wrote it; another one does not miss it.
    if origins.iter().any(|issue| issue.model != context.model) {
        return Ok(());
    }
    let present: Vec<_> = turn
        .blocks
        .iter()
        .filter(|place| place.thinks())
        .map(mark)
        .collect();
    let expected: Vec<_> = origins.iter().flat_map(|issue| &issue.marks).collect();
    if present == expected {
        Ok(())
    } else {
        Err(first.error(MODIFIED))
    }
}

fn drops_mismatches(context: &Context<'_>) -> bool {
    let behavior = context
        .body
        .get("thinking")
        .and_then(|config| config.get("block_binding"))
        .and_then(|binding| text(binding, "prefix_mismatch_behavior"));
    behavior == Some("drop_block")
}

fn hash_frame(body: &Value, state: &mut DefaultHasher) {
    for field in ["system", "tools"] {
        json::hash_ignoring_cache(body.get(field).unwrap_or(&Value::Null), state);
    }
}

fn hash_turn(turn: &Turn<'_>, state: &mut DefaultHasher) {
    turn.role.hash(state);
    turn.blocks
        .iter()
        .for_each(|place| json::hash_ignoring_cache(&place.value, state));
}

/// The hash of the whole request, for models that bind their thinking to it.
pub(super) fn bound_prefix(ask: &Ask) -> Option<u64> {
    models::rules(&ask.model).filter(|rules| rules.bound == Support::Yes)?;
    let mut state = DefaultHasher::new();
    hash_frame(&ask.body, &mut state);
    for turn in &turns(list(&ask.body, "messages")) {
        hash_turn(turn, &mut state);
    }
    Some(state.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::anthropic::tests::{exchange, verdict, with_headers};

    #[test]
    fn thinking_may_be_dropped_outside_a_loop_or_by_another_model() {
        let stripped = |body: &mut Value| {
            let content = body["messages"][1]["content"].as_array_mut().unwrap();
            content.retain(|block| block["type"] == "tool_use");
        };
        let (memory, mut body) = exchange("claude-sonnet-4-6");
        stripped(&mut body);
        assert!(
            verdict(&body, &memory)
                .unwrap_err()
                .contains("cannot be modified")
        );
        body["model"] = json!("claude-opus-4-6");
        verdict(&body, &memory).unwrap();
        body["model"] = json!("claude-sonnet-4-6");
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": "done"}));
        messages.push(json!({"role": "user", "content": "thanks"}));
        verdict(&body, &memory).unwrap();
    }

    #[test]
    fn bound_thinking_needs_its_conversation() {
        let (memory, mut body) = exchange("claude-opus-5-5");
        body["system"] = json!("be curt");
        let message = verdict(&body, &memory).unwrap_err();
        assert!(
            message.contains("bound to a different conversation"),
            "{message}"
        );
        body["thinking"]["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
        assert!(
            verdict(&body, &memory)
                .unwrap_err()
                .contains("block_binding: Extra inputs")
        );
        let headers = [
            ("anthropic-version", "2023-06-01"),
            ("anthropic-beta", "thinking-binding-controls-2026-08-01"),
        ];
        with_headers(&body, &memory, &headers).unwrap();
        let (memory, mut body) = exchange("claude-sonnet-4-6");
        body["system"] = json!("be curt");
        verdict(&body, &memory).unwrap();
    }

    #[test]
    fn unknown_thinking_passes_only_when_trusted() {
        let body = json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "recorded"},
                                              {"type": "text", "text": "x"}]},
            {"role": "user", "content": "more"}]});
        assert!(verdict(&body, &Memory::default()).is_err());
        verdict(&body, &Memory::trusting(vec!["recorded".into()])).unwrap();
    }
}
