//! Marks how far the prompt's prefix should be cached. A mark is the last field of its block and
//! changes nothing else.

use std::sync::Arc;

use caliban_model::{CacheTtl, Role};
use serde_json::json;

use super::messages::Turn;
use super::written::Written;

/// The user turns that get a mark: the last, and the one before it, which is where the previous
/// call wrote. With the last tool and the last system block that makes the four marks a request
/// may have.
const MARKED_TURNS: usize = 2;

/// Marks the last tool, the last system block and the last user turns.
pub(super) fn mark(
    ttl: CacheTtl,
    tools: &mut [Written],
    system: &mut [Written],
    turns: &mut [Turn],
) {
    let control = match ttl {
        CacheTtl::FiveMinutes => json!({"type": "ephemeral"}),
        CacheTtl::OneHour => json!({"type": "ephemeral", "ttl": "1h"}),
    };
    let turns = turns
        .iter_mut()
        .rev()
        .filter(|turn| turn.role == Role::User)
        .filter_map(|turn| {
            let last = turn.content.iter().rposition(Written::is_cacheable)?;
            Arc::make_mut(&mut turn.content).get_mut(last)
        })
        .take(MARKED_TURNS);
    for block in tools
        .last_mut()
        .into_iter()
        .chain(system.last_mut())
        .chain(turns)
    {
        block.push("cache_control", &control);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn turn(role: Role, content: &[Value]) -> Turn {
        Turn {
            role,
            content: written(content).into(),
        }
    }

    fn written(values: &[Value]) -> Vec<Written> {
        values.iter().map(Written::new).collect()
    }

    fn marks(blocks: &[Written]) -> Vec<bool> {
        blocks
            .iter()
            .map(|block| block.json().contains("cache_control"))
            .collect()
    }

    #[test]
    fn four_blocks_are_marked_the_last_of_each_kind() {
        let text = json!({"type": "text", "text": "x"});
        let mut tools = written(&[json!({"name": "A"}), json!({"name": "B"})]);
        let mut system = written(&[text.clone(), text.clone()]);
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
            system[1].json(),
            json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}})
                .to_string()
        );
    }
}
