//! History in the form of the Messages API: alternating turns of content blocks.

use std::borrow::Cow;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use caliban_model::{Block, Image, ImageSource, Message, Request, Role, ToolContent};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::is_thinking;
use crate::history::Paired;
use crate::memory::Author;

/// One turn; never empty, and never next to another of the same role.
#[derive(Debug, PartialEq)]
struct Turn {
    role: Role,
    content: Vec<Value>,
}

/// Whether the conversation ends inside a series of tool calls, and how that series began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ToolLoop {
    #[default]
    None,
    BegunThinking,
    BegunWithoutThinking,
}

/// The turns as their reader may see them, and what they make of the loop before them.
pub(super) fn written(
    messages: &[Paired<'_>],
    author: Author<'_>,
    tool_loop: &mut ToolLoop,
) -> Vec<Value> {
    let turns = turns(messages, author);
    *tool_loop = tool_loop.after(&turns);
    turns.into_iter().map(Turn::into_value).collect()
}

fn turns(messages: &[Paired<'_>], author: Author<'_>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::with_capacity(messages.len());
    for message in messages {
        let content = blocks(message, author);
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == message.role => last.content.extend(content),
            Some(_) | None => turns.push(Turn {
                role: message.role,
                content,
            }),
        }
    }
    turns
}

impl Turn {
    fn into_value(self) -> Value {
        let role = match self.role {
            Role::Assistant => "assistant",
            Role::User | Role::System => "user",
        };
        json!({"role": role, "content": self.content})
    }
}

impl ToolLoop {
    fn after(self, turns: &[Turn]) -> Self {
        let mut state = self;
        let mut calls: Option<&Value> = None;
        for turn in turns {
            let first = turn.content.first();
            let has_results = first.is_some_and(|block| block["type"] == "tool_result");
            state = match (turn.role, state) {
                (Role::Assistant, state) => {
                    calls = first;
                    state
                }
                (Role::User | Role::System, _) if !has_results => Self::None,
                (Role::User | Role::System, Self::None) => match calls {
                    Some(calls) if is_thinking(calls) => Self::BegunThinking,
                    Some(_) => Self::BegunWithoutThinking,
                    None => Self::None,
                },
                (Role::User | Role::System, begun) => begun,
            };
        }
        match turns.last() {
            // It has said all it had to say.
            Some(last) if last.role == Role::Assistant => Self::None,
            Some(_) | None => state,
        }
    }
}

/// The system prompt as text blocks.
pub(super) fn system(request: &Request, author: Author<'_>) -> Vec<Value> {
    let messages = request.system().iter();
    messages
        .flat_map(|message| blocks(message, author))
        .collect()
}

fn blocks(message: &Message, author: Author<'_>) -> Vec<Value> {
    let own = author.wrote(message);
    message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, private } => {
                text_block(text).map(|block| with_private(block, private.as_ref().filter(|_| own)))
            }
            // Without a signature it is the rest of an answer that broke off.
            Block::Thinking {
                text,
                signature: Some(signature),
                ..
            } if own => Some(json!({"type": "thinking", "thinking": text, "signature": signature})),
            Block::RedactedThinking { data } if own => {
                Some(json!({"type": "redacted_thinking", "data": data}))
            }
            Block::Opaque { value } if own => Some(value.clone()),
            Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Opaque { .. } => None,
            Block::ToolUse {
                id,
                name,
                input,
                private,
            } => {
                let block = json!({
                    "type": "tool_use",
                    "id": tool_id(id),
                    "name": name,
                    "input": input_object(input),
                });
                Some(with_private(block, private.as_ref().filter(|_| own)))
            }
            Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => Some(tool_result(tool_use_id, content, *is_error)),
            Block::Image(image) => Some(image_block(image)),
        })
        .collect()
}

/// Blank text is refused by the API, so it is none.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

/// Adds the fields that only this API knows, as its decoder kept them.
fn with_private(mut block: Value, private: Option<&Value>) -> Value {
    if let (Value::Object(fields), Some(Value::Object(private))) = (&mut block, private) {
        fields.extend(private.clone());
    }
    block
}

fn tool_result(tool_use_id: &str, content: &[ToolContent], is_error: bool) -> Value {
    let content: Vec<Value> = content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Text { text } => text_block(text),
            ToolContent::Image(image) => Some(image_block(image)),
        })
        .collect();
    let mut result = json!({"type": "tool_result", "tool_use_id": tool_id(tool_use_id)});
    if is_error {
        result["is_error"] = Value::Bool(true);
    }
    if !content.is_empty() {
        result["content"] = Value::Array(content);
    }
    result
}

fn image_block(image: &Image) -> Value {
    let source = match &image.source {
        ImageSource::Base64 { data } => json!({
            "type": "base64",
            "media_type": image.mime.as_str(),
            "data": &**data,
        }),
        ImageSource::Url { url } => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

/// The API takes objects only; input that did not parse is shown as what the model wrote.
pub(super) fn input_object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::String(raw) => json!({"_raw": raw}),
        other => json!({"_raw": other.to_string()}),
    }
}

/// Ids of other providers may hold characters this API refuses. The same id always becomes the
/// same replacement, so that calls and results still meet.
fn tool_id(id: &str) -> Cow<'_, str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if !id.is_empty() && id.bytes().all(allowed) {
        return Cow::Borrowed(id);
    }
    let digest = Sha256::digest(id.as_bytes());
    let name = BASE64_URL_SAFE_NO_PAD.encode(&digest[..18]);
    Cow::Owned(format!("toolu_{name}"))
}

#[cfg(test)]
mod tests {
    use super::super::ID;
    use super::*;
    use crate::history::paired;
    use caliban_model::Origin;
    use std::collections::HashSet;
    use std::sync::Arc;

    const MODEL: &str = "claude-sonnet-4-6";
    const AUTHOR: Author<'_> = Author {
        provider: ID,
        model: MODEL,
    };

    fn request(messages: Vec<Message>) -> Request {
        Request::new(MODEL, messages.into_iter().map(Arc::new).collect()).unwrap()
    }

    /// The turns with their blocks.
    fn turns(request: &Request) -> Vec<(Role, Vec<Value>)> {
        let (messages, _) = paired(request.turns(), &HashSet::new());
        let turns = super::turns(&messages, AUTHOR).into_iter();
        turns.map(|turn| (turn.role, turn.content)).collect()
    }

    fn assistant(model: &str, content: Vec<Block>) -> Message {
        Message {
            role: Role::Assistant,
            content,
            origin: Some(Origin::new(ID, model)),
        }
    }

    fn call(id: &str, private: Option<Value>) -> Block {
        Block::ToolUse {
            id: id.into(),
            name: "Bash".into(),
            input: json!({}),
            private,
        }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult {
            tool_use_id: id.into(),
            content: vec![ToolContent::Text { text: "ok".into() }],
            is_error: false,
        }
    }

    fn private_answer(model: &str) -> Message {
        assistant(
            model,
            vec![
                Block::Thinking {
                    text: "hm".into(),
                    signature: Some("s".into()),
                    private: None,
                },
                Block::Thinking {
                    text: "cut off".into(),
                    signature: None,
                    private: None,
                },
                Block::RedactedThinking { data: "d".into() },
                Block::Opaque {
                    value: json!({"type": "server_tool_use", "id": "x"}),
                },
                Block::Text {
                    text: "hi".into(),
                    private: Some(json!({"citations": [1]})),
                },
                call("t", Some(json!({"caller": {"type": "direct"}}))),
            ],
        )
    }

    #[test]
    fn private_parts_return_to_the_model_that_wrote_them() {
        let turns = turns(&request(vec![Message::user("q"), private_answer(MODEL)]));
        assert_eq!(
            turns[1].1,
            [
                json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
                json!({"type": "redacted_thinking", "data": "d"}),
                json!({"type": "server_tool_use", "id": "x"}),
                json!({"type": "text", "text": "hi", "citations": [1]}),
                json!({
                    "type": "tool_use", "id": "t", "name": "Bash", "input": {},
                    "caller": {"type": "direct"},
                }),
            ]
        );
    }

    #[test]
    fn another_model_gets_only_what_was_said_and_done() {
        let mut of_nobody = private_answer(MODEL);
        of_nobody.origin = None;
        let mut of_another_provider = private_answer(MODEL);
        of_another_provider.origin = Some(Origin::new("openai", MODEL));
        for foreign in [
            private_answer("claude-opus-5"),
            of_nobody,
            of_another_provider,
        ] {
            let turns = turns(&request(vec![Message::user("q"), foreign]));
            assert_eq!(
                turns[1].1,
                [
                    json!({"type": "text", "text": "hi"}),
                    json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}),
                ]
            );
        }
    }

    #[test]
    fn turns_alternate_and_are_never_blank() {
        let thinking = Block::RedactedThinking { data: "d".into() };
        let turns = turns(&request(vec![
            Message::user("a"),
            assistant("claude-opus-5", vec![thinking]),
            Message::user(" \n"),
            Message::user("b"),
            Message::assistant("c"),
            Message::assistant("d"),
        ]));
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            turns,
            [
                (Role::User, vec![text("a"), text("b")]),
                (Role::Assistant, vec![text("c"), text("d")]),
            ]
        );
    }

    #[test]
    fn results_come_before_text_in_the_order_of_the_calls() {
        let turns = turns(&request(vec![
            Message::user("q"),
            assistant(MODEL, vec![call("a", None), call("b", None)]),
            Message::new(Role::User, vec![Block::text("and"), result("b")]),
            Message::new(Role::User, vec![result("a")]),
        ]));
        let kinds: Vec<_> = turns[2]
            .1
            .iter()
            .map(|block| (block["type"].as_str(), block["tool_use_id"].as_str()))
            .collect();
        assert_eq!(
            kinds,
            [
                (Some("tool_result"), Some("a")),
                (Some("tool_result"), Some("b")),
                (Some("text"), None),
            ]
        );
    }

    #[test]
    fn foreign_ids_are_replaced_alike_in_calls_and_results() {
        assert_eq!(tool_id("toolu_01-A"), "toolu_01-A");
        let turns = turns(&request(vec![
            Message::user("q"),
            assistant(MODEL, vec![call("functions.Bash:0", None), call("", None)]),
            Message::new(Role::User, vec![result("functions.Bash:0"), result("")]),
        ]));
        for position in 0..2 {
            let id = turns[1].1[position]["id"].as_str().unwrap();
            assert!(id.starts_with("toolu_") && !id.contains(['.', ':']), "{id}");
            assert_eq!(turns[2].1[position]["tool_use_id"], id);
        }
        assert_ne!(turns[1].1[0]["id"], turns[1].1[1]["id"]);
    }

    #[test]
    fn input_that_did_not_parse_is_still_an_object() {
        assert_eq!(input_object(&json!("{\"a")), json!({"_raw": "{\"a"}));
        assert_eq!(input_object(&json!([1])), json!({"_raw": "[1]"}));
        assert_eq!(input_object(&json!({"a": 1})), json!({"a": 1}));
    }

    #[test]
    fn images_come_by_value_or_by_address() {
        let image = |source| Image {
            mime: caliban_model::ImageMime::Png,
            source,
            dims: None,
        };
        assert_eq!(
            image_block(&image(ImageSource::Url {
                url: "https://example.org/a.png".into()
            })),
            json!({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}})
        );
        assert_eq!(
            image_block(&image(ImageSource::Base64 {
                data: "QQ==".into()
            })),
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}})
        );
    }

    #[test]
    fn an_empty_result_has_no_content() {
        let blank = [ToolContent::Text { text: "\n".into() }];
        assert_eq!(
            tool_result("t", &blank, false),
            json!({"type": "tool_result", "tool_use_id": "t"})
        );
    }

    #[test]
    fn a_tool_loop_is_judged_by_its_first_answer() {
        let thinking = Block::RedactedThinking { data: "d".into() };
        let answered = |id: &str| Message::new(Role::User, vec![result(id)]);
        let mut history = vec![
            Message::user("q"),
            assistant(MODEL, vec![call("x", None)]),
            answered("x"),
            Message::assistant("done"),
            Message::user("again"),
        ];
        let judged = |history: &[Message]| {
            let request = request(history.to_vec());
            let (messages, _) = paired(request.turns(), &HashSet::new());
            let mut whole = ToolLoop::None;
            written(&messages, AUTHOR, &mut whole);
            // It is the same when the turns come in pieces.
            let mut pieces = ToolLoop::None;
            let (first, rest) = messages.split_at(1);
            for piece in [first].into_iter().chain(rest.chunks(2)) {
                written(piece, AUTHOR, &mut pieces);
            }
            assert_eq!(pieces, whole);
            whole
        };
        assert_eq!(judged(&history), ToolLoop::None);
        assert_eq!(judged(&history[..3]), ToolLoop::BegunWithoutThinking);
        history.extend([
            assistant(MODEL, vec![thinking, call("a", None)]),
            answered("a"),
            assistant(MODEL, vec![call("b", None)]),
            answered("b"),
        ]);
        assert_eq!(judged(&history), ToolLoop::BegunThinking);
    }
}
