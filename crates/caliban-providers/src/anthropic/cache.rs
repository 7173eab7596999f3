//! Marks how far the prompt's prefix should be cached. A mark is the last field of its block and
//! changes nothing else.

use caliban_model::{CachePolicy, CacheTtl, MarkedTurn};
use serde_json::{Value, json};

/// Marks the last of these tools or blocks.
pub(super) fn mark_last(policy: CachePolicy, list: &mut [Value]) {
    if let (CachePolicy::Ephemeral(ttl), Some(last)) = (policy, list.last_mut()) {
        mark(ttl, last);
    }
}

/// Marks these user turns, in the last block of each that can have a mark.
pub(super) fn mark_turns(policy: CachePolicy, marked: &[MarkedTurn], turns: &mut [Value]) {
    let CachePolicy::Ephemeral(ttl) = policy else {
        return;
    };
    let users = turns.iter_mut().rev().filter(|turn| turn["role"] == "user");
    for (later, turn) in users.enumerate() {
        if !marked.iter().any(|mark| mark.later == later) {
            continue;
        }
        let blocks = turn["content"].as_array_mut();
        if let Some(block) =
            blocks.and_then(|blocks| blocks.iter_mut().rfind(|it| is_cacheable(it)))
        {
            mark(ttl, block);
        }
    }
}

fn is_cacheable(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("tool_result" | "text" | "image")
    )
}

fn mark(ttl: CacheTtl, block: &mut Value) {
    block["cache_control"] = match ttl {
        CacheTtl::FiveMinutes => json!({"type": "ephemeral"}),
        CacheTtl::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: CachePolicy = CachePolicy::Ephemeral(CacheTtl::OneHour);

    fn turn(role: &str, content: &[Value]) -> Value {
        json!({"role": role, "content": content})
    }

    fn marks(blocks: &[Value]) -> Vec<bool> {
        blocks
            .iter()
            .map(|block| block.get("cache_control").is_some())
            .collect()
    }

    #[test]
    fn the_last_of_a_list_is_marked() {
        let text = json!({"type": "text", "text": "x"});
        let mut system = [text.clone(), text];
        mark_last(CachePolicy::Off, &mut system);
        assert_eq!(marks(&system), [false, false]);
        mark_last(HOUR, &mut system);
        assert_eq!(marks(&system), [false, true]);
        assert_eq!(
            system[1].to_string(),
            r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}"#
        );
        mark_last(HOUR, &mut []);
    }

    #[test]
    fn the_last_user_turns_are_marked_where_a_mark_may_stand() {
        let text = json!({"type": "text", "text": "x"});
        let one = std::slice::from_ref(&text);
        let mut turns = [
            turn("user", one),
            turn("assistant", one),
            turn("user", &[text.clone(), json!({"type": "image"})]),
            turn("assistant", one),
            turn(
                "user",
                &[json!({"type": "tool_result"}), json!({"type": "thinking"})],
            ),
            turn("assistant", one),
        ];
        let last = [0, 1].map(|later| MarkedTurn { later, message: 0 });
        mark_turns(CachePolicy::Off, &last, &mut turns);
        assert!(!json!(turns).to_string().contains("cache_control"));
        mark_turns(HOUR, &[], &mut turns);
        assert!(!json!(turns).to_string().contains("cache_control"));
        mark_turns(HOUR, &last, &mut turns);
        let marked: Vec<_> = turns
            .iter()
            .map(|turn| marks(turn["content"].as_array().unwrap()))
            .collect();
        assert_eq!(
            marked,
            [
                vec![false],
                vec![false],
                vec![false, true],
                vec![false],
                vec![true, false],
                vec![false],
            ]
        );
    }
}
