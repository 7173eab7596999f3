//! Marks how far the prompt's prefix should be cached. A mark is the last field of its block and
//! changes nothing else.

use caliban_model::{CacheTtl, Role};
use serde_json::{Value, json};

use super::messages::Turn;

/// The user turns that get a mark: the last, and the one before it, which is where the previous
/// call wrote. With the last tool and the last system block that makes the four marks a request
/// may have.
const MARKED_TURNS: usize = 2;

/// Marks the last tool, the last system block and the last user turns.
pub(super) fn mark(ttl: CacheTtl, tools: &mut [Value], system: &mut [Value], turns: &mut [Turn]) {
    let control = match ttl {
        CacheTtl::FiveMinutes => json!({"type": "ephemeral"}),
        CacheTtl::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
    };
    let turns = turns
        .iter_mut()
        .rev()
        .filter(|turn| turn.role == Role::User)
        .filter_map(|turn| turn.content.iter_mut().rev().find(|block| cacheable(block)))
        .take(MARKED_TURNS);
    for block in tools
        .last_mut()
        .into_iter()
        .chain(system.last_mut())
        .chain(turns)
    {
        block["cache_control"] = control.clone();
    }
}

fn cacheable(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("text" | "image" | "tool_result")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(role: Role, content: &[Value]) -> Turn {
        Turn {
            role,
            content: content.to_vec(),
        }
    }

    fn marks(values: &[Value]) -> Vec<bool> {
        values
            .iter()
            .map(|value| value.get("cache_control").is_some())
            .collect()
    }

    #[test]
    fn four_blocks_are_marked_the_last_of_each_kind() {
        let text = json!({"type": "text", "text": "x"});
        let mut tools = [json!({"name": "A"}), json!({"name": "B"})];
        let mut system = [text.clone(), text.clone()];
        let mut turns = [
            turn(Role::User, std::slice::from_ref(&text)),
            turn(Role::Assistant, std::slice::from_ref(&text)),
            turn(Role::User, &[text.clone(), json!({"type": "image"})]),
            turn(Role::Assistant, std::slice::from_ref(&text)),
            turn(
                Role::User,
                &[json!({"type": "tool_result"}), json!({"type": "thinking"})],
            ),
            turn(Role::Assistant, std::slice::from_ref(&text)),
        ];
        mark(CacheTtl::OneHour, &mut tools, &mut system, &mut turns);
        assert_eq!(marks(&tools), [false, true]);
        assert_eq!(marks(&system), [false, true]);
        let turns: Vec<_> = turns.iter().map(|turn| marks(&turn.content)).collect();
        assert_eq!(
            turns,
            [
                vec![false],
                vec![false],
                vec![false, true],
                vec![false],
                vec![true, false],
                vec![false],
            ]
        );
        assert_eq!(
            system[1],
            json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}})
        );
    }
}
