//! What earlier requests said, as it was written: of a long conversation only what is new has to
//! be written, and the time that a turn takes does not grow with those before it.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::{Block, CachePolicy, Message, Request, Role, ToolSpec};
use serde_json::Value;

use crate::body::List;
use crate::history::{Paired, paired};

/// The most text that is kept of all conversations.
const MOST_KEPT: usize = 8 * 1024 * 1024;
/// The most conversations of which something is kept: the main one and those of sub-agents.
const MOST_CONVERSATIONS: usize = 8;
/// How many exchanges at the end are written for every request: the marks of a cache stand there,
/// and move on.
const OPEN_EXCHANGES: usize = 3;

/// What was written for earlier requests of one family. `S` is what the family has to know of the
/// turns before those that it writes.
#[derive(Debug, Default)]
pub(crate) struct Memory<S> {
    kept: Mutex<Kept<S>>,
    /// Who serves the family, where it is not who made it.
    platform: Option<&'static str>,
}

/// Who reads a conversation: reasoning and private fields go back to nobody but who wrote them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Author<'a> {
    pub(crate) provider: &'a str,
    pub(crate) model: &'a str,
}

impl Author<'_> {
    pub(crate) fn wrote(&self, message: &Message) -> bool {
        message.written_by(self.provider, self.model)
    }
}

#[derive(Debug)]
struct Kept<S> {
    tools: Option<Tools>,
    /// The one used last stands first.
    beginnings: VecDeque<Beginning<S>>,
}

#[derive(Debug)]
struct Tools {
    specs: Arc<[ToolSpec]>,
    cache: CachePolicy,
    json: Arc<String>,
}

/// The settled turns of a conversation.
#[derive(Debug)]
struct Beginning<S> {
    /// For whom they were written.
    reader: String,
    turns: Vec<Arc<Message>>,
    /// The ids of their calls.
    used: HashSet<String>,
    state: S,
    /// As JSON, with commas between them.
    json: Arc<String>,
}

/// A conversation as it is sent.
#[derive(Debug)]
pub(crate) struct Written<S> {
    /// The settled turns as text, the last ones as values.
    pub(crate) turns: List,
    /// After all turns.
    pub(crate) state: S,
}

impl<S> Default for Kept<S> {
    fn default() -> Self {
        Self {
            tools: None,
            beginnings: VecDeque::new(),
        }
    }
}

impl<S: Default> Memory<S> {
    /// For a family that `platform` serves.
    pub(crate) fn on(platform: &'static str) -> Self {
        Self {
            platform: Some(platform),
            ..Self::default()
        }
    }

    /// Who reads what is written for `model` of `family`.
    pub(crate) fn author<'a>(&self, family: &'static str, model: &'a str) -> Author<'a> {
        Author {
            provider: self.platform.unwrap_or(family),
            model,
        }
    }
}

impl<S: Clone + Default> Memory<S> {
    /// Writes the turns of a request with `write`, but for those that were written for the same
    /// reader before. Turns are handed over in pieces that begin where nothing before them changes
    /// how they are written, the state aside.
    pub(crate) fn turns(
        &self,
        reader: &str,
        turns: &[Arc<Message>],
        write: impl Fn(&[Paired<'_>], &mut S) -> Vec<Value>,
    ) -> Written<S> {
        self.turns_up_to(usize::MAX, reader, turns, write)
    }

    /// The same, and what stands at the place `open` and after it is among the last turns: it may
    /// yet change how it is written.
    pub(crate) fn turns_up_to(
        &self,
        open: usize,
        reader: &str,
        turns: &[Arc<Message>],
        write: impl Fn(&[Paired<'_>], &mut S) -> Vec<Value>,
    ) -> Written<S> {
        // Whoever panicked had taken out what it worked on.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut beginning = kept.take(reader, turns);
        let known = beginning.turns.len();
        let settled = settled(turns, known, open);
        if settled > known {
            beginning.extend(&turns[known..settled], &write);
        }
        let (rest, _) = paired(&turns[settled..], &beginning.used);
        let mut state = beginning.state.clone();
        let tail = write(&rest, &mut state);
        let written = Written {
            turns: List {
                head: Vec::new(),
                written: Arc::clone(&beginning.json),
                tail,
            },
            state,
        };
        kept.keep(beginning);
        written
    }

    /// The tools of a request as JSON, written with `write` unless the last request had the same.
    pub(crate) fn tools(&self, request: &Request, write: impl FnOnce() -> Value) -> Arc<String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &kept.tools {
            Some(tools)
                if Arc::ptr_eq(&tools.specs, &request.tools) && tools.cache == request.cache =>
            {
                Arc::clone(&tools.json)
            }
            Some(_) | None => {
                let json = Arc::new(write().to_string());
                kept.tools = Some(Tools {
                    specs: Arc::clone(&request.tools),
                    cache: request.cache,
                    json: Arc::clone(&json),
                });
                json
            }
        }
    }
}

impl<S: Default> Kept<S> {
    /// Takes out what is known of how these turns begin.
    fn take(&mut self, reader: &str, turns: &[Arc<Message>]) -> Beginning<S> {
        let is_known = |beginning: &Beginning<S>| {
            beginning.reader == reader
                && beginning.turns.len() <= turns.len()
                && beginning
                    .turns
                    .iter()
                    .zip(turns)
                    .all(|(known, turn)| Arc::ptr_eq(known, turn))
        };
        let position = self.beginnings.iter().position(is_known);
        position
            .and_then(|position| self.beginnings.remove(position))
            .unwrap_or_else(|| Beginning {
                reader: reader.to_owned(),
                turns: Vec::new(),
                used: HashSet::new(),
                state: S::default(),
                json: Arc::default(),
            })
    }

    fn keep(&mut self, beginning: Beginning<S>) {
        if !beginning.turns.is_empty() {
            self.beginnings.push_front(beginning);
        }
        self.beginnings.truncate(MOST_CONVERSATIONS);
        let mut bytes = 0;
        self.beginnings.retain(|beginning| {
            bytes += beginning.json.len();
            bytes <= MOST_KEPT
        });
    }
}

impl<S> Beginning<S> {
    fn extend(
        &mut self,
        turns: &[Arc<Message>],
        write: &impl Fn(&[Paired<'_>], &mut S) -> Vec<Value>,
    ) {
        let (list, ids) = paired(turns, &self.used);
        let values = write(&list, &mut self.state);
        let json = Arc::make_mut(&mut self.json);
        for value in values {
            if !json.is_empty() {
                json.push(',');
            }
            json.push_str(&value.to_string());
        }
        self.used.extend(ids);
        self.turns.extend(turns.iter().cloned());
    }
}

/// How many turns are settled: whatever follows, they are written as they are now.
fn settled(turns: &[Arc<Message>], known: usize, open: usize) -> usize {
    (known + 1..turns.len())
        .rev()
        .filter(|position| is_border(&turns[..*position], &turns[*position]))
        .skip(OPEN_EXCHANGES - 1)
        .find(|position| *position <= open)
        .unwrap_or(known)
}

/// Whether the turn answers a turn that stays its own: no family can join either with a
/// neighbour beyond them, since both say something.
fn is_border(before: &[Arc<Message>], turn: &Message) -> bool {
    let Some(last) = before.last() else {
        return false;
    };
    let calls = |message: &Message| message.tool_uses().next().is_some();
    let is_answered = match before {
        // Whatever it holds, it will hold the results.
        [.., caller, _] if caller.role == Role::Assistant && calls(caller) => true,
        _ => says_something(last),
    };
    turn.role == Role::Assistant
        && last.role == Role::User
        && is_answered
        && (calls(turn) || says_something(turn))
}

fn says_something(message: &Message) -> bool {
    message.content.iter().any(|block| match block {
        Block::Text { text, .. } => !text.trim().is_empty(),
        Block::Image(_) => true,
        Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. }
        | Block::Opaque { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::body::Body;

    /// Writes turns as they are and counts them.
    fn write(turns: &[Paired<'_>], count: &mut usize) -> Vec<Value> {
        *count += turns.len();
        turns.iter().map(|turn| json!(turn.text())).collect()
    }

    fn exchange(number: usize) -> [Arc<Message>; 2] {
        [
            Arc::new(Message::user(format!("q{number}"))),
            Arc::new(Message::assistant(format!("a{number}"))),
        ]
    }

    fn text(written: &Written<usize>) -> String {
        let mut body = Body::default();
        body.set_list("turns", written.turns.clone());
        String::from_utf8(body.bytes().unwrap()).unwrap()
    }

    #[test]
    fn of_a_growing_conversation_only_the_end_is_written() {
        let memory = Memory::<usize>::default();
        let mut turns = Vec::new();
        for number in 0..20 {
            let [question, answer] = exchange(number);
            turns.push(question);
            let handed = std::cell::Cell::new(0);
            let written = memory.turns("m", &turns, |turns, count: &mut usize| {
                handed.set(handed.get() + turns.len());
                write(turns, count)
            });
            assert!(handed.get() <= 2 * OPEN_EXCHANGES + 3, "{}", handed.get());
            assert_eq!(written.state, turns.len());
            assert_eq!(
                text(&written),
                text(&Memory::default().turns("m", &turns, write))
            );
            turns.push(answer);
        }
    }

    #[test]
    fn another_reader_and_another_conversation_are_written_anew() {
        let memory = Memory::<usize>::default();
        let turns: Vec<Arc<Message>> = (0..9).flat_map(exchange).collect();
        let first = memory.turns("m", &turns, write);
        assert!(!first.turns.written.is_empty());
        let other = |turns: &[Paired<'_>], _: &mut usize| {
            turns.iter().map(|_| json!("other")).collect::<Vec<Value>>()
        };
        assert_eq!(
            memory
                .turns("n", &turns, other)
                .turns
                .written
                .matches("other")
                .count(),
            turns.len() - 2 * OPEN_EXCHANGES + 1
        );
        // The same words in other messages are another conversation.
        let again: Vec<Arc<Message>> = (0..9).flat_map(exchange).collect();
        assert!(
            memory
                .turns("m", &again, other)
                .turns
                .written
                .contains("other")
        );
        assert!(
            !memory
                .turns("m", &turns, other)
                .turns
                .written
                .contains("other")
        );
        // And so is one that has lost its beginning.
        let later = memory.turns("m", &turns[2..], other);
        assert!(later.turns.written.contains("other"));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let memory = Memory::<usize>::default();
        let long = "x".repeat(MOST_KEPT / 4);
        let conversation = || -> Vec<Arc<Message>> {
            let mut turns: Vec<Arc<Message>> = vec![Arc::new(Message::user(long.clone()))];
            turns.extend((0..9).flat_map(exchange).skip(1));
            turns
        };
        let conversations: Vec<_> = (0..6).map(|_| conversation()).collect();
        for turns in &conversations {
            memory.turns("m", turns, write);
        }
        let kept = memory.kept.lock().unwrap();
        let bytes: usize = kept.beginnings.iter().map(|one| one.json.len()).sum();
        assert!(bytes <= MOST_KEPT);
        assert_eq!(kept.beginnings.len(), 3);
        drop(kept);
        for _ in 0..2 * MOST_CONVERSATIONS {
            let turns: Vec<Arc<Message>> = (0..9).flat_map(exchange).collect();
            memory.turns("m", &turns, write);
        }
        assert_eq!(
            memory.kept.lock().unwrap().beginnings.len(),
            MOST_CONVERSATIONS
        );
    }

    proptest! {
        #[test]
        fn what_is_settled_stays_settled(said in prop::collection::vec((0..3_u8, 0..3_u8), 0..40)) {
            let turns: Vec<Arc<Message>> = said
                .iter()
                .map(|(role, text)| {
                    let text = ["", " ", "words"][usize::from(*text)];
                    Arc::new(match role {
                        0 => Message::user(text),
                        _ => Message::assistant(text),
                    })
                })
                .collect();
            let mut known = 0;
            for length in 0..=turns.len() {
                let now = settled(&turns[..length], known, usize::MAX);
                prop_assert!(now >= known && now <= length);
                known = now;
            }
        }
    }
}
