//! Blocks and tools as JSON text, kept from one request to the next: of a long conversation only
//! what is new has to be written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use caliban_model::{Message, ToolSpec};
use serde_json::Value;

/// The most text that is kept. Beyond that blocks are written whenever they are sent.
const MOST_KEPT: usize = 8 * 1024 * 1024;
/// What an entry takes beside its text, about.
const PER_ENTRY: usize = 256;

/// An object as it is sent; it has at least one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    kind: Kind,
    json: Arc<str>,
}

/// What has to be known of a block when a request is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    ToolResult,
    /// Text or a picture.
    Content,
    Thinking,
    Other,
}

impl Written {
    pub(super) fn new(value: &Value) -> Self {
        let kind = match value["type"].as_str() {
            Some("tool_result") => Kind::ToolResult,
            Some("text" | "image") => Kind::Content,
            Some("thinking" | "redacted_thinking") => Kind::Thinking,
            Some(_) | None => Kind::Other,
        };
        Self {
            kind,
            json: value.to_string().into(),
        }
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn is_thinking(&self) -> bool {
        self.kind == Kind::Thinking
    }

    pub(super) fn is_tool_result(&self) -> bool {
        self.kind == Kind::ToolResult
    }

    pub(super) fn is_cacheable(&self) -> bool {
        matches!(self.kind, Kind::ToolResult | Kind::Content)
    }

    /// Adds a field at the end.
    pub(super) fn push(&mut self, name: &str, value: &Value) {
        let fields = self.json.strip_suffix('}').unwrap_or(&self.json);
        self.json = format!("{fields},\"{name}\":{value}}}").into();
    }
}

/// Appends a list of objects.
pub(super) fn push_list<'a>(text: &mut String, list: impl IntoIterator<Item = &'a Written>) {
    text.push('[');
    for (index, written) in list.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&written.json);
    }
    text.push(']');
}

/// Whether a message was written by the model that is asked; only that model sees all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Author {
    Asked,
    Another,
}

/// What was written for earlier requests.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Kept>);

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By the address of the message, which no other has while an entry refers to it.
    messages: HashMap<(usize, Author), Entry>,
    /// What the entries take.
    bytes: usize,
    tools: Option<(Arc<[ToolSpec]>, Vec<Written>)>,
}

#[derive(Debug)]
struct Entry {
    message: Weak<Message>,
    blocks: Arc<[Written]>,
}

impl Memory {
    /// Whoever panicked left what is kept whole.
    pub(super) fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The blocks of a message, as they were written before or are by `write`.
    pub(super) fn blocks(
        &mut self,
        message: &Arc<Message>,
        author: Author,
        write: impl FnOnce() -> Vec<Written>,
    ) -> Arc<[Written]> {
        let key = (Arc::as_ptr(message).addr(), author);
        if let Some(entry) = self.messages.get(&key) {
            return Arc::clone(&entry.blocks);
        }
        let blocks: Arc<[Written]> = write().into();
        let entry = Entry {
            message: Arc::downgrade(message),
            blocks: Arc::clone(&blocks),
        };
        if self.bytes + entry.bytes() > MOST_KEPT {
            self.forget();
        }
        if self.bytes + entry.bytes() <= MOST_KEPT {
            self.bytes += entry.bytes();
            self.messages.insert(key, entry);
        }
        blocks
    }

    /// The tools, as they were written before or are by `write`.
    pub(super) fn tools(
        &mut self,
        tools: &Arc<[ToolSpec]>,
        write: impl Fn(&ToolSpec) -> Written,
    ) -> Vec<Written> {
        match &self.tools {
            Some((known, written)) if Arc::ptr_eq(known, tools) => written.clone(),
            Some(_) | None => {
                let written: Vec<Written> = tools.iter().map(write).collect();
                self.tools = Some((Arc::clone(tools), written.clone()));
                written
            }
        }
    }

    /// Forgets messages that nobody has any more.
    fn forget(&mut self) {
        self.messages
            .retain(|_, entry| entry.message.strong_count() > 0);
        self.bytes = self.messages.values().map(Entry::bytes).sum();
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let text: usize = self.blocks.iter().map(|block| block.json.len()).sum();
        text + PER_ENTRY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Written {
        Written::new(&json!({"type": "text", "text": text}))
    }

    #[test]
    fn a_field_is_added_at_the_end() {
        let mut block = text("x}");
        block.push("cache_control", &json!({"type": "ephemeral"}));
        assert_eq!(
            block.json(),
            r#"{"type":"text","text":"x}","cache_control":{"type":"ephemeral"}}"#
        );
    }

    #[test]
    fn a_message_is_written_once_for_each_kind_of_reader() {
        let memory = Memory::default();
        let message = Arc::new(Message::user("q"));
        let written = |author, words: &str| {
            let blocks = memory.lock().blocks(&message, author, || vec![text(words)]);
            blocks[0].clone()
        };
        assert_eq!(written(Author::Asked, "first"), text("first"));
        assert_eq!(written(Author::Asked, "second"), text("first"));
        assert_eq!(written(Author::Another, "third"), text("third"));
    }

    #[test]
    fn what_nobody_has_makes_room_and_what_has_none_is_not_kept() {
        let memory = Memory::default();
        let mut kept = memory.lock();
        let half = "x".repeat(MOST_KEPT / 2);
        let (gone, stays) = (Arc::new(Message::user("a")), Arc::new(Message::user("b")));
        for message in [&gone, &stays] {
            kept.blocks(message, Author::Another, || vec![text(&half)]);
        }
        assert_eq!(kept.messages.len(), 1);
        drop(gone);
        kept.blocks(&stays, Author::Another, || vec![text(&half)]);
        assert_eq!(kept.messages.len(), 1);
        assert!(
            kept.messages
                .values()
                .all(|entry| entry.message.strong_count() > 0)
        );
        assert!(kept.bytes <= MOST_KEPT);
    }
}
