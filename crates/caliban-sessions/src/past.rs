//! What a conversation was before it was condensed, begun anew or taken back: within bounds every
//! point that it ever stood at can be gone to again.

use std::collections::VecDeque;
use std::sync::Arc;

use caliban_model::{Block, Image, ImageSource, Message, Role, ToolContent};
use serde::{Deserialize, Serialize};

/// Earlier conversations that are kept; the oldest go first.
const MOST: usize = 1024;
/// Bytes of messages that only earlier conversations have.
const MOST_BYTES: usize = 32 << 20;

/// A point of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// How often the conversation had been replaced.
    pub epoch: u64,
    /// How many messages it had.
    pub messages: u64,
}

/// Everything that a conversation was and is no more.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Past {
    /// How often it was replaced.
    pub(crate) epoch: u64,
    /// How each earlier conversation is made of the one after it, the latest last.
    pub(crate) replaced: VecDeque<Earlier>,
    /// The last restore that it went with.
    pub(crate) rewound: Option<String>,
}

/// A conversation in terms of the one that took its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Earlier(pub(crate) Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// So many messages of the later one, from a place on.
    Same { from: usize, count: usize },
    /// A message that the later one has not got there.
    Was(Arc<Message>),
}

impl Past {
    /// The last restore of files that the conversation went with.
    pub fn rewound(&self) -> Option<&str> {
        self.rewound.as_deref()
    }

    pub(crate) fn position(&self, messages: &[Arc<Message>]) -> Position {
        Position {
            epoch: self.epoch,
            messages: messages.len() as u64,
        }
    }

    /// One conversation takes the place of another.
    pub(crate) fn replace(&mut self, old: &[Arc<Message>], new: &[Arc<Message>]) {
        self.epoch = self.epoch.saturating_add(1);
        self.replaced.push_back(Earlier::between(old, new));
        let mut bytes: usize = self.replaced.iter().map(Earlier::bytes).sum();
        while self.replaced.len() > MOST || bytes > MOST_BYTES {
            let Some(oldest) = self.replaced.pop_front() else {
                return;
            };
            bytes -= oldest.bytes();
        }
    }

    /// The conversation as it stood at a position; nothing where that is no longer kept, or never
    /// was.
    pub(crate) fn at(
        &self,
        messages: &[Arc<Message>],
        position: Position,
    ) -> Option<Vec<Arc<Message>>> {
        let back = usize::try_from(self.epoch.checked_sub(position.epoch)?).ok()?;
        if back > self.replaced.len() {
            return None;
        }
        let mut conversation = messages.to_vec();
        for earlier in self.replaced.iter().rev().take(back) {
            conversation = earlier.of(&conversation)?;
        }
        let messages = usize::try_from(position.messages).ok()?;
        conversation.get(..messages).map(<[_]>::to_vec)
    }
}

impl Earlier {
    fn between(old: &[Arc<Message>], new: &[Arc<Message>]) -> Self {
        let is_same =
            |one: &Arc<Message>, other: &Arc<Message>| Arc::ptr_eq(one, other) || one == other;
        let mut pieces = Vec::new();
        if old.len() == new.len() {
            // Some messages were put in the places of others.
            for (at, (was, is)) in old.iter().zip(new).enumerate() {
                if is_same(was, is) {
                    same(&mut pieces, at);
                } else {
                    pieces.push(Piece::Was(Arc::clone(was)));
                }
            }
            return Self(pieces);
        }
        let shorter = old.len().min(new.len());
        let pairs = old.iter().zip(new);
        let head = pairs.take_while(|(was, is)| is_same(was, is)).count();
        let tail = old.iter().rev().zip(new.iter().rev()).take(shorter - head);
        let tail = tail.take_while(|(was, is)| is_same(was, is)).count();
        (0..head).for_each(|at| same(&mut pieces, at));
        let gone = old.iter().take(old.len() - tail).skip(head);
        pieces.extend(gone.cloned().map(Piece::Was));
        (new.len() - tail..new.len()).for_each(|at| same(&mut pieces, at));
        Self(pieces)
    }

    fn of(&self, later: &[Arc<Message>]) -> Option<Vec<Arc<Message>>> {
        let mut messages = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Same { from, count } => {
                    let end = from.checked_add(*count)?;
                    messages.extend_from_slice(later.get(*from..end)?);
                }
                Piece::Was(message) => messages.push(Arc::clone(message)),
            }
        }
        Some(messages)
    }

    fn bytes(&self) -> usize {
        let messages = self.0.iter().map(|piece| match piece {
            Piece::Same { .. } => 0,
            Piece::Was(message) => message.content.iter().map(bytes).sum(),
        });
        messages.sum()
    }
}

/// One more message that both have at a place.
fn same(pieces: &mut Vec<Piece>, at: usize) {
    match pieces.last_mut() {
        Some(Piece::Same { from, count }) if *from + *count == at => *count += 1,
        _ => pieces.push(Piece::Same { from: at, count: 1 }),
    }
}

/// About how much memory a block takes.
fn bytes(block: &Block) -> usize {
    match block {
        Block::Text { text, .. } | Block::Thinking { text, .. } => text.len(),
        Block::RedactedThinking { data } => data.len(),
        Block::ToolUse { input, .. } => input.to_string().len(),
        Block::Opaque { value } => value.to_string().len(),
        Block::Image(image) => image_bytes(image),
        Block::ToolResult { content, .. } => {
            let parts = content.iter().map(|part| match part {
                ToolContent::Text { text } => text.len(),
                ToolContent::Image(image) => image_bytes(image),
            });
            parts.sum()
        }
    }
}

fn image_bytes(image: &Image) -> usize {
    match &image.source {
        ImageSource::Base64 { data } => data.len(),
        ImageSource::Url { url } => url.len(),
    }
}

/// A conversation that is gone back to, told what the present one is told first.
pub(crate) fn under(present: &[Arc<Message>], earlier: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let mut messages: Vec<Arc<Message>> = present.iter().filter(is_system).cloned().collect();
    messages.extend(earlier.into_iter().filter(|message| !is_system(&message)));
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(number: u32) -> Arc<Message> {
        Arc::new(Message::user(number.to_string()))
    }

    /// A conversation that grows, and is replaced now and then.
    #[derive(Debug, Clone)]
    enum Step {
        Add(u32),
        /// Keeps so many messages, and adds others.
        Cut(usize, Vec<u32>),
        /// Puts others in some places.
        Supersede(Vec<usize>),
        GoTo(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0u32..5).prop_map(Step::Add),
            1 => (0usize..6, prop::collection::vec(0u32..5, 0..3)).prop_map(|(keep, more)| Step::Cut(keep, more)),
            1 => prop::collection::vec(0usize..8, 1..3).prop_map(Step::Supersede),
            1 => any::<prop::sample::Index>().prop_map(Step::GoTo),
        ];
        prop::collection::vec(step, 1..40)
    }

    proptest! {
        #[test]
        fn every_point_can_be_gone_to_again(steps in steps()) {
            let mut past = Past::default();
            let mut now: Vec<Arc<Message>> = Vec::new();
            let mut seen: Vec<(Position, Vec<Arc<Message>>)> = vec![(past.position(&now), now.clone())];
            for step in steps {
                let before = now.clone();
                match step {
                    Step::Add(number) => now.push(said(number)),
                    Step::Cut(keep, more) => {
                        now.truncate(keep);
                        now.extend(more.into_iter().map(said));
                        past.replace(&before, &now);
                    }
                    Step::Supersede(places) => {
                        for place in places {
                            if let Some(message) = now.get_mut(place) {
                                *message = said(99);
                            }
                        }
                        past.replace(&before, &now);
                    }
                    Step::GoTo(which) => {
                        now = which.get(&seen).1.clone();
                        past.replace(&before, &now);
                    }
                }
                for (position, was) in &seen {
                    let again = past.at(&now, *position);
                    prop_assert_eq!(again.as_ref(), Some(was));
                }
                seen.push((past.position(&now), now.clone()));
            }
        }
    }

    #[test]
    fn what_is_beyond_the_bound_is_gone_and_what_never_was_is_nowhere() {
        let mut past = Past::default();
        let large = Arc::new(Message::user("x".repeat(MOST_BYTES / 2 + 1)));
        let first = past.position(std::slice::from_ref(&large));
        past.replace(std::slice::from_ref(&large), &[]);
        assert_eq!(past.at(&[], first), Some(vec![Arc::clone(&large)]));
        let second = past.position(std::slice::from_ref(&large));
        past.replace(std::slice::from_ref(&large), &[]);
        assert_eq!(past.at(&[], first), None);
        assert_eq!(past.at(&[], second), Some(vec![large]));
        for _ in 0..=MOST {
            past.replace(&[], &[said(1)]);
        }
        assert_eq!(past.replaced.len(), MOST);
        let later = Position {
            epoch: past.epoch + 1,
            messages: 0,
        };
        assert_eq!(past.at(&[], later), None);
        let longer = Position {
            epoch: past.epoch,
            messages: 1,
        };
        assert_eq!(past.at(&[], longer), None);
    }

    #[test]
    fn what_is_told_first_stays_the_present_one() {
        let system = |text: &str| Arc::new(Message::system(text));
        let present = [system("new"), said(1), said(2)];
        let earlier = vec![system("old"), said(1)];
        assert_eq!(under(&present, earlier), [system("new"), said(1)]);
    }
}
