//! The conversation in Gemini's form: alternating turns of parts.

use std::collections::HashMap;

use caliban_model::{Block, Image, ImageSource, Message, Role, ToolContent};
use serde_json::{Map, Value, json};

use super::encode::Generation;
use crate::memory::Author;

/// Stands in for the signature of a call that another model made; without it the call is
/// rejected.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// What a block keeps for its return: the provider's own call id and the signature of the part.
pub(super) fn private(id: Option<&str>, signature: Option<String>) -> Option<Value> {
    let mut fields = Map::new();
    if let Some(id) = id {
        fields.insert("id".to_owned(), Value::from(id));
    }
    if let Some(signature) = signature {
        fields.insert("thoughtSignature".to_owned(), Value::from(signature));
    }
    (!fields.is_empty()).then_some(Value::Object(fields))
}

/// The turns as their reader may see them. Turns of one speaker that follow each other become one.
pub(super) fn contents<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    author: Author<'_>,
    generation: Generation,
) -> Vec<Value> {
    let mut writer = Writer {
        author,
        generation,
        calls: HashMap::new(),
        made: 0,
        turns: Vec::new(),
    };
    for message in messages {
        let turn = match message.role {
            Role::Assistant => writer.model_turn(message),
            Role::User | Role::System => writer.user_turn(message),
        };
        writer.append(turn);
    }
    writer.turns.into_iter().map(Turn::into_value).collect()
}

struct Writer<'a, 'm> {
    author: Author<'m>,
    generation: Generation,
    /// The calls made so far, by the id that results name.
    calls: HashMap<&'a str, Made<'a>>,
    made: usize,
    turns: Vec<Turn>,
}

/// A call that awaits its result. Results carry the provider's own id if it gave one, and are
/// otherwise matched by name and order.
struct Made<'a> {
    position: usize,
    name: &'a str,
    native_id: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    User,
    Model,
}

struct Turn {
    speaker: Speaker,
    /// Function responses with the positions of their calls; they lead the turn in that order.
    responses: Vec<(usize, Value)>,
    parts: Vec<Value>,
}

impl Turn {
    fn new(speaker: Speaker) -> Self {
        Self {
            speaker,
            responses: Vec::new(),
            parts: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.parts.is_empty()
    }

    fn into_value(mut self) -> Value {
        self.responses.sort_by_key(|(position, _)| *position);
        let responses = self.responses.into_iter().map(|(_, response)| response);
        let parts: Vec<Value> = responses.chain(self.parts).collect();
        let role = match self.speaker {
            Speaker::User => "user",
            Speaker::Model => "model",
        };
        json!({"role": role, "parts": parts})
    }
}

impl<'a> Writer<'a, '_> {
    fn append(&mut self, turn: Turn) {
        if turn.is_empty() {
            return;
        }
        match self.turns.last_mut() {
            Some(last) if last.speaker == turn.speaker => {
                last.responses.extend(turn.responses);
                last.parts.extend(turn.parts);
            }
            Some(_) | None => self.turns.push(turn),
        }
    }

    fn user_turn(&self, message: &'a Message) -> Turn {
        let mut turn = Turn::new(Speaker::User);
        for block in &message.content {
            match block {
                Block::Text { text, .. } if text.is_empty() => {}
                Block::Text { text, .. } => turn.parts.push(json!({"text": text})),
                Block::Image(image) => turn.parts.push(picture(image)),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    let outcome = if *is_error { "error" } else { "output" };
                    self.response(tool_use_id, content, outcome, &mut turn);
                }
                // None of these is a user's to say.
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::Opaque { .. } => {}
            }
        }
        turn
    }

    /// Writes a tool's result; one that answers no call cannot be written.
    fn response(&self, id: &str, content: &[ToolContent], outcome: &str, turn: &mut Turn) {
        let Some(call) = self.calls.get(id) else {
            return;
        };
        let mut texts = Vec::new();
        let mut pictures = Vec::new();
        for piece in content {
            match piece {
                ToolContent::Text { text } => texts.push(text.as_str()),
                ToolContent::Image(image) => pictures.push(picture(image)),
            }
        }
        let mut response = Map::new();
        if let Some(native) = call.native_id {
            response.insert("id".to_owned(), Value::from(native));
        }
        response.insert("name".to_owned(), Value::from(call.name));
        response.insert("response".to_owned(), json!({outcome: texts.join("\n")}));
        match self.generation {
            Generation::Third if !pictures.is_empty() => {
                response.insert("parts".to_owned(), Value::from(pictures));
            }
            Generation::Third => {}
            Generation::Second => turn.parts.extend(pictures),
        }
        turn.responses
            .push((call.position, json!({"functionResponse": response})));
    }

    /// A turn of this very model returns part by part as it came, except that thoughts return
    /// as their signatures only. Of any other model's turn text, images and calls remain.
    fn model_turn(&mut self, message: &'a Message) -> Turn {
        let own = self.author.wrote(message);
        let returned = |private: &'a Option<Value>, field: &str| {
            private
                .as_ref()
                .filter(|_| own)
                .and_then(|private| private.get(field)?.as_str())
        };
        let mut stand_in = match self.generation {
            Generation::Third if !own => Some(FOREIGN_SIGNATURE),
            Generation::Third | Generation::Second => None,
        };
        let mut turn = Turn::new(Speaker::Model);
        for block in &message.content {
            match block {
                Block::Text { text, private } => {
                    let signature = returned(private, "thoughtSignature");
                    if !text.is_empty() || signature.is_some() {
                        turn.parts.push(signed(json!({"text": text}), signature));
                    }
                }
                Block::Thinking { private, .. } => {
                    let signature = returned(private, "thoughtSignature");
                    if signature.is_some() {
                        let part = json!({"text": "", "thought": true});
                        turn.parts.push(signed(part, signature));
                    }
                }
                Block::ToolUse {
                    id,
                    name,
                    input,
                    private,
                } => {
                    let native_id = returned(private, "id");
                    let signature =
                        returned(private, "thoughtSignature").or_else(|| stand_in.take());
                    let part = json!({"functionCall": call(name, input, native_id)});
                    turn.parts.push(signed(part, signature));
                    self.calls.insert(
                        id,
                        Made {
                            position: self.made,
                            name,
                            native_id,
                        },
                    );
                    self.made += 1;
                }
                Block::Image(image) => turn.parts.push(picture(image)),
                Block::Opaque { value } if own => turn.parts.push(value.clone()),
                Block::Opaque { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolResult { .. } => {}
            }
        }
        turn
    }
}

fn call(name: &str, input: &Value, native_id: Option<&str>) -> Map<String, Value> {
    let mut call = Map::new();
    if let Some(native) = native_id {
        call.insert("id".to_owned(), Value::from(native));
    }
    call.insert("name".to_owned(), Value::from(name));
    let args = match input {
        Value::Object(_) => input.clone(),
        Value::String(raw) => json!({"_raw": raw}),
        other => json!({"_raw": other.to_string()}),
    };
    call.insert("args".to_owned(), args);
    call
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = Value::from(signature);
    }
    part
}

fn picture(image: &Image) -> Value {
    let mime = image.mime.as_str();
    match &image.source {
        ImageSource::Base64 { data } => json!({"inlineData": {"mimeType": mime, "data": &**data}}),
        ImageSource::Url { url } => json!({"fileData": {"mimeType": mime, "fileUri": url}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::{ImageMime, Origin};

    const MODEL: &str = "gemini-3.8-flash";

    fn written(messages: &[Message], generation: Generation) -> Value {
        let author = Author {
            provider: super::super::ID,
            model: MODEL,
        };
        Value::from(contents(messages, author, generation))
    }

    fn by(provider: &str, model: &str, content: Vec<Block>) -> Message {
        Message {
            role: Role::Assistant,
            content,
            origin: Some(Origin::new(provider, model)),
        }
    }

    fn image() -> Image {
        Image {
            mime: ImageMime::Png,
            source: ImageSource::Base64 {
                data: "aVZC".into(),
            },
            dims: None,
        }
    }

    fn call(id: &str, name: &str, private: Option<Value>) -> Block {
        Block::ToolUse {
            id: id.into(),
            name: name.into(),
            input: json!({"x": id}),
            private,
        }
    }

    fn result(id: &str, content: Vec<ToolContent>, is_error: bool) -> Block {
        Block::ToolResult {
            tool_use_id: id.into(),
            content,
            is_error,
        }
    }

    fn text(text: &str) -> ToolContent {
        ToolContent::Text { text: text.into() }
    }

    fn answer() -> Vec<Block> {
        vec![
            Block::Thinking {
                text: "secret".into(),
                signature: None,
                private: None,
            },
            Block::Thinking {
                text: "signed".into(),
                signature: None,
                private: Some(json!({"thoughtSignature": "s0"})),
            },
            Block::text("I look."),
            call(
                "a1",
                "Bash",
                Some(json!({"id": "n1", "thoughtSignature": "s1"})),
            ),
            call("a2", "Read", None),
            Block::Opaque {
                value: json!({"executableCode": {"code": "1"}}),
            },
            Block::Text {
                text: String::new(),
                private: Some(json!({"thoughtSignature": "s2"})),
            },
            Block::RedactedThinking { data: "d".into() },
        ]
    }

    fn conversation(model_turn: Message) -> Vec<Message> {
        vec![
            Message::new(
                Role::User,
                vec![
                    Block::text("look"),
                    Block::text(""),
                    Block::Image(image()),
                    Block::Image(Image {
                        source: ImageSource::Url {
                            url: "gs://b/x.png".into(),
                        },
                        ..image()
                    }),
                ],
            ),
            model_turn,
            Message::new(
                Role::User,
                vec![
                    Block::text("and"),
                    result("a2", vec![text("seen"), ToolContent::Image(image())], false),
                    result("a1", vec![text("no"), text("such")], true),
                    result("orphan", vec![text("?")], false),
                ],
            ),
            Message::user("go on"),
        ]
    }

    #[test]
    fn an_own_turn_returns_as_it_came_without_its_thoughts() {
        assert_eq!(
            written(
                &conversation(by("google", MODEL, answer())),
                Generation::Third
            ),
            json!([
                {"role": "user", "parts": [
                    {"text": "look"},
                    {"inlineData": {"mimeType": "image/png", "data": "aVZC"}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "gs://b/x.png"}},
                ]},
                {"role": "model", "parts": [
                    {"text": "", "thought": true, "thoughtSignature": "s0"},
                    {"text": "I look."},
                    {"functionCall": {"id": "n1", "name": "Bash", "args": {"x": "a1"}}, "thoughtSignature": "s1"},
                    {"functionCall": {"name": "Read", "args": {"x": "a2"}}},
                    {"executableCode": {"code": "1"}},
                    {"text": "", "thoughtSignature": "s2"},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "n1", "name": "Bash", "response": {"error": "no\nsuch"}}},
                    {"functionResponse": {"name": "Read", "response": {"output": "seen"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aVZC"}}]}},
                    {"text": "and"},
                    {"text": "go on"},
                ]},
            ])
        );
    }

    #[test]
    fn a_foreign_turn_keeps_text_and_calls_under_the_stand_in_signature() {
        for origin in [("anthropic", MODEL), ("google", "gemini-3.1-pro")] {
            let turn = by(origin.0, origin.1, answer());
            let written = written(&conversation(turn), Generation::Third);
            assert_eq!(
                written[1]["parts"],
                json!([
                    {"text": "I look."},
                    {"functionCall": {"name": "Bash", "args": {"x": "a1"}},
                     "thoughtSignature": "skip_thought_signature_validator"},
                    {"functionCall": {"name": "Read", "args": {"x": "a2"}}},
                ])
            );
            assert_eq!(
                written[2]["parts"][0],
                json!({"functionResponse": {"name": "Bash", "response": {"error": "no\nsuch"}}})
            );
        }
    }

    #[test]
    fn older_models_get_no_stand_in_and_images_beside_the_result() {
        let turn = by("openai", "gpt-5.5", answer());
        let written = written(&conversation(turn), Generation::Second);
        assert_eq!(
            written[1]["parts"][1],
            json!({"functionCall": {"name": "Bash", "args": {"x": "a1"}}})
        );
        assert_eq!(
            written[2]["parts"],
            json!([
                {"functionResponse": {"name": "Bash", "response": {"error": "no\nsuch"}}},
                {"functionResponse": {"name": "Read", "response": {"output": "seen"}}},
                {"text": "and"},
                {"inlineData": {"mimeType": "image/png", "data": "aVZC"}},
                {"text": "go on"},
            ])
        );
    }

    #[test]
    fn a_turn_with_nothing_to_say_vanishes_and_its_neighbours_merge() {
        let thoughts = by(
            "anthropic",
            "claude-sonnet-4-6",
            vec![Block::Thinking {
                text: "hm".into(),
                signature: Some("s".into()),
                private: None,
            }],
        );
        assert_eq!(
            written(
                &[Message::user("a"), thoughts, Message::user("b")],
                Generation::Third
            ),
            json!([{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}])
        );
    }

    #[test]
    fn arguments_are_always_an_object() {
        let turn = by(
            "ollama",
            "x",
            vec![Block::ToolUse {
                id: "c".into(),
                name: "Bash".into(),
                input: json!("{\"a\""),
                private: None,
            }],
        );
        assert_eq!(
            written(&[Message::user("a"), turn], Generation::Second)[1]["parts"][0],
            json!({"functionCall": {"name": "Bash", "args": {"_raw": "{\"a\""}}})
        );
    }
}
