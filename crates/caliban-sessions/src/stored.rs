//! How messages are written to disk: as they are, except that images and long tool results
//! become references to blobs, and JSON too deep to be read back is flattened.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_model::{Block, Image, ImageSource, Message, ToolContent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::blobs::{Blobs, Unavailable};
use crate::error::Warning;
use crate::record::{CallStatus, Effects, Record};

/// Bytes of a tool result's text that stay in the message.
pub const INLINE_TEXT: usize = 64 << 10;
/// Levels of JSON in a message; parsers stop at 128, and records and snapshots add some.
const DEEPEST: usize = 96;
/// What every reference contains.
const REFERENCE: &str = "blob_ref";

/// Something in the form it has on disk.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Stored<'a, T> {
    Plain(&'a T),
    Changed(Value),
}

/// A call that has begun and whose result is not part of the conversation yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) name: String,
    pub(crate) effects: Effects,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) done: Option<Done>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) status: CallStatus,
    pub(crate) content: Vec<ToolContent>,
}

impl OpenCall {
    /// Whether it is this one. Each agent has ids of its own.
    pub(crate) fn is(&self, agent: Option<&str>, id: &str) -> bool {
        self.agent.as_deref() == agent && self.id == id
    }

    /// The call of the conversation whose result tells of it.
    pub(crate) fn told_by(&self) -> &str {
        self.agent.as_ref().unwrap_or(&self.id)
    }
}

/// Something whose contents may be kept elsewhere.
pub(crate) trait Storable: Serialize + DeserializeOwned {
    /// Whether it can be written as it is.
    fn is_plain(&self) -> bool;
    /// Visits the contents in its JSON form.
    fn visit(value: &mut Value, visitor: &mut dyn Visitor) -> io::Result<()>;
}

/// What is done to contents.
pub(crate) trait Visitor {
    fn image(&mut self, image: &mut Value) -> io::Result<()>;
    fn result_text(&mut self, text: &mut Value) -> io::Result<()>;
    /// A block that may hold JSON of somebody else's making.
    fn foreign(&mut self, block: &mut Value);
}

impl Storable for Message {
    fn is_plain(&self) -> bool {
        self.content.iter().all(is_plain_block)
    }

    fn visit(value: &mut Value, visitor: &mut dyn Visitor) -> io::Result<()> {
        for block in items(value, "content") {
            match block["type"].as_str() {
                Some("image") => visitor.image(block)?,
                Some("tool_result") => visit_contents(block, visitor)?,
                _ => visitor.foreign(block),
            }
        }
        Ok(())
    }
}

impl Storable for OpenCall {
    fn is_plain(&self) -> bool {
        let mut contents = self.done.iter().flat_map(|done| &done.content);
        contents.all(is_plain_content)
    }

    fn visit(value: &mut Value, visitor: &mut dyn Visitor) -> io::Result<()> {
        match value.get_mut("done") {
            Some(done) => visit_contents(done, visitor),
            None => Ok(()),
        }
    }
}

impl Storable for Record {
    fn is_plain(&self) -> bool {
        match self {
            Self::Message(message) => message.is_plain(),
            Self::Compacted { messages, .. } | Self::Repaired { messages, .. } => {
                messages.iter().all(|message| message.is_plain())
            }
            Self::ToolDone { content, .. } => content.iter().all(is_plain_content),
            Self::ToolIntent { .. }
            | Self::Usage { .. }
            | Self::State(_)
            | Self::Rewound { .. }
            | Self::TurnEnded {}
            | Self::Title { .. }
            | Self::Work { .. }
            | Self::Notice(_) => true,
        }
    }

    fn visit(value: &mut Value, visitor: &mut dyn Visitor) -> io::Result<()> {
        if let Some(message) = value.get_mut("message") {
            return Message::visit(message, visitor);
        }
        if let Some(done) = value.get_mut("tool_done") {
            return visit_contents(done, visitor);
        }
        for kind in ["compacted", "repaired"] {
            if let Some(replacement) = value.get_mut(kind) {
                for message in items(replacement, "messages") {
                    Message::visit(message, visitor)?;
                }
            }
        }
        Ok(())
    }
}

impl Blobs {
    /// The form something has on disk; what it refers to is durable.
    pub(crate) fn store<'a, T: Storable>(&mut self, thing: &'a T) -> io::Result<Stored<'a, T>> {
        if thing.is_plain() {
            return Ok(Stored::Plain(thing));
        }
        let mut value = serde_json::to_value(thing)?;
        T::visit(&mut value, &mut Storing { blobs: self })?;
        Ok(Stored::Changed(value))
    }

    /// The JSON of something with its references resolved; nothing if it has none.
    pub(crate) fn resolve<T: Storable>(
        &self,
        text: &str,
        warnings: &mut Vec<Warning>,
    ) -> Option<Value> {
        if !text.contains(REFERENCE) {
            return None;
        }
        let mut value = serde_json::from_str(text).ok()?;
        let mut restoring = Restoring {
            blobs: self,
            warnings,
        };
        T::visit(&mut value, &mut restoring).ok()?;
        Some(value)
    }

    /// Reads something back.
    pub(crate) fn restore<T: Storable>(
        &self,
        raw: &RawValue,
        warnings: &mut Vec<Warning>,
    ) -> serde_json::Result<T> {
        match self.resolve::<T>(raw.get(), warnings) {
            Some(value) => serde_json::from_value(value),
            None => serde_json::from_str(raw.get()),
        }
    }
}

struct Storing<'a> {
    blobs: &'a mut Blobs,
}

impl Visitor for Storing<'_> {
    fn image(&mut self, image: &mut Value) -> io::Result<()> {
        let Some(data) = image["source"]["data"].as_str() else {
            return Ok(());
        };
        // Only the one way of writing bytes that comes back the same is decoded; data in any
        // other stays where it is.
        if let Ok(bytes) = STANDARD.decode(data) {
            image["source"] = reference(&self.blobs.put(&bytes)?);
        }
        Ok(())
    }

    fn result_text(&mut self, text: &mut Value) -> io::Result<()> {
        if let Value::String(long) = text
            && long.len() > INLINE_TEXT
        {
            *text = reference(&self.blobs.put(long.as_bytes())?);
        }
        Ok(())
    }

    fn foreign(&mut self, block: &mut Value) {
        if is_deep(&block["input"], DEEPEST) {
            block["input"] = Value::String(block["input"].to_string());
        }
        if let Some(block) = block.as_object_mut()
            && block
                .get("private")
                .is_some_and(|value| is_deep(value, DEEPEST))
        {
            block.shift_remove("private");
        }
        if is_deep(&block["value"], DEEPEST) {
            *block = json!({"type": "text", "text": "[a block too deeply nested to be kept]"});
        }
    }
}

struct Restoring<'a> {
    blobs: &'a Blobs,
    warnings: &'a mut Vec<Warning>,
}

impl Restoring<'_> {
    /// The blob that a value refers to, if it is a reference.
    fn get(&mut self, value: &Value) -> Option<Result<Vec<u8>, Lost>> {
        if value["type"].as_str() != Some(REFERENCE) {
            return None;
        }
        let digest = value["sha256"].as_str().unwrap_or_default();
        Some(self.blobs.get(digest).map_err(|unavailable| {
            let Unavailable { path, problem } = unavailable;
            let problem_there = problem.clone();
            self.warnings.push(Warning::Blob { path, problem });
            Lost(problem_there)
        }))
    }
}

struct Lost(String);

impl Visitor for Restoring<'_> {
    fn image(&mut self, image: &mut Value) -> io::Result<()> {
        match self.get(&image["source"]) {
            None => {}
            Some(Ok(bytes)) => {
                image["source"] = json!({"type": "base64", "data": STANDARD.encode(bytes)});
            }
            Some(Err(Lost(problem))) => {
                let text = format!("[an image was here; its file {problem}]");
                *image = json!({"type": "text", "text": text});
            }
        }
        Ok(())
    }

    fn result_text(&mut self, text: &mut Value) -> io::Result<()> {
        match self.get(text).map(|found| found.map(String::from_utf8)) {
            None => {}
            Some(Ok(Ok(long))) => *text = Value::String(long),
            Some(Ok(Err(_))) => {
                *text = json!("[a long text was here; its file does not hold text]");
            }
            Some(Err(Lost(problem))) => {
                *text = Value::String(format!("[a long text was here; its file {problem}]"));
            }
        }
        Ok(())
    }

    fn foreign(&mut self, _: &mut Value) {}
}

fn reference(digest: &str) -> Value {
    json!({"type": REFERENCE, "sha256": digest})
}

fn visit_contents(holder: &mut Value, visitor: &mut dyn Visitor) -> io::Result<()> {
    for content in items(holder, "content") {
        match content["type"].as_str() {
            Some("image") => visitor.image(content)?,
            Some("text") => {
                if let Some(text) = content.get_mut("text") {
                    visitor.result_text(text)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn items<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

fn is_plain_block(block: &Block) -> bool {
    let is_shallow = |value: &Value| !is_deep(value, DEEPEST);
    match block {
        Block::Text { private, .. } | Block::Thinking { private, .. } => {
            private.as_ref().is_none_or(is_shallow)
        }
        Block::ToolUse { input, private, .. } => {
            is_shallow(input) && private.as_ref().is_none_or(is_shallow)
        }
        Block::Opaque { value } => is_shallow(value),
        Block::ToolResult { content, .. } => content.iter().all(is_plain_content),
        Block::Image(image) => is_plain_image(image),
        Block::RedactedThinking { .. } => true,
    }
}

fn is_plain_content(content: &ToolContent) -> bool {
    match content {
        ToolContent::Text { text } => text.len() <= INLINE_TEXT,
        ToolContent::Image(image) => is_plain_image(image),
    }
}

fn is_plain_image(image: &Image) -> bool {
    match image.source {
        ImageSource::Base64 { .. } => false,
        ImageSource::Url { .. } => true,
    }
}

/// Whether a value has more levels than `limit`.
fn is_deep(value: &Value, limit: usize) -> bool {
    let Some(rest) = limit.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(values) => values.iter().any(|value| is_deep(value, rest)),
        Value::Object(fields) => fields.values().any(|value| is_deep(value, rest)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
