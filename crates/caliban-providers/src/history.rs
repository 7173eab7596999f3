//! Makes a conversation acceptable to every provider: each tool call is followed at once by
//! exactly one result, whatever an interruption left behind, and no two calls share an id,
//! whoever made them.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use caliban_model::{Block, Message, Role, ToolContent};

/// What a call is answered with when its result was lost.
const INTERRUPTED: &str = "The tool call was interrupted before it produced a result.";

/// A turn of a paired conversation.
#[derive(Debug)]
pub(crate) enum Paired<'a> {
    /// As it was said.
    Kept(&'a Arc<Message>),
    Changed(Message),
}

impl Deref for Paired<'_> {
    type Target = Message;

    fn deref(&self) -> &Message {
        match self {
            Self::Kept(message) => message,
            Self::Changed(message) => message,
        }
    }
}

impl AsRef<Message> for Paired<'_> {
    fn as_ref(&self) -> &Message {
        self
    }
}

/// The turns with every tool call paired: results stand first in the turn after their calls, in
/// the order of the calls; missing ones are made up as errors, orphans and repetitions dropped.
/// An id that an earlier call has already used, as happens when servers count their calls from
/// one, is replaced, always by the same; `before` are those of turns before these. Returns also
/// the ids that these turns use.
pub(crate) fn paired<'a>(
    turns: &'a [Arc<Message>],
    before: &HashSet<String>,
) -> (Vec<Paired<'a>>, HashSet<String>) {
    let mut paired = Vec::with_capacity(turns.len());
    let mut used = Used {
        before,
        here: HashSet::with_capacity(turns.len()),
    };
    let mut position = 0;
    while let Some(message) = turns.get(position) {
        position += 1;
        match message.role {
            Role::System => paired.push(Paired::Kept(message)),
            Role::User => paired.extend(without_results(message)),
            Role::Assistant => {
                let answers = turns[position..]
                    .iter()
                    .take_while(|turn| turn.role == Role::User)
                    .count();
                let group = paired.len();
                paired.push(Paired::Kept(message));
                answer(message, &turns[position..position + answers], &mut paired);
                let renamed = repeated(message, &mut used);
                if !renamed.is_empty() {
                    for turn in &mut paired[group..] {
                        rename(turn, &renamed);
                    }
                }
                position += answers;
            }
        }
    }
    (paired, used.here)
}

/// The ids of calls so far.
struct Used<'b> {
    before: &'b HashSet<String>,
    here: HashSet<String>,
}

impl Used<'_> {
    /// Whether the id was free, which it then is no more.
    fn claim(&mut self, id: &str) -> bool {
        !self.before.contains(id) && self.here.insert(id.to_owned())
    }
}

/// Adds the user turns that follow an assistant turn, with its results gathered in the first.
fn answer<'a>(calls: &Message, turns: &'a [Arc<Message>], paired: &mut Vec<Paired<'a>>) {
    if calls.tool_uses().next().is_none() {
        paired.extend(turns.iter().filter_map(without_results));
        return;
    }
    if let [first, rest @ ..] = turns
        && is_paired(calls, first)
        && rest.iter().all(|turn| !has_results(turn))
    {
        paired.extend(turns.iter().map(Paired::Kept));
        return;
    }
    let mut results: HashMap<&str, &Block> = HashMap::new();
    for block in turns.iter().flat_map(|turn| &turn.content) {
        if let Block::ToolResult { tool_use_id, .. } = block {
            results.entry(tool_use_id).or_insert(block);
        }
    }
    let content = calls
        .tool_uses()
        .map(|(id, _, _)| {
            results
                .get(id)
                .map_or_else(|| interrupted(id), |block| (*block).clone())
        })
        .collect();
    paired.push(Paired::Changed(Message::new(Role::User, content)));
    paired.extend(turns.iter().filter_map(without_results));
}

/// New ids for the calls of a turn whose ids were used before.
fn repeated<'a>(calls: &'a Message, used: &mut Used<'_>) -> HashMap<&'a str, String> {
    let mut renamed = HashMap::new();
    for (id, _, _) in calls.tool_uses() {
        if used.claim(id) {
            continue;
        }
        let mut count = 2;
        let mut unique = format!("{id}_{count}");
        while !used.claim(&unique) {
            count += 1;
            unique = format!("{id}_{count}");
        }
        renamed.insert(id, unique);
    }
    renamed
}

fn rename(turn: &mut Paired<'_>, renamed: &HashMap<&str, String>) {
    let mut message = Message::clone(turn);
    for block in &mut message.content {
        let (Block::ToolUse { id, .. }
        | Block::ToolResult {
            tool_use_id: id, ..
        }) = block
        else {
            continue;
        };
        if let Some(unique) = renamed.get(id.as_str()) {
            id.clone_from(unique);
        }
    }
    *turn = Paired::Changed(message);
}

/// Whether a turn starts with exactly the results of these calls in this order and has no others.
fn is_paired(calls: &Message, turn: &Message) -> bool {
    let mut results = turn.content.iter().map(|block| match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
        _ => None,
    });
    calls
        .tool_uses()
        .all(|(id, _, _)| results.next() == Some(Some(id)))
        && results.all(|result| result.is_none())
}

fn has_results(turn: &Message) -> bool {
    turn.content
        .iter()
        .any(|block| matches!(block, Block::ToolResult { .. }))
}

fn without_results(turn: &Arc<Message>) -> Option<Paired<'_>> {
    if !has_results(turn) {
        return Some(Paired::Kept(turn));
    }
    let content: Vec<Block> = turn
        .content
        .iter()
        .filter(|block| !matches!(block, Block::ToolResult { .. }))
        .cloned()
        .collect();
    (!content.is_empty()).then(|| Paired::Changed(Message::new(Role::User, content)))
}

fn interrupted(id: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: vec![ToolContent::Text {
            text: INTERRUPTED.to_owned(),
        }],
        is_error: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn calls(ids: &[&str]) -> Arc<Message> {
        let content = ids
            .iter()
            .map(|id| Block::ToolUse {
                id: (*id).to_owned(),
                name: "T".into(),
                input: json!({}),
                private: None,
            })
            .collect();
        Arc::new(Message::new(Role::Assistant, content))
    }

    fn result(id: &str) -> Block {
        Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: vec![ToolContent::Text { text: id.into() }],
            is_error: false,
        }
    }

    fn user(content: Vec<Block>) -> Arc<Message> {
        Arc::new(Message::new(Role::User, content))
    }

    fn ids(message: &Message) -> Vec<String> {
        message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult {
                    tool_use_id,
                    is_error,
                    ..
                } => Some(format!("{tool_use_id}{}", if *is_error { "!" } else { "" })),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_valid_history_is_passed_on_untouched() {
        let turns = vec![
            user(vec![Block::text("go")]),
            calls(&["a", "b"]),
            user(vec![result("a"), result("b"), Block::text("and")]),
        ];
        let paired = paired(&turns, &HashSet::new()).0;
        assert!(paired.iter().all(|turn| matches!(turn, Paired::Kept(_))));
        assert_eq!(paired.len(), 3);
    }

    #[test]
    fn lost_results_are_made_up_and_orphans_dropped() {
        let turns = vec![
            user(vec![Block::text("go"), result("nobody")]),
            calls(&["a", "b"]),
            user(vec![Block::text("stop"), result("b"), result("b")]),
            calls(&["c"]),
        ];
        let paired = paired(&turns, &HashSet::new()).0;
        let roles: Vec<Role> = paired.iter().map(|turn| turn.role).collect();
        assert_eq!(
            roles,
            [
                Role::User,
                Role::Assistant,
                Role::User,
                Role::User,
                Role::Assistant,
                Role::User
            ]
        );
        assert_eq!(ids(&paired[0]), Vec::<String>::new());
        assert_eq!(ids(&paired[2]), ["a!", "b"]);
        assert_eq!(paired[3].text(), "stop");
        assert_eq!(ids(&paired[5]), ["c!"]);
    }

    #[test]
    fn ids_used_twice_are_told_apart() {
        let turns = vec![
            calls(&["a"]),
            user(vec![result("a")]),
            calls(&["a", "b"]),
            user(vec![result("a"), result("b")]),
        ];
        let paired = paired(&turns, &HashSet::new()).0;
        let made: Vec<&str> = paired[2].tool_uses().map(|(id, _, _)| id).collect();
        assert_eq!(made, ["a_2", "b"]);
        assert_eq!(ids(&paired[3]), ["a_2", "b"]);
        assert!(matches!(paired[0], Paired::Kept(_)));
    }

    proptest! {
        #[test]
        fn every_call_ends_up_with_one_result(script in proptest::collection::vec((0u8..4, 0u8..4), 0..12)) {
            let turns: Vec<Arc<Message>> = script.iter().map(|(kind, id)| {
                let id = format!("t{id}");
                match kind {
                    0 => user(vec![Block::text("x")]),
                    1 => user(vec![result(&id)]),
                    2 => calls(&[&id]),
                    _ => calls(&[&id, "z"]),
                }
            }).collect();
            let paired = paired(&turns, &HashSet::new()).0;
            let all: Vec<&str> = paired.iter().flat_map(|turn| turn.tool_uses()).map(|(id, _, _)| id).collect();
            let distinct: HashSet<&str> = all.iter().copied().collect();
            prop_assert_eq!(all.len(), distinct.len());
            for (at, turn) in paired.iter().enumerate() {
                let wanted: Vec<&str> = turn.tool_uses().map(|(id, _, _)| id).collect();
                let found = match paired.get(at + 1) {
                    Some(next) if turn.role == Role::Assistant => ids(next).iter().map(|id| id.trim_end_matches('!').to_owned()).collect(),
                    _ => Vec::new(),
                };
                prop_assert_eq!(wanted, found);
            }
        }
    }
}
