//! The conversation in Ollama's form.

use std::collections::{BTreeSet, HashMap};

use caliban_model::{Block, Image, ImageSource, Message, Request, Role, ToolContent};
use serde_json::{Map, Value, json};

use super::facts::Support;
use crate::sight::OMITTED_IMAGE;

/// Why images are missing from messages.
pub(super) type Omissions = BTreeSet<&'static str>;

/// The system prompt and a further paragraph as a message; nothing if both are empty.
pub(super) fn system(request: &Request, further: Option<String>) -> Option<Value> {
    let texts = request.system().iter().map(|message| message.text());
    let texts = texts.chain(further);
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| json!({"role": "system", "content": texts.join("\n\n")}))
}

/// Writes the conversation for `model`.
pub(super) fn messages<'a>(
    turns: impl IntoIterator<Item = &'a Message>,
    model: &str,
    vision: Support,
    omissions: &mut Omissions,
) -> Vec<Value> {
    let mut writer = Writer {
        model,
        vision,
        calls: HashMap::new(),
        made: 0,
        list: Vec::new(),
        omissions,
    };
    for message in turns {
        match message.role {
            Role::Assistant => writer.assistant(message),
            Role::User | Role::System => writer.user(message),
        }
    }
    writer.list
}

struct Writer<'a, 'm> {
    model: &'m str,
    vision: Support,
    /// Position and tool name of the calls made so far, by id.
    calls: HashMap<&'a str, (usize, &'a str)>,
    made: usize,
    list: Vec<Value>,
    omissions: &'m mut Omissions,
}

/// The text and images of one message.
#[derive(Default)]
struct Body<'a> {
    texts: Vec<&'a str>,
    images: Vec<&'a str>,
}

impl<'a> Body<'a> {
    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.images.is_empty()
    }

    fn text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.texts.push(text);
        }
    }

    /// Adds content and images to a message that has its other fields.
    fn finish(self, mut message: Map<String, Value>, prefix: &str) -> Value {
        let content = format!("{prefix}{}", self.texts.join("\n"));
        message.insert("content".to_owned(), content.into());
        if !self.images.is_empty() {
            message.insert("images".to_owned(), self.images.into());
        }
        Value::Object(message)
    }
}

impl<'a> Writer<'a, '_> {
    /// Results become messages of their own, in the order of the calls, before what the user
    /// says beside them.
    fn user(&mut self, message: &'a Message) {
        let mut results = Vec::new();
        let mut body = Body::default();
        for block in &message.content {
            match block {
                Block::Text { text, .. } => body.text(text),
                Block::Image(image) => self.image(image, &mut body),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    let prefix = if *is_error { "Error: " } else { "" };
                    results.extend(self.result(tool_use_id, content, prefix));
                }
                // None of these is a user's to say.
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::Opaque { .. } => {}
            }
        }
        results.sort_by_key(|(position, _)| *position);
        let list = &mut self.list;
        list.extend(results.into_iter().map(|(_, message)| message));
        if !body.is_empty() {
            list.push(body.finish(with_role("user"), ""));
        }
    }

    /// A result and the position of its call; one that answers no call cannot be written.
    fn result(
        &mut self,
        id: &str,
        content: &'a [ToolContent],
        prefix: &str,
    ) -> Option<(usize, Value)> {
        let (position, name) = *self.calls.get(id)?;
        let mut body = Body::default();
        for piece in content {
            match piece {
                ToolContent::Text { text } => body.text(text),
                ToolContent::Image(image) => self.image(image, &mut body),
            }
        }
        let mut message = with_role("tool");
        message.insert("tool_name".to_owned(), name.into());
        message.insert("tool_call_id".to_owned(), id.into());
        Some((position, body.finish(message, prefix)))
    }

    /// Thinking returns to its model with the calls it led to, and is of no use after an answer.
    fn assistant(&mut self, message: &'a Message) {
        let own = message.written_by(super::ID, self.model);
        let mut body = Body::default();
        let mut thoughts = Vec::new();
        let mut calls: Vec<Value> = Vec::new();
        for block in &message.content {
            match block {
                Block::Text { text, .. } => body.text(text),
                Block::Thinking { text, .. } if own => thoughts.push(text.as_str()),
                Block::ToolUse {
                    id, name, input, ..
                } => {
                    calls.push(call(calls.len(), id, name, input));
                    self.calls.insert(id, (self.made, name));
                    self.made += 1;
                }
                Block::Image(image) => self.image(image, &mut body),
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolResult { .. }
                | Block::Opaque { .. } => {}
            }
        }
        if body.is_empty() && calls.is_empty() {
            return;
        }
        let mut message = with_role("assistant");
        if !calls.is_empty() {
            if !thoughts.is_empty() {
                message.insert("thinking".to_owned(), thoughts.join("\n").into());
            }
            message.insert("tool_calls".to_owned(), calls.into());
        }
        self.list.push(body.finish(message, ""));
    }

    fn image(&mut self, image: &'a Image, body: &mut Body<'a>) {
        let omission = match (&image.source, self.vision) {
            (_, Support::No) => "the model cannot see",
            (ImageSource::Url { .. }, Support::Yes | Support::Unknown) => {
                "the server takes images only as data, not by address"
            }
            (ImageSource::Base64 { data }, Support::Yes | Support::Unknown) => {
                body.images.push(data);
                return;
            }
        };
        self.omissions.insert(omission);
        body.text(OMITTED_IMAGE);
    }
}

fn with_role(role: &str) -> Map<String, Value> {
    Map::from_iter([("role".to_owned(), role.into())])
}

fn call(index: usize, id: &str, name: &str, input: &Value) -> Value {
    let arguments = match input {
        Value::Object(_) => input.clone(),
        Value::String(raw) => json!({"_raw": raw}),
        other => json!({"_raw": other.to_string()}),
    };
    json!({"id": id, "function": {"index": index, "name": name, "arguments": arguments}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::{ImageMime, Origin};

    fn by(provider: &str, model: &str) -> Message {
        Message {
            role: Role::Assistant,
            content: vec![
                Block::Thinking {
                    text: "hm".into(),
                    signature: None,
                    private: None,
                },
                Block::text("I look."),
                call("c1", "Bash", json!({"command": "ls"})),
                call("c2", "Read", json!("{\"a\"")),
            ],
            origin: Some(Origin::new(provider, model)),
        }
    }

    fn call(id: &str, name: &str, input: Value) -> Block {
        Block::ToolUse {
            id: id.into(),
            name: name.into(),
            input,
            private: None,
        }
    }

    fn image(source: ImageSource) -> Image {
        Image {
            mime: ImageMime::Png,
            source,
            dims: None,
        }
    }

    fn embedded() -> Image {
        image(ImageSource::Base64 {
            data: "aVZC".into(),
        })
    }

    fn conversation(turn: Message) -> Vec<Message> {
        vec![
            Message::new(
                Role::User,
                vec![
                    Block::text("look"),
                    Block::text(""),
                    Block::Image(embedded()),
                ],
            ),
            turn,
            Message::new(
                Role::User,
                vec![
                    Block::text("and"),
                    Block::ToolResult {
                        tool_use_id: "c2".into(),
                        content: vec![
                            ToolContent::Text { text: "a".into() },
                            ToolContent::Text { text: "b".into() },
                            ToolContent::Image(embedded()),
                        ],
                        is_error: false,
                    },
                    Block::ToolResult {
                        tool_use_id: "c1".into(),
                        content: vec![ToolContent::Text { text: "no".into() }],
                        is_error: true,
                    },
                    Block::ToolResult {
                        tool_use_id: "orphan".into(),
                        content: vec![],
                        is_error: false,
                    },
                ],
            ),
            Message::user("go on"),
        ]
    }

    struct Messages {
        list: Vec<Value>,
        omissions: Omissions,
    }

    fn written(turns: &[Message], vision: Support) -> Messages {
        let mut omissions = Omissions::new();
        let list = messages(turns, "qwen3", vision, &mut omissions);
        Messages { list, omissions }
    }

    #[test]
    fn a_rich_conversation_is_written_whole() {
        let messages = written(&conversation(by("ollama", "qwen3")), Support::Yes);
        assert_eq!(
            Value::from(messages.list),
            json!([
                {"role": "user", "content": "look", "images": ["aVZC"]},
                {"role": "assistant", "thinking": "hm", "tool_calls": [
                    {"id": "c1", "function": {"index": 0, "name": "Bash", "arguments": {"command": "ls"}}},
                    {"id": "c2", "function": {"index": 1, "name": "Read", "arguments": {"_raw": "{\"a\""}}},
                 ], "content": "I look."},
                {"role": "tool", "tool_name": "Bash", "tool_call_id": "c1", "content": "Error: no"},
                {"role": "tool", "tool_name": "Read", "tool_call_id": "c2", "content": "a\nb", "images": ["aVZC"]},
                {"role": "user", "content": "and"},
                {"role": "user", "content": "go on"},
            ])
        );
        assert!(messages.omissions.is_empty());
    }

    #[test]
    fn thinking_returns_only_to_its_model_and_only_with_calls() {
        let foreign = written(&conversation(by("ollama", "llama3.1")), Support::Yes);
        assert_eq!(foreign.list[1].get("thinking"), None);

        let mut answer = by("ollama", "qwen3");
        answer.content.truncate(2);
        let answered = written(&[Message::user("x"), answer.clone()], Support::Yes);
        assert_eq!(
            answered.list[1],
            json!({"role": "assistant", "content": "I look."})
        );

        answer.content.truncate(1);
        let silent = written(&[Message::user("x"), answer], Support::Yes);
        assert_eq!(silent.list.len(), 1);
    }

    #[test]
    fn images_that_cannot_be_shown_leave_a_note() {
        let blind = written(&conversation(by("ollama", "qwen3")), Support::No);
        assert_eq!(
            blind.list[0],
            json!({"role": "user", "content": "look\n[image omitted]"})
        );
        assert_eq!(
            blind.omissions.into_iter().collect::<Vec<_>>(),
            ["the model cannot see"]
        );

        let linked = Message::new(
            Role::User,
            vec![Block::Image(image(ImageSource::Url {
                url: "https://x/y.png".into(),
            }))],
        );
        let linked = written(&[linked], Support::Yes);
        assert_eq!(
            linked.list[0],
            json!({"role": "user", "content": "[image omitted]"})
        );
        assert_eq!(linked.omissions.len(), 1);
    }
}
