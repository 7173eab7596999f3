//! Where history may be cut.

use std::sync::Arc;

use caliban_model::{Block, Message, Role};

use crate::conversation::estimate;

/// The index from which turns are kept: as many recent ones as fit into `budget` tokens, at
/// least the last, beginning where a cut separates no call from its result. Where all of them
/// would fit, only the last is kept: they were found too many, whatever they are guessed to be.
pub(super) fn tail_start(turns: &[Arc<Message>], budget: u64) -> usize {
    let mut tokens = 0;
    let mut last = None;
    let mut start = 0;
    for (index, turn) in turns.iter().enumerate().rev() {
        tokens += estimate(turn);
        if tokens > budget && last.is_some() {
            return start;
        }
        if is_boundary(turn) {
            start = index;
            last.get_or_insert(index);
        }
    }
    last.unwrap_or(0)
}

/// A turn before which history may be cut: one that answers no call.
fn is_boundary(turn: &Message) -> bool {
    match turn.role {
        Role::Assistant | Role::System => true,
        Role::User => !turn
            .content
            .iter()
            .any(|block| matches!(block, Block::ToolResult { .. })),
    }
}

/// What the model reads in place of turns that were dropped: that they were there, and what it
/// was first asked to do.
pub(super) fn dropped_note(old: &[Arc<Message>]) -> String {
    const LONGEST: usize = 4_000;
    let task = old
        .iter()
        .find(|turn| turn.role == Role::User && is_boundary(turn))
        .map(|turn| turn.text());
    let mut note = format!(
        "[The first {} messages of this conversation were removed to make room.]",
        old.len()
    );
    if let Some(task) = task {
        let task: String = task.chars().take(LONGEST).collect();
        note.push_str("\n\nThe conversation began with this request:\n\n");
        note.push_str(&task);
    }
    note
}
