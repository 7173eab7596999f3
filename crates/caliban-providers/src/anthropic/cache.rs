//! Marks how far the prompt's prefix should be cached. A mark is the last field of its block and
//! changes nothing else.

use caliban_model::{CachePolicy, CacheTtl};
use serde_json::{Value, json};

/// The user turns that get a mark: the last, and the one before it, which is where the previous
/// call wrote. With the last tool and the last system block that makes the four marks a request
/// may have.
const MARKED_TURNS: usize = 2;

/// Marks the last of these tools or blocks.
pub(super) fn mark_last(policy: CachePolicy, list: &mut [Value]) {
    if let (CachePolicy::Ephemeral(ttl), Some(last)) = (policy, list.last_mut()) {
        mark(ttl, last);
    }
}

/// Bytes of a turn as it is sent that make one token, roughly.
const BYTES_PER_TOKEN: u64 = 4;

/// Marks the last user turns, unless one is estimated to have fewer than `minimum` tokens.
pub(super) fn mark_turns(policy: CachePolicy, minimum: u64, turns: &mut [Value]) {
    let CachePolicy::Ephemeral(ttl) = policy else {
        return;
    };
    let blocks = turns
        .iter_mut()
        .rev()
        .filter(|turn| turn["role"] == "user")
        .filter_map(|turn| {
            let is_large = has_tokens(turn, minimum);
            let blocks = turn["content"].as_array_mut()?;
            let last = blocks.iter_mut().rfind(|block| is_cacheable(block))?;
            Some((last, is_large))
        });
    for (block, is_large) in blocks.take(MARKED_TURNS) {
        if is_large {
            mark(ttl, block);
        }
    }
}

fn has_tokens(turn: &Value, minimum: u64) -> bool {
    // Most requests set no minimum, and estimating takes writing the turn out.
    minimum == 0
        || turn["content"].to_string().len() as u64 >= minimum.saturating_mul(BYTES_PER_TOKEN)
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
        mark_turns(CachePolicy::Off, 0, &mut turns);
        assert!(!json!(turns).to_string().contains("cache_control"));
        mark_turns(HOUR, 0, &mut turns);
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

    #[test]
    fn a_small_turn_is_not_marked_where_there_is_a_minimum() {
        let text = |length| json!({"type": "text", "text": "x".repeat(length)});
        let mut turns = [
            turn("user", &[text(4000)]),
            turn("assistant", &[text(1)]),
            turn("user", &[text(1)]),
        ];
        mark_turns(HOUR, 1000, &mut turns);
        let marked = turns.each_ref().map(|turn| {
            let blocks = turn["content"].as_array().unwrap();
            marks(blocks) == [true]
        });
        assert_eq!(marked, [true, false, false]);
        mark_turns(HOUR, u64::MAX, &mut [turn("user", &[text(1)])]);
    }
}
